/* rank_step.c - see rank_step.h. */
#include "engine/ranks/rank_step.h"

#include <omp.h>
#include <stdlib.h>

/* ---- opening ----------------------------------------------------------------------------- */

static enum status build_plan(struct rank_step *step, uint32_t ranks, struct error *error)
{
    struct tensor *sums = NULL;
    uint32_t count = 0;
    enum status status;

    TRY(rank_tape_check(step->whole, error));
    TRY(ranks_plan_build(&step->plan, ranks, rank_tape_groups(step->whole), error));
    TRY_OUT(rank_tape_sums(&sums, &count, step->whole, error));
    status = ranks_shards_build(&step->shards, sums, count, ranks, error);
out:
    free(sums);
    return status;
}

/* The caller reads the sums of the first leg and writes those of the second. */
static struct machine_options leg_options(const struct machine_options *options)
{
    struct machine_options own = *options;

    own.in_legs = true;
    return own;
}

static enum status open_sums(struct rank_step *step, const struct machine_options *options,
                             struct error *error)
{
    const bool on_cpu = options->backend == NULL || options->backend == &backend_cpu;
    const int threads = options->thread_count > 0 ? options->thread_count : omp_get_max_threads();
    uint64_t largest = 0;

    for (uint32_t k = 0; k < step->own.sum_count; k++) {
        const uint64_t count = step->own.tape->tensors[step->own.sums[k]].count;

        largest = count > largest ? count : largest;
    }
    step->bounce = malloc((largest + 1) * sizeof(*step->bounce));
    if (step->bounce == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a sum of %llu elements",
                         (unsigned long long)largest);
    }
    return rank_sums_open(&step->sums, &step->plan, &step->shards, step->link->rank,
                          on_cpu ? options->isa : isa_best(), threads, error);
}

static enum status open_machine(struct rank_step *step, const struct machine_options *options,
                                struct error *error)
{
    const struct machine_options own = leg_options(options);

    TRY(machine_open(&step->machine, step->own.tape, &own, error));
    if (step->machine->backend->run == NULL) {
        return error_set(error, STATUS_REFUSED,
                         "ranks take a machine that runs parts of a step, and '%s' does not: leave "
                         "--device-memory out and name one device a rank",
                         step->machine->backend->name);
    }
    return rank_tape_cut(&step->cut, &step->own, step->machine->tape, error);
}

enum status rank_step_open(struct rank_step *step, const struct tape *whole,
                           const struct machine_options *options, const struct ranks_link *link,
                           struct error *error)
{
    enum status status;

    *step = (struct rank_step){.whole = whole, .link = link};
    TRY_OUT(build_plan(step, link->rank_count, error));
    TRY_OUT(rank_tape_build(&step->own, whole, &step->plan, link->rank, error));
    TRY_OUT(open_machine(step, options, error));
    TRY_OUT(open_sums(step, options, error));
out:
    if (status != STATUS_OK) {
        rank_step_close(step);
    }
    return status;
}

void rank_step_close(struct rank_step *step)
{
    if (step->machine != NULL) {
        step->machine->backend->close(step->machine);
    }
    rank_sums_close(&step->sums);
    rank_tape_release(&step->own);
    ranks_shards_release(&step->shards);
    ranks_plan_release(&step->plan);
    free(step->bounce);
    *step = (struct rank_step){.machine = NULL};
}

enum status rank_step_size(uint64_t *size, const struct tape *whole,
                           const struct machine_options *options, uint32_t ranks,
                           struct error *error)
{
    const struct machine_options own = leg_options(options);
    struct rank_step step = {.whole = whole};
    enum status status;

    TRY_OUT(build_plan(&step, ranks, error));
    TRY_OUT(rank_tape_build(&step.own, whole, &step.plan, 0, error));
    TRY_OUT(machine_size(size, step.own.tape, &own, error));
    for (uint32_t k = 0; k < step.own.sum_count; k++) {
        *size +=
            (step.own.subtree_count + 2) * tensor_size(&step.own.tape->tensors[step.own.sums[k]]);
    }
out:
    rank_step_close(&step);
    return status;
}

enum status rank_step_wire(struct rank_wire *wire, const struct tape *whole, uint32_t ranks,
                           struct error *error)
{
    struct rank_step step = {.whole = whole};
    enum status status = build_plan(&step, ranks, error);

    *wire =
        (struct rank_wire){.groups = step.plan.group_count, .subtrees = step.plan.subtree_count};
    for (uint32_t rank = 0; status == STATUS_OK && rank < ranks; rank++) {
        wire->elements += ranks_shard_count(&step.shards, rank);
    }
    wire->bytes = status == STATUS_OK ? ranks_wire_bytes(&step.plan, &step.shards) : 0;
    rank_step_close(&step);
    return status;
}

/* ---- a step ------------------------------------------------------------------------------ */

