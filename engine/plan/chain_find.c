/* chain_find.c - see chain_find.h. */
#include "engine/plan/chain_find.h"

#include <stdlib.h>
#include <string.h>

#include "engine/plan/derived.h"

/* ---- who makes and reads what --------------------------------------------- */

static void note_readers(struct chain_finder *finder)
{
    const struct tape *tape = finder->tape;
    uint32_t *from = finder->reader_from;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].input_count; i++) {
            from[tape->ops[at].inputs[i] + 1]++;
        }
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        from[id + 1] += from[id];
    }
    /* Backwards, so that each tensor's end moves down to its beginning. */
    for (uint32_t at = tape->op_count; at-- > 0;) {
        for (uint32_t i = tape->ops[at].input_count; i-- > 0;) {
            finder->readers[--from[tape->ops[at].inputs[i] + 1]] = at;
        }
    }
    /* Now from[id + 1] is where id begins. */
    memmove(from, from + 1, tape->tensor_count * sizeof(*from));
    from[tape->tensor_count] = 0;
    for (uint32_t at = 0; at < tape->op_count; at++) {
        from[tape->tensor_count] += tape->ops[at].input_count;
    }
}

static void note_lasting(struct chain_finder *finder)
{
    const struct tape *tape = finder->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        finder->lasting[id] = tape->tensors[id].role == ROLE_OUTPUT;
        finder->makers[id] = CHAIN_NONE;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        finder->lasting[tape->states[i].after] = true;
    }
    if (tape->loss != TENSOR_NONE) {
        finder->lasting[tape->loss] = true;
    }
    derived_mark_carries(finder->lasting, tape);
    for (uint32_t at = 0; at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            finder->makers[tape->ops[at].outputs[i]] = at;
        }
    }
}

bool chain_finder_open(struct chain_finder *finder, const struct tape *tape,
                       const struct chain_limits *limits)
{
    const size_t tensors = (size_t)tape->tensor_count + 2;
    const size_t ops = (size_t)tape->op_count + 1;

    *finder = (struct chain_finder){.tape = tape, .limits = *limits};
    finder->makers = malloc(tensors * sizeof(*finder->makers));
    finder->reader_from = calloc(tensors, sizeof(*finder->reader_from));
    finder->readers = malloc(ops * OP_INPUTS_MAX * sizeof(*finder->readers));
    finder->lasting = calloc(tensors, sizeof(*finder->lasting));
    finder->seen = calloc(ops, sizeof(*finder->seen));
    if (finder->makers == NULL || finder->reader_from == NULL || finder->readers == NULL ||
        finder->lasting == NULL || finder->seen == NULL) {
        return false;
    }
    note_lasting(finder);
    note_readers(finder);
    return true;
}

void chain_finder_close(struct chain_finder *finder)
{
    free(finder->makers);
    free(finder->reader_from);
    free(finder->readers);
    free(finder->lasting);
    free(finder->seen);
    *finder = (struct chain_finder){.tape = NULL};
}

uint32_t chain_place(const struct chain *chain, uint32_t op)
{
    for (uint32_t place = 0; place < chain->count; place++) {
        if (chain->ops[place] == op) {
            return place;
        }
    }
    return CHAIN_NONE;
}

/* Does MOVE take elements of this type? */
static bool is_copied(enum dtype dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_U32;
}

static bool is_own(const struct chain *chain, uint32_t op)
{
    const uint32_t place = chain_place(chain, op);

    return place != CHAIN_NONE && chain->parts[place] == CHAIN_OWN;
}

bool chain_leaves(const struct chain *chain, const struct chain_finder *finder, uint32_t id)
{
    const struct tensor *tensor = &finder->tape->tensors[id];
    bool outside = finder->lasting[id];

    if (tensor->dtype != DTYPE_F32 || (!outside && tensor->count == chain->elements)) {
        return false; /* later chains make it again */
    }
    for (uint32_t i = finder->reader_from[id]; i < finder->reader_from[id + 1]; i++) {
        outside = outside || !is_own(chain, finder->readers[i]);
    }
    return outside;
}

