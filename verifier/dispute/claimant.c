/* claimant.c - see claimant.h. */
#include "verifier/dispute/claimant.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "verifier/dispute/moves.h"
#include "verifier/store/mirrors.h"

#define FIRST_DISPUTE ((int64_t)1 << 62) /* numbers of children; tasks stay far below */
#define NEVER_MS      ((uint64_t)INT64_MAX)

enum {
    AGAIN_S = 2, /* until a timeout or a lapse that was refused is tried again */
};

struct carrying {
    struct node *node;
    bool *busy;
};

static enum status plan_about(struct node *node, enum action_kind kind,
                              const struct store_claim *claim, uint64_t due_s, struct error *error)
{
    struct action action = {
        .kind = kind, .claim = claim->key, .due_s = due_s, .late_s = GAME_TIME_MAX};
    struct action before;
    enum status status;

    action_name(action.name, kind, &claim->key);
    status = action_find(node->ports.store, &before, action.name, error);
    if (status == STATUS_NOT_FOUND) {
        return action_plan(node->ports.store, &action, error);
    }
    /* It came too early once, and the turn went on; or who came first was reorganized away. */
    return status == STATUS_OK &&
                   (before.state == ACTION_REFUSED || before.state == ACTION_OVERTAKEN)
               ? action_set(node->ports.store, &before, ACTION_PLANNED,
                            node->clock.time_s + AGAIN_S, "", error)
               : status;
}

/* ---- the memory of a dispute ------------------------------------------------- */

enum status claimant_hear(struct node *node, const struct ledger_entry *entry, struct error *error)
{
    const struct game_event *event = &entry->event;

    if (entry->kind != LEDGER_EVENT) {
        return STATUS_OK;
    }
    if (event->kind == GAME_REPLIED) {
        return moves_keep(node, &event->claim, DUEL_TOLD, event->payload.bytes, event->payload.size,
                          error);
    }
    return STATUS_OK;
}

/* ---- the next move ----------------------------------------------------------- */

static bool is_running(const struct node *node, const struct hash32 *claim)
{
    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        if (node->running[i].number != 0 && node->running[i].disputing &&
            hash32_equal(&node->running[i].claim, claim)) {
            return true;
        }
    }
    return false;
}

/* The trace root that the accused stands by. */
static enum status find_root(struct node *node, struct digest *root,
                             const struct store_claim *claim, const struct ledger_claim *standing,
                             struct error *error)
{
    struct store_reveal reveal;
    enum status status;

    *root = standing->trace_root;
    if (address_is_zero(&claim->attestor)) {
        return STATUS_OK;
    }
    status = store_reveal(node->ports.store, &reveal, &claim->segment, &claim->attestor, error);
    if (status == STATUS_OK) {
        *root = reveal.root;
    }
    return status;
}

static enum status keep_asked(struct node *node, const struct store_claim *claim,
                              const char *folder, struct error *error)
{
    enum status status = file_make_folder(folder, error, 0700);

    return status == STATUS_OK ? moves_keep(node, &claim->key, DUEL_ASKED, claim->queried,
                                            claim->queried_size, error)
                               : status;
}

struct turn {
    const struct store_claim *claim;
    const struct store_segment *segment;
    struct ledger_claim standing;
    uint32_t attempt; /* moves that were refused in this turn */
    uint32_t acquitted;
    char folder[FILE_PATH_MAX];
    char file[CHECK_NOTE_MAX];
};

/* Starts the child that finds the move; without a free one the next round tries again. */
static enum status find_move(struct node *node, const struct turn *turn, struct error *error)
{
    const struct store_claim *claim = turn->claim;
    struct check_request *request = NULL;
    struct store_retry retry;
    enum status status = store_retry(node->ports.store, &retry, &claim->key, error);

