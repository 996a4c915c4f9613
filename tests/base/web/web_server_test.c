/*
 * Goal: a page asked for by thousands of slow and silent clients is still given to a client that
 * reads it, at once, and the server holds no more connections and no more answers than it says.
 * Method: a server in this process, floods of sockets that say nothing, a byte now and then, or ask
 * and do not read; beside them somebody who asks and reads.
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/http/http_callers.h"
#include "base/web/web_server.h"

#define PLACES    304 /* of the server, with those that are on their way out */
#define BYTES_MAX ((size_t)64 << 20)
#define CROWD     2000 /* at a time, where this machine lets one process have so many */
#define READERS   400  /* who do not read */
#define ASKS      20
#define PAGE_SIZE ((size_t)1 << 20)
#define AT_ONCE_S 8 /* below what the server waits for a silent one; a busy machine needs some */

static uint64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- the site ---------------------------------------------------------------------- */

static enum status look(void *context, uint64_t moment, struct error *error)
{
    (void)context;
    (void)moment;
    (void)error;
    return STATUS_OK;
}

static const char *trouble(void *context)
{
    (void)context;
    return NULL;
}

static void write_page(struct buffer *answer, void *context, const struct web_query *query)
{
    static char page[PAGE_SIZE];

    (void)context;
    (void)query;
    memset(page, 'x', sizeof(page));
    buffer_add(answer, page, sizeof(page));
}

static const struct web_route routes[] = {{"/", WEB_SERVER_PAGE, write_page}};

static struct web_server *serve(void)
{
    const struct web_site site = {.routes = routes,
                                  .route_count = 1,
                                  .size_max = 2 * PAGE_SIZE,
                                  .look = look,
                                  .trouble = trouble};
    struct listen_place place;
    struct web_server *server;
    struct error error;

    error_init(&error);
    assert_int_equal(listen_place_read(&place, "0", &error), STATUS_OK);
    assert_int_equal(web_server_open(&server, &site, &place, &error), STATUS_OK);
    return server;
}

/* ---- clients ----------------------------------------------------------------------- */

/* -1: the system has no place for it now. */
static int reach(uint16_t port, bool waits)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK), 0);

    if (one >= 0 && connect(one, (const struct sockaddr *)&address, sizeof(address)) != 0 &&
        errno != EINPROGRESS) {
        (void)close(one);
        return -1;
    }
    return one;
}

/* Asks, and reads to the end: how many bytes came, within some seconds. */
static size_t ask(uint16_t port, const char *path)
{
    uint64_t end_ms = now_ms() + 1000 * AT_ONCE_S;
    int one = reach(port, true);
    static char bytes[1 << 16];
    char request[100];
    size_t size = 0;
    ssize_t got = 1;

    assert_true(one >= 0);
    (void)snprintf(request, sizeof(request),
                   "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    if (send(one, request, strlen(request), MSG_NOSIGNAL) < 0) {
        got = 0;
    }
    while (got > 0 && now_ms() < end_ms) {
        struct pollfd ready = {.fd = one, .events = POLLIN};

        if (poll(&ready, 1, 100) > 0) {
            got = recv(one, bytes, sizeof(bytes), 0);
            size += got > 0 ? (size_t)got : 0;
        }
    }
    (void)close(one);
    return now_ms() < end_ms ? size : 0;
}

struct crowd {
    int sockets[CROWD];
    size_t count;
};

/* As many as this process may have: the server's ends are in it too. */
static size_t room(void)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit.rlim_cur < CROWD + 1000 ? (size_t)limit.rlim_cur - 600 : CROWD;
}

/* Each says its words, a few more at a time, and reads nothing. In between somebody asks. */
static void come(struct crowd *crowd, size_t most, uint16_t port, const char *words)
{
    size_t served = 0;

    for (crowd->count = 0; crowd->count < most; crowd->count++) {
        int one = reach(port, false);

        crowd->sockets[crowd->count] = one;
        if (one >= 0 && words != NULL) {
            struct pollfd ready = {.fd = one, .events = POLLOUT};

            (void)poll(&ready, 1, 1000);
            (void)!send(one, words, strlen(words), MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        if (crowd->count % (most / ASKS) == 0) {
            served += ask(port, "/health") > 0;
        }
    }
    assert_true(served >= ASKS);
}

static void drip(const struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        if (crowd->sockets[i] >= 0) {
            (void)!send(crowd->sockets[i], "a", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
    }
}

static void leave(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        if (crowd->sockets[i] >= 0) {
            (void)close(crowd->sockets[i]);
        }
    }
}

/* Those whose connection still stands, as they see it. */
static size_t still_here(const struct crowd *crowd)
{
    size_t here = 0;

    for (size_t i = 0; i < crowd->count; i++) {
        struct pollfd state = {.fd = crowd->sockets[i], .events = POLLRDHUP};

        here += crowd->sockets[i] >= 0 && poll(&state, 1, 0) == 0;
    }
    return here;
}

/* ---- tests -------------------------------------------------------------------------- */

static void test_silent_clients_keep_nobody_out(void **state)
{
    static struct crowd crowd;
    struct web_server *server = serve();
    uint16_t port = web_server_port(server);

    (void)state;
    come(&crowd, room(), port, NULL);
    assert_true(ask(port, "/") > PAGE_SIZE);
    assert_in_range(still_here(&crowd), 1, PLACES);
    leave(&crowd);
    web_server_close(server);
}

static void test_clients_that_never_end_their_request_keep_nobody_out(void **state)
{
    static struct crowd crowd;
    struct web_server *server = serve();
    uint16_t port = web_server_port(server);

    (void)state;
    come(&crowd, room(), port, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    for (int i = 0; i < ASKS; i++) {
        drip(&crowd);
        assert_true(ask(port, "/") > PAGE_SIZE);
    }
    assert_in_range(still_here(&crowd), 1, PLACES);
    leave(&crowd);
    web_server_close(server);
}

/* In kilobytes. */
static size_t resident(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %zu", &pages), 1);
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void test_clients_that_do_not_read_hold_little_memory(void **state)
{
    static struct crowd crowd;
    struct web_server *server = serve();
    uint16_t port = web_server_port(server);
    size_t before = resident();

    (void)state;
    come(&crowd, READERS, port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_true(ask(port, "/") > PAGE_SIZE);
#ifdef __SANITIZE_ADDRESS__ /* what is freed stays resident there for a while */
    (void)before;
#else
    /* Not an answer for each place, which would be four times as much. */
    assert_true(resident() < before + 2 * BYTES_MAX / 1024);
#endif
    leave(&crowd);
    web_server_close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent_clients_keep_nobody_out),
        cmocka_unit_test(test_clients_that_never_end_their_request_keep_nobody_out),
        cmocka_unit_test(test_clients_that_do_not_read_hold_little_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
