/* rank_step.c - see rank_step.h. */
#include "engine/ranks/rank_step.h"

#include <omp.h>
#include <stdlib.h>

/* ---- opening ---------------------------------------------------------------------------- */

static enum status build_plan(struct rank_step *step, uint32_t ranks, struct error *error)
{
    TRY(rank_tape_check(step->whole, error));
    TRY(ranks_plan_build(&step->plan, ranks, rank_tape_groups(step->whole), error));
    TRY(rank_places_build(&step->places, step->whole, ranks, error));
    return rank_places_sums(&step->shards, &step->places, error);
}

/* The caller reads the sums of the first leg and writes those of the second. */
static struct machine_options leg_options(const struct machine_options *options)
{
    struct machine_options own = *options;

    own.in_legs = true;
    return own;
}

/* The largest tensor that is read or written through the host. */
static uint64_t largest_size(const struct rank_step *step)
{
    uint64_t largest = 0;

    for (uint32_t i = 0; i < step->places.sum_count + step->places.arrival_count; i++) {
        const uint32_t id = i < step->places.sum_count
                                ? step->places.sums[i]
                                : step->places.arrivals[i - step->places.sum_count].tensor;
        const uint64_t size = tensor_size(&step->whole->tensors[id]);

        largest = size > largest ? size : largest;
    }
    return largest;
}

static enum status open_arrivals(struct rank_step *step, struct error *error)
{
    const uint32_t stages = step->places.stage_count;

    step->arrivals = calloc((size_t)stages + 1, sizeof(*step->arrivals));
    if (step->arrivals == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u stages", stages);
    }
    for (uint32_t stage = 1; stage <= stages; stage++) {
        TRY(rank_arrivals_open(&step->arrivals[stage], &step->places, stage, step->link->rank,
                               error));
    }
    return STATUS_OK;
}

static enum status open_sums(struct rank_step *step, const struct machine_options *options,
                             struct error *error)
{
    const bool on_cpu = options->backend == NULL || options->backend == &backend_cpu;
    const int threads = options->thread_count > 0 ? options->thread_count : omp_get_max_threads();
    const uint64_t largest = largest_size(step);

    step->bounce = malloc(largest + 1);
    if (step->bounce == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a tensor of %llu bytes",
                         (unsigned long long)largest);
    }
    TRY(open_arrivals(step, error));
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
    step->legs = calloc((size_t)step->own.leg_count + 1, sizeof(*step->legs));
    if (step->legs == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of legs");
    }
    return rank_tape_cut(step->legs, &step->own, &step->places, step->machine->tape, error);
}

/* The bounds of a state are those of its next value, which stand at leaves. */
static enum status find_bounded(struct rank_step *step, struct error *error)
{
    const struct tape *whole = step->whole;

    step->bounded = malloc(((size_t)whole->tensor_count + 1) * sizeof(*step->bounded));
    if (step->bounded == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u tensors", whole->tensor_count);
    }
    for (uint32_t id = 0; id < whole->tensor_count; id++) {
        step->bounded[id] = TENSOR_NONE;
    }
    for (uint32_t i = 0; i < whole->state_count; i++) {
        if (step->places.states[i] != RANK_STATE_ALL) {
            step->bounded[whole->states[i].before] = whole->states[i].after;
        }
    }
    return STATUS_OK;
}

enum status rank_step_open(struct rank_step *step, const struct tape *whole,
                           const struct machine_options *options, const struct ranks_link *link,
                           struct error *error)
{
    enum status status;

