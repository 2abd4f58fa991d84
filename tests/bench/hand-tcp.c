/* SPDX-License-Identifier: MIT */

/* The loops and their set-up; see hand-tcp.h. */

#include "tests/bench/hand-tcp.h"

#include "schema/spec/spec.h"
#include "schema/util.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 64u
#define TIMES_MAX (1u << 20)
#define ALARM_SECONDS 60u
#define LINE 64u
#define PAGE ((size_t) sysconf(_SC_PAGESIZE))
#define START_NS (10 * NSEC_PER_SEC)

/* In shared memory. */
struct tally {
        struct {
                alignas(64) volatile uint64_t messages;
        } threads[THREADS_MAX];
        uint32_t round_trips[TIMES_MAX]; /* of thread 0, by number */
};

struct job {
        const struct hand_tcp *h;
        struct tally *tally;
        bool server;
        int fd;
        unsigned thread;
};

static volatile uint64_t sink;

static __attribute__((noreturn)) void give_up(const char *what) {
        if (errno != EPIPE && errno != ECONNRESET)
                fprintf(stderr, "hand-tcp: %s: %s\n", what, strerrordesc_np(errno));
        _exit(1);
}

static void *memory_of(size_t size) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                give_up("mmap");
        memset(p, 'A', size);
        return p;
}

/*
 * A message in fields that lie apart, for every copy mode where the agents' lie (agent/loop/fields.h): on lines of
 * their own, and from half a page on each at the begin of a page. Both sides of a comparison must have the same there:
 * how many pages a field touches decides what zero-copy costs, and would be taken for a cost of the agents or for a
 * gain. What two-copy packs into and what everybody receives into begins on a page, here as there.
 */
static void make_fields(const struct hand_tcp *h, struct iovec *iov) {
        size_t longest = (h->size + h->fields - 1) / h->fields;
        size_t unit = longest >= PAGE / 2 ? PAGE : LINE, stride = (longest + LINE + unit - 1) / unit * unit;
        unsigned char *p = memory_of(h->fields * stride);
        for (unsigned i = 0; i < h->fields; i++)
                iov[i] = (struct iovec){.iov_base = p + i * stride,
                                        .iov_len = h->size / h->fields + (i < h->size % h->fields)};
}

static void receive_message(const struct job *j, unsigned char *p) {
        for (size_t got = 0; got < j->h->size;) {
                ssize_t n = recv(j->fd, p + got, j->h->size - got, 0);
                if (n == 0)
                        _exit(0);
                if (n < 0)
                        give_up("recv");
                got += (size_t) n;
        }
        if (j->h->verify == VERIFY_TOUCH) {
                uint64_t sum = 0;
                for (size_t i = 0; i < j->h->size; i += 64)
                        sum += p[i];
                sink = sum;
        }
}

static void send_all(const struct job *j, const unsigned char *p) {
        for (size_t sent = 0; sent < j->h->size;) {
                ssize_t n = send(j->fd, p + sent, j->h->size - sent, MSG_NOSIGNAL);
                if (n < 0)
                        give_up("send");
                sent += (size_t) n;
        }
}

/* Returns how many calls it took. */
static unsigned send_fields(const struct job *j, const struct iovec *iov, int flags) {
        struct iovec rest[SPEC_FIELDS_MAX];
        struct msghdr m = {.msg_iov = rest, .msg_iovlen = j->h->fields};
        unsigned calls = 0;
        memcpy(rest, iov, j->h->fields * sizeof *rest);
        for (size_t sent = 0; sent < j->h->size; calls++) {
                ssize_t n = sendmsg(j->fd, &m, MSG_NOSIGNAL | flags);
                if (n < 0 && errno != ENOBUFS)
                        give_up("sendmsg");
                if (n < 0) {
                        calls--;
                        continue;
                }
                for (sent += (size_t) n; m.msg_iovlen && (size_t) n >= m.msg_iov->iov_len; m.msg_iovlen--)
                        n -= (ssize_t) (m.msg_iov++)->iov_len;
                if (n > 0) {
                        m.msg_iov->iov_base = (char *) m.msg_iov->iov_base + n;
                        m.msg_iov->iov_len -= (size_t) n;
                }
        }
        return calls;
}

struct sender {
        struct iovec iov[SPEC_POOL_MESSAGES_MAX][SPEC_FIELDS_MAX];
        uint32_t last[SPEC_POOL_MESSAGES_MAX]; /* number behind the last send of each message */
        uint32_t next, done, n, current;
        unsigned char *packed;
};

