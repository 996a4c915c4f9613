/*
 * local_referee.c - the embedded referee: the twin of chain/contracts/Referee.sol.
 *
 * Checks whose move it is and what it is about, in the order of the contract. evidence_judge and
 * ledger_query in proofs/dispute compute what bytes prove.
 *
 * Tour 10 of 10: chain/contracts/Referee.sol says the same on a chain.
 */
#include <string.h>

#include "chain/local/local_rules.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/leaf_proof.h"
#include "proofs/dispute/evidence.h"
#include "proofs/job/job.h"

static struct digest header_root(const uint8_t header[GAME_JOB_HEADER_SIZE], size_t place)
{
    struct digest root;

    memcpy(root.bytes, header + place, DIGEST_SIZE);
    return root;
}

static enum status refuse_case(struct local_game *game, enum game_case_part part)
{
    return local_refuse(game, GAME_WRONG_CASE, part);
}

/* ---- the case ------------------------------------------------------------------- */

/* The key of the job that a header is of. */
static struct hash32 job_of(const struct local_game *game, const struct address *client,
                            uint64_t salt, const uint8_t header[GAME_JOB_HEADER_SIZE])
{
    struct digest job_id;

    commit_job_id(&job_id, header, GAME_JOB_HEADER_SIZE);
    return game_job_key(&game->place, client, &job_id, salt);
}

/* Is the state the one after this step of the segment, by the segment's root? */
static bool state_stands(const struct game_segment *segment, uint64_t first, uint32_t step,
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
    commit_list_root_of(&root, COMMIT_SEGMENT, first, segment->steps, &root);
    return digest_equal(&root, &segment->root);
}

static enum status check_pre_state(struct local_game *game, const struct local_segment *segment,
                                   const struct game_case *shown, uint64_t first)
{
    const struct digest first_state = header_root(shown->job_header, JOB_AT_FIRST_STATE);
    const struct game_segment *previous = &shown->previous;
    struct hash32 stored;
    struct hash32 hash;
    bool good;

    if (shown->step > 0) {
        good = state_stands(&shown->segment, first, shown->step - 1, &shown->pre_state,
                            &shown->pre_path);
    } else if (shown->segment.index > 0) {
        hash = game_segment_hash(segment->key, previous);
        TRY(local_get(game->store, &stored, LOCAL_SEGMENT, segment->key, shown->segment.index - 1));
        if (!hash32_equal(&hash, &stored)) {
            return refuse_case(game, GAME_CASE_PREVIOUS);
        }
        /* Only the last segment of a job can be short. */
        good = state_stands(previous, first - previous->steps, previous->steps - 1,
                            &shown->pre_state, &shown->pre_path);
    } else {
        good = digest_equal(&shown->pre_state, &first_state) && shown->pre_path.sibling_count == 0;
    }
    return good ? STATUS_OK : refuse_case(game, GAME_CASE_PRE_STATE);
}

enum status local_check_case(struct local_game *game, const struct local_segment *segment,
                             const struct game_case *shown)
{
    const uint64_t first = local_first_step(&segment->job, shown->segment.index);
    struct hash32 key = job_of(game, &shown->client, shown->salt, shown->job_header);

    if (!hash32_equal(&key, segment->key)) {
        return refuse_case(game, GAME_CASE_JOB);
    }
    if (shown->step >= shown->segment.steps) {
        return local_refuse(game, GAME_WRONG_STEPS, (wei)shown->segment.steps - 1);
    }
    TRY(check_pre_state(game, segment, shown, first));
    if (!state_stands(&shown->segment, first, shown->step, &shown->post_state, &shown->post_path)) {
        return refuse_case(game, GAME_CASE_POST_STATE);
    }
    return STATUS_OK;
}

/* Is it the job, the step and the states of the dispute? */
static enum status open_subject(struct local_game *game, struct evidence_context *context,
                                const struct local_dispute *dispute,
                                const struct game_subject *shown)
{
    struct hash32 key = job_of(game, &shown->client, shown->salt, shown->job_header);

    if (!hash32_equal(&key, &dispute->job)) {
        return refuse_case(game, GAME_CASE_JOB);
    }
    key = game_subject_hash(&dispute->segment, shown->step, &shown->pre_state, &shown->post_state);
    if (!hash32_equal(&key, &dispute->subject)) {
        return refuse_case(game, GAME_CASE_SUBJECT);
    }
    *context = (struct evidence_context){
        .program = header_root(shown->job_header, JOB_AT_PROGRAM),
        .constants = header_root(shown->job_header, JOB_AT_CONSTANTS),
        .data = header_root(shown->job_header, JOB_AT_DATA),
        .before = shown->pre_state,
        .after = shown->post_state,
        .trace = dispute->trace_root,
        .batch = dispute->batch_root,
        .diverged = dispute->diverged,
    };
    memcpy(context->reply.bytes, dispute->said.bytes, DIGEST_SIZE);
    return STATUS_OK;
}

/* ---- the moves -------------------------------------------------------------------- */

enum status local_query(struct local_game *game, const struct game_move *move)
{
    struct local_trial trial = {0};
    struct local_dispute *dispute = &trial.dispute;
    struct evidence_context context;
    struct ledger_queried queried;
    size_t size;

