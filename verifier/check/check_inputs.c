/* check_inputs.c - see check_inputs.h. Nothing here runs a step. */
#include "verifier/check/check_inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/http/http_reach.h"
#include "engine/rules/rule.h"
#include "proofs/bundle/checkpoint_file.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/state_root.h"
#include "proofs/format/safetensors.h"
#include "proofs/job/job_file.h"
#include "verifier/check/known_data.h"

static enum status give_up(struct checker *checker, enum status status)
{
    checker->result->permanent = true;
    return status;
}

/* ---- the job ------------------------------------------------------------ */

static enum status take_job(void *context, const char *path, struct error *error)
{
    struct checker *checker = context;
    struct job *job = NULL;
    enum status status;

    checker->unknown_rules = job_unknown_rules(path, &checker->request->job_id);
    if (checker->unknown_rules != 0) {
        return STATUS_OK; /* it is the job; the caller refuses it */
    }
    status = job_read(&job, path, error);
    if (status == STATUS_OK && !digest_equal(&job->id, &checker->request->job_id)) {
        status = error_set(error, STATUS_BAD_FORMAT, "it is another job");
    }
    if (status != STATUS_OK) {
        job_free(job);
        return status;
    }
    job_free(checker->job);
    checker->job = job;
    return STATUS_OK;
}

enum status check_get_job(struct checker *checker, struct error *error)
{
    const struct check_request *request = checker->request;
    const struct mirror_wanted wanted = {
        .kind = MIRROR_JOB,
        .root = request->job_id,
        .job = request->job_id,
        .size_max = request->file_max < JOB_FILE_SIZE_MAX ? request->file_max : JOB_FILE_SIZE_MAX,
        .check = take_job,
        .context = checker};
    char path[FILE_PATH_MAX];
    enum status status = fetch_get(path, checker->fetch, &wanted, NULL, error);

    for (uint32_t i = 0; status == STATUS_NOT_FOUND && i < checker->result->mirror_count; i++) {
        /* That nobody has it and that somebody has a false one are different troubles: the second
         * is named. */
        if (checker->result->mirrors[i].bad > 0) {
            return error_set(error, STATUS_REFUSED, "no mirror gives the job; one gives: %s",
                             checker->result->mirrors[i].trouble);
        }
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (checker->unknown_rules != 0) {
        (void)error_set(error, STATUS_REFUSED,
                        "the job is made for version %u of the rules; this program knows %d",
                        checker->unknown_rules, RULES_VERSION);
        return give_up(checker, STATUS_REFUSED);
    }
    /* The job is what its root says, and no other mirror has another: to ask again helps nobody. */
    if (checker->job->steps != request->steps ||
        (!request->journal && checker->job->segment_length != request->segment_steps)) {
        (void)error_set(error, STATUS_REFUSED,
                        "the terms on the ledger (%" PRIu64 " steps, segments of %u) are not those "
                        "of the job (%" PRIu64 ", %" PRIu64 ")",
                        request->steps, request->segment_steps, checker->job->steps,
                        checker->job->segment_length);
        return give_up(checker, STATUS_REFUSED);
    }
    memcpy(checker->result->header, checker->job->header, sizeof(checker->result->header));
    checker->result->has_header = true;
    return STATUS_OK;
}

/* ---- the data ----------------------------------------------------------- */

struct wanted_data {
    const char *cache;
    const struct tensor *tensor;
    const struct digest *root;
};

static enum status take_data(void *context, const char *path, struct error *error)
{
    const struct wanted_data *wanted = context;
    struct known_data known;
    struct dataset dataset;
    struct digest root = *wanted->root;
    bool seen = known_data_find(&known, wanted->cache, wanted->root, path);
    enum status status = run_data_open(&dataset, seen ? NULL : &root, wanted->tensor, path, error);

    if (status != STATUS_OK) {
        return status;
    }
    dataset_close(&dataset);
    if (!digest_equal(&root, wanted->root)) {
        return error_set(error, STATUS_BAD_FORMAT, "%s has another root", path);
    }
    if (!seen) {
        known_data_note(&known, wanted->cache, wanted->root, path);
    }
    return STATUS_OK;
}

/* Files of another size are not hashed; one that names its tensors may hold more. */
static bool may_be_data(const char *path, const struct tensor *tensor)
{
    uint64_t size = commit_tensor_size(tensor);
    struct stat about;

    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && (uint64_t)about.st_size >= size &&
           ((uint64_t)about.st_size <= size + 65536 || dataset_is_named(path));
}

static bool has_endpoint(const struct check_request *request)
{
    for (uint32_t i = 0; i < request->mirror_count; i++) {
        if (http_reach_is_url(request->mirrors[i])) {
            return true;
        }
    }
    return false;
}

/* Says that data comes whole, and why. */
static void note_whole(struct checker *checker, const struct error *why)
{
    (void)snprintf(checker->result->note, sizeof(checker->result->note),
                   "whole data is fetched, not the rows alone: %.100s", why->text);
}

/* STATUS_NOT_FOUND: it must come whole. */
static enum status get_part(struct checker *checker, uint32_t place, const struct tensor *tensor,
                            struct error *error)
{
    const struct check_request *request = checker->request;
    struct error why;
    enum status status;

