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
#include "proofs/run/data_paths.h"

enum {
    LOCK_WAITS_MAX = 600, /* so often LOCK_WAIT_US, while another child fetches the same */
    LOCK_WAIT_US = 100000,
    NPY_MAGIC_SIZE = 6,
    FETCH_TIRED = 8,   /* a mirror that failed lately gets this part of the timeout */
    PART_TRIES = 3,    /* of one part at one mirror */
    NPY_LENGTH_AT = 8, /* in a .npy: the length of the rest of its header, in 2 bytes, or in 4 */
    NPY_START_SIZE = 12,
};

#define FETCH_PIECES_SUFFIX ".pieces"

struct fetch {
    const struct check_request *request;
    struct check_result *result;
    struct fetch_http *http;
    bool unreachable;                /* some mirror did not answer */
    bool avoided[CHECK_MIRRORS_MAX]; /* it failed before: ask it last */
};

enum status fetch_open(struct fetch **fetch, const struct check_request *request,
                       struct check_result *result, struct error *error)
{
    struct fetch *made = calloc(1, sizeof(*made));
    enum status status;

    *fetch = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to fetch");
    }
    made->request = request;
    made->result = result;
    result->mirror_count = request->mirror_count;
    TRY_OUT(file_make_folder(request->cache, error, 0700));
    TRY_OUT(fetch_http_open(&made->http, request->bandwidth_max, request->mirror_timeout_s, error));
    *fetch = made;
    return STATUS_OK;
out:
    fetch_close(made);
    return status;
}

void fetch_close(struct fetch *fetch)
{
    if (fetch != NULL) {
        fetch_http_close(fetch->http);
        free(fetch);
    }
}

void fetch_seal(struct fetch *fetch)
{
    fetch_http_close(fetch->http);
    fetch->http = NULL;
}

/* ---- names -------------------------------------------------------------- */

/* Where the content lies in the tree that all mirrors share; by_root: under its root alone. */
static void tree_path(char *text, size_t size, const struct fetch_request *wanted, bool by_root)
{
    char root[HEX_SIZE(DIGEST_SIZE)];
    char job[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(root, wanted->root.bytes, DIGEST_SIZE);
    hex_encode(job, wanted->job.bytes, DIGEST_SIZE);
    if (wanted->kind == FETCH_PIECES) {
        (void)snprintf(text, size, "v1/roots/%s.pieces", root);
        return;
    }
    if ((by_root && wanted->kind != FETCH_TRACE) || wanted->kind == FETCH_DATA) {
        (void)snprintf(text, size, "v1/roots/%s", root);
        return;
    }
    switch (wanted->kind) {
    case FETCH_JOB:
        (void)snprintf(text, size, "v1/jobs/%s/job", job);
        return;
    case FETCH_CHECKPOINT:
        (void)snprintf(text, size, "v1/jobs/%s/checkpoints/%012" PRIu64 ".safetensors", job,
                       wanted->number);
        return;
    case FETCH_TRACE:
        (void)snprintf(text, size, "v1/jobs/%s/trace/%" PRIu64 "/%s", job, wanted->number,
                       wanted->query);
        return;
    case FETCH_DATA:
    case FETCH_PIECES:
        return;
    }
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

static bool begins_npy(const void *start)
{
    return memcmp(start, "\x93NUMPY", NPY_MAGIC_SIZE) == 0;
}

/* A local dataset is known by the end of its name, a fetched one by its first bytes. */
static bool is_npy(const char *path)
{
    char start[NPY_MAGIC_SIZE];
    FILE *file = fopen(path, "rb");
    bool found =
        file != NULL && fread(start, 1, sizeof(start), file) == sizeof(start) && begins_npy(start);

    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

/* ---- judging ------------------------------------------------------------ */

static void note(struct fetch *fetch, uint32_t mirror, bool good, const char *trouble)
{
    struct check_mirror_note *about = &fetch->result->mirrors[mirror];

    about->good += good;
    if (!good) {
        (void)snprintf(about->trouble, sizeof(about->trouble), "%.*s", CHECK_NOTE_MAX - 1, trouble);
    }
}

static void blame(struct fetch *fetch, uint32_t mirror, const char *trouble)
{
    note(fetch, mirror, false, trouble);
    fetch->result->mirrors[mirror].bad++;
}

static bool is_wrong_content(enum status status)
{
    return status == STATUS_BAD_FORMAT || status == STATUS_REFUSED || status == STATUS_OVER_LIMIT;
}

/* Is the candidate the content? STATUS_NOT_FOUND: there is no such file. */
static enum status judge(char *path, const char *candidate, const struct fetch_request *wanted,
                         struct error *error)
{
    struct stat about;

    if (stat(candidate, &about) != 0 || !S_ISREG(about.st_mode)) {
        return STATUS_NOT_FOUND;
    }
    if ((uint64_t)about.st_size > wanted->size_max) {
        return error_set(error, STATUS_OVER_LIMIT, "%s is larger than it can be", candidate);
    }
    (void)snprintf(path, FILE_PATH_MAX, "%s", candidate);
    return wanted->check(wanted->context, candidate, error);
}

/* ---- folders ------------------------------------------------------------ */

/* A bundle of the job notes where its solver had the data. A note is a hint: `judge` decides. */
static enum status data_of_bundle(char *path, const char *folder,
                                  const struct fetch_request *wanted, struct error *error)
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
            status = status == STATUS_OK ? judge(path, candidate, wanted, error) : status;
        }
    }
out:
    bundle_close(bundle);
    return status;
}

