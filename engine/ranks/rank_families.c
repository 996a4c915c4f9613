/* rank_families.c - see rank_families.h. */
#include "engine/ranks/rank_families.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/plan/lazy.h"
#include "engine/plan/slice.h"
#include "engine/ranks/ranks_plan.h"

#define LEAF_SIZE 1024 /* bytes of a leaf of a state (proofs/hash/merkle.h) */

/* What is known of a tensor, and, where it is a root, of those that are cut like it. */
struct member {
    uint32_t parent;  /* of those that are cut alike; a root is its own */
    uint32_t cluster; /* likewise of families that are on one rank together; of roots */
    uint32_t maker;   /* an operation, or TENSOR_NONE */
    uint64_t count;   /* of a root: of its largest tensor */
    uint64_t unit;    /* of a root: elements of that */
    bool in_parts;    /* of a root: ranks have parts of it */
    bool whole;       /* of a root: on one rank */
    bool arrives;     /* it is the next value of a state that the body reads: all get it whole */
};

struct family_finder {
    struct rank_places *places;
    const struct tape *whole;
    struct member *members;
    struct lazy lazy;
    uint32_t lazily; /* a tensor that only some steps need; TENSOR_NONE: there is none */
    bool again;      /* something has changed: look once more */
};

bool rank_families_behind(const struct tape *whole, uint32_t op)
{
    const struct repeat *repeat = &whole->brief->repeat;
    const uint32_t item = whole->origins[op].item;

    return item >= repeat->first + repeat->op_count && item < whole->brief->op_count;
}

void rank_families_in_body(bool *in_body, const struct tape *whole)
{
    for (uint32_t k = 0; k < whole->brief->repeat.carry_count; k++) {
        in_body[whole->brief->repeat.carries[k].start] = true;
    }
    for (uint32_t at = 0; at < whole->op_count; at++) {
        for (uint32_t i = 0; !rank_families_behind(whole, at) && i < whole->ops[at].input_count;
             i++) {
            in_body[whole->ops[at].inputs[i]] = true;
        }
    }
}

/* ---- sets of tensors -------------------------------------------------------------------- */

static uint32_t root_of(struct family_finder *finder, uint32_t tensor)
{
    struct member *members = finder->members;

    while (members[tensor].parent != tensor) {
        members[tensor].parent = members[members[tensor].parent].parent;
        tensor = members[tensor].parent;
    }
    return tensor;
}

static uint32_t cluster_of(struct family_finder *finder, uint32_t root)
{
    while (finder->members[root].cluster != root) {
        root = finder->members[root].cluster;
    }
    return root;
}

/* The smaller id becomes the root, so that all ranks find the same. */
static void join_families(struct family_finder *finder, uint32_t a, uint32_t b)
{
    const uint32_t one = root_of(finder, a);
    const uint32_t other = root_of(finder, b);
    struct member *root = &finder->members[one < other ? one : other];
    struct member *child = &finder->members[one < other ? other : one];

    if (one != other) {
        child->parent = one < other ? one : other;
        root->count = child->count > root->count ? child->count : root->count;
    }
}

static void join_clusters(struct family_finder *finder, uint32_t a, uint32_t b)
{
    const uint32_t one = cluster_of(finder, root_of(finder, a));
    const uint32_t other = cluster_of(finder, root_of(finder, b));

    finder->members[one < other ? other : one].cluster = one < other ? one : other;
}

/* ---- what can be cut -------------------------------------------------------------------- */

static bool is_product(enum op_kind kind)
{
    return kind == OP_QUANTIZE || kind == OP_CONTRACT || kind == OP_EQUILIBRATE;
}

static uint32_t tensor_at(const struct op *op, uint32_t slot)
{
    return slot < op->input_count ? op->inputs[slot] : op->outputs[slot - op->input_count];
}

/* Of the first unit: is each tensor whole, or one run that all others continue? */
static bool is_cut_in_runs(const struct slice *whole, const struct slice *part,
                           const struct slice_view *views, uint64_t units)
{
    const struct op *op = &whole->op;
    uint32_t cut = 0;

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        if (part->tensors[i].count == whole->tensors[i].count) {
            if (i >= op->input_count || is_product(op->kind)) {
                return false;
            }
        } else if (views[i].count != 1 || views[i].first != 0 ||
                   views[i].run * units != whole->tensors[i].count) {
            return false;
        } else {
            cut += i < op->input_count;
        }
    }
    return cut > 0;
}

