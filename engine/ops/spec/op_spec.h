/*
 * op_spec.h - of each kind the names, the counts and the check, as op_list.h has them. Inside the
 * engine only.
 */
#ifndef ENGINE_OPS_SPEC_OP_SPEC_H
#define ENGINE_OPS_SPEC_OP_SPEC_H

#include "engine/ops/op.h"

struct op_checker;

/* COUNTS_OPTIONAL: one input more may stand there (SOFTMAX). COUNTS_MORE: all counts may exceed the
 * minima (SPLIT, CONCAT). */
struct op_spec {
    const char *name;
    const char *inputs;     /* names, separated by spaces or commas; the last one repeats */
    const char *outputs;    /* likewise */
    const char *attributes; /* likewise; names that end in _bits print as numbers */
    uint8_t input_count_min;
    uint8_t output_count_min;
    uint8_t attribute_count_min;
    enum { COUNTS_EXACT, COUNTS_OPTIONAL, COUNTS_MORE } counts;
    void (*check)(struct op_checker *checker);
};

/* The specification of kind, which must be below OP_KIND_COUNT. */
const struct op_spec *op_spec(enum op_kind kind);

/* Copies the index-th name of a list of names in small letters; past the last one it repeats, with
 * a number. */
void op_spec_name(char *name, size_t size, const char *names, uint32_t index);

#endif /* ENGINE_OPS_SPEC_OP_SPEC_H */
