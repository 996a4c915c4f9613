/*
 * hashing.c - see hashing.h.
 *
 * Lane 1 waits for what was queued on lane 0 before the hashing began, and lane 0 waits for lane 1
 * before it writes what is hashed: two signals, and nothing else, order the two. Roots, the table
 * of what to hash and scratch have memory that no step touches.
 */
#include "engine/cuda/machine/hashing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/launch/launch_hash.h"

#define LANE_STEPS     0
#define LANE_HASHING   1
#define SIGNAL_STEPPED 0
#define SIGNAL_HASHED  1
/* Two words before the roots: a state is not finite now; it was not when it was hashed. */
#define WORDS_SIZE     UINT64_C(256)

void cuda_hash_sizes(uint64_t sizes[BLOCK_COUNT], struct machine_cuda *cuda)
{
    const struct tape *tape = cuda->machine.tape;
    struct hash_item one = {.bytes = NULL};

    cuda->roots_max = tape->tensor_count < CUDA_ROOTS_MAX ? tape->tensor_count + 1 : CUDA_ROOTS_MAX;
    sizes[BLOCK_WORDS] =
        WORDS_SIZE + cuda->roots_max * (sizeof(struct digest) + sizeof(struct hash_item));
    /* Scratch for all that can be read, at once. */
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        enum role role = tape->tensors[id].role;

        if ((role != ROLE_TEMPORARY || id == tape->loss) && role != ROLE_DATA) {
            one.size = cuda_tensor_bytes(tape, id);
            launch_hash_plan(&one, 1);
            sizes[BLOCK_HASH] += launch_hash_scratch_size(&one, 1);
        }
    }
}

static uint32_t *word_now(const struct machine_cuda *cuda)
{
    return cuda->blocks[BLOCK_WORDS];
}

static uint32_t *word_hashed(const struct machine_cuda *cuda)
{
    return word_now(cuda) + 1;
}

static struct digest *roots_of(const struct machine_cuda *cuda)
{
    return (struct digest *)((uint8_t *)cuda->blocks[BLOCK_WORDS] + WORDS_SIZE);
}

static struct hash_item *items_of(const struct machine_cuda *cuda)
{
    return (struct hash_item *)(roots_of(cuda) + cuda->roots_max);
}

/* ---- numbers that are not finite ------------------------------------------------- */

/* Queues the search through every binary32 state. */
static enum device_result search_states(const struct machine_cuda *cuda, uint32_t *word)
{
    const struct tape *tape = cuda->machine.tape;
    enum device_result result = cuda->config.calls->fill(cuda->device, word, 0, sizeof(*word));

    for (uint32_t i = 0; i < tape->state_count && result == DEVICE_OK; i++) {
        const uint32_t id = tape->states[i].before;

        if (tape->tensors[id].dtype == DTYPE_F32) {
            result =
                launch_finite(&cuda->launcher, word, cuda->memory[id], tape->tensors[id].count);
        }
    }
    return result;
}

enum status cuda_diverged(struct machine *machine, bool *diverged, struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    uint32_t found = 0;
    enum device_result result = search_states(cuda, word_now(cuda));

    if (result == DEVICE_OK) {
        result = cuda->config.calls->download(cuda->device, &found, word_now(cuda), sizeof(found));
    }
    *diverged = found != 0;
    return cuda_failed(cuda, result, "the search for numbers that are not finite", error);
}

/* ---- roots ------------------------------------------------------------------------ */

/* Sends the table of items, unless the device has it: sending waits. */
static enum device_result send_items(struct machine_cuda *cuda, const uint32_t *tensors,
                                     uint32_t count)
{
    struct hashing *hashing = &cuda->hashing;
    bool same = count == hashing->count;

    hashing->states_only = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct hash_item item = {.bytes = cuda->memory[tensors[i]],
                                       .size = cuda_tensor_bytes(cuda->machine.tape, tensors[i])};

        same = same && hashing->items[i].bytes == item.bytes && hashing->items[i].size == item.size;
        if (!same) {
            hashing->items[i] = item;
        }
        hashing->states_only = hashing->states_only && cuda->plan.in_state[tensors[i]];
    }
    if (same) {
        return DEVICE_OK;
    }
    launch_hash_plan(hashing->items, count);
    /* The scratch was planned for each tensor once. */
    assert(launch_hash_scratch_size(hashing->items, count) <= cuda->block_sizes[BLOCK_HASH]);
    hashing->count = 0; /* if the upload fails, the device has no table */
    enum device_result result = cuda->config.calls->upload(
        cuda->device, items_of(cuda), hashing->items, count * sizeof(*hashing->items));

    hashing->count = result == DEVICE_OK ? count : 0;
    return result;
}