static enum status try_bundle(char *path, const char *folder, const struct fetch_request *wanted,
                              struct error *error)
{
    char candidate[FILE_PATH_MAX];
    enum status status = STATUS_NOT_FOUND;

    switch (wanted->kind) {
    case FETCH_JOB:
        if (file_path_join(candidate, sizeof(candidate), error, folder, "job") == STATUS_OK) {
            status = judge(path, candidate, wanted, error);
        }
        return status;
    case FETCH_CHECKPOINT:
        if (snprintf(candidate, sizeof(candidate), "%.3900s/checkpoints/%012" PRIu64 ".safetensors",
                     folder, wanted->number) < (int)sizeof(candidate)) {
            status = judge(path, candidate, wanted, error);
        }
        return status;
    case FETCH_DATA:
        return data_of_bundle(path, folder, wanted, error);
    case FETCH_PIECES:
    case FETCH_TRACE:
        return STATUS_NOT_FOUND;
    }
    return STATUS_NOT_FOUND;
}

static enum status try_folder(char *path, struct fetch *fetch, uint32_t mirror,
                              const struct fetch_request *wanted, struct error *error)
{
    const char *folder = fetch->request->mirrors[mirror];
    char candidate[FILE_PATH_MAX];
    char journal[FILE_PATH_MAX];
    char name[256];

    for (int by_root = 0; by_root < 2; by_root++) {
        enum status status;

        tree_path(name, sizeof(name), wanted, by_root != 0);
        status = file_path_join(candidate, sizeof(candidate), error, folder, name);
        if (status == STATUS_OK) {
            status = judge(path, candidate, wanted, error);
        }
        if (status != STATUS_NOT_FOUND) {
            return status;
        }
    }
    if (file_path_join(journal, sizeof(journal), error, folder, "journal.db") != STATUS_OK ||
        !file_exists(journal)) {
        return STATUS_NOT_FOUND;
    }
    return try_bundle(path, folder, wanted, error);
}

/* ---- endpoints ---------------------------------------------------------- */

/* A mirror that failed lately gets a shorter timeout. Replies about a trace do not: the solver may
 * have to compute the step first. */
static uint32_t timeout_of(const struct fetch *fetch, uint32_t mirror, enum fetch_kind kind)
{
    const struct check_request *request = fetch->request;
    bool tired = fetch->avoided[mirror] ||
                 (uint64_t)mirror + request->mirrors_tired >= request->mirror_count;

    return tired && kind != FETCH_TRACE ? request->mirror_timeout_s / FETCH_TIRED
                                        : request->mirror_timeout_s;
}

