/*
 * held_body.h - norms and softmax along rows of one chunk, each number read once: a warp holds the
 * row in its registers, and lane l the elements that the fold gives it: l, l+32, ... Where the row
 * is quantized next, the same warp does it, from shared memory. rows_body.h and quantize_body.h
 * define what is computed, and in which order.
 *
 * A longer row does not fit registers: kernel_rows takes it.
 */

struct held {
    const struct rows_args *args;
    uint64_t first;   /* element of the row */
    uint32_t columns; /* at most HELD_MAX */
    uint32_t visible;
    uint32_t lane;
    uint64_t row;
};

#define HELD_SLOTS (HELD_MAX / CUDA_WARP)

/*
 * The columns of a lane: slot i holds column lane + 32 i. Slots that no row reaches are skipped;
 * the number of turns is a constant, so that slots are registers.
 */
#define HELD_EACH(held, i, c)                                                                      \
    UNROLL                                                                                         \
    for (uint32_t i = 0, c = (held)->lane; i < HELD_SLOTS; i++, c += CUDA_WARP)                    \
        if (i * CUDA_WARP < (held)->columns)

static RULE inline void held_load(const struct held *held, float *x, uint32_t input)
{
    HELD_EACH(held, i, c)
    {
        x[i] = c < held->visible ? in_f32(held->args, input, held->first + c) : 0.0f;
    }
}

/*
 * The fold of products, or of a where b is NULL: the part of the only chunk is the total. Slot i of
 * b lies at b[i * step].
 */
static RULE inline float held_fold(const struct held *held, const float *a, const float *b,
                                   uint32_t step, uint32_t part)
{
    float lane = -0.0f;

    HELD_EACH(held, i, c)
    {
        if (c < held->visible) {
            lane = b == NULL ? lane + a[i] : fmaf(a[i], b[i * step], lane);
        }
    }
    lane = real_stored(warp_fold(lane));
    if (held->lane == 0) {
        out_f32(held->args, part, held->row, lane);
    }
    return lane;
}

static RULE inline void held_number(const struct held *held, uint32_t output, float value)
{
    if (held->lane == 0) {
        out_f32(held->args, output, held->row, value);
    }
}

static RULE inline float held_mean(const struct held *held, float total)
{
    return total / (float)held->columns;
}

static RULE inline float held_rstd(const struct held *held, float total)
{
    return real_stored(1.0f / sqrtf(held_mean(held, total) + real_from_bits(held->args->constant)));
}

/* x becomes the result. */
static RULE inline void held_norm(const struct held *held, float *x, float *other)
{
    const bool layer = held->args->kind == OP_LAYER_NORM;
    float mean = 0.0f;
    float rstd;

    held_load(held, x, 0);
    if (layer) {
        mean = real_stored(held_mean(held, held_fold(held, x, NULL, 0, 0)));
        held_number(held, 1, mean);
    }
    HELD_EACH(held, i, c)
    {
        (void)c;
        other[i] = layer ? x[i] - mean : x[i];
    }
    rstd = held_rstd(held, held_fold(held, other, other, 1, layer ? 2 : 0));
    held_number(held, layer ? 3 : 1, rstd);
    HELD_EACH(held, i, c)
    {
        if (c < held->columns) {
            const float gain = in_f32(held->args, 1, c);

            x[i] = real_stored(layer ? fmaf(other[i] * rstd, gain, in_f32(held->args, 2, c))
                                     : (other[i] * rstd) * gain);
            out_f32(held->args, layer ? 4 : 2, held->first + c, x[i]);
        }
    }
}

/* dy in x, and x in other; leaves dx in x. */
static RULE inline void held_norm_grad(const struct held *held, float *x, float *other)
{
    const struct rows_args *args = held->args;
    const bool layer = args->kind == OP_LAYER_NORM_GRAD;
    const float mean = layer ? in_f32(args, 3, held->row) : 0.0f;
    const float rstd = in_f32(args, layer ? 4 : 3, held->row);
    float mean_g = 0.0f;
    float mean_gx;

    held_load(held, x, 0);
    held_load(held, other, 1);
    HELD_EACH(held, i, c)
    {
        if (c < held->columns) {
            const float xhat = (layer ? other[i] - mean : other[i]) * rstd;

            out_f32(args, layer ? 5 : 3, held->first + c, x[i] * xhat);
            other[i] = xhat;
            x[i] = x[i] * in_f32(args, 2, c);
        }
    }
    if (layer) {
        mean_g = real_stored(held_mean(held, held_fold(held, x, NULL, 0, 0)));
        held_number(held, 2, mean_g);
    }
    mean_gx = real_stored(held_mean(held, held_fold(held, x, other, 1, layer ? 1 : 0)));
    held_number(held, layer ? 3 : 1, mean_gx);
    HELD_EACH(held, i, c)
    {
        if (c < held->columns) {
            const float inner = fmaf(-other[i], mean_gx, layer ? x[i] - mean_g : x[i]);

            x[i] = real_stored(rstd * inner);
            if (args->addend != NULL) {
                x[i] = real_stored(x[i] + args->addend[held->first + c]);
            }
            out_f32(args, layer ? 4 : 2, held->first + c, x[i]);
        }
    }
}

