/* job_precision.c - see job_precision.h. */
#include "proofs/job/job_precision.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WIDE 22

/* The fewest bits of a product; 0: the tape has none. */
static int64_t bits_of(const struct tape *tape)
{
    int64_t least = 0;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        if (op->kind == OP_CONTRACT && (least == 0 || op->attributes[CONTRACT_BITS] < least)) {
            least = op->attributes[CONTRACT_BITS];
        }
    }
    return least;
}

/* A model that is written again for held-out data has the same products once more. */
static bool is_listed(const json_t *names, const char *name)
{
    const json_t *listed;
    size_t i;

    json_array_foreach(names, i, listed)
    {
        if (strcmp(json_string_value(listed), name) == 0) {
            return true;
        }
    }
    return false;
}

static json_t *shifts_of(const struct tape *tape)
{
    json_t *names = json_array();

    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        if (op->kind == OP_EQUILIBRATE && tape->tensors[op->inputs[0]].role == ROLE_CONSTANT &&
            !is_listed(names, tape->tensors[op->inputs[0]].name)) {
            (void)json_array_append_new(names, json_string(tape->tensors[op->inputs[0]].name));
        }
    }
    return names;
}

/* A product of temporaries is named by its operation. */
static json_t *wide_of(const struct tape *tape)
{
    uint32_t *makers = calloc((size_t)tape->tensor_count + 1, sizeof(*makers));
    json_t *names = json_array();

    for (uint32_t at = 0; makers != NULL && at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        for (uint32_t i = 0; i < op->output_count; i++) {
            makers[op->outputs[i]] = at;
        }
        if (op->kind == OP_CONTRACT && op->attributes[CONTRACT_BITS] == WIDE) {
            const struct op *quantize = &tape->ops[makers[op->inputs[2]]];
            const struct tensor *operand = &tape->tensors[quantize->inputs[0]];

            (void)json_array_append_new(names, operand->name[0] != '\0'
                                                   ? json_string(operand->name)
                                                   : json_sprintf("operation %u", at));
        }
    }
    free(makers);
    return names;
}

json_t *job_precision_json(const struct tape *tape)
{
    const struct tape *brief = tape->brief != NULL ? tape->brief : tape;
    const int64_t bits = bits_of(brief);

    return json_pack("{s:I, s:o, s:o}", "bits", (json_int_t)bits, "shifted", shifts_of(brief),
                     "wide", bits < WIDE ? wide_of(brief) : json_array());
}

static void print_names(struct buffer *out, const char *what, const json_t *names)
{
    size_t at;
    json_t *name;

    json_array_foreach(names, at, name)
    {
        buffer_add_format(out, "%s%s", at == 0 ? what : ", ", json_string_value(name));
    }
    if (json_array_size(names) > 0) {
        buffer_add_format(out, "\n");
    }
}

void job_precision_print(struct buffer *out, const struct tape *tape)
{
    json_t *view = job_precision_json(tape);
    const int64_t bits = json_integer_value(json_object_get(view, "bits"));

    if (bits > 0) {
        buffer_add_format(out, "products     %" PRId64 " bits\n", bits);
        print_names(out, "  channels shifted: ", json_object_get(view, "shifted"));
        print_names(out, "  22 bits for: ", json_object_get(view, "wide"));
    }
    json_decref(view);
}
