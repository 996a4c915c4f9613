/* fetch_pace.c - see fetch_pace.h. */
#include "proofs/mirror/fetch_pace.h"

#include <time.h>

#include "base/http/http_client.h"
#include "base/steady.h"

enum {
    READ_MIN = 1024, /* libcurl's least */
    READ_MAX = 16384,
    READS_A_SECOND = 8,
    SHARERS_MAX = 64, /* transfers at once, twice those of a set of mirrors */
};

#define SECOND_NS UINT64_C(1000000000)
#define LOOK_NS   UINT64_C(50000000) /* how often a pause asks whether it is stopped */

/* When these bytes are paid for, if they are paid after all others. */
static uint64_t book_bytes(struct fetch_pace *pace, size_t bytes)
{
    uint64_t price = (uint64_t)((double)bytes * (double)SECOND_NS / (double)pace->bytes_max);
    uint64_t before = atomic_load(&pace->paid_at_ns);
    uint64_t now = steady_ns();
    uint64_t after;

    do {
        after = (before > now ? before : now) + price;
    } while (!atomic_compare_exchange_weak(&pace->paid_at_ns, &before, after));
    return after;
}

void fetch_pace_pay(struct fetch_pace *pace, size_t bytes, bool (*stopped)(void *context),
                    void *context)
{
    uint64_t until, now;

    if (pace->bytes_max == 0 || bytes == 0) {
        return;
    }
    until = book_bytes(pace, bytes);
    while ((now = steady_ns()) < until && !stopped(context)) {
        uint64_t rest = until - now < LOOK_NS ? until - now : LOOK_NS;

        (void)nanosleep(&(struct timespec){.tv_nsec = (long)rest}, NULL);
    }
}

size_t fetch_pace_read_max(const struct fetch_pace *pace)
{
    uint64_t part = pace->bytes_max / READS_A_SECOND;

    if (pace->bytes_max == 0 || part > READ_MAX) {
        return READ_MAX;
    }
    return part < READ_MIN ? READ_MIN : (size_t)part;
}

uint64_t fetch_pace_trickle(const struct fetch_pace *pace)
{
    uint64_t part = pace->bytes_max / SHARERS_MAX;

    if (pace->bytes_max == 0 || part > HTTP_CLIENT_TRICKLE) {
        return HTTP_CLIENT_TRICKLE;
    }
    return part == 0 ? 1 : part;
}
