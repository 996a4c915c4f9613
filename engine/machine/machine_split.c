/* machine_split.c - see machine_split.h. */
#include "engine/machine/machine_split.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/machine/machine_sliced.h"
#include "engine/plan/division.h"
#include "engine/plan/expand.h"

_Static_assert(MACHINE_DEVICES_MAX <= DIVISION_PARTS_MAX, "every device can have a part");

struct machine_split {
    struct machine machine;
    struct tape *expanded; /* without loops; NULL: the tape has none */
    struct division division;
    struct machine *parts[DIVISION_PARTS_MAX];
    uint8_t *bounce; /* host memory for the largest tensor that moves */
};

static const struct backend backend_split;
static const struct backend backend_split_hashing;

static struct machine_split *split_of(struct machine *machine)
{
    return (struct machine_split *)machine;
}

/* ---- opening ------------------------------------------------------------------ */

static void split_close(struct machine *machine)
{
    struct machine_split *split = split_of(machine);

    if (split == NULL) {
        return;
    }
    for (uint32_t part = 0; part < split->division.part_count; part++) {
        if (split->parts[part] != NULL) {
            split->parts[part]->backend->close(split->parts[part]);
        }
    }
    division_release(&split->division);
    free(split->bounce);
    tape_free(split->expanded);
    tape_free(machine->rewrite);
    free(split);
}

static struct machine_options part_options(const struct machine_options *options, uint32_t part)
{
    struct machine_options own = *options;

    own.device = options->devices[part];
    own.device_count = 0;
    own.in_legs = true;
    own.timed = NULL;
    return own;
}

/* The tape that is divided. */
static const struct tape *divided_tape(const struct machine_split *split)
{
    return split->expanded != NULL ? split->expanded : split->machine.tape;
}

static enum status open_parts(struct machine_split *split, const struct machine_options *options,
                              struct error *error)
{
    const struct tape *tape = divided_tape(split);
    uint64_t largest = 1;

    for (uint32_t i = 0; i < split->division.move_count; i++) {
        const uint64_t size = tensor_size(&tape->tensors[split->division.moves[i].tensor]);

        largest = size > largest ? size : largest;
    }
    split->bounce = malloc(largest);
    if (split->bounce == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to move %llu bytes",
                         (unsigned long long)largest);
    }
    for (uint32_t part = 0; part < split->division.part_count; part++) {
        const struct machine_options own = part_options(options, part);

        TRY(machine_fitting_open(&split->parts[part], split->division.parts[part].tape, &own,
                                 error));
        if (split->parts[part]->backend->leaves_roots == NULL) {
            split->machine.backend = &backend_split; /* the caller hashes */
        }
    }
    return STATUS_OK;
}

enum status machine_split_open(struct machine **machine, const struct tape *tape,
                               const struct machine_options *options, struct error *error)
{
    const struct backend *backend = options->backend == NULL ? &backend_cpu : options->backend;
    struct machine_split *split;
    enum status status;

    if (backend->run == NULL || options->device_count == 0) {
        return error_set(error, STATUS_USAGE, "the backend '%s' cannot be split", backend->name);
    }
    split = calloc(1, sizeof(*split));
    if (split == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a machine");
    }
    split->machine.tape = tape;
    split->machine.backend = &backend_split_hashing;
    TRY_OUT(expand_build(&split->expanded, tape, error));
    TRY_OUT(division_build(&split->division, divided_tape(split), options->device_count,
                           options->trace, error));
    TRY_OUT(open_parts(split, options, error));
    *machine = &split->machine;
    return STATUS_OK;
out:
    split_close(&split->machine);
    return status;
}

static enum status split_open(struct machine **machine, const struct tape *tape,
                              const struct machine_options *options, struct error *error)
{
    return machine_split_open(machine, tape, options, error);
}

enum status machine_split_cost(struct machine_split_cost *cost, const struct tape *tape,
                               const struct machine_options *options, struct error *error)
{
    const struct backend *backend = options->backend == NULL ? &backend_cpu : options->backend;
    struct division division = {.part_count = 0};
    struct tape *expanded = NULL;
    enum status status;

    *cost = (struct machine_split_cost){0};
    TRY(expand_build(&expanded, tape, error));
    tape = expanded != NULL ? expanded : tape;
    TRY_OUT(division_build(&division, tape, options->device_count, options->trace, error));
    for (uint32_t part = 0; part < division.part_count; part++) {
        const struct machine_options own = part_options(options, part);

        TRY_OUT(backend->size(&cost->memory[part], division.parts[part].tape, &own, error));
    }
    for (uint32_t i = 0; i < division.move_count; i++) {
        cost->moved += tensor_size(&tape->tensors[division.moves[i].tensor]);
    }
    cost->moves = division.move_count;
    status = STATUS_OK;
out:
    division_release(&division);
    tape_free(expanded);
    return status;
}

