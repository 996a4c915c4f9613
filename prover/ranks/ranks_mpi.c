/* ranks_mpi.c - see ranks_mpi.h. */
#include "prover/ranks/ranks_mpi.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/steady.h"

#define PIECE     (64u << 20) /* bytes of one message of MPI, whose sizes are ints */
#define BEGIN_S   60          /* in which all ranks must come */
#define LEAVE_S   10          /* for the others' goodbye */
#define YIELDS    2000        /* looks without a sleep */
#define SLEEP_US  50
#define LATE_EXIT 5    /* the exit code of a rank that is lost */
#define SLEEPS_US 1000 /* between two looks at most */

/* Never a tag of a step. */
enum {
    TAG_HOST = 0x484f,
    TAG_LEAVE = 0x4c45,
};

/* The library of this process. */
struct ranks_mpi_library {
    const struct ranks_mpi_table *table;
    void *calls;
};

/* One transfer: its head, then its bytes in pieces. */
struct mpi_move {
    uint8_t head[RANKS_FRAME_SIZE];
    uint64_t number;
    union ranks_mpi_request *requests;
    uint32_t request_count;
    uint32_t done; /* of them, in their order */
};

struct mpi_exchange {
    struct ranks_team *team;
    const struct ranks_transfer *transfers;
    struct mpi_move *moves; /* per transfer */
    uint32_t count;
    uint64_t moved_ns;
};

/* ---- one transfer ------------------------------------------------------------------------ */

static const struct ranks_mpi_table *table_of(const struct ranks_team *team)
{
    return team->mpi->table;
}

static enum status mpi_failed(struct ranks_team *team, uint32_t rank, int code, struct error *error)
{
    char how[64];

    (void)snprintf(how, sizeof(how), "cannot be reached: %s says %d", table_of(team)->name, code);
    return ranks_team_lost(team, rank, error, how);
}

static size_t piece_size(const struct ranks_transfer *transfer, uint32_t piece)
{
    const size_t left = transfer->size - (size_t)piece * PIECE;

    return left < PIECE ? left : PIECE;
}

static int begin_request(const struct ranks_mpi_library *mpi, struct mpi_move *move,
                         const struct ranks_transfer *transfer, uint32_t at)
{
    union ranks_mpi_request *request = &move->requests[at];
    uint8_t *bytes = at == 0 ? move->head : (uint8_t *)transfer->bytes + (size_t)(at - 1) * PIECE;
    const int size = at == 0 ? RANKS_FRAME_SIZE : (int)piece_size(transfer, at - 1);

    return transfer->sends
               ? mpi->table->send(mpi->calls, request, bytes, size, (int)transfer->peer)
               : mpi->table->receive(mpi->calls, request, bytes, size, (int)transfer->peer);
}

/* All of it is under way afterwards: messages between two ranks keep their order. */
static enum status begin_move(struct mpi_exchange *exchange, uint32_t at, struct error *error)
{
    struct ranks_team *team = exchange->team;
    const struct ranks_transfer *transfer = &exchange->transfers[at];
    struct ranks_peer *peer = &team->peers[transfer->peer];
    struct mpi_move *move = &exchange->moves[at];

    if (transfer->size == 0) {
        return STATUS_OK;
    }
    move->request_count = 1 + (uint32_t)((transfer->size + PIECE - 1) / PIECE);
    move->requests = calloc(move->request_count, sizeof(*move->requests));
    if (move->requests == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a message of ranks");
    }
    move->number = transfer->sends ? peer->sent++ : peer->received++;
    if (transfer->sends) {
        ranks_team_write_head(move->head, team, transfer, move->number);
    }
    for (uint32_t i = 0; i < move->request_count; i++) {
        const int code = begin_request(team->mpi, move, transfer, i);

        if (code != 0) {
            return mpi_failed(team, transfer->peer, code, error);
        }
    }
    return STATUS_OK;
}

/* Looks how far it is. */
static enum status look_at(struct mpi_exchange *exchange, uint32_t at, struct error *error)
{
    struct ranks_team *team = exchange->team;
    const struct ranks_transfer *transfer = &exchange->transfers[at];
    struct mpi_move *move = &exchange->moves[at];

    while (move->done < move->request_count) {
        int done = 0;
        const int code = table_of(team)->test(team->mpi->calls, &move->requests[move->done], &done);

        if (code != 0) {
            return mpi_failed(team, transfer->peer, code, error);
        }
        if (!done) {
            return STATUS_OK;
        }
        exchange->moved_ns = steady_ns();
        move->done++;
        if (!transfer->sends && move->done == 1) {
            TRY(ranks_team_check_head(team, move->head, transfer, error));
        }
        if (!transfer->sends && move->done == move->request_count) {
            TRY(ranks_team_check(team, move->head, transfer, move->number, error));
        }
    }
    return STATUS_OK;
}

