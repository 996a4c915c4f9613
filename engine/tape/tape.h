/*
 * tape.h - the straight-line program of one training step.
 *
 * A tape is a table of tensors and a list of operations in order. Every temporary tensor is the
 * output of exactly one operation, which stands before its readers: there are no cycles and no
 * overwriting. What is not temporary has a name of its own. State tensors are read by operations
 * and given their next value by a pair (before, after) of one name and shape, so that both have the
 * same root when they are equal. A tape is immutable once made: by a builder (builder.h) or from
 * bytes.
 *
 * Bytes from outside are hostile: tape_parse() bounds and checks everything, and tape_footprint()
 * says what memory a tape would need before anything is allocated for running it.
 */
#ifndef ENGINE_TAPE_TAPE_H
#define ENGINE_TAPE_TAPE_H

#include "engine/ops/op.h"

#define TAPE_TENSORS_MAX 1000000u
#define TAPE_OPS_MAX     500000u
#define TAPE_BYTES_MAX   (UINT64_C(256) << 20)

/* "There is no such tensor." */
#define TENSOR_NONE UINT32_MAX

struct state_pair {
    uint32_t before; /* the state tensor */
    uint32_t after;  /* the tensor that holds its next value; before itself if it never changes */
};

struct tape {
    uint32_t tensor_count;
    uint32_t op_count;
    uint32_t state_count;
    uint32_t loss; /* a binary32 tensor of one element, or TENSOR_NONE */
    struct tensor *tensors;
    struct op *ops;
    struct state_pair *states; /* in the order of the state tensors */
};

/* Frees a tape and its tables; NULL is allowed. */
void tape_free(struct tape *tape);

/* Is tape sound? Names the operation or tensor that is not. */
MUST_CHECK enum status tape_check(const struct tape *tape, struct error *error);

/*
 * The canonical bytes (docs/FORMATS.md): equal tapes have equal bytes and the reverse.
 * tape_encode() writes them to bytes, which has room for tape_encoded_size() bytes.
 */
uint64_t tape_encoded_size(const struct tape *tape);
void tape_encode(uint8_t *bytes, const struct tape *tape);

/* Makes a checked tape from untrusted bytes; the caller frees it. */
MUST_CHECK enum status tape_parse(struct tape **tape, const uint8_t *bytes, uint64_t size,
                                  struct error *error);

/* Sizes in bytes, saturating at UINT64_MAX. */
struct tape_footprint {
    uint64_t state;    /* what lives across steps: a checkpoint */
    uint64_t constant; /* held in the job */
    uint64_t data;     /* the training data */
    uint64_t trace;    /* every output of every operation */
};
struct tape_footprint tape_footprint(const struct tape *tape);

/*
 * A readable form: the lasting tensors, then one operation a line. *text is allocated; the caller
 * frees it. A tape whose text would pass TAPE_TEXT_MAX bytes is refused.
 */
#define TAPE_TEXT_MAX (UINT64_C(64) << 20)
MUST_CHECK enum status tape_text(char **text, const struct tape *tape, struct error *error);

#endif /* ENGINE_TAPE_TAPE_H */