/* ---- what large tensors join ------------------------------------------------ */

/* The operations that tensors of one size join, in order. */
struct joined {
    uint32_t count;
    uint32_t ops[CHAINS_MAX * CHAIN_OPS_MAX];
    uint64_t elements;
};

static bool is_large(const struct chain_finder *finder, const struct joined *joined, uint32_t id)
{
    const struct tensor *tensor = &finder->tape->tensors[id];

    return tensor->role == ROLE_TEMPORARY && !finder->lasting[id] &&
           tensor->count == joined->elements;
}

/* A product over batches that makes more than it reads, and more than the limits leave whole. */
static bool makes_large(const struct chain_finder *finder, uint32_t at)
{
    const struct op *op = &finder->tape->ops[at];
    const struct tensor *tensors = finder->tape->tensors;

    return op->kind == OP_CONTRACT &&
           op->attributes[CONTRACT_DIMS] * op->attributes[CONTRACT_DIMS + 1] > 1 &&
           tensors[op->outputs[0]].count >
               tensors[op->inputs[0]].count + tensors[op->inputs[2]].count &&
           (uint64_t)(op->attributes[CONTRACT_DIMS + 4] * op->attributes[CONTRACT_DIMS + 5]) >
               finder->limits.columns &&
           tensor_size(&tensors[op->outputs[0]]) > finder->limits.room;
}

static void reach_op(struct chain_finder *finder, struct joined *joined, uint32_t at)
{
    if (at == CHAIN_NONE || finder->seen[at]) {
        return;
    }
    finder->seen[at] = true;
    if (joined->count < CHAINS_MAX * CHAIN_OPS_MAX) {
        joined->ops[joined->count] = at;
    }
    joined->count++;
}

static void reach_tensor(struct chain_finder *finder, struct joined *joined, uint32_t id)
{
    if (!is_large(finder, joined, id)) {
        return;
    }
    reach_op(finder, joined, finder->makers[id]);
    for (uint32_t i = finder->reader_from[id]; i < finder->reader_from[id + 1]; i++) {
        reach_op(finder, joined, finder->readers[i]);
    }
}

