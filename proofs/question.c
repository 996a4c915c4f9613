/* question.c - see question.h. */
#include "proofs/question.h"

#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/reader.h"
#include "proofs/descriptor.h"
#include "proofs/sha256.h"
#include "proofs/trace.h"

enum {
    /* The items of a trace that operands of these roles stand at. */
    IN_A_TRACE = 1 << ROLE_TEMPORARY | 1 << ROLE_STATE | 1 << ROLE_OUTPUT,
};

/* ---- writing -------------------------------------------------------------- */

struct writer {
    struct buffer *bytes;
    const struct tape *tape;
    const struct evidence_source *source;
    struct error *error;
};

/* A node of the accused's trees: of the tensor at item, or of the list when item is NO_ITEM. */
#define NO_ITEM UINT32_MAX

static enum status put_node(struct writer *writer, enum evidence_list list, uint32_t item,
                            uint32_t level, uint64_t index)
{
    const struct evidence_source *source = writer->source;
    struct digest node;
    enum status status =
        item == NO_ITEM
            ? source->list_node(source->context, &node, list, level, index, writer->error)
            : source->tensor_node(source->context, &node, list, item, level, index, writer->error);

    if (status == STATUS_OK) {
        buffer_add(writer->bytes, node.bytes, DIGEST_SIZE);
    }
    return status;
}

/* The siblings of the node at (level, index) of a tree of count leaves, with their number. */
static enum status put_path(struct writer *writer, enum evidence_list list, uint32_t item,
                            uint64_t count, uint32_t level, uint64_t index)
{
    struct buffer *bytes = writer->bytes;
    size_t place = bytes->size;
    uint8_t siblings = 0;
    enum status status = STATUS_OK;

    buffer_add_u8(bytes, 0);
    for (uint64_t last = (count - 1) >> level; last > 0 && status == STATUS_OK; last >>= 1) {
        if ((index & 1) == 1 || index < last) {
            status = put_node(writer, list, item, level, index ^ 1);
            siblings++;
        }
        index >>= 1;
        level++;
    }
    if (bytes->status == STATUS_OK) {
        bytes->data[place] = siblings;
    }
    return status;
}

/* The tree's root, the node and its path. */
static enum status put_node_proof(struct writer *writer, enum evidence_list list, uint32_t item,
                                  uint64_t count, const struct ask *ask)
{
    enum status status = put_node(writer, list, item, ask_height(count), 0);

    if (status == STATUS_OK) {
        status = put_node(writer, list, item, ask->level, ask->index);
    }
    return status == STATUS_OK ? put_path(writer, list, item, count, ask->level, ask->index)
                               : status;
}

static enum status put_program_item(struct writer *writer, uint32_t item)
{
    uint32_t count = descriptor_count(writer->tape);
    struct digest *hashes = malloc((size_t)count * sizeof(*hashes));
    uint8_t descriptor[DESCRIPTOR_SIZE_MAX];
    struct descriptor_places places;
    struct merkle_leaves leaves;
    struct merkle_path path;
    enum status status = descriptor_places_find(&places, writer->tape, writer->error);

    if (status != STATUS_OK || hashes == NULL) {
        free(hashes);
        return status != STATUS_OK
                   ? status
                   : error_set(writer->error, STATUS_NO_MEMORY, "no memory for a program");
    }
    for (uint32_t i = 0; i < count; i++) {
        merkle_leaf_hash(&hashes[i], descriptor, descriptor_write(descriptor, &places, i));
    }
    merkle_leaves_init_hashes(&leaves, hashes, count);
    merkle_path_build(&path, &leaves, item);
    buffer_add_u32(writer->bytes, item);
    buffer_add_u32(writer->bytes, count);
    buffer_add_u32(writer->bytes, places.trace_items);
    buffer_add_u8(writer->bytes, (uint8_t)path.sibling_count);
    buffer_add(writer->bytes, path.siblings, (size_t)path.sibling_count * DIGEST_SIZE);
    size_t size = descriptor_write(descriptor, &places, item);

    buffer_add_u16(writer->bytes, (uint16_t)size);
    buffer_add(writer->bytes, descriptor, size);
    descriptor_places_release(&places);
    free(hashes);
    return STATUS_OK;
}

/* The descriptor that has the label of the tensor at an item of a trace: its maker's, or its own. */
static uint32_t program_item_of(const struct tape *tape, uint32_t item)
{
    uint32_t first = tape->state_count;

    if (item < first) {
        return tape->op_count + item;
    }
    for (uint32_t op = 0; op < tape->op_count; op++) {
        if (item - first < tape->ops[op].output_count) {
            return op;
        }
        first += tape->ops[op].output_count;
    }
    return 0; /* never: ask_check() knows the items */
}

