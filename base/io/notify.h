/*
 * notify.h - reports the state of a service to systemd by its notify protocol.
 *
 * A message is one datagram to the socket that $NOTIFY_SOCKET names. Without that variable every
 * call does nothing. A message that cannot be sent is not an error: the manager reacts to silence.
 */
#ifndef BASE_IO_NOTIFY_H
#define BASE_IO_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct notify {
    int descriptor;       /* -1: no socket */
    uint64_t watchdog_ms; /* the manager wants a sign of life this often; 0: never */
    bool ready;           /* notify_ready was called */
    uint64_t sent_ms;     /* when the last sign of life was sent, on the steady clock */
};

/* Looks at $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID, and removes them from the environment,
 * so that children do not report for us. Call it before threads are started. */
void notify_open(struct notify *notify);
void notify_close(struct notify *notify);

/* One line for people, shown by systemctl status; a later call replaces it. */
void notify_ready(struct notify *notify, const char *words);
void notify_stopping(struct notify *notify);

/* Sends a sign of life when half of the watchdog's time has passed. Call it often. */
void notify_alive(struct notify *notify);

/* How long at most to wait between two calls of notify_alive. */
uint64_t notify_wait_ms(const struct notify *notify, uint64_t wait_ms);

#endif /* BASE_IO_NOTIFY_H */
