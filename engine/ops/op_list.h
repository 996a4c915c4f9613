/*
 * op_list.h - one row for each kind of operation, and one for each set of attributes.
 *
 * Everything that a kind has comes from its row: its number, its names, the counts and the check of
 * its shapes, its rules, its gradient, the memory that its outputs may take, how it is cut, what
 * launches it on a GPU, what evidence about it reads, and the contract that has its rules. A reader
 * of the list defines KIND and those of the row's words that it wants; the others go.
 *
 *     KIND(NAME, text,
 *          OP_SPEC(inputs, their names, outputs, their names, counts, attributes, check),
 *          OP_RULES(one for each output),
 *          OP_GRADIENT(rule, the output that has a gradient),
 *          OP_PLAN(cut, launch, for each output the inputs whose memory it may take),
 *          OP_LEDGER(reads, contract))
 *
 * counts: EXACT; OPTIONAL: one input more may stand there; MORE: all counts may be larger, and the
 * last name repeats. check: op_check_NAME(), in engine/ops/check. rules: rule_NAME(); an
 * OP_RULE_OF_ANY() takes the number of the output. The gradient is grad_NAME(); OP_NO_GRADIENT: the
 * kind carries integers, draws batches, or belongs to the reverse pass. cut: enum family of
 * engine/plan/slice.c; of OP_PLAN_ROWS() what each tensor has per row: 'a' all columns, 'p' the
 * parts of a fold, 'r' one number, 'w' its WIDTH, 'h' a reach, 'c' nothing. launch: enum
 * launch_family of engine/cuda/launch. reads: enum reads_family of engine/rules/evidence_bound.c.
 * contract: one of OP_CONTRACTS.
 *
 * Numbers of kinds are bound by jobs and by contracts: a new row goes to the end. scripts/kinds
 * writes chain/contracts/Kinds.sol from this file and checks what no compiler sees; CONTRIBUTING.md
 * has the recipe.
 */
#ifndef ENGINE_OPS_OP_LIST_H
#define ENGINE_OPS_OP_LIST_H

/* clang-format off */

/* ---- attributes: names and, with the prefix of the set, positions ------------ */

#define OP_DRAW COUNT, LENGTH, STREAM, SEED_LOW, SEED_HIGH
#define OP_IMAGE \
    BATCH, HEIGHT, WIDTH, CHANNELS, KERNEL_HEIGHT, KERNEL_WIDTH, STRIDE_Y, STRIDE_X, TOP, LEFT, \
    BOTTOM, RIGHT, DILATION_Y, DILATION_X

/* Names that end in _BITS have the bits of a binary32. */
#define OP_ATTRIBUTES(SET) \
    SET(SCHEDULE, COLUMNS, COLUMN) \
    SET(FILL, VALUE_BITS) \
    SET(BATCH_TOKENS, OP_DRAW) \
    SET(BATCH_SAMPLES, OP_DRAW, SCALE_BITS) \
    SET(BATCH_ROWS, OP_DRAW, UNIT, AHEAD, PAST, ORDER) \
    SET(DROPOUT, THRESHOLD, SCALE_BITS, STREAM, SEED_LOW, SEED_HIGH) \
    SET(UNIFORM, STREAM, SEED_LOW, SEED_HIGH) \
    SET(GATHER, VOCABULARY, WIDTH) \
    SET(SPLIT, ROWS, WIDTH) \
    SET(EXPAND, DIV, MOD) \
    SET(IMAGE, OP_IMAGE) \
    SET(ROTARY, LENGTH, HEADS, WIDTH, INVERSE, HALVES) \
    SET(QUANTIZE, B0, B1, R0, R1, K0, K1, SB0, SB1, SR0, SR1, SK0, SK1, BITS, BLOCK) \
    SET(CONTRACT, B0, B1, M0, M1, N0, N1, SB0, SB1, SM0, SM1, SN0, SN1, K, BITS, BLOCK, CAUSAL) \
    SET(ONES, ROWS, K, BITS, BLOCK) \
    SET(ONEHOT, VOCABULARY, WIDTH, K, BITS, BLOCK) \
    SET(EQUILIBRATE, ROWS, E, F) \
    SET(CHOSEN, ROWS, EXPERTS, WIDTH, K, BITS, BLOCK) \
    SET(CHOSEN_SUM, EXPERTS, M, N, K, BITS, BLOCK) \
    SET(ROW_SUM, ROWS, COLUMNS) \
    SET(NORM, ROWS, COLUMNS, EPSILON_BITS) \
    SET(NORM_GRAD, ROWS, COLUMNS) \
    SET(SOFTMAX, ROWS, COLUMNS, CAUSAL, SCALE_BITS) \
    SET(CROSS_ENTROPY, ROWS, COLUMNS) \
    SET(REDUCE, ROWS, COLUMNS, FUNCTION) \
    SET(GATHER_ELEMENTS, ROWS, COLUMNS) \
    SET(MEAN_POOL, OP_IMAGE, COUNTS_PADDING) \
    SET(CLIP, LIMIT_BITS) \
    SET(SGD, MOMENTUM_BITS, DECAY_BITS) \
    SET(ADAMW, BETA1_BITS, ONE_LESS_BETA1_BITS, BETA2_BITS, ONE_LESS_BETA2_BITS, EPSILON_BITS, \
        DECAY_BITS) \
    SET(MAP, FUNCTION, CONSTANT_BITS) \
    SET(BINARY, FUNCTION, D0, D1, D2, D3, A0, A1, A2, A3, B0, B1, B2, B3) \
    SET(SELECT, D0, D1, D2, D3, C0, C1, C2, C3, A0, A1, A2, A3, B0, B1, B2, B3) \
    SET(MOVE, D0, D1, D2, D3, D4, S0, S1, S2, S3, S4, OFFSET) \
    SET(INTEGER, FUNCTION, D0, D1, D2, D3, A0, A1, A2, A3, B0, B1, B2, B3) \
    SET(TAKE, ROWS, COLUMNS, WIDTH) \
    SET(SCATTER, ROWS, COLUMNS, WIDTH, FUNCTION) \
    SET(SORT, ROWS, COLUMNS, DESCENDING)

