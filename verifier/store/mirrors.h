/*
 * mirrors.h - the order in which mirrors are asked, by how each did lately.
 *
 * A check in which a mirror was silent or gave wrong content puts it last: for half a minute, twice
 * as long when it fails again after that, an hour at most. Meanwhile it is still asked, with a
 * shorter timeout: it may be the only one with the content. A check that it served well brings it
 * back and halves its failures; an hour without trouble takes one failure away. The node's database
 * keeps all this.
 */
#ifndef VERIFIER_STORE_MIRRORS_H
#define VERIFIER_STORE_MIRRORS_H

#include "base/io/log.h"
#include "verifier/store/store.h"

#define MIRRORS_REST_MS      UINT64_C(30000)
#define MIRRORS_REST_MS_MAX  UINT64_C(3600000)
#define MIRRORS_FORGET_MS    UINT64_C(3600000)
#define MIRRORS_FAILURES_MAX 16

/* A plain value; all zero: nothing is known of the mirror. */
struct mirrors_health {
    uint32_t failures;
    uint64_t rest_until_ms; /* or the time when it came back */
};

/* After a check in which it failed, or served well. */
void mirrors_failed(struct mirrors_health *health, uint64_t now_ms);
void mirrors_served(struct mirrors_health *health, uint64_t now_ms);

/* Is it asked last? A rest longer than the longest means that the clock was set back: no. */
bool mirrors_rests(const struct mirrors_health *health, uint64_t now_ms);

/* Its failures by now. */
uint32_t mirrors_failures(const struct mirrors_health *health, uint64_t now_ms);

/* Fills request->mirrors with the configured ones, the most trusted first, with mirrors_tired and
 * strangers: who stands behind the first `named` of them. */
MUST_CHECK enum status mirrors_choose(struct store *store, struct check_request *request,
                                      const char *const *configured, size_t count, size_t named,
                                      uint64_t now_ms, struct error *error);

/* Notes that an address which a stranger names is not called, and logs it when that is new. */
MUST_CHECK enum status mirrors_refused(struct store *store, const char *name, const char *why,
                                       const struct log *log, struct error *error);

/* Remembers what a check found of its mirrors. Logs when one begins or ends its rest. */
MUST_CHECK enum status mirrors_note(struct store *store, const struct check_request *request,
                                    const struct check_result *result, uint64_t now_ms,
                                    const struct log *log, struct error *error);

#endif /* VERIFIER_STORE_MIRRORS_H */
