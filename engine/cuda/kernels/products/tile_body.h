/*
 * tile_body.h - what the contraction kernels share: which tile and which part of k a block of
 * threads makes, where results lie, and the last step from a sum to a result.
 */

#define TILE_GROUP 8   /* tiles of m that go together along n, so that their limbs stay in L2 */
#define SPLIT_UNIT 128 /* elements of k: a split is a whole number of them, so of pieces */

static RULE inline uint64_t causal_limit(const struct contract_args *args, uint64_t m)
{
    return args->causal == 0 ? args->n : m % args->causal + 1;
}

/* Tile `index` of a batch, in groups of TILE_GROUP rows of tiles, down first. */
static RULE inline void tile_of(uint32_t *tile_m, uint32_t *tile_n,
                                const struct contract_args *args, uint32_t index)
{
    const uint32_t group = index / (TILE_GROUP * args->tiles_n);
    const uint32_t in_group = index - group * TILE_GROUP * args->tiles_n;
    const uint32_t left = args->tiles_m - group * TILE_GROUP;
    const uint32_t height = left < TILE_GROUP ? left : TILE_GROUP;

    *tile_m = group * TILE_GROUP + in_group % height;
    *tile_n = in_group / height;
}

/* The elements of k of one of args->splits parts. */
static RULE inline void split_of(uint64_t *first, uint64_t *end, const struct contract_args *args,
                                 uint32_t split)
{
    const uint64_t units = (args->k + SPLIT_UNIT - 1) / SPLIT_UNIT;

    *first = units * split / args->splits * SPLIT_UNIT;
    *end = units * (split + 1) / args->splits * SPLIT_UNIT;
    *end = *end < args->k ? *end : args->k;
}

/* Shifts stay below 64 and exponents small, unless no kernel packed the operand: a self-test runs
 * kernels after one that may have done nothing. Then sums are wrong, but defined. */
static RULE inline uint64_t shifted_part(int64_t part, uint32_t shift)
{
    return (uint64_t)part << (shift & 63);
}

/* A shift is at most W, below 32 (contraction.h). Rows of a tile that the tensor
 * does not have come with any bytes: they have no result, but their shifts must stay in range. */
#define SHIFT_MASK 31

/* The exponent of the last bit of an integer of `bits` bits. */
static RULE inline int32_t last_bit(int32_t lowest, int32_t bits)
{
    return (int32_t)((uint32_t)lowest - (uint32_t)(bits - 1));
}

/* The place of a result is the sum of its row's part and its column's part. */
static RULE inline uint64_t place_of_row(const struct contract_args *args, uint64_t batch,
                                         uint64_t m)
{
    const uint64_t b1 = (uint64_t)args->dims[1];
    const uint64_t m1 = (uint64_t)args->dims[3];
    const uint64_t of_batch =
        batch / b1 * (uint64_t)args->strides[0] + batch % b1 * (uint64_t)args->strides[1];

    if (m < m1) {
        return of_batch + m * (uint64_t)args->strides[3];
    }
    return of_batch + m / m1 * (uint64_t)args->strides[2] + m % m1 * (uint64_t)args->strides[3];
}

static RULE inline uint64_t place_of_column(const struct contract_args *args, uint64_t n)
{
    const uint64_t n1 = (uint64_t)args->dims[5];

    if (n < n1) {
        return n * (uint64_t)args->strides[5];
    }
    return n / n1 * (uint64_t)args->strides[4] + n % n1 * (uint64_t)args->strides[5];
}

/* What the last step needs of a row or column of results. */
struct result_line {
    uint64_t place;
    uint64_t limit; /* of a row: the columns that it sees */
    int32_t lowest;
};

static RULE inline struct result_line result_row(const struct contract_args *args, uint64_t batch,
                                                 uint64_t m)
{
    struct result_line line;

    line.place = place_of_row(args, batch, m);
    line.limit = causal_limit(args, m);
    line.lowest = args->a.lowest[batch * args->m + m];
    return line;
}

static RULE inline struct result_line result_column(const struct contract_args *args,
                                                    uint64_t batch, uint64_t n)
{
    struct result_line line;

    line.place = place_of_column(args, n);
    line.limit = n;
    line.lowest = args->b.lowest[batch * args->n + n];
    return line;
}

/* One result, from its sum and the smallest exponents of its row and column. */
static RULE inline uint32_t seen_bits(const struct contract_args *args, int32_t lowest_a,
                                      int32_t lowest_b, int64_t sum)
{
    if (lowest_a == PACKED_POISON || lowest_b == PACKED_POISON) {
        return FLOAT_NAN_BITS;
    }
    const uint32_t exponent =
        (uint32_t)last_bit(lowest_a, args->bits) + (uint32_t)last_bit(lowest_b, args->bits);

    return contraction_finish(sum, (int32_t)exponent);
}

static RULE inline uint32_t result_bits(const struct contract_args *args,
                                        const struct result_line *row,
                                        const struct result_line *column, int64_t sum)
{
    return column->limit >= row->limit ? 0 : seen_bits(args, row->lowest, column->lowest, sum);
}

static RULE inline void write_result(const struct contract_args *args,
                                     const struct result_line *row,
                                     const struct result_line *column, int64_t sum)
{
    args->out[row->place + column->place] = result_bits(args, row, column, sum);
}

/* Is no result of the rows [first, end) and columns from n on wanted? */
static RULE inline bool tile_unseen(const struct contract_args *args, uint64_t first, uint64_t end,
                                    uint64_t n)
{
    if (args->causal == 0) {
        return false;
    }
    /* Rows of one turn rise to the last; a tile that holds the end of a turn sees the most. */
    if (first / args->causal != (end - 1) / args->causal) {
        return n >= args->causal;
    }
    return n >= causal_limit(args, end - 1);
}
