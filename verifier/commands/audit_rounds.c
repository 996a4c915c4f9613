/* audit_rounds.c - see audit_rounds.h. */
#include "verifier/commands/audit_rounds.h"

#include <string.h>

#include "base/hex.h"
#include "base/steady.h"
#include "chain/commands/commands.h"
#include "verifier/commands/audit_setup.h"
#include "verifier/rounds/rounds_audit.h"

bool audit_rounds_wanted(const struct command_context *context)
{
    for (size_t i = 0; i < context->options->argument_count; i++) {
        if (rounds_is_folder(context->options->arguments[i])) {
            return true;
        }
    }
    return false;
}

/* Options of bundles say nothing of rounds. */
static enum status check_words(const struct options *given, struct error *error)
{
    static const char *const of_bundles[] = {"data",       "base",   "sample", "evidence-folder",
                                             "trace-from", "report", "sign"};

    for (size_t i = 0; i < sizeof(of_bundles) / sizeof(of_bundles[0]); i++) {
        if (options_given(given, of_bundles[i])) {
            return error_set(error, STATUS_USAGE, "--%s says nothing of rounds", of_bundles[i]);
        }
    }
    for (size_t i = 0; i < given->argument_count; i++) {
        if (!rounds_is_folder(given->arguments[i])) {
            (void)error_set(error, STATUS_USAGE, "%s is no folder of rounds", given->arguments[i]);
            error_advise(error, "folders of rounds are audited by themselves");
            return STATUS_USAGE;
        }
    }
    return STATUS_OK;
}

static enum status open_ledger(struct ledger **ledger, struct command_context *context,
                               struct error *error)
{
    struct ledger_options options;
    char state_dir[FILE_PATH_MAX];

    if (!options_flag(context->options, "transactions")) {
        return STATUS_OK;
    }
    TRY(chain_ledger_options(&options, state_dir, context, NULL, error));
    TRY(ledger_open(ledger, &options, error));
    return ledger_catch_up(*ledger, error);
}

static json_t *view_of(const struct rounds_result *result)
{
    char id[HEX_SIZE(DIGEST_SIZE)];
    json_t *view;

    hex_encode(id, result->rounds.id.bytes, DIGEST_SIZE);
    view = json_pack("{s:s, s:s, s:s, s:i, s:i}", "folder", result->folder, "id", id, "answer",
                     audit_answer_name(rounds_audit_answer(result)), "rounds", (int)result->done,
                     "rounds_agreed", (int)result->rounds.count);
    for (size_t i = 0; i < ROUNDS_RESULT_LISTS; i++) {
        (void)json_object_set(view, rounds_result_names[i], result->lists[i]);
    }
    return view;
}

static void print_list(struct sheet *sheet, const json_t *list, const char *heading)
{
    const json_t *said;
    size_t i;

    if (json_array_size(list) == 0) {
        return;
    }
    sheet_print(sheet, "%s\n", heading);
    json_array_foreach(list, i, said)
    {
        sheet_print(sheet, "  %s\n", json_string_value(said));
    }
}

static void print_audit(struct sheet *sheet, const struct rounds_result *result)
{
    sheet_print(sheet, "%s: %s\n", result->folder, audit_answer_name(rounds_audit_answer(result)));
    print_list(sheet, result->lists[ROUNDS_RESULT_REFUTED], "Refuted");
    print_list(sheet, result->lists[ROUNDS_RESULT_NOT_TOLD], "Not told");
    print_list(sheet, result->lists[ROUNDS_RESULT_PROVEN], "Proven");
    print_list(sheet, result->lists[ROUNDS_RESULT_TRUSTED], "Taken on trust");
}

/* Refuted beats cannot tell, which beats proven. */
static int worse_code(int code, enum audit_answer answer)
{
    if (code == COMMAND_REFUSED || answer == AUDIT_REFUTED) {
        return COMMAND_REFUSED;
    }
    return answer == AUDIT_CANNOT_TELL ? COMMAND_UNKNOWN : code;
}

struct rounds_audits {
    struct audit_options options;
    struct ledger *ledger;
    struct sheet sheet;
    json_t *views;
    int code;
};

static enum status audit_folder(struct rounds_audits *audits, const char *folder,
                                struct error *error)
{
    struct rounds_result result;
    enum status status = rounds_audit_run(&result, folder, &audits->options, audits->ledger, error);

    if (status == STATUS_OK) {
        audits->code = worse_code(audits->code, rounds_audit_answer(&result));
        (void)json_array_append_new(audits->views, view_of(&result));
        print_audit(&audits->sheet, &result);
    }
    rounds_audit_release(&result);
    return status;
}

int audit_rounds(struct command_context *context)
{
    struct rounds_audits audits = {.code = COMMAND_OK};
    const char *sources[ACCUSED_SOURCES_MAX];
    struct machine_options machine;
    struct progress progress;
    struct stop stop = {.descriptor = -1};
    struct error error;
    enum status status;
    int code;
    int shown;

    error_init(&error);
    sheet_init(&audits.sheet);
    audits.views = json_array();
    progress_init(&progress, NULL, "auditing", "steps", 0, 0, steady_seconds());
    TRY_OUT(check_words(context->options, &error));
    TRY_OUT(stop_open(&stop, &error));
    TRY_OUT(audit_setup(&audits.options, &machine, sources, context, &progress, &stop, &error));
    audits.options.progress = NULL; /* of one run a line would say little */
    TRY_OUT(open_ledger(&audits.ledger, context, &error));
    for (size_t i = 0; i < context->options->argument_count; i++) {
        TRY_OUT(audit_folder(&audits, context->options->arguments[i], &error));
    }
    sheet_set(&audits.sheet, "audits", audits.views);
    audits.views = NULL;
    shown = command_show(context, &audits.sheet);
    code = shown == COMMAND_OK ? audits.code : shown;
out:
    if (status != STATUS_OK) {
        json_decref(audits.views);
        sheet_release(&audits.sheet);
        code = command_fail(context, &error);
        code = code == COMMAND_REFUSED ? COMMAND_UNKNOWN : code; /* a failure is not a finding */
    }
    ledger_close(audits.ledger);
    stop_close(&stop);
    return code;
}
