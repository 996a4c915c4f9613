/* ranks_place.c - see ranks_place.h. */
#include "prover/ranks/ranks_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "engine/ranks/ranks_plan.h"

#define OWN_RANK  "LOCKSTEP_RANK"
#define OWN_COUNT "LOCKSTEP_RANK_COUNT"
#define OWN_AT    "LOCKSTEP_RANKS_AT"
#define OWN_OF    "LOCKSTEP_RANK_OF" /* the process that started this one */

/* The variables of one launcher. */
struct rank_launcher {
    const char *rank;
    const char *count;
    const char *local;
    const char *local_count;
    enum ranks_mpi mpi;
};

static const struct rank_launcher own_launcher = {OWN_RANK, OWN_COUNT, OWN_RANK, OWN_COUNT,
                                                  RANKS_MPI_NONE};
static const struct rank_launcher slurm = {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL,
                                           RANKS_MPI_NONE};
/* In this order: Open MPI's mpirun sets PMIX_RANK too. */
static const struct rank_launcher of_mpi[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", RANKS_MPI_OPEN},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", RANKS_MPI_MPICH},
    {"PMIX_RANK", "SLURM_NTASKS", "SLURM_LOCALID", NULL, RANKS_MPI_ANY},
};

static bool read_number(uint32_t *number, const char *text)
{
    char *end = NULL;
    const unsigned long value = text == NULL ? 0 : strtoul(text, &end, 10);

    *number = (uint32_t)value;
    return text != NULL && text[0] >= '0' && text[0] <= '9' && *end == '\0' && value <= RANKS_MAX;
}

static enum status read_launcher(struct ranks_place *place, const struct rank_launcher *launcher,
                                 struct error *error)
{
    if (!read_number(&place->rank, getenv(launcher->rank)) ||
        !read_number(&place->rank_count, getenv(launcher->count)) ||
        place->rank >= place->rank_count) {
        return error_set(error, STATUS_USAGE,
                         "%s and %s do not say which rank of how many (%d at most) this is",
                         launcher->rank, launcher->count, RANKS_MAX);
    }
    if (!read_number(&place->local, getenv(launcher->local))) {
        place->local = 0;
    }
    if (launcher->local_count == NULL ||
        !read_number(&place->local_count, getenv(launcher->local_count))) {
        place->local_count = 0;
    }
    return STATUS_OK;
}

/* A launcher of others has said which rank this is; it must say where rank 0 is too. */
static enum status take_at(struct ranks_place *place, const char *at, struct error *error)
{
    if (place->rank_count == 1) {
        return STATUS_OK;
    }
    if (at == NULL) {
        (void)error_set(error, STATUS_USAGE,
                        "this is rank %u of %u, and where rank 0 listens is not said", place->rank,
                        place->rank_count);
        error_advise(error, "add --ranks-at HOST:PORT, the machine of rank 0");
        return STATUS_USAGE;
    }
    if (strlen(at) >= RANKS_PLACE_MAX) {
        return error_set(error, STATUS_USAGE, "--ranks-at: the place is too long");
    }
    (void)snprintf(place->at, sizeof(place->at), "%s", at);
    return STATUS_OK;
}

static const struct rank_launcher *find_mpi(void)
{
    for (size_t i = 0; i < sizeof(of_mpi) / sizeof(of_mpi[0]); i++) {
        if (getenv(of_mpi[i].rank) != NULL) {
            return &of_mpi[i];
        }
    }
    return NULL;
}

/* option: NULL or "mpi", without which a place makes the ranks send over TCP. */
static enum status read_mpi(struct ranks_place *place, const struct rank_launcher *launcher,
                            const char *option, const char *at, struct error *error)
{
    if (launcher == NULL) {
        (void)error_set(error, STATUS_USAGE, "--ranks mpi: no launcher of MPI has started this");
        error_advise(error, "start it by mpirun, or by srun with a plugin of MPI ('srun --mpi=list'"
                            " names them)");
        return STATUS_USAGE;
    }
    if (strcmp(launcher->rank, "PMIX_RANK") == 0 && getenv(launcher->count) == NULL) {
        return error_set(error, STATUS_USAGE,
                         "PMIX_RANK is there, and nothing says of how many ranks: SLURM_NTASKS "
                         "would");
    }
    TRY(read_launcher(place, launcher, error));
    if (option != NULL && at != NULL) {
        return error_set(error, STATUS_USAGE,
                         "--ranks-at is of TCP, and --ranks mpi is not: give "
                         "one of them");
    }
    if (at != NULL) {
        return take_at(place, at, error);
    }
    place->mpi = place->rank_count > 1 ? launcher->mpi : RANKS_MPI_NONE;
    return STATUS_OK;
}

