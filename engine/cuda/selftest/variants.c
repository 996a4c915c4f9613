/* variants.c - see paths.h. */
#include "engine/cuda/selftest/variants.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/machine/machine.h"
#include "engine/cuda/kernels/packed.h"
#include "engine/cuda/selftest/selftest.h"
#include "engine/ops/kernel.h"

/* ---- names ------------------------------------------------------------------ */

#define WAYS_TEXT                                                                                  \
    "pairs, wgmma, mma, dots, lists, columns, held, strips, attention, epilogue, entropy, sums, "  \
    "views"
static const char *const names[WAY_COUNT] = {"pairs",    "wgmma",   "mma",  "plain",  "dots",
                                             "lists",    "columns", "held", "strips", "attention",
                                             "epilogue", "entropy", "sums", "views"};

const char *path_name(uint32_t path)
{
    return names[path];
}

static void add_text(char text[PATHS_TEXT_MAX], const char *more)
{
    const size_t used = strlen(text);

    (void)snprintf(text + used, PATHS_TEXT_MAX - used, "%s", more);
}

void paths_text(char text[PATHS_TEXT_MAX], const struct paths *paths)
{
    const uint32_t barred = paths_barred(paths);

    text[0] = '\0';
    for (int path = 0; path < CONTRACT_PATHS; path++) {
        if ((paths->offered & ~barred) >> path & 1) {
            add_text(text, text[0] == '\0' ? "" : ", ");
            add_text(text, names[path]);
        }
    }
    for (int path = 0; path < WAY_COUNT; path++) {
        if (barred >> path & 1) {
            add_text(text, (barred & ((1u << path) - 1)) == 0 ? "; not used: " : ", ");
            add_text(text, names[path]);
            add_text(text,
                     paths->wrong >> path & 1 ? " (other bits than the rules)" : " (as told)");
        }
    }
}

/* LOCKSTEP_CUDA_WITHOUT as bits. */
static enum status read_wish(uint32_t *unasked, struct error *error)
{
    const char *wish = getenv("LOCKSTEP_CUDA_WITHOUT");

    *unasked = 0;
    while (wish != NULL && *wish != '\0') {
        const size_t length = strcspn(wish, ",");
        int path = 0;

        /* The plain one always stays. */
        while (path < WAY_COUNT && (path == CONTRACT_PLAINLY || strlen(names[path]) != length ||
                                    memcmp(names[path], wish, length) != 0)) {
            path++;
        }
        if (path == WAY_COUNT) {
            (void)error_set(error, STATUS_USAGE,
                            "LOCKSTEP_CUDA_WITHOUT names '%.20s', which is no way that can be left",
                            wish);
            error_advise(error, "let it name some of " WAYS_TEXT ", with commas between them");
            return STATUS_USAGE;
        }
        *unasked |= 1u << path;
        wish += length + (wish[length] == ',');
    }
    return STATUS_OK;
}

/* ---- one small problem ---------------------------------------------------------- */

/* Each makes other kernels run, or other parts of them; where k is long, it is split. */
static const struct problem {
    enum contract_path path;
    int bits;
    int block;
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t causal;
    bool split;
} problems[] = {
    {CONTRACT_BY_PAIRS, 14, 128, 300, 150, 300, 0, false},
    {CONTRACT_BY_PAIRS, 14, 0, 40, 70, 64, 0, false},
    {CONTRACT_BY_WGMMA, 14, 128, 130, 70, 300, 0, false},
    {CONTRACT_BY_WGMMA, 14, 128, 133, 40, 390, 0, false},
    {CONTRACT_BY_WGMMA, 14, 0, 70, 40, 64, 70, false},
    {CONTRACT_BY_WGMMA, 14, 128, 50, 20, 1200, 0, true},
    {CONTRACT_BY_WGMMA, 16, 256, 70, 100, 300, 0, false},
    {CONTRACT_BY_WGMMA, 22, 0, 70, 70, 300, 0, false},
    {CONTRACT_BY_MMA, 14, 128, 130, 66, 300, 0, false},
    {CONTRACT_BY_MMA, 16, 32, 70, 40, 160, 0, false},
    {CONTRACT_BY_MMA, 14, 64, 40, 40, 1200, 40, true},
    {CONTRACT_BY_MMA, 22, 0, 70, 70, 300, 0, false},
    {CONTRACT_BY_MMA, 22, 128, 40, 20, 1200, 40, true},
    {CONTRACT_PLAINLY, 22, 0, 40, 33, 100, 0, false},
    {CONTRACT_PLAINLY, 14, 16, 33, 40, 100, 0, false},
};

