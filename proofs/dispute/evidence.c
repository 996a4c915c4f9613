/*
 * evidence.c - the judge of evidence; see evidence.h.
 *
 * docs/FORMATS.md, section 9. Everything begins with: kind (1), item of the program (4), items of
 * the program (4), items of a trace (4), path, size of the descriptor (2), descriptor. A path is
 * the number of its siblings (1) and the siblings (32 each); index and count are known.
 */
#include "proofs/dispute/evidence.h"

#include <assert.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/element.h"
#include "proofs/dispute/evidence_reader.h"
#include "proofs/hash/sha256.h"

/* ---- pieces ------------------------------------------------------------- */

enum evidence_reason evidence_reader_path(struct digest *root, struct evidence_reader *hearing,
                                          uint64_t index, uint64_t count, const struct digest *hash)
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

enum evidence_reason evidence_reader_digest(struct digest *digest, struct evidence_reader *hearing)
{
    reader_copy(&hearing->reader, digest->bytes, DIGEST_SIZE);
    return hearing->reader.failed ? EVIDENCE_BAD_SIZE : EVIDENCE_FINE;
}

enum evidence_reason evidence_reader_item(struct evidence_reader *hearing,
                                          const struct digest *item, uint64_t index, uint64_t count,
                                          const struct digest *tree)
{
    struct digest hash;
    struct digest root;
    enum evidence_reason reason;

    merkle_leaf_hash(&hash, item->bytes, DIGEST_SIZE);
    reason = evidence_reader_path(&root, hearing, index, count, &hash);
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    return digest_equal(&root, tree) ? EVIDENCE_FINE : EVIDENCE_BAD_TENSOR;
}

static enum evidence_reason read_program_item(struct evidence_reader *hearing)
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
    reason = evidence_reader_path(&root, hearing, index, count, &hash);
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

enum evidence_reason evidence_reader_trace_tree(struct evidence_reader *hearing)
{
    struct digest root;
    enum evidence_reason reason = evidence_reader_digest(&hearing->trace_tree, hearing);

    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    commit_list_root_of(&root, COMMIT_TRACE, 0, hearing->trace_items, &hearing->trace_tree);
    return digest_equal(&root, &hearing->context->trace) ? EVIDENCE_FINE : EVIDENCE_BAD_TRACE;
}

/* A tree root that follows, of the list of states that is committed to as `state`. */
static enum evidence_reason read_state_tree(struct digest *tree, struct evidence_reader *hearing,
                                            const struct digest *state)
{
    struct digest root;
    enum evidence_reason reason = evidence_reader_digest(tree, hearing);

    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    commit_list_root_of(&root, COMMIT_STATE, 0, hearing->descriptor.state_count, tree);
    return digest_equal(&root, state) ? EVIDENCE_FINE : EVIDENCE_BAD_STATE;
}

