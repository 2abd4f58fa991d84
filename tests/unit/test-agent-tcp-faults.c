/* SPDX-License-Identifier: MIT */

/*
 * What the agents do when TCP goes wrong: ends that die or stop, connections that are reset, bytes that change, foreign
 * clients at the port. A relay stands between the two agents' peer channels; on request it puts a port of its own in
 * the place of the server's.
 */

#include "agent/base/peer.h"
#include "check.h"
#include "figure.h"
#include "interrupt.h"
#include "lanes.h"
#include "pairs.h"
#include "schema/util.h"
#include "tcp-faults.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define STALL_NS                                                                                                       \
        NSEC_PER_SEC /* for a thread whose peer is stopped; a busy machine may hold one up for a while, too            \
                      */
#define CONNECTIONS_MAX 4
#define GREETING 16u /* bytes that the client sends first on each connection */
#define NEVER SIZE_MAX

static const char *isolation_trouble; /* NULL: what is left is this program's own */

/* The ways in which an end can sit in the kernel when the other goes. */
static const struct {
        enum workload workload;
        enum data_direction direction;
        enum copy_mode mode;
} jobs[] = {
        {WORKLOAD_STREAM, DIRECTION_DOWN, COPY_TWO},    {WORKLOAD_STREAM, DIRECTION_UP, COPY_ZERO},
        {WORKLOAD_STREAM, DIRECTION_BOTH, COPY_ONE},    {WORKLOAD_STREAM, DIRECTION_BOTH, COPY_ZERO},
        {WORKLOAD_PINGPONG, DIRECTION_DOWN, COPY_ZERO}, {WORKLOAD_PINGPONG, DIRECTION_DOWN, COPY_TWO},
        {WORKLOAD_PINGPONG, DIRECTION_DOWN, COPY_ONE},
};

static struct driver_spec job_spec(size_t k) {
        struct driver_spec s = endless_spec(engines[k % n_engines], jobs[k / n_engines].mode);
        s.point.workload = jobs[k / n_engines].workload;
        s.point.direction = jobs[k / n_engines].direction;
        return s;
}

/* A stop is found out by the second. */
static void make_stop_found(struct driver_spec *s) {
        s->duration_ns = 0;
        s->messages = SPEC_COUNT_MAX / s->point.threads;
        s->stall_ns = STALL_NS;
}

/* In lanes; each end of each job in turn. */
static void interrupt_jobs(int signal) {
        for (size_t k = 0; k < ELEMENTS(jobs) * n_engines; k++)
                for (enum end victim = END_FIRST; victim < END_COUNT; victim++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d;
                        struct driver_spec s = job_spec(k);
                        s.verify = interrupt_verify(k, victim);
                        if (signal == SIGSTOP)
                                make_stop_found(&s);
                        CHECK_NO_FAULT(interrupt_check(&d, &s, victim, signal));
                        driver_deinit(&d);
                }
}

static void test_killed_end(void) {
        if (isolation_trouble)
                SKIP("%s", isolation_trouble);
        IN_LANES(lanes_of_locked_pages(), interrupt_isolate, test_killed_end);
        interrupt_jobs(SIGKILL);
}

static void test_stopped_end(void) {
        if (isolation_trouble)
                SKIP("%s", isolation_trouble);
        IN_LANES(lanes_of_locked_pages(), interrupt_isolate, test_stopped_end);
        interrupt_jobs(SIGSTOP);
}

/* The same for a stream of short messages. */
static void test_interrupted_end_of_short_messages(void) {
        if (isolation_trouble)
                SKIP("%s", isolation_trouble);
        if (no_rings)
                SKIP("%s", no_rings);
        IN_LANES(lanes_of_locked_pages(), interrupt_isolate, test_interrupted_end_of_short_messages);
        for (enum end victim = END_FIRST; victim < END_COUNT; victim++)
                for (unsigned stop = 0; stop < 2; stop++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d;
                        struct driver_spec s = endless_spec(ENGINE_IO_URING, COPY_TWO);
                        s.point.message_size = 1000;
                        if (stop)
                                make_stop_found(&s);
                        CHECK_NO_FAULT(interrupt_check(&d, &s, victim, stop ? SIGSTOP : SIGKILL));
                        driver_deinit(&d);
                }
}

