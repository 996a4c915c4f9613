/*
 * Goal: no matter what mirrors do, a check comes to the true verdict or to none, in bounded time
 * and space, and the mirror that did wrong is the one that is marked. Method: a whole check, with
 * the same small bundle, over mirrors that truncate, change, swap, drip, stall, flood and redirect,
 * each alone and before a good one; mirrors that are folders, bundles and endpoints.
 */
#include "tests/support/test.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/steady.h"
#include "proofs/bundle/bundle.h"
#include "proofs/commit/commit.h"
#include "tests/support/dispute/cheat.h"
#include "tests/support/proofs/hostile_mirror.h"
#include "verifier/check/check.h"

enum {
    STEPS = 12,
    SEGMENT = 4,
    MIRROR_TIMEOUT_S = 120,     /* with a mirror that gives something: a busy machine has time */
    MIRROR_TIMEOUT_S_SHORT = 2, /* with one that gives nothing */
};

struct fixture {
    char bundle[600];
    char tree[600];
    struct hostile_mirror mirror;
    struct digest job_id;
    struct check_segment segments[3];
};

/* ---- what is served ------------------------------------------------------- */

static void make_folder(const char *path)
{
    struct error error;

    error_init(&error);
    assert_int_equal(file_make_folder(path, &error, 0700), STATUS_OK);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct small_job_options options;
    uint64_t random = 3;

    (void)snprintf(fixture->bundle, sizeof(fixture->bundle), "%s/bundle", test_temp_dir());
    (void)snprintf(fixture->tree, sizeof(fixture->tree), "%s/tree", test_temp_dir());
    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    cheat_bundle_new(fixture->bundle, small_job_new(&options), CHEAT_ULP, 9, &random);
    fixture->job_id = hostile_mirror_publish(fixture->segments, fixture->tree, fixture->bundle);
    hostile_mirror_start(&fixture->mirror, fixture->tree);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    hostile_mirror_stop(&fixture->mirror);
    free(fixture);
    return 0;
}

/* ---- checks --------------------------------------------------------------- */

static struct check_request *request_of(const struct fixture *fixture, uint32_t index)
{
    static int caches;
    struct check_request *request = calloc(1, sizeof(*request));

    request->job_id = fixture->job_id;
    request->steps = STEPS;
    request->segment_steps = SEGMENT;
    request->index = index;
    request->segment_count = index + 1;
    memcpy(request->segments, fixture->segments, sizeof(fixture->segments));
    (void)snprintf(request->cache, sizeof(request->cache), "%s/cache-%d", test_temp_dir(),
                   caches++);
    request->data_count = 2;
    (void)snprintf(request->data[0], FILE_PATH_MAX, "fixtures/images/shapes-labels.npy");
    (void)snprintf(request->data[1], FILE_PATH_MAX, "fixtures/images/shapes.npy");
    request->memory_max = (uint64_t)1 << 30;
    request->file_max = (uint64_t)64 << 20;
    request->mirror_timeout_s = MIRROR_TIMEOUT_S;
    request->threads = 1;
    return request;
}

static void add_mirror(struct check_request *request, const struct fixture *fixture,
                       const char *how)
{
    (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX, "%s/%s",
                   fixture->mirror.url, how);
}

static uint64_t folder_size(const char *path)
{
    char command[700];
    unsigned long long size = 0;
    FILE *pipe;

    (void)snprintf(command, sizeof(command), "du -sb '%.600s' | cut -f1", path);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%llu", &size), 1);
    (void)pclose(pipe);
    return size;
}

/* ---- tests ---------------------------------------------------------------- */

