/*
 * attention.c - attention's rows on chip: scores, softmax, the quantization of p along its rows and
 * its product with the values; and backward, dp, the softmax's gradient, the quantization of ds and
 * its product with the keys. Each four become one operation (attention_body.h), which makes the
 * last product and, where others read it, p or ds.
 *
 * Saves: scores, dp and the limbs of p and ds written and read; eight launches and 2.3 GB for each
 * layer of GPT-2. Refused: K above 128, rows above 1,024, 22 bits, dropout of p, rows of which not
 * even 16 fit shared memory.
 */
#include "engine/cuda/fusions/group.h"
#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/fusions/quantizer.h"
#include "engine/cuda/fusions/strips.h"
#include "engine/cuda/launch/contract_kernel.h"
#include "engine/cuda/launch/launch_contract.h"
#include "engine/cuda/launch/launch_rows.h"

enum { FIRST, ALONG, QUANTIZED, SECOND, PARTS };

/* The four operations, and what lies between them. */
struct attention_match {
    uint32_t ats[PARTS];
    const struct op *ops[PARTS];
    uint32_t made; /* p or ds */
};

/* The first product whose first operand is this q. */
static uint32_t product_of_q(const struct fusion *fusion, const struct readers *readers, uint32_t q)
{
    for (uint32_t at = readers->first[q]; at != NEVER && at <= readers->last[q]; at++) {
        const struct op *op = &fusion->ops[at];

        if (op->kind == OP_CONTRACT && op->input_count > 0 && op->inputs[0] == q &&
            fusion_may_take(fusion, at)) {
            return at;
        }
    }
    return NEVER;
}

/* Do results lie one after another, row after row, batch after batch? */
static bool is_linear(const struct op *contract)
{
    const int64_t *dims = &contract->attributes[CONTRACT_DIMS];
    int64_t stride = 1;

    for (int axis = 5; axis >= 0; axis--) {
        if (dims[axis] != 1 && contract->attributes[CONTRACT_STRIDES + axis] != stride) {
            return false;
        }
        stride *= dims[axis];
    }
    return true;
}

static int64_t product_of(const struct op *contract, int first)
{
    return contract->attributes[CONTRACT_DIMS + first] *
           contract->attributes[CONTRACT_DIMS + first + 1];
}

/* Do the shapes of both products fit each other, and the kernel? */
static bool products_fit(const struct attention_match *found)
{
    const struct op *first = found->ops[FIRST];
    const struct op *second = found->ops[SECOND];
    const struct op *rows = found->ops[ALONG];
    const struct op *quantize = found->ops[QUANTIZED];
    const struct contraction_shape shape = contraction_shape_of(first);
    const int64_t causal = first->attributes[CONTRACT_CAUSAL];

    return shape.blocks == 1 && shape.k <= ATTENTION_D_MAX && shape.bits != 22 &&
           is_linear(first) && product_of(first, 4) == rows->attributes[COLUMNS] &&
           product_of(first, 0) * product_of(first, 2) == rows->attributes[ROWS] &&
           causal == rows->attributes[SOFTMAX_CAUSAL] &&
           (causal == 0 || product_of(first, 2) % causal == 0) &&
           product_of(second, 0) == product_of(first, 0) &&
           product_of(second, 2) == product_of(first, 2) &&
           product_of(second, 4) <= ATTENTION_D_MAX && second->attributes[CONTRACT_CAUSAL] == 0 &&
           second->attributes[CONTRACT_K] == rows->attributes[COLUMNS] &&
           second->attributes[CONTRACT_BITS] == shape.bits &&
           second->attributes[CONTRACT_BITS] == quantize->attributes[QUANTIZE_BITS] &&
           second->attributes[CONTRACT_BLOCK] == quantize->attributes[QUANTIZE_BLOCK];
}

