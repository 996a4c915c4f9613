/*
 * Goal: a dispute on the embedded ledger and on the contracts is the same dispute, it convicts the
 * party that lied and nobody else, and every false accusation costs its bond. Method: steps of
 * small models and single operations of every kind (exhibit.h), right and with one wrong element,
 * are disputed on both ledgers at once with the rules as deployed; evidence is flipped, cut and
 * grown byte by byte; every event, refusal and balance must be equal on both.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/element.h"
#include "tests/support/dispute/exhibit.h"
#include "tests/support/game/court.h"
#include "tests/support/mutant.h"
#include "tests/support/test.h"

enum {
    MUTANTS = TWINS_MOVES - 20, /* of one piece of evidence */
    SCRIPT_MOST = 600000,       /* anvil takes no longer requests than 2 MiB */
};

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

/* The claim is upheld: the claimant has its bond and a quarter of the stake. */
static void check_upheld(struct court *court, wei owed_before)
{
    court_pay(court);
    assert_true(court_owed(court, COURT_CLAIMANT) ==
                owed_before + court->terms.bond + court->terms.stake / 4);
}

/* ---- elements --------------------------------------------------------------------- */

static uint32_t any_lie(uint32_t bits, enum dtype dtype)
{
    return element_cut(bits ^ 1, dtype);
}

static void dispute_element(struct court *court, struct exhibit *exhibit,
                            const struct evidence_target *target, uint32_t round)
{
    const struct op *op = &exhibit->tape->ops[target->op];
    enum dtype dtype = exhibit->tape->tensors[op->outputs[target->output]].dtype;
    wei owed = court_owed(court, COURT_CLAIMANT);
    struct buffer evidence;

    exhibit_make_right(exhibit, target);
    exhibit_evidence(&evidence, exhibit, target);
    court_commit(court, &exhibit->context, round % 2, round / 2 % COURT_STEPS);
    court_claim(court);
    court_answer(court);
    convict(court, &evidence, GAME_NOT_GUILTY);
    buffer_release(&evidence);

    exhibit_set(exhibit, target, any_lie(exhibit_get(exhibit, target), dtype));
    exhibit_evidence(&evidence, exhibit, target);
    court_commit(court, &exhibit->context, round % 2, round / 2 % COURT_STEPS);
    court_claim(court);
    court_answer(court);
    convict(court, &evidence, GAME_REFUSED_NOT);
    check_upheld(court, owed);
    buffer_release(&evidence);
    court_compare(court);
}

static void test_wrong_element_of_every_kind_convicts_on_both(void **state)
{
    uint64_t rounds = test_share(60, 1);
    uint64_t random = 7;
    struct court *court = (anvil_need(), calloc(1, sizeof(*court)));
    uint32_t played = 0;

    (void)state;
    assert_non_null(court);
    court_open(court);
    for (int kind = 0; kind < OP_KIND_COUNT; kind++) {
        for (uint64_t round = 0; round < rounds; round++) {
            struct evidence_target target = {0};
            struct exhibit exhibit;

            exhibit_of_kind(&exhibit, (enum op_kind)kind, (enum random_mood)(played % MOOD_COUNT),
                            round + 100 * (uint64_t)kind);
            for (uint32_t i = 0; i < exhibit.tape->ops[0].output_count; i++) {
                exhibit_any_target(&target, &exhibit, &random);
                target.output = i;
                target.element %= exhibit.tape->tensors[exhibit.tape->ops[0].outputs[i]].count;
                dispute_element(court, &exhibit, &target, played++);
            }
            exhibit_close(&exhibit);
        }
    }
    print_message("%u outputs of %d kinds of operations: each right one refused, each wrong one "
                  "upheld\n",
                  played, OP_KIND_COUNT);
    court_close(court);
    free(court);
}

/* ---- mutants ---------------------------------------------------------------------- */

/* No matter what the mutants come to, both ledgers say the same: see court_compare(). */
static void try_mutants(struct court *court, const struct evidence_context *context,
                        const struct buffer *evidence, uint64_t *random)
{
    struct buffer mutant;

    buffer_init(&mutant, 2 * evidence->size + 64);
    court_commit(court, context, 1, 1);
    court_claim(court);
    court_answer(court);
    for (uint32_t i = 0; i < MUTANTS && court->twins.script.size < SCRIPT_MOST; i++) {
        mutant_make(&mutant, evidence, random);

        struct game_move move = court_move(court, GAME_CONVICT, mutant.data, mutant.size);

        (void)twins_play(&court->twins, &move, COURT_CLAIMANT);
    }
    court_compare(court);
    buffer_release(&mutant);
}

static void test_mutated_evidence_is_judged_alike_by_both(void **state)
{
    uint64_t rounds = test_share(1000, 25);
    uint64_t random = 11;
    struct court *court = (anvil_need(), calloc(1, sizeof(*court)));

    (void)state;
    assert_non_null(court);
    court_open(court);
    for (uint64_t round = 0; round < rounds; round++) {
        struct evidence_target target = {0};
        struct exhibit exhibit;
        struct buffer evidence;

        exhibit_of_kind(&exhibit, (enum op_kind)(round % OP_KIND_COUNT),
                        (enum random_mood)(round % MOOD_COUNT), round);
        exhibit_any_target(&target, &exhibit, &random);
        if (round % 4 != 0) {
            exhibit_make_right(&exhibit, &target); /* so that no mutant ends the dispute soon */
        }
        exhibit_evidence(&evidence, &exhibit, &target);
        try_mutants(court, &exhibit.context, &evidence, &random);
        buffer_release(&evidence);
        exhibit_close(&exhibit);
    }
    print_message("%u mutants: %u are no evidence, %u show nothing wrong, %u convict\n",
                  (uint32_t)rounds * MUTANTS, court->twins.refused_of[GAME_BAD_EVIDENCE],
                  court->twins.refused_of[GAME_NOT_GUILTY], court->twins.done_of[GAME_CONVICT]);
    court_close(court);
    free(court);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_element_of_every_kind_convicts_on_both),
        cmocka_unit_test(test_mutated_evidence_is_judged_alike_by_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
