/* ranks_tcp.c - see ranks_tcp.h. */
#include "prover/ranks/ranks_tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/steady.h"
#include "prover/ranks/ranks_frame.h"

#define LOOK_MS   1000
#define LINGER_S  2
#define SLOWER_BY 10 /* than the longest of the last steps: that slow a rank is gone */

/* What moves between two ranks now, one message each way at a time. */
struct tcp_way {
    uint32_t next; /* of the transfers: the one that moves, or count */
    size_t done;   /* bytes of it, with its head */
    bool sealed;   /* of one that goes out: its head is written */
    uint8_t head[RANKS_FRAME_SIZE];
};

struct pair {
    struct tcp_way out;
    struct tcp_way in;
};

struct tcp_exchange {
    struct ranks_tcp *tcp;
    const struct ranks_transfer *transfers;
    uint32_t count;
    struct pair *pairs; /* per rank */
    struct pollfd *watched;
    uint32_t *watched_ranks;
    uint64_t moved_ns;  /* when anything moved last */
    bool between_steps; /* a rank may take long, or end as it should */
};

/* ---- limits ------------------------------------------------------------------------------ */

uint64_t ranks_tcp_limit(const struct ranks_tcp *tcp)
{
    uint64_t longest = 0;

    for (uint32_t i = 0; i < RANKS_STEPS_SEEN; i++) {
        longest = tcp->step_ns[i] > longest ? tcp->step_ns[i] : longest;
    }
    if (tcp->step == 0) { /* it takes in files and kernels that later ones find */
        return tcp->wait_least * SLOWER_BY;
    }
    longest = longest * SLOWER_BY / 1000000000u;
    return longest > tcp->wait_least ? longest : tcp->wait_least;
}

void ranks_tcp_stepped(struct ranks_tcp *tcp, uint64_t step_ns)
{
    tcp->step_ns[tcp->step++ % RANKS_STEPS_SEEN] = step_ns;
}

static const char *host_of(const struct tcp_exchange *exchange, uint32_t rank)
{
    return exchange->tcp->peers[rank].host;
}

static enum status lost_rank(const struct tcp_exchange *exchange, uint32_t rank,
                             struct error *error, const char *how)
{
    exchange->tcp->lost = true;
    (void)error_set(error, STATUS_RANK_LOST, "rank %u (%s) %s", rank, host_of(exchange, rank), how);
    error_advise(error,
                 "'lockstep prover resume' goes on from the last checkpoint, with any number "
                 "of ranks");
    return STATUS_RANK_LOST;
}

/* ---- one way ----------------------------------------------------------------------------- */

static void find_next(const struct tcp_exchange *exchange, struct tcp_way *way, uint32_t rank,
                      bool sends)
{
    const struct ranks_transfer *transfers = exchange->transfers;

    while (way->next < exchange->count &&
           (transfers[way->next].peer != rank || transfers[way->next].sends != sends ||
            transfers[way->next].size == 0)) {
        way->next++;
    }
    way->done = 0;
    way->sealed = false;
}

static void write_head(const struct tcp_exchange *exchange, struct tcp_way *way, uint32_t rank)
{
    struct ranks_tcp *tcp = exchange->tcp;
    const struct ranks_transfer *transfer = &exchange->transfers[way->next];
    const struct ranks_frame frame = {.from = tcp->link.rank,
                                      .to = rank,
                                      .tag = transfer->tag,
                                      .step = tcp->step,
                                      .number = tcp->peers[rank].sent,
                                      .size = transfer->size,
                                      .job = tcp->job};

    ranks_frame_write(way->head, &frame, &tcp->key, transfer->bytes);
}

