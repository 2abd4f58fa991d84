/* SPDX-License-Identifier: MIT */

/*
 * What the agents reach over shared memory beside loops written by hand, turn about in many short rounds:
 *
 *      ring       each carrier, wait, workload and size: by hand, by agents as they are in a run, and by agents that
 *                 neither sample nor time; the ratios of the medians
 *      hand-over  spin, pingpong of a byte, against two cache lines that two CPUs hand to each other
 *      memcpy     spin, stream, against memcpy() into memory of the ring's size: by one CPU alone, and with the other
 *                 reading every line between the passes
 */

#include "schema/ring-layout.h"
#include "schema/util.h"
#include "tests/bench/driver.h"
#include "tests/bench/hand-shm.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#define PROMISE_RING 0.97
#define PROMISE_HANDOVER 0.90 /* "within 10 %" */
#define PROMISE_MEMCPY 0.90
#define ROUNDS_MAX 99u

struct options {
        const char *agent;
        unsigned rounds;
        double seconds;
        int cpus[2];
        enum verify verify;
        int transport, workload, wait; /* -1: all */
        uint64_t size;                 /* 0: all */
        const char *part;              /* NULL: all */
};

struct row {
        enum transport transport;
        enum workload workload;
        enum wait_mode wait;
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

/* After median(). What is left of a disturbed machine: two spinners stand still when either is kept off its CPU. */
static double best(const struct series *s) {
        return s->values[s->n - 1];
}

static void add(struct series *s, double value) {
        s->values[s->n++] = value;
}

/* Messages per second; *ret_p50, where asked for, is the initiator's median round trip in ns. */
static int agents_once(const struct options *o, const struct row *row, bool bare, double *ret_rate, double *ret_p50) {
        struct driver d;
        struct driver_spec s = driver_spec_default(o->agent);
        s.point.transport = row->transport;
        s.point.workload = row->workload;
        s.point.wait = row->wait;
        s.point.message_size = row->size;
        s.verify = o->verify;
        s.duration_ns = (uint64_t) (o->seconds * 1e9);
        s.warmup_ns = s.duration_ns / 8;
        s.interval_ns = bare ? 0 : s.duration_ns / 3;
        memcpy(s.cpus, o->cpus, sizeof s.cpus);

        int r = driver_run(&d, &s);
        const struct message_report *report = &d.ends[row->workload == WORKLOAD_STREAM ? END_SECOND : END_FIRST].report;
        struct latency_summary l;
        if (r == 0)
                *ret_rate = (double) report->messages * 1e9 / (double) report->window_ns;
        else
                fprintf(stderr, "bench: agents: %s\n", d.trouble);
        if (r == 0 && ret_p50)
                *ret_p50 = histogram_summarize(&d.ends[END_FIRST].latency, &l) == 0 ? (double) l.p50 : 0;
        driver_deinit(&d);
        return r;
}

static uint32_t slots_of(const struct row *row) {
        struct point p = {.workload = row->workload, .message_size = row->size, .threads = 1};
        struct transport_options none = {};
        return ring_layout_of(&p, &none, 4096).slots;
}

static int hand_once(const struct options *o, const struct row *row, double rate, double *ret_rate) {
        struct hand_shm h = {
                .workload = row->workload,
                .transport = row->transport,
                .wait = row->wait,
                .verify = o->verify,
                .size = row->size,
                .slots = slots_of(row),
                .messages = (uint64_t) (rate * o->seconds) + 1,
                .warmup = (uint64_t) (rate * o->seconds / 8) + 1,
                .cpus = {o->cpus[0], o->cpus[1]},
        };
        int r = hand_shm_run(&h, ret_rate);
        if (r < 0)
                fprintf(stderr, "bench: hand-written loop: %s\n", strerrordesc_np(-r));
        return r;
}

static int ring_row(const struct options *o, const struct row *row) {
        static struct series hand, agents, bare;
        double rate = 0, v = 0;
        hand.n = agents.n = bare.n = 0;
        int r = agents_once(o, row, true, &rate, NULL);
        for (unsigned i = 0; r == 0 && i < o->rounds; i++)
                for (unsigned k = 0; r == 0 && k < 3; k++)
                        switch ((i + k) % 3) {
                        case 0:
                                r = hand_once(o, row, rate, &v);
                                add(&hand, v);
                                break;
                        case 1:
                                r = agents_once(o, row, false, &v, NULL);
                                add(&agents, v);
                                break;
                        default:
                                r = agents_once(o, row, true, &v, NULL);
                                add(&bare, v);
                        }
        if (r < 0)
                return r;
        double h = median(&hand), a = median(&agents), b = median(&bare);
        printf("%-14s %-6s %-8s %8" PRIu64 " %12.0f %12.0f %12.0f   %.3f %.3f  %.3f %.3f%s\n",
               transport_name(row->transport), wait_mode_name(row->wait), workload_name(row->workload), row->size, h, a,
               b, a / h, b / h, best(&agents) / best(&hand), best(&bare) / best(&hand),
               a / h >= PROMISE_RING   ? ""
               : b / h >= PROMISE_RING ? "  below 0.97 by what timing costs"
                                       : "  below 0.97");
        (void) fflush(stdout);
        return a / h >= PROMISE_RING ? 0 : 1;
}

static int ring_rows(const struct options *o) {
        static const enum transport transports[] = {TRANSPORT_SHM_POSIX, TRANSPORT_SHM_SYSV, TRANSPORT_MMAP_FILE,
                                                    TRANSPORT_MMAP_ANONYMOUS};
        static const enum workload workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};
        static const uint64_t sizes[] = {1, 64, 4096, 65536, 4u << 20};
        int low = 0;
        printf("%-14s %-6s %-8s %8s %12s %12s %12s   %s\n", "", "", "", "size", "hand", "agents", "untimed",
               "agents/hand, untimed/hand; the same of the best rounds");
        for (size_t t = 0; t < ELEMENTS(transports); t++)
                for (enum wait_mode wait = WAIT_BLOCK; wait < WAIT_COUNT; wait++)
                        for (size_t w = 0; w < ELEMENTS(workloads); w++)
                                for (size_t i = 0; i < ELEMENTS(sizes); i++) {
                                        struct row row = {transports[t], workloads[w], wait, sizes[i]};
                                        if ((o->transport >= 0 && o->transport != (int) row.transport) ||
                                            transport_terms[row.transport].unavailable ||
                                            (o->workload >= 0 && o->workload != (int) row.workload) ||
                                            (o->wait >= 0 && o->wait != (int) wait) || (o->size && o->size != row.size))
                                                continue;
                                        int r = ring_row(o, &row);
                                        if (r < 0)
                                                return r;
                                        low += r;
                                }
        printf("%d of these rows are below %.2f\n\n", low, PROMISE_RING);
        return 0;
}

