/*
 * Goal: an accused that lied about the parts of an element is convicted, an honest one is not; both
 * ledgers agree on every query, reply and piece of evidence.
 * Method: on both ledgers at once (court.h): elements of every kind that has parts, right and
 * wrong; honest replies, replies that come to a false element (forgery.h), and none; queries,
 * replies and evidence with changed bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/dispute/forgery.h"
#include "tests/support/game/court.h"
#include "tests/support/mutant.h"
#include "tests/support/test.h"

enum {
    PARTS_SHARE = 24,
    MUTANTS_SHARE = 16,
    MUTANTS_OF_ONE = 50, /* of a query, of a reply, of evidence */
    TAKEN_MOST = 20,     /* of answers, before turns run out */
};

static const enum op_kind kinds_with_parts[] = {
    OP_CONTRACT,        OP_CONTRACT_ONES,        OP_CONTRACT_ONEHOT,
    OP_CONTRACT_CHOSEN, OP_CONTRACT_CHOSEN_ROWS, OP_QUANTIZE};

static void begin(struct court *court, const struct evidence_context *context, uint32_t index,
                  uint32_t step)
{
    court_commit(court, context, index, step);
    court_claim(court);
    court_answer(court);
}

/* ---- moves ----------------------------------------------------------------------- */

/* An element with parts, of one of the kinds that have some. */
static void exhibit_with_parts(struct exhibit *exhibit, struct evidence_target *target,
                               enum op_kind kind, uint64_t *seed, uint64_t *random)
{
    for (;;) {
        /* Exponents that no QUANTIZE gives are lies of another operation. */
        uint32_t moods = kind == OP_QUANTIZE ? MOOD_COUNT : MOOD_WILD;

        exhibit_of_kind(exhibit, kind, (enum random_mood)(*seed % moods), *seed);
        exhibit_any_target(target, exhibit, random);
        ++*seed;
        if (exhibit_axis(exhibit, target).parts > 1) {
            return;
        }
        exhibit_close(exhibit);
    }
}

/* The claimant queries the parts. */
static void query_parts(struct court *court, const struct exhibit *exhibit,
                        const struct evidence_target *target)
{
    struct buffer query_bytes;
    struct game_move move;

    exhibit_query(&query_bytes, exhibit, target);
    move = court_move(court, GAME_QUERY, query_bytes.data, query_bytes.size);
    court_done(court, &move, COURT_CLAIMANT);
    buffer_release(&query_bytes);
}

static void reply_with_parts(struct court *court, const struct buffer *reply, uint32_t player,
                             enum game_refusal_kind refusal)
{
    struct game_move move = court_move(court, GAME_REPLY, reply->data, reply->size);

    if (refusal == GAME_REFUSED_NOT) {
        court_done(court, &move, player);
    } else {
        court_refused(court, &move, player, refusal);
    }
}

static void show_part(struct court *court, const struct exhibit *exhibit,
                      const struct evidence_target *target, uint32_t part,
                      const struct buffer *reply, enum game_refusal_kind refusal)
{
    struct buffer evidence;

    exhibit_part_evidence(&evidence, exhibit, target, part, reply);
    court_convict(court, &evidence, refusal);
    buffer_release(&evidence);
}

/* The truth does not come to the lie; what does is false in a part. False: nothing comes to it, and
 * the accused is silent. */
static bool accuse_of_parts(struct court *court, const struct exhibit *exhibit,
                            const struct evidence_target *target, uint32_t player, uint64_t *random)
{
    struct buffer reply;
    uint32_t part;
    bool forged;

    query_parts(court, exhibit, target);
    exhibit_parts(&reply, exhibit, target);
    reply_with_parts(court, &reply, player, GAME_BAD_REPLY);
    buffer_release(&reply);
    forged = forgery_of(&reply, &part, exhibit, target, random);
    if (forged) {
        reply_with_parts(court, &reply, player, GAME_REFUSED_NOT);
        show_part(court, exhibit, target, part, &reply, GAME_REFUSED_NOT);
    } else {
        reply_with_parts(court, &reply, player, GAME_BAD_REPLY);
        court_timeout(court);
    }
    buffer_release(&reply);
    return forged;
}

