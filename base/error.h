/*
 * error.h - one error as a chain of words: what failed, on what, and what to do about it.
 *
 * The function that meets the failure calls error_set(). A caller may put its own words before it
 * with error_wrap(), or add a remedy with error_advise(). Nothing here allocates or prints:
 * base/cli/command.c prints, once.
 *
 *     verifier: cannot open bundle 'run1': journal.db: not a Lockstep journal
 *       try: lockstep audit --help
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "base/status.h"

#define ERROR_TEXT_MAX   1024
#define ERROR_ADVICE_MAX 512

struct error {
    enum status status;
    char text[ERROR_TEXT_MAX];
    char advice[ERROR_ADVICE_MAX]; /* empty where there is none */
};

void error_init(struct error *error);

/* Records the failure and returns status, so that "return error_set(...)" is the usual line.
 * error may be NULL: then only the status travels. Text that is too long is cut, visibly. */
enum status error_set(struct error *error, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "words: " before what is there. Returns the status that is recorded. */
enum status error_wrap(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says what to do. The innermost advice wins: it was given closest to the cause. */
void error_advise(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* As error_set, with ": " and the text of errno at the end; status is STATUS_IO. */
enum status error_set_errno(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#ifdef __clang_analyzer__
/* The analyzer does not look into error.c: show it that error_set returns its code. */
#define error_set(error, code, ...) ((void)(error_set)((error), (code), __VA_ARGS__), (code))
#define error_set_errno(error, ...) ((void)(error_set_errno)((error), __VA_ARGS__), STATUS_IO)
#endif

/* A short stable name for scripts: "refused", "bad-format". */
const char *status_name(enum status status);

#endif /* BASE_ERROR_H */
