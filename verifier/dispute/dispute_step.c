/* dispute_step.c - see dispute_step.h. */
#include "verifier/dispute/dispute_step.h"

#include <string.h>

#include "base/endian.h"
#include "proofs/hash/sha256.h"

/* What the file of the trace is marked with: job, step and state before it. */
static void mark_of(struct digest *mark, const struct dispute_step *step)
{
    struct sha256 state;
    uint8_t number[8];

    endian_store_be64(number, step->source.step);
    sha256_init(&state, SHA256_ISA_BEST);
    sha256_add(&state, step->source.job.bytes, DIGEST_SIZE);
    sha256_add(&state, number, sizeof(number));
    sha256_add(&state, step->context.before.bytes, DIGEST_SIZE);
    sha256_end(&state, mark);
}

static enum status open_tracing(struct run *run, struct error *error)
{
    struct machine_options traced = run->options;

    traced.trace = true;
    return run_reopen(run, &traced, error);
}

static enum status run_step(struct dispute_step *step, const char *path, const struct digest *mark,
                            struct error *error)
{
    TRY(open_tracing(step->run, error));
    return path != NULL && trace_file_size(step->run->job->tape) <= step->file_max
               ? trace_server_open_kept(&step->own, step->run->machine, path, mark, error)
               : trace_server_open(&step->own, step->run->machine, error);
}

enum status dispute_step_open(struct dispute_step *step, const struct dispute *dispute,
                              struct error *error)
{
    char path[FILE_PATH_MAX];
    struct digest mark;
    enum status status;

    if (step->own.tape != NULL) {
        return STATUS_OK;
    }
    if (dispute->folder[0] == '\0') {
        return run_step(step, NULL, NULL, error);
    }
    mark_of(&mark, step);
    TRY(dispute_path(path, dispute, DISPUTE_FILE_TRACE, error));
    status = trace_server_load(&step->own, step->run->job->tape, path, &mark, error);
    if (status == STATUS_OK && step->own.tape->brief != NULL) { /* it has one micro-batch */
        TRY(open_tracing(step->run, error));
        trace_server_use(&step->own, step->run->machine);
    }
    if (status == STATUS_OK || !step->stands) {
        return status;
    }
    return run_step(step, path, &mark, error);
}

void dispute_step_close(struct dispute_step *step)
{
    trace_walk_close(&step->walk);
    if (step->own.tape != NULL) {
        trace_server_close(&step->own);
    }
}

enum status dispute_step_walk(struct dispute_step *step, const struct dispute *dispute,
                              struct error *error)
{
    const struct trace_walk_case accused = {.trace_root = dispute->trace_root,
                                            .state_root = step->context.before,
                                            .next_root = step->context.after,
                                            .batch_root = step->context.batch};

    trace_walk_close(&step->walk);
    TRY(trace_source_open(&step->walk, &step->own, &step->source, &accused, error));
    return trace_source_walk(&step->walk, &step->source, error);
}
