/*
 * mpi.c - see mpi.h.
 *
 * The calls and handles are those of the binary interface that Open MPI 3 to 5 share: handles are
 * addresses of objects in the library, and the wildcard for a status is NULL.
 */
#include "verifier/audit/mpi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/endian.h"

enum {
    PIECE_SIZE = 1 << 20,
    WAIT_US = 5000,
    TAG_SIZE = 1,
    TAG_BYTES = 2,
    TAG_DONE = 3,
};

struct mpi {
    void *library;
    void *world; /* MPI_COMM_WORLD */
    void *byte;  /* MPI_BYTE */
    uint32_t rank;
    uint32_t rank_count;
    int (*init)(int *argc, char ***argv);
    int (*finalize)(void);
    int (*comm_rank)(void *comm, int *rank);
    int (*comm_size)(void *comm, int *size);
    int (*isend)(const void *bytes, int count, void *type, int to, int tag, void *comm,
                 void **request);
    int (*test)(void **request, int *done, void *status);
    int (*iprobe)(int from, int tag, void *comm, int *there, void *status);
    int (*recv)(void *bytes, int count, void *type, int from, int tag, void *comm, void *status);
};

/* ---- the library ---------------------------------------------------------- */

static bool number_of(uint32_t *number, const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    unsigned long value;

    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return false;
    }
    value = strtoul(text, &end, 10);
    *number = (uint32_t)value;
    return *end == '\0' && value <= MPI_RANKS_MAX;
}

bool mpi_wanted(uint32_t *rank, uint32_t *rank_count)
{
    bool wanted = number_of(rank_count, "OMPI_COMM_WORLD_SIZE") &&
                  number_of(rank, "OMPI_COMM_WORLD_RANK") && *rank_count > 1 && *rank < *rank_count;

    if (!wanted) {
        *rank = 0;
        *rank_count = 1;
    }
    return wanted;
}

/* dlsym() gives the address of a function as one of an object: POSIX allows the copy. */
static bool find(void *function, void *library, const char *name)
{
    void *found = dlsym(library, name);

    memcpy(function, &found, sizeof(found));
    return found != NULL;
}

static bool find_all(struct mpi *mpi)
{
    return find(&mpi->init, mpi->library, "MPI_Init") &&
           find(&mpi->finalize, mpi->library, "MPI_Finalize") &&
           find(&mpi->comm_rank, mpi->library, "MPI_Comm_rank") &&
           find(&mpi->comm_size, mpi->library, "MPI_Comm_size") &&
           find(&mpi->isend, mpi->library, "MPI_Isend") &&
           find(&mpi->test, mpi->library, "MPI_Test") &&
           find(&mpi->iprobe, mpi->library, "MPI_Iprobe") &&
           find(&mpi->recv, mpi->library, "MPI_Recv") &&
           find(&mpi->world, mpi->library, "ompi_mpi_comm_world") &&
           find(&mpi->byte, mpi->library, "ompi_mpi_byte");
}

static enum status load(struct mpi *mpi, struct error *error)
{
    static const char *const names[] = {"libmpi.so.40", "libmpi.so"};

    /* Global: its plugins need its symbols. */
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && mpi->library == NULL; i++) {
        mpi->library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
    }
    if (mpi->library == NULL) {
        const char *why = dlerror();

        (void)error_set(error, STATUS_NOT_FOUND, "Open MPI's library does not load: %s",
                        why == NULL ? "no reason is given" : why);
        error_advise(error, "install openmpi-bin, the same version on every machine");
        return STATUS_NOT_FOUND;
    }
    return find_all(mpi)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "libmpi is not Open MPI's, but mpirun is");
}

static enum status join(struct mpi *mpi, struct error *error)
{
    int rank = -1;
    int size = -1;

    if (mpi->init(NULL, NULL) != 0 || mpi->comm_rank(mpi->world, &rank) != 0 ||
        mpi->comm_size(mpi->world, &size) != 0) {
        return error_set(error, STATUS_UNREACHABLE, "this rank cannot join the others");
    }
    if (rank != (int)mpi->rank || size != (int)mpi->rank_count) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the library says rank %d of %d, the environment %u of %u", rank, size,
                         mpi->rank, mpi->rank_count);
    }
    return STATUS_OK;
}

enum status mpi_open(struct mpi **mpi, uint32_t rank, uint32_t rank_count, struct error *error)
{
    struct mpi *made = calloc(1, sizeof(*made));
    enum status status;

