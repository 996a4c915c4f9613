/*
 * fused_case.h - a tape run by the rules and by the CUDA backend's fast mode on the fake device,
 * with the variants that a test wants, and numbers of all sorts to run it on. What fails ends the
 * test.
 */
#ifndef TESTS_SUPPORT_DEVICE_FUSED_CASE_H
#define TESTS_SUPPORT_DEVICE_FUSED_CASE_H

#include "engine/plan/backend.h"
#include "engine/tape/builder_core.h"

enum sort { SORT_PLAIN, SORT_SUBNORMAL, SORT_NASTY, SORT_ZEROS, SORTS };

/* disabled: as launcher.disabled. The machine is the caller's. */
struct machine *fused_open(const struct tape *tape, uint32_t disabled);
struct machine *fused_rules(const struct tape *tape);

/* What is disabled where only one variant is not; of VARIANT_COUNT: nothing. */
uint32_t fused_disabled_but(uint32_t variant);

/* The same, and what the variant multiplies is multiplied by halves. */
uint32_t fused_disabled_but_halves(uint32_t variant);

/* The same numbers for every machine of a tape. */
void fused_give(struct machine *machine, const struct tape *tape, enum sort sort);

/* Every tensor that can be read, bit by bit. */
void fused_compare(struct machine *rules, struct machine *fused, const char *what);

/* Takes the builder. */
struct tape *fused_finish(struct builder *builder);

#endif /* TESTS_SUPPORT_DEVICE_FUSED_CASE_H */
