/* stop.c - see stop.h. */
#include "base/io/stop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define WAIT_MILLISECONDS_MAX 86400000.0

static enum status block_signals(sigset_t *signals, struct stop *stop, struct error *error)
{
    memset(stop, 0, sizeof(*stop));
    stop->descriptor = -1;
    sigemptyset(signals);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGHUP);
    errno = pthread_sigmask(SIG_BLOCK, signals, &stop->before);
    return errno == 0 ? STATUS_OK : error_set_errno(error, "cannot block signals");
}

enum status stop_open_word(struct stop *stop, int descriptor, struct error *error)
{
    sigset_t signals;

    TRY(block_signals(&signals, stop, error));
    stop->by_word = true;
    stop->descriptor = descriptor;
    return STATUS_OK;
}

enum status stop_open(struct stop *stop, struct error *error)
{
    sigset_t signals;

    TRY(block_signals(&signals, stop, error));
    stop->descriptor = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (stop->descriptor < 0) {
        enum status status = error_set_errno(error, "cannot open a descriptor for signals");

        (void)pthread_sigmask(SIG_SETMASK, &stop->before, NULL);
        return status;
    }
    return STATUS_OK;
}

/* What was sent stays for who reads the descriptor. */
static bool has_word(int descriptor)
{
    struct pollfd watched = {.fd = descriptor, .events = POLLIN};

    return poll(&watched, 1, 0) > 0;
}

bool stop_requested(struct stop *stop)
{
    struct signalfd_siginfo info;

    if (stop == NULL) {
        return false;
    }
    if (stop->by_word) {
        if (stop->signal == 0 && has_word(stop->descriptor)) {
            stop->signal = SIGTERM;
        }
        return stop->signal != 0;
    }
    if (stop->signal == 0 && stop->descriptor >= 0 &&
        read(stop->descriptor, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        stop->signal = (int)info.ssi_signo;
        (void)pthread_sigmask(SIG_SETMASK, &stop->before, NULL);
    }
    return stop->signal != 0;
}

bool stop_called_back(void *stop)
{
    return stop_requested(stop);
}

bool stop_wait(struct stop *stop, double seconds)
{
    double milliseconds = seconds * 1000;
    struct pollfd watched = {.fd = stop->descriptor, .events = POLLIN};

    if (!stop_requested(stop) && milliseconds > 0) {
        (void)poll(
            &watched, 1,
            (int)(milliseconds < WAIT_MILLISECONDS_MAX ? milliseconds : WAIT_MILLISECONDS_MAX));
    }
    return stop_requested(stop);
}

void stop_close(struct stop *stop)
{
    if (stop->descriptor >= 0) {
        if (!stop->by_word) {
            close(stop->descriptor);
        }
        stop->descriptor = -1;
        (void)pthread_sigmask(SIG_SETMASK, &stop->before, NULL);
    }
}
