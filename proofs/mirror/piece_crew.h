/*
 * piece_crew.h - fetches pieces from all mirrors at once, a thread for each. For piece_fetch.c.
 *
 * A thread takes a run of pieces that follow each other, checks each by its hash and writes it to
 * its place. When none is left to take, a free thread takes what another still waits for: one slow
 * mirror holds nobody up.
 */
#ifndef PROOFS_MIRROR_PIECE_CREW_H
#define PROOFS_MIRROR_PIECE_CREW_H

#include "proofs/commit/piece.h"
#include "proofs/mirror/mirror_set.h"

struct piece {
    uint64_t remote; /* where it stands in the mirrors' file */
    uint64_t local;  /* and in ours */
    uint32_t size;
    uint16_t takers; /* threads that fetch it now */
    bool done;
    const struct digest *hash;
    const char *tensor; /* its name, for sentences */
};

struct piece_crew {
    struct mirror_set *mirrors;
    char name[MIRROR_NAME_MAX]; /* of the file, at every mirror */
    bool is_data; /* the pieces count from its elements, which in a .npy begin behind a header */
    bool gives_whole; /* set: some mirror has the file and gives no parts of it */
    struct piece *pieces;
    uint64_t count;
    uint64_t done; /* of them */
    int descriptor;
    const char *path; /* of the descriptor's file, for errors */
    void (*progress)(void *context, uint64_t bytes, uint64_t total);
    void *context;
};

/* STATUS_OK: all pieces are done. STATUS_UNREACHABLE: no mirror gives the rest.
 * STATUS_STOPPED: by mirrors->stop. */
MUST_CHECK enum status piece_crew_run(struct piece_crew *crew, struct error *error);

#endif /* PROOFS_MIRROR_PIECE_CREW_H */
