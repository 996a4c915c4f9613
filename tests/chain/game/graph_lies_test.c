/*
 * Goal: of each operation that a graph can make, a lie about it is convicted and an honest element
 * acquitted, on both ledgers: every call that a line can be, every function of the elementwise
 * kinds, what the reverse pass makes of them, whole rows that are drawn in either order.
 * Method: the graphs of fixtures/corpus, and one that has all calls, become tapes; of each form of
 * operation in them (its kind, and what chooses its rule) an element of every output is disputed,
 * once as the rule has it and once false. All numbers of a tape are invented.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/io/file.h"
#include "engine/models/graph/graph.h"
#include "proofs/commit/element.h"
#include "tests/support/dispute/exhibit.h"
#include "tests/support/game/court.h"
#include "tests/support/test.h"

#define FORMS_MAX 4096

/* What was disputed already: a kind and the numbers that choose its rule. */
struct forms {
    uint64_t of[FORMS_MAX];
    uint32_t count;
    uint32_t played;
    bool kinds[OP_KIND_COUNT];
    bool maps[MAP_FUNCTION_COUNT];
    bool binaries[BINARY_FUNCTION_COUNT];
    bool integers[INTEGER_FUNCTION_COUNT];
    bool orders[2];
};

/* ---- a graph that has all calls -------------------------------------------------- */

struct text {
    struct buffer bytes;
    uint32_t count; /* values */
    uint32_t loss;  /* what is added up for it, or 0 */
};

/* A line that makes a value, whose number it gives. */
static uint32_t say(struct text *text, const char *format, ...)
{
    va_list arguments;

    buffer_add_format(&text->bytes, "%%%u ", text->count);
    va_start(arguments, format);
    buffer_add_list(&text->bytes, format, arguments);
    va_end(arguments);
    buffer_add_text(&text->bytes, "\n");
    return text->count++;
}

#define SAME "1 1 1 24 0 0 0 1 0 0 0 1"

/* The loss has the sum of it too, so that a gradient goes back through it. */
static void into_loss(struct text *text, uint32_t value, uint32_t count)
{
    const uint32_t sum = say(text, "row-sum %%%u %u = 1", value, count);

    text->loss = text->loss == 0
                     ? sum
                     : say(text, "add %%%u %%%u 1 1 1 1 0 0 0 0 0 0 0 0 = 1", text->loss, sum);
}

#define WORD(NAME, word, ...) word,

static void add_integers(struct text *text, uint32_t p, uint32_t y)
{
    static const char *const integers[] = {OP_INTEGER_CODES(WORD)};
    const uint32_t drawn = say(text, "uniform 1 = 4 6");
    const uint32_t other = say(text, "uniform 2 = 4 6");
    const uint32_t index = say(text, "sort-index %%%u 1 = 4 6", p);
    const uint32_t some = say(text, "move %%%u 1 1 1 4 2 0 0 0 6 1 0 = 4 2", index);
    const uint32_t taken = say(text, "take %%%u %%%u = 4 2", p, some);

    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++) {
        (void)say(text, "%s %%%u %%%u " SAME " = 4 6", integers[i], drawn, other);
    }
    (void)say(text, "sort-rank %%%u 0 = 4 6", p);
    (void)say(text, "take %%%u %%%u = 4 2", drawn, some);
    (void)say(text, "scatter-last %%%u %%%u %%%u = 4 6", index, drawn, other);
    into_loss(text, taken, 8);
    into_loss(text, say(text, "sort %%%u 1 = 4 6", p), 24);
    into_loss(text, say(text, "scatter-add %%%u %%%u %%%u = 4 6", some, taken, p), 24);
    into_loss(text, say(text, "scatter-last %%%u %%%u %%%u = 4 6", some, taken, p), 24);
    into_loss(text, say(text, "sum-by-index %%%u %%%u = 5 6", y, p), 30);
}

