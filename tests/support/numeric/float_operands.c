/* float_operands.c - see float_operands.h. */
#include "tests/support/numeric/float_operands.h"

#include <assert.h>
#include <math.h>

#include "engine/ops/contraction.h"
#include "engine/ops/fold.h"
#include "engine/ops/real.h"
#include "engine/ops/scalar.h"
#include "tests/support/test.h"

#define SIGN     UINT32_C(0x80000000)
#define INFINITE UINT32_C(0x7f800000)
#define FRACTION UINT32_C(0x007fffff)

const char *const float_operation_names[FLOAT_OPERATIONS] = {
    "add", "sub",     "mul",      "div",     "sqrt",         "fma",       "exp",
    "log", "is-less", "is-equal", "maximum", "from-integer", "to-integer"};

/* ---- single patterns ------------------------------------------------------ */

static uint32_t special(uint64_t *seed)
{
    static const uint32_t patterns[] = {
        0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x00400000, 0x007ffffe,
        0x007fffff, 0x00800000, 0x00800001, 0x00ffffff, 0x01000000, 0x0c000000,
        0x33800000, 0x34000000, 0x3effffff, 0x3f000000, 0x3f7fffff, 0x3f800000,
        0x3f800001, 0x3fffffff, 0x40000000, 0x4b7fffff, 0x4b800000, 0x4b000001,
        0x5f000000, 0x72800000, 0x7e7fffff, 0x7e800000, 0x7effffff, 0x7f000000,
        0x7f7ffffe, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff};
    uint64_t random = test_random(seed);

    return patterns[(random >> 8) % (sizeof(patterns) / sizeof(patterns[0]))] |
           ((uint32_t)random << 31);
}

/* Few enough that every pair of them comes up. */
static uint32_t extreme(uint64_t *seed)
{
    static const uint32_t patterns[8] = {0x00000000, 0x00000001, 0x007fffff, 0x00800000,
                                         0x3f800000, 0x7f7fffff, 0x7f800000, 0x7fc00000};
    uint64_t random = test_random(seed);

    return patterns[random % 8] | ((uint32_t)(random >> 32) & SIGN);
}

/* A finite number with this exponent field; its fraction is of a random kind. */
static uint32_t with_field(uint64_t *seed, uint32_t field)
{
    uint64_t random = test_random(seed);
    uint32_t fraction = (uint32_t)(random >> 40) & FRACTION;

    switch (random % 8) {
    case 0:
        fraction = 0;
        break;
    case 1:
        fraction = FRACTION;
        break;
    case 2: /* few bits at the top: products are ties */
        fraction &= FRACTION << (12 + (random >> 8) % 11) & FRACTION;
        break;
    case 3: /* few bits at the bottom */
        fraction &= FRACTION >> (8 + (random >> 8) % 15);
        break;
    case 4: /* ones but for a few bits at the bottom */
        fraction |= FRACTION << ((random >> 8) % 12) & FRACTION;
        break;
    default:
        break;
    }
    return ((uint32_t)(random >> 32) & SIGN) | field << 23 | fraction;
}

static uint32_t clamp_field(int64_t field)
{
    return field < 0 ? 0 : field > 254 ? 254 : (uint32_t)field;
}

/* Its exponent is within `spread` of `field`. */
static uint32_t near_field(uint64_t *seed, int64_t field, uint32_t spread)
{
    int64_t offset = (int64_t)test_random_below(seed, 2 * spread + 1) - spread;

    return with_field(seed, clamp_field(field + offset));
}

static uint32_t any_finite(uint64_t *seed)
{
    return with_field(seed, (uint32_t)test_random_below(seed, 255));
}

static uint32_t ordinary(uint64_t *seed)
{
    return near_field(seed, 127, 8);
}

static uint32_t subnormal(uint64_t *seed)
{
    uint32_t bits = with_field(seed, 0);

    return (bits & SIGN) | (bits & FRACTION) >> test_random_below(seed, 23);
}

