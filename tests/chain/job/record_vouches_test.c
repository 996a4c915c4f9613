/*
 * Goal: what a keeper that is a contract has signed counts as a key's word does, and nothing else
 * of it does.
 * Method: on a chain, a keeper announces what only a contract could have signed. It has no code at
 * first, then code that signs what begins with the hash. Then a settle brings the vouch.
 */
#include "tests/support/test.h"

#include "chain/job/due_submit.h"
#include "chain/job/job_states.h"
#include "tests/support/game/contract.h"
#include "tests/support/game/scene.h"

enum {
    EXTRA = 100, /* bytes behind the hash: together no size that a key signs */
};

/* What the contract has signed about a segment, or with a bit that is wrong. */
static void announce_word(struct scene *scene, uint32_t index, uint8_t flip)
{
    struct vouch vouch = contract_vouch(scene, index, HASH32_SIZE + EXTRA);
    uint8_t bytes[VOUCH_SIZE_MAX];
    struct game_bytes contact = {bytes, 0};

    vouch.signature[HASH32_SIZE - 1] ^= flip;
    contact.size = vouch_write(bytes, &vouch);
    STAGE_PLAY(&scene->stage, STAGE_OTHER, ledger_announce, &scene->job, &contact);
}

/* As a program reads it that starts now. */
static void read_all(struct scene *scene, struct job_record *record)
{
    struct error error;

    error_init(&error);
    job_record_init(record, &scene->job, NULL);
    stage_check(job_record_follow(record, scene->stage.ledgers[STAGE_CLIENT], &error), &error);
}

static void bring(struct scene *scene, const struct job_record *record, uint32_t index)
{
    struct due_move move = {.kind = DUE_MOVE_SETTLE,
                            .index = index,
                            .segment = record->segments[index].committed,
                            .because = JOB_SEGMENT_CLAIM_TIME,
                            .vouched = true};
    char name[LEDGER_NAME_MAX];
    struct ledger *ledger = scene->stage.ledgers[STAGE_CLIENT];
    struct error error;

    error_init(&error);
    stage_check(due_submit(name, ledger, record, &move, &error), &error);
    stage_settle_down(&scene->stage, STAGE_CLIENT, name);
}

static void test_a_contract_vouches_by_its_own_word(void **state)
{
    struct job_states_hosts hosts;
    struct job_record record;
    struct scene scene;
    struct error error;

    (void)state;
    error_init(&error);
    scene_open(&scene, STAGE_ANVIL, "contract");
    scene.terms.keeper = *signer_address(scene.stage.signers[STAGE_OTHER]);
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_VERIFIER, 1);
    scene_accept(&scene, STAGE_SOLVER);
    for (int i = 0; i < 2; i++) {
        scene_commit(&scene, STAGE_SOLVER, SCENE_STEPS);
        scene_draw(&scene, (uint32_t)i);
    }
    announce_word(&scene, 0, 0);
    announce_word(&scene, 1, 1);
    read_all(&scene, &record);
    assert_false(record.segments[0].has_vouch || record.segments[0].has_word);
    assert_int_equal(record.vouched_s, 0);
    job_record_free(&record);

    contract_make(&scene, STAGE_OTHER);
    read_all(&scene, &record);
    assert_true(record.segments[0].has_vouch && !record.segments[0].has_word);
    assert_false(record.segments[1].has_vouch || record.segments[1].has_word);
    assert_int_not_equal(record.vouched_s, 0);
    stage_check(job_states_find_hosts(&hosts, scene.stage.ledgers[STAGE_CLIENT], &record, &error),
                &error);
    assert_int_equal(hosts.count, 0); /* it said nothing of where it is found */
    bring(&scene, &record, 0);
    stage_check(job_record_follow(&record, scene.stage.ledgers[STAGE_CLIENT], &error), &error);
    assert_true(record.segments[0].draw.vouched);
    job_record_free(&record);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_contract_vouches_by_its_own_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
