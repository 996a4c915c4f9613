/* fuse.c - see fuse.h. */
#include "engine/cuda/fusions/fuse_core.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/kernels/packed.h"

/* ---- what is read where ------------------------------------------------------------ */

static void readers_see(struct readers *readers, const struct op *op, uint32_t at)
{
    bool makes = false;

    for (uint32_t i = 0; i < op->output_count; i++) {
        makes = makes || readers->kept[op->outputs[i]];
        readers->maker[op->outputs[i]] = at;
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t id = op->inputs[i];

        if (readers->last[id] != at) {
            readers->count[id]++;
        }
        if (readers->first[id] == NEVER) {
            readers->first[id] = at;
        }
        readers->last[id] = at;
        if (makes) {
            readers->states[id] = at;
        }
    }
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

/* Who reads a part of what was made whole reads of the whole, and the other way round. */
static void see_through_views(struct readers *readers, const struct fusion *fusion)
{
    for (uint32_t id = 0; id < fusion->tensor_count; id++) {
        if (fusion->holders[id] != id && readers->maker[id] == NEVER) {
            read_too(readers, fusion->holders[id], id);
        }
    }
    for (uint32_t id = 0; id < fusion->tensor_count; id++) {
        if (fusion->holders[id] != id && readers->maker[id] != NEVER) {
            read_too(readers, id, fusion->holders[id]);
        }
    }
}

bool readers_find(struct readers *readers, const struct fusion *fusion, const struct tape *tape)
{
    const size_t count = (size_t)tape->tensor_count + 1;
    uint32_t *words = malloc(5 * count * sizeof(*words));

    *readers = (struct readers){.first = words, .kept = calloc(2 * count, sizeof(*readers->kept))};
    if (words == NULL || readers->kept == NULL) {
        return false;
    }
    readers->asked = readers->kept + count;
    readers->last = words + count;
    readers->states = words + 2 * count;
    readers->maker = words + 3 * count;
    readers->count = words + 4 * count;
    memset(words, 0xff, 4 * count * sizeof(*words)); /* NEVER */
    memset(readers->count, 0, count * sizeof(*words));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        readers->kept[id] = tape->tensors[id].role != ROLE_TEMPORARY || id == tape->loss;
        readers->asked[id] = tape->tensors[id].role == ROLE_OUTPUT;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        readers->kept[tape->states[i].after] = true;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        readers_see(readers, &fusion->ops[at], at);
    }
    see_through_views(readers, fusion);
    return true;
}

void readers_release(struct readers *readers)
{
    free(readers->first);
    free(readers->kept);
    *readers = (struct readers){.first = NULL};
}

/* ---- repeated quantizations ----------------------------------------------------------- */

static void view_add(struct plain_view *view, int64_t dim, int64_t stride, int first)
{
    if (dim == 1) {
        return;
    }
    if (view->count > first && view->strides[view->count - 1] == dim * stride) {
        view->dims[view->count - 1] *= dim;
        view->strides[view->count - 1] = stride;
        return;
    }
    view->dims[view->count] = dim;
    view->strides[view->count] = stride;
    view->count++;
}

struct plain_view fuse_view_of(const struct op *op)
{
    struct plain_view view = {.count = 0};

    for (int axis = 0; axis < 6; axis++) {
        if (axis == 4) {
            view.rows = view.count;
        }
        view_add(&view, op->attributes[QUANTIZE_DIMS + axis],
                 op->attributes[QUANTIZE_STRIDES + axis], axis < 4 ? 0 : view.rows);
    }
    return view;
}

bool fuse_view_is_rows(const struct op *quantize, int64_t rows, int64_t columns)
{
    const struct plain_view view = fuse_view_of(quantize);
    const int along = columns > 1;
    const int across = rows > 1;

    return quantize_rows(quantize) == rows && view.rows == across && view.count == across + along &&
           (!across || view.strides[0] == columns) && (!along || view.strides[view.count - 1] == 1);
}

