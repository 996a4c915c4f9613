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
    KEEP_IDLE_S = 20,
    KEEP_EVERY_S = 10,
    KEEP_COUNT = 4,
};

/* Never a tag of a step. */
enum {
    TAG_HELLO = 0x4845,
    TAG_TABLE = 0x5441,
};

struct meeting {
    struct ranks_tcp *tcp;
    struct ranks_key secret;
    int listener;
    int stop;
    uint64_t end_ms;
    uint16_t *ports; /* per rank: where it listens */
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
        .from = meeting->tcp->link.rank, .to = to, .tag = tag, .size = size};
    uint8_t head[RANKS_FRAME_SIZE];
    struct ranks_key key;

    ranks_seal_key_of_key(&key, &meeting->secret, nonce, NONCE_SIZE);
    ranks_frame_write(head, &frame, &key, bytes);
    secret_wipe(&key, sizeof(key));
    return write_all(socket, head, sizeof(head), meeting->end_ms) &&
           write_all(socket, bytes, size, meeting->end_ms);
}

/* A message of this tag and size that the other end has sealed with our nonce. */
static bool hear_sealed(struct ranks_frame *frame, const struct meeting *meeting, int socket,
                        uint32_t tag, const uint8_t nonce[NONCE_SIZE], void *bytes, size_t size,
                        uint64_t end_ms)
{
    uint8_t head[RANKS_FRAME_SIZE];
    struct ranks_key key;
    bool good;

    if (!read_all(socket, head, sizeof(head), end_ms) || !ranks_frame_read(frame, head) ||
        frame->size != size || frame->tag != tag || !read_all(socket, bytes, size, end_ms)) {
        return false;
    }
    ranks_seal_key_of_key(&key, &meeting->secret, nonce, NONCE_SIZE);
    good = ranks_frame_is_sealed(head, &key, bytes, size) && frame->to == meeting->tcp->link.rank;
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

static enum status drop_caller(struct meeting *meeting, int socket)
{
    meeting->tcp->dropped++;
    (void)close(socket);
    return STATUS_OK;
}

/* A caller that holds the secret: is it a rank that we wait for? */
static enum status check_caller(const struct meeting *meeting, uint32_t from, uint32_t count,
                                struct error *error)
{
    const struct ranks_link *link = &meeting->tcp->link;

    if (count != link->rank_count) {
        return error_set(error, STATUS_REFUSED,
                         "rank %u was started as one of %u ranks, and rank %u as one of %u", from,
                         count, link->rank, link->rank_count);
    }
    if (from <= link->rank || from >= link->rank_count || meeting->tcp->peers[from].socket >= 0) {
        return error_set(error, STATUS_REFUSED, "two processes say that they are rank %u", from);
    }
    return STATUS_OK;
}

/* nonces: of each rank, NULL where nobody answers it. */
static enum status take_caller(struct meeting *meeting, uint8_t (*nonces)[NONCE_SIZE],
                               struct error *error)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    const int socket = accept4(meeting->listener, (struct sockaddr *)&address, &size, SOCK_CLOEXEC);
    const uint64_t end_ms = steady_ms() + HELLO_MS;
    uint8_t hello[HELLO_SIZE];
    uint8_t nonce[NONCE_SIZE];
    struct ranks_frame frame;
    enum status status;

    if (socket < 0) {
        return STATUS_OK; /* it has gone again */
    }
    prepare_socket(socket);
    status = secret_random(nonce, sizeof(nonce), error);
    if (status != STATUS_OK) {
        (void)close(socket);
        return status;
    }
    if (!write_all(socket, nonce, sizeof(nonce), end_ms) ||
        !hear_sealed(&frame, meeting, socket, TAG_HELLO, nonce, hello, sizeof(hello), end_ms)) {
        return drop_caller(meeting, socket);
    }
    status = check_caller(meeting, frame.from, endian_load_be32(hello), error);
    if (status != STATUS_OK) {
        (void)close(socket);
        return status;
    }
    meeting->tcp->peers[frame.from].socket = socket;
    write_host(meeting->tcp->peers[frame.from].host, &address);
    meeting->ports[frame.from] = (uint16_t)endian_load_be32(hello + 4);
    if (nonces != NULL) {
        memcpy(nonces[frame.from], hello + 8, NONCE_SIZE);
    }
    return STATUS_OK;
}

