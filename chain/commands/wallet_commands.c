/*
 * wallet_commands.c - `lockstep wallet new|import|list|address|sign`.
 *
 * A key leaves a file only into locked memory, and nothing prints one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec/hex_data.h"
#include "chain/codec/typed_data.h"
#include "chain/commands/commands.h"
#include "chain/commands/doctor_checks.h"
#include "chain/keys/passphrase.h"

#define PASSPHRASE_OPTION "passphrase-file"

/* ---- shared ------------------------------------------------------------------- */

enum status chain_wallet_folder(char path[FILE_PATH_MAX], const struct command_context *context,
                                struct error *error)
{
    const char *named = options_text(context->options, "wallet");

    if (named == NULL) {
        return file_place(path, FILE_PATH_MAX, error, FILE_PLACE_DATA, "wallet");
    }
    if (strlen(named) >= FILE_PATH_MAX) {
        return error_set(error, STATUS_USAGE, "the path of the wallet is too long");
    }
    memcpy(path, named, strlen(named) + 1);
    return STATUS_OK;
}

static enum status get_passphrase(struct passphrase **passphrase,
                                  const struct command_context *context, const char *option,
                                  const char *question, bool twice, struct error *error)
{
    const struct passphrase_source source = {
        .file = options_text(context->options, option),
        .question = context->json ? NULL : question,
        .twice = twice,
    };

    return passphrase_get(passphrase, &source, error);
}

static enum status unlock_entry(struct signer **signer, const struct command_context *context,
                                const char *option, const struct wallet_entry *entry,
                                struct error *error)
{
    char address[ADDRESS_TEXT_SIZE];
    char question[FILE_PATH_MAX + 32];
    struct passphrase *passphrase;
    enum status status;

    address_print(address, &entry->address);
    (void)snprintf(question, sizeof(question),
                   "Passphrase of %s: ", entry->named ? address : entry->path);
    TRY(get_passphrase(&passphrase, context, option, question, false, error));
    status = wallet_unlock(signer, entry, passphrase, error);
    passphrase_free(passphrase);
    return status;
}

enum status chain_unlock(struct signer **signer, const struct command_context *context,
                         struct error *error)
{
    return chain_unlock_by(signer, context, PASSPHRASE_OPTION, NULL, error);
}

enum status chain_unlock_by(struct signer **signer, const struct command_context *context,
                            const char *passphrase_option, const char *account, struct error *error)
{
    const char *named = options_text(context->options, "account");
    struct wallet_entry entry;
    char folder[FILE_PATH_MAX];

    *signer = NULL;
    TRY(secret_forbid_dumps(error));
    TRY(chain_wallet_folder(folder, context, error));
    TRY(wallet_find(&entry, folder, named == NULL ? account : named, error));
    return unlock_entry(signer, context, passphrase_option, &entry, error);
}

/* The address of an entry, which unlocks the file if it names none. */
static enum status find_address(struct wallet_entry *entry, const struct command_context *context,
                                const char *name, struct error *error)
{
    char folder[FILE_PATH_MAX];
    struct signer *signer;

    TRY(chain_wallet_folder(folder, context, error));
    TRY(wallet_find(entry, folder, name, error));
    if (entry->named) {
        return STATUS_OK;
    }
    TRY(secret_forbid_dumps(error));
    TRY(unlock_entry(&signer, context, PASSPHRASE_OPTION, entry, error));
    entry->address = *signer_address(signer);
    entry->named = true;
    signer_free(signer);
    return STATUS_OK;
}

enum status chain_account_address(struct address *account, const struct command_context *context,
                                  struct error *error)
{
    struct wallet_entry entry;

    TRY(find_address(&entry, context, options_text(context->options, "account"), error));
    *account = entry.address;
    return STATUS_OK;
}

/* An address of null: the file names none. */
static json_t *entry_json(const struct wallet_entry *entry)
{
    char address[ADDRESS_TEXT_SIZE];

    address_print(address, &entry->address);
    return json_pack("{s:s?, s:s}", "address", entry->named ? address : NULL, "file", entry->path);
}

static int show_entry(struct command_context *context, const struct wallet_entry *entry)
{
    char address[ADDRESS_TEXT_SIZE];

    if (context->json) {
        return command_emit(context, entry_json(entry));
    }
    address_print(address, &entry->address);
    (void)fprintf(context->out, "%s\n  %s\n", entry->named ? address : "the file names no address",
                  entry->path);
    return COMMAND_OK;
}

