/*
 * fields.h - which field of a C struct is which words of the ABI: tables instead of code.
 *
 * For game_codec.c. A narrow field refuses a word that does not fit it. Fields of any length follow
 * all words, in order and without gaps, so every value has exactly one encoding.
 */
#ifndef CHAIN_GAME_FIELDS_H
#define CHAIN_GAME_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "chain/codec/abi.h"

enum field_type {
    FIELD_BYTES32, /* struct digest or struct hash32 */
    FIELD_ADDRESS,
    FIELD_U32,
    FIELD_U64,
    FIELD_WEI,
    FIELD_BOOL,
    FIELD_JOB_HEADER, /* 216 bytes in seven words */
    FIELD_PATH,       /* struct merkle_path, its siblings as bytes32[] */
    FIELD_BYTES,      /* struct game_bytes; points into what was decoded */
};

#define FIELDS_OF_ANY_LENGTH_MAX 4 /* in one table */

struct field {
    uint16_t offset;
    uint8_t type;    /* enum field_type */
    uint8_t indexed; /* of an event: 1 for a topic */
};

size_t fields_size(const void *from, const struct field *fields, size_t field_count);
void fields_encode(struct abi_writer *writer, const void *from, const struct field *fields,
                   size_t field_count);
/* The reader moves from the start of the tuple to its end. */
MUST_CHECK enum status fields_decode(struct abi_reader *reader, void *to,
                                     const struct field *fields, size_t field_count);

#endif /* CHAIN_GAME_FIELDS_H */
