/* recompute.c - see recompute.h. */
#include "engine/plan/recompute.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/plan/derived.h"

#define NEVER UINT32_MAX

/* Operations first .. last-1, of which those from `turn` on are taken for backward ones: there the
 * most bytes live. A step without a repeat is one pass; each micro-batch is one. The tape of a rank
 * does not name its micro-batches: there the edges of loops part them. */
struct pass {
    uint32_t first;
    uint32_t turn;
    uint32_t last;
    uint64_t least; /* bytes of a tensor that it pays to forget */
};

/* Forward operations first .. last-1 that are repeated in front of operation `again`. */
struct segment {
    uint32_t first;
    uint32_t last;
    uint32_t again; /* NEVER: nothing of it is read again */
    uint64_t least; /* as of its pass */
};

/* A tensor that is smaller than this part of the largest one is kept. */
#define SMALL_PART 64

struct rewriter {
    const struct tape *tape;
    struct recompute_hints hints;
    struct tape *derived;
    uint32_t parts;
    uint32_t *maker; /* per tensor: the operation that makes it, or NEVER */
    uint32_t
        *last_forward;  /* per tensor: its last reader before the turn of its pass, or its maker */
    uint32_t *last_use; /* per tensor: its last reader; NEVER: to the end, or handed on */
    uint32_t *first_back; /* per tensor: its first reader from the turn on, or NEVER */
    uint64_t *live;       /* per operation and one more: bytes, see find_turn() and find_cuts() */
    bool *repeated;       /* per operation: of a segment */
    uint32_t *now;        /* per tensor: the one that stands for it */
    uint32_t *copies;     /* per tensor: its copy inside of the segment that is repeated */
    struct segment *segments;
    uint32_t segment_count;
    struct derived_room room;
};

/* ---- passes --------------------------------------------------------------- */

static bool same_pass(const struct rewriter *rewriter, uint32_t a, uint32_t b)
{
    const struct tape *tape = rewriter->tape;
    uint32_t first;

    if (rewriter->hints.source != NULL) {
        tape = rewriter->hints.source;
        a = rewriter->tape->origins[a].item;
        b = rewriter->tape->origins[b].item;
    }

    if (tape->brief == NULL) {
        return true;
    }
    first = tape->brief->repeat.first;
    for (int i = 0; i < 2; i++) {
        uint32_t item = tape->origins[i == 0 ? a : b].item;

        if (item < first || item - first >= tape->brief->repeat.op_count) {
            return false;
        }
    }
    return tape->origins[a].instance == tape->origins[b].instance;
}

static uint64_t bytes_of(const struct rewriter *rewriter, uint32_t id)
{
    const bool *inside = rewriter->hints.inside;

    return inside != NULL && inside[id] ? 0 : tensor_size(&rewriter->tape->tensors[id]);
}

/* Adds the bytes of a tensor to live[from] .. live[to-1]; sum_live() makes sums of differences. */
static void add_live(struct rewriter *rewriter, uint32_t id, uint32_t from, uint32_t to)
{
    rewriter->live[from] += bytes_of(rewriter, id);
    rewriter->live[to] -= bytes_of(rewriter, id);
}

static void sum_live(struct rewriter *rewriter, uint32_t first, uint32_t last)
{
    for (uint32_t at = first + 1; at < last; at++) {
        rewriter->live[at] += rewriter->live[at - 1];
    }
}

static bool is_made_in(const struct rewriter *rewriter, uint32_t id, uint32_t first, uint32_t last)
{
    return rewriter->maker[id] != NEVER && rewriter->maker[id] >= first &&
           rewriter->maker[id] < last;
}

static void find_turn(struct rewriter *rewriter, struct pass *pass)
{
    const struct tape *tape = rewriter->tape;

    memset(rewriter->live + pass->first, 0,
           (pass->last - pass->first + 1) * sizeof(*rewriter->live));
    for (uint32_t at = pass->first; at < pass->last; at++) {
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            uint32_t id = tape->ops[at].outputs[i];
            uint32_t end = rewriter->last_use[id];

            if (end != NEVER && end < pass->last) {
                add_live(rewriter, id, at, end);
            }
        }
    }
    sum_live(rewriter, pass->first, pass->last);
    pass->turn = pass->first;
    for (uint32_t at = pass->first; at < pass->last; at++) {
        pass->turn = rewriter->live[at] > rewriter->live[pass->turn] ? at : pass->turn;
    }
    pass->turn++;
}

