/* recipe_options.c - see recipe_options.h. */
#include "client/recipe/recipe_options.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/recipe/rate_file.h"

/* As published recipes have them: the Alpaca of Stanford, and QLoRA. */
#define BASE_RATE      2e-5
#define BASE_RATE_LORA 2e-4
#define BASE_BETA2     0.999

#define LION_SHARE    0.1 /* of AdamW's rate: the paper has 3 to 10 times less */
#define LION_BETA2    0.99
#define MUON_MOMENTUM 0.95
#define CYCLES_USUAL  2

#define ALL_BITS(COUNT) ((1U << (COUNT)) - 1)

/* ---- which options say something ------------------------------------------ */

/* Options that are not listed go with every optimizer and schedule. */
static const struct {
    const char *option;
    uint32_t optimizers;
    uint32_t schedules;
} uses[] = {
    {"beta1", ALL_BITS(OPTIMIZER_COUNT) & ~(1U << OPTIMIZER_SGD), ALL_BITS(SCHEDULE_COUNT)},
    {"beta2", ALL_BITS(OPTIMIZER_COUNT) & ~(1U << OPTIMIZER_SGD), ALL_BITS(SCHEDULE_COUNT)},
    {"epsilon", 1U << OPTIMIZER_ADAMW | 1U << OPTIMIZER_MUON, ALL_BITS(SCHEDULE_COUNT)},
    {"momentum", 1U << OPTIMIZER_SGD | 1U << OPTIMIZER_MUON, ALL_BITS(SCHEDULE_COUNT)},
    {"rate", ALL_BITS(OPTIMIZER_COUNT), ALL_BITS(SCHEDULE_LISTED)},
    {"rate-min", ALL_BITS(OPTIMIZER_COUNT), /* a constant rate is never below it */
     ALL_BITS(SCHEDULE_LISTED) & ~(1U << SCHEDULE_INVERSE_ROOT)},
    {"warmup", ALL_BITS(OPTIMIZER_COUNT), ALL_BITS(SCHEDULE_LISTED)},
    {"warmup-share", ALL_BITS(OPTIMIZER_COUNT), ALL_BITS(SCHEDULE_LISTED)},
    {"cycles", ALL_BITS(OPTIMIZER_COUNT), 1U << SCHEDULE_RESTARTS},
    {"power", ALL_BITS(OPTIMIZER_COUNT), 1U << SCHEDULE_POLYNOMIAL},
    {"cooldown", ALL_BITS(OPTIMIZER_COUNT), 1U << SCHEDULE_STABLE_DECAY},
};

static enum status check_uses(const struct model_options *model, const struct options *options,
                              struct error *error)
{
    const char *what =
        model->schedule == SCHEDULE_LISTED ? "of a file" : schedule_name(model->schedule);

    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        if (!options_flagged(options, uses[i].option)) {
            continue;
        }
        if ((uses[i].optimizers & 1U << model->optimizer) == 0) {
            return error_set(error, STATUS_USAGE, "--%s says nothing of the optimizer %s",
                             uses[i].option, optimizer_name(model->optimizer));
        }
        if ((uses[i].schedules & 1U << model->schedule) == 0) {
            return error_set(error, STATUS_USAGE, "--%s says nothing of the schedule %s",
                             uses[i].option, what);
        }
    }
    return options_flagged(options, "warmup") && options_flagged(options, "warmup-share")
               ? error_set(error, STATUS_USAGE, "--warmup and --warmup-share say the same")
               : STATUS_OK;
}

/* A job without training has none of it. */
static enum status check_inference(const struct options *options, struct error *error)
{
    static const char *const names[] = {"rate-of", "decay-of", "label-smoothing", "z-loss",
                                        "gradient-norm"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (options_flagged(options, names[i])) {
            return error_set(error, STATUS_USAGE, "--inference learns nothing, so it has no --%s",
                             names[i]);
        }
    }
    return STATUS_OK;
}

/* ---- what holds where nobody says ------------------------------------------- */

