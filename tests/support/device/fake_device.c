/* fake_device.c - see fake_device.h. */
#include "tests/support/device/fake_device.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sha256_numbers.h"
#include "engine/cuda/kernels/args.h"
#include "engine/cuda/kernels/packed.h"
#include "engine/ops/element.h"
#include "engine/ops/fold.h"
#include "engine/ops/scalar.h"
#include "engine/ops/view.h"
#include "engine/rules/rules.h"
#include "tests/race/race.h"
#include "tests/support/device/emulator.h"

#ifdef PTXCHECK
/* The kernels that nvcc made, from tests/ptx. */
#define KERNEL_MADE(number, function, arguments) extern emulated_kernel function;
KERNEL_LIST(KERNEL_MADE)
#else
/* The kernels: they read what is above. */
#include "engine/cuda/kernels/rule_body.h"

#include "engine/cuda/kernels/epilogue_body.h"
#include "engine/cuda/kernels/products/tile_body.h"
#include "engine/cuda/kernels/quads_body.h"

#include "engine/cuda/kernels/products/fragments_body.h"

#include "engine/cuda/kernels/hash_body.h"
#include "engine/cuda/kernels/products/contract_body.h"
#include "engine/cuda/kernels/products/dots_body.h"
#include "engine/cuda/kernels/products/hopper_body.h"
#include "engine/cuda/kernels/quantize_body.h"

#include "engine/cuda/kernels/lists_body.h"

#include "engine/cuda/kernels/columns_body.h"

#include "engine/cuda/kernels/rows_body.h"

#include "engine/cuda/kernels/held_body.h"

#include "engine/cuda/kernels/products/strip_body.h"

#include "engine/cuda/kernels/products/strip_columns_body.h"

#include "engine/cuda/kernels/products/attention_body.h"
#include "engine/cuda/kernels/products/attention_long_body.h"

#include "engine/cuda/kernels/entropy_body.h"

#include "engine/cuda/kernels/tiles_body.h"
#endif

#define QUEUE_MAX      8192
#define ARGUMENTS_MAX  2048
#define ALLOCATION_PAD 256

#define KERNEL_FUNCTION(number, function, arguments) (function),

static emulated_kernel *const kernels[KERNEL_COUNT] = {KERNEL_LIST(KERNEL_FUNCTION)};

#define KERNEL_NAME(number, function, arguments) #function,

static const char *const kernel_names[KERNEL_COUNT] = {KERNEL_LIST(KERNEL_NAME)};

_Static_assert(KERNEL_COUNT <= 64, "switches have a bit for each kernel");

/* An entry of a queue. */
struct entry {
    enum { ENTRY_LAUNCH, ENTRY_COPY, ENTRY_FILL, ENTRY_SIGNAL, ENTRY_AWAIT } kind;
    struct device_launch launch;
    uint8_t arguments[ARGUMENTS_MAX];
    void *to;
    const void *from;
    int byte;
    uint64_t size;
    uint32_t signal;
    uint64_t turn;  /* of the signal */
    uint64_t point; /* what the host had waited for, to racecheck */
};

struct device_graph {
    struct entry *entries;
    uint32_t count;
};

/* What is queued on a lane and not done; from first on. */
struct lane {
    struct entry *entries;
    uint32_t first;
    uint32_t count;
    uint32_t space;
};

struct device {
    struct device_graph *recording;
    uint64_t used;
    struct lane lanes[DEVICE_LANES];
    uint32_t lane;
    uint32_t lane_names;                /* to racecheck: the first of the lanes' */
    uint64_t signalled[DEVICE_SIGNALS]; /* turns of each signal, and those that came */
    uint64_t came[DEVICE_SIGNALS];
};

static struct fake_device_switches switches;
static uint64_t call_count;
static uint64_t leftovers;
static uint64_t dice;
static uint64_t launches[KERNEL_COUNT];
static uint64_t slow_launches;
static uint64_t marks[DEVICE_MARKS_MAX]; /* slow launches before each */
static struct device_note fake_notes[4];
static bool lost; /* a kernel trapped */

void fake_device_set(const struct fake_device_switches *wanted)
{
    switches = *wanted;
    call_count = 0;
    dice = wanted->seed;
    memset(launches, 0, sizeof(launches));
    memset(fake_notes, 0, sizeof(fake_notes));
    lost = false;
    emulator_unit(wanted->unit);
    race_expect(wanted->deaf);
}

void fake_device_lend(const void *memory, uint64_t size, bool written)
{
    (void)memory;
    (void)size;
    race_allocate(memory, size);
    if (written) {
        race_work(0, race_point(), "the test");
        race_host(memory, size, RACE_WRITE);
    }
}

void fake_device_take_back(const void *memory)
{
    (void)memory;
    race_release(memory);
}

