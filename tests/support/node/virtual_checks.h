/*
 * virtual_checks.h - trainings whose truth is known, and children that answer from it.
 *
 * A state is a hash of the state before it, so a step is true or it is not, and nothing need be
 * computed. A child stands for the product's (verifier/check/check.h,
 * verifier/dispute/dispute_child.h): it says which step of a segment is the first false one, or
 * what the trace root of a true one is, and in a dispute it leaves the next move in the claim's
 * folder. It may also die, answer nonsense, or belong to a machine whose two replays disagree.
 */
#ifndef TESTS_SUPPORT_NODE_VIRTUAL_CHECKS_H
#define TESTS_SUPPORT_NODE_VIRTUAL_CHECKS_H

#include "chain/game/game.h"
#include "tests/support/node/fate.h"
#include "verifier/check/workers.h"

#define VIRTUAL_STEPS_MAX    4 /* of a segment */
#define VIRTUAL_SEGMENTS_MAX 128
#define VIRTUAL_RUNNING_MAX  16

enum {
    VIRTUAL_TRUE = 0x7fffffff, /* no step is false */
};

/* A segment as somebody committed it. Equal contents are one. */
struct virtual_segment {
    struct digest job_id;
    struct digest root;
    uint32_t index;
    uint32_t steps;
    struct digest before;
    struct digest states[VIRTUAL_STEPS_MAX];
    uint32_t lie; /* the first false step, or VIRTUAL_TRUE */
};

enum virtual_answer {
    ANSWER_TRUTH,
    ANSWER_NOTHING, /* it died, ran out of time, or no mirror spoke */
    ANSWER_NEVER,   /* the job cannot be checked at all */
    ANSWER_FAULT,   /* the two replays disagree */
    ANSWER_NONSENSE,
};

struct virtual_running {
    uint64_t number; /* 0: free */
    uint64_t ready_ms;
    enum virtual_answer answer;
    struct check_request request;
};

struct virtual_checks {
    struct virtual_segment segments[VIRTUAL_SEGMENTS_MAX];
    uint32_t segment_count;
    struct digest first[16]; /* the first state of job i, whose id is ids[i] */
    struct digest ids[16];
    uint32_t job_count;

    struct fate *fate;
    uint64_t random;
    uint64_t now_ms; /* of the simulation, not of the node's clock */
    struct virtual_running running[VIRTUAL_RUNNING_MAX];
    uint32_t running_most;
    bool barren; /* no child can be started */
    /* How the next child will end. withheld: is the data of this job to be had now? */
    enum virtual_answer (*choose)(void *context, const struct check_request *request,
                                  uint64_t *takes_ms);
    bool (*withheld)(void *context, const struct digest *job_id, uint32_t segment);
    /* Told when an answer is handed over. */
    void (*reply)(void *context, const struct check_request *request,
                  const struct check_result *result);
    void *context;
};

struct digest virtual_next_state(const struct digest *job_id, const struct digest *state);
struct digest virtual_trace_root(const struct digest *job_id, const struct digest *state);

/* Makes a job, whose steps are then known. */
void virtual_checks_add_job(struct virtual_checks *checks, const struct digest *job_id);
const struct digest *virtual_checks_first(const struct virtual_checks *checks,
                                          const struct digest *job_id);

/* A segment behind `before`; lie: the step that is false, drawn anew with each salt. */
const struct virtual_segment *virtual_checks_commit(struct virtual_checks *checks,
                                                    const struct digest *job_id, uint32_t index,
                                                    const struct digest *before, uint32_t steps,
                                                    uint32_t lie, uint64_t salt);
const struct virtual_segment *virtual_checks_find(const struct virtual_checks *checks,
                                                  const struct digest *job_id,
                                                  const struct digest *root);

/* The state before a step of a segment. */
const struct digest *virtual_state_before(const struct virtual_segment *segment, uint32_t step);

struct check_port virtual_checks_port(struct virtual_checks *checks);

/* The node is gone, and its children with it. */
void virtual_checks_die(struct virtual_checks *checks);
bool virtual_checks_are_idle(const struct virtual_checks *checks);

#endif /* TESTS_SUPPORT_NODE_VIRTUAL_CHECKS_H */