static void note_readers(struct rewriter *rewriter, struct pass *pass)
{
    const struct tape *tape = rewriter->tape;
    uint64_t largest = 0;

    for (uint32_t at = pass->first; at < pass->last; at++) {
        for (uint32_t i = 0; i < tape->ops[at].input_count; i++) {
            uint32_t id = tape->ops[at].inputs[i];

            if (!is_made_in(rewriter, id, pass->first, pass->turn)) {
                continue;
            }
            if (at < pass->turn) {
                rewriter->last_forward[id] = at;
            } else if (rewriter->first_back[id] == NEVER) {
                rewriter->first_back[id] = at;
                largest = bytes_of(rewriter, id) > largest ? bytes_of(rewriter, id) : largest;
            }
        }
    }
    pass->least = largest / SMALL_PART;
}

/* ---- segments ------------------------------------------------------------- */

/* Is a tensor of a pass read again by its gradients, and worth its place? All outputs of an
 * operation are, or none: a kernel may not make one without the others. */
static bool is_saved(const struct rewriter *rewriter, uint64_t least, uint32_t id)
{
    const struct op *op;

    if (rewriter->tape->tensors[id].role != ROLE_TEMPORARY || rewriter->first_back[id] == NEVER ||
        rewriter->last_use[id] == NEVER) {
        return false;
    }
    op = &rewriter->tape->ops[rewriter->maker[id]];
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (rewriter->first_back[op->outputs[i]] != NEVER &&
            bytes_of(rewriter, op->outputs[i]) >= least) {
            return true;
        }
    }
    return false;
}

/* The cut of (from, to) over which the fewest bytes are read by forward operations. */
static uint32_t best_cut(const struct rewriter *rewriter, uint32_t from, uint32_t to)
{
    uint32_t best = from;

    for (uint32_t at = from; at < to; at++) {
        best = rewriter->live[at] < rewriter->live[best] ? at : best;
    }
    return best;
}

static void add_segment(struct rewriter *rewriter, const struct pass *pass, uint32_t first,
                        uint32_t last)
{
    struct segment segment = {first, last, NEVER, pass->least};
    const struct tape *tape = rewriter->tape;

    for (uint32_t at = first; at < last; at++) {
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            uint32_t id = tape->ops[at].outputs[i];

            if (is_saved(rewriter, pass->least, id) && rewriter->last_forward[id] < last &&
                rewriter->first_back[id] < segment.again) {
                segment.again = rewriter->first_back[id];
            }
        }
    }
    if (segment.again != NEVER) {
        rewriter->segments[rewriter->segment_count++] = segment;
    }
}

/* Cuts where the saved bytes are shared alike, near there where least crosses. The last segment is
 * not repeated: its gradients come at once. */
static void cut_pass(struct rewriter *rewriter, const struct pass *pass)
{
    const struct tape *tape = rewriter->tape;
    uint64_t saved = 0;
    uint64_t seen = 0;
    uint32_t begin = pass->first;
    uint32_t from = NEVER;
    uint32_t cut = 1; /* the next */

    memset(rewriter->live + pass->first, 0,
           (pass->last - pass->first + 1) * sizeof(*rewriter->live));
    for (uint32_t at = pass->first; at < pass->turn; at++) {
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            uint32_t id = tape->ops[at].outputs[i];

            saved += is_saved(rewriter, pass->least, id) ? bytes_of(rewriter, id) : 0;
            add_live(rewriter, id, at + 1, rewriter->last_forward[id] + 1);
        }
    }
    sum_live(rewriter, pass->first, pass->turn);
    for (uint32_t at = pass->first; at < pass->turn && cut < rewriter->parts; at++) {
        /* Half a part before and behind the place where the cut is due. */
        uint64_t place = seen * 2 * rewriter->parts;

        if (from == NEVER && place >= saved * (2 * (uint64_t)cut - 1)) {
            from = at;
        }
        if (from != NEVER && place >= saved * (2 * (uint64_t)cut + 1)) {
            uint32_t end = best_cut(rewriter, from, at);

            add_segment(rewriter, pass, begin, end);
            begin = end;
            from = NEVER;
            cut++;
        }
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            uint32_t id = tape->ops[at].outputs[i];

            seen += is_saved(rewriter, pass->least, id) ? bytes_of(rewriter, id) : 0;
        }
    }
}

/* Where the next loop behind an operation begins, or its own ends. What stands in a loop is
 * repeated in the same turn or not at all. *loop: the first that has not ended there. */
