/*
 * job_policy.h - what the policies of this machine say of the terms of a job: would its node enlist
 * and claim there, and would its solver stake?
 *
 * Only the terms are looked at: what is locked, and what the work takes, only a node or a solver
 * knows.
 */
#ifndef CLIENT_JOB_POLICY_H
#define CLIENT_JOB_POLICY_H

#include <jansson.h>

#include "chain/commands/policy_options.h"

/* For a command's table. */
#define JOB_POLICY_OPTIONS POLICY_OPTIONS, POLICY_NODE_OPTIONS, POLICY_SOLVER_OPTIONS
#define JOB_POLICY_OPTION_COUNT                                                                    \
    (POLICY_OPTION_COUNT + POLICY_NODE_OPTION_COUNT + POLICY_SOLVER_OPTION_COUNT)

struct job_policy {
    struct policy node;
    struct policy solver;
};

MUST_CHECK enum status job_policy_read(struct job_policy *policy, const struct options *options,
                                       const struct currency *currency, struct error *error);

/* The term that one of them refuses, the solver's first; "ok" where there is none. */
const char *job_policy_word(const struct job_policy *policy, const struct game_terms *terms,
                            uint64_t now_s);

/* {"solver": null, "node": {"term": "reveal", "text": "..."}}; null: agreed. */
json_t *job_policy_json(const struct job_policy *policy, const struct game_terms *terms,
                        uint64_t now_s);

/* For `job open`: STATUS_REFUSED for terms that no node or no solver takes at its defaults, with
 * what to change. */
MUST_CHECK enum status job_policy_check(const struct game_terms *terms,
                                        const struct currency *currency, bool quick, uint64_t now_s,
                                        struct error *error);

#endif /* CLIENT_JOB_POLICY_H */
