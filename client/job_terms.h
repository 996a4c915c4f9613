/*
 * job_terms.h - the terms of a job from options: what is not given follows from the reward and from
 * how safe the job shall be. And the terms for people, before any money leaves.
 */
#ifndef CLIENT_JOB_TERMS_H
#define CLIENT_JOB_TERMS_H

#include <stdio.h>

#include "base/cli/options.h"
#include "chain/game/economy.h"
#include "chain/game/game.h"
#include "client/board/job_price.h"
#include "proofs/job/job.h"

#define JOB_TERMS_AMOUNT(option, text)                                                             \
    {                                                                                              \
        .name = (option), .kind = OPTION_TEXT, .value = "AMOUNT", .help = (text)                   \
    }
#define JOB_TERMS_PERIOD(option, preset, text)                                                     \
    {                                                                                              \
        .name = (option), .kind = OPTION_DURATION, .value = "TIME", .fallback = (preset),          \
        .minimum = 1, .maximum = GAME_PERIOD_MAX, .help = (text)                                   \
    }

/* For a command's table. */
#define JOB_TERMS_OPTIONS                                                                          \
    JOB_PRICE_OPTIONS,                                                                             \
        JOB_TERMS_AMOUNT("reward",                                                                 \
                         "for the whole job, such as 0.5eth; it is split evenly over the "         \
                         "segments"),                                                              \
        JOB_TERMS_AMOUNT("reward-from", "with --reward-to and --over: the reward rises from this " \
                                        "one until somebody accepts"),                             \
        JOB_TERMS_AMOUNT("reward-to", "the highest reward, which is escrowed"),                    \
        {.name = "over",                                                                           \
         .kind = OPTION_DURATION,                                                                  \
         .value = "TIME",                                                                          \
         .minimum = 1,                                                                             \
         .maximum = GAME_PERIOD_MAX,                                                               \
         .help = "how long the reward rises"},                                                     \
        {.name = "safety",                                                                         \
         .kind = OPTION_CHOICE,                                                                    \
         .value = "CLASS",                                                                         \
         .fallback = "standard",                                                                   \
         .choices = "lean|standard|careful",                                                       \
         .help = "how much is verified: lean, a tenth of the segments by one seat; standard, a "   \
                 "fifth; careful, half of them by two; more where the job is short"},              \
        JOB_TERMS_AMOUNT("segment-cost", "what it costs a solver to compute a segment (default: "  \
                                         "its reward divided by 1.3)"),                            \
        JOB_TERMS_AMOUNT("stake", "what a solver loses when it is convicted (default: the whole "  \
                                  "reward)"),                                                      \
        {.name = "seats",                                                                          \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .maximum = GAME_SEATS_MAX,                                                                \
         .help = "verifiers who must say that a covered segment is right (default: by --safety); " \
                 "0: nobody is paid to look"},                                                     \
        {.name = "coverage",                                                                       \
         .kind = OPTION_REAL,                                                                      \
         .value = "X",                                                                             \
         .help = "share of the segments that is covered, from 0 to 1 (default: by --safety)"},     \
        JOB_TERMS_AMOUNT("fee", "of a seat of a segment (default: 1.3 times --segment-cost)"),     \
        JOB_TERMS_AMOUNT("bond", "of a seat, and the least of a claim (default: ten fees)"),       \
        JOB_TERMS_AMOUNT("query-fee", "what a claimant pays the solver for each reply on the "     \
                                      "ledger (default: 0.001eth, or a tenth of the bond)"),       \
        {.name = "panel",                                                                          \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .maximum = GAME_PANEL_LEAST,                                                              \
         .help = "entries in the panel that a solver waits for (default: 12)"},                    \
        {.name = "solvers",                                                                        \
         .kind = OPTION_TEXT,                                                                      \
         .value = "FILE",                                                                          \
         .help = "only these accounts may solve: one address a line"},                             \
        {.name = "verifiers",                                                                      \
         .kind = OPTION_TEXT,                                                                      \
         .value = "FILE",                                                                          \
         .help = "only these accounts may enlist; their silence then never blocks a segment"},     \
        {.name = "held",                                                                           \
         .kind = OPTION_REAL,                                                                      \
         .value = "X",                                                                             \
         .fallback = "0.2",                                                                        \
         .help = "share of the reward that is held until delivery, at most 0.5"},                  \
        JOB_TERMS_PERIOD("segment-period", "1d",                                                   \
                         "the solver must commit a segment at least this often"),                  \
        JOB_TERMS_PERIOD("seal-period", "12h", "how long seats may replay and seal a verdict"),    \
        JOB_TERMS_PERIOD("reveal-period", "6h", "and then reveal it"),                             \
        JOB_TERMS_PERIOD("claim-period", "12h", "and then claims may come"),                       \
        JOB_TERMS_PERIOD("clock", "12h", "what each side of a dispute has for all of its moves"),  \
        JOB_TERMS_PERIOD("delivery-period", "3d",                                                  \
                         "after the last segment: how long the client may take to acknowledge"),   \
        {.name = "deadline",                                                                       \
         .kind = OPTION_DURATION,                                                                  \
         .value = "TIME",                                                                          \
         .fallback = "30d",                                                                        \
         .minimum = 60,                                                                            \
         .help = "from now until the last segment must be committed"},                             \
    {                                                                                              \
        .name = "salt", .kind = OPTION_INTEGER, .value = "N", .fallback = "0",                     \
        .help = "another number opens the same job once more"                                      \
    }
#define JOB_TERMS_OPTION_COUNT (24 + JOB_PRICE_OPTION_COUNT)

/* Fills in everything but the deadline. */
MUST_CHECK enum status job_terms_make(struct game_terms *terms, const struct job *job,
                                      const struct options *options, struct error *error);

/* The first option whose term differs on the ledger; NULL: none. The deadline does not count: it
 * was computed from an earlier now. */
const char *job_terms_differ(const struct game_terms *there, const struct game_terms *wanted);

/* What the closed forms say of terms. cost 0: what the fee suggests. */
struct economy job_terms_economy(const struct game_terms *terms, wei segment_cost);

/* The terms, what verifying costs, and what a cheat may expect. */
void job_terms_show(FILE *out, const struct game_terms *terms, const struct options *options);

#endif /* CLIENT_JOB_TERMS_H */
