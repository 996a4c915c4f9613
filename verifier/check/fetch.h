/*
 * fetch.h - content by its root, from any of several mirrors.
 *
 * A mirror is http(s)://HOST/PREFIX, which serves the tree that `lockstep prover publish` writes; a
 * folder with the same tree; or a bundle. A mirror is not trusted: the caller's check judges what
 * it gives. Content that has another root is noted against the mirror, and the next one is asked.
 * Downloads have a limit of size and a timeout; broken ones are resumed. They lie in a cache folder
 * under the root's name. Of data, parts can be fetched alone; their bytes are for the caller to
 * judge and to keep.
 */
#ifndef VERIFIER_CHECK_FETCH_H
#define VERIFIER_CHECK_FETCH_H

#include "verifier/check/check_wire.h"

enum fetch_kind {
    FETCH_JOB,        /* root: the job id */
    FETCH_CHECKPOINT, /* root: of the state; a safetensors file */
    FETCH_DATA,       /* root: of the data */
    FETCH_PIECES,     /* root: of the data, too; the hashes of its pieces (proofs/commit/piece.h) */
    FETCH_TRACE,      /* root: the hash that is queried; a solver's reply about a step */
};

struct fetch_request {
    enum fetch_kind kind;
    struct digest root;
    struct digest job;
    uint64_t number;   /* CHECKPOINT: the step after it; TRACE: the step */
    const char *query; /* TRACE: as proofs/dispute/trace_query.h writes it */
    uint64_t size_max;
    /*
     * Is the file at path the content? STATUS_BAD_FORMAT, STATUS_REFUSED, STATUS_OVER_LIMIT: no.
     * Any other failure is our own and ends the fetch.
     */
    enum status (*check)(void *context, const char *path, struct error *error);
    void *context;
};

struct fetch; /* opaque */

/* Borrows request; fills in result->mirrors as it goes. */
MUST_CHECK enum status fetch_open(struct fetch **fetch, const struct check_request *request,
                                  struct check_result *result, struct error *error);
void fetch_close(struct fetch *fetch); /* NULL is fine */

/* Where content of a root lies in the cache, with this ending; path has room for FILE_PATH_MAX. */
MUST_CHECK enum status fetch_cache_path(char *path, const struct fetch *fetch,
                                        const struct digest *root, const char *ending,
                                        struct error *error);

/* From now on nothing is fetched over a network: the cache and folders are all there is. */
void fetch_seal(struct fetch *fetch);

/* The same from the cache and from mirrors that are folders alone. */
MUST_CHECK enum status fetch_here(char *path, struct fetch *fetch,
                                  const struct fetch_request *wanted, struct error *error);

/* path has room for FILE_PATH_MAX. STATUS_NOT_FOUND: no mirror has it; STATUS_UNREACHABLE: some
 * did not answer. */
MUST_CHECK enum status fetch_get(char *path, struct fetch *fetch,
                                 const struct fetch_request *wanted, struct error *error);

#define FETCH_PART_MAX (256u << 10)

/* Bytes of a data tensor's elements; at most FETCH_PART_MAX. */
struct fetch_part {
    uint64_t first;
    uint32_t size;
};

struct fetch_parts {
    struct digest root; /* of the data */
    const struct fetch_part *of;
    uint64_t count;
    uint64_t done; /* set: so many came and were taken, in order */
    /* Are these the bytes? Then they are kept. STATUS_BAD_FORMAT: no. Any other failure is our own
     * and ends the fetch. */
    enum status (*take)(void *context, const struct fetch_part *part, const uint8_t *bytes,
                        struct error *error);
    void *context;
};

/* STATUS_REFUSED: not all came, and a mirror has the data but gives no parts of it.
 * STATUS_NOT_FOUND, STATUS_UNREACHABLE: as above. */
MUST_CHECK enum status fetch_parts(struct fetch *fetch, struct fetch_parts *wanted,
                                   struct error *error);

#endif /* VERIFIER_CHECK_FETCH_H */