    *step = (struct rank_step){.whole = whole, .link = link};
    TRY_OUT(build_plan(step, link->rank_count, error));
    TRY_OUT(rank_tape_build(&step->own, &step->places, &step->plan, link->rank, error));
    TRY_OUT(find_bounded(step, error));
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
    for (uint32_t stage = 1; step->arrivals != NULL && stage <= step->places.stage_count; stage++) {
        rank_arrivals_close(&step->arrivals[stage]);
    }
    free(step->arrivals);
    free(step->legs);
    free(step->bounded);
    rank_sums_close(&step->sums);
    rank_tape_release(&step->own);
    ranks_shards_release(&step->shards);
    rank_places_release(&step->places);
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
    TRY_OUT(rank_tape_build(&step.own, &step.places, &step.plan, 0, error));
    TRY_OUT(machine_size(size, step.own.tape, &own, error));
    *size += largest_size(&step);
    for (uint32_t k = 0; k < step.places.sum_count; k++) {
        *size += step.own.subtree_count * tensor_size(&whole->tensors[step.places.sums[k]]);
    }
    *size += ranks_shard_count(&step.shards, 0) * step.plan.subtree_count * sizeof(float);
    for (uint32_t i = 0; i < step.places.arrival_count; i++) {
        *size += tensor_size(&whole->tensors[step.places.arrivals[i].tensor]);
    }
out:
    rank_step_close(&step);
    return status;
}

/* Each part that arrives goes to every other rank. */
static uint64_t arrival_bytes(const struct rank_places *places)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < places->arrival_count; i++) {
        bytes += tensor_size(&places->whole->tensors[places->arrivals[i].tensor]);
    }
    return bytes * (places->ranks - 1);
}

static void fill_wire(struct rank_wire *wire, const struct rank_step *step)
{
    const struct tape *whole = step->whole;

    *wire =
        (struct rank_wire){.groups = step->plan.group_count, .subtrees = step->plan.subtree_count};
    for (uint32_t rank = 0; rank < step->plan.rank_count; rank++) {
        wire->elements += ranks_shard_count(&step->shards, rank);
        wire->spare +=
            ranks_first_subtree(&step->plan, rank) == ranks_first_subtree(&step->plan, rank + 1);
    }
    for (uint32_t i = 0; i < whole->state_count; i++) {
        if (step->places.states[i] == RANK_STATE_CUT) {
            wire->cut += tensor_size(&whole->tensors[whole->states[i].before]);
        }
    }
    wire->bytes = ranks_sent_elements(&step->plan, &step->shards) * sizeof(float) +
                  arrival_bytes(&step->places);
}

enum status rank_step_wire(struct rank_wire *wire, const struct tape *whole, uint32_t ranks,
                           struct error *error)
{
    struct rank_step step = {.whole = whole};
    enum status status = build_plan(&step, ranks, error);

    *wire = (struct rank_wire){0};
    if (status == STATUS_OK) {
        fill_wire(wire, &step);
    }
    rank_step_close(&step);
    return status;
}

/* ---- where tensors lie ------------------------------------------------------------------ */

uint64_t rank_step_first(const struct rank_step *step, uint32_t tensor, uint32_t rank)
{
    return rank_places_first(&step->places, step->bounded[tensor], rank) *
           dtype_size(step->whole->tensors[tensor].dtype);
}

void rank_step_holding(struct rank_holding *holding, const struct rank_step *step, uint32_t tensor)
{
    const bool in_parts = step->places.cut[tensor] && step->own.ids[tensor] == TENSOR_NONE;

    *holding =
        (struct rank_holding){.id = in_parts ? step->own.parts[tensor] : step->own.ids[tensor],
                              .in_parts = in_parts,
                              .is_shared = step->bounded[tensor] != TENSOR_NONE};
}

/* ---- a step ----------------------------------------------------------------------------- */

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
            elements = (const float *)(const void *)step->bounce;
        }
        rank_sums_put(&step->sums, i / step->own.sum_count, i % step->own.sum_count, elements);
    }
    return STATUS_OK;
}

/* The own shards of the sums become inputs. */
static enum status take_sums(struct rank_step *step, struct error *error)
{
    for (uint32_t k = 0; k < step->own.sum_count; k++) {
        const uint32_t id = step->own.parts[step->places.sums[k]];

        if (id != TENSOR_NONE) {
            TRY(step->machine->backend->write(step->machine, id, rank_sums_shard(&step->sums, k),
                                              error));
        }
    }
    return STATUS_OK;
}