enum evidence_reason evidence_reader_label(const uint8_t **label, size_t *size,
                                           struct evidence_reader *hearing,
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

bool evidence_reader_padding_fits(const uint8_t *leaf, uint64_t index, uint64_t byte_count)
{
    uint64_t left = byte_count - index * MERKLE_LEAF_SIZE;

    return left >= MERKLE_LEAF_SIZE || padding_is_zero(leaf, left);
}

/* ---- kinds 2 to 4: the ends of the trace -------------------------------- */

/* Tree root of the trace, item, its path; item of the state, the state's tree root, its path. */
static enum evidence_reason judge_end(struct evidence_reader *hearing)
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
    reason = evidence_reader_trace_tree(hearing);
    if (reason == EVIDENCE_FINE) {
        reason = evidence_reader_digest(&in_trace, hearing);
    }
    if (reason == EVIDENCE_FINE) {
        reason =
            evidence_reader_item(hearing, &in_trace, first ? descriptor->state : descriptor->next,
                                 hearing->trace_items, &hearing->trace_tree);
    }
    if (reason == EVIDENCE_FINE) {
        reason = evidence_reader_digest(&in_state, hearing);
    }
    if (reason == EVIDENCE_FINE) {
        reason = read_state_tree(&tree, hearing,
                                 first ? &hearing->context->before : &hearing->context->after);
    }
    if (reason == EVIDENCE_FINE) {
        reason = evidence_reader_item(hearing, &in_state, descriptor->state,
                                      descriptor->state_count, &tree);
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
                                            struct evidence_reader *hearing)
{
    const struct descriptor *descriptor = &hearing->descriptor;
    const uint8_t *label;
    size_t label_size;
    struct digest tensor;
    struct digest states;
    enum evidence_reason reason =
        evidence_reader_label(&label, &label_size, hearing, &descriptor->label);

    if (reason == EVIDENCE_FINE && (label_size < DESCRIPTOR_LABEL_MIN || label[56] != DTYPE_F32)) {
        reason = EVIDENCE_BAD_LABEL; /* only a binary32 can be anything but finite */
    }
    if (reason == EVIDENCE_FINE) {
        reason = evidence_reader_digest(tree, hearing);
    }
    if (reason == EVIDENCE_FINE) {
        reason = read_state_tree(&states, hearing, &hearing->context->after);
    }
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    *byte_count = endian_load_be64(label);
    commit_labelled_root(&tensor, COMMIT_TENSOR, label, label_size, tree);
    return evidence_reader_item(hearing, &tensor, descriptor->state, descriptor->state_count,
                                &states);
}

/* ... then the leaf's index, its path, the leaf, the element. */
static enum evidence_reason judge_not_finite(struct evidence_reader *hearing)
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
    reason = evidence_reader_path(&root, hearing, index, leaf_count, &hash);
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
    hearing->ruling->found = element_bits(leaf + element % (MERKLE_LEAF_SIZE / 4) * 4, DTYPE_F32);
    hearing->ruling->answer = (~hearing->ruling->found & UINT32_C(0x7f800000)) == 0
                                  ? EVIDENCE_UPHELD
                                  : EVIDENCE_NOT_GUILTY;
    return EVIDENCE_FINE;
}

/* ---- all kinds ---------------------------------------------------------- */

/* Kind, and the item of the program. */
static enum evidence_reason open_hearing(struct evidence_reader *hearing)
{
    uint8_t kind = reader_u8(&hearing->reader);

    if (kind < EVIDENCE_ELEMENT || kind > EVIDENCE_PART) {
        return EVIDENCE_BAD_KIND;
    }
    hearing->kind = (enum evidence_kind)kind;
    return read_program_item(hearing);
}

static enum evidence_reason judge(struct evidence_reader *hearing)
{
    enum evidence_reason reason = open_hearing(hearing);

    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    switch (hearing->kind) {
    case EVIDENCE_ELEMENT:
    case EVIDENCE_PART:
        return evidence_reader_element(hearing);
    case EVIDENCE_FIRST_STATE:
    case EVIDENCE_NEXT_STATE:
        return judge_end(hearing);
    case EVIDENCE_NOT_FINITE:
        return judge_not_finite(hearing);
    }
    return EVIDENCE_BAD_KIND;
}

enum status evidence_judge(struct evidence_ruling *ruling, const struct evidence_context *context,
                           const uint8_t *bytes, size_t size, struct error *error)
{
    struct evidence_reader hearing = {
        .context = context, .ruling = ruling, .error = error, .status = STATUS_OK};

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

enum verdict evidence_read_committed(struct evidence_committed *committed,
                                     const struct evidence_context *context, const uint8_t *bytes,
                                     size_t size)
{
    struct evidence_reader hearing = {.context = context, .status = STATUS_OK};

    reader_init(&hearing.reader, bytes, size);
    return open_hearing(&hearing) == EVIDENCE_FINE && hearing.kind == EVIDENCE_ELEMENT &&
                   evidence_reader_committed(committed, &hearing) == EVIDENCE_FINE &&
                   hearing.status == STATUS_OK
               ? VERDICT_VALID
               : VERDICT_INVALID;
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
    [EVIDENCE_BAD_TARGET] = {"BadTarget", "there is no such output, element or part of it"},
    [EVIDENCE_BAD_LABEL] = {"BadLabel", "a label is not the one that the descriptor names"},
    [EVIDENCE_BAD_TENSOR] = {"BadTensor", "a tensor does not stand where the descriptor says"},
    [EVIDENCE_BAD_LEAVES] = {"BadLeaves", "leaves are not under the root of their tensor"},
    [EVIDENCE_BAD_PADDING] = {"BadPadding", "the padding of a leaf is not zero"},
    [EVIDENCE_MISSING] = {"Missing", "an element that the rule needs is not shown"},
    [EVIDENCE_NOT_TOLD] = {"NotTold", "the parts are not what the accused told last"},
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
