/*
 * small_model.h - one small version of each kind of model, on the committed fixtures.
 *
 * Small enough for the looped rules. Together they use both optimizers, every schedule, dropout,
 * clipping, grouped heads, a position table longer than the sequence, and four choices of bits and
 * block. A failure here ends the program with an error. Run from the root of the repository.
 */
#ifndef TESTS_SUPPORT_NUMERIC_SMALL_MODEL_H
#define TESTS_SUPPORT_NUMERIC_SMALL_MODEL_H

#include "engine/models/model.h"
#include "engine/plan/backend.h"
#include "tests/support/reference/reference.h"

#define SMALL_DIGEST_TEXT 65 /* SHA-256 in hexadecimal, and the ending NUL */

struct small_model {
    struct model model;
    uint8_t *data;
    uint8_t *labels; /* NULL for language models */
};

void small_model_options(struct model_options *options, enum model_kind kind);

/* Builds a model and loads its fixtures; sets counts and types of the data, also held out. */
void small_model_open(struct small_model *small, const struct model_options *options);

/* The bytes of a data tensor. Held out, if the options ask for it, is the last part of the data. */
const void *small_model_data(const struct small_model *small, uint32_t id);
void small_model_close(struct small_model *small);

/* A machine with the constants, the data and the first state. */
struct machine *small_machine_open(const struct small_model *small, enum isa isa, int thread_count,
                                   bool trace);

/* Gives the same to any machine of the model's tape. */
void small_machine_give(struct machine *machine, const struct small_model *small);

/* The reference with the same values. */
struct reference *small_reference_open(const struct small_model *small, enum reference_mode mode);

void small_machine_steps(struct machine *machine, uint32_t count);
float small_machine_loss(struct machine *machine);
bool small_machine_diverged(struct machine *machine);

/* SHA-256 of all states' bytes, in the tape's order. */
void small_machine_digest(char *text, struct machine *machine);

#endif /* TESTS_SUPPORT_NUMERIC_SMALL_MODEL_H */
