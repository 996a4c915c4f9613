/* random_op_value.c - the numbers of random operations: see random_op.h. */
#include "tests/support/numeric/random_op.h"

#include <stdlib.h>
#include <string.h>

#include "engine/ops/contraction.h"
#include "engine/ops/element.h"

static uint32_t wild_float(uint64_t *random)
{
    static const uint32_t special[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff,
                                       0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff,
                                       0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001,
                                       0x3f800000, 0xbf800000, 0x4b800000, 0x4f000000, 0x34000000};
    uint64_t draw = random_op_draw(random);

    switch (draw % 4) {
    case 0:
        return special[(draw >> 8) % (sizeof(special) / sizeof(special[0]))];
    case 1:
        return (uint32_t)(draw >> 32); /* any bits at all */
    case 2:                            /* subnormals and their neighbours */
        return (uint32_t)(draw >> 32) & UINT32_C(0x80ffffff);
    default: /* few mantissa bits: ties are common */
        return (uint32_t)((draw >> 32 & 0x80700000) | (120 + (draw >> 8) % 12) << 23);
    }
}

static uint32_t tame_float(uint64_t *random)
{
    float value = (float)((double)(random_op_draw(random) >> 40) * 0x1p-22 - 2.0);
    uint32_t bits;

    memcpy(&bits, &value, 4);
    return bits;
}

static uint32_t float_value(uint64_t *random, enum random_mood mood)
{
    bool wild = mood == MOOD_WILD || (mood == MOOD_MIXED && random_op_below(random, 64) == 0);

    return wild ? wild_float(random) : tame_float(random);
}

/* Are these the integers (0) or the exponents (1) of an operand of a sum? */
static bool is_of_operand(const struct op *op, uint32_t tensor, uint32_t behind)
{
    uint32_t slots[2];
    uint32_t count = contraction_slots(slots, op->kind);
    bool found = false;

    for (uint32_t i = 0; i < count; i++) {
        found = found || tensor == op->inputs[slots[i] + behind];
    }
    return found;
}

/* An I16 may hold peaks, exponents or integers. */
static uint32_t signed_value(uint64_t *random, enum random_mood mood, const struct op *op,
                             uint32_t tensor)
{
    bool integers =
        (op->kind == OP_QUANTIZE && tensor == op->outputs[2]) || is_of_operand(op, tensor, 0);
    int bits = op->kind == OP_EQUILIBRATE ? 14 : (int)contraction_shape_of(op).bits;
    int32_t limit = (1 << (bits - 1)) - 1;

    if (mood == MOOD_WILD && random_op_below(random, 4) == 0) {
        static const int32_t special[] = {EXPONENT_POISON, EXPONENT_ZERO, 0,     1,    -1,
                                          INT16_MIN,       INT16_MAX,     -8192, 8191, 128};

        return (uint32_t)special[random_op_below(random, 10)];
    }
    if (integers) {
        return (uint32_t)((int32_t)random_op_below(random, 2 * (uint64_t)limit + 1) - limit);
    }
    if (mood == MOOD_MIXED && random_op_below(random, 300) == 0) {
        return random_op_below(random, 2) == 0 ? EXPONENT_POISON : (uint32_t)EXPONENT_ZERO;
    }
    return (uint32_t)((int32_t)random_op_below(random, 12) - 6);
}

/* As QUANTIZE does: no exponent of a row lies more than the window below its top. */
static void raise_exponents(int16_t *exponents, uint64_t count, const struct op *op)
{
    struct contraction_shape shape = contraction_shape_of(op);

    for (uint64_t row = 0; row + (uint64_t)shape.blocks <= count; row += (uint64_t)shape.blocks) {
        int top = INT16_MIN;

        for (int64_t b = 0; b < shape.blocks; b++) {
            top = exponents[row + (uint64_t)b] > top ? exponents[row + (uint64_t)b] : top;
        }
        for (int64_t b = 0; b < shape.blocks; b++) {
            int16_t *exponent = &exponents[row + (uint64_t)b];

            *exponent = *exponent < top - shape.window ? (int16_t)(top - shape.window) : *exponent;
        }
    }
}

static uint32_t word_value(uint64_t *random, enum random_mood mood)
{
    uint64_t draw = random_op_draw(random);

    if (mood == MOOD_WILD && draw % 4 == 0) {
        return (uint32_t)(draw >> 32);
    }
    return (uint32_t)(draw >> 32) % (draw % 3 == 0 ? 40 : 8);
}

/* What integers do at their ends: a shift of 32, a quotient by 0, what a sign would turn around. */
static uint32_t integer_value(uint64_t *random, enum random_mood mood)
{
    static const uint32_t ends[] = {0,          1,          31,         32,         33,        64,
                                    0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, UINT32_MAX};
    const uint64_t draw = random_op_draw(random);

    if (draw % 2 == 0) {
        return ends[(draw >> 8) % (sizeof(ends) / sizeof(ends[0]))];
    }
    return word_value(random, mood);
}

void *random_op_value(const struct tape *tape, uint32_t tensor, enum random_mood mood,
                      uint64_t seed)
{
    const struct tensor *shape = &tape->tensors[tensor];
    size_t size = dtype_size(shape->dtype);
    uint64_t random = seed * 1000 + tensor;
    uint8_t *bytes = calloc(shape->count, size);

    if (bytes == NULL) {
        abort();
    }
    for (uint64_t i = 0; i < shape->count; i++) {
        uint32_t bits = 0;

        switch (shape->dtype) {
        case DTYPE_F32:
            bits = float_value(&random, mood);
            break;
        case DTYPE_F16:
        case DTYPE_BF16:
            bits = mood == MOOD_WILD && random_op_below(&random, 4) == 0
                       ? (uint32_t)random_op_draw(&random) /* any bits at all */
                       : element_cast(DTYPE_F32, shape->dtype, float_value(&random, mood));
            break;
        case DTYPE_I16:
        case DTYPE_I32:
            bits = tape->ops[0].kind == OP_CAST
                       ? (uint32_t)random_op_draw(&random)
                       : signed_value(&random, mood, &tape->ops[0], tensor);
            break;
        case DTYPE_U8:
        case DTYPE_U16:
        case DTYPE_U32:
        case DTYPE_COUNT:
            bits = tape->ops[0].kind == OP_INTEGER ? integer_value(&random, mood)
                                                   : word_value(&random, mood);
            break;
        }
        memcpy(bytes + i * size, &bits, size); /* as all of these machines: little-endian */
    }
    if (mood != MOOD_WILD && is_of_operand(&tape->ops[0], tensor, 1)) {
        raise_exponents((int16_t *)(void *)bytes, shape->count, &tape->ops[0]);
    }
    return bytes;
}
