/* SPDX-License-Identifier: MIT */

/* The account of sends without copying, and the socket's error queue; see zerocopy.h. The sending worker owns them. */

#include "agent/transport/tcp/zerocopy.h"

#include "agent/base/agent.h"
#include "agent/os/procfs.h"
#include "schema/protocol/effective.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define OPTMEM_MAX "/proc/sys/net/core/optmem_max"
#define POLL_MS 100 /* interval at which a waiting worker checks its limit */
#define RETRY_MS ((int) (ZEROCOPY_RETRY_NS / NSEC_PER_MSEC))
#define GIVE_WAY_MS ((int) (ZEROCOPY_GIVE_WAY_NS / NSEC_PER_MSEC))

static int backpressure; /* atomic: waiting threads of this process */

int zerocopy_new(struct worker *w, size_t size, unsigned n_fields, struct zerocopy **ret) {
        struct zerocopy *z = calloc(1, sizeof *z);
        if (!z)
                return -ENOMEM;
        memset(z->owner, ZEROCOPY_NOBODY, sizeof z->owner);
        for (uint32_t n = point_pool_messages(size); z->n < n; z->n++) {
                int r = fields_new(w, size, n_fields, &z->messages[z->n]);
                if (r < 0) {
                        zerocopy_free(z);
                        return r;
                }
        }
        *ret = z;
        return 0;
}

struct zerocopy *zerocopy_free(struct zerocopy *z) {
        for (uint32_t i = 0; z && i < z->n; i++)
                (void) fields_free(z->messages[i]);
        free(z);
        return NULL;
}

void zerocopy_sent(struct zerocopy *z) {
        z->owner[z->next_id++ % ZEROCOPY_IDS] = (uint8_t) z->current;
        z->pending[z->current]++;
}

int zerocopy_notified(struct zerocopy *z, uint32_t low, uint32_t high) {
        uint32_t n = high - low + 1;
        if (n == 0 || n > ZEROCOPY_IDS || z->next_id - low > ZEROCOPY_IDS || z->next_id - low < n)
                return -EPROTO;
        for (uint32_t id = low; n > 0; id++, n--) {
                uint8_t *owner = &z->owner[id % ZEROCOPY_IDS];
                if (*owner == ZEROCOPY_NOBODY)
                        return -EPROTO;
                z->pending[*owner]--;
                *owner = ZEROCOPY_NOBODY;
        }
        return 0;
}

