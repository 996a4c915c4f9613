/* held_out_job.c - see held_out_job.h. */
#include "proofs/job/held_out_job.h"

#include <stdlib.h>
#include <string.h>

#include "engine/tape/builder.h"
#include "proofs/job/first_state.h"
#include "proofs/job/held_out.h"
#include "proofs/job/tape_file.h"

/* Sums over the targets that count. */
enum figure { FIGURE_LOSS, FIGURE_RIGHT, FIGURE_MARKED, FIGURE_COUNT };

struct held_out_cutter {
    const struct job *job;
    const struct tape *tape; /* the job's */
    struct held_out held_out;
    struct builder *builder;
    bool *needed;    /* per tensor */
    uint32_t *stand; /* per tensor: the state, for what an update makes of it; else itself */
    uint32_t *copy;  /* per tensor: in the new tape */
    void **constants;
    uint32_t constant_count;
    uint64_t rows;
    uint64_t steps;
    bool packed;                  /* one batch of rows a step: */
    uint32_t terms[FIGURE_COUNT]; /* what it adds to each sum; TENSOR_NONE: there is no such sum */
    uint32_t due;                 /* the condition of the figures */
    uint32_t counter;             /* of batches, in the new tape */
};

static bool is_figure(const struct held_out_cutter *cut, uint32_t state)
{
    return state == cut->held_out.loss || state == cut->held_out.accuracy;
}

/* ---- packed rows -------------------------------------------------------------------------- */

static const struct op *maker_of(const struct tape *tape, uint32_t id)
{
    for (uint32_t at = tape->op_count; at > 0; at--) {
        for (uint32_t i = 0; i < tape->ops[at - 1].output_count; i++) {
            if (tape->ops[at - 1].outputs[i] == id) {
                return &tape->ops[at - 1];
            }
        }
    }
    return NULL;
}

/* Input number `input` of the operation that makes a tensor, if that is of the kind; and of the
 * function, where the kind has functions. */
static uint32_t input_of(const struct tape *tape, uint32_t id, enum op_kind kind, int64_t function,
                         uint32_t input)
{
    const struct op *op = id == TENSOR_NONE ? NULL : maker_of(tape, id);
    const bool coded = kind == OP_BINARY || kind == OP_MAP;

    return op == NULL || op->kind != kind || (coded && op->attributes[0] != function)
               ? TENSOR_NONE
               : op->inputs[input];
}

/* A sum over batches begins with the first one's. */
static uint32_t first_term(const struct tape *tape, uint32_t sum)
{
    for (uint32_t a = sum; a != TENSOR_NONE; a = input_of(tape, a, OP_BINARY, BINARY_ADD, 0)) {
        sum = a;
    }
    return sum;
}

static bool is_held_out_data(const struct tape *tape, uint32_t id)
{
    return tape->tensors[id].role == ROLE_DATA &&
           strncmp(tape->tensors[id].name, HELD_OUT_DATA, strlen(HELD_OUT_DATA)) == 0;
}

static bool draws_held_out(const struct tape *tape, const struct op *op)
{
    return op->kind == OP_BATCH_ROWS && is_held_out_data(tape, op->inputs[0]);
}

/* The rows of a batch; 0: held-out data is no packed rows. */
static uint64_t batch_of(const struct tape *tape)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (draws_held_out(tape, &tape->ops[at])) {
            return (uint64_t)tape->ops[at].attributes[BATCH_ROWS_COUNT];
        }
    }
    return 0;
}

static uint32_t after_of(const struct tape *tape, uint32_t state)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (tape->states[i].before == state) {
            return tape->states[i].after;
        }
    }
    return TENSOR_NONE;
}

/* engine/models/held_out.c: figure = due ? sum * (1 / max(marked, 1)) : the figure before. */
static void find_terms(struct held_out_cutter *cut)
{
    const uint32_t states[2] = {cut->held_out.loss, cut->held_out.accuracy};
    const struct tape *tape = cut->tape;

    for (int i = 0; i < 2; i++) {
        uint32_t after = states[i] == TENSOR_NONE ? TENSOR_NONE : after_of(tape, states[i]);
        uint32_t mean = input_of(tape, after, OP_SELECT, 0, 1);
        uint32_t share = input_of(tape, mean, OP_BINARY, BINARY_MUL, 1);
        uint32_t least = input_of(tape, share, OP_MAP, MAP_RECIPROCAL, 0);

        cut->terms[i] = first_term(tape, input_of(tape, mean, OP_BINARY, BINARY_MUL, 0));
        if (i == 0) {
            cut->due = input_of(tape, after, OP_SELECT, 0, 0);
            cut->terms[FIGURE_MARKED] =
                first_term(tape, input_of(tape, least, OP_BINARY, BINARY_MAX, 0));
        }
    }
    cut->packed =
        batch_of(tape) != 0 && input_of(tape, cut->due, OP_SCHEDULE, 0, 0) != TENSOR_NONE &&
        cut->terms[FIGURE_LOSS] != TENSOR_NONE && cut->terms[FIGURE_MARKED] != TENSOR_NONE;
}

