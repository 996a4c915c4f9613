/*
 * Goal: through MPI ranks exchange messages of all sizes bit by bit; what does not come in time, is
 * of another size or of another place of the run ends it with the rank's number and host; and a
 * process whose others left in order leaves so too.
 *
 * Method: the test starts itself as ranks under mpirun.openmpi and mpirun.mpich, each where it is
 * installed. Every rank plays the scene that its command line names and prints what it found; the
 * test reads that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prover/ranks/ranks_mpi.h"
#include "tests/support/test.h"

#define RANKS    3
#define LARGE    ((64u << 20) + 12345u) /* more than one piece */
#define SAID_MAX 8192

struct family {
    const char *program;
    const char *words;
};

static const struct family families[] = {{"mpirun.openmpi", "--oversubscribe -q"},
                                         {"mpirun.mpich", ""}};

/* ---- a rank ------------------------------------------------------------------------------ */

static enum status exchange(struct ranks_team *team, const struct ranks_transfer *transfers,
                            uint32_t count, struct error *error)
{
    return team->link.exchange(team->link.context, transfers, count, error);
}

static uint8_t byte_between(uint32_t from, uint32_t to, size_t at)
{
    return (uint8_t)(from * 31 + to * 7 + at * 13 + at / 251);
}

/* One message of this size to each other rank and from it. */
static enum status send_all(struct ranks_team *team, uint32_t tag, size_t size, struct error *error)
{
    uint8_t *bytes[2 * RANKS];
    struct ranks_transfer transfers[2 * RANKS];
    uint32_t count = 0;
    enum status status;

    for (uint32_t peer = 0; peer < RANKS; peer++) {
        for (int sends = 0; peer != team->link.rank && sends < 2; sends++) {
            bytes[count] = malloc(size + 1);
            for (size_t i = 0; sends && i < size; i++) {
                bytes[count][i] = byte_between(team->link.rank, peer, i);
            }
            transfers[count] = (struct ranks_transfer){
                .peer = peer, .tag = tag, .sends = sends, .bytes = bytes[count], .size = size};
            count++;
        }
    }
    status = exchange(team, transfers, count, error);
    for (uint32_t i = 0; i < count; i++) {
        for (size_t at = 0; status == STATUS_OK && !transfers[i].sends && at < size; at++) {
            if (bytes[i][at] != byte_between(transfers[i].peer, team->link.rank, at)) {
                status = error_set(error, STATUS_BAD_FORMAT, "byte %zu is another", at);
            }
        }
        free(bytes[i]);
    }
    return status;
}

static enum status play_exchange(struct ranks_team *team, struct error *error)
{
    static const size_t sizes[] = {0, 1, 4095, 300000, LARGE};

    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        TRY(send_all(team, i, sizes[i], error));
        ranks_team_stepped(team, 1000);
    }
    return STATUS_OK;
}

/* Rank 1 says to rank 0 what the scene is about, and rank 0 waits for eight bytes under tag 7. */
static enum status play_word(struct ranks_team *team, const char *scene, struct error *error)
{
    uint8_t bytes[16] = "truthful";
    struct ranks_transfer word = {.peer = 1, .tag = 7, .bytes = bytes, .size = 8};

    ranks_team_stepped(team, 1000);
    team->wait_least = 2;
    if (team->link.rank == 0) {
        return exchange(team, &word, 1, error);
    }
    word.peer = 0;
    word.sends = true;
    word.tag = strcmp(scene, "tag") == 0 ? 8 : 7;
    word.size = strcmp(scene, "short") == 0 ? 4 : strcmp(scene, "long") == 0 ? 16 : 8;
    team->step += strcmp(scene, "step") == 0;
    team->job.bytes[0] = strcmp(scene, "job") == 0;
    if (team->link.rank == 1 && strcmp(scene, "silent") == 0) {
        (void)sleep(4);
    } else if (team->link.rank == 1) {
        TRY(exchange(team, &word, 1, error));
    }
    return STATUS_OK;
}

static int play(const char *scene)
{
    struct ranks_team team = {.peers = NULL};
    struct ranks_place place;
    struct error error;
    enum status status;

    error_init(&error);
    status = ranks_place_read(&place, NULL, NULL, &error);
    if (status == STATUS_OK) {
        status = ranks_mpi_open(&team, &place, &error);
    }
    if (status == STATUS_OK) {
        status = strcmp(scene, "exchange") == 0 ? play_exchange(&team, &error)
                                                : play_word(&team, scene, &error);
    }
    printf("rank %u: %s\n", place.rank, status == STATUS_OK ? "fine" : error.text);
    (void)fflush(stdout);
    ranks_team_close(&team);
    return 0; /* a launcher would end the others, who still speak */
}

/* ---- the test ---------------------------------------------------------------------------- */

static bool is_here(const struct family *family)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "command -v %s >/dev/null", family->program);
    return system(command) == 0;
}

static void play_under(const struct family *family, const char *scene, char said[SAID_MAX])
{
    char own[1024];
    char command[2048];
    size_t size;
    FILE *pipe;
    const ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

    assert_true(length > 0);
    own[length] = '\0';
    (void)snprintf(command, sizeof(command),
                   "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 100 %s %s "
                   "-n %d %s --scene %s 2>&1 </dev/null",
                   family->program, family->words, RANKS, own, scene);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    size = fread(said, 1, SAID_MAX - 1, pipe);
    said[size] = '\0';
    (void)pclose(pipe);
}

static void check_said(const struct family *family, const char *scene, const char *said,
                       const char *wanted)
{
    if (strstr(said, wanted) == NULL) {
        fail_msg("%s, scene %s: '%s' is not in: %s", family->program, scene, wanted, said);
    }
}

/* What rank 0 says there. */
static void check_scene(const struct family *family, const char *scene, const char *host,
                        const char *what)
{
    char said[SAID_MAX];
    char wanted[256];

    (void)snprintf(wanted, sizeof(wanted), "rank 0: rank 1 (%.60s) %s", host, what);
    play_under(family, scene, said);
    check_said(family, scene, said, wanted);
}

static void check_family(const struct family *family)
{
    char host[RANKS_HOST_MAX] = "";
    char said[SAID_MAX];
    char wanted[64];

    if (!is_here(family)) {
        test_skip("this launcher of MPI is not installed (openmpi-bin, mpich)");
    }
    (void)gethostname(host, sizeof(host) - 1);
    play_under(family, "exchange", said);
    for (int rank = 0; rank < RANKS; rank++) {
        (void)snprintf(wanted, sizeof(wanted), "rank %d: fine", rank);
        check_said(family, "exchange", said, wanted);
    }
    play_under(family, "honest", said);
    check_said(family, "honest", said, "rank 0: fine");
    check_scene(family, "silent", host, "moved nothing for 2 s");
    check_scene(family, "short", host, "sent what is no message of this place");
    check_scene(family, "long", host, "sent what is no message of this place");
    check_scene(family, "tag", host, "is at another place of the run");
    check_scene(family, "step", host, "is at another place of the run");
    check_scene(family, "job", host, "is at another place of the run");
}

static void test_ranks_speak_through_open_mpi(void **state)
{
    (void)state;
    check_family(&families[0]);
}

static void test_ranks_speak_through_mpich(void **state)
{
    (void)state;
    check_family(&families[1]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_speak_through_open_mpi),
        cmocka_unit_test(test_ranks_speak_through_mpich),
    };

    if (argc == 3 && strcmp(argv[1], "--scene") == 0) {
        return play(argv[2]);
    }
    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
