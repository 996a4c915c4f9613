/* dispute_send.c - see dispute_send.h. */
#include "verifier/dispute/dispute_send.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/hex.h"

enum {
    RETRY_S = 2,
    RETRY_S_MAX = 60,
    RETRY_MS = 500,
};

enum dispute_reaction dispute_reaction(enum game_refusal_kind kind)
{
    switch (kind) {
    case GAME_REFUSED_NOT: /* a transaction that failed for a reason that is not the game's */
    case GAME_TOO_EARLY:
    case GAME_WRONG_TURN: /* the other's answer was reorganized away, and comes again */
    case GAME_WRONG_PHASE:
        return DISPUTE_AGAIN;
    case GAME_WRONG_CASE:
    case GAME_WRONG_SEGMENT:
    case GAME_BAD_QUERY:
    case GAME_NOT_QUERIED:
    case GAME_BAD_REPLY:
    case GAME_BAD_EVIDENCE:
        return DISPUTE_ANEW;
    case GAME_NOT_GUILTY:
        return DISPUTE_OTHERWISE;
    case GAME_TOO_LATE:
    case GAME_OUT_OF_TURNS:
    case GAME_NOT_YOURS:
    case GAME_BAD_TERMS:
    case GAME_WRONG_VALUE:
    case GAME_JOB_EXISTS:
    case GAME_WRONG_INDEX:
    case GAME_WRONG_STEPS:
    case GAME_ZERO_ROOT:
    case GAME_ZERO_ADDRESS:
    case GAME_SELF_DEALING:
    case GAME_FULL:
    case GAME_ALREADY_ATTESTED:
    case GAME_NOT_SEALED:
    case GAME_NOT_REVEALED:
    case GAME_WRONG_REVEAL:
    case GAME_COVERAGE_MISSING:
    case GAME_NOT_NEEDED:
    case GAME_CLAIMS_OPEN:
    case GAME_CLAIM_EXISTS:
    case GAME_NOT_LAPSED:
    case GAME_NOTHING_OWED:
    case GAME_WITHDRAW_FAILED:
    case GAME_REFUSAL_KINDS:
        break;
    }
    return DISPUTE_OVER;
}

/* ---- files and names ---------------------------------------------------------- */

enum status dispute_folder(char folder[FILE_PATH_MAX], const char *cache,
                           const struct hash32 *claim, struct error *error)
{
    char name[16 + 2 * HASH32_SIZE];
    char text[HEX_SIZE(HASH32_SIZE)];

    hex_encode(text, claim->bytes, HASH32_SIZE);
    (void)snprintf(name, sizeof(name), "claim-%s", text);
    return file_path_join(folder, FILE_PATH_MAX, error, cache, name);
}

static enum status path_in(char path[FILE_PATH_MAX], const char *cache, const struct hash32 *claim,
                           const char *name, struct error *error)
{
    char folder[FILE_PATH_MAX];

    TRY(dispute_folder(folder, cache, claim, error));
    return file_path_join(path, FILE_PATH_MAX, error, folder, name);
}

enum status dispute_keep(const char *cache, const struct hash32 *claim, const char *name,
                         const void *bytes, size_t size, struct error *error)
{
    char folder[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];

    TRY(dispute_folder(folder, cache, claim, error));
    TRY(file_path_join(path, sizeof(path), error, folder, name));
    return file_exists(folder) ? file_write(path, error, bytes, size, 0600) : STATUS_OK;
}

void dispute_drop(const char *cache, const struct hash32 *claim, const char *name)
{
    char path[FILE_PATH_MAX];
    struct error ignored;

    error_init(&ignored);
    if (path_in(path, cache, claim, name, &ignored) == STATUS_OK) {
        (void)unlink(path);
    }
}

