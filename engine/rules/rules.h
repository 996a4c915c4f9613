/*
 * rules.h - the rule of each output, by name; rules.c has the table of them. Inside the engine
 * only. Each function has the contract of rule_element(): see rule.h.
 */
#ifndef ENGINE_RULES_RULES_H
#define ENGINE_RULES_RULES_H

#include "engine/rules/rule.h"

/* Outputs of QUANTIZE that its later ones are made of. */
enum { QUANTIZE_PEAKS_OUT, QUANTIZE_EXPONENTS_OUT };

typedef uint32_t rule_function(const struct rule_call *call, uint64_t index);

/* rules_index.c */
RULE rule_function rule_step_next;
RULE rule_function rule_schedule;
RULE rule_function rule_fill;
RULE rule_function rule_batch_tokens;
RULE rule_function rule_batch_targets;
RULE rule_function rule_batch_samples;
RULE rule_function rule_batch_labels;
RULE rule_function rule_dropout;
RULE rule_function rule_gather;
RULE rule_function rule_concat;
RULE rule_function rule_expand;
RULE uint32_t rule_split(const struct rule_call *call, uint32_t part, uint64_t index);

/* rules_elementwise.c */
RULE rule_function rule_add;
RULE rule_function rule_mul;
RULE rule_function rule_scale;
RULE rule_function rule_relu;
RULE rule_function rule_relu_grad;
RULE rule_function rule_gelu;
RULE rule_function rule_gelu_grad;
RULE rule_function rule_silu;
RULE rule_function rule_silu_grad;
RULE rule_function rule_rotary;
RULE rule_function rule_squared_error;
RULE rule_function rule_squared_error_grad;

/* rules_contraction.c */
RULE rule_function rule_quantize_peak;
RULE rule_function rule_quantize_exponent;
RULE rule_function rule_quantize_integer;
RULE rule_function rule_equilibrate;
RULE rule_function rule_equilibrate_minus;
RULE rule_function rule_contract;
RULE rule_function rule_contract_ones;
RULE rule_function rule_contract_onehot;
/* As rule_element_part(), over [from, to); the caller has set fold and exponent and zeroed the
 * rest. */
typedef void rule_part_function(struct rule_part *part, const struct rule_call *call,
                                uint64_t index, uint64_t from, uint64_t to);
RULE rule_part_function rule_quantize_peak_part;
RULE rule_part_function rule_quantize_exponent_part;
RULE rule_part_function rule_contract_part;
RULE rule_part_function rule_contract_ones_part;
RULE rule_part_function rule_contract_onehot_part;
/* Sets settled, bits and exponent of a zeroed part; returns the element of the axis that poisons,
 * or 0. */
typedef uint64_t rule_base_function(struct rule_part *part, const struct rule_call *call,
                                    uint64_t index);
RULE rule_base_function rule_contract_base;
RULE rule_base_function rule_contract_ones_base;
RULE rule_base_function rule_contract_onehot_base;

/* rules_rows.c */
RULE rule_function rule_row_sum_part;
RULE rule_function rule_row_sum;
RULE rule_function rule_layer_norm_sum_part;
RULE rule_function rule_layer_norm_mean;
RULE rule_function rule_layer_norm_square_part;
RULE rule_function rule_layer_norm_rstd;
RULE rule_function rule_layer_norm;
RULE rule_function rule_layer_norm_grad_part_g;
RULE rule_function rule_layer_norm_grad_part_gx;
RULE rule_function rule_layer_norm_grad_mean_g;
RULE rule_function rule_layer_norm_grad_mean_gx;
RULE rule_function rule_layer_norm_grad;
RULE rule_function rule_layer_norm_grad_product;
RULE rule_function rule_rms_norm_square_part;
RULE rule_function rule_rms_norm_rstd;
RULE rule_function rule_rms_norm;
RULE rule_function rule_rms_norm_grad_part_gx;
RULE rule_function rule_rms_norm_grad_mean_gx;
RULE rule_function rule_rms_norm_grad;
RULE rule_function rule_rms_norm_grad_product;
RULE rule_function rule_softmax_max_part;
RULE rule_function rule_softmax_max;
RULE rule_function rule_softmax_exps;
RULE rule_function rule_softmax_sum_part;
RULE rule_function rule_softmax_sum;
RULE rule_function rule_softmax;
RULE rule_function rule_softmax_grad_dot_part;
RULE rule_function rule_softmax_grad_dot;
RULE rule_function rule_softmax_grad;
RULE rule_function rule_cross_entropy_max_part;
RULE rule_function rule_cross_entropy_max;
RULE rule_function rule_cross_entropy_exps;
RULE rule_function rule_cross_entropy_sum_part;
RULE rule_function rule_cross_entropy_sum;
RULE rule_function rule_cross_entropy;
RULE rule_function rule_cross_entropy_grad;

/* rules_reduce.c */
RULE rule_function rule_reduce_part;
RULE rule_function rule_reduce_part_index;
RULE rule_function rule_reduce;
RULE rule_function rule_reduce_index;
RULE rule_function rule_gather_elements;
RULE rule_function rule_gather_elements_grad;

/* rules_image.c */
RULE rule_function rule_im2col;
RULE rule_function rule_col2im;
RULE rule_function rule_max_pool;
RULE rule_function rule_max_pool_index;
RULE rule_function rule_max_pool_grad;
RULE rule_function rule_mean_pool;
RULE rule_function rule_mean_pool_grad;

/* rules_update.c */
RULE rule_function rule_clip_factor;
RULE rule_function rule_sgd_parameter;
RULE rule_function rule_sgd_velocity;
RULE rule_function rule_adamw_parameter;
RULE rule_function rule_adamw_moment1;
RULE rule_function rule_adamw_moment2;

/* rules_general.c */
RULE rule_function rule_map;
RULE rule_function rule_binary;
RULE rule_function rule_select;
RULE rule_function rule_move;
RULE rule_function rule_place;
RULE rule_function rule_cast;

#endif /* ENGINE_RULES_RULES_H */
