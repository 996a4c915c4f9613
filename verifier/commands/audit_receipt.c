/* audit_receipt.c - see audit_receipt.h. */
#include "verifier/commands/audit_receipt.h"

#include <inttypes.h>

#include "base/hex.h"
#include "proofs/receipt/receipt_check.h"
#include "proofs/receipt/receipt_state.h"
#include "verifier/commands/audit_setup.h"

/* One receipt and its answer. */
struct audited {
    const char *path;
    enum status status; /* not STATUS_OK: there is no answer */
    struct error error;
    struct receipt receipt;
    struct receipt_verdict verdict;
    bool of_state; /* of a bundle, and the next two */
    uint64_t step;
    struct digest state_root;
};

bool audit_receipt_wanted(const struct command_context *context)
{
    bool wanted = options_text(context->options, "base") != NULL;

    for (size_t i = 0; i < context->options->argument_count; i++) {
        wanted = wanted || receipt_is(context->options->arguments[i]);
    }
    return wanted;
}

/* ---- before ----------------------------------------------------------------- */

/* --data names what a bundle's training began with, and nothing else. */
static enum status check_data(const struct options *given, struct error *error)
{
    const bool bundle = receipt_state_is_bundle(options_text(given, "base"));

    if (!options_given(given, "data") || (bundle && options_list_count(given, "data") == 1)) {
        return STATUS_OK;
    }
    return bundle ? error_set(error, STATUS_USAGE,
                              "--data: one folder, with which the training of --base began")
                  : error_set(error, STATUS_USAGE, "--data says nothing of a receipt");
}

/* Options of bundles say nothing of receipts. */
static enum status check_words(const struct options *given, struct error *error)
{
    static const char *const of_bundles[] = {
        "sample",     "sample-seed", "workers", "memory-max",  "evidence-folder",
        "trace-from", "report",      "sign",    "transactions"};

    for (size_t i = 0; i < sizeof(of_bundles) / sizeof(of_bundles[0]); i++) {
        if (options_given(given, of_bundles[i])) {
            return error_set(error, STATUS_USAGE, "--%s says nothing of a receipt", of_bundles[i]);
        }
    }
    for (size_t i = 0; i < given->argument_count; i++) {
        if (!receipt_is(given->arguments[i])) {
            (void)error_set(error, STATUS_USAGE, "%s is no receipt", given->arguments[i]);
            error_advise(error, "receipts are audited by themselves, with --base FOLDER; bundles "
                                "without it");
            return STATUS_USAGE;
        }
    }
    if (options_text(given, "base") == NULL) {
        (void)error_set(error, STATUS_USAGE, "a receipt is held against a model");
        error_advise(error, "name its folder, as it was published, or the bundle: --base FOLDER");
        return STATUS_USAGE;
    }
    return check_data(given, error);
}

static enum status choose_machine(struct machine_options *machine,
                                  const struct command_context *context, struct error *error)
{
    const struct options *given = context->options;

    TRY(machine_options_default(machine, error));
    machine->thread_count = (int)options_number(given, "threads");
    machine->device_memory = options_number(given, "device-memory");
    return machine_options_device(machine, options_text(given, "device"), context->log, error);
}

/* ---- after ------------------------------------------------------------------ */

static const char *answer_of(const struct audited *audited)
{
    return audited->status != STATUS_OK ? "cannot-tell"
           : audited->verdict.proven    ? "proven"
                                        : "refuted";
}

static int code_of(const struct audited *audited)
{
    if (audited->status != STATUS_OK) {
        return COMMAND_UNKNOWN;
    }
    return audited->verdict.proven ? COMMAND_OK : COMMAND_REFUSED;
}

static const char *reason_of(const struct audited *audited)
{
    return audited->status != STATUS_OK ? audited->error.text : audited->verdict.why.text;
}

/* The answer's end is judged by the receipt's own list, so it is shown. */
static json_t *stops_of(const struct receipt *receipt)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < receipt->stop_count; i++) {
        (void)json_array_append_new(list, json_integer((json_int_t)receipt->stops[i]));
    }
    return list;
}

static json_t *view_of(const struct audited *audited, const char *base)
{
    const struct receipt *receipt = &audited->receipt;
    const struct receipt_row *row = &receipt->row;
    char root[HEX_SIZE(DIGEST_SIZE)];
    json_t *view = json_pack("{s:s, s:s, s:s}", "receipt", audited->path, "base", base, "answer",
                             answer_of(audited));

    if (row->count != 0) {
        hex_encode(root, receipt->model_root.bytes, DIGEST_SIZE);
        (void)json_object_update_new(
            view, json_pack("{s:s, s:I, s:I, s:b, s:o, s:f, s:I, s:f, s:I, s:I}", "model_root",
                            root, "prompt_tokens", (json_int_t)row->prompt, "answer_tokens",
                            (json_int_t)receipt_answer(receipt), "stopped",
                            receipt_stopped(receipt), "stops", stops_of(receipt), "temperature",
                            (double)row->temperature, "top_k", (json_int_t)row->top_k, "top_p",
                            (double)row->top_p, "held", (json_int_t)audited->verdict.held,
                            "conditions", (json_int_t)audited->verdict.conditions));
    }
    if (audited->of_state) {
        hex_encode(root, audited->state_root.bytes, DIGEST_SIZE);
        (void)json_object_update_new(
            view,
            json_pack("{s:I, s:s}", "state_after", (json_int_t)audited->step, "state_root", root));
    }
    if (!audited->verdict.proven) {
        (void)json_object_set_new(view, "reason", json_string(reason_of(audited)));
    }
    return view;
}

