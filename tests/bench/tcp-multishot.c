/* SPDX-License-Identifier: MIT */

/*
 * What a multishot receive of io_uring is worth to a receiver of messages over TCP (agent/transport/tcp/multishot.h has
 * what was found). Three ways to receive, turn about in many short rounds; what sends, and what is done with the bytes,
 * is the same for all of them:
 *
 *      recv       an operation for each message, until the whole of it is there (MSG_WAITALL), into one buffer
 *      ahead      an operation for what is there, which may be many messages, or a part of one
 *      multishot  one operation for all of them: the kernel takes buffers of a ring and reports what it put into each
 *
 * A receiver counts messages, knows where each begins, and reads a byte of each of its cache lines; what it has read
 * must be what was sent. "ahead" is there because a multishot receive does two things at once: it takes what is there
 * instead of waiting for a whole message, which any receive can, and it needs no submission for it, which it alone can.
 *
 * Each way has its messages per second and the receivers' CPU time per message, and both beside "recv": the median of
 * the rounds' own ratios with its 95 % interval.
 */

#include "schema/util.h"
#include "tests/bench/hand-two.h"
#include "tests/bench/series.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define LINE 64u
#define SIZES_MAX 16u
#define ROUNDS_MAX 99u
#define THREADS_MAX 64u
#define BUFFERS_MAX 1024u
#define BUFFER_MAX (1u << 24)
#define COMPLETIONS (2 * BUFFERS_MAX)
#define GROUP 0
#define MULTISHOT 0 /* user_data */
#define SINGLE 1
#define CHECK_BYTES 65536u /* the clock is read once for so many bytes, or each message */

enum way { WAY_RECV, WAY_AHEAD, WAY_MULTISHOT, WAY_COUNT };
static const char *const way_names[WAY_COUNT] = {"recv", "ahead", "multishot"};
enum workload { STREAM, PINGPONG, BOTH, WORKLOAD_COUNT };
static const char *const workload_names[WORKLOAD_COUNT] = {"stream", "pingpong", "both"};
enum { SENDER, RECEIVER };

struct round {
        enum way way;
        enum workload workload;
        size_t size, buffer; /* of a message; of a buffer that more than a message may come into */
        unsigned n_buffers;  /* a power of two */
        unsigned threads;    /* of each end, with a connection each */
        double warmup, seconds;
        int cpus[2], fds[THREADS_MAX][2];
        uint64_t begin_ns;
        double *cpu_ns; /* shared: what a message cost the receiver */
};

/* One end of a connection, in its thread. */
struct end {
        const struct round *round;
        pthread_t thread;
        bool receiver, failed;
        uint64_t window_messages, window_ns, window_cpu_ns; /* of a receiver */
        struct io_uring ring;
        struct io_uring_buf_ring *buffers;
        unsigned char *memory, *message;
        int fd;
        bool armed, over;  /* the multishot receive is under way; has ended */
        bool under_way;    /* another operation is */
        int result;        /* of the last one */
        uint64_t bytes;    /* that have been checked */
        size_t sent;       /* of the message under way to the other end */
        size_t at;         /* bytes checked of the message under way from it */
        uint64_t messages; /* whole ones */
        uint64_t sum;
};

static unsigned char *memory_of(size_t size) {
        unsigned char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                return NULL;
        memset(p, 0, size); /* pages of its own */
        return p;
}

/* What a line of a message begins with: unlike its neighbours'. */
static inline unsigned char line_of(size_t at) {
        return (unsigned char) (at / LINE * 7 + 1);
}

/* What reading so many messages, and so many bytes of another, must have added up to. */
static uint64_t expected_sum(size_t size, uint64_t messages, size_t rest) {
        uint64_t sum = 0;
        for (size_t at = 0; at < size; at += LINE)
                sum += line_of(at) * (messages + (at < rest));
        return sum;
}

/* The next n bytes of the stream. */
static inline void check_bytes(struct end *e, const unsigned char *p, size_t n) {
        e->bytes += n;
        while (n > 0) {
                size_t left = e->round->size - e->at, take = n < left ? n : left;
                for (size_t i = (LINE - e->at % LINE) % LINE; i < take; i += LINE)
                        e->sum += p[i];
                p += take;
                n -= take;
                e->at += take;
                if (e->at == e->round->size) {
                        e->at = 0;
                        e->messages++;
                }
        }
}

static struct io_uring_sqe *entry(struct end *e) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&e->ring);
        if (!sqe)
                abort(); /* they are submitted one by one */
        return sqe;
}

