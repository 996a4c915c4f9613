/* trace.c - see trace.h. */
#include "proofs/commit/trace.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/reader.h"
#include "proofs/commit/element.h"
#include "proofs/hash/sha256.h"

/* ---- which item is which ------------------------------------------------ */

uint32_t trace_item_count(const struct tape *tape)
{
    uint32_t count = tape->state_count;
    struct repeat_layout layout;

    repeat_layout_of(&layout, tape);
    if (layout.times > 0) {
        return layout.list + layout.times * layout.inner; /* at most REPEAT_ITEMS_MAX */
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        count += tape->ops[at].output_count;
    }
    return count;
}

uint32_t trace_list_count(const struct tape *tape)
{
    struct repeat_layout layout;

    repeat_layout_of(&layout, tape);
    return layout.times > 0 ? layout.list : trace_item_count(tape);
}

void trace_place_of(struct trace_place *place, const struct repeat_layout *layout, uint32_t item,
                    uint32_t list_count)
{
    *place = (struct trace_place){.batch = TENSOR_NONE, .index = item, .count = list_count};
    if (item >= list_count) {
        place->batch = (item - list_count) / layout->inner;
        place->index = (item - list_count) % layout->inner;
        place->count = layout->inner;
        place->first = item - place->index;
    }
}

uint32_t trace_item_of_output(const struct tape *tape, struct op_turn maker, uint32_t output)
{
    uint32_t item = tape->state_count;

    assert(maker.op < tape->op_count && output < tape->ops[maker.op].output_count);
    if (tape->items != NULL) {
        struct repeat_layout layout;

        repeat_layout_of(&layout, tape);
        return repeat_turn_item(&layout, tape->items[tape->ops[maker.op].outputs[output]],
                                maker.turn);
    }
    for (uint32_t at = 0; at < maker.op; at++) {
        item += tape->ops[at].output_count;
    }
    return item + output;
}

/* The turn of a loop that makes an item; 0 outside of loops. */
static uint32_t turn_of(const struct repeat_layout *layout, uint32_t item)
{
    uint32_t batch;

    if (!repeat_holds(&batch, layout, item) || batch == TENSOR_NONE || batch % layout->group < 2) {
        return 0;
    }
    return batch % layout->group - 1;
}

void trace_output_at(struct op_turn *maker, uint32_t *output, const struct tape *tape,
                     uint32_t item)
{
    uint32_t next = tape->state_count;
    struct repeat_layout layout;

    repeat_layout_of(&layout, tape);
    maker->turn = turn_of(&layout, item);
    for (maker->op = 0; maker->op < tape->op_count; maker->op++) {
        const struct op *op = &tape->ops[maker->op];

        for (*output = 0; *output < op->output_count; ++*output, next++) {
            uint32_t own =
                tape->items == NULL
                    ? next
                    : repeat_turn_item(&layout, tape->items[op->outputs[*output]], maker->turn);

            if (own == item && maker->turn < tape_turns(tape, maker->op)) {
                return;
            }
        }
    }
    assert(!"an output's item");
}

bool trace_is_before(const struct tape *tape, uint32_t a, uint32_t b)
{
    struct op_turn makers[2];
    uint32_t outputs[2];
    const struct loop *loop;

    trace_output_at(&makers[0], &outputs[0], tape, a);
    trace_output_at(&makers[1], &outputs[1], tape, b);
    loop = tape_loop_of(tape, makers[0].op);
    if (loop != NULL && loop == tape_loop_of(tape, makers[1].op) &&
        makers[0].turn != makers[1].turn) {
        return makers[0].turn < makers[1].turn;
    }
    return makers[0].op < makers[1].op || (makers[0].op == makers[1].op && outputs[0] < outputs[1]);
}

uint32_t trace_tensor_at(const struct tape *tape, uint32_t item)
{
    struct op_turn maker;
    uint32_t output;

    if (item < tape->state_count) {
        return tape->states[item].before;
    }
    trace_output_at(&maker, &output, tape, item);
    return tape->ops[maker.op].outputs[output];
}

/* ---- making ------------------------------------------------------------- */

