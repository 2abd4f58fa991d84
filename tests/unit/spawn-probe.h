/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TEST_SPAWN_PROBE_H
#define IPCLAB_TEST_SPAWN_PROBE_H

/* Numbers of bytes to share, for which tests/unit/spawn-probe.c reports its forked peer falsely. */
enum {
        PROBE_SENDS_ONE = 8193, /* descriptor beside its report */
        PROBE_SENDS_TWO,        /* descriptors */
        PROBE_SENDS_ITSELF,     /* its own pid as that of its peer */
        PROBE_SENDS_PARENT,     /* the pid of the process that both are children of */
        PROBE_SENDS_HALF,       /* of a report */
        PROBE_SENDS_NOTHING,    /* but a descriptor */
        PROBE_FORKS_NONE,       /* and hangs up */
};

#endif
