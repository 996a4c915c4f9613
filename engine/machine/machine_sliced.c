/*
 * machine_sliced.c - see machine_sliced.h.
 *
 * The host's memory is planned as for a trace: every output has a place from the operation that
 * makes it to its last reader. Each range of operations runs on a machine opened for it alone,
 * which gets the tensors that it reads and shows those that it makes. Ranges are as long as memory
 * allows; an operation that does not fit alone is cut (slice.h), and its parts run one by one.
 */
#include "engine/machine/machine_sliced.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/plan/expand.h"
#include "engine/plan/plan.h"
#include "engine/plan/range.h"
#include "engine/plan/slice.h"

#define MIB           1048576.0
#define EXPONENT_ONES UINT32_C(0x7f800000)

enum { BLOCK_STATE, BLOCK_TEMPORARY, BLOCK_COUNT };

struct machine_sliced {
    struct machine machine;
    const struct tape *tape;        /* that runs: the machine's, or that without loops */
    struct tape *expanded;          /* NULL: the machine's has none */
    struct machine_options options; /* of the machine that computes */
    struct plan plan;
    uint8_t *blocks[BLOCK_COUNT];
    void **memory;  /* per tensor; NULL: data not bound yet */
    uint64_t limit; /* bytes that a range may take; UINT64_MAX: not known yet */
    struct machine_sliced_survey *survey; /* if set, count and run nothing */
    const struct observer *observer;
};

static struct machine_sliced *sliced_of(struct machine *machine)
{
    return (struct machine_sliced *)machine;
}

static const struct backend *computing_backend(const struct machine_sliced *sliced)
{
    return sliced->options.backend == NULL ? &backend_cpu : sliced->options.backend;
}

/* ---- one tape on a machine of its own ------------------------------------------- */

/* A small tape to run, and the host memory of its tensors. */
struct errand {
    const struct tape *tape;
    void **memory; /* per tensor of tape */
    const struct backend *backend;
    const struct observer *observer; /* NULL: read the outputs at the end */
};

static enum status give_inputs(struct machine *machine, const struct errand *errand,
                               struct error *error)
{
    const struct tape *tape = errand->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA) {
            TRY(machine->backend->bind(machine, id, errand->memory[id], error));
        } else if (tape->tensors[id].role == ROLE_INPUT) {
            TRY(machine->backend->write(machine, id, errand->memory[id], error));
        }
    }
    return STATUS_OK;
}

static enum status take_outputs(struct machine *machine, const struct errand *errand,
                                struct error *error)
{
    const struct tape *tape = errand->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_OUTPUT && errand->observer == NULL) {
            TRY(machine->backend->read(machine, id, errand->memory[id], error));
        }
    }
    return STATUS_OK;
}

static struct machine_options errand_options(const struct machine_sliced *sliced,
                                             const struct backend *backend)
{
    struct machine_options options = sliced->options;

    options.backend = backend;
    options.trace = true; /* range.h: operands cross in the canonical layout */
    options.memory_max = 0;
    options.timed = NULL;
    if (backend == &backend_cpu && computing_backend(sliced) != &backend_cpu) {
        options.isa = isa_best();
    }
    return options;
}

/* STATUS_NO_MEMORY: the machine could not be opened. */
static enum status run_errand(struct machine_sliced *sliced, const struct errand *errand,
                              struct error *error)
{
    const struct machine_options options = errand_options(sliced, errand->backend);
    struct machine *machine = NULL;
    enum status status;

    TRY(errand->backend->open(&machine, errand->tape, &options, error));
    TRY_OUT(give_inputs(machine, errand, error));
    TRY_OUT(machine->backend->step(machine, errand->observer, error));
    TRY_OUT(take_outputs(machine, errand, error));
out:
    machine->backend->close(machine);
    return status;
}

static void count_errand(struct machine_sliced *sliced, const struct errand *errand, uint64_t size)
{
    struct machine_sliced_survey *survey = sliced->survey;

    for (uint32_t id = 0; id < errand->tape->tensor_count; id++) {
        survey->moved += tensor_size(&errand->tape->tensors[id]);
    }
    if (size > survey->device_size) {
        survey->device_size = size;
    }
}

