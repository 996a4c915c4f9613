/* job_make.c - see job_make.h. */
#include "proofs/job/job_make.h"

#include <stdlib.h>
#include <string.h>

#include "engine/rules/rule.h"
#include "proofs/job/job_file.h"

static enum status take_model(struct job *job, struct model *model, struct error *error)
{
    job->tape = model->tape;
    model->tape = NULL;
    job->constants = calloc((size_t)model->constant_count + 1, sizeof(*job->constants));
    if (job->constants == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a job");
    }
    for (uint32_t i = 0; i < model->constant_count; i++) {
        job->constants[job->constant_count++] = model->constants[i].bytes;
    }
    model->constant_count = 0;
    if (!job->first_state_given) {
        job->seed = model->options.seed;
    }
    return STATUS_OK;
}

/* A text that is too long is cut, one byte too late: job_check_terms() refuses it. */
static void take_text(char text[JOB_TITLE_MAX + 1], const char *given)
{
    size_t size = given == NULL ? 0 : strnlen(given, JOB_TITLE_MAX + 1);

    memcpy(text, given == NULL ? "" : given, size);
}

static struct job *job_of_terms(const struct job_terms *terms)
{
    struct job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        return NULL;
    }
    job->data_roots = calloc((size_t)terms->data_count + 1, sizeof(*job->data_roots));
    if (job->data_roots == NULL) {
        free(job);
        return NULL;
    }
    for (uint32_t i = 0; i < terms->data_count; i++) {
        job->data_roots[i] = terms->data_roots[i];
    }
    job->rules_version = RULES_VERSION;
    job->steps = terms->steps;
    job->segment_length = terms->segment_length;
    job->requirements = terms->requirements;
    job->data_count = terms->data_count;
    job->first_state_given = terms->first_state_given;
    job->seed = terms->first_state_given ? 0 : terms->seed;
    job->first_state_root = terms->first_state_root;
    take_text(job->title, terms->title);
    take_text(job->model, terms->model);
    if (terms->notes != NULL && terms->notes[0] != '\0') {
        job->notes = strdup(terms->notes);
        if (job->notes == NULL) {
            job_free(job);
            return NULL;
        }
    }
    return job;
}

/* Takes the job, also after a failure. */
static enum status end_job(struct job **result, struct job *job, enum status status,
                           struct error *error)
{
    if (status == STATUS_OK) {
        status = job_complete(job, error);
    }
    if (status != STATUS_OK) {
        job_free(job);
        return status;
    }
    *result = job;
    return STATUS_OK;
}

enum status job_from_model(struct job **result, struct model *model, const struct job_terms *terms,
                           struct error *error)
{
    struct job *job = job_of_terms(terms);
    enum status status;

    if (job == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a job");
    }
    TRY_OUT(take_model(job, model, error));
out:
    return end_job(result, job, status, error);
}

enum status job_from_tape(struct job **result, struct tape *tape, void **constants,
                          uint32_t constant_count, const struct job_terms *terms,
                          struct error *error)
{
    struct job *job = job_of_terms(terms);
    enum status status = STATUS_OK;

    if (job == NULL) {
        tape_free(tape);
        for (uint32_t i = 0; i < constant_count; i++) {
            free(constants[i]);
        }
        free(constants);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a job");
    }
    job->tape = tape;
    job->constants = constants;
    job->constant_count = constant_count;
    if (constant_count != job_tensors(NULL, 0, job, ROLE_CONSTANT)) {
        status = error_set(error, STATUS_USAGE, "%u constants for a tape with %u", constant_count,
                           job_tensors(NULL, 0, job, ROLE_CONSTANT));
        goto out;
    }
out:
    return end_job(result, job, status, error);
}
