/* added.c - see added.h. */
#include "data/token/added.h"

#include <stdlib.h>
#include <string.h>

#include "data/text/unicode.h"
#include "data/text/utf8.h"

void added_release(struct added *added)
{
    for (size_t i = 0; i < added->count; i++) {
        free(added->tokens[i].bytes);
    }
    free(added->tokens);
    free(added->nodes);
    memset(added, 0, sizeof(*added));
}

enum status added_add(struct added *added, struct error *error, const struct added_token *token)
{
    struct added_token *tokens;
    uint8_t *bytes;

    if (token->size == 0 || token->size > ADDED_BYTES_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the added token of id %u has %zu bytes; it must have 1 to %u", token->id,
                         token->size, ADDED_BYTES_MAX);
    }
    if (added->count == ADDED_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "more than %u added tokens", ADDED_MAX);
    }
    if (added_of_text(added, token->bytes, token->size) != NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "the added token of id %u is there twice",
                         token->id);
    }
    tokens = realloc(added->tokens, (added->count + 1) * sizeof(*tokens));
    bytes = malloc(token->size);
    /* The longer list is kept even where the bytes found no memory: the old one is gone. */
    if (tokens != NULL) {
        added->tokens = tokens;
    }
    if (tokens == NULL || bytes == NULL) {
        free(bytes);
        return error_set(error, STATUS_NO_MEMORY, "out of memory for added tokens");
    }
    memcpy(bytes, token->bytes, token->size);
    tokens[added->count] = *token;
    tokens[added->count++].bytes = bytes;
    return STATUS_OK;
}

/* A new node; 0: no memory. */
static uint32_t new_node(struct added *added, uint8_t byte)
{
    if (added->node_count + 1 >= added->node_capacity) {
        size_t capacity = added->node_capacity == 0 ? 256 : 2 * added->node_capacity;
        struct added_node *nodes = realloc(added->nodes, capacity * sizeof(*nodes));

        if (nodes == NULL) {
            return 0;
        }
        added->nodes = nodes;
        added->node_capacity = capacity;
        added->node_count += added->node_count == 0; /* node 0 is no node */
    }
    added->nodes[added->node_count] = (struct added_node){.byte = byte};
    return (uint32_t)added->node_count++;
}

static uint32_t child_of(const struct added *added, uint32_t node, uint8_t byte)
{
    uint32_t child = added->nodes[node].child;

    while (child != 0 && added->nodes[child].byte != byte) {
        child = added->nodes[child].sibling;
    }
    return child;
}

enum status added_index(struct added *added, struct error *error, size_t index,
                        const uint8_t *bytes, size_t size)
{
    const bool normalized = added->tokens[index].normalized;
    uint32_t *first = &added->first[normalized][bytes[0]];
    uint32_t node = *first == 0 ? new_node(added, bytes[0]) : *first;

    *first = node;
    for (size_t i = 1; i < size && node != 0; i++) {
        /* A tree of bytes, by first child and next sibling: thousands of tokens are looked for at
         * once. */
        uint32_t child = child_of(added, node, bytes[i]);

        if (child == 0) {
            child = new_node(added, bytes[i]);
            if (child != 0) {
                added->nodes[child].sibling = added->nodes[node].child;
                added->nodes[node].child = child;
            }
        }
        node = child;
    }
    if (node == 0) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for added tokens");
    }
    /* Two tokens may become one text when they are normalized: the first of them counts. */
    if (added->nodes[node].token == 0) {
        added->nodes[node].token = (uint32_t)index + 1;
    }
    added->plain[normalized] += !added->tokens[index].special;
    added->special[normalized] += added->tokens[index].special;
    return STATUS_OK;
}

/* The longest that begins at `at`; NULL: none does. */
static const struct added_token *longest_token(const struct added *added, bool normalized,
                                               bool special, const uint8_t *text, size_t size,
                                               size_t at, size_t *end)
{
    const struct added_token *found = NULL;
    uint32_t node = added->first[normalized][text[at]];

    while (node != 0) {
        uint32_t token = added->nodes[node].token;

        at++;
        if (token != 0 && (special || !added->tokens[token - 1].special)) {
            found = &added->tokens[token - 1];
            *end = at;
        }
        node = at < size ? child_of(added, node, text[at]) : 0;
    }
    return found;
}

static size_t space_before(const uint8_t *text, size_t from, size_t at)
{
    while (at > from) {
        size_t before = at - 1;
        size_t next;

        while (before > from && (text[before] & 0xc0) == 0x80) {
            before--;
        }
        next = before;
        if (unicode_class(utf8_next(text, &next)) != UNICODE_SPACE) {
            break;
        }
        at = before;
    }
    return at;
}

static size_t space_behind(const uint8_t *text, size_t size, size_t at)
{
    while (at < size) {
        size_t next = at;

        if (unicode_class(utf8_next(text, &next)) != UNICODE_SPACE) {
            break;
        }
        at = next;
    }
    return at;
}

void added_find(struct added_match *match, const struct added *added, bool normalized, bool special,
                const uint8_t *text, size_t size, size_t at)
{
    const size_t from = at;

    *match = (struct added_match){.start = size, .end = size};
    if (added->plain[normalized] == 0 && (!special || added->special[normalized] == 0)) {
        return;
    }
    for (; at < size; at++) {
        size_t end = at;

        if (added->first[normalized][text[at]] == 0) {
            continue;
        }
        match->token = longest_token(added, normalized, special, text, size, at, &end);
        if (match->token != NULL) {
            match->start = match->token->lstrip ? space_before(text, from, at) : at;
            match->end = match->token->rstrip ? space_behind(text, size, end) : end;
            return;
        }
    }
}

const struct added_token *added_of_id(const struct added *added, uint32_t id)
{
    for (size_t i = 0; i < added->count; i++) {
        if (added->tokens[i].id == id) {
            return &added->tokens[i];
        }
    }
    return NULL;
}

const struct added_token *added_of_text(const struct added *added, const void *bytes, size_t size)
{
    for (size_t i = 0; i < added->count; i++) {
        if (added->tokens[i].size == size && memcmp(added->tokens[i].bytes, bytes, size) == 0) {
            return &added->tokens[i];
        }
    }
    return NULL;
}
