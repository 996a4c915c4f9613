/*
 * args.h - the kernels of the CUDA backend by number, and what each is given.
 *
 * Read by C17 and by nvcc: plain structs of fixed-width fields and device pointers. launch/ fills
 * them in; the kernels are in the *_body.h files of this folder and of products/.
 */
#ifndef ENGINE_CUDA_KERNELS_ARGS_H
#define ENGINE_CUDA_KERNELS_ARGS_H

#include "engine/ops/op.h"
#include "engine/rules/rule.h"

#define CUDA_WARP 32

/* KERNEL_LIST(ENTRY) expands to ENTRY(NUMBER, function, arguments) for each kernel. */
/* clang-format off */
#define KERNEL_LIST(ENTRY) \
    ENTRY(RULE, kernel_rule, struct rule_args) \
    ENTRY(ELEMENTS, kernel_elements, struct elements_args) \
    ENTRY(QUADS, kernel_quads, struct quads_args) \
    ENTRY(ROWS, kernel_rows, struct rows_args) \
    ENTRY(HELD, kernel_held, struct held_args) \
    ENTRY(ATTENTION_NARROW, kernel_attention_narrow, struct attention_args) \
    ENTRY(ATTENTION_WIDE, kernel_attention_wide, struct attention_args) \
    ENTRY(ATTENTION_HALVES_NARROW, kernel_attention_halves_narrow, struct attention_args) \
    ENTRY(ATTENTION_HALVES_WIDE, kernel_attention_halves_wide, struct attention_args) \
    ENTRY(ATTEND_KEYS_NARROW, kernel_attend_keys_narrow, struct attention_args) \
    ENTRY(ATTEND_KEYS_WIDE, kernel_attend_keys_wide, struct attention_args) \
    ENTRY(ATTEND_KEYS_HALVES_NARROW, kernel_attend_keys_halves_narrow, struct attention_args) \
    ENTRY(ATTEND_KEYS_HALVES_WIDE, kernel_attend_keys_halves_wide, struct attention_args) \
    ENTRY(ATTEND_LONG_NARROW, kernel_attend_long_narrow, struct attention_args) \
    ENTRY(ATTEND_LONG_WIDE, kernel_attend_long_wide, struct attention_args) \
    ENTRY(ATTEND_LONG_HALVES_NARROW, kernel_attend_long_halves_narrow, struct attention_args) \
    ENTRY(ATTEND_LONG_HALVES_WIDE, kernel_attend_long_halves_wide, struct attention_args) \
    ENTRY(ENTROPY, kernel_entropy, struct entropy_args) \
    ENTRY(QUANTIZE_PEAKS, kernel_quantize_peaks, struct quantize_args) \
    ENTRY(QUANTIZE_EXPONENTS, kernel_quantize_exponents, struct quantize_args) \
    ENTRY(QUANTIZE_INTEGERS, kernel_quantize_integers, struct quantize_args) \
    ENTRY(QUANTIZE_ROWS, kernel_quantize_rows, struct quantize_args) \
    ENTRY(QUANTIZE_COLUMNS, kernel_quantize_columns, struct quantize_args) \
    ENTRY(QUANTIZE_TILES, kernel_quantize_tiles, struct tiles_args) \
    ENTRY(QUANTIZE_RAISE, kernel_quantize_raise, struct tiles_args) \
    ENTRY(PACK, kernel_pack, struct pack_args) \
    ENTRY(CONTRACT_NARROW, kernel_contract_narrow, struct contract_args) \
    ENTRY(CONTRACT_WIDE, kernel_contract_wide, struct contract_args) \
    ENTRY(CONTRACT_THREE, kernel_contract_three, struct contract_args) \
    ENTRY(HALVES_SHORT, kernel_halves_short, struct contract_args) \
    ENTRY(HALVES_LONG, kernel_halves_long, struct contract_args) \
    ENTRY(HALVES_WIDE, kernel_halves_wide, struct contract_args) \
    ENTRY(HALVES_THREE, kernel_halves_three, struct contract_args) \
    ENTRY(CONTRACT_PLAIN, kernel_contract_plain, struct contract_args) \
    ENTRY(STRIP_COLUMNS_NARROW, kernel_strip_columns_narrow, struct strip_columns_args) \
    ENTRY(STRIP_COLUMNS_WIDE, kernel_strip_columns_wide, struct strip_columns_args) \
    ENTRY(STRIP_HALVES_NARROW, kernel_strip_halves_narrow, struct strip_columns_args) \
    ENTRY(STRIP_HALVES_WIDE, kernel_strip_halves_wide, struct strip_columns_args) \
    ENTRY(HOPPER_NARROW, kernel_hopper_narrow, struct contract_args) \
    ENTRY(HOPPER_NARROW_HALF, kernel_hopper_narrow_half, struct contract_args) \
    ENTRY(ONES, kernel_ones, struct sums_args) \
    ENTRY(DOTS, kernel_dots, struct dots_args) \
    ENTRY(UPDATES, kernel_updates, struct updates_args) \
    ENTRY(SQUARES, kernel_squares, struct squares_args) \
    ENTRY(TOTAL, kernel_total, struct total_args) \
    ENTRY(ONEHOT_LINK, kernel_onehot_link, struct sums_args) \
    ENTRY(ONEHOT_SUM, kernel_onehot_sum, struct sums_args) \
    ENTRY(CHOSEN, kernel_chosen, struct chosen_args) \
    ENTRY(HASH_LEAVES, kernel_hash_leaves, struct hash_args) \
    ENTRY(HASH_NODES, kernel_hash_nodes, struct hash_args) \
    ENTRY(FINITE, kernel_finite, struct finite_args)
