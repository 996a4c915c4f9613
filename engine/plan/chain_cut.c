/* chain_cut.c - see chain_cut.h. */
#include "engine/plan/chain_cut.h"

#include <stdlib.h>
#include <string.h>

uint32_t chain_place(const struct chain *chain, uint32_t op)
{
    for (uint32_t place = 0; place < chain->count; place++) {
        if (chain->ops[place] == op) {
            return place;
        }
    }
    return CHAIN_NONE;
}

/* ---- how it is cut ------------------------------------------------------------- */

/* What the operations of a chain say of one tensor that the chain makes. */
struct known_view {
    uint32_t id;
    struct slice_view view;
};

struct cutter {
    const struct tape *tape;
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

static bool is_made(const struct cutter *cutter, uint32_t id)
{
    for (uint32_t place = 0; place < cutter->chain->count; place++) {
        const struct op *op = &cutter->tape->ops[cutter->chain->ops[place]];

        for (uint32_t i = 0; i < op->output_count; i++) {
            if (op->outputs[i] == id) {
                return true;
            }
        }
    }
    return false;
}

/* Notes the views of what the chain makes. False: another operation says otherwise, or an output is
 * not cut. */
static bool note_views(struct cutter *cutter, uint32_t place, const struct slice_view *views)
{
    const struct tape *tape = cutter->tape;
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
        if (known == NULL && is_made(cutter, id)) {
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

        if (lengths[axis] < cutter->level->length) {
            continue; /* an axis of one may have no stride */
        }
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
    const struct op *op = &cutter->tape->ops[cutter->chain->ops[place]];

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

bool chain_cut_is_cut(const struct chain_level *level)
{
    return level->step < level->length;
}

/* Is a part of a part one of runs of the whole? */
static bool views_nest(const struct chain *chain, const struct cutter *cutter)
{
    for (uint32_t place = 0; place < chain->count && chain_cut_is_cut(&chain->levels[0]); place++) {
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

static bool cut_levels(struct chain *chain, struct cutter *cutter, uint32_t seed,
                       const uint32_t axes[CHAIN_LEVELS])
{
    const struct tape *tape = cutter->tape;

    for (uint32_t place = 0; place < chain->count; place++) {
        slice_whole(&cutter->wholes[place], tape, chain->ops[place]);
    }
    for (uint32_t number = 0; number < CHAIN_LEVELS; number++) {
        cutter->level = &chain->levels[number];
        cutter->known_count = 0;
        memset(cutter->cut, 0, sizeof(cutter->cut));
        if (!chain_cut_is_cut(cutter->level)) {
            continue;
        }
        if (!cut_level(cutter, seed, axes[number]) ||
            (number == 0 && chain_cut_is_cut(&chain->levels[1]) && !views_nest(chain, cutter))) {
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

bool chain_cut_levels(struct chain *chain, const struct tape *tape, uint32_t seed,
                      const uint32_t axes[CHAIN_LEVELS])
{
    struct cutter cutter = {.tape = tape, .chain = chain};
    bool cut = false;

    cutter.wholes = malloc(chain->count * sizeof(*cutter.wholes));
    if (cutter.wholes != NULL) {
        cut = cut_levels(chain, &cutter, seed, axes);
        free(cutter.wholes);
    }
    return cut;
}

bool chain_cut_reach(bool reached[CHAIN_OPS_MAX], struct chain *chain, const struct tape *tape,
                     uint32_t seed, uint32_t axis)
{
    struct cutter cutter = {.tape = tape, .chain = chain, .level = &chain->levels[0]};

    cutter.wholes = malloc(chain->count * sizeof(*cutter.wholes));
    if (cutter.wholes == NULL) {
        return false;
    }
    for (uint32_t place = 0; place < chain->count; place++) {
        slice_whole(&cutter.wholes[place], tape, chain->ops[place]);
    }
    (void)cut_level(&cutter, seed, axis);
    memcpy(reached, cutter.cut, sizeof(cutter.cut));
    free(cutter.wholes);
    return true;
}

/* ---- slices ---------------------------------------------------------------------- */

uint64_t chain_cut_slices(const struct chain_level *level)
{
    return (level->length + level->step - 1) / level->step;
}

void chain_cut_part(struct slice *part, struct slice_view views[SLICE_TENSORS_MAX],
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

        if (!chain_cut_is_cut(level)) {
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
