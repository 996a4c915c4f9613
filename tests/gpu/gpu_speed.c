/*
 * gpu_speed.c - gpu-check's second half: contraction against cuBLAS, whole GPT-2 steps with and
 * without commitments, hashing against the copy bandwidth. Events of the device, random data,
 * medians. cuBLAS is looked for at run time; without it its rows are left out aloud.
 *
 *     GPU_CHECK_QUICK=1   small sizes, to see that everything runs
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/cuda/launch/launch_hash.h"
#include "proofs/commit/trace.h"
#include "prover/train/nvml.h"
#include "tests/gpu/gpu_check.h"
#include "tests/support/device/traffic.h"

#define ROUNDS 7

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_size);
    return values[count / 2];
}

double gpu_check_now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- cuBLAS ------------------------------------------------------------------ */

/* Numbers of cublas_api.h and library_types.h. */
enum { CUBLAS_N = 0, CUBLAS_T = 1 };
enum { CUDA_REAL_32 = 0, CUDA_BF_16 = 14 };
enum { COMPUTE_32 = 68, COMPUTE_32_PEDANTIC = 69, COMPUTE_32_TF32 = 77 };

struct cublas {
    void *library;
    void *handle;
    int (*create)(void **handle);
    int (*set_stream)(void *handle, void *stream);
    int (*gemm)(void *handle, int a_form, int b_form, int m, int n, int k, const void *alpha,
                const void *a, int a_type, int a_stride, const void *b, int b_type, int b_stride,
                const void *beta, void *c, int c_type, int c_stride, int compute, int algorithm);
};

static bool find(void *slot, void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    memcpy(slot, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static bool cublas_open(struct cublas *blas, void *stream)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                        "/usr/local/cuda/lib64/libcublas.so"};

    memset(blas, 0, sizeof(*blas));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && blas->library == NULL; i++) {
        blas->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    return blas->library != NULL && find(&blas->create, blas->library, "cublasCreate_v2") &&
           find(&blas->set_stream, blas->library, "cublasSetStream_v2") &&
           find(&blas->gemm, blas->library, "cublasGemmEx") && blas->create(&blas->handle) == 0 &&
           blas->set_stream(blas->handle, stream) == 0;
}

struct shape {
    const char *name;
    int m;
    int n;
    int k;
};

/* C (m,n) = A (m,k) B (n,k)^T, row-major: cuBLAS sees the transposes. Seconds; 0 on a refusal. */
static double time_cublas(const struct gpu_check *check, struct device *device,
                          const struct cublas *blas, void *const memory[3],
                          const struct shape *shape, int type, int compute)
{
    const float one = 1.0f;
    const float zero = 0.0f;
    double seconds[ROUNDS];

    for (int round = -2; round < ROUNDS; round++) {
        gpu_check_call(check, check->calls->mark(device, 4));
        if (blas->gemm(blas->handle, CUBLAS_T, CUBLAS_N, shape->n, shape->m, shape->k, &one,
                       memory[1], type, shape->k, memory[0], type, shape->k, &zero, memory[2],
                       CUDA_REAL_32, shape->n, compute, -1) != 0) {
            return 0.0;
        }
        gpu_check_call(check, check->calls->mark(device, 5));
        double took = 0.0;

        gpu_check_call(check, check->calls->seconds(device, &took, 4, 5));
        seconds[round < 0 ? 0 : round] = took;
    }
    return median(seconds, ROUNDS);
}

/* ---- contraction ---------------------------------------------------------------- */

static double time_ours(struct gpu_check *check, const struct shape *shape,
                        struct precision precision)
{
    struct tape *tape = gpu_check_linear(shape->m, shape->n, shape->k, precision);
    struct machine *machine = gpu_check_open(check, tape, false, false);
    double seconds[ROUNDS];
    struct error error;

    error_init(&error);
    gpu_check_give(&machine, 1, NULL, tape, 5);
    for (int round = -3; round < ROUNDS; round++) {
        double took = 0.0;

        gpu_check_must(gpu_machine_time(&took, machine, 1, &error), &error);
        seconds[round < 0 ? 0 : round] = took;
    }
    machine->backend->close(machine);
    tape_free(tape);
    return median(seconds, ROUNDS);
}

/* The floats that ours are measured on, as they are and as bfloat16. */
static void upload_random(const struct gpu_check *check, struct device *device, void *to,
                          uint64_t count, bool bf16)
{
    uint32_t *words = malloc(count * sizeof(*words));
    uint64_t random = count;

    for (uint64_t i = 0; words != NULL && i < count; i++) {
        float value;

        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        value = (float)((double)(random >> 40) * 0x1p-23 - 1.0);
        memcpy(&words[i], &value, sizeof(value));
        if (bf16) {
            ((uint16_t *)words)[i] = (uint16_t)(words[i] >> 16);
        }
    }
    gpu_check_call(check, check->calls->upload(device, to, words, count * (bf16 ? 2 : 4)));
    free(words);
}

