/* proof.c - see proof.h. */
#include "engine/cuda/proof.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/packed.h"
#include "engine/kernel.h"

#define TENSORS_MAX 64
#define OPS_MAX     24

/* A tape in the making; tensors that no operation makes are given. */
struct proof {
    struct tape tape;
    struct tensor tensors[TENSORS_MAX];
    struct op ops[OPS_MAX];
    bool made[TENSORS_MAX];
    bool packed[TENSORS_MAX]; /* on the device, or left out: not to be compared */
    uint64_t sizes[TENSORS_MAX];
    void *host[TENSORS_MAX];
    void *device[TENSORS_MAX];
};

/* ---- building ------------------------------------------------------------------- */

static uint32_t give(struct proof *proof, enum dtype dtype, uint64_t count)
{
    const uint32_t id = proof->tape.tensor_count++;

    assert(id < TENSORS_MAX);
    proof->tensors[id] =
        (struct tensor){.dtype = dtype, .rank = 1, .dims = {count}, .count = count};
    return id;
}

static struct op *add_op(struct proof *proof, enum op_kind kind)
{
    struct op *op = &proof->ops[proof->tape.op_count++];

    assert(proof->tape.op_count <= OPS_MAX);
    op->kind = kind;
    return op;
}

static void add_input(struct op *op, uint32_t id)
{
    op->inputs[op->input_count++] = id;
}

static uint32_t add_output(struct proof *proof, struct op *op, enum dtype dtype, uint64_t count)
{
    const uint32_t id = give(proof, dtype, count);

    op->outputs[op->output_count++] = id;
    proof->made[id] = true;
    return id;
}

/* A view of rows of k; along: row after row; else a row's elements lie `rows` apart. */
static const struct op *add_quantize(struct proof *proof, uint32_t x, int64_t batches, int64_t rows,
                                     int64_t k, int bits, int block, bool along)
{
    const struct contraction_shape shape = contraction_shape(k, bits, block);
    const int64_t dims[6] = {batches, 1, 1, rows, 1, k};
    const int64_t strides[6] = {rows * k, 0, 0, along ? k : 1, 0, along ? 1 : rows};
    const uint64_t all = (uint64_t)(batches * rows);
    struct op *op = add_op(proof, OP_QUANTIZE);

    for (int axis = 0; axis < 6; axis++) {
        op->attributes[QUANTIZE_DIMS + axis] = dims[axis];
        op->attributes[QUANTIZE_STRIDES + axis] = strides[axis];
    }
    op->attributes[QUANTIZE_BITS] = bits;
    op->attributes[QUANTIZE_BLOCK] = block;
    op->attribute_count = QUANTIZE_ATTRIBUTES;
    add_input(op, x);
    proof->packed[add_output(proof, op, DTYPE_I16, all * (uint64_t)shape.pieces)] = true;
    (void)add_output(proof, op, DTYPE_I16, all * (uint64_t)shape.blocks);
    proof->packed[add_output(proof, op, bits == 22 ? DTYPE_I32 : DTYPE_I16, all * (uint64_t)k)] =
        true;
    return op;
}

/* Sums of the rows of a quantized operand, by which its integers are judged. */
static void add_ones(struct proof *proof, const struct op *quantize, int64_t rows, int64_t k)
{
    struct op *op = add_op(proof, OP_CONTRACT_ONES);

    op->attributes[ONES_ROWS] = rows;
    op->attributes[ONES_K] = k;
    op->attributes[ONES_BITS] = quantize->attributes[QUANTIZE_BITS];
    op->attributes[ONES_BLOCK] = quantize->attributes[QUANTIZE_BLOCK];
    op->attribute_count = ONES_ATTRIBUTES;
    add_input(op, quantize->outputs[2]);
    add_input(op, quantize->outputs[1]);
    (void)add_output(proof, op, DTYPE_F32, (uint64_t)rows);
}

