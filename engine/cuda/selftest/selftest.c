/* selftest.c - see proof.h. */
#include "engine/cuda/selftest/selftest_tape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/kernels/packed.h"
#include "engine/ops/kernel.h"
#include "engine/ops/real.h"

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
    (void)add_ones(proof, b, rows, k);
}

/* The squares of a tensor as build_square_sum() writes them. */
static uint32_t add_square_sum(struct proof *proof, uint32_t x, int64_t rows, int64_t k, int bits,
                               int block)
{
    const struct op *q = add_quantize(proof, x, rows, 1, k, bits, block, true);
    const uint32_t partial = hide(proof, add_dots(proof, q, q, rows, k));

    if (rows == 1) {
        return partial;
    }
    q = add_quantize(proof, partial, 1, 1, rows, 22, 0, true);
    return hide(proof, add_ones(proof, q, 1, rows));
}

/* A few numbers and four that are the same for all of them, as an optimizer reads them. */
static void add_update(struct proof *proof, enum op_kind kind, uint32_t gradient,
                       const uint32_t scalars[4], uint64_t count)
{
    static const float adamw[] = {0.9f, 0.1f, 0.999f, 0.001f, 1e-8f, 0.1f};
    static const float sgd[] = {0.9f, 0.01f};
    const bool is_adamw = kind == OP_ADAMW;
    const uint32_t p = give(proof, DTYPE_F32, count);
    const uint32_t v = give(proof, DTYPE_F32, count);
    const uint32_t m = is_adamw ? give(proof, DTYPE_F32, count) : 0;
    struct op *op = add_op(proof, kind);

    op->attribute_count = is_adamw ? ADAMW_ATTRIBUTES : SGD_ATTRIBUTES;
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        op->attributes[i] = real_to_bits(is_adamw ? adamw[i] : sgd[i]);
    }
    add_input(op, p);
    add_input(op, gradient);
    if (is_adamw) {
        add_input(op, m);
    }
    add_input(op, v);
    for (uint32_t i = 0; i < 4; i++) {
        if (is_adamw || i == 0 || i == 3) {
            add_input(op, scalars[i]);
        }
    }
    for (uint32_t i = 0; i < (is_adamw ? 3 : 2); i++) {
        (void)add_output(proof, op, DTYPE_F32, count);
    }
}

/* Tensors of all sizes: their squares, added up, and the update of each. */
static void build_lists(struct proof *proof, uint32_t part)
{
    static const struct {
        int64_t rows;
        int64_t k;
    } shapes[4] = {{11, 300}, {1, 36}, {2, 1301}, {9, 128}};
    uint32_t gradients[4];
    uint32_t scalars[4];
    uint32_t total = 0;

    for (int i = 0; i < 4; i++) {
        gradients[i] = give(proof, DTYPE_F32, (uint64_t)(shapes[i].rows * shapes[i].k));
        scalars[i] = give(proof, DTYPE_F32, 1);
    }
    for (int i = 0; i < 4; i++) {
        const uint32_t square = add_square_sum(proof, gradients[i], shapes[i].rows, shapes[i].k,
                                               part == 0 ? 14 : 16, part == 0 ? 128 : 0);

        if (i == 0) {
            total = square;
        } else {
            struct op *op = add_op(proof, OP_ADD);

            op->attributes[BROADCAST_DIV] = 1;
            op->attributes[BROADCAST_MOD] = 1;
            add_input(op, total);
            add_input(op, square);
            total = add_output(proof, op, DTYPE_F32, 1);
            if (i < 3) {
                (void)hide(proof, total);
            }
        }
    }
    for (int i = 0; i < 4; i++) {
        add_update(proof, part == 0 ? OP_ADAMW : OP_SGD, gradients[i], scalars,
                   (uint64_t)(shapes[i].rows * shapes[i].k));
    }
}

