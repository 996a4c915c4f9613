/* keep_replay.c - see keep_replay.h. */
#include "client/keeper/keep_replay.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/spawn.h"
#include "base/io/strict_json.h"
#include "base/secret.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/keys/passphrase.h"

enum {
    ANSWER_SIZE_MAX = 65536,
    ANSWER_DEPTH = 4,
    SECRET_MAX = 4096,
};

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
static enum status spawn_claim(struct keep_replay *replay, const struct child_words *words,
                               int secret, struct error *error)
{
    struct spawn_files files = {.input = -1, .further = secret};
    char answer[FILE_PATH_MAX];
    enum status status;

    TRY(answer_path(answer, replay, error));
    files.output = open(answer, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (files.output < 0) {
        return error_set_errno(error, "cannot write %s", answer);
    }
    status = spawn_program(&replay->process, SPAWN_SELF, words->list, &files, error);
    (void)close(files.output);
    return status;
}

enum status keep_replay_start(struct keep_replay *replay, const struct command_context *context,
                              const struct hash32 *job, const struct hash32 *segment,
                              uint32_t index, const char *kept, struct error *error)
{
    const struct options *given = context->options;
    struct child_words words;
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    enum status status;
    int secret;

    hex_write(key, job->bytes, HASH32_SIZE, true);
    child_words_init(&words, "verifier", "claim");
    child_words_add(&words, key);
    child_words_number(&words, "segment", index);
    child_words_flag(&words, "yes");
    child_words_flag(&words, "json");
    child_words_option(&words, "state", replay->folder);
    child_words_option(&words, "folder", kept);
    chain_child_ledger(&words, given);
    child_words_given(&words, "wallet", given);
    child_words_given(&words, "account", given);
    child_words_option(&words, "mirror", kept);
    child_words_given(&words, "mirror", given);
    child_words_given(&words, "data", given);
    child_words_given(&words, "private-contacts", given);
    TRY(file_private_folder(replay->folder, error));
    secret = open_secret(replay);
    if (secret >= 0) {
        child_words_option(&words, "passphrase-file", SPAWN_FURTHER_PATH);
    } else if (replay->secret == NULL) {
        child_words_given(&words, "passphrase-file", given);
    }
    status = spawn_claim(replay, &words, secret, error);
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
    int how;

    return spawn_ended(&replay->process, &how) ? read_answer(replay, spawn_code(how), words)
                                               : KEEP_ANSWER_NONE;
}

void keep_replay_stop(struct keep_replay *replay)
{
    (void)spawn_end(&replay->process, SIGTERM, SPAWN_FOR_EVER);
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
