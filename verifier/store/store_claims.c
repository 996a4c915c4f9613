/* store_claims.c - claims and reveals, as the ledger's events change them: see store.h. */
#include <stdio.h>
#include <string.h>

#include "verifier/store/store.h"

#define BLOB(value) (&(struct database_blob){(value).bytes, sizeof((value).bytes)})

enum {
    REVEALS_MAX = 256, /* looked at in one round */
};

static enum status damaged(struct error *error)
{
    return error_set(error, STATUS_BAD_FORMAT, "the node's database is damaged");
}

/* ---- changes ------------------------------------------------------------ */

/* Anybody's claim holds up its segment. */
static enum status add_dispute(struct store *store, const struct job_change *change,
                               struct error *error)
{
    return database_run(
        &store->sql, error,
        "INSERT OR REPLACE INTO disputes (key, segment, attestor, deadline_s)"
        " SELECT ?, hash, ?, ? FROM segments WHERE job = ? AND idx = ? AND NOT void",
        "bbibi", BLOB(change->claim), BLOB(change->attestor), (int64_t)change->deadline_s,
        BLOB(change->job), (int64_t)change->index);
}

/* Ours, or against our attestation. An accused attestor is tried for the step that it drew. */
static enum status add_claim(struct store *store, const struct job_change *change, bool against_us,
                             struct error *error)
{
    struct store_segment segment;
    uint32_t step = change->step;
    enum status status = store_segment(store, &segment, &change->job, change->index, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    if (!address_is_zero(&change->attestor)) {
        step = game_sampled_step(&segment.seed, &change->attestor, segment.committed.steps);
    }
    return database_run(
        &store->sql, error,
        "INSERT OR REPLACE INTO claims (key, job, segment, idx, generation, step, pre, post, phase,"
        " turn, deadline_s, attestor, accused) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        "bbbiiibbiiibi", BLOB(change->claim), BLOB(change->job), BLOB(segment.hash),
        (int64_t)change->index, (int64_t)segment.committed.generation, (int64_t)step,
        BLOB(change->pre_state), BLOB(change->post_state), (int64_t)change->claim_phase,
        (int64_t)change->turn, (int64_t)change->deadline_s, BLOB(change->attestor),
        (int64_t)against_us);
}

static enum status take_opened(struct store *store, const struct job_change *change,
                               const struct address *own, struct error *error)
{
    bool against_us = !address_is_zero(&change->attestor) && address_equal(&change->attestor, own);

    TRY(add_dispute(store, change, error));
    return against_us || address_equal(&change->account, own)
               ? add_claim(store, change, against_us, error)
               : STATUS_OK;
}

static enum status take_turn(struct store *store, const struct job_change *change,
                             struct error *error)
{
    TRY(database_run(&store->sql, error, "UPDATE disputes SET deadline_s = ? WHERE key = ?", "ib",
                     (int64_t)change->deadline_s, BLOB(change->claim)));
    return database_run(&store->sql, error,
                        "UPDATE claims SET phase = ?, turn = ?, deadline_s = ? WHERE key = ?",
                        "iiib", (int64_t)change->claim_phase, (int64_t)change->turn,
                        (int64_t)change->deadline_s, BLOB(change->claim));
}

static enum status take_queried(struct store *store, const struct job_change *change,
                                struct error *error)
{
    return database_run(
        &store->sql, error, "UPDATE claims SET queried = ? WHERE key = ? AND accused", "bb",
        &(struct database_blob){change->queried.bytes, change->queried.size}, BLOB(change->claim));
}

/* What the end of a claim brings us: PROTOCOL.md, section 6. */
static wei income_of(const struct store_claim *claim, const struct game_terms *terms,
                     enum job_claim_outcome outcome)
{
    if (claim->accused) {
        return outcome == JOB_CLAIM_REFUTED ? terms->claim_bond : 0;
    }
    if (outcome == JOB_CLAIM_LAPSED) {
        return terms->claim_bond;
    }
    if (outcome != JOB_CLAIM_UPHELD) {
        return 0;
    }
    return terms->claim_bond +
           (address_is_zero(&claim->attestor) ? terms->stake / 2 : terms->attest_bond);
}

static enum status take_income(struct store *store, const struct job_change *change,
                               struct error *error)
{
    struct store_segment segment;
    struct store_claim claim;
    wei amount;
    enum status status = store_claim(store, &claim, &change->claim, error);

