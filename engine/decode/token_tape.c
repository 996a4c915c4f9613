/* token_tape.c - see token_tape.h. */
#include "engine/decode/token_tape.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/float_control.h"

/* A product that reads fewer elements runs on one thread. */
#define SERIAL_ELEMENTS 65536
/* Rows of a matrix that a thread takes at a time are a multiple of this. */
#define ROWS_TOGETHER   8
#define ALIGNMENT       64

enum token_run {
    RUN_NEVER = 0, /* the rounding of a product's operands: these products have none */
    RUN_ONCE,      /* of weights alone */
    RUN_EACH,
};

/* ---- products ------------------------------------------------------------- */

void token_team_product(const struct token_team *team, const struct token_product *product)
{
    const size_t blocks = (product->rows + ROWS_TOGETHER - 1) / ROWS_TOGETHER;
    const size_t work = product->rows * product->k * product->vectors;
    const int threads = work < SERIAL_ELEMENTS ? 1 : team->thread_count;
    const size_t row_size = product->row_stride * dtype_size(product->dtype);

    if (threads == 1) {
        team->kernels->product(product);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int part = 0; part < threads; part++) {
        const size_t from = blocks * (size_t)part / (size_t)threads * ROWS_TOGETHER;
        size_t to = blocks * ((size_t)part + 1) / (size_t)threads * ROWS_TOGETHER;
        struct token_product own = *product;
        const uint64_t control = float_control_take();

        to = to < product->rows ? to : product->rows;
        own.matrix = (const uint8_t *)product->matrix + from * row_size;
        own.y += from;
        own.rows = to > from ? to - from : 0;
        team->kernels->product(&own);
        float_control_give_back(control);
    }
}

static void run_product(struct token_tape *tape, const struct op *op,
                        const struct token_product_op *of)
{
    const struct tensor *tensors = tape->model.tape->tensors;
    const struct tensor *weight = &tensors[of->weight];
    const size_t n = (size_t)weight->dims[of->turned ? 1 : 0];
    const size_t k = (size_t)weight->dims[of->turned ? 0 : 1];
    const struct token_product product = {.y = tape->memory[op->outputs[0]],
                                          .y_stride = n,
                                          .matrix = tape->memory[of->weight],
                                          .dtype = weight->dtype,
                                          .row_stride = k,
                                          .rows = n,
                                          .x = tape->memory[of->x],
                                          .vectors = (size_t)(tensors[of->x].count / k),
                                          .k = k};

    token_team_product(tape->team, &product);
}

/* Each row by the weight of its expert, which lies by itself. */
static void run_chosen(struct token_tape *tape, const struct op *op,
                       const struct token_product_op *of)
{
    const struct tensor *tensors = tape->model.tape->tensors;
    const size_t rows = (size_t)op->attributes[CHOSEN_ROWS];
    const size_t n = (size_t)op->attributes[CHOSEN_WIDTH];
    const size_t k = (size_t)op->attributes[CHOSEN_K];
    const uint32_t *index = tape->memory[of->index];
    float *y = tape->memory[op->outputs[0]];
    const float *x = tape->memory[of->x];

    for (size_t row = 0; row < rows; row++) {
        const uint32_t weight = tape->experts[of->experts + index[row]];
        const struct token_product product = {.y = y + row * n,
                                              .y_stride = n,
                                              .matrix = tape->memory[weight],
                                              .dtype = tensors[weight].dtype,
                                              .row_stride = k,
                                              .rows = n,
                                              .x = x + row * k,
                                              .vectors = 1,
                                              .k = k};

        token_team_product(tape->team, &product);
    }
}

/* ---- reading the tape ----------------------------------------------------- */

/* The operation that makes each tensor, or UINT32_MAX. The caller frees it. */
static uint32_t *makers_of(const struct tape *tape)
{
    uint32_t *makers = malloc(((size_t)tape->tensor_count + 1) * sizeof(*makers));

    for (uint32_t id = 0; makers != NULL && id < tape->tensor_count; id++) {
        makers[id] = UINT32_MAX;
    }
    for (uint32_t at = 0; makers != NULL && at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            makers[tape->ops[at].outputs[i]] = at;
        }
    }
    return makers;
}

/* The product of a row of tokens with a matrix of weights: both as the composer views them. */
static enum status read_product(struct token_product_op *product, const struct tape *tape,
                                const struct op *op, const uint32_t *makers, struct error *error)
{
    const struct op *a = &tape->ops[makers[op->inputs[0]]];
    const struct op *b = &tape->ops[makers[op->inputs[2]]];
    const struct tensor *weight = &tape->tensors[b->inputs[0]];
    const int64_t *strides = &b->attributes[QUANTIZE_STRIDES];

    *product =
        (struct token_product_op){.x = a->inputs[0], .weight = b->inputs[0], .index = TENSOR_NONE};
    product->turned = weight->rank == 2 && strides[3] == 1 && weight->dims[1] != 1 &&
                      strides[5] == (int64_t)weight->dims[1];
    if (weight->role != ROLE_DATA || weight->rank != 2 || tape->tensors[a->inputs[0]].count == 0 ||
        op->attributes[CONTRACT_DIMS] != 1 || op->attributes[CONTRACT_DIMS + 1] != 1) {
        return error_set(error, STATUS_REFUSED, "'%s' is no weight of a linear layer",
                         weight->name);
    }
    return STATUS_OK;
}

