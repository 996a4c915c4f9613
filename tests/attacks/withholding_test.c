/*
 * Goal: a solver that serves nobody, or commits to states that nobody can make, is not paid, and
 * loses at least what its client loses.
 * Method: it commits to roots, and serves nothing. Once the panel says that it has seen nothing;
 * once the client's keeper refuses; once an outsider claims, and the solver is silent; once it
 * withholds a lie after a draw that it does not like, or the last state; once it serves its friends
 * alone, who hold a tenth, a sixth, three tenths and half of the panel. Everybody's money is
 * counted.
 */
#include "tests/support/game/attack.h"

static const int attackers[] = {STAGE_SOLVER, STAGE_FRIEND};
static const struct scene_verdicts unseen = {
    .unseen = {[STAGE_VERIFIER] = true, [STAGE_SECOND] = true}};
static const struct scene_verdicts right = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_SECOND] = GAME_VERDICT_RIGHT}};

static void commit_for_a_panel(struct scene *scene, uint32_t lie)
{
    scene->terms.panel_least = 12;
    scene->terms.query_fee = 40 * WEI_PER_ETHER / 1000;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 7);
    scene_enlist(scene, STAGE_SECOND, 7);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, lie);
    scene_draw(scene, 0);
}

static int64_t count_unseen(const struct scene *scene)
{
    int64_t count = 0;

    for (uint32_t i = 0; i < scene->record.seat_count; i++) {
        count += scene->record.seats[i].state.phase == GAME_SEAT_UNSEEN;
    }
    return count;
}

static void close_job(struct scene *scene)
{
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_close_job, &scene->job);
    scene_depart(scene);
}

/* Thirty-two bytes are cheap. The price of two segments burns on both sides, a quarter of a query
 * fee goes to each seat that looked in vain. */
ATTACK(thirty_two_bytes)
{
    static const int panel[] = {STAGE_VERIFIER, STAGE_SECOND};
    int64_t looked;

    commit_for_a_panel(scene, 0);
    scene_rounds(scene, 0, &unseen);
    looked = count_unseen(scene);
    scene_settle(scene, STAGE_CLIENT, 0);
    assert_int_equal(scene->record.state.phase, GAME_PHASE_OPEN);
    assert_int_equal(scene->record.state.finalized, 0);
    assert_true(scene->record.state.barred);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -2000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -2200); /* with the fees of two segments */
    assert_true(looked >= 12);
    scene_see(scene, scene_party_gain(scene, panel, 2), 10 * looked);
}

/* The keeper waits for no panel. It burns the same, and the honest panel loses nothing. */
ATTACK(a_keeper_that_refuses_what_it_did_not_get)
{
    scene->terms.keeper = *signer_address(scene->stage.signers[STAGE_OTHER]);
    commit_for_a_panel(scene, 0);
    scene_round(scene, 0, &unseen, NULL);
    STAGE_PLAY(&scene->stage, STAGE_OTHER, ledger_refuse, &scene->job);
    scene_pass(scene, SCENE_SEAL_S + SCENE_REVEAL_S + SCENE_CLAIM_S + 1);
    scene_settle(scene, STAGE_CLIENT, 0);
    assert_true(scene->record.state.barred);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -2000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -2200);
    scene_see(scene, scene_gain(scene, STAGE_OTHER), 0);
    assert_true(scene_gain(scene, STAGE_VERIFIER) >= -20); /* gas */
}

/* The states are on the ledger, so anybody can claim them: no root is out of reach. */
ATTACK(random_roots_and_a_claim)
{
    struct hash32 claim;

    commit_for_a_panel(scene, 0);
    claim = scene_claim(scene, STAGE_OTHER, 0, 1, 0);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_OTHER, &claim);
    scene_pay(scene, STAGE_OTHER, 0);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000);
    scene_see(scene, scene_gain(scene, STAGE_OTHER), 5000); /* a quarter; half is burned */
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), 5000);
}

/* The first segment is true, served and final. The second is a lie, and its draw finds seats that
 * are not friends: from then on the solver serves nothing. */
