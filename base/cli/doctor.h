/*
 * doctor.h - "lockstep doctor": runs the checks that every room contributes. The checks that
 * belong to no room (processor, memory, libraries, CUDA) are here.
 */
#ifndef BASE_CLI_DOCTOR_H
#define BASE_CLI_DOCTOR_H

#include "base/cli/command.h"

#define DOCTOR_CHECK_COUNT 6

extern const struct doctor_check doctor_checks[DOCTOR_CHECK_COUNT];

int doctor_run(struct command_context *context);

#endif /* BASE_CLI_DOCTOR_H */