struct recorder {
    struct trace *trace;
    struct trace_opening *openings;
    uint32_t opening_count;
    uint32_t next;                       /* how many tensors have passed */
    const struct trace_watcher *watcher; /* or NULL */
    int threads;                         /* of the machine */
    bool again;                          /* `batch` alone is hashed, of a trace that is there */
    uint32_t batch;                      /* a micro-batch that is hashed, ALL or TENSOR_NONE */
};

#define ALL (TENSOR_NONE - 1)

static void open_leaf(struct trace_opening *opening, const struct tensor *tensor, const void *bytes,
                      int threads)
{
    uint64_t size = commit_tensor_size(tensor);
    uint64_t leaf = opening->element * dtype_size(tensor->dtype) / MERKLE_LEAF_SIZE;
    uint64_t start = leaf * MERKLE_LEAF_SIZE;
    uint64_t length = size - start < MERKLE_LEAF_SIZE ? size - start : MERKLE_LEAF_SIZE;
    struct merkle_leaves leaves;
    struct digest leaves_root;

    memset(opening->leaf, 0, sizeof(opening->leaf));
    memcpy(opening->leaf, (const uint8_t *)bytes + start, length);
    merkle_leaves_init_bytes(&leaves, bytes, size);
    leaves.threads = threads;
    merkle_path_build(&opening->leaf_path, &leaves, leaf);
    merkle_root(&leaves_root, &leaves);
    opening->header_size =
        (uint32_t)commit_tensor_header(opening->header, COMMIT_TENSOR, tensor, &leaves_root);
}

/* Is the root of an item wanted? */
static bool hashes_item(const struct recorder *recorder, uint32_t item)
{
    const struct trace *trace = recorder->trace;
    struct trace_place place;
    struct trace_place other;

    trace_place_of(&place, &trace->layout, item, trace->list_count);
    if (place.batch == TENSOR_NONE) {
        return !recorder->again;
    }
    for (uint32_t i = 0; i < recorder->opening_count; i++) {
        trace_place_of(&other, &trace->layout, recorder->openings[i].item, trace->list_count);
        if (other.batch == place.batch) {
            return true;
        }
    }
    return recorder->batch == ALL || recorder->batch == place.batch;
}

/* Must an item be shown? One that is opened is of a list that is hashed. */
static bool is_wanted(const struct recorder *recorder, uint32_t item)
{
    const struct trace_watcher *watcher = recorder->watcher;

    return hashes_item(recorder, item) ||
           (watcher != NULL && (watcher->wants == NULL || watcher->wants(watcher->context, item)));
}

static enum status record_item(struct recorder *recorder, uint32_t item,
                               const struct tensor *tensor, const void *bytes, struct error *error)
{
    struct trace *trace = recorder->trace;

    recorder->next++;
    if (hashes_item(recorder, item)) {
        commit_tensor_root(&trace->items[item], COMMIT_TENSOR, tensor, bytes, recorder->threads);
    }
    for (uint32_t i = 0; i < recorder->opening_count; i++) {
        if (recorder->openings[i].item == item) {
            open_leaf(&recorder->openings[i], tensor, bytes, recorder->threads);
        }
    }
    if (recorder->watcher == NULL) {
        return STATUS_OK;
    }
    return recorder->watcher->pass(recorder->watcher->context, item, tensor, bytes, error);
}

/* The item of an output that a machine shows. Without a repeat they pass in order. */
static uint32_t shown_item(const struct recorder *recorder, struct op_turn maker, uint32_t output)
{
    const struct trace *trace = recorder->trace;
    const struct tape *tape = trace->tape;

    return tape->items == NULL
               ? recorder->next
               : repeat_turn_item(&trace->layout, tape->items[tape->ops[maker.op].outputs[output]],
                                  maker.turn);
}

static enum status take_output(void *context, struct op_turn maker, uint32_t output,
                               const void *bytes, uint64_t size, struct error *error)
{
    struct recorder *recorder = context;
    const struct tape *tape = recorder->trace->tape;
    const struct tensor *tensor = &tape->tensors[tape->ops[maker.op].outputs[output]];

    assert(size == commit_tensor_size(tensor));
    return record_item(recorder, shown_item(recorder, maker, output), tensor, bytes, error);
}

/* Without a repeat all items are hashed, and passed in order. */
static bool wants_output(const void *context, struct op_turn maker, uint32_t output)
{
    const struct recorder *recorder = context;

    return recorder->trace->tape->items == NULL ||
           is_wanted(recorder, shown_item(recorder, maker, output));
}

