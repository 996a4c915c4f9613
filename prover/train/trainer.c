/* trainer.c - see trainer.h. */
#include "prover/train/trainer.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/spawn.h"

enum {
    LOOK_MS = 200,
    END_LOOK_MS = 10,
    END_LOOKS = 3000, /* a child that ends writes what it holds */
};

struct trainer {
    pid_t process; /* 0: it was waited for */
    int socket;
    bool told_to_stop;
    bool done; /* it said so */
};

/* ---- its life ------------------------------------------------------------------------- */

static bool send_plan(struct trainer *trainer, const struct trainer_plan *plan,
                      const char *const *data)
{
    bool sent = trainer_wire_write(trainer->socket, plan, sizeof(*plan));

    for (uint32_t i = 0; i < plan->data_count && sent; i++) {
        char path[FILE_PATH_MAX] = {0};

        (void)snprintf(path, sizeof(path), "%s", data[i]);
        sent = trainer_wire_write(trainer->socket, path, sizeof(path));
    }
    return sent;
}

enum status trainer_open(struct trainer **trainer, const struct trainer_plan *plan,
                         const char *const *data, uint32_t data_count, struct error *error)
{
    static const char *const words[] = {"lockstep", TRAINER_WORD, NULL};
    struct trainer *made = calloc(1, sizeof(*made));
    struct trainer_plan whole = *plan;
    int ends[2] = {-1, -1};
    enum status status;

    *trainer = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a process that trains");
    }
    made->socket = -1;
    whole.data_count = data_count;
    whole.on_cuda = plan->machine.backend == &backend_cuda;
    whole.machine.backend = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        TRY_OUT(error_set_errno(error, "no socket for the process that trains"));
    }
    made->socket = ends[0];
    TRY_OUT(spawn_program(&made->process, SPAWN_SELF, words,
                          &(struct spawn_files){ends[1], ends[1], -1}, error));
    /* One that is gone already is found by the next read. */
    (void)send_plan(made, &whole, data);
    *trainer = made;
out:
    encryption_key_wipe(&whole.key);
    if (ends[1] >= 0) {
        (void)close(ends[1]);
    }
    if (status != STATUS_OK) {
        trainer_close(made);
    }
    return status;
}

static bool has_ended(struct trainer *trainer, int *how)
{
    pid_t found = waitpid(trainer->process, how, WNOHANG);

    if (found == 0 || (found < 0 && errno == EINTR)) {
        return false;
    }
    trainer->process = 0;
    return true;
}

/* A child whose socket is closed ends by itself; one that hangs is ended. */
static int wait_for_end(struct trainer *trainer)
{
    int how = 0;

    for (int i = 0; i < END_LOOKS && trainer->process != 0; i++) {
        if (!has_ended(trainer, &how)) {
            (void)usleep(END_LOOK_MS * 1000);
        }
    }
    if (trainer->process != 0) {
        (void)kill(trainer->process, SIGKILL);
        while (waitpid(trainer->process, &how, 0) < 0 && errno == EINTR) {
        }
        trainer->process = 0;
    }
    return how;
}

void trainer_close(struct trainer *trainer)
{
    if (trainer == NULL) {
        return;
    }
    if (trainer->socket >= 0) {
        (void)close(trainer->socket);
    }
    (void)wait_for_end(trainer);
    free(trainer);
}

/* ---- what is said ----------------------------------------------------------------------- */

static void tell(struct trainer *trainer, enum trainer_kind kind, uint64_t number)
{
    struct trainer_message message = {.kind = (uint32_t)kind, .numbers = {number}};

    /* One that is gone is found by the next read. */
    (void)trainer_wire_write(trainer->socket, &message, sizeof(message));
}

void trainer_sign(struct trainer *trainer, uint64_t segment, const uint8_t *signature, size_t size)
{
    struct trainer_message message = {.kind = TRAINER_SIGN, .numbers = {segment, size}};

    assert(size <= BUNDLE_SIGNATURE_MAX);
    memcpy(message.text, signature, size);
    (void)trainer_wire_write(trainer->socket, &message, sizeof(message));
}

static enum status is_gone(struct trainer *trainer, struct error *error)
{
    int how;

