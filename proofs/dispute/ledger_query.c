/*
 * ledger_query.c - see ledger_query.h.
 *
 * Ledger query: query (15), then of an item of the program: index (4), items of the program (4),
 * items of a trace (4), path, size (2), descriptor, of an operation of a repeat its instance (4).
 * Behind them, by kind:
 *   LIST, DIVERGED   nothing; the item is a state, of a micro-batch's list one of its operations
 *   LIST_NODE        tree root (32), node (32), path of the node; the item likewise
 *   TENSOR           tree root of its list (32), path of the tensor, output (1), size (1), label,
 *                    tensor's root (32); the item is an operation that has the tensor as an output
 *   TENSOR_NODE      the same with the root of the tensor's tree for its root, node (32), its path
 * but of PARTS: query (15), then evidence of kind 1 that need not show more than the element; of a
 * part evidence of kind 5, likewise.
 * A path is the number of its siblings (1) and the siblings.
 */
#include "proofs/dispute/ledger_query.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/reader.h"
#include "proofs/commit/descriptor.h"
#include "proofs/hash/sha256.h"

/* ---- what a ledger keeps ------------------------------------------------- */

static bool is_list(const struct trace_query *query)
{
    return query->kind == TRACE_QUERY_LIST || query->kind == TRACE_QUERY_LIST_NODE;
}

/* docs/FORMATS.md, queried: what is known stands behind the query. Then DIVERGED has the root of
 * the program; the others have leaves, bytes of the last leaf, size of the header, header. */
enum {
    QUERIED_KNOWN = TRACE_QUERY_SIZE,
    QUERIED_PROGRAM = QUERIED_KNOWN + DIGEST_SIZE,
    QUERIED_LEAVES = QUERIED_PROGRAM,
    QUERIED_LAST_SIZE = QUERIED_LEAVES + 8,
    QUERIED_HEADER_SIZE = QUERIED_LAST_SIZE + 2,
    QUERIED_HEADER
};

size_t ledger_queried_write(uint8_t bytes[LEDGER_QUERIED_SIZE_MAX],
                            const struct ledger_queried *queried)
{
    const struct trace_reply_target *target = &queried->target;

    if (queried->query.kind == TRACE_QUERY_PARTS) {
        return partial_sums_query_write(bytes, &queried->query, &queried->parts);
    }
    trace_query_write(bytes, &queried->query);
    memcpy(bytes + QUERIED_KNOWN, target->known.bytes, DIGEST_SIZE);
    if (queried->query.kind == TRACE_QUERY_DIVERGED) {
        memcpy(bytes + QUERIED_PROGRAM, queried->program.bytes, DIGEST_SIZE);
        return QUERIED_PROGRAM + DIGEST_SIZE;
    }
    endian_store_be64(bytes + QUERIED_LEAVES, target->count);
    endian_store_be16(bytes + QUERIED_LAST_SIZE, (uint16_t)target->last_size);
    bytes[QUERIED_HEADER_SIZE] = (uint8_t)target->header_size;
    memcpy(bytes + QUERIED_HEADER, target->header, target->header_size);
    return QUERIED_HEADER + target->header_size;
}

static bool target_fits(const struct ledger_queried *queried)
{
    const struct trace_reply_target *target = &queried->target;
    bool root =
        queried->query.kind == TRACE_QUERY_LIST || queried->query.kind == TRACE_QUERY_TENSOR;

    if (target->count == 0 || target->count > MERKLE_LEAVES_MAX ||
        (target->header_size > 0) != root) {
        return false;
    }
    if (is_list(&queried->query)) {
        return target->last_size == DIGEST_SIZE &&
               (!root || target->header_size == COMMIT_LIST_HEADER_SIZE);
    }
    return target->last_size > 0 && target->last_size <= MERKLE_LEAF_SIZE &&
           (!root || (target->header_size >= COMMIT_TENSOR_HEADER_MIN &&
                      target->header_size <= COMMIT_TENSOR_HEADER_MAX));
}

static enum status read_parts(struct partial_sums_target *parts, bool is_part,
                              struct reader *reader)
{
    const uint8_t *range;
    uint8_t fold;

