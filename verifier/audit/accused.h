/*
 * accused.h - what is at hand of a step that a solver is accused of: the state after it, where the
 * bundle has a checkpoint there, and mirrors or folders that may have replies about its trace.
 */
#ifndef VERIFIER_AUDIT_ACCUSED_H
#define VERIFIER_AUDIT_ACCUSED_H

#include "proofs/run/run.h"
#include "verifier/check/fetch.h"

#define ACCUSED_SOURCES_MAX (CHECK_MIRRORS_MAX - 1) /* beside the bundle itself */

/* The folder of what an audit fetches; it goes with the audit. */
struct accused_cache {
    char path[FILE_PATH_MAX]; /* "": none was made */
};

MUST_CHECK enum status accused_cache_open(struct accused_cache *cache, struct error *error);
void accused_cache_close(struct accused_cache *cache); /* a zero-filled one is allowed */

struct accused {
    struct bundle *bundle; /* borrowed */
    uint64_t step;
    struct digest *after; /* roots of the states after the step, then their hashes as leaves;
                              NULL: no checkpoint has it */
    struct check_request *request;
    struct check_result *notes;
    struct fetch *fetch;
};

/* sources: mirrors as fetch.h knows them; the bundle's own folder is looked at as well. */
MUST_CHECK enum status accused_open(struct accused *accused, struct bundle *bundle, uint64_t step,
                                    const char *cache, const char *const *sources,
                                    size_t source_count, struct error *error);
void accused_close(struct accused *accused); /* a zero-filled one is allowed */

/* Looks for the state after the step; leaves run's machine in no particular state. */
MUST_CHECK enum status accused_find_state(struct accused *accused, struct run *run,
                                          struct error *error);

/* One tensor of that state, which must have been found. bytes has room for it. */
MUST_CHECK enum status accused_read_state(void *bytes, const struct accused *accused,
                                          struct run *run, uint32_t state, struct error *error);

#endif /* VERIFIER_AUDIT_ACCUSED_H */
