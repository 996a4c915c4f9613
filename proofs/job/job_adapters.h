/*
 * job_adapters.h - the adapters of a job's program, as its tape has them.
 */
#ifndef PROOFS_JOB_JOB_ADAPTERS_H
#define PROOFS_JOB_JOB_ADAPTERS_H

#include "engine/tape/tape.h"

/* Where the module's name ends in that of an adapter's tensor (engine/models/model.h); NULL: it is
 * none. */
const char *job_adapter_end(const char *name);

/* Is it the first of the two, (rank, in)? */
bool job_adapter_is_a(const char *name);

/* Is the state a part of an adapter, and no moment of one? */
bool job_adapter_is_part(const char *name);

/* What the adapter whose part B has that name counts, such as alpha / rank; 0: the tape does not
 * say. */
double job_adapter_scale(const struct tape *tape, const char *b);

#endif /* PROOFS_JOB_JOB_ADAPTERS_H */
