/*
 * stop.h - a clean stop: SIGINT, SIGTERM and SIGHUP are read, not handled.
 *
 * While a stop is open these signals wait in a descriptor, so no handler runs and no system call
 * is interrupted. Long work calls stop_requested between its steps and returns STATUS_STOPPED. The
 * first signal requests the stop; after it signals act as usual again, so a second Ctrl-C ends a
 * program that hangs.
 *
 * Open it before any thread is started (OpenMP's first parallel region, an HTTP server): threads
 * inherit which signals wait.
 */
#ifndef BASE_IO_STOP_H
#define BASE_IO_STOP_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

struct stop {
    int descriptor;    /* for poll(); -1 when not open */
    atomic_int signal; /* that requested the stop; 0 before */
    bool by_word;      /* stop_open_word() opened it */
    sigset_t before;
};

MUST_CHECK enum status stop_open(struct stop *stop, struct error *error);

/* A stop that the process at the other end of this descriptor requests, by sending anything or by
 * ending. Borrows the descriptor. The signals wait unread: they are for that process. */
MUST_CHECK enum status stop_open_word(struct stop *stop, int descriptor, struct error *error);

/* Cheap enough for every step of a training run; several threads may call it. stop may be NULL:
 * never. */
bool stop_requested(struct stop *stop);
bool stop_called_back(void *stop); /* the same, for those who are given a function */

/* Waits until a stop is requested or seconds have passed; returns whether it was requested. */
bool stop_wait(struct stop *stop, double seconds);

/* A child must not inherit blocked signals: spawn_program() unblocks all; who forks by himself
 * calls this before exec. */
void stop_close(struct stop *stop);

#endif /* BASE_IO_STOP_H */
