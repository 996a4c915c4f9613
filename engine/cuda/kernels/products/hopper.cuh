/*
 * hopper.cuh - the part of the execution model that sm_90a adds: barriers in shared memory that
 * count arrivals and bytes, bulk copies, and the products of groups of four warps (wgmma).
 *
 * The emulator of tests/support has the same names for a processor. Other architectures have none
 * of it: there the kernels are empty, and are never launched.
 */
#ifndef ENGINE_CUDA_KERNELS_HOPPER_CUH
#define ENGINE_CUDA_KERNELS_HOPPER_CUH

#include "engine/cuda/kernels/execution.cuh"

/* A wait that takes longer never ends. A self-test takes moments and gives up sooner. */
#define WAIT_NS_MAX          UINT64_C(4000000000)
#define WAIT_NS_MAX_SELFTEST UINT64_C(50000000)

static RULE inline uint32_t shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

static RULE inline void store_pair(uint32_t *at, uint32_t first, uint32_t second)
{
    *(uint2 *)at = make_uint2(first, second);
}

/* The same value, hidden from the compiler: it recomputes what follows instead of keeping it. */
static RULE inline uint32_t opaque(uint32_t value)
{
    asm volatile("" : "+r"(value));
    return value;
}

/* The processor's side parses all of it; of the devices' only this one can run it. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HOPPER_HERE 1

/* ---- barriers --------------------------------------------------------------- */

static RULE inline void bring_init(uint64_t *barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

/* Before the other threads' barrier(): the copies' side sees what was initialized. */
static RULE inline void bring_init_fence(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;\n\t"
                 "fence.proxy.async.shared::cta;" ::
                     : "memory");
}

static RULE inline void bring_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}

/* The current phase also waits for these bytes. */
static RULE inline void bring_expect(uint64_t *barrier, uint32_t size)
{
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(
                     shared_address(barrier)),
                 "r"(size)
                 : "memory");
}

/* A run of memory, by 16 bytes; done when the barrier has counted it. */
static RULE inline void bring_bulk(void *to, const void *from, uint32_t size, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(size), "r"(shared_address(barrier))
                 : "memory");
}

static RULE inline bool bring_done(uint32_t barrier, uint32_t parity)
{
    uint32_t done;

    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t"
                 "}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done != 0;
}

