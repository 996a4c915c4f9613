/*
 * builder.h - writes tapes: tensors, operations, matrix products, and the reverse pass.
 *
 * A builder keeps its first failure. After it every call does nothing and returns tensor 0, and
 * builder_finish() returns the failure; so a model is a plain sequence of calls. Tensor ids count
 * up from 0. Shapes follow from the inputs; a caller gives only those that do not.
 */
#ifndef ENGINE_TAPE_BUILDER_H
#define ENGINE_TAPE_BUILDER_H

#include "engine/tape/tape.h"

struct builder;

/* Bits and block of every contraction of the tape: see op.h. */
struct precision {
    uint32_t bits;
    uint32_t block; /* 0: the whole row */
};
#define PRECISION_DEFAULT ((struct precision){14, 128})

/* A view of a tensor through six axes, each with a stride: batch0 batch1 row0 row1 k0 k1. */
struct view {
    uint64_t dims[6];
    uint64_t strides[6];
};

/* Returns NULL when there is no memory. */
struct builder *builder_new(struct precision precision);

/*
 * From now on gradients of products shift the rows that they sum over (build_equilibrate()): tokens
 * that are much larger than others, with gradients that are much smaller, cost no bits.
 */
void builder_equilibrate(struct builder *builder);
void builder_free(struct builder *builder); /* NULL is allowed */

/* Returns the tape. The caller frees it, and the builder, which takes no further calls. */
MUST_CHECK enum status builder_finish(struct tape **tape, struct builder *builder,
                                      struct error *error);

/* ---- tensors ------------------------------------------------------------ */

uint32_t build_tensor(struct builder *builder, const char *name, enum dtype dtype, enum role role,
                      uint32_t rank, const uint64_t *dims);

/* The u32 state tensor "step". The first call makes it and its successor. */
uint32_t build_step(struct builder *builder);

/* Names the next value of a state tensor. A state without one never changes. */
void build_after(struct builder *builder, uint32_t state, uint32_t after);

/* The next value of a state tensor. */
uint32_t builder_after(const struct builder *builder, uint32_t state);

/* How the first value of a state tensor is drawn. A state without a rule must be given. */
void build_init(struct builder *builder, uint32_t state, struct init init);

/* Makes an operation's output readable after the step, under a name. */
void build_output(struct builder *builder, const char *name, uint32_t tensor);

void build_loss(struct builder *builder, uint32_t loss);

/* Prefix of the names of the tensors that follow: "h.0.attn"; "" for none. */
void build_scope(struct builder *builder, const char *scope);

/* Gives what an operation made another shape of as many elements; nothing moves. Returns it. */
uint32_t build_reshape(struct builder *builder, uint32_t made, uint32_t rank, const uint64_t *dims);

const struct tensor *builder_tensor(const struct builder *builder, uint32_t id);

/* ---- operations --------------------------------------------------------- */

/* Appends any operation and fills in op->outputs. The other calls are short forms of this one. */
struct output_shape {
    enum dtype dtype;
    uint32_t rank;
    uint64_t dims[TENSOR_RANK_MAX];
};
void build_op(struct builder *builder, struct op *op, const struct output_shape *shapes);

uint32_t build_schedule(struct builder *builder, uint32_t table, uint32_t columns, uint32_t column);
uint32_t build_fill(struct builder *builder, float value, uint32_t rank, const uint64_t *dims);
uint32_t build_gather(struct builder *builder, uint32_t table, uint32_t index);
/* Element i reads b at (i/div) % its element count, in whole turns. */
uint32_t build_add(struct builder *builder, uint32_t a, uint32_t b, uint64_t div);
uint32_t build_mul(struct builder *builder, uint32_t a, uint32_t b, uint64_t div);
uint32_t build_scale(struct builder *builder, uint32_t a, float factor);
/* x once more; no gradient passes through it. */
uint32_t build_stop(struct builder *builder, uint32_t x);
/* Not MAP_SCALE. */
uint32_t build_map(struct builder *builder, enum map_function function, uint32_t x);
/* The shapes of the operands are aligned at their last axes; an axis of length 1 repeats. */
uint32_t build_binary(struct builder *builder, enum binary_function function, uint32_t a,
                      uint32_t b);
