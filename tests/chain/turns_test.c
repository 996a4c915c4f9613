/*
 * Goal: an honest solver never loses a dispute, and an honest claimant never loses one against a
 * liar, whatever the other does and whenever.
 * Method: every history of a dispute on the embedded ledger, whose rules are the contract's
 * (history_test.c, trial_test.c): in each state that can be reached, the adversary and a stranger
 * try every move that they have bytes for, true and false, and time passes to the edge of the turn
 * and beyond it; the honest one plays by its strategy, at the last moment too. States that are
 * alike are visited once. The question, answers and evidence are real ones of a small step.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/court.h"
#include "tests/support/exhibit.h"
#include "tests/support/test.h"
#include "tests/support/walk.h"

enum {
    ROUNDS_MAX = 8,
    STATES_MAX = 20000,
    TIMES = 3, /* of a turn: its begin, its last second, and after it */
};

enum honest { HONEST_SOLVER, HONEST_CLAIMANT };

/* What the parties have bytes for. */
struct arsenal {
    uint32_t rounds;
    struct buffer questions[ROUNDS_MAX];
    struct buffer asked[ROUNDS_MAX];
    struct buffer told[ROUNDS_MAX];
    struct buffer evidence; /* convicts the liar; against an honest trace it shows nothing wrong */
    struct buffer part;     /* the first part of a sum, whose end is evidence */
};

/* All that tells two states apart. */
struct place {
    uint32_t phase;
    uint32_t turn;
    uint32_t turns;
    uint32_t time;
    uint32_t known;   /* rounds that the honest claimant has the answers to */
    uint64_t counted; /* of a sum */
    struct hash32 pending;
    struct digest trace_root;
};

struct search {
    struct court court;
    struct arsenal arsenal;
    enum honest honest;
    struct place *seen;
    uint32_t seen_count;
    uint32_t upheld;
    uint32_t refuted;
    uint32_t deepest;
    struct digest garbage; /* a trace root that nobody has a trace for */
};

/* ---- the bytes -------------------------------------------------------------------- */

static void keep(struct buffer *to, const void *bytes, size_t size)
{
    buffer_init(to, GAME_PAYLOAD_MAX);
    buffer_add(to, bytes, size);
    assert_int_equal(to->status, STATUS_OK);
}

/* A walk to the element that is lied about, and evidence of it. */
static void arm_against_liar(struct search *search)
{
    struct arsenal *arsenal = &search->arsenal;
    struct lie lie = {.item = walk_item_of_matmul(), .kind = LIE_ULP};
    struct walk walk;

    walk_open(&walk, &lie, false);
    search->court.context = walk.context;
    while (walk_question(&walk)) {
        const struct question_context context = {.program = walk.context.program,
                                                 .trace = walk.context.trace,
                                                 .next = walk.context.after};
        uint32_t i = arsenal->rounds++;
        uint8_t bytes[ASKED_SIZE_MAX];
        struct asked asked;

        assert_true(i < ROUNDS_MAX);
        assert_int_equal(question_check(&asked, &context, walk.question.data, walk.question.size),
                         VERDICT_VALID);
        keep(&arsenal->questions[i], walk.question.data, walk.question.size);
        keep(&arsenal->asked[i], bytes, asked_write(bytes, &asked));
        walk_answer(&walk, &(struct game_bytes){arsenal->asked[i].data, arsenal->asked[i].size});
        keep(&arsenal->told[i], walk.told, walk.told_size);
        assert_int_equal(hunt_take(&walk.hunt, walk.told, walk.told_size, NULL), STATUS_OK);
    }
    buffer_init(&arsenal->evidence, GAME_PAYLOAD_MAX);
    walk_evidence(&arsenal->evidence, &walk);
    walk_close(&walk);
}

