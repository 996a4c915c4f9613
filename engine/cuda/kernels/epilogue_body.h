/*
 * epilogue_body.h - element-wise operations on numbers in registers: at the end of a contraction,
 * on results before they are written; or on tensors in memory, four numbers a lane.
 *
 * The lanes of a warp hold its results as tensor cores give them, in scattered pairs. So they are
 * laid into shared memory, 8 rows of 32 at a time, and are read as rows: eight lanes write 128
 * bytes. What a step reads of a whole tensor is prefetched while the previous patch is written. One
 * loop does it for all results: the steps are many instructions, and registers cannot be indexed.
 *
 * Each step is the rule of its operation, and gives what the rule would have stored.
 */

/* A step on a number; only functions of two operands read `other`. */
static RULE INLINED uint32_t epilogue_made(uint32_t code, float value, float other, float constant)
{
    switch (code) {
    case EPILOGUE_ADD:
        return real_to_bits(value + other);
    case EPILOGUE_MUL:
        return real_to_bits(value * other);
    case EPILOGUE_SCALE:
        return real_to_bits(value * constant);
    case EPILOGUE_RELU:
        return real_to_bits(element_relu(value));
    case EPILOGUE_RELU_GRAD:
        return real_to_bits(element_relu_grad(other, value));
    case EPILOGUE_GELU:
        return real_to_bits(element_gelu(value));
    case EPILOGUE_GELU_GRAD:
        return real_to_bits(element_gelu_grad(other, value));
    case EPILOGUE_SILU:
        return real_to_bits(element_silu(value));
    default:
        return real_to_bits(element_silu_grad(other, value));
    }
}

/* Four neighbours, and where they are. */
struct epilogue_quad {
    float made[4];
    const float *ahead; /* prefetched: in shared memory */
    uint64_t place;
    uint64_t column;
};

static RULE INLINED void epilogue_other(float other[4], const struct epilogue_step *step,
                                        const struct epilogue_quad *quad)
{
    switch (step->source) {
    case EPILOGUE_ROW:
        load_quad(other, step->other + quad->column);
        break;
    case EPILOGUE_WHOLE:
        load_quad(other, step->other + quad->place);
        break;
    case EPILOGUE_AHEAD:
        load_quad(other, quad->ahead);
        break;
    default:
        break;
    }
}

