/* SPDX-License-Identifier: MIT */

/* The account of zero-copy sends: notifications in any order and any ranges, numbers that wrap round, and notifications
 * that cannot be; then a real socket, with fewer buffers than it wants. */

#include "agent/base/agent.h"
#include "agent/transport/tcp/zerocopy.h"
#include "check.h"
#include "schema/util.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE 4096u

static struct agent agent;
static struct worker worker = {.agent = &agent};

static struct zerocopy *new_pool(void) {
        struct zerocopy *z = NULL;
        if (zerocopy_new(&worker, SIZE, 8, &z) < 0)
                abort();
        return z;
}

static void test_pool_sizes(void) {
        static const struct {
                uint64_t size;
                uint32_t n;
        } cases[] = {{1, 16}, {16384, 16}, {262144, 16}, {1u << 20, 4}, {2u << 20, 2}, {4u << 20, 2}, {100u << 20, 2}};
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                CHECK_UINT(point_pool_messages(cases[i].size), cases[i].n);
        struct zerocopy *z = NULL;
        CHECK_INT(zerocopy_new(&worker, SIZE, 0, &z), -EINVAL);
        CHECK(!z);
        zerocopy_free(NULL);
}

/* A message is the kernel's from its first send to the notification of its last. */
static void test_message_in_parts(void) {
        struct zerocopy *z = new_pool();
        CHECK(zerocopy_ready(z));
        for (unsigned i = 0; i < 3; i++)
                zerocopy_sent(z); /* ids 0, 1, 2 */
        CHECK(!zerocopy_ready(z));
        zerocopy_advance(z);
        CHECK(zerocopy_ready(z));
        zerocopy_sent(z); /* id 3, of the next message */
        CHECK_INT(zerocopy_notified(z, 2, 3), 0);
        CHECK(zerocopy_ready(z));
        CHECK_UINT(z->pending[0], 2);
        CHECK_INT(zerocopy_notified(z, 0, 0), 0);
        CHECK_UINT(z->pending[0], 1);
        CHECK_INT(zerocopy_notified(z, 1, 1), 0);
        CHECK_UINT(z->pending[0], 0);
        zerocopy_free(z);
}

/* The ring of messages comes round to one that is still out: it is not given away. */
static void test_pool_runs_out(void) {
        struct zerocopy *z = new_pool();
        for (uint32_t i = 0; i < z->n; i++) {
                CHECK(zerocopy_ready(z));
                zerocopy_sent(z);
                zerocopy_advance(z);
        }
        CHECK_UINT(z->current, 0);
        CHECK(!zerocopy_ready(z));
        CHECK_INT(zerocopy_notified(z, 1, z->n - 1), 0); /* all but the first: a late one holds it up */
        CHECK(!zerocopy_ready(z));
        CHECK_INT(zerocopy_notified(z, 0, 0), 0);
        CHECK(zerocopy_ready(z));
        zerocopy_free(z);
}

static void test_numbers_wrap(void) {
        struct zerocopy *z = new_pool();
        z->next_id = UINT32_MAX - 1;
        for (unsigned i = 0; i < 4; i++) {
                zerocopy_sent(z);
                zerocopy_advance(z);
        }
        CHECK_UINT(z->next_id, 2);
        CHECK_INT(zerocopy_notified(z, UINT32_MAX, 0), 0);
        CHECK_UINT(z->pending[0], 1);
        CHECK_UINT(z->pending[1], 0);
        CHECK_UINT(z->pending[2], 0);
        CHECK_INT(zerocopy_notified(z, UINT32_MAX - 1, UINT32_MAX - 1), 0);
        CHECK_INT(zerocopy_notified(z, 1, 1), 0);
        for (unsigned i = 0; i < 4; i++)
                CHECK_UINT(z->pending[i], 0);
        zerocopy_free(z);
}

