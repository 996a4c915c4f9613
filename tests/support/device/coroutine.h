/*
 * coroutine.h - stacks that take turns on one thread of the system.
 *
 * A change is as cheap as a call: millions of them are made in a test. That no system call is made
 * for one, and that a sanitizer does not take it for the end of all frames, is what the few lines
 * of assembly are for; where there are none it is the C library's jump.
 */
#ifndef TESTS_SUPPORT_DEVICE_COROUTINE_H
#define TESTS_SUPPORT_DEVICE_COROUTINE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

struct coroutine {
#if defined(__x86_64__)
    void *top; /* of the stack, where the registers lie while another runs */
#else
    ucontext_t context; /* how it begins, */
    jmp_buf place;      /* and where it goes on */
    bool begun;
#endif
};

/* At its first turn it calls run, which must not return. Borrows the stack. */
void coroutine_init(struct coroutine *coroutine, void *stack, size_t stack_size, void (*run)(void));

/* Leaves the running one, which is from, and goes on with to. Returns when from has its turn. */
void coroutine_change(struct coroutine *from, struct coroutine *to);

#endif /* TESTS_SUPPORT_DEVICE_COROUTINE_H */
