/*
 * evidence_judge.c - judges evidence of every kind: see evidence.h.
 *
 * docs/FORMATS.md, section 9. Everything begins with: kind (1), item of the program (4), items of
 * the program (4), items of a trace (4), path, size of the descriptor (2), descriptor; of an
 * operation of a repeat its instance (4).
 */
#include "proofs/dispute/evidence.h"

#include <assert.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/element.h"
#include "proofs/dispute/evidence_reader.h"

/* Where the type of a tensor stands in its label: behind a byte count and six dimensions. */
#define LABEL_DTYPE 56

/* ---- what every kind begins with ---------------------------------------- */

static enum evidence_reason read_program_item(struct evidence_reader *in)
{
    const struct evidence_context *context = in->context;
    uint32_t index = reader_u32(&in->reader);
    uint32_t count = reader_u32(&in->reader);
    struct reader path;
    struct digest hash;
    struct digest root;
    enum evidence_reason reason;

    in->trace_items = reader_u32(&in->reader);
    /* The path stands before what it leads from. */
    path = in->reader;
    (void)reader_take(&in->reader, (size_t)reader_u8(&in->reader) * DIGEST_SIZE);
    in->descriptor_size = reader_u16(&in->reader);
    in->descriptor_bytes = reader_take(&in->reader, in->descriptor_size);
    if (in->reader.failed) {
        return EVIDENCE_BAD_SIZE;
    }
    struct reader behind = in->reader;

    merkle_leaf_hash(&hash, in->descriptor_bytes, in->descriptor_size);
    in->reader = path;
    reason = evidence_reader_path(&root, in, index, count, &hash);
    in->reader = behind;
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    commit_list_root_of(&root, COMMIT_PROGRAM, in->trace_items, count, &root);
    if (!digest_equal(&root, &context->program)) {
        return EVIDENCE_BAD_PROGRAM;
    }
    if (descriptor_read(&in->descriptor, in->descriptor_bytes, in->descriptor_size, NULL) !=
        STATUS_OK) {
        return EVIDENCE_BAD_DESCRIPTOR;
    }
    if (in->descriptor.is_repeated) {
        uint32_t instance = reader_u32(&in->reader);

        if (in->reader.failed) {
            return EVIDENCE_BAD_SIZE;
        }
        return descriptor_at(&in->descriptor, instance, in->trace_items) ? EVIDENCE_FINE
                                                                         : EVIDENCE_BAD_TARGET;
    }
    return EVIDENCE_FINE;
}

/* A tree root that follows, of the list of states that is committed to as `state`. */
static enum evidence_reason read_state_tree(struct digest *tree, struct evidence_reader *in,
                                            const struct digest *state)
{
    struct digest root;
    enum evidence_reason reason = evidence_reader_digest(tree, in);

    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    commit_list_root_of(&root, COMMIT_STATE, 0, in->descriptor.state_count, tree);
    return digest_equal(&root, state) ? EVIDENCE_FINE : EVIDENCE_BAD_STATE;
}

/* ---- kinds 2 to 4: the ends of the trace -------------------------------- */

/* Tree root of the trace, item, its path; item of the state, the state's tree root, its path. */
static enum evidence_reason judge_end(struct evidence_reader *in)
{
    const struct descriptor *descriptor = &in->descriptor;
    bool first = in->kind == EVIDENCE_FIRST_STATE;
    struct digest in_trace;
    struct digest in_state;
    struct digest tree;
    enum evidence_reason reason;

    if (!descriptor->is_state) {
        return EVIDENCE_BAD_KIND;
    }
    reason = evidence_reader_trace_tree(in);
    if (reason == EVIDENCE_FINE) {
        reason = evidence_reader_digest(&in_trace, in);
    }
    if (reason == EVIDENCE_FINE) {
        reason = evidence_reader_item(in, &in_trace, first ? descriptor->state : descriptor->next,
                                      in->trace_items, &in->trace_tree);
    }
    if (reason == EVIDENCE_FINE) {
        reason = evidence_reader_digest(&in_state, in);
    }
    if (reason == EVIDENCE_FINE) {
        /* The same item in two lists of the accused: where the trace ends, and where the committed
         * state does. */
        reason = read_state_tree(&tree, in, first ? &in->context->before : &in->context->after);
    }
    if (reason == EVIDENCE_FINE) {
        reason =
            evidence_reader_item(in, &in_state, descriptor->state, descriptor->state_count, &tree);
    }
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    /* Bytes behind the end would give one piece of evidence many forms. */
    if (reader_left(&in->reader) != 0) {
        return EVIDENCE_BAD_SIZE;
    }
    in->ruling->answer = digest_equal(&in_trace, &in_state) ? EVIDENCE_NOT_GUILTY : EVIDENCE_UPHELD;
    return EVIDENCE_FINE;
}

/* Tensor root and leaf of kind 4: label, tree root, tree root of Q, path in Q. */
static enum evidence_reason read_next_state(uint64_t *byte_count, struct digest *tree,
                                            struct evidence_reader *in)
{
    const struct descriptor *descriptor = &in->descriptor;
    const uint8_t *label;
    size_t label_size;
    struct digest tensor;
    struct digest states;
    enum evidence_reason reason =
        evidence_reader_label(&label, &label_size, in, &descriptor->label);

    if (reason == EVIDENCE_FINE &&
        (label_size < DESCRIPTOR_LABEL_MIN || label[LABEL_DTYPE] != DTYPE_F32)) {
        reason = EVIDENCE_BAD_LABEL; /* only a binary32 can be anything but finite */
    }
    if (reason == EVIDENCE_FINE) {
        reason = evidence_reader_digest(tree, in);
    }
    if (reason == EVIDENCE_FINE) {
        reason = read_state_tree(&states, in, &in->context->after);
    }
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    *byte_count = endian_load_be64(label);
    commit_labelled_root(&tensor, COMMIT_TENSOR, label, label_size, tree);
    return evidence_reader_item(in, &tensor, descriptor->state, descriptor->state_count, &states);
}