/* Who serves replies about a trace shows them to those alone who sign. */
static void show_ask(struct fetch *fetch, const struct fetch_request *wanted)
{
    const char *ask = fetch->request->ask;
    char header[sizeof(ASK_HEADER) + ASK_TEXT_MAX + 2];

    (void)snprintf(header, sizeof(header), ASK_HEADER ": %s", ask);
    fetch_http_set_header(fetch->http,
                          wanted->kind == FETCH_TRACE && ask[0] != '\0' ? header : NULL);
}

/* Each mirror has its own part file, so that bytes of two mirrors never mix. */
static enum status download(struct fetch *fetch, uint32_t mirror, const char *part,
                            const struct fetch_request *wanted, struct error *error)
{
    enum status status = STATUS_NOT_FOUND;
    uint64_t bytes = 0;

    fetch_http_set_timeout(fetch->http, timeout_of(fetch, mirror, wanted->kind));
    show_ask(fetch, wanted);
    for (int by_root = 0; by_root < 2 && status == STATUS_NOT_FOUND; by_root++) {
        char name[256];

        tree_path(name, sizeof(name), wanted, by_root != 0);
        status = fetch_http_get(fetch->http, &bytes, fetch->request->mirrors[mirror], name, part,
                                wanted->size_max, error);
        fetch->result->mirrors[mirror].bytes += bytes;
    }
    return status;
}

static enum status try_endpoint(char *path, struct fetch *fetch, uint32_t mirror,
                                const struct fetch_request *wanted, struct error *error)
{
    const char *kind = wanted->kind == FETCH_PIECES ? FETCH_PIECES_SUFFIX : "";
    char suffix[32];
    char part[FILE_PATH_MAX];
    char whole[FILE_PATH_MAX];
    enum status status;

    if (fetch->http == NULL) {
        return error_set(error, STATUS_UNREACHABLE, "the network is closed to this check by now");
    }
    (void)snprintf(suffix, sizeof(suffix), "%s.%08x.part", kind,
                   fetch_http_mark(fetch->request->mirrors[mirror]));
    TRY(fetch_cache_path(part, fetch, &wanted->root, suffix, error));
    TRY(download(fetch, mirror, part, wanted, error));
    TRY(fetch_cache_path(whole, fetch, &wanted->root,
                         wanted->kind == FETCH_DATA && is_npy(part) ? ".npy" : kind, error));
    if (rename(part, whole) != 0) {
        return error_set_errno(error, "cannot keep %s", whole);
    }
    status = judge(path, whole, wanted, error);
    if (is_wrong_content(status)) {
        (void)unlink(whole);
    }
    return status;
}

/* ---- all of it ---------------------------------------------------------- */

static enum status try_cache(char *path, struct fetch *fetch, const struct fetch_request *wanted,
                             struct error *error)
{
    static const char *const suffixes[] = {"", ".npy"};
    const bool pieces = wanted->kind == FETCH_PIECES;

    for (size_t i = 0; i < (pieces ? 1 : 2); i++) {
        char candidate[FILE_PATH_MAX];
        enum status status = fetch_cache_path(candidate, fetch, &wanted->root,
                                              pieces ? FETCH_PIECES_SUFFIX : suffixes[i], error);

        if (status == STATUS_OK) {
            status = judge(path, candidate, wanted, error);
        }
        if (is_wrong_content(status)) {
            (void)unlink(candidate);
        } else if (status != STATUS_NOT_FOUND) {
            return status;
        }
    }
    return STATUS_NOT_FOUND;
}

/* What a mirror's failure says about it. STATUS_NOT_FOUND: the next mirror is tried; else the
 * failure is our own. */
static enum status judge_mirror(struct fetch *fetch, uint32_t mirror, enum status status,
                                const struct error *why, struct error *error)
{
    if (is_wrong_content(status)) {
        fetch->avoided[mirror] = true;
        blame(fetch, mirror, why->text);
    } else if (status == STATUS_UNREACHABLE) {
        fetch->unreachable = fetch->avoided[mirror] = true;
        note(fetch, mirror, false, why->text);
        fetch->result->mirrors[mirror].silent++;
    } else if (status != STATUS_NOT_FOUND) {
        *error = *why;
        return status;
    }
    return STATUS_NOT_FOUND;
}