/* The outermost axis of more than one unit, where it cuts every tensor into runs. */
static bool find_axis(struct family_finder *finder, uint32_t at)
{
    struct rank_op *found = &finder->places->ops[at];
    struct slice_view views[SLICE_TENSORS_MAX];
    uint64_t lengths[SLICE_AXES_MAX];
    struct slice whole;
    struct slice part;
    uint32_t axes;

    slice_whole(&whole, finder->whole, at);
    axes = slice_axes(lengths, &whole);
    for (uint32_t axis = 0; axis < axes; axis++) {
        if (lengths[axis] < 2) {
            if (is_product(whole.op.kind)) {
                return false; /* only a batch of products is cut */
            }
            continue;
        }
        slice_take(&part, views, &whole, axis, 0, 1);
        found->axis = axis;
        found->units = lengths[axis];
        return is_cut_in_runs(&whole, &part, views, lengths[axis]);
    }
    return false;
}

/* Is the tensor in this slot cut with the operation? */
static bool is_cut_slot(const struct family_finder *finder, uint32_t at, uint32_t slot)
{
    struct slice_view views[SLICE_TENSORS_MAX];
    struct slice whole;
    struct slice part;

    slice_whole(&whole, finder->whole, at);
    slice_take(&part, views, &whole, finder->places->ops[at].axis, 0, 1);
    return part.tensors[slot].count != whole.tensors[slot].count;
}

static void join_cut_slots(struct family_finder *finder, uint32_t at)
{
    const struct op *op = &finder->whole->ops[at];

    for (uint32_t slot = 0; slot < op->input_count; slot++) {
        if (is_cut_slot(finder, at, slot)) {
            for (uint32_t i = 0; i < op->output_count; i++) {
                join_families(finder, op->inputs[slot], op->outputs[i]);
            }
        }
    }
}

/* Only some steps need it, or it chooses what they have found. */
static bool is_lazy(const struct family_finder *finder, uint32_t at)
{
    const struct op *op = &finder->whole->ops[at];

    if (finder->lazy.ops == NULL) {
        return false;
    }
    if (op->kind == OP_SELECT && op->inputs[0] == finder->lazy.condition) {
        const uint32_t maker = finder->members[op->inputs[1]].maker;

        return maker != TENSOR_NONE && finder->lazy.ops[maker];
    }
    return finder->lazy.ops[at];
}

/* All of it is one family, whole on one rank. */
static void take_lazy(struct family_finder *finder, uint32_t at)
{
    const struct op *op = &finder->whole->ops[at];

    for (uint32_t i = 0; i < op->output_count; i++) {
        finder->lazily = finder->lazily == TENSOR_NONE ? op->outputs[i] : finder->lazily;
        join_families(finder, finder->lazily, op->outputs[i]);
    }
    if (op->kind == OP_SELECT && op->inputs[0] == finder->lazy.condition &&
        finder->whole->tensors[op->inputs[2]].role == ROLE_STATE) {
        join_families(finder, finder->lazily, op->inputs[2]);
    }
    finder->places->ops[at].where = RANK_ONE;
}

static void join_all(struct family_finder *finder)
{
    for (uint32_t at = 0; at < finder->whole->op_count; at++) {
        struct rank_op *op = &finder->places->ops[at];

        if (!rank_families_behind(finder->whole, at)) {
            continue;
        }
        op->where = RANK_ALL;
        if (is_lazy(finder, at)) {
            take_lazy(finder, at);
        } else if (find_axis(finder, at)) {
            op->where = RANK_CUT; /* if it turns out that ranks have parts of what it reads */
            join_cut_slots(finder, at);
        }
    }
    if (finder->lazily != TENSOR_NONE) {
        struct member *root = &finder->members[root_of(finder, finder->lazily)];

        root->in_parts = root->whole = true;
    }
}

/* ---- what ranks have parts of ----------------------------------------------------------- */

static void mark_parts(struct family_finder *finder, uint32_t tensor)
{
    struct member *root = &finder->members[root_of(finder, tensor)];

    finder->again = finder->again || !root->in_parts || !finder->places->cut[tensor];
    root->in_parts = true;
    finder->places->cut[tensor] = true;
}

/* Does an operation that cannot be cut need the input on its own rank: not a single number, and not
 * the sums of rows of what is cut, which arrive everywhere? */
static bool is_drawn_to(struct family_finder *finder, uint32_t tensor)
{
    const struct member *root = &finder->members[root_of(finder, tensor)];
    const uint32_t maker = finder->members[tensor].maker;
    const uint64_t count = finder->whole->tensors[tensor].count;

    if (!finder->places->cut[tensor] || finder->members[tensor].arrives) {
        return false;
    }
    return (count > 1 && count == root->count) ||
           (maker != TENSOR_NONE && is_product(finder->whole->ops[maker].kind) &&
            finder->whole->ops[maker].kind != OP_CONTRACT);
}

