/*
 * attention.c - attention on chip: from the limbs of queries and keys to what p makes of the
 * values, and backward to the gradients of queries, keys and values (attention_body.h). Nothing as
 * large as a head's square lies in memory: a row leaves its largest score and its sum of
 * exponentials, from which the backward pass makes p again; and its sum of p * dp, from which the
 * gradient of the keys makes ds again.
 *
 *   rows       scores, softmax, limbs of p, product with the values; backward dp, the softmax's
 *              gradient, limbs of ds, product with the keys. Four operations become the last.
 *   columns    limbs across p (or ds), and their product with dout (or the queries). Two of them.
 *
 * p is made again where all who read it do so: the rows' own quantization, the gradient's rows, the
 * columns. Where somebody else wants p, rows of up to 1,024 (a strip's) are written and read, and
 * columns are left to others (strips.c); so is ds. Longer ones are made again or not at all.
 *
 * Saves: scores, dp, p, ds and their limbs, written and read: of a GPT-2 step 48 launches and 22.4
 * GB. Refused: K above 128, 22 bits, dropout of p, reach, strips of which not even 16 rows fit
 * shared memory.
 */
#include <string.h>

#include "engine/cuda/fusions/group.h"
#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/fusions/quantizer.h"
#include "engine/cuda/fusions/strips.h"
#include "engine/cuda/launch/contract_kernel.h"
#include "engine/cuda/launch/launch_contract.h"
#include "engine/cuda/launch/launch_rows.h"

enum { FIRST, ALONG, QUANTIZED, SECOND, PARTS };

/* Operations around a softmax or its gradient; FIRST and ALONG alone, where p has no product: it is
 * recomputed. */
struct rows_match {
    uint32_t ats[PARTS];
    const struct op *ops[PARTS];
    uint32_t count;
    uint32_t made; /* p or ds */
};

/* A quantization across p or ds, and the product that alone reads it. */
struct columns_match {
    uint32_t ats[2];
};

/* All that reads p. */
struct attention_match {
    struct rows_match forward;
    struct rows_match backward;
    struct columns_match values;
    struct columns_match keys;
    bool remade;      /* p is never written; the backward pass makes it again */
    bool keys_remake; /* and the gradient of the keys makes ds again */
};

/* ---- rows ------------------------------------------------------------------------------ */

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

/* Does the first product make the rows, of few elements of k? */
static bool first_fits(const struct rows_match *found)
{
    const struct op *first = found->ops[FIRST];
    const struct op *rows = found->ops[ALONG];
    const struct contraction_shape shape = contraction_shape_of(first);
    const int64_t causal = first->attributes[CONTRACT_CAUSAL];

    return shape.blocks == 1 && shape.k <= ATTENTION_D_MAX && shape.bits != 22 &&
           is_linear(first) && product_of(first, 4) == rows->attributes[COLUMNS] &&
           product_of(first, 0) * product_of(first, 2) == rows->attributes[ROWS] &&
           causal == rows->attributes[SOFTMAX_CAUSAL] &&
           (causal == 0 || product_of(first, 2) % causal == 0);
}

/* And does the second product fit the rows, and the kernel? */
static bool second_fits(const struct rows_match *found)
{
    const struct op *first = found->ops[FIRST];
    const struct op *second = found->ops[SECOND];
    const struct op *rows = found->ops[ALONG];
    const struct op *quantize = found->ops[QUANTIZED];

    return product_of(second, 0) == product_of(first, 0) &&
           product_of(second, 2) == product_of(first, 2) &&
           product_of(second, 4) <= ATTENTION_D_MAX && second->attributes[CONTRACT_CAUSAL] == 0 &&
           second->attributes[CONTRACT_K] == rows->attributes[COLUMNS] &&
           second->attributes[CONTRACT_BITS] == first->attributes[CONTRACT_BITS] &&
           second->attributes[CONTRACT_BITS] == quantize->attributes[QUANTIZE_BITS] &&
           second->attributes[CONTRACT_BLOCK] == quantize->attributes[QUANTIZE_BLOCK];
}