static enum status size_of(uint64_t *size, const struct machine_sliced *sliced,
                           const struct errand *errand, struct error *error)
{
    const struct machine_options options = errand_options(sliced, errand->backend);

    return errand->backend->size(size, errand->tape, &options, error);
}

/* Runs the errand, or counts it, if it fits: *fits. Too little memory is no failure. */
static enum status try_errand(bool *fits, struct machine_sliced *sliced,
                              const struct errand *errand, struct error *error)
{
    uint64_t size = 0;
    enum status status;

    *fits = false;
    TRY(size_of(&size, sliced, errand, error));
    *fits = size <= sliced->limit;
    if (!*fits) {
        return STATUS_OK;
    }
    if (sliced->survey != NULL) {
        count_errand(sliced, errand, size);
        return STATUS_OK;
    }
    status = run_errand(sliced, errand, error);
    if (status == STATUS_NO_MEMORY && sliced->options.device_memory == 0) {
        /* The device has less memory than this. */
        sliced->limit = size / 4 * 3;
        *fits = false;
        error_init(error);
        return STATUS_OK;
    }
    *fits = status == STATUS_OK;
    return status;
}

/* ---- slices ---------------------------------------------------------------------- */

static enum status run_slice(struct machine_sliced *sliced, struct slice *slice, void **memory,
                             struct error *error);

static struct errand errand_of(struct slice *slice, struct tape *tape, void **memory,
                               const struct backend *backend)
{
    *tape = (struct tape){.tensor_count = slice->op.input_count + slice->op.output_count,
                          .op_count = 1,
                          .loss = TENSOR_NONE,
                          .tensors = slice->tensors,
                          .ops = &slice->op};
    return (struct errand){.tape = tape, .memory = memory, .backend = backend};
}

static enum status run_on_cpu(struct machine_sliced *sliced, struct slice *slice, void **memory,
                              struct error *error)
{
    struct tape tape;
    const struct errand errand = errand_of(slice, &tape, memory, &backend_cpu);

    if (sliced->survey != NULL) {
        sliced->survey->left++;
        return STATUS_OK;
    }
    return run_errand(sliced, &errand, error);
}

/* The tensors of a part. A view of one run needs no copy. */
struct staging {
    void *memory[SLICE_TENSORS_MAX];
    void *copies[SLICE_TENSORS_MAX]; /* allocated, or NULL */
};

static enum status stage_part(struct staging *staging, const struct slice *part,
                              const struct slice_view *views, void *const *memory,
                              struct error *error)
{
    memset(staging, 0, sizeof(*staging));
    for (uint32_t i = 0; i < part->op.input_count + part->op.output_count; i++) {
        const struct tensor *tensor = &part->tensors[i];
        const uint64_t element = dtype_size(tensor->dtype);

        if (views[i].count == 1) {
            staging->memory[i] = (uint8_t *)memory[i] + views[i].first * element;
            continue;
        }
        staging->copies[i] = malloc(tensor->count * element);
        staging->memory[i] = staging->copies[i];
        if (staging->copies[i] == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for a slice of %.1f MiB",
                             (double)(tensor->count * element) / MIB);
        }
        if (i < part->op.input_count) {
            slice_gather(staging->copies[i], memory[i], &views[i], element);
        }
    }
    return STATUS_OK;
}

static void unstage_part(struct staging *staging, const struct slice *part,
                         const struct slice_view *views, void *const *memory, bool made)
{
    for (uint32_t i = 0; i < part->op.input_count + part->op.output_count; i++) {
        if (made && i >= part->op.input_count && staging->copies[i] != NULL) {
            slice_scatter(memory[i], staging->copies[i], &views[i],
                          dtype_size(part->tensors[i].dtype));
        }
        free(staging->copies[i]);
    }
}

static enum status run_part(struct machine_sliced *sliced, struct slice *part,
                            const struct slice_view *views, void *const *memory,
                            struct error *error)
{
    struct staging staging;
    enum status status;

    if (sliced->survey != NULL) {
        return run_slice(sliced, part, NULL, error);
    }
    TRY_OUT(stage_part(&staging, part, views, memory, error));
    TRY_OUT(run_slice(sliced, part, staging.memory, error));
out:
    unstage_part(&staging, part, views, memory, status == STATUS_OK);
    return status;
}

