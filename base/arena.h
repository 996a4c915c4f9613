/*
 * arena.h - memory that is given back all at once: one arena per request, reset at its end.
 *
 * A function whose first argument is a struct arena * returns what lives there. The size that the
 * arena may reach is named when it is made, so a stranger's request cannot take the machine.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/status.h"

struct arena_block; /* inside arena.c */

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t size;                /* of all blocks */
    size_t size_max;
};

void arena_init(struct arena *arena, size_t size_max);

/* Gives everything back; the arena can be used again. Accepts a zero-filled arena. */
void arena_release(struct arena *arena);

/*
 * count elements of element_size bytes, zero-filled, aligned for any type. NULL when the maximum
 * or the memory is reached; the arena stays usable.
 */
void *arena_take(struct arena *arena, size_t count, size_t element_size)
    __attribute__((warn_unused_result));

/* A copy of text in the arena, or NULL. */
char *arena_text(struct arena *arena, const char *text) __attribute__((warn_unused_result));

#endif /* BASE_ARENA_H */
