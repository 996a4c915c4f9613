/*
 * piece_fetch.h - a state of a job from several mirrors at once, as a file of which nothing is
 * unchecked.
 *
 * One mirror's list of hashes is checked against the root of the state. Then all mirrors give
 * pieces (proofs/commit/piece.h). Each is checked before it is kept; a mirror that gives a false
 * one, or nothing, is named and dropped. Pieces lie in PATH.part; a later call checks what lies
 * there and goes on. PATH appears when the whole file was read and checked once more.
 */
#ifndef PROOFS_MIRROR_PIECE_FETCH_H
#define PROOFS_MIRROR_PIECE_FETCH_H

#include "proofs/job/job.h"
#include "proofs/mirror/mirror_set.h"

struct piece_fetch {
    struct mirror_set *mirrors;
    const struct job *job;
    uint64_t step; /* the state before it */
    struct digest root;
    bool whole;  /* with what only the training needs */
    bool judged; /* the caller reads and checks the file itself: it is not done here once more */
    /* NULL, or where the list of hashes appears before the file does; a server of both is a mirror.
     * It replaces what is there; beside a file of before it appears where it is missing. */
    const char *hashes;
    /* May be NULL. The caller's thread calls it several times a second. */
    void (*progress)(void *context, uint64_t bytes, uint64_t total);
    void *context;
    bool listed;      /* set: a mirror gave the list of hashes */
    bool gives_whole; /* set: and one has the state, but gives no parts of it */
    uint64_t total;   /* set: bytes of the tensors in the file */
    uint64_t resumed; /* set: of them, those that were there already */
};

/*
 * Makes the file at path. A file that is there already must hold this state: else STATUS_REFUSED.
 * STATUS_UNREACHABLE: the mirrors do not give all of it; what came waits for the
 * next call. STATUS_STOPPED: the same.
 */
MUST_CHECK enum status piece_fetch_run(struct piece_fetch *fetch, const char *path,
                                       struct error *error);

#endif /* PROOFS_MIRROR_PIECE_FETCH_H */
