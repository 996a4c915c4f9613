/*
 * Goal: a program sends its service manager the messages of sd_notify(3), and does nothing without
 * a manager. Method: a datagram socket of our own is the manager.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io/notify.h"

static int listen_at(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    size_t length = strlen(name);

    assert_true(descriptor >= 0);
    memcpy(address.sun_path, name, length);
    address.sun_path[0] = name[0] == '@' ? '\0' : name[0];
    assert_int_equal(bind(descriptor, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
                     0);
    return descriptor;
}

static const char *heard(int descriptor)
{
    static char text[1024];
    ssize_t size = recv(descriptor, text, sizeof(text) - 1, 0);

    text[size > 0 ? size : 0] = '\0';
    return text;
}

static const char *place(const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", test_temp_dir(), name);
    return path;
}

static void test_notify_tells_ready_alive_and_stopping(void **state)
{
    char abstract[64];
    const char *names[] = {place("manager"), abstract};

    (void)state;
    (void)snprintf(abstract, sizeof(abstract), "@lockstep-notify-test-%ld", (long)getpid());
    for (size_t i = 0; i < 2; i++) {
        int manager = listen_at(names[i]);
        struct notify notify;

        setenv("NOTIFY_SOCKET", names[i], 1);
        setenv("WATCHDOG_USEC", "20000", 1);
        notify_open(&notify);
        assert_null(getenv("NOTIFY_SOCKET"));
        assert_null(getenv("WATCHDOG_USEC"));
        assert_int_equal(notify.watchdog_ms, 20);
        notify_ready(&notify, "one\nMAINPID=1");
        assert_string_equal(heard(manager), "READY=1\nSTATUS=one MAINPID=1");
        notify_alive(&notify);
        usleep(30000);
        while (*heard(manager) != '\0') {
        }
        notify_alive(&notify);
        assert_string_equal(heard(manager), "WATCHDOG=1");
        assert_true(notify_wait_ms(&notify, 1000) < 10);
        notify_stopping(&notify);
        assert_string_equal(heard(manager), "STOPPING=1\nSTATUS=stopping");
        notify_close(&notify);
        close(manager);
    }
}

static void test_notify_without_a_manager_does_nothing(void **state)
{
    static const char *const names[] = {"", "/", "relative", "/nowhere/at/all", "vsock:2:1"};
    struct notify notify;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        setenv("NOTIFY_SOCKET", names[i], 1);
        setenv("WATCHDOG_USEC", "1000000", 1);
        notify_open(&notify);
        assert_int_equal(notify.descriptor, -1);
        assert_int_equal(notify.watchdog_ms, 0);
        notify_ready(&notify, "x");
        notify_alive(&notify);
        notify_stopping(&notify);
        notify_close(&notify);
    }
    assert_int_equal(notify_wait_ms(&notify, 1000), 1000);
}

static void test_notify_the_watchdog_of_another_process_is_not_ours(void **state)
{
    static const struct {
        const char *pid;
        const char *interval;
        uint64_t wanted_ms;
    } cases[] = {
        {"1", "1000000", 0},     {NULL, "1000000", 1000}, {NULL, "-5", 0},
        {NULL, "12x", 0},        {NULL, "", 0},           {NULL, "99999999999999999999", 0},
        {"0x", "1000000", 1000},
    };
    int manager = listen_at(place("watchdog"));

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct notify notify;

        setenv("NOTIFY_SOCKET", place("watchdog"), 1);
        setenv("WATCHDOG_USEC", cases[i].interval, 1);
        if (cases[i].pid != NULL) {
            setenv("WATCHDOG_PID", cases[i].pid, 1);
        }
        notify_open(&notify);
        assert_int_equal(notify.watchdog_ms, cases[i].wanted_ms);
        notify_close(&notify);
    }
    close(manager);
}

static void test_notify_a_manager_that_does_not_read_blocks_nobody(void **state)
{
    int manager = listen_at(place("deaf"));
    struct notify notify;

    (void)state;
    setenv("NOTIFY_SOCKET", place("deaf"), 1);
    notify_open(&notify);
    for (int i = 0; i < 5000; i++) {
        notify_ready(&notify, "again");
    }
    notify_close(&notify);
    close(manager);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notify_tells_ready_alive_and_stopping),
        cmocka_unit_test(test_notify_without_a_manager_does_nothing),
        cmocka_unit_test(test_notify_the_watchdog_of_another_process_is_not_ours),
        cmocka_unit_test(test_notify_a_manager_that_does_not_read_blocks_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