static void test_what_cannot_be(void) {
        struct zerocopy *z = new_pool();
        CHECK_INT(zerocopy_notified(z, 0, 0), -EPROTO); /* nothing was sent */
        zerocopy_sent(z);
        zerocopy_sent(z);
        CHECK_INT(zerocopy_notified(z, 0, 2), -EPROTO); /* the third was not */
        CHECK_INT(zerocopy_notified(z, 1, 0), -EPROTO); /* backwards */
        CHECK_INT(zerocopy_notified(z, 5, 5), -EPROTO);
        CHECK_INT(zerocopy_notified(z, UINT32_MAX, 0), -EPROTO);
        CHECK_INT(zerocopy_notified(z, 1, 1), 0);
        CHECK_INT(zerocopy_notified(z, 1, 1), -EPROTO); /* twice */
        zerocopy_free(z);
}

/* As many sends as there are numbers for: the next one waits, whatever message it is of. */
static void test_no_room(void) {
        struct zerocopy *z = new_pool();
        for (unsigned i = 0; i < ZEROCOPY_IDS; i++) {
                CHECK(zerocopy_has_room(z));
                zerocopy_sent(z);
        }
        CHECK(!zerocopy_has_room(z));
        zerocopy_advance(z);
        CHECK(!zerocopy_ready(z));
        CHECK_INT(zerocopy_notified(z, 0, 0), 0);
        CHECK(zerocopy_ready(z));
        CHECK_INT(zerocopy_notified(z, 1, ZEROCOPY_IDS - 1), 0);
        zerocopy_free(z);
}

/* A worker that is nothing but its socket. */
static struct worker *new_worker(struct agent *a, int fd) {
        struct worker *w = aligned_alloc(WORKER_LINE, sizeof *w);
        if (!w)
                abort();
        memset(w, 0, sizeof *w);
        w->agent = a;
        w->size = SIZE;
        w->send_fd = fd;
        w->limit = WORKER_UNLIMITED;
        return w;
}

/* Stands in for the C library's: while there is a script it is an error queue of so many notifications, a send each. */
static struct {
        bool on;
        uint32_t next, end;
        unsigned reads, naps;
} script;

ssize_t recvmsg(int fd, struct msghdr *m, int flags) {
        if (!script.on)
                return syscall(SYS_recvmsg, fd, m, flags);
        script.reads++;
        if (script.next == script.end) {
                errno = EAGAIN;
                return -1;
        }
        struct sock_extended_err e = {
                .ee_origin = SO_EE_ORIGIN_ZEROCOPY, .ee_info = script.next, .ee_data = script.next};
        struct cmsghdr *c = m->msg_control;
        c->cmsg_level = SOL_IP;
        c->cmsg_type = IP_RECVERR;
        c->cmsg_len = CMSG_LEN(sizeof e);
        memcpy(CMSG_DATA(c), &e, sizeof e);
        m->msg_controllen = CMSG_SPACE(sizeof e);
        script.next++;
        return 0;
}

/* A wait for nothing is a nap. */
int poll(struct pollfd *fds, nfds_t n, int timeout_ms) {
        struct timespec ts = {.tv_sec = timeout_ms / 1000, .tv_nsec = (long) (timeout_ms % 1000 * NSEC_PER_MSEC)};
        script.naps += n == 0;
        return (int) syscall(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &ts, NULL, 0);
}

/* Nothing is read that is not waited for, and nothing behind what was: not even to see that there is no more. */
static void test_read_no_further_than_needed(void) {
        struct zerocopy *z = new_pool();
        struct zerocopy_news news;
        for (unsigned i = 0; i < 5; i++)
                zerocopy_sent(z); /* ids 0 to 4 in one message, that is not the sender's until the last is notified */
        zerocopy_advance(z);
        zerocopy_sent(z); /* id 5 */
        z->current = 0;
        script.on = true;
        script.end = 6;
        CHECK_INT(zerocopy_read(z, -1, zerocopy_has_room, &news), 0);
        CHECK_UINT(script.reads, 0);
        CHECK_INT(zerocopy_read(z, -1, zerocopy_ready, &news), 0);
        CHECK_UINT(script.reads, 5);
        CHECK_UINT(news.completions, 5);
        CHECK_UINT(z->pending[1], 1);
        CHECK_INT(zerocopy_read(z, -1, NULL, &news), 0); /* all: one, and then that there is none */
        CHECK_UINT(script.reads, 7);
        CHECK_UINT(z->pending[1], 0);
        zerocopy_sent(z);
        CHECK_INT(zerocopy_read(z, -1, zerocopy_ready, &news), 0); /* too few, and no wait for more */
        CHECK_UINT(script.reads, 8);
        CHECK_UINT(news.completions, 0);
        script.on = false;
        zerocopy_free(z);
}