static RULE INLINED void epilogue_steps(const struct epilogue *epilogue,
                                        const struct epilogue_quad *quad)
{
    float value[4] = {quad->made[0], quad->made[1], quad->made[2], quad->made[3]};

    ROLLED
    for (uint32_t s = 0; s < epilogue->count; s++) {
        const struct epilogue_step *step = &epilogue->steps[s];
        const float constant = real_from_bits(step->constant);
        float other[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        uint32_t bits[4];

        epilogue_other(other, step, quad);
        UNROLL
        for (uint32_t c = 0; c < 4; c++) {
            value[c] = step->restarts != 0 ? quad->made[c] : value[c];
        }
        UNROLL
        for (uint32_t c = 0; c < 4; c++) {
            bits[c] = epilogue_made(step->code, value[c], other[c], constant);
            value[c] = real_from_bits(bits[c]);
        }
        if (step->out != NULL) {
            store_quad(step->out + quad->place, bits);
        }
    }
}

/* The same for one number a lane. */
static RULE inline void epilogue_one(const struct epilogue *epilogue, float made, uint64_t place,
                                     uint64_t column)
{
    float value = made;

    for (uint32_t s = 0; s < epilogue->count; s++) {
        const struct epilogue_step *step = &epilogue->steps[s];
        const float other = step->source == EPILOGUE_NONE  ? 0.0f
                            : step->source == EPILOGUE_ROW ? step->other[column]
                                                           : step->other[place];
        const uint32_t bits = epilogue_made(step->code, step->restarts != 0 ? made : value, other,
                                            real_from_bits(step->constant));

        value = real_from_bits(bits);
        if (step->out != NULL) {
            step->out[place] = bits;
        }
    }
}

/* ---- results of a contraction ------------------------------------------------------ */

/* The patches of a warp: `down` rows of them below each other, and then the next to the right. */
struct epilogue_patches {
    uint8_t *stage;
    uint64_t first_m;
    uint64_t first_n;
    uint32_t down;
    uint32_t count;
};

static RULE INLINED uint64_t patch_m(const struct epilogue_patches *patches, uint32_t at)
{
    return patches->first_m + at % patches->down * EPILOGUE_ROWS;
}

static RULE INLINED uint64_t patch_n(const struct epilogue_patches *patches, uint32_t at)
{
    return patches->first_n + at / patches->down * EPILOGUE_COLUMNS;
}

static RULE INLINED uint8_t *patch_ahead(const struct epilogue_patches *patches, uint32_t at)
{
    return patches->stage + EPILOGUE_ROWS * EPILOGUE_PITCH * 4 + at % 2 * EPILOGUE_AHEAD_SIZE;
}

/* Prefetches what a step reads at a patch; a lane brings 16 bytes of two rows. */
static RULE INLINED void epilogue_send(const struct contract_args *args,
                                       const struct epilogue_patches *patches, uint32_t at)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint64_t n = patch_n(patches, at) + lane % 8 * 4;
    uint8_t *to = patch_ahead(patches, at) + lane * 16;

    UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        const uint64_t m = patch_m(patches, at) + half * 4 + lane / 8;
        const bool there = m < args->m && n < args->n;

        if (args->epilogue.ahead != NULL && at < patches->count) {
            copy_async(to + half * (EPILOGUE_AHEAD_SIZE / 2),
                       args->epilogue.ahead + (there ? m * args->n + n : 0), there);
        }
    }
    copy_commit();
}

/* All lanes have laid their results down. Results and the outputs of steps go to memory. */
static RULE INLINED void epilogue_write(const struct contract_args *args,
                                        const struct epilogue_patches *patches, uint32_t at)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    struct epilogue_quad quad;

    quad.column = patch_n(patches, at) + lane % 8 * 4;
    ROLLED
    for (uint32_t row = lane / 8; row < EPILOGUE_ROWS; row += 4) {
        const float *made = (const float *)patches->stage + row * EPILOGUE_PITCH + lane % 8 * 4;
        const uint64_t m = patch_m(patches, at) + row;

        if (m < args->m && quad.column < args->n) {
            quad.place = m * args->n + quad.column;
            quad.ahead =
                (const float *)patch_ahead(patches, at) + row * EPILOGUE_COLUMNS + lane % 8 * 4;
            load_quad(quad.made, made);
            if (args->out != NULL) {
                store_quad(args->out + quad.place, (const uint32_t *)made);
            }
            epilogue_steps(&args->epilogue, &quad);
        }
    }
}

/*
 * A warp's results, patch after patch: of each, a lane has those of row l/4, in columns 2 (l % 4)
 * and the next one of every eight. The loop is not unrolled; the remaining results move up. What
 * the first patch needs was prefetched before.
 */
static RULE INLINED void epilogue_finish(const struct contract_args *args,
                                         const struct epilogue_patches *patches, uint32_t *made)
{
    const uint32_t lane = thread_index() % CUDA_WARP;
    uint32_t *to = (uint32_t *)patches->stage + lane / 4 * EPILOGUE_PITCH + lane % 4 * 2;

    ROLLED
    for (uint32_t at = 0; at < patches->count; at++) {
        epilogue_send(args, patches, at + 1);
        UNROLL
        for (uint32_t i = 0; i < 8; i++) {
            to[i / 2 * 8 + i % 2] = made[i];
        }
        copy_wait(1);
        warp_barrier();
        epilogue_write(args, patches, at);
        warp_barrier();
        UNROLL
        for (uint32_t i = 8; i < patches->count * 8; i++) {
            made[i - 8] = made[i];
        }
    }
}