static int compare_ops(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

/* False: too many, or not all in the same loop. */
static bool join_ops(struct joined *joined, struct chain_finder *finder, uint32_t seed)
{
    const struct tape *tape = finder->tape;
    bool together = true;

    *joined = (struct joined){.elements = tape->tensors[tape->ops[seed].outputs[0]].count};
    reach_op(finder, joined, seed);
    for (uint32_t k = 0; k < joined->count && k < CHAINS_MAX * CHAIN_OPS_MAX; k++) {
        const struct op *op = &tape->ops[joined->ops[k]];

        for (uint32_t i = 0; i < op->input_count; i++) {
            reach_tensor(finder, joined, op->inputs[i]);
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            reach_tensor(finder, joined, op->outputs[i]);
        }
        together = together && tape_loop_of(tape, joined->ops[k]) == tape_loop_of(tape, seed);
    }
    if (joined->count > CHAINS_MAX * CHAIN_OPS_MAX || !together) {
        return false;
    }
    qsort(joined->ops, joined->count, sizeof(joined->ops[0]), compare_ops);
    return true;
}

static bool is_joined(const struct joined *joined, uint32_t at)
{
    return bsearch(&at, joined->ops, joined->count, sizeof(at), compare_ops) != NULL;
}

/* ---- one chain --------------------------------------------------------------- */

/* The first operation that reads an output of `at` and is not one of the joined. */
static uint32_t first_outside(const struct chain_finder *finder, const struct joined *joined,
                              uint32_t at)
{
    const struct op *op = &finder->tape->ops[at];
    uint32_t first = CHAIN_NONE;

    for (uint32_t o = 0; o < op->output_count; o++) {
        const uint32_t id = op->outputs[o];

        for (uint32_t i = finder->reader_from[id]; i < finder->reader_from[id + 1]; i++) {
            if (!is_joined(joined, finder->readers[i]) && finder->readers[i] < first) {
                first = finder->readers[i];
            }
        }
    }
    return first;
}

static bool add_op(struct chain *chain, uint32_t op, enum chain_part part)
{
    if (chain->count == CHAIN_OPS_MAX) {
        return false;
    }
    chain->ops[chain->count] = op;
    chain->parts[chain->count++] = part;
    return true;
}

/* Parts of numbers can be put together; parts of integers and exponents stay inside. */
static bool outputs_fit(const struct chain_finder *finder, const struct joined *joined, uint32_t at)
{
    const struct op *op = &finder->tape->ops[at];
    bool fit = true;

    for (uint32_t o = 0; o < op->output_count; o++) {
        const uint32_t id = op->outputs[o];

        if (finder->tape->tensors[id].dtype == DTYPE_F32) {
            continue;
        }
        fit = fit && !finder->lasting[id];
        for (uint32_t i = finder->reader_from[id]; i < finder->reader_from[id + 1]; i++) {
            fit = fit && is_joined(joined, finder->readers[i]);
        }
    }
    return fit;
}

/*
 * The own operations of the next chain. It ends where something else reads what it makes: there a
 * slice is not enough.
 */
static bool take_own(struct chain *chain, const struct chain_finder *finder,
                     const struct joined *joined, uint32_t *next)
{
    uint32_t due = CHAIN_NONE;

    *chain = (struct chain){.first = joined->ops[*next], .elements = joined->elements};
    while (*next < joined->count && joined->ops[*next] < due) {
        const uint32_t at = joined->ops[(*next)++];
        const uint32_t outside = first_outside(finder, joined, at);

        due = outside < due ? outside : due;
        chain->last = at;
        if (!outputs_fit(finder, joined, at) || !add_op(chain, at, CHAIN_OWN)) {
            return false;
        }
    }
    return true;
}

/* Adds what makes the large inputs of the chain, and those that cannot be copied in parts. */
static bool add_makers(struct chain *chain, const struct chain_finder *finder,
                       const struct joined *joined)
{
    const struct tape *tape = finder->tape;

    for (uint32_t k = 0; k < chain->count; k++) {
        const struct op *op = &tape->ops[chain->ops[k]];

        for (uint32_t i = 0; i < op->input_count; i++) {
            const uint32_t id = op->inputs[i];
            const uint32_t maker = finder->makers[id];

            if (maker == CHAIN_NONE ||
                (!is_large(finder, joined, id) && is_copied(tape->tensors[id].dtype))) {
                continue;
            }
            const bool again = is_joined(joined, maker) || chain->parts[k] == CHAIN_AGAIN;
            const uint32_t place = chain_place(chain, maker);

            if (place != CHAIN_NONE && chain->parts[place] == CHAIN_FEED && again) {
                chain->parts[place] = CHAIN_AGAIN;
            } else if (place == CHAIN_NONE &&
                       (tape_loop_of(tape, maker) != tape_loop_of(tape, chain->first) ||
                        !add_op(chain, maker, again ? CHAIN_AGAIN : CHAIN_FEED))) {
                return false;
            }
        }
    }
    return true;
}

/* Puts the operations in order. */
static void sort_ops(struct chain *chain)
{
    for (uint32_t i = 1; i < chain->count; i++) {
        for (uint32_t j = i; j > 0 && chain->ops[j - 1] > chain->ops[j]; j--) {
            const uint32_t op = chain->ops[j];
            const enum chain_part part = chain->parts[j];

            chain->ops[j] = chain->ops[j - 1];
            chain->parts[j] = chain->parts[j - 1];
            chain->ops[j - 1] = op;
            chain->parts[j - 1] = part;
        }
    }
}

/* ---- how it is cut ------------------------------------------------------------- */

/* What the operations of a chain say of one tensor that the chain makes. */
struct known_view {
    uint32_t id;
    struct slice_view view;
};

struct cutter {
    const struct chain_finder *finder;
    struct chain *chain;
    struct chain_level *level;
    struct slice *wholes; /* of the level, per operation */
    bool cut[CHAIN_OPS_MAX];
    struct known_view known[CHAIN_OPS_MAX * OP_OUTPUTS_MAX];
    uint32_t known_count;
};

static bool is_same_view(const struct slice_view *a, const struct slice_view *b)
{
    return a->first == b->first && a->run == b->run && a->count == b->count &&
           (a->count == 1 || a->stride == b->stride);
}

static uint32_t tensor_at(const struct op *op, uint32_t i)
{
    return i < op->input_count ? op->inputs[i] : op->outputs[i - op->input_count];
}

static const struct slice_view *known_of(const struct cutter *cutter, uint32_t id)
{
    for (uint32_t i = 0; i < cutter->known_count; i++) {
        if (cutter->known[i].id == id) {
            return &cutter->known[i].view;
        }
    }
    return NULL;
}

/* Notes the views of what the chain makes. False: another operation says otherwise, or an output is
 * not cut. */
static bool note_views(struct cutter *cutter, uint32_t place, const struct slice_view *views)
{
    const struct tape *tape = cutter->finder->tape;
    const struct op *op = &tape->ops[cutter->chain->ops[place]];

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        const uint32_t id = tensor_at(op, i);
        const struct slice_view *known = known_of(cutter, id);

        if (i >= op->input_count &&
            views[i].run * views[i].count == cutter->wholes[place].tensors[i].count) {
            return false;
        }
        if (known != NULL && !is_same_view(known, &views[i])) {
            return false;
        }
        if (known == NULL && chain_place(cutter->chain, cutter->finder->makers[id]) != CHAIN_NONE) {
            cutter->known[cutter->known_count++] = (struct known_view){id, views[i]};
        }
    }
    return true;
}