static void name_of(char name[LEDGER_NAME_MAX + 1], enum action_kind kind,
                    const struct hash32 *claim, uint32_t turn, uint32_t attempt)
{
    size_t size;

    action_name(name, kind, claim);
    size = strlen(name);
    if (attempt == 0) {
        (void)snprintf(name + size, LEDGER_NAME_MAX + 1 - size, "/%" PRIu32, turn);
    } else {
        (void)snprintf(name + size, LEDGER_NAME_MAX + 1 - size, "/%" PRIu32 "/%" PRIu32, turn,
                       attempt);
    }
}

/* The last of "query/HASH/TURN/ATTEMPT". */
static uint32_t attempt_of(const struct action *action)
{
    const char *at = action->name;

    for (int i = 0; i < 3 && at != NULL; i++) {
        at = strchr(at, '/');
        at = at == NULL ? NULL : at + 1;
    }
    return at == NULL ? 0 : (uint32_t)strtoul(at, NULL, 10);
}

/* ---- planning ------------------------------------------------------------------- */

enum status dispute_plan(const struct dispute_ports *ports, const struct store_claim *claim,
                         enum dispute_kind kind, const struct dispute *dispute, uint64_t deadline_s,
                         struct error *error)
{
    struct action action = {.kind = kind == DISPUTE_QUERY      ? ACTION_QUERY
                                    : kind == DISPUTE_EVIDENCE ? ACTION_CONVICT
                                                               : ACTION_REPLY,
                            .segment = claim->segment,
                            .claim = claim->key,
                            .attestor = claim->attestor,
                            .step = dispute->turn,
                            .late_s = deadline_s};

    name_of(action.name, action.kind, &claim->key, dispute->turn, dispute->attempt);
    return action_plan(ports->store, &action, error);
}

/* ---- sending -------------------------------------------------------------------- */

static enum status make_case(const struct dispute_ports *ports, struct game_case *shown,
                             const struct store_claim *claim, const struct dispute_move *move,
                             struct error *error)
{
    struct store *store = ports->store;
    struct store_segment segment;
    struct store_segment previous;
    struct ledger_job job;

    memset(shown, 0, sizeof(*shown));
    TRY(store_segment_by_hash(store, &segment, &claim->segment, error));
    TRY(ledger_get_job(ports->ledger, &job, &claim->job, error));
    if (claim->step == 0 && claim->index > 0) {
        TRY(store_segment(store, &previous, &claim->job, claim->index - 1, error));
        shown->previous = previous.committed;
    }
    shown->client = job.client;
    shown->salt = segment.terms.salt;
    memcpy(shown->job_header, move->job_header, sizeof(shown->job_header));
    shown->segment = segment.committed;
    shown->step = claim->step;
    shown->pre_state = move->pre_state;
    shown->post_state = move->post_state;
    shown->pre_path = move->pre_path;
    shown->post_path = move->post_path;
    return STATUS_OK;
}

static enum status submit(const struct dispute_ports *ports, const struct action *action,
                          const struct store_claim *claim, const struct dispute_move *move,
                          struct error *error)
{
    struct ledger *ledger = ports->ledger;
    struct game_case *shown;
    enum status status;

    if (action->kind == ACTION_REPLY) {
        return ledger_reply(ledger, action->name, &claim->key,
                            &(struct game_bytes){claim->queried, claim->queried_size},
                            move->payload, move->payload_size, error);
    }
    shown = calloc(1, sizeof(*shown));
    if (shown == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a move");
    }
    TRY_OUT(make_case(ports, shown, claim, move, error));
    status = action->kind == ACTION_QUERY
                 ? ledger_query(ledger, action->name, &claim->key, shown, move->payload,
                                move->payload_size, error)
                 : ledger_convict(ledger, action->name, &claim->key, shown, move->payload,
                                  move->payload_size, error);
out:
    free(shown);
    return status;
}

/* Is it the turn that the move was made for? */
static enum status check_turn(const struct dispute_ports *ports, const struct action *action,
                              struct error *error)
{
    enum game_turn ours = action->kind == ACTION_REPLY ? GAME_TURN_ACCUSED : GAME_TURN_CLAIMANT;
    struct ledger_claim standing;

