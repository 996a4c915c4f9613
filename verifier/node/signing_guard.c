/* signing_guard.c - see signing_guard.h. */
#include "verifier/node/signing_guard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "verifier/dispute/dispute_send.h"
#include "verifier/node/node_disputes.h"
#include "verifier/node/node_policy.h"
#include "verifier/node/solver_timeout.h"

static bool is_statement(enum action_kind kind)
{
    return kind == ACTION_ATTEST || kind == ACTION_SEAL || kind == ACTION_CLAIM;
}

static bool is_of_dispute(enum action_kind kind)
{
    return kind == ACTION_QUERY || kind == ACTION_CONVICT || kind == ACTION_REPLY;
}

/* ---- signing ------------------------------------------------------------- */

/* The verdict database takes what this node says is right. The root that it calls false must be the
 * one that stands revealed, and another. */
static enum status enter_accusation(struct node *node, const struct action *action,
                                    struct verdict_db_entry *entry, struct error *error)
{
    struct store_reveal reveal;
    enum status status =
        store_reveal(node->ports.store, &reveal, &action->segment, &action->attestor, error);

    if (status == STATUS_NOT_FOUND ||
        (status == STATUS_OK &&
         (!reveal.stands || !digest_equal(&reveal.root, &action->pre_state) ||
          digest_equal(&reveal.root, &action->post_state)))) {
        return error_set(error, STATUS_REFUSED, "the attestor did not reveal a false trace root");
    }
    TRY(status);
    entry->verdict = VERDICT_DB_PROVEN;
    entry->trace_root = action->post_state;
    return verdict_db_enter(node->ports.verdicts, entry, error);
}

/* The guard: a statement that the verdict database does not take is not signed. */
static enum status enter_statement(struct node *node, const struct action *action,
                                   const struct store_segment *segment, struct error *error)
{
    struct verdict_db_entry entry = node_entry(node, segment, &action->before);

    entry.step = action->step;
    if (!address_is_zero(&action->attestor)) {
        return enter_accusation(node, action, &entry, error);
    }
    if (action->kind == ACTION_ATTEST) {
        entry.verdict = VERDICT_DB_PROVEN;
        entry.trace_root = action->post_state;
    } else {
        entry.verdict = VERDICT_DB_REFUTED;
        entry.pre_state = action->pre_state;
        entry.post_state = action->post_state;
    }
    return verdict_db_enter(node->ports.verdicts, &entry, error);
}

/* A reorganization may have drawn another one since it was planned, or sealed. */
static enum status check_step(const struct node *node, const struct action *action,
                              const struct store_segment *segment, struct error *error)
{
    if (!hash32_is_zero(&segment->seed) &&
        action->step != game_sampled_step(&segment->seed, ledger_get_own(node->ports.ledger),
                                          segment->committed.steps)) {
        return error_set(error, STATUS_REFUSED, "another step was drawn since it was planned");
    }
    return STATUS_OK;
}

/* Reveals what the verdict database says was found, whatever the queue says. */
static enum status reveal(struct node *node, const struct action *action,
                          const struct store_segment *segment, struct error *error)
{
    struct verdict_db_entry entry = node_entry(node, segment, &action->before);
    enum status status;

    TRY(check_step(node, action, segment, error)); /* the bond is lost, nothing false is said */
    entry.step = action->step;
    status = verdict_db_find(&entry, node->ports.verdicts, error);
    if (status == STATUS_NOT_FOUND || (status == STATUS_OK && entry.verdict != VERDICT_DB_PROVEN)) {
        return error_set(error, STATUS_REFUSED,
                         "the verdict database does not know what to reveal");
    }
    TRY(status);
    return ledger_reveal(node->ports.ledger, action->name, &segment->job, &segment->committed,
                         &entry.trace_root, error);
}

static enum status whistle(struct node *node, const struct action *action,
                           const struct store_segment *segment, struct error *error)
{
    struct ledger_whistle made = {.job = segment->job,
                                  .segment = segment->committed,
                                  .step = action->step,
                                  .pre_state = action->pre_state,
                                  .post_state = action->post_state};
    struct ledger_accusation accusation = {
        .job = segment->job, .segment = segment->committed, .attestor = action->attestor};
    struct hash32 claim;

    made.salt = verdict_db_derive(node->ports.verdicts, "the salt of a claim", action->claim.bytes,
                                  HASH32_SIZE);
    if (!address_is_zero(&action->attestor)) {
        accusation.salt = made.salt;
        return action->kind == ACTION_SEAL
                   ? ledger_seal_accusation(node->ports.ledger, action->name, &claim, &accusation,
                                            error)
                   : ledger_accuse(node->ports.ledger, action->name, &segment->terms, &accusation,
                                   error);
    }
    return action->kind == ACTION_SEAL
               ? ledger_seal_claim(node->ports.ledger, action->name, &claim, &made, error)
               : ledger_claim(node->ports.ledger, action->name, &segment->terms, &made, error);
}

