/*
 * Goal: an honest solver never loses a dispute, and an honest claimant never loses one against a
 * liar, no matter what the other does and when. Method: every history of a dispute on the embedded
 * ledger, whose rules are the contract's (history_test.c, trial_test.c): in each state that can be
 * reached, the adversary and a stranger try every move that they have bytes for, true and false,
 * and time passes to the edge of the turn and beyond it; the honest one plays by its strategy, at
 * the last moment too. States that are alike are visited once. Queries, replies and evidence are
 * real ones of a small step.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/dispute/forgery.h"
#include "tests/support/dispute/walk.h"
#include "tests/support/game/court.h"
#include "tests/support/test.h"

enum {
    ROUNDS_MAX = 8,
    STATES_MAX = 20000,
    TIMES = 3, /* of a turn: its begin, its last second, and after it */
};

enum honest {
    HONEST_SOLVER,
    HONEST_CLAIMANT,
    HONEST_CLAIMANT_OF_PARTS, /* the lie is in an element that is too long to show */
};

/* What the parties have bytes for. */
struct arsenal {
    uint32_t rounds;
    struct buffer queries[ROUNDS_MAX];
    struct buffer queried[ROUNDS_MAX];
    uint32_t answers;
    struct buffer reply[ROUNDS_MAX];
    uint32_t about[ROUNDS_MAX]; /* the query that a reply is to */
    /* The first convicts the liar; after a reply of parts, the one with the reply's number does
     * after that answer. Against an honest trace none shows anything wrong. */
    uint32_t shown;
    struct buffer evidence[ROUNDS_MAX];
};

/* All that distinguishes two states. */
struct place {
    uint32_t phase;
    uint32_t turn;
    uint32_t queries;
    uint32_t solver_left_s;
    uint32_t lead_left_s;
    uint32_t time;
    uint32_t known; /* rounds that the honest claimant has the answers to */
    struct hash32 said;
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

static void add_query(struct search *search, const struct buffer *query_bytes)
{
    struct arsenal *arsenal = &search->arsenal;
    uint32_t i = arsenal->rounds++;
    uint8_t bytes[LEDGER_QUERIED_SIZE_MAX];
    struct ledger_queried queried;

    assert_true(i < ROUNDS_MAX);
    assert_int_equal(
        ledger_query_check(&queried, &search->court.context, query_bytes->data, query_bytes->size),
        VERDICT_VALID);
    keep(&arsenal->queries[i], query_bytes->data, query_bytes->size);
    keep(&arsenal->queried[i], bytes, ledger_queried_write(bytes, &queried));
}

/* To the query that was added last. */
static void add_answer(struct search *search, const uint8_t *reply, size_t size)
{
    struct arsenal *arsenal = &search->arsenal;

    assert_true(arsenal->answers < ROUNDS_MAX);
    arsenal->about[arsenal->answers] = arsenal->rounds - 1;
    keep(&arsenal->reply[arsenal->answers++], reply, size);
}

static struct buffer *add_evidence(struct search *search)
{
    struct arsenal *arsenal = &search->arsenal;