/* ---- kinds ------------------------------------------------------------------- */

#define OP_LIST(KIND) \
    /* ---- step number, schedules, batches, randomness ---- */ \
    /* in step u32(1); out step+1 */ \
    KIND(STEP_NEXT, "step-next", \
         OP_SPEC(1, "step", 1, "next", EXACT, NONE, step_next), \
         OP_RULES(step_next), \
         OP_NO_GRADIENT, OP_PLAN(NONE, RULES, NEW), OP_LEDGER(ONE, MOVES)) \
    /* in table(rows*columns), step; out (1): table[min(step,rows-1)][column] */ \
    KIND(SCHEDULE, "schedule", \
         OP_SPEC(2, "table step", 1, "value", EXACT, SCHEDULE, schedule), \
         OP_RULES(schedule), \
         OP_NO_GRADIENT, OP_PLAN(NONE, RULES, NEW), OP_LEDGER(ONE, MOVES)) \
    /* out f32|u32(count): the constant */ \
    KIND(FILL, "fill", \
         OP_SPEC(0, "", 1, "out", EXACT, FILL, fill), \
         OP_RULES(fill), \
         OP_NO_GRADIENT, OP_PLAN(ELEMENTS, ELEMENTS, NEW), OP_LEDGER(ONE, MOVES)) \
    /* in data u8|u16|u32(n), step; out tokens u32(B,T), targets u32(B,T) */ \
    KIND(BATCH_TOKENS, "batch-tokens", \
         OP_SPEC(2, "data step", 2, "tokens targets", EXACT, BATCH_TOKENS, batch_tokens), \
         OP_RULES(batch_tokens, batch_targets), \
         OP_NO_GRADIENT, OP_PLAN(NONE, RULES, NEW), OP_LEDGER(ONE, MOVES)) \
    /* in samples u8|f32(n,width), labels u8|u16|u32(n), step; out x f32(B,width) = \
     * sample*scale, y u32(B) */ \
    KIND(BATCH_SAMPLES, "batch-samples", \
         OP_SPEC(3, "samples labels step", 2, "x y", EXACT, BATCH_SAMPLES, batch_samples), \
         OP_RULES(batch_samples, batch_labels), \
         OP_NO_GRADIENT, OP_PLAN(NONE, RULES, NEW), OP_LEDGER(ONE, MOVES)) \
    /* in x(count), step u32(1); out keep ? x*scale : +0 */ \
    KIND(DROPOUT, "dropout", \
         OP_SPEC(2, "x step", 1, "out", EXACT, DROPOUT, dropout), \
         OP_RULES(dropout), \
         OP_GRADIENT(dropout, 0), OP_PLAN(NONE, RULES, OVER_0), OP_LEDGER(ONE, MOVES)) \
    /* ---- moving data ---- */ \
    /* in table(V,C), index u32(R); out (R,C); an index >= V gives NaN */ \
    KIND(GATHER, "gather", \
         OP_SPEC(2, "table index", 1, "out", EXACT, GATHER, gather), \
         OP_RULES(gather), \
         OP_GRADIENT(gather, 0), OP_PLAN(GATHER, RULES, NEW), OP_LEDGER(ONE, MOVES)) \
    /* in x(R,N); out parts (R,n_i), side by side */ \
    KIND(SPLIT, "split", \
         OP_SPEC(1, "x", 1, "part", MORE, SPLIT, split), \
         OP_RULE_OF_ANY(split), \
         OP_NO_GRADIENT, OP_PLAN(PARTS, RULES, NEW), OP_LEDGER(ONE, MOVES)) \
    /* in parts (R,n_i); out (R,N) */ \
    KIND(CONCAT, "concat", \
         OP_SPEC(1, "part", 1, "out", MORE, SPLIT, concat), \
         OP_RULES(concat), \
         OP_GRADIENT(concat, 0), OP_PLAN(PARTS, RULES, NEW), OP_LEDGER(ONE, MOVES)) \
    /* in a; out[i] = a[(i/div)%mod] */ \
    KIND(EXPAND, "expand", \
         OP_SPEC(1, "a", 1, "out", EXACT, EXPAND, expand), \
         OP_RULES(expand), \
         OP_GRADIENT(expand, 0), OP_PLAN(EXPAND, ELEMENTS, NEW), OP_LEDGER(ONE, MOVES)) \
    /* in x(B,H,W,C); out (B*OH*OW, KH*KW*C), outside the picture +0 */ \
    KIND(IM2COL, "im2col", \
         OP_SPEC(1, "x", 1, "out", EXACT, IMAGE, im2col), \
         OP_RULES(im2col), \
         OP_GRADIENT(image, 0), OP_PLAN(PICTURES, RULES, NEW), OP_LEDGER(ONE, MOVES)) \
    /* the adjoint: in (B*OH*OW, KH*KW*C); out (B,H,W,C), sums in order of (ky,kx) */ \
    KIND(COL2IM, "col2im", \
         OP_SPEC(1, "x", 1, "out", EXACT, IMAGE, col2im), \
         OP_RULES(col2im), \
         OP_GRADIENT(image, 0), OP_PLAN(PICTURES, RULES, NEW), OP_LEDGER(WINDOW, MOVES)) \
    /* in x(outer,T,heads*D), table(T,D/2,2) of cos,sin; pairs (2j,2j+1) turn, or, with \
     * HALVES, (j,j+D/2) */ \
    KIND(ROTARY, "rotary", \
         OP_SPEC(2, "x table", 1, "out", EXACT, ROTARY, rotary), \
         OP_RULES(rotary), \
         OP_GRADIENT(rotary, 0), OP_PLAN(ROTARY, RULES, OVER_0), OP_LEDGER(PAIR, ELEMENTWISE)) \
    /* ---- exact contraction ---- */ \
    /* in x[, c i16(batches,K)]; out peaks i16(rows,pieces), exponents i16(rows,blocks), q \
     * i16|i32(rows,K) */ \
    KIND(QUANTIZE, "quantize", \
         OP_SPEC(1, "x c", 3, "peaks exponents q", OPTIONAL, QUANTIZE, quantize), \
         OP_RULES(quantize_peak, quantize_exponent, quantize_integer), \
         OP_NO_GRADIENT, OP_PLAN(QUANTIZE, QUANTIZE, NEW), OP_LEDGER(PRODUCT, CONTRACTION)) \
    /* in qa, ea, qb, eb; out (batch,M,N) through a permuted view */ \
    KIND(CONTRACT, "contract", \
         OP_SPEC(4, "qa ea qb eb", 1, "out", EXACT, CONTRACT, contract), \
         OP_RULES(contract), \
         OP_GRADIENT(contract, 0), OP_PLAN(CONTRACT, CONTRACT, NEW), OP_LEDGER(PRODUCT, \
             CONTRACTION)) \
    /* in q, e; out (rows): sum over K */ \
    KIND(CONTRACT_ONES, "contract-ones", \
         OP_SPEC(2, "q e", 1, "out", EXACT, ONES, contract_ones), \
         OP_RULES(contract_ones), \
         OP_GRADIENT(contract_ones, 0), OP_PLAN(ONES, ONES, NEW), OP_LEDGER(PRODUCT, \
             CONTRACTION)) \
    /* in index u32(K), q(C,K), e; out (V,C): sum over k with index[k]==v */ \
    KIND(CONTRACT_ONEHOT, "contract-onehot", \
         OP_SPEC(3, "index q e", 1, "out", EXACT, ONEHOT, contract_onehot), \
         OP_RULES(contract_onehot), \
         OP_GRADIENT(contract_onehot, 0), OP_PLAN(ONEHOT, ONEHOT, NEW), OP_LEDGER(PRODUCT, \
             CONTRACTION)) \
    /* ---- rows ---- */ \
    /* in x(R,N); out part(R,chunks), sum(R) */ \
    KIND(ROW_SUM, "row-sum", \
         OP_SPEC(1, "x", 2, "part sum", EXACT, ROW_SUM, row_sum), \
         OP_RULES(row_sum_part, row_sum), \
         OP_GRADIENT(row_sum, 1), OP_PLAN_ROWS("apr", ROWS, NEW), OP_LEDGER(CHUNK, ROWS)) \
    /* in x, gain, bias; out sum_part, mean, square_part, rstd, y */ \
    KIND(LAYER_NORM, "layer-norm", \
         OP_SPEC(3, "x gain bias", 5, "sum_part mean square_part rstd y", EXACT, NORM, \
             layer_norm), \
         OP_RULES(layer_norm_sum_part, layer_norm_mean, layer_norm_square_part, layer_norm_rstd, \
             layer_norm), \
         OP_GRADIENT(norm, 4), OP_PLAN_ROWS("accprpra", ROWS, NEW, NEW, NEW, NEW, OVER_0), \
             OP_LEDGER(CHUNK, ROWS)) \
    /* in dy, x, gain, mean, rstd; out part_g, part_gx, mean_g, mean_gx, dx, product */ \
    KIND(LAYER_NORM_GRAD, "layer-norm-grad", \
         OP_SPEC(5, "dy x gain mean rstd", 6, "part_g part_gx mean_g mean_gx dx product", EXACT, \
             NORM_GRAD, layer_norm_grad), \
         OP_RULES(layer_norm_grad_part_g, layer_norm_grad_part_gx, layer_norm_grad_mean_g, \
             layer_norm_grad_mean_gx, layer_norm_grad, layer_norm_grad_product), \
         OP_NO_GRADIENT, OP_PLAN_ROWS("aacrrpprraa", ROWS, NEW, NEW, NEW, NEW, OVER_01, \
             OVER_01), OP_LEDGER(CHUNK, ROWS)) \
    /* in x, gain; out square_part, rstd, y */ \
    KIND(RMS_NORM, "rms-norm", \
         OP_SPEC(2, "x gain", 3, "square_part rstd y", EXACT, NORM, rms_norm), \
         OP_RULES(rms_norm_square_part, rms_norm_rstd, rms_norm), \
         OP_GRADIENT(norm, 2), OP_PLAN_ROWS("acpra", ROWS, NEW, NEW, OVER_0), OP_LEDGER(CHUNK, \
             ROWS)) \
    /* in dy, x, gain, rstd; out part_gx, mean_gx, dx, product */ \
    KIND(RMS_NORM_GRAD, "rms-norm-grad", \
         OP_SPEC(4, "dy x gain rstd", 4, "part_gx mean_gx dx product", EXACT, NORM_GRAD, \
             rms_norm_grad), \
         OP_RULES(rms_norm_grad_part_gx, rms_norm_grad_mean_gx, rms_norm_grad, \
             rms_norm_grad_product), \
         OP_NO_GRADIENT, OP_PLAN_ROWS("aacrpraa", ROWS, NEW, NEW, OVER_01, OVER_01), \
             OP_LEDGER(CHUNK, ROWS)) \
    /* in x[, reach u32]; out max_part, max, exps, sum_part, sum, p */ \
    KIND(SOFTMAX, "softmax", \
         OP_SPEC(1, "x reach", 6, "max_part max exps sum_part sum p", OPTIONAL, SOFTMAX, \
             softmax), \
         OP_RULES(softmax_max_part, softmax_max, softmax_exps, softmax_sum_part, softmax_sum, \
             softmax), \
         OP_GRADIENT(softmax, 5), OP_PLAN_ROWS("ahprapra", ROWS, NEW, NEW, OVER_0, NEW, NEW, \
             OVER_0), OP_LEDGER(CHUNK, ROWS)) \
    /* in p, dp[, reach u32]; out dot_part, dot, dx */ \
    KIND(SOFTMAX_GRAD, "softmax-grad", \
         OP_SPEC(2, "p dp reach", 3, "dot_part dot dx", OPTIONAL, SOFTMAX, softmax_grad), \
         OP_RULES(softmax_grad_dot_part, softmax_grad_dot, softmax_grad), \
         OP_NO_GRADIENT, OP_PLAN_ROWS("aahpra", ROWS, NEW, NEW, OVER_01), OP_LEDGER(CHUNK, \
             ROWS)) \
    /* in x(R,V), target u32(R); out max_part, max, exps, sum_part, sum, loss(R); a target \
     * of TARGET_IGNORED has loss +0 */ \
    KIND(CROSS_ENTROPY, "cross-entropy", \
         OP_SPEC(2, "x target", 6, "max_part max exps sum_part sum loss", EXACT, CROSS_ENTROPY, \
             cross_entropy), \
         OP_RULES(cross_entropy_max_part, cross_entropy_max, cross_entropy_exps, \
             cross_entropy_sum_part, cross_entropy_sum, cross_entropy), \
         OP_GRADIENT(cross_entropy, 5), OP_PLAN_ROWS("arpraprr", ROWS, NEW), OP_LEDGER(CHUNK, \
             ROWS)) \
    /* in x, target, max, sum, dloss(R); out dx, +0 in ignored rows */ \
    KIND(CROSS_ENTROPY_GRAD, "cross-entropy-grad", \
         OP_SPEC(5, "x target max sum dloss", 1, "dx", EXACT, CROSS_ENTROPY, \
             cross_entropy_grad), \
         OP_RULES(cross_entropy_grad), \
         OP_NO_GRADIENT, OP_PLAN_ROWS("arrrra", ELEMENTS, OVER_0), OP_LEDGER(CHUNK, ROWS)) \
    /* ---- pictures, (B,H,W,C) ---- */ \
    /* in x; out y, index u32: place of the first maximum in its window */ \
    KIND(MAX_POOL, "max-pool", \
         OP_SPEC(1, "x", 2, "y index", EXACT, IMAGE, max_pool), \
         OP_RULES(max_pool, max_pool_index), \
         OP_GRADIENT(image, 0), OP_PLAN(PICTURES, RULES, NEW), OP_LEDGER(WINDOW, MOVES)) \
    /* in index, dy; out dx */ \
    KIND(MAX_POOL_GRAD, "max-pool-grad", \
         OP_SPEC(2, "index dy", 1, "dx", EXACT, IMAGE, max_pool_grad), \
         OP_RULES(max_pool_grad), \
         OP_NO_GRADIENT, OP_PLAN(PICTURES, RULES, NEW), OP_LEDGER(WINDOW, MOVES)) \
    /* in x; out y */ \
    KIND(MEAN_POOL, "mean-pool", \
         OP_SPEC(1, "x", 1, "y", EXACT, MEAN_POOL, mean_pool), \
         OP_RULES(mean_pool), \
         OP_GRADIENT(image, 0), OP_PLAN(PICTURES, RULES, NEW), OP_LEDGER(WINDOW, MOVES)) \
    /* in dy; out dx */ \
    KIND(MEAN_POOL_GRAD, "mean-pool-grad", \
         OP_SPEC(1, "dy", 1, "dx", EXACT, MEAN_POOL, mean_pool_grad), \
         OP_RULES(mean_pool_grad), \
         OP_NO_GRADIENT, OP_PLAN(PICTURES, RULES, NEW), OP_LEDGER(WINDOW, MOVES)) \
    /* ---- the update ---- */ \
    /* in squared norm(1); out norm > limit ? limit/norm : 1 */ \
    KIND(CLIP_FACTOR, "clip-factor", \
         OP_SPEC(1, "square", 1, "factor", EXACT, CLIP, clip_factor), \
         OP_RULES(clip_factor), \
         OP_NO_GRADIENT, OP_PLAN(NONE, RULES, NEW), OP_LEDGER(ONE, ELEMENTWISE)) \
    /* in p, g, v, rate(1), gscale(1); out p', v' */ \
    KIND(SGD, "sgd", \
         OP_SPEC(5, "p g v rate gscale", 2, "p v", EXACT, SGD, sgd), \
         OP_RULES(sgd_parameter, sgd_velocity), \
         OP_NO_GRADIENT, OP_PLAN(ELEMENTS, ELEMENTS, OVER_0, OVER_2), OP_LEDGER(ONE, \
             ELEMENTWISE)) \
    /* in p, g, m, v, rate(1), correct1(1), correct2(1), gscale(1); out p',m',v' */ \
    KIND(ADAMW, "adamw", \
         OP_SPEC(8, "p g m v rate correct1 correct2 gscale", 3, "p m v", EXACT, ADAMW, adamw), \
         OP_RULES(adamw_parameter, adamw_moment1, adamw_moment2), \
         OP_NO_GRADIENT, OP_PLAN(ELEMENTS, ELEMENTS, OVER_0, OVER_2, OVER_3), OP_LEDGER(ONE, \
             ELEMENTWISE)) \
    /* ---- element by element: a function code, over views of up to four axes ---- */ \
    /* in x; out function(x) */ \
    KIND(MAP, "map", \
         OP_SPEC(1, "x", 1, "out", EXACT, MAP, map), \
         OP_RULES(map), \
         OP_GRADIENT(map, 0), OP_PLAN(ELEMENTS, ELEMENTS, OVER_0), OP_LEDGER(ONE, MAP)) \
    /* in a, b; out function(a, b), each read through strides that may repeat it */ \
    KIND(BINARY, "binary", \
         OP_SPEC(2, "a b", 1, "out", EXACT, BINARY, binary), \
         OP_RULES(binary), \
         OP_GRADIENT(binary, 0), OP_PLAN(GENERAL, ELEMENTS, OVER_01), OP_LEDGER(ONE, BINARY)) \
    /* in c f32|u32|u8, a, b, read likewise; out c != 0 ? a : b, the bits; a, b and out are \
     * all f32 or all u32 */ \
    KIND(SELECT, "select", \
         OP_SPEC(3, "c a b", 1, "out", EXACT, SELECT, select), \
         OP_RULES(select), \
         OP_GRADIENT(select, 0), OP_PLAN(GENERAL, ELEMENTS, NEW), OP_LEDGER(ONE, BINARY)) \
    /* in x; out[i] = x at offset + sums of index*stride: permute, slice, flip, repeat */ \
    KIND(MOVE, "move", \
         OP_SPEC(1, "x", 1, "out", EXACT, MOVE, move), \
         OP_RULES(move), \
         OP_GRADIENT(move, 0), OP_PLAN(MOVE, ELEMENTS, NEW), OP_LEDGER(ONE, MOVES)) \
    /* in x, base(1) or base(out); out = base, and x over it at such a place: pad, join */ \
    KIND(PLACE, "place", \
         OP_SPEC(2, "x base", 1, "out", EXACT, MOVE, place), \
         OP_RULES(place), \
         OP_GRADIENT(place, 0), OP_PLAN(NONE, ELEMENTS, OVER_1), OP_LEDGER(ONE, MOVES)) \
    /* ---- the extreme of a row, and one element of each ---- */ \
    /* in x(R,N); out part(R,chunks), part_index u32(R,chunks), y(R), index u32(R): the \
     * first maximum or minimum of each row */ \
    KIND(REDUCE, "reduce", \
         OP_SPEC(1, "x", 4, "part part_index y index", EXACT, REDUCE, reduce), \
         OP_RULES(reduce_part, reduce_part_index, reduce, reduce_index), \
         OP_GRADIENT(one_of_row, 2), OP_PLAN_ROWS("apprr", RULES, NEW), OP_LEDGER(CHUNK, ROWS)) \
    /* in x(R,N), index u32(R); out x[r,index[r]]; NaN past the row */ \
    KIND(GATHER_ELEMENTS, "gather-elements", \
         OP_SPEC(2, "x index", 1, "out", EXACT, GATHER_ELEMENTS, gather_elements), \
         OP_RULES(gather_elements), \
         OP_GRADIENT(one_of_row, 0), OP_PLAN_ROWS("arr", RULES, NEW), OP_LEDGER(ONE, ROWS)) \
    /* in index u32(R), dy(R); out (R,N): dy[r] at index[r], else +0 */ \
    KIND(GATHER_ELEMENTS_GRAD, "gather-elements-grad", \
         OP_SPEC(2, "index dy", 1, "dx", EXACT, GATHER_ELEMENTS, gather_elements_grad), \
         OP_RULES(gather_elements_grad), \
         OP_GRADIENT(gather_elements_grad, 0), OP_PLAN_ROWS("rra", RULES, NEW), OP_LEDGER(ONE, \
             ROWS)) \
    /* ---- exact contraction, continued ---- */ \
    /* in e i16(rows,A)[, f i16(rows,B)]; out c i16(rows), -c */ \
    KIND(EQUILIBRATE, "equilibrate", \
         OP_SPEC(1, "e f", 2, "c minus_c", OPTIONAL, EQUILIBRATE, equilibrate), \
         OP_RULES(equilibrate, equilibrate_minus), \
         OP_NO_GRADIENT, OP_PLAN(PARTS, RULES, NEW), OP_LEDGER(EXPONENTS, CONTRACTION)) \
    /* in x; out the same numbers as f32, or from f32 to f16, bf16, u32 or i32 */ \
    KIND(CAST, "cast", \
         OP_SPEC(1, "x", 1, "out", EXACT, NONE, cast), \
         OP_RULES(cast), \
         OP_GRADIENT(cast, 0), OP_PLAN(ELEMENTS, RULES, NEW), OP_LEDGER(ONE, MOVES)) \
    /* ---- batches and randomness, continued ---- */ \
    /* in data of any type but i16 and i32 (n,N), counter u32(1); out (B,N), u32 of integers, else \
     * f32: rows of the data, as they lie or each once per epoch, PAST behind the last */ \
    KIND(BATCH_ROWS, "batch-rows", \
         OP_SPEC(2, "data counter", 1, "rows", EXACT, BATCH_ROWS, batch_rows), \
         OP_RULES(batch_rows), \
         OP_NO_GRADIENT, OP_PLAN(NONE, RULES, NEW), OP_LEDGER(ONE, MOVES)) \
    /* in step u32(1); out u32(count): random words */ \
    KIND(UNIFORM, "uniform", \
         OP_SPEC(1, "step", 1, "words", EXACT, UNIFORM, uniform), \
         OP_RULES(uniform), \
         OP_NO_GRADIENT, OP_PLAN(NONE, RULES, NEW), OP_LEDGER(ONE, MOVES)) \
    /* ---- mixtures of experts ---- */ \
    /* in qa, ea (rows R), index u32(R), qb, eb (experts*N rows); out (R,N): row r of A times row \
     * index[r]*N + n of B; NaN where the index is no expert */ \
    KIND(CONTRACT_CHOSEN, "contract-chosen", \
         OP_SPEC(5, "qa ea index qb eb", 1, "out", EXACT, CHOSEN, contract_chosen), \
         OP_RULES(contract_chosen), \
         OP_GRADIENT(contract_chosen, 0), OP_PLAN(CHOSEN, CHOSEN, NEW), OP_LEDGER(PRODUCT, \
             CONTRACTION)) \
    /* in index u32(K), qa (M rows), ea, qb (N rows), eb; out (experts,M,N): sum over k with \
     * index[k]==e */ \
    KIND(CONTRACT_CHOSEN_ROWS, "contract-chosen-rows", \
         OP_SPEC(5, "index qa ea qb eb", 1, "out", EXACT, CHOSEN_SUM, contract_chosen_rows), \
         OP_RULES(contract_chosen_rows), \
         OP_NO_GRADIENT, OP_PLAN(CHOSEN_ROWS, CHOSEN, NEW), OP_LEDGER(PRODUCT, CONTRACTION)) \
    /* ---- integers, and several elements of each row ---- */ \
    /* in a, b u32, read through strides as BINARY's; out u32: function(a, b) modulo 2^32 */ \
    KIND(INTEGER, "integer", \
         OP_SPEC(2, "a b", 1, "out", EXACT, INTEGER, integer), \
         OP_RULES(integer), \
         OP_NO_GRADIENT, OP_PLAN(GENERAL, RULES, NEW), OP_LEDGER(ONE, ELEMENTWISE)) \
    /* in x f32|u32(R,N), index u32(R,W); out (R,W): x[r,index[r,w]]; past the row NaN, of \
     * integers 2^32-1 */ \
    KIND(TAKE, "take", \
         OP_SPEC(2, "x index", 1, "out", EXACT, TAKE, sent), \
         OP_RULES(take), \
         OP_GRADIENT(take, 0), OP_PLAN_ROWS("aww", RULES, NEW), OP_LEDGER(ONE, ELEMENTWISE)) \
    /* in index u32(R,W), x(R,W), base(R,N), f32 or u32; out (R,N): base, and x[r,w] at \
     * index[r,w]: added in the order of w (f32), or the last one in its place */ \
    KIND(SCATTER, "scatter", \
         OP_SPEC(3, "index x base", 1, "out", EXACT, SCATTER, sent), \
         OP_RULES(scatter), \
         OP_GRADIENT(scatter, 0), OP_PLAN_ROWS("wwaa", RULES, NEW), OP_LEDGER(ROW, ELEMENTWISE)) \
    /* in x(R,N); out rank u32(R,N), index u32(R,N), y(R,N): each row in order, NaN as above all \
     * numbers, the lower column first of what is equal; y[r,rank[r,c]] = x[r,c] */ \
    KIND(SORT, "sort", \
         OP_SPEC(1, "x", 3, "rank index y", EXACT, SORT, sort), \
         OP_RULES(sort_rank, sort_index, sort), \
         OP_GRADIENT(sort, 2), OP_PLAN_ROWS("aaaa", RULES, NEW), OP_LEDGER(ROW, ELEMENTWISE))

