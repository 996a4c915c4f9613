/* race.c - who wrote each place last and who read it since; see race.h. */
#include "tests/race/race_core.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_LOG   12
#define PAGE       (UINT64_C(1) << PAGE_LOG)
#define WORD       4
#define PAGE_WORDS (PAGE / WORD)
#define PAGES_MAX  (UINT64_C(1) << 17) /* half a gigabyte of the device's memory */
#define READS      2
#define ARRAYS_MAX 16

/*
 * Stamps of one word, or of one byte of a word that is not accessed as one. Of readers and atomics
 * two are kept that are of different warps: a write by either of these warps is unordered with the
 * other one.
 */
struct cell {
    uint64_t write;
    uint64_t reads[READS];
    uint32_t write_site;
    uint32_t read_sites[READS];
    uint32_t split : 31; /* the word's bytes, plus one */
    uint32_t vague : 1;  /* a copy of what nobody wrote */
};

struct page {
    uint64_t number; /* of the address; 0: none */
    struct cell *cells;
};

struct allocation {
    uintptr_t at;
    uint64_t size;
};

static struct {
    struct page pages[PAGES_MAX]; /* by hashing */
    struct page last;
    struct cell (*bytes)[WORD];
    uint32_t byte_count;
    uint32_t byte_space;
    uint32_t byte_free; /* a list through split */
    struct allocation *allocations;
    uint32_t allocation_count;
    uint32_t allocation_space;
    struct allocation last_allocation;
    struct allocation arrays[ARRAYS_MAX]; /* declared in the kernel; at is an offset */
    uint32_t array_count;
} memory;

/* The program's image: sites are kept as distances from its begin. */
extern const char __executable_start[];
extern const char image_end[] __asm__("end");

static uint32_t site_short(const void *site)
{
    return site == NULL ? 0 : (uint32_t)((uintptr_t)site - (uintptr_t)__executable_start);
}

static const void *site_long(uint32_t site)
{
    return site == 0 ? NULL : __executable_start + site;
}

/* ---- cells ------------------------------------------------------------------ */

static struct cell *cells_of(uintptr_t at)
{
    const uint64_t number = at >> PAGE_LOG;
    uint64_t place = number * UINT64_C(0x9e3779b97f4a7c15) >> 47;

    if (memory.last.number == number) {
        return memory.last.cells;
    }
    for (uint64_t tries = 0; memory.pages[place].number != number; tries++) {
        if (memory.pages[place].number == 0) {
            memory.pages[place].number = number;
            memory.pages[place].cells = calloc(PAGE_WORDS, sizeof(struct cell));
            if (memory.pages[place].cells == NULL) {
                abort();
            }
            break;
        }
        if (tries == PAGES_MAX) {
            abort();
        }
        place = (place + 1) % PAGES_MAX;
    }
    memory.last = memory.pages[place];
    return memory.last.cells;
}

static struct cell *word_of(uintptr_t at)
{
    return &cells_of(at)[at % PAGE / WORD];
}

static void split(struct cell *word)
{
    uint32_t place = memory.byte_free;

    if (place != 0) {
        memory.byte_free = memory.bytes[place - 1][0].split;
    } else {
        if (memory.byte_count == memory.byte_space) {
            memory.byte_space = memory.byte_space * 2 + 1024;
            memory.bytes = realloc(memory.bytes, memory.byte_space * sizeof(*memory.bytes));
            if (memory.bytes == NULL) {
                abort();
            }
        }
        place = ++memory.byte_count;
    }
    for (uint32_t i = 0; i < WORD; i++) {
        memory.bytes[place - 1][i] = *word;
        memory.bytes[place - 1][i].split = 0;
    }
    word->split = place;
}

/* The four bytes are alike again. */
static void unite(struct cell *word)
{
    const uint32_t place = word->split;

    *word = memory.bytes[place - 1][0];
    word->split = 0;
    memory.bytes[place - 1][0].split = memory.byte_free;
    memory.byte_free = place;
}

/* ---- where an address is ---------------------------------------------------------- */

enum region { REGION_OWN, REGION_SHARED, REGION_DEVICE, REGION_NONE };

struct place {
    enum region region;
    const char *name;
    uint64_t offset;
    bool inside; /* all of it */
};

