/* signing_guard.c - see signing_guard.h. */
#include "verifier/node/signing_guard.h"

#include <stdlib.h>
#include <string.h>

#include "verifier/dispute/dispute_case.h"
#include "verifier/dispute/dispute_send.h"
#include "verifier/node/node_claims.h"
#include "verifier/node/node_disputes.h"
#include "verifier/node/node_panel.h"
#include "verifier/node/node_policy.h"
#include "verifier/node/node_seats.h"
#include "verifier/node/solver_timeout.h"

/* What a machine at fault does not say. */
static bool is_statement(enum action_kind kind)
{
    return kind == ACTION_SEAL || kind == ACTION_ALARM || kind == ACTION_UNSEEN ||
           kind == ACTION_SEAL_CLAIM || kind == ACTION_CLAIM || kind == ACTION_ENLIST;
}

static bool is_of_dispute(enum action_kind kind)
{
    return kind == ACTION_QUERY || kind == ACTION_CONVICT;
}

/* ---- signing ------------------------------------------------------------- */

/* The guard: a claim that the verdict database does not take is not signed. */
static enum status enter_claim(struct node *node, const struct action *action,
                               const struct store_segment *segment, struct error *error)
{
    struct verdict_db_entry entry = node_entry(node, segment, &action->before);

    entry.verdict = GAME_VERDICT_FALSE;
    entry.step = action->step;
    entry.pre_state = action->pre_state;
    entry.post_state = action->post_state;
    return verdict_db_enter(node->ports.verdicts, &entry, error);
}

static enum status claim_falsehood(struct node *node, const struct action *action,
                                   const struct store_segment *segment, const struct hash32 *salt,
                                   wei bond, struct error *error)
{
    struct game_case *shown = calloc(1, sizeof(*shown));
    enum status status;

    if (shown == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a claim");
    }
    TRY_OUT(dispute_case(shown, node->ports.store, segment, action->step, error));
    status =
        ledger_claim(node->ports.ledger, action->name, &segment->job, shown, salt, bond, error);
out:
    free(shown);
    return status;
}

/* number: how many outsiders have a claim already, as far as we know. */
static enum status whistle_claim(struct node *node, const struct action *action,
                                 const struct store_segment *segment, struct error *error)
{
    struct hash32 salt = verdict_db_derive(node->ports.verdicts, "the salt of a claim",
                                           action->claim.bytes, HASH32_SIZE);
    wei bond = game_claim_bond(&segment->terms, action->number);

    TRY(node_policy_claim(node, action, segment, bond, error));
    TRY(enter_claim(node, action, segment, error));
    return action->kind == ACTION_SEAL_CLAIM
               ? ledger_seal_claim(node->ports.ledger, action->name, &action->claim, &salt, error)
               : claim_falsehood(node, action, segment, &salt, bond, error);
}

static struct ledger_challenge challenge_of(const struct node *node, const struct action *action,
                                            const struct store_segment *segment)
{
    return (struct ledger_challenge){
        .job = segment->job,
        .segment = segment->committed,
        .place = action->place,
        .which = action->number,
        .seal_salt = verdict_db_derive(node->ports.verdicts, "the salt of a challenge",
                                       action->claim.bytes, HASH32_SIZE)};
}

static enum status seal_challenge(struct node *node, const struct action *action,
                                  const struct store_segment *segment, struct error *error)
{
    const struct ledger_challenge sealed = challenge_of(node, action, segment);

    return ledger_seal_challenge(node->ports.ledger, action->name, &sealed, error);
}

