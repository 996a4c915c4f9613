/*
 * machine.c - the CUDA backend: device memory by the plan, and the operations queued on a
 * stream.
 *
 * Everything is allocated when the machine is opened. A step only queues work: in fast mode the
 * first is queued call by call and the second is recorded, to be replayed as one graph from then
 * on. So an error of the device may come out of a later call; all calls that hand bytes to the
 * caller wait and would tell it. An error is never a difference: whoever gets STATUS_DEVICE or
 * STATUS_NO_MEMORY cannot tell.
 */
#include "engine/cuda/machine/machine_cuda.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/device/loader.h"
#include "engine/cuda/selftest/variants.h"

#define MIB 1048576.0

/* ---- what went wrong -------------------------------------------------------- */

enum status machine_cuda_trouble(const struct device_calls *calls, const struct device_facts *facts,
                                 int ordinal, enum device_result result, struct error *error)
{
    switch (result) {
    case DEVICE_NO_DRIVER:
        (void)error_set(error, STATUS_DEVICE, "there is no NVIDIA driver");
        error_advise(error, "install the driver, or let the processor do the work");
        return STATUS_DEVICE;
    case DEVICE_OLD_DRIVER:
        (void)error_set(error, STATUS_DEVICE,
                        "the NVIDIA driver serves CUDA %d.%d, the plugin needs %d.%d",
                        facts->driver / 1000, facts->driver % 1000 / 10, facts->runtime / 1000,
                        facts->runtime % 1000 / 10);
        error_advise(error, "update the driver, or build the plugin with an older CUDA toolkit");
        return STATUS_DEVICE;
    case DEVICE_NONE:
        (void)error_set(error, STATUS_DEVICE, "there is no CUDA device %d", ordinal);
        error_advise(error, "see what nvidia-smi lists, and what CUDA_VISIBLE_DEVICES says");
        return STATUS_DEVICE;
    case DEVICE_NO_CODE:
        (void)error_set(error, STATUS_DEVICE,
                        "the plugin holds no code for this device (compute capability %d.%d)",
                        facts->capability / 10, facts->capability % 10);
        error_advise(error, "build with CUDA_ARCHS=%d", facts->capability);
        return STATUS_DEVICE;
    case DEVICE_OK:
    case DEVICE_NO_MEMORY:
    case DEVICE_FAILED:
        break;
    }
    (void)error_set(error, STATUS_DEVICE, "the CUDA device does not start: %s", calls->trouble());
    error_advise(error, "see what nvidia-smi says");
    return STATUS_DEVICE;
}

enum status cuda_failed(const struct machine_cuda *cuda, enum device_result result,
                        const char *what, struct error *error)
{
    if (result == DEVICE_OK) {
        return STATUS_OK;
    }
    (void)error_set(error, result == DEVICE_NO_MEMORY ? STATUS_NO_MEMORY : STATUS_DEVICE,
                    "%s: %s failed: %s", cuda->facts.name, what, cuda->way.calls->trouble());
    error_advise(error, "run it again; if it stays, see what nvidia-smi and dmesg say");
    return result == DEVICE_NO_MEMORY ? STATUS_NO_MEMORY : STATUS_DEVICE;
}

/* ---- planning ----------------------------------------------------------------- */

static uint64_t hook_size(const void *context, const struct op *op, uint32_t output,
                          const struct tensor *tensors)
{
    const struct machine_cuda *cuda = context;

    return launch_output_size(op, output, tensors, cuda->launcher.packed);
}

static bool hook_in_place(const void *context, enum op_kind kind, uint32_t output, uint32_t input)
{
    (void)context;
    return launch_in_place(kind, output, input);
}

static bool hook_may_omit(const void *context, enum op_kind kind)
{
    (void)context;
    return launch_may_omit(kind);
}

static uint32_t hook_unit_end(const void *context, uint32_t at)
{
    const struct machine_cuda *cuda = context;

    return cuda->fusion.ends[at];
}

static uint32_t hook_holder(const void *context, uint64_t *offset, uint32_t tensor)
{
    const struct machine_cuda *cuda = context;

    *offset = cuda->fusion.offsets[tensor];
    return cuda->fusion.holders[tensor];
}

