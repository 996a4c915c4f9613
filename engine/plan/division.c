/* division.c - see division.h. */
#include "engine/plan/division.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* With its gradient and the optimizer's moments, a parameter that is trained takes so much. */
#define TRAINED_COPIES 4
/* A cut may be 1/CUT_SLACK of a share away from the even one. */
#define CUT_SLACK      4
#define NOWHERE        UINT32_MAX

#define ANYWHERE UINT32_MAX /* the bits of all parts */

struct divider {
    struct division *division;
    const struct tape *tape;
    uint32_t *part_of;    /* per operation: NOWHERE until it is placed */
    uint32_t *maker;      /* per tensor: the operation that makes it, or NOWHERE */
    uint32_t *present;    /* per tensor: bits of the parts that have it */
    uint32_t *emitted;    /* per operation: bits of the parts that run it */
    uint64_t *alive;      /* per operation: bytes that cross a cut before it */
    uint64_t *weights;    /* per forward operation: bytes of memory that it brings its part */
    uint32_t forward_end; /* operations before this one are forward */
    uint32_t op_counts[DIVISION_PARTS_MAX];
    uint32_t move_space;
    uint32_t leg_space;
    bool no_memory;
};

/* The tensor to move so that a part can read `id`: for a quantized operand, QUANTIZE's input. */
static uint32_t source_of(const struct divider *divider, uint32_t id)
{
    const uint32_t maker = divider->maker[id];

    return maker != NOWHERE && divider->tape->ops[maker].kind == OP_QUANTIZE
               ? divider->tape->ops[maker].inputs[0]
               : id;
}

static uint32_t lowest_bit(uint32_t bits)
{
    return bits == 0 ? 0 : (uint32_t)__builtin_ctz(bits);
}

/* ---- the forward operations ------------------------------------------------------ */

/* Parts run one after the other, so a division shares memory, not time: the parameters, data and
 * constants that an operation is the first to read, and what a gradient reads of its outputs. */
static void measure_weights(struct divider *divider)
{
    const struct tape *tape = divider->tape;
    const uint64_t copies = divider->forward_end < tape->op_count ? TRAINED_COPIES : 1;

    for (uint32_t at = tape->op_count; at > divider->forward_end; at--) {
        for (uint32_t i = 0; i < tape->ops[at - 1].input_count; i++) {
            divider->present[tape->ops[at - 1].inputs[i]] = 1; /* free until later */
        }
    }
    for (uint32_t at = 0; at < divider->forward_end; at++) {
        const struct op *op = &tape->ops[at];

        for (uint32_t i = 0; op->kind != OP_QUANTIZE && i < op->output_count; i++) {
            if (divider->present[op->outputs[i]] != 0) {
                divider->weights[at] += tensor_size(&tape->tensors[op->outputs[i]]);
            }
        }
        for (uint32_t i = 0; i < op->input_count; i++) {
            const struct tensor *tensor = &tape->tensors[op->inputs[i]];

            if (!role_is_made(tensor->role) && divider->present[op->inputs[i]] != ANYWHERE) {
                divider->present[op->inputs[i]] = ANYWHERE;
                divider->weights[at] +=
                    (tensor->role == ROLE_STATE ? copies : 1) * tensor_size(tensor);
            }
        }
    }
    memset(divider->present, 0, tape->tensor_count * sizeof(*divider->present));
}

/* alive[at]: bytes of the temporaries made before `at` and read by forward operations from it on.
 */
static void measure_crossings(struct divider *divider)
{
    const struct tape *tape = divider->tape;

    for (uint32_t at = divider->forward_end; at > 0; at--) {
        const struct op *op = &tape->ops[at - 1];

        for (uint32_t i = 0; op->kind != OP_QUANTIZE && i < op->input_count; i++) {
            const uint32_t id = source_of(divider, op->inputs[i]);
            const uint32_t maker = divider->maker[id];

            /* This is the last reader. present[] is free until later and marks the tensor. */
            if (maker != NOWHERE && divider->present[id] == 0) {
                divider->present[id] = 1;
                for (uint32_t cut = maker + 1; cut < at; cut++) {
                    divider->alive[cut] += tensor_size(&tape->tensors[id]);
                }
            }
        }
    }
}

/* The cut near the even one with the fewest bytes across. Where a heavy operation spans the slack,
 * the cut before it or behind it. */
