/*
 * evidence_element.c - the judge of an element, and of a part of one; see evidence.h.
 *
 * docs/FORMATS.md, sections 9.1 and 9.2: tree root of the trace, of an operation of a micro-batch
 * that of its own list, output (1), element (8); of kind 5
 * part (4), size of the reply (2), the reply; which operands are shown (2), operands.
 */
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "engine/ops/contraction.h"
#include "engine/rules/rule.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/element.h"
#include "proofs/dispute/evidence_reader.h"
#include "proofs/dispute/trace_query.h"

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
        merkle_leaf_hash(&proof->hashes[i], shown->leaves + (size_t)i * MERKLE_LEAF_SIZE,
                         MERKLE_LEAF_SIZE);
    }
    if (merkle_multi_check(multi, proof->hashes, root) != VERDICT_VALID) {
        return EVIDENCE_BAD_LEAVES;
    }
    /* Only the last leaf of the tensor has padding, and indexes rise. */
    uint32_t last = shown->leaf_count - 1;

    return evidence_reader_padding_fits(shown->leaves + (size_t)last * MERKLE_LEAF_SIZE,
                                        multi->indexes[last], byte_count)
               ? EVIDENCE_FINE
               : EVIDENCE_BAD_PADDING;
}

/* Number of leaves (2), their indexes, number of siblings (2), siblings, leaves. */
static enum evidence_reason read_leaves(struct evidence_reader *in, struct shown *shown,
                                        uint64_t byte_count, const struct digest *root)
{
    uint32_t leaf_count = reader_u16(&in->reader);
    uint32_t sibling_count;
    const uint8_t *siblings;
    struct proof proof;
    enum evidence_reason reason;

    shown->indexes = reader_take(&in->reader, (size_t)leaf_count * 8);
    sibling_count = reader_u16(&in->reader);
    siblings = reader_take(&in->reader, (size_t)sibling_count * DIGEST_SIZE);
    shown->leaves = reader_take(&in->reader, (size_t)leaf_count * MERKLE_LEAF_SIZE);
    if (in->reader.failed) {
        return EVIDENCE_BAD_SIZE;
    }
    if (leaf_count == 0) {
        return EVIDENCE_BAD_LEAVES;
    }
    shown->leaf_count = leaf_count;
    if (proof_new(&proof, leaf_count, sibling_count)) {
        reason = check_proof(&proof, shown, siblings, sibling_count, byte_count, root);
    } else {
        in->status = error_set(in->error, STATUS_NO_MEMORY, "no memory to judge");
        reason = EVIDENCE_BAD_LEAVES; /* which nobody gets to see */
    }
    proof_free(&proof);
    return reason;
}

/* The path of a tensor of the trace, or of the micro-batch's own list. */
static enum evidence_reason read_item(struct evidence_reader *in,
                                      const struct descriptor_operand *operand,
                                      const struct digest *tensor)
{
    const struct repeat_layout *layout = &in->descriptor.layout;
    uint64_t first = in->trace_items + (uint64_t)in->descriptor.batch * layout->inner;

    return operand->way == DESCRIPTOR_INNER
               ? evidence_reader_item(in, tensor, operand->place - first, layout->inner,
                                      &in->batch_tree)
               : evidence_reader_item(in, tensor, operand->place, in->trace_items, &in->trace_tree);
}

/* Label, tree root, (data and constants: number of them,) path, leaves. */
static enum evidence_reason read_operand(struct evidence_reader *in, uint32_t number)
{
    const struct descriptor_operand *operand = &in->descriptor.operands[number];
    bool data = operand->role == ROLE_DATA;
    const uint8_t *label;
    size_t label_size;
    struct digest tree;
    struct digest tensor;
    enum evidence_reason reason = evidence_reader_label(&label, &label_size, in, &operand->label);

