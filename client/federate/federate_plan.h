/*
 * federate_plan.h - the plan of `lockstep job federate`: whose jobs, on which rows, for which pay.
 *
 *     {"owners": [{"name": "ada", "job": "ada.job", "data": ["ada.u8"],
 *                  "terms": {"reward": "0.5eth", "solvers": "ada.allow"}}, ...],
 *      "first_state": "start.safetensors"}
 *
 * Terms are options of `job open` without their hyphens, each a text; true stands for a flag. A
 * plan is the user's own, and still read as if a stranger wrote it.
 */
#ifndef CLIENT_FEDERATE_FEDERATE_PLAN_H
#define CLIENT_FEDERATE_FEDERATE_PLAN_H

#include <jansson.h>

#include "base/cli/command.h"
#include "proofs/job/job.h"
#include "proofs/rounds/rounds.h"

#define FEDERATE_TERMS_MAX 24

struct federate_term {
    const char *name;  /* "reward" */
    const char *value; /* NULL: a flag */
};

/* Texts are the plan's own. */
struct federate_owner {
    const char *name;
    const char *job_path;
    struct job *job; /* owned */
    const char *data[ROUNDS_OWNERS_MAX];
    size_t data_count;
    struct federate_term terms[FEDERATE_TERMS_MAX];
    size_t term_count;
};

struct federate_plan {
    json_t *json;
    struct federate_owner owners[ROUNDS_OWNERS_MAX];
    uint32_t owner_count;
    const char *first_state; /* NULL: the jobs draw it */
};

/* Reads the plan and its jobs, and refuses jobs that can not be averaged. group: of the commands,
 * for the options of `job open`. Release it also after a failure. */
MUST_CHECK enum status federate_plan_read(struct federate_plan *plan, const char *path,
                                          bool moments, const struct command_group *group,
                                          struct error *error);
void federate_plan_release(struct federate_plan *plan);

#endif /* CLIENT_FEDERATE_FEDERATE_PLAN_H */
