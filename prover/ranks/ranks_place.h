/*
 * ranks_place.h - which rank of how many a process is, and where rank 0 listens: from the options
 * and from what a launcher has put into the environment.
 *
 * mpirun is known by OMPI_COMM_WORLD_RANK and PMI_RANK, and srun with a plugin of MPI by PMIX_RANK.
 * Their ranks send through MPI, or over TCP where --ranks-at says where rank 0 listens.
 * SLURM_PROCID counts only where the options say so: a job script that runs one program under Slurm
 * is no rank. `--ranks N` makes this process
 * rank 0 of N on this machine; it starts the others itself and tells them by LOCKSTEP_RANK.
 */
#ifndef PROVER_RANKS_RANKS_PLACE_H
#define PROVER_RANKS_RANKS_PLACE_H

#include <sys/types.h>

#include "prover/ranks/ranks_meet.h"

#define RANKS_SECRET_VARIABLE "LOCKSTEP_RANKS_SECRET"
#define RANKS_LOCAL_PLACE     "127.0.0.1:0"

/* Whose library of MPI moves the bytes. */
enum ranks_mpi {
    RANKS_MPI_NONE = 0, /* over TCP */
    RANKS_MPI_ANY,      /* the launcher serves both families */
    RANKS_MPI_OPEN,
    RANKS_MPI_MPICH,
};

#define RANKS_SECRET_LEAST 22 /* characters: 16 random bytes in base64 */

struct ranks_place {
    uint32_t rank;
    uint32_t rank_count;  /* 1: this process trains alone */
    uint32_t local;       /* of the ranks of this machine */
    uint32_t local_count; /* 0: not known */
    bool launches;        /* this process starts the others */
    bool launched;        /* rank 0 has started this process */
    pid_t starter;        /* and is this one; 0: not known */
    enum ranks_mpi mpi;
    char at[RANKS_PLACE_MAX];
};

/* option: of --ranks; at: of --ranks-at; NULL where they are not given. */
MUST_CHECK enum status ranks_place_read(struct ranks_place *place, const char *option,
                                        const char *at, struct error *error);

/* The secret that ranks share over TCP, not shorter than RANKS_SECRET_LEAST; the rank that starts
 * the others makes one if there is none. */
MUST_CHECK enum status ranks_place_secret(const char **secret, const struct ranks_place *place,
                                          struct error *error);

/* Tells a rank that is started next, through the environment, where it stands. */
MUST_CHECK enum status ranks_place_tell(const struct ranks_place *place, uint32_t rank,
                                        const char *at, struct error *error);

/* Takes what was told back out of the environment. */
void ranks_place_forget(void);

#endif /* PROVER_RANKS_RANKS_PLACE_H */
