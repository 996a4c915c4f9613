/* pack_journal.c - see pack_parts.h. */
#include <inttypes.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/bundle/pack_parts.h"

static const uint8_t magic[8] = {'L', 'S', 'J', 'R', 'N', 'L', 0, 1};

#define STEP_PLAIN   (DIGEST_SIZE + BUNDLE_STEP_BYTES)
#define STEP_SEALED  (DIGEST_SIZE + BUNDLE_STEP_BOX)
#define DEVICE_BYTES (BUNDLE_DEVICE_MAX - 1 + ENCRYPTION_BOX_EXTRA)

/* The fixed part. */
struct head {
    uint64_t steps;
    uint64_t diverged;
    uint32_t devices;
    uint64_t segments;
};

/* ---- rows as they lie --------------------------------------------------- */

static enum status query(uint64_t *number, struct bundle *bundle, const char *sql,
                         struct error *error)
{
    sqlite3_stmt *statement = NULL;
    enum status status = journal_prepare(&statement, &bundle->journal, error, sql, "");

    if (status == STATUS_OK) {
        status = journal_next(&bundle->journal, statement, error);
    }
    if (status == STATUS_OK) {
        status = journal_number(number, &bundle->journal, statement, 0, INT64_MAX, error);
    }
    (void)sqlite3_finalize(statement);
    return status;
}

/* A sealed value as it lies; sql has one question mark for `number`. */
static enum status read_box(uint8_t *box, size_t *size, size_t size_max, struct bundle *bundle,
                            const char *sql, uint64_t number, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    enum status status = journal_prepare(&statement, &bundle->journal, error, sql, "i", number);

    if (status == STATUS_OK) {
        status = journal_next(&bundle->journal, statement, error);
    }
    if (status == STATUS_NOT_FOUND) {
        status = error_set(error, STATUS_BAD_FORMAT, "%s: a row that was there is gone",
                           bundle->journal.path);
    }
    if (status == STATUS_OK) {
        status = journal_bytes(box, size, &bundle->journal, statement, 0, ENCRYPTION_BOX_EXTRA,
                               size_max, error);
    }
    (void)sqlite3_finalize(statement);
    return status;
}

static enum status read_device(uint8_t *bytes, size_t *size, struct bundle *bundle, uint64_t device,
                               struct error *error)
{
    char name[BUNDLE_DEVICE_MAX];
    enum status status;

    if (bundle->sealed) {
        return read_box(bytes, size, DEVICE_BYTES, bundle,
                        "SELECT sealed FROM devices WHERE device = ?", device, error);
    }
    status = bundle_device(name, bundle, device, error);
    *size = strlen(name);
    memcpy(bytes, name, *size);
    return status == STATUS_NOT_FOUND
               ? error_set(error, STATUS_BAD_FORMAT, "%s: the devices are not in order",
                           bundle->journal.path)
               : status;
}

static enum status find_head(struct head *head, struct bundle *bundle, struct error *error)
{
    uint64_t devices = 0;
    enum status status = bundle_step_count(&head->steps, bundle, error);

    if (status == STATUS_OK) {
        status = bundle_diverged(&head->diverged, bundle, error);
    }
    if (status == STATUS_OK) {
        status = query(&devices, bundle, "SELECT count(*) FROM devices", error);
    }
    if (status == STATUS_OK && devices > BUNDLE_DEVICES_MAX) {
        status = error_set(error, STATUS_BAD_FORMAT, "%s: %" PRIu64 " devices",
                           bundle->journal.path, devices);
    }
    if (status == STATUS_OK) {
        status = query(&head->segments, bundle, "SELECT count(*) FROM segments", error);
    }
    head->devices = (uint32_t)devices;
    return status;
}

/* ---- writing ------------------------------------------------------------ */

/* Devices and segments are small: they are gone through once for the size, once for the bytes.
 * archive NULL: only *size grows. */
static enum status put(struct archive_writer *archive, uint64_t *size, const void *bytes,
                       size_t bytes_size, struct error *error)
{
    *size += bytes_size;
    return archive == NULL ? STATUS_OK : archive_writer_add(archive, error, bytes, bytes_size);
}

static enum status put_devices(struct archive_writer *archive, uint64_t *size,
                               struct bundle *bundle, uint32_t count, struct error *error)
{
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        uint8_t bytes[2 + DEVICE_BYTES];
        size_t length = 0;

