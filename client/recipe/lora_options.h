/*
 * lora_options.h - the options of `job new` that say what is trained beside the weights of a base:
 * adapters, and modules that are trained whole.
 */
#ifndef CLIENT_RECIPE_LORA_OPTIONS_H
#define CLIENT_RECIPE_LORA_OPTIONS_H

#include "base/cli/options.h"
#include "engine/models/model.h"

/* For a command's table. */
#define LORA_OPTIONS                                                                               \
    {.name = "lora",                                                                               \
     .heading = "model",                                                                           \
     .often = true,                                                                                \
     .kind = OPTION_INTEGER,                                                                       \
     .value = "RANK",                                                                              \
     .minimum = 1,                                                                                 \
     .maximum = 65535,                                                                             \
     .help = "train adapters of this rank beside the weights of --base, which stay as they are"},  \
        {.name = "adapter",                                                                        \
         .heading = "model",                                                                       \
         .kind = OPTION_TEXT,                                                                      \
         .value = "FOLDER",                                                                        \
         .help = "go on with these adapters of PEFT, of the same base: their rank, alpha and "     \
                 "layers"},                                                                        \
        {.name = "lora-alpha",                                                                     \
         .heading = "model",                                                                       \
         .kind = OPTION_REAL,                                                                      \
         .value = "A",                                                                             \
         .help = "adapters count A / RANK times (default: twice the rank)"},                       \
        {.name = "lora-stabilized",                                                                \
         .heading = "model",                                                                       \
         .kind = OPTION_FLAG,                                                                      \
         .help = "adapters count A / sqrt(RANK) times: rsLoRA"},                                   \
        {.name = "lora-dropout",                                                                   \
         .heading = "model",                                                                       \
         .kind = OPTION_REAL,                                                                      \
         .value = "P",                                                                             \
         .help = "share of their input that dropout drops (default: 0)"},                          \
        {.name = "lora-plus",                                                                      \
         .heading = "model",                                                                       \
         .kind = OPTION_REAL,                                                                      \
         .value = "X",                                                                             \
         .help = "B of an adapter learns X times as fast as A: LoRA+ (default: as fast)"},         \
        {.name = "target",                                                                         \
         .heading = "model",                                                                       \
         .kind = OPTION_TEXT,                                                                      \
         .value = "NAMES",                                                                         \
         .help = "layers that get adapters, such as q_proj,v_proj, or all-linear; the embedding "  \
                 "and the head too, by their names (default: as PEFT, q_proj,v_proj or the "       \
                 "joined layer)"},                                                                 \
    {                                                                                              \
        .name = "train-whole", .heading = "model", .kind = OPTION_TEXT, .value = "NAMES",          \
        .help = "beside adapters, modules whose own weights are trained, such as lm_head,norm: "   \
                "modules_to_save of PEFT; --first-state is then the base too"                      \
    }
#define LORA_OPTION_COUNT 8

/* Refuses what says something of adapters where there are none. Where --adapter gave rank, alpha
 * and layers, they stay. */
MUST_CHECK enum status lora_options_read(struct model_options *model, const struct options *options,
                                         struct error *error);

#endif /* CLIENT_RECIPE_LORA_OPTIONS_H */
