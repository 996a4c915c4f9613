/* duel.c - see duel.h. */
#include "verifier/dispute/duel.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/reader.h"
#include "chain/game/game.h"
#include "proofs/dispute/evidence_file.h"
#include "proofs/dispute/fraud_proof.h"
#include "proofs/dispute/ledger_query.h"

#define MOVE_HEAD_SIZE (32 + 1 + JOB_HEADER_SIZE + 2 * DIGEST_SIZE)
#define MOVE_SIZE_MAX  (MOVE_HEAD_SIZE + 2 * (1 + DUEL_PATH_MAX * DIGEST_SIZE) + GAME_PAYLOAD_MAX)

/* Elements of one leaf that are tried, each when those before it do not convict. */
#define ELEMENTS_MAX 8

static const char move_tag[32] = "lockstep.move.v2";

_Static_assert(DUEL_PATH_MAX == MERKLE_DEPTH_MAX, "every path fits");
_Static_assert(JOB_HEADER_SIZE == GAME_JOB_HEADER_SIZE, "a job's header is shown to the referee");

/* One play: the step run again, and the walk through what the accused made of it. */
struct play {
    const struct duel *duel;
    struct trace_server own;
    struct trace_walk walk;
    char trace_walk_path[FILE_PATH_MAX];
};

/*
 * ---- the file of a move: tag (32), kind (1), header (216), states (32 each), paths, payload
 */

static void write_path(struct buffer *bytes, const struct merkle_path *path)
{
    buffer_add_u8(bytes, (uint8_t)path->sibling_count);
    buffer_add(bytes, path->siblings, path->sibling_count * DIGEST_SIZE);
}

void duel_move_write(struct buffer *bytes, const struct duel_move *move)
{
    buffer_add(bytes, move_tag, sizeof(move_tag));
    buffer_add_u8(bytes, (uint8_t)move->kind);
    buffer_add(bytes, move->job_header, sizeof(move->job_header));
    buffer_add(bytes, move->pre_state.bytes, DIGEST_SIZE);
    buffer_add(bytes, move->post_state.bytes, DIGEST_SIZE);
    write_path(bytes, &move->pre_path);
    write_path(bytes, &move->post_path);
    buffer_add(bytes, move->payload, move->payload_size);
}

/* False: the bytes end early. */
static bool read_path(struct merkle_path *path, const uint8_t **at, size_t *left)
{
    memset(path, 0, sizeof(*path));
    if (*left < 1 || (*at)[0] > DUEL_PATH_MAX || *left - 1 < (size_t)(*at)[0] * DIGEST_SIZE) {
        return false;
    }
    path->sibling_count = (*at)[0];
    memcpy(path->siblings, *at + 1, path->sibling_count * DIGEST_SIZE);
    *left -= 1 + path->sibling_count * DIGEST_SIZE;
    *at += 1 + path->sibling_count * DIGEST_SIZE;
    return true;
}

enum status duel_move_read(struct duel_move *move, const uint8_t *bytes, size_t size,
                           struct error *error)
{
    const uint8_t *at = bytes;
    size_t left = size;
    bool good = size > MOVE_HEAD_SIZE && memcmp(bytes, move_tag, sizeof(move_tag)) == 0 &&
                bytes[32] >= DUEL_ASK && bytes[32] <= DUEL_TELL;

    memset(move, 0, sizeof(*move));
    if (good) {
        move->kind = (enum duel_kind)bytes[32];
        memcpy(move->job_header, bytes + 33, JOB_HEADER_SIZE);
        memcpy(move->pre_state.bytes, bytes + MOVE_HEAD_SIZE - 2 * DIGEST_SIZE, DIGEST_SIZE);
        memcpy(move->post_state.bytes, bytes + MOVE_HEAD_SIZE - DIGEST_SIZE, DIGEST_SIZE);
        at += MOVE_HEAD_SIZE;
        left -= MOVE_HEAD_SIZE;
        good = read_path(&move->pre_path, &at, &left) && read_path(&move->post_path, &at, &left) &&
               left <= GAME_PAYLOAD_MAX && (left == 0) == (move->kind == DUEL_NO_LIE);
    }
    move->payload = at;
    move->payload_size = left;
    return good ? STATUS_OK : error_set(error, STATUS_BAD_FORMAT, "the file is no move");
}

