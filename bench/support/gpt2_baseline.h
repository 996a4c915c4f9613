/*
 * gpt2_baseline.h - the same GPT-2 training step the usual way: binary32, OpenBLAS, OpenMP, no
 * promise about a single bit. What ours is measured against.
 */
#ifndef BENCH_SUPPORT_GPT2_BASELINE_H
#define BENCH_SUPPORT_GPT2_BASELINE_H

#include "bench/support/gpt2_case.h"

struct gpt2_baseline;

/* Begins at the case's first state; borrows the case. NULL: no memory. */
struct gpt2_baseline *gpt2_baseline_new(const struct gpt2_case *one, int threads);
void gpt2_baseline_free(struct gpt2_baseline *baseline);

/* One step on the case's batch; returns the loss before the update. */
double gpt2_baseline_step(struct gpt2_baseline *baseline);

#endif /* BENCH_SUPPORT_GPT2_BASELINE_H */
