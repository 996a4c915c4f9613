/* child.c - see child.h. */
#include "prover/node/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/spawn.h"

#define LOOK_MS 20

void child_add(struct child_words *words, const char *word)
{
    assert(words->count < CHILD_WORDS_MAX);
    words->words[words->count++] = word;
    words->words[words->count] = NULL;
}

/* ---- in the child: only calls that are safe after fork() with threads ------------- */

static bool put_descriptor(int descriptor, int place)
{
    return descriptor >= 0 && dup2(descriptor, place) == place;
}

static void become_child(const struct child_words *words, const struct child_options *options,
                         pid_t parent, int out, int log)
{
    const struct sched_param lowest = {.sched_priority = 0};
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;

    /* The parent may have blocked signals, and a mask survives execv(): the child must be
     * stoppable. */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    /* The parent can die before the first call takes effect: then nobody would ever send the
     * signal. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(126);
    }
    if (options->yields) {
        (void)sched_setscheduler(0, SCHED_IDLE, &lowest);
    }
    if (put_descriptor(nothing, STDIN_FILENO) &&
        put_descriptor(out < 0 ? nothing : out, STDOUT_FILENO) &&
        put_descriptor(log < 0 ? nothing : log, STDERR_FILENO)) {
        (void)execv(SPAWN_SELF, (char *const *)(uintptr_t)words->words);
    }
    _exit(126);
}

/* ---- in the parent ------------------------------------------------------------------ */

static enum status open_files(int *out, int *log, const struct child_options *options,
                              struct error *error)
{
    /* O_NOFOLLOW: somebody else's link in the folder must not lead our output to another file. */
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW;

    *out = options->out == NULL ? -1 : open(options->out, flags | O_TRUNC, 0600);
    if (options->out != NULL && *out < 0) {
        return error_set_errno(error, "cannot write %s", options->out);
    }
    *log = options->log == NULL ? -1 : open(options->log, flags | O_APPEND, 0600);
    return options->log != NULL && *log < 0
               ? error_set_errno(error, "cannot write %s", options->log)
               : STATUS_OK;
}

enum status child_start(struct child_process *child, const struct child_words *words,
                        const struct child_options *options, struct error *error)
{
    struct child_words whole = {.words = {"lockstep"}, .count = 1};
    pid_t parent = getpid();
    int out = -1;
    int log = -1;
    enum status status;

    /* Before fork(): in the child of a process with threads, only calls that are safe in a signal
     * are allowed. */
    for (size_t i = 0; i < words->count; i++) {
        child_add(&whole, words->words[i]);
    }
    TRY_OUT(open_files(&out, &log, options, error));
    child->process = fork();
    if (child->process == 0) {
        become_child(&whole, options, parent, out, log);
    }
    if (child->process < 0) {
        child->process = 0;
        status = error_set_errno(error, "cannot start another process");
    }
out:
    if (out >= 0) {
        (void)close(out);
    }
    if (log >= 0) {
        (void)close(log);
    }
    return status;
}

bool child_ended(struct child_process *child, int *code)
{
    int how = 0;
    pid_t found = child->process == 0 ? 0 : waitpid(child->process, &how, WNOHANG);

    if (found == 0 || (found < 0 && errno == EINTR)) {
        return false;
    }
    child->process = 0;
    /* A child that somebody else waited for is gone without a code. */
    *code = found < 0 ? 126 : WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    return true;
}

void child_stop(struct child_process *child, int wait_ms)
{
    int code;

    if (child->process == 0) {
        return;
    }
    /* Asked first: a child that trains then ends at a whole step, and resumes from there. */
    (void)kill(child->process, SIGTERM);
    for (int waited = 0; waited < wait_ms; waited += LOOK_MS) {
        if (child_ended(child, &code)) {
            return;
        }
        (void)usleep(LOOK_MS * 1000);
    }
    if (!child_ended(child, &code)) {
        (void)kill(child->process, SIGKILL);
        while (waitpid(child->process, &code, 0) < 0 && errno == EINTR) {
        }
        child->process = 0;
    }
}
