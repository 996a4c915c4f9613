/*
 * fields.h - which field of a C struct is which word of the ABI: tables instead of code.
 *
 * Used by game.c only. A narrow field refuses a word that does not fit it.
 */
#ifndef CHAIN_FIELDS_H
#define CHAIN_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "chain/abi.h"

enum field_type {
    FIELD_BYTES32, /* struct digest or struct hash32 */
    FIELD_ADDRESS,
    FIELD_U32,
    FIELD_U64,
    FIELD_WEI,
    FIELD_BOOL,
};

struct field {
    uint16_t offset;
    uint8_t type;    /* enum field_type */
    uint8_t indexed; /* of an event: 1 for a topic */
};

void fields_encode(struct abi_writer *writer, const void *from, const struct field *fields,
                   size_t field_count);
MUST_CHECK enum status fields_decode(struct abi_reader *reader, void *to,
                                     const struct field *fields, size_t field_count);

#endif /* CHAIN_FIELDS_H */
