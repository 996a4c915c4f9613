/* probe.c - see probe.h: operands, the scalar twins, and what their results must be. */
#include "engine/cpu/isa/probe.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "engine/ops/real.h"
#include "engine/ops/scalar.h"

#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME  UINT64_C(0x100000001b3)

/* The digest of a class's results over all rounds. */
struct class_facts {
    const char *name;
    uint64_t digest;
};

static const struct class_facts facts[PROBE_COUNT] = {
    [PROBE_ADD] = {"addition", UINT64_C(0x39ceebbd2694ba11)},
    [PROBE_SUB] = {"subtraction", UINT64_C(0x67ddb322994ea889)},
    [PROBE_MUL] = {"multiplication", UINT64_C(0x2d5d9322af52dc8d)},
    [PROBE_DIV] = {"division", UINT64_C(0x88708d9c07780cd5)},
    [PROBE_SQRT] = {"square root", UINT64_C(0x63875f1801279ced)},
    [PROBE_FMA] = {"fma", UINT64_C(0x3339ad6276e716fe)},
    [PROBE_FNMA] = {"negated fma", UINT64_C(0x3a7e4ba2f8d21f1a)},
    [PROBE_TURN] = {"fma of pairs", UINT64_C(0x7de56c2bbe928b11)},
    [PROBE_MIN] = {"minimum", UINT64_C(0x7f4076cfc85a90f1)},
    [PROBE_MAX] = {"maximum", UINT64_C(0x2b3f33dae81c22dd)},
    [PROBE_SELECT] = {"compare and select", UINT64_C(0xea2e1d8bc10e8e37)},
    [PROBE_SCALE] = {"scaling by a power of two", UINT64_C(0xfee0f115537208b7)},
    [PROBE_FOLD] = {"fold", UINT64_C(0x2e537890bd287325)},
    [PROBE_PART] = {"loads and stores of some lanes", UINT64_C(0x08b68cc8dc3e0299)},
    [PROBE_TO_INT] = {"conversion to integers", UINT64_C(0xf5e85ec062de089d)},
    [PROBE_FROM_INT] = {"conversion from integers", UINT64_C(0x1e27d3df5f53ef05)},
    [PROBE_FROM_LONG] = {"conversion from 64-bit integers", UINT64_C(0xd9b9ec75d572cfe5)},
    [PROBE_DOT] = {"integer dot product", UINT64_C(0x88351795e4a574c3)},
    [PROBE_SHIFT] = {"shifts", UINT64_C(0x0f73ace2eb96450f)},
    [PROBE_WIDE] = {"64-bit products", UINT64_C(0x70201b82a596135f)},
    [PROBE_ORDER] = {"integer comparison", UINT64_C(0xb4d9826d24c2f77f)},
    [PROBE_PACK] = {"packing", UINT64_C(0x4feda5439686f0a1)},
    [PROBE_BYTES] = {"widening of bytes", UINT64_C(0x2327d5924b83d36d)},
    [PROBE_BYTE_DOT] = {"dot product of bytes", UINT64_C(0x31e769ac4a7ed489)},
    [PROBE_BYTE_MATRIX] = {"matrix product of bytes", UINT64_C(0x15160eecf6e14039)},
};

const char *probe_name(enum probe_class class)
{
    return facts[class].name;
}

/* ---- operands --------------------------------------------------------------------------- */

static const uint32_t patterns[PROBE_LANES] = {
    0x00000000, 0x80000000, /* zeros */
    0x3f800000, 0xbf800000, /* ones */
    0x3f800001, 0x3fc00003, /* products of these round: a tie, and not a tie */
    0x00000001, 0x807fffff, /* subnormals */
    0x00800000, 0x7f7fffff, /* the least and the largest normal number */
    0xff800000, 0x7fc00000, /* an infinity, the NaN */
    0x4b000001, 0xc0200000, /* an odd integer of 24 bits; -2.5: a tie as an integer */
    0x42f6e979, 0x80008000, /* 123.456; two least 16-bit integers */
};

