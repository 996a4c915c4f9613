/* mirror_set.c - see mirror_set.h. */
#include "proofs/mirror/mirror_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "proofs/mirror/fetch_http.h"

#define TIRED 8 /* a mirror that was silent lately gets this part of the timeout */

/* ---- what is known of a mirror ------------------------------------------- */

void mirror_note(struct mirror *mirror, const char *trouble)
{
    (void)snprintf(mirror->note.trouble, sizeof(mirror->note.trouble), "%.*s",
                   MIRROR_SET_TROUBLE_MAX - 1, trouble);
}

void mirror_drop(struct mirror *mirror, const char *trouble)
{
    mirror_note(mirror, trouble);
    mirror->note.bad++;
    mirror->dropped = true;
}

static void refuse_mirror(struct mirror *mirror, const char *trouble)
{
    mirror_note(mirror, trouble);
    mirror->note.refused = true;
    mirror->dropped = true;
}

void mirror_failed(struct mirror *mirror, const struct fetch_http *http, const char *trouble)
{
    if (fetch_http_refused(http)) {
        refuse_mirror(mirror, trouble);
        return;
    }
    mirror_note(mirror, trouble);
    mirror->note.silent++;
    mirror->tired = true;
}

uint32_t mirror_timeout(const struct mirror_set *set, const struct mirror *mirror)
{
    return mirror->tired ? set->timeout_s / TIRED : set->timeout_s;
}

/* ---- the set ------------------------------------------------------------- */

/* NULL: there is no room. */
static struct mirror *add_mirror(struct mirror_set *set, const char *url, enum http_reach reach)
{
    struct mirror *mirror = &set->mirrors[set->count];

    for (uint32_t i = 0; i < set->count; i++) {
        if (strcmp(set->mirrors[i].url, url) == 0) {
            return &set->mirrors[i];
        }
    }
    if (set->count == MIRROR_SET_MAX) {
        return NULL;
    }
    *mirror = (struct mirror){.reach = reach};
    (void)snprintf(mirror->url, sizeof(mirror->url), "%s", url);
    set->count++;
    return mirror;
}

enum status mirror_set_add(struct mirror_set *set, const char *url, struct error *error)
{
    if (!http_reach_is_url(url) || !http_reach_is_plain(url) || strlen(url) >= MIRROR_SET_URL_MAX) {
        return error_set(error, STATUS_USAGE,
                         "a mirror is http://HOST/ or https://HOST/, at most "
                         "%d characters",
                         MIRROR_SET_URL_MAX - 1);
    }
    return add_mirror(set, url, HTTP_REACH_ANY) != NULL
               ? STATUS_OK
               : error_set(error, STATUS_OVER_LIMIT, "more than %d mirrors", MIRROR_SET_MAX);
}

void mirror_set_add_contact(struct mirror_set *set, const char *url, enum http_reach reach)
{
    const char *bad = http_reach_bad_url(url);
    char shown[MIRROR_SET_URL_MAX];
    char trouble[MIRROR_SET_TROUBLE_MAX];
    struct mirror *mirror;

    (void)snprintf(shown, sizeof(shown), "%.*s", MIRROR_SET_URL_MAX - 1, url);
    for (char *at = shown; *at != '\0'; at++) {
        *at = (char)(*at >= '!' && *at <= '~' ? *at : '?'); /* it goes to logs and terminals */
    }
    mirror = add_mirror(set, shown, reach);
    if (mirror != NULL && bad != NULL) {
        (void)snprintf(trouble, sizeof(trouble), "it %s, and a stranger named it", bad);
        refuse_mirror(mirror, trouble);
    }
}

void mirror_set_join(struct mirror_set *set, const struct mirror_set *more)
{
    for (uint32_t i = 0; i < more->count; i++) {
        struct mirror *mirror = add_mirror(set, more->mirrors[i].url, more->mirrors[i].reach);

        if (mirror != NULL && more->mirrors[i].note.refused) {
            refuse_mirror(mirror, more->mirrors[i].note.trouble);
        }
    }
}

/* ---- names --------------------------------------------------------------- */

const char *mirror_kind_name(enum mirror_kind kind)
{
    static const char *const names[] = {
        [MIRROR_JOB] = "job",
        [MIRROR_STATE] = "checkpoint",
        [MIRROR_STATE_PIECES] = "list of hashes",
        [MIRROR_DATA] = "data",
        [MIRROR_DATA_PIECES] = "list of the data's pieces",
        [MIRROR_TRACE] = "answer about the trace",
    };

    return names[kind];
}

