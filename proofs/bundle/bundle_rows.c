/* bundle_rows.c - steps, segments, notes and devices in a bundle's journal; see bundle.h. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/endian.h"
#include "proofs/bundle/bundle_parts.h"
#include "proofs/commit/commit.h"

#define PENDING_NS_MAX UINT64_C(1000000000)

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

enum status bundle_refuse_locked(const struct bundle *bundle, struct error *error)
{
    (void)error_set(error, STATUS_REFUSED, "%s is sealed and its key was not given", bundle->path);
    error_advise(error, "give the key with --key FILE, or the passphrase");
    return STATUS_REFUSED;
}

/* ---- transactions ------------------------------------------------------- */

enum status bundle_flush(struct bundle *bundle, struct error *error)
{
    enum status status = STATUS_OK;

    bundle->pending = 0;
    if (journal_in_transaction(&bundle->journal)) {
        status = journal_run(&bundle->journal, "COMMIT", error);
    }
    /* A full disk leaves it open: these steps are forgotten, and run again some day. */
    if (status != STATUS_OK && journal_in_transaction(&bundle->journal)) {
        enum status ignored = journal_run(&bundle->journal, "ROLLBACK", NULL);

        (void)ignored;
    }
    return status;
}

static enum status begin(struct bundle *bundle, struct error *error)
{
    enum status status = STATUS_OK;

    if (bundle->pending >= BUNDLE_PENDING_MAX ||
        (bundle->pending > 0 && now_ns() - bundle->pending_since_ns > PENDING_NS_MAX)) {
        status = bundle_flush(bundle, error);
    }
    if (status == STATUS_OK && !journal_in_transaction(&bundle->journal)) {
        status = journal_run(&bundle->journal, "BEGIN IMMEDIATE", error);
        bundle->pending = 0;
        bundle->pending_since_ns = now_ns();
    }
    return status;
}

/* ---- steps -------------------------------------------------------------- */

static void step_context(char context[BUNDLE_CONTEXT_MAX], uint64_t step)
{
    (void)snprintf(context, BUNDLE_CONTEXT_MAX, "journal/step/%" PRIu64, step);
}

void bundle_step_pack(uint8_t bytes[BUNDLE_STEP_BYTES], const struct bundle_step *step)
{
    endian_store_be32(bytes, step->loss_bits);
    endian_store_be64(bytes + 4, step->nanoseconds);
    endian_store_be64(bytes + 12, step->nanoseconds_committing);
    endian_store_be64(bytes + 20, step->microjoules);
    endian_store_be64(bytes + 28, step->device);
}

void bundle_step_unpack(struct bundle_step *step, const uint8_t bytes[BUNDLE_STEP_BYTES])
{
    step->loss_bits = endian_load_be32(bytes);
    step->nanoseconds = endian_load_be64(bytes + 4);
    step->nanoseconds_committing = endian_load_be64(bytes + 12);
    step->microjoules = endian_load_be64(bytes + 20);
    step->device = endian_load_be64(bytes + 28);
}

static enum status compare_step(const struct bundle_step *known, const struct bundle_step *step,
                                struct error *error)
{
    if (digest_equal(&known->root, &step->root) && known->loss_bits == step->loss_bits) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED,
                    "step %" PRIu64 " does not give what the journal says it gave before",
                    step->step);
    error_advise(error, "either the bundle was changed or this machine computes wrongly: check the "
                        "bundle with 'lockstep audit' on another machine");
    return STATUS_REFUSED;
}

enum status bundle_step_insert(struct bundle *bundle, const struct bundle_step *step,
                               const uint8_t *box, struct error *error)
{
    bool known = step->microjoules != BUNDLE_ENERGY_UNKNOWN;
    sqlite3_stmt *statement = NULL;
    enum status status =
        box != NULL
            ? journal_prepare(&statement, &bundle->journal, error,
                              "INSERT INTO steps VALUES (?, ?, NULL, NULL, NULL, NULL, NULL, ?)",
                              "idb", step->step, &step->root, box, (size_t)BUNDLE_STEP_BOX)
            : journal_prepare(&statement, &bundle->journal, error,
                              "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, NULL)",
                              known ? "idiiiii" : "idiiini", step->step, &step->root,
                              (uint64_t)step->loss_bits, step->nanoseconds,
                              step->nanoseconds_committing,
                              known ? step->microjoules : step->device, step->device);

    return status == STATUS_OK ? journal_finish(&bundle->journal, statement, error) : status;
}

