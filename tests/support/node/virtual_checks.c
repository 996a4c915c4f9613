/* virtual_checks.c - see virtual_checks.h. */
#include "tests/support/node/virtual_checks.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/node/virtual_chain.h"
#include "tests/support/test.h"
#include "verifier/dispute/dispute.h"
#include "verifier/dispute/dispute_move.h"

/* ---- the truth ------------------------------------------------------------------- */

static struct digest hash_of(const char *words, const struct digest *left,
                             const struct digest *right, uint64_t number)
{
    struct keccak keccak;
    struct hash32 hash;
    struct digest digest;

    keccak_init(&keccak);
    keccak_add(&keccak, words, strlen(words));
    keccak_add(&keccak, left->bytes, DIGEST_SIZE);
    keccak_add(&keccak, right->bytes, DIGEST_SIZE);
    keccak_add(&keccak, &number, sizeof(number));
    hash = keccak_end(&keccak);
    memcpy(digest.bytes, hash.bytes, DIGEST_SIZE);
    return digest;
}

struct digest virtual_next_state(const struct digest *job_id, const struct digest *state)
{
    return hash_of("next", job_id, state, 0);
}

struct digest virtual_trace_root(const struct digest *job_id, const struct digest *state)
{
    return hash_of("trace", job_id, state, 0);
}

void virtual_checks_add_job(struct virtual_checks *checks, const struct digest *job_id)
{
    assert(checks->job_count < 16);
    checks->ids[checks->job_count] = *job_id;
    checks->first[checks->job_count++] = hash_of("first", job_id, job_id, 0);
}

const struct digest *virtual_checks_first(const struct virtual_checks *checks,
                                          const struct digest *job_id)
{
    for (uint32_t i = 0; i < checks->job_count; i++) {
        if (digest_equal(&checks->ids[i], job_id)) {
            return &checks->first[i];
        }
    }
    return NULL;
}

const struct virtual_segment *virtual_checks_find(const struct virtual_checks *checks,
                                                  const struct digest *job_id,
                                                  const struct digest *root)
{
    for (uint32_t i = 0; i < checks->segment_count; i++) {
        if (digest_equal(&checks->segments[i].root, root) &&
            digest_equal(&checks->segments[i].job_id, job_id)) {
            return &checks->segments[i];
        }
    }
    return NULL;
}

const struct digest *virtual_state_before(const struct virtual_segment *segment, uint32_t step)
{
    return step == 0 ? &segment->before : &segment->states[step - 1];
}

const struct virtual_segment *virtual_checks_commit(struct virtual_checks *checks,
                                                    const struct digest *job_id, uint32_t index,
                                                    const struct digest *before, uint32_t steps,
                                                    uint32_t lie, uint64_t salt)
{
    struct virtual_segment made = {.job_id = *job_id, .index = index, .steps = steps, .lie = lie};
    struct digest state = *before;
    const struct virtual_segment *known;

    made.before = *before;
    made.root = hash_of("segment", job_id, before, index);
    for (uint32_t i = 0; i < steps; i++) {
        state =
            i == lie ? hash_of("lie", job_id, &state, salt) : virtual_next_state(job_id, &state);
        made.states[i] = state;
        made.root = hash_of("segment", &made.root, &state, i);
    }
    known = virtual_checks_find(checks, job_id, &made.root);
    if (known != NULL) {
        return known;
    }
    assert(checks->segment_count < VIRTUAL_SEGMENTS_MAX);
    checks->segments[checks->segment_count] = made;
    return &checks->segments[checks->segment_count++];
}

/* ---- a check ---------------------------------------------------------------------- */

static void cannot_tell(struct check_result *result, bool permanent, const char *why)
{
    result->outcome = CHECK_CANNOT_TELL;
    result->permanent = permanent;
    (void)snprintf(result->reason, sizeof(result->reason), "%s", why);
}

/* The segment at a place of the request; places count as in check.c. */
static const struct virtual_segment *segment_at(const struct virtual_checks *checks,
                                                const struct check_request *request, uint32_t place)
{
    return virtual_checks_find(checks, &request->job_id, &request->segments[place].root);
}

/* The place at which the replay begins: the nearest checkpoint that is to be had. */
static bool find_start(const struct virtual_checks *checks, const struct check_request *request,
                       uint32_t *start)
{
    for (uint32_t back = 0; back <= request->reach && back < request->segment_count; back++) {
        uint32_t place = request->segment_count - 1 - back;
        uint32_t index = request->index - back;

        /* The checkpoint's root is in the segment before it. */
        if (index > 0 && place == 0) {
            return false;
        }
        if (index == 0 || !checks->withheld(checks->context, &request->job_id, index)) {
            *start = place;
            return true;
        }
    }
    return false;
}

