/*
 * ranks_mpi_body.h - the table of one family of MPI, for a file that defines
 *
 *     TABLE          the table's name
 *     FAMILY         the family's, as text
 *     CALLS          of its functions and handles, the struct's
 *     HANDLE         the type of its handles
 *     FIELD          of union ranks_mpi_request, of that type
 *     STATUS_IGNORE  the address that stands for no status
 *     find_handles() and files[]
 */
#include <dlfcn.h>
#include <stddef.h>

#define THREADS_FUNNELED 1 /* one thread calls, also where a process has more */

struct CALLS {
    int (*init_thread)(int *count, char ***words, int wanted, int *provided);
    int (*finalize)(void);
    int (*comm_rank)(HANDLE comm, int *rank);
    int (*comm_size)(HANDLE comm, int *size);
    int (*comm_set_errhandler)(HANDLE comm, HANDLE handler);
    int (*isend)(const void *bytes, int count, HANDLE type, int to, int tag, HANDLE comm,
                 HANDLE *request);
    int (*irecv)(void *bytes, int count, HANDLE type, int from, int tag, HANDLE comm,
                 HANDLE *request);
    int (*test)(HANDLE *request, int *done, void *status);
    HANDLE world;
    HANDLE byte;
    HANDLE errors_return;
};

static const char *find_calls(void *context, void *library)
{
    struct CALLS *mpi = context;
    const struct {
        const char *name;
        void *place;
    } calls[] = {
        {"MPI_Init_thread", &mpi->init_thread},
        {"MPI_Finalize", &mpi->finalize},
        {"MPI_Comm_rank", &mpi->comm_rank},
        {"MPI_Comm_size", &mpi->comm_size},
        {"MPI_Comm_set_errhandler", &mpi->comm_set_errhandler},
        {"MPI_Isend", &mpi->isend},
        {"MPI_Irecv", &mpi->irecv},
        {"MPI_Test", &mpi->test},
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        void *found = dlsym(library, calls[i].name);

        if (found == NULL) {
            return calls[i].name;
        }
        *(void **)calls[i].place = found;
    }
    return find_handles(&mpi->world, &mpi->byte, &mpi->errors_return, library);
}

/* Errors come back: by default the library ends the process. */
static int begin_library(const void *context, int *rank, int *rank_count)
{
    const struct CALLS *mpi = context;
    int provided;
    int code = mpi->init_thread(NULL, NULL, THREADS_FUNNELED, &provided);

    code = code != 0 ? code : mpi->comm_set_errhandler(mpi->world, mpi->errors_return);
    code = code != 0 ? code : mpi->comm_rank(mpi->world, rank);
    return code != 0 ? code : mpi->comm_size(mpi->world, rank_count);
}

static int begin_send(const void *context, union ranks_mpi_request *request, const void *bytes,
                      int size, int peer)
{
    const struct CALLS *mpi = context;

    return mpi->isend(bytes, size, mpi->byte, peer, RANKS_MPI_TAG, mpi->world, &request->FIELD);
}

static int begin_receive(const void *context, union ranks_mpi_request *request, void *bytes,
                         int size, int peer)
{
    const struct CALLS *mpi = context;

    return mpi->irecv(bytes, size, mpi->byte, peer, RANKS_MPI_TAG, mpi->world, &request->FIELD);
}

static int test_request(const void *context, union ranks_mpi_request *request, int *done)
{
    const struct CALLS *mpi = context;

    return mpi->test(&request->FIELD, done, STATUS_IGNORE);
}

static int end_library(const void *context)
{
    const struct CALLS *mpi = context;

    return mpi->finalize();
}

const struct ranks_mpi_table TABLE = {
    .name = FAMILY,
    .files = files,
    .calls_size = sizeof(struct CALLS),
    .find = find_calls,
    .begin = begin_library,
    .send = begin_send,
    .receive = begin_receive,
    .test = test_request,
    .end = end_library,
};
