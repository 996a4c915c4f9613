/* store_claims.c - disputes, as the ledger's events change them: see store.h. */
#include <string.h>

#include "base/endian.h"
#include "verifier/store/store.h"
#include "verifier/store/store_words.h"

#define BLOB(value) (&(struct database_blob){(value).bytes, sizeof((value).bytes)})

#define RANK_SIZE 8 /* big-endian, so that sqlite compares it as a number */

/* ---- changes ------------------------------------------------------------------ */

static enum status add_dispute(struct store *store, const struct game_event *event,
                               const struct store_segment *segment, struct error *error)
{
    static const struct digest unknown;
    struct hash32 subject =
        game_subject_hash(&segment->hash, event->step, &event->pre_state, &event->post_state);
    const struct job_reduced_claim claim = job_reduced_claim_of(event);
    uint8_t rank[RANK_SIZE];

    endian_store_be64(rank, claim.rank);
    return database_run(
        &store->sql, error,
        "INSERT OR IGNORE INTO disputes (key, job, segment, subject, idx, generation, step, pre,"
        " post, rank, phase, turn, lead, trace, ours) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " ?, ?, 0)",
        "bbbbiiibbbiibb", BLOB(event->claim), BLOB(event->job), BLOB(segment->hash), BLOB(subject),
        (int64_t)event->index, (int64_t)segment->committed.generation, (int64_t)event->step,
        BLOB(event->pre_state), BLOB(event->post_state), &(struct database_blob){rank, RANK_SIZE},
        (int64_t)claim.phase, (int64_t)claim.turn, BLOB(claim.lead), BLOB(unknown));
}

#define CLAIM_COLUMNS "d.phase, d.turn, d.lead, d.deadline_s, d.turns, d.rank, d.outcome"
#define CLAIM_COUNT   7

static enum status read_claim_state(struct job_reduced_claim *claim, sqlite3_stmt *row,
                                    struct error *error)
{
    uint8_t rank[RANK_SIZE] = {0};

    *claim = (struct job_reduced_claim){
        .phase = (enum game_claim_phase)sqlite3_column_int(row, 0),
        .turn = (enum game_turn)sqlite3_column_int(row, 1),
        .deadline_s = (uint64_t)sqlite3_column_int64(row, 3),
        .turns = (uint32_t)sqlite3_column_int64(row, 4),
        .outcome = (enum game_outcome)sqlite3_column_int(row, 6),
    };
    if (!database_blob_column(row, 2, claim->lead.bytes, ADDRESS_SIZE) ||
        !database_blob_column(row, 5, rank, RANK_SIZE)) {
        return store_damaged(error);
    }
    claim->rank = endian_load_be64(rank);
    return STATUS_OK;
}

static enum status read_claim(struct store *store, struct job_reduced_claim *claim,
                              const struct game_event *event, struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(&row, &store->sql, error,
                                        "SELECT " CLAIM_COLUMNS " FROM disputes d WHERE d.key = ?",
                                        "b", BLOB(event->claim));

    if (status == STATUS_OK) {
        status = read_claim_state(claim, row, error);
    }
    database_done(&store->sql, row);
    return status;
}

