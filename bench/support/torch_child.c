/* torch_child.c - see torch_child.h. */
#include "bench/support/torch_child.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MAX 1024

/* Debian's interpreter: another one on the path would not see Debian's PyTorch. */
static const char *python(void)
{
    const char *setting = getenv("PYTHON");

    return setting != NULL && setting[0] != '\0' ? setting : "/usr/bin/python3";
}

/* Only returns on failure. */
static void run_script(const char *script, char (*arguments)[TORCH_ARGUMENT_MAX], size_t count)
{
    char interpreter[] = "python3";
    char name[TORCH_ARGUMENT_MAX];
    char *words[TORCH_ARGUMENTS + 3] = {interpreter, name};

    (void)snprintf(name, sizeof(name), "%s", script);
    for (size_t i = 0; i < count && i < TORCH_ARGUMENTS; i++) {
        words[2 + i] = arguments[i];
    }
    execv(python(), words);
}

enum status torch_child_start(struct torch_child *torch, const char *script,
                              char (*arguments)[TORCH_ARGUMENT_MAX], size_t count,
                              struct error *error)
{
    int down[2];
    int up[2];

    *torch = (struct torch_child){.script = script, .child = -1};
    (void)signal(SIGPIPE, SIG_IGN);
    if (access(script, R_OK) != 0 || access(python(), X_OK) != 0) {
        return error_set(error, STATUS_USAGE, "%s or %s is not here", script, python());
    }
    /* Closed in other children: an end that they hold would keep this one waiting for more. */
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) {
        return error_set_errno(error, "cannot make a pipe");
    }
    torch->child = fork();
    if (torch->child == 0) {
        (void)dup2(down[0], STDIN_FILENO);
        (void)dup2(up[1], STDOUT_FILENO);
        close(down[0]);
        close(down[1]);
        close(up[0]);
        close(up[1]);
        run_script(script, arguments, count);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    torch->to = fdopen(down[1], "wb");
    torch->from = fdopen(up[0], "r");
    if (torch->child < 0 || torch->to == NULL || torch->from == NULL) {
        return error_set_errno(error, "cannot start %s", python());
    }
    return STATUS_OK;
}

/* The next line as JSON, or NULL with the error set; the caller drops the reference. */
static json_t *answer(struct torch_child *torch, struct error *error)
{
    char line[ANSWER_MAX];
    json_t *root;
    const char *said = NULL;
    const char *advice = "apt-get install python3-torch";

    if (fgets(line, sizeof(line), torch->from) == NULL) {
        (void)error_set(error, STATUS_IO, "%s ended", torch->script);
        return NULL;
    }
    root = json_loads(line, 0, NULL);
    if (root == NULL || json_unpack(root, "{s:s, s?s}", "error", &said, "advice", &advice) == 0) {
        (void)error_set(error, STATUS_USAGE, "%s", said == NULL ? "no JSON" : said);
        error_advise(error, "%s", advice);
        json_decref(root);
        return NULL;
    }
    return root;
}

enum status torch_child_ready(struct torch_child *torch, struct error *error)
{
    const char *version = "";
    json_t *ready;

    (void)fflush(torch->to);
    ready = answer(torch, error);
    if (ready == NULL) {
        return error->status;
    }
    (void)json_unpack(ready, "{s:s}", "ready", &version);
    (void)snprintf(torch->version, sizeof(torch->version), "%s", version);
    json_decref(ready);
    return STATUS_OK;
}

enum status torch_child_step(struct torch_child *torch, double *loss, struct bench_time *took,
                             struct error *error)
{
    json_t *said;
    int bad;

    (void)fflush(torch->to);
    said = answer(torch, error);
    if (said == NULL) {
        return error->status;
    }
    bad = json_unpack(said, "{s:F, s:F, s:F, s?F}", "seconds", &took->seconds, "processor",
                      &took->processor, "loss", loss, "memory", &torch->memory);
    json_decref(said);
    return bad == 0 ? STATUS_OK
                    : error_set(error, STATUS_BAD_FORMAT, "%s: no loss or times", torch->script);
}

void torch_child_close(struct torch_child *torch)
{
    if (torch->to != NULL) {
        (void)fclose(torch->to);
    }
    if (torch->from != NULL) {
        (void)fclose(torch->from);
    }
    if (torch->child > 0) {
        (void)waitpid(torch->child, NULL, 0);
    }
    *torch = (struct torch_child){.child = -1};
}