    reader_copy(reader, parts->subject.bytes, DIGEST_SIZE);
    parts->bits = reader_u32(reader);
    fold = reader_u8(reader);
    parts->count = reader_u32(reader);
    if ((fold != RULE_SUM && fold != RULE_MAXIMUM) || parts->count < 2 ||
        parts->count > RULE_PARTS_MAX) {
        return STATUS_BAD_FORMAT;
    }
    parts->fold = (enum rule_fold)fold;
    range = is_part ? reader_take(reader, PARTIAL_SUMS_RANGE_SIZE) : NULL;
    if (range != NULL) {
        partial_sums_range_read(&parts->range, range);
    }
    return reader_end(reader, NULL, "queried");
}

enum status ledger_queried_read(struct ledger_queried *queried, const uint8_t *bytes, size_t size)
{
    struct reader reader;
    const uint8_t *query;

    memset(queried, 0, sizeof(*queried));
    reader_init(&reader, bytes, size);
    query = reader_take(&reader, TRACE_QUERY_SIZE);
    if (query == NULL || trace_query_read(&queried->query, query, TRACE_QUERY_SIZE) != STATUS_OK) {
        return STATUS_BAD_FORMAT;
    }
    if (queried->query.kind == TRACE_QUERY_PARTS) {
        return read_parts(&queried->parts, queried->query.level == 1, &reader);
    }
    reader_copy(&reader, queried->target.known.bytes, DIGEST_SIZE);
    if (queried->query.kind == TRACE_QUERY_DIVERGED) {
        reader_copy(&reader, queried->program.bytes, DIGEST_SIZE);
        return reader_end(&reader, NULL, "queried");
    }
    queried->target.is_list = is_list(&queried->query);
    queried->target.is_unknown =
        queried->query.kind == TRACE_QUERY_LIST && queried->query.list == TRACE_QUERY_BATCH;
    queried->target.count = reader_u64(&reader);
    queried->target.last_size = reader_u16(&reader);
    queried->target.header_size = reader_u8(&reader);
    if (!target_fits(queried)) {
        return STATUS_BAD_FORMAT;
    }
    reader_copy(&reader, queried->target.header, queried->target.header_size);
    return reader_end(&reader, NULL, "queried");
}

/* ---- writing ------------------------------------------------------------- */

static void put_path(struct buffer *bytes, const struct merkle_path *path)
{
    buffer_add_u8(bytes, (uint8_t)path->sibling_count);
    buffer_add(bytes, path->siblings, path->sibling_count * sizeof(path->siblings[0]));
}

/* An item of the program, with its path. */
static enum status put_program_item(struct buffer *bytes, const struct tape *tape, uint32_t item,
                                    uint32_t instance, struct error *error)
{
    uint32_t count = descriptor_count(tape);
    struct digest *hashes = malloc((size_t)count * sizeof(*hashes));
    uint8_t descriptor[DESCRIPTOR_SIZE_MAX];
    struct descriptor_places places;
    struct merkle_leaves leaves;
    struct merkle_path path;
    enum status status = descriptor_places_find(&places, tape, error);
    size_t size;

    if (status == STATUS_OK && hashes == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for a program of %u items", count);
    }
    if (status == STATUS_OK) {
        for (uint32_t i = 0; i < count; i++) {
            /* All items are hashed for one path: the tree of the program is not kept. */
            merkle_leaf_hash(&hashes[i], descriptor, descriptor_write(descriptor, &places, i));
        }
        merkle_leaves_init_hashes(&leaves, hashes, count);
        merkle_path_build(&path, &leaves, item);
        size = descriptor_write(descriptor, &places, item);
        buffer_add_u32(bytes, item);
        buffer_add_u32(bytes, count);
        buffer_add_u32(bytes, places.trace_items);
        put_path(bytes, &path);
        buffer_add_u16(bytes, (uint16_t)size);
        buffer_add(bytes, descriptor, size);
        /* One descriptor stands for an operation in all micro-batches: the query says in which. */
        if (descriptor_is_repeated(descriptor)) {
            buffer_add_u32(bytes, instance);
        }
    }
    descriptor_places_release(&places);
    free(hashes);
    return status;
}

