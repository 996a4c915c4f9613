/* local_game.c - see local_game.h: the moves of client, solver, verifiers and anybody. */
#include "chain/local/local_game.h"

#include <assert.h>
#include <string.h>

#include "chain/codec/abi.h"
#include "chain/local/local_rules.h"

/* Refunds the escrow of segments that will never be final. */
static enum status refund_rest(struct local_game *game, const struct local_job *job)
{
    const struct game_terms *terms = &job->terms;
    wei rest = job->segments - job->finalized;

    return local_credit(game, &job->client,
                        rest * (terms->segment_reward + (wei)terms->attestors * terms->attest_fee));
}

/* ---- the client ------------------------------------------------------------- */

static bool period_is_good(uint32_t period_s)
{
    return period_s > 0 && period_s <= GAME_PERIOD_MAX;
}

/* The position in Terms of the first term that is out of range; -1 when all are good. The order is
 * that of Registry.sol. */
static int find_bad_term(const struct game_terms *terms, uint64_t now_s)
{
    static const struct digest zero;
    const struct {
        bool good;
        int field;
    } checks[] = {
        {!digest_equal(&terms->job_id, &zero), 0},
        {terms->steps > 0 && terms->steps <= GAME_TIME_MAX, 5},
        {terms->segment_steps > 0 && terms->segment_steps <= GAME_PERIOD_MAX, 6},
        {game_segment_count(terms) > 0, 6},
        {terms->segment_reward > 0 && terms->segment_reward <= WEI_MAX, 7},
        {terms->attest_fee <= WEI_MAX, 8},
        {terms->stake > 0 && terms->stake <= WEI_MAX, 9},
        {terms->claim_bond > 0 && terms->claim_bond <= terms->stake, 10},
        {terms->attestors <= GAME_ATTESTORS_MAX, 12},
        {terms->attest_bond <= WEI_MAX && (terms->attest_bond > 0 || terms->attestors == 0), 11},
        {terms->coverage_ppm <= GAME_PPM && (terms->coverage_ppm == 0 || terms->attestors > 0), 13},
        {period_is_good(terms->segment_period_s), 14},
        {period_is_good(terms->attest_period_s), 15},
        {period_is_good(terms->reveal_period_s), 16},
        {period_is_good(terms->claim_period_s), 17},
        {period_is_good(terms->response_period_s), 18},
        {terms->deadline_s > now_s && terms->deadline_s <= GAME_TIME_MAX / 2, 19},
    };

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        if (!checks[i].good) {
            return checks[i].field;
        }
    }
    return game_escrow(terms) > WEI_MAX ? 7 : -1;
}

static enum status play_open(struct local_game *game, const struct game_move *move)
{
    int bad_term = find_bad_term(&move->terms, game->now_s);
    struct local_job job = {0};
    struct game_event *event;
    struct hash32 key;

    if (bad_term >= 0) {
        return local_refuse(game, GAME_BAD_TERMS, (wei)bad_term);
    }
    if (move->value != game_escrow(&move->terms)) {
        return local_refuse(game, GAME_WRONG_VALUE, game_escrow(&move->terms));
    }
    key = game_job_key(&game->place, &game->sender, &move->terms.job_id, move->terms.salt);
    TRY(local_get_job(game->store, &job, &key));
    if (job.phase != GAME_PHASE_NONE) {
        return local_refuse(game, GAME_JOB_EXISTS, 0);
    }

    job.phase = GAME_PHASE_OPEN;
    job.client = game->sender;
    job.segments = game_segment_count(&move->terms);
    job.terms = move->terms;
    event = local_event(game, GAME_OPENED, &key);
    event->account = game->sender;
    event->terms = move->terms;
    return local_put_job(game->store, &job, &key);
}

static enum status play_cancel(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};

    TRY(local_get_job(game->store, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_OPEN));
    if (!address_equal(&game->sender, &job.client)) {
        return local_refuse_other(game, &job.client);
    }

    TRY(refund_rest(game, &job));
    job.phase = GAME_PHASE_CLOSED;
    (void)local_event(game, GAME_CANCELLED, &move->key);
    return local_put_job(game->store, &job, &move->key);
}