static void add_functions(struct text *text, uint32_t p, uint32_t x)
{
    static const char *const maps[] = {OP_MAP_CODES(WORD)};
    static const char *const binaries[] = {OP_BINARY_CODES(WORD)};

    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        const bool scale = strcmp(maps[i], "scale") == 0;
        const uint32_t made = say(text, "%s %%%u%s = 4 6", maps[i], p, scale ? " 0x40000000" : "");

        if (i != MAP_GELU_ERF_SLOPE) {
            into_loss(text, made, 24);
        }
    }
    for (size_t i = 0; i < sizeof(binaries) / sizeof(binaries[0]); i++) {
        const uint32_t made = say(text, "%s %%%u %%%u " SAME " = 4 6", binaries[i], p, x);

        if (i != BINARY_RELU_GRAD && i != BINARY_GELU_GRAD && i != BINARY_SILU_GRAD &&
            i != BINARY_SQUARED_ERROR_SLOPE) {
            into_loss(text, made, 24);
        }
    }
}

static void add_pictures(struct text *text, uint32_t picture)
{
    into_loss(text, say(text, "channel-sum %%%u 1 2 = 2", picture), 2);
    into_loss(text, say(text, "im2col %%%u 1 4 4 2 2 2 1 1 0 0 0 0 1 1 = 9 8", picture), 72);
    into_loss(text, say(text, "max-pool %%%u 1 4 4 2 2 2 2 2 0 0 0 0 1 1 = 1 2 2 2", picture), 8);
    into_loss(text, say(text, "mean-pool %%%u 1 4 4 2 2 2 2 2 0 0 0 0 1 1 0 = 1 2 2 2", picture),
              8);
}

static void write_calls(struct text *text)
{
    buffer_init(&text->bytes, 1 << 20);
    buffer_add_text(&text->bytes, "lockstep-graph 1\n");
    const uint32_t x = say(text, "input x f32 4 6");
    const uint32_t y = say(text, "input y u32 4");
    const uint32_t p = say(text, "param p 4 6");
    const uint32_t w = say(text, "param w 6 6");
    const uint32_t g = say(text, "param g 6");
    const uint32_t b = say(text, "param b 6");
    const uint32_t table = say(text, "param table 5 6");
    const uint32_t picture = say(text, "param picture 1 4 4 2");
    const uint32_t f = say(text, "frozen f f16 4 6");
    const uint32_t turns = say(text, "frozen turns f32 4 2");
    const uint32_t s = say(text, "state s f32 4 6");
    const uint32_t n = say(text, "state n u32 1");
    const uint32_t made[] = {
        say(text, "select %%%u %%%u %%%u " SAME " 0 0 0 1 = 4 6", x, p, s),
        say(text, "move %%%u 1 1 1 4 6 0 0 0 6 -1 5 = 4 6", p),
        say(text, "place %%%u %%%u 1 1 1 1 6 0 0 0 24 1 6 = 4 6", g, p),
        say(text, "gather %%%u %%%u = 4 6", table, y),
        say(text,
            "contract %%%u %%%u 1 1 1 4 1 6 0 0 0 6 0 1 1 1 1 6 1 6 0 0 0 6 0 1 0 0 0 6 0 1 0 "
            "= 4 6",
            p, w),
        say(text, "layer-norm %%%u %%%u %%%u 0x3727c5ac = 4 6", p, g, b),
        say(text, "rms-norm %%%u %%%u 0x3727c5ac = 4 6", p, g),
        say(text, "softmax %%%u 0x3f800000 0 = 4 6", p),
        say(text, "dropout %%%u 0x3e800000 = 4 6", p),
        say(text, "stop %%%u = 4 6", p),
    };
    const uint32_t square = say(text,
                                "contract %%%u %%%u 1 1 1 4 1 6 0 0 0 6 0 1 1 1 1 4 1 6 0 0 0 6 "
                                "0 1 0 0 0 4 0 1 0 = 4 4",
                                p, p);
    const uint32_t four[] = {
        say(text, "gather-elements %%%u %%%u = 4", p, y),
        say(text, "row-max %%%u = 4", p),
        say(text, "row-min %%%u = 4", p),
        say(text, "row-sum %%%u 6 = 4", p),
        say(text, "cross-entropy %%%u %%%u = 4", p, y),
        say(text, "sum %%%u 1 1 1 4 1 6 0 0 0 6 0 1 = 4", p),
    };
    const uint32_t sixteen[] = {say(text, "softmax %%%u 0x3f800000 4 = 4 4", square),
                                say(text, "part %%%u 0 4 2 0 0 0 0 0 0 = 4 4", p),
                                say(text, "rotary %%%u %%%u 4 1 1 = 4 4", square, turns)};

    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        into_loss(text, made[i], 24);
    }
    for (size_t i = 0; i < sizeof(four) / sizeof(four[0]); i++) {
        into_loss(text, four[i], 4);
    }
    for (size_t i = 0; i < sizeof(sixteen) / sizeof(sixteen[0]); i++) {
        into_loss(text, sixteen[i], 16);
    }
    add_pictures(text, picture);
    (void)say(text, "row-max-index %%%u = 4", p);
    (void)say(text, "fill-integer 3 = 4");
    const uint32_t wide = say(text, "cast %%%u = 4 6", f);
    const uint32_t drawn = say(text, "uniform 0 = 4 6");
    const uint32_t real = say(text, "cast %%%u = 4 6", drawn);
    const uint32_t mixed = say(text, "add %%%u %%%u " SAME " = 4 6", wide, real);
    const uint32_t count = say(text, "count %%%u = 1", n);

    add_functions(text, p, x);
    add_integers(text, p, y);
    buffer_add_format(&text->bytes, "after %%%u %%%u\nafter %%%u %%%u\nloss %%%u\n", s, mixed, n,
                      count, text->loss);
}