/* Is what errno says only that nothing moves now? */
static bool is_later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static enum status send_some(struct tcp_exchange *exchange, uint32_t rank, struct error *error)
{
    struct tcp_way *way = &exchange->pairs[rank].out;
    const int socket = exchange->tcp->peers[rank].socket;

    while (way->next < exchange->count) {
        const struct ranks_transfer *transfer = &exchange->transfers[way->next];
        const bool in_head = way->done < RANKS_FRAME_SIZE;
        const uint8_t *from;
        ssize_t moved;

        if (!way->sealed) {
            write_head(exchange, way, rank);
            way->sealed = true;
        }
        from = in_head ? way->head + way->done
                       : (const uint8_t *)transfer->bytes + (way->done - RANKS_FRAME_SIZE);
        moved = send(socket, from,
                     (in_head ? RANKS_FRAME_SIZE : transfer->size + RANKS_FRAME_SIZE) - way->done,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
        if (moved < 0) {
            return is_later() ? STATUS_OK : lost_rank(exchange, rank, error, "has hung up");
        }
        exchange->moved_ns = steady_ns();
        way->done += (size_t)moved;
        if (way->done == RANKS_FRAME_SIZE + transfer->size) {
            exchange->tcp->peers[rank].sent++;
            way->next++;
            find_next(exchange, way, rank, true);
        }
    }
    return STATUS_OK;
}

/* The head that came before its bytes: may they be those that the transfer waits for? */
static enum status check_head(const struct tcp_exchange *exchange, const struct tcp_way *way,
                              uint32_t rank, struct error *error)
{
    struct ranks_frame frame;

    return ranks_frame_read(&frame, way->head) && frame.size == exchange->transfers[way->next].size
               ? STATUS_OK
               : lost_rank(exchange, rank, error,
                           "sent what is no message of this place of this run");
}

/* A whole message: true where it is the one. Without the right seal it is dropped and counted. */
static enum status check_message(bool *good, const struct tcp_exchange *exchange,
                                 const struct tcp_way *way, uint32_t rank, struct error *error)
{
    struct ranks_tcp *tcp = exchange->tcp;
    const struct ranks_transfer *transfer = &exchange->transfers[way->next];
    struct ranks_frame frame;

    (void)!ranks_frame_read(&frame, way->head); /* check_head() has looked */
    *good = ranks_frame_is_sealed(way->head, &tcp->key, transfer->bytes, transfer->size);
    if (!*good) {
        tcp->dropped++;
        return STATUS_OK;
    }
    if (!ranks_frame_is_whole(way->head, transfer->bytes, transfer->size)) {
        return lost_rank(exchange, rank, error, "sent a message whose checksum is wrong");
    }
    if (frame.from != rank || frame.to != tcp->link.rank || frame.tag != transfer->tag ||
        frame.step != tcp->step || frame.number != tcp->peers[rank].received ||
        !digest_equal(&frame.job, &tcp->job)) {
        return lost_rank(exchange, rank, error, "is at another place of the run");
    }
    tcp->peers[rank].received++;
    return STATUS_OK;
}

static enum status receive_some(struct tcp_exchange *exchange, uint32_t rank, struct error *error)
{
    struct tcp_way *way = &exchange->pairs[rank].in;
    const int socket = exchange->tcp->peers[rank].socket;

    while (way->next < exchange->count) {
        const struct ranks_transfer *transfer = &exchange->transfers[way->next];
        const bool in_head = way->done < RANKS_FRAME_SIZE;
        uint8_t *to = in_head ? way->head + way->done
                              : (uint8_t *)transfer->bytes + (way->done - RANKS_FRAME_SIZE);
        const ssize_t moved =
            recv(socket, to,
                 (in_head ? RANKS_FRAME_SIZE : transfer->size + RANKS_FRAME_SIZE) - way->done,
                 MSG_DONTWAIT);
        bool good = false;

        if (moved < 0 && is_later()) {
            return STATUS_OK;
        }
        if (moved <= 0) {
            return lost_rank(exchange, rank, error,
                             way->done == 0 ? "has hung up" : "hung up in the middle of a message");
        }
        exchange->moved_ns = steady_ns();
        way->done += (size_t)moved;
        if (way->done == RANKS_FRAME_SIZE) {
            TRY(check_head(exchange, way, rank, error));
        }
        if (way->done == RANKS_FRAME_SIZE + transfer->size) {
            TRY(check_message(&good, exchange, way, rank, error));
            way->next += good;
            find_next(exchange, way, rank, false);
        }
    }
    return STATUS_OK;
}

/* ---- all ways ---------------------------------------------------------------------------- */

/* Watches what moves, and first; then, in a step, the others too: so all name the one that is gone.
 * *moving: how many are waited for. */
static uint32_t watch_sockets(struct tcp_exchange *exchange, uint32_t *moving)
{
    const struct ranks_tcp *tcp = exchange->tcp;
    uint32_t watched = 0;

    *moving = 0;
    for (int others = 0; others < 2; others++) {
        for (uint32_t rank = 0; rank < tcp->link.rank_count; rank++) {
            const struct pair *pair = &exchange->pairs[rank];
            const short events = (short)((pair->out.next < exchange->count ? POLLOUT : 0) |
                                         (pair->in.next < exchange->count ? POLLIN : 0));

            if (rank == tcp->link.rank || (events == 0) != others ||
                (others && exchange->between_steps)) {
                continue;
            }
            exchange->watched[watched] = (struct pollfd){.fd = tcp->peers[rank].socket,
                                                         .events = others ? POLLRDHUP : events};
            exchange->watched_ranks[watched++] = rank;
        }
        *moving = others ? *moving : watched;
    }
    return watched;
}

static enum status too_late(const struct tcp_exchange *exchange, uint64_t limit,
                            struct error *error)
{
    char how[64];

    (void)snprintf(how, sizeof(how), "moved nothing for %llu s", (unsigned long long)limit);
    return lost_rank(exchange, exchange->watched_ranks[0], error, how);
}

static bool is_between_steps(const struct tcp_exchange *exchange)
{
    for (uint32_t i = 0; i < exchange->count; i++) {
        if (exchange->transfers[i].idle) {
            return true;
        }
    }
    return false;
}

/* What was seen of one rank. */
static enum status look_at(struct tcp_exchange *exchange, uint32_t rank, int seen,
                           struct error *error)
{
    const struct pair *pair = &exchange->pairs[rank];

    if ((seen & (POLLIN | POLLHUP | POLLERR)) != 0 && pair->in.next < exchange->count) {
        TRY(receive_some(exchange, rank, error));
    } else if ((seen & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) != 0) {
        return lost_rank(exchange, rank, error, "has hung up");
    }
    return (seen & POLLOUT) != 0 ? send_some(exchange, rank, error) : STATUS_OK;
}

static enum status move_all(struct tcp_exchange *exchange, struct error *error)
{
    uint64_t limit = ranks_tcp_limit(exchange->tcp);
    uint32_t watched;
    uint32_t moving;

    exchange->between_steps = is_between_steps(exchange);
    limit = exchange->between_steps ? RANKS_WAIT_IDLE : limit;
    exchange->moved_ns = steady_ns();
    for (;;) {
        watched = watch_sockets(exchange, &moving);
        if (moving == 0) {
            return STATUS_OK;
        }
        if (poll(exchange->watched, watched, LOOK_MS) < 0 && errno != EINTR) {
            return error_set_errno(error, "the connections of the ranks");
        }
        for (uint32_t i = 0; i < watched; i++) {
            TRY(look_at(exchange, exchange->watched_ranks[i], exchange->watched[i].revents, error));
        }
        if (steady_ns() - exchange->moved_ns > limit * 1000000000u) {
            return too_late(exchange, limit, error);
        }
    }
}

static enum status exchange_all(void *context, const struct ranks_transfer *transfers,
                                uint32_t count, struct error *error)
{
    struct ranks_tcp *tcp = context;
    const uint32_t ranks = tcp->link.rank_count;
    struct tcp_exchange exchange = {.tcp = tcp,
                                    .transfers = transfers,
                                    .count = count,
                                    .pairs = calloc(ranks, sizeof(*exchange.pairs)),
                                    .watched = calloc(ranks, sizeof(*exchange.watched)),
                                    .watched_ranks =
                                        calloc(ranks, sizeof(*exchange.watched_ranks))};
    enum status status;

    if (exchange.pairs == NULL || exchange.watched == NULL || exchange.watched_ranks == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for an exchange of %u ranks", ranks);
    } else {
        for (uint32_t rank = 0; rank < ranks; rank++) {
            find_next(&exchange, &exchange.pairs[rank].out, rank, true);
            find_next(&exchange, &exchange.pairs[rank].in, rank, false);
        }
        status = move_all(&exchange, error);
    }
    free(exchange.pairs);
    free(exchange.watched);
    free(exchange.watched_ranks);
    return status;
}

/* ---- its life ---------------------------------------------------------------------------- */

enum status ranks_tcp_open(struct ranks_tcp *tcp, uint32_t rank, uint32_t rank_count,
                           struct error *error)
{
    *tcp = (struct ranks_tcp){.link = {rank, rank_count, exchange_all, tcp},
                              .peers = calloc(rank_count, sizeof(*tcp->peers)),
                              .wait_least = RANKS_WAIT_LEAST};
    if (tcp->peers == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u ranks", rank_count);
    }
    for (uint32_t i = 0; i < rank_count; i++) {
        tcp->peers[i].socket = -1;
    }
    return STATUS_OK;
}

/* A rank that noticed that another one is gone stays a moment: the rest name that one, not it. */
void ranks_tcp_close(struct ranks_tcp *tcp)
{
    if (tcp->lost && tcp->link.rank != 0) {
        (void)sleep(LINGER_S);
    }
    for (uint32_t i = 0; tcp->peers != NULL && i < tcp->link.rank_count; i++) {
        if (tcp->peers[i].socket >= 0) {
            (void)close(tcp->peers[i].socket);
        }
    }
    free(tcp->peers);
    secret_wipe(&tcp->key, sizeof(tcp->key));
    tcp->peers = NULL;
}
