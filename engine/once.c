/* once.c - see once.h. */
#include "engine/once.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* ---- views --------------------------------------------------------------------- */

/* One walk through x: axes of more than one element, outermost first, as few as there can be. */
struct walk {
    int64_t dims[4];
    int64_t strides[4];
    int count;
};

static void walk_add(struct walk *walk, int64_t dim, int64_t stride)
{
    const int last = walk->count - 1;

    if (dim == 1) {
        return;
    }
    if (last >= 0 && walk->strides[last] == dim * stride) {
        walk->dims[last] *= dim;
        walk->strides[last] = stride;
        return;
    }
    walk->dims[walk->count] = dim;
    walk->strides[walk->count] = stride;
    walk->count++;
}

static struct walk walk_of(const struct op *op, int first, int end)
{
    struct walk walk = {.count = 0};

    for (int axis = first; axis < end; axis++) {
        walk_add(&walk, op->attributes[QUANTIZE_DIMS + axis],
                 op->attributes[QUANTIZE_STRIDES + axis]);
    }
    return walk;
}

static bool same_walk(const struct walk *a, const struct walk *b)
{
    const size_t size = (size_t)a->count * sizeof(a->dims[0]);

    return a->count == b->count && memcmp(a->dims, b->dims, size) == 0 &&
           memcmp(a->strides, b->strides, size) == 0;
}

/* The same rows in the same order, the same elements of each, cut and rounded alike. */
static bool same_quantize(const struct op *a, const struct op *b)
{
    const struct walk rows[2] = {walk_of(a, 0, 4), walk_of(b, 0, 4)};
    const struct walk lengths[2] = {walk_of(a, 4, 6), walk_of(b, 4, 6)};

    return a->attributes[QUANTIZE_BITS] == b->attributes[QUANTIZE_BITS] &&
           a->attributes[QUANTIZE_BLOCK] == b->attributes[QUANTIZE_BLOCK] &&
           same_walk(&rows[0], &rows[1]) && same_walk(&lengths[0], &lengths[1]);
}

/* ---- the tape -------------------------------------------------------------------- */

struct search {
    uint32_t *latest;  /* per tensor: the last operation that quantizes it, or NONE */
    uint32_t *earlier; /* per operation: the one before it that quantizes the same tensor */
    uint32_t *instead; /* per tensor: which to read */
};

/* What is not temporary is asked for by name. */
static bool may_spare(const struct tape *tape, const struct op *op)
{
    bool may = op->kind == OP_QUANTIZE;

    for (uint32_t i = 0; i < op->output_count; i++) {
        may = may && tape->tensors[op->outputs[i]].role == ROLE_TEMPORARY;
    }
    return may;
}

static void spare_one(struct once *once, struct search *search, uint32_t at)
{
    const struct op *op = &once->tape.ops[at];
    uint32_t *latest = &search->latest[op->inputs[0]];
    uint32_t other = *latest;

    while (other != NONE && !same_quantize(&once->tape.ops[other], op)) {
        other = search->earlier[other];
    }
    if (other == NONE) {
        search->earlier[at] = *latest;
        *latest = at;
        return;
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        search->instead[op->outputs[i]] = once->tape.ops[other].outputs[i];
    }
    once->spared++;
}

static void spare_all(struct once *once, struct search *search)
{
    for (uint32_t id = 0; id < once->tape.tensor_count; id++) {
        search->latest[id] = NONE;
        search->instead[id] = id;
    }
    for (uint32_t at = 0; at < once->tape.op_count; at++) {
        struct op *op = &once->tape.ops[at];

        for (uint32_t i = 0; i < op->input_count; i++) {
            op->inputs[i] = search->instead[op->inputs[i]];
        }
        if (may_spare(&once->tape, op)) {
            spare_one(once, search, at);
        }
    }
}

enum status once_build(struct once *once, const struct tape *tape, struct error *error)
{
    const size_t tensors = (size_t)tape->tensor_count + 1;
    const size_t ops = (size_t)tape->op_count + 1;
    struct search search = {.latest = calloc(tensors, sizeof(*search.latest)),
                            .earlier = calloc(ops, sizeof(*search.earlier)),
                            .instead = calloc(tensors, sizeof(*search.instead))};
    enum status status = STATUS_OK;

    *once = (struct once){.tape = *tape};
    once->tape.ops = calloc(ops, sizeof(*once->tape.ops));
    if (once->tape.ops == NULL || search.latest == NULL || search.earlier == NULL ||
        search.instead == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for %u operations", tape->op_count);
        once_release(once);
    } else {
        memcpy(once->tape.ops, tape->ops, (size_t)tape->op_count * sizeof(*tape->ops));
        spare_all(once, &search);
    }
    free(search.latest);
    free(search.earlier);
    free(search.instead);
    return status;
}

void once_release(struct once *once)
{
    free(once->tape.ops);
    *once = (struct once){.spared = 0};
}