/* One result for each batch of two operands of one row each. */
static uint32_t add_dots(struct proof *proof, const struct op *a, const struct op *b,
                         int64_t batches, int64_t k)
{
    struct op *op = add_op(proof, OP_CONTRACT);

    for (int axis = 0; axis < 6; axis++) {
        op->attributes[CONTRACT_DIMS + axis] = axis == 0 ? batches : 1;
        op->attributes[CONTRACT_STRIDES + axis] = 1;
    }
    op->attributes[CONTRACT_K] = k;
    op->attributes[CONTRACT_BITS] = a->attributes[QUANTIZE_BITS];
    op->attributes[CONTRACT_BLOCK] = a->attributes[QUANTIZE_BLOCK];
    op->attribute_count = CONTRACT_ATTRIBUTES;
    add_input(op, a->outputs[2]);
    add_input(op, a->outputs[1]);
    add_input(op, b->outputs[2]);
    add_input(op, b->outputs[1]);
    return add_output(proof, op, DTYPE_F32, (uint64_t)batches);
}

/* ---- the ways ------------------------------------------------------------------------ */

/* Rows of a warp and of a block, of all widths. */
static void build_dots(struct proof *proof, uint32_t part)
{
    static const struct {
        int64_t rows;
        int64_t k;
        int bits;
        int block;
    } shapes[] = {{37, 300, 14, 128}, {5, 1300, 16, 128}, {3, 1030, 22, 0}};
    const int64_t rows = shapes[part].rows;
    const int64_t k = shapes[part].k;
    const uint32_t x = give(proof, DTYPE_F32, (uint64_t)(rows * k));
    const uint32_t y = give(proof, DTYPE_F32, (uint64_t)(rows * k));
    const struct op *a =
        add_quantize(proof, x, rows, 1, k, shapes[part].bits, shapes[part].block, true);
    const struct op *b =
        add_quantize(proof, y, rows, 1, k, shapes[part].bits, shapes[part].block, true);

    (void)add_dots(proof, a, b, rows, k);
    (void)add_dots(proof, a, a, rows, k);
    add_ones(proof, b, rows, k);
}

static const struct {
    void (*build)(struct proof *proof, uint32_t part);
    uint32_t parts;
} ways[WAY_COUNT - CONTRACT_PATHS] = {
    [WAY_DOTS - CONTRACT_PATHS] = {build_dots, 3},
};

/* ---- running --------------------------------------------------------------------------- */

/* Numbers of all sizes, a hundredth of them zeros of both signs; of indices, small ones. */
static void fill(void *values, const struct tensor *tensor, uint64_t seed)
{
    uint64_t random = seed;

    for (uint64_t i = 0; i < tensor->count; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (tensor->dtype == DTYPE_F32) {
            const float value = (float)((int64_t)(random >> 40) - (1 << 23));
            const bool zero = random >> 32 & 1 ? false : (random >> 20) % 50 == 0;

            ((float *)values)[i] =
                zero ? value * 0.0f : ldexpf(value, -23 - (int)((random >> 12) % 7 * (i % 3)));
        } else {
            ((uint32_t *)values)[i] = (uint32_t)(random >> 33) % 32;
        }
    }
}

static bool rules(struct proof *proof)
{
    for (uint32_t id = 0; id < proof->tape.tensor_count; id++) {
        const struct tensor *tensor = &proof->tensors[id];

        proof->sizes[id] = tensor->count * dtype_size(tensor->dtype);
        proof->host[id] = malloc(proof->sizes[id]);
        if (proof->host[id] == NULL) {
            return false;
        }
        if (!proof->made[id]) {
            fill(proof->host[id], tensor, id + 1);
        }
    }
    for (uint32_t at = 0; at < proof->tape.op_count; at++) {
        const struct op *op = &proof->ops[at];
        struct kernel_call call = {.op = op, .tensors = proof->tensors, .thread_count = 1};

        for (uint32_t i = 0; i < op->input_count; i++) {
            call.inputs[i] = proof->host[op->inputs[i]];
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            call.outputs[i] = proof->host[op->outputs[i]];
            proof->sizes[op->outputs[i]] = launch_output_size(op, i, proof->tensors, true);
        }
        kernel_run_rules(&call);
    }
    return true;
}

/* Device memory for all: tensors, operations, scratch. */
static enum device_result place(void **block, struct proof *proof, struct launcher *launcher)
{
    const uint64_t ops_size = packed_round_up(sizeof(proof->ops), PACKED_ALIGNMENT);
    uint64_t size = ops_size;
    uint64_t scratch = 0;

