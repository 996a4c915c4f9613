/*
 * hopper_body.h - exact contraction by wgmma, for sm_90a: 14 bits, blocks of whole pieces of 128
 * elements.
 *
 * A block of threads stays on its multiprocessor and makes tile after tile of 128 rows of A by 128
 * (or 64) of B. Four warps bring operands: a slot of shared memory holds 128 elements of k of one
 * plane of both operands, each one run of memory (packed.h), brought by one bulk copy and laid as
 * wgmma reads it. Two groups of four warps make 64 rows each: products in 32 bits, then their
 * addition to the 64-bit sums, in turn, so that one group adds while the tensor cores work for the
 * other.
 *
 * A run is what one block has of k, up to HOPPER_REACH. Its slots are those of h, then those of l.
 * They stay until all four products of limbs are made, so that each plane is read once from memory:
 *   hh', raised by 7 bits; hl' and lh' added to it, and this sum to the 64-bit sums; then ll'.
 * So the 64-bit sums are added twice a run. A longer run has no room in shared memory.
 *
 * What bounds it, per piece of 128 elements of a tile of 128 x 128, in clocks of a multiprocessor
 * (docs/history/cuda.md has the whole account): tensor cores 4 products of 512 at their full rate;
 * shared memory 2,200 to 2,600, of 128 bytes a clock; and per run the 64-bit sums, of 16,384
 * results by 64 lanes: 2 x 2 shifts (1,024 together) beside 2 wide multiplications with addition
 * and one that raises (768 to 1,280). Two 32-bit sums at once would need 256 registers for this
 * tile, and a smaller tile more of the L2 cache than it gives. So there is one at a time: 64
 * registers, and 128 for the 64-bit sums.
 *
 * A sum is shifted by its row and by its column before it is added. Where k is one block, no shift
 * is above 0. A column's shift is in its factor. A row's goes into the 32-bit sum as far as that
 * has room (packed_room), and the rest into the factor: packed.h shows that both are 32 bits wide,
 * so that their product is exact in 64. Between the two a 64-bit sum may wrap around; when both are
 * there it is what contraction.h says.
 */

#define HOPPER_PLANES 2
#define HOPPER_PASSES 4 /* over a run: plane pass / 2 of A by plane pass % 2 of B */
#define HOPPER_RAISED 7 /* h counts 2^7 */

/*
 * What shared memory holds, from a multiple of 1,024 on: slots, then this. A run's entry is
 * written when its first slot is free again, and is read until its last sum was added: a warp
 * gives back the next run's first slot after that, and (HOPPER_RUNS - 1) runs have at least as many
 * slots as there are, since each has one of every plane.
 */
struct hopper_control {
    uint64_t full[HOPPER_SLOTS];
    uint64_t empty[HOPPER_SLOTS];
    struct {
        uint32_t factors[HOPPER_COLUMNS]; /* 2^shift, at hopper_factor_place() */
        uint8_t row_shifts[HOPPER_ROWS];
    } runs[HOPPER_RUNS];
    uint32_t before[2]; /* splits that were done, for each group */
};

static_assert(sizeof(struct hopper_control) == HOPPER_CONTROL_SIZE, "as args.h has it");
static_assert((HOPPER_RUNS - 1) * HOPPER_PLANES >= HOPPER_SLOTS,
              "entries of runs outlive their readers");
static_assert(HOPPER_PLANES * (HOPPER_REACH / PACKED_LINE_MAX) < HOPPER_SLOTS,
              "a run lies in slots, and the next one can begin to come");
static_assert(offsetof(struct hopper_control, runs) % 16 == 0 &&
                  sizeof(((struct hopper_control *)0)->runs[0]) % 16 == 0,
              "four factors are read at once");

struct hopper_unit {
    uint64_t batch;
    uint64_t row_a; /* of A's planes: where the tile begins, a multiple of 8 */
    uint64_t row_b;
    uint64_t start_a; /* where the batch begins */
    uint64_t start_b;
    uint64_t first_k;
    uint64_t end_k;
    uint32_t tile; /* among the tiles of all batches */
    uint32_t split;
    bool there;  /* it has rows and columns */
    bool unseen; /* no result of it is wanted */
};

/* Where a warp is: slots and entries of runs go around through all units. */
struct hopper_place {
    uint8_t *slots;
    struct hopper_control *control;
    uint32_t slot;
    uint32_t parity; /* of the slots' barriers: changes with every round */
    uint32_t run;
};

