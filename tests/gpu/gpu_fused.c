/*
 * gpu_fused.c - each variant that spares passes or launches alone: its bits against those of the
 * processor, and what a GPT-2 step takes without it. The self-test of every process says which are
 * used; here each runs on models of a size that small self-tests do not have.
 */
#include <stdlib.h>

#include "tests/gpu/gpu_check.h"

#define ROUNDS 5

#define OTHER_VARIANTS (((1u << VARIANT_COUNT) - 1) & ~((1u << CONTRACT_VARIANTS) - 1))

/* ---- bits ------------------------------------------------------------------------- */

/* With nothing beside it but what is allowed. */
static void hold_fused(struct gpu_check *check, int kind, uint32_t allowed, const char *how)
{
    static const struct precision cuts[] = {{14, 128}, {16, 0}};

    for (int model_kind = MODEL_GPT2; model_kind <= MODEL_LLAMA; model_kind++) {
        for (size_t i = 0; i < (check->quick ? 1 : 2); i++) {
            struct model_options options;
            struct machine *machines[2];
            struct model model;
            struct error error;
            char what[96];

            error_init(&error);
            model_options_default(&options, (enum model_kind)model_kind);
            options.precision = cuts[i];
            options.batch = 2;
            options.length = check->quick ? 8 : 200;
            options.layers = check->quick ? 1 : 2;
            options.heads = 2;
            options.width = check->quick ? 16 : 132;
            options.hidden = check->quick ? 8 : 300;
            options.steps = 40;
            options.data_count = 5000;
            options.data_dtype = DTYPE_U8;
            gpu_check_must(model_build(&model, &options, &error), &error);
            machines[0] = gpu_check_cpu(model.tape, false, false);
            machines[1] = gpu_check_open_barred(check, model.tape, ~allowed);
            gpu_check_give(machines, 2, &model, model.tape, 6);
            for (int step = 0; step < (check->quick ? 2 : 4); step++) {
                for (int m = 0; m < 2; m++) {
                    gpu_check_must(machines[m]->backend->step(machines[m], NULL, &error), &error);
                }
            }
            (void)snprintf(what, sizeof(what), "%s with %s alone%s, %u/%u",
                           model_kind_name((enum model_kind)model_kind),
                           selftest_name((uint32_t)kind), how, cuts[i].bits, cuts[i].block);
            gpu_check_compare(check, machines[0], machines[1], what);
            machines[0]->backend->close(machines[0]);
            machines[1]->backend->close(machines[1]);
            model_release(&model);
        }
    }
}

/* kind: the variant, with nothing beside it but plain kernels, so that who is guilty is plain. */
void gpu_check_fused(struct gpu_check *check, int kind)
{
    const uint32_t alone = 1u << kind | 1u << VARIANT_PLAIN;
    const bool multiplies = kind == VARIANT_STRIPS || kind == VARIANT_ATTENTION;

    hold_fused(check, kind, alone, "");
    if (multiplies && (check->tally->barred >> VARIANT_HALF & 1) == 0) {
        hold_fused(check, kind, alone | 1u << VARIANT_HALF, " by halves");
    }
}

/* ---- speed -------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double time_step(struct gpu_check *check, const struct model *model, uint32_t disabled)
{
    struct machine *machine = gpu_check_open_barred(check, model->tape, disabled);
    double seconds[ROUNDS];
    struct error error;

    error_init(&error);
    gpu_check_give(&machine, 1, model, model->tape, 9);
    for (int round = -3; round < ROUNDS; round++) {
        gpu_check_must(gpu_machine_time(&seconds[round < 0 ? 0 : round], machine, 1, &error),
                       &error);
    }
    machine->backend->close(machine);
    qsort(seconds, ROUNDS, sizeof(seconds[0]), by_size);
    return seconds[ROUNDS / 2];
}

/* kind: the batch. */
void gpu_check_fused_speed(struct gpu_check *check, int kind)
{
    const uint32_t disabled = check->tally->barred;
    struct model model;
    char name[96];

    gpu_check_gpt2(&model, check, (uint32_t)kind, 1024, false);
    gpu_check_number(check, "gpt2 124M step, all variants",
                     1e3 * time_step(check, &model, disabled), "ms");
    for (uint32_t variant = CONTRACT_VARIANTS; variant < VARIANT_COUNT; variant++) {
        (void)snprintf(name, sizeof(name), "    without %s", selftest_name(variant));
        gpu_check_number(check, name, 1e3 * time_step(check, &model, disabled | 1u << variant),
                         "ms");
    }
    gpu_check_number(check, "    without any of these",
                     1e3 * time_step(check, &model, disabled | OTHER_VARIANTS), "ms");
    model_release(&model);
}