/* Views across memory, some rows too many for a group, all widths. */
static void build_columns(struct proof *proof, uint32_t part)
{
    static const struct {
        int64_t batches;
        int64_t rows;
        int64_t k;
        int bits;
        int block;
    } shapes[] = {{2, 37, 300, 14, 128}, {1, 19, 1030, 16, 128}, {1, 9, 60, 22, 0}};
    const int64_t batches = shapes[part].batches;
    const int64_t rows = shapes[part].rows;
    const int64_t k = shapes[part].k;
    const uint32_t x = give(proof, DTYPE_F32, (uint64_t)(batches * rows * k));
    const struct op *q =
        add_quantize(proof, x, batches, rows, k, shapes[part].bits, shapes[part].block, false);

    (void)add_dots(proof, q, q, batches * rows, k);
    (void)add_ones(proof, q, batches * rows, k);
    proof->tensors[q->outputs[1]].role = ROLE_OUTPUT;
}

/* Every kind in narrow rows and wide ones, quantized at once and alone. */
static void build_held(struct proof *proof, uint32_t part)
{
    static const struct row_kind kinds[] = {
        {OP_LAYER_NORM, 0x3727c5ac, {1, 2, 2}, {3, 3, 3, 3, 1}},
        {OP_LAYER_NORM_GRAD, 0, {1, 1, 2, 3, 3}, {3, 3, 3, 3, 1, 1}},
        {OP_RMS_NORM, 0x3727c5ac, {1, 2}, {3, 3, 1}},
        {OP_RMS_NORM_GRAD, 0, {1, 1, 2, 3}, {3, 3, 1, 1}},
        {OP_SOFTMAX, 0x3e000000, {1}, {3, 3, 1, 3, 3, 1}},
        {OP_SOFTMAX_GRAD, 0x3e000000, {1, 1}, {3, 3, 1}},
    };
    static const uint32_t mains[] = {4, 4, 2, 2, 5, 2};
    const int64_t columns = part == 0 ? 300 : 1000;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct op *op = add_rows(proof, &kinds[i], 9, columns, part == 0 ? 0 : 9);
        const struct op *q;

        q = add_quantize(proof, op->outputs[mains[i]], 1, 9, columns, 14, 128, true);
        if (i % 2 == 0) {
            (void)add_ones(proof, q, 9, columns);
            (void)add_dots(proof, q, q, 9, columns);
        }
    }
    (void)add_rows(proof, &kinds[0], 9, columns + 1, 0);
    (void)add_rows(proof, &kinds[5], 9, columns + 1, 5);
}

/*
 * Views across memory by few rows, on either side of a product: a causal softmax's columns, long
 * rows and short ones, and as many of the other operand as a strip takes.
 */
static void build_strips(struct proof *proof, uint32_t part)
{
    static const struct row_kind softmax = {OP_SOFTMAX, 0x3e000000, {1}, {3, 3, 1, 3, 3, 1}};
    static const struct {
        int64_t batches;
        int64_t rows;
        int64_t others;
        int64_t k;
        int bits;
        int block;
    } shapes[] = {{2, 150, 19, 150, 14, 128},
                  {1, 40, 70, 1000, 14, 128},
                  {3, 17, 128, 60, 16, 0},
                  {1, 20, 5, 130, 15, 128}};
    const int64_t batches = shapes[part].batches;
    const int64_t rows = shapes[part].rows;
    const int64_t others = shapes[part].others;
    const int64_t k = shapes[part].k;
    const int64_t by_a[3] = {batches, rows, others};
    const int64_t by_b[3] = {batches, others, rows};
    const uint32_t y = give(proof, DTYPE_F32, (uint64_t)(batches * others * k));
    const uint32_t x = part == 0 ? add_rows(proof, &softmax, batches * k, rows, k)->outputs[5]
                                 : give(proof, DTYPE_F32, (uint64_t)(batches * rows * k));
    const struct op *a =
        add_quantize(proof, x, batches, rows, k, shapes[part].bits, shapes[part].block, false);
    const struct op *b =
        add_quantize(proof, y, batches, others, k, shapes[part].bits, shapes[part].block, true);

    (void)add_contract(proof, part % 2 == 0 ? b : a, part % 2 == 0 ? a : b,
                       part % 2 == 0 ? by_b : by_a, k, part % 2 != 0);
}