static void test_good_mirrors_of_each_kind_give_the_same_verdicts(void **state)
{
    const struct fixture *fixture = *state;
    struct check_result *result = malloc(sizeof(*result));

    for (int kind = 0; kind < 3; kind++) {
        for (uint32_t index = 0; index < STEPS / SEGMENT; index++) {
            struct check_request *request = request_of(fixture, index);

            if (kind == 0) {
                add_mirror(request, fixture, "good/");
            } else {
                (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX, "%s",
                               kind == 1 ? fixture->tree : fixture->bundle);
            }
            check_run(result, request, NULL, NULL);
            assert_int_equal(result->outcome, index == 2 ? CHECK_REFUTED : CHECK_PROVEN);
            assert_int_equal(result->mirrors[0].bad, 0);
            assert_true(result->mirrors[0].good > 0);
            if (index == 2) {
                assert_int_equal(result->index, 2);
                assert_int_equal(result->step, 1);
                assert_int_equal(result->flaw, CHECK_FLAW_STATE);
            }
            free(request);
        }
    }
    free(result);
}

/* The example of `verifier node --help`: the solver's bundle as the only mirror, and no --data. */
static void test_a_bundle_as_a_mirror_knows_where_its_data_lie(void **state)
{
    static const char *const places[2] = {"fixtures/images/shapes.npy",
                                          "fixtures/images/shapes-labels.npy"};
    const struct fixture *fixture = *state;
    struct check_result *result = malloc(sizeof(*result));

    for (int swapped = 1; swapped >= 0; swapped--) { /* a note is a hint, never believed */
        struct check_request *request = request_of(fixture, 1);
        struct bundle *bundle = NULL;
        struct error error;

        error_init(&error);
        assert_int_equal(bundle_open(&bundle, fixture->bundle, BUNDLE_WRITE, &error), STATUS_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(bundle_set_note(bundle, i == 0 ? "data.0" : "data.1",
                                             places[swapped ? 1 - i : i], &error),
                             STATUS_OK);
        }
        bundle_close(bundle);
        request->data_count = 0;
        (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX, "%s",
                       fixture->bundle);
        check_run(result, request, NULL, NULL);
        assert_int_equal(result->outcome, swapped ? CHECK_CANNOT_TELL : CHECK_PROVEN);
        free(request);
    }
    free(result);
}

static const char *const hostile[] = {"truncate", "wrong", "foreign",  "huge",   "slow", "drip",
                                      "error",    "old",   "redirect", "silent", "loris"};
#define HOSTILE (sizeof(hostile) / sizeof(hostile[0]))

static bool lies(const char *how)
{
    return strcmp(how, "wrong") == 0 || strcmp(how, "foreign") == 0 || strcmp(how, "huge") == 0 ||
           strcmp(how, "old") == 0;
}

/* Only the timeout ends its reply. */
static bool wears_out(const char *how)
{
    return strcmp(how, "slow") == 0 || strcmp(how, "drip") == 0 || strcmp(how, "silent") == 0 ||
           strcmp(how, "loris") == 0;
}

/* Alone, none of them can make a true segment false or a false one true. Some would go on for
 * hours: that this test ends shows that they do not. */
static void test_a_hostile_mirror_alone_gives_no_verdict(void **state)
{
    const struct fixture *fixture = *state;
    struct check_result *result = malloc(sizeof(*result));

    for (size_t i = 0; i < HOSTILE; i++) {
        struct check_request *request = request_of(fixture, 2);

        request->mirror_timeout_s =
            wears_out(hostile[i]) ? MIRROR_TIMEOUT_S_SHORT : MIRROR_TIMEOUT_S;
        add_mirror(request, fixture, hostile[i]);
        check_run(result, request, NULL, NULL);
        assert_int_equal(result->outcome, CHECK_CANNOT_TELL);
        assert_string_not_equal(result->reason, "");
        assert_true(folder_size(request->cache) < ((uint64_t)1 << 25));
        if (lies(hostile[i])) {
            assert_true(result->mirrors[0].bad > 0);
        }
        assert_string_not_equal(result->mirrors[0].trouble, "");
        free(request);
    }
    free(result);
}

