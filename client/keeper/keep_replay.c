/* keep_replay.c - see keep_replay.h. */
#include "client/keeper/keep_replay.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/spawn.h"
#include "base/io/strict_json.h"
#include "base/secret.h"
#include "chain/codec/hex_data.h"
#include "chain/keys/passphrase.h"

enum {
    ARGUMENTS_MAX = 2 * OPTION_LIST_MAX + 64,
    ANSWER_SIZE_MAX = 65536,
    ANSWER_DEPTH = 4,
    NUMBERS_MAX = 8,
    NUMBER_SIZE = 24,
    SECRET_MAX = 4096,
};

/* The words of the child's command line. */
struct words {
    const char *list[ARGUMENTS_MAX + 1];
    size_t count;
    char numbers[NUMBERS_MAX][NUMBER_SIZE];
    size_t number_count;
};

static void add(struct words *words, const char *word)
{
    if (words->count < ARGUMENTS_MAX) {
        words->list[words->count++] = word;
    }
}

static void add_option(struct words *words, const char *name, const char *value)
{
    if (value != NULL) {
        add(words, name);
        add(words, value);
    }
}

static void add_number(struct words *words, const char *name, uint64_t number)
{
    char *text = words->numbers[words->number_count++ % NUMBERS_MAX];

    (void)snprintf(text, NUMBER_SIZE, "%" PRIu64, number);
    add_option(words, name, text);
}

/* What comes from the environment or the config file the child reads itself; to say it again is no
 * harm. */
static void add_ledger(struct words *words, const struct options *given, bool has_secret)
{
    add_option(words, "--ledger", options_text(given, "ledger"));
    add_option(words, "--registry", options_text(given, "registry"));
    add_option(words, "--ledger-state", options_text(given, "ledger-state"));
    add_option(words, "--wallet", options_text(given, "wallet"));
    if (!has_secret) {
        add_option(words, "--passphrase-file", options_text(given, "passphrase-file"));
    }
    add_option(words, "--account", options_text(given, "account"));
    add_option(words, "--config", options_text(given, "config"));
    add_number(words, "--first-block", options_number(given, "first-block"));
    add_number(words, "--depth", options_number(given, "depth"));
    add_number(words, "--gas-price-max", options_number(given, "gas-price-max"));
}

static void add_sources(struct words *words, const struct options *given, const char *kept)
{
    add_option(words, "--mirror", kept);
    for (size_t i = 0; i < options_list_count(given, "mirror"); i++) {
        add_option(words, "--mirror", options_list_item(given, "mirror", i));
    }
    for (size_t i = 0; i < options_list_count(given, "data"); i++) {
        add_option(words, "--data", options_list_item(given, "data", i));
    }
    if (options_flag(given, "private-contacts")) {
        add(words, "--private-contacts");
    }
}

static enum status answer_path(char path[FILE_PATH_MAX], const struct keep_replay *replay,
                               struct error *error)
{
    return file_path_join(path, FILE_PATH_MAX, error, replay->folder, "answer.json");
}

/* The passphrase as a file that only the child has; -1: there is none. */
static int open_secret(const struct keep_replay *replay)
{
    int file = replay->secret == NULL ? -1 : memfd_create("passphrase", MFD_CLOEXEC);
    size_t size = file < 0 ? 0 : strlen(replay->secret);

    if (file >= 0 &&
        (fchmod(file, S_IRUSR) != 0 || write(file, replay->secret, size) != (ssize_t)size)) {
        (void)close(file);
        return -1;
    }
    return file;
}

/* Its answer goes to a file, its log to ours. */
static enum status spawn(struct keep_replay *replay, struct words *words, int secret,
                         struct error *error)
{
    struct spawn_files files = {.input = -1, .further = secret};
    char answer[FILE_PATH_MAX];
    enum status status;

