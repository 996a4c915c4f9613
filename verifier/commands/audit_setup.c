/* audit_setup.c - see audit_setup.h. */
#include "verifier/commands/audit_setup.h"

#include <omp.h>

#include "base/steady.h"
#include "chain/commands/commands.h"
#include "proofs/run/run.h"
#include "verifier/commands/plan_commands.h"

static void show_progress(void *context, uint64_t done, uint64_t wanted)
{
    struct progress *progress = context;

    progress->total = wanted;
    progress_update(progress, done, "", steady_seconds());
}

static enum status choose_machine(struct machine_options *machine,
                                  struct audit_options *audit_options,
                                  struct command_context *context, struct error *error)
{
    const struct options *given = context->options;

    audit_options->workers = (uint32_t)options_number(given, "workers");
    audit_options->device = options_text(given, "device");
    audit_options->device_memory = options_number(given, "device-memory");
    audit_options->memory_max = options_number(given, "memory-max");
    audit_options->threads = (uint32_t)options_number(given, "threads");
    audit_options->launch = options_text(given, "launch");
    if (audit_options->launch == NULL && audit_options->threads == 0) {
        audit_options->threads = (uint32_t)omp_get_max_threads() / audit_options->workers;
        audit_options->threads += audit_options->threads == 0;
    }
    TRY(machine_options_default(machine, error));
    machine->thread_count = (int)audit_options->threads;
    if (audit_options->launch != NULL) {
        return plan_launch_device(audit_options->device, error);
    }
    return machine_options_device(machine, audit_options->device, context->log, error);
}

enum status audit_setup(struct audit_options *audit_options, struct machine_options *machine,
                        const char **sources, struct command_context *context,
                        struct progress *progress, struct stop *stop, struct error *error)
{
    const struct options *given = context->options;

    *audit_options = (struct audit_options){0};
    TRY(choose_machine(machine, audit_options, context, error));
    audit_options->sample = options_number(given, "sample");
    audit_options->sample_seed = options_number(given, "sample-seed");
    audit_options->seek = true;
    audit_options->source_count = options_list_count(given, "trace-from");
    if (audit_options->source_count > ACCUSED_SOURCES_MAX) {
        return error_set(error, STATUS_USAGE, "at most %d places for a trace can be named",
                         ACCUSED_SOURCES_MAX);
    }
    for (size_t i = 0; i < audit_options->source_count; i++) {
        sources[i] = options_list_item(given, "trace-from", i);
    }
    audit_options->sources = sources;
    audit_options->stop = stop;
    audit_options->progress = show_progress;
    audit_options->progress_context = progress;
    return STATUS_OK;
}

enum status audit_open_ledger(struct ledger **ledger, const struct command_context *context,
                              struct error *error)
{
    struct ledger_options options;
    char state_dir[FILE_PATH_MAX];

    if (!options_flag(context->options, "transactions")) {
        return STATUS_OK;
    }
    TRY(chain_ledger_options(&options, state_dir, context, NULL, error));
    return ledger_open(ledger, &options, error);
}

int audit_code_of(enum audit_answer answer)
{
    switch (answer) {
    case AUDIT_PROVEN:
        return COMMAND_OK;
    case AUDIT_REFUTED:
        return COMMAND_REFUSED;
    case AUDIT_CANNOT_TELL:
        break;
    }
    return COMMAND_UNKNOWN;
}

int audit_worse_code(int a, int b)
{
    if (a == COMMAND_REFUSED || b == COMMAND_REFUSED) {
        return COMMAND_REFUSED;
    }
    return a == COMMAND_UNKNOWN ? a : b;
}

int audit_fail(struct command_context *context, const struct error *error)
{
    const int code = command_fail(context, error);

    return code == COMMAND_REFUSED ? COMMAND_UNKNOWN : code;
}
