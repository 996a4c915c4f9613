/* fetch.c - see fetch.h. */
#include "verifier/check/fetch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "proofs/mirror/fetch_http.h"
#include "proofs/mirror/piece_fetch.h"
#include "proofs/run/data_paths.h"

enum {
    LOCK_WAITS_MAX = 600, /* so often LOCK_WAIT_US, while another child fetches the same */
    LOCK_WAIT_US = 100000,
};

struct fetch {
    const struct check_request *request;
    struct check_result *result;
    struct mirror_set mirrors; /* in the order of the request; a folder is never asked there */
    char header[sizeof(ASK_HEADER) + ASK_TEXT_MAX + 2];
    bool sealed;
};

enum status fetch_open(struct fetch **fetch, const struct check_request *request,
                       struct check_result *result, struct error *error)
{
    struct fetch *made = calloc(1, sizeof(*made));
    struct mirror_set *set;
    enum status status;

    *fetch = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to fetch");
    }
    made->request = request;
    made->result = result;
    set = &made->mirrors;
    set->timeout_s = request->mirror_timeout_s;
    set->pace.bytes_max = request->bandwidth_max;
    set->count = result->mirror_count = request->mirror_count;
    for (uint32_t i = 0; i < set->count; i++) {
        struct mirror *mirror = &set->mirrors[i];
        bool stranger = (request->strangers >> i & 1) != 0;

        mirror->dropped = !http_reach_is_url(request->mirrors[i]);
        mirror->tired = i + request->mirrors_tired >= set->count;
        mirror->reach = stranger ? (enum http_reach)request->contact_reach : HTTP_REACH_ANY;
        (void)snprintf(mirror->url, sizeof(mirror->url), "%.*s", MIRROR_SET_URL_MAX - 1,
                       request->mirrors[i]);
    }
    TRY_OUT(file_make_folder(request->cache, error, 0700));
    TRY_OUT(fetch_http_open(&set->http, &set->pace, set->timeout_s, error));
    *fetch = made;
    return STATUS_OK;
out:
    fetch_close(made);
    return status;
}

void fetch_close(struct fetch *fetch)
{
    if (fetch != NULL) {
        fetch_http_close(fetch->mirrors.http);
        free(fetch);
    }
}

void fetch_seal(struct fetch *fetch)
{
    fetch->sealed = true;
}

enum status fetch_cache_path(char *path, const struct fetch *fetch, const struct digest *root,
                             const char *ending, struct error *error)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, root->bytes, DIGEST_SIZE);
    return snprintf(path, FILE_PATH_MAX, "%s/%s%s", fetch->request->cache, text, ending) <
                   FILE_PATH_MAX
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "the path of the cache is too long");
}

/* Is the candidate the content? STATUS_NOT_FOUND: there is no such file. */
static enum status judge_candidate(char *path, const char *candidate,
                                   const struct mirror_wanted *wanted, struct error *error)
{
    struct stat about;

    if (stat(candidate, &about) != 0 || !S_ISREG(about.st_mode)) {
        return STATUS_NOT_FOUND;
    }
    if ((uint64_t)about.st_size > wanted->size_max) {
        return error_set(error, STATUS_OVER_LIMIT, "%s is larger than it can be", candidate);
    }
    if (path != candidate) {
        (void)snprintf(path, FILE_PATH_MAX, "%s", candidate);
    }
    return wanted->check(wanted->context, path, error);
}

/* ---- folders ------------------------------------------------------------ */

/* A bundle of the job notes where its solver had the data. A note is a hint: `judge` decides. */
static enum status data_of_bundle(char *path, const char *folder,
                                  const struct mirror_wanted *wanted, struct error *error)
{
    struct bundle *bundle = NULL;
    char candidate[FILE_PATH_MAX];
    enum status status;

    TRY_OUT(bundle_open(&bundle, folder, BUNDLE_READ, error));
    status = STATUS_NOT_FOUND;
    if (!digest_equal(&bundle_job(bundle)->id, &wanted->job)) {
        goto out;
    }
    for (uint32_t i = 0; i < bundle_job(bundle)->data_count && status == STATUS_NOT_FOUND; i++) {
        char name[DATA_PATHS_NOTE_SIZE];

        data_paths_note(name, i);
        if (digest_equal(&bundle_job(bundle)->data_roots[i], &wanted->root)) {
            status = bundle_note(candidate, bundle, name, error);
            status = status == STATUS_OK ? judge_candidate(path, candidate, wanted, error) : status;
        }
    }
out:
    bundle_close(bundle);
    return status;
}

