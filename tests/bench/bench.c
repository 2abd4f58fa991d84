/* SPDX-License-Identifier: MIT */

/*
 * What the harness costs: for each transport, workload and message size the hand-written loop (hand.h) and a pair of
 * real agents with sampling on, turn about in many short rounds, and the ratio of the medians. At least 0.97 is what
 * ipclab promises.
 */

#include "schema/util.h"
#include "tests/bench/driver.h"
#include "tests/bench/hand.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#define PROMISE 0.97
#define ROUNDS_MAX 999u
#define PIPE_SIZE_DEFAULT 65536u
#define QUEUE_BYTES 131072u /* at most, of a System V queue: hand_isolate_queues() */
#define QUEUE_DEPTH 6u      /* of a POSIX queue: two of 64 KiB messages fit the usual RLIMIT_MSGQUEUE */

struct options {
        const char *agent;
        unsigned rounds;
        double seconds;
        int cpus[2];
        enum verify verify;
        uint64_t pipe_size;
        int transport, engine, copy_mode, workload; /* -1: all */
        uint64_t size;                              /* 0: all */
        bool check;
        uint64_t queue_message_max;
};

/* What is compared: a line here, and one in hand.c. */
struct subject {
        enum transport transport;
        enum engine engine;
        enum copy_mode copy_mode;
};

static const struct subject subjects[] = {
        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_TWO},
        {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_TWO},
        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_ONE},
        {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_ONE},
        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_ZERO},
        {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_ZERO},
        {TRANSPORT_UNIX_STREAM, ENGINE_SYSCALL, COPY_TWO},
        {TRANSPORT_UNIX_STREAM, ENGINE_SYSCALL, COPY_ONE},
        {TRANSPORT_UNIX_DGRAM, ENGINE_SYSCALL, COPY_TWO},
        {TRANSPORT_UNIX_DGRAM, ENGINE_SYSCALL, COPY_ONE},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_SYSCALL, COPY_TWO},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_SYSCALL, COPY_ONE},
        {TRANSPORT_MSGQ_SYSV, ENGINE_SYSCALL, COPY_TWO},
        {TRANSPORT_MSGQ_POSIX, ENGINE_SYSCALL, COPY_TWO},
        {TRANSPORT_FILE, ENGINE_SYSCALL, COPY_TWO},
        {TRANSPORT_FILE, ENGINE_IO_URING, COPY_TWO},
        {TRANSPORT_PIPE, ENGINE_IO_URING, COPY_TWO},
        {TRANSPORT_FIFO, ENGINE_IO_URING, COPY_TWO},
        {TRANSPORT_UNIX_STREAM, ENGINE_IO_URING, COPY_TWO},
        {TRANSPORT_UNIX_DGRAM, ENGINE_IO_URING, COPY_TWO},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_IO_URING, COPY_TWO},
};

struct row {
        const struct subject *subject;
        enum workload workload;
        uint64_t size;
};

struct series {
        double values[ROUNDS_MAX];
        unsigned n;
};

static int by_value(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;
        return (x > y) - (x < y);
}

static double median(struct series *s) {
        qsort(s->values, s->n, sizeof s->values[0], by_value);
        return s->n % 2 ? s->values[s->n / 2] : (s->values[s->n / 2 - 1] + s->values[s->n / 2]) / 2;
}

/*
 * Messages that a stream takes to its steady state, and to leave it. A pipe holds many small messages, and while it
 * fills both ends fight for it all the time, which they do not later. A clock that begins before that, or ends after
 * the sender has, measures something else: both kinds of loop are given the same start and the same tail.
 */
static uint64_t messages_to_steady(const struct options *o, const struct row *row) {
        uint64_t bytes = row->subject->transport == TRANSPORT_MSGQ_SYSV ? QUEUE_BYTES : PIPE_SIZE_DEFAULT;
        uint64_t held = (o->pipe_size ? o->pipe_size : bytes) / row->size;
        return row->workload == WORKLOAD_STREAM ? 2 * held : 0;
}