static uint32_t best_cut(const struct divider *divider, uint32_t least, uint64_t even,
                         uint64_t slack)
{
    uint64_t weight = 0;
    uint32_t best = NOWHERE;
    uint32_t around[2] = {NOWHERE, NOWHERE};

    for (uint32_t at = 0; at < divider->forward_end; weight += divider->weights[at++]) {
        const bool near = weight + slack >= even && weight <= even + slack;

        if (at < least) {
            continue;
        }
        if (near && (best == NOWHERE || divider->alive[at] < divider->alive[best])) {
            best = at;
        }
        if (weight <= even || around[1] == NOWHERE) {
            around[weight > even] = at;
        }
    }
    for (int side = 0; best == NOWHERE && side < 2; side++) {
        const uint32_t other = around[1 - side];

        if (around[side] != NOWHERE &&
            (other == NOWHERE || divider->alive[around[side]] <= divider->alive[other])) {
            best = around[side];
        }
    }
    return best == NOWHERE ? least : best;
}

static uint64_t weight_of(const struct divider *divider, uint32_t first, uint32_t last)
{
    uint64_t sum = 0;

    for (uint32_t at = first; at < last; at++) {
        sum += divider->weights[at];
    }
    return sum;
}

/* Each part takes an even share of what the parts before it have left. */
static void divide_forward(struct divider *divider)
{
    const uint32_t parts = divider->division->part_count;
    const uint64_t total = weight_of(divider, 0, divider->forward_end);
    uint32_t from = 0;

    measure_crossings(divider);
    for (uint32_t part = 0; part < parts; part++) {
        const uint64_t done = weight_of(divider, 0, from);
        const uint64_t share = (total - done) / (parts - part);
        uint32_t end = divider->forward_end;

        if (part + 1 < parts) {
            end = best_cut(divider, from + 1, done + share, share / CUT_SLACK);
            /* Leave at least one operation to each of the other parts. */
            if (end > divider->forward_end - (parts - 1 - part)) {
                end = divider->forward_end - (parts - 1 - part);
            }
        }
        for (; from < end; from++) {
            divider->part_of[from] = part;
        }
    }
}

/* ---- the other operations ---------------------------------------------------------- */

static void note_reading(struct divider *divider, uint32_t id, uint32_t part)
{
    const enum role role = divider->tape->tensors[id].role;

    if (role == ROLE_STATE && divider->present[id] == ANYWHERE) {
        divider->present[id] = 0; /* the first reader decides where it is */
    }
    if (role == ROLE_STATE || role_is_made(role)) {
        divider->present[id] |= UINT32_C(1) << part;
    }
}

static void note_op(struct divider *divider, uint32_t at)
{
    const struct op *op = &divider->tape->ops[at];

    for (uint32_t i = 0; i < op->input_count; i++) {
        note_reading(divider, source_of(divider, op->inputs[i]), divider->part_of[at]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        divider->present[op->outputs[i]] = UINT32_C(1) << divider->part_of[at];
    }
}

/* Is it a parameter or an activation? */
static bool is_of_a_layer(const struct divider *divider, uint32_t id)
{
    const uint32_t maker = divider->maker[id];

    return divider->tape->tensors[id].role == ROLE_STATE ||
           (maker != NOWHERE && maker < divider->forward_end);
}

/* Bytes that would move to a part if op ran there. */
static uint64_t missing_bytes(const struct divider *divider, const struct op *op, uint32_t part)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t id = source_of(divider, op->inputs[i]);

        if ((divider->present[id] >> part & 1) == 0) {
            bytes += tensor_size(&divider->tape->tensors[id]);
        }
    }
    return bytes;
}

static uint32_t choose_part(const struct divider *divider, const struct op *op)
{
    uint32_t bits = ANYWHERE;
    uint32_t best = 0;

    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t id = source_of(divider, op->inputs[i]);

        if (is_of_a_layer(divider, id) && (bits & divider->present[id]) != 0) {
            bits &= divider->present[id];
        }
    }
    best = lowest_bit(bits);
    for (uint32_t part = best + 1; part < divider->division->part_count; part++) {
        if ((bits >> part & 1) != 0 &&
            missing_bytes(divider, op, part) < missing_bytes(divider, op, best)) {
            best = part;
        }
    }
    return best;
}

static void place_operations(struct divider *divider)
{
    const struct tape *tape = divider->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        divider->present[id] = role_is_made(tape->tensors[id].role) ? 0 : ANYWHERE;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (tape->ops[at].kind == OP_QUANTIZE) {
            divider->part_of[at] = NOWHERE; /* decided below, by its first reader */
            continue;
        }
        if (at >= divider->forward_end) {
            divider->part_of[at] = choose_part(divider, &tape->ops[at]);
        }
        note_op(divider, at);
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        for (uint32_t i = 0; op->kind != OP_QUANTIZE && i < op->input_count; i++) {
            const uint32_t maker = divider->maker[op->inputs[i]];

            if (maker != NOWHERE && divider->part_of[maker] == NOWHERE) {
                divider->part_of[maker] = divider->part_of[at];
            }
        }
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (divider->part_of[at] == NOWHERE) { /* read by nobody */
            divider->part_of[at] = lowest_bit(divider->present[tape->ops[at].inputs[0]]);
        }
    }
}

