/*
 * parallel.h - cuts a kernel's work among threads, by position alone: no bit depends on the number
 * of threads.
 */
#ifndef ENGINE_CPU_PARALLEL_H
#define ENGINE_CPU_PARALLEL_H

#include "engine/ops/kernel.h"

/* With fewer items per thread, another thread costs more than it gains. */
#define PARALLEL_SPAN_LEAST 8192

/* Computes items [begin, end) of the call. */
typedef void span_function(const struct kernel_call *call, size_t begin, size_t end);

/* span over [0, count), cut among the call's threads at multiples of 64 items. */
void parallel_spans(const struct kernel_call *call, size_t count, span_function *span);

/* As parallel_spans(), for rows of `columns` elements that may differ in cost: threads take a few
 * rows at a time. */
void parallel_rows(const struct kernel_call *call, size_t rows, size_t columns,
                   span_function *span);

#endif /* ENGINE_CPU_PARALLEL_H */
