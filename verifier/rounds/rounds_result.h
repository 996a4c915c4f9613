/* rounds_result.h - what an audit of rounds found, as sentences. */
#ifndef VERIFIER_ROUNDS_ROUNDS_RESULT_H
#define VERIFIER_ROUNDS_ROUNDS_RESULT_H

#include "proofs/rounds/rounds.h"
#include "verifier/audit/findings.h"

struct rounds_result {
    const char *folder; /* borrowed */
    struct rounds rounds;
    uint32_t done; /* rounds that have a record */
    struct findings findings;
};

#endif /* VERIFIER_ROUNDS_ROUNDS_RESULT_H */
