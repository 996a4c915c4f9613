/* check.c - see check.h. */
#include "verifier/check/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/steady.h"
#include "proofs/commit/state_root.h"
#include "verifier/check/check_inputs.h"
#include "verifier/check/check_keep.h"

/* ---- replaying ---------------------------------------------------------- */

/* other: on the machine of the second opinion. accusing: known data is hashed again. */
static enum status open_run(struct checker *checker, struct run *run, bool other, bool accusing,
                            struct error *error)
{
    const struct check_request *request = checker->request;
    const char *const *paths = (const char *const *)checker->data.of;
    const uint32_t count = checker->data.count;
    struct machine_options options;

    TRY(check_machine(&options, request, other, error));
    /* Known data is hashed again before anybody is accused: in a second replay and a dispute. */
    TRY(run_open_compared(run, checker->job, paths, count,
                          accusing || request->disputed ? checker->rows.compared : NULL, &options,
                          error));
    return data_rows_bind(&checker->rows, run, error);
}

static enum status run_step(struct checker *checker, struct run *run, struct error *error)
{
    TRY(data_rows_check_step(&checker->rows, run, error));
    return run->machine->backend->step(run->machine, NULL, error);
}

/* A state that has the committed root can still be wrong: finite or not, against the journal. */
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

static enum status run_steps(struct checker *checker, struct run *run, uint64_t count,
                             struct error *error)
{
    for (; count > 0; count--) {
        TRY(run_step(checker, run, error));
        checker->result->steps_run++;
    }
    return STATUS_OK;
}

/*
 * Puts the other machine before the step, after so many from the start of the replay. What is
 * claimed is one step, from the state that was committed before it. So the first machine goes up to
 * that state once more, and the other one takes it over, by its root: where the other one is far
 * slower, it holds up the node for one step and not for a segment. STATUS_DEVICE: what arrived is
 * another state.
 */
static enum status take_over(struct checker *checker, struct run *run, uint64_t before,
                             struct error *error)
{
    struct machine_options other;
    struct digest root;

    TRY(check_machine(&other, checker->request, true, error));
    TRY(open_run(checker, run, false, true, error));
    TRY(check_begin_at(checker, run->machine, checker->start, error));
    TRY(run_steps(checker, run, before, error));
    TRY(run_reopen(run, &other, error));
    TRY(state_root_of(&root, run->machine, error));
    return digest_equal(&root, &checker->result->pre_state)
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "the other machine took over another state");
}

/* Puts the other machine there by itself, from the same start. */
static enum status go_alone(struct checker *checker, struct run *run, uint64_t before,
                            struct error *error)
{
    TRY(open_run(checker, run, true, true, error));
    TRY(check_begin_at(checker, run->machine, checker->start, error));
    return run_steps(checker, run, before, error);
}

/* Runs the step with another instruction set, from the committed state before it. */
static enum status replay_again(struct checker *checker, struct digest *root, bool *finite,
                                uint32_t place, uint32_t step, struct error *error)
{
    const uint64_t before =
        check_first_step_at(checker, place) + step - check_first_step_at(checker, checker->start);
    struct run run = {0};
    struct error passed_over;
    enum status status = STATUS_NOT_FOUND;

    error_init(&passed_over);
    run_close(&checker->run);
    if (before > 0) {
        status = take_over(checker, &run, before, &passed_over);
    }
    if (status != STATUS_OK) { /* no memory for the states beside a machine, or a broken one */
        run_close(&run);
        run = (struct run){0};
        TRY_OUT(go_alone(checker, &run, before, error));
    }
    TRY_OUT(run_steps(checker, &run, 1, error));
    TRY_OUT(state_root_find(root, finite, run.machine, (int)checker->request->threads, error));
    if (checker->request->disagree) {
        root->bytes[0] ^= 1;
    }
out:
    run_close(&run);
    return status;
}

static enum status judge_flaw(struct checker *checker, enum check_flaw flaw,
                              const struct digest *ours, uint32_t place, uint32_t step,
                              struct error *error)
{
    struct check_result *result = checker->result;
    const struct digest *list = checker->request->segments[place].states;
    bool finite = true;
    enum check_flaw again;
    enum status status;

