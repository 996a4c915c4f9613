/*
 * Goal: before anybody is accused another machine computes the disputed step, and where it can that
 * step alone: however slow it is, a lie late in a segment does not hold up a node. No matter what
 * one machine gets wrong, and when, no honest step is refuted, and no lie goes free that both see.
 * Method: checks of a segment on two machines of this test (in place of check_machine.c), which
 * count their steps and go wrong in a chosen one: in the first replay, in the way back to the step,
 * in the step itself; and a second one that cannot be opened in the memory that is left.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/numeric/small_job.h"
#include "tests/support/proofs/hostile_mirror.h"
#include "verifier/check/check.h"

enum {
    LIE = 3, /* the step of the segment that is falsified */
    NEVER = 0,
};

/* One of the two, over all the times that it is opened. */
struct observed {
    struct backend backend;
    uint32_t opened;
    uint32_t steps;
    uint32_t wrong_step;  /* goes wrong in its so-many-th step, counted from 1 */
    uint32_t wrong_open;  /* has no memory the so-many-th time */
    uint32_t wrong_write; /* holds another state the so-many-th time that it is given the first */
    uint32_t writes;
};

static struct observed first;
static struct observed second;

static void spoil(struct machine *machine)
{
    const uint32_t state = machine->tape->states[0].before;
    uint8_t *bytes = malloc(commit_tensor_size(&machine->tape->tensors[state]));

    assert_int_equal(backend_cpu.read(machine, state, bytes, NULL), STATUS_OK);
    bytes[0] ^= 1;
    assert_int_equal(backend_cpu.write(machine, state, bytes, NULL), STATUS_OK);
    free(bytes);
}

static enum status step_of(struct observed *observed, struct machine *machine,
                           const struct observer *observer, struct error *error)
{
    enum status status = backend_cpu.step(machine, observer, error);

    if (++observed->steps == observed->wrong_step) {
        spoil(machine);
    }
    return status;
}

static enum status open_of(struct observed *observed, struct machine **machine,
                           const struct tape *tape, const struct machine_options *options,
                           struct error *error)
{
    struct machine_options here = *options;
    enum status status;

    if (++observed->opened == observed->wrong_open) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for this machine");
    }
    here.backend = &backend_cpu;
    status = backend_cpu.open(machine, tape, &here, error);
    if (status == STATUS_OK) {
        (*machine)->backend = &observed->backend;
    }
    return status;
}

static enum status write_of(struct observed *observed, struct machine *machine, uint32_t tensor,
                            const void *bytes, struct error *error)
{
    enum status status = backend_cpu.write(machine, tensor, bytes, error);

    if (tensor == machine->tape->states[0].before && ++observed->writes == observed->wrong_write) {
        spoil(machine);
    }
    return status;
}

#define BACKEND_OF(observed)                                                                       \
    static enum status observed##_open(struct machine **machine, const struct tape *tape,          \
                                       const struct machine_options *options, struct error *error) \
    {                                                                                              \
        return open_of(&(observed), machine, tape, options, error);                                \
    }                                                                                              \
    static enum status observed##_step(struct machine *machine, const struct observer *observer,   \
                                       struct error *error)                                        \
    {                                                                                              \
        return step_of(&(observed), machine, observer, error);                                     \
    }                                                                                              \
    static enum status observed##_write(struct machine *machine, uint32_t tensor,                  \
                                        const void *bytes, struct error *error)                    \
    {                                                                                              \
        return write_of(&(observed), machine, tensor, bytes, error);                               \
    }                                                                                              \
    static void observed##_begin(void)                                                             \
    {                                                                                              \
        memset(&(observed), 0, sizeof(observed));                                                  \
        (observed).backend = backend_cpu;                                                          \
        (observed).backend.open = observed##_open;                                                 \
        (observed).backend.step = observed##_step;                                                 \
        (observed).backend.write = observed##_write;                                               \
    }

BACKEND_OF(first)
BACKEND_OF(second)

/* In place of verifier/check/check_machine.c. */
enum status check_machine(struct machine_options *options, const struct check_request *request,
                          bool other, struct error *error)
{
    TRY(machine_options_default(options, error));
    options->thread_count = (int)request->threads;
    options->backend = other ? &second.backend : &first.backend;
    return STATUS_OK;
}

/* ---- checks --------------------------------------------------------------- */

struct fixture {
    struct check_request request; /* of segment 1 */
    struct check_result result;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct check_request *request = &fixture->request;
    struct check_segment segments[SMALL_JOB_STEPS / SMALL_JOB_SEGMENT];
    const char *path = small_path("honest.run");
    struct small_job_options options;
    const char *const *files;
    struct job *job;
    size_t count;

