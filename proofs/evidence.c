/*
 * evidence.c - the judge of evidence; see evidence.h.
 *
 * docs/FORMATS.md, section 9. Everything begins with: kind (1), item of the program (4), items of
 * the program (4), items of a trace (4), path, size of the descriptor (2), descriptor. A path is
 * the number of its siblings (1) and the siblings (32 each); index and count are known.
 */
#include "proofs/evidence.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/reader.h"
#include "engine/contraction.h"
#include "engine/rule.h"
#include "proofs/commit.h"
#include "proofs/descriptor.h"
#include "proofs/element.h"
#include "proofs/sha256.h"

/* Rows of so many blocks are walked without asking first whether their leaves are there. */
#define BLOCKS_UNASKED (UINT64_C(1) << 20)

/* The leaves that are shown of an operand, where they lie in the evidence. */
struct shown {
    uint32_t leaf_count;    /* 0: the operand is not used */
    const uint8_t *indexes; /* 8 bytes each */
    const uint8_t *leaves;
    uint32_t last; /* the leaf that was read last: the next element is mostly in it too */
};

struct hearing {
    const struct evidence_context *context;
    struct evidence_ruling *ruling;
    struct evidence_progress *progress;
    struct error *error;
    enum status status; /* no memory */
    struct reader reader;
    enum evidence_kind kind;
    uint32_t trace_items;
    const uint8_t *descriptor_bytes;
    size_t descriptor_size;
    struct descriptor descriptor;
    struct digest trace_tree; /* tree roots that were seen to be in the context's roots */
    struct shown shown[DESCRIPTOR_OPERANDS_MAX];
    bool missing; /* the rule asked for an element that is not shown */
};

/* ---- pieces ------------------------------------------------------------- */

/* Reads a path for the item at index of count, and says where it leads to from hash. */
static enum evidence_reason read_path(struct digest *root, struct hearing *hearing, uint64_t index,
                                      uint64_t count, const struct digest *hash)
{
    struct merkle_path path = {.leaf_index = index, .leaf_count = count};

    path.sibling_count = reader_u8(&hearing->reader);
    if (path.sibling_count > MERKLE_DEPTH_MAX) {
        return EVIDENCE_BAD_PATH;
    }
    reader_copy(&hearing->reader, path.siblings, path.sibling_count * sizeof(struct digest));
    if (hearing->reader.failed) {
        return EVIDENCE_BAD_SIZE;
    }
    return merkle_path_root(root, &path, hash) == VERDICT_VALID ? EVIDENCE_FINE : EVIDENCE_BAD_PATH;
}

static enum evidence_reason read_digest(struct digest *digest, struct hearing *hearing)
{
    reader_copy(&hearing->reader, digest->bytes, DIGEST_SIZE);
    return hearing->reader.failed ? EVIDENCE_BAD_SIZE : EVIDENCE_FINE;
}

/* Does a path that follows lead from a tensor root at index of count to this tree root? */
static enum evidence_reason check_item(struct hearing *hearing, const struct digest *item,
                                       uint64_t index, uint64_t count, const struct digest *tree)
{
    struct digest hash;
    struct digest root;
    enum evidence_reason reason;

    merkle_leaf_hash(&hash, item->bytes, DIGEST_SIZE);
    reason = read_path(&root, hearing, index, count, &hash);
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    return digest_equal(&root, tree) ? EVIDENCE_FINE : EVIDENCE_BAD_TENSOR;
}

static enum evidence_reason read_program_item(struct hearing *hearing)
{
    const struct evidence_context *context = hearing->context;
    uint32_t index = reader_u32(&hearing->reader);
    uint32_t count = reader_u32(&hearing->reader);
    struct reader path;
    struct digest hash;
    struct digest root;
    enum evidence_reason reason;

