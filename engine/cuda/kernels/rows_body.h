/*
 * rows_body.h - sums, norms, softmax and cross-entropy along rows, each row by one kernel.
 *
 * The canonical fold (fold.h) is a warp: lane l adds elements l, l+32, ... of a chunk, then lanes
 * are added at distances 16, 8, 4, 2, 1. A row of one chunk is one warp's; a longer one is made by
 * all warps of a block, chunk by chunk, and every warp folds the parts for itself.
 */

struct team {
    uint64_t row;
    uint64_t columns;
    uint64_t begin; /* columns that take part: begin .. visible-1 */
    uint64_t visible;
    uint64_t chunks; /* of all columns: the stride of parts */
    uint32_t warp;   /* in the team */
    uint32_t warps;
    uint32_t lane;
    float *parts; /* shared by the team */
};

static RULE inline void team_barrier(const struct team *team)
{
    if (team->warps > 1) {
        barrier();
    } else {
        warp_barrier();
    }
}

static RULE inline float in_f32(const struct rows_args *args, uint32_t input, uint64_t index)
{
    return ((const float *)args->inputs[input])[index];
}

/* The same type as reads use, so that the compiler sees when an output lies over an input. */
static RULE inline void out_f32(const struct rows_args *args, uint32_t output, uint64_t index,
                                float value)
{
    if (args->outputs[output] != NULL) {
        ((float *)args->outputs[output])[index] = real_stored(value);
    }
}

/* Lane 0 has the fold of all lanes afterwards, and then every lane. */
static RULE inline float warp_fold(float v)
{
    for (uint32_t d = CUDA_WARP / 2; d > 0; d /= 2) {
        v = v + shuffle_down_real(v, d);
    }
    return shuffle_real(v, 0);
}

/* What is folded: the factors of an element, or the element and 1 where it is no product. */
enum row_value {
    ROW_X,         /* x */
    ROW_CENTRED,   /* (x - mean)^2 */
    ROW_SQUARE,    /* x^2 */
    ROW_LAYER_G,   /* dy * gain */
    ROW_LAYER_GX,  /* g * xhat of layer norm */
    ROW_RMS_GX,    /* g * xhat of RMS norm */
    ROW_PRODUCT,   /* p * dp */
    ROW_EXPONENTS, /* exp(v - max) */
};

struct row_numbers {
    float mean; /* or the maximum */
    float rstd; /* or the scale */
};

static RULE inline float row_exponential(const struct rows_args *args, uint64_t at,
                                         const struct row_numbers *numbers)
{
    float v = in_f32(args, 0, at);

    if (args->kind == OP_SOFTMAX) {
        v = v * numbers->rstd;
    }
    return real_stored(scalar_exp(v - numbers->mean));
}

/* One step of a lane's fold. */
static RULE inline float row_fold_step(const struct rows_args *args, enum row_value what,
                                       const struct row_numbers *numbers, uint64_t at,
                                       uint64_t column, float lane)
{
    float a = 0.0f;
    float b = 0.0f;

    switch (what) {
    case ROW_X:
        return lane + in_f32(args, 0, at);
    case ROW_EXPONENTS: {
        const float e = row_exponential(args, at, numbers);
        /* exps where that output is wanted, else the place of p. */
        out_f32(args, args->kind == OP_SOFTMAX && args->outputs[2] == NULL ? 5 : 2, at, e);
        return lane + e;
    }
    case ROW_LAYER_G:
        return lane + in_f32(args, 0, at) * in_f32(args, 2, column);
    case ROW_CENTRED:
        a = in_f32(args, 0, at) - numbers->mean;
        b = a;
        break;
    case ROW_SQUARE:
        a = in_f32(args, 0, at);
        b = a;
        break;
    case ROW_LAYER_GX:
        a = in_f32(args, 0, at) * in_f32(args, 2, column);
        b = (in_f32(args, 1, at) - numbers->mean) * numbers->rstd;
        break;
    case ROW_RMS_GX:
        a = in_f32(args, 0, at) * in_f32(args, 2, column);
        b = in_f32(args, 1, at) * numbers->rstd;
        break;
    case ROW_PRODUCT:
        a = in_f32(args, 0, at);
        b = in_f32(args, 1, at);
        break;
    }
    return fmaf(a, b, lane);
}

