/* fraud_proof.c - see fraud_proof.h. */
#include "proofs/dispute/fraud_proof.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/descriptor.h"
#include "proofs/dispute/ledger_query.h"

/* The node over each piece of a data tensor is kept: 256 KiB. */
#define PIECE_LEVEL 8
#define PIECE_SIZE  ((uint64_t)MERKLE_LEAF_SIZE << PIECE_LEVEL)

static const struct tape *tape_of(const struct fraud_proof *proof)
{
    return proof->walk->own->tape;
}

static enum status unknown_value(struct error *error)
{
    return error_set(error, STATUS_NOT_FOUND, "the walk did not learn that of the accused");
}

/* ---- the job's own tensors ------------------------------------------------ */

static uint32_t role_count(const struct tape *tape, enum role role)
{
    uint32_t count = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        count += tape->tensors[id].role == role;
    }
    return count;
}

/* The tensor with that number among those of its role. */
static const struct tensor *tensor_of_role(const struct tape *tape, enum role role, uint32_t number)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == role && number-- == 0) {
            return &tape->tensors[id];
        }
    }
    assert(!"a tensor of that role");
    return NULL;
}

static const struct tensor *given_tensor(const uint8_t **bytes, const struct fraud_proof *proof,
                                         enum evidence_list list, uint32_t item)
{
    bool data = list == EVIDENCE_DATA;

    *bytes = data ? proof->given.data[item] : proof->given.constants[item];
    return tensor_of_role(tape_of(proof), data ? ROLE_DATA : ROLE_CONSTANT, item);
}

static void given_root(struct digest *root, const struct fraud_proof *proof,
                       enum evidence_list list, uint32_t item)
{
    const uint8_t *bytes;
    const struct tensor *tensor = given_tensor(&bytes, proof, list, item);

    if (list == EVIDENCE_DATA) {
        *root = proof->given.data_roots[item];
    } else {
        commit_tensor_root(root, COMMIT_TENSOR, tensor, bytes, 0);
    }
}

static enum status given_list_node(struct digest *node, const struct fraud_proof *proof,
                                   enum evidence_list list, uint32_t level, uint64_t index,
                                   struct error *error)
{
    uint32_t count = role_count(tape_of(proof), list == EVIDENCE_DATA ? ROLE_DATA : ROLE_CONSTANT);
    struct digest *hashes = malloc(((size_t)count + 1) * sizeof(*hashes));
    struct merkle_leaves leaves;

    if (hashes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of %u", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct digest root;

        given_root(&root, proof, list, i);
        merkle_leaf_hash(&hashes[i], root.bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, count);
    merkle_node(node, &leaves, level, index);
    free(hashes);
    return STATUS_OK;
}

/* A data set may be larger than memory: it is hashed once, and one node in 256 KiB is kept. */
static enum status find_pieces(struct fraud_proof *proof, uint32_t item, const uint8_t *bytes,
                               uint64_t size, struct error *error)
{
    uint64_t count = (size + PIECE_SIZE - 1) / PIECE_SIZE;
    struct digest *pieces;

    if (proof->pieces == NULL) {
        proof->piece_count = role_count(tape_of(proof), ROLE_DATA);
        proof->pieces = calloc((size_t)proof->piece_count + 1, sizeof(struct digest *));
        if (proof->pieces == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the trees of the data");
        }
    }
    pieces = malloc((size_t)count * sizeof(*pieces));

    if (pieces == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the tree of the data");
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t left = size - i * PIECE_SIZE;
        struct merkle_leaves leaves;

        merkle_leaves_init_bytes(&leaves, bytes + i * PIECE_SIZE,
                                 left < PIECE_SIZE ? left : PIECE_SIZE);
        leaves.threads = 1;
        merkle_root(&pieces[i], &leaves);
    }
    proof->pieces[item] = pieces;
    return STATUS_OK;
}

static enum status given_tensor_node(struct digest *node, struct fraud_proof *proof,
                                     enum evidence_list list, uint32_t item, uint32_t level,
                                     uint64_t index, struct error *error)
{
    const uint8_t *bytes;
    uint64_t size = commit_tensor_size(given_tensor(&bytes, proof, list, item));
    struct merkle_leaves leaves;

    merkle_leaves_init_bytes(&leaves, bytes, size);
    if (list == EVIDENCE_DATA && level >= PIECE_LEVEL) {
        if (proof->pieces == NULL || proof->pieces[item] == NULL) {
            TRY(find_pieces(proof, item, bytes, size, error));
        }
        merkle_leaves_init_hashes(&leaves, proof->pieces[item],
                                  (size + PIECE_SIZE - 1) / PIECE_SIZE);
        level -= PIECE_LEVEL;
    }
    merkle_node(node, &leaves, level, index);
    return STATUS_OK;
}

/* ---- what the operation reads and writes ------------------------------------ */

/* Keeps the inputs and outputs of the operation that makes the item that differs. */
static enum status keep_operands(struct fraud_proof *proof, struct error *error)
{
    const struct tape *tape = tape_of(proof);
    uint32_t items[TRACE_SERVER_KEPT_MAX];
    struct descriptor_places places;
    struct descriptor descriptor;
    uint32_t count = 0;

