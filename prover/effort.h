/*
 * effort.h - what a run's work consisted of. Training, committing and posting go on side by side,
 * so a part is compared with all that was worked, never with the time that passed: the parts add
 * up to the whole, and none is larger than it.
 */
#ifndef PROVER_EFFORT_H
#define PROVER_EFFORT_H

#include <stdint.h>

struct effort {
    uint64_t training_ns;
    uint64_t committing_ns;
    uint64_t posting_ns;
};

/* One of the parts, of all three, from 0 to 100; 0 where nothing was done. */
double effort_percent(const struct effort *effort, uint64_t part_ns);

#endif /* PROVER_EFFORT_H */
