/*
 * op_checker.h - the checks of one untrusted operation. The first one that fails sets the error.
 *
 * Inside the engine only. The helpers never overflow: a product past TENSOR_COUNT_MAX fails the
 * check and yields zero, so every later comparison is harmless.
 */
#ifndef ENGINE_OPS_OP_CHECKER_H
#define ENGINE_OPS_OP_CHECKER_H

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

/* One check per kind, or per group of kinds with the same shapes. */
typedef void op_check_function(struct op_checker *checker);
op_check_function op_check_step_next;
op_check_function op_check_schedule;
op_check_function op_check_fill;
op_check_function op_check_batch_tokens;
op_check_function op_check_batch_samples;
op_check_function op_check_dropout;
op_check_function op_check_gather;
op_check_function op_check_split;
op_check_function op_check_concat;
op_check_function op_check_expand;
op_check_function op_check_im2col;
op_check_function op_check_col2im;
op_check_function op_check_binary;
op_check_function op_check_scale;
op_check_function op_check_unary;
op_check_function op_check_unary_grad;
op_check_function op_check_rotary;
op_check_function op_check_squared_error_grad;
op_check_function op_check_squared_error;
op_check_function op_check_quantize;
op_check_function op_check_equilibrate;
op_check_function op_check_contract;
op_check_function op_check_contract_ones;
op_check_function op_check_contract_onehot;
op_check_function op_check_row_sum;
op_check_function op_check_layer_norm;
op_check_function op_check_layer_norm_grad;
op_check_function op_check_rms_norm;
op_check_function op_check_rms_norm_grad;
op_check_function op_check_softmax;
op_check_function op_check_softmax_grad;
op_check_function op_check_cross_entropy;
op_check_function op_check_cross_entropy_grad;
op_check_function op_check_reduce;
op_check_function op_check_gather_elements;
op_check_function op_check_gather_elements_grad;
op_check_function op_check_max_pool;
op_check_function op_check_max_pool_grad;
op_check_function op_check_mean_pool;
op_check_function op_check_mean_pool_grad;
op_check_function op_check_clip_factor;
op_check_function op_check_sgd;
op_check_function op_check_adamw;
op_check_function op_check_map;
op_check_function op_check_general_binary;
op_check_function op_check_select;
op_check_function op_check_move;
op_check_function op_check_place;
op_check_function op_check_cast;

#endif /* ENGINE_OPS_OP_CHECKER_H */