/* clang-format on */

#define KERNEL_NUMBER(number, function, arguments) KERNEL_##number,
enum cuda_kernel { KERNEL_LIST(KERNEL_NUMBER) KERNEL_COUNT };

/* One output of one operation, element by element, by its rule. */
struct rule_args {
    struct rule_call call; /* op and memory are the device's */
    uint64_t count;
    uint32_t output;
    uint32_t reserved;
};

/* Where a step's second number lies. */
enum epilogue_source {
    EPILOGUE_NONE,  /* it has none */
    EPILOGUE_ROW,   /* in a row, at the result's column */
    EPILOGUE_WHOLE, /* at the result's own place */
    EPILOGUE_AHEAD, /* the same, of the tensor that is prefetched */
};

/* The functions that a step can be. */
enum epilogue_code {
    EPILOGUE_ADD,
    EPILOGUE_MUL,
    EPILOGUE_SCALE,
    EPILOGUE_RELU,
    EPILOGUE_RELU_GRAD,
    EPILOGUE_GELU,
    EPILOGUE_GELU_GRAD,
    EPILOGUE_SILU,
    EPILOGUE_SILU_GRAD,
};

#define EPILOGUE_STEPS_MAX 4

/* One element-wise operation on a number in a register. */
struct epilogue_step {
    const float *other;
    uint32_t *out;     /* bits; NULL: nobody wants its result */
    uint32_t code;     /* enum epilogue_code */
    uint32_t source;   /* enum epilogue_source */
    uint32_t constant; /* of a scale: bits */
    uint32_t restarts; /* it takes the product's result, not that of the step before it */
};

/*
 * Steps on results before they leave registers. Results lie row after row, in rows of a multiple of
 * four. Everything that is read or written begins at a multiple of 16 bytes.
 */
struct epilogue {
    const float *ahead; /* NULL: nothing is prefetched */
    struct epilogue_step steps[EPILOGUE_STEPS_MAX];
    uint32_t count; /* 0: results are written as they are, wherever they lie */
    uint32_t reserved;
};

/* Element-wise operations over numbers that lie in memory; row: of the steps' rows, or all. */
struct quads_args {
    const float *x;
    uint64_t count;
    uint32_t row;
    uint32_t reserved;
    struct epilogue epilogue;
};

/* All outputs of an operation whose elements depend on inputs of one index: f32 memory only. */
struct elements_args {
    const struct op *op; /* the device's */
    const void *inputs[OP_INPUTS_MAX];
    uint64_t input_counts[OP_INPUTS_MAX];
    void *outputs[OP_OUTPUTS_MAX];
    uint64_t count;
    uint32_t alike; /* of a BINARY: a bit for each operand that lies as the output does */
    uint32_t reserved;
};