static int handover_row(const struct options *o) {
        struct row row = {TRANSPORT_SHM_POSIX, WORKLOAD_PINGPONG, WAIT_SPIN, 1};
        static struct series lines, bare, timed, p50;
        double rate = 0, v = 0, l = 0;
        int r = hand_handover_run(o->cpus, 200000, &rate);
        for (unsigned i = 0; r == 0 && i < o->rounds; i++) {
                r = hand_handover_run(o->cpus, (uint64_t) (rate * o->seconds) + 8, &v);
                add(&lines, v);
                if (r == 0)
                        r = agents_once(o, &row, true, &v, NULL);
                add(&bare, v);
                if (r == 0)
                        r = agents_once(o, &row, false, &v, &l);
                add(&timed, v);
                add(&p50, l);
        }
        if (r < 0)
                return r;
        double two = median(&lines), b = median(&bare), t = median(&timed);
        printf("hand-over of two cache lines: %.0f ns a round trip; agents untimed %.0f ns, ratio %.3f%s; timed %.0f "
               "ns "
               "between two beginnings, ratio %.3f; p50 of what they measure %.0f ns, ratio %.3f\n\n",
               1e9 / two, 1e9 / b, b / two, b / two < PROMISE_HANDOVER ? "  below 0.90" : "", 1e9 / t, t / two,
               median(&p50), 1e9 / two / median(&p50));
        return 0;
}

static int memcpy_row(const struct options *o, uint64_t size) {
        struct row row = {TRANSPORT_SHM_POSIX, WORKLOAD_STREAM, WAIT_SPIN, size};
        static struct series plain, shared, agents;
        uint32_t slots = slots_of(&row);
        double rate = 0, v = 0;
        plain.n = shared.n = agents.n = 0;
        int r = hand_memcpy_run(o->cpus, size, slots, 16, 1, &rate);
        uint64_t passes = (uint64_t) (rate * o->seconds / 3 / (double) (slots * size)) + 16;
        for (unsigned i = 0; r == 0 && i < o->rounds; i++) {
                r = hand_memcpy_run(o->cpus, size, slots, passes, 0, &v);
                add(&plain, v);
                if (r == 0)
                        r = hand_memcpy_run(o->cpus, size, slots, passes, 1, &v);
                add(&shared, v);
                if (r == 0)
                        r = agents_once(o, &row, false, &v, NULL);
                add(&agents, v * (double) size);
        }
        if (r < 0)
                return r;
        double p = median(&plain), s = median(&shared), a = median(&agents);
        printf("%8" PRIu64 " %12.2f %12.2f %12.2f   %.3f %.3f  %.3f %.3f%s\n", size, p / 1e9, s / 1e9, a / 1e9, a / p,
               a / s, best(&agents) / best(&plain), best(&agents) / best(&shared),
               a / s < PROMISE_MEMCPY ? "  below 0.90" : "");
        (void) fflush(stdout);
        return 0;
}

