/*
 * Goal: a child that checks can run no program, make no process and no socket that it does not
 * fetch by, signal nobody, and read and write only what is its own; it can make threads, and its
 * answer is then what it ever was. Who tries is ended by the kernel, and the node says so.
 * Method: real children of this program, whose part in a dispute is to try each.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/sandbox/sandbox.h"
#include "proofs/job/job_file.h"
#include "tests/support/numeric/small_job.h"
#include "verifier/check/confine.h"
#include "verifier/check/workers.h"

enum {
    TIME_MAX_S = 600, /* a busy machine is no failure */
};

/* What it tries: a word in the dispute's folder says it. */
static bool knows_all(const struct check_request *request)
{
    (void)request;
    return true;
}

static void *do_nothing(void *context)
{
    return context;
}

static enum status try_file(const char *path, int flags, struct error *error)
{
    int descriptor = open(path, flags, 0600);

    if (descriptor < 0) {
        return error_set_errno(error, "%s", path);
    }
    (void)close(descriptor);
    return STATUS_OK;
}

static enum status misbehave(struct check_step *step, struct error *error)
{
    const char *word = strrchr(step->request->folder, '/') + 1;
    char *const arguments[] = {(char *)(uintptr_t) "true", NULL};
    char path[FILE_PATH_MAX + 8];
    struct addrinfo *found;
    pthread_t thread;

    (void)snprintf(path, sizeof(path), "%s/file", step->request->folder);
    if (strcmp(word, "socket") == 0) {
        (void)!socket(AF_INET, SOCK_STREAM, 0);
    } else if (strcmp(word, "exec") == 0) {
        (void)execv("/bin/true", arguments);
    } else if (strcmp(word, "fork") == 0 && fork() == 0) {
        _exit(0);
    } else if (strcmp(word, "kill") == 0) {
        (void)kill(getppid(), 0);
    } else if (strcmp(word, "secret") == 0) {
        (void)snprintf(path, sizeof(path), "%s/../key", step->request->folder);
        return try_file(path, O_RDONLY, error);
    } else if (strcmp(word, "outside") == 0) {
        (void)snprintf(path, sizeof(path), "%s/../new", step->request->folder);
        return try_file(path, O_WRONLY | O_CREAT, error);
    } else if (strcmp(word, "thread") == 0) {
        return pthread_create(&thread, NULL, do_nothing, NULL) == 0 &&
                       pthread_join(thread, NULL) == 0
                   ? STATUS_OK
                   : STATUS_IO;
    } else if (strcmp(word, "resolve") == 0) { /* by name: it has a mirror with a URL */
        return getaddrinfo("localhost", "80", NULL, &found) == 0 ? STATUS_OK : STATUS_IO;
    } else if (strcmp(word, "etc") == 0) {
        return try_file("/etc/passwd", O_RDONLY, error);
    } else if (strcmp(word, "own") == 0) {
        return try_file(path, O_WRONLY | O_CREAT, error);
    }
    return STATUS_OK;
}

static const struct check_visitor misbehaving = {knows_all, misbehave};

/* The mirror: a folder with the job alone. */
static void make_mirror(const char *folder, const struct job *job)
{
    char id[HEX_SIZE(DIGEST_SIZE)];
    char path[FILE_PATH_MAX];
    struct error error;

    error_init(&error);
    hex_encode(id, job->id.bytes, DIGEST_SIZE);
    (void)snprintf(path, sizeof(path), "%.3000s/v1/jobs/%s", folder, id);
    assert_int_equal(file_make_folder(path, &error, 0700), STATUS_OK);
    (void)snprintf(path, sizeof(path), "%.3000s/v1/jobs/%s/job", folder, id);
    if (!file_exists(path)) {
        assert_int_equal(job_write(job, path, &error), STATUS_OK);
    }
}

static void run_child(struct check_result *result, const struct check_request *request)
{
    struct workers *workers = NULL;
    struct check_port port;
    struct error error;
    uint64_t number = 0;
    enum status status;

    error_init(&error);
    assert_int_equal(workers_open(&workers, 1, TIME_MAX_S, NULL, &error), STATUS_OK);
    port = workers_port(workers);
    assert_int_equal(port.start(port.context, 1, request, &error), STATUS_OK);
    do {
        (void)usleep(1000);
        status = port.take(port.context, &number, result, &error);
    } while (status == STATUS_NOT_FOUND);
    assert_int_equal(status, STATUS_OK);
    workers_close(workers);
}

/* A disputed request about a job that is to be had: its visitor runs in a child of this program. */
static void ask(struct check_result *result, const char *word)
{
    struct check_request *request = calloc(1, sizeof(*request));
    struct small_job_options options;
    struct job *job;
    struct error error;
    size_t count;

    error_init(&error);
    small_job_defaults(&options);
    job = small_job_new(&options);
    request->job_id = job->id;
    request->steps = job->steps;
    request->segment_steps = (uint32_t)job->segment_length;
    request->segment_count = 1;
    request->segments[0].steps = 1;
    request->disputed = true;
    request->memory_max = (uint64_t)1 << 30;
    request->file_max = (uint64_t)1 << 24;
    request->processor_s = TIME_MAX_S;
    request->threads = 2;
    request->mirror_count = 1;
    request->data_count = 1;
    (void)snprintf(request->mirrors[0], FILE_PATH_MAX, "%s/mirror", test_temp_dir());
    make_mirror(request->mirrors[0], job);
    if (strcmp(word, "resolve") == 0) {
        (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX,
                       "http://localhost:9");
    }
    (void)snprintf(request->data[0], FILE_PATH_MAX, "%s", small_job_data(job, &count)[0]);
    (void)snprintf(request->cache, FILE_PATH_MAX, "%s/cache", test_temp_dir());
    (void)snprintf(request->folder, FILE_PATH_MAX, "%s/%s", test_temp_dir(), word);
    assert_int_equal(file_make_folder(request->folder, &error, 0700), STATUS_OK);
    run_child(result, request);
    job_free(job);
    free(request);
}

static void test_a_child_that_wants_more_than_it_needs_is_ended_and_named(void **state)
{
    static const char *const deadly[] = {"socket", "exec", "fork", "kill"};
    static const char *const denied[] = {"secret", "outside", "etc"};
    static const char *const good[] = {"thread", "own", "resolve", "nothing"};
    const struct sandbox_means means = sandbox_means();
    struct check_result *result;
    char path[FILE_PATH_MAX];
    struct error error;

    (void)state;
    error_init(&error);
    (void)snprintf(path, sizeof(path), "%s/key", test_temp_dir());
    assert_int_equal(file_write(path, &error, "secret", 6, 0600), STATUS_OK);
    if (!means.calls) {
        test_skip("this system has no seccomp filters, or the program is sanitized");
    }
    result = malloc(sizeof(*result));
    assert_non_null(result);
    for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
        ask(result, deadly[i]);
        assert_int_equal(result->outcome, CHECK_CANNOT_TELL);
        assert_non_null(strstr(result->reason, "it asked the system for what no check needs"));
    }
    for (size_t i = 0; means.files && i < sizeof(denied) / sizeof(denied[0]); i++) {
        ask(result, denied[i]);
        assert_int_equal(result->outcome, CHECK_CANNOT_TELL);
        assert_non_null(strstr(result->reason, "Permission denied"));
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ask(result, good[i]);
        assert_string_equal(result->reason, "");
        assert_int_equal(result->outcome, CHECK_PROVEN);
    }
    free(result);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_child_that_wants_more_than_it_needs_is_ended_and_named),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &misbehaving);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