    if (status == STATUS_OK) {
        status = store_segment_by_hash(store, &segment, &claim.segment, error);
    }
    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status; /* somebody else's claim */
    }
    amount = income_of(&claim, &segment.terms, change->outcome);
    return amount == 0 ? STATUS_OK : store_take_payment(store, change, "claim", amount, error);
}

/* Nobody can accuse a convicted attestor again, and its place is free: a segment that we passed
 * over because it was full is decided again. If the attestor is us, nothing is left to settle. */
static enum status convict_attestor(struct store *store, const struct job_change *change,
                                    const struct address *own, struct error *error)
{
    static const struct address solver;

    TRY(database_run(&store->sql, error,
                     "UPDATE reveals SET stands = 0 WHERE (segment, attestor) ="
                     " (SELECT segment, attestor FROM disputes WHERE key = ?)",
                     "b", BLOB(change->claim)));
    return database_run(&store->sql, error,
                        "UPDATE segments AS s SET revealed = max(revealed - 1, 0),"
                        " choice = iif(mine = :not_mine AND choice IN (:extra, :passed_over),"
                        " :undecided, choice), mine = iif(a.attestor = ?, :lost, mine)"
                        " FROM disputes AS a WHERE a.key = ? AND s.hash = a.segment"
                        " AND a.attestor <> ?",
                        "bbb", BLOB(*own), BLOB(change->claim), BLOB(solver));
}

static enum status take_closed(struct store *store, const struct job_change *change,
                               const struct address *own, struct error *error)
{
    TRY(take_income(store, change, error));
    TRY(database_run(&store->sql, error, "UPDATE disputes SET open = 0 WHERE key = ?", "b",
                     BLOB(change->claim)));
    TRY(database_run(&store->sql, error, "UPDATE claims SET phase = ?, outcome = ? WHERE key = ?",
                     "itb", (int64_t)change->claim_phase, job_claim_outcome_name(change->outcome),
                     BLOB(change->claim)));
    return change->outcome == JOB_CLAIM_UPHELD ? convict_attestor(store, change, own, error)
                                               : STATUS_OK;
}

enum status store_take_claim(struct store *store, const struct job_change *change,
                             const struct address *own, struct error *error)
{
    switch ((int)change->kind) {
    case JOB_CHANGE_CLAIM_OPENED:
        return take_opened(store, change, own, error);
    case JOB_CHANGE_CLAIM_TURN:
        return take_turn(store, change, error);
    case JOB_CHANGE_CLAIM_QUERIED:
        return take_queried(store, change, error);
    default:
        return take_closed(store, change, own, error);
    }
}

/* ---- claims, as they stand ----------------------------------------------------- */

enum status store_job_is_claimed(struct store *store, bool *claimed, const struct hash32 *job,
                                 struct error *error)
{
    static const struct address solver;
    int64_t count = 0;
    enum status status = database_number(
        &store->sql, &count, 0, error,
        "SELECT count(*) FROM claims c JOIN jobs j ON j.key = c.job WHERE c.job = ?"
        " AND c.generation = j.generation AND c.outcome <> 'refuted' AND c.attestor = ?",
        "bb", &(struct database_blob){job->bytes, HASH32_SIZE}, BLOB(solver));

    *claimed = count > 0;
    return status;
}