static void put_ask(struct buffer *bytes, const struct trace_query *query)
{
    uint8_t written[TRACE_QUERY_SIZE];

    trace_query_write(written, query);
    buffer_add(bytes, written, sizeof(written));
}

static void put_node(struct buffer *bytes, const struct trace_walk *walk,
                     const struct trace_query *query, const struct digest *known)
{
    struct merkle_path path;

    trace_walk_node_path(&path, walk, query);
    buffer_add(bytes, known->bytes, DIGEST_SIZE);
    put_path(bytes, &path);
}

static void put_tensor(struct buffer *bytes, const struct trace_walk *walk,
                       const struct trace_query *query, const struct digest *known, uint32_t output)
{
    const struct tape *tape = walk->own->tape;
    uint8_t label[DESCRIPTOR_LABEL_MAX];
    size_t label_size = descriptor_label(label, &tape->tensors[trace_tensor_at(tape, query->item)]);
    struct merkle_path path;
    struct digest root;

    if (query->item >= walk->own->trace.list_count) {
        trace_walk_batch_tree(&root, walk);
    } else {
        trace_walk_trace_tree(&root, walk);
    }
    buffer_add(bytes, root.bytes, DIGEST_SIZE);
    trace_walk_item(&root, &path, walk, query->item);
    put_path(bytes, &path);
    buffer_add_u8(bytes, (uint8_t)output);
    buffer_add_u8(bytes, (uint8_t)label_size);
    buffer_add(bytes, label, label_size);
    if (query->kind == TRACE_QUERY_TENSOR) {
        buffer_add(bytes, root.bytes, DIGEST_SIZE);
    } else {
        buffer_add(bytes, walk->tensor.root.bytes, DIGEST_SIZE);
        put_node(bytes, walk, query, known);
    }
}

enum status ledger_query_write_plain(struct buffer *bytes, const struct tape *tape,
                                     const struct trace_query *query, struct error *error)
{
    bool of_batch = query->list == TRACE_QUERY_BATCH;
    uint32_t item = of_batch ? tape->brief->repeat.first /* any operation of the micro-batches */
                             : descriptor_of_state(tape, 0);

    put_ask(bytes, query);
    TRY(put_program_item(bytes, tape, item, of_batch ? query->item : 0, error));
    return buffer_check(bytes, error, "a query");
}

enum status ledger_query_write(struct buffer *bytes, const struct trace_walk *walk,
                               struct error *error)
{
    const struct tape *tape = walk->own->tape;
    uint32_t instance;
    uint32_t output = 0;
    uint32_t item;
    struct op_turn maker;
    struct digest known;
    struct trace_query query;

    if (!trace_walk_next(&query, &known, walk)) {
        return error_set(error, STATUS_USAGE, "the walk has ended and wants no reply");
    }
    if (is_list(&query)) {
        TRY(ledger_query_write_plain(bytes, tape, &query, error));
    } else {
        trace_output_at(&maker, &output, tape, query.item);
        item = descriptor_of_op(&instance, tape, maker);
        put_ask(bytes, &query);
        TRY(put_program_item(bytes, tape, item, instance, error));
    }
    if (query.kind == TRACE_QUERY_LIST_NODE) {
        const struct trace_walk_tree *tree =
            query.list == TRACE_QUERY_BATCH ? &walk->inner : &walk->items;

        buffer_add(bytes, tree->root.bytes, DIGEST_SIZE);
        put_node(bytes, walk, &query, &known);
    } else if (!is_list(&query)) {
        put_tensor(bytes, walk, &query, &known, output);
    }
    return buffer_check(bytes, error, "a query");
}