static RULE inline float held_maximum(const struct held *held, const float *x)
{
    float lane = -INFINITY;

    HELD_EACH(held, i, c)
    {
        if (c < held->visible) {
            lane = fold_maximum(lane, x[i]);
        }
    }
    for (uint32_t d = CUDA_WARP / 2; d > 0; d /= 2) {
        lane = fold_maximum(lane, shuffle_xor_real(lane, d));
    }
    return real_from_bits(fold_maximum_bits(lane));
}

/* x becomes p. */
static RULE inline void held_softmax(const struct held *held, float *x)
{
    const float scale = real_from_bits(held->args->constant);
    float maximum;
    float sum;

    HELD_EACH(held, i, c)
    {
        (void)c;
        x[i] = x[i] * scale;
    }
    maximum = held_maximum(held, x);
    held_number(held, 0, maximum);
    held_number(held, 1, maximum);
    HELD_EACH(held, i, c)
    {
        x[i] = c < held->visible ? real_stored(scalar_exp(x[i] - maximum)) : 0.0f;
        if (c < held->columns) {
            out_f32(held->args, 2, held->first + c, x[i]);
        }
    }
    sum = held_fold(held, x, NULL, 0, 3);
    held_number(held, 4, sum);
    const float inverse = 1.0f / sum;

    HELD_EACH(held, i, c)
    {
        x[i] = c < held->visible ? real_stored(x[i] * inverse) : 0.0f;
        if (c < held->columns) {
            out_f32(held->args, 5, held->first + c, x[i]);
        }
    }
}

/* p in x, slot i of dp at other[i * step]; leaves dx in x. */
static RULE inline void held_softmax_grad(const struct held *held, float *x, const float *other,
                                          uint32_t step)
{
    const float scale = real_from_bits(held->args->constant);
    const float dot = held_fold(held, x, other, step, 0);

    held_number(held, 1, dot);
    HELD_EACH(held, i, c)
    {
        x[i] = c < held->visible ? real_stored((x[i] * (other[i * step] - dot)) * scale) : 0.0f;
        if (c < held->columns) {
            out_f32(held->args, 2, held->first + c, x[i]);
        }
    }
}

/* Of a row that lies in a warp's shared memory; every lane of it comes here. */
static RULE inline void held_quantize(const struct quantize_args *args, const float *stage,
                                      uint64_t row)
{
    const int32_t top = exponent_of_bits(row_peaks(args, stage, row, 0));
    int32_t lowest;

    warp_barrier();
    lowest = row_exponents(args, row, 0, top);
    lowest = top == EXPONENT_POISON ? PACKED_POISON : lowest;
    warp_barrier();
    row_integers(args, stage, row, 0, lowest);
    if (thread_index() % CUDA_WARP == 0) {
        args->lowest[row] = lowest;
    }
}

/* grid: any; block: BLOCK_THREADS. A warp takes a row. */
KERNEL_LIMITED(kernel_held, struct held_args, BLOCK_THREADS)
{
    SHARED(float, stages, ROWS_WARPS *HELD_MAX);
    const uint32_t warp = thread_index() / CUDA_WARP;
    float *stage = stages + warp * HELD_MAX;
    struct held held = {.args = &args.rows,
                        .columns = (uint32_t)args.rows.columns,
                        .lane = thread_index() % CUDA_WARP};
    float x[HELD_SLOTS];
    float other[HELD_SLOTS];

    /* Turned round: see kernel_rows. */
    for (held.row = (uint64_t)block_index() * ROWS_WARPS + warp; args.rows.rows > held.row;
         held.row += (uint64_t)grid_size() * ROWS_WARPS) {
        held.first = held.row * held.columns;
        held.visible = (uint32_t)seen_columns(&args.rows, held.row).end;
        switch (args.rows.kind) {
        case OP_LAYER_NORM:
        case OP_RMS_NORM:
            held_norm(&held, x, other);
            break;
        case OP_LAYER_NORM_GRAD:
        case OP_RMS_NORM_GRAD:
            held_norm_grad(&held, x, other);
            break;
        case OP_SOFTMAX:
            held_load(&held, x, 0);
            held_softmax(&held, x);
            break;
        default:
            held_load(&held, x, 0);
            held_load(&held, other, 1);
            held_softmax_grad(&held, x, other, 1);
            break;
        }
        if (args.quantize.planes != NULL) {
            warp_barrier();
            HELD_EACH(&held, i, c)
            {
                if (c < held.columns) {
                    stage[c] = x[i];
                }
            }
            warp_barrier();
            held_quantize(&args.quantize, stage, held.row);
        }
    }
}