/* ---- all of them ------------------------------------------------------------------------- */

/* The library works while it is asked; other ranks share the machine. */
static void pause_look(uint64_t idle_looks)
{
    const uint64_t us = SLEEP_US + (idle_looks - YIELDS) / 10;

    if (idle_looks < YIELDS) {
        (void)sched_yield();
    } else {
        (void)usleep((useconds_t)(us < SLEEPS_US ? us : SLEEPS_US));
    }
}

static enum status move_all(struct mpi_exchange *exchange, uint64_t limit, struct error *error)
{
    uint64_t idle_looks = 0;

    exchange->moved_ns = steady_ns();
    for (int sends = 0; sends < 2; sends++) {
        for (uint32_t i = 0; i < exchange->count; i++) {
            TRY(exchange->transfers[i].sends == sends ? begin_move(exchange, i, error) : STATUS_OK);
        }
    }
    for (;;) {
        const uint64_t before = exchange->moved_ns;
        uint32_t waits_for = exchange->count;

        for (uint32_t i = 0; i < exchange->count; i++) {
            TRY(look_at(exchange, i, error));
            if (exchange->moves[i].done < exchange->moves[i].request_count) {
                waits_for = waits_for == exchange->count ? i : waits_for;
            }
        }
        if (waits_for == exchange->count) {
            return STATUS_OK;
        }
        if (steady_ns() - exchange->moved_ns > limit * 1000000000u) {
            return ranks_team_late(exchange->team, exchange->transfers[waits_for].peer, limit,
                                   error);
        }
        idle_looks = exchange->moved_ns == before ? idle_looks + 1 : 0;
        pause_look(idle_looks);
    }
}

static enum status exchange_within(struct ranks_team *team, const struct ranks_transfer *transfers,
                                   uint32_t count, uint64_t limit, struct error *error)
{
    struct mpi_exchange exchange = {.team = team,
                                    .transfers = transfers,
                                    .moves = calloc((size_t)count + 1, sizeof(*exchange.moves)),
                                    .count = count};
    enum status status;

    if (exchange.moves == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for an exchange of ranks");
    }
    status = move_all(&exchange, limit, error);
    if (status == STATUS_OK) { /* else the library may still write there: this process ends */
        for (uint32_t i = 0; i < count; i++) {
            free(exchange.moves[i].requests);
        }
        free(exchange.moves);
    }
    return status;
}

static enum status exchange_all(void *context, const struct ranks_transfer *transfers,
                                uint32_t count, struct error *error)
{
    struct ranks_team *team = context;

    return exchange_within(team, transfers, count, ranks_team_limit(team, transfers, count), error);
}

/* Each rank sends all others `size` bytes, and has theirs one after another. */
static enum status tell_all(struct ranks_team *team, uint32_t tag, char *bytes, size_t size,
                            uint64_t limit, struct error *error)
{
    const uint32_t ranks = team->link.rank_count;
    struct ranks_transfer *transfers = calloc(2 * (size_t)ranks, sizeof(*transfers));
    uint32_t count = 0;
    enum status status;

    if (transfers == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u ranks", ranks);
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        struct ranks_transfer transfer = {
            .peer = rank, .tag = tag, .bytes = bytes + rank * size, .size = size};

        if (rank != team->link.rank) {
            transfers[count++] = transfer;
            transfer.sends = true;
            transfer.bytes = bytes + team->link.rank * size;
            transfers[count++] = transfer;
        }
    }
    status = exchange_within(team, transfers, count, limit, error);
    free(transfers);
    return status;
}

/* ---- its life ---------------------------------------------------------------------------- */

/* The last call waits for all ranks, also for one that is gone: so they say goodbye first. Without
 * it this process just ends, and the launcher ends the others. */
static void leave_all(struct ranks_team *team)
{
    char *bytes = calloc(team->link.rank_count, 1);
    struct error error;

    error_init(&error);
    if (bytes != NULL && !team->lost &&
        tell_all(team, TAG_LEAVE, bytes, 1, LEAVE_S, &error) == STATUS_OK) {
        (void)table_of(team)->end(team->mpi->calls);
    }
    free(bytes);
    free(team->mpi->calls);
    free(team->mpi);
}

