/* chain.c - see chain.h. */
#include "engine/plan/chain.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/plan/chain_find.h"
#include "engine/plan/derived.h"

/* An input of a slice that was copied from a whole tensor. */
struct copied {
    uint32_t id;
    struct slice_view view;
    uint32_t part;
};

struct chain_rewriter {
    const struct tape *tape;
    struct tape *derived;
    struct derived_room room;
    struct chain_finder finder;
    struct chain *chains;
    uint32_t chain_count;
    uint32_t *owner; /* per operation: the chain whose own it is, or CHAIN_NONE */
    uint32_t *waits; /* per operation: the chain in whose way it stands, behind which it is put */
    bool *late;      /* per tensor: what a chain makes, and what such operations make of it */
    uint32_t *now;   /* per tensor: the one that stands for it in the chain being written */
    uint32_t *whole; /* per tensor: the one that has the slices so far, or TENSOR_NONE */
    struct copied copies[CHAIN_OPS_MAX * OP_INPUTS_MAX]; /* of one slice */
    uint32_t copy_count;
    uint64_t ops;     /* of the rewrite, at most */
    uint64_t tensors; /* likewise */
};

/* ---- which chains ----------------------------------------------------------- */

static uint64_t all_slices(const struct chain *chain)
{
    return chain_cut_slices(&chain->levels[0]) * chain_cut_slices(&chain->levels[1]);
}

static bool is_made_in(const struct chain_rewriter *rewriter, const struct chain *chain,
                       uint32_t id)
{
    const uint32_t maker = rewriter->finder.makers[id];

    return maker != CHAIN_NONE && chain_place(chain, maker) != CHAIN_NONE;
}

/* Adds what all slices of a chain take at most: its operations, a copy of each input from outside,
 * and each output put where it belongs. */
static void count_slices(struct chain_rewriter *rewriter, const struct chain *chain)
{
    uint64_t ops = chain->count;
    uint64_t tensors = 0;

    for (uint32_t place = 0; place < chain->count; place++) {
        const struct op *op = &rewriter->tape->ops[chain->ops[place]];

        for (uint32_t i = 0; i < op->input_count; i++) {
            ops += !is_made_in(rewriter, chain, op->inputs[i]);
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            ops += chain_leaves(chain, &rewriter->finder, op->outputs[i]);
        }
        tensors += op->output_count;
    }
    rewriter->ops += all_slices(chain) * ops;
    rewriter->tensors += all_slices(chain) * (tensors + ops);
}

/* ---- what stands in a chain's way ---------------------------------------------- */

static bool reads_late(const struct chain_rewriter *rewriter, const struct op *op)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (rewriter->late[op->inputs[i]]) {
            return true;
        }
    }
    return false;
}

/* An operation of others between the first and the last of a chain. What reads nothing that the
 * chain makes is there before it; the rest waits for it. False: it cannot. */
static bool let_wait(struct chain_rewriter *rewriter, const struct chain *chain, uint32_t number,
                     uint32_t at)
{
    const struct tape *tape = rewriter->tape;

    if (rewriter->waits[at] != CHAIN_NONE) {
        return false; /* for another chain */
    }
    if (!reads_late(rewriter, &tape->ops[at])) {
        return true;
    }
    rewriter->waits[at] = number;
    return tape_loop_of(tape, at) == tape_loop_of(tape, chain->first);
}

/* Is what an own operation of a chain reads there, before the chain or in it? */
static bool is_ready(const struct chain_rewriter *rewriter, uint32_t at)
{
    const struct op *op = &rewriter->tape->ops[at];
    bool ready = rewriter->waits[at] == CHAIN_NONE;

    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t maker = rewriter->finder.makers[op->inputs[i]];

        ready = ready && (maker == CHAIN_NONE || rewriter->waits[maker] == CHAIN_NONE);
    }
    return ready;
}

static void mark_late(struct chain_rewriter *rewriter, uint32_t at, bool late)
{
    const struct op *op = &rewriter->tape->ops[at];

    for (uint32_t o = 0; o < op->output_count; o++) {
        rewriter->late[op->outputs[o]] = late;
    }
}

