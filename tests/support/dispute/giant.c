/* giant.c - see giant.h. */
#include "tests/support/dispute/giant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/commit.h"

static const struct tensor *traced(const struct giant *giant, uint32_t item)
{
    for (uint32_t id = 0; id < giant->tape->tensor_count; id++) {
        if (giant->places.of[id] == item) {
            return &giant->tape->tensors[id];
        }
    }
    abort();
}

static uint32_t value_of(const struct giant *giant, const struct tensor *tensor)
{
    return giant->values[tensor - giant->tape->tensors];
}

/* The leaf at index, of which `used` bytes are the tensor's. */
static void fill_leaf(uint8_t leaf[MERKLE_LEAF_SIZE], const struct tensor *tensor, uint32_t value,
                      uint64_t used)
{
    size_t size = dtype_size(tensor->dtype);

    memset(leaf, 0, MERKLE_LEAF_SIZE);
    for (uint64_t at = 0; at < used && at < MERKLE_LEAF_SIZE; at += size) {
        memcpy(leaf + at, &value, size);
    }
}

static uint64_t leaves_of(const struct tensor *tensor)
{
    return (commit_tensor_size(tensor) + MERKLE_LEAF_SIZE - 1) / MERKLE_LEAF_SIZE;
}

/* The node over the leaves [first, first + 2^level) or to the end: equal halves hash once. */
static void uniform_node(struct digest *node, const struct tensor *tensor, uint32_t value,
                         uint32_t level, uint64_t first)
{
    uint64_t size = commit_tensor_size(tensor);
    uint64_t full = size / MERKLE_LEAF_SIZE; /* leaves without padding */
    uint64_t half = level == 0 ? 0 : UINT64_C(1) << (level - 1);
    struct digest right;

    if (level == 0) {
        uint8_t leaf[MERKLE_LEAF_SIZE];

        fill_leaf(leaf, tensor, value, size - first * MERKLE_LEAF_SIZE);
        merkle_leaf_hash(node, leaf, MERKLE_LEAF_SIZE);
        return;
    }
    uniform_node(node, tensor, value, level - 1, first);
    if (first + half >= leaves_of(tensor)) {
        return; /* it rises */
    }
    if (first + 2 * half <= full) {
        right = *node;
    } else {
        uniform_node(&right, tensor, value, level - 1, first + half);
    }
    merkle_node_hash(node, node, &right);
}

static void tensor_root(struct digest *root, const struct giant *giant, uint32_t item)
{
    const struct tensor *tensor = traced(giant, item);
    struct digest tree;

    uniform_node(&tree, tensor, value_of(giant, tensor), merkle_height(leaves_of(tensor)), 0);
    commit_tensor_root_of(root, COMMIT_TENSOR, tensor, &tree);
}

/* ---- as a source -------------------------------------------------------- */

static enum status item_of(void *context, struct digest *root, enum evidence_list list,
                           uint32_t item, struct error *error)
{
    (void)list;
    (void)error;
    tensor_root(root, context, item);
    return STATUS_OK;
}

static enum status list_node(void *context, struct digest *node, enum evidence_list list,
                             uint32_t batch, uint32_t level, uint64_t index, struct error *error)
{
    struct giant *giant = context;
    uint32_t count = list == EVIDENCE_TRACE ? giant->places.trace_items : giant->tape->state_count;
    struct digest hashes[DESCRIPTOR_OPERANDS_MAX + 1];
    struct merkle_leaves leaves;

    (void)batch;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        struct digest root;

        tensor_root(&root, giant, i);
        merkle_leaf_hash(&hashes[i], root.bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, count);
    merkle_node(node, &leaves, level, index);
    return STATUS_OK;
}

static enum status tensor_node(void *context, struct digest *node, enum evidence_list list,
                               uint32_t item, uint32_t level, uint64_t index, struct error *error)
{
    const struct giant *giant = context;
    const struct tensor *tensor = traced(giant, item);

    (void)list;
    (void)error;
    uniform_node(node, tensor, value_of(giant, tensor), level, index << level);
    return STATUS_OK;
}

static enum status leaf_of(void *context, uint8_t leaf[MERKLE_LEAF_SIZE], enum evidence_list list,
                           uint32_t item, uint64_t leaf_index, struct error *error)
{
    const struct giant *giant = context;
    const struct tensor *tensor = traced(giant, item);

    (void)list;
    (void)error;
    fill_leaf(leaf, tensor, value_of(giant, tensor),
              commit_tensor_size(tensor) - leaf_index * MERKLE_LEAF_SIZE);
    return STATUS_OK;
}

/* ---- making ------------------------------------------------------------- */

