/* walk.c - see walk.h. */
#include "tests/support/dispute/walk.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/dispute/step_record.h"
#include "tests/support/test.h"

/* The opponents are there. */
static void begin(struct walk *walk, const struct lie *lie)
{
    struct trace_walk_case accused;

    liar_open(&walk->liar, opponents_rewind(&walk->dispute), lie);
    assert_int_equal(trace_server_open(&walk->accused, &walk->liar.machine, NULL), STATUS_OK);
    accused = opponents_case(&walk->accused, &walk->dispute.own);
    memset(&accused.batch_root, 0, sizeof(accused.batch_root)); /* the ledger asks for it */
    assert_int_equal(trace_walk_open(&walk->walk, &walk->dispute.own, &accused, NULL), STATUS_OK);
    walk->context = opponents_context(&walk->dispute, &accused);
    buffer_init(&walk->question, GAME_PAYLOAD_MAX);
}

void walk_open(struct walk *walk, const struct lie *lie, uint32_t hidden)
{
    memset(walk, 0, sizeof(*walk));
    if (hidden > 0) {
        opponents_open_hidden(&walk->dispute, hidden);
    } else {
        opponents_open_kind(&walk->dispute, MODEL_MLP);
    }
    begin(walk, lie);
}

void walk_open_repeat(struct walk *walk, const struct lie *lie, uint32_t times, uint32_t group)
{
    struct model_options options;

    memset(walk, 0, sizeof(*walk));
    small_model_options(&options, MODEL_MLP);
    options.accumulate = times;
    options.group = group;
    opponents_open(&walk->dispute, &options);
    begin(walk, lie);
}

void walk_open_frozen(struct walk *walk, uint64_t seed, uint32_t frozen, uint64_t element)
{
    const struct lie nothing = {.item = TENSOR_NONE};
    struct random_machine *accused = &walk->dispute.random[0];

    memset(walk, 0, sizeof(*walk));
    opponents_open_random(&walk->dispute, seed, WALK_RANDOM_OPS);
    walk_spoil_frozen(accused->data[frozen], &walk->dispute.tape->tensors[frozen], element);
    assert_int_equal(
        accused->machine->backend->bind(accused->machine, frozen, accused->data[frozen], NULL),
        STATUS_OK);
    begin(walk, &nothing);
}

void walk_spoil_frozen(void *bytes, const struct tensor *tensor, uint64_t element)
{
    ((uint8_t *)bytes)[element * dtype_size(tensor->dtype)] ^= 1;
}

/* ---- held-out data ---------------------------------------------------------- */

static uint32_t maker_of(const struct tape *tape, uint32_t id)
{
    uint32_t at = tape->op_count;

    while (at-- > 0) {
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            if (tape->ops[at].outputs[i] == id) {
                return at;
            }
        }
    }
    fail();
    return at;
}

const struct op *walk_held_out_choice(const struct walk *walk)
{
    const struct tape *tape = walk->dispute.tape;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (strcmp(tape->tensors[tape->states[i].before].name, HELD_OUT_LOSS) == 0) {
            return &tape->ops[maker_of(tape, tape->states[i].after)];
        }
    }
    fail();
    return NULL;
}

/* The pass on held-out data stands behind the update: the last of a kind is one of its own. */
static uint32_t last_of(const struct tape *tape, enum op_kind kind)
{
    uint32_t at = tape->op_count;

    while (at-- > 0) {
        if (tape->ops[at].kind == kind) {
            return tape->ops[at].outputs[0];
        }
    }
    fail();
    return TENSOR_NONE;
}

/* The tensor in which the cheat lies; TENSOR_NONE: it was given something else. */
static uint32_t lied_about(const struct walk *walk, enum held_out_cheat cheat)
{
    switch (cheat) {
    case HELD_OUT_WINDOW:
        return last_of(walk->dispute.tape, OP_BATCH_SAMPLES);
    case HELD_OUT_LOGITS:
        return last_of(walk->dispute.tape, OP_CONTRACT);
    case HELD_OUT_MEAN:
        return walk_held_out_choice(walk)->inputs[1];
    case HELD_OUT_FIGURE:
        return walk_held_out_choice(walk)->outputs[0];
    case HELD_OUT_DATA:
    case HELD_OUT_DUE:
    case HELD_OUT_CHEAT_COUNT:
        break;
    }
    return TENSOR_NONE;
}

static void give_other_data(struct opponents *dispute)
{
    struct machine *accused = dispute->machines[0];

    assert_int_equal(
        accused->backend->bind(accused, dispute->small.model.held_out, dispute->small.data, NULL),
        STATUS_OK);
}

