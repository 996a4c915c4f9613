/* race_order.c - what is before what: threads, blocks, copies, launches, lanes; see race.h. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/race/race_core.h"

#define LANES_MAX   64
#define DEVICES_MAX (LANES_MAX / 2)
#define SIGNALS_MAX 8
#define TURNS_KEPT  8 /* of a signal */
#define WARP        32

struct race_state race;

/* ---- lanes ------------------------------------------------------------------- */

/* How much of each lane's work is done, for who knows it. */
struct ticks {
    uint64_t of[LANES_MAX];
};

struct work {
    uint32_t era;
    uint32_t lane;
    uint64_t number;
    const char *name;
};

static struct {
    struct ticks lanes[LANES_MAX];
    bool open[LANES_MAX];
    struct ticks host;
    struct ticks signals[LANES_MAX][SIGNALS_MAX][TURNS_KEPT];
    struct ticks *points; /* of the host, as they were asked for */
    uint64_t point_count;
    uint64_t point_space;
    struct work *works;
    uint64_t work_count;
    uint64_t work_space;
} order;

static void learn(struct ticks *ticks, const struct ticks *other)
{
    for (uint32_t lane = 0; lane < LANES_MAX; lane++) {
        ticks->of[lane] = other->of[lane] > ticks->of[lane] ? other->of[lane] : ticks->of[lane];
    }
}

static void *grown(void *items, uint64_t *space, uint64_t count, size_t size)
{
    if (count == *space) {
        *space = *space * 2 + 64;
        items = realloc(items, *space * size);
        if (items == NULL) {
            abort();
        }
    }
    return items;
}

uint32_t race_lanes_open(uint32_t count)
{
    for (uint32_t first = 0; first + count <= LANES_MAX; first += count) {
        if (!order.open[first]) {
            order.open[first] = true;
            return first;
        }
    }
    abort();
}

void race_lanes_close(uint32_t first, uint32_t count)
{
    for (uint32_t lane = first; lane < first + count; lane++) {
        race_wait(lane);
    }
    order.open[first] = false;
}

uint64_t race_point(void)
{
    if (order.point_count > 0 &&
        memcmp(&order.points[order.point_count - 1], &order.host, sizeof(order.host)) == 0) {
        return order.point_count - 1;
    }
    order.points =
        grown(order.points, &order.point_space, order.point_count, sizeof(*order.points));
    order.points[order.point_count] = order.host;
    return order.point_count++;
}

void race_wait(uint32_t lane)
{
    learn(&order.host, &order.lanes[lane]);
}

void race_signal(uint32_t lane, uint64_t point, uint32_t device, uint32_t signal, uint64_t turn)
{
    learn(&order.lanes[lane], &order.points[point]);
    order.signals[device][signal][turn % TURNS_KEPT] = order.lanes[lane];
}

void race_await(uint32_t lane, uint64_t point, uint32_t device, uint32_t signal, uint64_t turn)
{
    learn(&order.lanes[lane], &order.points[point]);
    if (turn > 0) {
        learn(&order.lanes[lane], &order.signals[device][signal][turn % TURNS_KEPT]);
    }
}

void race_work(uint32_t lane, uint64_t point, const char *name)
{
    struct ticks *own = &order.lanes[lane];

    assert(!race.inside);
    learn(own, &order.points[point]);
    own->of[lane]++;
    race.era++;
    race.work_era = race.era;
    race.thread = RACE_HOST;
    order.works = grown(order.works, &order.work_space, order.work_count, sizeof(*order.works));
    order.works[order.work_count++] = (struct work){race.era, lane, own->of[lane], name};
}

