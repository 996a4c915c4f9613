/* op_spec.c - see op_spec.h and op.h. */
#include "engine/ops/op_spec.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/ops/op_checker.h"

#define IMAGE_NAMES                                                                                \
    "batch height width channels kernel_height kernel_width stride_y stride_x top left bottom "    \
    "right dilation_y dilation_x"
#define VIEW_NAMES "b0 b1 r0 r1 k0 k1 sb0 sb1 sr0 sr1 sk0 sk1"
#define FIXED(inputs, outputs, attributes, check)                                                  \
    (inputs), (outputs), (attributes), COUNTS_EXACT, op_check_##check

static const struct op_spec specs[OP_KIND_COUNT] = {
    [OP_STEP_NEXT] = {"step-next", "step", "next", "", FIXED(1, 1, 0, step_next)},
    [OP_SCHEDULE] = {"schedule", "table step", "value", "columns column",
                     FIXED(2, 1, SCHEDULE_ATTRIBUTES, schedule)},
    [OP_FILL] = {"fill", "", "out", "value_bits", FIXED(0, 1, FILL_ATTRIBUTES, fill)},
    [OP_BATCH_TOKENS] = {"batch-tokens", "data step", "tokens targets",
                         "count length stream seed_low seed_high",
                         FIXED(2, 2, BATCH_TOKENS_ATTRIBUTES, batch_tokens)},
    [OP_BATCH_SAMPLES] = {"batch-samples", "samples labels step", "x y",
                          "count length stream seed_low seed_high scale_bits",
                          FIXED(3, 2, BATCH_SAMPLES_ATTRIBUTES, batch_samples)},
    [OP_DROPOUT] = {"dropout", "x step", "out", "threshold scale_bits stream seed_low seed_high",
                    FIXED(2, 1, DROPOUT_ATTRIBUTES, dropout)},
    [OP_GATHER] = {"gather", "table index", "out", "vocabulary width",
                   FIXED(2, 1, GATHER_ATTRIBUTES, gather)},
    [OP_SPLIT] = {"split", "x", "part ...", "rows width ...", 1, 1, 2, COUNTS_MORE, op_check_split},
    [OP_CONCAT] = {"concat", "part ...", "out", "rows width ...", 1, 1, 2, COUNTS_MORE,
                   op_check_concat},
    [OP_EXPAND] = {"expand", "a", "out", "div mod", FIXED(1, 1, EXPAND_ATTRIBUTES, expand)},
    [OP_IM2COL] = {"im2col", "x", "out", IMAGE_NAMES, FIXED(1, 1, IMAGE_ATTRIBUTES, im2col)},
    [OP_COL2IM] = {"col2im", "x", "out", IMAGE_NAMES, FIXED(1, 1, IMAGE_ATTRIBUTES, col2im)},
    [OP_ADD] = {"add", "a b", "out", "div mod", FIXED(2, 1, BROADCAST_ATTRIBUTES, binary)},
    [OP_MUL] = {"mul", "a b", "out", "div mod", FIXED(2, 1, BROADCAST_ATTRIBUTES, binary)},
    [OP_SCALE] = {"scale", "a", "out", "factor_bits", FIXED(1, 1, SCALE_ATTRIBUTES, scale)},
    [OP_RELU] = {"relu", "x", "out", "", FIXED(1, 1, 0, unary)},
    [OP_RELU_GRAD] = {"relu-grad", "x dy", "dx", "", FIXED(2, 1, 0, unary_grad)},
    [OP_GELU] = {"gelu", "x", "out", "", FIXED(1, 1, 0, unary)},
    [OP_GELU_GRAD] = {"gelu-grad", "x dy", "dx", "", FIXED(2, 1, 0, unary_grad)},
    [OP_SILU] = {"silu", "x", "out", "", FIXED(1, 1, 0, unary)},
    [OP_SILU_GRAD] = {"silu-grad", "x dy", "dx", "", FIXED(2, 1, 0, unary_grad)},
    [OP_ROTARY] = {"rotary", "x table", "out", "length heads width inverse halves",
                   FIXED(2, 1, ROTARY_ATTRIBUTES, rotary)},
    [OP_SQUARED_ERROR] = {"squared-error", "a b", "out", "", FIXED(2, 1, 0, squared_error)},
    [OP_SQUARED_ERROR_GRAD] = {"squared-error-grad", "a b dy", "da", "",
                               FIXED(3, 1, 0, squared_error_grad)},
    [OP_QUANTIZE] = {"quantize", "x c", "peaks exponents q", VIEW_NAMES " bits block", 1, 3,
                     QUANTIZE_ATTRIBUTES, COUNTS_OPTIONAL, op_check_quantize},
    [OP_CONTRACT] = {"contract", "qa ea qb eb", "out",
                     "b0 b1 m0 m1 n0 n1 sb0 sb1 sm0 sm1 sn0 sn1 k bits block causal",
                     FIXED(4, 1, CONTRACT_ATTRIBUTES, contract)},
    [OP_CONTRACT_ONES] = {"contract-ones", "q e", "out", "rows k bits block",
                          FIXED(2, 1, ONES_ATTRIBUTES, contract_ones)},
    [OP_CONTRACT_ONEHOT] = {"contract-onehot", "index q e", "out", "vocabulary width k bits block",
                            FIXED(3, 1, ONEHOT_ATTRIBUTES, contract_onehot)},
    [OP_ROW_SUM] = {"row-sum", "x", "part sum", "rows columns",
                    FIXED(1, 2, ROW_SUM_ATTRIBUTES, row_sum)},
    [OP_LAYER_NORM] = {"layer-norm", "x gain bias", "sum_part mean square_part rstd y",
                       "rows columns epsilon_bits", FIXED(3, 5, NORM_ATTRIBUTES, layer_norm)},
    [OP_LAYER_NORM_GRAD] = {"layer-norm-grad", "dy x gain mean rstd",
                            "part_g part_gx mean_g mean_gx dx product", "rows columns",
                            FIXED(5, 6, NORM_GRAD_ATTRIBUTES, layer_norm_grad)},
    [OP_RMS_NORM] = {"rms-norm", "x gain", "square_part rstd y", "rows columns epsilon_bits",
                     FIXED(2, 3, NORM_ATTRIBUTES, rms_norm)},
    [OP_RMS_NORM_GRAD] = {"rms-norm-grad", "dy x gain rstd", "part_gx mean_gx dx product",
                          "rows columns", FIXED(4, 4, NORM_GRAD_ATTRIBUTES, rms_norm_grad)},
    [OP_SOFTMAX] = {"softmax", "x reach", "max_part max exps sum_part sum p",
                    "rows columns causal scale_bits", 1, 6, SOFTMAX_ATTRIBUTES, COUNTS_OPTIONAL,
                    op_check_softmax},
    [OP_SOFTMAX_GRAD] = {"softmax-grad", "p dp reach", "dot_part dot dx",
                         "rows columns causal scale_bits", 2, 3, SOFTMAX_ATTRIBUTES,
                         COUNTS_OPTIONAL, op_check_softmax_grad},
    [OP_CROSS_ENTROPY] = {"cross-entropy", "x target", "max_part max exps sum_part sum loss",
                          "rows columns", FIXED(2, 6, CROSS_ENTROPY_ATTRIBUTES, cross_entropy)},
    [OP_CROSS_ENTROPY_GRAD] = {"cross-entropy-grad", "x target max sum dloss", "dx", "rows columns",
                               FIXED(5, 1, CROSS_ENTROPY_ATTRIBUTES, cross_entropy_grad)},
    [OP_MAX_POOL] = {"max-pool", "x", "y index", IMAGE_NAMES,
                     FIXED(1, 2, IMAGE_ATTRIBUTES, max_pool)},
    [OP_MAX_POOL_GRAD] = {"max-pool-grad", "index dy", "dx", IMAGE_NAMES,
                          FIXED(2, 1, IMAGE_ATTRIBUTES, max_pool_grad)},
    [OP_MEAN_POOL] = {"mean-pool", "x", "y", IMAGE_NAMES " counts_padding",
                      FIXED(1, 1, MEAN_POOL_ATTRIBUTES, mean_pool)},
    [OP_MEAN_POOL_GRAD] = {"mean-pool-grad", "dy", "dx", IMAGE_NAMES " counts_padding",
                           FIXED(1, 1, MEAN_POOL_ATTRIBUTES, mean_pool_grad)},
    [OP_CLIP_FACTOR] = {"clip-factor", "square", "factor", "limit_bits",
                        FIXED(1, 1, CLIP_ATTRIBUTES, clip_factor)},
    [OP_SGD] = {"sgd", "p g v rate gscale", "p v", "momentum_bits decay_bits",
                FIXED(5, 2, SGD_ATTRIBUTES, sgd)},
    [OP_ADAMW] = {"adamw", "p g m v rate correct1 correct2 gscale", "p m v",
                  "beta1_bits one_less_beta1_bits beta2_bits one_less_beta2_bits epsilon_bits "
                  "decay_bits",
                  FIXED(8, 3, ADAMW_ATTRIBUTES, adamw)},
    [OP_MAP] = {"map", "x", "out", "function", FIXED(1, 1, MAP_ATTRIBUTES, map)},
    [OP_BINARY] = {"binary", "a b", "out", "function d0 d1 d2 d3 a0 a1 a2 a3 b0 b1 b2 b3",
                   FIXED(2, 1, BINARY_ATTRIBUTES, general_binary)},
    [OP_SELECT] = {"select", "c a b", "out", "d0 d1 d2 d3 c0 c1 c2 c3 a0 a1 a2 a3 b0 b1 b2 b3",
                   FIXED(3, 1, SELECT_ATTRIBUTES, select)},
    [OP_MOVE] = {"move", "x", "out", "d0 d1 d2 d3 d4 s0 s1 s2 s3 s4 offset",
                 FIXED(1, 1, MOVE_ATTRIBUTES, move)},
    [OP_CAST] = {"cast", "x", "out", "", FIXED(1, 1, 0, cast)},
    [OP_PLACE] = {"place", "x base", "out", "d0 d1 d2 d3 d4 s0 s1 s2 s3 s4 offset",
                  FIXED(2, 1, MOVE_ATTRIBUTES, place)},
    [OP_REDUCE] = {"reduce", "x", "part part_index y index", "rows columns function",
                   FIXED(1, 4, REDUCE_ATTRIBUTES, reduce)},
    [OP_GATHER_ELEMENTS] = {"gather-elements", "x index", "out", "rows columns",
                            FIXED(2, 1, GATHER_ELEMENTS_ATTRIBUTES, gather_elements)},
    [OP_GATHER_ELEMENTS_GRAD] = {"gather-elements-grad", "index dy", "dx", "rows columns",
                                 FIXED(2, 1, GATHER_ELEMENTS_ATTRIBUTES, gather_elements_grad)},
    [OP_EQUILIBRATE] = {"equilibrate", "e f", "c minus_c", "rows e_width f_width", 1, 2,
                        EQUILIBRATE_ATTRIBUTES, COUNTS_OPTIONAL, op_check_equilibrate},
};

const struct op_spec *op_spec(enum op_kind kind)
{
    assert((unsigned)kind < OP_KIND_COUNT);
    return &specs[kind];
}

const char *op_kind_name(enum op_kind kind)
{
    return (unsigned)kind < OP_KIND_COUNT ? specs[kind].name : NULL;
}

void op_spec_name(char *name, size_t size, const char *names, uint32_t index)
{
    const char *at = names;
    size_t length = strcspn(at, " ");

    while (index > 0 && at[length] == ' ' && strncmp(at + length, " ...", 4) != 0) {
        at += length + 1;
        length = strcspn(at, " ");
        index--;
    }
    if (index > 0) {
        (void)snprintf(name, size, "%.*s%u", (int)length, at, index);
    } else {
        (void)snprintf(name, size, "%.*s", (int)length, at);
    }
}
