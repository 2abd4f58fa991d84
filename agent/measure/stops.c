/* SPDX-License-Identifier: MIT */

/* See stops.h. Called by script/phases.c. */

#include "agent/measure/stops.h"

#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define CLOCKS_NS (5 * NSEC_PER_MSEC) /* that CPU time may be ahead of the wall clock's */

/* Nanoseconds that the thread has waited for a CPU since it began; -errno. */
static int64_t read_waited(int fd) {
        char text[128];
        uint64_t run_ns, waited_ns;
        ssize_t n = pread(fd, text, sizeof text - 1, 0);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        if (sscanf(text, "%" SCNu64 " %" SCNu64, &run_ns, &waited_ns) != 2) /* NOLINT(cert-err34-c): the kernel's own */
                return -ENODATA;
        return waited_ns <= INT64_MAX ? (int64_t) waited_ns : -ERANGE;
}

/* The CPU time of all threads of the process. */
static uint64_t process_cpu_ns(void) {
        struct timespec ts;
        return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts) < 0
                       ? 0
                       : (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

static void give_up(struct stops *s, int error) {
        stops_end(s);
        s->fd = error;
}

void stops_begin(struct stops *s, uint32_t n_threads) {
        *s = (struct stops){.fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC), .n_threads = n_threads};
        if (s->fd < 0)
                s->fd = -errno;
}

void stops_end(struct stops *s) {
        if (s->fd >= 0)
                (void) close(s->fd);
        s->fd = -EBADF;
}

void stops_sleep(struct stops *s, uint64_t now_ns) {
        if (s->fd < 0)
                return;
        int64_t waited = read_waited(s->fd);
        if (waited < 0) {
                give_up(s, (int) waited);
                return;
        }
        s->begin_ns = now_ns;
        s->waited_ns = (uint64_t) waited;
        s->cpu_ns = process_cpu_ns();
}

void stops_wake(struct stops *s, uint64_t due_ns, uint64_t now_ns) {
        if (s->fd < 0 || now_ns < due_ns + STOP_LEAST_NS || due_ns < s->begin_ns)
                return;
        int64_t waited = read_waited(s->fd);
        if (waited < 0) {
                give_up(s, (int) waited);
                return;
        }
        uint64_t late_ns = now_ns - due_ns, for_cpu_ns = (uint64_t) waited - s->waited_ns;
        uint64_t most_ns = s->n_threads * (due_ns - s->begin_ns + CLOCKS_NS);
        bool went_on = process_cpu_ns() - s->cpu_ns > most_ns;
        if (late_ns < for_cpu_ns + STOP_LEAST_NS || went_on)
                return;
        s->last_end_ns = now_ns;
        s->last_ns = late_ns - for_cpu_ns;
        s->total_ns += s->last_ns;
}

uint64_t stops_until(const struct stops *s, uint64_t at_ns) {
        uint64_t later_ns = s->last_end_ns > at_ns ? s->last_end_ns - at_ns : 0;
        return s->total_ns - (later_ns < s->last_ns ? later_ns : s->last_ns);
}