static enum status put_tensor(struct writer *writer, const struct ask *ask)
{
    const struct evidence_source *source = writer->source;
    const struct tensor *tensor = &writer->tape->tensors[trace_tensor_at(writer->tape, ask->item)];
    uint64_t items = trace_item_count(writer->tape);
    uint8_t label[DESCRIPTOR_LABEL_MAX];
    struct digest root;
    enum status status = put_program_item(writer, program_item_of(writer->tape, ask->item));
    size_t size = descriptor_label(label, tensor);

    buffer_add_u8(writer->bytes, (uint8_t)size);
    buffer_add(writer->bytes, label, size);
    if (status == STATUS_OK) {
        status = put_node(writer, EVIDENCE_TRACE, NO_ITEM, ask_height(items), 0);
    }
    if (status == STATUS_OK) {
        status = source->item(source->context, &root, EVIDENCE_TRACE, ask->item, writer->error);
    }
    if (status == STATUS_OK) {
        buffer_add(writer->bytes, root.bytes, DIGEST_SIZE);
        status = put_path(writer, EVIDENCE_TRACE, NO_ITEM, items, 0, ask->item);
    }
    if (status == STATUS_OK && ask->kind == ASK_TENSOR_NODE) {
        status = put_node_proof(writer, EVIDENCE_TRACE, ask->item, ask_tensor_count(tensor), ask);
    }
    return status;
}

enum status question_write(struct buffer *bytes, const struct tape *tape,
                           const struct evidence_source *source, const struct ask *ask,
                           struct error *error)
{
    struct writer writer = {bytes, tape, source, error};
    enum evidence_list list = ask->list == ASK_TRACE ? EVIDENCE_TRACE : EVIDENCE_AFTER;
    uint8_t head[ASK_SIZE];
    enum status status = ask_check(ask, tape, error);

    if (status != STATUS_OK) {
        return status;
    }
    ask_write(head, ask);
    buffer_add(bytes, head, sizeof(head));
    switch (ask->kind) {
    case ASK_DIVERGED:
        break;
    case ASK_LIST:
    case ASK_LIST_NODE:
        /* The descriptor of a state says how many there are. */
        status = put_program_item(&writer, descriptor_count(tape) - 1);
        if (status == STATUS_OK && ask->kind == ASK_LIST_NODE) {
            status = put_node_proof(&writer, list, NO_ITEM, ask_list_count(tape, ask->list), ask);
        }
        break;
    case ASK_TENSOR:
    case ASK_TENSOR_NODE:
        status = put_tensor(&writer, ask);
        break;
    }
    return status == STATUS_OK ? buffer_check(bytes, error, "a question") : status;
}

/* ---- checking ------------------------------------------------------------- */

struct inquiry {
    const struct evidence_context *context;
    struct question_asked *asked;
    struct reader reader;
    uint32_t trace_items;
    struct descriptor descriptor;
};

static bool take_digest(struct digest *digest, struct inquiry *inquiry)
{
    reader_copy(&inquiry->reader, digest->bytes, DIGEST_SIZE);
    return !inquiry->reader.failed;
}

/* Does the path that follows lead from node at index of count to root? */
static bool path_leads(struct reader *reader, const struct digest *node, uint64_t index,
                       uint64_t count, const struct digest *root)
{
    struct merkle_path path = {.leaf_index = index, .leaf_count = count};

    path.sibling_count = reader_u8(reader);
    if (path.sibling_count > MERKLE_DEPTH_MAX) {
        return false;
    }
    reader_copy(reader, path.siblings, path.sibling_count * sizeof(struct digest));
    return !reader->failed && merkle_path_check(&path, node, root) == VERDICT_VALID;
}

static bool take_program_item(struct inquiry *inquiry)
{
    struct reader *reader = &inquiry->reader;
    uint32_t index = reader_u32(reader);
    uint32_t count = reader_u32(reader);
    struct merkle_path path = {.leaf_index = index, .leaf_count = count};
    struct digest root;

    inquiry->trace_items = reader_u32(reader);
    path.sibling_count = reader_u8(reader);
    if (path.sibling_count > MERKLE_DEPTH_MAX) {
        return false;
    }
    reader_copy(reader, path.siblings, path.sibling_count * sizeof(struct digest));
    size_t size = reader_u16(reader);
    const uint8_t *bytes = reader_take(reader, size);

    if (bytes == NULL || reader->failed) {
        return false;
    }
    merkle_leaf_hash(&root, bytes, size);
    if (merkle_path_root(&root, &path, &root) != VERDICT_VALID) {
        return false;
    }
    commit_list_root_of(&root, COMMIT_PROGRAM, inquiry->trace_items, count, &root);
    return digest_equal(&root, &inquiry->context->program) &&
           descriptor_read(&inquiry->descriptor, bytes, size, NULL) == STATUS_OK;
}

