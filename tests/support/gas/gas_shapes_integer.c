/* gas_shapes_integer.c - see gas_shapes.h. */
#include "tests/support/gas/gas_shapes.h"

#include <string.h>

#include "engine/ops/contraction.h"
#include "tests/support/test.h"

enum {
    TOKENS = 1024,
    WIDTH = 768,
    HIDDEN = 3072,
    VOCABULARY = 50257,
    ROWS_OF_LONG = 128, /* of operands with rows of VOCABULARY: fewer than a step has */
    BITS = 14,
    BLOCK = 128,
};

static void random_tensor(struct gas_shapes *shapes, struct shown_case *shown, uint32_t number,
                          enum dtype dtype, uint64_t count)
{
    void *memory = shown_case_tensor(shown, number, dtype, count);

    if (dtype == DTYPE_I16) {
        for (uint64_t i = 0; i < count; i++) {
            ((int16_t *)memory)[i] = (int16_t)(test_random_below(&shapes->seed, 16383) - 8191);
        }
    } else if (dtype == DTYPE_BF16) {
        for (uint64_t i = 0; i < count; i++) { /* from 2^-7 to 2^9 */
            ((uint16_t *)memory)[i] = (uint16_t)(0x3c00 + test_random_below(&shapes->seed, 0x800));
        }
    } else {
        test_random_fill(&shapes->seed, memory, count * dtype_size(dtype));
    }
}

static void exponents(struct gas_shapes *shapes, struct shown_case *shown, uint32_t number,
                      uint64_t count)
{
    int16_t *memory = shown_case_tensor(shown, number, DTYPE_I16, count);

    for (uint64_t i = 0; i < count; i++) {
        memory[i] = (int16_t)(test_random_below(&shapes->seed, 8));
    }
}

static void make_product(struct gas_shapes *shapes, struct shown_case *shown, int64_t m, int64_t n,
                         int64_t k)
{
    const int64_t attributes[CONTRACT_ATTRIBUTES] = {1, 1, 1, m, 1, n,    0,     0,
                                                     0, n, 0, 1, k, BITS, BLOCK, 0};
    uint64_t blocks = (uint64_t)(k + BLOCK - 1) / BLOCK;

    shown_case_init(shown, OP_CONTRACT, 4, 1);
    memcpy(shown->op.attributes, attributes, sizeof(attributes));
    shown->op.attribute_count = CONTRACT_ATTRIBUTES;
    random_tensor(shapes, shown, 0, DTYPE_I16, (uint64_t)(m * k));
    exponents(shapes, shown, 1, (uint64_t)m * blocks);
    random_tensor(shapes, shown, 2, DTYPE_I16, (uint64_t)(n * k));
    exponents(shapes, shown, 3, (uint64_t)n * blocks);
    random_tensor(shapes, shown, 4, DTYPE_F32, (uint64_t)(m * n));
    shown_case_check(shown);
}

static void visit_products(struct gas_shapes *shapes)
{
    struct shown_case shown;

    make_product(shapes, &shown, TOKENS, 3 * WIDTH, WIDTH);
    shapes->visit(shapes->context, "contract, K = 768", &shown,
                  &(struct shown_target){.element = 1000 * 3 * WIDTH + 77});
    shown_case_release(&shown);
    make_product(shapes, &shown, TOKENS, WIDTH, HIDDEN);
    shapes->visit(shapes->context, "contract, K = 3072", &shown,
                  &(struct shown_target){.element = 1000 * WIDTH + 77});
    shown_case_release(&shown);
    make_product(shapes, &shown, ROWS_OF_LONG, ROWS_OF_LONG, VOCABULARY);
    shapes->visit(shapes->context, "contract, a part of K = 50257", &shown,
                  &(struct shown_target){.element = 1000, .is_part = true, .part = 20});
    shown_case_release(&shown);
}

/* The gradient of a bias, and that of the embedding. */
static void visit_sums(struct gas_shapes *shapes)
{
    const int64_t ones[ONES_ATTRIBUTES] = {HIDDEN, TOKENS, BITS, BLOCK};
    const int64_t onehot[ONEHOT_ATTRIBUTES] = {VOCABULARY, WIDTH, TOKENS, BITS, BLOCK};
    struct shown_case shown;
    uint32_t *words;

    shown_case_init(&shown, OP_CONTRACT_ONES, 2, 1);
    memcpy(shown.op.attributes, ones, sizeof(ones));
    shown.op.attribute_count = ONES_ATTRIBUTES;
    random_tensor(shapes, &shown, 0, DTYPE_I16, HIDDEN * TOKENS);
    exponents(shapes, &shown, 1, HIDDEN * TOKENS / BLOCK);
    random_tensor(shapes, &shown, 2, DTYPE_F32, HIDDEN);
    shown_case_check(&shown);
    shapes->visit(shapes->context, "contract-ones, K = 1024", &shown,
                  &(struct shown_target){.element = 77});
    shown_case_release(&shown);

    shown_case_init(&shown, OP_CONTRACT_ONEHOT, 3, 1);
    memcpy(shown.op.attributes, onehot, sizeof(onehot));
    shown.op.attribute_count = ONEHOT_ATTRIBUTES;
    words = shown_case_tensor(&shown, 0, DTYPE_U32, TOKENS);
    for (uint32_t i = 0; i < TOKENS; i++) {
        words[i] = (uint32_t)(i % 64 == 5 ? 1 : test_random_below(&shapes->seed, VOCABULARY));
    }
    random_tensor(shapes, &shown, 1, DTYPE_I16, WIDTH * TOKENS);
    exponents(shapes, &shown, 2, WIDTH * TOKENS / BLOCK);
    (void)shown_case_tensor(&shown, 3, DTYPE_F32, (uint64_t)VOCABULARY * WIDTH);
    shown_case_check(&shown);
    shapes->visit(shapes->context, "contract-onehot, K = 1024", &shown,
                  &(struct shown_target){.element = WIDTH + 77});
    shown_case_release(&shown);
}

