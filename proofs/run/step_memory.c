/* step_memory.c - see step_memory.h. */
#include "proofs/run/step_memory.h"

#include <stdio.h>
#include <string.h>

#include "engine/tape/repeat.h"

/* A tape of micro-batches that is longer is planned by fewer of them. */
#define MANY_OPERATIONS 5000

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

/*
 * A GPU that cannot run the tape, or not be planned in good time, is no failure. It also holds the
 * list of all operations, of which `more` are not in the tape.
 */
static void plan_gpu(struct step_memory *memory, const struct tape *tape, uint64_t more,
                     struct machine_options *options)
{
    struct error unknown;

    error_init(&unknown);
    options->backend = &backend_cuda;
    if (tape->op_count > GPU_OPERATIONS_MAX ||
        plan_ways(memory->gpu, tape, *options, &unknown) != STATUS_OK) {
        memset(memory->gpu, 0, sizeof(memory->gpu));
        return;
    }
    for (int way = 0; way < STEP_WAYS; way++) {
        memory->gpu[way] += more * sizeof(struct op);
    }
}

enum status step_memory_plan(struct step_memory *memory, const struct tape *tape,
                             struct error *error)
{
    struct machine_options options;
    const uint32_t count = tape->op_count;
    struct tape *shorter = NULL;
    enum status status;

    *memory = (struct step_memory){.data = tape_footprint(tape).data};
    TRY(machine_options_default(&options, error));
    if (count > MANY_OPERATIONS) {
        TRY(repeat_shorten(&shorter, tape, error));
    }
    tape = shorter != NULL ? shorter : tape;
    TRY_OUT(plan_ways(memory->cpu, tape, options, error));
    plan_gpu(memory, tape, count - tape->op_count, &options);
out:
    tape_free(shorter);
    return status;
}

static double mib(uint64_t bytes)
{
    return (double)bytes / 1048576.0;
}

void step_memory_text(char text[STEP_MEMORY_TEXT], const uint64_t ways[STEP_WAYS])
{
    if (ways[STEP_PLAIN] == 0) {
        (void)snprintf(text, STEP_MEMORY_TEXT, "not known");
        return;
    }
    (void)snprintf(text, STEP_MEMORY_TEXT,
                   "%.2f MiB, with --recompute %.2f MiB, with --hoist %.2f MiB",
                   mib(ways[STEP_PLAIN]), mib(ways[STEP_RECOMPUTE]), mib(ways[STEP_HOIST]));
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
    return json_pack("{s:o, s:o, s:I}", "cpu", ways_json(memory->cpu), "gpu",
                     ways_json(memory->gpu), "data", (json_int_t)memory->data);
}