uint64_t fake_device_launches(uint32_t kernel)
{
    return launches[kernel];
}

uint64_t fake_device_call_count(void)
{
    return call_count;
}

uint64_t fake_device_leftovers(void)
{
    return leftovers;
}

static enum device_result count_call(void)
{
    call_count++;
    if (lost) {
        return DEVICE_FAILED;
    }
    if (switches.fail_at != 0 &&
        (call_count == switches.fail_at || (switches.for_good && call_count > switches.fail_at))) {
        return switches.result;
    }
    return DEVICE_OK;
}

#define COUNT_CALL()                                                                               \
    do {                                                                                           \
        enum device_result result_ = count_call();                                                 \
        if (result_ != DEVICE_OK) {                                                                \
            return result_;                                                                        \
        }                                                                                          \
    } while (0)

static bool is_done(const struct lane *lane)
{
    return lane->first == lane->count;
}

static enum device_result fake_open(struct device **device, struct device_facts *facts, int ordinal)
{
    (void)ordinal;
    memset(facts, 0, sizeof(*facts));
    (void)snprintf(facts->name, sizeof(facts->name), "%s",
                   switches.name == NULL ? "fake device" : switches.name);
    facts->capability = switches.capability == 0 ? 80 : switches.capability;
    facts->shared_max = switches.shared_max;
    facts->multiprocessors = 1;
    facts->driver = 11040;
    facts->runtime = 13000;
    facts->memory = switches.memory_max;
    facts->memory_free = switches.memory_max;
    COUNT_CALL();
    if (switches.open != DEVICE_OK) {
        return switches.open;
    }
    *device = calloc(1, sizeof(**device));
    if (*device == NULL) {
        return DEVICE_FAILED;
    }
    (*device)->lane_names = race_lanes_open(DEVICE_LANES);
    leftovers++;
    return DEVICE_OK;
}

static void fake_forget(struct device *device, struct device_graph *graph)
{
    (void)device;
    if (graph != NULL) {
        leftovers--;
        free(graph->entries);
        free(graph);
    }
}

static void fake_close(struct device *device)
{
    for (int i = 0; i < DEVICE_LANES; i++) {
        free(device->lanes[i].entries);
    }
    fake_forget(device, device->recording);
    race_lanes_close(device->lane_names, DEVICE_LANES);
    leftovers--;
    free(device);
}

/* New memory holds what nobody should read. */
static enum device_result fake_allocate(struct device *device, void **memory, uint64_t size)
{
    COUNT_CALL();
    if (switches.memory_max != 0 && device->used + size > switches.memory_max) {
        return DEVICE_NO_MEMORY;
    }
    if (posix_memalign(memory, ALLOCATION_PAD, size + RACE_ROOM) != 0) {
        return DEVICE_NO_MEMORY;
    }
    memset(*memory, 0xa5, size);
    race_allocate(*memory, size);
    device->used += size;
    leftovers++;
    return DEVICE_OK;
}

static void fake_release(struct device *device, void *memory)
{
    /* Where a call fails nobody knows what is still queued; it will never run. */
    for (uint32_t lane = 0; memory != NULL && lane < DEVICE_LANES; lane++) {
        if (switches.fail_at == 0 && !is_done(&device->lanes[lane])) {
            fprintf(stderr, "memory is given back while work is queued\n");
            abort();
        }
    }
    if (memory != NULL) {
        leftovers--;
        race_release(memory);
        free(memory);
    }
}

uint64_t fake_device_kernel(const char *name)
{
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        if (strcmp(kernel_names[kernel], name) == 0) {
            return UINT64_C(1) << kernel;
        }
    }
    return 0;
}

static bool has_fault(uint32_t kernel, enum fake_fault fault)
{
    return (switches.guilty >> kernel & 1) != 0 && switches.fault == fault;
}

static void run_kernel(const struct entry *entry)
{
    const uint32_t kernel = entry->launch.kernel;

    launches[kernel]++;
    slow_launches += switches.slow >> kernel & 1;
    if (has_fault(kernel, FAKE_CRASHES)) {
        (void)raise(SIGKILL);
    }
    while (has_fault(kernel, FAKE_HANGS)) {
        (void)pause();
    }
    lost = lost || has_fault(kernel, FAKE_TRAPS);
    if (lost || has_fault(kernel, FAKE_SKIPS)) {
        return;
    }
    emulator_run(kernels[kernel], entry->arguments, entry->launch.grid, entry->launch.block,
                 entry->launch.shared_size);
}

