/*
 * fetch.h - content by its root, from any of several mirrors.
 *
 * A mirror is http(s)://HOST/PREFIX, which serves the tree
 * that `lockstep prover publish` writes; a folder
 * with the same tree; or a bundle. A mirror is believed nothing: what it gives is shown to the
 * caller's check, and when it is not the content of that root, the mirror is marked and the next
 * one is tried. Downloads are bounded in size and in patience, slow ones are given up, broken ones
 * are resumed; they lie in a cache folder under the root's name.
 */
#ifndef VERIFIER_CHECK_FETCH_H
#define VERIFIER_CHECK_FETCH_H

#include "verifier/check/check.h"

enum fetch_kind {
    FETCH_JOB,        /* root: the job id */
    FETCH_SEGMENT,    /* root: of the segment; the bytes are its state roots */
    FETCH_CHECKPOINT, /* root: of the state; a safetensors file */
    FETCH_DATA,       /* root: of the data */
    FETCH_TRACE,      /* root: the hash that is asked about; what a solver tells of a step */
};

struct fetch_request {
    enum fetch_kind kind;
    struct digest root;
    struct digest job;
    uint64_t number;   /* SEGMENT: its index; CHECKPOINT: the step that it is the state before;
                        TRACE: the step */
    const char *query; /* TRACE: as proofs/dispute/trace_query.h writes it */
    uint64_t first;    /* SEGMENT: its first step */
    uint64_t count;    /* SEGMENT: its steps */
    uint64_t size_max;
    /*
     * Looks at a file that is said to be the content. STATUS_BAD_FORMAT or STATUS_REFUSED: it is
     * not; anything else that is not STATUS_OK is our own trouble and ends the fetch.
     */
    enum status (*check)(void *context, const char *path, struct error *error);
    void *context;
};

struct fetch; /* opaque */

/* Borrows request; fills in result->mirrors as it goes. */
MUST_CHECK enum status fetch_open(struct fetch **fetch, const struct check_request *request,
                                  struct check_result *result, struct error *error);
void fetch_close(struct fetch *fetch); /* NULL is fine */

/* path has room for FILE_PATH_MAX. STATUS_NOT_FOUND: no mirror has it; STATUS_UNREACHABLE: some
 * could not be asked. */
MUST_CHECK enum status fetch_get(char *path, struct fetch *fetch,
                                 const struct fetch_request *wanted, struct error *error);

#endif /* VERIFIER_CHECK_FETCH_H */
