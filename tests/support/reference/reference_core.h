/*
 * reference_core.h - the inside of the double-precision interpreter, for its files only.
 *
 * reference.c holds the tables and the plain operations, reference_rows.c those along rows,
 * reference_image.c those over pictures, reference_product.c the contractions, reference_general.c
 * the general kinds.
 */
#ifndef TESTS_SUPPORT_REFERENCE_REFERENCE_CORE_H
#define TESTS_SUPPORT_REFERENCE_REFERENCE_CORE_H

#include "tests/support/reference/reference.h"

struct reference {
    const struct tape *tape;
    enum reference_mode mode;
    double **values;   /* per tensor; NULL for data */
    const void **data; /* per tensor; NULL for all but data */
};

/* One operation being run. */
struct reference_op {
    const struct reference *reference;
    const struct op *op;
    const int64_t *attributes;
    const double *in[OP_INPUTS_MAX]; /* NULL for data */
    double *out[OP_OUTPUTS_MAX];
    int64_t in_count[OP_INPUTS_MAX];
    int64_t out_count[OP_OUTPUTS_MAX];
};

typedef void reference_function(const struct reference_op *run);

/* A binary32 constant among the attributes. */
double reference_constant(const struct reference_op *run, int position);

/* calloc() that ends the program without memory. */
void *reference_room(size_t count, size_t size);

reference_function reference_quantize;
reference_function reference_equilibrate;
reference_function reference_contract;
reference_function reference_contract_ones;
reference_function reference_contract_onehot;
reference_function reference_contract_chosen;
reference_function reference_contract_chosen_rows;
reference_function reference_row_sum;
reference_function reference_layer_norm;
reference_function reference_layer_norm_grad;
reference_function reference_rms_norm;
reference_function reference_rms_norm_grad;
reference_function reference_reduce;
reference_function reference_gather_elements;
reference_function reference_gather_elements_grad;
reference_function reference_integer;
reference_function reference_take;
reference_function reference_scatter;
reference_function reference_sort;
reference_function reference_softmax;
reference_function reference_softmax_grad;
reference_function reference_cross_entropy;
reference_function reference_cross_entropy_grad;
reference_function reference_im2col;
reference_function reference_col2im;
reference_function reference_max_pool;
reference_function reference_max_pool_grad;
reference_function reference_mean_pool;
reference_function reference_mean_pool_grad;
reference_function reference_map;
reference_function reference_binary;
reference_function reference_select;
reference_function reference_move;
reference_function reference_place;
reference_function reference_cast;

#endif /* TESTS_SUPPORT_REFERENCE_REFERENCE_CORE_H */
