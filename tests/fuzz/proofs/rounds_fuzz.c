/* rounds_fuzz.c - any bytes as a record of a round, and as the progress of an owner: what is read
 * has its bounds, and a record is written as the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "proofs/rounds/round_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const struct round_record *record)
{
    if (record->owner_count > ROUNDS_OWNERS_MAX || record->number > ROUNDS_MAX) {
        abort();
    }
    for (uint32_t i = 0; i < record->owner_count; i++) {
        const struct round_owner *owner = &record->owners[i];

        if (owner->try_count > ROUND_TRIES_MAX || owner->tree_count > ROUND_TREES_MAX ||
            owner->has_state != (owner->trees != NULL) ||
            strlen(record->names[i]) > ROUNDS_NAME_MAX) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct round_record record;
    struct rounds rounds;
    struct error error;

    error_init(&error);
    if (round_record_parse(&record, data, size, &error) == STATUS_OK) {
        check_record(&record);
    } else if (error.text[0] == '\0') {
        abort();
    }
    round_record_release(&record);
    error_init(&error);
    if (rounds_parse(&rounds, data, size, &error) == STATUS_OK) {
        error_init(&error);
        if (rounds_check(&rounds, &error) != STATUS_OK) {
            abort();
        }
    }
    return 0;
}
