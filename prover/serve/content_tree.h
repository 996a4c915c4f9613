/*
 * content_tree.h - a solver's bundles as one tree of names, to be served or published.
 *
 *                                               (the empty name) a page for people
 *     v1/jobs.json                              the list of jobs, for scripts
 *     v1/jobs/JOB/job                           the job file
 *     v1/jobs/JOB/segments/N                    the state roots of a segment, 32 bytes each
 *     v1/jobs/JOB/segments/N.losses             what its steps said (proofs/run/loss_curve.h)
 *     v1/jobs/JOB/checkpoints/STEP.safetensors  the state before a step, of twelve digits
 *     v1/jobs/JOB/checkpoints/STEP.pieces       the hashes of its pieces (proofs/commit/piece.h)
 *     v1/jobs/JOB/trace/STEP/QUERY              the reply to a trace query about a step
 *     v1/roots/ROOT                             the same by root: job id, segment, state, data root
 *     v1/roots/ROOT.pieces                      the hashes of the pieces of data
 *
 * Nobody has to trust the tree: every name but jobs.json and losses stands for bytes that a root
 * fixes.
 * Bundles are only read, and may grow meanwhile. An encrypted bundle is refused: share an export
 * and the key instead.
 *
 * Many threads may use one tree at once.
 */
#ifndef PROVER_SERVE_CONTENT_TREE_H
#define PROVER_SERVE_CONTENT_TREE_H

#include "proofs/mirror/serve.h"
#include "proofs/run/replay.h"
#include "prover/serve/askers.h"

#define CONTENT_TREE_SEGMENT_MAX     (UINT64_C(64) << 20) /* bytes of one segment's roots */
#define CONTENT_TREE_BUNDLES_MAX     1024
#define CONTENT_TREE_CHECKPOINT_NAME "%012" PRIu64 ".safetensors"

struct content_tree;

struct content_tree_options {
    const char *const *bundles;
    size_t bundle_count;
    const char *const *data; /* served by their roots, where a job has such a root */
    size_t data_count;
    bool traces;                    /* answer trace queries: one replay for each queried step */
    bool as_files;                  /* jobs.json promises no replies: files compute none */
    struct machine_options machine; /* for the replays */
};

/* Whose traces are asked for. Borrows askers, until the tree is closed; without them anybody may
 * ask about any step of the bundle. */
size_t content_tree_bundle_count(const struct content_tree *tree);
struct bundle *content_tree_bundle(struct content_tree *tree, size_t number);
void content_tree_guard(struct content_tree *tree, size_t number, struct askers *askers);
struct askers *content_tree_askers(struct content_tree *tree, size_t number); /* or NULL */

MUST_CHECK enum status content_tree_open(struct content_tree **tree,
                                         const struct content_tree_options *options,
                                         struct error *error);
void content_tree_close(struct content_tree *tree); /* NULL is fine */

/*
 * Finds the content of a path, which begins with no slash. ask: what stands in ASK_HEADER, or NULL.
 * STATUS_NOT_FOUND: there is none. STATUS_REFUSED: who asks may not know it. STATUS_OVER_LIMIT:
 * busy with other queries; try again. The caller releases content.
 */
MUST_CHECK enum status content_tree_find(struct content_tree *tree, struct serve_content *content,
                                         const char *path, const char *ask, struct error *error);

/* The tree for a server; borrows it. */
struct serve_source content_tree_source(struct content_tree *tree);

/* Receives a name, and the same content's name by its root or NULL. A failure ends the walk. */
struct content_tree_visitor {
    enum status (*visit)(void *context, const char *path, const char *root_path,
                         struct error *error);
    void *context;
};

/* Visits every present name, without traces; jobs.json comes last. */
MUST_CHECK enum status content_tree_walk(struct content_tree *tree,
                                         const struct content_tree_visitor *visitor,
                                         struct error *error);

/*
 * Visits the names of all trace replies about a step of the first bundle, tensor by tensor: in this
 * order the step is run once for each tensor. The tree must answer trace queries. STATUS_USAGE: the
 * job's data is missing.
 */
MUST_CHECK enum status content_tree_walk_trace(struct content_tree *tree, uint64_t step,
                                               const struct content_tree_visitor *visitor,
                                               struct error *error);

#endif /* PROVER_SERVE_CONTENT_TREE_H */
