/* check.c - see check.h. */
#include "verifier/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "engine/rule.h"
#include "proofs/commit.h"
#include "proofs/run.h"
#include "proofs/safetensors.h"
#include "proofs/state_root.h"
#include "proofs/trace.h"
#include "verifier/duel.h"
#include "verifier/known_data.h"

struct checker {
    const struct check_request *request;
    struct check_result *result;
    struct fetch *fetch;
    struct job *job;
    uint32_t unknown_rules; /* the job is made for this version, which is not ours; 0: it is not */
    struct digest
        *lists[CHECK_REACH_MAX + 1]; /* state roots of request->segments; NULL: not here */
    char data[JOB_DATA_MAX][FILE_PATH_MAX];
    const char *paths[JOB_DATA_MAX];
    uint32_t path_count;
    uint32_t start; /* the segment, by its place in the request, that the replay begins with */
    struct run run;
};

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
        return STATUS_OK; /* who gives it gives what was asked for */
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

static enum status get_job(struct checker *checker, struct error *error)
{
    const struct check_request *request = checker->request;
    const struct fetch_wish wish = {
        .kind = FETCH_JOB,
        .root = request->job_id,
        .job = request->job_id,
        .size_max = request->file_max < JOB_FILE_SIZE_MAX ? request->file_max : JOB_FILE_SIZE_MAX,
        .check = take_job,
        .context = checker};
    char path[FILE_PATH_MAX];
    enum status status = fetch_get(path, checker->fetch, &wish, error);

    for (uint32_t i = 0; status == STATUS_NOT_FOUND && i < checker->result->mirror_count; i++) {
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
    if (checker->job->steps != request->steps ||
        checker->job->segment_length != request->segment_steps) {
        (void)error_set(error, STATUS_REFUSED,
                        "the terms on the ledger (%" PRIu64 " steps, segments of %u) are not those "
                        "of the job (%" PRIu64 ", %" PRIu64 ")",
                        request->steps, request->segment_steps, checker->job->steps,
                        checker->job->segment_length);
        return give_up(checker, STATUS_REFUSED);
    }
    return STATUS_OK;
}

/* ---- the data ----------------------------------------------------------- */

struct data_wish {
    const char *cache;
    const struct tensor *tensor;
    const struct digest *root;
};

static enum status take_data(void *context, const char *path, struct error *error)
{
    const struct data_wish *wish = context;
    struct known_data known;
    struct dataset dataset;
    struct digest root = *wish->root;
    bool seen = known_data_find(&known, wish->cache, wish->root, path);
    enum status status = run_data_open(&dataset, seen ? NULL : &root, wish->tensor, path, error);

    if (status != STATUS_OK) {
        return status;
    }
    dataset_close(&dataset);
    if (!digest_equal(&root, wish->root)) {
        return error_set(error, STATUS_BAD_FORMAT, "%s has another root", path);
    }
    if (!seen) {
        known_data_note(&known, wish->cache, wish->root, path);
    }
    return STATUS_OK;
}

/* Files of another size are not hashed. */
static bool may_be_data(const char *path, const struct tensor *tensor)
{
    uint64_t size = commit_tensor_size(tensor);
    struct stat about;

    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && (uint64_t)about.st_size >= size &&
           (uint64_t)about.st_size <= size + 65536;
}

static enum status get_data(struct checker *checker, uint32_t place, const struct tensor *tensor,
                            struct error *error)
{
    struct data_wish about = {checker->request->cache, tensor, &checker->job->data_roots[place]};
    const struct fetch_wish wish = {.kind = FETCH_DATA,
                                    .root = *about.root,
                                    .job = checker->job->id,
                                    .size_max = commit_tensor_size(tensor) + 65536,
                                    .check = take_data,
                                    .context = &about};
    char *path = checker->data[place];