/* One direction of a connection through the relay. */
struct pump {
        struct relay *relay;
        int from, to, thread_number;
        bool down; /* server to client: where faults are */
        pthread_t thread;
        bool started;
};

struct relay {
        int sides[END_COUNT]; /* ours, of the server's channel and of the client's */
        bool proxy;           /* connections go through us */
        bool foreign;         /* some come before the client does */
        int late_ms;          /* delay before the first byte on the client's first connection */
        int victim;           /* the connection that has the fault */
        size_t flip, reset;   /* at this byte of what the server sends, or NEVER */
        size_t n_silent;
        int silent[200]; /* foreign clients that send nothing */
        uint16_t port;   /* of the server */
        int listener;
        pthread_t packets, accepting;
        struct pump pumps[2 * CONNECTIONS_MAX];
};

static int connect_to(uint16_t port) {
        struct sockaddr_in a = {
                .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *) &a, sizeof a) < 0)
                fd = util_close(fd);
        return fd;
}

static void reset(int fd) {
        struct linger hard = {.l_onoff = 1};
        (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
}

static void *pump_bytes(void *userdata) {
        struct pump *p = userdata;
        const struct relay *relay = p->relay;
        bool faulty = p->down && p->thread_number == relay->victim;
        unsigned char data[8192];
        for (size_t at = 0;;) {
                ssize_t n = recv(p->from, data, sizeof data, 0);
                if (n <= 0)
                        break;
                if (faulty && relay->flip >= at && relay->flip < at + (size_t) n)
                        data[relay->flip - at] ^= 0x10;
                at += (size_t) n;
                if (faulty && at > relay->reset) {
                        reset(p->from);
                        reset(p->to);
                        break;
                }
                if (write_all(p->to, data, (size_t) n) < 0)
                        break;
        }
        /* wakes the pump of the other direction; the descriptors are closed when both are done */
        (void) shutdown(p->from, SHUT_RDWR);
        (void) shutdown(p->to, SHUT_RDWR);
        return NULL;
}

static void start_pump(struct relay *r, int i, int thread_number, bool down, int from, int to) {
        struct pump *p = &r->pumps[i];
        *p = (struct pump){.relay = r, .from = from, .to = to, .thread_number = thread_number, .down = down};
        p->started = pthread_create(&p->thread, NULL, pump_bytes, p) == 0;
}

/* The client's connections come in the order of its threads. */
static void *take_connections(void *userdata) {
        struct relay *r = userdata;
        for (int i = 0; i < CONNECTIONS_MAX; i++) {
                int client = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
                if (client < 0)
                        break;
                int server = connect_to(r->port);
                if (i == 0)
                        (void) poll(NULL, 0, r->late_ms);
                start_pump(r, 2 * i, i, true, server, client);
                start_pump(r, 2 * i + 1, i, false, client, server);
        }
        return NULL;
}

static uint16_t open_listener(struct relay *r) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof a;
        r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (r->listener < 0 || bind(r->listener, (struct sockaddr *) &a, sizeof a) < 0 || listen(r->listener, 8) < 0 ||
            getsockname(r->listener, (struct sockaddr *) &a, &length) < 0 ||
            pthread_create(&r->accepting, NULL, take_connections, r))
                abort();
        return ntohs(a.sin_port);
}

/* Connects without being the client: with a wrong greeting, with a part of one, without any. */
static void connect_foreign(struct relay *r) {
        static const unsigned char words[GREETING] = "GET / HTTP/1.1\r\n";
        int wrong = connect_to(r->port), short_one = connect_to(r->port);
        (void) write_all(wrong, words, sizeof words);
        (void) write_all(short_one, words, 5);
        (void) util_close(wrong);
        (void) util_close(short_one);
        for (r->n_silent = 0; r->n_silent < ELEMENTS(r->silent); r->n_silent++)
                r->silent[r->n_silent] = connect_to(r->port);
}

static void look_at(struct relay *r, struct peer_packet *packet) {
        if (packet->kind != PEER_TRANSPORT || packet->thread != 0 || r->port)
                return;
        r->port = (uint16_t) packet->value;
        if (r->proxy)
                packet->value = open_listener(r);
        if (r->foreign)
                connect_foreign(r);
}

