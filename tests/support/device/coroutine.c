/* coroutine.c - see coroutine.h. */
/* They jump from stack to stack, which the longjmp of a fortified build takes for an attack. */
#undef _FORTIFY_SOURCE

#include "tests/support/device/coroutine.h"

#include <stdint.h>

#if defined(__x86_64__)

enum {
    SAVED = 6, /* registers that a call leaves as they were */
};

/* What the caller may not see changed goes on its stack, and comes back from the other's. */
void coroutine_exchange(void **from, void *to);
__asm__(".text\n"
        ".p2align 4\n"
        ".type coroutine_exchange, @function\n"
        "coroutine_exchange:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size coroutine_exchange, . - coroutine_exchange\n");

/* As if run had been called from nowhere, and had changed before its first instruction. */
void coroutine_init(struct coroutine *coroutine, void *stack, size_t stack_size, void (*run)(void))
{
    uintptr_t end = ((uintptr_t)stack + stack_size) / 16 * 16;
    void **at = (void **)end;

    *--at = NULL;
    *--at = (void *)(uintptr_t)run;
    for (int i = 0; i < SAVED; i++) {
        *--at = NULL;
    }
    coroutine->top = at;
}

void coroutine_change(struct coroutine *from, struct coroutine *to)
{
    coroutine_exchange(&from->top, to->top);
}

#else

void coroutine_init(struct coroutine *coroutine, void *stack, size_t stack_size, void (*run)(void))
{
    (void)getcontext(&coroutine->context);
    coroutine->context.uc_stack.ss_sp = stack;
    coroutine->context.uc_stack.ss_size = stack_size;
    coroutine->context.uc_link = NULL;
    makecontext(&coroutine->context, run, 0);
    coroutine->begun = false;
}

/* No variable lives across the jump. */
void coroutine_change(struct coroutine *from, struct coroutine *to)
{
    from->begun = true;
    if (_setjmp(from->place) != 0) {
        return;
    }
    if (to->begun) {
        _longjmp(to->place, 1);
    }
    (void)setcontext(&to->context);
}

#endif