/* Softmax of scores, or its gradient by p and dp: of rows that a product made. */
static uint32_t add_softmax(struct proof *proof, uint32_t p, uint32_t scores, int64_t rows,
                            int64_t columns, int64_t causal, bool forward)
{
    struct op *op = add_op(proof, forward ? OP_SOFTMAX : OP_SOFTMAX_GRAD);
    const uint64_t all = (uint64_t)(rows * columns);

    op->attributes[ROWS] = rows;
    op->attributes[COLUMNS] = columns;
    op->attributes[SOFTMAX_CAUSAL] = causal;
    op->attributes[SOFTMAX_SCALE_BITS] = 0x3e000000;
    op->attribute_count = SOFTMAX_ATTRIBUTES;
    if (!forward) {
        add_input(op, p);
    }
    add_input(op, hide(proof, scores));
    for (int i = 0; i < (forward ? 5 : 2); i++) {
        (void)hide(proof, add_output(proof, op, DTYPE_F32, i == 2 ? all : (uint64_t)rows));
    }
    return add_output(proof, op, DTYPE_F32, all);
}

/* From queries and keys to p and its product, and backward; of two heads, causal or not. */
static void build_attention(struct proof *proof, uint32_t part)
{
    static const struct {
        int64_t queries;
        int64_t keys;
        int64_t d;
        int bits;
    } shapes[] = {{41, 41, 40, 14}, {19, 300, 72, 14}, {35, 35, 64, 16}};
    const int64_t m = shapes[part].queries;
    const int64_t n = shapes[part].keys;
    const int64_t d = shapes[part].d;
    const int64_t squares[3] = {2, m, n};
    const int64_t products[3] = {2, m, d};
    const int64_t causal = m == n ? m : 0;
    const int bits = shapes[part].bits;
    uint32_t given[4];
    uint32_t p = 0;

    for (int i = 0; i < 4; i++) { /* queries, keys, values, dout */
        given[i] = give(proof, DTYPE_F32, (uint64_t)(2 * (i % 3 == 0 ? m : n) * d));
    }
    for (int backward = 0; backward < 2; backward++) {
        const struct op *a = add_quantize(proof, given[backward ? 3 : 0], 2, m, d, bits, 128, true);
        const struct op *b = add_quantize(proof, given[backward ? 2 : 1], 2, n, d, bits, 128, true);
        struct op *scores = add_contract(proof, a, b, squares, d, false);

        scores->attributes[CONTRACT_CAUSAL] = causal;
        p = add_softmax(proof, p, scores->outputs[0], 2 * m, n, causal, !backward);
        a = add_quantize(proof, p, 2, m, n, bits, 128, true);
        b = add_quantize(proof, given[backward ? 1 : 2], 2, d, n, bits, 128, false);
        (void)add_contract(proof, a, b, products, n, false);
    }
}

/* Losses that somebody sums, and their gradient, along rows of one chunk and of some more. */
static void build_entropy(struct proof *proof, uint32_t part)
{
    const int64_t rows = 7;
    const int64_t columns = part == 0 ? 29 : 2309;
    const uint64_t all = (uint64_t)(rows * columns);
    const uint64_t chunks = (uint64_t)rows * fold_chunks((uint64_t)columns);
    const uint32_t x = give(proof, DTYPE_F32, all);
    const uint32_t target = give(proof, DTYPE_U32, (uint64_t)rows);
    const uint32_t dloss = give(proof, DTYPE_F32, (uint64_t)rows);
    const uint64_t counts[6] = {chunks, (uint64_t)rows, all,
                                chunks, (uint64_t)rows, (uint64_t)rows};
    struct op *loss = add_op(proof, OP_CROSS_ENTROPY);
    struct op *gradient;
    const struct op *q;

    loss->attributes[ROWS] = rows;
    loss->attributes[COLUMNS] = columns;
    add_input(loss, x);
    add_input(loss, target);
    for (int i = 0; i < 6; i++) {
        const uint32_t id = add_output(proof, loss, DTYPE_F32, counts[i]);

        /* Of these nobody has to know. */
        (void)(i == 0 || i == 2 || i == 3 ? hide(proof, id) : id);
    }
    gradient = add_op(proof, OP_CROSS_ENTROPY_GRAD);
    gradient->attributes[ROWS] = rows;
    gradient->attributes[COLUMNS] = columns;
    add_input(gradient, x);
    add_input(gradient, target);
    add_input(gradient, loss->outputs[1]);
    add_input(gradient, loss->outputs[4]);
    add_input(gradient, dloss);
    (void)add_output(proof, gradient, DTYPE_F32, all);
    q = add_quantize(proof, gradient->outputs[0], 1, rows, columns, part == 0 ? 22 : 14,
                     part == 0 ? 0 : 128, true);
    (void)add_ones(proof, q, rows, columns);
    proof->tensors[q->outputs[1]].role = ROLE_OUTPUT;
}