static void give_back(struct end *e, unsigned short id) {
        const struct round *r = e->round;
        io_uring_buf_ring_add(e->buffers, e->memory + id * r->buffer, (unsigned) r->buffer, id,
                              io_uring_buf_ring_mask(r->n_buffers), 0);
        io_uring_buf_ring_advance(e->buffers, 1);
}

static void arm(struct end *e) {
        struct io_uring_sqe *sqe = entry(e);
        io_uring_prep_recv_multishot(sqe, 0, NULL, 0, 0);
        sqe->flags |= IOSQE_BUFFER_SELECT | IOSQE_FIXED_FILE;
        sqe->buf_group = GROUP;
        sqe->user_data = MULTISHOT;
        e->armed = true;
}

/* Takes all completions. The kernel ends a multishot receive when there is no buffer left, or no room for completions:
 * then it is submitted again. */
static void reap(struct end *e) {
        struct io_uring_cqe *cqe;
        while (io_uring_peek_cqe(&e->ring, &cqe) == 0) {
                int n = cqe->res;
                unsigned flags = cqe->flags;
                bool single = cqe->user_data == SINGLE;
                io_uring_cqe_seen(&e->ring, cqe);
                if (single) {
                        e->result = n;
                        e->under_way = false;
                        continue;
                }
                e->armed = flags & IORING_CQE_F_MORE;
                if (n > 0) {
                        unsigned short id = (unsigned short) (flags >> IORING_CQE_BUFFER_SHIFT);
                        check_bytes(e, e->memory + id * e->round->buffer, (size_t) n);
                        give_back(e, id);
                } else if (n != -ENOBUFS) {
                        e->over = true;
                }
        }
}

/* Submits an operation and waits until it is complete: its result; 0 when it could not be done without waiting. */
static int complete(struct end *e, struct io_uring_sqe *sqe) {
        sqe->flags |= IOSQE_FIXED_FILE;
        sqe->user_data = SINGLE;
        for (e->under_way = true; e->under_way; reap(e))
                if (io_uring_submit_and_wait(&e->ring, 1) < 0)
                        return -EIO;
        return e->result == -EAGAIN ? 0 : e->result;
}

/* What is left of a message. */
static int send_part(struct end *e, int flags) {
        struct io_uring_sqe *sqe = entry(e);
        io_uring_prep_send(sqe, 0, e->message + e->sent, e->round->size - e->sent, MSG_NOSIGNAL | flags);
        int n = complete(e, sqe);
        if (n > 0)
                e->sent = (e->sent + (size_t) n) % e->round->size;
        return n;
}

static int send_message(struct end *e) {
        return send_part(e, MSG_WAITALL) == (int) e->round->size ? 0 : -1;
}

static int receive_single(struct end *e, int flags) {
        struct io_uring_sqe *sqe = entry(e);
        bool ahead = e->round->way == WAY_AHEAD;
        unsigned char *to = ahead ? e->memory : e->memory + e->at;
        size_t length = ahead ? e->round->buffer : e->round->size - e->at;
        io_uring_prep_recv(sqe, 0, to, length, flags || ahead ? flags : MSG_WAITALL);
        int n = complete(e, sqe);
        if (n > 0)
                check_bytes(e, to, (size_t) n);
        return n;
}

/* Waits only when nothing has completed. */
static int receive_multishot(struct end *e) {
        struct io_uring_cqe *cqe;
        if (!e->armed)
                arm(e);
        if (io_uring_peek_cqe(&e->ring, &cqe) < 0 && io_uring_submit_and_wait(&e->ring, 1) < 0)
                return -1;
        reap(e);
        return e->over ? -1 : 0;
}

static int receive_some(struct end *e) {
        if (e->round->way == WAY_MULTISHOT)
                return receive_multishot(e);
        return receive_single(e, 0) > 0 ? 0 : -1; /* 0: the other end has gone */
}

/* One step of an end that sends and receives at once: whichever way something can move, it does. With a multishot
 * receive the system call that sends brings what has come, too. */
static int exchange(struct end *e) {
        bool multishot = e->round->way == WAY_MULTISHOT;
        struct pollfd p[2] = {{.fd = e->fd, .events = (short) (POLLOUT | (multishot ? 0 : POLLIN))},
                              {.fd = multishot ? e->ring.ring_fd : -1, .events = POLLIN}};
        uint64_t before = e->bytes;
        if (multishot && !e->armed)
                arm(e);
        int out = send_part(e, MSG_DONTWAIT), in = multishot ? 0 : receive_single(e, MSG_DONTWAIT);
        if (out < 0 || in < 0 || e->over)
                return -1;
        return out == 0 && e->bytes == before && poll(p, 2, -1) < 0 ? -1 : 0;
}

