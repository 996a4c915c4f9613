/* data_commands.c - see data_commands.h: pack and check. */
#include "data/commands/data_commands.h"

#include <inttypes.h>
#include <string.h>

#include "base/steady.h"
#include "data/commands/data_show.h"
#include "data/rows/moved_sources.h"
#include "data/rows/pack.h"

/* ---- pack ---- */

static const struct option_spec pack_options[] = {
    {.name = "tokenizer",
     .heading = "data",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help =
         "the folder of a model with tokenizer.json, or with vocab.json and merges.txt; 'bytes': "
         "ids are bytes",
     .required = true},
    {.name = "length",
     .heading = "data",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .minimum = 2,
     .maximum = ROW_LENGTH_MAX,
     .help = "tokens of a row",
     .required = true},
    {.name = "out",
     .heading = "result",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .fallback = "packed",
     .help = "the folder that is made"},
    {.name = "chat",
     .heading = "data",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "auto",
     .help =
         "how conversations are laid out: auto (as the tokenizer's template says), none, llama2, "
         "llama3, llama3.1, qwen3, gemma3, mistral-v1, mistral-v3",
     .choices = "auto|none|llama2|llama3|llama3.1|qwen3|gemma3|mistral-v1|mistral-v3"},
    {.name = "system",
     .heading = "data",
     .kind = OPTION_TEXT,
     .value = "TEXT",
     .help = "a system message before conversations that have none",
     .command_line_only = true},
    {.name = "date",
     .heading = "data",
     .kind = OPTION_TEXT,
     .value = "TEXT",
     .help = "today's date, for layouts that say it (default: the one that the template names)",
     .command_line_only = true},
    {.name = "learn",
     .heading = "data",
     .often = true,
     .kind = OPTION_CHOICE,
     .value = "WHAT",
     .choices = "assistant|last|all",
     .fallback = "assistant",
     .help =
         "what is learned of a conversation: all that the assistant says, or its last message; "
         "all: prompts of completions too. A message's own \"learn\": true or false goes before"},
    {.name = "long",
     .heading = "data",
     .kind = OPTION_CHOICE,
     .value = "WHAT",
     .choices = "cut|split|leave",
     .fallback = "cut",
     .help = "what becomes of an example longer than a row: keep its first tokens, make several "
             "examples of it, or "
             "leave it out"},
    {.name = "split-on",
     .heading = "data",
     .kind = OPTION_CHOICE,
     .value = "WHAT",
     .choices = "file|line|blank",
     .fallback = "file",
     .help = "what is an example in a .txt: the file, a line, or what stands between blank lines"},
    {.name = "bos",
     .heading = "data",
     .kind = OPTION_CHOICE,
     .value = "WHO",
     .choices = "tokenizer|never",
     .fallback = "tokenizer",
     .help = "who puts tokens such as BOS before a text: the tokenizer's own template, or nobody"},
    {.name = "eos",
     .heading = "data",
     .kind = OPTION_CHOICE,
     .value = "WHO",
     .choices = "always|tokenizer|never",
     .fallback = "always",
     .help = "who puts EOS behind a text: we, the tokenizer's own template, or nobody"},
    {.name = "special",
     .heading = "data",
     .kind = OPTION_FLAG,
     .help = "special tokens in texts are taken as such, not as text"},
    {.name = "invalid",
     .heading = "data",
     .kind = OPTION_CHOICE,
     .value = "WHAT",
     .choices = "refuse|replace",
     .fallback = "refuse",
     .help = "what becomes of bytes that are no UTF-8: refuse the file and say where, or put "
             "U+FFFD there"},
    {.name = "held-out",
     .heading = "held-out",
     .often = true,
     .kind = OPTION_REAL,
     .value = "SHARE",
     .fallback = "0",
     .help =
         "hold out about this share of the examples, always the same ones, in files of their own"},
};

static unsigned choice_of(const struct options *options, const char *name, const char *const *words,
                          unsigned count)
{
    const char *text = options_text(options, name);
    unsigned i = 0;

    while (i + 1 < count && strcmp(text, words[i]) != 0) {
        i++;
    }
    return i; /* the table lists the same words */
}

