/*
 * waits.h - what a committed segment waits for, in words.
 */
#ifndef PROVER_WAITS_H
#define PROVER_WAITS_H

#include "chain/job_record.h"

#define WAITS_TEXT_SIZE 160

struct waits {
    const char *word; /* for programs: "claim-time" */
    uint64_t until_s; /* 0: nothing that time brings */
    char text[WAITS_TEXT_SIZE];
};

/* Of a segment that is committed. */
void waits_describe(struct waits *waits, const struct job_record *record, uint32_t index,
                    uint64_t now_s);

/* "open", "running", "closed", "cancelled"; "unknown" where nobody opened it. */
const char *waits_phase(const struct job_record *record);

#endif /* PROVER_WAITS_H */