static uint32_t next_edge(const struct tape *tape, uint32_t *loop, uint32_t at)
{
    while (*loop < tape->loop_count && tape->loops[*loop].last <= at) {
        (*loop)++;
    }
    if (*loop == tape->loop_count) {
        return tape->op_count;
    }
    return at < tape->loops[*loop].first ? tape->loops[*loop].first : tape->loops[*loop].last;
}

static void cut_tape(struct rewriter *rewriter)
{
    const struct tape *tape = rewriter->tape;
    struct pass pass = {.first = 0};
    uint32_t loop = 0;

    for (; pass.first < tape->op_count; pass.first = pass.last) {
        const uint32_t edge = next_edge(tape, &loop, pass.first);

        pass.last = pass.first + 1;
        while (pass.last < edge && same_pass(rewriter, pass.first, pass.last)) {
            pass.last++;
        }
        find_turn(rewriter, &pass);
        note_readers(rewriter, &pass);
        cut_pass(rewriter, &pass);
    }
}

/* ---- rewriting ------------------------------------------------------------ */

/* Is the tensor forgotten when the forward operations of its segment are done? */
static bool is_forgotten(const struct rewriter *rewriter, const struct segment *segment,
                         uint32_t id)
{
    return is_saved(rewriter, segment->least, id) && rewriter->last_forward[id] < segment->last;
}

/* Then the copies of all of its outputs replace them: an operation reads integers and exponents of
 * one quantize operation. */
static bool forgets_any(const struct rewriter *rewriter, const struct segment *segment,
                        const struct op *op)
{
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (is_forgotten(rewriter, segment, op->outputs[i])) {
            return true;
        }
    }
    return false;
}

/* Must the repetition read a copy of this tensor? Others are there when it begins. */
static bool is_copied(const struct rewriter *rewriter, const struct segment *segment, uint32_t id)
{
    return is_made_in(rewriter, id, segment->first, segment->last) &&
           rewriter->last_forward[id] < segment->last;
}

/* Marks what must run again: what makes a forgotten tensor, and what makes the inputs of that. */
static void choose_ops(struct rewriter *rewriter, const struct segment *segment)
{
    const struct tape *tape = rewriter->tape;

    for (uint32_t at = segment->last; at-- > segment->first;) {
        if (forgets_any(rewriter, segment, &tape->ops[at])) {
            rewriter->repeated[at] = true;
        }
        for (uint32_t i = 0; rewriter->repeated[at] && i < tape->ops[at].input_count; i++) {
            uint32_t id = tape->ops[at].inputs[i];

            if (is_copied(rewriter, segment, id)) {
                rewriter->repeated[rewriter->maker[id]] = true;
            }
        }
    }
}

static bool repeat_segment(struct rewriter *rewriter, const struct segment *segment)
{
    const struct tape *tape = rewriter->tape;
    struct tape *derived = rewriter->derived;

    choose_ops(rewriter, segment);
    for (uint32_t at = segment->first; at < segment->last; at++) {
        struct op op = tape->ops[at];

        if (!rewriter->repeated[at]) {
            continue;
        }
        if (!derived_grow(derived, &rewriter->room, 1, op.output_count)) {
            return false;
        }
        for (uint32_t i = 0; i < op.input_count; i++) {
            uint32_t id = op.inputs[i];
            /* A copy reads copies where its operand is repeated too; what was kept is read where it
             * lies. */
            bool copied = is_made_in(rewriter, id, segment->first, segment->last) &&
                          rewriter->repeated[rewriter->maker[id]];

            op.inputs[i] = copied ? rewriter->copies[id] : id;
        }
        bool replaces = forgets_any(rewriter, segment, &op);

        for (uint32_t i = 0; i < op.output_count; i++) {
            uint32_t id = op.outputs[i];

            op.outputs[i] = rewriter->copies[id] = derived_tensor(derived, &tape->tensors[id]);
            if (replaces && rewriter->last_use[id] != NEVER) {
                /* From here on later readers read the copy: the first one may then be forgotten. */
                rewriter->now[id] = op.outputs[i];
            }
        }
        derived_put(derived, &op, at, true);
    }
    return true;
}

/* In the order in which they are repeated; of two at once the first goes first. */
static int compare_again(const void *left, const void *right)
{
    const struct segment *a = left;
    const struct segment *b = right;

    return a->again != b->again ? (a->again > b->again) - (a->again < b->again)
                                : (a->first > b->first) - (a->first < b->first);
}