/* Sums of columns: long ones, of one piece, of all widths. */
static void build_sums(struct proof *proof, uint32_t part)
{
    static const struct {
        int64_t rows;
        int64_t k;
        int bits;
        int block;
    } shapes[] = {{37, 300, 14, 128}, {19, 1030, 16, 128}, {9, 200, 22, 0}, {300, 5, 15, 128}};
    const int64_t rows = shapes[part].rows;
    const int64_t k = shapes[part].k;
    const uint32_t x = give(proof, DTYPE_F32, (uint64_t)(2 * rows * k));
    const struct op *q =
        add_quantize(proof, x, 2, rows, k, shapes[part].bits, shapes[part].block, false);

    (void)add_ones(proof, q, 2 * rows, k);
}

static const struct {
    void (*build)(struct proof *proof, uint32_t part);
    uint32_t parts;
} ways[WAY_COUNT - CONTRACT_PATHS] = {
    [WAY_DOTS - CONTRACT_PATHS] = {build_dots, 3},
    [WAY_LISTS - CONTRACT_PATHS] = {build_lists, 2},
    [WAY_COLUMNS - CONTRACT_PATHS] = {build_columns, 3},
    [WAY_HELD - CONTRACT_PATHS] = {build_held, 2},
    [WAY_STRIPS - CONTRACT_PATHS] = {build_strips, 4},
    [WAY_ATTENTION - CONTRACT_PATHS] = {build_attention, 3},
    [WAY_EPILOGUE - CONTRACT_PATHS] = {proof_build_epilogue, PROOF_EPILOGUE_PARTS},
    [WAY_ENTROPY - CONTRACT_PATHS] = {build_entropy, 2},
    [WAY_SUMS - CONTRACT_PATHS] = {build_sums, 4},
    [WAY_VIEWS - CONTRACT_PATHS] = {proof_build_views, PROOF_VIEWS_PARTS},
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
static enum device_result place(void **block, uint8_t **lists_at, struct proof *proof,
                                struct launcher *launcher)
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
    const uint64_t lists = packed_round_up(proof->fusion.size, PACKED_ALIGNMENT);
    const enum device_result result =
        launcher->calls->allocate(launcher->device, block, size + lists + scratch);
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
    for (uint32_t id = 0; id < proof->tape.tensor_count; id++) {
        if (proof->fusion.holders[id] != id) {
            proof->device[id] =
                (uint8_t *)proof->device[proof->fusion.holders[id]] + proof->fusion.offsets[id];
        }
    }
    *lists_at = at;
    launcher->scratch = at + lists;
    launcher->tape = &proof->tape;
    launcher->memory = proof->device;
    launcher->fusion = &proof->fusion;
    return launcher->calls->upload(launcher->device, *block, proof->fusion.ops,
                                   proof->tape.op_count * sizeof(struct op));
}

