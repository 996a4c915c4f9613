/*
 * local_referee.c - the embedded referee: the twin of chain/contracts/Referee.sol.
 *
 * Checks whose move it is and what it is about, in the order of the contract. evidence_judge and
 * ledger_query in proofs/dispute compute what bytes prove.
 */
#include <string.h>

#include "base/endian.h"
#include "chain/local/local_rules.h"
#include "proofs/commit/commit.h"
#include "proofs/dispute/evidence.h"

/* docs/FORMATS.md, job: 20 steps of a segment (8), 56 program root, 120 constants, 152 data, 184
 * first state (32 each). */
enum {
    HEADER_SEGMENT_LENGTH = 20,
    HEADER_PROGRAM = 56,
    HEADER_CONSTANTS = 120,
    HEADER_DATA = 152,
    HEADER_FIRST_STATE = 184,
};

static struct digest header_root(const struct game_case *shown, size_t place)
{
    struct digest root;

    memcpy(root.bytes, shown->job_header + place, DIGEST_SIZE);
    return root;
}

static enum status refuse_case(struct local_game *game, enum game_case_part part)
{
    return local_refuse(game, GAME_WRONG_CASE, part);
}

/* ---- whose turn ----------------------------------------------------------------- */

static enum status require_turn(struct local_game *game, const struct local_dispute *dispute,
                                enum game_turn turn, const struct address *mover)
{
    if (dispute->claim.turn != (uint32_t)turn) {
        return local_refuse(game, GAME_WRONG_TURN, dispute->claim.turn);
    }
    if (!address_equal(&game->sender, mover)) {
        return local_refuse_other(game, mover);
    }
    return STATUS_OK;
}

static bool is_attestor(const struct local_dispute *dispute)
{
    return !address_is_zero(&dispute->claim.attestor);
}

/* ---- the case ------------------------------------------------------------------- */

/* Is it the job, the segment and the step of the claim? */
static enum status check_subject(struct local_game *game, const struct local_dispute *dispute,
                                 const struct game_case *shown)
{
    const struct local_claim *claim = &dispute->claim;
    struct digest job_id;
    struct hash32 key;
    bool same;

    commit_job_id(&job_id, shown->job_header, sizeof(shown->job_header));
    key = game_job_key(&game->place, &shown->client, &job_id, shown->salt);
    if (!hash32_equal(&key, &claim->job)) {
        return refuse_case(game, GAME_CASE_JOB);
    }
    key = game_segment_hash(&claim->job, &shown->segment);
    if (!hash32_equal(&key, &claim->segment)) {
        return refuse_case(game, GAME_CASE_SEGMENT);
    }
    if (!is_attestor(dispute)) {
        key = game_claim_key(&claim->claimant, &claim->segment, shown->step, &shown->pre_state,
                             &shown->post_state);
        same = hash32_equal(&key, dispute->key);
    } else {
        struct local_tally tally;

        TRY(local_get_tally(game->store, &tally, &claim->segment));
        same =
            shown->step == game_sampled_step(&tally.seed, &claim->attestor, shown->segment.steps);
    }
    return same ? STATUS_OK : refuse_case(game, GAME_CASE_SUBJECT);
}

/* Is the state the one after this step of the segment, by the segment's root? */
static bool stands(const struct game_segment *segment, uint64_t length, uint32_t step,
                   const struct digest *state, const struct merkle_path *siblings)
{
    struct merkle_path path = *siblings;
    struct digest root;

    path.leaf_index = step;
    path.leaf_count = segment->steps;
    merkle_leaf_hash(&root, state->bytes, DIGEST_SIZE);
    if (merkle_path_root(&root, &path, &root) != VERDICT_VALID) {
        return false;
    }
    commit_list_root_of(&root, COMMIT_SEGMENT, segment->index * length, segment->steps, &root);
    return digest_equal(&root, &segment->root);
}

