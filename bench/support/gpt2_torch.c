/* gpt2_torch.c - see gpt2_torch.h. */
#include "bench/support/gpt2_torch.h"

#include <stdlib.h>

#include "tests/support/numeric/model_state.h"

static enum status start(struct torch_child *torch, const struct gpt2_case *one, int threads,
                         bool bfloat16, struct error *error)
{
    const struct model_options *o = &one->model.options;
    const double numbers[] = {threads,   o->batch,   o->length, o->positions, o->vocabulary,
                              o->layers, o->heads,   o->width,  o->rate,      o->beta1,
                              o->beta2,  o->epsilon, o->decay,  o->clip};
    enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };
    char arguments[NUMBERS + 1][TORCH_ARGUMENT_MAX];

    for (int i = 0; i < NUMBERS; i++) {
        (void)snprintf(arguments[i], sizeof(arguments[i]), "%.17g", numbers[i]);
    }
    (void)snprintf(arguments[NUMBERS], sizeof(arguments[NUMBERS]), "%s",
                   bfloat16 ? "bfloat16" : "float32");
    return torch_child_start(torch, "bench/peer_gpt2.py", arguments, NUMBERS + 1, error);
}

/* A child without PyTorch ends without reading. The writes then fail, and its answer says why. */
static enum status send_parameters(struct torch_child *torch, const struct gpt2_case *one,
                                   struct error *error)
{
    const struct model *model = &one->model;

    for (uint32_t i = 0; i < model->parameter_count; i++) {
        uint32_t id = model->parameters[i];
        size_t count = model->tape->tensors[id].count;
        float *values = malloc(count * sizeof(*values));

        if (values == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for a first state");
        }
        model_first_state(values, model, id);
        size_t sent = fwrite(values, sizeof(*values), count, torch->to);
        free(values);
        if (sent != count) {
            break;
        }
    }
    return STATUS_OK;
}

enum status gpt2_torch_open(struct torch_child *torch, const struct gpt2_case *one, int threads,
                            bool bfloat16, struct error *error)
{
    enum status status;

    TRY_OUT(start(torch, one, threads, bfloat16, error));
    TRY_OUT(send_parameters(torch, one, error));
    TRY_OUT(torch_child_ready(torch, error));
    return STATUS_OK;
out:
    torch_child_close(torch);
    return status;
}

enum status gpt2_torch_step(struct torch_child *torch, double *loss, struct bench_time *took,
                            const struct gpt2_case *one, struct error *error)
{
    size_t rows = gpt2_case_rows(one);

    (void)fwrite(one->tokens, sizeof(*one->tokens), rows, torch->to);
    (void)fwrite(one->targets, sizeof(*one->targets), rows, torch->to);
    return torch_child_step(torch, loss, took, error);
}