    if (reason == EVIDENCE_FINE) {
        reason = evidence_reader_digest(&tree, in);
    }
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    commit_labelled_root(&tensor, data ? COMMIT_DATA : COMMIT_TENSOR, label, label_size, &tree);
    if (data || operand->role == ROLE_CONSTANT) {
        uint32_t count = reader_u32(&in->reader);
        struct digest hash;
        struct digest list;

        merkle_leaf_hash(&hash, tensor.bytes, DIGEST_SIZE);
        reason = evidence_reader_path(&list, in, operand->place, count, &hash);
        if (reason != EVIDENCE_FINE) {
            return reason;
        }
        commit_list_root_of(&list, COMMIT_STATE, 0, count, &list);
        reason = digest_equal(&list, data ? &in->context->data : &in->context->constants)
                     ? EVIDENCE_FINE
                     : EVIDENCE_BAD_TENSOR;
    } else if (operand->role == ROLE_INPUT) {
        reason = EVIDENCE_BAD_DESCRIPTOR; /* no job has any */
    } else {
        reason = read_item(in, operand, &tensor);
    }
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    return read_leaves(in, &in->shown[number], operand->count * dtype_size(operand->dtype), &tree);
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
static uint32_t fetch_operand(void *context, uint32_t number, uint64_t index)
{
    struct evidence_reader *in = context;
    const struct descriptor_operand *operand = &in->descriptor.operands[number];
    struct shown *shown = &in->shown[number];
    uint64_t at = index * dtype_size(operand->dtype);

    if (index >= operand->count || !leaf_find(shown, at / MERKLE_LEAF_SIZE)) {
        in->missing = true;
        return 0;
    }
    return element_bits(shown->leaves + (size_t)shown->last * MERKLE_LEAF_SIZE +
                            at % MERKLE_LEAF_SIZE,
                        operand->dtype);
}

/* Could so many elements of an operand be among its leaves? Asked before a loop over them. */
static bool could_hold(const struct evidence_reader *in, uint32_t number, uint64_t count)
{
    uint64_t most = MERKLE_LEAF_SIZE / dtype_size(in->descriptor.operands[number].dtype);

    return count <= in->shown[number].leaf_count * most;
}

/* ---- the element that is accused ---------------------------------------- */

struct target {
    uint32_t output;
    uint64_t element;
    uint32_t accused;          /* the operand that holds it */
    struct rule_axis axis;     /* of kind 5, what the reply is about */
    struct evidence_part part; /* of kind 5 */
    uint64_t from;             /* what is shown of the axis */
    uint64_t to;
};

static enum evidence_reason read_part(struct target *target, struct evidence_reader *in)
{
    struct evidence_part *part = &target->part;
    struct rule_axis inner;
    const uint8_t *range;
    size_t range_size;

    part->number = reader_u32(&in->reader);
    range_size = reader_u8(&in->reader);
    range = reader_take(&in->reader, range_size);
    part->reply_size = reader_u16(&in->reader);
    part->reply = reader_take(&in->reader, part->reply_size);
    if (in->reader.failed) {
        return EVIDENCE_BAD_SIZE;
    }
    if (range_size == PARTIAL_SUMS_RANGE_SIZE) {
        partial_sums_range_read(&part->range, range);
    } else if (range_size != 0) {
        return EVIDENCE_BAD_TARGET;
    }
    if (target->axis.fold == RULE_WHOLE || !partial_sums_narrow(&target->axis, &part->range) ||
        part->number >= target->axis.parts) {
        return EVIDENCE_BAD_TARGET;
    }
    inner = target->axis;
    rule_axis_enter(&inner, part->number);
    target->from = inner.from;
    target->to = inner.from + inner.length;
    return EVIDENCE_FINE;
}

static enum evidence_reason read_place(struct target *target, struct evidence_reader *in)
{
    const struct op *op = &in->descriptor.op;

    *target = (struct target){.output = reader_u8(&in->reader)};
    target->element = reader_u64(&in->reader);
    if (in->reader.failed) {
        return EVIDENCE_BAD_SIZE;
    }
    target->accused = op->input_count + target->output;
    if (target->output >= op->output_count ||
        target->element >= in->descriptor.operands[target->accused].count) {
        return EVIDENCE_BAD_TARGET;
    }
    rule_axis_of(&target->axis, op, target->output, target->element);
    target->to = target->axis.length;
    return in->kind == EVIDENCE_PART ? read_part(target, in) : EVIDENCE_FINE;
}

static enum evidence_reason read_target(struct target *target, struct evidence_reader *in)
{
    enum evidence_reason reason =
        in->descriptor.is_state ? EVIDENCE_BAD_KIND : evidence_reader_trace_tree(in);
    uint32_t used;