/* ---- forms ------------------------------------------------------------------------- */

/* The kind of an operation, and the attributes that choose its rule rather than its sizes. */
static uint64_t form_of(const struct op *op)
{
    static const struct {
        enum op_kind kind;
        int attribute;
    } choosing[] = {{OP_MAP, MAP_FUNCTION},         {OP_BINARY, BINARY_FUNCTION},
                    {OP_REDUCE, REDUCE_FUNCTION},   {OP_BATCH_ROWS, BATCH_ROWS_ORDER},
                    {OP_CONTRACT, CONTRACT_CAUSAL}, {OP_ROTARY, ROTARY_INVERSE},
                    {OP_INTEGER, INTEGER_FUNCTION}, {OP_SCATTER, SCATTER_FUNCTION}};

    for (size_t i = 0; i < sizeof(choosing) / sizeof(choosing[0]); i++) {
        if (choosing[i].kind == op->kind) {
            return (uint64_t)op->kind << 32 | (uint32_t)op->attributes[choosing[i].attribute];
        }
    }
    return (uint64_t)op->kind << 32 | op->input_count << 8;
}

static bool is_new(struct forms *forms, const struct op *op)
{
    const uint64_t form = form_of(op);

    for (uint32_t i = 0; i < forms->count; i++) {
        if (forms->of[i] == form) {
            return false;
        }
    }
    assert_true(forms->count < FORMS_MAX);
    forms->of[forms->count++] = form;
    forms->kinds[op->kind] = true;
    if (op->kind == OP_MAP) {
        forms->maps[op->attributes[MAP_FUNCTION]] = true;
    } else if (op->kind == OP_BINARY) {
        forms->binaries[op->attributes[BINARY_FUNCTION]] = true;
    } else if (op->kind == OP_INTEGER) {
        forms->integers[op->attributes[INTEGER_FUNCTION]] = true;
    } else if (op->kind == OP_BATCH_ROWS) {
        forms->orders[op->attributes[BATCH_ROWS_ORDER] != 0] = true;
    }
    return true;
}

/* ---- disputes ------------------------------------------------------------------------ */

static void dispute(struct court *court, struct exhibit *exhibit,
                    const struct evidence_target *target, bool lie)
{
    const struct op *op = &exhibit->tape->ops[0];
    const enum dtype dtype = exhibit->tape->tensors[op->outputs[target->output]].dtype;
    const wei owed = court_owed(court, COURT_CLAIMANT);
    struct buffer evidence;

    exhibit_make_right(exhibit, target);
    if (lie) {
        exhibit_set(exhibit, target, element_cut(exhibit_get(exhibit, target) ^ 1, dtype));
    }
    exhibit_evidence(&evidence, exhibit, target);
    court_bring(court, &exhibit->context, target->element % 2, target->output % COURT_STEPS);
    court_convict(court, &evidence, lie ? GAME_REFUSED_NOT : GAME_NOT_GUILTY);
    if (lie) {
        court_pay(court);
        assert_true(court_owed(court, COURT_CLAIMANT) ==
                    owed + court->terms.bond + court->terms.stake / 4);
    }
    buffer_release(&evidence);
}