static bool same_quantization(const struct op *a, const struct op *b)
{
    const struct contraction_shape shape = contraction_shape_of(a);
    const struct contraction_shape other = contraction_shape_of(b);
    const struct plain_view view = fuse_view_of(a);
    const struct plain_view to = fuse_view_of(b);

    if (a->inputs[0] != b->inputs[0] || shape.bits != other.bits || shape.k != other.k ||
        shape.block != other.block || shape.piece != other.piece || view.count != to.count ||
        view.rows != to.rows || quantize_rows(a) != quantize_rows(b)) {
        return false;
    }
    for (int axis = 0; axis < view.count; axis++) {
        if (view.dims[axis] != to.dims[axis] || view.strides[axis] != to.strides[axis]) {
            return false;
        }
    }
    return true;
}

/* Readers of the outputs of a later one read those of the first: the tensors' new names. */
static void share_quantizations(struct fusion *fusion, const struct tape *tape, uint32_t *names,
                                const bool *kept, uint32_t *before, uint32_t *newest)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        names[id] = id;
        newest[id] = NEVER;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        struct op *op = &fusion->ops[at];

        for (uint32_t i = 0; i < op->input_count; i++) {
            op->inputs[i] = names[op->inputs[i]];
        }
        if (op->kind != OP_QUANTIZE) {
            continue;
        }
        uint32_t made = newest[op->inputs[0]];

        while (made != NEVER && !same_quantization(&fusion->ops[made], op)) {
            made = before[made];
        }
        for (uint32_t i = 0; made != NEVER && i < op->output_count; i++) {
            if (!kept[op->outputs[i]]) {
                names[op->outputs[i]] = names[fusion->ops[made].outputs[i]];
            }
        }
        before[at] = newest[op->inputs[0]];
        newest[op->inputs[0]] = at;
    }
}

static bool find_repeated(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    uint32_t *names = malloc(((size_t)tape->tensor_count + 1) * sizeof(*names));
    uint32_t *newest = malloc(((size_t)tape->tensor_count + 1) * sizeof(*newest));
    uint32_t *before = malloc(((size_t)tape->op_count + 1) * sizeof(*before));
    const bool there = names != NULL && newest != NULL && before != NULL;

    if (there) {
        share_quantizations(fusion, tape, names, readers->kept, before, newest);
    }
    free(names);
    free(newest);
    free(before);
    return there;
}

/* ---- rows and their quantization ----------------------------------------------------------- */

/* The output that goes on, or NEVER where a warp does not hold such rows. */
static uint32_t main_output(const struct op *op)
{
    switch ((int)op->kind) {
    case OP_LAYER_NORM:
    case OP_LAYER_NORM_GRAD:
        return 4;
    case OP_RMS_NORM:
    case OP_RMS_NORM_GRAD:
    case OP_SOFTMAX_GRAD:
        return 2;
    case OP_SOFTMAX:
        return 5;
    default:
        return NEVER;
    }
}

bool fuse_holds_rows(const struct op *op)
{
    return main_output(op) != NEVER && op->attributes[COLUMNS] <= HELD_MAX;
}

/* Are its rows those of the operation, one after another, and read by 16 bytes? */
static bool quantizes_rows(const struct op *quantize, const struct op *rows)
{
    const int64_t columns = rows->attributes[COLUMNS];
    struct contraction_shape shape;
    struct plain_view view;

    if (quantize->kind != OP_QUANTIZE || quantize->inputs[0] != rows->outputs[main_output(rows)]) {
        return false;
    }
    shape = contraction_shape_of(quantize);
    view = fuse_view_of(quantize);
    if (shape.k != columns || columns % 4 != 0 || shape.piece != CONTRACTION_PIECE ||
        (shape.blocks > 1 && shape.block_span != 1)) {
        return false;
    }
    /* One axis of rows and one of columns; of a single row, columns alone. */
    return view.count == view.rows + 1 && view.strides[view.count - 1] == 1 &&
           (view.rows == 0 || (view.rows == 1 && view.strides[0] == columns));
}

