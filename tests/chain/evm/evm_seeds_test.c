/*
 * Goal: nobody who makes blocks chooses a seed, no job waits for ever for one, and no program plays
 * where somebody could choose.
 * Method: a chain with Ethereum's number draws from the sixteenth block behind a commit and not
 * before; a commit that nobody drew for a week, on both kinds of ledger, is drawn from the hash of
 * a block that nobody knew when it was fixed, once; a chain of another number, a registry whose
 * seeds are another contract (of one changed byte, too) and one of an older edition are refused.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/contracts/compiled/referee_code.h"
#include "chain/contracts/compiled/seeds_code.h"
#include "chain/evm/evm_seeds.h"
#include "chain/evm/ledger_evm.h"
#include "tests/support/game/scene.h"

enum {
    DEPLOY_S = 600,
};

static void play_to_commit(struct scene *scene)
{
    scene->terms.coverage_ppm = 1;
    scene->terms.deadline_s += 2 * GAME_FIX_AFTER_S;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
}

static enum status try_draw(struct scene *scene, const struct game_segment *segment,
                            const char *name)
{
    struct error error;

    error_init(&error);
    stage_work(scene->stage.ledgers[STAGE_OTHER]);
    return ledger_draw(scene->stage.ledgers[STAGE_OTHER], name, &scene->job, segment,
                       &(struct game_commits){segment->height, segment->time_s}, &error);
}

static void see_seed(struct scene *scene, const struct game_segment *segment,
                     const struct hash32 *random)
{
    struct hash32 hash = game_segment_hash(&scene->job, segment);
    struct hash32 seed = game_seed(random, &hash);

    scene_read(scene);
    assert_true(hash32_equal(&seed, &scene->record.segments[0].draw.seed));
}

static void test_a_seed_comes_sixteen_blocks_behind_its_commit(void **state)
{
    struct game_segment segment;
    struct ledger_clock clock;
    struct hash32 random;
    struct scene scene;
    struct error error;

    (void)state;
    scene_open(&scene, STAGE_ETHEREUM, "sixteen");
    play_to_commit(&scene);
    segment = scene_segment(&scene, 0);
    for (;;) {
        stage_check(ledger_get_clock(scene.stage.ledgers[STAGE_OTHER], &clock, &error), &error);
        assert_int_equal(clock.seed_delay, 16 + 1);
        if (clock.height > segment.height + 16) {
            break;
        }
        assert_int_equal(try_draw(&scene, &segment, "draw"), STATUS_UNREACHABLE);
        scene_pass_blocks(&scene, 1);
    }
    assert_int_equal(try_draw(&scene, &segment, "draw"), STATUS_OK);
    stage_settle_down(&scene.stage, STAGE_OTHER, "draw");
    random = anvil_word_of_block(scene.stage.rpc, segment.height + 16, "mixHash");
    see_seed(&scene, &segment, &random);
    scene_close(&scene);
}

static void test_a_draw_without_a_panel_waits_for_no_block(void **state)
{
    struct game_segment segment;
    struct scene scene;

    (void)state;
    scene_open(&scene, STAGE_ETHEREUM, "without");
    scene.terms.seats = 0;
    scene.terms.panel_least = 0;
    scene.terms.coverage_ppm = 0;
    scene_open_job(&scene);
    scene_accept(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, SCENE_STEPS);
    segment = scene_segment(&scene, 0);
    assert_int_equal(segment.panel, 0);
    assert_int_equal(try_draw(&scene, &segment, "draw"), STATUS_OK);
    stage_settle_down(&scene.stage, STAGE_OTHER, "draw");
    scene_read(&scene);
    assert_int_equal(scene.record.state.drawn, 1);
    assert_true(scene.record.segments[0].draw.covered);
    scene_close(&scene);
}

/* ---- a seed that nobody shows ------------------------------------------------------ */

