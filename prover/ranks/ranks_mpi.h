/*
 * ranks_mpi.h - the exchange of ranks through the MPI whose launcher started them.
 *
 * Who may send is the launcher's matter here: ranks need no secret, and messages have no HMAC. All
 * else of a message is as over TCP. One thread calls the library, and no call of it blocks but the
 * first and the last one: ranks test what is under way until the limit of ranks_team.h.
 *
 * The two families of MPI have the same functions with handles of other types: pointers to objects
 * of the library in Open MPI, numbers in MPICH and what shares its binary interface. So each has a
 * table, compiled from ranks_mpi_body.h with its own type and constants. The library is loaded
 * where a run wants it; nothing is linked with it, and its header is not needed.
 */
#ifndef PROVER_RANKS_RANKS_MPI_H
#define PROVER_RANKS_RANKS_MPI_H

#include <stddef.h>

#include "prover/ranks/ranks_place.h"

#define RANKS_MPI_TAG 7590 /* of all messages: their heads tell them apart */

/* A message that is under way. */
union ranks_mpi_request {
    void *pointer;
    int number;
};

struct ranks_mpi_table {
    const char *name;         /* of the family */
    const char *const *files; /* that a library of it may be, up to NULL */
    size_t calls_size;        /* of the library's functions and handles, which the caller holds */
    /* Finds them: NULL, or the name of the one that is missing. */
    const char *(*find)(void *calls, void *library);
    /* These return what the library returns: 0 is success. */
    int (*begin)(const void *calls, int *rank, int *rank_count);
    int (*send)(const void *calls, union ranks_mpi_request *request, const void *bytes, int size,
                int peer);
    int (*receive)(const void *calls, union ranks_mpi_request *request, void *bytes, int size,
                   int peer);
    int (*test)(const void *calls, union ranks_mpi_request *request, int *done);
    int (*end)(const void *calls);
};

extern const struct ranks_mpi_table ranks_open_mpi;
extern const struct ranks_mpi_table ranks_mpich;

/* Loads the library of place->mpi and meets the others. Refuses a library that counts other ranks
 * than the place: it is not the launcher's. */
MUST_CHECK enum status ranks_mpi_open(struct ranks_team *team, const struct ranks_place *place,
                                      struct error *error);

#endif /* PROVER_RANKS_RANKS_MPI_H */
