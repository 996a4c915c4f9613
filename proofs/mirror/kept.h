/*
 * kept.h - a folder in the layout of the published tree (docs/FORMATS.md, section 11) in which
 * somebody keeps end states of segments, so that a model does not vanish with its solver: where
 * each lies, what goes when room is short, and a server of them.
 *
 * A state's list of hashes appears before the state and goes after it, so a caller that finds a
 * state can have its list. Nothing here judges a state: who puts one there has checked it.
 */
#ifndef PROOFS_MIRROR_KEPT_H
#define PROOFS_MIRROR_KEPT_H

#include "base/digest.h"
#include "base/io/file.h"
#include "proofs/mirror/serve.h"

#define KEPT_STATES_MAX 4096 /* that are looked at; no more are kept */

struct kept; /* opaque */

/* Makes the folder. place: ADDRESS:PORT; NULL: nothing is served. */
MUST_CHECK enum status kept_open(struct kept **kept, const char *folder, const char *place,
                                 struct error *error);
void kept_close(struct kept *kept); /* NULL is fine */

const char *kept_url(const struct kept *kept);    /* of the server; "": nothing is served */
bool kept_can_be_called(const struct kept *kept); /* is that the address of one machine? */
struct serve_counts kept_counts(struct kept *kept);

enum kept_part {
    KEPT_JOB,    /* the job file; no step */
    KEPT_STATE,  /* the checkpoint before a step, */
    KEPT_PIECES, /* and the hashes of its pieces */
};

/* Where it lies. Makes the folders that it needs. */
MUST_CHECK enum status kept_path(char path[FILE_PATH_MAX], const struct kept *kept,
                                 const struct digest *job, uint64_t step, enum kept_part part,
                                 struct error *error);

/* Is a state there, with its list? */
bool kept_has(const struct kept *kept, const struct digest *job, uint64_t step);

void kept_drop(const struct kept *kept, const struct digest *job, uint64_t step);

/* A state that is kept, or a list whose state is not there. */
struct kept_state {
    struct digest job;
    uint64_t step;
    uint64_t size;    /* with its list */
    uint64_t since_s; /* 1970 */
    uint32_t rank;    /* 0 goes first */
};

/* How much a state is worth to its keeper. */
typedef enum status kept_ranker(void *context, struct kept_state *state, struct error *error);

/*
 * Removes states, those of the lowest rank first and the oldest of them, until at most bytes_max
 * are left; and jobs of which no state is left. *count and *size: what is left.
 */
MUST_CHECK enum status kept_bound(const struct kept *kept, uint32_t *count, uint64_t *size,
                                  uint64_t bytes_max, kept_ranker *rank, void *context,
                                  struct error *error);

#endif /* PROOFS_MIRROR_KEPT_H */