static RULE inline void hopper_next(struct hopper_place *place)
{
    place->slot++;
    if (place->slot == HOPPER_SLOTS) {
        place->slot = 0;
        place->parity ^= 1;
    }
}

static RULE inline struct hopper_place hopper_place_of(void)
{
    uint8_t *shared = dynamic_shared();
    struct hopper_place place;

    place.slots = shared + (1024 - shared_address(shared) % 1024) % 1024;
    place.control = (struct hopper_control *)(place.slots + HOPPER_SLOTS * HOPPER_SLOT_SIZE);
    place.slot = 0;
    place.parity = 0;
    place.run = 0;
    return place;
}

/* Where the run of element k ends: with its block or what 32 bits hold of it, or with the unit. */
static RULE inline uint64_t hopper_run_end(const struct contract_args *args, uint64_t k,
                                           uint64_t end_k)
{
    const uint64_t end = ((k >> args->reach_log) + 1) << args->reach_log;

    return end < end_k ? end : end_k;
}

/* launch_hopper() asserts that they are below 2^31. */
static RULE inline uint32_t hopper_units(const struct contract_args *args)
{
    return (uint32_t)args->batches * args->tiles_m * args->tiles_n * args->splits;
}

static RULE inline struct hopper_unit hopper_unit_of(const struct contract_args *args,
                                                     uint32_t index, uint32_t columns)
{
    const uint32_t tiles = args->tiles_m * args->tiles_n;
    struct hopper_unit unit;
    uint32_t tile_m;
    uint32_t tile_n;

    unit.batch = index / tiles / args->splits;
    unit.split = index / tiles % args->splits;
    tile_of(&tile_m, &tile_n, args, index % tiles);
    unit.tile = (uint32_t)unit.batch * tiles + index % tiles;
    unit.start_a = unit.batch * args->m;
    unit.start_b = unit.batch * args->n;
    unit.row_a =
        unit.start_a / PACKED_ATOM_ROWS * PACKED_ATOM_ROWS + (uint64_t)tile_m * HOPPER_ROWS;
    unit.row_b = unit.start_b / PACKED_ATOM_ROWS * PACKED_ATOM_ROWS + (uint64_t)tile_n * columns;
    split_of(&unit.first_k, &unit.end_k, args, unit.split);
    unit.there = unit.row_a < unit.start_a + args->m && unit.row_b < unit.start_b + args->n;
    unit.unseen = false;
    if (unit.there) {
        const uint64_t end = unit.row_a + HOPPER_ROWS < unit.start_a + args->m
                                 ? unit.row_a + HOPPER_ROWS - unit.start_a
                                 : args->m;

        unit.unseen = tile_unseen(args, unit.row_a > unit.start_a ? unit.row_a - unit.start_a : 0,
                                  end, unit.row_b > unit.start_b ? unit.row_b - unit.start_b : 0);
    }
    return unit;
}

/* ---- bringing ---------------------------------------------------------------- */

/* Bytes of so many rows from `row` on, of those that there are. */
static RULE inline uint32_t hopper_size(const struct packed_operand *operand, uint64_t row,
                                        uint32_t rows, uint32_t line_log)
{
    const uint64_t first = row / PACKED_ATOM_ROWS;
    const uint64_t left = first < operand->atoms ? operand->atoms - first : 0;
    const uint32_t atoms =
        left < rows / PACKED_ATOM_ROWS ? (uint32_t)left : rows / PACKED_ATOM_ROWS;

    return atoms * PACKED_ATOM_ROWS << line_log;
}

static RULE inline const uint8_t *hopper_source(const struct packed_operand *operand,
                                                uint32_t plane, uint64_t row, uint64_t k,
                                                uint32_t line_log)
{
    return operand->planes + plane * operand->plane_size + (k >> line_log) * operand->strip_size +
           (row << line_log);
}

/* One thread starts the copies of a slot. */
static RULE inline void hopper_copy(const struct contract_args *args,
                                    const struct hopper_place *place,
                                    const struct hopper_unit *unit, uint32_t plane, uint64_t k,
                                    uint32_t columns)
{
    uint8_t *to = place->slots + place->slot * HOPPER_SLOT_SIZE;
    uint64_t *full = &place->control->full[place->slot];
    const uint32_t size_a = hopper_size(&args->a, unit->row_a, HOPPER_ROWS, args->line_log);
    const uint32_t size_b = hopper_size(&args->b, unit->row_b, columns, args->line_log);

    bring_expect(full, size_a + size_b);
    bring_bulk(to, hopper_source(&args->a, plane, unit->row_a, k, args->line_log), size_a, full);
    bring_bulk(to + HOPPER_OPERAND_SIZE,
               hopper_source(&args->b, plane, unit->row_b, k, args->line_log), size_b, full);
}

