/*
 * virtual_checks.h - children whose answers are known: they check states that are numbers.
 *
 * A state is one of made_states.h, and a step of every job adds one to its number, so a step is
 * true or it is not, and nothing need be computed. One number is not finite: a training that comes
 * there has diverged, and ends. Jobs begin with a number of their own. A child stands for the
 * product's (verifier/check/check.h, verifier/dispute/dispute_child.h): it finds the first false
 * step of a segment or the leaves that a seed draws, and in a dispute it leaves the next move in
 * the claim's folder. It may also die, or find nothing at mirrors that are silent or lie.
 */
#ifndef TESTS_SUPPORT_NODE_VIRTUAL_CHECKS_H
#define TESTS_SUPPORT_NODE_VIRTUAL_CHECKS_H

#include "tests/support/node/fate.h"
#include "verifier/check/workers.h"

#define VIRTUAL_RUNNING_MAX 16

enum virtual_answer {
    ANSWER_TRUTH,
    ANSWER_NOTHING, /* it died, or ran out of time */
    ANSWER_SILENCE, /* no mirror answers */
    ANSWER_LIES,    /* and some say what is false */
};

struct virtual_running {
    uint64_t number; /* 0: free */
    uint64_t ready_ms;
    enum virtual_answer answer;
    struct check_request *request;
};

struct virtual_checks {
    struct fate *fate;
    uint64_t random;
    uint64_t now_ms;
    uint64_t step_ms;      /* that a step takes, as a trial measures it; 0: very little */
    uint64_t state_bytes;  /* of the states of one segment, */
    uint64_t line_bytes_s; /* ... and how fast they come when they do; 0: nobody measures it */
    struct virtual_running running[VIRTUAL_RUNNING_MAX];
    /* How the child of this request will end, and after how long. */
    enum virtual_answer (*choose)(void *context, uint64_t *takes_ms,
                                  const struct check_request *request);
    void *context;
};

/* The number of the state that is not finite. */
#define VIRTUAL_NOT_FINITE 13

/* Is it no step of a job? ends: the training is said to have diverged in it. */
bool virtual_is_false(const struct digest *pre_state, const struct digest *post_state, bool ends);

struct check_port virtual_checks_port(struct virtual_checks *checks);

/* The node is gone, and its children with it. */
void virtual_checks_die(struct virtual_checks *checks);
bool virtual_checks_are_idle(const struct virtual_checks *checks);

#endif /* TESTS_SUPPORT_NODE_VIRTUAL_CHECKS_H */
