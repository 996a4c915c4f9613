/* effort.c - see effort.h. */
#include "prover/effort.h"

double effort_percent(const struct effort *effort, uint64_t part_ns)
{
    double all_ns =
        (double)effort->training_ns + (double)effort->committing_ns + (double)effort->posting_ns;

    return all_ns > 0 ? 100.0 * (double)part_ns / all_ns : 0;
}
