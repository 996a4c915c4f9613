/* round_job.c - see round_job.h. */
#include "proofs/rounds/round_job.h"

#include <string.h>

#include "proofs/job/held_out_job.h"
#include "proofs/job/job_file.h"
#include "proofs/rounds/round_trees.h"

/* ---- what may be averaged ------------------------------------------------- */

static bool same_shape(const struct tensor *a, const struct tensor *b, uint32_t from)
{
    return a->dtype == b->dtype && a->rank == b->rank && strcmp(a->name, b->name) == 0 &&
           (a->rank <= from ||
            memcmp(a->dims + from, b->dims + from, (a->rank - from) * sizeof(a->dims[0])) == 0);
}

static enum status check_states(const struct job *job, const char *name, const struct job *other,
                                const char *other_name, struct error *error)
{
    const struct tape *a = job->tape;
    const struct tape *b = other->tape;

    if (a->state_count != b->state_count) {
        return error_set(error, STATUS_REFUSED,
                         "the jobs of '%s' and '%s' train different models: their states have %u "
                         "and %u tensors",
                         name, other_name, a->state_count, b->state_count);
    }
    for (uint32_t i = 0; i < a->state_count; i++) {
        if (!same_shape(&a->tensors[a->states[i].before], &b->tensors[b->states[i].before], 0)) {
            return error_set(error, STATUS_REFUSED,
                             "the jobs of '%s' and '%s' train different models: tensor %u of their "
                             "states is '%s' and '%s', or has another type or shape",
                             name, other_name, i + 1, a->tensors[a->states[i].before].name,
                             b->tensors[b->states[i].before].name);
        }
    }
    return STATUS_OK;
}

/* The next data tensor at or after `from`; the count: there is none. */
static uint32_t next_data(const struct tape *tape, uint32_t from)
{
    while (from < tape->tensor_count && tape->tensors[from].role != ROLE_DATA) {
        from++;
    }
    return from;
}

/* Rows may be more or fewer: the first dimension counts them. */
static enum status check_data(const struct job *job, const char *name, const struct job *other,
                              const char *other_name, struct error *error)
{
    uint32_t a = next_data(job->tape, 0);
    uint32_t b = next_data(other->tape, 0);

    while (a < job->tape->tensor_count && b < other->tape->tensor_count) {
        if (!same_shape(&job->tape->tensors[a], &other->tape->tensors[b], 1)) {
            return error_set(error, STATUS_REFUSED,
                             "the jobs of '%s' and '%s' read data of different types: '%s' and "
                             "'%s', or rows of other widths",
                             name, other_name, job->tape->tensors[a].name,
                             other->tape->tensors[b].name);
        }
        a = next_data(job->tape, a + 1);
        b = next_data(other->tape, b + 1);
    }
    return a == job->tape->tensor_count && b == other->tape->tensor_count
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED,
                           "the jobs of '%s' and '%s' read data of different types: %u and %u "
                           "tensors",
                           name, other_name, job->data_count, other->data_count);
}

enum status round_job_check_alike(const struct job *job, const char *name, const struct job *other,
                                  const char *other_name, struct error *error)
{
    TRY(check_states(job, name, other, other_name, error));
    TRY(check_data(job, name, other, other_name, error));
    if (!digest_equal(&job->first_state_root, &other->first_state_root)) {
        (void)error_set(error, STATUS_REFUSED,
                        "the jobs of '%s' and '%s' begin with different states", name, other_name);
        error_advise(error, "make all jobs with one --seed, or of one --base or --first-state");
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

enum status round_job_check(const struct job *job, const char *name, bool moments,
                            struct error *error)
{
    const struct tape *tape = job->tape;
    uint32_t taken = 0;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *tensor = &tape->tensors[tape->states[i].before];

        if (first_state_is_parameter(tape, i) && tensor->dtype != DTYPE_F32) {
            return error_set(error, STATUS_REFUSED,
                             "the job of '%s' trains '%s' as %s: only binary32 is averaged", name,
                             tensor->name, dtype_name(tensor->dtype));
        }
        taken += first_state_is_parameter(tape, i);
        kept += round_trees_is_moment(tape, i);
    }
    if (taken == 0 || tape->loss == TENSOR_NONE) {
        return error_set(error, STATUS_REFUSED, "the job of '%s' trains nothing", name);
    }
    return !moments || kept > 0 ? STATUS_OK
                                : error_set(error, STATUS_REFUSED,
                                            "--keep-moments: the job of '%s' has no moments in "
                                            "binary32",
                                            name);
}

/* ---- the job of a round --------------------------------------------------- */

static bool draws_training(const struct tape *tape, const struct op *op)
{
    return (op->kind == OP_BATCH_TOKENS || op->kind == OP_BATCH_ROWS ||
            op->kind == OP_BATCH_SAMPLES) &&
           strncmp(tape->tensors[op->inputs[0]].name, HELD_OUT_DATA, strlen(HELD_OUT_DATA)) != 0;
}

static void shift_seeds(struct tape *tape, uint32_t by)
{
    for (uint32_t at = 0; tape != NULL && at < tape->op_count; at++) {
        struct op *op = &tape->ops[at];

        if (draws_training(tape, op)) {
            const uint64_t seed = ((uint64_t)(uint32_t)op->attributes[BATCH_SEED_HIGH] << 32 |
                                   (uint32_t)op->attributes[BATCH_SEED_LOW]) +
                                  by;

            op->attributes[BATCH_SEED_LOW] = (int64_t)(uint32_t)seed;
            op->attributes[BATCH_SEED_HIGH] = (int64_t)(seed >> 32);
        }
    }
}

/* A copy by its bytes. */
static enum status copy_job(struct job **copy, const struct job *job, struct error *error)
{
    struct buffer bytes;
    enum status status;

    buffer_init(&bytes, JOB_FILE_SIZE_MAX);
    TRY_OUT(job_encode(&bytes, job, error));
    status = job_parse(copy, bytes.data, bytes.size, error);
out:
    buffer_release(&bytes);
    return status;
}

enum status round_job_make(struct job **made, const struct job *given, uint32_t round,
                           const struct digest *start, struct error *error)
{
    struct job *job = NULL;
    enum status status;

    TRY(copy_job(&job, given, error));
    if (round > 1) {
        job->first_state_given = true;
        job->seed = 0;
        job->first_state_root = *start;
        shift_seeds(job->tape, round - 1);
        shift_seeds(job->tape->brief, round - 1);
        TRY_OUT(job_complete(job, error));
    }
    *made = job;
    return STATUS_OK;
out:
    job_free(job);
    return status;
}