/* Do four operations around the softmax (or its gradient) at `at` match? */
static bool attention_at(struct attention_match *found, const struct fusion *fusion,
                         const struct readers *readers, uint32_t at)
{
    const struct op *rows = &fusion->ops[at];
    const bool forward = rows->kind == OP_SOFTMAX;
    uint32_t *ats = found->ats;

    if ((!forward && rows->kind != OP_SOFTMAX_GRAD) || launch_has_reach(rows) ||
        !fusion_may_take(fusion, at) ||
        strips_rows_of(fusion->facts.shared_max, (uint64_t)rows->attributes[COLUMNS]) == 0) {
        return false;
    }
    found->made = rows->outputs[launch_rows_result(rows)];
    ats[ALONG] = at;
    ats[FIRST] = readers->maker[rows->inputs[forward ? 0 : 1]];
    if (ats[FIRST] == NEVER || fusion->ops[ats[FIRST]].kind != OP_CONTRACT ||
        !fusion_may_take(fusion, ats[FIRST])) {
        return false;
    }
    ats[QUANTIZED] = quantizer_of_result(fusion, readers, rows, launch_rows_result(rows));
    if (ats[QUANTIZED] == NEVER) {
        return false;
    }
    ats[SECOND] = product_of_q(fusion, readers, fusion->ops[ats[QUANTIZED]].outputs[2]);
    if (ats[SECOND] == NEVER) {
        return false;
    }
    for (int part = 0; part < PARTS; part++) {
        found->ops[part] = &fusion->ops[ats[part]];
    }
    const uint32_t made[2] = {found->made, found->ops[SECOND]->outputs[0]};

    return products_fit(found) && group_can_form(fusion, readers, ats, PARTS, made, 2);
}

/* The last product. It reads queries (dout), keys (values), values (keys); backward p too. */
static struct op maker_of(const struct attention_match *found, const struct readers *readers)
{
    struct op maker = *found->ops[SECOND];

    maker.input_count = 0;
    for (uint32_t i = 0; i < 4; i++) {
        maker.inputs[maker.input_count++] = found->ops[FIRST]->inputs[i];
    }
    maker.inputs[maker.input_count++] = found->ops[SECOND]->inputs[2];
    maker.inputs[maker.input_count++] = found->ops[SECOND]->inputs[3];
    if (found->ops[ALONG]->kind == OP_SOFTMAX_GRAD) {
        maker.inputs[maker.input_count++] = found->ops[ALONG]->inputs[0];
    }
    if (readers->kept[found->made] || readers->count[found->made] > 1) {
        maker.outputs[maker.output_count++] = found->made;
    }
    return maker;
}

static bool find_attention(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        struct attention_match found;

        if (!attention_at(&found, fusion, readers, at)) {
            continue;
        }
        const struct op maker = maker_of(&found, readers);

        if (!group_add(fusion, found.ats, PARTS, &maker, &pattern_attention)) {
            return false;
        }
        readers_regroup(readers, fusion);
    }
    return true;
}

/* ---- the launch ---------------------------------------------------------------------- */

/* An operand of a product: its q is that input. */
static struct packed_operand operand_of(const struct launcher *launcher, const struct op *op,
                                        uint32_t input, uint64_t rows)
{
    const struct contraction_shape shape = contraction_shape_of(op);

    return launch_operand(&shape, rows, input_memory(launcher, op, input));
}

static enum cuda_kernel attention_kernel(const struct launcher *launcher, int bits)
{
    if (contract_by_halves(launcher, UNITS_ATTENTION, bits)) {
        return bits == 14 ? KERNEL_ATTENTION_HALVES_NARROW : KERNEL_ATTENTION_HALVES_WIDE;
    }
    return bits == 14 ? KERNEL_ATTENTION_NARROW : KERNEL_ATTENTION_WIDE;
}

