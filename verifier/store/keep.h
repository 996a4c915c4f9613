/*
 * keep.h - the states that a node has fetched for its seats or replayed, and keeps, and which of
 * them go first when room is short.
 *
 * What is kept is on disk and known by its names alone. The store says what it is worth: least a
 * state of a job that needs none any more, most the last state that is final, which of a closed job
 * is kept for two weeks.
 */
#ifndef VERIFIER_STORE_KEEP_H
#define VERIFIER_STORE_KEEP_H

#include "base/io/log.h"
#include "proofs/mirror/kept.h"
#include "verifier/store/store.h"

struct keep {
    struct kept *folder; /* owned; NULL: nothing is kept */
    uint64_t bytes_max;
};

/* Makes the folder, and serves it at place, unless that is NULL. */
MUST_CHECK enum status keep_open(struct keep *keep, const char *folder, const char *place,
                                 uint64_t bytes_max, struct error *error);
void keep_close(struct keep *keep); /* a zero-filled one is fine */

/* Drops what is over the bound, by what the store knows now; and says there what is kept. */
MUST_CHECK enum status keep_sweep(const struct keep *keep, struct store *store, uint64_t now_s,
                                  struct error *error);

/* How many bytes of a state that the request leaves are wanted; 0: all is there already. */
uint64_t keep_wants(const struct keep *keep, const struct check_request *request);

/* Takes what a child has left. Trouble is logged: it is none of the check. */
void keep_take(const struct keep *keep, struct store *store, const struct check_request *request,
               const struct check_result *result, uint64_t now_s, const struct log *log);

#endif /* VERIFIER_STORE_KEEP_H */