    TRY(descriptor_places_find(&places, tape, error));
    descriptor_of_turn(&descriptor, &places, evidence_maker(&proof->target));
    for (uint32_t i = 0; i < descriptor.operand_count; i++) {
        enum role role = descriptor.operands[i].role;

        if (role == ROLE_STATE || role_is_made(role)) {
            items[count++] = descriptor.operands[i].place;
        }
    }
    descriptor_places_release(&places);
    return trace_server_keep(proof->walk->own, items, count, error);
}

/* Our own tensor in place of the accused's; it must have been kept. */
static const struct trace_server_tensor *own_tensor(const struct fraud_proof *proof,
                                                    enum evidence_list list, uint32_t item)
{
    const struct trace_server *own = proof->walk->own;

    return trace_server_tensor(own, list == EVIDENCE_AFTER ? own->next_items[item] : item);
}

/* ---- the source ------------------------------------------------------------ */

static enum status find_item(void *context, struct digest *root, enum evidence_list list,
                             uint32_t item, struct error *error)
{
    const struct fraud_proof *proof = context;
    const struct trace_walk *walk = proof->walk;
    struct merkle_path ignored;

    switch (list) {
    case EVIDENCE_TRACE:
        if (!trace_walk_knows(walk, item)) {
            return unknown_value(error);
        }
        trace_walk_item(root, &ignored, walk, item);
        return STATUS_OK;
    case EVIDENCE_BEFORE:
        *root = walk->own->trace.items[item];
        return STATUS_OK;
    case EVIDENCE_AFTER:
        *root = walk->end == TRACE_WALK_NEXT_STATE && item == walk->item ? walk->item_root
                                                                         : walk->own->next[item];
        return STATUS_OK;
    case EVIDENCE_DATA:
    case EVIDENCE_CONSTANTS:
        given_root(root, proof, list, item);
        return STATUS_OK;
    case EVIDENCE_BATCH:
        break; /* its items are the trace's */
    }
    return unknown_value(error);
}

static enum status find_list_node(void *context, struct digest *node, enum evidence_list list,
                                  uint32_t batch, uint32_t level, uint64_t index,
                                  struct error *error)
{
    const struct fraud_proof *proof = context;
    const struct trace_server *own = proof->walk->own;
    struct merkle_leaves leaves;

    switch (list) {
    case EVIDENCE_TRACE:
        return trace_walk_list_node(node, proof->walk, TRACE_QUERY_TRACE, level, index)
                   ? STATUS_OK
                   : unknown_value(error);
    case EVIDENCE_BATCH:
        return batch == proof->walk->batch &&
                       trace_walk_list_node(node, proof->walk, TRACE_QUERY_BATCH, level, index)
                   ? STATUS_OK
                   : unknown_value(error);
    case EVIDENCE_AFTER:
        return trace_walk_list_node(node, proof->walk, TRACE_QUERY_NEXT_STATE, level, index)
                   ? STATUS_OK
                   : unknown_value(error);
    case EVIDENCE_BEFORE:
        merkle_leaves_init_hashes(&leaves, own->trace.hashes, own->trace.state_count);
        merkle_node(node, &leaves, level, index);
        return STATUS_OK;
    case EVIDENCE_DATA:
    case EVIDENCE_CONSTANTS:
        return given_list_node(node, proof, list, level, index, error);
    }
    return unknown_value(error);
}

static bool is_the_lie(const struct fraud_proof *proof, enum evidence_list list, uint32_t item)
{
    return list == EVIDENCE_TRACE && proof->walk->end == TRACE_WALK_ELEMENT &&
           item == proof->walk->item;
}

static enum status find_tensor_node(void *context, struct digest *node, enum evidence_list list,
                                    uint32_t item, uint32_t level, uint64_t index,
                                    struct error *error)
{
    struct fraud_proof *proof = context;
    const struct trace_server_tensor *own;
    struct merkle_leaves leaves;

