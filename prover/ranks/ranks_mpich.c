/* ranks_mpich.c - the table of MPICH and of what shares its binary interface, such as MVAPICH,
 * Intel's and Cray's: see ranks_mpi.h. */
#include <stddef.h>

#include "prover/ranks/ranks_mpi.h"

#define TABLE         ranks_mpich
#define FAMILY        "MPICH"
#define CALLS         mpich_calls
#define HANDLE        int
#define FIELD         number
#define STATUS_IGNORE ((void *)1)

static const char *const files[] = {"libmpich.so.12", "libmpi.so.12", "libmpi_cray.so.12",
                                    "libmpi_gnu.so.12", NULL};

/* Numbers that its binary interface fixes. */
static const char *find_handles(int *world, int *byte, int *errors_return, const void *library)
{
    (void)library;
    *world = 0x44000000;
    *byte = 0x4c00010d;
    *errors_return = 0x54000001;
    return NULL;
}

#include "prover/ranks/ranks_mpi_body.h"
