/*
 * probe.h - one operation of each class that the kernels use, tried on an instruction set.
 *
 * Each class is run on all pairs of sixteen operands, special values among them. Scalar code
 * gives what every lane must hold; a known digest holds the scalar code itself to its bits.
 */
#ifndef ENGINE_CPU_ISA_PROBE_H
#define ENGINE_CPU_ISA_PROBE_H

#include <stdint.h>

#define PROBE_LANES 16

enum probe_class {
    PROBE_ADD = 0,
    PROBE_SUB,
    PROBE_MUL,
    PROBE_DIV,
    PROBE_SQRT,
    PROBE_FMA,
    PROBE_FNMA,
    PROBE_TURN,   /* fma of pairs, as rotary needs it */
    PROBE_MIN,    /* the second operand where either is a NaN */
    PROBE_MAX,    /* the same */
    PROBE_SELECT, /* a > b ? a : c */
    PROBE_SCALE,  /* by a power of two, rounded once */
    PROBE_FOLD,   /* the tree of a canonical fold, over a and b */
    PROBE_PART,   /* of a, the first b[0] lanes, over c */
    PROBE_TO_INT,
    PROBE_FROM_INT,
    PROBE_FROM_LONG, /* 64-bit integers below 2^52 */
    PROBE_DOT,       /* c + the products of 16-bit halves */
    PROBE_SHIFT,
    PROBE_WIDE,        /* 64-bit products, shifts and sums */
    PROBE_ORDER,       /* of integers */
    PROBE_PACK,        /* saturated, with shuffled bytes */
    PROBE_BYTES,       /* widened */
    PROBE_BYTE_DOT,    /* c + the products of signed bytes: of i8mm; elsewhere scalar code */
    PROBE_BYTE_MATRIX, /* the same of rows of eight bytes, two by two */
    PROBE_COUNT,
};

/* Operands and results, as bits. */
struct probe_lanes {
    uint32_t a[PROBE_LANES];
    uint32_t b[PROBE_LANES];
    uint32_t c[PROBE_LANES];
    uint32_t out[PROBE_LANES];
};

/* Sets out of a probe whose operands are legal for the class. NaNs are the engine's one. */
typedef void probe_run(enum probe_class class, struct probe_lanes *probe);

probe_run probe_scalar;
probe_run probe_avx2;
probe_run probe_avx512;
probe_run probe_neon;
probe_run probe_i8mm;

/* "negated fma": for messages. */
const char *probe_name(enum probe_class class);

/* The first class in which run gives other bits than probe_scalar(); PROBE_COUNT if none. */
enum probe_class probe_compare(probe_run *run);

/* The first class in which run gives another digest than the known one; PROBE_COUNT if none. */
enum probe_class probe_known(probe_run *run);

#endif /* ENGINE_CPU_ISA_PROBE_H */