static enum status load_family(struct ranks_mpi_library *mpi, const struct ranks_mpi_table *family,
                               struct error *error)
{
    free(mpi->calls);
    *mpi = (struct ranks_mpi_library){.table = family, .calls = calloc(1, family->calls_size)};
    if (mpi->calls == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the calls of %s", family->name);
    }
    for (size_t i = 0; family->files[i] != NULL; i++) {
        /* Its own parts look for its names. */
        void *library = dlopen(family->files[i], RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
        const char *missing = library == NULL ? NULL : family->find(mpi->calls, library);

        if (missing != NULL) {
            return error_set(error, STATUS_REFUSED, "%s has no %s: it is no %s", family->files[i],
                             missing, family->name);
        }
        if (library != NULL) {
            return STATUS_OK;
        }
    }
    (void)error_set(error, STATUS_NOT_FOUND, "there is no library of %s here: %.200s", family->name,
                    dlerror());
    error_advise(error, "install it, or add --ranks-at HOST:PORT: ranks send over TCP then");
    return STATUS_NOT_FOUND;
}

static enum status load_library(struct ranks_mpi_library *mpi, enum ranks_mpi wanted,
                                struct error *error)
{
    if (wanted == RANKS_MPI_ANY && load_family(mpi, &ranks_open_mpi, error) == STATUS_OK) {
        return STATUS_OK;
    }
    return load_family(mpi, wanted == RANKS_MPI_OPEN ? &ranks_open_mpi : &ranks_mpich, error);
}

/* Nobody else can end a first call that waits for a rank that never comes. */
static void end_late(int signal)
{
    static const char text[] = "lockstep: not all ranks came within a minute\n";

    (void)signal;
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(LATE_EXIT);
}

static enum status begin_library(const struct ranks_mpi_library *mpi,
                                 const struct ranks_place *place, struct error *error)
{
    const struct sigaction late = {.sa_handler = end_late};
    struct sigaction before;
    int rank = -1;
    int count = -1;
    int code;

    /* Ranks of one machine copy through memory that they share: no rank reads another's. */
    (void)setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    (void)sigaction(SIGALRM, &late, &before);
    (void)alarm(BEGIN_S);
    code = mpi->table->begin(mpi->calls, &rank, &count);
    (void)alarm(0);
    (void)sigaction(SIGALRM, &before, NULL);
    if (code != 0) {
        return error_set(error, STATUS_RANK_LOST, "%s cannot begin: it says %d", mpi->table->name,
                         code);
    }
    if (rank != (int)place->rank || count != (int)place->rank_count) {
        (void)error_set(error, STATUS_REFUSED,
                        "%s says that this is rank %d of %d, and its launcher said rank %u of %u",
                        mpi->table->name, rank, count, place->rank, place->rank_count);
        error_advise(error, "the library must be that of the launcher: mpirun.openmpi has Open "
                            "MPI's, mpirun.mpich MPICH's; or add --ranks-at HOST:PORT");
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

/* Hosts by name, for sentences. Each two ranks have spoken afterwards. */
static enum status learn_hosts(struct ranks_team *team, struct error *error)
{
    char(*hosts)[RANKS_HOST_MAX] = calloc(team->link.rank_count, sizeof(*hosts));
    enum status status;

    if (hosts == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for ranks");
    }
    (void)gethostname(hosts[team->link.rank], RANKS_HOST_MAX - 1);
    status = tell_all(team, TAG_HOST, hosts[0], RANKS_HOST_MAX, BEGIN_S, error);
    for (uint32_t rank = 0; status == STATUS_OK && rank < team->link.rank_count; rank++) {
        (void)snprintf(team->peers[rank].host, RANKS_HOST_MAX, "%.*s", RANKS_HOST_MAX - 1,
                       hosts[rank]);
    }
    free(hosts);
    return status;
}

enum status ranks_mpi_open(struct ranks_team *team, const struct ranks_place *place,
                           struct error *error)
{
    struct ranks_mpi_library *mpi;

    TRY(ranks_team_open(team, place->rank, place->rank_count, error));
    mpi = calloc(1, sizeof(*mpi));
    if (mpi == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for ranks");
    }
    team->mpi = mpi;
    team->lost = true; /* nobody is there to leave */
    team->close = leave_all;
    TRY(load_library(mpi, place->mpi, error));
    TRY(begin_library(mpi, place, error));
    team->lost = false;
    team->link.exchange = exchange_all;
    for (uint32_t rank = 0; rank < place->rank_count; rank++) {
        (void)snprintf(team->peers[rank].host, RANKS_HOST_MAX, "through %s", mpi->table->name);
    }
    return learn_hosts(team, error);
}
