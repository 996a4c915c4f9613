/* simulation_worlds.c - what only some lives have: see simulation.h.
 *
 * All of it is drawn from a number of its own, so that the other lives are what they were.
 */
#include <assert.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/folder.h"
#include "tests/support/node/simulation.h"
#include "tests/support/test.h"

enum {
    DIVERGES_MS = 1200000,
    DIVERGES_WAIT_MS = 1500000, /* for a moment in which something is about to be said */
};

static uint64_t below(struct simulation *simulation, uint64_t limit)
{
    return test_random_below(&simulation->worlds_random, limit);
}

static bool chance(struct simulation *simulation, uint32_t percent)
{
    return simulation_chance(&simulation->worlds_random, percent);
}

const char *simulation_trouble_name(enum simulation_trouble trouble)
{
    static const char *const names[SIMULATION_TROUBLES] = {
        [TROUBLE_LEDGER_AWAY] = "an unreachable ledger",
        [TROUBLE_LEDGER_BAD] = "a ledger that fails now and then",
        [TROUBLE_REFUSING] = "an empty purse",
        [TROUBLE_LAGS] = "an index behind",
        [TROUBLE_REORGANIZED] = "a reorganization",
        [TROUBLE_DEATH] = "a death",
        [TROUBLE_POWER] = "a loss of power",
        [TROUBLE_STORE_LOST] = "a lost database",
        [TROUBLE_BOOK_LOST] = "a lost book",
        [TROUBLE_CACHE_LOST] = "a lost cache",
        [TROUBLE_DISK_FULL] = "a full disk",
        [TROUBLE_FILES_FULL] = "full folders",
        [TROUBLE_QUEUE_FULL] = "a full queue",
        [TROUBLE_CLOCK] = "a clock that jumped",
        [TROUBLE_SLEEP] = "a sleep",
        [TROUBLE_BARREN] = "no children",
        [TROUBLE_WITHHELD] = "withheld data",
        [TROUBLE_FAULT] = "a fault of the machine",
    };

    return names[trouble];
}

void simulation_invent_world(struct simulation *simulation)
{
    struct simulation_world *world = &simulation->world;

    /* Half is left by the first job, half of that by the next: a place is left for the last. */
    if (chance(simulation, 25)) {
        world->tasks_max =
            (UINT32_C(1) << (simulation->job_count - 1)) + (uint32_t)below(simulation, 2);
    }
    world->fills_files = chance(simulation, 25);
    world->loses_cache = chance(simulation, 25) ? 30 : 0;
    world->loses_book = chance(simulation, 15) ? 25 : 0;
    if (chance(simulation, 25)) {
        world->diverges_ms = simulation->now_ms + below(simulation, DIVERGES_MS);
    }
    world->fault_is_looked_at = chance(simulation, 50);
}

/* ---- files beside the databases ------------------------------------------------------ */

void simulation_lose(struct simulation *simulation)
{
    if (chance(simulation, simulation->world.loses_cache)) {
        simulation_show(simulation, "the cache is lost");
        folder_empty(simulation->cache);
        simulation->troubles[TROUBLE_CACHE_LOST] = true;
    }
    if (chance(simulation, simulation->world.loses_book)) {
        simulation_lose_book(simulation);
    }
}

static void limit_files(rlim_t most)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0) {
        limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
        (void)setrlimit(RLIMIT_FSIZE, &limit);
    }
}

/* These files are real ones, in folders of claims: a process that may write none of any size sees
 * what it would see on a full disk, in other words. */
void simulation_fill_files(struct simulation *simulation)
{
    if (simulation->world.fills_files && virtual_disk_is_full(simulation->disk)) {
        (void)signal(SIGXFSZ, SIG_IGN);
        limit_files(0);
        simulation->files_are_full = true;
        simulation->troubles[TROUBLE_FILES_FULL] = true;
    }
}

void simulation_empty_files(struct simulation *simulation)
{
    if (simulation->files_are_full) {
        limit_files(RLIM_INFINITY);
        simulation->files_are_full = false;
    }
}

/* ---- the queue ----------------------------------------------------------------------- */

void simulation_watch_queue(struct simulation *simulation)
{
    int64_t put_off = 0;
    struct error error;

    error_init(&error);
    if (simulation->world.tasks_max > 0 && simulation->up &&
        database_number(&simulation->store.sql, &put_off, 0, &error,
                        "SELECT count(*) FROM segments WHERE reason = 'the queue is full'",
                        "") == STATUS_OK &&
        put_off > 0) {
        simulation->troubles[TROUBLE_QUEUE_FULL] = true;
    }
}

/* ---- the machine ---------------------------------------------------------------------- */

/* A claim that waits for its seal, or a statement that could not be sent. */
static bool has_something_to_say(struct simulation *simulation)
{
    int64_t planned = 0;
    struct error error;

    error_init(&error);
    return database_number(&simulation->store.sql, &planned, 0, &error,
                           "SELECT count(*) FROM actions WHERE state = 0 AND"
                           " (kind = ?1 OR kind IN (?2, ?3) AND tries > 0)",
                           "iii", (int64_t)ACTION_CLAIM, (int64_t)ACTION_ATTEST,
                           (int64_t)ACTION_SEAL) == STATUS_OK &&
           planned > 0;
}

bool simulation_diverges(struct simulation *simulation)
{
    struct simulation_world *world = &simulation->world;

    if (world->diverges_ms == 0 || simulation->now_ms < world->diverges_ms ||
        (simulation->now_ms < world->diverges_ms + DIVERGES_WAIT_MS &&
         !has_something_to_say(simulation))) {
        return false;
    }
    world->diverges_ms = 0;
    return true;
}