#define CLAIM_COLUMNS                                                                              \
    "SELECT key, job, segment, idx, step, pre, post, deadline_s, phase, turn, generation, "        \
    "attestor,"                                                                                    \
    " accused, queried FROM claims "

static enum status read_claim(void *one, sqlite3_stmt *row, struct error *error)
{
    struct store_claim *claim = one;
    size_t size = (size_t)sqlite3_column_bytes(row, 13);

    memset(claim, 0, sizeof(*claim));
    claim->index = (uint32_t)sqlite3_column_int64(row, 3);
    claim->step = (uint32_t)sqlite3_column_int64(row, 4);
    claim->deadline_s = (uint64_t)sqlite3_column_int64(row, 7);
    claim->phase = (enum game_claim_phase)sqlite3_column_int(row, 8);
    claim->turn = (enum game_turn)sqlite3_column_int(row, 9);
    claim->generation = (uint32_t)sqlite3_column_int64(row, 10);
    claim->accused = sqlite3_column_int(row, 12) != 0;
    if (size > sizeof(claim->queried)) {
        return damaged(error);
    }
    if (size > 0) {
        memcpy(claim->queried, sqlite3_column_blob(row, 13), size);
        claim->queried_size = size;
    }
    return database_blob_column(row, 0, claim->key.bytes, HASH32_SIZE) &&
                   database_blob_column(row, 1, claim->job.bytes, HASH32_SIZE) &&
                   database_blob_column(row, 2, claim->segment.bytes, HASH32_SIZE) &&
                   database_blob_column(row, 5, claim->pre_state.bytes, DIGEST_SIZE) &&
                   database_blob_column(row, 6, claim->post_state.bytes, DIGEST_SIZE) &&
                   database_blob_column(row, 11, claim->attestor.bytes, ADDRESS_SIZE)
               ? STATUS_OK
               : damaged(error);
}

enum status store_open_claims(struct store *store,
                              enum status (*visit)(void *context, const struct store_claim *claim,
                                                   struct error *error),
                              void *context, struct error *error)
{
    struct store_claim found[STORE_CLAIMS_MAX];
    uint32_t count;
    enum status status = database_collect(
        &store->sql, found, &count,
        database_query(&store->sql, error, CLAIM_COLUMNS "WHERE phase <> ? ORDER BY deadline_s",
                       "i", (int64_t)GAME_CLAIM_CLOSED),
        sizeof(found[0]), STORE_CLAIMS_MAX, read_claim, error);

    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = visit(context, &found[i], error);
    }
    return status;
}

enum status store_claim(struct store *store, struct store_claim *claim, const struct hash32 *key,
                        struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(&row, &store->sql, error, CLAIM_COLUMNS "WHERE key = ?",
                                        "b", &(struct database_blob){key->bytes, HASH32_SIZE});

    if (status == STATUS_OK) {
        status = read_claim(claim, row, error);
    }
    database_done(&store->sql, row);
    return status;
}

