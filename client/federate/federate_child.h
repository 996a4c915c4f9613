/*
 * federate_child.h - this program again, as a child that does one command of a federation: trains,
 * opens, collects, fetches, serves.
 *
 * A child dies with its parent: each of these commands goes on where it stopped. It has our
 * environment and our stderr; its answer is JSON.
 */
#ifndef CLIENT_FEDERATE_FEDERATE_CHILD_H
#define CLIENT_FEDERATE_FEDERATE_CHILD_H

#include <jansson.h>
#include <sys/types.h>

#include "base/cli/child_words.h"
#include "base/io/stop.h"

struct federate_child {
    pid_t process; /* 0: none */
    int output;    /* what it says on stdout */
};

MUST_CHECK enum status federate_child_start(struct federate_child *child,
                                            const struct child_words *words, struct error *error);
/* What it has said so far, as JSON of its first line; NULL: nothing whole yet. The caller's. */
json_t *federate_child_said(const struct federate_child *child);
/* Has it ended? *code: as of a command. */
bool federate_child_ended(struct federate_child *child, int *code);
void federate_child_stop(struct federate_child *child); /* none is allowed */

/* Runs one to its end. *answer: what it said, or NULL; the caller's. STATUS_STOPPED: so were we. A
 * failure of the child is none of ours: look at *code, and federate_child_why(). */
MUST_CHECK enum status federate_child_run(json_t **answer, int *code,
                                          const struct child_words *words, struct stop *stop,
                                          struct error *error);
/* Did it end without a word of its own: killed, or broken? */
bool federate_child_died(const json_t *answer, int code);
/* Why a child failed, as an error of ours; what: which one. */
enum status federate_child_why(const json_t *answer, int code, const char *what,
                               struct error *error);

#endif /* CLIENT_FEDERATE_FEDERATE_CHILD_H */