static void test_parts_convict_liars_and_nobody_else(void **state)
{
    struct court *court = court_new();
    uint64_t random = 3;
    uint64_t seed = 0;
    uint32_t forged = 0;

    (void)state;
    for (uint64_t i = 0; i < test_share(600, PARTS_SHARE); i++) {
        struct evidence_target target = {0};
        struct exhibit exhibit;
        struct buffer reply;
        bool is_forged;
        wei owed;

        exhibit_with_parts(&exhibit, &target, kinds_with_parts[i % 4], &seed, &random);
        exhibit_make_right(&exhibit, &target);
        begin(court, &exhibit.context, (uint32_t)i % 2, 2);
        query_parts(court, &exhibit, &target);
        exhibit_parts(&reply, &exhibit, &target);
        reply_with_parts(court, &reply, COURT_SOLVER, GAME_REFUSED_NOT);
        for (uint32_t part = 0; part < exhibit_axis(&exhibit, &target).parts && part < 4; part++) {
            show_part(court, &exhibit, &target, part, &reply, GAME_NOT_GUILTY);
        }
        owed = court_owed(court, COURT_SOLVER);
        court_timeout(court);
        assert_true(court_owed(court, COURT_SOLVER) == owed + (court->terms.bond + 1) / 2);
        buffer_release(&reply);

        exhibit_set(&exhibit, &target, exhibit_get(&exhibit, &target) ^ 1);
        begin(court, &exhibit.context, (uint32_t)i % 2, 2);
        owed = court_owed(court, COURT_CLAIMANT);
        is_forged = accuse_of_parts(court, &exhibit, &target, COURT_SOLVER, &random);
        forged += is_forged;
        court_pay(court);
        owed += court->terms.bond + court->terms.stake / 4;
        owed += is_forged ? 0 : court->terms.query_fee; /* no reply came */
        assert_true(court_owed(court, COURT_CLAIMANT) == owed);
        court_compare(court);
        exhibit_close(&exhibit);
    }
    print_message("%u lies in parts that come to them were convicted\n", forged);
    assert_true(forged > 0);
    court_free(court);
}

/* Of two replies the last one counts, and a reply about one element says nothing of another. */
static void test_parts_of_the_last_reply_count(void **state)
{
    struct court *court = court_new();
    struct evidence_target first = {.element = 0};
    struct evidence_target other = {.element = 1};
    struct exhibit exhibit;
    struct buffer reply[2];
    uint64_t random = 5;
    uint64_t seed = 5;
    uint32_t part;

    (void)state;
    exhibit_with_parts(&exhibit, &first, OP_CONTRACT_ONES, &seed, &random);
    while (exhibit.tape->ops[0].attributes[ONES_ROWS] < 2) {
        exhibit_close(&exhibit);
        exhibit_with_parts(&exhibit, &first, OP_CONTRACT_ONES, &seed, &random);
    }
    first.element = 0;
    exhibit_make_right(&exhibit, &first);
    exhibit_make_right(&exhibit, &other);
    exhibit_set(&exhibit, &first, exhibit_get(&exhibit, &first) ^ 1);
    assert_true(forgery_of(&reply[0], &part, &exhibit, &first, &random));
    exhibit_parts(&reply[1], &exhibit, &other);
    begin(court, &exhibit.context, 1, 2);
    query_parts(court, &exhibit, &first);
    reply_with_parts(court, &reply[0], COURT_SOLVER, GAME_REFUSED_NOT);
    query_parts(court, &exhibit, &other);
    reply_with_parts(court, &reply[1], COURT_SOLVER, GAME_REFUSED_NOT);
    show_part(court, &exhibit, &first, part, &reply[0], GAME_BAD_EVIDENCE);
    show_part(court, &exhibit, &other, 0, &reply[1], GAME_NOT_GUILTY);
    query_parts(court, &exhibit, &first);
    reply_with_parts(court, &reply[0], COURT_SOLVER, GAME_REFUSED_NOT);
    show_part(court, &exhibit, &first, part, &reply[0], GAME_REFUSED_NOT);
    buffer_release(&reply[0]);
    buffer_release(&reply[1]);
    exhibit_close(&exhibit);
    court_free(court);
}