/* ---- new ---------------------------------------------------------------------- */

#define LIGHT_OPTION                                                                               \
    {                                                                                              \
        .name = "light", .heading = "account", .kind = OPTION_FLAG,                                \
        .help = "a key file that opens at once and resists guessing less"                          \
    }

static const struct option_spec new_options[] = {CHAIN_KEY_OPTIONS, LIGHT_OPTION};

static uint32_t cost_of(const struct command_context *context)
{
    return options_flag(context->options, "light") ? KEYSTORE_COST_LIGHT : KEYSTORE_COST_DEFAULT;
}

static int run_new(struct command_context *context)
{
    struct wallet_entry entry;
    struct passphrase *passphrase = NULL;
    char folder[FILE_PATH_MAX];
    struct error error;
    enum status status;

    error_init(&error);
    TRY_OUT(secret_forbid_dumps(&error));
    TRY_OUT(chain_wallet_folder(folder, context, &error));
    TRY_OUT(
        get_passphrase(&passphrase, context, PASSPHRASE_OPTION, "New passphrase: ", true, &error));
    TRY_OUT(wallet_new(&entry, folder, passphrase, cost_of(context), &error));
out:
    passphrase_free(passphrase);
    return status == STATUS_OK ? show_entry(context, &entry) : command_fail(context, &error);
}

/* ---- import ------------------------------------------------------------------- */

static const struct option_spec import_options[] = {CHAIN_KEY_OPTIONS, LIGHT_OPTION};

/* A file holds a key in the clear (64 hex digits) or another wallet's key file. */
static enum status read_foreign(struct secret_key *key, const char *path,
                                const struct passphrase *passphrase, struct error *error)
{
    struct file_bytes bytes = {0};
    enum status status = file_read(&bytes, error, path, KEYSTORE_SIZE_MAX);
    char *text = (char *)bytes.data;

    if (status != STATUS_OK) {
        return status;
    }
    if (memchr(text, '{', bytes.size) != NULL) {
        status = keystore_open(key, text, bytes.size, passphrase, error);
        if (status != STATUS_OK) {
            (void)error_wrap(error, "%s", path);
        }
    } else {
        text[strcspn(text, "\r\n ")] = '\0';
        text += strncmp(text, "0x", 2) == 0 ? 2 : 0;
        if (hex_read_exactly(key->bytes, SECRET_KEY_SIZE, text) != STATUS_OK ||
            !secret_key_is_valid(key)) {
            status = error_set(error, STATUS_BAD_FORMAT,
                               "%s: neither a key file of version 3 nor 64 hex digits", path);
        }
    }
    secret_wipe(bytes.data, bytes.size);
    file_bytes_release(&bytes);
    return status;
}

static int run_import(struct command_context *context)
{
    struct wallet_entry entry;
    struct passphrase *passphrase = NULL;
    struct secret_key *key;
    char folder[FILE_PATH_MAX];
    struct error error;
    enum status status;

    error_init(&error);
    key = secret_alloc(sizeof(*key), &error);
    status = key == NULL ? error.status : secret_forbid_dumps(&error);
    TRY_OUT(status);
    TRY_OUT(chain_wallet_folder(folder, context, &error));
    TRY_OUT(get_passphrase(&passphrase, context, PASSPHRASE_OPTION,
                           "Passphrase of the file, and from now on: ", false, &error));
    TRY_OUT(read_foreign(key, context->options->arguments[0], passphrase, &error));
    TRY_OUT(wallet_add(&entry, folder, key, passphrase, cost_of(context), &error));
out:
    secret_free(key, sizeof(*key));
    passphrase_free(passphrase);
    return status == STATUS_OK ? show_entry(context, &entry) : command_fail(context, &error);
}

/* ---- list, address -------------------------------------------------------------- */

static const struct option_spec list_options[] = {CHAIN_KEY_OPTIONS};

static int emit_list(struct command_context *context, const struct wallet_entry *entries,
                     size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, entry_json(&entries[i]));
    }
    return command_emit(context, json_pack("{s:o}", "keys", list));
}

static int run_list(struct command_context *context)
{
    struct wallet_entry *entries = NULL;
    char folder[FILE_PATH_MAX];
    struct error error;
    size_t count = 0;
    int code = COMMAND_OK;
    enum status status;

    error_init(&error);
    TRY_OUT(chain_wallet_folder(folder, context, &error));
    TRY_OUT(wallet_list(&entries, &count, folder, &error));
out:
    if (status != STATUS_OK) {
        return command_fail(context, &error);
    }
    if (context->json) {
        code = emit_list(context, entries, count);
    }
    for (size_t i = 0; i < count && !context->json; i++) {
        (void)show_entry(context, &entries[i]);
    }
    free(entries);
    return code;
}

