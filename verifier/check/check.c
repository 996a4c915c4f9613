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
#include "verifier/check/check_resume.h"
#include "verifier/check/verdict.h"

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

/* What the ledger, or the journal, says of a step. */
static struct verdict_step what_is_said(const struct checker *checker, uint32_t place,
                                        uint32_t step)
{
    const struct check_request *request = checker->request;
    bool last = place == request->segment_count - 1 && step == request->segments[place].steps - 1;

    return (struct verdict_step){.committed = request->segments[place].states[step],
                                 .diverged = request->diverged && last,
                                 .open_end = request->open_end && last};
}

#define STEP_NAME_MAX 48

static void name_step(char name[STEP_NAME_MAX], const struct checker *checker, uint32_t place,
                      uint32_t step)
{
    if (checker->request->journal) {
        (void)snprintf(name, STEP_NAME_MAX, "step %" PRIu64,
                       check_first_step_at(checker, place) + step);
    } else {
        (void)snprintf(name, STEP_NAME_MAX, "segment %u step %u", check_index_at(checker, place),
                       step);
    }
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
static enum status replay_again(struct checker *checker, struct verdict_replay *second,
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
    TRY_OUT(state_root_find(&second->root, &second->finite, run.machine,
                            (int)checker->request->threads, error));
    if (checker->request->disagree) {
        second->root.bytes[0] ^= 1;
    }
out:
    run_close(&run);
    return status;
}

/* The first replay does not give what was said: a second one decides. */
static enum status ask_again(struct checker *checker, const struct verdict_replay *first,
                             uint32_t place, uint32_t step, struct error *error)
{
    struct check_result *result = checker->result;
    const struct verdict_step said = what_is_said(checker, place, step);
    struct verdict_replay second = {.finite = true};
    char name[STEP_NAME_MAX];
    enum check_flaw flaw;
    enum status status;

    name_step(name, checker, place, step);
    result->index = check_index_at(checker, place);
    result->step = step;
    result->post_state = said.committed;
    result->true_state = first->root;
    status = check_first_root(&result->before, checker, place, error);
    result->pre_state =
        step > 0 ? checker->request->segments[place].states[step - 1] : result->before;
    if (status == STATUS_OK) {
        status = replay_again(checker, &second, place, step, error);
        result->other_state = second.root;
    }
    if (status != STATUS_OK) {
        (void)error_wrap(error, "%s looks wrong, but the second replay failed", name);
        return status;
    }
    result->outcome = verdict_of_step(&flaw, &said, first, &second);
    if (result->outcome == CHECK_FAULT) {
        (void)error_set(error, STATUS_DEVICE,
                        "two replays of %s on this machine disagree with each other", name);
        error_advise(error, "this machine computes wrongly: test its memory, and check elsewhere");
        return STATUS_DEVICE;
    }
    result->flaw = result->outcome == CHECK_REFUTED ? flaw : CHECK_FLAW_NONE;
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

/* The figures of the last steps of a journal, as many as are wanted. */
static enum status note_figures(struct checker *checker, uint32_t place, uint32_t step,
                                struct error *error)
{
    const struct check_request *request = checker->request;
    struct check_result *result = checker->result;
    uint64_t left = request->segments[place].steps - step;
    struct check_figures *figures;
    bool evaluated = false;

    for (uint32_t i = place + 1; i < request->segment_count; i++) {
        left += request->segments[i].steps;
    }
    if (left > request->figure_count) {
        return STATUS_OK;
    }
    figures = &result->figures[result->figure_count];
    TRY(run_loss(&figures->loss_bits, &checker->run, error));
    TRY(run_held_out(&evaluated, &figures->held_out_bits, &figures->accuracy_bits, &checker->run,
                     check_first_step_at(checker, place) + step, error));
    figures->evaluated = evaluated;
    result->figure_count++;
    return STATUS_OK;
}

/* STATUS_OK with an outcome ends the replay. */
static enum status replay_step(struct checker *checker, uint32_t place, uint32_t step,
                               struct error *error)
{
    const struct check_request *request = checker->request;
    const struct verdict_step said = what_is_said(checker, place, step);
    struct machine *machine = checker->run.machine;
    struct verdict_replay first = {.finite = true};
    enum check_flaw flaw;

    TRY(run_step(checker, &checker->run, error));
    TRY(note_loss(checker, place, step, error));
    TRY(state_root_find(&first.root, &first.finite, machine, (int)request->threads, error));
    checker->result->steps_run++;
    if (verdict_of_step(&flaw, &said, &first, NULL) != CHECK_PROVEN) {
        return ask_again(checker, &first, place, step, error);
    }
    TRY(note_figures(checker, place, step, error));
    return place == request->segment_count - 1 && !hash32_is_zero(&request->seed)
               ? keep_leaves(checker, step, error)
               : STATUS_OK;
}

/* The step of a dispute. Where the state before it is not the committed one, there is none. */
static enum status dispute_step(struct checker *checker, bool stands, struct error *error)
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

static enum status replay_segments(struct checker *checker, struct error *error)
{
    const struct check_request *request = checker->request;
    uint64_t begun = steady_ns();

    for (uint32_t place = checker->resume.place; place < request->segment_count; place++) {
        uint32_t step = place == checker->resume.place ? checker->resume.step : 0;

        for (; step < request->segments[place].steps; step++) {
            enum status status = is_disputed(checker, place, step)
                                     ? dispute_step(checker, true, error)
                                     : replay_step(checker, place, step, error);

            checker->result->compute_ns = steady_ns() - begun;
            if (status != STATUS_OK || checker->result->outcome != CHECK_CANNOT_TELL) {
                if (status == STATUS_OK) {
                    check_resume_end(checker);
                }
                return status;
            }
            check_resume_note(checker, place, step);
        }
    }
    TRY(check_first_root(&checker->result->before, checker, request->segment_count - 1, error));
    checker->result->index = request->index;
    checker->result->outcome = CHECK_PROVEN;
    checker->result->has_leaves = !hash32_is_zero(&request->seed);
    check_keep(checker);
    check_resume_end(checker);
    return STATUS_OK;
}

/* ---- a trial ------------------------------------------------------------- */

#define TRIAL_NS     ((uint64_t)1000000000)
#define TRIAL_NS_MAX (4 * TRIAL_NS) /* with the first state, that is set each time */

/* Runs the first step of the job, and those after it whose data is there too, until they have run
 * for a second in all. The first time is not counted where there is another: it also warms up the
 * machine. */
static enum status run_trial(struct checker *checker, struct error *error)
{
    struct check_result *result = checker->result;
    const uint64_t start = steady_ns();
    uint64_t spent = 0;
    uint64_t behind = 0; /* steps behind the first state */

    while (spent < TRIAL_NS && (result->steps_run == 0 || steady_ns() < start + TRIAL_NS_MAX)) {
        const uint64_t begun = steady_ns();
        const enum status status = run_step(checker, &checker->run, error);

        if (status == STATUS_REFUSED && behind > 0) { /* its rows were not fetched */
            error_init(error);
        } else {
            TRY(status);
            behind++;
            result->steps_run += spent > 0;
            result->compute_ns += spent > 0 ? steady_ns() - begun : 0;
            spent += steady_ns() - begun;
        }
        if (status != STATUS_OK || behind == checker->request->segment_steps) {
            TRY(check_begin_at(checker, checker->run.machine, 0, error));
            behind = 0;
        }
    }
    if (result->steps_run == 0) { /* one took all of the second */
        result->steps_run = 1;
        result->compute_ns = spent;
    }
    result->outcome = CHECK_PROVEN;
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
    TRY(check_get_rows(checker, error));
    return check_resume_begin(checker, error);
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
    if (request->states) {
        TRY(check_states(checker, error));
        checker->result->outcome = CHECK_PROVEN;
        return STATUS_OK;
    }
    whole = checker->wants_whole = wants_whole(request);
    status = get_ready(checker, error);
    if (status != STATUS_OK && checker->wants_whole && !whole) { /* the rows are not to be had */
        error_init(error);
        run_close(&checker->run);
        status = get_ready(checker, error);
    }
    TRY(status);
    if (is_known(checker)) {
        return dispute_step(checker, false, error);
    }
    if (!request->disputed && checker->seal != NULL) { /* a dispute fetches replies */
        fetch_seal(checker->fetch);
        checker->seal();
    }
    return request->trial ? run_trial(checker, error) : replay_segments(checker, error);
}

/* Did somebody answer, be it that he has not got it? */
static bool has_answer(const struct check_result *result)
{
    for (uint32_t i = 0; i < result->mirror_count; i++) {
        const struct mirror_note *note = &result->mirrors[i];

        if (note->good > 0 || note->bad > 0 ||
            (note->trouble[0] != '\0' && note->silent == 0 && !note->refused)) {
            return true;
        }
    }
    return false;
}

void check_run(struct check_result *result, const struct check_request *request,
               const struct check_visitor *visitor, void (*seal)(void))
{
    struct checker *checker = calloc(1, sizeof(*checker));
    struct error error;
    uint64_t begun;
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
    begun = steady_ns();
    status = check_all(checker, &error);
    result->line_works = has_answer(result);
    result->fetch_ns = request->states ? steady_ns() - begun : 0;
    if (status != STATUS_OK) {
        if (result->outcome != CHECK_FAULT) {
            result->outcome = CHECK_CANNOT_TELL;
            result->unavailable = status == STATUS_NOT_FOUND || status == STATUS_UNREACHABLE;
        }
        (void)snprintf(result->reason, sizeof(result->reason), "%s", error.text);
        (void)snprintf(result->advice, sizeof(result->advice), "%s", error.advice);
    }
    run_close(&checker->run);
    data_paths_close(&checker->data);
    data_rows_close(&checker->rows);
    job_free(checker->job);
    fetch_close(checker->fetch);
    free(checker);
}
