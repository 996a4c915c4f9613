/*
 * epilogue.c - element-wise operations that are made where their operand is: up to four behind a
 * product, before it is written (sums with a bias and a residual, GELU, SiLU, their gradients,
 * products); and the sum that a norm's gradient or an embedding's is added to.
 *
 * Saves: a launch for each, which reads all that it needs. In a GPT-2 step 109 launches and 5.6 GB.
 */
#include "engine/cuda/fusions/group.h"
#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/launch/epilogue_step.h"
#include "engine/cuda/launch/launch_contract.h"
#include "engine/cuda/launch/launch_rows.h"
#include "engine/ops/real.h"
#include "engine/ops/view.h"

/*
 * Operations are looked for at most so far behind a product. Its operands must live until the last
 * of them, and those of a vocabulary's gradient should not live until the end of the step.
 */
#define WINDOW 24

/* Operations that may become one, and the tensors that others want of them. */
struct epilogue_match {
    uint32_t ats[GROUP_OPS_MAX];
    uint32_t count;
    uint32_t made[GROUP_OPS_MAX * OP_OUTPUTS_MAX];
    uint32_t made_count;
};

static bool is_read_in(const struct fusion *fusion, const struct epilogue_match *group, uint32_t at,
                       uint32_t id)
{
    const struct op *op = &fusion->ops[group->ats[at]];

    for (uint32_t i = 0; i < op->input_count; i++) {
        if (op->inputs[i] == id) {
            return true;
        }
    }
    return false;
}

/* Finds the tensors that others want. Can all be made where the last operation is? */
static bool group_closes(struct epilogue_match *group, const struct fusion *fusion,
                         const struct readers *readers)
{
    group->made_count = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct op *op = &fusion->ops[group->ats[i]];

        for (uint32_t output = 0; output < op->output_count; output++) {
            const uint32_t id = op->outputs[output];
            uint32_t own = 0;

            for (uint32_t j = 0; j < group->count; j++) {
                own += is_read_in(fusion, group, j, id);
            }
            if (readers->kept[id] || own != readers->count[id]) {
                group->made[group->made_count++] = id;
            }
        }
    }
    return group->made_count > 0 && group_can_form(fusion, readers, group->ats, group->count,
                                                   group->made, group->made_count);
}

/* ---- what can follow ------------------------------------------------------------------ */

/* Does a contraction write its results as an epilogue reads them: row after row, from 0 on? */
static bool is_followed(const struct op *contract)
{
    const int64_t *dims = &contract->attributes[CONTRACT_DIMS];
    const int64_t *strides = &contract->attributes[CONTRACT_STRIDES];
    const int64_t n = dims[4] * dims[5];

    return contract->kind == OP_CONTRACT && contract->attributes[CONTRACT_CAUSAL] == 0 &&
           dims[0] * dims[1] == 1 && n % 4 == 0 && (dims[5] == 1 || strides[5] == 1) &&
           (dims[4] == 1 || strides[4] == dims[5]) && (dims[3] == 1 || strides[3] == n) &&
           (dims[2] == 1 || strides[2] == n * dims[3]);
}

static bool reads_any(const struct op *op, uint32_t input, const struct op *const *ops,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count && input < op->input_count; i++) {
        if (op->inputs[input] == ops[i]->outputs[0]) {
            return true;
        }
    }
    return false;
}

/* How each operation of a group goes on: from which one's output, by which of its inputs. */
struct epilogue_link {
    struct epilogue_form form;
    uint32_t from; /* an earlier operation of the group; 0: the contraction */
    uint32_t value;
};

/*
 * Does op go on from one of ops[count], the first of which is a contraction and each other one a
 * step behind it? It reads nothing else that they make, and but for the contraction's results
 * nothing that another one goes on from.
 */