/* A state that is zero at first, and its next value: the term is added. */
static uint32_t add_to_state(struct held_out_cutter *cut, const char *name, uint32_t term)
{
    static const uint64_t one = 1;
    uint32_t state = build_tensor(cut->builder, name, DTYPE_F32, ROLE_STATE, 1, &one);
    uint32_t sum;

    build_init(cut->builder, state, (struct init){.kind = INIT_ZEROS});
    sum = build_add(cut->builder, state, cut->copy[term], 1);
    build_after(cut->builder, state, sum);
    return sum;
}

static void write_figure(struct held_out_cutter *cut, uint32_t figure, uint32_t sum,
                         uint32_t marked)
{
    uint32_t share = build_share_of(cut->builder, marked);
    uint32_t mean = build_mul(cut->builder, sum, share, 1);
    uint32_t before = cut->copy[figure];

    build_after(cut->builder, before,
                build_select(cut->builder, cut->copy[cut->due], mean, before));
}

/* The sums so far, and the figures of them. */
static void write_sums(struct held_out_cutter *cut)
{
    static const uint64_t one = 1;
    uint32_t marked = add_to_state(cut, HELD_OUT_TARGETS_SO_FAR, cut->terms[FIGURE_MARKED]);
    struct op next = {.kind = OP_STEP_NEXT, .input_count = 1, .output_count = 1};
    const struct output_shape number = {.dtype = DTYPE_U32, .rank = 1, .dims = {one}};

    write_figure(cut, cut->held_out.loss,
                 add_to_state(cut, HELD_OUT_LOSS_SO_FAR, cut->terms[FIGURE_LOSS]), marked);
    if (cut->terms[FIGURE_RIGHT] != TENSOR_NONE) {
        write_figure(cut, cut->held_out.accuracy,
                     add_to_state(cut, HELD_OUT_RIGHT_SO_FAR, cut->terms[FIGURE_RIGHT]), marked);
    }
    next.inputs[0] = cut->counter;
    build_op(cut->builder, &next, &number);
    build_after(cut->builder, cut->counter, next.outputs[0]);
}

/* ---- what is needed ----------------------------------------------------------------------- */

static void mark_roots(struct held_out_cutter *cut)
{
    cut->needed[cut->due] = true;
    for (int i = 0; i < FIGURE_COUNT; i++) {
        if (cut->terms[i] != TENSOR_NONE) {
            cut->needed[cut->terms[i]] = true;
        }
    }
}

static void mark_needed(struct held_out_cutter *cut)
{
    const struct tape *tape = cut->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        cut->stand[id] = id;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct state_pair *pair = &tape->states[i];
        const bool training = first_state_is_of_training(tape, i);

        if (is_figure(cut, pair->before)) {
            cut->needed[pair->before] = true;
            cut->needed[pair->after] = !cut->packed;
            continue;
        }
        cut->stand[pair->after] = pair->before;
        /* Counters stay: a checkpoint has them. */
        cut->needed[pair->before] = !training || tape->tensors[pair->before].dtype == DTYPE_U32;
    }
    if (cut->packed) {
        mark_roots(cut);
    }
    for (uint32_t at = tape->op_count; at > 0; at--) {
        const struct op *op = &tape->ops[at - 1];
        bool needed = false;

        for (uint32_t i = 0; i < op->output_count; i++) {
            needed = needed || cut->needed[op->outputs[i]];
        }
        for (uint32_t i = 0; needed && i < op->input_count; i++) {
            cut->needed[cut->stand[op->inputs[i]]] = true;
        }
    }
}

/* The bytes of a constant; the last row of the table of due steps says yes. */
static void *constant_of(const struct held_out_cutter *cut, const struct tensor *tensor,
                         const void *bytes)
{
    const size_t size = (size_t)tensor_size(tensor);
    void *made = malloc(size + 1);

    if (made != NULL && bytes != cut->held_out.due) {
        memcpy(made, bytes, size);
    }
    for (uint64_t i = 0; made != NULL && bytes == cut->held_out.due && i < tensor->count; i++) {
        ((float *)made)[i] = i + cut->held_out.columns < tensor->count ? 0.0f : 1.0f;
    }
    return made;
}

static enum status copy_lasting(struct held_out_cutter *cut, uint32_t id, struct error *error)
{
    struct tensor tensor = cut->tape->tensors[id];
    const void *bytes = NULL;

    if (tensor.role == ROLE_CONSTANT) {
        bytes = job_constant(cut->job, id);
        if (bytes == cut->held_out.due) {
            tensor.count = cut->steps * cut->held_out.columns;
            tensor.dims[0] = tensor.rank == 1 ? tensor.count : cut->steps;
        }
        cut->constants[cut->constant_count] = constant_of(cut, &tensor, bytes);
        if (cut->constants[cut->constant_count] == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the constant '%s'",
                             tensor.name);
        }
        cut->constant_count++;
    } else if (cut->rows != 0 && is_held_out_data(cut->tape, id)) {
        tensor.dims[0] = cut->rows;
    }
    cut->copy[id] = build_tensor(cut->builder, tensor.name, tensor.dtype, tensor.role, tensor.rank,
                                 tensor.dims);
    if (is_figure(cut, id)) {
        build_init(cut->builder, cut->copy[id], (struct init){.kind = INIT_ZEROS});
    }
    return STATUS_OK;
}

