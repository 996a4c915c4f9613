/*
 * lists_body.h - many tensors in one launch: the update of all parameters, and the squares of all
 * gradients with their sum. A block finds the tensor of its work by bisection.
 */

/* The item that work number `at` belongs to: the last whose first is not above it. */
static RULE inline uint32_t item_of(const uint64_t *firsts, uint32_t count, uint64_t at)
{
    uint32_t low = 0;
    uint32_t high = count;

    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;

        if (firsts[middle] <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- updates -------------------------------------------------------------------- */

/* The same for all elements of a tensor: the operation's constants, and four tensors of one. */
struct update_numbers {
    float constants[ADAMW_ATTRIBUTES];
    float rate;
    float correct1;
    float correct2;
    float scale; /* of gradients */
};

static RULE inline struct update_numbers update_numbers_of(const struct update_item *item)
{
    const bool adamw = item->op->kind == OP_ADAMW;
    const uint32_t first = adamw ? 4 : 3;
    struct update_numbers numbers;

    UNROLL
    for (uint32_t i = 0; i < ADAMW_ATTRIBUTES; i++) {
        numbers.constants[i] = real_from_bits((uint32_t)item->op->attributes[i]);
    }
    numbers.rate = *(const float *)item->inputs[first];
    numbers.correct1 = adamw ? *(const float *)item->inputs[5] : 1.0f;
    numbers.correct2 = adamw ? *(const float *)item->inputs[6] : 1.0f;
    numbers.scale = *(const float *)item->inputs[adamw ? 7 : 4];
    return numbers;
}

/* An element: p, g, m, v of AdamW, p, g, v of SGD; its new values take their places, as bits. */
struct update_element {
    float own[4];
    uint32_t made[3];
};

/* As in rules_update.c. */
static RULE inline void update_adamw(struct update_element *element,
                                     const struct update_numbers *numbers)
{
    const float *constants = numbers->constants;
    const float p = element->own[0];
    const float gradient = element->own[1] * numbers->scale;
    const float fresh1 = constants[ADAMW_ONE_LESS_BETA1_BITS] * gradient;
    const float fresh2 = constants[ADAMW_ONE_LESS_BETA2_BITS] * (gradient * gradient);
    const float m = fmaf(constants[ADAMW_BETA1_BITS], element->own[2], fresh1);
    const float v = fmaf(constants[ADAMW_BETA2_BITS], element->own[3], fresh2);
    const float root = sqrtf(v * numbers->correct2);
    float update = (m * numbers->correct1) / (root + constants[ADAMW_EPSILON_BITS]);

    update = fmaf(constants[ADAMW_DECAY_BITS], p, update);
    element->made[0] = real_to_bits(fmaf(-numbers->rate, update, p));
    element->made[1] = real_to_bits(m);
    element->made[2] = real_to_bits(v);
}

static RULE inline void update_sgd(struct update_element *element,
                                   const struct update_numbers *numbers)
{
    const float p = element->own[0];
    const float scaled = element->own[1] * numbers->scale;
    const float gradient = fmaf(numbers->constants[SGD_DECAY_BITS], p, scaled);
    const float v = fmaf(numbers->constants[SGD_MOMENTUM_BITS], element->own[2], gradient);

    element->made[0] = real_to_bits(fmaf(-numbers->rate, v, p));
    element->made[1] = real_to_bits(v);
    element->made[2] = 0;
}

/* Up to four elements from at on: all are read before any is written. */
static RULE inline void update_elements(const struct update_item *item,
                                        const struct update_numbers *numbers, uint64_t at,
                                        uint32_t count)
{
    const bool adamw = item->op->kind == OP_ADAMW;
    const bool quads = count == 4 && item->quads != 0;
    struct update_element elements[4];

    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        float values[4] = {0.0f, 0.0f, 0.0f, 0.0f};

        if (i < 3 || adamw) {
            const float *input = (const float *)item->inputs[i] + at;

            if (quads) {
                load_quad(values, input);
            } else {
                UNROLL
                for (uint32_t e = 0; e < 4; e++) {
                    values[e] = e < count ? input[e] : 0.0f;
                }
            }
        }
        UNROLL
        for (uint32_t e = 0; e < 4; e++) {
            elements[e].own[i] = values[e];
        }
    }
    UNROLL
    for (uint32_t e = 0; e < 4; e++) {
        if (adamw) {
            update_adamw(&elements[e], numbers);
        } else {
            update_sgd(&elements[e], numbers);
        }
    }
    UNROLL
    for (uint32_t i = 0; i < 3; i++) {
        if (i < 2 || adamw) {
            const uint32_t made[4] = {elements[0].made[i], elements[1].made[i], elements[2].made[i],
                                      elements[3].made[i]};
            uint32_t *output = (uint32_t *)item->outputs[i] + at;

            if (quads) {
                store_quad(output, made);
            } else {
                UNROLL
                for (uint32_t e = 0; e < 4; e++) {
                    if (e < count) {
                        output[e] = made[e];
                    }
                }
            }
        }
    }
}

/* grid: any; block: BLOCK_THREADS. A block takes UPDATE_TILE elements of one tensor at a time. */
KERNEL(kernel_updates, struct updates_args)
{
    for (uint64_t tile = args.first_tile + block_index(); tile < args.end_tile;
         tile += grid_size()) {
        const uint32_t at = item_of(args.firsts, args.item_count, tile);
        const struct update_item *item = &args.items[at];
        const struct update_numbers numbers = update_numbers_of(item);
        const uint64_t first = (tile - args.firsts[at]) * UPDATE_TILE;
        const uint64_t end = first + UPDATE_TILE < item->count ? first + UPDATE_TILE : item->count;

        for (uint64_t i = first + (uint64_t)thread_index() * 4; i < end;
             i += (uint64_t)BLOCK_THREADS * 4) {
            update_elements(item, &numbers, i, end - i < 4 ? (uint32_t)(end - i) : 4);
        }
    }
}

/* ---- squares --------------------------------------------------------------------- */

/* Four numbers of a row from k on, zeros where it has none. */
static RULE inline struct quad square_quad(const struct square_item *item, const float *x,
                                           uint64_t k)
{
    struct quad quad = {{0.0f, 0.0f, 0.0f, 0.0f}};

    if (item->quads != 0) {
        if (k < item->k) {
            load_quad(quad.x, x + k);
        }
        return quad;
    }
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        if (k + i < item->k) {
            quad.x[i] = x[k + i];
        }
    }
    return quad;
}

