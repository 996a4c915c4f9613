/* mirror_set.c - see mirror_set.h. */
#include "proofs/mirror/mirror_set.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "proofs/mirror/fetch_http.h"

/* A URL goes into requests, logs and terminals: printable ASCII without blanks. */
static bool is_plain(const char *url)
{
    for (const char *at = url; *at != '\0'; at++) {
        if (*at < '!' || *at > '~') {
            return false;
        }
    }
    return true;
}

enum status mirror_set_add(struct mirror_set *set, const char *url, struct error *error)
{
    if (!fetch_http_is_url(url) || !is_plain(url) || strlen(url) >= MIRROR_SET_URL_MAX) {
        return error_set(error, STATUS_USAGE,
                         "a mirror is http://HOST/ or https://HOST/, at most "
                         "%d characters",
                         MIRROR_SET_URL_MAX - 1);
    }
    for (uint32_t i = 0; i < set->count; i++) {
        if (strcmp(set->mirrors[i].url, url) == 0) {
            return STATUS_OK;
        }
    }
    if (set->count == MIRROR_SET_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "more than %d mirrors", MIRROR_SET_MAX);
    }
    (void)snprintf(set->mirrors[set->count++].url, MIRROR_SET_URL_MAX, "%s", url);
    return STATUS_OK;
}

void mirror_note(struct mirror *mirror, const char *trouble)
{
    (void)snprintf(mirror->trouble, sizeof(mirror->trouble), "%.*s", MIRROR_SET_TROUBLE_MAX - 1,
                   trouble);
}

void mirror_drop(struct mirror *mirror, const char *trouble)
{
    mirror_note(mirror, trouble);
    mirror->dropped = true;
}

static bool is_false_content(enum status status)
{
    return status == STATUS_BAD_FORMAT || status == STATUS_REFUSED || status == STATUS_OVER_LIMIT;
}

/* Each mirror has its own part file, so that bytes of two mirrors never mix. */
static enum status get_from(struct mirror *mirror, struct fetch_http *http,
                            const struct mirror_wanted *wanted, const char *path,
                            struct error *error)
{
    char part[FILE_PATH_MAX];
    uint64_t bytes = 0;
    enum status status;

    if (snprintf(part, sizeof(part), "%s.%08x.part", path, fetch_http_mark(mirror->url)) >=
        (int)sizeof(part)) {
        return error_set(error, STATUS_USAGE, "the path %.80s... is too long", path);
    }
    TRY(fetch_http_get(http, &bytes, mirror->url, wanted->name, part, wanted->size_max, error));
    status = wanted->check(wanted->context, part, error);
    if (status != STATUS_OK) {
        (void)unlink(part);
        return status;
    }
    if (rename(part, path) != 0) {
        return error_set_errno(error, "cannot keep %s", path);
    }
    mirror->bytes += bytes;
    return STATUS_OK;
}

static enum status get_from_any(struct mirror_set *set, struct fetch_http *http,
                                const struct mirror_wanted *wanted, const char *path,
                                struct error *error)
{
    for (uint32_t i = 0; i < set->count; i++) {
        struct mirror *mirror = &set->mirrors[i];
        char trouble[MIRROR_SET_TROUBLE_MAX];
        struct error why;
        enum status status;

        if (mirror->dropped) {
            continue;
        }
        if (stop_requested(set->stop)) {
            return error_set(error, STATUS_STOPPED, "stopped");
        }
        error_init(&why);
        status = get_from(mirror, http, wanted, path, &why);
        if (status == STATUS_OK) {
            return STATUS_OK;
        }
        (void)snprintf(trouble, sizeof(trouble), "%s: %.200s", wanted->what, why.text);
        if (is_false_content(status)) {
            mirror_drop(mirror, trouble);
        } else if (status == STATUS_UNREACHABLE) {
            mirror_note(mirror, why.text);
        } else if (status == STATUS_NOT_FOUND) {
            (void)snprintf(trouble, sizeof(trouble), "has no %s", wanted->what);
            mirror_note(mirror, trouble);
        } else {
            *error = why;
            return status;
        }
    }
    return error_set(error, STATUS_UNREACHABLE, "no mirror gives the %s", wanted->what);
}

enum status mirror_set_get(struct mirror_set *set, const struct mirror_wanted *wanted,
                           const char *path, struct error *error)
{
    struct fetch_http *http;
    struct error passed_over;
    enum status status;

    error_init(&passed_over);
    if (file_exists(path)) {
        status = wanted->check(wanted->context, path, &passed_over);
        if (status == STATUS_OK) {
            return STATUS_OK;
        }
        if (!is_false_content(status)) {
            *error = passed_over;
            return status;
        }
        (void)error_set(error, STATUS_REFUSED, "%s is there already, and is not the %s", path,
                        wanted->what);
        error_advise(error, "name another folder");
        return STATUS_REFUSED;
    }
    TRY(fetch_http_open(&http, 0, set->timeout_s, error));
    fetch_http_set_stop(http, set->stop);
    status = get_from_any(set, http, wanted, path, error);
    fetch_http_close(http);
    return status;
}
