/* profile.c - see profile.h. */
#include "bench/support/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHAPES_SHOWN 24

/* Operations that share a line of the report. */
struct profile_group {
    const struct op *op; /* the first of them */
    double seconds;
    uint32_t count;
};

void profile_init(struct profile *profile, const struct tape *tape)
{
    profile->tape = tape;
    profile->seconds = calloc((size_t)tape->op_count + 1, sizeof(*profile->seconds));
}

void profile_release(struct profile *profile)
{
    free(profile->seconds);
    profile->seconds = NULL;
}

void profile_clear(struct profile *profile)
{
    if (profile->seconds != NULL) {
        memset(profile->seconds, 0, profile->tape->op_count * sizeof(*profile->seconds));
    }
}

static void note_seconds(void *context, uint32_t op, double seconds)
{
    struct profile *profile = context;

    if (profile->seconds != NULL) {
        profile->seconds[op] += seconds;
    }
}

void profile_watch(struct profile *profile, struct machine_options *options)
{
    options->timed = note_seconds;
    options->timed_context = profile;
}

static bool same_group(const struct op *a, const struct op *b, bool by_shape)
{
    return a->kind == b->kind && (!by_shape || (a->attribute_count == b->attribute_count &&
                                                memcmp(a->attributes, b->attributes,
                                                       a->attribute_count * sizeof(int64_t)) == 0));
}

static int compare_groups(const void *left, const void *right)
{
    const struct profile_group *a = left;
    const struct profile_group *b = right;

    return (a->seconds < b->seconds) - (a->seconds > b->seconds);
}

/* groups has room for every operation. */
static uint32_t make_groups(struct profile_group *groups, const struct profile *profile,
                            bool by_shape)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < profile->tape->op_count; i++) {
        const struct op *op = &profile->tape->ops[i];
        uint32_t at = 0;

        while (at < count && !same_group(groups[at].op, op, by_shape)) {
            at++;
        }
        if (at == count) {
            groups[count++] = (struct profile_group){.op = op};
        }
        groups[at].seconds += profile->seconds[i];
        groups[at].count++;
    }
    qsort(groups, count, sizeof(*groups), compare_groups);
    return count;
}

static void print_shape(const struct op *op)
{
    const int64_t *a = op->attributes;

    if (op->kind == OP_CONTRACT) {
        printf("  %" PRId64 " x (%" PRId64 ", %" PRId64 ", %" PRId64 ")%s", a[0] * a[1],
               a[2] * a[3], a[4] * a[5], a[CONTRACT_K], a[CONTRACT_CAUSAL] != 0 ? " causal" : "");
    } else if (op->kind == OP_QUANTIZE) {
        printf("  %" PRId64 " rows of %" PRId64 "%s, %" PRId64 " bits", a[0] * a[1] * a[2] * a[3],
               a[4] * a[5], a[QUANTIZE_STRIDES + 5] == 1 ? "" : " across", a[QUANTIZE_BITS]);
    } else {
        for (uint32_t i = 0; i < op->attribute_count && i < 4; i++) {
            printf("  %" PRId64, a[i]);
        }
    }
}

static void print_groups(const struct profile_group *groups, uint32_t count, int steps,
                         double total, bool shapes)
{
    for (uint32_t i = 0; i < count && (!shapes || i < SHAPES_SHOWN); i++) {
        printf("    %-20s %10.4f s %6.1f %%  %5u calls", op_kind_name(groups[i].op->kind),
               groups[i].seconds / steps, 100.0 * groups[i].seconds / total, groups[i].count);
        if (shapes) {
            print_shape(groups[i].op);
        }
        printf("\n");
    }
}

void profile_print(const struct profile *profile, const char *title, int steps)
{
    struct profile_group *groups = NULL;
    double total = 0;

    if (profile->seconds == NULL || steps == 0) {
        return;
    }
    groups = calloc((size_t)profile->tape->op_count + 1, sizeof(*groups));
    if (groups == NULL) {
        return;
    }
    for (uint32_t i = 0; i < profile->tape->op_count; i++) {
        total += profile->seconds[i];
    }
    printf("%s: %.4f s in operations, by kind:\n", title, total / steps);
    print_groups(groups, make_groups(groups, profile, false), steps, total, false);
    memset(groups, 0, profile->tape->op_count * sizeof(*groups));
    printf("  the most expensive shapes, batch x (M, N, K) or first attributes:\n");
    print_groups(groups, make_groups(groups, profile, true), steps, total, true);
    (void)fflush(stdout);
    free(groups);
}
