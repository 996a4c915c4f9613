/*
 * lockstep.c - main(): the tables of commands that the rooms contribute, and nothing else.
 */
#include <stdio.h>

#include "base/cli/program.h"
#include "base/host.h"
#include "base/io/spawn.h"
#include "chain/commands/commands.h"
#include "client/base/base_commands.h"
#include "client/commands.h"
#include "client/generate/generate.h"
#include "client/generate/model_commands.h"
#include "data/commands/data_commands.h"
#include "engine/cpu/isa/isa.h"
#include "prover/commands/commands.h"
#include "prover/confined/confined_child.h"
#include "prover/confined/tracer_child.h"
#include "prover/confined/trainer_child.h"
#include "verifier/check/workers.h"
#include "verifier/commands/commands.h"
#include "verifier/dispute/dispute_child.h"

static const struct command_group *const groups[] = {
    &program_commands,  /* help, doctor */
    &data_commands,     /* data pack, check, show */
    &base_commands,     /* base widen */
    &job_commands,      /* job new, show */
    &prover_commands,   /* prover run, resume, status */
    &bundle_commands,   /* bundle steps, segments, check, export, import, key */
    &trace_commands,    /* trace root, node, open, check */
    &audit_commands,    /* audit */
    &generate_commands, /* generate */
    &model_commands,    /* model root */
    &verifier_commands, /* verifier node, status, claims, verdicts */
    &watch_commands,    /* watch */
    &wallet_commands,   /* wallet new, import, list, address, sign */
    &ledger_commands,   /* ledger init, faucet, deploy, status, watch */
};

int main(int argc, char **argv)
{
    char trouble[128];

    spawn_hold_standard();
    host_wait_quietly(argv);
    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child); /* a child of a verifier's node */
    }
    if (confined_child_asked(argc, argv, CONFINED_TRAINER)) {
        return trainer_child_serve(); /* a child of 'prover run' */
    }
    if (confined_child_asked(argc, argv, CONFINED_TRACER)) {
        return tracer_child_serve(); /* a child of what answers claims or serves traces */
    }
    if (isa_trouble(trouble, sizeof(trouble))) {
        fprintf(stderr, "lockstep: %s\n", trouble);
    }
    return program_main(groups, sizeof(groups) / sizeof(groups[0]), argc, argv);
}
