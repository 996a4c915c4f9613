/* node_panel.c - see node_panel.h. */
#include "verifier/node/node_panel.h"

#include <stdio.h>
#include <string.h>

#include "base/endian.h"
#include "chain/commands/allow_file.h"
#include "chain/game/terms.h"
#include "verifier/node/node_policy.h"

#define NO_ROOM "no room for its bond: "

/* A round looks at some jobs only. Those that found no room come last, in random order, so that
 * they do not keep out one that has room. */
#define IN_TURN "CASE WHEN w.reason LIKE '" NO_ROOM "%' THEN abs(random() / 2) ELSE -1 END"

/* ---- lists ---------------------------------------------------------------------- */

/* The path of this account in the list that the job names. STATUS_REFUSED: in none of ours. */
static enum status find_path(struct node *node, struct digest siblings[GAME_ALLOW_MAX],
                             uint32_t *count, const struct hash32 *root, struct error *error)
{
    const struct node_options *options = &node->options;
    const struct address *own = ledger_get_own(node->ports.ledger);

    *count = 0;
    if (hash32_is_zero(root)) {
        return STATUS_OK;
    }
    for (size_t i = 0; i < options->allow_list_count; i++) {
        enum status status =
            allow_file_path(siblings, count, root, own, options->allow_lists[i], error);

        if (status != STATUS_REFUSED) {
            return status;
        }
    }
    return error_set(error, STATUS_REFUSED, "its panel is a list that --allow-list does not name");
}

static struct game_bytes contact_of(const struct node *node)
{
    const char *contact = node->options.contact == NULL ? "" : node->options.contact;

    return (struct game_bytes){(const uint8_t *)contact, strlen(contact)};
}

enum status node_panel_enlist(struct node *node, const struct action *action, struct error *error)
{
    const struct game_bytes bytes = contact_of(node);
    struct digest siblings[GAME_ALLOW_MAX];
    struct game_hashes path = {siblings, 0};
    struct store_job job;

    TRY(store_job(node->ports.store, &job, &action->job, error));
    TRY(node_policy_enlist_now(node, &job, error));
    TRY(find_path(node, siblings, &path.count, &job.terms.verifiers, error));
    return ledger_enlist(node->ports.ledger, action->name, &job.key, &job.terms, 1, &path, &bytes,
                         error);
}

/* ---- enlisting ------------------------------------------------------------------ */

static const char *why_not(struct node *node, const struct store_job *job)
{
    const struct address *own = ledger_get_own(node->ports.ledger);
    struct digest siblings[GAME_ALLOW_MAX];
    uint32_t count;
    struct error ignored;

    error_init(&ignored);
    if (job->terms.seats == 0) {
        return "it has no panel";
    }
    if (address_equal(&job->client, own) || address_equal(&job->state.solver, own) ||
        address_equal(&job->terms.keeper, own)) {
        return "it is our own";
    }
    if (node->clock.time_s > job->terms.deadline_s) {
        return "its deadline was over when it was seen";
    }
    return find_path(node, siblings, &count, &job->terms.verifiers, &ignored) == STATUS_OK
               ? NULL
               : "its panel is a list that --allow-list does not name, or that we are not on";
}

/* One entry at a time: the bond of each is asked about. */
static enum status plan_entry(struct node *node, const struct store_job *job, struct error *error)
{
    struct action action = {
        .kind = ACTION_ENLIST, .job = job->key, .late_s = job->terms.deadline_s};

    action.number = (uint32_t)job->enlisted;
    node_name(action.name, ACTION_ENLIST, &job->key, action.number);
    return node_plan_again(node, &action, error);
}

/* Passes a job, or departs from it: said once, since no round looks at it again. */
static enum status give_up(struct node *node, const struct hash32 *job, enum store_wish wish,
                           const char *why, struct error *error)
{
    char name[STORE_PLACE_TEXT];

    store_job_text(name, job);
    log_info(node->ports.log, "verifier", "%s: %s: %s", name,
             wish == STORE_DEPART ? "departing from its panel" : "not in its panel", why);
    return store_wish(node->ports.store, job, wish, why, error);
}

/* Blind enlistment would let a stranger lock our bonds for work that we cannot do in time: so a
 * step of the job runs here first. *ready: it did. */
static enum status try_job(struct node *node, bool *ready, const struct store_job *job,
                           struct error *error)
{
    const struct store_segment about = queue_trial_of(job);
    const struct task wanted = {
        .kind = TASK_TRIAL, .deadline_s = job->terms.deadline_s, .expiry_s = job->terms.deadline_s};
    char reason[STORE_REASON_MAX];
    char text[STORE_REASON_MAX];
    struct task task;
    bool full = false;
    enum status status = queue_find(node->ports.store, &task, TASK_TRIAL, &about, 0, error);

