/*
 * economy.h - what verifying costs a client, what a seat earns, and what a cheat may expect: closed
 * forms for `job open` and `verifier plan`.
 *
 * This is advice for people: binary64, and never part of the game. docs/ECONOMICS.md derives the
 * formulas; `make bench NAME=network` plays them. Amounts are in any one unit.
 */
#ifndef CHAIN_GAME_ECONOMY_H
#define CHAIN_GAME_ECONOMY_H

#include <stdbool.h>

/* Entries from which on a share of 30 % gains neither by withholding nor by denying. */
#define ECONOMY_PANEL_USUAL 12

/* Terms of a job and its surroundings. Shares and rates are from 0 to 1. */
struct economy {
    double segments;
    double reward; /* of a segment */
    double cost;   /* of computing a segment */
    double fee;    /* of a seat */
    double stake;
    double seats;
    double panel; /* its entries, from 1 on */
    double coverage;
    double saved;         /* what a cheat saves of a segment's cost, as a share */
    double watchers;      /* nodes that check secret samples */
    double extra;         /* the rate at which each of them does */
    double open_segments; /* committed and not final when a conviction comes: unpaid */
    double overhead;      /* of replaying a segment beside computing it, as a share of its cost */
    double gas;           /* of one verdict: seal and reveal */
};

/* A false segment of a solver, where a share of the panel says what the solver wants. */
struct economy_cheat {
    double detection; /* the chance that the segment costs the solver its job */
    double gain;      /* what it saves */
    double loss;      /* what it then loses */
    double value;     /* gain - detection * loss: above 0, cheating pays */
};

/*
 * partners: the share of the panel, by bonded money, that colludes or trusts. served: verifiers
 * have the data, from the solver or because the client keeps them. Else honest seats can only say
 * that the states are unavailable, and nobody else can claim.
 */
void economy_cheat(struct economy_cheat *cheat, const struct economy *economy, double partners,
                   bool served);

/*
 * The expected advantage of a solver that cheats in `bad` segments over an honest one. The first
 * conviction ends it: (1 - (1 - d)^bad) * (gain / d - loss), which has the sign of value.
 */
double economy_advantage(const struct economy_cheat *cheat, double bad);

/* What a panel makes of a covered false segment, by chance. */
struct economy_fate {
    double final;
    double refused; /* void, and it costs a part of the stake */
};

struct economy_fate economy_fate(const struct economy *economy, double partners, bool served);

/* The coverage from which on a served cheat does not pay; infinity: none does. */
double economy_coverage_least(const struct economy *economy, double partners);

/* The stake from which on it does not pay; infinity: none does. */
double economy_stake_least(const struct economy *economy, double partners);

/* What the seats of a segment cost the client, on average. The last segment is always covered. */
double economy_verifying(const struct economy *economy);

/* What a seat earns by a whole replay. */
double economy_seat_profit(const struct economy *economy);

/* The share of false segments at which unpaid watching pays. */
double economy_watch_least(const struct economy *economy);

#endif /* CHAIN_GAME_ECONOMY_H */
