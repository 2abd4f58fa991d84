/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_STRIKE_H
#define IPCLAB_TESTS_STRIKE_H

/*
 * One end of a pair of agents is killed or stopped in the middle of a run. The other says so, by its role; nothing is
 * left: no System V object, nothing in /dev/shm, no POSIX queue, nothing in the run's directory; and the next run of
 * the same kind goes well. For tests that are in namespaces of their own, where what is left is theirs.
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
#include <sys/wait.h>

#define STRIKE_NEVER_NS (600 * NSEC_PER_SEC)   /* a window that ends because of the blow, or not at all */
#define STRIKE_WINDOW_NS (100 * NSEC_PER_MSEC) /* for a stop, which is found out when the window is over */
#define STRIKE_STALL_NS (200 * NSEC_PER_MSEC)  /* is to be longer: in the window no thread is to be called stalled */
#define STRIKE_PATIENCE_NS (60 * NSEC_PER_SEC)

/* Either end is struck under each verification: the cases in which the rest is the same, from 0 and round again. */
#define STRIKE_CASES ((unsigned) VERIFY_COUNT * (unsigned) END_COUNT)

static inline enum verify strike_verify(unsigned n) {
        return (enum verify)(n / END_COUNT % VERIFY_COUNT);
}

static inline enum end strike_victim(unsigned n) {
        return (enum end)(n % END_COUNT);
}

/* For check.h: NULL, or what strike() or strike_litter() say. */
#define CHECK_NO_FAULT(fault)                                                                                          \
        do {                                                                                                           \
                const char *_fault = (fault);                                                                          \
                if (_fault)                                                                                            \
                        CHECK_FAIL("%s", _fault);                                                                      \
        } while (0)

/* An IPC namespace and a /dev/shm of this program's own. NULL; or why there are none. To be called once, while there is
 * one thread. */
static const char *strike_isolate(void) {
        const char *trouble = own_namespaces(CLONE_NEWIPC | CLONE_NEWNS);
        if (trouble)
                return trouble;
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
                return "there is no /dev/shm of one's own to be had here";
        return NULL;
}

/* Lines below the headline; -1: unreadable. */
static int strike_lines(const char *path) {
        char line[400];
        int n = -1;
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof line, f))
                n++;
        return n;
}

static int strike_entries(int fd) {
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        int n = 0;
        if (!dir)
                return -1;
        for (struct dirent *e; (e = readdir(dir));)
                n += e->d_name[0] != '.';
        (void) closedir(dir);
        return n;
}

