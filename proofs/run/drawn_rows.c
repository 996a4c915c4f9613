/* drawn_rows.c - see drawn_rows.h. */
#include "proofs/run/drawn_rows.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/rules/rule.h"

/* What a tensor of one u32 holds, by the state before a step: that of a state and `more`, or
 * `more` alone. */
struct count {
    enum { COUNT_UNKNOWN = 0, COUNT_CONSTANT, COUNT_OF_STATE } kind;
    uint32_t state; /* its number */
    uint32_t more;
};

/* An operation that draws. */
struct draw {
    const struct op *op;
    struct count count;
    uint32_t pace; /* by which the count grows from step to step */
};

struct drawn_rows {
    const struct tape *tape;
    uint32_t *places; /* of the tape's tensors: a data tensor's place among those */
    bool *whole;      /* of the data tensors: draws do not suffice */
    struct draw *draws;
    uint32_t draw_count;
};

/* ---- counters ----------------------------------------------------------- */

static bool is_count(const struct tensor *tensor)
{
    return tensor->dtype == DTYPE_U32 && tensor->count == 1;
}

static void find_first_counts(struct count *counts, const struct tape *tape)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (is_count(&tape->tensors[tape->states[i].before])) {
            counts[tape->states[i].before] = (struct count){COUNT_OF_STATE, i, 0};
        }
    }
}

static void count_op(struct count *counts, const struct tape *tape, const struct op *op)
{
    if (op->kind == OP_FILL && is_count(&tape->tensors[op->outputs[0]])) {
        counts[op->outputs[0]] =
            (struct count){COUNT_CONSTANT, 0, (uint32_t)op->attributes[FILL_VALUE_BITS]};
    } else if (op->kind == OP_STEP_NEXT) {
        counts[op->outputs[0]] = counts[op->inputs[0]];
        counts[op->outputs[0]].more++;
    }
}

/* Finds by how much the count grows from step to step; false: it does not grow evenly. */
static bool find_pace(uint32_t *pace, const struct count *count, const struct count *counts,
                      const struct tape *tape)
{
    const struct count *after;

    *pace = 0;
    if (count->kind != COUNT_OF_STATE) {
        return count->kind == COUNT_CONSTANT;
    }
    after = &counts[tape->states[count->state].after];
    *pace = after->more;
    return after->kind == COUNT_OF_STATE && after->state == count->state;
}

/* ---- draws -------------------------------------------------------------- */

/* How many of the first inputs are drawn from; the next one is the count. */
static uint32_t drawn_inputs(const struct op *op)
{
    return op->kind == OP_BATCH_TOKENS || op->kind == OP_BATCH_ROWS ? 1
           : op->kind == OP_BATCH_SAMPLES                           ? 2
                                                                    : 0;
}

static bool is_data(const struct tape *tape, uint32_t id)
{
    return tape->tensors[id].role == ROLE_DATA;
}

/* Notes what an operation reads of the data. A draw's pace is found when all counts are. */
static void look_at(struct drawn_rows *rows, const struct op *op, const struct count *counts)
{
    const uint32_t drawn = drawn_inputs(op);
    bool reads = false;

    for (uint32_t i = 0; i < op->input_count; i++) {
        if (is_data(rows->tape, op->inputs[i])) {
            reads = reads || i < drawn;
            rows->whole[rows->places[op->inputs[i]]] |= i >= drawn;
        }
    }
    if (reads) {
        rows->draws[rows->draw_count++] =
            (struct draw){.op = op, .count = counts[op->inputs[drawn]]};
    }
}

static void look_at_all(struct drawn_rows *rows, struct count *counts, uint32_t first,
                        uint32_t last)
{
    for (uint32_t at = first; at < last; at++) {
        count_op(counts, rows->tape, &rows->tape->ops[at]);
        look_at(rows, &rows->tape->ops[at], counts);
    }
}

/* In the order of a step, turn after turn. */
static void look_through(struct drawn_rows *rows, struct count *counts)
{
    const struct tape *tape = rows->tape;
    uint32_t at = 0;

    for (uint32_t i = 0; i < tape->loop_count; i++) {
        const struct loop *loop = &tape->loops[i];
        const struct loop_carry *carries = tape->loop_carries + loop->carry_first;

        look_at_all(rows, counts, at, loop->first);
        for (uint32_t turn = 0; turn < loop->turns; turn++) {
            for (uint32_t k = 0; turn > 0 && k < loop->carry_count; k++) {
                counts[carries[k].in] = counts[carries[k].out];
            }
            look_at_all(rows, counts, loop->first, loop->last);
        }
        at = loop->last;
    }
    look_at_all(rows, counts, at, tape->op_count);
}

/* Keeps the draws of which is known what they draw; the data of others is read whole. */
static void find_paces(struct drawn_rows *rows, const struct count *counts)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < rows->draw_count; i++) {
        struct draw draw = rows->draws[i];

        if (find_pace(&draw.pace, &draw.count, counts, rows->tape)) {
            rows->draws[kept++] = draw;
            continue;
        }
        for (uint32_t input = 0; input < drawn_inputs(draw.op); input++) {
            if (is_data(rows->tape, draw.op->inputs[input])) {
                rows->whole[rows->places[draw.op->inputs[input]]] = true;
            }
        }
    }
    rows->draw_count = kept;
}

static void find_places(struct drawn_rows *rows)
{
    uint32_t place = 0;

    for (uint32_t id = 0; id < rows->tape->tensor_count; id++) {
        if (is_data(rows->tape, id)) {
            rows->places[id] = place++;
        }
    }
}

static size_t count_draws(const struct tape *tape)
{
    size_t count = 0;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        count += drawn_inputs(&tape->ops[at]) > 0 ? tape_turns(tape, at) : 0;
    }
    return count;
}

