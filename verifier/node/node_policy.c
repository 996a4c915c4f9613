/* node_policy.c - see node_policy.h. */
#include "verifier/node/node_policy.h"

#include <inttypes.h>
#include <string.h>

#include "base/hex.h"

/* ---- what is locked --------------------------------------------------------------- */

#define GROUP "SELECT j.key, j.terms, j.client, s.solver, count(*) FROM "

enum lock_kind {
    LOCK_ATTESTATIONS,
    LOCK_LOST,   /* attestations, since a time */
    LOCK_SENT,   /* attestations that the node has not seen on the ledger yet */
    LOCK_CLAIMS, /* and those that were lost since a time */
    LOCK_CLAIMS_SENT,
    LOCK_COMING, /* attestations that are only planned: their money is in the purse still */
    LOCK_KINDS,
};

/* In groups of a job and a solver. */
static const char *const lock_texts[LOCK_KINDS] = {
    [LOCK_ATTESTATIONS] = GROUP "segments s JOIN jobs j ON j.key = s.job"
                                " WHERE s.mine IN (:sealed, :revealed) GROUP BY j.key, s.solver",
    [LOCK_LOST] = GROUP "segments s JOIN jobs j ON j.key = s.job"
                        " WHERE s.round_s > ? AND s.mine = :lost GROUP BY j.key, s.solver",
    [LOCK_SENT] = GROUP "actions a JOIN segments s ON s.hash = a.segment JOIN jobs j ON"
                        " j.key = s.job WHERE a.kind = :attest AND a.state = :action_sent AND"
                        " s.mine = :not_mine GROUP BY j.key, s.solver",
    [LOCK_COMING] = GROUP "segments s JOIN jobs j ON j.key = s.job WHERE NOT s.void AND"
                          " s.mine = :not_mine AND (s.choice = :to_attest OR (s.choice = :sampled"
                          " AND (EXISTS (SELECT 1 FROM tasks t WHERE t.job = s.job AND"
                          " t.idx = s.idx AND t.root = s.root AND t.state IN (:task_waiting,"
                          " :task_running)) OR EXISTS (SELECT 1 FROM actions a WHERE"
                          " a.state = :action_planned AND a.kind = :attest AND"
                          " a.segment = s.hash)))) GROUP BY j.key, s.solver",
    [LOCK_CLAIMS] = GROUP "claims c JOIN segments s ON s.hash = c.segment JOIN jobs j ON"
                          " j.key = c.job WHERE ((c.outcome = 'refuted' AND c.deadline_s > ?) OR"
                          " c.phase NOT IN (:claim_none, :claim_closed)) AND NOT c.accused"
                          " GROUP BY j.key, s.solver",
    [LOCK_CLAIMS_SENT] = GROUP "actions a JOIN segments s ON s.hash = a.segment JOIN jobs j ON"
                               " j.key = s.job WHERE a.kind = :claim AND a.state = :action_sent AND"
                               " NOT EXISTS (SELECT 1 FROM claims c WHERE c.key = a.claim AND"
                               " c.phase <> :claim_none) GROUP BY j.key, s.solver",
};

static bool is_of_claims(enum lock_kind kind)
{
    return kind == LOCK_CLAIMS || kind == LOCK_CLAIMS_SENT;
}

static bool has_since(enum lock_kind kind)
{
    return kind == LOCK_LOST || kind == LOCK_CLAIMS;
}

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

static enum status add_group(struct policy_locked *locked, const struct parties *parties,
                             sqlite3_stmt *row, bool of_claims, struct error *error)
{
    struct hash32 job;
    struct address client;
    struct address solver;
    struct game_move move;
    wei amount;

    if (!database_blob_column(row, 0, job.bytes, HASH32_SIZE) ||
        !database_blob_column(row, 2, client.bytes, ADDRESS_SIZE) ||
        !database_blob_column(row, 3, solver.bytes, ADDRESS_SIZE) ||
        game_move_decode(&move, sqlite3_column_blob(row, 1),
                         (size_t)sqlite3_column_bytes(row, 1)) != STATUS_OK ||
        move.kind != GAME_OPEN) {
        return error_set(error, STATUS_BAD_FORMAT, "the node's database is damaged");
    }
    amount = (of_claims ? move.terms.claim_bond : move.terms.attest_bond) *
             (uint32_t)sqlite3_column_int64(row, 4);
    add(&locked->all, amount);
    add(&locked->job, hash32_equal(&job, &parties->job) ? amount : 0);
    add(&locked->client, involves(&parties->client, &client, &solver) ? amount : 0);
    add(&locked->solver, involves(&parties->solver, &client, &solver) ? amount : 0);
    return STATUS_OK;
}