/* reads_journal: its notes say where data lies. */
static enum status try_bundle(char *path, const char *folder, const struct mirror_wanted *wanted,
                              bool reads_journal, struct error *error)
{
    char candidate[FILE_PATH_MAX];
    enum status status = STATUS_NOT_FOUND;

    switch (wanted->kind) {
    case MIRROR_JOB:
        if (file_path_join(candidate, sizeof(candidate), error, folder, "job") == STATUS_OK) {
            status = judge_candidate(path, candidate, wanted, error);
        }
        return status;
    case MIRROR_STATE:
        if (snprintf(candidate, sizeof(candidate), "%.3900s/checkpoints/%012" PRIu64 ".safetensors",
                     folder, wanted->number) < (int)sizeof(candidate)) {
            status = judge_candidate(path, candidate, wanted, error);
        }
        return status;
    case MIRROR_DATA:
        return reads_journal ? data_of_bundle(path, folder, wanted, error) : STATUS_NOT_FOUND;
    case MIRROR_STATE_PIECES:
    case MIRROR_DATA_PIECES:
    case MIRROR_TRACE:
        return STATUS_NOT_FOUND;
    }
    return STATUS_NOT_FOUND;
}

static enum status try_folder(char *path, const char *folder, const struct mirror_wanted *wanted,
                              bool reads_journal, struct error *error)
{
    char candidate[FILE_PATH_MAX];
    char journal[FILE_PATH_MAX];
    char name[MIRROR_NAME_MAX];

    for (int by_root = 0; by_root < 2; by_root++) {
        enum status status;

        mirror_name(name, wanted, by_root != 0);
        status = file_path_join(candidate, sizeof(candidate), error, folder, name);
        if (status == STATUS_OK) {
            status = judge_candidate(path, candidate, wanted, error);
        }
        if (status != STATUS_NOT_FOUND) {
            return status;
        }
    }
    if (file_path_join(journal, sizeof(journal), error, folder, "journal.db") != STATUS_OK ||
        !file_exists(journal)) {
        return STATUS_NOT_FOUND;
    }
    return try_bundle(path, folder, wanted, reads_journal, error);
}

/* STATUS_NOT_FOUND: none has it. A folder is of this machine: what is false in it is noted, and the
 * rest of it still counts. */
static enum status try_folders(char *path, struct fetch *fetch, const struct mirror_wanted *wanted,
                               struct error *error)
{
    enum status status = STATUS_NOT_FOUND;

    for (uint32_t i = 0; status == STATUS_NOT_FOUND && i < fetch->request->mirror_count; i++) {
        struct mirror *mirror = &fetch->mirrors.mirrors[i];
        struct error why;

        if (http_reach_is_url(fetch->request->mirrors[i])) {
            continue;
        }
        error_init(&why);
        status =
            try_folder(path, fetch->request->mirrors[i], wanted, !fetch->request->journal, &why);
        if (mirror_is_false(status)) {
            mirror_drop(mirror, why.text);
            status = STATUS_NOT_FOUND;
        } else if (status == STATUS_OK) {
            mirror->note.good++;
        } else if (status != STATUS_NOT_FOUND) {
            *error = why;
        }
    }
    return status;
}

/* ---- the cache ---------------------------------------------------------- */

static const char *ending_of(const struct mirror_wanted *wanted)
{
    return wanted->kind == MIRROR_DATA_PIECES ? ".pieces" : "";
}

static enum status try_cache(char *path, struct fetch *fetch, const struct mirror_wanted *wanted,
                             struct error *error)
{
    const char *const endings[] = {ending_of(wanted), MIRROR_NPY_ENDING};

    for (size_t i = 0; i < (wanted->kind == MIRROR_DATA ? 2 : 1); i++) {
        char candidate[FILE_PATH_MAX];
        enum status status = fetch_cache_path(candidate, fetch, &wanted->root, endings[i], error);

        if (status == STATUS_OK) {
            status = judge_candidate(path, candidate, wanted, error);
        }
        if (mirror_is_false(status)) {
            (void)unlink(candidate);
        } else if (status != STATUS_NOT_FOUND) {
            return status;
        }
    }
    return STATUS_NOT_FOUND;
}

/* Waits while another child fetches the same. Then it is in the cache, or that child failed. */
static enum status lock_root(struct file_lock *lock, char *path, struct fetch *fetch,
                             const struct mirror_wanted *wanted, struct error *error)
{
    char lock_path[FILE_PATH_MAX];
    enum status status = fetch_cache_path(lock_path, fetch, &wanted->root, ".lock", error);

    for (int i = 0; i < LOCK_WAITS_MAX && status == STATUS_OK; i++) {
        status = file_lock_open(lock, error, lock_path, "wait until it is done");
        if (status != STATUS_REFUSED) {
            return status;
        }
        (void)usleep(LOCK_WAIT_US);
        status = try_cache(path, fetch, wanted, error);
        if (status != STATUS_NOT_FOUND) {
            return status;
        }
        status = STATUS_OK;
    }
    return status == STATUS_OK
               ? error_set(error, STATUS_UNREACHABLE, "another check is still fetching the %s",
                           mirror_kind_name(wanted->kind))
               : status;
}

/* ---- endpoints ---------------------------------------------------------- */

/* Replies of mirrors that were silent so far. */
static uint32_t silences_of(const struct fetch *fetch)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < fetch->mirrors.count; i++) {
        count += fetch->mirrors.mirrors[i].note.silent;
    }
    return count;
}

