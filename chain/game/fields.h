/*
 * fields.h - which field of a C struct is which words of the ABI: tables instead of code.
 *
 * For game_codec.c and the records of the embedded ledger. A narrow field refuses a word that does
 * not fit it. Values of any length follow the words of their tuple, in order and without gaps, so
 * every value has exactly one encoding.
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
    FIELD_LEAVES,     /* struct game_leaves, as bytes16 */
    FIELD_PATH,       /* struct merkle_path, its siblings as bytes32[] */
    FIELD_HASHES,     /* struct game_hashes; points into what was decoded */
    FIELD_BYTES,      /* struct game_bytes; points into what was decoded */
    FIELD_TUPLE,      /* a struct with a table of its own */
};

#define FIELDS_OF_ANY_LENGTH_MAX 4 /* in one table */

struct fields;

struct field {
    uint16_t offset;
    uint8_t type;               /* enum field_type */
    uint8_t indexed;            /* of an event: 1 for a topic */
    uint32_t most;              /* of U32: a higher number is refused; 0: none is */
    const struct fields *parts; /* of TUPLE */
};

/* A row of a table: a member that is no tuple, of a struct by its tag. */
#define FIELD(tag, member, type)                                                                   \
    {                                                                                              \
        offsetof(struct tag, member), FIELD_##type, 0, 0, NULL                                     \
    }

struct fields {
    const struct field *fields;
    size_t count;
};

#define FIELDS(fields)                                                                             \
    {                                                                                              \
        (fields), sizeof(fields) / sizeof((fields)[0])                                             \
    }

size_t fields_size(const void *from, const struct fields *fields);
void fields_encode(struct byte_writer *writer, const void *from, const struct fields *fields);
/* The reader moves from the start of the tuple to its end. */
MUST_CHECK enum status fields_decode(struct abi_reader *reader, void *to,
                                     const struct fields *fields);

#endif /* CHAIN_GAME_FIELDS_H */
