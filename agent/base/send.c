/* SPDX-License-Identifier: MIT */

/*
 * Sending to the daemon; see wait.h. The samples of many threads are more than the control socket holds, and the daemon
 * stores what it has read before it reads on. One that is slow is waited for as long as it reads at all: it has
 * AGENT_SEND_NS for a part of what waits, not for all of it. Time in which the leader itself had no CPU is not held
 * against it.
 */

#include "agent/base/wait.h"
#include "schema/standstill.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LOOK_NS (250 * NSEC_PER_MSEC)

int agent_orphaned(struct agent *a) {
        a->daemon_gone = true;
        return failure_set(&a->failure, ECONNRESET, "the daemon is gone");
}

static int send_when_read(struct agent *a, const struct message *m) {
        uint64_t silent_ns = 0;
        int64_t unread = agent_unread(a);
        while (silent_ns < AGENT_SEND_NS) {
                uint64_t from_ns = agent_now_ns(), due_ns = from_ns + LOOK_NS;
                int r = message_send(a->control_fd, m, due_ns);
                if (r != -ETIMEDOUT)
                        return r;
                int64_t left = agent_unread(a);
                silent_ns = left < unread ? 0 : silent_ns + standstill_counted_ns(from_ns, due_ns, agent_now_ns());
                unread = left;
        }
        return failure_set(
                &a->failure, ETIMEDOUT,
                "the daemon read nothing from the control socket for %.0f s, which is the limit: \"%s\" cannot "
                "be sent behind %" PRId64 " bytes that wait there",
                (double) AGENT_SEND_NS / 1e9, message_type_name(m->type), unread);
}

int agent_send(struct agent *a, const struct message *m) {
        int r = message_send(a->control_fd, m, 0);
        if (r == -EAGAIN)
                r = send_when_read(a, m);
        if (r == -ECONNRESET)
                return agent_orphaned(a);
        if (r < 0 && r != -ETIMEDOUT)
                return failure_set(&a->failure, -r, "a packet cannot be sent to the daemon: %s", strerrordesc_np(-r));
        if (r == 0)
                a->sent_ns = util_now_ns();
        return r;
}
