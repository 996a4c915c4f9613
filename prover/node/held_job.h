/*
 * held_job.h - a job that a solver's node has taken: its folder, its bundle, and its moves on the
 * ledger.
 *
 *     JOBS/KEY/run         the bundle; a child trains it
 *     JOBS/KEY/train.log   what the child said
 *     JOBS/KEY/end         once nothing more is to be done: how it ended
 *
 * The folder appears whole, before the stake: no matter what dies then, the node finds what it has
 * begun.
 */
#ifndef PROVER_NODE_HELD_JOB_H
#define PROVER_NODE_HELD_JOB_H

#include "chain/view/job_view.h"
#include "prover/node/shelf.h"
#include "prover/post/session.h"

enum held_state {
    HELD_TAKING,   /* the stake is not on the ledger yet */
    HELD_TRAINING, /* ours, and steps are left to train */
    HELD_WAITING,  /* trained: segments become final, claims are answered, money comes */
    HELD_PAID,     /* closed, and everything is withdrawn */
    HELD_LOST,     /* another's, or closed without us */
};

struct held_job {
    struct hash32 key;
    char folder[FILE_PATH_MAX];
    char run[FILE_PATH_MAX];
    char log[FILE_PATH_MAX];
    enum held_state state;
    struct bundle *bundle; /* read only: a child writes it */
    struct session session;
    struct policy_pace pace;
    uint64_t steps;       /* trained */
    uint64_t steps_drawn; /* of them in the curve */
    struct loss_curve curve;
    struct job_standing standing; /* as the last round found it */
    bool was_ours;                /* some time */
    uint32_t failures;            /* of the child, in a row, without one more step */
    uint64_t failed_at;           /* steps that there were then */
    bool given_up;                /* it fails again and again */
    uint64_t again_ms;            /* no child before that */
    char trouble[SOLVER_VIEW_TROUBLE_MAX];
};

/* What a taken job needs from its node; all borrowed. */
struct held_terms {
    const struct session *account;
    struct ledger *ledger;
    const char *jobs; /* the folder */
    const struct policy *policy;
    const char *allow_list;
    const char *contact;
    const char *known; /* see struct session_plan */
    uint32_t ahead;
    const struct machine_options *machine; /* that answers claims */
    const struct log *log;
};

/* Makes the folder of a job, with an empty bundle. STATUS_REFUSED: it is there, or the terms that
 * the ledger shows are not those of its file. */
MUST_CHECK enum status held_job_make(const struct held_terms *terms, const struct hash32 *key,
                                     const struct game_terms *shown, const struct shelf_item *item,
                                     struct error *error);

/* Opens the folder of a job. The next rounds stake on it. Close it on any outcome. */
MUST_CHECK enum status held_job_open(struct held_job *job, const struct held_terms *terms,
                                     const struct hash32 *key, const struct policy_pace *pace,
                                     struct error *error);
void held_job_close(struct held_job *job); /* a zero-filled one is allowed */

/* Adds what was trained, and makes the moves that are due. Trouble goes into job->trouble. */
MUST_CHECK enum status held_job_round(struct held_job *job, struct error *error);

/* The child ended before the training did, with this exit code: no other for a while. When that
 * happens again and again, the job is given back to the ledger. */
void held_job_failed(struct held_job *job, int code, uint64_t now_ms, const struct log *log);

/* Writes the end. A job that was never ours, or of which nothing was trained, leaves nothing, so
 * that it may be taken again; not so one that was given up. */
MUST_CHECK enum status held_job_end(struct held_job *job, struct error *error);

/* Was this job begun here before? Then it is not taken again. */
bool held_job_is_known(const char *jobs, const struct hash32 *key);

/* How a folder's job ended, as JSON; *end is NULL where it has not. */
MUST_CHECK enum status held_job_read_end(json_t **end, const char *jobs, const char *name,
                                         struct error *error);

const char *held_state_word(enum held_state state); /* "training" */

#endif /* PROVER_NODE_HELD_JOB_H */
