/*
 * rule_list.h - the rule of each output of each kind, for the table of rules.c and CUDA's switch.
 *
 * RULE_LIST(ENTRY) expands to ENTRY(kind, output, rule) for each. OP_SPLIT is missing, since it has
 * any number of outputs: rule_split() takes the number.
 */
#ifndef ENGINE_RULES_RULE_LIST_H
#define ENGINE_RULES_RULE_LIST_H

/* clang-format off */
#define RULE_LIST(ENTRY) \
    ENTRY(OP_STEP_NEXT, 0, rule_step_next) \
    ENTRY(OP_SCHEDULE, 0, rule_schedule) \
    ENTRY(OP_FILL, 0, rule_fill) \
    ENTRY(OP_BATCH_TOKENS, 0, rule_batch_tokens) \
    ENTRY(OP_BATCH_TOKENS, 1, rule_batch_targets) \
    ENTRY(OP_BATCH_SAMPLES, 0, rule_batch_samples) \
    ENTRY(OP_BATCH_SAMPLES, 1, rule_batch_labels) \
    ENTRY(OP_DROPOUT, 0, rule_dropout) \
    ENTRY(OP_GATHER, 0, rule_gather) \
    ENTRY(OP_CONCAT, 0, rule_concat) \
    ENTRY(OP_EXPAND, 0, rule_expand) \
    ENTRY(OP_IM2COL, 0, rule_im2col) \
    ENTRY(OP_COL2IM, 0, rule_col2im) \
    ENTRY(OP_ADD, 0, rule_add) \
    ENTRY(OP_MUL, 0, rule_mul) \
    ENTRY(OP_SCALE, 0, rule_scale) \
    ENTRY(OP_RELU, 0, rule_relu) \
    ENTRY(OP_RELU_GRAD, 0, rule_relu_grad) \
    ENTRY(OP_GELU, 0, rule_gelu) \
    ENTRY(OP_GELU_GRAD, 0, rule_gelu_grad) \
    ENTRY(OP_SILU, 0, rule_silu) \
    ENTRY(OP_SILU_GRAD, 0, rule_silu_grad) \
    ENTRY(OP_ROTARY, 0, rule_rotary) \
    ENTRY(OP_SQUARED_ERROR, 0, rule_squared_error) \
    ENTRY(OP_SQUARED_ERROR_GRAD, 0, rule_squared_error_grad) \
    ENTRY(OP_QUANTIZE, 0, rule_quantize_peak) \
    ENTRY(OP_QUANTIZE, 1, rule_quantize_exponent) \
    ENTRY(OP_QUANTIZE, 2, rule_quantize_integer) \
    ENTRY(OP_CONTRACT, 0, rule_contract) \
    ENTRY(OP_CONTRACT_ONES, 0, rule_contract_ones) \
    ENTRY(OP_CONTRACT_ONEHOT, 0, rule_contract_onehot) \
    ENTRY(OP_ROW_SUM, 0, rule_row_sum_part) \
    ENTRY(OP_ROW_SUM, 1, rule_row_sum) \
    ENTRY(OP_LAYER_NORM, 0, rule_layer_norm_sum_part) \
    ENTRY(OP_LAYER_NORM, 1, rule_layer_norm_mean) \
    ENTRY(OP_LAYER_NORM, 2, rule_layer_norm_square_part) \
    ENTRY(OP_LAYER_NORM, 3, rule_layer_norm_rstd) \
    ENTRY(OP_LAYER_NORM, 4, rule_layer_norm) \
    ENTRY(OP_LAYER_NORM_GRAD, 0, rule_layer_norm_grad_part_g) \
    ENTRY(OP_LAYER_NORM_GRAD, 1, rule_layer_norm_grad_part_gx) \
    ENTRY(OP_LAYER_NORM_GRAD, 2, rule_layer_norm_grad_mean_g) \
    ENTRY(OP_LAYER_NORM_GRAD, 3, rule_layer_norm_grad_mean_gx) \
    ENTRY(OP_LAYER_NORM_GRAD, 4, rule_layer_norm_grad) \
    ENTRY(OP_LAYER_NORM_GRAD, 5, rule_layer_norm_grad_product) \
    ENTRY(OP_RMS_NORM, 0, rule_rms_norm_square_part) \
    ENTRY(OP_RMS_NORM, 1, rule_rms_norm_rstd) \
    ENTRY(OP_RMS_NORM, 2, rule_rms_norm) \
    ENTRY(OP_RMS_NORM_GRAD, 0, rule_rms_norm_grad_part_gx) \
    ENTRY(OP_RMS_NORM_GRAD, 1, rule_rms_norm_grad_mean_gx) \
    ENTRY(OP_RMS_NORM_GRAD, 2, rule_rms_norm_grad) \
    ENTRY(OP_RMS_NORM_GRAD, 3, rule_rms_norm_grad_product) \
    ENTRY(OP_SOFTMAX, 0, rule_softmax_max_part) \
    ENTRY(OP_SOFTMAX, 1, rule_softmax_max) \
    ENTRY(OP_SOFTMAX, 2, rule_softmax_exps) \
    ENTRY(OP_SOFTMAX, 3, rule_softmax_sum_part) \
    ENTRY(OP_SOFTMAX, 4, rule_softmax_sum) \
    ENTRY(OP_SOFTMAX, 5, rule_softmax) \
    ENTRY(OP_SOFTMAX_GRAD, 0, rule_softmax_grad_dot_part) \
    ENTRY(OP_SOFTMAX_GRAD, 1, rule_softmax_grad_dot) \
    ENTRY(OP_SOFTMAX_GRAD, 2, rule_softmax_grad) \
    ENTRY(OP_CROSS_ENTROPY, 0, rule_cross_entropy_max_part) \
    ENTRY(OP_CROSS_ENTROPY, 1, rule_cross_entropy_max) \
    ENTRY(OP_CROSS_ENTROPY, 2, rule_cross_entropy_exps) \
    ENTRY(OP_CROSS_ENTROPY, 3, rule_cross_entropy_sum_part) \
    ENTRY(OP_CROSS_ENTROPY, 4, rule_cross_entropy_sum) \
    ENTRY(OP_CROSS_ENTROPY, 5, rule_cross_entropy) \
    ENTRY(OP_CROSS_ENTROPY_GRAD, 0, rule_cross_entropy_grad) \
    ENTRY(OP_MAX_POOL, 0, rule_max_pool) \
    ENTRY(OP_MAX_POOL, 1, rule_max_pool_index) \
    ENTRY(OP_MAX_POOL_GRAD, 0, rule_max_pool_grad) \
    ENTRY(OP_MEAN_POOL, 0, rule_mean_pool) \
    ENTRY(OP_MEAN_POOL_GRAD, 0, rule_mean_pool_grad) \
    ENTRY(OP_CLIP_FACTOR, 0, rule_clip_factor) \
    ENTRY(OP_SGD, 0, rule_sgd_parameter) \
    ENTRY(OP_SGD, 1, rule_sgd_velocity) \
    ENTRY(OP_ADAMW, 0, rule_adamw_parameter) \
    ENTRY(OP_ADAMW, 1, rule_adamw_moment1) \
    ENTRY(OP_ADAMW, 2, rule_adamw_moment2) \
    ENTRY(OP_MAP, 0, rule_map) \
    ENTRY(OP_BINARY, 0, rule_binary) \
    ENTRY(OP_SELECT, 0, rule_select) \
    ENTRY(OP_MOVE, 0, rule_move) \
    ENTRY(OP_PLACE, 0, rule_place) \
    ENTRY(OP_REDUCE, 0, rule_reduce_part) \
    ENTRY(OP_REDUCE, 1, rule_reduce_part_index) \
    ENTRY(OP_REDUCE, 2, rule_reduce) \
    ENTRY(OP_REDUCE, 3, rule_reduce_index) \
    ENTRY(OP_GATHER_ELEMENTS, 0, rule_gather_elements) \
    ENTRY(OP_GATHER_ELEMENTS_GRAD, 0, rule_gather_elements_grad) \
    ENTRY(OP_EQUILIBRATE, 0, rule_equilibrate) \
    ENTRY(OP_EQUILIBRATE, 1, rule_equilibrate_minus) \
    ENTRY(OP_CAST, 0, rule_cast)
/* clang-format on */

#endif /* ENGINE_RULES_RULE_LIST_H */