enum status ledger_query_write_parts(struct buffer *bytes, const struct tape *tape,
                                     const struct evidence_source *source,
                                     const struct evidence_target *target,
                                     const struct evidence_part *part, struct error *error)
{
    const struct trace_query query = {
        .kind = TRACE_QUERY_PARTS,
        .item = trace_item_of_output(tape, evidence_maker(target), target->output),
        .level = part != NULL,
        .index = target->element};
    enum status status;

    put_ask(bytes, &query);
    status = evidence_write_committed(bytes, tape, source, target, part, error);
    return status == STATUS_OK ? buffer_check(bytes, error, "a query") : status;
}

/* ---- checking ------------------------------------------------------------ */

struct inquiry {
    struct reader reader;
    const struct evidence_context *context;
    struct ledger_queried *queried;
    uint32_t trace_items;
    struct descriptor descriptor;
};

/* Follows the path that comes next from hash; false: it is no path at that place. */
static bool follow_path(struct digest *root, struct reader *reader, uint64_t index, uint64_t count,
                        const struct digest *hash)
{
    struct merkle_path path = {.leaf_index = index, .leaf_count = count};

    path.sibling_count = reader_u8(reader);
    if (path.sibling_count > MERKLE_DEPTH_MAX) {
        return false;
    }
    reader_copy(reader, path.siblings, path.sibling_count * sizeof(path.siblings[0]));
    return !reader->failed && merkle_path_root(root, &path, hash) == VERDICT_VALID;
}

static bool leads_to(struct reader *reader, uint64_t index, uint64_t count,
                     const struct digest *hash, const struct digest *wanted)
{
    struct digest root;

    return follow_path(&root, reader, index, count, hash) && digest_equal(&root, wanted);
}

static void take_digest(struct digest *digest, struct reader *reader)
{
    reader_copy(reader, digest->bytes, DIGEST_SIZE);
}

static bool is_list_root(enum commit_list kind, uint64_t first, uint64_t count,
                         const struct digest *tree, const struct digest *wanted)
{
    struct digest root;

    commit_list_root_of(&root, kind, first, count, tree);
    return digest_equal(&root, wanted);
}

/* The path stands before what it leads from, so it is read twice: passed over, then followed. */
static bool take_program_item(struct inquiry *inquiry)
{
    struct reader *reader = &inquiry->reader;
    uint32_t index = reader_u32(reader);
    uint32_t count = reader_u32(reader);
    struct reader path;
    struct digest hash;
    struct digest tree;
    const uint8_t *descriptor;
    size_t size;

    inquiry->trace_items = reader_u32(reader);
    path = *reader;
    (void)reader_take(reader, (size_t)reader_u8(reader) * DIGEST_SIZE);
    size = reader_u16(reader);
    descriptor = reader_take(reader, size);
    if (descriptor == NULL || inquiry->trace_items == 0) {
        return false;
    }
    merkle_leaf_hash(&hash, descriptor, size);
    return follow_path(&tree, &path, index, count, &hash) &&
           is_list_root(COMMIT_PROGRAM, inquiry->trace_items, count, &tree,
                        &inquiry->context->program) &&
           descriptor_read(&inquiry->descriptor, descriptor, size, NULL) == STATUS_OK &&
           (!inquiry->descriptor.is_repeated ||
            (descriptor_at(&inquiry->descriptor, reader_u32(reader), inquiry->trace_items) &&
             !reader->failed));
}

/* A node below the root of a tree of count leaves, with its path; it becomes the target. */
static bool take_node(struct inquiry *inquiry, uint64_t count, const struct digest *tree)
{
    const struct trace_query *query = &inquiry->queried->query;
    struct trace_reply_target *target = &inquiry->queried->target;

    target->count = trace_query_node_count(count, query->level, query->index);
    if (target->count == 0) {
        return false;
    }
    take_digest(&target->known, &inquiry->reader);
    return leads_to(&inquiry->reader, query->index, ((count - 1) >> query->level) + 1,
                    &target->known, tree);
}

/* A list as the ledger knows it. */
struct list_known {
    enum commit_list kind;
    const struct digest *root;
    uint64_t count;
};

static struct list_known list_of(const struct inquiry *inquiry, enum trace_query_list list)
{
    const struct evidence_context *context = inquiry->context;

