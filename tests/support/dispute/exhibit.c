/* exhibit.c - see exhibit.h. */
#include "tests/support/dispute/exhibit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rules/rule.h"
#include "proofs/commit/element.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/small_model.h"

static void insist(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fprintf(stderr, "exhibit: %s\n", error->text);
        abort();
    }
}

static void *room(size_t count, size_t size)
{
    void *bytes = calloc(count + 1, size);

    if (bytes == NULL) {
        fprintf(stderr, "exhibit: no memory\n");
        abort();
    }
    return bytes;
}

/* ---- roots -------------------------------------------------------------- */

static void find_lists(struct exhibit *exhibit)
{
    struct record *record = &exhibit->record;
    struct trace *trace = &record->trace;

    for (uint32_t item = 0; item < trace->item_count; item++) {
        merkle_leaf_hash(&trace->hashes[item], trace->items[item].bytes, DIGEST_SIZE);
    }
    commit_list_root(&trace->root, COMMIT_TRACE, 0, trace->items, trace->list_count);
    exhibit->context.trace = trace->root;
    commit_list_root(&exhibit->context.before, COMMIT_STATE, 0, trace->items, trace->state_count);
    commit_list_root(&exhibit->context.after, COMMIT_STATE, 0, record->after, trace->state_count);
}

static void find_item(struct exhibit *exhibit, uint32_t item)
{
    const struct tensor *tensor = &exhibit->tape->tensors[trace_tensor_at(exhibit->tape, item)];

    commit_tensor_root(&exhibit->record.trace.items[item], COMMIT_TENSOR, tensor,
                       exhibit->record.kept[item], 1);
}

void exhibit_changed(struct exhibit *exhibit, uint32_t item)
{
    find_item(exhibit, item);
    for (uint32_t i = 0; i < exhibit->tape->state_count; i++) {
        uint32_t after = exhibit->record.places.of[exhibit->tape->states[i].after];

        if (after == item) {
            exhibit->record.after[i] = exhibit->record.trace.items[item];
        }
    }
    find_lists(exhibit);
}

/* Roots of what the job gives: program, data, constants. */
static void find_given(struct exhibit *exhibit)
{
    const struct tape *tape = exhibit->tape;
    struct digest *constants = room(tape->tensor_count, sizeof(*constants));
    uint32_t constant = 0;
    uint32_t data = 0;
    struct error error;

    error_init(&error);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];

        if (tensor->role == ROLE_CONSTANT) {
            commit_tensor_root(&constants[constant], COMMIT_TENSOR, tensor,
                               exhibit->constants[constant], 1);
            constant++;
        } else if (tensor->role == ROLE_DATA) {
            commit_tensor_root(&exhibit->data_roots[data], COMMIT_DATA, tensor, exhibit->data[data],
                               1);
            data++;
        }
    }
    commit_list_root(&exhibit->context.constants, COMMIT_STATE, 0, constants, constant);
    commit_list_root(&exhibit->context.data, COMMIT_STATE, 0, exhibit->data_roots, data);
    insist(descriptor_program_root(&exhibit->context.program, tape, &error), &error);
    free(constants);
}

static void begin(struct exhibit *exhibit, struct tape *tape)
{
    *exhibit = (struct exhibit){.tape = tape};
    exhibit->data = room(tape->tensor_count, sizeof(*exhibit->data));
    exhibit->constants = room(tape->tensor_count, sizeof(*exhibit->constants));
    exhibit->data_roots = room(tape->tensor_count, sizeof(*exhibit->data_roots));
}

static struct evidence_given given_of(const struct exhibit *exhibit)
{
    return (struct evidence_given){.data = (const void *const *)exhibit->data,
                                   .data_roots = exhibit->data_roots,
                                   .constants = (const void *const *)exhibit->constants};
}

static void *copy_of(const void *bytes, const struct tensor *tensor)
{
    void *copy = room(commit_tensor_size(tensor), 1);

    memcpy(copy, bytes, commit_tensor_size(tensor));
    return copy;
}

