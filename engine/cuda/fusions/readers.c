/* readers.c - see readers.h. */
#include "engine/cuda/fusions/readers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Of one tensor, by its own id alone. */
struct readers_own {
    uint32_t begin;     /* of its readers in the lists */
    uint32_t room;      /* so many were found */
    uint32_t count;     /* so many there are */
    uint32_t states;    /* as in struct readers */
    uint32_t part;      /* the first tensor that lies inside of it; NEVER: none */
    uint32_t next_part; /* the next one that lies where it does */
};

/* ---- parts and wholes --------------------------------------------------------------------- */

/* As if no tensor lay inside of another. */
static void take_own(struct readers *readers, uint32_t id)
{
    const struct readers_own *own = &readers->own[id];

    readers->count[id] = own->count;
    readers->first[id] = own->count == 0 ? NEVER : readers->lists[own->begin];
    readers->last[id] = own->count == 0 ? NEVER : readers->lists[own->begin + own->count - 1];
    readers->states[id] = own->states;
}

static void read_too(struct readers *readers, uint32_t id, uint32_t with)
{
    const uint32_t first = readers->first[with];

    readers->first[id] = first < readers->first[id] ? first : readers->first[id];
    if (readers->last[with] != NEVER &&
        (readers->last[id] == NEVER || readers->last[id] < readers->last[with])) {
        readers->last[id] = readers->last[with];
    }
    if (readers->states[with] != NEVER &&
        (readers->states[id] == NEVER || readers->states[id] < readers->states[with])) {
        readers->states[id] = readers->states[with];
    }
    readers->count[id] += readers->count[with];
}

/* Of a tensor and what lies where it does: a reader of a part reads the whole, and a reader of the
 * whole reads its parts. */
static void settle_tensor(struct readers *readers, const struct fusion *fusion, uint32_t id)
{
    const uint32_t whole = fusion->holders[id];
    const uint32_t first = readers->own[whole].part;

    take_own(readers, whole);
    for (uint32_t part = first; part != NEVER; part = readers->own[part].next_part) {
        take_own(readers, part);
        if (readers->maker[part] == NEVER) {
            read_too(readers, whole, part);
        }
    }
    for (uint32_t part = first; part != NEVER; part = readers->own[part].next_part) {
        if (readers->maker[part] != NEVER) {
            read_too(readers, part, whole);
        }
    }
}

static void settle_all_of(struct readers *readers, const struct fusion *fusion, const struct op *op)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        settle_tensor(readers, fusion, op->inputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        settle_tensor(readers, fusion, op->outputs[i]);
    }
}

/* ---- one operation ------------------------------------------------------------------------- */

static bool makes_kept(const struct readers *readers, const struct op *op)
{
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (readers->kept[op->outputs[i]]) {
            return true;
        }
    }
    return false;
}

/* Is the input another one before it? */
static bool is_again(const struct op *op, uint32_t input)
{
    for (uint32_t i = 0; i < input; i++) {
        if (op->inputs[i] == op->inputs[input]) {
            return true;
        }
    }
    return false;
}

