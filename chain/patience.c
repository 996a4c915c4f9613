/* patience.c - see patience.h. */
#include "chain/patience.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/progress.h"

enum {
    WAIT_S_FIRST = 1,
    SLICE_MS = 500, /* the line on a terminal, and signs of life */
    STATUS_TEXT_MAX = 300,
    LINE_MAX_SHOWN = 119,
};

static bool has_terminal(const struct patience *patience)
{
    return patience->terminal != NULL && isatty(fileno(patience->terminal)) == 1;
}

/* Each wait that is longer than the one before is told, and then one in every hour; on a terminal,
 * where a line shows the tries, the first. */
static bool is_told(const struct patience *patience, uint64_t wait_s)
{
    uint32_t of_hour = 3600 / PATIENCE_WAIT_S_MAX;

    return has_terminal(patience) ? patience->tries == 1
                                  : wait_s < PATIENCE_WAIT_S_MAX || patience->tries % of_hour == 0;
}

static void tell(struct patience *patience, const struct error *error, uint64_t wait_s)
{
    char words[STATUS_TEXT_MAX];

    (void)snprintf(words, sizeof(words), "waiting for the ledger: %.200s", error->text);
    if (patience->notify != NULL) {
        notify_ready(patience->notify, words); /* who waits must not time out as a start */
    }
    if (patience->waiting != NULL) {
        patience->waiting(patience->context, error->text);
    }
    if (is_told(patience, wait_s)) {
        log_warn(patience->log, patience->area,
                 "the ledger cannot be reached: %.300s; tried again in %" PRIu64
                 " s, and for as long as it takes. Is the network there, and ledger= right? A "
                 "second endpoint helps: ledger=URL,URL",
                 error->text, wait_s);
    }
}

static void draw(const struct patience *patience, const struct error *error, double left_s)
{
    char line[LINE_MAX_SHOWN + 1];
    char safe[LINE_MAX_SHOWN + 1];

    if (has_terminal(patience)) {
        (void)snprintf(line, sizeof(line),
                       "no ledger after %" PRIu32 " tries, again in %.0f s: %.70s", patience->tries,
                       left_s, error->text);
        (void)log_escape(safe, sizeof(safe), line, 0);
        (void)fprintf(patience->terminal, "\r%s\033[K", safe);
        (void)fflush(patience->terminal);
    }
}

/* Whether a stop was asked for. */
static bool wait_for(struct patience *patience, const struct error *error, uint64_t wait_s)
{
    double end_s = progress_now() + (double)wait_s;
    double left_s = (double)wait_s;

    while (left_s > 0) {
        double slice_s = left_s < SLICE_MS / 1e3 ? left_s : SLICE_MS / 1e3;

        if (patience->notify != NULL) {
            notify_alive(patience->notify);
        }
        draw(patience, error, left_s);
        if (stop_wait(patience->stop, slice_s)) {
            return true;
        }
        left_s = end_s - progress_now();
    }
    return stop_requested(patience->stop);
}

static void leave_line(const struct patience *patience)
{
    if (patience->tries > 0 && has_terminal(patience)) {
        (void)fputc('\n', patience->terminal);
    }
}

bool patience_again(struct patience *patience, enum status *status, struct error *error)
{
    uint64_t wait_s = backoff_pause(WAIT_S_FIRST, PATIENCE_WAIT_S_MAX, patience->tries);
    double now_s = progress_now();

    if (patience->tries == 0) {
        patience->begun_s = now_s;
    }
    if (*status == STATUS_UNREACHABLE && !stop_requested(patience->stop) &&
        (patience->limit_s == 0 || now_s < patience->begun_s + (double)patience->limit_s)) {
        patience->tries++;
        tell(patience, error, wait_s);
        if (!wait_for(patience, error, wait_s)) {
            error_init(error);
            return true;
        }
    }
    leave_line(patience);
    if (*status == STATUS_UNREACHABLE && stop_requested(patience->stop)) {
        *status = error_set(error, STATUS_STOPPED, "stopped while waiting for the ledger");
    }
    if (*status == STATUS_OK && patience->tries > 0) {
        log_info(patience->log, patience->area, "the ledger is reached");
    }
    return false;
}
