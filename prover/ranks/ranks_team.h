/*
 * ranks_team.h - the ranks of a run as one of them sees them: who they are, where in the run they
 * stand, and how long each waits for another. Who moves the bytes stands in ranks_tcp.c and
 * ranks_mpi.h.
 *
 * Every message carries the job's id, the step, a tag, a number of its own and a CRC-32C; over TCP
 * also an HMAC under a key that the ranks agreed on when they met (ranks_meet.h). A message that is
 * cut, or of another job, step or tag, ends the run: ranks that are not at one place make no sum.
 *
 * Every wait has a limit: ten times the longest of the last steps, and a minute at least; ten
 * minutes in the first step. Between steps rank 0 may write a checkpoint or wait for a ledger; a
 * rank that waits for its next word waits an hour.
 */
#ifndef PROVER_RANKS_RANKS_TEAM_H
#define PROVER_RANKS_RANKS_TEAM_H

#include "engine/ranks/ranks_link.h"
#include "prover/ranks/ranks_frame.h"

#define RANKS_HOST_MAX   64 /* bytes of an address or a name as text */
#define RANKS_WAIT_LEAST 60 /* seconds */
#define RANKS_WAIT_IDLE  3600
#define RANKS_STEPS_SEEN 8

struct ranks_peer {
    int socket;                /* -1: the rank itself, not there yet, or reached through MPI */
    char host[RANKS_HOST_MAX]; /* for sentences */
    uint64_t sent;             /* messages, both ways */
    uint64_t received;
};

struct ranks_team {
    struct ranks_link link;
    struct ranks_peer *peers;
    struct ranks_key key;
    bool sealed;       /* messages have an HMAC; through MPI they have none */
    struct digest job; /* zero until the ranks have agreed on it */
    bool agreed;       /* or found that they do not */
    uint64_t step;     /* steps since they met */
    uint64_t step_ns[RANKS_STEPS_SEEN];
    bool lost;                              /* a rank is gone, or at another place */
    uint64_t dropped;                       /* messages and callers without the right HMAC */
    uint64_t wait_least;                    /* seconds; shorter in tests */
    struct ranks_mpi_library *mpi;          /* NULL: over TCP */
    void (*close)(struct ranks_team *team); /* of who moves the bytes; NULL: nobody yet */
};

/* No rank is there yet. */
MUST_CHECK enum status ranks_team_open(struct ranks_team *team, uint32_t rank, uint32_t rank_count,
                                       struct error *error);
void ranks_team_close(struct ranks_team *team); /* a zero-filled one is allowed */

/* Tells apart what belongs to one step from what belongs to the next, and how long one takes. */
void ranks_team_stepped(struct ranks_team *team, uint64_t step_ns);

/* Seconds that an exchange may move nothing. */
uint64_t ranks_team_limit(const struct ranks_team *team, const struct ranks_transfer *transfers,
                          uint32_t count);

/* Is one of the transfers idle? Then a rank may take long, or end as it should. */
bool ranks_team_is_idle(const struct ranks_transfer *transfers, uint32_t count);

/* Ends the run: "rank 2 (node7) has hung up". */
enum status ranks_team_lost(struct ranks_team *team, uint32_t rank, struct error *error,
                            const char *how);
enum status ranks_team_late(struct ranks_team *team, uint32_t rank, uint64_t limit,
                            struct error *error);

/* The head of message `number` to its peer. */
void ranks_team_write_head(uint8_t *head, const struct ranks_team *team,
                           const struct ranks_transfer *transfer, uint64_t number);

/* The head that came before its bytes: may they be those that the transfer waits for? */
MUST_CHECK enum status ranks_team_check_head(struct ranks_team *team, const uint8_t *head,
                                             const struct ranks_transfer *transfer,
                                             struct error *error);

/* A whole message that is sealed as it should be: is it message `number` of this place? */
MUST_CHECK enum status ranks_team_check(struct ranks_team *team, const uint8_t *head,
                                        const struct ranks_transfer *transfer, uint64_t number,
                                        struct error *error);

/* ---- ranks_tcp.c: the exchange over TCP, one connection for each two of them ---- */

/* No rank is there yet: ranks_meet.h connects them. A message whose HMAC is wrong is dropped and
 * counted. While a rank waits for its next word, the system's probes find a machine that is gone in
 * about a minute. */
MUST_CHECK enum status ranks_tcp_open(struct ranks_team *team, uint32_t rank, uint32_t rank_count,
                                      struct error *error);

#endif /* PROVER_RANKS_RANKS_TEAM_H */