/* Do parts of that size need less memory? Some of a machine's memory does not depend on the cut. */
static enum status worth_cutting(bool *worth, const struct machine_sliced *sliced,
                                 struct slice *whole, uint32_t axis, uint64_t units,
                                 struct error *error)
{
    struct slice_view views[SLICE_TENSORS_MAX];
    struct slice part;
    struct tape tape;
    struct errand errand = errand_of(whole, &tape, NULL, computing_backend(sliced));
    uint64_t before = 0;
    uint64_t after = 0;

    *worth = false;
    TRY(size_of(&before, sliced, &errand, error));
    slice_take(&part, views, whole, axis, 0, units);
    errand = errand_of(&part, &tape, NULL, computing_backend(sliced));
    TRY(size_of(&after, sliced, &errand, error));
    *worth = after <= sliced->limit || after < before / 8 * 7;
    return STATUS_OK;
}

static enum status cut_slice(struct machine_sliced *sliced, const struct slice *whole,
                             void *const *memory, uint32_t axis, uint64_t units,
                             struct error *error)
{
    uint64_t lengths[SLICE_AXES_MAX];

    (void)slice_axes(lengths, whole);
    for (uint64_t first = 0; first < lengths[axis]; first += units) {
        struct slice_view views[SLICE_TENSORS_MAX];
        struct slice part;

        slice_take(&part, views, whole, axis, first,
                   lengths[axis] - first < units ? lengths[axis] : first + units);
        TRY(run_part(sliced, &part, views, memory, error));
    }
    return STATUS_OK;
}

static enum status run_slice(struct machine_sliced *sliced, struct slice *slice, void **memory,
                             struct error *error)
{
    struct tape tape;
    const struct errand errand = errand_of(slice, &tape, memory, computing_backend(sliced));
    uint32_t axis = 0;
    uint64_t units = 0;
    bool fits;
    bool worth = false;

    TRY(try_errand(&fits, sliced, &errand, error));
    if (fits) {
        if (sliced->survey != NULL) {
            sliced->survey->slices++;
        }
        return STATUS_OK;
    }
    /* Half: a machine also needs scratch and tables. */
    if (slice_choose(&axis, &units, slice, sliced->limit / 2)) {
        TRY(worth_cutting(&worth, sliced, slice, axis, units, error));
    }
    return worth ? cut_slice(sliced, slice, memory, axis, units, error)
                 : run_on_cpu(sliced, slice, memory, error);
}

static enum status show_outputs(const struct machine_sliced *sliced, uint32_t at,
                                struct error *error)
{
    const struct tape *tape = sliced->tape;
    const struct op_turn maker = {at, 0};
    const struct op *op = &tape->ops[at];

    for (uint32_t i = 0; sliced->observer != NULL && i < op->output_count; i++) {
        const uint32_t id = op->outputs[i];

        if (!observer_wants(sliced->observer, maker, i)) {
            continue;
        }
        TRY(sliced->observer->made(sliced->observer->context, maker, i, sliced->memory[id],
                                   tensor_size(&tape->tensors[id]), error));
    }
    return STATUS_OK;
}

/* Runs one operation that does not fit alone. */
static enum status run_cut(struct machine_sliced *sliced, uint32_t at, struct error *error)
{
    const struct op *op = &sliced->tape->ops[at];
    void *memory[SLICE_TENSORS_MAX] = {NULL};
    struct slice slice;

    for (uint32_t i = 0; i < op->input_count; i++) {
        memory[i] = sliced->memory[op->inputs[i]];
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        memory[op->input_count + i] = sliced->memory[op->outputs[i]];
    }
    if (sliced->survey != NULL) {
        sliced->survey->cut++;
    }
    slice_whole(&slice, sliced->tape, at);
    TRY(run_slice(sliced, &slice, memory, error));
    return sliced->survey == NULL ? show_outputs(sliced, at, error) : STATUS_OK;
}

/* ---- ranges ----------------------------------------------------------------------- */

struct range_observer {
    struct machine_sliced *sliced;
    uint32_t first;
};