    hearing->trace_items = reader_u32(&hearing->reader);
    /* The path stands before what it leads from. */
    path = hearing->reader;
    (void)reader_take(&hearing->reader, (size_t)reader_u8(&hearing->reader) * DIGEST_SIZE);
    hearing->descriptor_size = reader_u16(&hearing->reader);
    hearing->descriptor_bytes = reader_take(&hearing->reader, hearing->descriptor_size);
    if (hearing->reader.failed) {
        return EVIDENCE_BAD_SIZE;
    }
    struct reader behind = hearing->reader;

    merkle_leaf_hash(&hash, hearing->descriptor_bytes, hearing->descriptor_size);
    hearing->reader = path;
    reason = read_path(&root, hearing, index, count, &hash);
    hearing->reader = behind;
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    commit_list_root_of(&root, COMMIT_PROGRAM, hearing->trace_items, count, &root);
    if (!digest_equal(&root, &context->program)) {
        return EVIDENCE_BAD_PROGRAM;
    }
    if (descriptor_read(&hearing->descriptor, hearing->descriptor_bytes, hearing->descriptor_size,
                        NULL) != STATUS_OK) {
        return EVIDENCE_BAD_DESCRIPTOR;
    }
    return EVIDENCE_FINE;
}

static enum evidence_reason read_trace_tree(struct hearing *hearing)
{
    struct digest root;
    enum evidence_reason reason = read_digest(&hearing->trace_tree, hearing);

    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    commit_list_root_of(&root, COMMIT_TRACE, 0, hearing->trace_items, &hearing->trace_tree);
    return digest_equal(&root, &hearing->context->trace) ? EVIDENCE_FINE : EVIDENCE_BAD_TRACE;
}

/* A tree root that follows, of the list of states that is committed to as `state`. */
static enum evidence_reason read_state_tree(struct digest *tree, struct hearing *hearing,
                                            const struct digest *state)
{
    struct digest root;
    enum evidence_reason reason = read_digest(tree, hearing);

    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    commit_list_root_of(&root, COMMIT_STATE, 0, hearing->descriptor.state_count, tree);
    return digest_equal(&root, state) ? EVIDENCE_FINE : EVIDENCE_BAD_STATE;
}

static enum evidence_reason read_label(const uint8_t **label, size_t *size, struct hearing *hearing,
                                       const struct digest *wanted)
{
    struct digest hash;

    *size = reader_u8(&hearing->reader);
    *label = reader_take(&hearing->reader, *size);
    if (*label == NULL) {
        return EVIDENCE_BAD_SIZE;
    }
    sha256(&hash, *label, *size);
    return digest_equal(&hash, wanted) ? EVIDENCE_FINE : EVIDENCE_BAD_LABEL;
}

static bool padding_is_zero(const uint8_t leaf[MERKLE_LEAF_SIZE], uint64_t used)
{
    for (uint64_t at = used; at < MERKLE_LEAF_SIZE; at++) {
        if (leaf[at] != 0) {
            return false;
        }
    }
    return true;
}

/* Is the leaf at index, of an array of byte_count bytes, zero behind the end of the array? */
static bool padding_fits(const uint8_t *leaf, uint64_t index, uint64_t byte_count)
{
    uint64_t left = byte_count - index * MERKLE_LEAF_SIZE;

    return left >= MERKLE_LEAF_SIZE || padding_is_zero(leaf, left);
}

/* ---- operands ----------------------------------------------------------- */

/* Memory for the proof of the leaves of one operand. */
struct proof {
    struct merkle_multi multi;
    struct digest *hashes;
};

static bool proof_new(struct proof *proof, uint32_t leaf_count, uint32_t sibling_count)
{
    memset(proof, 0, sizeof(*proof));
    proof->multi.indexes = malloc((size_t)leaf_count * sizeof(*proof->multi.indexes));
    proof->multi.siblings = malloc(((size_t)sibling_count + 1) * sizeof(*proof->multi.siblings));
    proof->hashes = malloc((size_t)leaf_count * sizeof(*proof->hashes));
    return proof->multi.indexes != NULL && proof->multi.siblings != NULL && proof->hashes != NULL;
}