static const struct shape shapes[GPU_SHAPES] = {
    {"512^3", 512, 512, 512},
    {"4096^3", 4096, 4096, 4096},
    {"8192^3", 8192, 8192, 8192},
    {"gpt2 qkv 4096x2304x768", 4096, 2304, 768},
    {"gpt2 projection 4096x768x768", 4096, 768, 768},
    {"gpt2 up 4096x3072x768", 4096, 3072, 768},
    {"gpt2 down 4096x768x3072", 4096, 768, 3072},
    {"gpt2 head 4096x50257x768", 4096, 50257, 768},
    {"gpt2 head gradient 50257x768x4096", 50257, 768, 4096},
};

struct peer {
    const char *name;
    int type;
    int compute;
    double goal; /* how many times as fast as it ours is to be at 8192^3; 0: it is only printed */
};

static void compare_peer(struct gpu_check *check, struct device *device, const struct cublas *blas,
                         void *const memory[3], const struct shape *shape, const struct peer *peer,
                         double ours)
{
    const double work = 2e-12 * shape->m * shape->n * shape->k;
    const bool bf16 = peer->type == CUDA_BF_16;
    char name[96];
    double theirs;

    upload_random(check, device, memory[0], (uint64_t)shape->m * (uint64_t)shape->k, bf16);
    upload_random(check, device, memory[1], (uint64_t)shape->n * (uint64_t)shape->k, bf16);
    theirs = time_cublas(check, device, blas, memory, shape, peer->type, peer->compute);
    (void)snprintf(name, sizeof(name), "%s, %s", shape->name, peer->name);
    gpu_check_number(check, name, theirs == 0.0 ? 0.0 : work / theirs, "TFLOP/s");
    (void)snprintf(name, sizeof(name), "%s, ours to %s", shape->name, peer->name);
    if (peer->goal > 0.0 && shape->m == 8192) {
        gpu_check_goal(check, name, theirs / ours, "times", peer->goal, true);
    } else {
        gpu_check_number(check, name, theirs / ours, "times");
    }
}

static void compare_peers(struct gpu_check *check, struct device *device, const struct shape *shape,
                          double ours)
{
    static const struct peer peers[3] = {{"cuBLAS float32", CUDA_REAL_32, COMPUTE_32_PEDANTIC, 5.0},
                                         {"cuBLAS TF32", CUDA_REAL_32, COMPUTE_32_TF32, 0.0},
                                         {"cuBLAS bf16", CUDA_BF_16, COMPUTE_32, 0.0}};
    const uint64_t counts[3] = {(uint64_t)shape->m * (uint64_t)shape->k,
                                (uint64_t)shape->n * (uint64_t)shape->k,
                                (uint64_t)shape->m * (uint64_t)shape->n};
    void *memory[3] = {NULL, NULL, NULL};
    struct cublas blas;

    if (!cublas_open(&blas, check->calls->stream(device)) || blas.handle == NULL) {
        printf("  without cuBLAS: the library was not found, or does not start\n");
        return;
    }
    for (int i = 0; i < 3; i++) {
        gpu_check_call(check, check->calls->allocate(device, &memory[i], counts[i] * 4));
    }
    for (int i = 0; i < 3; i++) {
        compare_peer(check, device, &blas, memory, shape, &peers[i], ours);
    }
}

/* Ours is measured with its own machine, which is closed before cuBLAS needs the memory. */
void gpu_check_product(struct gpu_check *check, int kind)
{
    static const struct shape tiny = {"64^3", 64, 64, 64};
    const struct shape *shape = check->quick ? &tiny : &shapes[kind];
    const double work = 2e-12 * shape->m * shape->n * shape->k;
    struct device_facts facts;
    struct device *device = NULL;
    char name[96];
    double ours;

    if (check->quick && kind > 0) {
        return;
    }
    ours = time_ours(check, shape, PRECISION_DEFAULT);
    (void)snprintf(name, sizeof(name), "%s, ours 14/128", shape->name);
    if (shape->m == 8192) {
        const bool halves = (check->tally->quicker & QUICKER(UNITS_PRODUCTS, WIDTH_NARROW)) != 0;

        gpu_check_goal(check, name, work / ours, "TFLOP/s", halves ? 170.0 : 300.0, true);
    } else {
        gpu_check_number(check, name, work / ours, "TFLOP/s");
    }
    gpu_check_call(check, check->calls->open(&device, &facts, 0));
    compare_peers(check, device, shape, ours);
    check->calls->close(device);
}

