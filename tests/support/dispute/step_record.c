/* step_record.c - see step_record.h. */
#include "tests/support/dispute/step_record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ------------------------------------------------------------- */

struct keeper {
    struct record *record;
    uint32_t op;
};

static bool touches(const struct record *record, uint32_t op, uint32_t item)
{
    struct descriptor descriptor;

    if (op == RECORD_ALL) {
        return true;
    }
    descriptor_of_turn(&descriptor, &record->places, (struct op_turn){op, 0});
    for (uint32_t i = 0; i < descriptor.operand_count; i++) {
        enum role role = descriptor.operands[i].role;

        if (role != ROLE_DATA && role != ROLE_CONSTANT && descriptor.operands[i].place == item) {
            return true;
        }
    }
    return false;
}

static enum status keep(void *context, uint32_t item, const struct tensor *tensor,
                        const void *bytes, struct error *error)
{
    struct keeper *keeper = context;
    uint64_t size = commit_tensor_size(tensor);

    if (!touches(keeper->record, keeper->op, item)) {
        return STATUS_OK;
    }
    keeper->record->kept[item] = malloc(size);
    if (keeper->record->kept[item] == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to keep the %llu bytes of '%s'",
                         (unsigned long long)size, tensor->name);
    }
    memcpy(keeper->record->kept[item], bytes, size);
    return STATUS_OK;
}

static enum status run(struct record *record, struct machine *machine, uint32_t op,
                       struct error *error)
{
    const struct tape *tape = record->tape;
    struct keeper keeper = {record, op};
    struct trace_watcher watcher = {.pass = keep, .context = &keeper};
    enum status status = descriptor_places_find(&record->places, tape, error);

    if (status != STATUS_OK) {
        return status;
    }
    record->kept = calloc((size_t)trace_item_count(tape) + 1, sizeof(*record->kept));
    record->after = malloc(((size_t)tape->state_count + 1) * sizeof(*record->after));
    if (record->kept == NULL || record->after == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a record of %u tensors",
                         trace_item_count(tape));
    }
    status = trace_watch_all(&record->trace, machine, &watcher, error);
    for (uint32_t i = 0; i < tape->state_count && status == STATUS_OK; i++) {
        record->after[i] = record->trace.items[record->places.of[tape->states[i].after]];
    }
    return status;
}

enum status record_run(struct record *record, struct machine *machine,
                       const struct evidence_given *given, uint32_t op, struct error *error)
{
    enum status status;

    *record = (struct record){.tape = machine->tape, .given = *given};
    status = run(record, machine, op, error);
    if (status != STATUS_OK) {
        record_release(record);
    }
    return status;
}

void record_release(struct record *record)
{
    uint32_t count = record->kept == NULL ? 0 : trace_item_count(record->tape);

    for (uint32_t item = 0; item < count; item++) {
        free(record->kept[item]);
    }
    free(record->kept);
    free(record->after);
    trace_release(&record->trace);
    descriptor_places_release(&record->places);
    memset(record, 0, sizeof(*record));
}

/* ---- as a source -------------------------------------------------------- */

enum evidence_list record_place(uint32_t *item, const struct record *record, struct op_turn maker,
                                uint32_t number)
{
    struct descriptor descriptor;
    enum role role;

    descriptor_of_turn(&descriptor, &record->places, maker);
    *item = descriptor.operands[number].place;
    role = descriptor.operands[number].role;
    return role == ROLE_DATA       ? EVIDENCE_DATA
           : role == ROLE_CONSTANT ? EVIDENCE_CONSTANTS
                                   : EVIDENCE_TRACE;
}

/* The tensor of the tape with number `item` among those of its role. */
static const struct tensor *tensor_of_role(const struct record *record, enum role role,
                                           uint32_t item)
{
    for (uint32_t id = 0; id < record->tape->tensor_count; id++) {
        if (record->tape->tensors[id].role == role && record->places.of[id] == item) {
            return &record->tape->tensors[id];
        }
    }
    assert(!"a tensor of that role");
    return NULL;
}

static enum status tensor_at(const struct tensor **tensor, const uint8_t **bytes,
                             const struct record *record, enum evidence_list list, uint32_t item,
                             struct error *error)
{
    const struct tape *tape = record->tape;
    uint32_t traced = item;

