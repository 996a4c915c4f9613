/*
 * Goal: a check fetches the rows of data that its steps draw, and little more; nothing of the data
 * is used that was not proven; no matter what mirrors do, the verdict is true or there is none.
 * Method: checks of jobs whose data is a hundred times what their steps draw, over endpoints that
 * lie, stall, break off and know nothing of pieces; the bytes that came are counted. A check is
 * killed while rows come; files in the cache are damaged; hidden data is read.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hex.h"
#include "proofs/bundle/bundle.h"
#include "proofs/commit/piece.h"
#include "proofs/job/job_file.h"
#include "tests/support/proofs/drawn_job.h"
#include "tests/support/proofs/hostile_mirror.h"
#include "verifier/check/check.h"
#include "verifier/check/data_rows.h"

enum {
    STEPS = 8,
    SEGMENT = 4,
    MICRO_BATCHES = 2,
    HELD_OUT = 2,
    TOKENS = 8 << 20,
    SAMPLES = 8 << 10,
    TIMEOUT_S = 120,
    TIMEOUT_S_SHORT = 1,
    /* The rows that the steps of a segment draw: training and held-out ones. */
    SEGMENT_ROWS = SEGMENT * MICRO_BATCHES,
    /* What the first request of a mirror asks for: how its file begins. */
    START_SIZE = 12,
};

/* A job, and where it is served. */
struct served {
    struct drawn_job drawn;
    char tree[512]; /* job and checkpoints, a folder: not fetched */
    char root[DRAWN_JOB_DATA][HEX_SIZE(DIGEST_SIZE)];
    struct check_segment segments[STEPS / SEGMENT];
};

struct fixture {
    struct served text;
    struct served images;
    char endpoints[512]; /* served by the mirror: v1/roots */
    struct hostile_mirror mirror;
};

/* ---- what is served ------------------------------------------------------- */

static void insist(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* The data and the lists of their pieces, as `lockstep prover publish` writes them. */
static void publish_data(struct fixture *fixture, struct served *served)
{
    const struct tape *tape = served->drawn.job->tape;
    uint32_t at = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];
        struct digest *hashes;
        struct digest root;
        char to[1024];
        struct error error;

        if (tensor->role != ROLE_DATA) {
            continue;
        }
        error_init(&error);
        hashes = calloc(piece_data_count(tensor), sizeof(*hashes));
        piece_data_hashes(hashes, tensor, served->drawn.bytes[at]);
        piece_data_root(&root, tensor, hashes);
        assert_memory_equal(&root, &served->drawn.job->data_roots[at], sizeof(root));
        hex_encode(served->root[at], root.bytes, DIGEST_SIZE);
        (void)snprintf(to, sizeof(to), "%s/v1/roots/%s", fixture->endpoints, served->root[at]);
        hostile_mirror_copy(to, served->drawn.paths[at]);
        (void)snprintf(to, sizeof(to), "%s/v1/roots/%s.pieces", fixture->endpoints,
                       served->root[at]);
        insist(file_write(to, &error, hashes, piece_data_count(tensor) * DIGEST_SIZE, 0600),
               &error);
        free(hashes);
        at++;
    }
}