/* The quantization of the rows that the one at ALONG makes, and its product. False: none. */
static bool find_second(struct rows_match *found, const struct fusion *fusion,
                        const struct readers *readers)
{
    const struct op *rows = found->ops[ALONG];
    uint32_t *ats = found->ats;

    ats[QUANTIZED] = quantizer_of_result(fusion, readers, rows, launch_rows_result(rows));
    if (ats[QUANTIZED] == NEVER) {
        return false;
    }
    ats[SECOND] = product_of_q(fusion, readers, fusion->ops[ats[QUANTIZED]].outputs[2]);
    if (ats[SECOND] == NEVER) {
        return false;
    }
    for (int part = QUANTIZED; part < PARTS; part++) {
        found->ops[part] = &fusion->ops[ats[part]];
    }
    if (!second_fits(found)) {
        return false;
    }
    found->count = PARTS;
    return true;
}

/* The tensors that rows may leave in memory: p (ds), what the second product makes, the largest
 * score and the sum (the sum of p * dp). */
static uint32_t made_by_rows(uint32_t made[4], const struct rows_match *found)
{
    const struct op *rows = found->ops[ALONG];
    uint32_t count = 0;

    made[count++] = found->made;
    made[count++] = rows->outputs[1];
    if (rows->kind == OP_SOFTMAX) {
        made[count++] = rows->outputs[4];
    }
    if (found->count == PARTS) {
        made[count++] = found->ops[SECOND]->outputs[0];
    }
    return count;
}

/* Do operations around the softmax (or its gradient) at `at` match? */
static bool rows_at(struct rows_match *found, const struct fusion *fusion,
                    const struct readers *readers, uint32_t at)
{
    const struct op *rows = &fusion->ops[at];
    const bool forward = rows->kind == OP_SOFTMAX;
    uint32_t made[4];

    if ((!forward && rows->kind != OP_SOFTMAX_GRAD) || launch_has_reach(rows) ||
        !fusion_may_take(fusion, at) ||
        strips_rows_of(fusion->facts.shared_max, (uint64_t)rows->attributes[COLUMNS]) == 0) {
        return false;
    }
    *found = (struct rows_match){.count = 2, .made = rows->outputs[launch_rows_result(rows)]};
    found->ats[ALONG] = at;
    found->ats[FIRST] = readers->maker[rows->inputs[forward ? 0 : 1]];
    if (found->ats[FIRST] == NEVER || fusion->ops[found->ats[FIRST]].kind != OP_CONTRACT ||
        !fusion_may_take(fusion, found->ats[FIRST])) {
        return false;
    }
    for (int part = FIRST; part <= ALONG; part++) {
        found->ops[part] = &fusion->ops[found->ats[part]];
    }
    if (!first_fits(found) || (!find_second(found, fusion, readers) && !forward)) {
        return false;
    }
    return group_can_form(fusion, readers, found->ats, found->count, made,
                          made_by_rows(made, found));
}

/* ---- columns ----------------------------------------------------------------------------- */

static int64_t operand_rows(const struct op *contract, uint32_t side)
{
    return product_of(contract, 2 + 2 * (int)side);
}

/* Is one operand of the product, all of it, a quantization of the columns of such rows? */
static bool columns_fit(const struct op *first, const struct op *quantize, const struct op *product)
{
    const uint32_t side = product->inputs[0] != quantize->outputs[2];

    return product->kind == OP_CONTRACT && product->input_count == 4 &&
           product->inputs[2 * side] == quantize->outputs[2] &&
           product->inputs[0] != product->inputs[2] && product->attributes[CONTRACT_CAUSAL] == 0 &&
           product->attributes[CONTRACT_BITS] == first->attributes[CONTRACT_BITS] &&
           product_of(product, 0) == product_of(first, 0) &&
           operand_rows(product, side) == product_of(first, 4) &&
           operand_rows(product, !side) <= STRIP_COLUMNS;
}

