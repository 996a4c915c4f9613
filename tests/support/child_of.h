/*
 * child_of.h - finds a child by /proc: of which process, and the first word behind its name.
 */
#ifndef TESTS_SUPPORT_CHILD_OF_H
#define TESTS_SUPPORT_CHILD_OF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* 0: there is none now. */
pid_t child_of(pid_t parent, const char *word);

/* Its file /proc/PROCESS/status, cut where text ends. false: it is gone. */
bool child_of_status(char *text, size_t size, pid_t process);

#endif /* TESTS_SUPPORT_CHILD_OF_H */