static void refute(struct check_result *result, const struct virtual_segment *segment)
{
    result->outcome = CHECK_REFUTED;
    result->flaw = CHECK_FLAW_STATE;
    result->index = segment->index;
    result->step = segment->lie;
    result->before = segment->before;
    result->pre_state = *virtual_state_before(segment, segment->lie);
    result->post_state = segment->states[segment->lie];
    result->true_state = virtual_next_state(&segment->job_id, &result->pre_state);
    result->other_state = result->true_state;
}

static void check(const struct virtual_checks *checks, struct check_result *result,
                  const struct check_request *request)
{
    const struct virtual_segment *segment = NULL;
    uint32_t start = 0;

    assert(request->segment_count > 0);
    if (!find_start(checks, request, &start)) {
        cannot_tell(result, false, "no mirror gives the checkpoint");
        return;
    }
    for (uint32_t place = start; place < request->segment_count; place++) {
        segment = segment_at(checks, request, place);
        assert(segment != NULL); /* what stands on the chain was made here */
        if (segment->lie != VIRTUAL_TRUE) {
            refute(result, segment);
            return;
        }
    }
    assert(segment != NULL);
    result->outcome = CHECK_PROVEN;
    result->index = request->index;
    result->before = segment->before;
    if (request->traced) {
        assert(request->traced_step < segment->steps);
        result->trace_root = virtual_trace_root(
            &request->job_id, virtual_state_before(segment, request->traced_step));
        result->confirmed =
            request->audited && !digest_equal(&request->audited_root, &result->trace_root);
    }
}

