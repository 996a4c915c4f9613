/* rule.c - leads from a kind and an output number to the rule; see rule.h and rules.h. */
#include "engine/rule.h"

#include <assert.h>
#include <string.h>

#include "engine/float_control.h"
#include "engine/kernel.h"
#include "engine/rules.h"

static rule_function *const rules[OP_KIND_COUNT][OP_OUTPUTS_MAX] = {
    [OP_STEP_NEXT] = {rule_step_next},
    [OP_SCHEDULE] = {rule_schedule},
    [OP_FILL] = {rule_fill},
    [OP_BATCH_TOKENS] = {rule_batch_tokens, rule_batch_targets},
    [OP_BATCH_SAMPLES] = {rule_batch_samples, rule_batch_labels},
    [OP_DROPOUT] = {rule_dropout},
    [OP_GATHER] = {rule_gather},
    /* OP_SPLIT has any number of outputs: rule_element() passes the number on. */
    [OP_CONCAT] = {rule_concat},
    [OP_EXPAND] = {rule_expand},
    [OP_IM2COL] = {rule_im2col},
    [OP_COL2IM] = {rule_col2im},
    [OP_ADD] = {rule_add},
    [OP_MUL] = {rule_mul},
    [OP_SCALE] = {rule_scale},
    [OP_RELU] = {rule_relu},
    [OP_RELU_GRAD] = {rule_relu_grad},
    [OP_GELU] = {rule_gelu},
    [OP_GELU_GRAD] = {rule_gelu_grad},
    [OP_SILU] = {rule_silu},
    [OP_SILU_GRAD] = {rule_silu_grad},
    [OP_ROTARY] = {rule_rotary},
    [OP_SQUARED_ERROR] = {rule_squared_error},
    [OP_SQUARED_ERROR_GRAD] = {rule_squared_error_grad},
    [OP_QUANTIZE] = {rule_quantize_peak, rule_quantize_exponent, rule_quantize_integer},
    [OP_CONTRACT] = {rule_contract},
    [OP_CONTRACT_ONES] = {rule_contract_ones},
    [OP_CONTRACT_ONEHOT] = {rule_contract_onehot},
    [OP_ROW_SUM] = {rule_row_sum_part, rule_row_sum},
    [OP_LAYER_NORM] = {rule_layer_norm_sum_part, rule_layer_norm_mean, rule_layer_norm_square_part,
                       rule_layer_norm_rstd, rule_layer_norm},
    [OP_LAYER_NORM_GRAD] = {rule_layer_norm_grad_part_g, rule_layer_norm_grad_part_gx,
                            rule_layer_norm_grad_mean_g, rule_layer_norm_grad_mean_gx,
                            rule_layer_norm_grad, rule_layer_norm_grad_product},
    [OP_RMS_NORM] = {rule_rms_norm_square_part, rule_rms_norm_rstd, rule_rms_norm},
    [OP_RMS_NORM_GRAD] = {rule_rms_norm_grad_part_gx, rule_rms_norm_grad_mean_gx,
                          rule_rms_norm_grad, rule_rms_norm_grad_product},
    [OP_SOFTMAX] = {rule_softmax_max_part, rule_softmax_max, rule_softmax_exps,
                    rule_softmax_sum_part, rule_softmax_sum, rule_softmax},
    [OP_SOFTMAX_GRAD] = {rule_softmax_grad_dot_part, rule_softmax_grad_dot, rule_softmax_grad},
    [OP_CROSS_ENTROPY] = {rule_cross_entropy_max_part, rule_cross_entropy_max,
                          rule_cross_entropy_exps, rule_cross_entropy_sum_part,
                          rule_cross_entropy_sum, rule_cross_entropy},
    [OP_CROSS_ENTROPY_GRAD] = {rule_cross_entropy_grad},
    [OP_MAX_POOL] = {rule_max_pool, rule_max_pool_index},
    [OP_MAX_POOL_GRAD] = {rule_max_pool_grad},
    [OP_MEAN_POOL] = {rule_mean_pool},
    [OP_MEAN_POOL_GRAD] = {rule_mean_pool_grad},
    [OP_CLIP_FACTOR] = {rule_clip_factor},
    [OP_SGD] = {rule_sgd_parameter, rule_sgd_velocity},
    [OP_ADAMW] = {rule_adamw_parameter, rule_adamw_moment1, rule_adamw_moment2},
};

static uint32_t element(const struct rule_call *call, uint32_t output, uint64_t index)
{
    assert(output < call->op->output_count);
    if (call->op->kind == OP_SPLIT) {
        return rule_split(call, output, index);
    }
    return rules[call->op->kind][output](call, index);
}

uint32_t rule_element(const struct rule_call *call, uint32_t output, uint64_t index)
{
    uint64_t control = float_control_take();
    uint32_t bits = element(call, output, index);

    float_control_give_back(control);
    return bits;
}

/* ---- the scalar backend ------------------------------------------------- */

static void put_element(void *memory, enum dtype dtype, uint64_t index, uint32_t bits)
{
    switch (dtype) {
    case DTYPE_F32:
    case DTYPE_U32:
    case DTYPE_I32:
        ((uint32_t *)memory)[index] = bits;
        return;
    case DTYPE_U8:
        ((uint8_t *)memory)[index] = (uint8_t)bits;
        return;
    case DTYPE_U16:
        ((uint16_t *)memory)[index] = (uint16_t)bits;
        return;
    case DTYPE_I16:
        ((int16_t *)memory)[index] = (int16_t)bits;
        return;
    case DTYPE_COUNT:
        break;
    }
    assert(!"a tensor has a type");
}

static struct operand operand_of(const struct tensor *tensor, const void *memory)
{
    return (struct operand){.memory = memory, .dtype = tensor->dtype, .count = tensor->count};
}

/*
 * Needs every output: later rules of an operation read the earlier outputs. The threads' control
 * words are the machine's business.
 */
void kernel_run_rules(const struct kernel_call *call)
{
    const struct op *op = call->op;
    struct rule_call rule = {.op = op};

    for (uint32_t i = 0; i < op->input_count; i++) {
        rule.inputs[i] = operand_of(&call->tensors[op->inputs[i]], call->inputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        assert(call->outputs[i] != NULL);
        rule.outputs[i] = operand_of(&call->tensors[op->outputs[i]], call->outputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        const struct tensor *tensor = &call->tensors[op->outputs[i]];
        int64_t count = (int64_t)tensor->count;

#pragma omp parallel for schedule(static) num_threads(call->thread_count) if (count > 256)
        for (int64_t index = 0; index < count; index++) {
            put_element(call->outputs[i], tensor->dtype, (uint64_t)index,
                        element(&rule, i, (uint64_t)index));
        }
    }
}