/* The leaf was proven by a check of its own. */
static enum status challenge_right(struct node *node, const struct action *action,
                                   const struct store_segment *segment, struct error *error)
{
    struct ledger_challenge made = challenge_of(node, action, segment);
    struct check_result *result = NULL;
    struct store_seat seat;
    struct task task;
    enum status status =
        queue_find(node->ports.store, &task, TASK_CHECK, segment, action->number + 1, error);

    TRY_OUT(status);
    TRY_OUT(store_seat(node->ports.store, &seat, &segment->hash, action->place, error));
    made.leaves = seat.leaves;
    made.salt = seat.salt;
    TRY_OUT(queue_result(node->ports.store, &result, &task, error));
    status = ledger_challenge(node->ports.ledger, action->name, &made, result->proof,
                              result->proof_size, error);
out:
    free(result);
    return status == STATUS_NOT_FOUND
               ? error_set(error, STATUS_REFUSED, "the leaf to be shown is not here (any more)")
               : status;
}

static enum status send_about_segment(struct node *node, const struct action *action,
                                      const struct store_segment *segment, struct error *error)
{
    struct ledger *ledger = node->ports.ledger;
    const struct job_segment state = store_segment_state(segment);

    switch ((int)action->kind) {
    case ACTION_DRAW:
        return ledger_draw(ledger, action->name, &segment->job, &segment->committed, &state.commits,
                           error);
    case ACTION_SEAL:
    case ACTION_REVEAL:
    case ACTION_ALARM:
    case ACTION_UNSEEN:
        return node_seats_send(node, action, segment, error);
    case ACTION_CHALLENGE:
        return challenge_right(node, action, segment, error);
    case ACTION_SEAL_CHALLENGE:
        return seal_challenge(node, action, segment, error);
    case ACTION_SEAL_CLAIM:
    case ACTION_CLAIM:
        return whistle_claim(node, action, segment, error);
    case ACTION_SETTLE:
        return solver_timeout_settle(node, action, segment, error);
    default:
        return error_set(error, STATUS_USAGE, "this move is not about a segment");
    }
}

static enum status send_action(struct node *node, const struct action *action, struct error *error)
{
    const struct dispute_ports ports = node_dispute_ports(node);
    struct ledger *ledger = node->ports.ledger;
    struct store_segment segment;
    enum status status;

    /* These name no segment, or one that their own code looks up. */
    switch ((int)action->kind) {
    case ACTION_ENLIST:
        return node_panel_enlist(node, action, error);
    case ACTION_DEPART:
        return ledger_depart(ledger, action->name, &action->job, action->generation, action->number,
                             error);
    case ACTION_TIMEOUT:
        return ledger_timeout(ledger, action->name, &action->claim, error);
    case ACTION_LAPSE:
        return ledger_lapse(ledger, action->name, &action->claim, error);
    case ACTION_PAY:
        return ledger_pay(ledger, action->name, &action->job, action->number, error);
    case ACTION_RELEASE:
        return ledger_release(ledger, action->name, &action->job, error);
    case ACTION_ANNOUNCE:
        return node_panel_announce(node, action, error);
    case ACTION_WITHDRAW:
        return ledger_withdraw(ledger, action->name, ledger_get_own(ledger), error);
    case ACTION_QUERY:
    case ACTION_CONVICT:
        return dispute_send(&ports, action, error);
    default:
        break;
    }
    status = store_segment_by_hash(node->ports.store, &segment, &action->segment, error);
    /* A reorganization may have taken it away: then there is nothing to say about it. */
    if (status == STATUS_NOT_FOUND) {
        return error_set(error, STATUS_REFUSED, "the segment is not on the ledger (any more)");
    }
    TRY(status);
    return send_about_segment(node, action, &segment, error);
}

/* ---- sending ------------------------------------------------------------- */

/* Is the move that must come first in a block below the next one? */
static enum status may_go(struct node *node, bool *may, const struct action *action,
                          struct error *error)
{
    struct ledger_outcome outcome;
    enum status status;

