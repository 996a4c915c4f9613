/*
 * plan_commands.h - `lockstep verifier plan`.
 */
#ifndef VERIFIER_COMMANDS_PLAN_COMMANDS_H
#define VERIFIER_COMMANDS_PLAN_COMMANDS_H

#include "base/cli/command.h"
#include "proofs/run/run.h"

/* The machine that replays: of `audit` too. */
#define PLAN_MACHINE_OPTIONS                                                                       \
    RUN_DEVICE_OPTION("what replays: " RUN_DEVICE_NAMES), RUN_MACHINE_OPTIONS,                     \
    {                                                                                              \
        .name = "memory-max", .heading = "machine", .kind = OPTION_SIZE, .value = "BYTES",         \
        .help = "refuse a job that needs more memory"                                              \
    }

#define PLAN_LAUNCH_OPTION                                                                         \
    {                                                                                              \
        .name = "launch", .heading = "machine", .kind = OPTION_TEXT, .value = "WORDS",             \
        .help = "what starts the processes, such as \"srun -n 1 lockstep\" or \"ssh HOST "         \
                "lockstep\": on machines that see the same folders; one that is lost is started "  \
                "again, twice at most (default: this program)"                                     \
    }
/* What computes elsewhere is named as it is there: this machine cannot choose it. */
MUST_CHECK enum status plan_launch_device(const char *device, struct error *error);

#define PLAN_COMMAND_OPTIONS 27
extern const struct option_spec plan_command_options[PLAN_COMMAND_OPTIONS];

int plan_command(struct command_context *context);

#endif /* VERIFIER_COMMANDS_PLAN_COMMANDS_H */
