/*
 * audit_wire_fuzz.c - a byte that says whether a page is wanted, then any bytes as what another
 * process says of its share of an audit. What is read is written back as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "verifier/audit/audit_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct audit_result *result = calloc(1, sizeof(*result));
    struct report *report = size > 0 && data[0] % 2 == 1 ? calloc(1, sizeof(*report)) : NULL;
    struct reader reader;
    struct buffer again;

    if (size == 0 || result == NULL) {
        free(result);
        free(report);
        return 0;
    }
    reader_init(&reader, data + 1, size - 1);
    if (audit_wire_read(result, report, &reader, NULL) == STATUS_OK) {
        size_t used = size - 1 - reader_left(&reader);

        buffer_init(&again, size);
        audit_wire_write(&again, result, report);
        if (again.size != used || memcmp(again.data, data + 1, used) != 0) {
            abort();
        }
        buffer_release(&again);
    }
    audit_result_release(result);
    free(result);
    free(report);
    return 0;
}