/* The columns of p (or ds), which `rows` make, and their product. */
static bool columns_of(struct columns_match *found, const struct fusion *fusion,
                       const struct readers *readers, const struct rows_match *rows)
{
    const struct op *first = rows->ops[FIRST];
    const uint32_t x = rows->made;

    for (uint32_t at = readers->first[x]; at != NEVER && at <= readers->last[x]; at++) {
        const struct op *op = &fusion->ops[at];
        uint32_t product;

        if (!fusion_may_take(fusion, at) ||
            !quantizes_columns(op, x, product_of(first, 0), product_of(first, 2),
                               product_of(first, 4)) ||
            !quantizes_pieces(op)) {
            continue;
        }
        product = readers->first[op->outputs[2]];
        if (product == NEVER || !fusion_may_take(fusion, product) ||
            !columns_fit(first, op, &fusion->ops[product])) {
            continue;
        }
        found->ats[0] = at;
        found->ats[1] = product;
        return strips_rows_of(fusion->facts.shared_max, (uint64_t)product_of(first, 2)) != 0 &&
               group_can_form(fusion, readers, found->ats, 2, fusion->ops[product].outputs, 1);
    }
    return false;
}

/* ---- who reads p ------------------------------------------------------------------------- */

/* The rows of the gradient that reads this p. */
static bool backward_of(struct rows_match *found, const struct fusion *fusion,
                        const struct readers *readers, const struct op *softmax)
{
    const uint32_t p = softmax->outputs[5];

    for (uint32_t at = readers->first[p]; at != NEVER && at <= readers->last[p]; at++) {
        const struct op *op = &fusion->ops[at];

        if (op->kind == OP_SOFTMAX_GRAD && op->inputs[0] == p) {
            return rows_at(found, fusion, readers, at) &&
                   memcmp(op->attributes, softmax->attributes,
                          SOFTMAX_ATTRIBUTES * sizeof(op->attributes[0])) == 0;
        }
    }
    return false;
}

/* Are both products of as many rows by as many, of integers of one width? */
static bool faces_alike(const struct op *scores, const struct op *slopes)
{
    return product_of(scores, 0) == product_of(slopes, 0) &&
           product_of(scores, 2) == product_of(slopes, 2) &&
           product_of(scores, 4) == product_of(slopes, 4) &&
           scores->attributes[CONTRACT_BITS] == slopes->attributes[CONTRACT_BITS];
}

/* Are rows longer than a strip holds? Then nobody writes or reads p or ds. */
static bool are_long(const struct rows_match *rows)
{
    return rows->ops[ALONG]->attributes[COLUMNS] > STRIP_K_MAX;
}

/* Does anybody read p or ds but so many quantizations? */
static bool is_wanted(const struct readers *readers, const struct rows_match *rows, uint32_t count)
{
    return readers->kept[rows->made] || readers->count[rows->made] > count;
}

/* Does each operation belong to one group? A softmax's gradient may be given what p has made. */
static bool are_apart(const struct attention_match *found)
{
    const uint32_t *const parts[4] = {found->forward.ats, found->backward.ats, found->values.ats,
                                      found->keys.ats};
    const uint32_t counts[4] = {found->forward.count, found->backward.count, 2,
                                found->keys_remake ? 2 : 0};
    uint32_t ats[2 * PARTS + 4];
    uint32_t count = 0;

    for (uint32_t part = 0; part < 4; part++) {
        for (uint32_t i = 0; i < counts[part]; i++) {
            for (uint32_t j = 0; j < count; j++) {
                if (ats[j] == parts[part][i]) {
                    return false;
                }
            }
            ats[count++] = parts[part][i];
        }
    }
    return true;
}

/* Finds whether all who read p can make it again, and the gradient of the keys ds. */
static void find_remade(struct attention_match *found, const struct fusion *fusion,
                        const struct tape *tape, const struct readers *readers)
{
    const struct rows_match *forward = &found->forward;
    struct rows_match *backward = &found->backward;
    const uint32_t p = forward->made;
    const struct loop *loop = tape_loop_of(tape, forward->ats[ALONG]);

    found->remade = !readers->kept[p] && fusion->holders[p] == p &&
                    readers->count[p] == (forward->count == PARTS ? 3 : 2) &&
                    backward_of(backward, fusion, readers, forward->ops[ALONG]) &&
                    faces_alike(forward->ops[FIRST], backward->ops[FIRST]) &&
                    columns_of(&found->values, fusion, readers, forward) &&
                    tape_loop_of(tape, backward->ats[SECOND]) == loop &&
                    tape_loop_of(tape, found->values.ats[1]) == loop;
    found->keys_remake = found->remade && columns_of(&found->keys, fusion, readers, backward) &&
                         tape_loop_of(tape, found->keys.ats[1]) == loop;
    found->remade = found->remade && are_apart(found) &&
                    (!are_long(backward) || !is_wanted(readers, backward, 1 + found->keys_remake));
}