/* c != 0 ? a : b, element by element; shapes as in build_binary(). */
uint32_t build_select(struct builder *builder, uint32_t c, uint32_t a, uint32_t b);

/* The axes of a MOVE or a PLACE: see op.h. */
struct move {
    int64_t dims[MOVE_AXES];
    int64_t strides[MOVE_AXES];
    int64_t offset;
};
/* The elements of x at the places of the move, in a tensor of shape dims. */
uint32_t build_move(struct builder *builder, uint32_t x, const struct move *move, uint32_t rank,
                    const uint64_t *dims);
/* base, and x over it at the places of the move. A base of one element fills a tensor of shape
 * dims. */
uint32_t build_place(struct builder *builder, uint32_t x, uint32_t base, const struct move *move,
                     uint32_t rank, const uint64_t *dims);
/* Axis i of the result is axis order[i] of x. */
uint32_t build_permute(struct builder *builder, uint32_t x, const uint32_t *order);
/* counts[i] elements along axis i: starts[i], starts[i] + steps[i], ...; a step may be negative. */
uint32_t build_slice(struct builder *builder, uint32_t x, const uint64_t *starts,
                     const uint64_t *counts, const int64_t *steps);
/* x with before[i] and after[i] elements of the value around it along axis i. */
uint32_t build_pad(struct builder *builder, uint32_t x, const uint64_t *before,
                   const uint64_t *after, float value);
/* x as another type: see op.h. */
uint32_t build_cast(struct builder *builder, uint32_t x, enum dtype dtype);
/* The parts one after the other along an axis; their other axes are alike. */
uint32_t build_join(struct builder *builder, const uint32_t *parts, uint32_t count, uint32_t axis);
uint32_t build_expand(struct builder *builder, uint32_t a, uint64_t div, uint32_t rank,
                      const uint64_t *dims);
/* Splits the last axis into count parts of equal width. */
void build_split(struct builder *builder, uint32_t *parts, uint32_t count, uint32_t x);
/* The same into parts of these widths. */
void build_split_widths(struct builder *builder, uint32_t *parts, const uint64_t *widths,
                        uint32_t count, uint32_t x);
uint32_t build_layer_norm(struct builder *builder, uint32_t x, uint32_t gain, uint32_t bias,
                          float epsilon);
uint32_t build_rms_norm(struct builder *builder, uint32_t x, uint32_t gain, float epsilon);
/*
 * Normalizes each channel over the whole batch, by its mean and its variance (divided by the
 * count), then times gain and plus bias, one of each a channel. Element i has the channel (i /
 * inner) % channels: inner is height*width where channels stand before them, 1 where they stand
 * last. The mean and the variance go to statistics, for running averages; NULL is allowed.
 */
uint32_t build_batch_norm(struct builder *builder, uint32_t x, uint32_t gain, uint32_t bias,
                          uint64_t inner, float epsilon, uint32_t statistics[2]);
/* Normalizes the channels of each group of each picture (batch, channels, inner) together; with as
 * many groups as channels it is the normalization of instances. */
uint32_t build_group_norm(struct builder *builder, uint32_t x, uint32_t gain, uint32_t bias,
                          uint64_t inner, uint64_t groups, float epsilon);
/* Rows are the last axis; causal is 0 or the period of op.h. reach: how many columns before its own
 * a row sees at most, u32 (sequences, period); or TENSOR_NONE. */
uint32_t build_softmax(struct builder *builder, uint32_t x, float scale, uint64_t causal,
                       uint32_t reach);
/* Turns the pairs of neighbours in each head, or, with halves, of elements half a head apart. */
uint32_t build_rotary(struct builder *builder, uint32_t x, uint32_t table, uint64_t length,
                      uint64_t heads, bool halves);
uint32_t build_dropout(struct builder *builder, uint32_t x, double share, uint32_t stream,
                       uint64_t seed);
/* IM2COL, COL2IM or a pool. image_attributes are those of op.h, of the kind. */
uint32_t build_image_op(struct builder *builder, enum op_kind kind, uint32_t x,
                        const int64_t *image_attributes);
