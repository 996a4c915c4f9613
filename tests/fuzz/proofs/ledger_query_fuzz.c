/*
 * ledger_query_fuzz.c - three roots and what a ledger knows, then any bytes as a query under them.
 * A query that holds leads to a trace query that can be written, read again and answered.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/dispute/ledger_query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[LEDGER_QUERIED_SIZE_MAX];
    uint8_t again[LEDGER_QUERIED_SIZE_MAX];
    struct evidence_context context = {0};
    struct ledger_queried queried;
    struct ledger_queried read;
    size_t written;

    if (size < 3 * DIGEST_SIZE + 1) {
        return 0;
    }
    memcpy(context.program.bytes, data, DIGEST_SIZE);
    memcpy(context.trace.bytes, data + DIGEST_SIZE, DIGEST_SIZE);
    memcpy(context.after.bytes, data + (size_t)2 * DIGEST_SIZE, DIGEST_SIZE);
    context.diverged = (data[3 * DIGEST_SIZE] & 2) != 0;
    data += 3 * DIGEST_SIZE + 1;
    size -= 3 * DIGEST_SIZE + 1;
    if (ledger_query_check(&queried, &context, data, size) != VERDICT_VALID) {
        return 0;
    }
    written = ledger_queried_write(bytes, &queried);
    if (written > sizeof(bytes) || ledger_queried_read(&read, bytes, written) != STATUS_OK ||
        ledger_queried_write(again, &read) != written || memcmp(again, bytes, written) != 0) {
        abort();
    }
    if (queried.query.kind < TRACE_QUERY_DIVERGED &&
        trace_reply_size(&queried.target) > TRACE_REPLY_BYTES_MAX) {
        abort();
    }
    return 0;
}
