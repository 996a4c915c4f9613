/*
 * gpu_tools.c - the toolkit's own tools over this program, where they are: compute-sanitizer looks
 * at every access of the self-tests, ncu counts what the kernels of the products do.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/gpu/gpu_check.h"

#define ARGUMENTS_MAX 12

static const struct tool {
    const char *only; /* the sections that it sees, of a quick run */
    const char *arguments[ARGUMENTS_MAX];
} tools[] = {
    [GPU_TOOL_SANITIZER] = {"self-test",
                            {"compute-sanitizer", "--tool", "memcheck", "--target-processes", "all",
                             "--error-exitcode", "9"}},
    [GPU_TOOL_NCU] = {"alone", {"ncu", "--target-processes", "all", "--set", "basic"}},
};

/* Takes the section's place; a tool that is not here leaves its section clean, and says so. */
void gpu_check_tool(struct gpu_check *check, int kind)
{
    const struct tool *tool = &tools[kind];
    char itself[PATH_MAX] = "";
    char *arguments[ARGUMENTS_MAX + 1];
    size_t count = 0;

    if (readlink("/proc/self/exe", itself, sizeof(itself) - 1) <= 0) {
        itself[0] = '\0';
    }
    while (tool->arguments[count] != NULL) {
        /* execvp() promises not to write to them. */
        memcpy(&arguments[count], &tool->arguments[count], sizeof(arguments[count]));
        count++;
    }
    arguments[count] = itself;
    arguments[count + 1] = NULL;
    (void)setenv("GPU_CHECK_ONLY", tool->only, 1);
    (void)setenv("GPU_CHECK_QUICK", "1", 1);
    (void)fflush(NULL);
    (void)execvp(arguments[0], arguments);
    (void)snprintf(check->tally->reason, sizeof(check->tally->reason), "not tried, %s: %s",
                   arguments[0], strerror(errno));
}
