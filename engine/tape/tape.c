/* tape.c - checks and sizes of tapes; see tape.h. The bytes are in tape_bytes.c. */
#include "engine/tape/tape.h"

#include <stdlib.h>
#include <string.h>

#include "engine/ops/contraction.h"
#include "engine/rules/evidence_bound.h"

void tape_free(struct tape *tape)
{
    if (tape != NULL) {
        free(tape->tensors);
        free(tape->ops);
        free(tape->states);
        free(tape->repeat.carries);
        free(tape->origins);
        free(tape->items);
        free(tape->loops);
        free(tape->loop_carries);
        tape_free(tape->brief);
        free(tape);
    }
}

/* Loops stand in order: the last that begins at the operation or before it. */
const struct loop *tape_loop_of(const struct tape *tape, uint32_t op)
{
    uint32_t low = 0;
    uint32_t high = tape->loop_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (tape->loops[middle].first <= op) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && op < tape->loops[low - 1].last ? &tape->loops[low - 1] : NULL;
}

uint32_t tape_turns(const struct tape *tape, uint32_t op)
{
    const struct loop *loop = tape_loop_of(tape, op);

    return loop == NULL ? 1 : loop->turns;
}

bool tape_varies(const struct tape *tape, uint32_t op, uint32_t tensor)
{
    const struct loop *loop = tape_loop_of(tape, op);

    for (uint32_t k = 0; loop != NULL && k < loop->carry_count; k++) {
        if (tape->loop_carries[loop->carry_first + k].in == tensor) {
            return true;
        }
    }
    return false;
}

struct tape_unlooped tape_unlooped(const struct tape *tape)
{
    struct tape_unlooped all = {tape->op_count, tape->tensor_count};

    for (uint32_t i = 0; i < tape->loop_count; i++) {
        const struct loop *loop = &tape->loops[i];
        const uint64_t more = loop->turns - 1;

        for (uint32_t at = loop->first; at < loop->last; at++) {
            all.ops += more;
            all.tensors += tape->ops[at].output_count * more;
        }
    }
    return all;
}

void tape_first_value(void *bytes, const struct tape *tape, uint32_t state, uint64_t seed)
{
    const struct tensor *tensor = &tape->tensors[state];
    uint32_t at = 0;

    while (tape->states[at].before != state) {
        at++;
    }
    if (tensor->dtype == DTYPE_F32) {
        init_fill(bytes, tensor->count, &tape->states[at].init, seed, state);
    } else {
        memset(bytes, 0, tensor->count * dtype_size(tensor->dtype));
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

/* makers[id]: the operation that makes the tensor, or one of these. */
#define OP_NONE   UINT32_MAX       /* it is there from the start */
#define OP_NOBODY (UINT32_MAX - 1) /* no operation so far */

static bool same_cut(const struct op *a, const struct op *b)
{
    struct contraction_shape x = contraction_shape_of(a);
    struct contraction_shape y = contraction_shape_of(b);

    return x.bits == y.bits && x.k == y.k && x.block == y.block && x.piece == y.piece;
}

/*
 * What one operand is shifted by, the other must be shifted back by: both have c of one EQUILIBRATE
 * with opposite signs, or none is shifted. A sum of one operand's numbers has none.
 */
static enum status check_shifts(const struct tape *tape, const uint32_t *makers, uint32_t at,
                                const struct op *const operands[2], uint32_t count,
                                struct error *error)
{
    const bool shifted = quantize_is_shifted(operands[0]);
    uint32_t c[2] = {0, 0};

    for (uint32_t i = 0; i < count; i++) {
        if (quantize_is_shifted(operands[i]) != shifted || (shifted && count == 1)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "operation %u (%s): the shift of one operand is not taken back", at,
                             op_kind_name(tape->ops[at].kind));
        }
        c[i] = shifted ? operands[i]->inputs[1] : 0;
    }
    if (shifted && (makers[c[0]] == OP_NONE || makers[c[0]] != makers[c[1]] || c[0] == c[1] ||
                    tape->ops[makers[c[0]]].kind != OP_EQUILIBRATE)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "operation %u (%s): '%s' and '%s' are not c and -c of one equilibrate", at,
                         op_kind_name(tape->ops[at].kind), tape->tensors[c[0]].name,
                         tape->tensors[c[1]].name);
    }
    return STATUS_OK;
}

