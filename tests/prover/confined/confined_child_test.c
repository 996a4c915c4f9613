/*
 * Goal: what runs a stranger's program, to train or to answer, can read its data, write to its
 * bundle and make threads; it can neither read a key, write elsewhere, run a program nor open a
 * socket.
 * Method: children of this program are confined as the processes that train and answer are, and try
 * each.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/sandbox/sandbox.h"
#include "prover/confined/confined_child.h"

enum { DENIED = 7, DONE = 0 };

static const char *at(const char *name)
{
    static char path[FILE_PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", test_temp_dir(), name);
    return path;
}

static int open_and_close(const char *name, int flags)
{
    int descriptor = open(at(name), flags, 0600);

    if (descriptor < 0) {
        return DENIED;
    }
    (void)close(descriptor);
    return DONE;
}

static void *do_nothing(void *context)
{
    return context;
}

static int misbehave(const char *word)
{
    char *const arguments[] = {(char *)(uintptr_t) "true", NULL};
    const char *passphrase = getenv("LOCKSTEP_PASSPHRASE");
    const char *secret = getenv("LOCKSTEP_RANKS_SECRET");
    char path[FILE_PATH_MAX];
    pthread_t thread;

    if (strcmp(word, "data") == 0) {
        return open_and_close("data.u8", O_RDONLY);
    }
    if (strcmp(word, "bundle") == 0) {
        return open_and_close("run/new", O_WRONLY | O_CREAT);
    }
    if (strcmp(word, "file there") == 0) {
        return open_and_close("run/there", O_RDWR);
    }
    if (strcmp(word, "name") == 0) {
        (void)snprintf(path, sizeof(path), "%s", at("run/there"));
        return rename(path, at("run/elsewhere")) == 0 ? DONE : DENIED;
    }
    if (strcmp(word, "removal") == 0) {
        return unlink(at("run/there")) == 0 ? DONE : DENIED;
    }
    if (strcmp(word, "thread") == 0) {
        return pthread_create(&thread, NULL, do_nothing, NULL) == 0 &&
                       pthread_join(thread, NULL) == 0
                   ? DONE
                   : DENIED;
    }
    if (strcmp(word, "key") == 0) {
        return open_and_close("key.json", O_RDONLY);
    }
    if (strcmp(word, "outside") == 0) {
        return open_and_close("new", O_WRONLY | O_CREAT);
    }
    if (strcmp(word, "data to write") == 0) {
        return open_and_close("data.u8", O_RDWR);
    }
    if (strcmp(word, "passphrase") == 0) {
        return passphrase == NULL || passphrase[0] == '\0' ? DENIED : DONE;
    }
    if (strcmp(word, "secret of ranks") == 0) {
        return secret == NULL || secret[0] == '\0' ? DENIED : DONE;
    }
    if (strcmp(word, "socket") == 0) {
        (void)!socket(AF_INET, SOCK_STREAM, 0);
    } else if (strcmp(word, "local socket") == 0) {
        (void)!socket(AF_UNIX, SOCK_STREAM, 0);
    } else if (strcmp(word, "program") == 0) {
        (void)execv("/bin/true", arguments);
    } else {
        (void)kill(getppid(), 0);
    }
    return DONE;
}

/* How a child ended that was confined and then tried it. follows: as another rank. */
static int tried_as(const char *word, bool follows)
{
    struct confined_plan plan = {
        .machine.memory_max = (uint64_t)1 << 32, .data_count = 1, .follows = follows};
    char data[FILE_PATH_MAX];
    const char *const paths[] = {data};
    pid_t child;
    int how = 0;

    (void)snprintf(data, sizeof(data), "%s", at("data.u8"));
    (void)snprintf(plan.folder, sizeof(plan.folder), "%s", at("run"));
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        confined_child_confine(&plan, paths, 1);
        _exit(misbehave(word));
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFSIGNALED(how) ? -WTERMSIG(how) : WEXITSTATUS(how);
}

static int tried(const char *word)
{
    return tried_as(word, false);
}

static void test_what_is_confined_has_its_files_and_threads(void **state)
{
    (void)state;
    assert_int_equal(tried("data"), DONE);
    assert_int_equal(tried("bundle"), DONE);
    assert_int_equal(tried("thread"), DONE);
}

static void test_what_is_confined_has_no_other_file_and_no_passphrase(void **state)
{
    (void)state;
    assert_int_equal(tried("passphrase"), DENIED);
    assert_int_equal(tried("secret of ranks"), DENIED);
    if (!sandbox_means().files) {
        skip();
    }
    assert_int_equal(tried("key"), DENIED);
    assert_int_equal(tried("outside"), DENIED);
    assert_int_equal(tried("data to write"), DENIED);
}

/* It writes to the files that rank 0 has made. */
static void test_another_rank_makes_and_removes_no_checkpoint(void **state)
{
    static const char *const words[] = {"bundle", "name", "removal"};

    (void)state;
    if (!sandbox_means().files) {
        skip();
    }
    assert_int_equal(file_write(at("run/there"), NULL, "state", 5, 0600), STATUS_OK);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        (void)unlink(at("run/new"));
        assert_int_equal(tried_as(words[i], true), DENIED);
    }
    assert_int_equal(tried_as("file there", true), DONE);
    assert_int_equal(tried("removal"), DONE);
}

static void test_what_is_confined_has_no_socket_program_or_signal(void **state)
{
    static const char *const words[] = {"socket", "local socket", "program", "signal"};

    (void)state;
    if (!sandbox_means().calls) {
        skip();
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        assert_int_equal(tried(words[i]), -SIGSYS);
    }
}

/* A child says what it likes: no text of it runs on, and no status is one that nobody knows. */
static void test_what_a_child_says_is_bounded(void **state)
{
    struct confined_message message;
    struct bundle_step step;
    struct error error;

    (void)state;
    memset(&message, 0xff, sizeof(message));
    confined_wire_get_error(&error, &message);
    assert_int_equal(error.status, STATUS_IO);
    assert_int_equal(strlen(error.text), ERROR_TEXT_MAX - 1);
    assert_int_equal(strlen(error.advice), ERROR_ADVICE_MAX - 1);
    confined_wire_get_step(&step, &message);
    assert_true(step.evaluated);
    assert_int_equal(step.loss_bits, UINT32_MAX);
}

static int make_files(void **state)
{
    (void)state;
    (void)setenv("LOCKSTEP_PASSPHRASE", "a secret", 1);
    (void)setenv("LOCKSTEP_RANKS_SECRET", "another", 1);
    return file_write(at("data.u8"), NULL, "data", 4, 0600) == STATUS_OK &&
                   file_write(at("key.json"), NULL, "key", 3, 0600) == STATUS_OK &&
                   mkdir(at("run"), 0700) == 0
               ? 0
               : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_confined_has_its_files_and_threads),
        cmocka_unit_test(test_what_is_confined_has_no_other_file_and_no_passphrase),
        cmocka_unit_test(test_another_rank_makes_and_removes_no_checkpoint),
        cmocka_unit_test(test_what_is_confined_has_no_socket_program_or_signal),
        cmocka_unit_test(test_what_a_child_says_is_bounded),
    };

    return cmocka_run_group_tests(tests, make_files, NULL);
}
