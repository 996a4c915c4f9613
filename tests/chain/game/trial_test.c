/*
 * Goal: before the referee no liar wins and no honest party loses.
 * Method: on both ledgers at once (court.h): every false accusation that we could think of, by
 * name, against an honest solver, each of which costs its bond; silence of the accused at every
 * point of a walk; a whole walk to a lie and its conviction, at once or after all turns were
 * spent; trace ends that do not fit, a divergence that was hidden and one that was invented; a
 * false attestation.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/dispute/ledger_query.h"
#include "tests/support/dispute/exhibit.h"
#include "tests/support/dispute/walk.h"
#include "tests/support/game/court.h"
#include "tests/support/test.h"

static struct court *court_new(void)
{
    struct court *court = (anvil_need(), calloc(1, sizeof(*court)));

    assert_non_null(court);
    court_open(court);
    return court;
}

static void court_free(struct court *court)
{
    court_compare(court);
    court_close(court);
    free(court);
}

static void begin(struct court *court, const struct evidence_context *context, uint32_t index,
                  uint32_t step)
{
    court_commit(court, context, index, step);
    court_claim(court);
    court_answer(court);
}

static void convict(struct court *court, const struct buffer *evidence,
                    enum game_refusal_kind refusal)
{
    struct game_move move = court_move(court, GAME_CONVICT, evidence->data, evidence->size);

    if (refusal == GAME_REFUSED_NOT) {
        court_done(court, &move, COURT_CLAIMANT);
    } else {
        court_refused(court, &move, COURT_CLAIMANT, refusal);
    }
}

/* ---- false accusations ------------------------------------------------------------ */

struct accusation {
    struct court *court;
    struct exhibit *exhibit; /* honest, and its evidence */
    struct buffer evidence;
    struct game_move move;
    uint32_t player;
};

static void show_honest_element(struct accusation *made)
{
    (void)made;
}

static void show_another_element(struct accusation *made)
{
    struct evidence_target target = {.op = 1, .output = 0, .element = 0};

    buffer_release(&made->evidence);
    exhibit_evidence(&made->evidence, made->exhibit, &target);
}

static void forge_sibling(struct accusation *made)
{
    made->evidence.data[20] ^= 1;
}

static void forge_leaf(struct accusation *made)
{
    made->evidence.data[made->evidence.size - 1] ^= 1;
}

static void append_garbage(struct accusation *made)
{
    buffer_add_u8(&made->evidence, 0);
}

/* Guilty under another root than the one that the solver gave: an earlier run's, say. */
static void show_stale_root(struct accusation *made)
{
    struct evidence_target target = {.op = 1, .output = 0, .element = 0};
    uint32_t bits = exhibit_get(made->exhibit, &target);

    exhibit_set(made->exhibit, &target, bits ^ 1);
    buffer_release(&made->evidence);
    exhibit_evidence(&made->evidence, made->exhibit, &target);
    exhibit_set(made->exhibit, &target, bits);
}

static void show_another_job(struct accusation *made)
{
    struct evidence_target target = {0};
    struct exhibit other;

    exhibit_of_kind(&other, OP_ADD, MOOD_WILD, 3);
    buffer_release(&made->evidence);
    exhibit_evidence(&made->evidence, &other, &target);
    exhibit_close(&other);
}

static void name_another_client(struct accusation *made)
{
    made->move.shown.client.bytes[0] ^= 1;
}

static void name_another_program(struct accusation *made)
{
    made->move.shown.job_header[60] ^= 1;
}

static void name_another_segment(struct accusation *made)
{
    made->move.shown.segment.root.bytes[3] ^= 1;
}

static void name_another_step(struct accusation *made)
{
    made->move.shown.step++;
}

static void name_another_state(struct accusation *made)
{
    made->move.shown.post_state.bytes[0] ^= 1;
}

static void name_another_previous(struct accusation *made)
{
    made->move.shown.previous.index++;
}