static void read_options(struct pack_options *pack, const struct options *options)
{
    static const char *const learns[] = {"assistant", "last", "all"};
    static const char *const too_longs[] = {"cut", "split", "leave"};
    static const char *const splits[] = {"file", "line", "blank"};

    *pack = (struct pack_options){
        .tokenizer = options_text(options, "tokenizer"),
        .sources = options->arguments,
        .source_count = options->argument_count,
        .length = (uint32_t)options_number(options, "length"),
        .too_long = (enum packing_long)choice_of(options, "long", too_longs, 3),
        .split = (enum packing_split)choice_of(options, "split-on", splits, 3),
        .chat = options_text(options, "chat"),
        .learn = (enum example_learn)choice_of(options, "learn", learns, 3),
        .system = options_text(options, "system"),
        .date = options_text(options, "date"),
        .bos = strcmp(options_text(options, "bos"), "tokenizer") == 0,
        .eos = options_text(options, "eos"),
        .special = options_flag(options, "special"),
        .replace = strcmp(options_text(options, "invalid"), "replace") == 0,
        .held_out = options_text(options, "held-out"),
    };
}

static void print_side(struct sheet *sheet, const char *name, const struct manifest *manifest,
                       size_t side)
{
    const uint64_t places = manifest->rows[side] * manifest->shape.length;

    sheet_print(sheet,
                "%-11s %" PRIu64 " rows of %u tokens; %" PRIu64 " tokens, %.2f %% of the places; "
                "%" PRIu64 " of them are learned\n",
                name, manifest->rows[side], manifest->shape.length, manifest->tokens[side],
                places == 0 ? 0.0 : 100.0 * (double)manifest->tokens[side] / (double)places,
                manifest->learned[side]);
}

static void print_counts(struct sheet *sheet, const struct manifest *manifest)
{
    static const char *const what[] = {"cut to a row", "split into several", "left out"};
    const struct packing_counts *counts = &manifest->counts;

    sheet_print(sheet, "examples    %" PRIu64 "%s", counts->examples,
                counts->pairs > 0 ? ", each a pair of rows" : "");
    if (counts->held_out > 0) {
        sheet_print(sheet, "; %" PRIu64 " held out", counts->held_out);
    }
    if (counts->too_long > 0) {
        sheet_print(sheet, "; %" PRIu64 " too long, %s", counts->too_long,
                    what[manifest->options.too_long]);
    }
    if (counts->dropped > 0) {
        sheet_print(sheet, " (%" PRIu64 " tokens lost)", counts->dropped);
    }
    if (counts->empty > 0) {
        sheet_print(sheet, "; %" PRIu64 " empty", counts->empty);
    }
    if (counts->replaced > 0) {
        sheet_print(sheet, "; %" PRIu64 " times U+FFFD for what is no UTF-8", counts->replaced);
    }
    sheet_print(sheet, "\n");
}

static int report_rows(struct command_context *context, const char *folder)
{
    struct manifest manifest;
    struct sheet sheet;
    struct error error;

    error_init(&error);
    if (manifest_read(&manifest, &error, folder) != STATUS_OK) {
        return command_fail(context, &error);
    }
    sheet_init(&sheet);
    sheet_merge(&sheet, json_incref(manifest.root));
    sheet_set(&sheet, "folder", json_string(folder));
    print_counts(&sheet, &manifest);
    print_side(&sheet, "rows", &manifest, 0);
    if (manifest.rows[1] > 0) {
        print_side(&sheet, "held out", &manifest, 1);
    }
    sheet_print(&sheet, "written to  %s\n", folder);
    manifest_release(&manifest);
    return command_show(context, &sheet);
}

/* Packs or checks with progress and a clean stop. */
static enum status run_packing(const struct pack_options *options, const char *folder,
                               const struct manifest *manifest, struct pack_check *check,
                               struct error *error)
{
    struct progress progress;
    struct stop stop;
    enum status status;
    uint64_t bytes;

    TRY(packing_bytes(&bytes, error, options));
    TRY(stop_open(&stop, error));
    progress_init(&progress, stderr, manifest == NULL ? "packing" : "checking", "KiB", 0,
                  bytes >> 10, steady_seconds());
    status = manifest == NULL
                 ? pack_write(folder, error, options, &progress, &stop)
                 : pack_check(check, error, folder, manifest, options, &progress, &stop);
    if (bytes >> 20 > 0 && status == STATUS_OK) {
        progress_finish(&progress, bytes >> 10, "", steady_seconds());
    }
    stop_close(&stop);
    return status;
}

