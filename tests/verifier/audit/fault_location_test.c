/*
 * Goal: a difference is followed as far as what is there of the accused allows, every named number
 * is the one that was lied about, and the evidence convicts alone.
 * Method: bundles of solvers that lie in one number, with and without a checkpoint of the state
 * after the step, and with and without their answers about its trace.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/game/game.h"
#include "proofs/commit/descriptor.h"
#include "proofs/commit/element.h"
#include "proofs/commit/state_root.h"
#include "proofs/dispute/evidence_file.h"
#include "proofs/dispute/trace_walk.h"
#include "proofs/run/replay.h"
#include "tests/support/dispute/liar.h"
#include "tests/support/numeric/small_job.h"
#include "verifier/audit/audit_views.h"
#include "verifier/check/workers.h"

enum {
    STEPS = 12,
    SEGMENT = 4,
    MIDDLE = 5, /* no checkpoint is of the state after it */
    END = 7,    /* one is */
};

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- the accused ------------------------------------------------------------ */

/* A number of a float state that the step changes, and the same where the trace holds it. */
struct lies {
    uint64_t step;
    struct lie state;
    struct lie trace;
};

static struct lies choose(const struct job *job, uint64_t step, uint64_t *random)
{
    const struct tape *tape = job->tape;
    struct lies lies = {.step = step};
    uint32_t state = (uint32_t)test_random_below(random, tape->state_count);
    uint32_t *next = NULL;
    struct error error;

    error_init(&error);
    check(trace_next_items(&next, tape, &error), &error);
    while (tape->tensors[tape->states[state].before].dtype != DTYPE_F32 || next[state] == state) {
        state = (state + 1) % tape->state_count;
    }
    lies.state.item = state;
    lies.state.element = test_random_below(random, tape->tensors[tape->states[state].before].count);
    lies.trace = lies.state;
    lies.trace.item = next[state];
    free(next);
    return lies;
}

static void fault_injection_in_state(struct run *run, const struct lie *lie)
{
    uint32_t id = run->job->tape->states[lie->item].before;
    const struct tensor *tensor = &run->job->tape->tensors[id];
    uint8_t *bytes = calloc(1, commit_tensor_size(tensor));
    struct error error;

    error_init(&error);
    assert_non_null(bytes);
    check(run->machine->backend->read(run->machine, id, bytes, &error), &error);
    liar_lie(bytes, tensor, lie);
    check(run->machine->backend->write(run->machine, id, bytes, &error), &error);
    free(bytes);
}

static struct job *make_job(enum model_kind kind, uint64_t seed)
{
    struct small_job_options options;

    small_job_of_kind(&options, kind);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    options.model.seed = seed;
    options.model.accumulate = seed % 2 == 0 ? 1 : 4; /* micro-batches, in two groups */
    options.model.group = seed % 2 == 0 ? 1 : 2;
    return small_job_new(&options);
}

static void record(struct bundle *bundle, struct run *run, uint64_t step)
{
    struct bundle_step entry = {.step = step, .microjoules = BUNDLE_ENERGY_UNKNOWN};
    struct error error;

    error_init(&error);
    check(run_loss(&entry.loss_bits, run, &error), &error);
    check(state_root_of(&entry.root, run->machine, &error), &error);
    check(bundle_record(bundle, &entry, &error), &error);
    if ((step + 1) % SEGMENT == 0) {
        check(bundle_checkpoint_write(bundle, run->machine, step + 1, &error), &error);
    }
}

/* The whole bundle; lies NULL: it is honest. Takes job. */
static void write_bundle(const char *path, struct job *job, const struct lies *lies)
{
    struct bundle *bundle = NULL;
    struct run run;
    struct error error;

    error_init(&error);
    check(bundle_create(&bundle, path, job, &error), &error);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    small_run_begin(&run);
    for (uint64_t at = 0; at < STEPS; at++) {
        small_run_step(&run);
        if (lies != NULL && at == lies->step) {
            fault_injection_in_state(&run, &lies->state);
        }
        record(bundle, &run, at);
    }
    run_close(&run);
    bundle_close(bundle);
}

/* ---- what it answers --------------------------------------------------------- */

struct answers {
    struct bundle *bundle;
    struct run run;
    struct liar liar;
    struct trace_server server;
    bool lies;
};

