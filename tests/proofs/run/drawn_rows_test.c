/*
 * Goal: the rows that are said to be drawn are all that a step reads of its data.
 * Method: two machines run the same job, one on data of which every byte that is in no such row is
 * another one: their states stay the same. A byte of a row that is changed changes them. Windows of
 * streams, packed rows, samples. Tapes in
 * which something else reads the data, or in which no counter draws.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/state_root.h"
#include "proofs/run/drawn_rows.h"
#include "tests/support/proofs/drawn_job.h"
#include "tests/support/test.h"

enum {
    STEPS = 6,
    HELD_OUT_EVERY = 2,
};

/* Which bytes of the data are in rows. */
struct seen {
    uint8_t *bytes[DRAWN_JOB_DATA];
    uint64_t rows;
};

static enum status see(void *context, const struct drawn_row *row, struct error *error)
{
    struct seen *seen = context;

    (void)error;
    memset(seen->bytes[row->place] + row->first, 1, row->size);
    seen->rows++;
    return STATUS_OK;
}

static void open_at_start(struct run *run, const struct drawn_job *drawn)
{
    const struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    struct error error;

    error_init(&error);
    assert_int_equal(
        run_open_compared(run, drawn->job, drawn->paths, drawn->count, NULL, &options, &error),
        STATUS_OK);
    small_run_begin(run);
}

static void options_of(struct small_job_options *options, enum model_kind kind)
{
    small_job_of_kind(options, kind);
    options->steps = STEPS;
    options->model.accumulate = 3;
    options->model.data_count = kind == MODEL_MLP ? 600 : 20000;
    options->model.held_out.batches = 2;
    options->model.held_out.every = HELD_OUT_EVERY;
    options->model.masked = kind == MODEL_LLAMA;
}

static void seen_new(struct seen *seen, const struct drawn_job *drawn)
{
    memset(seen, 0, sizeof(*seen));
    for (uint32_t i = 0; i < drawn->count; i++) {
        seen->bytes[i] = calloc(drawn->sizes[i], 1);
    }
}

static void seen_release(struct seen *seen)
{
    for (uint32_t i = 0; i < DRAWN_JOB_DATA; i++) {
        free(seen->bytes[i]);
    }
}

/* Binds a copy of the data in which all that is in no row (of = 0), or in one (1), is another. */
static void bind_changed(uint8_t **changed, struct run *run, const struct drawn_job *drawn,
                         const struct seen *seen, uint8_t of)
{
    const struct tape *tape = drawn->job->tape;
    struct error error;
    uint32_t at = 0;

    error_init(&error);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role != ROLE_DATA) {
            continue;
        }
        if (changed[at] == NULL) {
            fail();
            return;
        }
        for (uint64_t i = 0; i < drawn->sizes[at]; i++) {
            changed[at][i] =
                drawn->bytes[at][i] ^ (uint8_t)((seen->bytes[at][i] != 0) == of ? 3 : 0);
        }
        assert_int_equal(run->machine->backend->bind(run->machine, id, changed[at], &error),
                         STATUS_OK);
        at++;
    }
}

static struct digest root_after_step(struct run *run)
{
    struct digest root;
    struct error error;

    error_init(&error);
    small_run_step(run);
    assert_int_equal(state_root_of(&root, run->machine, &error), STATUS_OK);
    return root;
}

/* Step by step, on a machine that goes on: what is said before the step is what it reads. */
static void hold_to_machine(const struct small_job_options *options, uint64_t rows_wanted)
{
    struct drawn_job drawn;
    struct drawn_rows *rows = NULL;
    struct run run;
    struct run other;
    uint8_t *changed[DRAWN_JOB_DATA] = {NULL};
    struct error error;

    error_init(&error);
    drawn_job_new(&drawn, options);
    open_at_start(&run, &drawn);
    open_at_start(&other, &drawn);
    assert_int_equal(drawn_rows_open(&rows, drawn.job->tape, &error), STATUS_OK);
    for (uint32_t i = 0; i < drawn.count; i++) {
        assert_true(drawn_rows_suffice(rows, i));
        changed[i] = malloc(drawn.sizes[i]);
    }
    for (int step = 0; step < STEPS; step++) {
        struct seen seen;
        const struct drawn_rows_visitor visitor = {see, &seen};
        struct digest wanted;
        struct digest found;

        seen_new(&seen, &drawn);
        assert_int_equal(drawn_rows_visit(rows, run.machine, 0, &visitor, &error), STATUS_OK);
        assert_int_equal(seen.rows, rows_wanted);
        wanted = root_after_step(&run);
        bind_changed(changed, &other, &drawn, &seen, step == STEPS - 1);
        found = root_after_step(&other);
        if (step < STEPS - 1) {
            assert_memory_equal(&found, &wanted, sizeof(found));
        } else {
            assert_memory_not_equal(&found, &wanted, sizeof(found));
        }
        seen_release(&seen);
    }
    for (uint32_t i = 0; i < drawn.count; i++) {
        free(changed[i]);
    }
    drawn_rows_close(rows);
    run_close(&run);
    run_close(&other);
    drawn_job_release(&drawn);
}

/* Micro-batches and held-out batches, of data and (Llama) mask, of samples and labels. */
static void test_nothing_but_the_rows_is_read(void **state)
{
    struct small_job_options options;

    (void)state;
    options_of(&options, MODEL_GPT2);
    hold_to_machine(&options, 3 * 2 + 2 * 2);
    options_of(&options, MODEL_LLAMA);
    hold_to_machine(&options, 2 * 3 * 2 + 2 * 2);
    options_of(&options, MODEL_MLP);
    hold_to_machine(&options, 2 * (3 * 4 + 2 * 4));
}

