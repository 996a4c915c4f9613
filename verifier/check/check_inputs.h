/*
 * check_inputs.h - fetches what a check needs: job, data, a checkpoint, rows of data. For check.c.
 *
 * Nothing from a mirror is used before it matched its root. A failure that no further try can mend
 * is marked `permanent` in the result.
 */
#ifndef VERIFIER_CHECK_CHECK_INPUTS_H
#define VERIFIER_CHECK_CHECK_INPUTS_H

#include "proofs/run/data_paths.h"
#include "proofs/run/run.h"
#include "verifier/check/data_rows.h"

struct check_visitor; /* check.h */

/* What it hands on (check_resume.h). */
struct check_resume {
    uint32_t place; /* the step that the replay begins with */
    uint32_t step;
    uint32_t slot;   /* that is written next */
    uint64_t due_ns; /* the next state is left behind then, by steady_ns() */
};

/* A check under way. */
struct checker {
    const struct check_request *request;
    const struct check_visitor *visitor;
    void (*seal)(void); /* see check_run() */
    struct check_result *result;
    struct fetch *fetch;
    struct job *job;
    uint32_t
        unknown_rules; /* the job needs this version of the rules, which is not ours; 0: ours */
    struct data_paths data;
    struct data_rows rows; /* of the data that is not there whole */
    bool wants_whole;      /* all data must be there whole */
    uint32_t start;        /* place of the first segment that is replayed */
    struct check_resume resume;
    struct run run;
};

/* The ledger's number of the segment at a place of the request, and its first step in the job. */
uint32_t check_index_at(const struct checker *checker, uint32_t place);
uint64_t check_first_step_at(const struct checker *checker, uint32_t place);

MUST_CHECK enum status check_get_job(struct checker *checker, struct error *error);
/* Of large data that rows are drawn from, it prepares that rows are fetched later. */
MUST_CHECK enum status check_get_data(struct checker *checker, struct error *error);

/* The root of the state that a segment begins with. */
MUST_CHECK enum status check_first_root(struct digest *root, struct checker *checker,
                                        uint32_t place, struct error *error);
/* Puts machine into the state that the segment at place begins with. */
MUST_CHECK enum status check_begin_at(struct checker *checker, struct machine *machine,
                                      uint32_t place, struct error *error);
/* Puts machine into the state of a file. STATUS_BAD_FORMAT: its root is another; the machine then
 * holds what the file gave. */
MUST_CHECK enum status check_load_state(struct machine *machine, const char *path,
                                        const struct digest *root, struct error *error);
/* Loads the nearest checkpoint at or before the segment to check, and sets start. */
MUST_CHECK enum status check_find_start(struct checker *checker, struct error *error);

/* Then fetches the rows that the steps from there on draw. A failure sets wants_whole where all
 * must be begun again with whole data. */
MUST_CHECK enum status check_get_rows(struct checker *checker, struct error *error);

#endif /* VERIFIER_CHECK_CHECK_INPUTS_H */
