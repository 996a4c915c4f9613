/*
 * plan.h - how much to check, what it costs, and when cheating pays: closed forms.
 *
 * This is advice for people: binary64, with log1p and expm1 where differences from one matter, and
 * never part of a verdict or of the game. docs/ECONOMICS.md derives the formulas and compares them
 * with a simulation. Amounts are in any one unit.
 */
#ifndef VERIFIER_STATUS_PLAN_H
#define VERIFIER_STATUS_PLAN_H

#include <stdint.h>

#define PLAN_SEGMENTS_MAX ((UINT32_C(1) << 24) - 1)

/* ---- confidence ------------------------------------------------------------------ */

/* The chance that at least one of `bad` segments is among `samples` distinct ones of `segments`. */
double plan_found(uint32_t segments, uint32_t bad, uint32_t samples);

/* The fewest distinct segments whose plan_found() reaches the confidence, which is below 1. */
uint32_t plan_samples(uint32_t segments, uint32_t bad, double confidence);

/* The fewest samples of a stream without end of which a share is bad: both above 0 and below 1.
 * Infinity where a double has no such number. */
double plan_samples_of_stream(double share, double confidence);

/* The chance that one of `bad` segments is checked by one of `nodes` that check each by `rate`. */
double plan_found_by_rate(double bad, double nodes, double rate);

/* The rate at which plan_found_by_rate() is the confidence. bad * nodes above 0. */
double plan_rate(double bad, double nodes, double confidence);

/* ---- time --------------------------------------------------------------------------- */

/* Seconds of this machine. */
struct plan_times {
    double step;   /* with the hashing of its state */
    double hash;   /* of the state alone */
    double traced; /* what tracing a step adds */
};

/* Time of an attested check, relative to training the segment. */
double plan_replay(const struct plan_times *times, double segment_steps);
/* The fewest steps of a segment for which plan_replay() is at most `most`, which is above 1. */
double plan_steps_least(const struct plan_times *times, double most);

/* ---- money ------------------------------------------------------------------------- */

/* Terms of one job and its surroundings. Shares and rates are from 0 to 1. */
struct plan_terms {
    double reward;     /* of a segment */
    double fee;        /* of an attestor for a segment */
    double stake;      /* of the solver */
    double bond;       /* of an attestor */
    double attestors;  /* paid seats of a segment */
    double coverage;   /* share of the segments that must be attested */
    double cost;       /* of computing one segment */
    double overhead;   /* of replaying one beside computing it, as a share of its cost */
    double gas;        /* of one attestation: seal and reveal */
    double saved;      /* what a cheat saves of a segment's cost, as a share */
    double honest;     /* the chance that a paid seat is taken by a node that replays all of it */
    double watchers;   /* nodes that check secret samples */
    double extra;      /* the rate at which each of them does */
    double accomplice; /* the chance that a friend of a convicted solver is the first to claim */
    double open_segments; /* committed, and not final when a conviction comes: void, unpaid */
};

/* What one cheated segment risks and gains. */
struct plan_economy {
    double detection;       /* the chance that a cheated segment is convicted */
    double gain;            /* what a cheated segment saves */
    double loss;            /* what a conviction takes: stake and rewards */
    double value;           /* gain - detection * loss: above 0, cheating pays */
    double detection_least; /* the detection from which on it does not pay; above 1: never */
    double stake_least;     /* the same as a stake; infinite without detection */
    double attestor_profit; /* of an attestation with a whole replay */
    double hasty_profit;    /* of one that replays up to its own step only */
    double caught_least; /* the chance of being caught from which on a guessed reveal is a loss */
    double watch_least;  /* the share of cheated segments at which unpaid watching pays */
};

void plan_economy(struct plan_economy *economy, const struct plan_terms *terms);

/*
 * The expected advantage of a solver that cheats in `bad` segments over an honest one. The first
 * conviction ends it: (1 - (1 - d)^bad) * (gain / d - loss), which has the sign of value.
 */
double plan_advantage(const struct plan_economy *economy, double bad);

/*
 * The mixed equilibrium of a solver who may cheat and a lone watcher who may check: how often each
 * does, so that the other gains nothing by changing. Rates above 1: it always does.
 */
struct plan_equilibrium {
    double cheat_rate;
    double check_rate;
};

void plan_equilibrium(struct plan_equilibrium *equilibrium, const struct plan_terms *terms);

#endif /* VERIFIER_STATUS_PLAN_H */