/* One round of agents: messages per second in the window of the end that the figure belongs to. rate: what is expected;
 * 0 = not known yet. */
static int agents_once(const struct options *o, const struct row *row, double seconds, double rate, double *ret_rate) {
        struct driver d;
        struct driver_spec s = driver_spec_default(o->agent);
        s.point.transport = row->subject->transport;
        s.point.engine = row->subject->engine;
        s.point.copy_mode = row->subject->copy_mode;
        s.point.fields = s.point.copy_mode == COPY_ONE ? SPEC_FIELDS_STANDARD : 0;
        s.point.workload = row->workload;
        s.point.message_size = row->size;
        s.verify = o->verify;
        s.duration_ns = (uint64_t) (seconds * 1e9);
        s.warmup_ns = s.duration_ns / 8;
        if (rate > 0)
                s.warmup_ns += (uint64_t) ((double) messages_to_steady(o, row) * 1e9 / rate);
        s.interval_ns = s.duration_ns / 3; /* more often than once a second: sampling is to be paid for */
        s.options.pipe_size = o->pipe_size;
        s.options.msgq_depth = row->subject->transport == TRANSPORT_MSGQ_POSIX ? QUEUE_DEPTH : 0;
        memcpy(s.cpus, o->cpus, sizeof s.cpus);

        int r = driver_run(&d, &s);
        const struct message_report *report = &d.ends[row->workload == WORKLOAD_STREAM ? END_SECOND : END_FIRST].report;
        if (r == 0)
                *ret_rate = (double) report->messages * 1e9 / (double) report->window_ns;
        else
                fprintf(stderr, "bench: agents: %s\n", d.trouble);
        driver_deinit(&d);
        return r;
}

static int hand_once(const struct options *o, const struct row *row, double rate, double *ret_rate) {
        struct hand h = {
                .workload = row->workload,
                .transport = row->subject->transport,
                .engine = row->subject->engine,
                .copy_mode = row->subject->copy_mode,
                .verify = o->verify,
                .size = row->size,
                .messages = (uint64_t) (rate * o->seconds) + 1,
                .warmup = (uint64_t) (rate * o->seconds / 8) + messages_to_steady(o, row),
                .tail = messages_to_steady(o, row),
                .pipe_size = o->pipe_size,
                .msgq_depth = QUEUE_DEPTH,
                .cpus = {o->cpus[0], o->cpus[1]},
        };
        int r = hand_run(&h, ret_rate);
        if (r < 0)
                fprintf(stderr, "bench: hand-written loop: %s\n", strerrordesc_np(-r));
        return r;
}

/* Turn about, who begins alternating too. */
static int run_row(const struct options *o, const struct row *row, struct series *hand, struct series *agents) {
        double rate, agents_rate, hand_rate;
        int r = agents_once(o, row, o->seconds / 2, 0,
                            &rate); /* how many messages a round of the hand-written loop takes */
        for (unsigned i = 0; r == 0 && i < o->rounds; i++) {
                if (i % 2 == 0)
                        r = hand_once(o, row, rate, &hand_rate);
                if (r == 0)
                        r = agents_once(o, row, o->seconds, rate, &agents_rate);
                if (r == 0 && i % 2 == 1)
                        r = hand_once(o, row, rate, &hand_rate);
                if (r == 0) {
                        hand->values[hand->n++] = hand_rate;
                        agents->values[agents->n++] = agents_rate;
                }
        }
        return r;
}

/* Prints a row: the ratio of the medians, and beside it the median of each round's own ratio, which a load that comes
 * and goes disturbs less. Returns whether it keeps the promise. */
