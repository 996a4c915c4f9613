/* bundle_rows.c - see bundle.h: steps, segments, notes and devices in the journal. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/endian.h"
#include "base/steady.h"
#include "proofs/bundle/bundle.h"
#include "proofs/bundle/bundle_parts.h"
#include "proofs/commit/commit.h"

#define PENDING_NS_MAX UINT64_C(1000000000)

enum status bundle_require_key(const struct bundle *bundle, struct error *error)
{
    if (!bundle_is_locked(bundle)) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED, "%s is encrypted and its key was not given",
                    bundle->path);
    error_advise(error, "give the key with --bundle-key FILE, or the passphrase");
    return STATUS_REFUSED;
}

/* ---- transactions ------------------------------------------------------- */

enum status bundle_flush(struct bundle *bundle, struct error *error)
{
    bundle->pending = 0;
    if (!database_in_transaction(bundle->database)) {
        return STATUS_OK;
    }
    /* A full disk rolls back: these steps are forgotten, and a later process runs them again. */
    return database_end(bundle->database, STATUS_OK, error);
}

static enum status begin_change(struct bundle *bundle, struct error *error)
{
    if (bundle->pending >= BUNDLE_PENDING_MAX ||
        (bundle->pending > 0 && steady_ns() - bundle->pending_since_ns > PENDING_NS_MAX)) {
        TRY(bundle_flush(bundle, error));
    }
    if (!database_in_transaction(bundle->database)) {
        TRY(database_begin(bundle->database, error));
        bundle->pending = 0;
        bundle->pending_since_ns = steady_ns();
    }
    return STATUS_OK;
}

/* ---- steps -------------------------------------------------------------- */

/* Where the numbers of a step stand in its row. An encrypted bundle has a box of these. */
enum {
    STEP_LOSS = 0,
    STEP_HELD_OUT = 4,
    STEP_ACCURACY = 8,
    STEP_NANOSECONDS = 12,
    STEP_COMMITTING = 20,
    STEP_MICROJOULES = 28,
    STEP_DEVICE = 36
};

static void step_context(char context[BUNDLE_CONTEXT_MAX], uint64_t step)
{
    (void)snprintf(context, BUNDLE_CONTEXT_MAX, "journal/step/%" PRIu64, step);
}

void bundle_step_pack(uint8_t bytes[BUNDLE_STEP_BYTES], const struct bundle_step *step)
{
    endian_store_be32(bytes + STEP_LOSS, step->loss_bits);
    endian_store_be32(bytes + STEP_HELD_OUT,
                      step->evaluated ? step->held_out_bits : FLOAT_NAN_BITS);
    endian_store_be32(bytes + STEP_ACCURACY,
                      step->evaluated ? step->accuracy_bits : FLOAT_NAN_BITS);
    endian_store_be64(bytes + STEP_NANOSECONDS, step->nanoseconds);
    endian_store_be64(bytes + STEP_COMMITTING, step->nanoseconds_committing);
    endian_store_be64(bytes + STEP_MICROJOULES, step->microjoules);
    endian_store_be64(bytes + STEP_DEVICE, step->device);
}

void bundle_step_unpack(struct bundle_step *step, const uint8_t bytes[BUNDLE_STEP_BYTES])
{
    step->loss_bits = endian_load_be32(bytes + STEP_LOSS);
    step->held_out_bits = endian_load_be32(bytes + STEP_HELD_OUT);
    step->accuracy_bits = endian_load_be32(bytes + STEP_ACCURACY);
    step->evaluated =
        step->held_out_bits != FLOAT_NAN_BITS; /* a true loss is finite: NaN is free */
    step->nanoseconds = endian_load_be64(bytes + STEP_NANOSECONDS);
    step->nanoseconds_committing = endian_load_be64(bytes + STEP_COMMITTING);
    step->microjoules = endian_load_be64(bytes + STEP_MICROJOULES);
    step->device = endian_load_be64(bytes + STEP_DEVICE);
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
    const struct database_blob blob = {box, BUNDLE_STEP_BOX};
    const uint64_t none = FLOAT_NAN_BITS;

    if (box != NULL) {
        return database_run(bundle->database, error,
                            "INSERT INTO steps (step, root, encrypted) VALUES (?, ?, ?)", "idb",
                            step->step, &step->root, &blob);
    }
    return database_run(bundle->database, error,
                        "INSERT INTO steps VALUES (?, ?, ?, NULLIF(?, ?), NULLIF(?, ?), ?, ?, "
                        "NULLIF(?, ?), ?, NULL)",
                        "idiiiiiiiiii", step->step, &step->root, (uint64_t)step->loss_bits,
                        step->evaluated ? (uint64_t)step->held_out_bits : none, none,
                        step->evaluated ? (uint64_t)step->accuracy_bits : none, none,
                        step->nanoseconds, step->nanoseconds_committing, step->microjoules,
                        BUNDLE_ENERGY_UNKNOWN, step->device);
}