/* Appends the weights that were joined to a tensor, in their order. They are read where they lie,
 * so the joining is not run. */
static void read_joined(struct token_tape *own, uint32_t id, const uint32_t *makers)
{
    const uint32_t maker = makers[id];
    const struct op *op = maker == UINT32_MAX ? NULL : &own->model.tape->ops[maker];

    if (op == NULL || (op->kind != OP_CONCAT && op->kind != OP_CAST)) {
        own->experts[own->expert_count++] = id;
        return;
    }
    own->runs[maker] = RUN_NEVER;
    for (uint32_t i = 0; i < op->input_count; i++) {
        read_joined(own, op->inputs[i], makers);
    }
}

/* A product of rows by their experts. */
static enum status read_chosen(struct token_tape *own, struct token_product_op *product,
                               const struct op *op, const uint32_t *makers, struct error *error)
{
    const struct tape *tape = own->model.tape;
    const uint32_t joined = tape->ops[makers[op->inputs[3]]].inputs[0];

    *product = (struct token_product_op){.x = tape->ops[makers[op->inputs[0]]].inputs[0],
                                         .weight = joined,
                                         .index = op->inputs[2],
                                         .experts = own->expert_count};
    read_joined(own, joined, makers);
    for (uint32_t i = product->experts; i < own->expert_count; i++) {
        if (tape->tensors[own->experts[i]].role != ROLE_DATA) {
            return error_set(error, STATUS_REFUSED, "'%s' is no weight of an expert",
                             tape->tensors[own->experts[i]].name);
        }
    }
    if (own->expert_count - product->experts != (uint64_t)op->attributes[CHOSEN_EXPERTS]) {
        return error_set(error, STATUS_REFUSED, "a product of experts that lie otherwise");
    }
    return STATUS_OK;
}

/* Does the operation depend on weights and constants alone? */
static bool is_lasting(const struct token_tape *own, const struct op *op, const uint32_t *makers)
{
    const struct tape *tape = own->model.tape;

    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct tensor *input = &tape->tensors[op->inputs[i]];
        const uint32_t maker = makers[op->inputs[i]];
        const bool made = maker != UINT32_MAX;

        if (made ? own->runs[maker] != RUN_ONCE
                 : input->role != ROLE_DATA && input->role != ROLE_CONSTANT) {
            return false;
        }
    }
    return true;
}

static enum status sort_operations(struct token_tape *own, const uint32_t *makers,
                                   struct error *error)
{
    const struct tape *tape = own->model.tape;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        own->products[at].x = TENSOR_NONE;
        own->runs[at] = op->kind == OP_QUANTIZE       ? RUN_NEVER
                        : is_lasting(own, op, makers) ? RUN_ONCE
                                                      : RUN_EACH;
        if (op->kind == OP_CONTRACT) {
            TRY(read_product(&own->products[at], tape, op, makers, error));
            own->runs[at] = RUN_EACH;
        } else if (op->kind == OP_CONTRACT_CHOSEN) {
            TRY(read_chosen(own, &own->products[at], op, makers, error));
            own->runs[at] = RUN_EACH;
        }
    }
    return STATUS_OK;
}

static void find_attentions(struct token_tape *own, const uint32_t *makers)
{
    const struct model *model = &own->model;
    const struct tape *tape = model->tape;

    for (uint32_t i = 0; i < model->attention_count; i++) {
        const struct model_attention *attention = &model->attentions[i];
        uint32_t at = 0;
        bool reads = false;

        for (; at < tape->op_count && !reads; at++) {
            for (uint32_t j = 0; j < tape->ops[at].input_count; j++) {
                reads = reads || tape->ops[at].inputs[j] == attention->out;
            }
        }
        own->attention_at[i] = at - 1;
        const uint32_t key = makers[attention->key];
        const uint32_t value = makers[attention->value];

        own->body_end = 1 + (key > value ? key : value); /* layers follow each other */
    }
}

/* ---- memory --------------------------------------------------------------- */

static bool has_memory(const struct token_tape *own, uint32_t id, const uint32_t *makers)
{
    return own->model.tape->tensors[id].role != ROLE_DATA &&
           (makers[id] == UINT32_MAX || own->runs[makers[id]] != RUN_NEVER);
}

