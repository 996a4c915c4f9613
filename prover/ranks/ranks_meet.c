/* ranks_meet.c - see ranks_meet.h. */
#include "prover/ranks/ranks_meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/steady.h"
#include "prover/ranks/ranks_frame.h"

enum {
    HELLO_MS = 3000, /* for a caller's first message */
    LOOK_MS = 200,
    BACKLOG = 64,
    NONCE_SIZE = 32,
    HELLO_SIZE = 4 + 4 + NONCE_SIZE, /* number of ranks, own port, nonce */
    TABLE_ROW = RANKS_HOST_MAX + 4,  /* host and port of a rank */
    CALLERS_SPARE = 64,              /* callers at once, beside the ranks */
    FILES_SPARE = 64,                /* descriptors, beside those of callers and ranks */
    KEEP_IDLE_S = 20,
    KEEP_EVERY_S = 10,
    KEEP_COUNT = 4,
};

/* Never a tag of a step. */
enum {
    TAG_HELLO = 0x4845,
    TAG_TABLE = 0x5441,
};

/* Somebody who has not proved yet that it is a rank. */
struct caller {
    int socket;
    uint64_t end_ms;
    uint8_t nonce[NONCE_SIZE]; /* its challenge */
    uint8_t message[RANKS_FRAME_SIZE + HELLO_SIZE];
    size_t done; /* bytes of the message */
};

struct meeting {
    struct ranks_team *team;
    struct ranks_key secret;
    int listener;
    int stop;
    uint64_t end_ms;
    uint16_t *ports; /* per rank: where it listens */
    struct caller *callers;
    struct pollfd *watched; /* listener, stop, callers */
    uint32_t caller_count;
};

/* ---- bytes ------------------------------------------------------------------------------- */

static bool wait_for(int socket, short events, uint64_t end_ms)
{
    struct pollfd watched = {.fd = socket, .events = events};

    for (;;) {
        const uint64_t now = steady_ms();
        const int got = poll(&watched, 1, now < end_ms ? (int)(end_ms - now) : 0);

        if (got > 0) {
            return true;
        }
        if (got == 0 || errno != EINTR) {
            return false;
        }
    }
}