static void name_of_step(char name[MIRROR_NAME_MAX], const char *job, uint64_t number,
                         const char *ending)
{
    (void)snprintf(name, MIRROR_NAME_MAX, "v1/jobs/%s/checkpoints/%012" PRIu64 ".%s", job, number,
                   ending);
}

void mirror_name(char name[MIRROR_NAME_MAX], const struct mirror_wanted *wanted, bool by_root)
{
    char root[HEX_SIZE(DIGEST_SIZE)];
    char job[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(root, wanted->root.bytes, DIGEST_SIZE);
    hex_encode(job, wanted->job.bytes, DIGEST_SIZE);
    /* A job file and a state have a second place, under the root alone. */
    if (by_root && (wanted->kind == MIRROR_JOB || wanted->kind == MIRROR_STATE)) {
        (void)snprintf(name, MIRROR_NAME_MAX, "v1/roots/%s", root);
        return;
    }
    switch (wanted->kind) {
    case MIRROR_JOB:
        (void)snprintf(name, MIRROR_NAME_MAX, "v1/jobs/%s/job", job);
        return;
    case MIRROR_STATE:
        name_of_step(name, job, wanted->number, "safetensors");
        return;
    case MIRROR_STATE_PIECES:
        name_of_step(name, job, wanted->number, "pieces");
        return;
    case MIRROR_DATA:
        (void)snprintf(name, MIRROR_NAME_MAX, "v1/roots/%s", root);
        return;
    case MIRROR_DATA_PIECES:
        (void)snprintf(name, MIRROR_NAME_MAX, "v1/roots/%s.pieces", root);
        return;
    case MIRROR_TRACE:
        (void)snprintf(name, MIRROR_NAME_MAX, "v1/jobs/%s/trace/%" PRIu64 "/%s", job,
                       wanted->number, wanted->query);
        return;
    }
}

/* ---- one mirror ---------------------------------------------------------- */

bool mirror_is_false(enum status status)
{
    return status == STATUS_BAD_FORMAT || status == STATUS_REFUSED || status == STATUS_OVER_LIMIT;
}

static bool is_npy(const char *path)
{
    char start[MIRROR_NPY_MAGIC_SIZE];
    FILE *file = fopen(path, "rb");
    bool found = file != NULL && fread(start, 1, sizeof(start), file) == sizeof(start) &&
                 memcmp(start, MIRROR_NPY_MAGIC, sizeof(start)) == 0;

    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

static enum status download_file(uint64_t *bytes, const struct mirror *mirror,
                                 struct fetch_http *http, const struct mirror_wanted *wanted,
                                 const char *part, struct error *error)
{
    enum status status = STATUS_NOT_FOUND;

    for (int by_root = 0; by_root < 2 && status == STATUS_NOT_FOUND; by_root++) {
        char name[MIRROR_NAME_MAX];

        mirror_name(name, wanted, by_root != 0);
        status = fetch_http_get(http, bytes, mirror->url, name, part, wanted->size_max, error);
    }
    return status;
}

/* Each mirror has its own part file, so that bytes of two mirrors never mix. */
static enum status get_from(char path[FILE_PATH_MAX], struct mirror *mirror,
                            struct fetch_http *http, const struct mirror_wanted *wanted,
                            struct error *error)
{
    char part[FILE_PATH_MAX - sizeof(MIRROR_NPY_ENDING)];
    char named[FILE_PATH_MAX];
    const char *ending = "";
    uint64_t bytes = 0;
    size_t length;
    enum status status;

    if (snprintf(part, sizeof(part), "%s.%08x.part", path, fetch_http_mark(mirror->url)) >=
        (int)sizeof(part)) {
        return error_set(error, STATUS_USAGE, "the path %.80s... is too long", path);
    }
    TRY(download_file(&bytes, mirror, http, wanted, part, error));
    if (wanted->kind == MIRROR_DATA && is_npy(part)) {
        ending = MIRROR_NPY_ENDING; /* by which a reader of data knows the format */
    }
    (void)snprintf(named, sizeof(named), "%s%s", part, ending);
    if (rename(part, named) != 0) {
        return error_set_errno(error, "cannot keep %s", named);
    }
    status = wanted->check(wanted->context, named, error);
    if (status != STATUS_OK) {
        (void)unlink(named);
        return status;
    }
    length = strlen(path);
    (void)snprintf(path + length, FILE_PATH_MAX - length, "%s", ending);
    if (rename(named, path) != 0) {
        return error_set_errno(error, "cannot keep %s", path);
    }
    mirror->note.bytes += bytes;
    mirror->note.good++;
    mirror->tired = false;
    return STATUS_OK;
}

/* STATUS_NOT_FOUND: ask the next. Any other failure is our own. */
static enum status try_mirror(char path[FILE_PATH_MAX], const struct mirror_set *set,
                              struct mirror *mirror, struct fetch_http *http,
                              const struct mirror_wanted *wanted, struct error *error)
{
    const char *what = mirror_kind_name(wanted->kind);
    char trouble[MIRROR_SET_TROUBLE_MAX];
    struct error why;
    enum status status;

    if (stop_requested(set->stop)) {
        return error_set(error, STATUS_STOPPED, "stopped");
    }
    /* Who replies about a trace may have to compute the step first. */
    fetch_http_set_timeout(http, wanted->kind == MIRROR_TRACE ? set->timeout_s
                                                              : mirror_timeout(set, mirror));
    fetch_http_set_reach(http, mirror->reach);
    error_init(&why);
    status = get_from(path, mirror, http, wanted, &why);
    if (status == STATUS_OK) {
        return STATUS_OK;
    }
    if (mirror_is_false(status)) {
        (void)snprintf(trouble, sizeof(trouble), "%s: %.120s", what, why.text);
        if (wanted->kind == MIRROR_TRACE) {
            mirror_note(mirror, trouble); /* only the accused can answer the next query, too */
        } else {
            mirror_drop(mirror, trouble);
        }
    } else if (status == STATUS_UNREACHABLE) {
        mirror_failed(mirror, http, why.text);
    } else if (status == STATUS_NOT_FOUND) {
        (void)snprintf(trouble, sizeof(trouble), "has no %s", what);
        mirror_note(mirror, trouble);
    } else {
        *error = why;
        return status;
    }
    return STATUS_NOT_FOUND;
}

/* ---- all of them --------------------------------------------------------- */

/* Those that were silent before come last. */
static enum status get_from_any(char path[FILE_PATH_MAX], struct mirror_set *set,
                                struct fetch_http *http, const struct mirror_wanted *wanted,
                                struct error *error)
{
    bool tired[MIRROR_SET_MAX] = {false};
    enum status status;

    for (uint32_t i = 0; i < set->count; i++) {
        tired[i] = set->mirrors[i].tired;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < set->count; i++) {
            if (set->mirrors[i].dropped || tired[i] != (pass == 1)) {
                continue;
            }
            status = try_mirror(path, set, &set->mirrors[i], http, wanted, error);
            if (status != STATUS_NOT_FOUND) {
                return status;
            }
        }
    }
    return error_set(error, STATUS_UNREACHABLE, "no mirror gives the %s",
                     mirror_kind_name(wanted->kind));
}

/* STATUS_NOT_FOUND: nothing is at path. */
static enum status look_at(const char *path, const struct mirror_wanted *wanted,
                           struct error *error)
{
    struct error why;
    enum status status;

    if (!file_exists(path)) {
        return STATUS_NOT_FOUND;
    }
    error_init(&why);
    status = wanted->check(wanted->context, path, &why);
    if (mirror_is_false(status)) {
        (void)error_set(error, STATUS_REFUSED, "%s is there already, and is not the %s", path,
                        mirror_kind_name(wanted->kind));
        error_advise(error, "name another folder");
        return STATUS_REFUSED;
    }
    if (status != STATUS_OK) {
        *error = why;
    }
    return status == STATUS_NOT_FOUND ? STATUS_IO : status;
}

enum status mirror_set_get(char path[FILE_PATH_MAX], struct mirror_set *set,
                           const struct mirror_wanted *wanted, struct error *error)
{
    struct fetch_http *http = set->http;
    char npy[FILE_PATH_MAX];
    enum status status = look_at(path, wanted, error);

    if (status == STATUS_NOT_FOUND && wanted->kind == MIRROR_DATA) {
        if (snprintf(npy, sizeof(npy), "%s" MIRROR_NPY_ENDING, path) >= (int)sizeof(npy)) {
            return error_set(error, STATUS_USAGE, "the path %.80s... is too long", path);
        }
        status = look_at(npy, wanted, error);
        if (status == STATUS_OK) {
            (void)snprintf(path, FILE_PATH_MAX, "%s", npy);
        }
    }
    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    if (http == NULL) {
        TRY(fetch_http_open(&http, &set->pace, set->timeout_s, error));
    }
    fetch_http_set_stop(http, set->stop);
    fetch_http_set_header(http, set->header);
    status = get_from_any(path, set, http, wanted, error);
    if (set->http == NULL) {
        fetch_http_close(http);
    }
    return status;
}