    *may = true;
    if (action->after[0] == '\0') {
        return STATUS_OK;
    }
    status = ledger_look(node->ports.ledger, &outcome, action->after, error);
    *may = status == STATUS_OK &&
           (outcome.state == LEDGER_MOVE_DONE || outcome.state == LEDGER_MOVE_FINAL) &&
           node->clock.height >= outcome.height;
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status set_state(struct node *node, const struct action *action,
                             enum action_state state, uint64_t due_s, const char *trouble,
                             struct error *error)
{
    if (state != action->state && state != ACTION_SENT) {
        char text[ACTION_TEXT];

        action_text(text, node->ports.store, action, state);
        log_write(node->ports.log,
                  state == ACTION_REFUSED || state == ACTION_LATE ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
                  "verifier", "%s%s%s", text, trouble[0] == '\0' ? "" : ": ", trouble);
    }
    return action_set(node->ports.store, action, state, due_s, trouble, error);
}

static enum status send_due(struct node *node, struct action *action, bool *busy,
                            struct error *error)
{
    struct error why;
    bool may = true;
    enum status status;

    error_init(&why);
    if (node->clock.time_s > action->late_s) {
        return set_state(node, action, ACTION_LATE, action->due_s,
                         "its time was over before it was sent", error);
    }
    if (node->fault && is_statement(action->kind)) {
        return STATUS_OK; /* this machine is not believed any more */
    }
    status = may_go(node, &may, action, error);
    if (status != STATUS_OK || !may) {
        return status == STATUS_UNREACHABLE ? STATUS_OK : status;
    }
    *busy = true;
    status = send_action(node, action, &why);
    if (status == STATUS_OK) {
        return set_state(node, action, ACTION_SENT, action->due_s, "", error);
    }
    if (is_of_dispute(action->kind) && (status == STATUS_NOT_FOUND || status == STATUS_BAD_FORMAT ||
                                        status == STATUS_OVER_LIMIT)) {
        const struct dispute_ports ports = node_dispute_ports(node);

        return dispute_lost(&ports, action, why.text, error);
    }
    /* No money, no endpoint, a contradiction: all of it may change until it is late. */
    action->tries++;
    return set_state(node, action, ACTION_PLANNED,
                     dispute_again_s(node->clock.time_s, action->tries), why.text, error);
}

/* A reorganization may have put the move before one that must come first. */
static bool is_worth_another_try(const struct node *node, const struct action *action,
                                 enum game_refusal_kind kind)
{
    bool has_time = node->clock.time_s <= action->late_s;

    switch ((int)kind) {
    case GAME_TOO_EARLY:
        return !solver_timeout_is_anybodys(action->kind);
    case GAME_NOT_SEALED:
        return action->kind == ACTION_REVEAL || action->kind == ACTION_ALARM;
    case GAME_NOT_DRAWN:
    case GAME_WRONG_PLACE:
        return has_time && action->kind == ACTION_SEAL;
    case GAME_FULL: /* others claim already, and will end */
        return has_time && action->kind == ACTION_CLAIM;
    default:
        return false;
    }
}

/* Another claimed first: the bond is higher now, and the ledger says how high. */
static bool raises_bond(struct node *node, struct action *action,
                        const struct game_refusal *refusal)
{
    struct store_segment segment;
    struct error ignored;

    error_init(&ignored);
    if (action->kind != ACTION_CLAIM || refusal->kind != GAME_WRONG_VALUE ||
        store_segment_by_hash(node->ports.store, &segment, &action->segment, &ignored) !=
            STATUS_OK) {
        return false;
    }
    for (uint32_t n = 0; n < GAME_OUTSIDERS_MAX; n++) {
        if (game_claim_bond(&segment.terms, n) == refusal->number) {
            action->number = n;
            return true;
        }
    }
    return false;
}

static enum status look_after(struct node *node, struct action *action, struct error *error)
{
    enum action_state state = ACTION_REFUSED;
    uint64_t due_s = action->due_s;
    struct ledger_outcome outcome;
    enum status status = ledger_look(node->ports.ledger, &outcome, action->name, error);