/* ---- the solver ------------------------------------------------------------- */

static uint64_t due_from_now(const struct local_game *game, const struct local_job *job)
{
    uint64_t due_s = game->now_s + job->terms.segment_period_s;

    return due_s < job->terms.deadline_s ? due_s : job->terms.deadline_s;
}

static enum status play_accept(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct game_event *event;

    TRY(local_get_job(game->store, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_OPEN));
    TRY(local_require_not_after(game, job.terms.deadline_s));
    if (move->value != job.terms.stake) {
        return local_refuse(game, GAME_WRONG_VALUE, job.terms.stake);
    }

    job.phase = GAME_PHASE_RUNNING;
    job.solver = game->sender;
    job.due_s = due_from_now(game, &job);
    event = local_event(game, GAME_ACCEPTED, &move->key);
    event->account = game->sender;
    event->time_s = job.due_s;
    return local_put_job(game->store, &job, &move->key);
}

static uint32_t segment_steps(const struct local_job *job, uint32_t index)
{
    uint64_t rest = job->terms.steps - (uint64_t)index * job->terms.segment_steps;

    return rest < job->terms.segment_steps ? (uint32_t)rest : job->terms.segment_steps;
}

static enum status require_may_commit(struct local_game *game, const struct local_job *job,
                                      const struct game_move *move)
{
    static const struct digest zero;

    TRY(local_require_phase(game, job, GAME_PHASE_RUNNING));
    if (!address_equal(&game->sender, &job->solver)) {
        return local_refuse_other(game, &job->solver);
    }
    if (move->index != job->committed) {
        return local_refuse(game, GAME_WRONG_INDEX, job->committed);
    }
    if (move->index >= job->segments || job->ended) {
        return local_refuse(game, GAME_WRONG_INDEX, job->segments);
    }
    TRY(local_require_not_after(game, job->due_s));
    return digest_equal(&move->root, &zero) ? local_refuse(game, GAME_ZERO_ROOT, 0) : STATUS_OK;
}

static enum status play_commit(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct game_event *event;
    struct hash32 hash;
    uint32_t steps;
    bool diverged = move->kind == GAME_COMMIT_DIVERGED;

    TRY(local_get_job(game->store, &job, &move->key));
    TRY(require_may_commit(game, &job, move));
    steps = segment_steps(&job, move->index);
    if (diverged && (move->steps == 0 || move->steps > steps)) {
        return local_refuse(game, GAME_WRONG_STEPS, steps);
    }

    job.ended = diverged;
    event = local_event(game, GAME_COMMITTED, &move->key);
    event->segment = (struct game_segment){.index = move->index,
                                           .generation = job.generation,
                                           .root = move->root,
                                           .steps = diverged ? move->steps : steps,
                                           .time_s = game->now_s,
                                           .height = game->height,
                                           .solver = game->sender};
    event->index = move->index;
    event->flag = diverged;
    hash = game_segment_hash(&move->key, &event->segment);
    TRY(local_put_segment(game->store, &hash, &move->key, move->index));
    job.committed = move->index + 1;
    job.due_s = due_from_now(game, &job);
    return local_put_job(game->store, &job, &move->key);
}

/* ---- verifiers -------------------------------------------------------------- */

