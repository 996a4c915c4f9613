/*
 * wells.c - a program of one's own in C: calls of the builder make a tape, and the tape a job.
 *
 *     cc wells.c $(pkg-config --cflags --libs lockstep) -o wells && ./wells > wells.tape
 *     lockstep job new --tape wells.tape --steps 40 --out wells.job
 *     lockstep prover run wells.job --bundle wells.run
 *     lockstep audit wells.run
 *
 * 64 numbers that are drawn roll down into the nearer of two wells, at -1 and 1.
 */
#include <engine/tape/builder.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    const uint64_t dims[1] = {64};
    uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_STATE, 1, dims);
    uint32_t off = build_binary(builder, BINARY_SUB, build_mul(builder, x, x, 1),
                                build_fill(builder, 1.0f, 1, dims));
    uint32_t loss = build_mean(builder, build_mul(builder, off, off, 1)); /* (x x - 1)^2 */
    uint32_t slope;
    struct tape *tape;
    struct error error;

    build_init(builder, x, (struct init){INIT_NORMAL, 0x3f800000 /* 1 */});
    build_loss(builder, loss);
    build_gradients(builder, &slope, loss, &x, 1);
    build_after(builder, x, build_add(builder, x, build_scale(builder, slope, -2.0f), 1));
    if (builder_finish(&tape, builder, &error) != STATUS_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    uint8_t *bytes = malloc(tape_encoded_size(tape));
    tape_encode(bytes, tape);
    return fwrite(bytes, tape_encoded_size(tape), 1, stdout) != 1;
}