/* A bundle of the whole job; then only the job's own copy is kept. */
static void serve_job(struct fixture *fixture, struct served *served, enum model_kind kind,
                      const char *name)
{
    const struct machine_options machine = {.isa = isa_best(), .thread_count = 1};
    struct small_job_options options;
    struct bundle *bundle = NULL;
    struct job *copy = NULL;
    char folder[512];
    struct run run;
    struct error error;

    error_init(&error);
    small_job_of_kind(&options, kind);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    options.model.batch = 1;
    options.model.accumulate = MICRO_BATCHES;
    options.model.data_count = kind == MODEL_MLP ? SAMPLES : TOKENS;
    options.model.held_out.batches = HELD_OUT;
    options.model.held_out.every = SEGMENT;
    drawn_job_new(&served->drawn, &options);
    (void)snprintf(folder, sizeof(folder), "%s/%s.run", test_temp_dir(), name);
    (void)snprintf(served->tree, sizeof(served->tree), "%s/%s.tree", test_temp_dir(), name);
    publish_data(fixture, served);
    (void)snprintf(folder, sizeof(folder), "%s/%s.job", test_temp_dir(), name);
    insist(job_write(served->drawn.job, folder, &error), &error);
    insist(job_read(&copy, folder, &error), &error);
    (void)snprintf(folder, sizeof(folder), "%s/%s.run", test_temp_dir(), name);
    insist(bundle_create(&bundle, folder, copy, &error), &error);
    insist(run_open(&run, bundle_job(bundle), served->drawn.paths, served->drawn.count, &machine,
                    &error),
           &error);
    small_run_begin(&run);
    small_bundle_fill(bundle, &run, 0, STEPS);
    run_close(&run);
    bundle_close(bundle);
    (void)hostile_mirror_publish(served->segments, served->tree, folder);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    char path[600];
    struct error error;

    error_init(&error);
    (void)snprintf(fixture->endpoints, sizeof(fixture->endpoints), "%s/served", test_temp_dir());
    (void)snprintf(path, sizeof(path), "%s/v1/roots", fixture->endpoints);
    insist(file_make_folder(path, &error, 0700), &error);
    serve_job(fixture, &fixture->text, MODEL_GPT2, "text");
    serve_job(fixture, &fixture->images, MODEL_MLP, "images");
    hostile_mirror_start(&fixture->mirror, fixture->endpoints);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    hostile_mirror_stop(&fixture->mirror);
    drawn_job_release(&fixture->text.drawn);
    drawn_job_release(&fixture->images.drawn);
    free(fixture);
    return 0;
}

/* ---- checks --------------------------------------------------------------- */

/* Of a segment, in an empty cache; the job and its checkpoints come from a folder. */
static struct check_request *request_of(const struct served *served, uint32_t index)
{
    static int caches;
    struct check_request *request = calloc(1, sizeof(*request));

    request->job_id = served->drawn.job->id;
    request->steps = STEPS;
    request->segment_steps = SEGMENT;
    request->index = index;
    request->segment_count = index + 1;
    memcpy(request->segments, served->segments, sizeof(served->segments));
    (void)snprintf(request->cache, sizeof(request->cache), "%s/cache-%d", test_temp_dir(),
                   caches++);
    (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX, "%s", served->tree);
    request->memory_max = (uint64_t)1 << 30;
    request->file_max = (uint64_t)64 << 20;
    request->mirror_timeout_s = TIMEOUT_S;
    request->threads = 1;
    return request;
}

static void add_mirror(struct check_request *request, const struct fixture *fixture,
                       const char *how)
{
    (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX, "%s/%s",
                   fixture->mirror.url, how);
}

/* Bytes that endpoints sent, and what came of the check. */
static uint64_t check_bytes(struct check_result *result, const struct check_request *request,
                            enum check_outcome wanted)
{
    uint64_t bytes = 0;

    check_run(result, request, NULL, NULL);
    if (result->outcome != wanted) {
        fail_msg("%s: %s; %s", check_outcome_name(result->outcome), result->reason,
                 result->mirrors[request->mirror_count - 1].trouble);
    }
    for (uint32_t i = 0; i < result->mirror_count; i++) {
        bytes += result->mirrors[i].bytes;
    }
    return bytes;
}

/* Of a file that may have holes. */
static uint64_t bytes_on_disk(const struct check_request *request, const char *root,
                              const char *ending)
{
    char path[FILE_PATH_MAX + 128];
    struct stat about;

    (void)snprintf(path, sizeof(path), "%s/%s%s", request->cache, root, ending);
    return stat(path, &about) == 0 ? (uint64_t)about.st_blocks * 512 : 0;
}

/* ---- how much comes -------------------------------------------------------- */