uint32_t float_operands_any(uint64_t *seed)
{
    switch (test_random_below(seed, 8)) {
    case 0:
        return special(seed);
    case 1:
        return (uint32_t)test_random(seed);
    case 2:
        return subnormal(seed);
    case 3:
        return near_field(seed, 1, 1);
    case 4:
        return near_field(seed, 253, 1);
    default:
        return ordinary(seed);
    }
}

static uint32_t field_of(uint32_t bits)
{
    return bits >> 23 & 0xff;
}

static uint32_t a_few_places_off(uint64_t *seed, uint32_t bits)
{
    return bits + (uint32_t)test_random_below(seed, 5) - 2;
}

/* The rounded product, sum and so on, as patterns. */
static uint32_t product_of(uint32_t a, uint32_t b)
{
    return real_to_bits(real_from_bits(a) * real_from_bits(b));
}

/* ---- operands that fit their operation ------------------------------------ */

static struct float_operands for_add(uint64_t *seed)
{
    struct float_operands made = {.a = any_finite(seed)};
    uint64_t random = test_random(seed);

    switch (random % 8) {
    case 0: /* cancellation down to the last place, or to zero */
        made.b = a_few_places_off(seed, made.a ^ SIGN);
        break;
    case 1: /* partial cancellation */
        made.b = (near_field(seed, field_of(made.a), 1) & ~SIGN) | (~made.a & SIGN);
        break;
    case 2: /* the end of the range */
        made.a = near_field(seed, 254, 0);
        made.b = near_field(seed, 254 - (int64_t)test_random_below(seed, 28), 0);
        break;
    case 3: /* half of a's last place, or beside it */
        made.b = near_field(seed, (int64_t)field_of(made.a) - 24, 2);
        break;
    case 4: /* subnormal */
        made.a = near_field(seed, (int64_t)test_random_below(seed, 30), 1);
        made.b = subnormal(seed);
        break;
    default: /* any distance that matters */
        made.b = near_field(seed, field_of(made.a), 27);
        break;
    }
    if (random >> 63 != 0) {
        return (struct float_operands){.a = made.b, .b = made.a};
    }
    return made;
}

static struct float_operands for_mul(uint64_t *seed)
{
    struct float_operands made = {.a = any_finite(seed)};
    int64_t field = field_of(made.a);

    switch (test_random_below(seed, 4)) {
    case 0: /* the end of the range: a result of 2^127 or 2^128 */
        made.b = near_field(seed, 254 + 127 - field, 1);
        break;
    case 1: /* subnormal results and such that vanish */
        made.b = near_field(seed, 127 - field - (int64_t)test_random_below(seed, 26), 1);
        break;
    case 2:
        made.a = subnormal(seed);
        made.b = any_finite(seed);
        break;
    default:
        made.b = near_field(seed, 127, 60);
        break;
    }
    return made;
}

static struct float_operands for_div(uint64_t *seed)
{
    struct float_operands made = {.a = any_finite(seed)};
    int64_t field = field_of(made.a);

    switch (test_random_below(seed, 5)) {
    case 0: /* the end of the range */
        made.b = near_field(seed, field - 127, 1);
        break;
    case 1: /* subnormal results; few bits in b and its multiples make ties */
        made.b = near_field(seed, field + 126 + (int64_t)test_random_below(seed, 26), 1);
        break;
    case 2:
        made.a = subnormal(seed);
        made.b = any_finite(seed);
        break;
    case 3: /* an exact quotient, or nearly so */
        made.b = near_field(seed, 127, 30);
        made.a = a_few_places_off(seed, product_of(made.b, ordinary(seed)));
        break;
    default:
        made.b = near_field(seed, 127, 60);
        break;
    }
    return made;
}

static struct float_operands for_sqrt(uint64_t *seed)
{
    uint32_t a = any_finite(seed) & ~SIGN;

