/*
 * policy_options.h - a policy (chain/game/policy/policy.h) from options, and what `lockstep doctor`
 * says of it.
 *
 * As all options they come from the command line, the environment or the config file, so what the
 * config file says holds for the node, the solver, `job list` and `doctor` alike.
 */
#ifndef CHAIN_COMMANDS_POLICY_OPTIONS_H
#define CHAIN_COMMANDS_POLICY_OPTIONS_H

#include "base/cli/command.h"
#include "chain/game/policy/policy.h"

/* What a node and a solver have in common, for a command's table. */
#define POLICY_OPTIONS                                                                             \
    {.name = "terms",                                                                              \
     .heading = "terms",                                                                           \
     .kind = OPTION_CHOICE,                                                                        \
     .value = "CLASS",                                                                             \
     .fallback = "standard",                                                                       \
     .choices = POLICY_CLASSES,                                                                    \
     .help = "policy: quick also takes what 'job open --terms quick' opens, with periods of "      \
             "seconds and more of the account locked: not for real money; the other classes "      \
             "differ only for 'job open'"},                                                        \
        {.name = "lock-time-max",                                                                  \
         .heading = "policy",                                                                      \
         .kind = OPTION_DURATION,                                                                  \
         .value = "TIME",                                                                          \
         .fallback = "30d",                                                                        \
         .maximum = UINT32_MAX,                                                                    \
         .help = "policy: lock no bond and no stake that deadline and periods can hold longer; "   \
                 "0s: any"},                                                                       \
        {.name = "clock-min",                                                                      \
         .heading = "policy",                                                                      \
         .kind = OPTION_DURATION,                                                                  \
         .value = "TIME",                                                                          \
         .fallback = "1h",                                                                         \
         .maximum = GAME_PERIOD_MAX,                                                               \
         .help = "policy: stake on no job whose clock of a dispute is shorter"},                   \
        {.name = "clock-factor",                                                                   \
         .heading = "policy",                                                                      \
         .kind = OPTION_REAL,                                                                      \
         .value = "X",                                                                             \
         .fallback = "3",                                                                          \
         .help = "policy: periods are at least so many times what computing a segment takes "      \
                 "here; 0: any"},                                                                  \
        {.name = "price",                                                                          \
         .heading = "policy",                                                                      \
         .often = true,                                                                            \
         .kind = OPTION_TEXT,                                                                      \
         .value = "AMOUNT",                                                                        \
         .fallback = "0.0003eth",                                                                  \
         .help = "what an hour of this machine costs, in the currency of the registry"},           \
    {                                                                                              \
        .name = "cost-cover", .heading = "policy", .kind = OPTION_REAL, .value = "X",              \
        .fallback = "1.3",                                                                         \
        .help = "policy: fee or reward is at least so many times the cost of computing a "         \
                "segment at --price, a fee also that of a seat's gas"                              \
    }
#define POLICY_OPTION_COUNT 6

