/*
 * views.h - what the two readers of events make of a game: job records in memory, and a node's
 * store. A difference between them, or to the embedded ledger itself, fails the test.
 */
#ifndef TESTS_SUPPORT_CHAIN_VIEWS_H
#define TESTS_SUPPORT_CHAIN_VIEWS_H

#include "chain/job/board.h"
#include "chain/local/local_store.h"
#include "verifier/store/store.h"

struct views {
    struct board board;
    struct store store;
    struct address own; /* of the store's node */
    uint64_t read;
    uint64_t compared; /* values of jobs, segments, places and claims */
};

void views_open(struct views *views, const char *path, const struct address *own);
void views_close(struct views *views);

/* Both readers take the event, and then say the same of its job. */
void views_take(struct views *views, const struct game_event *event, uint64_t height,
                uint64_t time_s);

/* Between two moves: both say what the ledger keeps of a job. */
void views_compare(struct views *views, struct local_store *ledger, const struct hash32 *job);

#endif /* TESTS_SUPPORT_CHAIN_VIEWS_H */
