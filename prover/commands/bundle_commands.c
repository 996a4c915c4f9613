/*
 * bundle_commands.c - `lockstep bundle`: shows, checks and packs the files of a run.
 *
 * Nothing here runs a step: 'lockstep audit' does.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/log.h"
#include "chain/keys/passphrase.h"
#include "engine/ops/real.h"
#include "proofs/bundle/average.h"
#include "proofs/bundle/bundle_pack.h"
#include "proofs/bundle/model_export.h"
#include "proofs/format/key_file.h"
#include "proofs/job/job_facts.h"
#include "proofs/run/gradient_norms.h"
#include "prover/commands/access.h"
#include "prover/commands/commands.h"
#include "prover/commands/least_loss.h"
#include "prover/commands/ledger_commands.h"

static void hex_of(char text[HEX_SIZE(DIGEST_SIZE)], const struct digest *digest)
{
    hex_encode(text, digest->bytes, DIGEST_SIZE);
}

/* Opens the bundle that the first argument names. must_unlock: prompts for a missing key. */
static enum status open_bundle(struct bundle **bundle, struct command_context *context,
                               bool must_unlock, struct error *error)
{
    TRY(bundle_open(bundle, context->options->arguments[0], BUNDLE_READ, error));
    return must_unlock ? access_unlock(*bundle, context->options, error)
                       : access_unlock_if_given(*bundle, context->options, error);
}

static int end_command(struct command_context *context, struct bundle *bundle, enum status status,
                       int code, struct error *error)
{
    bundle_close(bundle);
    return status == STATUS_OK ? code : command_fail(context, error);
}

/* ---- steps -------------------------------------------------------------- */

static const struct option_spec steps_options[] = {
    {.name = "from", .kind = OPTION_INTEGER, .value = "STEP", .help = "the first step to show"},
    {.name = "count",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "100",
     .minimum = 1,
     .maximum = 1000000,
     .help = "how many to show"},
    ACCESS_KEY_OPTIONS,
};

/* A number of the journal; null where there is none, or none that JSON can say. */
static json_t *real_json(bool there, uint32_t bits)
{
    const float value = real_from_bits(bits);

    return there && isfinite(value) ? json_real((double)value) : json_null();
}

/* Perplexity is e to the loss of a token. */
static json_t *perplexity_json(const struct bundle_step *step)
{
    float loss;

    memcpy(&loss, &step->held_out_bits, sizeof(loss));
    return step->evaluated && isfinite(exp((double)loss)) ? json_real(exp((double)loss))
                                                          : json_null();
}

/* norm: of the gradient; NULL: the job keeps none, or no checkpoint has it yet. */
static json_t *step_json(const struct bundle_step *step, const float *norm, bool of_tokens)
{
    char root[HEX_SIZE(DIGEST_SIZE)];
    json_t *view;

    hex_of(root, &step->root);
    view = json_pack("{s:I, s:s}", "step", (json_int_t)step->step, "state_root", root);
    if (view == NULL || step->hidden) {
        return view;
    }
    (void)json_object_set_new(view, "loss", real_json(true, step->loss_bits));
    (void)json_object_set_new(view, "held_out_loss",
                              real_json(step->evaluated, step->held_out_bits));
    (void)json_object_set_new(view, "held_out_perplexity",
                              of_tokens ? perplexity_json(step) : json_null());
    (void)json_object_set_new(view, "held_out_accuracy",
                              real_json(step->evaluated, step->accuracy_bits));
    if (norm != NULL) {
        (void)json_object_set_new(view, "gradient_norm",
                                  isfinite(*norm) ? json_real((double)*norm) : json_null());
    }
    (void)json_object_set_new(view, "nanoseconds", json_integer((json_int_t)step->nanoseconds));
    (void)json_object_set_new(view, "nanoseconds_committing",
                              json_integer((json_int_t)step->nanoseconds_committing));
    (void)json_object_set_new(view, "microjoules",
                              step->microjoules == BUNDLE_ENERGY_UNKNOWN
                                  ? json_null()
                                  : json_integer((json_int_t)step->microjoules));
    (void)json_object_set_new(view, "device", json_integer((json_int_t)step->device));
    return view;
}

