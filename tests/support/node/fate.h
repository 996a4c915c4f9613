/*
 * fate.h - when a simulated process dies: at some call to the world outside it, before or after
 * that call has done what it does.
 *
 * Every call that a node makes (to its disk, its ledger, its children) asks here first. Once the
 * process is dead each of them fails and does nothing, so all that the node's code still does
 * before it returns leaves no trace: it is as if it had stopped at that very call.
 */
#ifndef TESTS_SUPPORT_NODE_FATE_H
#define TESTS_SUPPORT_NODE_FATE_H

#include <stdbool.h>
#include <stdint.h>

struct fate {
    bool dead;
    bool last_counts; /* the call that is the last one still does what it does */
    uint64_t left;    /* calls until it dies; 0: it does not */
};

enum fate_says {
    FATE_LIVES, /* do it */
    FATE_LAST,  /* do it, then fail */
    FATE_DEAD,  /* fail */
};

enum fate_says fate_ask(struct fate *fate);

#endif /* TESTS_SUPPORT_NODE_FATE_H */
