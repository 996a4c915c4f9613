/* local_claims.c - the moves of a dispute: see local_game.h. */
#include <assert.h>
#include <string.h>

#include "chain/local/local_rules.h"

static enum status load(struct local_game *game, struct local_dispute *dispute,
                        const struct hash32 *claim)
{
    dispute->key = claim;
    TRY(local_get_claim(game->store, &dispute->claim, dispute->key));
    return local_get_job(game->store, &dispute->job, &dispute->claim.job);
}

static enum status save(struct local_game *game, const struct local_dispute *dispute)
{
    TRY(local_put_claim(game->store, &dispute->claim, dispute->key));
    return local_put_job(game->store, &dispute->job, &dispute->claim.job);
}

/* Was the accused convicted by another claim? */
static enum status find_moot(struct local_game *game, bool *moot,
                             const struct local_dispute *dispute)
{
    struct local_attestation attestation;

    *moot = dispute->claim.generation != dispute->job.generation;
    if (*moot || address_is_zero(&dispute->claim.attestor)) {
        return STATUS_OK;
    }
    TRY(local_get_attestation(game->store, &attestation, &dispute->claim.segment,
                              &dispute->claim.attestor));
    *moot = attestation.phase != GAME_ATTESTATION_REVEALED;
    return STATUS_OK;
}

static enum status require_alive(struct local_game *game, const struct local_dispute *dispute,
                                 enum game_claim_phase phase)
{
    bool moot;

    TRY(find_moot(game, &moot, dispute));
    if (dispute->claim.phase != phase || moot) {
        return local_refuse(game, GAME_WRONG_PHASE, dispute->claim.phase);
    }
    return STATUS_OK;
}

enum status local_require_tried(struct local_game *game, struct local_dispute *dispute,
                                const struct hash32 *claim)
{
    TRY(load(game, dispute, claim));
    TRY(require_alive(game, dispute, GAME_CLAIM_TRIED));
    return local_require_not_after(game, dispute->claim.deadline_s);
}

static enum status require_referee(struct local_game *game, struct local_dispute *dispute,
                                   const struct hash32 *claim)
{
    if (!address_equal(&game->sender, &game->referee)) {
        return local_refuse_other(game, &game->referee);
    }
    return local_require_tried(game, dispute, claim);
}

struct game_event *local_dispute_event(struct local_game *game, enum game_event_kind kind,
                                       const struct local_dispute *dispute)
{
    struct game_event *event = local_event(game, kind, NULL);

    assert(dispute->key != NULL); /* the claim was loaded */
    event->claim = *dispute->key;
    return event;
}

enum status local_answer(struct local_game *game, const struct game_move *move)
{
    static const struct digest zero;
    struct local_dispute dispute = {0};
    struct game_event *event;

    TRY(load(game, &dispute, &move->key));
    TRY(require_alive(game, &dispute, GAME_CLAIM_CALLED));
    if (!address_equal(&game->sender, &dispute.job.solver)) {
        return local_refuse_other(game, &dispute.job.solver);
    }
    TRY(local_require_not_after(game, dispute.claim.deadline_s));
    if (digest_equal(&move->root, &zero)) {
        return local_refuse(game, GAME_ZERO_ROOT, 0);
    }

    dispute.claim.phase = GAME_CLAIM_TRIED;
    dispute.claim.turn = GAME_TURN_CLAIMANT;
    dispute.claim.trace_root = move->root;
    dispute.claim.deadline_s = local_respond_by(game, &dispute.job);
    event = local_dispute_event(game, GAME_ANSWERED, &dispute);
    event->root = move->root;
    event->time_s = dispute.claim.deadline_s;
    return save(game, &dispute);
}

enum status local_seal_claim(struct local_game *game, const struct game_move *move)
{
    uint64_t height;

    TRY(local_get_seal(game->store, &height, &move->seal));
    if (height != 0) {
        return local_refuse(game, GAME_CLAIM_EXISTS, 0);
    }
    local_event(game, GAME_SEALED, NULL)->seal = move->seal;
    return local_put_seal(game->store, game->height, &move->seal);
}

static enum status open_seal(struct local_game *game, const struct hash32 *seal)
{
    uint64_t height;

    TRY(local_get_seal(game->store, &height, seal));
    if (height == 0) {
        return local_refuse(game, GAME_NOT_SEALED, 0);
    }
    if (game->height <= height) {
        return local_refuse(game, GAME_TOO_EARLY, (wei)height + 1);
    }
    return local_put_seal(game->store, 0, seal);
}

