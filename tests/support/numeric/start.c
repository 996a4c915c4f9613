/* start.c - see start.h. */
#include "tests/support/numeric/start.h"

#include <stdlib.h>
#include <string.h>

#include "proofs/commit/trace.h"
#include "tests/support/numeric/model_state.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/test.h"

void start_must(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

uint64_t start_size(const struct tape *tape, uint32_t id)
{
    return tensor_size(&tape->tensors[id]);
}

void start_model(struct start *start, const struct small_model *small)
{
    const struct model *model = &small->model;

    start->tape = model->tape;
    start->values = calloc((size_t)model->tape->tensor_count + 1, sizeof(*start->values));
    for (uint32_t i = 0; i < model->tape->state_count; i++) {
        uint32_t id = model->tape->states[i].before;

        start->values[id] = calloc(1, start_size(model->tape, id));
        model_first_state(start->values[id], model, id);
    }
    for (uint32_t i = 0; i < model->constant_count; i++) {
        uint32_t id = model->constants[i].tensor;

        start->values[id] = malloc(start_size(model->tape, id));
        memcpy(start->values[id], model->constants[i].bytes, start_size(model->tape, id));
    }
    for (uint32_t id = 0; id < model->tape->tensor_count; id++) {
        if (model->tape->tensors[id].role == ROLE_DATA) {
            start->values[id] = malloc(start_size(model->tape, id));
            memcpy(start->values[id], small_model_data(small, id), start_size(model->tape, id));
        }
    }
}

void start_random(struct start *start, const struct tape *tape, uint64_t seed)
{
    start->tape = tape;
    start->values = calloc((size_t)tape->tensor_count + 1, sizeof(*start->values));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (!role_is_made(tape->tensors[id].role)) {
            start->values[id] = random_tape_value(tape, id, seed);
        }
    }
}

void start_release(struct start *start)
{
    for (uint32_t id = 0; id < start->tape->tensor_count; id++) {
        free(start->values[id]);
    }
    free(start->values);
}

enum status start_give(struct machine *machine, const struct start *start, struct error *error)
{
    for (uint32_t id = 0; id < start->tape->tensor_count; id++) {
        if (start->values[id] == NULL) {
            continue;
        }
        TRY(start->tape->tensors[id].role == ROLE_DATA
                ? machine->backend->bind(machine, id, start->values[id], error)
                : machine->backend->write(machine, id, start->values[id], error));
    }
    return STATUS_OK;
}

void start_steps(struct machine *machine, const struct start *start, uint32_t steps)
{
    struct error error;

    error_init(&error);
    start_must(start_give(machine, start, &error), &error);
    for (uint32_t i = 0; i < steps; i++) {
        start_must(machine->backend->step(machine, NULL, &error), &error);
    }
}

void start_compare(struct machine *cpu, struct machine *other, const char *what)
{
    const struct tape *tape = cpu->tape;
    bool diverged[2];
    struct error error;

    error_init(&error);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const void *expected = backend_cpu.peek(cpu, id);
        uint8_t *got;

        if (expected == NULL) {
            continue;
        }
        got = malloc(start_size(tape, id));
        start_must(other->backend->read(other, id, got, &error), &error);
        if (memcmp(got, expected, start_size(tape, id)) != 0) {
            fail_msg("%s: tensor %u '%s' differs", what, id, tape->tensors[id].name);
        }
        free(got);
    }
    start_must(backend_cpu.diverged(cpu, &diverged[0], &error), &error);
    start_must(other->backend->diverged(other, &diverged[1], &error), &error);
    assert_int_equal(diverged[0], diverged[1]);

    struct digest expected_root;
    struct digest root;

    start_must(state_root_of(&expected_root, cpu, &error), &error);
    start_must(state_root_of(&root, other, &error), &error);
    assert_memory_equal(&root, &expected_root, sizeof(root));
}
