/* model_commands.c - see model_commands.h. Reads files; computes no model. */
#include "client/generate/model_commands.h"

#include <inttypes.h>

#include "base/hex.h"
#include "proofs/model/model_root.h"

static int root_run(struct command_context *context)
{
    const char *path = context->options->arguments[0];
    char text[HEX_SIZE(DIGEST_SIZE)];
    struct digest root;
    struct error error;
    uint32_t count = 0;

    error_init(&error);
    if (model_root_of(&root, &count, path, &error) != STATUS_OK) {
        return command_fail(context, &error);
    }
    hex_encode(text, root.bytes, DIGEST_SIZE);
    return command_say(
        context,
        json_pack("{s:s, s:s, s:I}", "path", path, "root", text, "tensors", (json_int_t)count),
        "%s  %" PRIu32 " tensors of %s\n", text, count, path);
}

static const struct command commands[] = {
    {.name = "root",
     .summary = "say the root of a model's weights, as its files hold them",
     .description =
         "The root of a list of all tensors, by name: type, shape and bytes of each. A folder in "
         "shards has the root of the same folder in one file. The card that 'bundle export --hf' "
         "writes has it.",
     .arguments = "MODEL",
     .example = "lockstep model root Llama-3.2-1B\n"
                "lockstep model root tuned/model.safetensors",
     .run = root_run},
};

const struct command_group model_commands = {
    .name = "model",
    .summary = "models in files: their roots",
    .commands = commands,
    .command_count = sizeof(commands) / sizeof(commands[0]),
};
