/* SPDX-License-Identifier: MIT */

#include "agent/base/wait.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define ALIVE_NS (500 * NSEC_PER_MSEC)

uint64_t agent_now_ns(void) {
        return util_now_ns();
}

int64_t agent_unread(const struct agent *a) {
        int bytes = 0;
        return ioctl(a->control_fd, SIOCOUTQ, &bytes) < 0 ? -errno : bytes;
}

/* The peer has closed its channel. Packets that it sent before can still be read; it fails the run after them. */
static int peer_closed(struct agent *a) {
        char byte;
        ssize_t n = recv(a->peer_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && errno == ECONNRESET) /* it left packets unread: reported once, ahead of what it sent */
                n = recv(a->peer_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
        if (n > 0)
                return 0;
        return failure_set_peer(&a->failure, a->peer_role, ECONNRESET, "is gone: it closed its channel during %s",
                                phase_name(a->phase));
}

static int take_worker_events(struct agent *a) {
        uint64_t n;
        if (read(a->event_fd, &n, sizeof n) < 0 && errno != EAGAIN && errno != EINTR)
                return failure_set(&a->failure, errno, "eventfd: %s", strerrordesc_np(errno));
        const struct failure *f = workers_failure(a);
        if (f)
                return failure_adopt(&a->failure, f);
        return 0;
}

/* Translates poll's events to a set of WAIT_…; negative errno. */
static int sort_events(struct agent *a, const struct pollfd p[3], unsigned interest) {
        int found = 0, r;
        if (p[0].revents & POLLIN) {
                r = take_worker_events(a);
                if (r < 0)
                        return r;
        }
        if (interest & WAIT_WORKERS && workers_resting(a))
                found |= WAIT_WORKERS;
        if (p[1].revents & (POLLIN | POLLHUP | POLLERR)) {
                char byte;
                ssize_t n = recv(a->control_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
                if (n == 0 || (n < 0 && errno != EAGAIN))
                        return agent_orphaned(a);
                if (n > 0 && !(interest & WAIT_CONTROL))
                        return failure_set(&a->failure, EBADMSG, "the daemon sent a message where none was due");
                if (n > 0)
                        found |= WAIT_CONTROL;
        }
        if (p[2].revents & (POLLHUP | POLLERR)) {
                r = peer_closed(a);
                if (r < 0)
                        return r;
        }
        if (interest & WAIT_PEER && p[2].revents & POLLIN)
                found |= WAIT_PEER;
        return found;
}

static int sleep_until(struct pollfd p[3], uint64_t until_ns) {
        uint64_t now = util_now_ns(), left = until_ns > now ? until_ns - now : 0;
        struct timespec ts = {.tv_sec = (time_t) (left / NSEC_PER_SEC), .tv_nsec = (long) (left % NSEC_PER_SEC)};
        if (ppoll(p, 3, &ts, NULL) < 0)
                return errno == EINTR ? 0 : -errno;
        return 0;
}

int agent_wait(struct agent *a, uint64_t until_ns, unsigned interest) {
        if (interest & WAIT_WORKERS && workers_resting(a)) {
                int r = take_worker_events(a);
                return r < 0 ? r : (int) WAIT_WORKERS;
        }
        for (;;) {
                uint64_t alive_ns = a->phase != PHASE_SETUP ? a->sent_ns + ALIVE_NS : UINT64_MAX;
                struct pollfd p[3] = {
                        {.fd = a->event_fd, .events = POLLIN},
                        {.fd = a->control_fd, .events = POLLIN},
                        {.fd = a->peer_done ? -1 : a->peer_fd, .events = interest & WAIT_PEER ? POLLIN : 0},
                };
                int r = sleep_until(p, until_ns < alive_ns ? until_ns : alive_ns);
                if (r < 0)
                        return failure_set(&a->failure, -r, "poll: %s", strerrordesc_np(-r));
                r = sort_events(a, p, interest);
                if (r)
                        return r;
                uint64_t now = util_now_ns();
                if (now >= until_ns)
                        return 0;
                if (now >= alive_ns) {
                        struct message m = {.type = MESSAGE_ALIVE, .alive = {.phase = a->phase}};
                        r = agent_send(a, &m);
                        if (r < 0)
                                return r;
                }
        }
}