static RULE inline uint32_t quad_magnitude(const struct quad *quad)
{
    uint32_t largest = 0;

    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t magnitude = magnitude_of(quad->x[i]);

        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

static RULE inline uint32_t warp_largest(uint32_t value)
{
    for (uint32_t d = CUDA_WARP / 2; d > 0; d /= 2) {
        const uint32_t other = shuffle_xor(value, d);

        value = other > value ? other : value;
    }
    return value;
}

/* What the warps of a block share. */
struct square_shared {
    uint32_t *tops;
    uint32_t *lows; /* the smallest of the pieces' largest */
    uint64_t *sums;
};

/*
 * The sum of the squares of a row, quantized as its item says. A block is a piece of 128 elements,
 * or the row. Both passes go piece by piece, a warp to each, and the second finds the row in the
 * cache. Exponents need no memory: the warp that uses a piece's exponent finds it again.
 */
static RULE inline uint32_t row_square(const struct square_item *item, const float *x,
                                       const struct square_shared *shared, uint32_t team)
{
    const uint32_t warp = thread_index() / CUDA_WARP;
    const uint32_t member = warp % team;
    const uint32_t lane = thread_index() % CUDA_WARP;
    const uint64_t pieces = (item->k + CONTRACTION_PIECE - 1) / CONTRACTION_PIECE;
    uint32_t top_bits = 0;
    uint32_t low_bits = UINT32_MAX;
    uint64_t sum = 0;

    for (uint64_t p = member; p < pieces; p += team) {
        const struct quad quad = square_quad(item, x, p * CONTRACTION_PIECE + (uint64_t)lane * 4);
        const uint32_t peak = warp_largest(quad_magnitude(&quad));

        top_bits = peak > top_bits ? peak : top_bits;
        low_bits = peak < low_bits ? peak : low_bits;
    }
    if (lane == 0) {
        shared->tops[warp] = top_bits;
        shared->lows[warp] = low_bits;
    }
    barrier();
    for (uint32_t i = 0; i < team; i++) {
        const uint32_t top = shared->tops[warp - member + i];
        const uint32_t low = shared->lows[warp - member + i];

        top_bits = top > top_bits ? top : top_bits;
        low_bits = low < low_bits ? low : low_bits;
    }
    const int32_t top = exponent_of_bits(top_bits);
    const int32_t floor = top - item->window;
    const int32_t low = exponent_of_bits(low_bits);
    const int32_t lowest = item->whole != 0 ? top : low > floor ? low : floor;

    for (uint64_t p = member; p < pieces; p += team) {
        const struct quad quad = square_quad(item, x, p * CONTRACTION_PIECE + (uint64_t)lane * 4);
        const int32_t peak = exponent_of_bits(warp_largest(quad_magnitude(&quad)));
        const int32_t own = item->whole != 0 ? top : peak > floor ? peak : floor;
        int64_t part = 0;

        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const int64_t q =
                top == EXPONENT_POISON ? 0 : quantized_number(quad.x[i], own, item->bits);

            part += item->squares != 0 ? q * q : q;
        }
        /* Once for each factor. */
        sum += (uint64_t)part << (top == EXPONENT_POISON ? 0 : 2 * (own - lowest));
    }
    sum = warp_sum_wide(sum);
    if (lane == 0) {
        shared->sums[warp] = sum;
    }
    barrier();
    sum = 0;
    for (uint32_t i = 0; i < team; i++) {
        sum += shared->sums[warp - member + i];
    }
    barrier();
    const int32_t factors = item->squares != 0 ? 2 : 1;

    return top == EXPONENT_POISON
               ? FLOAT_NAN_BITS
               : contraction_finish((int64_t)sum, factors * (lowest - (item->bits - 1)));
}

