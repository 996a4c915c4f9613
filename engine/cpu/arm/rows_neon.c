/* rows_neon.c - the row kernels for NEON: see rows_body.h. */
#define ROWS_KERNELS rows_kernels_neon

#include "engine/cpu/rows_body.h"