static void test_a_check_fetches_the_rows_that_its_steps_draw(void **state)
{
    const struct fixture *fixture = *state;
    const struct served *text = &fixture->text;
    struct check_request *request = request_of(text, 0);
    struct check_result *result = malloc(sizeof(*result));
    const uint64_t list = TOKENS / PIECE_DATA_SIZE * DIGEST_SIZE;
    const uint64_t most =
        2 * (list + START_SIZE + 2 * PIECE_DATA_SIZE * (SEGMENT_ROWS + 2 * HELD_OUT));
    uint64_t bytes;

    add_mirror(request, fixture, "good");
    bytes = check_bytes(result, request, CHECK_PROVEN);
    print_message("rows of %d steps: %llu bytes fetched of %u of data and %u of held-out data\n",
                  SEGMENT, (unsigned long long)bytes, TOKENS, TOKENS);
    assert_string_equal(result->note, "");
    assert_true(bytes > 2 * list);
    assert_true(bytes <= most);
    assert_true(bytes < 2 * TOKENS / 80);
    assert_true(bytes_on_disk(request, text->root[0], ".rows") <=
                (uint64_t)2 * PIECE_DATA_SIZE * SEGMENT_ROWS);
    assert_int_equal(bytes_on_disk(request, text->root[0], ""), 0);

    /* Nothing is left to fetch; then the rows of other steps, and no list. */
    assert_int_equal(check_bytes(result, request, CHECK_PROVEN), 0);
    request->index = 1;
    request->segment_count = 2;
    bytes = check_bytes(result, request, CHECK_PROVEN);
    assert_true(bytes > 0);
    assert_true(bytes <= START_SIZE + 2 * PIECE_DATA_SIZE * SEGMENT_ROWS);
    free(request);
    free(result);
}

/* In a .npy the elements begin behind a header. The labels are small, and come whole. */
static void test_rows_of_samples_in_npy_files_are_fetched(void **state)
{
    const struct fixture *fixture = *state;
    const struct served *images = &fixture->images;
    struct check_request *request = request_of(images, 1);
    struct check_result *result = malloc(sizeof(*result));
    uint64_t bytes;

    add_mirror(request, fixture, "good");
    bytes = check_bytes(result, request, CHECK_PROVEN);
    assert_string_equal(result->note, "");
    assert_true(bytes_on_disk(request, images->root[0], ".rows") > 0);
    assert_int_equal(bytes_on_disk(request, images->root[1], ".rows"), 0);
    assert_true(bytes_on_disk(request, images->root[1], "") +
                    bytes_on_disk(request, images->root[1], ".npy") >=
                SAMPLES);
    assert_true(bytes < images->drawn.sizes[0] / 4);
    free(request);
    free(result);
}

static void test_small_data_and_most_of_the_data_come_whole(void **state)
{
    const struct fixture *fixture = *state;
    const struct served *text = &fixture->text;
    struct tensor tensor = {.dtype = DTYPE_U8, .role = ROLE_DATA, .rank = 1};
    struct data_rows rows;
    struct error error;

    error_init(&error);
    insist(data_rows_open(&rows, text->drawn.job, true, &error), &error);
    tensor.count = tensor.dims[0] = TOKENS;
    assert_true(data_rows_pay(&rows, 0, &tensor, SEGMENT));
    assert_true(data_rows_pay(&rows, 0, &tensor, 100));
    assert_false(data_rows_pay(&rows, 0, &tensor, 150)); /* two rows a step, two pieces a row */
    tensor.count = tensor.dims[0] = (1 << 20) - 1;
    assert_false(data_rows_pay(&rows, 0, &tensor, 1));
    data_rows_close(&rows);
    insist(data_rows_open(&rows, text->drawn.job, false, &error), &error);
    tensor.count = tensor.dims[0] = TOKENS;
    assert_false(data_rows_pay(&rows, 0, &tensor, SEGMENT));
    data_rows_close(&rows);
}

/* The second replay proves the rows again, and no byte comes for it. */
static void test_a_false_state_is_refuted_on_rows_alone(void **state)
{
    const struct fixture *fixture = *state;
    struct check_request *request = request_of(&fixture->text, 0);
    struct check_result *result = malloc(sizeof(*result));

    add_mirror(request, fixture, "good");
    request->segments[0].states[2].bytes[5] ^= 1;
    (void)check_bytes(result, request, CHECK_REFUTED);
    assert_int_equal(result->step, 2);
    assert_true(bytes_on_disk(request, fixture->text.root[0], ".rows") > 0);
    assert_int_equal(bytes_on_disk(request, fixture->text.root[0], ""), 0);
    free(request);
    free(result);
}

/* ---- mirrors that do wrong -------------------------------------------------- */