/* Rows that only fill the last atom have no shift. */
static RULE inline uint32_t hopper_shift(const struct packed_operand *operand, uint64_t rows,
                                         uint64_t row, uint64_t block)
{
    return row < rows ? operand->shifts[block * operand->shift_pitch + row] & SHIFT_MASK : 0;
}

/*
 * Where a column's factor lies: the four of two times eight columns that a thread adds together
 * (hopper_add) side by side, so that it reads them at once and threads read other banks.
 */
static RULE inline uint32_t hopper_factor_place(uint32_t column)
{
    return column / 16 * 16 + column / 2 % 4 * 4 + column / 8 % 2 * 2 + column % 2;
}

/* Shifts and factors of a run: a thread has one row and one column. */
static RULE inline void hopper_write_run(const struct contract_args *args,
                                         const struct hopper_place *place,
                                         const struct hopper_unit *unit, uint64_t k,
                                         uint32_t columns)
{
    const uint32_t thread = thread_index();
    const uint32_t at = place->run;
    const uint64_t block = k >> args->block_log;
    const uint32_t column = thread < columns ? hopper_shift(&args->b, args->batches * args->n,
                                                            unit->row_b + thread, block)
                                             : 0;

    place->control->runs[at].row_shifts[thread] =
        (uint8_t)hopper_shift(&args->a, args->batches * args->m, unit->row_a + thread, block);
    place->control->runs[at].factors[hopper_factor_place(thread)] = UINT32_C(1) << column;
}

/* One slot, when it is free; the first of a run comes with the run's entry. */
static RULE inline void hopper_bring_slot(const struct contract_args *args,
                                          struct hopper_place *place,
                                          const struct hopper_unit *unit, uint32_t plane,
                                          uint64_t k, bool first, uint32_t columns)
{
    bring_wait(&place->control->empty[place->slot], place->parity ^ 1, args->gives_up);
    if (thread_index() == 0) {
        hopper_copy(args, place, unit, plane, k, columns);
    }
    if (first) {
        hopper_write_run(args, place, unit, k, columns);
    }
    warp_barrier();
    if (thread_index() % CUDA_WARP == 0) {
        bring_arrive(&place->control->full[place->slot]);
    }
    hopper_next(place);
}

static RULE inline void hopper_bring(const struct contract_args *args, struct hopper_place place,
                                     uint32_t columns)
{
    const uint32_t units = hopper_units(args);
    const uint64_t line = UINT64_C(1) << args->line_log;

    for (uint32_t index = block_index(); index < units; index += grid_size()) {
        const struct hopper_unit unit = hopper_unit_of(args, index, columns);
        uint64_t end;

        if (!unit.there || unit.unseen) {
            continue;
        }
        for (uint64_t first = unit.first_k; first < unit.end_k; first = end) {
            end = hopper_run_end(args, first, unit.end_k);
            for (uint32_t plane = 0; plane < HOPPER_PLANES; plane++) {
                for (uint64_t k = first; k < end; k += line) {
                    hopper_bring_slot(args, &place, &unit, plane, k, plane == 0 && k == first,
                                      columns);
                }
            }
            place.run = (place.run + 1) % HOPPER_RUNS;
        }
    }
}

/* ---- multiplying -------------------------------------------------------------- */

/* The PTX ISA's matrix descriptor: k along lines, 8 lines to an atom, atoms one after another. */
static RULE inline uint64_t hopper_descriptor(const uint8_t *at, uint32_t line_log)
{
    const uint64_t layout = line_log == 7 ? 1 : 2; /* swizzle of 128 bytes, of 64 */

    return (uint64_t)(shared_address(at) >> 4) | UINT64_C(1) << 16 |
           (uint64_t)(PACKED_ATOM_ROWS << line_log >> 4) << 32 | layout << 62;
}

