/*
 * job_terms.h - the terms of a job from options: what is not given follows from the reward and from
 * the class of --terms. And the terms for people, before any money leaves.
 */
#ifndef CLIENT_JOB_TERMS_H
#define CLIENT_JOB_TERMS_H

#include <stdio.h>

#include "base/cli/options.h"
#include "chain/game/game.h"
#include "chain/game/policy/economy.h"
#include "chain/game/policy/policy.h"
#include "client/board/job_price.h"
#include "proofs/job/job.h"

#define JOB_TERMS_AMOUNT(option, text)                                                             \
    {                                                                                              \
        .name = (option), .heading = "terms", .kind = OPTION_TEXT, .value = "AMOUNT",              \
        .help = (text)                                                                             \
    }
#define JOB_TERMS_PERIOD(option, text)                                                             \
    {                                                                                              \
        .name = (option), .heading = "terms", .kind = OPTION_DURATION, .value = "TIME",            \
        .minimum = 1, .maximum = GAME_PERIOD_MAX, .help = text " (default: by --terms)"            \
    }

/* For a command's table. */
#define JOB_TERMS_OPTIONS                                                                          \
    JOB_PRICE_OPTIONS,                                                                             \
        {.name = "reward",                                                                         \
         .heading = "terms",                                                                       \
         .often = true,                                                                            \
         .kind = OPTION_TEXT,                                                                      \
         .value = "AMOUNT",                                                                        \
         .help = "for the whole job, such as 0.5eth; it is split evenly over the segments"},       \
        {.name = "terms",                                                                          \
         .heading = "terms",                                                                       \
         .kind = OPTION_CHOICE,                                                                    \
         .value = "CLASS",                                                                         \
         .fallback = "standard",                                                                   \
         .choices = POLICY_CLASSES,                                                                \
         .help = "how much is verified: lean, a tenth of the segments by one seat; standard, a "   \
                 "fifth; careful, half of them by two; more where the job is short, and by two "   \
                 "where it has no keeper. Their "                                                  \
                 "periods are hours. quick is for trying, not for real money: all by one seat of " \
                 "a panel of one, in seconds (on a chain, minutes)"},                              \
        JOB_TERMS_AMOUNT("segment-cost", "what it costs a solver to compute a segment (default: "  \
                                         "its reward divided by 1.3)"),                            \
        JOB_TERMS_AMOUNT("stake", "what a solver loses when it is convicted (default: the whole "  \
                                  "reward)"),                                                      \
        {.name = "seats",                                                                          \
         .heading = "terms",                                                                       \
         .often = true,                                                                            \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .maximum = GAME_SEATS_MAX,                                                                \
         .help = "verifiers who must say that a covered segment is right (default: by --terms); "  \
                 "0: nobody is paid to look"},                                                     \
        {.name = "coverage",                                                                       \
         .heading = "terms",                                                                       \
         .often = true,                                                                            \
         .kind = OPTION_REAL,                                                                      \
         .value = "X",                                                                             \
         .help = "share of the segments that is covered, from 0 to 1 (default: by --terms)"},      \
        JOB_TERMS_AMOUNT("fee",                                                                    \
                         "what a seat earns with a segment (default: 1.3 times --segment-cost)"),  \
        JOB_TERMS_AMOUNT("bond", "what a seat puts up, and a claim at least (default: 20 fees)"),  \
        JOB_TERMS_AMOUNT("query-fee", "what a claimant pays the solver for each reply on the "     \
                                      "ledger (default: 0.001eth, or a tenth of the bond)"),       \
        {.name = "panel",                                                                          \
         .heading = "terms",                                                                       \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .maximum = GAME_PANEL_LEAST,                                                              \
         .help = "entries in the panel that a solver waits for (default: 12; quick: one)"},        \
        {.name = "solvers",                                                                        \
         .heading = "terms",                                                                       \
         .kind = OPTION_TEXT,                                                                      \
         .value = "FILE",                                                                          \
         .help = "only these accounts may solve: one address a line"},                             \
        {.name = "verifiers",                                                                      \
         .heading = "terms",                                                                       \
         .kind = OPTION_TEXT,                                                                      \
         .value = "FILE",                                                                          \
         .help = "only these accounts may enlist: one address a line"},                            \
        {.name = "keeper",                                                                         \
         .heading = "terms",                                                                       \
         .often = true,                                                                            \
         .kind = OPTION_TEXT,                                                                      \
         .value = "ADDRESS",                                                                       \
         .help = "the account of your 'job keep', a key of its own: it says that the states are "  \
                 "there, so that nobody can deny it (default: nobody; then a job has two seats)"}, \
        JOB_TERMS_PERIOD("segment-period",                                                         \
                         "the solver must commit a segment at least this often"),                  \
        JOB_TERMS_PERIOD("seal-period", "how long seats may replay and seal a verdict"),           \
        JOB_TERMS_PERIOD("reveal-period", "how long seats may reveal it after that"),              \
        JOB_TERMS_PERIOD("claim-period", "how long claims may come after that"),                   \
        JOB_TERMS_PERIOD("clock", "what each side of a dispute has for all of its moves"),         \
        {.name = "deadline",                                                                       \
         .heading = "terms",                                                                       \
         .kind = OPTION_DURATION,                                                                  \
         .value = "TIME",                                                                          \
         .minimum = 60,                                                                            \
         .help = "from now until the last segment must be committed (default: 14d; quick: 1h)"},   \
    {                                                                                              \
        .name = "salt", .heading = "terms", .kind = OPTION_INTEGER, .value = "N", .fallback = "0", \
        .help = "another number opens the same job once more"                                      \
    }
#define JOB_TERMS_OPTION_COUNT (20 + JOB_PRICE_OPTION_COUNT)

/* How long the solver has, from when the job is opened. */
uint64_t job_terms_deadline_s(const struct options *options);
/* Are they for people who try? */
bool job_terms_are_quick(const struct options *options);

/* Fills in everything but the deadline. */
MUST_CHECK enum status job_terms_make(struct game_terms *terms, const struct job *job,
                                      const struct options *options, struct error *error);

/* The first option whose term differs on the ledger; NULL: none. The deadline does not count: it
 * was computed from an earlier now. */
const char *job_terms_differ(const struct game_terms *there, const struct game_terms *wanted);

/* What the closed forms say of terms. cost 0: what the fee suggests. */
struct economy job_terms_economy(const struct game_terms *terms, wei segment_cost);

/* The terms, what verifying costs, and what a cheat may expect. */
void job_terms_show(FILE *out, const struct currency *currency, const struct game_terms *terms,
                    const struct options *options);

#endif /* CLIENT_JOB_TERMS_H */