/* A layer of experts, and the gradient of its weights. */
static void visit_experts(struct gas_shapes *shapes)
{
    const int64_t chosen[CHOSEN_ATTRIBUTES] = {TOKENS, 8, WIDTH, WIDTH, BITS, BLOCK};
    const int64_t apart[CHOSEN_SUM_ATTRIBUTES] = {8, 16, 16, TOKENS, BITS, 0};
    struct shown_case shown;
    uint32_t *index;

    shown_case_init(&shown, OP_CONTRACT_CHOSEN, 5, 1);
    memcpy(shown.op.attributes, chosen, sizeof(chosen));
    shown.op.attribute_count = CHOSEN_ATTRIBUTES;
    random_tensor(shapes, &shown, 0, DTYPE_I16, TOKENS * WIDTH);
    exponents(shapes, &shown, 1, TOKENS * WIDTH / BLOCK);
    index = shown_case_tensor(&shown, 2, DTYPE_U32, TOKENS);
    for (uint32_t i = 0; i < TOKENS; i++) {
        index[i] = (uint32_t)test_random_below(&shapes->seed, 8);
    }
    random_tensor(shapes, &shown, 3, DTYPE_I16, 8 * WIDTH * WIDTH);
    exponents(shapes, &shown, 4, 8 * WIDTH * WIDTH / BLOCK);
    random_tensor(shapes, &shown, 5, DTYPE_F32, TOKENS * WIDTH);
    shown_case_check(&shown);
    shapes->visit(shapes->context, "contract-chosen, K = 768", &shown,
                  &(struct shown_target){.element = 7 * WIDTH + 77});
    shown_case_release(&shown);

    shown_case_init(&shown, OP_CONTRACT_CHOSEN_ROWS, 5, 1);
    memcpy(shown.op.attributes, apart, sizeof(apart));
    shown.op.attribute_count = CHOSEN_SUM_ATTRIBUTES;
    index = shown_case_tensor(&shown, 0, DTYPE_U32, TOKENS);
    for (uint32_t i = 0; i < TOKENS; i++) {
        index[i] = (uint32_t)test_random_below(&shapes->seed, 8);
    }
    random_tensor(shapes, &shown, 1, DTYPE_I16, 16 * TOKENS);
    exponents(shapes, &shown, 2, 16);
    random_tensor(shapes, &shown, 3, DTYPE_I16, 16 * TOKENS);
    exponents(shapes, &shown, 4, 16);
    random_tensor(shapes, &shown, 5, DTYPE_F32, 8 * 16 * 16);
    shown_case_check(&shown);
    shapes->visit(shapes->context, "contract-chosen-rows, K = 1024", &shown,
                  &(struct shown_target){.element = 300});
    shown_case_release(&shown);
}

/* Rows along the last axis of (TOKENS, columns), or down its columns. */
static void make_quantize(struct gas_shapes *shapes, struct shown_case *shown, enum dtype dtype,
                          int64_t columns, bool down)
{
    const int64_t along[12] = {1, 1, 1, TOKENS, 1, columns, 0, 0, 0, columns, 0, 1};
    const int64_t across[12] = {1, 1, 1, columns, 1, TOKENS, 0, 0, 0, 1, 0, columns};
    struct contraction_shape shape;
    uint64_t rows = (uint64_t)(down ? columns : TOKENS);

    shown_case_init(shown, OP_QUANTIZE, 1, 3);
    memcpy(shown->op.attributes, down ? across : along, sizeof(along));
    shown->op.attributes[QUANTIZE_BITS] = BITS;
    shown->op.attributes[QUANTIZE_BLOCK] = BLOCK;
    shown->op.attribute_count = QUANTIZE_ATTRIBUTES;
    shape = contraction_shape_of(&shown->op);
    random_tensor(shapes, shown, 0, dtype, (uint64_t)(TOKENS * columns));
    shown->operands[0].role = dtype_is_half(dtype) ? ROLE_DATA : shown->operands[0].role;
    exponents(shapes, shown, 1, rows * (uint64_t)shape.pieces);
    exponents(shapes, shown, 2, rows * (uint64_t)shape.blocks);
    random_tensor(shapes, shown, 3, DTYPE_I16, (uint64_t)(TOKENS * columns));
    shown_case_check(shown);
}