    if (reason == EVIDENCE_FINE) {
        reason = read_place(target, in);
    }
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    used = reader_u16(&in->reader);
    if (in->reader.failed) {
        return EVIDENCE_BAD_SIZE;
    }
    if (used >> in->descriptor.operand_count != 0) {
        return EVIDENCE_BAD_TARGET;
    }
    if ((used >> target->accused & 1) == 0) {
        return EVIDENCE_MISSING;
    }
    for (uint32_t i = 0; i < in->descriptor.operand_count && reason == EVIDENCE_FINE; i++) {
        reason = (used >> i & 1) != 0 ? read_operand(in, i) : EVIDENCE_FINE;
    }
    if (reason == EVIDENCE_FINE && reader_left(&in->reader) != 0) {
        reason = EVIDENCE_BAD_SIZE;
    }
    return reason;
}

/* The bits of the accused element; whether its leaf is shown is in in->missing. */
static uint32_t find_accused(struct evidence_reader *in, const struct target *target)
{
    return fetch_operand(in, target->accused, target->element);
}

static struct partial_sums_target parts_of(const struct evidence_reader *in,
                                           const struct target *target, uint32_t bits)
{
    struct partial_sums_target parts = {.bits = bits,
                                        .fold = target->axis.fold,
                                        .count = target->axis.parts,
                                        .range = target->part.range};

    partial_sums_subject(&parts.subject, in->descriptor_bytes, in->descriptor_size, target->output,
                         target->element);
    return parts;
}

/* The accused's last reply, which must be about the parts that evidence of kind 5 names. */
static enum evidence_reason read_reply(struct partial_sums_reply *reply,
                                       const struct evidence_reader *in,
                                       const struct target *target,
                                       const struct partial_sums_target *queried)
{
    const struct evidence_part *part = &target->part;
    const struct trace_query query = {.kind = TRACE_QUERY_PARTS,
                                      .item = in->descriptor.operands[target->accused].place,
                                      .level = queried->range.is_part,
                                      .index = target->element};
    uint8_t bytes[PARTIAL_SUMS_QUERY_MAX];
    struct digest hash;

    partial_sums_reply_hash(&hash, bytes, partial_sums_query_write(bytes, &query, queried),
                            part->reply, part->reply_size);
    return digest_equal(&hash, &in->context->reply) &&
                   partial_sums_check(reply, queried, part->reply, part->reply_size) ==
                       VERDICT_VALID
               ? EVIDENCE_FINE
               : EVIDENCE_NOT_REPLIED;
}

/* From the parts that were replied to those of one of them. */
static enum evidence_reason enter_part(struct partial_sums_target *parts,
                                       const struct evidence_reader *in,
                                       const struct target *target)
{
    struct rule_axis inner = target->axis;
    struct partial_sums_reply reply;
    enum evidence_reason reason = read_reply(&reply, in, target, parts);

    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    if (!partial_sums_enter(&parts->range, &inner, &reply, target->part.number)) {
        return EVIDENCE_BAD_TARGET;
    }
    rule_axis_enter(&inner, target->part.number);
    parts->count = inner.parts;
    return EVIDENCE_FINE;
}

enum evidence_reason evidence_reader_committed(struct evidence_committed *committed,
                                               struct evidence_reader *in)
{
    struct target target;
    enum evidence_reason reason = read_target(&target, in);
    uint32_t bits;

    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    bits = find_accused(in, &target);
    if (in->missing) {
        return EVIDENCE_MISSING;
    }
    *committed = (struct evidence_committed){
        .item = in->descriptor.operands[target.accused].place,
        .element = target.element,
        .parts = parts_of(in, &target, bits),
    };
    return in->kind == EVIDENCE_PART ? enter_part(&committed->parts, in, &target) : EVIDENCE_FINE;
}

/* ---- what the rule gives ------------------------------------------------ */

static void rule_call_make(struct rule_call *call, struct evidence_reader *in)
{
    const struct op *op = &in->descriptor.op;

    *call = (struct rule_call){.op = op};
    for (uint32_t i = 0; i < in->descriptor.operand_count; i++) {
        const struct descriptor_operand *operand = &in->descriptor.operands[i];
        struct operand *slot =
            i < op->input_count ? &call->inputs[i] : &call->outputs[i - op->input_count];

        *slot = (struct operand){.dtype = operand->dtype,
                                 .count = operand->count,
                                 .fetch = fetch_operand,
                                 .context = in,
                                 .tensor = i};
    }
}

/* Are `count` elements of every row's q, or its exponents, there? Of one-hots' q only what stands
 * at the word's places is read, and all words. */
static bool rows_are_shown(const struct evidence_reader *in, enum op_kind kind, bool exponents,
                           uint64_t count)
{
    if (kind == OP_CONTRACT_ONEHOT) {
        return could_hold(in, exponents ? 2 : 0, count);
    }
    if (kind == OP_CONTRACT_CHOSEN_ROWS) { /* the same of both */
        return exponents ? could_hold(in, 2, count) && could_hold(in, 4, count)
                         : could_hold(in, 0, count);
    }
    if (kind == OP_CONTRACT_CHOSEN) {
        return could_hold(in, exponents, count) && could_hold(in, 3 + exponents, count);
    }
    return could_hold(in, exponents, count) &&
           (kind != OP_CONTRACT || could_hold(in, 2 + exponents, count));
}

/* Of a whole sum all exponents are read, and the rest unless they settle it. */
static bool sum_is_shown(const struct evidence_reader *in, const struct rule_call *call,
                         const struct target *target)
{
    uint64_t block = (uint64_t)contraction_shape_of(call->op).block;
    uint64_t blocks = (target->to - 1) / block - target->from / block + 1;
    struct rule_base base;

    if (rule_element_is_edge(call, target->output, target->element)) {
        return true;
    }
    if (!rows_are_shown(in, call->op->kind, true, blocks)) {
        return false;
    }
    if (in->kind == EVIDENCE_ELEMENT) {
        rule_element_base(&base, call, target->output, target->element);
        if (base.settled) {
            return true;
        }
    }
    return rows_are_shown(in, call->op->kind, false, target->to - target->from);
}

/* Hostile sizes must not make a loop that finds nothing long: what is read must be there. */
static bool range_is_shown(const struct evidence_reader *in, const struct rule_call *call,
                           const struct target *target)
{
    if (target->axis.fold == RULE_SUM) {
        return sum_is_shown(in, call, target);
    }
    const struct op *op = call->op;

    if (op->kind == OP_EQUILIBRATE) {
        return could_hold(in, 0, (uint64_t)op->attributes[EQUILIBRATE_E]) &&
               (op->input_count < 2 || could_hold(in, 1, (uint64_t)op->attributes[EQUILIBRATE_F]));
    }
    /* A piece is short; but a row has any number of peaks. */
    return op->kind != OP_QUANTIZE || target->output != 1 ||
           could_hold(in, op->input_count, target->to - target->from);
}

static void judge_whole(struct evidence_reader *in, const struct rule_call *call,
                        const struct target *target)
{
    struct evidence_ruling *ruling = in->ruling;

    ruling->wanted = element_cut(rule_element(call, target->output, target->element),
                                 in->descriptor.operands[target->accused].dtype);
    ruling->answer = ruling->wanted == ruling->found ? EVIDENCE_NOT_GUILTY : EVIDENCE_UPHELD;
}

static enum evidence_reason judge_part(struct evidence_reader *in, const struct rule_call *call,
                                       const struct target *target)
{
    struct evidence_ruling *ruling = in->ruling;
    const struct partial_sums_target queried = parts_of(in, target, ruling->found);
    const uint32_t number = target->part.number;
    struct partial_sums_reply reply;
    struct rule_part part;
    enum evidence_reason reason = read_reply(&reply, in, target, &queried);

    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    rule_element_part(&part, call, target->output, target->element, &target->axis, number,
                      reply.exponent);
    ruling->wanted = ruling->found;
    ruling->answer = partial_sums_is_false(&part, &reply, number, ruling->found)
                         ? EVIDENCE_UPHELD
                         : EVIDENCE_NOT_GUILTY;
    return EVIDENCE_FINE;
}

enum evidence_reason evidence_reader_element(struct evidence_reader *in)
{
    struct rule_call call;
    struct target target;
    enum evidence_reason reason = read_target(&target, in);

    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    rule_call_make(&call, in);
    in->ruling->found = find_accused(in, &target);
    if (in->missing || !range_is_shown(in, &call, &target)) {
        return EVIDENCE_MISSING;
    }
    if (in->kind == EVIDENCE_PART) {
        reason = judge_part(in, &call, &target);
    } else {
        judge_whole(in, &call, &target);
    }
    return reason == EVIDENCE_FINE && in->missing ? EVIDENCE_MISSING : reason;
}