static bool is_below(uint32_t bits, float bound)
{
    return fabsf(real_from_bits(bits)) < bound;
}

/* Brings the operands of a lane to what the kernels give an operation of the class. */
static void make_legal(enum probe_class class, struct probe_lanes *probe, uint32_t lane)
{
    int32_t k = (int32_t)((probe->b[lane] ^ probe->b[lane] >> 16) & 0xff) - 150;

    if (class == PROBE_SCALE) {
        probe->a[lane] = (probe->a[lane] & 0x7fffff) | 0x3f800000;
        probe->b[lane] = real_to_bits(SCALAR_ROUNDER) + (uint32_t)k;
        probe->c[lane] = real_to_bits((float)k);
    } else if (class == PROBE_TO_INT && !is_below(probe->a[lane], 0x1p31f)) {
        probe->a[lane] = 0;
    } else if (class == PROBE_FROM_LONG && lane % 2 == 1) {
        probe->a[lane] &= 0xfffff;
    }
}

/* Over all rounds every pair of patterns meets as a and b, and every three zeros do. */
#define ROUNDS (PROBE_LANES * 4)

static void make_round(enum probe_class class, struct probe_lanes *probe, uint32_t round)
{
    static const uint32_t thirds[4] = {0, 1, 7, PROBE_LANES - 1};
    uint32_t second = round % PROBE_LANES;
    uint32_t third = thirds[round / PROBE_LANES];

    for (uint32_t lane = 0; lane < PROBE_LANES; lane++) {
        uint32_t first = lane + second + third;

        probe->a[lane] = patterns[first % PROBE_LANES];
        probe->b[lane] = patterns[(first + second) % PROBE_LANES];
        probe->c[lane] = patterns[(first + third) % PROBE_LANES];
        make_legal(class, probe, lane);
    }
    memset(probe->out, 0xa5, sizeof(probe->out));
    __asm__ volatile("" : : "r"(probe) : "memory"); /* the processor computes, not the compiler */
}

/* ---- the scalar twins ------------------------------------------------------------------- */

static uint32_t power_bits(int32_t exponent)
{
    return (uint32_t)(exponent + 127) << 23;
}

static float scaled_by_power(float p, uint32_t rounder)
{
    int32_t k = (int32_t)(rounder - real_to_bits(SCALAR_ROUNDER));
    int32_t half = k >> 1;

    return p * real_from_bits(power_bits(half)) * real_from_bits(power_bits(k - half));
}

/* Does the class compute numbers, a lane from the same lane? */
static bool one_real(float *out, enum probe_class class, const struct probe_lanes *probe,
                     uint32_t i)
{
    float a = real_from_bits(probe->a[i]);
    float b = real_from_bits(probe->b[i]);
    float c = real_from_bits(probe->c[i]);

    switch ((int)class) {
    case PROBE_ADD:
        *out = a + b;
        return true;
    case PROBE_SUB:
        *out = a - b;
        return true;
    case PROBE_MUL:
        *out = a * b;
        return true;
    case PROBE_DIV:
        *out = a / b;
        return true;
    case PROBE_SQRT:
        *out = sqrtf(a);
        return true;
    case PROBE_FMA:
        *out = fmaf(a, b, c);
        return true;
    case PROBE_FNMA:
        *out = fmaf(-a, b, c);
        return true;
    case PROBE_MIN:
        *out = a < b ? a : b;
        return true;
    case PROBE_MAX:
        *out = a > b ? a : b;
        return true;
    case PROBE_SELECT:
        *out = a > b ? a : c;
        return true;
    case PROBE_SCALE:
        *out = scaled_by_power(a, probe->b[i]);
        return true;
    case PROBE_FROM_INT:
        *out = (float)(int32_t)probe->a[i];
        return true;
    case PROBE_TURN: /* even lanes a * b - c, odd ones a * b + c, where odd c are negated */
        a = real_from_bits(probe->a[i & ~1u]);
        b = real_from_bits(probe->b[i ^ 1u]);
        c = real_from_bits(probe->c[i | 1u]);
        *out = fmaf(a, b, -c);
        return true;
    default:
        return false;
    }
}

