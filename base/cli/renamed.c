/* renamed.c - see renamed.h. */
#include "base/cli/renamed.h"

#include <string.h>

const struct renamed renamed_options[RENAMED_OPTION_COUNT] = {
    {"at", "serve"},
    {"bind", "serve"},
    {"bond-fees-most", "bond-fees-max"},
    {"clock-least", "clock-min"},
    {"every", "keep-every"},
    {"evidence", "verify-evidence"},
    {"evidence-dir", "evidence-folder"},
    {"fee-least", "fee-min"},
    {"fetch-most", "fetch-max"},
    {"from", "sources"},
    {"gas-ceiling", "gas-price-max"},
    {"held-most", "jobs-max"},
    {"hour-least", "hour-min"},
    {"interval", "poll"},
    {"keep", "keeper-of"}, /* before the next: "job serve" has both */
    {"keep", "folder"},
    {"keep-bytes", "keep-max"},
    {"keep-most", "keep-max"},
    {"key", "bundle-key"},
    {"lock-job-most", "lock-job-max"},
    {"lock-most", "lock-max"},
    {"lock-party-most", "lock-party-max"},
    {"lock-time-most", "lock-time-max"},
    {"most", "keep-max"},
    {"passphrase-file", "bundle-passphrase-file"},
    {"port", "serve"},
    {"reveal-period-least", "reveal-period-min"},
    {"reward-least", "reward-min"},
    {"rounds", "self-test-rounds"},
    {"seal-period-least", "seal-period-min"},
    {"seed", "self-test-seed"},
    {"segment", "segment-steps"},
    {"segment-period-most", "segment-period-max"},
    {"solver-cost", "segment-cost"},
    {"stake-most", "stake-max"},
    {"stake-rewards-most", "stake-rewards-max"},
    {"stakes-most", "stakes-max"},
    {"state", "checkpoint"},
    {"status", "page"},
    {"tape", "program"},
    {"to", "out"},
    {"wallet-passphrase-file", "passphrase-file"},
};

/* A word of arguments tells "prover status", a node's, from "prover status BUNDLE". */
static const struct {
    const char *group;
    const char *name;
    bool with_word;
    const char *now;
} commands[] = {
    {"job", "cancel", false, "job close"},
    {"prover", "jobs", false, "prover status"},
    {"prover", "status", true, "bundle status"},
    {"verifier", "run", false, "verifier node"},
};

const char *renamed_option(const char *was, size_t was_length,
                           bool (*knows)(const void *context, const char *name),
                           const void *context)
{
    for (size_t i = 0; i < RENAMED_OPTION_COUNT; i++) {
        const struct renamed *row = &renamed_options[i];

        if (strlen(row->was) == was_length && memcmp(row->was, was, was_length) == 0 &&
            knows(context, row->now)) {
            return row->now;
        }
    }
    return NULL;
}

const char *renamed_command(const char *group, const char *name, const char *word)
{
    const bool has_word = word != NULL && word[0] != '-';

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (group != NULL && strcmp(commands[i].group, group) == 0 &&
            strcmp(commands[i].name, name) == 0 && (has_word || !commands[i].with_word)) {
            return commands[i].now;
        }
    }
    return NULL;
}