/* The sum over all parts. */
static enum status split_size(uint64_t *size, const struct tape *tape,
                              const struct machine_options *options, struct error *error)
{
    struct machine_split_cost cost;

    *size = 0;
    TRY(machine_split_cost(&cost, tape, options, error));
    for (uint32_t part = 0; part < options->device_count; part++) {
        *size += cost.memory[part];
    }
    return STATUS_OK;
}

/* ---- a step --------------------------------------------------------------------- */

static enum status move_tensors(struct machine_split *split, uint32_t first, uint32_t count,
                                struct error *error)
{
    const struct division *division = &split->division;

    for (uint32_t i = first; i < first + count; i++) {
        const struct division_move *moved = &division->moves[i];
        struct machine *from = split->parts[moved->from];
        struct machine *to = split->parts[moved->to];
        const uint32_t from_id = division->parts[moved->from].ids[moved->tensor];
        const uint32_t to_id = division->parts[moved->to].ids[moved->tensor];

        if (to->backend->take != NULL && to->backend == from->backend) {
            TRY(to->backend->take(to, to_id, from, from_id, error));
        } else {
            TRY(from->backend->read(from, from_id, split->bounce, error));
            TRY(to->backend->write(to, to_id, split->bounce, error));
        }
    }
    return STATUS_OK;
}

/* The observer of one part, which shows its outputs to the observer of the whole. */
struct part_observer {
    const struct observer *observer;
    const struct division_part *part;
};

static struct op_turn of_whole(const struct part_observer *showing, struct op_turn maker)
{
    return (struct op_turn){showing->part->places[maker.op], maker.turn};
}

static enum status pass_on(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                           uint64_t size, struct error *error)
{
    const struct part_observer *showing = context;

    if (!showing->part->shown[maker.op]) {
        return STATUS_OK; /* another part shows it */
    }
    return showing->observer->made(showing->observer->context, of_whole(showing, maker), output,
                                   bytes, size, error);
}

static bool wants_output(const void *context, struct op_turn maker, uint32_t output)
{
    const struct part_observer *showing = context;

    return showing->part->shown[maker.op] &&
           observer_wants(showing->observer, of_whole(showing, maker), output);
}

static enum status split_step(struct machine *machine, const struct observer *observer,
                              struct error *error)
{
    struct machine_split *split = split_of(machine);
    const struct division *division = &split->division;
    const struct expand_observer turns = {observer, split->expanded};
    const struct observer of_turns = expand_observer(&turns);

    observer = observer != NULL && split->expanded != NULL ? &of_turns : observer;
    TRY(move_tensors(split, 0, division->first_moves, error));
    for (uint32_t i = 0; i < division->leg_count; i++) {
        const struct division_leg *leg = &division->legs[i];
        struct machine *part = split->parts[leg->part];
        struct part_observer showing = {observer, &division->parts[leg->part]};
        const struct observer own = {.made = pass_on, .context = &showing, .wants = wants_output};

        TRY(move_tensors(split, leg->move_first, leg->move_count, error));
        TRY(part->backend->run(part, leg->first, leg->last, observer == NULL ? NULL : &own, error));
    }
    return STATUS_OK;
}

/* ---- tensors ------------------------------------------------------------------------ */

/* Writes or binds a tensor: a state at its home, another in every part that has it. */
static enum status give_tensor(struct machine *machine, uint32_t tensor, const void *bytes,
                               bool bind, struct error *error)
{
    struct machine_split *split = split_of(machine);
    const struct division *division = &split->division;

    if (tensor >= machine->tape->tensor_count ||
        role_is_made(machine->tape->tensors[tensor].role) ||
        (machine->tape->tensors[tensor].role == ROLE_DATA) != bind) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be %s", tensor,
                         bind ? "bound" : "written");
    }
    for (uint32_t part = 0; part < division->part_count; part++) {
        struct machine *own = split->parts[part];
        const uint32_t id = division->parts[part].ids[tensor];
        const bool wanted =
            machine->tape->tensors[tensor].role != ROLE_STATE || part == division->homes[tensor];

        if (id != TENSOR_NONE && wanted) {
            TRY((bind ? own->backend->bind : own->backend->write)(own, id, bytes, error));
        }
    }
    return STATUS_OK;
}

