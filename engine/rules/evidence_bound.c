/* evidence_bound.c - see evidence_bound.h. */
#include "engine/rules/evidence_bound.h"

#include <inttypes.h>

#include "engine/ops/contraction.h"
#include "engine/ops/image.h"
#include "engine/ops/spec/op_spec.h"
#include "engine/rules/rule.h"

enum {
    LEAF = 1024,        /* bytes of a leaf, and of its index: MERKLE_LEAF_SIZE */
    INDEX = 8,          /* ... */
    DIGEST = 32,        /* of a sibling, a root */
    PATH = 1 + 20 * 32, /* in a list of at most 2^20 items: a trace, a program */
    LABEL = 256,        /* with its size */
    DESCRIPTOR = 1024,  /* DESCRIPTOR_SIZE_MAX */
    HEADING = 13 + PATH + 2 + DESCRIPTOR + DIGEST + 9 + 2,
    PART_HEADING = 35, /* of a part: its number, the range that it is of, the size of the reply */
    OPERAND = LABEL + DIGEST + 4 + PATH + 4,
};

/* What a rule reads of an operand at most: runs that may lie anywhere, and elements of each. */
struct reads {
    uint64_t runs;
    uint64_t length;
};

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t divided_up(uint64_t value, uint64_t by)
{
    return (value + by - 1) / by;
}

/* ---- what the rules read ------------------------------------------------ */

/* Windows in which an element lies, or places of a window. */
static uint64_t window_reads(const struct op *op)
{
    const struct image image = image_of(op);

    return op->kind == OP_MAX_POOL || op->kind == OP_MEAN_POOL
               ? (uint64_t)(image.y.kernel * image.x.kernel)
               : (uint64_t)(image_covers(&image.y) * image_covers(&image.x));
}

static void all_read(struct reads *reads, uint32_t count, uint64_t runs, uint64_t length)
{
    for (uint32_t i = 0; i < count; i++) {
        reads[i] = (struct reads){runs, length};
    }
}

/* q of a part, and the exponents of its blocks, from operand `first` on. */
static void row_reads(struct reads *reads, const struct op *op, uint32_t first, uint64_t part)
{
    uint64_t block = (uint64_t)contraction_shape_of(op).block;

    reads[first] = (struct reads){1, part};
    reads[first + 1] = (struct reads){1, divided_up(part, block) + 1};
}

static void contraction_reads(struct reads *reads, const struct op *op, uint32_t output)
{
    const uint32_t peaks = op->input_count;
    struct rule_axis axis;

    rule_axis_of(&axis, op, output, 0);

    uint64_t part = least_of(axis.least, axis.length); /* the shortest that can be shown alone */

    if (op->kind == OP_CONTRACT) {
        row_reads(reads, op, 0, part);
        row_reads(reads, op, 2, part);
    } else if (op->kind == OP_CONTRACT_ONES) {
        row_reads(reads, op, 0, part);
    } else if (op->kind == OP_CONTRACT_ONEHOT) {
        reads[0] = (struct reads){1, part};
        row_reads(reads, op, 1, part);
    } else if (op->kind == OP_CONTRACT_CHOSEN) {
        row_reads(reads, op, 0, part); /* one index between them */
        row_reads(reads, op, 3, part);
    } else if (op->kind == OP_CONTRACT_CHOSEN_ROWS) {
        reads[0] = (struct reads){1, part};
        row_reads(reads, op, 1, part);
        row_reads(reads, op, 3, part);
    } else if (output == 0) {
        reads[0] = (struct reads){part, 1}; /* through a view */
        reads[1] = (struct reads){op->input_count - 1, part};
    } else if (output == 1) {
        all_read(reads, op->input_count, 0, 0);
        reads[peaks] = (struct reads){1, part};
    } else {
        reads[peaks + 1] = (struct reads){1, 1};
    }
}

enum reads_family {
    READS_ONE,       /* one element of each input */
    READS_PAIR,      /* a pair, perhaps half a head apart, and its angle */
    READS_WINDOW,    /* of pictures */
    READS_PRODUCT,   /* a part of a contraction, or of a row that is quantized */
    READS_EXPONENTS, /* rows of them */
    READS_CHUNK,     /* one chunk of a row, or one part of each */
    READS_ROW,       /* all that is sorted, or sent to a row */
};

#define OP_LEDGER(reads, contract)                             READS_##reads
#define READS(NAME, text, spec, rules, gradient, plan, ledger) [OP_##NAME] = (ledger),

static const uint8_t families[OP_KIND_COUNT] = {OP_LIST(READS)};