/* Stores an output of a range, and shows it to the observer. */
static enum status pass_on(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                           uint64_t size, struct error *error)
{
    const struct range_observer *passing = context;
    const struct machine_sliced *sliced = passing->sliced;
    const struct op_turn own = {passing->first + maker.op, 0};
    const struct observer *observer = sliced->observer;

    memcpy(sliced->memory[sliced->tape->ops[own.op].outputs[output]], bytes, size);
    return observer == NULL || !observer_wants(observer, own, output)
               ? STATUS_OK
               : observer->made(observer->context, own, output, bytes, size, error);
}

static enum status try_range(bool *fits, struct machine_sliced *sliced, uint32_t first,
                             uint32_t last, struct error *error)
{
    struct range_observer passing = {sliced, first};
    const struct observer observer = {.made = pass_on,
                                      .context = &passing}; /* the host keeps all */
    struct range range;
    struct errand errand = {.backend = computing_backend(sliced), .observer = &observer};
    enum status status;

    TRY(range_build(&range, sliced->tape, first, last, error));
    errand.tape = range.tape;
    errand.memory = calloc((size_t)range.tape->tensor_count + 1, sizeof(*errand.memory));
    if (errand.memory == NULL) {
        range_release(&range);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a range of operations");
    }
    for (uint32_t i = 0; i < range.given_count; i++) {
        errand.memory[range.ids[range.given[i]]] = sliced->memory[range.given[i]];
    }
    status = try_errand(fits, sliced, &errand, error);
    free(errand.memory);
    range_release(&range);
    return status;
}

/* Runs the longest range from *first on that fits and ends at `end` at most, or the slices of one
 * operation, and advances *first. */
static enum status run_some(struct machine_sliced *sliced, uint32_t *first, uint32_t end,
                            struct error *error)
{
    const uint32_t fits_to = range_fit(sliced->tape, *first, sliced->limit);
    uint32_t last = fits_to < end ? fits_to : end;

    for (;;) {
        bool fits;

        TRY(try_range(&fits, sliced, *first, last, error));
        if (fits) {
            if (sliced->survey != NULL) {
                sliced->survey->ranges++;
            }
            *first = last;
            return STATUS_OK;
        }
        if (last == *first + 1) {
            TRY(run_cut(sliced, *first, error));
            *first = last;
            return STATUS_OK;
        }
        last = *first + (last - *first) / 2;
    }
}

/* ---- memory ------------------------------------------------------------------------ */

static enum status plan_host(struct machine_sliced *sliced, struct error *error)
{
    const struct plan_hooks hooks = {.keep_all = true};

    TRY(expand_build(&sliced->expanded, sliced->tape, error));
    sliced->tape = sliced->expanded != NULL ? sliced->expanded : sliced->tape;
    return plan_build(&sliced->plan, sliced->tape, &hooks, error);
}

static enum status allocate_blocks(struct machine_sliced *sliced, uint64_t memory_max,
                                   struct error *error)
{
    const struct tape *tape = sliced->tape;
    const uint64_t sizes[BLOCK_COUNT] = {sliced->plan.state_size, sliced->plan.temporary_size};
    const uint64_t total = sizes[0] + sizes[1];

    if (memory_max != 0 && total > memory_max) {
        return error_set(error, STATUS_NO_MEMORY,
                         "the tape needs %.1f MiB of the host's memory, and %.1f MiB are allowed",
                         (double)total / MIB, (double)memory_max / MIB);
    }
    sliced->memory = calloc((size_t)tape->tensor_count + 1, sizeof(*sliced->memory));
    for (int block = 0; block < BLOCK_COUNT; block++) {
        sliced->blocks[block] = calloc(sizes[block] + 1, 1);
        if (sliced->blocks[block] == NULL || sliced->memory == NULL) {
            return error_set(error, STATUS_NO_MEMORY,
                             "the tape needs %.1f MiB of the host's memory", (double)total / MIB);
        }
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (sliced->plan.places[id] != PLAN_ABSENT) {
            const int block = sliced->plan.in_state[id] ? BLOCK_STATE : BLOCK_TEMPORARY;

            sliced->memory[id] = sliced->blocks[block] + sliced->plan.places[id];
        }
    }
    return STATUS_OK;
}

