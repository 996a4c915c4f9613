/* pack_journal.c - see pack_journal.h. */
#include "proofs/bundle/pack_journal.h"

#include <inttypes.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/bundle/bundle.h"
#include "proofs/hash/sha256.h"

/* Where the parts of the head stand. */
enum {
    MAGIC_VERSION = 7, /* the last byte of the magic */
    HEAD_JOB = 8,
    HEAD_ENCRYPTED = HEAD_JOB + DIGEST_SIZE,
    HEAD_STEPS = 41,
    HEAD_DIVERGED = 49,
    HEAD_DEVICES = 57,
    HEAD_SEGMENTS = 61
};
/* Where the parts of a signed segment stand: behind its number, of eight bytes. */
enum {
    SEGMENT_ROOT = 8,
    SEGMENT_SIGNATURE_SIZE = SEGMENT_ROOT + DIGEST_SIZE,
    SEGMENT_SIGNATURE = SEGMENT_SIGNATURE_SIZE + 2
};

static const uint8_t magic[8] = {'L', 'S', 'J', 'R', 'N', 'L', 0, 3};
#define WITHOUT_HASH 2 /* the last byte of an older one, which ends without a hash */

#define STEP_PLAIN     (DIGEST_SIZE + BUNDLE_STEP_BYTES)
#define STEP_ENCRYPTED (DIGEST_SIZE + BUNDLE_STEP_BOX)
#define DEVICE_BYTES   (BUNDLE_DEVICE_MAX - 1 + ENCRYPTION_BOX_EXTRA)

/* The counts in the fixed part. */
struct head {
    uint64_t steps;
    uint64_t diverged;
    uint32_t devices;
    uint64_t segments;
};

/* ---- rows as they lie --------------------------------------------------- */

static enum status count_rows(uint64_t *number, struct bundle *bundle, const char *query,
                              struct error *error)
{
    sqlite3_stmt *row = NULL;
    enum status status;

    TRY_OUT(database_first(&row, bundle->database, error, query, ""));
    TRY_OUT(journal_number(number, &bundle->journal, row, 0, INT64_MAX, error));
out:
    database_done(bundle->database, row);
    return status;
}

/* An encrypted value, unopened; query has one question mark for `number`. */
static enum status read_box(uint8_t *box, size_t *size, size_t size_max, struct bundle *bundle,
                            const char *query, uint64_t number, struct error *error)
{
    sqlite3_stmt *row = NULL;
    enum status status;

    TRY_OUT(database_first(&row, bundle->database, error, query, "i", number));
    TRY_OUT(
        journal_bytes(box, size, &bundle->journal, row, 0, ENCRYPTION_BOX_EXTRA, size_max, error));
out:
    database_done(bundle->database, row);
    return status == STATUS_NOT_FOUND
               ? error_set(error, STATUS_BAD_FORMAT, "%s: a row that was there is gone",
                           bundle->journal.path)
               : status;
}

static enum status read_device(uint8_t *bytes, size_t *size, struct bundle *bundle, uint64_t device,
                               struct error *error)
{
    char name[BUNDLE_DEVICE_MAX];
    enum status status;

    if (bundle->encrypted) {
        return read_box(bytes, size, DEVICE_BYTES, bundle,
                        "SELECT encrypted FROM devices WHERE device = ?", device, error);
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
    uint64_t devices;

    TRY(bundle_step_count(&head->steps, bundle, error));
    TRY(bundle_diverged(&head->diverged, bundle, error));
    TRY(count_rows(&devices, bundle, "SELECT count(*) FROM devices", error));
    if (devices > BUNDLE_DEVICES_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: %" PRIu64 " devices", bundle->journal.path,
                         devices);
    }
    head->devices = (uint32_t)devices;
    return count_rows(&head->segments, bundle, "SELECT count(*) FROM segments", error);
}

/* ---- writing ------------------------------------------------------------ */

/* Devices and segments are small: one pass counts the bytes, another writes them. */
struct pack_writer {
    struct archive_writer *archive; /* NULL: only the size grows */
    uint64_t size;
    struct sha256 hash; /* of all that was written */
};

static enum status put_bytes(struct pack_writer *packing, const void *bytes, size_t size,
                             struct error *error)
{
    packing->size += size;
    if (packing->archive == NULL) {
        return STATUS_OK;
    }
    sha256_add(&packing->hash, bytes, size);
    return archive_writer_add(packing->archive, error, bytes, size);
}