/* A state is at home where its next value is made, another tensor where it is made. */
static void find_homes(struct divider *divider)
{
    const struct tape *tape = divider->tape;
    uint32_t *homes = divider->division->homes;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const uint32_t maker = divider->maker[id];

        homes[id] = maker != NOWHERE ? divider->part_of[maker] : 0;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint32_t maker = divider->maker[tape->states[i].after];

        homes[tape->states[i].before] = maker != NOWHERE ? divider->part_of[maker] : 0;
    }
}

/* ---- legs and moves -------------------------------------------------------------------- */

static void add_move(struct divider *divider, uint32_t tensor, uint32_t to)
{
    struct division *division = divider->division;

    if (division->move_count == divider->move_space) {
        const uint32_t space = divider->move_space * 2 + 16;
        struct division_move *moves = realloc(division->moves, space * sizeof(*moves));

        if (moves == NULL) {
            divider->no_memory = true;
            return;
        }
        division->moves = moves;
        divider->move_space = space;
    }
    division->moves[division->move_count++] =
        (struct division_move){tensor, division->homes[tensor], to};
}

static void begin_leg(struct divider *divider, uint32_t part)
{
    struct division *division = divider->division;

    if (division->leg_count == divider->leg_space) {
        const uint32_t space = divider->leg_space * 2 + 16;
        struct division_leg *legs = realloc(division->legs, space * sizeof(*legs));

        if (legs == NULL) {
            divider->no_memory = true;
            return;
        }
        division->legs = legs;
        divider->leg_space = space;
    }
    division->legs[division->leg_count++] =
        (struct division_leg){.part = part,
                              .first = divider->op_counts[part],
                              .last = divider->op_counts[part],
                              .move_first = division->move_count};
}

/* Does a part have the tensor without a move? */
static bool is_there(const struct divider *divider, uint32_t id, uint32_t part)
{
    const enum role role = divider->tape->tensors[id].role;

    return (role != ROLE_STATE && !role_is_made(role)) || (divider->present[id] >> part & 1) != 0;
}

/* States move before anything runs, so that no reader sees a next value. */
static void move_states(struct divider *divider)
{
    const struct tape *tape = divider->tape;

    memset(divider->present, 0, tape->tensor_count * sizeof(*divider->present));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        divider->present[id] = UINT32_C(1) << divider->division->homes[id];
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        for (uint32_t i = 0; op->kind != OP_QUANTIZE && i < op->input_count; i++) {
            const uint32_t id = source_of(divider, op->inputs[i]);
            const uint32_t part = divider->part_of[at];

            if (tape->tensors[id].role == ROLE_STATE && !is_there(divider, id, part)) {
                divider->present[id] |= UINT32_C(1) << part;
                add_move(divider, id, part);
            }
        }
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint32_t id = tape->states[i].after;
        const uint32_t part = divider->division->homes[tape->states[i].before];

        if (tape->tensors[id].role == ROLE_STATE && !is_there(divider, id, part)) {
            divider->present[id] |= UINT32_C(1) << part;
            add_move(divider, id, part);
        }
    }
    divider->division->first_moves = divider->division->move_count;
}

/* Appends operation `at` to a part's share, after its quantize operations and moves. */
static void emit_op(struct divider *divider, uint32_t at, uint32_t part)
{
    struct division *division = divider->division;
    const struct op *op = &divider->tape->ops[at];

    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t maker = divider->maker[op->inputs[i]];

        if (maker != NOWHERE && divider->tape->ops[maker].kind == OP_QUANTIZE &&
            (divider->emitted[maker] >> part & 1) == 0) {
            emit_op(divider, maker, part);
        }
    }
    if (division->leg_count == 0 || division->legs[division->leg_count - 1].part != part) {
        begin_leg(divider, part);
    }
    if (divider->no_memory) {
        return;
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t id = op->inputs[i];
        const bool quantized = source_of(divider, id) != id;

        if (!quantized && !is_there(divider, id, part)) {
            divider->present[id] |= UINT32_C(1) << part;
            add_move(divider, id, part);
        }
    }
    struct division_leg *leg = &division->legs[division->leg_count - 1];

    leg->last = ++divider->op_counts[part];
    leg->move_count = division->move_count - leg->move_first;
    divider->emitted[at] |= UINT32_C(1) << part;
    division->parts[part].places[leg->last - 1] = at;
    division->parts[part].shown[leg->last - 1] = part == divider->part_of[at];
}

