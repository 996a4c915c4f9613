/*
 * publish.h - writes the content tree as files, for any web server or object store, or puts it into
 * a mirror.
 */
#ifndef PROVER_SERVE_PUBLISH_H
#define PROVER_SERVE_PUBLISH_H

#include "prover/serve/content_tree.h"

/* publish() adds to the counts. */
struct publish_result {
    uint64_t written;
    uint64_t kept; /* files that were there already */
    uint64_t bytes;
};

/*
 * Writes the present content tree, without traces, below folder. Each file is whole or not there.
 * Files that a root fixes are not written again; jobs.json comes last. Nothing is removed.
 */
MUST_CHECK enum status publish(struct publish_result *result, struct content_tree *tree,
                               const char *folder, struct error *error);

/*
 * Puts the same tree into a mirror by HTTP, but for jobs.json, which is the mirror's own. What the
 * mirror has already is not sent again.
 */
MUST_CHECK enum status publish_push(struct publish_result *result, struct content_tree *tree,
                                    const char *url, const char *token, struct error *error);

/*
 * Writes all trace replies about a step of the tree's first bundle in the same way: as many bytes
 * as its trace has. Existing files are written again. The tree must answer trace queries. progress,
 * or NULL, receives the number of replies so far.
 */
MUST_CHECK enum status publish_trace(struct publish_result *result, struct content_tree *tree,
                                     uint64_t step, const char *folder,
                                     void (*progress)(void *context, uint64_t replies),
                                     void *progress_context, struct error *error);

#endif /* PROVER_SERVE_PUBLISH_H */
