/*
 * lists_test.c - the squares of a few tensors, added up at once (lists.c), have the bits of the
 * rules wherever their tensors live that long, and are left alone elsewhere.
 *
 * Goal: a list is made where the last of its sums is added, so each tensor must be there until
 * then. It is, where a state is made of it later; no other reader promises as much.
 * Method: two tensors, the first of which is followed by the limbs of a row that no list takes, and
 * they would lie where it lay; each updated later, before, or never.
 */
#include <stdio.h>

#include "engine/cuda/kernels/args.h"
#include "engine/cuda/launch/launch.h"
#include "engine/cuda/machine/machine.h"
#include "engine/tape/builder_core.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/device/fused_case.h"
#include "tests/support/test.h"

static const struct fake_device_switches sound;

/* When a state is made of a tensor. */
enum update { LATER, BEFORE, UNUSED, UPDATES };

#define TENSORS 3

/* Squares of rows; of long rows the sums are made apart, and their limbs need room. */
static const uint64_t sizes[TENSORS][2] = {{9, 300}, {1, 65540}, {7, 40}};

static void update(struct builder *builder, uint32_t i, uint32_t x)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "state%u", i);
    const uint32_t state = build_tensor(builder, name, DTYPE_F32, ROLE_STATE, 2, sizes[i]);

    build_after(builder, state, build_add(builder, state, x, 1));
}

static struct tape *squares_tape(enum update first, bool long_row)
{
    struct builder *builder = builder_new((struct precision){14, 128});
    uint32_t x[TENSORS];
    uint32_t total = 0;

    for (uint32_t i = 0; i < TENSORS; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "x%u", i);
        x[i] = build_scale(builder, build_tensor(builder, name, DTYPE_F32, ROLE_INPUT, 2, sizes[i]),
                           0.5f);
    }
    if (first == BEFORE) {
        update(builder, 0, x[0]);
    }
    for (uint32_t i = 0; i < TENSORS; i++) {
        if (i != 1 || long_row) {
            const uint32_t square = build_square_sum(builder, x[i]);

            total = i == 0 ? square : build_add(builder, total, square, 1);
        }
    }
    build_output(builder, "norm", total);
    if (first == UNUSED) {
        (void)build_scale(builder, x[0], 2.0f);
    }
    for (uint32_t i = 0; i < TENSORS; i++) {
        if (i > 0 || first == LATER) {
            update(builder, i, x[i]);
        }
    }
    return fused_finish(builder);
}

static void test_terms_live_until_a_state_reads_them(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2 * UPDATES; turn++) {
        const enum update first = (enum update)(turn / 2);
        struct tape *tape = squares_tape(first, turn % 2 == 0);
        struct machine *rules = fused_rules(tape);
        struct machine *fused;
        struct error error;
        char what[64];

        error_init(&error);
        fake_device_set(&sound);
        fused = fused_open(tape, fused_disabled_but(VARIANT_LISTS));
        fused_give(rules, tape, SORT_PLAIN);
        fused_give(fused, tape, SORT_PLAIN);
        for (int step = 0; step < 2; step++) {
            assert_int_equal(rules->backend->step(rules, NULL, &error), STATUS_OK);
            assert_int_equal(fused->backend->step(fused, NULL, &error), STATUS_OK);
        }
        (void)snprintf(what, sizeof(what), "update %d, long row %d", (int)first, turn % 2 == 0);
        fused_compare(rules, fused, what);
        /* Where the first one does not last, one or two are left: two are a list. */
        assert_int_equal(fake_device_launches(KERNEL_TOTAL), first == LATER ? 2 : 0);
        rules->backend->close(rules);
        fused->backend->close(fused);
        tape_free(tape);
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms_live_until_a_state_reads_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
