/* dispute.c - see dispute.h. */
#include "tests/support/dispute.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#define STEPS_BEFORE 2

static void states_of(struct dispute *dispute)
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

void dispute_open(struct dispute *dispute, const struct model_options *options)
{
    memset(dispute, 0, sizeof(*dispute));
    small_model_open(&dispute->small, options);
    dispute->tape = dispute->small.model.tape;
    for (int i = 0; i < 2; i++) {
        dispute->machines[i] = small_machine_open(&dispute->small, isa_best(), 1, true);
        small_machine_steps(dispute->machines[i], STEPS_BEFORE);
    }
    states_of(dispute);
    assert_int_equal(teller_open(&dispute->own, dispute->machines[1], NULL), STATUS_OK);
}

void dispute_open_kind(struct dispute *dispute, enum model_kind kind)
{
    struct model_options options;

    small_model_options(&options, kind);
    dispute_open(dispute, &options);
}

void dispute_open_wide(struct dispute *dispute)
{
    struct model_options options;

    small_model_options(&options, MODEL_MLP);
    options.batch = 1;
    options.hidden = 4200;
    dispute_open(dispute, &options);
}

struct machine *dispute_rewind(struct dispute *dispute)
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

void dispute_close(struct dispute *dispute)
{
    teller_close(&dispute->own);
    for (uint32_t i = 0; i < dispute->tape->state_count; i++) {
        free(dispute->states[i]);
    }
    free(dispute->states);
    for (int i = 0; i < 2; i++) {
        dispute->machines[i]->backend->close(dispute->machines[i]);
    }
    small_model_close(&dispute->small);
}

struct hunt_case dispute_case(const struct teller *accused, const struct teller *own)
{
    return (struct hunt_case){.trace_root = accused->trace.root,
                              .state_root = own->trace.state_root,
                              .next_root = accused->trace.next_root};
}

struct lie dispute_random_lie(const struct tape *tape, uint64_t *seed)
{
    uint32_t item = (uint32_t)test_random_below(seed, trace_item_count(tape));
    uint64_t count = tape->tensors[trace_tensor_at(tape, item)].count;

    return (struct lie){.item = item,
                        .element = test_random_below(seed, count),
                        .kind = (enum lie_kind)test_random_below(seed, LIE_KIND_COUNT)};
}
