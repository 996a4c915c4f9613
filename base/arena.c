/* arena.c - see arena.h. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK_SIZE 16384

struct arena_block {
    struct arena_block *older;
    size_t used;
    size_t size;
    alignas(max_align_t) unsigned char bytes[];
};

void arena_init(struct arena *arena, size_t size_max)
{
    arena->blocks = NULL;
    arena->size = 0;
    arena->size_max = size_max;
}

void arena_release(struct arena *arena)
{
    while (arena->blocks != NULL) {
        struct arena_block *older = arena->blocks->older;

        free(arena->blocks);
        arena->blocks = older;
    }
    arena->size = 0;
}

static struct arena_block *add_block(struct arena *arena, size_t size)
{
    struct arena_block *block;

    if (size > arena->size_max - arena->size) {
        return NULL;
    }
    if (size < ARENA_BLOCK_SIZE && ARENA_BLOCK_SIZE <= arena->size_max - arena->size) {
        size = ARENA_BLOCK_SIZE;
    }
    block = calloc(1, sizeof(*block) + size);
    if (block == NULL) {
        return NULL;
    }
    block->size = size;
    block->older = arena->blocks;
    arena->blocks = block;
    arena->size += size;
    return block;
}

void *arena_take(struct arena *arena, size_t count, size_t element_size)
{
    const size_t step = alignof(max_align_t);
    struct arena_block *block = arena->blocks;
    size_t size;
    void *taken;

    if (element_size != 0 && count > (SIZE_MAX / 2 - step) / element_size) {
        return NULL;
    }
    size = (count * element_size + step - 1) / step * step;
    if (size == 0) {
        size = step; /* every piece has an address of its own */
    }
    if (block == NULL || size > block->size - block->used) {
        block = add_block(arena, size);
    }
    if (block == NULL) {
        return NULL;
    }
    taken = block->bytes + block->used;
    block->used += size;
    return taken;
}

char *arena_text(struct arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = arena_take(arena, size, 1);

    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}
