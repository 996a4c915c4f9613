/* move_reader.c - see move_reader.h. */
#include "tests/support/chain/move_reader.h"

#include <string.h>

#include "chain/codec/abi.h"
#include "chain/game/game_tables.h"

enum status game_move_decode(struct game_move *move, const uint8_t *bytes, size_t size)
{
    if (size < ABI_SELECTOR_SIZE || size > GAME_MOVE_SIZE_MAX) {
        return STATUS_BAD_FORMAT;
    }
    for (int kind = 0; kind < GAME_MOVE_KINDS; kind++) {
        const struct codec *codec = &game_move_codecs[kind];
        struct hash32 hash = keccak256(codec->signature, strlen(codec->signature));

        if (memcmp(hash.bytes, bytes, ABI_SELECTOR_SIZE) == 0) {
            struct abi_reader reader;

            memset(move, 0, sizeof(*move));
            move->kind = (enum game_move_kind)kind;
            abi_reader_init(&reader, bytes + ABI_SELECTOR_SIZE, size - ABI_SELECTOR_SIZE);
            if (fields_decode(&reader, move, &codec->fields) != STATUS_OK ||
                reader.at != reader.size || !game_move_fits(move)) {
                return STATUS_BAD_FORMAT;
            }
            return STATUS_OK;
        }
    }
    return STATUS_BAD_FORMAT;
}