/* ---- honest ones -------------------------------------------------------- */

static void run_step(struct exhibit *exhibit, struct machine *machine)
{
    struct evidence_given given = given_of(exhibit);
    struct error error;

    error_init(&error);
    find_given(exhibit);
    insist(record_run(&exhibit->record, machine, &given, RECORD_ALL, &error), &error);
    record_source(&exhibit->source, &exhibit->record);
    find_lists(exhibit);
}

/* The tape must outlive the model that it comes from. */
static struct tape *tape_copy(const struct tape *tape)
{
    uint64_t size = tape_encoded_size(tape);
    uint8_t *bytes = room(size, 1);
    struct tape *copy = NULL;
    struct error error;

    error_init(&error);
    tape_encode(bytes, tape);
    insist(tape_parse(&copy, bytes, size, &error), &error);
    free(bytes);
    return copy;
}

void exhibit_of_model(struct exhibit *exhibit, enum model_kind kind, uint32_t steps)
{
    exhibit_of_repeat(exhibit, kind, 1, 1, steps);
}

void exhibit_of_repeat(struct exhibit *exhibit, enum model_kind kind, uint32_t times,
                       uint32_t group, uint32_t steps)
{
    struct model_options options;

    small_model_options(&options, kind);
    options.accumulate = times;
    options.group = group;
    exhibit_of_options(exhibit, &options, steps);
}

void exhibit_of_options(struct exhibit *exhibit, const struct model_options *options,
                        uint32_t steps)
{
    struct small_model small;
    struct machine *machine;
    uint32_t data = 0;

    small_model_open(&small, options);
    begin(exhibit, tape_copy(small.model.tape));
    for (uint32_t id = 0; id < exhibit->tape->tensor_count; id++) {
        if (exhibit->tape->tensors[id].role == ROLE_DATA) {
            exhibit->data[data++] =
                copy_of(small_model_data(&small, id), &exhibit->tape->tensors[id]);
        }
    }
    for (uint32_t i = 0; i < small.model.constant_count; i++) {
        exhibit->constants[i] = copy_of(small.model.constants[i].bytes,
                                        &exhibit->tape->tensors[small.model.constants[i].tensor]);
    }
    machine = small_machine_open(&small, isa_best(), 1, true);
    machine->tape = exhibit->tape; /* equal, and lives as long as the exhibit */
    small_machine_steps(machine, steps);
    run_step(exhibit, machine);
    machine->tape = small.model.tape;
    machine->backend->close(machine);
    small_model_close(&small);
}

void exhibit_of_tape(struct exhibit *exhibit, uint64_t seed, uint32_t op_count)
{
    struct machine_options options = {.isa = isa_best(), .thread_count = 1, .trace = true};
    struct random_machine random;
    uint32_t data = 0;
    uint32_t constant = 0;

    begin(exhibit, random_tape(seed, op_count));
    for (uint32_t id = 0; id < exhibit->tape->tensor_count; id++) {
        if (exhibit->tape->tensors[id].role == ROLE_DATA) {
            exhibit->data[data++] = random_tape_value(exhibit->tape, id, seed);
        } else if (exhibit->tape->tensors[id].role == ROLE_CONSTANT) {
            exhibit->constants[constant++] = random_tape_value(exhibit->tape, id, seed);
        }
    }
    random_machine_open(&random, exhibit->tape, &options, seed);
    run_step(exhibit, random.machine);
    random_machine_close(&random);
}

/* ---- invented ones ------------------------------------------------------ */

static void invent(struct exhibit *exhibit, enum random_mood mood, uint64_t seed)
{
    const struct tape *tape = exhibit->tape;
    struct record *record = &exhibit->record;
    uint32_t data = 0;
    uint32_t constant = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        void *bytes = random_op_value(tape, id, mood, seed);
        enum role role = tape->tensors[id].role;

        if (role == ROLE_DATA) {
            exhibit->data[data++] = bytes;
        } else if (role == ROLE_CONSTANT) {
            exhibit->constants[constant++] = bytes;
        } else {
            record->kept[record->places.of[id]] = bytes;
        }
    }
    for (uint32_t item = 0; item < record->trace.item_count; item++) {
        find_item(exhibit, item);
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        record->after[i] = record->trace.items[record->places.of[tape->states[i].after]];
    }
}