static void forge_pre_path(struct accusation *made)
{
    made->move.shown.pre_path.siblings[0].bytes[0] ^= 1;
}

static void lengthen_post_path(struct accusation *made)
{
    made->move.shown.post_path.sibling_count++;
}

/* A claim of its own about states that are nowhere under the segments' roots. */
static void claim_other_states(struct accusation *made)
{
    struct digest state = made->court->shown.post_state;

    made->court->shown.post_state.bytes[5] ^= 1;
    court_claim(made->court);
    court_answer(made->court);
    made->move = court_move(made->court, GAME_CONVICT, NULL, 0);
    made->court->shown.post_state = state;
}

static void claim_other_step(struct accusation *made)
{
    made->court->shown.step++;
    court_claim(made->court);
    court_answer(made->court);
    made->move = court_move(made->court, GAME_CONVICT, NULL, 0);
    made->court->shown.step--;
}

static void be_somebody_else(struct accusation *made)
{
    made->player = COURT_EVE;
}

static void be_late(struct accusation *made)
{
    made->court->twins.now_s += COURT_RESPONSE + 1;
}

static void query_garbage(struct accusation *made)
{
    made->move.kind = GAME_QUERY;
}

/* The next state against a trace that ends in it. */
static void show_honest_end(struct accusation *made)
{
    struct error error;

    error_init(&error);
    buffer_release(&made->evidence);
    buffer_init(&made->evidence, GAME_PAYLOAD_MAX);
    assert_int_equal(evidence_write_state(&made->evidence, made->exhibit->tape,
                                          &made->exhibit->source, EVIDENCE_NEXT_STATE, 0, &error),
                     STATUS_OK);
}

/* The first element of the exhibit that has parts. */
static struct evidence_target long_one(const struct exhibit *exhibit)
{
    struct evidence_target target = {0};

    for (target.op = 0; target.op < exhibit->tape->op_count; target.op++) {
        const struct op *op = &exhibit->tape->ops[target.op];

        if (op->kind == OP_QUANTIZE && exhibit_axis(exhibit, &target).parts > 1) {
            return target;
        }
    }
    fail();
    return target;
}

/* A part of an element whose parts were not queried. */
static void show_part_without_a_reply(struct accusation *made)
{
    struct evidence_target target = long_one(made->exhibit);
    struct buffer reply;

    exhibit_parts(&reply, made->exhibit, &target);
    buffer_release(&made->evidence);
    exhibit_part_evidence(&made->evidence, made->exhibit, &target, 0, &reply);
    buffer_release(&reply);
}

/* A query without cause; the reply is true, and so is each part. */
static void query_parts_and_show_one(struct accusation *made)
{
    struct evidence_target target = long_one(made->exhibit);
    struct court *court = made->court;
    struct game_move move;
    struct buffer query_bytes;
    struct buffer reply;

    exhibit_query(&query_bytes, made->exhibit, &target);
    exhibit_parts(&reply, made->exhibit, &target);
    move = court_move(court, GAME_QUERY, query_bytes.data, query_bytes.size);
    court_done(court, &move, COURT_CLAIMANT);
    move = court_move(court, GAME_REPLY, reply.data, reply.size);
    court_done(court, &move, COURT_SOLVER);
    buffer_release(&made->evidence);
    exhibit_part_evidence(&made->evidence, made->exhibit, &target, 1, &reply);
    buffer_release(&query_bytes);
    buffer_release(&reply);
}

/* Evidence with other parts than the reply. */
static void change_the_reply(struct accusation *made)
{
    query_parts_and_show_one(made);
    size_t place = 14 + 32 * (size_t)made->evidence.data[13];
    size_t descriptor = (size_t)made->evidence.data[place] << 8 | made->evidence.data[place + 1];

    /* Behind tree root, output, element, part and size stand exponent and values. */
    made->evidence.data[place + 2 + descriptor + 32 + 1 + 8 + 4 + 2 + 4 + 15] ^= 1;
}

