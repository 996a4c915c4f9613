/*
 * trainer.h - trains in a process without a key (prover/confined/confined.h).
 *
 * The child alone writes to the bundle: what the command signs is sent to it. Either may be killed
 * at any time: the bundle is as after a crash of one process, and the command starts another child.
 */
#ifndef PROVER_CONFINED_TRAINER_H
#define PROVER_CONFINED_TRAINER_H

#include "prover/confined/confined_wire.h"
#include "prover/train/train.h"

struct trainer;

/* What the command does while it trains. */
struct trainer_watch {
    void *context;
    void (*progress)(void *context, const struct bundle_step *step);
    /* A segment is on disk: what is signed goes to trainer_sign(). A failure ends the run. */
    enum status (*segment)(void *context, struct error *error);
    uint32_t (*final)(void *context); /* how many segments are; NULL: nobody waits for any */
    void (*retrying)(void *context, uint64_t step, const char *why);
    void (*damaged)(void *context, uint64_t count, const char *why);
    void (*alone)(void *context, const char *why); /* rank 0 alone writes the checkpoints */
    struct stop *stop;                             /* open */
};

/* data: of each data tensor. Close it, also where a later call fails. */
MUST_CHECK enum status trainer_open(struct trainer **trainer, const struct confined_plan *plan,
                                    const char *const *data, uint32_t data_count,
                                    struct error *error);
void trainer_close(struct trainer *trainer); /* NULL is fine */

/* Waits until data and machine are there. *step_ns: how long a step takes, where the plan asks for
 * it; 0: not known. */
MUST_CHECK enum status trainer_ready(uint64_t *step_ns, struct trainer *trainer, struct stop *stop,
                                     struct error *error);

/* Gives it a signature to keep in the bundle. A child that is gone is found by trainer_run(). */
void trainer_sign(struct trainer *trainer, uint64_t segment, const uint8_t *signature, size_t size);

/* As train(). *died: the child was ended from outside, and another may go on. */
MUST_CHECK enum status trainer_run(struct train_result *result, bool *died, struct trainer *trainer,
                                   const struct trainer_watch *watch, struct error *error);

#endif /* PROVER_CONFINED_TRAINER_H */