    *ready = status == STATUS_OK && task.state == TASK_DONE;
    if (*ready) {
        return STATUS_OK;
    }
    if (status == STATUS_NOT_FOUND) {
        TRY(queue_add(node->ports.store, &full, &about, &wanted, error));
        return store_wish(node->ports.store, &job->key, STORE_UNDECIDED,
                          "its job is tried here first", error);
    }
    TRY(status);
    TRY(queue_reason(node->ports.store, reason, &task, error));
    if (task.state == TASK_SKIPPED) {
        (void)snprintf(text, sizeof(text), "its job cannot be tried here: %.400s", reason);
        return give_up(node, &job->key, STORE_PASS, text, error);
    }
    if (reason[0] == '\0') {
        return STATUS_OK;
    }
    (void)snprintf(text, sizeof(text), "its job was not to be tried here yet: %.400s", reason);
    return store_wish(node->ports.store, &job->key, STORE_UNDECIDED, text, error);
}

/* What the policy says of it now. A job for which there is no room stays undecided: other bonds
 * come back. */
static enum status take_or_pass(struct node *node, const struct store_job *job,
                                const struct policy_refusal *refusal, struct error *error)
{
    struct store *store = node->ports.store;
    char text[STORE_REASON_MAX];

    if (refusal->term == POLICY_AGREED) {
        TRY(store_wish(store, &job->key, STORE_ENLIST, "in its panel", error));
        return plan_entry(node, job, error);
    }
    (void)snprintf(text, sizeof(text), "%s%.480s",
                   refusal->for_now ? NO_ROOM : "the policy: ", refusal->text);
    if (!refusal->for_now) {
        return give_up(node, &job->key, STORE_PASS, text, error);
    }
    return store_wish(store, &job->key,
                      job->ours > 0 ? STORE_ENLIST /* with the entries that it has */
                                    : STORE_UNDECIDED,
                      text, error);
}

/* A client that names the roots of another program, data or state could convict a verdict that is
 * right. *agreed: the terms name those of the job that was tried. */
static enum status compare_terms(struct node *node, bool *agreed, const struct store_job *job,
                                 struct error *error)
{
    struct error why;

    error_init(&why);
    *agreed = terms_check_header(&job->terms, job->header, &why) == STATUS_OK;
    return *agreed ? STATUS_OK : give_up(node, &job->key, STORE_PASS, why.text, error);
}

/* The policy is asked before the trial, which costs some work, and after it, by what it took. */
static enum status consider_job(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_job *job = row;
    struct policy_refusal refusal = {.term = POLICY_AGREED};
    const char *why = why_not(node, job);
    bool ready = false;
    enum status status;

    if (why != NULL) {
        return give_up(node, &job->key, STORE_PASS, why, error);
    }
    status = node_policy_enlist(node, &refusal, job, error);
    if (status == STATUS_UNREACHABLE) {
        return STATUS_OK; /* the next round looks at the account again */
    }
    TRY(status);
    if (refusal.term == POLICY_AGREED) {
        TRY(try_job(node, &ready, job, error));
        if (ready) {
            TRY(compare_terms(node, &ready, job, error));
        }
    }
    return refusal.term != POLICY_AGREED || ready ? take_or_pass(node, job, &refusal, error)
                                                  : STATUS_OK;
}

static enum status enlist_jobs(struct node *node, struct error *error)
{
    char where[600];

    (void)snprintf(
        where, sizeof(where),
        "j.phase IN (:job_open, :job_running) AND NOT j.barred AND coalesce(w.wish, 0)"
        " IN (:undecided, :to_enlist) AND (SELECT count(*) FROM entries e WHERE"
        " e.job = j.key AND e.generation = j.generation AND e.ours = 1 AND e.gone = 0) < %u"
        " AND NOT EXISTS (SELECT 1 FROM actions a"
        " WHERE a.job = j.key AND a.kind = :enlist AND a.state IN (:action_planned,"
        " :action_sent)) ORDER BY %s",
        node->options.entries, IN_TURN);
    return store_visit(node->ports.store, STORE_JOBS, where, consider_job, node, error);
}

/* ---- announcing ----------------------------------------------------------------- */

enum status node_panel_announce(struct node *node, const struct action *action, struct error *error)
{
    const struct game_bytes bytes = contact_of(node);

    return ledger_announce(node->ports.ledger, action->name, &action->job, &bytes, error);
}