/* Answers that no honest child gives; each must be seen to be one. */
static void talk_nonsense(struct virtual_checks *checks, struct check_result *result,
                          const struct check_request *request)
{
    check(checks, result, request);
    result->outcome = CHECK_REFUTED;
    switch (test_random_below(&checks->random, 3)) {
    case 0: /* a segment that was not asked about */
        result->index = request->index + 1 + (uint32_t)test_random_below(&checks->random, 3);
        break;
    case 1: /* a step that no segment has */
        result->index = request->index;
        result->step = request->segments[request->segment_count - 1].steps +
                       (uint32_t)test_random_below(&checks->random, 5);
        break;
    default: /* one before the first that was named */
        result->index = request->index - request->segment_count;
        break;
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

/* False: the disk is full. */
static bool write_small(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[FILE_PATH_MAX];
    struct error error;

    error_init(&error);
    return file_make_folder(folder, &error, 0700) == STATUS_OK &&
           file_path_join(path, sizeof(path), &error, folder, name) == STATUS_OK &&
           file_write(path, &error, bytes, size, 0600) == STATUS_OK;
}

static bool write_move(const struct dispute *dispute, const struct virtual_segment *segment,
                       enum dispute_kind kind, const void *payload, size_t payload_size)
{
    const struct dispute_move move = {
        .kind = kind,
        .pre_state = *virtual_state_before(segment, dispute->step),
        .post_state = segment->states[dispute->step],
        .payload = payload,
        .payload_size = payload_size,
    };
    char name[DISPUTE_NAME_MAX];
    struct buffer bytes;
    bool written;

    buffer_init(&bytes, 65536);
    dispute_move_write(&bytes, &move);
    dispute_move_name(name, dispute->turn, dispute->attempt);
    written = write_small(dispute->folder, name, bytes.data, bytes.size);
    buffer_release(&bytes);
    return written;
}

/* Who is accused replies to what was queried. */
static bool reply_to_query(const struct dispute *dispute, const struct virtual_segment *segment)
{
    const uint8_t reply[2] = {0, dispute->queried_size > 1 ? dispute->queried[1] : 255};

    return write_move(dispute, segment, DISPUTE_REPLY, reply, sizeof(reply));
}

/* How many queries follows from what the accused stands by. */
static bool find_lie(struct virtual_checks *checks, const struct dispute *dispute,
                     const struct virtual_segment *segment)
{
    struct hash32 luck = keccak256(dispute->trace_root.bytes, DIGEST_SIZE);
    uint8_t queries = luck.bytes[0] % 4;
    uint8_t known = read_number(dispute->folder, DISPUTE_FILE_WALK, 0);
    struct virtual_evidence evidence = {0};

    while (known < queries && (read_number(dispute->folder, DISPUTE_FILE_REPLY, 255) == known ||
                               test_random_below(&checks->random, 3) == 0)) {
        known++;
    }
    evidence.kind = known < queries ? 'a' : 'c';
    evidence.number = known;
    return write_small(dispute->folder, DISPUTE_FILE_WALK, (uint8_t[2]){0, known}, 2) &&
           write_move(dispute, segment, evidence.kind == 'a' ? DISPUTE_QUERY : DISPUTE_EVIDENCE,
                      &evidence, sizeof(evidence));
}

/* A replay that meets an earlier lie does not come to the step. */
static void find_move(struct virtual_checks *checks, struct check_result *result,
                      const struct check_request *request)
{
    const struct virtual_segment *segment = segment_at(checks, request, request->segment_count - 1);
    struct digest truth =
        virtual_trace_root(&request->job_id, virtual_state_before(segment, request->disputed_step));
    struct dispute dispute;
    struct error error;
    bool written;

    check(checks, result, request);
    if (result->outcome == CHECK_CANNOT_TELL ||
        (result->outcome == CHECK_REFUTED &&
         (result->index < request->index || result->step < request->disputed_step))) {
        return;
    }
    error_init(&error);
    if (dispute_load(&dispute, request->folder, &error) != STATUS_OK) {
        cannot_tell(result, false, error.text);
        return;
    }
    assert(dispute.step == request->disputed_step);
    result->outcome = CHECK_PROVEN;
    result->index = request->index;
    if (dispute.answering) {
        written = reply_to_query(&dispute, segment);
    } else if (dispute.against_attestor && digest_equal(&truth, &dispute.trace_root)) {
        written = write_move(&dispute, segment, DISPUTE_NO_FAULT, NULL, 0);
    } else {
        written = find_lie(checks, &dispute, segment);
    }
    if (!written) {
        cannot_tell(result, false, "no room for the move");
    }
}

/* ---- the port ------------------------------------------------------------------------ */

static enum status start(void *context, uint64_t number, const struct check_request *request,
                         struct error *error)
{
    struct virtual_checks *checks = context;
    enum fate_says says = fate_ask(checks->fate);
    uint64_t takes_ms = 0;
    uint32_t running = 0;

    if (says == FATE_DEAD) {
        return error_set(error, STATUS_IO, "the process is dead");
    }
    if (checks->barren) {
        return error_set(error, STATUS_IO, "no process can be started");
    }
    for (uint32_t i = 0; i < VIRTUAL_RUNNING_MAX; i++) {
        running += checks->running[i].number != 0;
    }
    checks->running_most = running + 1 > checks->running_most ? running + 1 : checks->running_most;
    for (uint32_t i = 0; i < VIRTUAL_RUNNING_MAX; i++) {
        struct virtual_running *place = &checks->running[i];

        if (place->number == 0) {
            place->number = number;
            place->request = *request;
            place->answer = checks->choose(checks->context, request, &takes_ms);
            place->ready_ms = checks->now_ms + takes_ms;
            return says == FATE_LAST ? error_set(error, STATUS_IO, "the process is dead")
                                     : STATUS_OK;
        }
    }
    return error_set(error, STATUS_IO, "cannot start a child");
}

static void answer(struct virtual_checks *checks, const struct virtual_running *place,
                   struct check_result *result)
{
    memset(result, 0, sizeof(*result));
    switch (place->answer) {
    case ANSWER_TRUTH:
        if (place->request.disputed) {
            find_move(checks, result, &place->request);
        } else {
            check(checks, result, &place->request);
        }
        break;
    case ANSWER_NOTHING:
        cannot_tell(result, false, "the check ended without an answer");
        break;
    case ANSWER_NEVER:
        cannot_tell(result, true, "the job is of rules that this program does not know");
        break;
    case ANSWER_FAULT:
        check(checks, result, &place->request);
        result->outcome = CHECK_FAULT;
        (void)snprintf(result->reason, sizeof(result->reason), "two replays disagree");
        break;
    case ANSWER_NONSENSE:
        talk_nonsense(checks, result, &place->request);
        break;
    }
    result->mirror_count = place->request.mirror_count;
    for (uint32_t i = 0; i < result->mirror_count; i++) {
        result->mirrors[i].good = result->outcome == CHECK_PROVEN;
        result->mirrors[i].bad = result->outcome == CHECK_CANNOT_TELL;
    }
}

static enum status take(void *context, uint64_t *number, struct check_result *result,
                        struct error *error)
{
    struct virtual_checks *checks = context;
    enum fate_says says = fate_ask(checks->fate);

    if (says == FATE_DEAD) {
        return error_set(error, STATUS_IO, "the process is dead");
    }
    for (uint32_t i = 0; i < VIRTUAL_RUNNING_MAX; i++) {
        struct virtual_running *place = &checks->running[i];

        if (place->number != 0 && place->ready_ms <= checks->now_ms) {
            answer(checks, place, result);
            *number = place->number;
            place->number = 0;
            if (says == FATE_LAST) {
                return error_set(error, STATUS_IO, "the process is dead");
            }
            checks->reply(checks->context, &place->request, result);
            return STATUS_OK;
        }
    }
    return says == FATE_LAST ? error_set(error, STATUS_IO, "the process is dead")
                             : STATUS_NOT_FOUND;
}

struct check_port virtual_checks_port(struct virtual_checks *checks)
{
    return (struct check_port){.context = checks, .start = start, .take = take};
}

void virtual_checks_die(struct virtual_checks *checks)
{
    for (uint32_t i = 0; i < VIRTUAL_RUNNING_MAX; i++) {
        checks->running[i].number = 0;
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
