/* SPDX-License-Identifier: MIT */

/*
 * An ipclab-agent that means harm: what it sends to the daemon is changed at random, packet by packet, in more of them
 * or in fewer from agent to agent. A packet comes with other bits, with the greatest or the least number in the place
 * of any eight bytes, too short, too long, twice, not at all, or is noise. One of four agents also fills the run's
 * directory. The rest of it is a real agent, so that the daemon gets into each of its states.
 *
 * So that a failure can be repeated, each agent takes the number in a file, and leaves the next one there. The daemon
 * starts a copy of the program and passes no environment on, so the test writes the file's path into the program.
 *
 * The link makes it: message_send() is what every message of an agent goes through (schema/protocol/protocol.h).
 */

#include "schema/protocol/protocol.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROWTH_MAX 64u
#define FILES_MAX 100000

int __wrap_message_send(int fd, const struct message *m, uint64_t deadline_ns);
int __real_message_send(int fd, const struct message *m, uint64_t deadline_ns);

static unsigned seed, one_in;

static unsigned chance(unsigned n) {
        return (unsigned) rand_r(&seed) % n;
}

/* The test replaces it; volatile, as the compiler may not know it. */
static const volatile char seed_file[256] = "THE PATH OF THE FILE WITH THE SEED";

static int take_number(unsigned *ret) {
        char path[sizeof(seed_file)], line[16] = "", next[16];
        for (size_t i = 0; i < sizeof(path); i++)
                path[i] = seed_file[i];
        _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_EX) < 0 || pread(fd, line, sizeof(line) - 1, 0) < 0)
                return -errno;
        *ret = (unsigned) strtoul(line, NULL, 10);
        int length = snprintf(next, sizeof(next), "%u\n", *ret + 1);
        return pwrite(fd, next, (size_t) length, 0) == length ? 0 : -EIO;
}

/* Files in the run's directory until the daemon ends it, some of them as long as they may be and some out of sight. */
static void crowd(void) {
        static const char block[65536];
        char name[32];
        bool deep = chance(2);
        (void) signal(SIGXFSZ, SIG_IGN);
        for (int i = 0; i < FILES_MAX; i++) {
                (void) snprintf(name, sizeof(name), deep ? "d/%d" : "%d", i);
                if (deep && i == 0 && mkdirat(AGENT_RUN_DIR_FD, "d", 0700) < 0)
                        return;
                int fd = openat(AGENT_RUN_DIR_FD, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
                while (fd >= 0 && write(fd, block, sizeof(block)) > 0)
                        continue;
                util_close(fd);
        }
}

static void begin(void) {
        static const unsigned rates[] = {2, 10, 60};
        unsigned shown = 0;
        int r = take_number(&shown);
        if (r < 0) {
                (void) fprintf(stderr, "hostile agent: no seed: %s\n", strerrordesc_np(-r));
                abort();
        }
        seed = shown * 2654435761u; /* neighbours begin far apart */
        one_in = rates[chance(ELEMENTS(rates))];
        if (chance(4) == 0)
                crowd();
        (void) fprintf(stderr, "hostile agent: seed %u, one packet in %u\n", shown, one_in);
}

static void spoil_bytes(uint8_t *data, size_t length) {
        static const uint64_t extremes[] = {0,         1, INT32_MAX, UINT32_MAX, INT64_MAX, (uint64_t) INT64_MAX + 1,
                                            UINT64_MAX};
        unsigned n = 1 + chance(4);
        for (unsigned i = 0; i < n; i++) {
                size_t at = chance((unsigned) length);
                uint64_t extreme = extremes[chance(ELEMENTS(extremes))];
                if (chance(2))
                        data[at] ^= (uint8_t) (1u << chance(8));
                else
                        memcpy(data + at, &extreme, length - at < sizeof(extreme) ? length - at : sizeof(extreme));
        }
}

/* *length may grow by GROWTH_MAX; 0: nothing is sent. */
static void spoil(uint8_t *data, size_t *length) {
        switch (chance(8)) {
        case 0:
                *length = 0;
                return;
        case 1:
                *length = 1 + chance((unsigned) *length);
                return;
        case 2:
                *length += 1 + chance(GROWTH_MAX);
                return;
        case 3:
                for (size_t i = 0; i < *length; i++)
                        data[i] = (uint8_t) chance(256);
                return;
        default: /* mostly, as it gets farthest */
                spoil_bytes(data, *length);
        }
}

int __wrap_message_send(int fd, const struct message *m, uint64_t deadline_ns) {
        _cleanup_free_ uint8_t *encoded = NULL;
        size_t length = 0;
        if (one_in == 0)
                begin();
        if (chance(one_in) != 0 || message_encode(m, &encoded, &length) < 0)
                return __real_message_send(fd, m, deadline_ns);
        _cleanup_free_ uint8_t *data = calloc(1, length + GROWTH_MAX);
        if (!data)
                return -ENOMEM;
        memcpy(data, encoded, length);
        unsigned times = 1 + (chance(16) == 0);
        if (times == 1)
                spoil(data, &length);
        for (unsigned i = 0; i < times && length > 0; i++)
                if (send(fd, data, length, MSG_NOSIGNAL) < 0)
                        return -errno;
        return 0;
}
