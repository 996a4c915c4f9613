/* node.c - the round of a node: see node.h. */
#include "verifier/node/node.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verifier/dispute/claimant.h"
#include "verifier/node/signing_guard.h"

enum {
    EVENTS_MAX = 512, /* of one round */
    SWEEP_MS = 30000,
    CACHE_FILES_MAX = 65536,
};

/* The fault stands until somebody has looked, whichever of the two files was lost since. */
static enum status load_fault(struct node *node, struct error *error)
{
    const struct node_ports *ports = &node->ports;
    char fault[STORE_REASON_MAX];
    char kept[VERDICT_DB_FAULT_MAX];
    enum status status = store_text(ports->store, fault, "fault", error);

    if (status == STATUS_OK) {
        status = verdict_db_fault(ports->verdicts, kept, error);
    }
    if (status != STATUS_OK || (fault[0] == '\0' && kept[0] == '\0')) {
        return status;
    }
    node->fault = true;
    log_error(ports->log, "verifier", "nothing is signed, because of an earlier fault: %s",
              kept[0] != '\0' ? kept : fault);
    if (kept[0] == '\0') {
        return verdict_db_set_fault(ports->verdicts, fault, error);
    }
    return fault[0] == '\0' ? store_set_text(ports->store, "fault", kept, error) : STATUS_OK;
}

enum status node_forget_fault(struct store *store, struct verdict_db *verdicts, struct error *error)
{
    enum status status = queue_forget_fault(store, error);

    if (status == STATUS_OK) {
        status = store_set_text(store, "fault", "", error);
    }
    return status == STATUS_OK ? verdict_db_set_fault(verdicts, "", error) : status;
}

enum status node_open(struct node *node, const struct node_options *options,
                      const struct node_ports *ports, struct error *error)
{
    enum status status;

    memset(node, 0, sizeof(*node));
    node->options = *options;
    node->ports = *ports;
    if (node->options.checks_max == 0 || node->options.checks_max > NODE_CHECKS_MAX) {
        return error_set(error, STATUS_USAGE, "a node makes 1 to %d checks at once",
                         NODE_CHECKS_MAX);
    }
    node->actions = calloc(QUEUE_ACTIONS_MAX, sizeof(*node->actions));
    if (node->actions == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a node");
    }
    status = load_fault(node, error);
    if (status == STATUS_OK) {
        status = queue_recover(ports->store, error);
    }
    if (status != STATUS_OK) {
        node_close(node);
    }
    return status;
}

void node_close(struct node *node)
{
    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        free(node->running[i].request);
        free(node->running[i].result);
    }
    free(node->actions);
    memset(node, 0, sizeof(*node));
}

/* ---- the ledger ----------------------------------------------------------- */

/* Events are entered in batches: each is on disk together with the cursor behind it. */
static enum status read_events(struct node *node, bool *busy, struct error *error)
{
    struct store *store = node->ports.store;
    int64_t cursor = 0;
    enum status status = store_number(store, &cursor, "cursor", error);

