/*
 * ranks_tcp.h - the exchange of ranks over TCP: one connection for each two of them.
 *
 * Every message carries the job's id, the step, a tag, a number of its own, a CRC-32C and an HMAC
 * under a key that the ranks agreed on when they met (ranks_meet.h). A message whose HMAC is wrong
 * is dropped and counted. A message that is cut, or of another job, step or tag, ends the run:
 * ranks that are not at one place make no sum.
 *
 * Every wait has a limit: ten times the longest of the last steps, and a minute at least; ten
 * minutes in the first step. Between steps rank 0 may write a checkpoint or wait for a ledger; a
 * rank that waits for its next word waits an hour, and the system's probes find a machine that is
 * gone in about a minute.
 */
#ifndef PROVER_RANKS_RANKS_TCP_H
#define PROVER_RANKS_RANKS_TCP_H

#include "engine/ranks/ranks_link.h"
#include "prover/ranks/ranks_seal.h"

#define RANKS_HOST_MAX   64 /* bytes of an address as text */
#define RANKS_WAIT_LEAST 60 /* seconds */
#define RANKS_WAIT_IDLE  3600
#define RANKS_STEPS_SEEN 8

struct ranks_peer {
    int socket;                /* -1: the rank itself, or not there yet */
    char host[RANKS_HOST_MAX]; /* for sentences */
    uint64_t sent;             /* messages, both ways */
    uint64_t received;
};

struct ranks_tcp {
    struct ranks_link link;
    struct ranks_peer *peers;
    struct ranks_key key;
    struct digest job; /* zero until the ranks have agreed on it */
    bool agreed;       /* or found that they do not */
    uint64_t step;     /* steps since they met */
    uint64_t step_ns[RANKS_STEPS_SEEN];
    bool lost;           /* a rank is gone, or at another place */
    uint64_t dropped;    /* messages and callers without the right HMAC */
    uint64_t wait_least; /* seconds; shorter in tests */
};

/* No rank is there yet. */
MUST_CHECK enum status ranks_tcp_open(struct ranks_tcp *tcp, uint32_t rank, uint32_t rank_count,
                                      struct error *error);
void ranks_tcp_close(struct ranks_tcp *tcp); /* a zero-filled one is allowed */

/* Tells apart what belongs to one step from what belongs to the next, and how long one takes. */
void ranks_tcp_stepped(struct ranks_tcp *tcp, uint64_t step_ns);

/* Seconds of the limit now. */
uint64_t ranks_tcp_limit(const struct ranks_tcp *tcp);

#endif /* PROVER_RANKS_RANKS_TCP_H */
