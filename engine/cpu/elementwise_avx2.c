/* elementwise_avx2.c - the elementwise kernels for AVX2 and FMA: see elementwise_body.h. */
#define ELEMENTWISE_KERNELS elementwise_kernels_avx2
#include "engine/cpu/elementwise_body.h"