static uint64_t aligned(uint64_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void raise_to(uint64_t *most, uint64_t size)
{
    *most = size > *most ? size : *most;
}

/* Scratch of operations. */
static uint64_t scratch_size(const struct machine_cuda *cuda)
{
    const struct tape *tape = &cuda->tape;
    uint64_t most = 0;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (cuda->plan.runs[at] && !cuda->way.rules_only) {
            raise_to(&most,
                     launch_scratch_size(&tape->ops[at], tape->tensors, cuda->launcher.packed));
        }
    }
    return most;
}

/* Operations from there on may write the states that are being hashed. */
static uint32_t first_writing(const struct machine_cuda *cuda)
{
    const struct tape *tape = &cuda->tape;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        for (uint32_t i = 0; cuda->plan.runs[at] && i < tape->ops[at].output_count; i++) {
            if (cuda->plan.in_state[tape->ops[at].outputs[i]]) {
                return at;
            }
        }
    }
    return tape->op_count;
}

static enum status make_fusion(struct machine_cuda *cuda, struct error *error)
{
    enum status status = STATUS_OK;

    cuda->tape = *cuda->machine.tape;
    if (cuda->fused) {
        const struct fusion_facts facts = {.barred = cuda->way.barred,
                                           .capability = cuda->facts.capability,
                                           .shared_max = cuda->facts.shared_max,
                                           .in_legs = cuda->options.in_legs};

        status = fusion_build(&cuda->fusion, cuda->machine.tape, &facts, error);
        cuda->tape.ops = cuda->fusion.ops;
        cuda->block_sizes[BLOCK_LISTS] = cuda->fusion.size;
    }
    return status;
}

static enum status make_plan(struct machine_cuda *cuda, struct error *error)
{
    const struct tape *tape = &cuda->tape;
    const bool fast = !cuda->options.trace && !cuda->way.rules_only;
    const struct plan_hooks hooks = {.context = cuda,
                                     .keep_all = cuda->options.trace,
                                     .output_size = hook_size,
                                     .in_place = fast ? hook_in_place : NULL,
                                     .may_omit = fast ? hook_may_omit : NULL,
                                     .unit_end = fast ? hook_unit_end : NULL,
                                     .holder = fast ? hook_holder : NULL};
    enum status status;

    cuda->launcher.packed = fast;
    cuda->fused = fast;
    status = make_fusion(cuda, error);
    if (status != STATUS_OK) {
        return status;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (!launch_takes(&tape->ops[at])) {
            return error_set(error, STATUS_OVER_LIMIT,
                             "operation %u contracts rows too long for the CUDA backend", at);
        }
    }
    status = plan_build(&cuda->plan, tape, &hooks, error);
    if (status != STATUS_OK) {
        return status;
    }
    if (cuda->fused) {
        fusion_check(&cuda->fusion, tape, &cuda->plan, &hooks);
    }
    cuda->block_sizes[BLOCK_STATE] = cuda->plan.state_size;
    cuda->block_sizes[BLOCK_TEMPORARY] = cuda->plan.temporary_size;
    cuda->block_sizes[BLOCK_SCRATCH] = scratch_size(cuda);
    cuda->block_sizes[BLOCK_OPS] = aligned((uint64_t)tape->op_count * sizeof(*tape->ops));
    cuda_hash_sizes(cuda->block_sizes, cuda);
    cuda->first_writing = first_writing(cuda);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA) {
            cuda->block_sizes[BLOCK_DATA] += aligned(cuda_tensor_bytes(tape, id));
        }
    }
    return STATUS_OK;
}

/* ---- memory -------------------------------------------------------------------- */

static enum status allocate_blocks(struct machine_cuda *cuda, struct error *error)
{
    uint64_t total = 0;

    for (int block = 0; block < BLOCK_COUNT; block++) {
        total += cuda->block_sizes[block];
    }
    if (cuda->options.memory_max != 0 && total > cuda->options.memory_max) {
        return error_set(error, STATUS_NO_MEMORY,
                         "the tape needs %.1f MiB of device memory, and %.1f MiB are allowed",
                         (double)total / MIB, (double)cuda->options.memory_max / MIB);
    }
    for (int block = 0; block < BLOCK_COUNT; block++) {
        enum device_result result = DEVICE_OK;

        if (cuda->block_sizes[block] > 0) {
            result = cuda->way.calls->allocate(cuda->device, &cuda->blocks[block],
                                               cuda->block_sizes[block]);
        }
        if (result == DEVICE_NO_MEMORY) {
            (void)error_set(error, STATUS_NO_MEMORY,
                            "the tape needs %.1f MiB of device memory; %s had %.1f MiB free",
                            (double)total / MIB, cuda->facts.name,
                            (double)cuda->facts.memory_free / MIB);
            error_advise(error, "use a smaller batch, or verify by ranges of operations");
            return STATUS_NO_MEMORY;
        }
        if (result != DEVICE_OK) {
            return cuda_failed(cuda, result, "allocating", error);
        }
    }
    return STATUS_OK;
}

