/*
 * confined_wire.h - what a command and its child that runs a stranger's program say to each other,
 * over one socket.
 *
 * Both are this program on this machine, so numbers go in its own layout. What the child says is
 * read as if a stranger said it.
 */
#ifndef PROVER_CONFINED_CONFINED_WIRE_H
#define PROVER_CONFINED_CONFINED_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/plan/backend.h"
#include "proofs/bundle/bundle.h"
#include "prover/ranks/ranks_place.h"

/* The child's one argument: what it is for. */
#define CONFINED_TRAINER "--lockstep-trainer"
#define CONFINED_TRACER  "--lockstep-tracer"

/* What a child works on, and how. */
struct confined_plan {
    char folder[FILE_PATH_MAX]; /* the bundle's */
    bool follows;               /* another rank: it makes no file there, and writes to some */
    struct encryption_key key;  /* of an encrypted one */
    bool has_key;
    struct machine_options machine; /* without its pointers */
    bool on_cuda;
    uint32_t data_count; /* paths of FILE_PATH_MAX bytes each follow the plan */

    /* Of a trainer; nobody else writes to the bundle then. */
    bool measures;     /* the time of a step, before the first one */
    bool keeps_unpaid; /* the checkpoints of segments that are not final stay */
    uint64_t keep;     /* as in struct train_options, like the next ones */
    uint64_t every;
    bool falsifies;
    uint64_t falsify;
    uint32_t ranks;       /* that train together, this one the first; 0 or 1: it trains alone */
    uint64_t cross_check; /* as ranks_machine.h has it */
    enum ranks_mpi mpi;   /* through which they meet, or over TCP */
    int listener;         /* where the others call; the child has it as SPAWN_FURTHER */

    /* Of a tracer. */
    uint64_t step;
};

enum confined_kind {
    /* A trainer says: */
    CONFINED_READY = 1, /* numbers: nanoseconds of a step, or 0 */
    CONFINED_STEP,      /* numbers, root: as confined_wire_put_step() has them */
    CONFINED_SEGMENT,   /* one is on disk; it waits for CONFINED_GO */
    CONFINED_RETRY,     /* numbers: the step; text: why */
    CONFINED_DAMAGED,   /* numbers: checkpoints that were passed over; text: why the newest was */
    CONFINED_ALONE,     /* text: why rank 0 alone writes the checkpoints */
    CONFINED_DONE,      /* numbers: first, steps, retries, diverged; status, text and advice */
    /* The command says to it: */
    CONFINED_SIGN, /* numbers: the segment; the bytes of its signature follow */
    CONFINED_GO,   /* numbers: how many segments are final */
    CONFINED_STOP,
    /* A tracer says: */
    CONFINED_TRACED, /* numbers: steps that were run; root: of the trace. Or CONFINED_DONE */
    CONFINED_REPLY,  /* status, text and advice; bytes follow */
    /* The command says to it: */
    CONFINED_ASK,        /* the bytes of a trace query follow */
    CONFINED_ASK_LEDGER, /* those of the event QUERIED */
};

#define CONFINED_NUMBERS 8

struct confined_message {
    uint32_t kind;
    uint32_t status;
    uint64_t numbers[CONFINED_NUMBERS];
    struct digest root;
    char text[ERROR_TEXT_MAX];
    char advice[ERROR_ADVICE_MAX];
    uint32_t size; /* of the bytes that follow */
};

/* Whole or not at all: false where the other end is gone. */
bool confined_wire_write(int socket, const void *bytes, size_t size);
bool confined_wire_read(int socket, void *bytes, size_t size);

/* A message and the bytes that follow it. */
bool confined_wire_say(int socket, const struct confined_message *message, const void *bytes);

void confined_wire_put_step(struct confined_message *message, const struct bundle_step *step);
void confined_wire_get_step(struct bundle_step *step, const struct confined_message *message);

void confined_wire_put_error(struct confined_message *message, const struct error *error);
/* A status that is none is STATUS_IO; the texts end. */
void confined_wire_get_error(struct error *error, const struct confined_message *message);

#endif /* PROVER_CONFINED_CONFINED_WIRE_H */
