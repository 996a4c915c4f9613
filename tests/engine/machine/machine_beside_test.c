/*
 * machine_beside_test.c - parts that lie side by side are not copied, and no bit changes.
 *
 * Goal: a machine whose states lie beside each other, and whose splits lie inside of what they
 * split, computes what one that keeps everything apart computes.
 * Method: the weights of experts are joined, and their gradients taken apart, in a small mixture;
 * every instruction set, in fast mode and in trace mode, gives one digest. And a tape that reads
 * what was joined after the states have got new values, which may then not overwrite it.
 */
#include <string.h>

#include "engine/machine/machine_beside.h"
#include "engine/models/layouts.h"
#include "engine/tape/builder_core.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

static void test_experts_have_the_same_bits_in_every_mode(void **state)
{
    struct model_options options;
    struct small_model small;
    char first[SMALL_DIGEST_TEXT] = "";

    (void)state;
    small_model_options(&options, MODEL_LLAMA);
    options.layout = layout_find("mixtral");
    options.experts = 5;
    options.experts_used = 2;
    small_model_open(&small, &options);
    for (int i = 0; i < 4 * ISA_COUNT; i++) {
        char digest[SMALL_DIGEST_TEXT];
        struct machine *machine;

        if (!isa_available((enum isa)(i / 4))) {
            continue;
        }
        machine = small_machine_open(&small, (enum isa)(i / 4), 1 + i / 2 % 2, i % 2 == 1);
        small_machine_steps(machine, 3);
        small_machine_digest(digest, machine);
        if (first[0] == '\0') {
            memcpy(first, digest, sizeof(first));
        }
        assert_string_equal(digest, first);
        backend_cpu.close(machine);
    }
    small_model_close(&small);
}

#define COUNT 32 /* elements of a state: whole lines */

/* Two states are joined, get new values, and what was joined is read again. The last of it is
 * split, and one part is read. */
static struct tape *late_reader(void)
{
    static const uint64_t dims[1] = {COUNT};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t states[2];
    uint32_t parts[2];
    struct output_shape whole = {DTYPE_F32, 1, {2 * COUNT}};
    struct op concat;
    struct tape *tape;
    struct error error;

    error_init(&error);
    for (int i = 0; i < 2; i++) {
        states[i] = build_tensor(builder, i == 0 ? "a" : "b", DTYPE_F32, ROLE_STATE, 1, dims);
    }
    concat = op_begin(OP_CONCAT, 2, states);
    op_attribute(&concat, 1);
    op_attribute(&concat, COUNT);
    op_attribute(&concat, COUNT);
    concat.output_count = 1;
    build_op(builder, &concat, &whole);
    for (int i = 0; i < 2; i++) {
        build_after(builder, states[i], build_scale(builder, states[i], 3.0f));
    }
    build_split(builder, parts, 2, build_add(builder, concat.outputs[0], concat.outputs[0], 1));
    build_output(builder, "out", build_mul(builder, parts[0], parts[1], 1));
    assert_int_equal(builder_finish(&tape, builder, &error), STATUS_OK);
    builder_free(builder);
    return tape;
}

static void test_what_was_joined_outlives_new_values(void **state)
{
    struct tape *tape = late_reader();
    struct random_machine machines[2];
    struct beside beside;
    struct error error;
    const char *name = "";
    uint32_t held = 0;
    uint32_t joins = 0;

    (void)state;
    error_init(&error);
    assert_int_equal(beside_find(&beside, tape, NULL, &error), STATUS_OK);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        held += beside.holders[id] != id;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        joins += beside.joins[at];
    }
    assert_int_equal(held, 2);
    assert_int_equal(joins, 1);
    beside_release(&beside);
    for (int i = 0; i < 2; i++) {
        struct machine_options options = {.isa = ISA_SCALAR, .thread_count = 1, .trace = i == 1};

        options.isa = isa_best();
        random_machine_open(&machines[i], tape, &options, 7);
        random_machine_step(&machines[i], NULL);
        random_machine_step(&machines[i], NULL);
    }
    assert_true(random_machine_equal(&name, &machines[0], &machines[1]));
    random_machine_close(&machines[0]);
    random_machine_close(&machines[1]);
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_experts_have_the_same_bits_in_every_mode),
        cmocka_unit_test(test_what_was_joined_outlives_new_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