/* A long sum that is right, in two parts, and a question about the list of its trace. */
static void arm_against_honest(struct search *search)
{
    struct arsenal *arsenal = &search->arsenal;
    struct evidence_target target = {0};
    struct ask ask = {.kind = ASK_LIST};
    uint8_t told[TELL_BYTES_MAX];
    uint8_t bytes[ASKED_SIZE_MAX];
    struct tell_tree tree = {0};
    struct exhibit exhibit;
    struct asked asked;
    uint64_t to = 0;
    bool last = true;

    for (uint64_t seed = 0; last || exhibit.tape->state_count == 0; seed++) {
        if (seed > 0) {
            exhibit_close(&exhibit);
            buffer_release(&arsenal->part);
        }
        exhibit_of_kind(&exhibit, OP_CONTRACT_ONES, MOOD_TAME, seed);
        exhibit_make_right(&exhibit, &target);
        buffer_init(&arsenal->part, GAME_PAYLOAD_MAX);
        assert_int_equal(evidence_write_element(&arsenal->part, &to, &last, exhibit.tape,
                                                &exhibit.source, &target, 0, 5000, NULL),
                         STATUS_OK);
    }
    buffer_init(&arsenal->evidence, GAME_PAYLOAD_MAX);
    assert_int_equal(evidence_write_element(&arsenal->evidence, &to, &last, exhibit.tape,
                                            &exhibit.source, &target, to, GAME_PAYLOAD_MAX, NULL),
                     STATUS_OK);
    assert_true(last);

    /* A question about the list is that about a divergence, but for the ask. */
    search->court.context = exhibit.context;
    buffer_init(&arsenal->questions[0], GAME_PAYLOAD_MAX);
    assert_int_equal(question_write_diverged(&arsenal->questions[0], exhibit.tape, NULL),
                     STATUS_OK);
    ask_write(arsenal->questions[0].data, &ask);
    assert_int_equal(question_check(&asked,
                                    &(struct question_context){.program = exhibit.context.program,
                                                               .trace = exhibit.context.trace,
                                                               .next = exhibit.context.after},
                                    arsenal->questions[0].data, arsenal->questions[0].size),
                     VERDICT_VALID);
    keep(&arsenal->asked[0], bytes, asked_write(bytes, &asked));
    merkle_leaves_init_hashes(&tree.hashes, exhibit.record.trace.hashes,
                              exhibit.record.trace.item_count);
    tree.items = exhibit.record.trace.items;
    keep(&arsenal->told[0], told, tell_write(told, &ask, &tree));
    arsenal->rounds = 1;
    exhibit_close(&exhibit);
}

static void disarm(struct search *search)
{
    for (uint32_t i = 0; i < search->arsenal.rounds; i++) {
        buffer_release(&search->arsenal.questions[i]);
        buffer_release(&search->arsenal.asked[i]);
        buffer_release(&search->arsenal.told[i]);
    }
    buffer_release(&search->arsenal.evidence);
    buffer_release(&search->arsenal.part);
}

/* ---- moves ------------------------------------------------------------------------ */

static struct game_bytes bytes_of(const struct buffer *buffer)
{
    return (struct game_bytes){buffer->data, buffer->size};
}

static struct game_move about(const struct search *search, enum game_move_kind kind)
{
    struct game_move move = {.kind = kind, .key = search->court.claim};

    if (kind == GAME_ASK || kind == GAME_CONVICT) {
        move.shown = search->court.shown;
    }
    return move;
}

static void sql(struct search *search, const char *text)
{
    assert_int_equal(sqlite3_exec(search->court.twins.database, text, NULL, NULL, NULL), SQLITE_OK);
}

static bool play(struct search *search, const struct game_move *move, uint32_t player)
{
    struct twins *twins = &search->court.twins;
    struct local_game game = {.store = &twins->store,
                              .sender = twins->players[player],
                              .referee = twins->referee,
                              .judges = true,
                              .now_s = twins->now_s,
                              .height = twins->height};
    enum status status = local_game_play(&game, move);

    assert_true(status == STATUS_OK || status == STATUS_REFUSED);
    return status == STATUS_OK;
}

static struct local_claim claim_now(struct search *search)
{
    struct local_claim claim;

    assert_int_equal(local_get_claim(&search->court.twins.store, &claim, &search->court.claim),
                     STATUS_OK);
    return claim;
}

static void explore(struct search *search, uint32_t known, uint32_t depth);

/* Plays the move and everything that can follow, and takes it back; was it done? */
static bool try_move(struct search *search, const struct game_move *move, uint32_t player,
                     uint32_t known, uint32_t depth)
{
    bool done;

    sql(search, "SAVEPOINT turn");
    done = play(search, move, player);
    if (done) {
        explore(search, known, depth + 1);
    }
    sql(search, "ROLLBACK TO turn; RELEASE turn");
    return done;
}

/* ---- who plays what ----------------------------------------------------------------- */

