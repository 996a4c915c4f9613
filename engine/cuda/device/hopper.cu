/*
 * hopper.cu - the device code of the plugin that is for sm_90a alone: contraction by wgmma. A unit
 * of its own, so that a device of compute capability 9.0 finds one machine code for each kernel.
 */
#include <assert.h>
#include <stdbool.h>

/* The rules that both units of the plugin contain have names of their own here: nvcc leaves a
 * symbol for the host behind even of what only a device has. */
#define contraction_shape_of hopper_shape_of
#define quantize_place       hopper_quantize_place
#define contraction_lowest   hopper_lowest
#define contraction_partial  hopper_partial
#define contraction_finish   hopper_finish_sum
#define scalar_exp           hopper_exp
#define scalar_log           hopper_log
#define scalar_tanh          hopper_tanh

#include "engine/cuda/kernels/products/hopper.cuh"

#include "engine/cuda/kernels/args.h"
#include "engine/cuda/kernels/packed.h"
#include "engine/ops/element.h"

#include "engine/ops/contraction.c"
#include "engine/ops/scalar.c"

#include "engine/cuda/kernels/epilogue_body.h"
#include "engine/cuda/kernels/products/tile_body.h"

#if HOPPER_HERE
#include "engine/cuda/kernels/products/hopper_body.h"
#else
#define KERNEL_EMPTY(name) KERNEL_ALONE(name, struct contract_args, HOPPER_THREADS) {}
KERNEL_EMPTY(kernel_hopper_narrow)
KERNEL_EMPTY(kernel_hopper_narrow_half)
#endif