static struct sender *sender_new(const struct hand_tcp *h) {
        struct sender *s = calloc(1, sizeof *s);
        if (!s)
                give_up("calloc");
        s->n = h->mode == COPY_ZERO ? point_pool_messages(h->size) : 1;
        for (uint32_t i = 0; i < s->n; i++)
                make_fields(h, s->iov[i]);
        s->packed = memory_of(h->size);
        return s;
}

/* Loopback notifies in order: the last number is all that there is to remember. */
static void await_completion(const struct job *j, struct sender *s, uint32_t upto) {
        while ((int32_t) (s->done - upto) < 0) {
                char control[128];
                struct sock_extended_err e;
                struct msghdr m = {.msg_control = control, .msg_controllen = sizeof control};
                if (recvmsg(j->fd, &m, MSG_ERRQUEUE) < 0) {
                        struct pollfd p = {.fd = j->fd};
                        if (errno != EAGAIN)
                                give_up("MSG_ERRQUEUE");
                        if (poll(&p, 1, -1) < 0 || p.revents & POLLHUP)
                                give_up("poll");
                        continue;
                }
                struct cmsghdr *first = CMSG_FIRSTHDR(&m);
                if (!first)
                        continue;
                memcpy(&e, CMSG_DATA(first), sizeof e);
                s->done = e.ee_data + 1;
        }
}

static void send_message(const struct job *j, struct sender *s) {
        unsigned char *at = s->packed;
        switch (j->h->mode) {
        case COPY_TWO:
                for (unsigned i = 0; i < j->h->fields; i++) {
                        memcpy(at, s->iov[0][i].iov_base, s->iov[0][i].iov_len);
                        at += s->iov[0][i].iov_len;
                }
                send_all(j, s->packed);
                return;
        case COPY_ONE:
                (void) send_fields(j, s->iov[0], 0);
                return;
        default:
                await_completion(j, s, s->last[s->current]);
                s->next += send_fields(j, s->iov[s->current], MSG_ZEROCOPY);
                s->last[s->current] = s->next;
                s->current = (s->current + 1) % s->n;
        }
}

static __attribute__((noreturn)) void initiate(const struct job *j, struct sender *s, unsigned char *p) {
        for (uint64_t n = 0;; n++) {
                uint64_t begin_ns = util_now_ns();
                send_message(j, s);
                receive_message(j, p);
                if (j->thread == 0)
                        j->tally->round_trips[n % TIMES_MAX] = (uint32_t) (util_now_ns() - begin_ns);
                j->tally->threads[j->thread].messages = n + 1;
        }
}

static __attribute__((noreturn)) void respond(const struct job *j, struct sender *s, unsigned char *p) {
        for (;;) {
                receive_message(j, p);
                send_message(j, s);
        }
}

static __attribute__((noreturn)) void stream(const struct job *j, struct sender *s) {
        for (;;)
                send_message(j, s);
}

static __attribute__((noreturn)) void take(const struct job *j, unsigned char *p) {
        for (uint64_t n = 0;;) {
                receive_message(j, p);
                j->tally->threads[j->thread].messages = ++n;
        }
}

/* Until the process is killed. */
static __attribute__((noreturn)) void work(const struct job *j) {
        unsigned char *p = memory_of(j->h->size);
        if (!j->h->pingpong && !j->server)
                take(j, p);
        struct sender *s = sender_new(j->h);
        if (!j->h->pingpong)
                stream(j, s);
        if (j->server)
                initiate(j, s, p);
        respond(j, s, p);
}

static void *thread_main(void *userdata) {
        work(userdata);
}

static int connection(const struct hand_tcp *h, bool server, int listener, const struct sockaddr_in *address) {
        int one = 1;
        int fd = server ? accept(listener, NULL, NULL) : socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || (!server && connect(fd, (const struct sockaddr *) address, sizeof *address) < 0))
                give_up("connection");
        if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0 ||
            (h->mode == COPY_ZERO && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) < 0))
                give_up("setsockopt");
        return fd;
}

