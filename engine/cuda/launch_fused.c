/* launch_fused.c - launches that spare passes and launches; see launch_core.h. */
#include "engine/cuda/launch_core.h"

/* ---- sums without tiles ---------------------------------------------------------- */

#define DOTS_K_MAX    65536 /* a row of more is split over many tiles' worth of blocks, elsewhere */
#define DOTS_ROWS_FEW 64    /* but not where there are rows enough to fill a device */
#define DOTS_TEAM_K   1024  /* rows of more elements are shared by all warps of a block */

bool launch_dots_takes(const struct launcher *launcher, uint64_t m, uint64_t n, uint64_t batches,
                       uint64_t k)
{
    return launch_way_free(launcher, WAY_DOTS) && m == 1 && n == 1 &&
           (k <= DOTS_K_MAX || batches >= DOTS_ROWS_FEW);
}

enum device_result launch_dots(const struct launcher *launcher, struct dots_args *args)
{
    const uint32_t warps = BLOCK_THREADS / CUDA_WARP;

    args->team = args->k > DOTS_TEAM_K ? warps : 1;
    return LAUNCH_WORK(launcher, KERNEL_DOTS, args->rows, warps / args->team, *args);
}