/* STATUS_NOT_FOUND: it has not the content; try the next mirror. */
typedef enum status try_function(void *context, struct fetch *fetch, uint32_t mirror,
                                 struct error *error);

struct whole_try {
    char *path;
    const struct fetch_request *wanted;
};

static enum status try_whole(void *context, struct fetch *fetch, uint32_t mirror,
                             struct error *error)
{
    const struct whole_try *this = context;

    return fetch_http_is_url(fetch->request->mirrors[mirror])
               ? try_endpoint(this->path, fetch, mirror, this->wanted, error)
               : try_folder(this->path, fetch, mirror, this->wanted, error);
}

static enum status try_mirror(struct fetch *fetch, uint32_t mirror, try_function *try,
                              void *context, struct error *error)
{
    struct error why;
    enum status status;

    error_init(&why);
    status = try(context, fetch, mirror, &why);
    if (status == STATUS_OK) {
        note(fetch, mirror, true, "");
        return STATUS_OK;
    }
    return judge_mirror(fetch, mirror, status, &why, error);
}

/* Those that failed before come last. */
static enum status try_mirrors(struct fetch *fetch, try_function *try, void *context,
                               struct error *error)
{
    bool avoided[CHECK_MIRRORS_MAX];

    memcpy(avoided, fetch->avoided, sizeof(avoided));
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < fetch->request->mirror_count; i++) {
            if (avoided[i] == (pass == 1)) {
                enum status status = try_mirror(fetch, i, try, context, error);

                if (status != STATUS_NOT_FOUND) {
                    return status;
                }
            }
        }
    }
    return STATUS_NOT_FOUND;
}

static const char *kind_name(enum fetch_kind kind)
{
    static const char *const names[] = {"job", "checkpoint", "data", "list of the data's pieces",
                                        "answer about the trace"};

    return names[kind];
}

/* Waits while another child fetches the same. Then it is in the cache, or that child failed. */
static enum status lock_root(struct file_lock *lock, char *path, struct fetch *fetch,
                             const struct fetch_request *wanted, struct error *error)
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
                           kind_name(wanted->kind))
               : status;
}

static enum status not_given(const struct fetch *fetch, const char *what, const struct digest *root,
                             struct error *error)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, root->bytes, DIGEST_SIZE);
    return error_set(error, fetch->unreachable ? STATUS_UNREACHABLE : STATUS_NOT_FOUND,
                     "no mirror gives the %s of root %.16s...", what, text);
}

enum status fetch_get(char *path, struct fetch *fetch, const struct fetch_request *wanted,
                      struct error *error)
{
    struct file_lock lock = {-1};
    enum status status = try_cache(path, fetch, wanted, error);

    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    fetch->unreachable = false;
    status = lock_root(&lock, path, fetch, wanted, error);
    if (status == STATUS_OK && lock.descriptor >= 0) {
        struct whole_try whole = {path, wanted};

        status = try_mirrors(fetch, try_whole, &whole, error);
        file_lock_close(&lock);
    }
    return status == STATUS_NOT_FOUND
               ? not_given(fetch, kind_name(wanted->kind), &wanted->root, error)
               : status;
}

enum status fetch_here(char *path, struct fetch *fetch, const struct fetch_request *wanted,
                       struct error *error)
{
    enum status status = try_cache(path, fetch, wanted, error);

    for (uint32_t i = 0; status == STATUS_NOT_FOUND && i < fetch->request->mirror_count; i++) {
        if (!fetch_http_is_url(fetch->request->mirrors[i])) {
            struct whole_try whole = {path, wanted};

            status = try_mirror(fetch, i, try_whole, &whole, error);
        }
    }
    return status;
}

/* ---- parts -------------------------------------------------------------- */

