/*
 * content_tree.h - what a solver shows of its bundles: one tree of names, served or published.
 *
 *     v1/jobs.json                              what there is, for people and scripts
 *     v1/jobs/JOB/job                           the job file
 *     v1/jobs/JOB/segments/N                    the state roots of a segment, 32 bytes each
 *     v1/jobs/JOB/checkpoints/STEP.safetensors  the state before a step, of twelve digits
 *     v1/jobs/JOB/trace/STEP/ASK                the answer to an ask (trace_query.h) about a step
 *     v1/roots/ROOT                             the same by root: job id, segment, state, data root
 *
 * Nobody has to believe what lies here: every name but jobs.json stands for bytes that a root
 * fixes. Bundles are only read, and may grow meanwhile. An encrypted bundle is refused: whoever may see
 * it gets an export and the key.
 *
 * A site may be asked by many threads at once.
 */
#ifndef PROVER_SERVE_CONTENT_TREE_H
#define PROVER_SERVE_CONTENT_TREE_H

#include "proofs/run/replay.h"

#define CONTENT_TREE_PATH_MAX        256
#define CONTENT_TREE_SEGMENT_MAX     (UINT64_C(64) << 20) /* bytes of one segment's roots */
#define CONTENT_TREE_BUNDLES_MAX     1024
#define CONTENT_TREE_CHECKPOINT_NAME "%012" PRIu64 ".safetensors"

struct content_tree;

struct content_tree_options {
    const char *const *bundles;
    size_t bundle_count;
    const char *const *data; /* served by their roots, where a job has such a root */
    size_t data_count;
    bool traces;                    /* answer asks: costs a replay for each step asked about */
    bool as_files;                  /* jobs.json is not to promise answers: files give none */
    struct machine_options machine; /* for these */
};

/* Either a part of a file, or bytes. */
struct content_tree_content {
    int descriptor; /* of a file; -1: bytes */
    uint64_t size;
    uint8_t *bytes;
    const char *type;
    bool fixed;         /* by a root: it never changes */
    struct digest root; /* of what is fixed by one */
};

MUST_CHECK enum status content_tree_open(struct content_tree **tree,
                                         const struct content_tree_options *options,
                                         struct error *error);
void content_tree_close(struct content_tree *tree); /* NULL is fine */

/*
 * Finds what path names; path begins with no slash. STATUS_NOT_FOUND: nothing. STATUS_OVER_LIMIT:
 * another ask is being answered, come again. The caller releases content.
 */
MUST_CHECK enum status content_tree_find(struct content_tree *tree,
                                         struct content_tree_content *content, const char *path,
                                         struct error *error);
void content_tree_content_release(struct content_tree_content *content);

/* Told of a name, and of the content's name by its root or NULL; but for STATUS_OK a walk ends. */
struct content_tree_visitor {
    enum status (*reply)(void *context, const char *path, const char *root_path,
                         struct error *error);
    void *context;
};

/* Tells every name that there is now but traces; jobs.json comes last. */
MUST_CHECK enum status content_tree_walk(struct content_tree *tree,
                                         const struct content_tree_visitor *visitor,
                                         struct error *error);

/*
 * Tells the names of all answers about a step of the first bundle, those about a tensor one after
 * the other: finding them in this order costs a run of the step for each tensor. The site must
 * answer asks. STATUS_USAGE: the job's data is not at hand.
 */
MUST_CHECK enum status content_tree_walk_trace(struct content_tree *tree, uint64_t step,
                                               const struct content_tree_visitor *visitor,
                                               struct error *error);

#endif /* PROVER_SERVE_CONTENT_TREE_H */
