/* dispute_next.c - see dispute_next.h. */
#include "verifier/dispute/dispute_next.h"

#include "proofs/dispute/evidence_file.h"
#include "proofs/dispute/fraud_proof.h"
#include "proofs/dispute/ledger_query.h"

/* Elements of one leaf that are tried, each when those before it do not convict. */
#define ELEMENTS_MAX 8

/* A move that is being made with the step at hand. */
struct making {
    const struct dispute *dispute;
    struct dispute_step *step;
    struct buffer *payload;
    enum dispute_kind kind;
};

static size_t payload_max(const struct making *making)
{
    if (making->step->whole) {
        return EVIDENCE_SIZE_MAX;
    }
    return making->dispute->move_max == 0 ? GAME_PAYLOAD_MAX : making->dispute->move_max;
}

static struct evidence_context context_of(const struct making *making)
{
    struct evidence_context context = making->step->context;

    context.trace = making->dispute->trace_root;
    return context;
}

/* ---- evidence that somebody gave ------------------------------------------------ */

/* What the file says of itself is not believed: it is judged by what stands on the ledger. */
static enum status judge_given(bool *convicts, const struct making *making,
                               const struct file_bytes *bytes, struct evidence_file *file,
                               struct error *error)
{
    const struct evidence_context context = context_of(making);
    struct evidence_ruling ruling = {.answer = EVIDENCE_REFUSED};
    struct error unread;

    error_init(&unread);
    if (evidence_file_read(file, bytes->data, bytes->size, &unread) != STATUS_OK ||
        file->size > payload_max(making)) {
        return STATUS_OK;
    }
    TRY(evidence_judge(&ruling, &context, file->evidence, file->size, error));
    *convicts = ruling.answer == EVIDENCE_UPHELD;
    return STATUS_OK;
}

/* Spares the run and the walk, where somebody gave evidence that convicts. */
static enum status show_given(struct making *making, struct error *error)
{
    struct file_bytes bytes = {0};
    struct evidence_file file;
    char path[FILE_PATH_MAX];
    bool convicts = false;
    struct error none;
    enum status status;

    error_init(&none);
    if (making->dispute->folder[0] == '\0') {
        return STATUS_OK;
    }
    TRY(dispute_path(path, making->dispute, DISPUTE_FILE_EVIDENCE, error));
    if (file_read(&bytes, &none, path, EVIDENCE_FILE_SIZE_MAX) != STATUS_OK) {
        return STATUS_OK;
    }
    status = judge_given(&convicts, making, &bytes, &file, error);
    if (convicts) {
        making->kind = DISPUTE_EVIDENCE;
        buffer_add(making->payload, file.evidence, file.size);
    }
    file_bytes_release(&bytes);
    return status;
}

/* ---- evidence at the end of a walk ---------------------------------------------- */

/* Evidence, or the query that must come before it. *convicts: the rules here take it. */
static enum status write_proof(struct making *making, bool *convicts, struct fraud_proof *proof,
                               const struct fraud_proof_said *said, struct error *error)
{
    const struct evidence_context context = context_of(making);
    struct evidence_ruling ruling = {.answer = EVIDENCE_REFUSED};
    struct buffer *payload = making->payload;
    bool is_query = false;

    buffer_clear(payload);
    TRY(fraud_proof_write(payload, &is_query, proof, said, payload_max(making), error));
    TRY(buffer_check(payload, error, "evidence"));
    making->kind = is_query ? DISPUTE_QUERY : DISPUTE_EVIDENCE;
    if (!is_query) {
        TRY(fraud_proof_judge(&ruling, proof, &context, said, payload, error));
    }
    *convicts = is_query || ruling.answer == EVIDENCE_UPHELD;
    return STATUS_OK;
}

/* The first element that this program and, as far as it has ruled, the ledger convict for.
 * STATUS_NOT_FOUND: there is none. */
static enum status try_elements(struct making *making, struct fraud_proof *proof,
                                const struct fraud_proof_said *said, struct error *error)
{
    for (uint32_t i = making->dispute->acquitted; i < ELEMENTS_MAX; i++) {
        bool convicts = false;

        if (i > 0) {
            TRY(fraud_proof_other(proof, i, error));
        }
        TRY(write_proof(making, &convicts, proof, said, error));
        if (convicts) {
            making->step->element = proof->target.element;
            return STATUS_OK;
        }
    }
    return STATUS_NOT_FOUND;
}

static enum status write_whole(struct making *making, struct fraud_proof *proof,
                               struct error *error)
{
    making->kind = DISPUTE_EVIDENCE;
    making->step->element = proof->target.element;
    return fraud_proof_write_whole(making->payload, proof, payload_max(making), error);
}