    for (uint32_t i = 0; i < checker->request->data_count; i++) {
        struct error passed_over;

        error_init(&passed_over);
        if (may_be_data(checker->request->data[i], tensor) &&
            take_data(&about, checker->request->data[i], &passed_over) == STATUS_OK) {
            (void)snprintf(path, FILE_PATH_MAX, "%s", checker->request->data[i]);
            return STATUS_OK;
        }
    }
    if (wish.size_max > checker->request->file_max) {
        (void)error_set(error, STATUS_OVER_LIMIT, "the data is larger than a file may be here");
        return STATUS_OVER_LIMIT;
    }
    return fetch_get(path, checker->fetch, &wish, error);
}

static enum status get_all_data(struct checker *checker, struct error *error)
{
    uint32_t ids[JOB_DATA_MAX];
    enum status status = STATUS_OK;

    checker->path_count = job_tensors(ids, JOB_DATA_MAX, checker->job, ROLE_DATA);
    for (uint32_t i = 0; i < checker->path_count && status == STATUS_OK; i++) {
        status = get_data(checker, i, &checker->job->tape->tensors[ids[i]], error);
        checker->paths[i] = checker->data[i];
    }
    return status;
}

/* ---- the state roots ---------------------------------------------------- */

struct list_wish {
    struct digest *items;
    uint64_t first;
    uint64_t count;
    const struct digest *root;
};

static enum status take_list(void *context, const char *path, struct error *error)
{
    struct list_wish *wish = context;
    struct file_bytes bytes;
    struct digest root;
    enum status status = file_read(&bytes, error, path, wish->count * DIGEST_SIZE);

    if (status == STATUS_OVER_LIMIT ||
        (status == STATUS_OK && bytes.size != wish->count * DIGEST_SIZE)) {
        status = error_set(error, STATUS_BAD_FORMAT, "%s: not one root for each step", path);
    }
    if (status == STATUS_OK) {
        memcpy(wish->items, bytes.data, bytes.size);
        commit_list_root(&root, COMMIT_SEGMENT, wish->first, wish->items, wish->count);
        if (!digest_equal(&root, wish->root)) {
            status = error_set(error, STATUS_BAD_FORMAT, "%s is not what was committed to", path);
        }
    }
    file_bytes_release(&bytes);
    return status;
}

/* The ledger's number of a segment at a place of the request. */
static uint32_t index_at(const struct checker *checker, uint32_t place)
{
    return checker->request->index - (checker->request->segment_count - 1 - place);
}

static uint64_t first_step_at(const struct checker *checker, uint32_t place)
{
    return (uint64_t)index_at(checker, place) * checker->request->segment_steps;
}

static enum status get_list(struct checker *checker, uint32_t place, struct error *error)
{
    const struct check_segment *segment = &checker->request->segments[place];
    struct list_wish about = {NULL, first_step_at(checker, place), segment->steps, &segment->root};
    const struct fetch_wish wish = {.kind = FETCH_SEGMENT,
                                    .root = segment->root,
                                    .job = checker->request->job_id,
                                    .number = index_at(checker, place),
                                    .first = about.first,
                                    .count = about.count,
                                    .size_max = (uint64_t)segment->steps * DIGEST_SIZE,
                                    .check = take_list,
                                    .context = &about};
    char path[FILE_PATH_MAX];
    enum status status;

    if (checker->lists[place] != NULL) {
        return STATUS_OK;
    }
    about.items = calloc((size_t)segment->steps + 1, sizeof(*about.items));
    if (about.items == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the roots of a segment");
    }
    status = fetch_get(path, checker->fetch, &wish, error);
    if (status != STATUS_OK) {
        free(about.items);
        return status;
    }
    checker->lists[place] = about.items;
    return STATUS_OK;
}

/* The root of the state that a segment begins with. */
static enum status first_root(struct digest *root, struct checker *checker, uint32_t place,
                              struct error *error)
{
    enum status status;

