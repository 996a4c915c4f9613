/* audit_rounds.c - see audit_rounds.h. */
#include "verifier/commands/audit_rounds.h"

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

static json_t *view_of(const struct rounds_result *result)
{
    char id[HEX_SIZE(DIGEST_SIZE)];
    json_t *view;

    hex_encode(id, result->rounds.id.bytes, DIGEST_SIZE);
    view = json_pack("{s:s, s:s, s:s, s:i, s:i}", "folder", result->folder, "id", id, "answer",
                     audit_answer_name(findings_answer(&result->findings)), "rounds",
                     (int)result->done, "rounds_agreed", (int)result->rounds.count);
    findings_facts(view, &result->findings);
    return view;
}

static void print_audit(struct sheet *sheet, const struct rounds_result *result)
{
    static const enum finding order[] = {FINDING_REFUTED, FINDING_NOT_TOLD, FINDING_PROVEN,
                                         FINDING_TRUSTED};

    sheet_print(sheet, "%s: %s\n", result->folder,
                audit_answer_name(findings_answer(&result->findings)));
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        findings_show(sheet, &result->findings, order[i]);
    }
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
        audits->code =
            audit_worse_code(audits->code, audit_code_of(findings_answer(&result.findings)));
        (void)json_array_append_new(audits->views, view_of(&result));
        print_audit(&audits->sheet, &result);
    }
    findings_release(&result.findings);
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
    TRY_OUT(audit_open_ledger(&audits.ledger, context, &error));
    TRY_OUT(audits.ledger == NULL ? STATUS_OK : ledger_catch_up(audits.ledger, &error));
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
        code = audit_fail(context, &error);
    }
    ledger_close(audits.ledger);
    stop_close(&stop);
    return code;
}
