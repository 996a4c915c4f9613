/*
 * recipe.h - how a model learns: the optimizer, the schedule of its rate, rates and decay of single
 * tensors, and what the loss has besides the cross-entropy.
 *
 * A recipe is a way to write a tape: none of this has a kind of its own. What a job does not use
 * leaves no trace in its tape. Inside engine/models/ the writers of updates and losses read it.
 */
#ifndef ENGINE_MODELS_RECIPE_H
#define ENGINE_MODELS_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

/* A row for each: a new one goes to the end. */
#define OPTIMIZERS(ROW)                                                                            \
    ROW(ADAMW, "adamw")                                                                            \
    ROW(SGD, "sgd")   /* with momentum */                                                          \
    ROW(LION, "lion") /* the sign of a moment: Chen et al., 2023 */                                \
    ROW(MUON, "muon") /* matrices are made orthogonal: Jordan, 2024; the others have AdamW */

#define SCHEDULES(ROW)                                                                             \
    ROW(CONSTANT, "constant")                                                                      \
    ROW(LINEAR, "linear")             /* warm-up, then a straight line to the least rate */        \
    ROW(COSINE, "cosine")             /* warm-up, then half a cosine to it */                      \
    ROW(RESTARTS, "cosine-restarts")  /* likewise, several times */                                \
    ROW(POLYNOMIAL, "polynomial")     /* a power of the share that is left */                      \
    ROW(INVERSE_ROOT, "inverse-root") /* one over the root of the step: Vaswani et al., 2017 */    \
    ROW(STABLE_DECAY, "stable-decay") /* constant, then a straight line over the last steps */     \
    ROW(LISTED, "FILE")               /* a rate for each step */

#define OPTIMIZER_ROW(NAME, text) OPTIMIZER_##NAME,
#define SCHEDULE_ROW(NAME, text)  SCHEDULE_##NAME,
enum optimizer { OPTIMIZERS(OPTIMIZER_ROW) OPTIMIZER_COUNT };
enum schedule { SCHEDULES(SCHEDULE_ROW) SCHEDULE_COUNT };
#undef OPTIMIZER_ROW
#undef SCHEDULE_ROW

const char *optimizer_name(enum optimizer optimizer); /* "adamw" */
const char *schedule_name(enum schedule schedule);

/* Numbers of single tensors: the first rule whose pattern the tensor's name fits. In a pattern "*"
 * stands for any letters and "?" for one. */
#define RECIPE_RULES_MAX   16
#define RECIPE_PATTERN_MAX 128 /* with the zero */
struct recipe_rules {
    uint32_t count;
    struct recipe_rule {
        char pattern[RECIPE_PATTERN_MAX];
        double value;
    } rules[RECIPE_RULES_MAX];
};

bool recipe_fits(const char *pattern, const char *name);

/* The number of the first rule that fits; false: none does. */
bool recipe_rule_of(double *value, const struct recipe_rules *rules, const char *name);

struct recipe {
    uint32_t cycles;            /* SCHEDULE_RESTARTS: cosines */
    double power;               /* SCHEDULE_POLYNOMIAL */
    uint32_t cooldown;          /* SCHEDULE_STABLE_DECAY: steps of the line */
    float *listed;              /* SCHEDULE_LISTED: `steps` rates; borrowed by models */
    struct recipe_rules rates;  /* where the schedule stands highest */
    struct recipe_rules decays; /* also of vectors */
    struct recipe_rules frozen; /* of a graph: tensors that stay as they are; values say nothing */
    double plus;                /* B of an adapter learns so many times as fast: LoRA+; 0: as A */
    double smoothing;           /* of labels: this share is spread over the whole vocabulary */
    double z_loss;              /* times the square of the logarithm of the sum of exponentials */
    bool gradient_norm;         /* is found and said for every step */
};

#endif /* ENGINE_MODELS_RECIPE_H */
