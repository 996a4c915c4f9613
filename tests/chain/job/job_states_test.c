/*
 * Goal: who wants a state asks those who have most reason to serve it, and a verifier that found a
 * segment right is still asked when its panel is gone. Method: on an embedded ledger all parties
 * announce where they are found, in an order that is not the one in which they are to be asked; the
 * keeper also announces a vouch. Then the solver is released.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "chain/game/vouch.h"
#include "chain/job/job_states.h"
#include "tests/support/game/scene.h"

static const char *const places[STAGE_PLAYERS] = {
    [STAGE_CLIENT] = "http://client.example",     [STAGE_SOLVER] = "http://solver.example",
    [STAGE_VERIFIER] = "http://verifier.example", [STAGE_SECOND] = "http://second.example",
    [STAGE_FRIEND] = "http://stranger.example",   [STAGE_OTHER] = "http://keeper.example"};

static void announce(struct scene *scene, int player, const void *bytes, size_t size)
{
    const struct game_bytes contact = {bytes, size};

    STAGE_PLAY(&scene->stage, player, ledger_announce, &scene->job, &contact);
}

/* The first segment is right, says the verifier; another in the panel says nothing. */
static void find_right(struct scene *scene)
{
    static const struct scene_verdicts right = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT}};

    scene->terms.keeper = *signer_address(scene->stage.signers[STAGE_OTHER]);
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 2);
    scene_enlist(scene, STAGE_SECOND, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
    scene_rounds(scene, 0, &right);
}

static void announce_vouch(struct scene *scene)
{
    struct game_segment segment = scene_segment(scene, 0);
    struct hash32 hash = game_segment_hash(&scene->job, &segment);
    struct vouch vouch;
    uint8_t bytes[VOUCH_SIZE];
    struct error error;

    stage_check(vouch_sign(&vouch, ledger_get_game(scene->stage.ledgers[STAGE_OTHER]), &scene->job,
                           &hash, scene->stage.signers[STAGE_OTHER], &error),
                &error);
    vouch_write(bytes, &vouch);
    announce(scene, STAGE_OTHER, bytes, sizeof(bytes));
}

static void see(struct scene *scene, const int *players, uint32_t count)
{
    struct job_states_hosts hosts;
    struct error error;

    scene_read(scene);
    stage_check(
        job_states_find_hosts(&hosts, scene->stage.ledgers[STAGE_CLIENT], &scene->record, &error),
        &error);
    assert_int_equal(hosts.count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(hosts.hosts[i].text, places[players[i]]);
    }
}

static void test_those_who_should_have_it_are_asked_first(void **state)
{
    static const int order[] = {STAGE_SOLVER, STAGE_OTHER, STAGE_CLIENT, STAGE_VERIFIER,
                                STAGE_SECOND};
    struct scene scene;

    (void)state;
    scene_open(&scene, STAGE_EMBEDDED, "hosts");
    find_right(&scene);
    for (int player = STAGE_PLAYERS - 1; player >= 0; player--) {
        announce(&scene, player, places[player], strlen(places[player]));
    }
    announce_vouch(&scene);
    see(&scene, order, 5);
    assert_true(scene.record.segments[0].has_vouch);
    scene_settle(&scene, STAGE_CLIENT, 0);
    scene_pass(&scene, SCENE_SEGMENT_S + 1);
    STAGE_PLAY(&scene.stage, STAGE_CLIENT, ledger_release, &scene.job);
    see(&scene, order, 4); /* who was in the panel and said nothing has no reason to serve */
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_those_who_should_have_it_are_asked_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
