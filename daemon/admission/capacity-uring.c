/* SPDX-License-Identifier: MIT */
/*
 * Checks whether io_uring may be used and has the operations that are needed. Containers block it by seccomp, kernels
 * by a setting, and only a trial set-up shows which.
 *
 * Source: io_uring_setup(2); io_uring_register(2), IORING_REGISTER_PROBE; Documentation/admin-guide/sysctl/kernel.rst,
 * io_uring_disabled.
 */

#include "daemon/admission/capacity.h"

#include "schema/util.h"

#include <inttypes.h>
#include <liburing.h>
#include <string.h>
#include <sys/resource.h>

#define PROBE_ENTRIES 2u

/* io_uring_disabled is 1: one group, which agents may be in, and privileged processes may use it; 2: no process may. */
static bool disabled_by_setting(struct hostfs *h, const struct agent_identity *agents, char *ret_reason) {
        int64_t v = 0, group = -1;
        char gid[24] = "GID";
        if (hostfs_i64(h, &v, "/proc/sys/kernel/io_uring_disabled") < 0 || v == 0) /* before 6.6 there is none */
                return false;
        if (v != 1) {
                (void) snprintf(ret_reason, CAPACITY_REASON_MAX,
                                "kernel.io_uring_disabled is %" PRId64
                                " (for nobody); to allow it: sysctl kernel.io_uring_disabled=0",
                                v);
                return true;
        }
        bool named = hostfs_i64(h, &group, "/proc/sys/kernel/io_uring_group") == 0 && group >= 0; /* -1: no group */
        if (named && agents && agent_identity_is_in(agents, (gid_t) group))
                return false;
        if (agents)
                (void) snprintf(gid, sizeof(gid), "%u", (unsigned) agents->gid);
        (void) snprintf(ret_reason, CAPACITY_REASON_MAX,
                        "kernel.io_uring_disabled is 1, and kernel.io_uring_group is %" PRId64
                        ", not the agents'; to allow it: sysctl kernel.io_uring_group=%s, or "
                        "kernel.io_uring_disabled=0",
                        group, gid);
        return true;
}

/* Sets up a ring to probe. NULL: *ring is valid; else the reason. */
static const char *try_ring(struct hostfs *h, const struct agent_identity *agents, struct io_uring *ring,
                            char *ret_reason) {
        if (disabled_by_setting(h, agents, ret_reason))
                return ret_reason;
        if (h->root_fd >= 0) {
                (void) snprintf(ret_reason, CAPACITY_REASON_MAX, "a captured tree cannot be probed for io_uring");
                return ret_reason;
        }
        int r = io_uring_queue_init(PROBE_ENTRIES, ring, 0);
        if (r == 0)
                return NULL;
        const char *why = r == -ENOSYS   ? "this kernel has no io_uring, or a seccomp filter hides it"
                          : r == -EPERM  ? "a seccomp filter or the container forbids it"
                          : r == -ENOMEM ? "RLIMIT_MEMLOCK is too small, or memory is short"
                                         : "the kernel refused";
        (void) snprintf(ret_reason, CAPACITY_REASON_MAX, "io_uring_setup: %s: %s", strerrordesc_np(-r), why);
        return ret_reason;
}

const char *capacity_io_uring(struct hostfs *h, const struct agent_identity *agents, char *ret_reason) {
        struct io_uring ring;
        const char *why = try_ring(h, agents, &ring, ret_reason);
        if (!why)
                io_uring_queue_exit(&ring);
        return why;
}

bool capacity_rings_are_locked(const char *root) {
        struct rlimit before, none;
        struct io_uring ring;
        if (root[0] || getrlimit(RLIMIT_MEMLOCK, &before) < 0)
                return false;
        none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
        if (setrlimit(RLIMIT_MEMLOCK, &none) < 0)
                return false;
        int r = io_uring_queue_init(PROBE_ENTRIES, &ring, 0);
        if (r == 0)
                io_uring_queue_exit(&ring);
        (void) setrlimit(RLIMIT_MEMLOCK, &before); /* up to the hard limit everybody may */
        return r == -ENOMEM;
}

const char *capacity_zerocopy_of(const struct io_uring_probe *probe, char *ret_reason) {
        static const struct {
                int operation;
                const char *name, *since;
        } needed[] = {{IORING_OP_SEND_ZC, "send_zc", "6.0"}, {IORING_OP_SENDMSG_ZC, "sendmsg_zc", "6.1"}};
        for (size_t i = 0; i < ELEMENTS(needed); i++)
                if (!probe || !io_uring_opcode_supported(probe, needed[i].operation)) {
                        (void) snprintf(ret_reason, CAPACITY_REASON_MAX,
                                        "this kernel's io_uring has no %s (since Linux %s), which sends without "
                                        "copying",
                                        needed[i].name, needed[i].since);
                        return ret_reason;
                }
        return NULL;
}

const char *capacity_io_uring_zerocopy(struct hostfs *h, const struct agent_identity *agents, char *ret_reason) {
        struct io_uring ring;
        const char *why = try_ring(h, agents, &ring, ret_reason);
        if (why)
                return why;
        struct io_uring_probe *probe = io_uring_get_probe_ring(&ring);
        why = capacity_zerocopy_of(probe, ret_reason);
        io_uring_free_probe(probe);
        io_uring_queue_exit(&ring);
        return why;
}
