/* rank_cutter.c - see rank_cutter.h. */
#include "engine/ranks/rank_cutter.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/plan/slice.h"

/* ---- tensors ---------------------------------------------------------------------------- */

uint32_t tape_cutter_add(struct tape_cutter *cutter, uint32_t like, enum role role)
{
    struct tape *tape = cutter->own->tape;
    struct tensor *tensor = &tape->tensors[tape->tensor_count];

    *tensor = cutter->whole->tensors[like];
    tensor->role = role;
    return tape->tensor_count++;
}

uint32_t tape_cutter_name(struct tape_cutter *cutter, uint32_t like, enum role role,
                          const char *what)
{
    const uint32_t id = tape_cutter_add(cutter, like, role);

    (void)snprintf(cutter->own->tape->tensors[id].name, TENSOR_NAME_MAX + 1, "rank.%s.%u", what,
                   id);
    return id;
}

/* Elements first .. end-1 of a tensor; under the name of its own that every part but a state's
 * needs. */
static uint32_t add_elements(struct tape_cutter *cutter, uint32_t like, uint64_t count,
                             enum role role)
{
    const uint32_t id = role == ROLE_STATE ? tape_cutter_add(cutter, like, role)
                                           : tape_cutter_name(cutter, like, role, "part");
    struct tensor *tensor = &cutter->own->tape->tensors[id];

    if (count != tensor->count) {
        tensor->rank = 1;
        memset(tensor->dims, 0, sizeof(tensor->dims));
        tensor->dims[0] = tensor->count = count;
    }
    return id;
}

static uint64_t part_count(const struct tape_cutter *cutter, uint32_t tensor)
{
    return rank_places_first(cutter->places, tensor, cutter->rank + 1) -
           rank_places_first(cutter->places, tensor, cutter->rank);
}

void tape_cutter_add_part(struct tape_cutter *cutter, uint32_t tensor, enum role role)
{
    const uint64_t count = part_count(cutter, tensor);

    cutter->own->parts[tensor] =
        count == 0 ? TENSOR_NONE : add_elements(cutter, tensor, count, role);
}

uint32_t tape_cutter_whole(struct tape_cutter *cutter, uint32_t tensor)
{
    if (cutter->stand[tensor] == TENSOR_NONE) {
        const uint32_t arrival = cutter->arrivals[tensor];

        assert(arrival != TENSOR_NONE);
        cutter->stand[tensor] = tape_cutter_name(cutter, tensor, ROLE_INPUT, "whole");
        cutter->own->arrivals[arrival] = cutter->stand[tensor];
    }
    return cutter->stand[tensor];
}

/* The rank's part of a tensor that it has whole, as a tensor of its own. */
static uint32_t copy_part(struct tape_cutter *cutter, uint32_t tensor)
{
    struct op op = {
        .kind = OP_MOVE, .input_count = 1, .output_count = 1, .attribute_count = MOVE_ATTRIBUTES};
    const uint64_t count = part_count(cutter, tensor);

    op.inputs[0] = tape_cutter_whole(cutter, tensor);
    op.outputs[0] = add_elements(cutter, tensor, count, ROLE_TEMPORARY);
    for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
        op.attributes[MOVE_DIMS + axis] = axis + 1 == MOVE_AXES ? (int64_t)count : 1;
        op.attributes[MOVE_STRIDES + axis] = axis + 1 == MOVE_AXES;
    }
    op.attributes[MOVE_OFFSET] = (int64_t)rank_places_first(cutter->places, tensor, cutter->rank);
    tape_cutter_put(cutter, &op);
    return op.outputs[0];
}

static uint32_t part_of(struct tape_cutter *cutter, uint32_t tensor)
{
    uint32_t *parts = cutter->own->parts;

    if (parts[tensor] == TENSOR_NONE) {
        assert(!cutter->places->cut[tensor]);
        if (part_count(cutter, tensor) == cutter->whole->tensors[tensor].count) {
            return tape_cutter_whole(cutter, tensor);
        }
        parts[tensor] = copy_part(cutter, tensor);
    }
    return parts[tensor];
}

/* ---- operations ------------------------------------------------------------------------- */

void tape_cutter_put(struct tape_cutter *cutter, const struct op *op)
{
    cutter->own->tape->ops[cutter->own->tape->op_count++] = *op;
}

void tape_cutter_copy(struct tape_cutter *cutter, uint32_t at)
{
    struct op op = cutter->whole->ops[at];

    for (uint32_t i = 0; i < op.input_count; i++) {
        op.inputs[i] = tape_cutter_whole(cutter, op.inputs[i]);
    }
    for (uint32_t i = 0; i < op.output_count; i++) {
        const uint32_t id = op.outputs[i];

        op.outputs[i] = cutter->stand[id] =
            tape_cutter_add(cutter, id, cutter->whole->tensors[id].role);
    }
    cutter->kept[at] = cutter->own->tape->op_count;
    tape_cutter_put(cutter, &op);
}

/* What the rank sends of a tensor is an output. */
static void add_made(struct tape_cutter *cutter, struct op *op, uint32_t output, uint64_t count)
{
    const uint32_t id = op->outputs[output];
    const enum role role =
        cutter->arrivals[id] != TENSOR_NONE ? ROLE_OUTPUT : cutter->whole->tensors[id].role;

    op->outputs[output] = cutter->own->parts[id] = add_elements(cutter, id, count, role);
}

/* An operation that is whole on one rank, or the rank's part of one. */
static void put_part(struct tape_cutter *cutter, uint32_t at)
{
    const struct rank_places *places = cutter->places;
    const struct rank_op *place = &places->ops[at];
    const struct rank_family *family = &places->family[place->family];
    const struct op *op = &cutter->whole->ops[at];
    struct slice_view views[SLICE_TENSORS_MAX];
    struct slice whole;
    struct slice part;

    if (family->bounds[cutter->rank] == family->bounds[cutter->rank + 1]) {
        return;
    }
    slice_whole(&whole, cutter->whole, at);
    part = whole;
    if (place->where == RANK_CUT) {
        const unsigned __int128 units = place->units;

        slice_take(&part, views, &whole, place->axis,
                   (uint64_t)(units * family->bounds[cutter->rank] / family->count),
                   (uint64_t)(units * family->bounds[cutter->rank + 1] / family->count));
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        part.op.inputs[i] = rank_places_reads_part(places, at, i)
                                ? part_of(cutter, op->inputs[i])
                                : tape_cutter_whole(cutter, op->inputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        part.op.outputs[i] = op->outputs[i];
        add_made(cutter, &part.op, i, part.tensors[op->input_count + i].count);
    }
    tape_cutter_put(cutter, &part.op);
}

void tape_cutter_put_stage(struct tape_cutter *cutter, uint32_t stage)
{
    for (uint32_t at = 0; at < cutter->whole->op_count; at++) {
        const struct rank_op *place = &cutter->places->ops[at];

        if (place->where == RANK_BODY || place->stage != stage) {
            continue;
        }
        if (place->where == RANK_ALL) {
            tape_cutter_copy(cutter, at);
        } else {
            put_part(cutter, at);
        }
    }
}