/* ---- function codes: numbers are bound like those of kinds --------------------- */

/* CODE(NAME, text, contract): MAP_NAME, which stands in element_map() of element.h. A code without
 * a constant has CONSTANT_BITS 0. docs/ARITHMETIC.md has the steps and the bounds. */
#define OP_MAP_CODES(CODE) \
    CODE(NEG, "neg", MAP) \
    CODE(ABS, "abs", MAP) \
    CODE(SIGN, "sign", MAP) /* -1, +0 or 1 */ \
    CODE(FLOOR, "floor", MAP) \
    CODE(CEIL, "ceil", MAP) \
    CODE(ROUND, "round", MAP) /* ties to even */ \
    CODE(SQRT, "sqrt", MAP) \
    CODE(RSQRT, "rsqrt", MAP) \
    CODE(RECIPROCAL, "reciprocal", MAP) \
    CODE(EXP, "exp", MAP) \
    CODE(LOG, "log", MAP) \
    CODE(TANH, "tanh", MAP) \
    CODE(SIGMOID, "sigmoid", MAP) \
    CODE(ERF, "erf", FUNCTIONS) \
    CODE(SIN, "sin", FUNCTIONS) \
    CODE(COS, "cos", FUNCTIONS) \
    CODE(GELU_ERF, "gelu-erf", FUNCTIONS) /* x * Phi(x) */ \
    CODE(GELU_ERF_SLOPE, "gelu-erf-slope", FUNCTIONS) \
    CODE(SCALE, "scale", MAP) /* x * constant */ \
    CODE(RELU, "relu", MAP) /* x>0 ? x : +0 (NaN stays NaN) */ \
    CODE(GELU, "gelu", MAP) /* tanh form */ \
    CODE(SILU, "silu", MAP) /* x*sigmoid(x) */