/* An operation along rows; outputs that are not wanted are NULL. */
struct rows_args {
    const void *inputs[OP_INPUTS_MAX];
    void *outputs[OP_OUTPUTS_MAX];
    const float *addend; /* of kernel_held: its sum with dx is written instead of dx; or NULL */
    uint64_t rows;
    uint64_t columns;
    uint64_t causal;
    const uint32_t *reach; /* of kernel_rows: a softmax's; or NULL */
    uint64_t reach_count;
    uint32_t kind;     /* enum op_kind */
    uint32_t constant; /* epsilon or scale: bits */
};

struct quantize_args {
    const float *x;   /* NULL: half */
    const void *half; /* numbers of 16 bits; not for kernel_quantize_rows, nor for fused groups */
    const int16_t *c; /* (batches, K): shifts, or NULL; not for kernel_quantize_rows */
    uint64_t batch_rows;
    int16_t *peaks; /* (rows, pieces) */
    int16_t *exponents;
    uint8_t *planes; /* packed; NULL: canonical q is written */
    uint8_t *shifts; /* NULL with canonical q, as lowest */
    void *q;         /* canonical, or NULL */
    int32_t *lowest;
    int64_t dims[6];
    int64_t strides[6];
    uint64_t rows;
    uint64_t plane_size;
    uint64_t strip_size;
    uint64_t shift_pitch;
    uint64_t k;
    uint64_t block;
    uint64_t blocks;
    uint64_t piece;
    uint64_t pieces;
    uint64_t block_span;
    int32_t window;
    int32_t bits;
    int32_t across; /* neighbouring rows are neighbours in memory */
    uint32_t line_log;
    uint32_t block_log; /* k >> block_log is the block of k */
    /* Of kernel_quantize_rows: warps that share a row, 1 or all of a block. Of
     * kernel_quantize_columns: columns of memory that a block holds. */
    uint32_t team;
    uint32_t dtype; /* of half */
};

/* What is made of each number of x before it is quantized. */
enum tiles_code {
    TILES_PLAIN,
    TILES_GELU,
    TILES_SILU,
    TILES_ENTROPY,    /* of logits the gradient of their cross-entropy; one matrix, only columns */
    TILES_LAYER_NORM, /* of its input a norm's result; as with logits */
    TILES_RMS_NORM,
    TILES_SLOPES, /* nothing is quantized of x itself */
};

/* Sums of columns without limbs: of a norm's bias or gain. */
struct tiles_sums {
    struct quantize_args view;
    int32_t *parts; /* (rows, pieces): sums of pieces */
    uint32_t *sums; /* (rows): bits */
};

/*
 * Matrices of across.k rows of `width` numbers, one or more: their columns quantized, their rows
 * where along has planes, and sums of the columns' integers. Only across says where numbers lie.
 *
 * Where x is what a norm was given, and dy what it is given backward, sums of the columns of dy and
 * of dy * (x - mean) * rstd: the gradients of the norm's bias and gain. One matrix.
 */
struct tiles_args {
    struct quantize_args across; /* no planes: nobody wants the limbs */
    struct quantize_args along;  /* no planes: nor those of the rows */
    int32_t *parts;  /* (across.rows, pieces): sums of pieces; NULL: nobody wants them */
    uint32_t *sums;  /* (across.rows): bits; NULL with parts */
    const float *dy; /* NULL: no slopes */
    struct tiles_sums slopes[2];
    const float *gain; /* of a norm, of each column, as bias */
    const float *bias;
    const float *mean; /* of each row of x, as rstd */
    const float *rstd;
    const uint32_t *targets; /* TILES_ENTROPY: of each row of x, as all that follows */
    const float *dloss;
    const float *maximum;
    const float *sum;
    uint64_t width;
    uint32_t code;  /* enum tiles_code */
    uint32_t quads; /* rows can be read by 16 bytes */
};

/* An operation along rows of one chunk, and where planes are given, the result's quantization. */
struct held_args {
    struct rows_args rows;
    struct quantize_args quantize;
};

