/*
 * recipe_options.h - the options of `job new` that say how a model learns, and what holds where
 * nobody says: as published recipes have it for a published base, and for small models otherwise.
 *
 * An option that would change nothing is refused: a job cannot be changed later.
 */
#ifndef CLIENT_RECIPE_RECIPE_OPTIONS_H
#define CLIENT_RECIPE_RECIPE_OPTIONS_H

#include "base/cli/options.h"
#include "engine/models/model.h"

#define RECIPE_STEPS_MAX 10000000

#define RECIPE_NUMBER(option, text)                                                                \
    {                                                                                              \
        .name = (option), .heading = "training", .kind = OPTION_REAL, .value = "X", .help = (text) \
    }
#define RECIPE_RULES(option, text)                                                                 \
    {                                                                                              \
        .name = (option), .heading = "training", .kind = OPTION_LIST, .value = "PATTERN=X",        \
        .help = (text)                                                                             \
    }

/* For a command's table. */
#define RECIPE_OPTIONS                                                                             \
    {.name = "optimizer",                                                                          \
     .heading = "training",                                                                        \
     .kind = OPTION_CHOICE,                                                                        \
     .value = "NAME",                                                                              \
     .choices = "adamw|sgd|lion|muon",                                                             \
     .fallback = "adamw",                                                                          \
     .help = "how parameters are updated; muon is for the matrices between layers, and adamw "     \
             "for the rest"},                                                                      \
        {.name = "schedule",                                                                       \
         .heading = "training",                                                                    \
         .kind = OPTION_TEXT,                                                                      \
         .value = "NAME",                                                                          \
         .choices = "constant|linear|cosine|cosine-restarts|polynomial|inverse-root|stable-decay", \
         .fallback = "linear",                                                                     \
         .help = "how the learning rate falls after the warm-up, or a file with a rate for each "  \
                 "step, one a line; the words are constant, linear, cosine, cosine-restarts, "     \
                 "polynomial, inverse-root, stable-decay"},                                        \
        {.name = "rate",                                                                           \
         .heading = "training",                                                                    \
         .often = true,                                                                            \
         .kind = OPTION_REAL,                                                                      \
         .value = "X",                                                                             \
         .help = "learning rate after the warm-up (default: 0.001; with --base 0.00002, of "       \
                 "adapters 0.0002; of lion a tenth)"},                                             \
        RECIPE_NUMBER("rate-min", "learning rate at the end (default: a tenth of the rate; with "  \
                                  "--base 0)"),                                                    \
        RECIPE_RULES("rate-of", "rate of the tensors whose name is like PATTERN; * stands for "    \
                                "any letters, as in '*.mlp.*=0.00001', and the first that fits "   \
                                "counts"),                                                         \
        {.name = "warmup",                                                                         \
         .heading = "training",                                                                    \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .maximum = RECIPE_STEPS_MAX,                                                              \
         .help = "steps of the warm-up (default: 20, or a tenth where there are not more steps)"}, \
        RECIPE_NUMBER("warmup-share", "steps of the warm-up, as a share of all of them"),          \
        {.name = "cycles",                                                                         \
         .heading = "training",                                                                    \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .minimum = 1,                                                                             \
         .maximum = 100000,                                                                        \
         .help = "how often the rate falls (cosine-restarts; default: 2)"},                        \
        RECIPE_NUMBER("power",                                                                     \
                      "exponent of the share of steps that is left (polynomial; default: 1)"),     \
        {.name = "cooldown",                                                                       \
         .heading = "training",                                                                    \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .minimum = 1,                                                                             \
         .maximum = RECIPE_STEPS_MAX,                                                              \
         .help = "the last steps, in which the rate falls (stable-decay; default: a tenth)"},      \
        RECIPE_NUMBER("decay", "weight decay of matrices (default: 0.1; with --base 0)"),          \
        RECIPE_RULES("decay-of", "the same of tensors by their names, also of vectors; as in "     \
                                 "--rate-of"),                                                     \
        {.name = "freeze",                                                                         \
         .heading = "training",                                                                    \
         .kind = OPTION_LIST,                                                                      \
         .value = "PATTERN",                                                                       \
         .help = "with --graph: leave the tensors whose name is like PATTERN as they are; they "   \
                 "are data then, of the file of --first-state"},                                   \
        RECIPE_NUMBER("beta1",                                                                     \
                      "share of the first moment that stays (adamw, lion; default: 0.9)"),         \
        RECIPE_NUMBER("beta2", "share of the second moment that stays, of lion of its moment "     \
                               "(default: 0.99; adamw with --base 0.999)"),                        \
        RECIPE_NUMBER("epsilon", "what AdamW adds to the root of the second moment (default: "     \
                                 "0.00000001)"),                                                   \
        RECIPE_NUMBER("momentum", "share of the momentum that stays (sgd, muon; default: 0.9, of " \
                                  "muon 0.95)"),                                                   \
        RECIPE_NUMBER("clip", "limit of the gradient's norm; 0: none (default: 1)"),               \
        RECIPE_NUMBER("label-smoothing", "share of each label that is spread over all of them "    \
                                         "(default: 0)"),                                          \
        RECIPE_NUMBER("z-loss", "how many times the square of the logarithm of the sum of "        \
                                "exponentials is added to the loss (default: 0)"),                 \
    {                                                                                              \
        .name = "gradient-norm", .heading = "training", .kind = OPTION_FLAG,                       \
        .help = "keep the norm of each step's gradient in the state; 'bundle steps' shows it"      \
    }
#define RECIPE_OPTION_COUNT 21

/* Once the folder of a base has been read, and whether it has adapters. */
MUST_CHECK enum status recipe_options_read(struct model_options *model,
                                           const struct options *options, struct error *error);

/* Once the data is measured: how many steps --steps or --epochs says, that a warm-up ends before
 * them, and the rates of a file. Release them also after a failure. */
MUST_CHECK enum status recipe_options_settle(struct model_options *model,
                                             const struct options *options, struct error *error);
void recipe_options_release(struct model_options *model);

#endif /* CLIENT_RECIPE_RECIPE_OPTIONS_H */
