/*
 * added.h - added and special tokens: texts that are found before anything else is cut.
 *
 * At each place the longest is taken. A token is looked for in the text as it is, or in the
 * normalized text. lstrip and rstrip take the white space beside it too.
 */
#ifndef DATA_TOKEN_ADDED_H
#define DATA_TOKEN_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ADDED_MAX       16384u
#define ADDED_BYTES_MAX 1024u /* of a token */

struct added_token {
    uint8_t *bytes; /* owned */
    size_t size;
    uint32_t id;
    bool special;
    bool normalized;
    bool lstrip;
    bool rstrip;
};

struct added_node {
    uint32_t child; /* 0: none; node 0 is no node */
    uint32_t sibling;
    uint32_t token; /* index + 1; 0: none ends here */
    uint8_t byte;
};

struct added {
    struct added_token *tokens;
    size_t count;
    struct added_node *nodes;
    size_t node_count;
    size_t node_capacity;
    uint32_t first[2][256]; /* by normalized: the node of a first byte */
    size_t plain[2];        /* how many are not special */
    size_t special[2];
};

struct added_match {
    const struct added_token *token; /* NULL: there is none */
    size_t start;
    size_t end;
};

/* Accepts a zeroed list, which is empty. */
void added_release(struct added *added);

/* Adds a token; bytes are copied. */
MUST_CHECK enum status added_add(struct added *added, struct error *error,
                                 const struct added_token *token);

/* Makes tokens[index] findable by bytes: its own, or its normalized ones. */
MUST_CHECK enum status added_index(struct added *added, struct error *error, size_t index,
                                   const uint8_t *bytes, size_t size);

/* The first at or behind `at`; what stands before is taken. special: are special tokens
 * looked for too? */
void added_find(struct added_match *match, const struct added *added, bool normalized, bool special,
                const uint8_t *text, size_t size, size_t at);

/* The token of this id, or of exactly this text; NULL: there is none. */
const struct added_token *added_of_id(const struct added *added, uint32_t id);
const struct added_token *added_of_text(const struct added *added, const void *bytes, size_t size);

#endif /* DATA_TOKEN_ADDED_H */
