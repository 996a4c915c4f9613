/* gpt2_torch.c - see gpt2_torch.h. */
#include "bench/support/gpt2_torch.h"
#include "tests/support/numeric/model_state.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT       "bench/peer_gpt2.py"
#define ANSWER_MAX   1024
#define ARGUMENT_MAX 32

/* Debian's interpreter: another one on the path would not see Debian's PyTorch. */
static const char *python(void)
{
    const char *setting = getenv("PYTHON");

    return setting != NULL && setting[0] != '\0' ? setting : "/usr/bin/python3";
}

/* Only returns on failure. */
static void run_script(const struct gpt2_case *one, int threads, bool bfloat16)
{
    const struct model_options *o = &one->model.options;
    const double numbers[] = {threads,   o->batch,   o->length, o->positions, o->vocabulary,
                              o->layers, o->heads,   o->width,  o->rate,      o->beta1,
                              o->beta2,  o->epsilon, o->decay,  o->clip};
    enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };
    char texts[NUMBERS][ARGUMENT_MAX];
    char interpreter[] = "python3";
    char script[] = SCRIPT;
    char type[] = "bfloat16";
    char float_type[] = "float32";
    char *arguments[NUMBERS + 4] = {interpreter, script};

    for (int i = 0; i < NUMBERS; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%.17g", numbers[i]);
        arguments[2 + i] = texts[i];
    }
    arguments[2 + NUMBERS] = bfloat16 ? type : float_type;
    execv(python(), arguments);
}

static enum status start(struct gpt2_torch *torch, const struct gpt2_case *one, int threads,
                         bool bfloat16, struct error *error)
{
    int down[2];
    int up[2];

    if (access(SCRIPT, R_OK) != 0 || access(python(), X_OK) != 0) {
        return error_set(error, STATUS_USAGE, "%s or %s is not here", SCRIPT, python());
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
        run_script(one, threads, bfloat16);
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
static json_t *answer(struct gpt2_torch *torch, struct error *error)
{
    char line[ANSWER_MAX];
    json_t *root;
    const char *said = NULL;

    if (fgets(line, sizeof(line), torch->from) == NULL) {
        (void)error_set(error, STATUS_IO, "%s ended", SCRIPT);
        return NULL;
    }
    root = json_loads(line, 0, NULL);
    if (root == NULL || json_unpack(root, "{s:s}", "error", &said) == 0) {
        (void)error_set(error, STATUS_USAGE, "%s", said == NULL ? "no JSON" : said);
        error_advise(error, "apt-get install python3-torch");
        json_decref(root);
        return NULL;
    }
    return root;
}

/* A child without PyTorch ends without reading. The writes then fail, and its answer says why. */
static enum status send_parameters(struct gpt2_torch *torch, const struct gpt2_case *one,
                                   struct error *error)
{
    const struct model *model = &one->model;

    for (uint32_t i = 0; i < model->parameter_count; i++) {
        uint32_t id = model->parameters[i];
        size_t count = model->tape->tensors[id].count;
        float *values = malloc(count * sizeof(*values));

        if (values == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for a first state");
        }
        model_first_state(values, model, id);
        size_t sent = fwrite(values, sizeof(*values), count, torch->to);
        free(values);
        if (sent != count) {
            break;
        }
    }
    (void)fflush(torch->to);
    return STATUS_OK;
}

enum status gpt2_torch_open(struct gpt2_torch *torch, const struct gpt2_case *one, int threads,
                            bool bfloat16, struct error *error)
{
    json_t *ready = NULL;
    const char *version = "";
    enum status status;

    *torch = (struct gpt2_torch){.child = -1};
    (void)signal(SIGPIPE, SIG_IGN);
    TRY_OUT(start(torch, one, threads, bfloat16, error));
    TRY_OUT(send_parameters(torch, one, error));
    ready = answer(torch, error);
    TRY_OUT(ready == NULL ? error->status : STATUS_OK);
    (void)json_unpack(ready, "{s:s}", "ready", &version);
    (void)snprintf(torch->version, sizeof(torch->version), "%s", version);
    json_decref(ready);
    return STATUS_OK;
out:
    gpt2_torch_close(torch);
    return status;
}

void gpt2_torch_close(struct gpt2_torch *torch)
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
    *torch = (struct gpt2_torch){.child = -1};
}

enum status gpt2_torch_step(struct gpt2_torch *torch, double *loss, double *seconds,
                            const struct gpt2_case *one, struct error *error)
{
    size_t rows = gpt2_case_rows(one);
    json_t *said;
    int bad;

    (void)fwrite(one->tokens, sizeof(*one->tokens), rows, torch->to);
    (void)fwrite(one->targets, sizeof(*one->targets), rows, torch->to);
    (void)fflush(torch->to);
    said = answer(torch, error);
    if (said == NULL) {
        return error->status;
    }
    bad = json_unpack(said, "{s:F, s:F}", "seconds", seconds, "loss", loss);
    json_decref(said);
    return bad == 0 ? STATUS_OK : error_set(error, STATUS_BAD_FORMAT, "%s: no loss", SCRIPT);
}