    (void)shutdown(trainer->socket, SHUT_RDWR);
    how = wait_for_end(trainer);
    if (WIFSIGNALED(how)) {
        (void)error_set(error, STATUS_IO, "the process that trains was ended by signal %d (%s)",
                        WTERMSIG(how), strsignal(WTERMSIG(how)));
    } else {
        (void)error_set(error, STATUS_IO, "the process that trains ended with exit code %d",
                        WEXITSTATUS(how));
    }
    error_advise(error, "nothing before the last checkpoint is lost: 'lockstep prover resume' "
                        "goes on");
    return STATUS_IO;
}

/* The next message. Once a stop is requested it is told. */
static enum status next_message(struct trainer_message *message, struct trainer *trainer,
                                struct stop *stop, struct error *error)
{
    struct pollfd watched[] = {{.fd = trainer->socket, .events = POLLIN},
                               {.fd = stop->descriptor, .events = POLLIN}};

    for (;;) {
        if (stop_requested(stop) && !trainer->told_to_stop) {
            trainer->told_to_stop = true;
            tell(trainer, TRAINER_STOP, 0);
        }
        watched[0].revents = 0;
        if (poll(watched, trainer->told_to_stop ? 1 : 2, LOOK_MS) > 0 && watched[0].revents != 0) {
            break;
        }
    }
    return trainer_wire_read(trainer->socket, message, sizeof(*message)) ? STATUS_OK
                                                                         : is_gone(trainer, error);
}

static enum status read_done(struct train_result *result, struct trainer *trainer,
                             const struct trainer_message *message, struct error *error)
{
    struct error said;

    trainer->done = true;
    if (result != NULL) {
        *result = (struct train_result){.first = message->numbers[0],
                                        .steps = message->numbers[1],
                                        .retries = message->numbers[2],
                                        .diverged = message->numbers[3] != 0};
    }
    trainer_wire_get_error(&said, message);
    if (said.status != STATUS_OK) {
        *error = said;
    }
    return said.status;
}

enum status trainer_ready(uint64_t *step_ns, struct trainer *trainer, struct stop *stop,
                          struct error *error)
{
    struct trainer_message message;

    *step_ns = 0;
    TRY(next_message(&message, trainer, stop, error));
    if (message.kind == TRAINER_DONE) {
        enum status status = read_done(NULL, trainer, &message, error);

        return status == STATUS_OK
                   ? error_set(error, STATUS_STOPPED, "stopped before its first step")
                   : status;
    }
    *step_ns = message.numbers[0];
    return STATUS_OK;
}

static void tell_final(struct trainer *trainer, const struct trainer_watch *watch)
{
    tell(trainer, TRAINER_GO, watch->final == NULL ? 0 : watch->final(watch->context));
}

/* Its texts are a stranger's: they end, and the log escapes them. */
static void end_text(struct trainer_message *message)
{
    message->text[sizeof(message->text) - 1] = '\0';
}

enum status trainer_run(struct train_result *result, bool *died, struct trainer *trainer,
                        const struct trainer_watch *watch, struct error *error)
{
    struct trainer_message message;
    enum status failed = STATUS_OK; /* of the caller's own */
    struct error none;

    *died = true;
    error_init(&none);
    tell_final(trainer, watch);
    for (;;) {
        struct bundle_step step;

        TRY(next_message(&message, trainer, watch->stop, failed == STATUS_OK ? error : &none));
        end_text(&message);
        switch (message.kind) {
        case TRAINER_STEP:
            trainer_wire_get_step(&step, &message);
            watch->progress(watch->context, &step);
            break;
        case TRAINER_SEGMENT:
            if (failed == STATUS_OK && watch->segment != NULL) {
                failed = watch->segment(watch->context, error);
            }
            if (failed != STATUS_OK) {
                tell(trainer, TRAINER_STOP, 0);
            }
            tell_final(trainer, watch);
            break;
        case TRAINER_RETRY:
            watch->retrying(watch->context, message.numbers[0], message.text);
            break;
        case TRAINER_DAMAGED:
            watch->damaged(watch->context, message.numbers[0], message.text);
            break;
        case TRAINER_DONE:
            *died = false;
            return failed == STATUS_OK ? read_done(result, trainer, &message, error) : failed;
        default:
            *died = false;
            return error_set(error, STATUS_BAD_FORMAT, "the process that trains says nonsense");
        }
    }
}