static enum status insert_sealed(struct bundle *bundle, const struct bundle_step *step,
                                 struct error *error)
{
    uint8_t bytes[BUNDLE_STEP_BYTES];
    uint8_t box[BUNDLE_STEP_BOX];
    char context[BUNDLE_CONTEXT_MAX];
    enum status status;

    bundle_step_pack(bytes, step);
    step_context(context, step->step);
    status = encryption_box(box, error, &bundle->key, context, bytes, sizeof(bytes));
    return status == STATUS_OK ? bundle_step_insert(bundle, step, box, error) : status;
}

enum status bundle_record(struct bundle *bundle, const struct bundle_step *step,
                          struct error *error)
{
    struct bundle_step known;
    struct bundle_step entry = *step;
    enum status status;

    assert(bundle->lock.descriptor >= 0);
    assert(step->step < bundle->job->steps);
    if (bundle_is_locked(bundle)) {
        return bundle_refuse_locked(bundle, error);
    }
    status = bundle_step_read(&known, bundle, step->step, error);
    if (status != STATUS_NOT_FOUND) {
        return status == STATUS_OK ? compare_step(&known, step, error) : status;
    }
    entry.device = bundle->device;
    status = begin(bundle, error);
    if (status == STATUS_OK) {
        status = bundle->sealed ? insert_sealed(bundle, &entry, error)
                                : bundle_step_insert(bundle, &entry, NULL, error);
    }
    if (status == STATUS_OK) {
        bundle->pending++;
    }
    return status;
}

static enum status read_plain(struct bundle_step *entry, struct journal *journal,
                              sqlite3_stmt *statement, struct error *error)
{
    uint64_t *const numbers[] = {&entry->nanoseconds, &entry->nanoseconds_committing,
                                 &entry->microjoules, &entry->device};
    uint64_t loss = 0;
    enum status status = journal_number(&loss, journal, statement, 1, UINT32_MAX, error);

    entry->loss_bits = (uint32_t)loss;
    entry->microjoules = BUNDLE_ENERGY_UNKNOWN;
    for (int i = 0; i < 4 && status == STATUS_OK; i++) {
        if (numbers[i] != &entry->microjoules || !journal_is_null(statement, 2 + i)) {
            status = journal_number(numbers[i], journal, statement, 2 + i, INT64_MAX, error);
        }
    }
    return status;
}

static enum status read_sealed(struct bundle_step *entry, struct bundle *bundle,
                               sqlite3_stmt *statement, struct error *error)
{
    uint8_t bytes[BUNDLE_STEP_BYTES];
    uint8_t box[BUNDLE_STEP_BOX];
    char context[BUNDLE_CONTEXT_MAX];
    size_t size = 0;
    enum status status =
        journal_bytes(box, &size, &bundle->journal, statement, 6, sizeof(box), sizeof(box), error);

    entry->hidden = bundle_is_locked(bundle);
    if (status != STATUS_OK || entry->hidden) {
        return status;
    }
    step_context(context, entry->step);
    status = encryption_box_open(bytes, error, &bundle->key, context, box, sizeof(box));
    if (status == STATUS_OK) {
        bundle_step_unpack(entry, bytes);
    }
    return status;
}

enum status bundle_step_read(struct bundle_step *entry, struct bundle *bundle, uint64_t step,
                             struct error *error)
{
    struct journal *journal = &bundle->journal;
    sqlite3_stmt *statement = NULL;
    enum status status;

    *entry = (struct bundle_step){.step = step};
    if (step >= bundle->job->steps) {
        return error_set(error, STATUS_NOT_FOUND, "the job has %" PRIu64 " steps",
                         bundle->job->steps);
    }
    status = journal_prepare(&statement, journal, error,
                             "SELECT root, loss, nanoseconds, committing, microjoules, device, "
                             "sealed FROM steps WHERE step = ?",
                             "i", step);
    if (status == STATUS_OK) {
        status = journal_next(journal, statement, error);
    }
    if (status == STATUS_NOT_FOUND) {
        (void)error_set(error, STATUS_NOT_FOUND, "step %" PRIu64 " is not in the journal", step);
    }
    if (status == STATUS_OK) {
        status = journal_digest(&entry->root, journal, statement, 0, error);
    }
    if (status == STATUS_OK) {
        status = bundle->sealed ? read_sealed(entry, bundle, statement, error)
                                : read_plain(entry, journal, statement, error);
    }
    (void)sqlite3_finalize(statement);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        (void)error_wrap(error, "step %" PRIu64, step);
    }
    return status;
}