static void proof_free(struct proof *proof)
{
    free(proof->multi.indexes);
    free(proof->multi.siblings);
    free(proof->hashes);
}

static enum evidence_reason check_proof(struct proof *proof, const struct shown *shown,
                                        const uint8_t *siblings, uint32_t sibling_count,
                                        uint64_t byte_count, const struct digest *root)
{
    struct merkle_multi *multi = &proof->multi;

    multi->leaf_count = (byte_count + MERKLE_LEAF_SIZE - 1) / MERKLE_LEAF_SIZE;
    multi->index_count = shown->leaf_count;
    multi->sibling_count = sibling_count;
    memcpy(multi->siblings, siblings, (size_t)sibling_count * DIGEST_SIZE);
    for (uint32_t i = 0; i < shown->leaf_count; i++) {
        multi->indexes[i] = endian_load_be64(shown->indexes + 8 * (size_t)i);
    }
    sha256_many(proof->hashes, 0, shown->leaves, MERKLE_LEAF_SIZE, shown->leaf_count,
                SHA256_ISA_BEST);
    if (merkle_multi_check(multi, proof->hashes, root) != VERDICT_VALID) {
        return EVIDENCE_BAD_LEAVES;
    }
    /* Only the last leaf of the tensor has padding, and indexes rise. */
    uint32_t last = shown->leaf_count - 1;

    return padding_fits(shown->leaves + (size_t)last * MERKLE_LEAF_SIZE, multi->indexes[last],
                        byte_count)
               ? EVIDENCE_FINE
               : EVIDENCE_BAD_PADDING;
}

/* Number of leaves (2), their indexes, number of siblings (2), siblings, leaves. */
static enum evidence_reason read_leaves(struct hearing *hearing, struct shown *shown,
                                        uint64_t byte_count, const struct digest *root)
{
    uint32_t leaf_count = reader_u16(&hearing->reader);
    uint32_t sibling_count;
    const uint8_t *siblings;
    struct proof proof;
    enum evidence_reason reason;

    shown->indexes = reader_take(&hearing->reader, (size_t)leaf_count * 8);
    sibling_count = reader_u16(&hearing->reader);
    siblings = reader_take(&hearing->reader, (size_t)sibling_count * DIGEST_SIZE);
    shown->leaves = reader_take(&hearing->reader, (size_t)leaf_count * MERKLE_LEAF_SIZE);
    if (hearing->reader.failed) {
        return EVIDENCE_BAD_SIZE;
    }
    if (leaf_count == 0) {
        return EVIDENCE_BAD_LEAVES;
    }
    shown->leaf_count = leaf_count;
    if (proof_new(&proof, leaf_count, sibling_count)) {
        reason = check_proof(&proof, shown, siblings, sibling_count, byte_count, root);
    } else {
        hearing->status = error_set(hearing->error, STATUS_NO_MEMORY, "no memory to judge");
        reason = EVIDENCE_BAD_LEAVES; /* which nobody gets to see */
    }
    proof_free(&proof);
    return reason;
}

/* Label, tree root, (data and constants: number of them,) path, leaves. */
static enum evidence_reason read_operand(struct hearing *hearing, uint32_t number)
{
    const struct descriptor_operand *operand = &hearing->descriptor.operands[number];
    bool data = operand->role == ROLE_DATA;
    const uint8_t *label;
    size_t label_size;
    struct digest tree;
    struct digest tensor;
    enum evidence_reason reason = read_label(&label, &label_size, hearing, &operand->label);