/* The columns of a chunk that take part: from .. end-1, none where from >= end. */
static RULE inline uint64_t team_from(const struct team *team, uint64_t chunk)
{
    const uint64_t from = chunk * FOLD_CHUNK;

    return from < team->begin ? team->begin : from;
}

static RULE inline uint64_t team_end(const struct team *team, uint64_t chunk)
{
    const uint64_t end = (chunk + 1) * FOLD_CHUNK;

    return end < team->visible ? end : team->visible;
}

/* The fold of the row's parts, which go to output `part`; every thread gets it. */
static RULE inline float team_fold(const struct team *team, const struct rows_args *args,
                                   enum row_value what, uint32_t part,
                                   const struct row_numbers *numbers)
{
    const uint64_t seen = fold_chunks(team->visible);
    float total = -0.0f;

    for (uint64_t chunk = team->warp; chunk < team->chunks; chunk += team->warps) {
        const uint64_t from = team_from(team, chunk);
        const uint64_t end = team_end(team, chunk);
        float lane = -0.0f;

        for (uint64_t c = from + team->lane; c < end; c += CUDA_WARP) {
            lane = row_fold_step(args, what, numbers, team->row * team->columns + c, c, lane);
        }
        lane = from < end ? real_stored(warp_fold(lane)) : 0.0f;
        if (team->lane == 0) {
            team->parts[chunk] = lane;
            out_f32(args, part, team->row * team->chunks + chunk, lane);
        }
    }
    team_barrier(team);
    for (uint64_t chunk = team->begin / FOLD_CHUNK + team->lane; chunk < seen; chunk += CUDA_WARP) {
        total = total + team->parts[chunk];
    }
    total = warp_fold(total);
    team_barrier(team);
    return total;
}

static RULE inline float team_maximum(const struct team *team, const struct rows_args *args,
                                      float scale)
{
    float maximum = -INFINITY;

    for (uint64_t chunk = team->warp; chunk < team->chunks; chunk += team->warps) {
        const uint64_t from = team_from(team, chunk);
        const uint64_t end = team_end(team, chunk);
        float lane = -INFINITY;

        for (uint64_t c = from + team->lane; c < end; c += CUDA_WARP) {
            const float v = in_f32(args, 0, team->row * team->columns + c);

            lane = fold_maximum(lane, args->kind == OP_SOFTMAX ? v * scale : v);
        }
        for (uint32_t d = CUDA_WARP / 2; d > 0; d /= 2) {
            lane = fold_maximum(lane, shuffle_xor_real(lane, d));
        }
        if (team->lane == 0) {
            team->parts[chunk] = real_from_bits(fold_maximum_bits(lane));
            out_f32(args, 0, team->row * team->chunks + chunk, team->parts[chunk]);
        }
    }
    team_barrier(team);
    for (uint64_t chunk = team->lane; chunk < team->chunks; chunk += CUDA_WARP) {
        maximum = fold_maximum(maximum, team->parts[chunk]);
    }
    for (uint32_t d = CUDA_WARP / 2; d > 0; d /= 2) {
        maximum = fold_maximum(maximum, shuffle_xor_real(maximum, d));
    }
    team_barrier(team);
    return real_from_bits(fold_maximum_bits(maximum));
}

/* Writes a number of the row, once. */
static RULE inline void team_number(const struct team *team, const struct rows_args *args,
                                    uint32_t output, float value)
{
    if (team->warp == 0 && team->lane == 0) {
        out_f32(args, output, team->row, value);
    }
}

/*
 * The columns of a thread, in the order of the folds: a thread that reads what it wrote itself, or
 * writes over what only it reads, needs no barrier.
 */
#define TEAM_COLUMNS(team, c)                                                                      \
    for (uint64_t chunk_ = (team)->warp; chunk_ < (team)->chunks; chunk_ += (team)->warps)         \
        for (uint64_t c = chunk_ * FOLD_CHUNK + (team)->lane;                                      \
             c < (team)->columns && c < (chunk_ + 1) * FOLD_CHUNK; c += CUDA_WARP)

