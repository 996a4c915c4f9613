/*
 * mirror_set.h - content by its root from several mirrors of one tree (docs/FORMATS.md, section
 * 11), none of them trusted: what client and verifier fetch with.
 *
 * What a mirror gives is judged by its root. A mirror that gave something false is named and asked
 * for nothing more; one that was silent is asked last, and waited for less long.
 */
#ifndef PROOFS_MIRROR_MIRROR_SET_H
#define PROOFS_MIRROR_MIRROR_SET_H

#include <stdbool.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/http/http_reach.h"
#include "base/io/file.h"
#include "base/io/stop.h"
#include "proofs/mirror/fetch_pace.h"

#define MIRROR_SET_MAX         32
#define MIRROR_SET_URL_MAX     1024
#define MIRROR_SET_TROUBLE_MAX 160
#define MIRROR_NAME_MAX        256 /* of a file in the tree */

/* What came of a mirror. */
struct mirror_note {
    uint32_t good;   /* files of the root that was asked for, or runs of pieces */
    uint32_t bad;    /* replies with other content */
    uint32_t silent; /* requests without a whole reply */
    bool refused;    /* its address is none that we call */
    uint64_t bytes;  /* that were right */
    char trouble[MIRROR_SET_TROUBLE_MAX]; /* the last; empty: none */
};

struct mirror {
    char url[MIRROR_SET_URL_MAX];
    bool dropped; /* it is asked for nothing more */
    bool tired;   /* it was silent lately */
    enum http_reach reach;
    struct mirror_note note;
};

struct fetch_http;

struct mirror_set {
    struct mirror mirrors[MIRROR_SET_MAX];
    uint32_t count;
    uint32_t timeout_s;      /* of silence */
    struct fetch_pace pace;  /* of all transfers together */
    struct stop *stop;       /* NULL: nothing stops it */
    const char *header;      /* "NAME: VALUE" that goes with each request; NULL: none */
    struct fetch_http *http; /* borrowed, for mirror_set_get(); NULL: each call has its own */
};

/* Adds a mirror that the user names, where it is new. STATUS_USAGE: it is no http:// or https://
 * address, or too long; STATUS_OVER_LIMIT: there are MIRROR_SET_MAX already. */
MUST_CHECK enum status mirror_set_add(struct mirror_set *set, const char *url, struct error *error);

/* Adds one that a stranger names, where it is new and there is room. It is asked within that reach;
 * where its form alone is wrong it stands in the set, dropped, and the trouble says why. */
void mirror_set_add_contact(struct mirror_set *set, const char *url, enum http_reach reach);

/* Adds those of another set that are new. */
void mirror_set_join(struct mirror_set *set, const struct mirror_set *more);

/* Notes a trouble of a mirror; that it gave something false, and drops it. */
void mirror_note(struct mirror *mirror, const char *trouble);
void mirror_drop(struct mirror *mirror, const char *trouble);

/* After a request that failed and told nothing false: it was silent, or may not be called. */
void mirror_failed(struct mirror *mirror, const struct fetch_http *http, const char *trouble);

/* How long to wait for it. */
uint32_t mirror_timeout(const struct mirror_set *set, const struct mirror *mirror);

enum mirror_kind {
    MIRROR_JOB,          /* root: the job id */
    MIRROR_STATE,        /* root: of the state; a safetensors file */
    MIRROR_STATE_PIECES, /* the hashes of its pieces (proofs/commit/piece.h) */
    MIRROR_DATA,         /* root: of the data */
    MIRROR_DATA_PIECES,  /* and the hashes of its pieces */
    MIRROR_TRACE,        /* root: the hash that is queried; a solver's reply about a step */
};

/* What is wanted, and how it is judged. */
struct mirror_wanted {
    enum mirror_kind kind;
    struct digest root;
    struct digest job;
    uint64_t number;   /* STATE: the step after it; TRACE: the step */
    const char *query; /* TRACE: as proofs/dispute/trace_query.h writes it */
    uint64_t size_max;
    /* STATUS_BAD_FORMAT, STATUS_REFUSED, STATUS_OVER_LIMIT: it is false. Any other failure is our
     * own and ends the search. */
    enum status (*check)(void *context, const char *path, struct error *error);
    void *context;
};

/* A file passed no check because of what is in it. */
bool mirror_is_false(enum status status);

const char *mirror_kind_name(enum mirror_kind kind); /* "checkpoint" */

/* Where it lies in the tree; by_root: under its root alone, where it has such a place. */
void mirror_name(char name[MIRROR_NAME_MAX], const struct mirror_wanted *wanted, bool by_root);

/*
 * Gets a file into path from the first mirror that gives it; an existing one that passes the check
 * is taken as it is. Data in the format .npy gets that ending, which path has room for. Nothing
 * that failed the check is left at path. STATUS_UNREACHABLE: no mirror gives it; what each said is
 * noted. STATUS_REFUSED: another file is at path.
 */
MUST_CHECK enum status mirror_set_get(char path[FILE_PATH_MAX], struct mirror_set *set,
                                      const struct mirror_wanted *wanted, struct error *error);

/* Does the file begin as a .npy does? */
#define MIRROR_NPY_MAGIC      "\x93NUMPY"
#define MIRROR_NPY_MAGIC_SIZE 6
#define MIRROR_NPY_ENDING     ".npy"

#endif /* PROOFS_MIRROR_MIRROR_SET_H */
