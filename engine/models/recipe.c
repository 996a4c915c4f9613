/* recipe.c - see recipe.h. */
#include "engine/models/recipe.h"

#include <stddef.h>

#define SCHEDULE_ROW(NAME, text)  text,
#define OPTIMIZER_ROW(NAME, text) text,
static const char *const schedules[SCHEDULE_COUNT] = {SCHEDULES(SCHEDULE_ROW)};
static const char *const optimizers[OPTIMIZER_COUNT] = {OPTIMIZERS(OPTIMIZER_ROW)};

const char *schedule_name(enum schedule schedule)
{
    return (unsigned)schedule < SCHEDULE_COUNT ? schedules[schedule] : "unknown";
}

const char *optimizer_name(enum optimizer optimizer)
{
    return (unsigned)optimizer < OPTIMIZER_COUNT ? optimizers[optimizer] : "unknown";
}

/* Each "*" is remembered, and takes one letter more where the rest did not fit. */
bool recipe_fits(const char *pattern, const char *name)
{
    const char *star = NULL;
    const char *from = name;

    while (*name != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

bool recipe_rule_of(double *value, const struct recipe_rules *rules, const char *name)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        if (recipe_fits(rules->rules[i].pattern, name)) {
            *value = rules->rules[i].value;
            return true;
        }
    }
    return false;
}
