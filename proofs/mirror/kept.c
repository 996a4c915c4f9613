/* kept.c - see kept.h. */
#include "proofs/mirror/kept.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "proofs/mirror/depot.h"

enum {
    CONNECTIONS = 256,
    CONNECTIONS_PER_CLIENT = 16,
    IDLE_S = 30,
    FOLDER_MAX = 3800, /* of its path */
    NUMBER_SIZE = 12,  /* digits of a step in a name */
};

struct kept {
    char folder[FILE_PATH_MAX];
    struct depot *depot;
    struct serve *serve; /* NULL: nothing is served */
    struct listen_place place;
    char url[LISTEN_URL_MAX];
};

/* ---- opening and closing --------------------------------------------------------------- */

static enum status open_serve(struct kept *kept, const char *place, struct error *error)
{
    struct serve_options options = {.connections_max = CONNECTIONS,
                                    .connections_per_client = CONNECTIONS_PER_CLIENT,
                                    .idle_s = IDLE_S};
    struct serve_source source;

    TRY(listen_place_read(&options.place, place, error));
    TRY(depot_open(&kept->depot, kept->folder, 0, error)); /* takes in nothing */
    source = depot_source(kept->depot, NULL);
    TRY(serve_open(&kept->serve, &source, &options, error));
    kept->place = options.place;
    kept->place.port = serve_port(kept->serve);
    listen_place_url(kept->url, &kept->place, false);
    return STATUS_OK;
}

enum status kept_open(struct kept **kept, const char *folder, const char *place,
                      struct error *error)
{
    struct kept *made = calloc(1, sizeof(*made));
    enum status status;

    *kept = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to keep states");
    }
    TRY_OUT(strlen(folder) > FOLDER_MAX
                ? error_set(error, STATUS_USAGE, "the path %.80s... is too long", folder)
                : STATUS_OK);
    memcpy(made->folder, folder, strlen(folder) + 1);
    TRY_OUT(file_make_folder(folder, error, 0755));
    TRY_OUT(place == NULL ? STATUS_OK : open_serve(made, place, error));
    *kept = made;
    return STATUS_OK;
out:
    kept_close(made);
    return status;
}

void kept_close(struct kept *kept)
{
    if (kept != NULL) {
        serve_close(kept->serve);
        depot_close(kept->depot);
        free(kept);
    }
}

const char *kept_url(const struct kept *kept)
{
    return kept->url;
}

bool kept_can_be_called(const struct kept *kept)
{
    return kept->serve != NULL && !listen_place_is_any(&kept->place);
}

struct serve_counts kept_counts(struct kept *kept)
{
    return kept->serve == NULL ? (struct serve_counts){0} : serve_counts(kept->serve);
}

/* ---- names ----------------------------------------------------------------------------- */

