/* child.c - see child.h. */
#include "prover/node/child.h"

#include <fcntl.h>
#include <unistd.h>

/* O_NOFOLLOW: somebody else's link in the folder must not lead our output to another file. */
static enum status open_file(int *file, const char *path, int how, struct error *error)
{
    *file = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | how, 0600);
    return path != NULL && *file < 0 ? error_set_errno(error, "cannot write %s", path) : STATUS_OK;
}

enum status child_start(pid_t *process, const struct child_words *words,
                        const struct child_options *options, struct error *error)
{
    struct spawn_files files = {
        .input = -1, .log = -1, .further = -1, .tied = true, .yields = options->yields};
    enum status status;

    TRY_OUT(open_file(&files.output, options->out, O_TRUNC, error));
    TRY_OUT(open_file(&files.log, options->log, O_APPEND, error));
    status = spawn_program(process, SPAWN_SELF, words->list, &files, error);
out:
    if (files.output >= 0) {
        (void)close(files.output);
    }
    if (files.log >= 0) {
        (void)close(files.log);
    }
    return status;
}