static uint32_t dot_pairs(uint32_t a, uint32_t b, uint32_t c)
{
    int32_t low = (int32_t)(int16_t)a * (int16_t)b;
    int32_t high = (int32_t)(int16_t)(a >> 16) * (int16_t)(b >> 16);

    return c + (uint32_t)low + (uint32_t)high;
}

static uint32_t byte_dot(uint32_t a, uint32_t b, uint32_t c)
{
    for (int at = 0; at < 32; at += 8) {
        c += (uint32_t)((int32_t)(int8_t)(a >> at) * (int8_t)(b >> at));
    }
    return c;
}

/* Of four lanes: two rows of a by two rows of b, each of two lanes. */
static uint32_t byte_matrix(const struct probe_lanes *probe, uint32_t lane)
{
    const uint32_t *a = &probe->a[lane - lane % 4 + lane % 4 / 2 * 2];
    const uint32_t *b = &probe->b[lane - lane % 4 + lane % 2 * 2];

    return byte_dot(a[0], b[0], byte_dot(a[1], b[1], probe->c[lane]));
}

static uint32_t mixed_shifts(uint32_t a, uint32_t b)
{
    return (a << 23) ^ (a >> 1) ^ (uint32_t)((int32_t)a >> 7) ^ (a << (b & 31));
}

static uint32_t mixed_orders(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t least = (int32_t)a < (int32_t)b ? a : b;
    uint32_t most = (int32_t)a > (int32_t)b ? a : b;

    return (least + least) ^ most ^ ((a > b ? a : b) + c) ^ ((int32_t)a > (int32_t)b ? c : 0);
}

static uint16_t saturated_16(uint32_t bits)
{
    int32_t value = (int32_t)bits;

    return (uint16_t)(value > INT16_MAX ? INT16_MAX : value < INT16_MIN ? INT16_MIN : value);
}

/* One group of four lanes: a and b packed, their bytes reversed, interleaved with c. */
static void pack_group(struct probe_lanes *probe, uint32_t group)
{
    uint16_t packed[8];
    uint8_t bytes[16];
    uint8_t reversed[16];
    uint32_t x[4];
    const uint32_t *c = &probe->c[4 * group];
    uint32_t *out = &probe->out[4 * group];

    for (uint32_t i = 0; i < 4; i++) {
        packed[i] = saturated_16(probe->a[4 * group + i]);
        packed[4 + i] = saturated_16(probe->b[4 * group + i]);
    }
    memcpy(bytes, packed, sizeof(bytes));
    for (uint32_t i = 0; i < 16; i++) {
        reversed[i] = bytes[15 - i];
    }
    memcpy(x, reversed, sizeof(x));
    out[0] = x[0] ^ x[2];
    out[1] = c[0] ^ c[2];
    out[2] = x[1] ^ x[3];
    out[3] = c[1] ^ c[3];
}

static void put_long(uint32_t *out, uint64_t value)
{
    out[0] = (uint32_t)value;
    out[1] = (uint32_t)(value >> 32);
}

/* Lanes 2 * pair and the next. */
static void one_pair(enum probe_class class, struct probe_lanes *probe, uint32_t pair)
{
    uint32_t *out = &probe->out[2 * pair];
    const uint32_t *a = &probe->a[2 * pair];
    uint64_t wide = (uint64_t)a[1] << 32 | a[0];

    if (class == PROBE_FROM_LONG) {
        put_long(out, real_to_bits((float)(int64_t)wide));
    } else {
        wide = (uint64_t)((int64_t)(int32_t)a[0] * (int32_t)probe->b[2 * pair]);
        put_long(out, (wide << (probe->c[0] & 31)) + (wide >> 32));
    }
}