    if (reason == EVIDENCE_FINE) {
        reason = read_digest(&tree, hearing);
    }
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    commit_labelled_root(&tensor, data ? COMMIT_DATA : COMMIT_TENSOR, label, label_size, &tree);
    if (data || operand->role == ROLE_CONSTANT) {
        uint32_t count = reader_u32(&hearing->reader);
        struct digest hash;
        struct digest list;

        merkle_leaf_hash(&hash, tensor.bytes, DIGEST_SIZE);
        reason = read_path(&list, hearing, operand->place, count, &hash);
        if (reason != EVIDENCE_FINE) {
            return reason;
        }
        commit_list_root_of(&list, COMMIT_STATE, 0, count, &list);
        reason = digest_equal(&list, data ? &hearing->context->data : &hearing->context->constants)
                     ? EVIDENCE_FINE
                     : EVIDENCE_BAD_TENSOR;
    } else if (operand->role == ROLE_INPUT) {
        reason = EVIDENCE_BAD_DESCRIPTOR; /* no job has any */
    } else {
        reason = check_item(hearing, &tensor, operand->place, hearing->trace_items,
                            &hearing->trace_tree);
    }
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    return read_leaves(hearing, &hearing->shown[number],
                       operand->count * dtype_size(operand->dtype), &tree);
}

static bool leaf_find(struct shown *shown, uint64_t leaf)
{
    uint32_t low = 0;
    uint32_t high = shown->leaf_count;

    if (shown->leaf_count > 0 &&
        endian_load_be64(shown->indexes + 8 * (size_t)shown->last) == leaf) {
        return true;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (endian_load_be64(shown->indexes + 8 * (size_t)middle) < leaf) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == shown->leaf_count || endian_load_be64(shown->indexes + 8 * (size_t)low) != leaf) {
        return false;
    }
    shown->last = low;
    return true;
}

/* What the rule reads: an element of operand number `tensor`. */
static uint32_t fetch(void *context, uint32_t number, uint64_t index)
{
    struct hearing *hearing = context;
    const struct descriptor_operand *operand = &hearing->descriptor.operands[number];
    struct shown *shown = &hearing->shown[number];
    uint64_t at = index * dtype_size(operand->dtype);

    if (index >= operand->count || !leaf_find(shown, at / MERKLE_LEAF_SIZE)) {
        hearing->missing = true;
        return 0;
    }
    return element_bits(shown->leaves + (size_t)shown->last * MERKLE_LEAF_SIZE +
                            at % MERKLE_LEAF_SIZE,
                        operand->dtype);
}

/* Could so many elements of an operand be among its leaves? Asked before a loop over them. */
static bool could_hold(const struct hearing *hearing, uint32_t number, uint64_t count)
{
    uint64_t most = MERKLE_LEAF_SIZE / dtype_size(hearing->descriptor.operands[number].dtype);

    return count <= hearing->shown[number].leaf_count * most;
}

/* ---- kind 1: an element ------------------------------------------------- */

struct target {
    uint32_t output;
    uint64_t element;
    uint64_t from;
    uint64_t to;
    struct rule_axis axis;
    bool last; /* nothing of the axis is left */
};

/* Which part of the axis: all of it may be told as 0 to 0, except of a sum. */
static enum evidence_reason find_part(struct target *target, const struct op *op)
{
    struct rule_axis *axis = &target->axis;

    rule_axis_of(axis, op, target->output, target->element);
    if (target->from == 0 && target->to == 0 && axis->fold != RULE_SUM) {
        target->to = axis->length;
        target->last = true;
        return EVIDENCE_FINE;
    }
    target->last = target->to == axis->length;
    return axis->fold == RULE_WHOLE || target->from >= target->to || target->to > axis->length ||
                   target->from % axis->grain != 0 ||
                   (target->to % axis->grain != 0 && !target->last)
               ? EVIDENCE_BAD_TARGET
               : EVIDENCE_FINE;
}

static enum evidence_reason read_target(struct target *target, struct hearing *hearing)
{
    const struct op *op = &hearing->descriptor.op;
    uint32_t used;
    uint32_t accused;
    enum evidence_reason reason;

