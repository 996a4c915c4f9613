/* standing_segment.h - a segment of a job as its event has it, without the reducer's help. */
#ifndef TESTS_SUPPORT_CHAIN_STANDING_SEGMENT_H
#define TESTS_SUPPORT_CHAIN_STANDING_SEGMENT_H

#include "chain/game/ledger.h"

/* STATUS_NOT_FOUND: none stands there. */
MUST_CHECK enum status standing_segment(struct ledger *ledger, struct game_segment *segment,
                                        const struct hash32 *job, uint32_t index,
                                        struct error *error);

#endif /* TESTS_SUPPORT_CHAIN_STANDING_SEGMENT_H */