/* BINARY_NAME, in element_binary(). A comparison gives 1 or +0; with a NaN only NOT_EQUAL holds. */
#define OP_BINARY_CODES(CODE) \
    CODE(ADD, "add", BINARY) \
    CODE(SUB, "sub", BINARY) \
    CODE(MUL, "mul", BINARY) \
    CODE(DIV, "div", BINARY) \
    CODE(MAX, "max", BINARY) /* NaN if either is; a where they are equal */ \
    CODE(MIN, "min", BINARY) \
    CODE(POW, "pow", BINARY) \
    CODE(LESS, "less", BINARY) \
    CODE(LESS_EQUAL, "less-equal", BINARY) \
    CODE(EQUAL, "equal", BINARY) \
    CODE(NOT_EQUAL, "not-equal", BINARY) \
    CODE(RELU_GRAD, "relu-grad", BINARY) /* a is x, b is dy; x>0 ? dy : +0 (NaN if x is NaN) */ \
    CODE(GELU_GRAD, "gelu-grad", BINARY) \
    CODE(SILU_GRAD, "silu-grad", BINARY) \
    CODE(SQUARED_ERROR, "squared-error", BINARY) /* (a-b)^2 */ \
    CODE(SQUARED_ERROR_SLOPE, "squared-error-slope", BINARY) /* 2*(a-b) */

