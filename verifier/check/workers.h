/*
 * workers.h - checks in child processes, so that no hostile job can take the node down.
 *
 * A child is this program, started with one hidden argument. It gets its request through a pipe,
 * limits its own memory, processor time and files before it reads a stranger's byte, and gives back
 * one result. A child that dies, takes too long or sends anything else is killed, and its result is
 * CANNOT_TELL. Children die with the node.
 */
#ifndef VERIFIER_CHECK_WORKERS_H
#define VERIFIER_CHECK_WORKERS_H

#include "verifier/check/check.h"

#define WORKERS_MAX 256

/*
 * What makes checks, as the node sees it; the simulation has its own. All calls return at once.
 */
struct check_port {
    void *context;
    /* number: the caller's name for this check. Copies request. */
    enum status (*start)(void *context, uint64_t number, const struct check_request *request,
                         struct error *error);
    /* Takes the result of one that has ended; STATUS_NOT_FOUND: none has. */
    enum status (*take)(void *context, uint64_t *number, struct check_result *result,
                        struct error *error);
};

struct workers;

/*
 * time_max_s: of one check, from start to end. launch NULL: a child is this program. Else it is the
 * words between which blanks stand, such as "srun lockstep": a program that starts ours, here or on
 * another machine that sees the same folders, with its standard input and output. One that ends
 * without an answer was lost with its machine, and its check is started again, twice at most.
 */
MUST_CHECK enum status workers_open(struct workers **workers, uint32_t count_max,
                                    uint32_t time_max_s, const char *launch, struct error *error);
/* Kills the children that still run. NULL is fine. */
void workers_close(struct workers *workers);

struct check_port workers_port(struct workers *workers);

/* Descriptors to wait on for an answer; returns how many of count_max were written. */
uint32_t workers_descriptors(const struct workers *workers, int *descriptors, uint32_t count_max);

/* ---- the child ---- */

/* Was this process started as a worker? Then main() returns workers_serve(). visitor: of steps that
 * are disputed; NULL: there are none. */
bool workers_asked(int argc, char *const *argv);
int workers_serve(char *const *argv, const struct check_visitor *visitor);

#endif /* VERIFIER_CHECK_WORKERS_H */