/* The model's own defaults are those of small models that begin from noise. */
static void take_defaults(struct model_options *model, bool base)
{
    if (base) {
        model->rate = model->lora.rank == 0 ? BASE_RATE : BASE_RATE_LORA;
        model->decay = 0.0;
        model->beta2 = BASE_BETA2;
    }
    if (model->optimizer == OPTIMIZER_LION) {
        model->rate *= LION_SHARE;
        model->beta2 = LION_BETA2;
    }
    if (model->optimizer == OPTIMIZER_MUON) {
        model->momentum = MUON_MOMENTUM;
    }
    model->recipe.cycles = CYCLES_USUAL;
}

static void take_real(double *field, const struct options *options, const char *name)
{
    if (options_given(options, name)) {
        *field = options_real(options, name);
    }
}

static void take_count(uint32_t *field, const struct options *options, const char *name)
{
    if (options_given(options, name)) {
        *field = (uint32_t)options_number(options, name);
    }
}

/* ---- single tensors ------------------------------------------------------------ */

/* "PATTERN=X" */
static enum status take_rule(struct recipe_rule *rule, const char *text, const char *option,
                             struct error *error)
{
    const char *equals = strrchr(text, '=');
    const size_t length = equals == NULL ? 0 : (size_t)(equals - text);
    char *end = NULL;

    if (length == 0 || length >= RECIPE_PATTERN_MAX || equals[1] < '.' || equals[1] > '9') {
        return error_set(error, STATUS_USAGE,
                         "--%s %.60s: it must be PATTERN=X, with at most %d letters and a number "
                         "such as 0.00001",
                         option, text, RECIPE_PATTERN_MAX - 1);
    }
    (void)snprintf(rule->pattern, sizeof(rule->pattern), "%.*s", (int)length, text);
    rule->value = strtod(equals + 1, &end);
    return *end == '\0' && isfinite(rule->value)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--%s: '%.40s' is no number", option, equals + 1);
}

static enum status count_rules(size_t *count, const struct options *options, const char *option,
                               struct error *error)
{
    *count = options_list_count(options, option);
    return *count <= RECIPE_RULES_MAX
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--%s: %zu times; at most %d", option, *count,
                           RECIPE_RULES_MAX);
}

static enum status take_rules(struct recipe_rules *rules, const struct options *options,
                              const char *option, struct error *error)
{
    size_t count;

    TRY(count_rules(&count, options, option, error));
    for (size_t i = 0; i < count; i++) {
        TRY(take_rule(&rules->rules[i], options_list_item(options, option, i), option, error));
    }
    rules->count = (uint32_t)count;
    return STATUS_OK;
}

static enum status take_patterns(struct recipe_rules *rules, const struct options *options,
                                 const char *option, struct error *error)
{
    size_t count;

    TRY(count_rules(&count, options, option, error));
    for (size_t i = 0; i < count; i++) {
        const char *text = options_list_item(options, option, i);

        if (text[0] == '\0' || strlen(text) >= RECIPE_PATTERN_MAX) {
            return error_set(error, STATUS_USAGE, "--%s %.60s: a pattern has 1 to %d letters",
                             option, text, RECIPE_PATTERN_MAX - 1);
        }
        (void)snprintf(rules->rules[i].pattern, sizeof(rules->rules[i].pattern), "%s", text);
    }
    rules->count = (uint32_t)count;
    return STATUS_OK;
}

/* ---- the whole -------------------------------------------------------------------- */

static enum optimizer optimizer_of(const struct options *options)
{
    const char *name = options_text(options, "optimizer");
    uint32_t optimizer = 0;

    while (strcmp(optimizer_name((enum optimizer)optimizer), name) != 0) {
        optimizer++; /* the table lists the same words */
    }
    return (enum optimizer)optimizer;
}

/* What is no name of a schedule is the name of a file. */
static enum schedule schedule_of(const struct options *options)
{
    const char *name = options_text(options, "schedule");

    for (uint32_t i = 0; i < SCHEDULE_LISTED; i++) {
        if (strcmp(schedule_name((enum schedule)i), name) == 0) {
            return (enum schedule)i;
        }
    }
    return SCHEDULE_LISTED;
}

/* A rate that rises is nothing that a schedule here does. */
static enum status take_least_rate(struct model_options *model, const struct options *options,
                                   bool base, struct error *error)
{
    model->rate_min = base ? 0.0 : model->rate / 10.0;
    take_real(&model->rate_min, options, "rate-min");
    return model->rate_min <= model->rate
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--rate-min %g is above the rate of %g",
                           model->rate_min, model->rate);
}