/* CODE(NAME, text, contract, what it gives of a and b, uint32_t). A comparison gives 1 or 0; by 0 a
 * quotient is 2^32-1 and a rest a; a shift by 32 or more leaves 0. */
#define OP_INTEGER_CODES(CODE) \
    CODE(ADD, "integer-add", ELEMENTWISE, a + b) \
    CODE(SUB, "integer-sub", ELEMENTWISE, a - b) \
    CODE(MUL, "integer-mul", ELEMENTWISE, a * b) \
    CODE(DIV, "integer-div", ELEMENTWISE, b == 0 ? UINT32_MAX : a / b) \
    CODE(MOD, "integer-mod", ELEMENTWISE, b == 0 ? a : a % b) \
    CODE(AND, "integer-and", ELEMENTWISE, a & b) \
    CODE(OR, "integer-or", ELEMENTWISE, a | b) \
    CODE(XOR, "integer-xor", ELEMENTWISE, a ^ b) \
    CODE(SHIFT_LEFT, "integer-shift-left", ELEMENTWISE, b < 32 ? a << b : 0) \
    CODE(SHIFT_RIGHT, "integer-shift-right", ELEMENTWISE, b < 32 ? a >> b : 0) \
    CODE(LESS, "integer-less", ELEMENTWISE, a < b) \
    CODE(LESS_EQUAL, "integer-less-equal", ELEMENTWISE, a <= b) \
    CODE(EQUAL, "integer-equal", ELEMENTWISE, a == b) \
    CODE(NOT_EQUAL, "integer-not-equal", ELEMENTWISE, a != b)