static bool print_row(const struct row *row, struct series *hand, struct series *agents) {
        static struct series paired;
        paired.n = 0;
        for (unsigned i = 0; i < hand->n; i++)
                paired.values[paired.n++] = agents->values[i] / hand->values[i];
        double h = median(hand), a = median(agents), ratio = a / h;
        printf("%-14s %-8s %-9s %-9s %8" PRIu64 " %12.0f %12.0f %12.0f %12.0f %12.0f %12.0f  %.3f  %.3f%s\n",
               transport_name(row->subject->transport), engine_name(row->subject->engine),
               copy_mode_name(row->subject->copy_mode), workload_name(row->workload), row->size, h, hand->values[0],
               hand->values[hand->n - 1], a, agents->values[0], agents->values[agents->n - 1], ratio, median(&paired),
               ratio < PROMISE ? "  below 0.97" : "");
        (void) fflush(stdout);
        return ratio >= PROMISE;
}

static bool wanted(const struct options *o, const struct row *row) {
        return (o->transport < 0 || o->transport == (int) row->subject->transport) &&
               (o->engine < 0 || o->engine == (int) row->subject->engine) &&
               (o->copy_mode < 0 || o->copy_mode == (int) row->subject->copy_mode) &&
               (o->workload < 0 || o->workload == (int) row->workload) && (o->size == 0 || o->size == row->size);
}

/* 0: as promised; 1: below; negative errno. */
static int run_and_print(const struct options *o, const struct row *row) {
        static struct series hand, agents;
        hand.n = agents.n = 0;
        int r = run_row(o, row, &hand, &agents);
        return r < 0 ? r : !print_row(row, &hand, &agents);
}

/* Queues take what their namespace says, and where that cannot be raised it is the kernel's 8192 bytes. */
static bool is_too_long(const struct options *o, const struct row *row) {
        enum transport t = row->subject->transport;
        if ((t != TRANSPORT_MSGQ_SYSV && t != TRANSPORT_MSGQ_POSIX) || row->size <= o->queue_message_max)
                return false;
        printf("%-14s %" PRIu64 " bytes are more than a queue takes here: %" PRIu64 "\n", transport_name(t), row->size,
               o->queue_message_max);
        return true;
}

static int run_subject(const struct options *o, const struct subject *subject, unsigned *rows, unsigned *low) {
        static const enum workload workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};
        static const uint64_t sizes[] = {1, 64, 4096, 65536};
        for (size_t w = 0; w < ELEMENTS(workloads); w++)
                for (size_t i = 0; i < ELEMENTS(sizes); i++) {
                        struct row row = {subject, workloads[w], sizes[i]};
                        if (!wanted(o, &row) || is_too_long(o, &row))
                                continue;
                        int r = run_and_print(o, &row);
                        if (r < 0)
                                return r;
                        *rows += 1;
                        *low += (unsigned) r;
                }
        return 0;
}

static int run_all(const struct options *o) {
        unsigned rows = 0, low = 0;

        printf("messages/s, %u rounds of %.2f s each, interleaved; CPUs %d and %d; verify %s\n", o->rounds, o->seconds,
               o->cpus[0], o->cpus[1], verify_name(o->verify));
        printf("%-14s %-8s %-9s %-9s %8s %12s %12s %12s %12s %12s %12s  %s  %s\n", "", "", "", "", "size", "hand",
               "min", "max", "agents", "min", "max", "ratio", "paired");
        for (size_t i = 0; i < ELEMENTS(subjects); i++)
                if (run_subject(o, &subjects[i], &rows, &low) < 0)
                        return 1;
        if (low)
                printf("%u of %u rows are below %.2f of the hand-written loop\n", low, rows, PROMISE);
        else
                printf("all %u rows reach %.2f of the hand-written loop\n", rows, PROMISE);
        return low && o->check;
}

static void usage(FILE *f) {
        fputs("usage: bench [options]\n"
              "  --agent PATH         the agent to measure (default: agent/ipclab-agent in the build directory)\n"
              "  --rounds N           per row (default 11)\n"
              "  --seconds S          of one round (default 0.3)\n"
              "  --cpus A,B           first and second end; -1 = not pinned (default 0,1)\n"
              "  --verify WORD        none, touch or checksum (default touch)\n"
              "  --pipe-size BYTES    for both (default: as it comes)\n"
              "  --transport WORD, --engine WORD, --copy-mode WORD, --workload WORD, --size BYTES   only these rows\n"
              "  --check              exit 1 when a row is below 0.97\n",
              f);
}

