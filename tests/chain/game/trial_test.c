/*
 * Goal: before the referee no liar wins and no honest party loses.
 * Method: on both ledgers at once (court.h): every false accusation that we could think of, by
 * name, against an honest solver, each of which costs its bond; claims that show what was not
 * committed; silence of the accused at every point of a walk; a whole walk to a lie and its
 * conviction, at once or after all queries were spent; a solver that trained with another bit of a
 * frozen weight; one that cheats about its held-out loss, and an honest one, in a step that looks
 * and in one that does not. trial_ends_test.c has the ends of a trace.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/dispute/ledger_query.h"
#include "tests/support/dispute/exhibit.h"
#include "tests/support/dispute/walk.h"
#include "tests/support/game/court.h"
#include "tests/support/test.h"

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

    exhibit_of_kind(&other, OP_BINARY, MOOD_WILD, 3);
    buffer_release(&made->evidence);
    exhibit_evidence(&made->evidence, &other, &target);
    exhibit_close(&other);
}

static void name_another_client(struct accusation *made)
{
    made->move.subject.client.bytes[0] ^= 1;
}

static void name_another_program(struct accusation *made)
{
    made->move.subject.job_header[60] ^= 1;
}

static void name_another_step(struct accusation *made)
{
    made->move.subject.step++;
}

static void name_another_state(struct accusation *made)
{
    made->move.subject.post_state.bytes[0] ^= 1;
}

static void be_somebody_else(struct accusation *made)
{
    made->player = COURT_EVE;
}

static void be_late(struct accusation *made)
{
    made->court->twins.now_s += COURT_CLOCK + 1;
}

static void ask(struct accusation *made)
{
    made->move.kind = GAME_QUERY;
    made->move.value = COURT_QUERY_FEE;
}

static void query_garbage(struct accusation *made)
{
    ask(made);
}

static void query_for_nothing(struct accusation *made)
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
    ask(made);
}

/* A query that names another element than it shows. */
static void query_parts_of_another(struct accusation *made)
{
    struct evidence_target target = long_one(made->exhibit);

    buffer_release(&made->evidence);
    exhibit_query(&made->evidence, made->exhibit, &target);
    made->evidence.data[TRACE_QUERY_SIZE - 1] ^= 1;
    ask(made);
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
    {"a wrong step", name_another_step, GAME_WRONG_CASE},
    {"another state than claimed", name_another_state, GAME_WRONG_CASE},
    {"somebody else's claim", be_somebody_else, GAME_NOT_YOURS},
    {"evidence that comes late", be_late, GAME_TOO_LATE},
    {"a query about nothing", query_garbage, GAME_BAD_QUERY},
    {"a query that is not paid", query_for_nothing, GAME_WRONG_VALUE},
};

static void accuse_falsely(struct court *court, struct exhibit *exhibit, size_t number)
{
    struct evidence_target target = {.op = 0, .output = 0, .element = 0};
    struct accusation made = {.court = court, .exhibit = exhibit, .player = COURT_CLAIMANT};
    wei owed;

    exhibit_evidence(&made.evidence, exhibit, &target);
    court_bring(court, &exhibit->context, 1, 0);
    made.move = court_move(court, GAME_CONVICT, NULL, 0);
    accusations[number].make(&made);
    made.move.payload = (struct game_bytes){made.evidence.data, made.evidence.size};
    court_refused(court, &made.move, made.player, accusations[number].refusal);
    owed = court_owed(court, COURT_SOLVER);
    court_timeout(court);
    assert_true(court_owed(court, COURT_SOLVER) == owed + (court->terms.bond + 1) / 2);
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

/* Under another key, and for another bond: a true subject is never closed by another's default. */
static void test_claim_that_was_lost_may_be_made_again(void **state)
{
    struct court *court = court_new();
    struct exhibit exhibit;
    struct hash32 lost;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_MLP, 1);
    court_bring(court, &exhibit.context, 1, 1);
    court_timeout(court);
    lost = court->claim;
    court_claim(court);
    assert_false(hash32_equal(&lost, &court->claim));
    court_timeout(court);
    assert_true(court_owed(court, COURT_CLAIMANT) == court->terms.bond);
    court_pay(court);
    assert_true(court_owed(court, COURT_CLAIMANT) == court->terms.bond + court->terms.stake / 4);
    exhibit_close(&exhibit);
    court_free(court);
}