/* A query for the parts of an element that has none. */
static void query_parts_of_a_short_one(struct accusation *made)
{
    struct evidence_target target = {.op = 0, .output = 0, .element = 0};

    assert_true(exhibit_axis(made->exhibit, &target).parts < 2);
    buffer_release(&made->evidence);
    exhibit_query(&made->evidence, made->exhibit, &target);
    made->move.kind = GAME_QUERY;
}

/* A query that names another element than it shows. */
static void query_parts_of_another(struct accusation *made)
{
    struct evidence_target target = long_one(made->exhibit);

    buffer_release(&made->evidence);
    exhibit_query(&made->evidence, made->exhibit, &target);
    made->evidence.data[TRACE_QUERY_SIZE - 1] ^= 1;
    made->move.kind = GAME_QUERY;
}

static const struct {
    const char *name;
    void (*make)(struct accusation *made);
    enum game_refusal_kind refusal;
} accusations[] = {
    {"an element that is right", show_honest_element, GAME_NOT_GUILTY},
    {"another element, right too", show_another_element, GAME_NOT_GUILTY},
    {"the end of the trace, which fits", show_honest_end, GAME_NOT_GUILTY},
    {"a forged path", forge_sibling, GAME_BAD_EVIDENCE},
    {"a forged leaf", forge_leaf, GAME_BAD_EVIDENCE},
    {"bytes behind the evidence", append_garbage, GAME_BAD_EVIDENCE},
    {"a stale root", show_stale_root, GAME_BAD_EVIDENCE},
    {"proof for another job", show_another_job, GAME_BAD_EVIDENCE},
    {"a part without a reply", show_part_without_a_reply, GAME_BAD_EVIDENCE},
    {"a part as in the reply", query_parts_and_show_one, GAME_NOT_GUILTY},
    {"another part than in the reply", change_the_reply, GAME_BAD_EVIDENCE},
    {"a query for parts of what has none", query_parts_of_a_short_one, GAME_BAD_QUERY},
    {"a query for parts of another element", query_parts_of_another, GAME_BAD_QUERY},
    {"another client", name_another_client, GAME_WRONG_CASE},
    {"another program", name_another_program, GAME_WRONG_CASE},
    {"another segment", name_another_segment, GAME_WRONG_CASE},
    {"a wrong step", name_another_step, GAME_WRONG_CASE},
    {"another state than claimed", name_another_state, GAME_WRONG_CASE},
    {"another previous segment", name_another_previous, GAME_WRONG_CASE},
    {"a forged path of the state before", forge_pre_path, GAME_WRONG_CASE},
    {"a path of another length", lengthen_post_path, GAME_WRONG_CASE},
    {"a claim about states that nobody committed to", claim_other_states, GAME_WRONG_CASE},
    {"a claim about another step", claim_other_step, GAME_WRONG_CASE},
    {"somebody else's claim", be_somebody_else, GAME_NOT_YOURS},
    {"evidence that comes late", be_late, GAME_TOO_LATE},
    {"a query about nothing", query_garbage, GAME_BAD_QUERY},
};

static void accuse_falsely(struct court *court, struct exhibit *exhibit, size_t number)
{
    struct evidence_target target = {.op = 0, .output = 0, .element = 0};
    struct accusation made = {.court = court, .exhibit = exhibit, .player = COURT_CLAIMANT};
    wei owed;

    exhibit_evidence(&made.evidence, exhibit, &target);
    begin(court, &exhibit->context, 1, 0);
    made.move = court_move(court, GAME_CONVICT, NULL, 0);
    accusations[number].make(&made);
    made.move.payload = (struct game_bytes){made.evidence.data, made.evidence.size};
    court_refused(court, &made.move, made.player, accusations[number].refusal);
    owed = court_owed(court, COURT_SOLVER);
    court_timeout(court);
    assert_true(court_owed(court, COURT_SOLVER) == owed + court->terms.claim_bond);
    court_compare(court);
    print_message("%-48s refused: %s; the bond is lost\n", accusations[number].name,
                  game_refusal_text(accusations[number].refusal));
    buffer_release(&made.evidence);
}