static enum status take_state(void *context, const struct tensor *tensor, const void *bytes,
                              struct error *error)
{
    struct recorder *recorder = context;

    return record_item(recorder, recorder->next, tensor, bytes, error);
}

/* Operations stand in order, so one pass finds the items of all tensors: behind a loop, of its last
 * turn. */
enum status trace_next_items(uint32_t **items, const struct tape *tape, struct error *error)
{
    uint32_t *of_tensor = malloc(((size_t)tape->tensor_count + 1) * sizeof(*of_tensor));
    uint32_t *next = calloc((size_t)tape->state_count + 1, sizeof(*next));
    struct repeat_layout layout;

    *items = next;
    if (of_tensor == NULL || next == NULL) {
        free(of_tensor);
        free(next);
        *items = NULL;
        return error_set(error, STATUS_NO_MEMORY, "no memory for a trace");
    }
    /* A tensor that no operation changes is still the state that it was. */
    for (uint32_t item = 0; item < tape->state_count; item++) {
        of_tensor[tape->states[item].before] = item;
    }
    repeat_layout_of(&layout, tape);
    for (uint32_t item = tape->state_count, at = 0; at < tape->op_count; at++) {
        const uint32_t last = tape_turns(tape, at) - 1;

        for (uint32_t i = 0; i < tape->ops[at].output_count; i++, item++) {
            uint32_t id = tape->ops[at].outputs[i];

            of_tensor[id] =
                tape->items == NULL ? item : repeat_turn_item(&layout, tape->items[id], last);
        }
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        next[i] = of_tensor[tape->states[i].after];
    }
    free(of_tensor);
    return STATUS_OK;
}

/* The next state's root, from the items: a next value has its state's name and shape, so their
 * roots are computed alike. */
static enum status find_next_root(struct trace *trace, struct error *error)
{
    struct commit_roots roots;
    uint32_t *items;
    enum status status = STATUS_OK;

    TRY(trace_next_items(&items, trace->tape, error));
    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (uint32_t i = 0; i < trace->state_count; i++) {
        TRY_OUT(commit_roots_add(&roots, &trace->items[items[i]]));
    }
    commit_roots_end(&roots, &trace->next_root);
out:
    free(items);
    return status;
}

static void hash_items(struct trace *trace, uint32_t first, uint32_t count)
{
    for (uint32_t item = first; item < first + count; item++) {
        merkle_leaf_hash(&trace->hashes[item], trace->items[item].bytes, DIGEST_SIZE);
    }
}

static void finish_trace(struct trace *trace, struct trace_opening *openings,
                         uint32_t opening_count)
{
    hash_items(trace, 0, trace->list_count);
    for (uint32_t batch = 0; trace->layout.inner > 0 && batch < trace->layout.times; batch++) {
        if (trace_batch_known(trace, batch)) {
            hash_items(trace, trace->list_count + batch * trace->layout.inner, trace->layout.inner);
        }
    }
    commit_list_root(&trace->root, COMMIT_TRACE, 0, trace->items, trace->list_count);
    commit_list_root(&trace->state_root, COMMIT_STATE, 0, trace->items, trace->state_count);
    for (uint32_t i = 0; i < opening_count; i++) {
        struct merkle_leaves leaves;
        struct trace_place place;

        trace_place_of(&place, &trace->layout, openings[i].item, trace->list_count);
        merkle_leaves_init_hashes(&leaves, trace->hashes + place.first, place.count);
        merkle_path_build(&openings[i].item_path, &leaves, place.index);
    }
}

bool trace_batch_known(const struct trace *trace, uint32_t batch)
{
    static const struct digest unknown;
    size_t first = trace->list_count + (size_t)batch * trace->layout.inner;

    return !digest_equal(&trace->items[first], &unknown);
}

void trace_batch_root(struct digest *root, const struct trace *trace, uint32_t batch)
{
    const struct repeat_layout *layout = &trace->layout;

    assert(trace_batch_known(trace, batch));
    commit_list_root(root, COMMIT_BATCH, batch,
                     trace->items + trace->list_count + (size_t)batch * layout->inner,
                     layout->inner);
}

