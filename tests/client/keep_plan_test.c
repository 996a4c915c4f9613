/*
 * Goal: a keeper fetches what a covered segment needs, vouches for it, brings its vouch itself only
 * where another settle would void the segment, replays only what is in question or came late, and
 * refuses only what it could not have although all was well with it.
 * Method: one segment at a time, moved through its periods.
 */
#include "client/keeper/keep_plan.h"
#include "tests/support/test.h"

#define START_S  10000
#define SEAL_S   800
#define REVEAL_S 400
#define CLAIM_S  1000
#define ROUND_S  (START_S + SEAL_S + REVEAL_S)

static const struct keep_policy usual = {.refuses = true, .replays = true};
static const struct keep_policy careful = {.refuses = true, .replays = false};

static const struct game_terms terms = {
    .seats = 1, .seal_period_s = SEAL_S, .reveal_period_s = REVEAL_S, .claim_period_s = CLAIM_S};

static struct job_segment make_segment(void)
{
    return (struct job_segment){.terms = &terms,
                                .tally = {.wanted = 1, .drawn = 1, .to = 1},
                                .start_s = START_S,
                                .drawn = true,
                                .covered = true};
}

static struct keep_known make_known(bool has_states)
{
    return (struct keep_known){
        .has_states = has_states, .first_end_s = ROUND_S, .well_s = START_S - 100};
}

static void test_what_nobody_looks_at_needs_nothing(void **state)
{
    const struct keep_known known = make_known(false);
    struct keep_needs needs;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct job_segment segment = make_segment();

        segment.drawn = i != 0;
        segment.covered = i != 1;
        segment.final = i == 2;
        needs = keep_plan(&segment, &known, &usual, ROUND_S + 1);
        assert_false(needs.states || needs.vouch || needs.bring || needs.replay || needs.refuse);
    }
}

static void test_states_are_fetched_and_vouched_for(void **state)
{
    struct job_segment segment = make_segment();
    struct keep_known known = make_known(false);
    struct keep_needs needs = keep_plan(&segment, &known, &usual, START_S);

    (void)state;
    assert_true(needs.states);
    assert_false(needs.vouch);
    known.has_states = true;
    needs = keep_plan(&segment, &known, &usual, START_S);
    assert_false(needs.states);
    assert_true(needs.vouch);
    assert_false(needs.bring || needs.replay || needs.refuse);
    segment.noted = true;
    assert_false(keep_plan(&segment, &known, &usual, START_S).vouch);
}

static void test_without_replays_a_known_owner_is_believed(void **state)
{
    struct job_segment segment = make_segment();
    struct keep_known known = make_known(true);

    (void)state;
    assert_false(keep_plan(&segment, &known, &careful, START_S).vouch);
    assert_false(keep_plan(&segment, &known, &careful, ROUND_S + 1).replay);
    known.known_right = true;
    assert_true(keep_plan(&segment, &known, &careful, START_S).vouch);
}

static void test_what_is_in_question_is_replayed(void **state)
{
    struct job_segment segment = make_segment();
    struct keep_known known = make_known(true);

    (void)state;
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S).replay);
    assert_true(keep_plan(&segment, &known, &usual, ROUND_S + 1).replay); /* nobody says right */
    segment.tally.rights = 1;
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + 1).replay);
    segment.tally.unseen = 1;
    assert_false(keep_plan(&segment, &known, &usual, START_S + SEAL_S).replay);
    assert_true(keep_plan(&segment, &known, &usual, START_S + SEAL_S + 1).replay);
    known.replayed = true;
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + 1).replay);
}

/* Its vouch could end the leg before anybody else has looked. */
static void test_what_came_late_is_replayed_before_it_is_vouched_for(void **state)
{
    struct job_segment segment = make_segment();
    struct keep_known known = make_known(true);
    struct keep_needs needs;

    (void)state;
    known.late = true;
    segment.tally.rights = 1;
    segment.refused_until_s = ROUND_S + 500;
    needs = keep_plan(&segment, &known, &usual, ROUND_S + 499);
    assert_true(needs.replay);
    assert_false(needs.vouch || needs.bring);
    assert_false(keep_plan(&segment, &known, &careful, ROUND_S + 499).vouch);
    known.replayed = true;
    needs = keep_plan(&segment, &known, &usual, ROUND_S + 499);
    assert_true(needs.vouch && needs.bring);
    assert_false(needs.replay);
    known.is_false = true;
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + 499).vouch);
    known.replayed = known.is_false = known.has_states = false;
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + 499).replay);
    known.has_states = segment.noted = true;
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + 499).replay);
}

