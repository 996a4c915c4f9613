/*
 * network_plays.h - the attackers of a network, and the terms that they play at: those that
 * `job open` takes by itself.
 */
#ifndef TESTS_SUPPORT_NETWORK_NETWORK_PLAYS_H
#define TESTS_SUPPORT_NETWORK_NETWORK_PLAYS_H

#include <stddef.h>

#include "tests/support/network/network.h"

struct network_play {
    const char *name;
    enum network_solver solver;
    enum network_panel panel;
    enum network_client client;
    double false_share;
    double late;
    double blocks;
    uint32_t swarm;
    bool may_gain;     /* trusting: what it says is true; reading: docs/ECONOMICS.md, 4 */
    double share_most; /* of the panel, up to which it must not gain */
};

/* Terms of a class of `job open --terms`, with and without a keeper. */
struct network_class {
    const char *name;
    uint32_t seats;
    double coverage;
    double partners; /* the share of the panel that its coverage withstands */
};

struct network_setting {
    const struct network_class *class;
    uint32_t segments;
    uint32_t segment_s;
    uint32_t panel;
    double share; /* of the panel, the attacker's */
    bool keeper;
};

extern const struct network_play network_plays[];
extern const size_t network_play_count;
extern const struct network_class network_classes[];
extern const size_t network_class_count;

struct network_terms network_terms_of(const struct network_play *play,
                                      const struct network_setting *setting);

/* What a play gains in a job, and the standard error of that: `jobs` in parts of ten. */
struct network_gain {
    double mean;
    double error;
};

/* network is initialized, and holds all jobs afterwards. */
struct network_gain network_play_jobs(struct network *network, uint64_t jobs);

/* Is it more than chance may show? */
bool network_gains(const struct network_gain *gain);

/* Jobs of 5 to 1,000 segments of ten minutes to six hours, panels of 12, 24 and 100 entries, of all
 * classes, with and without a keeper: the setting of a number below NETWORK_SETTINGS. False: the
 * play does not claim to lose at that share. */
#define NETWORK_SETTINGS 240
bool network_setting(struct network_setting *setting, const struct network_play *play,
                     uint32_t number);

/* Jobs of a setting, so that each plays about as many segments. */
uint64_t network_jobs(const struct network_setting *setting, uint64_t segments);

/* A solver of 100 ten-minute segments vanishes at a random moment. */
struct network_kill {
    double burned; /* by the client, in costs of a segment */
    uint32_t open; /* segments that were open */
    bool voided;
};
struct network_kill network_kill(bool keeper, uint64_t seed);

/* The share of its time that a solver of ten-minute segments computes. */
double network_busy(bool keeper, uint64_t seed);

#endif /* TESTS_SUPPORT_NETWORK_NETWORK_PLAYS_H */
