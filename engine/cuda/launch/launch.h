/*
 * launch.h - which kernels an operation becomes, with which grids and arguments.
 *
 * No memory is allocated and nothing waits: the machine plans scratch of launch_scratch_size() and
 * hands everything in. A kind without a kernel of its own is served by its rules, output after
 * output, as is every operation whose tensors a kernel does not take.
 */
#ifndef ENGINE_CUDA_LAUNCH_LAUNCH_H
#define ENGINE_CUDA_LAUNCH_LAUNCH_H

#include "engine/cuda/kernels/args.h"
#include "engine/cuda/device/device.h"
#include "engine/tape/tape.h"

/* The ways to contract, fastest first. Each gives the same bits; paths.h has it proven. */
enum contract_path {
    CONTRACT_BY_PAIRS, /* wgmma by clusters of two blocks: sm_90a, large products of 14 bits */
    CONTRACT_BY_WGMMA, /* sm_90a */
    CONTRACT_BY_MMA,   /* from sm_75 on */
    CONTRACT_PLAINLY,  /* without tensor cores */
    CONTRACT_PATHS
};

/* Other ways that spare passes and launches; they share the bits of barred with the above. */
enum launch_way {
    WAY_DOTS = CONTRACT_PATHS, /* sums of rows without tiles */
    WAY_LISTS,                 /* many tensors at once: updates, squares of gradients */
    WAY_COLUMNS,               /* quantization across rows in one look */
    WAY_HELD,                  /* rows held in registers, and quantized at once */
    WAY_STRIPS,                /* operands across memory are held, and multiplied at once */
    WAY_ATTENTION,             /* rows of attention, from product to product, on chip */
    WAY_EPILOGUE,              /* element-wise operations where their operand is made */
    WAY_ENTROPY, /* rows of logits held in shared memory, up to their gradient's limbs */
    WAY_SUMS,    /* of operands across memory, without their limbs */
    WAY_VIEWS,   /* parts of rows are read and written where the whole lies */
    WAY_COUNT
};

/*
 * A cross-entropy's gradient that makes the losses and its own quantization too (fuse_entropy.c)
 * has these outputs, and these attributes behind its own.
 */
enum entropy_output {
    ENTROPY_DX,
    ENTROPY_PEAKS,
    ENTROPY_EXPONENTS,
    ENTROPY_Q,
    ENTROPY_LOSS,
    ENTROPY_MAX,
    ENTROPY_SUM,
    ENTROPY_OUTPUTS
};
enum { ENTROPY_BITS = CROSS_ENTROPY_ATTRIBUTES, ENTROPY_BLOCK, ENTROPY_ATTRIBUTES };

struct fusion; /* fuse.h */

struct launcher {
    const struct device_calls *calls;
    struct device *device;
    const struct tape *tape;
    const struct op *ops;        /* the tape's operations in device memory */
    void *const *memory;         /* per tensor, device memory; NULL: not there */
    uint8_t *scratch;            /* device memory */
    uint32_t block_count;        /* blocks that fill the device some times over */
    int32_t capability;          /* of the device; 0: not known, nothing special */
    uint32_t processors;         /* multiprocessors; 0: not known, k is never split */
    uint32_t shared_max;         /* bytes that a block may have; 0: not known, enough */
    uint32_t barred;             /* bits 1 << enum contract_path, launch_way: not to be used */
    const struct fusion *fusion; /* NULL: every operation alone */
    bool gives_up;               /* kernels whose barriers never end go on, and give nonsense */
    bool packed;                 /* fast mode: q tensors are packed.h's planes */
    bool rules_only;             /* every operation by its rules: for tests and doubts */
};

/* Is op within what the kernels count with? (Rows of a contraction below 2^32 elements.) */
bool launch_takes(const struct op *op);

enum device_result launch_op(const struct launcher *launcher, uint32_t at);

/* The operations first .. of a unit that ends before last, or one alone. *next: where to go on. */
enum device_result launch_unit(uint32_t *next, const struct launcher *launcher, uint32_t at,
                               uint32_t last);

/* Bytes of scratch for one operation. */
uint64_t launch_scratch_size(const struct op *op, const struct tensor *tensors, bool packed);

/* Bytes of an output; packed q tensors are larger than their elements. */
uint64_t launch_output_size(const struct op *op, uint32_t output, const struct tensor *tensors,
                            bool packed);

/* As kernel.h's op_in_place(), for the kernels of this folder. */
bool launch_in_place(enum op_kind kind, uint32_t output, uint32_t input);

/* May unread outputs of this kind be left out? */
bool launch_may_omit(enum op_kind kind);

/* Fills first[] of items whose bytes and size are set. */
void launch_hash_plan(struct hash_item *items, uint32_t count);

/* Bytes of scratch for items that were planned. */
uint64_t launch_hash_scratch_size(const struct hash_item *items, uint32_t count);

/*
 * Puts the Merkle root over the leaves of each item (merkle.h) into roots, 32 bytes each, all in
 * device memory; on_device is the device's copy of items.
 */
enum device_result launch_hash(const struct launcher *launcher, void *roots,
                               const struct hash_item *on_device, const struct hash_item *items,
                               uint32_t count);

/* Sets the word at `found` to 1 if one of count binary32 numbers is no finite number. */
enum device_result launch_finite(const struct launcher *launcher, uint32_t *found,
                                 const void *values, uint64_t count);

#endif /* ENGINE_CUDA_LAUNCH_LAUNCH_H */