static size_t aligned_size(uint64_t size)
{
    return (size_t)((size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

static enum status allocate_block(struct token_tape *own, const uint32_t *makers,
                                  struct error *error)
{
    const struct tape *tape = own->model.tape;
    size_t size = ALIGNMENT;
    size_t scratch = ALIGNMENT;
    size_t at = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        size += has_memory(own, id, makers) ? aligned_size(tensor_size(&tape->tensors[id])) : 0;
    }
    for (uint32_t i = 0; i < tape->op_count; i++) {
        const struct kernel *kernel = &own->team->table.kernels[tape->ops[i].kind];

        if (own->runs[i] != RUN_NEVER && own->products[i].x == TENSOR_NONE && kernel->run != NULL &&
            kernel->scratch_size != NULL) {
            const size_t needs = aligned_size(kernel->scratch_size(&tape->ops[i], 1));

            scratch = needs > scratch ? needs : scratch;
        }
    }
    own->block = aligned_alloc(ALIGNMENT, size);
    own->scratch = aligned_alloc(ALIGNMENT, scratch);
    if (own->block == NULL || own->scratch == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "a token needs %.1f MiB of memory",
                         (double)(size + scratch) / 1048576.0);
    }
    memset(own->block, 0, size);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (has_memory(own, id, makers)) {
            own->memory[id] = own->block + at;
            at += aligned_size(tensor_size(&tape->tensors[id]));
        }
    }
    for (uint32_t i = 0; i < own->model.constant_count; i++) {
        const struct model_constant *constant = &own->model.constants[i];

        memcpy(own->memory[constant->tensor], constant->bytes,
               tensor_size(&tape->tensors[constant->tensor]));
    }
    return STATUS_OK;
}

/* ---- the tape ------------------------------------------------------------- */

enum status token_tape_open(struct token_tape *tape, const struct model_options *model,
                            uint32_t rows, const struct token_team *team, struct error *error)
{
    struct model_options options = *model;
    uint32_t *makers = NULL;
    enum status status;

    *tape = (struct token_tape){.team = team};
    options.inference = true;
    options.batch = 1;
    options.length = rows;
    TRY(model_build(&tape->model, &options, error));
    const size_t op_count = (size_t)tape->model.tape->op_count + 1;

    makers = makers_of(tape->model.tape);
    tape->memory = calloc((size_t)tape->model.tape->tensor_count + 1, sizeof(*tape->memory));
    tape->products = calloc(op_count, sizeof(*tape->products));
    tape->runs = calloc(op_count, sizeof(*tape->runs));
    tape->experts = calloc((size_t)tape->model.tape->tensor_count + 1, sizeof(*tape->experts));
    tape->attention_at =
        calloc((size_t)tape->model.attention_count + 1, sizeof(*tape->attention_at));
    if (makers == NULL || tape->memory == NULL || tape->products == NULL || tape->runs == NULL ||
        tape->experts == NULL || tape->attention_at == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for a model");
        goto out;
    }
    TRY_OUT(sort_operations(tape, makers, error));
    find_attentions(tape, makers);
    TRY_OUT(allocate_block(tape, makers, error));
out:
    free(makers);
    if (status != STATUS_OK) {
        token_tape_close(tape);
    }
    return status;
}

void token_tape_close(struct token_tape *tape)
{
    model_release(&tape->model);
    free(tape->memory);
    free(tape->products);
    free(tape->runs);
    free(tape->experts);
    free(tape->attention_at);
    free(tape->block);
    free(tape->scratch);
    *tape = (struct token_tape){0};
}

static void run_op(struct token_tape *own, uint32_t at)
{
    const struct tape *tape = own->model.tape;
    const struct op *op = &tape->ops[at];
    const struct kernel *kernel = &own->team->table.kernels[op->kind];
    struct kernel_call call = {
        .op = op, .tensors = tape->tensors, .scratch = own->scratch, .thread_count = 1};

    if (own->products[at].index != TENSOR_NONE && own->products[at].x != TENSOR_NONE) {
        run_chosen(own, op, &own->products[at]);
        return;
    }
    if (own->products[at].x != TENSOR_NONE) {
        run_product(own, op, &own->products[at]);
        return;
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        call.inputs[i] = own->memory[op->inputs[i]];
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        call.outputs[i] = own->memory[op->outputs[i]];
    }
    if (kernel->run != NULL) {
        kernel->run(&call);
    } else {
        kernel_run_rules(&call);
    }
}

void token_tape_bind(struct token_tape *tape, const struct token_weight *weights)
{
    for (uint32_t i = 0; i < tape->model.frozen_count; i++) {
        tape->memory[tape->model.frozen[i]] = weights[i].bytes;
    }
    for (uint32_t at = 0; at < tape->model.tape->op_count; at++) {
        if (tape->runs[at] == RUN_ONCE) {
            run_op(tape, at);
        }
    }
}

void token_tape_run(struct token_tape *tape, uint32_t end, token_attention *attention,
                    void *context)
{
    uint32_t next = 0;

    for (uint32_t at = 0; at < end; at++) {
        if (next < tape->model.attention_count && tape->attention_at[next] == at) {
            attention(context, tape, next++);
        }
        if (tape->runs[at] == RUN_EACH) {
            run_op(tape, at);
        }
    }
}