static void sliced_close(struct machine *machine)
{
    struct machine_sliced *sliced = sliced_of(machine);

    if (sliced == NULL) {
        return;
    }
    for (int block = 0; block < BLOCK_COUNT; block++) {
        free(sliced->blocks[block]);
    }
    free(sliced->memory);
    plan_release(&sliced->plan);
    tape_free(sliced->expanded);
    tape_free(machine->rewrite);
    free(sliced);
}

/* ---- the machine ---------------------------------------------------------------------- */

static const struct backend backend_sliced;

static void prepare_machine(struct machine_sliced *sliced, const struct tape *tape,
                            const struct machine_options *options)
{
    memset(sliced, 0, sizeof(*sliced));
    sliced->machine = (struct machine){.backend = &backend_sliced, .tape = tape};
    sliced->tape = tape;
    sliced->options = *options;
    sliced->limit = options->device_memory == 0 ? UINT64_MAX : options->device_memory;
}

enum status machine_sliced_open(struct machine **machine, const struct tape *tape,
                                const struct machine_options *options, struct error *error)
{
    struct machine_sliced *sliced = malloc(sizeof(*sliced));
    enum status status;

    if (sliced == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a machine");
    }
    prepare_machine(sliced, tape, options);
    TRY_OUT(plan_host(sliced, error));
    TRY_OUT(allocate_blocks(sliced, options->memory_max, error));
    *machine = &sliced->machine;
    return STATUS_OK;
out:
    sliced_close(&sliced->machine);
    return status;
}

static enum status sliced_open(struct machine **machine, const struct tape *tape,
                               const struct machine_options *options, struct error *error)
{
    return machine_sliced_open(machine, tape, options, error);
}

static enum status sliced_size(uint64_t *size, const struct tape *tape,
                               const struct machine_options *options, struct error *error)
{
    struct machine_sliced_survey survey;
    enum status status = machine_sliced_survey(&survey, tape, options, error);

    *size = survey.host_size;
    return status;
}

static enum status sliced_write(struct machine *machine, uint32_t tensor, const void *bytes,
                                struct error *error)
{
    struct machine_sliced *sliced = sliced_of(machine);

    if (tensor >= machine->tape->tensor_count || !sliced->plan.in_state[tensor]) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be written", tensor);
    }
    memcpy(sliced->memory[tensor], bytes, tensor_size(&machine->tape->tensors[tensor]));
    return STATUS_OK;
}

static const void *sliced_peek(struct machine *machine, uint32_t tensor)
{
    const struct tape *tape = machine->tape;

    if (tensor >= tape->tensor_count || tape->tensors[tensor].role == ROLE_DATA ||
        (tape->tensors[tensor].role == ROLE_TEMPORARY && tensor != tape->loss)) {
        return NULL;
    }
    return sliced_of(machine)
        ->memory[tensor == tape->loss ? sliced_of(machine)->tape->loss : tensor];
}

static enum status sliced_read(struct machine *machine, uint32_t tensor, void *bytes,
                               struct error *error)
{
    const void *memory = sliced_peek(machine, tensor);

    if (memory == NULL) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be read", tensor);
    }
    memcpy(bytes, memory, tensor_size(&machine->tape->tensors[tensor]));
    return STATUS_OK;
}

static enum status sliced_bind(struct machine *machine, uint32_t tensor, const void *bytes,
                               struct error *error)
{
    if (tensor >= machine->tape->tensor_count || machine->tape->tensors[tensor].role != ROLE_DATA) {
        return error_set(error, STATUS_USAGE, "tensor %u is not data", tensor);
    }
    sliced_of(machine)->memory[tensor] = (void *)(uintptr_t)bytes;
    return STATUS_OK;
}