    assert_true(arsenal->shown < ROUNDS_MAX);
    return &arsenal->evidence[arsenal->shown++];
}

/* A walk to the element that is lied about, and evidence of it. */
static void arm_against_liar(struct search *search)
{
    struct arsenal *arsenal = &search->arsenal;
    struct lie lie = {.item = walk_item_of_matmul(), .kind = LIE_ULP};
    struct buffer *evidence = add_evidence(search);
    struct walk walk;

    walk_open(&walk, &lie, 0);
    search->court.context = walk.context;
    while (walk_query(&walk)) {
        uint32_t i = arsenal->rounds;

        add_query(search, &walk.question);
        walk_answer(&walk,
                    &(struct game_bytes){arsenal->queried[i].data, arsenal->queried[i].size});
        add_answer(search, walk.reply, walk.reply_size);
        assert_int_equal(trace_walk_take(&walk.walk, walk.reply, walk.reply_size, NULL), STATUS_OK);
    }
    buffer_init(evidence, GAME_PAYLOAD_MAX);
    walk_evidence(evidence, &walk);
    walk_close(&walk);
}

/* An element that has parts. */
static void open_long(struct exhibit *exhibit, struct evidence_target *target)
{
    *target = (struct evidence_target){0};
    for (uint64_t seed = 0;; seed++) {
        exhibit_of_kind(exhibit, OP_CONTRACT_ONES, MOOD_TAME, seed);
        if (exhibit_axis(exhibit, target).parts > 1 && exhibit->tape->state_count > 0) {
            exhibit_make_right(exhibit, target);
            return;
        }
        exhibit_close(exhibit);
    }
}

/* A query of the list is that of a divergence, but for its kind. */
static void add_list(struct search *search, const struct exhibit *exhibit)
{
    struct trace_query query = {.kind = TRACE_QUERY_LIST};
    struct trace_reply_tree tree = {.items = exhibit->record.trace.items};
    uint8_t reply[TRACE_REPLY_BYTES_MAX];
    struct buffer query_bytes;

    buffer_init(&query_bytes, GAME_PAYLOAD_MAX);
    assert_int_equal(ledger_query_write_plain(&query_bytes, exhibit->tape,
                                              &(struct trace_query){.kind = TRACE_QUERY_DIVERGED},
                                              NULL),
                     STATUS_OK);
    trace_query_write(query_bytes.data, &query);
    add_query(search, &query_bytes);
    buffer_release(&query_bytes);
    merkle_leaves_init_hashes(&tree.hashes, exhibit->record.trace.hashes,
                              exhibit->record.trace.item_count);
    add_answer(search, reply, trace_reply_write(reply, &query, &tree));
}

/* A lie with several replies of parts that come to it; the claimant has evidence of a
 * false part for each. The truth, which does not come to it, is among the answers; and there is
 * the list of the trace, for a root that has none. */
static void arm_against_liar_in_parts(struct search *search)
{
    struct evidence_target target = {0};
    struct exhibit exhibit;
    struct buffer query_bytes;
    struct buffer reply;
    uint64_t random = 5;
    uint32_t part;

    open_long(&exhibit, &target);
    exhibit_set(&exhibit, &target, exhibit_get(&exhibit, &target) ^ 1);
    search->court.context = exhibit.context;
    exhibit_query(&query_bytes, &exhibit, &target);
    add_query(search, &query_bytes);
    buffer_release(&query_bytes);
    for (int i = 0; i < 3; i++) {
        assert_true(forgery_of(&reply, &part, &exhibit, &target, &random));
        add_answer(search, reply.data, reply.size);
        exhibit_part_evidence(add_evidence(search), &exhibit, &target, part, &reply);
        buffer_release(&reply);
    }
    exhibit_parts(&reply, &exhibit, &target);
    add_answer(search, reply.data, reply.size);
    buffer_release(&reply);
    add_list(search, &exhibit);
    exhibit_close(&exhibit);
}

/* An element that is right and has parts: evidence of all of it and of two parts, queries of
 * the parts and about the list of its trace. */
static void arm_against_honest(struct search *search)
{
    struct evidence_target target = {0};
    struct exhibit exhibit;
    struct buffer query_bytes;
    struct buffer reply;

    open_long(&exhibit, &target);
    search->court.context = exhibit.context;
    add_list(search, &exhibit);
    exhibit_query(&query_bytes, &exhibit, &target);
    add_query(search, &query_bytes);
    buffer_release(&query_bytes);
    exhibit_parts(&reply, &exhibit, &target);
    add_answer(search, reply.data, reply.size);
    exhibit_evidence(add_evidence(search), &exhibit, &target);
    exhibit_part_evidence(add_evidence(search), &exhibit, &target, 0, &reply);
    exhibit_part_evidence(add_evidence(search), &exhibit, &target, 1, &reply);
    buffer_release(&reply);
    exhibit_close(&exhibit);
}

static void disarm(struct search *search)
{
    for (uint32_t i = 0; i < search->arsenal.rounds; i++) {
        buffer_release(&search->arsenal.queries[i]);
        buffer_release(&search->arsenal.queried[i]);
    }
    for (uint32_t i = 0; i < search->arsenal.answers; i++) {
        buffer_release(&search->arsenal.reply[i]);
    }
    for (uint32_t i = 0; i < search->arsenal.shown; i++) {
        buffer_release(&search->arsenal.evidence[i]);
    }
}

/* ---- moves ------------------------------------------------------------------------ */

static struct game_bytes bytes_of(const struct buffer *buffer)
{
    return (struct game_bytes){buffer->data, buffer->size};
}

static struct game_move about(const struct search *search, enum game_move_kind kind)
{
    struct game_move move = {.kind = kind, .key = search->court.claim};