/* ---- groups ------------------------------------------------------------------------------ */

/* Adds the q of both operands of a product that is made, or made again, on chip. */
static void add_operands(struct op *maker, const struct op *product)
{
    maker->inputs[maker->input_count++] = product->inputs[0];
    maker->inputs[maker->input_count++] = product->inputs[2];
}

/* Adds a number of each row, if it is wanted later, or anybody reads it. */
static void add_number(struct op *maker, const struct readers *readers, uint32_t id, bool wanted)
{
    if (wanted || readers->kept[id] || readers->count[id] > 0) {
        maker->outputs[maker->output_count++] = id;
    }
}

/* What the rows' last operation reads and makes now. again: of the softmax whose p it makes again;
 * numbers: others make the rows again; written: p (or ds) is. */
static struct op rows_maker(const struct rows_match *found, const struct readers *readers,
                            const struct rows_match *again, bool numbers, bool written)
{
    const struct op *rows = found->ops[ALONG];
    struct op maker = *found->ops[found->count == PARTS ? SECOND : FIRST];

    maker.input_count = 0;
    maker.output_count = 0;
    add_operands(&maker, found->ops[FIRST]);
    if (found->count == PARTS) {
        maker.inputs[maker.input_count++] = found->ops[SECOND]->inputs[2];
        maker.outputs[maker.output_count++] = found->ops[SECOND]->outputs[0];
    }
    if (again != NULL) {
        add_operands(&maker, again->ops[FIRST]);
        maker.inputs[maker.input_count++] = again->ops[ALONG]->outputs[1];
        maker.inputs[maker.input_count++] = again->ops[ALONG]->outputs[4];
    } else if (rows->kind == OP_SOFTMAX_GRAD) {
        maker.inputs[maker.input_count++] = rows->inputs[0];
    }
    if (written) {
        maker.outputs[maker.output_count++] = found->made;
    }
    add_number(&maker, readers, rows->outputs[1], numbers);
    if (rows->kind == OP_SOFTMAX) {
        add_number(&maker, readers, rows->outputs[4], numbers);
    }
    return maker;
}

/* The same of the columns' product; backward: whose ds it makes again, or NULL. */
static struct op columns_maker(const struct columns_match *found, const struct fusion *fusion,
                               const struct rows_match *forward, const struct rows_match *backward)
{
    const struct op *quantize = &fusion->ops[found->ats[0]];
    const struct op *product = &fusion->ops[found->ats[1]];
    struct op maker = *product;

    maker.inputs[0] = product->inputs[product->inputs[0] == quantize->outputs[2] ? 2 : 0];
    maker.input_count = 1;
    add_operands(&maker, forward->ops[FIRST]);
    maker.inputs[maker.input_count++] = forward->ops[ALONG]->outputs[1];
    maker.inputs[maker.input_count++] = forward->ops[ALONG]->outputs[4];
    if (backward != NULL) {
        add_operands(&maker, backward->ops[FIRST]);
        maker.inputs[maker.input_count++] = backward->ops[ALONG]->outputs[1];
    }
    return maker;
}

/* A group, and the operation whose group it makes again; NEVER: none. */
struct attention_group {
    const uint32_t *ats;
    uint32_t count;
    struct op maker;
    uint32_t again;
};

static bool add_group(struct fusion *fusion, struct readers *readers,
                      const struct attention_group *group)
{
    if (!group_add(fusion, group->ats, group->count, &group->maker, &pattern_attention)) {
        return false;
    }
    fusion->groups[fusion->group_count - 1].again = group->again == NEVER ? 0 : group->again + 1;
    readers_regroup(readers, fusion);
    return true;
}

