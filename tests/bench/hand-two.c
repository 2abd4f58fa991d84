/* SPDX-License-Identifier: MIT */

/* Fork, pin, wait; see hand-two.h. */

#include "tests/bench/hand-two.h"

#include "schema/util.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define ALARM_SECONDS 90u /* longer than any round; ends a test that hangs */

static int pin(int cpu) {
        cpu_set_t set;
        if (cpu < 0)
                return 0;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        return sched_setaffinity(0, sizeof set, &set);
}

static __attribute__((noreturn)) void be_end(const struct hand_two *t, int end, struct hand_result *shared) {
        struct hand_result result = {};
        (void) alarm(ALARM_SECONDS);
        if (pin(t->cpus[end]) < 0)
                _exit(1);
        int r = t->run(t->userdata, end, &result);
        shared[end] = result; /* before its descriptors are closed, which may end the other */
        _exit(r < 0);
}

static void end_and_reap(pid_t pid) {
        if (pid <= 0)
                return;
        (void) kill(pid, SIGKILL); /* not reaped yet, so still itself */
        (void) waitpid(pid, NULL, 0);
}

/* Until the end with the clock is done. The other may end before: by itself, or because what it writes to has gone with
 * the first, which has left its result by then. Otherwise it has failed, and the first would wait in vain. */
static void await(const struct hand_two *t, pid_t pids[2], const struct hand_result *shared) {
        int status = 0;
        pid_t pid = wait(&status);
        for (int end = 0; end < 2; end++)
                if (pid == pids[end])
                        pids[end] = 0;
        if (pids[t->clocked] > 0 && (status == 0 || shared[t->clocked].ns)) {
                (void) waitpid(pids[t->clocked], NULL, 0);
                pids[t->clocked] = 0;
        }
}

int hand_two_run(const struct hand_two *t, struct hand_result *ret) {
        struct hand_result *shared =
                mmap(NULL, 2 * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t pids[2] = {};
        int r = 0;
        if (shared == MAP_FAILED)
                return -errno;
        for (int end = 0; r == 0 && end < 2; end++) {
                pids[end] = fork();
                if (pids[end] == 0)
                        be_end(t, end, shared);
                if (pids[end] < 0)
                        r = -errno;
        }
        if (t->forked)
                t->forked(t->userdata);
        if (r == 0)
                await(t, pids, shared);
        for (int end = 0; end < 2; end++)
                end_and_reap(pids[end]);
        *ret = shared[t->clocked];
        (void) munmap(shared, 2 * sizeof *shared);
        return r == 0 && ret->ns == 0 ? -EIO : r;
}
