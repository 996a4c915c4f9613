/* liar.c - see liar.h. */
#include "tests/support/dispute/liar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/commit.h"
#include "proofs/commit/trace.h"

static struct liar *liar_of(struct machine *machine)
{
    return (struct liar *)(void *)machine;
}

static void *copy_of(const void *bytes, size_t size)
{
    void *copy = malloc(size);

    if (copy == NULL) {
        fprintf(stderr, "liar: no memory\n");
        exit(1);
    }
    memcpy(copy, bytes, size);
    return copy;
}

static void swap(uint8_t *left, uint8_t *right, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = left[i];

        left[i] = right[i];
        right[i] = byte;
    }
}

void liar_lie(uint8_t *bytes, const struct tensor *tensor, const struct lie *lie)
{
    size_t width = dtype_size(tensor->dtype);
    uint64_t size = commit_tensor_size(tensor);
    uint8_t *at = bytes + lie->element * width;
    uint8_t *before = copy_of(bytes, size);

    switch (lie->kind) {
    case LIE_SIGN:
        at[width - 1] ^= 0x80;
        break;
    case LIE_NAN:
        memset(at, 0xff, width);
        at[width - 1] = tensor->dtype == DTYPE_F32 ? 0x7f : 0xff;
        break;
    case LIE_SWAP:
        if (lie->element + 1 < tensor->count) {
            swap(at, at + width, width);
        }
        break;
    case LIE_ROWS:
        swap(bytes, bytes + tensor->count / 2 * width, tensor->count / 2 * width);
        break;
    case LIE_HALF:
        at[2] ^= 0x80; /* the exponent's last bit; one less is half */
        at[3] -= (at[2] & 0x80) != 0;
        break;
    case LIE_ULP:
    case LIE_KIND_COUNT:
        break;
    }
    if (memcmp(bytes, before, size) == 0) {
        for (size_t i = 0; i < width && ++at[i] == 0; i++) {
        }
    }
    free(before);
}

static uint8_t *lie_about(struct liar *liar, const struct tensor *tensor, const void *bytes)
{
    uint64_t size = commit_tensor_size(tensor);
    const uint8_t *honest = bytes;
    uint8_t *reply = copy_of(bytes, size);

    liar_lie(reply, tensor, &liar->lie);
    for (liar->changed = 0; reply[liar->changed] == honest[liar->changed]; liar->changed++) {
    }
    for (liar->changed_end = size; reply[liar->changed_end - 1] == honest[liar->changed_end - 1];
         liar->changed_end--) {
    }
    return reply;
}

static bool lies_about_state(const struct liar *liar, uint32_t tensor)
{
    return liar->lie.item < liar->machine.tape->state_count &&
           liar->machine.tape->states[liar->lie.item].before == tensor;
}

/* ---- the table ----------------------------------------------------------- */

static enum status liar_write(struct machine *machine, uint32_t tensor, const void *bytes,
                              struct error *error)
{
    struct liar *liar = liar_of(machine);
    const void *written = lies_about_state(liar, tensor) ? liar->state : bytes;

    return liar->honest->backend->write(liar->honest, tensor, written, error);
}

static enum status liar_read(struct machine *machine, uint32_t tensor, void *bytes,
                             struct error *error)
{
    struct liar *liar = liar_of(machine);
    enum status status = liar->honest->backend->read(liar->honest, tensor, bytes, error);

    if (status == STATUS_OK && lies_about_state(liar, tensor)) {
        const struct tensor *shape = &machine->tape->tensors[tensor];
        uint8_t *reply = lie_about(liar, shape, bytes);

        memcpy(bytes, reply, commit_tensor_size(shape));
        free(reply);
    }
    return status;
}

static const void *liar_peek(struct machine *machine, uint32_t tensor)
{
    struct liar *liar = liar_of(machine);

    return lies_about_state(liar, tensor) ? NULL
                                          : liar->honest->backend->peek(liar->honest, tensor);
}

static enum status liar_diverged(struct machine *machine, bool *diverged, struct error *error)
{
    struct liar *liar = liar_of(machine);

    return liar->honest->backend->diverged(liar->honest, diverged, error);
}

struct between {
    struct liar *liar;
    const struct observer *observer;
};

static enum status between_made(void *context, struct op_turn maker, uint32_t output,
                                const void *bytes, uint64_t size, struct error *error)
{
    struct between *between = context;
    struct liar *liar = between->liar;
    const struct tape *tape = liar->machine.tape;
    uint32_t item = trace_item_of_output(tape, maker, output);
    enum status status;
    uint8_t *reply;

    if (item != liar->lie.item && item != liar->handed_on) {
        return between->observer->made(between->observer->context, maker, output, bytes, size,
                                       error);
    }
    if (item == liar->lie.item) {
        reply = lie_about(liar, &tape->tensors[tape->ops[maker.op].outputs[output]], bytes);
    } else {
        reply = copy_of(bytes, size);
        reply[0] ^= 1;
    }
    status = between->observer->made(between->observer->context, maker, output, reply, size, error);
    free(reply);
    return status;
}

static enum status liar_step(struct machine *machine, const struct observer *observer,
                             struct error *error)
{
    struct liar *liar = liar_of(machine);
    struct between between = {liar, observer};
    const struct observer before = {.made = between_made, .context = &between};

    return liar->honest->backend->step(liar->honest, observer == NULL ? NULL : &before, error);
}

static const struct backend backend_liar = {
    .name = "liar",
    .write = liar_write,
    .read = liar_read,
    .step = liar_step,
    .peek = liar_peek,
    .diverged = liar_diverged,
};

/* The last carry of the micro-batch that has the item in its own list. */
static uint32_t handed_on(const struct tape *tape, uint32_t item)
{
    struct repeat_layout layout;
    uint32_t batch;

    repeat_layout_of(&layout, tape);
    if (layout.times == 0 || item < layout.list || !repeat_holds(&batch, &layout, item)) {
        return TENSOR_NONE;
    }
    return (uint32_t)repeat_block_place(&layout, batch) + layout.block - 1;
}

void liar_open(struct liar *liar, struct machine *honest, const struct lie *lie)
{
    memset(liar, 0, sizeof(*liar));
    liar->machine.backend = &backend_liar;
    liar->machine.tape = honest->tape;
    liar->honest = honest;
    liar->lie = *lie;
    liar->handed_on = handed_on(honest->tape, lie->item);
    if (lie->item < honest->tape->state_count) {
        uint32_t id = honest->tape->states[lie->item].before;

        liar->state = copy_of(honest->backend->peek(honest, id),
                              commit_tensor_size(&honest->tape->tensors[id]));
    }
}

void liar_close(struct liar *liar)
{
    free(liar->state);
    memset(liar, 0, sizeof(*liar));
}