    return list == TRACE_QUERY_TRACE
               ? (struct list_known){COMMIT_TRACE, &context->trace, inquiry->trace_items}
           : list == TRACE_QUERY_BATCH ? (struct list_known){COMMIT_BATCH, &context->batch,
                                                             inquiry->descriptor.layout.inner}
                                       : (struct list_known){COMMIT_STATE, &context->after,
                                                             inquiry->descriptor.state_count};
}

static bool check_list(struct inquiry *inquiry)
{
    const struct trace_query *query = &inquiry->queried->query;
    struct trace_reply_target *target = &inquiry->queried->target;
    const struct list_known list = list_of(inquiry, query->list);
    struct digest tree = {{0}};

    if (query->list == TRACE_QUERY_BATCH
            ? inquiry->descriptor.batch != query->item || list.count == 0
            : !inquiry->descriptor.is_state) {
        return false;
    }
    target->is_list = true;
    target->last_size = DIGEST_SIZE;
    if (query->kind == TRACE_QUERY_LIST) {
        target->is_unknown = query->list == TRACE_QUERY_BATCH;
        target->known = target->is_unknown ? tree : *list.root;
        target->count = list.count;
        commit_list_header(target->header, list.kind, query->item, list.count, &tree);
        target->header_size = COMMIT_LIST_HEADER_SIZE;
        return true;
    }
    take_digest(&tree, &inquiry->reader);
    return is_list_root(list.kind, query->item, list.count, &tree, list.root) &&
           take_node(inquiry, list.count, &tree);
}

/* The tensor's header, whose label the descriptor's hash is of; false: it is of another. */
static bool take_header(struct inquiry *inquiry, const struct descriptor_operand *operand)
{
    struct trace_reply_target *target = &inquiry->queried->target;
    const struct digest no_root = {{0}};
    size_t size = reader_u8(&inquiry->reader);
    const uint8_t *label = reader_take(&inquiry->reader, size);
    struct digest hash;

    if (label == NULL || size < DESCRIPTOR_LABEL_MIN || size > DESCRIPTOR_LABEL_MAX) {
        return false;
    }
    sha256(&hash, label, size);
    target->header_size =
        (uint32_t)commit_labelled_header(target->header, COMMIT_TENSOR, label, size, &no_root);
    return digest_equal(&hash, &operand->label);
}

/* The root of the tensor; where the query is about a node, that of its tree, from which with the
 * header the tensor's follows. */
static void take_tensor_root(struct digest *tensor, struct digest *tree, struct inquiry *inquiry)
{
    struct trace_reply_target *target = &inquiry->queried->target;
    uint8_t header[COMMIT_TENSOR_HEADER_MAX];

    take_digest(tree, &inquiry->reader);
    *tensor = *tree;
    if (inquiry->queried->query.kind == TRACE_QUERY_TENSOR_NODE) {
        memcpy(header, target->header, target->header_size);
        memcpy(header + 32, tree->bytes, DIGEST_SIZE);
        sha256(tensor, header, target->header_size);
        memset(target->header, 0, sizeof(target->header));
        target->header_size = 0;
    }
}