static bool read_all(int socket, void *bytes, size_t size, uint64_t end_ms)
{
    for (size_t done = 0; done < size;) {
        ssize_t got;

        if (!wait_for(socket, POLLIN, end_ms)) {
            return false;
        }
        got = recv(socket, (uint8_t *)bytes + done, size - done, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool write_all(int socket, const void *bytes, size_t size, uint64_t end_ms)
{
    for (size_t done = 0; done < size;) {
        ssize_t sent;

        if (!wait_for(socket, POLLOUT, end_ms)) {
            return false;
        }
        sent =
            send(socket, (const uint8_t *)bytes + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        done += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static bool say_sealed(const struct meeting *meeting, int socket, uint32_t to, uint32_t tag,
                       const uint8_t nonce[NONCE_SIZE], const void *bytes, size_t size)
{
    const struct ranks_frame frame = {
        .from = meeting->team->link.rank, .to = to, .tag = tag, .size = size};
    uint8_t head[RANKS_FRAME_SIZE];
    struct ranks_key key;

    ranks_seal_key_of_key(&key, &meeting->secret, nonce, NONCE_SIZE);
    ranks_frame_write(head, &frame, &key, bytes);
    secret_wipe(&key, sizeof(key));
    return write_all(socket, head, sizeof(head), meeting->end_ms) &&
           write_all(socket, bytes, size, meeting->end_ms);
}

/* Is the message of this tag, and has the other end sealed it with our nonce? */
static bool is_from_rank(const struct meeting *meeting, const struct ranks_frame *frame,
                         uint32_t tag, const uint8_t nonce[NONCE_SIZE], const uint8_t *head,
                         const void *bytes)
{
    struct ranks_key key;
    bool good;

    ranks_seal_key_of_key(&key, &meeting->secret, nonce, NONCE_SIZE);
    good = frame->tag == tag && frame->to == meeting->team->link.rank &&
           ranks_frame_is_sealed(head, &key, bytes, frame->size);
    secret_wipe(&key, sizeof(key));
    return good;
}

/* ---- sockets ----------------------------------------------------------------------------- */

/* Sums go at once, and a machine that is gone is noticed. */
static void prepare_socket(int socket)
{
    const int on = 1;
    const int idle = KEEP_IDLE_S;
    const int every = KEEP_EVERY_S;
    const int count = KEEP_COUNT;

    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static uint16_t *port_in(struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)address)->sin6_port
                                          : &((struct sockaddr_in *)address)->sin_port;
}

static socklen_t size_of(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

static void write_host(char host[RANKS_HOST_MAX], const struct sockaddr_storage *address)
{
    const void *from = address->ss_family == AF_INET6
                           ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                           : (const void *)&((const struct sockaddr_in *)address)->sin_addr;

    if (inet_ntop(address->ss_family, from, host, RANKS_HOST_MAX) == NULL) {
        host[0] = '\0';
    }
}

static enum status listen_at(int *listener, uint16_t *port, struct sockaddr_storage *address,
                             struct error *error)
{
    socklen_t size = size_of(address);
    const int on = 1;

    *listener = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*listener < 0 || setsockopt(*listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(*listener, (struct sockaddr *)address, size) != 0 || listen(*listener, BACKLOG) != 0 ||
        getsockname(*listener, (struct sockaddr *)address, &size) != 0) {
        return error_set_errno(error, "no place for ranks to meet");
    }
    *port = ntohs(*port_in(address));
    return STATUS_OK;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
    const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;
    struct sockaddr_in four;

    if (address->ss_family == AF_INET6) {
        return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
    }
    memcpy(&four, address, sizeof(four));
    return ntohl(four.sin_addr.s_addr) >> 24 == 127;
}

/* Is the text an address, and a loopback one? */
static bool is_loopback_text(const char *host)
{
    struct sockaddr_storage address = {.ss_family = AF_INET};

    if (inet_pton(AF_INET, host, &((struct sockaddr_in *)&address)->sin_addr) == 1) {
        return is_loopback(&address);
    }
    address.ss_family = AF_INET6;
    return inet_pton(AF_INET6, host, &((struct sockaddr_in6 *)&address)->sin6_addr) == 1 &&
           is_loopback(&address);
}

/* "HOST:PORT" or "[ADDRESS]:PORT" apart. */
static bool split_place(char host[RANKS_PLACE_MAX], char port[8], const char *at)
{
    const char *colon = strrchr(at, ':');
    size_t length = colon == NULL ? 0 : (size_t)(colon - at);

    if (colon == NULL || length >= RANKS_PLACE_MAX || strlen(colon + 1) > 5) {
        return false;
    }
    if (length >= 2 && at[0] == '[' && at[length - 1] == ']') {
        at++;
        length -= 2;
    }
    memcpy(host, at, length);
    host[length] = '\0';
    (void)snprintf(port, 8, "%s", colon + 1);
    return true;
}

static enum status not_a_place(const char *place, struct error *error)
{
    return error_set(error, STATUS_USAGE, "'%s' is no place of rank 0: HOST:PORT", place);
}

enum status ranks_meet_listen(int *listener, char at[RANKS_PLACE_MAX], const char *place,
                              struct error *error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICHOST};
    struct sockaddr_storage address = {0};
    struct addrinfo *found = NULL;
    char host[RANKS_PLACE_MAX];
    char port[8];
    uint16_t number = 0;

    *listener = -1;
    if (!split_place(host, port, place)) {
        return not_a_place(place, error);
    }
    /* A machine's own name often means its loopback: at a name it listens everywhere. */
    if ((getaddrinfo(host, port, &hints, &found) != 0 &&
         getaddrinfo(NULL, port, &hints, &found) != 0) ||
        found->ai_addrlen > sizeof(address)) {
        return error_set(error, STATUS_USAGE, "'%s' is no address of this machine", place);
    }
    memcpy(&address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    TRY(listen_at(listener, &number, &address, error));
    (void)snprintf(at, RANKS_PLACE_MAX, strchr(host, ':') == NULL ? "%.240s:%u" : "[%.240s]:%u",
                   host, number);
    return STATUS_OK;
}

/* ---- who calls --------------------------------------------------------------------------- */

static void forget_caller(struct meeting *meeting, uint32_t at)
{
    meeting->callers[at] = meeting->callers[--meeting->caller_count];
}

static void drop_caller(struct meeting *meeting, uint32_t at)
{
    meeting->team->dropped++;
    (void)close(meeting->callers[at].socket);
    forget_caller(meeting, at);
}

/* A rank answers at once: who has been silent longest is none. */
static void drop_oldest(struct meeting *meeting)
{
    uint32_t oldest = 0;

    for (uint32_t i = 1; i < meeting->caller_count; i++) {
        oldest = meeting->callers[i].end_ms < meeting->callers[oldest].end_ms ? i : oldest;
    }
    drop_caller(meeting, oldest);
}

/* A caller that holds the secret: is it a rank that we wait for? */
static enum status check_caller(const struct meeting *meeting, uint32_t from, uint32_t count,
                                struct error *error)
{
    const struct ranks_link *link = &meeting->team->link;

    if (count != link->rank_count) {
        return error_set(error, STATUS_REFUSED,
                         "rank %u was started as one of %u ranks, and rank %u as one of %u", from,
                         count, link->rank, link->rank_count);
    }
    if (from <= link->rank || from >= link->rank_count || meeting->team->peers[from].socket >= 0) {
        return error_set(error, STATUS_REFUSED, "two processes say that they are rank %u", from);
    }
    return STATUS_OK;
}

static uint32_t callers_max(uint32_t ranks)
{
    return ranks + CALLERS_SPARE;
}

/* Takes a call and sends the challenge. */
static enum status greet_caller(struct meeting *meeting, struct error *error)
{
    const int socket = accept4(meeting->listener, NULL, NULL, SOCK_CLOEXEC);
    struct caller *caller;

    if (socket < 0 && (errno == EMFILE || errno == ENFILE) && meeting->caller_count > 0) {
        drop_oldest(meeting);
        return STATUS_OK;
    }
    if (socket < 0) { /* often it has gone again */
        return errno == EMFILE || errno == ENFILE ? error_set_errno(error, "the call of a rank")
                                                  : STATUS_OK;
    }
    prepare_socket(socket);
    if (meeting->caller_count == callers_max(meeting->team->link.rank_count)) {
        drop_oldest(meeting);
    }
    caller = &meeting->callers[meeting->caller_count++];
    *caller = (struct caller){.socket = socket, .end_ms = steady_ms() + HELLO_MS};
    TRY(secret_random(caller->nonce, NONCE_SIZE, error));
    if (!write_all(socket, caller->nonce, NONCE_SIZE, 0)) {
        drop_caller(meeting, meeting->caller_count - 1);
    }
    return STATUS_OK;
}

/* A caller whose message is there and sealed. nonces: of each rank, NULL where nobody answers it.
 * The caller is forgotten. */
static enum status seat_caller(struct meeting *meeting, uint32_t at, uint32_t from,
                               uint8_t (*nonces)[NONCE_SIZE], struct error *error)
{
    const struct caller caller = meeting->callers[at];
    const uint8_t *hello = caller.message + RANKS_FRAME_SIZE;
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    enum status status = check_caller(meeting, from, endian_load_be32(hello), error);

    forget_caller(meeting, at);
    if (status == STATUS_OK &&
        getpeername(caller.socket, (struct sockaddr *)&address, &size) != 0) {
        status = error_set_errno(error, "the call of a rank");
    }
    if (status != STATUS_OK) {
        (void)close(caller.socket);
        return status;
    }
    meeting->team->peers[from].socket = caller.socket;
    write_host(meeting->team->peers[from].host, &address);
    meeting->ports[from] = (uint16_t)endian_load_be32(hello + 4);
    if (nonces != NULL) {
        memcpy(nonces[from], hello + 8, NONCE_SIZE);
    }
    return STATUS_OK;
}

/* What a caller says now, or that it has said nothing for too long. */
static enum status hear_caller(struct meeting *meeting, uint32_t at, bool speaks,
                               uint8_t (*nonces)[NONCE_SIZE], struct error *error)
{
    struct caller *caller = &meeting->callers[at];
    struct ranks_frame frame;
    ssize_t got = -1;

    errno = EAGAIN;
    if (speaks) {
        got = recv(caller->socket, caller->message + caller->done,
                   sizeof(caller->message) - caller->done, MSG_DONTWAIT);
    }
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) ||
        steady_ms() > caller->end_ms) {
        drop_caller(meeting, at);
        return STATUS_OK;
    }
    caller->done += got > 0 ? (size_t)got : 0;
    if (caller->done < sizeof(caller->message)) {
        return STATUS_OK;
    }
    if (!ranks_frame_read(&frame, caller->message) || frame.size != HELLO_SIZE ||
        !is_from_rank(meeting, &frame, TAG_HELLO, caller->nonce, caller->message,
                      caller->message + RANKS_FRAME_SIZE)) {
        drop_caller(meeting, at);
        return STATUS_OK;
    }
    return seat_caller(meeting, at, frame.from, nonces, error);
}

/* The first rank above this one that is not there; rank_count: all are. */
static uint32_t missing_rank(const struct meeting *meeting)
{
    uint32_t rank = meeting->team->link.rank + 1;

    while (rank < meeting->team->link.rank_count && meeting->team->peers[rank].socket >= 0) {
        rank++;
    }
    return rank;
}

static enum status not_come(const struct meeting *meeting, uint32_t missing, struct error *error)
{
    (void)error_set(error, STATUS_RANK_LOST, "rank %u of %u has not come (dropped %llu)", missing,
                    meeting->team->link.rank_count, (unsigned long long)meeting->team->dropped);
    error_advise(error, "start all ranks within a minute, with one --ranks-at and one "
                        "LOCKSTEP_RANKS_SECRET; its own message says why a rank ended");
    return STATUS_RANK_LOST;
}

/* Hears all callers at once: one that is slow holds up nobody. */
static enum status take_callers(struct meeting *meeting, uint8_t (*nonces)[NONCE_SIZE],
                                struct error *error)
{
    struct pollfd *watched = meeting->watched;
    uint32_t missing;

    while ((missing = missing_rank(meeting)) < meeting->team->link.rank_count) {
        watched[0] = (struct pollfd){.fd = meeting->listener, .events = POLLIN};
        watched[1] = (struct pollfd){.fd = meeting->stop, .events = POLLIN};
        for (uint32_t i = 0; i < meeting->caller_count; i++) {
            watched[2 + i] = (struct pollfd){.fd = meeting->callers[i].socket, .events = POLLIN};
        }
        if (poll(watched, 2 + meeting->caller_count, LOOK_MS) >= 0) {
            if (watched[1].revents != 0) {
                return error_set(error, STATUS_STOPPED, "stopped before rank %u came", missing);
            }
            /* From the last: in the place of one that goes comes one that was heard. */
            for (uint32_t i = meeting->caller_count; i-- > 0;) {
                TRY(hear_caller(meeting, i, watched[2 + i].revents != 0, nonces, error));
            }
            TRY(watched[0].revents != 0 ? greet_caller(meeting, error) : STATUS_OK);
        }
        if (steady_ms() > meeting->end_ms) {
            return not_come(meeting, missing, error);
        }
    }
    return STATUS_OK;
}

/* ---- rank 0 ------------------------------------------------------------------------------ */

static enum status tell_all(const struct meeting *meeting, const uint8_t (*nonces)[NONCE_SIZE],
                            const uint8_t session[NONCE_SIZE], struct error *error)
{
    const uint32_t ranks = meeting->team->link.rank_count;
    const size_t size = NONCE_SIZE + (size_t)ranks * TABLE_ROW;
    uint8_t *table = calloc(1, size);
    enum status status = STATUS_OK;

    if (table == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a table of %u ranks", ranks);
    }
    memcpy(table, session, NONCE_SIZE);
    for (uint32_t rank = 1; rank < ranks; rank++) {
        uint8_t *row = table + NONCE_SIZE + (size_t)rank * TABLE_ROW;

        memcpy(row, meeting->team->peers[rank].host, RANKS_HOST_MAX);
        endian_store_be32(row + RANKS_HOST_MAX, meeting->ports[rank]);
    }
    for (uint32_t rank = 1; rank < ranks && status == STATUS_OK; rank++) {
        if (!say_sealed(meeting, meeting->team->peers[rank].socket, rank, TAG_TABLE, nonces[rank],
                        table, size)) {
            status = error_set(error, STATUS_RANK_LOST, "rank %u (%s) has hung up", rank,
                               meeting->team->peers[rank].host);
        }
    }
    free(table);
    return status;
}

/* Each rank has a descriptor, and each caller. */
static enum status allow_sockets(uint32_t ranks, struct error *error)
{
    const rlim_t wanted = ranks + callers_max(ranks) + FILES_SPARE;
    struct rlimit now;

    if (getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_cur >= wanted) {
        return STATUS_OK;
    }
    now.rlim_cur = wanted;
    if (now.rlim_max >= wanted && setrlimit(RLIMIT_NOFILE, &now) == 0) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED,
                    "%u ranks need %llu open files, and the system allows %llu", ranks,
                    (unsigned long long)wanted, (unsigned long long)now.rlim_max);
    error_advise(error, "raise the hard limit ('ulimit -Hn'), or take fewer ranks");
    return STATUS_REFUSED;
}

/* Closed also where it fails. */
static enum status open_meeting(struct meeting *meeting, struct ranks_team *team,
                                const char *secret, struct error *error)
{
    const uint32_t ranks = team->link.rank_count;

    *meeting = (struct meeting){.team = team,
                                .listener = -1,
                                .stop = -1,
                                .end_ms = steady_ms() + 1000 * team->wait_least,
                                .ports = calloc(ranks, sizeof(uint16_t)),
                                .callers = calloc(callers_max(ranks), sizeof(struct caller)),
                                .watched = calloc(2 + callers_max(ranks), sizeof(struct pollfd))};
    if (meeting->ports == NULL || meeting->callers == NULL || meeting->watched == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u ranks", ranks);
    }
    ranks_seal_key_of_text(&meeting->secret, secret);
    return allow_sockets(ranks, error);
}

static void close_meeting(struct meeting *meeting)
{
    while (meeting->callers != NULL && meeting->caller_count > 0) {
        drop_caller(meeting, 0);
    }
    free(meeting->ports);
    free(meeting->callers);
    free(meeting->watched);
    secret_wipe(&meeting->secret, sizeof(meeting->secret));
}

enum status ranks_meet_all(struct ranks_team *team, int listener, const char *secret, int stop,
                           struct error *error)
{
    uint8_t(*nonces)[NONCE_SIZE] = calloc(team->link.rank_count, sizeof(*nonces));
    uint8_t session[NONCE_SIZE];
    struct meeting meeting;
    enum status status = open_meeting(&meeting, team, secret, error);

    if (status == STATUS_OK && nonces == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for ranks");
    }
    if (status == STATUS_OK) {
        meeting.listener = listener;
        meeting.stop = stop;
        TRY_OUT(secret_random(session, sizeof(session), error));
        TRY_OUT(take_callers(&meeting, nonces, error));
        TRY_OUT(tell_all(&meeting, (const uint8_t(*)[NONCE_SIZE])nonces, session, error));
        ranks_seal_key_of_key(&team->key, &meeting.secret, session, sizeof(session));
    }
out:
    close_meeting(&meeting);
    free(nonces);
    return status;
}

/* ---- the others -------------------------------------------------------------------------- */

static int try_call(const struct addrinfo *found)
{
    for (; found != NULL; found = found->ai_next) {
        const int made = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (made >= 0 && connect(made, found->ai_addr, found->ai_addrlen) == 0) {
            prepare_socket(made);
            return made;
        }
        if (made >= 0) {
            (void)close(made);
        }
    }
    return -1;
}

/* Calls until somebody answers: rank 0 may have begun later than we. */
static enum status call_rank(int *socket, const struct meeting *meeting, uint32_t rank,
                             const char *host, const char *port, struct error *error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};

    for (;;) {
        struct addrinfo *found = NULL;
        const int got = getaddrinfo(host, port, &hints, &found);

        *socket = got == 0 ? try_call(found) : -1;
        if (got == 0) {
            freeaddrinfo(found);
        }
        if (*socket >= 0) {
            return STATUS_OK;
        }
        if (steady_ms() > meeting->end_ms) {
            (void)error_set(error, STATUS_RANK_LOST, "rank %u does not answer at %s:%s", rank, host,
                            port);
            error_advise(error, "--ranks-at must be an address of rank 0's machine that all ranks "
                                "reach; a name may mean its loopback");
            return STATUS_RANK_LOST;
        }
        (void)usleep(LOOK_MS * 1000);
    }
}

static enum status greet_rank(const struct meeting *meeting, int socket, uint32_t rank,
                              uint16_t port, const uint8_t nonce[NONCE_SIZE], struct error *error)
{
    uint8_t challenge[NONCE_SIZE];
    uint8_t hello[HELLO_SIZE];

    endian_store_be32(hello, meeting->team->link.rank_count);
    endian_store_be32(hello + 4, port);
    memcpy(hello + 8, nonce, NONCE_SIZE);
    if (!read_all(socket, challenge, sizeof(challenge), meeting->end_ms) ||
        !say_sealed(meeting, socket, rank, TAG_HELLO, challenge, hello, sizeof(hello))) {
        return error_set(error, STATUS_RANK_LOST, "rank %u has hung up", rank);
    }
    return STATUS_OK;
}

/* Where the others are, and the key of this meeting. */
static enum status hear_table(struct meeting *meeting, const uint8_t nonce[NONCE_SIZE],
                              struct error *error)
{
    struct ranks_team *team = meeting->team;
    const uint32_t ranks = team->link.rank_count;
    const size_t size = NONCE_SIZE + (size_t)ranks * TABLE_ROW;
    uint8_t *table = malloc(size);
    uint8_t head[RANKS_FRAME_SIZE];
    struct ranks_frame frame;

    if (table == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a table of %u ranks", ranks);
    }
    if (!read_all(team->peers[0].socket, head, sizeof(head), meeting->end_ms) ||
        !ranks_frame_read(&frame, head) || frame.size != size ||
        !read_all(team->peers[0].socket, table, size, meeting->end_ms) ||
        !is_from_rank(meeting, &frame, TAG_TABLE, nonce, head, table)) {
        free(table);
        (void)error_set(error, STATUS_RANK_LOST, "rank 0 (%s) has hung up", team->peers[0].host);
        error_advise(error, "its own message says why; all ranks need one LOCKSTEP_RANKS_SECRET");
        return STATUS_RANK_LOST;
    }
    ranks_seal_key_of_key(&team->key, &meeting->secret, table, NONCE_SIZE);
    for (uint32_t rank = 1; rank < ranks; rank++) {
        const uint8_t *row = table + NONCE_SIZE + (size_t)rank * TABLE_ROW;

        (void)snprintf(team->peers[rank].host, RANKS_HOST_MAX, "%.*s", RANKS_HOST_MAX - 1,
                       (const char *)row);
        meeting->ports[rank] = (uint16_t)endian_load_be32(row + RANKS_HOST_MAX);
    }
    free(table);
    return STATUS_OK;
}

/* A rank on rank 0's machine may have come to it by loopback: a rank of another machine finds it at
 * the place at which it found rank 0. */
static const char *host_for_us(const struct ranks_team *team, uint32_t rank)
{
    struct sockaddr_storage own = {0};
    socklen_t size = sizeof(own);
    const char *told = team->peers[rank].host;

    return is_loopback_text(told) &&
                   getsockname(team->peers[0].socket, (struct sockaddr *)&own, &size) == 0 &&
                   !is_loopback(&own)
               ? team->peers[0].host
               : told;
}

static enum status call_lower(struct meeting *meeting, const uint8_t nonce[NONCE_SIZE],
                              struct error *error)
{
    struct ranks_team *team = meeting->team;

    for (uint32_t rank = 1; rank < team->link.rank; rank++) {
        char port[8];

        (void)snprintf(port, sizeof(port), "%u", meeting->ports[rank]);
        TRY(call_rank(&team->peers[rank].socket, meeting, rank, host_for_us(team, rank), port,
                      error));
        TRY(greet_rank(meeting, team->peers[rank].socket, rank, 0, nonce, error));
    }
    return STATUS_OK;
}

/* Where the name of rank 0's machine means its loopback, others come from outside. */
static void listen_outside(struct sockaddr_storage *address, const char *host)
{
    if (!is_loopback(address) || is_loopback_text(host)) {
        return;
    }
    if (address->ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)address)->sin6_addr = in6addr_any;
    } else {
        ((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(INADDR_ANY);
    }
}

/* Calls rank 0, and listens at the address from which it reaches rank 0; at all of them where that
 * is its loopback by a name. */
static enum status call_first(struct meeting *meeting, const char *at, uint16_t *own_port,
                              struct error *error)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    char host[RANKS_PLACE_MAX];
    char port[8];
    int socket;

    if (!split_place(host, port, at)) {
        return not_a_place(at, error);
    }
    TRY(call_rank(&socket, meeting, 0, host, port, error));
    meeting->team->peers[0].socket = socket;
    (void)snprintf(meeting->team->peers[0].host, RANKS_HOST_MAX, "%.*s", RANKS_HOST_MAX - 1, host);
    if (getsockname(socket, (struct sockaddr *)&address, &size) != 0) {
        return error_set_errno(error, "the connection to rank 0");
    }
    *port_in(&address) = 0;
    listen_outside(&address, host);
    return listen_at(&meeting->listener, own_port, &address, error);
}

enum status ranks_meet_call(struct ranks_team *team, const char *at, const char *secret,
                            struct error *error)
{
    uint8_t nonce[NONCE_SIZE];
    struct meeting meeting;
    uint16_t own_port = 0;
    enum status status;

    TRY_OUT(open_meeting(&meeting, team, secret, error));
    TRY_OUT(secret_random(nonce, sizeof(nonce), error));
    TRY_OUT(call_first(&meeting, at, &own_port, error));
    TRY_OUT(greet_rank(&meeting, team->peers[0].socket, 0, own_port, nonce, error));
    TRY_OUT(hear_table(&meeting, nonce, error));
    TRY_OUT(call_lower(&meeting, nonce, error));
    TRY_OUT(take_callers(&meeting, NULL, error));
out:
    if (meeting.listener >= 0) {
        (void)close(meeting.listener);
    }
    close_meeting(&meeting);
    return status;
}
