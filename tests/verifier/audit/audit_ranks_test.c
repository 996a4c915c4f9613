/*
 * Goal: an audit under mpirun says what a single process says, and a rank that dies or cannot take
 * part makes "could not tell", never another verdict.
 * Method: the program itself under mpirun and alone, on true and false bundles; this test as the
 * program that mpirun starts, with a replay that kills its child or its rank; the merging and the
 * wire by themselves.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proofs/commit/state_root.h"
#include "tests/support/dispute/cheat.h"
#include "verifier/audit/audit_ranks.h"
#include "verifier/audit/audit_wire.h"

enum {
    STEPS = 12,
    SEGMENT = 2,
    RANK_WORD_AT = 1,
};

#define OUTPUT_MAX ((size_t)1 << 20)

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- merging ---------------------------------------------------------------- */

static struct audit_result part(enum audit_answer answer, uint64_t checked)
{
    struct audit_result result = {.answer = answer,
                                  .steps_of_job = 100,
                                  .steps_journaled = 90,
                                  .steps_wanted = 60,
                                  .steps_due = 20,
                                  .steps_checked = checked};

    error_init(&result.reason);
    return result;
}

static void test_parts_decide_in_the_order_of_the_steps(void **state)
{
    static const struct {
        enum audit_answer parts[3];
        enum audit_answer whole;
        uint64_t checked;
    } known[] = {
        {{AUDIT_PROVEN, AUDIT_PROVEN, AUDIT_PROVEN}, AUDIT_PROVEN, 60},
        {{AUDIT_REFUTED, AUDIT_PROVEN, AUDIT_PROVEN}, AUDIT_REFUTED, 7},
        {{AUDIT_PROVEN, AUDIT_REFUTED, AUDIT_REFUTED}, AUDIT_REFUTED, 27},
        {{AUDIT_PROVEN, AUDIT_CANNOT_TELL, AUDIT_REFUTED}, AUDIT_CANNOT_TELL, 27},
        {{AUDIT_REFUTED, AUDIT_CANNOT_TELL, AUDIT_PROVEN}, AUDIT_REFUTED, 7},
        {{AUDIT_CANNOT_TELL, AUDIT_PROVEN, AUDIT_PROVEN}, AUDIT_CANNOT_TELL, 7},
        {{AUDIT_PROVEN, AUDIT_PROVEN, AUDIT_CANNOT_TELL}, AUDIT_CANNOT_TELL, 47},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct audit_result parts[3];

        for (size_t at = 0; at < 3; at++) {
            parts[at] = part(known[i].parts[at], known[i].parts[at] == AUDIT_PROVEN ? 20 : 7);
            parts[at].wrong_step = 10 * at;
        }
        audit_ranks_merge(parts, NULL, 3);
        assert_int_equal(parts[0].answer, known[i].whole);
        assert_int_equal(parts[0].steps_checked, known[i].checked);
        assert_int_equal(parts[0].steps_due, 60);
        if (known[i].whole == AUDIT_REFUTED) {
            assert_int_equal(parts[0].wrong_step, known[i].checked == 7 ? 0 : 10);
        }
    }
}

static void test_pages_add_up_to_the_part_that_decides(void **state)
{
    static struct report pages[3];
    struct audit_result parts[3] = {part(AUDIT_PROVEN, 20), part(AUDIT_REFUTED, 5),
                                    part(AUDIT_PROVEN, 20)};
    struct job job = {.steps = 3};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        report_begin(&pages[i], "page", &job);
        pages[i].cells[i].checked = 2;
        pages[i].cells[i].replay_time = 4.0;
        pages[i].cells[0].checked += 1;
        pages[i].cells[0].replay_time = 1.0;
        pages[i].cells[i].wrong = i == 1;
    }
    audit_ranks_merge(parts, pages, 3);
    assert_int_equal(pages[0].cells[0].checked, 4);
    assert_int_equal(pages[0].cells[1].checked, 2);
    assert_true(pages[0].cells[1].wrong);
    assert_int_equal(pages[0].cells[2].checked, 0);
    assert_true(pages[0].cells[0].replay_time == 1.0);
}

/* ---- the wire ------------------------------------------------------------------ */