/* A group's sums of A's lines in a slot by B's in a slot; more: added to those that it has. */
static RULE inline void hopper_products(int32_t *sums, const struct contract_args *args,
                                        const struct hopper_place *place, uint32_t slot_a,
                                        uint32_t slot_b, bool more, uint32_t columns)
{
    const uint32_t group = thread_index() / HOPPER_GROUP - 1;
    const uint8_t *lines_a =
        place->slots + slot_a * HOPPER_SLOT_SIZE + (group * (HOPPER_ROWS / 2) << args->line_log);
    const uint8_t *lines_b = place->slots + slot_b * HOPPER_SLOT_SIZE + HOPPER_OPERAND_SIZE;
    const uint64_t a = hopper_descriptor(lines_a, args->line_log);
    const uint64_t b = hopper_descriptor(lines_b, args->line_log);
    const uint64_t step = PACKED_STEP >> 4;

    group_multiply(sums, a, b, more, columns);
    group_multiply(sums, a + step, b + step, true, columns);
    if (args->line_log == 7) {
        group_multiply(sums, a + 2 * step, b + 2 * step, true, columns);
        group_multiply(sums, a + 3 * step, b + 3 * step, true, columns);
    }
}

/* The sums of hh' as hl' and lh' count. */
static RULE inline void hopper_raise(int32_t *sums, uint32_t columns)
{
    UNROLL
    for (uint32_t i = 0; i < columns / 2; i++) {
        sums[i] = (int32_t)((uint32_t)sums[i] << HOPPER_RAISED);
    }
}

/* Adds a run's sums, times 2^raised, to the 64-bit sums. */
static RULE inline void hopper_add(int64_t *wide, const int32_t *sums,
                                   const struct contract_args *args,
                                   const struct hopper_place *place, uint32_t raised,
                                   uint32_t columns)
{
    const uint32_t thread = thread_index() - HOPPER_GROUP;
    const uint8_t *row_shifts = place->control->runs[place->run].row_shifts +
                                thread / CUDA_WARP * 16 + thread % CUDA_WARP / 4;
    const uint32_t *factors = place->control->runs[place->run].factors + thread % 4 * 4;
    const uint32_t room = packed_room(args->reach_log);
    uint32_t into_sums[2];
    uint32_t into_factors[2];

    /* Loaded again for each sum: registers are scarcer than loads. */
    UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        const uint32_t shift = row_shifts[half * 8];

        into_sums[half] = shift < room ? shift : room;
        into_factors[half] = shift - into_sums[half] + raised;
    }
    UNROLL
    for (uint32_t first = 0; first < columns / 2; first += 8) {
        uint32_t by[4];

        load_four(by, factors + first * 2);
        UNROLL
        for (uint32_t i = 0; i < 8; i++) {
            const uint32_t half = i / 2 % 2;
            const int32_t shifted = (int32_t)((uint32_t)sums[first + i] << into_sums[half]);
            const int32_t factor = (int32_t)(by[i / 4 * 2 + i % 2] << into_factors[half]);

            wide[first + i] =
                (int64_t)((uint64_t)wide[first + i] + (uint64_t)((int64_t)shifted * factor));
        }
    }
}

/* A warp is done with a slot. */
static RULE inline void hopper_release(const struct hopper_place *place, uint32_t slot)
{
    if (thread_index() % CUDA_WARP == 0) {
        bring_arrive(&place->control->empty[slot]);
    }
}

/* Waits for the next slot. */
static RULE inline void hopper_await(const struct contract_args *args, struct hopper_place *place)
{
    bring_wait(&place->control->full[place->slot], place->parity, args->gives_up);
    hopper_next(place);
}

static RULE inline uint32_t hopper_slot(uint32_t first, uint32_t at)
{
    return first + at < HOPPER_SLOTS ? first + at : first + at - HOPPER_SLOTS;
}

/*
 * One run of so many pieces. The passes are a loop in machine code too (kernel-loops.md): side by
 * side they would spill registers. The first two wait for the slots of their planes of B, the last
 * two give them back.
 */
static RULE inline void hopper_run(int64_t *wide, int32_t *sums, const struct contract_args *args,
                                   struct hopper_place *place, uint32_t pieces, uint32_t columns)
{
    const uint32_t first = place->slot;

