/*
 * ranks_link.h - what ranks send each other, as a table; who moves the bytes stands elsewhere.
 *
 * A transfer is one message from one rank to another, known by the two ranks and its tag. Both
 * sides know its size before: nothing is asked for that the other does not send.
 */
#ifndef ENGINE_RANKS_RANKS_LINK_H
#define ENGINE_RANKS_RANKS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ranks_transfer {
    uint32_t peer; /* the other rank */
    uint32_t tag;
    bool sends;
    bool idle;   /* the peer may be at other work for long before it sends this */
    void *bytes; /* borrowed; not written where it is sent */
    size_t size; /* 0: nothing moves */
};

struct ranks_link {
    uint32_t rank;
    uint32_t rank_count;
    /* Makes all transfers, several under way, in any order; returns when all are made. */
    enum status (*exchange)(void *context, const struct ranks_transfer *transfers, uint32_t count,
                            struct error *error);
    void *context;
};

#endif /* ENGINE_RANKS_RANKS_LINK_H */
