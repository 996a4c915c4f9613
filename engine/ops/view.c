/* view.c - see view.h. */
#include "engine/ops/view.h"

#include <assert.h>

void view_dense(int64_t strides[VIEW_AXES], const int64_t *dims)
{
    int64_t stride = 1;

    for (uint32_t axis = VIEW_AXES; axis > 0; axis--) {
        strides[axis - 1] = stride;
        stride *= dims[axis - 1];
    }
}

bool view_lies_alike(const int64_t *dims, const int64_t *strides)
{
    int64_t dense[VIEW_AXES];
    bool alike = true;

    view_dense(dense, dims);
    for (uint32_t axis = 0; axis < VIEW_AXES; axis++) {
        alike = alike && (dims[axis] == 1 || strides[axis] == dense[axis]);
    }
    return alike;
}

/* From the innermost axis out: axes that repeat each element, axes in order, axes that repeat
 * all. */
bool view_is_turns(struct view_turns *turns, const int64_t *dims, const int64_t *strides)
{
    bool outer = false;

    *turns = (struct view_turns){1, 1};
    for (uint32_t axis = VIEW_AXES; axis-- > 0;) {
        const uint64_t length = (uint64_t)dims[axis];

        if (length == 1) {
            continue;
        }
        if (strides[axis] == 0) {
            outer = outer || turns->mod > 1;
            turns->div *= turns->mod > 1 ? 1 : length;
        } else if (outer || (uint64_t)strides[axis] != turns->mod) {
            return false;
        } else {
            turns->mod *= length;
        }
    }
    turns->div = turns->mod == 1 ? 1 : turns->div;
    return true;
}

static const int64_t *strides_of(const struct op *op, uint32_t operand)
{
    assert(op->kind == OP_BINARY && operand < 2);
    return &op->attributes[operand == 0 ? BINARY_A_STRIDES : BINARY_B_STRIDES];
}

bool binary_lies_alike(const struct op *op, uint32_t operand)
{
    return view_lies_alike(&op->attributes[BINARY_DIMS], strides_of(op, operand));
}

bool binary_is_turns(struct view_turns *turns, const struct op *op, uint32_t operand)
{
    return view_is_turns(turns, &op->attributes[BINARY_DIMS], strides_of(op, operand));
}

void binary_set(struct op *op, enum binary_function function, uint64_t count, uint64_t div,
                uint64_t mod)
{
    const bool alike = mod == count;
    const int64_t dims[VIEW_AXES] = {1, alike ? 1 : (int64_t)(count / (div * mod)),
                                     alike ? 1 : (int64_t)mod, (int64_t)(alike ? count : div)};
    int64_t *a = &op->attributes[BINARY_A_STRIDES];
    int64_t *b = &op->attributes[BINARY_B_STRIDES];

    op->kind = OP_BINARY;
    op->attribute_count = BINARY_ATTRIBUTES;
    op->attributes[BINARY_FUNCTION] = function;
    view_dense(a, dims);
    for (uint32_t axis = 0; axis < VIEW_AXES; axis++) {
        op->attributes[BINARY_DIMS + axis] = dims[axis];
        a[axis] = axis < 3 && dims[axis] == 1 ? 0 : a[axis];
        b[axis] = axis == (alike ? 3 : 2);
    }
}