    TRY(answer_path(answer, replay, error));
    files.output = open(answer, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (files.output < 0) {
        return error_set_errno(error, "cannot write %s", answer);
    }
    words->list[words->count] = NULL;
    status = spawn_program(&replay->process, SPAWN_SELF, words->list, &files, error);
    (void)close(files.output);
    return status;
}

enum status keep_replay_start(struct keep_replay *replay, const struct command_context *context,
                              const struct hash32 *job, const struct hash32 *segment,
                              uint32_t index, const char *kept, struct error *error)
{
    struct words words = {.count = 0};
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    enum status status;
    int secret;

    hex_write(key, job->bytes, HASH32_SIZE, true);
    add(&words, "lockstep");
    add(&words, "verifier");
    add(&words, "claim");
    add(&words, key);
    add_number(&words, "--segment", index);
    add(&words, "--yes");
    add(&words, "--json");
    add_option(&words, "--state", replay->folder);
    add_option(&words, "--folder", kept);
    add_ledger(&words, context->options, replay->secret != NULL);
    add_sources(&words, context->options, kept);
    TRY(file_private_folder(replay->folder, error));
    secret = open_secret(replay);
    add_option(&words, "--passphrase-file", secret < 0 ? NULL : SPAWN_FURTHER_PATH);
    status = spawn(replay, &words, secret, error);
    if (secret >= 0) {
        (void)close(secret);
    }
    if (status != STATUS_OK) {
        return error_wrap(error, "no replay");
    }
    replay->segment = *segment;
    return STATUS_OK;
}

/* ---- the answer ------------------------------------------------------------------- */

static enum keep_answer read_answer(const struct keep_replay *replay, int code,
                                    char words[KEEP_REPLAY_WORDS_MAX])
{
    enum keep_answer answer = KEEP_ANSWER_TROUBLE;
    char path[FILE_PATH_MAX];
    json_t *json = NULL;
    const char *outcome;
    const char *trouble;
    const char *why;
    struct error error;

    error_init(&error);
    if (answer_path(path, replay, &error) != STATUS_OK ||
        strict_json_read(&json, &error, path, ANSWER_SIZE_MAX, ANSWER_DEPTH) != STATUS_OK) {
        (void)snprintf(words, KEEP_REPLAY_WORDS_MAX, "it ended with code %d and said nothing",
                       code);
        return answer;
    }
    outcome = json_string_value(json_object_get(json, "outcome"));
    why = json_string_value(json_object_get(json, "why"));
    trouble = json_string_value(json_object_get(json_object_get(json, "error"), "message"));
    if (outcome != NULL && strcmp(outcome, "right") == 0) {
        answer = KEEP_ANSWER_RIGHT;
    } else if (outcome != NULL &&
               (strcmp(outcome, "false") == 0 || strcmp(outcome, "upheld") == 0)) {
        answer = KEEP_ANSWER_FALSE;
    }
    (void)snprintf(words, KEEP_REPLAY_WORDS_MAX, "%.190s",
                   trouble != NULL                 ? trouble
                   : why != NULL && why[0] != '\0' ? why
                   : outcome != NULL               ? outcome
                                                   : "it gave no outcome");
    json_decref(json);
    return answer;
}

enum keep_answer keep_replay_look(struct keep_replay *replay, char words[KEEP_REPLAY_WORDS_MAX])
{
    int status = 0;

    if (replay->process == 0 || waitpid(replay->process, &status, WNOHANG) == 0) {
        return KEEP_ANSWER_NONE;
    }
    replay->process = 0;
    return read_answer(replay, WIFEXITED(status) ? WEXITSTATUS(status) : -1, words);
}

void keep_replay_stop(struct keep_replay *replay)
{
    if (replay->process != 0) {
        (void)kill(replay->process, SIGTERM);
        (void)waitpid(replay->process, NULL, 0);
        replay->process = 0;
    }
}

/* ---- the passphrase ---------------------------------------------------------------- */

enum status keep_replay_remember(struct keep_replay *replay, struct error *error)
{
    const char *given = getenv(PASSPHRASE_VARIABLE);

    if (given == NULL) {
        return STATUS_OK;
    }
    if (strlen(given) >= SECRET_MAX) {
        return error_set(error, STATUS_USAGE, "the passphrase is too long");
    }
    replay->secret = secret_alloc(SECRET_MAX, error);
    if (replay->secret == NULL) {
        return error->status;
    }
    memcpy(replay->secret, given, strlen(given) + 1);
    return STATUS_OK;
}

void keep_replay_forget(struct keep_replay *replay)
{
    secret_free(replay->secret, SECRET_MAX);
    replay->secret = NULL;
}