static enum status put_devices(struct pack_writer *packing, struct bundle *bundle, uint32_t count,
                               struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t bytes[2 + DEVICE_BYTES];
        size_t length;

        TRY(read_device(bytes + 2, &length, bundle, i, error));
        endian_store_be16(bytes, (uint16_t)length);
        TRY(put_bytes(packing, bytes, 2 + length, error));
    }
    return STATUS_OK;
}

static enum status put_segment(struct pack_writer *packing, struct bundle *bundle, uint64_t segment,
                               struct error *error)
{
    uint8_t bytes[SEGMENT_SIGNATURE + BUNDLE_SIGNATURE_MAX];
    struct digest root;
    size_t length;

    TRY(bundle_segment_signature(&root, bytes + SEGMENT_SIGNATURE, &length, bundle, segment,
                                 error));
    endian_store_be64(bytes, segment);
    memcpy(bytes + SEGMENT_ROOT, root.bytes, DIGEST_SIZE);
    endian_store_be16(bytes + SEGMENT_SIGNATURE_SIZE, (uint16_t)length);
    return put_bytes(packing, bytes, SEGMENT_SIGNATURE + length, error);
}

static enum status put_segments(struct pack_writer *packing, struct bundle *bundle, uint64_t count,
                                struct error *error)
{
    sqlite3_stmt *row = NULL;
    uint64_t least = 0;
    uint64_t seen = 0;
    enum status status;

    TRY_OUT(database_prepare(&row, bundle->database, error,
                             "SELECT segment FROM segments ORDER BY segment", ""));
    while ((status = database_step(bundle->database, row, error)) == STATUS_OK) {
        uint64_t segment;

        TRY_OUT(journal_number(&segment, &bundle->journal, row, 0, job_segments(bundle->job) - 1,
                               error));
        if (segment < least || seen == count) {
            status = error_set(error, STATUS_BAD_FORMAT, "%s: the segments are not in order",
                               bundle->journal.path);
            goto out;
        }
        TRY_OUT(put_segment(packing, bundle, segment, error));
        least = segment + 1;
        seen++;
    }
out:
    database_done(bundle->database, row);
    if (status == STATUS_NOT_FOUND && seen != count) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: segments are missing",
                         bundle->journal.path);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status put_steps(struct pack_writer *packing, struct bundle *bundle, uint64_t count,
                             struct error *error)
{
    for (uint64_t step = 0; step < count; step++) {
        uint8_t bytes[STEP_ENCRYPTED];
        struct bundle_step entry;
        size_t length = BUNDLE_STEP_BYTES;

        TRY(bundle_step_read(&entry, bundle, step, error));
        memcpy(bytes, entry.root.bytes, DIGEST_SIZE);
        if (bundle->encrypted) {
            TRY(read_box(bytes + DIGEST_SIZE, &length, BUNDLE_STEP_BOX, bundle,
                         "SELECT encrypted FROM steps WHERE step = ?", step, error));
        } else {
            bundle_step_pack(bytes + DIGEST_SIZE, &entry);
        }
        TRY(put_bytes(packing, bytes, DIGEST_SIZE + length, error));
    }
    return STATUS_OK;
}

enum status pack_journal_size(uint64_t *size, struct bundle *bundle, struct error *error)
{
    struct pack_writer packing = {.archive = NULL};
    struct head head;

    TRY(find_head(&head, bundle, error));
    packing.size = PACK_JOURNAL_HEAD + (bundle->encrypted ? PACK_KEY_BOX : 0) + DIGEST_SIZE;
    packing.size += head.steps * (bundle->encrypted ? STEP_ENCRYPTED : STEP_PLAIN);
    TRY(put_devices(&packing, bundle, head.devices, error));
    TRY(put_segments(&packing, bundle, head.segments, error));
    *size = packing.size;
    return STATUS_OK;
}

enum status pack_journal_write(struct archive_writer *archive, struct bundle *bundle,
                               struct error *error)
{
    uint8_t bytes[PACK_JOURNAL_HEAD + PACK_KEY_BOX];
    struct head head;
    struct pack_writer packing = {.archive = archive};
    struct digest digest;
    size_t box_size = 0;

