/* SPDX-License-Identifier: MIT */

/*
 * The table of the host's limits. Called by the daemon's admission and by the agents' transports.
 *
 * Source: Documentation/admin-guide/sysctl/{fs,kernel,net}.rst, getrlimit(2), systemd.exec(5),
 * systemd.resource-control(5).
 */

#include "schema/limits.h"

#include <inttypes.h>
#include <stdio.h>

const struct host_limit_term host_limits[HOST_LIMIT_COUNT] = {
        [HOST_PIPE_MAX_SIZE] = {"fs.pipe-max-size", "sysctl fs.pipe-max-size=BYTES"},
        [HOST_PIPE_USER_PAGES] = {"fs.pipe-user-pages-soft", "sysctl fs.pipe-user-pages-soft=PAGES"},
        [HOST_WMEM_MAX] = {"net.core.wmem_max", "sysctl net.core.wmem_max=BYTES"},
        [HOST_RMEM_MAX] = {"net.core.rmem_max", "sysctl net.core.rmem_max=BYTES"},
        [HOST_BUSY_READ] = {"net.core.busy_read", "sysctl net.core.busy_read=MICROSECONDS"},
        [HOST_TCP_WMEM] = {"net.ipv4.tcp_wmem", "sysctl net.ipv4.tcp_wmem='LEAST DEFAULT BYTES'"},
        [HOST_PORTS] = {"ports of net.ipv4.ip_local_port_range", "sysctl net.ipv4.ip_local_port_range='FIRST LAST'"},
        [HOST_NPROC] = {"RLIMIT_NPROC", "LimitNPROC= in the unit, or ulimit -u"},
        [HOST_PID_MAX] = {"kernel.pid_max", "sysctl kernel.pid_max=NUMBER"},
        [HOST_THREADS_MAX] = {"kernel.threads-max", "sysctl kernel.threads-max=NUMBER"},
        [HOST_CGROUP_PIDS] = {"pids.max of the cgroup", "TasksMax= in the unit"},
        [HOST_NOFILE] = {"RLIMIT_NOFILE", "LimitNOFILE= in the unit, or ulimit -n"},
        [HOST_MEMLOCK] = {"RLIMIT_MEMLOCK", "LimitMEMLOCK= in the unit, or ulimit -l"},
        [HOST_ADDRESS_SPACE] = {"RLIMIT_AS", "LimitAS= in the unit, or ulimit -v"},
        [HOST_SHMMAX] = {"kernel.shmmax", "sysctl kernel.shmmax=BYTES"},
        [HOST_SHMALL] = {"kernel.shmall", "sysctl kernel.shmall=PAGES"},
        [HOST_SHMMNI] = {"kernel.shmmni", "sysctl kernel.shmmni=NUMBER"},
        [HOST_HUGETLB_GROUP] = {"vm.hugetlb_shm_group", "sysctl vm.hugetlb_shm_group=GID"},
        [HOST_MSGMAX] = {"kernel.msgmax", "sysctl kernel.msgmax=BYTES kernel.msgmnb=BYTES"},
        [HOST_MSGMNB] = {"kernel.msgmnb", "sysctl kernel.msgmnb=BYTES"},
        [HOST_MSGMNI] = {"kernel.msgmni", "sysctl kernel.msgmni=NUMBER"},
        [HOST_MQ_MSG_DEFAULT] = {"fs.mqueue.msg_default", "sysctl fs.mqueue.msg_default=NUMBER"},
        [HOST_MQ_MSG_MAX] = {"fs.mqueue.msg_max", "sysctl fs.mqueue.msg_max=NUMBER"},
        [HOST_MQ_MSGSIZE_MAX] = {"fs.mqueue.msgsize_max", "sysctl fs.mqueue.msgsize_max=BYTES (16777216 at most)"},
        [HOST_MQ_QUEUES_MAX] = {"fs.mqueue.queues_max", "sysctl fs.mqueue.queues_max=NUMBER"},
        [HOST_MSGQUEUE] = {"RLIMIT_MSGQUEUE", "LimitMSGQUEUE=BYTES in the unit, or ulimit -q"},
        [HOST_PTRACE_SCOPE] = {"kernel.yama.ptrace_scope",
                               "sysctl kernel.yama.ptrace_scope=1 (3 stays until the host is booted again)"},
};

const char *limit_sentence(char *ret, enum host_limit limit, uint64_t have, uint64_t need, const char *why) {
        const struct host_limit_term *term = &host_limits[limit];
        (void) snprintf(ret, LIMIT_SENTENCE_MAX, "%s: %" PRIu64 " needed, %s is %" PRIu64 " (to raise it: %s)", why,
                        need, term->name, have, term->raise);
        return ret;
}