/* A trace without roots. */
static enum status trace_init(struct trace *trace, const struct tape *tape, struct error *error)
{
    *trace = (struct trace){.tape = tape,
                            .state_count = tape->state_count,
                            .list_count = trace_list_count(tape),
                            .item_count = trace_item_count(tape)};
    repeat_layout_of(&trace->layout, tape);
    trace->items = calloc((size_t)trace->item_count + 1, 2 * sizeof(*trace->items));
    if (trace->items == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a trace of %u tensors",
                         trace->item_count);
    }
    trace->hashes = trace->items + trace->item_count;
    return STATUS_OK;
}

enum status trace_of_roots(struct trace *trace, const struct tape *tape, const uint8_t *roots,
                           struct error *error)
{
    enum status status;

    status = trace_init(trace, tape, error);
    if (status != STATUS_OK) {
        return status;
    }
    memcpy(trace->items, roots, (size_t)trace->item_count * DIGEST_SIZE);
    status = find_next_root(trace, error);
    if (status != STATUS_OK) {
        trace_release(trace);
        return status;
    }
    finish_trace(trace, NULL, 0);
    return STATUS_OK;
}

static enum status run_recorder(struct recorder *recorder, struct machine *machine,
                                struct error *error)
{
    const struct tape *tape = machine->tape;
    struct observer observer = {.made = take_output, .context = recorder, .wants = wants_output};
    enum status status = STATUS_OK;

    recorder->threads = machine->thread_count;
    for (uint32_t i = 0; i < tape->state_count && status == STATUS_OK; i++) {
        status = state_root_visit(machine, tape->states[i].before, take_state, recorder, error);
    }
    TRY(status);
    TRY(machine->backend->step(machine, &observer, error));
    assert(tape->items != NULL || recorder->next == recorder->trace->item_count);
    return STATUS_OK;
}

static enum status run_step(struct recorder *recorder, struct machine *machine, struct error *error)
{
    const struct tape *tape = machine->tape;
    struct trace *trace = recorder->trace;
    enum status status = STATUS_OK;

    trace->items = NULL;
    for (uint32_t i = 0; i < recorder->opening_count; i++) {
        const struct trace_opening *opening = &recorder->openings[i];

        if (opening->item >= trace_item_count(tape) ||
            opening->element >= tape->tensors[trace_tensor_at(tape, opening->item)].count) {
            return error_set(error, STATUS_USAGE, "item %u of the trace has no element %llu",
                             opening->item, (unsigned long long)opening->element);
        }
    }
    TRY_OUT(trace_init(trace, tape, error));
    TRY_OUT(run_recorder(recorder, machine, error));
    TRY_OUT(find_next_root(trace, error));
    finish_trace(trace, recorder->openings, recorder->opening_count);
out:
    if (status != STATUS_OK) {
        trace_release(trace);
    }
    return status;
}

enum status trace_run(struct trace *trace, struct machine *machine, struct trace_opening *openings,
                      uint32_t opening_count, struct error *error)
{
    struct recorder recorder = {
        .trace = trace, .openings = openings, .opening_count = opening_count, .batch = TENSOR_NONE};

    return run_step(&recorder, machine, error);
}

enum status trace_watch(struct trace *trace, struct machine *machine,
                        const struct trace_watcher *watcher, struct error *error)
{
    struct recorder recorder = {.trace = trace, .watcher = watcher, .batch = TENSOR_NONE};

    return run_step(&recorder, machine, error);
}

enum status trace_watch_all(struct trace *trace, struct machine *machine,
                            const struct trace_watcher *watcher, struct error *error)
{
    struct recorder recorder = {.trace = trace, .watcher = watcher, .batch = ALL};

    return run_step(&recorder, machine, error);
}

enum status trace_watch_batch(struct trace *trace, uint32_t batch, struct machine *machine,
                              const struct trace_watcher *watcher, struct error *error)
{
    struct recorder recorder = {.trace = trace, .watcher = watcher, .again = true, .batch = batch};

    TRY(run_recorder(&recorder, machine, error));
    finish_trace(trace, NULL, 0);
    return STATUS_OK;
}

void trace_release(struct trace *trace)
{
    free(trace->items);
    trace->items = NULL;
    trace->hashes = NULL;
}

void trace_node(struct digest *node, const struct trace *trace, uint32_t level, uint64_t index)
{
    struct merkle_leaves leaves;

    merkle_leaves_init_hashes(&leaves, trace->hashes, trace->list_count);
    merkle_node(node, &leaves, level, index);
}

