/*
 * commands.h - the chain's tables of commands, for the front door, and the options that every
 * command with a key or a ledger has.
 */
#ifndef CHAIN_COMMANDS_COMMANDS_H
#define CHAIN_COMMANDS_COMMANDS_H

#include "base/cli/child_words.h"
#include "base/cli/command.h"
#include "base/http/http_reach.h"
#include "chain/game/ledger.h"
#include "chain/keys/wallet.h"

extern const struct command_group wallet_commands;
extern const struct command_group ledger_commands;

#define CHAIN_KEY_OPTIONS                                                                          \
    {.name = "wallet",                                                                             \
     .heading = "account",                                                                         \
     .kind = OPTION_TEXT,                                                                          \
     .value = "FOLDER",                                                                            \
     .help = "folder of the key files (default: wallet below the data folder)"},                   \
    {                                                                                              \
        .name = "passphrase-file", .heading = "account", .often = true, .kind = OPTION_TEXT,       \
        .value = "FILE",                                                                           \
        .help = "read the passphrase from the first line of a file; else from LOCKSTEP_PASSPHRASE" \
                ", else it is asked for"                                                           \
    }

#define CHAIN_ACCOUNT_OPTION                                                                       \
    {                                                                                              \
        .name = "account", .heading = "account", .often = true, .kind = OPTION_TEXT,               \
        .value = "ADDRESS",                                                                        \
        .help = "the key to use: an address, or a key file (default: the only one)"                \
    }

#define CHAIN_POLL_OPTION(text)                                                                    \
    {                                                                                              \
        .name = "poll", .heading = "ledger", .kind = OPTION_DURATION, .value = "TIME",             \
        .fallback = "3s", .minimum = 1, .maximum = 3600, .help = (text)                            \
    }

#define CHAIN_LEDGER_OPTIONS                                                                       \
    {.name = "ledger",                                                                             \
     .heading = "ledger",                                                                          \
     .often = true,                                                                                \
     .kind = OPTION_TEXT,                                                                          \
     .value = "URL",                                                                               \
     .help = "local:PATH, or the endpoints of a chain with commas between"},                       \
        {.name = "registry",                                                                       \
         .heading = "ledger",                                                                      \
         .often = true,                                                                            \
         .kind = OPTION_TEXT,                                                                      \
         .value = "ADDRESS",                                                                       \
         .help = "the registry contract, on a chain"},                                             \
        {.name = "first-block",                                                                    \
         .heading = "ledger",                                                                      \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .fallback = "0",                                                                          \
         .help = "the block of the registry's deployment: nothing before it is read"},             \
        {.name = "ledger-state",                                                                   \
         .heading = "ledger",                                                                      \
         .kind = OPTION_TEXT,                                                                      \
         .value = "FOLDER",                                                                        \
         .help = "outbox and events of a chain (default: ledger below the state folder)"},         \
        {.name = "depth",                                                                          \
         .heading = "ledger",                                                                      \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .fallback = "12",                                                                         \
         .maximum = 100000,                                                                        \
         .help = "blocks on top until something on a chain is final"},                             \
    {                                                                                              \
        .name = "gas-price-max", .heading = "ledger", .kind = OPTION_INTEGER, .value = "GWEI",     \
        .fallback = "200", .maximum = 1000000000, .help = "the most to pay for a unit of gas"      \
    }

#define CHAIN_LEDGER_OPTION_COUNT 6

/* For commands that fetch from addresses which strangers announce on the ledger. */
#define CHAIN_CONTACTS_OPTION                                                                      \
    {                                                                                              \
        .name = "private-contacts", .heading = "fetching", .kind = OPTION_FLAG,                    \
        .help = "fetch from announced addresses of this machine and of private networks too: "     \
                "for a network of your own"                                                        \
    }

/* --contact; NULL: there is none. STATUS_USAGE: nobody would call it. */
MUST_CHECK enum status chain_contact(const char **contact, const struct options *options,
                                     struct error *error);

/* What such an address may lead to: an embedded ledger lives on one machine, and so do all who
 * write on it. */
enum http_reach chain_contact_reach(const struct options *options, const struct ledger *ledger);

/* The folder of --wallet, or the default. */
MUST_CHECK enum status chain_wallet_folder(char path[FILE_PATH_MAX],
                                           const struct command_context *context,
                                           struct error *error);

/* The key of --account, unlocked. Memory dumps of the process are off from here on. */
MUST_CHECK enum status chain_unlock(struct signer **signer, const struct command_context *context,
                                    struct error *error);

/* The address of --account. The passphrase is asked for only where the key file names no
 * address. */
MUST_CHECK enum status chain_account_address(struct address *account,
                                             const struct command_context *context,
                                             struct error *error);

/* As chain_unlock, with another option for the passphrase, for commands that have two; and with a
 * key that is used where --account names none (NULL: the only one). */
MUST_CHECK enum status chain_unlock_by(struct signer **signer,
                                       const struct command_context *context,
                                       const char *passphrase_option, const char *account,
                                       struct error *error);

/* Where a ledger is, as somebody remembers it. */
struct chain_ledger_place {
    const char *url;
    const char *registry; /* "" or NULL: none */
    uint64_t first_height;
};

/* As chain_ledger_options, at the place that is remembered where the options name no ledger. */
MUST_CHECK enum status
chain_ledger_options_at(struct ledger_options *options, char state_dir[FILE_PATH_MAX],
                        const struct command_context *context, const struct signer *signer,
                        const struct chain_ledger_place *place, struct error *error);

/* Fills options from CHAIN_LEDGER_OPTIONS; state_dir is filled and borrowed. signer may be NULL. */
MUST_CHECK enum status chain_ledger_options(struct ledger_options *options,
                                            char state_dir[FILE_PATH_MAX],
                                            const struct command_context *context,
                                            const struct signer *signer, struct error *error);

/* An amount such as "0.5eth"; *amount stays where the option is unset. */
MUST_CHECK enum status chain_amount(wei *amount, const struct options *options, const char *name,
                                    struct error *error);

/* The ledger as it was named to us, and --config, for a child. */
void chain_child_ledger(struct child_words *words, const struct options *given);

#endif /* CHAIN_COMMANDS_COMMANDS_H */