/* Tells the result what is known of the mirrors now, and what a failure of them all means. */
static enum status ended_fetch(struct fetch *fetch, enum status status, uint32_t silent,
                               const char *what, const struct digest *root, struct error *error)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    for (uint32_t i = 0; i < fetch->mirrors.count; i++) {
        fetch->result->mirrors[i] = fetch->mirrors.mirrors[i].note;
    }
    if (status != STATUS_NOT_FOUND && status != STATUS_UNREACHABLE) {
        return status;
    }
    hex_encode(text, root->bytes, DIGEST_SIZE);
    return error_set(error, silences_of(fetch) > silent ? STATUS_UNREACHABLE : STATUS_NOT_FOUND,
                     "no mirror gives the %s of root %.16s...", what, text);
}

/* Who serves replies about a trace shows them to those alone who sign. */
static void show_ask(struct fetch *fetch, const struct mirror_wanted *wanted)
{
    const char *ask = fetch->request->ask;

    (void)snprintf(fetch->header, sizeof(fetch->header), ASK_HEADER ": %s", ask);
    fetch->mirrors.header = wanted->kind == MIRROR_TRACE && ask[0] != '\0' ? fetch->header : NULL;
}

/* A state comes in pieces from all mirrors at once. STATUS_NOT_FOUND: none of them lists its
 * pieces; it may come whole from one that has it under its root. */
static enum status try_pieces(char *path, struct fetch *fetch, const struct mirror_wanted *wanted,
                              const struct job *job, struct error *error)
{
    struct piece_fetch pieces = {.mirrors = &fetch->mirrors,
                                 .job = job,
                                 .step = wanted->number,
                                 .root = wanted->root,
                                 .whole = true,
                                 .judged = true};
    enum status status;

    TRY(fetch_cache_path(path, fetch, &wanted->root, "", error));
    status = piece_fetch_run(&pieces, path, error);
    if (status == STATUS_OK) {
        status = judge_candidate(path, path, wanted, error);
        if (mirror_is_false(status)) { /* every piece was right when it came */
            (void)unlink(path);
            status = error_set(error, STATUS_IO, "the disk gives back other bytes of %s", path);
        }
        return status;
    }
    return pieces.listed && !pieces.gives_whole ? status : STATUS_NOT_FOUND;
}

static enum status try_endpoints(char *path, struct fetch *fetch,
                                 const struct mirror_wanted *wanted, const struct job *job,
                                 struct error *error)
{
    enum status status = STATUS_NOT_FOUND;

    if (fetch->sealed) {
        return error_set(error, STATUS_UNREACHABLE, "the network is closed to this check by now");
    }
    if (wanted->kind == MIRROR_STATE) {
        status = try_pieces(path, fetch, wanted, job, error);
    }
    if (status == STATUS_NOT_FOUND) {
        show_ask(fetch, wanted);
        TRY(fetch_cache_path(path, fetch, &wanted->root, ending_of(wanted), error));
        status = mirror_set_get(path, &fetch->mirrors, wanted, error);
        fetch->mirrors.header = NULL;
    }
    return status;
}

static bool has_endpoints(const struct fetch *fetch)
{
    for (uint32_t i = 0; i < fetch->mirrors.count; i++) {
        if (http_reach_is_url(fetch->mirrors.mirrors[i].url)) {
            return true;
        }
    }
    return false;
}

/* ---- all of it ---------------------------------------------------------- */

enum status fetch_get(char *path, struct fetch *fetch, const struct mirror_wanted *wanted,
                      const struct job *job, struct error *error)
{
    struct file_lock lock = {-1};
    uint32_t silent = silences_of(fetch);
    enum status status = fetch_here(path, fetch, wanted, error);

    if (status != STATUS_NOT_FOUND || !has_endpoints(fetch)) {
        return ended_fetch(fetch, status, silent, mirror_kind_name(wanted->kind), &wanted->root,
                           error);
    }
    status = lock_root(&lock, path, fetch, wanted, error);
    if (status == STATUS_OK && lock.descriptor >= 0) {
        status = try_endpoints(path, fetch, wanted, job, error);
        file_lock_close(&lock);
    }
    return ended_fetch(fetch, status, silent, mirror_kind_name(wanted->kind), &wanted->root, error);
}

enum status fetch_here(char *path, struct fetch *fetch, const struct mirror_wanted *wanted,
                       struct error *error)
{
    enum status status = try_cache(path, fetch, wanted, error);

    return status == STATUS_NOT_FOUND ? try_folders(path, fetch, wanted, error) : status;
}

enum status fetch_parts(struct fetch *fetch, struct piece_crew *crew, const struct digest *root,
                        struct error *error)
{
    const struct mirror_wanted data = {.kind = MIRROR_DATA, .root = *root};
    uint32_t silent = silences_of(fetch);
    enum status status;

    crew->mirrors = &fetch->mirrors;
    crew->is_data = true;
    mirror_name(crew->name, &data, true);
    status = fetch->sealed ? STATUS_UNREACHABLE : piece_crew_run(crew, error);
    if (status == STATUS_UNREACHABLE && crew->gives_whole) {
        status = error_set(error, STATUS_REFUSED, "no mirror gives parts of the data");
    }
    return ended_fetch(fetch, status, silent, "rows of the data", root, error);
}