static void print_held_out(struct sheet *sheet, const struct bundle_step *step, bool of_tokens)
{
    float loss;
    float accuracy;

    if (!step->evaluated) {
        return;
    }
    memcpy(&loss, &step->held_out_bits, sizeof(loss));
    memcpy(&accuracy, &step->accuracy_bits, sizeof(accuracy));
    sheet_print(sheet, "  held-out %.6f", (double)loss);
    if (of_tokens) {
        sheet_print(sheet, ", perplexity %.4g", exp((double)loss));
    }
    if (step->accuracy_bits != FLOAT_NAN_BITS) {
        sheet_print(sheet, ", %.1f %% right", 100.0 * (double)accuracy);
    }
}

static void print_step(struct sheet *sheet, const struct bundle_step *step, const float *norm,
                       const struct job_facts *facts)
{
    char root[HEX_SIZE(DIGEST_SIZE)];
    float loss;

    hex_of(root, &step->root);
    memcpy(&loss, &step->loss_bits, sizeof(loss));
    if (step->hidden) {
        sheet_print(sheet, "%8" PRIu64 "  %s\n", step->step, root);
        return;
    }
    sheet_print(sheet, "%8" PRIu64 "  %s", step->step, root);
    if (facts->trains) {
        sheet_print(sheet, "  loss %-10.6f", (double)loss);
    }
    sheet_print(sheet, " %9.3f ms  committing %7.3f ms", (double)step->nanoseconds / 1e6,
                (double)step->nanoseconds_committing / 1e6);
    if (norm != NULL) {
        sheet_print(sheet, "  gradient %.6g", (double)*norm);
    }
    print_held_out(sheet, step, facts->tokens > 0);
    sheet_print(sheet, "\n");
}

/* *more: steps behind those that were shown. */
static enum status add_steps(struct sheet *sheet, json_t *list, uint64_t *more,
                             const struct options *options, struct bundle *bundle, uint64_t known,
                             struct error *error)
{
    uint64_t from = options_number(options, "from");
    uint64_t count = options_number(options, "count");
    struct job_facts facts;
    float *norms = NULL;
    uint64_t norm_count = 0;
    enum status status;

    job_facts(&facts, bundle_job(bundle));
    TRY_OUT(gradient_norms_read(&norms, &norm_count, bundle, error));
    for (uint64_t i = 0; i < count && from < known; i++, from++) {
        const float *norm = from < norm_count ? &norms[from] : NULL;
        struct bundle_step step;

        TRY_OUT(bundle_step_read(&step, bundle, from, error));
        (void)json_array_append_new(list, step_json(&step, norm, facts.tokens > 0));
        print_step(sheet, &step, norm, &facts);
    }
    *more = from < known ? known - from : 0;
    if (*more > 0) {
        sheet_print(sheet,
                    "%" PRIu64 " more: --from %" PRIu64 " goes on, --count %" PRIu64 " shows all\n",
                    *more, from, known);
    }
out:
    free(norms);
    return status;
}

static int run_steps(struct command_context *context)
{
    json_t *list = json_array();
    struct bundle *bundle = NULL;
    uint64_t known = 0;
    uint64_t more = 0;
    struct sheet sheet;
    struct error error;
    enum status status;
    int code = COMMAND_OK;

    error_init(&error);
    sheet_init(&sheet);
    TRY_OUT(open_bundle(&bundle, context, false, &error));
    TRY_OUT(bundle_step_count(&known, bundle, &error));
    if (known > 0) {
        sheet_print(&sheet, "not checked: this is what the solver says; 'lockstep audit' runs "
                            "the steps again\n");
    }
    TRY_OUT(add_steps(&sheet, list, &more, context->options, bundle, known, &error));
    sheet_merge(&sheet, json_pack("{s:I, s:I, s:b, s:O}", "step_count", (json_int_t)known, "more",
                                  (json_int_t)more, "checked", 0, "steps", list));
    code = command_show(context, &sheet);
out:
    json_decref(list);
    sheet_release(&sheet);
    return end_command(context, bundle, status, code, &error);
}

/* ---- segments ----------------------------------------------------------- */

static json_t *segment_json(uint64_t segment, const struct digest *root, const uint8_t *signature,
                            size_t size)
{
    char text[HEX_SIZE(DIGEST_SIZE)];
    char signed_text[HEX_SIZE(BUNDLE_SIGNATURE_MAX)];

    hex_of(text, root);
    hex_encode(signed_text, signature, size);
    return json_pack("{s:I, s:s, s:o}", "segment", (json_int_t)segment, "root", text, "signature",
                     size == 0 ? json_null() : json_string(signed_text));
}