enum status bundle_state_root(struct digest *root, struct bundle *bundle, uint64_t step,
                              struct error *error)
{
    struct bundle_step entry;
    enum status status;

    if (step == 0) {
        *root = bundle->job->first_state_root;
        return STATUS_OK;
    }
    status = bundle_step_read(&entry, bundle, step - 1, error);
    *root = entry.root;
    return status;
}

enum status bundle_step_count(uint64_t *count, struct bundle *bundle, struct error *error)
{
    struct journal *journal = &bundle->journal;
    sqlite3_stmt *statement = NULL;
    enum status status =
        journal_prepare(&statement, journal, error, "SELECT step FROM steps ORDER BY step", "");

    *count = 0;
    while (status == STATUS_OK) {
        uint64_t step = 0;

        status = journal_next(journal, statement, error);
        if (status == STATUS_OK) {
            status = journal_number(&step, journal, statement, 0, INT64_MAX, error);
        }
        if (status == STATUS_OK && (step != *count || step >= bundle->job->steps)) {
            break; /* what follows a gap, or the job's end, counts for nothing */
        }
        *count += status == STATUS_OK;
    }
    (void)sqlite3_finalize(statement);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- segments ----------------------------------------------------------- */

/* The step after the segment's last one, which is the one that diverged where one did. */
static enum status segment_end(uint64_t *end, struct bundle *bundle, uint64_t segment,
                               struct error *error)
{
    uint64_t diverged;
    enum status status = STATUS_OK;

    if (segment >= job_segments(bundle->job)) {
        return error_set(error, STATUS_USAGE,
                         "the job has %" PRIu64 " segments; there is no number %" PRIu64,
                         job_segments(bundle->job), segment);
    }
    *end = job_segment_end(bundle->job, segment);
    status = bundle_diverged(&diverged, bundle, error);
    if (status == STATUS_OK && diverged < *end - 1) {
        *end = diverged + 1;
        if (*end <= segment * bundle->job->segment_length) {
            status = error_set(error, STATUS_NOT_FOUND,
                               "the run diverged at step %" PRIu64 ", before segment %" PRIu64,
                               diverged, segment);
        }
    }
    return status;
}

enum status bundle_segment_root(struct digest *root, struct bundle *bundle, uint64_t segment,
                                struct error *error)
{
    uint64_t first = segment * bundle->job->segment_length;
    uint64_t end = 0;
    struct commit_roots roots;
    enum status status = segment_end(&end, bundle, segment, error);