static void full_result(struct audit_result *result)
{
    *result = part(AUDIT_REFUTED, 20);
    result->flaw = AUDIT_FLAW_WENT_ON;
    result->wrong_step = 77;
    result->checkpoints = (struct checkpoint_audit){
        .checked = 3, .locked = 1, .broken_count = 9, .broken[7] = {"a", "b"}, .last = {"c", "d"}};
    result->location = (struct fault_location){.kind = EVIDENCE_ELEMENT,
                                               .own_trace = true,
                                               .op_known = true,
                                               .op = 3,
                                               .output = 1,
                                               .op_name = "matmul",
                                               .instance = "micro-batch 3",
                                               .tensor_known = true,
                                               .tensor = "layers.0.weight",
                                               .element_known = true,
                                               .element = UINT64_C(1) << 40,
                                               .dtype = DTYPE_I16,
                                               .found = 5,
                                               .wanted_known = true,
                                               .wanted = 0xfffffff0,
                                               .proven_element = 9,
                                               .lacking = "nothing"};
    result->location.evidence = malloc(1000);
    assert_non_null(result->location.evidence);
    result->location.evidence_size = 1000;
    memset(result->location.evidence, 0xab, 1000);
}

static void test_a_result_crosses_the_wire_whole_or_not_at_all(void **state)
{
    static struct report page;
    static struct report page_read;
    struct audit_result result;
    struct audit_result read;
    struct buffer bytes;
    struct buffer again;
    struct reader reader;
    struct error error;
    struct job job = {.steps = 50};

    (void)state;
    error_init(&error);
    full_result(&result);
    report_begin(&page, "", &job);
    page.cells[7].replay_time = 0.125;
    page.seconds = 3.5;
    (void)snprintf(page.device, sizeof(page.device), "cpu");
    buffer_init(&bytes, OUTPUT_MAX);
    audit_wire_write(&bytes, &result, &page);
    reader_init(&reader, bytes.data, bytes.size);
    check(audit_wire_read(&read, &page_read, &reader, &error), &error);
    assert_int_equal(reader_left(&reader), 0);
    buffer_init(&again, OUTPUT_MAX);
    audit_wire_write(&again, &read, &page_read);
    assert_int_equal(again.size, bytes.size);
    assert_memory_equal(again.data, bytes.data, bytes.size);
    assert_int_equal(read.location.evidence_size, 1000);
    assert_string_equal(read.location.tensor, "layers.0.weight");
    audit_result_release(&read);
    for (size_t size = 0; size < bytes.size; size += 1 + size / 40) {
        reader_init(&reader, bytes.data, size);
        assert_int_not_equal(audit_wire_read(&read, &page_read, &reader, &error), STATUS_OK);
        audit_result_release(&read);
    }
    reader_init(&reader, bytes.data, bytes.size);
    assert_int_not_equal(audit_wire_read(&read, NULL, &reader, &error), STATUS_OK);
    audit_result_release(&read);
    audit_result_release(&result);
    buffer_release(&again);
    buffer_release(&bytes);
}

/* ---- under mpirun ---------------------------------------------------------------- */

static void need_mpirun(void)
{
    if (system("command -v mpirun >/dev/null 2>&1") != 0) {
        test_skip("no mpirun here: apt-get install openmpi-bin");
    }
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    (void)setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
}

/* stdout of a command line; *code is its exit code. The caller frees it. */
static char *output_of(const char *command, int *code)
{
    char *text = calloc(1, OUTPUT_MAX);
    FILE *pipe = popen(command, "r");
    int status;

    assert_non_null(text);
    assert_non_null(pipe);
    text[fread(text, 1, OUTPUT_MAX - 1, pipe)] = '\0';
    status = pclose(pipe);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return text;
}

#define MPIRUN "timeout 800 mpirun --oversubscribe --bind-to none"

/* The same words and the same exit code, alone and with 2 or more ranks. */
static void expect_same(const char *arguments, int wanted_code, int ranks_max)
{
    char command[4096];
    char *alone;
    int code;

    (void)snprintf(command, sizeof(command), "%s audit --threads 1 %s 2>/dev/null", test_program(),
                   arguments);
    alone = output_of(command, &code);
    assert_int_equal(code, wanted_code);
    for (int ranks = 2; ranks <= ranks_max; ranks++) {
        char *together;

        (void)snprintf(command, sizeof(command), MPIRUN " -np %d %s audit --threads 1 %s", ranks,
                       test_program(), arguments);
        together = output_of(command, &code);
        assert_string_equal(together, alone);
        assert_int_equal(code, wanted_code);
        free(together);
    }
    free(alone);
}