static uint32_t folded_lanes(const struct probe_lanes *probe)
{
    float lanes[2 * PROBE_LANES];

    for (uint32_t i = 0; i < PROBE_LANES; i++) {
        lanes[i] = real_from_bits(probe->a[i]);
        lanes[PROBE_LANES + i] = real_from_bits(probe->b[i]);
    }
    for (uint32_t d = PROBE_LANES; d > 0; d /= 2) {
        for (uint32_t i = 0; i < d; i++) {
            lanes[i] = lanes[i] + lanes[i + d];
        }
    }
    return real_to_bits(lanes[0]);
}

static uint32_t one_integer(enum probe_class class, const struct probe_lanes *probe, uint32_t i)
{
    uint32_t a = probe->a[i];
    uint32_t b = probe->b[i];
    uint32_t c = probe->c[i];

    switch ((int)class) {
    case PROBE_FOLD:
        return folded_lanes(probe);
    case PROBE_PART:
        return i < (probe->b[0] & 15) ? a : c;
    case PROBE_TO_INT:
        return (uint32_t)(int32_t)lrintf(real_from_bits(a));
    case PROBE_DOT:
        return dot_pairs(a, b, c);
    case PROBE_BYTE_DOT:
        return byte_dot(a, b, c);
    case PROBE_BYTE_MATRIX:
        return byte_matrix(probe, i);
    case PROBE_SHIFT:
        return mixed_shifts(a, b);
    case PROBE_ORDER:
        return mixed_orders(a, b, c);
    default: /* PROBE_BYTES */
        return probe->a[i / 4] >> (8 * (i % 4)) & 0xff;
    }
}

void probe_scalar(enum probe_class class, struct probe_lanes *probe)
{
    float real;

    if (class == PROBE_PACK) {
        for (uint32_t group = 0; group < PROBE_LANES / 4; group++) {
            pack_group(probe, group);
        }
        return;
    }
    if (class == PROBE_FROM_LONG || class == PROBE_WIDE) {
        for (uint32_t pair = 0; pair < PROBE_LANES / 2; pair++) {
            one_pair(class, probe, pair);
        }
        return;
    }
    for (uint32_t i = 0; i < PROBE_LANES; i++) {
        probe->out[i] =
            one_real(&real, class, probe, i) ? real_to_bits(real) : one_integer(class, probe, i);
    }
}

/* ---- comparing -------------------------------------------------------------------------- */

static bool has_scalar_bits(probe_run *run, enum probe_class class)
{
    struct probe_lanes probe;
    struct probe_lanes scalar;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        make_round(class, &probe, round);
        scalar = probe;
        run(class, &probe);
        probe_scalar(class, &scalar);
        if (memcmp(probe.out, scalar.out, sizeof(probe.out)) != 0) {
            return false;
        }
    }
    return true;
}

enum probe_class probe_compare(probe_run *run)
{
    int at = 0;

    while (at < PROBE_COUNT && has_scalar_bits(run, (enum probe_class)at)) {
        at++;
    }
    return (enum probe_class)at;
}

static uint64_t digest_of(probe_run *run, enum probe_class class)
{
    uint64_t digest = FNV_OFFSET;
    struct probe_lanes probe;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        make_round(class, &probe, round);
        run(class, &probe);
        for (uint32_t i = 0; i < PROBE_LANES; i++) {
            digest = (digest ^ probe.out[i]) * FNV_PRIME;
        }
    }
    return digest;
}

enum probe_class probe_known(probe_run *run)
{
    int at = 0;

    while (at < PROBE_COUNT && digest_of(run, (enum probe_class)at) == facts[at].digest) {
        at++;
    }
    return (enum probe_class)at;
}
