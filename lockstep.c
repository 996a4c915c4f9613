/*
 * lockstep.c - the front door: the tables of commands that the rooms contribute, and nothing else.
 */
#include "base/command.h"

static const struct command_group *const groups[] = {
    &base_commands, /* help, doctor */
};

int main(int argc, char **argv)
{
    return command_main(groups, sizeof(groups) / sizeof(groups[0]), argc, argv);
}
