/* sampler.c - see sampler.h. */
#include "engine/decode/sampler.h"

#include <stdlib.h>

#include "engine/ops/float_control.h"
#include "engine/ops/fold.h"
#include "engine/ops/philox.h"
#include "engine/ops/real.h"
#include "engine/ops/scalar.h"

enum status sampler_init(struct sampler *sampler, const struct sampler_rule *rule,
                         uint32_t vocabulary, struct error *error)
{
    const size_t size = ((size_t)vocabulary + 1) * sizeof(float);

    *sampler = (struct sampler){.rule = *rule, .vocabulary = vocabulary};
    if (!(rule->temperature == 0.0f || (rule->temperature >= SAMPLER_TEMPERATURE_LEAST &&
                                        rule->temperature <= SAMPLER_TEMPERATURE_MAX))) {
        (void)error_set(error, STATUS_USAGE, "a temperature of %g; it must be 0 or from %g to %g",
                        (double)rule->temperature, (double)SAMPLER_TEMPERATURE_LEAST,
                        (double)SAMPLER_TEMPERATURE_MAX);
        error_advise(error, "0 takes the likeliest token each time");
        return STATUS_USAGE;
    }
    if (!(rule->top_p > 0.0f)) {
        return error_set(error, STATUS_USAGE,
                         "a top-p of %g; it must be above 0, and from 1 on it is off",
                         (double)rule->top_p);
    }
    sampler->z = malloc(size);
    sampler->p = malloc(size);
    sampler->sorted = malloc(size);
    if (sampler->z == NULL || sampler->p == NULL || sampler->sorted == NULL) {
        sampler_release(sampler);
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u tokens", vocabulary);
    }
    return STATUS_OK;
}

void sampler_release(struct sampler *sampler)
{
    free(sampler->z);
    free(sampler->p);
    free(sampler->sorted);
    *sampler = (struct sampler){0};
}

void sampler_restart(struct sampler *sampler, uint64_t seed)
{
    sampler->rule.seed = seed;
    sampler->drawn = 0;
}

static uint32_t first_largest(const float *numbers, uint32_t count)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < count; i++) {
        best = numbers[i] > numbers[best] ? i : best;
    }
    return best;
}

/* The fold of those that are at least tau; of all the others it has zeros. */
static float sum_from(const float *p, uint32_t count, float tau)
{
    struct fold parts;

    fold_init(&parts);
    for (uint32_t from = 0; from < count; from += FOLD_CHUNK) {
        const uint32_t to = count - from < FOLD_CHUNK ? count : from + FOLD_CHUNK;
        struct fold chunk;

        fold_init(&chunk);
        for (uint32_t i = from; i < to; i++) {
            fold_add(&chunk, p[i] >= tau ? p[i] : 0.0f);
        }
        fold_add(&parts, fold_total(&chunk));
    }
    return fold_total(&parts);
}

static void take_softmax(struct sampler *sampler)
{
    const uint32_t count = sampler->vocabulary;
    const float *z = sampler->z;
    float *p = sampler->p;
    float maximum = z[first_largest(z, count)];
    float inverse;

    maximum = maximum == 0.0f ? 0.0f : maximum;
    for (uint32_t i = 0; i < count; i++) {
        p[i] = scalar_exp(z[i] - maximum);
    }
    inverse = 1.0f / sum_from(p, count, 0.0f);
    for (uint32_t i = 0; i < count; i++) {
        p[i] = p[i] * inverse;
    }
}

static int larger_first(const void *a, const void *b)
{
    const float x = *(const float *)a;
    const float y = *(const float *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* The largest p that has enough of the probability: sums only grow as tau falls. */
static float threshold_of_share(const struct sampler *sampler)
{
    uint32_t low = 0;
    uint32_t high = sampler->vocabulary - 1;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (sum_from(sampler->p, sampler->vocabulary, sampler->sorted[middle]) >=
            sampler->rule.top_p) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return sampler->sorted[low];
}

static void find_thresholds(struct sampler_choice *choice, struct sampler *sampler)
{
    const uint32_t count = sampler->vocabulary;
    const uint32_t k = sampler->rule.top_k;

    choice->threshold_p = choice->threshold_k = 0.0f;
    if (sampler->rule.top_p >= 1.0f && (k == 0 || k > count)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        sampler->sorted[i] = sampler->p[i];
    }
    qsort(sampler->sorted, count, sizeof(float), larger_first);
    if (k != 0 && k <= count) {
        choice->threshold_k = sampler->sorted[k - 1];
    }
    if (sampler->rule.top_p < 1.0f) {
        choice->threshold_p = threshold_of_share(sampler);
    }
}

/* -log of the exponential draw: what is added to z. */
static float noise_of(uint32_t word)
{
    const float scaled = (float)word * 0x1p-32f;
    const float v = scaled + 0x1p-33f;
    float e;

    if (v < 0x1p-12f) {
        const float square = v * v;

        e = v + square * 0.5f;
    } else {
        e = -scalar_log(1.0f - v);
    }
    return scalar_log(e);
}

static uint32_t draw_token(const struct sampler *sampler, const struct sampler_choice *choice)
{
    const uint32_t stream = sampler->drawn / SAMPLER_SLICE;
    const uint64_t first = (uint64_t)(sampler->drawn % SAMPLER_SLICE) * sampler->vocabulary;
    struct philox_block block = {{0}};
    uint64_t block_number = UINT64_MAX;
    uint32_t best = UINT32_MAX;
    float most = 0.0f;

    for (uint32_t i = 0; i < sampler->vocabulary; i++) {
        const uint64_t element = first + i;
        float height;

        if (!(sampler->p[i] >= choice->threshold_p && sampler->p[i] >= choice->threshold_k)) {
            continue;
        }
        if (element >> 2 != block_number) {
            block_number = element >> 2;
            block = philox_draw(block_number, stream, 0, sampler->rule.seed);
        }
        height = sampler->z[i] - noise_of(block.words[element & 3]);
        if (best == UINT32_MAX || height > most) {
            best = i;
            most = height;
        }
    }
    return best;
}

void sampler_next(struct sampler_choice *choice, struct sampler *sampler, const float *logits)
{
    const uint64_t control = float_control_take();

    *choice = (struct sampler_choice){0};
    if (sampler->rule.temperature == 0.0f) {
        choice->token = first_largest(logits, sampler->vocabulary);
    } else {
        const float factor = 1.0f / sampler->rule.temperature;

        for (uint32_t i = 0; i < sampler->vocabulary; i++) {
            sampler->z[i] = logits[i] * factor;
        }
        take_softmax(sampler);
        find_thresholds(choice, sampler);
        choice->token = draw_token(sampler, choice);
    }
    sampler->drawn++;
    float_control_give_back(control);
}