/* Common to claims and accusations. Saves the job and the tally, not the claim. */
static enum status open_claim(struct local_game *game, struct local_dispute *dispute,
                              struct local_segment *segment, const struct game_move *move,
                              const struct hash32 *key)
{
    struct local_job *job = &dispute->job;
    struct hash32 seal = game_claim_seal(key, &move->salt);

    TRY(open_seal(game, &seal));
    TRY(local_get_claim(game->store, &dispute->claim, key));
    if (dispute->claim.phase != GAME_CLAIM_NONE) {
        return local_refuse(game, GAME_CLAIM_EXISTS, 0);
    }
    dispute->key = key;
    dispute->claim.claimant = game->sender;
    dispute->claim.generation = job->generation;
    dispute->claim.deadline_s = local_respond_by(game, job);
    dispute->claim.job = move->key;
    dispute->claim.segment = segment->hash;
    job->open_claims++;
    segment->tally.open_claims++;
    TRY(local_put_job(game->store, job, &move->key));
    return local_put_tally(game->store, &segment->tally, &segment->hash);
}

static enum status require_claimable(struct local_game *game, struct local_dispute *dispute,
                                     struct local_segment *segment, const struct game_move *move,
                                     const struct address *attestor)
{
    struct local_job *job = &dispute->job;

    TRY(local_get_job(game->store, job, &move->key));
    TRY(local_require_phase(game, job, GAME_PHASE_RUNNING));
    TRY(local_require_standing(game, segment, move, job));
    if (move->segment.index < job->finalized) {
        return local_refuse(game, GAME_WRONG_INDEX, job->finalized);
    }
    if (move->value != job->terms.claim_bond) {
        return local_refuse(game, GAME_WRONG_VALUE, job->terms.claim_bond);
    }
    if (address_equal(&game->sender, &move->segment.solver) ||
        address_equal(&game->sender, attestor)) {
        return local_refuse(game, GAME_SELF_DEALING, 0);
    }
    return local_require_not_after(game, local_claim_end(job, segment));
}

static struct game_event *claim_event(struct local_game *game, enum game_event_kind kind,
                                      const struct local_dispute *dispute,
                                      const struct game_move *move)
{
    struct game_event *event = local_event(game, kind, &move->key);

    event->claim = *dispute->key;
    event->index = move->segment.index;
    event->account = game->sender;
    event->time_s = dispute->claim.deadline_s;
    return event;
}

enum status local_claim(struct local_game *game, const struct game_move *move)
{
    static const struct address nobody;
    struct local_dispute dispute = {0};
    struct local_segment segment = {0};
    struct game_event *event;
    struct hash32 key;

    TRY(require_claimable(game, &dispute, &segment, move, &nobody));
    key = game_claim_key(&game->sender, &segment.hash, move->steps, &move->pre_state,
                         &move->post_state);
    TRY(open_claim(game, &dispute, &segment, move, &key));
    if (move->steps >= move->segment.steps) {
        return local_refuse(game, GAME_WRONG_STEPS, (wei)move->segment.steps - 1);
    }

    dispute.claim.phase = GAME_CLAIM_CALLED;
    dispute.claim.turn = GAME_TURN_ACCUSED;
    event = claim_event(game, GAME_CLAIMED, &dispute, move);
    event->step = move->steps;
    event->pre_state = move->pre_state;
    event->post_state = move->post_state;
    return local_put_claim(game->store, &dispute.claim, dispute.key);
}

enum status local_accuse(struct local_game *game, const struct game_move *move)
{
    struct local_dispute dispute = {0};
    struct local_segment segment = {0};
    struct local_attestation attestation;
    struct hash32 key;

    if (address_is_zero(&move->account)) {
        return local_refuse(game, GAME_ZERO_ADDRESS, 0);
    }
    TRY(require_claimable(game, &dispute, &segment, move, &move->account));
    key = game_accusation_key(&game->sender, &segment.hash, &move->account);
    TRY(open_claim(game, &dispute, &segment, move, &key));
    TRY(local_get_attestation(game->store, &attestation, &segment.hash, &move->account));
    if (attestation.phase != GAME_ATTESTATION_REVEALED) {
        return local_refuse(game, GAME_NOT_REVEALED, 0);
    }

    dispute.claim.phase = GAME_CLAIM_TRIED;
    dispute.claim.turn = GAME_TURN_CLAIMANT;
    dispute.claim.attestor = move->account;
    claim_event(game, GAME_ACCUSED, &dispute, move)->other = move->account;
    return local_put_claim(game->store, &dispute.claim, dispute.key);
}

enum status local_give_turn(struct local_game *game, struct local_dispute *dispute,
                            enum game_turn turn)
{
    /* An accused needs a turn left to pass it back. */
    const uint32_t needed = turn == GAME_TURN_ACCUSED ? 2 : 1;
    struct game_event *event;