/* The first rank above this one that is not there; rank_count: all are. */
static uint32_t missing_rank(const struct meeting *meeting)
{
    uint32_t rank = meeting->tcp->link.rank + 1;

    while (rank < meeting->tcp->link.rank_count && meeting->tcp->peers[rank].socket >= 0) {
        rank++;
    }
    return rank;
}

static enum status take_callers(struct meeting *meeting, uint8_t (*nonces)[NONCE_SIZE],
                                struct error *error)
{
    struct pollfd watched[2] = {{.fd = meeting->listener, .events = POLLIN},
                                {.fd = meeting->stop, .events = POLLIN}};
    uint32_t missing;

    while ((missing = missing_rank(meeting)) < meeting->tcp->link.rank_count) {
        watched[0].revents = watched[1].revents = 0;
        if (poll(watched, 2, LOOK_MS) > 0) {
            if (watched[1].revents != 0) {
                return error_set(error, STATUS_STOPPED, "stopped before rank %u came", missing);
            }
            TRY(watched[0].revents != 0 ? take_caller(meeting, nonces, error) : STATUS_OK);
        }
        if (steady_ms() > meeting->end_ms) {
            return error_set(error, STATUS_RANK_LOST, "rank %u of %u has not come (dropped %llu)",
                             missing, meeting->tcp->link.rank_count,
                             (unsigned long long)meeting->tcp->dropped);
        }
    }
    return STATUS_OK;
}

/* ---- rank 0 ------------------------------------------------------------------------------ */

static enum status tell_all(const struct meeting *meeting, const uint8_t (*nonces)[NONCE_SIZE],
                            const uint8_t session[NONCE_SIZE], struct error *error)
{
    const uint32_t ranks = meeting->tcp->link.rank_count;
    const size_t size = NONCE_SIZE + (size_t)ranks * TABLE_ROW;
    uint8_t *table = calloc(1, size);
    enum status status = STATUS_OK;

    if (table == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a table of %u ranks", ranks);
    }
    memcpy(table, session, NONCE_SIZE);
    for (uint32_t rank = 1; rank < ranks; rank++) {
        uint8_t *row = table + NONCE_SIZE + (size_t)rank * TABLE_ROW;

        memcpy(row, meeting->tcp->peers[rank].host, RANKS_HOST_MAX);
        endian_store_be32(row + RANKS_HOST_MAX, meeting->ports[rank]);
    }
    for (uint32_t rank = 1; rank < ranks && status == STATUS_OK; rank++) {
        if (!say_sealed(meeting, meeting->tcp->peers[rank].socket, rank, TAG_TABLE, nonces[rank],
                        table, size)) {
            status = error_set(error, STATUS_RANK_LOST, "rank %u (%s) has hung up", rank,
                               meeting->tcp->peers[rank].host);
        }
    }
    free(table);
    return status;
}

static enum status open_meeting(struct meeting *meeting, struct ranks_tcp *tcp, const char *secret,
                                struct error *error)
{
    *meeting = (struct meeting){.tcp = tcp,
                                .listener = -1,
                                .stop = -1,
                                .end_ms = steady_ms() + 1000 * tcp->wait_least,
                                .ports = calloc(tcp->link.rank_count, sizeof(uint16_t))};
    if (meeting->ports == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u ranks", tcp->link.rank_count);
    }
    ranks_seal_key_of_text(&meeting->secret, secret);
    return STATUS_OK;
}

static void close_meeting(struct meeting *meeting)
{
    free(meeting->ports);
    secret_wipe(&meeting->secret, sizeof(meeting->secret));
}

enum status ranks_meet_all(struct ranks_tcp *tcp, int listener, const char *secret, int stop,
                           struct error *error)
{
    uint8_t(*nonces)[NONCE_SIZE] = calloc(tcp->link.rank_count, sizeof(*nonces));
    uint8_t session[NONCE_SIZE];
    struct meeting meeting;
    enum status status = open_meeting(&meeting, tcp, secret, error);