static int run_pack(struct command_context *context)
{
    const char *folder = options_text(context->options, "out");
    struct pack_options options;
    struct error error;

    error_init(&error);
    read_options(&options, context->options);
    if (run_packing(&options, folder, NULL, NULL, &error) != STATUS_OK) {
        return command_fail(context, &error);
    }
    return report_rows(context, folder);
}

/* ---- check ---- */

static const struct option_spec check_options[] = {
    {.name = "sources",
     .heading = "data",
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "where the sources are, by the last part of their names (default: where the manifest "
             "says)",
     .command_line_only = true},
    DATA_TOKENIZER_OPTION,
};

static int print_check(struct command_context *context, const struct pack_check *check)
{
    struct sheet sheet;

    sheet_init(&sheet);
    sheet_merge(&sheet,
                json_pack("{s:b, s:I, s:I}", "equal", (int)check->equal, "rows",
                          (json_int_t)check->rows[0], "held_out", (json_int_t)check->rows[1]));
    if (check->equal) {
        sheet_print(&sheet,
                    "equal: %" PRIu64 " rows and %" PRIu64
                    " that are held out follow from the sources\n",
                    check->rows[0], check->rows[1]);
    } else {
        sheet_set(&sheet, "difference", json_string(check->difference));
        sheet_print(&sheet, "not equal: %s\n", check->difference);
    }
    (void)command_show(context, &sheet);
    return check->equal ? COMMAND_OK : COMMAND_REFUSED;
}

static int run_check(struct command_context *context)
{
    const char *folder = context->options->arguments[0];
    const char *from = options_text(context->options, "sources");
    const char *tokenizer = options_text(context->options, "tokenizer");
    struct moved_sources moved = {0};
    struct manifest manifest = {0};
    struct pack_options options;
    struct pack_check check;
    struct error error;
    enum status status;

    error_init(&error);
    TRY_OUT(manifest_read(&manifest, &error, folder));
    options = manifest.options;
    options.tokenizer = tokenizer == NULL ? options.tokenizer : tokenizer;
    if (from != NULL) {
        TRY_OUT(moved_sources_set(&moved, &options, from, &error));
    }
    status = run_packing(&options, folder, &manifest, &check, &error);
out:
    moved_sources_release(&moved);
    manifest_release(&manifest);
    return status == STATUS_OK ? print_check(context, &check) : command_fail(context, &error);
}

/* ---- the group ---- */

static const struct command commands[] = {
    {.name = "pack",
     .summary = "make rows of tokens from text and conversations",
     .description =
         "Reads .txt and .jsonl files, also with gzip or zstd, and writes rows of N tokens, a mask "
         "of "
         "what is learned, how far each token may look back, and a manifest with the SHA-256 of "
         "all "
         "that they follow from. A line of .jsonl has text; prompt and completion; messages with "
         "role and content; or chosen and rejected. A stopped run goes on with the same command.",
     .arguments = "FILE...",
     .example = "lockstep data pack notes.txt --tokenizer bytes --length 128 --out notes\n"
                "lockstep data pack chats.jsonl.gz --tokenizer Llama-3.2-1B --length 2048 \\\n"
                "    --held-out 0.02 --out chats",
     .options = pack_options,
     .option_count = sizeof(pack_options) / sizeof(pack_options[0]),
     .run = run_pack},
    {.name = "check",
     .summary = "make packed rows again from their sources and compare",
     .description = "Says equal, or the first place where they are not. Needs the sources and the "
                    "tokenizer; each is held to the manifest's SHA-256.",
     .arguments = "FOLDER",
     .example = "lockstep data check notes",
     .options = check_options,
     .option_count = sizeof(check_options) / sizeof(check_options[0]),
     .run = run_check},
    {.name = "show",
     .summary = "print packed rows as text, with what is learned and where examples begin",
     .description = "What is learned is green, or stands between { and }; | stands between two "
                    "examples. Characters that would drive a terminal are escaped.",
     .arguments = "FOLDER",
     .example = "lockstep data show notes --row 2 --count 1",
     .options = data_show_options,
     .option_count = DATA_SHOW_OPTIONS,
     .run = data_show_run},
};

const struct command_group data_commands = {
    .name = "data",
    .summary = "text and conversations as rows of tokens",
    .commands = commands,
    .command_count = sizeof(commands) / sizeof(commands[0]),
};
