/* opponents.c - see opponents.h. */
#include "tests/support/dispute/opponents.h"

#include <stdlib.h>
#include <string.h>

#include "proofs/commit/descriptor.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/test.h"

#define STEPS_BEFORE 2

static void states_of(struct opponents *dispute)
{
    const struct tape *tape = dispute->tape;

    dispute->states = calloc(tape->state_count, sizeof(*dispute->states));
    for (uint32_t i = 0; i < tape->state_count; i++) {
        uint32_t id = tape->states[i].before;

        dispute->states[i] = malloc(commit_tensor_size(&tape->tensors[id]));
        assert_int_equal(
            dispute->machines[0]->backend->read(dispute->machines[0], id, dispute->states[i], NULL),
            STATUS_OK);
    }
}

/* ---- what the job gives --------------------------------------------------- */

static void *copy_of(const void *bytes, const struct tensor *tensor)
{
    void *copy = malloc(commit_tensor_size(tensor));

    memcpy(copy, bytes, commit_tensor_size(tensor));
    return copy;
}

static void *given_value(const struct opponents *dispute, uint32_t id, uint64_t seed)
{
    const struct model *model = &dispute->small.model;

    if (dispute->invented != NULL) {
        return random_tape_value(dispute->tape, id, seed);
    }
    for (uint32_t i = 0; i < model->constant_count; i++) {
        if (model->constants[i].tensor == id) {
            return copy_of(model->constants[i].bytes, &dispute->tape->tensors[id]);
        }
    }
    return copy_of(small_model_data(&dispute->small, id), &dispute->tape->tensors[id]);
}

static void take_given(struct opponents *dispute, uint64_t seed)
{
    const struct tape *tape = dispute->tape;
    struct digest *constants = calloc(tape->tensor_count, sizeof(*constants));
    uint32_t data = 0;
    uint32_t constant = 0;

    dispute->data = calloc(tape->tensor_count, sizeof(*dispute->data));
    dispute->constants = calloc(tape->tensor_count, sizeof(*dispute->constants));
    dispute->data_roots = calloc(tape->tensor_count, sizeof(*dispute->data_roots));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA) {
            dispute->data[data] = given_value(dispute, id, seed);
            commit_tensor_root(&dispute->data_roots[data], COMMIT_DATA, &tape->tensors[id],
                               dispute->data[data], 1);
            data++;
        } else if (tape->tensors[id].role == ROLE_CONSTANT) {
            dispute->constants[constant] = given_value(dispute, id, seed);
            commit_tensor_root(&constants[constant], COMMIT_TENSOR, &tape->tensors[id],
                               dispute->constants[constant], 1);
            constant++;
        }
    }
    commit_list_root(&dispute->context.data, COMMIT_STATE, 0, dispute->data_roots, data);
    commit_list_root(&dispute->context.constants, COMMIT_STATE, 0, constants, constant);
    assert_int_equal(descriptor_program_root(&dispute->context.program, tape, NULL), STATUS_OK);
    dispute->given = (struct evidence_given){.data = (const void *const *)dispute->data,
                                             .data_roots = dispute->data_roots,
                                             .constants = (const void *const *)dispute->constants};
    free(constants);
}

struct evidence_context opponents_context(const struct opponents *dispute,
                                          const struct trace_walk_case *accused)
{
    struct evidence_context context = dispute->context;

    context.before = accused->state_root;
    context.after = accused->next_root;
    context.trace = accused->trace_root;
    context.batch = accused->batch_root;
    return context;
}

/* ---- opening --------------------------------------------------------------- */

static void begin(struct opponents *dispute, uint64_t seed)
{
    states_of(dispute);
    take_given(dispute, seed);
    assert_int_equal(trace_server_open(&dispute->own, dispute->machines[1], NULL), STATUS_OK);
}

static void open_at(struct opponents *dispute, const struct model_options *options, uint32_t step)
{
    memset(dispute, 0, sizeof(*dispute));
    small_model_open(&dispute->small, options);
    dispute->tape = dispute->small.model.tape;
    for (int i = 0; i < 2; i++) {
        dispute->machines[i] = small_machine_open(&dispute->small, isa_best(), 1, true);
        small_machine_steps(dispute->machines[i], step);
    }
    begin(dispute, 0);
}

