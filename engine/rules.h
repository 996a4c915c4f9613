/*
 * rules.h - the rule of each output, by name; rule.c holds the table that leads to them.
 *
 * Inside the engine only. Each function has the contract of rule_element(): see rule.h. One file
 * per family: rules_index.c, rules_elementwise.c, rules_contraction.c, rules_rows.c,
 * rules_image.c, rules_update.c.
 */
#ifndef ENGINE_RULES_H
#define ENGINE_RULES_H

#include "engine/rule.h"

typedef uint32_t rule_function(const struct rule_call *call, uint64_t index);

/* rules_index.c */
rule_function rule_step_next;
rule_function rule_schedule;
rule_function rule_fill;
rule_function rule_batch_tokens;
rule_function rule_batch_targets;
rule_function rule_batch_samples;
rule_function rule_batch_labels;
rule_function rule_dropout;
rule_function rule_gather;
rule_function rule_concat;
rule_function rule_expand;
uint32_t rule_split(const struct rule_call *call, uint32_t part, uint64_t index);

/* rules_elementwise.c */
rule_function rule_add;
rule_function rule_mul;
rule_function rule_scale;
rule_function rule_relu;
rule_function rule_relu_grad;
rule_function rule_gelu;
rule_function rule_gelu_grad;
rule_function rule_silu;
rule_function rule_silu_grad;
rule_function rule_rotary;
rule_function rule_squared_error;
rule_function rule_squared_error_grad;

/* rules_contraction.c */
rule_function rule_quantize_peak;
rule_function rule_quantize_exponent;
rule_function rule_quantize_integer;
rule_function rule_contract;
rule_function rule_contract_ones;
rule_function rule_contract_onehot;

/* rules_rows.c */
rule_function rule_row_sum_part;
rule_function rule_row_sum;
rule_function rule_layer_norm_sum_part;
rule_function rule_layer_norm_mean;
rule_function rule_layer_norm_square_part;
rule_function rule_layer_norm_rstd;
rule_function rule_layer_norm;
rule_function rule_layer_norm_grad_part_g;
rule_function rule_layer_norm_grad_part_gx;
rule_function rule_layer_norm_grad_mean_g;
rule_function rule_layer_norm_grad_mean_gx;
rule_function rule_layer_norm_grad;
rule_function rule_layer_norm_grad_product;
rule_function rule_rms_norm_square_part;
rule_function rule_rms_norm_rstd;
rule_function rule_rms_norm;
rule_function rule_rms_norm_grad_part_gx;
rule_function rule_rms_norm_grad_mean_gx;
rule_function rule_rms_norm_grad;
rule_function rule_rms_norm_grad_product;
rule_function rule_softmax_max_part;
rule_function rule_softmax_max;
rule_function rule_softmax_exps;
rule_function rule_softmax_sum_part;
rule_function rule_softmax_sum;
rule_function rule_softmax;
rule_function rule_softmax_grad_dot_part;
rule_function rule_softmax_grad_dot;
rule_function rule_softmax_grad;
rule_function rule_cross_entropy_max_part;
rule_function rule_cross_entropy_max;
rule_function rule_cross_entropy_exps;
rule_function rule_cross_entropy_sum_part;
rule_function rule_cross_entropy_sum;
rule_function rule_cross_entropy;
rule_function rule_cross_entropy_grad;

/* rules_image.c */
rule_function rule_im2col;
rule_function rule_col2im;
rule_function rule_max_pool;
rule_function rule_max_pool_index;
rule_function rule_max_pool_grad;
rule_function rule_mean_pool;
rule_function rule_mean_pool_grad;

/* rules_update.c */
rule_function rule_clip_factor;
rule_function rule_sgd_parameter;
rule_function rule_sgd_velocity;
rule_function rule_adamw_parameter;
rule_function rule_adamw_moment1;
rule_function rule_adamw_moment2;

#endif /* ENGINE_RULES_H */