/* ---- openings ----------------------------------------------------------- */

enum verdict trace_opening_check(uint32_t *bits, const struct trace_opening *opening,
                                 const struct digest *root, const struct tape *tape)
{
    struct repeat_layout layout;
    struct trace_place list;
    struct tensor tensor;
    enum commit_array kind;
    struct digest leaves_root;
    struct digest item;
    uint64_t place;
    bool inner;

    if (opening->item >= trace_item_count(tape)) {
        return VERDICT_INVALID;
    }
    repeat_layout_of(&layout, tape);
    trace_place_of(&list, &layout, opening->item, trace_list_count(tape));
    /* What a micro-batch keeps to itself is a place of its own list, under the batch's root. */
    inner = list.batch != TENSOR_NONE;
    if (commit_tensor_header_read(&tensor, &kind, &leaves_root, opening->header,
                                  opening->header_size) != STATUS_OK ||
        kind != COMMIT_TENSOR || opening->element >= tensor.count) {
        return VERDICT_INVALID;
    }
    place = opening->element * dtype_size(tensor.dtype);
    /* Both paths prove a place: it must be the one that was asked about, and the count the
     * tape's. */
    if (opening->leaf_path.leaf_index != place / MERKLE_LEAF_SIZE ||
        opening->item_path.leaf_index != list.index ||
        opening->item_path.leaf_count != list.count) {
        return VERDICT_INVALID;
    }
    sha256(&item, opening->header, opening->header_size);
    if (commit_leaf_check(&item, opening->header, opening->header_size, opening->leaf,
                          &opening->leaf_path) != VERDICT_VALID ||
        commit_item_check(root, inner ? COMMIT_BATCH : COMMIT_TRACE, inner ? list.batch : 0,
                          item.bytes, DIGEST_SIZE, &opening->item_path) != VERDICT_VALID) {
        return VERDICT_INVALID;
    }
    *bits = element_bits(opening->leaf + place % MERKLE_LEAF_SIZE, tensor.dtype);
    return VERDICT_VALID;
}

/* docs/FORMATS.md, opening: behind the item, of four bytes. */
enum { OPENING_ELEMENT = 4, OPENING_LEAF = 12 };

size_t trace_opening_write(uint8_t bytes[TRACE_OPENING_BYTES_MAX],
                           const struct trace_opening *opening)
{
    const struct merkle_path *paths[2] = {&opening->leaf_path, &opening->item_path};
    uint8_t *at = bytes;

    endian_store_be32(at, opening->item);
    endian_store_be64(at + OPENING_ELEMENT, opening->element);
    memcpy(at + OPENING_LEAF, opening->leaf, MERKLE_LEAF_SIZE);
    at += OPENING_LEAF + MERKLE_LEAF_SIZE;
    endian_store_be16(at, (uint16_t)opening->header_size);
    memcpy(at + 2, opening->header, opening->header_size);
    at += 2 + opening->header_size;
    for (int i = 0; i < 2; i++) {
        size_t size = merkle_path_write(at + 2, paths[i]);

        endian_store_be16(at, (uint16_t)size);
        at += 2 + size;
    }
    return (size_t)(at - bytes);
}

enum status trace_opening_read(struct trace_opening *opening, const uint8_t *bytes, size_t size)
{
    struct merkle_path *paths[2] = {&opening->leaf_path, &opening->item_path};
    struct reader reader;

    reader_init(&reader, bytes, size);
    memset(opening, 0, sizeof(*opening));
    opening->item = reader_u32(&reader);
    opening->element = reader_u64(&reader);
    reader_copy(&reader, opening->leaf, MERKLE_LEAF_SIZE);
    opening->header_size = reader_u16(&reader);
    if (opening->header_size > COMMIT_TENSOR_HEADER_MAX) {
        return STATUS_BAD_FORMAT;
    }
    reader_copy(&reader, opening->header, opening->header_size);
    for (int i = 0; i < 2; i++) {
        size_t length = reader_u16(&reader);
        const uint8_t *path = reader_take(&reader, length);

        TRY(path == NULL ? STATUS_BAD_FORMAT : merkle_path_read(paths[i], path, length));
    }
    return reader_end(&reader, NULL, "opening");
}
