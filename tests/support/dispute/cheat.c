/* cheat.c - see cheat.h. */
#include "tests/support/dispute/cheat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/state_root.h"
#include "tests/support/test.h"

static void insist(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fprintf(stderr, "cheat: %s\n", error->text);
        exit(1);
    }
}

const char *cheat_name(enum cheat cheat)
{
    static const char *const names[] = {"honest", "ulp",  "stale",   "skip",
                                        "copy",   "seed", "gradient"};

    return names[cheat];
}

/* ---- states --------------------------------------------------------------- */

static void *read_state(struct run *run, uint32_t state)
{
    uint32_t id = run->job->tape->states[state].before;
    void *bytes = malloc(commit_tensor_size(&run->job->tape->tensors[id]));
    struct error error;

    error_init(&error);
    insist(run->machine->backend->read(run->machine, id, bytes, &error), &error);
    return bytes;
}

/* Takes bytes. */
static void write_state(struct run *run, uint32_t state, void *bytes)
{
    struct error error;

    error_init(&error);
    insist(run->machine->backend->write(run->machine, run->job->tape->states[state].before, bytes,
                                        &error),
           &error);
    free(bytes);
}

static bool is_float(const struct run *run, uint32_t state)
{
    const struct tape *tape = run->job->tape;

    return tape->tensors[tape->states[state].before].dtype == DTYPE_F32;
}

/* The state that counts the steps: the only one that holds no floats. */
static uint32_t step_state(const struct run *run)
{
    uint32_t state = 0;

    while (is_float(run, state)) {
        state++;
    }
    return state;
}

static void set_step(struct run *run, uint64_t step)
{
    uint32_t state = step_state(run);
    uint8_t *bytes = read_state(run, state);

    for (int i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(step >> (8 * i));
    }
    write_state(run, state, bytes);
}

static void change_one_ulp(struct run *run, uint64_t *random)
{
    const struct tape *tape = run->job->tape;
    uint32_t state = (uint32_t)test_random_below(random, tape->state_count);
    uint32_t *bits;

    while (!is_float(run, state)) {
        state = (state + 1) % tape->state_count;
    }
    bits = read_state(run, state);
    bits[test_random_below(random, tape->tensors[tape->states[state].before].count)] ^= 1;
    write_state(run, state, bits);
}

/* Other weights of the same shapes: those of a training that went on from scaled ones. */
static void take_other_weights(struct run *run, float factor)
{
    const struct tape *tape = run->job->tape;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (is_float(run, i)) {
            float *values = read_state(run, i);

            for (uint64_t k = 0; k < tape->tensors[tape->states[i].before].count; k++) {
                values[k] *= factor;
            }
            write_state(run, i, values);
        }
    }
}

/* ---- a wrong gradient ------------------------------------------------------ */

struct wrong_gradient {
    const struct tape *tape;
    uint32_t tensor;
    uint64_t element;
    bool made;
};

/* In trace mode an operation's output is where the next ones read it. */
static enum status spoil(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                         uint64_t size, struct error *error)
{
    struct wrong_gradient *wrong = context;

    (void)error;
    if (wrong->tape->ops[maker.op].outputs[output] == wrong->tensor) {
        insist(4 * wrong->element < size ? STATUS_OK : STATUS_USAGE, error);
        ((uint32_t *)(uintptr_t)bytes)[wrong->element] ^= 1;
        wrong->made = true;
    }
    return STATUS_OK;
}

/* The gradient that some update takes, and an element of it. */
static void choose_gradient(struct wrong_gradient *wrong, const struct tape *tape, uint64_t *random)
{
    uint32_t op = (uint32_t)test_random_below(random, tape->op_count);

    while (tape->ops[op].kind != OP_ADAMW && tape->ops[op].kind != OP_SGD) {
        op = (op + 1) % tape->op_count;
    }
    *wrong = (struct wrong_gradient){.tape = tape, .tensor = tape->ops[op].inputs[1]};
    wrong->element = test_random_below(random, tape->tensors[wrong->tensor].count);
}

static void trace_from_now(struct run *run)
{
    struct machine_options traced = run->options;
    struct error error;

    error_init(&error);
    traced.trace = true;
    insist(run_reopen(run, &traced, &error), &error);
}

static struct digest root_of(struct run *run)
{
    struct digest root;
    struct error error;

    error_init(&error);
    insist(state_root_of(&root, run->machine, &error), &error);
    return root;
}

/* Until it shows: what is lost in the rounding of the update is no lie. */
static void step_with_wrong_gradient(struct run *run, uint64_t *random)
{
    const struct tape *tape = run->job->tape;
    void **before = calloc(tape->state_count, sizeof(*before));
    struct wrong_gradient wrong;
    const struct observer observer = {.made = spoil, .context = &wrong};
    struct digest honest;
    struct digest root;
    struct error error;

    error_init(&error);
    trace_from_now(run);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        before[i] = read_state(run, i);
    }
    small_run_step(run);
    honest = root_of(run);
    do {
        for (uint32_t i = 0; i < tape->state_count; i++) {
            insist(run->machine->backend->write(run->machine, tape->states[i].before, before[i],
                                                &error),
                   &error);
        }
        choose_gradient(&wrong, tape, random);
        insist(run->machine->backend->step(run->machine, &observer, &error), &error);
        root = root_of(run);
    } while (!wrong.made || digest_equal(&root, &honest));
    for (uint32_t i = 0; i < tape->state_count; i++) {
        free(before[i]);
    }
    free(before);
}

/* ---- steps ---------------------------------------------------------------- */

static void make_step(struct run *run, enum cheat cheat, uint64_t step, uint64_t *random)
{
    switch (cheat) {
    case CHEAT_STALE_DATA:
        set_step(run, step + 7);
        small_run_step(run);
        set_step(run, step + 1);
        return;
    case CHEAT_SKIP:
        set_step(run, step + 1);
        return;
    case CHEAT_ULP:
        small_run_step(run);
        change_one_ulp(run, random);
        return;
    case CHEAT_COPY:
        small_run_step(run);
        take_other_weights(run, 0.75f);
        return;
    case CHEAT_SEED:
        take_other_weights(run, 1.5f);
        small_run_step(run);
        return;
    case CHEAT_GRADIENT:
        step_with_wrong_gradient(run, random);
        return;
    case CHEAT_NOT:
    case CHEAT_KINDS:
        small_run_step(run);
        return;
    }
}

static void record(struct bundle *bundle, struct run *run, uint64_t step, uint64_t end)
{
    struct bundle_step entry = {.step = step, .microjoules = BUNDLE_ENERGY_UNKNOWN};
    struct error error;

    error_init(&error);
    insist(run_loss(&entry.loss_bits, run, &error), &error);
    insist(state_root_of(&entry.root, run->machine, &error), &error);
    insist(bundle_record(bundle, &entry, &error), &error);
    if ((step + 1) % bundle_job(bundle)->segment_length == 0 || step + 1 == end) {
        insist(bundle_checkpoint_write(bundle, run->machine, step + 1, &error), &error);
    }
}

void cheat_bundle_new(const char *path, struct job *job, enum cheat cheat, uint64_t step,
                      uint64_t *random)
{
    struct bundle *bundle = NULL;
    struct run run;
    struct error error;
    uint64_t end = job->steps;

    error_init(&error);
    insist(bundle_create(&bundle, path, job, &error), &error);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    small_run_begin(&run);
    for (uint64_t at = 0; at < end; at++) {
        make_step(&run, at == step ? cheat : CHEAT_NOT, at, random);
        record(bundle, &run, at, end);
    }
    run_close(&run);
    bundle_close(bundle);
}