    /* No pause is that long: the clock was set back since. */
    if (status != STATUS_OK ||
        (retry.next_ms > node->now_ms && retry.next_ms - node->now_ms <= QUEUE_WAIT_MS_MAX)) {
        return status;
    }
    if (claim->accused) {
        status = keep_asked(node, claim, turn->folder, error);
    }
    if (status == STATUS_OK) {
        status = node_request(node, &request, turn->segment, error);
    }
    if (status == STATUS_OK) {
        status = find_root(node, &request->accused_root, claim, &turn->standing, error);
    }
    if (status == STATUS_OK) {
        request->disputed = true;
        request->answering = claim->accused;
        request->against_attestor = !address_is_zero(&claim->attestor);
        request->disputed_step = claim->step;
        request->acquitted = turn->acquitted;
        request->move_max = node->options.move_max;
        (void)snprintf(request->folder, sizeof(request->folder), "%s", turn->folder);
        (void)snprintf(request->move, sizeof(request->move), "%s", turn->file);
        status = node_start(node, FIRST_DISPUTE + node->disputes++, &claim->key, request, error);
        request = NULL;
    }
    free(request);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status claimant_take(struct node *node, const struct node_running *place,
                          const struct check_result *result, struct error *error)
{
    char text[HEX_SIZE(HASH32_SIZE)];
    char why[STORE_REASON_MAX];
    enum status status = mirrors_note(node->ports.store, place->request, result, node->now_ms,
                                      node->ports.log, error);

    if (status != STATUS_OK) {
        return status;
    }
    hex_encode(text, place->claim.bytes, HASH32_SIZE);
    if (result->outcome == CHECK_FAULT) {
        return node_fault(node, result->reason, error);
    }
    if (result->outcome == CHECK_PROVEN) {
        return store_end_retry(node->ports.store, &place->claim, error);
    }
    (void)snprintf(why, sizeof(why), "the next move is not found: %.400s",
                   result->reason[0] == '\0' ? "an earlier step is false" : result->reason);
    log_warn(node->ports.log, "verifier", "claim %.16s...: %s", text, why);
    return moves_failed(node, &place->claim, why, error);
}

/*
 * A claim of ours was false, which no machine that can be believed makes. Once: who has looked into
 * the fault need not do so again while the claim is still open. It is remembered with the dispute,
 * since the database may be lost before the claim is.
 */
static enum status admit(struct node *node, const struct turn *turn, struct error *error)
{
    static const char why[] = "a claim was made, and the accused is right in all that it made of"
                              " the step";
    char path[FILE_PATH_MAX];
    enum status status = file_path_join(path, sizeof(path), error, turn->folder, DUEL_ADMITTED);

    if (status != STATUS_OK || file_exists(path)) {
        return status;
    }
    if (!node->fault) {
        status = node_fault(node, why, error);
    }
    return status == STATUS_OK
               ? moves_keep(node, &turn->claim->key, DUEL_ADMITTED, why, sizeof(why) - 1, error)
               : status;
}

/* The child has left a move: it is planned, once for each turn and refusal. */
static enum status plan_move(struct node *node, const struct turn *turn, enum duel_kind kind,
                             struct error *error)
{
    if (kind == DUEL_NO_LIE) {
        return admit(node, turn, error);
    }
    return moves_plan(node, turn->claim, kind, turn->standing.turns, turn->attempt,
                      turn->standing.deadline_s, error);
}

/* False: what was made for this turn is on its way, or nothing more is tried in it. */
static enum status may_move(struct node *node, bool *may, struct turn *turn, struct error *error)
{
    struct store *store = node->ports.store;
    const struct hash32 *key = &turn->claim->key;
    struct action last;
    enum moves_reaction reaction;
    enum status status =
        action_of_turn(store, &last, &turn->attempt, key, turn->standing.turns, error);

    *may = status == STATUS_NOT_FOUND;
    if (status != STATUS_OK) {
        return *may ? STATUS_OK : status;
    }
    if (last.state == ACTION_REFUSED && turn->attempt < MOVES_ATTEMPTS_MAX) {
        reaction = moves_reaction(last.refusal);
        *may = reaction == MOVES_ANEW || reaction == MOVES_OTHERWISE;
        status = action_count_acquitted(store, &turn->acquitted, key, turn->standing.turns, error);
    }
    return status;
}

static enum status make_move(struct node *node, const struct turn *turn, struct error *error)
{
    struct file_bytes bytes = {0};
    struct duel_move move;
    struct error why;
    char path[FILE_PATH_MAX];
    enum status status = file_path_join(path, sizeof(path), error, turn->folder, turn->file);

