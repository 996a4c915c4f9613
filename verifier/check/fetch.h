/*
 * fetch.h - content by its root for a check: from its cache, from folders of this machine, and from
 * mirrors (proofs/mirror/mirror_set.h).
 *
 * A mirror of a check is http(s)://HOST/PREFIX, which serves the tree that `prover publish`
 * writes; a folder with the same tree; or a bundle. Folders are looked at first. Downloads are
 * bounded, broken ones are resumed; they lie in the cache under the root's name. A state comes in
 * pieces from all mirrors at once, and so do parts of data.
 */
#ifndef VERIFIER_CHECK_FETCH_H
#define VERIFIER_CHECK_FETCH_H

#include "proofs/job/job.h"
#include "proofs/mirror/piece_crew.h"
#include "verifier/check/check_wire.h"

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

/* From the cache and from mirrors that are folders alone. */
MUST_CHECK enum status fetch_here(char *path, struct fetch *fetch,
                                  const struct mirror_wanted *wanted, struct error *error);

/* path has room for FILE_PATH_MAX. job: of a MIRROR_STATE, else it may be NULL. STATUS_NOT_FOUND:
 * no mirror has it; STATUS_UNREACHABLE: some did not answer. */
MUST_CHECK enum status fetch_get(char *path, struct fetch *fetch,
                                 const struct mirror_wanted *wanted, const struct job *job,
                                 struct error *error);

/* Runs a crew over the elements of data; the rest of the crew is the caller's. STATUS_REFUSED: not
 * all came, and a mirror has the data but gives no parts of it. Else as fetch_get(). */
MUST_CHECK enum status fetch_parts(struct fetch *fetch, struct piece_crew *crew,
                                   const struct digest *root, struct error *error);

#endif /* VERIFIER_CHECK_FETCH_H */
