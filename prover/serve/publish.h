/*
 * publish.h - a site as files: the same tree, for any web server or object store.
 */
#ifndef PROVER_SERVE_PUBLISH_H
#define PROVER_SERVE_PUBLISH_H

#include "prover/serve/content_tree.h"

/* Counts go on from what they are. */
struct publish_result {
    uint64_t written;
    uint64_t kept; /* were there already */
    uint64_t bytes;
};

/*
 * Writes what the site shows now, but for traces, below folder. Each file is whole or not there;
 * what is there already under a root is not written again, and jobs.json comes last. Files that the
 * site no longer has are left alone.
 */
MUST_CHECK enum status publish(struct publish_result *result, struct content_tree *tree,
                               const char *folder, struct error *error);

/*
 * Writes all answers about a step of the site's first bundle likewise: as many bytes as its trace
 * has. They are written again where they are there already. The site must answer asks. tell is
 * told how many there are; or NULL.
 */
MUST_CHECK enum status publish_trace(struct publish_result *result, struct content_tree *tree,
                                     uint64_t step, const char *folder,
                                     void (*tell)(void *context, uint64_t answers),
                                     void *tell_context, struct error *error);

#endif /* PROVER_SERVE_PUBLISH_H */
