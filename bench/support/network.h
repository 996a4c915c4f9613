/*
 * network.h - jobs of docs/PROTOCOL.md, played many times with one kind of attacker: draws, seats,
 * verdicts, scores, claims, bonds, and the stake's split.
 *
 * Parties are pools of money: the attacker (solver or verifiers or client, or several of these as
 * one), the honest solvers, the honest verifiers, the client. Money is exact to a double's
 * rounding: what the pools lose is burned. The unit is the cost of computing one segment.
 * docs/ECONOMICS.md lists the simplifications.
 */
#ifndef BENCH_SUPPORT_NETWORK_H
#define BENCH_SUPPORT_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/game/economy.h"

#define NETWORK_SEGMENTS_MAX 4096

/* What the attacker does as the solver, if it is. */
enum network_solver {
    SOLVER_HONEST,      /* the attacker is not the solver */
    SOLVER_FALSE,       /* some of its segments are false; it serves everybody */
    SOLVER_WITHHOLDING, /* the same, and it serves the attacker's verifiers alone */
    SOLVER_SILENT,      /* computes rightly, and serves nobody */
};

/* What the attacker's share of the panel does. */
enum network_panel {
    PANEL_HONEST,   /* replays and says what is true */
    PANEL_PARTNER,  /* says right without a replay, with the leaves that its solver hands it */
    PANEL_TRUSTING, /* the same with any solver, as if each handed out its leaves */
    PANEL_GUESSING, /* says right without a replay, with leaves that it makes up */
    PANEL_ABSENT,   /* enlists and never shows */
    PANEL_DENYING,  /* says unavailable whatever is true */
    PANEL_ALARMING, /* says false whatever is true */
};

struct network_terms {
    struct economy economy; /* cost is 1 */
    double bond;
    double replay;          /* cost of a check */
    uint32_t open_segments; /* committed and not final when a solver goes, that one among them */
    enum network_solver solver;
    enum network_panel panel;
    double share;        /* of the panel: the attacker's */
    double false_share;  /* of the attacker's segments */
    double first;        /* the chance that the attacker has the quarter of its own stake */
    double swarm;        /* false claims of outsiders, all the attacker's, for each segment */
    bool kept;           /* the client keeps the data: withholding hides nothing */
    bool attacks_client; /* else what the client loses is not the attacker's gain */
};

struct network_pool {
    double money;
    double work; /* computing and gas */
};

struct network {
    struct network_terms terms;
    uint64_t random;
    struct network_pool attacker;
    struct network_pool solvers;  /* honest */
    struct network_pool panel;    /* honest verifiers in their seats */
    struct network_pool watchers; /* honest nodes that check in secret */
    struct network_pool client;
    double burned;
    double pool; /* of fees, of the job that is played */
    uint64_t jobs;
    uint64_t attacker_segments; /* committed by the attacker */
    uint64_t attacker_seats;
    uint64_t honest_segments; /* final, of honest solvers */
    uint64_t honest_seats;
    uint64_t falses;    /* false segments that were committed */
    uint64_t convicted; /* of these: by a seat or a watcher */
    uint64_t passed;    /* of these: final */
    uint64_t voided;    /* honest segments that the panel voided */
    uint64_t unfairly;  /* honest solvers that were convicted: never */
};

void network_init(struct network *network, const struct network_terms *terms, uint64_t seed);

/* Plays one job to its end: the first solver is the attacker where it attacks as one. */
void network_play(struct network *network);

/* What the attacker had more than honest conduct in the same seats and segments, for a job. */
double network_advantage(const struct network *network);

/* What an honest solver earns with a final segment, an honest verifier with a seat. */
double network_solver_net(const struct network *network);
double network_seat_net(const struct network *network);

/* Money in less money out. */
double network_leak(const struct network *network);

#endif /* BENCH_SUPPORT_NETWORK_H */