static void answers_open(struct answers *answers, const char *path, const struct lies *lies,
                         bool honest)
{
    const struct replay_options replay = {.threads = 1};
    struct machine_options traced;
    struct error error;

    error_init(&error);
    memset(answers, 0, sizeof(*answers));
    check(bundle_open(&answers->bundle, path, BUNDLE_READ, &error), &error);
    small_run_open(&answers->run, bundle_job(answers->bundle), isa_best(), 1, false);
    check(replay_reach(&answers->run, answers->bundle, lies->step, &replay, &error), &error);
    traced = answers->run.options;
    traced.trace = true;
    check(run_reopen(&answers->run, &traced, &error), &error);
    answers->lies = !honest;
    if (answers->lies) {
        liar_open(&answers->liar, answers->run.machine, &lies->trace);
    }
    check(trace_server_open(&answers->server,
                            answers->lies ? &answers->liar.machine : answers->run.machine, &error),
          &error);
}

static void answers_close(struct answers *answers)
{
    trace_server_close(&answers->server);
    if (answers->lies) {
        liar_close(&answers->liar);
    }
    run_close(&answers->run);
    bundle_close(answers->bundle);
}

static void keep_answer(struct answers *answers, const char *folder, uint64_t step,
                        const struct trace_query *query, const uint8_t *bytes, size_t size)
{
    char job[HEX_SIZE(DIGEST_SIZE)];
    char text[TRACE_QUERY_TEXT_MAX];
    char path[1200];
    struct error error;

    error_init(&error);
    hex_encode(job, bundle_job(answers->bundle)->id.bytes, DIGEST_SIZE);
    trace_query_text(text, query);
    (void)snprintf(path, sizeof(path), "%.700s/v1/jobs/%s/trace/%llu/%s", folder, job,
                   (unsigned long long)step, text);
    *strrchr(path, '/') = '\0';
    check(file_make_folder(path, &error, 0700), &error);
    path[strlen(path)] = '/';
    check(file_write(path, &error, bytes, size, 0600), &error);
}

/* Leaves in folder what a walk asks for: as an honest claimant's walk leads. */
static void serve(const char *folder, const char *path, const struct lies *lies)
{
    static uint8_t bytes[TRACE_REPLY_BYTES_MAX];
    struct answers honest;
    struct answers liar;
    struct trace_walk walk;
    struct trace_walk_case about;
    struct digest known;
    struct error error;
    struct trace_query query;
    size_t size = 0;

    error_init(&error);
    answers_open(&honest, path, lies, true);
    answers_open(&liar, path, lies, false);
    about = (struct trace_walk_case){.trace_root = liar.server.trace.root,
                                     .state_root = liar.server.trace.state_root,
                                     .next_root = liar.server.trace.next_root};
    check(trace_walk_open(&walk, &honest.server, &about, &error), &error);
    while (trace_walk_next(&query, &known, &walk)) {
        check(trace_server_answer(bytes, &size, &liar.server, &query, &error), &error);
        keep_answer(&liar, folder, lies->step, &query, bytes, size);
        check(trace_walk_take(&walk, bytes, size, &error), &error);
    }
    assert_int_equal(walk.end, TRACE_WALK_ELEMENT);
    trace_walk_close(&walk);
    answers_close(&liar);
    answers_close(&honest);
}

/* ---- the audit ---------------------------------------------------------------- */

static struct audit_view audit_it(const char *path, const char *source)
{
    struct audit_options options = {
        .seek = true, .sources = &source, .source_count = source == NULL ? 0 : 1, .threads = 1};
    struct audit_view view = {.path = path};
    struct bundle *bundle = NULL;
    const char *const *data;
    struct error error;
    size_t count;

    error_init(&error);
    check(bundle_open(&bundle, path, BUNDLE_READ, &error), &error);
    data = small_job_data(bundle_job(bundle), &count);
    audit(&view.result, bundle, data, count, &options);
    bundle_close(bundle);
    audit_view_keep(&view, test_temp_dir());
    return view;
}

/* What a stranger reads from the file. */
static struct evidence_ruling judge(const struct audit_view *view)
{
    struct evidence_ruling ruling;
    struct evidence_file file;
    struct file_bytes bytes;
    struct error error;

    error_init(&error);
    assert_string_not_equal(view->evidence, "");
    check(file_read(&bytes, &error, view->evidence, EVIDENCE_FILE_SIZE_MAX), &error);
    check(evidence_file_read(&file, bytes.data, bytes.size, &error), &error);
    check(evidence_judge(&ruling, &file.context, file.evidence, file.size, &error), &error);
    assert_int_equal(file.step, view->result.wrong_step);
    assert_true(digest_equal(&file.context.after, &view->result.wrong_root));
    assert_true(digest_equal(&file.context.trace, &view->result.location.trace_root));
    assert_true(digest_equal(&file.job_id, &view->result.job_id));
    assert_true(file.placed);
    assert_in_range(file.size, 1, GAME_PAYLOAD_MAX); /* a contract's move takes it */
    file_bytes_release(&bytes);
    return ruling;
}