/* The list is right: they lie in the rows. The word stands in the note about them. */
static const struct {
    const char *how;
    const char *says;
    bool lies;
    bool stalls;
} hostile[] = {
    {"parts-foreign", "false bytes of the data", true, false},
    {"parts-shifted", "false bytes of the data", true, false},
    {"parts-truncate", "transfer closed", false, false},
    {"parts-error", "503", false, false},
    {"parts-redirect", "302", false, false},
    {"parts-slow", "", false, true},
    {"parts-half", "shorter", true, false},
    {"wrong", "list of the data's pieces", true, false},
    {"foreign", "list of the data's pieces", true, false},
    {"silent", "", false, true},
};
#define HOSTILE (sizeof(hostile) / sizeof(hostile[0]))

static void test_a_hostile_mirror_alone_gives_no_verdict(void **state)
{
    const struct fixture *fixture = *state;
    struct check_result *result = malloc(sizeof(*result));

    for (size_t i = 0; i < HOSTILE; i++) {
        struct check_request *request = request_of(&fixture->text, 0);
        const struct mirror_note *note = &result->mirrors[1];

        request->mirror_timeout_s = hostile[i].stalls ? TIMEOUT_S_SHORT : TIMEOUT_S;
        add_mirror(request, fixture, hostile[i].how);
        check_run(result, request, NULL, NULL);
        if (result->outcome != CHECK_CANNOT_TELL || note->trouble[0] == '\0' ||
            (note->bad > 0) != hostile[i].lies) {
            fail_msg("%s: %s, bad %u, '%s'", hostile[i].how, check_outcome_name(result->outcome),
                     note->bad, note->trouble);
        }
        assert_string_not_equal(result->reason, "");
        assert_int_equal(bytes_on_disk(request, fixture->text.root[0], ""), 0);
        free(request);
    }
    free(result);
}

static void test_the_next_mirror_gives_the_rows(void **state)
{
    const struct fixture *fixture = *state;
    struct check_result *result = malloc(sizeof(*result));

    for (size_t i = 0; i < HOSTILE; i++) {
        struct check_request *request = NULL;
        uint32_t timeout_s = hostile[i].stalls ? TIMEOUT_S_SHORT : TIMEOUT_S;

        /* So short a patience may be too short for the good one as well, on a busy machine. */
        do {
            free(request);
            request = request_of(&fixture->text, 0);
            request->mirror_timeout_s = timeout_s;
            add_mirror(request, fixture, hostile[i].how);
            add_mirror(request, fixture, "good");
            check_run(result, request, NULL, NULL);
            timeout_s *= 2;
        } while (result->outcome == CHECK_CANNOT_TELL && timeout_s <= TIMEOUT_S);
        if (result->outcome != CHECK_PROVEN || (result->mirrors[1].bad > 0) != hostile[i].lies ||
            result->mirrors[2].bad > 0 ||
            strstr(result->mirrors[1].trouble, hostile[i].says) == NULL) {
            fail_msg("%s: %s, bad %u and %u, '%s'", hostile[i].how,
                     check_outcome_name(result->outcome), result->mirrors[1].bad,
                     result->mirrors[2].bad, result->mirrors[1].trouble);
        }
        assert_string_equal(result->note, "");
        assert_int_equal(bytes_on_disk(request, fixture->text.root[0], ""), 0);
        free(request);
    }
    free(result);
}

/* Servers of before know no lists; some servers of files give no parts. */
static void test_servers_that_know_no_pieces_give_the_whole_data(void **state)
{
    const struct fixture *fixture = *state;
    static const struct {
        const char *how;
        const char *why;
    } ways[] = {{"unlisted", "list of the data's pieces"}, {"parts-whole", "gives parts"}};
    struct check_result *result = malloc(sizeof(*result));

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct check_request *request = request_of(&fixture->text, 0);

        add_mirror(request, fixture, ways[i].how);
        assert_true(check_bytes(result, request, CHECK_PROVEN) >= (uint64_t)2 * TOKENS);
        assert_non_null(strstr(result->note, "whole data is fetched, not the rows alone: "));
        assert_non_null(strstr(result->note, ways[i].why));
        assert_int_equal(result->mirrors[1].bad, 0);
        assert_int_equal(check_bytes(result, request, CHECK_PROVEN), 0); /* it is kept */
        assert_string_equal(result->note, "");
        free(request);
    }
    free(result);
}

/* A dispute opens paths through the whole tree. */
static enum status visit(struct check_step *step, struct error *error)
{
    (void)step;
    (void)error;
    return STATUS_OK;
}

static bool knows(const struct check_request *request)
{
    (void)request;
    return false;
}