/* grid: any; block: BLOCK_THREADS. A block takes a row, or as many as it has warps. */
KERNEL(kernel_squares, struct squares_args)
{
    SHARED(uint32_t, tops, BLOCK_THREADS / CUDA_WARP);
    SHARED(uint32_t, lows, BLOCK_THREADS / CUDA_WARP);
    SHARED(uint64_t, sums, BLOCK_THREADS / CUDA_WARP);
    const struct square_shared shared = {tops, lows, sums};
    const uint32_t warps = BLOCK_THREADS / CUDA_WARP;

    for (uint64_t tile = block_index(); tile < args.tiles; tile += grid_size()) {
        const uint32_t at = item_of(args.firsts, args.item_count, tile);
        const struct square_item *item = &args.items[at];
        const uint32_t team = item->k > SQUARE_TEAM_K ? warps : 1;
        const uint64_t row =
            (tile - args.firsts[at]) * (warps / team) + thread_index() / CUDA_WARP / team;
        const bool there = row < item->rows;
        /* A missing row has no elements: all threads meet all barriers. */
        const struct square_item none = {.window = item->window, .bits = item->bits, .whole = 1};
        const uint32_t bits =
            row_square(there ? item : &none, item->x + (there ? row * item->k : 0), &shared, team);

        if (there && thread_index() % (CUDA_WARP * team) == 0) {
            item->out[row] = bits;
        }
    }
}

/* grid: 1; block: one warp. The numbers added up one after another, as the tape adds them. */
KERNEL(kernel_total, struct total_args)
{
    const uint32_t lane = thread_index();
    float total = 0.0f;

    for (uint32_t first = 0; first < args.count; first += CUDA_WARP) {
        const uint32_t left = args.count - first < CUDA_WARP ? args.count - first : CUDA_WARP;
        const float own = lane < left ? *args.terms[first + lane] : 0.0f;

        for (uint32_t i = 0; i < left; i++) {
            const float term = shuffle_real(own, i);

            total = first + i == 0 ? term : real_stored(total + term);
        }
    }
    warp_barrier(); /* the total may lie where a term did */
    if (lane == 0) {
        *args.out = total;
    }
}