static void test_every_false_accusation_fails_and_costs_its_bond(void **state)
{
    struct court *court = court_new();
    struct exhibit exhibit;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_MLP, 1);
    for (size_t i = 0; i < sizeof(accusations) / sizeof(accusations[0]); i++) {
        accuse_falsely(court, &exhibit, i);
    }
    exhibit_close(&exhibit);
    court_free(court);
}

static void test_claim_that_was_lost_is_not_made_again(void **state)
{
    struct court *court = court_new();
    struct game_move move = {.kind = GAME_SEAL_CLAIM, .salt = {{9}}};
    struct exhibit exhibit;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_MLP, 1);
    begin(court, &exhibit.context, 1, 1);
    court_timeout(court);
    move.seal = game_claim_seal(&court->claim, &move.salt);
    court_done(court, &move, COURT_CLAIMANT);
    court->twins.height++;
    move.kind = GAME_CLAIM;
    move.key = court->job;
    move.value = court->terms.claim_bond;
    move.segment = court->shown.segment;
    move.steps = court->shown.step;
    move.pre_state = court->shown.pre_state;
    move.post_state = court->shown.post_state;
    court_refused(court, &move, COURT_CLAIMANT, GAME_CLAIM_EXISTS);
    exhibit_close(&exhibit);
    court_free(court);
}

/* ---- a walk ----------------------------------------------------------------------- */

/* The claimant's next query; false: it knows where the lie is. */
static bool query_next(struct walk *walk, struct court *court)
{
    struct game_move move;

    if (!walk_query(walk)) {
        return false;
    }
    move = court_move(court, GAME_QUERY, walk->question.data, walk->question.size);
    court_done(court, &move, COURT_CLAIMANT);
    return true;
}

/* The accused knows what the event says, and no more. */
static struct game_move reply_next(struct walk *walk, struct court *court)
{
    walk_answer(walk, &court->queried.payload);
    return court_move(court, GAME_REPLY, walk->reply, walk->reply_size);
}

static void reply_falsely(struct walk *walk, struct court *court)
{
    struct game_move move = reply_next(walk, court);
    uint8_t other[GAME_QUERIED_MAX];

    court_refused(court, &move, COURT_CLAIMANT, GAME_NOT_YOURS);
    move.kind = GAME_CONVICT;
    court_refused(court, &move, COURT_CLAIMANT, GAME_WRONG_TURN);
    move.kind = GAME_REPLY;
    for (size_t at = 0; at < walk->reply_size; at += 1 + walk->reply_size / 5) {
        walk->reply[at] ^= 1;
        court_refused(court, &move, COURT_SOLVER, GAME_BAD_REPLY);
        walk->reply[at] ^= 1;
    }
    move.payload.size--;
    court_refused(court, &move, COURT_SOLVER, GAME_BAD_REPLY);
    move.payload.size++;
    memcpy(other, move.queried.bytes, move.queried.size);
    other[move.queried.size - 1] ^= 1;
    move.queried.bytes = other;
    court_refused(court, &move, COURT_SOLVER, GAME_NOT_QUERIED);
}

static uint32_t play_walk(struct court *court, struct walk *walk, uint32_t silent_at)
{
    struct buffer evidence;
    uint32_t replies = 0;

    begin(court, &walk->context, 1, 2);
    while (query_next(walk, court)) {
        struct game_move move;

        if (replies == silent_at) {
            court_timeout(court);
            return replies;
        }
        reply_falsely(walk, court);
        move = reply_next(walk, court);
        court_done(court, &move, COURT_SOLVER);
        assert_int_equal(trace_walk_take(&walk->walk, walk->reply, walk->reply_size, NULL),
                         STATUS_OK);
        replies++;
        court_refused(court, &move, COURT_SOLVER, GAME_WRONG_TURN);
    }
    buffer_init(&evidence, GAME_PAYLOAD_MAX);
    walk_evidence(&evidence, walk);
    convict(court, &evidence, GAME_REFUSED_NOT);
    buffer_release(&evidence);
    return replies;
}