static enum device_result launch_attention(const struct launcher *launcher,
                                           const struct fusion *fusion, uint32_t at)
{
    const struct fused_group *group = fusion_group(fusion, at);
    const struct op *first = &group->ops[FIRST];
    const struct op *along = &group->ops[ALONG];
    const struct op *second = &group->ops[SECOND];
    const bool forward = along->kind == OP_SOFTMAX;
    const uint32_t result = launch_rows_result(along);
    struct attention_args args = {
        .rows = {.rows = (uint64_t)along->attributes[ROWS],
                 .columns = (uint64_t)along->attributes[COLUMNS],
                 .causal = (uint64_t)along->attributes[SOFTMAX_CAUSAL],
                 .constant = (uint32_t)along->attributes[SOFTMAX_SCALE_BITS],
                 .kind = (uint32_t)along->kind},
        .scores = {.contract = launch_contract_args(launcher, first)},
        .product = {.contract = launch_contract_args(launcher, second),
                    .window = contraction_shape_of(second).window}};
    struct contract_args *scores = &args.scores.contract;
    struct contract_args *product = &args.product.contract;
    const uint32_t rows = strips_rows_of(launcher->shared_max, args.rows.columns);
    const struct device_launch launch = {
        .kernel = attention_kernel(launcher, scores->bits),
        .grid = {(uint32_t)((scores->m + rows - 1) / rows * scores->batches), 1, 1},
        .block = STRIP_THREADS,
        .shared_size = STRIP_SHARED(rows, args.rows.columns),
        .arguments_size = sizeof(args),
        .arguments = &args};

    assert(rows != 0 && launcher->packed);
    args.rows.inputs[0] = forward ? NULL : input_memory(launcher, along, 0);
    args.rows.outputs[result] = output_memory(launcher, along, result);
    /* leave_hidden() says so in the operation. */
    args.hidden = args.rows.causal != 0 && args.rows.outputs[result] != NULL &&
                  fusion->ops[at].attributes[CONTRACT_CAUSAL] == 0;
    args.strip_rows = rows;
    args.strips = (uint32_t)((scores->m + rows - 1) / rows);
    scores->a = operand_of(launcher, first, 0, scores->batches * scores->m);
    scores->b = operand_of(launcher, first, 2, scores->batches * scores->n);
    product->b = operand_of(launcher, second, 2, product->batches * product->n);
    return launcher->calls->launch(launcher->device, &launch);
}

/* ---- the self-test ------------------------------------------------------------------- */

/* Softmax of scores, or its gradient from p and dp; a product made the scores or dp. */
static uint32_t add_softmax(struct selftest_tape *tape, uint32_t p, uint32_t scores, int64_t rows,
                            int64_t columns, int64_t causal, bool forward)
{
    struct op *op = selftest_op(tape, forward ? OP_SOFTMAX : OP_SOFTMAX_GRAD);
    const uint64_t all = (uint64_t)(rows * columns);

    op->attributes[ROWS] = rows;
    op->attributes[COLUMNS] = columns;
    op->attributes[SOFTMAX_CAUSAL] = causal;
    op->attributes[SOFTMAX_SCALE_BITS] = 0x3e000000;
    op->attribute_count = SOFTMAX_ATTRIBUTES;
    if (!forward) {
        selftest_input(op, p);
    }
    selftest_input(op, selftest_hide(tape, scores));
    for (int i = 0; i < (forward ? 5 : 2); i++) {
        (void)selftest_hide(tape,
                            selftest_output(tape, op, DTYPE_F32, i == 2 ? all : (uint64_t)rows));
    }
    return selftest_output(tape, op, DTYPE_F32, all);
}

struct attention_shape {
    int64_t heads;
    int64_t queries;
    int64_t keys;
    int64_t d;
    int bits;
};