static enum device_result run(const struct entry *entry, uint32_t lane)
{
    (void)lane;
    switch (entry->kind) {
    case ENTRY_LAUNCH:
        race_work(lane, entry->point, kernel_names[entry->launch.kernel]);
        run_kernel(entry);
        break;
    case ENTRY_COPY:
        race_work(lane, entry->point, "a copy");
        race_host(entry->from, entry->size, RACE_READ);
        race_host(entry->to, entry->size, RACE_WRITE);
        memcpy(entry->to, entry->from, entry->size);
        break;
    case ENTRY_FILL:
        race_work(lane, entry->point, "a fill");
        race_host(entry->to, entry->size, RACE_WRITE);
        memset(entry->to, entry->byte, entry->size);
        break;
    case ENTRY_SIGNAL:
        race_signal(lane, entry->point, lane / DEVICE_LANES, entry->signal, entry->turn);
        break;
    case ENTRY_AWAIT:
        if (!switches.deaf) {
            race_await(lane, entry->point, lane / DEVICE_LANES, entry->signal, entry->turn);
        }
        break;
    }
    return DEVICE_OK;
}

/* ---- lanes ------------------------------------------------------------------ */

/* Does the lane's next entry wait for another lane? */
static bool is_held(const struct device *device, const struct lane *lane)
{
    const struct entry *entry = &lane->entries[lane->first];

    return entry->kind == ENTRY_AWAIT && !switches.deaf &&
           device->came[entry->signal] < entry->turn;
}

static void run_next(struct device *device, struct lane *lane)
{
    struct entry *entry = &lane->entries[lane->first++];

    if (entry->kind == ENTRY_SIGNAL) {
        device->came[entry->signal] = entry->turn;
    }
    (void)run(entry, device->lane_names + (uint32_t)(lane - device->lanes));
    if (is_done(lane)) {
        lane->first = 0;
        lane->count = 0;
    }
}

static enum device_result append(struct device *device, const struct entry *entry)
{
    struct lane *lane = &device->lanes[device->lane];

    if (lane->count == lane->space) {
        lane->space = lane->space * 2 + 64;
        lane->entries = realloc(lane->entries, lane->space * sizeof(*lane->entries));
        if (lane->entries == NULL) {
            return DEVICE_FAILED;
        }
    }
    lane->entries[lane->count] = *entry;
    lane->entries[lane->count++].point = race_point();
    if (switches.seed == 0) {
        run_next(device, lane);
    }
    return DEVICE_OK;
}

static bool toss(void)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return dice >> 63 != 0;
}

/* Until a lane is done. The others go on as they like, or as they must. */
static void drain(struct device *device, uint32_t wanted)
{
    while (!is_done(&device->lanes[wanted])) {
        uint32_t turn = toss() ? wanted : (wanted + 1) % DEVICE_LANES;

        if (is_done(&device->lanes[turn]) || is_held(device, &device->lanes[turn])) {
            turn = (turn + 1) % DEVICE_LANES;
        }
        if (is_done(&device->lanes[turn]) || is_held(device, &device->lanes[turn])) {
            fprintf(stderr, "lanes wait for each other for ever\n");
            abort();
        }
        run_next(device, &device->lanes[turn]);
    }
    race_wait(device->lane_names + wanted);
}

/* To the lane, or kept where a graph is being recorded. */
static enum device_result queue(struct device *device, const struct entry *entry)
{
    struct device_graph *graph = device->recording;

    COUNT_CALL();
    if (graph == NULL) {
        return append(device, entry);
    }
    if (graph->count == QUEUE_MAX) {
        return DEVICE_FAILED;
    }
    graph->entries[graph->count++] = *entry;
    return DEVICE_OK;
}

/* What waits cannot be recorded. */
static enum device_result waits(struct device *device)
{
    COUNT_CALL();
    if (device->recording != NULL) {
        return DEVICE_FAILED;
    }
    drain(device, device->lane);
    return DEVICE_OK;
}

static enum device_result fake_upload(struct device *device, void *to, const void *from,
                                      uint64_t size)
{
    enum device_result result = waits(device);

    if (result == DEVICE_OK) {
        race_work(device->lane_names + device->lane, race_point(), "an upload or a download");
        race_host(from, size, RACE_READ);
        race_host(to, size, RACE_WRITE);
        race_wait(device->lane_names + device->lane);
        memcpy(to, from, size);
    }
    return result;
}

static enum device_result fake_copy(struct device *device, void *to, const void *from,
                                    uint64_t size)
{
    struct entry entry = {.kind = ENTRY_COPY, .to = to, .from = from, .size = size};

    return queue(device, &entry);
}

static enum device_result fake_fill(struct device *device, void *to, int byte, uint64_t size)
{
    struct entry entry = {.kind = ENTRY_FILL, .to = to, .byte = byte, .size = size};

    return queue(device, &entry);
}

/* As on an H200, and what device.cu asks the runtime for. */
#define SHARED_MAX (227 << 10)

static uint32_t shared_granted(uint32_t kernel)
{
    const uint32_t most = kernel_shared_most(kernel, SHARED_MAX, HOPPER_CAPABILITY);

    return most > SHARED_USUAL ? most : SHARED_USUAL;
}