#define PROBLEM_COUNT (sizeof(problems) / sizeof(problems[0]))

/* Tensors: x, its peaks, exponents and q, and the same of y; then the result. */
enum { X, X_PEAKS, X_EXPONENTS, X_Q, Y, Y_PEAKS, Y_EXPONENTS, Y_Q, OUT, TENSORS };

struct proof {
    struct tape tape;
    struct tensor tensors[TENSORS];
    struct op ops[3];
    void *host[TENSORS];   /* canonical */
    void *device[TENSORS]; /* inside of block */
    uint8_t *block;
    uint64_t sizes[TENSORS]; /* on the device */
    uint64_t scratch_size;
};

static void proof_tensor(struct proof *proof, uint32_t id, enum dtype dtype, int64_t count)
{
    proof->tensors[id] = (struct tensor){
        .dtype = dtype, .rank = 1, .dims = {(uint64_t)count}, .count = (uint64_t)count};
}

static void proof_quantize(struct proof *proof, uint32_t at, const struct problem *problem,
                           uint32_t x, int64_t rows)
{
    const struct contraction_shape shape =
        contraction_shape(problem->k, problem->bits, problem->block);
    struct op *op = &proof->ops[at];
    const int64_t dims[6] = {1, 1, 1, rows, 1, problem->k};
    const int64_t strides[6] = {1, 1, 1, problem->k, 1, 1};

    op->kind = OP_QUANTIZE;
    for (int axis = 0; axis < 6; axis++) {
        op->attributes[QUANTIZE_DIMS + axis] = dims[axis];
        op->attributes[QUANTIZE_STRIDES + axis] = strides[axis];
    }
    op->attributes[QUANTIZE_BITS] = problem->bits;
    op->attributes[QUANTIZE_BLOCK] = problem->block;
    op->attribute_count = QUANTIZE_ATTRIBUTES;
    op->input_count = 1;
    op->inputs[0] = x;
    op->output_count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        op->outputs[i] = x + 1 + i;
    }
    proof_tensor(proof, x, DTYPE_F32, rows * problem->k);
    proof_tensor(proof, x + 1, DTYPE_I16, rows * shape.pieces);
    proof_tensor(proof, x + 2, DTYPE_I16, rows * shape.blocks);
    proof_tensor(proof, x + 3, problem->bits == 22 ? DTYPE_I32 : DTYPE_I16, rows * problem->k);
}

static void proof_contract(struct proof *proof, const struct problem *problem)
{
    struct op *op = &proof->ops[2];
    const int64_t dims[6] = {1, 1, 1, problem->m, 1, problem->n};
    const int64_t strides[6] = {1, 1, 1, problem->n, 1, 1};
    static const uint32_t inputs[4] = {X_Q, X_EXPONENTS, Y_Q, Y_EXPONENTS};

    op->kind = OP_CONTRACT;
    for (int axis = 0; axis < 6; axis++) {
        op->attributes[CONTRACT_DIMS + axis] = dims[axis];
        op->attributes[CONTRACT_STRIDES + axis] = strides[axis];
    }
    op->attributes[CONTRACT_K] = problem->k;
    op->attributes[CONTRACT_BITS] = problem->bits;
    op->attributes[CONTRACT_BLOCK] = problem->block;
    op->attributes[CONTRACT_CAUSAL] = problem->causal;
    op->attribute_count = CONTRACT_ATTRIBUTES;
    op->input_count = 4;
    memcpy(op->inputs, inputs, sizeof(inputs));
    op->output_count = 1;
    op->outputs[0] = OUT;
    proof_tensor(proof, OUT, DTYPE_F32, problem->m * problem->n);
}

/* Numbers of all sizes: a row's pieces lie up to 2^12 apart, so that every kind of shift is met. */
static void proof_fill(float *x, int64_t rows, int64_t k, uint64_t seed)
{
    uint64_t random = seed;

    for (int64_t at = 0; at < rows * k; at++) {
        const int64_t piece = at % k / CONTRACTION_PIECE;
        const int size = (int)(at / k * (piece + 1) % 7 * 2);

        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        x[at] = ldexpf((float)((int64_t)(random >> 40) - (1 << 23)), -23 - size);
    }
}

static void proof_release(struct proof *proof)
{
    for (int id = 0; id < TENSORS; id++) {
        free(proof->host[id]);
    }
}

