/* elementwise_neon.c - the elementwise kernels for NEON: see elementwise_body.h. */
#define ELEMENTWISE_KERNELS elementwise_kernels_neon

#include "engine/cpu/elementwise_body.h"