static void test_walk_on_the_ledger_ends_in_a_conviction(void **state)
{
    struct court *court = court_new();

    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        struct walk walk;
        struct lie lie = {.item = walk_item_of_matmul(), .kind = LIE_ULP};
        wei owed = court_owed(court, COURT_CLAIMANT);
        uint32_t replies;

        walk_open(&walk, &lie, wide == 1 ? OPPONENTS_WIDE : 0);
        replies = play_walk(court, &walk, UINT32_MAX);
        print_message("a lie in tensor %u: %u rounds on the ledger, then convicted\n", lie.item,
                      replies);
        assert_true(court_owed(court, COURT_CLAIMANT) ==
                    owed + court->terms.claim_bond + court->terms.stake / 2);
        court_compare(court);
        walk_close(&walk);
    }
    court_free(court);
}

static void test_accused_that_falls_silent_is_convicted(void **state)
{
    struct court *court = court_new();
    uint32_t silent = 0;
    uint32_t replies;
    wei owed = 0;

    (void)state;
    do {
        struct lie lie = {.item = walk_item_of_matmul(), .kind = LIE_SIGN};
        struct walk walk;

        walk_open(&walk, &lie, 0);
        replies = play_walk(court, &walk, silent);
        owed += court->terms.claim_bond + court->terms.stake / 2;
        assert_true(court_owed(court, COURT_CLAIMANT) == owed);
        court_compare(court);
        if (silent == 0) {
            court_commit(court, &walk.context, 0, 1);
            court_claim(court);
            court_timeout(court);
            owed += court->terms.claim_bond + court->terms.stake / 2;
            assert_true(court_owed(court, COURT_CLAIMANT) == owed);
            print_message("silent to the claim: convicted\n");
        }
        if (replies == silent) {
            print_message("silent after %u answers: convicted\n", silent);
        }
        walk_close(&walk);
    } while (replies == silent++);
    assert_true(silent > 2);
    court_free(court);
}

/* The reply to the walk's next query, without the ledger. */
static void look_it_up(struct walk *walk)
{
    uint8_t bytes[LEDGER_QUERIED_SIZE_MAX];
    struct ledger_queried queried;

    assert_int_equal(
        ledger_query_check(&queried, &walk->context, walk->question.data, walk->question.size),
        VERDICT_VALID);
    walk_answer(walk, &(struct game_bytes){bytes, ledger_queried_write(bytes, &queried)});
}

/* The same query until no turn is left to pass back. Then the claimant can no longer query, but its
 * evidence convicts. */
static void test_turns_that_are_spent_leave_only_the_evidence(void **state)
{
    struct court *court = court_new();
    struct lie lie = {.item = walk_item_of_matmul(), .kind = LIE_ULP};
    struct game_move query;
    struct game_move move;
    struct buffer evidence;
    struct walk walk;

    (void)state;
    walk_open(&walk, &lie, 0);
    begin(court, &walk.context, 1, 2);
    assert_true(query_next(&walk, court));
    for (uint32_t turns = 2; turns <= GAME_TURNS_MAX; turns += 2) {
        move = reply_next(&walk, court);
        court_done(court, &move, COURT_SOLVER);
        query = court_move(court, GAME_QUERY, walk.question.data, walk.question.size);
        if (turns < GAME_TURNS_MAX) {
            court_done(court, &query, COURT_CLAIMANT);
        }
    }
    court_refused(court, &query, COURT_CLAIMANT, GAME_OUT_OF_TURNS);
    /* The rest of the walk gets its replies off the ledger. */
    assert_int_equal(trace_walk_take(&walk.walk, walk.reply, walk.reply_size, NULL), STATUS_OK);
    while (walk_query(&walk)) {
        look_it_up(&walk);
        assert_int_equal(trace_walk_take(&walk.walk, walk.reply, walk.reply_size, NULL), STATUS_OK);
    }
    buffer_init(&evidence, GAME_PAYLOAD_MAX);
    walk_evidence(&evidence, &walk);
    convict(court, &evidence, GAME_REFUSED_NOT);
    buffer_release(&evidence);
    walk_close(&walk);
    court_free(court);
}