/* Inputs before outputs. */
static void reads_of(struct reads reads[OP_INPUTS_MAX + OP_OUTPUTS_MAX], const struct op *op,
                     uint32_t output)
{
    const uint32_t before = op->input_count + output; /* outputs that the rule may read */

    all_read(reads, op->input_count, 1, 1);
    all_read(reads + op->input_count, op->output_count, 0, 0);
    switch ((enum reads_family)families[op->kind]) {
    case READS_ONE:
        break;
    case READS_PAIR:
        reads[0] = (struct reads){2, 1};
        reads[1] = (struct reads){1, 2};
        break;
    case READS_WINDOW:
        all_read(reads, op->input_count, window_reads(op), 1);
        break;
    case READS_PRODUCT:
        contraction_reads(reads, op, output);
        break;
    case READS_EXPONENTS:
        reads[0] = (struct reads){1, (uint64_t)op->attributes[EQUILIBRATE_E]};
        reads[1] = (struct reads){op->input_count - 1, (uint64_t)op->attributes[EQUILIBRATE_F]};
        break;
    case READS_CHUNK:
        all_read(reads, before, 1, FOLD_CHUNK);
        break;
    case READS_ROW:
        all_read(reads, before, 1,
                 (uint64_t)op->attributes[op->kind == OP_SORT ? SORT_COLUMNS : SCATTER_WIDTH]);
        break;
    }
}

/* ---- what they take ----------------------------------------------------- */

/*
 * Bytes of an operand: its leaves and the siblings in the proof of all of them. A tree of height h
 * has at most N(l) nodes above the leaves at level l from the root, so at most
 * N(0) + ... + N(h-1) + 1 - N(h) siblings.
 */
static uint64_t operand_bytes(const struct tensor *tensor, const struct reads *reads, bool accused)
{
    uint64_t size = dtype_size(tensor->dtype);
    uint64_t total = divided_up(tensor->count * size, LEAF);
    uint64_t length = least_of(reads->length, tensor->count);
    uint64_t run = length == 0 ? 0 : 1 + divided_up((length - 1) * size, LEAF);
    uint64_t leaves = least_of(total, reads->runs * run + accused);
    int height = ceil_log2(total);
    uint64_t siblings = 1;

    if (leaves == 0) {
        return 0;
    }
    for (int level = 0; level < height; level++) {
        uint64_t below = UINT64_C(1) << (height - level); /* leaves under a node */
        uint64_t nodes = reads->runs * (run == 0 ? 0 : 1 + divided_up(run - 1, below)) + accused;

        siblings += least_of(least_of(nodes, leaves), UINT64_C(1) << level);
    }
    siblings -= least_of(siblings, leaves);
    return OPERAND + leaves * (INDEX + LEAF) + siblings * DIGEST;
}

/* What is replied about the most parts of an axis, or of a part of it. */
static uint64_t reply_bytes(struct rule_axis axis)
{
    uint64_t parts = axis.parts;

    while (axis.parts > 1 && axis.part > axis.least) {
        rule_axis_enter(&axis, 0);
        parts = axis.parts > parts ? axis.parts : parts;
    }
    return 4 + 8 * parts;
}

uint64_t evidence_bound(const struct op *op, const struct tensor *tensors, uint32_t output)
{
    struct reads reads[OP_INPUTS_MAX + OP_OUTPUTS_MAX];
    struct rule_axis axis;
    uint64_t bytes = HEADING;

    rule_axis_of(&axis, op, output, 0);
    if (axis.parts > 1) {
        bytes += PART_HEADING + reply_bytes(axis);
    }
    reads_of(reads, op, output);
    for (uint32_t i = 0; i < op->input_count; i++) {
        bytes += operand_bytes(&tensors[op->inputs[i]], &reads[i], false);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        bytes += operand_bytes(&tensors[op->outputs[i]], &reads[op->input_count + i], i == output);
    }
    return bytes;
}

enum status evidence_bound_check(const struct op *op, const struct tensor *tensors,
                                 struct error *error)
{
    for (uint32_t output = 0; output < op->output_count; output++) {
        uint64_t bytes = evidence_bound(op, tensors, output);

        if (bytes > EVIDENCE_FITS) {
            char name[64];

            op_spec_name(name, sizeof(name), op_spec(op->kind)->outputs, output);
            return error_set(error, STATUS_OVER_LIMIT,
                             "%s: evidence about '%s' could need %" PRIu64
                             " bytes, and a transaction holds %" PRIu64
                             ": nobody could be convicted of a false one; cut the operation into "
                             "smaller ones",
                             op_kind_name(op->kind), name, bytes, EVIDENCE_FITS);
        }
    }
    return STATUS_OK;
}