void exhibit_of_op(struct exhibit *exhibit, struct tape *tape, enum random_mood mood, uint64_t seed)
{
    struct record *record = &exhibit->record;
    struct error error;

    error_init(&error);
    begin(exhibit, tape);
    record->tape = tape;
    record->given = given_of(exhibit);
    insist(descriptor_places_find(&record->places, tape, &error), &error);
    record->trace = (struct trace){.tape = tape,
                                   .state_count = tape->state_count,
                                   .list_count = record->places.trace_items,
                                   .item_count = record->places.trace_items};
    record->trace.items = room((size_t)record->trace.item_count * 2, sizeof(struct digest));
    record->trace.hashes = record->trace.items + record->trace.item_count;
    record->kept = room(record->trace.item_count, sizeof(*record->kept));
    record->after = room(tape->state_count, sizeof(*record->after));
    invent(exhibit, mood, seed);
    find_given(exhibit);
    record_source(&exhibit->source, record);
    find_lists(exhibit);
}

void exhibit_of_kind(struct exhibit *exhibit, enum op_kind kind, enum random_mood mood,
                     uint64_t seed)
{
    exhibit_of_op(exhibit, random_op_tape(kind, seed), mood, seed);
}

void exhibit_close(struct exhibit *exhibit)
{
    for (uint32_t i = 0; i < exhibit->tape->tensor_count; i++) {
        free(exhibit->data[i]);
        free(exhibit->constants[i]);
    }
    free(exhibit->data);
    free(exhibit->constants);
    free(exhibit->data_roots);
    record_release(&exhibit->record);
    tape_free(exhibit->tape);
}

/* ---- elements ----------------------------------------------------------- */

void exhibit_any_target(struct evidence_target *target, const struct exhibit *exhibit,
                        uint64_t *random)
{
    const struct tape *tape = exhibit->tape;
    const struct op *op;

    target->op = (uint32_t)random_op_below(random, tape->op_count);
    op = &tape->ops[target->op];
    target->turn = (uint32_t)random_op_below(random, tape_turns(tape, target->op));
    target->output = (uint32_t)random_op_below(random, op->output_count);

    uint64_t count = tape->tensors[op->outputs[target->output]].count;

    switch (random_op_below(random, 8)) {
    case 0:
        target->element = 0;
        return;
    case 1:
        target->element = count - 1;
        return;
    case 2: /* the first of the last leaf, if that has 256 elements */
        target->element = (count - 1) / 256 * 256;
        return;
    default:
        target->element = random_op_below(random, count);
        return;
    }
}

uint8_t *exhibit_operand(const struct exhibit *exhibit, struct op_turn maker, uint32_t number,
                         const struct tensor **tensor)
{
    const struct op *op = &exhibit->tape->ops[maker.op];
    uint32_t id =
        number < op->input_count ? op->inputs[number] : op->outputs[number - op->input_count];
    uint32_t item;

    *tensor = &exhibit->tape->tensors[id];
    switch (record_place(&item, &exhibit->record, maker, number)) {
    case EVIDENCE_DATA:
        return exhibit->data[item];
    case EVIDENCE_CONSTANTS:
        return exhibit->constants[item];
    case EVIDENCE_TRACE:
    case EVIDENCE_BEFORE:
    case EVIDENCE_AFTER:
    case EVIDENCE_BATCH:
        break;
    }
    return exhibit->record.kept[item];
}

