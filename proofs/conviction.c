/* conviction.c - see conviction.h. */
#include "proofs/conviction.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/question.h"

/* Leaves of one piece of a data tensor, whose node is kept: 256 KiB. */
#define PIECE_LEVEL 8
#define PIECE_SIZE  ((uint64_t)MERKLE_LEAF_SIZE << PIECE_LEVEL)

static const struct tape *tape_of(const struct conviction *conviction)
{
    return conviction->hunt->own->tape;
}

static enum status unknown(struct error *error)
{
    return error_set(error, STATUS_NOT_FOUND, "the hunt did not learn that of the accused");
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

static const struct tensor *given_tensor(const uint8_t **bytes, const struct conviction *conviction,
                                         enum evidence_list list, uint32_t item)
{
    bool data = list == EVIDENCE_DATA;

    *bytes = data ? conviction->given.data[item] : conviction->given.constants[item];
    return tensor_of_role(tape_of(conviction), data ? ROLE_DATA : ROLE_CONSTANT, item);
}

static void given_root(struct digest *root, const struct conviction *conviction,
                       enum evidence_list list, uint32_t item)
{
    const uint8_t *bytes;
    const struct tensor *tensor = given_tensor(&bytes, conviction, list, item);

    if (list == EVIDENCE_DATA) {
        *root = conviction->given.data_roots[item];
    } else {
        commit_tensor_root(root, COMMIT_TENSOR, tensor, bytes, 0);
    }
}

static enum status given_list_node(struct digest *node, const struct conviction *conviction,
                                   enum evidence_list list, uint32_t level, uint64_t index,
                                   struct error *error)
{
    uint32_t count =
        role_count(tape_of(conviction), list == EVIDENCE_DATA ? ROLE_DATA : ROLE_CONSTANT);
    struct digest *hashes = malloc(((size_t)count + 1) * sizeof(*hashes));
    struct merkle_leaves leaves;

    if (hashes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of %u", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct digest root;

        given_root(&root, conviction, list, i);
        merkle_leaf_hash(&hashes[i], root.bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, count);
    merkle_node(node, &leaves, level, index);
    free(hashes);
    return STATUS_OK;
}

/* A data set may be larger than memory: it is hashed once, and one node in 256 KiB is kept. */
static enum status find_pieces(struct conviction *conviction, uint32_t item, const uint8_t *bytes,
                               uint64_t size, struct error *error)
{
    uint64_t count = (size + PIECE_SIZE - 1) / PIECE_SIZE;
    struct digest *pieces = malloc((size_t)count * sizeof(*pieces));

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
    conviction->pieces[item] = pieces;
    return STATUS_OK;
}

static enum status given_tensor_node(struct digest *node, struct conviction *conviction,
                                     enum evidence_list list, uint32_t item, uint32_t level,
                                     uint64_t index, struct error *error)
{
    const uint8_t *bytes;
    uint64_t size = commit_tensor_size(given_tensor(&bytes, conviction, list, item));
    struct merkle_leaves leaves;

    merkle_leaves_init_bytes(&leaves, bytes, size);
    if (list == EVIDENCE_DATA && level >= PIECE_LEVEL && item < JOB_DATA_MAX) {
        if (conviction->pieces[item] == NULL) {
            enum status status = find_pieces(conviction, item, bytes, size, error);

            if (status != STATUS_OK) {
                return status;
            }
        }
        merkle_leaves_init_hashes(&leaves, conviction->pieces[item],
                                  (size + PIECE_SIZE - 1) / PIECE_SIZE);
        level -= PIECE_LEVEL;
    }
    merkle_node(node, &leaves, level, index);
    return STATUS_OK;
}

/* ---- what the operation touches ------------------------------------------- */

/* Keeps all of the operation that makes the item that differs: its inputs and outputs. */
static enum status keep_operands(struct conviction *conviction, struct error *error)
{
    const struct tape *tape = tape_of(conviction);
    uint32_t items[TELLER_KEPT_MAX];
    struct descriptor_places places;
    const struct op *op = &tape->ops[conviction->target.op];
    uint32_t count = 0;
    enum status status = descriptor_places_find(&places, tape, error);

    if (status != STATUS_OK) {
        return status;
    }
    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        uint32_t id = i < op->input_count ? op->inputs[i] : op->outputs[i - op->input_count];
        enum role role = tape->tensors[id].role;