static enum status place_tensors(struct machine_cuda *cuda, struct error *error)
{
    const struct tape *tape = cuda->machine.tape;
    uint64_t largest = 1;
    uint64_t data = 0;

    cuda->memory = calloc((size_t)tape->tensor_count + 1, sizeof(*cuda->memory));
    cuda->bound = calloc((size_t)tape->tensor_count + 1, sizeof(*cuda->bound));
    if (cuda->memory == NULL || cuda->bound == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u tensors", tape->tensor_count);
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA) {
            cuda->memory[id] = (uint8_t *)cuda->blocks[BLOCK_DATA] + data;
            data += aligned(cuda_tensor_bytes(tape, id));
        } else if (cuda->plan.places[id] != PLAN_ABSENT) {
            int block = cuda->plan.in_state[id] ? BLOCK_STATE : BLOCK_TEMPORARY;

            cuda->memory[id] = (uint8_t *)cuda->blocks[block] + cuda->plan.places[id];
        }
        raise_to(&largest, cuda_tensor_bytes(tape, id));
    }
    if (cuda->options.trace) {
        cuda->shown = malloc(largest);
        if (cuda->shown == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory to show %.1f MiB",
                             (double)largest / MIB);
        }
    }
    return STATUS_OK;
}

static enum status fill_first(struct machine_cuda *cuda, struct error *error)
{
    const struct device_calls *calls = cuda->way.calls;
    const struct tape *tape = &cuda->tape;
    enum device_result result = DEVICE_OK;
    enum status status = STATUS_OK;

    if (cuda->block_sizes[BLOCK_STATE] > 0) {
        result =
            calls->fill(cuda->device, cuda->blocks[BLOCK_STATE], 0, cuda->block_sizes[BLOCK_STATE]);
    }
    if (result == DEVICE_OK && tape->op_count > 0) {
        result = calls->upload(cuda->device, cuda->blocks[BLOCK_OPS], tape->ops,
                               (uint64_t)tape->op_count * sizeof(*tape->ops));
    }
    cuda->launcher.calls = calls;
    cuda->launcher.device = cuda->device;
    cuda->launcher.tape = tape;
    cuda->launcher.ops = cuda->blocks[BLOCK_OPS];
    cuda->launcher.memory = cuda->memory;
    cuda->launcher.scratch = cuda->blocks[BLOCK_SCRATCH];
    cuda->launcher.block_count =
        (uint32_t)(cuda->facts.multiprocessors < 1
                       ? BLOCKS_PER_PROCESSOR
                       : cuda->facts.multiprocessors * BLOCKS_PER_PROCESSOR);
    cuda->launcher.rules_only = cuda->way.rules_only;
    cuda->launcher.capability = cuda->facts.capability;
    cuda->launcher.processors = (uint32_t)cuda->facts.multiprocessors;
    cuda->launcher.shared_max = cuda->facts.shared_max;
    cuda->launcher.barred = cuda->way.barred;
    if (cuda->fused) {
        cuda->launcher.fusion = &cuda->fusion;
    }
    if (cuda->fused && result == DEVICE_OK) {
        status = fusion_upload(&result, &cuda->fusion, &cuda->launcher, cuda->blocks[BLOCK_LISTS],
                               error);
    }
    return status != STATUS_OK ? status : cuda_failed(cuda, result, "the first upload", error);
}

/* ---- the table's functions -------------------------------------------------------- */

