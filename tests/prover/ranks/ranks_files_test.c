/*
 * Goal: a rank writes its share of a checkpoint to the file that rank 0 has made and to nothing
 * else: no pipe, which would hold it up, no link, no file of another size, none that is finished,
 * none that is larger than a checkpoint. It says so, rank 0 names it and writes all by itself.
 *
 * Method: two ranks are threads, each with a folder of its own; what lies in the second one's
 * under the name of the checkpoint is planted. Where both see one folder the bytes are those that
 * rank 0 writes alone.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "proofs/format/safetensors.h"
#include "prover/ranks/ranks_machine.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/numeric/start.h"
#include "tests/support/ranks/memory_link.h"
#include "tests/support/test.h"

#define RANKS  2
#define STATES 512
#define HEADER 64 /* bytes before the first tensor */
#define PART   "000000000002.safetensors.part-abcdef"
#define WHOLE  "000000000002.safetensors"
#define OURS   "ours"
#define THEIRS "theirs"

struct one_rank {
    const struct start *start;
    const struct ranks_link *through;
    struct ranks_team team;
    struct ranks_machine_plan plan;
    struct machine_save save;
    char folder[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];
    char told[ERROR_TEXT_MAX]; /* why rank 0 writes alone; "": all write */
    enum status status;
    struct error error;
};

static void at(char path[FILE_PATH_MAX], const char *folder, const char *name)
{
    (void)snprintf(path, FILE_PATH_MAX, "%s/%s/%s", test_temp_dir(), folder, name);
}

/* ---- two ranks ------------------------------------------------------------------- */

static void keep_told(void *context, const char *why)
{
    struct one_rank *rank = context;

    (void)snprintf(rank->told, sizeof(rank->told), "%s", why);
}

static enum status play(struct one_rank *rank, struct machine *machine)
{
    TRY(start_give(machine, rank->start, &rank->error));
    if (rank->team.link.rank != 0) {
        return ranks_machine_follow(machine, &rank->error);
    }
    return machine->backend->save(machine, &rank->save, &rank->error);
}

static void *run_rank(void *context)
{
    struct one_rank *rank = context;
    struct machine_options options;
    struct machine *machine = NULL;

    rank->status = ranks_team_open(&rank->team, rank->through->rank, RANKS, &rank->error);
    rank->team.link.exchange = rank->through->exchange;
    rank->team.link.context = rank->through->context;
    rank->plan.team = &rank->team;
    options = ranks_machine_options(&rank->plan);
    if (rank->status == STATUS_OK) {
        rank->status = machine_open(&machine, rank->start->tape, &options, &rank->error);
    }
    if (rank->status == STATUS_OK) {
        rank->status = play(rank, machine);
        machine->backend->close(machine);
    }
    ranks_team_close(&rank->team);
    return NULL;
}

static struct one_rank all[RANKS];

/* Where the tensors go in the file; `extra` bytes lie behind them. */
static struct machine_save layout(const struct tape *tape, uint64_t extra)
{
    static uint32_t tensors[STATES];
    static uint64_t places[STATES];
    struct machine_save made = {.tensors = tensors, .places = places, .size = HEADER};

    assert_true(tape->state_count <= STATES);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        tensors[made.count] = tape->states[i].before;
        places[made.count++] = made.size;
        made.size += start_size(tape, tape->states[i].before);
    }
    made.size += extra;
    return made;
}

static void run_all(const struct start *start, const struct machine_save *made, const char *folder)
{
    struct memory_links *links = memory_links_new(RANKS);
    pthread_t threads[RANKS];

    for (uint32_t i = 0; i < RANKS; i++) {
        all[i] = (struct one_rank){.start = start, .through = memory_links_of(links, i)};
        all[i].plan = (struct ranks_machine_plan){.own = {.isa = isa_best(), .thread_count = 1},
                                                  .folder = all[i].folder,
                                                  .tell = keep_told,
                                                  .context = &all[i]};
        all[i].save = *made;
        error_init(&all[i].error);
        at(all[i].folder, folder, "");
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &all[i]), 0);
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        (void)pthread_join(threads[i], NULL);
        start_must(all[i].status, &all[i].error);
    }
    memory_links_free(links);
}

/* Rank 0 saves to a file of its folder, and the other one sees `folder`. Why rank 0 wrote alone, or
 * "". */
static const char *save(const char *name, const char *folder, uint64_t extra)
{
    struct model_options options;
    struct machine_save made;
    struct small_model small;
    struct start start;
    char path[FILE_PATH_MAX];

    small_model_options(&options, MODEL_GPT2);
    options.accumulate = 4;
    options.group = 1;
    small_model_open(&small, &options);
    start_model(&start, &small);
    at(path, OURS, name);
    made = layout(start.tape, extra);
    made.path = path;
    assert_int_equal(file_write(path, NULL, "", 0, 0600), STATUS_OK);
    assert_int_equal(truncate(path, (off_t)made.size), 0);
    run_all(&start, &made, folder);
    start_release(&start);
    small_model_close(&small);
    return all[0].told;
}