/* The element that was lied about, both values, and which operation makes it. */
static void expect_element(const struct audit_view *view, const struct job *job,
                           const struct lies *lies)
{
    const struct fault_location *location = &view->result.location;
    const struct tape *tape = job->tape;
    uint32_t instance;
    struct op_turn maker;
    uint32_t output;

    trace_output_at(&maker, &output, tape, lies->trace.item);
    assert_true(location->op_known);
    assert_int_equal(location->op, descriptor_of_op(&instance, tape, maker));
    assert_string_equal(location->instance, ""); /* an update is made once */
    assert_int_equal(location->output, output);
    assert_string_equal(location->op_name, op_kind_name(tape->ops[maker.op].kind));
    assert_true(location->element_known);
    assert_int_equal(location->element, lies->state.element);
    assert_true(location->wanted_known);
    assert_int_equal(location->dtype, DTYPE_F32);
    assert_int_equal(location->found, location->wanted + 1); /* the next number: LIE_ULP */
    assert_string_equal(location->tensor,
                        tape->tensors[tape->states[lies->state.item].before].name);
}

static struct audit_view refuted(const char *path, const char *source, uint64_t step)
{
    struct audit_view view = audit_it(path, source);

    assert_int_equal(view.result.answer, AUDIT_REFUTED);
    assert_int_equal(view.result.flaw, CHECK_FLAW_STATE);
    assert_int_equal(view.result.wrong_step, step);
    return view;
}

static const char *lie_bundle(struct job **job, struct lies *lies, const char *name,
                              enum model_kind kind, uint64_t seed, uint64_t step)
{
    const char *path = small_path(name);
    uint64_t random = seed;

    *job = make_job(kind, seed);
    *lies = choose(*job, step, &random);
    write_bundle(path, make_job(kind, seed), lies);
    return path;
}

/* ---- tests -------------------------------------------------------------------- */

static void test_a_checkpoint_after_the_step_shows_tensor_and_element(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < test_share(40, 8); i++) {
        struct audit_view view;
        struct lies lies;
        struct job *job;
        char name[32];
        const char *path;

        (void)snprintf(name, sizeof(name), "after-%u", (unsigned)i);
        path = lie_bundle(&job, &lies, name, (enum model_kind)(i % MODEL_COUNT), 30 + i, END);
        view = refuted(path, NULL, END);
        assert_int_equal(view.result.location.kind, EVIDENCE_NEXT_STATE);
        assert_false(view.result.location.own_trace);
        assert_non_null(strstr(view.result.location.lacking, "--trace-from"));
        expect_element(&view, job, &lies);
        assert_int_equal(judge(&view).answer, EVIDENCE_UPHELD);
        audit_result_release(&view.result);
        job_free(job);
    }
}

static void test_roots_alone_show_the_step_and_say_what_is_lacking(void **state)
{
    struct audit_view view;
    struct lies lies;
    struct job *job;
    const char *path = lie_bundle(&job, &lies, "roots", MODEL_MLP, 3, MIDDLE);

    (void)state;
    view = refuted(path, NULL, MIDDLE);
    assert_int_equal(view.result.location.kind, 0);
    assert_false(view.result.location.tensor_known);
    assert_string_equal(view.evidence, "");
    assert_non_null(strstr(view.result.location.lacking, "--trace-from"));
    audit_result_release(&view.result);
    job_free(job);
}

static void test_the_solvers_trace_shows_the_operation_and_convicts(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < test_share(40, 8); i++) {
        struct evidence_ruling ruling;
        struct audit_view view;
        struct lies lies;
        struct job *job;
        char name[32];
        const char *path;
        const char *folder;

        (void)snprintf(name, sizeof(name), "traced-%u", (unsigned)i);
        path = lie_bundle(&job, &lies, name, (enum model_kind)(i % MODEL_COUNT), 60 + i,
                          i % 2 == 0 ? MIDDLE : END);
        folder = i % 4 < 2 ? path : small_path("answers"); /* beside the bundle, or elsewhere */
        serve(folder, path, &lies);
        view = refuted(path, folder == path ? NULL : folder, lies.step);
        assert_int_equal(view.result.location.kind, EVIDENCE_ELEMENT);
        assert_true(view.result.location.own_trace);
        assert_string_equal(view.result.location.lacking, "");
        expect_element(&view, job, &lies);
        ruling = judge(&view);
        assert_int_equal(ruling.answer, EVIDENCE_UPHELD);
        assert_int_equal(view.result.location.proven_element, lies.state.element);
        assert_int_equal(ruling.found, view.result.location.found);
        assert_int_equal(ruling.wanted, view.result.location.wanted);
        audit_result_release(&view.result);
        job_free(job);
    }
}