static enum status insert_encrypted(struct bundle *bundle, const struct bundle_step *step,
                                    struct error *error)
{
    uint8_t bytes[BUNDLE_STEP_BYTES];
    uint8_t box[BUNDLE_STEP_BOX];
    char context[BUNDLE_CONTEXT_MAX];

    bundle_step_pack(bytes, step);
    step_context(context, step->step);
    TRY(encryption_box(box, error, &bundle->key, context, bytes, sizeof(bytes)));
    return bundle_step_insert(bundle, step, box, error);
}

enum status bundle_record(struct bundle *bundle, const struct bundle_step *step,
                          struct error *error)
{
    struct bundle_step known;
    struct bundle_step entry = *step;
    enum status status;

    assert(bundle->lock.descriptor >= 0);
    assert(step->step < bundle->job->steps);
    TRY(bundle_require_key(bundle, error));
    status = bundle_step_read(&known, bundle, step->step, error);
    if (status != STATUS_NOT_FOUND) {
        return status == STATUS_OK ? compare_step(&known, step, error) : status;
    }
    entry.device = bundle->device;
    TRY(begin_change(bundle, error));
    TRY(bundle->encrypted ? insert_encrypted(bundle, &entry, error)
                          : bundle_step_insert(bundle, &entry, NULL, error));
    bundle->pending++;
    return STATUS_OK;
}

static enum status read_plain(struct bundle_step *entry, struct journal *journal, sqlite3_stmt *row,
                              struct error *error)
{
    uint64_t loss;
    uint64_t held_out = FLOAT_NAN_BITS;
    uint64_t accuracy = FLOAT_NAN_BITS;
    const struct {
        uint64_t *number;
        uint64_t maximum;
        bool may_lack;
    } columns[] = {{&loss, UINT32_MAX, false},
                   {&held_out, UINT32_MAX, true},
                   {&accuracy, UINT32_MAX, true},
                   {&entry->nanoseconds, INT64_MAX, false},
                   {&entry->nanoseconds_committing, INT64_MAX, false},
                   {&entry->microjoules, INT64_MAX, true},
                   {&entry->device, INT64_MAX, false}};

    entry->microjoules = BUNDLE_ENERGY_UNKNOWN;
    for (int i = 0; i < 7; i++) {
        if (!columns[i].may_lack || !journal_is_null(row, 1 + i)) {
            TRY(journal_number(columns[i].number, journal, row, 1 + i, columns[i].maximum, error));
        }
    }
    entry->loss_bits = (uint32_t)loss;
    entry->evaluated = held_out != FLOAT_NAN_BITS;
    entry->held_out_bits = (uint32_t)held_out;
    entry->accuracy_bits = (uint32_t)accuracy;
    return STATUS_OK;
}

static enum status read_encrypted(struct bundle_step *entry, struct bundle *bundle,
                                  sqlite3_stmt *row, struct error *error)
{
    uint8_t bytes[BUNDLE_STEP_BYTES];
    uint8_t box[BUNDLE_STEP_BOX];
    char context[BUNDLE_CONTEXT_MAX];
    size_t size;

    TRY(journal_bytes(box, &size, &bundle->journal, row, 8, sizeof(box), sizeof(box), error));
    entry->hidden = bundle_is_locked(bundle);
    if (entry->hidden) {
        return STATUS_OK;
    }
    step_context(context, entry->step);
    TRY(encryption_box_open(bytes, error, &bundle->key, context, box, sizeof(box)));
    bundle_step_unpack(entry, bytes);
    return STATUS_OK;
}