        if (role == ROLE_STATE || role_is_made(role)) {
            items[count++] = places.of[id];
        }
    }
    descriptor_places_release(&places);
    return teller_keep(conviction->hunt->own, items, count, error);
}

/* Our own tensor in place of the accused's; it must have been kept. */
static const struct teller_tensor *own_tensor(const struct conviction *conviction,
                                              enum evidence_list list, uint32_t item)
{
    const struct teller *own = conviction->hunt->own;

    return teller_tensor(own, list == EVIDENCE_AFTER ? own->next_items[item] : item);
}

/* ---- the source ------------------------------------------------------------ */

static enum status find_item(void *context, struct digest *root, enum evidence_list list,
                             uint32_t item, struct error *error)
{
    const struct conviction *conviction = context;
    const struct hunt *hunt = conviction->hunt;
    struct merkle_path ignored;

    switch (list) {
    case EVIDENCE_TRACE:
        if (hunt->list == ASK_TRACE && (!hunt->item_known || item > hunt->item)) {
            return unknown(error);
        }
        hunt_item(root, &ignored, hunt, item);
        return STATUS_OK;
    case EVIDENCE_BEFORE:
        *root = hunt->own->trace.items[item];
        return STATUS_OK;
    case EVIDENCE_AFTER:
        *root = hunt->end == HUNT_NEXT_STATE && item == hunt->item ? hunt->item_root
                                                                   : hunt->own->next[item];
        return STATUS_OK;
    case EVIDENCE_DATA:
    case EVIDENCE_CONSTANTS:
        given_root(root, conviction, list, item);
        return STATUS_OK;
    }
    return unknown(error);
}

static enum status find_list_node(void *context, struct digest *node, enum evidence_list list,
                                  uint32_t level, uint64_t index, struct error *error)
{
    const struct conviction *conviction = context;
    const struct teller *own = conviction->hunt->own;
    struct merkle_leaves leaves;

    switch (list) {
    case EVIDENCE_TRACE:
        return hunt_list_node(node, conviction->hunt, ASK_TRACE, level, index) ? STATUS_OK
                                                                               : unknown(error);
    case EVIDENCE_AFTER:
        return hunt_list_node(node, conviction->hunt, ASK_NEXT_STATE, level, index)
                   ? STATUS_OK
                   : unknown(error);
    case EVIDENCE_BEFORE:
        merkle_leaves_init_hashes(&leaves, own->trace.hashes, own->trace.state_count);
        merkle_node(node, &leaves, level, index);
        return STATUS_OK;
    case EVIDENCE_DATA:
    case EVIDENCE_CONSTANTS:
        return given_list_node(node, conviction, list, level, index, error);
    }
    return unknown(error);
}

static bool is_the_lie(const struct conviction *conviction, enum evidence_list list, uint32_t item)
{
    return list == EVIDENCE_TRACE && conviction->hunt->end == HUNT_ELEMENT &&
           item == conviction->hunt->item;
}

static enum status find_tensor_node(void *context, struct digest *node, enum evidence_list list,
                                    uint32_t item, uint32_t level, uint64_t index,
                                    struct error *error)
{
    struct conviction *conviction = context;
    const struct teller_tensor *own;
    struct merkle_leaves leaves;

