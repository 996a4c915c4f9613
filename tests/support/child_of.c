/* child_of.c - see child_of.h. */
#include "tests/support/child_of.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_proc(char *text, size_t size, pid_t process, const char *name)
{
    char path[64];
    FILE *file;
    size_t got = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)process, name);
    file = fopen(path, "r");
    if (file != NULL) {
        got = fread(text, 1, size - 1, file);
        (void)fclose(file);
    }
    text[got] = '\0';
    return got > 0;
}

bool child_of_status(char *text, size_t size, pid_t process)
{
    return read_proc(text, size, process, "status");
}

static bool is_child(pid_t process, pid_t parent, const char *word)
{
    char words[512] = {0};
    char status[4096];
    const char *field;

    if (!read_proc(words, sizeof(words) - 1, process, "cmdline") ||
        strcmp(words + strlen(words) + 1, word) != 0 ||
        !child_of_status(status, sizeof(status), process)) {
        return false;
    }
    field = strstr(status, "\nPPid:\t");
    return field != NULL && strtol(field + 7, NULL, 10) == parent;
}

pid_t child_of(pid_t parent, const char *word)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    pid_t found = 0;

    while (processes != NULL && found == 0 && (entry = readdir(processes)) != NULL) {
        const pid_t process = (pid_t)strtol(entry->d_name, NULL, 10);

        if (isdigit((unsigned char)entry->d_name[0]) && is_child(process, parent, word)) {
            found = process;
        }
    }
    if (processes != NULL) {
        (void)closedir(processes);
    }
    return found;
}
