/*
 * rule_body.h - the rules themselves, compiled for the device: slow, and there for every operation.
 * One thread computes one element.
 *
 * The *_body.h files of this folder are device code, in what C17 and CUDA C++ share. Before them
 * comes the execution model, which gives KERNEL, SHARED, thread_index(), barrier(), shuffles and
 * the products of tensor cores: execution.cuh for nvcc, the emulator of tests/support for a
 * processor, where the very same kernels are held to the rules.
 */
/* The places of a grid that strides over count elements. */
static RULE inline uint64_t first_place(void)
{
    return (uint64_t)block_index() * block_size() + thread_index();
}

static RULE inline uint64_t place_stride(void)
{
    return (uint64_t)grid_size() * block_size();
}

KERNEL(kernel_rule, struct rule_args)
{
    const struct operand *out = &args.call.outputs[args.output];
    void *memory = (void *)(uintptr_t)out->memory;

    for (uint64_t i = first_place(); i < args.count; i += place_stride()) {
        uint32_t bits = rule_element(&args.call, args.output, i);

        switch (dtype_size(out->dtype)) {
        case 4:
            ((uint32_t *)memory)[i] = bits;
            break;
        case 2:
            ((uint16_t *)memory)[i] = (uint16_t)bits;
            break;
        default:
            ((uint8_t *)memory)[i] = (uint8_t)bits;
            break;
        }
    }
}

/* ---- element by element: all outputs of one index at once ----------------- */

/* Known types let the compiler see through operand_get(). */
static RULE inline struct rule_call elements_call(const struct elements_args *args)
{
    struct rule_call call = {.op = args->op};

    UNROLL
    for (uint32_t i = 0; i < OP_INPUTS_MAX; i++) {
        call.inputs[i].memory = args->inputs[i];
        call.inputs[i].dtype = DTYPE_F32;
        call.inputs[i].count = args->input_counts[i];
    }
    return call;
}

#define ELEMENTS_LOOP(...)                                                                         \
    for (uint64_t i = first_place(); i < args.count; i += place_stride()) {                        \
        __VA_ARGS__                                                                                \
    }                                                                                              \
    return;

#define ELEMENTS_ONE(kind, rule)                                                                   \
    case kind:                                                                                     \
        ELEMENTS_LOOP(((uint32_t *)args.outputs[0])[i] = rule(&call, i);)

/*
 * An element's inputs are read before its outputs are written, so an output may lie over an input
 * that is read at its own index only. The kinds are those of LAUNCH_ELEMENTS (op_list.h).
 */
KERNEL(kernel_elements, struct elements_args)
{
    const struct rule_call call = elements_call(&args);

    switch ((uint32_t)call.op->kind) {
        ELEMENTS_ONE(OP_ADD, rule_add)
        ELEMENTS_ONE(OP_MUL, rule_mul)
        ELEMENTS_ONE(OP_SCALE, rule_scale)
        ELEMENTS_ONE(OP_EXPAND, rule_expand)
        ELEMENTS_ONE(OP_FILL, rule_fill)
        ELEMENTS_ONE(OP_RELU, rule_relu)
        ELEMENTS_ONE(OP_RELU_GRAD, rule_relu_grad)
        ELEMENTS_ONE(OP_GELU, rule_gelu)
        ELEMENTS_ONE(OP_GELU_GRAD, rule_gelu_grad)
        ELEMENTS_ONE(OP_SILU, rule_silu)
        ELEMENTS_ONE(OP_SILU_GRAD, rule_silu_grad)
        ELEMENTS_ONE(OP_SQUARED_ERROR, rule_squared_error)
        ELEMENTS_ONE(OP_SQUARED_ERROR_GRAD, rule_squared_error_grad)
        ELEMENTS_ONE(OP_CROSS_ENTROPY_GRAD, rule_cross_entropy_grad)
        ELEMENTS_ONE(OP_MAP, rule_map)
        ELEMENTS_ONE(OP_BINARY, rule_binary)
        ELEMENTS_ONE(OP_SELECT, rule_select)
        ELEMENTS_ONE(OP_MOVE, rule_move)
        ELEMENTS_ONE(OP_PLACE, rule_place)
    case OP_SGD:
        ELEMENTS_LOOP(const uint32_t p = rule_sgd_parameter(&call, i);
                      const uint32_t v = rule_sgd_velocity(&call, i);
                      ((uint32_t *)args.outputs[0])[i] = p; ((uint32_t *)args.outputs[1])[i] = v;)
    case OP_ADAMW:
        ELEMENTS_LOOP(const uint32_t p = rule_adamw_parameter(&call, i);
                      const uint32_t m = rule_adamw_moment1(&call, i);
                      const uint32_t v = rule_adamw_moment2(&call, i);
                      ((uint32_t *)args.outputs[0])[i] = p; ((uint32_t *)args.outputs[1])[i] = m;
                      ((uint32_t *)args.outputs[2])[i] = v;)
    default:
        return;
    }
}

/* ---- does a state hold a NaN or an infinity? ------------------------------- */

KERNEL(kernel_finite, struct finite_args)
{
    uint32_t found = 0;

    for (uint64_t i = first_place(); i < args.count; i += place_stride()) {
        found |= (args.bits[i] & UINT32_C(0x7f800000)) == UINT32_C(0x7f800000);
    }
    if (found != 0) {
        (void)atomic_swap(args.found, 1); /* many may */
    }
}