    sha256_init(&packing.hash, SHA256_ISA_BEST);
    TRY(find_head(&head, bundle, error));
    memcpy(bytes, magic, sizeof(magic));
    memcpy(bytes + HEAD_JOB, bundle->job->id.bytes, DIGEST_SIZE);
    bytes[HEAD_ENCRYPTED] = bundle->encrypted;
    endian_store_be64(bytes + HEAD_STEPS, head.steps);
    endian_store_be64(bytes + HEAD_DIVERGED, head.diverged);
    endian_store_be32(bytes + HEAD_DEVICES, head.devices);
    endian_store_be64(bytes + HEAD_SEGMENTS, head.segments);
    if (bundle->encrypted) {
        TRY(read_box(bytes + PACK_JOURNAL_HEAD, &box_size, PACK_KEY_BOX, bundle,
                     "SELECT encrypted FROM facts WHERE name = 'encrypted' AND value = ?", 1,
                     error));
    }
    TRY(put_bytes(&packing, bytes, PACK_JOURNAL_HEAD + box_size, error));
    TRY(put_devices(&packing, bundle, head.devices, error));
    TRY(put_steps(&packing, bundle, head.steps, error));
    TRY(put_segments(&packing, bundle, head.segments, error));
    sha256_end(&packing.hash, &digest);
    return archive_writer_add(archive, error, digest.bytes, DIGEST_SIZE);
}

/* ---- reading ------------------------------------------------------------ */

/* The unread part of the archive's entry. */
struct packed_journal {
    struct archive_reader *archive;
    uint64_t left;
    bool has_hash;
    struct sha256 hash; /* of all that was read */
};

static enum status get_bytes(struct packed_journal *packed, void *bytes, size_t size,
                             struct error *error)
{
    if (size > packed->left) {
        return error_set(error, STATUS_BAD_FORMAT, "the journal in the archive ends early");
    }
    packed->left -= size;
    TRY(archive_reader_read(packed->archive, error, bytes, size));
    sha256_add(&packed->hash, bytes, size);
    return STATUS_OK;
}

static enum status bad_journal(struct error *error, const char *what)
{
    return error_set(error, STATUS_BAD_FORMAT, "the journal in the archive: %s", what);
}

static enum status get_head(struct head *head, struct bundle *bundle, struct packed_journal *packed,
                            struct error *error)
{
    const struct job *job = bundle->job;
    uint8_t bytes[PACK_JOURNAL_HEAD];

    TRY(get_bytes(packed, bytes, sizeof(bytes), error));
    head->steps = endian_load_be64(bytes + HEAD_STEPS);
    head->diverged = endian_load_be64(bytes + HEAD_DIVERGED);
    head->devices = endian_load_be32(bytes + HEAD_DEVICES);
    head->segments = endian_load_be64(bytes + HEAD_SEGMENTS);
    packed->has_hash = bytes[MAGIC_VERSION] != WITHOUT_HASH;
    if (memcmp(bytes, magic, sizeof(magic) - 1) != 0 ||
        (packed->has_hash && bytes[MAGIC_VERSION] != magic[MAGIC_VERSION]) ||
        bytes[HEAD_ENCRYPTED] > 1) {
        return bad_journal(error, "is not one");
    }
    if (memcmp(bytes + HEAD_JOB, job->id.bytes, DIGEST_SIZE) != 0) {
        return bad_journal(error, "belongs to another job");
    }
    if (head->steps > job->steps || head->segments > job_segments(job) ||
        head->devices > BUNDLE_DEVICES_MAX) {
        return bad_journal(error, "holds more than the job has");
    }
    if (head->diverged != UINT64_MAX && head->diverged + 1 != head->steps) {
        return bad_journal(error, "goes on after the step that diverged");
    }
    bundle->encrypted = bytes[HEAD_ENCRYPTED] == 1;
    return STATUS_OK;
}

static enum status get_key(struct bundle *bundle, struct packed_journal *packed,
                           struct error *error)
{
    uint8_t box[PACK_KEY_BOX];
    const struct database_blob blob = {box, sizeof(box)};

    TRY(get_bytes(packed, box, sizeof(box), error));
    return database_run(bundle->database, error,
                        "INSERT INTO facts VALUES ('encrypted', 1, NULL, ?)", "b", &blob);
}

static bool is_plain_name(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] < ' ' || bytes[i] > '~') {
            return false;
        }
    }
    return true;
}

static enum status get_device(struct bundle *bundle, struct packed_journal *packed, uint64_t device,
                              struct error *error)
{
    uint8_t length[2];
    uint8_t bytes[DEVICE_BYTES + 1];
    struct database_blob blob = {.bytes = bytes};

