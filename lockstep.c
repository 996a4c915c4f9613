/*
 * lockstep.c - the front door: the tables of commands that the rooms contribute, and nothing else.
 */
#include "base/command.h"
#include "prover/commands.h"

static const struct command_group *const groups[] = {
    &base_commands,   /* help, doctor */
    &job_commands,    /* job new, show */
    &prover_commands, /* prover run, resume, status */
};

int main(int argc, char **argv)
{
    return command_main(groups, sizeof(groups) / sizeof(groups[0]), argc, argv);
}