/* A node below the root of a tree of count leaves: the node and its path follow. */
static bool take_node(struct inquiry *inquiry, uint64_t count, const struct digest *tree)
{
    const struct ask *ask = &inquiry->asked->ask;
    struct tell_target *target = &inquiry->asked->target;

    target->count = ask_node_count(count, ask->level, ask->index);
    return target->count > 0 && take_digest(&target->known, inquiry) &&
           path_leads(&inquiry->reader, &target->known, ask->index, ((count - 1) >> ask->level) + 1,
                      tree);
}

static bool take_list(struct inquiry *inquiry)
{
    static const struct digest no_root;
    const struct evidence_context *context = inquiry->context;
    const struct ask *ask = &inquiry->asked->ask;
    struct tell_target *target = &inquiry->asked->target;
    enum commit_list list = ask->list == ASK_TRACE ? COMMIT_TRACE : COMMIT_STATE;
    uint64_t count = inquiry->trace_items;
    struct digest tree;
    struct digest root;

    target->is_list = true;
    target->last_size = DIGEST_SIZE;
    target->known = ask->list == ASK_TRACE ? context->trace : context->after;
    if (ask->list != ASK_TRACE) {
        if (context->attestor || !inquiry->descriptor.is_state) {
            return false;
        }
        count = inquiry->descriptor.state_count;
    }
    if (ask->kind == ASK_LIST) {
        target->count = count;
        target->header_size = COMMIT_LIST_HEADER_SIZE;
        commit_list_header(target->header, list, 0, count, &no_root);
        return count > 0;
    }
    if (!take_digest(&tree, inquiry)) {
        return false;
    }
    commit_list_root_of(&root, list, 0, count, &tree);
    return digest_equal(&root, &target->known) && take_node(inquiry, count, &tree);
}

/* The hash of the label of the tensor at an item, if the descriptor says it. */
static const struct digest *label_of_item(const struct descriptor *descriptor, uint32_t item)
{
    if (descriptor->is_state) {
        return descriptor->state == item ? &descriptor->label : NULL;
    }
    for (uint32_t i = 0; i < descriptor->operand_count; i++) {
        const struct descriptor_operand *operand = &descriptor->operands[i];

        if ((IN_A_TRACE >> operand->role & 1) == 1 && operand->place == item) {
            return &operand->label;
        }
    }
    return NULL;
}

/* Size (1) and bytes of a label, then what proves that the tensor is an item of the trace. */
static const uint8_t *take_trace_item(struct digest *tensor, size_t *label_size,
                                      struct inquiry *inquiry)
{
    const uint32_t item = inquiry->asked->ask.item;
    const struct digest *wanted = label_of_item(&inquiry->descriptor, item);
    const uint8_t *label;
    struct digest tree;
    struct digest hash;

    *label_size = reader_u8(&inquiry->reader);
    label = reader_take(&inquiry->reader, *label_size);
    if (wanted == NULL || label == NULL || *label_size < DESCRIPTOR_LABEL_MIN ||
        *label_size > DESCRIPTOR_LABEL_MAX) {
        return NULL;
    }
    sha256(&hash, label, *label_size);
    if (!digest_equal(&hash, wanted) || !take_digest(&tree, inquiry) ||
        !take_digest(tensor, inquiry)) {
        return NULL;
    }
    commit_list_root_of(&hash, COMMIT_TRACE, 0, inquiry->trace_items, &tree);
    if (!digest_equal(&hash, &inquiry->context->trace)) {
        return NULL;
    }
    merkle_leaf_hash(&hash, tensor->bytes, DIGEST_SIZE);
    return path_leads(&inquiry->reader, &hash, item, inquiry->trace_items, &tree) ? label : NULL;
}

static bool take_tensor(struct inquiry *inquiry)
{
    static const struct digest no_root;
    const struct ask *ask = &inquiry->asked->ask;
    struct tell_target *target = &inquiry->asked->target;
    struct digest tensor;
    struct digest tree;
    struct digest root;
    size_t label_size;
    const uint8_t *label = take_trace_item(&tensor, &label_size, inquiry);

    if (label == NULL) {
        return false;
    }
    /* No sum here: a label may say any number of bytes. */
    uint64_t size = endian_load_be64(label);
    uint64_t count = size / MERKLE_LEAF_SIZE + (size % MERKLE_LEAF_SIZE != 0);

    if (count == 0) {
        return false;
    }
    target->last_size = (uint32_t)(size - (count - 1) * MERKLE_LEAF_SIZE);
    if (ask->kind == ASK_TENSOR) {
        target->known = tensor;
        target->count = count;
        target->header_size = (uint32_t)commit_labelled_header(target->header, COMMIT_TENSOR, label,
                                                               label_size, &no_root);
        return true;
    }
    if (!take_digest(&tree, inquiry)) {
        return false;
    }
    commit_labelled_root(&root, COMMIT_TENSOR, label, label_size, &tree);
    if (!digest_equal(&root, &tensor) || !take_node(inquiry, count, &tree)) {
        return false;
    }
    if ((ask->index << ask->level) + target->count < count) {
        target->last_size = MERKLE_LEAF_SIZE;
    }
    return true;
}