    switch (test_random_below(seed, 4)) {
    case 0: /* squares, and their neighbours */
        a = a_few_places_off(seed, product_of(ordinary(seed), real_to_bits(1.0f)));
        a = a_few_places_off(seed, product_of(a, a));
        break;
    case 1:
        a = subnormal(seed) & ~SIGN;
        break;
    default:
        break;
    }
    return (struct float_operands){.a = a};
}

static struct float_operands for_fma(uint64_t *seed)
{
    struct float_operands made = {.a = near_field(seed, 127, 40), .b = near_field(seed, 127, 40)};
    int64_t top = (int64_t)field_of(made.a) + field_of(made.b) - 127;
    uint32_t product = product_of(made.a, made.b);

    switch (test_random_below(seed, 10)) {
    case 0: /* what remains is what the product's rounding lost */
        made.c = a_few_places_off(seed, product ^ SIGN);
        break;
    case 1: /* partial cancellation */
        made.c = (near_field(seed, top, 2) & ~SIGN) | (~product & SIGN);
        break;
    case 2: /* a tie or nearly one, decided by a tiny addend */
        made.a = with_field(seed, 127) & (SIGN | INFINITE | FRACTION << 12);
        made.b = with_field(seed, 127) & (SIGN | INFINITE | FRACTION << 11);
        made.c = near_field(seed, 127 - 24 - (int64_t)test_random_below(seed, 103), 1);
        break;
    case 3: /* an addend so small that only its sign counts */
        made.c = test_random_below(seed, 2) != 0 ? subnormal(seed) : near_field(seed, 10, 9);
        break;
    case 4: /* a product that is half of c's last place, or beside it */
        made.c = near_field(seed, top + 24, 3);
        break;
    case 5: /* the end of the range */
        made.a = any_finite(seed);
        made.b = near_field(seed, 254 + 127 - (int64_t)field_of(made.a), 1);
        made.c = near_field(seed, 250, 4);
        break;
    case 6: /* subnormal results */
        made.a = any_finite(seed);
        made.b = near_field(seed, 127 - (int64_t)field_of(made.a), 26);
        made.c = test_random_below(seed, 2) != 0 ? subnormal(seed) : near_field(seed, 2, 2);
        break;
    case 7: /* subnormal factors */
        made.a = subnormal(seed);
        made.b = any_finite(seed);
        made.c = near_field(seed, (int64_t)field_of(made.b) - 127, 26);
        break;
    default: /* any distance that matters */
        made.c = near_field(seed, top, 50);
        break;
    }
    return made;
}

static struct float_operands for_exp(uint64_t *seed)
{
    switch (test_random_below(seed, 4)) {
    case 0: /* the ends: 88.7 overflows, -87.3 is subnormal, -103.97 is zero */
        return (struct float_operands){.a = UINT32_C(0x42ae0000) +
                                            (uint32_t)test_random_below(seed, 0x40000)};
    case 1:
        return (struct float_operands){.a = UINT32_C(0xc2ae0000) +
                                            (uint32_t)test_random_below(seed, 0x240000)};
    default:
        return (struct float_operands){.a = near_field(seed, 127, 7)};
    }
}

static struct float_operands for_from_integer(uint64_t *seed)
{
    uint64_t integer = test_random(seed) >> test_random_below(seed, 64);

    switch (test_random_below(seed, 3)) {
    case 0: /* few bits: ties */
        integer = (test_random(seed) >> 39 | 1) << test_random_below(seed, 38);
        break;
    case 1: /* a tie of the first rounding, or beside it */
        integer = ((test_random(seed) >> 40 | 1 << 23) << 8 | 128) + test_random_below(seed, 3) - 1;
        integer <<= test_random_below(seed, 31);
        break;
    default:
        break;
    }
    if (test_random_below(seed, 2) != 0) {
        integer = -integer;
    }
    /* From results that vanish to those that overflow. */
    int32_t power = (int32_t)test_random_below(seed, 420) - 220;

    return (struct float_operands){
        .a = (uint32_t)(integer >> 32), .b = (uint32_t)integer, .c = (uint32_t)power};
}