/* See _draw in Registry.sol. Changes the tally in memory; the caller stores it. */
static enum status draw(struct local_game *game, struct local_segment *segment,
                        const struct local_job *job, const struct hash32 *key)
{
    uint64_t height = segment->shown->height;
    uint8_t bytes[2 * HASH32_SIZE];
    struct game_event *event;
    struct hash32 entropy;
    struct uint256 number;
    struct uint256 quotient;
    bool late;

    if (!hash32_is_zero(&segment->tally.seed)) {
        return STATUS_OK;
    }
    if (game->height <= height + 1) {
        return local_refuse(game, GAME_TOO_EARLY, (wei)height + 2);
    }
    TRY(game->block_hash(game->context, &entropy, height + 1));
    late = hash32_is_zero(&entropy);
    if (late) {
        TRY(game->block_hash(game->context, &entropy, game->height - 1));
    }
    memcpy(bytes, entropy.bytes, HASH32_SIZE);
    memcpy(bytes + HASH32_SIZE, segment->hash.bytes, HASH32_SIZE);
    segment->tally.seed = keccak256(bytes, sizeof(bytes));
    number = uint256_from_bytes(segment->tally.seed.bytes);
    segment->tally.mandatory =
        job->terms.coverage_ppm > 0 &&
        (late || uint256_divide(&quotient, &number, GAME_PPM) < job->terms.coverage_ppm);
    event = local_event(game, GAME_DRAWN, key);
    event->index = segment->shown->index;
    event->seal = segment->tally.seed;
    event->flag = segment->tally.mandatory;
    return STATUS_OK;
}

static enum status find_mandatory(struct local_game *game, bool *mandatory,
                                  struct local_segment *segment, const struct local_job *job,
                                  const struct hash32 *key)
{
    *mandatory = job->terms.coverage_ppm == GAME_PPM;
    if (job->terms.coverage_ppm > 0 && job->terms.coverage_ppm < GAME_PPM) {
        TRY(draw(game, segment, job, key));
        *mandatory = segment->tally.mandatory;
    }
    return STATUS_OK;
}

static enum status play_draw(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct local_segment segment = {0};

    TRY(local_get_job(game->store, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_RUNNING));
    TRY(local_require_standing(game, &segment, move, &job));
    TRY(draw(game, &segment, &job, &move->key));
    return local_put_tally(game->store, &segment.tally, &segment.hash);
}

static enum status require_may_attest(struct local_game *game, struct local_segment *segment,
                                      struct local_attestation *attestation,
                                      const struct local_job *job, const struct game_move *move)
{
    TRY(local_require_phase(game, job, GAME_PHASE_RUNNING));
    TRY(local_require_standing(game, segment, move, job));
    if (move->value != job->terms.attest_bond) {
        return local_refuse(game, GAME_WRONG_VALUE, job->terms.attest_bond);
    }
    if (address_equal(&game->sender, &move->segment.solver)) {
        return local_refuse(game, GAME_SELF_DEALING, 0);
    }
    TRY(draw(game, segment, job, &move->key));
    TRY(local_require_not_after(game, local_round_start(segment) + job->terms.attest_period_s));
    if (segment->tally.attested + segment->tally.revealed >= job->terms.attestors) {
        return local_refuse(game, GAME_FULL, 0);
    }
    TRY(local_get_attestation(game->store, attestation, &segment->hash, &game->sender));
    return attestation->phase == GAME_ATTESTATION_NONE
               ? STATUS_OK
               : local_refuse(game, GAME_ALREADY_ATTESTED, 0);
}

static enum status play_attest(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct local_segment segment = {0};
    struct local_attestation attestation = {0};
    struct game_event *event;

    TRY(local_get_job(game->store, &job, &move->key));
    TRY(require_may_attest(game, &segment, &attestation, &job, move));

    segment.tally.attested++;
    attestation.phase = GAME_ATTESTATION_SEALED;
    attestation.round = segment.tally.round;
    attestation.value = move->seal;
    event = local_event(game, GAME_ATTESTED, &move->key);
    event->index = move->segment.index;
    event->account = game->sender;
    event->seal = move->seal;
    event->step = game_sampled_step(&segment.tally.seed, &game->sender, move->segment.steps);
    TRY(local_put_attestation(game->store, &attestation, &segment.hash, &game->sender));
    return local_put_tally(game->store, &segment.tally, &segment.hash);
}