    if (status != STATUS_OK) {
        return status;
    }
    error_init(&why);
    status = file_read(&bytes, &why, path, (size_t)256 * 1024);
    if (status == STATUS_OK) {
        status = duel_move_read(&move, bytes.data, bytes.size, &why);
    }
    status = status == STATUS_OK ? plan_move(node, turn, move.kind, error)
                                 : find_move(node, turn, error);
    file_bytes_release(&bytes);
    return status;
}

/* Ours to move, as the claimant or as who is accused. */
static enum status take_turn(struct node *node, bool *busy, const struct store_claim *claim,
                             const struct store_segment *segment, struct error *error)
{
    struct turn turn = {.claim = claim, .segment = segment};
    enum game_turn ours = claim->accused ? GAME_TURN_ACCUSED : GAME_TURN_CLAIMANT;
    struct error why;
    bool may = false;
    enum status status;

    error_init(&why);
    if (ledger_get_claim(node->ports.ledger, &turn.standing, &claim->key, &why) != STATUS_OK ||
        turn.standing.phase != GAME_CLAIM_TRIED || turn.standing.turn != ours ||
        node->clock.time_s > turn.standing.deadline_s) {
        return STATUS_OK;
    }
    if (is_running(node, &claim->key)) {
        *busy = true;
        return STATUS_OK;
    }
    status = may_move(node, &may, &turn, error);
    if (status != STATUS_OK || !may) {
        return status;
    }
    moves_file(turn.file, turn.standing.turns, turn.attempt);
    status = moves_folder(turn.folder, node, &claim->key, error);
    return status == STATUS_OK ? make_move(node, &turn, error) : status;
}

/* ---- a claim ------------------------------------------------------------------ */

/* Said once: a turn of ours that passed unused loses the claim as soon as somebody says so. */
static enum status tell_missed(struct node *node, const struct store_claim *claim,
                               struct error *error)
{
    static const char why[] = "our turn passed without a move: the claim is lost";
    char text[HEX_SIZE(HASH32_SIZE)];
    struct store_retry retry;
    enum status status = store_retry(node->ports.store, &retry, &claim->key, error);

    if (status != STATUS_OK || retry.next_ms == NEVER_MS) {
        return status;
    }
    hex_encode(text, claim->key.bytes, HASH32_SIZE);
    log_error(node->ports.log, "verifier", "claim %.16s...: %s", text, why);
    retry.next_ms = NEVER_MS;
    return store_set_retry(node->ports.store, &claim->key, &retry, why, error);
}

/* Is the accused gone, convicted by somebody else's claim? */
static enum status find_gone(struct node *node, bool *gone, const struct store_claim *claim,
                             const struct store_segment *segment, struct error *error)
{
    struct store_reveal reveal;
    enum status status;

    *gone = segment->is_void;
    if (*gone || address_is_zero(&claim->attestor)) {
        return STATUS_OK;
    }
    status = store_reveal(node->ports.store, &reveal, &claim->segment, &claim->attestor, error);
    *gone = status == STATUS_OK && !reveal.stands;
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status carry(void *context, const struct store_claim *claim, struct error *error)
{
    const struct carrying *carrying = context;
    struct node *node = carrying->node;
    enum game_turn ours = claim->accused ? GAME_TURN_ACCUSED : GAME_TURN_CLAIMANT;
    bool over = node->clock.time_s > claim->deadline_s;
    struct store_segment segment;
    bool gone = false;
    enum status status = store_segment_by_hash(node->ports.store, &segment, &claim->segment, error);

    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK; /* reorganized away; the event log will tell */
    }
    if (status == STATUS_OK) {
        status = find_gone(node, &gone, claim, &segment, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (gone) { /* the bond is the claimant's to take back */
        return claim->accused ? STATUS_OK : plan_about(node, ACTION_LAPSE, claim, 0, error);
    }
    if (claim->turn == ours) {
        return over ? tell_missed(node, claim, error)
                    : take_turn(node, carrying->busy, claim, &segment, error);
    }
    return over ? plan_about(node, ACTION_TIMEOUT, claim, claim->deadline_s, error) : STATUS_OK;
}

enum status claimant_round(struct node *node, bool *busy, struct error *error)
{
    struct carrying carrying = {node, busy};

    return node->options.mode == NODE_OBSERVE
               ? STATUS_OK
               : store_open_claims(node->ports.store, carry, &carrying, error);
}