/* ---- the ends of the trace ---------------------------------------------------------- */

/* A source whose state before the step is another than the one that the trace begins in. */
struct apart {
    struct evidence_source honest;
    const struct digest *before;
    uint32_t count;
};

static enum status apart_item(void *context, struct digest *root, enum evidence_list list,
                              uint32_t item, struct error *error)
{
    const struct apart *apart = context;

    if (list == EVIDENCE_BEFORE) {
        *root = apart->before[item];
        return STATUS_OK;
    }
    return apart->honest.item(apart->honest.context, root, list, item, error);
}

static enum status apart_list_node(void *context, struct digest *node, enum evidence_list list,
                                   uint32_t level, uint64_t index, struct error *error)
{
    const struct apart *apart = context;
    struct digest hashes[64];
    struct merkle_leaves leaves;

    if (list != EVIDENCE_BEFORE) {
        return apart->honest.list_node(apart->honest.context, node, list, level, index, error);
    }
    for (uint32_t i = 0; i < apart->count; i++) {
        merkle_leaf_hash(&hashes[i], apart->before[i].bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, apart->count);
    merkle_node(node, &leaves, level, index);
    return STATUS_OK;
}

static void state_evidence(struct buffer *evidence, const struct exhibit *exhibit,
                           const struct evidence_source *source, enum evidence_kind kind,
                           uint32_t number)
{
    struct error error;

    error_init(&error);
    buffer_init(evidence, GAME_PAYLOAD_MAX);
    assert_int_equal(evidence_write_state(evidence, exhibit->tape, source, kind, number, &error),
                     STATUS_OK);
}

/* The trace begins in another state than the one before the step: solvers and attestors alike. */
static void test_trace_that_begins_elsewhere_convicts(void **state)
{
    struct court *court = court_new();
    struct exhibit exhibit;
    struct digest before[64];
    struct apart apart;
    struct evidence_source source;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_MLP, 1);
    apart = (struct apart){exhibit.source, before, exhibit.tape->state_count};
    memcpy(before, exhibit.record.trace.items, apart.count * sizeof(before[0]));
    before[1].bytes[0] ^= 1;
    commit_list_root(&exhibit.context.before, COMMIT_STATE, 0, before, apart.count);
    source = exhibit.source;
    source.context = &apart;
    source.item = apart_item;
    source.list_node = apart_list_node;
    for (int attestor = 0; attestor < 2; attestor++) {
        struct buffer evidence;

        if (attestor == 1) {
            court_accuse(court, &exhibit.context);
        } else {
            begin(court, &exhibit.context, 0, 0);
        }
        state_evidence(&evidence, &exhibit, &source, EVIDENCE_FIRST_STATE, 0);
        convict(court, &evidence, GAME_NOT_GUILTY);
        buffer_release(&evidence);
        state_evidence(&evidence, &exhibit, &source, EVIDENCE_FIRST_STATE, 1);
        convict(court, &evidence, GAME_REFUSED_NOT);
        buffer_release(&evidence);
        court_compare(court);
    }
    exhibit_close(&exhibit);
    court_free(court);
}

