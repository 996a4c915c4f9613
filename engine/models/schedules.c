/*
 * schedules.c - the learning rate of every step, and AdamW's corrections. Data of the job, so
 * without a libm, as in tables.c.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/models/model_writer.h"

uint32_t schedule_columns(enum optimizer optimizer)
{
    return optimizer == OPTIMIZER_ADAMW || optimizer == OPTIMIZER_MUON ? 3 : 1;
}

/* x^y for x from 0 to 1 and y above 0. */
static double power_of(double x, double y)
{
    return x <= 0.0 ? 0.0 : table_exponential(y * model_log(x));
}

/* Where so many cosines end: at the last step, and not at the first of another. */
static double share_of_cycle(double share, uint32_t cycles)
{
    double turns = share * cycles;

    return share >= 1.0 ? 1.0 : turns - floor(turns);
}

/* What the rate has lost of its way to the least one, by a share of the steps behind the
 * warm-up. */
static double fallen_rate(const struct model_options *options, double share)
{
    switch (options->schedule) {
    case SCHEDULE_COSINE:
        return table_half_cosine(share);
    case SCHEDULE_RESTARTS:
        return table_half_cosine(share_of_cycle(share, options->recipe.cycles));
    case SCHEDULE_POLYNOMIAL:
        return 1.0 - power_of(1.0 - share, options->recipe.power);
    case SCHEDULE_LINEAR:
    case SCHEDULE_CONSTANT:
    case SCHEDULE_INVERSE_ROOT:
    case SCHEDULE_STABLE_DECAY:
    case SCHEDULE_LISTED:
    case SCHEDULE_COUNT:
        break;
    }
    return share;
}

/* Of a schedule that is constant up to its last steps. */
static double stable_rate(const struct model_options *options, uint32_t step)
{
    const uint32_t cooldown = options->recipe.cooldown;
    const uint32_t from = options->steps - cooldown;
    double share = step < from ? 0.0 : (step - from + 1.0) / cooldown;

    return options->rate + share * (options->rate_min - options->rate);
}

static double rate_at(const struct model_options *options, uint32_t step)
{
    double share;

    if (options->schedule == SCHEDULE_LISTED) {
        return (double)options->recipe.listed[step];
    }
    if (step < options->warmup) {
        return options->rate * (step + 1.0) / options->warmup;
    }
    if (options->schedule == SCHEDULE_INVERSE_ROOT) {
        return options->rate * sqrt(options->warmup / (step + 1.0));
    }
    if (options->schedule == SCHEDULE_STABLE_DECAY) {
        return stable_rate(options, step);
    }
    if (options->schedule == SCHEDULE_CONSTANT || options->steps <= options->warmup + 1) {
        return options->rate;
    }
    share = (double)(step - options->warmup) / (double)(options->steps - 1 - options->warmup);
    return options->rate + fallen_rate(options, share) * (options->rate_min - options->rate);
}

float *schedule_table(const struct model_options *options)
{
    uint32_t columns = schedule_columns(options->optimizer);
    float *table = calloc((size_t)options->steps * columns + 1, sizeof(*table));
    double power1 = 1.0;
    double power2 = 1.0;

    if (table == NULL) {
        return NULL;
    }
    for (uint32_t step = 0; step < options->steps; step++) {
        float *row = &table[(size_t)step * columns];

        row[0] = (float)rate_at(options, step);
        power1 *= options->beta1;
        power2 *= options->beta2;
        if (columns == 3) {
            row[1] = (float)(1.0 / (1.0 - power1));
            row[2] = (float)(1.0 / (1.0 - power2));
        }
    }
    return table;
}
