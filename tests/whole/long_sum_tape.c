/*
 * long_sum_tape.c - writes the tape of a job whose state is one sum, so long that a ledger is
 * queried for parts of parts (proofs/dispute/fraud_proof.h): of 1472 parts one, with 4096 terms, is
 * longer than 32 KiB beside a reply of 1472 values; of 1280 parts one is not. What is summed is
 * drawn in each step, so nothing of it lies in a file. No step reads the data, for which programs
 * ask with every job. Usage: long_sum_tape FILE DATA_SIZE
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/tape/builder.h"
#include "proofs/job/tape_file.h"

#define TERMS (UINT64_C(1472) * 4096)

/* The next w is the sum of (d * w)^2, where half of the d are 0 and the others 2. */
static void build(struct builder *builder, uint64_t data_count)
{
    static const uint64_t one[] = {1};
    static const uint64_t row[] = {1, TERMS};
    static const uint64_t strides[6] = {0, 0, 0, 0, 0, 0};
    const struct view view = view_matrix(1, TERMS);
    uint32_t w = build_tensor(builder, "w", DTYPE_F32, ROLE_STATE, 1, one);
    uint32_t x = build_dropout(builder, build_expand(builder, w, 1, 2, row), 0.5, 1, 1);

    (void)build_tensor(builder, "data", DTYPE_U8, ROLE_DATA, 1, &data_count);
    build_init(builder, w,
               (struct init){.kind = INIT_CONSTANT, .value_bits = 0x33800000}); /* 2^-24 */
    build_after(builder, w, build_contract(builder, x, &view, x, &view, strides, 0, 1, one));
}

int main(int argc, char **argv)
{
    struct builder *builder = builder_new((struct precision){14, 1024});
    struct tape *tape = NULL;
    struct error error;

    error_init(&error);
    if (argc == 3 && builder != NULL) {
        build(builder, strtoull(argv[2], NULL, 10));
    }
    if (argc != 3 || builder == NULL || builder_finish(&tape, builder, &error) != STATUS_OK ||
        tape_file_write(argv[1], tape, &error) != STATUS_OK) {
        fprintf(stderr, "long_sum_tape: %s\n", error.text);
        return 1;
    }
    tape_free(tape);
    return 0;
}
