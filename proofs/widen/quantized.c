/* quantized.c - see quantized.h. */
#include "proofs/widen/quantized.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/io/strict_json.h"
#include "engine/ops/real.h"

enum { STATE_DEPTH_MAX = 3 };

/* ---- NF4 ---------------------------------------------------------------- */

/* The quantiles of a normal distribution, as Dettmers et al. (2023) and bitsandbytes have them. */
static const float nf4_numbers[NF4_CODES] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

float nf4_number(uint32_t code)
{
    assert(code < NF4_CODES);
    return nf4_numbers[code];
}

uint32_t nf4_code(const uint8_t *packed, uint64_t number)
{
    return number % 2 == 0 ? packed[number / 2] >> 4 : packed[number / 2] & 15u;
}

float nf4_largest(const struct nf4_state *state, uint8_t byte, const float *codes, float scale)
{
    float product = codes[byte] * scale;

    return product + state->nested_offset;
}

static bool is_group(int64_t group)
{
    return group >= 32 && group <= NF4_GROUP_MAX && (group & (group - 1)) == 0;
}

static enum status take_shape(struct nf4_state *state, const json_t *shape, const char *what,
                              struct error *error)
{
    const size_t rank = json_array_size(shape);
    size_t i;
    json_t *length;

    if (rank == 0 || rank > ELEMENT_DIMS_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: 'shape' is no list of 1 to %d lengths",
                         what, ELEMENT_DIMS_MAX);
    }
    state->rank = (uint32_t)rank;
    state->count = 1;
    json_array_foreach(shape, i, length)
    {
        if (!json_is_integer(length) || json_integer_value(length) < 1 ||
            json_integer_value(length) > UINT32_MAX ||
            state->count > ((uint64_t)1 << 40) / (uint64_t)json_integer_value(length)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "%s: 'shape' has a length that is no whole number, or is too large",
                             what);
        }
        state->dims[i] = (uint64_t)json_integer_value(length);
        state->count *= state->dims[i];
    }
    return STATUS_OK;
}

static enum status take_nested(struct nf4_state *state, const json_t *root, const char *what,
                               struct error *error)
{
    const json_t *group = json_object_get(root, "nested_blocksize");
    const json_t *offset = json_object_get(root, "nested_offset");

    state->nested = group != NULL || offset != NULL;
    if (!state->nested) {
        return STATUS_OK;
    }
    if (!json_is_integer(group) || !is_group(json_integer_value(group))) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: 'nested_blocksize' is no power of two from 32 to %d", what,
                         NF4_GROUP_MAX);
    }
    if (!json_is_number(offset) || !(fabs(json_number_value(offset)) <= 1e30)) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: 'nested_offset' is no number", what);
    }
    if (strcmp(strict_json_text_or(root, "nested_dtype", "float32"), "float32") != 0) {
        return error_set(error, STATUS_REFUSED, "%s: 'nested_dtype' is not float32", what);
    }
    state->nested_group = (uint32_t)json_integer_value(group);
    state->nested_offset = (float)json_number_value(offset);
    return STATUS_OK;
}

static enum status take_state(struct nf4_state *state, const json_t *root, const char *what,
                              struct error *error)
{
    static const char *const known[] = {"quant_type",       "blocksize",    "dtype",        "shape",
                                        "nested_blocksize", "nested_dtype", "nested_offset"};
    const json_t *group = json_object_get(root, "blocksize");

    if (strict_json_only(root, error, known, 7) != STATUS_OK) {
        return error_wrap(error, "%s", what);
    }
    if (strcmp(strict_json_text_or(root, "quant_type", ""), "nf4") != 0) {
        return error_set(error, STATUS_REFUSED, "%s: 'quant_type' is not nf4", what);
    }
    if (!json_is_integer(group) || !is_group(json_integer_value(group))) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: 'blocksize' is no power of two from 32 to %d", what, NF4_GROUP_MAX);
    }
    state->group = (uint32_t)json_integer_value(group);
    TRY(take_shape(state, json_object_get(root, "shape"), what, error));
    return take_nested(state, root, what, error);
}

enum status nf4_state_parse(struct nf4_state *state, const void *bytes, size_t size,
                            const char *what, struct error *error)
{
    enum status status;
    json_t *root;

    *state = (struct nf4_state){0};
    TRY(strict_json_parse(&root, error, what, bytes, size, NF4_STATE_SIZE_MAX, STATE_DEPTH_MAX));
    status = json_is_object(root) ? take_state(state, root, what, error)
                                  : error_set(error, STATUS_BAD_FORMAT, "%s: no object", what);
    json_decref(root);
    return status;
}

/* ---- MXFP4 -------------------------------------------------------------- */

#define MXFP4_SCALE_BIAS 127
#define MXFP4_SCALE_MOST 252 /* 6 times the next power of two is past the largest BF16 */

bool mxfp4_number(uint16_t *number, uint32_t code, uint8_t scale)
{
    static const float numbers[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    float value = ldexpf(numbers[code & 7u], (int)scale - MXFP4_SCALE_BIAS);

    if (scale > MXFP4_SCALE_MOST) {
        return false;
    }
    /* Two digits behind the leading one at most: nothing is cut. */
    *number = (uint16_t)(real_to_bits((code & 8u) != 0 ? -value : value) >> 16);
    return true;
}