/* Forward, and backward too; causal where there are as many queries as keys. */
static void add_attention(struct selftest_tape *tape, const struct attention_shape *shape,
                          bool backward_too)
{
    const int64_t heads = shape->heads;
    const int64_t m = shape->queries;
    const int64_t n = shape->keys;
    const int64_t d = shape->d;
    const int64_t squares[3] = {heads, m, n};
    const int64_t products[3] = {heads, m, d};
    const int64_t causal = m == n ? m : 0;
    const int bits = shape->bits;
    uint32_t given[4];
    uint32_t p = 0;

    for (int i = 0; i < 4; i++) { /* queries, keys, values, dout */
        given[i] = selftest_give(tape, DTYPE_F32, (uint64_t)(heads * (i % 3 == 0 ? m : n) * d));
    }
    for (int backward = 0; backward <= (int)backward_too; backward++) {
        const struct op *a =
            selftest_quantize(tape, given[backward ? 3 : 0], heads, m, d, bits, 128, true);
        const struct op *b =
            selftest_quantize(tape, given[backward ? 2 : 1], heads, n, d, bits, 128, true);
        struct op *scores = selftest_contract(tape, a, b, squares, d, false);

        scores->attributes[CONTRACT_CAUSAL] = causal;
        p = add_softmax(tape, p, scores->outputs[0], heads * m, n, causal, !backward);
        a = selftest_quantize(tape, p, heads, m, n, bits, 128, true);
        b = selftest_quantize(tape, given[backward ? 1 : 2], heads, d, n, bits, 128, false);
        (void)selftest_contract(tape, a, b, products, n, false);
    }
}

static void add_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct attention_shape shapes[] = {
        {1, 35, 35, 64, 16}, {2, 20, 20, 40, 14}, {1, 19, 300, 72, 14}};

    add_attention(tape, &shapes[part], true);
}

/* A strip to each multiprocessor. */
static void add_timed(struct selftest_tape *tape, int bits, int64_t processors)
{
    const struct attention_shape shape = {processors, STRIP_ROWS,
                                          selftest_timed_k(processors, STRIP_K_MAX),
                                          selftest_timed_k(processors, ATTENTION_D_MAX / 2), bits};

    add_attention(tape, &shape, false);
}

const struct fusion_pattern pattern_attention = {.name = "attention",
                                                 .variant = VARIANT_ATTENTION,
                                                 .match = find_attention,
                                                 .launch = launch_attention,
                                                 .selftest = add_selftest,
                                                 .selftests = 3,
                                                 .products = 1u << VARIANT_MMA | 1u << VARIANT_HALF,
                                                 .again = 2,
                                                 .timed = add_timed};

/* ---- what is hidden ---------------------------------------------------------------- */

static const struct op *along_of(const struct fusion *fusion, uint32_t at)
{
    return fusion->patterns[at] == &pattern_attention ? &fusion_group(fusion, at)->ops[ALONG]
                                                      : NULL;
}

/* Does operation `at` skip the elements that the mask of `along` hides? */
static bool leaves_hidden(const struct fusion *fusion, uint32_t at, const struct op *along)
{
    const struct op *own = along_of(fusion, at);

    return strips_read_causally(fusion, at) ||
           (own != NULL && own->attributes[SOFTMAX_CAUSAL] == along->attributes[SOFTMAX_CAUSAL] &&
            own->attributes[ROWS] == along->attributes[ROWS] &&
            own->attributes[COLUMNS] == along->attributes[COLUMNS]);
}

/* Leaves elements of p and ds unwritten that a mask hides, where nobody reads them. */
static bool leave_hidden(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    (void)tape;
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        const struct op *along = along_of(fusion, at);
        struct op *op = &fusion->ops[at];
        bool hidden = false;

        if (along == NULL || op->output_count < 2) {
            continue;
        }
        const uint32_t made = op->outputs[1];

        for (uint32_t to = readers->first[made]; to != NEVER && to <= readers->last[made]; to++) {
            for (uint32_t i = 0; i < fusion->ops[to].input_count; i++) {
                hidden = hidden ||
                         (fusion->ops[to].inputs[i] == made && !leaves_hidden(fusion, to, along));
            }
        }
        if (!hidden && !readers->kept[made]) {
            op->attributes[CONTRACT_CAUSAL] = along->attributes[SOFTMAX_CAUSAL];
        }
    }
    return true;
}

const struct fusion_pattern pattern_hidden = {
    .name = "hidden", .variant = VARIANT_COUNT, .match = leave_hidden};
