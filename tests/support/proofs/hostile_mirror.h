/*
 * hostile_mirror.h - what a solver publishes of a bundle, and a program that serves a folder truly,
 * or in the way that its URL says (tests/verifier/check/hostile_mirror.py). What fails ends the
 * test.
 */
#ifndef TESTS_SUPPORT_PROOFS_HOSTILE_MIRROR_H
#define TESTS_SUPPORT_PROOFS_HOSTILE_MIRROR_H

#include <sys/types.h>

#include "verifier/check/check.h"

struct hostile_mirror {
    pid_t pid;
    int input; /* it ends with this */
    char url[64];
};

void hostile_mirror_start(struct hostile_mirror *mirror, const char *folder);
void hostile_mirror_stop(struct hostile_mirror *mirror);

/* Writes job and checkpoints below folder/v1/jobs, and what the ledger says of the segments;
 * returns the job's id. */
struct digest hostile_mirror_publish(struct check_segment *segments, const char *folder,
                                     const char *bundle);

void hostile_mirror_copy(const char *to, const char *from);

#endif /* TESTS_SUPPORT_PROOFS_HOSTILE_MIRROR_H */