/* Which operations are made once all is rewritten: those whose outputs someone needs. */
static void find_needed(struct proof *proof)
{
    for (uint32_t at = proof->tape.op_count; at > 0; at--) {
        const struct op *op = &proof->fusion.ops[at - 1];
        bool makes = false;

        for (uint32_t i = 0; i < op->output_count; i++) {
            const uint32_t id = op->outputs[i];

            makes = makes || proof->needed[proof->fusion.holders[id]] ||
                    proof->tensors[id].role == ROLE_OUTPUT;
        }
        for (uint32_t i = 0; makes && i < op->input_count; i++) {
            proof->needed[proof->fusion.holders[op->inputs[i]]] = true;
        }
        if (op->output_count > 0) {
            proof->needed[op->outputs[0]] = makes; /* stands for the operation from here on */
        }
    }
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

        if (proof->tensors[id].role != ROLE_OUTPUT) {
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
    uint32_t next;

    for (uint32_t at = 0; at < proof->tape.op_count && result == DEVICE_OK; at = next) {
        next = at + 1;
        const struct op *op = &proof->fusion.ops[at];

        if (op->output_count > 0 && proof->needed[op->outputs[0]]) {
            result = launch_unit(&next, launcher, at, proof->tape.op_count);
        }
    }
    return result == DEVICE_OK ? compare(right, proof, launcher) : result;
}

/* With what the machine would rewrite and launch together. */
static enum device_result run_fused(bool *right, struct proof *proof, struct launcher *launcher)
{
    const struct fusion_facts facts = {.barred = launcher->barred,
                                       .capability = launcher->capability,
                                       .shared_max = launcher->shared_max};
    struct tape rewritten = proof->tape;
    enum device_result result;
    uint8_t *lists = NULL;
    void *block = NULL;
    struct error ignored;

    error_init(&ignored);
    if (fusion_build(&proof->fusion, &proof->tape, &facts, &ignored) != STATUS_OK) {
        return DEVICE_NO_MEMORY;
    }
    find_needed(proof);
    rewritten.ops = proof->fusion.ops;
    result = place(&block, &lists, proof, launcher);
    launcher->tape = &rewritten;
    if (result == DEVICE_OK &&
        fusion_upload(&result, &proof->fusion, launcher, lists, &ignored) != STATUS_OK) {
        result = DEVICE_NO_MEMORY;
    }
    if (result == DEVICE_OK) {
        result = run(right, proof, launcher);
    }
    if (block != NULL) {
        launcher->calls->release(launcher->device, block);
    }
    fusion_release(&proof->fusion);
    launcher->fusion = NULL;
    launcher->tape = NULL;
    return result;
}

static enum device_result prove_part(bool *right, struct launcher *launcher, uint32_t way,
                                     uint32_t part)
{
    struct proof *proof = calloc(1, sizeof(*proof));
    enum device_result result = DEVICE_NO_MEMORY;

    *right = false;
    if (proof == NULL) {
        return result;
    }
    proof->tape.tensors = proof->tensors;
    proof->tape.ops = proof->ops;
    proof->tape.loss = TENSOR_NONE;
    ways[way - CONTRACT_PATHS].build(proof, part);
    if (rules(proof)) {
        result = run_fused(right, proof, launcher);
    }
    for (uint32_t id = 0; id < proof->tape.tensor_count; id++) {
        free(proof->host[id]);
    }
    free(proof);
    return result;
}

/* What follows products is proven behind each kernel that makes them. */
static enum device_result prove_epilogue(bool *right, const struct launcher *device_launcher)
{
    struct launcher launcher = *device_launcher;
    enum device_result result = DEVICE_OK;

    for (uint32_t path = 0; path < CONTRACT_PATHS && *right; path++) {
        if ((device_launcher->barred >> path & 1) != 0) {
            continue;
        }
        launcher.barred =
            ~(1u << WAY_EPILOGUE | 1u << WAY_HELD | 1u << path | 1u << CONTRACT_PLAINLY) |
            (device_launcher->barred & 1u << WAY_HELD);
        for (uint32_t part = 0; part < ways[WAY_EPILOGUE - CONTRACT_PATHS].parts && *right;
             part++) {
            launcher.processors = part == PROOF_EPILOGUE_SPLIT ? 64 : 1;
            result = prove_part(right, &launcher, WAY_EPILOGUE, part);
            if (result != DEVICE_OK) {
                return result;
            }
        }
    }
    return result;
}

enum device_result proof_of_way(bool *right, const struct launcher *device_launcher, uint32_t way)
{
    /* A copy: it points into the proofs, which end here. */
    struct launcher launcher = *device_launcher;
    enum device_result result = DEVICE_OK;

    assert(way >= CONTRACT_PATHS && way < WAY_COUNT);
    *right = true;
    if (way == WAY_EPILOGUE) {
        return prove_epilogue(right, device_launcher);
    }
    launcher.barred = ~(1u << way | 1u << CONTRACT_PLAINLY);
    launcher.processors = 1;
    for (uint32_t part = 0; part < ways[way - CONTRACT_PATHS].parts && *right; part++) {
        result = prove_part(right, &launcher, way, part);
        if (result != DEVICE_OK) {
            return result;
        }
    }
    return result;
}
