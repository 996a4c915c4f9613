/*
 * liar.h - a machine that shows another tensor than it makes: an accused who cheats.
 *
 * It stands before an honest machine, which it borrows. In trace mode one tensor of the trace is
 * shown with a lie in it, each time alike; what is computed from that tensor stays honest, so the
 * lie is the only one. But where a micro-batch keeps the tensor to itself, the last thing that it
 * hands on is shown with another lie: else nobody would come to look. Any failure here ends the
 * program with a sentence.
 */
#ifndef TESTS_SUPPORT_DISPUTE_LIAR_H
#define TESTS_SUPPORT_DISPUTE_LIAR_H

#include "engine/plan/backend.h"

enum lie_kind {
    LIE_ULP = 0, /* the next number */
    LIE_SIGN,
    LIE_NAN,        /* all bits set but, of a float, the sign */
    LIE_SWAP,       /* two neighbours change places */
    LIE_ROWS,       /* the two halves of the tensor change places */
    LIE_KIND_COUNT, /* of those that fit any tensor */
    LIE_HALF,       /* half the number, of f32 */
};

struct lie {
    uint32_t item; /* which tensor of the trace */
    uint64_t element;
    enum lie_kind kind;
};

struct liar {
    struct machine machine; /* first: what others are given */
    struct machine *honest;
    struct lie lie;
    uint32_t handed_on;   /* the item with the other lie, or TENSOR_NONE */
    void *state;          /* the honest bytes of the state that is lied about, or NULL */
    uint64_t changed;     /* set with each lie: the first byte that differs */
    uint64_t changed_end; /* behind the last one */
};

/* The honest machine stands before the step that is lied about. */
void liar_open(struct liar *liar, struct machine *honest, const struct lie *lie);
void liar_close(struct liar *liar);

/* Puts the lie into bytes; a kind that changes nothing there is told as LIE_ULP. */
void liar_lie(uint8_t *bytes, const struct tensor *tensor, const struct lie *lie);

#endif /* TESTS_SUPPORT_DISPUTE_LIAR_H */