static enum status add_locks(struct policy_locked *locked, const struct parties *parties,
                             struct node *node, enum lock_kind kind, struct error *error)
{
    struct database *sql = &node->ports.store->sql;
    int64_t since_s = (int64_t)node->clock.time_s - NODE_POLICY_LOST_S;
    sqlite3_stmt *row = NULL;
    enum status status;

    TRY(has_since(kind) ? database_prepare(&row, sql, error, lock_texts[kind], "i", since_s)
                        : database_prepare(&row, sql, error, lock_texts[kind], ""));
    while ((status = database_step(sql, row, error)) == STATUS_OK) {
        TRY_OUT(add_group(locked, parties, row, is_of_claims(kind), error));
    }
    status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
out:
    database_done(sql, row);
    return status;
}

static enum status find_client(struct address *client, struct node *node, const struct hash32 *job,
                               struct error *error)
{
    struct database *sql = &node->ports.store->sql;
    sqlite3_stmt *row = NULL;
    enum status status = database_first(&row, sql, error, "SELECT client FROM jobs WHERE key = ?",
                                        "b", &(struct database_blob){job->bytes, HASH32_SIZE});

    if (status == STATUS_OK && !database_blob_column(row, 0, client->bytes, ADDRESS_SIZE)) {
        status = error_set(error, STATUS_BAD_FORMAT, "the node's database is damaged");
    }
    database_done(sql, row);
    return status;
}

/* The purse is read once in a round: what is sent in the same round is in `locked` instead. */
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

/* coming: bonds count that are only planned. */
static enum status read_locked(struct policy_locked *locked, struct node *node,
                               const struct store_segment *segment, bool coming,
                               struct error *error)
{
    struct parties parties = {.solver = segment->committed.solver, .job = segment->job};

    *locked = (struct policy_locked){0};
    TRY(find_client(&parties.client, node, &segment->job, error));
    TRY(read_purse(node, error));
    for (enum lock_kind kind = 0; kind < LOCK_COMING; kind++) {
        TRY(add_locks(locked, &parties, node, kind, error));
    }
    locked->means = node->purse;
    add(&locked->means, locked->all);
    return coming ? add_locks(locked, &parties, node, LOCK_COMING, error) : STATUS_OK;
}

/* ---- asking ------------------------------------------------------------------------ */

/* By the last checks of the job, with all that they waited for. */
static enum status read_pace(struct policy_pace *pace, struct node *node, const struct hash32 *job,
                             struct error *error)
{
    int64_t ms = 0;

    TRY(database_number(&node->ports.store->sql, &ms, 0, error,
                        "SELECT max(ms) FROM (SELECT ended_ms - begun_ms AS ms FROM tasks WHERE"
                        " job = ? AND state = :task_done ORDER BY number DESC LIMIT 16)",
                        "b", &(struct database_blob){job->bytes, HASH32_SIZE}));
    *pace = (struct policy_pace){.segment_ms = ms > 0 ? (uint64_t)ms : 0};
    return STATUS_OK;
}

/* The terms first: they need no look at the account. */
static enum status
ask(struct node *node, struct policy_refusal *refusal, const struct store_segment *segment,
    bool (*policy_of)(struct policy_refusal *refusal, const struct policy *policy,
                      const struct game_terms *terms, const struct policy_locked *locked,
                      const struct policy_pace *pace),
    bool coming, struct error *error)
{
    const struct policy *policy = &node->options.policy;
    struct policy_locked locked;
    struct policy_pace pace;

    TRY(read_pace(&pace, node, &segment->job, error));
    if (!policy_of(refusal, policy, &segment->terms, NULL, &pace) ||
        !(policy->lock_all.set || policy->lock_job.set || policy->lock_party.set)) {
        return STATUS_OK;
    }
    TRY(read_locked(&locked, node, segment, coming, error));
    (void)!policy_of(refusal, policy, &segment->terms, &locked, &pace);
    return STATUS_OK;
}

enum status node_policy_choose(struct node *node, struct policy_refusal *refusal,
                               const struct store_segment *segment, struct error *error)
{
    return ask(node, refusal, segment, policy_attest, true, error);
}

enum status node_policy_sign(struct node *node, const struct action *action,
                             const struct store_segment *segment, struct error *error)
{
    bool attests = action->kind == ACTION_ATTEST;
    struct policy_refusal refusal;
    char job[HEX_SIZE(2)];

    TRY(ask(node, &refusal, segment, attests ? policy_attest : policy_claim, false, error));
    if (refusal.term == POLICY_AGREED) {
        return STATUS_OK;
    }
    if (!attests && action->tries == 0) {
        hex_encode(job, segment->job.bytes, 2);
        log_warn(node->ports.log, "verifier",
                 "job %s segment %" PRIu32 ": step %" PRIu32
                 " is false, and this node does not claim it: %s",
                 job, segment->committed.index, action->step, refusal.text);
    }
    return error_set(error, STATUS_REFUSED, "the policy: %s", refusal.text);
}