static RULE inline float mean_of(const struct team *team, float total)
{
    return total / (float)team->columns;
}

static RULE inline float rstd_of(const struct team *team, const struct rows_args *args, float total)
{
    return real_stored(1.0f / sqrtf(mean_of(team, total) + real_from_bits(args->constant)));
}

static RULE inline void team_norm(const struct team *team, const struct rows_args *args)
{
    const bool layer = args->kind == OP_LAYER_NORM;
    struct row_numbers numbers = {0.0f, 0.0f};

    if (layer) {
        numbers.mean = real_stored(mean_of(team, team_fold(team, args, ROW_X, 0, &numbers)));
        team_number(team, args, 1, numbers.mean);
        numbers.rstd = rstd_of(team, args, team_fold(team, args, ROW_CENTRED, 2, &numbers));
        team_number(team, args, 3, numbers.rstd);
    } else {
        numbers.rstd = rstd_of(team, args, team_fold(team, args, ROW_SQUARE, 0, &numbers));
        team_number(team, args, 1, numbers.rstd);
    }
    TEAM_COLUMNS(team, c)
    {
        const uint64_t at = team->row * team->columns + c;
        const float x = in_f32(args, 0, at);

        if (layer) {
            out_f32(
                args, 4, at,
                fmaf((x - numbers.mean) * numbers.rstd, in_f32(args, 1, c), in_f32(args, 2, c)));
        } else {
            out_f32(args, 2, at, (x * numbers.rstd) * in_f32(args, 1, c));
        }
    }
}

static RULE inline void team_norm_grad(const struct team *team, const struct rows_args *args)
{
    const bool layer = args->kind == OP_LAYER_NORM_GRAD;
    struct row_numbers numbers = {layer ? in_f32(args, 3, team->row) : 0.0f,
                                  in_f32(args, layer ? 4 : 3, team->row)};
    float mean_g = 0.0f;
    float mean_gx;

    if (layer) {
        mean_g = real_stored(mean_of(team, team_fold(team, args, ROW_LAYER_G, 0, &numbers)));
        mean_gx = real_stored(mean_of(team, team_fold(team, args, ROW_LAYER_GX, 1, &numbers)));
        team_number(team, args, 2, mean_g);
        team_number(team, args, 3, mean_gx);
    } else {
        mean_gx = real_stored(mean_of(team, team_fold(team, args, ROW_RMS_GX, 0, &numbers)));
        team_number(team, args, 1, mean_gx);
    }
    TEAM_COLUMNS(team, c)
    {
        const uint64_t at = team->row * team->columns + c;
        const float dy = in_f32(args, 0, at);
        const float g = dy * in_f32(args, 2, c);
        const float x = in_f32(args, 1, at);
        const float xhat = (layer ? x - numbers.mean : x) * numbers.rstd;
        const float inner = fmaf(-xhat, mean_gx, layer ? g - mean_g : g);

        out_f32(args, layer ? 4 : 2, at, numbers.rstd * inner);
        out_f32(args, layer ? 5 : 3, at, dy * xhat);
    }
}

static RULE inline void team_softmax(const struct team *team, const struct rows_args *args)
{
    const float scale = real_from_bits(args->constant);
    const struct row_numbers numbers = {team_maximum(team, args, scale), scale};
    const float *exps = (const float *)args->outputs[args->outputs[2] == NULL ? 5 : 2];
    float sum;

    team_number(team, args, 1, numbers.mean);
    sum = real_stored(team_fold(team, args, ROW_EXPONENTS, 3, &numbers));
    team_number(team, args, 4, sum);
    const float inverse = 1.0f / sum;

    TEAM_COLUMNS(team, c)
    {
        const uint64_t at = team->row * team->columns + c;

        if (c < team->begin || c >= team->visible) {
            out_f32(args, 2, at, 0.0f);
            out_f32(args, 5, at, 0.0f);
        } else if (args->outputs[5] != NULL) {
            out_f32(args, 5, at, exps[at] * inverse);
        }
    }
}