static RULE inline uint64_t time_ns(void)
{
    uint64_t now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Waits until the phase of this parity is complete. Too long a wait traps, or gives up. */
static RULE inline void bring_wait(uint64_t *barrier, uint32_t parity, uint32_t gives_up)
{
    const uint32_t at = shared_address(barrier);

    if (bring_done(at, parity)) {
        return;
    }
    const uint64_t most = gives_up != 0 ? WAIT_NS_MAX_SELFTEST : WAIT_NS_MAX;
    const uint64_t start = time_ns();

    while (!bring_done(at, parity)) {
        if (time_ns() - start > most) {
            if (gives_up != 0) {
                return;
            }
            __trap();
        }
    }
}

/* ---- groups ------------------------------------------------------------------- */

/* Of the threads of group 0 or 1. */
static RULE inline void group_barrier(uint32_t group)
{
    if (group == 0) {
        asm volatile("bar.sync 1, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 2, 128;" ::: "memory");
    }
}

static RULE inline void registers_lower(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
}

static RULE inline void registers_raise(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
}

/* Every sum is named, so that none is read or written on the wrong side. */
#define GROUP_SUMS_64(sums) \
    "+r"((sums)[0]), "+r"((sums)[1]), "+r"((sums)[2]), "+r"((sums)[3]), "+r"((sums)[4]), \
    "+r"((sums)[5]), "+r"((sums)[6]), "+r"((sums)[7]), "+r"((sums)[8]), "+r"((sums)[9]), \
    "+r"((sums)[10]), "+r"((sums)[11]), "+r"((sums)[12]), "+r"((sums)[13]), "+r"((sums)[14]), \
    "+r"((sums)[15]), "+r"((sums)[16]), "+r"((sums)[17]), "+r"((sums)[18]), "+r"((sums)[19]), \
    "+r"((sums)[20]), "+r"((sums)[21]), "+r"((sums)[22]), "+r"((sums)[23]), "+r"((sums)[24]), \
    "+r"((sums)[25]), "+r"((sums)[26]), "+r"((sums)[27]), "+r"((sums)[28]), "+r"((sums)[29]), \
    "+r"((sums)[30]), "+r"((sums)[31])
#define GROUP_SUMS_128(sums) \
    GROUP_SUMS_64(sums), "+r"((sums)[32]), "+r"((sums)[33]), "+r"((sums)[34]), \
    "+r"((sums)[35]), "+r"((sums)[36]), "+r"((sums)[37]), "+r"((sums)[38]), "+r"((sums)[39]), \
    "+r"((sums)[40]), "+r"((sums)[41]), "+r"((sums)[42]), "+r"((sums)[43]), "+r"((sums)[44]), \
    "+r"((sums)[45]), "+r"((sums)[46]), "+r"((sums)[47]), "+r"((sums)[48]), "+r"((sums)[49]), \
    "+r"((sums)[50]), "+r"((sums)[51]), "+r"((sums)[52]), "+r"((sums)[53]), "+r"((sums)[54]), \
    "+r"((sums)[55]), "+r"((sums)[56]), "+r"((sums)[57]), "+r"((sums)[58]), "+r"((sums)[59]), \
    "+r"((sums)[60]), "+r"((sums)[61]), "+r"((sums)[62]), "+r"((sums)[63])
#define GROUP_NAMES_128 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GROUP_NAMES_64 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"

#define GROUP_FUNCTIONS(n, a_operand, b_operand, more_operand)                                     \
    static RULE inline void group_begin_##n(int32_t *sums)                                         \
    {                                                                                              \
        asm volatile("wgmma.fence.sync.aligned;" : GROUP_SUMS_##n(sums)::"memory");                \
    }                                                                                              \
    static RULE inline void group_end_##n(int32_t *sums)                                           \
    {                                                                                              \
        asm volatile("wgmma.commit_group.sync.aligned;\n\t"                                        \
                     "wgmma.wait_group.sync.aligned 0;"                                            \
                     : GROUP_SUMS_##n(sums)::"memory");                                            \
    }                                                                                              \
    static RULE inline void group_multiply_##n(int32_t *sums, uint64_t a, uint64_t b, bool more)   \
    {                                                                                              \
        asm volatile("{\n\t"                                                                       \
                     ".reg .pred p;\n\t"                                                           \
                     "setp.ne.b32 p, " more_operand ", 0;\n\t"                                     \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k32.s32.s8.s8"                        \
                     " {" GROUP_NAMES_##n "}, " a_operand ", " b_operand ", p;\n\t"                \
                     "}"                                                                           \
                     : GROUP_SUMS_##n(sums)                                                        \
                     : "l"(a), "l"(b), "r"((uint32_t)more)                                         \
                     : "memory");                                                                  \
    }

GROUP_FUNCTIONS(128, "%64", "%65", "%66")
GROUP_FUNCTIONS(64, "%32", "%33", "%34")

/* Before the first product that writes sums. */
static RULE inline void group_begin(int32_t *sums, uint32_t columns)
{
    if (columns == 128) {
        group_begin_128(sums);
    } else {
        group_begin_64(sums);
    }
}

/* Starts the products and waits for all of them. */
static RULE inline void group_end(int32_t *sums, uint32_t columns)
{
    if (columns == 128) {
        group_end_128(sums);
    } else {
        group_end_64(sums);
    }
}

/* sums = A B, or sums += A B: 64 rows of A by the columns, 32 elements of k, from descriptors. */
static RULE inline void group_multiply(int32_t *sums, uint64_t a, uint64_t b, bool more,
                                       uint32_t columns)
{
    if (columns == 128) {
        group_multiply_128(sums, a, b, more);
    } else {
        group_multiply_64(sums, a, b, more);
    }
}

#else
#define HOPPER_HERE 0
#endif

#endif /* ENGINE_CUDA_KERNELS_HOPPER_CUH */