/* ---- shares ------------------------------------------------------------------------------ */

static bool crosses_parts(const struct division *division, uint32_t id)
{
    for (uint32_t i = 0; i < division->move_count; i++) {
        if (division->moves[i].tensor == id) {
            return true;
        }
    }
    return false;
}

static uint32_t tensor_in_part(struct divider *divider, uint32_t part, uint32_t id)
{
    struct division *division = divider->division;
    struct division_part *share = &division->parts[part];
    struct tensor *tensor;

    if (share->ids[id] != TENSOR_NONE) {
        return share->ids[id];
    }
    share->ids[id] = share->tape->tensor_count++;
    tensor = &share->tape->tensors[share->ids[id]];
    *tensor = divider->tape->tensors[id];
    const bool here = division->homes[id] == part;

    if (tensor->role == ROLE_STATE) {
        tensor->role = here ? ROLE_STATE : ROLE_INPUT;
    } else if (role_is_made(tensor->role)) {
        const uint32_t maker = divider->maker[id];
        const bool made = (divider->emitted[maker] >> part & 1) != 0;

        tensor->role = !made                                 ? ROLE_INPUT
                       : here && crosses_parts(division, id) ? ROLE_OUTPUT
                       : here                                ? tensor->role
                                                             : ROLE_TEMPORARY;
    }
    if (id == divider->tape->loss && here) {
        share->tape->loss = share->ids[id];
    }
    return share->ids[id];
}

static void build_share(struct divider *divider, uint32_t part)
{
    const struct tape *tape = divider->tape;
    struct division_part *share = &divider->division->parts[part];

    share->tape->loss = TENSOR_NONE;
    for (uint32_t i = 0; i < divider->op_counts[part]; i++) {
        struct op *op = &share->tape->ops[share->tape->op_count++];

        *op = tape->ops[share->places[i]];
        for (uint32_t j = 0; j < op->input_count; j++) {
            op->inputs[j] = tensor_in_part(divider, part, op->inputs[j]);
        }
        for (uint32_t j = 0; j < op->output_count; j++) {
            op->outputs[j] = tensor_in_part(divider, part, op->outputs[j]);
        }
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (divider->division->homes[tape->states[i].before] == part) {
            struct state_pair *pair = &share->tape->states[share->tape->state_count++];

            pair->before = tensor_in_part(divider, part, tape->states[i].before);
            pair->after = tensor_in_part(divider, part, tape->states[i].after);
        }
    }
    /* Part 0 keeps the tensors that no operation reads: the caller may still write and read them.
     */
    for (uint32_t id = 0; part == 0 && id < tape->tensor_count; id++) {
        const enum role role = tape->tensors[id].role;

        if (role != ROLE_STATE && !role_is_made(role)) {
            (void)tensor_in_part(divider, part, id);
        }
    }
}

static bool allocate_share(struct division_part *share, const struct tape *tape)
{
    const size_t tensors = (size_t)tape->tensor_count + 1;
    const size_t ops = (size_t)tape->op_count + 1;

    share->tape = calloc(1, sizeof(*share->tape));
    share->ids = malloc(tensors * sizeof(*share->ids));
    share->places = malloc(ops * sizeof(*share->places));
    share->shown = malloc(ops * sizeof(*share->shown));
    if (share->tape == NULL || share->ids == NULL || share->places == NULL ||
        share->shown == NULL) {
        return false;
    }
    share->tape->tensors = malloc(tensors * sizeof(*share->tape->tensors));
    share->tape->ops = malloc(ops * sizeof(*share->tape->ops));
    share->tape->states = malloc(((size_t)tape->state_count + 1) * sizeof(*share->tape->states));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        share->ids[id] = TENSOR_NONE;
    }
    return share->tape->tensors != NULL && share->tape->ops != NULL && share->tape->states != NULL;
}

