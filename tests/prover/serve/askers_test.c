/*
 * Goal: asks about a trace are answered for parties of the job alone, and only about steps that an
 * open claim is about; an ask means nothing elsewhere, later, or about anything else. A vouch is
 * taken in that the keeper has signed about a segment that is not final, and no other.
 * Method: a job on the embedded ledger with an honest commit and a claim about one step; asks by
 * everybody, changed in each part; the claim ends. On a chain a party is a contract (ERC-1271).
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/codec/hex_data.h"
#include "prover/serve/askers.h"
#include "tests/support/game/contract.h"
#include "tests/support/game/scene.h"

enum {
    NOW_S = 2000000000,
    INDEX = 1, /* of the segment with the claim */
    STEP = 2,  /* in it */
    JOB_STEP = INDEX * SCENE_STEPS + STEP,
};

static struct ask ask_of(const struct scene *scene)
{
    return (struct ask){.place = *ledger_get_game(scene->stage.ledgers[STAGE_CLIENT]),
                        .job = scene->job,
                        .index = INDEX,
                        .step = STEP,
                        .expiry_s = NOW_S + ASK_LIFE_S};
}

static void write_ask(char text[ASK_TEXT_MAX], const struct scene *scene, const struct ask *ask,
                      int player)
{
    struct error error;

    error_init(&error);
    assert_int_equal(ask_write(text, ask, scene->stage.signers[player], &error), STATUS_OK);
}

static enum status admit(struct askers *askers, const char *text, uint64_t step, uint64_t now_s)
{
    struct address party;
    struct error error;

    error_init(&error);
    return askers_admit(askers, &party, text, step, now_s, &error);
}

static struct askers *open_askers(const struct scene *scene)
{
    struct askers *askers;
    struct error error;

    error_init(&error);
    assert_int_equal(askers_open(&askers, &scene->stage.options, &scene->job, &error), STATUS_OK);
    askers_follow(askers);
    return askers;
}

/* Two segments, true ones, with the verifier in the panel. */
static void open_scene_on(struct scene *scene, enum stage_ledger ledger, const char *name)
{
    scene_open(scene, ledger, name);
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    for (int i = 0; i <= INDEX; i++) {
        scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    }
}

static void open_scene(struct scene *scene, const char *name)
{
    open_scene_on(scene, STAGE_EMBEDDED, name);
}

static void test_parties_ask_about_what_is_disputed_and_nobody_about_anything_else(void **state)
{
    static const struct {
        int player;
        enum status wanted;
    } asks[] = {{STAGE_CLIENT, STATUS_OK},      {STAGE_SOLVER, STATUS_OK},
                {STAGE_VERIFIER, STATUS_OK},    {STAGE_SECOND, STATUS_OK}, /* the claimant */
                {STAGE_FRIEND, STATUS_REFUSED}, {STAGE_OTHER, STATUS_REFUSED}};
    char text[ASK_TEXT_MAX];
    struct askers *askers;
    struct scene scene;
    struct hash32 claim;
    struct ask ask;

    (void)state;
    open_scene(&scene, "asks");
    askers = open_askers(&scene);
    ask = ask_of(&scene);
    write_ask(text, &scene, &ask, STAGE_VERIFIER);
    assert_int_equal(admit(askers, text, JOB_STEP, NOW_S), STATUS_REFUSED); /* before a claim */
    claim = scene_claim(&scene, STAGE_SECOND, INDEX, STEP, 0);
    askers_follow(askers);
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        write_ask(text, &scene, &ask, asks[i].player);
        assert_int_equal(admit(askers, text, JOB_STEP, NOW_S), asks[i].wanted);
        assert_int_equal(admit(askers, text, JOB_STEP - 1, NOW_S), STATUS_REFUSED);
    }
    assert_int_equal(admit(askers, NULL, JOB_STEP, NOW_S), STATUS_REFUSED);
    scene_answer(&scene, STAGE_SOLVER, &claim);
    scene_pass(&scene, SCENE_CLOCK_S + 1);
    scene_timeout(&scene, STAGE_SOLVER, &claim);
    askers_follow(askers);
    write_ask(text, &scene, &ask, STAGE_VERIFIER);
    assert_int_equal(admit(askers, text, JOB_STEP, NOW_S), STATUS_REFUSED); /* it was refuted */
    askers_close(askers);
    scene_close(&scene);
}