    for (uint32_t id = 0; id < proof->tape.tensor_count; id++) {
        size += packed_round_up(proof->sizes[id], PACKED_ALIGNMENT);
    }
    for (uint32_t at = 0; at < proof->tape.op_count; at++) {
        const uint64_t own = launch_scratch_size(&proof->ops[at], proof->tensors, true);

        scratch = own > scratch ? own : scratch;
    }
    const enum device_result result =
        launcher->calls->allocate(launcher->device, block, size + scratch);
    uint8_t *at = *block;

    if (result != DEVICE_OK) {
        return result;
    }
    launcher->ops = (const struct op *)at;
    at += ops_size;
    for (uint32_t id = 0; id < proof->tape.tensor_count; id++) {
        proof->device[id] = at;
        at += packed_round_up(proof->sizes[id], PACKED_ALIGNMENT);
    }
    launcher->scratch = at;
    launcher->tape = &proof->tape;
    launcher->memory = proof->device;
    return launcher->calls->upload(launcher->device, *block, proof->ops, sizeof(proof->ops));
}

/* What a kernel does not write is no result by luck. */
static enum device_result give_values(struct proof *proof, const struct launcher *launcher)
{
    const struct device_calls *calls = launcher->calls;
    enum device_result result = DEVICE_OK;

    for (uint32_t id = 0; id < proof->tape.tensor_count && result == DEVICE_OK; id++) {
        result = proof->made[id]
                     ? calls->fill(launcher->device, proof->device[id], 0xa5, proof->sizes[id])
                     : calls->upload(launcher->device, proof->device[id], proof->host[id],
                                     proof->sizes[id]);
    }
    return result;
}

static enum device_result compare(bool *right, const struct proof *proof,
                                  const struct launcher *launcher)
{
    enum device_result result = DEVICE_OK;

    *right = true;
    for (uint32_t id = 0; id < proof->tape.tensor_count && result == DEVICE_OK; id++) {
        void *got;

        if (!proof->made[id] || proof->packed[id]) {
            continue;
        }
        got = malloc(proof->sizes[id]);
        if (got == NULL) {
            return DEVICE_NO_MEMORY;
        }
        result =
            launcher->calls->download(launcher->device, got, proof->device[id], proof->sizes[id]);
        *right =
            *right && result == DEVICE_OK && memcmp(got, proof->host[id], proof->sizes[id]) == 0;
        free(got);
    }
    *right = *right && result == DEVICE_OK;
    return result;
}

static enum device_result run(bool *right, struct proof *proof, struct launcher *launcher)
{
    enum device_result result = give_values(proof, launcher);

    for (uint32_t at = 0; at < proof->tape.op_count && result == DEVICE_OK; at++) {
        result = launch_op(launcher, at);
    }
    return result == DEVICE_OK ? compare(right, proof, launcher) : result;
}

static enum device_result prove_part(bool *right, struct launcher *launcher, uint32_t way,
                                     uint32_t part)
{
    struct proof *proof = calloc(1, sizeof(*proof));
    enum device_result result = DEVICE_NO_MEMORY;
    void *block = NULL;

    *right = false;
    if (proof == NULL) {
        return result;
    }
    proof->tape.tensors = proof->tensors;
    proof->tape.ops = proof->ops;
    ways[way - CONTRACT_PATHS].build(proof, part);
    if (rules(proof)) {
        result = place(&block, proof, launcher);
    }
    if (result == DEVICE_OK) {
        result = run(right, proof, launcher);
    }
    if (block != NULL) {
        launcher->calls->release(launcher->device, block);
    }
    for (uint32_t id = 0; id < proof->tape.tensor_count; id++) {
        free(proof->host[id]);
    }
    free(proof);
    return result;
}

enum device_result proof_of_way(bool *right, struct launcher *launcher, uint32_t way)
{
    enum device_result result = DEVICE_OK;

    assert(way >= CONTRACT_PATHS && way < WAY_COUNT);
    *right = true;
    launcher->barred = ~(1u << way | 1u << CONTRACT_PLAINLY);
    launcher->processors = 1;
    for (uint32_t part = 0; part < ways[way - CONTRACT_PATHS].parts && *right; part++) {
        result = prove_part(right, launcher, way, part);
        if (result != DEVICE_OK) {
            return result;
        }
    }
    return result;
}