static void withhold_after_a_draw(struct scene *scene)
{
    commit_for_a_panel(scene, SCENE_STEPS);
    scene_rounds(scene, 0, &right);
    scene_settle(scene, STAGE_SOLVER, 0);
    scene_commit(scene, STAGE_SOLVER, 0);
    scene_draw(scene, 1);
}

/* Somebody kept the state that is final, and the data: a seat needs no more to see the lie. The
 * reward of the first segment is all that the solver has. */
ATTACK(withholding_after_a_bad_draw_with_the_data_kept)
{
    struct scene_verdicts verdicts = {
        .of = {[STAGE_VERIFIER] = GAME_VERDICT_FALSE, [STAGE_SECOND] = GAME_VERDICT_FALSE}};
    struct hash32 alarm = {{0}};

    withhold_after_a_draw(scene);
    verdicts.false_step = scene_replay(scene, 1);
    scene_round(scene, 1, &verdicts, &alarm);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_CLIENT, &alarm);
    scene_pay(scene, STAGE_CLIENT, 0);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000);
}

/* Nobody kept it. The lie costs its price twice, and what was served and looked at stays paid. */
ATTACK(withholding_after_a_bad_draw_with_the_data_lost)
{
    withhold_after_a_draw(scene);
    scene_rounds(scene, 1, &unseen);
    scene_settle(scene, STAGE_CLIENT, 1);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000 - 2000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -1100 - 2200);
}

/* Ransom: all is served but the last state, which the client wants most. Its leg is not paid; both
 * lose its price, and the client has the state before. No segment is left for the one more that a
 * void prices: that burns of the pool, as far as it goes. Two of three fees are paid by then, and
 * the pool has 700. */
ATTACK(ransom_of_the_last_state)
{
    commit_for_a_panel(scene, SCENE_STEPS);
    scene_rounds(scene, 0, &right);
    scene_settle(scene, STAGE_SOLVER, 0);
    for (uint32_t i = 1; i < SCENE_SEGMENTS; i++) {
        scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    }
    scene_end_segment(scene, 1, &right);
    scene_draw(scene, 2);
    scene_rounds(scene, 2, &unseen);
    assert_true(count_unseen(scene) >= 12);
    scene_settle(scene, STAGE_CLIENT, 2);
    assert_int_equal(scene->record.state.finalized, 2);
    assert_true(scene->record.state.barred);
    close_job(scene);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 2000 - 2000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -2200 - 1000 - 700);
    scene_see(scene, scene_party_gain(scene, (int[]){STAGE_VERIFIER, STAGE_SECOND}, 2), 200);
}

enum {
    PANEL = 20,
    SEATS = 2,
    MANY_JOBS = 12, /* on a ledger whose moves are quick */
    SOME_JOBS = 4,
};

static const struct scene_verdicts served_alone = {
    .of = {[STAGE_FRIEND] = GAME_VERDICT_RIGHT},
    .unseen = {[STAGE_VERIFIER] = true, [STAGE_SECOND] = true}};

/* The fees of the friends' rights, in millionths of an ether: no more than the pool has, and in
 * later rounds an eighth less. */
static int64_t fees_of_rights(const struct scene *scene, uint32_t rights)
{
    const int64_t pool = 3 * SEATS * 100000;
    const int64_t fee = rights == 0 || pool / rights > 100000 ? 100000 : pool / rights;
    int64_t fees = 0;

    for (uint32_t i = 0; i < scene->record.seat_count; i++) {
        const struct job_record_seat *seat = &scene->record.seats[i];

        if (seat->state.phase == GAME_SEAT_REVEALED) {
            fees += seat->round == 0 ? fee : fee - fee / 8;
        }
    }
    return fees;
}

/* A job of one false segment, which the solver serves to its friends alone: they say right with the
 * leaves that it hands them. Returns what the party gains of it, in millionths: either it is final,
 * or it is void, and the price of two segments burns. */