/* Half of a walk, or bytes that are no reply: what the bundle shows still stands. */
static void test_short_or_false_replies_are_ignored(void **state)
{
    const char *folder = small_path("broken-answers");
    const struct trace_query first = {.kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_TRACE};
    static const uint8_t junk[320] = {1, 2, 3};
    struct answers answers;
    struct audit_view view;
    struct lies lies;
    struct job *job;
    const char *path = lie_bundle(&job, &lies, "broken", MODEL_GPT2, 9, END);
    static uint8_t bytes[TRACE_REPLY_BYTES_MAX];
    struct error error;
    size_t size = 0;

    (void)state;
    error_init(&error);
    answers_open(&answers, path, &lies, false);
    for (int junky = 0; junky < 2; junky++) {
        check(trace_server_answer(bytes, &size, &answers.server, &first, &error), &error);
        keep_answer(&answers, folder, lies.step, &first, junky ? junk : bytes,
                    junky ? sizeof(junk) : size);
        view = refuted(path, folder, END);
        assert_int_equal(view.result.location.kind, EVIDENCE_NEXT_STATE);
        assert_false(view.result.location.own_trace);
        expect_element(&view, job, &lies);
        assert_int_equal(judge(&view).answer, EVIDENCE_UPHELD);
        audit_result_release(&view.result);
    }
    answers_close(&answers);
    job_free(job);
}

/* ---- the end of a run ----------------------------------------------------------- */

static void test_a_run_that_went_on_after_an_infinity_is_refuted(void **state)
{
    const char *path = small_path("went-on");
    struct small_job_options options;
    struct bundle *bundle;
    struct audit_view view;
    struct error error;

    (void)state;
    error_init(&error);
    small_job_diverging(&options);
    bundle = small_bundle_new(path, small_job_new(&options), NULL, SMALL_JOB_STEPS);
    bundle_close(bundle);
    view = audit_it(path, NULL);
    assert_int_equal(view.result.answer, AUDIT_REFUTED);
    assert_int_equal(view.result.flaw, CHECK_FLAW_WENT_ON);
    assert_int_equal(view.result.location.kind, EVIDENCE_NOT_FINITE);
    assert_true(view.result.location.element_known);
    assert_false(view.result.location.wanted_known);
    assert_int_equal(view.result.location.found & 0x7f800000, 0x7f800000);
    assert_int_equal(judge(&view).answer, EVIDENCE_UPHELD);
    audit_result_release(&view.result);
}

static void test_a_run_said_to_end_at_a_good_step_is_refuted(void **state)
{
    const char *path = small_path("not-diverged");
    struct bundle *bundle;
    struct audit_view view;
    struct error error;
    struct job *job = make_job(MODEL_MLP, 5);

    (void)state;
    error_init(&error);
    bundle = small_bundle_new(path, job, NULL, 6);
    check(bundle_set_diverged(bundle, 5, &error), &error);
    bundle_close(bundle);
    view = audit_it(path, NULL);
    assert_int_equal(view.result.answer, AUDIT_REFUTED);
    assert_int_equal(view.result.flaw, CHECK_FLAW_NOT_DIVERGED);
    assert_int_equal(view.result.wrong_step, 5);
    assert_int_equal(view.result.location.kind, 0);
    audit_result_release(&view.result);
}

/* ---- words ----------------------------------------------------------------------- */

static void test_values_are_printed_with_their_bits(void **state)
{
    static const struct {
        enum dtype dtype;
        uint32_t bits;
        const char *value;
        const char *hex;
    } known[] = {
        {DTYPE_F32, 0x3e000000, "0.125", "0x3e000000"},
        {DTYPE_F32, 0x80000000, "-0", "0x80000000"},
        {DTYPE_F32, 0x7f800000, "inf", "0x7f800000"},
        {DTYPE_I16, 0xfffffff9, "-7", "0xfff9"},
        {DTYPE_U8, 7, "7", "0x07"},
        {DTYPE_I32, 0xffffffff, "-1", "0xffffffff"},
        {DTYPE_U16, 65535, "65535", "0xffff"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char text[FAULT_LOCATION_VALUE_MAX];

        fault_location_value(text, known[i].dtype, known[i].bits);
        assert_string_equal(text, known[i].value);
        fault_location_bits(text, known[i].dtype, known[i].bits);
        assert_string_equal(text, known[i].hex);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_checkpoint_after_the_step_shows_tensor_and_element),
        cmocka_unit_test(test_roots_alone_show_the_step_and_say_what_is_lacking),
        cmocka_unit_test(test_the_solvers_trace_shows_the_operation_and_convicts),
        cmocka_unit_test(test_short_or_false_replies_are_ignored),
        cmocka_unit_test(test_a_run_that_went_on_after_an_infinity_is_refuted),
        cmocka_unit_test(test_a_run_said_to_end_at_a_good_step_is_refuted),
        cmocka_unit_test(test_values_are_printed_with_their_bits),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