static enum status split_write(struct machine *machine, uint32_t tensor, const void *bytes,
                               struct error *error)
{
    return give_tensor(machine, tensor, bytes, false, error);
}

static enum status split_bind(struct machine *machine, uint32_t tensor, const void *bytes,
                              struct error *error)
{
    return give_tensor(machine, tensor, bytes, true, error);
}

/* The part where the tensor is at home, and its id there. */
static struct machine *home_of(uint32_t *id, struct machine *machine, uint32_t tensor)
{
    struct machine_split *split = split_of(machine);
    const uint32_t own = tensor == machine->tape->loss ? divided_tape(split)->loss : tensor;
    const uint32_t part = split->division.homes[own];

    *id = split->division.parts[part].ids[own];
    return split->parts[part];
}

/* Parts have outputs that are temporaries of the whole tape; those cannot be read. */
static bool can_be_read(const struct machine *machine, uint32_t tensor)
{
    const struct tape *tape = machine->tape;

    return tensor < tape->tensor_count &&
           (tape->tensors[tensor].role != ROLE_TEMPORARY || tensor == tape->loss);
}

static enum status split_read(struct machine *machine, uint32_t tensor, void *bytes,
                              struct error *error)
{
    uint32_t id;

    if (!can_be_read(machine, tensor)) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be read", tensor);
    }
    struct machine *home = home_of(&id, machine, tensor);

    return home->backend->read(home, id, bytes, error);
}

static const void *split_peek(struct machine *machine, uint32_t tensor)
{
    uint32_t id;

    if (!can_be_read(machine, tensor)) {
        return NULL;
    }
    struct machine *home = home_of(&id, machine, tensor);

    return home->backend->peek(home, id);
}

static enum status split_diverged(struct machine *machine, bool *diverged, struct error *error)
{
    struct machine_split *split = split_of(machine);

    *diverged = false;
    for (uint32_t part = 0; part < split->division.part_count; part++) {
        struct machine *own = split->parts[part];
        bool here = false;

        TRY(own->backend->diverged(own, &here, error));
        *diverged = *diverged || here;
    }
    return STATUS_OK;
}

static enum status split_roots(struct machine *machine, struct digest *roots,
                               const uint32_t *tensors, uint32_t count, struct error *error)
{
    struct machine_split *split = split_of(machine);
    uint32_t *ids = malloc(((size_t)count + 1) * sizeof(*ids));
    struct digest *own = malloc(((size_t)count + 1) * sizeof(*own));
    enum status status = STATUS_OK;

    if (ids == NULL || own == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory to hash %u tensors", count);
        goto out;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!can_be_read(machine, tensors[i])) {
            status = error_set(error, STATUS_USAGE, "tensor %u cannot be read", tensors[i]);
            goto out;
        }
    }
    /* A device hashes what it has at home, all at once: no tensor is moved to be hashed. */
    for (uint32_t part = 0; part < split->division.part_count; part++) {
        uint32_t some = 0;

        for (uint32_t i = 0; i < count; i++) {
            if (split->division.homes[tensors[i]] == part) {
                ids[some++] = split->division.parts[part].ids[tensors[i]];
            }
        }
        if (some == 0) {
            continue;
        }
        TRY_OUT(
            split->parts[part]->backend->leaves_roots(split->parts[part], own, ids, some, error));
        /* The roots of this part, back in the order in which they were asked for. */
        some = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (split->division.homes[tensors[i]] == part) {
                roots[i] = own[some++];
            }
        }
    }
out:
    free(ids);
    free(own);
    return status;
}

#define SPLIT_CALLS                                                                                \
    .name = "split", .open = split_open, .size = split_size, .close = split_close,                 \
    .write = split_write, .read = split_read, .bind = split_bind, .step = split_step,              \
    .peek = split_peek, .diverged = split_diverged

static const struct backend backend_split = {SPLIT_CALLS};
static const struct backend backend_split_hashing = {SPLIT_CALLS, .leaves_roots = split_roots};
