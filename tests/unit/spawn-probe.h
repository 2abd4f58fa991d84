/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TEST_SPAWN_PROBE_H
#define IPCLAB_TEST_SPAWN_PROBE_H

/* Numbers of bytes to share, for which tests/unit/spawn-probe.c reports its forked peer falsely. */
enum {
        PROBE_SENDS_TWO = 8193, /* descriptors */
        PROBE_SENDS_ITSELF,     /* its own pidfd with the pid of its peer */
        PROBE_SENDS_HALF,       /* of a report, with a descriptor */
        PROBE_FORKS_NONE,       /* and hangs up */
};

#endif