static int set_up_buffers(struct end *e) {
        const struct round *r = e->round;
        struct io_uring_buf_reg reg = {.ring_entries = r->n_buffers, .bgid = GROUP};
        e->buffers = (struct io_uring_buf_ring *) memory_of(r->n_buffers * sizeof(struct io_uring_buf));
        if (!e->buffers)
                return -1;
        reg.ring_addr = (uintptr_t) e->buffers;
        io_uring_buf_ring_init(e->buffers);
        if (io_uring_register_buf_ring(&e->ring, &reg, 0) < 0)
                return -1;
        for (unsigned i = 0; i < r->n_buffers; i++)
                give_back(e, (unsigned short) i);
        return 0;
}

static int set_up(struct end *e) {
        const struct round *r = e->round;
        struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                             IORING_SETUP_CQSIZE,
                                    .cq_entries = COMPLETIONS};
        size_t ahead = r->n_buffers * r->buffer;
        e->memory = memory_of(ahead > r->size ? ahead : r->size);
        e->message = memory_of(r->size);
        for (size_t at = 0; e->message && at < r->size; at += LINE)
                e->message[at] = line_of(at);
        if (!e->memory || !e->message || io_uring_queue_init_params(4, &e->ring, &p) < 0 ||
            io_uring_register_files(&e->ring, &e->fd, 1) < 0)
                return -1;
        (void) io_uring_register_ring_fd(&e->ring);
        return r->way != WAY_MULTISHOT ? 0 : set_up_buffers(e);
}

/* One more message, at least; in a pingpong the answer to it is the other's. */
static int step(struct end *e) {
        bool both = e->round->workload == BOTH;
        uint64_t before = e->messages;
        if (e->round->workload == PINGPONG && send_message(e) < 0)
                return -1;
        while (e->messages == before)
                if ((both ? exchange(e) : receive_some(e)) < 0)
                        return -1;
        return 0;
}

/* Warms up, and measures its window: from one reading of the clock to another. */
static int receive_all(struct end *e) {
        const struct round *r = e->round;
        uint64_t every = r->workload == PINGPONG || r->size > CHECK_BYTES ? 1 : CHECK_BYTES / r->size, next = 0;
        uint64_t begin_ns = r->begin_ns + (uint64_t) (r->warmup * 1e9), messages = 0, cpu = 0, now_ns;
        uint64_t length_ns = (uint64_t) (r->seconds * 1e9);
        for (bool begun = false;;) {
                if (step(e) < 0)
                        return -1;
                if (e->messages < next)
                        continue;
                next = e->messages + every;
                now_ns = util_now_ns();
                if (!begun && now_ns >= begin_ns) {
                        begun = true;
                        begin_ns = now_ns;
                        messages = e->messages;
                        cpu = util_thread_cpu_ns();
                }
                if (begun && now_ns - begin_ns >= length_ns)
                        break;
        }
        e->window_cpu_ns = util_thread_cpu_ns() - cpu;
        e->window_messages = e->messages - messages;
        e->window_ns = now_ns - begin_ns;
        return e->sum == expected_sum(r->size, e->messages, e->at) ? 0 : -1;
}

/* Until the other end has gone. */
static int send_all(struct end *e) {
        for (uint64_t answered = 0;; answered++) {
                while (e->round->workload == PINGPONG && e->messages == answered)
                        if (receive_some(e) < 0)
                                return 0;
                if ((e->round->workload == BOTH ? exchange(e) : send_message(e)) < 0)
                        return 0;
        }
}

static void *run_thread(void *userdata) {
        struct end *e = userdata;
        e->failed = set_up(e) < 0 || (e->receiver ? receive_all(e) : send_all(e)) < 0;
        return NULL;
}

/* The sum of what the threads have received, each in its window. */
static int sum_up(const struct round *r, const struct end *ends, struct hand_result *ret) {
        double rate = 0, cpu = 0, messages = 0;
        for (unsigned i = 0; i < r->threads; i++) {
                if (ends[i].failed)
                        return -1;
                rate += (double) ends[i].window_messages / (double) ends[i].window_ns;
                cpu += (double) ends[i].window_cpu_ns;
                messages += (double) ends[i].window_messages;
        }
        *r->cpu_ns = cpu / messages;
        *ret = (struct hand_result){.messages = (uint64_t) (rate * 1e9), .ns = NSEC_PER_SEC};
        return 0;
}