/* Rows whose p (ds) lies in memory, or is not read by others. */
static bool add_rows(struct fusion *fusion, struct readers *readers, const struct rows_match *found)
{
    const struct attention_group group = {
        found->ats, found->count,
        rows_maker(found, readers, NULL, false, is_wanted(readers, found, 1)), NEVER};

    return add_group(fusion, readers, &group);
}

/* Makers are of operations that groups rewrite, so all are made first. */
static bool add_remade(struct fusion *fusion, struct readers *readers,
                       const struct attention_match *found)
{
    const struct rows_match *forward = &found->forward;
    const struct rows_match *backward = &found->backward;
    const uint32_t first = forward->ats[forward->count - 1];
    const bool written = is_wanted(readers, backward, 1 + found->keys_remake);
    struct attention_group groups[4] = {
        {forward->ats, forward->count, rows_maker(forward, readers, NULL, true, false), NEVER},
        {found->values.ats, 2, columns_maker(&found->values, fusion, forward, NULL), first},
        {backward->ats, PARTS, rows_maker(backward, readers, forward, found->keys_remake, written),
         first}};
    uint32_t count = 3;

    if (found->keys_remake) {
        groups[count++] = (struct attention_group){
            found->keys.ats, 2, columns_maker(&found->keys, fusion, forward, backward),
            backward->ats[SECOND]};
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!add_group(fusion, readers, &groups[i])) {
            return false;
        }
    }
    return true;
}

/* Rows that are not made again: none without a product, and of long ones those of a softmax whose p
 * nobody else wants. */
static bool are_alone(const struct readers *readers, const struct rows_match *rows)
{
    return rows->count == PARTS && (!are_long(rows) || (rows->ops[ALONG]->kind == OP_SOFTMAX &&
                                                        !is_wanted(readers, rows, 1)));
}

static bool find_attention(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        struct attention_match found = {.remade = false};
        bool added = true;

        if (!rows_at(&found.forward, fusion, readers, at)) {
            continue;
        }
        if (fusion->ops[at].kind == OP_SOFTMAX) {
            find_remade(&found, fusion, tape, readers);
        }
        if (found.remade) {
            added = add_remade(fusion, readers, &found);
        } else if (are_alone(readers, &found.forward)) {
            added = add_rows(fusion, readers, &found.forward);
        }
        if (!added) {
            return false;
        }
    }
    return true;
}

/* ---- the launch ---------------------------------------------------------------------- */

/* A product of rows by rows that is made on chip: no result of it is written. */
static struct contract_args faced_args(const struct launcher *launcher, const struct op *op)
{
    const struct contraction_shape shape = contraction_shape_of(op);
    struct contract_args args = launch_contract_args(launcher, op);

    args.a = launch_operand(&shape, args.batches * args.m, input_memory(launcher, op, 0));
    args.b = launch_operand(&shape, args.batches * args.n, input_memory(launcher, op, 2));
    return args;
}

/* What every kernel is given of the rows of a softmax, or of its gradient. */
static struct attention_args attention_args_of(const struct op *rows)
{
    return (struct attention_args){
        .rows = {.rows = (uint64_t)rows->attributes[ROWS],
                 .columns = (uint64_t)rows->attributes[COLUMNS],
                 .causal = (uint64_t)rows->attributes[SOFTMAX_CAUSAL],
                 .constant = (uint32_t)rows->attributes[SOFTMAX_SCALE_BITS],
                 .kind = (uint32_t)rows->kind}};
}

/* Scores, and what the rows of the softmax have left of them. */
static void take_scores(struct attention_args *args, const struct launcher *launcher,
                        const struct fused_group *forward)
{
    args->scores = faced_args(launcher, &forward->ops[FIRST]);
    args->maximum = output_memory(launcher, &forward->ops[ALONG], 1);
    args->sum = output_memory(launcher, &forward->ops[ALONG], 4);
}

static void take_product(struct strip_product *product, const struct launcher *launcher,
                         const struct op *op, bool is_b)
{
    const struct contraction_shape shape = contraction_shape_of(op);
    struct contract_args *contract = &product->contract;

    *contract = launch_contract_args(launcher, op);
    product->window = shape.window;
    product->is_b = is_b;
    *(is_b ? &contract->a : &contract->b) =
        launch_operand(&shape, contract->batches * (is_b ? contract->m : contract->n),
                       input_memory(launcher, op, is_b ? 0 : 2));
}