static bool joins_chain(struct epilogue_link *link, const struct op *const *ops, uint32_t count,
                        const struct op *op, const struct tensor *tensors)
{
    const int64_t *dims = &ops[0]->attributes[CONTRACT_DIMS];
    bool found = false;

    for (uint32_t value = 0; value < op->input_count && !found; value++) {
        link->value = value;
        for (link->from = 0; link->from < count; link->from++) {
            if (ops[link->from]->outputs[0] == op->inputs[value]) {
                break;
            }
        }
        found = link->from < count && epilogue_takes(&link->form, op, tensors, value) &&
                !reads_any(op, link->form.other, ops, count);
    }
    for (uint32_t i = 1; found && i < count && link->from != 0; i++) {
        found = i == link->from || !reads_any(ops[i], 0, &ops[link->from], 1);
        found = found && (i == link->from || !reads_any(ops[i], 1, &ops[link->from], 1));
    }
    return found &&
           (link->form.source != EPILOGUE_ROW || link->form.row == (uint64_t)(dims[4] * dims[5]));
}

/* ---- behind a product ---------------------------------------------------------------------- */

/* The longest match that begins with the contraction at `at`. */
static void find_behind(struct epilogue_match *best, const struct fusion *fusion,
                        const struct tape *tape, const struct readers *readers, uint32_t at)
{
    const struct op *ops[GROUP_OPS_MAX] = {&fusion->ops[at]};
    struct epilogue_match group = {.ats = {at}, .count = 1};
    struct epilogue_link link;

    for (uint32_t next = at + 1; next < fusion->op_count && next - at <= WINDOW; next++) {
        if (group.count > EPILOGUE_STEPS_MAX) {
            break;
        }
        if (fusion->ops[next].output_count != 1 || !fusion_may_take(fusion, next) ||
            !joins_chain(&link, ops, group.count, &fusion->ops[next], tape->tensors)) {
            continue;
        }
        ops[group.count] = &fusion->ops[next];
        group.ats[group.count++] = next;
        if (group_closes(&group, fusion, readers)) {
            *best = group;
        }
    }
}

/* The contraction, with the inputs of its steps. False: too many inputs. */
static bool maker_of(struct op *maker, const struct epilogue_match *group,
                     const struct fusion *fusion)
{
    *maker = fusion->ops[group->ats[0]];
    for (uint32_t i = 1; i < group->count; i++) {
        const struct op *op = &fusion->ops[group->ats[i]];

        for (uint32_t input = 0; input < op->input_count; input++) {
            bool inside = false;

            for (uint32_t j = 0; j < group->count; j++) {
                inside = inside || fusion->ops[group->ats[j]].outputs[0] == op->inputs[input];
            }
            for (uint32_t j = 0; j < maker->input_count; j++) {
                inside = inside || maker->inputs[j] == op->inputs[input];
            }
            if (!inside && maker->input_count == OP_INPUTS_MAX) {
                return false;
            }
            if (!inside) {
                maker->inputs[maker->input_count++] = op->inputs[input];
            }
        }
    }
    maker->output_count = group->made_count;
    for (uint32_t i = 0; i < group->made_count; i++) {
        maker->outputs[i] = group->made[i];
    }
    return true;
}

/* ---- behind a gradient of a norm or an embedding ----------------------------------------- */

static uint32_t gradient_of(const struct op *op)
{
    return op->kind == OP_CONTRACT_ONEHOT ? 0 : launch_rows_result(op);
}

/* The sum takes the gradient's place among the outputs; the other summand is the last input. */
static bool find_sum(struct epilogue_match *group, struct op *maker, const struct fusion *fusion,
                     const struct tape *tape, const struct readers *readers, uint32_t at)
{
    const struct op *op = &fusion->ops[at];
    const uint32_t main = gradient_of(op);
    struct epilogue_form form;

    for (uint32_t next = at + 1; next < fusion->op_count && next - at <= WINDOW; next++) {
        const struct op *sum = &fusion->ops[next];

        if (sum->kind != OP_BINARY || sum->attributes[BINARY_FUNCTION] != BINARY_ADD ||
            sum->input_count != 2 || !fusion_may_take(fusion, next) ||
            (sum->inputs[0] != op->outputs[main] && sum->inputs[1] != op->outputs[main])) {
            continue;
        }
        *group = (struct epilogue_match){.ats = {at, next}, .count = 2};
        *maker = *op;
        maker->outputs[main] = sum->outputs[0];
        const uint32_t value = sum->inputs[1] == op->outputs[main];

        assert(op->kind != OP_CONTRACT_ONEHOT || op->input_count == ONEHOT_ADDEND);
        maker->inputs[maker->input_count++] = sum->inputs[1 - value];
        if (sum->inputs[0] == sum->inputs[1] || !epilogue_takes(&form, sum, tape->tensors, value) ||
            form.source != EPILOGUE_WHOLE || !group_closes(group, fusion, readers)) {
            return false;
        }
        for (uint32_t i = 0; i < group->made_count; i++) {
            if (group->made[i] == op->outputs[main]) {
                return false; /* the gradient itself is read, too */
            }
        }
        return true;
    }
    return false;
}