/* Notes what waits for a chain. False: the chain reads some of it, or crosses another one. */
static bool note_waits(struct chain_rewriter *rewriter, const struct chain *chain, uint32_t number)
{
    bool crosses = false;
    bool waited = false;
    bool sound = true;

    for (uint32_t at = chain->first; sound && at <= chain->last; at++) {
        const uint32_t place = chain_place(chain, at);
        const bool own = place != CHAIN_NONE && chain->parts[place] == CHAIN_OWN;

        sound = own ? is_ready(rewriter, at) : let_wait(rewriter, chain, number, at);
        crosses = crosses || (!own && rewriter->owner[at] != CHAIN_NONE);
        waited = waited || rewriter->waits[at] == number;
        if (own || rewriter->waits[at] == number) {
            mark_late(rewriter, at, true);
        }
    }
    for (uint32_t at = chain->first; at <= chain->last; at++) {
        mark_late(rewriter, at, false);
    }
    return sound && !(waited && crosses);
}

/* Nothing waits where one of the chains would have to be left. */
static bool all_wait(struct chain_rewriter *rewriter, const struct chain *chains, uint32_t count)
{
    const uint32_t number = rewriter->chain_count;
    bool sound = true;

    for (uint32_t i = 0; sound && i < count; i++) {
        sound = note_waits(rewriter, &chains[i], number + i);
    }
    for (uint32_t at = 0; !sound && at < rewriter->tape->op_count; at++) {
        if (rewriter->waits[at] != CHAIN_NONE && rewriter->waits[at] >= number) {
            rewriter->waits[at] = CHAIN_NONE;
        }
    }
    return sound;
}

/* ---- which chains, continued ------------------------------------------------------ */

/* Adds chains that belong together, unless the tape would be longer than machines take one, or its
 * order forbids it. */
static bool keep_chains(struct chain_rewriter *rewriter, const struct chain *chains, uint32_t count)
{
    const uint64_t ops = rewriter->ops;
    const uint64_t tensors = rewriter->tensors;

    for (uint32_t i = 0; i < count; i++) {
        count_slices(rewriter, &chains[i]);
    }
    if (rewriter->ops > REPEAT_OPS_MAX || rewriter->tensors > REPEAT_TENSORS_MAX ||
        !all_wait(rewriter, chains, count)) {
        rewriter->ops = ops;
        rewriter->tensors = tensors;
        return true;
    }
    struct chain *all =
        realloc(rewriter->chains, ((size_t)rewriter->chain_count + count) * sizeof(*all));

    if (all == NULL) {
        return false;
    }
    rewriter->chains = all;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t place = 0; place < chains[i].count; place++) {
            if (chains[i].parts[place] == CHAIN_OWN) {
                rewriter->owner[chains[i].ops[place]] = rewriter->chain_count;
            }
        }
        all[rewriter->chain_count++] = chains[i];
    }
    return true;
}

/* False: no memory. */
static bool find_all(struct chain_rewriter *rewriter, const struct tape *tape,
                     const struct chain_limits *limits)
{
    const size_t tensors = (size_t)tape->tensor_count + 1;
    struct chain *chains = malloc(CHAINS_MAX * sizeof(*chains));
    bool done = chains != NULL && chain_finder_open(&rewriter->finder, tape, limits);
    uint32_t count = 1;

    rewriter->tape = tape;
    rewriter->ops = tape->op_count;
    rewriter->tensors = tape->tensor_count;
    rewriter->owner = malloc(((size_t)tape->op_count + 1) * sizeof(*rewriter->owner));
    rewriter->waits = malloc(((size_t)tape->op_count + 1) * sizeof(*rewriter->waits));
    rewriter->late = calloc(tensors, sizeof(*rewriter->late));
    rewriter->now = malloc(tensors * sizeof(*rewriter->now));
    rewriter->whole = malloc(tensors * sizeof(*rewriter->whole));
    done = done && rewriter->owner != NULL && rewriter->waits != NULL && rewriter->late != NULL &&
           rewriter->now != NULL && rewriter->whole != NULL;
    for (uint32_t at = 0; done && at < tape->op_count; at++) {
        rewriter->owner[at] = rewriter->waits[at] = CHAIN_NONE;
    }
    for (uint32_t id = 0; done && id < tape->tensor_count; id++) {
        rewriter->now[id] = id;
        rewriter->whole[id] = TENSOR_NONE;
    }
    for (uint32_t at = 0; done && count > 0;) {
        count = chain_find(chains, &rewriter->finder, &at);
        done = count == 0 || keep_chains(rewriter, chains, count);
    }
    free(chains);
    return done;
}