/* The work that an era belongs to: the last that did not begin after it. */
static const struct work *work_of(uint32_t era)
{
    uint64_t low = 0;
    uint64_t high = order.work_count;

    while (high - low > 1) {
        const uint64_t middle = (low + high) / 2;

        if (order.works[middle].era <= era) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &order.works[low];
}

/* ---- threads -------------------------------------------------------------------- */

struct block_of_era {
    uint32_t era;
    uint32_t first[2];
};

/* What a thread of these blocks knew when it fenced, for threads of others. */
struct snapshot {
    uint32_t block_era;
    uint32_t era;
    uint32_t *clocks;
};

/* Snapshots that a thread knows of; never changed once made. */
struct knowledge {
    struct knowledge *next; /* of all that were made for the launch */
    uint32_t count;
    uint32_t snapshots[];
};

struct ticket {
    const void *at;
    const struct knowledge *known;
};

struct bulk_barrier {
    const void *at;
    uint32_t phase; /* how many are complete */
    uint32_t era;   /* of the clocks */
    uint32_t pending[RACE_THREADS_MAX];
    uint32_t complete[RACE_THREADS_MAX];
    uint32_t complete_bulks[RACE_BARRIERS_MAX];
    uint32_t pending_bulks[RACE_BARRIERS_MAX];
};

struct thread {
    uint32_t era; /* of the clocks; before the running era they are zeros */
    uint32_t clocks[RACE_THREADS_MAX];
    uint32_t bulks[RACE_BARRIERS_MAX]; /* phases of copies that it has waited for */
    const struct knowledge *known;
    const struct knowledge *found; /* by atomics; known behind the next fence */
    uint32_t fence;                /* its last one's snapshot, plus one */
    uint32_t proxy_era;
    uint32_t proxy_clock;
};

static struct {
    struct thread of[RACE_THREADS_MAX];
    struct bulk_barrier barriers[RACE_BARRIERS_MAX];
    uint32_t barrier_count;
    uint32_t all;
    bool wide; /* threads know more than their warp's clocks in this era */
    struct block_of_era *blocks;
    uint64_t block_count;
    uint64_t block_space;
    struct snapshot *snapshots;
    uint64_t snapshot_count;
    uint64_t snapshot_space;
    struct knowledge *made;
    struct ticket *tickets;
    uint64_t ticket_count;
    uint64_t ticket_space;
    uint32_t launch_era;
} threads;

static struct thread *thread_of(uint32_t at)
{
    struct thread *thread = &threads.of[at];

    if (thread->era != race.era) {
        memset(thread->clocks, 0, threads.all * sizeof(*thread->clocks));
        thread->clocks[at] = 1;
        thread->era = race.era;
    }
    return thread;
}

/* The thread that runs. */
static struct thread *own(void)
{
    return thread_of(race.thread);
}

/* What comes now is ordered behind what others have seen. */
static void tick(uint32_t at)
{
    struct thread *thread = thread_of(at);

    thread->clocks[at]++;
    assert(thread->clocks[at] < RACE_CLOCK_MAX);
}

static void raise(uint32_t *clocks, const uint32_t *others, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        clocks[i] = others[i] > clocks[i] ? others[i] : clocks[i];
    }
}

/* A launch's threads know nothing of those of the launch before but what lanes say. */
static void begin_launch(void)
{
    threads.launch_era = race.work_era;
    threads.block_count = 0;
    for (uint64_t i = 0; i < threads.snapshot_count; i++) {
        free(threads.snapshots[i].clocks);
    }
    threads.snapshot_count = 0;
    threads.ticket_count = 0;
    while (threads.made != NULL) {
        struct knowledge *next = threads.made->next;

        free(threads.made);
        threads.made = next;
    }
}

void race_block_begin(const struct race_block *block)
{
    assert(!race.inside && block->threads <= RACE_THREADS_MAX);
    assert(order.work_count > 0);
    if (threads.launch_era != race.work_era) {
        begin_launch();
    }
    race.block = *block;
    race.inside = true;
    race.era++;
    race.block_era = race.era;
    threads.all = block->threads;
    threads.wide = false;
    threads.barrier_count = 0;
    race_begin_meetings();
    for (uint32_t i = 0; i < threads.all; i++) {
        struct thread *thread = &threads.of[i];

        memset(thread->bulks, 0, sizeof(thread->bulks));
        thread->known = NULL;
        thread->found = NULL;
        thread->fence = 0;
        thread->proxy_era = 0;
    }
    threads.blocks =
        grown(threads.blocks, &threads.block_space, threads.block_count, sizeof(*threads.blocks));
    threads.blocks[threads.block_count++] =
        (struct block_of_era){race.era, {block->place[0], block->place[1]}};
}

void race_block_end(void)
{
    race.inside = false;
    race.thread = RACE_HOST;
}

uint64_t race_stamp(void)
{
    const uint64_t clock = race.thread < RACE_THREADS_MAX ? own()->clocks[race.thread] : 1;

    return race.era | (uint64_t)race.thread << RACE_THREAD_SHIFT | clock << RACE_CLOCK_SHIFT;
}

static bool known_of_block(const struct knowledge *known, uint64_t stamp)
{
    const uint32_t era = race_era_of(stamp);

    for (uint32_t i = 0; known != NULL && i < known->count; i++) {
        const struct snapshot *snapshot = &threads.snapshots[known->snapshots[i]];

        if (snapshot->block_era <= era &&
            (era < snapshot->era ||
             (era == snapshot->era && race_thread_of(stamp) < RACE_THREADS_MAX &&
              snapshot->clocks[race_thread_of(stamp)] >= race_clock_of(stamp)))) {
            return true;
        }
    }
    return false;
}