/* The cross-entropy of each row of logits (rows, vocabulary); +0 where the target is
 * TARGET_IGNORED. */
uint32_t build_cross_entropy_rows(struct builder *builder, uint32_t logits, uint32_t targets);
/* Mean over rows of the cross-entropy of logits (rows, vocabulary): one number. */
uint32_t build_cross_entropy(struct builder *builder, uint32_t logits, uint32_t targets);
/*
 * The same over the rows whose mask, u8 or u32, is not 0. share is build_share() of the mask, or of
 * the mask of all micro-batches of a step, whose losses then sum to the step's. Without a row in
 * the mask the loss and its gradient are 0.
 */
uint32_t build_cross_entropy_masked(struct builder *builder, uint32_t logits, uint32_t targets,
                                    uint32_t mask, uint32_t share);
/* The number of elements that are not 0, at most 2^20: one binary32. */
uint32_t build_marked(struct builder *builder, uint32_t mask);
/* 1 over such a number, or over a sum of them; 1 over 0 is 1. */
uint32_t build_share_of(struct builder *builder, uint32_t marked);
/* build_share_of(build_marked(mask)). */
uint32_t build_share(struct builder *builder, uint32_t mask);
/* The fold of each row of so many columns: one number for each row. */
uint32_t build_row_sum(struct builder *builder, uint32_t x, uint64_t columns);
/* Mean of all elements: one number. */
uint32_t build_mean(struct builder *builder, uint32_t x);

/* ---- contractions ------------------------------------------------------- */

/* A (rows, k) matrix as it lies in memory; and its transpose, whose rows run along x's last axis.
 */
struct view view_matrix(uint64_t rows, uint64_t k);
struct view view_transposed(uint64_t rows, uint64_t k);

/* Quantizes x through view. Equal requests share one operation. */
struct quantized {
    uint32_t q;
    uint32_t exponents;
};
struct quantized build_quantize(struct builder *builder, uint32_t x, const struct view *view,
                                struct precision precision);
/* The same of elements that are shifted along K; SHIFT_NONE: they are not. */
#define SHIFT_NONE UINT32_MAX
struct quantized build_quantize_shifted(struct builder *builder, uint32_t x,
                                        const struct view *view, struct precision precision,
                                        uint32_t shift);

/*
 * The shifts that make a product's operands alike along K: down for one, up for the other. e and f
 * are the exponents of two quantizations whose rows are the product's K elements, batch by batch;
 * f may be SHIFT_NONE: then one operand alone is made even. Channels of a job's choice are e with
 * one number a row.
 */
struct shifts {
    uint32_t down;
    uint32_t up;
};
#define SHIFTS_NONE ((struct shifts){SHIFT_NONE, SHIFT_NONE})
struct shifts build_equilibrate(struct builder *builder, uint64_t rows, uint32_t e, uint32_t f);

/*
 * From now on product number n of two operands, from 0 and with those of the gradients, is built as
 * choose() says: with so many bits, of one block a row, and its operands shifted. Bits of 0 and
 * SHIFTS_NONE choose nothing. Products that shift their tokens are left as they are.
 */
struct product_choice {
    uint32_t bits;
    struct shifts shifts;
};
void builder_choose(struct builder *builder,
                    struct product_choice (*choose)(void *context, uint32_t number), void *context);

/*
 * out[b,m,n] = sum over k of a[b,m,k] * b[b,n,k], stored with out_strides (six axes b0 b1 m0 m1 n0
 * n1) in a tensor of shape dims. Both views must have the same batch and k axes.
 */
uint32_t build_contract(struct builder *builder, uint32_t a, const struct view *a_view, uint32_t b,
                        const struct view *b_view, const uint64_t *out_strides, uint64_t causal,
                        uint32_t rank, const uint64_t *dims);
/* The same with a's elements shifted down and b's up. */
uint32_t build_contract_shifted(struct builder *builder, uint32_t a, const struct view *a_view,
                                uint32_t b, const struct view *b_view, const uint64_t *out_strides,
                                struct shifts shifts, uint32_t rank, const uint64_t *dims);

