/* confined.c - see confined.h. */
#include "prover/confined/confined.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/spawn.h"

enum {
    END_MS = 30000, /* a child that ends writes what it holds */
};

/* ---- its life ------------------------------------------------------------------------- */

static bool send_plan(const struct confined *child, const struct confined_plan *plan,
                      const char *const *data)
{
    bool sent = confined_wire_write(child->socket, plan, sizeof(*plan));

    for (uint32_t i = 0; i < plan->data_count && sent; i++) {
        char path[FILE_PATH_MAX] = {0};

        (void)snprintf(path, sizeof(path), "%s", data[i] == NULL ? "" : data[i]);
        sent = confined_wire_write(child->socket, path, sizeof(path));
    }
    return sent;
}

enum status confined_start(struct confined *child, const char *word, const char *does,
                           const struct confined_plan *plan, const char *const *data,
                           uint32_t data_count, struct error *error)
{
    const char *const words[] = {"lockstep", word, NULL};
    struct confined_plan whole = *plan;
    int ends[2] = {-1, -1};
    enum status status;

    *child = (struct confined){.socket = -1, .does = does};
    whole.data_count = data_count;
    whole.on_cuda = plan->machine.backend == &backend_cuda;
    whole.machine.backend = NULL;
    whole.machine.spare = NULL;
    whole.machine.timed = NULL;
    whole.machine.backend_plan = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        TRY_OUT(error_set_errno(error, "no socket for the process that %s", does));
    }
    child->socket = ends[0];
    TRY_OUT(spawn_program(&child->process, SPAWN_SELF, words,
                          &(struct spawn_files){.input = ends[1],
                                                .output = ends[1],
                                                .further = plan->ranks > 1 ? plan->listener : -1},
                          error));
    /* One that is gone already is found by the next read. */
    (void)send_plan(child, &whole, data);
out:
    encryption_key_wipe(&whole.key);
    if (ends[1] >= 0) {
        (void)close(ends[1]);
    }
    if (status != STATUS_OK) {
        confined_end(child);
    }
    return status;
}

/* A child whose socket is closed ends by itself. */
void confined_end(struct confined *child)
{
    if (child->socket >= 0) {
        (void)close(child->socket);
        child->socket = -1;
    }
    (void)spawn_end(&child->process, 0, END_MS);
}

/* ---- what is said ----------------------------------------------------------------------- */

void confined_tell(const struct confined *child, const struct confined_message *message,
                   const void *bytes)
{
    (void)confined_wire_say(child->socket, message, bytes);
}

static enum status is_gone(struct confined *child, struct error *error)
{
    int how;

    (void)shutdown(child->socket, SHUT_RDWR);
    how = spawn_end(&child->process, 0, END_MS);
    return WIFSIGNALED(how)
               ? error_set(error, STATUS_IO, "the process that %s was ended by signal %d (%s)",
                           child->does, WTERMSIG(how), strsignal(WTERMSIG(how)))
               : error_set(error, STATUS_IO, "the process that %s ended with exit code %d",
                           child->does, WEXITSTATUS(how));
}

enum status confined_read_bytes(struct confined *child, void *bytes, size_t size,
                                struct error *error)
{
    return confined_wire_read(child->socket, bytes, size) ? STATUS_OK : is_gone(child, error);
}

/* Its texts are a stranger's: they end, and the log escapes them. */
enum status confined_read(struct confined *child, struct confined_message *message,
                          struct error *error)
{
    TRY(confined_read_bytes(child, message, sizeof(*message), error));
    message->text[sizeof(message->text) - 1] = '\0';
    message->advice[sizeof(message->advice) - 1] = '\0';
    return STATUS_OK;
}

enum status confined_nonsense(const struct confined *child, struct error *error)
{
    return error_set(error, STATUS_BAD_FORMAT, "the process that %s says nonsense", child->does);
}