static void test_a_lie_is_not_vouched_for(void **state)
{
    struct job_segment segment = make_segment();
    struct keep_known known = make_known(true);
    struct keep_needs needs;

    (void)state;
    segment.tally.unseen = 2;
    known.replayed = known.is_false = true;
    needs = keep_plan(&segment, &known, &usual, ROUND_S + 3 * CLAIM_S);
    assert_false(needs.vouch || needs.bring);
}

static void test_the_vouch_is_brought_where_it_matters(void **state)
{
    struct job_segment segment = make_segment();
    struct keep_known known = make_known(true);
    uint64_t end_s;

    (void)state;
    segment.tally.rights = 1;
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + 1).bring); /* all is well */
    segment.tally.unseen = 1;
    end_s = job_segment_claim_end(&segment);
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + 1).bring); /* its replay runs */
    assert_true(keep_plan(&segment, &known, &usual, end_s - CLAIM_S / 2 + 1).bring);
    known.replayed = true;
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S).bring);
    assert_true(keep_plan(&segment, &known, &usual, ROUND_S + 1).bring);
    segment.tally.unseen = 0;
    segment.refused_until_s = ROUND_S + 500;
    assert_true(keep_plan(&segment, &known, &usual, ROUND_S + 1).bring);
}

/* With the start of a segment, or one that a replay computes, nothing is refused for want of the
 * end: until half of the claim time is over, a replay may give it. */
static void test_an_end_that_nobody_gives_is_computed(void **state)
{
    struct job_segment segment = make_segment();
    struct keep_known known = make_known(false);
    const uint64_t late_s = START_S + SEAL_S - SEAL_S / 8;

    (void)state;
    segment.tally.rights = 1; /* no question is open */
    assert_false(keep_plan(&segment, &known, &usual, late_s + 1).replay);
    known.start_comes = true;
    assert_false(keep_plan(&segment, &known, &usual, late_s + 1).replay);
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + CLAIM_S / 2).refuse);
    assert_true(keep_plan(&segment, &known, &usual, ROUND_S + CLAIM_S / 2 + 1).refuse);
    known.has_start = true;
    assert_false(keep_plan(&segment, &known, &usual, late_s).replay);
    assert_true(keep_plan(&segment, &known, &usual, late_s + 1).replay);
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + CLAIM_S / 2).refuse);
    assert_false(keep_plan(&segment, &known, &careful, late_s + 1).replay);
    assert_true(keep_plan(&segment, &known, &careful, ROUND_S + 1).refuse);
    known.replayed = true; /* its end is being taken over */
    assert_false(keep_plan(&segment, &known, &usual, late_s + 1).replay);
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + CLAIM_S / 2).refuse);
    assert_true(keep_plan(&segment, &known, &usual, ROUND_S + CLAIM_S / 2 + 1).refuse);
    known.has_states = true;
    assert_true(keep_plan(&segment, &known, &usual, ROUND_S).vouch);
}

static void test_a_refusal_needs_that_all_was_well(void **state)
{
    const struct keep_policy patient = {.refuses = false, .replays = true};
    struct job_segment segment = make_segment();
    struct keep_known known = make_known(false);

    (void)state;
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S).refuse);
    assert_true(keep_plan(&segment, &known, &usual, ROUND_S + 1).refuse);
    assert_false(keep_plan(&segment, &known, &patient, ROUND_S + 1).refuse);
    known.well_s = START_S + SEAL_S / 8;
    assert_true(keep_plan(&segment, &known, &usual, ROUND_S + 1).refuse);
    known.well_s++; /* it was gone when the states could be fetched */
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + 1).refuse);
    known.well_s = 0; /* it is gone now */
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + 1).refuse);
    known.well_s = START_S;
    segment.refused_until_s = ROUND_S + 9;
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + 1).refuse);
    segment.refused_until_s = 0;
    segment.noted = true;
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + 1).refuse);
    segment.noted = false;
    known.has_states = true;
    assert_false(keep_plan(&segment, &known, &usual, ROUND_S + 1).refuse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_nobody_looks_at_needs_nothing),
        cmocka_unit_test(test_states_are_fetched_and_vouched_for),
        cmocka_unit_test(test_without_replays_a_known_owner_is_believed),
        cmocka_unit_test(test_what_is_in_question_is_replayed),
        cmocka_unit_test(test_what_came_late_is_replayed_before_it_is_vouched_for),
        cmocka_unit_test(test_a_lie_is_not_vouched_for),
        cmocka_unit_test(test_the_vouch_is_brought_where_it_matters),
        cmocka_unit_test(test_an_end_that_nobody_gives_is_computed),
        cmocka_unit_test(test_a_refusal_needs_that_all_was_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