uint32_t exhibit_rule(const struct exhibit *exhibit, const struct evidence_target *target)
{
    const struct op *op = &exhibit->tape->ops[target->op];
    struct rule_call call = {.op = op};
    const struct tensor *tensor = NULL;

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        const void *memory = exhibit_operand(exhibit, evidence_maker(target), i, &tensor);

        *(i < op->input_count ? &call.inputs[i] : &call.outputs[i - op->input_count]) =
            (struct operand){.memory = memory, .dtype = tensor->dtype, .count = tensor->count};
    }
    tensor = &exhibit->tape->tensors[op->outputs[target->output]];
    return element_cut(rule_element(&call, target->output, target->element), tensor->dtype);
}

static uint8_t *place_of(const struct exhibit *exhibit, const struct evidence_target *target,
                         const struct tensor **tensor)
{
    const struct op *op = &exhibit->tape->ops[target->op];
    uint8_t *bytes =
        exhibit_operand(exhibit, evidence_maker(target), op->input_count + target->output, tensor);

    return bytes + target->element * dtype_size((*tensor)->dtype);
}

uint32_t exhibit_get(const struct exhibit *exhibit, const struct evidence_target *target)
{
    const struct tensor *tensor;
    const uint8_t *at = place_of(exhibit, target, &tensor);

    return element_bits(at, tensor->dtype);
}

void exhibit_set(struct exhibit *exhibit, const struct evidence_target *target, uint32_t bits)
{
    const struct tensor *tensor;
    uint8_t *at = place_of(exhibit, target, &tensor);

    memcpy(at, &bits, dtype_size(tensor->dtype));
    exhibit_changed(exhibit,
                    trace_item_of_output(exhibit->tape, evidence_maker(target), target->output));
}

void exhibit_make_right(struct exhibit *exhibit, const struct evidence_target *target)
{
    exhibit_set(exhibit, target, exhibit_rule(exhibit, target));
}

/* ---- evidence ----------------------------------------------------------- */

uint32_t exhibit_batch(const struct exhibit *exhibit, struct op_turn maker)
{
    const struct tape *tape = exhibit->tape;
    uint32_t instance;
    uint32_t item;

    if (exhibit->record.trace.layout.inner == 0) {
        return TENSOR_NONE;
    }
    item = descriptor_of_op(&instance, tape, maker) - tape->brief->repeat.first;
    return item < tape->brief->repeat.op_count ? instance : TENSOR_NONE;
}

void exhibit_evidence(struct buffer *bytes, struct exhibit *exhibit,
                      const struct evidence_target *target)
{
    uint32_t batch = exhibit_batch(exhibit, evidence_maker(target));
    struct error error;

    error_init(&error);
    if (batch != TENSOR_NONE) {
        trace_batch_root(&exhibit->context.batch, &exhibit->record.trace, batch);
    }
    buffer_init(bytes, EVIDENCE_SIZE_MAX);
    insist(evidence_write_element(bytes, exhibit->tape, &exhibit->source, target, EVIDENCE_SIZE_MAX,
                                  &error),
           &error);
}

void exhibit_query(struct buffer *bytes, const struct exhibit *exhibit,
                   const struct evidence_target *target)
{
    struct error error;

    error_init(&error);
    buffer_init(bytes, LEDGER_QUERY_SIZE_MAX);
    insist(ledger_query_write_parts(bytes, exhibit->tape, &exhibit->source, target, NULL, &error),
           &error);
}

void exhibit_parts(struct buffer *reply, const struct exhibit *exhibit,
                   const struct evidence_target *target)
{
    struct error error;

    error_init(&error);
    buffer_init(reply, PARTIAL_SUMS_REPLY_MAX);
    insist(evidence_parts(reply, exhibit->tape, &exhibit->source, target,
                          &(struct partial_sums_range){0}, &error),
           &error);
}