static bool rewrite_tape(struct rewriter *rewriter)
{
    const struct tape *tape = rewriter->tape;

    uint32_t next = 0;

    qsort(rewriter->segments, rewriter->segment_count, sizeof(*rewriter->segments), compare_again);
    for (uint32_t at = 0; at < tape->op_count; at++) {
        struct op op = tape->ops[at];

        for (; next < rewriter->segment_count && rewriter->segments[next].again == at; next++) {
            if (!repeat_segment(rewriter, &rewriter->segments[next])) {
                return false;
            }
        }
        if (!derived_grow(rewriter->derived, &rewriter->room, 1, 0)) {
            return false;
        }
        for (uint32_t i = 0; i < op.input_count; i++) {
            op.inputs[i] = rewriter->now[op.inputs[i]];
        }
        derived_put(rewriter->derived, &op, at, derived_is_again(tape, at));
    }
    return true;
}

/* ---- building ------------------------------------------------------------- */

static void note_uses(struct rewriter *rewriter)
{
    const struct tape *tape = rewriter->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        rewriter->maker[id] = rewriter->first_back[id] = NEVER;
        rewriter->last_forward[id] = rewriter->last_use[id] = 0;
        rewriter->now[id] = rewriter->copies[id] = id;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            uint32_t id = tape->ops[at].outputs[i];

            rewriter->maker[id] = rewriter->last_forward[id] = rewriter->last_use[id] = at;
        }
        for (uint32_t i = 0; i < tape->ops[at].input_count; i++) {
            rewriter->last_use[tape->ops[at].inputs[i]] = at;
        }
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        rewriter->last_use[tape->states[i].after] = NEVER;
    }
    if (tape->loss != TENSOR_NONE) {
        rewriter->last_use[tape->loss] = NEVER;
    }
    for (uint32_t i = 0; i < tape->loop_carry_count; i++) {
        rewriter->last_use[tape->loop_carries[i].in] = NEVER;
        rewriter->last_use[tape->loop_carries[i].out] = NEVER;
    }
}

static bool make_room(struct rewriter *rewriter)
{
    const struct tape *tape = rewriter->tape;
    size_t tensors = (size_t)tape->tensor_count + 1;
    size_t ops = (size_t)tape->op_count + 1;

    rewriter->derived = derived_new(tape, ops, tensors);
    rewriter->maker = malloc(tensors * sizeof(*rewriter->maker));
    rewriter->last_forward = malloc(tensors * sizeof(*rewriter->last_forward));
    rewriter->last_use = malloc(tensors * sizeof(*rewriter->last_use));
    rewriter->first_back = malloc(tensors * sizeof(*rewriter->first_back));
    rewriter->now = malloc(tensors * sizeof(*rewriter->now));
    rewriter->copies = malloc(tensors * sizeof(*rewriter->copies));
    rewriter->live = calloc(ops, sizeof(*rewriter->live));
    rewriter->repeated = calloc(ops, sizeof(*rewriter->repeated));
    /* No more segments than operations, in any number of passes. */
    rewriter->segments = malloc(ops * sizeof(*rewriter->segments));
    if (rewriter->derived == NULL || rewriter->maker == NULL || rewriter->last_forward == NULL ||
        rewriter->last_use == NULL || rewriter->first_back == NULL || rewriter->now == NULL ||
        rewriter->copies == NULL || rewriter->live == NULL || rewriter->repeated == NULL ||
        rewriter->segments == NULL) {
        return false;
    }
    rewriter->room = (struct derived_room){(uint32_t)ops, (uint32_t)tensors};
    return true;
}

enum status recompute_build(struct tape **derived, const struct tape *tape,
                            const struct recompute_hints *hints, uint32_t parts,
                            struct error *error)
{
    struct rewriter rewriter = {.tape = tape, .parts = parts};
    enum status status = STATUS_OK;

    assert(parts >= 2 && parts <= RECOMPUTE_PARTS_MAX);
    if (hints != NULL) {
        rewriter.hints = *hints;
    }
    if (!make_room(&rewriter)) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory to rewrite a tape");
        goto out;
    }
    note_uses(&rewriter);
    cut_tape(&rewriter);
    if (!rewrite_tape(&rewriter) || !derived_take_loops(rewriter.derived, tape)) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory to rewrite a tape");
        goto out;
    }
    *derived = rewriter.derived;
out:
    if (status != STATUS_OK) {
        tape_free(rewriter.derived);
    }
    free(rewriter.maker);
    free(rewriter.last_forward);
    free(rewriter.last_use);
    free(rewriter.first_back);
    free(rewriter.now);
    free(rewriter.copies);
    free(rewriter.live);
    free(rewriter.repeated);
    free(rewriter.segments);
    return status;
}
