/*
 * Any bytes as a tape. What parses writes back to the same bytes, has a text, can be planned; and
 * if it is small, two steps of it end at the same bits by the looped rules in trace mode and by the
 * best kernels in fast mode, no matter what it computes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/descriptor.h"
#include "tests/support/loops/unlooped.h"
#include "tests/support/numeric/random_tape.h"

/* Bytes of all tensors, and multiplications, of a tape that is run. */
#define RUN_BYTES_MAX (UINT64_C(1) << 16)
#define RUN_WORK_MAX  (UINT64_C(1) << 22)

/* Operations of all turns of a tape whose instances are looked at. */
#define UNLOOPED_MAX 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "tape fuzz: %s\n", what);
        abort();
    }
}

static void check_bytes(const struct tape *tape, const uint8_t *data, size_t size)
{
    uint8_t *again = malloc(size);
    char *text = NULL;

    insist(again != NULL && tape_encoded_size(tape) == size, "another size");
    tape_encode(again, tape);
    insist(memcmp(again, data, size) == 0, "other bytes");
    free(again);
    if (tape_text(&text, tape, NULL) == STATUS_OK) {
        insist(strlen(text) > 0, "no text");
        free(text);
    }
}

/* The instance of an operation of a repeat has its operands where the trace has them. */
static void check_instance(const struct unlooped *unlooped, const struct descriptor_places *places,
                           uint32_t at)
{
    const struct op *op = &unlooped->tape->ops[at];
    struct descriptor descriptor;

    descriptor_of_turn(&descriptor, places, unlooped_maker(unlooped, at));
    for (uint32_t i = 0; i < descriptor.operand_count; i++) {
        uint32_t id = i < op->input_count ? op->inputs[i] : op->outputs[i - op->input_count];

        insist(descriptor.operands[i].place == unlooped->places[id], "another place");
    }
}

/* What a contract is shown of a sound tape reads back, and is sound by itself. */
static void check_descriptors(const struct tape *tape)
{
    struct descriptor_places places;
    struct unlooped unlooped;

    insist(descriptor_places_find(&places, tape, NULL) == STATUS_OK, "no places");
    for (uint32_t item = 0; item < descriptor_count(tape); item++) {
        uint8_t bytes[DESCRIPTOR_SIZE_MAX];
        struct descriptor descriptor;
        size_t size = descriptor_write(bytes, &places, item);

        insist(descriptor_read(&descriptor, bytes, size, NULL) == STATUS_OK, "a bad descriptor");
        insist(descriptor.is_state == (item >= descriptor_of_state(tape, 0)),
               "another kind of item");
    }
    if (tape->brief != NULL && tape_unlooped(tape).ops <= UNLOOPED_MAX) {
        insist(unlooped_open(&unlooped, tape), "no step without loops");
        for (uint32_t at = 0; at < unlooped.tape->op_count; at += 1 + at / 64) {
            check_instance(&unlooped, &places, at);
        }
        unlooped_close(&unlooped);
    }
    descriptor_places_release(&places);
}

/* An upper bound of what the looped rules multiply and add. */
static uint64_t work_of(const struct tape *tape)
{
    uint64_t work = 0;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];
        uint64_t most = 1;
        uint64_t made = 0;

        for (uint32_t i = 0; i < op->input_count; i++) {
            uint64_t count = tape->tensors[op->inputs[i]].count;

            most = count > most ? count : most;
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            made += tape->tensors[op->outputs[i]].count;
        }
        work += made * (most < 4096 ? most : 4096) * tape_turns(tape, at);
    }
    return work;
}

static void run_two_ways(const struct tape *tape)
{
    struct machine_options rules = {.isa = ISA_SCALAR, .thread_count = 1, .trace = true};
    struct machine_options fast = {.isa = isa_best(), .thread_count = 1};
    struct random_machine a;
    struct random_machine b;
    const char *name = "";

    random_machine_open(&a, tape, &rules, 3);
    random_machine_open(&b, tape, &fast, 3);
    for (int step = 0; step < 2; step++) {
        random_machine_step(&a, NULL);
        random_machine_step(&b, NULL);
        insist(random_machine_equal(&name, &a, &b), name);
    }
    random_machine_close(&a);
    random_machine_close(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tape *tape = NULL;
    struct tape_footprint footprint;

    if (tape_parse(&tape, data, size, NULL) != STATUS_OK) {
        return 0;
    }
    insist(tape_check(tape, NULL) == STATUS_OK, "an unsound tape");
    check_bytes(tape, data, size);
    check_descriptors(tape);
    footprint = tape_footprint(tape);
    if (footprint.trace + footprint.state + footprint.data + footprint.constant <= RUN_BYTES_MAX &&
        work_of(tape) <= RUN_WORK_MAX) {
        run_two_ways(tape);
    }
    tape_free(tape);
    return 0;
}