enum verdict question_check(struct question_asked *asked, const struct evidence_context *context,
                            const uint8_t *bytes, size_t size)
{
    struct inquiry inquiry = {.context = context, .asked = asked};
    bool sound;

    memset(asked, 0, sizeof(*asked));
    if (size < ASK_SIZE || ask_read(&asked->ask, bytes, ASK_SIZE) != STATUS_OK) {
        return VERDICT_INVALID;
    }
    if (asked->ask.kind == ASK_DIVERGED) {
        asked->target.known = context->after;
        asked->program = context->program;
        return context->diverged && !context->attestor && size == ASK_SIZE ? VERDICT_VALID
                                                                           : VERDICT_INVALID;
    }
    reader_init(&inquiry.reader, bytes + ASK_SIZE, size - ASK_SIZE);
    sound =
        take_program_item(&inquiry) &&
        (asked->ask.kind == ASK_LIST || asked->ask.kind == ASK_LIST_NODE ? take_list(&inquiry)
                                                                         : take_tensor(&inquiry));
    return sound && reader_left(&inquiry.reader) == 0 ? VERDICT_VALID : VERDICT_INVALID;
}

/* ---- what the ledger tells ------------------------------------------------ */

size_t question_asked_write(uint8_t bytes[QUESTION_ASKED_MAX], const struct question_asked *asked)
{
    const struct tell_target *target = &asked->target;
    uint8_t *at = bytes + ASK_SIZE;

    ask_write(bytes, &asked->ask);
    memcpy(at, target->known.bytes, DIGEST_SIZE);
    at += DIGEST_SIZE;
    if (asked->ask.kind == ASK_DIVERGED) {
        memcpy(at, asked->program.bytes, DIGEST_SIZE);
        return (size_t)(at + DIGEST_SIZE - bytes);
    }
    endian_store_be64(at, target->count);
    endian_store_be16(at + 8, (uint16_t)target->last_size);
    memcpy(at + 10, target->header, target->header_size);
    return (size_t)(at + 10 + target->header_size - bytes);
}

enum status question_asked_read(struct question_asked *asked, const uint8_t *bytes, size_t size)
{
    struct tell_target *target = &asked->target;
    struct reader reader;

    memset(asked, 0, sizeof(*asked));
    reader_init(&reader, bytes, size);
    const uint8_t *ask = reader_take(&reader, ASK_SIZE);

    if (ask == NULL || ask_read(&asked->ask, ask, ASK_SIZE) != STATUS_OK) {
        return STATUS_BAD_FORMAT;
    }
    reader_copy(&reader, target->known.bytes, DIGEST_SIZE);
    if (asked->ask.kind == ASK_DIVERGED) {
        reader_copy(&reader, asked->program.bytes, DIGEST_SIZE);
        return reader_end(&reader, NULL, "what is asked for");
    }
    target->is_list = asked->ask.kind == ASK_LIST || asked->ask.kind == ASK_LIST_NODE;
    target->count = reader_u64(&reader);
    target->last_size = reader_u16(&reader);
    size_t left = reader_left(&reader);

    if (target->count == 0 || target->last_size == 0 || target->last_size > MERKLE_LEAF_SIZE ||
        left > sizeof(target->header) || (left > 0 && left < DESCRIPTOR_LABEL_AT)) {
        return STATUS_BAD_FORMAT;
    }
    target->header_size = (uint32_t)left;
    reader_copy(&reader, target->header, left);
    return reader_end(&reader, NULL, "what is asked for");
}

/* What is told of a divergence is evidence against a job that did not say so. */
static enum verdict check_divergence(const struct question_asked *asked, const uint8_t *bytes,
                                     size_t size)
{
    struct evidence_context context = {.program = asked->program, .after = asked->target.known};
    struct evidence_ruling ruling;

    if (size == 0 || bytes[0] != EVIDENCE_NOT_FINITE ||
        evidence_judge(&ruling, NULL, &context, bytes, size, NULL) != STATUS_OK) {
        return VERDICT_INVALID;
    }
    return ruling.answer == EVIDENCE_UPHELD ? VERDICT_VALID : VERDICT_INVALID;
}

enum verdict question_told_check(const struct question_asked *asked, const uint8_t *bytes,
                                 size_t size)
{
    struct told told;

    return asked->ask.kind == ASK_DIVERGED ? check_divergence(asked, bytes, size)
                                           : tell_check(&told, &asked->target, bytes, size);
}