static void write_contract_ask(char text[ASK_CONTRACT_MAX], const struct scene *scene,
                               const struct ask *ask, int player)
{
    struct hash32 digest = ask_digest(ask);
    char address[ADDRESS_TEXT_SIZE];
    char hex[2 * HASH32_SIZE + 1];

    address_print(address, signer_address(scene->stage.signers[player]));
    hex_write(hex, digest.bytes, HASH32_SIZE, false);
    (void)snprintf(text, ASK_CONTRACT_MAX, "%llu %s %s0102", (unsigned long long)ask->expiry_s,
                   address, hex);
}

/* Again, where a contract was asked just now. */
static enum status admit_later(struct askers *askers, const char *text, uint64_t step)
{
    enum status status;

    do {
        (void)usleep(50000);
        status = admit(askers, text, step, NOW_S);
    } while (status == STATUS_UNREACHABLE);
    return status;
}

static void test_a_contract_asks_by_its_own_word(void **state)
{
    char text[ASK_CONTRACT_MAX];
    struct askers *askers;
    struct scene scene;
    struct ask ask;

    (void)state;
    open_scene_on(&scene, STAGE_ANVIL, "contract");
    (void)scene_claim(&scene, STAGE_SECOND, INDEX, STEP, 0);
    contract_make(&scene, STAGE_VERIFIER);
    contract_make(&scene, STAGE_FRIEND);
    scene.stage.options.state_dir = scene.stage.state_dirs[STAGE_OTHER];
    askers = open_askers(&scene);
    ask = ask_of(&scene);
    write_contract_ask(text, &scene, &ask, STAGE_VERIFIER);
    assert_int_equal(admit_later(askers, text, JOB_STEP), STATUS_OK);
    assert_int_equal(admit_later(askers, text, JOB_STEP - 1), STATUS_REFUSED);
    text[strlen(text) - 5] ^= 1; /* of the hash that it shows */
    assert_int_equal(admit_later(askers, text, JOB_STEP), STATUS_REFUSED);
    write_contract_ask(text, &scene, &ask, STAGE_CLIENT); /* a party without code */
    assert_int_equal(admit_later(askers, text, JOB_STEP), STATUS_REFUSED);
    write_contract_ask(text, &scene, &ask, STAGE_FRIEND); /* no party */
    assert_int_equal(admit_later(askers, text, JOB_STEP), STATUS_REFUSED);
    askers_close(askers);
    scene_close(&scene);
}

/* Who joined a claim takes over when its leader sleeps, and must know the trace by then. Who slept
 * is no party any more. */
static void test_who_joined_an_open_claim_asks_as_its_leader_does(void **state)
{
    char text[STAGE_PLAYERS][ASK_TEXT_MAX];
    struct askers *askers;
    struct scene scene;
    struct hash32 claim;
    struct ask ask;

    (void)state;
    open_scene(&scene, "joined");
    askers = open_askers(&scene);
    ask = ask_of(&scene);
    for (int i = 0; i < STAGE_PLAYERS; i++) {
        write_ask(text[i], &scene, &ask, i);
    }
    claim = scene_claim(&scene, STAGE_SECOND, INDEX, STEP, 0);
    askers_follow(askers);
    assert_int_equal(admit(askers, text[STAGE_FRIEND], JOB_STEP, NOW_S), STATUS_REFUSED);
    (void)scene_claim(&scene, STAGE_FRIEND, INDEX, STEP, 1);
    (void)scene_claim(&scene, STAGE_OTHER, INDEX, STEP, 2);
    askers_follow(askers);
    for (int i = 0; i < STAGE_PLAYERS; i++) {
        assert_int_equal(admit(askers, text[i], JOB_STEP, NOW_S), STATUS_OK);
        assert_int_equal(admit(askers, text[i], JOB_STEP - 1, NOW_S), STATUS_REFUSED);
    }
    scene_answer(&scene, STAGE_SOLVER, &claim);
    scene_pass(&scene, SCENE_CLOCK_S + 1);
    scene_timeout(&scene, STAGE_SOLVER, &claim);
    askers_follow(askers);
    assert_int_equal(admit(askers, text[STAGE_SECOND], JOB_STEP, NOW_S), STATUS_REFUSED);
    assert_int_equal(admit(askers, text[STAGE_FRIEND], JOB_STEP, NOW_S), STATUS_OK);
    assert_int_equal(admit(askers, text[STAGE_OTHER], JOB_STEP, NOW_S), STATUS_OK);
    askers_close(askers);
    scene_close(&scene);
}