/* What the rules make of it, and how much memory the device needs. */
static bool proof_init(struct proof *proof, const struct problem *problem)
{
    memset(proof, 0, sizeof(*proof));
    proof->tape.tensors = proof->tensors;
    proof->tape.tensor_count = TENSORS;
    proof->tape.ops = proof->ops;
    proof->tape.op_count = 3;
    proof_quantize(proof, 0, problem, X, problem->m);
    proof_quantize(proof, 1, problem, Y, problem->n);
    proof_contract(proof, problem);
    for (int id = 0; id < TENSORS; id++) {
        proof->sizes[id] = proof->tensors[id].count * dtype_size(proof->tensors[id].dtype);
        proof->host[id] = malloc(proof->sizes[id]);
        if (proof->host[id] == NULL) {
            return false;
        }
    }
    proof_fill(proof->host[X], problem->m, problem->k, 1);
    proof_fill(proof->host[Y], problem->n, problem->k, 2);
    for (uint32_t at = 0; at < 3; at++) {
        const struct op *op = &proof->ops[at];
        const uint64_t scratch = launch_scratch_size(op, proof->tensors, true);
        struct kernel_call call = {.op = op, .tensors = proof->tensors, .thread_count = 1};

        for (uint32_t i = 0; i < op->input_count; i++) {
            call.inputs[i] = proof->host[op->inputs[i]];
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            call.outputs[i] = proof->host[op->outputs[i]];
            proof->sizes[op->outputs[i]] = launch_output_size(op, i, proof->tensors, true);
        }
        kernel_run_rules(&call);
        proof->scratch_size = scratch > proof->scratch_size ? scratch : proof->scratch_size;
    }
    return true;
}

static enum device_result proof_run(bool *right, struct proof *proof, struct launcher *launcher)
{
    const struct device_calls *calls = launcher->calls;
    const uint64_t out_size = proof->tensors[OUT].count * sizeof(float);
    enum device_result result = DEVICE_OK;
    void *out = malloc(out_size);

    launcher->tape = &proof->tape;
    launcher->memory = proof->device;
    if (out == NULL) {
        return DEVICE_NO_MEMORY;
    }
    for (uint32_t id = X; id <= Y && result == DEVICE_OK; id += Y - X) {
        result =
            calls->upload(launcher->device, proof->device[id], proof->host[id], proof->sizes[id]);
    }
    /* What a kernel does not write is no result by luck. */
    if (result == DEVICE_OK) {
        result = calls->fill(launcher->device, proof->device[OUT], 0xa5, out_size);
    }
    for (uint32_t at = 0; at < 3 && result == DEVICE_OK; at++) {
        result = launch_op(launcher, at);
    }
    if (result == DEVICE_OK) {
        result = calls->download(launcher->device, out, proof->device[OUT], out_size);
    }
    *right = result == DEVICE_OK && memcmp(out, proof->host[OUT], out_size) == 0;
    free(out);
    return result;
}

/* Does this path give the rules' bits on this problem? */
static enum device_result problem_run(bool *right, const struct problem *problem,
                                      const struct launcher *device_launcher)
{
    /* A copy: it points into the proof, which ends here. */
    struct launcher launcher = *device_launcher;
    struct proof proof;
    enum device_result result = DEVICE_NO_MEMORY;
    uint64_t place = 0;
    void *block = NULL;

    *right = false;
    if (proof_init(&proof, problem)) {
        for (int id = 0; id < TENSORS; id++) {
            place += packed_round_up(proof.sizes[id], PACKED_ALIGNMENT);
        }
        result = launcher.calls->allocate(launcher.device, &block, place + proof.scratch_size);
    }
    if (result == DEVICE_OK) {
        launcher.scratch = (uint8_t *)block + place;
        place = 0;
        for (int id = 0; id < TENSORS; id++) {
            proof.device[id] = (uint8_t *)block + place;
            place += packed_round_up(proof.sizes[id], PACKED_ALIGNMENT);
        }
        launcher.barred = ~(1u << problem->path);
        launcher.processors = problem->split ? 64 : 1;
        result = proof_run(right, &proof, &launcher);
    }
    if (block != NULL) {
        launcher.calls->release(launcher.device, block);
    }
    proof_release(&proof);
    return result;
}

/* ---- all of them ----------------------------------------------------------------- */

#define NOTE_KNOWN UINT32_C(0x80000000)
#define NOTE_BITS  15 /* for each of two sets */
#define NOTE_MASK  ((1u << NOTE_BITS) - 1)