static void release_rewriter(struct chain_rewriter *rewriter)
{
    chain_finder_close(&rewriter->finder);
    free(rewriter->chains);
    free(rewriter->owner);
    free(rewriter->waits);
    free(rewriter->late);
    free(rewriter->now);
    free(rewriter->whole);
}

static bool begin_rewrite(struct chain_rewriter *rewriter)
{
    const struct tape *tape = rewriter->tape;

    rewriter->room = (struct derived_room){tape->op_count + 1, tape->tensor_count + 1};
    rewriter->derived = derived_new(tape, rewriter->room.ops, rewriter->room.tensors);
    return rewriter->derived != NULL;
}

/* Copies an operation that stays as it is; the own operations of a chain read what is new. */
static bool keep_op(struct chain_rewriter *rewriter, uint32_t at)
{
    struct op op = rewriter->tape->ops[at];

    if (!derived_grow(rewriter->derived, &rewriter->room, 1, 0)) {
        return false;
    }
    for (uint32_t i = 0; rewriter->owner[at] != CHAIN_NONE && i < op.input_count; i++) {
        op.inputs[i] = rewriter->now[op.inputs[i]];
    }
    derived_put(rewriter->derived, &op, at, derived_is_again(rewriter->tape, at));
    return true;
}

typedef bool write_function(struct chain_rewriter *rewriter, uint32_t at);

/* Finds the chains and, where there is one, writes the operations one after the other. */
static enum status rewrite_tape(struct tape **derived, const struct tape *tape,
                                const struct chain_limits *limits, write_function *write,
                                struct error *error)
{
    struct chain_rewriter rewriter = {.tape = tape};
    bool done = find_all(&rewriter, tape, limits);

    *derived = NULL;
    if (done && rewriter.chain_count > 0) {
        done = begin_rewrite(&rewriter);
        for (uint32_t at = 0; done && at < tape->op_count; at++) {
            done = write(&rewriter, at);
        }
        done = done && derived_take_loops(rewriter.derived, tape);
    }
    release_rewriter(&rewriter);
    if (!done) {
        tape_free(rewriter.derived);
        return error_set(error, STATUS_NO_MEMORY, "no memory to rewrite a tape");
    }
    *derived = rewriter.derived;
    return STATUS_OK;
}

/* ---- what is made again -------------------------------------------------------- */

/* Puts the operations that a chain repeats in front of it. */
static bool repeat_ops(struct chain_rewriter *rewriter, const struct chain *chain)
{
    const struct tape *tape = rewriter->tape;

    for (uint32_t place = 0; place < chain->count; place++) {
        struct op op = tape->ops[chain->ops[place]];

        if (chain->parts[place] != CHAIN_AGAIN) {
            continue;
        }
        if (!derived_grow(rewriter->derived, &rewriter->room, 1, op.output_count)) {
            return false;
        }
        for (uint32_t i = 0; i < op.input_count; i++) {
            op.inputs[i] = rewriter->now[op.inputs[i]];
        }
        for (uint32_t i = 0; i < op.output_count; i++) {
            const uint32_t id = op.outputs[i];

            op.outputs[i] = derived_tensor(rewriter->derived, &tape->tensors[id]);
            rewriter->now[id] = op.outputs[i];
        }
        derived_put(rewriter->derived, &op, chain->ops[place], true);
    }
    return true;
}

/* Behind the chain, what it repeated is again what it was. */
static void forget_ops(struct chain_rewriter *rewriter, const struct chain *chain)
{
    for (uint32_t place = 0; place < chain->count; place++) {
        const struct op *op = &rewriter->tape->ops[chain->ops[place]];

        for (uint32_t i = 0; i < op->output_count; i++) {
            rewriter->now[op->outputs[i]] = op->outputs[i];
        }
    }
}

