/*
 * mpi.h - messages between the processes of one audit that mpirun started.
 *
 * Open MPI is loaded at run time, and only when the environment shows its mpirun: the program runs
 * without it. Ranks send to rank 0 only. A rank that waits sleeps, so that it takes no time from
 * another rank on its core.
 */
#ifndef VERIFIER_AUDIT_MPI_H
#define VERIFIER_AUDIT_MPI_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/io/stop.h"

#define MPI_RANKS_MAX   1024
#define MPI_MESSAGE_MAX (UINT64_C(1) << 30)

struct mpi; /* opaque */

/* Does the environment say that mpirun started several processes? Else rank 0 of 1. */
bool mpi_wanted(uint32_t *rank, uint32_t *rank_count);

/* Loads the library and joins the others. STATUS_NOT_FOUND: there is no library;
 * STATUS_BAD_FORMAT: it is not Open MPI's, or counts other ranks than the environment. */
MUST_CHECK enum status mpi_open(struct mpi **mpi, uint32_t rank, uint32_t rank_count,
                                struct error *error);

/* Waits until rank 0 closes too. Accepts NULL. */
void mpi_close(struct mpi *mpi, struct stop *stop);

/* Sends to rank 0. STATUS_STOPPED: stop was requested first; stop may be NULL. */
MUST_CHECK enum status mpi_send(struct mpi *mpi, const void *bytes, size_t size, struct stop *stop,
                                struct error *error);

/* Rank 0 only: appends the message of rank `from`. */
MUST_CHECK enum status mpi_receive(struct buffer *bytes, struct mpi *mpi, uint32_t from,
                                   struct stop *stop, struct error *error);

#endif /* VERIFIER_AUDIT_MPI_H */
