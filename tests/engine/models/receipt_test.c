/*
 * receipt_test.c - the step that decides a receipt, on a model whose weights are all zeros.
 *
 * Its logits are zeros, so each of 128 tokens has the probability 2^-7, and what a rule chooses
 * is known: at temperature 0 token 0, else what the sampler draws. Rows that could not have been
 * chosen must miss conditions, and those that no model takes are refused before.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/decode/sampler.h"
#include "engine/models/model_writer.h"
#include "engine/plan/backend.h"
#include "tests/support/numeric/model_state.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

enum { ANSWER_MAX = 70, ROW_MAX = 80, VOCABULARY = 128 };

struct claim {
    struct receipt_row row;
    uint32_t tokens[ROW_MAX];
    float thresholds_p[ANSWER_MAX];
    float thresholds_k[ANSWER_MAX];
    float weight; /* of the last bias */
};

static const char *find_weight(enum dtype *dtype, const void *files, const char *name)
{
    (void)files;
    *dtype = DTYPE_F32;
    return name;
}

/* A true one: its tokens and thresholds are the sampler's. */
static void claim_truth(struct claim *claim, float temperature, uint32_t top_k, float top_p,
                        uint32_t answer)
{
    static const float logits[VOCABULARY];
    const struct sampler_rule rule = {temperature, top_k, top_p, 7};
    struct sampler sampler;

    *claim = (struct claim){.row = {.prompt = 3,
                                    .count = 3 + answer,
                                    .temperature = temperature,
                                    .top_k = top_k,
                                    .top_p = top_p,
                                    .seed = rule.seed}};
    claim->row.tokens = claim->tokens;
    claim->row.thresholds_p = claim->thresholds_p;
    claim->row.thresholds_k = claim->thresholds_k;
    assert_int_equal(sampler_init(&sampler, &rule, VOCABULARY, NULL), STATUS_OK);
    for (uint32_t i = 0; i < answer; i++) {
        struct sampler_choice choice;

        sampler_next(&choice, &sampler, logits);
        claim->tokens[3 + i] = choice.token;
        claim->thresholds_p[i] = choice.threshold_p;
        claim->thresholds_k[i] = choice.threshold_k;
    }
    sampler_release(&sampler);
}

static void fill_options(struct model_options *options, const struct claim *claim)
{
    small_model_options(options, MODEL_GPT2);
    options->length = receipt_row_length(&claim->row);
    options->positions = 96;
    options->vocabulary = VOCABULARY;
    options->layers = 1;
    options->precision = (struct precision){22, 0};
    options->lora.find = find_weight;
    options->evaluation = true;
    options->batch = options->accumulate = options->steps = 1;
    options->warmup = 0;
    options->receipt = &claim->row;
}

static void give_all(struct machine *machine, const struct model *model, void *zeros, float *last)
{
    const struct backend *backend = machine->backend;

    for (uint32_t i = 0; i < model->frozen_count; i++) {
        const struct tensor *tensor = &model->tape->tensors[model->frozen[i]];
        const bool is_last = strcmp(tensor->name, "ln_f.bias") == 0;

        assert_int_equal(backend->bind(machine, model->frozen[i], is_last ? last : zeros, NULL),
                         STATUS_OK);
    }
    for (uint32_t i = 0; i < model->constant_count; i++) {
        assert_int_equal(
            backend->write(machine, model->constants[i].tensor, model->constants[i].bytes, NULL),
            STATUS_OK);
    }
    for (uint32_t i = 0; i < model->tape->state_count; i++) {
        assert_int_equal(backend->write(machine, model->tape->states[i].before, zeros, NULL),
                         STATUS_OK);
    }
}