    for (int i = 0; i < EVENTS_MAX && status == STATUS_OK; i++) {
        struct ledger_entry entry;

        status = ledger_next(node->ports.ledger, &entry, (uint64_t)cursor, 0, error);
        if (status == STATUS_OK) {
            *busy = true;
            status = claimant_hear(node, &entry, error);
        }
        if (status == STATUS_OK) {
            status = store_take(store, &entry, ledger_get_own(node->ports.ledger), error);
        }
        if (status == STATUS_OK) {
            status = store_number(store, &cursor, "cursor", error);
        }
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status follow(struct node *node, bool *busy, struct error *error)
{
    enum status status = store_begin(node->ports.store, error);

    return status == STATUS_OK ? store_end(node->ports.store, read_events(node, busy, error), error)
                               : status;
}

/* False: the ledger cannot be reached now; what needs none of it goes on. */
static enum status reach_ledger(struct node *node, bool *reached, struct error *error)
{
    struct error weather;
    enum status status;

    error_init(&weather);
    status = ledger_work(node->ports.ledger, &weather);
    if (status == STATUS_OK) {
        status = ledger_get_clock(node->ports.ledger, &node->clock, &weather);
    }
    *reached = status == STATUS_OK;
    if (status == STATUS_UNREACHABLE) {
        return store_set_text(node->ports.store, "weather", weather.text, error);
    }
    if (status != STATUS_OK) {
        *error = weather;
        return status;
    }
    return database_run(&node->ports.store->sql, error, "DELETE FROM facts WHERE name = 'weather'",
                        "");
}

/* ---- the cache ------------------------------------------------------------ */

struct cached {
    char name[128];
    uint64_t size;
    time_t used;
};

static int older_first(const void *left, const void *right)
{
    const struct cached *a = left;
    const struct cached *b = right;

    return (a->used > b->used) - (a->used < b->used);
}

/* Room for one more; false: there is none. */
static bool grow(struct cached **files, size_t count, size_t *room)
{
    struct cached *more;

    if (count < *room) {
        return true;
    }
    more = count >= CACHE_FILES_MAX
               ? NULL
               : realloc(*files, (count == 0 ? 64 : 2 * count) * sizeof(*more));
    if (more == NULL) {
        return false;
    }
    *files = more;
    *room = count == 0 ? 64 : 2 * count;
    return true;
}

/* Removes the files that were not read for longest until the rest fits. A check that loses a file
 * under its hands cannot tell, and is tried again. */
static void sweep_cache(struct node *node)
{
    struct cached *files = NULL;
    DIR *folder = opendir(node->options.cache);
    struct dirent *entry;
    uint64_t total = 0;
    size_t count = 0;
    size_t room = 0;

    while (folder != NULL && grow(&files, count, &room) && (entry = readdir(folder)) != NULL) {
        struct stat about;

        if (strlen(entry->d_name) < sizeof(files->name) && strstr(entry->d_name, ".lock") == NULL &&
            fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(about.st_mode)) {
            (void)snprintf(files[count].name, sizeof(files->name), "%.127s", entry->d_name);
            files[count].size = (uint64_t)about.st_size;
            files[count].used = about.st_atime > about.st_mtime ? about.st_atime : about.st_mtime;
            total += files[count].size;
            count++;
        }
    }
    if (count > 0 && total > node->options.disk_max) {
        qsort(files, count, sizeof(*files), older_first);
        for (size_t i = 0; i < count && total > node->options.disk_max; i++) {
            if (unlinkat(dirfd(folder), files[i].name, 0) == 0) {
                total -= files[i].size;
            }
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    free(files);
}

/* A machine that cannot be believed must not forget it when its power fails. */
static enum status secure_fault(struct node *node, struct error *error)
{
    enum status status = STATUS_OK;

    if (node->fault && !node->fault_is_safe) {
        status = store_secure(node->ports.store, error);
        node->fault_is_safe = status == STATUS_OK;
    }
    return status;
}

/* ---- the round ------------------------------------------------------------ */

enum status node_round(struct node *node, bool *busy, struct error *error)
{
    bool reached = false;
    enum status status;

    *busy = false;
    node->now_ms = node->ports.now_ms(node->ports.clock);
    status = reach_ledger(node, &reached, error);
    if (status == STATUS_OK && reached) {
        status = follow(node, busy, error);
    }
    if (status == STATUS_OK) {
        status = node_take_answers(node, busy, error);
    }
    if (status == STATUS_OK) {
        status = secure_fault(node, error);
    }
    if (status == STATUS_OK && reached) {
        status = node_plan(node, error);
    }
    /* A dispute has a turn to lose: it gets a free child before any check does. */
    if (status == STATUS_OK && reached) {
        status = claimant_round(node, busy, error);
    }
    if (status == STATUS_OK) {
        status = node_start_checks(node, busy, error);
    }
    if (status == STATUS_OK && reached) {
        status = signing_guard_round(node, busy, error);
    }
    /* A clock that was set back is no reason to wait for it. */
    if (status == STATUS_OK &&
        (node->now_ms >= node->swept_ms + SWEEP_MS || node->now_ms < node->swept_ms)) {
        node->swept_ms = node->now_ms;
        sweep_cache(node);
        status = store_set_number(node->ports.store, "alive_ms", (int64_t)node->now_ms, error);
    }
    return status == STATUS_UNREACHABLE ? STATUS_OK : status;
}