    ROLLED
    for (uint32_t pass = 0; pass < HOPPER_PASSES; pass++) {
        const bool more = pass == 1 || pass == 2;

        ROLLED
        for (uint32_t piece = 0; piece < pieces; piece++) {
            const uint32_t slot_a = hopper_slot(first, pass / HOPPER_PLANES * pieces + piece);
            const uint32_t slot_b = hopper_slot(first, pass % HOPPER_PLANES * pieces + piece);

            if (pass < HOPPER_PLANES) {
                hopper_await(args, place);
            }
            warp_barrier(); /* wgmma wants whole warps */
            group_begin(sums, columns);
            hopper_products(sums, args, place, slot_a, slot_b, more || piece > 0, columns);
            group_end(sums, columns);
            if (pass >= HOPPER_PLANES) {
                hopper_release(place, slot_b);
            }
        }
        if (pass >= HOPPER_PLANES) {
            hopper_add(wide, sums, args, place, pass == 2 ? HOPPER_RAISED : 0, columns);
        } else if (pass == 0) {
            hopper_raise(sums, columns);
        }
    }
    place->run = (place->run + 1) % HOPPER_RUNS;
}

/* ---- writing ------------------------------------------------------------------- */

/* Two results side by side, in one store where memory allows. */
static RULE inline void hopper_write_pair(const struct contract_args *args,
                                          const struct hopper_unit *unit,
                                          const struct result_line *row, uint64_t n,
                                          const int64_t *sums, bool first, bool second)
{
    uint32_t bits[2] = {0, 0};
    uint64_t places[2] = {0, 0};

    UNROLL
    for (uint32_t c = 0; c < 2; c++) {
        if (c == 0 ? first : second) {
            const struct result_line column = result_column(args, unit->batch, n + c);

            bits[c] = result_bits(args, row, &column, sums[c]);
            places[c] = row->place + column.place;
        }
    }
    if (first && second && places[1] == places[0] + 1 && places[0] % 2 == 0) {
        store_pair(args->out + places[0], bits[0], bits[1]);
        return;
    }
    if (first) {
        args->out[places[0]] = bits[0];
    }
    if (second) {
        args->out[places[1]] = bits[1];
    }
}

/* Adds a group's sums to those in memory, or writes results: of its own, or of the sums there. */
static RULE inline void hopper_write(const struct contract_args *args,
                                     const struct hopper_unit *unit, const int64_t *wide,
                                     uint32_t columns, bool add)
{
    const uint32_t thread = thread_index() - HOPPER_GROUP;
    const bool split = args->splits > 1 && !unit->unseen;

    UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        const uint64_t row_a =
            unit->row_a + thread / CUDA_WARP * 16 + thread % CUDA_WARP / 4 + half * 8;
        const uint64_t m = row_a - unit->start_a;

        if (row_a < unit->start_a || m >= args->m) {
            continue;
        }
        const struct result_line row = result_row(args, unit->batch, m);
        uint64_t *partial = args->partial + row_a * args->n;

        UNROLL
        for (uint32_t j = 0; j < columns / 8; j++) {
            const uint64_t row_b = unit->row_b + j * 8 + thread % 4 * 2;
            const uint64_t n = row_b - unit->start_b;
            const bool first = row_b >= unit->start_b && n < args->n;
            const bool second = row_b + 1 >= unit->start_b && n + 1 < args->n;
            int64_t sums[2] = {wide[j * 4 + half * 2], wide[j * 4 + half * 2 + 1]};

            UNROLL
            for (uint32_t c = 0; c < 2; c++) {
                if (split && (c == 0 ? first : second)) {
                    if (add) {
                        atomic_add_wide(&partial[n + c], (uint64_t)sums[c]);
                    } else {
                        sums[c] = (int64_t)load_fresh(&partial[n + c]);
                    }
                }
            }
            if (!add) {
                hopper_write_pair(args, unit, &row, n, sums, first, second);
            }
        }
    }
}

/* The same with an epilogue. */
static RULE inline void hopper_write_steps(const struct contract_args *args,
                                           const struct hopper_place *place,
                                           const struct hopper_unit *unit, const int64_t *wide,
                                           uint32_t columns)
{
    const uint32_t warp = (thread_index() - HOPPER_GROUP) / CUDA_WARP;
    const uint32_t lane = thread_index() % CUDA_WARP;
    const struct epilogue_patches patches = {place->slots + HOPPER_SLOTS * HOPPER_SLOT_SIZE +
                                                 HOPPER_STAGES + warp * EPILOGUE_STAGE_SIZE,
                                             unit->row_a + warp * 16, unit->row_b, 2, columns / 16};
    uint32_t made[HOPPER_COLUMNS / 2] = {};

    epilogue_send(args, &patches, 0);
    UNROLL
    for (uint32_t i = 0; i < columns / 2; i++) {
        const uint64_t m = patches.first_m + i / 8 % 2 * EPILOGUE_ROWS + lane / 4;
        const uint64_t n =
            patches.first_n + i / 16 * EPILOGUE_COLUMNS + i / 2 % 4 * 8 + lane % 4 * 2 + i % 2;

        if (m < args->m && n < args->n) {
            made[i] = seen_bits(args, args->a.lowest[m], args->b.lowest[n],
                                args->splits > 1
                                    ? (int64_t)load_fresh(&args->partial[m * args->n + n])
                                    : wide[(i / 16 * 4 + i / 2 % 4) * 4 + i / 8 % 2 * 2 + i % 2]);
        }
    }
    epilogue_finish(args, &patches, made);
}

