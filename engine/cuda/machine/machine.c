/*
 * machine.c - the CUDA backend: opens a machine, and queues the operations of steps.
 *
 * Everything is allocated when the machine is opened. A step only queues work: in fast mode the
 * first is queued call by call and the second is recorded, to be replayed as one graph from then
 * on. So a later call may report an error of the device; every call that hands bytes to the caller
 * waits, and reports it. An error is never a difference: STATUS_DEVICE and STATUS_NO_MEMORY say
 * nothing about the numbers.
 */
#include "engine/cuda/machine/machine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/device/device_error.h"
#include "engine/cuda/device/loader.h"
#include "engine/cuda/fusions/fuse.h"
#include "engine/cuda/launch/launch.h"
#include "engine/cuda/machine/cuda_memory.h"
#include "engine/cuda/machine/hashing.h"
#include "engine/cuda/selftest/variants.h"

/* ---- the table's functions -------------------------------------------------------- */

static void cuda_close(struct machine *machine)
{
    struct machine_cuda *cuda = cuda_of(machine);

    if (cuda == NULL) {
        return;
    }
    if (cuda->device != NULL) {
        (void)cuda->config.calls->wait(cuda->device);
        for (int i = 0; i < LEGS_MAX; i++) {
            cuda->config.calls->forget(cuda->device, cuda->legs[i].graph);
        }
    }
    cuda_memory_close(cuda);
    lazy_release(&cuda->lazy);
    if (cuda->device != NULL) {
        cuda->config.calls->close(cuda->device);
    }
    free(cuda->hashing.items);
    tape_free(machine->rewrite);
    free(cuda);
}

/* Narrows the run until it cuts no group that is launched as one. */
static void spare_groups(struct machine_cuda *cuda)
{
    for (uint32_t at = 0; cuda->fused && at < cuda->lazy_last; at++) {
        const bool groups = cuda->fusion.patterns[at] != NULL;
        const uint32_t end = groups ? cuda->fusion.ends[at] : at + 1;

        if (at < cuda->lazy_first && end > cuda->lazy_first) {
            cuda->lazy_first = end;
        }
        if (end > cuda->lazy_last) {
            cuda->lazy_last = at;
        }
    }
}

/* Finds the longest run of operations that a step may leave out. */
static enum status find_lazy(struct machine_cuda *cuda, struct error *error)
{
    const struct tape *tape = cuda->machine.tape;
    uint32_t first = 0;

    if (cuda->options.trace) {
        return STATUS_OK;
    }
    TRY(lazy_find(&cuda->lazy, tape, error));
    if (cuda->lazy.ops == NULL || cuda->memory[cuda->lazy.condition] == NULL) {
        return STATUS_OK;
    }
    for (uint32_t at = 0; at + 1 < tape->op_count; at++) { /* the last one ends the step */
        first = cuda->lazy.ops[at] ? first : at + 1;
        if (at + 1 - first > cuda->lazy_last - cuda->lazy_first) {
            cuda->lazy_first = first;
            cuda->lazy_last = at + 1;
        }
    }
    spare_groups(cuda);
    if (cuda->lazy_first >= cuda->lazy_last) {
        cuda->lazy_first = cuda->lazy_last = 0;
    }
    return STATUS_OK;
}

enum status machine_cuda_open(struct machine **machine, const struct tape *tape,
                              const struct machine_options *options,
                              const struct cuda_config *config, struct error *error)
{
    struct machine_cuda *cuda = calloc(1, sizeof(*cuda));
    enum device_result result;
    enum status status;

    if (cuda == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a machine");
    }
    cuda->machine = (struct machine){.backend = &backend_cuda, .tape = tape};
    cuda->options = *options;
    cuda->config = *config;
    result = config->calls->open(&cuda->device, &cuda->facts, config->ordinal);
    if (result != DEVICE_OK) {
        TRY_OUT(device_error(config->calls, &cuda->facts, config->ordinal, result, error));
    }
    TRY_OUT(cuda_memory_plan(cuda, error));
    TRY_OUT(cuda_memory_open(cuda, error));
    TRY_OUT(find_lazy(cuda, error));
    *machine = &cuda->machine;
    return STATUS_OK;
out:
    cuda_close(&cuda->machine);
    return status;
}