static enum status write_counter(struct rank_step *step, uint32_t input, uint32_t state,
                                 uint32_t plus, struct error *error)
{
    const struct backend *backend = step->machine->backend;
    uint32_t value = 0;

    if (input == TENSOR_NONE) {
        return STATUS_OK;
    }
    TRY(backend->read(step->machine, state, &value, error));
    value += plus; /* counters wrap: docs/ARITHMETIC.md, step-next */
    return backend->write(step->machine, input, &value, error);
}

static enum status write_counters(struct rank_step *step, struct error *error)
{
    for (uint32_t i = 0; i < step->own.counter_count; i++) {
        const struct rank_counter *counter = &step->own.counters[i];

        TRY(write_counter(step, counter->begin, counter->state, counter->begin_plus, error));
        TRY(write_counter(step, counter->end, counter->state, counter->end_plus, error));
    }
    return STATUS_OK;
}

static enum status put_parts(struct rank_step *step, struct error *error)
{
    const struct backend *backend = step->machine->backend;

    for (uint32_t i = 0; i < step->own.subtree_count * step->own.sum_count; i++) {
        const uint32_t id = step->own.outputs[i];
        const float *elements = backend->peek(step->machine, id);

        if (elements == NULL) {
            TRY(backend->read(step->machine, id, step->bounce, error));
            elements = step->bounce;
        }
        rank_sums_put(&step->sums, i / step->own.sum_count, i % step->own.sum_count, elements);
    }
    return STATUS_OK;
}

static enum status take_sums(struct rank_step *step, struct error *error)
{
    for (uint32_t k = 0; k < step->own.sum_count; k++) {
        rank_sums_get(step->bounce, &step->sums, k);
        TRY(step->machine->backend->write(step->machine, step->own.sums[k], step->bounce, error));
    }
    return STATUS_OK;
}

enum status rank_step_first_leg(struct rank_step *step, struct error *error)
{
    TRY(write_counters(step, error));
    return step->machine->backend->run(step->machine, 0, step->cut, NULL, error);
}

enum status rank_step_run(struct rank_step *step, struct error *error)
{
    const struct backend *backend = step->machine->backend;

    TRY(rank_step_first_leg(step, error));
    TRY(put_parts(step, error));
    TRY(rank_sums_join(&step->sums, step->link, error));
    TRY(take_sums(step, error));
    return backend->run(step->machine, step->cut, step->machine->tape->op_count, NULL, error);
}

/* ---- a part of a step once more ---------------------------------------------------------- */

/* As many ranks as the tree is wide where the subtree stands: one of them has it alone. */
static enum status build_again(struct rank_step *again, const struct rank_step *step,
                               uint32_t subtree, struct error *error)
{
    const uint32_t node = step->plan.subtrees[subtree].node;
    uint32_t wide = 1;

    while (2 * wide <= node) {
        wide *= 2;
    }
    TRY(ranks_plan_build(&again->plan, wide, step->plan.group_count, error));
    return rank_tape_build(&again->own, step->whole, &again->plan, node - wide, error);
}

static enum status copy_tensor(struct rank_step *again, const struct rank_step *step,
                               const struct tensor *tensor, uint32_t to, uint32_t from,
                               struct error *error)
{
    const struct backend *backend = step->machine->backend;
    const void *bytes = backend->peek(step->machine, from);
    void *copy;
    enum status status;

    if (backend->take != NULL) {
        return backend->take(again->machine, to, step->machine, from, error);
    }
    if (bytes != NULL) {
        return backend->write(again->machine, to, bytes, error);
    }
    copy = malloc(tensor_size(tensor) + 1);
    if (copy == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", tensor->name);
    }
    status = backend->read(step->machine, from, copy, error);
    status = status == STATUS_OK ? backend->write(again->machine, to, copy, error) : status;
    free(copy);
    return status;
}

static enum status copy_all(struct rank_step *again, const struct rank_step *step,
                            const void *const *data, struct error *error)
{
    const struct tape *whole = step->whole;

    for (uint32_t id = 0; id < whole->tensor_count; id++) {
        const uint32_t to = again->own.ids[id];

        if (to == TENSOR_NONE || role_is_made(whole->tensors[id].role)) {
            continue;
        }
        if (whole->tensors[id].role == ROLE_DATA) {
            TRY(again->machine->backend->bind(again->machine, to, data[id], error));
        } else {
            TRY(copy_tensor(again, step, &whole->tensors[id], to, step->own.ids[id], error));
        }
    }
    return STATUS_OK;
}

enum status rank_step_open_again(struct rank_step *again, const struct rank_step *step,
                                 uint32_t subtree, const void *const *data,
                                 const struct machine_options *options, struct error *error)
{
    enum status status;

    *again = (struct rank_step){.whole = step->whole};
    TRY_OUT(build_again(again, step, subtree, error));
    TRY_OUT(open_machine(again, options, error));
    TRY_OUT(copy_all(again, step, data, error));
    TRY_OUT(rank_step_first_leg(again, error));
out:
    if (status != STATUS_OK) {
        rank_step_close(again);
    }
    return status;
}

enum status rank_step_again_sum(float *elements, const struct rank_step *again, uint32_t sum,
                                struct error *error)
{
    return again->machine->backend->read(again->machine, again->own.outputs[sum], elements, error);
}