/* Calls each() for what arrives before a stage, with its number there. */
static enum status visit_arrivals(struct rank_step *step, uint32_t stage,
                                  enum status (*each)(struct rank_step *step, uint32_t arrival,
                                                      uint32_t at, struct error *error),
                                  struct error *error)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < step->places.arrival_count; i++) {
        if (step->places.arrivals[i].stage == stage) {
            TRY(each(step, i, at++, error));
        }
    }
    return STATUS_OK;
}

/* The own part, which an earlier leg has made: or it is a shard of a sum, and an input. */
static enum status put_arrival(struct rank_step *step, uint32_t arrival, uint32_t at,
                               struct error *error)
{
    const struct rank_arrival *what = &step->places.arrivals[arrival];
    const uint32_t id = step->own.parts[what->tensor];

    return id == TENSOR_NONE
               ? STATUS_OK
               : step->machine->backend->read(
                     step->machine, id, rank_arrivals_own(&step->arrivals[what->stage], at), error);
}

static enum status take_arrival(struct rank_step *step, uint32_t arrival, uint32_t at,
                                struct error *error)
{
    const uint32_t input = step->own.arrivals[arrival];

    if (input == TENSOR_NONE) {
        return STATUS_OK;
    }
    rank_arrivals_get(step->bounce, &step->arrivals[step->places.arrivals[arrival].stage], at);
    return step->machine->backend->write(step->machine, input, step->bounce, error);
}

/* The next value of a state that is whole on every rank. */
static enum status take_state(struct rank_step *step, uint32_t arrival, uint32_t at,
                              struct error *error)
{
    const struct rank_arrival *what = &step->places.arrivals[arrival];

    if (what->state == TENSOR_NONE) {
        return STATUS_OK;
    }
    rank_arrivals_get(step->bounce, &step->arrivals[what->stage], at);
    return step->machine->backend->write(
        step->machine, step->own.ids[step->whole->states[what->state].before], step->bounce, error);
}

static enum status run_stage(struct rank_step *step, uint32_t stage, struct error *error)
{
    const uint32_t legs = step->own.leg_count;

    TRY(visit_arrivals(step, stage, put_arrival, error));
    TRY(rank_arrivals_exchange(&step->arrivals[stage], step->link, error));
    TRY(visit_arrivals(step, stage, take_arrival, error));
    if (stage == legs) {
        return STATUS_OK;
    }
    return step->machine->backend->run(
        step->machine, step->legs[stage],
        stage + 1 < legs ? step->legs[stage + 1] : step->machine->tape->op_count, NULL, error);
}

/* Where the first leg ends. */
static uint32_t first_end(const struct rank_step *step)
{
    return step->own.leg_count > 1 ? step->legs[1] : step->machine->tape->op_count;
}

enum status rank_step_first_leg(struct rank_step *step, struct error *error)
{
    TRY(write_counters(step, error));
    return step->machine->backend->run(step->machine, 0, first_end(step), NULL, error);
}

enum status rank_step_run(struct rank_step *step, struct error *error)
{
    const uint32_t legs = step->own.leg_count;

    TRY(rank_step_first_leg(step, error));
    TRY(put_parts(step, error));
    TRY(rank_sums_join(&step->sums, step->link, error));
    TRY(take_sums(step, error));
    for (uint32_t stage = 1; stage <= legs; stage++) {
        TRY(run_stage(step, stage, error));
    }
    for (uint32_t stage = 1; stage <= legs; stage++) {
        TRY(visit_arrivals(step, stage, take_state, error));
    }
    return STATUS_OK;
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
    TRY(rank_places_build(&again->places, step->whole, wide, error));
    return rank_tape_build(&again->own, &again->places, &again->plan, node - wide, error);
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

        /* What lies in shards no first leg reads. */
        if (to == TENSOR_NONE || step->own.ids[id] == TENSOR_NONE ||
            role_is_made(whole->tensors[id].role)) {
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
