/* claimant.c - see claimant.h. */
#include "verifier/claimant.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "verifier/duel.h"

#define FIRST_DISPUTE ((int64_t)1 << 62) /* numbers of children; tasks stay far below */

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
    /* It came too early once: the turn went on. */
    return status == STATUS_OK && before.state == ACTION_REFUSED
               ? action_set(node->ports.store, &before, ACTION_PLANNED, due_s, "", error)
               : status;
}

/* ---- the memory of a dispute ------------------------------------------------- */

static enum status folder_of(char folder[FILE_PATH_MAX], const struct node *node,
                             const struct hash32 *claim, struct error *error)
{
    char name[16 + 2 * HASH32_SIZE];
    char text[HEX_SIZE(HASH32_SIZE)];

    hex_encode(text, claim->bytes, HASH32_SIZE);
    (void)snprintf(name, sizeof(name), "claim-%s", text);
    return file_path_join(folder, FILE_PATH_MAX, error, node->options.cache, name);
}

static enum status keep(const struct node *node, const struct hash32 *claim, const char *name,
                        const void *bytes, size_t size, struct error *error)
{
    char folder[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];
    enum status status = folder_of(folder, node, claim, error);

    if (status == STATUS_OK) {
        status = file_path_join(path, sizeof(path), error, folder, name);
    }
    if (status != STATUS_OK || !file_exists(folder)) {
        return status; /* a dispute of somebody else's */
    }
    return file_write(path, error, bytes, size, 0600);
}

enum status claimant_hear(struct node *node, const struct ledger_entry *entry, struct error *error)
{
    const struct game_event *event = &entry->event;

