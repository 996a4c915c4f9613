/*
 * Goal: a verifier that says unseen in its first seats, to sit in the rounds that follow and be
 * paid there, earns less than by the truth, up to a third of a panel; and the pool pays what it
 * earns.
 * Method: four of twelve entries farm segments of four seats, and each seat's money is counted;
 * "make soak" plays so many that chance does not hide the loss against what the same seats would
 * have had at once. A panel that farms whole, where nobody else sits. The same where a keeper
 * vouches.
 */
#include "tests/support/game/attack.h"

enum {
    FEE = 80, /* thousandths of an ether */
    LATER = FEE - FEE / GAME_LATER_SHARE,
    SEATS = 4,
    MANY = 40, /* segments, where moves are quick: chance then hides nothing */
    FEW = 8,
    SOME = 3, /* on a chain */
};

static const struct scene_verdicts farms = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_SECOND] = GAME_VERDICT_RIGHT},
    .unseen = {[STAGE_FRIEND] = true}};
static const struct scene_verdicts reaps = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT,
                                                   [STAGE_SECOND] = GAME_VERDICT_RIGHT,
                                                   [STAGE_FRIEND] = GAME_VERDICT_RIGHT}};

struct farm {
    int64_t denied; /* seats of the farmer that said unseen */
    int64_t reaped; /* ... and that were paid in later rounds */
};

static void count_seats(struct scene *scene, struct farm *farm)
{
    const struct address *farmer = signer_address(scene->stage.signers[STAGE_FRIEND]);

    for (uint32_t i = 0; i < scene->record.seat_count; i++) {
        const struct job_record_seat *seat = &scene->record.seats[i];

        if (address_equal(&seat->owner, farmer)) {
            farm->denied += seat->state.phase == GAME_SEAT_UNSEEN;
            farm->reaped += seat->state.phase == GAME_SEAT_REVEALED;
        }
    }
}

/* A panel of the farmer, or of twelve entries of which a third is the farmer's. */
static void accept_for_seats(struct scene *scene, uint32_t segments, uint32_t seats, bool whole)
{
    scene->terms.steps = (uint64_t)segments * SCENE_STEPS;
    scene->terms.fee = FEE * WEI_PER_ETHER / 1000;
    scene->terms.seats = seats;
    scene->terms.panel_least = seats;
    scene->terms.query_fee = 0;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, whole ? 16 : 4);
    if (!whole) {
        scene_enlist(scene, STAGE_VERIFIER, 4);
        scene_enlist(scene, STAGE_SECOND, 4);
    }
    scene_accept(scene, STAGE_SOLVER);
}

/* One after the other, but for the last, of which more rights are wanted. */
static void farm_segments(struct scene *scene, struct farm *farm, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
        scene_draw(scene, i);
        scene_rounds_after(scene, i, &farms, &reaps);
        count_seats(scene, farm);
        scene_settle(scene, STAGE_SOLVER, i);
        assert_int_equal(scene->record.state.finalized, i + 1);
    }
}

ATTACK(fee_farming_by_a_third_of_a_panel)
{
    const uint32_t some = test_soak_minutes() > 0 ? MANY : FEW;
    const uint32_t count = scene->stage.anvil == NULL ? some : SOME;
    struct farm farm = {0};

    scene->terms.segment_period_s = 20 * SCENE_SEGMENT_S;
    accept_for_seats(scene, count + 1, SEATS, false);
    farm_segments(scene, &farm, count);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000 * (int64_t)count);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -4000 + LATER * farm.reaped);
    if (count == MANY) {
        assert_true(farm.denied > 0 && LATER * farm.reaped < FEE * farm.denied);
    }
}

/* It is all of the panel. Of a last segment eight seats are drawn in place of three, and five share
 * a pool that is three fees: less than three rights have at once. The first unseen brings no seat
 * beyond the one that it gave up. */
ATTACK(fee_farming_by_a_whole_panel)
{
    accept_for_seats(scene, 1, 1, true);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
    scene_rounds_after(scene, 0, &farms, &reaps);
    assert_int_equal(scene->record.segments[0].draw.unseen, 3);
    assert_int_equal(scene->record.segments[0].draw.rights, 5);
    scene_settle(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.state.phase, GAME_PHASE_CLOSED);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), 3 * LATER);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -1000 - 3 * LATER);
}

/* Seats of the last round that the segment's seed does not name. */
static uint32_t seats_unknown(const struct scene *scene)
{
    const struct job_record_segment *segment = &scene->record.segments[0];
    uint32_t count = 0;

    for (uint32_t i = 0; i < scene->record.seat_count; i++) {
        const struct job_record_seat *seat = &scene->record.seats[i];

        count += seat->round == segment->draw.round &&
                 game_place_entry(&segment->draw.seed, seat->place, segment->committed.panel) !=
                     seat->state.entry;
    }
    return count;
}

/* It says unseen where the seed of the draw gives it the seats to come: but they have a seed of
 * their own, which is there when the round is over and closed. */
ATTACK(fee_farming_by_who_reads_the_seed)
{
    struct game_segment segment;

    accept_for_seats(scene, 2, SEATS, true);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
    assert_int_equal(seats_unknown(scene), 0);
    scene_round(scene, 0, &farms, NULL);
    segment = scene_segment(scene, 0);
    scene_pass_blocks(scene, 1);
    assert_int_equal(SCENE_REFUSAL(scene, STAGE_FRIEND, ledger_draw, &scene->job, &segment,
                                   &(struct game_commits){segment.height, segment.time_s}),
                     GAME_ALREADY_DRAWN);
    scene_next_round(scene, STAGE_FRIEND, 0);
    assert_int_equal(scene->record.segments[0].draw.round, 1);
    assert_true(seats_unknown(scene) > 0);
}

/* Where the keeper has the bytes, unseen is silence: it brings one seat, for seven eighths of the
 * fee that it gave away. */
ATTACK(fee_farming_where_a_keeper_vouches)
{
    struct farm farm = {0};

    scene->terms.keeper = *signer_address(scene->stage.signers[STAGE_OTHER]);
    accept_for_seats(scene, 2, SEATS, true);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
    scene_vouch(scene, STAGE_SOLVER, STAGE_OTHER, 0);
    scene_rounds_after(scene, 0, &farms, &reaps);
    count_seats(scene, &farm);
    assert_int_equal(farm.denied, SEATS);
    assert_int_equal(farm.reaped, SEATS);
    scene_settle(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.state.finalized, 1);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -16000 + LATER * SEATS);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(fee_farming_by_a_third_of_a_panel),
        ATTACK_TESTS(fee_farming_by_a_whole_panel),
        ATTACK_TESTS(fee_farming_by_who_reads_the_seed),
        ATTACK_TESTS(fee_farming_where_a_keeper_vouches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
