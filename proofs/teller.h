/*
 * teller.h - one step on its machine, ready to answer whatever may be asked of it.
 *
 * A solver, or an attestor, whose step is disputed tells what lies in its trace; a claimant uses
 * the same to know what should lie there. The trace is made once and its roots are kept. A tensor
 * of it is made again when it is asked for, by running the step once more, and kept until another
 * one is: so a walk through one tensor costs one run, and memory holds the states before the step
 * and one tensor beside what the machine holds.
 */
#ifndef PROOFS_TELLER_H
#define PROOFS_TELLER_H

#include "proofs/tell.h"
#include "proofs/trace.h"

/* Tensors that are kept at once: all that one operation touches. */
#define TELLER_KEPT_MAX (OP_INPUTS_MAX + OP_OUTPUTS_MAX)

/* A tensor of the trace, whole. */
struct teller_tensor {
    uint32_t item;
    const struct tensor *tensor;
    const uint8_t *bytes; /* borrowed of a state before the step, else owned */
    uint8_t *owned;
    uint64_t size;
    struct digest *hashes; /* of its leaves */
    uint64_t leaf_count;
};

struct teller {
    struct machine *machine; /* borrowed */
    const struct tape *tape;
    struct trace trace;
    uint8_t **states;     /* bytes of the states before the step */
    uint32_t *next_items; /* per state: the item of its next value */
    struct digest *next;  /* the roots of the next values, then their hashes as leaves */
    struct teller_tensor kept[TELLER_KEPT_MAX];
    uint32_t kept_count;
    uint64_t runs; /* of the step, so far */
};

/*
 * Traces the step before which machine, in trace mode, stands. The machine is the teller's until
 * teller_close(), and is left in no particular state.
 */
MUST_CHECK enum status teller_open(struct teller *teller, struct machine *machine,
                                   struct error *error);
void teller_close(struct teller *teller); /* a zero-filled one is allowed */

/*
 * The answer to any ask about a tree (not ASK_DIVERGED or ASK_PARTS, see conviction.h); bytes has
 * room for TELL_BYTES_MAX. STATUS_NOT_FOUND: the step has no such thing. STATUS_DEVICE: the machine
 * made another tensor than the first time.
 */
MUST_CHECK enum status teller_answer(uint8_t *bytes, size_t *size, struct teller *teller,
                                     const struct ask *ask, struct error *error);

/* The tree that ask is about; borrowed until the next call. */
MUST_CHECK enum status teller_tree(struct tell_tree *tree, struct teller *teller,
                                   const struct ask *ask, struct error *error);

/* Keeps these tensors, and no others, with at most one run. At most TELLER_KEPT_MAX items. */
MUST_CHECK enum status teller_keep(struct teller *teller, const uint32_t *items, uint32_t count,
                                   struct error *error);

/* A tensor that is kept, until others are; NULL: it is not. */
const struct teller_tensor *teller_tensor(const struct teller *teller, uint32_t item);

/*
 * The first element of the state after the step that is no finite number: which state, and which
 * element of it. STATUS_NOT_FOUND: the step does not diverge.
 */
MUST_CHECK enum status teller_diverged(uint32_t *state, uint64_t *element, struct teller *teller,
                                       struct error *error);

#endif /* PROOFS_TELLER_H */