/*
 * A contraction must read the integers and the exponents of one QUANTIZE with the same bits, length
 * and block. Machines keep quantized operands in a layout of their own and trust the bounds that
 * QUANTIZE guarantees.
 */
static enum status check_operands(const struct tape *tape, const uint32_t *makers, uint32_t at,
                                  struct error *error)
{
    const struct op *op = &tape->ops[at];
    const struct op *operands[2] = {NULL, NULL};
    uint32_t slots[2];
    uint32_t count = contraction_slots(slots, op->kind);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t q = op->inputs[slots[i]];
        uint32_t exponents = op->inputs[slots[i] + 1];
        const struct op *maker = makers[q] == OP_NONE ? NULL : &tape->ops[makers[q]];

        if (maker == NULL || maker->kind != OP_QUANTIZE || maker->outputs[2] != q ||
            maker->outputs[1] != exponents || !same_cut(op, maker)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "operation %u (%s): '%s' and '%s' are not one quantized operand of "
                             "its length, bits and block",
                             at, op_kind_name(op->kind), tape->tensors[q].name,
                             tape->tensors[exponents].name);
        }
        operands[i] = maker;
    }
    return count == 0 ? STATUS_OK : check_shifts(tape, makers, at, operands, count, error);
}

static enum status check_inputs(const struct tape *tape, const uint32_t *makers, uint32_t at,
                                struct error *error)
{
    const struct op *op = &tape->ops[at];

    for (uint32_t i = 0; i < op->input_count; i++) {
        if (makers[op->inputs[i]] == OP_NOBODY) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "operation %u (%s) reads '%s' before it is made", at,
                             op_kind_name(op->kind), tape->tensors[op->inputs[i]].name);
        }
    }
    return check_operands(tape, makers, at, error);
}

static enum status check_outputs(const struct tape *tape, uint32_t *makers, uint32_t at,
                                 struct error *error)
{
    const struct op *op = &tape->ops[at];

    for (uint32_t i = 0; i < op->output_count; i++) {
        const struct tensor *output = &tape->tensors[op->outputs[i]];

        if (makers[op->outputs[i]] != OP_NOBODY) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "operation %u (%s) makes '%s', which exists already", at,
                             op_kind_name(op->kind), output->name);
        }
        if (op->kind == OP_QUANTIZE && output->role != ROLE_TEMPORARY) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "operation %u (quantize): '%s' must be a temporary, not of role %s",
                             at, output->name, role_name(output->role));
        }
        makers[op->outputs[i]] = at;
    }
    return STATUS_OK;
}

static enum status check_order(const struct tape *tape, uint32_t *makers, struct error *error)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        makers[id] = role_is_made(tape->tensors[id].role) ? OP_NOBODY : OP_NONE;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        enum status status = op_check(&tape->ops[at], tape->tensors, tape->tensor_count, error);

        if (status == STATUS_OK) {
            status = evidence_bound_check(&tape->ops[at], tape->tensors, error);
        }
        if (status != STATUS_OK) {
            (void)error_wrap(error, "operation %u", at);
            return status;
        }
        TRY(check_inputs(tape, makers, at, error));
        TRY(check_outputs(tape, makers, at, error));
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (makers[id] == OP_NOBODY) {
            return error_set(error, STATUS_BAD_FORMAT, "no operation makes '%s'",
                             tape->tensors[id].name);
        }
    }
    return STATUS_OK;
}

/* Every state tensor has exactly one pair, in order, of tensors with the same type and shape. */
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
        if (!init_is_sound(&tape->states[at].init) ||
            (before->dtype != DTYPE_F32 && tape->states[at].init.kind > INIT_ZEROS)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "state '%s' has no sound rule for its first value: kind %u, value "
                             "0x%08x, type %s",
                             before->name, (unsigned)tape->states[at].init.kind,
                             tape->states[at].init.value_bits, dtype_name(before->dtype));
        }
        at++;
    }
    if (at != tape->state_count) {
        return error_set(error, STATUS_BAD_FORMAT, "%u state pairs for %u state tensors",
                         tape->state_count, at);
    }
    return STATUS_OK;
}

