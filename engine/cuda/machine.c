/*
 * machine.c - the CUDA backend: device memory by the plan, and the operations queued on a stream.
 *
 * Everything is allocated when the machine is opened. A step only queues work: in fast mode the
 * first is queued call by call and the second is recorded, to be replayed as one graph from then
 * on. So an error of the device may come out of a later call; all calls that hand bytes to the
 * caller wait and would tell it. An error is never a difference: whoever gets STATUS_DEVICE or
 * STATUS_NO_MEMORY cannot tell.
 */
#include "engine/cuda/machine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/launch.h"
#include "engine/cuda/loader.h"
#include "engine/cuda/paths.h"
#include "engine/plan.h"

#define MIB                  1048576.0
#define BLOCKS_PER_PROCESSOR 32   /* of striding grids */
#define CUDA_ROOTS_MAX       4096 /* digests that wait on the device for one download, at most */
#define ALIGNMENT            UINT64_C(256)
#define LEGS_MAX             32 /* that are kept as graphs; more are queued call by call */

enum {
    BLOCK_STATE,
    BLOCK_TEMPORARY,
    BLOCK_SCRATCH,
    BLOCK_DATA,
    BLOCK_OPS,
    BLOCK_WORDS,
    BLOCK_COUNT
};

/* A run of operations that is queued as one, from its second time on. */
struct leg {
    uint32_t first;
    uint32_t last; /* 0: a leg that is not in use */
    struct device_graph *graph;
};

struct machine_cuda {
    struct machine machine;
    struct machine_options options;
    struct machine_way way;
    struct device *device;
    struct device_facts facts;
    struct plan plan;
    struct launcher launcher;
    void *blocks[BLOCK_COUNT];
    uint64_t block_sizes[BLOCK_COUNT];
    void **memory;  /* per tensor, of the device; NULL: not there */
    bool *bound;    /* per tensor: data that was given */
    uint8_t *shown; /* trace: host memory for the largest output */
    struct leg legs[LEGS_MAX];
    uint32_t roots_max; /* digests that there is room for */
    bool graph_refused; /* recording failed once: never tried again */
};

static struct machine_cuda *cuda_of(struct machine *machine)
{
    return (struct machine_cuda *)machine;
}

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

static enum status failed(const struct machine_cuda *cuda, enum device_result result,
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

static uint64_t tensor_bytes(const struct tape *tape, uint32_t id)
{
    return tape->tensors[id].count * dtype_size(tape->tensors[id].dtype);
}

static uint64_t aligned(uint64_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void raise_to(uint64_t *most, uint64_t size)
{
    *most = size > *most ? size : *most;
}

/* Scratch to hash all that can be read, at once. */
static uint64_t hashing_size(const struct tape *tape)
{
    struct hash_item one = {.bytes = NULL};
    uint64_t size = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        enum role role = tape->tensors[id].role;

        if ((role != ROLE_TEMPORARY || id == tape->loss) && role != ROLE_DATA) {
            one.size = tensor_bytes(tape, id);
            launch_hash_plan(&one, 1);
            size += launch_hash_scratch_size(&one, 1);
        }
    }
    return size;
}

/* Scratch of operations, and of hashing. */
static uint64_t scratch_size(const struct machine_cuda *cuda)
{
    const struct tape *tape = cuda->machine.tape;
    uint64_t most = 0;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (cuda->plan.runs[at] && !cuda->way.rules_only) {
            raise_to(&most,
                     launch_scratch_size(&tape->ops[at], tape->tensors, cuda->launcher.packed));
        }
    }
    raise_to(&most, hashing_size(tape));
    return most;
}

static enum status make_plan(struct machine_cuda *cuda, struct error *error)
{
    const struct tape *tape = cuda->machine.tape;
    const bool fast = !cuda->options.trace && !cuda->way.rules_only;
    const struct plan_hooks hooks = {.context = cuda,
                                     .keep_all = cuda->options.trace,
                                     .output_size = hook_size,
                                     .in_place = fast ? hook_in_place : NULL,
                                     .may_omit = fast ? hook_may_omit : NULL};
    enum status status;

