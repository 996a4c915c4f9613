/*
 * confined.h - a child that runs a stranger's program, so that it never runs beside the owner's
 * key.
 *
 * The child is this program again. It gets the bundle's path, its data and a machine, and no key of
 * an account; on the CPU the kernel keeps it from sockets, programs and all other files
 * (base/sandbox/sandbox.h). It ends with the command. confined_wire.h says what the two tell each
 * other, confined_child.h what the child does first; trainer.h and tracer.h are what it is for.
 */
#ifndef PROVER_CONFINED_CONFINED_H
#define PROVER_CONFINED_CONFINED_H

#include <sys/types.h>

#include "prover/confined/confined_wire.h"

struct confined {
    pid_t process;    /* 0: it was waited for */
    int socket;       /* -1: none */
    const char *does; /* "trains": for sentences */
};

/* word: what it is for. data: of each data tensor; NULL: not known. After a failure there is none,
 * and confined_end() is fine. */
MUST_CHECK enum status confined_start(struct confined *child, const char *word, const char *does,
                                      const struct confined_plan *plan, const char *const *data,
                                      uint32_t data_count, struct error *error);

/* Hangs up, waits for its end, and kills one that hangs. */
void confined_end(struct confined *child);

/* A child that is gone is found by the next read. */
void confined_tell(const struct confined *child, const struct confined_message *message,
                   const void *bytes);

/* The child's next message, without the bytes that follow. A read that fails waits for the child
 * and says how it ended: STATUS_IO. */
MUST_CHECK enum status confined_read(struct confined *child, struct confined_message *message,
                                     struct error *error);
MUST_CHECK enum status confined_read_bytes(struct confined *child, void *bytes, size_t size,
                                           struct error *error);

/* A message that no honest child sends at this place. */
MUST_CHECK enum status confined_nonsense(const struct confined *child, struct error *error);

#endif /* PROVER_CONFINED_CONFINED_H */