/* x (..., k) times the transpose of weight (n, k): (..., n). */
uint32_t build_linear(struct builder *builder, uint32_t x, uint32_t weight);
/* x (..., k) times weight (k, n), the layout of some published checkpoints: (..., n). */
uint32_t build_linear_transposed(struct builder *builder, uint32_t x, uint32_t weight);

/* build_linear() with 22 bits, and so are its gradients. */
uint32_t build_linear_wide(struct builder *builder, uint32_t x, uint32_t weight);
/* Row r of x (R, k) times the transpose of weight (experts, n, k) number index[r]: (R, n). A row
 * whose index is no expert becomes NaN. */
uint32_t build_linear_chosen(struct builder *builder, uint32_t x, uint32_t weight, uint32_t index);

/* Sum over the k axes of the view: one number for each of its rows, in their order. */
uint32_t build_sum(struct builder *builder, uint32_t x, const struct view *view);

/* Sum over all axes of x but one: out[c] = sum of x[i] with (i/div) % mod == c, exactly. */
uint32_t build_reduce(struct builder *builder, uint32_t x, uint64_t div, uint64_t mod);

/* The extreme of each row, along the last axis, which is dropped; its column goes to *index, which
 * may be NULL. The gradient goes to that column alone. */
uint32_t build_extreme(struct builder *builder, enum reduce_function function, uint32_t x,
                       uint32_t *index);
/* x[r, index[r]] of each row of the last axis, which is dropped. */
uint32_t build_gather_elements(struct builder *builder, uint32_t x, uint32_t index);

/* x[r, index[r,w]] of each row of the last axis, in the shape of index: so many of each row. */
uint32_t build_take(struct builder *builder, uint32_t x, uint32_t index);
/* base, and x[r,w] at index[r,w] of each row: added, or the last one in its place. */
uint32_t build_scatter(struct builder *builder, enum scatter_function function, uint32_t index,
                       uint32_t x, uint32_t base);

/* Each row of the last axis in order: where each element goes, where each comes from, and they. */
struct sorted {
    uint32_t rank;
    uint32_t index;
    uint32_t y;
};
void build_sort(struct builder *builder, struct sorted *sorted, uint32_t x, bool descending);

/* Row v of the result is the sum of the rows of x (K, C) whose index is v, exactly: dims (V, C). */
uint32_t build_sum_by_index(struct builder *builder, uint32_t index, uint32_t x, uint32_t rank,
                            const uint64_t *dims);

/* Sum of the squares of all elements: one number. */
uint32_t build_square_sum(struct builder *builder, uint32_t x);

/* ---- micro-batches (repeat.h) ------------------------------------------- */

/* What is appended until build_repeat_end() is done for each of `times` micro-batches, in groups of
 * `group`. times 1: there is no repeat. One per tape, and the step exists before it. */
void build_repeat(struct builder *builder, uint32_t times, uint32_t group);
void build_repeat_end(struct builder *builder);

/* The number that batches and dropout are drawn by: the state "micro", which counts the
 * micro-batches of all steps, or without a repeat the step. */
uint32_t build_counter(struct builder *builder);

/* Hands `after` to the next micro-batch, which reads it as `start`, a tensor from before the
 * micro-batches; `after` gets its name. What follows the repeat reads `after` as the last value. */
void build_carry(struct builder *builder, uint32_t start, uint32_t after);

/* The sum of a term over all micro-batches, for what follows the repeat; without a repeat the term
 * itself. Its order is that of repeat.h. */
uint32_t build_accumulated(struct builder *builder, const char *name, uint32_t term);

/* ---- the reverse pass --------------------------------------------------- */

/*
 * Appends the operations that compute the gradient of loss (one element) with respect to each of
 * the count tensors in `of`. gradients[i] is TENSOR_NONE where loss does not depend on of[i].
 */
void build_gradients(struct builder *builder, uint32_t *gradients, uint32_t loss,
                     const uint32_t *of, uint32_t count);

#endif /* ENGINE_TAPE_BUILDER_H */