/* Of a job, or of its states. */
static void folder_of(char path[FILE_PATH_MAX], const struct kept *kept, const struct digest *job,
                      bool states)
{
    char id[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(id, job->bytes, DIGEST_SIZE);
    (void)snprintf(path, FILE_PATH_MAX, "%.3800s/v1/jobs/%s%s", kept->folder, id,
                   states ? "/checkpoints" : "");
}

static void path_of(char path[FILE_PATH_MAX], const struct kept *kept, const struct digest *job,
                    uint64_t step, enum kept_part part)
{
    char folder[FILE_PATH_MAX];

    folder_of(folder, kept, job, part != KEPT_JOB);
    if (part == KEPT_JOB) {
        (void)snprintf(path, FILE_PATH_MAX, "%.4000s/job", folder);
    } else {
        (void)snprintf(path, FILE_PATH_MAX, "%.4000s/%012" PRIu64 ".%s", folder, step,
                       part == KEPT_STATE ? "safetensors" : "pieces");
    }
}

enum status kept_path(char path[FILE_PATH_MAX], const struct kept *kept, const struct digest *job,
                      uint64_t step, enum kept_part part, struct error *error)
{
    char folder[FILE_PATH_MAX];

    folder_of(folder, kept, job, part != KEPT_JOB);
    path_of(path, kept, job, step, part);
    return file_make_folder(folder, error, 0755);
}

bool kept_has(const struct kept *kept, const struct digest *job, uint64_t step)
{
    char state[FILE_PATH_MAX];
    char pieces[FILE_PATH_MAX];

    path_of(state, kept, job, step, KEPT_STATE);
    path_of(pieces, kept, job, step, KEPT_PIECES);
    return file_exists(state) && file_exists(pieces);
}

void kept_drop(const struct kept *kept, const struct digest *job, uint64_t step)
{
    char path[FILE_PATH_MAX];

    path_of(path, kept, job, step, KEPT_STATE);
    (void)unlink(path);
    path_of(path, kept, job, step, KEPT_PIECES);
    (void)unlink(path);
}

/* ---- what is there --------------------------------------------------------------------- */

struct kept_list {
    struct kept_state *states; /* KEPT_STATES_MAX of them; of one job they stand together */
    uint32_t count;
    uint64_t size; /* with the files of the jobs */
};

/* "000000000100.safetensors" */
static bool step_of(uint64_t *step, const char *name)
{
    if (strspn(name, "0123456789") != NUMBER_SIZE || name[NUMBER_SIZE] != '.' ||
        (strcmp(name + NUMBER_SIZE + 1, "safetensors") != 0 &&
         strcmp(name + NUMBER_SIZE + 1, "pieces") != 0)) {
        return false;
    }
    *step = strtoull(name, NULL, 10);
    return true;
}

/* The entry of a state, of which a part may be there already. */
static struct kept_state *entry_of(struct kept_list *list, uint32_t first, uint64_t step)
{
    for (uint32_t i = first; i < list->count; i++) {
        if (list->states[i].step == step) {
            return &list->states[i];
        }
    }
    return list->count < KEPT_STATES_MAX ? &list->states[list->count++] : NULL;
}

static void list_states(struct kept_list *list, const struct kept *kept, const struct digest *job)
{
    uint32_t first = list->count;
    char path[FILE_PATH_MAX];
    struct dirent *entry;
    struct stat about;
    DIR *folder;

    path_of(path, kept, job, 0, KEPT_JOB);
    list->size += stat(path, &about) == 0 ? (uint64_t)about.st_size : 0;
    folder_of(path, kept, job, true);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct kept_state *state;
        uint64_t step;

        if (!step_of(&step, entry->d_name) ||
            fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        state = entry_of(list, first, step);
        if (state == NULL) { /* nobody looks at so many */
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
            continue;
        }
        state->job = *job;
        state->step = step;
        state->size += (uint64_t)about.st_size;
        state->since_s = (uint64_t)about.st_mtime;
        list->size += (uint64_t)about.st_size;
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/* Calls visit for each job that has a folder. */
static void visit_jobs(const struct kept *kept, struct kept_list *list,
                       void (*visit)(struct kept_list *list, const struct kept *kept,
                                     const struct digest *job))
{
    char path[FILE_PATH_MAX];
    struct dirent *entry;
    struct digest job;
    DIR *folder;

    (void)snprintf(path, sizeof(path), "%.3800s/v1/jobs", kept->folder);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strlen(entry->d_name) == 2 * DIGEST_SIZE &&
            hex_decode(job.bytes, DIGEST_SIZE, entry->d_name, 2 * DIGEST_SIZE) == STATUS_OK) {
            visit(list, kept, &job);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/* ---- room ------------------------------------------------------------------------------ */

static int lowest_first(const void *left, const void *right)
{
    const struct kept_state *a = left;
    const struct kept_state *b = right;

    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    if (a->since_s != b->since_s) {
        return a->since_s < b->since_s ? -1 : 1;
    }
    return (a->step > b->step) - (a->step < b->step);
}

/* A job without states: its file is of no use, and its folders are empty. */
static void drop_job(struct kept_list *list, const struct kept *kept, const struct digest *job)
{
    char path[FILE_PATH_MAX];
    struct stat about;

    folder_of(path, kept, job, true);
    if (rmdir(path) != 0 && file_exists(path)) {
        return;
    }
    path_of(path, kept, job, 0, KEPT_JOB);
    if (stat(path, &about) == 0 && unlink(path) == 0) {
        list->size -= (uint64_t)about.st_size;
    }
    folder_of(path, kept, job, false);
    (void)rmdir(path);
}

enum status kept_bound(const struct kept *kept, uint32_t *count, uint64_t *size, uint64_t bytes_max,
                       kept_ranker *rank, void *context, struct error *error)
{
    struct kept_list list = {.states = calloc(KEPT_STATES_MAX, sizeof(*list.states))};
    enum status status = STATUS_OK;
    uint32_t gone = 0;

    if (list.states == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the states that are kept");
    }
    visit_jobs(kept, &list, list_states);
    for (uint32_t i = 0; i < list.count; i++) {
        TRY_OUT(rank(context, &list.states[i], error));
    }
    qsort(list.states, list.count, sizeof(*list.states), lowest_first);
    while (gone < list.count && list.size > bytes_max) {
        const struct kept_state *state = &list.states[gone++];

        kept_drop(kept, &state->job, state->step);
        list.size -= state->size;
    }
    visit_jobs(kept, &list, drop_job);
    *count = list.count - gone;
    *size = list.size;
out:
    free(list.states);
    return status;
}
