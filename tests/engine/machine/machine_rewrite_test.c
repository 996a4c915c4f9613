/*
 * Goal: a GPU runs attention in slices where its rows are too long for its fusions, or where memory
 * counts more than time; bits stay, and a step's memory grows with its length, not its square.
 *
 * Method: small language models on the emulated device, which wants small slices, against the
 * processor that has all heads at once: states, losses and roots after two steps. The plan's
 * bytes of GPT-2 124M on both machines against the table of docs/OPERATIONS.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/machine/machine.h"
#include "engine/machine/machine_rewrite.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/device/memory_plan.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

#define LENGTH 24
#define HEADS  4

#define OTHER_SETS 136 /* percent of the table that a set without AVX plans at most */

/* ---- the emulated device -------------------------------------------------------- */

static enum status open_on_fake(struct machine **machine, const struct tape *tape,
                                const struct machine_options *options, struct error *error)
{
    struct cuda_config config = {.calls = fake_device_calls()};

    return machine_cuda_open(machine, tape, options, &config, error);
}

/* Tensors alone: beside those of a small model, its table of operations is large. */
static enum status size_of_tensors(uint64_t *size, const struct tape *tape,
                                   const struct machine_options *options, struct error *error)
{
    struct machine_options cpu = *options;

    cpu.backend = NULL;
    cpu.isa = ISA_SCALAR;
    return backend_cpu.size(size, tape, &cpu, error);
}

/* So many heads at a time, of rows of more than so many elements. */
static struct backend fake_backend(uint64_t heads, uint64_t columns)
{
    struct backend fake = backend_cuda;

    fake.open = open_on_fake;
    fake.size = size_of_tensors;
    fake.slices = (struct chain_limits){.room = heads * LENGTH * LENGTH * sizeof(float), columns};
    return fake;
}

static void open_model(struct small_model *small, int turn)
{
    struct model_options options;

    small_model_options(&options, turn % 2 == 0 ? MODEL_GPT2 : MODEL_LLAMA);
    options.dropout = 0.0;
    options.length = options.positions = LENGTH;
    options.layers = 1;
    options.heads = HEADS;
    options.accumulate = turn == 0 ? 1 : 4;
    options.group = turn == 0 ? 1 : 2;
    options.equilibrate = turn % 3 == 0;
    small_model_open(small, &options);
}

static bool makes_scores(const struct op *op)
{
    return op->kind == OP_CONTRACT && op->attributes[CONTRACT_CAUSAL] != 0;
}

/* The most elements that a product of attention makes at once. */
static uint64_t scores_of(const struct tape *tape)
{
    uint64_t most = 0;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        const uint64_t count = tape->tensors[tape->ops[at].outputs[0]].count;

        most = makes_scores(&tape->ops[at]) && count > most ? count : most;
    }
    return most;
}

static void test_a_device_runs_attention_in_slices(void **state)
{
    const struct fake_device_switches sound = {0};
    (void)state;
    fake_device_set(&sound);
    for (int turn = 0; turn < 2; turn++) {
        const struct backend fake = fake_backend(turn == 0 ? HEADS : 2, LENGTH - 1);
        const struct machine_options options = {.backend = &fake, .recompute = turn == 0};
        const struct machine_options whole = {.isa = isa_best(), .thread_count = 2};
        struct machine *machines[2] = {NULL, NULL};
        struct small_model small;
        struct start start;
        struct error error;

        error_init(&error);
        open_model(&small, turn);
        start_model(&start, &small);
        start_must(backend_cpu.open(&machines[0], start.tape, &whole, &error), &error);
        start_must(machine_open(&machines[1], start.tape, &options, &error), &error);
        assert_non_null(machines[1]->rewrite);
        assert_true(scores_of(machines[1]->rewrite) > 0);
        assert_true(scores_of(machines[1]->rewrite) * sizeof(float) <= fake.slices.room);
        assert_true(scores_of(start.tape) * sizeof(float) > fake.slices.room);
        start_steps(machines[0], &start, 2);
        start_steps(machines[1], &start, 2);
        start_compare(machines[0], machines[1], "attention in slices");
        machines[0]->backend->close(machines[0]);
        machines[1]->backend->close(machines[1]);
        start_release(&start);
        small_model_close(&small);
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

/* ---- where ------------------------------------------------------------------------ */

static bool is_rewritten(const struct tape *tape, const struct machine_options *options)
{
    struct tape *rewrite = NULL;
    struct error error;

    error_init(&error);
    start_must(machine_rewrite(&rewrite, tape, options, &error), &error);
    const bool is = rewrite != NULL;

    tape_free(rewrite);
    return is;
}

static void test_rows_that_fit_a_chip_stay_whole(void **state)
{
    const struct backend fits = fake_backend(HEADS, LENGTH);
    const struct backend too_long = fake_backend(HEADS, LENGTH - 1);
    struct machine_options options = {.backend = &fits};
    struct small_model small;

    (void)state;
    open_model(&small, 0);
    assert_false(is_rewritten(small.model.tape, &options));
    options.backend = &too_long;
    assert_true(is_rewritten(small.model.tape, &options));
    options.trace = true; /* it shows every tensor */
    assert_false(is_rewritten(small.model.tape, &options));
    options = (struct machine_options){.backend = &fits, .device_memory = 1};
    assert_true(is_rewritten(small.model.tape, &options));
    options = (struct machine_options){.backend = &fits, .recompute = true};
    assert_true(is_rewritten(small.model.tape, &options));
    small_model_close(&small);
}

/* ---- memory ------------------------------------------------------------------------ */

static char *read_table(void)
{
    FILE *file = fopen("docs/OPERATIONS.md", "rb");
    char *text = calloc(1, 1 << 18);

    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 18) - 1, file) > 0);
    assert_int_equal(fclose(file), 0);
    return text;
}