/* ---- hashing and copying ------------------------------------------------------------ */

void gpu_check_hashing(struct gpu_check *check, int kind)
{
    const uint64_t size = check->quick ? UINT64_C(1) << 16 : UINT64_C(1) << 31;
    struct device_facts facts;
    struct device *device = NULL;
    struct launcher launcher = {.calls = check->calls,
                                .block_count = (uint32_t)check->tally->facts.multiprocessors * 16};
    double seconds[2][ROUNDS];
    void *memory[2];
    void *root;
    void *scratch;
    void *on_device;
    struct hash_item item = {.size = size};

    (void)kind;
    gpu_check_call(check, check->calls->open(&device, &facts, 0));
    launcher.device = device;
    gpu_check_call(check, check->calls->allocate(device, &memory[0], size));
    gpu_check_call(check, check->calls->allocate(device, &memory[1], size));
    gpu_check_call(check, check->calls->allocate(device, &root, 256));
    gpu_check_call(check, check->calls->allocate(device, &on_device, sizeof(item)));
    item.bytes = memory[0];
    launch_hash_plan(&item, 1);
    gpu_check_call(check,
                   check->calls->allocate(device, &scratch, launch_hash_scratch_size(&item, 1)));
    gpu_check_call(check, check->calls->upload(device, on_device, &item, sizeof(item)));
    launcher.scratch = scratch;
    upload_random(check, device, memory[0], size / 4, false);
    for (int round = -2; round < ROUNDS; round++) {
        const int at = round < 0 ? 0 : round;

        gpu_check_call(check, check->calls->mark(device, 4));
        gpu_check_call(check, launch_hash(&launcher, root, on_device, &item, 1));
        gpu_check_call(check, check->calls->mark(device, 5));
        gpu_check_call(check, check->calls->copy(device, memory[1], memory[0], size));
        gpu_check_call(check, check->calls->mark(device, 6));
        gpu_check_call(check, check->calls->seconds(device, &seconds[0][at], 4, 5));
        gpu_check_call(check, check->calls->seconds(device, &seconds[1][at], 5, 6));
    }
    gpu_check_goal(check, "hashing", 1e-9 * (double)size / median(seconds[0], ROUNDS), "GB/s",
                   300.0, true);
    gpu_check_number(check, "copying, read and written",
                     2e-9 * (double)size / median(seconds[1], ROUNDS), "GB/s");
    check->calls->release(device, memory[0]);
    check->calls->release(device, memory[1]);
    check->calls->release(device, root);
    check->calls->release(device, on_device);
    check->calls->release(device, scratch);
    check->calls->close(device);
}

/* ---- whole steps --------------------------------------------------------------------- */

struct op_seconds {
    const struct tape *tape;
    double by_kind[OP_KIND_COUNT];
};

static void add_seconds(void *context, uint32_t op, double seconds)
{
    struct op_seconds *sum = context;

    sum->by_kind[sum->tape->ops[op].kind] += seconds;
}

/* The bytes that a kind moves, by the account; what is launched together is the first's. */
static void sum_traffic(double by_kind[OP_KIND_COUNT], const struct machine *machine)
{
    const struct tape *tape = machine->tape;
    struct traffic *counts = calloc((size_t)tape->op_count + 1, sizeof(*counts));

    if (counts == NULL) {
        return;
    }
    traffic_count(counts, machine);
    for (uint32_t at = 0; at < tape->op_count; at++) {
        by_kind[tape->ops[at].kind] += (double)counts[at].read + (double)counts[at].written;
    }
    free(counts);
}

/* Where the time of one step goes, kind by kind; launches one by one cost more than a graph. */
static void profile_step(struct gpu_check *check, const struct model *model)
{
    struct op_seconds sum = {.tape = model->tape};
    struct machine_options options = {.timed = add_seconds, .timed_context = &sum};
    const struct cuda_config config = {
        .calls = check->calls, .disabled = check->tally->barred, .quicker = check->tally->quicker};
    double bytes[OP_KIND_COUNT] = {0.0};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    gpu_check_must(machine_cuda_open(&machine, model->tape, &options, &config, &error), &error);
    gpu_check_give(&machine, 1, model, model->tape, 9);
    gpu_check_must(machine->backend->step(machine, NULL, &error), &error);
    memset(sum.by_kind, 0, sizeof(sum.by_kind));
    gpu_check_must(machine->backend->step(machine, NULL, &error), &error);
    sum_traffic(bytes, machine);
    for (int kind = 0; kind < OP_KIND_COUNT; kind++) {
        char name[64];

        if (sum.by_kind[kind] > 0.0) {
            (void)snprintf(name, sizeof(name), "    of it %s", op_kind_name((enum op_kind)kind));
            gpu_check_number(check, name, 1e3 * sum.by_kind[kind], "ms");
            gpu_check_number(check, "        moving", 1e-9 * bytes[kind] / sum.by_kind[kind],
                             "GB/s");
        }
    }
    machine->backend->close(machine);
}