/* The tensor in a tape of one operation; what operations make before it are states there. */
static uint32_t take_tensor(struct tape *one, uint32_t *taken, const struct tape *tape, uint32_t id,
                            bool made)
{
    struct tensor *tensor = &one->tensors[one->tensor_count];

    for (uint32_t i = 0; i < one->tensor_count; i++) {
        if (taken[i] == id) {
            return i;
        }
    }
    *tensor = tape->tensors[id];
    if (!made && role_is_made(tensor->role)) {
        tensor->role = ROLE_STATE;
    }
    /* Every other one has the longest name. */
    (void)snprintf(tensor->name, sizeof(tensor->name), "t%0*u",
                   one->tensor_count % 2 == 0 ? 1 : TENSOR_NAME_MAX - 1, one->tensor_count);
    if (tensor->role == ROLE_STATE) {
        one->states[one->state_count++] =
            (struct state_pair){.before = one->tensor_count, .after = one->tensor_count};
    }
    taken[one->tensor_count] = id;
    return one->tensor_count++;
}

static struct tape *tape_of_one(const struct tape *tape, uint32_t at)
{
    uint32_t taken[OP_INPUTS_MAX + OP_OUTPUTS_MAX + 1] = {0};
    struct tape *one = calloc(1, sizeof(*one));

    assert_non_null(one);
    one->tensors = calloc(OP_INPUTS_MAX + OP_OUTPUTS_MAX + 1, sizeof(*one->tensors));
    one->states = calloc(OP_INPUTS_MAX + 1, sizeof(*one->states));
    one->ops = calloc(1, sizeof(*one->ops));
    assert_non_null(one->tensors);
    assert_non_null(one->states);
    assert_non_null(one->ops);
    one->op_count = 1;
    one->loss = TENSOR_NONE;
    one->ops[0] = tape->ops[at];
    for (uint32_t i = 0; i < one->ops[0].input_count; i++) {
        one->ops[0].inputs[i] = take_tensor(one, taken, tape, tape->ops[at].inputs[i], false);
    }
    for (uint32_t i = 0; i < one->ops[0].output_count; i++) {
        one->ops[0].outputs[i] = take_tensor(one, taken, tape, tape->ops[at].outputs[i], true);
    }
    if (one->state_count == 0) { /* a step has one */
        one->tensors[one->tensor_count] = (struct tensor){.dtype = DTYPE_F32,
                                                          .role = ROLE_STATE,
                                                          .rank = 1,
                                                          .dims = {2},
                                                          .count = 2,
                                                          .name = "s"};
        one->states[one->state_count++] =
            (struct state_pair){.before = one->tensor_count, .after = one->tensor_count};
        one->tensor_count++;
    }
    return one;
}

/* Every output of every form that the tape has first. */
static void dispute_tape(struct court *court, struct forms *forms, const struct tape *tape,
                         uint64_t *random)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        struct exhibit exhibit;

        if (!is_new(forms, &tape->ops[at])) {
            continue;
        }
        exhibit_of_op(&exhibit, tape_of_one(tape, at), MOOD_TAME, forms->count);
        for (uint32_t output = 0; output < tape->ops[at].output_count; output++) {
            const uint64_t count = tape->tensors[tape->ops[at].outputs[output]].count;
            const struct evidence_target target = {.output = output,
                                                   .element = test_random_below(random, count)};

            dispute(court, &exhibit, &target, false);
            dispute(court, &exhibit, &target, true);
            forms->played++;
            court_compare(court);
        }
        exhibit_close(&exhibit);
    }
}