bool exhibit_reply(struct exhibit *exhibit, const struct evidence_target *target,
                   const struct buffer *reply)
{
    uint8_t bytes[LEDGER_QUERIED_SIZE_MAX];
    struct buffer question;
    struct partial_sums_reply read;
    struct ledger_queried queried;

    exhibit_query(&question, exhibit, target);
    if (ledger_query_check(&queried, &exhibit->context, question.data, question.size) !=
        VERDICT_VALID) {
        fprintf(stderr, "exhibit: a question that does not hold\n");
        abort();
    }
    buffer_release(&question);
    partial_sums_reply_hash(&exhibit->context.reply, bytes, ledger_queried_write(bytes, &queried),
                            reply->data, reply->size);
    return partial_sums_check(&read, &queried.parts, reply->data, reply->size) == VERDICT_VALID;
}

void exhibit_part_evidence(struct buffer *bytes, const struct exhibit *exhibit,
                           const struct evidence_target *target, uint32_t part,
                           const struct buffer *reply)
{
    struct error error;

    error_init(&error);
    buffer_init(bytes, EVIDENCE_SIZE_MAX);
    insist(evidence_write_part(bytes, exhibit->tape, &exhibit->source, target,
                               &(struct evidence_part){
                                   .reply = reply->data, .reply_size = reply->size, .number = part},
                               EVIDENCE_SIZE_MAX, &error),
           &error);
}

struct rule_axis exhibit_axis(const struct exhibit *exhibit, const struct evidence_target *target)
{
    struct rule_axis axis;

    rule_axis_of(&axis, &exhibit->tape->ops[target->op], target->output, target->element);
    return axis;
}

struct evidence_ruling exhibit_judge(const struct exhibit *exhibit, const uint8_t *bytes,
                                     size_t size)
{
    struct evidence_ruling ruling;
    struct error error;

    error_init(&error);
    insist(evidence_judge(&ruling, &exhibit->context, bytes, size, &error), &error);
    return ruling;
}

/* ---- states ----------------------------------------------------------------------- */

static enum status apart_item(void *context, struct digest *root, enum evidence_list list,
                              uint32_t item, struct error *error)
{
    const struct exhibit_apart *apart = context;

    if (list == EVIDENCE_BEFORE) {
        *root = apart->before[item];
        return STATUS_OK;
    }
    return apart->honest.item(apart->honest.context, root, list, item, error);
}

static enum status apart_list_node(void *context, struct digest *node, enum evidence_list list,
                                   uint32_t batch, uint32_t level, uint64_t index,
                                   struct error *error)
{
    const struct exhibit_apart *apart = context;
    struct digest hashes[EXHIBIT_STATES_MAX];
    struct merkle_leaves leaves;

    if (list != EVIDENCE_BEFORE) {
        return apart->honest.list_node(apart->honest.context, node, list, batch, level, index,
                                       error);
    }
    for (uint32_t i = 0; i < apart->count; i++) {
        merkle_leaf_hash(&hashes[i], apart->before[i].bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, apart->count);
    merkle_node(node, &leaves, level, index);
    return STATUS_OK;
}

void exhibit_begin_apart(struct exhibit *exhibit, struct exhibit_apart *apart, uint32_t number)
{
    apart->honest = exhibit->source;
    apart->count = exhibit->tape->state_count;
    if (apart->count > EXHIBIT_STATES_MAX) {
        fprintf(stderr, "exhibit: %u states, at most %d\n", apart->count, EXHIBIT_STATES_MAX);
        abort();
    }
    memcpy(apart->before, exhibit->record.trace.items, apart->count * sizeof(apart->before[0]));
    apart->before[number].bytes[0] ^= 1;
    commit_list_root(&exhibit->context.before, COMMIT_STATE, 0, apart->before, apart->count);
    exhibit->source.context = apart;
    exhibit->source.item = apart_item;
    exhibit->source.list_node = apart_list_node;
}

uint32_t exhibit_large_state(const struct exhibit *exhibit)
{
    for (uint32_t i = 0; i < exhibit->tape->state_count; i++) {
        const struct tensor *tensor = &exhibit->tape->tensors[exhibit->tape->states[i].before];

        if (tensor->dtype == DTYPE_F32 && tensor->count > 300) {
            return i;
        }
    }
    fprintf(stderr, "exhibit: no state is large\n");
    abort();
}
