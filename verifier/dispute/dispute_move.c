/* dispute_move.c - see dispute_move.h. */
#include "verifier/dispute/dispute_move.h"

#include <string.h>

#include "chain/game/game.h"

static const char move_tag[32] = "lockstep.move.v3";

#define MOVE_HEAD_SIZE (sizeof(move_tag) + 1)

_Static_assert(DISPUTE_MOVE_MAX > MOVE_HEAD_SIZE + GAME_PAYLOAD_MAX, "every move fits");

/* The file of a move: tag (32), kind (1), payload. */
void dispute_move_write(struct buffer *bytes, const struct dispute_move *move)
{
    buffer_add(bytes, move_tag, sizeof(move_tag));
    buffer_add_u8(bytes, (uint8_t)move->kind);
    buffer_add(bytes, move->payload, move->payload_size);
}

enum status dispute_move_read(struct dispute_move *move, const uint8_t *bytes, size_t size,
                              struct error *error)
{
    memset(move, 0, sizeof(*move));
    if (size < MOVE_HEAD_SIZE || memcmp(bytes, move_tag, sizeof(move_tag)) != 0 ||
        bytes[sizeof(move_tag)] < DISPUTE_QUERY || bytes[sizeof(move_tag)] > DISPUTE_NO_FAULT ||
        size - MOVE_HEAD_SIZE > GAME_PAYLOAD_MAX ||
        (size == MOVE_HEAD_SIZE) != (bytes[sizeof(move_tag)] == DISPUTE_NO_FAULT)) {
        return error_set(error, STATUS_BAD_FORMAT, "the file is no move");
    }
    move->kind = (enum dispute_kind)bytes[sizeof(move_tag)];
    move->payload = bytes + MOVE_HEAD_SIZE;
    move->payload_size = size - MOVE_HEAD_SIZE;
    return STATUS_OK;
}

enum status dispute_move_load(struct dispute_move *move, struct file_bytes *bytes, const char *path,
                              struct error *error)
{
    TRY(file_read(bytes, error, path, DISPUTE_MOVE_MAX));
    return dispute_move_read(move, bytes->data, bytes->size, error);
}
