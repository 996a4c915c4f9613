/*
 * duel.h - the next move in a dispute, made in the child that ran the step (check.h).
 *
 * A folder holds the dispute's memory: `walk`, what the accused has told so far
 * (proofs/dispute/trace_walk.h), and `told`, what the ledger brought last. Answers are looked for
 * there, then at the mirrors; when nobody has the next one, the move is to ask on the ledger. When
 * the lie is found, the move is the evidence, which the C rules have judged before. `evidence`, a
 * file that somebody gave (evidence_file.h), spares the walk where it convicts the trace that the
 * accused told. Who is accused himself finds `asked` there, and the move is to tell. Each move is
 * written once, whole, under the name that the node wished for, together with the case that goes
 * with it: killed at any point, a child leaves a memory that the next one goes on with.
 */
#ifndef VERIFIER_DISPUTE_DUEL_H
#define VERIFIER_DISPUTE_DUEL_H

#include "base/buffer.h"
#include "proofs/hash/merkle.h"
#include "proofs/run/run.h"
#include "verifier/check/fetch.h"

enum duel_kind {
    DUEL_ASK = 1,
    DUEL_CONVICT,
    DUEL_NO_LIE, /* the accused is right in everything: nothing can be shown */
    DUEL_TELL,
};

#define DUEL_PATH_MAX 40 /* siblings */

/* Names in the folder. */
#define DUEL_TOLD     "reply"
#define DUEL_ASKED    "queried"
#define DUEL_EVIDENCE "evidence"
#define DUEL_ADMITTED "admitted" /* there was no lie, and the node has said so */

/* What a file of a move holds. payload is borrowed of bytes when it was read. */
struct duel_move {
    enum duel_kind kind;
    uint8_t job_header[JOB_HEADER_SIZE];
    struct digest pre_state;
    struct digest post_state;
    struct merkle_path pre_path;  /* siblings alone */
    struct merkle_path post_path; /* likewise */
    const uint8_t *payload;
    size_t payload_size;
};

/* Appends, and reads exactly size bytes; STATUS_BAD_FORMAT: they are no move. */
void duel_move_write(struct buffer *bytes, const struct duel_move *move);
MUST_CHECK enum status duel_move_read(struct duel_move *move, const uint8_t *bytes, size_t size,
                                      struct error *error);

/* What the child has when it stands before the step. */
struct duel {
    const struct check_request *request; /* disputed */
    struct fetch *fetch;
    struct run *run;           /* holds the state before the step, which is the committed one */
    const struct digest *list; /* state roots of the segment */
    uint32_t list_count;
    const struct digest *earlier; /* of the segment that the step before is in: list, or the one
                                     before it; NULL: the step is the job's first */
    uint32_t earlier_count;
    bool is_last;  /* of a training that is said to have diverged in it */
    uint64_t step; /* of the job */
    struct digest pre_state;
};

/* Leaves run's machine in trace mode and in no particular state. */
MUST_CHECK enum status duel_play(const struct duel *duel, struct error *error);

#endif /* VERIFIER_DISPUTE_DUEL_H */