/* The thread that gets the next message back lets those go first that have none under way, also one that did not wait
 * for it. */
static void test_giving_way(void) {
        struct agent a = {.peer_role = "client"};
        struct zerocopy *z = new_pool();
        struct worker *w = new_worker(&a, -1);
        script.on = true;
        script.next = script.end = 0;
        script.naps = 0;
        zerocopy_sent(z);
        zerocopy_add_backpressure(1);
        CHECK_INT(zerocopy_collect(w, z, NULL), 0); /* there is none yet */
        CHECK_UINT(script.naps, 0);
        script.end = 1;
        CHECK_INT(zerocopy_collect(w, z, NULL), 0);
        CHECK(zerocopy_ready(z));
        CHECK_UINT(script.naps, 1);
        CHECK_INT(zerocopy_collect(w, z, NULL), 0); /* it was ready before */
        CHECK_UINT(script.naps, 1);
        zerocopy_add_backpressure(-1);
        zerocopy_sent(z);
        script.end = 2;
        CHECK_INT(zerocopy_collect(w, z, zerocopy_ready), 0); /* there is no thread to give way to */
        CHECK_UINT(script.naps, 1);
        script.on = false;
        free(w);
        zerocopy_free(z);
}

static int connected_pair(int ret[2]) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof a;
        int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ret[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int r = listener < 0 || ret[0] < 0 || bind(listener, (struct sockaddr *) &a, sizeof a) < 0 ||
                listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *) &a, &length) < 0 ||
                connect(ret[0], (struct sockaddr *) &a, sizeof a) < 0;
        ret[1] = r ? -1 : accept(listener, NULL, NULL);
        (void) util_close(listener);
        return ret[1] < 0 || setsockopt(ret[0], SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) < 0 ? -errno : 0;
}

