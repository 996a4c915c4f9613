/*
 * notify.h - tells the service manager how we are: systemd's notify protocol, and nothing else.
 *
 * A message is one datagram to the socket that $NOTIFY_SOCKET names. Without that variable nobody
 * wants to hear, and every call does nothing. A message that cannot be sent is no trouble of ours:
 * the manager acts on silence by itself.
 */
#ifndef BASE_IO_NOTIFY_H
#define BASE_IO_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct notify {
    int descriptor;       /* -1: nobody listens */
    uint64_t watchdog_ms; /* a sign of life is wanted that often; 0: none is */
    bool ready;           /* was said */
    uint64_t told_ms;     /* when the last one was sent, on the steady clock */
};

/* Looks at $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID, and takes them out of the environment,
 * so that children do not speak for us. Call it before threads are started. */
void notify_open(struct notify *notify);
void notify_close(struct notify *notify);

/* One line for people, shown by systemctl status; who says it again changes the line. */
void notify_ready(struct notify *notify, const char *words);
void notify_stopping(struct notify *notify);

/* A sign of life, when half of the watchdog's time is over. Call it often. */
void notify_alive(struct notify *notify);

/* How long at most to wait between two calls of notify_alive. */
uint64_t notify_wait_ms(const struct notify *notify, uint64_t wait_ms);

#endif /* BASE_IO_NOTIFY_H */