static enum status cuda_open(struct machine **machine, const struct tape *tape,
                             const struct machine_options *options, struct error *error)
{
    struct cuda_config config = {.ordinal = (int)options->device};
    struct variants variants;

    TRY(loader_open(&config.calls, error));
    TRY(variants_of_device(&variants, config.calls, config.ordinal, error));
    config.disabled = variants_disabled(&variants);
    config.quicker = variants.quicker;
    return machine_cuda_open(machine, tape, options, &config, error);
}

static enum status size_without(uint64_t *size, const struct tape *tape,
                                const struct machine_options *options, uint32_t disabled,
                                struct error *error)
{
    struct machine_cuda cuda = {.machine = {.backend = &backend_cuda, .tape = tape},
                                .options = *options,
                                .config = {.disabled = disabled}};
    const enum status status = cuda_memory_plan(&cuda, error);
    const uint64_t all = cuda_memory_size(&cuda);

    *size = all > *size ? all : *size;
    cuda_memory_close(&cuda);
    return status;
}

/* Enough for any device: the larger of all variants enabled and all disabled. */
static enum status cuda_size(uint64_t *size, const struct tape *tape,
                             const struct machine_options *options, struct error *error)
{
    *size = 0;
    TRY(size_without(size, tape, options, 0, error));
    return options->trace ? STATUS_OK : size_without(size, tape, options, ~0u, error);
}

static enum status cuda_write(struct machine *machine, uint32_t tensor, const void *bytes,
                              struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    enum device_result result;

    if (tensor >= machine->tape->tensor_count || !cuda->plan.in_state[tensor] ||
        role_is_made(machine->tape->tensors[tensor].role)) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be written", tensor);
    }
    result = cuda_hash_join(cuda);
    if (result == DEVICE_OK) {
        result = cuda->config.calls->upload(cuda->device, cuda->memory[tensor], bytes,
                                            cuda_tensor_bytes(machine->tape, tensor));
    }
    return cuda_failed(cuda, result, "an upload", error);
}

static enum status cuda_read(struct machine *machine, uint32_t tensor, void *bytes,
                             struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);

    if (!cuda_can_be_read(cuda, tensor)) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be read", tensor);
    }
    return cuda_failed(cuda,
                       cuda->config.calls->download(cuda->device, bytes, cuda->memory[tensor],
                                                    cuda_tensor_bytes(machine->tape, tensor)),
                       "a download", error);
}

static enum status cuda_bind(struct machine *machine, uint32_t tensor, const void *bytes,
                             struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    enum device_result result;

    if (tensor >= machine->tape->tensor_count || machine->tape->tensors[tensor].role != ROLE_DATA) {
        return error_set(error, STATUS_USAGE, "tensor %u is not data", tensor);
    }
    result = cuda->config.calls->upload(cuda->device, cuda->memory[tensor], bytes,
                                        cuda_tensor_bytes(machine->tape, tensor));
    cuda->bound[tensor] = result == DEVICE_OK;
    return cuda_failed(cuda, result, "an upload", error);
}

/* Host memory holds nothing of a device. */
static const void *cuda_peek(struct machine *machine, uint32_t tensor)
{
    (void)machine;
    (void)tensor;
    return NULL;
}

static enum status check_bound(const struct machine_cuda *cuda, struct error *error)
{
    const struct tape *tape = cuda->machine.tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA && !cuda->bound[id]) {
            return error_set(error, STATUS_USAGE, "the data '%s' is not there",
                             tape->tensors[id].name);
        }
    }
    return STATUS_OK;
}