static uint32_t add_tensor(struct giant *giant, const struct giant_tensor *made, enum role role)
{
    uint32_t id = giant->tape->tensor_count++;
    struct tensor *tensor = &giant->tape->tensors[id];

    *tensor = (struct tensor){
        .dtype = made->dtype, .role = role, .rank = 1, .dims = {made->count}, .count = made->count};
    (void)snprintf(tensor->name, sizeof(tensor->name), "giant.%u", id);
    giant->values[id] = made->value;
    if (role == ROLE_STATE) {
        giant->tape->states[giant->tape->state_count++] =
            (struct state_pair){.before = id, .after = id};
    }
    return id;
}

static void find_roots(struct giant *giant)
{
    struct digest root;

    list_node(giant, &root, EVIDENCE_TRACE, 0, merkle_height(giant->places.trace_items), 0, NULL);
    commit_list_root_of(&giant->context.trace, COMMIT_TRACE, 0, giant->places.trace_items, &root);
    list_node(giant, &root, EVIDENCE_BEFORE, 0, merkle_height(giant->tape->state_count), 0, NULL);
    commit_list_root_of(&giant->context.before, COMMIT_STATE, 0, giant->tape->state_count, &root);
    giant->context.after = giant->context.before;
    commit_list_root(&giant->context.data, COMMIT_STATE, 0, NULL, 0);
    giant->context.constants = giant->context.data;
}

void giant_open(struct giant *giant, const struct op *op, const struct giant_tensor *tensors)
{
    static const struct giant_tensor extra = {DTYPE_F32, 3, 0};
    struct op *made;
    struct error error;

    error_init(&error);
    *giant = (struct giant){.tape = calloc(1, sizeof(*giant->tape))};
    if (giant->tape == NULL) {
        abort();
    }
    giant->tape->tensors = calloc(DESCRIPTOR_OPERANDS_MAX + 1, sizeof(struct tensor));
    giant->tape->ops = calloc(1, sizeof(struct op));
    giant->tape->states = calloc(DESCRIPTOR_OPERANDS_MAX + 1, sizeof(struct state_pair));
    if (giant->tape->tensors == NULL || giant->tape->ops == NULL || giant->tape->states == NULL) {
        abort();
    }
    giant->tape->op_count = 1;
    giant->tape->loss = TENSOR_NONE;
    made = &giant->tape->ops[0];
    *made = *op;
    for (uint32_t i = 0; i < op->input_count; i++) {
        made->inputs[i] = add_tensor(giant, &tensors[i], ROLE_STATE);
    }
    (void)add_tensor(giant, &extra, ROLE_STATE);
    for (uint32_t i = 0; i < op->output_count; i++) {
        made->outputs[i] = add_tensor(giant, &tensors[op->input_count + i], ROLE_TEMPORARY);
    }
    if (op_check(made, giant->tape->tensors, giant->tape->tensor_count, &error) != STATUS_OK ||
        descriptor_places_find(&giant->places, giant->tape, &error) != STATUS_OK ||
        descriptor_program_root(&giant->context.program, giant->tape, &error) != STATUS_OK) {
        fprintf(stderr, "giant: %s\n", error.text);
        abort();
    }
    giant->source = (struct evidence_source){.context = giant,
                                             .item = item_of,
                                             .list_node = list_node,
                                             .tensor_node = tensor_node,
                                             .leaf = leaf_of};
    find_roots(giant);
}

static void open_contract(struct giant *giant, int64_t k, int64_t block, uint32_t exponent,
                          uint32_t found)
{
    const uint64_t blocks = 2 * (uint64_t)((k + block - 1) / block);
    const uint64_t elements = 2 * (uint64_t)k;
    const struct op op = {.kind = OP_CONTRACT,
                          .input_count = 4,
                          .output_count = 1,
                          .attribute_count = CONTRACT_ATTRIBUTES,
                          .attributes = {1, 1, 1, 2, 1, 2, 0, 0, 0, 2, 0, 1, k, 14, block, 0}};
    const struct giant_tensor tensors[5] = {{DTYPE_I16, elements, 1},
                                            {DTYPE_I16, blocks, exponent},
                                            {DTYPE_I16, elements, 1},
                                            {DTYPE_I16, blocks, exponent},
                                            {DTYPE_F32, 4, found}};

    giant_open(giant, &op, tensors);
}

static void open_ones(struct giant *giant, int64_t k, int64_t block, uint32_t exponent,
                      uint32_t found)
{
    const struct op op = {.kind = OP_CONTRACT_ONES,
                          .input_count = 2,
                          .output_count = 1,
                          .attribute_count = ONES_ATTRIBUTES,
                          .attributes = {2, k, 14, block}};
    const struct giant_tensor tensors[3] = {
        {DTYPE_I16, 2 * (uint64_t)k, 1},
        {DTYPE_I16, 2 * (uint64_t)((k + block - 1) / block), exponent},
        {DTYPE_F32, 2, found}};

    giant_open(giant, &op, tensors);
}