    if (list == EVIDENCE_DATA || list == EVIDENCE_CONSTANTS) {
        return given_tensor_node(node, conviction, list, item, level, index, error);
    }
    if (is_the_lie(conviction, list, item)) {
        return hunt_tensor_node(node, conviction->hunt, level, index) ? STATUS_OK : unknown(error);
    }
    own = own_tensor(conviction, list, item);
    if (own == NULL) {
        return unknown(error);
    }
    merkle_leaves_init_hashes(&leaves, own->hashes, own->leaf_count);
    merkle_node(node, &leaves, level, index);
    return STATUS_OK;
}

static enum status find_leaf(void *context, uint8_t leaf[MERKLE_LEAF_SIZE], enum evidence_list list,
                             uint32_t item, uint64_t leaf_index, struct error *error)
{
    const struct conviction *conviction = context;
    const uint8_t *bytes;
    uint64_t left;

    if (is_the_lie(conviction, list, item)) {
        if (leaf_index != conviction->hunt->leaf) {
            return unknown(error);
        }
        memcpy(leaf, conviction->hunt->leaf_bytes, MERKLE_LEAF_SIZE);
        return STATUS_OK;
    }
    if (list == EVIDENCE_DATA || list == EVIDENCE_CONSTANTS) {
        left = commit_tensor_size(given_tensor(&bytes, conviction, list, item));
    } else {
        const struct teller_tensor *own = own_tensor(conviction, list, item);

        if (own == NULL) {
            return unknown(error);
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

static void init(struct conviction *conviction, struct hunt *hunt, const struct record_given *given)
{
    memset(conviction, 0, sizeof(*conviction));
    conviction->hunt = hunt;
    if (given != NULL) {
        conviction->given = *given;
    }
    conviction->source = (struct evidence_source){.context = conviction,
                                                  .item = find_item,
                                                  .list_node = find_list_node,
                                                  .tensor_node = find_tensor_node,
                                                  .leaf = find_leaf};
}

enum status conviction_open(struct conviction *conviction, struct hunt *hunt,
                            const struct record_given *given, struct error *error)
{
    enum status status;

    assert(hunt->end != HUNT_GOES_ON);
    assert(hunt->end != HUNT_NO_LIE);
    init(conviction, hunt, given);
    if (hunt->end != HUNT_ELEMENT) {
        return STATUS_OK;
    }
    trace_output_at(&conviction->target.op, &conviction->target.output, tape_of(conviction),
                    hunt->item);
    status = keep_operands(conviction, error);
    if (status == STATUS_OK) {
        status = evidence_choose(&conviction->target, tape_of(conviction), &conviction->source,
                                 hunt->leaf, error);
    }
    if (status != STATUS_OK) {
        conviction_close(conviction);
    }
    return status;
}

enum status conviction_other(struct conviction *conviction, uint32_t passed_over,
                             struct error *error)
{
    if (conviction->hunt->end != HUNT_ELEMENT) {
        return error_set(error, STATUS_NOT_FOUND, "there is no other evidence of that kind");
    }
    return evidence_choose_other(&conviction->target, tape_of(conviction), &conviction->source,
                                 conviction->hunt->leaf, passed_over, error);
}

void conviction_close(struct conviction *conviction)
{
    for (uint32_t i = 0; i < JOB_DATA_MAX; i++) {
        free(conviction->pieces[i]);
    }
    memset(conviction, 0, sizeof(*conviction));
}

enum status conviction_write_whole(struct buffer *bytes, struct conviction *conviction,
                                   size_t size_max, struct error *error)
{
    const struct hunt *hunt = conviction->hunt;
    size_t before = bytes->size;
    enum status status;

    if (hunt->end == HUNT_ELEMENT) {
        return evidence_write_element(bytes, tape_of(conviction), &conviction->source,
                                      &conviction->target, size_max, error);
    }
    status = evidence_write_state(bytes, tape_of(conviction), &conviction->source,
                                  hunt->end == HUNT_FIRST_STATE ? EVIDENCE_FIRST_STATE
                                                                : EVIDENCE_NEXT_STATE,
                                  hunt->item, error);
    if (status == STATUS_OK && bytes->size - before > size_max) {
        status = error_set(error, STATUS_OVER_LIMIT, "evidence of %zu bytes does not fit in %zu",
                           bytes->size - before, size_max);
    }
    return status;
}

/* Of an element that has parts: the false one, or the question for all of them. */
static enum status write_part(struct buffer *bytes, bool *asks, struct conviction *conviction,
                              const uint8_t *told, size_t told_size, size_t size_max,
                              struct error *error)
{
    const struct tape *tape = tape_of(conviction);
    const struct evidence_source *source = &conviction->source;
    const struct evidence_target *target = &conviction->target;
    uint32_t part;
    enum status status = evidence_false_part(&part, tape, source, target, told, told_size, error);

    *asks = status == STATUS_BAD_FORMAT;
    if (*asks) {
        return question_write_parts(bytes, tape, source, target, error);
    }
    return status == STATUS_OK ? evidence_write_part(bytes, tape, source, target, part, told,
                                                     told_size, size_max, error)
                               : status;
}

enum status conviction_write(struct buffer *bytes, bool *asks, struct conviction *conviction,
                             const uint8_t *told, size_t told_size, size_t size_max,
                             struct error *error)
{
    const struct evidence_target *target = &conviction->target;
    struct rule_axis axis = {.parts = 0};
    size_t before = bytes->size;
    size_t whole_max = size_max;
    enum status status;

    *asks = false;
    if (conviction->hunt->end == HUNT_ELEMENT) {
        rule_axis_of(&axis, &tape_of(conviction)->ops[target->op], target->output, target->element);
    }
    if (axis.parts > 1 && whole_max > CONVICTION_WHOLE_MAX) {
        whole_max = CONVICTION_WHOLE_MAX;
    }
    status = conviction_write_whole(bytes, conviction, whole_max, error);
    if (status != STATUS_OVER_LIMIT || axis.parts <= 1) {
        return status;
    }
    bytes->size = before;
    return write_part(bytes, asks, conviction, told, told_size, size_max, error);
}

/* What a ledger keeps of an answer to the question for the target's parts. */
static enum status hash_told(struct digest *hash, const struct conviction *conviction,
                             const struct evidence_context *context, const uint8_t *told,
                             size_t told_size, struct error *error)
{
    uint8_t bytes[ASKED_SIZE_MAX];
    struct buffer question;
    struct asked asked;
    enum status status;

    buffer_init(&question, QUESTION_SIZE_MAX);
    status = question_write_parts(&question, tape_of(conviction), &conviction->source,
                                  &conviction->target, error);
    if (status == STATUS_OK &&
        question_check(&asked, context, question.data, question.size) == VERDICT_VALID) {
        parts_told_hash(hash, bytes, asked_write(bytes, &asked), told, told_size);
    }
    buffer_release(&question);
    return status;
}

enum status conviction_judge(struct evidence_ruling *ruling, const struct conviction *conviction,
                             const struct evidence_context *context, const uint8_t *told,
                             size_t told_size, const struct buffer *evidence, struct error *error)
{
    struct evidence_context informed = *context;
    enum status status = STATUS_OK;

    if (evidence->size > 0 && evidence->data[0] == EVIDENCE_PART) {
        status = hash_told(&informed.told, conviction, context, told, told_size, error);
    }
    return status == STATUS_OK
               ? evidence_judge(ruling, &informed, evidence->data, evidence->size, error)
               : status;
}

/* ---- what an accused tells ------------------------------------------------- */

/* A hunt for what differs from one's own, which is nothing: all that is proven is one's own. */
static enum status open_own(struct conviction *conviction, struct hunt *hunt, struct teller *own,
                            const struct record_given *given, struct error *error)
{
    const struct hunt_case itself = {.trace_root = own->trace.root,
                                     .state_root = own->trace.state_root,
                                     .next_root = own->trace.next_root};
    enum status status = hunt_open(hunt, own, &itself, error);

    init(conviction, hunt, given);
    return status;
}

static enum status tell_parts(struct buffer *bytes, struct teller *own,
                              const struct record_given *given, const struct ask *ask,
                              struct error *error)
{
    struct conviction conviction;
    struct hunt hunt;
    enum status status = ask_check(ask, own->tape, error);

    if (status != STATUS_OK) {
        return status;
    }
    status = open_own(&conviction, &hunt, own, given, error);
    trace_output_at(&conviction.target.op, &conviction.target.output, own->tape, ask->item);
    conviction.target.element = ask->index;
    if (status == STATUS_OK) {
        status = keep_operands(&conviction, error);
    }
    if (status == STATUS_OK) {
        status = evidence_parts(bytes, own->tape, &conviction.source, &conviction.target, error);
    }
    conviction_close(&conviction);
    hunt_close(&hunt);
    return status;
}

enum status conviction_not_finite(struct buffer *bytes, struct teller *own, struct error *error)
{
    struct conviction conviction;
    struct hunt hunt;
    uint64_t element = 0;
    uint32_t state = 0;
    enum status status = teller_diverged(&state, &element, own, error);

    if (status == STATUS_OK) {
        status = teller_keep(own, &own->next_items[state], 1, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = open_own(&conviction, &hunt, own, NULL, error);
    if (status == STATUS_OK) {
        status =
            evidence_write_not_finite(bytes, own->tape, &conviction.source, state, element, error);
    }
    conviction_close(&conviction);
    hunt_close(&hunt);
    return status;
}

static enum status tell_tree(struct buffer *bytes, struct teller *own, const struct ask *ask,
                             struct error *error)
{
    uint8_t told[TELL_BYTES_MAX];
    size_t size;
    enum status status = teller_answer(told, &size, own, ask, error);

    buffer_add(bytes, told, size);
    return status;
}

enum status conviction_tell(struct buffer *bytes, struct teller *own,
                            const struct record_given *given, const struct ask *ask,
                            struct error *error)
{
    enum status status = STATUS_OK;

    switch (ask->kind) {
    case ASK_LIST:
    case ASK_LIST_NODE:
    case ASK_TENSOR:
    case ASK_TENSOR_NODE:
        status = tell_tree(bytes, own, ask, error);
        break;
    case ASK_DIVERGED:
        status = conviction_not_finite(bytes, own, error);
        break;
    case ASK_PARTS:
        status = tell_parts(bytes, own, given, ask, error);
        break;
    }
    return status == STATUS_OK ? buffer_check(bytes, error, "an answer") : status;
}