static enum status show_outputs(struct machine_cuda *cuda, const struct observer *observer,
                                struct op_turn maker, struct error *error)
{
    const struct tape *tape = cuda->machine.tape;
    const struct op *op = &tape->ops[maker.op];

    for (uint32_t i = 0; i < op->output_count; i++) {
        const uint64_t size = cuda_tensor_bytes(tape, op->outputs[i]);

        if (!observer_wants(observer, maker, i)) {
            continue;
        }
        TRY(cuda_failed(cuda,
                        cuda->config.calls->download(cuda->device, cuda->shown,
                                                     cuda->memory[op->outputs[i]], size),
                        op_kind_name(op->kind), error));
        TRY(observer->made(observer->context, maker, i, cuda->shown, size, error));
    }
    return STATUS_OK;
}

static enum device_result launch_next(uint32_t *next, struct machine_cuda *cuda, uint32_t at,
                                      uint32_t last)
{
    return fuse_launch(next, cuda->fused ? &cuda->fusion : NULL, &cuda->launcher, at, last);
}

static enum device_result run_timed(uint32_t *next, struct machine_cuda *cuda, uint32_t at,
                                    uint32_t last)
{
    const struct device_calls *calls = cuda->config.calls;
    double seconds = 0.0;

    DEVICE_TRY(calls->mark(cuda->device, 0));
    DEVICE_TRY(launch_next(next, cuda, at, last));
    DEVICE_TRY(calls->mark(cuda->device, 1));
    DEVICE_TRY(calls->seconds(cuda->device, &seconds, 0, 1));
    cuda->options.timed(cuda->options.timed_context, at, seconds);
    return DEVICE_OK;
}

static enum device_result take_next_states(struct machine_cuda *cuda)
{
    const struct tape *tape = cuda->machine.tape;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (cuda->plan.copied[i]) {
            DEVICE_TRY(cuda->config.calls->copy(cuda->device, cuda->memory[tape->states[i].before],
                                                cuda->memory[tape->states[i].after],
                                                cuda_tensor_bytes(tape, tape->states[i].before)));
        }
    }
    return DEVICE_OK;
}

/* Queues operations call by call; after the last of a step, copies of the states' next values. */
static enum status queue_ops(struct machine_cuda *cuda, const struct leg *leg, uint32_t turn,
                             const struct observer *observer, struct error *error)
{
    const struct tape *tape = &cuda->tape;
    uint32_t next;

    for (uint32_t at = leg->first; at < leg->last; at = next) {
        next = at + 1;
        if (!cuda->plan.runs[at]) {
            continue;
        }
        TRY(cuda_failed(cuda,
                        cuda->options.timed != NULL ? run_timed(&next, cuda, at, leg->last)
                                                    : launch_next(&next, cuda, at, leg->last),
                        op_kind_name(tape->ops[at].kind), error));
        if (observer != NULL) {
            TRY(show_outputs(cuda, observer, (struct op_turn){at, turn}, error));
        }
    }
    return !leg->ends ? STATUS_OK
                      : cuda_failed(cuda, take_next_states(cuda), "the copy of states", error);
}

/* The kept leg like this one, or a new one; NULL: no place is left. *known: it was there. */
static struct leg *find_leg(bool *known, struct machine_cuda *cuda, const struct leg *wanted)
{
    for (int i = 0; i < LEGS_MAX; i++) {
        struct leg *leg = &cuda->legs[i];

        *known = leg->used && leg->first == wanted->first && leg->last == wanted->last &&
                 leg->ends == wanted->ends;
        if (*known) {
            return leg;
        }
        if (!leg->used) {
            *leg = *wanted;
            leg->used = true;
            return leg;
        }
    }
    return NULL;
}