_Static_assert(WAY_COUNT <= NOTE_BITS, "a note has a bit for each way");

/* A kernel that does not start harms nothing but its own way. */
static enum device_result forgiven(enum device_result result, const struct launcher *launcher)
{
    return result == DEVICE_NO_MEMORY ? result : launcher->calls->wait(launcher->device);
}

static enum device_result prove_others(struct paths *paths, const struct launcher *device_launcher)
{
    struct launcher launcher = *device_launcher;
    enum device_result result = DEVICE_OK;

    for (uint32_t way = CONTRACT_PATHS; way < WAY_COUNT && result == DEVICE_OK; way++) {
        bool right = true;

        if ((paths_barred(paths) >> way & 1) == 0) {
            launcher.barred = paths_barred(paths) | ~paths->offered;
            result = proof_of_way(&right, &launcher, way);
        }
        result = result == DEVICE_OK ? result : forgiven(result, &launcher);
        paths->wrong |= right ? 0 : 1u << way;
    }
    return result;
}

static enum device_result prove(struct paths *paths, const struct launcher *launcher)
{
    enum device_result result = DEVICE_OK;

    for (size_t i = 0; i < PROBLEM_COUNT && result == DEVICE_OK; i++) {
        const uint32_t bit = 1u << problems[i].path;
        bool right = true;

        if ((paths->offered & bit) != 0 && (paths_barred(paths) & bit) == 0) {
            result = problem_run(&right, &problems[i], launcher);
        }
        if (result != DEVICE_OK && problems[i].path != CONTRACT_PLAINLY) {
            result = forgiven(result, launcher);
        }
        paths->wrong |= right ? 0 : bit;
    }
    return result == DEVICE_OK ? prove_others(paths, launcher) : result;
}

enum status paths_prove(struct paths *paths, const struct device_calls *calls,
                        struct device *device, const struct device_facts *facts, int ordinal,
                        struct error *error)
{
    const struct launcher launcher = {.calls = calls,
                                      .device = device,
                                      .block_count = 64,
                                      .capability = facts->capability,
                                      .shared_max = facts->shared_max,
                                      .gives_up = true,
                                      .packed = true};
    uint32_t *note = calls->note(ordinal);
    enum device_result result = DEVICE_OK;
    enum status status;

    memset(paths, 0, sizeof(*paths));
    status = read_wish(&paths->unasked, error);
    if (status != STATUS_OK) {
        return status;
    }
    paths->offered = 1u << CONTRACT_BY_MMA | 1u << CONTRACT_PLAINLY;
    if (facts->capability == HOPPER_CAPABILITY) {
        paths->offered |= 1u << CONTRACT_BY_PAIRS | 1u << CONTRACT_BY_WGMMA;
    }
    for (uint32_t way = CONTRACT_PATHS; way < WAY_COUNT; way++) {
        paths->offered |= 1u << way;
    }
    paths->unasked &= paths->offered;
    if (note != NULL && (*note & NOTE_KNOWN) != 0 &&
        (*note >> NOTE_BITS & NOTE_MASK) == paths->unasked) {
        paths->wrong = *note & NOTE_MASK;
    } else {
        result = prove(paths, &launcher);
    }
    if (result != DEVICE_OK || (paths->wrong >> CONTRACT_PLAINLY & 1) != 0) {
        (void)error_set(error, result == DEVICE_NO_MEMORY ? STATUS_NO_MEMORY : STATUS_DEVICE,
                        "%s fails the proof of its contraction kernels: %s", facts->name,
                        result != DEVICE_OK ? calls->trouble()
                                            : "they give other bits than the rules");
        error_advise(error, "if it stays, try LOCKSTEP_CUDA_WITHOUT=pairs,wgmma, and tell us");
        return result == DEVICE_NO_MEMORY ? STATUS_NO_MEMORY : STATUS_DEVICE;
    }
    if (note != NULL) {
        *note = NOTE_KNOWN | paths->unasked << NOTE_BITS | paths->wrong;
    }
    return STATUS_OK;
}

enum status paths_of_device(struct paths *paths, const struct device_calls *calls, int ordinal,
                            struct error *error)
{
    struct device_facts facts = {.capability = 0};
    struct device *device = NULL;
    enum device_result result = calls->open(&device, &facts, ordinal);
    enum status status;

    if (result != DEVICE_OK) {
        return machine_cuda_trouble(calls, &facts, ordinal, result, error);
    }
    status = paths_prove(paths, calls, device, &facts, ordinal, error);
    calls->close(device);
    return status;
}