    commit_roots_init(&roots, COMMIT_SEGMENT, first);
    for (uint64_t step = first; status == STATUS_OK && step < end; step++) {
        struct digest state;

        status = bundle_state_root(&state, bundle, step + 1, error);
        if (status == STATUS_OK) {
            status = commit_roots_add(&roots, &state);
        }
    }
    if (status == STATUS_OK) {
        commit_roots_end(&roots, root);
    }
    return status;
}

enum status bundle_segment_sign(struct bundle *bundle, uint64_t segment, const uint8_t *signature,
                                size_t signature_size, struct error *error)
{
    struct digest root;
    sqlite3_stmt *statement = NULL;
    enum status status;

    if (signature_size == 0 || signature_size > BUNDLE_SIGNATURE_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a signature of %zu bytes", signature_size);
    }
    status = bundle_segment_root(&root, bundle, segment, error);
    if (status == STATUS_OK) {
        status = bundle_flush(bundle, error);
    }
    if (status == STATUS_OK) {
        status = journal_prepare(&statement, &bundle->journal, error,
                                 "INSERT OR REPLACE INTO segments VALUES (?, ?, ?)", "idb", segment,
                                 &root, signature, signature_size);
    }
    return status == STATUS_OK ? journal_finish(&bundle->journal, statement, error) : status;
}

enum status bundle_segment_signature(struct digest *root, uint8_t *signature,
                                     size_t *signature_size, struct bundle *bundle,
                                     uint64_t segment, struct error *error)
{
    struct journal *journal = &bundle->journal;
    sqlite3_stmt *statement = NULL;
    enum status status =
        journal_prepare(&statement, journal, error,
                        "SELECT root, signature FROM segments WHERE segment = ?", "i", segment);

    if (status == STATUS_OK) {
        status = journal_next(journal, statement, error);
    }
    if (status == STATUS_NOT_FOUND) {
        (void)error_set(error, STATUS_NOT_FOUND, "segment %" PRIu64 " has no signature", segment);
    }
    if (status == STATUS_OK) {
        status = journal_digest(root, journal, statement, 0, error);
    }
    if (status == STATUS_OK) {
        status = journal_bytes(signature, signature_size, journal, statement, 1, 1,
                               BUNDLE_SIGNATURE_MAX, error);
    }
    (void)sqlite3_finalize(statement);
    return status;
}

/* ---- how the run stands ------------------------------------------------- */

enum status bundle_set_diverged(struct bundle *bundle, uint64_t step, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    enum status status = bundle_flush(bundle, error);

    if (status == STATUS_OK) {
        status = journal_prepare(&statement, &bundle->journal, error,
                                 "INSERT OR REPLACE INTO facts VALUES ('diverged', ?, NULL, NULL)",
                                 "i", step);
    }
    return status == STATUS_OK ? journal_finish(&bundle->journal, statement, error) : status;
}

enum status bundle_diverged(uint64_t *step, struct bundle *bundle, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    struct digest root;
    enum status status = journal_prepare(&statement, &bundle->journal, error,
                                         "SELECT value FROM facts WHERE name = 'diverged'", "");

    *step = UINT64_MAX;
    if (status == STATUS_OK) {
        status = journal_next(&bundle->journal, statement, error);
    }
    if (status == STATUS_OK) {
        status =
            journal_number(step, &bundle->journal, statement, 0, bundle->job->steps - 1, error);
    }
    (void)sqlite3_finalize(statement);
    if (status == STATUS_OK && bundle_state_root(&root, bundle, *step + 1, error) != STATUS_OK) {
        status = error_set(error, STATUS_BAD_FORMAT,
                           "%s: step %" PRIu64 " is said to have diverged, and was not run",
                           bundle->journal.path, *step);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- notes and devices: texts that are sealed where the bundle is ---------- */

static enum status put_text(struct bundle *bundle, const char *database_plain,
                            const char *database_sealed, const char *context, const char *text,
                            struct error *error)
{
    uint8_t box[BUNDLE_TEXT_BOX];
    size_t size = strlen(text);
    sqlite3_stmt *statement = NULL;
    enum status status = STATUS_OK;

    if (size >= FILE_PATH_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a text of %zu bytes for the journal", size);
    }
    if (bundle_is_locked(bundle)) {
        return bundle_refuse_locked(bundle, error);
    }
    if (bundle->sealed) {
        status = encryption_box(box, error, &bundle->key, context, text, size);
    }
    if (status == STATUS_OK) {
        status = bundle_flush(bundle, error);
    }
    if (status == STATUS_OK) {
        status =
            bundle->sealed
                ? journal_prepare(&statement, &bundle->journal, error, database_sealed, "b", box,
                                  size + ENCRYPTION_BOX_EXTRA)
                : journal_prepare(&statement, &bundle->journal, error, database_plain, "t", text);
    }
    return status == STATUS_OK ? journal_finish(&bundle->journal, statement, error) : status;
}

/* The text in the columns 0 (plain) and 1 (sealed) of a row. */
static enum status get_text(char *text, size_t text_size, struct bundle *bundle,
                            sqlite3_stmt *statement, const char *context, struct error *error)
{
    uint8_t box[BUNDLE_TEXT_BOX];
    size_t size = 0;
    enum status status;

    if (!bundle->sealed) {
        return journal_text(text, text_size, &bundle->journal, statement, 0, error);
    }
    if (bundle_is_locked(bundle)) {
        return error_set(error, STATUS_NOT_FOUND, "%s is locked", bundle->path);
    }
    status = journal_bytes(box, &size, &bundle->journal, statement, 1, ENCRYPTION_BOX_EXTRA,
                           text_size - 1 + ENCRYPTION_BOX_EXTRA, error);
    if (status == STATUS_OK) {
        status = encryption_box_open((uint8_t *)text, error, &bundle->key, context, box, size);
        text[status == STATUS_OK ? size - ENCRYPTION_BOX_EXTRA : 0] = '\0';
    }
    return status;
}

/* Names are our own words: "data.0". */
static bool name_is_plain(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-");

    return length > 0 && length < BUNDLE_NOTE_NAME_MAX / 2 && name[length] == '\0' &&
           strcmp(name, "sealed") != 0 && strcmp(name, "diverged") != 0;
}

enum status bundle_set_note(struct bundle *bundle, const char *name, const char *text,
                            struct error *error)
{
    char plain[128];
    char sealed[128];
    char context[BUNDLE_CONTEXT_MAX];

    assert(name_is_plain(name));
    (void)snprintf(plain, sizeof(plain),
                   "INSERT OR REPLACE INTO facts VALUES ('%s', NULL, ?, NULL)", name);
    (void)snprintf(sealed, sizeof(sealed),
                   "INSERT OR REPLACE INTO facts VALUES ('%s', NULL, NULL, ?)", name);
    (void)snprintf(context, sizeof(context), "journal/fact/%s", name);
    return put_text(bundle, plain, sealed, context, text, error);
}

enum status bundle_note(char *text, struct bundle *bundle, const char *name, struct error *error)
{
    char context[BUNDLE_CONTEXT_MAX];
    sqlite3_stmt *statement = NULL;
    enum status status =
        journal_prepare(&statement, &bundle->journal, error,
                        "SELECT text, sealed FROM facts WHERE name = ?", "t", name);

    text[0] = '\0';
    if (status == STATUS_OK) {
        status = journal_next(&bundle->journal, statement, error);
    }
    if (status == STATUS_NOT_FOUND) {
        (void)error_set(error, STATUS_NOT_FOUND, "%s: no note '%s'", bundle->path, name);
    }
    if (status == STATUS_OK) {
        (void)snprintf(context, sizeof(context), "journal/fact/%s", name);
        status = get_text(text, FILE_PATH_MAX, bundle, statement, context, error);
    }
    (void)sqlite3_finalize(statement);
    return status;
}

static void device_context(char context[BUNDLE_CONTEXT_MAX], uint64_t device)
{
    (void)snprintf(context, BUNDLE_CONTEXT_MAX, "journal/device/%" PRIu64, device);
}

enum status bundle_device(char *name, struct bundle *bundle, uint64_t device, struct error *error)
{
    char context[BUNDLE_CONTEXT_MAX];
    sqlite3_stmt *statement = NULL;
    enum status status =
        journal_prepare(&statement, &bundle->journal, error,
                        "SELECT name, sealed FROM devices WHERE device = ?", "i", device);

    name[0] = '\0';
    if (status == STATUS_OK) {
        status = journal_next(&bundle->journal, statement, error);
    }
    if (status == STATUS_NOT_FOUND) {
        (void)error_set(error, STATUS_NOT_FOUND, "%s: no device %" PRIu64, bundle->path, device);
    }
    if (status == STATUS_OK) {
        device_context(context, device);
        status = get_text(name, BUNDLE_DEVICE_MAX, bundle, statement, context, error);
    }
    (void)sqlite3_finalize(statement);
    return status;
}

enum status bundle_set_device(struct bundle *bundle, const char *device, struct error *error)
{
    char name[BUNDLE_DEVICE_MAX];
    char known[BUNDLE_DEVICE_MAX];
    char plain[128];
    char sealed[128];
    char context[BUNDLE_CONTEXT_MAX];
    uint64_t row = 0;
    enum status status;

    (void)snprintf(name, sizeof(name), "%s", device);
    while ((status = bundle_device(known, bundle, row, error)) == STATUS_OK) {
        if (strcmp(known, name) == 0) {
            bundle->device = row;
            return STATUS_OK;
        }
        row++;
    }
    if (status != STATUS_NOT_FOUND || bundle_is_locked(bundle)) {
        return bundle_is_locked(bundle) ? bundle_refuse_locked(bundle, error) : status;
    }
    if (row >= BUNDLE_DEVICES_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "%s: more than %d devices", bundle->path,
                         BUNDLE_DEVICES_MAX);
    }
    (void)snprintf(plain, sizeof(plain), "INSERT INTO devices VALUES (%" PRIu64 ", ?, NULL)", row);
    (void)snprintf(sealed, sizeof(sealed), "INSERT INTO devices VALUES (%" PRIu64 ", NULL, ?)",
                   row);
    device_context(context, row);
    status = put_text(bundle, plain, sealed, context, name, error);
    bundle->device = row;
    return status;
}