static void *relay_packets(void *userdata) {
        struct relay *r = userdata;
        for (bool open = true; open;) {
                struct pollfd fds[2] = {{.fd = r->sides[0], .events = POLLIN}, {.fd = r->sides[1], .events = POLLIN}};
                if (poll(fds, 2, 60000) <= 0)
                        break;
                for (int i = 0; i < 2; i++) {
                        struct peer_packet packet;
                        if (!open || !fds[i].revents)
                                continue;
                        open = recv(r->sides[i], &packet, sizeof packet, 0) == sizeof packet;
                        if (open)
                                look_at(r, &packet);
                        if (open)
                                open = send(r->sides[1 - i], &packet, sizeof packet, MSG_NOSIGNAL) == sizeof packet;
                }
        }
        (void) close(r->sides[0]);
        (void) close(r->sides[1]);
        return NULL;
}

static void relay_end(struct relay *r) {
        (void) pthread_join(r->packets, NULL);
        if (r->proxy && r->port) {
                (void) shutdown(r->listener, SHUT_RDWR);
                (void) pthread_join(r->accepting, NULL);
                (void) close(r->listener);
        }
        for (size_t i = 0; i < ELEMENTS(r->pumps); i++)
                if (r->pumps[i].started)
                        (void) pthread_join(r->pumps[i].thread, NULL);
        for (size_t i = 0; i < ELEMENTS(r->pumps); i += 2)
                if (r->pumps[i].started) {
                        (void) close(r->pumps[i].from);
                        (void) close(r->pumps[i].to);
                }
        for (size_t i = 0; i < r->n_silent; i++)
                (void) util_close(r->silent[i]);
}

static int run_relayed(struct driver *d, struct relay *r, struct driver_spec *s) {
        for (int end = 0; end < END_COUNT; end++) {
                int pair[2];
                if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                        return -errno;
                r->sides[end] = pair[0];
                s->peer_fds[end] = pair[1];
        }
        if (pthread_create(&r->packets, NULL, relay_packets, r))
                abort();
        int result = driver_run(d, s);
        relay_end(r);
        return result;
}

/* That the relay itself does no harm. */
static void test_relay(void) {
        struct driver d = {};
        struct relay r = {.proxy = true, .flip = NEVER, .reset = NEVER};
        struct driver_spec s = fault_spec(ENGINE_SYSCALL, COPY_TWO);
        CHECK_INT(run_relayed(&d, &r, &s), 0);
        CHECK_UINT(d.ends[END_SECOND].report.messages, s.messages * s.point.threads);
        driver_deinit(&d);
}

/* An end that finds the other gone before its own thread has reported the reset knows no better. */
static bool either_reports(const struct driver *d, const char *words) {
        return strstr(d->ends[END_FIRST].error.detail, words) || strstr(d->ends[END_SECOND].error.detail, words);
}

/* One of several threads has its connection reset: the run fails for that, and everything ends. */
static void test_reset_connection(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_reset_connection);
        for (size_t e = 0; e < n_engines; e++)
                for (size_t k = 0; k < COPY_COUNT * ELEMENTS(directions); k++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d = {};
                        struct relay r = {.proxy = true, .flip = NEVER, .reset = 300000, .victim = 1};
                        struct driver_spec s = endless_spec(engines[e], (enum copy_mode)(k % COPY_COUNT));
                        s.point.direction = directions[k / COPY_COUNT];
                        s.point.threads = 3;
                        CHECK(run_relayed(&d, &r, &s) < 0);
                        CHECK(either_reports(&d, "closed the channel of thread 1"));
                        for (enum end end = END_FIRST; end < END_COUNT; end++)
                                CHECK(WIFEXITED(d.ends[end].status) && WEXITSTATUS(d.ends[end].status) == 1);
                        driver_deinit(&d);
                }
}