static void copy_op(struct held_out_cutter *cut, const struct op *from)
{
    struct output_shape shapes[OP_OUTPUTS_MAX] = {0};
    struct op op = *from;

    for (uint32_t i = 0; i < op.input_count; i++) {
        op.inputs[i] = cut->copy[cut->stand[from->inputs[i]]];
    }
    if (cut->packed && (from->outputs[0] == cut->due || draws_held_out(cut->tape, from))) {
        op.inputs[1] = cut->counter; /* the step is that of the training */
    }
    for (uint32_t i = 0; i < op.output_count; i++) {
        const struct tensor *tensor = &cut->tape->tensors[from->outputs[i]];

        shapes[i] = (struct output_shape){.dtype = tensor->dtype, .rank = tensor->rank};
        memcpy(shapes[i].dims, tensor->dims, sizeof(shapes[i].dims));
    }
    build_op(cut->builder, &op, shapes);
    for (uint32_t i = 0; i < op.output_count; i++) {
        cut->copy[from->outputs[i]] = op.outputs[i];
    }
}

static enum status copy_needed(struct held_out_cutter *cut, struct error *error)
{
    const struct tape *tape = cut->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (cut->needed[id] && !role_is_made(tape->tensors[id].role)) {
            TRY(copy_lasting(cut, id, error));
        }
    }
    if (cut->packed) {
        static const uint64_t one = 1;

        cut->counter =
            build_tensor(cut->builder, HELD_OUT_DATA "batch", DTYPE_U32, ROLE_STATE, 1, &one);
        build_init(cut->builder, cut->counter, (struct init){.kind = INIT_ZEROS});
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        bool needed = false;

        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            needed = needed || cut->needed[tape->ops[at].outputs[i]];
        }
        if (needed) {
            copy_op(cut, &tape->ops[at]);
        }
    }
    if (cut->packed) {
        write_sums(cut);
    }
    for (uint32_t i = 0; i < tape->state_count && !cut->packed; i++) {
        const struct state_pair *pair = &tape->states[i];

        if (is_figure(cut, pair->before)) {
            build_after(cut->builder, cut->copy[pair->before], cut->copy[pair->after]);
        }
    }
    return STATUS_OK;
}

/* Steps that take all rows. */
static uint64_t steps_of(const struct held_out_cutter *cut)
{
    const uint64_t batch = batch_of(cut->tape);
    uint64_t rows = cut->rows;

    for (uint32_t id = 0; id < cut->tape->tensor_count && rows == 0; id++) {
        rows = is_held_out_data(cut->tape, id) ? cut->tape->tensors[id].dims[0] : 0;
    }
    return cut->packed && batch != 0 ? (rows + batch - 1) / batch : 1;
}

enum status held_out_cut(struct tape **tape, void ***constants, uint32_t *constant_count,
                         uint64_t *steps, const struct job *job, uint64_t rows, struct error *error)
{
    const size_t tensors = (size_t)job->tape->tensor_count + 1;
    struct held_out_cutter cut = {.job = job, .tape = job->tape, .rows = rows};
    enum status status;

    *tape = NULL;
    held_out_of(&cut.held_out, job);
    if (cut.held_out.loss == TENSOR_NONE) {
        (void)error_set(error, STATUS_REFUSED, "the job looks at no held-out data");
        error_advise(error, "make it with 'job new --eval FILE'");
        return STATUS_REFUSED;
    }
    cut.builder = builder_new(PRECISION_DEFAULT);
    cut.needed = calloc(tensors, sizeof(*cut.needed));
    cut.stand = calloc(tensors, sizeof(*cut.stand));
    cut.copy = calloc(tensors, sizeof(*cut.copy));
    cut.constants = calloc((size_t)job->constant_count + 1, sizeof(*cut.constants));
    if (cut.builder == NULL || cut.needed == NULL || cut.stand == NULL || cut.copy == NULL ||
        cut.constants == NULL) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "no memory for a program"));
    }
    find_terms(&cut);
    mark_needed(&cut);
    *steps = cut.steps = steps_of(&cut);
    TRY_OUT(copy_needed(&cut, error));
    TRY_OUT(builder_finish(tape, cut.builder, error));
    *constants = cut.constants;
    *constant_count = cut.constant_count;
    /* The caller has them now; what is freed below is for a failure. */
    cut.constants = NULL;
out:
    tape_file_free_constants(cut.constants, cut.constant_count);
    free(cut.copy);
    free(cut.stand);
    free(cut.needed);
    builder_free(cut.builder);
    return status;
}