static const char *bundle_of(const char *name, enum cheat cheat, uint64_t step)
{
    const char *path = small_path(name);
    struct small_job_options options;
    uint64_t random = 5;

    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    cheat_bundle_new(path, small_job_new(&options), cheat, step, &random);
    return path;
}

#define DATA "--data fixtures/images/shapes.npy --data fixtures/images/shapes-labels.npy"

static void test_ranks_together_say_what_one_process_says(void **state)
{
    const char *honest;
    const char *folder = test_temp_dir();
    char arguments[2048];

    (void)state;
    need_mpirun();
    honest = bundle_of("honest", CHEAT_NOT, 0);
    (void)snprintf(arguments, sizeof(arguments), DATA " --json %s", honest);
    expect_same(arguments, 0, 3);
    (void)snprintf(arguments, sizeof(arguments), DATA " --sample 3 --sample-seed 8 %s %s", honest,
                   honest);
    expect_same(arguments, 0, 2);
    for (uint64_t step = 1; step < STEPS; step += 6) { /* in each rank's share */
        char name[32];
        const char *cheating;

        (void)snprintf(name, sizeof(name), "cheat-%u", (unsigned)step);
        cheating = bundle_of(name, CHEAT_ULP, step);
        (void)snprintf(arguments, sizeof(arguments), DATA " --evidence-dir %s --json %s %s", folder,
                       cheating, honest);
        expect_same(arguments, 1, 2);
    }
    (void)snprintf(arguments, sizeof(arguments), "%s/checkpoints/000000000004.safetensors", honest);
    assert_int_equal(unlink(arguments), 0);
    (void)snprintf(arguments, sizeof(arguments), DATA " %s", honest);
    expect_same(arguments, 0, 3);
    (void)snprintf(arguments, sizeof(arguments), "%s/checkpoints/000000000012.safetensors", honest);
    assert_int_equal(truncate(arguments, 3000), 0);
    (void)snprintf(arguments, sizeof(arguments), DATA " --json %s", honest);
    expect_same(arguments, 2, 3);
    (void)snprintf(arguments, sizeof(arguments), "--data %s --json %s %s",
                   "fixtures/images/shapes.npy", honest, folder);
    expect_same(arguments, 2, 2);
}

/* The map and the verdict; the times differ. */
static void test_the_page_of_ranks_shows_what_all_of_them_checked(void **state)
{
    char command[4096];
    char *pages[2];
    int code;

    (void)state;
    need_mpirun();
    for (int ranks = 1; ranks <= 2; ranks++) {
        const char *page = small_path(ranks == 1 ? "alone.html" : "together.html");

        (void)snprintf(command, sizeof(command),
                       MPIRUN " -np %d %s audit --threads 1 " DATA " --report %s %s >/dev/null",
                       ranks, test_program(), page,
                       bundle_of(ranks == 1 ? "page-1" : "page-2", CHEAT_NOT, 0));
        free(output_of(command, &code));
        assert_int_equal(code, 0);
        (void)snprintf(command, sizeof(command),
                       "grep -E '<i class=\"m|verdict|Steps run again' %s | grep -v style", page);
        pages[ranks - 1] = output_of(command, &code);
    }
    assert_non_null(strstr(pages[0], "<i class=\"m"));
    assert_string_equal(pages[0], pages[1]);
    free(pages[0]);
    free(pages[1]);
}

/* ---- what goes wrong ----------------------------------------------------------------- */

/* This program as a rank: bundles that are proven, but where the word says how rank 1 ends. */
static void pretend(void *context, struct audit_result *result, struct report *report, size_t index,
                    uint32_t share, uint32_t share_count, struct stop *stop)
{
    const char *word = context;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    bool here = rank != NULL && strcmp(rank, "1") == 0;

    (void)report;
    (void)share;
    (void)share_count;
    if (here && index == 1 && strcmp(word, "child") == 0) {
        (void)raise(SIGKILL);
    }
    if (here && index == 1 && strcmp(word, "rank") == 0) {
        (void)kill(getppid(), SIGKILL);
        while (!stop_wait(stop, 60.0)) { /* it is told to end with its rank */
        }
    }
    *result = part(AUDIT_PROVEN, 20);
}