static void dispute_graph(struct court *court, struct forms *forms, const char *text, size_t size,
                          uint64_t *random)
{
    for (int example = 0; example < 2; example++) {
        struct model_options options;
        struct model model;
        struct graph graph;
        struct error error;

        error_init(&error);
        if (graph_read(&graph, text, size, &error) != STATUS_OK) {
            fail_msg("%s", error.text);
        }
        model_options_default(&options, MODEL_MLP);
        graph.example = example == 1; /* rows as they lie, and not drawn */
        options.graph = &graph;
        options.data_count = 60;
        options.precision = (struct precision){example == 1 ? 22 : 14, example == 1 ? 0 : 32};
        if (model_build(&model, &options, &error) != STATUS_OK) {
            fail_msg("%s", error.text);
        }
        dispute_tape(court, forms, model.tape, random);
        model_release(&model);
    }
}

static void dispute_corpus(struct court *court, struct forms *forms, uint64_t *random)
{
    DIR *folder = opendir("fixtures/corpus/graph");
    const struct dirent *entry;
    uint32_t count = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        struct file_bytes bytes = {0};
        char path[300];

        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof(path), "fixtures/corpus/graph/%s", entry->d_name);
        assert_int_equal(file_read(&bytes, NULL, path, GRAPH_TEXT_MAX), STATUS_OK);
        dispute_graph(court, forms, (const char *)bytes.data, bytes.size, random);
        file_bytes_release(&bytes);
        count++;
    }
    assert_int_equal(closedir(folder), 0);
    assert_true(count >= 7);
}

/* Nothing that a line can be was left out. */
static void check_all(const struct forms *forms)
{
    static const enum op_kind kinds[] = {OP_FILL,
                                         OP_SELECT,
                                         OP_MOVE,
                                         OP_PLACE,
                                         OP_CAST,
                                         OP_GATHER,
                                         OP_GATHER_ELEMENTS,
                                         OP_REDUCE,
                                         OP_ROW_SUM,
                                         OP_CONTRACT,
                                         OP_QUANTIZE,
                                         OP_LAYER_NORM,
                                         OP_RMS_NORM,
                                         OP_SOFTMAX,
                                         OP_CROSS_ENTROPY,
                                         OP_DROPOUT,
                                         OP_UNIFORM,
                                         OP_STEP_NEXT,
                                         OP_SPLIT,
                                         OP_ROTARY,
                                         OP_IM2COL,
                                         OP_MAX_POOL,
                                         OP_MEAN_POOL,
                                         OP_BATCH_ROWS,
                                         OP_COL2IM,
                                         OP_MAX_POOL_GRAD,
                                         OP_MEAN_POOL_GRAD,
                                         OP_SOFTMAX_GRAD,
                                         OP_LAYER_NORM_GRAD,
                                         OP_RMS_NORM_GRAD,
                                         OP_CROSS_ENTROPY_GRAD,
                                         OP_GATHER_ELEMENTS_GRAD,
                                         OP_CONTRACT_ONEHOT,
                                         OP_CONTRACT_ONES};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!forms->kinds[kinds[i]]) {
            fail_msg("no %s was disputed", op_kind_name(kinds[i]));
        }
    }
    for (uint32_t i = 0; i < MAP_FUNCTION_COUNT; i++) {
        assert_true(forms->maps[i]);
    }
    for (uint32_t i = 0; i < BINARY_FUNCTION_COUNT; i++) {
        assert_true(forms->binaries[i]);
    }
    for (int i = 0; i < INTEGER_FUNCTION_COUNT; i++) {
        assert_true(forms->integers[i]);
    }
    assert_true(forms->orders[0] && forms->orders[1]);
}

static void test_a_lie_about_any_call_of_a_graph_convicts_on_both(void **state)
{
    struct court *court = court_new();
    struct forms *forms = calloc(1, sizeof(*forms));
    struct text text = {.count = 0};
    uint64_t random = 31;

    (void)state;
    assert_non_null(forms);
    write_calls(&text);
    assert_int_equal(buffer_check(&text.bytes, NULL, "a graph"), STATUS_OK);
    dispute_graph(court, forms, buffer_text(&text.bytes), text.bytes.size, &random);
    dispute_corpus(court, forms, &random);
    check_all(forms);
    print_message("%u outputs of %u forms of operations of graphs: each right one refused, each "
                  "wrong one upheld\n",
                  forms->played, forms->count);
    buffer_release(&text.bytes);
    free(forms);
    court_free(court);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lie_about_any_call_of_a_graph_convicts_on_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