        status = read_device(bytes + 2, &length, bundle, i, error);
        endian_store_be16(bytes, (uint16_t)length);
        if (status == STATUS_OK) {
            status = put(archive, size, bytes, 2 + length, error);
        }
    }
    return status;
}

static enum status put_segment(struct archive_writer *archive, uint64_t *size,
                               struct bundle *bundle, uint64_t segment, struct error *error)
{
    uint8_t bytes[8 + DIGEST_SIZE + 2 + BUNDLE_SIGNATURE_MAX];
    struct digest root;
    size_t length = 0;
    enum status status = bundle_segment_signature(&root, bytes + 8 + DIGEST_SIZE + 2, &length,
                                                  bundle, segment, error);

    if (status != STATUS_OK) {
        return status;
    }
    endian_store_be64(bytes, segment);
    memcpy(bytes + 8, root.bytes, DIGEST_SIZE);
    endian_store_be16(bytes + 8 + DIGEST_SIZE, (uint16_t)length);
    return put(archive, size, bytes, 8 + DIGEST_SIZE + 2 + length, error);
}

static enum status put_segments(struct archive_writer *archive, uint64_t *size,
                                struct bundle *bundle, uint64_t count, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    uint64_t least = 0;
    uint64_t seen = 0;
    enum status status = journal_prepare(&statement, &bundle->journal, error,
                                         "SELECT segment FROM segments ORDER BY segment", "");

    while (status == STATUS_OK) {
        uint64_t segment = 0;

        status = journal_next(&bundle->journal, statement, error);
        if (status == STATUS_OK) {
            status = journal_number(&segment, &bundle->journal, statement, 0,
                                    job_segments(bundle->job) - 1, error);
        }
        if (status == STATUS_OK && (segment < least || seen == count)) {
            status = error_set(error, STATUS_BAD_FORMAT, "%s: the segments are not in order",
                               bundle->journal.path);
        }
        if (status == STATUS_OK) {
            status = put_segment(archive, size, bundle, segment, error);
            least = segment + 1;
            seen++;
        }
    }
    (void)sqlite3_finalize(statement);
    if (status == STATUS_NOT_FOUND && seen != count) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: segments are missing",
                         bundle->journal.path);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status put_steps(struct archive_writer *archive, struct bundle *bundle, uint64_t count,
                             struct error *error)
{
    enum status status = STATUS_OK;

    for (uint64_t step = 0; step < count && status == STATUS_OK; step++) {
        uint8_t bytes[STEP_SEALED];
        struct bundle_step entry;
        size_t length = BUNDLE_STEP_BYTES;

        status = bundle_step_read(&entry, bundle, step, error);
        memcpy(bytes, entry.root.bytes, DIGEST_SIZE);
        if (status == STATUS_OK && bundle->sealed) {
            status = read_box(bytes + DIGEST_SIZE, &length, BUNDLE_STEP_BOX, bundle,
                              "SELECT sealed FROM steps WHERE step = ?", step, error);
        } else {
            bundle_step_pack(bytes + DIGEST_SIZE, &entry);
        }
        if (status == STATUS_OK) {
            status = archive_writer_add(archive, error, bytes, DIGEST_SIZE + length);
        }
    }
    return status;
}

enum status pack_journal_size(uint64_t *size, struct bundle *bundle, struct error *error)
{
    struct head head;
    enum status status = find_head(&head, bundle, error);

    *size = PACK_JOURNAL_HEAD + (bundle->sealed ? PACK_KEY_BOX : 0);
    if (status == STATUS_OK) {
        *size += head.steps * (bundle->sealed ? STEP_SEALED : STEP_PLAIN);
        status = put_devices(NULL, size, bundle, head.devices, error);
    }
    return status == STATUS_OK ? put_segments(NULL, size, bundle, head.segments, error) : status;
}

enum status pack_journal_write(struct archive_writer *archive, struct bundle *bundle,
                               struct error *error)
{
    uint8_t bytes[PACK_JOURNAL_HEAD + PACK_KEY_BOX];
    struct head head;
    size_t box_size = 0;
    uint64_t size = 0;
    enum status status = find_head(&head, bundle, error);