static int take_notification(struct zerocopy *z, const struct sock_extended_err *e, struct zerocopy_news *news) {
        if (e->ee_origin != SO_EE_ORIGIN_ZEROCOPY)
                return 0; /* ignored: the socket's own calls report the relevant errors */
        if (e->ee_errno)
                return -(int) e->ee_errno;
        int r = zerocopy_notified(z, e->ee_info, e->ee_data);
        if (r < 0)
                return r;
        uint32_t n = e->ee_data - e->ee_info + 1;
        news->completions += n;
        if (e->ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
                news->copied += n;
        return 0;
}

static bool is_error_message(const struct cmsghdr *c) {
        return (c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) ||
               (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR);
}

int zerocopy_read(struct zerocopy *z, int fd, zerocopy_enough enough, struct zerocopy_news *ret) {
        *ret = (struct zerocopy_news){};
        while (!enough || !enough(z)) {
                union {
                        struct cmsghdr header;
                        char space[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
                } control;
                struct msghdr m = {.msg_control = &control, .msg_controllen = sizeof control};
                if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
                        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
                for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
                        struct sock_extended_err e;
                        if (!is_error_message(c))
                                continue;
                        memcpy(&e, CMSG_DATA(c), sizeof e);
                        int r = take_notification(z, &e, ret);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

static int collect(struct worker *w, struct zerocopy *z, zerocopy_enough enough, struct zerocopy_news *ret) {
        int r = zerocopy_read(z, w->send_fd, enough, ret);
        worker_add(&w->zerocopy_completions, ret->completions);
        worker_add(&w->zerocopy_copied, ret->copied);
        if (r == -EPROTO)
                return failure_set(&w->failure, EPROTO,
                                   "the kernel notified a zero-copy send of thread %" PRIu32 " that was not due",
                                   w->index);
        if (r < 0)
                return failure_set(&w->failure, -r,
                                   "the zero-copy notifications of thread %" PRIu32 " cannot be read: %s", w->index,
                                   strerrordesc_np(-r));
        return 0;
}

/* Sleeps until a notification may be available. A closed connection delivers no more of them. */
static int await_notification(struct worker *w, int timeout_ms) {
        struct pollfd p = {.fd = w->send_fd}; /* POLLERR is always polled */
        int error = 0;
        socklen_t length = sizeof error;
        if (poll(&p, 1, timeout_ms) <= 0 || !(p.revents & POLLHUP))
                return 0;
        if (getsockopt(w->send_fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
                error = errno;
        error = error ? error : EPIPE;
        return failure_set_peer(&w->failure, w->agent->peer_role, error,
                                "closed the channel of thread %" PRIu32 " in message %" PRIu64 ": %s", w->index,
                                w->messages, strerrordesc_np(error));
}

uint32_t zerocopy_under_way(const struct zerocopy *z) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < z->n; i++)
                n += z->pending[i];
        return n;
}

void zerocopy_add_backpressure(int by) {
        __atomic_fetch_add(&backpressure, by, __ATOMIC_RELAXED);
}

bool zerocopy_has_backpressure(void) {
        return __atomic_load_n(&backpressure, __ATOMIC_RELAXED) > 0;
}

/* Pauses under backpressure, so that a waiting thread gets the freed buffers. */
static void give_way(void) {
        if (zerocopy_has_backpressure())
                (void) poll(NULL, 0, GIVE_WAY_MS);
}

int zerocopy_collect(struct worker *w, struct zerocopy *z, zerocopy_enough enough) {
        struct zerocopy_news news;
        bool ready = zerocopy_ready(z);
        int r = collect(w, z, enough, &news);
        if (r == 0 && !ready && zerocopy_ready(z))
                give_way();
        return r;
}

int zerocopy_wait(struct worker *w, struct zerocopy *z, bool begun) {
        zerocopy_enough enough = begun ? zerocopy_has_room : zerocopy_ready;
        for (;;) {
                struct zerocopy_news news;
                int r = collect(w, z, enough, &news);
                if (r == 0 && enough(z))
                        give_way();
                if (r < 0 || enough(z))
                        return r;
                if (!begun && worker_over(w))
                        return WORKER_STOP;
                r = await_notification(w, POLL_MS);
                if (r < 0)
                        return r;
        }
}

static const char *memlock_text(char text[32]) {
        struct rlimit memlock = {};
        if (getrlimit(RLIMIT_MEMLOCK, &memlock) < 0)
                (void) snprintf(text, 32, "unknown");
        else if (memlock.rlim_cur == RLIM_INFINITY)
                (void) snprintf(text, 32, "unlimited");
        else
                (void) snprintf(text, 32, "%ju bytes", (uintmax_t) memlock.rlim_cur);
        return text;
}

int zerocopy_fail_stalled(struct worker *w, const struct zerocopy *z, bool optmem) {
        uint32_t n = zerocopy_under_way(z);
        char memlock[32], whose[96], socket[96] = "";
        long optmem_max = optmem ? procfs_setting(OPTMEM_MAX) : -1;
        (void) memlock_text(memlock);
        if (n > 0)
                (void) snprintf(whose, sizeof whose, "none of its %" PRIu32 " under way is notified", n);
        else
                (void) snprintf(whose, sizeof whose, "it has none under way that could give some back");
        if (optmem_max >= 0)
                (void) snprintf(socket, sizeof socket, "net.core.optmem_max is %ld bytes for each socket, ",
                                optmem_max);
        return failure_set(&w->failure, ENOBUFS,
                           "zero-copy sends of thread %" PRIu32 " got no buffers (ENOBUFS) for %u s, and %s: %s"
                           "RLIMIT_MEMLOCK is %s for all of the user's sends",
                           w->index, (unsigned) (ZEROCOPY_NO_BUFFERS_NS / NSEC_PER_SEC), whose, socket, memlock);
}

void zerocopy_limits(bool optmem, struct effective *e) {
        struct rlimit memlock = {.rlim_cur = RLIM_INFINITY};
        int r = getrlimit(RLIMIT_MEMLOCK, &memlock);
        if (memlock.rlim_cur != RLIM_INFINITY) {
                effective_add_number(e, SETTING_MEMLOCK_BYTES, memlock.rlim_cur);
        } else {
                effective_add_unknown(e, SETTING_MEMLOCK_BYTES,
                                      r < 0 ? "getrlimit failed" : "RLIMIT_MEMLOCK is unlimited");
        }
        long optmem_max = optmem ? procfs_setting(OPTMEM_MAX) : -1;
        if (optmem_max >= 0)
                effective_add_number(e, SETTING_OPTMEM_MAX_BYTES, (uint64_t) optmem_max);
        else if (optmem)
                effective_add_unknown(e, SETTING_OPTMEM_MAX_BYTES, OPTMEM_MAX " cannot be read");
}

bool zerocopy_is_stalled(struct zerocopy *z, uint64_t *since_ns, bool news) {
        uint64_t now_ns = util_now_ns(), away_ns = now_ns - z->checked_ns;
        if (news || *since_ns == 0)
                *since_ns = now_ns;
        else if (away_ns > ZEROCOPY_AWAY_NS)
                *since_ns += away_ns;
        z->checked_ns = now_ns;
        return now_ns - *since_ns > ZEROCOPY_NO_BUFFERS_NS;
}

int zerocopy_reap(struct worker *w, struct zerocopy *z, uint64_t *since_ns) {
        struct zerocopy_news news;
        worker_count(&w->enobufs);
        int r = collect(w, z, NULL, &news);
        if (r < 0)
                return r;
        if (zerocopy_is_stalled(z, since_ns, news.completions > 0))
                return zerocopy_fail_stalled(w, z, true);
        if (news.completions) {
                give_way();
                return 0;
        }
        int waits = zerocopy_under_way(z) == 0;
        zerocopy_add_backpressure(waits);
        r = await_notification(w, RETRY_MS);
        zerocopy_add_backpressure(-waits);
        return r;
}