static void print_audited(struct sheet *sheet, const struct audited *audited, const char *base)
{
    const struct receipt *receipt = &audited->receipt;
    const struct receipt_row *row = &receipt->row;

    sheet_print(sheet, "%s: %s\n", audited->path, answer_of(audited));
    if (!audited->verdict.proven) {
        sheet_print(sheet, "  %s\n", reason_of(audited));
    }
    if (audited->error.advice[0] != '\0') {
        sheet_print(sheet, "  %s\n", audited->error.advice);
    }
    if (row->count == 0) {
        return;
    }
    sheet_print(sheet,
                "  model    %s\n  prompt   %" PRIu32 " tokens\n  answer   %" PRIu32 " tokens%s\n",
                base, row->prompt, receipt_answer(receipt),
                receipt_stopped(receipt) ? ", the last one ends it" : "");
    if (audited->of_state) {
        char root[HEX_SIZE(DIGEST_SIZE)];

        hex_encode(root, audited->state_root.bytes, DIGEST_SIZE);
        sheet_print(sheet, "  state    after %" PRIu64 " steps, root %s\n", audited->step, root);
    }
    if (row->temperature == 0.0f) {
        sheet_print(sheet, "  rule     the likeliest token\n");
    } else {
        sheet_print(
            sheet, "  rule     temperature %.6g, top-k %" PRIu32 ", top-p %.6g, seed %" PRIu64 "\n",
            (double)row->temperature, row->top_k, (double)row->top_p, row->seed);
    }
    if (audited->verdict.held != 0) {
        sheet_print(sheet, "  step     %" PRIu32 " of %" PRIu32 " conditions hold\n",
                    audited->verdict.held, audited->verdict.conditions);
    }
}

/* ---- the command ------------------------------------------------------------ */

/* Against the folder, or the state of the bundle that makes the weights it names. */
static enum status check_one(struct audited *audited, const struct options *given,
                             const struct machine_options *machine)
{
    const char *base = options_text(given, "base");
    const char *began = options_given(given, "data") ? options_list_item(given, "data", 0) : NULL;
    struct receipt_state state;
    enum status status;
    bool found;

    TRY(receipt_read(&audited->receipt, &audited->error, audited->path));
    status = receipt_state_find(&state, &found, base, began, &audited->receipt, &audited->error);
    if (status == STATUS_USAGE && began == NULL) {
        error_advise(&audited->error, "name it: --data FOLDER");
    }
    TRY(status);
    if (!found) {
        error_init(&audited->verdict.why);
        (void)error_set(&audited->verdict.why, STATUS_REFUSED,
                        "no state of %s makes weights of the root that the receipt says", base);
        return STATUS_OK;
    }
    audited->of_state = state.bundle != NULL;
    audited->step = state.step;
    audited->state_root = state.root;
    status = receipt_check(&audited->verdict, &audited->receipt, state.folder, base, machine,
                           &audited->error);
    receipt_state_close(&state);
    return status;
}

static void audit_one(struct audited *audited, const char *path, const struct options *given,
                      const struct machine_options *machine)
{
    *audited = (struct audited){.path = path};
    error_init(&audited->error);
    audited->status = check_one(audited, given, machine);
}

int audit_receipts(struct command_context *context)
{
    const char *base = options_text(context->options, "base");
    struct machine_options machine;
    json_t *views = NULL;
    int code = COMMAND_OK;
    struct sheet sheet;
    struct error error;
    enum status status;
    int shown;

    error_init(&error);
    TRY_OUT(check_words(context->options, &error));
    TRY_OUT(choose_machine(&machine, context, &error));
    views = json_array();
    sheet_init(&sheet);
    for (size_t i = 0; i < context->options->argument_count; i++) {
        struct audited audited;

        audit_one(&audited, context->options->arguments[i], context->options, &machine);
        code = audit_worse_code(code, code_of(&audited));
        (void)json_array_append_new(views, view_of(&audited, base));
        print_audited(&sheet, &audited, base);
        receipt_release(&audited.receipt);
    }
    sheet_set(&sheet, "audits", views);
    shown = command_show(context, &sheet);
    return shown == COMMAND_OK ? code : shown;
out:
    return audit_fail(context, &error);
}