static struct file_bytes read_at(const char *folder, const char *name)
{
    struct file_bytes bytes;
    char path[FILE_PATH_MAX];

    at(path, folder, name);
    assert_int_equal(file_read(&bytes, NULL, path, (size_t)1 << 24), STATUS_OK);
    return bytes;
}

/* Is a file of ours what rank 0 writes alone? */
static void see_bytes(const char *name)
{
    struct file_bytes found = read_at(OURS, name);
    struct file_bytes wanted = read_at(OURS, "alone");

    assert_int_equal(found.size, wanted.size);
    assert_memory_equal(found.data, wanted.data, wanted.size);
    file_bytes_release(&found);
    file_bytes_release(&wanted);
}

static void see_refusal(const char *told, const char *words)
{
    if (strstr(told, "rank 1 (") == NULL || strstr(told, words) == NULL) {
        fail_msg("'%s' is not in: %s", words, told);
    }
}

/* ---- what lies there --------------------------------------------------------------- */

static int clean(void **state)
{
    static const char *const names[] = {PART, WHOLE, "target"};
    static const char *const folders[] = {OURS, THEIRS};
    char path[FILE_PATH_MAX];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (size_t name = 0; name < 3; name++) {
            at(path, folders[i], names[name]);
            (void)unlink(path);
        }
        at(path, folders[i], "");
        (void)mkdir(path, 0700);
    }
    return 0;
}

static void test_ranks_that_see_one_folder_write_what_one_writes(void **state)
{
    char from[FILE_PATH_MAX];
    char to[FILE_PATH_MAX];

    (void)state;
    see_refusal(save(PART, THEIRS, 0), "cannot open '"); /* rank 0 alone */
    at(from, OURS, PART);
    at(to, OURS, "alone");
    assert_int_equal(rename(from, to), 0);
    assert_string_equal(save(PART, OURS, 0), "");
    see_bytes(PART);
}

static void test_a_pipe_holds_no_rank_up(void **state)
{
    char path[FILE_PATH_MAX];
    int reader;

    (void)state;
    at(path, THEIRS, PART);
    assert_int_equal(mkfifo(path, 0600), 0);
    see_refusal(save(PART, THEIRS, 0), "cannot open '");
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* with one it can be opened */
    assert_true(reader >= 0);
    see_refusal(save(PART, THEIRS, 0), "is another file than rank 0 has made");
    (void)close(reader);
    see_bytes(PART);
}

/* Neither to another size nor to one of the right size. */
static void test_no_rank_follows_a_link(void **state)
{
    struct file_bytes bytes;
    char path[FILE_PATH_MAX];
    char target[FILE_PATH_MAX];
    struct stat about;

    (void)state;
    at(path, OURS, "alone");
    assert_int_equal(stat(path, &about), 0);
    at(path, THEIRS, PART);
    at(target, THEIRS, "target");
    assert_int_equal(file_write(target, NULL, "", 0, 0600), STATUS_OK);
    assert_int_equal(truncate(target, about.st_size), 0);
    assert_int_equal(symlink(target, path), 0);
    see_refusal(save(PART, THEIRS, 0), "cannot open '");
    bytes = read_at(THEIRS, "target");
    for (size_t i = 0; i < bytes.size; i++) {
        assert_int_equal(((const uint8_t *)bytes.data)[i], 0);
    }
    file_bytes_release(&bytes);
}

static void test_a_file_of_another_size_is_left_alone(void **state)
{
    struct file_bytes bytes;
    char path[FILE_PATH_MAX];

    (void)state;
    at(path, THEIRS, PART);
    assert_int_equal(file_write(path, NULL, "precious", 8, 0600), STATUS_OK);
    see_refusal(save(PART, THEIRS, 0), "is another file than rank 0 has made");
    bytes = read_at(THEIRS, PART);
    assert_int_equal(bytes.size, 8);
    assert_memory_equal(bytes.data, "precious", 8);
    file_bytes_release(&bytes);
}

/* Rank 0 names one that lies there finished. */
static void test_a_finished_checkpoint_is_never_written_to(void **state)
{
    (void)state;
    see_refusal(save(WHOLE, OURS, 0), "'" WHOLE "' is no file that is being written");
    see_bytes(WHOLE);
}

static void test_a_file_larger_than_a_checkpoint_is_refused(void **state)
{
    (void)state;
    see_refusal(save(PART, OURS, SAFETENSORS_HEADER_MAX + 8),
                "is larger than a checkpoint of this job");
    assert_string_equal(save(PART, OURS, SAFETENSORS_HEADER_MAX + 8 - HEADER), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_ranks_that_see_one_folder_write_what_one_writes, clean),
        cmocka_unit_test_setup(test_a_pipe_holds_no_rank_up, clean),
        cmocka_unit_test_setup(test_no_rank_follows_a_link, clean),
        cmocka_unit_test_setup(test_a_file_of_another_size_is_left_alone, clean),
        cmocka_unit_test_setup(test_a_finished_checkpoint_is_never_written_to, clean),
        cmocka_unit_test_setup(test_a_file_larger_than_a_checkpoint_is_refused, clean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
