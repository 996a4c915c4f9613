/*
 * Goal: a process without a key replies about a step as the step's own run does; the kernel holds
 * it; killed at any moment it costs time and not one reply; one that lies or dies each time is
 * named and does no harm; none outlives its command. Method: children of this program, found in
 * /proc, beside a run of the step in this process.
 */
#include "tests/support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sandbox/sandbox.h"
#include "base/steady.h"
#include "proofs/run/replay.h"
#include "prover/confined/confined_child.h"
#include "prover/confined/tracer.h"
#include "prover/confined/tracer_child.h"
#include "tests/support/child_of.h"
#include "tests/support/numeric/small_job.h"

enum {
    STEPS = 12,
    STEP = 9,
    KILLS = 40,
    KILLS_SHARE = 10,
    WAIT_MAX_S = 60,
    EXIT_CODE = 9,
};

#define HOW "TEST_TRACER" /* what a child of this test does instead of its work */

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- the step --------------------------------------------------------------------- */

struct stage {
    const char *path;
    struct bundle *bundle;
    struct run run;
    struct trace_server own;
    struct machine_options machine;
    struct tracer_step wanted;
};

static struct stage stage;

static int open_stage(void **state)
{
    const struct replay_options replay = {.threads = 1};
    struct small_job_options options;
    size_t data_count = 0;
    struct error error;

    (void)state;
    error_init(&error);
    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = 4;
    stage.path = small_path("bundle");
    stage.bundle = small_bundle_new(stage.path, small_job_new(&options), NULL, STEPS);
    small_run_open(&stage.run, bundle_job(stage.bundle), isa_best(), 1, false);
    check(replay_trace_server(&stage.own, &stage.run, stage.bundle, STEP, &replay, &error), &error);
    check(machine_options_default(&stage.machine, &error), &error);
    stage.machine.thread_count = 1;
    stage.wanted =
        (struct tracer_step){.bundle = stage.path, .machine = &stage.machine, .step = STEP};
    stage.wanted.data = small_job_data(bundle_job(stage.bundle), &data_count);
    stage.wanted.data_count = (uint32_t)data_count;
    return 0;
}

static int close_stage(void **state)
{
    (void)state;
    trace_server_close(&stage.own);
    run_close(&stage.run);
    bundle_close(stage.bundle);
    return 0;
}

static struct tracer *open_tracer(void)
{
    struct tracer *tracer = NULL;
    struct error error;

    error_init(&error);
    check(tracer_open(&tracer, &stage.wanted, &error), &error);
    return tracer;
}

/* Its reply to this query is that of the run here. */
static enum status compare_reply(void *context, const struct trace_query *query,
                                 struct error *error)
{
    static uint8_t ours[TRACE_REPLY_BYTES_MAX];
    static uint8_t theirs[TRACER_REPLY_MAX];
    struct tracer *tracer = context;
    size_t our_size = 0;
    size_t their_size = 0;

    TRY(trace_server_answer(ours, &our_size, &stage.own, query, error));
    TRY(tracer_ask(tracer, theirs, &their_size, query, error));
    assert_int_equal(their_size, our_size);
    assert_memory_equal(theirs, ours, our_size);
    return STATUS_OK;
}

static void ask_one(struct tracer *tracer)
{
    const struct trace_query query = {.kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_TRACE};
    struct digest root;
    uint64_t steps_run = 0;
    struct error error;

    error_init(&error);
    check(tracer_ready(tracer, &root, &steps_run, &error), &error);
    assert_memory_equal(&root, &stage.own.trace.root, sizeof(root));
    assert_int_equal(steps_run, STEP % 4);
    check(compare_reply(tracer, &query, &error), &error);
}

/* ---- its process ------------------------------------------------------------------ */

static pid_t tracer_of(pid_t parent)
{
    return child_of(parent, CONFINED_TRACER);
}

static pid_t wait_for_tracer_of(pid_t parent)
{
    const double end = steady_seconds() + WAIT_MAX_S;
    pid_t found;

    while ((found = tracer_of(parent)) == 0) {
        assert_true(steady_seconds() < end);
        (void)usleep(1000);
    }
    return found;
}

/* A zombie that nobody waits for has ended too. */
static bool has_ended(pid_t process)
{
    char status[4096];

    return !child_of_status(status, sizeof(status), process) ||
           strstr(status, "\nState:\tZ") != NULL;
}

