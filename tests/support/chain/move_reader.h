/* move_reader.h - reads the bytes of a contract call back, which the product only writes. */
#ifndef TESTS_SUPPORT_CHAIN_MOVE_READER_H
#define TESTS_SUPPORT_CHAIN_MOVE_READER_H

#include "chain/game/game.h"

/* The move borrows from bytes. Only what game_move_encode() would write is decoded. */
MUST_CHECK enum status game_move_decode(struct game_move *move, const uint8_t *bytes, size_t size);

#endif /* TESTS_SUPPORT_CHAIN_MOVE_READER_H */