    target->output = reader_u8(&hearing->reader);
    target->element = reader_u64(&hearing->reader);
    target->from = reader_u32(&hearing->reader);
    target->to = reader_u32(&hearing->reader);
    used = reader_u16(&hearing->reader);
    if (hearing->reader.failed) {
        return EVIDENCE_BAD_SIZE;
    }
    accused = op->input_count + target->output;
    if (target->output >= op->output_count ||
        target->element >= hearing->descriptor.operands[accused].count ||
        used >> hearing->descriptor.operand_count != 0) {
        return EVIDENCE_BAD_TARGET;
    }
    if ((used >> accused & 1) == 0) {
        return EVIDENCE_MISSING;
    }
    reason = find_part(target, op);
    for (uint32_t i = 0; i < hearing->descriptor.operand_count && reason == EVIDENCE_FINE; i++) {
        reason = (used >> i & 1) != 0 ? read_operand(hearing, i) : EVIDENCE_FINE;
    }
    if (reason == EVIDENCE_FINE && reader_left(&hearing->reader) != 0) {
        reason = EVIDENCE_BAD_SIZE;
    }
    return reason;
}

static void rule_call_make(struct rule_call *call, struct hearing *hearing)
{
    const struct op *op = &hearing->descriptor.op;

    *call = (struct rule_call){.op = op};
    for (uint32_t i = 0; i < hearing->descriptor.operand_count; i++) {
        const struct descriptor_operand *operand = &hearing->descriptor.operands[i];
        struct operand *slot =
            i < op->input_count ? &call->inputs[i] : &call->outputs[i - op->input_count];

        *slot = (struct operand){.dtype = operand->dtype,
                                 .count = operand->count,
                                 .fetch = fetch,
                                 .context = hearing,
                                 .tensor = i};
    }
}

/* Hostile sizes must not make a loop that finds nothing long: what a part reads must be there. */
static bool part_is_shown(struct hearing *hearing, const struct rule_call *call,
                          const struct target *target)
{
    static const uint8_t contract[] = {0, 2};
    static const uint8_t ones[] = {0};
    static const uint8_t onehot[] = {0}; /* the words; of q only what stands at the word's places */
    enum op_kind kind = call->op->kind;
    const uint8_t *rows = kind == OP_CONTRACT ? contract : kind == OP_CONTRACT_ONES ? ones : onehot;
    uint64_t blocks = (uint64_t)contraction_shape_of(call->op).blocks;
    struct rule_part part;

    if (target->axis.fold == RULE_MAXIMUM) {
        return true; /* a piece is short */
    }
    for (uint32_t i = 0; i < (kind == OP_CONTRACT ? 2 : 1); i++) {
        uint32_t exponents = kind == OP_CONTRACT_ONEHOT ? 2 : 2 * i + 1;

        if (blocks > BLOCKS_UNASKED && !could_hold(hearing, exponents, blocks)) {
            return false;
        }
    }
    rule_element_part(&part, call, target->output, target->element, target->from, target->from);
    for (uint32_t i = 0; i < (kind == OP_CONTRACT ? 2 : 1) && !part.settled; i++) {
        if (!could_hold(hearing, rows[i], target->to - target->from)) {
            return false;
        }
    }
    return true;
}

static void subject_of(struct digest *subject, const struct hearing *hearing,
                       const struct target *target)
{
    uint8_t place[9] = {(uint8_t)target->output};
    struct sha256 hash;

    endian_store_be64(place + 1, target->element);
    sha256_init(&hash, SHA256_ISA_BEST);
    sha256_add(&hash, hearing->descriptor_bytes, hearing->descriptor_size);
    sha256_add(&hash, place, sizeof(place));
    sha256_end(&hash, subject);
}

