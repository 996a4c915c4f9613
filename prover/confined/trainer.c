/* trainer.c - see trainer.h. */
#include "prover/confined/trainer.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>

#include "prover/confined/confined.h"

enum { LOOK_MS = 200 };

struct trainer {
    struct confined child;
    bool told_to_stop;
};

/* ---- its life ------------------------------------------------------------------------- */

enum status trainer_open(struct trainer **trainer, const struct confined_plan *plan,
                         const char *const *data, uint32_t data_count, struct error *error)
{
    struct trainer *made = calloc(1, sizeof(*made));
    enum status status;

    *trainer = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a process that trains");
    }
    status =
        confined_start(&made->child, CONFINED_TRAINER, "trains", plan, data, data_count, error);
    if (status != STATUS_OK) {
        free(made);
        return status;
    }
    *trainer = made;
    return STATUS_OK;
}

void trainer_close(struct trainer *trainer)
{
    if (trainer != NULL) {
        confined_end(&trainer->child);
        free(trainer);
    }
}

/* ---- what is said ----------------------------------------------------------------------- */

static void tell_child(const struct trainer *trainer, enum confined_kind kind, uint64_t number)
{
    const struct confined_message message = {.kind = (uint32_t)kind, .numbers = {number}};

    confined_tell(&trainer->child, &message, NULL);
}

void trainer_sign(struct trainer *trainer, uint64_t segment, const uint8_t *signature, size_t size)
{
    const struct confined_message message = {
        .kind = CONFINED_SIGN, .numbers = {segment}, .size = (uint32_t)size};

    assert(size <= BUNDLE_SIGNATURE_MAX);
    confined_tell(&trainer->child, &message, signature);
}

static enum status read_message(struct confined_message *message, struct trainer *trainer,
                                struct error *error)
{
    enum status status = confined_read(&trainer->child, message, error);

    if (status != STATUS_OK) {
        error_advise(error, "nothing before the last checkpoint is lost: 'lockstep prover resume' "
                            "goes on");
    }
    return status;
}

/* The next message. Once a stop is requested it is told. */
static enum status next_message(struct confined_message *message, struct trainer *trainer,
                                struct stop *stop, struct error *error)
{
    struct pollfd watched[] = {{.fd = trainer->child.socket, .events = POLLIN},
                               {.fd = stop->descriptor, .events = POLLIN}};

    for (;;) {
        if (stop_requested(stop) && !trainer->told_to_stop) {
            trainer->told_to_stop = true;
            tell_child(trainer, CONFINED_STOP, 0);
        }
        watched[0].revents = 0;
        if (poll(watched, trainer->told_to_stop ? 1 : 2, LOOK_MS) > 0 && watched[0].revents != 0) {
            break;
        }
    }
    return read_message(message, trainer, error);
}

static enum status read_done(struct train_result *result, const struct confined_message *message,
                             struct error *error)
{
    struct error said;

    if (result != NULL) {
        *result = (struct train_result){.first = message->numbers[0],
                                        .steps = message->numbers[1],
                                        .retries = message->numbers[2],
                                        .diverged = message->numbers[3] != 0};
    }
    confined_wire_get_error(&said, message);
    if (said.status != STATUS_OK) {
        *error = said;
    }
    return said.status;
}

enum status trainer_ready(uint64_t *step_ns, struct trainer *trainer, struct stop *stop,
                          struct error *error)
{
    struct confined_message message;

    *step_ns = 0;
    TRY(next_message(&message, trainer, stop, error));
    if (message.kind == CONFINED_DONE) {
        enum status status = read_done(NULL, &message, error);

        return status == STATUS_OK
                   ? error_set(error, STATUS_STOPPED, "stopped before its first step")
                   : status;
    }
    *step_ns = message.numbers[0];
    return STATUS_OK;
}

static void tell_final(struct trainer *trainer, const struct trainer_watch *watch)
{
    tell_child(trainer, CONFINED_GO, watch->final == NULL ? 0 : watch->final(watch->context));
}

enum status trainer_run(struct train_result *result, bool *died, struct trainer *trainer,
                        const struct trainer_watch *watch, struct error *error)
{
    struct confined_message message;
    enum status failed = STATUS_OK; /* of the caller's own */
    struct error none;

    *died = true;
    error_init(&none);
    tell_final(trainer, watch);
    for (;;) {
        struct bundle_step step;

        TRY(next_message(&message, trainer, watch->stop, failed == STATUS_OK ? error : &none));
        switch (message.kind) {
        case CONFINED_STEP:
            confined_wire_get_step(&step, &message);
            watch->progress(watch->context, &step);
            break;
        case CONFINED_SEGMENT:
            if (failed == STATUS_OK && watch->segment != NULL) {
                failed = watch->segment(watch->context, error);
            }
            if (failed != STATUS_OK) {
                tell_child(trainer, CONFINED_STOP, 0);
            }
            tell_final(trainer, watch);
            break;
        case CONFINED_RETRY:
            watch->retrying(watch->context, message.numbers[0], message.text);
            break;
        case CONFINED_DAMAGED:
            watch->damaged(watch->context, message.numbers[0], message.text);
            break;
        case CONFINED_ALONE:
            watch->alone(watch->context, message.text);
            break;
        case CONFINED_DONE:
            *died = false;
            return failed == STATUS_OK ? read_done(result, &message, error) : failed;
        default:
            *died = false;
            return confined_nonsense(&trainer->child, error);
        }
    }
}