/*
 * Cross-entropy along rows, its gradient and, where planes are given, the gradient's quantization:
 * of quantize.rows rows of quantize.k numbers from quantize.x on. What is not wanted is NULL.
 */
struct entropy_args {
    struct quantize_args quantize;
    const uint32_t *targets;
    const float *dloss;
    float *dx; /* may lie over x */
    float *loss;
    float *maximum;
    float *sum;
};

/* Planes, shifts and lowest[] of a canonical q. */
struct pack_args {
    const void *q;
    const int16_t *exponents;
    uint8_t *planes;
    uint8_t *shifts;
    int32_t *lowest;
    uint64_t rows;
    uint64_t k;
    uint64_t plane_size;
    uint64_t strip_size;
    uint64_t shift_pitch;
    uint64_t blocks;
    int32_t bits;
    uint32_t line_log;
};

/* What packed.h says of an operand, as the kernels need it. */
struct packed_operand {
    const uint8_t *planes;
    const uint8_t *shifts;
    const int32_t *lowest;
    uint64_t plane_size;
    uint64_t strip_size;
    uint64_t shift_pitch;
    uint64_t atoms;
};

struct contract_args {
    struct packed_operand a;
    struct packed_operand b;
    uint32_t *out;     /* bits of binary32; NULL: only what the epilogue makes is wanted */
    uint64_t *partial; /* (batch, m, n): sums, from zero, where splits > 1 */
    uint32_t *tickets; /* per tile (and half of it): how many splits are done; from zero */
    int64_t dims[6];
    int64_t strides[6];
    uint64_t m; /* rows of A in a batch */
    uint64_t n;
    uint64_t k;
    uint64_t blocks;
    uint64_t causal;
    uint64_t batches;
    uint64_t batch_first; /* a grid has 65,535 blocks in y at most */
    uint32_t tiles_m;
    uint32_t tiles_n;
    uint32_t splits;    /* of k */
    uint32_t reach_log; /* so many elements of one block, 2^reach_log, have sums in 32 bits */
    int32_t bits;
    uint32_t line_log;
    uint32_t block_log; /* k >> block_log is the block of k */
    uint32_t stages;    /* in shared memory */
    uint32_t gives_up;  /* on a wait that does not end, kernels of wgmma go on (1) or fail (0) */
    uint32_t reserved;
    struct epilogue epilogue; /* one batch, nothing causal */
};

/*
 * A product one operand of which is held by a block of threads as numbers: strip_body.h. Of
 * contract, that operand has no limbs; its rows are those of A, or of B.
 */
struct strip_product {
    struct contract_args contract;
    int32_t window; /* of the operand that is held */
    uint32_t is_b;  /* it is B */
};

/* Columns of memory that are held as rows, and their product: strip_columns_body.h. */
struct strip_columns_args {
    struct quantize_args view; /* no outputs */
    struct strip_product product;
    uint64_t strips; /* of a batch */
    uint32_t rows;   /* of a strip: 16 or 32 */
    uint32_t reserved;
};

/*
 * Attention by strips of queries (kernel_attention_..., and kernel_attend_long_... for rows of
 * several chunks) or of keys (kernel_attend_keys_...): p or ds, which is held, and its product:
 * attention_body.h. No result of scores and slopes is written, and of the operation along the rows
 * only what has an output.
 */
struct attention_args {
    struct rows_args rows; /* inputs[0]: p, where scores have no planes; else nothing is read */
    struct contract_args scores;  /* queries (A) by keys (B); no planes of A: p lies in memory */
    struct contract_args slopes;  /* dout (A) by values (B); no planes of A: p is wanted, not ds */
    struct strip_product product; /* contract.out NULL: none */
    const float *maximum;         /* of each query's scores, where p is made again, as the sum */
    const float *sum;
    const float *dot;    /* of p * dp, where ds is made again */
    uint32_t strips;     /* of a batch */
    uint32_t strip_rows; /* 16 or 32 */
};

