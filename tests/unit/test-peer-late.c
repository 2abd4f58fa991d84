/* SPDX-License-Identifier: MIT */

/* A peer's packet that is not there at its deadline, on a machine that stood still until then, and on one that did not.
 * The clock and the leader's waiting (agent/base/wait.h) are this file's: the linker takes them instead of the agent's.
 */

#include "agent/base/agent.h"
#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "check.h"
#include "schema/util.h"

#include <sys/socket.h>

static struct agent agent;

static struct {
        uint64_t now_ns, late_ns; /* by how much the first wait comes back too late */
        unsigned waits, sends;    /* how many there were, and after which of them the peer sends; 0: never */
        int peer_fd;
} script;

uint64_t agent_now_ns(void) {
        return script.now_ns;
}

int agent_wait(struct agent *a, uint64_t until_ns, unsigned interest) {
        static const struct peer_packet packet = {.kind = PEER_DONE, .value = 42};
        (void) a, (void) interest;
        script.now_ns = until_ns > script.now_ns ? until_ns : script.now_ns;
        if (++script.waits == 1)
                script.now_ns += script.late_ns;
        if (script.waits != script.sends)
                return 0;
        return send(script.peer_fd, &packet, sizeof packet, MSG_NOSIGNAL) == sizeof packet ? (int) WAIT_PEER : -EIO;
}

/* With a deadline in a second. */
static int receive(uint64_t late_ms, unsigned sends, uint64_t *ret_value) {
        int fds[2];
        memset(&agent, 0, sizeof agent);
        memset(&script, 0, sizeof script);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        agent.peer_role = "receiver";
        agent.peer_fd = fds[0];
        script.peer_fd = fds[1];
        script.now_ns = NSEC_PER_SEC;
        script.late_ns = late_ms * NSEC_PER_MSEC;
        script.sends = sends;
        int r = peer_receive(&agent, PEER_DONE, 0, ret_value, script.now_ns + NSEC_PER_SEC);
        (void) util_close(fds[0]);
        (void) util_close(fds[1]);
        return r;
}

static void after_a_standstill_it_gets_more_time(void) {
        uint64_t value = 0;
        CHECK_INT(receive(20000, 2, &value), 0);
        CHECK_UINT(value, 42);
        CHECK_INT(receive(20000, 0, &value), -ETIMEDOUT); /* and only once */
        CHECK_UINT(script.waits, 2);
}

static void a_peer_that_is_silent_while_all_run_does_not(void) {
        uint64_t value = 0;
        CHECK_INT(receive(10, 2, &value), -ETIMEDOUT);
        CHECK_UINT(script.waits, 1);
}

int main(void) {
        RUN(after_a_standstill_it_gets_more_time);
        RUN(a_peer_that_is_silent_while_all_run_does_not);
        return check_end();
}