static void take_units(struct slice_view *views, const struct cutter *cutter, uint32_t place,
                       uint64_t first, uint64_t last)
{
    struct slice part;

    slice_take(&part, views, &cutter->wholes[place], cutter->level->axes[place],
               first * cutter->level->per[place], last * cutter->level->per[place]);
}

/* Looks for the axis along which tensor i of an operation has the view. */
static bool find_axis(struct cutter *cutter, uint32_t place, uint32_t i,
                      const struct slice_view *wanted)
{
    const struct slice *whole = &cutter->wholes[place];
    uint64_t lengths[SLICE_AXES_MAX];
    const uint32_t axes = slice_axes(lengths, whole);

    for (uint32_t axis = 0; axis < axes; axis++) {
        struct slice_view views[SLICE_TENSORS_MAX];
        struct slice part;

        slice_take(&part, views, whole, axis, 0, 1);
        const uint64_t units = wanted->run / views[i].run;

        if (units * cutter->level->length != lengths[axis] || units * views[i].run != wanted->run) {
            continue;
        }
        cutter->level->axes[place] = axis;
        cutter->level->per[place] = units;
        take_units(views, cutter, place, 0, 1);
        if (is_same_view(&views[i], wanted)) {
            return true;
        }
    }
    return false;
}

/* Cuts an operation as one of its tensors is cut already. */
static bool cut_by_neighbour(struct cutter *cutter, uint32_t place)
{
    const struct op *op = &cutter->finder->tape->ops[cutter->chain->ops[place]];

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        const struct slice_view *known = known_of(cutter, tensor_at(op, i));

        if (known != NULL && find_axis(cutter, place, i, known)) {
            cutter->cut[place] = true;
            return true;
        }
    }
    return false;
}

/* Do all operations agree about the units first .. last-1? */
static bool agree_about(struct cutter *cutter, uint64_t first, uint64_t last)
{
    cutter->known_count = 0;
    for (uint32_t place = 0; place < cutter->chain->count; place++) {
        struct slice_view views[SLICE_TENSORS_MAX];

        take_units(views, cutter, place, first, last);
        if (!note_views(cutter, place, views)) {
            return false;
        }
    }
    return true;
}

