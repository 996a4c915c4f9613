/*
 * plan.h - how much to check, and how long that takes: closed forms. chain/game/policy/economy.h
 * has the money.
 *
 * This is advice for people: binary64, with log1p and expm1 where differences from one matter, and
 * never part of a verdict or of the game. docs/ECONOMICS.md derives the formulas and compares them
 * with a simulation.
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
    double step; /* with the hashing of its state */
    double hash; /* of the state alone */
};

/* Time of a whole check, relative to training the segment. */
double plan_replay(const struct plan_times *times, double segment_steps);
/* The fewest steps of a segment for which plan_replay() is at most `most`, which is above 1. */
double plan_steps_least(const struct plan_times *times, double most);

#endif /* VERIFIER_STATUS_PLAN_H */