/* Before a good mirror they cost time, and get the bad notes. */
static void test_the_next_mirror_is_tried(void **state)
{
    const struct fixture *fixture = *state;
    struct check_result *result = malloc(sizeof(*result));

    for (size_t i = 0; i < HOSTILE; i++) {
        struct check_request *request = NULL;
        uint32_t timeout_s = wears_out(hostile[i]) ? MIRROR_TIMEOUT_S_SHORT : MIRROR_TIMEOUT_S;

        /* So short a patience may be too short for the good one as well, on a busy machine. */
        do {
            free(request);
            request = request_of(fixture, 2);
            request->mirror_timeout_s = timeout_s;
            add_mirror(request, fixture, hostile[i]);
            add_mirror(request, fixture, "good");
            check_run(result, request, NULL, NULL);
            timeout_s *= 2;
        } while (result->outcome == CHECK_CANNOT_TELL && timeout_s <= MIRROR_TIMEOUT_S);
        assert_int_equal(result->outcome, CHECK_REFUTED);
        /* The job itself is not numbered: an old one is as good. */
        assert_int_equal(result->mirrors[0].good, strcmp(hostile[i], "old") == 0);
        assert_int_equal(result->mirrors[0].bad > 0, lies(hostile[i]));
        assert_int_equal(result->mirrors[1].bad, 0);
        free(request);
    }
    free(result);
}

/* A state comes from all mirrors at once: the good ones share it, one that lies is asked for
 * nothing more, one that drips or dies holds nobody up. */
static void test_a_state_comes_from_all_good_mirrors_at_once(void **state)
{
    enum { FIRST, LIAR, DRIP, MORTAL, SECOND, MIRRORS };
    static const char *const names[MIRRORS] = {"parts-paced-1", "parts-foreign", "parts-drip",
                                               "mortal", "parts-paced-2"};
    const struct fixture *fixture = *state;
    struct check_result *result = malloc(sizeof(*result));
    struct check_request *request = request_of(fixture, 1);
    const struct mirror_note *notes = result->mirrors;
    struct timespec begun;
    struct timespec now;

    for (int i = 0; i < MIRRORS; i++) {
        add_mirror(request, fixture, names[i]);
    }
    request->mirror_timeout_s = MIRROR_TIMEOUT_S;
    (void)clock_gettime(CLOCK_MONOTONIC, &begun);
    check_run(result, request, NULL, NULL);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    assert_int_equal(result->outcome, CHECK_PROVEN);
    assert_true(now.tv_sec - begun.tv_sec < MIRROR_TIMEOUT_S);
    for (int i = 0; i < MIRRORS; i++) {
        print_message("%s: %u good, %u bad, %u silent, %llu bytes; %s\n", names[i], notes[i].good,
                      notes[i].bad, notes[i].silent, (unsigned long long)notes[i].bytes,
                      notes[i].trouble);
        assert_int_equal(notes[i].bad, i == LIAR);
    }
    assert_true(notes[FIRST].bytes > 0 && notes[SECOND].bytes > 0);
    assert_non_null(strstr(notes[LIAR].trouble, "false bytes of the tensor"));
    assert_int_equal(notes[LIAR].bytes, 0);
    /* A slow machine has time for a tensor of one number. */
    assert_true(notes[DRIP].bytes * 10 < notes[FIRST].bytes + notes[SECOND].bytes);
    assert_string_not_equal(notes[MORTAL].trouble, "");
    free(request);
    free(result);
}