/* Where it comes from now, by the event. */
static uint64_t find_source(struct ledger *ledger, const struct game_segment *segment)
{
    struct ledger_entry entry = {0};
    struct error error;
    uint64_t source = 0;

    stage_check(ledger_catch_up(ledger, &error), &error);
    while (ledger_next(ledger, &entry, entry.number, 0, &error) == STATUS_OK) {
        if (entry.kind == LEDGER_EVENT && entry.event.kind == GAME_FIXED) {
            assert_int_equal(entry.event.height, segment->height);
            assert_int_equal(entry.event.time_s, segment->time_s);
            source = entry.event.source;
        }
    }
    return source;
}

static enum game_refusal_kind refused_fix(struct scene *scene, const struct game_segment *segment,
                                          const char *name)
{
    struct error error;

    stage_check(ledger_fix(scene->stage.ledgers[STAGE_FRIEND], name, segment->height,
                           segment->time_s, &error),
                &error);
    return stage_refused(&scene->stage, STAGE_FRIEND, name);
}

/* The panel covers one in a million, and this one all the same. */
static void let_a_week_pass(enum stage_ledger ledger, const char *name)
{
    struct game_segment segment;
    struct hash32 random;
    struct scene scene;
    uint64_t source;

    scene_open(&scene, ledger, name);
    play_to_commit(&scene);
    segment = scene_segment(&scene, 0);
    scene_pass(&scene, GAME_FIX_AFTER_S - 1000);
    assert_int_equal(refused_fix(&scene, &segment, "early"), GAME_TOO_EARLY);
    scene_pass(&scene, 2000);
    /* The draw fixes the seed, and cannot be made before the next block is there. */
    assert_int_equal(try_draw(&scene, &segment, "draw"), STATUS_UNREACHABLE);
    while (try_draw(&scene, &segment, "draw") == STATUS_UNREACHABLE) {
        scene_pass_blocks(&scene, 1);
    }
    stage_settle_down(&scene.stage, STAGE_OTHER, "draw");
    assert_int_equal(refused_fix(&scene, &segment, "again"), GAME_NOT_NEEDED);
    source = find_source(scene.stage.ledgers[STAGE_OTHER], &segment);
    assert_true(source > segment.height + GAME_SEED_DELAY);
    if (ledger != STAGE_EMBEDDED) {
        random = anvil_word_of_block(scene.stage.rpc, source, "hash");
        see_seed(&scene, &segment, &random);
    }
    scene_read(&scene);
    assert_true(scene.record.segments[0].draw.covered);
    scene_close(&scene);
}

static void test_a_week_without_a_draw_ends(void **state)
{
    (void)state;
    let_a_week_pass(STAGE_EMBEDDED, "week");
}

static void test_a_week_without_a_draw_ends_on_a_chain(void **state)
{
    (void)state;
    let_a_week_pass(STAGE_ANVIL, "week-evm");
}

/* ---- strange places ------------------------------------------------------------------ */

struct place {
    struct anvil *anvil;
    struct rpc *rpc;
    struct ledger_options options;
    char state_dir[600];
};

static void open_place(struct place *place, const char *chain_id, const char *name)
{
    const char *const arguments[] = {"--chain-id", chain_id, NULL};

    place->anvil = anvil_start(arguments);
    place->rpc = anvil_rpc(place->anvil);
    ledger_options_init(&place->options);
    (void)snprintf(place->state_dir, sizeof(place->state_dir), "%s/%s", test_temp_dir(), name);
    place->options.state_dir = place->state_dir;
    place->options.url = anvil_url(place->anvil);
}

static void close_place(struct place *place)
{
    rpc_free(place->rpc);
    anvil_stop(place->anvil);
}

static void refuses(struct place *place, const struct address *registry, const char *why)
{
    struct ledger *ledger = NULL;
    struct error error;

    error_init(&error);
    place->options.registry = *registry;
    assert_int_equal(ledger_open(&ledger, &place->options, &error), STATUS_REFUSED);
    if (strstr(error.text, why) == NULL) {
        fail_msg("another reason: %s", error.text);
    }
    assert_true(error.advice[0] != '\0');
}

