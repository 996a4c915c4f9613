/* spawn.c - see spawn.h. */
#include "base/io/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CODE_LOST = 126, /* as a shell says that a program cannot run */
    LOOK_MS = 10,
};

void spawn_hold_standard(void)
{
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++) {
        if (fcntl(file, F_GETFD) < 0) { /* the lowest that is free, so open() takes this one */
            (void)open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

/* ---- in the child: only calls that are safe after fork() with threads --------------------- */

static bool put_file(int file, int place)
{
    /* A file that is there already would close when the program begins. */
    return file == place ? fcntl(file, F_SETFD, 0) == 0 : dup2(file, place) == place;
}

/* The further file is last: its place may be that of a file which has moved by then. */
static bool put_files(const struct spawn_files *files)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    return put_file(files->input < 0 ? nothing : files->input, STDIN_FILENO) &&
           put_file(files->output < 0 ? nothing : files->output, STDOUT_FILENO) &&
           (files->log == 0 || put_file(files->log < 0 ? nothing : files->log, STDERR_FILENO)) &&
           (files->further < 0 || put_file(files->further, SPAWN_FURTHER));
}

static void become_program(const char *program, const char *const *words,
                           const struct spawn_files *files, pid_t parent, int report)
{
    const struct sched_param lowest = {.sched_priority = 0};
    sigset_t none;

    /* A mask survives the start of a program: one that blocks SIGTERM could not be stopped. */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    /* The parent can die before the first call takes effect: then nobody would send the signal. */
    if (files->tied && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) {
        _exit(CODE_LOST);
    }
    if (files->yields) {
        (void)sched_setscheduler(0, SCHED_IDLE, &lowest);
    }
    if (put_files(files)) {
        (void)execvp(program, (char *const *)(uintptr_t)words);
    }
    (void)!write(report, &errno, sizeof(errno));
    _exit(CODE_LOST);
}

/* ---- in the parent -------------------------------------------------------------------------- */

/* A pipe that closes as the program begins, above the place of a further file. */
static bool open_report(int report[2])
{
    int low[2];

    if (pipe2(low, O_CLOEXEC) != 0) {
        return false;
    }
    report[0] = low[0];
    report[1] = fcntl(low[1], F_DUPFD_CLOEXEC, SPAWN_FURTHER + 1);
    (void)close(low[1]);
    if (report[1] < 0) {
        (void)close(report[0]);
    }
    return report[1] >= 0;
}

enum status spawn_program(pid_t *process, const char *program, const char *const *words,
                          const struct spawn_files *files, struct error *error)
{
    const pid_t parent = getpid();
    int report[2];
    int failed = 0;

    *process = 0;
    if (!open_report(report)) {
        return error_set_errno(error, "cannot start %s", program);
    }
    *process = fork();
    if (*process == 0) {
        become_program(program, words, files, parent, report[1]);
    }
    failed = *process < 0 ? errno : 0;
    (void)close(report[1]);
    while (*process > 0 && read(report[0], &failed, sizeof(failed)) < 0 && errno == EINTR) {
    }
    (void)close(report[0]);
    if (failed != 0) {
        (void)spawn_end(process, 0, SPAWN_FOR_EVER);
        *process = 0;
        return error_set(error, STATUS_IO, "cannot start %s: %s", program, strerror(failed));
    }
    return STATUS_OK;
}

bool spawn_ended(pid_t *process, int *how)
{
    pid_t found = *process <= 0 ? 0 : waitpid(*process, how, WNOHANG);

    if (found == 0 || (found < 0 && errno == EINTR)) {
        return false;
    }
    *how = found < 0 ? CODE_LOST << 8 : *how;
    *process = 0;
    return true;
}

int spawn_code(int how)
{
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

int spawn_end(pid_t *process, int signal, uint32_t wait_ms)
{
    int how = 0;

    if (*process <= 0) {
        return 0;
    }
    if (signal != 0) {
        (void)kill(*process, signal);
    }
    for (uint32_t waited = 0; waited < wait_ms && wait_ms != SPAWN_FOR_EVER; waited += LOOK_MS) {
        if (spawn_ended(process, &how)) {
            return how;
        }
        (void)usleep(LOOK_MS * 1000);
    }
    if (wait_ms != SPAWN_FOR_EVER && !spawn_ended(process, &how)) {
        (void)kill(*process, SIGKILL);
    }
    while (*process > 0) {
        if (waitpid(*process, &how, 0) >= 0) {
            *process = 0;
        } else if (errno != EINTR) { /* somebody else waited for it */
            *process = 0;
            how = CODE_LOST << 8;
        }
    }
    return how;
}