/* ---- the contracts that have rules, in the order in which an examiner takes them --- */

#define OP_CONTRACTS(CONTRACT) \
    CONTRACT(MOVES, RulesMoves) \
    CONTRACT(ELEMENTWISE, RulesElementwise) \
    CONTRACT(CONTRACTION, RulesContraction) \
    CONTRACT(ROWS, RulesRows) \
    CONTRACT(MAP, RulesMap) \
    CONTRACT(BINARY, RulesBinary) \
    CONTRACT(FUNCTIONS, RulesFunctions)

/* ---- the words of a row, one after the other ---------------------------------- */

/* DO(with, 0, first) DO(with, 1, second) ...: at most 16. */
#define OP_EACH(DO, with, ...) \
    OP_PICK(__VA_ARGS__, OP_16, OP_15, OP_14, OP_13, OP_12, OP_11, OP_10, OP_9, OP_8, OP_7, OP_6, \
            OP_5, OP_4, OP_3, OP_2, OP_1, )(DO, with, __VA_ARGS__)
#define OP_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, EACH, ...) EACH
#define OP_1(DO, with, a) DO(with, 0, a)
#define OP_2(DO, with, a, b) OP_1(DO, with, a) DO(with, 1, b)
#define OP_3(DO, with, a, b, c) OP_2(DO, with, a, b) DO(with, 2, c)
#define OP_4(DO, with, a, b, c, d) OP_3(DO, with, a, b, c) DO(with, 3, d)
#define OP_5(DO, with, a, b, c, d, e) OP_4(DO, with, a, b, c, d) DO(with, 4, e)
#define OP_6(DO, with, a, b, c, d, e, f) OP_5(DO, with, a, b, c, d, e) DO(with, 5, f)
#define OP_7(DO, with, a, b, c, d, e, f, g) OP_6(DO, with, a, b, c, d, e, f) DO(with, 6, g)
#define OP_8(DO, with, a, b, c, d, e, f, g, h) OP_7(DO, with, a, b, c, d, e, f, g) DO(with, 7, h)
#define OP_9(DO, with, a, b, c, d, e, f, g, h, i) \
    OP_8(DO, with, a, b, c, d, e, f, g, h) DO(with, 8, i)