/* STATUS_NOT_FOUND: it is not complete yet. */
static enum status add_segment(struct sheet *sheet, json_t *list, struct bundle *bundle,
                               uint64_t segment, struct error *error)
{
    uint8_t signature[BUNDLE_SIGNATURE_MAX];
    struct digest root;
    struct digest signed_root;
    char text[HEX_SIZE(DIGEST_SIZE)];
    size_t size = 0;
    enum status status;

    TRY(bundle_segment_root(&root, bundle, segment, error));
    status = bundle_segment_signature(&signed_root, signature, &size, bundle, segment, error);
    if (status == STATUS_OK && !digest_equal(&root, &signed_root)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "segment %" PRIu64 " was signed with another root than its steps have",
                         segment);
    }
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return status;
    }
    (void)json_array_append_new(list, segment_json(segment, &root, signature, size));
    hex_of(text, &root);
    sheet_print(sheet, "%8" PRIu64 "  %s%s\n", segment, text, size == 0 ? "" : "  signed");
    return STATUS_OK;
}

static enum status add_segments(struct sheet *sheet, json_t *list, struct bundle *bundle,
                                struct error *error)
{
    for (uint64_t i = 0; i < job_segments(bundle_job(bundle)); i++) {
        enum status status = add_segment(sheet, list, bundle, i, error);

        if (status == STATUS_NOT_FOUND) {
            return STATUS_OK;
        }
        TRY(status);
    }
    return STATUS_OK;
}

static int run_segments(struct command_context *context)
{
    json_t *list = json_array();
    struct bundle *bundle = NULL;
    int code = COMMAND_OK;
    struct sheet sheet;
    struct error error;
    enum status status;

    error_init(&error);
    sheet_init(&sheet);
    TRY_OUT(open_bundle(&bundle, context, false, &error));
    TRY_OUT(add_segments(&sheet, list, bundle, &error));
    sheet_set(&sheet, "segments", json_incref(list));
    code = command_show(context, &sheet);
out:
    json_decref(list);
    sheet_release(&sheet);
    return end_command(context, bundle, status, code, &error);
}

/* ---- check -------------------------------------------------------------- */

static const struct option_spec key_options[] = {ACCESS_KEY_OPTIONS};

struct bundle_findings {
    uint64_t steps;
    uint64_t checkpoints;
    uint64_t damaged;
    json_t *list; /* the damage */
};

static enum status check_checkpoints(struct bundle_findings *findings, struct bundle *bundle,
                                     struct error *error)
{
    uint64_t step = 0;
    enum status status;

