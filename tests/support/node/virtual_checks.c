/* virtual_checks.c - see virtual_checks.h. */
#include "tests/support/node/virtual_checks.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/game/made_states.h"
#include "tests/support/node/virtual_chain.h"
#include "tests/support/test.h"
#include "verifier/dispute/dispute.h"
#include "verifier/dispute/dispute_move.h"

enum {
    QUERIES_MAX = 4,
    MOVE_MAX = 65536,
    TRIAL_NS = 1000000, /* that a step takes */
    NS_PER_S = 1000000000,
};

bool virtual_is_false(const struct digest *pre_state, const struct digest *post_state, bool ends)
{
    uint32_t state = made_state_of(post_state);

    return state != made_state_of(pre_state) + 1 || ends != (state == VIRTUAL_NOT_FINITE);
}

/* The state that a job begins with is in its id. */
static uint32_t first_of(const struct digest *job_id)
{
    static struct digest ids[VIRTUAL_NOT_FINITE];
    static bool known;
    uint8_t header[GAME_JOB_HEADER_SIZE];
    uint32_t first = 0;

    for (uint32_t i = 0; i < VIRTUAL_NOT_FINITE && !known; i++) {
        made_job(header, &ids[i], i);
    }
    known = true;
    while (first < VIRTUAL_NOT_FINITE && !digest_equal(&ids[first], job_id)) {
        first++;
    }
    assert_true(first < VIRTUAL_NOT_FINITE);
    return first;
}

/* ---- a check ---------------------------------------------------------------------- */

static void cannot_tell(struct check_result *result, const char *why)
{
    result->outcome = CHECK_CANNOT_TELL;
    (void)snprintf(result->reason, sizeof(result->reason), "%s", why);
}

/* The committed state that the segment at a place begins with; false: the request has it not. */
static bool find_before(struct digest *before, const struct check_request *request, uint32_t place)
{
    const struct check_segment *last = &request->segments[place == 0 ? 0 : place - 1];

    if (request->index == request->segment_count - 1 - place) {
        *before = made_state_root(first_of(&request->job_id));
        return true;
    }
    if (place == 0) {
        return false;
    }
    *before = last->states[last->steps - 1];
    return true;
}

/* As far back as the request reaches: a random way, as checkpoints are to be had or are not. */
static uint32_t find_start(struct virtual_checks *checks, const struct check_request *request)
{
    uint32_t start = request->segment_count - 1;
    struct digest before;

    while (start > 0 && request->segment_count - 1 - start < request->reach &&
           find_before(&before, request, start - 1) && test_random_below(&checks->random, 2) == 0) {
        start--;
    }
    return start;
}

static void refute(struct check_result *result, const struct check_request *request, uint32_t place,
                   uint32_t step, const struct digest *pre_state)
{
    const struct check_segment *segment = &request->segments[place];

    result->outcome = CHECK_REFUTED;
    result->index = request->index - (request->segment_count - 1 - place);
    result->step = step;
    (void)find_before(&result->before, request, place);
    result->pre_state = *pre_state;
    result->post_state = segment->states[step];
    result->true_state = made_state_root(made_state_of(pre_state) + 1);
    result->other_state = result->true_state;
    result->flaw = !digest_equal(&result->post_state, &result->true_state) ? CHECK_FLAW_STATE
                   : made_state_of(&result->post_state) == VIRTUAL_NOT_FINITE
                       ? CHECK_FLAW_WENT_ON
                       : CHECK_FLAW_NOT_DIVERGED;
}

static void draw_leaves(struct check_result *result, const struct check_request *request)
{
    const struct check_segment *segment = &request->segments[request->segment_count - 1];
    const struct game_hashes states = {segment->states, segment->steps};

    for (uint32_t i = 0; i < GAME_LEAVES; i++) {
        made_right(&result->rights[i], result->leaves[i], &request->seed, &states, i);
        if (request->proven == i + 1) {
            struct buffer bytes;

            buffer_init(&bytes, sizeof(result->proof));
            made_leaf_proof(&bytes, &request->seed, &states, i);
            memcpy(result->proof, bytes.data, bytes.size);
            result->proof_size = (uint32_t)bytes.size;
            buffer_release(&bytes);
        }
    }
    result->has_leaves = true;
}

/* A check that got the job tells its header. */
static void tell_header(struct check_result *result, const struct check_request *request)
{
    struct digest id;

    made_job(result->header, &id, first_of(&request->job_id));
    result->has_header = true;
}