    if (status == STATUS_OK && nonces == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for ranks");
    }
    if (status == STATUS_OK) {
        meeting.listener = listener;
        meeting.stop = stop;
        TRY_OUT(secret_random(session, sizeof(session), error));
        TRY_OUT(take_callers(&meeting, nonces, error));
        TRY_OUT(tell_all(&meeting, (const uint8_t(*)[NONCE_SIZE])nonces, session, error));
        ranks_seal_key_of_key(&tcp->key, &meeting.secret, session, sizeof(session));
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
            return error_set(error, STATUS_RANK_LOST, "rank %u does not answer at %s:%s", rank,
                             host, port);
        }
        (void)usleep(LOOK_MS * 1000);
    }
}

static enum status greet_rank(const struct meeting *meeting, int socket, uint32_t rank,
                              uint16_t port, const uint8_t nonce[NONCE_SIZE], struct error *error)
{
    uint8_t challenge[NONCE_SIZE];
    uint8_t hello[HELLO_SIZE];

    endian_store_be32(hello, meeting->tcp->link.rank_count);
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
    struct ranks_tcp *tcp = meeting->tcp;
    const uint32_t ranks = tcp->link.rank_count;
    const size_t size = NONCE_SIZE + (size_t)ranks * TABLE_ROW;
    uint8_t *table = malloc(size);
    struct ranks_frame frame;

    if (table == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a table of %u ranks", ranks);
    }
    if (!hear_sealed(&frame, meeting, tcp->peers[0].socket, TAG_TABLE, nonce, table, size,
                     meeting->end_ms)) {
        free(table);
        (void)error_set(error, STATUS_RANK_LOST, "rank 0 (%s) has hung up", tcp->peers[0].host);
        error_advise(error, "its own message says why; all ranks need one LOCKSTEP_RANKS_SECRET");
        return STATUS_RANK_LOST;
    }
    ranks_seal_key_of_key(&tcp->key, &meeting->secret, table, NONCE_SIZE);
    for (uint32_t rank = 1; rank < ranks; rank++) {
        const uint8_t *row = table + NONCE_SIZE + (size_t)rank * TABLE_ROW;

        (void)snprintf(tcp->peers[rank].host, RANKS_HOST_MAX, "%.*s", RANKS_HOST_MAX - 1,
                       (const char *)row);
        meeting->ports[rank] = (uint16_t)endian_load_be32(row + RANKS_HOST_MAX);
    }
    free(table);
    return STATUS_OK;
}

static enum status call_lower(struct meeting *meeting, const uint8_t nonce[NONCE_SIZE],
                              struct error *error)
{
    struct ranks_tcp *tcp = meeting->tcp;

    for (uint32_t rank = 1; rank < tcp->link.rank; rank++) {
        char port[8];

        (void)snprintf(port, sizeof(port), "%u", meeting->ports[rank]);
        TRY(call_rank(&tcp->peers[rank].socket, meeting, rank, tcp->peers[rank].host, port, error));
        TRY(greet_rank(meeting, tcp->peers[rank].socket, rank, 0, nonce, error));
    }
    return STATUS_OK;
}

/* Calls rank 0, and listens at the address from which it reaches rank 0. */
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
    meeting->tcp->peers[0].socket = socket;
    (void)snprintf(meeting->tcp->peers[0].host, RANKS_HOST_MAX, "%.*s", RANKS_HOST_MAX - 1, host);
    if (getsockname(socket, (struct sockaddr *)&address, &size) != 0) {
        return error_set_errno(error, "the connection to rank 0");
    }
    *port_in(&address) = 0;
    return listen_at(&meeting->listener, own_port, &address, error);
}

enum status ranks_meet_call(struct ranks_tcp *tcp, const char *at, const char *secret,
                            struct error *error)
{
    uint8_t nonce[NONCE_SIZE];
    struct meeting meeting;
    uint16_t own_port = 0;
    enum status status;

    TRY_OUT(open_meeting(&meeting, tcp, secret, error));
    TRY_OUT(secret_random(nonce, sizeof(nonce), error));
    TRY_OUT(call_first(&meeting, at, &own_port, error));
    TRY_OUT(greet_rank(&meeting, tcp->peers[0].socket, 0, own_port, nonce, error));
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
