/*
 * Goal: who knows that an attestor's trace root is false accuses it by hand, with one command, and
 * is taken to the verdict; one that is true is not accused, whoever asks.
 * Method: the built program as a verifier with folders of its own, on an embedded ledger where a
 * rival has revealed what the test wants and answers what it is asked.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "chain/codec/hex_data.h"
#include "tests/support/dispute/defendant.h"

enum {
    ROUNDS_MAX = 60000, /* minutes: a busy machine is no failure */
    INDEX = 1,          /* of the segment that the rival attests */
    SAID_MAX = 8192,
};

struct scene {
    struct market market;
    struct defendant rival;
    struct hash32 job;
    const char *path; /* of the solver's bundle */
    const char *own;  /* the verifier's folder */
};

/* What a command says and how it ends lie in files: the test goes on meanwhile. */
static void start(const struct scene *scene, const char *words)
{
    char command[4000];

    (void)snprintf(command, sizeof(command),
                   "{ LOCKSTEP_PASSPHRASE='pass words' XDG_DATA_HOME='%s' XDG_STATE_HOME='%s'"
                   " '%s' %s >'%s/out' 2>'%s/err' </dev/null; echo $? >'%s/code.part';"
                   " mv '%s/code.part' '%s/code'; } &",
                   scene->own, scene->own, test_program(), words, scene->own, scene->own,
                   scene->own, scene->own, scene->own);
    assert_int_equal(system(command), 0);
}

static bool read_said(char text[SAID_MAX], const struct scene *scene, const char *name)
{
    char path[FILE_PATH_MAX];
    FILE *file;
    size_t size;

    (void)snprintf(path, sizeof(path), "%s/%s", scene->own, name);
    file = fopen(path, "rb");
    if (file == NULL) {
        return false;
    }
    size = fread(text, 1, SAID_MAX - 1, file);
    text[size] = '\0';
    (void)fclose(file);
    return true;
}

/* The exit code; time creeps and the rival answers until there is one. */
static int finish(struct scene *scene)
{
    char code[SAID_MAX];
    char path[FILE_PATH_MAX];

    for (int i = 0; !read_said(code, scene, "code"); i++) {
        assert_true(i < ROUNDS_MAX);
        defendant_round(&scene->rival);
        market_pass_time(&scene->market, 1);
        (void)usleep(10000);
    }
    (void)snprintf(path, sizeof(path), "%s/code", scene->own);
    assert_int_equal(unlink(path), 0);
    return atoi(code);
}

static void import_key(struct scene *scene)
{
    struct secret_key key = anvil_key(MARKET_VERIFIER);
    char hex[HEX_SIZE(SECRET_KEY_SIZE)];
    char path[FILE_PATH_MAX];
    char words[FILE_PATH_MAX + 32];
    struct error error;

    error_init(&error);
    hex_encode(hex, key.bytes, SECRET_KEY_SIZE);
    (void)snprintf(path, sizeof(path), "%s/key", scene->own);
    assert_int_equal(file_write(path, &error, hex, strlen(hex), 0600), STATUS_OK);
    (void)snprintf(words, sizeof(words), "wallet import --light '%s'", path);
    start(scene, words);
    assert_int_equal(finish(scene), 0);
}

/* An honest job, and a rival that has revealed a trace root of its step: a false one where it
 * lies. */
static void scene_open(struct scene *scene, const char *name, bool lies)
{
    struct defendant_lie lie = {.step = 0};
    struct job *job = defendant_job(MODEL_MLP, 41);
    uint64_t random = 3;
    struct error error;

    error_init(&error);
    memset(scene, 0, sizeof(*scene));
    scene->path = small_path(name);
    scene->own = small_path(lies ? "own-of-false" : "own-of-true");
    assert_int_equal(file_make_folder(scene->own, &error, 0700), STATUS_OK);
    market_open(&scene->market, true, name);
    if (lies) {
        lie = defendant_choose(job, 0, &random);
        lie.in_state = false;
    }
    defendant_write(scene->path, job, &lie);
    scene->job = market_commit(&scene->market, scene->path);
    lie.step =
        INDEX * DEFENDANT_SEGMENT + market_draw(&scene->market, MARKET_RIVAL, &scene->job, INDEX);
    defendant_open(&scene->rival, &scene->market, MARKET_RIVAL, &scene->job, scene->path, &lie);
    market_attest(&scene->market, MARKET_RIVAL, &scene->job, INDEX,
                  &scene->rival.server.trace.root);
    market_pass_time(&scene->market, MARKET_ATTEST_S + 1);
    market_reveal(&scene->market, MARKET_RIVAL, &scene->job, INDEX,
                  &scene->rival.server.trace.root);
    import_key(scene);
}

