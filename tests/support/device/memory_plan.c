/* memory_plan.c - see memory_plan.h. */
#include "tests/support/device/memory_plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/cuda/machine/cuda_memory.h"
#include "engine/cuda/machine/machine.h"
#include "engine/cuda/machine/machine_cuda.h"

const uint32_t memory_plan_lengths[MEMORY_PLAN_LENGTHS] = {512, 1024, 2048, 4096, 8192, 16384};

static void must(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        (void)fprintf(stderr, "memory_plan: %s\n", error->text);
        exit(1);
    }
}

void memory_plan_model(struct model *model, uint32_t batch, uint32_t length)
{
    struct model_options options;
    struct error error;

    error_init(&error);
    model_options_default(&options, MODEL_GPT2);
    options.layers = 12;
    options.width = 768;
    options.hidden = 3072;
    options.heads = 12;
    options.vocabulary = 50257;
    options.batch = batch;
    options.length = options.positions = length;
    options.data_dtype = DTYPE_U16;
    options.data_count = 100000;
    options.equilibrate = true;
    must(model_build(model, &options, &error), &error);
}

/* A GPU with all kernel variants: less than on any, which is the larger of all and of none. */
static uint64_t on_chip(const struct tape *tape, const struct machine_options *options)
{
    struct machine_cuda cuda = {.machine = {.backend = options->backend, .tape = tape},
                                .options = *options};
    struct error error;

    error_init(&error);
    must(cuda_memory_plan(&cuda, &error), &error);
    const uint64_t size = cuda_memory_size(&cuda);

    cuda_memory_close(&cuda);
    return size;
}

struct memory_plan memory_plan_of(const struct tape *tape, const struct backend *backend,
                                  enum isa isa)
{
    struct machine_options options = {.backend = backend, .isa = isa, .thread_count = 2};
    struct memory_plan plan;
    struct error error;

    error_init(&error);
    must(backend->size(&plan.whole, tape, &options, &error), &error);
    must(machine_size(&plan.kept, tape, &options, &error), &error);
    plan.chip = backend == &backend_cuda ? on_chip(tape, &options) : 0;
    options.recompute = true;
    must(machine_size(&plan.again, tape, &options, &error), &error);
    plan.whole >>= 20;
    plan.chip >>= 20;
    plan.kept >>= 20;
    plan.again >>= 20;
    return plan;
}

/* 12,345 */
static const char *grouped(char text[24], uint64_t number)
{
    if (number < 1000) {
        (void)snprintf(text, 24, "%llu", (unsigned long long)number);
    } else {
        (void)snprintf(text, 24, "%llu,%03llu", (unsigned long long)(number / 1000),
                       (unsigned long long)(number % 1000));
    }
    return text;
}

void memory_plan_text(char text[MEMORY_PLAN_TEXT], uint32_t length, const struct memory_plan *cpu,
                      const struct memory_plan *gpu)
{
    const uint64_t columns[] = {length,     cpu->whole, cpu->kept, cpu->again,
                                gpu->whole, gpu->chip,  gpu->kept, gpu->again};
    size_t used = 0;

    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        char number[24];

        used += (size_t)snprintf(text + used, MEMORY_PLAN_TEXT - used, "| %s ",
                                 grouped(number, columns[i]));
    }
    (void)snprintf(text + used, MEMORY_PLAN_TEXT - used, "|");
}
