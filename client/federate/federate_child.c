/* federate_child.c - see federate_child.h. */
#include "client/federate/federate_child.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cli/command.h"
#include "base/io/spawn.h"
#include "base/io/strict_json.h"

enum {
    ANSWER_MAX = 4 << 20,
    ANSWER_DEPTH = 16,
};

#define LOOK_S 0.05

enum status federate_child_start(struct federate_child *child, const struct child_words *words,
                                 struct error *error)
{
    struct spawn_files files = {.input = -1, .further = -1, .tied = true};
    enum status status;

    *child = (struct federate_child){.output = memfd_create("answer", MFD_CLOEXEC)};
    if (child->output < 0) {
        return error_set_errno(error, "cannot start '%s %s'", words->list[1], words->list[2]);
    }
    files.output = child->output;
    status = spawn_program(&child->process, SPAWN_SELF, words->list, &files, error);
    if (status != STATUS_OK) {
        federate_child_stop(child);
    }
    return status;
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
    int how;

    if (!spawn_ended(&child->process, &how)) {
        return false;
    }
    *code = spawn_code(how);
    return true;
}

void federate_child_stop(struct federate_child *child)
{
    (void)spawn_end(&child->process, SIGTERM, SPAWN_FOR_EVER);
    if (child->output > 0) {
        (void)close(child->output);
    }
    *child = (struct federate_child){0};
}

enum status federate_child_run(json_t **answer, int *code, const struct child_words *words,
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

static const char *word_of_failure(const json_t *answer, const char *name)
{
    return json_string_value(json_object_get(json_object_get(answer, "error"), name));
}

bool federate_child_died(const json_t *answer, int code)
{
    return code >= 126 || word_of_failure(answer, "message") == NULL;
}

enum status federate_child_why(const json_t *answer, int code, const char *what,
                               struct error *error)
{
    const char *message = word_of_failure(answer, "message");
    const char *advice = word_of_failure(answer, "advice");

    if (federate_child_died(answer, code)) {
        (void)error_set(error, status_of_code(code), "%s: it ended with code %d and said no more",
                        what, code);
        if (code == 128 + SIGKILL) {
            error_advise(error, "the system's log says whether memory ran out: free some, or allow "
                                "more; the same command goes on from here");
        }
        return error->status;
    }
    (void)error_set(error, status_of_code(code), "%s: %.700s", what, message);
    if (advice != NULL) {
        error_advise(error, "%.400s", advice);
    }
    return error->status;
}
