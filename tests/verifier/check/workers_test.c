/*
 * Goal: no matter what a child does, the node gets an answer in time, and never a verdict that the
 * child did not find; and the self-test tells true from false with real children. Method: programs
 * in place of the child that say nothing, too much, nonsense, or die; requests and results through
 * the wire, and each byte of them changed.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "verifier/check/self_test.h"

enum {
    ROUNDS = 8,
    ROUNDS_SOAK = 400,
    TIME_MAX_S = 600, /* a busy machine is no failure */
};

static const char *script(const char *name, const char *text)
{
    static char path[600];
    struct error error;

    error_init(&error);
    (void)snprintf(path, sizeof(path), "%s/%s", test_temp_dir(), name);
    assert_int_equal(file_write(path, &error, text, strlen(text), 0700), STATUS_OK);
    return path;
}

static struct check_request *some_request(void)
{
    struct check_request *request = calloc(1, sizeof(*request));

    request->steps = 10;
    request->segment_steps = 5;
    request->index = 1;
    request->segment_count = 2;
    request->segments[0].steps = request->segments[1].steps = 5;
    request->segments[1].root.bytes[3] = 7;
    request->seed.bytes[0] = 1;
    request->proven = 3;
    request->memory_max = (uint64_t)1 << 30;
    request->file_max = (uint64_t)1 << 20;
    request->processor_s = TIME_MAX_S;
    request->threads = 1;
    request->mirror_count = 1;
    (void)snprintf(request->mirrors[0], FILE_PATH_MAX, "%s/nothing", test_temp_dir());
    (void)snprintf(request->cache, FILE_PATH_MAX, "%s/cache", test_temp_dir());
    return request;
}

/* The result of a check by that program; NULL: the real child. */
static void run_program(struct check_result *result, const char *program, uint32_t time_max_s)
{
    struct check_request *request = some_request();
    struct workers *workers = NULL;
    struct check_port port;
    struct error error;
    uint64_t number = 0;
    enum status status;

    error_init(&error);
    assert_int_equal(workers_open(&workers, 1, time_max_s, program, &error), STATUS_OK);
    port = workers_port(workers);
    assert_int_equal(port.start(port.context, 77, request, &error), STATUS_OK);
    assert_int_equal(port.start(port.context, 78, request, &error), STATUS_OVER_LIMIT);
    do {
        (void)usleep(1000);
        status = port.take(port.context, &number, result, &error);
    } while (status == STATUS_NOT_FOUND);
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(number, 77);
    workers_close(workers);
    free(request);
}

static void test_children_that_misbehave_give_no_verdict(void **state)
{
    static const struct {
        const char *name;
        const char *text;
        const char *reason;
        uint32_t time_max_s;
    } scripts[] = {
        {"silent", "#!/bin/sh\nexit 0\n", "", TIME_MAX_S},
        {"fails", "#!/bin/sh\nexit 3\n", "code 3", TIME_MAX_S},
        {"dies", "#!/bin/sh\nkill -SEGV $$\n", "signal 11", TIME_MAX_S},
        {"nonsense", "#!/bin/sh\necho '{\"outcome\":\"proven\"}'\n", "", TIME_MAX_S},
        {"half", "#!/bin/sh\necho '{\"outcome\":\"refuted\",'\n", "", TIME_MAX_S},
        {"floods", "#!/bin/sh\nyes proven\n", "", TIME_MAX_S},
        {"hangs", "#!/bin/sh\nexec sleep 1000\n", "too long", 2},
        {"lingers", "#!/bin/sh\nexec >&-\nexec sleep 1000\n", "too long", 2},
        {"deaf", "#!/bin/sh\nexec <&-\nexit 0\n", "", TIME_MAX_S},
    };
    struct check_result *result = malloc(sizeof(*result));

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        run_program(result, script(scripts[i].name, scripts[i].text), scripts[i].time_max_s);
        assert_int_equal(result->outcome, CHECK_CANNOT_TELL);
        assert_string_not_equal(result->reason, "");
        assert_non_null(strstr(result->reason, scripts[i].reason));
    }
    free(result);
}

/* On a busy machine a child may exit long after it closed its pipe. */
static void test_a_child_that_exits_late_has_answered(void **state)
{
    struct check_result *result = calloc(1, sizeof(*result));
    json_t *object;
    char path[700];
    char text[900];
    struct error error;

    (void)state;
    error_init(&error);
    result->outcome = CHECK_PROVEN;
    object = check_result_json(result);
    (void)snprintf(path, sizeof(path), "%s/answer", test_temp_dir());
    assert_int_equal(json_dump_file(object, path, JSON_COMPACT), 0);
    json_decref(object);
    (void)snprintf(text, sizeof(text), "#!/bin/sh\ncat '%s'\nexec >&-\nsleep 2\nexit 0\n", path);
    run_program(result, script("late", text), TIME_MAX_S);
    assert_string_equal(result->reason, "");
    assert_int_equal(result->outcome, CHECK_PROVEN);
    free(result);
}