static __attribute__((noreturn)) void be_end(const struct hand_tcp *h, struct tally *tally, bool server, int listener,
                                             const struct sockaddr_in *address) {
        static struct job jobs[THREADS_MAX];
        int cpu = h->cpus[server ? 0 : 1];
        if (cpu >= 0) {
                cpu_set_t set;
                CPU_ZERO(&set);
                CPU_SET(cpu, &set);
                if (sched_setaffinity(0, sizeof set, &set) < 0)
                        give_up("sched_setaffinity");
        }
        (void) alarm(ALARM_SECONDS);
        for (unsigned i = 0; i < h->threads; i++)
                jobs[i] = (struct job){.h = h,
                                       .tally = tally,
                                       .server = server,
                                       .fd = connection(h, server, listener, address),
                                       .thread = i};
        for (unsigned i = 1; i < h->threads; i++) {
                pthread_t thread;
                errno = pthread_create(&thread, NULL, thread_main, &jobs[i]);
                if (errno)
                        give_up("pthread_create");
        }
        work(&jobs[0]);
}

static void sleep_for(double seconds) {
        struct timespec ts = {.tv_sec = (time_t) seconds,
                              .tv_nsec = (long) ((seconds - (double) (time_t) seconds) * 1e9)};
        while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
                ;
}

static uint64_t sum_of(const struct hand_tcp *h, const struct tally *t) {
        uint64_t sum = 0;
        for (unsigned i = 0; i < h->threads; i++)
                sum += t->threads[i].messages;
        return sum;
}

static int by_value(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
        return (x > y) - (x < y);
}

/* Half of the round trips within the window took no longer. */
static double median_of(struct tally *t, uint64_t from, uint64_t to) {
        if (to - from > TIMES_MAX)
                from = to - TIMES_MAX;
        uint32_t *times = malloc((to - from + 1) * sizeof *times);
        if (!times || to == from) {
                free(times);
                return 0;
        }
        for (uint64_t i = from; i < to; i++)
                times[i - from] = t->round_trips[i % TIMES_MAX];
        qsort(times, to - from, sizeof *times, by_value);
        uint64_t middle = (to - from) / 2;
        double median = times[middle];
        free(times);
        return median;
}

static int watch(const struct hand_tcp *h, struct tally *t, struct hand_tcp_figures *ret) {
        uint64_t deadline_ns = util_now_ns() + START_NS;
        for (unsigned i = 0; i < h->threads; i++)
                while (t->threads[i].messages == 0) {
                        if (util_now_ns() > deadline_ns)
                                return -ETIMEDOUT;
                        sleep_for(0.001);
                }
        sleep_for(h->warmup);
        uint64_t first = t->threads[0].messages, messages = sum_of(h, t), begin_ns = util_now_ns();
        sleep_for(h->seconds);
        uint64_t last = t->threads[0].messages, end_ns = util_now_ns();
        messages = sum_of(h, t) - messages;
        ret->messages_per_second = (double) messages * 1e9 / (double) (end_ns - begin_ns);
        ret->p50_ns = h->pingpong ? median_of(t, first, last) : 0;
        return messages ? 0 : -EIO;
}

static int run_ends(const struct hand_tcp *h, struct tally *t, int listener, const struct sockaddr_in *address,
                    struct hand_tcp_figures *ret) {
        pid_t pids[2] = {-1, -1};
        int r = 0;
        for (int i = 0; i < 2; i++) {
                pids[i] = fork();
                if (pids[i] == 0)
                        be_end(h, t, i == 0, listener, address);
                if (pids[i] < 0)
                        r = -errno;
        }
        if (r == 0)
                r = watch(h, t, ret);
        for (int i = 0; i < 2; i++)
                if (pids[i] > 0) {
                        (void) kill(pids[i], SIGKILL);
                        (void) waitpid(pids[i], NULL, 0);
                }
        return r;
}

int hand_tcp_run(const struct hand_tcp *h, struct hand_tcp_figures *ret) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;
        if (h->threads == 0 || h->threads > THREADS_MAX || h->fields == 0 || h->fields > SPEC_FIELDS_MAX ||
            h->size < h->fields)
                return -EINVAL;
        _cleanup_close_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (listener < 0 || bind(listener, (struct sockaddr *) &address, sizeof address) < 0 ||
            listen(listener, SOMAXCONN) < 0 || getsockname(listener, (struct sockaddr *) &address, &length) < 0)
                return -errno;
        struct tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (t == MAP_FAILED)
                return -errno;
        int r = run_ends(h, t, listener, &address, ret);
        (void) munmap(t, sizeof *t);
        return r;
}