enum status drawn_rows_open(struct drawn_rows **rows, const struct tape *tape, struct error *error)
{
    const size_t room = (size_t)tape->tensor_count + 1;
    struct drawn_rows *made = calloc(1, sizeof(*made));
    struct count *counts = calloc(room, sizeof(*counts));

    *rows = NULL;
    if (made != NULL) {
        made->tape = tape;
        made->places = calloc(room, sizeof(*made->places));
        made->whole = calloc(room, sizeof(*made->whole));
        made->draws = calloc(count_draws(tape) + 1, sizeof(*made->draws));
    }
    if (made == NULL || counts == NULL || made->places == NULL || made->whole == NULL ||
        made->draws == NULL) {
        free(counts);
        drawn_rows_close(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory for the draws of a step");
    }
    find_places(made);
    find_first_counts(counts, tape);
    look_through(made, counts);
    find_paces(made, counts);
    free(counts);
    *rows = made;
    return STATUS_OK;
}

void drawn_rows_close(struct drawn_rows *rows)
{
    if (rows != NULL) {
        free(rows->places);
        free(rows->whole);
        free(rows->draws);
        free(rows);
    }
}

bool drawn_rows_suffice(const struct drawn_rows *rows, uint32_t place)
{
    return !rows->whole[place];
}

/* ---- rows --------------------------------------------------------------- */

/* Bytes of a row that the operation draws from its input number `input`. */
static uint64_t row_size(const struct drawn_rows *rows, const struct op *op, uint32_t input)
{
    const uint64_t length = (uint64_t)op->attributes[BATCH_LENGTH];
    uint64_t elements = input == 0 ? length : 1;

    if (op->kind == OP_BATCH_TOKENS) {
        elements++;
    } else if (op->kind == OP_BATCH_ROWS) {
        elements -= (uint64_t)op->attributes[BATCH_ROWS_AHEAD];
    }

    return elements * dtype_size(rows->tape->tensors[op->inputs[input]].dtype);
}

uint64_t drawn_rows_pieces(const struct drawn_rows *rows, uint32_t place, uint64_t piece)
{
    uint64_t pieces = 0;

    for (uint32_t i = 0; i < rows->draw_count; i++) {
        const struct op *op = rows->draws[i].op;

        for (uint32_t input = 0; input < drawn_inputs(op); input++) {
            if (is_data(rows->tape, op->inputs[input]) &&
                rows->places[op->inputs[input]] == place) {
                pieces += (uint64_t)op->attributes[BATCH_COUNT] *
                          ((row_size(rows, op, input) + piece - 2) / piece + 1);
            }
        }
    }
    return pieces;
}

/* Keeps the place of the element that a rule asks for. */
static uint32_t note_place(void *context, uint32_t tensor, uint64_t index)
{
    (void)tensor;
    *(uint64_t *)context = index;
    return 0;
}

/* No element: behind the last row of its data a BATCH_ROWS reads none. */
#define PLACE_NONE UINT64_MAX

/* The place of the first element that the operation reads of its input for this row. The rule says
 * it: the row's first element of an output reads no other. */
static uint64_t first_element(const struct drawn_rows *rows, const struct draw *draw,
                              uint32_t input, uint64_t row, uint32_t count)
{
    const struct op *op = draw->op;
    struct rule_call call = {.op = op};
    uint64_t place = PLACE_NONE;

    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct tensor *tensor = &rows->tape->tensors[op->inputs[i]];

        call.inputs[i] = (struct operand){.dtype = tensor->dtype,
                                          .count = tensor->count,
                                          .fetch = note_place,
                                          .context = &place,
                                          .tensor = op->inputs[i]};
    }
    call.inputs[drawn_inputs(op)].memory = &count;
    (void)rule_element(&call, input,
                       input == 0 ? row * (uint64_t)op->attributes[BATCH_LENGTH] : row);
    return place;
}

static enum status visit_draw(const struct drawn_rows *rows, const struct draw *draw,
                              uint32_t count, const struct drawn_rows_visitor *visitor,
                              struct error *error)
{
    const struct op *op = draw->op;

    for (uint32_t input = 0; input < drawn_inputs(op); input++) {
        const uint32_t id = op->inputs[input];
        struct drawn_row row = {.size = row_size(rows, op, input)};

        if (!is_data(rows->tape, id) || rows->whole[rows->places[id]]) {
            continue;
        }
        row.place = rows->places[id];
        for (uint64_t i = 0; i < (uint64_t)op->attributes[BATCH_COUNT]; i++) {
            const uint64_t place = first_element(rows, draw, input, i, count);

            if (place == PLACE_NONE) {
                continue;
            }
            row.first = place * dtype_size(rows->tape->tensors[id].dtype);
            assert(row.first + row.size <= tensor_size(&rows->tape->tensors[id]));
            TRY(visitor->visit(visitor->context, &row, error));
        }
    }
    return STATUS_OK;
}

enum status drawn_rows_visit(const struct drawn_rows *rows, struct machine *machine, uint64_t ahead,
                             const struct drawn_rows_visitor *visitor, struct error *error)
{
    for (uint32_t i = 0; i < rows->draw_count; i++) {
        const struct draw *draw = &rows->draws[i];
        uint32_t count = 0;

        if (draw->count.kind == COUNT_OF_STATE) {
            TRY(machine->backend->read(machine, rows->tape->states[draw->count.state].before,
                                       &count, error));
        }
        count += draw->count.more + (uint32_t)ahead * draw->pace;
        TRY(visit_draw(rows, draw, count, visitor, error));
    }
    return STATUS_OK;
}
