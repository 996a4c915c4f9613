/*
 * self_test.h - does this machine, with this program, tell true steps from false ones?
 *
 * Each round trains a small job, sometimes falsifies one element of one step, sometimes withholds a
 * state, and gives the run to the checks that a node makes, in the same children. The right answer
 * is known; any other is reported with its seed.
 */
#ifndef VERIFIER_CHECK_SELF_TEST_H
#define VERIFIER_CHECK_SELF_TEST_H

#include "base/io/stop.h"
#include "verifier/check/workers.h"

struct self_test_options {
    const char *folder; /* for its files; emptied at the end */
    uint64_t rounds;    /* 0: until it is stopped */
    uint64_t seed;
    uint32_t threads;
    const char *device; /* where a check computes; NULL: on the CPU */
    uint64_t device_memory;
    struct stop *stop;
    struct check_port checks;
    void (*on_wrong)(void *context, const char *line); /* NULL: none */
    void *context;
};

struct self_test_result {
    uint64_t proven;
    uint64_t refuted;
    uint64_t cannot_tell;
    uint64_t fault; /* pretended faults that were found */
    uint64_t wrong; /* wrong answers */
    char first_wrong[512];
};

MUST_CHECK enum status self_test(struct self_test_result *result,
                                 const struct self_test_options *options, struct error *error);

#endif /* VERIFIER_CHECK_SELF_TEST_H */