static enum status require_may_reveal(struct local_game *game, struct local_segment *segment,
                                      struct local_attestation *attestation,
                                      const struct local_job *job, const struct game_move *move)
{
    struct hash32 seal;
    uint64_t start_s;

    TRY(local_require_phase(game, job, GAME_PHASE_RUNNING));
    TRY(local_require_standing(game, segment, move, job));
    TRY(local_get_attestation(game->store, attestation, &segment->hash, &game->sender));
    if (attestation->phase != GAME_ATTESTATION_SEALED) {
        return local_refuse(game, GAME_NOT_SEALED, 0);
    }
    start_s = local_round_start(segment) + job->terms.attest_period_s;
    if (attestation->round != segment->tally.round) {
        return local_refuse(game, GAME_TOO_LATE, start_s);
    }
    TRY(local_require_after(game, start_s));
    TRY(local_require_not_after(game, start_s + job->terms.reveal_period_s));
    seal = game_attest_seal(&game->sender, &segment->hash, &move->root);
    return hash32_equal(&seal, &attestation->value) ? STATUS_OK
                                                    : local_refuse(game, GAME_WRONG_REVEAL, 0);
}

static enum status play_reveal(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct local_segment segment = {0};
    struct local_attestation attestation = {0};
    struct game_event *event;

    TRY(local_get_job(game->store, &job, &move->key));
    TRY(require_may_reveal(game, &segment, &attestation, &job, move));

    attestation.phase = GAME_ATTESTATION_REVEALED;
    memcpy(attestation.value.bytes, move->root.bytes, HASH32_SIZE);
    segment.tally.attested--;
    segment.tally.revealed++;
    event = local_event(game, GAME_REVEALED, &move->key);
    event->index = move->segment.index;
    event->account = game->sender;
    event->root = move->root;
    TRY(local_put_attestation(game->store, &attestation, &segment.hash, &game->sender));
    return local_put_tally(game->store, &segment.tally, &segment.hash);
}

/* ---- anybody ---------------------------------------------------------------- */

static enum status play_renew(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct local_segment segment = {0};
    struct game_event *event;
    bool mandatory;

    TRY(local_get_job(game->store, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_RUNNING));
    TRY(local_require_standing(game, &segment, move, &job));
    if (move->segment.index < job.finalized) {
        return local_refuse(game, GAME_WRONG_INDEX, job.finalized);
    }
    TRY(local_require_not_after(game, job.terms.deadline_s));
    TRY(local_require_after(game, local_round_start(&segment) + job.terms.attest_period_s +
                                      job.terms.reveal_period_s));
    TRY(find_mandatory(game, &mandatory, &segment, &job, &move->key));
    if (!mandatory || segment.tally.revealed >= job.terms.attestors) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }

    segment.tally.round++;
    segment.tally.attested = 0;
    segment.tally.start_s = game->now_s;
    event = local_event(game, GAME_RENEWED, &move->key);
    event->index = move->segment.index;
    event->time_s = game->now_s;
    return local_put_tally(game->store, &segment.tally, &segment.hash);
}

static enum status close_if_complete(struct local_game *game, struct local_job *job,
                                     const struct hash32 *key)
{
    bool complete =
        job->finalized == job->segments || (job->ended && job->finalized == job->committed);

    if (!complete) {
        return STATUS_OK;
    }
    TRY(local_credit(game, &job->solver, job->terms.stake));
    TRY(refund_rest(game, job));
    job->phase = GAME_PHASE_CLOSED;
    local_event(game, GAME_CLOSED, key)->index = job->finalized;
    return STATUS_OK;
}