static int run_address(struct command_context *context)
{
    const char *name = context->options->argument_count > 0 ? context->options->arguments[0] : NULL;
    struct wallet_entry entry;
    char address[ADDRESS_TEXT_SIZE];
    struct error error;

    error_init(&error);
    if (find_address(&entry, context, name, &error) != STATUS_OK) {
        return command_fail(context, &error);
    }
    if (context->json) {
        return show_entry(context, &entry);
    }
    address_print(address, &entry.address);
    (void)fprintf(context->out, "%s\n", address);
    return COMMAND_OK;
}

/* ---- sign --------------------------------------------------------------------- */

static const struct option_spec sign_options[] = {
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    {.name = "hash",
     .heading = "account",
     .kind = OPTION_FLAG,
     .help = "the text is a hash of 32 bytes (an EIP-712 message): sign it as it is"},
};

static enum status hash_of_text(struct hash32 *hash, const struct command_context *context,
                                struct error *error)
{
    const char *text = context->options->arguments[0];

    if (!options_flag(context->options, "hash")) {
        *hash = typed_text_hash(text, strlen(text));
        return STATUS_OK;
    }
    return hex_data_read_exactly(hash->bytes, HASH32_SIZE, text) == STATUS_OK
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "a hash is 0x and 64 hex digits");
}

static int run_sign(struct command_context *context)
{
    struct signer *signer = NULL;
    struct signature signature;
    struct hash32 hash;
    struct error error;
    uint8_t bytes[SIGNATURE_SIZE];
    char text[2 * SIGNATURE_SIZE + 3];
    char address[ADDRESS_TEXT_SIZE];
    enum status status;

    error_init(&error);
    TRY_OUT(hash_of_text(&hash, context, &error));
    TRY_OUT(chain_unlock(&signer, context, &error));
    TRY_OUT(signer_sign(signer, &signature, &hash, &error));
out:
    if (status != STATUS_OK) {
        signer_free(signer);
        return command_fail(context, &error);
    }
    address_print(address, signer_address(signer));
    signer_free(signer);
    signature_to_bytes(bytes, &signature);
    hex_write(text, bytes, sizeof(bytes), true);
    if (context->json) {
        return command_emit(context,
                            json_pack("{s:s, s:s}", "address", address, "signature", text));
    }
    (void)fprintf(context->out, "%s\n", text);
    return COMMAND_OK;
}

/* ---- the table ---------------------------------------------------------------- */

#define OPTIONS(specs) .options = (specs), .option_count = sizeof(specs) / sizeof((specs)[0])

static const struct command commands[] = {
    {.name = "new",
     .summary = "make a key",
     .description = "The key is sealed under a passphrase in a file that other wallets open too. "
                    "Keep a copy of the file: without it, or without the passphrase, what the key "
                    "owns is lost.",
     .example = "lockstep wallet new",
     OPTIONS(new_options),
     .run = run_new},
    {.name = "import",
     .summary = "take in a key of another wallet",
     .arguments = "FILE",
     .description = "FILE is a key file of version 3 or holds 64 hex digits. The key is sealed "
                    "again under the same passphrase; FILE stays as it is.",
     .example = "lockstep wallet import keystore/UTC--2026-01-01T00-00-00.0Z--0123abcd",
     OPTIONS(import_options),
     .run = run_import},
    {.name = "list",
     .summary = "show the keys",
     .example = "lockstep wallet list --json",
     OPTIONS(list_options),
     .run = run_list},
    {.name = "address",
     .summary = "show the address of one key",
     .arguments = "[KEY]",
     .example = "lockstep wallet address",
     OPTIONS(list_options),
     .run = run_address},
    {.name = "sign",
     .summary = "sign a text, as wallets do (EIP-191), or a hash",
     .arguments = "TEXT",
     .example = "lockstep wallet sign 'this address is mine'",
     OPTIONS(sign_options),
     .run = run_sign},
};

const struct command_group wallet_commands = {
    .name = "wallet",
    .summary = "keys",
    .commands = commands,
    .command_count = sizeof(commands) / sizeof(commands[0]),
    .checks = chain_doctor_checks,
    .check_count = CHAIN_DOCTOR_CHECK_COUNT,
};