static bool allocate_tables(struct divider *divider)
{
    struct division *division = divider->division;
    const size_t tensors = (size_t)divider->tape->tensor_count + 1;
    const size_t ops = (size_t)divider->tape->op_count + 1;

    division->homes = calloc(tensors, sizeof(*division->homes));
    divider->part_of = malloc(ops * sizeof(*divider->part_of));
    divider->emitted = calloc(ops, sizeof(*divider->emitted));
    divider->alive = calloc(ops, sizeof(*divider->alive));
    divider->weights = calloc(ops, sizeof(*divider->weights));
    divider->maker = malloc(tensors * sizeof(*divider->maker));
    divider->present = calloc(tensors, sizeof(*divider->present));
    for (uint32_t part = 0; part < division->part_count; part++) {
        if (!allocate_share(&division->parts[part], divider->tape)) {
            return false;
        }
    }
    return division->homes != NULL && divider->part_of != NULL && divider->emitted != NULL &&
           divider->weights != NULL && divider->alive != NULL && divider->maker != NULL &&
           divider->present != NULL;
}

/* Finds the makers, and the end of the forward operations: the one that makes the loss. */
static void find_makers(struct divider *divider)
{
    const struct tape *tape = divider->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        divider->maker[id] = NOWHERE;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            divider->maker[tape->ops[at].outputs[i]] = at;
        }
    }
    divider->forward_end = tape->op_count;
    if (tape->loss != TENSOR_NONE && divider->maker[tape->loss] != NOWHERE) {
        divider->forward_end = divider->maker[tape->loss] + 1;
    }
}

/* Have all inputs of an operation been made? */
static bool is_ready(const struct divider *divider, const struct op *op)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t maker = divider->maker[source_of(divider, op->inputs[i])];

        if (maker != NOWHERE && (divider->emitted[maker] >> divider->part_of[maker] & 1) == 0) {
            return false;
        }
    }
    return true;
}

/* Each leg is as long as the inputs allow. */
static void emit_by_turns(struct divider *divider)
{
    const uint32_t parts = divider->division->part_count;
    uint32_t idle = 0;

    for (uint32_t part = 0; idle < parts && !divider->no_memory; part = (part + 1) % parts) {
        idle++;
        for (uint32_t at = 0; at < divider->tape->op_count && !divider->no_memory; at++) {
            if (divider->part_of[at] == part && (divider->emitted[at] >> part & 1) == 0 &&
                is_ready(divider, &divider->tape->ops[at])) {
                emit_op(divider, at, part);
                idle = 0;
            }
        }
    }
}

static void emit_in_order(struct divider *divider)
{
    for (uint32_t at = 0; at < divider->tape->op_count && !divider->no_memory; at++) {
        const uint32_t part = divider->part_of[at];

        if ((divider->emitted[at] >> part & 1) == 0) {
            emit_op(divider, at, part);
        }
    }
}

static void divide_tape(struct divider *divider, bool in_order)
{
    measure_weights(divider);
    divide_forward(divider);
    place_operations(divider);
    find_homes(divider);
    move_states(divider);
    if (in_order) {
        emit_in_order(divider);
    } else {
        emit_by_turns(divider);
    }
    for (uint32_t part = 0; part < divider->division->part_count && !divider->no_memory; part++) {
        build_share(divider, part);
    }
}

enum status division_build(struct division *division, const struct tape *tape, uint32_t part_count,
                           bool in_order, struct error *error)
{
    struct divider divider = {.division = division, .tape = tape};
    enum status status = STATUS_OK;

    memset(division, 0, sizeof(*division));
    if (part_count == 0 || part_count > DIVISION_PARTS_MAX) {
        return error_set(error, STATUS_USAGE, "a tape is divided among 1 to %d machines, not %u",
                         DIVISION_PARTS_MAX, part_count);
    }
    division->part_count = part_count;
    if (!allocate_tables(&divider)) {
        divider.no_memory = true;
    } else {
        find_makers(&divider);
        if (divider.forward_end < part_count) {
            status = error_set(error, STATUS_USAGE,
                               "%u forward operations cannot be divided among %u machines",
                               divider.forward_end, part_count);
        } else {
            divide_tape(&divider, in_order);
        }
    }
    free(divider.part_of);
    free(divider.maker);
    free(divider.present);
    free(divider.emitted);
    free(divider.alive);
    free(divider.weights);
    if (divider.no_memory) {
        status =
            error_set(error, STATUS_NO_MEMORY, "no memory to divide %u operations", tape->op_count);
    }
    if (status != STATUS_OK) {
        division_release(division);
    }
    return status;
}

void division_release(struct division *division)
{
    for (uint32_t part = 0; part < division->part_count; part++) {
        tape_free(division->parts[part].tape);
        free(division->parts[part].ids);
        free(division->parts[part].places);
        free(division->parts[part].shown);
    }
    free(division->legs);
    free(division->moves);
    free(division->homes);
    memset(division, 0, sizeof(*division));
}