static void test_a_disputed_step_has_whole_data(void **state)
{
    const struct check_visitor visitor = {knows, visit};
    const struct fixture *fixture = *state;
    struct check_request *request = request_of(&fixture->text, 0);
    struct check_result *result = malloc(sizeof(*result));

    add_mirror(request, fixture, "good");
    request->disputed = true;
    request->disputed_step = 1;
    check_run(result, request, &visitor, NULL);
    assert_int_equal(result->outcome, CHECK_PROVEN);
    assert_true(bytes_on_disk(request, fixture->text.root[0], "") >= TOKENS);
    assert_int_equal(bytes_on_disk(request, fixture->text.root[0], ".rows"), 0);
    free(request);
    free(result);
}

/* A device gets its data in one upload. */
static void test_a_gpu_has_whole_data(void **state)
{
    const struct fixture *fixture = *state;
    struct check_request *request = request_of(&fixture->text, 0);
    struct check_result *result = malloc(sizeof(*result));

    assert_int_equal(setenv("LOCKSTEP_CUDA", "build/tests/emulated_cuda.so", 1), 0);
    add_mirror(request, fixture, "good");
    (void)snprintf(request->device, sizeof(request->device), "cuda");
    check_run(result, request, NULL, NULL);
    assert_int_equal(unsetenv("LOCKSTEP_CUDA"), 0);
    assert_true(bytes_on_disk(request, fixture->text.root[0], "") >= TOKENS);
    assert_int_equal(bytes_on_disk(request, fixture->text.root[0], ".rows"), 0);
    free(request);
    free(result);
}

/* ---- what breaks ------------------------------------------------------------ */

/* The check as a process of its own: this program, with the request in a file. */
static pid_t start_check(const struct check_request *request)
{
    json_t *object = check_request_json(request);
    const char *path = small_path("request.json");
    pid_t child;

    assert_int_equal(json_dump_file(object, path, 0), 0);
    json_decref(object);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)execl("/proc/self/exe", "data_rows_test", path, (char *)NULL);
        _exit(127);
    }
    return child;
}

static int check_file(const char *path)
{
    struct check_request *request = calloc(1, sizeof(*request));
    struct check_result *result = calloc(1, sizeof(*result));
    struct file_bytes bytes;
    struct error error;

    error_init(&error);
    insist(file_read(&bytes, &error, path, CHECK_WIRE_MAX), &error);
    insist(check_request_parse(request, bytes.data, bytes.size, &error), &error);
    check_run(result, request, NULL, NULL);
    file_bytes_release(&bytes);
    free(request);
    free(result);
    return 0;
}

/* Killed while rows come one by one; the next check fetches what is missing. */
static void test_a_killed_check_is_gone_on_with(void **state)
{
    const struct fixture *fixture = *state;
    struct check_request *request = request_of(&fixture->text, 0);
    struct check_request *fresh = request_of(&fixture->text, 0);
    struct check_result *result = malloc(sizeof(*result));
    const char *root = fixture->text.root[0];
    uint64_t kept;
    uint64_t whole;
    uint64_t rest;
    pid_t child;

    add_mirror(fresh, fixture, "good");
    whole = check_bytes(result, fresh, CHECK_PROVEN);
    add_mirror(request, fixture, "parts-paced");
    child = start_check(request);
    while (bytes_on_disk(request, root, ".rows") < (uint64_t)3 * PIECE_DATA_SIZE) {
        assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
        (void)usleep(2000);
    }
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    kept = bytes_on_disk(request, root, ".rows");
    (void)snprintf(request->mirrors[1], FILE_PATH_MAX, "%s/good", fixture->mirror.url);
    rest = check_bytes(result, request, CHECK_PROVEN);
    assert_true(rest > 0);
    assert_true(rest + kept <= whole + PIECE_DATA_SIZE); /* at most the last one comes again */
    free(request);
    free(fresh);
    free(result);
}

static void spoil(const struct check_request *request, const char *root, const char *ending)
{
    char path[FILE_PATH_MAX + 128];
    struct stat about;
    uint8_t *bytes;
    int descriptor;

    (void)snprintf(path, sizeof(path), "%s/%s%s", request->cache, root, ending);
    descriptor = open(path, O_RDWR | O_CLOEXEC);
    assert_true(descriptor >= 0);
    assert_int_equal(fstat(descriptor, &about), 0);
    bytes = malloc((size_t)about.st_size);
    memset(bytes, 0x5a, (size_t)about.st_size);
    assert_int_equal(pwrite(descriptor, bytes, (size_t)about.st_size, 0), about.st_size);
    (void)close(descriptor);
    free(bytes);
}