/* ---- replies ------------------------------------------------------------------------- */

static void test_every_reply_is_that_of_the_step(void **state)
{
    struct tracer *tracer = open_tracer();
    const struct trace_query_visitor visitor = {.visit = compare_reply, .context = tracer};
    struct error error;

    (void)state;
    error_init(&error);
    check(trace_query_visit(bundle_job(stage.bundle)->tape, &visitor, &error), &error);
    ask_one(tracer);
    assert_true(tracer_is_of(tracer, stage.path, STEP));
    assert_false(tracer_is_of(tracer, stage.path, STEP - 1));
    tracer_close(tracer);
}

static void test_what_cannot_be_answered_is_said(void **state)
{
    static uint8_t bytes[TRACER_REPLY_MAX];
    const struct trace_query diverged = {.kind = TRACE_QUERY_DIVERGED};
    const struct trace_query nothing = {.kind = TRACE_QUERY_TENSOR, .item = 999999};
    struct tracer *tracer = open_tracer();
    struct error error;
    size_t size = 0;

    (void)state;
    error_init(&error);
    assert_int_equal(tracer_ask(tracer, bytes, &size, &diverged, &error), STATUS_NOT_FOUND);
    assert_non_null(strstr(error.text, "on the ledger only"));
    assert_int_equal(tracer_ask(tracer, bytes, &size, &nothing, &error), STATUS_NOT_FOUND);
    assert_int_equal(tracer_ask_ledger(tracer, bytes, &size, (const uint8_t *)"?", 1, &error),
                     STATUS_BAD_FORMAT);
    assert_non_null(strstr(error.text, "cannot read"));
    ask_one(tracer); /* it goes on */
    tracer_close(tracer);
}

static void test_a_step_that_was_not_run_is_refused(void **state)
{
    struct tracer_step wanted = stage.wanted;
    struct tracer *tracer = NULL;
    struct digest root;
    uint64_t steps_run = 0;
    struct error error;

    (void)state;
    error_init(&error);
    wanted.step = STEPS;
    check(tracer_open(&tracer, &wanted, &error), &error);
    assert_int_equal(tracer_ready(tracer, &root, &steps_run, &error), STATUS_NOT_FOUND);
    assert_string_equal(error.text, "step 12 was not run yet");
    tracer_close(tracer);
}

/* ---- its life ------------------------------------------------------------------------ */

static void test_the_kernel_holds_it(void **state)
{
    struct tracer *tracer = open_tracer();
    char status[4096];

    (void)state;
    if (!sandbox_means().calls) {
        tracer_close(tracer);
        test_skip("this program is not confined here");
    }
    ask_one(tracer);
    assert_true(child_of_status(status, sizeof(status), tracer_of(getpid())));
    assert_non_null(strstr(status, "\nSeccomp:\t2\n"));
    assert_non_null(strstr(status, "\nNoNewPrivs:\t1\n"));
    tracer_close(tracer);
}

struct killer {
    double after_s;
    pid_t child;
};

static void *kill_child(void *context)
{
    const struct killer *killer = context;

    (void)usleep((useconds_t)(killer->after_s * 1e6));
    (void)kill(killer->child, SIGKILL);
    return NULL;
}

/* From its first instant to after its reply: the reply is there, and the same. */
static void test_one_that_is_killed_at_any_moment_has_replied_all_the_same(void **state)
{
    const uint64_t kills = test_share(KILLS, KILLS_SHARE);
    double start = steady_seconds();
    struct tracer *tracer = open_tracer();
    double whole;

    (void)state;
    ask_one(tracer);
    whole = steady_seconds() - start;
    tracer_close(tracer);
    for (uint64_t i = 0; i < kills; i++) {
        struct killer killer = {.after_s = whole * 1.2 * (double)i / (double)kills};
        pthread_t thread;

        tracer = open_tracer();
        killer.child = wait_for_tracer_of(getpid());
        assert_int_equal(pthread_create(&thread, NULL, kill_child, &killer), 0);
        ask_one(tracer);
        (void)pthread_join(thread, NULL);
        ask_one(tracer); /* by another child, wherever the kill fell */
        assert_int_not_equal(tracer_of(getpid()), killer.child);
        tracer_close(tracer);
        assert_int_equal(tracer_of(getpid()), 0);
    }
}

