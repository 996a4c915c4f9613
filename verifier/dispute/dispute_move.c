/* dispute_move.c - see dispute_move.h. */
#include "verifier/dispute/dispute_move.h"

#include <string.h>

#include "chain/game/game.h"

#define MOVE_HEAD_SIZE (32 + 1 + JOB_HEADER_SIZE + 2 * DIGEST_SIZE)

static const char move_tag[32] = "lockstep.move.v2";

_Static_assert(DISPUTE_PATH_MAX == MERKLE_DEPTH_MAX, "every path fits");
_Static_assert(JOB_HEADER_SIZE == GAME_JOB_HEADER_SIZE, "a job's header is shown to the referee");
_Static_assert(DISPUTE_MOVE_MAX >
                   MOVE_HEAD_SIZE + 2 * (1 + DISPUTE_PATH_MAX * DIGEST_SIZE) + GAME_PAYLOAD_MAX,
               "every move fits");

/* The file of a move: tag (32), kind (1), header (216), states (32 each), paths, payload. */

static void write_path(struct buffer *bytes, const struct merkle_path *path)
{
    buffer_add_u8(bytes, (uint8_t)path->sibling_count);
    buffer_add(bytes, path->siblings, path->sibling_count * DIGEST_SIZE);
}

void dispute_move_write(struct buffer *bytes, const struct dispute_move *move)
{
    buffer_add(bytes, move_tag, sizeof(move_tag));
    buffer_add_u8(bytes, (uint8_t)move->kind);
    buffer_add(bytes, move->job_header, sizeof(move->job_header));
    buffer_add(bytes, move->pre_state.bytes, DIGEST_SIZE);
    buffer_add(bytes, move->post_state.bytes, DIGEST_SIZE);
    write_path(bytes, &move->pre_path);
    write_path(bytes, &move->post_path);
    buffer_add(bytes, move->payload, move->payload_size);
}

/* False: the bytes end early. */
static bool read_path(struct merkle_path *path, const uint8_t **at, size_t *left)
{
    memset(path, 0, sizeof(*path));
    if (*left < 1 || (*at)[0] > DISPUTE_PATH_MAX || *left - 1 < (size_t)(*at)[0] * DIGEST_SIZE) {
        return false;
    }
    path->sibling_count = (*at)[0];
    memcpy(path->siblings, *at + 1, path->sibling_count * DIGEST_SIZE);
    *left -= 1 + path->sibling_count * DIGEST_SIZE;
    *at += 1 + path->sibling_count * DIGEST_SIZE;
    return true;
}

enum status dispute_move_read(struct dispute_move *move, const uint8_t *bytes, size_t size,
                              struct error *error)
{
    const uint8_t *at = bytes;
    size_t left = size;
    bool good = size > MOVE_HEAD_SIZE && memcmp(bytes, move_tag, sizeof(move_tag)) == 0 &&
                bytes[32] >= DISPUTE_QUERY && bytes[32] <= DISPUTE_REPLY;

    memset(move, 0, sizeof(*move));
    if (good) {
        move->kind = (enum dispute_kind)bytes[32];
        memcpy(move->job_header, bytes + 33, JOB_HEADER_SIZE);
        memcpy(move->pre_state.bytes, bytes + MOVE_HEAD_SIZE - 2 * DIGEST_SIZE, DIGEST_SIZE);
        memcpy(move->post_state.bytes, bytes + MOVE_HEAD_SIZE - DIGEST_SIZE, DIGEST_SIZE);
        at += MOVE_HEAD_SIZE;
        left -= MOVE_HEAD_SIZE;
        good = read_path(&move->pre_path, &at, &left) && read_path(&move->post_path, &at, &left) &&
               left <= GAME_PAYLOAD_MAX && (left == 0) == (move->kind == DISPUTE_NO_FAULT);
    }
    move->payload = at;
    move->payload_size = left;
    return good ? STATUS_OK : error_set(error, STATUS_BAD_FORMAT, "the file is no move");
}

enum status dispute_move_load(struct dispute_move *move, struct file_bytes *bytes, const char *path,
                              struct error *error)
{
    TRY(file_read(bytes, error, path, DISPUTE_MOVE_MAX));
    return dispute_move_read(move, bytes->data, bytes->size, error);
}