/* From the product on, operation by operation. */
static bool cut_level(struct cutter *cutter, uint32_t seed, uint32_t axis)
{
    struct chain_level *level = cutter->level;
    struct slice_view views[SLICE_TENSORS_MAX];
    uint32_t cut = 1;

    level->axes[seed] = axis;
    level->per[seed] = 1;
    cutter->cut[seed] = true;
    take_units(views, cutter, seed, 0, 1);
    if (!note_views(cutter, seed, views)) {
        return false;
    }
    for (uint32_t before = 0; before < cut && cut < cutter->chain->count;) {
        before = cut;
        for (uint32_t place = 0; place < cutter->chain->count; place++) {
            if (!cutter->cut[place] && cut_by_neighbour(cutter, place)) {
                take_units(views, cutter, place, 0, 1);
                if (!note_views(cutter, place, views)) {
                    return false;
                }
                cut++;
            }
        }
    }
    return cut == cutter->chain->count && agree_about(cutter, 0, level->step) &&
           agree_about(cutter, level->length - 1, level->length);
}

static bool is_cut(const struct chain_level *level)
{
    return level->step < level->length;
}

/* As many heads at a time as there is room for; several sequences where all heads of them fit. */
static bool choose_steps(struct chain *chain, const struct chain_finder *finder, uint32_t seed)
{
    const struct op *op = &finder->tape->ops[chain->ops[seed]];
    const uint64_t sequences = (uint64_t)op->attributes[CONTRACT_DIMS];
    const uint64_t heads = (uint64_t)op->attributes[CONTRACT_DIMS + 1];
    const uint64_t head = tensor_size(&finder->tape->tensors[op->outputs[0]]) / (sequences * heads);
    const uint64_t fit = finder->limits.room / head == 0 ? 1 : finder->limits.room / head;

    chain->levels[0].length = sequences;
    chain->levels[0].step = fit < heads ? 1 : fit / heads;
    chain->levels[1].length = heads;
    chain->levels[1].step = fit < heads ? fit : heads;
    if (chain->levels[0].step > sequences) {
        chain->levels[0].step = sequences;
    }
    return is_cut(&chain->levels[0]) || is_cut(&chain->levels[1]);
}

/* Is a part of a part one of runs of the whole? */
static bool views_nest(const struct chain *chain, const struct cutter *cutter)
{
    for (uint32_t place = 0; place < chain->count && is_cut(&chain->levels[0]); place++) {
        const struct slice *whole = &cutter->wholes[place];
        struct slice_view views[SLICE_TENSORS_MAX];

        take_units(views, cutter, place, 0, 1);
        for (uint32_t i = 0; i < whole->op.input_count + whole->op.output_count; i++) {
            if (views[i].count != 1) {
                return false;
            }
        }
    }
    return true;
}

static bool cut_levels(struct chain *chain, struct cutter *cutter, uint32_t seed)
{
    const struct tape *tape = cutter->finder->tape;

    for (uint32_t place = 0; place < chain->count; place++) {
        slice_whole(&cutter->wholes[place], tape, chain->ops[place]);
    }
    for (uint32_t number = 0; number < CHAIN_LEVELS; number++) {
        cutter->level = &chain->levels[number];
        cutter->known_count = 0;
        memset(cutter->cut, 0, sizeof(cutter->cut));
        if (!is_cut(cutter->level)) {
            continue;
        }
        if (!cut_level(cutter, seed, number) ||
            (number == 0 && is_cut(&chain->levels[1]) && !views_nest(chain, cutter))) {
            return false;
        }
        for (uint32_t place = 0; place < chain->count; place++) {
            const struct slice whole = cutter->wholes[place];
            struct slice_view views[SLICE_TENSORS_MAX];

            slice_take(&cutter->wholes[place], views, &whole, cutter->level->axes[place], 0,
                       cutter->level->step * cutter->level->per[place]);
        }
    }
    return true;
}

/* Its first product that makes a large tensor. */
static uint32_t seed_of(const struct chain *chain, const struct chain_finder *finder)
{
    for (uint32_t place = 0; place < chain->count; place++) {
        if (makes_large(finder, chain->ops[place])) {
            return place;
        }
    }
    return CHAIN_NONE;
}

