/* base_commands.c - see base_commands.h. */
#include "client/base/base_commands.h"

#include <string.h>

#include "base/hex.h"
#include "proofs/model/merge_folder.h"
#include "proofs/widen/widen.h"

#define OUT_OPTION                                                                                 \
    {                                                                                              \
        .name = "out", .heading = "result", .often = true, .kind = OPTION_TEXT, .value = "FOLDER", \
        .help = "the folder that is made", .required = true                                        \
    }

static const struct option_spec widen_options[] = {
    OUT_OPTION,
    {.name = "dtype",
     .heading = "result",
     .kind = OPTION_CHOICE,
     .value = "TYPE",
     .choices = "f32|bf16",
     .help = "type of the widened weights (default: f32, as NF4 says it; MXFP4 is bf16, exactly)"},
};

static int run_widen(struct command_context *context)
{
    const char *type = options_text(context->options, "dtype");
    const char *out = options_text(context->options, "out");
    char origin[HEX_SIZE(DIGEST_SIZE)];
    char root[HEX_SIZE(DIGEST_SIZE)];
    struct widened widened;
    struct error error;

    error_init(&error);
    if (widen_folder(&widened, out, context->options->arguments[0],
                     type == NULL               ? WIDEN_AS_METHOD
                     : strcmp(type, "f32") == 0 ? WIDEN_F32
                                                : WIDEN_BF16,
                     &error) != STATUS_OK) {
        return command_fail(context, &error);
    }
    hex_encode(origin, widened.origin.bytes, DIGEST_SIZE);
    hex_encode(root, widened.root.bytes, DIGEST_SIZE);
    return command_say(context,
                       json_pack("{s:s, s:i, s:s, s:s}", "folder", out, "tensors",
                                 (int)widened.tensors, "root", root, "origin", origin),
                       "%u weights of 4 bits are wide in %s\nroot    %s\norigin  %s\n",
                       widened.tensors, out, root, origin);
}

static const struct option_spec merge_options[] = {
    {.name = "adapter",
     .heading = "model",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "adapters of PEFT, beside FOLDER",
     .required = true},
    OUT_OPTION,
};

static int run_merge(struct command_context *context)
{
    const char *out = options_text(context->options, "out");
    char root[HEX_SIZE(DIGEST_SIZE)];
    struct merged merged;
    struct error error;

    error_init(&error);
    if (merge_folder(&merged, out, context->options->arguments[0],
                     options_text(context->options, "adapter"), &error) != STATUS_OK) {
        return command_fail(context, &error);
    }
    hex_encode(root, merged.root.bytes, DIGEST_SIZE);
    return command_say(
        context,
        json_pack("{s:s, s:i, s:s}", "folder", out, "adapters", (int)merged.adapters, "root", root),
        "%u weights have their adapters in %s\nroot    %s\n", merged.adapters, out, root);
}

static const struct command commands[] = {
    {.name = "widen",
     .summary = "make an ordinary folder of one whose weights have four bits",
     .description =
         "Takes a folder of Hugging Face with weights of NF4 (bitsandbytes, also doubly quantized) "
         "or of MXFP4, and writes one that 'job new --base' takes. WIDENED.json holds the SHA-256 "
         "of the files before and after.",
     .arguments = "FOLDER",
     .example = "lockstep base widen Llama-3.2-1B-bnb-4bit --out Llama-3.2-1B --dtype bf16",
     .options = widen_options,
     .option_count = sizeof(widen_options) / sizeof(widen_options[0]),
     .run = run_widen},
    {.name = "merge",
     .summary = "add published adapters to the folder that they belong to",
     .description =
         "Writes W + alpha / rank * B A of every weight that has an adapter, as F32: a folder that "
         "'job new --base' takes, so a second stage may stand on adapters. It is what 'bundle "
         "export --hf --merge' makes of the run that trained them. MERGED.json holds the SHA-256 "
         "of the files of both folders, and 'audit --lineage' follows it.",
     .arguments = "FOLDER",
     .example = "lockstep base merge base --adapter adapter --out merged",
     .options = merge_options,
     .option_count = sizeof(merge_options) / sizeof(merge_options[0]),
     .run = run_merge},
};

const struct command_group base_commands = {.name = "base",
                                            .summary = "published models, made ready",
                                            .commands = commands,
                                            .command_count =
                                                sizeof(commands) / sizeof(commands[0])};
