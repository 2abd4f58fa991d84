/* SPDX-License-Identifier: MIT */

/* The stack that a loop runs on has pages that were not there before: none is left that another process, or this one
 * when it was elsewhere, has had. */

#include "agent/proof/proof.h"
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

#define DEEP (64u * 1024u)
#define MARK 0xa5u

/* Far below where the proof will look. */
static __attribute__((noinline, no_sanitize("address"))) void mark_stack(void) {
        volatile unsigned char below[DEEP];
        for (size_t i = 0; i < sizeof below; i++)
                below[i] = MARK;
}

static __attribute__((noinline, no_sanitize("address"))) size_t marked_bytes(const struct stack_range *s) {
        size_t n = 0;
        for (uintptr_t at = s->low; at < s->high; at++)
                n += *(const volatile unsigned char *) at == MARK; /* NOLINT(performance-no-int-to-ptr) */
        return n;
}

static void test_pages_are_new(void) {
        struct stack_range s;
        mark_stack();
        proof_take_stack(&s);
        CHECK(s.high > s.low);
        CHECK_UINT((s.high - s.low) % (size_t) sysconf(_SC_PAGESIZE), 0);
        CHECK_UINT(marked_bytes(&s), 0);
}

/* Its ancestor's were marked before the fork. */
static void test_so_after_a_fork(void) {
        int status = -1;
        mark_stack();
        pid_t pid = fork();
        if (pid == 0) {
                struct stack_range s;
                proof_take_stack(&s);
                _exit(marked_bytes(&s) > 0);
        }
        CHECK(pid > 0);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
        RUN(test_pages_are_new);
        RUN(test_so_after_a_fork);
        return check_end();
}