    while ((status = bundle_checkpoint_find(&step, bundle, step, error)) == STATUS_OK) {
        struct error why;

        error_init(&why);
        findings->checkpoints++;
        if (bundle_checkpoint_check(bundle, step, &why) != STATUS_OK) {
            findings->damaged++;
            (void)json_array_append_new(
                findings->list,
                json_pack("{s:I, s:s}", "checkpoint", (json_int_t)step, "why", why.text));
        }
        step++;
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static int report_findings(struct command_context *context, const struct bundle *bundle,
                           const struct bundle_findings *findings)
{
    int shown;
    size_t at;
    json_t *value;
    struct sheet sheet;

    sheet_init(&sheet);
    sheet_merge(&sheet, json_pack("{s:s, s:I, s:I, s:I, s:O}", "bundle", bundle_path(bundle),
                                  "steps", (json_int_t)findings->steps, "checkpoints",
                                  (json_int_t)findings->checkpoints, "damaged",
                                  (json_int_t)findings->damaged, "findings", findings->list));
    sheet_print(&sheet, "%" PRIu64 " steps, %" PRIu64 " checkpoints, %" PRIu64 " of them damaged\n",
                findings->steps, findings->checkpoints, findings->damaged);
    json_array_foreach(findings->list, at, value)
    {
        sheet_print(&sheet, "  %s\n", json_string_value(json_object_get(value, "why")));
    }
    shown = command_show(context, &sheet);
    return shown == COMMAND_OK && findings->damaged > 0 ? COMMAND_REFUSED : shown;
}

static int run_check(struct command_context *context)
{
    struct bundle_findings findings = {.list = json_array()};
    struct bundle *bundle = NULL;
    struct error error;
    enum status status;
    int code = COMMAND_OK;

    error_init(&error);
    TRY_OUT(open_bundle(&bundle, context, true, &error));
    TRY_OUT(bundle_step_count(&findings.steps, bundle, &error));
    TRY_OUT(check_checkpoints(&findings, bundle, &error));
    code = report_findings(context, bundle, &findings);
out:
    json_decref(findings.list);
    return end_command(context, bundle, status, code, &error);
}

/* ---- export, import ------------------------------------------------------- */

static const struct option_spec export_options[] = {
    {.name = "checkpoints",
     .heading = "result",
     .kind = OPTION_CHOICE,
     .value = "WHICH",
     .choices = "all|last|none",
     .fallback = "all",
     .help = "the checkpoints to take along"},
    {.name = "hf",
     .heading = "result",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "in place of FILE: a new folder of Hugging Face with the model, or with the adapters"},
    {.name = "base",
     .heading = "model",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "with --hf: the folder that the training began with; its config and tokenizer are "
             "taken along"},
    {.name = "step",
     .heading = "model",
     .kind = OPTION_INTEGER,
     .value = "N",
     .help = "with --hf: the state after so many steps, of which there is a checkpoint (default: "
             "the newest)"},
    {.name = "average",
     .heading = "model",
     .kind = OPTION_INTEGER,
     .value = "N",
     .minimum = 2,
     .maximum = AVERAGE_STATES_MAX,
     .help = "with --hf: the mean of the states of so many checkpoints, of which --step, or the "
             "newest, is the last"},
    {.name = "best",
     .heading = "model",
     .kind = OPTION_FLAG,
     .help = "with --hf: the state with the least held-out loss"},
    {.name = "base-name",
     .heading = "result",
     .kind = OPTION_TEXT,
     .value = "OWNER/NAME",
     .help = "with --hf: how adapters and card call the model below them (default: its folder)"},
    {.name = "dtype",
     .heading = "result",
     .kind = OPTION_CHOICE,
     .value = "TYPE",
     .choices = "f32|bf16",
     .fallback = "f32",
     .help = "with --hf: the type of a whole model's weights; bf16 is rounded to nearest even"},
    {.name = "tokenizer",
     .heading = "data",
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "with --hf, of a model from a seed: its tokenizer, which is taken along; 'bytes': "
             "tokens are bytes"},
    {.name = "merge",
     .heading = "result",
     .kind = OPTION_FLAG,
     .help = "with --hf: add adapters to the weights"},
    ACCESS_KEY_OPTIONS,
};

/* The newest checkpoint, or the one of --step, or of --best. */
static enum status find_step(uint64_t *step, struct bundle *bundle, const struct options *options,
                             struct error *error)
{
    uint64_t wanted = options_number(options, "step");
    bool given = options_given(options, "step");
    uint64_t at = given ? wanted : 0;
    enum status status;

    if (options_flag(options, "best")) {
        return given ? error_set(error, STATUS_USAGE, "one of --step and --best is enough")
                     : least_loss_find(step, bundle, error);
    }
    TRY(bundle_checkpoint_find(step, bundle, at, error));
    if (given && *step != wanted) {
        return error_set(error, STATUS_NOT_FOUND,
                         "no checkpoint after %" PRIu64 " steps; the next is after %" PRIu64,
                         wanted, *step);
    }
    while (!given) {
        status = bundle_checkpoint_find(&at, bundle, *step + 1, NULL);
        if (status != STATUS_OK) {
            return status == STATUS_NOT_FOUND
                       ? STATUS_OK
                       : bundle_checkpoint_find(&at, bundle, *step + 1, error);
        }
        *step = at;
    }
    return STATUS_OK;
}

static enum status export_mean(struct model_export *options, struct bundle *bundle, uint32_t count,
                               struct error *error)
{
    char path[FILE_PATH_MAX];
    struct safetensors state;
    enum status status;

    if (snprintf(path, sizeof(path), "%s.mean", options->folder) >= (int)sizeof(path)) {
        return error_set(error, STATUS_USAGE, "--hf: the path is too long");
    }
    options->averaged_count = count;
    TRY(average_write_bundle(path, options->averaged, bundle, options->step, count, error));
    status = safetensors_open(&state, error, path);
    if (status == STATUS_OK) {
        options->state = &state;
        status = model_export(options, error);
        options->state = NULL;
        safetensors_close(&state);
    }
    (void)unlink(path);
    return status;
}

static enum status export_model(struct command_context *context, struct bundle *bundle,
                                struct error *error)
{
    struct model_export options = {.folder = options_text(context->options, "hf"),
                                   .base = options_text(context->options, "base"),
                                   .base_name = options_text(context->options, "base-name"),
                                   .tokenizer = options_text(context->options, "tokenizer"),
                                   .merge = options_flag(context->options, "merge"),
                                   .bf16 =
                                       strcmp(options_text(context->options, "dtype"), "bf16") == 0,
                                   .job = bundle_job(bundle)};
    struct safetensors state;
    enum status status;

    if (context->options->argument_count != 1) {
        return error_set(error, STATUS_USAGE, "--hf takes the place of FILE");
    }
    TRY(access_unlock(bundle, context->options, error));
    TRY(find_step(&options.step, bundle, context->options, error));
    TRY(bundle_state_root(&options.root, bundle, options.step, error));
    if (options_given(context->options, "average")) {
        return export_mean(&options, bundle, (uint32_t)options_number(context->options, "average"),
                           error);
    }
    TRY(bundle_checkpoint_open(&state, bundle, options.step, error));
    options.state = &state;
    status = model_export(&options, error);
    safetensors_close(&state);
    return status;
}

static enum status export_file(struct command_context *context, struct bundle *bundle,
                               struct error *error)
{
    static const char *const of_models[] = {"base",  "step",      "average", "best",
                                            "merge", "base-name", "dtype",   "tokenizer"};
    const char *which = options_text(context->options, "checkpoints");

    for (size_t i = 0; i < sizeof(of_models) / sizeof(of_models[0]); i++) {
        if (options_flagged(context->options, of_models[i])) {
            return error_set(error, STATUS_USAGE, "--%s says nothing without --hf", of_models[i]);
        }
    }
    if (context->options->argument_count != 2) {
        return error_set(error, STATUS_USAGE, "name the FILE, or a folder with --hf");
    }
    return bundle_export(bundle, context->options->arguments[1],
                         strcmp(which, "all") == 0    ? BUNDLE_PACK_ALL
                         : strcmp(which, "last") == 0 ? BUNDLE_PACK_LAST
                                                      : BUNDLE_PACK_NONE,
                         error);
}

static int run_export(struct command_context *context)
{
    const char *folder = options_text(context->options, "hf");
    const char *path = folder != NULL ? folder : context->options->arguments[1];
    struct bundle *bundle = NULL;
    struct error error;
    enum status status;
    int code = COMMAND_OK;

    error_init(&error);
    TRY_OUT(open_bundle(&bundle, context, false, &error));
    TRY_OUT(folder != NULL ? export_model(context, bundle, &error)
                           : export_file(context, bundle, &error));
    code =
        command_say(context, json_pack("{s:s, s:s}", "bundle", bundle_path(bundle), "file", path),
                    "%s is in %s\n", bundle_path(bundle), path);
out:
    return end_command(context, bundle, status, code, &error);
}

static const struct option_spec import_options[] = {
    {.name = "size-max",
     .heading = "keeping",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .fallback = "64G",
     .help = "refuse a file that unpacks to more"},
    ACCESS_KEY_OPTIONS,
};

static enum status import_with(struct bundle_import *import, struct command_context *context,
                               struct error *error)
{
    const struct options *options = context->options;
    const char *key_path = options_text(options, "bundle-key");
    const char *file = options_text(options, "bundle-passphrase-file");
    const struct passphrase_source source = {.file = file, .option = "bundle-passphrase-file"};
    struct passphrase *passphrase = NULL;
    struct encryption_key key = {{0}};
    enum status status;

    if (key_path != NULL) {
        TRY_OUT(key_file_read(&key, key_path, error));
        import->key = &key;
    } else if (file != NULL || getenv(PASSPHRASE_VARIABLE) != NULL) {
        TRY_OUT(passphrase_get(&passphrase, &source, error));
        import->passphrase = passphrase->bytes;
        import->passphrase_size = passphrase->size;
    }
    TRY_OUT(bundle_import(options->arguments[1], options->arguments[0], import, error));
out:
    import->key = NULL;
    encryption_key_wipe(&key);
    passphrase_free(passphrase);
    return status;
}

static int run_import(struct command_context *context)
{
    struct bundle_import import = {.size_max = options_number(context->options, "size-max")};
    const char *folder = context->options->arguments[1];
    struct sheet sheet;
    struct error error;

    error_init(&error);
    if (import_with(&import, context, &error) != STATUS_OK) {
        return command_fail(context, &error);
    }
    sheet_init(&sheet);
    sheet_merge(&sheet,
                json_pack("{s:s, s:i, s:i}", "bundle", folder, "checkpoints",
                          (int)import.checkpoints, "checkpoints_unchecked", (int)import.unchecked));
    sheet_print(&sheet, "%s holds the run, with %u checkpoints\n", folder, import.checkpoints);
    if (import.unchecked > 0) {
        sheet_print(&sheet, "%u of them are encrypted and were not checked\n", import.unchecked);
    }
    return command_show(context, &sheet);
}

/* ---- key ---------------------------------------------------------------- */

static int run_key(struct command_context *context)
{
    const char *path = context->options->arguments[1];
    struct bundle *bundle = NULL;
    struct encryption_key key = {{0}};
    struct error error;
    enum status status;
    int code = COMMAND_OK;

    error_init(&error);
    TRY_OUT(open_bundle(&bundle, context, true, &error));
    TRY_OUT(bundle_key(&key, bundle, &error));
    TRY_OUT(key_file_write(path, &key, &error));
    code = command_say(context,
                       json_pack("{s:s, s:s}", "bundle", bundle_path(bundle), "key_file", path),
                       "%s decrypts all of %s\n", path, bundle_path(bundle));
out:
    encryption_key_wipe(&key);
    return end_command(context, bundle, status, code, &error);
}

/* ---- the table ---------------------------------------------------------- */

#define OPTIONS_OF(table) .options = (table), .option_count = sizeof(table) / sizeof((table)[0])

static const struct command commands[] = {
    {.name = "status",
     .summary = "say how far a bundle is, and what each segment waits for on the ledger",
     .arguments = "BUNDLE",
     .example = "lockstep bundle status text.run",
     .options = ledger_commands_status_options,
     .option_count = LEDGER_COMMANDS_STATUS_OPTIONS,
     .run = ledger_commands_status},
    {.name = "steps",
     .summary = "show the steps of a run: roots, losses, times",
     .arguments = "BUNDLE",
     .example = "lockstep bundle steps text.run --from 100",
     OPTIONS_OF(steps_options),
     .run = run_steps},
    {.name = "segments",
     .summary = "show the roots of the complete segments",
     .arguments = "BUNDLE",
     .example = "lockstep bundle segments text.run",
     OPTIONS_OF(key_options),
     .run = run_segments},
    {.name = "check",
     .summary = "hash every checkpoint and compare it with the journal",
     .description =
         "Exit code 0: every checkpoint is the state that the journal names; 1: some are "
         "damaged. No step is run again: 'lockstep audit' does that.",
     .arguments = "BUNDLE",
     .example = "lockstep bundle check text.run",
     OPTIONS_OF(key_options),
     .run = run_check},
    {.name = "export",
     .summary = "put a bundle into one file, or its model into a folder of Hugging Face",
     .description = "The file is a tar archive under zstd. Notes that name your folders stay out, "
                    "and an encrypted bundle stays encrypted. With --hf, a checkpoint becomes a "
                    "folder that other programs open: a whole model in binary32, or the adapters "
                    "of a job with --lora as PEFT reads them. The folder of --base must have the "
                    "roots that the job began with; a model that began with a seed needs none.",
     .arguments = "BUNDLE [FILE]",
     .example = "lockstep bundle export text.run text.tar.zst\n"
                "lockstep bundle export tune.run --hf tuned --base Llama-3.2-1B",
     OPTIONS_OF(export_options),
     .run = run_export},
    {.name = "import",
     .summary = "make a bundle of a file of 'bundle export', after checking all of it",
     .description =
         "Everything is checked before the bundle appears; a file that fails leaves "
         "nothing behind. Checkpoints of an encrypted bundle are checked when its key or "
         "passphrase is given.",
     .arguments = "FILE BUNDLE",
     .example = "lockstep bundle import text.tar.zst text.run",
     OPTIONS_OF(import_options),
     .run = run_import},
    {.name = "key",
     .summary = "write the key of an encrypted bundle to a file, for a verifier",
     .arguments = "BUNDLE FILE",
     .example = "lockstep bundle key text.run text.key",
     OPTIONS_OF(key_options),
     .run = run_key},
};

const struct command_group bundle_commands = {.name = "bundle",
                                              .summary = "runs on disk: show, check, pack, hand on",
                                              .commands = commands,
                                              .command_count =
                                                  sizeof(commands) / sizeof(commands[0])};