#define OP_10(DO, with, a, b, c, d, e, f, g, h, i, j) \
    OP_9(DO, with, a, b, c, d, e, f, g, h, i) DO(with, 9, j)
#define OP_11(DO, with, a, b, c, d, e, f, g, h, i, j, k) \
    OP_10(DO, with, a, b, c, d, e, f, g, h, i, j) DO(with, 10, k)
#define OP_12(DO, with, a, b, c, d, e, f, g, h, i, j, k, l) \
    OP_11(DO, with, a, b, c, d, e, f, g, h, i, j, k) DO(with, 11, l)
#define OP_13(DO, with, a, b, c, d, e, f, g, h, i, j, k, l, m) \
    OP_12(DO, with, a, b, c, d, e, f, g, h, i, j, k, l) DO(with, 12, m)
#define OP_14(DO, with, a, b, c, d, e, f, g, h, i, j, k, l, m, n) \
    OP_13(DO, with, a, b, c, d, e, f, g, h, i, j, k, l, m) DO(with, 13, n)
#define OP_15(DO, with, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o) \
    OP_14(DO, with, a, b, c, d, e, f, g, h, i, j, k, l, m, n) DO(with, 14, o)
#define OP_16(DO, with, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) \
    OP_15(DO, with, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o) DO(with, 15, p)

/* All of them in one string. */
#define OP_TEXT(...)  OP_TEXT_(__VA_ARGS__)
#define OP_TEXT_(...) #__VA_ARGS__

/* clang-format on */

#endif /* ENGINE_OPS_OP_LIST_H */
