/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_RINGS_H
#define IPCLAB_TESTS_RINGS_H

/* Whether there is io_uring here, for tests of agents whose engine it is: many a container forbids it. */

#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Asked of the kernel, never of the agent under test. What else may go wrong is left to the agents to fail at. NULL:
 * there are rings; else why there are none, static. */
static const char *ring_trouble(void) {
        static char text[100];
        struct io_uring_params p = {};
        long fd = syscall(SYS_io_uring_setup, 1, &p);
        *text = '\0';
        if (fd >= 0)
                (void) close((int) fd);
        else if (errno == ENOSYS || errno == EPERM || errno == ENOMEM)
                (void) snprintf(text, sizeof text, "io_uring_setup: %s", strerrordesc_np(errno));
        return *text ? text : NULL;
}

#endif
