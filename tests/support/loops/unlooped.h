/*
 * unlooped.h - a step with each turn of its loops apart, and the items of a trace counted one by
 * one: what repeat.h says in closed form.
 */
#ifndef TESTS_SUPPORT_LOOPS_UNLOOPED_H
#define TESTS_SUPPORT_LOOPS_UNLOOPED_H

#include "engine/tape/tape.h"

struct unlooped {
    struct tape *expanded;   /* NULL: the tape has no loop */
    const struct tape *tape; /* without loops */
    uint32_t *places; /* per tensor: its item, or its place among the data, constants or inputs */
};

/* False: no memory, or too many operations. */
bool unlooped_open(struct unlooped *unlooped, const struct tape *tape);
void unlooped_close(struct unlooped *unlooped);

/* Which operation of the tape with loops an operation is, in which turn. */
struct op_turn unlooped_maker(const struct unlooped *unlooped, uint32_t op);

#endif /* TESTS_SUPPORT_LOOPS_UNLOOPED_H */