/* ---- all of them -------------------------------------------------------------------------- */

static bool find_at(bool *found, struct fusion *fusion, const struct tape *tape,
                    const struct readers *readers, uint32_t at)
{
    const struct op *op = &fusion->ops[at];
    const bool held = fusion_allows(fusion, VARIANT_HELD);
    struct epilogue_match group = {.count = 0};
    struct op maker;

    *found = false;
    if (!fusion_may_take(fusion, at) || op->output_count == 0) {
        return true;
    }
    if (is_followed(op)) {
        find_behind(&group, fusion, tape, readers, at);
        *found = group.count > 1 && maker_of(&maker, &group, fusion);
        return !*found || group_add(fusion, group.ats, group.count, &maker, &pattern_epilogue);
    }
    if (op->kind == OP_CONTRACT_ONEHOT ||
        ((op->kind == OP_LAYER_NORM_GRAD || op->kind == OP_RMS_NORM_GRAD) && held &&
         launch_can_hold(op))) {
        *found = find_sum(&group, &maker, fusion, tape, readers, at);
        return !*found || group_add(fusion, group.ats, group.count, &maker, &pattern_epilogue);
    }
    return true;
}

static bool find_epilogues(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    /* Backward: of two products that are added, the later one is nearer to the sum. */
    for (uint32_t at = fusion->op_count; at > 0; at--) {
        bool found;

        if (!find_at(&found, fusion, tape, readers, at - 1)) {
            return false;
        }
        if (found) {
            readers_regroup(readers, fusion);
        }
    }
    return true;
}

/* ---- the launch ---------------------------------------------------------------------- */

/* The memory of a tensor; NULL where the maker does not make it. */
static void *wanted_memory(const struct launcher *launcher, const struct op *maker, uint32_t id)
{
    for (uint32_t i = 0; i < maker->output_count; i++) {
        if (maker->outputs[i] == id) {
            return launcher->memory[id];
        }
    }
    return NULL;
}

static void add_step(struct epilogue *epilogue, const struct launcher *launcher,
                     const struct op *maker, const struct op *op, const struct epilogue_form *form)
{
    epilogue_add(epilogue, launcher, op, form, wanted_memory(launcher, maker, op->outputs[0]));
}

static enum device_result launch_product(const struct launcher *launcher, const struct op *maker,
                                         const struct fused_group *group)
{
    const uint32_t count = group->count;
    const struct op *ops[GROUP_OPS_MAX] = {&group->ops[0]};
    struct epilogue_link links[GROUP_OPS_MAX];
    struct epilogue epilogue = {.count = 0};

    for (uint32_t i = 1; i < count; i++) {
        const bool fits = joins_chain(&links[i], ops, i, &group->ops[i], launcher->tape->tensors);

        assert(fits);
        (void)fits;
        ops[i] = &group->ops[i];
    }
    /* A step on the product's results starts a sequence; the steps on its output follow at once. */
    for (uint32_t i = 1; i < count; i++) {
        uint32_t last = i;

        if (links[i].from != 0) {
            continue;
        }
        epilogue.steps[epilogue.count].restarts = 1;
        add_step(&epilogue, launcher, maker, ops[i], &links[i].form);
        for (uint32_t next = i + 1; next < count; next++) {
            if (links[next].from == last) {
                add_step(&epilogue, launcher, maker, ops[next], &links[next].form);
                last = next;
            }
        }
    }
    assert(epilogue.count + 1 == count);
    return launch_contract(launcher, maker, wanted_memory(launcher, maker, ops[0]->outputs[0]),
                           &epilogue);
}