static bool find_held(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    (void)readers;
    for (uint32_t at = 0; at + 1 < tape->op_count; at++) {
        if (chain_may_take(fusion, at) && chain_may_take(fusion, at + 1) &&
            fuse_holds_rows(&fusion->ops[at]) &&
            quantizes_rows(&fusion->ops[at + 1], &fusion->ops[at])) {
            fusion->ends[at] = at + 2;
        }
    }
    return true;
}

/* ---- chains ---------------------------------------------------------------------------- */

const struct chain *fusion_chain(const struct fusion *fusion, uint32_t at)
{
    const uint32_t place = fusion->chain_of[at];
    const struct chain *chain = place == 0 ? NULL : &fusion->chains[place - 1];

    return chain == NULL || chain->ats[chain->count - 1] != at ? NULL : chain;
}

bool chain_may_take(const struct fusion *fusion, uint32_t at)
{
    return fusion->chain_of[at] == 0 && fusion->ends[at] == at + 1;
}

static bool is_among(const uint32_t *ids, uint32_t count, uint32_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* Does an operation read a tensor, or another that lies in the same whole? */
static bool reads(const struct fusion *fusion, const struct op *op, uint32_t id)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (fusion->holders[op->inputs[i]] == fusion->holders[id]) {
            return true;
        }
    }
    return false;
}

static uint32_t readers_among(const struct fusion *fusion, const uint32_t *ats, uint32_t count,
                              uint32_t id)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++) {
        found += reads(fusion, &fusion->ops[ats[i]], id);
    }
    return found;
}

/* Is a tensor read by others than these operations only behind the last of them? */
static bool is_read_behind(const struct fusion *fusion, const struct readers *readers,
                           const uint32_t *ats, uint32_t count, uint32_t id)
{
    const uint32_t maker = ats[count - 1];

    for (uint32_t at = readers->first[id]; at < maker && readers->first[id] != NEVER; at++) {
        if (reads(fusion, &fusion->ops[at], id) && !is_among(ats, count, at)) {
            return false;
        }
    }
    return true;
}

/* May a tensor be made where the last operation is, though another of them made it? */
static bool may_be_late(const struct fusion *fusion, const struct readers *readers,
                        const uint32_t *ats, uint32_t count, uint32_t id)
{
    return (!fusion->facts.in_legs || !readers->asked[id]) &&
           is_read_behind(fusion, readers, ats, count, id);
}

bool chain_closed(const struct fusion *fusion, const struct readers *readers, const uint32_t *ats,
                  uint32_t count, const uint32_t *made, uint32_t made_count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct op *op = &fusion->ops[ats[i]];

        for (uint32_t j = 0; j < op->output_count; j++) {
            const uint32_t id = op->outputs[j];

            if (is_among(made, made_count, id)
                    ? i + 1 < count && !may_be_late(fusion, readers, ats, count, id)
                    : readers->kept[id] ||
                          readers_among(fusion, ats, count, id) != readers->count[id]) {
                return false;
            }
        }
    }
    return true;
}

bool chain_add(struct fusion *fusion, const uint32_t *ats, uint32_t count, const struct op *maker,
               enum device_result (*launch)(const struct launcher *, const struct chain *))
{
    struct chain *chains =
        realloc(fusion->chains, ((size_t)fusion->chain_count + 1) * sizeof(*chains));
    struct chain *chain;

    assert(count > 0 && count <= CHAIN_OPS_MAX);
    if (chains == NULL) {
        return false;
    }
    fusion->chains = chains;
    chain = &chains[fusion->chain_count++];
    *chain = (struct chain){.launch = launch, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        struct op *op = &fusion->ops[ats[i]];

        assert(chain_may_take(fusion, ats[i]) && (i == 0 || ats[i - 1] < ats[i]));
        fusion->chain_of[ats[i]] = fusion->chain_count;
        chain->ats[i] = ats[i];
        chain->ops[i] = *op;
        op->input_count = 0;
        op->output_count = 0;
    }
    fusion->ops[ats[count - 1]] = *maker;
    return true;
}