static enum status require_may_finalize(struct local_game *game, struct local_segment *segment,
                                        const struct local_job *job, const struct game_move *move)
{
    bool mandatory;

    TRY(local_require_phase(game, job, GAME_PHASE_RUNNING));
    TRY(local_require_standing(game, segment, move, job));
    if (move->segment.index != job->finalized) {
        return local_refuse(game, GAME_WRONG_INDEX, job->finalized);
    }
    TRY(local_require_after(game, local_claim_end(job, segment)));
    if (segment->tally.open_claims != 0) {
        return local_refuse(game, GAME_CLAIMS_OPEN, segment->tally.open_claims);
    }
    TRY(find_mandatory(game, &mandatory, segment, job, &move->key));
    if (mandatory && segment->tally.revealed < job->terms.attestors) {
        return local_refuse(game, GAME_COVERAGE_MISSING, segment->tally.revealed);
    }
    return STATUS_OK;
}

static enum status play_finalize(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct local_segment segment = {0};
    wei unused;

    TRY(local_get_job(game->store, &job, &move->key));
    TRY(require_may_finalize(game, &segment, &job, move));

    job.finalized++;
    unused = (wei)job.terms.attestors - segment.tally.revealed;
    TRY(local_credit(game, &job.solver, job.terms.segment_reward));
    TRY(local_credit(game, &job.client, unused * job.terms.attest_fee));
    local_event(game, GAME_FINALIZED, &move->key)->index = move->segment.index;
    TRY(close_if_complete(game, &job, &move->key));
    TRY(local_put_tally(game->store, &segment.tally, &segment.hash));
    return local_put_job(game->store, &job, &move->key);
}

static enum status play_settle(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct local_segment segment = {0};
    struct local_attestation attestation = {0};
    struct game_event *event;
    struct address payee = move->account;
    wei amount;

    TRY(local_get_job(game->store, &job, &move->key));
    TRY(local_find_segment(game, &segment, move, &job));
    TRY(local_get_attestation(game->store, &attestation, &segment.hash, &move->account));
    amount = job.terms.attest_bond;
    if (attestation.phase == GAME_ATTESTATION_NONE ||
        attestation.phase == GAME_ATTESTATION_CLOSED) {
        return local_refuse(game, GAME_NOT_SEALED, 0);
    }
    if (segment.stands && attestation.phase == GAME_ATTESTATION_SEALED) {
        if (attestation.round == segment.tally.round) {
            TRY(local_require_after(game, local_round_start(&segment) + job.terms.attest_period_s +
                                              job.terms.reveal_period_s));
        }
        payee = move->segment.solver;
    } else if (segment.stands) {
        if (move->segment.index >= job.finalized) {
            return local_refuse(game, GAME_WRONG_INDEX, job.finalized);
        }
        amount += job.terms.attest_fee;
    }

    attestation.phase = GAME_ATTESTATION_CLOSED;
    TRY(local_credit(game, &payee, amount));
    event = local_event(game, GAME_SETTLED, &move->key);
    event->index = move->segment.index;
    event->account = move->account;
    event->other = payee;
    event->amount = amount;
    return local_put_attestation(game->store, &attestation, &segment.hash, &move->account);
}

static enum status play_release(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct game_event *event;
    wei penalty;

    TRY(local_get_job(game->store, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_RUNNING));
    TRY(local_require_after(game, job.due_s));
    if (job.committed != job.finalized) {
        return local_refuse(game, GAME_WRONG_INDEX, job.finalized);
    }

    penalty = job.terms.stake / GAME_LATE_SHARE;
    TRY(local_credit(game, &job.client, penalty));
    TRY(local_credit(game, &job.solver, job.terms.stake - penalty));
    event = local_event(game, GAME_RELEASED, &move->key);
    event->account = job.solver;
    event->amount = penalty;
    job.phase = GAME_PHASE_OPEN;
    memset(&job.solver, 0, sizeof(job.solver));
    return local_put_job(game->store, &job, &move->key);
}