/* A contraction and what follows it; or a gradient and the sum that it is added to. */
static enum device_result launch_epilogue(const struct launcher *launcher,
                                          const struct fusion *fusion, uint32_t at)
{
    const struct fused_group *group = fusion_group(fusion, at);

    if (group->ops[0].kind == OP_CONTRACT) {
        return launch_product(launcher, &fusion->ops[at], group);
    }
    if (group->ops[0].kind == OP_CONTRACT_ONEHOT) {
        return launch_onehot(launcher, &fusion->ops[at]);
    }
    const struct rows_args rows = launch_rows_args(launcher, &fusion->ops[at]);

    return launch_held(launcher, &rows, NULL);
}

/* ---- the self-test ------------------------------------------------------------------- */

#define SELFTESTS 3
#define WORDS     20

/* A hidden product of rows by rows. */
static uint32_t add_product(struct selftest_tape *tape, const struct op *a, const struct op *b,
                            const int64_t sizes[3])
{
    const int64_t one[3] = {1, sizes[0], sizes[1]};

    return selftest_hide(tape, selftest_contract(tape, a, b, one, sizes[2], false)->outputs[0]);
}

/* A hidden function of one operand. */
static uint32_t add_map(struct selftest_tape *tape, enum map_function function, uint32_t x)
{
    struct op *op = selftest_op(tape, OP_MAP);

    selftest_input(op, x);
    op->attributes[MAP_FUNCTION] = function;
    op->attribute_count = MAP_ATTRIBUTES;
    return selftest_hide(tape, selftest_output(tape, op, DTYPE_F32, tape->tensors[x].count));
}

/* A hidden function of two operands, of which the second may be a row. */
static uint32_t add_binary(struct selftest_tape *tape, enum binary_function function, uint32_t a,
                           uint32_t b)
{
    const uint64_t count = tape->tensors[a].count;
    struct op *op = selftest_op(tape, OP_BINARY);

    selftest_input(op, a);
    selftest_input(op, b);
    binary_set(op, function, count, 1, tape->tensors[b].count);
    return selftest_hide(tape, selftest_output(tape, op, DTYPE_F32, count));
}

/* What follows products in models: sums, of which the first is kept or not, and functions. */
static void build_products(struct selftest_tape *tape, const struct op *a, const struct op *b,
                           const int64_t sizes[3], uint32_t part)
{
    const uint64_t all = (uint64_t)(sizes[0] * sizes[1]);
    const uint32_t row = selftest_give(tape, DTYPE_F32, (uint64_t)sizes[1]);
    const uint32_t x = selftest_give(tape, DTYPE_F32, all);
    const uint32_t y = selftest_give(tape, DTYPE_F32, all);
    uint32_t made = add_product(tape, a, b, sizes);

    switch (part) {
    case 0:
        selftest_show(tape,
                      add_binary(tape, BINARY_ADD, x, add_binary(tape, BINARY_ADD, made, row)));
        made = add_binary(tape, BINARY_ADD, add_product(tape, a, b, sizes), row);
        selftest_show(tape, made);
        selftest_show(tape, add_map(tape, MAP_GELU, made));
        selftest_show(tape, add_binary(tape, BINARY_GELU_GRAD, x, add_product(tape, a, b, sizes)));
        break;
    case 1:
        selftest_show(tape, made);
        made = add_map(tape, MAP_SILU, made);
        selftest_show(tape, add_binary(tape, BINARY_MUL, made, y));
        break;
    default:
        selftest_show(tape, add_binary(tape, BINARY_MUL, made, x));
        made = add_binary(tape, BINARY_MUL, made, y);
        selftest_show(tape, add_binary(tape, BINARY_SILU_GRAD, x, made));
        break;
    }
    /* And element-wise operations on given tensors. */
    selftest_show(tape, add_map(tape, MAP_RELU, x));
    selftest_show(tape, add_binary(tape, BINARY_RELU_GRAD, x, y));
    selftest_show(tape, add_binary(tape, BINARY_MUL, x, row));
    selftest_show(tape, add_map(tape, MAP_SCALE, y));
    tape->ops[tape->tape.op_count - 1].attributes[MAP_CONSTANT_BITS] = real_to_bits(0.3f);
}