    if (list == EVIDENCE_DATA || list == EVIDENCE_CONSTANTS) {
        return given_tensor_node(node, proof, list, item, level, index, error);
    }
    if (is_the_lie(proof, list, item)) {
        return trace_walk_tensor_node(node, proof->walk, level, index) ? STATUS_OK
                                                                       : unknown_value(error);
    }
    own = own_tensor(proof, list, item);
    if (own == NULL) {
        return unknown_value(error);
    }
    merkle_leaves_init_hashes(&leaves, own->hashes, own->leaf_count);
    merkle_node(node, &leaves, level, index);
    return STATUS_OK;
}

static enum status find_leaf(void *context, uint8_t leaf[MERKLE_LEAF_SIZE], enum evidence_list list,
                             uint32_t item, uint64_t leaf_index, struct error *error)
{
    const struct fraud_proof *proof = context;
    const uint8_t *bytes;
    uint64_t left;

    if (is_the_lie(proof, list, item)) {
        if (leaf_index != proof->walk->leaf) {
            return unknown_value(error);
        }
        memcpy(leaf, proof->walk->leaf_bytes, MERKLE_LEAF_SIZE);
        return STATUS_OK;
    }
    if (list == EVIDENCE_DATA || list == EVIDENCE_CONSTANTS) {
        left = commit_tensor_size(given_tensor(&bytes, proof, list, item));
    } else {
        const struct trace_server_tensor *own = own_tensor(proof, list, item);

        if (own == NULL) {
            return unknown_value(error);
        }
        bytes = own->bytes;
        left = own->size;
    }
    left -= leaf_index * MERKLE_LEAF_SIZE;
    memset(leaf, 0, MERKLE_LEAF_SIZE);
    memcpy(leaf, bytes + leaf_index * MERKLE_LEAF_SIZE,
           left < MERKLE_LEAF_SIZE ? (size_t)left : MERKLE_LEAF_SIZE);
    return STATUS_OK;
}

/* ---- evidence -------------------------------------------------------------- */

static void init_proof(struct fraud_proof *proof, struct trace_walk *walk,
                       const struct evidence_given *given)
{
    memset(proof, 0, sizeof(*proof));
    proof->walk = walk;
    if (given != NULL) {
        proof->given = *given;
    }
    proof->source = (struct evidence_source){.context = proof,
                                             .item = find_item,
                                             .list_node = find_list_node,
                                             .tensor_node = find_tensor_node,
                                             .leaf = find_leaf};
}

enum status fraud_proof_open(struct fraud_proof *proof, struct trace_walk *walk,
                             const struct evidence_given *given, struct error *error)
{
    enum status status;

    assert(walk->end != TRACE_WALK_GOES_ON);
    assert(walk->end != TRACE_WALK_NO_LIE);
    init_proof(proof, walk, given);
    if (walk->end != TRACE_WALK_ELEMENT) {
        return STATUS_OK;
    }
    evidence_aim(&proof->target, tape_of(proof), walk->item);
    TRY_OUT(keep_operands(proof, error));
    status = evidence_choose(&proof->target, tape_of(proof), &proof->source, walk->leaf, error);
out:
    if (status != STATUS_OK) {
        fraud_proof_close(proof);
    }
    return status;
}

enum status fraud_proof_other(struct fraud_proof *proof, uint32_t passed_over, struct error *error)
{
    if (proof->walk->end != TRACE_WALK_ELEMENT) {
        return error_set(error, STATUS_NOT_FOUND, "there is no other evidence of that kind");
    }
    return evidence_choose_other(&proof->target, tape_of(proof), &proof->source, proof->walk->leaf,
                                 passed_over, error);
}

void fraud_proof_close(struct fraud_proof *proof)
{
    for (uint32_t i = 0; i < proof->piece_count; i++) {
        free(proof->pieces[i]);
    }
    free(proof->pieces);
    memset(proof, 0, sizeof(*proof));
}

enum status fraud_proof_write_whole(struct buffer *bytes, struct fraud_proof *proof,
                                    size_t size_max, struct error *error)
{
    const struct trace_walk *walk = proof->walk;
    size_t before = bytes->size;
    enum status status;

    if (walk->end == TRACE_WALK_ELEMENT) {
        return evidence_write_element(bytes, tape_of(proof), &proof->source, &proof->target,
                                      size_max, error);
    }
    status = evidence_write_state(bytes, tape_of(proof), &proof->source,
                                  walk->end == TRACE_WALK_FIRST_STATE ? EVIDENCE_FIRST_STATE
                                                                      : EVIDENCE_NEXT_STATE,
                                  walk->item, error);
    if (status == STATUS_OK && bytes->size - before > size_max) {
        status = error_set(error, STATUS_OVER_LIMIT, "evidence of %zu bytes does not fit in %zu",
                           bytes->size - before, size_max);
    }
    return status;
}

/* The range that the last reply is about; false: it is about no part of this element. */
static bool read_range(struct partial_sums_range *range, const struct fraud_proof *proof,
                       const struct fraud_proof_said *said)
{
    const struct evidence_target *target = &proof->target;
    struct ledger_queried queried;

    if (said->reply_size == 0 ||
        ledger_queried_read(&queried, said->queried, said->queried_size) != STATUS_OK ||
        queried.query.kind != TRACE_QUERY_PARTS || queried.query.index != target->element ||
        queried.query.item !=
            trace_item_of_output(tape_of(proof), evidence_maker(target), target->output)) {
        return false;
    }
    *range = queried.parts.range;
    return true;
}

/* Of a false part that is known: its evidence, or the query for its own parts. */
static enum status write_part(struct buffer *bytes, bool *is_query, const struct fraud_proof *proof,
                              const struct evidence_part *part, size_t size_max,
                              struct error *error)
{
    const struct tape *tape = tape_of(proof);
    const struct evidence_target *target = &proof->target;
    size_t before = bytes->size;
    struct rule_axis axis;
    bool has_parts;
    enum status status;