/* Tokens, targets, mask and reach of each row; behind the last held-out row none. */
static void test_nothing_but_the_packed_rows_is_read(void **state)
{
    struct small_job_options options;

    (void)state;
    options_of(&options, MODEL_GPT2);
    options.model.packed = true;
    options.model.data_count = 600;
    hold_to_machine(&options, 4 * (3 * 2 + 2 * 2));
    options.model.data_count = 7;
    options.model.held_out.batches = 4;
    hold_to_machine(&options, 4 * (3 * 2 + 7));
}

/* What comes in some steps is known now. */
static void test_rows_of_later_steps_are_the_same_seen_from_before(void **state)
{
    struct small_job_options options;
    struct drawn_job drawn;
    struct drawn_rows *rows = NULL;
    struct run run;
    struct seen before[STEPS];
    struct error error;

    (void)state;
    error_init(&error);
    options_of(&options, MODEL_GPT2);
    drawn_job_new(&drawn, &options);
    open_at_start(&run, &drawn);
    assert_int_equal(drawn_rows_open(&rows, drawn.job->tape, &error), STATUS_OK);
    for (uint64_t ahead = 0; ahead < STEPS; ahead++) {
        const struct drawn_rows_visitor visitor = {see, &before[ahead]};

        seen_new(&before[ahead], &drawn);
        assert_int_equal(drawn_rows_visit(rows, run.machine, ahead, &visitor, &error), STATUS_OK);
    }
    for (uint64_t step = 0; step < STEPS; step++) {
        struct seen now;
        const struct drawn_rows_visitor visitor = {see, &now};

        seen_new(&now, &drawn);
        assert_int_equal(drawn_rows_visit(rows, run.machine, 0, &visitor, &error), STATUS_OK);
        for (uint32_t i = 0; i < drawn.count; i++) {
            assert_memory_equal(now.bytes[i], before[step].bytes[i], drawn.sizes[i]);
        }
        assert_int_equal(memcmp(now.bytes[0], before[0].bytes[0], drawn.sizes[0]) == 0, step == 0);
        seen_release(&now);
        small_run_step(&run);
    }
    for (int i = 0; i < STEPS; i++) {
        seen_release(&before[i]);
    }
    drawn_rows_close(rows);
    run_close(&run);
    drawn_job_release(&drawn);
}

static bool suffice(const struct tape *tape, uint32_t place)
{
    struct drawn_rows *rows = NULL;
    struct error error;
    bool found;

    error_init(&error);
    assert_int_equal(drawn_rows_open(&rows, tape, &error), STATUS_OK);
    found = drawn_rows_suffice(rows, place);
    drawn_rows_close(rows);
    return found;
}

static struct op *find_op(const struct tape *tape, enum op_kind kind)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (tape->ops[at].kind == kind) {
            return &tape->ops[at];
        }
    }
    fail();
    return NULL;
}

static void test_data_that_other_operations_read_is_needed_whole(void **state)
{
    struct small_job_options options;
    struct drawn_job drawn;
    struct tape *tape;
    struct op *op;
    uint32_t data;
    uint32_t before;

    (void)state;
    options_of(&options, MODEL_GPT2);
    drawn_job_new(&drawn, &options);
    tape = drawn.job->tape;
    data = find_op(tape, OP_BATCH_TOKENS)->inputs[0];
    assert_true(suffice(tape, 0));
    assert_true(suffice(tape, 1));

    op = find_op(tape, OP_GATHER); /* as a frozen table */
    before = op->inputs[0];
    op->inputs[0] = data;
    assert_false(suffice(tape, 0));
    assert_true(suffice(tape, 1));
    op->inputs[0] = before;

    op = find_op(tape, OP_BATCH_TOKENS); /* drawn by what is no counter */
    before = op->inputs[1];
    op->inputs[1] = find_op(tape, OP_BATCH_TOKENS)->outputs[0];
    assert_false(suffice(tape, 0));
    op->inputs[1] = before;

    op = tape->ops; /* by a counter that the step does not carry on */
    while (op->kind != OP_STEP_NEXT || op->inputs[0] != find_op(tape, OP_BATCH_TOKENS)->inputs[1]) {
        op++;
    }
    before = op->inputs[0];
    op->inputs[0] = op->outputs[0];
    assert_false(suffice(tape, 0));
    assert_true(suffice(tape, 1));
    op->inputs[0] = before;
    assert_true(suffice(tape, 0));
    drawn_job_release(&drawn);
}

static void test_pieces_of_a_step_are_bounded(void **state)
{
    struct small_job_options options;
    struct drawn_job drawn;
    struct drawn_rows *rows = NULL;
    struct error error;

    (void)state;
    error_init(&error);
    options_of(&options, MODEL_GPT2); /* rows of 13 bytes */
    drawn_job_new(&drawn, &options);
    assert_int_equal(drawn_rows_open(&rows, drawn.job->tape, &error), STATUS_OK);
    assert_int_equal(drawn_rows_pieces(rows, 0, 8192), 6 * 2);
    assert_int_equal(drawn_rows_pieces(rows, 0, 12), 6 * 2);
    assert_int_equal(drawn_rows_pieces(rows, 0, 11), 6 * 3);
    assert_int_equal(drawn_rows_pieces(rows, 0, 1), 6 * 13);
    assert_int_equal(drawn_rows_pieces(rows, 1, 8192), 4 * 2);
    drawn_rows_close(rows);
    drawn_job_release(&drawn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_but_the_rows_is_read),
        cmocka_unit_test(test_nothing_but_the_packed_rows_is_read),
        cmocka_unit_test(test_rows_of_later_steps_are_the_same_seen_from_before),
        cmocka_unit_test(test_data_that_other_operations_read_is_needed_whole),
        cmocka_unit_test(test_pieces_of_a_step_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
