/* rows_avx2.c - the row kernels for AVX2 and FMA: see rows_body.h. */
#define ROWS_KERNELS rows_kernels_avx2
#include "engine/cpu/rows_body.h"
