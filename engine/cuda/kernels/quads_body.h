/*
 * quads_body.h - element-wise operations over tensors, one after another on what is in registers:
 * four neighbours a lane. Only steps that read a row divide, to find the column.
 */

/* grid: any; block: BLOCK_THREADS. count and row are multiples of four; no row: row is 0. */
KERNEL_LIMITED(kernel_quads, struct quads_args, BLOCK_THREADS)
{
    struct epilogue_quad quad;

    quad.ahead = NULL;
    /* Turned round: see kernel_rows. */
    for (quad.place = first_place() * 4; args.count > quad.place;
         quad.place += place_stride() * 4) {
        quad.column = args.row == 0              ? 0
                      : args.count <= UINT32_MAX ? (uint32_t)quad.place % args.row
                                                 : quad.place % args.row;
        load_quad(quad.made, args.x + quad.place);
        epilogue_steps(&args.epilogue, &quad);
    }
}
