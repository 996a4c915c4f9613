/* audit_lineage.h - `lockstep audit --lineage`: the pedigree of a model. */
#ifndef VERIFIER_COMMANDS_AUDIT_LINEAGE_H
#define VERIFIER_COMMANDS_AUDIT_LINEAGE_H

#include "base/cli/command.h"

#define AUDIT_LINEAGE_OPTIONS                                                                      \
    {.name = "lineage",                                                                            \
     .heading = "lineage",                                                                         \
     .often = true,                                                                                \
     .kind = OPTION_FLAG,                                                                          \
     .help = "the arguments are the parts of one pedigree: base, packed rows, bundles, exported "  \
             "models, receipts; say of each link whether its bytes hold, and what is taken on "    \
             "trust",                                                                              \
     .command_line_only = true},                                                                   \
        {.name = "sources",                                                                        \
         .heading = "data",                                                                        \
         .kind = OPTION_TEXT,                                                                      \
         .value = "FOLDER",                                                                        \
         .help = "with --lineage: where the sources of the rows are, by the last part of their "   \
                 "names (default: where the manifest says)",                                       \
         .command_line_only = true},                                                               \
        {.name = "tokenizer",                                                                      \
         .heading = "data",                                                                        \
         .kind = OPTION_TEXT,                                                                      \
         .value = "FOLDER",                                                                        \
         .help = "with --lineage: the tokenizer's folder (default: where the manifest says)",      \
         .command_line_only = true},                                                               \
        {.name = "attest",                                                                         \
         .heading = "lineage",                                                                     \
         .kind = OPTION_TEXT,                                                                      \
         .value = "FILE",                                                                          \
         .help = "with --lineage: write a proven lineage as an in-toto statement in a DSSE "       \
                 "envelope, signed by --attest-key, by --sign, or by both",                        \
         .command_line_only = true},                                                               \
    {                                                                                              \
        .name = "attest-key", .heading = "lineage", .kind = OPTION_TEXT, .value = "FILE",          \
        .help = "a private key of P-256 in PEM, whose signature common tools check",               \
        .command_line_only = true                                                                  \
    }

/* An option that is given and needs --lineage; NULL: none. */
const char *audit_lineage_stray(const struct options *options);

/* The whole command. Returns 0: proven; 1: refuted; 2: not all could be told. */
int audit_lineage(struct command_context *context);

#endif /* VERIFIER_COMMANDS_AUDIT_LINEAGE_H */