static enum status read_option(struct ranks_place *place, const char *option, const char *at,
                               struct error *error)
{
    if (!read_number(&place->rank_count, option) || place->rank_count == 0) {
        return error_set(error, STATUS_USAGE, "--ranks %.40s: a number from 1 to %d, mpi or slurm",
                         option, RANKS_MAX);
    }
    place->launches = place->rank_count > 1;
    place->local_count = place->rank_count;
    (void)snprintf(place->at, sizeof(place->at), "%.*s", RANKS_PLACE_MAX - 1,
                   at == NULL ? RANKS_LOCAL_PLACE : at);
    return STATUS_OK;
}

enum status ranks_place_read(struct ranks_place *place, const char *option, const char *at,
                             struct error *error)
{
    const struct rank_launcher *launcher = find_mpi();
    const bool wants_mpi = option != NULL && strcmp(option, "mpi") == 0;
    const char *starter;

    *place = (struct ranks_place){.rank_count = 1};
    if (getenv(OWN_RANK) != NULL) {
        TRY(read_launcher(place, &own_launcher, error));
        place->launched = true;
        starter = getenv(OWN_OF);
        place->starter = starter == NULL ? 0 : (pid_t)strtol(starter, NULL, 10);
        return take_at(place, getenv(OWN_AT), error);
    }
    if (option != NULL && strcmp(option, "slurm") == 0) {
        TRY(read_launcher(place, &slurm, error));
        return take_at(place, at, error);
    }
    if (wants_mpi || (launcher != NULL && option == NULL)) {
        return read_mpi(place, launcher, option, at, error);
    }
    if (launcher != NULL) {
        TRY(read_launcher(place, launcher, error));
        return error_set(error, STATUS_USAGE,
                         "%s says that this is rank %u of %u: leave --ranks out", launcher->rank,
                         place->rank, place->rank_count);
    }
    return option == NULL ? STATUS_OK : read_option(place, option, at, error);
}

static enum status check_secret(const char *secret, struct error *error)
{
    if (strlen(secret) >= RANKS_SECRET_LEAST) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_USAGE,
                    RANKS_SECRET_VARIABLE " has %zu characters, and under %d can be guessed",
                    strlen(secret), RANKS_SECRET_LEAST);
    error_advise(error, "16 random bytes at least: 'openssl rand -hex 32'");
    return STATUS_USAGE;
}

enum status ranks_place_secret(const char **secret, const struct ranks_place *place,
                               struct error *error)
{
    uint8_t bytes[RANKS_KEY_SIZE];
    char text[HEX_SIZE(RANKS_KEY_SIZE)];

    *secret = getenv(RANKS_SECRET_VARIABLE);
    if (*secret != NULL && (*secret)[0] != '\0') {
        return check_secret(*secret, error);
    }
    if (!place->launches) {
        (void)error_set(error, STATUS_USAGE, "rank %u has no secret to share with the others",
                        place->rank);
        error_advise(error, "set " RANKS_SECRET_VARIABLE " to one long random text for all ranks");
        return STATUS_USAGE;
    }
    TRY(secret_random(bytes, sizeof(bytes), error));
    hex_encode(text, bytes, sizeof(bytes));
    if (setenv(RANKS_SECRET_VARIABLE, text, 1) != 0) {
        return error_set_errno(error, "no room for a secret of ranks");
    }
    secret_wipe(bytes, sizeof(bytes));
    secret_wipe(text, sizeof(text));
    *secret = getenv(RANKS_SECRET_VARIABLE);
    return STATUS_OK;
}

enum status ranks_place_tell(const struct ranks_place *place, uint32_t rank, const char *at,
                             struct error *error)
{
    char number[16];
    char count[16];
    char own[24];

    (void)snprintf(number, sizeof(number), "%u", rank);
    (void)snprintf(count, sizeof(count), "%u", place->rank_count);
    (void)snprintf(own, sizeof(own), "%ld", (long)getpid());
    return setenv(OWN_RANK, number, 1) == 0 && setenv(OWN_COUNT, count, 1) == 0 &&
                   setenv(OWN_AT, at, 1) == 0 && setenv(OWN_OF, own, 1) == 0
               ? STATUS_OK
               : error_set_errno(error, "no room to tell a rank its number");
}

void ranks_place_forget(void)
{
    (void)unsetenv(OWN_RANK);
    (void)unsetenv(OWN_COUNT);
    (void)unsetenv(OWN_AT);
    (void)unsetenv(OWN_OF);
}