enum status store_claim_outcome(struct store *store, char *outcome, size_t size,
                                const struct hash32 *key, struct error *error)
{
    sqlite3_stmt *row;
    enum status status =
        database_first(&row, &store->sql, error, "SELECT outcome FROM claims WHERE key = ?", "b",
                       &(struct database_blob){key->bytes, HASH32_SIZE});

    outcome[0] = '\0';
    if (status == STATUS_OK) {
        (void)snprintf(outcome, size, "%s", (const char *)sqlite3_column_text(row, 0));
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- claims of everybody ------------------------------------------------------- */

static enum status read_dispute(void *one, sqlite3_stmt *row, struct error *error)
{
    struct store_dispute *dispute = one;

    memset(dispute, 0, sizeof(*dispute));
    dispute->index = (uint32_t)sqlite3_column_int64(row, 1);
    dispute->deadline_s = (uint64_t)sqlite3_column_int64(row, 2);
    dispute->gone = sqlite3_column_int(row, 3) != 0;
    return database_blob_column(row, 0, dispute->key.bytes, HASH32_SIZE) ? STATUS_OK
                                                                         : damaged(error);
}

enum status store_disputes(struct store *store,
                           enum status (*visit)(void *context, const struct store_dispute *dispute,
                                                struct error *error),
                           void *context, const struct hash32 *job, struct error *error)
{
    struct store_dispute found[STORE_CLAIMS_MAX];
    uint32_t count;
    sqlite3_stmt *row = database_query(
        &store->sql, error,
        "SELECT d.key, s.idx, d.deadline_s, EXISTS (SELECT 1 FROM reveals r WHERE r.segment = "
        "d.segment AND r.attestor = d.attestor"
        " AND NOT r.stands) FROM segments s JOIN disputes d ON d.segment = s.hash WHERE s.job = ?"
        " AND NOT s.void AND d.open ORDER BY s.idx, d.deadline_s",
        "b", &(struct database_blob){job->bytes, HASH32_SIZE});
    enum status status = database_collect(&store->sql, found, &count, row, sizeof(found[0]),
                                          STORE_CLAIMS_MAX, read_dispute, error);

    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = visit(context, &found[i], error);
    }
    return status;
}

enum status store_stake(struct store *store, struct store_stake *stake, const struct hash32 *job,
                        struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(
        &row, &store->sql, error,
        "SELECT count(*), coalesce(sum(s.mine = :revealed), 0),"
        " coalesce(min(iif(s.mine = :revealed, s.idx, NULL)), 0) FROM segments s JOIN jobs j"
        " ON j.key = s.job WHERE s.job = ? AND s.mine IN (:sealed, :revealed) AND NOT s.void"
        " AND s.idx >= j.finalized",
        "b", &(struct database_blob){job->bytes, HASH32_SIZE});

    memset(stake, 0, sizeof(*stake));
    if (status == STATUS_OK) {
        stake->unsettled = (uint32_t)sqlite3_column_int64(row, 0);
        stake->revealed = sqlite3_column_int64(row, 1) > 0;
        stake->nearest = (uint32_t)sqlite3_column_int64(row, 2);
    }
    database_done(&store->sql, row);
    return status;
}

/* ---- retries ---------------------------------------------------------------- */

enum status store_retry(struct store *store, struct store_retry *retry, const struct hash32 *claim,
                        struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(&row, &store->sql, error,
                                        "SELECT tries, next_ms FROM retries WHERE claim = ?", "b",
                                        &(struct database_blob){claim->bytes, HASH32_SIZE});

    memset(retry, 0, sizeof(*retry));
    if (status == STATUS_OK) {
        retry->tries = (uint32_t)sqlite3_column_int64(row, 0);
        retry->next_ms = (uint64_t)sqlite3_column_int64(row, 1);
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status store_set_retry(struct store *store, const struct hash32 *claim,
                            const struct store_retry *retry, const char *trouble,
                            struct error *error)
{
    return database_run(&store->sql, error, "INSERT OR REPLACE INTO retries VALUES (?, ?, ?, ?)",
                        "biit", &(struct database_blob){claim->bytes, HASH32_SIZE},
                        (int64_t)retry->tries, (int64_t)retry->next_ms, trouble);
}

enum status store_end_retry(struct store *store, const struct hash32 *claim, struct error *error)
{
    return database_run(&store->sql, error, "DELETE FROM retries WHERE claim = ?", "b",
                        &(struct database_blob){claim->bytes, HASH32_SIZE});
}

/* ---- reveals ---------------------------------------------------------------- */

enum status store_take_reveal(struct store *store, const struct job_change *change,
                              struct error *error)
{
    return database_run(&store->sql, error,
                        "INSERT OR REPLACE INTO reveals (segment, attestor, root) SELECT hash, ?, ?"
                        " FROM segments WHERE job = ? AND idx = ? AND NOT void",
                        "bbbi", BLOB(change->account), BLOB(change->trace_root), BLOB(change->job),
                        (int64_t)change->index);
}

enum status store_renew_reveals(struct store *store, const struct job_change *change,
                                struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE reveals SET audit = :audit_new WHERE audit <> ? AND segment IN"
                        " (SELECT hash FROM segments WHERE job = ? AND idx = ? AND NOT void)",
                        "ibi", (int64_t)STORE_AUDIT_TRUE, BLOB(change->job),
                        (int64_t)change->index);
}

#define REVEAL_COLUMNS "SELECT segment, attestor, root, stands, audit, rowid FROM reveals "

static enum status read_reveal(void *one, sqlite3_stmt *row, struct error *error)
{
    struct store_reveal *reveal = one;

    memset(reveal, 0, sizeof(*reveal));
    reveal->stands = sqlite3_column_int(row, 3) != 0;
    reveal->audit = (enum store_audit)sqlite3_column_int(row, 4);
    reveal->row = sqlite3_column_int64(row, 5);
    return database_blob_column(row, 0, reveal->segment.bytes, HASH32_SIZE) &&
                   database_blob_column(row, 1, reveal->attestor.bytes, ADDRESS_SIZE) &&
                   database_blob_column(row, 2, reveal->root.bytes, DIGEST_SIZE)
               ? STATUS_OK
               : damaged(error);
}

enum status store_open_reveals(struct store *store,
                               enum status (*visit)(void *context,
                                                    const struct store_reveal *reveal,
                                                    struct error *error),
                               void *context, struct error *error)
{
    struct store_reveal found[REVEALS_MAX];
    uint32_t count;
    enum status status = database_collect(
        &store->sql, found, &count,
        database_query(&store->sql, error,
                       REVEAL_COLUMNS
                       "WHERE audit IN (:audit_new, :audit_queued) AND rowid > ? ORDER BY rowid",
                       "i", store->reveals_visited),
        sizeof(found[0]), REVEALS_MAX, read_reveal, error);

    store->reveals_visited = count == REVEALS_MAX ? found[count - 1].row : 0;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = visit(context, &found[i], error);
    }
    return status;
}

enum status store_reveal(struct store *store, struct store_reveal *reveal,
                         const struct hash32 *segment, const struct address *attestor,
                         struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(&row, &store->sql, error,
                                        REVEAL_COLUMNS "WHERE segment = ? AND attestor = ?", "bb",
                                        &(struct database_blob){segment->bytes, HASH32_SIZE},
                                        &(struct database_blob){attestor->bytes, ADDRESS_SIZE});

    if (status == STATUS_OK) {
        status = read_reveal(reveal, row, error);
    }
    database_done(&store->sql, row);
    return status;
}

enum status store_audited(struct store *store, struct store_reveal *reveal,
                          const struct store_segment *segment, uint32_t step, struct error *error)
{
    struct store_reveal found[REVEALS_MAX];
    uint32_t count;
    enum status status = database_collect(
        &store->sql, found, &count,
        database_query(&store->sql, error,
                       REVEAL_COLUMNS "WHERE segment = ? AND audit = :audit_queued", "b",
                       BLOB(segment->hash)),
        sizeof(found[0]), REVEALS_MAX, read_reveal, error);

    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        if (game_sampled_step(&segment->seed, &found[i].attestor, segment->committed.steps) ==
            step) {
            *reveal = found[i];
            return STATUS_OK;
        }
    }
    return status == STATUS_OK ? STATUS_NOT_FOUND : status;
}

enum status store_judge_reveal(struct store *store, const struct store_reveal *reveal,
                               enum store_audit audit, const char *reason, struct error *error)
{
    return database_run(
        &store->sql, error,
        "UPDATE reveals SET audit = ?, reason = ? WHERE segment = ? AND attestor = ?", "itbb",
        (int64_t)audit, reason, BLOB(reveal->segment), BLOB(reveal->attestor));
}
