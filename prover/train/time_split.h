/*
 * time_split.h - how a run's work splits into training, committing and posting. These run in
 * parallel, so a share is taken of the sum of the three, not of the elapsed time.
 */
#ifndef PROVER_TRAIN_TIME_SPLIT_H
#define PROVER_TRAIN_TIME_SPLIT_H

#include <stdint.h>

struct time_split {
    uint64_t training_ns;
    uint64_t committing_ns;
    uint64_t posting_ns;
};

/* The share of one part, from 0 to 100; 0 where nothing was done. */
double time_split_percent(const struct time_split *split, uint64_t part_ns);

#endif /* PROVER_TRAIN_TIME_SPLIT_H */