static enum status play_expire(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    uint64_t end_s;

    TRY(local_get_job(game->store, &job, &move->key));
    if (job.phase != GAME_PHASE_OPEN && job.phase != GAME_PHASE_RUNNING) {
        return local_refuse(game, GAME_WRONG_PHASE, job.phase);
    }
    end_s = job.terms.deadline_s;
    if (job.phase == GAME_PHASE_RUNNING) {
        end_s += (uint64_t)job.terms.attest_period_s + job.terms.reveal_period_s +
                 job.terms.claim_period_s;
    }
    TRY(local_require_after(game, end_s));
    if (job.open_claims != 0) {
        return local_refuse(game, GAME_CLAIMS_OPEN, job.open_claims);
    }

    if (job.phase == GAME_PHASE_RUNNING) {
        TRY(local_credit(game, &job.solver, job.terms.stake));
        local_void_committed(&job);
    }
    TRY(refund_rest(game, &job));
    job.phase = GAME_PHASE_CLOSED;
    local_event(game, GAME_CLOSED, &move->key)->index = job.finalized;
    return local_put_job(game->store, &job, &move->key);
}

static enum status play_withdraw(struct local_game *game, const struct game_move *move)
{
    struct local_account account;
    struct game_event *event;
    wei amount;

    TRY(local_get_account(game->store, &account, &game->sender));
    amount = account.owed;
    if (amount == 0) {
        return local_refuse(game, GAME_NOTHING_OWED, 0);
    }
    if (address_is_zero(&move->account)) {
        return local_refuse(game, GAME_ZERO_ADDRESS, 0);
    }

    account.owed = 0;
    TRY(local_put_account(game->store, &account, &game->sender));
    event = local_event(game, GAME_WITHDRAWN, NULL);
    event->account = game->sender;
    event->other = move->account;
    event->amount = amount;
    TRY(local_get_account(game->store, &account, &move->account));
    account.purse += amount;
    return local_put_account(game->store, &account, &move->account);
}

/* ---- all moves -------------------------------------------------------------- */

static const struct {
    enum status (*play)(struct local_game *game, const struct game_move *move);
    bool payable;
} rules[GAME_MOVE_KINDS] = {
    [GAME_OPEN] = {play_open, true},
    [GAME_CANCEL] = {play_cancel, false},
    [GAME_ACCEPT] = {play_accept, true},
    [GAME_COMMIT] = {play_commit, false},
    [GAME_COMMIT_DIVERGED] = {play_commit, false},
    [GAME_ANSWER] = {local_answer, false},
    [GAME_DRAW] = {play_draw, false},
    [GAME_ATTEST] = {play_attest, true},
    [GAME_REVEAL] = {play_reveal, false},
    [GAME_SEAL_CLAIM] = {local_seal_claim, false},
    [GAME_CLAIM] = {local_claim, true},
    [GAME_ACCUSE] = {local_accuse, true},
    [GAME_PASS_TURN] = {local_pass_turn, false},
    [GAME_RULE] = {local_rule, false},
    [GAME_TIMEOUT] = {local_timeout, false},
    [GAME_LAPSE] = {local_lapse, false},
    [GAME_RENEW] = {play_renew, false},
    [GAME_FINALIZE] = {play_finalize, false},
    [GAME_SETTLE] = {play_settle, false},
    [GAME_RELEASE] = {play_release, false},
    [GAME_EXPIRE] = {play_expire, false},
    [GAME_WITHDRAW] = {play_withdraw, false},
    [GAME_QUERY] = {local_query, false},
    [GAME_REPLY] = {local_reply, false},
    [GAME_CONVICT] = {local_convict, false},
};

enum status local_game_play(struct local_game *game, const struct game_move *move)
{
    game->event_count = 0;
    memset(&game->refusal, 0, sizeof(game->refusal));
    if (move->value != 0 && !rules[move->kind].payable) {
        return local_refuse(game, GAME_REFUSED_NOT, 0);
    }
    if (game_move_is_of_referee(move->kind) && !game->judges) {
        return local_refuse(game, GAME_REFUSED_NOT, 0); /* an account judges, not the ledger */
    }
    if (move->kind == GAME_PASS_TURN && move->turn > GAME_TURN_ACCUSED) {
        return local_refuse(game, GAME_REFUSED_NOT, 0);
    }
    return rules[move->kind].play(game, move);
}
