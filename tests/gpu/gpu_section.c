/* gpu_section.c - see gpu_section.h. */
#include "tests/gpu/gpu_section.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_S 5.0
#define LOOK_NS 5000000

static _Noreturn void run_here(struct gpu_check *check, const struct gpu_section *section)
{
    /* What it starts is killed with it; and it with the process that started it. */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    gpu_check_begin(check);
    section->run(check, section->kind);
    (void)fflush(NULL);
    _exit(GPU_CHECK_OK);
}

/* Has the child ended within seconds? */
static bool ends(pid_t child, int *status, double seconds)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    const double start = gpu_check_now();
    pid_t ended;

    while ((ended = waitpid(child, status, WNOHANG)) == 0 && gpu_check_now() - start < seconds) {
        (void)nanosleep(&look, NULL);
    }
    return ended == child;
}

static void say(struct gpu_tally *tally, const char *text)
{
    (void)snprintf(tally->reason, sizeof(tally->reason), "%s", text);
}

static void say_ending(struct gpu_tally *tally, int status)
{
    if (WIFSIGNALED(status)) {
        (void)snprintf(tally->reason, sizeof(tally->reason), "it ended by signal %d",
                       WTERMSIG(status));
    } else if (WEXITSTATUS(status) != GPU_CHECK_OK && tally->reason[0] == '\0') {
        (void)snprintf(tally->reason, sizeof(tally->reason), "it ended with code %d: see above",
                       WEXITSTATUS(status));
    }
}

bool gpu_section_run(struct gpu_check *check, const struct gpu_section *section, double limit_s)
{
    struct gpu_tally *tally = check->tally;
    int status = 0;
    pid_t child;

    tally->reason[0] = '\0';
    tally->first[0] = '\0';
    (void)fflush(NULL);
    child = fork();
    if (child == 0) {
        run_here(check, section);
    }
    if (child < 0) {
        say(tally, "it could not be started");
        return false;
    }
    if (!ends(child, &status, limit_s)) {
        (void)kill(-child, SIGKILL);
        (void)kill(child, SIGKILL);
        (void)snprintf(tally->reason, sizeof(tally->reason), "it did not end in %.0f s%s", limit_s,
                       ends(child, &status, GRACE_S) ? "" : ", and cannot be killed");
        return false;
    }
    say_ending(tally, status);
    return WIFEXITED(status) && WEXITSTATUS(status) == GPU_CHECK_OK;
}
