/*
 * ranks_launch.h - `prover run` and `resume` on several ranks: rank 0 starts the others on this
 * machine, or is one of those that a launcher started.
 *
 * Rank 0 has the bundle, the ledger and the account. The others have the job, the data and a
 * machine; no key of an account is read in their processes, and the kernel confines them.
 */
#ifndef PROVER_COMMANDS_RANKS_LAUNCH_H
#define PROVER_COMMANDS_RANKS_LAUNCH_H

#include <sys/types.h>

#include "base/cli/command.h"
#include "proofs/run/data_paths.h"
#include "prover/ranks/ranks_place.h"

#define RANKS_OPTIONS                                                                              \
    {.name = "ranks",                                                                              \
     .heading = "machine",                                                                         \
     .kind = OPTION_TEXT,                                                                          \
     .value = "N",                                                                                 \
     .help = "train on N processes of this machine, with the roots of one; or mpi, slurm",         \
     .command_line_only = true},                                                                   \
        {.name = "cross-check",                                                                    \
         .heading = "machine",                                                                     \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "K",                                                                             \
         .help =                                                                                   \
             "in every K-th step a second rank computes a drawn group too; a difference ends it",  \
         .command_line_only = true},                                                               \
    {                                                                                              \
        .name = "ranks-at", .heading = "machine", .kind = OPTION_TEXT, .value = "HOST:PORT",       \
        .help =                                                                                    \
            "where rank 0 listens for the others; under mpirun and srun the machine of rank 0",    \
        .command_line_only = true                                                                  \
    }

/* The ranks that this process started, and the place where it listens. */
struct ranks_launch {
    struct ranks_place place;
    uint64_t cross_check; /* 0: never */
    int listener;         /* -1: none */
    pid_t *others;
    uint32_t other_count;
};

/* Which rank this is. Sets threads and device of the machine by the ranks of this machine. */
MUST_CHECK enum status ranks_launch_read(struct ranks_launch *launch,
                                         struct machine_options *machine,
                                         const struct options *options, struct error *error);

/* Refuses by name a job that so many ranks cannot share, and a machine that cannot run parts. Rank
 * 0 says how many ranks are spare. */
struct log;
MUST_CHECK enum status ranks_launch_check(const struct ranks_launch *launch, const struct job *job,
                                          const struct machine_options *machine,
                                          const struct log *log, struct error *error);

/* Of rank 0: listens, and starts the other ranks where it launches them. */
MUST_CHECK enum status ranks_launch_begin(struct ranks_launch *launch, struct error *error);

/* All ranks have met: nobody is to call any more. */
void ranks_launch_met(struct ranks_launch *launch);

/* Waits for the ranks that this process started; ends those that hang. */
void ranks_launch_end(struct ranks_launch *launch);

/* Of every other rank: trains with the others until rank 0 ends the run. bundle: where it is, if
 * this rank sees it. */
MUST_CHECK enum status ranks_launch_follow(const struct ranks_launch *launch, const char *bundle,
                                           const struct job *job, const struct data_paths *data,
                                           const struct machine_options *machine,
                                           struct error *error);

#endif /* PROVER_COMMANDS_RANKS_LAUNCH_H */