/* Does this group finish the tile: has every other split added its sums? */
static RULE inline bool hopper_last(const struct contract_args *args,
                                    const struct hopper_place *place,
                                    const struct hopper_unit *unit)
{
    const uint32_t group = thread_index() / HOPPER_GROUP - 1;

    /* The fences are those of the thread with the ticket: last_of_splits() says why. */
    group_barrier(group);
    if (thread_index() % HOPPER_GROUP == 0) {
        device_fence();
        place->control->before[group] = atomic_add(&args->tickets[unit->tile * 2 + group], 1);
        device_fence();
    }
    group_barrier(group);
    return place->control->before[group] + 1 == args->splits;
}

/* A group's sums of a unit, written or added. The unit is looked up again, to spare registers. */
static RULE inline void hopper_finish(const struct contract_args *args,
                                      const struct hopper_place *place, const int64_t *wide,
                                      uint32_t index, uint32_t columns)
{
    const struct hopper_unit unit = hopper_unit_of(args, opaque(index), columns);

    if (!unit.unseen && args->splits > 1) {
        hopper_write(args, &unit, wide, columns, true);
        if (!hopper_last(args, place, &unit)) {
            return;
        }
    }
    if (args->epilogue.count != 0) {
        hopper_write_steps(args, place, &unit, wide, columns);
        return;
    }
    hopper_write(args, &unit, wide, columns, false);
}

static RULE inline void hopper_make(const struct contract_args *args, struct hopper_place place,
                                    uint32_t columns)
{
    const uint32_t units = hopper_units(args);

    for (uint32_t index = block_index(); index < units; index += grid_size()) {
        const struct hopper_unit unit = hopper_unit_of(args, index, columns);
        const uint64_t line = UINT64_C(1) << args->line_log;
        int32_t sums[HOPPER_COLUMNS / 2] = {}; /* here, so that none is kept to the end */
        uint64_t end;
        int64_t wide[HOPPER_COLUMNS / 2] = {};

        if (!unit.there || (unit.unseen && unit.split > 0)) {
            continue;
        }
        for (uint64_t k = unit.unseen ? unit.end_k : unit.first_k; k < unit.end_k; k = end) {
            end = hopper_run_end(args, k, unit.end_k);
            hopper_run(wide, sums, args, &place, (uint32_t)((end - k + line - 1) >> args->line_log),
                       columns);
        }
        hopper_finish(args, &place, wide, index, columns);
    }
}

static RULE inline void hopper_contract(const struct contract_args *args, uint32_t columns)
{
    const struct hopper_place place = hopper_place_of();

    if (thread_index() == 0) {
        for (uint32_t slot = 0; slot < HOPPER_SLOTS; slot++) {
            bring_init(&place.control->full[slot], HOPPER_GROUP / CUDA_WARP);
            bring_init(&place.control->empty[slot], 2 * HOPPER_GROUP / CUDA_WARP);
        }
        bring_init_fence();
    }
    barrier();
    if (thread_index() < HOPPER_GROUP) {
        registers_lower();
        hopper_bring(args, place, columns);
    } else {
        registers_raise();
        hopper_make(args, place, columns);
    }
}

/* grid: any, one block to a multiprocessor; block: HOPPER_THREADS; HOPPER_SHARED bytes. */
KERNEL_ALONE(kernel_hopper_narrow, struct contract_args, HOPPER_THREADS)
{
    hopper_contract(&args, 128);
}

/* The same for few or narrow tiles. */
KERNEL_ALONE(kernel_hopper_narrow_half, struct contract_args, HOPPER_THREADS)
{
    hopper_contract(&args, 64);
}