    TRY(local_require_tried(game, &trial, &move->key, GAME_TURN_CLAIMANT));
    if (dispute->queries == GAME_QUERIES_MAX) {
        return local_refuse(game, GAME_FULL, GAME_QUERIES_MAX);
    }
    TRY(open_subject(game, &context, dispute, &move->subject));
    TRY(local_require_value(game, move, dispute->query_fee));
    if (ledger_query_check(&queried, &context, move->payload.bytes, move->payload.size) !=
        VERDICT_VALID) {
        return local_refuse(game, GAME_BAD_QUERY, 0);
    }
    size = ledger_queried_write(game->queried, &queried);
    dispute->said = keccak256(game->queried, size);
    dispute->queries++;
    local_claim_event(game, GAME_QUERIED, trial.key)->payload =
        (struct game_bytes){game->queried, size};
    return local_pass_turn(game, &trial);
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

/* Is the reply right? The dispute keeps of it what evidence may need: the hash of the parts that it
 * has, or the root of a micro-batch that it commits to. */
static enum status check_told(bool *good, struct local_dispute *dispute, struct local_game *game,
                              const struct game_move *move)
{
    const struct game_bytes *payload = &move->payload;
    struct partial_sums_reply parts;
    struct digest hash;
    struct ledger_queried queried;
    struct trace_reply reply;

    *good = false;
    memset(&dispute->said, 0, sizeof(dispute->said));
    if (ledger_queried_read(&queried, move->queried.bytes, move->queried.size) != STATUS_OK) {
        return STATUS_OK;
    }
    switch (queried.query.kind) {
    case TRACE_QUERY_DIVERGED:
        return check_divergence(good, game, &queried, payload);
    case TRACE_QUERY_PARTS:
        partial_sums_reply_hash(&hash, move->queried.bytes, move->queried.size, payload->bytes,
                                payload->size);
        memcpy(dispute->said.bytes, hash.bytes, DIGEST_SIZE);
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
    if (*good && queried.target.is_unknown) {
        dispute->batch_root = reply.root;
    }
    return STATUS_OK;
}

enum status local_reply(struct local_game *game, const struct game_move *move)
{
    struct local_trial trial = {0};
    struct local_dispute *dispute = &trial.dispute;
    struct hash32 hash = keccak256(move->queried.bytes, move->queried.size);
    bool good;

    TRY(local_require_tried(game, &trial, &move->key, GAME_TURN_ACCUSED));
    if (!hash32_equal(&hash, &dispute->said)) {
        return local_refuse(game, GAME_NOT_QUERIED, 0);
    }
    TRY(check_told(&good, dispute, game, move));
    if (!good) {
        return local_refuse(game, GAME_BAD_REPLY, 0);
    }
    TRY(local_credit(game, &dispute->solver, dispute->query_fee));
    local_claim_event(game, GAME_REPLIED, trial.key)->payload = move->payload;
    return local_pass_turn(game, &trial);
}

enum status local_convict(struct local_game *game, const struct game_move *move)
{
    struct local_trial trial = {0};
    struct evidence_context context;
    struct evidence_ruling ruling;

    TRY(local_require_tried(game, &trial, &move->key, GAME_TURN_CLAIMANT));
    TRY(open_subject(game, &context, &trial.dispute, &move->subject));
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
    return local_uphold(game, &trial);
}

/* ---- a false right ---------------------------------------------------------------- */

/* What an honest verdict says of the leaf `which`. */
static enum verdict examine_leaf(struct hash32 *said, const struct local_right *right,
                                 uint32_t which, const struct game_bytes *shown)
{
    const struct local_segment *segment = &right->segment;
    const struct hash32 *seed = &segment->tally.seed;
    const uint32_t steps = segment->shown->steps;
    struct leaf_proof_place place;
    struct leaf_proof proof;
    struct error ignored;

    error_init(&ignored);
    if (leaf_proof_read(&proof, shown->bytes, shown->size, &ignored) != STATUS_OK) {
        return VERDICT_INVALID;
    }
    place = (struct leaf_proof_place){.step = game_right_step(seed, which, steps),
                                      .tensor = game_right_tensor(seed, which, proof.tensors),
                                      .leaf = game_right_leaf(seed, which, proof.leaves)};
    if (leaf_proof_check(&proof, &segment->shown->root,
                         local_first_step(&segment->job, segment->shown->index), steps,
                         &place) != VERDICT_VALID) {
        return VERDICT_INVALID;
    }
    *said = game_right_hash(&right->entry.owner, seed, &segment->hash,
                            &(struct game_right){place.step, place.tensor, place.leaf, proof.leaf});
    return VERDICT_VALID;
}

enum status local_challenge(struct local_game *game, const struct game_move *move)
{
    struct local_right right = {0};
    struct hash32 subject;
    struct hash32 said;

    TRY(local_find_right(game, &right, move));
    subject = game_challenge_hash(&right.segment.hash, move->place, move->index);
    TRY(local_open_seal(game, &subject, &move->seal_salt));
    if (move->index >= GAME_LEAVES) {
        return local_refuse(game, GAME_WRONG_INDEX, GAME_LEAVES);
    }
    if (examine_leaf(&said, &right, move->index, &move->payload) != VERDICT_VALID) {
        return local_refuse(game, GAME_BAD_EVIDENCE, 0);
    }
    if (game_leaves_have(&move->leaves, move->index, &said)) {
        return local_refuse(game, GAME_NOT_GUILTY, 0);
    }
    return local_disprove(game, &right, move->place);
}