static bool write_again(struct chain_rewriter *rewriter, uint32_t at)
{
    const uint32_t number = rewriter->owner[at];
    const struct chain *chain = number == CHAIN_NONE ? NULL : &rewriter->chains[number];

    if (chain != NULL && chain->first == at && !repeat_ops(rewriter, chain)) {
        return false;
    }
    if (!keep_op(rewriter, at)) {
        return false;
    }
    if (chain != NULL && chain->last == at) {
        forget_ops(rewriter, chain);
    }
    return true;
}

enum status chain_remake(struct tape **derived, const struct tape *tape,
                         const struct chain_limits *limits, struct error *error)
{
    return rewrite_tape(derived, tape, limits, write_again, error);
}

/* ---- slices ---------------------------------------------------------------------- */

static void set_axes(struct op *op, const struct slice_view *view)
{
    op->attribute_count = MOVE_ATTRIBUTES;
    for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
        op->attributes[MOVE_DIMS + axis] = 1;
        op->attributes[MOVE_STRIDES + axis] = 0;
    }
    op->attributes[MOVE_DIMS + MOVE_AXES - 2] = (int64_t)view->count;
    op->attributes[MOVE_STRIDES + MOVE_AXES - 2] = view->count == 1 ? 0 : (int64_t)view->stride;
    op->attributes[MOVE_DIMS + MOVE_AXES - 1] = (int64_t)view->run;
    op->attributes[MOVE_STRIDES + MOVE_AXES - 1] = view->run == 1 ? 0 : 1;
    op->attributes[MOVE_OFFSET] = (int64_t)view->first;
}

/* The part of a whole tensor that a slice reads: one copy for all its operations. */
static bool copy_part(uint32_t *part, struct chain_rewriter *rewriter, uint32_t id,
                      const struct slice_view *view, const struct tensor *like, uint32_t item)
{
    struct op op = {.kind = OP_MOVE, .input_count = 1, .output_count = 1, .inputs = {id}};

    for (uint32_t i = 0; i < rewriter->copy_count; i++) {
        const struct copied *copy = &rewriter->copies[i];

        if (copy->id == id && memcmp(&copy->view, view, sizeof(*view)) == 0) {
            *part = copy->part;
            return true;
        }
    }
    if (!derived_grow(rewriter->derived, &rewriter->room, 1, 1)) {
        return false;
    }
    set_axes(&op, view);
    *part = op.outputs[0] = derived_tensor(rewriter->derived, like);
    derived_put(rewriter->derived, &op, item, true);
    rewriter->copies[rewriter->copy_count++] = (struct copied){id, *view, *part};
    return true;
}

/* A tensor of one zero, over which the first slice is put: of numbers or of exponents. */
static bool put_zero(uint32_t *zero, struct chain_rewriter *rewriter, uint32_t item)
{
    struct op op = {.kind = OP_FILL, .output_count = 1, .attribute_count = FILL_ATTRIBUTES};
    const struct tensor one = {.dtype = DTYPE_F32, .rank = 1, .dims = {1}, .count = 1};

    if (!derived_grow(rewriter->derived, &rewriter->room, 1, 1)) {
        return false;
    }
    *zero = op.outputs[0] = derived_tensor(rewriter->derived, &one);
    derived_put(rewriter->derived, &op, item, true);
    return true;
}

/* Puts a part where it belongs. The last one makes the tensor that others read. */
static bool place_part(struct chain_rewriter *rewriter, uint32_t id, uint32_t part,
                       const struct slice_view *view, bool last, uint32_t item)
{
    struct op op = {.kind = OP_PLACE, .input_count = 2, .output_count = 1, .inputs = {part}};
    uint32_t *whole = &rewriter->whole[id];

    if ((*whole == TENSOR_NONE && !put_zero(whole, rewriter, item)) ||
        !derived_grow(rewriter->derived, &rewriter->room, 1, 1)) {
        return false;
    }
    op.inputs[1] = *whole;
    set_axes(&op, view);
    op.outputs[0] = last ? id : derived_tensor(rewriter->derived, &rewriter->tape->tensors[id]);
    *whole = op.outputs[0];
    derived_put(rewriter->derived, &op, item, true);
    return true;
}