/* ---- all of it ---------------------------------------------------------------------- */

static bool is_free(const struct fusion *fusion, uint32_t way)
{
    return (fusion->facts.barred >> way & 1) == 0;
}

/* The readers, as they are now. */
static bool find_anew(struct readers *readers, const struct fusion *fusion, const struct tape *tape)
{
    readers_release(readers);
    return readers_find(readers, fusion, tape);
}

/* In this order: what one has taken, the next ones leave. */
static const struct {
    uint32_t way; /* WAY_COUNT: no way of its own, never barred */
    bool (*find)(struct fusion *fusion, const struct tape *tape, struct readers *readers);
} finders[] = {
    {WAY_COUNT, find_repeated},
    {WAY_VIEWS, fuse_find_views},
    {WAY_ENTROPY, fuse_find_entropy},
    {WAY_LISTS, fuse_find_lists},
    {WAY_ATTENTION, fuse_find_attention},
    {WAY_EPILOGUE, fuse_find_epilogues},
    {WAY_HELD, find_held},
    {WAY_SUMS, fuse_find_sums},
    {WAY_STRIPS, fuse_find_strips},
};

static bool find_all(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    for (size_t i = 0; i < sizeof(finders) / sizeof(finders[0]); i++) {
        if ((finders[i].way == WAY_COUNT || is_free(fusion, finders[i].way)) &&
            (!find_anew(readers, fusion, tape) || !finders[i].find(fusion, tape, readers))) {
            return false;
        }
    }
    if (!find_anew(readers, fusion, tape)) {
        return false;
    }
    fuse_leave_hidden(fusion, readers);
    return true;
}

/* Room for the copy, where every operation is alone. */
static bool begin(struct fusion *fusion, const struct tape *tape)
{
    const size_t count = (size_t)tape->op_count + 1;
    const size_t tensors = (size_t)tape->tensor_count + 1;

    fusion->op_count = tape->op_count;
    fusion->tensor_count = tape->tensor_count;
    fusion->holders = malloc(tensors * sizeof(*fusion->holders));
    fusion->offsets = calloc(tensors, sizeof(*fusion->offsets));
    fusion->ops = malloc(count * sizeof(*fusion->ops));
    fusion->ends = malloc(count * sizeof(*fusion->ends));
    fusion->chain_of = calloc(count, sizeof(*fusion->chain_of));
    if (fusion->ops == NULL || fusion->ends == NULL || fusion->chain_of == NULL ||
        fusion->holders == NULL || fusion->offsets == NULL) {
        return false;
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        fusion->holders[id] = id;
    }
    memcpy(fusion->ops, tape->ops, tape->op_count * sizeof(*fusion->ops));
    for (uint32_t at = 0; at < tape->op_count; at++) {
        fusion->ends[at] = at + 1;
    }
    return true;
}

enum status fusion_build(struct fusion *fusion, const struct tape *tape,
                         const struct fusion_facts *facts, struct error *error)
{
    const struct launcher nothing = {.tape = tape};
    struct readers readers = {.first = NULL};
    bool there;

    *fusion = (struct fusion){.facts = *facts};
    there = begin(fusion, tape) && find_all(fusion, tape, &readers);
    readers_release(&readers);
    if (!there) {
        fusion_release(fusion);
        return error_set(error, STATUS_NO_MEMORY, "no memory to look through %u operations",
                         tape->op_count);
    }
    fuse_lists_write(fusion, &nothing, NULL, NULL);
    return STATUS_OK;
}