/* Calls that a server got so far which never answers. */
static uint32_t calls_at(int socket)
{
    uint32_t count = 0;
    int caller;

    while ((caller = accept4(socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        (void)close(caller);
        count++;
    }
    return count;
}

/* Over all replies together, of which there are many small ones, and from two mirrors at once. */
static void test_a_check_fetches_no_faster_than_it_may(void **state)
{
    enum {
        BYTES_A_SECOND = 16384,
        AHEAD = 4096, /* that come before the first pause */
    };
    const struct fixture *fixture = *state;
    struct check_result *result = malloc(sizeof(*result));
    struct check_request *request = request_of(fixture, 1);
    double began = steady_seconds();
    uint64_t fetched;

    request->bandwidth_max = BYTES_A_SECOND;
    add_mirror(request, fixture, "good");
    add_mirror(request, fixture, "good/");
    check_run(result, request, NULL, NULL);
    assert_int_equal(result->outcome, CHECK_PROVEN);
    fetched = folder_size(request->cache);
    assert_true(fetched > 2 * BYTES_A_SECOND);
    assert_true((steady_seconds() - began) * BYTES_A_SECOND + AHEAD > (double)fetched);
    free(request);
    free(result);
}

/* However the address of this machine is written; unless its user named it, or allows it. */
static void test_a_strangers_address_of_this_machine_is_never_called(void **state)
{
    static const char *const hosts[] = {"127.0.0.1",  "localhost", "[::ffff:127.0.0.1]", "0.0.0.0",
                                        "2130706433", "127.1",     "0x7f000001"};
    const struct fixture *fixture = *state;
    struct check_result *result = malloc(sizeof(*result));
    struct sockaddr_in place = {.sin_family = AF_INET};
    socklen_t size = sizeof(place);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(server, (struct sockaddr *)&place, size), 0);
    assert_int_equal(listen(server, 16), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&place, &size), 0);
    for (size_t i = 0; i < 3 * sizeof(hosts) / sizeof(hosts[0]); i++) {
        struct check_request *request = request_of(fixture, 1);
        const char *host = hosts[i / 3];
        const char *at = strcmp(host, "0.0.0.0") == 0 ? "0.0.0.0" : "127";
        bool calls = i % 3 == HTTP_REACH_ANY || (i % 3 == HTTP_REACH_LOOPBACK && at[0] == '1');

        (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX, "http://%s:%u/x",
                       host, ntohs(place.sin_port));
        add_mirror(request, fixture, "good");
        request->strangers = 1;
        request->contact_reach = (uint32_t)(i % 3);
        request->mirror_timeout_s = MIRROR_TIMEOUT_S_SHORT;
        check_run(result, request, NULL, NULL);
        assert_int_equal(result->outcome, CHECK_PROVEN);
        assert_int_equal(calls_at(server) > 0, calls);
        assert_int_equal(result->mirrors[0].refused, !calls);
        assert_int_equal(result->mirrors[0].silent > 0, calls);
        assert_int_equal(strstr(result->mirrors[0].trouble, "a stranger named it") != NULL, !calls);
        free(request);
    }
    (void)close(server);
    free(result);
}

/* A broken download is resumed, or begun again where the server cannot resume. */
static void test_broken_downloads_are_resumed(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const ways[] = {"cut", "norange"};
    struct check_result *result = malloc(sizeof(*result));

    for (size_t i = 0; i < 2; i++) {
        struct check_request *request = request_of(fixture, 1);

        add_mirror(request, fixture, ways[i]);
        check_run(result, request, NULL, NULL);
        assert_int_equal(result->outcome, CHECK_PROVEN);
        assert_int_equal(result->mirrors[0].bad, 0);
        free(request);
    }
    free(result);
}

/* The cache is trusted no more than a mirror. */
static void test_a_damaged_cache_is_fetched_again(void **state)
{
    const struct fixture *fixture = *state;
    struct check_result *result = malloc(sizeof(*result));
    struct check_request *request = request_of(fixture, 1);
    char command[900];

    add_mirror(request, fixture, "good");
    check_run(result, request, NULL, NULL);
    assert_int_equal(result->outcome, CHECK_PROVEN);
    (void)snprintf(command, sizeof(command),
                   "for f in '%.700s'/*; do case $f in *.lock) ;; *) echo lies > $f;; esac; done",
                   request->cache);
    assert_int_equal(system(command), 0);
    check_run(result, request, NULL, NULL);
    assert_int_equal(result->outcome, CHECK_PROVEN);
    assert_true(result->mirrors[0].good > 0);
    free(request);
    free(result);
}