static enum status reduce_claim(struct store *store, const struct game_event *event,
                                struct error *error)
{
    struct job_reduced_claim claim;
    uint8_t rank[RANK_SIZE];
    enum status status = read_claim(store, &claim, event, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    job_reduced_take_claim(&claim, event);
    endian_store_be64(rank, claim.rank);
    return database_run(&store->sql, error,
                        "UPDATE disputes SET phase = ?, turn = ?, lead = ?, deadline_s = ?,"
                        " turns = ?, rank = ?, outcome = ? WHERE key = ?",
                        "iibiibib", (int64_t)claim.phase, (int64_t)claim.turn, BLOB(claim.lead),
                        (int64_t)claim.deadline_s, (int64_t)claim.turns,
                        &(struct database_blob){rank, RANK_SIZE}, (int64_t)claim.outcome,
                        BLOB(event->claim));
}

/* A new dispute, or one more claimant of a live one, who may lower its rank. */
static enum status take_claimed(struct store *store, const struct game_event *event,
                                const struct address *own, struct error *error)
{
    bool ours = address_equal(&event->account, own);
    struct store_segment segment;
    char bond[WEI_TEXT_SIZE];
    enum status status = store_segment(store, &segment, &event->job, event->index, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    wei_print_plain(bond, ours ? event->amount : 0);
    TRY(add_dispute(store, event, &segment, error));
    TRY(reduce_claim(store, event, error));
    return database_run(&store->sql, error,
                        "UPDATE disputes SET ours = max(ours, ?), bond = iif(?, ?, bond),"
                        " outsiders = outsiders + ? WHERE key = ?",
                        "iitib", (int64_t)ours, (int64_t)ours, bond,
                        (int64_t)(event->rank >= GAME_RANK_OUTSIDER), BLOB(event->claim));
}

/* A claimant's clock ran out: its bond is lost. */
static enum status take_defaulted(struct store *store, const struct ledger_entry *entry,
                                  const struct address *own, struct error *error)
{
    return address_equal(&entry->event.account, own)
               ? database_run(&store->sql, error,
                              "UPDATE disputes SET ours = 0, lost = 1, lost_s = ? WHERE key = ?",
                              "ib", (int64_t)entry->time_s, BLOB(entry->event.claim))
               : STATUS_OK;
}

enum status store_take_claim(struct store *store, const struct ledger_entry *entry,
                             const struct address *own, struct error *error)
{
    const struct game_event *event = &entry->event;

    switch ((int)event->kind) {
    case GAME_CLAIMED:
        return take_claimed(store, event, own, error);
    case GAME_TURN_PASSED:
    case GAME_RULED:
        return reduce_claim(store, event, error);
    case GAME_ANSWERED:
        return database_run(&store->sql, error, "UPDATE disputes SET trace = ? WHERE key = ?", "bb",
                            BLOB(event->root), BLOB(event->claim));
    case GAME_DEFAULTED:
        return take_defaulted(store, entry, own, error);
    default:
        return STATUS_OK; /* QUERIED, REPLIED: the dispute's folder keeps them */
    }
}

/* ---- disputes, as they stand ------------------------------------------------------ */

const char store_dispute_columns[] =
    "SELECT " CLAIM_COLUMNS ", d.key, d.job, d.segment, d.subject, d.idx, d.generation, d.step,"
    " d.pre, d.post, d.trace, d.ours,"
    " d.phase NOT IN (:claim_tried, :claim_closed) AND EXISTS (SELECT 1 FROM disputes o WHERE"
    " o.job = d.job AND o.generation = d.generation AND o.phase = :claim_closed AND"
    " o.outcome = :upheld AND o.rank < d.rank) FROM disputes d JOIN jobs j ON j.key = d.job";

enum status store_read_dispute(void *one, sqlite3_stmt *row, struct error *error)
{
    enum {
        KEY = CLAIM_COUNT,
        JOB,
        SEGMENT,
        SUBJECT,
        INDEX,
        GENERATION,
        STEP,
        PRE,
        POST,
        TRACE,
        OURS,
        OVERTAKEN,
    };
    struct store_dispute *dispute = one;

    memset(dispute, 0, sizeof(*dispute));
    TRY(read_claim_state(&dispute->state, row, error));
    dispute->index = (uint32_t)sqlite3_column_int64(row, INDEX);
    dispute->generation = (uint32_t)sqlite3_column_int64(row, GENERATION);
    dispute->step = (uint32_t)sqlite3_column_int64(row, STEP);
    dispute->ours = sqlite3_column_int(row, OURS) != 0;
    dispute->overtaken = sqlite3_column_int(row, OVERTAKEN) != 0;
    return database_blob_column(row, KEY, dispute->key.bytes, HASH32_SIZE) &&
                   database_blob_column(row, JOB, dispute->job.bytes, HASH32_SIZE) &&
                   database_blob_column(row, SEGMENT, dispute->segment.bytes, HASH32_SIZE) &&
                   database_blob_column(row, SUBJECT, dispute->subject.bytes, HASH32_SIZE) &&
                   database_blob_column(row, PRE, dispute->pre_state.bytes, DIGEST_SIZE) &&
                   database_blob_column(row, POST, dispute->post_state.bytes, DIGEST_SIZE) &&
                   database_blob_column(row, TRACE, dispute->trace_root.bytes, DIGEST_SIZE)
               ? STATUS_OK
               : store_damaged(error);
}

enum status store_outsiders(struct store *store, uint32_t *count, const struct hash32 *job,
                            struct error *error)
{
    int64_t found = 0;
    enum status status = database_number(&store->sql, &found, 0, error,
                                         "SELECT coalesce(sum(outsiders), 0) FROM disputes WHERE"
                                         " job = ? AND phase <> :claim_closed",
                                         "b", &(struct database_blob){job->bytes, HASH32_SIZE});

    *count = (uint32_t)found;
    return status;
}

enum status store_is_disputed(struct store *store, bool *disputed, bool *mine,
                              const struct hash32 *subject, struct error *error)
{
    const struct database_blob key = {subject->bytes, HASH32_SIZE};
    int64_t found = 0;
    int64_t ours = 0;

    TRY(database_number(&store->sql, &found, 0, error,
                        "SELECT count(*) FROM disputes WHERE subject = ? AND"
                        " (phase <> :claim_closed OR outcome = :upheld)",
                        "b", &key));
    TRY(database_number(&store->sql, &ours, 0, error,
                        "SELECT count(*) FROM disputes WHERE subject = ? AND (ours OR lost)", "b",
                        &key));
    *disputed = found > 0;
    *mine = ours > 0;
    return STATUS_OK;
}

/* ---- retries ------------------------------------------------------------------ */

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
