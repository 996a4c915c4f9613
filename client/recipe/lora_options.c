/* lora_options.c - see lora_options.h. */
#include "client/recipe/lora_options.h"

#include <stdio.h>

#include "engine/models/layouts.h"

/* A list of names, which is text. */
static enum status take_names(char names[LORA_TARGETS_MAX], const char *text, const char *option,
                              struct error *error)
{
    return snprintf(names, LORA_TARGETS_MAX, "%s", text) < LORA_TARGETS_MAX
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--%s: longer than %d bytes", option,
                           LORA_TARGETS_MAX - 1);
}

static enum status check_there(const struct lora *lora, const struct options *options,
                               struct error *error)
{
    static const char *const parts[] = {"lora-alpha", "lora-stabilized", "lora-dropout",
                                        "lora-plus",  "target",          "train-whole"};

    for (size_t i = 0; lora->rank == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (options_flagged(options, parts[i])) {
            return error_set(error, STATUS_USAGE, "--%s says nothing without --lora", parts[i]);
        }
    }
    return lora->rank != 0 && options_flag(options, "inference")
               ? error_set(error, STATUS_USAGE, "--inference learns nothing, so it has no --lora")
               : STATUS_OK;
}

enum status lora_options_read(struct model_options *model, const struct options *options,
                              struct error *error)
{
    struct lora *lora = &model->lora;
    const bool given = options_text(options, "adapter") != NULL;
    const char *targets = options_text(options, "target");
    const char *whole = options_text(options, "train-whole");

    if (!given) {
        lora->rank = (uint32_t)options_number(options, "lora");
    }
    TRY(check_there(lora, options, error));
    if (lora->rank == 0) {
        return STATUS_OK;
    }
    if (given && (options_flag(options, "lora-stabilized") || whole != NULL)) {
        return error_set(
            error, STATUS_USAGE,
            "--adapter: its adapters count A / RANK times, beside frozen modules; leave "
            "--lora-stabilized and --train-whole out");
    }
    if (!given) {
        lora->alpha = options_given(options, "lora-alpha") ? options_real(options, "lora-alpha")
                                                           : 2.0 * lora->rank;
        TRY(take_names(lora->targets, targets == NULL ? model->layout->targets : targets, "target",
                       error));
    }
    lora->dropout = options_real(options, "lora-dropout");
    lora->stabilized = options_flag(options, "lora-stabilized");
    model->recipe.plus = options_real(options, "lora-plus");
    if (options_given(options, "lora-plus") && !(model->recipe.plus > 0.0)) {
        return error_set(error, STATUS_USAGE, "--lora-plus: more than 0 times as fast");
    }
    return take_names(lora->whole, whole == NULL ? "" : whole, "train-whole", error);
}