/* Records a leg as a graph. Where the runtime refuses, steps are queued call by call. */
static void record_leg(struct machine_cuda *cuda, struct leg *leg)
{
    const struct device_calls *calls = cuda->config.calls;
    struct error ignored;

    error_init(&ignored);
    if (calls->record(cuda->device) != DEVICE_OK) {
        cuda->graph_refused = true;
        return;
    }
    bool queued = queue_ops(cuda, leg, 0, NULL, &ignored) == STATUS_OK;

    if (calls->recorded(cuda->device, &leg->graph) != DEVICE_OK || !queued) {
        calls->forget(cuda->device, leg->graph);
        leg->graph = NULL;
        cuda->graph_refused = true;
    }
}

/* The first time is queued call by call: the runtime loads kernels when they are first used. */
static enum status run_leg(struct machine_cuda *cuda, const struct leg *wanted, struct error *error)
{
    bool known = false;
    struct leg *leg = find_leg(&known, cuda, wanted);

    if (leg != NULL && known && leg->graph == NULL && !cuda->graph_refused) {
        record_leg(cuda, leg);
    }
    if (leg != NULL && leg->graph != NULL) {
        return cuda_failed(cuda, cuda->config.calls->replay(cuda->device, leg->graph), "the step",
                           error);
    }
    return queue_ops(cuda, wanted, 0, NULL, error);
}

/*
 * A step is two legs: up to where it writes states, and on from there. Between them it waits for
 * the hashing of the previous states, which runs beside the first leg.
 */
static enum status run_leg_pair(struct machine_cuda *cuda, uint32_t first, uint32_t last,
                                struct error *error)
{
    const bool ends = last == cuda->machine.tape->op_count;
    const uint32_t writing = cuda->first_writing < first  ? first
                             : cuda->first_writing > last ? last
                                                          : cuda->first_writing;
    const struct leg before = {.first = first, .last = writing};
    const struct leg after = {.first = writing, .last = last, .ends = ends};

    if (cuda->hashing.pending && !cuda->hashing.states_only) {
        TRY(cuda_failed(cuda, cuda_hash_join(cuda), "hashing", error));
    }
    if (before.first < before.last) {
        TRY(run_leg(cuda, &before, error));
    }
    if (after.first == after.last && !ends) {
        return STATUS_OK;
    }
    TRY(cuda_failed(cuda, cuda_hash_join(cuda), "hashing", error));
    return run_leg(cuda, &after, error);
}

/* Does the condition hold? Waits for what makes it. */
static enum status ask_condition(bool *holds, struct machine_cuda *cuda, struct error *error)
{
    const struct tape *tape = cuda->machine.tape;
    const uint32_t condition = cuda->lazy.condition;
    uint8_t bytes[4] = {0};

    TRY(cuda_failed(cuda,
                    cuda->config.calls->download(cuda->device, bytes, cuda->memory[condition],
                                                 cuda_tensor_bytes(tape, condition)),
                    "a download", error));
    *holds = lazy_holds(&tape->tensors[condition], bytes);
    return STATUS_OK;
}

/* Operations that a step may leave out are legs of their own. */
static enum status run_legs(struct machine_cuda *cuda, uint32_t first, uint32_t last,
                            struct error *error)
{
    const bool apart = first <= cuda->lazy_first && cuda->lazy_last <= last && cuda->lazy_last != 0;
    bool holds = false;

    if (!apart) {
        return run_leg_pair(cuda, first, last, error);
    }
    if (first < cuda->lazy_first) {
        TRY(run_leg_pair(cuda, first, cuda->lazy_first, error));
    }
    TRY(ask_condition(&holds, cuda, error));
    if (holds) {
        TRY(run_leg_pair(cuda, cuda->lazy_first, cuda->lazy_last, error));
    }
    return run_leg_pair(cuda, cuda->lazy_last, last, error);
}

/* Operations of no loop, or a turn of one. */
static enum status run_stretch(struct machine_cuda *cuda, uint32_t first, uint32_t last,
                               uint32_t turn, const struct observer *observer, struct error *error)
{
    const struct leg all = {first, last, .ends = last == cuda->machine.tape->op_count};

    if (!cuda->options.trace && cuda->options.timed == NULL) {
        return run_legs(cuda, first, last, error);
    }
    TRY(cuda_failed(cuda, cuda_hash_join(cuda), "hashing", error));
    return queue_ops(cuda, &all, turn, observer, error);
}

