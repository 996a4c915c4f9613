/* dispute.c - see dispute.h. */
#include "verifier/dispute/dispute.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/reader.h"

#define SAVED_SIZE_MAX 1024

static const char saved_tag[32] = "lockstep.dispute.v2";

enum status dispute_path(char path[FILE_PATH_MAX], const struct dispute *dispute, const char *name,
                         struct error *error)
{
    return file_path_join(path, FILE_PATH_MAX, error, dispute->folder, name);
}

void dispute_move_name(char name[DISPUTE_NAME_MAX], uint32_t turn, uint32_t attempt)
{
    if (attempt == 0) {
        (void)snprintf(name, DISPUTE_NAME_MAX, "move-%" PRIu32, turn);
    } else {
        (void)snprintf(name, DISPUTE_NAME_MAX, "move-%" PRIu32 "-%" PRIu32, turn, attempt);
    }
}

/*
 * Saved: tag (32), claim (32), step (4), trace root (32), turn (4), attempt (4), acquitted (4),
 * move_max (4).
 */
enum status dispute_save(const struct dispute *dispute, struct error *error)
{
    char path[FILE_PATH_MAX];
    struct buffer bytes;
    enum status status;

    buffer_init(&bytes, SAVED_SIZE_MAX);
    buffer_add(&bytes, saved_tag, sizeof(saved_tag));
    buffer_add(&bytes, dispute->claim.bytes, HASH32_SIZE);
    buffer_add_u32(&bytes, dispute->step);
    buffer_add(&bytes, dispute->trace_root.bytes, DIGEST_SIZE);
    buffer_add_u32(&bytes, dispute->turn);
    buffer_add_u32(&bytes, dispute->attempt);
    buffer_add_u32(&bytes, dispute->acquitted);
    buffer_add_u32(&bytes, dispute->move_max);
    TRY_OUT(buffer_check(&bytes, error, "a dispute"));
    TRY_OUT(file_make_folder(dispute->folder, error, 0700));
    TRY_OUT(dispute_path(path, dispute, DISPUTE_FILE, error));
    status = file_write(path, error, bytes.data, bytes.size, 0600);
out:
    buffer_release(&bytes);
    return status;
}

static enum status read_saved(struct dispute *dispute, const struct file_bytes *bytes,
                              struct error *error)
{
    char tag[sizeof(saved_tag)];
    struct reader reader;

    reader_init(&reader, bytes->data, bytes->size);
    reader_copy(&reader, tag, sizeof(tag));
    reader_copy(&reader, dispute->claim.bytes, HASH32_SIZE);
    dispute->step = reader_u32(&reader);
    reader_copy(&reader, dispute->trace_root.bytes, DIGEST_SIZE);
    dispute->turn = reader_u32(&reader);
    dispute->attempt = reader_u32(&reader);
    dispute->acquitted = reader_u32(&reader);
    dispute->move_max = reader_u32(&reader);
    if (reader.failed || memcmp(tag, saved_tag, sizeof(tag)) != 0 ||
        dispute->move_max > GAME_PAYLOAD_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "the file is no dispute");
    }
    return reader_end(&reader, error, "dispute");
}

enum status dispute_load(struct dispute *dispute, const char *folder, struct error *error)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];
    enum status status;

    memset(dispute, 0, sizeof(*dispute));
    dispute->ours = true;
    (void)snprintf(dispute->folder, sizeof(dispute->folder), "%s", folder);
    TRY(dispute_path(path, dispute, DISPUTE_FILE, error));
    TRY(file_read(&bytes, error, path, SAVED_SIZE_MAX));
    status = read_saved(dispute, &bytes, error);
    file_bytes_release(&bytes);
    return status;
}

static enum status read_said(struct file_bytes *bytes, const struct dispute *dispute,
                             const char *name, size_t size_max, struct error *error)
{
    char path[FILE_PATH_MAX];
    enum status status;

    TRY(dispute_path(path, dispute, name, error));
    status = file_read(bytes, error, path, size_max);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status dispute_last_said(struct file_bytes *queried, struct file_bytes *reply,
                              const struct dispute *dispute, struct error *error)
{
    memset(queried, 0, sizeof(*queried));
    memset(reply, 0, sizeof(*reply));
    if (dispute->folder[0] == '\0') {
        return STATUS_OK;
    }
    TRY(read_said(queried, dispute, DISPUTE_FILE_QUERIED, GAME_QUERIED_MAX, error));
    return read_said(reply, dispute, DISPUTE_FILE_REPLY, GAME_REPLY_MAX, error);
}

enum status dispute_batch_root(struct digest *root, const struct dispute *dispute,
                               struct error *error)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];
    enum status status;

    memset(root, 0, sizeof(*root));
    if (dispute->folder[0] == '\0') {
        return STATUS_OK;
    }
    TRY(dispute_path(path, dispute, DISPUTE_FILE_BATCH, error));
    status = file_read(&bytes, error, path, DIGEST_SIZE);
    if (status == STATUS_OK && bytes.size == DIGEST_SIZE) {
        memcpy(root->bytes, bytes.data, DIGEST_SIZE);
    }
    file_bytes_release(&bytes);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
