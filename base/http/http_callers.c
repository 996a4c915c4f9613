/* http_callers.c - see http_callers.h. */
#include "base/http/http_callers.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SPARE 64 /* places of callers that were sent away and are still there, at least */

/* An IPv4 address, or the first 64 bits of an IPv6 address; the family stands before it. */
struct network {
    uint8_t bytes[12];
};

struct http_caller {
    int socket;
    bool is_here; /* the place is taken */
    bool is_sent_away;
    uint64_t number; /* in the order of coming */
    size_t bytes;    /* of its answer */
    struct network network;
    enum http_turn turn;
    uint64_t since_ms; /* of the turn, or of the last look at its pace */
    uint64_t moved;    /* bytes over the line by then */
};

struct http_callers {
    struct http_limits limits;
    pthread_mutex_t lock; /* covers all below */
    struct http_caller *all;
    uint32_t places;
    uint64_t came;
    uint32_t here; /* and not sent away */
    size_t bytes;
};

uint32_t http_callers_places(const struct http_limits *limits)
{
    return limits->room + limits->room / 4 + SPARE;
}

struct http_callers *http_callers_new(const struct http_limits *limits)
{
    struct http_callers *made = calloc(1, sizeof(*made));

    if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return NULL;
    }
    made->limits = *limits;
    made->places = http_callers_places(limits);
    made->all = calloc(made->places, sizeof(*made->all));
    if (made->all == NULL) {
        http_callers_free(made);
        return NULL;
    }
    return made;
}

void http_callers_free(struct http_callers *callers)
{
    if (callers != NULL) {
        (void)pthread_mutex_destroy(&callers->lock);
        free(callers->all);
        free(callers);
    }
}

/* ---- networks ------------------------------------------------------------------------- */

static struct network network_of(const struct sockaddr *address)
{
    struct network network = {{0}};

    if (address != NULL && address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;

        network.bytes[0] = 4;
        memcpy(network.bytes + 1, &four->sin_addr, 4);
    } else if (address != NULL && address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;
        bool mapped = IN6_IS_ADDR_V4MAPPED(&six->sin6_addr);

        network.bytes[0] = mapped ? 4 : 6;
        memcpy(network.bytes + 1, six->sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 8);
    }
    return network;
}

static bool is_live(const struct http_caller *caller)
{
    return caller->is_here && !caller->is_sent_away;
}

static uint32_t count_of(const struct http_callers *callers, const struct network *network)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < callers->places; i++) {
        count += is_live(&callers->all[i]) &&
                 memcmp(&callers->all[i].network, network, sizeof(*network)) == 0;
    }
    return count;
}

/* ---- who has to go ---------------------------------------------------------------------- */

static void send_away(struct http_callers *callers, struct http_caller *caller)
{
    (void)shutdown(caller->socket, SHUT_RDWR);
    caller->is_sent_away = true;
    callers->here--;
    callers->bytes -= caller->bytes;
    caller->bytes = 0;
}

/* Has a to go before b? Who has not asked goes first; who waits for us, last; else the oldest. */
static bool goes_before(const struct http_caller *a, const struct http_caller *b)
{
    int rank_a = a->turn == HTTP_TURN_HEAD ? 0 : a->turn == HTTP_TURN_WORK ? 2 : 1;
    int rank_b = b->turn == HTTP_TURN_HEAD ? 0 : b->turn == HTTP_TURN_WORK ? 2 : 1;

    return rank_a != rank_b ? rank_a < rank_b : a->number < b->number;
}

/* Of a network, but for one; NULL: nobody. */
static struct http_caller *first_to_go(const struct http_callers *callers,
                                       const struct network *network, const struct http_caller *but)
{
    struct http_caller *first = NULL;

    for (uint32_t i = 0; i < callers->places; i++) {
        struct http_caller *caller = &callers->all[i];

        if (is_live(caller) && caller != but &&
            memcmp(&caller->network, network, sizeof(*network)) == 0 &&
            (first == NULL || goes_before(caller, first))) {
            first = caller;
        }
    }
    return first;
}

static int compare_networks(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct network));
}

/* The network that has most connections, of several the one whose first to go comes first. */
static struct http_caller *find_victim(const struct http_callers *callers,
                                       const struct http_caller *but)
{
    struct network *networks = calloc(callers->places, sizeof(*networks));
    struct http_caller *victim = NULL;
    uint32_t count = 0;
    uint32_t most = 0;

    for (uint32_t i = 0; networks != NULL && i < callers->places; i++) {
        if (is_live(&callers->all[i])) {
            networks[count++] = callers->all[i].network;
        }
    }
    if (count > 0) {
        /* Sorted, the connections of one network stand together: one pass counts them. */
        qsort(networks, count, sizeof(*networks), compare_networks);
    }
    for (uint32_t i = 0; i < count;) {
        uint32_t end = i;

        while (end < count && compare_networks(&networks[i], &networks[end]) == 0) {
            end++;
        }
        most = end - i > most ? end - i : most;
        i = end;
    }
    for (uint32_t i = 0; i < count;) {
        uint32_t end = i;

        while (end < count && compare_networks(&networks[i], &networks[end]) == 0) {
            end++;
        }
        /* Of several networks with as many connections, the one whose caller should go first loses
         * it. */
        if (end - i == most) {
            struct http_caller *first = first_to_go(callers, &networks[i], but);

            victim =
                first != NULL && (victim == NULL || goes_before(first, victim)) ? first : victim;
        }
        i = end;
    }
    free(networks);
    return victim;
}