/* Is every tensor that comes from outside in parts one that can be copied? */
static bool inputs_fit(const struct chain *chain, const struct chain_finder *finder)
{
    const struct tape *tape = finder->tape;

    for (uint32_t place = 0; place < chain->count; place++) {
        const struct op *op = &tape->ops[chain->ops[place]];
        struct slice_view views[SLICE_TENSORS_MAX];
        struct slice part;

        chain_cut(&part, views, chain, tape, place, 0, 0);
        for (uint32_t i = 0; i < op->input_count; i++) {
            const struct tensor *tensor = &tape->tensors[op->inputs[i]];

            if (chain_place(chain, finder->makers[op->inputs[i]]) == CHAIN_NONE &&
                part.tensors[i].count != tensor->count && !is_copied(tensor->dtype)) {
                return false;
            }
        }
    }
    return true;
}

static bool cut_chain(struct chain *chain, const struct chain_finder *finder)
{
    const uint32_t seed = seed_of(chain, finder);
    struct cutter cutter = {.finder = finder, .chain = chain};
    bool cut = false;

    if (seed == CHAIN_NONE || !choose_steps(chain, finder, seed)) {
        return false;
    }
    cutter.wholes = malloc(chain->count * sizeof(*cutter.wholes));
    if (cutter.wholes != NULL) {
        cut = cut_levels(chain, &cutter, seed);
        free(cutter.wholes);
    }
    return cut && inputs_fit(chain, finder);
}

/* ---- all chains ----------------------------------------------------------------- */

static uint32_t chains_of(struct chain *chains, const struct chain_finder *finder,
                          const struct joined *joined)
{
    uint32_t count = 0;

    for (uint32_t next = 0; next < joined->count; count++) {
        if (count == CHAINS_MAX || !take_own(&chains[count], finder, joined, &next) ||
            !add_makers(&chains[count], finder, joined)) {
            return 0;
        }
        sort_ops(&chains[count]);
        if (!cut_chain(&chains[count], finder)) {
            return 0;
        }
    }
    return count;
}

uint32_t chain_find(struct chain chains[CHAINS_MAX], struct chain_finder *finder, uint32_t *at)
{
    while (*at < finder->tape->op_count) {
        const uint32_t seed = (*at)++;
        struct joined joined;

        if (finder->seen[seed] || !makes_large(finder, seed) || !join_ops(&joined, finder, seed)) {
            continue;
        }
        const uint32_t count = chains_of(chains, finder, &joined);

        if (count > 0) {
            return count;
        }
    }
    return 0;
}

/* ---- slices ---------------------------------------------------------------------- */

uint64_t chain_slices(const struct chain_level *level)
{
    return (level->length + level->step - 1) / level->step;
}

void chain_cut(struct slice *part, struct slice_view views[SLICE_TENSORS_MAX],
               const struct chain *chain, const struct tape *tape, uint32_t place, uint64_t i,
               uint64_t j)
{
    const uint64_t slices[CHAIN_LEVELS] = {i, j};
    struct slice whole;

    slice_whole(part, tape, chain->ops[place]);
    for (uint32_t k = 0; k < SLICE_TENSORS_MAX; k++) {
        views[k] = (struct slice_view){0, part->tensors[k].count, part->tensors[k].count, 1};
    }
    for (uint32_t number = 0; number < CHAIN_LEVELS; number++) {
        const struct chain_level *level = &chain->levels[number];
        const uint64_t first = slices[number] * level->step;
        const uint64_t end =
            first + level->step < level->length ? first + level->step : level->length;
        struct slice_view inner[SLICE_TENSORS_MAX];

        if (!is_cut(level)) {
            continue;
        }
        whole = *part;
        slice_take(part, inner, &whole, level->axes[place], first * level->per[place],
                   end * level->per[place]);
        for (uint32_t k = 0; k < whole.op.input_count + whole.op.output_count; k++) {
            inner[k].first += views[k].first;
            views[k] = inner[k];
        }
    }
}