/* Everything, by somebody who is not honest or is a stranger. */
static void try_everything(struct search *search, uint32_t player, uint32_t known, uint32_t depth)
{
    const struct arsenal *arsenal = &search->arsenal;
    struct game_move move = about(search, GAME_ANSWER);

    move.root = search->court.context.trace;
    (void)try_move(search, &move, player, known, depth);
    move.root = search->garbage;
    (void)try_move(search, &move, player, known, depth);
    for (uint32_t i = 0; i < arsenal->rounds; i++) {
        move = about(search, GAME_ASK);
        move.payload = bytes_of(&arsenal->questions[i]);
        (void)try_move(search, &move, player, known, depth);
        for (uint32_t j = 0; j < arsenal->rounds; j++) {
            move = about(search, GAME_TELL);
            move.asked = bytes_of(&arsenal->asked[i]);
            move.payload = bytes_of(&arsenal->told[j]);
            (void)try_move(search, &move, player,
                           search->honest == HONEST_CLAIMANT && i == j && i == known ? known + 1
                                                                                     : known,
                           depth);
        }
    }
    move = about(search, GAME_CONVICT);
    move.payload = bytes_of(&arsenal->evidence);
    (void)try_move(search, &move, player, known, depth);
    move.payload.size--;
    (void)try_move(search, &move, player, known, depth);
    move.payload = bytes_of(&arsenal->part);
    (void)try_move(search, &move, player, known, depth);
    for (uint32_t i = 0; i < 2; i++) {
        move = about(search, GAME_PASS_TURN);
        move.turn = i;
        assert_false(try_move(search, &move, player, known, depth));
        move = about(search, GAME_RULE);
        move.upheld = i == 1;
        assert_false(try_move(search, &move, player, known, depth));
    }
    move = about(search, GAME_TIMEOUT);
    (void)try_move(search, &move, player, known, depth);
    move = about(search, GAME_LAPSE);
    assert_false(try_move(search, &move, player, known, depth));
}

/* The honest solver answers, and tells what it is asked for. */
static bool solver_moves(struct search *search, const struct local_claim *claim, uint32_t known,
                         uint32_t depth)
{
    struct local_trial trial;
    struct game_move move = about(search, GAME_ANSWER);

    if (claim->phase == GAME_CLAIM_CALLED) {
        move.root = search->court.context.trace;
        return try_move(search, &move, COURT_SOLVER, known, depth);
    }
    assert_int_equal(local_get_trial(&search->court.twins.store, &trial, &search->court.claim),
                     STATUS_OK);
    for (uint32_t i = 0; i < search->arsenal.rounds; i++) {
        struct hash32 hash =
            keccak256(search->arsenal.asked[i].data, search->arsenal.asked[i].size);

        if (hash32_equal(&hash, &trial.pending)) {
            move = about(search, GAME_TELL);
            move.asked = bytes_of(&search->arsenal.asked[i]);
            move.payload = bytes_of(&search->arsenal.told[i]);
            return try_move(search, &move, COURT_SOLVER, known, depth);
        }
    }
    return false;
}

/* The honest claimant asks its way down, and convicts. */
static bool claimant_moves(struct search *search, const struct local_claim *claim, uint32_t known,
                           uint32_t depth)
{
    bool real = digest_equal(&claim->trace_root, &search->court.context.trace);
    struct game_move move = about(search, GAME_CONVICT);

    move.payload = bytes_of(&search->arsenal.evidence);
    if (!real || known < search->arsenal.rounds) {
        /* Of a root without a trace the first question is asked, and nobody can answer. */
        move = about(search, GAME_ASK);
        move.payload = bytes_of(&search->arsenal.questions[real ? known : 0]);
    }
    return try_move(search, &move, COURT_CLAIMANT, known, depth);
}

/* ---- the search --------------------------------------------------------------------- */

static bool is_same(const struct place *a, const struct place *b)
{
    return a->phase == b->phase && a->turn == b->turn && a->turns == b->turns &&
           a->time == b->time && a->known == b->known && a->counted == b->counted &&
           hash32_equal(&a->pending, &b->pending) && digest_equal(&a->trace_root, &b->trace_root);
}

static bool is_new(struct search *search, const struct place *place)
{
    for (uint32_t i = 0; i < search->seen_count; i++) {
        if (is_same(&search->seen[i], place)) {
            return false;
        }
    }
    assert_true(search->seen_count < STATES_MAX);
    search->seen[search->seen_count++] = *place;
    return true;
}

