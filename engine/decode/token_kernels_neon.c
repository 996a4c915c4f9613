/* token_kernels_neon.c - a decoder's kernels for NEON: see token_kernels_body.h. */
#define TOKEN_KERNELS token_kernels_neon
#include "engine/decode/token_kernels_body.h"
