/*
 * descriptor.h - the items of a program root: an operation or a state, as bytes that can be judged
 * without the tape.
 *
 * The descriptor of an operation holds its kind and attributes. For every tensor that the operation
 * touches it holds where the tensor's root stands (among the items of a trace, the data or the
 * constants) and the hash of the tensor's label. So a reader of the descriptor knows the header of
 * every operand but for the root. The descriptor of a state says which item of a trace holds its
 * next value and how the first is drawn. docs/FORMATS.md, section 4.1, has the bytes.
 *
 * Bytes from outside are hostile: descriptor_read() bounds and checks everything, and rules can run
 * on what it accepts.
 */
#ifndef PROOFS_COMMIT_DESCRIPTOR_H
#define PROOFS_COMMIT_DESCRIPTOR_H

#include "base/digest.h"
#include "engine/tape/repeat.h"

#define DESCRIPTOR_SIZE_MAX     1024
#define DESCRIPTOR_OPERANDS_MAX (OP_INPUTS_MAX + OP_OUTPUTS_MAX)
/* Added to the kind of an operation of a repeat. */
#define DESCRIPTOR_REPEATED     0x4000
/* In place of the kind of an operation. */
#define DESCRIPTOR_STATE        0xffff
#define DESCRIPTOR_STATE_SIZE   51

/* The label of a tensor: its header from this byte on (dims, type, name; not tag and tree root). */
#define DESCRIPTOR_LABEL_AT  64
#define DESCRIPTOR_LABEL_MIN 60
#define DESCRIPTOR_LABEL_MAX (DESCRIPTOR_LABEL_MIN + TENSOR_NAME_MAX)

/* ---- writing ---- */

/* For each tensor of a tape, where its root stands: its item (engine/tape/repeat.h), or the place
 * among the data tensors or constants. */
struct descriptor_places {
    const struct tape *tape; /* borrowed */
    uint32_t *of;
    uint32_t trace_items; /* N, of the trace's list */
    /* Where the tape was unrolled: */
    struct repeat_layout layout;
    uint32_t *carry_of; /* for each tensor the carry that it starts, or TENSOR_NONE */
    uint32_t *joined;   /* the joined carries */
};

MUST_CHECK enum status descriptor_places_find(struct descriptor_places *places,
                                              const struct tape *tape, struct error *error);
void descriptor_places_release(struct descriptor_places *places);

/* Items of the program: operations, joins of a repeat, states. */
uint32_t descriptor_count(const struct tape *tape);

/* The item of an operation; of which micro-batch or node of the joins it is, 0 outside of a repeat.
 * The operation of an item; false: there is no such instance. The item of a state. */
uint32_t descriptor_of_op(uint32_t *instance, const struct tape *tape, struct op_turn maker);
bool descriptor_find_op(struct op_turn *maker, const struct tape *tape, uint32_t item,
                        uint32_t instance);
uint32_t descriptor_of_state(const struct tape *tape, uint32_t state);

/* Does an operation of the tape run in that micro-batch, or for that node of the joins? In the turn
 * of *maker. */
bool descriptor_runs_in(struct op_turn *maker, const struct tape *tape, uint32_t op,
                        uint32_t instance);

/* Writes item number `item` of the program; returns its size. */
size_t descriptor_write(uint8_t bytes[DESCRIPTOR_SIZE_MAX], const struct descriptor_places *places,
                        uint32_t item);

/* Is the descriptor that of an operation of a repeat? At least two bytes. */
bool descriptor_is_repeated(const uint8_t *bytes);

/* The label of a sound tensor, its size, and the label's hash. */
size_t descriptor_label(uint8_t label[DESCRIPTOR_LABEL_MAX], const struct tensor *tensor);
void descriptor_label_hash(struct digest *hash, const struct tensor *tensor);

/* The root that a job commits to. */
MUST_CHECK enum status descriptor_program_root(struct digest *root, const struct tape *tape,
                                               struct error *error);

/* ---- reading ---- */

/* How the place of an operand of a repeated operation depends on the instance. */
enum descriptor_way {
    DESCRIPTOR_FIXED = 0, /* `place` */
    DESCRIPTOR_OWN,       /* item number `place` of what the micro-batch hands on */
    DESCRIPTOR_CARRIED,   /* `place`; of later micro-batches item `other` of the one before */
    DESCRIPTOR_SUMMED,    /* the same, and `place` again for the first of each group */
    DESCRIPTOR_INNER,     /* item number `place` of the micro-batch's own list */
    DESCRIPTOR_JOIN,      /* item number `place` of the node */
    DESCRIPTOR_LEFT,      /* of its left child: the same, or item `other` of the group's last */
    DESCRIPTOR_RIGHT,     /* of its right child */
    DESCRIPTOR_WAYS,
};

struct descriptor_operand {
    enum dtype dtype;
    enum role role;
    uint32_t place;
    uint64_t count;
    struct digest label;
    enum descriptor_way way;
    uint32_t other; /* the item of a micro-batch that `way` leads to */
};

struct descriptor {
    bool is_state;
    bool is_repeated; /* an operation of a repeat: places are of no use before descriptor_at() */
    struct repeat_layout layout;
    uint32_t batch; /* the micro-batch whose own list its operands may be in, or TENSOR_NONE */
    /* Of an operation; its tensor ids are numbers of operands, inputs before outputs. */
    struct op op;
    uint32_t operand_count;
    struct descriptor_operand operands[DESCRIPTOR_OPERANDS_MAX];
    /* Of a state. */
    uint32_t state;
    uint32_t state_count;
    uint32_t next; /* the item of the trace that holds its next value; `state` if it stays */
    struct digest label;
    struct init init;
};

/* Reads exactly size bytes; checks an operation as op_check() does. */
MUST_CHECK enum status descriptor_read(struct descriptor *descriptor, const uint8_t *bytes,
                                       size_t size, struct error *error);

/* The descriptor of an operation of the tape in a turn, with the items of its operands. */
void descriptor_of_turn(struct descriptor *descriptor, const struct descriptor_places *places,
                        struct op_turn maker);

/* Gives the operands of a repeated operation their items; trace_items: N, of the trace's list.
 * False: there is no such instance. */
MUST_CHECK bool descriptor_at(struct descriptor *descriptor, uint32_t instance,
                              uint32_t trace_items);

#endif /* PROOFS_COMMIT_DESCRIPTOR_H */