    rule_axis_of(&axis, &tape->ops[target->op], target->output, target->element);
    has_parts = partial_sums_narrow(&axis, &part->range) && axis.part > axis.least;
    if (has_parts && size_max > FRAUD_PROOF_WHOLE_MAX) {
        size_max = FRAUD_PROOF_WHOLE_MAX;
    }
    status = evidence_write_part(bytes, tape, &proof->source, target, part, size_max, error);
    *is_query = status == STATUS_OVER_LIMIT && has_parts;
    if (!*is_query) {
        return status;
    }
    bytes->size = before;
    return ledger_query_write_parts(bytes, tape, &proof->source, target, part, error);
}

/* Of an element that has parts: the false one, or the query for all of them. */
static enum status write_in_parts(struct buffer *bytes, bool *is_query,
                                  const struct fraud_proof *proof,
                                  const struct fraud_proof_said *said, size_t size_max,
                                  struct error *error)
{
    const struct tape *tape = tape_of(proof);
    struct evidence_part part = {.reply = said->reply, .reply_size = said->reply_size};
    enum status status = STATUS_BAD_FORMAT;

    if (read_range(&part.range, proof, said)) {
        status = evidence_false_part(&part, tape, &proof->source, &proof->target, error);
    }
    *is_query = status == STATUS_BAD_FORMAT;
    if (*is_query) {
        return ledger_query_write_parts(bytes, tape, &proof->source, &proof->target, NULL, error);
    }
    return status == STATUS_OK ? write_part(bytes, is_query, proof, &part, size_max, error)
                               : status;
}

enum status fraud_proof_write(struct buffer *bytes, bool *is_query, struct fraud_proof *proof,
                              const struct fraud_proof_said *said, size_t size_max,
                              struct error *error)
{
    const struct evidence_target *target = &proof->target;
    struct rule_axis axis = {.parts = 0};
    size_t before = bytes->size;
    size_t whole_max = size_max;
    enum status status;