    cuda->launcher.packed = fast;
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
    cuda->block_sizes[BLOCK_STATE] = cuda->plan.state_size;
    cuda->block_sizes[BLOCK_TEMPORARY] = cuda->plan.temporary_size;
    cuda->block_sizes[BLOCK_SCRATCH] = scratch_size(cuda);
    cuda->block_sizes[BLOCK_OPS] = aligned((uint64_t)tape->op_count * sizeof(*tape->ops));
    cuda->roots_max = tape->tensor_count < CUDA_ROOTS_MAX ? tape->tensor_count + 1 : CUDA_ROOTS_MAX;
    cuda->block_sizes[BLOCK_WORDS] =
        cuda->roots_max * (sizeof(struct digest) + sizeof(struct hash_item));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA) {
            cuda->block_sizes[BLOCK_DATA] += aligned(tensor_bytes(tape, id));
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
            return failed(cuda, result, "allocating", error);
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
            data += aligned(tensor_bytes(tape, id));
        } else if (cuda->plan.places[id] != PLAN_ABSENT) {
            int block = cuda->plan.in_state[id] ? BLOCK_STATE : BLOCK_TEMPORARY;

            cuda->memory[id] = (uint8_t *)cuda->blocks[block] + cuda->plan.places[id];
        }
        raise_to(&largest, tensor_bytes(tape, id));
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
    const struct tape *tape = cuda->machine.tape;
    enum device_result result = DEVICE_OK;

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
    return failed(cuda, result, "the first upload", error);
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
    free(cuda->memory);
    free(cuda->bound);
    free(cuda->shown);
    plan_release(&cuda->plan);
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
    cuda->machine = (struct machine){&backend_cuda, tape};
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

static enum status cuda_size(uint64_t *size, const struct tape *tape,
                             const struct machine_options *options, struct error *error)
{
    struct machine_cuda cuda = {.machine = {&backend_cuda, tape}, .options = *options};
    enum status status = make_plan(&cuda, error);

    *size = 0;
    for (int block = 0; block < BLOCK_COUNT; block++) {
        *size += cuda.block_sizes[block];
    }
    plan_release(&cuda.plan);
    return status;
}

static bool can_be_read(const struct machine_cuda *cuda, uint32_t tensor)
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

    if (tensor >= machine->tape->tensor_count || !cuda->plan.in_state[tensor] ||
        role_is_made(machine->tape->tensors[tensor].role)) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be written", tensor);
    }
    return failed(cuda,
                  cuda->way.calls->upload(cuda->device, cuda->memory[tensor], bytes,
                                          tensor_bytes(machine->tape, tensor)),
                  "an upload", error);
}

