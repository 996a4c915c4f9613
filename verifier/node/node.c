/* node.c - see node.h. */
#include "verifier/node/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening and closing ---------------------------------------------------- */

/* A fault stands in two files until somebody has looked. Either of them may be lost. */
static enum status load_fault(struct node *node, struct error *error)
{
    const struct node_ports *ports = &node->ports;
    char fault[STORE_REASON_MAX];
    char kept[VERDICT_DB_FAULT_MAX];

    TRY(store_text(ports->store, fault, "fault", error));
    TRY(verdict_db_fault(ports->verdicts, kept, error));
    if (fault[0] == '\0' && kept[0] == '\0') {
        return STATUS_OK;
    }
    node->fault = true;
    log_error(ports->log, "verifier", "nothing is signed, because of an earlier fault: %s",
              kept[0] != '\0' ? kept : fault);
    if (kept[0] == '\0') {
        return verdict_db_set_fault(ports->verdicts, fault, error);
    }
    return fault[0] == '\0' ? store_set_text(ports->store, "fault", kept, error) : STATUS_OK;
}

enum status node_forget_fault(struct store *store, struct verdict_db *verdicts, struct error *error)
{
    TRY(queue_forget_fault(store, error));
    TRY(store_set_text(store, "fault", "", error));
    return verdict_db_set_fault(verdicts, "", error);
}

/* The policy may be another than before. */
static enum status reconsider(struct store *store, struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE wishes SET wish = :undecided, reason = '' WHERE wish IN (:to_pass,"
                        " :to_depart)",
                        "");
}

enum status node_open(struct node *node, const struct node_options *options,
                      const struct node_ports *ports, struct error *error)
{
    enum status status;

    memset(node, 0, sizeof(*node));
    node->options = *options;
    node->ports = *ports;
    node->options.policy.currency = *ledger_get_currency(ports->ledger);
    if (node->options.checks_max == 0 || node->options.checks_max > NODE_CHECKS_MAX) {
        return error_set(error, STATUS_USAGE, "a node makes 1 to %d checks at once",
                         NODE_CHECKS_MAX);
    }
    node->actions = calloc(QUEUE_ACTIONS_MAX, sizeof(*node->actions));
    if (node->actions == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a node");
    }
    TRY_OUT(store_money_open(&node->money, ports->store, ledger_get_own(ports->ledger), error));
    TRY_OUT(load_fault(node, error));
    TRY_OUT(reconsider(ports->store, error));
    status = queue_recover(ports->store, error);
out:
    if (status != STATUS_OK) {
        node_close(node);
    }
    return status;
}

void node_close(struct node *node)
{
    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        free(node->running[i].request);
        free(node->running[i].result);
    }
    free(node->actions);
    store_money_release(&node->money);
    memset(node, 0, sizeof(*node));
}

enum status node_fault(struct node *node, const char *text, struct error *error)
{
    node->fault = true;
    log_error(node->ports.log, "verifier",
              "FAULT OF THIS MACHINE, nothing is sealed or claimed any more: %s", text);
    TRY(verdict_db_set_fault(node->ports.verdicts, text, error));
    return store_set_text(node->ports.store, "fault", text, error);
}

/* ---- what all parts of the node use ---------------------------------------- */

uint64_t node_seal_end(const struct store_segment *segment)
{
    struct job_segment found = store_segment_state(segment);

    return job_segment_seal_end(&found);
}

uint64_t node_reveal_end(const struct store_segment *segment)
{
    struct job_segment found = store_segment_state(segment);

    return job_segment_reveal_end(&found);
}

uint64_t node_claim_end(const struct store_segment *segment)
{
    struct job_segment found = store_segment_state(segment);

    return job_segment_claim_end(&found);
}

bool node_draws(const struct node *node, const char *words, const void *about, size_t size,
                double share)
{
    struct hash32 hash = verdict_db_derive(node->ports.verdicts, words, about, size);
    uint64_t number = 0;

    for (int i = 0; i < 6; i++) {
        number = number << 8 | hash.bytes[i];
    }
    return (double)number < share * (double)(UINT64_C(1) << 48);
}

struct verdict_db_entry node_entry(const struct node *node, const struct store_segment *segment,
                                   const struct digest *before)
{
    struct verdict_db_entry entry;

    memset(&entry, 0, sizeof(entry));
    entry.place = *ledger_get_place(node->ports.ledger);
    entry.job = segment->job;
    entry.segment = segment->committed.index;
    entry.root = segment->committed.root;
    entry.diverged = segment->committed.diverged;
    entry.before = *before;
    return entry;
}

struct verdict_db_seal node_seal(const struct node *node, const struct store_segment *segment,
                                 uint32_t place)
{
    struct verdict_db_seal seal;

    memset(&seal, 0, sizeof(seal));
    seal.place = *ledger_get_place(node->ports.ledger);
    seal.segment = segment->hash;
    seal.seed = segment->draw.seed;
    seal.seat = place;
    return seal;
}

void node_name(char name[LEDGER_NAME_MAX + 1], enum action_kind kind, const struct hash32 *about,
               uint32_t number)
{
    size_t size;

    action_name(name, kind, about);
    size = strlen(name);
    (void)snprintf(name + size, LEDGER_NAME_MAX + 1 - size, "/%" PRIu32, number);
}

enum status node_plan_again(struct node *node, const struct action *action, struct error *error)
{
    struct store *store = node->ports.store;
    struct action before;
    enum status status = action_find(store, &before, action->name, error);

    if (status == STATUS_NOT_FOUND) {
        return action_plan(store, action, error);
    }
    TRY(status);
    /* The ledger takes a name again that it refused. */
    if (before.state == ACTION_REFUSED || before.state == ACTION_LATE ||
        before.state == ACTION_OVERTAKEN) {
        TRY(action_forget(store, &before, error));
        return action_plan(store, action, error);
    }
    if (before.state == ACTION_DONE) {
        return STATUS_OK;
    }
    before.late_s = before.late_s > action->late_s ? before.late_s : action->late_s;
    return action_adjust(store, &before, error);
}