static const struct allocation *allocation_at(uintptr_t at)
{
    uint32_t low = 0;
    uint32_t high = memory.allocation_count;

    if (at - memory.last_allocation.at < memory.last_allocation.size) {
        return &memory.last_allocation;
    }
    while (low < high) {
        const uint32_t middle = (low + high) / 2;

        if (memory.allocations[middle].at <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return NULL;
    }
    memory.last_allocation = memory.allocations[low - 1];
    return &memory.last_allocation;
}

static bool within(uintptr_t at, uint64_t size, const void *begin, uint64_t all)
{
    return at >= (uintptr_t)begin && at - (uintptr_t)begin + size <= all;
}

/* An array that a kernel declares. */
static struct place array_place(uintptr_t at, uint64_t size)
{
    const uint64_t offset = at - (uintptr_t)race.block.shared;
    struct place place = {REGION_SHARED, "declared shared memory", offset, false};

    for (uint32_t i = 0; i < memory.array_count; i++) {
        if (offset >= memory.arrays[i].at &&
            offset + size <= memory.arrays[i].at + memory.arrays[i].size) {
            place.offset = offset - memory.arrays[i].at;
            place.inside = true;
        }
    }
    return place;
}

static struct place shared_place(uintptr_t at, uint64_t size)
{
    const struct race_block *block = &race.block;

    if (within(at, 1, block->shared, block->shared_max)) {
        return array_place(at, size);
    }
    /* One byte of no size is still this block's end. */
    if (within(at, 0, block->dynamic, block->dynamic_size)) {
        const uint64_t offset = at - (uintptr_t)block->dynamic;

        return (struct place){REGION_SHARED, "dynamic shared memory", offset,
                              offset + size <= block->dynamic_size};
    }
    return (struct place){REGION_NONE, "nothing that a kernel has", 0, false};
}

static struct place place_of(uintptr_t at, uint64_t size)
{
    const struct race_block *block = &race.block;
    const struct allocation *allocation;
    struct place place;

    if (race.inside && race.thread < RACE_THREADS_MAX) {
        if (within(at, size, block->stacks + race.thread * block->stack_size, block->stack_size) ||
            within(at, size, block->arguments, block->arguments_size) ||
            within(at, size, __executable_start, (uint64_t)(image_end - __executable_start))) {
            return (struct place){REGION_OWN, "its own memory", 0, true};
        }
        place = shared_place(at, size);
        if (place.region != REGION_NONE) {
            return place;
        }
    }
    allocation = allocation_at(at);
    if (allocation != NULL && at - allocation->at < allocation->size + PAGE) {
        return (struct place){REGION_DEVICE, "device memory", at - allocation->at,
                              at - allocation->at + size <= allocation->size};
    }
    return (struct place){REGION_NONE, "nothing that a kernel has", 0, false};
}

/* ---- one access ---------------------------------------------------------------------- */

struct look {
    uintptr_t at;
    uint64_t size;
    enum race_access access;
    const void *site;
    uint64_t stamp;
    struct place place;
    bool vague;    /* a write of what nobody wrote */
    bool left;     /* the result, where nobody wrote: a tile's rows that the tensor has not */
    bool reported; /* one fault for one access is enough */
};

static struct race_end end_now(const struct look *look)
{
    struct race_end end = race_end_of(race_stamp());

    end.site = look->site;
    end.access = look->access;
    return end;
}

static void report_fault(struct look *look, enum race_kind kind, uint64_t before, uint32_t site,
                         enum race_access access)
{
    const struct race_end now = end_now(look);
    struct race_end then = {.kernel = NULL, .thread = UINT32_MAX};

    if (look->reported) {
        return;
    }
    look->reported = true;
    if (before != 0) {
        then = race_end_of(before);
        then.site = site_long(site);
        then.access = (before & RACE_ATOMIC_BIT) != 0 ? RACE_ATOMIC : access;
    }
    race_tell(kind, &now, before == 0 ? NULL : &then, look->place.name, look->place.offset,
              look->size);
}

/* Shared memory is another block's before its first barrier, and nothing of it counts. */
static bool gone(const struct look *look, uint64_t stamp)
{
    return stamp == 0 ||
           (look->place.region == REGION_SHARED && race_era_of(stamp) < race.block_era);
}

static void look_at_write(struct look *look, const struct cell *cell)
{
    const bool atomic = (cell->write & RACE_ATOMIC_BIT) != 0;

    if (gone(look, cell->write)) {
        if (look->left) {
            race.vague_reads++;
        } else if (look->access != RACE_WRITE) {
            report_fault(look, RACE_UNWRITTEN, 0, 0, RACE_WRITE);
        }
        return;
    }
    if ((cell->write & RACE_FLIGHT_BIT) != 0 && race_era_of(cell->write) >= race.block_era) {
        report_fault(look, RACE_IN_FLIGHT, cell->write, cell->write_site, RACE_WRITE);
    } else if (!(atomic && look->access == RACE_ATOMIC) && !race_ordered(cell->write)) {
        report_fault(look, look->access == RACE_READ ? RACE_READ_EARLY : RACE_WRITE_TWICE,
                     cell->write, cell->write_site, RACE_WRITE);
    }
    if (look->access != RACE_WRITE && cell->vague) {
        race.vague_reads++;
    }
}

/* Reads and atomics since the last write. */
static void look_at_reads(struct look *look, const struct cell *cell)
{
    for (uint32_t i = 0; i < READS; i++) {
        const bool atomic = (cell->reads[i] & RACE_ATOMIC_BIT) != 0;
        const bool matters =
            look->access == RACE_WRITE || (look->access == RACE_ATOMIC ? !atomic : atomic);

        if (!gone(look, cell->reads[i]) && matters && !race_ordered(cell->reads[i])) {
            report_fault(look, look->access == RACE_READ ? RACE_READ_EARLY : RACE_WRITE_EARLY,
                         cell->reads[i], cell->read_sites[i], RACE_READ);
        }
    }
}

static bool same_warp(uint64_t a, uint64_t b)
{
    const bool both_here = race_era_of(a) >= race.block_era && race_era_of(b) >= race.block_era;

    return both_here && race_thread_of(a) / 32 == race_thread_of(b) / 32 &&
           ((a ^ b) & RACE_ATOMIC_BIT) == 0;
}

static void keep_read(struct cell *cell, uint64_t stamp, const void *site)
{
    uint32_t at = READS - 1;

    for (uint32_t i = 0; i < READS; i++) {
        if (cell->reads[i] == 0 || same_warp(cell->reads[i], stamp)) {
            at = i;
            break;
        }
        if (race_era_of(cell->reads[i]) < race.work_era) {
            at = i;
        }
    }
    cell->reads[at] = stamp;
    cell->read_sites[at] = site_short(site);
}

static void look_at_cell(struct look *look, struct cell *cell)
{
    look_at_write(look, cell);
    look_at_reads(look, cell);
    if (look->access == RACE_READ) {
        keep_read(cell, look->stamp, look->site);
        return;
    }
    if (look->access == RACE_ATOMIC) {
        keep_read(cell, look->stamp | RACE_ATOMIC_BIT, look->site);
    } else {
        memset(cell->reads, 0, sizeof(cell->reads));
        cell->vague = look->vague;
    }
    cell->write = look->stamp | (look->access == RACE_ATOMIC ? RACE_ATOMIC_BIT : 0);
    cell->write_site = site_short(look->site);
}

static void look_at_all(struct look *look)
{
    const uintptr_t stop = look->at + look->size;

    for (uintptr_t at = look->at; at < stop;) {
        const uintptr_t next = (at / WORD + 1) * WORD;
        const bool whole = at % WORD == 0 && next <= stop;
        struct cell *word = word_of(at);

        if (!whole && word->split == 0) {
            split(word);
        }
        if (word->split == 0) {
            look_at_cell(look, word);
        } else {
            for (; at < next && at < stop; at++) {
                look_at_cell(look, &memory.bytes[word->split - 1][at % WORD]);
            }
            if (whole && look->access == RACE_WRITE) {
                unite(word);
            }
        }
        at = next;
    }
}

/* False: reported, and its cells are to be left alone. */
static bool is_inside(struct look *look)
{
    if (look->place.region == REGION_OWN) {
        return false;
    }
    if (!look->place.inside) {
        report_fault(look, RACE_OUTSIDE, 0, 0, RACE_READ);
        return false;
    }
    return true;
}

static struct look look_of(const void *at, uint64_t size, enum race_access access, const void *site)
{
    struct look look = {.at = (uintptr_t)at, .size = size, .access = access, .site = site};

    race.looked_at++;
    look.place = place_of(look.at, size);
    look.stamp = look.place.region == REGION_OWN ? 0 : race_stamp();
    return look;
}

void race_access(const void *at, uint64_t size, enum race_access access, const void *site)
{
    struct look look = look_of(at, size, access, site);

    if (is_inside(&look)) {
        look_at_all(&look);
    }
}

void race_read_padded(const void *at, uint64_t size, const void *site)
{
    struct look look = look_of(at, size, RACE_READ, site);

    look.left = true;
    if (is_inside(&look)) {
        look_at_all(&look);
    }
}

void race_aligned(const void *at, uint64_t size, const void *site)
{
    if ((uintptr_t)at % size != 0) {
        struct look look = look_of(at, size, RACE_READ, site);

        if (look.place.region != REGION_OWN) {
            report_fault(&look, RACE_MISALIGNED, 0, 0, RACE_READ);
        }
    }
}

void race_atomic(const void *at, const void *site)
{
    race_access(at, sizeof(uint32_t), RACE_ATOMIC, site);
    race_order_atomic(at);
}

/* ---- copies --------------------------------------------------------------------------- */

/* Did somebody write all of it? */
static bool is_written(const void *from, uint64_t size)
{
    for (uintptr_t at = (uintptr_t)from; at < (uintptr_t)from + size; at++) {
        const struct cell *word = word_of(at);
        const struct cell *cell =
            word->split == 0 ? word : &memory.bytes[word->split - 1][at % WORD];

        if (cell->write == 0 || cell->vague) {
            return false;
        }
    }
    return true;
}

/* A read whose result is not used yet: bytes that nobody wrote are no fault. */
static void look_at_source(const void *from, uint64_t size, const void *site)
{
    for (uintptr_t at = (uintptr_t)from; at < (uintptr_t)from + size; at += WORD) {
        struct look look = look_of((const void *)at, WORD, RACE_READ, site);

        if (!is_inside(&look)) {
            return;
        }
        if (is_written((const void *)at, WORD)) {
            look_at_all(&look);
        }
    }
}

void race_copy(const void *to, const void *from, bool there, const void *site)
{
    struct look look = look_of(to, 16, RACE_WRITE, site);

    if (there) {
        look_at_source(from, 16, site);
    }
    look.stamp |= RACE_FLIGHT_BIT;
    if (is_inside(&look)) {
        look_at_all(&look);
    }
}

/* Its own thread has waited for it. */
void race_copied(const void *to, const void *from, bool there, const void *site)
{
    const struct place place = place_of((uintptr_t)to, 16);
    const bool vague = there && !is_written(from, 16);

    if (place.region != REGION_SHARED || !place.inside) {
        return;
    }
    for (uint32_t i = 0; i < 16 / WORD; i++) {
        struct cell *word = word_of((uintptr_t)to + (uintptr_t)i * WORD);

        if (word->split != 0) {
            unite(word);
        }
        memset(word, 0, sizeof(*word));
        word->write = race_stamp();
        word->write_site = site_short(site);
        word->vague = vague;
    }
}

void race_barrier_init(const void *barrier, const void *site)
{
    race_access(barrier, sizeof(uint64_t), RACE_WRITE, site);
    race_order_barrier(barrier);
}

/* Operations on a barrier are atomic; it must have been initialized before. */
static void look_at_barrier(const void *barrier, const void *site)
{
    struct look look = look_of(barrier, sizeof(uint64_t), RACE_READ, site);

    look.place = (struct place){REGION_SHARED, "a barrier", look.place.offset, true};
    look_at_write(&look, word_of((uintptr_t)barrier));
}

void race_arrive(const void *barrier, const void *site)
{
    look_at_barrier(barrier, site);
    race_order_arrive(barrier);
}

void race_waited(const void *barrier, const void *site)
{
    look_at_barrier(barrier, site);
    race_order_waited(barrier);
}

void race_bulk(const void *to, const void *from, uint64_t size, const void *barrier,
               const void *site)
{
    struct look look = look_of(to, size, RACE_WRITE, site);
    const uint64_t stamp = race_bulk_stamp(barrier);

    look_at_source(from, size, site);
    look.vague = !is_written(from, size);
    look.place.inside = look.place.inside || look.place.offset + size <= race.block.dynamic_size;
    if (!is_inside(&look)) {
        return;
    }
    look.stamp = stamp;
    look_at_all(&look);
}

void race_proxy_read(const void *at, uint64_t size, const void *site)
{
    struct look look = look_of(at, size, RACE_READ, site);

    look.left = true;
    if (!is_inside(&look)) {
        return;
    }
    look_at_all(&look);
    for (uintptr_t byte = look.at; byte < look.at + size; byte += WORD) {
        const struct cell *word = word_of(byte);
        const struct cell *cell = word->split == 0 ? word : memory.bytes[word->split - 1];

        if (!gone(&look, cell->write) && !race_proxy_fenced(cell->write)) {
            report_fault(&look, RACE_PROXY, cell->write, cell->write_site, RACE_WRITE);
        }
    }
}

/* ---- memory that comes and goes ---------------------------------------------------------- */

static void clear(const void *at, uint64_t size)
{
    for (uintptr_t word = (uintptr_t)at; word < (uintptr_t)at + size; word += WORD) {
        struct cell *cell = word_of(word);

        if (cell->split != 0) {
            unite(cell);
        }
        memset(cell, 0, sizeof(*cell));
    }
}

void race_allocate(const void *at, uint64_t size)
{
    uint32_t place = memory.allocation_count;

    if (memory.allocation_count == memory.allocation_space) {
        memory.allocation_space = memory.allocation_space * 2 + 64;
        memory.allocations =
            realloc(memory.allocations, memory.allocation_space * sizeof(*memory.allocations));
        if (memory.allocations == NULL) {
            abort();
        }
    }
    for (; place > 0 && memory.allocations[place - 1].at > (uintptr_t)at; place--) {
        memory.allocations[place] = memory.allocations[place - 1];
    }
    memory.allocations[place] = (struct allocation){(uintptr_t)at, size};
    memory.allocation_count++;
    memory.last_allocation = (struct allocation){0, 0};
    clear(at, size);
}

void race_release(const void *at)
{
    uint32_t place = 0;

    while (place < memory.allocation_count && memory.allocations[place].at != (uintptr_t)at) {
        place++;
    }
    assert(place < memory.allocation_count);
    clear(at, memory.allocations[place].size);
    memory.allocation_count--;
    for (; place < memory.allocation_count; place++) {
        memory.allocations[place] = memory.allocations[place + 1];
    }
    memory.last_allocation = (struct allocation){0, 0};
}

void race_array(size_t offset, size_t size)
{
    for (uint32_t i = 0; i < memory.array_count; i++) {
        if (memory.arrays[i].at == offset) {
            memory.arrays[i].size = size;
            return;
        }
    }
    if (memory.array_count == ARRAYS_MAX) {
        abort();
    }
    memory.arrays[memory.array_count++] = (struct allocation){offset, size};
}

/* What a copy or a fill of the host touches; the host's own memory is nobody's concern. */
void race_host(const void *at, uint64_t size, enum race_access access)
{
    const struct allocation *allocation = allocation_at((uintptr_t)at);

    if (size > 0 && allocation != NULL && (uintptr_t)at - allocation->at < allocation->size) {
        race_access(at, size, access, NULL);
    }
}

/* ---- meetings of lanes ------------------------------------------------------------------- */

static struct {
    uint32_t kind;
    uint32_t count;
    const void *site;
} meetings[RACE_THREADS_MAX / 32];

void race_meet(uint32_t kind, const void *site)
{
    const uint32_t warp = race.thread / 32;
    const bool first = meetings[warp].count % 32 == 0;

    meetings[warp].count++;
    if (first) {
        meetings[warp].kind = kind;
        meetings[warp].site = site;
    } else if (meetings[warp].kind != kind ||
               (kind == RACE_MEET_BLOCK && !race_same_line(meetings[warp].site, site))) {
        struct look look = {.size = 0, .site = site, .place = {.name = "its warp"}};

        report_fault(&look, RACE_DIVERGED, race_stamp(), site_short(meetings[warp].site),
                     RACE_READ);
    }
}

void race_thread(uint32_t thread)
{
    race.thread = thread;
}

void race_no_thread(void)
{
    race.thread = RACE_HOST;
}

void race_begin_meetings(void)
{
    memset(meetings, 0, sizeof(meetings));
}

uint64_t race_looked_at(void)
{
    return race.looked_at;
}

uint64_t race_vague_reads(void)
{
    return race.vague_reads;
}