static enum status cuda_read(struct machine *machine, uint32_t tensor, void *bytes,
                             struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);

    if (!can_be_read(cuda, tensor)) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be read", tensor);
    }
    return failed(cuda,
                  cuda->way.calls->download(cuda->device, bytes, cuda->memory[tensor],
                                            tensor_bytes(machine->tape, tensor)),
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
                                     tensor_bytes(machine->tape, tensor));
    cuda->bound[tensor] = result == DEVICE_OK;
    return failed(cuda, result, "an upload", error);
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
        const uint64_t size = tensor_bytes(tape, op->outputs[i]);
        enum status status = failed(cuda,
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

static enum status run_timed(struct machine_cuda *cuda, uint32_t at, struct error *error)
{
    const struct device_calls *calls = cuda->way.calls;
    enum device_result result = calls->mark(cuda->device, 0);
    double seconds = 0.0;

    if (result == DEVICE_OK) {
        result = launch_op(&cuda->launcher, at);
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
    return failed(cuda, result, op_kind_name(cuda->machine.tape->ops[at].kind), error);
}

static enum device_result take_next_states(struct machine_cuda *cuda)
{
    const struct tape *tape = cuda->machine.tape;
    enum device_result result = DEVICE_OK;

    for (uint32_t i = 0; i < tape->state_count && result == DEVICE_OK; i++) {
        if (cuda->plan.copied[i]) {
            result = cuda->way.calls->copy(cuda->device, cuda->memory[tape->states[i].before],
                                           cuda->memory[tape->states[i].after],
                                           tensor_bytes(tape, tape->states[i].before));
        }
    }
    return result;
}

/* Queues operations call by call; behind the last of a step, the states' next values. */
static enum status queue_ops(struct machine_cuda *cuda, uint32_t first, uint32_t last,
                             const struct observer *observer, struct error *error)
{
    const struct tape *tape = cuda->machine.tape;

    for (uint32_t at = first; at < last; at++) {
        enum status status = STATUS_OK;

        if (!cuda->plan.runs[at]) {
            continue;
        }
        if (cuda->options.timed != NULL) {
            status = run_timed(cuda, at, error);
        } else {
            status = failed(cuda, launch_op(&cuda->launcher, at), op_kind_name(tape->ops[at].kind),
                            error);
        }
        if (status == STATUS_OK && observer != NULL) {
            status = show(cuda, observer, at, error);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return last < tape->op_count
               ? STATUS_OK
               : failed(cuda, take_next_states(cuda), "the copy of states", error);
}

/* The leg's place; NULL where there is none left. *known: it has been queued before. */
static struct leg *find_leg(bool *known, struct machine_cuda *cuda, uint32_t first, uint32_t last)
{
    for (int i = 0; i < LEGS_MAX; i++) {
        struct leg *leg = &cuda->legs[i];

        *known = leg->first == first && leg->last == last;
        if (*known || leg->last == 0) {
            leg->first = first;
            leg->last = last;
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
    bool queued = queue_ops(cuda, leg->first, leg->last, NULL, &ignored) == STATUS_OK;

    if (calls->recorded(cuda->device, &leg->graph) != DEVICE_OK || !queued) {
        calls->forget(cuda->device, leg->graph);
        leg->graph = NULL;
        cuda->graph_refused = true;
    }
}

static enum status cuda_run(struct machine *machine, uint32_t first, uint32_t last,
                            const struct observer *observer, struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    enum status status = check_bound(cuda, error);
    struct leg *leg;
    bool known = false;

    assert(observer == NULL || cuda->options.trace);
    if (status != STATUS_OK) {
        return status;
    }
    if (cuda->options.trace || cuda->options.timed != NULL) {
        return queue_ops(cuda, first, last, observer, error);
    }
    /* The first time is queued plainly: the runtime loads kernels when they are first used. */
    leg = find_leg(&known, cuda, first, last);
    if (leg != NULL && known && leg->graph == NULL && !cuda->graph_refused) {
        record_leg(cuda, leg);
    }
    if (leg != NULL && leg->graph != NULL) {
        return failed(cuda, cuda->way.calls->replay(cuda->device, leg->graph), "the step", error);
    }
    return queue_ops(cuda, first, last, observer, error);
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
    enum status status = failed(other, calls->wait(other->device), "what is queued", error);

    assert(cuda->plan.in_state[tensor] && can_be_read(other, from_tensor));
    if (status != STATUS_OK) {
        return status;
    }
    status = failed(cuda,
                    calls->copy(cuda->device, cuda->memory[tensor], other->memory[from_tensor],
                                tensor_bytes(machine->tape, tensor)),
                    "a copy between devices", error);
    return status == STATUS_OK
               ? failed(cuda, calls->wait(cuda->device), "a copy between devices", error)
               : status;
}

static enum status cuda_diverged(struct machine *machine, bool *diverged, struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    const struct device_calls *calls = cuda->way.calls;
    const struct tape *tape = machine->tape;
    uint32_t *word = cuda->blocks[BLOCK_WORDS];
    uint32_t found = 0;
    enum device_result result = calls->fill(cuda->device, word, 0, sizeof(*word));

    for (uint32_t i = 0; i < tape->state_count && result == DEVICE_OK; i++) {
        const uint32_t id = tape->states[i].before;

        if (tape->tensors[id].dtype == DTYPE_F32) {
            result =
                launch_finite(&cuda->launcher, word, cuda->memory[id], tape->tensors[id].count);
        }
    }
    if (result == DEVICE_OK) {
        result = calls->download(cuda->device, &found, word, sizeof(found));
    }
    *diverged = found != 0;
    return failed(cuda, result, "looking for numbers that are none", error);
}

/* At most roots_max at once. Roots and the table of items lie in BLOCK_WORDS. */
static enum device_result hash_some(struct machine_cuda *cuda, struct digest *roots,
                                    struct hash_item *items, const uint32_t *tensors,
                                    uint32_t count)
{
    const struct device_calls *calls = cuda->way.calls;
    struct digest *words = cuda->blocks[BLOCK_WORDS];
    struct hash_item *on_device = (struct hash_item *)(words + cuda->roots_max);
    enum device_result result;

    for (uint32_t i = 0; i < count; i++) {
        items[i].bytes = cuda->memory[tensors[i]];
        items[i].size = tensor_bytes(cuda->machine.tape, tensors[i]);
    }
    launch_hash_plan(items, count);
    /* Each tensor at most once: that is what the scratch was planned for. */
    assert(launch_hash_scratch_size(items, count) <= cuda->block_sizes[BLOCK_SCRATCH]);
    result = calls->upload(cuda->device, on_device, items, count * sizeof(*items));
    if (result == DEVICE_OK) {
        result = launch_hash(&cuda->launcher, words, on_device, items, count);
    }
    if (result == DEVICE_OK) {
        result = calls->download(cuda->device, roots, words, count * sizeof(*roots));
    }
    return result;
}

static enum status cuda_leaves_roots(struct machine *machine, struct digest *roots,
                                     const uint32_t *tensors, uint32_t count, struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    const uint32_t most = count < cuda->roots_max ? count : cuda->roots_max;
    struct hash_item *items = calloc((size_t)most + 1, sizeof(*items));
    enum device_result result = DEVICE_OK;
    enum status status;

    if (items == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to hash %u tensors", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!can_be_read(cuda, tensors[i])) {
            free(items);
            return error_set(error, STATUS_USAGE, "tensor %u cannot be read", tensors[i]);
        }
    }
    for (uint32_t first = 0; first < count && result == DEVICE_OK; first += most) {
        const uint32_t some = count - first < most ? count - first : most;

        result = hash_some(cuda, roots + first, items, tensors + first, some);
    }
    status = failed(cuda, result, "hashing", error);
    free(items);
    return status;
}

/* ---- for benchmarks ---------------------------------------------------------------- */

const struct device_facts *machine_cuda_facts(const struct machine *machine)
{
    return &((const struct machine_cuda *)machine)->facts;
}

enum status machine_cuda_wait(struct machine *machine, struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);

    return failed(cuda, cuda->way.calls->wait(cuda->device), "the queue", error);
}

enum status machine_cuda_time(double *seconds, struct machine *machine, uint32_t steps,
                              struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    const struct device_calls *calls = cuda->way.calls;
    enum status status = failed(cuda, calls->mark(cuda->device, 2), "a mark", error);

    for (uint32_t i = 0; i < steps && status == STATUS_OK; i++) {
        status = cuda_step(machine, NULL, error);
    }
    if (status == STATUS_OK) {
        status = failed(cuda, calls->mark(cuda->device, 3), "a mark", error);
    }
    if (status == STATUS_OK) {
        status = failed(cuda, calls->seconds(cuda->device, seconds, 2, 3), "a mark", error);
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
};