bool race_ordered(uint64_t stamp)
{
    const uint32_t era = race_era_of(stamp);
    const uint32_t thread = race_thread_of(stamp);

    if (era < race.work_era) {
        const struct work *now = &order.works[order.work_count - 1];
        const struct work *then = work_of(era);

        return order.lanes[now->lane].of[then->lane] >= then->number;
    }
    if (race.thread == RACE_HOST) {
        return true; /* of one work of the host's */
    }
    if (era < race.block_era) {
        return known_of_block(own()->known, stamp);
    }
    if (thread >= RACE_BULK) {
        return own()->bulks[thread - RACE_BULK] >= race_clock_of(stamp);
    }
    return era < race.era || own()->clocks[thread] >= race_clock_of(stamp);
}

struct race_end race_end_of(uint64_t stamp)
{
    const uint32_t era = race_era_of(stamp);
    const uint32_t thread = race_thread_of(stamp);
    struct race_end end = {.kernel = work_of(era)->name, .thread = UINT32_MAX};

    end.access = (stamp & RACE_ATOMIC_BIT) != 0 ? RACE_ATOMIC : RACE_READ;
    if (era >= race.work_era && thread < RACE_THREADS_MAX) {
        uint64_t at = threads.block_count;

        while (at > 0 && threads.blocks[at - 1].era > era) {
            at--;
        }
        if (at > 0) {
            end.thread = thread;
            end.block[0] = threads.blocks[at - 1].first[0];
            end.block[1] = threads.blocks[at - 1].first[1];
        }
    } else if (thread < RACE_THREADS_MAX) {
        end.thread = thread;
    }
    return end;
}

/* ---- barriers ------------------------------------------------------------------ */

static struct knowledge *knowledge_new(uint32_t most)
{
    struct knowledge *known =
        calloc(1, sizeof(*known) + (size_t)most * sizeof(known->snapshots[0]));

    if (known == NULL) {
        abort();
    }
    known->next = threads.made;
    threads.made = known;
    return known;
}

static void knowledge_add(struct knowledge *known, uint32_t snapshot)
{
    for (uint32_t i = 0; i < known->count; i++) {
        if (known->snapshots[i] == snapshot) {
            return;
        }
    }
    known->snapshots[known->count++] = snapshot;
}

static const struct knowledge *both(const struct knowledge *a, const struct knowledge *b)
{
    struct knowledge *known;

    if (a == b || b == NULL) {
        return a;
    }
    if (a == NULL) {
        return b;
    }
    known = knowledge_new(a->count + b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        knowledge_add(known, a->snapshots[i]);
    }
    for (uint32_t i = 0; i < b->count; i++) {
        knowledge_add(known, b->snapshots[i]);
    }
    return known;
}

/* What is known for good, in every era: snapshots of other blocks, and bulk copies. */
static void join_lasting(uint32_t first, uint32_t count)
{
    const struct knowledge *known = NULL;
    uint32_t bulks[RACE_BARRIERS_MAX] = {0};

    for (uint32_t i = first; i < first + count; i++) {
        known = both(known, threads.of[i].known);
        raise(bulks, threads.of[i].bulks, 0, threads.barrier_count);
    }
    for (uint32_t i = first; i < first + count; i++) {
        threads.of[i].known = known;
        memcpy(threads.of[i].bulks, bulks, sizeof(bulks));
    }
}

void race_join(uint32_t first, uint32_t count)
{
    static uint32_t most[RACE_THREADS_MAX];
    const bool warp = count == WARP && !threads.wide;
    const uint32_t from = warp ? first : 0;
    const uint32_t end = warp ? first + count : threads.all;

    if (count == threads.all) {
        race_join_all();
        return;
    }
    threads.wide = threads.wide || count > WARP;
    memset(most, 0, sizeof(most));
    for (uint32_t i = first; i < first + count; i++) {
        raise(most, thread_of(i)->clocks, from, end);
    }
    for (uint32_t i = first; i < first + count; i++) {
        memcpy(threads.of[i].clocks + from, most + from, (end - from) * sizeof(most[0]));
        tick(i);
    }
    join_lasting(first, count);
}

void race_join_all(void)
{
    join_lasting(0, threads.all);
    race.era++;
    threads.wide = false;
}

/* ---- fences and atomics ----------------------------------------------------------- */

