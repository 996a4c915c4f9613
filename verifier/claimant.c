/* claimant.c - see claimant.h. */
#include "verifier/claimant.h"

#include <stdio.h>
#include <string.h>

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

static enum status carry(void *context, const struct store_claim *claim, struct error *error)
{
    struct node *node = context;
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
    return STATUS_OK;
}

enum status claimant_round(struct node *node, struct error *error)
{
    return node->options.mode == NODE_OBSERVE
               ? STATUS_OK
               : store_open_claims(node->ports.store, carry, node, error);
}
