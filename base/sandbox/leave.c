/* leave.c - see leave.h. */
#include "base/sandbox/leave.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK_SIZE (64 * 1024) /* it counts as memory of the check */

static void *watch_output(void *context)
{
    struct pollfd watched = {.fd = (int)(intptr_t)context};

    for (;;) { /* without events: only the end is told */
        const int seen = poll(&watched, 1, -1);

        if (seen > 0) {
            _exit(EXIT_FAILURE);
        }
        if (seen < 0 && errno != EINTR) {
            return NULL;
        }
    }
}

void leave_unheard(int output)
{
    pthread_attr_t attributes;
    pthread_t thread;

    if (pthread_attr_init(&attributes) != 0) {
        return;
    }
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
    /* Without the thread a check that is cut off stops by its own limits. */
    (void)!pthread_create(&thread, &attributes, watch_output, (void *)(intptr_t)output);
    (void)pthread_attr_destroy(&attributes);
}