/* ---- mutants --------------------------------------------------------------------- */

struct trying {
    struct court *court;
    const struct exhibit *exhibit;
    const struct evidence_target *target;
    uint64_t *random;
};

/* A mutant that is accepted ends the dispute or the turn: then the parts are queried again. */
static void try_mutants(const struct trying *trying, enum game_move_kind kind,
                        const struct buffer *payload, uint32_t player)
{
    struct buffer mutant;
    uint32_t taken = 0;

    buffer_init(&mutant, 2 * payload->size + 64);
    for (uint32_t i = 0; i < MUTANTS_OF_ONE && taken < TAKEN_MOST; i++) {
        struct game_move move;

        mutant_make(&mutant, payload, trying->random);
        move = court_move(trying->court, kind, mutant.data, mutant.size);
        if (!twins_play(&trying->court->twins, &move, player).done) {
            continue;
        }
        if (kind != GAME_REPLY) {
            break;
        }
        query_parts(trying->court, trying->exhibit, trying->target);
        taken++;
    }
    court_compare(trying->court);
    buffer_release(&mutant);
}

/* The query, the reply and the evidence of one lie, each among its mutants. */
static void dispute_with_mutants(const struct trying *trying)
{
    struct court *court = trying->court;
    const struct exhibit *exhibit = trying->exhibit;
    struct buffer query_bytes;
    struct buffer evidence;
    struct buffer reply;
    uint32_t part;

    if (!forgery_of(&reply, &part, exhibit, trying->target, trying->random) || reply.size == 0) {
        buffer_release(&reply);
        return;
    }
    exhibit_query(&query_bytes, exhibit, trying->target);
    exhibit_part_evidence(&evidence, exhibit, trying->target, part, &reply);
    begin(court, &exhibit->context, 1, 1);
    try_mutants(trying, GAME_QUERY, &query_bytes, COURT_CLAIMANT);
    begin(court, &exhibit->context, 0, 1);
    query_parts(court, exhibit, trying->target);
    try_mutants(trying, GAME_REPLY, &reply, COURT_SOLVER);
    begin(court, &exhibit->context, 1, 2);
    query_parts(court, exhibit, trying->target);
    reply_with_parts(court, &reply, COURT_SOLVER, GAME_REFUSED_NOT);
    try_mutants(trying, GAME_CONVICT, &evidence, COURT_CLAIMANT);
    buffer_release(&query_bytes);
    buffer_release(&evidence);
    buffer_release(&reply);
}

static void test_mutants_are_judged_alike_by_both(void **state)
{
    struct court *court = court_new();
    uint64_t random = 13;
    uint64_t seed = 100;

    (void)state;
    for (uint64_t i = 0; i < test_share(400, MUTANTS_SHARE); i++) {
        struct evidence_target target = {0};
        struct exhibit exhibit;

        exhibit_with_parts(&exhibit, &target, kinds_with_parts[i % 4], &seed, &random);
        exhibit_make_right(&exhibit, &target);
        exhibit_set(&exhibit, &target, exhibit_get(&exhibit, &target) ^ 1);
        dispute_with_mutants(&(struct trying){court, &exhibit, &target, &random});
        exhibit_close(&exhibit);
    }
    court_tell_refused(court);
    court_free(court);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_convict_liars_and_nobody_else),
        cmocka_unit_test(test_parts_of_the_last_reply_count),
        cmocka_unit_test(test_mutants_are_judged_alike_by_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