/* Gives the next turn of a loop what this one left. */
static enum device_result hand_on(struct machine_cuda *cuda, const struct loop *loop)
{
    const struct tape *tape = cuda->machine.tape;

    for (uint32_t k = loop->carry_first; k < loop->carry_first + loop->carry_count; k++) {
        const struct loop_carry *carry = &tape->loop_carries[k];

        if (cuda->plan.handed[k]) {
            DEVICE_TRY(cuda->config.calls->copy(cuda->device, cuda->memory[carry->in],
                                                cuda->memory[carry->out],
                                                cuda_tensor_bytes(tape, carry->in)));
        }
    }
    return DEVICE_OK;
}

static enum status run_loop(struct machine_cuda *cuda, const struct loop *loop,
                            const struct observer *observer, struct error *error)
{
    for (uint32_t turn = 0; turn < loop->turns; turn++) {
        if (turn > 0) {
            TRY(cuda_failed(cuda, hand_on(cuda, loop), "a copy for the next micro-batch", error));
        }
        TRY(run_stretch(cuda, loop->first, loop->last, turn, observer, error));
    }
    return STATUS_OK;
}

static enum status cuda_run(struct machine *machine, uint32_t first, uint32_t last,
                            const struct observer *observer, struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    const struct tape *tape = machine->tape;

    assert(observer == NULL || cuda->options.trace);
    TRY(check_bound(cuda, error));
    for (uint32_t i = 0; i < tape->loop_count; i++) {
        const struct loop *loop = &tape->loops[i];

        if (loop->last <= first || loop->first >= last) {
            continue;
        }
        assert(loop->first >= first && loop->last <= last);
        if (first < loop->first) {
            TRY(run_stretch(cuda, first, loop->first, 0, observer, error));
        }
        TRY(run_loop(cuda, loop, observer, error));
        first = loop->last;
    }
    /* Also where nothing is left: states take their next values. */
    return run_stretch(cuda, first, last, 0, observer, error);
}

static enum status cuda_step(struct machine *machine, const struct observer *observer,
                             struct error *error)
{
    return cuda_run(machine, 0, machine->tape->op_count, observer, error);
}

/* Waits for both devices: neither may write before the copy is done. */
static enum status cuda_take(struct machine *machine, uint32_t tensor, struct machine *from,
                             uint32_t from_tensor, struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    struct machine_cuda *other = cuda_of(from);
    const struct device_calls *calls = cuda->config.calls;

    assert(cuda->plan.in_state[tensor] && cuda_can_be_read(other, from_tensor));
    TRY(cuda_failed(other, calls->wait(other->device), "what is queued", error));
    TRY(cuda_failed(cuda, cuda_hash_join(cuda), "hashing", error));
    TRY(cuda_failed(cuda,
                    calls->copy(cuda->device, cuda->memory[tensor], other->memory[from_tensor],
                                cuda_tensor_bytes(machine->tape, tensor)),
                    "a copy between devices", error));
    return cuda_failed(cuda, calls->wait(cuda->device), "a copy between devices", error);
}

const struct backend backend_cuda = {
    .name = "cuda",
    .slices = {.room = CHAIN_ROOM, .columns = STRIP_K_MAX},
    .open = cuda_open,
    .size = cuda_size,
    .close = cuda_close,
    .write = cuda_write,
    .read = cuda_read,
    .bind = cuda_bind,
    .step = cuda_step,
    .run = cuda_run,
    .take = cuda_take,
    .peek = cuda_peek,
    .diverged = cuda_diverged,
    .leaves_roots = cuda_leaves_roots,
    .hash_begin = cuda_hash_begin,
    .hash_end = cuda_hash_end,
};