/* One request for a part of the file at the mirror. STATUS_REFUSED: it gives no parts. */
static enum status get_part(struct fetch *fetch, uint32_t mirror, const char *name, uint64_t first,
                            uint8_t *bytes, size_t size, struct error *error)
{
    atomic_bool never = false;
    enum status status = STATUS_UNREACHABLE;

    for (int i = 0; i < PART_TRIES && status == STATUS_UNREACHABLE; i++) {
        size_t came;

        status = fetch_http_range(fetch->http, bytes, &came, fetch->request->mirrors[mirror], name,
                                  first, size, &never, error);
        fetch->result->mirrors[mirror].bytes += came;
        if (came < FETCH_TRICKLE) {
            break; /* it gives nothing more: the next mirror */
        }
    }
    return status;
}

/* Where the elements begin in the mirror's file: behind the header of a .npy, if it has one. */
static enum status find_elements(uint64_t *first, struct fetch *fetch, uint32_t mirror,
                                 const char *name, struct error *error)
{
    uint8_t start[NPY_START_SIZE];

    *first = 0;
    TRY(get_part(fetch, mirror, name, 0, start, sizeof(start), error));
    if (begins_npy(start)) {
        const uint8_t *at = start + NPY_LENGTH_AT;

        *first = start[NPY_MAGIC_SIZE] == 1
                     ? 10 + (uint64_t)(at[0] | at[1] << 8)
                     : 12 + ((uint64_t)(at[0] | at[1] << 8 | at[2] << 16) | (uint64_t)at[3] << 24);
    }
    return STATUS_OK;
}

struct parts_try {
    struct fetch_parts *wanted;
    bool gives_whole; /* some mirror gives no parts, perhaps the whole */
};

static enum status take_parts(struct parts_try *this, struct fetch *fetch, uint32_t mirror,
                              uint8_t *bytes, struct error *error)
{
    struct fetch_parts *wanted = this->wanted;
    const struct fetch_request data = {.kind = FETCH_DATA, .root = wanted->root};
    char name[256];
    uint64_t elements;
    enum status status;

    tree_path(name, sizeof(name), &data, true);
    status = find_elements(&elements, fetch, mirror, name, error);
    while (status == STATUS_OK && wanted->done < wanted->count) {
        const struct fetch_part *part = &wanted->of[wanted->done];

        status = get_part(fetch, mirror, name, elements + part->first, bytes, part->size, error);
        if (status == STATUS_OK) {
            TRY(wanted->take(wanted->context, part, bytes, error));
            wanted->done++;
        }
    }
    if (status == STATUS_REFUSED) { /* no lie */
        this->gives_whole = true;
        note(fetch, mirror, false, error->text);
        return STATUS_NOT_FOUND;
    }
    return status;
}

static enum status try_parts(void *context, struct fetch *fetch, uint32_t mirror,
                             struct error *error)
{
    uint8_t *bytes;
    enum status status;

    if (!fetch_http_is_url(fetch->request->mirrors[mirror])) {
        return STATUS_NOT_FOUND;
    }
    if (fetch->http == NULL) {
        return error_set(error, STATUS_UNREACHABLE, "the network is closed to this check by now");
    }
    bytes = malloc(FETCH_PART_MAX);
    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to fetch");
    }
    fetch_http_set_timeout(fetch->http, timeout_of(fetch, mirror, FETCH_DATA));
    fetch_http_set_header(fetch->http, NULL);
    status = take_parts(context, fetch, mirror, bytes, error);
    free(bytes);
    return status;
}

enum status fetch_parts(struct fetch *fetch, struct fetch_parts *wanted, struct error *error)
{
    struct parts_try parts = {.wanted = wanted};
    enum status status;

    wanted->done = 0;
    fetch->unreachable = false;
    if (wanted->count == 0) {
        return STATUS_OK;
    }
    status = try_mirrors(fetch, try_parts, &parts, error);
    if (status == STATUS_NOT_FOUND && parts.gives_whole) {
        return error_set(error, STATUS_REFUSED, "no mirror gives parts of the data");
    }
    return status == STATUS_NOT_FOUND ? not_given(fetch, "rows of the data", &wanted->root, error)
                                      : status;
}