static struct float_operands for_to_integer(uint64_t *seed)
{
    struct float_operands made = {.a = float_operands_any(seed)};
    int32_t power = 150 - (int32_t)field_of(made.a) - (int32_t)test_random_below(seed, 28);

    made.b = (uint32_t)(test_random_below(seed, 8) == 0 ? power + 40 : power);
    made.c = (UINT32_C(1) << (13 + test_random_below(seed, 9))) - 1;
    return made;
}

struct float_operands float_operands_make(uint64_t *seed, enum float_operation operation)
{
    bool made_to_fit = test_random_below(seed, 4) != 0;

    if (operation == FLOAT_FROM_INTEGER) {
        return for_from_integer(seed);
    }
    if (operation == FLOAT_TO_INTEGER) {
        return for_to_integer(seed);
    }
    if (test_random_below(seed, 16) == 0) {
        return (struct float_operands){.a = extreme(seed), .b = extreme(seed), .c = extreme(seed)};
    }
    if (made_to_fit) {
        switch (operation) {
        case FLOAT_ADD:
        case FLOAT_SUB:
        case FLOAT_IS_LESS:
        case FLOAT_IS_EQUAL:
        case FLOAT_MAXIMUM:
            return for_add(seed);
        case FLOAT_MUL:
            return for_mul(seed);
        case FLOAT_DIV:
            return for_div(seed);
        case FLOAT_SQRT:
        case FLOAT_LOG:
            return for_sqrt(seed);
        case FLOAT_FMA:
            return for_fma(seed);
        case FLOAT_EXP:
            return for_exp(seed);
        case FLOAT_FROM_INTEGER:
        case FLOAT_TO_INTEGER:
        case FLOAT_OPERATIONS:
            break;
        }
    }
    return (struct float_operands){.a = float_operands_any(seed),
                                   .b = float_operands_any(seed),
                                   .c = float_operands_any(seed)};
}

/* ---- what they give ------------------------------------------------------- */

/* Independent of the contract's arithmetic: rint() of an exact double. */
static uint32_t to_integer(struct float_operands operands)
{
    uint32_t magnitude = operands.a & ~SIGN;
    double value = magnitude >= INFINITE
                       ? ldexp((double)((magnitude & FRACTION) | (FRACTION + 1)), 255 - 150)
                       : (double)real_from_bits(magnitude);
    double rounded = fmin(rint(ldexp(value, (int32_t)operands.b)), (double)operands.c);
    uint32_t integer = (uint32_t)rounded;

    return operands.a & SIGN ? -integer : integer;
}

uint32_t float_operands_result(enum float_operation operation, struct float_operands operands)
{
    float a = real_from_bits(operands.a);
    float b = real_from_bits(operands.b);
    float c = real_from_bits(operands.c);

    switch (operation) {
    case FLOAT_ADD:
        return real_to_bits(a + b);
    case FLOAT_SUB:
        return real_to_bits(a - b);
    case FLOAT_MUL:
        return real_to_bits(a * b);
    case FLOAT_DIV:
        return real_to_bits(a / b);
    case FLOAT_SQRT:
        return real_to_bits(sqrtf(a));
    case FLOAT_FMA:
        return real_to_bits(fmaf(a, b, c));
    case FLOAT_EXP:
        return real_to_bits(scalar_exp(a));
    case FLOAT_LOG:
        return real_to_bits(scalar_log(a));
    case FLOAT_IS_LESS:
        return a < b;
    case FLOAT_IS_EQUAL:
        return a == b;
    case FLOAT_MAXIMUM:
        return fold_maximum_bits(fold_maximum(a, b));
    case FLOAT_FROM_INTEGER:
        return contraction_finish((int64_t)((uint64_t)operands.a << 32 | operands.b),
                                  (int32_t)operands.c);
    case FLOAT_TO_INTEGER:
        return to_integer(operands);
    case FLOAT_OPERATIONS:
        break;
    }
    assert(operation < FLOAT_OPERATIONS);
    return 0;
}
