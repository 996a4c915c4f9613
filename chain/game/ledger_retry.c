/* ledger_retry.c - see ledger_retry.h. */
#include "chain/game/ledger_retry.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/io/progress.h"
#include "base/steady.h"

enum {
    WAIT_S_FIRST = 1,
    SLICE_MS = 500, /* the line on a terminal, and signs of life */
    STATUS_TEXT_MAX = 300,
    LINE_MAX_SHOWN = 119,
};

static bool has_terminal(const struct ledger_retry *retry)
{
    return retry->terminal != NULL && isatty(fileno(retry->terminal)) == 1;
}

/* Logs each wait that is longer than the one before, then one an hour. On a terminal, where a line
 * shows the tries, only the first. */
static bool is_told(const struct ledger_retry *retry, uint64_t wait_s)
{
    uint32_t of_hour = 3600 / LEDGER_RETRY_WAIT_S_MAX;

    return has_terminal(retry) ? retry->tries == 1
                               : wait_s < LEDGER_RETRY_WAIT_S_MAX || retry->tries % of_hour == 0;
}

static void report_wait(struct ledger_retry *retry, const struct error *error, uint64_t wait_s)
{
    char words[STATUS_TEXT_MAX];

    (void)snprintf(words, sizeof(words), "waiting for the ledger: %.200s", error->text);
    if (retry->notify != NULL) {
        notify_ready(retry->notify, words); /* a wait must not count as a slow start */
    }
    if (retry->waiting != NULL) {
        retry->waiting(retry->context, error->text);
    }
    if (is_told(retry, wait_s)) {
        log_warn(retry->log, retry->area,
                 "the ledger cannot be reached: %.300s; tried again in %" PRIu64
                 " s, and for as long as it takes. Is the network there, and ledger= right? With "
                 "a second endpoint, ledger=URL,URL, one that is away is done without",
                 error->text, wait_s);
    }
}

static void draw_wait(const struct ledger_retry *retry, const struct error *error, double left_s)
{
    char line[LINE_MAX_SHOWN + 1];
    char safe[LINE_MAX_SHOWN + 1];

    if (has_terminal(retry)) {
        (void)snprintf(line, sizeof(line),
                       "no ledger after %" PRIu32 " tries, again in %.0f s: %.70s", retry->tries,
                       left_s, error->text);
        (void)log_escape(safe, sizeof(safe), line, 0);
        (void)fprintf(retry->terminal, "\r%s\033[K", safe);
        (void)fflush(retry->terminal);
    }
}

/* Is there a stop? */
static bool wait_for(struct ledger_retry *retry, const struct error *error, uint64_t wait_s)
{
    double end_s = steady_seconds() + (double)wait_s;
    double left_s = (double)wait_s;

    while (left_s > 0) {
        double slice_s = left_s < SLICE_MS / 1e3 ? left_s : SLICE_MS / 1e3;

        if (retry->notify != NULL) {
            notify_alive(retry->notify);
        }
        draw_wait(retry, error, left_s);
        if (stop_wait(retry->stop, slice_s)) {
            return true;
        }
        left_s = end_s - steady_seconds();
    }
    return stop_requested(retry->stop);
}

static void leave_line(const struct ledger_retry *retry)
{
    if (retry->tries > 0 && has_terminal(retry)) {
        (void)fputc('\n', retry->terminal);
    }
}

bool ledger_retry_again(struct ledger_retry *retry, enum status *status, struct error *error)
{
    uint64_t wait_s = backoff_pause(WAIT_S_FIRST, LEDGER_RETRY_WAIT_S_MAX, retry->tries);
    double now_s = steady_seconds();

    if (retry->tries == 0) {
        retry->begun_s = now_s;
    }
    if (*status == STATUS_UNREACHABLE && !stop_requested(retry->stop) &&
        (retry->limit_s == 0 || now_s < retry->begun_s + (double)retry->limit_s)) {
        retry->tries++;
        report_wait(retry, error, wait_s);
        if (!wait_for(retry, error, wait_s)) {
            error_init(error);
            return true;
        }
    }
    leave_line(retry);
    if (*status == STATUS_UNREACHABLE && stop_requested(retry->stop)) {
        *status = error_set(error, STATUS_STOPPED, "stopped while waiting for the ledger");
    }
    if (*status == STATUS_OK && retry->tries > 0) {
        log_info(retry->log, retry->area, "the ledger is reached");
    }
    return false;
}
