/* step_memory.c - see step_memory.h. */
#include "proofs/run/step_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/plan/hoist.h"

/* A second or two of planning for a GPU. */
#define GPU_OPERATIONS_MAX 100000

static enum status plan_ways(uint64_t ways[STEP_WAYS], const struct tape *tape,
                             struct machine_options options, struct error *error)
{
    for (int way = 0; way < STEP_WAYS; way++) {
        options.recompute = way == STEP_RECOMPUTE;
        options.hoist = way == STEP_HOIST;
        TRY(machine_size(&ways[way], tape, &options, error));
    }
    return STATUS_OK;
}

/* A GPU that cannot run the tape, or not be planned in good time, is no failure. */
static void plan_gpu(struct step_memory *memory, const struct tape *tape,
                     struct machine_options *options)
{
    struct error unknown;

    error_init(&unknown);
    options->backend = &backend_cuda;
    if (tape->op_count > GPU_OPERATIONS_MAX ||
        plan_ways(memory->gpu, tape, *options, &unknown) != STATUS_OK) {
        memset(memory->gpu, 0, sizeof(memory->gpu));
    }
}

/* What lasts is made once of its data. */
static enum status find_read_again(uint64_t *size, const struct tape *tape, struct error *error)
{
    bool *lasting = calloc((size_t)tape->op_count + 1, sizeof(*lasting));
    bool *again = calloc((size_t)tape->tensor_count + 1, sizeof(*again));
    enum status status;

    *size = 0;
    if (lasting == NULL || again == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory to plan a step");
        goto out;
    }
    TRY_OUT(hoist_find_lasting(lasting, tape, error));
    for (uint32_t at = 0; at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].input_count && !lasting[at]; i++) {
            again[tape->ops[at].inputs[i]] = true;
        }
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (again[id] && tape->tensors[id].role == ROLE_DATA) {
            *size += tensor_size(&tape->tensors[id]);
        }
    }
out:
    free(lasting);
    free(again);
    return status;
}

enum status step_memory_plan(struct step_memory *memory, const struct tape *tape,
                             struct error *error)
{
    struct machine_options options;

    *memory = (struct step_memory){.data = tape_footprint(tape).data};
    TRY(machine_options_default(&options, error));
    TRY(find_read_again(&memory->data_hoist, tape, error));
    TRY(plan_ways(memory->cpu, tape, options, error));
    plan_gpu(memory, tape, &options);
    return STATUS_OK;
}

static double mib_of(uint64_t bytes)
{
    return (double)bytes / 1048576.0;
}

void step_memory_text(char text[STEP_MEMORY_TEXT], const uint64_t ways[STEP_WAYS])
{
    if (ways[STEP_PLAIN] == 0) {
        (void)snprintf(text, STEP_MEMORY_TEXT, "not known");
        return;
    }
    (void)snprintf(
        text, STEP_MEMORY_TEXT, "%.2f MiB, with --recompute %.2f MiB, with --hoist %.2f MiB",
        mib_of(ways[STEP_PLAIN]), mib_of(ways[STEP_RECOMPUTE]), mib_of(ways[STEP_HOIST]));
}

static json_t *ways_json(const uint64_t ways[STEP_WAYS])
{
    return ways[STEP_PLAIN] == 0
               ? json_null()
               : json_pack("{s:I, s:I, s:I}", "plain", (json_int_t)ways[STEP_PLAIN], "recompute",
                           (json_int_t)ways[STEP_RECOMPUTE], "hoist", (json_int_t)ways[STEP_HOIST]);
}

json_t *step_memory_json(const struct step_memory *memory)
{
    return json_pack("{s:o, s:o, s:I, s:I}", "cpu", ways_json(memory->cpu), "gpu",
                     ways_json(memory->gpu), "data", (json_int_t)memory->data, "data_hoist",
                     (json_int_t)memory->data_hoist);
}