/* Steps as a prover makes them: each root is found beside the step that follows. */
static void time_committed(double seconds[ROUNDS], struct machine *machine)
{
    struct digest root;
    struct error error;
    uint64_t waited;
    bool finite;

    error_init(&error);
    gpu_check_must(machine->backend->step(machine, NULL, &error), &error);
    for (int round = -3; round < ROUNDS; round++) {
        const double start = gpu_check_now();

        gpu_check_must(state_root_begin(machine, 1, &error), &error);
        gpu_check_must(machine->backend->step(machine, NULL, &error), &error);
        gpu_check_must(state_root_end(&root, &finite, &waited, machine, &error), &error);
        gpu_check_must(gpu_machine_wait(machine, &error), &error);
        seconds[round < 0 ? 0 : round] = gpu_check_now() - start;
    }
}

/* As many steps as take about this long. */
#define ENERGY_SECONDS 2.0

/* Joules since the driver was loaded; false: nobody can tell. */
static bool read_joules(double *joules, const struct nvml *nvml)
{
    struct nvml_reading reading = {.has_energy = false};
    uint32_t number = 0;

    if (nvml == NULL || !nvml_number_of(&number, nvml, 0)) {
        return false;
    }
    nvml_read(&reading, nvml, number);
    *joules = 1e-6 * (double)reading.microjoules;
    return reading.has_energy;
}

/* What a step draws, and what is trained for an hour's price, where GPU_CHECK_PRICE says it. */
static void measure_energy(struct gpu_check *check, struct machine *machine, double step_s,
                           double tokens)
{
    const char *price = getenv("GPU_CHECK_PRICE");
    const double wanted = ENERGY_SECONDS / step_s;
    const uint32_t steps = check->quick ? 1 : wanted < 1000.0 ? 1 + (uint32_t)wanted : 1000;
    struct nvml *nvml = NULL;
    double joules[2] = {0.0, 0.0};
    double seconds = 0.0;
    struct error error;

    error_init(&error);
    if (nvml_open(&nvml, &error) != STATUS_OK || !read_joules(&joules[0], nvml)) {
        printf("  without energy: %s\n",
               nvml == NULL ? error.text : "the driver does not tell this device's");
    } else {
        gpu_check_must(gpu_machine_time(&seconds, machine, steps, &error), &error);
        (void)read_joules(&joules[1], nvml);
        gpu_check_number(check, "    energy of a step", (joules[1] - joules[0]) / steps, "J");
        gpu_check_number(check, "    power", (joules[1] - joules[0]) / seconds, "W");
    }
    nvml_close(nvml);
    if (price != NULL && strtod(price, NULL) > 0.0) {
        gpu_check_number(check, "    tokens trained for one of GPU_CHECK_PRICE",
                         tokens / step_s * 3600.0 / strtod(price, NULL), "");
    }
}

/* kind: the batch. */
void gpu_check_step(struct gpu_check *check, int kind)
{
    const uint32_t batch = (uint32_t)kind;
    struct model model;
    struct machine *machine;
    double seconds[2][ROUNDS];
    struct error error;
    char name[96];

    if (check->quick && batch > 4) {
        return;
    }
    error_init(&error);
    gpu_check_gpt2(&model, check, batch, 1024, false);
    machine = gpu_check_open(check, model.tape, false, false);
    gpu_check_give(&machine, 1, &model, model.tape, 9);
    for (int round = -3; round < ROUNDS; round++) {
        gpu_check_must(gpu_machine_time(&seconds[0][round < 0 ? 0 : round], machine, 1, &error),
                       &error);
    }
    time_committed(seconds[1], machine);
    const double plain = median(seconds[0], ROUNDS);
    const double committed = median(seconds[1], ROUNDS);

    (void)snprintf(name, sizeof(name), "gpt2 124M step, %u x 1024", batch);
    gpu_check_number(check, name, 1e3 * plain, "ms");
    (void)snprintf(name, sizeof(name), "gpt2 124M step, %u x 1024, committed", batch);
    gpu_check_number(check, name, 1e3 * committed, "ms");
    gpu_check_goal(check, "    what committing adds", 100.0 * (committed / plain - 1.0), "%", 5.0,
                   false);
    measure_energy(check, machine, plain, 1024.0 * batch);
    machine->backend->close(machine);
    profile_step(check, &model);
    model_release(&model);
}
