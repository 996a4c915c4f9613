/*
 * memory_plan.h - what the plan says of a step of GPT-2 124M on one sequence, by its length: the
 * table of docs/OPERATIONS.md. Needs no device.
 */
#ifndef TESTS_SUPPORT_DEVICE_MEMORY_PLAN_H
#define TESTS_SUPPORT_DEVICE_MEMORY_PLAN_H

#include "engine/models/model.h"
#include "engine/plan/backend.h"

#define MEMORY_PLAN_LENGTHS 6
#define MEMORY_PLAN_TEXT    128

extern const uint32_t memory_plan_lengths[MEMORY_PLAN_LENGTHS];

/* MiB on one machine. */
struct memory_plan {
    uint64_t whole; /* all heads at once */
    uint64_t chip;  /* the same on a GPU, none of whose variants is disabled; else 0 */
    uint64_t kept;
    uint64_t again; /* with --recompute */
};

/* A failure ends the program with its error. isa: of the processor; a GPU's plan has
 * none. */
void memory_plan_model(struct model *model, uint32_t batch, uint32_t length);
struct memory_plan memory_plan_of(const struct tape *tape, const struct backend *backend,
                                  enum isa isa);

/* A row of the table. */
void memory_plan_text(char text[MEMORY_PLAN_TEXT], uint32_t length, const struct memory_plan *cpu,
                      const struct memory_plan *gpu);

#endif /* TESTS_SUPPORT_DEVICE_MEMORY_PLAN_H */