struct sums_args {
    struct packed_operand q;
    const uint32_t *index;  /* one-hots */
    uint32_t *heads;        /* (vocabulary): the last k of each word, plus one */
    uint32_t *links;        /* (K): the k before it, plus one */
    uint32_t *out;          /* bits */
    const uint32_t *addend; /* one-hots: added to the results, which may lie there; or NULL */
    uint64_t rows;          /* of q: the width of one-hots' results */
    uint64_t vocabulary;
    uint64_t k;
    int32_t bits;
    uint32_t line_log;
    uint32_t block_log;
    uint32_t reserved;
};

/* Sums of a row of A by the same row of B, or of A alone where B has no planes. */
struct dots_args {
    struct packed_operand a;
    struct packed_operand b;
    uint32_t
        *out; /* bits; row r at r / rows_inner * stride_outer + r % rows_inner * stride_inner */
    uint64_t rows;
    uint64_t rows_inner;
    uint64_t stride_outer;
    uint64_t stride_inner;
    uint64_t k;
    int32_t bits;
    uint32_t line_log;
    uint32_t block_log;
    uint32_t team; /* warps that share a row, 1 or all of a block */
};

/* Products of rows by experts; apart: sums of two rows over the places of each expert. */
struct chosen_args {
    struct packed_operand a;
    struct packed_operand b;
    const uint32_t *index; /* of rows of A; apart: of places along K */
    uint32_t *out;         /* bits */
    uint64_t rows;
    uint64_t columns;
    uint64_t experts;
    uint64_t k;
    int32_t bits;
    uint32_t line_log;
    uint32_t block_log;
    uint32_t apart;
};

/* One tensor of a list of parameters: as an operation of its own, SGD or AdamW, would update it. */
struct update_item {
    const void *inputs[OP_INPUTS_MAX]; /* in the rule's order; NULL behind the last */
    void *outputs[3];
    const struct op *op; /* the device's */
    uint64_t count;
    uint32_t quads; /* all of it can be read and written by 16 bytes */
    uint32_t reserved;
};

/* Work is counted through all items, from firsts[item] on. */
struct updates_args {
    const struct update_item *items;
    const uint64_t *firsts;
    uint64_t first_tile;
    uint64_t end_tile;
    uint32_t item_count;
    uint32_t reserved;
};

/* Rows of numbers, of each of which the sum of its squares, or its sum, is wanted. */
struct square_item {
    const float *x;
    uint32_t *out; /* (rows): bits */
    uint64_t rows;
    uint64_t k;
    int32_t window;
    int32_t bits;
    uint32_t whole;   /* the row is one block; otherwise a piece is */
    uint32_t squares; /* or the sum of the numbers themselves */
    uint32_t quads;   /* rows can be read by 16 bytes */
    uint32_t reserved;
};

struct squares_args {
    const struct square_item *items;
    const uint64_t *firsts;
    uint64_t tiles;
    uint32_t item_count;
    uint32_t reserved;
};

struct total_args {
    const float *const *terms;
    float *out;
    uint32_t count;
    uint32_t reserved;
};

#define HASH_LEAF    1024
#define HASH_DIGEST  32
#define HASH_SEGMENT 256 /* digests that a block folds into one */
#define HASH_LEVELS  6   /* leaves, and segments of segments: 2^40 bytes and more */

/* A tensor to hash. first[level]: where its digests of that level begin among all tensors'. */
struct hash_item {
    const uint8_t *bytes;
    uint64_t size; /* more than 0 */
    uint64_t first[HASH_LEVELS];
};

/* How many digests a tensor of this size has at a level. */
static RULE inline uint64_t hash_count(uint64_t size, uint32_t level)
{
    uint64_t count = (size + HASH_LEAF - 1) / HASH_LEAF;

    for (uint32_t i = 0; i < level; i++) {
        count = (count + HASH_SEGMENT - 1) / HASH_SEGMENT;
    }
    return count;
}

/* Many tensors at once: a leaf is a long chain of steps, and a small tensor has few of them. */
struct hash_args {
    const struct hash_item *items;
    const uint8_t *from; /* digests of level - 1 */
    uint8_t *to;         /* digests of level */
    uint64_t total;      /* of level, of all items */
    uint32_t item_count;
    uint32_t level; /* 0: leaves */
};