/* Rows of a, one for each word: what is added to them lies in the order of their sums. */
static void add_words(struct selftest_tape *tape, const struct op *a, int64_t rows, int64_t k)
{
    const uint64_t all = (uint64_t)(rows * WORDS);
    struct op *op = selftest_op(tape, OP_CONTRACT_ONEHOT);

    op->attributes[ONEHOT_WIDTH] = rows;
    op->attributes[ONEHOT_VOCABULARY] = WORDS;
    op->attributes[ONEHOT_K] = k;
    op->attributes[ONEHOT_BITS] = a->attributes[QUANTIZE_BITS];
    op->attributes[ONEHOT_BLOCK] = a->attributes[QUANTIZE_BLOCK];
    op->attribute_count = ONEHOT_ATTRIBUTES;
    selftest_input(op, selftest_give(tape, DTYPE_U32, (uint64_t)k));
    selftest_input(op, a->outputs[2]);
    selftest_input(op, a->outputs[1]);
    selftest_show(tape, add_binary(tape, BINARY_ADD, selftest_give(tape, DTYPE_F32, all),
                                   selftest_hide(tape, selftest_output(tape, op, DTYPE_F32, all))));
}

/* Whole tiles and ragged ones, all widths, k split over blocks; by each kernel that contracts. */
static void add_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct {
        int64_t sizes[3]; /* m, n, k */
        int bits;
        int block;
    } shapes[SELFTESTS] = {
        {{133, 72, 40}, 14, 128}, {{21, 20, 1030}, 16, 0}, {{33, 36, 40}, 22, 0}};
    static const struct row_kind kinds[] = {
        {OP_LAYER_NORM_GRAD, 0, {1, 1, 2, 3, 3}, {3, 3, 3, 3, 1, 1}},
        {OP_RMS_NORM_GRAD, 0, {1, 1, 2, 3}, {3, 3, 1, 1}},
    };
    const int64_t m = shapes[part].sizes[0];
    const int64_t n = shapes[part].sizes[1];
    const int64_t k = shapes[part].sizes[2];
    const uint32_t x = selftest_give(tape, DTYPE_F32, (uint64_t)(m * k));
    const uint32_t w = selftest_give(tape, DTYPE_F32, (uint64_t)(n * k));
    const uint32_t residual = selftest_give(tape, DTYPE_F32, (uint64_t)(5 * k));
    const struct op *a =
        selftest_quantize(tape, x, m, 1, k, shapes[part].bits, shapes[part].block, true);
    const struct op *b =
        selftest_quantize(tape, w, n, 1, k, shapes[part].bits, shapes[part].block, true);

    build_products(tape, a, b, shapes[part].sizes, part);
    add_words(tape, b, n, k);
    tape->splits = part == 1; /* k is long */
    for (int i = 0; i < 2 && k <= HELD_MAX; i++) {
        const struct op *op = selftest_rows(tape, &kinds[i], 5, k, 0);

        selftest_show(tape, add_binary(tape, BINARY_ADD, residual,
                                       selftest_hide(tape, op->outputs[i == 0 ? 4 : 2])));
    }
}

const struct fusion_pattern pattern_epilogue = {.name = "epilogue",
                                                .variant = VARIANT_EPILOGUE,
                                                .match = find_epilogues,
                                                .launch = launch_epilogue,
                                                .selftest = add_selftest,
                                                .selftests = SELFTESTS,
                                                .products = (1u << CONTRACT_VARIANTS) - 1,
                                                .again = SELFTESTS};
