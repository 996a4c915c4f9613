/* held_out_job.c - see held_out_job.h. */
#include "proofs/job/held_out_job.h"

#include <stdlib.h>
#include <string.h>

#include "engine/tape/builder.h"
#include "proofs/job/first_state.h"
#include "proofs/job/held_out.h"
#include "proofs/job/tape_file.h"

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
};

static bool is_figure(const struct held_out_cutter *cut, uint32_t state)
{
    return state == cut->held_out.loss || state == cut->held_out.accuracy;
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
            cut->needed[pair->before] = cut->needed[pair->after] = true;
            continue;
        }
        cut->stand[pair->after] = pair->before;
        /* Counters stay: a checkpoint has them. */
        cut->needed[pair->before] = !training || tape->tensors[pair->before].dtype == DTYPE_U32;
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

/* The bytes of a constant; the table of due steps has one row, which says yes. */
static void *constant_of(const struct held_out_cutter *cut, const struct tensor *tensor,
                         const void *bytes)
{
    const size_t size = (size_t)tensor_size(tensor);
    void *made = malloc(size + 1);

    if (made != NULL && bytes != cut->held_out.due) {
        memcpy(made, bytes, size);
    }
    for (uint64_t i = 0; made != NULL && bytes == cut->held_out.due && i < tensor->count; i++) {
        ((float *)made)[i] = 1.0f;
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
            tensor.count = tensor.rank == 1 ? cut->held_out.columns : tensor.count / tensor.dims[0];
            tensor.dims[0] = tensor.rank == 1 ? cut->held_out.columns : 1;
        }
        cut->constants[cut->constant_count] = constant_of(cut, &tensor, bytes);
        if (cut->constants[cut->constant_count] == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the constant '%s'",
                             tensor.name);
        }
        cut->constant_count++;
    } else if (tensor.role == ROLE_DATA && cut->rows != 0 &&
               strncmp(tensor.name, HELD_OUT_DATA, strlen(HELD_OUT_DATA)) == 0) {
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
    for (uint32_t at = 0; at < tape->op_count; at++) {
        bool needed = false;

        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            needed = needed || cut->needed[tape->ops[at].outputs[i]];
        }
        if (needed) {
            copy_op(cut, &tape->ops[at]);
        }
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct state_pair *pair = &tape->states[i];

        if (is_figure(cut, pair->before)) {
            build_after(cut->builder, cut->copy[pair->before], cut->copy[pair->after]);
        }
    }
    return STATUS_OK;
}

enum status held_out_cut(struct tape **tape, void ***constants, uint32_t *constant_count,
                         const struct job *job, uint64_t rows, struct error *error)
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
    mark_needed(&cut);
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