static void test_changed_byte(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_changed_byte);
        for (size_t e = 0; e < n_engines; e++)
                for (size_t k = 0; k < COPY_COUNT * ELEMENTS(directions); k++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d = {};
                        struct relay r = {.proxy = true, .flip = 3 * 20000 + 777, .reset = NEVER, .victim = 2};
                        struct driver_spec s = endless_spec(engines[e], (enum copy_mode)(k % COPY_COUNT));
                        s.point.direction = directions[k / COPY_COUNT];
                        s.point.threads = 3;
                        CHECK_INT(run_relayed(&d, &r, &s), -EBADMSG);
                        CHECK(strstr(d.trouble, "thread 2, message 3, offset 777"));
                        CHECK(strstr(d.trouble, "(1 of 20000 bytes differ)"));
                        driver_deinit(&d);
                }
}

/* The time in a message is no part of the pattern; one that cannot be is found all the same. */
static void test_changed_stamp(void) {
        struct driver d = {};
        struct relay r = {.proxy = true, .flip = 5 * 20000 + 7, .reset = NEVER};
        struct driver_spec s = fault_spec(ENGINE_SYSCALL, COPY_ONE);
        s.verify = VERIFY_NONE;
        CHECK_INT(run_relayed(&d, &r, &s), -EBADMSG);
        CHECK(strstr(d.trouble, "thread 0, message 5 has the send time "));
        driver_deinit(&d);
}

/* The same of short messages, which io_uring receives many at a time. */
static void test_faults_of_short_messages(void) {
        for (size_t k = 0; k < n_engines; k++) {
                struct driver d = {};
                struct relay reset = {.proxy = true, .flip = NEVER, .reset = 300000, .victim = 1};
                struct driver_spec s = endless_spec(engines[k], COPY_TWO);
                s.point.threads = 3;
                s.point.message_size = 1000;
                CHECK(run_relayed(&d, &reset, &s) < 0);
                CHECK(either_reports(&d, "closed the channel of thread 1"));
                driver_deinit(&d);
                struct relay flip = {.proxy = true, .flip = 70 * 1000 + 777, .reset = NEVER, .victim = 2};
                CHECK_INT(run_relayed(&d, &flip, &s), -EBADMSG);
                CHECK(strstr(d.trouble, "thread 2, message 70, offset 777"));
                driver_deinit(&d);
                struct relay stamp = {.proxy = true, .flip = 80 * 1000 + 7, .reset = NEVER, .victim = 0};
                CHECK_INT(run_relayed(&d, &stamp, &s), -EBADMSG);
                CHECK(strstr(d.trouble, "thread 0, message 80 has the send time "));
                driver_deinit(&d);
        }
}

/* More of them than are listened to at once, before the client's first connection. */
static void test_foreign_clients(void) {
        struct driver d = {};
        struct relay r = {.foreign = true, .flip = NEVER, .reset = NEVER};
        struct driver_spec s = fault_spec(ENGINE_SYSCALL, COPY_TWO);
        CHECK_INT(run_relayed(&d, &r, &s), 0);
        size_t all = 2 + ELEMENTS(r.silent); /* they are let in in the order of coming, and so before the client */
        CHECK_INT(figure(d.ends[END_FIRST].effective_at_end, "strangers_refused"), all);
        driver_deinit(&d);
}

/* A client that did not run between its first connection and its greeting is not taken for a foreign one. */
static void test_late_client(void) {
        struct driver d = {};
        struct relay r = {.proxy = true, .late_ms = 600, .flip = NEVER, .reset = NEVER};
        struct driver_spec s = fault_spec(ENGINE_SYSCALL, COPY_TWO);
        CHECK_INT(run_relayed(&d, &r, &s), 0);
        CHECK_INT(figure(d.ends[END_FIRST].effective_at_end, "strangers_refused"), 0);
        driver_deinit(&d);
}

int main(void) {
        isolation_trouble = interrupt_isolate();
        (void) signal(SIGPIPE, SIG_IGN);
        find_engines();
        RUN(test_killed_end);
        RUN(test_stopped_end);
        RUN(test_interrupted_end_of_short_messages);
        RUN(test_relay);
        RUN(test_reset_connection);
        RUN(test_changed_byte);
        RUN(test_changed_stamp);
        RUN(test_faults_of_short_messages);
        RUN(test_foreign_clients);
        RUN(test_late_client);
        return check_end();
}
