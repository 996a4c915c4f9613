/*
 * Goal: a file is whole or not there, never replaced against the rule, read with a bound, and
 * locked by one process only.
 * Method: real files in a temporary folder; a full disk, played by a file size limit;
 * a second process for the lock.
 */
#include "base/io/file.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

static char *temp_file(const char *name)
{
    static char path[FILE_PATH_MAX];

    assert_int_equal(file_path_join(path, sizeof(path), NULL, test_temp_dir(), name), STATUS_OK);
    return path;
}

static size_t entries_of(const char *folder)
{
    DIR *dir = opendir(folder);
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count - 2;
}

static void test_new_files_respect_the_umask(void **state)
{
    const struct {
        mode_t umask, asked, got;
    } cases[] = {{022, 0644, 0644}, {077, 0644, 0600}, {027, 0644, 0640},
                 {0, 0644, 0644},   {0, 0600, 0600},   {0777, 0600, 0600}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mode_t before = umask(cases[i].umask);
        struct stat info;
        enum status status = file_write(temp_file("masked"), NULL, "x", 1, cases[i].asked);

        (void)umask(before);
        assert_int_equal(status, STATUS_OK);
        assert_int_equal(stat(temp_file("masked"), &info), 0);
        assert_int_equal(info.st_mode & 0777, cases[i].got);
        assert_int_equal(unlink(temp_file("masked")), 0);
    }
}

static void test_written_bytes_come_back(void **state)
{
    const char bytes[] = {'a', '\0', 'b'};
    struct file_bytes read_back;
    struct stat info;

    (void)state;
    assert_int_equal(file_write(temp_file("whole"), NULL, bytes, 3, 0640), STATUS_OK);
    assert_int_equal(file_read(&read_back, NULL, temp_file("whole"), 3), STATUS_OK);
    assert_int_equal(read_back.size, 3);
    assert_memory_equal(read_back.data, "a\0b\0", 4);
    file_bytes_release(&read_back);
    assert_int_equal(stat(temp_file("whole"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(file_write(temp_file("whole"), NULL, "", 0, 0600), STATUS_OK);
    assert_int_equal(file_read(&read_back, NULL, temp_file("whole"), 0), STATUS_OK);
    assert_int_equal(read_back.size, 0);
    file_bytes_release(&read_back);
}

static void test_larger_than_the_bound_is_refused(void **state)
{
    struct file_bytes bytes;
    struct error error;

    (void)state;
    assert_int_equal(file_write(temp_file("four"), NULL, "1234", 4, 0600), STATUS_OK);
    assert_int_equal(file_read(&bytes, &error, temp_file("four"), 3), STATUS_OVER_LIMIT);
    assert_null(bytes.data);
    assert_non_null(strstr(error.text, "four: larger than 3 bytes"));
}

static void test_what_is_not_a_file_is_refused(void **state)
{
    struct file_bytes bytes;
    struct error error;

    (void)state;
    assert_int_equal(file_read(&bytes, &error, temp_file("absent"), 9), STATUS_NOT_FOUND);
    assert_int_equal(error.status, STATUS_NOT_FOUND);
    assert_non_null(strstr(error.text, "absent: No such file or directory"));
    assert_int_equal(file_read(&bytes, &error, test_temp_dir(), 9), STATUS_REFUSED);
    assert_int_equal(file_read(&bytes, &error, "/dev/zero", 9), STATUS_REFUSED);
    assert_int_equal(mkfifo(temp_file("pipe"), 0600), 0);
    assert_int_equal(file_read(&bytes, &error, temp_file("pipe"), 9), STATUS_REFUSED);
}

static void test_existing_file_is_not_replaced_by_new(void **state)
{
    struct file_bytes bytes;
    struct error error;

    (void)state;
    assert_int_equal(file_write_new(temp_file("key"), &error, "one", 3, 0600), STATUS_OK);
    assert_int_equal(file_write_new(temp_file("key"), &error, "two", 3, 0600), STATUS_REFUSED);
    assert_non_null(strstr(error.text, "key: exists already"));
    assert_int_equal(file_read(&bytes, NULL, temp_file("key"), 3), STATUS_OK);
    assert_memory_equal(bytes.data, "one", 3);
    file_bytes_release(&bytes);
}

/* In a child, because the limit cannot be undone: writing more than 1000 bytes fails. */
static int child_without_room(const char *path)
{
    char large[4096] = {0};
    struct error error;

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, 1000}) != 0) {
        return 9;
    }
    return file_write(path, &error, large, sizeof(large), 0600) == STATUS_IO ? 0 : 1;
}

