/*
 * Goal: a child has the files it is given, where it looks for them, and our environment; it has
 * neither our input nor the signals that we blocked; a program that is not there is an error. A
 * child yields and goes with us where that is asked; its end is told once. Nothing that is opened
 * takes the place of a standard file that we were started without.
 * Method: /bin/sh as the child, files in memory.
 */
#include "base/io/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
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

/* Has the file so many lines? It looks for a minute. */
static bool wait_for_lines(int file, int lines)
{
    for (int look = 0; look < 6000; look++) {
        char found[256] = "";
        int count = 0;

        assert_true(pread(file, found, sizeof(found) - 1, 0) >= 0);
        for (const char *at = found; *at != '\0'; at++) {
            count += *at == '\n';
        }
        if (count >= lines) {
            return true;
        }
        (void)usleep(10000);
    }
    return false;
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

/* A zombie has no command line. */
static bool runs(pid_t process)
{
    char path[64];
    char line[8];
    bool found;
    int file;

    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", process);
    file = open(path, O_RDONLY | O_CLOEXEC);
    found = file >= 0 && read(file, line, sizeof(line)) > 0;
    if (file >= 0) {
        (void)close(file);
    }
    return found;
}

/* A parent that ends at once, whose child says when it begins and would sleep long. */
static void test_a_child_can_yield_and_goes_with_us(void **state)
{
    const struct spawn_files files = {
        .input = -1, .output = -1, .log = file_of(""), .further = -1, .tied = true, .yields = true};
    const char *const words[] = {"sh", "-c", "chrt -p $$ >&2; echo $$ >&2; exec sleep 600", NULL};
    char found[256] = "";
    struct error error;
    const char *line;
    pid_t process;

    (void)state;
    if (fork() == 0) {
        _exit(spawn_program(&process, "sh", words, &files, &error) == STATUS_OK &&
                      wait_for_lines(files.log, 3)
                  ? 0
                  : 1);
    }
    assert_int_equal(wait(&(int){0}) > 0, 1);
    assert_true(pread(files.log, found, sizeof(found) - 1, 0) > 0);
    assert_non_null(strstr(found, "SCHED_IDLE"));
    line = strrchr(found, '\n');
    while (line > found && line[-1] != '\n') {
        line--;
    }
    process = (pid_t)strtol(line, NULL, 10);
    assert_true(process > 0);
    while (runs(process)) { /* it dies with its parent */
        (void)usleep(1000);
    }
    (void)close(files.log);
}

static void test_the_end_of_a_child_is_told_once(void **state)
{
    const struct spawn_files files = {.input = -1, .output = -1, .further = -1};
    const char *const words[] = {"sh", "-c", "exit 7", NULL};
    struct error error;
    pid_t process;
    int how = 0;

    (void)state;
    assert_int_equal(spawn_program(&process, "sh", words, &files, &error), STATUS_OK);
    assert_int_equal(spawn_code(spawn_end(&process, 0, SPAWN_FOR_EVER)), 7);
    assert_int_equal(process, 0);
    assert_false(spawn_ended(&process, &how));
    assert_int_equal(spawn_end(&process, SIGKILL, 0), 0);
    /* Somebody else waited for it. */
    assert_int_equal(spawn_program(&process, "sh", words, &files, &error), STATUS_OK);
    assert_int_equal(waitpid(process, NULL, 0), process);
    assert_true(spawn_ended(&process, &how));
    assert_int_equal(spawn_code(how), 126);
    for (uint32_t wait_ms = 0; wait_ms <= 20; wait_ms += 20) {
        assert_int_equal(spawn_program(&process, "sh", words, &files, &error), STATUS_OK);
        assert_int_equal(waitpid(process, NULL, 0), process);
        assert_int_equal(
            spawn_code(spawn_end(&process, 0, wait_ms == 0 ? SPAWN_FOR_EVER : wait_ms)), 126);
        assert_int_equal(process, 0);
    }
}

static void test_a_child_that_hears_nothing_is_killed(void **state)
{
    const struct spawn_files files = {.input = -1, .output = file_of(""), .further = -1};
    const char *const words[] = {"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done",
                                 NULL};
    char found[8] = "";
    struct error error;
    pid_t process;

    (void)state;
    assert_int_equal(spawn_program(&process, "sh", words, &files, &error), STATUS_OK);
    while (pread(files.output, found, sizeof(found) - 1, 0) < 6) {
        (void)usleep(1000);
    }
    assert_int_equal(spawn_code(spawn_end(&process, SIGTERM, 50)), 128 + SIGKILL);
    (void)close(files.output);
}

static void test_nothing_takes_the_place_of_a_closed_file(void **state)
{
    for (int closed = 1; closed < 8; closed++) { /* each choice of the three */
        int how = 0;
        pid_t process = fork();

        if (process == 0) {
            bool right = true;

            for (int file = 0; file < 3; file++) {
                right = right && ((closed >> file & 1) == 0 || close(file) == 0);
            }
            spawn_hold_standard();
            right = right && open("/dev/zero", O_RDWR | O_CLOEXEC) > STDERR_FILENO;
            for (int file = 0; file < 3; file++) { /* what was closed still fails */
                char byte = 0;

                right = right && ((closed >> file & 1) == 0 ||
                                  (file == 0 ? read(file, &byte, 1) : write(file, &byte, 1)) < 0);
            }
            _exit(right ? 0 : 1);
        }
        assert_int_equal(waitpid(process, &how, 0), process);
        assert_int_equal(spawn_code(how), 0);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_child_has_its_files_and_our_environment),
        cmocka_unit_test(test_a_further_file_may_lie_at_its_place_already),
        cmocka_unit_test(test_without_an_input_a_child_reads_nothing_of_ours),
        cmocka_unit_test(test_a_signal_that_we_block_ends_a_child),
        cmocka_unit_test(test_a_program_that_is_not_there_is_named),
        cmocka_unit_test(test_a_child_can_yield_and_goes_with_us),
        cmocka_unit_test(test_the_end_of_a_child_is_told_once),
        cmocka_unit_test(test_a_child_that_hears_nothing_is_killed),
        cmocka_unit_test(test_nothing_takes_the_place_of_a_closed_file),
    };

    return cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}