/* The cache is trusted no more than a mirror. */
static void test_damaged_rows_and_lists_are_fetched_again(void **state)
{
    const struct fixture *fixture = *state;
    struct check_request *request = request_of(&fixture->text, 0);
    struct check_result *result = malloc(sizeof(*result));
    uint64_t first;

    add_mirror(request, fixture, "good");
    first = check_bytes(result, request, CHECK_PROVEN);
    spoil(request, fixture->text.root[0], ".rows");
    spoil(request, fixture->text.root[1], ".rows");
    spoil(request, fixture->text.root[0], ".pieces");
    spoil(request, fixture->text.root[1], ".pieces");
    assert_int_equal(check_bytes(result, request, CHECK_PROVEN), first);
    free(request);
    free(result);
}

/* A run on rows: its data is open, and shows those of one step. */
static void open_rows(struct run *run, struct data_rows *rows, struct fetch **fetch,
                      const struct fixture *fixture, struct check_request *request,
                      struct check_result *result)
{
    const struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    const struct job *job = fixture->text.drawn.job;
    const char *paths[DRAWN_JOB_DATA];
    uint32_t at = 0;
    struct error error;

    error_init(&error);
    memset(result, 0, sizeof(*result));
    add_mirror(request, fixture, "good");
    insist(fetch_open(fetch, request, result, &error), &error);
    insist(data_rows_open(rows, job, true, &error), &error);
    for (uint32_t id = 0; id < job->tape->tensor_count; id++) {
        if (job->tape->tensors[id].role == ROLE_DATA) {
            insist(data_rows_begin(rows, at, *fetch, job, &job->tape->tensors[id], &error), &error);
            paths[at] = rows->parts[at].path;
            at++;
        }
    }
    insist(run_open_compared(run, job, paths, at, NULL, &options, &error), &error);
    insist(data_rows_bind(rows, run, &error), &error);
    small_run_begin(run);
    insist(data_rows_fetch(rows, run, *fetch, 1, &error), &error);
}

static void test_what_is_not_proven_is_never_read(void **state)
{
    const struct fixture *fixture = *state;
    struct check_request *request = request_of(&fixture->text, 0);
    struct check_result *result = malloc(sizeof(*result));
    struct data_rows rows;
    struct fetch *fetch;
    struct run run;
    struct error error;
    int how = 0;
    pid_t child;

    error_init(&error);
    open_rows(&run, &rows, &fetch, fixture, request, result);
    insist(data_rows_check_step(&rows, &run, &error), &error);
    small_run_step(&run);
    assert_int_equal(data_rows_check_step(&rows, &run, &error), STATUS_REFUSED);
    assert_non_null(strstr(error.text, "of the data 'data', and piece"));
    assert_non_null(strstr(error.text, "is not proven"));

    child = fork(); /* without the check, the step reads what is hidden */
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGSEGV, SIG_DFL);
        small_run_step(&run);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGSEGV);
    run_close(&run);
    data_rows_close(&rows);
    fetch_close(fetch);
    free(request);
    free(result);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_check_fetches_the_rows_that_its_steps_draw),
        cmocka_unit_test(test_rows_of_samples_in_npy_files_are_fetched),
        cmocka_unit_test(test_small_data_and_most_of_the_data_come_whole),
        cmocka_unit_test(test_a_false_state_is_refuted_on_rows_alone),
        cmocka_unit_test(test_a_hostile_mirror_alone_gives_no_verdict),
        cmocka_unit_test(test_the_next_mirror_gives_the_rows),
        cmocka_unit_test(test_servers_that_know_no_pieces_give_the_whole_data),
        cmocka_unit_test(test_a_disputed_step_has_whole_data),
        cmocka_unit_test(test_a_gpu_has_whole_data),
        cmocka_unit_test(test_a_killed_check_is_gone_on_with),
        cmocka_unit_test(test_damaged_rows_and_lists_are_fetched_again),
        cmocka_unit_test(test_what_is_not_proven_is_never_read),
    };

    if (argc == 2) {
        return check_file(argv[1]);
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
