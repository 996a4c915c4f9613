/* node_policy.c - see node_policy.h. */
#include "verifier/node/node_policy.h"

#include <inttypes.h>
#include <string.h>

/* ---- what is locked --------------------------------------------------------------- */

/* Job, entries, outsiders that a claim pays for, bond (or NULL). */
#define ROWS "SELECT j.key, "

/* What locks money, with a time since which it counts. */
static const struct {
    bool is_ours; /* else it is lost, or the purse still has it */
    const char *text;
} locks[] = {
    /* Bonds in panels, and of claims that are open. */
    {true, ROWS "count(*), 0, NULL FROM entries e JOIN jobs j ON j.key = e.job WHERE e.ours ="
                " 1 AND e.gone = 0 AND ? IS NOT NULL GROUP BY j.key"},
    {true, ROWS "0, 0, d.bond FROM disputes d JOIN jobs j ON j.key = d.job WHERE d.ours = 1 AND"
                " d.phase <> :claim_closed AND ? IS NOT NULL"},
    /* Bonds of claims and of entries that were lost lately. */
    {false, ROWS "0, 0, d.bond FROM disputes d JOIN jobs j ON j.key = d.job WHERE d.lost = 1 AND"
                 " d.lost_s > ?"},
    {false, ROWS "count(*), 0, NULL FROM entries e JOIN jobs j ON j.key = e.job WHERE e.ours ="
                 " 1 AND e.lost_s > max(?, 0) GROUP BY j.key"},
    /* Entries and claims that are sent and not seen yet. */
    {false, ROWS "1, 0, NULL FROM actions a JOIN jobs j ON j.key = a.job WHERE a.kind = :enlist"
                 " AND a.state = :action_sent AND ? IS NOT NULL AND j.enlisted <="
                 " a.number"},
    {false, ROWS "0, a.number, NULL FROM actions a JOIN jobs j ON j.key = a.job WHERE"
                 " a.kind = :claim AND a.state = :action_sent AND ? IS NOT NULL AND NOT EXISTS"
                 " (SELECT 1 FROM disputes d WHERE d.subject = a.claim AND (d.ours OR d.lost))"},
};

struct parties {
    struct address client; /* of the job that is asked about, */
    struct address solver; /* and of its segment */
    struct hash32 job;
};

static bool involves(const struct address *who, const struct address *client,
                     const struct address *solver)
{
    return address_equal(who, client) || address_equal(who, solver);
}

static void add(wei *sum, wei amount)
{
    *sum = amount > ~(wei)0 - *sum ? ~(wei)0 : *sum + amount;
}

static wei amount_of(const struct game_terms *terms, sqlite3_stmt *row)
{
    int64_t entries = sqlite3_column_int64(row, 1);
    wei bond = 0;

    if (sqlite3_column_type(row, 3) != SQLITE_NULL) {
        return wei_parse(&bond, (const char *)sqlite3_column_text(row, 3)) == STATUS_OK ? bond : 0;
    }
    return entries > 0 ? terms->bond * (uint32_t)entries
                       : game_claim_bond(terms, (uint32_t)sqlite3_column_int64(row, 2));
}

static enum status add_row(struct policy_locked *locked, const struct parties *parties,
                           const struct board *board, sqlite3_stmt *row, struct error *error)
{
    const struct job_record *job;
    const struct address *solver;
    struct hash32 key;
    wei amount;

    if (!database_blob_column(row, 0, key.bytes, HASH32_SIZE) ||
        (job = board_find(board, &key)) == NULL) {
        return store_damaged(error);
    }
    solver = address_is_zero(&job->state.solver) ? &job->client : &job->state.solver;
    amount = amount_of(&job->terms, row);
    add(&locked->all, amount);
    add(&locked->job, hash32_equal(&key, &parties->job) ? amount : 0);
    add(&locked->client, involves(&parties->client, &job->client, solver) ? amount : 0);
    add(&locked->solver, involves(&parties->solver, &job->client, solver) ? amount : 0);
    return STATUS_OK;
}

static enum status add_locks(struct policy_locked *locked, const struct parties *parties,
                             struct node *node, const char *text, struct error *error)
{
    struct database *sql = &node->ports.store->sql;
    int64_t since_s = (int64_t)node->clock.time_s - NODE_POLICY_LOST_S;
    sqlite3_stmt *row = NULL;
    enum status status;

    TRY(database_prepare(&row, sql, error, text, "i", since_s));
    while ((status = database_step(sql, row, error)) == STATUS_OK) {
        TRY_OUT(add_row(locked, parties, node->ports.store->board, row, error));
    }
    status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
out:
    database_done(sql, row);
    return status;
}

/* Once in a round. It still has what is sent in the same round, or is in no block yet. */
static enum status read_purse(struct node *node, struct error *error)
{
    wei purse = 0;
    wei owed = 0;

    if (!node->purse_is_known) {
        TRY(ledger_get_account(node->ports.ledger, &purse, &owed,
                               ledger_get_own(node->ports.ledger), error));
        node->purse = purse + owed;
        node->purse_is_known = true;
    }
    return STATUS_OK;
}

static enum status read_locked(struct policy_locked *locked, struct node *node,
                               const struct parties *parties, struct error *error)
{
    *locked = (struct policy_locked){0};
    TRY(read_purse(node, error));
    locked->means = node->purse;
    for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++) {
        const wei before = locked->all;

        TRY(add_locks(locked, parties, node, locks[i].text, error));
        add(&locked->means, locks[i].is_ours ? locked->all - before : 0);
    }
    return STATUS_OK;
}

