/*
 * op_checker.h - the checks of one untrusted operation. The first one that fails sets the error.
 *
 * Inside the engine only. The helpers never overflow: a product past TENSOR_COUNT_MAX fails the
 * check and yields zero, so every later comparison is harmless.
 */
#ifndef ENGINE_OPS_SPEC_OP_CHECKER_H
#define ENGINE_OPS_SPEC_OP_CHECKER_H

#include "engine/ops/op.h"

/* Sets of element types. */
#define DTYPES(dtype) (1u << (dtype))
#define DTYPES_F32    DTYPES(DTYPE_F32)
#define DTYPES_U32    DTYPES(DTYPE_U32)
#define DTYPES_I16    DTYPES(DTYPE_I16)
/* Numbers that quantize and gather read. */
#define DTYPES_NUMBER (DTYPES_F32 | DTYPES(DTYPE_F16) | DTYPES(DTYPE_BF16))
#define DTYPES_TOKEN  (DTYPES(DTYPE_U8) | DTYPES(DTYPE_U16) | DTYPES(DTYPE_U32))

struct op_checker {
    const struct op *op;
    const struct tensor *tensors;
    struct error *error;
    enum status status;
};

/* The attribute at position. Outside of low..high the check fails, and low is returned. */
uint64_t check_attribute(struct op_checker *checker, uint32_t position, uint64_t low,
                         uint64_t high);

/* The product of two sizes. Past TENSOR_COUNT_MAX the check fails, and zero is returned. */
uint64_t check_product(struct op_checker *checker, uint64_t a, uint64_t b);

void check_input(struct op_checker *checker, uint32_t slot, uint32_t dtypes, uint64_t count);
void check_output(struct op_checker *checker, uint32_t slot, uint32_t dtypes, uint64_t count);

/* The element count of an input that must have one of dtypes and at least low elements. */
uint64_t check_any_input(struct op_checker *checker, uint32_t slot, uint32_t dtypes, uint64_t low);

/* A binary32 constant; the only NaN allowed is the canonical one. */
void check_float(struct op_checker *checker, uint32_t position);

/*
 * The elements that a view over `axes` axes reads. The strides must be a permutation of them: in
 * order of stride, each is the product of the axes below it. An axis of length one may have any
 * stride. With repeats, an axis of stride 0 reads the same elements again.
 */
uint64_t check_view(struct op_checker *checker, uint32_t axes, uint32_t dims_at,
                    uint32_t strides_at, bool repeats);

/* Fails the check with a sentence, unless it has failed already. */
void check_fail(struct op_checker *checker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The check of each row of op_list.h: one per kind, or per group of kinds with the same shapes. */
typedef void op_check_function(struct op_checker *checker);
#define OP_SPEC(ins, in_names, outs, out_names, counts, SET, check) op_check_##check
#define CHECK(NAME, text, spec, ...)                                op_check_function spec;
OP_LIST(CHECK)
#undef CHECK
#undef OP_SPEC

#endif /* ENGINE_OPS_SPEC_OP_CHECKER_H */
