/*
 * mpi.h - several processes of one audit, when mpirun has started them.
 *
 * Open MPI is loaded when its mpirun is seen in the environment and only then; nothing is linked,
 * and a machine without it lacks nothing. Ranks talk to rank 0 and to nobody else. Waiting sleeps,
 * so that a rank that is done takes no time from one on the same core.
 */
#ifndef VERIFIER_AUDIT_MPI_H
#define VERIFIER_AUDIT_MPI_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/io/stop.h"

#define MPI_RANKS_MAX   1024
#define MPI_MESSAGE_MAX (UINT64_C(1) << 30)

struct mpi; /* opaque */

/* By the environment alone: were we started by mpirun, as one of several? Else rank 0 of 1. */
bool mpi_wanted(uint32_t *rank, uint32_t *rank_count);

/* Loads the library and joins the others. STATUS_NOT_FOUND: the library is not there;
 * STATUS_BAD_FORMAT: it is another one than the environment speaks of. */
MUST_CHECK enum status mpi_open(struct mpi **mpi, uint32_t rank, uint32_t rank_count,
                                struct error *error);

/* Waits until rank 0 comes here too. NULL is fine. */
void mpi_close(struct mpi *mpi, struct stop *stop);

/* To rank 0. STATUS_STOPPED: stop came first; stop may be NULL. */
MUST_CHECK enum status mpi_send(struct mpi *mpi, const void *bytes, size_t size, struct stop *stop,
                                struct error *error);

/* Appends what rank `from` sends; at rank 0. */
MUST_CHECK enum status mpi_receive(struct buffer *bytes, struct mpi *mpi, uint32_t from,
                                   struct stop *stop, struct error *error);

#endif /* VERIFIER_AUDIT_MPI_H */
