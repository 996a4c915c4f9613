/* ranks_open_mpi.c - the table of Open MPI 2 to 5: see ranks_mpi.h. */
#include <dlfcn.h>
#include <stddef.h>

#include "prover/ranks/ranks_mpi.h"

#define TABLE         ranks_open_mpi
#define FAMILY        "Open MPI"
#define CALLS         open_mpi_calls
#define HANDLE        void *
#define FIELD         pointer
#define STATUS_IGNORE NULL

static const char *const files[] = {"libmpi.so.40", NULL};

/* Its handles are the addresses of objects in the library. */
static const char *find_handles(void **world, void **byte, void **errors_return, void *library)
{
    *world = dlsym(library, "ompi_mpi_comm_world");
    *byte = dlsym(library, "ompi_mpi_byte");
    *errors_return = dlsym(library, "ompi_mpi_errors_return");
    return *world == NULL           ? "ompi_mpi_comm_world"
           : *byte == NULL          ? "ompi_mpi_byte"
           : *errors_return == NULL ? "ompi_mpi_errors_return"
                                    : NULL;
}

#include "prover/ranks/ranks_mpi_body.h"
