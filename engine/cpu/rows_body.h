/*
 * rows_body.h - the kernels along rows, written once for every instruction set.
 *
 * rows_avx2.c and rows_avx512.c each define ROWS_KERNELS, their entry point, and include this.
 * Threads take whole rows, so no bit depends on their number.
 */
#ifndef ENGINE_CPU_ROWS_BODY_H
#define ENGINE_CPU_ROWS_BODY_H

#include "engine/cpu/norms_body.h"
#include "engine/cpu/softmax_body.h"

#define DEFINE_RUN(name)                                                                           \
    static void run_##name(const struct kernel_call *call)                                         \
    {                                                                                              \
        run_rows(call, span_##name);                                                               \
    }

DEFINE_RUN(row_sum)
DEFINE_RUN(layer_norm)
DEFINE_RUN(layer_norm_grad)
DEFINE_RUN(rms_norm)
DEFINE_RUN(rms_norm_grad)
DEFINE_RUN(softmax)
DEFINE_RUN(softmax_grad)
DEFINE_RUN(cross_entropy)
DEFINE_RUN(cross_entropy_grad)

void ROWS_KERNELS(struct kernel_table *table)
{
    struct kernel *kernels = table->kernels;

    kernels[OP_ROW_SUM].run = run_row_sum;
    kernels[OP_LAYER_NORM].run = run_layer_norm;
    kernels[OP_LAYER_NORM_GRAD].run = run_layer_norm_grad;
    kernels[OP_RMS_NORM].run = run_rms_norm;
    kernels[OP_RMS_NORM_GRAD].run = run_rms_norm_grad;
    kernels[OP_SOFTMAX].run = run_softmax;
    kernels[OP_SOFTMAX_GRAD].run = run_softmax_grad;
    kernels[OP_CROSS_ENTROPY].run = run_cross_entropy;
    kernels[OP_CROSS_ENTROPY_GRAD].run = run_cross_entropy_grad;
}

#endif /* ENGINE_CPU_ROWS_BODY_H */