    if (index_at(checker, place) == 0) {
        *root = checker->job->first_state_root;
        return STATUS_OK;
    }
    if (place == 0) {
        return error_set(error, STATUS_NOT_FOUND, "no checkpoint within reach");
    }
    status = get_list(checker, place - 1, error);
    if (status == STATUS_OK) {
        *root = checker->lists[place - 1][checker->request->segments[place - 1].steps - 1];
    }
    return status;
}

/* ---- the state to begin with -------------------------------------------- */

struct state_wish {
    struct machine *machine;
    const struct digest *root;
};

static enum status load_tensor(struct machine *machine, const struct safetensors *file,
                               uint32_t tensor, struct error *error)
{
    const struct tensor *shape = &machine->tape->tensors[tensor];
    const struct safetensors_entry *entry = safetensors_find(file, shape->name);
    enum status status;
    void *bytes;

    if (entry == NULL || entry->element != element_of_dtype(shape->dtype) ||
        entry->rank != shape->rank || entry->size != commit_tensor_size(shape) ||
        memcmp(entry->dims, shape->dims, shape->rank * sizeof(shape->dims[0])) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "%s has no '%s' as the job wants it", file->path,
                         shape->name);
    }
    bytes = malloc(entry->size);
    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", shape->name);
    }
    status = safetensors_read(file, error, bytes, entry, entry->size, 0);
    if (status == STATUS_OK) {
        status = machine->backend->write(machine, tensor, bytes, error);
    }
    free(bytes);
    return status;
}

/* Loading is the check: what the machine then holds is hashed. */
static enum status take_state(void *context, const char *path, struct error *error)
{
    const struct state_wish *wish = context;
    const struct tape *tape = wish->machine->tape;
    struct safetensors file;
    struct digest root;
    enum status status = safetensors_open(&file, error, path);

    if (status != STATUS_OK) {
        return status;
    }
    for (uint32_t i = 0; i < tape->state_count && status == STATUS_OK; i++) {
        status = load_tensor(wish->machine, &file, tape->states[i].before, error);
    }
    safetensors_close(&file);
    if (status == STATUS_OK) {
        status = machine_state_root(&root, wish->machine, error);
    }
    if (status == STATUS_OK && !digest_equal(&root, wish->root)) {
        status = error_set(error, STATUS_BAD_FORMAT, "%s is another state", path);
    }
    return status;
}

static enum status draw_first_state(struct checker *checker, struct machine *machine,
                                    struct error *error)
{
    const struct job *job = checker->job;
    struct digest root;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < job->tape->state_count && status == STATUS_OK; i++) {
        uint32_t tensor = job->tape->states[i].before;
        void *bytes = malloc(commit_tensor_size(&job->tape->tensors[tensor]));

        if (bytes == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the first state");
        }
        job_first_state(bytes, job, tensor);
        status = machine->backend->write(machine, tensor, bytes, error);
        free(bytes);
    }
    if (status == STATUS_OK) {
        status = machine_state_root(&root, machine, error);
    }
    if (status == STATUS_OK && !digest_equal(&root, &job->first_state_root)) {
        (void)error_set(error, STATUS_REFUSED,
                        "the job's draws do not give the first state that it commits to");
        return give_up(checker, STATUS_REFUSED);
    }
    return status;
}

/* Puts machine into the state that the segment at place begins with. */
static enum status begin_at(struct checker *checker, struct machine *machine, uint32_t place,
                            struct error *error)
{
    const struct tape *tape = checker->job->tape;
    struct digest root;
    struct state_wish about = {machine, &root};
    struct fetch_wish wish = {.kind = FETCH_CHECKPOINT,
                              .job = checker->request->job_id,
                              .number = first_step_at(checker, place),
                              .size_max = SAFETENSORS_HEADER_MAX + 8,
                              .check = take_state,
                              .context = &about};
    char path[FILE_PATH_MAX];
    enum status status = first_root(&root, checker, place, error);

    if (status != STATUS_OK) {
        return status;
    }
    if (wish.number == 0 && !checker->job->first_state_given) {
        return draw_first_state(checker, machine, error);
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        wish.size_max += commit_tensor_size(&tape->tensors[tape->states[i].before]);
    }
    if (wish.size_max > checker->request->file_max) {
        return error_set(error, STATUS_OVER_LIMIT, "a checkpoint is larger than a file may be");
    }
    wish.root = root;
    return fetch_get(path, checker->fetch, &wish, error);
}

/* The nearest checkpoint before or at the segment to check. */
static enum status find_start(struct checker *checker, struct error *error)
{
    uint32_t place = checker->request->segment_count;
    uint32_t tries = checker->request->reach + 1;
    enum status first = STATUS_OK;
    struct error why;

