/* rows_avx512.c - the row kernels for AVX-512: see rows_body.h. */
#define ROWS_KERNELS rows_kernels_avx512
#include "engine/cpu/rows_body.h"
