/* elementwise_avx512.c - the elementwise kernels for AVX-512: see elementwise_body.h. */
#define ELEMENTWISE_KERNELS elementwise_kernels_avx512
#include "engine/cpu/elementwise_body.h"