static int memcpy_rows(const struct options *o) {
        static const uint64_t sizes[] = {64, 4096, 65536, 4u << 20};
        int r = 0;
        printf("%8s %12s %12s %12s   agents/alone, agents/read; the same of the best rounds\n", "size", "GB/s alone",
               "read by peer", "agents");
        for (size_t i = 0; r == 0 && i < ELEMENTS(sizes); i++)
                if (o->size == 0 || o->size == sizes[i])
                        r = memcpy_row(o, sizes[i]);
        return r;
}

static int run_all(const struct options *o) {
        int r = 0;
        printf("messages/s, %u rounds of %.2f s each, interleaved; CPUs %d and %d; verify %s\n", o->rounds, o->seconds,
               o->cpus[0], o->cpus[1], verify_name(o->verify));
        if (!o->part || strcmp(o->part, "ring") == 0)
                r = ring_rows(o);
        if (r == 0 && (!o->part || strcmp(o->part, "handover") == 0))
                r = handover_row(o);
        if (r == 0 && (!o->part || strcmp(o->part, "memcpy") == 0))
                r = memcpy_rows(o);
        return r < 0 ? 1 : 0;
}

static void usage(FILE *f) {
        fputs("usage: bench-shm [--part ring|handover|memcpy] [--transport T] [--workload W] [--wait M] [--size "
              "BYTES]\n"
              "                 [--rounds N] [--seconds S] [--cpus A,B] [--verify V] [--agent PATH]\n",
              f);
}

/* 0; -EINVAL for what is no value of this option. */
static int parse_option(int c, const char *value, struct options *o) {
        enum transport t;
        enum workload w;
        enum wait_mode m;
        int r = 0;
        switch (c) {
        case 'p':
                o->part = value;
                return 0;
        case 'a':
                o->agent = value;
                return 0;
        case 'r':
                o->rounds = (unsigned) strtoul(value, NULL, 10);
                return o->rounds >= 1 && o->rounds <= ROUNDS_MAX ? 0 : -EINVAL;
        case 's':
                o->seconds = strtod(value, NULL);
                return o->seconds >= 0.01 && o->seconds <= 60 ? 0 : -EINVAL;
        case 'c':
                return sscanf(value, "%d,%d", &o->cpus[0], &o->cpus[1]) == 2 ? 0 : -EINVAL;
        case 'v':
                return verify_from_name(value, &o->verify);
        case 't':
                r = transport_from_name(value, &t);
                o->transport = r == 0 ? (int) t : -1;
                return r;
        case 'w':
                r = workload_from_name(value, &w);
                o->workload = r == 0 ? (int) w : -1;
                return r;
        case 'm':
                r = wait_mode_from_name(value, &m);
                o->wait = r == 0 ? (int) m : -1;
                return r;
        case 'n':
                o->size = strtoull(value, NULL, 10);
                return o->size ? 0 : -EINVAL;
        default:
                return -EINVAL;
        }
}

int main(int argc, char **argv) {
        static const struct option table[] = {
                {"part", required_argument, NULL, 'p'},
                {"agent", required_argument, NULL, 'a'},
                {"rounds", required_argument, NULL, 'r'},
                {"seconds", required_argument, NULL, 's'},
                {"cpus", required_argument, NULL, 'c'},
                {"verify", required_argument, NULL, 'v'},
                {"transport", required_argument, NULL, 't'},
                {"workload", required_argument, NULL, 'w'},
                {"wait", required_argument, NULL, 'm'},
                {"size", required_argument, NULL, 'n'},
                {"help", no_argument, NULL, 'h'},
                {},
        };
        struct options o = {.agent = IPCLAB_AGENT,
                            .rounds = 9,
                            .seconds = 0.2,
                            .cpus = {0, 1},
                            .verify = VERIFY_TOUCH,
                            .transport = -1,
                            .workload = -1,
                            .wait = -1};
        int c;
        while ((c = getopt_long(argc, argv, "", table, NULL)) >= 0) {
                if (c == 'h') {
                        usage(stdout);
                        return 0;
                }
                if (parse_option(c, optarg, &o) < 0) {
                        fprintf(stderr, "bench-shm: %s is no value of this option\n", optarg ? optarg : "that");
                        usage(stderr);
                        return 2;
                }
        }
        return run_all(&o);
}