/* The place of the first reader of the list that is not before `at`. */
static uint32_t place_of(const struct readers *readers, const struct readers_own *own, uint32_t at)
{
    const uint32_t *list = &readers->lists[own->begin];
    uint32_t low = 0;
    uint32_t high = own->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (list[middle] < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void add_reader(struct readers *readers, struct readers_own *own, uint32_t at, bool kept)
{
    const uint32_t place = place_of(readers, own, at);
    uint32_t *list = &readers->lists[own->begin];

    assert(own->count < own->room);
    memmove(&list[place + 1], &list[place], (own->count - place) * sizeof(*list));
    list[place] = at;
    own->count++;
    if (kept && (own->states == NEVER || own->states < at)) {
        own->states = at;
    }
}

static void drop_reader(struct readers *readers, const struct fusion *fusion,
                        struct readers_own *own, uint32_t at)
{
    const uint32_t place = place_of(readers, own, at);
    uint32_t *list = &readers->lists[own->begin];

    assert(place < own->count && list[place] == at);
    own->count--;
    memmove(&list[place], &list[place + 1], (own->count - place) * sizeof(*list));
    if (own->states != at) {
        return;
    }
    own->states = NEVER;
    for (uint32_t i = place; i > 0 && own->states == NEVER; i--) {
        if (makes_kept(readers, &fusion->ops[list[i - 1]])) {
            own->states = list[i - 1];
        }
    }
}

static void note_op(struct readers *readers, const struct op *op, uint32_t at)
{
    const bool kept = makes_kept(readers, op);

    for (uint32_t i = 0; i < op->output_count; i++) {
        readers->maker[op->outputs[i]] = at;
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (!is_again(op, i)) {
            add_reader(readers, &readers->own[op->inputs[i]], at, kept);
        }
    }
}

void readers_see(struct readers *readers, const struct fusion *fusion, uint32_t at)
{
    note_op(readers, &fusion->ops[at], at);
    settle_all_of(readers, fusion, &fusion->ops[at]);
}

void readers_forget(struct readers *readers, const struct fusion *fusion, const struct op *op,
                    uint32_t at)
{
    for (uint32_t i = 0; i < op->output_count; i++) {
        readers->maker[op->outputs[i]] = NEVER;
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (!is_again(op, i)) {
            drop_reader(readers, fusion, &readers->own[op->inputs[i]], at);
        }
    }
    settle_all_of(readers, fusion, op);
}

void readers_regroup(struct readers *readers, const struct fusion *fusion)
{
    const struct fused_group *group = &fusion->groups[fusion->group_count - 1];

    for (uint32_t i = 0; i < group->count; i++) {
        readers_forget(readers, fusion, &group->ops[i], group->ats[i]);
    }
    readers_see(readers, fusion, group->ats[group->count - 1]);
}

/* ---- the whole tape ------------------------------------------------------------------------ */

static bool make_room(struct readers *readers, const struct tape *tape)
{
    const size_t count = (size_t)tape->tensor_count + 1;
    uint32_t *words = malloc(5 * count * sizeof(*words));
    bool *flags = calloc(2 * count, sizeof(*flags));

    readers_release(readers);
    readers->own = calloc(count, sizeof(*readers->own));
    readers->first = words;
    readers->kept = flags;
    if (words == NULL || flags == NULL || readers->own == NULL) {
        readers_release(readers);
        return false;
    }
    readers->last = words + count;
    readers->states = words + 2 * count;
    readers->maker = words + 3 * count;
    readers->count = words + 4 * count;
    readers->is_output = flags + count;
    memset(readers->maker, 0xff, count * sizeof(*words)); /* NEVER */
    return true;
}

/* Room in the lists for all that read now, and some more. */
static bool make_lists(struct readers *readers, const struct fusion *fusion)
{
    uint32_t all = 0;

    for (uint32_t at = 0; at < fusion->op_count; at++) {
        const struct op *op = &fusion->ops[at];

        for (uint32_t i = 0; i < op->input_count; i++) {
            readers->own[op->inputs[i]].room += !is_again(op, i);
        }
    }
    for (uint32_t id = 0; id < fusion->tensor_count; id++) {
        struct readers_own *own = &readers->own[id];

        own->room += READERS_MORE * (own->room + 1);
        own->begin = all;
        own->states = own->part = own->next_part = NEVER;
        all += own->room;
    }
    readers->lists = malloc(((size_t)all + 1) * sizeof(*readers->lists));
    return readers->lists != NULL;
}

static void note_roles(struct readers *readers, const struct tape *tape)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        readers->kept[id] = tape->tensors[id].role != ROLE_TEMPORARY || id == tape->loss;
        readers->is_output[id] = tape->tensors[id].role == ROLE_OUTPUT;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        readers->kept[tape->states[i].after] = true;
    }
    for (uint32_t i = 0; i < tape->loop_carry_count; i++) {
        readers->kept[tape->loop_carries[i].in] = true;
        readers->kept[tape->loop_carries[i].out] = true;
    }
}

bool readers_find(struct readers *readers, const struct fusion *fusion, const struct tape *tape)
{
    if (!make_room(readers, tape) || !make_lists(readers, fusion)) {
        readers_release(readers);
        return false;
    }
    note_roles(readers, tape);
    for (uint32_t id = fusion->tensor_count; id > 0; id--) {
        const uint32_t holder = fusion->holders[id - 1];

        if (holder != id - 1) {
            readers->own[id - 1].next_part = readers->own[holder].part;
            readers->own[holder].part = id - 1;
        }
    }
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        note_op(readers, &fusion->ops[at], at);
    }
    for (uint32_t id = 0; id < fusion->tensor_count; id++) {
        if (fusion->holders[id] == id) {
            settle_tensor(readers, fusion, id);
        }
    }
    return true;
}

void readers_release(struct readers *readers)
{
    free(readers->first);
    free(readers->kept);
    free(readers->own);
    free(readers->lists);
    memset(readers, 0, sizeof(*readers));
}
