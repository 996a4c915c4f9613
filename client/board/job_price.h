/*
 * job_price.h - rewards to compare: for an hour of this machine, and for a million tokens.
 *
 * Both follow from what `lockstep prover probe JOB --data FILE` measured here
 * (proofs/run/known_pace.h); a million tokens needs only the job file.
 */
#ifndef CLIENT_BOARD_JOB_PRICE_H
#define CLIENT_BOARD_JOB_PRICE_H

#include "base/cli/options.h"
#include "chain/game/game.h"
#include "proofs/job/job.h"

/* For a command's table: on which device it was measured. */
#define JOB_PRICE_DEVICE_OPTION                                                                    \
    {                                                                                              \
        .name = "device", .heading = "machine", .often = true, .kind = OPTION_TEXT,                \
        .value = "NAME", .fallback = "cpu", .choices = "cpu|cuda|auto",                            \
        .help = "the device that 'prover probe JOB --data FILE' measured, by which an hour is "    \
                "meant"                                                                            \
    }

/* For a command's table: what its rewards are for, if not for the whole job. */
#define JOB_PRICE_OPTIONS                                                                          \
    {.name = "per-hour",                                                                           \
     .heading = "terms",                                                                           \
     .often = true,                                                                                \
     .kind = OPTION_FLAG,                                                                          \
     .help = "rewards are for an hour of this machine, by what 'prover probe JOB --data FILE' "    \
             "measured",                                                                           \
     .command_line_only = true},                                                                   \
        {.name = "per-million-tokens",                                                             \
         .heading = "terms",                                                                       \
         .kind = OPTION_FLAG,                                                                      \
         .help = "rewards are for a million tokens (or samples)",                                  \
         .command_line_only = true},                                                               \
        JOB_PRICE_DEVICE_OPTION
#define JOB_PRICE_OPTION_COUNT 3

struct job_price {
    bool measured;
    wei hour;    /* of this machine */
    wei million; /* tokens; 0: the job draws none */
};

/* segment_reward: of one segment. What was not measured has no price. */
struct job_price job_price_of(const struct game_terms *terms, wei segment_reward,
                              const char *device);

/* The reward of the whole job from an amount as JOB_PRICE_OPTIONS say. STATUS_USAGE: it was not
 * measured, or draws no tokens. */
MUST_CHECK enum status job_price_whole(wei *whole, wei amount, const struct job *job,
                                       const struct options *options, struct error *error);

/* Do the options give rewards for something else than the whole job? */
bool job_price_is_rate(const struct options *options);

#endif /* CLIENT_BOARD_JOB_PRICE_H */
