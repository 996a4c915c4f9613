/*
 * torch_child.h - a peer in PyTorch: a script of bench/ in a child process, which reads its input
 * from a pipe and answers in lines of JSON. It times itself, so the pipe is not part of the
 * measurement.
 */
#ifndef BENCH_SUPPORT_TORCH_CHILD_H
#define BENCH_SUPPORT_TORCH_CHILD_H

#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "bench/support/bench.h"

#define TORCH_VERSION_MAX  32
#define TORCH_ARGUMENT_MAX 256
#define TORCH_ARGUMENTS    32

struct torch_child {
    const char *script; /* borrowed */
    pid_t child;
    FILE *to;
    FILE *from;
    char version[TORCH_VERSION_MAX]; /* of PyTorch, once it is ready */
    double memory;                   /* bytes that it held at most, of a script that says so */
};

/* Call from the repository's root. Fails if Python or the script is missing, and the error says
 * which. argv[0] of the script is arguments[0]. */
MUST_CHECK enum status torch_child_start(struct torch_child *torch, const char *script,
                                         char (*arguments)[TORCH_ARGUMENT_MAX], size_t count,
                                         struct error *error);

/* Waits until the script says that it is ready, or why it is not: PyTorch is missing. */
MUST_CHECK enum status torch_child_ready(struct torch_child *torch, struct error *error);

/* Of the step whose input was written. */
MUST_CHECK enum status torch_child_step(struct torch_child *torch, double *loss,
                                        struct bench_time *took, struct error *error);

/* Of one that did not start, too, if it was zero-filled. */
void torch_child_close(struct torch_child *torch);

#endif /* BENCH_SUPPORT_TORCH_CHILD_H */
