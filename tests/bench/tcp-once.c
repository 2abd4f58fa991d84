/* SPDX-License-Identifier: MIT */

/* One round over TCP, of the hand-written loops or of a pair of real agents with sampling on; the figures as JSON.
 * tests/bench/tcp runs it, turn about with other contenders. */

#include "schema/util.h"
#include "tests/bench/driver.h"
#include "tests/bench/hand-tcp.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

struct options {
        const char *agent;
        bool hand;
        struct hand_tcp tcp;
        enum engine engine;
};

static void print(const struct options *o, const struct hand_tcp_figures *f) {
        printf("{\"bytes_per_second\": %.0f, \"messages_per_second\": %.1f, \"p50_ns\": %.0f}\n",
               f->messages_per_second * (double) o->tcp.size, f->messages_per_second, f->p50_ns);
}

static int run_agents(const struct options *o, struct hand_tcp_figures *ret) {
        struct driver d;
        struct latency_summary latency = {};
        struct driver_spec s = driver_spec_default(o->agent);
        s.point.transport = TRANSPORT_TCP;
        s.point.workload = o->tcp.pingpong ? WORKLOAD_PINGPONG : WORKLOAD_STREAM;
        s.point.message_size = o->tcp.size;
        s.point.threads = o->tcp.threads;
        s.point.copy_mode = o->tcp.mode;
        s.point.engine = o->engine;
        s.point.fields = o->tcp.fields;
        s.verify = o->tcp.verify;
        s.duration_ns = (uint64_t) (o->tcp.seconds * 1e9);
        s.warmup_ns = (uint64_t) (o->tcp.warmup * 1e9);
        s.interval_ns = s.duration_ns / 3; /* more often than once a second: sampling is to be paid for */
        memcpy(s.cpus, o->tcp.cpus, sizeof s.cpus);

        int r = driver_run(&d, &s);
        const struct driver_end *e = &d.ends[o->tcp.pingpong ? END_FIRST : END_SECOND];
        if (r < 0)
                fprintf(stderr, "tcp-once: agents: %s\n", d.trouble);
        else
                ret->messages_per_second = (double) e->report.messages * 1e9 / (double) e->report.window_ns;
        if (r == 0 && histogram_summarize(&e->latency, &latency) == 0)
                ret->p50_ns = (double) latency.p50;
        driver_deinit(&d);
        return r;
}

static int bad(const char *what, const char *value) {
        fprintf(stderr, "tcp-once: %s: %s\n", what, value);
        return -EINVAL;
}

static int parse_cpus(const char *value, int cpus[2]) {
        char end;
        return sscanf(value, "%d,%d%c", &cpus[0], &cpus[1], &end) == 2 ? 0 : bad("--cpus wants A,B", value);
}

static int parse_word(const struct vocabulary *words, const char *what, const char *value, unsigned *ret) {
        int word = vocabulary_find(words, value);
        if (word < 0)
                return bad(what, value);
        *ret = (unsigned) word;
        return 0;
}

static int parse_option(int c, const char *value, struct options *o) {
        switch (c) {
        case 'a':
                o->agent = value;
                return 0;
        case 'h':
                o->hand = true;
                return 0;
        case 'p':
                o->tcp.pingpong = true;
                return 0;
        case 'm':
                return parse_word(&copy_mode_words, "--copy-mode", value, &o->tcp.mode);
        case 'e':
                return parse_word(&engine_words, "--engine", value, &o->engine);
        case 'v':
                return parse_word(&verify_words, "--verify", value, &o->tcp.verify);
        case 'n':
                o->tcp.size = strtoull(value, NULL, 10);
                return o->tcp.size ? 0 : bad("--size wants bytes", value);
        case 'f':
                o->tcp.fields = (unsigned) strtoul(value, NULL, 10);
                return o->tcp.fields ? 0 : bad("--fields wants a number", value);
        case 't':
                o->tcp.threads = (unsigned) strtoul(value, NULL, 10);
                return o->tcp.threads ? 0 : bad("--threads wants a number", value);
        case 's':
                o->tcp.seconds = strtod(value, NULL);
                return o->tcp.seconds >= 0.01 && o->tcp.seconds <= 30 ? 0 : bad("--seconds must be 0.01 to 30", value);
        case 'w':
                o->tcp.warmup = strtod(value, NULL);
                return o->tcp.warmup >= 0 && o->tcp.warmup <= 10 ? 0 : bad("--warmup must be 0 to 10", value);
        case 'c':
                return parse_cpus(value, o->tcp.cpus);
        default:
                return -EINVAL;
        }
}

int main(int argc, char **argv) {
        static const struct option table[] = {
                {"agent", required_argument, NULL, 'a'},
                {"hand", no_argument, NULL, 'h'},
                {"pingpong", no_argument, NULL, 'p'},
                {"copy-mode", required_argument, NULL, 'm'},
                {"engine", required_argument, NULL, 'e'},
                {"verify", required_argument, NULL, 'v'},
                {"size", required_argument, NULL, 'n'},
                {"fields", required_argument, NULL, 'f'},
                {"threads", required_argument, NULL, 't'},
                {"seconds", required_argument, NULL, 's'},
                {"warmup", required_argument, NULL, 'w'},
                {"cpus", required_argument, NULL, 'c'},
                {},
        };
        struct options o = {.agent = IPCLAB_AGENT,
                            .tcp = {.verify = VERIFY_TOUCH,
                                    .size = 65536,
                                    .fields = SPEC_FIELDS_OF_STUDY,
                                    .threads = 1,
                                    .warmup = 0.1,
                                    .seconds = 0.4,
                                    .cpus = {0, 1}}};
        struct hand_tcp_figures figures = {};
        int c;
        while ((c = getopt_long(argc, argv, "", table, NULL)) >= 0)
                if (parse_option(c, optarg, &o) < 0)
                        return 2;
        int r = o.hand ? hand_tcp_run(&o.tcp, &figures) : run_agents(&o, &figures);
        if (r < 0) {
                fprintf(stderr, "tcp-once: %s\n", strerrordesc_np(-r));
                return 1;
        }
        print(&o, &figures);
        return 0;
}