/* One part of an axis: the element when it is the last one, else the progress is moved on. */
static enum evidence_reason judge_part(uint32_t *bits, struct hearing *hearing,
                                       const struct rule_call *call, const struct target *target)
{
    struct evidence_progress *progress = hearing->progress;
    struct digest subject;
    struct rule_part part;

    subject_of(&subject, hearing, target);
    if (progress == NULL && !(target->from == 0 && target->last)) {
        return EVIDENCE_BAD_ORDER;
    }
    if (target->from != 0) {
        if (progress->next != target->from || !digest_equal(&progress->subject, &subject)) {
            return EVIDENCE_BAD_ORDER;
        }
    }
    if (!part_is_shown(hearing, call, target)) {
        return EVIDENCE_MISSING;
    }
    rule_element_part(&part, call, target->output, target->element, target->from, target->to);
    if (target->from != 0) {
        rule_part_join(&part, progress->value);
    }
    if (hearing->missing) {
        return EVIDENCE_MISSING;
    }
    if (target->last) {
        *bits = rule_part_finish(&part);
        return EVIDENCE_FINE;
    }
    *progress =
        (struct evidence_progress){.subject = subject, .next = target->to, .value = part.value};
    hearing->ruling->answer = EVIDENCE_PART_TAKEN;
    return EVIDENCE_FINE;
}

static enum evidence_reason judge_element(struct hearing *hearing)
{
    const struct descriptor *descriptor = &hearing->descriptor;
    const struct op *op = &descriptor->op;
    struct evidence_ruling *ruling = hearing->ruling;
    struct rule_call call;
    struct target target;
    enum evidence_reason reason;

    if (descriptor->is_state) {
        return EVIDENCE_BAD_KIND;
    }
    reason = read_trace_tree(hearing);
    if (reason == EVIDENCE_FINE) {
        reason = read_target(&target, hearing);
    }
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    rule_call_make(&call, hearing);
    if (target.axis.fold != RULE_WHOLE) {
        reason = judge_part(&ruling->wanted, hearing, &call, &target);
        if (reason != EVIDENCE_FINE || !target.last) {
            return reason;
        }
    } else if (op->kind == OP_QUANTIZE && target.output == 1 &&
               !could_hold(hearing, 1, (uint64_t)contraction_shape_of(op).pieces)) {
        return EVIDENCE_MISSING; /* as in part_is_shown(): a row has any number of peaks */
    } else {
        ruling->wanted = rule_element(&call, target.output, target.element);
    }
    ruling->found = fetch(hearing, op->input_count + target.output, target.element);
    if (hearing->missing) {
        return EVIDENCE_MISSING;
    }
    ruling->wanted =
        element_cut(ruling->wanted, descriptor->operands[op->input_count + target.output].dtype);
    ruling->answer = ruling->wanted == ruling->found ? EVIDENCE_NOT_GUILTY : EVIDENCE_UPHELD;
    return EVIDENCE_FINE;
}

/* ---- kinds 2 to 4: the ends of the trace -------------------------------- */

/* Tree root of the trace, item, its path; item of the state, the state's tree root, its path. */
static enum evidence_reason judge_end(struct hearing *hearing)
{
    const struct descriptor *descriptor = &hearing->descriptor;
    bool first = hearing->kind == EVIDENCE_FIRST_STATE;
    struct digest in_trace;
    struct digest in_state;
    struct digest tree;
    enum evidence_reason reason;

    if (!descriptor->is_state || (hearing->context->attestor && !first)) {
        return EVIDENCE_BAD_KIND;
    }
    reason = read_trace_tree(hearing);
    if (reason == EVIDENCE_FINE) {
        reason = read_digest(&in_trace, hearing);
    }
    if (reason == EVIDENCE_FINE) {
        reason = check_item(hearing, &in_trace, first ? descriptor->state : descriptor->next,
                            hearing->trace_items, &hearing->trace_tree);
    }
    if (reason == EVIDENCE_FINE) {
        reason = read_digest(&in_state, hearing);
    }
    if (reason == EVIDENCE_FINE) {
        reason = read_state_tree(&tree, hearing,
                                 first ? &hearing->context->before : &hearing->context->after);
    }
    if (reason == EVIDENCE_FINE) {
        reason = check_item(hearing, &in_state, descriptor->state, descriptor->state_count, &tree);
    }
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    if (reader_left(&hearing->reader) != 0) {
        return EVIDENCE_BAD_SIZE;
    }
    hearing->ruling->answer =
        digest_equal(&in_trace, &in_state) ? EVIDENCE_NOT_GUILTY : EVIDENCE_UPHELD;
    return EVIDENCE_FINE;
}

