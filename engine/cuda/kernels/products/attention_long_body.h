/*
 * attention_long_body.h - attention by strips of queries whose rows have several chunks
 * (attention_body.h). First each row's numbers are found, chunk by chunk; then its p or ds.
 */

/* ---- numbers of long rows -------------------------------------------------------------- */

/* Adds a chunk's part to those that a lane adds up: parts are folded as elements are. */
static RULE INLINED float part_added(float parts, float part, uint32_t chunk)
{
    return chunk % CUDA_WARP == thread_index() % CUDA_WARP ? parts + part : parts;
}

/* Gives a row its number, which others may want too. */
static RULE INLINED void attention_number(const struct attention *attention, uint32_t row,
                                          uint32_t number, uint32_t output, float value)
{
    const struct attention_args *args = attention->args;
    const uint64_t m = attention->strip.first + row;

    if (thread_index() % CUDA_WARP == 0) {
        attention->strip.numbers[number * STRIP_ROWS + row] = value;
        if (m < args->scores.m && output != OP_OUTPUTS_MAX) {
            out_f32(&args->rows, output, attention->strip.batch * args->scores.m + m, value);
        }
    }
}

/* A chunk's scores. Every thread comes here. */
static RULE INLINED void attention_bring(struct attention *attention, uint32_t chunk,
                                         enum limb_kind kind)
{
    attention_chunk(attention, chunk, false);
    attention_scores(attention, &attention->args->scores, kind);
    barrier();
}

/* The chunk's part of a row, in registers: scores times the softmax's scale. */
static RULE INLINED struct held attention_scaled(const struct attention *attention, uint32_t row,
                                                 float *x)
{
    const float scale = real_from_bits(attention->args->rows.constant);
    const struct held held = attention_held(attention, row);

    attention_take(&held, attention->strip.x + row * attention->strip.pitch, x);
    HELD_EACH(&held, i, c)
    {
        (void)c;
        x[i] = x[i] * scale;
    }
    return held;
}

/* Each row's largest score. */
static RULE INLINED void attention_maxima(struct attention *attention, enum limb_kind kind)
{
    float largest[ATTENTION_TURNS];

    UNROLL
    for (uint32_t turn = 0; turn < ATTENTION_TURNS; turn++) {
        largest[turn] = -INFINITY;
    }
    for (uint32_t chunk = 0; chunk < attention->strip.chunks; chunk++) {
        attention_bring(attention, chunk, kind);
        ATTENTION_EACH(attention, turn, row)
        {
            float x[HELD_SLOTS];
            const struct held held = attention_scaled(attention, row, x);

            largest[turn] = fold_maximum(largest[turn], held_maximum(&held, x));
        }
        barrier();
    }
    ATTENTION_EACH(attention, turn, row)
    {
        attention_number(attention, row, NUMBER_MAXIMUM, 1, largest[turn]);
    }
}

/* Each row's sum of exponentials. */
static RULE INLINED void attention_sums(struct attention *attention, enum limb_kind kind)
{
    float sums[ATTENTION_TURNS];

    UNROLL
    for (uint32_t turn = 0; turn < ATTENTION_TURNS; turn++) {
        sums[turn] = -0.0f;
    }
    for (uint32_t chunk = 0; chunk < attention->strip.chunks; chunk++) {
        attention_bring(attention, chunk, kind);
        ATTENTION_EACH(attention, turn, row)
        {
            const float maximum = attention->strip.numbers[NUMBER_MAXIMUM * STRIP_ROWS + row];
            float x[HELD_SLOTS];
            const struct held held = attention_scaled(attention, row, x);

            HELD_EACH(&held, i, c)
            {
                (void)c;
                x[i] = real_stored(scalar_exp(x[i] - maximum));
            }
            if (held.visible != 0) {
                sums[turn] = part_added(sums[turn], held_fold(&held, x, NULL, 0, 0), chunk);
            }
        }
        barrier();
    }
    ATTENTION_EACH(attention, turn, row)
    {
        attention_number(attention, row, NUMBER_SUM, 4, real_stored(warp_fold(sums[turn])));
    }
}

/* Each row's sum of p * dp. */
static RULE INLINED void attention_dots(struct attention *attention, enum limb_kind kind)
{
    const struct attention_args *args = attention->args;
    float sums[ATTENTION_TURNS];

    UNROLL
    for (uint32_t turn = 0; turn < ATTENTION_TURNS; turn++) {
        sums[turn] = -0.0f;
    }
    for (uint32_t chunk = 0; chunk < attention->strip.chunks; chunk++) {
        float p[ATTENTION_TURNS][HELD_SLOTS];

        attention_chunk(attention, chunk, false);
        attention_slopes(attention, p, kind);
        ATTENTION_EACH(attention, turn, row)
        {
            const struct held held = attention_held(attention, row);
            const float *at = attention->strip.x + row * attention->strip.pitch + held.lane;

            if (held.visible != 0) {
                sums[turn] =
                    part_added(sums[turn], held_fold(&held, p[turn], at, CUDA_WARP, 0), chunk);
            }
        }
        barrier();
    }
    ATTENTION_EACH(attention, turn, row)
    {
        const uint64_t m = attention->strip.first + row;
        const uint64_t at = attention->strip.batch * args->scores.m + (m < args->scores.m ? m : 0);

        attention_number(attention, row, NUMBER_MAXIMUM, OP_OUTPUTS_MAX, args->maximum[at]);
        attention_number(attention, row, NUMBER_SUM, OP_OUTPUTS_MAX, args->sum[at]);
        attention_number(attention, row, NUMBER_DOT, 1, real_stored(warp_fold(sums[turn])));
    }
}

/* ---- the kernels ---------------------------------------------------------------------- */

static RULE INLINED void attend_long(const struct attention_args *args, enum limb_kind kind)
{
    struct attention attention;

    attention_init(&attention, args, false);
    if (args->slopes.a.planes != NULL) {
        attention_dots(&attention, kind);
    } else {
        attention_maxima(&attention, kind);
        attention_sums(&attention, kind);
    }
    barrier();
    if (args->product.contract.out != NULL) {
        attend_chunks(&attention, false, kind);
    }
}

/* Rows of several chunks: kernels of their own, since each of theirs takes all registers. */
KERNEL_LIMITED(kernel_attend_long_narrow, struct attention_args, STRIP_THREADS)
{
    attend_long(&args, LIMBS_FOUR);
}

KERNEL_LIMITED(kernel_attend_long_wide, struct attention_args, STRIP_THREADS)
{
    attend_long(&args, LIMBS_WIDE);
}

KERNEL_LIMITED(kernel_attend_long_halves_narrow, struct attention_args, STRIP_THREADS)
{
    attend_long(&args, LIMBS_HALVES_SHORT);
}

KERNEL_LIMITED(kernel_attend_long_halves_wide, struct attention_args, STRIP_THREADS)
{
    attend_long(&args, LIMBS_HALVES_WIDE);
}
