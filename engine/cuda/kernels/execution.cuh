/*
 * execution.cuh - the execution model of the *_body.h files, for nvcc.
 *
 * The emulator of tests/support gives the same names for a processor; what they promise is said
 * there and tested against the rules. Fragments follow the PTX ISA: "Matrix fragments for
 * mma.m16n8k32" and "ldmatrix". sm_75 has only mma.m8n8k16, of which four make the larger one with
 * the very same registers: a lane holds row l/4 and four elements of k from 4 (l % 4) on in both.
 */
#ifndef ENGINE_CUDA_KERNELS_EXECUTION_CUH
#define ENGINE_CUDA_KERNELS_EXECUTION_CUH

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <cuda_pipeline_primitives.h>

#include "engine/ops/portable.h"

#define KERNEL(name, type) extern "C" __global__ void name(const __grid_constant__ type args)
#define KERNEL_LIMITED(name, type, threads)                                                        \
    extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ type args)
/* Large enough to have a multiprocessor for itself: all registers of it. */
#define KERNEL_ALONE(name, type, threads)                                                          \
    extern "C" __global__ void __launch_bounds__(threads, 1) name(const __grid_constant__ type args)
#define SHARED(type, name, count) __shared__ __align__(16) type name[count]
#define CONSTANT                  __constant__ const
#define UNROLL                    _Pragma("unroll")
#define ROLLED                    _Pragma("unroll 1")
/* In the inner loops: with a call, arrays of registers would lie in memory. */
#define INLINED                   __forceinline__
#define LANES_ALL                 0xffffffffu

static RULE inline uint32_t thread_index(void)
{
    return threadIdx.x;
}

static RULE inline uint32_t block_index(void)
{
    return blockIdx.x;
}

static RULE inline uint32_t block_index_y(void)
{
    return blockIdx.y;
}

static RULE inline uint32_t block_size(void)
{
    return blockDim.x;
}

static RULE inline uint32_t grid_size(void)
{
    return gridDim.x;
}

static RULE inline void barrier(void)
{
    __syncthreads();
}

static RULE inline void warp_barrier(void)
{
    __syncwarp();
}

static RULE inline uint8_t *dynamic_shared(void)
{
    extern __shared__ __align__(16) uint8_t dynamic_memory[];

    return dynamic_memory;
}

static RULE inline uint32_t shuffle_xor(uint32_t value, uint32_t distance)
{
    return __shfl_xor_sync(LANES_ALL, value, (int)distance);
}

static RULE inline float shuffle_xor_real(float value, uint32_t distance)
{
    return __shfl_xor_sync(LANES_ALL, value, (int)distance);
}

static RULE inline float shuffle_down_real(float value, uint32_t distance)
{
    return __shfl_down_sync(LANES_ALL, value, distance);
}

static RULE inline float shuffle_real(float value, uint32_t lane)
{
    return __shfl_sync(LANES_ALL, value, (int)lane);
}

static RULE inline uint32_t atomic_swap(uint32_t *at, uint32_t value)
{
    return atomicExch(at, value);
}

/* Returns the value before. */
static RULE inline uint32_t atomic_add(uint32_t *at, uint32_t value)
{
    return atomicAdd(at, value);
}

static RULE inline void atomic_add_wide(uint64_t *at, uint64_t value)
{
    (void)atomicAdd((unsigned long long *)at, (unsigned long long)value);
}

static RULE inline void atomic_max(uint32_t *at, uint32_t value)
{
    (void)atomicMax(at, value);
}

/* Reads past this multiprocessor's cache: other blocks may have written. */
static RULE inline uint64_t load_fresh(const uint64_t *at)
{
    return __ldcg((const unsigned long long *)at);
}

static RULE inline void device_fence(void)
{
    __threadfence();
}

/* Four numbers at once, from an address that is a multiple of 16. */
static RULE inline void load_quad(float *to, const float *from)
{
    const float4 quad = *(const float4 *)from;

    to[0] = quad.x;
    to[1] = quad.y;
    to[2] = quad.z;
    to[3] = quad.w;
}

static RULE inline void store_quad(uint32_t *to, const uint32_t *from)
{
    *(uint4 *)to = make_uint4(from[0], from[1], from[2], from[3]);
}

/* Two words at once, from an address that is a multiple of 8. */
static RULE inline void load_pair(uint32_t *to, const void *from)
{
    const uint2 pair = *(const uint2 *)from;

    to[0] = pair.x;
    to[1] = pair.y;
}