    memcpy(bytes, magic, sizeof(magic));
    memcpy(bytes + 8, bundle->job->id.bytes, DIGEST_SIZE);
    bytes[40] = bundle->sealed;
    endian_store_be64(bytes + 41, head.steps);
    endian_store_be64(bytes + 49, head.diverged);
    endian_store_be32(bytes + 57, head.devices);
    endian_store_be64(bytes + 61, head.segments);
    if (status == STATUS_OK && bundle->sealed) {
        status = read_box(bytes + PACK_JOURNAL_HEAD, &box_size, PACK_KEY_BOX, bundle,
                          "SELECT sealed FROM facts WHERE name = 'sealed' AND value = ?", 1, error);
    }
    if (status == STATUS_OK) {
        status = archive_writer_add(archive, error, bytes, PACK_JOURNAL_HEAD + box_size);
    }
    if (status == STATUS_OK) {
        status = put_devices(archive, &size, bundle, head.devices, error);
    }
    if (status == STATUS_OK) {
        status = put_steps(archive, bundle, head.steps, error);
    }
    return status == STATUS_OK ? put_segments(archive, &size, bundle, head.segments, error)
                               : status;
}

/* ---- reading ------------------------------------------------------------ */

struct source {
    struct archive_reader *archive;
    uint64_t left;
};

static enum status get(struct source *source, void *bytes, size_t size, struct error *error)
{
    if (size > source->left) {
        return error_set(error, STATUS_BAD_FORMAT, "the journal in the archive ends early");
    }
    source->left -= size;
    return archive_reader_read(source->archive, error, bytes, size);
}

static enum status bad(struct error *error, const char *what)
{
    return error_set(error, STATUS_BAD_FORMAT, "the journal in the archive: %s", what);
}

static enum status get_head(struct head *head, struct bundle *bundle, struct source *source,
                            struct error *error)
{
    const struct job *job = bundle->job;
    uint8_t bytes[PACK_JOURNAL_HEAD];
    enum status status = get(source, bytes, sizeof(bytes), error);

    if (status != STATUS_OK) {
        return status;
    }
    head->steps = endian_load_be64(bytes + 41);
    head->diverged = endian_load_be64(bytes + 49);
    head->devices = endian_load_be32(bytes + 57);
    head->segments = endian_load_be64(bytes + 61);
    if (memcmp(bytes, magic, sizeof(magic)) != 0 || bytes[40] > 1) {
        return bad(error, "is not one");
    }
    if (memcmp(bytes + 8, job->id.bytes, DIGEST_SIZE) != 0) {
        return bad(error, "belongs to another job");
    }
    if (head->steps > job->steps || head->segments > job_segments(job) ||
        head->devices > BUNDLE_DEVICES_MAX) {
        return bad(error, "holds more than the job has");
    }
    if (head->diverged != UINT64_MAX && head->diverged + 1 != head->steps) {
        return bad(error, "goes on after the step that diverged");
    }
    bundle->sealed = bytes[40] == 1;
    return STATUS_OK;
}

static enum status get_key(struct bundle *bundle, struct source *source, struct error *error)
{
    uint8_t box[PACK_KEY_BOX];
    sqlite3_stmt *statement = NULL;
    enum status status = get(source, box, sizeof(box), error);

    if (status == STATUS_OK) {
        status = journal_prepare(&statement, &bundle->journal, error,
                                 "INSERT INTO facts VALUES ('sealed', 1, NULL, ?)", "b", box,
                                 sizeof(box));
    }
    return status == STATUS_OK ? journal_finish(&bundle->journal, statement, error) : status;
}

static enum status get_device(struct bundle *bundle, struct source *source, uint64_t device,
                              struct error *error)
{
    uint8_t length[2];
    uint8_t bytes[DEVICE_BYTES + 1];
    sqlite3_stmt *statement = NULL;
    size_t size = 0;
    enum status status = get(source, length, sizeof(length), error);

