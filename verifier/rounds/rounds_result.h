/* rounds_result.h - what an audit of rounds found, as sentences. */
#ifndef VERIFIER_ROUNDS_ROUNDS_RESULT_H
#define VERIFIER_ROUNDS_ROUNDS_RESULT_H

#include <jansson.h>

#include "proofs/rounds/rounds.h"

enum rounds_result_list {
    ROUNDS_RESULT_PROVEN = 0,
    ROUNDS_RESULT_REFUTED,
    ROUNDS_RESULT_NOT_TOLD,
    ROUNDS_RESULT_TRUSTED,
    ROUNDS_RESULT_LISTS,
};
extern const char *const rounds_result_names[ROUNDS_RESULT_LISTS];

struct rounds_result {
    const char *folder; /* borrowed */
    struct rounds rounds;
    uint32_t done;                      /* rounds that have a record */
    json_t *lists[ROUNDS_RESULT_LISTS]; /* of sentences */
};

#endif /* VERIFIER_ROUNDS_ROUNDS_RESULT_H */
