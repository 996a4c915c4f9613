/* node_round.c - see node_round.h. */
#include "verifier/node/node_round.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verifier/node/node_checks.h"
#include "verifier/node/node_disputes.h"
#include "verifier/node/node_plan.h"
#include "verifier/node/signing_guard.h"
#include "verifier/store/keep.h"
#include "verifier/store/store_endpoints.h"

enum {
    EVENTS_MAX = 512, /* of one round */
    SWEEP_MS = 30000,
    MONEY_MS = 10000,
    CACHE_FILES_MAX = 65536,
    DISK_BLOCK = 512, /* bytes, in what stat() counts */
};

/* ---- the ledger ----------------------------------------------------------- */

/*
 * What the node knows of an event is kept together with the position behind it. A node that starts
 * takes in one round what it had taken before: it must not act on half of it.
 */
static enum status read_events(struct node *node, bool *busy, struct error *error)
{
    const struct dispute_ports ports = node_dispute_ports(node);
    struct store *store = node->ports.store;
    int64_t heard = 0;

    TRY(store_number(store, &heard, "cursor", error));
    for (int i = 0; i < EVENTS_MAX;) {
        struct ledger_entry entry;
        enum status status =
            ledger_next(node->ports.ledger, &entry, store_position(store), 0, error);
        bool is_new;

        if (status == STATUS_NOT_FOUND) {
            break;
        }
        TRY(status);
        *busy = true;
        is_new = (int64_t)entry.number > heard;
        if (is_new) {
            TRY(dispute_hear(&ports, &entry, error));
        }
        TRY(store_take(store, &entry, ledger_get_own(node->ports.ledger), error));
        if (is_new && entry.kind == LEDGER_REWIND) {
            heard = 0; /* all that is read again is as if it were new */
        }
        i += is_new;
    }
    return STATUS_OK;
}

static enum status follow(struct node *node, bool *busy, struct error *error)
{
    TRY(store_begin(node->ports.store, error));
    return store_end(node->ports.store, read_events(node, busy, error), error);
}

static enum status keep_reopened(struct node *node, struct error *error)
{
    uint64_t count;
    int64_t kept;

    TRY(ledger_reopened(node->ports.ledger, &count, error));
    TRY(store_number(node->ports.store, &kept, "reopened", error));
    if ((uint64_t)kept == count) {
        return STATUS_OK;
    }
    TRY(signing_guard_reopen(node, error));
    return store_set_number(node->ports.store, "reopened", (int64_t)count, error);
}

/* *reached false: the ledger cannot be reached now. The work that does not need it goes on. */
static enum status reach_ledger(struct node *node, bool *reached, struct error *error)
{
    struct ledger_endpoint endpoints[LEDGER_ENDPOINTS_MAX];
    struct error trouble;
    enum status status;

    error_init(&trouble);
    TRY_OUT(ledger_work(node->ports.ledger, &trouble));
    status = ledger_get_clock(node->ports.ledger, &node->clock, &trouble);
out:
    *reached = status == STATUS_OK;
    TRY(keep_reopened(node, error));
    TRY(store_put_endpoints(node->ports.store, endpoints,
                            ledger_endpoints(node->ports.ledger, endpoints), error));
    if (status == STATUS_UNREACHABLE) {
        return store_set_text(node->ports.store, "ledger_trouble", trouble.text, error);
    }
    if (status != STATUS_OK) {
        *error = trouble;
        return status;
    }
    return database_run(&node->ports.store->sql, error,
                        "DELETE FROM facts WHERE name = 'ledger_trouble'", "");
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

/* Makes room for one more; false: there is none. */
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

/* Removes the files that were not read for longest until the rest fits. A check that loses a
 * file it uses cannot tell, and is tried again. */
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
            files[count].size = (uint64_t)about.st_blocks * DISK_BLOCK; /* a file may have holes */
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

/* A fault must outlive a loss of power. */
static enum status secure_fault(struct node *node, struct error *error)
{
    if (node->fault && !node->fault_is_safe) {
        TRY(store_secure(node->ports.store, error));
        node->fault_is_safe = true;
    }
    return STATUS_OK;
}

/* ---- the round ------------------------------------------------------------ */

/* A clock that was set back does not delay the next sweep. */
static enum status sweep(struct node *node, struct error *error)
{
    if (node->now_ms < node->swept_ms + SWEEP_MS && node->now_ms >= node->swept_ms) {
        return STATUS_OK;
    }
    node->swept_ms = node->now_ms;
    sweep_cache(node);
    if (node->ports.keep != NULL) {
        TRY(keep_sweep(node->ports.keep, node->ports.store, node->now_ms / 1000, error));
    }
    return store_set_number(node->ports.store, "alive_ms", (int64_t)node->now_ms, error);
}

/* Figures for people: a ledger that does not answer keeps nobody from work. */
static enum status count_money(struct node *node, struct error *error)
{
    struct error trouble;
    enum status status;

    if (node->now_ms < node->money_ms + MONEY_MS && node->now_ms >= node->money_ms) {
        return STATUS_OK;
    }
    node->money_ms = node->now_ms;
    error_init(&trouble);
    status = store_money_follow(&node->money, node->ports.store, node->ports.ledger, &trouble);
    if (status == STATUS_OK || status == STATUS_UNREACHABLE) {
        return STATUS_OK;
    }
    *error = trouble;
    return status;
}

static enum status work(struct node *node, bool *busy, struct error *error)
{
    bool reached = false;

    TRY(reach_ledger(node, &reached, error));
    if (reached) {
        TRY(follow(node, busy, error));
    }
    TRY(node_take_answers(node, busy, error));
    TRY(secure_fault(node, error));
    if (reached) {
        TRY(node_plan(node, error));
        /* A dispute has a turn to lose: it gets a free child before any check does. */
        TRY(node_disputes(node, busy, error));
    }
    TRY(node_start_checks(node, busy, error));
    if (reached) {
        TRY(signing_guard_round(node, busy, error));
        TRY(count_money(node, error));
    }
    return sweep(node, error);
}

enum status node_round(struct node *node, bool *busy, struct error *error)
{
    enum status status;

    *busy = false;
    node->now_ms = node->ports.now_ms(node->ports.clock);
    status = work(node, busy, error);
    return status == STATUS_UNREACHABLE ? STATUS_OK : status;
}