    TRY(ledger_get_claim(ports->ledger, &standing, &action->claim, error));
    return standing.phase == GAME_CLAIM_TRIED && standing.turn == ours &&
                   standing.turns == action->step
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "the dispute stands elsewhere now");
}

enum status dispute_send(const struct dispute_ports *ports, const struct action *action,
                         struct error *error)
{
    struct file_bytes bytes = {0};
    struct store_claim claim;
    struct dispute_move move;
    char path[FILE_PATH_MAX];
    char name[DISPUTE_NAME_MAX];
    enum status status = store_claim(ports->store, &claim, &action->claim, error);

    if (status == STATUS_NOT_FOUND) {
        return error_set(error, STATUS_REFUSED, "the claim is not on the ledger (any more)");
    }
    TRY(status);
    TRY(check_turn(ports, action, error));
    dispute_move_name(name, action->step, attempt_of(action));
    TRY(path_in(path, ports->cache, &action->claim, name, error));
    TRY_OUT(dispute_move_load(&move, &bytes, path, error));
    status = submit(ports, action, &claim, &move, error);
out:
    file_bytes_release(&bytes);
    return status;
}

/* ---- after a refusal -------------------------------------------------------------- */

uint64_t dispute_again_s(uint64_t now_s, uint32_t tries)
{
    return now_s + backoff_pause(RETRY_S, RETRY_S_MAX, tries);
}

enum status dispute_failed(const struct dispute_ports *ports, const struct hash32 *claim,
                           const char *why, struct error *error)
{
    struct store_retry retry;

    TRY(store_retry(ports->store, &retry, claim, error));
    retry.next_ms = ports->now_ms + backoff_pause(RETRY_MS, QUEUE_WAIT_MS_MAX, retry.tries);
    retry.tries++;
    return store_set_retry(ports->store, claim, &retry, why, error);
}

enum status dispute_lost(const struct dispute_ports *ports, const struct action *action,
                         const char *why, struct error *error)
{
    char name[DISPUTE_NAME_MAX];

    dispute_move_name(name, action->step, attempt_of(action));
    dispute_drop(ports->cache, &action->claim, name);
    TRY(action_forget(ports->store, action, error));
    return dispute_failed(ports, &action->claim, why, error);
}

static enum status make_anew(const struct dispute_ports *ports, const struct action *action,
                             enum dispute_reaction reaction, struct error *error)
{
    uint32_t attempt = attempt_of(action) + 1;
    bool left = attempt < DISPUTE_ATTEMPTS_MAX;
    char why[STORE_REASON_MAX];

    if (action->kind == ACTION_CONVICT) { /* evidence that was given is shown once */
        dispute_drop(ports->cache, &action->claim, DISPUTE_FILE_EVIDENCE);
    }
    (void)snprintf(why, sizeof(why), "%.120s is refused: %.200s; %s", action->name,
                   game_refusal_text(action->refusal),
                   !left                           ? "no other is tried in this turn"
                   : reaction == DISPUTE_OTHERWISE ? "other evidence is looked for"
                                                   : "it is made anew");
    return dispute_failed(ports, &action->claim, why, error);
}

enum status dispute_refused(const struct dispute_ports *ports, enum action_state *state,
                            uint64_t *due_s, struct action *action, struct error *error)
{
    enum dispute_reaction reaction = dispute_reaction(action->refusal);

    *state = ACTION_REFUSED;
    *due_s = action->due_s;
    switch (reaction) {
    case DISPUTE_AGAIN:
        if (action->tries++ < DISPUTE_TRIES_MAX) {
            *state = ACTION_PLANNED;
            *due_s = dispute_again_s(ports->time_s, action->tries);
        }
        return STATUS_OK;
    case DISPUTE_ANEW:
    case DISPUTE_OTHERWISE:
        return make_anew(ports, action, reaction, error);
    case DISPUTE_OVER:
        break;
    }
    return STATUS_OK;
}
