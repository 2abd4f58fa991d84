/* SPDX-License-Identifier: MIT */

/*
 * Both sides of passing counters from the daemon to an agent. Owns the descriptors between their opening and the packet
 * in the daemon, and between the packet and the caller in the agent.
 *
 * Source: man 2 perf_event_open, tgkill; man 7 unix (SCM_RIGHTS).
 */

#include "schema/measure/perf-pass.h"

#include "schema/protocol/protocol.h"
#include "schema/util.h"

#include <signal.h>

/* Fewer descriptors were received than sent: this process had no room for the rest. */
static int take_rights(const struct message_counting *c, const struct message_rights *rights,
                       struct perf_handles *ret) {
        size_t taken = 0;
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++) {
                        int *handle = &ret->of[event][mode];
                        if (c->errors[event][mode])
                                *handle = -c->errors[event][mode];
                        else
                                *handle = taken < rights->n ? rights->fds[taken++] : -EMFILE;
                }
        return taken == rights->n ? 0 : -EBADMSG;
}

int perf_pass_request(int fd, pid_t tid, uint64_t deadline_ns, struct perf_handles *ret) {
        struct message m = {.type = MESSAGE_COUNT, .count = {.tid = tid}};
        struct message_rights rights;
        struct perf_handles handles;

        int r = message_send(fd, &m, deadline_ns);
        if (r == 0)
                r = message_receive_with(fd, &m, &rights, deadline_ns, NULL);
        if (r < 0)
                return r;
        r = m.type == MESSAGE_COUNTING ? take_rights(&m.counting, &rights, &handles) : -EBADMSG;
        message_deinit(&m);
        if (r < 0)
                message_rights_close(&rights);
        else
                *ret = handles;
        return r;
}

static bool is_thread_of(pid_t pid, pid_t tid) {
        return tgkill(pid, tid, 0) == 0;
}

/* The thread may have ended, and another process have its id, between the check and the opening: what was opened is the
 * agent's only if it is so afterwards, too. */
static void open_checked(const struct perf_source *source, pid_t pid, pid_t tid, struct perf_handles *ret) {
        if (!is_thread_of(pid, tid)) {
                perf_handles_fill(ret, -ESRCH);
                return;
        }
        source->open(source->userdata, tid, ret);
        if (!is_thread_of(pid, tid))
                perf_handles_close(ret, source, -ESRCH);
}

int perf_pass_answer(int fd, const struct perf_source *source, pid_t pid, pid_t tid) {
        struct message m = {.type = MESSAGE_COUNTING};
        struct message_rights rights = {.n = 0};
        struct perf_handles handles;

        open_checked(source, pid, tid, &handles);
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++) {
                        int handle = handles.of[event][mode];
                        m.counting.errors[event][mode] = handle < 0 ? -handle : 0;
                        if (handle >= 0)
                                rights.fds[rights.n++] = handle;
                }
        int r = message_send_with(fd, &m, &rights, 0);
        perf_handles_close(&handles, source, -EBADF);
        return r;
}
