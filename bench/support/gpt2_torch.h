/*
 * gpt2_torch.h - the same GPT-2 training step in PyTorch: a child process that runs one step per
 * batch. It times itself, so the pipe is not part of the measurement.
 */
#ifndef BENCH_SUPPORT_GPT2_TORCH_H
#define BENCH_SUPPORT_GPT2_TORCH_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "bench/support/gpt2_case.h"

#define GPT2_TORCH_VERSION_MAX 32

struct gpt2_torch {
    pid_t child;
    FILE *to;
    FILE *from;
    char version[GPT2_TORCH_VERSION_MAX];
};

/*
 * Starts the child at the case's first state. bfloat16: products in that type, by autocast. Call
 * from the repository's root. Fails if Python, PyTorch or the script is missing, and the error says
 * which.
 */
MUST_CHECK enum status gpt2_torch_open(struct gpt2_torch *torch, const struct gpt2_case *one,
                                       int threads, bool bfloat16, struct error *error);
void gpt2_torch_close(struct gpt2_torch *torch);

/* One step on the case's batch. */
MUST_CHECK enum status gpt2_torch_step(struct gpt2_torch *torch, double *loss, double *seconds,
                                       const struct gpt2_case *one, struct error *error);

#endif /* BENCH_SUPPORT_GPT2_TORCH_H */
