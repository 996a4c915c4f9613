/* ledger.c - the typed moves of ledger.h: each fills in a move and submits it. */
#include "chain/game/ledger.h"

#include <inttypes.h>
#include <stdio.h>
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

enum status ledger_open_job(struct ledger *ledger, const char *name, struct hash32 *job,
                            const struct game_terms *terms, const struct game_bytes *contact,
                            struct error *error)
{
    struct game_move move = move_of(GAME_OPEN, NULL);

    move.terms = *terms;
    move.contact = *contact;
    move.value = game_escrow(terms);
    *job =
        game_job_key(ledger_get_game(ledger), ledger_get_own(ledger), &terms->job_id, terms->salt);
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_close_job(struct ledger *ledger, const char *name, const struct hash32 *job,
                             struct error *error)
{
    return submit_about(ledger, name, GAME_CLOSE, job, error);
}

enum status ledger_resume(struct ledger *ledger, const char *name, const struct hash32 *job,
                          wei amount, struct error *error)
{
    struct game_move move = move_of(GAME_RESUME, job);

    move.value = amount;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_stop(struct ledger *ledger, const char *name, const struct hash32 *job,
                        struct error *error)
{
    return submit_about(ledger, name, GAME_STOP, job, error);
}

enum status ledger_refuse(struct ledger *ledger, const char *name, const struct hash32 *job,
                          struct error *error)
{
    return submit_about(ledger, name, GAME_REFUSE, job, error);
}

enum status ledger_accept(struct ledger *ledger, const char *name, const struct hash32 *job,
                          const struct game_terms *terms, const struct game_hashes *path,
                          const struct game_bytes *contact, struct error *error)
{
    struct game_move move = move_of(GAME_ACCEPT, job);

    move.path = *path;
    move.contact = *contact;
    move.value = terms->stake;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_commit(struct ledger *ledger, const char *name, const struct hash32 *job,
                          uint32_t index, const struct game_hashes *states, bool diverged,
                          struct error *error)
{
    struct game_move move = move_of(GAME_COMMIT, job);

    move.index = index;
    move.states = *states;
    move.diverged = diverged;
    return ledger_submit(ledger, name, &move, error);
}

/* ---- bonds --------------------------------------------------------------------- */

/* Paid by value where the purse has it, else from what is owed. What was submitted stays as it is:
 * the purse is another now. */
static enum status submit_with_bond(struct ledger *ledger, const char *name, struct game_move *move,
                                    wei bond, struct error *error)
{
    struct ledger_outcome outcome;
    struct error unknown;
    wei purse = 0;
    wei owed = 0;

    error_init(&unknown);
    if (ledger_look(ledger, &outcome, name, &unknown) == STATUS_OK &&
        outcome.state != LEDGER_MOVE_REFUSED) {
        return STATUS_OK;
    }
    TRY(ledger_get_account(ledger, &purse, &owed, ledger_get_own(ledger), error));
    move->value = purse < bond && owed >= bond ? 0 : bond;
    return ledger_submit(ledger, name, move, error);
}

/* ---- the panel ---------------------------------------------------------------- */

enum status ledger_enlist(struct ledger *ledger, const char *name, const struct hash32 *job,
                          const struct game_terms *terms, uint32_t count,
                          const struct game_hashes *path, const struct game_bytes *contact,
                          struct error *error)
{
    struct game_move move = move_of(GAME_ENLIST, job);

    move.count = count;
    move.path = *path;
    move.contact = *contact;
    return submit_with_bond(ledger, name, &move, count * terms->bond, error);
}

enum status ledger_depart(struct ledger *ledger, const char *name, const struct hash32 *job,
                          uint32_t generation, uint32_t entry, struct error *error)
{
    struct game_move move = move_of(GAME_DEPART, job);

    move.generation = generation;
    move.entry = entry;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_announce(struct ledger *ledger, const char *name, const struct hash32 *job,
                            const struct game_bytes *contact, struct error *error)
{
    struct game_move move = move_of(GAME_ANNOUNCE, job);

    move.contact = *contact;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_fix(struct ledger *ledger, const char *name, uint64_t height, uint64_t time_s,
                       struct error *error)
{
    struct game_move move = move_of(GAME_FIX, NULL);

    move.segment.height = height;
    move.segment.time_s = time_s;
    return ledger_submit(ledger, name, &move, error);
}

static enum status fix_if_late(struct ledger *ledger, const struct game_commits *commits,
                               struct error *error)
{
    char name[LEDGER_NAME_MAX];
    struct ledger_clock clock;
    uint64_t source = 0;

    TRY(ledger_get_clock(ledger, &clock, error));
    if (clock.time_s <= commits->time_s + GAME_FIX_AFTER_S) {
        return STATUS_OK;
    }
    TRY(ledger_get_fixed(ledger, &source, commits->height, commits->time_s, error));
    if (source != 0) {
        return clock.height >= source
                   ? STATUS_OK
                   : error_set(error, STATUS_UNREACHABLE,
                               "the block that the seed comes from is not there yet");
    }
    (void)snprintf(name, sizeof(name), "fix the seeds of block %" PRIu64 " at %" PRIu64,
                   commits->height, commits->time_s);
    TRY(ledger_fix(ledger, name, commits->height, commits->time_s, error));
    return error_set(error, STATUS_UNREACHABLE,
                     "nobody drew this segment for seven days: its seed will come from the hash of "
                     "the next block, and the draw follows");
}

enum status ledger_draw(struct ledger *ledger, const char *name, const struct hash32 *job,
                        const struct game_segment *segment, const struct game_commits *commits,
                        struct error *error)
{
    struct game_move move = move_of(GAME_DRAW, job);

    if (segment->panel > 0) {
        TRY(fix_if_late(ledger, commits, error));
    }
    move.segment = *segment;
    move.commits = *commits;
    return ledger_submit(ledger, name, &move, error);
}

static struct game_move move_of_seat(enum game_move_kind kind, const struct hash32 *job,
                                     const struct game_segment *segment, uint32_t place)
{
    struct game_move move = move_of(kind, job);

    move.index = segment->index;
    move.about = game_segment_hash(job, segment);
    move.place = place;
    return move;
}

enum status ledger_seal(struct ledger *ledger, const char *name,
                        const struct ledger_verdict *verdict, struct error *error)
{
    struct game_move move =
        move_of_seat(GAME_SEAL, &verdict->job, &verdict->segment, verdict->place);

    move.seal = game_verdict_seal(
        ledger_get_own(ledger), &move.about, verdict->verdict, verdict->step,
        verdict->verdict == GAME_VERDICT_RIGHT ? &verdict->leaves : NULL, &verdict->salt);
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_reveal(struct ledger *ledger, const char *name,
                          const struct ledger_verdict *verdict, struct error *error)
{
    struct game_move move =
        move_of_seat(GAME_REVEAL, &verdict->job, &verdict->segment, verdict->place);

    move.salt = verdict->salt;
    move.leaves = verdict->leaves;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_unseen(struct ledger *ledger, const char *name, const struct hash32 *job,
                          const struct game_segment *segment, uint32_t place, struct error *error)
{
    struct game_move move = move_of_seat(GAME_UNSEEN, job, segment, place);

    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_alarm(struct ledger *ledger, const char *name,
                         const struct ledger_verdict *verdict, const struct game_case *shown,
                         struct error *error)
{
    struct game_move move = move_of(GAME_ALARM, &verdict->job);

    move.shown = *shown;
    move.place = verdict->place;
    move.salt = verdict->salt;
    return ledger_submit(ledger, name, &move, error);
}

/* ---- disputes ------------------------------------------------------------------ */

enum status ledger_seal_claim(struct ledger *ledger, const char *name, const struct hash32 *subject,
                              const struct hash32 *salt, struct error *error)
{
    struct game_move move = move_of(GAME_SEAL_CLAIM, NULL);

    move.seal = game_claim_seal(ledger_get_own(ledger), subject, salt);
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_claim(struct ledger *ledger, const char *name, const struct hash32 *job,
                         const struct game_case *shown, const struct hash32 *salt, wei bond,
                         struct error *error)
{
    struct game_move move = move_of(GAME_CLAIM, job);

    move.shown = *shown;
    move.salt = *salt;
    return submit_with_bond(ledger, name, &move, bond, error);
}

enum status ledger_answer(struct ledger *ledger, const char *name, const struct hash32 *claim,
                          const struct digest *trace_root, struct error *error)
{
    struct game_move move = move_of(GAME_ANSWER, claim);

    move.root = *trace_root;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_query(struct ledger *ledger, const char *name, const struct hash32 *claim,
                         const struct game_subject *subject, const void *query, size_t query_size,
                         wei query_fee, struct error *error)
{
    struct game_move move = move_of(GAME_QUERY, claim);

    move.subject = *subject;
    move.payload = (struct game_bytes){query, query_size};
    move.value = query_fee;
    return ledger_submit(ledger, name, &move, error);
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

enum status ledger_convict(struct ledger *ledger, const char *name, const struct hash32 *claim,
                           const struct game_subject *subject, const void *evidence,
                           size_t evidence_size, struct error *error)
{
    struct game_move move = move_of(GAME_CONVICT, claim);

    move.subject = *subject;
    move.payload = (struct game_bytes){evidence, evidence_size};
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

enum status ledger_pay(struct ledger *ledger, const char *name, const struct hash32 *job,
                       uint32_t generation, struct error *error)
{
    struct game_move move = move_of(GAME_PAY, job);

    move.generation = generation;
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_seal_challenge(struct ledger *ledger, const char *name,
                                  const struct ledger_challenge *challenge, struct error *error)
{
    struct hash32 segment = game_segment_hash(&challenge->job, &challenge->segment);
    struct hash32 subject = game_challenge_hash(&segment, challenge->place, challenge->which);

    return ledger_seal_claim(ledger, name, &subject, &challenge->seal_salt, error);
}

enum status ledger_challenge(struct ledger *ledger, const char *name,
                             const struct ledger_challenge *challenge, const void *shown,
                             size_t shown_size, struct error *error)
{
    struct game_move move = move_of(GAME_CHALLENGE, &challenge->job);

    move.segment = challenge->segment;
    move.place = challenge->place;
    move.leaves = challenge->leaves;
    move.salt = challenge->salt;
    move.seal_salt = challenge->seal_salt;
    move.index = challenge->which;
    move.payload = (struct game_bytes){shown, shown_size};
    return ledger_submit(ledger, name, &move, error);
}

/* ---- anybody ------------------------------------------------------------------- */

enum status ledger_settle(struct ledger *ledger, const char *name, const struct hash32 *job,
                          const struct game_segment *segment, const struct game_bytes *vouch,
                          struct error *error)
{
    struct game_move move = move_of(GAME_SETTLE, job);

    move.segment = *segment;
    if (vouch != NULL) {
        move.vouch = *vouch;
    }
    return ledger_submit(ledger, name, &move, error);
}

enum status ledger_release(struct ledger *ledger, const char *name, const struct hash32 *job,
                           struct error *error)
{
    return submit_about(ledger, name, GAME_RELEASE, job, error);
}

enum status ledger_withdraw(struct ledger *ledger, const char *name, const struct address *to,
                            struct error *error)
{
    struct game_move move = move_of(GAME_WITHDRAW, NULL);

    move.account = *to;
    return ledger_submit(ledger, name, &move, error);
}
