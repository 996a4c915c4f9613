/* audit_evidence.c - see audit_evidence.h. */
#include "verifier/commands/audit_evidence.h"

#include <inttypes.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "proofs/dispute/evidence_file.h"
#include "verifier/commands/audit_setup.h"

/* One file and its verdict. */
struct judged {
    const char *path;
    enum status status; /* not STATUS_OK: the file is no evidence */
    struct error error;
    struct evidence_ruling ruling;
    uint64_t step;
    bool placed;
    char job[HEX_SIZE(DIGEST_SIZE)];
    char before[HEX_SIZE(DIGEST_SIZE)];
    char after[HEX_SIZE(DIGEST_SIZE)];
    char trace[HEX_SIZE(DIGEST_SIZE)];
};

static const char *const answers[] = {"proves-nothing", "not-guilty", "upheld"};

static void note_file(struct judged *judged, const struct evidence_file *file)
{
    judged->step = file->step;
    judged->placed = file->placed;
    hex_encode(judged->job, file->job_id.bytes, DIGEST_SIZE);
    hex_encode(judged->before, file->context.before.bytes, DIGEST_SIZE);
    hex_encode(judged->after, file->context.after.bytes, DIGEST_SIZE);
    hex_encode(judged->trace, file->context.trace.bytes, DIGEST_SIZE);
}

static void judge_path(struct judged *judged, const char *path)
{
    struct file_bytes bytes = {0};
    struct evidence_file file;

    *judged = (struct judged){.path = path};
    error_init(&judged->error);
    judged->status = file_read(&bytes, &judged->error, path, EVIDENCE_FILE_SIZE_MAX);
    if (judged->status == STATUS_OK) {
        judged->status = evidence_file_read(&file, bytes.data, bytes.size, &judged->error);
    }
    if (judged->status == STATUS_OK) {
        note_file(judged, &file);
        judged->status = evidence_judge(&judged->ruling, &file.context, file.evidence, file.size,
                                        &judged->error);
    }
    file_bytes_release(&bytes);
}

static int code_of(const struct judged *judged)
{
    if (judged->status != STATUS_OK) {
        return COMMAND_UNKNOWN;
    }
    switch (judged->ruling.answer) {
    case EVIDENCE_UPHELD:
        return COMMAND_REFUSED;
    case EVIDENCE_NOT_GUILTY:
        return COMMAND_OK;
    case EVIDENCE_REFUSED:
        break;
    }
    return COMMAND_UNKNOWN;
}

static json_t *view_of(const struct judged *judged)
{
    json_t *view;

    if (judged->status != STATUS_OK) {
        return json_pack("{s:s, s:s, s:s}", "file", judged->path, "answer", answers[0], "reason",
                         judged->error.text);
    }
    view =
        json_pack("{s:s, s:s, s:s, s:I, s:b, s:s, s:s, s:s, s:s}", "file", judged->path, "answer",
                  answers[judged->ruling.answer], "job", judged->job, "step",
                  (json_int_t)judged->step, "under_segments", judged->placed, "accused", "solver",
                  "before", judged->before, "after", judged->after, "trace", judged->trace);
    if (view != NULL && judged->ruling.answer == EVIDENCE_REFUSED) {
        (void)json_object_set_new(view, "reason",
                                  json_string(evidence_reason_text(judged->ruling.reason)));
    }
    return view;
}

static void print_judged(struct sheet *sheet, const struct judged *judged)
{
    if (judged->status != STATUS_OK) {
        sheet_print(sheet, "%s: proves nothing\n  %s\n", judged->path, judged->error.text);
        return;
    }
    sheet_print(sheet, "%s: %s\n", judged->path, answers[judged->ruling.answer]);
    if (judged->ruling.answer == EVIDENCE_REFUSED) {
        sheet_print(sheet, "  %s\n", evidence_reason_text(judged->ruling.reason));
    }
    if (judged->ruling.answer == EVIDENCE_UPHELD) {
        sheet_print(sheet, "  the solver who committed to this is convicted by it:\n");
    }
    sheet_print(sheet, "  job     %s\n  step    %" PRIu64 "\n", judged->job, judged->step);
    sheet_print(sheet, "  before  %s\n  after   %s%s\n  trace   %s\n", judged->before,
                judged->after, judged->placed ? "" : "  (the segments' roots are not in the file)",
                judged->trace);
    if (judged->ruling.wanted != judged->ruling.found) {
        sheet_print(sheet, "  an element is 0x%08x there, and by its rule 0x%08x\n",
                    judged->ruling.found, judged->ruling.wanted);
    }
}

int audit_evidence(struct command_context *context)
{
    json_t *views = json_array();
    int code = COMMAND_OK;
    struct sheet sheet;
    int shown;

    sheet_init(&sheet);
    for (size_t i = 0; i < context->options->argument_count; i++) {
        struct judged judged;

        judge_path(&judged, context->options->arguments[i]);
        code = audit_worse_code(code, code_of(&judged));
        (void)json_array_append_new(views, view_of(&judged));
        print_judged(&sheet, &judged);
    }
    sheet_set(&sheet, "evidence", views);
    shown = command_show(context, &sheet);
    return shown == COMMAND_OK ? code : shown;
}
