/* accused.c - see accused.h. */
#include "verifier/audit/accused.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proofs/commit/commit.h"
#include "proofs/commit/state_root.h"

enum {
    MIRROR_TIMEOUT_S = 20,
};

/* ---- opening and closing ------------------------------------------------- */

enum status accused_cache_open(struct accused_cache *cache, struct error *error)
{
    const char *folder = getenv("TMPDIR");

    if (snprintf(cache->path, sizeof(cache->path), "%s/lockstep-audit-XXXXXX",
                 folder == NULL || folder[0] == '\0' ? "/tmp" : folder) >=
        (int)sizeof(cache->path)) {
        cache->path[0] = '\0';
        return error_set(error, STATUS_USAGE, "TMPDIR is too long a path");
    }
    if (mkdtemp(cache->path) == NULL) {
        enum status status = error_set_errno(error, "cannot make %s", cache->path);

        cache->path[0] = '\0';
        return status;
    }
    return STATUS_OK;
}

/* The cache is flat: fetch.c keeps each content under its root's name. */
void accused_cache_close(struct accused_cache *cache)
{
    DIR *folder = cache->path[0] == '\0' ? NULL : opendir(cache->path);
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
        (void)rmdir(cache->path);
    }
}

static void add_mirror(struct check_request *request, const char *mirror)
{
    (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX, "%s", mirror);
}

enum status accused_open(struct accused *accused, struct bundle *bundle, uint64_t step,
                         const char *cache, const char *const *sources, size_t source_count,
                         struct error *error)
{
    struct check_request *request = calloc(1, sizeof(*request));
    enum status status = STATUS_OK;

    *accused = (struct accused){.bundle = bundle, .step = step, .request = request};
    accused->notes = calloc(1, sizeof(*accused->notes));
    if (request == NULL || accused->notes == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory to look for a trace");
    } else if (source_count > ACCUSED_SOURCES_MAX) {
        status = error_set(error, STATUS_USAGE, "at most %d places for a trace can be named",
                           ACCUSED_SOURCES_MAX);
    }
    if (status == STATUS_OK) {
        request->mirror_timeout_s = MIRROR_TIMEOUT_S;
        (void)snprintf(request->cache, sizeof(request->cache), "%s", cache);
        for (size_t i = 0; i < source_count; i++) {
            add_mirror(request, sources[i]);
        }
        add_mirror(request, bundle_path(bundle));
        status = fetch_open(&accused->fetch, request, accused->notes, error);
    }
    if (status != STATUS_OK) {
        accused_close(accused);
    }
    return status;
}

void accused_close(struct accused *accused)
{
    fetch_close(accused->fetch);
    free(accused->after);
    free(accused->notes);
    free(accused->request);
    memset(accused, 0, sizeof(*accused));
}

/* ---- the state after the step -------------------------------------------- */

/* Loads the very state; STATUS_NOT_FOUND: an older one is the newest that there is. */
static enum status load_state(const struct accused *accused, struct run *run, struct error *error)
{
    uint64_t at = 0;
    enum status status =
        bundle_restore(&at, accused->bundle, run->machine, accused->step + 1, error);

    return status == STATUS_OK && at != accused->step + 1
               ? error_set(error, STATUS_NOT_FOUND, "the bundle has no checkpoint of that state")
               : status;
}

static enum status take_root(void *context, const struct tensor *tensor, const void *bytes,
                             struct error *error)
{
    (void)error;
    commit_tensor_root(context, COMMIT_TENSOR, tensor, bytes, 0);
    return STATUS_OK;
}

enum status accused_find_state(struct accused *accused, struct run *run, struct error *error)
{
    const struct tape *tape = run->job->tape;
    struct digest *roots;
    enum status status = load_state(accused, run, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    roots = calloc((size_t)tape->state_count * 2 + 1, sizeof(*roots));
    if (roots == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of states");
    }
    for (uint32_t i = 0; i < tape->state_count && status == STATUS_OK; i++) {
        status =
            state_root_visit(run->machine, tape->states[i].before, take_root, &roots[i], error);
        merkle_leaf_hash(&roots[tape->state_count + i], roots[i].bytes, DIGEST_SIZE);
    }
    if (status != STATUS_OK) {
        free(roots);
        return status;
    }
    accused->after = roots;
    return STATUS_OK;
}

enum status accused_read_state(void *bytes, const struct accused *accused, struct run *run,
                               uint32_t state, struct error *error)
{
    enum status status = load_state(accused, run, error);

    return status == STATUS_OK
               ? run->machine->backend->read(run->machine, run->job->tape->states[state].before,
                                             bytes, error)
               : status;
}