    if (!data_rows_pay(&checker->rows, place, tensor,
                       request->segments[request->segment_count - 1].steps)) {
        return STATUS_NOT_FOUND;
    }
    error_init(&why);
    status = data_rows_begin(&checker->rows, place, checker->fetch, checker->job, tensor, &why);
    if (status == STATUS_NOT_FOUND || status == STATUS_UNREACHABLE || status == STATUS_NO_MEMORY) {
        note_whole(checker, &why);
        return STATUS_NOT_FOUND;
    }
    if (status != STATUS_OK) {
        *error = why;
        return status;
    }
    return data_paths_set(&checker->data, place, checker->rows.parts[place].path, error);
}

static enum status get_data(struct checker *checker, uint32_t place, const struct tensor *tensor,
                            struct error *error)
{
    struct wanted_data about = {checker->request->cache, tensor, &checker->job->data_roots[place]};
    const struct mirror_wanted wanted = {.kind = MIRROR_DATA,
                                         .root = *about.root,
                                         .job = checker->job->id,
                                         .size_max = commit_tensor_size(tensor) + 65536,
                                         .check = take_data,
                                         .context = &about};
    char path[FILE_PATH_MAX];
    enum status status;

    for (uint32_t i = 0; i < checker->request->data_count; i++) {
        struct error passed_over;

        error_init(&passed_over);
        if (may_be_data(checker->request->data[i], tensor) &&
            take_data(&about, checker->request->data[i], &passed_over) == STATUS_OK) {
            return data_paths_set(&checker->data, place, checker->request->data[i], error);
        }
    }
    if (wanted.size_max > checker->request->file_max) {
        (void)error_set(error, STATUS_OVER_LIMIT, "the data is larger than a file may be here");
        return STATUS_OVER_LIMIT;
    }
    status = fetch_here(path, checker->fetch, &wanted, error);
    if (status == STATUS_NOT_FOUND) {
        status = get_part(checker, place, tensor, error);
        if (status != STATUS_NOT_FOUND) {
            return status;
        }
        status = fetch_get(path, checker->fetch, &wanted, NULL, error);
    }
    TRY(status);
    return data_paths_set(&checker->data, place, path, error);
}

enum status check_get_data(struct checker *checker, struct error *error)
{
    const struct tape *tape = checker->job->tape;
    uint32_t place = 0;

    data_paths_close(&checker->data);
    data_rows_close(&checker->rows);
    TRY(data_paths_open(&checker->data, checker->job->data_count, error));
    TRY(data_rows_open(&checker->rows, checker->job,
                       !checker->wants_whole && has_endpoint(checker->request), error));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA) {
            TRY(get_data(checker, place++, &tape->tensors[id], error));
        }
    }
    return STATUS_OK;
}

/* ---- places ------------------------------------------------------------- */

uint32_t check_index_at(const struct checker *checker, uint32_t place)
{
    return checker->request->index - (checker->request->segment_count - 1 - place);
}

uint64_t check_first_step_at(const struct checker *checker, uint32_t place)
{
    const struct check_request *request = checker->request;
    uint64_t step = request->first_step;

    if (!request->journal) {
        return (uint64_t)check_index_at(checker, place) * request->segment_steps;
    }
    for (uint32_t i = 0; i < place; i++) {
        step += request->segments[i].steps;
    }
    return step;
}

enum status check_first_root(struct digest *root, struct checker *checker, uint32_t place,
                             struct error *error)
{
    const struct check_segment *before;

    if (place == 0 && checker->request->journal) {
        *root = checker->request->first_root;
        return STATUS_OK;
    }
    if (check_index_at(checker, place) == 0) {
        *root = checker->job->first_state_root;
        return STATUS_OK;
    }
    if (place == 0) {
        return error_set(error, STATUS_NOT_FOUND, "no checkpoint within reach");
    }
    before = &checker->request->segments[place - 1];
    *root = before->states[before->steps - 1];
    return STATUS_OK;
}

