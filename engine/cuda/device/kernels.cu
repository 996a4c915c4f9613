/*
 * kernels.cu - the device code of the plugin: the execution model, then every kernel's body; and
 * the table by which device.cu finds them.
 */
#include <assert.h>
#include <stdbool.h>

#include "engine/cuda/kernels/execution.cuh"

#include "base/sha256_numbers.h"
#include "engine/cuda/kernels/args.h"
#include "engine/cuda/kernels/packed.h"
#include "engine/ops/element.h"
#include "engine/ops/view.h"
#include "engine/rules/rule_list.h"

/* ---- the rules, in one unit so that they are inlined ----------------------- */

#include "engine/ops/contraction.c"
#include "engine/ops/philox.c"
#include "engine/ops/scalar.c"

#include "engine/rules/rules_general.c"
#include "engine/rules/rules_integers.c"
#include "engine/rules/rules_index.c"
#include "engine/rules/rules_reduce.c"
#include "engine/rules/rules_rows.c"
#include "engine/rules/rules_update.c"
/* Two families each have a private struct of this name. */
#define place    contraction_place
#define place_of contraction_place_of
#include "engine/rules/rules_contraction.c"
#undef place
#undef place_of
#include "engine/rules/rules_image.c"

#define RULE_KEY(kind, output) ((uint32_t)(kind)*OP_OUTPUTS_MAX + (uint32_t)(output))
#define RULE_ENTRY(kind, output, rule)                                                             \
    case RULE_KEY(kind, output):                                                                   \
        return rule(call, index);

RULE uint32_t rule_element(const struct rule_call *call, uint32_t output, uint64_t index)
{
    switch (RULE_KEY(call->op->kind, output)) {
        RULE_LIST
    default:
        return rule_split(call, output, index);
    }
}

/* ---- the kernels ------------------------------------------------------------ */

#include "engine/cuda/kernels/rule_body.h"

#include "engine/cuda/kernels/epilogue_body.h"
#include "engine/cuda/kernels/quads_body.h"
#include "engine/cuda/kernels/products/tile_body.h"

#include "engine/cuda/kernels/products/fragments_body.h"

#include "engine/cuda/kernels/products/contract_body.h"
#include "engine/cuda/kernels/products/dots_body.h"
#include "engine/cuda/kernels/hash_body.h"
#include "engine/cuda/kernels/quantize_body.h"

#include "engine/cuda/kernels/lists_body.h"

#include "engine/cuda/kernels/columns_body.h"

#include "engine/cuda/kernels/rows_body.h"

#include "engine/cuda/kernels/held_body.h"

#include "engine/cuda/kernels/products/strip_body.h"

#include "engine/cuda/kernels/products/strip_columns_body.h"

#include "engine/cuda/kernels/products/attention_body.h"
#include "engine/cuda/kernels/products/attention_long_body.h"

#include "engine/cuda/kernels/entropy_body.h"

#include "engine/cuda/kernels/tiles_body.h"

/* hopper.cu has these. */
extern "C" __global__ void kernel_hopper_narrow(const __grid_constant__ struct contract_args args);
extern "C" __global__ void
kernel_hopper_narrow_half(const __grid_constant__ struct contract_args args);

#define KERNEL_ADDRESS(number, function, arguments) (const void *)(function),

extern "C" const void *const cuda_kernel_table[KERNEL_COUNT] = {KERNEL_LIST(KERNEL_ADDRESS)};