/* The name follows from what is said and from the word before it: each change is said once. */
static enum status announce_contact(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_job *job = row;
    const struct job_record_contact *said = job_record_contact(
        board_find(node->ports.store->board, &job->key), ledger_get_own(node->ports.ledger));
    struct action action = {.kind = ACTION_ANNOUNCE, .job = job->key, .late_s = GAME_TIME_MAX};
    struct action before;
    char about[GAME_CONTACT_MAX + 32];
    struct hash32 hash;
    enum status status;

    if (said != NULL && strcmp(said->url, node->options.contact) == 0) {
        return STATUS_OK;
    }
    (void)snprintf(about, sizeof(about), "%lld %s", said == NULL ? 0 : (long long)said->number,
                   node->options.contact);
    hash = verdict_db_derive(node->ports.verdicts, "a contact", about, strlen(about));
    node_name(action.name, ACTION_ANNOUNCE, &job->key, endian_load_be32(hash.bytes));
    status = action_find(node->ports.store, &before, action.name, error);
    return status == STATUS_NOT_FOUND ? action_plan(node->ports.store, &action, error) : status;
}

/* ---- departing ------------------------------------------------------------------ */

/* The terms stay, but what a replay takes here changes. */
static enum status reconsider_job(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_job *job = row;
    struct policy_refusal refusal = {.term = POLICY_AGREED};
    char text[STORE_REASON_MAX];
    enum status status;

    if (job->state.phase == GAME_PHASE_OPEN && node->clock.time_s > job->terms.deadline_s) {
        return give_up(node, &job->key, STORE_DEPART, "its deadline is over", error);
    }
    status = node_policy_terms(node, &refusal, job, error);
    if (status != STATUS_OK || refusal.term == POLICY_AGREED) {
        return status == STATUS_UNREACHABLE ? STATUS_OK : status;
    }
    (void)snprintf(text, sizeof(text), "the policy agrees no longer: %.480s", refusal.text);
    return give_up(node, &job->key, STORE_DEPART, text, error);
}

static enum status plan_departure(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_entry *entry = row;
    struct action action = {.kind = ACTION_DEPART,
                            .job = entry->job,
                            .generation = entry->generation,
                            .number = entry->number,
                            .late_s = GAME_TIME_MAX};

    /* Its number may be that of another entry later. */
    action_name(action.name, ACTION_DEPART, &entry->job);
    (void)snprintf(action.name + strlen(action.name), sizeof(action.name) - strlen(action.name),
                   "/%llu", (unsigned long long)entry->enlisted);
    return node_plan_again(node, &action, error);
}

#define IS_OURS                                                                                    \
    "EXISTS (SELECT 1 FROM entries e WHERE e.job = j.key AND e.generation ="                       \
    " j.generation AND e.ours = 1 AND e.gone = 0)"

/* One at a time of a panel that still grows and shrinks: others may get another number by it. */
#define NONE_DEPARTS                                                                               \
    "NOT EXISTS (SELECT 1 FROM actions a WHERE a.job = e.job AND a.kind = :depart AND"             \
    " a.generation = e.generation AND a.state IN (:action_planned, :action_sent))"

enum status node_panel_round(struct node *node, struct error *error)
{
    struct store *store = node->ports.store;

    if (node->options.mode == NODE_ACT && !node->options.by_hand && !node->fault) {
        TRY(enlist_jobs(node, error));
        TRY(store_visit(store, STORE_JOBS,
                        "j.phase <> :job_closed AND coalesce(w.wish, 0) <> :to_depart AND " IS_OURS,
                        reconsider_job, node, error));
    }
    if (node->options.mode == NODE_ACT && !node->options.by_hand && node->options.contact != NULL) {
        TRY(store_visit(store, STORE_JOBS, "j.phase <> :job_closed AND " IS_OURS, announce_contact,
                        node, error));
    }
    TRY(store_visit(store, STORE_ENTRIES,
                    "e.ours = 1 AND e.gone = 0 AND (e.generation < j.generation OR"
                    " j.phase = :job_closed)",
                    plan_departure, node, error));
    return store_visit(store, STORE_ENTRIES,
                       "e.ours = 1 AND e.gone = 0 AND e.generation = j.generation AND"
                       " j.phase = :job_open AND EXISTS (SELECT 1 FROM wishes w WHERE"
                       " w.job = j.key AND w.wish = :to_depart) AND NOT EXISTS (SELECT 1 FROM"
                       " entries o WHERE o.job = e.job AND o.generation = e.generation AND o.ours ="
                       " 1 AND o.gone = 0 AND o.number > e.number) AND " NONE_DEPARTS,
                       plan_departure, node, error);
}