static enum status send_about_segment(struct node *node, const struct action *action,
                                      const struct store_segment *segment, struct error *error)
{
    struct ledger *ledger = node->ports.ledger;

    if (action->kind == ACTION_ATTEST) {
        TRY(check_step(node, action, segment, error));
    }
    if (is_statement(action->kind)) {
        TRY(node_policy_sign(node, action, segment, error));
        TRY(enter_statement(node, action, segment, error));
    }
    switch (action->kind) {
    case ACTION_DRAW:
        return ledger_draw(ledger, action->name, &segment->job, &segment->committed, error);
    case ACTION_ATTEST:
        return ledger_attest(ledger, action->name, &segment->job, &segment->terms,
                             &segment->committed, &action->post_state, error);
    case ACTION_REVEAL:
        return reveal(node, action, segment, error);
    case ACTION_SETTLE:
        return ledger_settle(ledger, action->name, &segment->job, &segment->committed,
                             ledger_get_own(ledger), error);
    case ACTION_SEAL:
    case ACTION_CLAIM:
        return whistle(node, action, segment, error);
    case ACTION_FINALIZE:
        return ledger_finalize(ledger, action->name, &segment->job, &segment->committed, error);
    case ACTION_RENEW:
        return ledger_renew(ledger, action->name, &segment->job, &segment->committed, error);
    case ACTION_EXPIRE:
        return ledger_expire(ledger, action->name, &segment->job, error);
    case ACTION_TIMEOUT:
    case ACTION_LAPSE:
    case ACTION_WITHDRAW:
    case ACTION_QUERY:
    case ACTION_CONVICT:
    case ACTION_REPLY:
        break;
    }
    return error_set(error, STATUS_USAGE, "this move is not about a segment");
}

static enum status send(struct node *node, const struct action *action, struct error *error)
{
    struct ledger *ledger = node->ports.ledger;
    struct store_segment segment;
    enum status status;

    if (action->kind == ACTION_TIMEOUT) {
        return ledger_timeout(ledger, action->name, &action->claim, error);
    }
    if (action->kind == ACTION_LAPSE) {
        return ledger_lapse(ledger, action->name, &action->claim, error);
    }
    if (action->kind == ACTION_WITHDRAW) {
        return ledger_withdraw(ledger, action->name, ledger_get_own(ledger), error);
    }
    if (is_of_dispute(action->kind)) {
        const struct dispute_ports ports = node_dispute_ports(node);

        return dispute_send(&ports, action, error);
    }
    status = store_segment_by_hash(node->ports.store, &segment, &action->segment, error);
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

static enum status set(struct node *node, const struct action *action, enum action_state state,
                       uint64_t due_s, const char *trouble, struct error *error)
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
        return set(node, action, ACTION_LATE, action->due_s, "its time was over before it was sent",
                   error);
    }
    if (node->fault && is_statement(action->kind)) {
        return STATUS_OK; /* this machine is not believed any more */
    }
    status = may_go(node, &may, action, error);
    if (status != STATUS_OK || !may) {
        return status == STATUS_UNREACHABLE ? STATUS_OK : status;
    }
    *busy = true;
    status = send(node, action, &why);
    if (status == STATUS_OK) {
        return set(node, action, ACTION_SENT, action->due_s, "", error);
    }
    if (is_of_dispute(action->kind) && (status == STATUS_NOT_FOUND || status == STATUS_BAD_FORMAT ||
                                        status == STATUS_OVER_LIMIT)) {
        const struct dispute_ports ports = node_dispute_ports(node);

        return dispute_lost(&ports, action, why.text, error);
    }
    /* No money, no endpoint, a contradiction: all of it may change until it is late. */
    action->tries++;
    return set(node, action, ACTION_PLANNED, dispute_again_s(node->clock.time_s, action->tries),
               why.text, error);
}

/* A reorganization may have put the move before one that must come first. A move that is too late
 * for its round may be in time for the next one. */
static bool is_worth_another_try(const struct node *node, const struct action *action,
                                 enum game_refusal_kind kind)
{
    bool has_time = node->clock.time_s <= action->late_s;

    if (kind == GAME_TOO_EARLY) {
        return !solver_timeout_is_anybodys(action->kind);
    }
    return (kind == GAME_TOO_LATE || kind == GAME_NOT_SEALED) && has_time &&
           (is_statement(action->kind) || action->kind == ACTION_REVEAL);
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
        return set(node, action, ACTION_PLANNED, action->due_s, "", error);
    }
    if (status == STATUS_OK && outcome.state == LEDGER_MOVE_WAITING && outcome.trouble[0] != '\0') {
        /* A fee, a nonce, no money: the ledger tries again by itself, and people can see it. */
        return set(node, action, ACTION_SENT, action->due_s, outcome.trouble, error);
    }
    if (status != STATUS_OK || outcome.state == LEDGER_MOVE_WAITING ||
        outcome.state == LEDGER_MOVE_DONE) {
        return status;
    }
    if (outcome.state == LEDGER_MOVE_FINAL) {
        return set(node, action, ACTION_DONE, action->due_s, "", error);
    }
    if (is_worth_another_try(node, action, outcome.refusal.kind)) {
        action->tries++;
        due_s = dispute_again_s(node->clock.time_s, action->tries);
        return set(node, action, ACTION_PLANNED, due_s > action->due_s ? due_s : action->due_s,
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
    return set(node, action, state, due_s,
               outcome.refusal.kind == GAME_REFUSED_NOT ? "the ledger reverted it"
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