    result->index = check_index_at(checker, place);
    result->step = step;
    result->post_state = list[step];
    result->true_state = *ours;
    status = check_first_root(&result->before, checker, place, error);
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

/* The loss after the last step that was checked: a point of the status page's plot. */
static enum status note_loss(struct checker *checker, uint32_t place, uint32_t step,
                             struct error *error)
{
    const struct check_request *request = checker->request;
    struct check_result *result = checker->result;
    float loss;

    if (place != request->segment_count - 1 || step != request->segments[place].steps - 1) {
        return STATUS_OK;
    }
    TRY(run_loss(&result->loss_bits, &checker->run, error));
    memcpy(&loss, &result->loss_bits, sizeof(loss));
    result->loss_known = isfinite(loss);
    return STATUS_OK;
}

static enum status prove_leaf(struct checker *checker, const struct leaf_proof_place *place,
                              struct error *error)
{
    const struct check_request *request = checker->request;
    const struct check_segment *segment = &request->segments[request->segment_count - 1];
    struct check_result *result = checker->result;
    struct buffer bytes;
    enum status status;

    buffer_init(&bytes, LEAF_PROOF_SIZE_MAX);
    status = leaf_proof_write(&bytes, place, segment->states, segment->steps, checker->run.machine,
                              error);
    if (status == STATUS_OK) {
        memcpy(result->proof, bytes.data, bytes.size);
        result->proof_size = (uint32_t)bytes.size;
    }
    buffer_release(&bytes);
    return status;
}

/* Keeps the leaves of this state that the seed draws. */
static enum status keep_leaves(struct checker *checker, uint32_t step, struct error *error)
{
    const struct check_request *request = checker->request;
    struct check_result *result = checker->result;
    const struct check_segment *segment = &request->segments[request->segment_count - 1];
    struct machine *machine = checker->run.machine;
    const struct tape *tape = machine->tape;

    for (uint32_t i = 0; i < GAME_LEAVES; i++) {
        struct leaf_proof_place place = {.step =
                                             game_right_step(&request->seed, i, segment->steps)};
        const struct tensor *tensor;

        if (place.step != step) {
            continue;
        }
        place.tensor = game_right_tensor(&request->seed, i, tape->state_count);
        tensor = &tape->tensors[tape->states[place.tensor].before];
        place.leaf = game_right_leaf(&request->seed, i, leaf_proof_leaves(tensor));
        TRY(leaf_proof_leaf(result->leaves[i], &place, machine, error));
        result->rights[i] =
            (struct game_right){.step = step, .tensor = place.tensor, .leaf = place.leaf};
        if (request->proven == i + 1) {
            TRY(prove_leaf(checker, &place, error));
        }
    }
    return STATUS_OK;
}

/* STATUS_OK with outcome REFUTED ends the replay. */
static enum status replay_step(struct checker *checker, uint32_t place, uint32_t step,
                               struct error *error)
{
    const struct check_request *request = checker->request;
    struct machine *machine = checker->run.machine;
    enum check_flaw flaw = CHECK_FLAW_STATE;
    struct digest root;
    bool finite = true;

    TRY(run_step(checker, &checker->run, error));
    TRY(note_loss(checker, place, step, error));
    TRY(state_root_find(&root, &finite, machine, (int)request->threads, error));
    checker->result->steps_run++;
    if (digest_equal(&root, &request->segments[place].states[step])) {
        flaw = judge_finite(checker, place, step, finite);
    }
    if (flaw != CHECK_FLAW_NONE) {
        return judge_flaw(checker, flaw, &root, place, step, error);
    }
    return place == request->segment_count - 1 && !hash32_is_zero(&request->seed)
               ? keep_leaves(checker, step, error)
               : STATUS_OK;
}

/* The step of a dispute. Where the state before it is not the committed one, there is none. */
static enum status dispute(struct checker *checker, bool stands, struct error *error)
{
    const struct check_request *request = checker->request;
    uint32_t place = request->segment_count - 1;
    const struct check_segment *segment = &request->segments[place];
    uint32_t step = request->disputed_step;
    struct check_step at = {.request = request,
                            .fetch = checker->fetch,
                            .run = &checker->run,
                            .stands = stands,
                            .is_last = request->diverged && step + 1 == segment->steps,
                            .step = check_first_step_at(checker, place) + step,
                            .post_state = segment->states[step]};
    enum status status = STATUS_OK;