static void open_onehot(struct giant *giant, int64_t k, int64_t block, uint32_t exponent,
                        uint32_t found)
{
    const struct op op = {.kind = OP_CONTRACT_ONEHOT,
                          .input_count = 3,
                          .output_count = 1,
                          .attribute_count = ONEHOT_ATTRIBUTES,
                          .attributes = {2, 2, k, 14, block}};
    const struct giant_tensor tensors[4] = {
        {DTYPE_U32, (uint64_t)k, 0},
        {DTYPE_I16, 2 * (uint64_t)k, 1},
        {DTYPE_I16, 2 * (uint64_t)((k + block - 1) / block), exponent},
        {DTYPE_F32, 4, found}};

    giant_open(giant, &op, tensors);
}

static void open_chosen(struct giant *giant, int64_t k, int64_t block, uint32_t exponent,
                        uint32_t found)
{
    const uint64_t blocks = 2 * (uint64_t)((k + block - 1) / block);
    const uint64_t elements = 2 * (uint64_t)k;
    const struct op op = {.kind = OP_CONTRACT_CHOSEN,
                          .input_count = 5,
                          .output_count = 1,
                          .attribute_count = CHOSEN_ATTRIBUTES,
                          .attributes = {2, 2, 2, k, 14, block}};
    const struct giant_tensor tensors[6] = {
        {DTYPE_I16, elements, 1},     {DTYPE_I16, blocks, exponent},     {DTYPE_U32, 2, 1},
        {DTYPE_I16, 2 * elements, 1}, {DTYPE_I16, 2 * blocks, exponent}, {DTYPE_F32, 4, found}};

    giant_open(giant, &op, tensors);
}

static void open_chosen_rows(struct giant *giant, int64_t k, int64_t block, uint32_t exponent,
                             uint32_t found)
{
    const uint64_t blocks = 2 * (uint64_t)((k + block - 1) / block);
    const uint64_t elements = 2 * (uint64_t)k;
    const struct op op = {.kind = OP_CONTRACT_CHOSEN_ROWS,
                          .input_count = 5,
                          .output_count = 1,
                          .attribute_count = CHOSEN_SUM_ATTRIBUTES,
                          .attributes = {2, 2, 2, k, 14, block}};
    const struct giant_tensor tensors[6] = {{DTYPE_U32, (uint64_t)k, 0},   {DTYPE_I16, elements, 1},
                                            {DTYPE_I16, blocks, exponent}, {DTYPE_I16, elements, 1},
                                            {DTYPE_I16, blocks, exponent}, {DTYPE_F32, 8, found}};

    giant_open(giant, &op, tensors);
}

static void open_quantize(struct giant *giant, int64_t k, int64_t block, uint32_t exponent,
                          uint32_t found)
{
    const uint64_t pieces = 2 * (uint64_t)(k / (block < 128 ? block : 128));
    const struct op op = {.kind = OP_QUANTIZE,
                          .input_count = 1,
                          .output_count = 3,
                          .attribute_count = QUANTIZE_ATTRIBUTES,
                          .attributes = {1, 1, 1, 2, 1, k, 0, 0, 0, k, 0, 1, 14, block}};
    const struct giant_tensor tensors[4] = {{DTYPE_F32, 2 * (uint64_t)k, 0},
                                            {DTYPE_I16, pieces, exponent},
                                            {DTYPE_I16, 2 * (uint64_t)(k / block), found},
                                            {DTYPE_I16, 2 * (uint64_t)k, 0}};

    giant_open(giant, &op, tensors);
}

void giant_open_long(struct giant *giant, enum op_kind kind, int64_t k, int64_t block, int exponent,
                     uint32_t found)
{
    if (kind == OP_CONTRACT) {
        open_contract(giant, k, block, (uint32_t)exponent, found);
    } else if (kind == OP_CONTRACT_ONES) {
        open_ones(giant, k, block, (uint32_t)exponent, found);
    } else if (kind == OP_CONTRACT_ONEHOT) {
        open_onehot(giant, k, block, (uint32_t)exponent, found);
    } else if (kind == OP_CONTRACT_CHOSEN) {
        open_chosen(giant, k, block, (uint32_t)exponent, found);
    } else if (kind == OP_CONTRACT_CHOSEN_ROWS) {
        open_chosen_rows(giant, k, block, (uint32_t)exponent, found);
    } else {
        open_quantize(giant, k, block, (uint32_t)exponent, found);
    }
}

void giant_close(struct giant *giant)
{
    descriptor_places_release(&giant->places);
    tape_free(giant->tape);
}