    if (status == STATUS_UNREACHABLE) {
        return STATUS_OK;
    }
    if (status == STATUS_NOT_FOUND) { /* the ledger's own memory was lost: send it again */
        return set_state(node, action, ACTION_PLANNED, action->due_s, "", error);
    }
    if (status == STATUS_OK && outcome.state == LEDGER_MOVE_WAITING && outcome.trouble[0] != '\0') {
        /* A fee, a nonce, no money: the ledger tries again by itself, and people can see it. */
        return set_state(node, action, ACTION_SENT, action->due_s, outcome.trouble, error);
    }
    if (status != STATUS_OK || outcome.state == LEDGER_MOVE_WAITING ||
        outcome.state == LEDGER_MOVE_DONE) {
        return status;
    }
    if (outcome.state == LEDGER_MOVE_FINAL) {
        return set_state(node, action, ACTION_DONE, action->due_s, "", error);
    }
    if ((action->kind == ACTION_CLAIM || action->kind == ACTION_CHALLENGE) &&
        outcome.refusal.kind == GAME_NOT_SEALED) {
        return node_seal_again(node, action, error);
    }
    if (raises_bond(node, action, &outcome.refusal)) {
        TRY(action_adjust(node->ports.store, action, error));
        return set_state(node, action, ACTION_PLANNED, action->due_s, "", error);
    }
    if (is_worth_another_try(node, action, outcome.refusal.kind)) {
        action->tries++;
        due_s = dispute_again_s(node->clock.time_s, action->tries);
        return set_state(node, action, ACTION_PLANNED,
                         due_s > action->due_s ? due_s : action->due_s,
                         game_refusal_text(outcome.refusal.kind), error);
    }
    action->refusal = outcome.refusal.kind;
    if (is_of_dispute(action->kind)) {
        const struct dispute_ports ports = node_dispute_ports(node);

        status = dispute_refused(&ports, &state, &due_s, action, error);
    } else if (solver_timeout_is_anybodys(action->kind)) {
        state = solver_timeout_refused(&due_s, node, outcome.refusal.kind);
    }
    TRY(status);
    return set_state(node, action, state, due_s,
                     outcome.refusal.kind == GAME_REFUSED_NOT
                         ? "the ledger reverted it"
                         : game_refusal_text(outcome.refusal.kind),
                     error);
}

enum status signing_guard_round(struct node *node, bool *busy, struct error *error)
{
    struct action *actions = node->actions;
    uint32_t count = 0;

    if (node->options.mode == NODE_OBSERVE) {
        return STATUS_OK;
    }
    TRY(action_list(node->ports.store, actions, &count, ACTION_SENT, INT64_MAX, INT64_MAX, error));
    for (uint32_t i = 0; i < count; i++) {
        TRY(look_after(node, &actions[i], error));
    }
    TRY(action_list(node->ports.store, actions, &count, ACTION_PLANNED, node->clock.time_s,
                    node->clock.height, error));
    for (uint32_t i = 0; i < count; i++) {
        TRY(send_due(node, &actions[i], busy, error));
    }
    return STATUS_OK;
}

enum status signing_guard_reopen(struct node *node, struct error *error)
{
    struct action *actions = node->actions;
    char after[LEDGER_NAME_MAX + 1] = "";
    uint32_t count;

    do {
        TRY(action_list_done(node->ports.store, actions, &count, after, error));
        for (uint32_t i = 0; i < count; i++) {
            struct ledger_outcome outcome;
            enum status status = ledger_look(node->ports.ledger, &outcome, actions[i].name, error);

            if (status == STATUS_OK && outcome.state != LEDGER_MOVE_FINAL) {
                status = set_state(node, &actions[i], ACTION_SENT, actions[i].due_s, "", error);
            }
            if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
                return status;
            }
            memcpy(after, actions[i].name, sizeof(after));
        }
    } while (count == QUEUE_ACTIONS_MAX);
    return STATUS_OK;
}