    error_init(&why);
    while (place-- > 0 && tries-- > 0) {
        enum status status = get_list(checker, place, &why);

        if (status == STATUS_OK) {
            status = begin_at(checker, checker->run.machine, place, &why);
        }
        if (status == STATUS_OK) {
            checker->start = place;
            return STATUS_OK;
        }
        if (first == STATUS_OK) {
            first = status;
            *error = why;
        }
        if ((status != STATUS_NOT_FOUND && status != STATUS_UNREACHABLE) ||
            checker->lists[place] == NULL) {
            *error = why;
            return status;
        }
    }
    return first;
}

/* ---- replaying ---------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static enum status open_run(struct checker *checker, struct run *run, bool other,
                            struct error *error)
{
    const struct check_request *request = checker->request;
    struct machine_options options;
    enum status status = check_machine(&options, request, other, error);

    if (status != STATUS_OK) {
        return status;
    }
    /* Data that was seen before is hashed again only for a second opinion and in a dispute: before
     * anybody is accused. */
    return (other || request->disputed ? run_open : run_open_compared)(
        run, checker->job, checker->paths, checker->path_count, &options, error);
}

/* What is wrong with the state after a step that has the committed root: nothing, usually. */
static enum check_flaw judge_finite(const struct checker *checker, uint32_t place, uint32_t step,
                                    bool finite)
{
    const struct check_request *request = checker->request;
    bool end = request->diverged && place == request->segment_count - 1 &&
               step == request->segments[place].steps - 1;

    if (finite) {
        return end ? CHECK_FLAW_NOT_DIVERGED : CHECK_FLAW_NONE;
    }
    return end ? CHECK_FLAW_NONE : CHECK_FLAW_WENT_ON;
}

/* The second opinion: from the same start to the end of the same step, elsewhere on the chip. */
static enum status replay_again(struct checker *checker, struct digest *root, bool *finite,
                                uint32_t place, uint32_t step, struct error *error)
{
    uint64_t left =
        first_step_at(checker, place) + step + 1 - first_step_at(checker, checker->start);
    struct run run;
    enum status status;

    run_close(&checker->run);
    status = open_run(checker, &run, true, error);
    if (status == STATUS_OK) {
        status = begin_at(checker, run.machine, checker->start, error);
    }
    for (; left > 0 && status == STATUS_OK; left--) {
        status = run.machine->backend->step(run.machine, NULL, error);
        checker->result->steps_run++;
    }
    if (status == STATUS_OK) {
        status = state_root_find(root, finite, run.machine, (int)checker->request->threads, error);
    }
    if (status == STATUS_OK && checker->request->disagree) {
        root->bytes[0] ^= 1;
    }
    run_close(&run);
    return status;
}

static enum status judge_flaw(struct checker *checker, enum check_flaw flaw,
                              const struct digest *ours, uint32_t place, uint32_t step,
                              struct error *error)
{
    struct check_result *result = checker->result;
    const struct digest *list = checker->lists[place];
    bool finite = true;
    enum check_flaw again;
    enum status status;

    result->index = index_at(checker, place);
    result->step = step;
    result->post_state = list[step];
    result->true_state = *ours;
    status = first_root(&result->before, checker, place, error);
    result->pre_state = step > 0 ? list[step - 1] : result->before;
    if (status == STATUS_OK) {
        status = replay_again(checker, &result->other_state, &finite, place, step, error);
    }
    if (status != STATUS_OK) {
        (void)error_wrap(error, "segment %u step %u looks wrong, but the second replay failed",
                         result->index, step);
        return status;
    }
    again = digest_equal(&result->other_state, &list[step])
                ? judge_finite(checker, place, step, finite)
                : CHECK_FLAW_STATE;
    if (!digest_equal(&result->other_state, ours) || again != flaw) {
        result->outcome = CHECK_FAULT;
        return error_set(error, STATUS_DEVICE,
                         "two replays of segment %u step %u on this machine disagree",
                         result->index, step);
    }
    result->outcome = CHECK_REFUTED;
    result->flaw = flaw;
    return STATUS_OK;
}

/* Where a plot of the job gets its points: the last step of what was checked. */
static enum status note_loss(struct checker *checker, uint32_t place, uint32_t step,
                             struct error *error)
{
    const struct check_request *request = checker->request;
    struct check_result *result = checker->result;
    enum status status = STATUS_OK;
    float loss;

