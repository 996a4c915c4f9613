/* cuda_memory.c - see cuda_memory.h. */
#include "engine/cuda/machine/cuda_memory.h"

#include <stdlib.h>
#include <string.h>

#include "engine/cuda/fusions/fuse.h"
#include "engine/cuda/launch/launch.h"
#include "engine/cuda/machine/hashing.h"

#define MIB 1048576.0

/* ---- planning ----------------------------------------------------------------- */

static uint64_t hook_size(const void *context, const struct op *op, uint32_t output,
                          const struct tensor *tensors)
{
    const struct machine_cuda *cuda = context;

    return launch_output_size(op, output, tensors, cuda->launcher.packed);
}

static bool hook_in_place(const void *context, const struct op *op, uint32_t output, uint32_t input)
{
    (void)context;
    return launch_in_place(op, output, input);
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

static uint64_t aligned_size(uint64_t size)
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
        if (cuda->plan.runs[at] && !cuda->config.rules_only) {
            raise_to(&most,
                     launch_scratch_size(&tape->ops[at], tape->tensors, cuda->launcher.packed));
        }
    }
    return most;
}

/* The first operation that writes a state: the states of the step before may still be hashed. */
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

static enum status make_fusion(struct machine_cuda *cuda, bool roomy, struct error *error)
{
    cuda->tape = *cuda->machine.tape;
    if (cuda->fused) {
        const struct fusion_facts facts = {.disabled = cuda->config.disabled,
                                           .shared_max = cuda->facts.shared_max,
                                           .in_legs = cuda->options.in_legs,
                                           .roomy = roomy};

        TRY(fuse_tape(&cuda->fusion, cuda->machine.tape, &facts, error));
        cuda->tape.ops = cuda->fusion.ops;
        cuda->block_sizes[BLOCK_LISTS] = cuda->fusion.size;
    }
    return STATUS_OK;
}

static enum status plan_once(struct machine_cuda *cuda, bool roomy, struct error *error)
{
    const struct tape *tape = &cuda->tape;
    /* A trace shows each tensor, and rules_only is for kernels in doubt: neither may fuse or
     * omit. */
    const bool fast = !cuda->options.trace && !cuda->config.rules_only;
    const struct plan_hooks hooks = {.context = cuda,
                                     .keep_all = cuda->options.trace,
                                     .output_size = hook_size,
                                     .in_place = fast ? hook_in_place : NULL,
                                     .may_omit = fast ? hook_may_omit : NULL,
                                     .unit_end = fast ? hook_unit_end : NULL,
                                     .holder = fast ? hook_holder : NULL};

    cuda->launcher.packed = fast;
    cuda->fused = fast;
    TRY(make_fusion(cuda, roomy, error));
    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (!launch_takes(&tape->ops[at])) {
            return error_set(error, STATUS_OVER_LIMIT,
                             "operation %u contracts rows too long for the CUDA backend", at);
        }
    }
    TRY(plan_build(&cuda->plan, tape, &hooks, error));
    /* Fusing comes before the plan, which then knows what is never written; places come out of the
     * plan, and a group whose places clash is cut again. */
    if (cuda->fused) {
        fuse_check(&cuda->fusion, tape, &cuda->plan, &hooks);
    }
    cuda->block_sizes[BLOCK_STATE] = cuda->plan.state_size;
    cuda->block_sizes[BLOCK_TEMPORARY] = cuda->plan.temporary_size;
    cuda->block_sizes[BLOCK_SCRATCH] = scratch_size(cuda);
    cuda->block_sizes[BLOCK_OPS] = aligned_size((uint64_t)tape->op_count * sizeof(*tape->ops));
    cuda_hash_sizes(cuda->block_sizes, cuda);
    cuda->first_writing = first_writing(cuda);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA) {
            cuda->block_sizes[BLOCK_DATA] += aligned_size(cuda_tensor_bytes(tape, id));
        }
    }
    return STATUS_OK;
}

uint64_t cuda_memory_size(const struct machine_cuda *cuda)
{
    uint64_t size = 0;

    for (int block = 0; block < BLOCK_COUNT; block++) {
        size += cuda->block_sizes[block];
    }
    return size;
}

static void forget_plan(struct machine_cuda *cuda)
{
    plan_release(&cuda->plan);
    fusion_release(&cuda->fusion);
    memset(cuda->block_sizes, 0, sizeof(cuda->block_sizes));
}