static void take_whole(struct family_finder *finder, uint32_t at)
{
    const struct op *op = &finder->whole->ops[at];
    uint32_t first = TENSOR_NONE;

    for (uint32_t slot = 0; slot < op->input_count + op->output_count; slot++) {
        const uint32_t tensor = tensor_at(op, slot);

        if (slot >= op->input_count || is_drawn_to(finder, tensor)) {
            struct member *root = &finder->members[root_of(finder, tensor)];

            first = first == TENSOR_NONE ? tensor : first;
            finder->again = finder->again || !root->whole;
            root->whole = true;
            join_clusters(finder, first, tensor);
        }
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        mark_parts(finder, op->outputs[i]);
    }
}

static void look_at_op(struct family_finder *finder, uint32_t at)
{
    const struct op *op = &finder->whole->ops[at];
    struct rank_op *place = &finder->places->ops[at];
    bool drawn = false;

    if (place->where == RANK_CUT && finder->members[root_of(finder, op->outputs[0])].in_parts) {
        for (uint32_t i = 0; i < op->output_count; i++) {
            mark_parts(finder, op->outputs[i]);
        }
        return;
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        drawn = drawn || is_drawn_to(finder, op->inputs[i]);
    }
    if (drawn) {
        place->where = RANK_ONE;
        take_whole(finder, at);
    }
}

static void find_parts(struct family_finder *finder)
{
    const struct rank_places *places = finder->places;

    for (uint32_t k = 0; k < places->sum_count; k++) {
        mark_parts(finder, places->sums[k]);
    }
    do {
        finder->again = false;
        for (uint32_t at = 0; at < finder->whole->op_count; at++) {
            if (places->ops[at].where == RANK_BODY) {
                continue;
            }
            if (is_lazy(finder, at)) {
                for (uint32_t i = 0; i < finder->whole->ops[at].output_count; i++) {
                    mark_parts(finder, finder->whole->ops[at].outputs[i]);
                }
            } else {
                look_at_op(finder, at);
            }
        }
    } while (finder->again);
    for (uint32_t at = 0; at < finder->whole->op_count; at++) {
        struct rank_op *op = &places->ops[at];

        if (op->where == RANK_CUT && !places->cut[finder->whole->ops[at].outputs[0]]) {
            op->where = RANK_ALL;
        }
    }
}

/* ---- where families are cut ------------------------------------------------------------- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Cuts stand at multiples of so many elements of the largest tensor too. */
static void need_unit(struct member *root, uint64_t unit)
{
    const uint64_t times = unit / common_divisor(root->unit, unit);

    assert(times > 0);
    root->unit = root->unit > root->count / times ? root->count + 1 : root->unit * times;
}

/* At the rows and leaves of a state or a sum. */
static void need_rows(struct family_finder *finder, uint32_t tensor)
{
    const struct tensor *shape = &finder->whole->tensors[tensor];
    struct member *root = &finder->members[root_of(finder, tensor)];
    const uint64_t leaf = LEAF_SIZE / dtype_size(shape->dtype);

    if (root->whole || root->count % shape->count != 0) {
        root->whole = true;
        return;
    }
    need_unit(root, leaf * (root->count / shape->count));
    if (shape->rank > 1) {
        need_unit(root, shape->dims[shape->rank - 1] * (root->count / shape->count));
    }
}

static void find_units(struct family_finder *finder)
{
    const struct tape *whole = finder->whole;

    for (uint32_t at = 0; at < whole->op_count; at++) {
        const struct rank_op *op = &finder->places->ops[at];

        if (op->where == RANK_CUT) {
            struct member *root = &finder->members[root_of(finder, whole->ops[at].outputs[0])];

            need_unit(root, root->count / common_divisor(root->count, op->units));
        }
    }
    for (uint32_t k = 0; k < finder->places->sum_count; k++) {
        need_rows(finder, finder->places->sums[k]);
    }
    for (uint32_t i = 0; i < whole->state_count; i++) {
        if (finder->places->cut[whole->states[i].after]) {
            need_rows(finder, whole->states[i].after);
        }
    }
}

/* ---- families by number ----------------------------------------------------------------- */

static enum status make_families(struct family_finder *finder, uint64_t **sizes,
                                 struct error *error)
{
    struct rank_places *places = finder->places;
    const uint32_t tensors = finder->whole->tensor_count;

    for (uint32_t id = 0; id < tensors; id++) {
        places->families[id] = TENSOR_NONE;
        if (finder->members[id].parent == id && finder->members[id].in_parts) {
            places->families[id] = places->family_count++;
        }
    }
    places->family = calloc((size_t)places->family_count + 1, sizeof(*places->family));
    places->bounds = calloc((size_t)places->family_count * (places->ranks + (size_t)1) + 1,
                            sizeof(*places->bounds));
    *sizes = calloc((size_t)places->family_count + 1, sizeof(**sizes));
    if (places->family == NULL || places->bounds == NULL || *sizes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the shards of %u tensors",
                         tensors);
    }
    for (uint32_t id = 0; id < tensors; id++) {
        const uint32_t root = root_of(finder, id);
        const struct member *member = &finder->members[root];
        const uint32_t number = places->families[root];

        if (!member->in_parts) {
            continue;
        }
        places->families[id] = number;
        if (id == root) {
            places->family[number] = (struct rank_family){
                .count = member->count,
                .unit = member->unit,
                .whole = member->whole,
                .bounds = places->bounds + (size_t)number * (places->ranks + 1)};
        }
        /* A cluster's work stands at its first family, which has the smallest number. */
        if (places->cut[id]) {
            (*sizes)[places->families[cluster_of(finder, root)]] +=
                tensor_size(&finder->whole->tensors[id]);
        }
    }
    return STATUS_OK;
}