/* What the table says of a length, in MiB. */
static void read_row(struct memory_plan *cpu, struct memory_plan *gpu, const char *table,
                     uint32_t length)
{
    uint64_t *const columns[] = {&cpu->whole, &cpu->kept, &cpu->again, &gpu->whole,
                                 &gpu->chip,  &gpu->kept, &gpu->again};
    char first[32];
    const char *at;

    (void)snprintf(first, sizeof(first), length < 1000 ? "\n| %u |" : "\n| %u,%03u |",
                   length < 1000 ? length : length / 1000, length % 1000);
    at = strstr(table, first);
    assert_non_null(at);
    at += strlen(first);
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        *columns[i] = 0;
        for (; *at != '|'; at++) {
            *columns[i] =
                *at >= '0' && *at <= '9' ? *columns[i] * 10 + (uint64_t)(*at - '0') : *columns[i];
        }
        at++;
    }
}

static bool is_near(uint64_t found, uint64_t told, uint64_t percent)
{
    return found * 100 <= told * percent && told * 100 <= found * percent;
}

static bool is_plan(const struct memory_plan *found, const struct memory_plan *told,
                    uint64_t percent)
{
    return is_near(found->whole, told->whole, percent) &&
           is_near(found->chip, told->chip, percent) && is_near(found->kept, told->kept, percent) &&
           is_near(found->again, told->again, percent);
}

/* The table is of the sets of AVX; what others plan is near it. */
static bool is_true_of(enum isa isa, const struct tape *tape, uint32_t length,
                       const struct memory_plan *cpu, const struct memory_plan *gpu)
{
    const struct memory_plan own = memory_plan_of(tape, &backend_cpu, isa);
    const struct memory_plan device = memory_plan_of(tape, &backend_cuda, isa);
    char row[MEMORY_PLAN_TEXT];

    memory_plan_text(row, length, &own, &device);
    print_message("%s: %s\n", isa_name(isa), row);
    return is_plan(&own, cpu, isa == ISA_AVX2 || isa == ISA_AVX512 ? 100 : OTHER_SETS) &&
           is_plan(&device, gpu, 100);
}

static void test_the_table_says_what_124m_takes(void **state)
{
    char *table = read_table();
    uint64_t shorter[2] = {0, 0};
    bool same = true;

    (void)state;
    for (int i = 0; i < MEMORY_PLAN_LENGTHS; i++) {
        const uint32_t length = memory_plan_lengths[i];
        struct memory_plan cpu = {0};
        struct memory_plan gpu = {0};
        struct model model;

        read_row(&cpu, &gpu, table, length);
        memory_plan_model(&model, 1, length);
        for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
            if (isa_available((enum isa)isa)) {
                same = is_true_of((enum isa)isa, model.tape, length, &cpu, &gpu) && same;
            }
        }
        /* On chip no square is left, which twice the length would have four times. */
        assert_true(i < 2 || gpu.chip - shorter[0] < (shorter[0] - shorter[1]) * 5 / 2);
        shorter[1] = shorter[0];
        shorter[0] = gpu.chip;
        model_release(&model);
    }
    free(table);
    assert_true(same); /* else the rows above are those of docs/OPERATIONS.md */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_device_runs_attention_in_slices),
        cmocka_unit_test(test_rows_that_fit_a_chip_stay_whole),
        cmocka_unit_test(test_the_table_says_what_124m_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