static ssize_t send_message(struct worker *w, struct zerocopy *z) {
        struct fields *f = z->messages[z->current];
        struct msghdr m = {.msg_iov = f->iov, .msg_iovlen = f->n};
        ssize_t n = sendmsg(w->send_fd, &m, MSG_ZEROCOPY | MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
                zerocopy_sent(z);
        return n;
}

static size_t read_all(int fd, size_t wanted) {
        static char data[SIZE];
        size_t got = 0;
        while (got < wanted) {
                ssize_t n = recv(fd, data, sizeof data, 0);
                if (n <= 0)
                        break;
                got += (size_t) n;
        }
        return got;
}

/* No process reads, so nothing is notified until one does; then all of it is, copied after all as on any loopback. */
static void test_real_notifications(void) {
        struct agent a = {.peer_role = "client"};
        int fds[2];
        CHECK_INT(connected_pair(fds), 0);
        struct zerocopy *z = new_pool();
        struct worker *w = new_worker(&a, fds[0]);
        size_t sent = 0;
        for (uint32_t i = 0; i < 3 * z->n; i++) {
                if (!zerocopy_ready(z))
                        CHECK_INT(zerocopy_wait(w, z, false), 0);
                ssize_t n = send_message(w, z);
                CHECK_INT(n, SIZE);
                sent += (size_t) n;
                zerocopy_advance(z);
                CHECK_UINT(read_all(fds[1], SIZE), SIZE);
        }
        for (unsigned i = 0; w->zerocopy_completions < 3 * z->n && i < 60000; i++) {
                (void) poll(NULL, 0, 1);
                CHECK_INT(zerocopy_collect(w, z, NULL), 0);
        }
        CHECK_UINT(w->zerocopy_completions, 3 * z->n);
        CHECK_UINT(w->zerocopy_copied, 3 * z->n);
        CHECK_UINT(sent, 3 * z->n * SIZE);
        CHECK_STRING(w->failure.detail, "");
        (void) close(fds[0]);
        (void) close(fds[1]);
        free(w);
        zerocopy_free(z);
}

/* With the peer gone there will never be a notification: the wait fails instead of waiting. */
static void test_wait_sees_the_peer_go(void) {
        struct agent a = {.peer_role = "client"};
        struct linger hard = {.l_onoff = 1};
        int fds[2];
        CHECK_INT(connected_pair(fds), 0);
        struct zerocopy *z = new_pool();
        struct worker *w = new_worker(&a, fds[0]);
        CHECK_INT(setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
        (void) close(fds[1]);
        z->pending[0] = 1; /* of a send that the kernel knows nothing of */
        CHECK_INT(zerocopy_wait(w, z, false), -ECONNRESET);
        CHECK(strncmp(w->failure.detail, "peer client closed", 18) == 0);
        z->pending[0] = 0;
        (void) close(fds[0]);
        free(w);
        zerocopy_free(z);
}

/* A limit that is reached ends the wait of a message that has not begun, and no other. */
static void test_wait_stops(void) {
        struct agent a = {.peer_role = "client"};
        int fds[2];
        CHECK_INT(connected_pair(fds), 0);
        struct zerocopy *z = new_pool();
        struct worker *w = new_worker(&a, fds[0]);
        z->pending[0] = 1;
        w->limit = 0;
        CHECK_INT(zerocopy_wait(w, z, false), WORKER_STOP);
        CHECK_INT(zerocopy_wait(w, z, true), 0);
        z->pending[0] = 0;
        (void) close(fds[0]);
        (void) close(fds[1]);
        free(w);
        zerocopy_free(z);
}

/* ENOBUFS that never gets better is a failure that names the limits; each one is counted. A thread with sends of its
 * own under way is distinguished from one that waits for the sends of others. */
static void starved_for_ever(bool under_way) {
        struct agent a = {.peer_role = "client"};
        int fds[2], r = 0;
        uint64_t since_ns = 0, begin_ns = util_now_ns();
        CHECK_INT(connected_pair(fds), 0);
        struct zerocopy *z = new_pool();
        struct worker *w = new_worker(&a, fds[0]);
        z->pending[3] = under_way ? 5 : 0;
        while (r == 0 && util_now_ns() - begin_ns < 60 * NSEC_PER_SEC)
                r = zerocopy_reap(w, z, &since_ns);
        CHECK_INT(r, -ENOBUFS);
        CHECK(w->enobufs > 1);
        CHECK(strstr(w->failure.detail, "net.core.optmem_max is "));
        CHECK(strstr(w->failure.detail, "RLIMIT_MEMLOCK is "));
        CHECK(strstr(w->failure.detail, under_way ? "none of its 5 under way is notified"
                                                  : "it has none under way that could give some back"));
        CHECK(!zerocopy_has_backpressure());
        z->pending[3] = 0;
        (void) close(fds[0]);
        (void) close(fds[1]);
        free(w);
        zerocopy_free(z);
}

/* Half a minute is over since this thread began to wait, and since it last looked: it did not run, nor did others. */
static void test_standstill_of_all_is_no_want(void) {
        struct zerocopy *z = new_pool();
        uint64_t began_ns = util_now_ns() - 30 * NSEC_PER_SEC, since_ns = began_ns;
        z->checked_ns = began_ns;
        CHECK(!zerocopy_is_stalled(z, &since_ns, false));
        CHECK(!zerocopy_is_stalled(z, &since_ns, false));
        since_ns = began_ns; /* but it has looked all the time */
        CHECK(zerocopy_is_stalled(z, &since_ns, false));
        CHECK(!zerocopy_is_stalled(z, &since_ns, true));
        zerocopy_free(z);
}

static void test_enobufs_for_ever(void) {
        starved_for_ever(true);
}

static void test_enobufs_by_others(void) {
        starved_for_ever(false);
}

int main(void) {
        RUN(test_pool_sizes);
        RUN(test_message_in_parts);
        RUN(test_pool_runs_out);
        RUN(test_numbers_wrap);
        RUN(test_what_cannot_be);
        RUN(test_no_room);
        RUN(test_read_no_further_than_needed);
        RUN(test_giving_way);
        RUN(test_real_notifications);
        RUN(test_wait_sees_the_peer_go);
        RUN(test_wait_stops);
        RUN(test_standstill_of_all_is_no_want);
        RUN(test_enobufs_for_ever);
        RUN(test_enobufs_by_others);
        return check_end();
}