static int64_t serve_friends(struct scene *scene, uint32_t friends, uint32_t panel)
{
    struct job_segment segment;
    int64_t gain;

    scene->terms.salt++;
    scene->terms.steps = SCENE_STEPS;
    scene->terms.panel_least = panel;
    scene->terms.deadline_s = stage_clock(&scene->stage) + 1000000;
    job_record_free(&scene->record);
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, friends);
    scene_enlist(scene, STAGE_VERIFIER, (panel - friends) / 2);
    scene_enlist(scene, STAGE_SECOND, panel - friends - (panel - friends) / 2);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, 0);
    scene_draw(scene, 0);
    scene_rounds(scene, 0, &served_alone);
    segment = job_record_segment(&scene->record, 0);
    gain = leg_is_final(&segment.tally) ? 1000000 + fees_of_rights(scene, segment.tally.rights)
                                        : -2000000;
    scene_settle(scene, STAGE_CLIENT, 0);
    if (scene->record.state.phase == GAME_PHASE_OPEN) {
        STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_close_job, &scene->job);
    }
    scene_depart(scene);
    return gain;
}

/* Of millionths, the nearest. */
static int64_t thousandths(int64_t millionths)
{
    return millionths >= 0 ? (millionths + 500) / 1000 : -((500 - millionths) / 1000);
}

/* What the party has in the end, of many jobs where they are quick. Nobody else loses a bond. */
static int64_t serve_a_share(struct scene *scene, uint32_t friends, uint32_t panel, uint32_t jobs)
{
    int64_t wanted = 0;

    scene->terms.seats = SEATS;
    for (uint32_t i = 0; i < (scene->stage.anvil == NULL ? jobs : 1); i++) {
        wanted += serve_friends(scene, friends, panel);
    }
    scene_see(scene, scene_party_gain(scene, attackers, 2), thousandths(wanted));
    scene_see(scene, scene_gain(scene, STAGE_VERIFIER), 0);
    scene_see(scene, scene_gain(scene, STAGE_SECOND), 0);
    return thousandths(wanted);
}

/* Two friends never are three rights more than those who saw nothing. */
ATTACK(selective_serving_at_10_percent)
{
    assert_true(serve_a_share(scene, PANEL / 10, PANEL, SOME_JOBS) <= -2000);
}

/* The "-10 cannot be reached": two partners in a panel of twelve. */
ATTACK(two_partners_in_a_panel_of_twelve)
{
    assert_true(serve_a_share(scene, 2, 12, SOME_JOBS) <= -2000);
}

/* Six of twenty pass one job in thirty or so, for half of what each other one burns. */
ATTACK(selective_serving_at_30_percent)
{
    int64_t gain = serve_a_share(scene, 3 * PANEL / 10, PANEL, MANY_JOBS);

    assert_true(gain < 0 || scene->stage.anvil != NULL);
}

/* Half of a panel passes what nobody else can see once in three: no gain. docs/ECONOMICS.md has
 * the exact odds. Here the money adds up, under any draws. */
ATTACK(selective_serving_at_50_percent)
{
    (void)serve_a_share(scene, PANEL / 2, PANEL, SOME_JOBS);
}

/* Three rights are needed, and one friend is one. */
ATTACK(serving_one_friend_of_a_small_panel)
{
    scene->terms.seats = SEATS;
    scene_see(scene, thousandths(serve_friends(scene, 1, 3)), -2000);
    scene_see(scene, scene_party_gain(scene, attackers, 2), -2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(thirty_two_bytes),
        ATTACK_TESTS(a_keeper_that_refuses_what_it_did_not_get),
        ATTACK_TESTS(random_roots_and_a_claim),
        ATTACK_TESTS(withholding_after_a_bad_draw_with_the_data_kept),
        ATTACK_TESTS(withholding_after_a_bad_draw_with_the_data_lost),
        ATTACK_TESTS(ransom_of_the_last_state),
        ATTACK_TESTS(selective_serving_at_10_percent),
        ATTACK_TESTS(two_partners_in_a_panel_of_twelve),
        ATTACK_TESTS(selective_serving_at_30_percent),
        ATTACK_TESTS(selective_serving_at_50_percent),
        ATTACK_TESTS(serving_one_friend_of_a_small_panel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