static void set_bounds(const struct rank_places *places, struct rank_family *family)
{
    const uint64_t units = family->count / family->unit;

    for (uint32_t rank = 0; rank <= places->ranks; rank++) {
        family->bounds[rank] = family->whole ? (rank <= family->owner ? 0 : family->count)
                                             : units * rank / places->ranks * family->unit;
    }
    family->bounds[places->ranks] = family->count;
}

/* What is whole is dealt out by size. */
static enum status deal_families(struct family_finder *finder, uint64_t *sizes, struct error *error)
{
    struct rank_places *places = finder->places;
    uint32_t *owners = calloc((size_t)places->family_count + 1, sizeof(*owners));
    enum status status = STATUS_OK;

    if (owners == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u families",
                         places->family_count);
    }
    for (uint32_t i = 0; i < places->family_count; i++) {
        struct rank_family *family = &places->family[i];

        assert(family->unit > 0);
        family->whole = family->whole || family->count / family->unit < 2 ||
                        family->count * sizeof(float) < RANKS_SHARD_LEAST;
        sizes[i] = family->whole ? sizes[i] : 0;
    }
    TRY_OUT(ranks_deal(owners, sizes, places->family_count, places->ranks, error));
    for (uint32_t id = 0; id < finder->whole->tensor_count; id++) {
        if (finder->members[id].parent == id && finder->members[id].in_parts) {
            places->family[places->families[id]].owner =
                owners[places->families[cluster_of(finder, id)]];
        }
    }
    for (uint32_t i = 0; i < places->family_count; i++) {
        set_bounds(places, &places->family[i]);
    }
    for (uint32_t at = 0; at < finder->whole->op_count; at++) {
        struct rank_op *op = &places->ops[at];

        if (op->where == RANK_CUT || op->where == RANK_ONE) {
            op->family = places->families[finder->whole->ops[at].outputs[0]];
            op->where = places->family[op->family].whole ? RANK_ONE : RANK_CUT;
        }
    }
out:
    free(owners);
    return status;
}

/* ---- all of it -------------------------------------------------------------------------- */

static void list_sums(struct rank_places *places)
{
    const struct tape *whole = places->whole;

    for (uint32_t at = 0; at < whole->op_count; at++) {
        const struct op_origin *origin = &whole->origins[at];

        if (origin->item >= whole->brief->op_count && origin->instance == 1) {
            places->sums[origin->item - whole->brief->op_count] = whole->ops[at].outputs[0];
        }
    }
}

static void begin_members(struct family_finder *finder)
{
    const struct tape *whole = finder->whole;

    for (uint32_t id = 0; id < whole->tensor_count; id++) {
        finder->members[id] = (struct member){.parent = id,
                                              .cluster = id,
                                              .maker = TENSOR_NONE,
                                              .count = whole->tensors[id].count,
                                              .unit = 1};
    }
    for (uint32_t at = 0; at < whole->op_count; at++) {
        for (uint32_t i = 0; i < whole->ops[at].output_count; i++) {
            finder->members[whole->ops[at].outputs[i]].maker = at;
        }
    }
    for (uint32_t i = 0; i < whole->state_count; i++) {
        finder->members[whole->states[i].after].arrives =
            finder->places->in_body[whole->states[i].before];
    }
}

enum status rank_families_build(struct rank_places *places, struct error *error)
{
    const struct tape *whole = places->whole;
    struct family_finder finder = {.places = places, .whole = whole, .lazily = TENSOR_NONE};
    uint64_t *sizes = NULL;
    enum status status;

    finder.members = malloc(((size_t)whole->tensor_count + 1) * sizeof(*finder.members));
    if (finder.members == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to look at %u tensors",
                         whole->tensor_count);
    }
    TRY_OUT(lazy_find(&finder.lazy, whole, error));
    begin_members(&finder);
    list_sums(places);
    join_all(&finder);
    find_parts(&finder);
    find_units(&finder);
    TRY_OUT(make_families(&finder, &sizes, error));
    TRY_OUT(deal_families(&finder, sizes, error));
out:
    lazy_release(&finder.lazy);
    free(finder.members);
    free(sizes);
    return status;
}