/* ---- the state to begin with -------------------------------------------- */

struct wanted_state {
    struct machine *machine;
    const struct digest *root;
};

/* Loads the file into the machine and hashes what the machine holds. */
static enum status take_state(void *context, const char *path, struct error *error)
{
    const struct wanted_state *wanted = context;
    struct safetensors file;
    struct digest root;
    enum status status = safetensors_open(&file, error, path);

    if (status != STATUS_OK) {
        return status;
    }
    status = checkpoint_file_load(wanted->machine, &file, error);
    safetensors_close(&file);
    TRY(status);
    TRY(state_root_of(&root, wanted->machine, error));
    return digest_equal(&root, wanted->root)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "%s is another state", path);
}

enum status check_load_state(struct machine *machine, const char *path, const struct digest *root,
                             struct error *error)
{
    struct wanted_state wanted = {machine, root};

    return take_state(&wanted, path, error);
}

static enum status draw_first_state(struct checker *checker, struct machine *machine,
                                    struct error *error)
{
    const struct job *job = checker->job;
    struct digest root;

    for (uint32_t i = 0; i < job->tape->state_count; i++) {
        uint32_t tensor = job->tape->states[i].before;
        void *bytes = malloc(commit_tensor_size(&job->tape->tensors[tensor]));
        enum status status;

        if (bytes == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the first state");
        }
        job_first_state(bytes, job, tensor);
        status = machine->backend->write(machine, tensor, bytes, error);
        free(bytes);
        TRY(status);
    }
    TRY(state_root_of(&root, machine, error));
    if (!digest_equal(&root, &job->first_state_root)) {
        (void)error_set(error, STATUS_REFUSED,
                        "the job's draws do not give the first state that it commits to");
        return give_up(checker, STATUS_REFUSED);
    }
    return STATUS_OK;
}

enum status check_begin_at(struct checker *checker, struct machine *machine, uint32_t place,
                           struct error *error)
{
    const struct tape *tape = checker->job->tape;
    struct digest root;
    struct wanted_state about = {machine, &root};
    struct mirror_wanted wanted = {.kind = MIRROR_STATE,
                                   .job = checker->request->job_id,
                                   .number = check_first_step_at(checker, place),
                                   .size_max = SAFETENSORS_HEADER_MAX + 8,
                                   .check = take_state,
                                   .context = &about};
    char path[FILE_PATH_MAX];
    enum status status = check_first_root(&root, checker, place, error);

    if (status != STATUS_OK) {
        return status;
    }
    if (wanted.number == 0 && !checker->job->first_state_given) {
        return draw_first_state(checker, machine, error);
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        wanted.size_max += commit_tensor_size(&tape->tensors[tape->states[i].before]);
    }
    if (wanted.size_max > checker->request->file_max) {
        return error_set(error, STATUS_OVER_LIMIT, "a checkpoint is larger than a file may be");
    }
    wanted.root = root;
    return fetch_get(path, checker->fetch, &wanted, checker->job, error);
}

enum status check_find_start(struct checker *checker, struct error *error)
{
    uint32_t place = checker->request->segment_count;
    uint32_t tries = checker->request->reach + 1;
    enum status first = STATUS_OK;
    struct error why;

    if (checker->request->journal) {
        first = check_begin_at(checker, checker->run.machine, 0, error);
        checker->result->no_start = first == STATUS_NOT_FOUND;
        return first;
    }
    error_init(&why);
    while (place-- > 0 && tries-- > 0) {
        enum status status = check_begin_at(checker, checker->run.machine, place, &why);

        if (status == STATUS_OK) {
            checker->start = place;
            return STATUS_OK;
        }
        if (first == STATUS_OK) {
            first = status;
            *error = why;
        }
        if (status != STATUS_NOT_FOUND && status != STATUS_UNREACHABLE) {
            *error = why;
            return status;
        }
    }
    return first;
}

enum status check_get_rows(struct checker *checker, struct error *error)
{
    const struct check_request *request = checker->request;
    const uint32_t last = request->segment_count - 1;
    const uint64_t steps = check_first_step_at(checker, last) + request->segments[last].steps -
                           check_first_step_at(checker, checker->start);
    enum status status =
        data_rows_fetch(&checker->rows, &checker->run, checker->fetch, steps, error);

    if (status == STATUS_REFUSED) {
        checker->wants_whole = true;
        note_whole(checker, error);
    }
    return status;
}