/* Operations of the tape that runs. */
static enum status run_ops(struct machine_sliced *sliced, uint32_t first, uint32_t last,
                           const struct observer *observer, struct error *error)
{
    const struct tape *tape = sliced->tape;
    enum status status = STATUS_OK;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA && sliced->memory[id] == NULL) {
            return error_set(error, STATUS_USAGE, "the data '%s' is not there",
                             tape->tensors[id].name);
        }
    }
    sliced->observer = observer;
    for (uint32_t at = first; at < last && status == STATUS_OK;) {
        status = run_some(sliced, &at, last, error);
    }
    sliced->observer = NULL;
    for (uint32_t i = 0; last == tape->op_count && i < tape->state_count && status == STATUS_OK;
         i++) {
        if (sliced->plan.copied[i]) {
            memcpy(sliced->memory[tape->states[i].before], sliced->memory[tape->states[i].after],
                   tensor_size(&tape->tensors[tape->states[i].before]));
        }
    }
    return status;
}

static enum status sliced_step(struct machine *machine, const struct observer *observer,
                               struct error *error)
{
    struct machine_sliced *sliced = sliced_of(machine);
    const struct expand_observer turns = {observer, sliced->expanded};
    const struct observer of_turns = expand_observer(&turns);

    return run_ops(sliced, 0, sliced->tape->op_count,
                   observer != NULL && sliced->expanded != NULL ? &of_turns : observer, error);
}

static enum status sliced_run(struct machine *machine, uint32_t first, uint32_t last,
                              const struct observer *observer, struct error *error)
{
    if (first == 0 && last == machine->tape->op_count) {
        return sliced_step(machine, observer, error);
    }
    assert(sliced_of(machine)->expanded ==
           NULL); /* a step in parts has no loops: machine_split.h */
    return run_ops(sliced_of(machine), first, last, observer, error);
}

static enum status sliced_diverged(struct machine *machine, bool *diverged, struct error *error)
{
    const struct tape *tape = machine->tape;

    (void)error;
    *diverged = false;
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint32_t id = tape->states[i].before;
        const uint32_t *bits = sliced_of(machine)->memory[id];

        for (uint64_t j = 0; tape->tensors[id].dtype == DTYPE_F32 && j < tape->tensors[id].count;
             j++) {
            if ((bits[j] & EXPONENT_ONES) == EXPONENT_ONES) {
                *diverged = true;
            }
        }
    }
    return STATUS_OK;
}

static const struct backend backend_sliced = {
    .name = "sliced",
    .open = sliced_open,
    .size = sliced_size,
    .close = sliced_close,
    .write = sliced_write,
    .read = sliced_read,
    .bind = sliced_bind,
    .step = sliced_step,
    .run = sliced_run,
    .peek = sliced_peek,
    .diverged = sliced_diverged,
};

enum status machine_fitting_open(struct machine **machine, const struct tape *tape,
                                 const struct machine_options *options, struct error *error)
{
    const struct backend *backend = options->backend == NULL ? &backend_cpu : options->backend;
    struct machine_options whole = *options;
    enum status status;

    if (options->device_memory != 0 && backend != &backend_cpu) {
        whole.memory_max = options->device_memory;
    }
    status = backend->open(machine, tape, &whole, error);
    if (status == STATUS_NO_MEMORY && backend != &backend_cpu &&
        (options->device_memory != 0 || options->trace)) {
        error_init(error);
        status = machine_sliced_open(machine, tape, options, error);
    }
    return status;
}

/* ---- counting -------------------------------------------------------------------------- */

enum status machine_sliced_survey(struct machine_sliced_survey *survey, const struct tape *tape,
                                  const struct machine_options *options, struct error *error)
{
    struct machine_sliced sliced;
    enum status status;

    memset(survey, 0, sizeof(*survey));
    prepare_machine(&sliced, tape, options);
    sliced.survey = survey;
    TRY_OUT(plan_host(&sliced, error));
    survey->host_size = sliced.plan.state_size + sliced.plan.temporary_size;
    sliced.memory = calloc((size_t)sliced.tape->tensor_count + 1, sizeof(*sliced.memory));
    if (sliced.memory == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for %u tensors", tape->tensor_count);
        goto out;
    }
    for (uint32_t at = 0; at < sliced.tape->op_count;) {
        TRY_OUT(run_some(&sliced, &at, sliced.tape->op_count, error));
    }
out:
    free(sliced.memory);
    tape_free(sliced.expanded);
    plan_release(&sliced.plan);
    return status;
}
