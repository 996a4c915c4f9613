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
    switch ((int)kind) {
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
        return DISPUTE_REMAKE;
    case GAME_NOT_GUILTY:
        return DISPUTE_OTHERWISE;
    default:
        return DISPUTE_OVER;
    }
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

bool dispute_is_ours_to_move(const struct dispute_ports *ports, const struct store_dispute *claim)
{
    return claim->state.phase == GAME_CLAIM_TRIED && claim->state.turn == GAME_TURN_CLAIMANT &&
           address_equal(&claim->state.lead, ledger_get_own(ports->ledger));
}

bool dispute_is_followed(const struct dispute_ports *ports, const struct store_dispute *claim)
{
    return claim->ours && claim->state.phase == GAME_CLAIM_TRIED &&
           claim->state.turn == GAME_TURN_CLAIMANT &&
           !address_equal(&claim->state.lead, ledger_get_own(ports->ledger));
}

/* ---- planning ------------------------------------------------------------------- */

enum status dispute_plan(const struct dispute_ports *ports, const struct store_dispute *claim,
                         enum dispute_kind kind, const struct dispute *dispute, struct error *error)
{
    struct action action = {.kind = kind == DISPUTE_QUERY ? ACTION_QUERY : ACTION_CONVICT,
                            .segment = claim->segment,
                            .claim = claim->key,
                            .number = dispute->turn,
                            .late_s = claim->state.deadline_s};

    name_of(action.name, action.kind, &claim->key, dispute->turn, dispute->attempt);
    return action_plan(ports->store, &action, error);
}

/* ---- sending -------------------------------------------------------------------- */

static enum status submit_move(const struct dispute_ports *ports, const struct action *action,
                               const struct store_dispute *claim, const struct dispute_move *move,
                               struct error *error)
{
    struct game_subject subject = {
        .step = claim->step, .pre_state = claim->pre_state, .post_state = claim->post_state};
    struct store_job job;

    TRY(store_job(ports->store, &job, &claim->job, error));
    subject.client = job.client;
    subject.salt = job.terms.salt;
    memcpy(subject.job_header, job.header, sizeof(subject.job_header));
    return action->kind == ACTION_QUERY
               ? ledger_query(ports->ledger, action->name, &claim->key, &subject, move->payload,
                              move->payload_size, job.terms.query_fee, error)
               : ledger_convict(ports->ledger, action->name, &claim->key, &subject, move->payload,
                                move->payload_size, error);
}

enum status dispute_send(const struct dispute_ports *ports, const struct action *action,
                         struct error *error)
{
    struct file_bytes bytes = {0};
    struct store_dispute claim;
    struct dispute_move move;
    char path[FILE_PATH_MAX];
    char name[DISPUTE_NAME_MAX];
    enum status status = store_dispute(ports->store, &claim, &action->claim, error);

    if (status == STATUS_NOT_FOUND) {
        return error_set(error, STATUS_REFUSED, "the claim is not on the ledger (any more)");
    }
    TRY(status);
    if (!dispute_is_ours_to_move(ports, &claim) || claim.state.turns != action->number) {
        return error_set(error, STATUS_REFUSED, "the dispute stands elsewhere now");
    }
    dispute_move_name(name, action->number, attempt_of(action));
    TRY(path_in(path, ports->cache, &action->claim, name, error));
    TRY_OUT(dispute_move_load(&move, &bytes, path, error));
    status = submit_move(ports, action, &claim, &move, error);
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

    dispute_move_name(name, action->number, attempt_of(action));
    dispute_drop(ports->cache, &action->claim, name);
    TRY(action_forget(ports->store, action, error));
    return dispute_failed(ports, &action->claim, why, error);
}

static enum status remake_move(const struct dispute_ports *ports, const struct action *action,
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
                                                   : "it is made again");
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
    case DISPUTE_REMAKE:
    case DISPUTE_OTHERWISE:
        return remake_move(ports, action, reaction, error);
    case DISPUTE_OVER:
        break;
    }
    return STATUS_OK;
}
