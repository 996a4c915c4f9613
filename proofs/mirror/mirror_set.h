/*
 * mirror_set.h - several mirrors of one tree (docs/FORMATS.md, section 10), none of them trusted.
 *
 * What a mirror gives is judged by its root. A mirror that gave something false is named and asked
 * for nothing more.
 */
#ifndef PROOFS_MIRROR_MIRROR_SET_H
#define PROOFS_MIRROR_MIRROR_SET_H

#include <stdbool.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/io/stop.h"

#define MIRROR_SET_MAX         16
#define MIRROR_SET_URL_MAX     1024
#define MIRROR_SET_TROUBLE_MAX 256

struct mirror {
    char url[MIRROR_SET_URL_MAX];
    uint64_t bytes; /* of it that were right */
    bool dropped;
    char trouble[MIRROR_SET_TROUBLE_MAX]; /* the last; empty: none */
};

struct mirror_set {
    struct mirror mirrors[MIRROR_SET_MAX];
    uint32_t count;
    uint32_t timeout_s; /* of silence */
    struct stop *stop;  /* NULL: nothing stops it */
};

/* Adds a mirror that is new. STATUS_USAGE: it is no http:// or https:// address, or too long;
 * STATUS_OVER_LIMIT: there are MIRROR_SET_MAX already. */
MUST_CHECK enum status mirror_set_add(struct mirror_set *set, const char *url, struct error *error);

/* Notes a trouble of a mirror; and drops it. */
void mirror_note(struct mirror *mirror, const char *trouble);
void mirror_drop(struct mirror *mirror, const char *trouble);

/* What is wanted, and how it is judged. */
struct mirror_wanted {
    const char *name; /* in the tree: "v1/roots/..." */
    const char *what; /* "job" */
    uint64_t size_max;
    /* STATUS_BAD_FORMAT, STATUS_REFUSED, STATUS_OVER_LIMIT: it is false. Any other failure is our
     * own and ends the search. */
    enum status (*check)(void *context, const char *path, struct error *error);
    void *context;
};

/*
 * Gets a file into path from the first mirror that gives it; an existing one that passes the check
 * is taken as it is. Nothing that failed the check is left at path. STATUS_UNREACHABLE: no mirror
 * gives it; what each said is noted. STATUS_REFUSED: another file is at path.
 */
MUST_CHECK enum status mirror_set_get(struct mirror_set *set, const struct mirror_wanted *wanted,
                                      const char *path, struct error *error);

#endif /* PROOFS_MIRROR_MIRROR_SET_H */
