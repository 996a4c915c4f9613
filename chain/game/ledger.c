/* ledger.c - the typed moves of ledger.h: each fills in a move and submits it. */
#include "chain/game/ledger.h"

#include <string.h>

static struct game_move move_of(enum game_move_kind kind, const struct hash32 *key)
{
    struct game_move move;

    memset(&move, 0, sizeof(move));
    move.kind = kind;
    if (key != NULL) {
        move.key = *key;
    }
    return move;
}

static enum status submit_about(struct ledger *ledger, const char *name, enum game_move_kind kind,
                                const struct hash32 *key, struct error *error)
{
    struct game_move move = move_of(kind, key);

    return ledger_submit(ledger, name, &move, error);
}

static enum status submit_segment(struct ledger *ledger, const char *name, enum game_move_kind kind,
                                  const struct hash32 *job, const struct game_segment *segment,
                                  struct error *error)
{
    struct game_move move = move_of(kind, job);

    move.segment = *segment;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_open_job(struct ledger *ledger, const char *name, struct hash32 *job,
                            const struct game_terms *terms, struct error *error)
{
    struct game_move move = move_of(GAME_OPEN, NULL);

    move.terms = *terms;
    move.value = game_escrow(terms);
    *job =
        game_job_key(ledger_get_game(ledger), ledger_get_own(ledger), &terms->job_id, terms->salt);
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_cancel(struct ledger *ledger, const char *name, const struct hash32 *job,
                          struct error *error)
{
    return submit_about(ledger, name, GAME_CANCEL, job, error);
}

enum status ledger_accept(struct ledger *ledger, const char *name, const struct hash32 *job,
                          const struct game_terms *terms, struct error *error)
{
    struct game_move move = move_of(GAME_ACCEPT, job);

    move.value = terms->stake;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_commit(struct ledger *ledger, const char *name, const struct hash32 *job,
                          uint32_t index, const struct digest *root, struct error *error)
{
    struct game_move move = move_of(GAME_COMMIT, job);

    move.index = index;
    move.root = *root;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_commit_diverged(struct ledger *ledger, const char *name,
                                   const struct hash32 *job, uint32_t index,
                                   const struct digest *root, uint32_t steps, struct error *error)
{
    struct game_move move = move_of(GAME_COMMIT_DIVERGED, job);

    move.index = index;
    move.root = *root;
    move.steps = steps;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_draw(struct ledger *ledger, const char *name, const struct hash32 *job,
                        const struct game_segment *segment, struct error *error)
{
    return submit_segment(ledger, name, GAME_DRAW, job, segment, error);
}

enum status ledger_attest(struct ledger *ledger, const char *name, const struct hash32 *job,
                          const struct game_terms *terms, const struct game_segment *segment,
                          const struct digest *trace_root, struct error *error)
{
    struct game_move move = move_of(GAME_ATTEST, job);
    struct hash32 hash = game_segment_hash(job, segment);

    move.segment = *segment;
    move.value = terms->attest_bond;
    move.seal = game_attest_seal(ledger_get_own(ledger), &hash, trace_root);
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_reveal(struct ledger *ledger, const char *name, const struct hash32 *job,
                          const struct game_segment *segment, const struct digest *trace_root,
                          struct error *error)
{
    struct game_move move = move_of(GAME_REVEAL, job);

    move.segment = *segment;
    move.root = *trace_root;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_seal_claim(struct ledger *ledger, const char *name, struct hash32 *claim,
                              const struct ledger_whistle *whistle, struct error *error)
{
    struct game_move move = move_of(GAME_SEAL_CLAIM, NULL);
    struct hash32 hash = game_segment_hash(&whistle->job, &whistle->segment);

    *claim = game_claim_key(ledger_get_own(ledger), &hash, whistle->step, &whistle->pre_state,
                            &whistle->post_state);
    move.seal = game_claim_seal(claim, &whistle->salt);
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_claim(struct ledger *ledger, const char *name, const struct game_terms *terms,
                         const struct ledger_whistle *whistle, struct error *error)
{
    struct game_move move = move_of(GAME_CLAIM, &whistle->job);

    move.value = terms->claim_bond;
    move.segment = whistle->segment;
    move.steps = whistle->step;
    move.pre_state = whistle->pre_state;
    move.post_state = whistle->post_state;
    move.salt = whistle->salt;
    return ledger_submit(ledger, name, &move, error);
}

static struct hash32 accusation_key(const struct ledger *ledger,
                                    const struct ledger_accusation *accusation)
{
    struct hash32 hash = game_segment_hash(&accusation->job, &accusation->segment);

    return game_accusation_key(ledger_get_own(ledger), &hash, &accusation->attestor);
}

enum status ledger_seal_accusation(struct ledger *ledger, const char *name, struct hash32 *claim,
                                   const struct ledger_accusation *accusation, struct error *error)
{
    struct game_move move = move_of(GAME_SEAL_CLAIM, NULL);

    *claim = accusation_key(ledger, accusation);
    move.seal = game_claim_seal(claim, &accusation->salt);
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_accuse(struct ledger *ledger, const char *name, const struct game_terms *terms,
                          const struct ledger_accusation *accusation, struct error *error)
{
    struct game_move move = move_of(GAME_ACCUSE, &accusation->job);

    move.value = terms->claim_bond;
    move.segment = accusation->segment;
    move.account = accusation->attestor;
    move.salt = accusation->salt;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_answer(struct ledger *ledger, const char *name, const struct hash32 *claim,
                          const struct digest *trace_root, struct error *error)
{
    struct game_move move = move_of(GAME_ANSWER, claim);

    move.root = *trace_root;
    return ledger_submit(ledger, name, &move, error);
}

static enum status submit_shown(struct ledger *ledger, const char *name, enum game_move_kind kind,
                                const struct hash32 *claim, const struct game_case *shown,
                                const struct game_bytes *payload, struct error *error)
{
    struct game_move move = move_of(kind, claim);

    move.shown = *shown;
    move.payload = *payload;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_query(struct ledger *ledger, const char *name, const struct hash32 *claim,
                         const struct game_case *shown, const void *query, size_t query_size,
                         struct error *error)
{
    return submit_shown(ledger, name, GAME_QUERY, claim, shown,
                        &(struct game_bytes){query, query_size}, error);
}

enum status ledger_convict(struct ledger *ledger, const char *name, const struct hash32 *claim,
                           const struct game_case *shown, const void *evidence,
                           size_t evidence_size, struct error *error)
{
    return submit_shown(ledger, name, GAME_CONVICT, claim, shown,
                        &(struct game_bytes){evidence, evidence_size}, error);
}

enum status ledger_reply(struct ledger *ledger, const char *name, const struct hash32 *claim,
                         const struct game_bytes *queried, const void *reply, size_t reply_size,
                         struct error *error)
{
    struct game_move move = move_of(GAME_REPLY, claim);

    move.queried = *queried;
    move.payload = (struct game_bytes){reply, reply_size};
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_timeout(struct ledger *ledger, const char *name, const struct hash32 *claim,
                           struct error *error)
{
    return submit_about(ledger, name, GAME_TIMEOUT, claim, error);
}

enum status ledger_lapse(struct ledger *ledger, const char *name, const struct hash32 *claim,
                         struct error *error)
{
    return submit_about(ledger, name, GAME_LAPSE, claim, error);
}

enum status ledger_finalize(struct ledger *ledger, const char *name, const struct hash32 *job,
                            const struct game_segment *segment, struct error *error)
{
    return submit_segment(ledger, name, GAME_FINALIZE, job, segment, error);
}

enum status ledger_renew(struct ledger *ledger, const char *name, const struct hash32 *job,
                         const struct game_segment *segment, struct error *error)
{
    return submit_segment(ledger, name, GAME_RENEW, job, segment, error);
}

enum status ledger_settle(struct ledger *ledger, const char *name, const struct hash32 *job,
                          const struct game_segment *segment, const struct address *attestor,
                          struct error *error)
{
    struct game_move move = move_of(GAME_SETTLE, job);

    move.segment = *segment;
    move.account = *attestor;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_release(struct ledger *ledger, const char *name, const struct hash32 *job,
                           struct error *error)
{
    return submit_about(ledger, name, GAME_RELEASE, job, error);
}

enum status ledger_expire(struct ledger *ledger, const char *name, const struct hash32 *job,
                          struct error *error)
{
    return submit_about(ledger, name, GAME_EXPIRE, job, error);
}

enum status ledger_withdraw(struct ledger *ledger, const char *name, const struct address *to,
                            struct error *error)
{
    struct game_move move = move_of(GAME_WITHDRAW, NULL);

    move.account = *to;
    return ledger_submit(ledger, name, &move, error);
}