/* Tensor root and leaf of kind 4: label, tree root, tree root of Q, path in Q. */
static enum evidence_reason read_next_state(uint64_t *byte_count, struct digest *tree,
                                            struct hearing *hearing)
{
    const struct descriptor *descriptor = &hearing->descriptor;
    const uint8_t *label;
    size_t label_size;
    struct digest tensor;
    struct digest states;
    enum evidence_reason reason = read_label(&label, &label_size, hearing, &descriptor->label);

    if (reason == EVIDENCE_FINE && (label_size < DESCRIPTOR_LABEL_MIN || label[56] != DTYPE_F32)) {
        reason = EVIDENCE_BAD_LABEL; /* only a binary32 can be anything but finite */
    }
    if (reason == EVIDENCE_FINE) {
        reason = read_digest(tree, hearing);
    }
    if (reason == EVIDENCE_FINE) {
        reason = read_state_tree(&states, hearing, &hearing->context->after);
    }
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    *byte_count = endian_load_be64(label);
    commit_labelled_root(&tensor, COMMIT_TENSOR, label, label_size, tree);
    return check_item(hearing, &tensor, descriptor->state, descriptor->state_count, &states);
}

/* ... then the leaf's index, its path, the leaf, the element. */
static enum evidence_reason judge_not_finite(struct hearing *hearing)
{
    struct reader *reader = &hearing->reader;
    uint64_t byte_count = 0;
    struct digest tree;
    struct digest root;
    struct digest hash;
    enum evidence_reason reason;

    if (!hearing->descriptor.is_state || hearing->context->attestor || hearing->context->diverged) {
        return EVIDENCE_BAD_KIND;
    }
    reason = read_next_state(&byte_count, &tree, hearing);
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    /* No sum here: a label may say 2^64 - 1 bytes, and no path is as long as that takes. */
    uint64_t leaf_count = byte_count / MERKLE_LEAF_SIZE + (byte_count % MERKLE_LEAF_SIZE != 0);
    uint64_t index = reader_u64(reader);
    struct reader path = *reader;

    (void)reader_take(reader, (size_t)reader_u8(reader) * DIGEST_SIZE);
    const uint8_t *leaf = reader_take(reader, MERKLE_LEAF_SIZE);
    uint64_t element = reader_u64(reader);

    if (reader->failed || reader_left(reader) != 0) {
        return EVIDENCE_BAD_SIZE;
    }
    merkle_leaf_hash(&hash, leaf, MERKLE_LEAF_SIZE);
    *reader = path;
    reason = read_path(&root, hearing, index, leaf_count, &hash);
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    if (!digest_equal(&root, &tree)) {
        return EVIDENCE_BAD_LEAVES;
    }
    if (!padding_fits(leaf, index, byte_count)) {
        return EVIDENCE_BAD_PADDING;
    }
    if (element >= byte_count / 4 || element / (MERKLE_LEAF_SIZE / 4) != index) {
        return EVIDENCE_BAD_TARGET;
    }
    hearing->ruling->found = element_bits(leaf + element % (MERKLE_LEAF_SIZE / 4) * 4, DTYPE_F32);
    hearing->ruling->answer = (~hearing->ruling->found & UINT32_C(0x7f800000)) == 0
                                  ? EVIDENCE_UPHELD
                                  : EVIDENCE_NOT_GUILTY;
    return EVIDENCE_FINE;
}

/* ---- all kinds ---------------------------------------------------------- */

