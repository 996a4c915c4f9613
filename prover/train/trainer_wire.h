/*
 * trainer_wire.h - what a command and its child that trains say to each other, over one socket.
 *
 * Both are this program on this machine, so numbers go in its own layout. The child runs a
 * stranger's program: what it says is read as if a stranger said it.
 */
#ifndef PROVER_TRAIN_TRAINER_WIRE_H
#define PROVER_TRAIN_TRAINER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/plan/backend.h"
#include "proofs/bundle/bundle.h"

#define TRAINER_WORD "--lockstep-trainer" /* the child's one argument */

/* How a run is to be trained. */
struct trainer_plan {
    char folder[FILE_PATH_MAX]; /* the bundle's; nobody else writes to it then */
    struct encryption_key key;  /* of an encrypted one */
    bool has_key;
    struct machine_options machine; /* without its pointers */
    bool on_cuda;
    bool measures;     /* the time of a step, before the first one */
    bool keeps_unpaid; /* the checkpoints of segments that are not final stay */
    uint64_t keep;     /* as in struct train_options, like the next ones */
    uint64_t every;
    bool falsifies;
    uint64_t falsify;
    uint32_t data_count; /* paths of FILE_PATH_MAX bytes each follow the plan */
};

enum trainer_kind {
    /* The child says: */
    TRAINER_READY = 1, /* numbers: nanoseconds of a step, or 0 */
    TRAINER_STEP,      /* numbers, root: as trainer_wire_put_step() has them */
    TRAINER_SEGMENT,   /* one is on disk; it waits for TRAINER_GO */
    TRAINER_RETRY,     /* numbers: the step; text: why */
    TRAINER_DAMAGED,   /* numbers: checkpoints that were passed over; text: why the newest was */
    TRAINER_DONE,      /* numbers: first, steps, retries, diverged; status, text and advice */
    /* The command says: */
    TRAINER_SIGN, /* numbers: segment, size; text: the bytes of its signature */
    TRAINER_GO,   /* numbers: how many segments are final */
    TRAINER_STOP,
};

#define TRAINER_NUMBERS 8

struct trainer_message {
    uint32_t kind;
    uint32_t status;
    uint64_t numbers[TRAINER_NUMBERS];
    struct digest root;
    char text[ERROR_TEXT_MAX];
    char advice[ERROR_ADVICE_MAX];
};

/* Whole or not at all: false where the other end is gone. */
bool trainer_wire_write(int socket, const void *bytes, size_t size);
bool trainer_wire_read(int socket, void *bytes, size_t size);

void trainer_wire_put_step(struct trainer_message *message, const struct bundle_step *step);
void trainer_wire_get_step(struct bundle_step *step, const struct trainer_message *message);

void trainer_wire_put_error(struct trainer_message *message, const struct error *error);
/* A status that is none is STATUS_IO; the texts end. */
void trainer_wire_get_error(struct error *error, const struct trainer_message *message);

#endif /* PROVER_TRAIN_TRAINER_WIRE_H */
