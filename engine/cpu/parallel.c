/* parallel.c - see parallel.h. */
#include "engine/cpu/parallel.h"

/* Four cache lines of floats: no two threads write to the same line. */
#define SPAN_MULTIPLE 64

/* Each thread takes rows about this many times. */
#define ROW_TURNS 8

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

void parallel_spans(const struct kernel_call *call, size_t count, span_function *span)
{
    size_t threads = smaller_of((size_t)call->thread_count, count / PARALLEL_SPAN_LEAST);

    if (threads <= 1) {
        span(call, 0, count);
        return;
    }

    size_t share = (count / threads + SPAN_MULTIPLE) / SPAN_MULTIPLE * SPAN_MULTIPLE;

#pragma omp parallel for num_threads((int)threads) schedule(static, 1)
    for (size_t t = 0; t < threads; t++) {
        size_t begin = smaller_of(t * share, count);
        size_t end = smaller_of(begin + share, count);

        if (begin < end) {
            span(call, begin, end);
        }
    }
}

void parallel_rows(const struct kernel_call *call, size_t rows, size_t columns, span_function *span)
{
    size_t threads = smaller_of((size_t)call->thread_count, rows * columns / PARALLEL_SPAN_LEAST);

    threads = smaller_of(threads, rows);
    if (threads <= 1) {
        span(call, 0, rows);
        return;
    }

    size_t share = rows / (threads * ROW_TURNS);

    share = share == 0 ? 1 : share;
#pragma omp parallel for num_threads((int)threads) schedule(dynamic, 1)
    for (size_t begin = 0; begin < rows; begin += share) {
        span(call, begin, smaller_of(begin + share, rows));
    }
}
