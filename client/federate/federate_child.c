/* federate_child.c - see federate_child.h. */
#include "client/federate/federate_child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cli/command.h"
#include "base/io/spawn.h"
#include "base/io/strict_json.h"

enum {
    ANSWER_MAX = 4 << 20,
    ANSWER_DEPTH = 16,
};

#define LOOK_S 0.05

/* ---- words ---------------------------------------------------------------- */

void federate_words_init(struct federate_words *words, const char *group, const char *command)
{
    words->count = 0;
    words->number_count = 0;
    federate_words_add(words, "lockstep");
    federate_words_add(words, group);
    federate_words_add(words, command);
}

void federate_words_add(struct federate_words *words, const char *word)
{
    assert(words->count < FEDERATE_WORDS_MAX);
    words->list[words->count++] = word;
    words->list[words->count] = NULL;
}

void federate_words_option(struct federate_words *words, const char *option, const char *value)
{
    if (value != NULL) {
        federate_words_add(words, option);
        federate_words_add(words, value);
    }
}

void federate_words_number(struct federate_words *words, const char *option, uint64_t number)
{
    char *text = words->numbers[words->number_count++ % 8];

    (void)snprintf(text, sizeof(words->numbers[0]), "%" PRIu64, number);
    federate_words_option(words, option, text);
}

void federate_words_ledger(struct federate_words *words, const struct options *given, bool account)
{
    federate_words_option(words, "--ledger", options_text(given, "ledger"));
    federate_words_option(words, "--registry", options_text(given, "registry"));
    federate_words_option(words, "--ledger-state", options_text(given, "ledger-state"));
    federate_words_number(words, "--first-block", options_number(given, "first-block"));
    federate_words_number(words, "--depth", options_number(given, "depth"));
    federate_words_option(words, "--config", options_text(given, "config"));
    if (account) {
        federate_words_number(words, "--gas-price-max", options_number(given, "gas-price-max"));
        federate_words_option(words, "--wallet", options_text(given, "wallet"));
        federate_words_option(words, "--passphrase-file", options_text(given, "passphrase-file"));
        federate_words_option(words, "--account", options_text(given, "account"));
    }
}

/* ---- the child ------------------------------------------------------------ */

/* Only calls that are safe after fork() with threads. */
static void become_program(const struct federate_words *words, pid_t parent, int nothing,
                           int output)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    /* The parent can die before the first call takes effect. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
        dup2(nothing, STDIN_FILENO) == STDIN_FILENO &&
        dup2(output, STDOUT_FILENO) == STDOUT_FILENO) {
        (void)execv(SPAWN_SELF, (char *const *)(uintptr_t)words->list);
    }
    _exit(126);
}

enum status federate_child_start(struct federate_child *child, struct federate_words *words,
                                 struct error *error)
{
    const pid_t parent = getpid();
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    *child = (struct federate_child){.output = memfd_create("answer", MFD_CLOEXEC)};
    if (child->output >= 0 && nothing >= 0) {
        child->process = fork();
    }
    if (child->output < 0 || nothing < 0 || child->process < 0) {
        (void)error_set_errno(error, "cannot start '%s %s'", words->list[1], words->list[2]);
        child->process = 0;
        federate_child_stop(child);
        if (nothing >= 0) {
            (void)close(nothing);
        }
        return STATUS_IO;
    }
    if (child->process == 0) {
        become_program(words, parent, nothing, child->output);
    }
    (void)close(nothing);
    return STATUS_OK;
}

json_t *federate_child_said(const struct federate_child *child)
{
    struct stat about;
    json_t *said = NULL;
    char *text;
    char *end;

    if (fstat(child->output, &about) != 0 || about.st_size <= 0 || about.st_size > ANSWER_MAX) {
        return NULL;
    }
    text = calloc(1, (size_t)about.st_size + 1);
    if (text != NULL && pread(child->output, text, (size_t)about.st_size, 0) == about.st_size) {
        end = memchr(text, '\n', (size_t)about.st_size);
        if (end == NULL ||
            strict_json_parse_escaped_nul(&said, NULL, "the answer", text, (size_t)(end - text),
                                          ANSWER_MAX, ANSWER_DEPTH) != STATUS_OK) {
            said = NULL;
        }
    }
    free(text);
    return said;
}

bool federate_child_ended(struct federate_child *child, int *code)
{
    int status = 0;

    if (waitpid(child->process, &status, WNOHANG) == 0) {
        return false;
    }
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    child->process = 0;
    return true;
}

void federate_child_stop(struct federate_child *child)
{
    if (child->process > 0) {
        (void)kill(child->process, SIGTERM);
        while (waitpid(child->process, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (child->output > 0) {
        (void)close(child->output);
    }
    *child = (struct federate_child){0};
}

enum status federate_child_run(json_t **answer, int *code, struct federate_words *words,
                               struct stop *stop, struct error *error)
{
    struct federate_child child;

    *answer = NULL;
    TRY(federate_child_start(&child, words, error));
    while (!federate_child_ended(&child, code)) {
        if (stop_wait(stop, LOOK_S)) {
            federate_child_stop(&child);
            return error_set(error, STATUS_STOPPED, "stopped: the same command goes on from here");
        }
    }
    *answer = federate_child_said(&child);
    federate_child_stop(&child);
    return STATUS_OK;
}

static enum status status_of_code(int code)
{
    return code == COMMAND_REFUSED ? STATUS_REFUSED
           : code == COMMAND_USAGE ? STATUS_USAGE
                                   : STATUS_UNREACHABLE;
}

enum status federate_child_why(const json_t *answer, int code, const char *what,
                               struct error *error)
{
    const json_t *failure = json_object_get(answer, "error");
    const char *message = json_string_value(json_object_get(failure, "message"));
    const char *advice = json_string_value(json_object_get(failure, "advice"));

    if (code == 126 || code < 0 || message == NULL) {
        return error_set(error, status_of_code(code), "%s: it ended with code %d and said no more",
                         what, code);
    }
    (void)error_set(error, status_of_code(code), "%s: %.700s", what, message);
    if (advice != NULL) {
        error_advise(error, "%.400s", advice);
    }
    return error->status;
}