static int run_end(void *userdata, int end, struct hand_result *ret) {
        struct round *r = userdata;
        struct end *ends = calloc(r->threads, sizeof *ends);
        if (!ends)
                return -1;
        r->begin_ns = util_now_ns();
        for (unsigned i = 0; i < r->threads; i++) {
                ends[i].round = r;
                ends[i].receiver = end == RECEIVER;
                ends[i].fd = r->fds[i][end];
                (void) close(r->fds[i][!end]);
        }
        for (unsigned i = 0; i < r->threads; i++)
                if (pthread_create(&ends[i].thread, NULL, run_thread, &ends[i]) != 0)
                        return -1;
        for (unsigned i = 0; i < r->threads; i++)
                (void) pthread_join(ends[i].thread, NULL);
        return end == RECEIVER ? sum_up(r, ends, ret) : 0;
}

static void forked(void *userdata) {
        const struct round *r = userdata;
        for (unsigned i = 0; i < r->threads; i++)
                for (int end = 0; end < 2; end++)
                        (void) close(r->fds[i][end]);
}

static int connect_both(int fds[2]) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;
        int one = 1;
        _cleanup_close_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (listener < 0 || bind(listener, (struct sockaddr *) &address, sizeof address) < 0 ||
            listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *) &address, &length) < 0)
                return -errno;
        fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fds[0] < 0 || connect(fds[0], (struct sockaddr *) &address, sizeof address) < 0)
                return -errno;
        fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        for (int i = 0; i < 2; i++)
                if (fds[i] < 0 || setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0)
                        return -errno;
        return 0;
}

/* The figures of a way, one of each round. */
struct figures {
        struct series rate, cpu; /* messages per second; ns of the receiver's CPU per message */
};

static int run_round(struct round *r, struct figures *figures) {
        struct hand_two two = {.run = run_end, .forked = forked, .userdata = r, .cpus = r->cpus, .clocked = RECEIVER};
        struct hand_result result;
        int error = 0;
        for (unsigned i = 0; error == 0 && i < r->threads; i++)
                error = connect_both(r->fds[i]);
        if (error == 0)
                error = hand_two_run(&two, &result);
        if (error < 0)
                return error;
        figures->rate.values[figures->rate.n++] = (double) result.messages * 1e9 / (double) result.ns;
        figures->cpu.values[figures->cpu.n++] = *r->cpu_ns;
        return 0;
}

static void print_ratio(const struct series *of, const struct series *to) {
        struct ratio r = series_ratio(of, to);
        if (r.has_interval)
                printf("  %6.3f  %.3f … %.3f", r.value, r.low, r.high);
        else
                printf("  %6.3f  %13s", r.value, "no interval");
}

static void print_rows(const struct round *r, const struct figures *figures) {
        for (enum way way = 0; way < WAY_COUNT; way++) {
                double rate = series_median(&figures[way].rate);
                printf("%8zu  %-9s  %10.0f  %8.1f", r->size, way_names[way], rate, rate * (double) r->size / 1e6);
                print_ratio(&figures[way].rate, &figures[WAY_RECV].rate);
                printf("  %9.0f", series_median(&figures[way].cpu));
                print_ratio(&figures[way].cpu, &figures[WAY_RECV].cpu);
                printf("\n");
        }
        (void) fflush(stdout);
}

static void print_heading(const struct round *r, unsigned rounds) {
        printf("%s, %u threads, CPUs %d and %d; %u buffers of %zu bytes; %u rounds of %g s, interleaved\n"
               "%8s  %-9s  %10s  %8s  %6s  %-15s  %9s  %6s  %s\n",
               workload_names[r->workload], r->threads, r->cpus[0], r->cpus[1], r->n_buffers, r->buffer, rounds,
               r->seconds, "bytes", "way", "messages/s", "MB/s", "ratio", "95 % interval", "CPU ns", "ratio",
               "95 % interval");
}

static int run_size(struct round *r, unsigned rounds) {
        static struct figures figures[WAY_COUNT];
        memset(figures, 0, sizeof figures);
        for (unsigned i = 0; i < rounds; i++)
                for (unsigned k = 0; k < WAY_COUNT; k++) {
                        r->way = (enum way)((i + k) % WAY_COUNT);
                        int error = run_round(r, &figures[r->way]);
                        if (error < 0) {
                                fprintf(stderr, "tcp-multishot: %s, %zu bytes: %s\n", way_names[r->way], r->size,
                                        strerrordesc_np(-error));
                                return error;
                        }
                }
        print_rows(r, figures);
        return 0;
}

