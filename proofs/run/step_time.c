/* step_time.c - see step_time.h. */
#include "proofs/run/step_time.h"

#include <stdlib.h>
#include <time.h>

#include "base/steady.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/state_root.h"

static enum status write_first_state(struct run *run, struct error *error)
{
    const struct tape *tape = run->job->tape;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        uint32_t id = tape->states[i].before;
        void *bytes = calloc(1, commit_tensor_size(&tape->tensors[id]));
        enum status status;

        if (bytes == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the first state");
        }
        if (!run->job->first_state_given) {
            job_first_state(bytes, run->job, id);
        }
        status = run->machine->backend->write(run->machine, id, bytes, error);
        free(bytes);
        TRY(status);
    }
    return STATUS_OK;
}

static int compare_times(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Reads the loss after the step: a device may still be at work when step() returns. */
static enum status one_step(double *passed, struct run *run, struct error *error)
{
    double start = steady_seconds();
    uint32_t bits;

    TRY(run->machine->backend->step(run->machine, NULL, error));
    TRY(run_loss(&bits, run, error));
    *passed = steady_seconds() - start;
    return STATUS_OK;
}

static enum status time_steps(struct step_time *time, struct run *run, double seconds,
                              struct error *error)
{
    double each[STEP_TIME_STEPS_MAX];
    double begin = steady_seconds();
    struct digest root;
    bool finite;

    TRY(one_step(&each[0], run, error)); /* warms up */
    do {
        TRY(one_step(&each[time->steps], run, error));
        time->steps++;
    } while (time->steps < STEP_TIME_STEPS_MAX && steady_seconds() - begin < seconds);
    qsort(each, time->steps, sizeof(each[0]), compare_times);
    time->seconds = each[time->steps / 2];
    time->spread_s = each[time->steps - 1] - each[0];
    begin = steady_seconds();
    TRY(state_root_find(&root, &finite, run->machine, run->options.thread_count, error));
    time->hashing = steady_seconds() - begin;
    return STATUS_OK;
}

enum status step_time_of_run(struct step_time *time, struct run *run, double seconds,
                             struct error *error)
{
    *time = (struct step_time){0};
    TRY(write_first_state(run, error));
    return time_steps(time, run, seconds, error);
}

enum status step_time_measure(struct step_time *time, const struct job *job,
                              const char *const *paths, size_t path_count,
                              const struct machine_options *machine, double seconds,
                              struct error *error)
{
    struct run run = {0};
    enum status status;

    *time = (struct step_time){0};
    TRY(run_open(&run, job, paths, path_count, machine, error));
    status = step_time_of_run(time, &run, seconds, error);
    run_close(&run);
    return status;
}

double step_time_op_products(const struct op *op)
{
    const int64_t *a = op->attributes;
    double product = 1.0;

    /* A row, or a place along K, belongs to one expert. */
    if (op->kind == OP_CONTRACT_CHOSEN) {
        return (double)a[CHOSEN_ROWS] * (double)a[CHOSEN_WIDTH] * (double)a[CHOSEN_K];
    }
    if (op->kind == OP_CONTRACT_CHOSEN_ROWS) {
        return (double)a[CHOSEN_SUM_M] * (double)a[CHOSEN_SUM_N] * (double)a[CHOSEN_SUM_K];
    }
    if (op->kind != OP_CONTRACT) {
        return 0.0;
    }
    for (int axis = 0; axis < CONTRACT_STRIDES; axis++) {
        product *= (double)a[CONTRACT_DIMS + axis];
    }
    product *= (double)a[CONTRACT_K];
    return a[CONTRACT_CAUSAL] > 0 ? product / 2.0 : product;
}

double step_time_products(const struct tape *tape)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < tape->op_count; i++) {
        sum += step_time_op_products(&tape->ops[i]) * (double)tape_turns(tape, i);
    }
    return sum;
}

uint64_t step_time_tokens(const struct tape *tape)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < tape->op_count; i++) {
        const struct op *op = &tape->ops[i];
        const uint64_t turns = tape_turns(tape, i);

        if (op->kind == OP_BATCH_TOKENS) {
            sum += turns * (uint64_t)op->attributes[BATCH_COUNT] *
                   (uint64_t)op->attributes[BATCH_LENGTH];
        } else if (op->kind == OP_BATCH_SAMPLES) {
            sum += turns * (uint64_t)op->attributes[BATCH_COUNT];
        } else if (op->kind == OP_BATCH_ROWS &&
                   op->attributes[BATCH_ROWS_PAST] == TARGET_IGNORED) { /* targets */
            sum += turns * (uint64_t)op->attributes[BATCH_COUNT] *
                   (uint64_t)op->attributes[BATCH_LENGTH];
        }
    }
    return sum;
}