static enum status read_row(struct bundle_step *entry, struct bundle *bundle, sqlite3_stmt *row,
                            struct error *error)
{
    TRY(journal_digest(&entry->root, &bundle->journal, row, 0, error));
    return bundle->encrypted ? read_encrypted(entry, bundle, row, error)
                             : read_plain(entry, &bundle->journal, row, error);
}

enum status bundle_step_read(struct bundle_step *entry, struct bundle *bundle, uint64_t step,
                             struct error *error)
{
    sqlite3_stmt *row = NULL;
    enum status status;

    *entry = (struct bundle_step){.step = step};
    if (step >= bundle->job->steps) {
        return error_set(error, STATUS_NOT_FOUND, "the job has %" PRIu64 " steps",
                         bundle->job->steps);
    }
    status = database_first(&row, bundle->database, error,
                            "SELECT root, loss, held_out, accuracy, nanoseconds, committing, "
                            "microjoules, device, encrypted FROM steps WHERE step = ?",
                            "i", step);
    if (status == STATUS_NOT_FOUND) {
        (void)error_set(error, STATUS_NOT_FOUND, "step %" PRIu64 " is not in the journal", step);
    }
    if (status != STATUS_OK) {
        goto out;
    }
    TRY_OUT(read_row(entry, bundle, row, error));
out:
    database_done(bundle->database, row);
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
    sqlite3_stmt *row = NULL;
    enum status status;

