/*
 * Goal: a node that is killed at any point of a dispute goes on as if nothing had happened, with an
 * honest accused and with a cheat: it loses nothing, says nothing twice and nothing false. Method:
 * a dispute is played to its end once, and before each change of any database and each file that
 * appears, all files are copied. Then it is played on from each copy, which is what a kill at that
 * instant leaves, and must end in the same events and the same money. Checks run in this process,
 * so that a play is the same each time; power is not lost here, so nothing is synced.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/rules/rule.h"
#include "tests/support/dispute/defendant.h"
#include "tests/support/node/crash_images.h"

enum {
    ROUNDS_MAX = 3000,
    STEP = 6,
    INDEX = STEP / DEFENDANT_SEGMENT,
    BATCH = 2048,
    FEW_BYTES = 11000,
    IMAGES_SOAK = 1000000,
    IMAGES = 12, /* of each dispute, spread evenly */
};

/* A file that appears is an instant that matters. */
int rename(const char *from, const char *to)
{
    crash_images_take();
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int fsync(int descriptor)
{
    (void)descriptor;
    return 0;
}

int fdatasync(int descriptor)
{
    (void)descriptor;
    return 0;
}

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- a world ------------------------------------------------------------------------ */

struct world {
    struct market market;
    struct market_node node;
    struct defendant other; /* who is accused, or accuses */
    bool answers;
    enum game_event_kind end; /* by which it is over */
    uint32_t ends;
    const char *path;
    struct hash32 job;
    uint64_t now_ms;
};

static uint64_t now_ms(void *context)
{
    struct world *world = context;

    return world->now_ms += 1000;
}

static void open_node(struct world *world)
{
    world->node.ledger = world->market.ledgers[MARKET_VERIFIER];
    market_node_open(&world->node);
    world->node.node.ports.now_ms = now_ms;
    world->node.node.ports.clock = world;
}

static void world_open(struct world *world, const char *name)
{
    memset(world, 0, sizeof(*world));
    crash_images_begin(test_temp_dir(), name);
    world->answers = true;
    market_open(&world->market, true, name);
    world->market.seats = 0; /* the node claims as an outsider */
    market_node_defaults(&world->node, &world->market, NULL);
    world->node.in_process = true;
    world->node.options.mode = NODE_DEFEND;
}

static void mirror(struct world *world, const char *path)
{
    world->path = path;
    world->node.mirrors[world->node.options.mirror_count++] = path;
}

static void world_close(struct world *world)
{
    defendant_close(&world->other);
    market_close(&world->market);
    crash_images_end();
}

/* One round of the node and of the other. */
static void round_of_both(struct world *world)
{
    struct error error;
    bool busy = false;

    error_init(&error);
    check(node_round(&world->node.node, &busy, &error), &error);
    if (world->answers) {
        defendant_round(&world->other);
    }
    if (!busy) {
        market_pass_time(&world->market, 1);
    }
}

static void play_out(struct world *world, bool watched)
{
    open_node(world);
    for (int i = 0; market_count(&world->market, world->end, NULL) < world->ends; i++) {
        assert_true(i < ROUNDS_MAX);
        crash_images_watch(watched);
        round_of_both(world);
        crash_images_watch(false);
    }
    assert_false(world->node.node.fault);
    market_node_close(&world->node);
}

/* How it ended: how often each thing happened, and who is owed what. */
struct ending {
    uint32_t counts[GAME_EVENT_KINDS];
    wei owed[MARKET_PLAYERS];
};

static struct ending end_of(struct world *world)
{
    struct ending ending = {0};

    for (uint32_t i = 0; i < GAME_EVENT_KINDS; i++) {
        ending.counts[i] = market_count(&world->market, (enum game_event_kind)i, NULL);
    }
    for (uint32_t i = 0; i < MARKET_PLAYERS; i++) {
        ending.owed[i] = market_owed(&world->market, (enum market_player)i);
    }
    return ending;
}

static void see_same(const struct ending *a, const struct ending *b, uint32_t image)
{
    for (uint32_t i = 0; i < GAME_EVENT_KINDS; i++) {
        if (a->counts[i] != b->counts[i]) {
            fail_msg("killed at instant %u: '%s' %u times, not %u", image,
                     game_event_name((enum game_event_kind)i), b->counts[i], a->counts[i]);
        }
    }
    assert_memory_equal(a->owed, b->owed, sizeof(a->owed));
}

/* Once to the end, and then from each of its instants. */
static void play_from_each(struct world *world)
{
    uint32_t step;
    struct ending whole;

    play_out(world, true);
    whole = end_of(world);
    assert_true(crash_images_count() > 3);
    step = (uint32_t)(crash_images_count() / test_share(IMAGES_SOAK, IMAGES)) + 1;
    for (uint32_t i = 0; i < crash_images_count(); i += step) {
        struct ending again;

        market_leave(&world->market);
        crash_images_restore(i);
        market_return(&world->market);
        play_out(world, false);
        again = end_of(world);
        see_same(&whole, &again, i);
    }
}

/* ---- disputes ------------------------------------------------------------------------- */

static void accuse_solver(struct world *world, const char *path, struct job *job,
                          const struct defendant_lie *lie)
{
    defendant_write(path, job, lie);
    world->job = market_commit(&world->market, path);
    defendant_open(&world->other, &world->market, MARKET_SOLVER, &world->job, path, lie);
    mirror(world, path);
    world->end = GAME_PAID;
    world->ends = 1;
}

static void test_a_claimant_that_is_killed_anywhere_convicts(void **state)
{
    struct world world;
    uint64_t random = 1;
    struct job *job = defendant_job(MODEL_MLP, 51);
    struct defendant_lie lie = defendant_choose(job, STEP, &random);

    (void)state;
    world_open(&world, "solver");
    accuse_solver(&world, small_path("solver-run"), job, &lie);
    play_from_each(&world);
    world_close(&world);
}

static void test_the_parts_of_a_long_sum_convict_through_kills(void **state)
{
    struct small_job_options options;
    struct world world;
    struct defendant_lie lie;
    uint64_t random = 2;
    struct job *job;

    (void)state;
    small_job_of_kind(&options, MODEL_MLP);
    options.model.batch = BATCH;
    job = defendant_job_of(&options, 52);
    lie = defendant_choose(job, STEP, &random);
    lie.trace = (struct lie){.item = defendant_longest_sum(job->tape, BATCH), .element = 5};
    world_open(&world, "parts");
    world.node.options.move_max = FEW_BYTES;
    accuse_solver(&world, small_path("parts-run"), job, &lie);
    play_from_each(&world);
    world_close(&world);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_claimant_that_is_killed_anywhere_convicts),
        cmocka_unit_test(test_the_parts_of_a_long_sum_convict_through_kills),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    if (access("/dev/shm", W_OK) == 0) { /* thousands of small files */
        (void)setenv("TMPDIR", "/dev/shm", 0);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
