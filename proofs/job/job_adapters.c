/* job_adapters.c - see job_adapters.h. */
#include "proofs/job/job_adapters.h"

#include <string.h>

#include "base/text.h"
#include "engine/models/model.h"
#include "engine/ops/real.h"

const char *job_adapter_end(const char *name)
{
    static const char *const ends[] = {LORA_A, LORA_B, LORA_TOKENS_A, LORA_TOKENS_B};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (text_ends_with(name, ends[i])) {
            return name + strlen(name) - strlen(ends[i]);
        }
    }
    return NULL;
}

bool job_adapter_is_a(const char *name)
{
    return text_ends_with(name, LORA_A) || text_ends_with(name, LORA_TOKENS_A);
}

bool job_adapter_is_part(const char *name)
{
    return job_adapter_end(name) != NULL && strncmp(name, "m.", 2) != 0 &&
           strncmp(name, "v.", 2) != 0;
}

/* The operation that reads the tensor as input number `input`, from `from` on; UINT32_MAX: none. */
static uint32_t reader_of(const struct tape *tape, uint32_t tensor, enum op_kind kind,
                          uint32_t from)
{
    for (uint32_t at = from; at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].input_count && tape->ops[at].kind == kind; i++) {
            if (tape->ops[at].inputs[i] == tensor) {
                return at;
            }
        }
    }
    return UINT32_MAX;
}

/* The product that reads a quantized operand; UINT32_MAX: none. */
static uint32_t product_of(const struct tape *tape, uint32_t operand, uint32_t from)
{
    uint32_t product = reader_of(tape, operand, OP_CONTRACT, from);

    return product != UINT32_MAX ? product : reader_of(tape, operand, OP_CONTRACT_CHOSEN, from);
}

/* What the tensor is joined to, where it is one of several experts'. */
static uint32_t joined_of(const struct tape *tape, uint32_t tensor)
{
    uint32_t join = reader_of(tape, tensor, OP_CONCAT, 0);

    while (join != UINT32_MAX) {
        tensor = tape->ops[join].outputs[0];
        join = reader_of(tape, tensor, OP_CONCAT, join + 1);
    }
    return tensor;
}

/* What the product with B is scaled by, before anything else. */
static double scale_of(const struct tape *tape, uint32_t b)
{
    b = joined_of(tape, b);

    uint32_t quantize = reader_of(tape, b, OP_QUANTIZE, 0);

    while (quantize != UINT32_MAX) {
        const struct op *op = &tape->ops[quantize];
        uint32_t product = UINT32_MAX;

        for (uint32_t i = 0; i < op->output_count && product == UINT32_MAX; i++) {
            product = product_of(tape, op->outputs[i], quantize);
        }
        if (product != UINT32_MAX) {
            uint32_t scale = reader_of(tape, tape->ops[product].outputs[0], OP_MAP, product);

            if (scale != UINT32_MAX && tape->ops[scale].attributes[MAP_FUNCTION] == MAP_SCALE) {
                return (double)real_from_bits(
                    (uint32_t)tape->ops[scale].attributes[MAP_CONSTANT_BITS]);
            }
        }
        quantize = reader_of(tape, b, OP_QUANTIZE, quantize + 1);
    }
    return 0.0;
}

double job_adapter_scale(const struct tape *tape, const char *b)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (strcmp(tape->tensors[tape->states[i].before].name, b) == 0) {
            return scale_of(tape, tape->states[i].before);
        }
    }
    return 0.0;
}
