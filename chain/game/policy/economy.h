/*
 * economy.h - what verifying costs a client, what a seat earns, and what a cheat may expect: closed
 * forms for `job open` and `verifier plan`.
 *
 * This is advice for people: binary64, and never part of the game. docs/ECONOMICS.md derives the
 * formulas; `make bench NAME=network` plays them. Amounts are in any one unit.
 */
#ifndef CHAIN_GAME_POLICY_ECONOMY_H
#define CHAIN_GAME_POLICY_ECONOMY_H

#include <stdbool.h>

/* Entries that a job waits for, as a rule. */
#define ECONOMY_PANEL_USUAL 12
/* Segments that our solver has open at most without a vouch (prover run --ahead). */
#define ECONOMY_AHEAD_USUAL 24

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
    double saved;    /* what a cheat saves of a segment's cost, as a share */
    double watchers; /* nodes that check secret samples */
    double extra;    /* the rate at which each of them does */
    double
        open_segments; /* committed and not final when the solver goes: economy_open_segments() */
    double overhead;   /* of replaying a segment beside computing it, as a share of its cost */
    double gas;        /* of one verdict: seal and reveal */
    bool kept;         /* a keeper refuses what nobody serves */
};

/* How many segments a leg has, on average: the sixteenth is covered with any seed. */
double economy_leg(double coverage);

/* The chance that one of `count` tries of chance `rate` hits. */
double economy_one_of(double count, double rate);

/*
 * How many segments are committed and not final, on average, where computing one takes segment_s
 * and wait_s (seal, reveal and claim period) pass behind a covered one. At most `ahead`, as far as
 * a leg allows.
 */
double economy_open_segments(double coverage, double segment_s, double wait_s, double ahead);

/* A false segment of a solver, where a share of the panel says what the solver wants. */
struct economy_cheat {
    double detection; /* the chance that the segment costs the solver its job */
    double gain;      /* what it saves */
    double loss;      /* what it then loses */
    double value;     /* gain - detection * loss: above 0, cheating pays */
};

/*
 * partners: the share of the panel's entries, to the next whole one, that colludes or trusts.
 * served: verifiers have the data, from the solver, or because a keeper or the client keeps them.
 * Else honest seats can only say that they have not seen the states, and nobody else can claim.
 */
void economy_cheat(struct economy_cheat *cheat, const struct economy *economy, double partners,
                   bool served);

/*
 * The expected advantage of a solver that cheats in `bad` segments over an honest one. The first
 * conviction ends it: (1 - (1 - d)^bad) * (gain / d - loss), which has the sign of value.
 */
double economy_advantage(const struct economy_cheat *cheat, double bad);

/* The chance that a panel passes a covered false segment: draws without replacement, round by
 * round. */
double economy_passes(const struct economy *economy, double partners, bool served);

/* The coverage from which on a cheat does not pay, served or not; infinity: none does. */
double economy_coverage_least(const struct economy *economy, double partners);

/* The stake from which on a served cheat does not pay; infinity: none does. */
double economy_stake_least(const struct economy *economy, double partners);

/* What the seats of a segment cost the client, on average. The last segment is always covered. */
double economy_verifying(const struct economy *economy);

/* What a seat earns by a whole replay. */
double economy_seat_profit(const struct economy *economy);

/* The share of false segments at which unpaid watching pays. */
double economy_watch_least(const struct economy *economy);

#endif /* CHAIN_GAME_POLICY_ECONOMY_H */