static enum evidence_reason judge(struct hearing *hearing)
{
    uint8_t kind = reader_u8(&hearing->reader);
    enum evidence_reason reason;

    if (kind < EVIDENCE_ELEMENT || kind > EVIDENCE_NOT_FINITE) {
        return EVIDENCE_BAD_KIND;
    }
    hearing->kind = (enum evidence_kind)kind;
    reason = read_program_item(hearing);
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    switch (hearing->kind) {
    case EVIDENCE_ELEMENT:
        return judge_element(hearing);
    case EVIDENCE_FIRST_STATE:
    case EVIDENCE_NEXT_STATE:
        return judge_end(hearing);
    case EVIDENCE_NOT_FINITE:
        return judge_not_finite(hearing);
    }
    return EVIDENCE_BAD_KIND;
}

enum status evidence_judge(struct evidence_ruling *ruling, struct evidence_progress *progress,
                           const struct evidence_context *context, const uint8_t *bytes,
                           size_t size, struct error *error)
{
    struct hearing hearing = {.context = context,
                              .ruling = ruling,
                              .progress = progress,
                              .error = error,
                              .status = STATUS_OK};

    *ruling = (struct evidence_ruling){.answer = EVIDENCE_REFUSED, .reason = EVIDENCE_BAD_SIZE};
    if (size == 0 || size > EVIDENCE_SIZE_MAX) {
        return STATUS_OK;
    }
    reader_init(&hearing.reader, bytes, size);
    ruling->reason = judge(&hearing);
    if (ruling->reason != EVIDENCE_FINE || hearing.status != STATUS_OK) {
        *ruling = (struct evidence_ruling){.answer = EVIDENCE_REFUSED, .reason = ruling->reason};
    }
    return hearing.status;
}

/* ---- reasons ------------------------------------------------------------ */

static const struct {
    const char *name;
    const char *text;
} reasons[EVIDENCE_REASON_COUNT] = {
    [EVIDENCE_FINE] = {"Fine", "nothing is wrong with the evidence"},
    [EVIDENCE_BAD_SIZE] = {"BadSize", "the evidence is cut short, or goes on after its end"},
    [EVIDENCE_BAD_KIND] = {"BadKind", "evidence of this kind cannot be brought here"},
    [EVIDENCE_BAD_PATH] = {"BadPath", "a path is not as long as its place in the tree needs"},
    [EVIDENCE_BAD_DESCRIPTOR] = {"BadDescriptor", "the descriptor describes nothing sound"},
    [EVIDENCE_BAD_PROGRAM] = {"BadProgram", "the descriptor is not one of the job's program"},
    [EVIDENCE_BAD_TRACE] = {"BadTrace", "the tree is not that of the accused's trace"},
    [EVIDENCE_BAD_STATE] = {"BadState", "the tree is not that of the state"},
    [EVIDENCE_BAD_TARGET] = {"BadTarget", "there is no such output, element or part of its axis"},
    [EVIDENCE_BAD_LABEL] = {"BadLabel", "a label is not the one that the descriptor names"},
    [EVIDENCE_BAD_TENSOR] = {"BadTensor", "a tensor does not stand where the descriptor says"},
    [EVIDENCE_BAD_LEAVES] = {"BadLeaves", "leaves are not under the root of their tensor"},
    [EVIDENCE_BAD_PADDING] = {"BadPadding", "the padding of a leaf is not zero"},
    [EVIDENCE_MISSING] = {"Missing", "an element that the rule needs is not shown"},
    [EVIDENCE_BAD_ORDER] = {"BadOrder", "it is not the part of the axis that comes next"},
};

const char *evidence_reason_text(enum evidence_reason reason)
{
    assert((unsigned)reason < EVIDENCE_REASON_COUNT);
    return reasons[reason].text;
}

const char *evidence_reason_name(enum evidence_reason reason)
{
    assert((unsigned)reason < EVIDENCE_REASON_COUNT);
    return reasons[reason].name;
}
