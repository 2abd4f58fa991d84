/* SPDX-License-Identifier: MIT */

/*
 * The clone is a raw system call, since fork(3) has no CLONE_PARENT. libc's fork would also have updated the cached id
 * of the main thread in the child, which nothing here relies on (agent.c, thread-usage.c).
 *
 * Source: man 2 clone3, prctl (PR_SET_PDEATHSIG: cleared in a child), set_mempolicy.
 */

#include "agent/os/fork-peer.h"

#include "agent/os/cpumask.h"
#include "agent/os/policy.h"
#include "schema/protocol/protocol.h"
#include "schema/util.h"

#include <assert.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Reports to the parent, which may be gone, and returns -error. */
static int report_failure(const char *step, int error) {
        struct forked_report born = {.error = error};
        (void) snprintf(born.step, sizeof born.step, "%s", step);
        (void) send(AGENT_FORKED_REPORT_FD, &born, sizeof born, MSG_NOSIGNAL);
        return -error;
}

static int map(const char *bytes, bool huge, struct forked_memory *ret) {
        char *end;
        errno = 0;
        unsigned long long length = strtoull(bytes, &end, 10);
        if (errno || *end || end == bytes || length == 0 || length > SIZE_MAX)
                return report_failure("bytes to share", EINVAL);
        int flags = MAP_SHARED | MAP_ANONYMOUS | (huge ? MAP_HUGETLB : 0);
        void *p = mmap(NULL, (size_t) length, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (p == MAP_FAILED)
                return report_failure(huge ? "mmap of huge pages" : "mmap", errno);
        *ret = (struct forked_memory){.memory = p, .length = (size_t) length, .huge = huge};
        return 0;
}

/* The forked peer's first step: receives and applies its placement, before it touches a page of its own. The packet is
 * static so that it takes no page of the stack. */
static int apply_place(void) {
        static struct forked_placement place;
        ssize_t n;
        do
                n = recv(AGENT_FORKED_REPORT_FD, &place, sizeof place, 0);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t) sizeof place)
                return n < 0 ? -errno : -ESRCH; /* the parent refused it, or is gone */
        static_assert(sizeof place.cpus == sizeof(struct cpumask), "one bit per CPU in both");
        int r = cpumask_set_affinity(0, (const struct cpumask *) (const void *) place.cpus);
        if (r == 0 && place.set_memory)
                r = policy_set((enum memory_policy) place.memory, &place.memory_nodes);
        return r;
}

int fork_peer(const char *bytes, bool huge, struct forked_memory *ret) {
        struct forked_memory memory;
        int r = map(bytes, huge, &memory);
        if (r < 0)
                return r;
        pid_t parent = getppid();
        struct clone_args args = {.flags = CLONE_PARENT};
        long pid = syscall(SYS_clone3, &args, sizeof args);
        if (pid < 0 && errno == ENOSYS) /* a seccomp filter that cannot check its arguments, as systemd's, refuses it */
                pid = syscall(SYS_clone, CLONE_PARENT, 0UL, NULL, 0UL, 0UL);
        if (pid < 0)
                return report_failure("clone", errno);
        if (pid == 0) {
                r = apply_place();
                if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
                        r = -errno;
                if (r == 0 && getppid() != parent)
                        r = -ESRCH;
                if (r == 0 && (dup2(AGENT_FORKED_CONTROL_FD, AGENT_CONTROL_FD) < 0 ||
                               dup2(AGENT_FORKED_PEER_FD, AGENT_PEER_FD) < 0))
                        r = -errno;
        } else {
                struct forked_report born = {.pid = (pid_t) pid};
                r = send(AGENT_FORKED_REPORT_FD, &born, sizeof born, MSG_NOSIGNAL) < 0 ? -errno : 0;
        }
        for (int fd = AGENT_FORKED_CONTROL_FD; fd <= AGENT_FORKED_REPORT_FD; fd++)
                (void) util_close(fd);
        if (r < 0)
                return r;
        *ret = memory;
        return pid == 0 ? 1 : 0;
}
