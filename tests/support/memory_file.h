/* memory_file.h - bytes as a file that has a path, without a disk. Ends the program on failure. */
#ifndef TESTS_SUPPORT_MEMORY_FILE_H
#define TESTS_SUPPORT_MEMORY_FILE_H

#include <stddef.h>

#define MEMORY_FILE_PATH_MAX 64

/* The caller closes the descriptor, and the file is gone. */
int memory_file_open(char path[MEMORY_FILE_PATH_MAX], const void *bytes, size_t size);

#endif /* TESTS_SUPPORT_MEMORY_FILE_H */
