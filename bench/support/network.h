/*
 * network.h - a network of many nodes that plays the game of docs/PROTOCOL.md: draws, coverage,
 * attestations, reveals, claims, bonds, and the stake's split; honest ones, lazy ones, cheats, and
 * cheats with friends.
 *
 * Money is exact to a double's rounding: the gains of all nodes and clients sum to zero. The unit
 * is the cost of computing one segment. docs/ECONOMICS.md lists the simplifications.
 */
#ifndef BENCH_SUPPORT_NETWORK_H
#define BENCH_SUPPORT_NETWORK_H

#include <stdint.h>

#define NETWORK_SEGMENTS_MAX 4096
#define NETWORK_SEATS_MAX    8

enum role {
    SOLVER_HONEST,
    SOLVER_SLOPPY,    /* a false step in few segments */
    SOLVER_LAZY,      /* computes nothing, ever */
    SOLVER_COLLUDING, /* false steps, and friends among the attestors */
    VERIFIER_HONEST,  /* replays whole segments; watches others in secret */
    VERIFIER_HASTY,   /* replays up to its own step, the least that gives its trace root */
    VERIFIER_GUESSER, /* replays nothing and reveals something */
    VERIFIER_FRIEND,  /* of the colluding solvers: attests for them what they say; else honest */
    ROLE_COUNT,
};

struct network_terms {
    uint32_t segments;
    double reward; /* of a segment */
    double fee;
    double stake;
    double bond; /* of an attestor */
    uint32_t attestors;
    double coverage;
    double gas;             /* of an attestation, of a claim */
    double replay;          /* cost of replaying a segment */
    double saved;           /* share of a segment's cost that a false one saves */
    double extra;           /* rate at which a watcher checks any segment in secret */
    double peers;           /* the chance that who replays a segment also tries its reveals */
    double seized;          /* share of seats that friends of a colluding solver take from others */
    double accomplice;      /* the chance that a friend is the first to claim */
    uint32_t open_segments; /* not final when a conviction comes, the false one among them */
    double false_share[ROLE_COUNT]; /* of a solver's segments */
};

struct network_tally {
    uint64_t jobs;      /* taken by solvers of this role */
    uint64_t segments;  /* computed, or said to be */
    uint64_t falses;    /* of these */
    uint64_t caught;    /* false ones that were convicted */
    uint64_t passed;    /* false ones that became final */
    uint64_t convicted; /* solvers; for verifiers: reveals */
    uint64_t seats;     /* attestations */
    uint64_t claims;    /* first ones: those that are paid */
};

struct network {
    struct network_terms terms;
    uint32_t node_count;
    uint32_t first[ROLE_COUNT + 1]; /* nodes first[r] .. first[r + 1] - 1 have role r */
    double *money;                  /* of each node: what the game gave and took */
    double *work;                   /* what it spent on computing and gas */
    double clients;
    double unwatched; /* the chance that no watcher checks a segment */
    uint64_t random;
    struct network_tally tally[ROLE_COUNT];
};

/* Returns 0; counts[r] nodes of each role. */
int network_init(struct network *network, const struct network_terms *terms,
                 const uint32_t counts[ROLE_COUNT], uint64_t seed);
void network_release(struct network *network);

/* Plays one job to its end, by as many solvers as it takes, one after the other. */
void network_play(struct network *network);

/*
 * Plays one job by this solver until the job ends or the solver is convicted. Returns how much more
 * it earned than an honest solver of the same number of segments.
 */
double network_advantage(struct network *network, uint32_t solver);

/* A number in [0, 1). */
double network_draw(uint64_t *random);

extern const char *const network_role_names[ROLE_COUNT];

#endif /* BENCH_SUPPORT_NETWORK_H */