static void test_an_ask_is_good_for_one_step_of_one_job_until_it_expires(void **state)
{
    char text[ASK_TEXT_MAX];
    struct askers *askers;
    struct scene scene;
    struct ask wrong[6];
    struct ask ask;

    (void)state;
    open_scene(&scene, "bound");
    (void)scene_claim(&scene, STAGE_SECOND, INDEX, STEP, 0);
    askers = open_askers(&scene);
    ask = ask_of(&scene);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        wrong[i] = ask;
    }
    wrong[0].place.chain = uint256_of(5);
    wrong[1].place.registry.bytes[0] ^= 1;
    wrong[2].job.bytes[31] ^= 1;
    wrong[3].index = 0;
    wrong[4].step = 0;
    wrong[5].expiry_s = NOW_S + 3 * ASK_LIFE_S; /* for too long */
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        write_ask(text, &scene, &wrong[i], STAGE_VERIFIER);
        assert_int_equal(admit(askers, text, JOB_STEP, NOW_S), STATUS_REFUSED);
    }
    write_ask(text, &scene, &ask, STAGE_VERIFIER);
    assert_int_equal(admit(askers, text, JOB_STEP, NOW_S + ASK_LIFE_S), STATUS_OK);
    assert_int_equal(admit(askers, text, JOB_STEP, NOW_S + ASK_LIFE_S + 1), STATUS_REFUSED);
    askers_close(askers);
    scene_close(&scene);
}

/* Every byte of the header, changed, and every length of it. */
static void test_a_changed_ask_is_nobodys(void **state)
{
    char text[ASK_TEXT_MAX];
    struct scene scene;
    struct address own;
    struct address who;
    struct ask ask;
    size_t size;

    (void)state;
    scene_open(&scene, STAGE_EMBEDDED, "changed");
    own = *signer_address(scene.stage.signers[STAGE_VERIFIER]);
    ask = ask_of(&scene);
    write_ask(text, &scene, &ask, STAGE_VERIFIER);
    size = strlen(text);
    assert_int_equal(ask_read(&who, &ask, text, NOW_S), VERDICT_VALID);
    assert_true(address_equal(&who, &own));
    for (size_t i = 0; i < size; i++) {
        char kept = text[i];

        text[i] = (char)(kept == '3' ? '4' : '3');
        if (ask_read(&who, &ask, text, NOW_S) == VERDICT_VALID) {
            assert_false(address_equal(&who, &own));
        }
        text[i] = kept;
    }
    while (size-- > 0) {
        text[size] = '\0';
        assert_int_equal(ask_read(&who, &ask, text, NOW_S), VERDICT_INVALID);
    }
    memset(text, '1', sizeof(text)); /* no end */
    assert_int_equal(ask_read(&who, &ask, text, NOW_S), VERDICT_INVALID);
    scene_close(&scene);
}

/* ---- vouches -------------------------------------------------------------------------- */

static struct vouch sign_vouch(struct scene *scene, int player, uint32_t index)
{
    struct game_segment segment = scene_segment(scene, index);
    struct hash32 hash = game_segment_hash(&scene->job, &segment);
    struct vouch vouch;
    struct error error;

    error_init(&error);
    assert_int_equal(vouch_sign(&vouch, ledger_get_game(scene->stage.ledgers[STAGE_CLIENT]),
                                &scene->job, &hash, scene->stage.signers[player], &error),
                     STATUS_OK);
    return vouch;
}

static enum status admit_vouch(struct askers *askers, const struct vouch *vouch)
{
    struct error error;

    error_init(&error);
    return askers_admit_vouch(askers, vouch, &error);
}

