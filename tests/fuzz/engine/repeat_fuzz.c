/*
 * Any repeat behind a sound tape: huge, empty, a second one, accumulators that nobody makes or that
 * are made twice.
 *
 * The input is what follows the tape, as it lies in the file; a repeat cannot hold another, so
 * nesting is bytes behind a repeat. A tape that is taken is unrolled within its bounds, into each
 * micro-batch whole, and writes back to the same bytes; a short one makes the same bits by the
 * rules in trace mode and by the best kernels in fast mode.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "engine/plan/expand.h"
#include "engine/tape/builder.h"
#include "tests/support/numeric/random_tape.h"

enum {
    SIDE = 4,
    RUN_OPS_MAX = 400, /* of a tape that is run */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "repeat fuzz: %s\n", what);
        abort();
    }
}

static bool is_sum(const struct op *op)
{
    return op->kind == OP_BINARY && op->attributes[BINARY_FUNCTION] == BINARY_ADD;
}

/* Three states that a body may hand on: a counter, and two that are summed or replaced. */
static struct tape *plain_tape(void)
{
    static const uint64_t dims[2] = {SIDE, SIDE};
    struct builder *builder = builder_new((struct precision){14, 0});
    uint32_t w = build_tensor(builder, "w", DTYPE_F32, ROLE_STATE, 2, dims);
    uint32_t v = build_tensor(builder, "v", DTYPE_F32, ROLE_STATE, 2, dims);
    uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_DATA, 2, dims);
    uint32_t step = build_step(builder);
    struct tape *tape = NULL;
    uint32_t y;

    y = build_dropout(builder, build_linear(builder, x, w), 0.25, 1, 7);
    y = build_add(builder, v, build_mul(builder, y, x, 1), 1);
    build_after(builder, v, y);
    build_after(builder, w, build_scale(builder, build_add(builder, w, y, 1), 0.5f));
    (void)step;
    insist(builder_finish(&tape, builder, NULL) == STATUS_OK, "a tape");
    builder_free(builder);
    return tape;
}

static const struct tape *the_tape(void)
{
    static struct tape *tape;

    if (tape == NULL) {
        tape = plain_tape();
    }
    return tape;
}

/* By the rules as it is, and fast with each turn of its loops apart. */
static void run(const struct tape *tape)
{
    struct machine_options rules = {.isa = ISA_SCALAR, .thread_count = 1, .trace = true};
    struct machine_options fast = {.isa = isa_best(), .thread_count = 1};
    struct tape *expanded = NULL;
    struct random_machine a;
    struct random_machine b;
    struct random_machine c;
    const char *name = "";

    insist(expand_build(&expanded, tape, NULL) == STATUS_OK, "no step without loops");
    random_machine_open(&a, tape, &rules, 3);
    random_machine_open(&b, tape, &fast, 3);
    random_machine_open(&c, expanded != NULL ? expanded : tape, &fast, 3);
    random_machine_step(&c, NULL);
    random_machine_step(&a, NULL);
    random_machine_step(&b, NULL);
    insist(random_machine_equal(&name, &a, &b), name);
    insist(random_machine_equal(&name, &a, &c), name);
    random_machine_close(&a);
    random_machine_close(&b);
    random_machine_close(&c);
    tape_free(expanded);
}

/* Each operation of the unrolled tape is one of the short tape, in an instance that it has. */
static void check_origins(const struct tape *tape)
{
    const struct tape *brief = tape->brief;
    const struct repeat *repeat = &brief->repeat;
    uint64_t in_body = 0;
    uint64_t joins = 0;

    insist(tape->op_count <= REPEAT_OPS_MAX && tape->tensor_count <= REPEAT_TENSORS_MAX, "bounds");
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op_origin *origin = &tape->origins[at];

        if (origin->item >= brief->op_count) {
            insist(is_sum(&tape->ops[at]), "a join that does not add");
            joins++;
            continue;
        }
        insist(tape->ops[at].kind == brief->ops[origin->item].kind, "another operation");
        if (origin->item >= repeat->first && origin->item < repeat->first + repeat->op_count) {
            insist(origin->instance < repeat->times, "an instance that is not there");
            in_body += tape_turns(tape, at);
        }
    }
    insist(in_body == (uint64_t)repeat->times * repeat->op_count, "micro-batches are missing");
    insist(joins % (repeat->times / repeat->group > 1 ? repeat->times / repeat->group - 1 : 1) == 0,
           "a tree with holes");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t plain = tape_encoded_size(the_tape());
    uint8_t *bytes = malloc(plain + size);
    uint8_t *again;
    struct tape *tape = NULL;

    insist(bytes != NULL, "memory");
    tape_encode(bytes, the_tape());
    if (size > 0) {
        memcpy(bytes + plain, data, size);
    }
    if (tape_parse(&tape, bytes, plain + size, NULL) == STATUS_OK) {
        insist(tape_check(tape, NULL) == STATUS_OK, "an unsound tape");
        insist(tape_encoded_size(tape) == plain + size, "another size");
        again = malloc(plain + size);
        insist(again != NULL, "memory");
        tape_encode(again, tape);
        insist(memcmp(again, bytes, plain + size) == 0, "other bytes");
        free(again);
        if (tape->brief != NULL) {
            check_origins(tape);
        }
        if (tape_unlooped(tape).ops <= RUN_OPS_MAX) {
            run(tape);
        }
    }
    tape_free(tape);
    free(bytes);
    return 0;
}