/* How many conditions hold. */
static uint32_t held_of(const struct claim *claim)
{
    const struct machine_options machine_options = {.isa = ISA_SCALAR, .thread_count = 1};
    struct model_options options;
    struct machine *machine = NULL;
    struct model model;
    struct error error;
    int32_t held = -1;
    float *last = calloc(64, sizeof(*last));
    void *zeros = calloc(1 << 16, sizeof(float));

    error_init(&error);
    fill_options(&options, claim);
    last[5] = claim->weight;
    if (model_build(&model, &options, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(model.slice_count, (claim->row.count - 3 + RECEIPT_SLICE - 1) / RECEIPT_SLICE);
    assert_int_equal(backend_cpu.open(&machine, model.tape, &machine_options, &error), STATUS_OK);
    give_all(machine, &model, zeros, last);
    assert_int_equal(backend_cpu.step(machine, NULL, &error), STATUS_OK);
    assert_int_equal(backend_cpu.read(machine, model_find(&model, "held"), &held, &error),
                     STATUS_OK);
    backend_cpu.close(machine);
    model_release(&model);
    free(zeros);
    free(last);
    return (uint32_t)held;
}

/* ---- true ones ------------------------------------------------------------ */

static void test_what_the_sampler_chooses_holds_under_every_rule(void **state)
{
    static const struct {
        float temperature;
        uint32_t top_k;
        float top_p;
        uint32_t each; /* conditions of a position */
    } rules[] = {{0.0f, 0, 1.0f, 2},
                 {1.0f, 0, 1.0f, 2},
                 {0.5f, 5, 1.0f, 4},
                 {1.0f, 0, 0.5f, 4},
                 {2.0f, 1, 0.9f, 6},
                 {0.001f, VOCABULARY, 1.0f, 4},
                 {100.0f, VOCABULARY, 0x1p-149f, 6}};

    (void)state;
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct claim claim;
        const uint32_t answer = i == 4 ? ANSWER_MAX : 4; /* two slices */

        claim_truth(&claim, rules[i].temperature, rules[i].top_k, rules[i].top_p, answer);
        assert_int_equal(receipt_row_conditions(&claim.row), rules[i].each * answer);
        assert_int_equal(held_of(&claim), rules[i].each * answer);
    }
}

static void test_a_row_goes_to_a_multiple_of_16_and_zeros_stand_behind_it(void **state)
{
    struct claim claim;
    uint32_t *tokens;

    (void)state;
    claim_truth(&claim, 0.0f, 0, 1.0f, 14);
    claim.tokens[16] = 9;
    assert_int_equal(receipt_row_length(&claim.row), 32);
    tokens = receipt_row_tokens(&claim.row);
    assert_int_equal(tokens[16], 9);
    for (uint32_t i = 17; i < 32; i++) {
        assert_int_equal(tokens[i], 0);
    }
    free(tokens);
    claim.row.count = 16;
    assert_int_equal(receipt_row_length(&claim.row), 16);
}

/* ---- false ones ------------------------------------------------------------ */

static void test_a_token_that_was_not_chosen_misses_one_condition(void **state)
{
    struct claim claim;

    (void)state;
    claim_truth(&claim, 0.0f, 0, 1.0f, 4);
    claim.tokens[5] = 1; /* as large, and not the first */
    assert_int_equal(held_of(&claim), 7);
    claim_truth(&claim, 1.0f, 0, 1.0f, 4);
    claim.tokens[6] ^= 1;
    assert_int_equal(held_of(&claim), 7);
    claim_truth(&claim, 1.0f, 0, 1.0f, 4);
    claim.row.seed ^= UINT64_C(1) << 63;
    assert_true(held_of(&claim) < 8);
}

static void test_a_threshold_is_one_number_alone(void **state)
{
    /* And how many of its conditions and of the choice's it misses: above all probabilities nothing
     * may be chosen. */
    static const struct {
        float tau;
        uint32_t missed;
    } wrong[] = {{NAN, 2},  {INFINITY, 2}, {0x1.000002p-7f, 2}, {0x1.fffffep-8f, 1},
                 {0.0f, 1}, {-0.0f, 1},    {-INFINITY, 1},      {-1.0f, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        for (int by_p = 0; by_p < 2; by_p++) {
            struct claim claim;

            claim_truth(&claim, 1.0f, 5, 0.5f, 4);
            (by_p ? claim.thresholds_p : claim.thresholds_k)[2] = wrong[i].tau;
            assert_true(held_of(&claim) <= receipt_row_conditions(&claim.row) - wrong[i].missed);
        }
    }
}

static void test_logits_that_are_no_numbers_hold_no_choice(void **state)
{
    struct claim claim;

    (void)state;
    for (int rule = 0; rule < 2; rule++) {
        claim_truth(&claim, (float)rule, 0, 1.0f, 4);
        memset(claim.tokens, 0, sizeof(claim.tokens)); /* the first NaN */
        claim.weight = NAN;
        assert_int_equal(held_of(&claim), 4); /* that it is the first one, and not that it is one */
    }
}

/* ---- refusals --------------------------------------------------------------- */

static void refuse(const struct claim *claim, void (*change)(struct model_options *),
                   const char *words)
{
    struct model_options options;
    struct model model;
    struct error error;

    error_init(&error);
    fill_options(&options, claim);
    if (change != NULL) {
        change(&options);
    }
    assert_int_not_equal(model_build(&model, &options, &error), STATUS_OK);
    if (strstr(error.text, words) == NULL) {
        fail_msg("'%s' and not '%s'", error.text, words);
    }
}

static void train(struct model_options *options)
{
    options->evaluation = false;
}

static void lengthen(struct model_options *options)
{
    options->length += 16;
}

static void test_rows_that_make_no_sense_are_refused_by_name(void **state)
{
    static const float temperatures[] = {-1.0f, 0x1p-149f, 0.00099f, 100.01f, INFINITY, NAN};
    static const float shares[] = {0.0f, -0.5f, NAN};
    struct claim claim;

    (void)state;
    claim_truth(&claim, 1.0f, 5, 0.5f, 4);
    refuse(&claim, train, "whose weights lie in files");
    refuse(&claim, lengthen, "whose first 3 are the prompt");
    for (size_t i = 0; i < sizeof(temperatures) / sizeof(temperatures[0]); i++) {
        claim_truth(&claim, 1.0f, 0, 1.0f, 4);
        claim.row.temperature = temperatures[i];
        refuse(&claim, NULL, "a temperature of");
    }
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        claim_truth(&claim, 1.0f, 0, 0.5f, 4);
        claim.row.top_p = shares[i];
        refuse(&claim, NULL, "top-p of");
    }
    claim_truth(&claim, 1.0f, 5, 0.5f, 4);
    claim.row.prompt = 0;
    refuse(&claim, NULL, "whose first 0 are the prompt");
    claim.row.prompt = claim.row.count;
    refuse(&claim, NULL, "whose first 7 are the prompt");
    claim_truth(&claim, 1.0f, VOCABULARY + 1, 1.0f, 4);
    refuse(&claim, NULL, "129 tokens to choose among");
    claim_truth(&claim, 1.0f, 0, 1.0f, 4);
    claim.tokens[0] = VOCABULARY;
    refuse(&claim, NULL, "token 0 of the row is 128");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_sampler_chooses_holds_under_every_rule),
        cmocka_unit_test(test_a_row_goes_to_a_multiple_of_16_and_zeros_stand_behind_it),
        cmocka_unit_test(test_a_token_that_was_not_chosen_misses_one_condition),
        cmocka_unit_test(test_a_threshold_is_one_number_alone),
        cmocka_unit_test(test_logits_that_are_no_numbers_hold_no_choice),
        cmocka_unit_test(test_rows_that_make_no_sense_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