/* Where no evidence is left, the accused is right. */
static enum status write_evidence(struct making *making, struct error *error)
{
    struct evidence_given given;
    struct fraud_proof proof = {0};
    struct file_bytes queried = {0};
    struct file_bytes reply = {0};
    struct fraud_proof_said said;
    enum status status;

    run_given(&given, making->step->run);
    TRY_OUT(fraud_proof_open(&proof, &making->step->walk, &given, error));
    TRY_OUT(dispute_last_said(&queried, &reply, making->dispute, error));
    said = (struct fraud_proof_said){queried.data, queried.size, reply.data, reply.size};
    status = making->step->whole ? write_whole(making, &proof, error)
                                 : try_elements(making, &proof, &said, error);
out:
    file_bytes_release(&queried);
    file_bytes_release(&reply);
    fraud_proof_close(&proof);
    if (status == STATUS_NOT_FOUND && !making->step->whole) {
        buffer_clear(making->payload);
        making->kind = DISPUTE_NO_FAULT;
        return STATUS_OK;
    }
    return status;
}

/* Both agree on every number. They may still disagree on whether the training ends there. */
static enum status write_ending(struct making *making, struct error *error)
{
    const struct trace_query query = {.kind = TRACE_QUERY_DIVERGED};
    struct dispute_step *step = making->step;
    uint64_t element;
    uint32_t state;
    enum status status = trace_server_diverged(&state, &element, &step->own, error);
    bool diverges = status == STATUS_OK;

    making->kind = DISPUTE_NO_FAULT;
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return status;
    }
    if (diverges == step->context.diverged) {
        return STATUS_OK;
    }
    step->element = element;
    step->state = state;
    making->kind = diverges ? DISPUTE_EVIDENCE : DISPUTE_QUERY;
    return diverges ? fraud_proof_not_finite(making->payload, &step->own, error)
                    : ledger_query_write_plain(making->payload, step->own.tape, &query, error);
}

/* ---- with the step at hand -------------------------------------------------------- */

static enum status accuse_step(struct making *making, struct error *error)
{
    struct dispute_step *step = making->step;

    TRY(dispute_step_walk(step, making->dispute, error));
    switch (step->walk.end) {
    case TRACE_WALK_GOES_ON:
        making->kind = DISPUTE_QUERY;
        return ledger_query_write(making->payload, &step->walk, error);
    case TRACE_WALK_NO_LIE:
        return write_ending(making, error);
    case TRACE_WALK_ELEMENT:
    case TRACE_WALK_FIRST_STATE:
    case TRACE_WALK_NEXT_STATE:
        break;
    }
    return write_evidence(making, error);
}

static enum status make_move(struct making *making, struct error *error)
{
    TRY(show_given(making, error));
    if (making->kind == DISPUTE_EVIDENCE) {
        return STATUS_OK;
    }
    TRY(dispute_step_open(making->step, making->dispute, error));
    return accuse_step(making, error);
}

/* ---- the next move ----------------------------------------------------------------- */

/* The move that a child has left in the folder, or a child is needed. */
static enum status find_made(enum dispute_kind *kind, const struct dispute *dispute,
                             struct error *error)
{
    char name[DISPUTE_NAME_MAX];
    char path[FILE_PATH_MAX];
    struct file_bytes bytes = {0};
    struct dispute_move move;
    struct error none;

    error_init(&none);
    dispute_move_name(name, dispute->turn, dispute->attempt);
    TRY(dispute_path(path, dispute, name, error));
    *kind = dispute_move_load(&move, &bytes, path, &none) == STATUS_OK ? move.kind : DISPUTE_RUN;
    if (dispute->follows && *kind != DISPUTE_RUN) {
        *kind = DISPUTE_WAIT; /* it is found, and not ours to make */
    }
    file_bytes_release(&bytes);
    return STATUS_OK;
}

enum status dispute_next(enum dispute_kind *kind, struct buffer *payload,
                         const struct dispute *dispute, struct dispute_step *step,
                         struct error *error)
{
    struct making making = {.dispute = dispute, .step = step, .payload = payload};

    *kind = DISPUTE_WAIT;
    if (dispute->overtaken) {
        *kind = DISPUTE_LAPSE;
        return STATUS_OK;
    }
    if (dispute->late) {
        *kind = dispute->ours ? DISPUTE_MISSED : DISPUTE_TIMEOUT;
        return STATUS_OK;
    }
    if ((!dispute->ours && !dispute->follows) || dispute->under_way) {
        return STATUS_OK;
    }
    if (step == NULL) {
        return find_made(kind, dispute, error);
    }
    TRY(make_move(&making, error));
    *kind = making.kind;
    return buffer_check(payload, error, "a move");
}
