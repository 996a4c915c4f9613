/* audit_views.c - see audit_views.h. */
#include "verifier/audit/audit_views.h"

#include <inttypes.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/log.h"
#include "base/io/strict_json.h"

enum {
    NAME_DIGITS = 16, /* of the job's id, in the name of an evidence file */
};

void audit_view_keep(struct audit_view *view, const char *folder)
{
    struct fault_location *location = &view->result.location;
    char job[HEX_SIZE(DIGEST_SIZE)];
    char name[80];
    struct error error;
    enum status status;

    error_init(&error);
    view->evidence[0] = '\0';
    if (view->result.answer != AUDIT_REFUTED || location->evidence == NULL) {
        return;
    }
    hex_encode(job, view->result.job_id.bytes, DIGEST_SIZE);
    (void)snprintf(name, sizeof(name), "%.*s-step-%" PRIu64 ".evidence", NAME_DIGITS, job,
                   view->result.wrong_step);
    status = file_path_join(view->evidence, sizeof(view->evidence), &error, folder, name);
    if (status == STATUS_OK) {
        status =
            file_write(view->evidence, &error, location->evidence, location->evidence_size, 0644);
    }
    if (status != STATUS_OK) {
        view->evidence[0] = '\0';
        (void)snprintf(location->lacking, sizeof(location->lacking),
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

static void set_value(json_t *view, const char *name, const struct fault_location *location,
                      uint32_t bits)
{
    char value[FAULT_LOCATION_VALUE_MAX];
    char hex[FAULT_LOCATION_VALUE_MAX];

    fault_location_value(value, location->dtype, bits);
    fault_location_bits(hex, location->dtype, bits);
    (void)json_object_set_new(view, name, json_pack("{s:s, s:s}", "value", value, "bits", hex));
}

static json_t *difference_json(const struct fault_location *location)
{
    json_t *view = json_object();

    if (view != NULL && location->op_known) {
        (void)json_object_set_new(view, "operation", json_integer(location->op));
        (void)json_object_set_new(view, "operation_kind", json_string(location->op_name));
        if (location->instance[0] != '\0') {
            (void)json_object_set_new(view, "instance", json_string(location->instance));
        }
        (void)json_object_set_new(view, "output", json_integer(location->output));
    }
    if (view != NULL && location->tensor_known) {
        set_text(view, "tensor", location->tensor);
        (void)json_object_set_new(view, "type", json_string(dtype_name(location->dtype)));
    }
    if (view != NULL && location->element_known) {
        (void)json_object_set_new(view, "element", json_integer((json_int_t)location->element));
        set_value(view, "found", location, location->found);
        if (location->wanted_known) {
            set_value(view, "truth", location, location->wanted);
        }
    }
    return view;
}

static json_t *evidence_json(const struct audit_view *view)
{
    const struct fault_location *location = &view->result.location;
    json_t *evidence = json_pack("{s:s, s:s, s:I, s:s}", "file", view->evidence, "kind",
                                 fault_location_kind_name(location->kind), "size",
                                 (json_int_t)location->evidence_size, "trace_of",
                                 location->own_trace ? "solver" : "truth");

    if (evidence != NULL) {
        (void)json_object_set_new(evidence, "trace", strict_json_digest(&location->trace_root));
    }
    if (evidence != NULL && location->kind == EVIDENCE_ELEMENT) {
        (void)json_object_set_new(evidence, "element",
                                  json_integer((json_int_t)location->proven_element));
    }
    return evidence;
}

static void add_refuted(json_t *json, const struct audit_view *view)
{
    const struct audit_result *result = &view->result;
    const struct fault_location *location = &result->location;
    char signature[HEX_SIZE(BUNDLE_SIGNATURE_MAX)];

    (void)json_object_set_new(json, "wrong_step", json_integer((json_int_t)result->wrong_step));
    (void)json_object_set_new(json, "flaw", json_string(check_flaw_name(result->flaw)));
    (void)json_object_set_new(json, "journal_root", strict_json_digest(&result->wrong_root));
    (void)json_object_set_new(json, "true_root", strict_json_digest(&result->true_root));
    (void)json_object_set_new(json, "segment", json_integer((json_int_t)result->wrong_segment));
    if (result->signature_size > 0) {
        hex_encode(signature, result->signature, result->signature_size);
        (void)json_object_set_new(json, "signed_root", strict_json_digest(&result->segment_root));
        (void)json_object_set_new(json, "signature", json_string(signature));
    }
    if (location->tensor_known) {
        (void)json_object_set_new(json, "difference", difference_json(location));
    }
    if (view->evidence[0] != '\0') {
        (void)json_object_set_new(json, "evidence", evidence_json(view));
    }
    if (location->lacking[0] != '\0') {
        set_text(json, "lacking", location->lacking);
    }
}

static json_t *figure_json(const struct audit_figure *figure)
{
    char journal[16];
    char truth[16];

    (void)snprintf(journal, sizeof(journal), "%08x", figure->journal_bits);
    (void)snprintf(truth, sizeof(truth), "%08x", figure->true_bits);
    return json_pack("{s:s, s:I, s:s, s:s}", "name", figure->name, "step", (json_int_t)figure->step,
                     "journal_bits", journal, "true_bits", truth);
}

static void add_broken(json_t *list, const struct broken_checkpoint *broken, bool last)
{
    json_t *one = json_pack("{s:s, s:b}", "file", broken->name, "last", last);

    if (one != NULL) {
        set_text(one, "reason", broken->why);
        (void)json_array_append_new(list, one);
    }
}

static size_t listed_count(const struct checkpoint_audit *checkpoints)
{
    return checkpoints->broken_count < BROKEN_CHECKPOINTS_MAX ? (size_t)checkpoints->broken_count
                                                              : BROKEN_CHECKPOINTS_MAX;
}

static json_t *checkpoints_json(const struct checkpoint_audit *checkpoints)
{
    bool last = checkpoints->last.name[0] != '\0';
    json_int_t broken_count = (json_int_t)checkpoints->broken_count + (last ? 1 : 0);
    json_t *list = json_array();

    for (size_t i = 0; i < listed_count(checkpoints); i++) {
        add_broken(list, &checkpoints->broken[i], false);
    }
    if (last) {
        add_broken(list, &checkpoints->last, true);
    }
    return json_pack("{s:I, s:I, s:I, s:o}", "checked", (json_int_t)checkpoints->checked, "locked",
                     (json_int_t)checkpoints->locked, "broken_count", broken_count, "broken", list);
}

json_t *audit_view_json(const struct audit_view *view)
{
    const struct audit_result *result = &view->result;
    json_t *json = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I}", "bundle", view->path, "answer",
        audit_answer_name(result->answer), "steps_of_job", (json_int_t)result->steps_of_job,
        "steps_journaled", (json_int_t)result->steps_journaled, "steps_wanted",
        (json_int_t)result->steps_wanted, "steps_checked", (json_int_t)result->steps_checked);

    if (json != NULL) {
        (void)json_object_set_new(json, "checkpoints", checkpoints_json(&result->checkpoints));
    }
    if (json != NULL && result->ended[0] != '\0') {
        set_text(json, "ended", result->ended);
    }
    if (json != NULL && result->answer == AUDIT_REFUTED) {
        add_refuted(json, view);
    }
    if (json != NULL && result->figure.name != NULL) {
        (void)json_object_set_new(json, "false_figure", figure_json(&result->figure));
    }
    if (json != NULL && result->answer == AUDIT_CANNOT_TELL) {
        set_text(json, "reason", result->reason.text);
    }
    return json;
}

/* ---- text ---------------------------------------------------------------- */

static void print_value(struct sheet *sheet, const char *whose,
                        const struct fault_location *location, uint32_t bits)
{
    char value[FAULT_LOCATION_VALUE_MAX];
    char hex[FAULT_LOCATION_VALUE_MAX];

    fault_location_value(value, location->dtype, bits);
    fault_location_bits(hex, location->dtype, bits);
    sheet_print(sheet, "    %-8s %s (%s)\n", whose, value, hex);
}

static void print_finding(struct sheet *sheet, const struct audit_view *view)
{
    const struct fault_location *location = &view->result.location;
    char place[FAULT_LOCATION_TEXT_MAX];

    if (location->tensor_known) {
        fault_location_place(place, location);
        sheet_print(sheet, "  differs  %s", place);
        if (location->op_known) {
            sheet_print(sheet, ", made by operation %u (%s)%s%s", location->op, location->op_name,
                        location->instance[0] == '\0' ? "" : ", ", location->instance);
        }
        sheet_print(sheet, "\n");
    }
    if (location->element_known) {
        print_value(sheet, "solver", location, location->found);
        if (location->wanted_known) {
            print_value(sheet, "truth", location, location->wanted);
        }
    }
    if (view->evidence[0] != '\0') {
        sheet_print(
            sheet,
            "  evidence %s (%s, %zu bytes): judge it with 'lockstep audit --verify-evidence', "
            "take it "
            "to the ledger with 'lockstep verifier claim JOB --evidence'\n",
            view->evidence, fault_location_kind_name(location->kind), location->evidence_size);
    }
    if (location->lacking[0] != '\0') {
        sheet_print(sheet, "  lacking  %s\n", location->lacking);
    }
}

static void print_refuted(struct sheet *sheet, const struct audit_view *view)
{
    const struct audit_result *result = &view->result;
    char text[HEX_SIZE(DIGEST_SIZE)];
    char signature[HEX_SIZE(BUNDLE_SIGNATURE_MAX)];

    sheet_print(sheet, "  step %" PRIu64 " %s; two replays agree on it\n", result->wrong_step,
                check_flaw_words(result->flaw));
    hex_encode(text, result->wrong_root.bytes, DIGEST_SIZE);
    sheet_print(sheet, "  journal  %s\n", text);
    hex_encode(text, result->true_root.bytes, DIGEST_SIZE);
    sheet_print(sheet, "  truth    %s\n", text);
    if (result->signature_size > 0) {
        hex_encode(signature, result->signature, result->signature_size);
        sheet_print(sheet, "  signed   segment %" PRIu64 ": %s\n", result->wrong_segment,
                    signature);
    }
    print_finding(sheet, view);
}

static void print_checkpoints(struct sheet *sheet, const struct audit_result *result)
{
    const struct checkpoint_audit *checkpoints = &result->checkpoints;

    if (checkpoints->checked > 0) {
        sheet_print(sheet, "  checkpoints with the state that was committed to: %" PRIu64 "\n",
                    checkpoints->checked);
    }
    if (checkpoints->locked > 0) {
        sheet_print(sheet, "  not checked: %" PRIu64 " checkpoints, which are encrypted\n",
                    checkpoints->locked);
    }
    for (size_t i = 0; i < listed_count(checkpoints); i++) {
        sheet_print(sheet, "  broken   checkpoint %s: %s\n", checkpoints->broken[i].name,
                    checkpoints->broken[i].why);
    }
    if (checkpoints->broken_count > listed_count(checkpoints)) {
        sheet_print(sheet, "  broken   %" PRIu64 " more checkpoints\n",
                    checkpoints->broken_count - listed_count(checkpoints));
    }
    if (checkpoints->last.name[0] != '\0' && result->answer == AUDIT_REFUTED) {
        sheet_print(sheet, "  broken   the last checkpoint %s: %s\n", checkpoints->last.name,
                    checkpoints->last.why);
    }
}

static void print_answer(struct sheet *sheet, const struct audit_view *view)
{
    const struct audit_result *result = &view->result;

    switch (result->answer) {
    case AUDIT_PROVEN:
        sheet_print(sheet,
                    "  %" PRIu64 " of %" PRIu64 " steps were run again and gave the same bits\n",
                    result->steps_checked, result->steps_of_job);
        if (result->steps_checked < result->steps_of_job) {
            sheet_print(sheet,
                        "  not checked: %" PRIu64 " steps, %" PRIu64 " of them not run yet\n",
                        result->steps_of_job - result->steps_checked,
                        result->steps_of_job - result->steps_journaled);
        }
        if (result->ended[0] != '\0') {
            sheet_print(sheet, "  %s%s\n", result->ended,
                        result->steps_checked < result->steps_journaled
                            ? "; so say the journal's figures, of which not all were found again"
                            : "");
        }
        return;
    case AUDIT_REFUTED:
        print_refuted(sheet, view);
        return;
    case AUDIT_CANNOT_TELL:
        sheet_print(sheet, "  %s\n", result->reason.text);
        if (result->reason.advice[0] != '\0') {
            sheet_print(sheet, "  try: %s\n", result->reason.advice);
        }
        return;
    }
}

void audit_view_show(struct sheet *sheet, const struct audit_view *view)
{
    sheet_print(sheet, "%s: %s\n", view->path, audit_answer_name(view->result.answer));
    print_answer(sheet, view);
    print_checkpoints(sheet, &view->result);
}
