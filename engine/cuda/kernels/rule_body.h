/*
 * rule_body.h - the rules themselves, compiled for the device: slow, and there for every operation.
 * One thread computes one element.
 *
 * The *_body.h files here and in products/ are device code, in what C17 and CUDA C++ share. Before
 * them comes the execution model, which gives KERNEL, SHARED, thread_index(), barrier(), shuffles
 * and the products of tensor cores: execution.cuh for nvcc, the emulator of tests/support for a
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

/* The sum of a warp's numbers, modulo 2^64, in every lane. */
static RULE inline uint64_t warp_sum_wide(uint64_t sum)
{
    for (uint32_t d = CUDA_WARP / 2; d > 0; d /= 2) {
        const uint32_t low = shuffle_xor((uint32_t)sum, d);
        const uint32_t high = shuffle_xor((uint32_t)(sum >> 32), d);

        sum += (uint64_t)high << 32 | low;
    }
    return sum;
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

/* A function that models use often has a loop of its own; the others share one. */
#define ELEMENTS_MAP(code)                                                                         \
    case code:                                                                                     \
        map_loop(args, code);                                                                      \
        return;

#define ELEMENTS_BINARY(code)                                                                      \
    case code:                                                                                     \
        binary_loop(args, code);                                                                   \
        return;

static RULE INLINED void map_loop(const struct elements_args *args, enum map_function function)
{
    const float *x = (const float *)args->inputs[0];
    const float constant = real_from_bits((uint32_t)args->op->attributes[MAP_CONSTANT_BITS]);

    for (uint64_t i = first_place(); i < args->count; i += place_stride()) {
        ((uint32_t *)args->outputs[0])[i] = real_to_bits(element_map(function, x[i], constant));
    }
}

static RULE INLINED void binary_loop(const struct elements_args *args,
                                     enum binary_function function)
{
    const int64_t *dims = &args->op->attributes[BINARY_DIMS];
    const float *a = (const float *)args->inputs[0];
    const float *b = (const float *)args->inputs[1];

    for (uint64_t i = first_place(); i < args->count; i += place_stride()) {
        const uint64_t at_a = (args->alike & 1) != 0 ? i : view_place(dims, dims + VIEW_AXES, i);
        const uint64_t at_b =
            (args->alike & 2) != 0 ? i : view_place(dims, dims + 2 * VIEW_AXES, i);

        ((uint32_t *)args->outputs[0])[i] =
            real_to_bits(element_binary(function, a[at_a], b[at_b]));
    }
}

static RULE inline void map_elements(const struct elements_args *args)
{
    const enum map_function function = (enum map_function)args->op->attributes[MAP_FUNCTION];

    switch ((uint32_t)function) {
        ELEMENTS_MAP(MAP_SCALE)
        ELEMENTS_MAP(MAP_RELU)
        ELEMENTS_MAP(MAP_GELU)
        ELEMENTS_MAP(MAP_SILU)
    default:
        map_loop(args, function);
    }
}

static RULE inline void binary_elements(const struct elements_args *args)
{
    const enum binary_function function =
        (enum binary_function)args->op->attributes[BINARY_FUNCTION];

    switch ((uint32_t)function) {
        ELEMENTS_BINARY(BINARY_ADD)
        ELEMENTS_BINARY(BINARY_MUL)
        ELEMENTS_BINARY(BINARY_RELU_GRAD)
        ELEMENTS_BINARY(BINARY_GELU_GRAD)
        ELEMENTS_BINARY(BINARY_SILU_GRAD)
    default:
        binary_loop(args, function);
    }
}

/*
 * An element's inputs are read before its outputs are written, so an output may lie over an input
 * that is read at its own index only. The kinds are those of LAUNCH_ELEMENTS (op_list.h).
 */
KERNEL(kernel_elements, struct elements_args)
{
    const struct rule_call call = elements_call(&args);

    switch ((uint32_t)call.op->kind) {
        ELEMENTS_ONE(OP_EXPAND, rule_expand)
        ELEMENTS_ONE(OP_FILL, rule_fill)
        ELEMENTS_ONE(OP_CROSS_ENTROPY_GRAD, rule_cross_entropy_grad)
    case OP_MAP:
        map_elements(&args);
        return;
    case OP_BINARY:
        binary_elements(&args);
        return;
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
