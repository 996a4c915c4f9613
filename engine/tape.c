/* tape.c - checks and sizes of tapes; see tape.h. The bytes are in tape_bytes.c. */
#include "engine/tape.h"

#include <stdlib.h>
#include <string.h>

const char *dtype_name(enum dtype dtype)
{
    static const char *const names[DTYPE_COUNT] = {"f32", "u8", "u16", "u32", "i16", "i32"};

    return (unsigned)dtype < DTYPE_COUNT ? names[dtype] : "unknown";
}

const char *role_name(enum role role)
{
    static const char *const names[ROLE_COUNT] = {"temporary", "state", "data",
                                                  "constant",  "input", "output"};

    return (unsigned)role < ROLE_COUNT ? names[role] : "unknown";
}

void tape_free(struct tape *tape)
{
    if (tape != NULL) {
        free(tape->tensors);
        free(tape->ops);
        free(tape->states);
        free(tape);
    }
}

/* ---- checks ------------------------------------------------------------- */

static bool name_is_plain(const char *name)
{
    size_t length = strnlen(name, TENSOR_NAME_MAX + 1);

    if (length == 0 || length > TENSOR_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '.' || c == '_' || c == '-' || c == '/';

        if (!plain) {
            return false;
        }
    }
    return true;
}

static enum status check_tensor(const struct tensor *tensor, uint32_t id, struct error *error)
{
    uint64_t count = 1;

    if (!name_is_plain(tensor->name)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "tensor %u: a name is 1 to %d letters, digits and any of . _ - /", id,
                         TENSOR_NAME_MAX);
    }
    if ((unsigned)tensor->dtype >= DTYPE_COUNT || (unsigned)tensor->role >= ROLE_COUNT) {
        return error_set(error, STATUS_BAD_FORMAT, "tensor %u '%s': type %u, role %u", id,
                         tensor->name, (unsigned)tensor->dtype, (unsigned)tensor->role);
    }
    if (tensor->rank > TENSOR_RANK_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "tensor %u '%s': rank %u, at most %d", id,
                         tensor->name, tensor->rank, TENSOR_RANK_MAX);
    }
    for (uint32_t axis = 0; axis < tensor->rank; axis++) {
        if (tensor->dims[axis] == 0 || tensor->dims[axis] > TENSOR_COUNT_MAX / count) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "tensor %u '%s': axis %u of length %llu makes it empty or too large",
                             id, tensor->name, axis, (unsigned long long)tensor->dims[axis]);
        }
        count *= tensor->dims[axis];
    }
    if (tensor->count != count) {
        return error_set(error, STATUS_BAD_FORMAT, "tensor %u '%s': %llu elements, not %llu", id,
                         tensor->name, (unsigned long long)count,
                         (unsigned long long)tensor->count);
    }
    return STATUS_OK;
}

/* made[id]: is the tensor there to be read? Everything but a temporary is, from the start. */
static enum status check_order(const struct tape *tape, uint8_t *made, struct error *error)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        made[id] = !role_is_made(tape->tensors[id].role);
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];
        enum status status = op_check(op, tape->tensors, tape->tensor_count, error);

        if (status != STATUS_OK) {
            (void)error_wrap(error, "operation %u", at);
            return status;
        }
        for (uint32_t i = 0; i < op->input_count; i++) {
            if (!made[op->inputs[i]]) {
                return error_set(error, STATUS_BAD_FORMAT,
                                 "operation %u (%s) reads '%s' before it is made", at,
                                 op_kind_name(op->kind), tape->tensors[op->inputs[i]].name);
            }
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            if (made[op->outputs[i]]) {
                return error_set(error, STATUS_BAD_FORMAT,
                                 "operation %u (%s) makes '%s', which exists already", at,
                                 op_kind_name(op->kind), tape->tensors[op->outputs[i]].name);
            }
            made[op->outputs[i]] = 1;
        }
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (!made[id]) {
            return error_set(error, STATUS_BAD_FORMAT, "no operation makes '%s'",
                             tape->tensors[id].name);
        }
    }
    return STATUS_OK;
}