    if (kind == GAME_QUERY || kind == GAME_CONVICT) {
        move.subject = game_subject_of(&search->court.shown);
        move.value = kind == GAME_QUERY ? COURT_QUERY_FEE : 0;
    }
    return move;
}

static void sql(struct search *search, const char *text)
{
    assert_int_equal(database_execute(&search->court.twins.sql, text, NULL), STATUS_OK);
}

static bool play(struct search *search, const struct game_move *move, uint32_t player)
{
    struct twins *twins = &search->court.twins;
    struct local_game *game = twins->game;
    enum status status;

    game->store = &twins->store;
    game->place = twins->place;
    game->sender = twins->players[player];
    game->now_s = twins->now_s;
    game->height = twins->height;
    status = local_game_play(game, move);
    assert_true(status == STATUS_OK || status == STATUS_REFUSED);
    return status == STATUS_OK;
}

static struct local_dispute dispute_now(struct search *search)
{
    struct local_dispute dispute;

    assert_int_equal(
        local_get(&search->court.twins.store, &dispute, LOCAL_DISPUTE, &search->court.claim, 0),
        STATUS_OK);
    return dispute;
}

static uint64_t turn_end(const struct local_dispute *dispute)
{
    return dispute->since_s +
           (dispute->turn == GAME_TURN_ACCUSED ? dispute->solver_left_s : dispute->lead_left_s);
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
        move = about(search, GAME_QUERY);
        move.payload = bytes_of(&arsenal->queries[i]);
        (void)try_move(search, &move, player, known, depth);
        for (uint32_t j = 0; j < arsenal->answers; j++) {
            move = about(search, GAME_REPLY);
            move.queried = bytes_of(&arsenal->queried[i]);
            move.payload = bytes_of(&arsenal->reply[j]);
            (void)try_move(search, &move, player,
                           search->honest == HONEST_CLAIMANT && i == j && i == known ? known + 1
                                                                                     : known,
                           depth);
        }
    }
    for (uint32_t i = 0; i < arsenal->shown; i++) {
        move = about(search, GAME_CONVICT);
        move.payload = bytes_of(&arsenal->evidence[i]);
        (void)try_move(search, &move, player, known, depth);
        move.payload.size--;
        (void)try_move(search, &move, player, known, depth);
    }
    move = about(search, GAME_TIMEOUT);
    (void)try_move(search, &move, player, known, depth);
    move = about(search, GAME_LAPSE);
    assert_false(try_move(search, &move, player, known, depth));
}

/* The honest solver answers and replies. */
static bool solver_moves(struct search *search, const struct local_dispute *dispute, uint32_t known,
                         uint32_t depth)
{
    const struct arsenal *arsenal = &search->arsenal;
    struct game_move move = about(search, GAME_ANSWER);

    if (dispute->phase == GAME_CLAIM_CALLED) {
        move.root = search->court.context.trace;
        return try_move(search, &move, COURT_SOLVER, known, depth);
    }
    for (uint32_t i = 0; i < arsenal->answers; i++) {
        const struct buffer *queried = &arsenal->queried[arsenal->about[i]];
        struct hash32 hash = keccak256(queried->data, queried->size);

        if (hash32_equal(&hash, &dispute->said)) {
            move = about(search, GAME_REPLY);
            move.queried = bytes_of(queried);
            move.payload = bytes_of(&arsenal->reply[i]);
            return try_move(search, &move, COURT_SOLVER, known, depth);
        }
    }
    return false;
}

