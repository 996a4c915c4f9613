/*
 * memory_bench.c - the memory of a GPT-2 124M step on one sequence, by its length, as the machines
 * plan it: on the processor and on a GPU, with and without --recompute, against all heads at once.
 * It runs nothing and measures no time. Its rows are the table of docs/OPERATIONS.md.
 */
#include <stdio.h>

#include "bench/support/bench.h"
#include "tests/support/device/memory_plan.h"

static void record(struct bench *bench, const char *machine, uint32_t length,
                   const struct memory_plan *plan)
{
    char name[BENCH_NAME_MAX];

    (void)snprintf(name, sizeof(name), "%s, %u tokens", machine, length);
    bench_record(bench, name, "MiB", (double)plan->kept, (double)plan->whole, 0);
    (void)snprintf(name, sizeof(name), "%s, %u tokens, --recompute", machine, length);
    bench_record(bench, name, "MiB", (double)plan->again, (double)plan->whole, 0);
}

int main(int argc, char **argv)
{
    char rows[MEMORY_PLAN_LENGTHS][MEMORY_PLAN_TEXT];
    struct bench bench;

    bench_init(&bench, "memory of a GPT-2 124M step", "all heads at once", argc, argv);
    for (int i = 0; i < MEMORY_PLAN_LENGTHS; i++) {
        const uint32_t length = memory_plan_lengths[i];
        struct model model;

        memory_plan_model(&model, 1, length);
        const struct memory_plan cpu = memory_plan_of(model.tape, &backend_cpu, isa_best());
        const struct memory_plan gpu = memory_plan_of(model.tape, &backend_cuda, isa_best());

        record(&bench, "CPU", length, &cpu);
        record(&bench, "GPU", length, &gpu);
        memory_plan_text(rows[i], length, &cpu, &gpu);
        model_release(&model);
    }
    for (int i = 0; i < MEMORY_PLAN_LENGTHS; i++) {
        (void)printf("%s\n", rows[i]);
    }
    return bench_finish(&bench);
}
