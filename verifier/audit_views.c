/* audit_views.c - see audit_views.h. */
#include "verifier/audit_views.h"

#include <inttypes.h>
#include <string.h>

#include "base/hex.h"
#include "base/log.h"

enum {
    NAME_DIGITS = 16, /* of the job's id, in the name of an evidence file */
};

void audit_view_keep(struct audit_view *view, const char *folder)
{
    struct finding *finding = &view->result.finding;
    char job[HEX_SIZE(DIGEST_SIZE)];
    char name[80];
    struct error error;
    enum status status;

    error_init(&error);
    view->evidence[0] = '\0';
    if (view->result.answer != AUDIT_REFUTED || finding->evidence == NULL) {
        return;
    }
    hex_encode(job, view->result.job_id.bytes, DIGEST_SIZE);
    (void)snprintf(name, sizeof(name), "%.*s-step-%" PRIu64 ".evidence", NAME_DIGITS, job,
                   view->result.wrong_step);
    status = file_path_join(view->evidence, sizeof(view->evidence), &error, folder, name);
    if (status == STATUS_OK) {
        status =
            file_write(view->evidence, &error, finding->evidence, finding->evidence_size, 0644);
    }
    if (status != STATUS_OK) {
        view->evidence[0] = '\0';
        (void)snprintf(finding->lacking, sizeof(finding->lacking),
                       "the evidence could not be written: %.900s", error.text);
    }
}

/* ---- JSON ---------------------------------------------------------------- */

static void set_text(json_t *view, const char *name, const char *text)
{
    char escaped[ERROR_TEXT_MAX * 6];

    (void)log_escape(escaped, sizeof(escaped), text, 0);
    (void)json_object_set_new(view, name, json_string(escaped));
}

static void set_digest(json_t *view, const char *name, const struct digest *digest)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, digest->bytes, DIGEST_SIZE);
    (void)json_object_set_new(view, name, json_string(text));
}

static void set_value(json_t *view, const char *name, const struct finding *finding, uint32_t bits)
{
    char value[FINDING_VALUE_MAX];
    char hex[FINDING_VALUE_MAX];

    finding_value(value, finding->dtype, bits);
    finding_bits(hex, finding->dtype, bits);
    (void)json_object_set_new(view, name, json_pack("{s:s, s:s}", "value", value, "bits", hex));
}

static json_t *difference_json(const struct finding *finding)
{
    json_t *view = json_object();

    if (view != NULL && finding->op_known) {
        (void)json_object_set_new(view, "operation", json_integer(finding->op));
        (void)json_object_set_new(view, "operation_kind", json_string(finding->op_name));
        (void)json_object_set_new(view, "output", json_integer(finding->output));
    }
    if (view != NULL && finding->tensor_known) {
        set_text(view, "tensor", finding->tensor);
        (void)json_object_set_new(view, "type", json_string(dtype_name(finding->dtype)));
    }
    if (view != NULL && finding->element_known) {
        (void)json_object_set_new(view, "element", json_integer((json_int_t)finding->element));
        set_value(view, "found", finding, finding->found);
        if (finding->wanted_known) {
            set_value(view, "truth", finding, finding->wanted);
        }
    }
    return view;
}

static json_t *evidence_json(const struct audit_view *view)
{
    const struct finding *finding = &view->result.finding;
    json_t *evidence =
        json_pack("{s:s, s:s, s:I, s:s}", "file", view->evidence, "kind",
                  finding_kind_name(finding->kind), "size", (json_int_t)finding->evidence_size,
                  "trace_of", finding->own_trace ? "solver" : "truth");

    if (evidence != NULL) {
        set_digest(evidence, "trace", &finding->trace_root);
    }
    if (evidence != NULL && finding->kind == EVIDENCE_ELEMENT) {
        (void)json_object_set_new(evidence, "element",
                                  json_integer((json_int_t)finding->proven_element));
    }
    return evidence;
}

