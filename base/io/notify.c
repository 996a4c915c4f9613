/* notify.c - see notify.h. */
#include "base/io/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/steady.h"
#include "base/text.h"

#define MESSAGE_MAX     512
#define WATCHDOG_US_MAX UINT64_C(86400000000) /* a day */

static void send_message(const struct notify *notify, const char *message)
{
    if (notify->descriptor >= 0) {
        (void)send(notify->descriptor, message, strlen(message), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

/* -1: name is neither a path nor an abstract name ("@..."), or nobody listens there. */
static int connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    int descriptor;

    if ((name[0] != '/' && name[0] != '@') || length < 2 || length >= sizeof(address.sun_path)) {
        return -1;
    }
    memcpy(address.sun_path, name, length);
    if (name[0] == '@') {
        address.sun_path[0] = '\0';
    } else {
        size++; /* with its NUL */
    }
    descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor >= 0 && connect(descriptor, (const struct sockaddr *)&address, size) != 0) {
        (void)close(descriptor);
        return -1;
    }
    return descriptor;
}

static uint64_t read_number(const char *name, uint64_t maximum)
{
    uint64_t number;

    return text_is_number(&number, getenv(name), maximum) ? number : 0;
}

void notify_open(struct notify *notify)
{
    const char *name = getenv("NOTIFY_SOCKET");
    uint64_t process = read_number("WATCHDOG_PID", UINT32_MAX);

    *notify = (struct notify){.descriptor = name == NULL ? -1 : connect_to(name)};
    if (notify->descriptor >= 0 && (process == 0 || process == (uint64_t)getpid())) {
        notify->watchdog_ms = read_number("WATCHDOG_USEC", WATCHDOG_US_MAX) / 1000;
    }
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
}

void notify_close(struct notify *notify)
{
    if (notify->descriptor >= 0) {
        (void)close(notify->descriptor);
    }
    *notify = (struct notify){.descriptor = -1};
}

void notify_ready(struct notify *notify, const char *words)
{
    const char *before = notify->ready ? "STATUS=" : "READY=1\nSTATUS=";
    char message[MESSAGE_MAX];
    int length = snprintf(message, sizeof(message), "%s%s", before, words);

    /* A line break would begin another assignment. */
    for (int i = (int)strlen(before); i < length && message[i] != '\0'; i++) {
        message[i] = (unsigned char)message[i] < ' ' ? ' ' : message[i];
    }
    send_message(notify, message);
    if (!notify->ready) {
        notify->ready = true;
        notify->sent_ms = steady_ms();
    }
}

void notify_stopping(struct notify *notify)
{
    send_message(notify, "STOPPING=1\nSTATUS=stopping");
}

void notify_alive(struct notify *notify)
{
    uint64_t now = steady_ms();

    if (notify->watchdog_ms > 0 && now >= notify->sent_ms + notify->watchdog_ms / 2) {
        notify->sent_ms = now;
        send_message(notify, "WATCHDOG=1");
    }
}

uint64_t notify_wait_ms(const struct notify *notify, uint64_t wait_ms)
{
    uint64_t most = notify->watchdog_ms / 4 + 1;

    return notify->watchdog_ms > 0 && most < wait_ms ? most : wait_ms;
}