    *bytes = NULL;
    switch (list) {
    case EVIDENCE_DATA:
        *tensor = tensor_of_role(record, ROLE_DATA, item);
        *bytes = record->given.data[item];
        break;
    case EVIDENCE_CONSTANTS:
        *tensor = tensor_of_role(record, ROLE_CONSTANT, item);
        *bytes = record->given.constants[item];
        break;
    case EVIDENCE_AFTER:
        traced = record->places.of[tape->states[item].after];
        *tensor = &tape->tensors[tape->states[item].after];
        *bytes = record->kept[traced];
        break;
    case EVIDENCE_BEFORE:
    case EVIDENCE_TRACE:
    case EVIDENCE_BATCH:
        *tensor = &tape->tensors[trace_tensor_at(tape, item)];
        *bytes = record->kept[item];
        break;
    }
    if (*bytes == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "the record kept nothing of '%s'",
                         (*tensor)->name);
    }
    return STATUS_OK;
}

static enum status item_of(void *context, struct digest *root, enum evidence_list list,
                           uint32_t item, struct error *error)
{
    const struct record *record = context;

    (void)error;
    switch (list) {
    case EVIDENCE_TRACE:
    case EVIDENCE_BEFORE:
    case EVIDENCE_BATCH:
        *root = record->trace.items[item];
        break;
    case EVIDENCE_AFTER:
        *root = record->after[item];
        break;
    case EVIDENCE_DATA:
        *root = record->given.data_roots[item];
        break;
    case EVIDENCE_CONSTANTS:
        commit_tensor_root(root, COMMIT_TENSOR, tensor_of_role(record, ROLE_CONSTANT, item),
                           record->given.constants[item], 0);
        break;
    }
    return STATUS_OK;
}

static uint32_t item_count(const struct record *record, enum evidence_list list)
{
    uint32_t count = 0;

    switch (list) {
    case EVIDENCE_TRACE:
        return record->trace.list_count;
    case EVIDENCE_BATCH:
        return record->trace.layout.inner;
    case EVIDENCE_BEFORE:
    case EVIDENCE_AFTER:
        return record->tape->state_count;
    case EVIDENCE_DATA:
    case EVIDENCE_CONSTANTS:
        for (uint32_t id = 0; id < record->tape->tensor_count; id++) {
            count += record->tape->tensors[id].role ==
                     (list == EVIDENCE_DATA ? ROLE_DATA : ROLE_CONSTANT);
        }
        return count;
    }
    return 0;
}

static enum status list_node(void *context, struct digest *node, enum evidence_list list,
                             uint32_t batch, uint32_t level, uint64_t index, struct error *error)
{
    struct record *record = context;
    uint32_t count = item_count(record, list);
    uint32_t first = list == EVIDENCE_BATCH ? record->trace.list_count + batch * count : 0;
    struct digest *hashes;
    struct merkle_leaves leaves;

    if (list == EVIDENCE_TRACE) {
        trace_node(node, &record->trace, level, index);
        return STATUS_OK;
    }
    hashes = malloc(((size_t)count + 1) * sizeof(*hashes));
    if (hashes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of %u", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct digest root;
        enum status status = item_of(record, &root, list, first + i, error);

        assert(status == STATUS_OK);
        merkle_leaf_hash(&hashes[i], root.bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, count);
    merkle_node(node, &leaves, level, index);
    free(hashes);
    return STATUS_OK;
}

static enum status tensor_node(void *context, struct digest *node, enum evidence_list list,
                               uint32_t item, uint32_t level, uint64_t index, struct error *error)
{
    const struct tensor *tensor;
    const uint8_t *bytes;
    struct merkle_leaves leaves;
    enum status status = tensor_at(&tensor, &bytes, context, list, item, error);

    if (status == STATUS_OK) {
        merkle_leaves_init_bytes(&leaves, bytes, commit_tensor_size(tensor));
        merkle_node(node, &leaves, level, index);
    }
    return status;
}

static enum status leaf_of(void *context, uint8_t leaf[MERKLE_LEAF_SIZE], enum evidence_list list,
                           uint32_t item, uint64_t leaf_index, struct error *error)
{
    const struct tensor *tensor;
    const uint8_t *bytes;
    enum status status = tensor_at(&tensor, &bytes, context, list, item, error);

    if (status == STATUS_OK) {
        uint64_t start = leaf_index * MERKLE_LEAF_SIZE;
        uint64_t left = commit_tensor_size(tensor) - start;

        memset(leaf, 0, MERKLE_LEAF_SIZE);
        memcpy(leaf, bytes + start, left < MERKLE_LEAF_SIZE ? left : MERKLE_LEAF_SIZE);
    }
    return status;
}

void record_source(struct evidence_source *source, struct record *record)
{
    *source = (struct evidence_source){.context = record,
                                       .item = item_of,
                                       .list_node = list_node,
                                       .tensor_node = tensor_node,
                                       .leaf = leaf_of};
}
