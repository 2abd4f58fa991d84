/* SPDX-License-Identifier: MIT */

/*
 * Each call reaps, then walks the list of children once. A stray that dies has its own children adopted before it is a
 * zombie, so a walk that has met none alive has missed none. What a tracer holds as a zombie, or in its exit and
 * without children, does nothing any more, and is no stray. Owns the time of the first adoption. Called by the runner,
 * through the launch.
 *
 * Source: man 2 prctl (PR_SET_CHILD_SUBREAPER), man 5 proc_pid_task (children), proc_pid_stat, proc_pid_status.
 */

#include "daemon/run/watch/strays.h"

#include "daemon/host/hostfs.h"
#include "daemon/run/watch/procs.h"
#include "schema/util.h"

#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <time.h>

#define WALK_NS (10 * NSEC_PER_MSEC)
#define ANCESTORS_MAX 64u
#define TRACERS_MAX 16u /* each of them held by the next one */

static uint64_t adopted_ticks; /* since the boot; 0: nothing is adopted */

int strays_adopt(void) {
        struct timespec now;
        if (adopted_ticks > 0)
                return 0;
        _cleanup_fclose_ FILE *f = procs_open_children(getpid(), getpid()); /* orphans go to the first thread */
        if (!f || clock_gettime(CLOCK_BOOTTIME, &now) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
                return -errno;
        uint64_t ticks = (uint64_t) sysconf(_SC_CLK_TCK);
        adopted_ticks = (uint64_t) now.tv_sec * ticks + (uint64_t) now.tv_nsec * ticks / NSEC_PER_SEC;
        return 0;
}

static bool is_alive_child(pid_t pid, struct strays *one) {
        struct procs_stat stat;
        if (!procs_read_stat(pid, pid, &stat))
                return false;
        memcpy(one->name, stat.name, sizeof(one->name));
        return stat.parent == getpid() && stat.state != 'Z' && stat.state != 'X' && stat.start_ticks >= adopted_ticks;
}

/* Source: "Uid:" has the real, effective, saved and file system's user. */
static bool is_like_an_agent(pid_t pid, uid_t uid) {
        struct hostfs h = HOSTFS_MACHINE;
        _cleanup_free_ char *text = NULL;
        char users[64], bound[8];
        unsigned real, effective, saved;
        return hostfs_text(&h, &text, "/proc/%d/status", pid) == 0 &&
               hostfs_field(text, "Uid", users, sizeof(users)) == 0 &&
               sscanf(users, "%u %u %u", &real, &effective, &saved) == 3 && /* NOLINT(cert-err34-c) */
               real == uid && effective == uid && saved == uid &&
               hostfs_field(text, "NoNewPrivs", bound, sizeof(bound)) == 0 && strcmp(bound, "1") == 0;
}

/* A tracer holds it in its exit, for ever perhaps. Its children are adopted when it goes on. */
static bool is_done(pid_t pid) {
        pid_t tracer;
        return procs_is_held(pid, &tracer) && !procs_has_live_child(pid);
}

static bool descends_from_here(pid_t pid) {
        struct procs_stat stat;
        for (unsigned i = 0; i < ANCESTORS_MAX && pid > 1 && procs_read_stat(pid, pid, &stat); i++) {
                if (stat.parent == getpid())
                        return true;
                pid = stat.parent;
        }
        return false;
}

/* What holds an agent's process may be a child of that process, which is not adopted before it lets go, and be held
 * itself. The process of the number that is open is the one that is looked at, or is gone. */
static void end_tracers(pid_t held, uid_t uid) {
        pid_t tracer = 0;
        for (unsigned i = 0; i < TRACERS_MAX && procs_is_held(held, &tracer) && tracer > 0; i++) {
                _cleanup_close_ int fd = pidfd_open(tracer, 0);
                if (fd < 0 || !is_like_an_agent(tracer, uid) || !descends_from_here(tracer))
                        return;
                (void) pidfd_send_signal(fd, SIGKILL, NULL, 0);
                held = tracer;
        }
}

bool strays_end(const struct agent_identity *agents, struct strays *ret) {
        struct strays found = {0};
        bool whole = true;
        int pid;
        *ret = found;
        if (adopted_ticks == 0 || spawn_reap_strays())
                return true;
        _cleanup_fclose_ FILE *f = procs_open_children(getpid(), getpid());
        uint64_t until = util_now_ns() + WALK_NS;
        while (f && fscanf(f, "%d", &pid) == 1) { /* NOLINT(cert-err34-c) */
                struct strays one = {.pid = pid};
                if (found.n == STRAYS_KILLS_MAX || util_now_ns() >= until) { /* this one is not looked at */
                        whole = false;
                        break;
                }
                if (is_alive_child(pid, &one) && is_like_an_agent(pid, agents->uid)) {
                        bool done = is_done(pid);
                        (void) kill(pid, SIGKILL); /* its number is its own until it is reaped here */
                        end_tracers(pid, agents->uid);
                        if (done && is_done(pid)) /* a tracer's other stops end with the signal */
                                continue;
                        one.n = found.n + 1;
                        found = one;
                }
        }
        *ret = found;
        return f && whole && found.n == 0;
}