static void test_foreign_terms_and_data_give_no_verdict(void **state)
{
    const struct fixture *fixture = *state;
    struct check_result *result = malloc(sizeof(*result));
    struct check_request *request = request_of(fixture, 1);

    add_mirror(request, fixture, "good");
    request->steps = STEPS + 1;
    check_run(result, request, NULL, NULL);
    assert_int_equal(result->outcome, CHECK_CANNOT_TELL);
    assert_true(result->permanent);
    free(request);
    request = request_of(fixture, 1);
    add_mirror(request, fixture, "good");
    request->data_count = 1; /* the samples are nowhere */
    check_run(result, request, NULL, NULL);
    assert_int_equal(result->outcome, CHECK_CANNOT_TELL);
    assert_non_null(strstr(result->reason, "data"));
    free(request);
    request = request_of(fixture, 1);
    add_mirror(request, fixture, "good");
    request->memory_max = 1 << 16;
    check_run(result, request, NULL, NULL);
    assert_int_equal(result->outcome, CHECK_CANNOT_TELL);
    assert_non_null(strstr(result->reason, "memory"));
    free(request);
    free(result);
}

/* A mirror that gives a job of newer rules has given the right content. */
static void test_a_job_of_unknown_rules_is_no_fault_of_the_mirror(void **state)
{
    const struct fixture *fixture = *state;
    struct check_result *result = malloc(sizeof(*result));
    struct check_request *request = request_of(fixture, 1);
    char id[HEX_SIZE(DIGEST_SIZE)];
    char path[1400];
    struct file_bytes job;
    struct error error;

    error_init(&error);
    (void)snprintf(path, sizeof(path), "%s/job", fixture->bundle);
    assert_int_equal(file_read(&job, &error, path, 1 << 24), STATUS_OK);
    job.data[11]++; /* FORMATS 5: the version of the rules, at 8 */
    commit_job_id(&request->job_id, job.data, JOB_HEADER_SIZE);
    hex_encode(id, request->job_id.bytes, DIGEST_SIZE);
    (void)snprintf(path, sizeof(path), "%s/newer/v1/jobs/%s", test_temp_dir(), id);
    make_folder(path);
    (void)snprintf(path, sizeof(path), "%s/newer/v1/jobs/%s/job", test_temp_dir(), id);
    assert_int_equal(file_write(path, &error, job.data, job.size, 0600), STATUS_OK);
    (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX, "%s/newer",
                   test_temp_dir());
    check_run(result, request, NULL, NULL);
    assert_int_equal(result->outcome, CHECK_CANNOT_TELL);
    assert_true(result->permanent);
    assert_non_null(strstr(result->reason, "version 4 of the rules"));
    assert_int_equal(result->mirrors[0].bad, 0);
    assert_int_equal(result->mirrors[0].good, 1);

    job.data[20] ^= 1; /* another header: not the job that was asked for */
    assert_int_equal(file_write(path, &error, job.data, job.size, 0600), STATUS_OK);
    (void)snprintf(request->cache, sizeof(request->cache), "%s/other-cache", test_temp_dir());
    make_folder(request->cache);
    check_run(result, request, NULL, NULL);
    assert_false(result->permanent);
    assert_int_equal(result->mirrors[0].bad, 1);
    file_bytes_release(&job);
    free(request);
    free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_mirrors_of_each_kind_give_the_same_verdicts),
        cmocka_unit_test(test_a_bundle_as_a_mirror_knows_where_its_data_lie),
        cmocka_unit_test(test_a_hostile_mirror_alone_gives_no_verdict),
        cmocka_unit_test(test_a_job_of_unknown_rules_is_no_fault_of_the_mirror),
        cmocka_unit_test(test_the_next_mirror_is_tried),
        cmocka_unit_test(test_a_state_comes_from_all_good_mirrors_at_once),
        cmocka_unit_test(test_a_check_fetches_no_faster_than_it_may),
        cmocka_unit_test(test_a_strangers_address_of_this_machine_is_never_called),
        cmocka_unit_test(test_broken_downloads_are_resumed),
        cmocka_unit_test(test_a_damaged_cache_is_fetched_again),
        cmocka_unit_test(test_foreign_terms_and_data_give_no_verdict),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
