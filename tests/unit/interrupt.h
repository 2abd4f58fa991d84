/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_INTERRUPT_H
#define IPCLAB_TESTS_INTERRUPT_H

/*
 * One end of a pair of agents is killed or stopped in the middle of a run. The other one reports it, by its role;
 * nothing is left: no System V object, nothing in /dev/shm, no POSIX queue, nothing in the run's directory; and the
 * next run of the same kind goes well. For tests that are in namespaces of their own, where what is left is theirs.
 */

#include "schema/util.h"
#include "tests/bench/driver.h"
#include "tests/bench/own-namespaces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define INTERRUPT_ENDLESS_NS (600 * NSEC_PER_SEC) /* a window that ends because of the signal, or not at all */
#define INTERRUPT_WINDOW_NS (100 * NSEC_PER_MSEC) /* for a stop */
#define INTERRUPT_STALL_NS (200 * NSEC_PER_MSEC)  /* longer, so that no thread stalls within the window */
#define INTERRUPT_DEADLINE_NS (60 * NSEC_PER_SEC)

/* The verification of the n-th way to run, in which each end is the victim once: they take turns. */
static inline enum verify interrupt_verify(size_t n, enum end victim) {
        return (enum verify)((n + (size_t) victim) % VERIFY_COUNT);
}

/* A kill meets each end of the n-th way in each workload; a stop each end once and each workload once: the survivor's
 * loop is the same, and has been seen to end there. */
static inline bool interrupt_meets(int signal, size_t n, size_t workload, enum end victim) {
        return signal == SIGKILL || (n + workload + (size_t) victim) % END_COUNT == 0;
}

/* A window that lasts until the signal, or, as a stop is found out when it is over, a short one. */
static inline void interrupt_by_time(struct driver_spec *s, int signal) {
        s->duration_ns = signal == SIGKILL ? INTERRUPT_ENDLESS_NS : INTERRUPT_WINDOW_NS;
        s->stall_ns = INTERRUPT_STALL_NS;
}

/* Fails with the result of interrupt_check() or interrupt_leftovers(), unless it is NULL. */
#define CHECK_NO_FAULT(fault)                                                                                          \
        do {                                                                                                           \
                const char *_fault = (fault);                                                                          \
                if (_fault)                                                                                            \
                        CHECK_FAIL("%s", _fault);                                                                      \
        } while (0)

/* An IPC namespace and a /dev/shm of this program's own. NULL; or why there are none. To be called once, while there is
 * one thread. */
static inline const char *interrupt_isolate(void) {
        const char *trouble = own_namespaces(CLONE_NEWIPC | CLONE_NEWNS);
        if (trouble)
                return trouble;
        /* As the daemon has it for its agents, where that is permitted: whatever the user's other programs have in
         * queues counts, and other tests run beside this one. */
        const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
        (void) setrlimit(RLIMIT_MSGQUEUE, &all);
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
                return "no /dev/shm of this program's own can be mounted here";
        return NULL;
}

/* Lines below the headline; -1: unreadable. */
static inline int interrupt_lines(const char *path) {
        char line[400];
        int n = -1;
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof line, f))
                n++;
        return n;
}

static inline int interrupt_entries(int fd) {
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        int n = 0;
        if (!dir)
                return -1;
        for (struct dirent *e; (e = readdir(dir));)
                n += e->d_name[0] != '.';
        (void) closedir(dir);
        return n;
}

