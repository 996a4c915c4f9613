/* token_kernels_avx512.c - a decoder's kernels for AVX-512: see token_kernels_body.h. */
#define TOKEN_KERNELS token_kernels_avx512
#include "engine/decode/token_kernels_body.h"