/* Of a node. */
#define POLICY_NODE_OPTIONS                                                                        \
    {.name = "lock-max",                                                                           \
     .heading = "policy",                                                                          \
     .kind = OPTION_TEXT,                                                                          \
     .value = "AMOUNT",                                                                            \
     .fallback = "2%",                                                                             \
     .help = "policy: the most that bonds lock in all, those lost in the last 30 days included; "  \
             "an amount, or a share of what the account has"},                                     \
        {.name = "lock-job-max",                                                                   \
         .heading = "policy",                                                                      \
         .kind = OPTION_TEXT,                                                                      \
         .value = "AMOUNT",                                                                        \
         .fallback = "1%",                                                                         \
         .help = "policy: the most that bonds lock in one job; an amount, or a share"},            \
        {.name = "lock-party-max",                                                                 \
         .heading = "policy",                                                                      \
         .kind = OPTION_TEXT,                                                                      \
         .value = "AMOUNT",                                                                        \
         .fallback = "1%",                                                                         \
         .help = "policy: the most that bonds lock in the jobs of one client, or of one solver"},  \
        {.name = "fee-min",                                                                        \
         .heading = "policy",                                                                      \
         .kind = OPTION_TEXT,                                                                      \
         .value = "AMOUNT",                                                                        \
         .fallback = "1gwei",                                                                      \
         .help = "policy: take no seat for a smaller fee"},                                        \
        {.name = "bond-fees-max",                                                                  \
         .heading = "policy",                                                                      \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .fallback = "20",                                                                         \
         .maximum = 1000000000,                                                                    \
         .help = "policy: the most fees in the bond of a seat; 0: any"},                           \
        {.name = "seal-period-min",                                                                \
         .heading = "policy",                                                                      \
         .kind = OPTION_DURATION,                                                                  \
         .value = "TIME",                                                                          \
         .fallback = "10m",                                                                        \
         .maximum = GAME_PERIOD_MAX,                                                               \
         .help = "policy: take no seat with a shorter time to seal a verdict"},                    \
        {.name = "segment-period-max",                                                             \
         .heading = "policy",                                                                      \
         .kind = OPTION_DURATION,                                                                  \
         .value = "TIME",                                                                          \
         .fallback = "2d",                                                                         \
         .maximum = GAME_PERIOD_MAX,                                                               \
         .help = "policy: take no seat where a segment may take longer; 0s: any"},                 \
        {.name = "token-price",                                                                    \
         .heading = "policy",                                                                      \
         .kind = OPTION_TEXT,                                                                      \
         .value = "AMOUNT",                                                                        \
         .help = "what a coin of the ledger's gas costs in the token of the registry (default: "   \
                 "no seat where fees are paid in a token)"},                                       \
    {                                                                                              \
        .name = "reveal-period-min", .heading = "policy", .kind = OPTION_DURATION,                 \
        .value = "TIME", .fallback = "10m", .maximum = GAME_PERIOD_MAX,                            \
        .help = "policy: take no seat with a shorter time to reveal, in which the machine "        \
                "must not be off"                                                                  \
    }
#define POLICY_NODE_OPTION_COUNT 9

/* Of a solver. */
#define POLICY_SOLVER_OPTIONS                                                                      \
    {.name = "stake-max",                                                                          \
     .heading = "policy",                                                                          \
     .kind = OPTION_TEXT,                                                                          \
     .value = "AMOUNT",                                                                            \
     .help = "policy: the most to stake on a job; an amount, or a share of what the account has "  \
             "(default: any)"},                                                                    \
        {.name = "stake-rewards-max",                                                              \
         .heading = "policy",                                                                      \
         .kind = OPTION_REAL,                                                                      \
         .value = "X",                                                                             \
         .fallback = "4",                                                                          \
         .help = "policy: the most to stake, in whole rewards of the job; 0: any"},                \
        {.name = "reward-min",                                                                     \
         .heading = "policy",                                                                      \
         .kind = OPTION_TEXT,                                                                      \
         .value = "AMOUNT",                                                                        \
         .fallback = "1gwei",                                                                      \
         .help = "policy: compute no segment for a smaller reward"},                               \
        {.name = "hour-min",                                                                       \
         .heading = "policy",                                                                      \
         .often = true,                                                                            \
         .kind = OPTION_TEXT,                                                                      \
         .value = "AMOUNT",                                                                        \
         .help = "policy: take no job of which an hour of this machine earns less, its --price "   \
                 "taken off (default: any)"},                                                      \
    {                                                                                              \
        .name = "time-spare", .heading = "policy", .kind = OPTION_REAL, .value = "X",              \
        .fallback = "1.25",                                                                        \
        .help = "policy: segment period and deadline are at least so many times what the "         \
                "training takes here; 0: any"                                                      \
    }
#define POLICY_SOLVER_OPTION_COUNT 5

/* Reads those of the options that the command has; the other limits are the defaults. */
MUST_CHECK enum status policy_options_node(struct policy *policy, const struct options *options,
                                           struct error *error);
MUST_CHECK enum status policy_options_solver(struct policy *policy, const struct options *options,
                                             struct error *error);

#define POLICY_OPTIONS_CHECK_COUNT 2
extern const struct doctor_check policy_options_checks[POLICY_OPTIONS_CHECK_COUNT];

#endif /* CHAIN_COMMANDS_POLICY_OPTIONS_H */