/* The number of the last reply with parts; UINT32_MAX: there is none. */
static uint32_t last_reply(struct search *search)
{
    const struct arsenal *arsenal = &search->arsenal;
    struct local_dispute dispute = dispute_now(search);

    for (uint32_t i = 0; i < arsenal->answers; i++) {
        const struct buffer *queried = &arsenal->queried[arsenal->about[i]];
        struct digest hash;

        partial_sums_reply_hash(&hash, queried->data, queried->size, arsenal->reply[i].data,
                                arsenal->reply[i].size);
        if (memcmp(hash.bytes, dispute.said.bytes, DIGEST_SIZE) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* The honest claimant walks down and convicts. */
static bool claimant_moves(struct search *search, const struct local_dispute *dispute,
                           uint32_t known, uint32_t depth)
{
    const struct arsenal *arsenal = &search->arsenal;
    bool real = digest_equal(&dispute->trace_root, &search->court.context.trace);
    bool in_parts = search->honest == HONEST_CLAIMANT_OF_PARTS;
    uint32_t shown = in_parts && real ? last_reply(search) : 0;
    struct game_move move = about(search, GAME_QUERY);

    if (real && (in_parts ? shown < arsenal->shown : known == arsenal->rounds)) {
        move = about(search, GAME_CONVICT);
        move.payload = bytes_of(&arsenal->evidence[shown]);
    } else {
        /* Without a trace behind the root, it queries the list, and nobody can reply. */
        uint32_t list = in_parts ? arsenal->rounds - 1 : 0;

        move.payload = bytes_of(&arsenal->queries[real ? (in_parts ? 0 : known) : list]);
    }
    return try_move(search, &move, COURT_CLAIMANT, known, depth);
}

/* ---- the search --------------------------------------------------------------------- */

static bool is_same(const struct place *a, const struct place *b)
{
    return a->phase == b->phase && a->turn == b->turn && a->queries == b->queries &&
           a->solver_left_s == b->solver_left_s && a->lead_left_s == b->lead_left_s &&
           a->time == b->time && a->known == b->known && hash32_equal(&a->said, &b->said) &&
           digest_equal(&a->trace_root, &b->trace_root);
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

static struct place place_of(const struct local_dispute *dispute, uint32_t time, uint32_t known)
{
    struct place place;

    memset(&place, 0, sizeof(place));
    place.phase = dispute->phase;
    place.turn = dispute->turn;
    place.queries = dispute->queries;
    place.solver_left_s = dispute->solver_left_s;
    place.lead_left_s = dispute->lead_left_s;
    place.time = time;
    place.known = known;
    place.said = dispute->said;
    place.trace_root = dispute->trace_root;
    return place;
}

/* It is over: who has the money? Query fees go to the solver, for its replies. */
static void check_end(struct search *search, uint32_t queries)
{
    wei bond = search->court.terms.bond;
    wei fees = (wei)queries * COURT_QUERY_FEE;
    wei claimant = court_owed(&search->court, COURT_CLAIMANT);
    wei solver = court_owed(&search->court, COURT_SOLVER);

    if (search->honest == HONEST_SOLVER) {
        assert_true(claimant == 0 && solver == fees + (bond + 1) / 2);
        search->refuted++;
    } else {
        assert_true(claimant + solver == bond + fees && claimant >= bond);
        search->upheld++;
    }
}

static void explore_at(struct search *search, const struct local_dispute *dispute, uint32_t time,
                       uint32_t known, uint32_t depth)
{
    const bool solver_honest = search->honest == HONEST_SOLVER;
    const bool its_turn = dispute->turn == (solver_honest ? GAME_TURN_ACCUSED : GAME_TURN_CLAIMANT);
    struct place place = place_of(dispute, time, known);

    if (!is_new(search, &place)) {
        return;
    }
    try_everything(search, solver_honest ? COURT_CLAIMANT : COURT_SOLVER, known, depth);
    try_everything(search, COURT_EVE, known, depth);
    if (its_turn) {
        /* The honest one is in time: it always has a move, and the move is taken. */
        assert_true(solver_honest ? solver_moves(search, dispute, known, depth)
                                  : claimant_moves(search, dispute, known, depth));
    } else if (time == TIMES - 1) {
        struct game_move move = about(search, GAME_TIMEOUT);

        assert_true(
            try_move(search, &move, solver_honest ? COURT_SOLVER : COURT_CLAIMANT, known, depth));
    }
}

static void explore(struct search *search, uint32_t known, uint32_t depth)
{
    const uint64_t begun_s = search->court.twins.now_s;
    struct local_dispute dispute = dispute_now(search);
    bool honest_turn =
        dispute.turn ==
        (uint32_t)(search->honest == HONEST_SOLVER ? GAME_TURN_ACCUSED : GAME_TURN_CLAIMANT);

    search->deepest = depth > search->deepest ? depth : search->deepest;
    if (dispute.phase == GAME_CLAIM_CLOSED) {
        check_end(search, dispute.queries);
        return;
    }
    for (uint32_t time = 0; time < (honest_turn ? TIMES - 1 : TIMES); time++) {
        search->court.twins.now_s = time == 0   ? begun_s
                                    : time == 1 ? turn_end(&dispute)
                                                : turn_end(&dispute) + 1;
        if (search->court.twins.now_s >= begun_s) {
            explore_at(search, &dispute, time, known, depth);
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
    switch (honest) {
    case HONEST_SOLVER:
        arm_against_honest(search);
        break;
    case HONEST_CLAIMANT:
        arm_against_liar(search);
        break;
    case HONEST_CLAIMANT_OF_PARTS:
        arm_against_liar_in_parts(search);
        break;
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

static void test_honest_claimant_never_loses_to_a_liar_about_a_long_sum(void **state)
{
    (void)state;
    search_all(HONEST_CLAIMANT_OF_PARTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_honest_solver_never_loses),
        cmocka_unit_test(test_honest_claimant_never_loses_to_a_liar),
        cmocka_unit_test(test_honest_claimant_never_loses_to_a_liar_about_a_long_sum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