/* POSIX queues of this namespace: the file system that has them, mounted nowhere. -1: it cannot be looked at. */
static int strike_mqueues(void) {
        _cleanup_close_ int context = fsopen("mqueue", FSOPEN_CLOEXEC);
        if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return errno == ENODEV ? 0 : -1; /* a kernel without such queues has none */
        _cleanup_close_ int mounted = fsmount(context, FSMOUNT_CLOEXEC, 0);
        return mounted < 0 ? -1 : strike_entries(openat(mounted, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/* What lies about in the namespaces, or cannot be looked at; NULL: nothing. */
static const char *strike_litter(void) {
        static char text[200];
        const struct {
                const char *what;
                int n;
        } all[] = {
                {"System V queues", strike_lines("/proc/sysvipc/msg")},
                {"System V segments", strike_lines("/proc/sysvipc/shm")},
                {"System V semaphores", strike_lines("/proc/sysvipc/sem")},
                {"objects in /dev/shm", strike_entries(open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC))},
                {"POSIX queues", strike_mqueues()},
        };
        for (size_t i = 0; i < ELEMENTS(all); i++)
                if (all[i].n != 0) {
                        (void) snprintf(text, sizeof text, "%d %s (-1: cannot be looked at)", all[i].n, all[i].what);
                        return text;
                }
        return NULL;
}

/* Who is told to stop goes on with all of its threads but one until that one has had a CPU. */
static void strike_with(pid_t pid, int signal) {
        siginfo_t info;
        if (kill(pid, signal) == 0 && signal == SIGSTOP)
                (void) waitid(P_PID, (id_t) pid, &info, WSTOPPED | WEXITED | WNOWAIT);
}

/* The blow falls while the pair is at work; then the witness is waited for. 1: it may have fallen when the window was
 * over. Who is stopped then has said so before, and its peer cannot know any more whose fault it is that all ends. */
static int strike_blow(struct driver *d, const struct driver_spec *s, enum end victim, int signal) {
        const struct driver_end *witness = &d->ends[victim == END_FIRST ? END_SECOND : END_FIRST];
        int r = driver_open(d, s);
        uint64_t began_ns = util_now_ns(); /* before the window does */
        if (r == 0)
                r = driver_start(d);
        if (r < 0)
                return r;
        (void) poll(NULL, 0, 60);
        strike_with(d->ends[victim].pid, signal);
        bool late = s->duration_ns && util_now_ns() >= began_ns + s->warmup_ns + s->duration_ns;
        if (signal == SIGSTOP)
                d->ends[victim].gone = true; /* says nothing any more: only the other is waited for */
        r = driver_collect(d, util_now_ns() + STRIKE_PATIENCE_NS);
        if (late || (witness->reported && !witness->failed))
                return 1;
        return witness->failed ? 0 : r ? r : -EPROTO;
}

/* A machine that stands still may let a short window pass before the blow: then the next one is longer, and so is the
 * patience, which is to outlast the window. A killed end is noticed at once, whatever the patience: it has the longest,
 * so that a thread that has no turn is not taken for a stalled one. */
static int strike_in_time(struct driver *d, const struct driver_spec *s, enum end victim, int signal) {
        struct driver_spec longer = *s;
        if (signal == SIGKILL)
                longer.stall_ns = 0;
        for (unsigned n = 0;; n++) {
                int r = strike_blow(d, &longer, victim, signal);
                if (r <= 0 || n == 5)
                        return r > 0 ? -ETIME : r;
                (void) kill(d->ends[victim].pid, SIGKILL);
                (void) driver_close(d);
                driver_deinit(d);
                longer.duration_ns *= 2;
                longer.stall_ns = s->stall_ns + longer.duration_ns;
        }
}

/* Who is stopped in a run by count is found out as a stall of the thread that waits for it, else as a peer. */
static bool strike_reason_is_right(const struct driver *d, enum end victim, int signal) {
        const struct driver_end *witness = &d->ends[victim == END_FIRST ? END_SECOND : END_FIRST];
        const char *detail = witness->error.detail;
        if (signal == SIGSTOP && witness->error.error != ETIMEDOUT)
                return false;
        if (signal == SIGSTOP && d->spec.messages)
                return strstr(detail, "stalled") != NULL;
        return witness->error.error != 0 && witness->error.fault == FAULT_PEER && strstr(detail, d->ends[victim].role);
}

static int strike_next(const struct driver_spec *s, char *ret_trouble, size_t size) {
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
static const char *strike_fault(struct driver *d, const struct driver_spec *s, enum end victim, int signal) {
        static char text[500];
        const struct driver_end *witness = &d->ends[victim == END_FIRST ? END_SECOND : END_FIRST];
        int r = strike_in_time(d, s, victim, signal);
        if (r < 0) {
                (void) snprintf(text, sizeof text, "the witness does not say that it failed (%d): %s", r, d->trouble);
                return text;
        }
        if (!strike_reason_is_right(d, victim, signal)) {
                (void) snprintf(text, sizeof text, "the witness says %d, \"%s\"", witness->error.error,
                                witness->error.detail);
                return text;
        }
        (void) kill(d->ends[victim].pid, SIGKILL);
        if (driver_close(d) < 0) /* the run's directory is among it */
                return d->trouble;
        if (!WIFEXITED(witness->status) || WEXITSTATUS(witness->status) != 1) {
                (void) snprintf(text, sizeof text, "the witness ended with status %#x", (unsigned) witness->status);
                return text;
        }
        const char *litter = strike_litter();
        if (litter)
                return litter;
        return strike_next(s, text, sizeof text) < 0 ? text : NULL;
}

/* NULL when all of it is as it should be; else a sentence that names the pair. d is for driver_deinit() and still says
 * what each end said. s is to be a run that does not end by itself before it is found out. */
static const char *strike(struct driver *d, const struct driver_spec *s, enum end victim, int signal) {
        static char text[800];
        const struct point *p = &s->point;
        const char *fault = strike_fault(d, s, victim, signal);
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