/* ---- coming and going ------------------------------------------------------------------- */

/* Bytes that the system brought to the caller's machine, and from there. */
static uint64_t bytes_moved(int socket)
{
    struct tcp_info about = {.tcpi_state = 0};
    socklen_t size = sizeof(about);

    return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &about, &size) == 0
               ? about.tcpi_bytes_acked + about.tcpi_bytes_received
               : 0;
}

static void make_room(struct http_callers *callers, struct http_caller *caller)
{
    const struct http_limits *limits = &callers->limits;
    struct http_caller *victim = NULL;

    if (limits->per_network > 0 && count_of(callers, &caller->network) > limits->per_network) {
        victim = first_to_go(callers, &caller->network, caller);
        victim = victim == NULL || victim->turn != HTTP_TURN_HEAD ? caller : victim;
    } else if (callers->here > limits->room) {
        victim = find_victim(callers, caller);
        victim = victim == NULL ? caller : victim;
    }
    if (victim != NULL) {
        send_away(callers, victim);
    }
}

struct http_caller *http_callers_come(struct http_callers *callers, int socket,
                                      const struct sockaddr *address, uint64_t now_ms)
{
    struct http_caller *caller = callers->all;

    (void)pthread_mutex_lock(&callers->lock);
    while (caller < callers->all + callers->places && caller->is_here) {
        caller++;
    }
    if (caller == callers->all + callers->places) {
        caller = NULL;
    } else {
        *caller = (struct http_caller){.socket = socket,
                                       .is_here = true,
                                       .number = callers->came++,
                                       .network = network_of(address),
                                       .since_ms = now_ms};
        callers->here++;
        make_room(callers, caller);
    }
    (void)pthread_mutex_unlock(&callers->lock);
    return caller;
}

void http_callers_go(struct http_callers *callers, struct http_caller *caller)
{
    (void)pthread_mutex_lock(&callers->lock);
    if (!caller->is_sent_away) {
        callers->here--;
        callers->bytes -= caller->bytes;
    }
    caller->is_here = false;
    (void)pthread_mutex_unlock(&callers->lock);
}

/* The oldest with an answer that waits, but for one. */
static struct http_caller *oldest_reader(const struct http_callers *callers,
                                         const struct http_caller *but)
{
    struct http_caller *oldest = NULL;

    for (uint32_t i = 0; i < callers->places; i++) {
        struct http_caller *caller = &callers->all[i];

        if (is_live(caller) && caller != but && caller->bytes > 0 &&
            (oldest == NULL || caller->number < oldest->number)) {
            oldest = caller;
        }
    }
    return oldest;
}

void http_callers_turn(struct http_callers *callers, struct http_caller *caller,
                       enum http_turn turn, size_t bytes, uint64_t now_ms)
{
    struct http_caller *oldest;

    (void)pthread_mutex_lock(&callers->lock);
    if (is_live(caller)) {
        caller->turn = turn;
        caller->since_ms = now_ms;
        caller->moved = bytes_moved(caller->socket);
        callers->bytes += bytes - caller->bytes;
        caller->bytes = bytes;
        while (callers->bytes > callers->limits.bytes_max &&
               (oldest = oldest_reader(callers, caller)) != NULL) {
            send_away(callers, oldest);
        }
    }
    (void)pthread_mutex_unlock(&callers->lock);
}

/* ---- who is too slow -------------------------------------------------------------------- */

static bool is_too_slow(struct http_caller *caller, const struct http_limits *limits,
                        uint64_t now_ms)
{
    uint64_t took_ms = now_ms > caller->since_ms ? now_ms - caller->since_ms : 0;
    uint64_t moved;
    bool slow;

    if (caller->turn == HTTP_TURN_WORK) {
        return false;
    }
    if (caller->turn == HTTP_TURN_HEAD) {
        return took_ms > limits->head_ms;
    }
    if (took_ms < limits->pace_ms) {
        return false;
    }
    moved = bytes_moved(caller->socket);
    slow = (moved - caller->moved) * 1000 < (uint64_t)limits->trickle * took_ms;
    caller->moved = moved;
    caller->since_ms = now_ms;
    return slow;
}

void http_callers_look(struct http_callers *callers, uint64_t now_ms)
{
    (void)pthread_mutex_lock(&callers->lock);
    for (uint32_t i = 0; i < callers->places; i++) {
        struct http_caller *caller = &callers->all[i];

        if (is_live(caller) && is_too_slow(caller, &callers->limits, now_ms)) {
            send_away(callers, caller);
        }
    }
    (void)pthread_mutex_unlock(&callers->lock);
}
