/*
 * Goal: a child has the files it is given, where it looks for them, and our environment; it has
 * neither our input nor the signals that we blocked; a program that is not there is an error.
 * Method: /bin/sh as the child, files in memory.
 */
#include "base/io/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

static int file_of(const char *text)
{
    int file = memfd_create("spawn_test", MFD_CLOEXEC);

    assert_true(file > STDERR_FILENO);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    return file;
}

static void assert_file_is(int file, const char *text)
{
    char found[128] = "";

    assert_true(pread(file, found, sizeof(found) - 1, 0) >= 0);
    assert_string_equal(found, text);
}

/* How the shell ended. */
static int run(const char *script, const struct spawn_files *files)
{
    const char *const words[] = {"child", "-c", script, NULL};
    struct error error;
    pid_t process;
    int how;

    assert_int_equal(spawn_program(&process, "/bin/sh", words, files, &error), STATUS_OK);
    assert_int_equal(waitpid(process, &how, 0), process);
    return how;
}

static void test_a_child_has_its_files_and_our_environment(void **state)
{
    const struct spawn_files files = {
        .input = file_of("asked\n"), .output = file_of(""), .further = file_of("kept\n")};

    (void)state;
    assert_int_equal(setenv("SPAWN_TEST", "inherited", 1), 0);
    assert_int_equal(run("echo $0; cat; cat " SPAWN_FURTHER_PATH "; echo $SPAWN_TEST", &files), 0);
    assert_file_is(files.output, "child\nasked\nkept\ninherited\n");
    (void)close(files.input);
    (void)close(files.output);
    (void)close(files.further);
}

/* Its place may be taken already: by the further file itself, or by the output. */
static void test_a_further_file_may_lie_at_its_place_already(void **state)
{
    struct spawn_files files = {.input = -1, .output = file_of(""), .further = SPAWN_FURTHER};
    const int kept = file_of("kept\n");

    (void)state;
    assert_int_equal(dup3(kept, SPAWN_FURTHER, O_CLOEXEC), SPAWN_FURTHER);
    assert_int_equal(run("cat " SPAWN_FURTHER_PATH, &files), 0);
    assert_file_is(files.output, "kept\n");
    assert_int_equal(dup3(files.output, SPAWN_FURTHER, O_CLOEXEC), SPAWN_FURTHER);
    files.output = SPAWN_FURTHER;
    files.further = kept;
    assert_int_equal(ftruncate(files.output, 0), 0);
    assert_int_equal(lseek(files.output, 0, SEEK_SET), 0);
    assert_int_equal(run("cat " SPAWN_FURTHER_PATH, &files), 0);
    assert_file_is(files.output, "kept\n");
    (void)close(SPAWN_FURTHER);
    (void)close(kept);
}

static void test_without_an_input_a_child_reads_nothing_of_ours(void **state)
{
    const struct spawn_files files = {.input = -1, .output = file_of(""), .further = -1};
    const int ours = file_of("ours\n");
    const int before = dup(STDIN_FILENO);

    (void)state;
    assert_true(before > STDERR_FILENO);
    assert_int_equal(dup2(ours, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(run("cat", &files), 0);
    assert_int_equal(dup2(before, STDIN_FILENO), STDIN_FILENO);
    assert_file_is(files.output, "");
    (void)close(before);
    (void)close(ours);
    (void)close(files.output);
}

static void test_a_signal_that_we_block_ends_a_child(void **state)
{
    const struct spawn_files files = {.input = -1, .output = file_of(""), .further = -1};
    sigset_t blocked;
    sigset_t before;
    int how;

    (void)state;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
    how = run("kill -TERM $$; exit 3", &files);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGTERM);
    (void)close(files.output);
}

static void test_a_program_that_is_not_there_is_named(void **state)
{
    const char *const words[] = {"child", NULL};
    const struct spawn_files files = {.input = -1, .output = file_of(""), .further = -1};
    struct error error;
    pid_t process = 1;

    (void)state;
    assert_int_equal(spawn_program(&process, "/nowhere/child", words, &files, &error), STATUS_IO);
    assert_string_equal(error.text, "cannot start /nowhere/child: No such file or directory");
    assert_int_equal(process, 0);
    (void)close(files.output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_child_has_its_files_and_our_environment),
        cmocka_unit_test(test_a_further_file_may_lie_at_its_place_already),
        cmocka_unit_test(test_without_an_input_a_child_reads_nothing_of_ours),
        cmocka_unit_test(test_a_signal_that_we_block_ends_a_child),
        cmocka_unit_test(test_a_program_that_is_not_there_is_named),
    };

    return cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}