/* Four words at once, from an address that is a multiple of 16. */
static RULE inline void load_four(uint32_t to[4], const void *from)
{
    const uint4 four = *(const uint4 *)from;

    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

/* Prefetches the line of memory. */
static RULE inline void prefetch_line(const void *at)
{
    asm volatile("prefetch.global.L2 [%0];" : : "l"(at));
}

/* A byte of a row, or behind the last row: then the caller drops the result. */
static RULE inline uint32_t load_padded(const uint8_t *at)
{
    return *at;
}

/* Nearest, ties to even. */
static RULE inline int32_t round_to_int(float x)
{
    return __float2int_rn(x);
}

/* 16 bytes to shared memory, or zeros where there are none; done after the wait of its group. */
static RULE inline void copy_async(void *to, const void *from, bool there)
{
    __pipeline_memcpy_async(to, from, 16, there ? 0 : 16);
}

static RULE inline void copy_commit(void)
{
    __pipeline_commit();
}

/* Waits for all groups of this thread but the last `left`: 0 to 2. */
static RULE inline void copy_wait(uint32_t left)
{
    if (left == 0) {
        __pipeline_wait_prior(0);
    } else if (left == 1) {
        __pipeline_wait_prior(1);
    } else {
        __pipeline_wait_prior(2);
    }
}

/* Four 8 x 16 byte matrices; lanes 8i .. 8i+7 give the rows of the i-th. */
static RULE inline void load_matrices(uint32_t words[4], const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);

    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(at)
                 : "memory");
}

/* Byte i of the result is byte (selector >> 4 i & 7) of a, and then of b. */
static RULE inline uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t selector)
{
    return __byte_perm(a, b, selector);
}

/* Two halves at once, each rounded to nearest. */
static RULE inline uint32_t halves_add(uint32_t a, uint32_t b)
{
    uint32_t sum;

    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}

static RULE inline uint32_t halves_subtract(uint32_t a, uint32_t b)
{
    uint32_t difference;

    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
    return difference;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define MULTIPLY(name, a_type, b_type)                                                             \
    static RULE inline void name(int32_t *sums, const uint32_t *a, const uint32_t *b)              \
    {                                                                                              \
        asm("mma.sync.aligned.m16n8k32.row.col.s32." a_type "." b_type                             \
            ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                 \
            : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])                           \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                   \
    }
#else
#define MULTIPLY(name, a_type, b_type)                                                             \
    static RULE inline void name##_half(int32_t *sums, uint32_t a, uint32_t b)                     \
    {                                                                                              \
        asm("mma.sync.aligned.m8n8k16.row.col.s32." a_type "." b_type                              \
            ".s32 {%0, %1}, {%2}, {%3}, {%0, %1};"                                                 \
            : "+r"(sums[0]), "+r"(sums[1])                                                         \
            : "r"(a), "r"(b));                                                                     \
    }                                                                                              \
    static RULE inline void name(int32_t *sums, const uint32_t *a, const uint32_t *b)              \
    {                                                                                              \
        name##_half(sums, a[0], b[0]);                                                             \
        name##_half(sums, a[2], b[1]);                                                             \
        name##_half(sums + 2, a[1], b[0]);                                                         \
        name##_half(sums + 2, a[3], b[1]);                                                         \
    }
#endif

/* sums += A B of halves, 16 elements of k: m16n8k16, on sm_75 two of m16n8k8. The sums are bits of
 * binary32. */
static RULE inline void multiply_halves(int32_t *sums, const uint32_t *a, const uint32_t *b)
{
    float real[4] = {__int_as_float(sums[0]), __int_as_float(sums[1]), __int_as_float(sums[2]),
                     __int_as_float(sums[3])};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(real[0]), "+f"(real[1]), "+f"(real[2]), "+f"(real[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    for (int i = 0; i < 2; i++) {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
            "{%0, %1, %2, %3};"
            : "+f"(real[0]), "+f"(real[1]), "+f"(real[2]), "+f"(real[3])
            : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(b[i]));
    }
#endif
    for (int i = 0; i < 4; i++) {
        sums[i] = __float_as_int(real[i]);
    }
}

/* sums += A B: signed or unsigned bytes in A and in B. */
MULTIPLY(multiply_ss, "s8", "s8")
MULTIPLY(multiply_su, "s8", "u8")
MULTIPLY(multiply_us, "u8", "s8")
MULTIPLY(multiply_uu, "u8", "u8")

#endif /* ENGINE_CUDA_KERNELS_EXECUTION_CUH */