static enum device_result queue_hashing(struct machine_cuda *cuda, const uint32_t *tensors,
                                        uint32_t count)
{
    struct launcher launcher = cuda->launcher;

    launcher.scratch = cuda->blocks[BLOCK_HASH];
    DEVICE_TRY(cuda->config.calls->await(cuda->device, SIGNAL_STEPPED));
    DEVICE_TRY(send_items(cuda, tensors, count));
    if (count > 0) {
        DEVICE_TRY(
            launch_hash(&launcher, roots_of(cuda), items_of(cuda), cuda->hashing.items, count));
    }
    DEVICE_TRY(search_states(cuda, word_hashed(cuda)));
    return cuda->config.calls->signal(cuda->device, SIGNAL_HASHED);
}

/* Queues the hashing on its lane. */
static enum device_result begin_hashing(struct machine_cuda *cuda, const uint32_t *tensors,
                                        uint32_t count)
{
    const struct device_calls *calls = cuda->config.calls;
    enum device_result result = calls->signal(cuda->device, SIGNAL_STEPPED);

    if (result != DEVICE_OK) {
        return result;
    }
    calls->lane(cuda->device, LANE_HASHING);
    result = queue_hashing(cuda, tensors, count);
    calls->lane(cuda->device, LANE_STEPS);
    return result;
}

static enum status check_tensors(const struct machine_cuda *cuda, const uint32_t *tensors,
                                 uint32_t count, struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!cuda_can_be_read(cuda, tensors[i])) {
            return error_set(error, STATUS_USAGE, "tensor %u cannot be read", tensors[i]);
        }
    }
    return STATUS_OK;
}

enum status cuda_hash_begin(struct machine *machine, const uint32_t *tensors, uint32_t count,
                            struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    struct hashing *hashing = &cuda->hashing;
    enum status status;

    TRY(check_tensors(cuda, tensors, count, error));
    if (hashing->pending || count > cuda->roots_max) {
        return error_set(error, STATUS_USAGE, "%u tensors cannot be hashed at once", count);
    }
    if (hashing->items == NULL) {
        hashing->items = calloc((size_t)cuda->roots_max + 1, sizeof(*hashing->items));
    }
    if (hashing->items == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to hash %u tensors", count);
    }
    status = cuda_failed(cuda, begin_hashing(cuda, tensors, count), "hashing", error);
    hashing->pending = status == STATUS_OK;
    hashing->joined = false;
    return status;
}

enum status cuda_hash_end(struct machine *machine, struct digest *roots, bool *diverged,
                          struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    const struct device_calls *calls = cuda->config.calls;
    const uint64_t size = cuda->hashing.count * sizeof(*roots);
    uint32_t found = 0;
    enum device_result result = DEVICE_OK;

    assert(cuda->hashing.pending);
    cuda->hashing.pending = false;
    calls->lane(cuda->device, LANE_HASHING);
    if (size > 0) {
        result = calls->download(cuda->device, roots, roots_of(cuda), size);
    }
    if (result == DEVICE_OK) {
        result = calls->download(cuda->device, &found, word_hashed(cuda), sizeof(found));
    }
    calls->lane(cuda->device, LANE_STEPS);
    *diverged = found != 0;
    return cuda_failed(cuda, result, "hashing", error);
}

enum device_result cuda_hash_join(struct machine_cuda *cuda)
{
    enum device_result result = DEVICE_OK;

    if (cuda->hashing.pending && !cuda->hashing.joined) {
        result = cuda->config.calls->await(cuda->device, SIGNAL_HASHED);
        cuda->hashing.joined = result == DEVICE_OK;
    }
    return result;
}

enum status cuda_leaves_roots(struct machine *machine, struct digest *roots,
                              const uint32_t *tensors, uint32_t count, struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    bool ignored;

    for (uint32_t first = 0; first < count; first += cuda->roots_max) {
        const uint32_t some = count - first < cuda->roots_max ? count - first : cuda->roots_max;

        TRY(cuda_hash_begin(machine, tensors + first, some, error));
        TRY(cuda_hash_end(machine, roots + first, &ignored, error));
    }
    return STATUS_OK;
}
