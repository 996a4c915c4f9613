/* merges.c - see merges.h. */
#include "data/token/merges.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_MAX 32 /* symbols of a word that is searched again and again */
#define NONE      UINT32_MAX

void merges_release(struct merges *merges)
{
    free(merges->slots);
    memset(merges, 0, sizeof(*merges));
}

void merges_work_release(struct merges_work *work)
{
    free(work->next);
    free(work->before);
    free(work->heap);
    memset(work, 0, sizeof(*work));
}

enum status merges_init(struct merges *merges, struct error *error, size_t count)
{
    size_t slots = 1024;

    if (count > MERGES_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "%zu merges are over the limit of %u", count,
                         MERGES_MAX);
    }
    while (slots < 2 * count) {
        slots *= 2;
    }
    merges->slots = malloc(slots * sizeof(*merges->slots));
    if (merges->slots == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for %zu merges", count);
    }
    memset(merges->slots, 0xff, slots * sizeof(*merges->slots));
    merges->slot_count = slots;
    merges->count = 0;
    return STATUS_OK;
}

/* The slot of the pair, or the empty one where it would go. */
static struct merge_slot *slot_of(const struct merges *merges, uint32_t left, uint32_t right)
{
    const size_t mask = merges->slot_count - 1;
    uint64_t hash = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (hash ^ hash >> 32) & mask;

    while (merges->slots[at].left != NONE &&
           (merges->slots[at].left != left || merges->slots[at].right != right)) {
        at = (at + 1) & mask;
    }
    return &merges->slots[at];
}

enum status merges_add(struct merges *merges, uint32_t left, uint32_t right, uint32_t product)
{
    struct merge_slot *slot = slot_of(merges, left, right);

    assert(left != NONE && 2 * (size_t)merges->count < merges->slot_count);
    if (slot->left != NONE) {
        return STATUS_BAD_FORMAT;
    }
    *slot = (struct merge_slot){left, right, merges->count++, product};
    return STATUS_OK;
}

/* ---- short words ---- */

static size_t apply_short(const struct merges *merges, uint32_t *symbols, size_t count)
{
    uint32_t ranks[SHORT_MAX];    /* of the pair that begins here; NONE: it has no rank */
    uint32_t products[SHORT_MAX]; /* and what it makes */

    for (size_t i = 0; i + 1 < count; i++) {
        const struct merge_slot *slot = slot_of(merges, symbols[i], symbols[i + 1]);

        ranks[i] = slot->rank; /* NONE in an empty slot */
        products[i] = slot->product;
    }
    while (count > 1) {
        size_t best = 0;

        for (size_t i = 1; i + 1 < count; i++) {
            best = ranks[i] < ranks[best] ? i : best;
        }
        if (ranks[best] == NONE) {
            break;
        }
        symbols[best] = products[best];
        count--;
        for (size_t i = best + 1; i < count; i++) {
            symbols[i] = symbols[i + 1];
            ranks[i] = i + 1 < count ? ranks[i + 1] : NONE;
            products[i] = i + 1 < count ? products[i + 1] : NONE;
        }
        for (size_t i = best == 0 ? 0 : best - 1; i <= best && i + 1 < count; i++) {
            const struct merge_slot *slot = slot_of(merges, symbols[i], symbols[i + 1]);

            ranks[i] = slot->rank;
            products[i] = slot->product;
        }
    }
    return count;
}

/* ---- long words ---- */

static enum status make_room(struct merges_work *work, size_t count)
{
    size_t capacity = work->capacity == 0 ? 256 : work->capacity;
    uint32_t *next;
    uint32_t *before;
    uint64_t *heap;

    while (capacity < count) {
        capacity *= 2;
    }
    if (capacity == work->capacity) {
        return STATUS_OK;
    }
    next = realloc(work->next, capacity * sizeof(*next));
    work->next = next == NULL ? work->next : next;
    before = realloc(work->before, capacity * sizeof(*before));
    work->before = before == NULL ? work->before : before;
    /* Each merge takes one pair away and asks for two at most. */
    heap = realloc(work->heap, 3 * capacity * sizeof(*heap));
    work->heap = heap == NULL ? work->heap : heap;
    if (next == NULL || before == NULL || heap == NULL) {
        return STATUS_NO_MEMORY;
    }
    work->capacity = capacity;
    return STATUS_OK;
}

static void heap_push(struct merges_work *work, uint64_t entry)
{
    size_t at = work->heap_size++;

    while (at > 0 && work->heap[(at - 1) / 2] > entry) {
        work->heap[at] = work->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    work->heap[at] = entry;
}

static uint64_t heap_pop(struct merges_work *work)
{
    uint64_t least = work->heap[0];
    uint64_t entry = work->heap[--work->heap_size];
    size_t at = 0;

    while (2 * at + 1 < work->heap_size) {
        size_t child = 2 * at + 1;

        if (child + 1 < work->heap_size && work->heap[child + 1] < work->heap[child]) {
            child++;
        }
        if (work->heap[child] >= entry) {
            break;
        }
        work->heap[at] = work->heap[child];
        at = child;
    }
    work->heap[at] = entry;
    return least;
}

static void push_pair(const struct merges *merges, struct merges_work *work,
                      const uint32_t *symbols, uint32_t at)
{
    uint32_t rank = slot_of(merges, symbols[at], symbols[work->next[at]])->rank;

    if (rank != NONE) {
        heap_push(work, (uint64_t)rank << 32 | at);
    }
}

static enum status apply_long(const struct merges *merges, struct merges_work *work,
                              uint32_t *symbols, uint32_t count, size_t *left)
{
    size_t kept = 0;

    TRY(make_room(work, count));
    work->heap_size = 0;
    for (uint32_t i = 0; i < count; i++) {
        work->next[i] = i + 1 < count ? i + 1 : NONE;
        work->before[i] = i > 0 ? i - 1 : NONE;
    }
    for (uint32_t i = 0; i + 1 < count; i++) {
        push_pair(merges, work, symbols, i);
    }
    while (work->heap_size > 0) {
        uint64_t entry = heap_pop(work);
        uint32_t at = (uint32_t)entry;
        uint32_t right = symbols[at] == NONE ? NONE : work->next[at];
        const struct merge_slot *slot;

        if (right == NONE) {
            continue; /* merged into another, or the last of the word */
        }
        slot = slot_of(merges, symbols[at], symbols[right]);
        if (slot->rank != entry >> 32) {
            continue; /* another pair stands there now */
        }
        symbols[at] = slot->product;
        symbols[right] = NONE;
        work->next[at] = work->next[right];
        if (work->next[at] != NONE) {
            work->before[work->next[at]] = at;
            push_pair(merges, work, symbols, at);
        }
        if (work->before[at] != NONE) {
            push_pair(merges, work, symbols, work->before[at]);
        }
    }
    for (uint32_t i = 0; i != NONE; i = work->next[i]) {
        symbols[kept++] = symbols[i];
    }
    *left = kept;
    return STATUS_OK;
}

enum status merges_apply(const struct merges *merges, struct merges_work *work, uint32_t *symbols,
                         size_t count, size_t *left)
{
    assert(count <= MERGES_SYMBOLS_MAX);
    if (count < 2 || merges->slot_count == 0) {
        *left = count;
        return STATUS_OK;
    }
    if (count <= SHORT_MAX) {
        *left = apply_short(merges, symbols, count);
        return STATUS_OK;
    }
    return apply_long(merges, work, symbols, (uint32_t)count, left);
}