static enum status check_pre_state(struct local_game *game, const struct local_dispute *dispute,
                                   const struct game_case *shown, uint64_t length)
{
    const struct game_segment *segment = &shown->segment;
    struct digest first = header_root(shown, HEADER_FIRST_STATE);
    struct hash32 stored;
    struct hash32 hash;
    bool good;

    if (shown->step > 0) {
        good = stands(segment, length, shown->step - 1, &shown->pre_state, &shown->pre_path);
    } else if (segment->index > 0) {
        hash = game_segment_hash(&dispute->claim.job, &shown->previous);
        TRY(local_get_segment(game->store, &stored, &dispute->claim.job, segment->index - 1));
        if (!hash32_equal(&hash, &stored)) {
            return refuse_case(game, GAME_CASE_PREVIOUS);
        }
        good = stands(&shown->previous, length, shown->previous.steps - 1, &shown->pre_state,
                      &shown->pre_path);
    } else {
        good = digest_equal(&shown->pre_state, &first) && shown->pre_path.sibling_count == 0;
    }
    return good ? STATUS_OK : refuse_case(game, GAME_CASE_PRE_STATE);
}

/* Does the segment end a training that is said to have diverged? */
static enum status find_diverged(struct local_game *game, bool *diverged,
                                 const struct local_dispute *dispute)
{
    struct hash32 last;

    *diverged = false;
    if (!dispute->job.ended) {
        return STATUS_OK;
    }
    TRY(local_get_segment(game->store, &last, &dispute->claim.job, dispute->job.committed - 1));
    *diverged = hash32_equal(&last, &dispute->claim.segment);
    return STATUS_OK;
}

static enum status find_trace_root(struct local_game *game, struct digest *root,
                                   const struct local_dispute *dispute)
{
    struct local_attestation attestation;

    *root = dispute->claim.trace_root;
    if (is_attestor(dispute)) {
        TRY(local_get_attestation(game->store, &attestation, &dispute->claim.segment,
                                  &dispute->claim.attestor));
        memcpy(root->bytes, attestation.value.bytes, DIGEST_SIZE);
    }
    return STATUS_OK;
}

/* Checks that it is the claimant's turn and that the case is what was committed. */
static enum status open_case(struct local_game *game, struct local_dispute *dispute,
                             struct evidence_context *context, const struct game_move *move)
{
    const struct game_case *shown = &move->shown;
    uint64_t length = endian_load_be64(shown->job_header + HEADER_SEGMENT_LENGTH);
    bool diverged;

    TRY(local_require_tried(game, dispute, &move->key));
    TRY(require_turn(game, dispute, GAME_TURN_CLAIMANT, &dispute->claim.claimant));
    TRY(check_subject(game, dispute, shown));
    TRY(check_pre_state(game, dispute, shown, length));
    if (!stands(&shown->segment, length, shown->step, &shown->post_state, &shown->post_path)) {
        return refuse_case(game, GAME_CASE_POST_STATE);
    }
    TRY(find_diverged(game, &diverged, dispute));
    *context = (struct evidence_context){
        .program = header_root(shown, HEADER_PROGRAM),
        .constants = header_root(shown, HEADER_CONSTANTS),
        .data = header_root(shown, HEADER_DATA),
        .before = shown->pre_state,
        .after = shown->post_state,
        .attestor = is_attestor(dispute),
        .diverged = diverged && shown->step + 1 == shown->segment.steps,
    };
    return find_trace_root(game, &context->trace, dispute);
}

/* ---- the moves -------------------------------------------------------------------- */

enum status local_query(struct local_game *game, const struct game_move *move)
{
    struct local_dispute dispute = {0};
    struct evidence_context context;
    struct local_trial trial;
    struct ledger_queried queried;
    size_t size;

    TRY(open_case(game, &dispute, &context, move));
    if (ledger_query_check(&queried, &context, move->payload.bytes, move->payload.size) !=
        VERDICT_VALID) {
        return local_refuse(game, GAME_BAD_QUERY, 0);
    }
    size = ledger_queried_write(game->queried, &queried);
    TRY(local_get_trial(game->store, &trial, dispute.key));
    trial.said = keccak256(game->queried, size);
    TRY(local_put_trial(game->store, &trial, dispute.key));
    local_dispute_event(game, GAME_QUERIED, &dispute)->payload =
        (struct game_bytes){game->queried, size};
    return local_give_turn(game, &dispute, GAME_TURN_ACCUSED);
}