/* A block takes a strip of so many of all rows of a batch. */
static enum device_result launch_strips_of(const struct launcher *launcher,
                                           struct attention_args *args, enum cuda_kernel kernel,
                                           uint64_t all)
{
    const uint64_t k = args->product.contract.k;
    const uint32_t rows = strips_rows_of(launcher->shared_max, k);
    const uint64_t strips = (all + rows - 1) / rows;
    const struct device_launch launch = {.kernel = kernel,
                                         .grid = {(uint32_t)(strips * args->scores.batches), 1, 1},
                                         .block = STRIP_THREADS,
                                         .shared_size = STRIP_SHARED(rows, k),
                                         .arguments_size = sizeof(*args),
                                         .arguments = args};

    assert(rows != 0 && launcher->packed);
    args->strip_rows = rows;
    args->strips = (uint32_t)strips;
    return launcher->calls->launch(launcher->device, &launch);
}

static enum device_result launch_along(const struct launcher *launcher, const struct fusion *fusion,
                                       const struct fused_group *group)
{
    static const enum cuda_kernel kernels[2][2][2] = {
        {{KERNEL_ATTENTION_WIDE, KERNEL_ATTENTION_NARROW},
         {KERNEL_ATTENTION_HALVES_WIDE, KERNEL_ATTENTION_HALVES_NARROW}},
        {{KERNEL_ATTEND_LONG_WIDE, KERNEL_ATTEND_LONG_NARROW},
         {KERNEL_ATTEND_LONG_HALVES_WIDE, KERNEL_ATTEND_LONG_HALVES_NARROW}}};
    const struct op *along = &group->ops[ALONG];
    const uint32_t result = launch_rows_result(along);
    struct attention_args args = attention_args_of(along);

    args.rows.outputs[1] = output_memory(launcher, along, 1);
    args.rows.outputs[result] = output_memory(launcher, along, result);
    args.scores = faced_args(launcher, &group->ops[FIRST]);
    if (along->kind == OP_SOFTMAX) {
        args.rows.outputs[4] = output_memory(launcher, along, 4);
    } else {
        args.slopes = args.scores;
        args.scores.a.planes = NULL;
        if (group->again != 0) {
            take_scores(&args, launcher, fusion_group(fusion, group->again - 1));
        } else {
            args.rows.inputs[0] = input_memory(launcher, along, 0);
        }
    }
    args.product.contract.k = args.rows.columns;
    if (group->count == PARTS) {
        take_product(&args.product, launcher, &group->ops[SECOND], false);
    }
    return launch_strips_of(
        launcher, &args,
        kernels[args.rows.columns > STRIP_K_MAX][contract_by_halves(
            launcher, UNITS_ATTENTION, args.scores.bits)][args.scores.bits == 14],
        args.scores.m);
}

static enum device_result launch_across(const struct launcher *launcher,
                                        const struct fusion *fusion,
                                        const struct fused_group *group)
{
    static const enum cuda_kernel kernels[2][2] = {
        {KERNEL_ATTEND_KEYS_WIDE, KERNEL_ATTEND_KEYS_NARROW},
        {KERNEL_ATTEND_KEYS_HALVES_WIDE, KERNEL_ATTEND_KEYS_HALVES_NARROW}};
    const struct op *product = &group->ops[1];
    const struct fused_group *rows = fusion_group(fusion, group->again - 1);
    struct attention_args args = attention_args_of(&rows->ops[ALONG]);

    take_product(&args.product, launcher, product, group->ops[0].outputs[2] == product->inputs[2]);
    if (rows->again != 0) {
        args.slopes = faced_args(launcher, &rows->ops[FIRST]);
        args.dot = output_memory(launcher, &rows->ops[ALONG], 1);
        rows = fusion_group(fusion, rows->again - 1);
    }
    take_scores(&args, launcher, rows);
    return launch_strips_of(launcher, &args,
                            kernels[contract_by_halves(launcher, UNITS_ATTENTION, args.scores.bits)]
                                   [args.scores.bits == 14],
                            args.scores.n);
}

