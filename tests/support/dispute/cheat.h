/*
 * cheat.h - bundles of solvers who cheat in one step, in each way that a state can show.
 *
 * The bundle is a whole one: journal, segments and checkpoints agree with each other and with the
 * lie. Any failure here ends the program with a sentence.
 */
#ifndef TESTS_SUPPORT_DISPUTE_CHEAT_H
#define TESTS_SUPPORT_DISPUTE_CHEAT_H

#include "tests/support/numeric/small_job.h"

enum cheat {
    CHEAT_NOT = 0,
    CHEAT_ULP,        /* one element of one state, by one unit in the last place */
    CHEAT_STALE_DATA, /* the batch of another step */
    CHEAT_SKIP,       /* nothing is computed; only the step is counted */
    CHEAT_COPY,       /* the states of another training of the same model */
    CHEAT_SEED,       /* from the start another first state: the step is 0 */
    CHEAT_GRADIENT,   /* one element of one gradient, by one unit in the last place */
    CHEAT_KINDS,
};

const char *cheat_name(enum cheat cheat);

/* A new bundle of all steps of the job, closed. Takes job. random picks what is lied about. */
void cheat_bundle_new(const char *path, struct job *job, enum cheat cheat, uint64_t step,
                      uint64_t *random);

#endif /* TESTS_SUPPORT_DISPUTE_CHEAT_H */