static bool check_tensor(struct inquiry *inquiry)
{
    const struct trace_query *query = &inquiry->queried->query;
    const struct descriptor *descriptor = &inquiry->descriptor;
    struct trace_reply_target *target = &inquiry->queried->target;
    const struct descriptor_operand *operand;
    struct list_known list;
    struct digest list_tree;
    struct digest tensor;
    struct digest tree;
    struct digest hash;
    struct reader path;
    uint32_t batch = 0;
    uint32_t first = 0;
    uint32_t output;
    uint64_t size;
    uint64_t count;

    take_digest(&list_tree, &inquiry->reader);
    /* The path stands before the header whose hash it leads from: it is kept, and followed at the
     * end. */
    path = inquiry->reader;
    (void)reader_take(&inquiry->reader, (size_t)reader_u8(&inquiry->reader) * DIGEST_SIZE);
    output = reader_u8(&inquiry->reader);
    if (inquiry->reader.failed || descriptor->is_state || output >= descriptor->op.output_count) {
        return false;
    }
    operand = &descriptor->operands[descriptor->op.input_count + output];
    /* An operand of another place would be a true tensor, and an answer to another question. */
    if (operand->place != query->item || !take_header(inquiry, operand)) {
        return false;
    }
    take_tensor_root(&tensor, &tree, inquiry);
    merkle_leaf_hash(&hash, tensor.bytes, DIGEST_SIZE);
    list = list_of(inquiry, TRACE_QUERY_TRACE);
    /* What a micro-batch keeps to itself stands in the list of that micro-batch, not in the
     * trace's. */
    if (operand->way == DESCRIPTOR_INNER) {
        list = list_of(inquiry, TRACE_QUERY_BATCH);
        batch = descriptor->batch;
        first = inquiry->trace_items + batch * descriptor->layout.inner;
    }
    if (!is_list_root(list.kind, batch, list.count, &list_tree, list.root) ||
        !leads_to(&path, query->item - first, list.count, &hash, &list_tree)) {
        return false;
    }
    size = operand->count * dtype_size(operand->dtype);
    count = (size + MERKLE_LEAF_SIZE - 1) / MERKLE_LEAF_SIZE;
    target->known = tensor;
    target->count = count;
    if (query->kind == TRACE_QUERY_TENSOR_NODE && !take_node(inquiry, count, &tree)) {
        return false;
    }
    /* The last leaf alone may be short, and only a reply that reaches the end of the row shows
     * it. */
    target->last_size = (query->index << query->level) + target->count == count
                            ? (uint32_t)(size - (count - 1) * MERKLE_LEAF_SIZE)
                            : MERKLE_LEAF_SIZE;
    return true;
}

static bool check_diverged(struct inquiry *inquiry)
{
    inquiry->queried->target.known = inquiry->context->after;
    inquiry->queried->program = inquiry->context->program;
    return inquiry->descriptor.is_state && inquiry->context->diverged;
}

static bool check_ask(struct inquiry *inquiry)
{
    switch (inquiry->queried->query.kind) {
    case TRACE_QUERY_LIST:
    case TRACE_QUERY_LIST_NODE:
        return check_list(inquiry);
    case TRACE_QUERY_TENSOR:
    case TRACE_QUERY_TENSOR_NODE:
        return check_tensor(inquiry);
    case TRACE_QUERY_DIVERGED:
        return check_diverged(inquiry);
    case TRACE_QUERY_PARTS:
        break; /* see check_parts() */
    }
    return false;
}

/* Behind the query stands evidence, of which the element and the last reply alone are read. */
static bool check_parts(struct ledger_queried *queried, const struct evidence_context *context,
                        const uint8_t *bytes, size_t size)
{
    struct evidence_committed committed;

    if (evidence_read_committed(&committed, context, bytes, size) != VERDICT_VALID) {
        return false;
    }
    queried->parts = committed.parts;
    return committed.item == queried->query.item && committed.element == queried->query.index &&
           committed.parts.range.is_part == (queried->query.level == 1) &&
           committed.parts.count > 1;
}

enum verdict ledger_query_check(struct ledger_queried *queried,
                                const struct evidence_context *context, const uint8_t *bytes,
                                size_t size)
{
    struct inquiry inquiry = {.context = context, .queried = queried};
    const uint8_t *query;

    memset(queried, 0, sizeof(*queried));
    reader_init(&inquiry.reader, bytes, size);
    query = reader_take(&inquiry.reader, TRACE_QUERY_SIZE);
    if (query == NULL || trace_query_read(&queried->query, query, TRACE_QUERY_SIZE) != STATUS_OK) {
        return VERDICT_INVALID;
    }
    if (queried->query.kind == TRACE_QUERY_PARTS) {
        return check_parts(queried, context, bytes + TRACE_QUERY_SIZE, size - TRACE_QUERY_SIZE)
                   ? VERDICT_VALID
                   : VERDICT_INVALID;
    }
    if (!take_program_item(&inquiry) || !check_ask(&inquiry) ||
        reader_end(&inquiry.reader, NULL, "query") != STATUS_OK) {
        return VERDICT_INVALID;
    }
    return VERDICT_VALID;
}
