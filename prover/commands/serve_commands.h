/*
 * serve_commands.h - `lockstep prover serve` and `publish`, for the solver's table.
 */
#ifndef PROVER_COMMANDS_SERVE_COMMANDS_H
#define PROVER_COMMANDS_SERVE_COMMANDS_H

#include "base/cli/command.h"
#include "proofs/bundle/bundle.h"
#include "proofs/run/replay.h"

#define SERVE_COMMANDS_SERVE_OPTIONS   20
#define SERVE_COMMANDS_PUBLISH_OPTIONS 10

extern const struct option_spec serve_commands_serve_options[SERVE_COMMANDS_SERVE_OPTIONS];
extern const struct option_spec serve_commands_publish_options[SERVE_COMMANDS_PUBLISH_OPTIONS];

/* Of commands that train: a server beside them. */
#define SERVE_BESIDE_OPTION                                                                        \
    {                                                                                              \
        .name = "serve", .heading = "serving", .often = true, .kind = OPTION_TEXT,                 \
        .value = "ADDRESS:PORT",                                                                   \
        .help = "serve the bundle to verifiers meanwhile, as 'lockstep prover serve' does; "       \
                "without --contact the ledger names this place"                                    \
    }

struct serve_beside;

/*
 * Serves the bundle where the options say so, with trace replies from a machine of its own and at a
 * low priority. *beside is NULL where they do not. Borrows context and bundle.
 */
MUST_CHECK enum status serve_beside_open(struct serve_beside **beside,
                                         struct command_context *context,
                                         const struct bundle *bundle,
                                         const struct machine_options *machine,
                                         struct error *error);
void serve_beside_close(struct serve_beside *beside); /* NULL is fine */

const char *serve_beside_url(const struct serve_beside *beside);

/* False: it listens at every address of this machine, which is none that others can call. */
bool serve_beside_can_be_called(const struct serve_beside *beside);

int serve_commands_serve(struct command_context *context);
int serve_commands_publish(struct command_context *context);

#endif /* PROVER_COMMANDS_SERVE_COMMANDS_H */