static void check(struct virtual_checks *checks, struct check_result *result,
                  const struct check_request *request)
{
    uint32_t start = find_start(checks, request);
    struct digest state;

    tell_header(result, request);
    if (!find_before(&state, request, start)) {
        cannot_tell(result, "the state before is on no mirror");
        return;
    }
    for (uint32_t place = start; place < request->segment_count; place++) {
        const struct check_segment *segment = &request->segments[place];

        for (uint32_t step = 0; step < segment->steps; step++) {
            bool ends = request->diverged && place + 1 == request->segment_count &&
                        step + 1 == segment->steps;

            if (virtual_is_false(&state, &segment->states[step], ends)) {
                refute(result, request, place, step, &state);
                return;
            }
            state = segment->states[step];
        }
    }
    result->outcome = CHECK_PROVEN;
    result->index = request->index;
    (void)find_before(&result->before, request, request->segment_count - 1);
    if (!hash32_is_zero(&request->seed)) {
        draw_leaves(result, request);
    }
}

/* ---- a dispute --------------------------------------------------------------------- */

static uint8_t read_number(const char *folder, const char *name, uint8_t missing)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];
    struct error error;
    uint8_t number = missing;

    error_init(&error);
    if (file_path_join(path, sizeof(path), &error, folder, name) == STATUS_OK &&
        file_read(&bytes, &error, path, 64) == STATUS_OK && bytes.size > 1) {
        number = bytes.data[1];
    }
    file_bytes_release(&bytes);
    return number;
}