    if (status == STATUS_OK) {
        size = endian_load_be16(length);
        if (bundle->sealed ? size < ENCRYPTION_BOX_EXTRA || size > DEVICE_BYTES
                           : size >= BUNDLE_DEVICE_MAX) {
            return bad(error, "the name of a device has no such size");
        }
        status = get(source, bytes, size, error);
    }
    bytes[size] = '\0';
    for (size_t i = 0; !bundle->sealed && status == STATUS_OK && i < size; i++) {
        if (bytes[i] < ' ' || bytes[i] > '~') {
            return bad(error, "the name of a device is not plain");
        }
    }
    if (status == STATUS_OK) {
        status = bundle->sealed ? journal_prepare(&statement, &bundle->journal, error,
                                                  "INSERT INTO devices VALUES (?, NULL, ?)", "ib",
                                                  device, bytes, size)
                                : journal_prepare(&statement, &bundle->journal, error,
                                                  "INSERT INTO devices VALUES (?, ?, NULL)", "it",
                                                  device, (const char *)bytes);
    }
    return status == STATUS_OK ? journal_finish(&bundle->journal, statement, error) : status;
}

static enum status get_step(struct bundle *bundle, struct source *source, uint64_t step,
                            uint32_t devices, struct error *error)
{
    uint8_t bytes[STEP_SEALED];
    struct bundle_step entry = {.step = step};
    enum status status = get(source, bytes, bundle->sealed ? STEP_SEALED : STEP_PLAIN, error);

    if (status != STATUS_OK) {
        return status;
    }
    memcpy(entry.root.bytes, bytes, DIGEST_SIZE);
    if (bundle->sealed) {
        return bundle_step_insert(bundle, &entry, bytes + DIGEST_SIZE, error);
    }
    bundle_step_unpack(&entry, bytes + DIGEST_SIZE);
    if (entry.nanoseconds > INT64_MAX || entry.nanoseconds_committing > INT64_MAX ||
        entry.microjoules > INT64_MAX || entry.device >= devices) {
        return bad(error, "a step's time, energy or device is impossible");
    }
    return bundle_step_insert(bundle, &entry, NULL, error);
}

static enum status get_segment(struct bundle *bundle, struct source *source, uint64_t *least,
                               struct error *error)
{
    uint8_t bytes[8 + DIGEST_SIZE + 2];
    uint8_t signature[BUNDLE_SIGNATURE_MAX];
    struct digest root;
    uint64_t segment;
    size_t size;
    enum status status = get(source, bytes, sizeof(bytes), error);

    if (status != STATUS_OK) {
        return status;
    }
    segment = endian_load_be64(bytes);
    size = endian_load_be16(bytes + 8 + DIGEST_SIZE);
    if (segment < *least || segment >= job_segments(bundle->job) || size == 0 ||
        size > sizeof(signature)) {
        return bad(error, "its segments do not rise, or have no signature");
    }
    *least = segment + 1;
    status = get(source, signature, size, error);
    if (status == STATUS_OK) {
        status = bundle_segment_root(&root, bundle, segment, error);
    }
    if (status == STATUS_OK && memcmp(root.bytes, bytes + 8, DIGEST_SIZE) != 0) {
        return bad(error, "the root of a segment is not that of its steps");
    }
    return status == STATUS_OK ? bundle_segment_sign(bundle, segment, signature, size, error)
                               : status;
}

static enum status set_diverged(struct bundle *bundle, uint64_t step, struct error *error)
{
    return step == UINT64_MAX ? STATUS_OK : bundle_set_diverged(bundle, step, error);
}

enum status pack_journal_read(struct bundle *bundle, struct archive_reader *archive, uint64_t size,
                              struct error *error)
{
    struct source source = {archive, size};
    struct head head;
    uint64_t least = 0;
    enum status status = get_head(&head, bundle, &source, error);

    if (status == STATUS_OK) {
        status = journal_run(&bundle->journal, "BEGIN IMMEDIATE", error);
    }
    if (status == STATUS_OK && bundle->sealed) {
        status = get_key(bundle, &source, error);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < head.devices; i++) {
        status = get_device(bundle, &source, i, error);
    }
    for (uint64_t step = 0; status == STATUS_OK && step < head.steps; step++) {
        status = get_step(bundle, &source, step, head.devices, error);
    }
    if (status == STATUS_OK) {
        status = bundle_flush(bundle, error);
    }
    if (status == STATUS_OK) {
        status = set_diverged(bundle, head.diverged, error);
    }
    for (uint64_t i = 0; status == STATUS_OK && i < head.segments; i++) {
        status = get_segment(bundle, &source, &least, error);
    }
    if (status == STATUS_OK && source.left != 0) {
        status = bad(error, "bytes follow its end");
    }
    return status;
}