/* A child that misbehaves so is named and ended; the next one answers. */
static void see_misbehaviour(const char *how, enum status status, const char *words)
{
    struct tracer *tracer;
    struct digest root;
    uint64_t steps_run = 0;
    struct error error;

    error_init(&error);
    (void)setenv(HOW, how, 1);
    tracer = open_tracer();
    assert_int_equal(tracer_ready(tracer, &root, &steps_run, &error), status);
    assert_string_equal(error.text, words);
    assert_int_equal(tracer_of(getpid()), 0);
    (void)unsetenv(HOW);
    ask_one(tracer);
    tracer_close(tracer);
}

static void test_one_that_dies_each_time_is_named_and_may_be_asked_again(void **state)
{
    (void)state;
    see_misbehaviour("dies", STATUS_IO, "the process that answers ended with exit code 9");
}

static void test_one_that_lies_is_ended(void **state)
{
    (void)state;
    see_misbehaviour("lies", STATUS_BAD_FORMAT, "the process that answers says nonsense");
}

/* A reply that is longer than any is not taken. */
static void test_a_reply_without_an_end_is_not_read(void **state)
{
    static uint8_t bytes[TRACER_REPLY_MAX];
    const struct trace_query query = {.kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_TRACE};
    struct tracer *tracer;
    struct error error;
    size_t size = 0;

    (void)state;
    error_init(&error);
    (void)setenv(HOW, "never ends", 1);
    tracer = open_tracer();
    assert_int_equal(tracer_ask(tracer, bytes, &size, &query, &error), STATUS_BAD_FORMAT);
    assert_int_equal(size, 0);
    (void)unsetenv(HOW);
    tracer_close(tracer);
}

/* In a process of its own: opens a tracer, perhaps waits for its step, and stays. */
static pid_t start_command(bool waits)
{
    pid_t command = fork();

    assert_true(command >= 0);
    if (command == 0) {
        struct tracer *tracer = open_tracer();

        if (waits) {
            ask_one(tracer);
        }
        for (;;) {
            (void)pause();
        }
    }
    return command;
}

static void test_none_outlives_its_command(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        const double end = steady_seconds() + WAIT_MAX_S;
        const pid_t command = start_command(waits == 1);
        const pid_t child = wait_for_tracer_of(command);

        (void)kill(child, SIGTERM); /* a stop is for the command alone */
        (void)usleep(waits * 200000);
        assert_int_equal(kill(command, SIGKILL), 0);
        assert_int_equal(waitpid(command, NULL, 0), command);
        while (!has_ended(child)) {
            assert_true(steady_seconds() < end);
            (void)usleep(1000);
        }
    }
}

/* ---- a child of this program ------------------------------------------------------------ */

static int misbehave(const char *how)
{
    struct confined_message message = {.kind = CONFINED_TRACED};
    struct confined_plan plan;

    (void)!confined_wire_read(CONFINED_CHILD_SOCKET, &plan, sizeof(plan));
    if (strcmp(how, "lies") == 0) {
        memset(&message, 0xff, sizeof(message));
    }
    if (strcmp(how, "dies") != 0) {
        confined_child_say(&message, NULL);
    }
    if (strcmp(how, "never ends") == 0) {
        message = (struct confined_message){.kind = CONFINED_REPLY, .size = UINT32_MAX};
        (void)confined_wire_write(CONFINED_CHILD_SOCKET, &message, sizeof(message));
        while (confined_wire_read(CONFINED_CHILD_SOCKET, &plan, 1)) {
        }
    }
    return EXIT_CODE;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_reply_is_that_of_the_step),
        cmocka_unit_test(test_what_cannot_be_answered_is_said),
        cmocka_unit_test(test_a_step_that_was_not_run_is_refused),
        cmocka_unit_test(test_the_kernel_holds_it),
        cmocka_unit_test(test_one_that_is_killed_at_any_moment_has_replied_all_the_same),
        cmocka_unit_test(test_one_that_dies_each_time_is_named_and_may_be_asked_again),
        cmocka_unit_test(test_one_that_lies_is_ended),
        cmocka_unit_test(test_a_reply_without_an_end_is_not_read),
        cmocka_unit_test(test_none_outlives_its_command),
    };
    const char *how = getenv(HOW);

    if (confined_child_asked(argc, argv, CONFINED_TRACER)) {
        return how == NULL ? tracer_child_serve() : misbehave(how);
    }
    return cmocka_run_group_tests(tests, open_stage, close_stage);
}
