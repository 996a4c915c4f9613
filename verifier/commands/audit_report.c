/* audit_report.c - see audit_report.h. */
#include "verifier/commands/audit_report.h"

#include <string.h>
#include <time.h>

#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "verifier/audit/citation.h"
#include "verifier/audit/signed_report.h"

bool audit_report_is_json(const char *path)
{
    size_t length = path == NULL ? 0 : strlen(path);

    return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

enum status audit_report_write(const char *path, json_t *audits, const struct signer *signer,
                               struct error *error)
{
    time_t now = time(NULL);
    struct tm calendar;
    struct buffer text;
    char date[32] = "";
    enum status status;

    buffer_init(&text, SIGNED_REPORT_SIZE_MAX);
    if (gmtime_r(&now, &calendar) != NULL) {
        (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &calendar);
    }
    TRY_OUT(signed_report_write(&text, audits, date, signer, error));
    TRY_OUT(file_write(path, error, text.data, text.size, 0644));
out:
    buffer_release(&text);
    return status;
}

/* ---- verify -------------------------------------------------------------- */

static void print_lines(struct sheet *sheet, const json_t *audit)
{
    char value[CITATION_VALUE_MAX];
    const char *label;

    for (size_t i = 0; citation_line(&label, value, audit, i); i++) {
        if (label != NULL) {
            sheet_print(sheet, "  %-34s %s\n", label, value);
        }
    }
}

static void print_report(struct sheet *sheet, const char *path, const json_t *report,
                         const char *signer)
{
    const json_t *audits = json_object_get(report, "audits");
    const json_t *audit;
    size_t i;

    sheet_print(sheet, "%s: %s, of %s\n", path,
                signer == NULL ? "not signed: anybody may have written it" : "as it was signed",
                strict_json_text_or(report, "date", "?"));
    if (signer != NULL) {
        sheet_print(sheet, "  signer       %s\n", signer);
    }
    json_array_foreach(audits, i, audit)
    {
        const json_t *result = json_object_get(audit, "result");

        sheet_print(sheet, "  answer       %s\n", strict_json_text_or(result, "answer", "?"));
        print_lines(sheet, audit);
    }
}

static int verify_one(struct sheet *sheet, json_t *list, struct command_context *context,
                      const char *path)
{
    struct file_bytes bytes = {0};
    json_t *report = NULL;
    struct address signer;
    char address[ADDRESS_TEXT_SIZE];
    struct error error;
    enum status status;
    bool is_signed;

    error_init(&error);
    status = file_read(&bytes, &error, path, SIGNED_REPORT_SIZE_MAX);
    if (status == STATUS_OK) {
        status = signed_report_read(&report, &signer, bytes.data, bytes.size, &error);
        status =
            status == STATUS_BAD_FORMAT || status == STATUS_OVER_LIMIT ? STATUS_REFUSED : status;
    }
    file_bytes_release(&bytes);
    if (status != STATUS_OK) {
        error_wrap(&error, "%s", path);
        error.status = status;
        return command_fail(context, &error);
    }
    is_signed = !address_is_zero(&signer);
    address_print(address, &signer);
    print_report(sheet, path, report, is_signed ? address : NULL);
    (void)json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "file", path, "signer",
                                                is_signed ? json_string(address) : json_null(),
                                                "report", report));
    return is_signed ? COMMAND_OK : COMMAND_UNKNOWN;
}

/* What is read before a report that is refused is told to people alone. */
int audit_report_verify(struct command_context *context)
{
    json_t *list = json_array();
    int code = COMMAND_OK;
    struct sheet sheet;
    int shown = COMMAND_OK;

    sheet_init(&sheet);
    for (size_t i = 0; i < context->options->argument_count && code != COMMAND_REFUSED; i++) {
        int one = verify_one(&sheet, list, context, context->options->arguments[i]);

        code = one == COMMAND_OK ? code : one;
    }
    if (json_array_size(list) > 0 && (code != COMMAND_REFUSED || command_people(context) != NULL)) {
        sheet_set(&sheet, "reports", json_incref(list));
        shown = command_show(context, &sheet);
    }
    json_decref(list);
    sheet_release(&sheet);
    return shown == COMMAND_OK ? code : shown;
}