static struct place place_of(struct search *search, const struct local_claim *claim, uint32_t time,
                             uint32_t known)
{
    struct local_trial trial;
    struct place place;

    assert_int_equal(local_get_trial(&search->court.twins.store, &trial, &search->court.claim),
                     STATUS_OK);
    memset(&place, 0, sizeof(place));
    place.phase = claim->phase;
    place.turn = claim->turn;
    place.turns = claim->turns;
    place.time = time;
    place.known = known;
    place.counted = trial.next;
    place.pending = trial.pending;
    place.trace_root = claim->trace_root;
    return place;
}

/* It is over: who has the money? */
static void check_end(struct search *search)
{
    wei bond = search->court.terms.claim_bond;
    wei claimant = court_owed(&search->court, COURT_CLAIMANT);
    wei solver = court_owed(&search->court, COURT_SOLVER);

    if (search->honest == HONEST_SOLVER) {
        assert_true(claimant == 0 && solver == bond);
        search->refuted++;
    } else {
        assert_true(claimant == bond + search->court.terms.stake / 2 && solver == 0);
        search->upheld++;
    }
}

static void explore_at(struct search *search, const struct local_claim *claim, uint32_t time,
                       uint32_t known, uint32_t depth)
{
    const bool solver_honest = search->honest == HONEST_SOLVER;
    const bool its_turn = claim->turn == (solver_honest ? GAME_TURN_ACCUSED : GAME_TURN_CLAIMANT);
    struct place place = place_of(search, claim, time, known);

    if (!is_new(search, &place)) {
        return;
    }
    try_everything(search, solver_honest ? COURT_CLAIMANT : COURT_SOLVER, known, depth);
    try_everything(search, COURT_EVE, known, depth);
    if (its_turn) {
        /* The honest one is in time: it always has a move, and the move is taken. */
        assert_true(solver_honest ? solver_moves(search, claim, known, depth)
                                  : claimant_moves(search, claim, known, depth));
    } else if (time == TIMES - 1) {
        struct game_move move = about(search, GAME_TIMEOUT);

        assert_true(
            try_move(search, &move, solver_honest ? COURT_SOLVER : COURT_CLAIMANT, known, depth));
    }
}

static void explore(struct search *search, uint32_t known, uint32_t depth)
{
    const uint64_t begun_s = search->court.twins.now_s;
    struct local_claim claim = claim_now(search);
    bool honest_turn =
        claim.turn ==
        (uint32_t)(search->honest == HONEST_SOLVER ? GAME_TURN_ACCUSED : GAME_TURN_CLAIMANT);

    search->deepest = depth > search->deepest ? depth : search->deepest;
    if (claim.phase == GAME_CLAIM_CLOSED) {
        check_end(search);
        return;
    }
    for (uint32_t time = 0; time < (honest_turn ? TIMES - 1 : TIMES); time++) {
        search->court.twins.now_s = time == 0   ? begun_s
                                    : time == 1 ? claim.deadline_s
                                                : claim.deadline_s + 1;
        if (search->court.twins.now_s >= begun_s) {
            explore_at(search, &claim, time, known, depth);
        }
    }
    search->court.twins.now_s = begun_s;
}

static void search_all(enum honest honest)
{
    struct search *search = calloc(1, sizeof(*search));
    struct evidence_context context;

    assert_non_null(search);
    search->honest = honest;
    search->seen = calloc(STATES_MAX, sizeof(*search->seen));
    memset(search->garbage.bytes, 0x77, DIGEST_SIZE);
    court_open_embedded(&search->court);
    if (honest == HONEST_SOLVER) {
        arm_against_honest(search);
    } else {
        arm_against_liar(search);
    }
    context = search->court.context;
    court_commit(&search->court, &context, 1, 1);
    court_claim(&search->court);
    explore(search, 0, 0);
    print_message("%u states, up to %u moves deep: %u ends refuted, %u upheld\n",
                  search->seen_count, search->deepest, search->refuted, search->upheld);
    assert_true(honest == HONEST_SOLVER ? search->refuted > 0 : search->upheld > 0);
    disarm(search);
    court_close(&search->court);
    free(search->seen);
    free(search);
}

static void test_honest_solver_never_loses(void **state)
{
    (void)state;
    search_all(HONEST_SOLVER);
}

static void test_honest_claimant_never_loses_to_a_liar(void **state)
{
    (void)state;
    search_all(HONEST_CLAIMANT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_honest_solver_never_loses),
        cmocka_unit_test(test_honest_claimant_never_loses_to_a_liar),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