static void add_refuted(json_t *json, const struct audit_view *view)
{
    const struct audit_result *result = &view->result;
    const struct finding *finding = &result->finding;

    (void)json_object_set_new(json, "wrong_step", json_integer((json_int_t)result->wrong_step));
    (void)json_object_set_new(json, "flaw", json_string(audit_flaw_name(result->flaw)));
    set_digest(json, "journal_root", &result->wrong_root);
    set_digest(json, "true_root", &result->true_root);
    if (finding->tensor_known) {
        (void)json_object_set_new(json, "difference", difference_json(finding));
    }
    if (view->evidence[0] != '\0') {
        (void)json_object_set_new(json, "evidence", evidence_json(view));
    }
    if (finding->lacking[0] != '\0') {
        set_text(json, "lacking", finding->lacking);
    }
}

json_t *audit_view_json(const struct audit_view *view)
{
    const struct audit_result *result = &view->result;
    json_t *json = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I}", "bundle", view->path, "answer",
        audit_answer_name(result->answer), "steps_of_job", (json_int_t)result->steps_of_job,
        "steps_journaled", (json_int_t)result->steps_journaled, "steps_wanted",
        (json_int_t)result->steps_wanted, "steps_checked", (json_int_t)result->steps_checked);

    if (json != NULL && result->answer == AUDIT_REFUTED) {
        add_refuted(json, view);
    }
    if (json != NULL && result->answer == AUDIT_CANNOT_TELL) {
        set_text(json, "reason", result->reason.text);
    }
    return json;
}

/* ---- text ---------------------------------------------------------------- */

static void print_value(FILE *out, const char *whose, const struct finding *finding, uint32_t bits)
{
    char value[FINDING_VALUE_MAX];
    char hex[FINDING_VALUE_MAX];

    finding_value(value, finding->dtype, bits);
    finding_bits(hex, finding->dtype, bits);
    fprintf(out, "    %-8s %s (%s)\n", whose, value, hex);
}

static void print_finding(FILE *out, const struct audit_view *view)
{
    const struct finding *finding = &view->result.finding;
    char place[FINDING_TEXT_MAX];

    if (finding->tensor_known) {
        finding_place(place, finding);
        fprintf(out, "  differs  %s", place);
        if (finding->op_known) {
            fprintf(out, ", made by operation %u (%s)", finding->op, finding->op_name);
        }
        fprintf(out, "\n");
    }
    if (finding->element_known) {
        print_value(out, "solver", finding, finding->found);
        if (finding->wanted_known) {
            print_value(out, "truth", finding, finding->wanted);
        }
    }
    if (view->evidence[0] != '\0') {
        fprintf(out,
                "  evidence %s (%s, %zu bytes): judge it with 'lockstep audit --evidence', take it "
                "to the ledger with 'lockstep verifier claim JOB --evidence'\n",
                view->evidence, finding_kind_name(finding->kind), finding->evidence_size);
    }
    if (finding->lacking[0] != '\0') {
        fprintf(out, "  lacking  %s\n", finding->lacking);
    }
}

static void print_refuted(FILE *out, const struct audit_view *view)
{
    const struct audit_result *result = &view->result;
    char text[HEX_SIZE(DIGEST_SIZE)];

    fprintf(out, "  step %" PRIu64 " %s; two replays agree on it\n", result->wrong_step,
            audit_flaw_words(result->flaw));
    hex_encode(text, result->wrong_root.bytes, DIGEST_SIZE);
    fprintf(out, "  journal  %s\n", text);
    hex_encode(text, result->true_root.bytes, DIGEST_SIZE);
    fprintf(out, "  truth    %s\n", text);
    print_finding(out, view);
}

void audit_view_print(FILE *out, const struct audit_view *view)
{
    const struct audit_result *result = &view->result;

    fprintf(out, "%s: %s\n", view->path, audit_answer_name(result->answer));
    switch (result->answer) {
    case AUDIT_PROVEN:
        fprintf(out, "  %" PRIu64 " of %" PRIu64 " steps were run again and gave the same bits\n",
                result->steps_checked, result->steps_of_job);
        if (result->steps_checked < result->steps_of_job) {
            fprintf(out, "  not checked: %" PRIu64 " steps, %" PRIu64 " of them not run yet\n",
                    result->steps_of_job - result->steps_checked,
                    result->steps_of_job - result->steps_journaled);
        }
        return;
    case AUDIT_REFUTED:
        print_refuted(out, view);
        return;
    case AUDIT_CANNOT_TELL:
        fprintf(out, "  %s\n", result->reason.text);
        if (result->reason.advice[0] != '\0') {
            fprintf(out, "  try: %s\n", result->reason.advice);
        }
        return;
    }
}