    small_job_defaults(&options);
    job = small_job_new(&options);
    files = small_job_data(job, &count);
    assert_int_equal(count, 1);
    (void)snprintf(request->data[request->data_count++], FILE_PATH_MAX, "%s", files[0]);
    bundle_close(small_bundle_new(path, job, NULL, SMALL_JOB_STEPS));
    (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX, "%s/tree",
                   test_temp_dir());
    request->job_id = hostile_mirror_publish(segments, request->mirrors[0], path);
    (void)snprintf(request->cache, sizeof(request->cache), "%s/cache", test_temp_dir());
    memcpy(request->segments, segments, 2 * sizeof(segments[0]));
    request->steps = SMALL_JOB_STEPS;
    request->segment_steps = SMALL_JOB_SEGMENT;
    request->index = 1;
    request->segment_count = 2;
    request->memory_max = (uint64_t)1 << 30;
    request->file_max = (uint64_t)64 << 20;
    request->mirror_timeout_s = 120;
    request->threads = 1;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    first_begin();
    second_begin();
    return 0;
}

/* lie: the step that the solver says something false of; SMALL_JOB_SEGMENT: none. */
static void check(struct fixture *fixture, uint32_t lie, enum check_outcome wanted)
{
    struct check_request request = fixture->request;

    if (lie < SMALL_JOB_SEGMENT) {
        request.segments[1].states[lie].bytes[5] ^= 1;
    }
    check_run(&fixture->result, &request, NULL, NULL);
    if (fixture->result.outcome != wanted) {
        fail_msg("%s: %s", check_outcome_name(fixture->result.outcome), fixture->result.reason);
    }
    if (wanted == CHECK_REFUTED) {
        assert_int_equal(fixture->result.index, 1);
        assert_int_equal(fixture->result.step, lie);
        assert_memory_equal(&fixture->result.true_state, &fixture->request.segments[1].states[lie],
                            DIGEST_SIZE);
        assert_memory_equal(&fixture->result.other_state, &fixture->request.segments[1].states[lie],
                            DIGEST_SIZE);
    }
}

static void test_the_other_machine_computes_the_disputed_step_alone(void **state)
{
    for (uint32_t lie = 0; lie < SMALL_JOB_SEGMENT; lie++) {
        (void)begin(state);
        check(*state, lie, CHECK_REFUTED);
        assert_int_equal(first.steps, lie + 1 + lie);
        assert_int_equal(second.steps, 1);
    }
}

static void test_nothing_is_asked_of_it_about_honest_steps(void **state)
{
    check(*state, SMALL_JOB_SEGMENT, CHECK_PROVEN);
    assert_int_equal(first.steps, SMALL_JOB_SEGMENT);
    assert_int_equal(second.opened, 0);
}

static void test_a_first_machine_that_goes_wrong_accuses_nobody(void **state)
{
    for (uint32_t step = 0; step < SMALL_JOB_SEGMENT; step++) {
        (void)begin(state);
        first.wrong_step = step + 1;
        check(*state, SMALL_JOB_SEGMENT, CHECK_FAULT);
    }
}

static void test_a_second_machine_that_goes_wrong_accuses_nobody(void **state)
{
    for (uint32_t lie = 0; lie < SMALL_JOB_SEGMENT; lie++) {
        (void)begin(state);
        second.wrong_step = 1;
        check(*state, lie, CHECK_FAULT);
    }
}

/* On the way back to the lie the first machine is wrong, though it was not before. */
static void test_a_state_on_the_way_that_is_not_the_committed_one_is_not_taken_over(void **state)
{
    for (uint32_t step = 0; step < LIE; step++) {
        (void)begin(state);
        first.wrong_step = LIE + 1 + step + 1;
        check(*state, LIE, CHECK_REFUTED);
        assert_int_equal(second.steps, LIE + 1);
    }
}

static void test_a_state_that_arrives_as_another_is_not_taken_over(void **state)
{
    second.wrong_write = 1;
    check(*state, LIE, CHECK_REFUTED);
    assert_int_equal(second.steps, LIE + 1);
}

/* The states wait in memory, which a machine that fits alone may not leave. */
static void test_where_it_cannot_take_over_the_other_machine_goes_alone(void **state)
{
    second.wrong_open = 1;
    check(*state, LIE, CHECK_REFUTED);
    assert_int_equal(second.steps, LIE + 1);
    (void)begin(state);
    first.wrong_open = 2;
    check(*state, LIE, CHECK_REFUTED);
    assert_int_equal(second.steps, LIE + 1);
    (void)begin(state);
    first.wrong_open = 2;
    second.wrong_open = 1;
    check(*state, LIE, CHECK_CANNOT_TELL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_other_machine_computes_the_disputed_step_alone, begin),
        cmocka_unit_test_setup(test_nothing_is_asked_of_it_about_honest_steps, begin),
        cmocka_unit_test_setup(test_a_first_machine_that_goes_wrong_accuses_nobody, begin),
        cmocka_unit_test_setup(test_a_second_machine_that_goes_wrong_accuses_nobody, begin),
        cmocka_unit_test_setup(
            test_a_state_on_the_way_that_is_not_the_committed_one_is_not_taken_over, begin),
        cmocka_unit_test_setup(test_a_state_that_arrives_as_another_is_not_taken_over, begin),
        cmocka_unit_test_setup(test_where_it_cannot_take_over_the_other_machine_goes_alone, begin),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
