/*
 * time_split.h - what a run's work consisted of. Training, committing and posting go on side by
 * side, so a part is compared with all that was worked, never with the time that passed: the parts
 * add up to the whole, and none is larger than it.
 */
#ifndef PROVER_TRAIN_TIME_SPLIT_H
#define PROVER_TRAIN_TIME_SPLIT_H

#include <stdint.h>

struct time_split {
    uint64_t training_ns;
    uint64_t committing_ns;
    uint64_t posting_ns;
};

/* One of the parts, of all three, from 0 to 100; 0 where nothing was done. */
double time_split_percent(const struct time_split *split, uint64_t part_ns);

#endif /* PROVER_TRAIN_TIME_SPLIT_H */