/* Raises *found to 1 where an exponent is all ones. */
struct finite_args {
    const uint32_t *bits;
    uint32_t *found;
    uint64_t count;
};

/* A number that changes with the size of any of these. */
#define KERNEL_SIZE(number, function, arguments)                                                   \
    +((KERNEL_##number + 1) * (uint32_t)sizeof(arguments))
#define KERNEL_ARGUMENTS_CHECK (0u KERNEL_LIST(KERNEL_SIZE) + (uint32_t)sizeof(struct op))

/*
 * Which limbs are multiplied: of 14 bits by three products or by four, of 15 and 16, of 22; and as
 * halves, with sums that begin at HALVES_START (short) or at 0 (packed.h).
 */
enum limb_kind {
    LIMBS_NARROW,
    LIMBS_FOUR,
    LIMBS_WIDE,
    LIMBS_THREE,
    LIMBS_HALVES_SHORT,
    LIMBS_HALVES_LONG,
    LIMBS_HALVES_WIDE,
    LIMBS_HALVES_THREE
};

/*
 * Tiles and shared memory of the contraction by mma: contract_body.h. A stage holds two planes (22
 * bits: three, of tiles with half the rows of A) of rows of 64 bytes, and the shifts of its two
 * steps, in pieces of 16 bytes that begin at or before the first row.
 */
#define CONTRACT_THREADS     256
#define CONTRACT_ROWS        128 /* of A in a tile */
#define CONTRACT_ROWS_THREE  64  /* where there are three limbs */
#define CONTRACT_COLUMNS     64  /* rows of B in a tile */
#define CONTRACT_STAGE       64  /* elements of k that lie in shared memory together */
#define CONTRACT_STAGES_MAX  4
#define CONTRACT_TILE_ROWS   (CONTRACT_ROWS + CONTRACT_COLUMNS)
#define CONTRACT_LIMBS_SIZE  (2 * CONTRACT_TILE_ROWS * CONTRACT_STAGE) /* or three of fewer rows */
#define CONTRACT_SHIFTS_A    (CONTRACT_ROWS + 16)
#define CONTRACT_SHIFTS_SIZE (CONTRACT_SHIFTS_A + CONTRACT_COLUMNS + 16) /* of a step */
#define CONTRACT_STAGE_SIZE  (CONTRACT_LIMBS_SIZE + 2 * CONTRACT_SHIFTS_SIZE)

/* As many stages as blocks of a device have room for: 4, or 2 (sm_75). 0: not known, enough. */
#define CONTRACT_STAGES(shared_max)                                                                \
    ((shared_max) == 0 || (shared_max) >= CONTRACT_STAGES_MAX * CONTRACT_STAGE_SIZE + 1024         \
         ? CONTRACT_STAGES_MAX                                                                     \
         : 2)

/*
 * Results in an epilogue: a warp has a patch of 8 rows of 32 in shared memory, in longer rows so
 * that neighbouring rows lie in other banks; and what steps read of this patch and of the next.
 */
#define EPILOGUE_ROWS       8
#define EPILOGUE_COLUMNS    32
#define EPILOGUE_PITCH      40
#define EPILOGUE_AHEAD_SIZE (EPILOGUE_ROWS * EPILOGUE_COLUMNS * 4)
#define EPILOGUE_STAGE_SIZE (EPILOGUE_ROWS * EPILOGUE_PITCH * 4 + 2 * EPILOGUE_AHEAD_SIZE)

/*
 * Tiles and shared memory of the contraction by wgmma: hopper_body.h. A slot holds 128 rows of one
 * plane of A and as many of B, of lines of up to 128 bytes. Behind the slots lie their control
 * data, and then the patches of the multiplying warps.
 */
#define HOPPER_CAPABILITY   90  /* of the devices that have them */
#define HOPPER_GROUP        128 /* threads: one group brings, two multiply */
#define HOPPER_THREADS      (3 * HOPPER_GROUP)
#define HOPPER_ROWS         128
#define HOPPER_COLUMNS      128 /* 64 in the kernel of half tiles */
#define HOPPER_OPERAND_SIZE (HOPPER_ROWS * 128)
#define HOPPER_SLOT_SIZE    (2 * HOPPER_OPERAND_SIZE)
#define HOPPER_SLOTS        6
#define HOPPER_REACH        256 /* elements of a run, at most: it lies in four slots */
#define HOPPER_RUNS         4   /* runs whose shifts are kept: hopper_body.h says why that many */
#define HOPPER_CONTROL_SIZE (HOPPER_RUNS * 5 * HOPPER_COLUMNS + 16 * HOPPER_SLOTS + 8)
#define HOPPER_STAGES       ((HOPPER_CONTROL_SIZE + 15) / 16 * 16) /* behind the slots */
#define HOPPER_SHARED                                                                              \
    (1024 + HOPPER_SLOTS * HOPPER_SLOT_SIZE + HOPPER_STAGES +                                      \
     2 * HOPPER_GROUP / CUDA_WARP * EPILOGUE_STAGE_SIZE)

#define ATTENTION_D_MAX 128 /* elements of a query */

#define PLAIN_TILE 32 /* rows and columns of a tile of kernel_contract_plain */
#define PLAIN_STEP 16 /* elements of k: no block is shorter */

#define QUANTIZE_TILE_ROWS 32
#define QUANTIZE_TILE_K    128

/*
 * Columns of memory that a block holds whole, to write them as rows: columns_body.h. A column is
 * as long as its pieces, and four more, so that lanes find it in other banks.
 */
#define COLUMNS_THREADS            512
#define COLUMNS_MAX                32
#define COLUMNS_MIN                8
#define COLUMNS_PIECES_MAX         1024 /* of all columns of a block */
#define COLUMNS_PITCH(k)           ((uint32_t)(((k) + 127) / 128 * 128 + 4))
#define COLUMNS_SHARED(columns, k) ((uint64_t)(columns)*COLUMNS_PITCH(k) * 4)
#define COLUMNS_SHARED_STATIC      (COLUMNS_PIECES_MAX * 4 + COLUMNS_MAX * 8 + 1024)

/* A square of numbers in the registers of a block: tiles_body.h. A warp has some rows of it. */
#define TILES_THREADS 512
#define TILES_SIDE    128 /* a piece */
#define TILES_ROWS    (TILES_SIDE / (TILES_THREADS / CUDA_WARP))
#define TILES_PITCH   (TILES_SIDE + 2) /* integers of 16 bits from column to column */

/*
 * A row of logits in shared memory: entropy_body.h. Each chunk has an area of its own, four numbers
 * longer, so that it can begin as far behind a multiple of 16 bytes as it does in memory.
 */
#define ENTROPY_PITCH           (FOLD_CHUNK + 4)
#define ENTROPY_CHUNKS_MAX      64
#define ENTROPY_PIECES          (FOLD_CHUNK / 128) /* of a chunk */
#define ENTROPY_WARPS_MAX       32
#define ENTROPY_SHARED(columns) ((uint64_t)fold_chunks(columns) * ENTROPY_PITCH * 4)
#define ENTROPY_SHARED_STATIC                                                                      \
    (ENTROPY_CHUNKS_MAX * (4 + 2 * ENTROPY_PIECES) + ENTROPY_WARPS_MAX * 12 + 1024)

/*
 * A strip: 16 or 32 rows of numbers in shared memory, and the control of it behind: strip_body.h.
 * Of longer rows it holds STRIP_K_MAX elements at a time. Rows begin in other banks, an odd number
 * of words apart, so that lanes go along them and across them, and eight rows by four lanes of
 * eight elements, all without conflicts. The sums that warps add up at the end lie where the
 * numbers were.
 */
#define STRIP_THREADS 512
#define STRIP_WARPS   (STRIP_THREADS / CUDA_WARP)
#define STRIP_ROWS    32
#define STRIP_PIECES  8
#define STRIP_K_MAX   (STRIP_PIECES * 128)
#define STRIP_COLUMNS 128 /* rows of the other operand, at most */

#define STRIP_HELD(k)          ((k) < STRIP_K_MAX ? (k) : STRIP_K_MAX)
#define STRIP_PITCH(k)         ((uint32_t)((STRIP_HELD(k) + 127) / 128 * 128 + 9))
#define STRIP_SUMS(rows)       ((uint64_t)(rows) * (STRIP_COLUMNS + 8) * 8) /* of one part */
#define STRIP_NUMBERS(rows, k) (((uint64_t)(rows)*STRIP_PITCH(k) * 4 + 15) / 16 * 16)
#define STRIP_AREA(rows, k)                                                                        \
    (STRIP_NUMBERS(rows, k) < STRIP_SUMS(rows) ? STRIP_SUMS(rows) : STRIP_NUMBERS(rows, k))
#define STRIP_ROW_NUMBERS 3 /* of each row: attention_body.h */
#define STRIP_CONTROL_SIZE                                                                         \
    (STRIP_ROWS * (4 * STRIP_PIECES + STRIP_PIECES + 4 + 4 + 4 * STRIP_ROW_NUMBERS) +              \
     STRIP_PIECES * STRIP_COLUMNS)
#define STRIP_SHARED(rows, k) ((uint32_t)(STRIP_AREA(rows, k) + STRIP_CONTROL_SIZE))

#define UPDATE_TILE   8192 /* elements of one tensor that a block updates at a time */
#define SQUARE_TEAM_K 1024 /* longer rows are shared by all warps of a block */

#define HELD_MAX           FOLD_CHUNK /* columns of a row that a warp holds */
#define ROWS_WARPS         8          /* of a block of kernel_rows */
#define HASH_NODES_THREADS 128
#define HASH_LEAF_THREADS  64
#define BLOCK_THREADS      256 /* of every other kernel */

/*
 * The dynamic shared memory that a launch of a kernel may ask for: of a block's shared_max bytes on
 * this device. Beyond SHARED_USUAL, which every kernel has, device.cu asks the runtime for it when
 * the device is opened; a launch that asks for more fails. 0: no more than the usual.
 */
#define SHARED_USUAL (48 << 10)

static inline uint32_t kernel_shared_most(uint32_t kernel, uint32_t shared_max, int32_t capability)
{
    switch (kernel) {
    case KERNEL_CONTRACT_NARROW:
    case KERNEL_CONTRACT_WIDE:
    case KERNEL_CONTRACT_THREE:
    case KERNEL_HALVES_SHORT:
    case KERNEL_HALVES_LONG:
    case KERNEL_HALVES_WIDE:
    case KERNEL_HALVES_THREE:
        return CONTRACT_STAGES(shared_max) * CONTRACT_STAGE_SIZE;
    case KERNEL_QUANTIZE_COLUMNS:
        return shared_max - COLUMNS_SHARED_STATIC;
    case KERNEL_STRIP_COLUMNS_NARROW:
    case KERNEL_STRIP_COLUMNS_WIDE:
    case KERNEL_STRIP_HALVES_NARROW:
    case KERNEL_STRIP_HALVES_WIDE:
    case KERNEL_ATTENTION_NARROW:
    case KERNEL_ATTENTION_WIDE:
    case KERNEL_ATTENTION_HALVES_NARROW:
    case KERNEL_ATTENTION_HALVES_WIDE:
    case KERNEL_ATTEND_KEYS_NARROW:
    case KERNEL_ATTEND_KEYS_WIDE:
    case KERNEL_ATTEND_KEYS_HALVES_NARROW:
    case KERNEL_ATTEND_KEYS_HALVES_WIDE:
    case KERNEL_ATTEND_LONG_NARROW:
    case KERNEL_ATTEND_LONG_WIDE:
    case KERNEL_ATTEND_LONG_HALVES_NARROW:
    case KERNEL_ATTEND_LONG_HALVES_WIDE:
        return shared_max;
    case KERNEL_ENTROPY:
        return shared_max - ENTROPY_SHARED_STATIC;
    case KERNEL_HOPPER_NARROW:
    case KERNEL_HOPPER_NARROW_HALF:
        return capability == HOPPER_CAPABILITY ? HOPPER_SHARED : 0;
    default:
        return 0;
    }
}

#endif /* ENGINE_CUDA_KERNELS_ARGS_H */
