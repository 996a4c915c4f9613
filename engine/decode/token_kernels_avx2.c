/* token_kernels_avx2.c - a decoder's kernels for AVX2 and FMA: see token_kernels_body.h. */
#define TOKEN_KERNELS token_kernels_avx2
#include "engine/decode/token_kernels_body.h"
