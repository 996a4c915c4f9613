/* job_keep.c - see job_keep.h. */
#include "client/keeper/job_keep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/stop.h"
#include "base/steady.h"
#include "base/web/ports.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/commands/job_source.h"
#include "client/keeper/keep_page.h"

enum {
    GLANCE_MS = 500, /* at the watchdog, while the next look waits */
    TROUBLE_S = 3,
};

const struct option_spec job_keep_options[JOB_KEEP_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    JOB_SOURCE_OPTIONS,
    CHAIN_POLL_OPTION("how often to look at the ledger"),
    JOB_PAGE_OPTION,
    {.name = "state",
     .heading = "keeping",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "states that are kept, and those of replays (default: keeper below the state folder, "
             "and the job's key)"},
    {.name = "serve",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "ADDRESS:PORT",
     .fallback = "127.0.0.1:" PORT_JOB_KEEP,
     .help = "where to serve what is kept; 0.0.0.0:" PORT_JOB_KEEP " for everybody"},
    KEEPER_CONTACT_OPTION(
        "where others find what is kept (default: the address of --serve); it is announced once"),
    {.name = "keep-max",
     .heading = "keeping",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .fallback = "64G",
     .help = "bytes of states; the oldest go once newer ones are whole"},
    {.name = "data",
     .heading = "data",
     .often = true,
     .kind = OPTION_LIST,
     .value = "FILE",
     .help = "the job's data, for replays; found by its root (default: from mirrors)"},
    KEEPER_OPTIONS,
};

struct keeping {
    struct command_context *context;
    struct stop stop;
    struct notify notify;
    struct keep_page page;
    struct keeper *keeper;
    struct keeper_counts shown;
    bool has_shown;
};

/* ---- showing ---------------------------------------------------------------------- */

/* What has changed, as a line or an object. */
static int show(struct keeping *keeping)
{
    struct command_context *context = keeping->context;
    const struct job_record *record = keeper_record(keeping->keeper);
    struct keeper_counts counts = keeper_counts(keeping->keeper);
    const struct job_standing *standing = &keeping->page.sight.view.standing;
    const char *phase = standing->read ? standing->phase : "";

    keep_page_take(&keeping->page, keeping->keeper);
    counts.looked_s = 0; /* that alone is no news */
    if (keeping->has_shown && memcmp(&counts, &keeping->shown, sizeof(counts)) == 0) {
        return COMMAND_OK;
    }
    keeping->shown = counts;
    keeping->has_shown = true;
    return command_say(
        context,
        json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "phase",
                  phase, "committed", (int)record->state.committed, "final",
                  (int)record->state.finalized, "covered", (int)counts.pending, "held",
                  (int)counts.held, "vouched", (int)counts.noted, "handed",
                  (json_int_t)counts.handed, "announced", (json_int_t)counts.announced, "brought",
                  (json_int_t)counts.brought, "refused", (json_int_t)counts.refused, "right",
                  (json_int_t)counts.right, "false", (json_int_t)counts.wrong, "failed",
                  (json_int_t)counts.failed),
        "%s: %u of %u segments final; %" PRIu64 " covered ones wait, %" PRIu64
        " with their states here, %" PRIu64 " vouched on the ledger\n",
        phase, record->state.finalized, record->state.segments, counts.pending, counts.held,
        counts.noted);
}

static int show_address(struct keeping *keeping)
{
    struct command_context *context = keeping->context;
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    const char *contact = keeper_contact(keeping->keeper);

    hex_write(key, keeper_record(keeping->keeper)->key.bytes, HASH32_SIZE, true);
    return command_say(context, json_pack("{s:s, s:s}", "keeping", key, "serving", contact),
                       "keeping job %.14s, found at %s    Ctrl-C ends it\n", key,
                       contact[0] == '\0' ? "no address" : contact);
}

/* ---- the command ------------------------------------------------------------------- */

static enum status open_keeper(struct keeping *keeping, struct error *error)
{
    const struct options *given = keeping->context->options;
    struct keeper_options options = {.context = keeping->context,
                                     .key = given->arguments[0],
                                     .stop = &keeping->stop,
                                     .notify = &keeping->notify,
                                     .sight = &keeping->page.sight,
                                     .place = options_text(given, "serve"),
                                     .state = options_text(given, "state")};

    TRY(stop_open(&keeping->stop, error)); /* before there are threads */
    TRY(chain_contact(&options.contact, given, error));
    TRY(keeper_open(&keeping->keeper, &options, error));
    return keep_page_open(&keeping->page, keeping->context, keeping->keeper, error);
}

/* Until the next look, with signs of life. False: a stop is requested. */
static bool wait(struct keeping *keeping, double seconds)
{
    double end_s = steady_seconds() + seconds;

    while (steady_seconds() < end_s) {
        notify_alive(&keeping->notify);
        if (stop_wait(&keeping->stop, GLANCE_MS / 1000.0)) {
            return false;
        }
    }
    return !stop_requested(&keeping->stop);
}

/* A full disk may have room later; a keeper that ends would let its job down. */
static enum status keep(struct keeping *keeping, int *code, struct error *error)
{
    double poll_s = (double)options_number(keeping->context->options, "poll");
    bool on = true;

    while (on && *code == COMMAND_OK && !keeper_is_done(keeping->keeper)) {
        struct error why;
        enum status status;

        error_init(&why);
        status = keeper_round(keeping->keeper, &why);
        if (status == STATUS_GONE) {
            *error = why;
            return status;
        }
        if (status != STATUS_OK && status != STATUS_STOPPED) {
            log_error(keeping->context->log, "keeper", "%s", why.text);
        }
        *code = show(keeping);
        on = wait(keeping, status == STATUS_OK ? poll_s : TROUBLE_S);
    }
    if (keeper_is_done(keeping->keeper)) {
        log_info(keeping->context->log, "keeper", "the job is closed: nothing is left to keep");
    }
    return STATUS_OK;
}

int job_keep_run(struct command_context *context)
{
    struct keeping *keeping = calloc(1, sizeof(*keeping));
    struct error error;
    enum status status;
    int code = COMMAND_OK;

    error_init(&error);
    if (keeping == NULL) {
        (void)error_set(&error, STATUS_NO_MEMORY, "no memory to keep");
        return command_fail(context, &error);
    }
    keeping->context = context;
    keeping->stop.descriptor = -1;
    keep_page_init(&keeping->page);
    notify_open(&keeping->notify);
    TRY_OUT(open_keeper(keeping, &error));
    code = show_address(keeping);
    notify_ready(&keeping->notify, "keeping");
    TRY_OUT(keep(keeping, &code, &error));
out:
    notify_stopping(&keeping->notify);
    keep_page_close(&keeping->page);
    keeper_close(keeping->keeper);
    stop_close(&keeping->stop);
    notify_close(&keeping->notify);
    keep_page_release(&keeping->page);
    free(keeping);
    if (status == STATUS_STOPPED) { /* a stop while it opened is no failure */
        log_info(context->log, "keeper", "%s", error.text);
        return COMMAND_OK;
    }
    return status == STATUS_OK ? code : command_fail(context, &error);
}
