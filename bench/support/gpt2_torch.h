/*
 * gpt2_torch.h - the same GPT-2 training step in PyTorch: a child process that runs one step per
 * batch.
 */
#ifndef BENCH_SUPPORT_GPT2_TORCH_H
#define BENCH_SUPPORT_GPT2_TORCH_H

#include <stdbool.h>

#include "bench/support/gpt2_case.h"
#include "bench/support/torch_child.h"

/* Starts the child at the case's first state. bfloat16: products in that type, by autocast. */
MUST_CHECK enum status gpt2_torch_open(struct torch_child *torch, const struct gpt2_case *one,
                                       int threads, bool bfloat16, struct error *error);

/* One step on the case's batch. */
MUST_CHECK enum status gpt2_torch_step(struct torch_child *torch, double *loss,
                                       struct bench_time *took, const struct gpt2_case *one,
                                       struct error *error);

#endif /* BENCH_SUPPORT_GPT2_TORCH_H */