/* ... then the leaf's index, its path, the leaf, the element. */
static enum evidence_reason judge_not_finite(struct evidence_reader *in)
{
    struct reader *reader = &in->reader;
    uint64_t byte_count = 0;
    struct digest tree;
    struct digest root;
    struct digest hash;
    enum evidence_reason reason;

    if (!in->descriptor.is_state || in->context->diverged) {
        return EVIDENCE_BAD_KIND;
    }
    reason = read_next_state(&byte_count, &tree, in);
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
    reason = evidence_reader_path(&root, in, index, leaf_count, &hash);
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    if (!digest_equal(&root, &tree)) {
        return EVIDENCE_BAD_LEAVES;
    }
    if (!evidence_reader_padding_fits(leaf, index, byte_count)) {
        return EVIDENCE_BAD_PADDING;
    }
    if (element >= byte_count / 4 || element / (MERKLE_LEAF_SIZE / 4) != index) {
        return EVIDENCE_BAD_TARGET;
    }
    in->ruling->found = element_bits(leaf + element % (MERKLE_LEAF_SIZE / 4) * 4, DTYPE_F32);
    in->ruling->answer =
        (~in->ruling->found & UINT32_C(0x7f800000)) == 0 ? EVIDENCE_UPHELD : EVIDENCE_NOT_GUILTY;
    return EVIDENCE_FINE;
}

/* ---- all kinds ---------------------------------------------------------- */

/* Kind, and the item of the program. */
static enum evidence_reason open_evidence(struct evidence_reader *in)
{
    uint8_t kind = reader_u8(&in->reader);

    if (kind < EVIDENCE_ELEMENT || kind > EVIDENCE_PART) {
        return EVIDENCE_BAD_KIND;
    }
    in->kind = (enum evidence_kind)kind;
    return read_program_item(in);
}

static enum evidence_reason judge_evidence(struct evidence_reader *in)
{
    enum evidence_reason reason = open_evidence(in);

    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    switch (in->kind) {
    case EVIDENCE_ELEMENT:
    case EVIDENCE_PART:
        return evidence_reader_element(in);
    case EVIDENCE_FIRST_STATE:
    case EVIDENCE_NEXT_STATE:
        return judge_end(in);
    case EVIDENCE_NOT_FINITE:
        return judge_not_finite(in);
    }
    return EVIDENCE_BAD_KIND;
}

enum status evidence_judge(struct evidence_ruling *ruling, const struct evidence_context *context,
                           const uint8_t *bytes, size_t size, struct error *error)
{
    struct evidence_reader in = {
        .context = context, .ruling = ruling, .error = error, .status = STATUS_OK};

    *ruling = (struct evidence_ruling){.answer = EVIDENCE_REFUSED, .reason = EVIDENCE_BAD_SIZE};
    if (size == 0 || size > EVIDENCE_SIZE_MAX) {
        return STATUS_OK;
    }
    reader_init(&in.reader, bytes, size);
    ruling->reason = judge_evidence(&in);
    if (ruling->reason != EVIDENCE_FINE || in.status != STATUS_OK) {
        *ruling = (struct evidence_ruling){.answer = EVIDENCE_REFUSED, .reason = ruling->reason};
    }
    return in.status;
}

enum verdict evidence_read_committed(struct evidence_committed *committed,
                                     const struct evidence_context *context, const uint8_t *bytes,
                                     size_t size)
{
    struct evidence_reader in = {.context = context, .status = STATUS_OK};

    reader_init(&in.reader, bytes, size);
    return open_evidence(&in) == EVIDENCE_FINE &&
                   (in.kind == EVIDENCE_ELEMENT || in.kind == EVIDENCE_PART) &&
                   evidence_reader_committed(committed, &in) == EVIDENCE_FINE &&
                   in.status == STATUS_OK
               ? VERDICT_VALID
               : VERDICT_INVALID;
}

/* ---- reasons ------------------------------------------------------------ */

static const char *const reasons[EVIDENCE_REASON_COUNT] = {
    [EVIDENCE_FINE] = "nothing is wrong with the evidence",
    [EVIDENCE_BAD_SIZE] = "the evidence is cut short, or goes on after its end",
    [EVIDENCE_BAD_KIND] = "evidence of this kind cannot be brought here",
    [EVIDENCE_BAD_PATH] = "a path is not as long as its place in the tree needs",
    [EVIDENCE_BAD_DESCRIPTOR] = "the descriptor describes nothing sound",
    [EVIDENCE_BAD_PROGRAM] = "the descriptor is not one of the job's program",
    [EVIDENCE_BAD_TRACE] = "a tree is not that of the accused's trace, or of its micro-batch",
    [EVIDENCE_BAD_STATE] = "the tree is not that of the state",
    [EVIDENCE_BAD_TARGET] = "there is no such output, element or part of it",
    [EVIDENCE_BAD_LABEL] = "a label is not the one that the descriptor names",
    [EVIDENCE_BAD_TENSOR] = "a tensor does not stand where the descriptor says",
    [EVIDENCE_BAD_LEAVES] = "leaves are not under the root of their tensor",
    [EVIDENCE_BAD_PADDING] = "the padding of a leaf is not zero",
    [EVIDENCE_MISSING] = "an element that the rule needs is not shown",
    [EVIDENCE_NOT_REPLIED] = "the parts are not those of the accused's last reply",
};

const char *evidence_reason_text(enum evidence_reason reason)
{
    assert((unsigned)reason < EVIDENCE_REASON_COUNT);
    return reasons[reason];
}