    *count = 0;
    TRY_OUT(database_prepare(&row, bundle->database, error, "SELECT step FROM steps ORDER BY step",
                             ""));
    while ((status = database_step(bundle->database, row, error)) == STATUS_OK) {
        uint64_t step;

        TRY_OUT(journal_number(&step, &bundle->journal, row, 0, INT64_MAX, error));
        if (step != *count || step >= bundle->job->steps) {
            break; /* Steps after a gap, or after the job's end, do not count. */
        }
        ++*count;
    }
out:
    database_done(bundle->database, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- segments ----------------------------------------------------------- */

/* One past the segment's last step. The step that diverged, if any, is the last of its segment. */
static enum status segment_end(uint64_t *end, struct bundle *bundle, uint64_t segment,
                               struct error *error)
{
    uint64_t diverged;

    if (segment >= job_segments(bundle->job)) {
        return error_set(error, STATUS_USAGE,
                         "the job has %" PRIu64 " segments; there is no number %" PRIu64,
                         job_segments(bundle->job), segment);
    }
    *end = job_segment_end(bundle->job, segment);
    TRY(bundle_diverged(&diverged, bundle, error));
    if (diverged < *end - 1) {
        *end = diverged + 1;
    }
    if (*end <= segment * bundle->job->segment_length) {
        return error_set(error, STATUS_NOT_FOUND,
                         "the run diverged at step %" PRIu64 ", before segment %" PRIu64, diverged,
                         segment);
    }
    return STATUS_OK;
}

enum status bundle_segment_root(struct digest *root, struct bundle *bundle, uint64_t segment,
                                struct error *error)
{
    uint64_t first = segment * bundle->job->segment_length;
    uint64_t end = 0;
    struct commit_roots roots;

    TRY(segment_end(&end, bundle, segment, error));
    commit_roots_init(&roots, COMMIT_SEGMENT, first);
    for (uint64_t step = first; step < end; step++) {
        struct digest state;

        TRY(bundle_state_root(&state, bundle, step + 1, error));
        TRY(commit_roots_add(&roots, &state));
    }
    commit_roots_end(&roots, root);
    return STATUS_OK;
}

enum status bundle_segment_sign(struct bundle *bundle, uint64_t segment, const uint8_t *signature,
                                size_t signature_size, struct error *error)
{
    const struct database_blob blob = {signature, signature_size};
    struct digest root;

    if (signature_size == 0 || signature_size > BUNDLE_SIGNATURE_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a signature of %zu bytes", signature_size);
    }
    TRY(bundle_segment_root(&root, bundle, segment, error));
    TRY(bundle_flush(bundle, error));
    return database_run(bundle->database, error, "INSERT OR REPLACE INTO segments VALUES (?, ?, ?)",
                        "idb", segment, &root, &blob);
}

enum status bundle_segment_signature(struct digest *root, uint8_t *signature,
                                     size_t *signature_size, struct bundle *bundle,
                                     uint64_t segment, struct error *error)
{
    sqlite3_stmt *row = NULL;
    enum status status =
        database_first(&row, bundle->database, error,
                       "SELECT root, signature FROM segments WHERE segment = ?", "i", segment);

    if (status == STATUS_NOT_FOUND) {
        (void)error_set(error, STATUS_NOT_FOUND, "segment %" PRIu64 " has no signature", segment);
    }
    if (status != STATUS_OK) {
        goto out;
    }
    TRY_OUT(journal_digest(root, &bundle->journal, row, 0, error));
    TRY_OUT(journal_bytes(signature, signature_size, &bundle->journal, row, 1, 1,
                          BUNDLE_SIGNATURE_MAX, error));
out:
    database_done(bundle->database, row);
    return status;
}

/* ---- how the run stands ------------------------------------------------- */

enum status bundle_set_diverged(struct bundle *bundle, uint64_t step, struct error *error)
{
    TRY(bundle_flush(bundle, error));
    return database_run(bundle->database, error,
                        "INSERT OR REPLACE INTO facts VALUES ('diverged', ?, NULL, NULL)", "i",
                        step);
}

enum status bundle_diverged(uint64_t *step, struct bundle *bundle, struct error *error)
{
    sqlite3_stmt *row = NULL;
    struct digest root;
    enum status status;

    *step = UINT64_MAX;
    TRY_OUT(database_first(&row, bundle->database, error,
                           "SELECT value FROM facts WHERE name = 'diverged'", ""));
    TRY_OUT(journal_number(step, &bundle->journal, row, 0, bundle->job->steps - 1, error));
    if (bundle_state_root(&root, bundle, *step + 1, error) != STATUS_OK) {
        status = error_set(error, STATUS_BAD_FORMAT,
                           "%s: step %" PRIu64 " is said to have diverged, and was not run",
                           bundle->journal.path, *step);
    }
out:
    database_done(bundle->database, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- notes and devices: texts, encrypted where the bundle is ----------------- */

static enum status put_text(struct bundle *bundle, const char *insert_plain,
                            const char *insert_encrypted_text, const char *context,
                            const char *text, struct error *error)
{
    uint8_t box[BUNDLE_TEXT_BOX];
    size_t size = strlen(text);
    const struct database_blob blob = {box, size + ENCRYPTION_BOX_EXTRA};

    if (size >= FILE_PATH_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a text of %zu bytes for the journal", size);
    }
    TRY(bundle_require_key(bundle, error));
    if (bundle->encrypted) {
        TRY(encryption_box(box, error, &bundle->key, context, text, size));
    }
    TRY(bundle_flush(bundle, error));
    return bundle->encrypted
               ? database_run(bundle->database, error, insert_encrypted_text, "b", &blob)
               : database_run(bundle->database, error, insert_plain, "t", text);
}

/* The text in the columns 0 (plain) and 1 (encrypted) of a row. */
static enum status get_text(char *text, size_t text_size, struct bundle *bundle, sqlite3_stmt *row,
                            const char *context, struct error *error)
{
    uint8_t box[BUNDLE_TEXT_BOX];
    size_t size;
    enum status status;

    if (!bundle->encrypted) {
        return journal_text(text, text_size, &bundle->journal, row, 0, error);
    }
    if (bundle_is_locked(bundle)) {
        return error_set(error, STATUS_NOT_FOUND, "%s is locked", bundle->path);
    }
    TRY(journal_bytes(box, &size, &bundle->journal, row, 1, ENCRYPTION_BOX_EXTRA,
                      text_size - 1 + ENCRYPTION_BOX_EXTRA, error));
    status = encryption_box_open((uint8_t *)text, error, &bundle->key, context, box, size);
    text[status == STATUS_OK ? size - ENCRYPTION_BOX_EXTRA : 0] = '\0';
    return status;
}

/* Names are our own words: "data.0". */
static bool name_is_plain(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-");

    return length > 0 && length < BUNDLE_NOTE_NAME_MAX / 2 && name[length] == '\0' &&
           strcmp(name, "encrypted") != 0 && strcmp(name, "diverged") != 0;
}

enum status bundle_set_note(struct bundle *bundle, const char *name, const char *text,
                            struct error *error)
{
    char plain[128];
    char encrypted[128];
    char context[BUNDLE_CONTEXT_MAX];

    assert(name_is_plain(name));
    (void)snprintf(plain, sizeof(plain),
                   "INSERT OR REPLACE INTO facts VALUES ('%s', NULL, ?, NULL)", name);
    (void)snprintf(encrypted, sizeof(encrypted),
                   "INSERT OR REPLACE INTO facts VALUES ('%s', NULL, NULL, ?)", name);
    (void)snprintf(context, sizeof(context), "journal/fact/%s", name);
    return put_text(bundle, plain, encrypted, context, text, error);
}

enum status bundle_note(char *text, struct bundle *bundle, const char *name, struct error *error)
{
    char context[BUNDLE_CONTEXT_MAX];
    sqlite3_stmt *row = NULL;
    enum status status =
        database_first(&row, bundle->database, error,
                       "SELECT text, encrypted FROM facts WHERE name = ?", "t", name);

    text[0] = '\0';
    if (status == STATUS_NOT_FOUND) {
        (void)error_set(error, STATUS_NOT_FOUND, "%s: no note '%s'", bundle->path, name);
    }
    if (status != STATUS_OK) {
        goto out;
    }
    (void)snprintf(context, sizeof(context), "journal/fact/%s", name);
    TRY_OUT(get_text(text, FILE_PATH_MAX, bundle, row, context, error));
out:
    database_done(bundle->database, row);
    return status;
}

static void device_context(char context[BUNDLE_CONTEXT_MAX], uint64_t device)
{
    (void)snprintf(context, BUNDLE_CONTEXT_MAX, "journal/device/%" PRIu64, device);
}

enum status bundle_device(char *name, struct bundle *bundle, uint64_t device, struct error *error)
{
    char context[BUNDLE_CONTEXT_MAX];
    sqlite3_stmt *row = NULL;
    enum status status =
        database_first(&row, bundle->database, error,
                       "SELECT name, encrypted FROM devices WHERE device = ?", "i", device);

    name[0] = '\0';
    if (status == STATUS_NOT_FOUND) {
        (void)error_set(error, STATUS_NOT_FOUND, "%s: no device %" PRIu64, bundle->path, device);
    }
    if (status != STATUS_OK) {
        goto out;
    }
    device_context(context, device);
    TRY_OUT(get_text(name, BUNDLE_DEVICE_MAX, bundle, row, context, error));
out:
    database_done(bundle->database, row);
    return status;
}

enum status bundle_set_device(struct bundle *bundle, const char *device, struct error *error)
{
    char name[BUNDLE_DEVICE_MAX];
    char known[BUNDLE_DEVICE_MAX];
    char plain[128];
    char encrypted[128];
    char context[BUNDLE_CONTEXT_MAX];
    uint64_t row = 0;
    enum status status;

    (void)snprintf(name, sizeof(name), "%s", device);
    while ((status = bundle_device(known, bundle, row, error)) == STATUS_OK) {
        /* A step has the row of its device, not its name: a name is a line of text, a step is some
         * bytes. */
        if (strcmp(known, name) == 0) {
            bundle->device = row;
            return STATUS_OK;
        }
        row++;
    }
    TRY(bundle_require_key(bundle, error));
    /* The list ends with STATUS_NOT_FOUND; any other end is a failure. */
    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    if (row >= BUNDLE_DEVICES_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "%s: more than %d devices", bundle->path,
                         BUNDLE_DEVICES_MAX);
    }
    (void)snprintf(plain, sizeof(plain), "INSERT INTO devices VALUES (%" PRIu64 ", ?, NULL)", row);
    (void)snprintf(encrypted, sizeof(encrypted),
                   "INSERT INTO devices VALUES (%" PRIu64 ", NULL, ?)", row);
    device_context(context, row);
    status = put_text(bundle, plain, encrypted, context, name, error);
    bundle->device = row;
    return status;
}