static void scene_close(struct scene *scene)
{
    defendant_close(&scene->rival);
    market_close(&scene->market);
}

/* The command, about a step that is so far from the one that the rival drew. */
static int accuse(struct scene *scene, uint64_t away)
{
    const uint64_t drawn = scene->rival.lie.step % DEFENDANT_SEGMENT;
    const uint64_t step = (uint64_t)INDEX * DEFENDANT_SEGMENT + (drawn + away) % DEFENDANT_SEGMENT;
    char rival[ADDRESS_TEXT_SIZE];
    char job[HEX_DATA_SIZE(HASH32_SIZE)];
    char words[2600];

    address_print(rival, signer_address(scene->market.signers[MARKET_RIVAL]));
    hex_write(job, scene->job.bytes, HASH32_SIZE, true);
    (void)snprintf(words, sizeof(words),
                   "verifier claim %s %llu --attestor %s --ledger '%s' --mirror '%s' --threads 1"
                   " --data fixtures/images/shapes.npy --data fixtures/images/shapes-labels.npy"
                   " --yes --json",
                   job, (unsigned long long)step, rival, scene->market.url, scene->path);
    start(scene, words);
    return finish(scene);
}

static void see_said(const struct scene *scene, const char *const *words, size_t count)
{
    char said[SAID_MAX];
    char reply[SAID_MAX];

    assert_true(read_said(said, scene, "out") && read_said(reply, scene, "err"));
    for (size_t i = 0; i < count; i++) {
        if (strstr(said, words[i]) == NULL) {
            fail_msg("'%s' is not in: %s\n%s", words[i], said, reply);
        }
    }
}

static uint32_t count(struct scene *scene, enum game_event_kind kind)
{
    return market_count(&scene->market, kind, NULL);
}

static void test_a_false_attestor_is_convicted_by_one_command(void **state)
{
    static const char *const upheld[] = {"\"outcome\":\"upheld\"", "\"as\":\"attestor\"",
                                         "\"prize_wei\":\"50000000000000000\""};
    static const char *const over[] = {"no trace root of this attestor"};
    struct scene scene;

    (void)state;
    scene_open(&scene, "false", true);
    if (accuse(&scene, 0) != 0) {
        see_said(&scene, upheld, 1); /* tells what it said */
        fail();
    }
    see_said(&scene, upheld, 3);
    assert_int_equal(market_count(&scene.market, GAME_ACCUSED,
                                  signer_address(scene.market.signers[MARKET_VERIFIER])),
                     1);
    assert_true(count(&scene, GAME_REPLIED) > 0);
    assert_int_equal(count(&scene, GAME_RULED), 1);
    assert_int_equal(count(&scene, GAME_CONVICTED), 0); /* the solver is left alone */
    assert_int_equal(market_job(&scene.market, &scene.job).generation, 0);
    /* It is over, and stays so. */
    assert_int_equal(accuse(&scene, 0), 1);
    see_said(&scene, over, 1);
    assert_int_equal(count(&scene, GAME_SEALED), 1);
    scene_close(&scene);
}

static void test_a_true_attestor_is_not_accused(void **state)
{
    static const char *const elsewhere[] = {"the step that this attestor drew"};
    static const char *const right[] = {"is the true one"};
    struct scene scene;

    (void)state;
    scene_open(&scene, "true", false);
    assert_int_equal(accuse(&scene, 1), 1);
    see_said(&scene, elsewhere, 1);
    assert_int_equal(accuse(&scene, 0), 1);
    see_said(&scene, right, 1);
    assert_int_equal(count(&scene, GAME_SEALED), 0);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_false_attestor_is_convicted_by_one_command),
        cmocka_unit_test(test_a_true_attestor_is_not_accused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