static void visit_quantize(struct gas_shapes *shapes)
{
    struct shown_case shown;

    make_quantize(shapes, &shown, DTYPE_F32, WIDTH, false);
    shapes->visit(shapes->context, "quantize, peak", &shown, &(struct shown_target){.element = 77});
    shapes->visit(shapes->context, "quantize, exponent", &shown,
                  &(struct shown_target){.output = 1, .element = 77});
    shapes->visit(shapes->context, "quantize, integer", &shown,
                  &(struct shown_target){.output = 2, .element = 77});
    shown_case_release(&shown);
    make_quantize(shapes, &shown, DTYPE_F32, WIDTH, true);
    shapes->visit(shapes->context, "quantize, a part of a peak down a column", &shown,
                  &(struct shown_target){.element = 77, .is_part = true, .part = 3});
    shown_case_release(&shown);
}

/* A quarter of the words: two siblings less. */
static void make_gather(struct gas_shapes *shapes, struct shown_case *shown, enum dtype dtype)
{
    const int64_t attributes[GATHER_ATTRIBUTES] = {VOCABULARY / 4, WIDTH};

    shown_case_init(shown, OP_GATHER, 2, 1);
    memcpy(shown->op.attributes, attributes, sizeof(attributes));
    shown->op.attribute_count = GATHER_ATTRIBUTES;
    (void)shown_case_tensor(shown, 0, dtype, (uint64_t)(attributes[0] * WIDTH));
    shown->operands[0].role = dtype_is_half(dtype) ? ROLE_DATA : shown->operands[0].role;
    (void)shown_case_tensor(shown, 1, DTYPE_U32, TOKENS);
    random_tensor(shapes, shown, 2, DTYPE_F32, TOKENS * WIDTH);
    shown_case_check(shown);
}

/* A frozen weight of 16 bits: data under a root of its own. */
static void visit_frozen(struct gas_shapes *shapes)
{
    struct shown_case shown;

    make_quantize(shapes, &shown, DTYPE_BF16, WIDTH, false);
    shapes->visit(shapes->context, "quantize, peak, bf16 data", &shown,
                  &(struct shown_target){.element = 77});
    shapes->visit(shapes->context, "quantize, integer, bf16 data", &shown,
                  &(struct shown_target){.output = 2, .element = 77});
    shown_case_release(&shown);
    make_gather(shapes, &shown, DTYPE_BF16);
    shapes->visit(shapes->context, "gather, bf16 data", &shown,
                  &(struct shown_target){.element = 1000 * WIDTH + 77});
    shown_case_release(&shown);
}

static void visit_moves(struct gas_shapes *shapes)
{
    const int64_t batch[BATCH_TOKENS_ATTRIBUTES] = {1, TOKENS, 1, 2, 3};
    const int64_t dropout[DROPOUT_ATTRIBUTES] = {1, 0x3f800000, 1, 2, 3};
    struct shown_case shown;

    make_gather(shapes, &shown, DTYPE_F32);
    shapes->visit(shapes->context, "gather", &shown,
                  &(struct shown_target){.element = 1000 * WIDTH + 77});
    shown_case_release(&shown);

    shown_case_init(&shown, OP_BATCH_TOKENS, 2, 2);
    memcpy(shown.op.attributes, batch, sizeof(batch));
    shown.op.attribute_count = BATCH_TOKENS_ATTRIBUTES;
    random_tensor(shapes, &shown, 0, DTYPE_U16, 1 << 20);
    shown.operands[0].role = ROLE_DATA;
    random_tensor(shapes, &shown, 1, DTYPE_U32, 1);
    random_tensor(shapes, &shown, 2, DTYPE_U32, TOKENS);
    random_tensor(shapes, &shown, 3, DTYPE_U32, TOKENS);
    shown_case_check(&shown);
    shapes->visit(shapes->context, "batch-tokens", &shown, &(struct shown_target){.element = 77});
    shown_case_release(&shown);

    shown_case_init(&shown, OP_DROPOUT, 2, 1);
    memcpy(shown.op.attributes, dropout, sizeof(dropout));
    shown.op.attribute_count = DROPOUT_ATTRIBUTES;
    random_tensor(shapes, &shown, 0, DTYPE_F32, TOKENS * WIDTH);
    random_tensor(shapes, &shown, 1, DTYPE_U32, 1);
    random_tensor(shapes, &shown, 2, DTYPE_F32, TOKENS * WIDTH);
    shown_case_check(&shown);
    shapes->visit(shapes->context, "dropout", &shown, &(struct shown_target){.element = 77});
    shown_case_release(&shown);
}

void gas_shapes_of_integers(struct gas_shapes *shapes)
{
    visit_products(shapes);
    visit_sums(shapes);
    visit_quantize(shapes);
    visit_moves(shapes);
    visit_frozen(shapes);
    visit_experts(shapes);
}