    *is_query = false;
    if (proof->walk->end == TRACE_WALK_ELEMENT) {
        rule_axis_of(&axis, &tape_of(proof)->ops[target->op], target->output, target->element);
    }
    if (axis.parts > 1 && whole_max > FRAUD_PROOF_WHOLE_MAX) {
        whole_max = FRAUD_PROOF_WHOLE_MAX;
    }
    status = fraud_proof_write_whole(bytes, proof, whole_max, error);
    if (status != STATUS_OVER_LIMIT || axis.parts <= 1) {
        return status;
    }
    bytes->size = before;
    return write_in_parts(bytes, is_query, proof, said, size_max, error);
}

enum status fraud_proof_judge(struct evidence_ruling *ruling, const struct fraud_proof *proof,
                              const struct evidence_context *context,
                              const struct fraud_proof_said *said, const struct buffer *evidence,
                              struct error *error)
{
    struct evidence_context informed = *context;

    informed.batch = proof->walk->accused.batch_root;
    partial_sums_reply_hash(&informed.reply, said->queried, said->queried_size, said->reply,
                            said->reply_size);
    return evidence_judge(ruling, &informed, evidence->data, evidence->size, error);
}

/* ---- the replies of an accused ---------------------------------------------- */

/* A walk in which nothing differs: everything that is proven is our own. */
static enum status open_own(struct fraud_proof *proof, struct trace_walk *walk,
                            struct trace_server *own, const struct evidence_given *given,
                            struct error *error)
{
    const struct trace_walk_case itself = {.trace_root = own->trace.root,
                                           .state_root = own->trace.state_root,
                                           .next_root = own->trace.next_root};
    enum status status = trace_walk_open(walk, own, &itself, error);

    init_proof(proof, walk, given);
    return status;
}

static enum status reply_with_parts(struct buffer *bytes, struct trace_server *own,
                                    const struct evidence_given *given,
                                    const struct trace_query *query,
                                    const struct partial_sums_range *range, struct error *error)
{
    struct fraud_proof proof;
    struct trace_walk walk;
    enum status status = trace_query_check(query, own->tape, error);

    if (status == STATUS_OK && range->is_part != (query->level == 1)) {
        status = error_set(error, STATUS_NOT_FOUND, "only a ledger says which part is meant");
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = open_own(&proof, &walk, own, given, error);
    evidence_aim(&proof.target, own->tape, query->item);
    proof.target.element = query->index;
    if (status == STATUS_OK) {
        status = keep_operands(&proof, error);
    }
    if (status == STATUS_OK) {
        status = evidence_parts(bytes, own->tape, &proof.source, &proof.target, range, error);
    }
    fraud_proof_close(&proof);
    trace_walk_close(&walk);
    return status;
}

enum status fraud_proof_not_finite(struct buffer *bytes, struct trace_server *own,
                                   struct error *error)
{
    struct fraud_proof proof;
    struct trace_walk walk;
    uint64_t element = 0;
    uint32_t state = 0;
    enum status status = trace_server_diverged(&state, &element, own, error);

    if (status == STATUS_OK) {
        status = trace_server_keep(own, &own->next_items[state], 1, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = open_own(&proof, &walk, own, NULL, error);
    if (status == STATUS_OK) {
        status = evidence_write_not_finite(bytes, own->tape, &proof.source, state, element, error);
    }
    fraud_proof_close(&proof);
    trace_walk_close(&walk);
    return status;
}

static enum status trace_reply_tree(struct buffer *bytes, struct trace_server *own,
                                    const struct trace_query *query, struct error *error)
{
    uint8_t reply[TRACE_REPLY_BYTES_MAX];
    size_t size;
    enum status status = trace_server_answer(reply, &size, own, query, error);

    buffer_add(bytes, reply, size);
    return status;
}

enum status fraud_proof_reply(struct buffer *bytes, struct trace_server *own,
                              const struct evidence_given *given, const struct trace_query *query,
                              const struct partial_sums_range *range, struct error *error)
{
    const struct partial_sums_range whole = {.is_part = false};
    enum status status = STATUS_OK;

    switch (query->kind) {
    case TRACE_QUERY_LIST:
    case TRACE_QUERY_LIST_NODE:
    case TRACE_QUERY_TENSOR:
    case TRACE_QUERY_TENSOR_NODE:
        status = trace_reply_tree(bytes, own, query, error);
        break;
    case TRACE_QUERY_DIVERGED:
        status = fraud_proof_not_finite(bytes, own, error);
        break;
    case TRACE_QUERY_PARTS:
        status = reply_with_parts(bytes, own, given, query, range != NULL ? range : &whole, error);
        break;
    }
    return status == STATUS_OK ? buffer_check(bytes, error, "a reply") : status;
}
