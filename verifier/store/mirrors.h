/*
 * mirrors.h - which mirror is asked first, by how each did lately.
 *
 * A check in which a mirror was silent or told something false sends it to the end of the queue:
 * for half a minute, twice as long with each such check in a row, an hour at most. It is asked
 * there still, with less patience, since it may be the only one that has what is wanted. A check
 * that it served well brings it back, and halves what is held against it; an hour without trouble
 * takes one failure off. Kept in the node's database, so that a start forgets nothing.
 */
#ifndef VERIFIER_STORE_MIRRORS_H
#define VERIFIER_STORE_MIRRORS_H

#include "base/io/log.h"
#include "verifier/store/store.h"

#define MIRRORS_REST_MS      UINT64_C(30000)
#define MIRRORS_REST_MS_MAX  UINT64_C(3600000)
#define MIRRORS_FORGET_MS    UINT64_C(3600000)
#define MIRRORS_FAILURES_MAX 16

/* A plain value; a zero-filled one is a mirror of which nothing is known. */
struct mirrors_health {
    uint32_t failures;
    uint64_t rest_until_ms; /* or was brought back then */
};

/* After a check in which it failed, or served all that it was asked for. */
void mirrors_failed(struct mirrors_health *health, uint64_t now_ms);
void mirrors_served(struct mirrors_health *health, uint64_t now_ms);

/* Is it asked last? A rest that is longer than any is none: the clock was set back. */
bool mirrors_rests(const struct mirrors_health *health, uint64_t now_ms);

/* What is held against it now. */
uint32_t mirrors_failures(const struct mirrors_health *health, uint64_t now_ms);

/* Fills request->mirrors with the configured ones, the most trusted first, and mirrors_tired. */
MUST_CHECK enum status mirrors_choose(struct store *store, struct check_request *request,
                                      const char *const *configured, size_t count, uint64_t now_ms,
                                      struct error *error);

/* Remembers what a check found of its mirrors. log: told when one begins or ends its rest. */
MUST_CHECK enum status mirrors_note(struct store *store, const struct check_request *request,
                                    const struct check_result *result, uint64_t now_ms,
                                    const struct log *log, struct error *error);

#endif /* VERIFIER_STORE_MIRRORS_H */
