/*
 * chain.h - private rewrites of a tape: chains of operations that run slice by slice.
 *
 * Attention's products make tensors that are larger than all that they read, and the operations
 * behind them make small ones of these again. Such a chain runs for some heads of some sequences at
 * a time (slice.h), so that what is large needs the room of one slice: no step has memory for all
 * heads at once. What a gradient reads again of it, its own chain makes again. The same operations
 * read the same numbers, so states, loss and every tensor that is left have the same bits; the
 * program of the job is untouched.
 *
 * A chain is found by its shape, not by the names of its kinds: a product over batches, everything
 * that reads or makes as many elements as it has, and the quantizations that feed it. It stays as
 * it is where one of its operations has no axis to be cut along (dropout of the shares), and where
 * all of it is small.
 *
 * A loss over many ids is such a chain too, where chain_limits asks for it: logits and their
 * gradient are made for some tokens at a time. The gradient of the words is a sum over all tokens,
 * which is rounded once; so it is made for some ids at a time, of columns of the logits that are
 * made again, by the maxima and sums of their rows that the first chain has left. A step then makes
 * one product of the words in addition to three. What the losses give the rest of the step waits
 * for the first chain. A loss whose gradient reads the losses, or more of the logits than a row's
 * cross-entropy, stays as it is.
 *
 * One head's square is left here; a GPU whose attention is on chip keeps none
 * (engine/cuda/fusions/attention.c). A block of its rows is no operation: no kind says at which
 * row of a causal mask it begins. And the gradients of keys and values sum over all rows: the
 * integers of a column depend, by the window, on the largest exponent of the whole column, and the
 * sum of a column is rounded once. So blocks of rows would be made three times: for the exponents,
 * for the integers, for the sums, which no tensor of a tape can hold in parts. What a causal mask
 * hides is kept as zeros: a tensor is a rectangle, and half of one square is not worth another
 * layout.
 */
#ifndef ENGINE_PLAN_CHAIN_H
#define ENGINE_PLAN_CHAIN_H

#include "engine/plan/chain_find.h"

#define CHAIN_ROOM (UINT64_C(32) << 20) /* of all machines */

/*
 * The first rewrite: a chain that reads large tensors of an earlier one makes them again. Whole
 * operations are repeated, so that recompute.h can forget what they read. NULL: nothing to do.
 * derived->origins says for each operation which of the tape's it is, and whether it is a
 * repetition (instance 1). The tensors of the tape keep their ids. The caller frees it.
 */
MUST_CHECK enum status chain_remake(struct tape **derived, const struct tape *tape,
                                    const struct chain_limits *limits, struct error *error);

/* Marks the tensors that chain_slice() leaves in slices only. */
MUST_CHECK enum status chain_mark_inside(bool *inside, const struct tape *tape,
                                         const struct chain_limits *limits, struct error *error);

/*
 * The second: chains become slices, each of operations of its own. What others read of a chain
 * keeps its id; what nobody reads is no longer there. NULL: there is no chain. The rest as above,
 * and all slices count as repetitions.
 */
MUST_CHECK enum status chain_slice(struct tape **derived, const struct tape *tape,
                                   const struct chain_limits *limits, struct error *error);

#endif /* ENGINE_PLAN_CHAIN_H */