/* Is a plan with room for the limbs of parameters no larger than one without any variant? */
static enum status find_room(bool *roomy, struct machine_cuda *cuda, struct error *error)
{
    struct machine_cuda bare = {
        .machine = cuda->machine, .options = cuda->options, .config = {.disabled = ~0u}};

    TRY(plan_once(cuda, true, error));
    const enum status status = plan_once(&bare, false, error);

    *roomy = cuda_memory_size(cuda) <= cuda_memory_size(&bare);
    forget_plan(&bare);
    return status;
}

/* What machine.c says of a tape's size holds for the larger of these plans. */
enum status cuda_memory_plan(struct machine_cuda *cuda, struct error *error)
{
    bool roomy = false;

    if (!cuda->options.trace && !cuda->config.rules_only &&
        (cuda->config.disabled >> VARIANT_TILES & 1) == 0) {
        TRY(find_room(&roomy, cuda, error));
        if (roomy) {
            return STATUS_OK;
        }
        forget_plan(cuda);
    }
    return plan_once(cuda, false, error);
}

/* ---- memory -------------------------------------------------------------------- */

static enum status allocate_blocks(struct machine_cuda *cuda, struct error *error)
{
    const uint64_t total = cuda_memory_size(cuda);

    if (cuda->options.memory_max != 0 && total > cuda->options.memory_max) {
        return error_set(error, STATUS_NO_MEMORY,
                         "the tape needs %.1f MiB of device memory, and %.1f MiB are allowed",
                         (double)total / MIB, (double)cuda->options.memory_max / MIB);
    }
    for (int block = 0; block < BLOCK_COUNT; block++) {
        enum device_result result = DEVICE_OK;

        if (cuda->block_sizes[block] > 0) {
            result = cuda->config.calls->allocate(cuda->device, &cuda->blocks[block],
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
        TRY(cuda_failed(cuda, result, "allocating", error));
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
            data += aligned_size(cuda_tensor_bytes(tape, id));
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

static void fill_launcher(struct machine_cuda *cuda)
{
    const uint32_t processors =
        cuda->facts.multiprocessors < 1 ? 1 : (uint32_t)cuda->facts.multiprocessors;

    cuda->launcher = (struct launcher){.calls = cuda->config.calls,
                                       .device = cuda->device,
                                       .tape = &cuda->tape,
                                       .ops = cuda->blocks[BLOCK_OPS],
                                       .memory = cuda->memory,
                                       .scratch = cuda->blocks[BLOCK_SCRATCH],
                                       .block_count = processors * BLOCKS_PER_PROCESSOR,
                                       .capability = cuda->facts.capability,
                                       .processors = (uint32_t)cuda->facts.multiprocessors,
                                       .shared_max = cuda->facts.shared_max,
                                       .disabled = cuda->config.disabled,
                                       .quicker = cuda->config.quicker,
                                       .packed = cuda->launcher.packed,
                                       .rules_only = cuda->config.rules_only};
}

/* Fills the states with zeros and sends the operations and the lists of fused ones. */
static enum status fill_first(struct machine_cuda *cuda, struct error *error)
{
    const struct device_calls *calls = cuda->config.calls;
    enum device_result result = DEVICE_OK;

    if (cuda->block_sizes[BLOCK_STATE] > 0) {
        result =
            calls->fill(cuda->device, cuda->blocks[BLOCK_STATE], 0, cuda->block_sizes[BLOCK_STATE]);
    }
    if (result == DEVICE_OK && cuda->tape.op_count > 0) {
        result = calls->upload(cuda->device, cuda->blocks[BLOCK_OPS], cuda->tape.ops,
                               (uint64_t)cuda->tape.op_count * sizeof(*cuda->tape.ops));
    }
    if (result == DEVICE_OK && cuda->fused) {
        TRY(fuse_upload(&result, &cuda->fusion, &cuda->launcher, cuda->blocks[BLOCK_LISTS], error));
    }
    return cuda_failed(cuda, result, "the first upload", error);
}

enum status cuda_memory_open(struct machine_cuda *cuda, struct error *error)
{
    TRY(allocate_blocks(cuda, error));
    TRY(place_tensors(cuda, error));
    fill_launcher(cuda);
    return fill_first(cuda, error);
}

void cuda_memory_close(struct machine_cuda *cuda)
{
    for (int block = 0; block < BLOCK_COUNT && cuda->device != NULL; block++) {
        cuda->config.calls->release(cuda->device, cuda->blocks[block]);
    }
    free(cuda->memory);
    free(cuda->bound);
    free(cuda->shown);
    plan_release(&cuda->plan);
    fusion_release(&cuda->fusion);
}