    TRY(get_bytes(packed, length, sizeof(length), error));
    blob.size = endian_load_be16(length);
    if (bundle->encrypted ? blob.size < ENCRYPTION_BOX_EXTRA || blob.size > DEVICE_BYTES
                          : blob.size >= BUNDLE_DEVICE_MAX) {
        return bad_journal(error, "the name of a device has no such size");
    }
    TRY(get_bytes(packed, bytes, blob.size, error));
    if (bundle->encrypted) {
        return database_run(bundle->database, error, "INSERT INTO devices VALUES (?, NULL, ?)",
                            "ib", device, &blob);
    }
    if (!is_plain_name(bytes, blob.size)) {
        return bad_journal(error, "the name of a device is not plain");
    }
    bytes[blob.size] = '\0';
    return database_run(bundle->database, error, "INSERT INTO devices VALUES (?, ?, NULL)", "it",
                        device, (const char *)bytes);
}

static enum status get_step(struct bundle *bundle, struct packed_journal *packed, uint64_t step,
                            uint32_t devices, struct error *error)
{
    uint8_t bytes[STEP_ENCRYPTED];
    struct bundle_step entry = {.step = step};

    TRY(get_bytes(packed, bytes, bundle->encrypted ? STEP_ENCRYPTED : STEP_PLAIN, error));
    memcpy(entry.root.bytes, bytes, DIGEST_SIZE);
    if (bundle->encrypted) {
        return bundle_step_insert(bundle, &entry, bytes + DIGEST_SIZE, error);
    }
    bundle_step_unpack(&entry, bytes + DIGEST_SIZE);
    if (entry.nanoseconds > INT64_MAX || entry.nanoseconds_committing > INT64_MAX ||
        entry.microjoules > INT64_MAX || entry.device >= devices ||
        (!entry.evaluated && entry.accuracy_bits != FLOAT_NAN_BITS)) {
        return bad_journal(error, "a step's time, energy, device or accuracy is impossible");
    }
    return bundle_step_insert(bundle, &entry, NULL, error);
}

static enum status get_segment(struct bundle *bundle, struct packed_journal *packed,
                               uint64_t *least, struct error *error)
{
    uint8_t bytes[SEGMENT_SIGNATURE];
    uint8_t signature[BUNDLE_SIGNATURE_MAX];
    struct digest root;
    uint64_t segment;
    size_t size;

    TRY(get_bytes(packed, bytes, sizeof(bytes), error));
    segment = endian_load_be64(bytes);
    size = endian_load_be16(bytes + SEGMENT_SIGNATURE_SIZE);
    if (segment < *least || segment >= job_segments(bundle->job) || size == 0 ||
        size > sizeof(signature)) {
        return bad_journal(error, "its segments do not rise, or have no signature");
    }
    *least = segment + 1;
    TRY(get_bytes(packed, signature, size, error));
    TRY(bundle_segment_root(&root, bundle, segment, error));
    if (memcmp(root.bytes, bytes + SEGMENT_ROOT, DIGEST_SIZE) != 0) {
        return bad_journal(error, "the root of a segment is not that of its steps");
    }
    return bundle_segment_sign(bundle, segment, signature, size, error);
}

/* A bit that flipped on the way may stand in what no root covers. */
static enum status get_hash(struct packed_journal *packed, struct error *error)
{
    struct digest wanted;
    struct digest found;

    if (!packed->has_hash) {
        return STATUS_OK;
    }
    sha256_end(&packed->hash, &wanted);
    TRY(get_bytes(packed, found.bytes, DIGEST_SIZE, error));
    return digest_equal(&wanted, &found)
               ? STATUS_OK
               : bad_journal(error, "is not as it was exported: a bit of it changed; get it again");
}

enum status pack_journal_read(struct bundle *bundle, struct archive_reader *archive, uint64_t size,
                              struct error *error)
{
    struct packed_journal packed = {.archive = archive, .left = size};
    struct head head;
    uint64_t least = 0;

    sha256_init(&packed.hash, SHA256_ISA_BEST);
    TRY(get_head(&head, bundle, &packed, error));
    TRY(database_begin(bundle->database, error));
    if (bundle->encrypted) {
        TRY(get_key(bundle, &packed, error));
    }
    for (uint32_t i = 0; i < head.devices; i++) {
        TRY(get_device(bundle, &packed, i, error));
    }
    for (uint64_t step = 0; step < head.steps; step++) {
        TRY(get_step(bundle, &packed, step, head.devices, error));
    }
    TRY(bundle_flush(bundle, error));
    if (head.diverged != UINT64_MAX) {
        TRY(bundle_set_diverged(bundle, head.diverged, error));
    }
    for (uint64_t i = 0; i < head.segments; i++) {
        TRY(get_segment(bundle, &packed, &least, error));
    }
    TRY(get_hash(&packed, error));
    return packed.left == 0 ? STATUS_OK : bad_journal(error, "bytes follow its end");
}