/*
 * Two states must not share one next value: in place, one would overwrite the other. A quantized
 * operand must not be a next value, since machines have no canonical layout of it.
 */
static enum status check_state_ends(const struct tape *tape, uint32_t *makers, struct error *error)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        uint32_t after = tape->states[i].after;
        uint32_t maker = makers[after];

        if (maker == OP_NOBODY) {
            return error_set(error, STATUS_BAD_FORMAT, "'%s' is the next value of two states",
                             tape->tensors[after].name);
        }
        if (maker != OP_NONE && tape->ops[maker].kind == OP_QUANTIZE) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "'%s' of a quantize operation cannot be the next value of a state",
                             tape->tensors[after].name);
        }
        makers[after] = OP_NOBODY; /* taken */
    }
    return STATUS_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Callers find the tensors that last or are read from outside by name, so names are unique. */
static enum status check_names(const struct tape *tape, struct error *error)
{
    const char **names = malloc(((size_t)tape->tensor_count + 1) * sizeof(*names));
    enum status status = STATUS_OK;
    size_t count = 0;

    if (names == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to check a tape");
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role != ROLE_TEMPORARY) {
            names[count++] = tape->tensors[id].name;
        }
    }
    qsort(names, count, sizeof(*names), compare_names);
    for (size_t i = 1; i < count && status == STATUS_OK; i++) {
        if (strcmp(names[i - 1], names[i]) == 0) {
            status =
                error_set(error, STATUS_BAD_FORMAT, "two tensors have the name '%s'", names[i]);
        }
    }
    free(names);
    return status;
}

enum status tape_check(const struct tape *tape, struct error *error)
{
    enum status status;
    uint32_t *makers;
    uint32_t tensors_max = tape->brief == NULL ? TAPE_TENSORS_MAX : REPEAT_TENSORS_MAX;
    uint32_t ops_max = tape->brief == NULL ? TAPE_OPS_MAX : REPEAT_OPS_MAX;

    if (tape->tensor_count > tensors_max || tape->op_count > ops_max ||
        tape->state_count > tape->tensor_count) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "a tape has at most %u tensors and %u operations", tensors_max, ops_max);
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        TRY(check_tensor(&tape->tensors[id], id, error));
    }
    if (tape->loss != TENSOR_NONE &&
        (tape->loss >= tape->tensor_count || tape->tensors[tape->loss].count != 1 ||
         tape->tensors[tape->loss].dtype != DTYPE_F32)) {
        return error_set(error, STATUS_BAD_FORMAT, "the loss is not one binary32 number");
    }
    makers = malloc(((size_t)tape->tensor_count + 1) * sizeof(*makers));
    if (makers == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to check a tape");
    }
    TRY_OUT(check_order(tape, makers, error));
    TRY_OUT(check_states(tape, error));
    TRY_OUT(check_state_ends(tape, makers, error));
    status = check_names(tape, error);
out:
    free(makers);
    return status;
}

/* ---- sizes -------------------------------------------------------------- */

/* What the turns of loops but the first add to a trace. */
static uint64_t turned_bytes(const struct tape *tape)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < tape->loop_count; i++) {
        const struct loop *loop = &tape->loops[i];
        uint64_t turn = 0;
        uint64_t all = 0;

        for (uint32_t at = loop->first; at < loop->last; at++) {
            for (uint32_t j = 0; j < tape->ops[at].output_count; j++) {
                turn += tensor_size(&tape->tensors[tape->ops[at].outputs[j]]);
            }
        }
        if (__builtin_mul_overflow(turn, loop->turns - 1, &all) ||
            __builtin_add_overflow(sum, all, &sum)) {
            return UINT64_MAX;
        }
    }
    return sum;
}

struct tape_footprint tape_footprint(const struct tape *tape)
{
    const uint64_t turned = turned_bytes(tape);
    struct tape_footprint footprint = {0};

    /* At most 2.5 * 10^6 tensors of 2^42 bytes: no sum passes 2^64. */
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        uint64_t bytes = tensor_size(&tape->tensors[id]);

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
    if (__builtin_add_overflow(footprint.trace, turned, &footprint.trace)) {
        footprint.trace = UINT64_MAX;
    }
    return footprint;
}
