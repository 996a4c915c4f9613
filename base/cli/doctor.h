/*
 * doctor.h - "lockstep doctor": runs the checks that every room contributes. The checks that
 * belong to no room (processor, memory, disk, clock, libraries, CUDA) are here.
 */
#ifndef BASE_CLI_DOCTOR_H
#define BASE_CLI_DOCTOR_H

#include "base/cli/command.h"

#define DOCTOR_CHECK_COUNT 8

extern const struct doctor_check doctor_checks[DOCTOR_CHECK_COUNT];

/* The options of a table as a command without a command line would have them: for checks. The
 * caller releases them. */
MUST_CHECK enum status doctor_options(struct options *options,
                                      const struct command_context *context,
                                      const struct option_table *table, struct error *error);

int doctor_run(struct command_context *context);

#endif /* BASE_CLI_DOCTOR_H */