/* A table of due steps that says the opposite. */
static void give_other_table(struct walk *walk)
{
    struct machine *accused = walk->dispute.machines[0];
    const struct tape *tape = walk->dispute.tape;
    const struct op *schedule = &tape->ops[maker_of(tape, walk_held_out_choice(walk)->inputs[0])];
    const uint32_t id = schedule->inputs[0];
    const uint64_t count = tape->tensors[id].count;
    float *table = malloc(count * sizeof(*table));

    assert_non_null(table);
    assert_int_equal(accused->backend->read(accused, id, table, NULL), STATUS_OK);
    for (uint64_t i = 0; i < count; i++) {
        table[i] = 1.0f - table[i];
    }
    assert_int_equal(accused->backend->write(accused, id, table, NULL), STATUS_OK);
    free(table);
}

void walk_held_out_options(struct model_options *options, bool is_due)
{
    small_model_options(options, MODEL_MLP);
    options->held_out.batches = 2;
    options->held_out.every = is_due ? 3 : 2;
}

void walk_open_held_out(struct walk *walk, enum held_out_cheat cheat, bool is_due)
{
    struct lie lie = {.item = TENSOR_NONE};
    struct model_options options;
    uint32_t id;

    memset(walk, 0, sizeof(*walk));
    walk_held_out_options(&options, is_due);
    opponents_open(&walk->dispute, &options);
    id = lied_about(walk, cheat);
    if (id != TENSOR_NONE) {
        const struct tape *tape = walk->dispute.tape;

        lie.item = trace_item_of_output(tape, (struct op_turn){maker_of(tape, id), 0}, 0);
        lie.kind = tape->tensors[id].count == 1 ? LIE_HALF : LIE_ULP;
    } else if (cheat == HELD_OUT_DATA) {
        give_other_data(&walk->dispute);
    } else {
        give_other_table(walk);
    }
    begin(walk, &lie);
}

void walk_close(struct walk *walk)
{
    buffer_release(&walk->question);
    trace_walk_close(&walk->walk);
    trace_server_close(&walk->accused);
    liar_close(&walk->liar);
    opponents_close(&walk->dispute);
}

bool walk_query(struct walk *walk)
{
    struct digest known;
    struct trace_query query;

    if (!trace_walk_next(&query, &known, &walk->walk)) {
        return false;
    }
    buffer_clear(&walk->question);
    assert_int_equal(ledger_query_write(&walk->question, &walk->walk, NULL), STATUS_OK);
    return true;
}

void walk_answer(struct walk *walk, const struct game_bytes *bytes)
{
    struct ledger_queried queried;
    struct trace_reply reply;

    assert_int_equal(ledger_queried_read(&queried, bytes->bytes, bytes->size), STATUS_OK);
    assert_int_equal(
        trace_server_answer(walk->reply, &walk->reply_size, &walk->accused, &queried.query, NULL),
        STATUS_OK);
    if (queried.target.is_unknown) {
        assert_int_equal(trace_walk_take(&walk->walk, walk->reply, walk->reply_size, NULL),
                         STATUS_BAD_FORMAT); /* before it stands on the ledger */
        assert_int_equal(trace_reply_check(&reply, &queried.target, walk->reply, walk->reply_size),
                         VERDICT_VALID);
        walk->walk.accused.batch_root = reply.root;
    }
}

/* Under the liar's roots, from a record of its step. */
void walk_evidence(struct buffer *evidence, struct walk *walk)
{
    const struct tape *tape = walk->dispute.tape;
    struct evidence_target target = {0};
    struct evidence_source source;
    struct record record;
    struct error error;

    error_init(&error);
    assert_int_equal(walk->walk.end, TRACE_WALK_ELEMENT);
    evidence_aim(&target, tape, walk->walk.item);
    (void)opponents_rewind(&walk->dispute);
    assert_int_equal(
        record_run(&record, &walk->liar.machine, &walk->dispute.given, RECORD_ALL, &error),
        STATUS_OK);
    record_source(&source, &record);
    assert_int_equal(evidence_choose(&target, tape, &source, walk->walk.leaf, &error), STATUS_OK);
    assert_int_equal(
        evidence_write_element(evidence, tape, &source, &target, GAME_PAYLOAD_MAX, &error),
        STATUS_OK);
    record_release(&record);
}

/* Late in the trace, so that there is something to walk. */
uint32_t walk_item_of_matmul(void)
{
    struct opponents dispute;
    uint32_t found = 0;

    opponents_open_kind(&dispute, MODEL_MLP);
    for (uint32_t op = 0; op < dispute.tape->op_count; op++) {
        if (dispute.tape->ops[op].kind == OP_CONTRACT) {
            found = trace_item_of_output(dispute.tape, (struct op_turn){op, 0}, 0);
        }
    }
    assert_true(found > 0);
    opponents_close(&dispute);
    return found;
}
