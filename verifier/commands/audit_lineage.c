/* audit_lineage.c - see audit_lineage.h. */
#include "verifier/commands/audit_lineage.h"

#include <stdio.h>

#include "base/io/file.h"
#include "base/steady.h"
#include "chain/commands/commands.h"
#include "verifier/commands/audit_report.h"
#include "verifier/commands/audit_setup.h"
#include "verifier/lineage/certificate.h"
#include "verifier/lineage/envelope.h"
#include "verifier/lineage/statement.h"

struct keys {
    struct envelope_key *pem; /* NULL: none */
    struct signer *signer;    /* likewise */
};

const char *audit_lineage_stray(const struct options *options)
{
    static const char *const names[] = {"sources", "tokenizer", "attest", "attest-key"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (options_text(options, names[i]) != NULL) {
            return names[i];
        }
    }
    return NULL;
}

/* What the command line asks for and a lineage has not. */
static enum status check_options(const struct options *options, struct error *error)
{
    const bool attests = options_text(options, "attest") != NULL;
    const bool keyed = options_text(options, "attest-key") != NULL;
    const bool signs = options_flag(options, "sign");

    if (options_list_count(options, "data") > 0) {
        (void)error_set(error, STATUS_USAGE, "--data says nothing with --lineage");
        error_advise(error, "name the data among the other files");
        return STATUS_USAGE;
    }
    if (options_text(options, "base") != NULL) {
        (void)error_set(error, STATUS_USAGE, "--base says nothing with --lineage");
        error_advise(error, "name the base among the other files");
        return STATUS_USAGE;
    }
    if (options_flag(options, "transactions")) {
        return error_set(error, STATUS_USAGE, "--transactions says nothing with --lineage");
    }
    if (audit_report_is_json(options_text(options, "report"))) {
        (void)error_set(error, STATUS_USAGE, "--report of a lineage is a page, FILE.html");
        error_advise(error, "--json prints the certificate, --attest writes it to be signed");
        return STATUS_USAGE;
    }
    if (!attests && (keyed || signs)) {
        return error_set(error, STATUS_USAGE, "--%s signs what --attest FILE writes",
                         keyed ? "attest-key" : "sign");
    }
    if (attests && !keyed && !signs) {
        return error_set(error, STATUS_USAGE,
                         "--attest is signed: by --attest-key KEY.pem, by --sign, or by both");
    }
    return STATUS_OK;
}

/* Keys are asked for before hours of work. */
static enum status open_keys(struct keys *keys, struct command_context *context,
                             struct error *error)
{
    const char *pem = options_text(context->options, "attest-key");

    if (pem != NULL) {
        TRY(envelope_key_read(&keys->pem, pem, error));
    }
    return options_flag(context->options, "sign") ? chain_unlock(&keys->signer, context, error)
                                                  : STATUS_OK;
}

static enum status write_attestation(const char *path, const struct lineage *lineage,
                                     const struct keys *keys, struct error *error)
{
    struct buffer statement;
    struct buffer envelope;
    enum status status;

    buffer_init(&statement, STATEMENT_SIZE_MAX);
    buffer_init(&envelope, ENVELOPE_SIZE_MAX);
    TRY_OUT(statement_write(&statement, lineage, error));
    TRY_OUT(envelope_write(&envelope, STATEMENT_MEDIA, &statement, keys->pem, keys->signer, error));
    status = file_write(path, error, envelope.data, envelope.size, 0644);
out:
    buffer_release(&envelope);
    buffer_release(&statement);
    return status;
}

static enum status trace_lineage(struct lineage **lineage, struct command_context *context,
                                 struct error *error)
{
    const struct options *options = context->options;
    const char *sources[ACCUSED_SOURCES_MAX];
    struct audit_options audit_options;
    struct machine_options machine;
    struct progress progress;
    struct stop stop = {.descriptor = -1};
    const struct lineage_options wanted = {.audit = &audit_options,
                                           .machine = &machine,
                                           .sources = options_text(options, "sources"),
                                           .tokenizer = options_text(options, "tokenizer")};
    enum status status;

    TRY(stop_open(&stop, error));
    progress_init(&progress, stderr, "auditing", "steps", 0, 0, steady_seconds());
    TRY_OUT(audit_setup(&audit_options, &machine, sources, context, &progress, &stop, error));
    status = lineage_trace(lineage, options->arguments, options->argument_count, &wanted, error);
    if (status == STATUS_OK) {
        progress_finish(&progress, progress.total, audit_answer_name(lineage_answer(*lineage)),
                        steady_seconds());
    }
out:
    stop_close(&stop);
    return status;
}

/* What could not be written of a lineage that was traced; the answer is shown all the same. */
static enum status write_results(struct command_context *context, const struct lineage *lineage,
                                 const struct keys *keys, struct error *error)
{
    const char *page = options_text(context->options, "report");
    const char *attest = options_text(context->options, "attest");

    if (page != NULL) {
        TRY(certificate_page(page, lineage, error));
    }
    /* Of what is not proven there is no statement, as the answer says. */
    return attest == NULL || lineage_answer(lineage) != AUDIT_PROVEN
               ? STATUS_OK
               : write_attestation(attest, lineage, keys, error);
}

int audit_lineage(struct command_context *context)
{
    struct keys keys = {0};
    struct lineage *lineage = NULL;
    struct sheet sheet;
    struct error error;
    enum status status;
    int code;
    int shown;

    error_init(&error);
    sheet_init(&sheet);
    TRY_OUT(check_options(context->options, &error));
    TRY_OUT(open_keys(&keys, context, &error));
    TRY_OUT(trace_lineage(&lineage, context, &error));
    status = write_results(context, lineage, &keys, &error);
out:
    if (status != STATUS_OK) {
        code = audit_fail(context, &error);
        sheet_release(&sheet);
    } else {
        code = audit_code_of(lineage_answer(lineage));
        certificate_sheet(&sheet, lineage);
        shown = command_show(context, &sheet);
        code = shown == COMMAND_OK ? code : shown;
    }
    lineage_close(lineage);
    envelope_key_free(keys.pem);
    signer_free(keys.signer);
    return code;
}
