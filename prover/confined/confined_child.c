/* confined_child.c - see confined_child.h. */
#include "prover/confined/confined_child.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sandbox/sandbox.h"

#define SPARE ((uint64_t)1 << 30) /* beside the tensors: stacks, checkpoints, the journal */

enum {
    FILES_MAX = 1024,
    DATA_MAX = 65536,
};

bool confined_child_asked(int argc, char *const *argv, const char *word)
{
    return argc == 2 && strcmp(argv[1], word) == 0;
}

/* ---- what it may ----------------------------------------------------------------------- */

static void limit_resource(int what, uint64_t value)
{
    struct rlimit now;

    /* A limit that the system has set lower stays. */
    if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max > value) {
        now.rlim_cur = now.rlim_cur < value ? now.rlim_cur : value;
        now.rlim_max = value;
        (void)setrlimit((__rlimit_resource_t)what, &now);
    }
}

void confined_child_confine(const struct confined_plan *plan, const char *const *data,
                            uint32_t quarters)
{
    struct sandbox_plan sandbox = {.network = false};
    const uint64_t memory = plan->machine.memory_max;

    quarters += plan->cross_check > 0 ? 4 : 0; /* a second machine, for a while */

    sandbox_forget_passphrases();
    limit_resource(RLIMIT_CORE, 0);
    limit_resource(RLIMIT_NOFILE, FILES_MAX + (uint64_t)plan->ranks); /* a connection each */
    /* The drivers of a GPU want more, and so do the networks behind MPI. */
    if (plan->on_cuda || plan->mpi != RANKS_MPI_NONE) {
        return;
    }
#ifndef __SANITIZE_ADDRESS__ /* its shadow alone is larger than any limit */
    if (memory != 0 && memory < (UINT64_MAX - SPARE) / (quarters + 4)) {
        limit_resource(RLIMIT_DATA, memory + memory / 4 * quarters + SPARE);
    }
#else
    (void)memory;
    (void)quarters;
#endif
    for (uint32_t i = 0; i < plan->data_count; i++) {
        if (data[i] != NULL) {
            sandbox_add_read(&sandbox, data[i]);
        }
    }
    if (plan->follows) {
        sandbox_add_change(&sandbox, plan->folder);
    } else {
        sandbox_add_write(&sandbox, plan->folder); /* a reader shares the journal with its writer */
    }
    sandbox_begin(&sandbox);
}

/* ---- what it is told ------------------------------------------------------------------------ */

static bool read_plan(struct confined_child *child)
{
    struct confined_plan *plan = &child->plan;

    if (!confined_wire_read(CONFINED_CHILD_SOCKET, plan, sizeof(*plan)) ||
        plan->data_count > DATA_MAX) {
        return false;
    }
    plan->machine.backend = plan->on_cuda ? &backend_cuda : NULL;
    child->data = calloc((size_t)plan->data_count + 1, sizeof(*child->data));
    child->paths = calloc((size_t)plan->data_count + 1, sizeof(*child->paths));
    if (child->data == NULL || child->paths == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < plan->data_count; i++) {
        if (!confined_wire_read(CONFINED_CHILD_SOCKET, child->data[i], FILE_PATH_MAX)) {
            return false;
        }
        child->paths[i] = child->data[i][0] == '\0' ? NULL : child->data[i];
    }
    return true;
}

bool confined_child_begin(struct confined_child *child)
{
    (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* what a library prints is no message */
    return read_plan(child);
}

void confined_child_end(struct confined_child *child)
{
    encryption_key_wipe(&child->plan.key);
    free(child->paths);
    free(child->data);
}

void confined_child_say(const struct confined_message *message, const void *bytes)
{
    (void)confined_wire_say(CONFINED_CHILD_SOCKET, message, bytes);
}
