/* standing_segment.c - see standing_segment.h. */
#include "tests/support/chain/standing_segment.h"

enum status standing_segment(struct ledger *ledger, struct game_segment *segment,
                             const struct hash32 *job, uint32_t index, struct error *error)
{
    struct ledger_entry entry = {0};
    bool found = false;
    enum status status;

    /* The last commit of the index is the one that stands, unless a conviction came after it. */
    while ((status = ledger_next(ledger, &entry, entry.number, 0, error)) == STATUS_OK) {
        bool ours = entry.kind == LEDGER_EVENT && hash32_equal(&entry.event.job, job);

        if (ours && entry.event.kind == GAME_COMMITTED && entry.event.index == index) {
            *segment = entry.event.segment;
            found = true;
        } else if (ours && entry.event.kind == GAME_CONVICTED && index >= entry.event.index) {
            found = false;
        } else if (entry.kind == LEDGER_REWIND && found && segment->height > entry.height) {
            found = false;
        }
    }
    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    return found ? STATUS_OK
                 : error_set(error, STATUS_NOT_FOUND, "no segment %u stands in this job", index);
}