static enum device_result fake_launch(struct device *device, const struct device_launch *launch)
{
    struct entry entry = {.kind = ENTRY_LAUNCH, .launch = *launch};

    /* What a device refuses. */
    if (launch->kernel >= KERNEL_COUNT || launch->grid[0] == 0 || launch->grid[1] == 0 ||
        launch->grid[0] > INT32_MAX || launch->grid[1] > 65535 || launch->block == 0 ||
        launch->block > 1024 || launch->arguments_size > ARGUMENTS_MAX ||
        launch->shared_size > shared_granted(launch->kernel) ||
        has_fault(launch->kernel, FAKE_REFUSED)) {
        return DEVICE_FAILED;
    }
    memcpy(entry.arguments, launch->arguments, launch->arguments_size);
    entry.launch.arguments = NULL;
    return queue(device, &entry);
}

static enum device_result fake_wait(struct device *device)
{
    COUNT_CALL();
    if (device->recording != NULL) {
        return DEVICE_FAILED;
    }
    for (uint32_t lane = 0; lane < DEVICE_LANES; lane++) {
        drain(device, lane);
    }
    return DEVICE_OK;
}

static void fake_lane(struct device *device, uint32_t lane)
{
    device->lane = lane;
}

static enum device_result fake_signal(struct device *device, uint32_t signal)
{
    struct entry entry = {
        .kind = ENTRY_SIGNAL, .signal = signal, .turn = device->signalled[signal] + 1};
    enum device_result result = device->recording != NULL ? DEVICE_FAILED : queue(device, &entry);

    device->signalled[signal] += result == DEVICE_OK;
    return result;
}

static enum device_result fake_await(struct device *device, uint32_t signal)
{
    struct entry entry = {.kind = ENTRY_AWAIT, .signal = signal, .turn = device->signalled[signal]};

    return device->recording != NULL ? DEVICE_FAILED : queue(device, &entry);
}

static enum device_result fake_record(struct device *device)
{
    COUNT_CALL();
    device->recording = calloc(1, sizeof(*device->recording));
    device->recording->entries = malloc(QUEUE_MAX * sizeof(struct entry));
    leftovers++;
    return DEVICE_OK;
}

static enum device_result fake_recorded(struct device *device, struct device_graph **graph)
{
    struct device_graph *made = device->recording;

    device->recording = NULL;
    *graph = NULL;
    enum device_result result = count_call();

    if (result != DEVICE_OK) {
        fake_forget(device, made);
        return result;
    }
    *graph = made;
    return DEVICE_OK;
}

static enum device_result fake_replay(struct device *device, struct device_graph *graph)
{
    COUNT_CALL();
    for (uint32_t i = 0; i < graph->count; i++) {
        if (append(device, &graph->entries[i]) != DEVICE_OK) {
            return DEVICE_FAILED;
        }
    }
    return DEVICE_OK;
}

static enum device_result fake_mark(struct device *device, uint32_t mark)
{
    COUNT_CALL();
    marks[mark % DEVICE_MARKS_MAX] = slow_launches;
    return device->recording == NULL ? DEVICE_OK : DEVICE_FAILED;
}

static enum device_result fake_seconds(struct device *device, double *seconds, uint32_t from,
                                       uint32_t to)
{
    *seconds =
        1e-6 + 1e-3 * (double)(marks[to % DEVICE_MARKS_MAX] - marks[from % DEVICE_MARKS_MAX]);
    return waits(device);
}

static void *fake_stream(struct device *device)
{
    (void)device;
    return NULL;
}

static struct device_note *fake_note(int ordinal)
{
    return ordinal >= 0 && ordinal < 4 ? &fake_notes[ordinal] : NULL;
}

static const char *fake_trouble(void)
{
    return "a failure that the test asked for";
}

const struct device_calls *fake_device_calls(void)
{
    static const struct device_calls calls = {
        .abi = DEVICE_ABI,
        .rules_version = RULES_VERSION,
        .kernel_count = KERNEL_COUNT,
        .arguments_check = KERNEL_ARGUMENTS_CHECK,
        .open = fake_open,
        .close = fake_close,
        .allocate = fake_allocate,
        .release = fake_release,
        .upload = fake_upload,
        .download = fake_upload,
        .copy = fake_copy,
        .fill = fake_fill,
        .launch = fake_launch,
        .wait = fake_wait,
        .lane = fake_lane,
        .signal = fake_signal,
        .await = fake_await,
        .record = fake_record,
        .recorded = fake_recorded,
        .replay = fake_replay,
        .forget = fake_forget,
        .mark = fake_mark,
        .seconds = fake_seconds,
        .stream = fake_stream,
        .note = fake_note,
        .trouble = fake_trouble,
    };

    return &calls;
}