/* The reply about a divergence is evidence that would convict a job that hides one. */
static enum status check_divergence(bool *good, struct local_game *game,
                                    const struct ledger_queried *queried,
                                    const struct game_bytes *reply)
{
    const struct evidence_context context = {.program = queried->program,
                                             .after = queried->target.known};
    struct evidence_ruling ruling;

    TRY(evidence_judge(&ruling, &context, reply->bytes, reply->size, game->store->error));
    *good = ruling.answer == EVIDENCE_UPHELD && reply->bytes[0] == EVIDENCE_NOT_FINITE;
    return STATUS_OK;
}

/* Is the reply right? *said is kept of it: evidence may need the parts that it has. */
static enum status check_told(bool *good, struct hash32 *said, struct local_game *game,
                              const struct game_move *move)
{
    const struct game_bytes *payload = &move->payload;
    struct partial_sums_reply parts;
    struct digest hash;
    struct ledger_queried queried;
    struct trace_reply reply;

    *good = false;
    memset(said, 0, sizeof(*said));
    if (ledger_queried_read(&queried, move->queried.bytes, move->queried.size) != STATUS_OK) {
        return STATUS_OK;
    }
    switch (queried.query.kind) {
    case TRACE_QUERY_DIVERGED:
        return check_divergence(good, game, &queried, payload);
    case TRACE_QUERY_PARTS:
        partial_sums_reply_hash(&hash, move->queried.bytes, move->queried.size, payload->bytes,
                                payload->size);
        memcpy(said->bytes, hash.bytes, sizeof(said->bytes));
        *good = partial_sums_check(&parts, &queried.parts, payload->bytes, payload->size) ==
                VERDICT_VALID;
        return STATUS_OK;
    case TRACE_QUERY_LIST:
    case TRACE_QUERY_LIST_NODE:
    case TRACE_QUERY_TENSOR:
    case TRACE_QUERY_TENSOR_NODE:
        break;
    }
    *good =
        trace_reply_check(&reply, &queried.target, payload->bytes, payload->size) == VERDICT_VALID;
    return STATUS_OK;
}

enum status local_reply(struct local_game *game, const struct game_move *move)
{
    struct local_dispute dispute = {0};
    struct local_trial trial;
    bool good;
    struct hash32 hash;

    TRY(local_require_tried(game, &dispute, &move->key));
    TRY(require_turn(game, &dispute, GAME_TURN_ACCUSED,
                     is_attestor(&dispute) ? &dispute.claim.attestor : &dispute.job.solver));
    TRY(local_get_trial(game->store, &trial, dispute.key));
    hash = keccak256(move->queried.bytes, move->queried.size);
    if (!hash32_equal(&hash, &trial.said)) {
        return local_refuse(game, GAME_NOT_QUERIED, 0);
    }
    TRY(check_told(&good, &trial.said, game, move));
    if (!good) {
        return local_refuse(game, GAME_BAD_REPLY, 0);
    }
    TRY(local_put_trial(game->store, &trial, dispute.key));
    local_dispute_event(game, GAME_REPLIED, &dispute)->payload = move->payload;
    return local_give_turn(game, &dispute, GAME_TURN_CLAIMANT);
}

enum status local_convict(struct local_game *game, const struct game_move *move)
{
    struct local_dispute dispute = {0};
    struct evidence_context context;
    struct evidence_ruling ruling;
    struct local_trial trial;

    TRY(open_case(game, &dispute, &context, move));
    TRY(local_get_trial(game->store, &trial, dispute.key));
    memcpy(context.reply.bytes, trial.said.bytes, DIGEST_SIZE);
    TRY(evidence_judge(&ruling, &context, move->payload.bytes, move->payload.size,
                       game->store->error));
    switch (ruling.answer) {
    case EVIDENCE_REFUSED:
        return local_refuse(game, GAME_BAD_EVIDENCE, 0);
    case EVIDENCE_NOT_GUILTY:
        return local_refuse(game, GAME_NOT_GUILTY, 0);
    case EVIDENCE_UPHELD:
        break;
    }
    return local_end_claim(game, &dispute, true);
}
