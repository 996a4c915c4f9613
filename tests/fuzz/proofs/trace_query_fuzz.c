/*
 * trace_query_fuzz.c - any bytes as a query, as its text, and as a query with a reply to it. What
 * is read writes back to the same bytes; a reply that is accepted is refused when one bit flips.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/dispute/ledger_query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_ask(const uint8_t *data, size_t size)
{
    uint8_t bytes[TRACE_QUERY_SIZE];
    char text[TRACE_QUERY_TEXT_MAX];
    struct trace_query again;
    struct trace_query query;

    if (trace_query_read(&query, data, size) != STATUS_OK) {
        return;
    }
    trace_query_write(bytes, &query);
    trace_query_text(text, &query);
    if (memcmp(bytes, data, size) != 0 || trace_query_parse(&again, text) != STATUS_OK) {
        abort();
    }
}

static void read_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char again[TRACE_QUERY_TEXT_MAX];
    struct trace_query query;

    if (text == NULL) {
        return;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    if (trace_query_parse(&query, text) == STATUS_OK) {
        trace_query_text(again, &query);
        if (strcmp(again, text) != 0) {
            abort();
        }
    }
    free(text);
}

/* The size of the query (2), the query, the reply. */
static void read_reply(const uint8_t *data, size_t size)
{
    static uint8_t changed[TRACE_REPLY_BYTES_MAX];
    struct partial_sums_reply parts;
    struct ledger_queried queried;
    struct trace_reply reply;
    size_t asked_size;

    if (size < 2) {
        return;
    }
    asked_size = (size_t)data[0] << 8 | data[1];
    data += 2;
    size -= 2;
    if (asked_size > size || ledger_queried_read(&queried, data, asked_size) != STATUS_OK ||
        queried.query.kind == TRACE_QUERY_DIVERGED) {
        return;
    }
    data += asked_size;
    size -= asked_size;
    if (queried.query.kind == TRACE_QUERY_PARTS) {
        if (partial_sums_check(&parts, &queried.parts, data, size) == VERDICT_VALID &&
            !parts.none && size != 4 + 8 * (size_t)queried.parts.count) {
            abort();
        }
        return;
    }
    if (trace_reply_check(&reply, &queried.target, data, size) != VERDICT_VALID) {
        return;
    }
    if (reply.entries == 0 || reply.entries > TRACE_QUERY_ENTRIES_MAX || size > sizeof(changed)) {
        abort();
    }
    memcpy(changed, data, size);
    changed[size / 2] ^= 1;
    if (trace_reply_check(&reply, &queried.target, changed, size) == VERDICT_VALID) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    switch (data[0] % 3) {
    case 0:
        read_ask(data + 1, size - 1);
        break;
    case 1:
        read_text(data + 1, size - 1);
        break;
    default:
        read_reply(data + 1, size - 1);
        break;
    }
    return 0;
}