static void cuda_close(struct machine *machine)
{
    struct machine_cuda *cuda = cuda_of(machine);

    if (cuda == NULL) {
        return;
    }
    if (cuda->device != NULL) {
        (void)cuda->way.calls->wait(cuda->device);
        for (int i = 0; i < LEGS_MAX; i++) {
            cuda->way.calls->forget(cuda->device, cuda->legs[i].graph);
        }
        for (int block = 0; block < BLOCK_COUNT; block++) {
            cuda->way.calls->release(cuda->device, cuda->blocks[block]);
        }
        cuda->way.calls->close(cuda->device);
    }
    free(cuda->hashing.items);
    free(cuda->memory);
    free(cuda->bound);
    free(cuda->shown);
    plan_release(&cuda->plan);
    fusion_release(&cuda->fusion);
    free(cuda);
}

enum status machine_cuda_open(struct machine **machine, const struct tape *tape,
                              const struct machine_options *options, const struct machine_way *way,
                              struct error *error)
{
    struct machine_cuda *cuda = calloc(1, sizeof(*cuda));
    enum device_result result;
    enum status status;

    if (cuda == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a machine");
    }
    cuda->machine = (struct machine){.backend = &backend_cuda, .tape = tape};
    cuda->options = *options;
    cuda->way = *way;
    result = way->calls->open(&cuda->device, &cuda->facts, way->ordinal);
    status = result == DEVICE_OK
                 ? make_plan(cuda, error)
                 : machine_cuda_trouble(way->calls, &cuda->facts, way->ordinal, result, error);
    if (status == STATUS_OK) {
        status = allocate_blocks(cuda, error);
    }
    if (status == STATUS_OK) {
        status = place_tensors(cuda, error);
    }
    if (status == STATUS_OK) {
        status = fill_first(cuda, error);
    }
    if (status != STATUS_OK) {
        cuda_close(&cuda->machine);
        return status;
    }
    *machine = &cuda->machine;
    return STATUS_OK;
}

