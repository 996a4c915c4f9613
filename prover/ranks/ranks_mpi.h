/*
 * ranks_mpi.h - the exchange of ranks through the MPI whose launcher started them.
 *
 * Who may send is the launcher's matter here: ranks need no secret, and messages have no HMAC. All
 * else of a message is as over TCP. One thread calls the library, and no call of it blocks but the
 * first and the last one: ranks test what is under way until the limit of ranks_team.h.
 */
#ifndef PROVER_RANKS_RANKS_MPI_H
#define PROVER_RANKS_RANKS_MPI_H

#include "prover/ranks/ranks_place.h"

/* Loads the library of place->mpi and meets the others. Refuses a library that counts other ranks
 * than the place: it is not the launcher's. */
MUST_CHECK enum status ranks_mpi_open(struct ranks_team *team, const struct ranks_place *place,
                                      struct error *error);

#endif /* PROVER_RANKS_RANKS_MPI_H */