static void test_failed_write_leaves_the_old_file(void **state)
{
    char folder[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];
    struct file_bytes bytes;
    int code;
    pid_t child;

    (void)state;
    snprintf(folder, sizeof(folder), "%s", temp_file("full"));
    assert_int_equal(file_make_folder(folder, NULL, 0700), STATUS_OK);
    assert_int_equal(file_path_join(path, sizeof(path), NULL, folder, "state"), STATUS_OK);
    assert_int_equal(file_write(path, NULL, "old", 3, 0600), STATUS_OK);
    child = fork();
    if (child == 0) {
        _exit(child_without_room(path));
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    assert_int_equal(file_read(&bytes, NULL, path, 100), STATUS_OK);
    assert_memory_equal(bytes.data, "old", 4);
    file_bytes_release(&bytes);
    assert_int_equal(entries_of(folder), 1); /* nothing half-written lies beside it */
}

static void test_second_holder_is_refused_and_told_who(void **state)
{
    struct file_lock lock;
    struct file_lock second;
    struct error error;
    char holder[64];

    (void)state;
    assert_int_equal(file_lock_open(&lock, &error, temp_file("lock"), "give way"), STATUS_OK);
    assert_int_equal(file_lock_open(&second, &error, temp_file("lock"), "give way"),
                     STATUS_REFUSED);
    snprintf(holder, sizeof(holder), "in use by process %ld", (long)getpid());
    assert_non_null(strstr(error.text, holder));
    assert_string_equal(error.advice, "stop that process, or give way");
    assert_int_equal(second.descriptor, -1);
    file_lock_close(&lock);
    assert_int_equal(file_lock_open(&second, &error, temp_file("lock"), "give way"), STATUS_OK);
    file_lock_close(&second);
    file_lock_close(&second); /* harmless */
}

static void test_lock_ends_with_its_process(void **state)
{
    struct file_lock lock;
    pid_t child = fork();
    int code;

    (void)state;
    if (child == 0) {
        _exit(file_lock_open(&lock, NULL, temp_file("dies"), "give way") == STATUS_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    assert_int_equal(file_lock_open(&lock, NULL, temp_file("dies"), "give way"), STATUS_OK);
    file_lock_close(&lock);
}

static void test_a_state_folder_that_others_may_read_is_refused(void **state)
{
    static const mode_t modes[] = {0755, 0710, 0701, 0770, 0707};
    const char *folder = temp_file("private");
    char line[FILE_PATH_MAX + 16];
    struct stat made;
    struct error error;

    (void)state;
    assert_int_equal(file_private_folder(folder, &error), STATUS_OK);
    assert_int_equal(stat(folder, &made), 0);
    assert_int_equal(made.st_mode & 0777, 0700);
    (void)snprintf(line, sizeof(line), "chmod 700 %s", folder);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_int_equal(chmod(folder, modes[i]), 0);
        assert_int_equal(file_private_folder(folder, &error), STATUS_REFUSED);
        assert_string_equal(error.advice, line);
    }
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(file_private_folder(folder, &error), STATUS_OK);
}

static void test_folders_are_made_down_to_the_last(void **state)
{
    struct error error;

    (void)state;
    assert_int_equal(file_make_folder(temp_file("a/b/c"), &error, 0700), STATUS_OK);
    assert_int_equal(file_make_folder(temp_file("a/b/c"), &error, 0700), STATUS_OK);
    assert_true(file_exists(temp_file("a/b/c")));
    assert_int_equal(file_write(temp_file("a/file"), &error, "", 0, 0600), STATUS_OK);
    assert_int_equal(file_make_folder(temp_file("a/file"), &error, 0700), STATUS_REFUSED);
    assert_int_equal(file_make_folder(temp_file("a/file/x"), &error, 0700), STATUS_IO);
    assert_int_equal(file_make_folder("", &error, 0700), STATUS_OVER_LIMIT);
}

static void test_places_follow_the_xdg_rules(void **state)
{
    char path[FILE_PATH_MAX];
    struct error error;

    (void)state;
    setenv("XDG_CONFIG_HOME", "/x/y", 1);
    assert_int_equal(file_place(path, sizeof(path), &error, FILE_PLACE_CONFIG, "config"),
                     STATUS_OK);
    assert_string_equal(path, "/x/y/lockstep/config");
    assert_int_equal(file_place(path, 10, &error, FILE_PLACE_CONFIG, "config"), STATUS_OVER_LIMIT);
    setenv("XDG_DATA_HOME", "relative", 1);
    setenv("HOME", "/home/who", 1);
    assert_int_equal(file_place(path, sizeof(path), &error, FILE_PLACE_DATA, "runs"), STATUS_OK);
    assert_string_equal(path, "/home/who/.local/share/lockstep/runs");
    unsetenv("HOME");
    unsetenv("XDG_STATE_HOME");
    assert_int_equal(file_place(path, sizeof(path), &error, FILE_PLACE_STATE, "x"),
                     STATUS_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_files_respect_the_umask),
        cmocka_unit_test(test_written_bytes_come_back),
        cmocka_unit_test(test_a_state_folder_that_others_may_read_is_refused),
        cmocka_unit_test(test_larger_than_the_bound_is_refused),
        cmocka_unit_test(test_what_is_not_a_file_is_refused),
        cmocka_unit_test(test_existing_file_is_not_replaced_by_new),
        cmocka_unit_test(test_failed_write_leaves_the_old_file),
        cmocka_unit_test(test_second_holder_is_refused_and_told_who),
        cmocka_unit_test(test_lock_ends_with_its_process),
        cmocka_unit_test(test_folders_are_made_down_to_the_last),
        cmocka_unit_test(test_places_follow_the_xdg_rules),
    };

    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