/* One operation of one slice. */
static bool put_part(struct chain_rewriter *rewriter, const struct chain *chain, uint32_t place,
                     const struct slice *part, const struct slice_view *views)
{
    const struct op *whole = &rewriter->tape->ops[chain->ops[place]];
    const uint32_t item = chain->ops[place];
    struct op op = part->op;

    for (uint32_t i = 0; i < op.input_count; i++) {
        const uint32_t id = whole->inputs[i];

        op.inputs[i] = is_made_in(rewriter, chain, id) ? rewriter->now[id] : id;
        if (!is_made_in(rewriter, chain, id) &&
            part->tensors[i].count != rewriter->tape->tensors[id].count &&
            !copy_part(&op.inputs[i], rewriter, id, &views[i], &part->tensors[i], item)) {
            return false;
        }
    }
    if (!derived_grow(rewriter->derived, &rewriter->room, 1, op.output_count)) {
        return false;
    }
    for (uint32_t i = 0; i < op.output_count; i++) {
        op.outputs[i] = derived_tensor(rewriter->derived, &part->tensors[op.input_count + i]);
        rewriter->now[whole->outputs[i]] = op.outputs[i];
    }
    derived_put(rewriter->derived, &op, item, true);
    return true;
}

static bool put_slice(struct chain_rewriter *rewriter, const struct chain *chain, uint64_t i,
                      uint64_t j, bool last)
{
    rewriter->copy_count = 0;
    for (uint32_t place = 0; place < chain->count; place++) {
        const struct op *op = &rewriter->tape->ops[chain->ops[place]];
        struct slice_view views[SLICE_TENSORS_MAX];
        struct slice part;

        chain_cut_part(&part, views, chain, rewriter->tape, place, i, j);
        if (!put_part(rewriter, chain, place, &part, views)) {
            return false;
        }
        for (uint32_t o = 0; o < op->output_count && chain->parts[place] == CHAIN_OWN; o++) {
            const uint32_t id = op->outputs[o];

            if (chain_leaves(chain, &rewriter->finder, id) &&
                !place_part(rewriter, id, rewriter->now[id], &views[op->input_count + o], last,
                            chain->ops[place])) {
                return false;
            }
        }
    }
    return true;
}

static bool put_chain(struct chain_rewriter *rewriter, const struct chain *chain)
{
    const uint64_t rows = chain_cut_slices(&chain->levels[0]);
    const uint64_t columns = chain_cut_slices(&chain->levels[1]);

    for (uint64_t i = 0; i < rows; i++) {
        for (uint64_t j = 0; j < columns; j++) {
            if (!put_slice(rewriter, chain, i, j, i + 1 == rows && j + 1 == columns)) {
                return false;
            }
        }
    }
    forget_ops(rewriter, chain);
    return true;
}

/* Puts what stood in the way of a chain behind it. */
static bool put_waiting(struct chain_rewriter *rewriter, uint32_t number)
{
    const struct chain *chain = &rewriter->chains[number];

    for (uint32_t at = chain->first; at < chain->last; at++) {
        if (rewriter->waits[at] == number && !keep_op(rewriter, at)) {
            return false;
        }
    }
    return true;
}

static bool write_slices(struct chain_rewriter *rewriter, uint32_t at)
{
    const uint32_t number = rewriter->owner[at];

    if (number == CHAIN_NONE) {
        return rewriter->waits[at] != CHAIN_NONE || keep_op(rewriter, at);
    }
    return rewriter->chains[number].last != at ||
           (put_chain(rewriter, &rewriter->chains[number]) && put_waiting(rewriter, number));
}

enum status chain_slice(struct tape **derived, const struct tape *tape,
                        const struct chain_limits *limits, struct error *error)
{
    return rewrite_tape(derived, tape, limits, write_slices, error);
}

enum status chain_mark_inside(bool *inside, const struct tape *tape,
                              const struct chain_limits *limits, struct error *error)
{
    struct chain_rewriter rewriter = {.tape = tape};
    const bool done = find_all(&rewriter, tape, limits);

    for (uint32_t at = 0; done && at < tape->op_count; at++) {
        const uint32_t number = rewriter.owner[at];

        for (uint32_t i = 0; number != CHAIN_NONE && i < tape->ops[at].output_count; i++) {
            const uint32_t id = tape->ops[at].outputs[i];

            inside[id] = !chain_leaves(&rewriter.chains[number], &rewriter.finder, id);
        }
    }
    release_rewriter(&rewriter);
    return done ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, "no memory to look at a tape");
}