    if (place != request->segment_count - 1 || step != request->segments[place].steps - 1) {
        return STATUS_OK;
    }
    status = run_loss(&result->loss_bits, &checker->run, error);
    memcpy(&loss, &result->loss_bits, sizeof(loss));
    result->loss_known = status == STATUS_OK && isfinite(loss);
    return status;
}

/* One step in trace mode, on a machine of its own; the fast one then goes on from its end. The
 * trace holds the roots of the next states, so they are not hashed once more. */
static enum status trace_step(struct checker *checker, struct digest *root, bool *finite,
                              struct error *error)
{
    struct run *run = &checker->run;
    struct machine_options traced = run->options;
    struct trace trace;
    bool diverged = true;
    enum status status;

    traced.trace = true;
    status = run_enter(run, &traced, error);
    if (status == STATUS_OK) {
        status = trace_run(&trace, run->machine, NULL, 0, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    checker->result->trace_root = trace.root;
    *root = trace.next_root;
    trace_release(&trace);
    status = note_loss(checker, checker->request->segment_count - 1, checker->request->traced_step,
                       error);
    if (status == STATUS_OK) {
        status = run->machine->backend->diverged(run->machine, &diverged, error);
    }
    *finite = !diverged;
    return status == STATUS_OK ? run_return(run, error) : status;
}

/* The second opinion about a trace that somebody else has attested otherwise. */
static enum status confirm_trace(struct checker *checker, struct error *error)
{
    const struct check_request *request = checker->request;
    struct check_result *result = checker->result;
    uint64_t left = first_step_at(checker, request->segment_count - 1) + request->traced_step -
                    first_step_at(checker, checker->start);
    struct machine_options traced;
    struct trace trace = {0};
    struct run run;
    enum status status;

    run_close(&checker->run);
    status = open_run(checker, &run, true, error);
    if (status == STATUS_OK) {
        status = begin_at(checker, run.machine, checker->start, error);
    }
    for (; left > 0 && status == STATUS_OK; left--) {
        status = run.machine->backend->step(run.machine, NULL, error);
        result->steps_run++;
    }
    if (status == STATUS_OK) {
        traced = run.options;
        traced.trace = true;
        status = run_reopen(&run, &traced, error);
    }
    if (status == STATUS_OK) {
        status = trace_run(&trace, run.machine, NULL, 0, error);
    }
    run_close(&run);
    if (status != STATUS_OK) {
        return status;
    }
    result->true_state = result->trace_root;
    result->other_state = trace.root;
    result->other_state.bytes[0] ^= (uint8_t)request->disagree;
    trace_release(&trace);
    result->confirmed = digest_equal(&result->true_state, &result->other_state);
    if (!result->confirmed) {
        result->outcome = CHECK_FAULT;
        return error_set(error, STATUS_DEVICE,
                         "two traces of segment %u step %u on this machine disagree",
                         request->index, request->traced_step);
    }
    return STATUS_OK;
}

/* STATUS_OK with outcome REFUTED ends the replay. */
static enum status replay_step(struct checker *checker, uint32_t place, uint32_t step,
                               struct error *error)
{
    const struct check_request *request = checker->request;
    bool traced =
        request->traced && place == request->segment_count - 1 && step == request->traced_step;
    enum check_flaw flaw = CHECK_FLAW_STATE;
    struct digest root;
    bool finite = true;
    enum status status;

    if (traced) {
        status = trace_step(checker, &root, &finite, error);
    } else {
        struct machine *machine = checker->run.machine;

        status = machine->backend->step(machine, NULL, error);
        if (status == STATUS_OK) {
            status = note_loss(checker, place, step, error);
        }
        if (status == STATUS_OK) {
            status = state_root_find(&root, &finite, machine, (int)request->threads, error);
        }
    }
    if (status != STATUS_OK) {
        return status;
    }
    checker->result->steps_run++;
    if (digest_equal(&root, &checker->lists[place][step])) {
        flaw = judge_finite(checker, place, step, finite);
    }
    return flaw == CHECK_FLAW_NONE ? STATUS_OK
                                   : judge_flaw(checker, flaw, &root, place, step, error);
}

/* The step of a dispute. Where the state before it is not the committed one, there is none. */
static enum status dispute(struct checker *checker, struct error *error)
{
    const struct check_request *request = checker->request;
    uint32_t place = request->segment_count - 1;
    uint32_t earlier = request->disputed_step > 0 ? place : place - 1; /* of place 0: wraps */
    struct duel duel = {.request = request,
                        .fetch = checker->fetch,
                        .run = &checker->run,
                        .list = checker->lists[place],
                        .list_count = request->segments[place].steps,
                        .is_last = request->diverged &&
                                   request->disputed_step + 1 == request->segments[place].steps,
                        .step = first_step_at(checker, place) + request->disputed_step};
    enum status status = first_root(&duel.pre_state, checker, place, error);

    if (status == STATUS_OK && duel.step > 0) {
        duel.earlier = checker->lists[earlier];
        duel.earlier_count = request->segments[earlier].steps;
        duel.pre_state = duel.earlier[request->disputed_step > 0 ? request->disputed_step - 1
                                                                 : duel.earlier_count - 1];
    }
    if (status == STATUS_OK) {
        status = duel_play(&duel, error);
    }
    checker->result->outcome = status == STATUS_OK ? CHECK_PROVEN : CHECK_CANNOT_TELL;
    return status;
}

static bool is_disputed(const struct checker *checker, uint32_t place, uint32_t step)
{
    const struct check_request *request = checker->request;

    return request->disputed && place == request->segment_count - 1 &&
           step == request->disputed_step;
}

static enum status replay(struct checker *checker, struct error *error)
{
    const struct check_request *request = checker->request;
    uint64_t begun = now_ns();
    enum status status = STATUS_OK;

    for (uint32_t place = checker->start; place < request->segment_count; place++) {
        for (uint32_t step = 0; step < request->segments[place].steps; step++) {
            status = is_disputed(checker, place, step) ? dispute(checker, error)
                                                       : replay_step(checker, place, step, error);
            checker->result->compute_ns = now_ns() - begun;
            if (status != STATUS_OK || checker->result->outcome != CHECK_CANNOT_TELL) {
                return status;
            }
        }
    }
    status = first_root(&checker->result->before, checker, request->segment_count - 1, error);
    if (status == STATUS_OK && request->traced && request->doubted &&
        !digest_equal(&request->doubted_root, &checker->result->trace_root)) {
        status = confirm_trace(checker, error);
    }
    if (status == STATUS_OK) {
        checker->result->index = request->index;
        checker->result->outcome = CHECK_PROVEN;
    }
    return status;
}

static enum status check_all(struct checker *checker, struct error *error)
{
    enum status status = fetch_open(&checker->fetch, checker->request, checker->result, error);

    if (status == STATUS_OK) {
        status = get_job(checker, error);
    }
    if (status == STATUS_OK) {
        status = get_list(checker, checker->request->segment_count - 1, error);
    }
    if (status == STATUS_OK) {
        status = get_all_data(checker, error);
    }
    if (status == STATUS_OK) {
        status = open_run(checker, &checker->run, false, error);
    }
    if (status == STATUS_OK) {
        status = find_start(checker, error);
    }
    return status == STATUS_OK ? replay(checker, error) : status;
}

void check_run(struct check_result *result, const struct check_request *request)
{
    struct checker *checker = calloc(1, sizeof(*checker));
    struct error error;
    enum status status;

    error_init(&error);
    memset(result, 0, sizeof(*result));
    if (checker == NULL) {
        (void)snprintf(result->reason, sizeof(result->reason), "no memory to check anything");
        return;
    }
    checker->request = request;
    checker->result = result;
    status = check_all(checker, &error);
    if (status != STATUS_OK) {
        if (result->outcome != CHECK_FAULT) {
            result->outcome = CHECK_CANNOT_TELL;
        }
        (void)snprintf(result->reason, sizeof(result->reason), "%s", error.text);
    }
    run_close(&checker->run);
    for (size_t i = 0; i < CHECK_REACH_MAX + 1; i++) {
        free(checker->lists[i]);
    }
    job_free(checker->job);
    fetch_close(checker->fetch);
    free(checker);
}