/* Every state tensor has exactly one pair, in order, whose two ends are alike. */
static enum status check_states(const struct tape *tape, struct error *error)
{
    uint32_t at = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *before = &tape->tensors[id];
        const struct tensor *after;

        if (before->role != ROLE_STATE) {
            continue;
        }
        if (at >= tape->state_count || tape->states[at].before != id ||
            tape->states[at].after >= tape->tensor_count) {
            return error_set(error, STATUS_BAD_FORMAT, "state '%s' has no next value",
                             before->name);
        }
        after = &tape->tensors[tape->states[at].after];
        if (after->dtype != before->dtype || after->rank != before->rank ||
            memcmp(after->dims, before->dims, sizeof(before->dims[0]) * before->rank) != 0) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "the next value of state '%s' has another type or shape",
                             before->name);
        }
        if (after != before &&
            (after->role != ROLE_TEMPORARY || strcmp(after->name, before->name) != 0)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "the next value of state '%s' is not a temporary of the same name",
                             before->name);
        }
        at++;
    }
    if (at != tape->state_count) {
        return error_set(error, STATUS_BAD_FORMAT, "%u state pairs for %u state tensors",
                         tape->state_count, at);
    }
    return STATUS_OK;
}

/* Two states must not share one next value: in place, one would overwrite the other. */
static enum status check_state_ends(const struct tape *tape, uint8_t *seen, struct error *error)
{
    memset(seen, 0, tape->tensor_count);
    for (uint32_t at = 0; at < tape->state_count; at++) {
        uint32_t after = tape->states[at].after;

        if (seen[after]) {
            return error_set(error, STATUS_BAD_FORMAT, "'%s' is the next value of two states",
                             tape->tensors[after].name);
        }
        seen[after] = 1;
    }
    return STATUS_OK;
}

enum status tape_check(const struct tape *tape, struct error *error)
{
    enum status status = STATUS_OK;
    uint8_t *marks;

    if (tape->tensor_count > TAPE_TENSORS_MAX || tape->op_count > TAPE_OPS_MAX ||
        tape->state_count > tape->tensor_count) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "a tape has at most %u tensors and %u operations", TAPE_TENSORS_MAX,
                         TAPE_OPS_MAX);
    }
    for (uint32_t id = 0; id < tape->tensor_count && status == STATUS_OK; id++) {
        status = check_tensor(&tape->tensors[id], id, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (tape->loss != TENSOR_NONE &&
        (tape->loss >= tape->tensor_count || tape->tensors[tape->loss].count != 1 ||
         tape->tensors[tape->loss].dtype != DTYPE_F32)) {
        return error_set(error, STATUS_BAD_FORMAT, "the loss is not one binary32 number");
    }
    marks = malloc(tape->tensor_count + 1);
    if (marks == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to check a tape");
    }
    status = check_order(tape, marks, error);
    if (status == STATUS_OK) {
        status = check_states(tape, error);
    }
    if (status == STATUS_OK) {
        status = check_state_ends(tape, marks, error);
    }
    free(marks);
    return status;
}

/* ---- sizes -------------------------------------------------------------- */

struct tape_footprint tape_footprint(const struct tape *tape)
{
    struct tape_footprint footprint = {0};

    /* At most 10^6 tensors of 2^42 bytes: no sum passes 2^62. */
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        uint64_t bytes = tape->tensors[id].count * dtype_size(tape->tensors[id].dtype);

        switch (tape->tensors[id].role) {
        case ROLE_STATE:
            footprint.state += bytes;
            break;
        case ROLE_CONSTANT:
            footprint.constant += bytes;
            break;
        case ROLE_DATA:
            footprint.data += bytes;
            break;
        case ROLE_TEMPORARY:
        case ROLE_INPUT:
        case ROLE_OUTPUT:
        case ROLE_COUNT:
            footprint.trace += bytes;
            break;
        }
    }
    return footprint;
}
