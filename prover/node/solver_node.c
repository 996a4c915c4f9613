/* solver_node.c - see solver_node.h. */
#include "prover/node/solver_node.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/strict_json.h"
#include "base/steady.h"
#include "chain/codec/hex_data.h"
#include "prover/node/node_offers.h"
#include "prover/node/node_slots.h"

#define SHELF_MS   5000
#define SERVED_MAX 150 /* bundles */
#define PORT_MAX   8

/* ---- what an earlier life has begun --------------------------------------------------- */

static bool read_key(struct hash32 *key, const char *name)
{
    return strlen(name) == 2 * HASH32_SIZE &&
           hex_read_exactly(key->bytes, HASH32_SIZE, name) == STATUS_OK;
}

static enum status count_end(struct solver_node *node, const json_t *end, struct error *error)
{
    const char *state;

    TRY(strict_json_text(end, error, &state, "state"));
    node->lost += strcmp(state, "lost") == 0;
    node->paid += strcmp(state, "paid") == 0;
    return STATUS_OK;
}

static enum status open_one(struct solver_node *node, const char *name, struct error *error)
{
    const struct policy_pace unknown = {0};
    struct hash32 key;
    json_t *end = NULL;
    enum status status;

    if (!read_key(&key, name)) {
        return STATUS_OK; /* what a death left behind: the next try removes it */
    }
    TRY(held_job_read_end(&end, node->options.terms.jobs, name, error));
    if (end == NULL) {
        return node->held_count < SOLVER_NODE_JOBS_MAX
                   ? node_slots_hold(node, &key, &unknown, error)
                   : error_set(error, STATUS_OVER_LIMIT, "more than %d jobs are begun",
                               SOLVER_NODE_JOBS_MAX);
    }
    status = count_end(node, end, error);
    json_decref(end);
    return status;
}

enum status solver_node_open(struct solver_node *node, struct error *error)
{
    DIR *folder = opendir(node->options.terms.jobs);
    const struct dirent *entry;
    enum status status;

    if (folder == NULL) {
        return error_set_errno(error, "cannot read %s", node->options.terms.jobs);
    }
    status = money_book_open(&node->book, &node->board, ledger_get_own(node->ledger), 1, error);
    while (status == STATUS_OK && (entry = readdir(folder)) != NULL) {
        status = open_one(node, entry->d_name, error);
    }
    (void)closedir(folder);
    return status;
}

static void release_job(struct solver_node *node, uint32_t number)
{
    struct held_job *job = node->held[number];

    node->held[number] = node->held[--node->held_count];
    held_job_close(job);
    free(job);
}

void solver_node_close(struct solver_node *node)
{
    node_slots_stop(node);
    while (node->held_count > 0) {
        release_job(node, node->held_count - 1);
    }
    board_release(&node->board);
    money_book_release(&node->book);
    shelf_release(&node->options.shelf);
    free(node->offers);
    node->offers = NULL;
}

/* ---- serving ------------------------------------------------------------------------------ */

struct served {
    char paths[SERVED_MAX][FILE_PATH_MAX];
    size_t count;
};