static void test_the_keepers_word_about_a_segment_that_is_open_is_taken_in(void **state)
{
    static const struct scene_verdicts right = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT}};
    struct askers *askers;
    struct scene scene;
    struct vouch vouch;
    struct vouch other;

    (void)state;
    scene_open(&scene, STAGE_EMBEDDED, "vouch");
    scene.terms.keeper = *signer_address(scene.stage.signers[STAGE_OTHER]);
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_VERIFIER, 1);
    scene_accept(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, SCENE_STEPS);
    scene_commit(&scene, STAGE_SOLVER, SCENE_STEPS);
    askers = open_askers(&scene);
    vouch = sign_vouch(&scene, STAGE_OTHER, 0);
    assert_int_equal(admit_vouch(askers, &vouch), STATUS_OK);
    assert_int_equal(admit_vouch(askers, &vouch), STATUS_OK); /* a second time does no harm */
    other = sign_vouch(&scene, STAGE_SOLVER, 0);
    assert_int_equal(admit_vouch(askers, &other), STATUS_REFUSED);
    for (size_t i = 0; i < VOUCH_SIZE; i++) {
        uint8_t bytes[VOUCH_SIZE];
        const struct game_bytes changed = {bytes, VOUCH_SIZE};

        vouch_write(bytes, &vouch);
        bytes[i] ^= 1;
        assert_true(vouch_read(&other, &changed));
        assert_int_equal(admit_vouch(askers, &other), STATUS_REFUSED);
    }
    scene_end_segment(&scene, 0, &right);
    askers_follow(askers);
    assert_int_equal(admit_vouch(askers, &vouch), STATUS_REFUSED); /* it is final */
    askers_close(askers);
    scene_close(&scene);
}

static enum status admit_vouch_later(struct askers *askers, const struct vouch *vouch)
{
    enum status status;

    do {
        (void)usleep(50000);
        status = admit_vouch(askers, vouch);
    } while (status == STATUS_UNREACHABLE);
    return status;
}

static void test_a_keeper_that_is_a_contract_hands_its_word_over(void **state)
{
    struct askers *askers;
    struct scene scene;
    struct vouch vouch;

    (void)state;
    scene_open(&scene, STAGE_ANVIL, "vouching contract");
    scene.terms.keeper = *signer_address(scene.stage.signers[STAGE_OTHER]);
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_VERIFIER, 1);
    scene_accept(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, SCENE_STEPS);
    scene.stage.options.state_dir = scene.stage.state_dirs[STAGE_OTHER];
    askers = open_askers(&scene);
    vouch = contract_vouch(&scene, 0, GAME_VOUCH_MAX);
    assert_int_equal(admit_vouch_later(askers, &vouch), STATUS_REFUSED); /* it has no code yet */
    contract_make(&scene, STAGE_OTHER);
    assert_int_equal(admit_vouch_later(askers, &vouch), STATUS_OK);
    assert_int_equal(admit_vouch(askers, &vouch), STATUS_UNREACHABLE); /* it was asked just now */
    vouch.size = HASH32_SIZE;
    assert_int_equal(admit_vouch_later(askers, &vouch), STATUS_OK);
    vouch.signature[0] ^= 1;
    assert_int_equal(admit_vouch_later(askers, &vouch), STATUS_REFUSED);
    vouch.signature[0] ^= 1;
    vouch.segment.bytes[0] ^= 1;
    assert_int_equal(admit_vouch_later(askers, &vouch), STATUS_REFUSED);
    askers_close(askers);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_keepers_word_about_a_segment_that_is_open_is_taken_in),
        cmocka_unit_test(test_a_keeper_that_is_a_contract_hands_its_word_over),
        cmocka_unit_test(test_parties_ask_about_what_is_disputed_and_nobody_about_anything_else),
        cmocka_unit_test(test_a_contract_asks_by_its_own_word),
        cmocka_unit_test(test_who_joined_an_open_claim_asks_as_its_leader_does),
        cmocka_unit_test(test_an_ask_is_good_for_one_step_of_one_job_until_it_expires),
        cmocka_unit_test(test_a_changed_ask_is_nobodys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