void race_fence(void)
{
    struct thread *thread = own();
    struct snapshot *snapshot;

    thread->known = both(thread->known, thread->found);
    threads.snapshots = grown(threads.snapshots, &threads.snapshot_space, threads.snapshot_count,
                              sizeof(*threads.snapshots));
    snapshot = &threads.snapshots[threads.snapshot_count];
    *snapshot = (struct snapshot){race.block_era, race.era, calloc(threads.all, sizeof(uint32_t))};
    if (snapshot->clocks == NULL) {
        abort();
    }
    memcpy(snapshot->clocks, thread->clocks, threads.all * sizeof(uint32_t));
    thread->fence = (uint32_t)++threads.snapshot_count;
    tick(race.thread);
}

static struct ticket *ticket_of(const void *at)
{
    for (uint64_t i = 0; i < threads.ticket_count; i++) {
        if (threads.tickets[i].at == at) {
            return &threads.tickets[i];
        }
    }
    threads.tickets = grown(threads.tickets, &threads.ticket_space, threads.ticket_count,
                            sizeof(*threads.tickets));
    threads.tickets[threads.ticket_count] = (struct ticket){at, NULL};
    return &threads.tickets[threads.ticket_count++];
}

/* A thread that fenced before it is found by one that fences behind it. */
void race_order_atomic(const void *at)
{
    struct thread *thread = own();

    if (threads.ticket_count == 0 && thread->fence == 0) {
        return; /* no fence, no order: most atomics */
    }
    struct ticket *ticket = ticket_of(at);

    thread->found = both(thread->found, ticket->known);
    if (thread->fence != 0) {
        struct knowledge *fenced = knowledge_new(1);

        knowledge_add(fenced, thread->fence - 1);
        ticket->known = both(both(ticket->known, fenced), thread->known);
    }
}

/* ---- barriers that count bytes -------------------------------------------------------- */

static struct bulk_barrier *barrier_of(const void *at, uint32_t *index)
{
    for (uint32_t i = 0; i < threads.barrier_count; i++) {
        if (threads.barriers[i].at == at) {
            struct bulk_barrier *barrier = &threads.barriers[i];

            if (barrier->era != race.era) {
                barrier->era = race.era;
                memset(barrier->pending, 0, sizeof(barrier->pending));
                memset(barrier->complete, 0, sizeof(barrier->complete));
            }
            *index = i;
            return barrier;
        }
    }
    abort();
}

void race_order_barrier(const void *at)
{
    struct bulk_barrier *barrier = &threads.barriers[threads.barrier_count];

    if (threads.barrier_count == RACE_BARRIERS_MAX) {
        abort();
    }
    memset(barrier, 0, sizeof(*barrier));
    barrier->at = at;
    barrier->era = race.era;
    threads.barrier_count++;
}

void race_order_arrive(const void *at)
{
    uint32_t index;
    struct bulk_barrier *barrier = barrier_of(at, &index);
    struct thread *thread = own();

    threads.wide = true;
    raise(barrier->pending, thread->clocks, 0, threads.all);
    raise(barrier->pending_bulks, thread->bulks, 0, threads.barrier_count);
    tick(race.thread);
}

void race_phase(const void *at)
{
    uint32_t index;
    struct bulk_barrier *barrier = barrier_of(at, &index);

    barrier->phase++;
    barrier->pending_bulks[index] = barrier->phase;
    raise(barrier->complete, barrier->pending, 0, threads.all);
    raise(barrier->complete_bulks, barrier->pending_bulks, 0, RACE_BARRIERS_MAX);
}

void race_order_waited(const void *at)
{
    uint32_t index;
    const struct bulk_barrier *barrier = barrier_of(at, &index);
    struct thread *thread = own();

    threads.wide = true;
    raise(thread->clocks, barrier->complete, 0, threads.all);
    raise(thread->bulks, barrier->complete_bulks, 0, RACE_BARRIERS_MAX);
}

uint64_t race_bulk_stamp(const void *at)
{
    uint32_t index;
    const struct bulk_barrier *barrier = barrier_of(at, &index);

    return race.era | (uint64_t)(RACE_BULK + index) << RACE_THREAD_SHIFT |
           (uint64_t)(barrier->phase + 1) << RACE_CLOCK_SHIFT;
}

void race_proxy_fence(void)
{
    struct thread *thread = own();

    thread->proxy_era = race.era;
    thread->proxy_clock = thread->clocks[race.thread];
    tick(race.thread);
}

bool race_proxy_fenced(uint64_t stamp)
{
    const struct thread *thread = &threads.of[race_thread_of(stamp)];
    const uint32_t era = race_era_of(stamp);

    if (race_thread_of(stamp) >= RACE_THREADS_MAX) {
        return true;
    }
    return thread->proxy_era > era ||
           (thread->proxy_era == era && thread->proxy_clock >= race_clock_of(stamp));
}