static void find_served(struct served *served, const char *jobs)
{
    DIR *folder = opendir(jobs);
    const struct dirent *entry;

    while (folder != NULL && served->count < SERVED_MAX && (entry = readdir(folder)) != NULL) {
        char *path = served->paths[served->count];
        struct hash32 key;

        if (read_key(&key, entry->d_name)) {
            (void)snprintf(path, FILE_PATH_MAX, "%s/%s/run", jobs, entry->d_name);
            served->count += file_exists(path);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/* A child serves: strangers reach no process that has a key. */
static enum status serve_bundles(struct solver_node *node, struct error *error)
{
    struct child_words words;
    struct child_options options = {0};
    struct served *served = NULL;
    char log[FILE_PATH_MAX];
    int how;
    enum status status;

    if (node->options.serve == NULL ||
        (node->serves_all && (node->server == 0 || !spawn_ended(&node->server, &how)))) {
        return STATUS_OK;
    }
    (void)spawn_end(&node->server, SIGTERM, 1000);
    served = calloc(1, sizeof(*served));
    TRY_OUT(served == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory to serve") : STATUS_OK);
    TRY_OUT(file_path_join(log, sizeof(log), error, node->options.folder, "serve.log"));
    find_served(served, node->options.terms.jobs);
    node->serves_all = true;
    if (served->count > 0) {
        child_words_init(&words, "prover", "serve");
        for (size_t i = 0; i < served->count; i++) {
            child_words_add(&words, served->paths[i]);
        }
        child_words_option(&words, "serve", node->options.serve);
        options.log = log;
        status = child_start(&node->server, &words, &options, error);
    }
out:
    free(served);
    return status;
}

/* ---- a round ------------------------------------------------------------------------------- */

static enum status read_ledger(struct solver_node *node, struct error *error)
{
    TRY(money_book_read(&node->book, &node->money, &node->board, node->ledger, error));
    return ledger_get_clock(node->ledger, &node->clock, error);
}

/* What keeps us from the ledger now is no failure. */
static enum status follow_ledger(struct solver_node *node, struct error *error)
{
    enum status status = read_ledger(node, error);

    node->trouble[0] = '\0';
    if (status == STATUS_OK || status == STATUS_NO_MEMORY || status == STATUS_GONE) {
        return status;
    }
    (void)snprintf(node->trouble, sizeof(node->trouble), "%.390s", error->text);
    error_init(error);
    return STATUS_OK;
}

static enum status end_job(struct solver_node *node, uint32_t number, struct error *error)
{
    struct held_job *job = node->held[number];
    bool paid = job->state == HELD_PAID;
    char key[HEX_DATA_SIZE(HASH32_SIZE)];

    TRY(held_job_end(job, error));
    hex_write(key, job->key.bytes, HASH32_SIZE, true);
    if (paid) {
        log_info(node->log, "solver", "job %.14s is paid", key);
        node->paid++;
    } else if (job->was_ours) {
        log_warn(node->log, "solver", "job %.14s is lost: %s", key, job->trouble);
        node->lost++;
    } else {
        log_info(node->log, "solver", "job %.14s was not taken: %s", key, job->trouble);
        node_offers_put_off(node, &job->key, 60000, job->trouble);
        node->serves_all = false;
    }
    release_job(node, number);
    return STATUS_OK;
}

static enum status go_round_jobs(struct solver_node *node, struct error *error)
{
    for (uint32_t i = node->held_count; i-- > 0;) {
        struct held_job *job = node->held[i];
        char before[SOLVER_VIEW_TROUBLE_MAX];

        memcpy(before, job->trouble, sizeof(before));
        TRY(held_job_round(job, error));
        if (strcmp(before, job->trouble) != 0 && job->trouble[0] != '\0') {
            log_warn(node->log, "solver", "%s: %s", job->folder, job->trouble);
        }
        if (job->state >= HELD_PAID) {
            TRY(end_job(node, i, error));
        }
    }
    return STATUS_OK;
}

enum status solver_node_round(struct solver_node *node, struct error *error)
{
    uint64_t now_ms = steady_ms();

    if (node->shelf_ms == 0 || now_ms >= node->shelf_ms + SHELF_MS) {
        TRY(shelf_look(&node->options.shelf, error));
        node->shelf_ms = now_ms;
    }
    TRY(follow_ledger(node, error));
    TRY(go_round_jobs(node, error));
    TRY(node_slots_round(node, error));
    TRY(serve_bundles(node, error));
    if (node->held_count > 0 && node->options.terms.contact != NULL) {
        own_address_ask(&node->own, node->options.terms.contact, bundle_job(node->held[0]->bundle),
                        steady_ms(), node->log);
    }
    return STATUS_OK;
}