    if (dispute->claim.turns + needed > GAME_TURNS_MAX) {
        return local_refuse(game, GAME_OUT_OF_TURNS, 0);
    }
    dispute->claim.turns++;
    dispute->claim.turn = turn;
    dispute->claim.deadline_s = local_respond_by(game, &dispute->job);
    event = local_dispute_event(game, GAME_TURN_PASSED, dispute);
    event->turn = turn;
    event->time_s = dispute->claim.deadline_s;
    return save(game, dispute);
}

enum status local_pass_turn(struct local_game *game, const struct game_move *move)
{
    struct local_dispute dispute = {0};

    TRY(require_referee(game, &dispute, &move->key));
    return local_give_turn(game, &dispute, (enum game_turn)move->turn);
}

/* Half of the stake goes to the claimant, half to the client: see Registry.sol. */
static enum status convict(struct local_game *game, struct local_dispute *dispute)
{
    struct local_job *job = &dispute->job;
    wei half = job->terms.stake / 2;
    struct game_event *event;

    TRY(local_credit(game, &dispute->claim.claimant, half));
    TRY(local_credit(game, &job->client, job->terms.stake - half));
    local_void_committed(job);
    event = local_event(game, GAME_CONVICTED, &dispute->claim.job);
    event->account = job->solver;
    event->index = job->finalized;
    job->phase = GAME_PHASE_OPEN;
    memset(&job->solver, 0, sizeof(job->solver));
    return STATUS_OK;
}

enum status local_end_claim(struct local_game *game, struct local_dispute *dispute, bool upheld)
{
    struct local_claim *claim = &dispute->claim;
    wei bond = dispute->job.terms.claim_bond;
    bool solver_accused = address_is_zero(&claim->attestor);
    struct local_tally tally;
    struct game_event *event;

    claim->phase = GAME_CLAIM_CLOSED;
    dispute->job.open_claims--;
    TRY(local_get_tally(game->store, &tally, &claim->segment));
    tally.open_claims--;
    event = local_dispute_event(game, GAME_RULED, dispute);
    event->flag = upheld;

    if (!upheld) {
        TRY(local_credit(game, solver_accused ? &dispute->job.solver : &claim->attestor, bond));
    } else if (solver_accused) {
        TRY(local_credit(game, &claim->claimant, bond));
        TRY(convict(game, dispute));
    } else {
        struct local_attestation attestation;

        TRY(local_credit(game, &claim->claimant, bond + dispute->job.terms.attest_bond));
        TRY(local_get_attestation(game->store, &attestation, &claim->segment, &claim->attestor));
        attestation.phase = GAME_ATTESTATION_CLOSED;
        TRY(local_put_attestation(game->store, &attestation, &claim->segment, &claim->attestor));
        tally.revealed--;
    }
    TRY(local_put_tally(game->store, &tally, &claim->segment));
    return save(game, dispute);
}

enum status local_rule(struct local_game *game, const struct game_move *move)
{
    struct local_dispute dispute = {0};

    TRY(require_referee(game, &dispute, &move->key));
    return local_end_claim(game, &dispute, move->upheld);
}

enum status local_timeout(struct local_game *game, const struct game_move *move)
{
    struct local_dispute dispute = {0};
    bool moot;

    TRY(load(game, &dispute, &move->key));
    TRY(find_moot(game, &moot, &dispute));
    if (dispute.claim.phase == GAME_CLAIM_NONE || dispute.claim.phase == GAME_CLAIM_CLOSED ||
        moot) {
        return local_refuse(game, GAME_WRONG_PHASE, dispute.claim.phase);
    }
    TRY(local_require_after(game, dispute.claim.deadline_s));
    return local_end_claim(game, &dispute, dispute.claim.turn == GAME_TURN_ACCUSED);
}

enum status local_lapse(struct local_game *game, const struct game_move *move)
{
    struct local_dispute dispute = {0};
    bool moot;

    TRY(load(game, &dispute, &move->key));
    if (dispute.claim.phase == GAME_CLAIM_NONE || dispute.claim.phase == GAME_CLAIM_CLOSED) {
        return local_refuse(game, GAME_WRONG_PHASE, dispute.claim.phase);
    }
    TRY(find_moot(game, &moot, &dispute));
    if (!moot) {
        return local_refuse(game, GAME_NOT_LAPSED, 0);
    }

    dispute.claim.phase = GAME_CLAIM_CLOSED;
    if (dispute.claim.generation == dispute.job.generation) {
        struct local_tally tally;

        dispute.job.open_claims--;
        TRY(local_get_tally(game->store, &tally, &dispute.claim.segment));
        tally.open_claims--;
        TRY(local_put_tally(game->store, &tally, &dispute.claim.segment));
    }
    TRY(local_credit(game, &dispute.claim.claimant, dispute.job.terms.claim_bond));
    (void)local_dispute_event(game, GAME_LAPSED, &dispute);
    return save(game, &dispute);
}
