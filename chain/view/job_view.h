/*
 * job_view.h - one job as people look at it: where it stands by the ledger, where its money is, how
 * its training goes, who serves it. A plain value; text, JSON and page are written from it.
 *
 * What the ledger says is proven by its events. The curve is somebody's word, and says whose.
 */
#ifndef CHAIN_VIEW_JOB_VIEW_H
#define CHAIN_VIEW_JOB_VIEW_H

#include "base/sheet/sheet.h"
#include "chain/job/job_wait.h"
#include "proofs/mirror/mirror_set.h"
#include "proofs/run/loss_curve.h"

#define JOB_VIEW_CELLS_MAX 200 /* squares: more segments share one */
#define JOB_VIEW_WORDS_MAX 400
#define JOB_VIEW_ALERT_MAX 200

enum job_view_mark {
    JOB_VIEW_TO_COME,
    JOB_VIEW_COMMITTED,
    JOB_VIEW_FINAL,
    JOB_VIEW_VERIFIED, /* by the panel, now */
    JOB_VIEW_TRAINED,  /* and not on the ledger yet */
    JOB_VIEW_DISPUTED, /* or refused, or lost */
    JOB_VIEW_MARKS,
};

/* Where a job stands by its ledger; zeros until that was read. */
struct job_standing {
    bool read;
    char endpoints[LEDGER_REASON_SIZE]; /* of the ledger: those that are ill */
    struct hash32 key;
    struct currency currency; /* of all amounts */
    struct address client;
    struct address solver; /* zero: none */
    const char *phase;     /* "open" */
    uint64_t now_s;        /* by its clock */
    uint64_t steps;
    uint64_t steps_committed;
    uint32_t segments;
    uint32_t committed;
    uint32_t finalized;
    uint32_t claims; /* open */
    uint32_t marks[JOB_VIEW_MARKS];
    uint8_t cells[JOB_VIEW_CELLS_MAX];
    uint32_t cell_count;
    uint32_t cell_segments; /* of each */
    wei escrow;
    wei earned;        /* by solvers */
    wei pool;          /* for fees */
    wei to_come;       /* for segments that are not final */
    wei missing;       /* burned: the client puts it back to go on */
    wei burned_client; /* in all */
    wei burned_solver;
    wei stake;
    double pace;         /* steps a second, by the times of the commits; 0: not known */
    uint64_t forecast_s; /* when the next segment is final at the earliest; 0: nobody can say */
    bool over;           /* nothing can be due any more */
    char alert[JOB_VIEW_ALERT_MAX]; /* barred, refused, or a keeper that is silent; empty: none */
    bool waits;
    struct job_wait wait;
};

struct job_view {
    struct job_standing standing;
    struct job_card card; /* what its client says of it */

    /* Of the training. */
    uint64_t steps;
    uint64_t trained; /* steps; 0: not here */
    uint64_t tokens;  /* of a step; 0: not known */
    struct loss_curve curve;
    char curve_words[JOB_VIEW_WORDS_MAX]; /* whose word the curve is; empty: there is none */
    double curve_pace;                    /* steps a second, by the same word; 0: not known */

    /* Of mirrors and copies. */
    struct mirror_set mirrors;
    char copies[JOB_VIEW_WORDS_MAX];   /* what is kept here, or served; empty: nothing */
    char keeping[JOB_VIEW_WORDS_MAX];  /* what a keeper did; empty: this is none */
    char download[JOB_VIEW_WORDS_MAX]; /* what comes now; empty: nothing */
    uint64_t served;                   /* requests */
    uint64_t served_bytes;
    char trouble[JOB_VIEW_WORDS_MAX]; /* of the look itself; empty: none */
};

void job_standing_take(struct job_standing *standing, const struct job_record *record,
                       uint64_t now_s);

/* Segments that are trained here and not committed: their squares are marked so. */
void job_standing_mark_trained(struct job_standing *standing, uint32_t trained);

/* "training", or "running" where nothing is trained: what a job does that has no ledger. */
const char *job_view_word(const struct job_view *view);

/* Steps that are done as far as is known: trained here, or committed. */
uint64_t job_view_done(const struct job_view *view);

/* Steps a second, by this run, the ledger or the curve; 0: not known. */
double job_view_pace(const struct job_view *view);

/* Seconds until all steps are done; 0: done, or not known. */
double job_view_left_s(const struct job_view *view);

/* How many segments share one of at most so many squares. */
uint32_t job_view_each(uint32_t segments, uint32_t squares);

/* Segments by state; borrows the cells. */
void job_view_map(struct sheet_squares *squares, const struct job_standing *standing);

/* At most so many squares, and how many segments have each mark; returns the number of squares. A
 * square shows the first of its segments, unless a later one is disputed. */
uint32_t job_view_squares(uint8_t *squares, uint32_t most, uint32_t marks[JOB_VIEW_MARKS],
                          const struct job_record *record, uint64_t now_s);
const char *job_view_mark_word(enum job_view_mark mark); /* "being verified" */

#endif /* CHAIN_VIEW_JOB_VIEW_H */