static int bad(const char *what, const char *value) {
        fprintf(stderr, "bench: %s: %s\n", what, value);
        return -EINVAL;
}

static int parse_cpus(const char *value, int cpus[2]) {
        char *end;
        long first = strtol(value, &end, 10);
        if (end == value || *end != ',')
                return -EINVAL;
        value = end + 1;
        long second = strtol(value, &end, 10);
        if (end == value || *end != '\0' || first < -1 || second < -1 || first > INT32_MAX || second > INT32_MAX)
                return -EINVAL;
        cpus[0] = (int) first;
        cpus[1] = (int) second;
        return 0;
}

static int parse_option(int c, const char *value, struct options *o) {
        enum transport t;
        enum engine e;
        enum copy_mode m;
        enum workload w;
        switch (c) {
        case 'a':
                o->agent = value;
                return 0;
        case 'r':
                o->rounds = (unsigned) strtoul(value, NULL, 10);
                return o->rounds >= 1 && o->rounds <= ROUNDS_MAX ? 0 : bad("--rounds must be 1 to 999", value);
        case 's':
                o->seconds = strtod(value, NULL);
                return o->seconds >= 0.01 && o->seconds <= 60 ? 0 : bad("--seconds must be 0.01 to 60", value);
        case 'c':
                return parse_cpus(value, o->cpus) == 0 ? 0 : bad("--cpus wants A,B", value);
        case 'v':
                return verify_from_name(value, &o->verify) == 0 ? 0 : bad("--verify", value);
        case 'p':
                o->pipe_size = strtoull(value, NULL, 10);
                return o->pipe_size ? 0 : bad("--pipe-size wants bytes", value);
        case 't':
                if (transport_from_name(value, &t) < 0)
                        return bad("--transport", value);
                o->transport = (int) t;
                return 0;
        case 'e':
                if (engine_from_name(value, &e) < 0)
                        return bad("--engine", value);
                o->engine = (int) e;
                return 0;
        case 'm':
                if (copy_mode_from_name(value, &m) < 0)
                        return bad("--copy-mode", value);
                o->copy_mode = (int) m;
                return 0;
        case 'w':
                if (workload_from_name(value, &w) < 0)
                        return bad("--workload", value);
                o->workload = (int) w;
                return 0;
        case 'n':
                o->size = strtoull(value, NULL, 10);
                return o->size ? 0 : bad("--size wants bytes", value);
        case 'k':
                o->check = true;
                return 0;
        default:
                usage(stderr);
                return -EINVAL;
        }
}

int main(int argc, char **argv) {
        static const struct option table[] = {
                {"agent", required_argument, NULL, 'a'},
                {"rounds", required_argument, NULL, 'r'},
                {"seconds", required_argument, NULL, 's'},
                {"cpus", required_argument, NULL, 'c'},
                {"verify", required_argument, NULL, 'v'},
                {"pipe-size", required_argument, NULL, 'p'},
                {"transport", required_argument, NULL, 't'},
                {"engine", required_argument, NULL, 'e'},
                {"copy-mode", required_argument, NULL, 'm'},
                {"workload", required_argument, NULL, 'w'},
                {"size", required_argument, NULL, 'n'},
                {"check", no_argument, NULL, 'k'},
                {"help", no_argument, NULL, 'h'},
                {},
        };
        struct options o = {.agent = IPCLAB_AGENT,
                            .rounds = 11,
                            .seconds = 0.3,
                            .cpus = {0, 1},
                            .verify = VERIFY_TOUCH,
                            .transport = -1,
                            .engine = -1,
                            .copy_mode = -1,
                            .workload = -1};
        int c;
        while ((c = getopt_long(argc, argv, "", table, NULL)) >= 0) {
                if (c == 'h') {
                        usage(stdout);
                        return 0;
                }
                if (parse_option(c, optarg, &o) < 0)
                        return 2;
        }
        o.queue_message_max = hand_isolate_queues();
        return run_all(&o);
}
