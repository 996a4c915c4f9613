/*
 * dots_body.h - exact sums that need no tile: of a row by a row, as the norm of a gradient takes
 * them, and of a row alone, as the gradient of a bias does.
 *
 * Products of experts go the same way, result by result: a row's expert, or a place's, says what
 * belongs to it.
 *
 * A tile would be computed for one of its results, and a warp would read a byte a lane. Here a
 * lane takes four elements at once, and all warps of a block share a long row.
 */

struct dot_quad {
    int32_t q[4];
};

/* The elements k .. k+3 of a row; k is a multiple of four. */
static RULE inline struct dot_quad dot_elements(const struct packed_operand *operand, uint64_t row,
                                                uint64_t k, uint32_t line_log, int bits)
{
    const uint64_t place = packed_place(row, k, operand->strip_size, line_log);
    struct dot_quad quad;
    uint32_t words[PACKED_PLANES_MAX] = {0, 0, 0};

    for (uint32_t plane = 0; plane < packed_planes(bits); plane++) {
        words[plane] =
            *(const uint32_t *)(operand->planes + (uint64_t)plane * operand->plane_size + place);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        quad.q[i] = packed_join((uint8_t)(words[0] >> 8 * i), (uint8_t)(words[1] >> 8 * i),
                                (uint8_t)(words[2] >> 8 * i), bits);
    }
    return quad;
}

/* A thread's share of the sum of a row, modulo 2^64: the whole sum is far smaller. */
static RULE inline uint64_t dot_share(const struct dots_args *args, uint64_t row, uint32_t first,
                                      uint32_t step)
{
    const bool alone = args->b.planes == NULL;
    uint64_t sum = 0;

    for (uint64_t k = (uint64_t)first * 4; k < args->k; k += (uint64_t)step * 4) {
        const uint64_t block = k >> args->block_log;
        const struct dot_quad a = dot_elements(&args->a, row, k, args->line_log, args->bits);
        uint32_t shift = args->a.shifts[block * args->a.shift_pitch + row];
        int64_t part = 0;

        if (alone) {
            part = (int64_t)a.q[0] + a.q[1] + a.q[2] + a.q[3];
        } else {
            const struct dot_quad b = dot_elements(&args->b, row, k, args->line_log, args->bits);

            shift += args->b.shifts[block * args->b.shift_pitch + row];
            UNROLL
            for (int i = 0; i < 4; i++) {
                part += (int64_t)a.q[i] * b.q[i];
            }
        }
        sum += shifted_part(part, shift);
    }
    return sum;
}

static RULE inline uint32_t dot_bits(const struct dots_args *args, uint64_t row, uint64_t sum)
{
    uint32_t exponent = (uint32_t)last_bit(args->a.lowest[row], args->bits);
    bool poison = args->a.lowest[row] == PACKED_POISON;

    if (args->b.planes != NULL) {
        exponent += (uint32_t)last_bit(args->b.lowest[row], args->bits);
        poison = poison || args->b.lowest[row] == PACKED_POISON;
    }
    return poison ? FLOAT_NAN_BITS : contraction_finish((int64_t)sum, (int32_t)exponent);
}

/* grid: any; block: BLOCK_THREADS. A warp, or all of them, take a row. */
KERNEL(kernel_dots, struct dots_args)
{
    SHARED(uint64_t, parts, BLOCK_THREADS / CUDA_WARP);
    const uint32_t warp = thread_index() / CUDA_WARP;
    const uint32_t member = warp % args.team;
    const uint32_t teams = BLOCK_THREADS / CUDA_WARP / args.team;
    const uint64_t turn = (uint64_t)teams * grid_size();
    const uint64_t turns = (args.rows + turn - 1) / turn;

    for (uint64_t i = 0; i < turns; i++) {
        const uint64_t row = i * turn + (uint64_t)block_index() * teams + warp / args.team;
        const uint32_t first = member * CUDA_WARP + thread_index() % CUDA_WARP;
        uint64_t sum = 0;

        if (row < args.rows) {
            sum = dot_share(&args, row, first, args.team * CUDA_WARP);
        }
        sum = warp_sum_wide(sum);
        if (thread_index() % CUDA_WARP == 0) {
            parts[warp] = sum;
        }
        barrier();
        sum = 0;
        for (uint32_t other = 0; other < args.team; other++) {
            sum += parts[warp - member + other];
        }
        if (row < args.rows && first == 0) {
            args.out[row / args.rows_inner * args.stride_outer +
                     row % args.rows_inner * args.stride_inner] = dot_bits(&args, row, sum);
        }
        barrier();
    }
}

/* ---- experts ------------------------------------------------------------------------- */

/* A thread's share of a result: of rows a and b, over the places of an expert, if sums are
 * apart. */
static RULE inline uint64_t chosen_share(const struct chosen_args *args, uint64_t a_row,
                                         uint64_t b_row, uint64_t expert, uint32_t lane)
{
    uint64_t sum = 0;

    for (uint64_t k = (uint64_t)lane * 4; k < args->k; k += CUDA_WARP * 4) {
        const uint64_t block = k >> args->block_log;
        const struct dot_quad a = dot_elements(&args->a, a_row, k, args->line_log, args->bits);
        const struct dot_quad b = dot_elements(&args->b, b_row, k, args->line_log, args->bits);
        const uint32_t shift = args->a.shifts[block * args->a.shift_pitch + a_row] +
                               args->b.shifts[block * args->b.shift_pitch + b_row];
        int64_t part = 0;

        for (uint64_t i = 0; i < 4 && k + i < args->k; i++) {
            if (args->apart == 0 || args->index[k + i] == expert) {
                part += (int64_t)a.q[i] * b.q[i];
            }
        }
        sum += shifted_part(part, shift);
    }
    return sum;
}

static RULE inline uint32_t chosen_bits(const struct chosen_args *args, uint64_t a_row,
                                        uint64_t b_row, uint64_t sum)
{
    const int32_t a = args->a.lowest[a_row];
    const int32_t b = args->b.lowest[b_row];

    return a == PACKED_POISON || b == PACKED_POISON
               ? FLOAT_NAN_BITS
               : contraction_finish((int64_t)sum, (int32_t)((uint32_t)last_bit(a, args->bits) +
                                                            (uint32_t)last_bit(b, args->bits)));
}

/* grid: any; block: BLOCK_THREADS. A warp takes a result. */
KERNEL(kernel_chosen, struct chosen_args)
{
    const uint32_t warps = BLOCK_THREADS / CUDA_WARP;
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint64_t step = (uint64_t)warps * grid_size();
    const uint64_t count = args.rows * args.columns * (args.apart != 0 ? args.experts : 1);
    const uint64_t turns = (count + step - 1) / step;

    for (uint64_t i = 0; i < turns; i++) {
        const uint64_t at = i * step + (uint64_t)block_index() * warps + thread_index() / CUDA_WARP;
        const bool there = at < count;
        const uint64_t row = there ? at / args.columns % args.rows : 0;
        const uint64_t expert = !there            ? 0
                                : args.apart != 0 ? at / (args.columns * args.rows)
                                                  : args.index[row];
        const bool known = there && expert < args.experts;
        const uint64_t b_row = at % args.columns + (args.apart != 0 ? 0 : expert * args.columns);
        uint64_t sum = known ? chosen_share(&args, row, b_row, expert, lane) : 0;

        sum = warp_sum_wide(sum);
        if (there && lane == 0) {
            args.out[at] = known ? chosen_bits(&args, row, b_row, sum) : FLOAT_NAN_BITS;
        }
    }
}