static void write_small(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[FILE_PATH_MAX];
    struct error error;

    error_init(&error);
    if (file_make_folder(folder, &error, 0700) != STATUS_OK ||
        file_path_join(path, sizeof(path), &error, folder, name) != STATUS_OK ||
        file_write(path, &error, bytes, size, 0600) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
}

static void write_move(const struct dispute *dispute, enum dispute_kind kind, const void *payload,
                       size_t payload_size)
{
    const struct dispute_move move = {
        .kind = kind, .payload = payload, .payload_size = payload_size};
    char name[DISPUTE_NAME_MAX];
    struct buffer bytes;

    dispute_move_name(name, dispute->turn, dispute->attempt);
    buffer_init(&bytes, MOVE_MAX);
    dispute_move_write(&bytes, &move);
    write_small(dispute->folder, name, bytes.data, bytes.size);
    buffer_release(&bytes);
}

/* How many queries it takes follows from what the accused stands by; replies that the ledger has
 * need no query, and some are found at mirrors. */
static void find_lie(struct virtual_checks *checks, const struct dispute *dispute)
{
    struct hash32 luck = keccak256(dispute->trace_root.bytes, DIGEST_SIZE);
    uint8_t queries = luck.bytes[0] % QUERIES_MAX;
    uint8_t known = read_number(dispute->folder, DISPUTE_FILE_WALK, 0);
    struct virtual_evidence evidence = {0};

    while (known < queries && (read_number(dispute->folder, DISPUTE_FILE_REPLY, 255) == known ||
                               test_random_below(&checks->random, 3) == 0)) {
        known++;
    }
    evidence.kind = known < queries ? 'q' : 'c';
    evidence.number = known;
    write_small(dispute->folder, DISPUTE_FILE_WALK, (uint8_t[2]){0, known}, 2);
    write_move(dispute, evidence.kind == 'q' ? DISPUTE_QUERY : DISPUTE_EVIDENCE, &evidence,
               sizeof(evidence));
}

/* A replay that meets an earlier lie does not come to the step. */
static void find_move(struct virtual_checks *checks, struct check_result *result,
                      const struct check_request *request)
{
    struct dispute dispute;
    struct error error;

    check(checks, result, request);
    if (result->outcome == CHECK_CANNOT_TELL ||
        (result->outcome == CHECK_REFUTED &&
         (result->index < request->index || result->step < request->disputed_step))) {
        return;
    }
    error_init(&error);
    if (dispute_load(&dispute, request->folder, &error) != STATUS_OK) {
        cannot_tell(result, error.text);
        return;
    }
    if (result->outcome == CHECK_PROVEN || result->step > request->disputed_step) {
        write_move(&dispute, DISPUTE_NO_FAULT, NULL, 0);
    } else {
        find_lie(checks, &dispute);
    }
    result->outcome = CHECK_PROVEN;
    result->index = request->index;
}

/* ---- the port ------------------------------------------------------------------------ */

static enum status die(struct error *error)
{
    return error_set(error, STATUS_IO, "the process is dead");
}

static enum status start(void *context, uint64_t number, const struct check_request *request,
                         struct error *error)
{
    struct virtual_checks *checks = context;
    enum fate_says says = fate_ask(checks->fate);
    uint64_t takes_ms = 0;

    if (says == FATE_DEAD) {
        return die(error);
    }
    for (uint32_t i = 0; i < VIRTUAL_RUNNING_MAX; i++) {
        struct virtual_running *place = &checks->running[i];

        if (place->number == 0) {
            place->request = malloc(sizeof(*request));
            assert(place->request != NULL);
            *place->request = *request;
            place->number = number;
            place->answer = checks->choose(checks->context, &takes_ms, request);
            place->ready_ms = checks->now_ms + takes_ms;
            return says == FATE_LAST ? die(error) : STATUS_OK;
        }
    }
    return error_set(error, STATUS_IO, "cannot start a child");
}

/* States that are fetched are there, and a trial runs one step. */
static void do_other_work(const struct virtual_checks *checks, struct check_result *result,
                          const struct check_request *request)
{
    tell_header(result, request);
    result->outcome = CHECK_PROVEN;
    result->steps_run = request->trial;
    result->compute_ns = checks->step_ms == 0 ? TRIAL_NS : checks->step_ms * 1000000;
}

/* A child counts what comes, and how long that takes. */
static void weigh_states(const struct virtual_checks *checks, struct check_result *result,
                         const struct virtual_running *place)
{
    result->wanted_bytes = checks->state_bytes;
    if (place->answer == ANSWER_TRUTH && checks->line_bytes_s > 0 && result->mirror_count > 0) {
        result->mirrors[0].bytes = checks->state_bytes;
        result->fetch_ns = checks->state_bytes * NS_PER_S / checks->line_bytes_s;
    }
}

static void answer(struct virtual_checks *checks, const struct virtual_running *place,
                   struct check_result *result)
{
    bool lies = place->answer == ANSWER_LIES;

    memset(result, 0, sizeof(*result));
    result->mirror_count = place->request->mirror_count;
    for (uint32_t i = 0; i < result->mirror_count; i++) {
        result->mirrors[i].good = place->answer == ANSWER_TRUTH;
        result->mirrors[i].bad = lies;
        result->mirrors[i].silent = place->answer == ANSWER_SILENCE;
    }
    if (place->request->states) {
        weigh_states(checks, result, place);
    }
    switch (place->answer) {
    case ANSWER_TRUTH:
        if (place->request->states || place->request->trial) {
            do_other_work(checks, result, place->request);
        } else if (place->request->disputed) {
            find_move(checks, result, place->request);
        } else {
            check(checks, result, place->request);
        }
        break;
    case ANSWER_NOTHING:
        cannot_tell(result, "the check ended without an answer");
        break;
    case ANSWER_SILENCE:
    case ANSWER_LIES:
        cannot_tell(result, "no mirror gives the data");
        result->unavailable = true;
        result->line_works = lies;
        break;
    }
}

static void release(struct virtual_running *place)
{
    free(place->request);
    memset(place, 0, sizeof(*place));
}

static enum status take(void *context, uint64_t *number, struct check_result *result,
                        struct error *error)
{
    struct virtual_checks *checks = context;
    enum fate_says says = fate_ask(checks->fate);

    if (says == FATE_DEAD) {
        return die(error);
    }
    for (uint32_t i = 0; i < VIRTUAL_RUNNING_MAX; i++) {
        struct virtual_running *place = &checks->running[i];

        if (place->number != 0 && place->ready_ms <= checks->now_ms) {
            answer(checks, place, result);
            *number = place->number;
            release(place);
            return says == FATE_LAST ? die(error) : STATUS_OK;
        }
    }
    return says == FATE_LAST ? die(error) : STATUS_NOT_FOUND;
}

struct check_port virtual_checks_port(struct virtual_checks *checks)
{
    return (struct check_port){.context = checks, .start = start, .take = take};
}

void virtual_checks_die(struct virtual_checks *checks)
{
    for (uint32_t i = 0; i < VIRTUAL_RUNNING_MAX; i++) {
        release(&checks->running[i]);
    }
}

bool virtual_checks_are_idle(const struct virtual_checks *checks)
{
    for (uint32_t i = 0; i < VIRTUAL_RUNNING_MAX; i++) {
        if (checks->running[i].number != 0) {
            return false;
        }
    }
    return true;
}