static enum status cuda_open(struct machine **machine, const struct tape *tape,
                             const struct machine_options *options, struct error *error)
{
    struct machine_way way = {.ordinal = (int)options->device};
    struct paths paths;
    enum status status = loader_open(&way.calls, error);

    if (status == STATUS_OK) {
        status = paths_of_device(&paths, way.calls, way.ordinal, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    way.barred = paths_barred(&paths);
    return machine_cuda_open(machine, tape, options, &way, error);
}

static enum status size_without(uint64_t *size, const struct tape *tape,
                                const struct machine_options *options, uint32_t barred,
                                struct error *error)
{
    struct machine_cuda cuda = {.machine = {.backend = &backend_cuda, .tape = tape},
                                .options = *options,
                                .way = {.barred = barred}};
    enum status status = make_plan(&cuda, error);
    uint64_t all = 0;

    for (int block = 0; block < BLOCK_COUNT; block++) {
        all += cuda.block_sizes[block];
    }
    raise_to(size, all);
    plan_release(&cuda.plan);
    fusion_release(&cuda.fusion);
    return status;
}

/* Enough for any device: with all that spares passes, and with nothing of it. */
static enum status cuda_size(uint64_t *size, const struct tape *tape,
                             const struct machine_options *options, struct error *error)
{
    enum status status;

    *size = 0;
    status = size_without(size, tape, options, 0, error);
    return status != STATUS_OK || options->trace ? status
                                                 : size_without(size, tape, options, ~0u, error);
}

bool cuda_can_be_read(const struct machine_cuda *cuda, uint32_t tensor)
{
    const struct tape *tape = cuda->machine.tape;

    if (tensor >= tape->tensor_count || tape->tensors[tensor].role == ROLE_DATA ||
        cuda->memory[tensor] == NULL) {
        return false;
    }
    return tape->tensors[tensor].role != ROLE_TEMPORARY || tensor == tape->loss;
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
        result = cuda->way.calls->upload(cuda->device, cuda->memory[tensor], bytes,
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
                       cuda->way.calls->download(cuda->device, bytes, cuda->memory[tensor],
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
    result = cuda->way.calls->upload(cuda->device, cuda->memory[tensor], bytes,
                                     cuda_tensor_bytes(machine->tape, tensor));
    cuda->bound[tensor] = result == DEVICE_OK;
    return cuda_failed(cuda, result, "an upload", error);
}

/* Nothing of a device is in host memory. */
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

static enum status show(struct machine_cuda *cuda, const struct observer *observer, uint32_t at,
                        struct error *error)
{
    const struct tape *tape = cuda->machine.tape;
    const struct op *op = &tape->ops[at];

    for (uint32_t i = 0; i < op->output_count; i++) {
        const uint64_t size = cuda_tensor_bytes(tape, op->outputs[i]);
        enum status status =
            cuda_failed(cuda,
                        cuda->way.calls->download(cuda->device, cuda->shown,
                                                  cuda->memory[op->outputs[i]], size),
                        op_kind_name(op->kind), error);

        if (status == STATUS_OK) {
            status = observer->made(observer->context, at, i, cuda->shown, size, error);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status run_timed(struct machine_cuda *cuda, uint32_t at, uint32_t *next, uint32_t last,
                             struct error *error)
{
    const struct device_calls *calls = cuda->way.calls;
    enum device_result result = calls->mark(cuda->device, 0);
    double seconds = 0.0;

    if (result == DEVICE_OK) {
        result = launch_unit(next, &cuda->launcher, at, last);
    }
    if (result == DEVICE_OK) {
        result = calls->mark(cuda->device, 1);
    }
    if (result == DEVICE_OK) {
        result = calls->seconds(cuda->device, &seconds, 0, 1);
    }
    if (result == DEVICE_OK) {
        cuda->options.timed(cuda->options.timed_context, at, seconds);
    }
    return cuda_failed(cuda, result, op_kind_name(cuda->machine.tape->ops[at].kind), error);
}

static enum device_result take_next_states(struct machine_cuda *cuda)
{
    const struct tape *tape = cuda->machine.tape;
    enum device_result result = DEVICE_OK;

    for (uint32_t i = 0; i < tape->state_count && result == DEVICE_OK; i++) {
        if (cuda->plan.copied[i]) {
            result = cuda->way.calls->copy(cuda->device, cuda->memory[tape->states[i].before],
                                           cuda->memory[tape->states[i].after],
                                           cuda_tensor_bytes(tape, tape->states[i].before));
        }
    }
    return result;
}

/* Queues operations call by call; behind the last of a step, the states' next values. */
static enum status queue_ops(struct machine_cuda *cuda, const struct leg *leg,
                             const struct observer *observer, struct error *error)
{
    const struct tape *tape = &cuda->tape;
    uint32_t next;

    for (uint32_t at = leg->first; at < leg->last; at = next) {
        enum status status = STATUS_OK;

        next = at + 1;
        if (!cuda->plan.runs[at]) {
            continue;
        }
        if (cuda->options.timed != NULL) {
            status = run_timed(cuda, at, &next, leg->last, error);
        } else {
            status = cuda_failed(cuda, launch_unit(&next, &cuda->launcher, at, leg->last),
                                 op_kind_name(tape->ops[at].kind), error);
        }
        if (status == STATUS_OK && observer != NULL) {
            status = show(cuda, observer, at, error);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return !leg->ends ? STATUS_OK
                      : cuda_failed(cuda, take_next_states(cuda), "the copy of states", error);
}

/* Its place among those that are kept; NULL where there is none left. *known: it was there. */
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

/* Records a leg as a graph; where the runtime refuses, steps go on call by call. */
static void record_leg(struct machine_cuda *cuda, struct leg *leg)
{
    const struct device_calls *calls = cuda->way.calls;
    struct error ignored;

    error_init(&ignored);
    if (calls->record(cuda->device) != DEVICE_OK) {
        cuda->graph_refused = true;
        return;
    }
    bool queued = queue_ops(cuda, leg, NULL, &ignored) == STATUS_OK;

    if (calls->recorded(cuda->device, &leg->graph) != DEVICE_OK || !queued) {
        calls->forget(cuda->device, leg->graph);
        leg->graph = NULL;
        cuda->graph_refused = true;
    }
}

/* The first time is queued plainly: the runtime loads kernels when they are first used. */
static enum status run_leg(struct machine_cuda *cuda, const struct leg *wanted, struct error *error)
{
    bool known = false;
    struct leg *leg = find_leg(&known, cuda, wanted);

    if (leg != NULL && known && leg->graph == NULL && !cuda->graph_refused) {
        record_leg(cuda, leg);
    }
    if (leg != NULL && leg->graph != NULL) {
        return cuda_failed(cuda, cuda->way.calls->replay(cuda->device, leg->graph), "the step",
                           error);
    }
    return queue_ops(cuda, wanted, NULL, error);
}

/*
 * A step is two legs: up to where it writes states, and on from there. Between them it waits for
 * the hashing of the states that the step before left, which has gone on beside the first.
 */
static enum status run_legs(struct machine_cuda *cuda, uint32_t first, uint32_t last,
                            struct error *error)
{
    const bool ends = last == cuda->machine.tape->op_count;
    const uint32_t writing = cuda->first_writing < first  ? first
                             : cuda->first_writing > last ? last
                                                          : cuda->first_writing;
    const struct leg before = {.first = first, .last = writing};
    const struct leg after = {.first = writing, .last = last, .ends = ends};
    enum status status = STATUS_OK;

    if (cuda->hashing.pending && !cuda->hashing.states_only) {
        status = cuda_failed(cuda, cuda_hash_join(cuda), "hashing", error);
    }
    if (status == STATUS_OK && before.first < before.last) {
        status = run_leg(cuda, &before, error);
    }
    if (status != STATUS_OK || (after.first == after.last && !ends)) {
        return status;
    }
    status = cuda_failed(cuda, cuda_hash_join(cuda), "hashing", error);
    return status == STATUS_OK ? run_leg(cuda, &after, error) : status;
}

static enum status cuda_run(struct machine *machine, uint32_t first, uint32_t last,
                            const struct observer *observer, struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    const struct leg all = {first, last, .ends = last == machine->tape->op_count};
    enum status status = check_bound(cuda, error);

    assert(observer == NULL || cuda->options.trace);
    if (status != STATUS_OK) {
        return status;
    }
    if (!cuda->options.trace && cuda->options.timed == NULL) {
        return run_legs(cuda, first, last, error);
    }
    status = cuda_failed(cuda, cuda_hash_join(cuda), "hashing", error);
    return status == STATUS_OK ? queue_ops(cuda, &all, observer, error) : status;
}

static enum status cuda_step(struct machine *machine, const struct observer *observer,
                             struct error *error)
{
    return cuda_run(machine, 0, machine->tape->op_count, observer, error);
}

/* Waits for both: neither may touch its memory again before the copy is done. */
static enum status cuda_take(struct machine *machine, uint32_t tensor, struct machine *from,
                             uint32_t from_tensor, struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    struct machine_cuda *other = cuda_of(from);
    const struct device_calls *calls = cuda->way.calls;
    enum status status = cuda_failed(other, calls->wait(other->device), "what is queued", error);

    assert(cuda->plan.in_state[tensor] && cuda_can_be_read(other, from_tensor));
    if (status != STATUS_OK) {
        return status;
    }
    status = cuda_failed(cuda, cuda_hash_join(cuda), "hashing", error);
    if (status != STATUS_OK) {
        return status;
    }
    status = cuda_failed(cuda,
                         calls->copy(cuda->device, cuda->memory[tensor], other->memory[from_tensor],
                                     cuda_tensor_bytes(machine->tape, tensor)),
                         "a copy between devices", error);
    return status == STATUS_OK
               ? cuda_failed(cuda, calls->wait(cuda->device), "a copy between devices", error)
               : status;
}

/* ---- for benchmarks ---------------------------------------------------------------- */

const struct device_facts *machine_cuda_facts(const struct machine *machine)
{
    return &((const struct machine_cuda *)machine)->facts;
}

enum status machine_cuda_wait(struct machine *machine, struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);

    return cuda_failed(cuda, cuda->way.calls->wait(cuda->device), "the queue", error);
}

enum status machine_cuda_time(double *seconds, struct machine *machine, uint32_t steps,
                              struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    const struct device_calls *calls = cuda->way.calls;
    enum status status = cuda_failed(cuda, calls->mark(cuda->device, 2), "a mark", error);

    for (uint32_t i = 0; i < steps && status == STATUS_OK; i++) {
        status = cuda_step(machine, NULL, error);
    }
    if (status == STATUS_OK) {
        status = cuda_failed(cuda, calls->mark(cuda->device, 3), "a mark", error);
    }
    if (status == STATUS_OK) {
        status = cuda_failed(cuda, calls->seconds(cuda->device, seconds, 2, 3), "a mark", error);
    }
    return status;
}

const struct backend backend_cuda = {
    .name = "cuda",
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