static RULE inline void team_softmax_grad(const struct team *team, const struct rows_args *args)
{
    const float scale = real_from_bits(args->constant);
    const struct row_numbers numbers = {0.0f, 0.0f};
    const float dot = real_stored(team_fold(team, args, ROW_PRODUCT, 0, &numbers));

    team_number(team, args, 1, dot);
    TEAM_COLUMNS(team, c)
    {
        const uint64_t at = team->row * team->columns + c;

        out_f32(args, 2, at,
                team->begin <= c && c < team->visible
                    ? (in_f32(args, 0, at) * (in_f32(args, 1, at) - dot)) * scale
                    : 0.0f);
    }
}

static RULE inline void team_cross_entropy(const struct team *team, const struct rows_args *args)
{
    const struct row_numbers numbers = {team_maximum(team, args, 1.0f), 1.0f};
    const uint32_t target = ((const uint32_t *)args->inputs[1])[team->row];
    const float sum = real_stored(team_fold(team, args, ROW_EXPONENTS, 3, &numbers));
    float loss = target == TARGET_IGNORED ? 0.0f : real_from_bits(FLOAT_NAN_BITS);

    team_number(team, args, 1, numbers.mean);
    team_number(team, args, 4, sum);
    if (target < team->columns) {
        const float wanted = in_f32(args, 0, team->row * team->columns + target) - numbers.mean;

        loss = scalar_log(sum) - wanted;
    }
    team_number(team, args, 5, loss);
}

static RULE inline struct softmax_span seen_columns(const struct rows_args *args, uint64_t row)
{
    /* ROWS, COLUMNS, SOFTMAX_CAUSAL */
    const int64_t attributes[] = {(int64_t)args->rows, (int64_t)args->columns,
                                  (int64_t)args->causal};
    uint32_t reach = UINT32_MAX;

    if (args->reach != NULL) {
        reach = args->reach[softmax_reach_index(attributes, args->reach_count, row)];
    }
    return softmax_span_of(attributes, row, reach);
}

/* grid: any; block: ROWS_WARPS warps. A warp takes a row of one chunk, a block a longer one. */
KERNEL(kernel_rows, struct rows_args)
{
    SHARED(float, parts, FOLD_CHUNK);
    const uint64_t chunks = fold_chunks(args.columns);
    const uint32_t warp = thread_index() / CUDA_WARP;
    const bool alone = chunks == 1;
    const struct row_numbers none = {0.0f, 0.0f};
    struct team team = {.row = alone ? (uint64_t)block_index() * ROWS_WARPS + warp : block_index(),
                        .columns = args.columns,
                        .visible = args.columns,
                        .chunks = chunks,
                        .warp = alone ? 0 : warp,
                        .warps = alone ? 1u : (uint32_t)ROWS_WARPS,
                        .lane = thread_index() % CUDA_WARP,
                        .parts = alone ? parts + warp : parts};
    const uint64_t stride = (uint64_t)grid_size() * (alone ? ROWS_WARPS : 1);

    /* Turned round: C++ would take a < after .row for a template of the rules' struct row. */
    for (; args.rows > team.row; team.row += stride) {
        const struct softmax_span seen = seen_columns(&args, team.row);

        team.begin = seen.from;
        team.visible = seen.end;
        switch (args.kind) {
        case OP_ROW_SUM:
            team_number(&team, &args, 1, team_fold(&team, &args, ROW_X, 0, &none));
            break;
        case OP_LAYER_NORM:
        case OP_RMS_NORM:
            team_norm(&team, &args);
            break;
        case OP_LAYER_NORM_GRAD:
        case OP_RMS_NORM_GRAD:
            team_norm_grad(&team, &args);
            break;
        case OP_SOFTMAX:
            team_softmax(&team, &args);
            break;
        case OP_SOFTMAX_GRAD:
            team_softmax_grad(&team, &args);
            break;
        default:
            team_cross_entropy(&team, &args);
            break;
        }
        team_barrier(&team);
    }
}