static size_t parse_sizes(char *text, size_t *sizes) {
        size_t n = 0;
        char *rest = NULL;
        for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
                if (n == SIZES_MAX || (sizes[n] = strtoull(word, NULL, 10)) == 0)
                        return 0;
                n++;
        }
        return n;
}

static int parse_workload(const char *text, enum workload *ret) {
        for (enum workload w = 0; w < WORKLOAD_COUNT; w++)
                if (strcmp(text, workload_names[w]) == 0) {
                        *ret = w;
                        return 0;
                }
        return -EINVAL;
}

struct options {
        struct round round;
        size_t sizes[SIZES_MAX], n_sizes;
        unsigned rounds;
};

/* 0 or -EINVAL. */
static int parse_option(int c, char *value, struct options *o) {
        struct round *r = &o->round;
        switch (c) {
        case 'w':
                return parse_workload(value, &r->workload);
        case 'n':
                o->n_sizes = parse_sizes(value, o->sizes);
                return o->n_sizes ? 0 : -EINVAL;
        case 'r':
                o->rounds = (unsigned) strtoul(value, NULL, 10);
                return o->rounds > 0 && o->rounds <= ROUNDS_MAX ? 0 : -EINVAL;
        case 's':
                r->seconds = strtod(value, NULL);
                return r->seconds >= 0.01 && r->seconds <= 10 ? 0 : -EINVAL;
        case 't':
                r->threads = (unsigned) strtoul(value, NULL, 10);
                return r->threads > 0 && r->threads <= THREADS_MAX ? 0 : -EINVAL;
        case 'b':
                r->buffer = strtoull(value, NULL, 10);
                return r->buffer > 0 && r->buffer <= BUFFER_MAX ? 0 : -EINVAL;
        case 'k':
                r->n_buffers = (unsigned) strtoul(value, NULL, 10);
                return r->n_buffers > 0 && r->n_buffers <= BUFFERS_MAX && !(r->n_buffers & (r->n_buffers - 1))
                               ? 0
                               : -EINVAL;
        case 'c':
                return sscanf(value, "%d,%d", &r->cpus[0], &r->cpus[1]) == 2 ? 0 : -EINVAL;
        default:
                return -EINVAL;
        }
}

static void usage(void) {
        fprintf(stderr, "usage: tcp-multishot [options]\n"
                        "  --workload WORD    stream, pingpong or both: a stream each way (default stream)\n"
                        "  --sizes N,N...     bytes of a message (default 64,1024,4096,16384,65536,262144,1048576)\n"
                        "  --threads N        of each end, with a connection each (default 1)\n"
                        "  --cpus A,B         of the sender and of the receiver; -1 = not pinned (default 0,1)\n"
                        "  --buffer BYTES     of a buffer, --buffers N of them, a power of two (default 8 of 16384)\n"
                        "  --rounds N         (default 9), --seconds S of each (default 0.2)\n");
}

int main(int argc, char **argv) {
        static const struct option table[] = {
                {"workload", required_argument, NULL, 'w'},
                {"sizes", required_argument, NULL, 'n'},
                {"rounds", required_argument, NULL, 'r'},
                {"seconds", required_argument, NULL, 's'},
                {"threads", required_argument, NULL, 't'},
                {"buffer", required_argument, NULL, 'b'},
                {"buffers", required_argument, NULL, 'k'},
                {"cpus", required_argument, NULL, 'c'},
                {},
        };
        static struct options o = {
                .round = {.buffer = 16384, .n_buffers = 8, .threads = 1, .seconds = 0.2, .cpus = {0, 1}},
                .sizes = {64, 1024, 4096, 16384, 65536, 262144, 1048576},
                .n_sizes = 7,
                .rounds = 9};
        int c;
        while ((c = getopt_long(argc, argv, "", table, NULL)) >= 0)
                if (parse_option(c, optarg, &o) < 0) {
                        usage();
                        return 2;
                }
        o.round.warmup = o.round.seconds / 4;
        o.round.cpu_ns = mmap(NULL, sizeof *o.round.cpu_ns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (o.round.cpu_ns == MAP_FAILED)
                return 1;
        print_heading(&o.round, o.rounds);
        for (size_t i = 0; i < o.n_sizes; i++) {
                o.round.size = o.sizes[i];
                if (run_size(&o.round, o.rounds) < 0)
                        return 1;
        }
        return 0;
}
