/*
 * reverse_core.h - the inside of the reverse pass, for the files that hold gradient rules.
 */
#ifndef ENGINE_TAPE_REVERSE_CORE_H
#define ENGINE_TAPE_REVERSE_CORE_H

#include "engine/tape/builder_core.h"

struct reverse {
    struct builder *builder;
    uint32_t *grad;     /* per tensor of the forward tape */
    bool *wanted;       /* per tensor: does it depend on one of `of`? */
    uint32_t count;     /* tensors of the forward tape */
    const uint32_t *of; /* the tensors whose gradients the caller wants */
    uint32_t of_count;
    struct op current;   /* a copy: the table of operations moves as it grows */
    const struct op *op; /* current */
};

/* Does the input in this slot depend on one of `of`? */
bool reverse_wants(const struct reverse *reverse, uint32_t slot);

/* Adds to the gradient of the input in this slot. */
void reverse_add(struct reverse *reverse, uint32_t slot, uint32_t gradient);

/* Adds dy summed over all elements i that read one element of the operand, that at (i/div)%mod. */
void reverse_add_reduced(struct reverse *reverse, uint32_t slot, uint32_t dy, uint64_t div,
                         uint64_t mod);

/* The gradient rule of each row of op_list.h: dy is the gradient of the operation's main output. */
typedef void gradient_function(struct reverse *reverse, uint32_t dy);
#define OP_GRADIENT(rule, output) gradient_function grad_##rule;
#define OP_NO_GRADIENT
#define GRADIENT(NAME, text, spec, rules, gradient, ...) gradient
OP_LIST(GRADIENT)
#undef GRADIENT
#undef OP_GRADIENT
#undef OP_NO_GRADIENT

#endif /* ENGINE_TAPE_REVERSE_CORE_H */
