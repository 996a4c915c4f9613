/* chain_find.c - see chain_find.h. */
#include "engine/plan/chain_find.h"

#include <stdlib.h>
#include <string.h>

#include "engine/plan/derived.h"

/* Lines of logits are a multiple of so many in a slice, where so many fit: kernels like it. */
#define LINES_TOGETHER 64

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

/* Does MOVE take elements of this type? */
static bool is_copied(enum dtype dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_U32;
}

/* Can parts be put together? Of numbers, and of exponents where losses are cut: those of a row's
 * gradient tell how tokens are shifted. */
static bool is_placed(const struct chain_finder *finder, uint32_t id)
{
    const struct tape *tape = finder->tape;
    const uint32_t maker = finder->makers[id];

    return tape->tensors[id].dtype == DTYPE_F32 ||
           (finder->limits.losses && maker != CHAIN_NONE && tape->ops[maker].kind == OP_QUANTIZE &&
            tape->ops[maker].outputs[1] == id);
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

    if (!is_placed(finder, id) || (!outside && tensor->count == chain->elements)) {
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

/* What cannot be put together stays inside. */
static bool outputs_fit(const struct chain_finder *finder, const struct joined *joined, uint32_t at)
{
    const struct op *op = &finder->tape->ops[at];
    bool fit = true;

    for (uint32_t o = 0; o < op->output_count; o++) {
        const uint32_t id = op->outputs[o];

        if (is_placed(finder, id)) {
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

/* Adds what makes an input of the operation at a place of the chain. */
static bool add_maker(struct chain *chain, const struct chain_finder *finder,
                      const struct joined *joined, uint32_t place, uint32_t id)
{
    const struct tape *tape = finder->tape;
    const uint32_t maker = finder->makers[id];
    const uint32_t found = chain_place(chain, maker);
    const bool again = is_joined(joined, maker) || chain->parts[place] == CHAIN_AGAIN;

    if (found != CHAIN_NONE) {
        if (chain->parts[found] == CHAIN_FEED && again) {
            chain->parts[found] = CHAIN_AGAIN;
        }
        return true;
    }
    return tape_loop_of(tape, maker) == tape_loop_of(tape, chain->first) &&
           add_op(chain, maker, again ? CHAIN_AGAIN : CHAIN_FEED);
}

/* Adds what makes the large inputs of the chain and, if asked for, those that cannot be copied in
 * parts. */
static bool add_makers(struct chain *chain, const struct chain_finder *finder,
                       const struct joined *joined, bool integers)
{
    const struct tape *tape = finder->tape;

    for (uint32_t k = 0; k < chain->count; k++) {
        const struct op *op = &tape->ops[chain->ops[k]];

        for (uint32_t i = 0; i < op->input_count; i++) {
            const uint32_t id = op->inputs[i];
            const bool needed =
                is_large(finder, joined, id) || (integers && !is_copied(tape->tensors[id].dtype));

            if (needed && finder->makers[id] != CHAIN_NONE &&
                !add_maker(chain, finder, joined, k, id)) {
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
    return chain_cut_is_cut(&chain->levels[0]) || chain_cut_is_cut(&chain->levels[1]);
}

/* Marks the inputs of an operation that come in parts and cannot be copied. */
static void mark_parts(bool marks[OP_INPUTS_MAX], const struct chain *chain,
                       const struct tape *tape, uint32_t place)
{
    const struct op *op = &tape->ops[chain->ops[place]];
    struct slice_view views[SLICE_TENSORS_MAX];
    struct slice part;

    chain_cut_part(&part, views, chain, tape, place, 0, 0);
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct tensor *tensor = &tape->tensors[op->inputs[i]];

        marks[i] = part.tensors[i].count != tensor->count && !is_copied(tensor->dtype);
    }
}

/* Does the chain make all of these? */
static bool inputs_fit(const struct chain *chain, const struct chain_finder *finder)
{
    for (uint32_t place = 0; place < chain->count; place++) {
        const struct op *op = &finder->tape->ops[chain->ops[place]];
        bool parts[OP_INPUTS_MAX];

        mark_parts(parts, chain, finder->tape, place);
        for (uint32_t i = 0; i < op->input_count; i++) {
            if (parts[i] && chain_place(chain, finder->makers[op->inputs[i]]) == CHAIN_NONE) {
                return false;
            }
        }
    }
    return true;
}

static bool cut_chain(struct chain *chain, const struct chain_finder *finder)
{
    static const uint32_t batches[CHAIN_LEVELS] = {0, 1};
    const uint32_t seed = seed_of(chain, finder);

    return seed != CHAIN_NONE && choose_steps(chain, finder, seed) &&
           chain_cut_levels(chain, finder->tape, seed, batches) && inputs_fit(chain, finder);
}

/* ---- losses ---------------------------------------------------------------------- */

/* A product of logits that are larger than all that it reads, and than the limits leave whole. */
static bool makes_logits(const struct chain_finder *finder, uint32_t at)
{
    const struct op *op = &finder->tape->ops[at];
    const struct tensor *tensors = finder->tape->tensors;
    const uint32_t out = op->outputs[0];
    bool entropy = false;

    if (!finder->limits.losses || op->kind != OP_CONTRACT || finder->lasting[out] ||
        op->attributes[CONTRACT_DIMS] * op->attributes[CONTRACT_DIMS + 1] > 1 ||
        op->attributes[CONTRACT_CAUSAL] != 0 ||
        tensors[out].count <= tensors[op->inputs[0]].count + tensors[op->inputs[2]].count ||
        tensor_size(&tensors[out]) <= finder->limits.room) {
        return false;
    }
    for (uint32_t i = finder->reader_from[out]; i < finder->reader_from[out + 1]; i++) {
        const enum op_kind kind = finder->tape->ops[finder->readers[i]].kind;

        entropy = entropy || kind == OP_CROSS_ENTROPY || kind == OP_CROSS_ENTROPY_GRAD;
    }
    return entropy;
}

static uint32_t logits_of(const struct chain *chain, const struct chain_finder *finder)
{
    for (uint32_t place = 0; place < chain->count; place++) {
        if (makes_logits(finder, chain->ops[place])) {
            return place;
        }
    }
    return CHAIN_NONE;
}

/* Cuts the product of logits: m, the tokens, or n, the ids. Returns the axis. */
static uint32_t choose_lines(struct chain *chain, const struct chain_finder *finder, uint32_t seed,
                             bool ids)
{
    const struct op *op = &finder->tape->ops[chain->ops[seed]];
    const int64_t *dims = &op->attributes[CONTRACT_DIMS];
    const uint32_t first = ids ? 4 : 2;
    const uint32_t axis = dims[first] > 1 ? first : first + 1;
    const uint64_t length = (uint64_t)dims[axis];
    const uint64_t line = tensor_size(&finder->tape->tensors[op->outputs[0]]) / length;
    uint64_t step = finder->limits.room / line;

    step = step == 0 ? 1 : step > LINES_TOGETHER ? step - step % LINES_TOGETHER : step;
    chain->levels[0] =
        (struct chain_level){.length = length, .step = step < length ? step : length};
    chain->levels[1] = (struct chain_level){.length = 1, .step = 1};
    return axis;
}

/* Adds what makes integers that come in parts. */
static bool add_feeds(struct chain *chain, const struct chain_finder *finder,
                      const struct joined *joined)
{
    const uint32_t count = chain->count;

    for (uint32_t place = 0; place < count; place++) {
        const struct op *op = &finder->tape->ops[chain->ops[place]];
        bool parts[OP_INPUTS_MAX];

        mark_parts(parts, chain, finder->tape, place);
        for (uint32_t i = 0; i < op->input_count; i++) {
            if (parts[i] && (finder->makers[op->inputs[i]] == CHAIN_NONE ||
                             !add_maker(chain, finder, joined, place, op->inputs[i]))) {
                return false;
            }
        }
    }
    return true;
}

/* Cuts a chain by tokens or by ids, with the integers that its slices need. */
static bool cut_loss(struct chain *chain, const struct chain_finder *finder,
                     const struct joined *joined, bool ids)
{
    uint32_t count = 0;

    if (chain->count == 0 || !add_makers(chain, finder, joined, false)) {
        return false;
    }
    while (count != chain->count) {
        count = chain->count;
        sort_ops(chain);
        const uint32_t seed = logits_of(chain, finder);

        if (seed == CHAIN_NONE) {
            return false;
        }
        const uint32_t axes[CHAIN_LEVELS] = {choose_lines(chain, finder, seed, ids), 0};

        if (!chain_cut_is_cut(&chain->levels[0]) ||
            !chain_cut_levels(chain, finder->tape, seed, axes) ||
            !add_feeds(chain, finder, joined)) {
            return false;
        }
    }
    return true;
}

/* The chain of those of the joined operations that are chosen, or of the others. */
static bool own_chosen(struct chain *chain, const struct chain_finder *finder,
                       const struct joined *joined, const bool *chosen, bool value)
{
    *chain = (struct chain){.first = CHAIN_NONE, .elements = joined->elements};
    for (uint32_t k = 0; k < joined->count; k++) {
        const uint32_t at = joined->ops[k];

        if (chosen[k] != value) {
            continue;
        }
        chain->first = chain->count == 0 ? at : chain->first;
        chain->last = at;
        if (!outputs_fit(finder, joined, at) || !add_op(chain, at, CHAIN_OWN)) {
            return false;
        }
    }
    return true;
}

/* Is what an operation makes read by others that are chosen, or by such as are not joined? */
static bool is_useful(const struct chain_finder *finder, const struct joined *joined,
                      const bool *chosen, uint32_t at)
{
    const struct op *op = &finder->tape->ops[at];

    for (uint32_t o = 0; o < op->output_count; o++) {
        const uint32_t id = op->outputs[o];

        if (finder->lasting[id]) {
            return true;
        }
        for (uint32_t i = finder->reader_from[id]; i < finder->reader_from[id + 1]; i++) {
            const uint32_t *found = bsearch(&finder->readers[i], joined->ops, joined->count,
                                            sizeof(*joined->ops), compare_ops);

            if (found == NULL || chosen[found - joined->ops]) {
                return true;
            }
        }
    }
    return false;
}

/* What can be cut by tokens stays chosen, but for what only the others read. */
static bool choose_tokens(bool *chosen, struct chain *all, const struct chain_finder *finder,
                          const struct joined *joined)
{
    const uint32_t seed = logits_of(all, finder);
    const uint32_t axis = choose_lines(all, finder, seed, false);

    if (!chain_cut_reach(chosen, all, finder->tape, seed, axis)) {
        return false;
    }
    for (uint32_t k = joined->count; k-- > 0;) {
        chosen[k] = chosen[k] && is_useful(finder, joined, chosen, joined->ops[k]);
    }
    return true;
}

/*
 * A loss is one chain by tokens: logits, what the cross-entropy makes of a row, its gradient and
 * the gradient of what the logits were made of. The gradient of the words sums over all tokens, so
 * it is another chain, by ids: it makes its columns of the logits and of their gradient again, of
 * the maxima and sums that the first one has left. A chain that has been remade is one of these.
 */
static uint32_t losses_of(struct chain *chains, const struct chain_finder *finder,
                          const struct joined *joined)
{
    bool chosen[CHAIN_OPS_MAX];

    memset(chosen, true, sizeof(chosen));
    for (int ids = 0; ids < 2; ids++) {
        if (joined->count > CHAIN_OPS_MAX ||
            !own_chosen(&chains[0], finder, joined, chosen, true)) {
            return 0;
        }
        if (cut_loss(&chains[0], finder, joined, ids == 1)) {
            return 1;
        }
    }
    if (!own_chosen(&chains[0], finder, joined, chosen, true) ||
        !choose_tokens(chosen, &chains[0], finder, joined)) {
        return 0;
    }
    return own_chosen(&chains[0], finder, joined, chosen, true) &&
                   own_chosen(&chains[1], finder, joined, chosen, false) &&
                   cut_loss(&chains[0], finder, joined, false) &&
                   cut_loss(&chains[1], finder, joined, true) && chains[0].last < chains[1].first
               ? 2
               : 0;
}

/* ---- all chains ----------------------------------------------------------------- */

static uint32_t chains_of(struct chain *chains, const struct chain_finder *finder,
                          const struct joined *joined)
{
    uint32_t count = 0;

    for (uint32_t next = 0; next < joined->count; count++) {
        if (count == CHAINS_MAX || !take_own(&chains[count], finder, joined, &next) ||
            !add_makers(&chains[count], finder, joined, true)) {
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

        const bool logits = makes_logits(finder, seed);

        if (finder->seen[seed] || (!logits && !makes_large(finder, seed)) ||
            !join_ops(&joined, finder, seed)) {
            continue;
        }
        const uint32_t count =
            logits ? losses_of(chains, finder, &joined) : chains_of(chains, finder, &joined);

        if (count > 0) {
            return count;
        }
    }
    return 0;
}