/* POSIX queues of this namespace: the file system that has them, mounted nowhere. -1: it cannot be read. */
static inline int interrupt_mqueues(void) {
        _cleanup_close_ int context = fsopen("mqueue", FSOPEN_CLOEXEC);
        if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return errno == ENODEV ? 0 : -1; /* a kernel without such queues has none */
        _cleanup_close_ int mounted = fsmount(context, FSMOUNT_CLOEXEC, 0);
        return mounted < 0 ? -1 : interrupt_entries(openat(mounted, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/* Names what is left in the namespaces, or cannot be read; NULL: nothing is left. */
static inline const char *interrupt_leftovers(void) {
        static char text[200];
        const struct {
                const char *what;
                int n;
        } all[] = {
                {"System V queues", interrupt_lines("/proc/sysvipc/msg")},
                {"System V segments", interrupt_lines("/proc/sysvipc/shm")},
                {"System V semaphores", interrupt_lines("/proc/sysvipc/sem")},
                {"objects in /dev/shm", interrupt_entries(open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC))},
                {"POSIX queues", interrupt_mqueues()},
        };
        for (size_t i = 0; i < ELEMENTS(all); i++)
                if (all[i].n != 0) {
                        (void) snprintf(text, sizeof text, "%d %s (-1: cannot be read)", all[i].n, all[i].what);
                        return text;
                }
        return NULL;
}

/* Sends the signal. A process that is being stopped runs its other threads until one has taken the signal. */
static inline void interrupt_process(pid_t pid, int signal) {
        siginfo_t info;
        if (kill(pid, signal) == 0 && signal == SIGSTOP)
                (void) waitid(P_PID, (id_t) pid, &info, WSTOPPED | WEXITED | WNOWAIT);
}

/* Interrupts the pair while it is at work; then waits for the peer. 1: the window may have been over. A victim that is
 * stopped then has sent its report before, and its peer cannot know any more which end is at fault. */
static inline int interrupt_once(struct driver *d, const struct driver_spec *s, enum end victim, int signal) {
        const struct driver_end *peer = &d->ends[victim == END_FIRST ? END_SECOND : END_FIRST];
        int r = driver_open(d, s);
        uint64_t began_ns = util_now_ns(); /* before the window does */
        if (r == 0)
                r = driver_start(d);
        if (r < 0)
                return r;
        (void) poll(NULL, 0, 60);
        interrupt_process(d->ends[victim].pid, signal);
        bool late = s->duration_ns && util_now_ns() >= began_ns + s->warmup_ns + s->duration_ns;
        if (signal == SIGSTOP)
                d->ends[victim].gone = true; /* sends nothing any more: only the other is waited for */
        r = driver_collect(d, util_now_ns() + INTERRUPT_DEADLINE_NS);
        if (late || (peer->reported && !peer->failed))
                return 1;
        return peer->failed ? 0 : r ? r : -EPROTO;
}

/* A machine that stands still may let a short window pass before the signal: then the next one is longer, and so is the
 * stall limit, which is to outlast the window. A killed end is noticed at once, whatever the limit: it has the longest,
 * so that a thread that has no CPU is not taken for a stalled one. */
static inline int interrupt_in_time(struct driver *d, const struct driver_spec *s, enum end victim, int signal) {
        struct driver_spec longer = *s;
        if (signal == SIGKILL)
                longer.stall_ns = 0;
        for (unsigned n = 0;; n++) {
                int r = interrupt_once(d, &longer, victim, signal);
                if (r <= 0 || n == 5)
                        return r > 0 ? -ETIME : r;
                (void) kill(d->ends[victim].pid, SIGKILL);
                (void) driver_close(d);
                driver_deinit(d);
                longer.duration_ns *= 2;
                longer.stall_ns = s->stall_ns + longer.duration_ns;
        }
}

/* A victim that is stopped in a run by count is found as a stall of the thread that waits for it, else as a peer. */
static inline bool interrupt_reason_is_right(const struct driver *d, enum end victim, int signal) {
        const struct driver_end *peer = &d->ends[victim == END_FIRST ? END_SECOND : END_FIRST];
        const char *detail = peer->error.detail;
        if (signal == SIGSTOP && peer->error.error != ETIMEDOUT)
                return false;
        if (signal == SIGSTOP && d->spec.messages)
                return strstr(detail, "stalled") != NULL;
        return peer->error.error != 0 && peer->error.fault == FAULT_PEER && strstr(detail, d->ends[victim].role);
}

static inline int interrupt_next_run(const struct driver_spec *s, char *ret_trouble, size_t size) {
        struct driver d;
        struct driver_spec next = *s;
        next.duration_ns = 0;
        next.messages = 10;
        next.stall_ns = 20 * NSEC_PER_SEC; /* a busy machine is no fault */
        int r = driver_run(&d, &next);
        if (r < 0)
                (void) snprintf(ret_trouble, size, "the next run: %s", d.trouble);
        driver_deinit(&d);
        return r;
}

/* NULL when all of it is as it should be; else a sentence. */
static inline const char *interrupt_error(struct driver *d, const struct driver_spec *s, enum end victim, int signal) {
        static char text[500];
        const struct driver_end *peer = &d->ends[victim == END_FIRST ? END_SECOND : END_FIRST];
        int r = interrupt_in_time(d, s, victim, signal);
        if (r < 0) {
                (void) snprintf(text, sizeof text, "the peer does not report that it failed (%d): %s", r, d->trouble);
                return text;
        }
        if (!interrupt_reason_is_right(d, victim, signal)) {
                (void) snprintf(text, sizeof text, "the peer reports %d, \"%s\"", peer->error.error,
                                peer->error.detail);
                return text;
        }
        (void) kill(d->ends[victim].pid, SIGKILL);
        if (driver_close(d) < 0) /* the run's directory is among it */
                return d->trouble;
        if (!WIFEXITED(peer->status) || WEXITSTATUS(peer->status) != 1) {
                (void) snprintf(text, sizeof text, "the peer ended with status %#x", (unsigned) peer->status);
                return text;
        }
        const char *leftovers = interrupt_leftovers();
        if (leftovers)
                return leftovers;
        return interrupt_next_run(s, text, sizeof text) < 0 ? text : NULL;
}

/* NULL when all of it is as it should be; else a sentence that names the pair. d is for driver_deinit() and still has
 * the report of each end. s is to be a run that does not end by itself before the victim is missed. */
static inline const char *interrupt_check(struct driver *d, const struct driver_spec *s, enum end victim, int signal) {
        static char text[800];
        const struct point *p = &s->point;
        const char *fault = interrupt_error(d, s, victim, signal);
        if (!fault)
                return NULL;
        (void) snprintf(text, sizeof text, "%s %s %s, engine %s, %s, wait %s, verify %s, file_sync %s, %s %s: %s",
                        transport_name(p->transport), workload_name(p->workload), direction_name(p->direction),
                        engine_name(p->engine), copy_mode_name(p->copy_mode), wait_mode_name(p->wait),
                        verify_name(s->verify), file_sync_name(s->options.file_sync),
                        role_name(p->workload, p->transport, victim), signal == SIGSTOP ? "stopped" : "killed", fault);
        return text;
}

#endif
