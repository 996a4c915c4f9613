/*
 * question.h - an ask with the proof that what it asks for is committed to.
 *
 * A ledger knows nothing of a step but the roots. A question shows it, besides the ask (ask.h), that
 * the node or root in question lies under the accused's roots: so only he who committed to
 * something that nobody could tell cannot answer. What follows from it, the hash that an answer
 * must have, is what the ledger tells the accused and keeps a hash of. docs/FORMATS.md, section 9,
 * has the bytes; chain/contracts/Walk.sol is the same in Solidity.
 *
 * Nothing is taken from a question but what hashes to the context's roots. Nothing here allocates
 * but the writer.
 */
#ifndef PROOFS_QUESTION_H
#define PROOFS_QUESTION_H

#include "proofs/evidence.h"
#include "proofs/tell.h"

#define QUESTION_ASKED_MAX (ASK_SIZE + 2 * DIGEST_SIZE + 10 + COMMIT_TENSOR_HEADER_MAX)

/* What the accused is asked for. */
struct question_asked {
    struct ask ask;
    struct tell_target target; /* of DIVERGED only known: the state after the step */
    struct digest program;     /* of DIVERGED: the program root */
};

/*
 * Writes the question of an ask about the accused's trees, of which source needs to know what lies
 * above the node in question (its root and siblings).
 */
MUST_CHECK enum status question_write(struct buffer *bytes, const struct tape *tape,
                                      const struct evidence_source *source, const struct ask *ask,
                                      struct error *error);

/* Safe on hostile bytes; asked means something only on VERDICT_VALID. */
MUST_CHECK enum verdict question_check(struct question_asked *asked,
                                       const struct evidence_context *context, const uint8_t *bytes,
                                       size_t size);

/* The bytes that the ledger tells; returns their size. */
size_t question_asked_write(uint8_t bytes[QUESTION_ASKED_MAX], const struct question_asked *asked);
MUST_CHECK enum status question_asked_read(struct question_asked *asked, const uint8_t *bytes,
                                           size_t size);

/* Is it what was asked for? Of DIVERGED that is evidence of a number that is not finite. */
MUST_CHECK enum verdict question_told_check(const struct question_asked *asked,
                                            const uint8_t *bytes, size_t size);

#endif /* PROOFS_QUESTION_H */