    if (entry->kind != LEDGER_EVENT) {
        return STATUS_OK;
    }
    if (event->kind == GAME_TOLD) {
        return keep(node, &event->claim, "told", event->payload.bytes, event->payload.size, error);
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

/* Starts the child that finds the move; without a free one the next round tries again. */
static enum status find_move(struct node *node, const struct store_claim *claim,
                             const struct store_segment *segment, const struct digest *trace_root,
                             const char *folder, const char *name, struct error *error)
{
    struct check_request *request = NULL;
    enum status status = node_request(node, &request, segment, error);

    if (status == STATUS_OK) {
        request->disputed = true;
        request->disputed_step = claim->step;
        request->accused_root = *trace_root;
        (void)snprintf(request->folder, sizeof(request->folder), "%s", folder);
        (void)snprintf(request->move, sizeof(request->move), "%s", name);
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

    hex_encode(text, place->claim.bytes, HASH32_SIZE);
    if (result->outcome == CHECK_FAULT) {
        return node_fault(node, result->reason, error);
    }
    if (result->outcome != CHECK_PROVEN) {
        log_warn(node->ports.log, "verifier", "the next move of claim %.16s... is not found: %s",
                 text, result->reason[0] == '\0' ? "an earlier step is false" : result->reason);
    }
    return STATUS_OK;
}

static enum status make_case(struct node *node, struct game_case *shown,
                             const struct store_claim *claim, const struct store_segment *segment,
                             const struct duel_move *move, struct error *error)
{
    struct store_segment previous;
    struct ledger_job job;
    enum status status = ledger_get_job(node->ports.ledger, &job, &claim->job, error);

    memset(shown, 0, sizeof(*shown));
    if (status == STATUS_OK && claim->step == 0 && claim->index > 0) {
        status = store_segment(node->ports.store, &previous, &claim->job, claim->index - 1, error);
        shown->previous = previous.committed;
    }
    if (status != STATUS_OK) {
        return status;
    }
    shown->client = job.client;
    shown->salt = segment->terms.salt;
    memcpy(shown->job_header, move->job_header, sizeof(shown->job_header));
    shown->segment = segment->committed;
    shown->step = claim->step;
    shown->pre_state = claim->pre_state;
    shown->post_state = claim->post_state;
    shown->pre_path = move->pre_path;
    shown->post_path = move->post_path;
    return STATUS_OK;
}

static enum status submit(struct node *node, const char *name, const struct store_claim *claim,
                          const struct store_segment *segment, const struct duel_move *move,
                          struct error *error)
{
    struct game_case *shown = calloc(1, sizeof(*shown));
    enum status status = shown == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for a move")
                                       : make_case(node, shown, claim, segment, move, error);

    if (status == STATUS_OK) {
        status = move->kind == DUEL_ASK
                     ? ledger_ask(node->ports.ledger, name, &claim->key, shown, move->payload,
                                  move->payload_size, error)
                     : ledger_convict(node->ports.ledger, name, &claim->key, shown, move->payload,
                                      move->payload_size, error);
    }
    free(shown);
    return status;
}

/* Once for each turn: what the ledger has of it already is left to it. */
static enum status send_move(struct node *node, bool *busy, const struct store_claim *claim,
                             const struct store_segment *segment, const struct duel_move *move,
                             uint32_t turns, struct error *error)
{
    char name[LEDGER_NAME_MAX + 1];
    char text[HEX_SIZE(HASH32_SIZE)];
    struct ledger_outcome outcome;
    struct error why;
    enum status status;

    error_init(&why);
    hex_encode(text, claim->key.bytes, HASH32_SIZE);
    if (move->kind == DUEL_NO_LIE) {
        return node->fault ? STATUS_OK
                           : node_fault(node,
                                        "a claim was made, and the accused is right in all "
                                        "that it made of the step",
                                        error);
    }
    (void)snprintf(name, sizeof(name), "%s/%s/%" PRIu32, move->kind == DUEL_ASK ? "ask" : "convict",
                   text, turns);
    status = ledger_look(node->ports.ledger, &outcome, name, &why);
    if (status == STATUS_OK) {
        return STATUS_OK;
    }
    if (status == STATUS_NOT_FOUND) {
        status = submit(node, name, claim, segment, move, &why);
        *busy = true;
    }
    if (status == STATUS_OK) {
        status = ledger_look(node->ports.ledger, &outcome, name, &why);
    }
    if (status != STATUS_OK) {
        log_warn(node->ports.log, "verifier", "%s: %s", name, why.text);
    } else if (outcome.state == LEDGER_MOVE_REFUSED) {
        log_error(node->ports.log, "verifier", "%s is refused: %s", name,
                  game_refusal_text(outcome.refusal.kind));
    } else {
        log_info(node->ports.log, "verifier", "%s is sent", name);
    }
    return status == STATUS_NO_MEMORY ? status : STATUS_OK;
}

static enum status take_turn(struct node *node, bool *busy, const struct store_claim *claim,
                             const struct store_segment *segment, struct error *error)
{
    struct ledger_claim standing;
    struct file_bytes bytes = {0};
    struct duel_move move;
    struct error why;
    char folder[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];
    char name[64];
    enum status status;

    error_init(&why);
    if (ledger_get_claim(node->ports.ledger, &standing, &claim->key, &why) != STATUS_OK ||
        standing.phase != GAME_CLAIM_TRIED || standing.turn != GAME_TURN_CLAIMANT ||
        node->clock.time_s > standing.deadline_s) {
        return STATUS_OK;
    }
    if (is_running(node, &claim->key)) {
        *busy = true;
        return STATUS_OK;
    }
    status = folder_of(folder, node, &claim->key, error);
    (void)snprintf(name, sizeof(name), "move-%" PRIu32, standing.turns);
    if (status == STATUS_OK) {
        status = file_path_join(path, sizeof(path), error, folder, name);
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = file_read(&bytes, &why, path, (size_t)256 * 1024);
    if (status == STATUS_OK) {
        status = duel_move_read(&move, bytes.data, bytes.size, &why);
    }
    status = status == STATUS_OK
                 ? send_move(node, busy, claim, segment, &move, standing.turns, error)
                 : find_move(node, claim, segment, &standing.trace_root, folder, name, error);
    file_bytes_release(&bytes);
    return status;
}

static enum status carry(void *context, const struct store_claim *claim, struct error *error)
{
    const struct carrying *carrying = context;
    struct node *node = carrying->node;
    struct store_segment segment;
    enum status status = store_segment_by_hash(node->ports.store, &segment, &claim->segment, error);

    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK; /* reorganized away; the chronicle will tell */
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (segment.is_void) {
        return plan_about(node, ACTION_LAPSE, claim, 0, error);
    }
    if (claim->turn == GAME_TURN_ACCUSED && node->clock.time_s > claim->deadline_s) {
        return plan_about(node, ACTION_TIMEOUT, claim, claim->deadline_s, error);
    }
    return claim->turn == GAME_TURN_CLAIMANT
               ? take_turn(node, carrying->busy, claim, &segment, error)
               : STATUS_OK;
}

enum status claimant_round(struct node *node, bool *busy, struct error *error)
{
    struct carrying carrying = {node, busy};

    return node->options.mode == NODE_OBSERVE
               ? STATUS_OK
               : store_open_claims(node->ports.store, carry, &carrying, error);
}
