/* gpt2_case.c - see gpt2_case.h. */
#include "bench/support/gpt2_case.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/ops/philox.h"
#include "tests/support/numeric/model_state.h"

#define DATA_COUNT  100000
#define DATA_STREAM 77
#define DATA_SEED   5

/* A walk through the vocabulary that can be learned in part: half of its steps are even. */
static void make_data(uint16_t *data, uint32_t vocabulary)
{
    uint64_t token = 0;

    for (uint32_t i = 0; i < DATA_COUNT; i++) {
        struct philox_block draw = philox_draw(i, DATA_STREAM, 0, DATA_SEED);
        uint64_t jump = (draw.words[0] & 1) == 0 ? 7 : philox_below(&draw, vocabulary);

        token = (token + jump) % vocabulary;
        data[i] = (uint16_t)token;
    }
}

enum status gpt2_case_init(struct gpt2_case *one, const struct gpt2_size *size, struct error *error)
{
    struct model_options options;
    enum status status;

    model_options_default(&options, MODEL_GPT2);
    options.layers = size->layers;
    options.width = size->width;
    options.heads = size->heads;
    options.vocabulary = size->vocabulary;
    options.positions = size->positions;
    options.batch = size->batch;
    options.length = size->length;
    options.accumulate = size->micro_batches;
    options.data_dtype = DTYPE_U16;
    options.data_count = DATA_COUNT;
    /* A constant rate: the peers need no schedule of ours. */
    options.schedule = SCHEDULE_CONSTANT;
    options.warmup = 0;
    options.rate = 3e-4;
    options.equilibrate = getenv("STEP_PLAIN") == NULL; /* as 'job new' does */
    *one = (struct gpt2_case){.name = size->name};
    status = model_build(&one->model, &options, error);
    if (status != STATUS_OK) {
        return status;
    }
    one->data = calloc(DATA_COUNT, sizeof(*one->data));
    one->tokens = calloc(gpt2_case_rows(one), sizeof(*one->tokens));
    one->targets = calloc(gpt2_case_rows(one), sizeof(*one->targets));
    if (one->data == NULL || one->tokens == NULL || one->targets == NULL) {
        gpt2_case_release(one);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a benchmark's data");
    }
    make_data(one->data, size->vocabulary);
    return STATUS_OK;
}

void gpt2_case_release(struct gpt2_case *one)
{
    model_release(&one->model);
    free(one->data);
    free(one->tokens);
    free(one->targets);
    *one = (struct gpt2_case){.name = one->name};
}

size_t gpt2_case_rows(const struct gpt2_case *one)
{
    return (size_t)one->model.options.batch * one->model.options.length;
}

static const struct op *batch_op(const struct tape *tape)
{
    for (uint32_t i = 0; i < tape->op_count; i++) {
        if (tape->ops[i].kind == OP_BATCH_TOKENS) {
            return &tape->ops[i];
        }
    }
    return NULL;
}

void gpt2_case_batch(struct gpt2_case *one, uint32_t step)
{
    const struct op *op = batch_op(one->model.tape);
    size_t length = one->model.options.length;

    assert(op != NULL);
    for (size_t row = 0; row < one->model.options.batch; row++) {
        struct philox_block draw =
            philox_draw(row, (uint32_t)op->attributes[BATCH_STREAM], step, one->model.options.seed);
        const uint16_t *from = one->data + philox_below(&draw, DATA_COUNT - length);

        for (size_t i = 0; i < length; i++) {
            one->tokens[row * length + i] = from[i];
            one->targets[row * length + i] = from[i + 1];
        }
    }
}

static enum status fill_machine(struct machine *machine, const struct gpt2_case *one,
                                struct error *error)
{
    const struct tape *tape = one->model.tape;
    enum status status = machine->backend->bind(machine, one->model.data, one->data, error);

    for (uint32_t i = 0; i < one->model.constant_count && status == STATUS_OK; i++) {
        status = machine->backend->write(machine, one->model.constants[i].tensor,
                                         one->model.constants[i].bytes, error);
    }
    for (uint32_t i = 0; i < tape->state_count && status == STATUS_OK; i++) {
        uint32_t id = tape->states[i].before;
        void *bytes = malloc(tape->tensors[id].count * dtype_size(tape->tensors[id].dtype));

        if (bytes == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for a first state");
        }
        model_first_state(bytes, &one->model, id);
        status = machine->backend->write(machine, id, bytes, error);
        free(bytes);
    }
    return status;
}

enum status gpt2_case_open(struct machine **machine, const struct gpt2_case *one,
                           const struct machine_options *options, struct error *error)
{
    enum status status;

    TRY(machine_open(machine, one->model.tape, options, error));
    status = fill_machine(*machine, one, error);
    if (status != STATUS_OK) {
        (*machine)->backend->close(*machine);
        *machine = NULL;
    }
    return status;
}