static void test_a_child_without_mirrors_gives_no_verdict(void **state)
{
    struct check_result *result = malloc(sizeof(*result));

    (void)state;
    run_program(result, NULL, TIME_MAX_S);
    assert_int_equal(result->outcome, CHECK_CANNOT_TELL);
    assert_non_null(strstr(result->reason, "no mirror gives the job"));
    free(result);
}

static void test_requests_and_results_survive_the_wire(void **state)
{
    struct check_request *request = some_request();
    struct check_request *read = malloc(sizeof(*read));
    struct check_result *result = calloc(1, sizeof(*result));
    struct check_result *again = malloc(sizeof(*again));
    json_t *object = check_request_json(request);
    char *text = json_dumps(object, JSON_COMPACT);
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(check_request_parse(read, text, strlen(text), &error), STATUS_OK);
    assert_memory_equal(read, request, sizeof(*read));
    free(text);
    json_decref(object);
    result->outcome = CHECK_REFUTED;
    result->flaw = CHECK_FLAW_WENT_ON;
    result->step = 4;
    result->pre_state.bytes[7] = 9;
    result->mirror_count = 1;
    result->mirrors[0].bad = 3;
    (void)snprintf(result->reason, sizeof(result->reason), "it is so");
    object = check_result_json(result);
    text = json_dumps(object, JSON_COMPACT);
    assert_int_equal(check_result_parse(again, text, strlen(text), &error), STATUS_OK);
    assert_memory_equal(again, result, sizeof(*again));
    free(text);
    json_decref(object);
    free(request);
    free(read);
    free(result);
    free(again);
}

/* A seed that is refused at its first member reaches nothing behind it. */
static void test_seeds_of_the_fuzz_target_are_read(void **state)
{
    static const char *const names[] = {"request", "result", "proven"};
    struct check_request *request = malloc(sizeof(*request));
    struct check_result *result = malloc(sizeof(*result));
    struct error error;

    (void)state;
    error_init(&error);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct file_bytes bytes = {0};
        char path[100];

        (void)snprintf(path, sizeof(path), "fixtures/corpus/check_wire/%s", names[i]);
        assert_int_equal(file_read(&bytes, &error, path, CHECK_WIRE_MAX), STATUS_OK);
        assert_int_equal(bytes.data[0] == 0
                             ? check_request_parse(request, bytes.data + 1, bytes.size - 1, &error)
                             : check_result_parse(result, bytes.data + 1, bytes.size - 1, &error),
                         STATUS_OK);
        file_bytes_release(&bytes);
    }
    free(request);
    free(result);
}

/* No changed byte makes a crash, or another verdict. */
static void test_a_changed_result_is_never_another_verdict(void **state)
{
    struct check_result *result = calloc(1, sizeof(*result));
    struct check_result *again = malloc(sizeof(*again));
    json_t *object;
    char *text;
    size_t size;
    struct error error;

    (void)state;
    result->outcome = CHECK_PROVEN;
    object = check_result_json(result);
    text = json_dumps(object, JSON_COMPACT);
    size = strlen(text);
    for (size_t i = 0; i < size; i++) {
        char before = text[i];

        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(before ^ (1 << bit));
            error_init(&error);
            if (check_result_parse(again, text, size, &error) == STATUS_OK) {
                assert_int_equal(again->outcome, CHECK_PROVEN);
            } else {
                assert_int_equal(again->outcome, CHECK_CANNOT_TELL);
            }
        }
        text[i] = before;
        assert_int_not_equal(check_result_parse(again, text, i, &error), STATUS_OK);
    }
    free(text);
    json_decref(object);
    free(result);
    free(again);
}

static void test_the_self_test_tells_true_from_false(void **state)
{
    struct self_test_options options = {.seed = 3, .threads = 1};
    struct self_test_result result;
    struct workers *workers = NULL;
    char folder[600];
    struct error error;

    (void)state;
    error_init(&error);
    (void)snprintf(folder, sizeof(folder), "%s/self", test_temp_dir());
    options.folder = folder;
    options.rounds = test_share(ROUNDS_SOAK, ROUNDS);
    assert_int_equal(workers_open(&workers, 1, TIME_MAX_S, NULL, &error), STATUS_OK);
    options.checks = workers_port(workers);
    assert_int_equal(self_test(&result, &options, &error), STATUS_OK);
    workers_close(workers);
    if (result.wrong != 0) {
        fail_msg("%s", result.first_wrong);
    }
    assert_int_equal(result.proven + result.refuted + result.cannot_tell + result.fault,
                     options.rounds);
    /* Of make check's few there may be none of a kind. */
    assert_true(options.rounds < ROUNDS || (result.proven > 0 && result.refuted > 0));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children_that_misbehave_give_no_verdict),
        cmocka_unit_test(test_a_child_that_exits_late_has_answered),
        cmocka_unit_test(test_a_child_without_mirrors_gives_no_verdict),
        cmocka_unit_test(test_requests_and_results_survive_the_wire),
        cmocka_unit_test(test_seeds_of_the_fuzz_target_are_read),
        cmocka_unit_test(test_a_changed_result_is_never_another_verdict),
        cmocka_unit_test(test_the_self_test_tells_true_from_false),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