static int be_rank(const char *word)
{
    struct audit_view views[3] = {{.path = "a"}, {.path = "b"}, {.path = "c"}};
    struct audit_ranks ranks = {.bundle_count = 3, .audit_one = pretend};
    char name[16];
    struct error error;

    error_init(&error);
    (void)snprintf(name, sizeof(name), "%s", word);
    ranks.context = name;
    if (!audit_ranks_wanted(&ranks)) {
        return 9;
    }
    if (audit_ranks_run(views, NULL, &ranks, &error) != STATUS_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    for (size_t i = 0; i < 3 && ranks.rank == 0; i++) {
        printf("%s%s", audit_answer_name(views[i].result.answer), i < 2 ? " " : "\n");
        fprintf(stderr, "%s\n", views[i].result.reason.text);
    }
    return 0;
}

static const char *this_program(void)
{
    static char path[1024];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);

    assert_in_range(size, 1, sizeof(path) - 1);
    path[size] = '\0';
    return path;
}

static void test_a_replay_that_dies_gives_no_answer_from_there_on(void **state)
{
    char command[4096];
    char *text;
    int code;

    (void)state;
    need_mpirun();
    (void)snprintf(command, sizeof(command), MPIRUN " -np 2 %s none 2>/dev/null", this_program());
    text = output_of(command, &code);
    assert_string_equal(text, "proven proven proven\n");
    assert_int_equal(code, 0);
    free(text);
    (void)snprintf(command, sizeof(command), MPIRUN " -np 2 %s child 2>&1", this_program());
    text = output_of(command, &code);
    assert_non_null(strstr(text, "proven cannot-tell cannot-tell\n"));
    assert_non_null(strstr(text, "rank 1: the replay of a share was ended by signal 9"));
    assert_int_equal(code, 0);
    free(text);
}

static void test_a_rank_that_dies_leaves_no_verdict(void **state)
{
    char command[4096];
    char *text;
    int code;

    (void)state;
    need_mpirun();
    (void)snprintf(command, sizeof(command), MPIRUN " -np 2 %s rank 2>/dev/null", this_program());
    text = output_of(command, &code);
    assert_null(strstr(text, "proven"));
    assert_true(code != 0 && code != 1);
    free(text);
}

static void test_a_rank_without_the_library_leaves_no_verdict(void **state)
{
    const char *folder = small_path("broken-library");
    char command[4096];
    char path[1024];
    struct error error;
    char *text;
    int code;

    (void)state;
    need_mpirun();
    error_init(&error);
    check(file_make_folder(folder, &error, 0700), &error);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, i == 0 ? "libmpi.so.40" : "libmpi.so");
        check(file_write(path, &error, "no library", 10, 0600), &error);
    }
    /* One program that differs by its rank: mpirun 5.0.7 of Debian 13 dies of two programs. */
    (void)snprintf(command, sizeof(command),
                   MPIRUN " -np 2 sh -c '[ \"$OMPI_COMM_WORLD_RANK\" = 0 ] || "
                          "export LD_LIBRARY_PATH=%s; exec %s none' 2>&1",
                   folder, this_program());
    text = output_of(command, &code);
    assert_null(strstr(text, "proven"));
    assert_non_null(strstr(text, "Open MPI's library does not load"));
    assert_int_equal(code, 2);
    free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_decide_in_the_order_of_the_steps),
        cmocka_unit_test(test_pages_add_up_to_the_part_that_decides),
        cmocka_unit_test(test_a_result_crosses_the_wire_whole_or_not_at_all),
        cmocka_unit_test(test_ranks_together_say_what_one_process_says),
        cmocka_unit_test(test_the_page_of_ranks_shows_what_all_of_them_checked),
        cmocka_unit_test(test_a_replay_that_dies_gives_no_answer_from_there_on),
        cmocka_unit_test(test_a_rank_that_dies_leaves_no_verdict),
        cmocka_unit_test(test_a_rank_without_the_library_leaves_no_verdict),
    };

    /* Open MPI leaves memory behind in every rank: what a sanitized rank would say of that is not
     * about us. This process has read its own options already. */
    if (setenv("ASAN_OPTIONS", "detect_leaks=0", 0) != 0) {
        return 1;
    }
    return argc > 1 ? be_rank(argv[RANK_WORD_AT]) : cmocka_run_group_tests(tests, NULL, NULL);
}