/* ---- what was not committed --------------------------------------------------------- */

static void claim_another_client(struct game_move *claim)
{
    claim->shown.client.bytes[0] ^= 1;
}

static void claim_another_program(struct game_move *claim)
{
    claim->shown.job_header[60] ^= 1;
}

static void claim_another_segment(struct game_move *claim)
{
    claim->shown.segment.root.bytes[3] ^= 1;
}

static void claim_another_previous(struct game_move *claim)
{
    claim->shown.previous.index++;
}

static void forge_pre_path(struct game_move *claim)
{
    claim->shown.pre_path.siblings[0].bytes[0] ^= 1;
}

static void forge_post_path(struct game_move *claim)
{
    claim->shown.post_path.siblings[0].bytes[0] ^= 1;
}

static void lengthen_post_path(struct game_move *claim)
{
    claim->shown.post_path.sibling_count++;
}

static void pay_less(struct game_move *claim)
{
    claim->value--;
}

static void change_the_salt(struct game_move *claim)
{
    claim->salt.bytes[0] ^= 1;
}

static void change_the_state(struct game_move *claim)
{
    claim->shown.post_state.bytes[0] ^= 1; /* it was not what was sealed */
}

static const struct {
    const char *name;
    void (*change)(struct game_move *claim);
    enum game_refusal_kind refusal;
} claims[] = {
    {"another client", claim_another_client, GAME_WRONG_CASE},
    {"another program", claim_another_program, GAME_WRONG_CASE},
    {"another segment", claim_another_segment, GAME_WRONG_SEGMENT},
    {"another previous segment", claim_another_previous, GAME_WRONG_CASE},
    {"a forged path of the state before", forge_pre_path, GAME_WRONG_CASE},
    {"a forged path of the state after", forge_post_path, GAME_WRONG_CASE},
    {"a path of another length", lengthen_post_path, GAME_WRONG_CASE},
    {"a lower bond", pay_less, GAME_WRONG_VALUE},
    {"another salt", change_the_salt, GAME_NOT_SEALED},
    {"another state", change_the_state, GAME_NOT_SEALED},
};

/* Such a claim does not exist: it costs nothing, and nobody answers it. */
static void test_claim_about_what_was_not_committed_is_refused(void **state)
{
    struct court *court = court_new();
    struct exhibit exhibit;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_MLP, 1);
    court_commit(court, &exhibit.context, 1, 0);
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        struct game_move claim;

        court->twins.height += 33; /* the seal before is dead */
        claim = court_seal(court);
        claims[i].change(&claim);
        court_refused(court, &claim, COURT_CLAIMANT, claims[i].refusal);
        print_message("%-36s refused: %s\n", claims[i].name, game_refusal_text(claims[i].refusal));
    }
    court->twins.height += 33;
    court_claim(court);
    exhibit_close(&exhibit);
    court_free(court);
}

/* Sealed by the claimant: states that are nowhere under the segment's root, another step. */
static void test_claim_about_other_states_is_refused(void **state)
{
    struct court *court = court_new();
    struct exhibit exhibit;
    struct game_move claim;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_MLP, 1);
    court_commit(court, &exhibit.context, 1, 1);
    court->shown.post_state.bytes[5] ^= 1;
    claim = court_seal(court);
    court_refused(court, &claim, COURT_CLAIMANT, GAME_WRONG_CASE);
    court->shown.post_state.bytes[5] ^= 1;
    court->shown.step++;
    claim = court_seal(court);
    court_refused(court, &claim, COURT_CLAIMANT, GAME_WRONG_CASE);
    court->shown.step = COURT_STEPS;
    claim = court_seal(court);
    court_refused(court, &claim, COURT_CLAIMANT, GAME_WRONG_STEPS);
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

