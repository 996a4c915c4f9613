/* time_split.c - see time_split.h. */
#include "prover/train/time_split.h"

double time_split_percent(const struct time_split *split, uint64_t part_ns)
{
    double all_ns =
        (double)split->training_ns + (double)split->committing_ns + (double)split->posting_ns;

    return all_ns > 0 ? 100.0 * (double)part_ns / all_ns : 0;
}