/* The state after the step is not what the trace ends in: the solver's lie, not an attestor's. */
static void test_state_that_the_trace_does_not_lead_to_convicts(void **state)
{
    struct court *court = court_new();
    struct exhibit exhibit;
    struct buffer evidence;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_MLP, 1);
    exhibit.record.after[2].bytes[0] ^= 1;
    commit_list_root(&exhibit.context.after, COMMIT_STATE, 0, exhibit.record.after,
                     exhibit.tape->state_count);
    state_evidence(&evidence, &exhibit, &exhibit.source, EVIDENCE_NEXT_STATE, 2);
    court_accuse(court, &exhibit.context);
    convict(court, &evidence, GAME_BAD_EVIDENCE);
    begin(court, &exhibit.context, 1, 1);
    convict(court, &evidence, GAME_REFUSED_NOT);
    buffer_release(&evidence);
    exhibit_close(&exhibit);
    court_free(court);
}

/* ---- attestors ---------------------------------------------------------------------- */

static void test_false_attestation_costs_its_bond(void **state)
{
    struct court *court = court_new();
    struct evidence_target target = {.op = 0, .output = 0, .element = 0};
    struct exhibit exhibit;
    struct buffer evidence;
    wei owed;

    (void)state;
    exhibit_of_kind(&exhibit, OP_SOFTMAX, MOOD_TAME, 5);
    exhibit_make_right(&exhibit, &target);
    exhibit_set(&exhibit, &target, exhibit_get(&exhibit, &target) ^ 1);
    exhibit_evidence(&evidence, &exhibit, &target);
    court_accuse(court, &exhibit.context);
    owed = court_owed(court, COURT_CLAIMANT);
    court->shown.step = 1; /* not the one drawn */
    convict(court, &evidence, GAME_WRONG_CASE);
    court->shown.step = 0;
    convict(court, &evidence, GAME_REFUSED_NOT);
    assert_true(court_owed(court, COURT_CLAIMANT) ==
                owed + court->terms.claim_bond + court->terms.attest_bond);
    buffer_release(&evidence);

    /* And one that is right: the claimant's time passes. */
    exhibit_make_right(&exhibit, &target);
    exhibit_evidence(&evidence, &exhibit, &target);
    court_accuse(court, &exhibit.context);
    convict(court, &evidence, GAME_NOT_GUILTY);
    owed = court_owed(court, COURT_ATTESTOR);
    court_timeout(court);
    assert_true(court_owed(court, COURT_ATTESTOR) == owed + court->terms.claim_bond);
    buffer_release(&evidence);
    exhibit_close(&exhibit);
    court_free(court);
}

/* ---- divergence --------------------------------------------------------------------- */

static void set_state(struct exhibit *exhibit, uint32_t number, uint32_t element, uint32_t bits)
{
    uint32_t item = exhibit->record.places.of[exhibit->tape->states[number].after];

    memcpy(exhibit->record.kept[item] + 4 * (size_t)element, &bits, sizeof(bits));
    exhibit_changed(exhibit, item);
}

static uint32_t large_state(const struct exhibit *exhibit)
{
    for (uint32_t i = 0; i < exhibit->tape->state_count; i++) {
        const struct tensor *tensor = &exhibit->tape->tensors[exhibit->tape->states[i].before];

        if (tensor->dtype == DTYPE_F32 && tensor->count > 300) {
            return i;
        }
    }
    fail();
    return 0;
}

static void not_finite_evidence(struct buffer *evidence, const struct exhibit *exhibit,
                                uint32_t number)
{
    struct error error;

    error_init(&error);
    buffer_init(evidence, GAME_REPLY_MAX);
    assert_int_equal(
        evidence_write_not_finite(evidence, exhibit->tape, &exhibit->source, number, 290, &error),
        STATUS_OK);
}