void opponents_open_random(struct opponents *dispute, uint64_t seed, uint32_t op_count)
{
    const struct machine_options options = {.isa = isa_best(), .thread_count = 1, .trace = true};

    memset(dispute, 0, sizeof(*dispute));
    dispute->invented = random_tape(seed, op_count);
    dispute->tape = dispute->invented;
    for (int i = 0; i < 2; i++) {
        random_machine_open(&dispute->random[i], dispute->tape, &options, seed);
        dispute->machines[i] = dispute->random[i].machine;
    }
    begin(dispute, seed);
}

void opponents_open_diverging(struct opponents *dispute)
{
    struct small_job_options options;
    struct small_model small;
    struct machine *machine;
    uint32_t steps = 0;

    small_job_diverging(&options);
    small_model_open(&small, &options.model);
    machine = small_machine_open(&small, isa_best(), 1, false);
    for (; !small_machine_diverged(machine); steps++) {
        assert_in_range(steps, 0, 50);
        small_machine_steps(machine, 1);
    }
    machine->backend->close(machine);
    small_model_close(&small);
    open_at(dispute, &options.model, steps - 1);
}

void opponents_open(struct opponents *dispute, const struct model_options *options)
{
    open_at(dispute, options, STEPS_BEFORE);
}

void opponents_open_kind(struct opponents *dispute, enum model_kind kind)
{
    struct model_options options;

    small_model_options(&options, kind);
    opponents_open(dispute, &options);
}

void opponents_open_hidden(struct opponents *dispute, uint32_t hidden)
{
    struct model_options options;

    small_model_options(&options, MODEL_MLP);
    options.batch = 1;
    options.hidden = hidden;
    open_at(dispute, &options, 0); /* its steps are slow */
}

struct machine *opponents_rewind(struct opponents *dispute)
{
    const struct tape *tape = dispute->tape;
    struct machine *machine = dispute->machines[0];

    for (uint32_t i = 0; i < tape->state_count; i++) {
        assert_int_equal(
            machine->backend->write(machine, tape->states[i].before, dispute->states[i], NULL),
            STATUS_OK);
    }
    return machine;
}

void opponents_close(struct opponents *dispute)
{
    trace_server_close(&dispute->own);
    for (uint32_t i = 0; i < dispute->tape->state_count; i++) {
        free(dispute->states[i]);
    }
    for (uint32_t i = 0; i < dispute->tape->tensor_count; i++) {
        free(dispute->data[i]);
        free(dispute->constants[i]);
    }
    free(dispute->states);
    free(dispute->data);
    free(dispute->constants);
    free(dispute->data_roots);
    if (dispute->invented != NULL) {
        random_machine_close(&dispute->random[0]);
        random_machine_close(&dispute->random[1]);
        tape_free(dispute->invented);
        return;
    }
    dispute->machines[0]->backend->close(dispute->machines[0]);
    dispute->machines[1]->backend->close(dispute->machines[1]);
    small_model_close(&dispute->small);
}

struct trace_walk_case opponents_case(struct trace_server *accused, const struct trace_server *own)
{
    struct trace_walk_case made = {.trace_root = accused->trace.root,
                                   .state_root = own->trace.state_root,
                                   .next_root = accused->trace.next_root};
    struct trace_query query = {.kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_BATCH};
    const struct trace *trace = &own->trace;
    struct trace_reply_tree ignored;
    uint32_t item = 0;

    while (item < trace->list_count &&
           digest_equal(&trace->items[item], &accused->trace.items[item])) {
        item++;
    }
    if (item < trace->list_count && trace->layout.inner > 0 &&
        repeat_holds(&query.item, &trace->layout, item) && query.item != TENSOR_NONE) {
        assert_int_equal(trace_server_tree(&ignored, accused, &query, NULL), STATUS_OK);
        trace_batch_root(&made.batch_root, &accused->trace, query.item);
    }
    return made;
}

struct lie opponents_random_lie(const struct tape *tape, uint64_t *seed)
{
    uint32_t item = (uint32_t)test_random_below(seed, trace_item_count(tape));
    uint64_t count = tape->tensors[trace_tensor_at(tape, item)].count;

    return (struct lie){.item = item,
                        .element = test_random_below(seed, count),
                        .kind = (enum lie_kind)test_random_below(seed, LIE_KIND_COUNT)};
}