static enum device_result launch_attention(const struct launcher *launcher,
                                           const struct fusion *fusion, uint32_t at)
{
    const struct fused_group *group = fusion_group(fusion, at);

    return group->ops[0].kind == OP_QUANTIZE ? launch_across(launcher, fusion, group)
                                             : launch_along(launcher, fusion, group);
}

/* ---- the self-test ------------------------------------------------------------------- */

/* Softmax of scores, or its gradient from p and dp; a product made the scores or dp. */
static uint32_t add_softmax(struct selftest_tape *tape, uint32_t p, uint32_t scores, int64_t rows,
                            int64_t columns, int64_t causal, bool forward)
{
    struct op *op = selftest_op(tape, forward ? OP_SOFTMAX : OP_SOFTMAX_GRAD);
    const uint64_t all = (uint64_t)(rows * columns);
    const uint64_t parts = (uint64_t)rows * fold_chunks((uint64_t)columns);

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
        const uint64_t count = i == 2 ? all : i % 3 == 0 ? parts : (uint64_t)rows;

        (void)selftest_hide(tape, selftest_output(tape, op, DTYPE_F32, count));
    }
    return selftest_output(tape, op, DTYPE_F32, all);
}

struct attention_shape {
    int64_t heads;
    int64_t queries;
    int64_t keys;
    int64_t d;
    int bits;
    bool shown; /* p and ds are, and nothing is made again */
};

/* The gradient of values (keys): the columns of p (ds) by those of dout (queries). */
static void add_columns(struct selftest_tape *tape, const struct attention_shape *shape, uint32_t x,
                        uint32_t other, bool is_b)
{
    const int64_t m = shape->queries;
    const int64_t n = shape->keys;
    const int64_t by_a[3] = {shape->heads, n, shape->d};
    const int64_t by_b[3] = {shape->heads, shape->d, n};
    const struct op *held = selftest_quantize(tape, x, shape->heads, n, m, shape->bits, 128, false);
    const struct op *free =
        selftest_quantize(tape, other, shape->heads, shape->d, m, shape->bits, 128, false);

    (void)selftest_contract(tape, is_b ? free : held, is_b ? held : free, is_b ? by_b : by_a, m,
                            is_b);
}

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
        if (!shape->shown) {
            (void)selftest_hide(tape, p);
        }
        a = selftest_quantize(tape, p, heads, m, n, bits, 128, true);
        b = selftest_quantize(tape, given[backward ? 1 : 2], heads, d, n, bits, 128, false);
        (void)selftest_contract(tape, a, b, products, n, false);
        if (backward_too) {
            add_columns(tape, shape, p, given[backward ? 0 : 3], !backward);
        }
    }
}

static void add_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct attention_shape shapes[] = {
        {1, 35, 35, 64, 16, false}, {2, 20, 20, 40, 14, false}, {1, 19, 300, 72, 14, false},
        {1, 35, 35, 24, 14, true},  {1, 2, 1040, 8, 14, false}, {1, 1040, 2, 8, 15, false},
        {1, 2, 1040, 8, 16, false}};

    add_attention(tape, &shapes[part], true);
}

/* A strip to each multiprocessor. */
static void add_timed(struct selftest_tape *tape, int bits, int64_t processors)
{
    const struct attention_shape shape = {processors,
                                          STRIP_ROWS,
                                          selftest_timed_k(processors, STRIP_K_MAX),
                                          selftest_timed_k(processors, ATTENTION_D_MAX / 2),
                                          bits,
                                          true};

    add_attention(tape, &shape, false);
}

const struct fusion_pattern pattern_attention = {.name = "attention",
                                                 .variant = VARIANT_ATTENTION,
                                                 .match = find_attention,
                                                 .launch = launch_attention,
                                                 .selftest = add_selftest,
                                                 .selftests = 7,
                                                 .products = 1u << VARIANT_MMA | 1u << VARIANT_HALF,
                                                 .again = 2,
                                                 .timed = add_timed};