    *mpi = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a rank");
    }
    made->rank = rank;
    made->rank_count = rank_count;
    TRY_OUT(load(made, error));
    TRY_OUT(join(made, error));
    *mpi = made;
    return STATUS_OK;
out:
    free(made); /* the library stays: it may have begun threads */
    return status;
}

/* ---- messages ------------------------------------------------------------- */

static enum status stopped(struct error *error)
{
    return error_set(error, STATUS_STOPPED, "stopped while waiting for another rank");
}

static enum status lost(struct error *error)
{
    return error_set(error, STATUS_UNREACHABLE, "another rank cannot be reached");
}

static enum status send_to(struct mpi *mpi, uint32_t to, int tag, const void *bytes, size_t size,
                           struct stop *stop, struct error *error)
{
    void *request = NULL;
    int done = 0;

    if (mpi->isend(bytes, (int)size, mpi->byte, (int)to, tag, mpi->world, &request) != 0) {
        return lost(error);
    }
    for (;;) {
        if (mpi->test(&request, &done, NULL) != 0) {
            return lost(error);
        }
        if (done) {
            return STATUS_OK;
        }
        if (stop_requested(stop)) {
            return stopped(error);
        }
        (void)usleep(WAIT_US);
    }
}

static enum status receive_from(void *bytes, size_t size, struct mpi *mpi, uint32_t from, int tag,
                                struct stop *stop, struct error *error)
{
    int there = 0;

    for (;;) {
        if (mpi->iprobe((int)from, tag, mpi->world, &there, NULL) != 0) {
            return lost(error);
        }
        if (there) {
            break;
        }
        if (stop_requested(stop)) {
            return stopped(error);
        }
        (void)usleep(WAIT_US);
    }
    return mpi->recv(bytes, (int)size, mpi->byte, (int)from, tag, mpi->world, NULL) == 0
               ? STATUS_OK
               : lost(error);
}

enum status mpi_send(struct mpi *mpi, const void *bytes, size_t size, struct stop *stop,
                     struct error *error)
{
    uint8_t head[8];
    enum status status;

    endian_store_be64(head, size);
    status = send_to(mpi, 0, TAG_SIZE, head, sizeof(head), stop, error);
    for (size_t at = 0; at < size && status == STATUS_OK; at += PIECE_SIZE) {
        size_t piece = size - at < PIECE_SIZE ? size - at : PIECE_SIZE;

        status = send_to(mpi, 0, TAG_BYTES, (const uint8_t *)bytes + at, piece, stop, error);
    }
    return status;
}

enum status mpi_receive(struct buffer *bytes, struct mpi *mpi, uint32_t from, struct stop *stop,
                        struct error *error)
{
    uint8_t *piece = malloc(PIECE_SIZE);
    uint8_t head[8];
    uint64_t left;
    enum status status;

    if (piece == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to receive");
    }
    TRY_OUT(receive_from(head, sizeof(head), mpi, from, TAG_SIZE, stop, error));
    left = endian_load_be64(head);
    if (left > MPI_MESSAGE_MAX) {
        status = error_set(error, STATUS_OVER_LIMIT, "rank %u sends too much", from);
        goto out;
    }
    while (left > 0) {
        size_t size = left < PIECE_SIZE ? (size_t)left : PIECE_SIZE;

        TRY_OUT(receive_from(piece, size, mpi, from, TAG_BYTES, stop, error));
        buffer_add(bytes, piece, size);
        TRY_OUT(buffer_check(bytes, error, "what a rank sends"));
        left -= size;
    }
out:
    free(piece);
    return status;
}

void mpi_close(struct mpi *mpi, struct stop *stop)
{
    struct error ignored;
    uint8_t done = 1;
    enum status status = STATUS_OK;

    if (mpi == NULL) {
        return;
    }
    error_init(&ignored);
    if (mpi->rank > 0) {
        status = receive_from(&done, 1, mpi, 0, TAG_DONE, stop, &ignored);
    }
    for (uint32_t i = 1; mpi->rank == 0 && i < mpi->rank_count && status == STATUS_OK; i++) {
        status = send_to(mpi, i, TAG_DONE, &done, 1, stop, &ignored);
    }
    if (status == STATUS_OK) { /* otherwise it would wait for ever */
        (void)mpi->finalize();
    }
    free(mpi);
}
