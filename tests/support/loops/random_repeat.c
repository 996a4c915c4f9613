/* random_repeat.c - see random_repeat.h. */
#include "tests/support/loops/random_repeat.h"

#include <stdlib.h>
#include <string.h>

#include "engine/tape/repeat.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/test.h"

struct maker {
    struct tape *tape;
    uint64_t random;
    uint32_t *made; /* per tensor: the operation that makes it, or TENSOR_NONE */
    bool *taken;    /* per tensor: of a carry */
};

static uint32_t below(struct maker *maker, uint32_t count)
{
    return (uint32_t)test_random_below(&maker->random, count);
}

static bool is_alike(const struct tensor *a, const struct tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, sizeof(a->dims[0]) * a->rank) == 0;
}

static bool is_inside(const struct maker *maker, uint32_t id)
{
    return maker->made[id] != TENSOR_NONE && maker->made[id] >= maker->tape->repeat.first;
}

static bool is_quantized(const struct maker *maker, uint32_t id)
{
    return maker->made[id] != TENSOR_NONE && maker->tape->ops[maker->made[id]].kind == OP_QUANTIZE;
}

/* The name of the start is that of what follows it. */
static void add_carry(struct maker *maker, uint32_t start, uint32_t after)
{
    struct repeat *repeat = &maker->tape->repeat;
    struct tensor *tensor = &maker->tape->tensors[after];

    maker->taken[start] = maker->taken[after] = true;
    memcpy(tensor->name, maker->tape->tensors[start].name, sizeof(tensor->name));
    repeat->carries[repeat->carry_count++] =
        (struct carry){start, after, tensor->dtype == DTYPE_F32 && below(maker, 3) == 0};
}

/* The next values of states that the body makes leave it. */
static void carry_states(struct maker *maker)
{
    const struct tape *tape = maker->tape;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (is_inside(maker, tape->states[i].after)) {
            add_carry(maker, tape->states[i].before, tape->states[i].after);
        }
    }
}

/* One state in two, which then is read in the body and does not change by it. */
static bool may_start(struct maker *maker, uint32_t id)
{
    enum role role = maker->tape->tensors[id].role;

    return !maker->taken[id] && !is_inside(maker, id) && !is_quantized(maker, id) &&
           (role == ROLE_TEMPORARY || (role == ROLE_STATE && below(maker, 2) == 0));
}

/* Most tensors of one shape before and inside become a carry. */
static void carry_others(struct maker *maker)
{
    const struct tape *tape = maker->tape;

    for (uint32_t start = 0; start < tape->tensor_count; start++) {
        uint32_t after = below(maker, tape->tensor_count);

        if (!may_start(maker, start)) {
            continue;
        }
        for (uint32_t i = 0; i < tape->tensor_count; i++) {
            after = (after + 1) % tape->tensor_count;
            if (is_inside(maker, after) && !maker->taken[after] && !is_quantized(maker, after) &&
                tape->tensors[after].role == ROLE_TEMPORARY &&
                is_alike(&tape->tensors[start], &tape->tensors[after])) {
                add_carry(maker, start, after);
                break;
            }
        }
    }
}

static void make(struct maker *maker)
{
    static const uint32_t shapes[][2] = {{3, 3}, {5, 5}, {6, 3}, {2, 2}, {8, 4}, {4, 1}};
    const uint32_t *shape = shapes[below(maker, sizeof(shapes) / sizeof(shapes[0]))];
    struct tape *tape = maker->tape;
    struct repeat *repeat = &tape->repeat;

    repeat->times = shape[0];
    repeat->group = shape[1];
    repeat->first = below(maker, tape->op_count);
    repeat->op_count = tape->op_count - repeat->first;
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        maker->made[id] = TENSOR_NONE;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            maker->made[tape->ops[at].outputs[i]] = at;
        }
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (is_inside(maker, id)) {
            tape->tensors[id].role = ROLE_TEMPORARY;
        }
    }
    carry_states(maker);
    carry_others(maker);
    if (tape->loss != TENSOR_NONE && is_inside(maker, tape->loss) && !maker->taken[tape->loss]) {
        tape->loss = TENSOR_NONE;
    }
}

struct tape *random_repeat(uint64_t seed)
{
    struct maker maker = {.tape = random_tape(seed, 4 + (uint32_t)(seed % 30)), .random = seed};
    const size_t tensors = (size_t)maker.tape->tensor_count + 1;
    struct tape *unrolled = NULL;

    maker.made = calloc(tensors, sizeof(*maker.made));
    maker.taken = calloc(tensors, sizeof(*maker.taken));
    maker.tape->repeat.carries = calloc(tensors, sizeof(*maker.tape->repeat.carries));
    if (maker.made == NULL || maker.taken == NULL || maker.tape->repeat.carries == NULL) {
        abort();
    }
    make(&maker);
    free(maker.made);
    free(maker.taken);
    if (tape_check(maker.tape, NULL) != STATUS_OK) {
        tape_free(maker.tape);
        return NULL;
    }
    return repeat_unroll(&unrolled, maker.tape, NULL) == STATUS_OK ? unrolled : NULL;
}
