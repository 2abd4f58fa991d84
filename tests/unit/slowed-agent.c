/* SPDX-License-Identifier: MIT */

/*
 * An ipclab-agent that is 5 % slower in the second instance of a point: after each read(2) and write(2) of a message
 * its thread spins for a twentieth of the CPU time that it has used since it last did so, and both of its ends do. Its
 * part of a message takes 5 % longer then, and its waits do not. Both instances read the clock once a call, so that
 * they differ by nothing else.
 *
 * The link makes it: the loops of descriptors call syscall(2), and message_receive() takes the set-up, which has the
 * point.
 */

#include "schema/protocol/protocol.h"
#include "schema/util.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLOWED_INSTANCE 2
#define SLOWED_BY 20 /* one part in so many; tests/bench/trials.py has the share */

int __wrap_message_receive(int fd, struct message *ret, uint64_t deadline_ns, char *ret_detail);
int __real_message_receive(int fd, struct message *ret, uint64_t deadline_ns, char *ret_detail);
long __wrap_syscall(long number, ...);
long __real_syscall(long number, ...);

static uint32_t slowed; /* written before the workers start */

int __wrap_message_receive(int fd, struct message *ret, uint64_t deadline_ns, char *ret_detail) {
        int r = __real_message_receive(fd, ret, deadline_ns, ret_detail);
        if (r == 0 && ret->type == MESSAGE_SETUP)
                slowed = ret->setup.point.instance == SLOWED_INSTANCE;
        if (slowed && ret->type == MESSAGE_SETUP)
                fprintf(stderr, "instance %u is slowed\n", ret->setup.point.instance); /* in the daemon's log */
        return r;
}

long __wrap_syscall(long number, ...) {
        static _Thread_local uint64_t left_ns;   /* the CPU time at the end of the last turn */
        static _Thread_local int64_t pending_ns; /* to spin; below 0 what the last turn spun too long */
        long a[6];
        va_list arguments;
        va_start(arguments, number);
        for (unsigned i = 0; i < 6; i++)
                a[i] = va_arg(arguments, long);
        va_end(arguments);
        long r = __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (number != SYS_read && number != SYS_write)
                return r;
        uint64_t now_ns = util_thread_cpu_ns();
        if (slowed && left_ns)
                pending_ns += (int64_t) (now_ns - left_ns) / SLOWED_BY;
        while (pending_ns > 0) {
                uint64_t turn_ns = util_thread_cpu_ns();
                pending_ns -= (int64_t) (turn_ns - now_ns);
                now_ns = turn_ns;
        }
        left_ns = now_ns;
        return r;
}