static void test_divergence_that_was_hidden_convicts(void **state)
{
    static const uint32_t bits[] = {0x7f800000, 0xff800000, 0x7fc00000};
    struct court *court = court_new();
    struct exhibit exhibit;
    struct buffer evidence;
    uint32_t number;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_GPT2, 1);
    number = large_state(&exhibit);
    not_finite_evidence(&evidence, &exhibit, number);
    begin(court, &exhibit.context, 0, 2);
    convict(court, &evidence, GAME_NOT_GUILTY);
    buffer_release(&evidence);
    for (size_t i = 0; i < 3; i++) {
        set_state(&exhibit, number, 290, bits[i]);
        not_finite_evidence(&evidence, &exhibit, number);
        begin(court, &exhibit.context, 1, (uint32_t)i);
        convict(court, &evidence, GAME_REFUSED_NOT);
        court_compare(court);
        buffer_release(&evidence);
    }
    exhibit_close(&exhibit);
    court_free(court);
}

/* Who says that the training diverged must be able to show it. */
static void test_divergence_that_was_invented_convicts(void **state)
{
    struct court *court = court_new();
    struct exhibit exhibit;
    struct buffer evidence;
    struct buffer query_bytes;
    struct game_move query;
    struct game_move reply;
    uint32_t number;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_GPT2, 1);
    number = large_state(&exhibit);
    buffer_init(&query_bytes, GAME_PAYLOAD_MAX);
    assert_int_equal(ledger_query_write_diverged(&query_bytes, exhibit.tape, NULL), STATUS_OK);

    begin(court, &exhibit.context, 1, 2); /* only a job that ended there can be queried */
    query = court_move(court, GAME_QUERY, query_bytes.data, query_bytes.size);
    court_refused(court, &query, COURT_CLAIMANT, GAME_BAD_QUERY);

    exhibit.context.diverged = true;
    for (int honest = 0; honest < 2; honest++) {
        if (honest == 1) {
            set_state(&exhibit, number, 290, 0x7f800000);
        }
        begin(court, &exhibit.context, 1, 2);
        query = court_move(court, GAME_QUERY, query_bytes.data, query_bytes.size);
        court_done(court, &query, COURT_CLAIMANT);
        not_finite_evidence(&evidence, &exhibit, number);
        reply = court_move(court, GAME_REPLY, evidence.data, evidence.size);
        if (honest == 1) {
            court_done(court, &reply, COURT_SOLVER);
            convict(court, &evidence, GAME_BAD_EVIDENCE); /* it said so */
        } else {
            court_refused(court, &reply, COURT_SOLVER, GAME_BAD_REPLY);
        }
        wei owed = court_owed(court, honest == 1 ? COURT_SOLVER : COURT_CLAIMANT);

        court_timeout(court);
        assert_true(court_owed(court, honest == 1 ? COURT_SOLVER : COURT_CLAIMANT) > owed);
        court_compare(court);
        buffer_release(&evidence);
    }
    /* Earlier in the same segment nothing was said. */
    begin(court, &exhibit.context, 1, 1);
    query = court_move(court, GAME_QUERY, query_bytes.data, query_bytes.size);
    court_refused(court, &query, COURT_CLAIMANT, GAME_BAD_QUERY);
    buffer_release(&query_bytes);
    exhibit_close(&exhibit);
    court_free(court);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_false_accusation_fails_and_costs_its_bond),
        cmocka_unit_test(test_claim_that_was_lost_is_not_made_again),
        cmocka_unit_test(test_walk_on_the_ledger_ends_in_a_conviction),
        cmocka_unit_test(test_accused_that_falls_silent_is_convicted),
        cmocka_unit_test(test_turns_that_are_spent_leave_only_the_evidence),
        cmocka_unit_test(test_trace_that_begins_elsewhere_convicts),
        cmocka_unit_test(test_state_that_the_trace_does_not_lead_to_convicts),
        cmocka_unit_test(test_false_attestation_costs_its_bond),
        cmocka_unit_test(test_divergence_that_was_hidden_convicts),
        cmocka_unit_test(test_divergence_that_was_invented_convicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
