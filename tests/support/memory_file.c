/* memory_file.c - see memory_file.h. */
#include "tests/support/memory_file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int memory_file_open(char path[MEMORY_FILE_PATH_MAX], const void *bytes, size_t size)
{
    int descriptor = memfd_create("memory_file", MFD_CLOEXEC);

    if (descriptor < 0) {
        abort();
    }
    for (size_t at = 0; at < size;) {
        ssize_t put = write(descriptor, (const uint8_t *)bytes + at, size - at);

        if (put <= 0) {
            abort();
        }
        at += (size_t)put;
    }
    (void)snprintf(path, MEMORY_FILE_PATH_MAX, "/proc/self/fd/%d", descriptor);
    return descriptor;
}