enum status recipe_options_read(struct model_options *model, const struct options *options,
                                struct error *error)
{
    const bool base = options_text(options, "base") != NULL;
    struct recipe *recipe = &model->recipe;

    model->optimizer = optimizer_of(options);
    model->schedule = schedule_of(options);
    TRY(check_uses(model, options, error));
    if (options_flag(options, "inference")) {
        TRY(check_inference(options, error));
    }
    take_defaults(model, base);
    take_real(&model->rate, options, "rate");
    TRY(take_least_rate(model, options, base, error));
    take_count(&model->warmup, options, "warmup");
    take_count(&recipe->cycles, options, "cycles");
    take_count(&recipe->cooldown, options, "cooldown");
    take_real(&recipe->power, options, "power");
    take_real(&model->decay, options, "decay");
    take_real(&model->beta1, options, "beta1");
    take_real(&model->beta2, options, "beta2");
    take_real(&model->epsilon, options, "epsilon");
    take_real(&model->momentum, options, "momentum");
    take_real(&model->clip, options, "clip");
    take_real(&recipe->smoothing, options, "label-smoothing");
    take_real(&recipe->z_loss, options, "z-loss");
    recipe->gradient_norm = options_flag(options, "gradient-norm");
    TRY(take_rules(&recipe->rates, options, "rate-of", error));
    TRY(take_rules(&recipe->decays, options, "decay-of", error));
    return take_patterns(&recipe->frozen, options, "freeze", error);
}

/* ---- once the data is measured ------------------------------------------------------- */

/* As many as read every packed row --epochs times. */
static enum status count_epochs(struct model_options *model, const struct options *options,
                                struct error *error)
{
    const uint64_t step = (uint64_t)model->batch * model->accumulate;
    uint64_t rows;

    if (!model->packed) {
        (void)error_set(error, STATUS_USAGE, "--epochs counts packed rows, and --data has none");
        error_advise(error, "name a folder of 'lockstep data pack' with --data");
        return STATUS_USAGE;
    }
    if (options_flagged(options, "steps")) {
        return error_set(error, STATUS_USAGE, "--epochs says how many steps: leave --steps out");
    }
    rows = options_number(options, "epochs") * model->data_count; /* 10^6 times 2^31 */
    if (step == 0 || (rows + step - 1) / step > RECIPE_STEPS_MAX) {
        return error_set(error, STATUS_USAGE,
                         "--epochs: %" PRIu64 " rows, %" PRIu64
                         " of them in a step, are over the limit of %d steps",
                         rows, step, RECIPE_STEPS_MAX);
    }
    model->steps = (uint32_t)((rows + step - 1) / step);
    return STATUS_OK;
}

static enum status settle_warmup(struct model_options *model, const struct options *options,
                                 struct error *error)
{
    const double share = options_real(options, "warmup-share");

    if (options_given(options, "warmup-share")) {
        if (!(share < 1.0)) {
            return error_set(error, STATUS_USAGE, "--warmup-share: a share from 0 to below 1");
        }
        model->warmup = (uint32_t)ceil(share * model->steps);
        model->warmup = model->warmup < model->steps ? model->warmup : model->steps - 1;
    }
    if (options_flagged(options, "warmup") && model->warmup >= model->steps) {
        return error_set(error, STATUS_USAGE, "--warmup: it must end before the last of %u steps",
                         model->steps);
    }
    if (model->warmup >= model->steps) {
        model->warmup = model->steps / 10;
    }
    return STATUS_OK;
}

enum status recipe_options_settle(struct model_options *model, const struct options *options,
                                  struct error *error)
{
    struct recipe *recipe = &model->recipe;

    if (options_given(options, "epochs")) {
        TRY(count_epochs(model, options, error));
    }
    TRY(settle_warmup(model, options, error));
    if (recipe->cooldown == 0) {
        recipe->cooldown = (model->steps + 9) / 10;
    }
    if (model->schedule != SCHEDULE_LISTED) {
        return STATUS_OK;
    }
    return rate_file_read(&recipe->listed, options_text(options, "schedule"), model->steps, error);
}

void recipe_options_release(struct model_options *model)
{
    free(model->recipe.listed);
    model->recipe.listed = NULL;
}