void fusion_release(struct fusion *fusion)
{
    free(fusion->ops);
    free(fusion->ends);
    free(fusion->holders);
    free(fusion->offsets);
    free(fusion->chain_of);
    free(fusion->chains);
    memset(fusion, 0, sizeof(*fusion));
}

/* ---- units and the plan -------------------------------------------------------------- */

struct region {
    uint64_t first;
    uint64_t end;
    bool in_state;
    bool there;
};

/* Of what a tensor lies in: its own rows lie between others'. */
static struct region region_of(const struct tape *tape, const struct fusion *fusion,
                               const struct plan *plan, const struct plan_hooks *hooks,
                               const struct op *maker, uint32_t tensor)
{
    const uint32_t id = fusion->holders[tensor];
    struct region region = {.in_state = plan->in_state[id],
                            .there = plan->places[id] != PLAN_ABSENT};
    uint64_t size = tape->tensors[id].count * dtype_size(tape->tensors[id].dtype);

    for (uint32_t i = 0; maker != NULL && i < maker->output_count; i++) {
        if (maker->outputs[i] == id && hooks->output_size != NULL) {
            size = hooks->output_size(hooks->context, maker, i, tape->tensors);
        }
    }
    region.first = plan->places[id];
    region.end = region.first + size;
    return region;
}

static bool overlap(const struct region *a, const struct region *b)
{
    return a->there && b->there && a->in_state == b->in_state && a->first < b->end &&
           b->first < a->end;
}

/* Does an operation of a unit write where another one reads or writes something else? */
static bool disturbs(const struct tape *tape, const struct fusion *fusion, const struct plan *plan,
                     const struct plan_hooks *hooks, uint32_t writer, uint32_t other)
{
    const struct op *op = &fusion->ops[writer];
    const struct op *to = &fusion->ops[other];

    for (uint32_t i = 0; i < op->output_count; i++) {
        const struct region made = region_of(tape, fusion, plan, hooks, op, op->outputs[i]);

        for (uint32_t j = 0; j < to->input_count; j++) {
            const struct region read = region_of(tape, fusion, plan, hooks, NULL, to->inputs[j]);

            if (to->inputs[j] != op->outputs[i] && overlap(&made, &read)) {
                return true;
            }
        }
        for (uint32_t j = 0; j < to->output_count; j++) {
            const struct region written = region_of(tape, fusion, plan, hooks, to, to->outputs[j]);

            if (overlap(&made, &written)) {
                return true;
            }
        }
    }
    return false;
}

static bool unit_holds(const struct tape *tape, const struct fusion *fusion,
                       const struct plan *plan, const struct plan_hooks *hooks, uint32_t first,
                       uint32_t end)
{
    for (uint32_t at = first; at < end; at++) {
        if (!plan->runs[at]) {
            return false;
        }
        for (uint32_t other = first; other < end; other++) {
            if (other != at && disturbs(tape, fusion, plan, hooks, at, other)) {
                return false;
            }
        }
    }
    return true;
}

void fusion_check(struct fusion *fusion, const struct tape *tape, const struct plan *plan,
                  const struct plan_hooks *hooks)
{
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        if (fusion->ends[at] > at + 1 &&
            !unit_holds(tape, fusion, plan, hooks, at, fusion->ends[at])) {
            fusion->ends[at] = at + 1;
        }
    }
}

/* ---- the device ---------------------------------------------------------------------- */

enum status fusion_upload(enum device_result *result, struct fusion *fusion,
                          const struct launcher *launcher, void *device_memory, struct error *error)
{
    uint8_t *host;

    *result = DEVICE_OK;
    if (fusion->size == 0) {
        return STATUS_OK;
    }
    host = calloc(1, fusion->size);
    if (host == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for lists of %u operations",
                         fusion->op_count);
    }
    fuse_lists_write(fusion, launcher, host, device_memory);
    *result = launcher->calls->upload(launcher->device, device_memory, host, fusion->size);
    free(host);
    return STATUS_OK;
}