static enum status path_of(struct merkle_path *path, const struct digest *states, uint32_t count,
                           uint32_t step, struct error *error)
{
    struct digest *hashes = calloc(count, sizeof(*hashes));
    struct merkle_leaves leaves;

    if (hashes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the roots of a segment");
    }
    for (uint32_t i = 0; i < count; i++) {
        merkle_leaf_hash(&hashes[i], states[i].bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, count);
    merkle_path_build(path, &leaves, step);
    free(hashes);
    return STATUS_OK;
}

static enum status keep_move(const struct play *play, enum duel_kind kind,
                             const struct buffer *payload, struct error *error)
{
    const struct duel *duel = play->duel;
    const struct check_request *request = duel->request;
    uint32_t step = request->disputed_step;
    struct duel_move move = {.kind = kind,
                             .pre_state = duel->pre_state,
                             .post_state = duel->list[step],
                             .payload = payload->data,
                             .payload_size = payload->size};
    struct buffer bytes;
    char path[FILE_PATH_MAX];
    enum status status = buffer_check(payload, error, "a move");

    memcpy(move.job_header, duel->run->job->header, JOB_HEADER_SIZE);
    if (status == STATUS_OK) {
        status = path_of(&move.post_path, duel->list, duel->list_count, step, error);
    }
    if (status == STATUS_OK && duel->earlier != NULL) {
        status = path_of(&move.pre_path, duel->earlier, duel->earlier_count,
                         step > 0 ? step - 1 : duel->earlier_count - 1, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    buffer_init(&bytes, MOVE_SIZE_MAX);
    duel_move_write(&bytes, &move);
    status = buffer_check(&bytes, error, "a move");
    if (status == STATUS_OK) {
        status = file_path_join(path, sizeof(path), error, request->folder, request->move);
    }
    if (status == STATUS_OK) {
        status = file_write(path, error, bytes.data, bytes.size, 0600);
    }
    buffer_release(&bytes);
    return status;
}

/* ---- answers ------------------------------------------------------------------- */

/* A file that may hold the answer to what the walk asks now. */
static enum status take_answer(void *context, const char *path, struct error *error)
{
    struct play *play = context;
    struct file_bytes bytes;
    enum status status = file_read(&bytes, error, path, TRACE_REPLY_BYTES_MAX);

    if (status == STATUS_OK) {
        status = trace_walk_take(&play->walk, bytes.data, bytes.size, error);
    }
    file_bytes_release(&bytes);
    return status;
}

static bool is_no_answer(enum status status)
{
    return status == STATUS_NOT_FOUND || status == STATUS_BAD_FORMAT ||
           status == STATUS_OVER_LIMIT || status == STATUS_UNREACHABLE;
}

/* STATUS_NOT_FOUND: nobody has the answer. */
static enum status find_answer(struct play *play, const struct trace_query *query,
                               const struct digest *known, struct error *error)
{
    const struct check_request *request = play->duel->request;
    char text[TRACE_QUERY_TEXT_MAX];
    char path[FILE_PATH_MAX];
    struct fetch_request wish = {.kind = FETCH_TRACE,
                              .root = *known,
                              .job = request->job_id,
                              .number = play->duel->step,
                              .query = text,
                              .size_max = TRACE_REPLY_BYTES_MAX,
                              .check = take_answer,
                              .context = play};
    struct error passed_over;
    enum status status = file_path_join(path, sizeof(path), error, request->folder, DUEL_TOLD);

    error_init(&passed_over);
    if (status == STATUS_OK) {
        status = take_answer(play, path, &passed_over);
    }
    if (is_no_answer(status)) {
        trace_query_text(text, query);
        status = fetch_get(path, play->duel->fetch, &wish, &passed_over);
    }
    if (status != STATUS_OK) {
        *error = passed_over;
    }
    return is_no_answer(status) ? STATUS_NOT_FOUND : status;
}

static enum status keep_hunt(const struct play *play, struct error *error)
{
    struct buffer bytes;
    enum status status;

    buffer_init(&bytes, TRACE_WALK_BYTES_MAX);
    status = trace_walk_save(&bytes, &play->walk, error);
    if (status == STATUS_OK) {
        status = buffer_check(&bytes, error, "a hunt");
    }
    if (status == STATUS_OK) {
        status = file_write(play->trace_walk_path, error, bytes.data, bytes.size, 0600);
    }
    buffer_release(&bytes);
    return status;
}

/* Until the walk has ended or nobody has the next answer. */
static enum status go_on(struct play *play, struct error *error)
{
    enum status status = STATUS_OK;
    struct digest known;
    struct trace_query query;

    while (status == STATUS_OK && trace_walk_next(&query, &known, &play->walk)) {
        status = find_answer(play, &query, &known, error);
        if (status == STATUS_OK) {
            status = keep_hunt(play, error);
        }
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status open_hunt(struct play *play, struct error *error)
{
    const struct duel *duel = play->duel;
    const struct check_request *request = duel->request;
    struct trace_walk_case accused = {.trace_root = request->accused_root,
                                      .state_root = duel->pre_state,
                                      .next_root = duel->list[request->disputed_step],
                                      .is_attestor = request->against_attestor};
    struct file_bytes bytes;
    enum status status = file_path_join(play->trace_walk_path, sizeof(play->trace_walk_path), error,
                                        request->folder, "hunt");

    if (status == STATUS_OK) {
        status = file_read(&bytes, error, play->trace_walk_path, TRACE_WALK_BYTES_MAX);
    }
    if (status == STATUS_OK) {
        status = trace_walk_load(&play->walk, &play->own, bytes.data, bytes.size, error);
        file_bytes_release(&bytes);
        if (status == STATUS_OK &&
            !digest_equal(&play->walk.accused.trace_root, &accused.trace_root)) {
            status = STATUS_BAD_FORMAT; /* the ledger was reorganized */
        }
        if (status == STATUS_OK || status == STATUS_NO_MEMORY || status == STATUS_DEVICE) {
            return status;
        }
        trace_walk_close(&play->walk);
        memset(&play->walk, 0, sizeof(play->walk));
    }
    return trace_walk_open(&play->walk, &play->own, &accused, error);
}

/* ---- moves --------------------------------------------------------------------- */

static size_t payload_max(const struct check_request *request)
{
    return request->move_max == 0 ? GAME_PAYLOAD_MAX : request->move_max;
}

/* What the ledger brought last; nothing is no answer to anything. */
static enum status read_told(struct file_bytes *reply, const struct play *play, struct error *error)
{
    char path[FILE_PATH_MAX];
    enum status status =
        file_path_join(path, sizeof(path), error, play->duel->request->folder, DUEL_TOLD);

    if (status == STATUS_OK) {
        status = file_read(reply, error, path, GAME_REPLY_MAX);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* What the accused has committed to in this dispute. */
static enum status context_of(struct evidence_context *context, const struct duel *duel,
                              struct error *error)
{
    *context = (struct evidence_context){.before = duel->pre_state,
                                         .after = duel->list[duel->request->disputed_step],
                                         .trace = duel->request->accused_root,
                                         .attestor = duel->request->against_attestor,
                                         .diverged = duel->is_last};
    return evidence_context_of_job(context, duel->run->job->header, error);
}

/* Does the file of evidence that was given convict here? What it says of itself is not believed:
 * it is judged by what stands on the ledger. */
static enum status judge_given(bool *convicts, const struct duel *duel,
                               const struct file_bytes *bytes, struct evidence_file *file,
                               struct error *error)
{
    struct evidence_ruling ruling = {.answer = EVIDENCE_REFUSED};
    struct evidence_context context;
    struct error unread;
    enum status status;

    error_init(&unread);
    if (evidence_file_read(file, bytes->data, bytes->size, &unread) != STATUS_OK ||
        file->size > payload_max(duel->request)) {
        return STATUS_OK;
    }
    status = context_of(&context, duel, error);
    if (status == STATUS_OK) {
        status = evidence_judge(&ruling, &context, file->evidence, file->size, error);
    }
    *convicts = ruling.answer == EVIDENCE_UPHELD;
    return status;
}

/* The move, where somebody has given evidence that convicts; *made: there was such. */
static enum status show_given(const struct play *play, bool *made, struct error *error)
{
    struct file_bytes bytes = {0};
    struct evidence_file file;
    struct buffer payload;
    char path[FILE_PATH_MAX];
    struct error none;
    enum status status =
        file_path_join(path, sizeof(path), error, play->duel->request->folder, DUEL_EVIDENCE);

    error_init(&none);
    if (status != STATUS_OK ||
        file_read(&bytes, &none, path, EVIDENCE_FILE_SIZE_MAX) != STATUS_OK) {
        return status;
    }
    buffer_init(&payload, GAME_PAYLOAD_MAX);
    status = judge_given(made, play->duel, &bytes, &file, error);
    if (status == STATUS_OK && *made) {
        buffer_add(&payload, file.evidence, file.size);
        status = keep_move(play, DUEL_CONVICT, &payload, error);
    }
    buffer_release(&payload);
    file_bytes_release(&bytes);
    return status;
}

/* Evidence, or the question that must come before it. *convicts: the C rules take it. */
static enum status write_proof(struct buffer *payload, bool *asks, bool *convicts,
                               const struct duel *duel, struct fraud_proof *proof,
                               const struct file_bytes *reply, struct error *error)
{
    struct evidence_ruling ruling = {.answer = EVIDENCE_REFUSED};
    struct evidence_context context;
    enum status status = context_of(&context, duel, error);

    buffer_clear(payload);
    if (status == STATUS_OK) {
        status = fraud_proof_write(payload, asks, proof, reply->data, reply->size,
                                   payload_max(duel->request), error);
    }
    if (status == STATUS_OK) {
        status = buffer_check(payload, error, "evidence");
    }
    if (status == STATUS_OK && !*asks) {
        status =
            fraud_proof_judge(&ruling, proof, &context, reply->data, reply->size, payload, error);
    }
    *convicts = *asks || ruling.answer == EVIDENCE_UPHELD;
    return status;
}

/* What the rules of this program would not convict for is not sent, and neither is what the
 * ledger's would not. Where nothing is left, the accused is right. */
static enum status write_evidence(struct buffer *payload, enum duel_kind *kind, struct play *play,
                                  struct error *error)
{
    struct record_given given;
    struct run_data data;
    struct fraud_proof proof = {0};
    struct file_bytes reply = {0};
    uint32_t first = play->duel->request->acquitted;
    bool convicts = false;
    bool asks = false;
    enum status status;

    run_given(&given, &data, play->duel->run);
    status = fraud_proof_open(&proof, &play->walk, &given, error);
    if (status == STATUS_OK) {
        status = read_told(&reply, play, error);
    }
    for (uint32_t i = first; status == STATUS_OK && !convicts && i < ELEMENTS_MAX; i++) {
        status = i == 0 ? STATUS_OK : fraud_proof_other(&proof, i, error);
        if (status == STATUS_OK) {
            status = write_proof(payload, &asks, &convicts, play->duel, &proof, &reply, error);
        }
    }
    file_bytes_release(&reply);
    fraud_proof_close(&proof);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return status;
    }
    *kind = asks ? DUEL_ASK : DUEL_CONVICT;
    if (!convicts) {
        buffer_clear(payload);
        *kind = DUEL_NO_LIE;
    }
    return STATUS_OK;
}

/* Both agree on every number; they may still disagree about what it means. */
static enum status write_ending(struct buffer *payload, enum duel_kind *kind, struct play *play,
                                struct error *error)
{
    const struct check_request *request = play->duel->request;
    bool said = play->duel->is_last;
    uint64_t element;
    uint32_t state;
    bool diverges;
    enum status status = trace_server_diverged(&state, &element, &play->own, error);

    *kind = DUEL_NO_LIE;
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return status;
    }
    diverges = status == STATUS_OK;
    if (request->against_attestor || diverges == said) {
        return STATUS_OK;
    }
    *kind = diverges ? DUEL_CONVICT : DUEL_ASK;
    return diverges ? fraud_proof_not_finite(payload, &play->own, error)
                    : ledger_query_write_diverged(payload, play->duel->run->job->tape, error);
}

static enum status make_move(struct play *play, struct error *error)
{
    enum duel_kind kind = DUEL_CONVICT;
    struct buffer payload;
    enum status status;

    buffer_init(&payload, GAME_PAYLOAD_MAX);
    if (play->walk.end == TRACE_WALK_GOES_ON) {
        kind = DUEL_ASK;
        status = ledger_query_write(&payload, &play->walk, error);
    } else if (play->walk.end == TRACE_WALK_NO_LIE) {
        status = write_ending(&payload, &kind, play, error);
    } else {
        status = write_evidence(&payload, &kind, play, error);
    }
    if (status == STATUS_OK) {
        status = keep_move(play, kind, &payload, error);
    }
    buffer_release(&payload);
    return status;
}

static enum status read_asked(struct ledger_queried *queried, const struct check_request *request,
                              struct error *error)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];
    enum status status = file_path_join(path, sizeof(path), error, request->folder, DUEL_ASKED);

    if (status == STATUS_OK) {
        status = file_read(&bytes, error, path, GAME_QUERIED_MAX);
    }
    if (status == STATUS_OK && ledger_queried_read(queried, bytes.data, bytes.size) != STATUS_OK) {
        status =
            error_set(error, STATUS_BAD_FORMAT, "the ledger asks what this program cannot read");
    }
    file_bytes_release(&bytes);
    return status;
}

static bool answers(const struct ledger_queried *queried, const struct buffer *reply)
{
    struct partial_sums_reply parts;
    struct trace_reply tree;

    return (queried->query.kind == TRACE_QUERY_PARTS
                ? partial_sums_check(&parts, &queried->parts, reply->data, reply->size)
                : trace_reply_check(&tree, &queried->target, reply->data, reply->size)) ==
           VERDICT_VALID;
}

/* Who attested tells what is asked of the trace. An answer that is none is not sent: then what was
 * attested is not what this machine makes of the step now. */
static enum status make_answer(struct play *play, struct error *error)
{
    static const char mismatch[] = "the step gives another trace here than was attested";
    struct record_given given;
    struct run_data data;
    struct buffer reply;
    struct ledger_queried queried;
    enum status status = read_asked(&queried, play->duel->request, error);

    run_given(&given, &data, play->duel->run);
    buffer_init(&reply, GAME_PAYLOAD_MAX);
    if (status == STATUS_OK) {
        status = fraud_proof_reply(&reply, &play->own, &given, &queried.query, error);
    }
    if (status == STATUS_OK && !answers(&queried, &reply)) {
        status = error_set(error, STATUS_REFUSED, "%s", mismatch);
    }
    if (status == STATUS_OK) {
        status = keep_move(play, DUEL_TELL, &reply, error);
    }
    buffer_release(&reply);
    return status;
}

static enum status make_claim(struct play *play, struct error *error)
{
    enum status status = open_hunt(play, error);

    if (status == STATUS_OK) {
        status = go_on(play, error);
    }
    if (status == STATUS_OK) {
        status = make_move(play, error);
    }
    trace_walk_close(&play->walk);
    return status;
}

/* With the step run again, its trace kept. */
static enum status play_traced(struct play *play, struct error *error)
{
    const struct duel *duel = play->duel;
    struct machine_options traced = duel->run->options;
    enum status status;

    traced.trace = true;
    status = run_reopen(duel->run, &traced, error);
    if (status == STATUS_OK) {
        status = trace_server_open(&play->own, duel->run->machine, error);
    }
    if (status == STATUS_OK) {
        status = duel->request->answering ? make_answer(play, error) : make_claim(play, error);
    }
    trace_server_close(&play->own);
    return status;
}

enum status duel_play(const struct duel *duel, struct error *error)
{
    struct play *play = calloc(1, sizeof(*play));
    bool made = false;
    enum status status;

    if (play == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a dispute");
    }
    play->duel = duel;
    status = file_make_folder(duel->request->folder, error, 0700);
    if (status == STATUS_OK && !duel->request->answering) {
        status = show_given(play, &made, error);
    }
    if (status == STATUS_OK && !made) {
        status = play_traced(play, error);
    }
    free(play);
    return status;
}