/* ---- asking ------------------------------------------------------------------------ */

/* What a trial measured; 0: there was none. */
static enum status read_trial(uint64_t *segment_ms, struct node *node, const struct hash32 *job,
                              const struct game_terms *terms, struct error *error)
{
    int64_t step_ns = 0;

    TRY(database_number(&node->ports.store->sql, &step_ns, 0, error,
                        "SELECT json_extract(result, '$.compute_ns') / json_extract(result,"
                        " '$.steps_run') FROM tasks WHERE job = ? AND kind = :trial AND"
                        " state = :task_done",
                        "b", &(struct database_blob){job->bytes, HASH32_SIZE}));
    *segment_ms = step_ns <= 0 ? 0 : (uint64_t)((double)step_ns * terms->segment_steps / 1e6) + 1;
    return STATUS_OK;
}

/* By the last checks of the job, with all that they waited for, and by its trial. *known false:
 * there was none of either. */
static enum status read_pace(struct policy_pace *pace, bool *known, struct node *node,
                             const struct hash32 *job, const struct game_terms *terms,
                             struct error *error)
{
    int64_t ms = 0;

    *pace = (struct policy_pace){0};
    TRY(database_number(&node->ports.store->sql, &ms, 0, error,
                        "SELECT max(ms) FROM (SELECT ended_ms - begun_ms AS ms FROM tasks WHERE"
                        " job = ? AND kind = :checks AND state = :task_done ORDER BY number DESC"
                        " LIMIT 16)",
                        "b", &(struct database_blob){job->bytes, HASH32_SIZE}));
    TRY(read_trial(&pace->segment_ms, node, job, terms, error));
    pace->segment_ms = ms > 0 && (uint64_t)ms > pace->segment_ms ? (uint64_t)ms : pace->segment_ms;
    *known = pace->segment_ms > 0;
    if (!node->gas_price_is_known) {
        TRY(ledger_get_gas_price(node->ports.ledger, &node->gas_price, error));
        node->gas_price_is_known = true;
    }
    pace->gas_price = node->gas_price;
    return STATUS_OK;
}

static bool has_caps(const struct node *node)
{
    const struct policy *policy = &node->options.policy;

    return policy->lock_all.set || policy->lock_job.set || policy->lock_party.set;
}

enum status node_policy_terms(struct node *node, struct policy_refusal *refusal,
                              const struct store_job *job, struct error *error)
{
    struct policy_pace pace;
    bool known = false;

    TRY(read_pace(&pace, &known, node, &job->key, &job->terms, error));
    (void)!policy_enlist(refusal, &node->options.policy, &job->terms, NULL, known ? &pace : NULL,
                         node->clock.time_s);
    return STATUS_OK;
}

/* The terms first: they need no look at the account. */
enum status node_policy_enlist(struct node *node, struct policy_refusal *refusal,
                               const struct store_job *job, struct error *error)
{
    const struct parties parties = {
        .client = job->client,
        .solver = address_is_zero(&job->state.solver) ? job->client : job->state.solver,
        .job = job->key};
    struct policy_locked locked;
    struct policy_pace pace;
    bool known = false;

    TRY(node_policy_terms(node, refusal, job, error));
    if (refusal->term != POLICY_AGREED || !has_caps(node)) {
        return STATUS_OK;
    }
    TRY(read_pace(&pace, &known, node, &job->key, &job->terms, error));
    TRY(read_locked(&locked, node, &parties, error));
    (void)!policy_enlist(refusal, &node->options.policy, &job->terms, &locked, known ? &pace : NULL,
                         node->clock.time_s);
    return STATUS_OK;
}

enum status node_policy_enlist_now(struct node *node, const struct store_job *job,
                                   struct error *error)
{
    struct policy_refusal refusal;

    TRY(node_policy_enlist(node, &refusal, job, error));
    return refusal.term == POLICY_AGREED
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "the policy: %s", refusal.text);
}

enum status node_policy_claim(struct node *node, const struct action *action,
                              const struct store_segment *segment, wei bond, struct error *error)
{
    const struct parties parties = {
        .client = segment->client, .solver = segment->committed.solver, .job = segment->job};
    struct policy_refusal refusal;
    struct policy_locked locked;
    struct policy_pace pace;
    char place[STORE_PLACE_TEXT];
    bool known = false;
    bool agreed;

    TRY(read_pace(&pace, &known, node, &segment->job, &segment->terms, error));
    agreed = policy_claim(&refusal, &node->options.policy, &segment->terms, bond, NULL, &pace);
    if (agreed && has_caps(node)) {
        TRY(read_locked(&locked, node, &parties, error));
        agreed =
            policy_claim(&refusal, &node->options.policy, &segment->terms, bond, &locked, &pace);
    }
    if (agreed) {
        return STATUS_OK;
    }
    if (action->tries == 0) {
        store_place_text(place, &segment->job, segment->committed.index);
        log_warn(node->ports.log, "verifier",
                 "%s: step %" PRIu32 " is false, and this node does not claim it: %s", place,
                 action->step, refusal.text);
    }
    return error_set(error, STATUS_REFUSED, "the policy: %s", refusal.text);
}
