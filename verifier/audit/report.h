/*
 * report.h - an audit as one page: verdict, loss, time, and which steps were checked.
 *
 * The page is HTML without scripts and links: it can be mailed, archived and opened years later.
 * What the solver wrote (names, times, figures of steps that were not run again) is marked as its
 * words, escaped and bounded. Only a step that was run again is called checked, and its figures are
 * those of the replay.
 */
#ifndef VERIFIER_AUDIT_REPORT_H
#define VERIFIER_AUDIT_REPORT_H

#include "verifier/audit/audit_views.h"

/* Points of a plot and cells of a map, at most: a page stays small for a job of any length. */
#define REPORT_POINTS_MAX 600

enum report_mark {
    REPORT_NOT_RUN = 0, /* behind the end of the journal */
    REPORT_NOT_CHECKED,
    REPORT_CHECKED,
    REPORT_WRONG,
};

struct report_mean {
    uint64_t count;
    double value;
};

/* One cell: consecutive steps. Times are the mean of one step, in milliseconds. */
struct report_cell {
    uint64_t first;
    uint64_t count;
    uint64_t journaled;
    uint64_t checked;
    bool wrong;
    /* Means of the finite figures, and how many there are in them: */
    struct report_mean loss; /* by the journal, */
    struct report_mean held_out;
    struct report_mean true_loss; /* and as replayed */
    struct report_mean true_held_out;
    double solver_time;
    double replay_time; /* of the checked ones */
};

struct report {
    char title[256];
    struct digest job_id;
    struct audit_result result;
    char evidence[256];  /* path of the evidence file; "": there is none */
    char device[128];    /* what replayed */
    const json_t *about; /* the entry of the signed report, borrowed; NULL: there is none */
    double seconds;      /* duration of the audit */
    uint32_t cell_count;
    uint64_t cell_steps;
    struct report_cell cells[REPORT_POINTS_MAX];
};

/* Prepares the cells for a job of so many steps. */
void report_begin(struct report *report, const char *title, const struct job *job);

/* Enters every step of the journal. */
MUST_CHECK enum status report_journal(struct report *report, struct bundle *bundle,
                                      struct error *error);

/* The audit's on_step: enters a step that was run again. context is the report. */
void report_step(void *context, const struct audit_step *step);

/* Enters the end of the audit. Uses nothing that the view's fault location owns. */
void report_end(struct report *report, const struct audit_view *view);

enum report_mark report_mark(const struct report_cell *cell);

/* Writes one page about all of them, whole or not at all. */
MUST_CHECK enum status report_write(const char *path, const struct report *reports, size_t count,
                                    struct error *error);

#endif /* VERIFIER_AUDIT_REPORT_H */