/* The registry of a referee with those seeds; nobody asks the examiner here. */
static struct address found(struct place *place, const struct address *seeds)
{
    const struct address partners[] = {*seeds, *seeds, {{0}}};
    const struct address referee =
        anvil_deploy_with(place->rpc, 0, REFEREE_CODE, partners, 3, "0x0");

    return address_of_contract(&referee, 1);
}

static void test_a_chain_of_unknown_seeds_is_refused(void **state)
{
    const struct address anything = {{7}};
    const struct address coin = {{0}};
    struct secret_key key = anvil_key(0);
    struct address registry;
    struct signer *signer;
    struct place place;
    struct error error;
    uint64_t height;

    (void)state;
    error_init(&error);
    open_place(&place, "42161", "rollup");
    signer = signer_new(&key, &error);
    assert_non_null(signer);
    place.options.signer = signer;
    assert_int_equal(
        ledger_evm_deploy(&place.options, "deploy", &registry, &height, &coin, DEPLOY_S, &error),
        STATUS_REFUSED);
    assert_non_null(strstr(error.text, "no seeds are known for chain 42161"));
    assert_non_null(strstr(error.advice, "rollups"));
    refuses(&place, &anything, "no seeds are known for chain 42161");
    signer_free(signer);
    close_place(&place);
}

/* The constructor takes the delay of its chain and no other, so none can be named by mistake. */
static void see_delay_of_the_contract(struct place *place, uint8_t delay, bool good)
{
    char *data = malloc(strlen(HEADER_SEEDS_CODE) + 80);
    json_t *answer = NULL;
    struct error error;
    enum status status;

    assert_non_null(data);
    (void)sprintf(data, "0x%s%064x", HEADER_SEEDS_CODE, delay);
    status = rpc_call(place->rpc, &answer, "eth_estimateGas", json_pack("[{s:s}]", "data", data),
                      &error);
    assert_int_equal(status == STATUS_OK, good);
    json_decref(answer);
    free(data);
}

static void test_a_registry_of_strange_seeds_is_refused(void **state)
{
    static const char week[] = "62093a80"; /* PUSH3, in seconds */
    const struct address nobody = {{7}};
    struct address delay = {{0}};
    struct address seeds;
    struct address registry;
    struct ledger *ledger = NULL;
    struct place place;
    struct error error;
    char *code = strdup(HEADER_SEEDS_CODE);
    char *at = strstr(code, week);

    (void)state;
    error_init(&error);
    assert_non_null(at);
    open_place(&place, "31337", "strange");
    delay.bytes[ADDRESS_SIZE - 1] = 1;
    seeds = anvil_deploy_seeds(place.rpc, 0);
    registry = found(&place, &seeds);
    place.options.registry = registry;
    stage_check(ledger_open(&ledger, &place.options, &error), &error);
    ledger_close(ledger);

    registry = found(&place, &nobody);
    refuses(&place, &registry, "does not know");
    at[strlen(week) - 1] = '1'; /* a week and a second */
    seeds = anvil_deploy(place.rpc, 0, code, &delay, "0x0");
    registry = found(&place, &seeds);
    refuses(&place, &registry, "does not know");
    refuses(&place, &seeds, "of another edition"); /* it has no seeds at all */
    see_delay_of_the_contract(&place, 1, true);
    see_delay_of_the_contract(&place, 16, false);
    see_delay_of_the_contract(&place, 0, false);
    free(code);
    close_place(&place);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_week_without_a_draw_ends),
        cmocka_unit_test(test_a_week_without_a_draw_ends_on_a_chain),
        cmocka_unit_test(test_a_seed_comes_sixteen_blocks_behind_its_commit),
        cmocka_unit_test(test_a_draw_without_a_panel_waits_for_no_block),
        cmocka_unit_test(test_a_chain_of_unknown_seeds_is_refused),
        cmocka_unit_test(test_a_registry_of_strange_seeds_is_refused),
    };

    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
