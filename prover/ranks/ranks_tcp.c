/* ranks_tcp.c - see ranks_team.h. */
#include "prover/ranks/ranks_team.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/steady.h"

#define LOOK_MS  1000
#define LINGER_S 2

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
    struct ranks_team *team;
    const struct ranks_transfer *transfers;
    uint32_t count;
    struct pair *pairs; /* per rank */
    struct pollfd *watched;
    uint32_t *watched_ranks;
    uint64_t moved_ns;  /* when anything moved last */
    bool between_steps; /* a rank may take long, or end as it should */
};

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

/* Is what errno says only that nothing moves now? */
static bool is_later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static enum status send_some(struct tcp_exchange *exchange, uint32_t rank, struct error *error)
{
    struct tcp_way *way = &exchange->pairs[rank].out;
    const int socket = exchange->team->peers[rank].socket;

    while (way->next < exchange->count) {
        const struct ranks_transfer *transfer = &exchange->transfers[way->next];
        const bool in_head = way->done < RANKS_FRAME_SIZE;
        const uint8_t *from;
        ssize_t moved;

        if (!way->sealed) {
            ranks_team_write_head(way->head, exchange->team, transfer,
                                  exchange->team->peers[rank].sent);
            way->sealed = true;
        }
        from = in_head ? way->head + way->done
                       : (const uint8_t *)transfer->bytes + (way->done - RANKS_FRAME_SIZE);
        moved = send(socket, from,
                     (in_head ? RANKS_FRAME_SIZE : transfer->size + RANKS_FRAME_SIZE) - way->done,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
        if (moved < 0) {
            return is_later() ? STATUS_OK
                              : ranks_team_lost(exchange->team, rank, error, "has hung up");
        }
        exchange->moved_ns = steady_ns();
        way->done += (size_t)moved;
        if (way->done == RANKS_FRAME_SIZE + transfer->size) {
            exchange->team->peers[rank].sent++;
            way->next++;
            find_next(exchange, way, rank, true);
        }
    }
    return STATUS_OK;
}

/* A whole message: true where it is the one. Without the right seal it is dropped and counted. */
static enum status check_message(bool *good, const struct tcp_exchange *exchange,
                                 const struct tcp_way *way, uint32_t rank, struct error *error)
{
    struct ranks_team *team = exchange->team;
    const struct ranks_transfer *transfer = &exchange->transfers[way->next];

    *good = ranks_frame_is_sealed(way->head, &team->key, transfer->bytes, transfer->size);
    if (!*good) {
        team->dropped++;
        return STATUS_OK;
    }
    return ranks_team_check(team, way->head, transfer, team->peers[rank].received++, error);
}

static enum status receive_some(struct tcp_exchange *exchange, uint32_t rank, struct error *error)
{
    struct tcp_way *way = &exchange->pairs[rank].in;
    const int socket = exchange->team->peers[rank].socket;

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
            return ranks_team_lost(exchange->team, rank, error,
                                   way->done == 0 ? "has hung up"
                                                  : "hung up in the middle of a message");
        }
        exchange->moved_ns = steady_ns();
        way->done += (size_t)moved;
        if (way->done == RANKS_FRAME_SIZE) {
            TRY(ranks_team_check_head(exchange->team, way->head, transfer, error));
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
    const struct ranks_team *team = exchange->team;
    uint32_t watched = 0;

    *moving = 0;
    for (int others = 0; others < 2; others++) {
        for (uint32_t rank = 0; rank < team->link.rank_count; rank++) {
            const struct pair *pair = &exchange->pairs[rank];
            const short events = (short)((pair->out.next < exchange->count ? POLLOUT : 0) |
                                         (pair->in.next < exchange->count ? POLLIN : 0));

            if (rank == team->link.rank || (events == 0) != others ||
                (others && exchange->between_steps)) {
                continue;
            }
            exchange->watched[watched] = (struct pollfd){.fd = team->peers[rank].socket,
                                                         .events = others ? POLLRDHUP : events};
            exchange->watched_ranks[watched++] = rank;
        }
        *moving = others ? *moving : watched;
    }
    return watched;
}

/* What was seen of one rank. */
static enum status look_at(struct tcp_exchange *exchange, uint32_t rank, int seen,
                           struct error *error)
{
    const struct pair *pair = &exchange->pairs[rank];

    if ((seen & (POLLIN | POLLHUP | POLLERR)) != 0 && pair->in.next < exchange->count) {
        TRY(receive_some(exchange, rank, error));
    } else if ((seen & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) != 0) {
        return ranks_team_lost(exchange->team, rank, error, "has hung up");
    }
    return (seen & POLLOUT) != 0 ? send_some(exchange, rank, error) : STATUS_OK;
}

static enum status move_all(struct tcp_exchange *exchange, struct error *error)
{
    const uint64_t limit = ranks_team_limit(exchange->team, exchange->transfers, exchange->count);
    uint32_t watched;
    uint32_t moving;

    exchange->between_steps = ranks_team_is_idle(exchange->transfers, exchange->count);
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
            return ranks_team_late(exchange->team, exchange->watched_ranks[0], limit, error);
        }
    }
}

static enum status exchange_all(void *context, const struct ranks_transfer *transfers,
                                uint32_t count, struct error *error)
{
    struct ranks_team *team = context;
    const uint32_t ranks = team->link.rank_count;
    struct tcp_exchange exchange = {.team = team,
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

/* A rank that noticed that another one is gone stays a moment: the rest name that one, not it. */
static void close_sockets(struct ranks_team *team)
{
    if (team->lost && team->link.rank != 0) {
        (void)sleep(LINGER_S);
    }
    for (uint32_t i = 0; team->peers != NULL && i < team->link.rank_count; i++) {
        if (team->peers[i].socket >= 0) {
            (void)close(team->peers[i].socket);
        }
    }
}

enum status ranks_tcp_open(struct ranks_team *team, uint32_t rank, uint32_t rank_count,
                           struct error *error)
{
    TRY(ranks_team_open(team, rank, rank_count, error));
    team->link.exchange = exchange_all;
    team->sealed = true;
    team->close = close_sockets;
    return STATUS_OK;
}