/* Until the solver falls silent, which *silent says, or is convicted. How often it replied. */
static uint32_t play_walk(struct court *court, struct walk *walk, bool *silent, uint32_t silent_at)
{
    struct buffer evidence;
    uint32_t replies = 0;

    court_bring(court, &walk->context, 1, 2);
    while (query_next(walk, court)) {
        struct game_move move;

        *silent = replies == silent_at;
        if (*silent) {
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
    court_convict(court, &evidence, GAME_REFUSED_NOT);
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
        bool silent;

        walk_open(&walk, &lie, wide == 1 ? OPPONENTS_WIDE : 0);
        replies = play_walk(court, &walk, &silent, UINT32_MAX);
        print_message("a lie in tensor %u: %u rounds on the ledger, then convicted\n", lie.item,
                      replies);
        court_pay(court);
        assert_true(court_owed(court, COURT_CLAIMANT) ==
                    owed + court->terms.bond + court->terms.stake / 4);
        court_compare(court);
        walk_close(&walk);
    }
    court_free(court);
}

static void test_accused_that_falls_silent_is_convicted(void **state)
{
    struct court *court = court_new();
    uint32_t silent_at = 0;
    uint32_t replies;
    bool silent = false;
    wei owed = 0;

    (void)state;
    do {
        struct lie lie = {.item = walk_item_of_matmul(), .kind = LIE_SIGN};
        struct walk walk;

        walk_open(&walk, &lie, 0);
        replies = play_walk(court, &walk, &silent, silent_at);
        court_pay(court);
        owed += court->terms.bond + court->terms.stake / 4;
        owed += silent ? court->terms.query_fee : 0; /* no reply came */
        assert_true(court_owed(court, COURT_CLAIMANT) == owed);
        court_compare(court);
        if (silent_at == 0) {
            court_commit(court, &walk.context, 0, 1);
            court_claim(court);
            court_timeout(court);
            court_pay(court);
            owed += court->terms.bond + court->terms.stake / 4;
            assert_true(court_owed(court, COURT_CLAIMANT) == owed);
            print_message("silent to the claim: convicted\n");
        }
        if (silent) {
            print_message("silent after %u answers: convicted\n", replies);
        }
        walk_close(&walk);
    } while (silent && ++silent_at > 0);
    assert_true(silent_at > 1);
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

/* The same query until none is left. Then the claimant can no longer query, but its evidence
 * convicts. */
static void test_queries_that_are_spent_leave_only_the_evidence(void **state)
{
    struct court *court = court_new();
    struct lie lie = {.item = walk_item_of_matmul(), .kind = LIE_ULP};
    struct game_move query;
    struct game_move move;
    struct buffer evidence;
    struct walk walk;

    (void)state;
    walk_open(&walk, &lie, 0);
    court_bring(court, &walk.context, 1, 2);
    assert_true(query_next(&walk, court));
    query = court_move(court, GAME_QUERY, walk.question.data, walk.question.size);
    for (uint32_t queries = 1; queries <= GAME_QUERIES_MAX; queries++) {
        move = reply_next(&walk, court);
        court_done(court, &move, COURT_SOLVER);
        if (queries < GAME_QUERIES_MAX) {
            court_done(court, &query, COURT_CLAIMANT);
        }
    }
    court_refused(court, &query, COURT_CLAIMANT, GAME_FULL);
    assert_true(court_owed(court, COURT_SOLVER) == GAME_QUERIES_MAX * COURT_QUERY_FEE);
    /* The rest of the walk gets its replies off the ledger. */
    assert_int_equal(trace_walk_take(&walk.walk, walk.reply, walk.reply_size, NULL), STATUS_OK);
    while (walk_query(&walk)) {
        look_it_up(&walk);
        assert_int_equal(trace_walk_take(&walk.walk, walk.reply, walk.reply_size, NULL), STATUS_OK);
    }
    buffer_init(&evidence, GAME_PAYLOAD_MAX);
    walk_evidence(&evidence, &walk);
    court_convict(court, &evidence, GAME_REFUSED_NOT);
    buffer_release(&evidence);
    walk_close(&walk);
    court_free(court);
}

/* ---- frozen weights ----------------------------------------------------------------- */

/* Opened at the first element of which the last bit is seen in the step. False: none. */
static bool open_frozen(struct walk *walk, uint64_t seed, uint32_t frozen, uint64_t count,
                        uint64_t *element)
{
    for (*element = 0; *element < count; ++*element) {
        walk_open_frozen(walk, seed, frozen, *element);
        if (!digest_equal(&walk->accused.trace.root, &walk->dispute.own.trace.root)) {
            return true;
        }
        walk_close(walk);
    }
    return false;
}

/* A solver with the job's weights, accused by them, then by others, which have another root. */
static void accuse_the_honest(struct court *court, struct exhibit *exhibit, uint32_t frozen,
                              uint64_t element, const struct evidence_target *target)
{
    for (int other = 0; other < 2; other++) {
        struct buffer evidence;

        court_bring(court, &exhibit->context, 1, 2);
        exhibit_evidence(&evidence, exhibit, target);
        court_convict(court, &evidence, other == 1 ? GAME_BAD_EVIDENCE : GAME_NOT_GUILTY);
        court_timeout(court);
        court_compare(court);
        buffer_release(&evidence);
        walk_spoil_frozen(exhibit->data[exhibit->record.places.of[frozen]],
                          &exhibit->tape->tensors[frozen], element);
    }
}

/* The walk ends at an operation that reads the tensor; its leaf under the job's root convicts. */
static uint32_t try_frozen(struct court *court, struct exhibit *exhibit, uint64_t seed,
                           uint32_t frozen)
{
    const struct tensor *tensor = &exhibit->tape->tensors[frozen];
    struct evidence_target target = {0};
    bool silent = false;
    bool read = false;
    const struct op *op;
    struct walk walk;
    uint64_t element;
    uint32_t replies;

    if (!open_frozen(&walk, seed, frozen, tensor->count, &element)) {
        return 0; /* the tape does not read it */
    }
    replies = play_walk(court, &walk, &silent, UINT32_MAX);
    evidence_aim(&target, exhibit->tape, walk.walk.item);
    op = &exhibit->tape->ops[target.op];
    for (uint32_t i = 0; i < op->input_count; i++) {
        read = read || op->inputs[i] == frozen;
    }
    assert_true(read);
    court_compare(court);
    print_message("another bit of %s (%s) in %s: %u rounds, then convicted\n", tensor->name,
                  dtype_name(tensor->dtype), op_kind_name(op->kind), replies);
    walk_close(&walk);
    accuse_the_honest(court, exhibit, frozen, element, &target);
    return 1;
}

static void test_another_bit_of_a_frozen_weight_convicts(void **state)
{
    struct court *court = court_new();
    uint32_t tried[2] = {0};

    (void)state;
    for (uint64_t seed = 0; seed < 40; seed += 5) { /* of these seeds weights are frozen */
        struct exhibit exhibit;

        exhibit_of_tape(&exhibit, seed, WALK_RANDOM_OPS);
        for (uint32_t id = 0; id < exhibit.tape->tensor_count; id++) {
            const struct tensor *tensor = &exhibit.tape->tensors[id];

            if (tensor->role == ROLE_DATA && dtype_is_half(tensor->dtype)) {
                tried[tensor->dtype == DTYPE_BF16] += try_frozen(court, &exhibit, seed, id);
            }
        }
        exhibit_close(&exhibit);
    }
    assert_true(tried[0] > 0 && tried[1] > 0);
    court_free(court);
}

/* ---- held-out data ------------------------------------------------------------------ */

static const struct {
    const char *name;
    enum op_kind kind; /* what is shown at the end of the walk */
} cheats[HELD_OUT_CHEAT_COUNT] = {
    [HELD_OUT_WINDOW] = {"a number of a held-out batch", OP_BATCH_SAMPLES},
    [HELD_OUT_LOGITS] = {"a number of its logits", OP_CONTRACT},
    [HELD_OUT_MEAN] = {"half the held-out loss", OP_MAP},
    [HELD_OUT_FIGURE] = {"half the loss in the state", OP_SELECT},
    [HELD_OUT_DATA] = {"other held-out data", OP_BATCH_SAMPLES},
    [HELD_OUT_DUE] = {"other steps that look", OP_SCHEDULE},
};

/* The claimant's step takes the new loss where it looks, and keeps the old one where not. */
static void check_choice(const struct walk *walk, bool is_due)
{
    const struct trace *own = &walk->dispute.own.trace;
    const struct tape *tape = walk->dispute.tape;
    const struct op *choice = walk_held_out_choice(walk);
    uint32_t state = 0;
    uint32_t op = 0;

    while (tape->states[state].after != choice->outputs[0]) {
        state++;
    }
    while (&tape->ops[op] != choice) {
        op++;
    }
    op = trace_item_of_output(tape, (struct op_turn){op, 0}, 0);
    assert_int_equal(digest_equal(&own->items[op], &own->items[state]), !is_due);
}

static void try_held_out(struct court *court, enum held_out_cheat cheat, bool is_due)
{
    wei owed = court_owed(court, COURT_CLAIMANT);
    struct evidence_target target = {0};
    bool silent = false;
    struct walk walk;
    uint32_t replies;

    walk_open_held_out(&walk, cheat, is_due);
    check_choice(&walk, is_due);
    replies = play_walk(court, &walk, &silent, UINT32_MAX);
    evidence_aim(&target, walk.dispute.tape, walk.walk.item);
    assert_int_equal(walk.dispute.tape->ops[target.op].kind, cheats[cheat].kind);
    assert_true(walk.liar.lie.item == TENSOR_NONE || walk.liar.lie.item == walk.walk.item);
    court_pay(court);
    assert_true(court_owed(court, COURT_CLAIMANT) ==
                owed + court->terms.bond + court->terms.stake / 4);
    court_compare(court);
    print_message("%s, in a step that %s: %u rounds, then convicted\n", cheats[cheat].name,
                  is_due ? "looks" : "does not look", replies);
    walk_close(&walk);
}

/* Of the last operation of each of these kinds, which is one of the held-out pass. */
static void accuse_honest_figures(struct court *court, bool is_due)
{
    struct model_options options;
    struct exhibit exhibit;

    walk_held_out_options(&options, is_due);
    exhibit_of_options(&exhibit, &options, 2);
    court_bring(court, &exhibit.context, 1, 2);
    for (size_t i = 0; i < HELD_OUT_CHEAT_COUNT; i++) {
        struct evidence_target target = {.op = exhibit.tape->op_count - 1};
        struct buffer evidence;

        while (exhibit.tape->ops[target.op].kind != cheats[i].kind) {
            target.op--;
        }
        exhibit_evidence(&evidence, &exhibit, &target);
        court_convict(court, &evidence, GAME_NOT_GUILTY);
        buffer_release(&evidence);
    }
    court_timeout(court);
    court_compare(court);
    exhibit_close(&exhibit);
}

static void test_lie_about_the_held_out_loss_convicts(void **state)
{
    struct court *court = court_new();

    (void)state;
    for (int is_due = 0; is_due < 2; is_due++) {
        for (uint32_t cheat = 0; cheat < HELD_OUT_CHEAT_COUNT; cheat++) {
            try_held_out(court, (enum held_out_cheat)cheat, is_due == 1);
        }
        accuse_honest_figures(court, is_due == 1);
    }
    court_free(court);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_false_accusation_fails_and_costs_its_bond),
        cmocka_unit_test(test_claim_that_was_lost_may_be_made_again),
        cmocka_unit_test(test_claim_about_what_was_not_committed_is_refused),
        cmocka_unit_test(test_claim_about_other_states_is_refused),
        cmocka_unit_test(test_walk_on_the_ledger_ends_in_a_conviction),
        cmocka_unit_test(test_accused_that_falls_silent_is_convicted),
        cmocka_unit_test(test_queries_that_are_spent_leave_only_the_evidence),
        cmocka_unit_test(test_another_bit_of_a_frozen_weight_convicts),
        cmocka_unit_test(test_lie_about_the_held_out_loss_convicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