    if (step > 0) {
        at.pre_state = segment->states[step - 1];
    } else {
        status = check_first_root(&at.pre_state, checker, place, error);
    }
    if (status == STATUS_OK) {
        status = checker->visitor->visit(&at, error);
    }
    checker->result->steps_run += at.runs;
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
    uint64_t begun = steady_ns();

    for (uint32_t place = checker->start; place < request->segment_count; place++) {
        for (uint32_t step = 0; step < request->segments[place].steps; step++) {
            enum status status = is_disputed(checker, place, step)
                                     ? dispute(checker, true, error)
                                     : replay_step(checker, place, step, error);

            checker->result->compute_ns = steady_ns() - begun;
            if (status != STATUS_OK || checker->result->outcome != CHECK_CANNOT_TELL) {
                return status;
            }
        }
    }
    TRY(check_first_root(&checker->result->before, checker, request->segment_count - 1, error));
    checker->result->index = request->index;
    checker->result->outcome = CHECK_PROVEN;
    checker->result->has_leaves = !hash32_is_zero(&request->seed);
    check_keep(checker);
    return STATUS_OK;
}

/* Is the result of the step known? Then no state is needed. */
static bool is_known(const struct checker *checker)
{
    return checker->request->disputed && checker->visitor->knows(checker->request);
}

/* A GPU takes its data whole; evidence of a dispute has paths through the whole tree. */
static bool wants_whole(const struct check_request *request)
{
    struct machine_options options;
    struct error ignored;

    error_init(&ignored);
    return request->disputed || check_machine(&options, request, false, &ignored) != STATUS_OK ||
           (options.backend != NULL && options.backend != &backend_cpu);
}

static enum status get_ready(struct checker *checker, struct error *error)
{
    TRY(check_get_data(checker, error));
    TRY(open_run(checker, &checker->run, false, false, error));
    if (is_known(checker)) {
        return STATUS_OK;
    }
    TRY(check_find_start(checker, error));
    return check_get_rows(checker, error);
}

static enum status check_all(struct checker *checker, struct error *error)
{
    const struct check_request *request = checker->request;
    enum status status;
    bool whole;

    if (request->disputed &&
        (checker->visitor == NULL ||
         request->disputed_step >= request->segments[request->segment_count - 1].steps)) {
        return error_set(error, STATUS_USAGE, "no such step can be disputed here");
    }
    TRY(fetch_open(&checker->fetch, request, checker->result, error));
    TRY(check_get_job(checker, error));
    whole = checker->wants_whole = wants_whole(request);
    status = get_ready(checker, error);
    if (status != STATUS_OK && checker->wants_whole && !whole) { /* the rows are not to be had */
        error_init(error);
        run_close(&checker->run);
        status = get_ready(checker, error);
    }
    TRY(status);
    if (is_known(checker)) {
        return dispute(checker, false, error);
    }
    if (!request->disputed && checker->seal != NULL) { /* a dispute fetches replies */
        fetch_seal(checker->fetch);
        checker->seal();
    }
    return replay(checker, error);
}

void check_run(struct check_result *result, const struct check_request *request,
               const struct check_visitor *visitor, void (*seal)(void))
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
    checker->visitor = visitor;
    checker->seal = seal;
    checker->request = request;
    checker->result = result;
    status = check_all(checker, &error);
    if (status != STATUS_OK) {
        if (result->outcome != CHECK_FAULT) {
            result->outcome = CHECK_CANNOT_TELL;
            result->unavailable = status == STATUS_NOT_FOUND || status == STATUS_UNREACHABLE;
        }
        (void)snprintf(result->reason, sizeof(result->reason), "%s", error.text);
    }
    run_close(&checker->run);
    data_paths_close(&checker->data);
    data_rows_close(&checker->rows);
    job_free(checker->job);
    fetch_close(checker->fetch);
    free(checker);
}
