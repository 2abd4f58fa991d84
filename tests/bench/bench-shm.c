/* SPDX-License-Identifier: MIT */

/*
 * What the agents reach over shared memory:
 *
 *      ring      each carrier, wait, workload and size: by hand (hand-shm.h), by agents as they are in a run, and by
 *                agents that neither sample nor time. These beside the former are what the harness costs a pingpong:
 *                at most 1 %, of one carrier at 1 and 4096 bytes
 *      handover  spin, pingpong of a byte, against two cache lines that two CPUs hand to each other
 *      memcpy    spin, stream, against memcpy() into memory of the ring's size: by one CPU alone, and with the other
 *                reading every line between the passes. A ring that fits the second-level cache is judged by the
 *                latter: alone, memcpy() stores into lines that it still owns, and a message that another CPU has read
 *                has to be fetched from that one's cache before it can be written anew, whatever carries it. Larger
 *                rings are judged by memcpy() alone, whose lines have left its own cache as well
 */

#include "schema/transport/ring-layout.h"
#include "schema/util.h"
#include "tests/bench/agents.h"
#include "tests/bench/hand-shm.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define PROMISE_RING 0.97
#define PROMISE_COST 0.99
#define WIDTH_COST 0.004      /* so that 1 % can be distinguished from none */
#define PROMISE_HANDOVER 0.90 /* "within 10 %" */
#define PROMISE_MEMCPY 0.90
#define PAGE 4096u
#define L2_GUESS_BYTES (1u << 20) /* where the C library does not know it */

/* Options that only this bench has. */
static struct {
        int wait; /* -1: all */
        bool all;
} only = {.wait = -1};

/* One row while it is measured. */
struct work {
        const struct bench *b;
        const struct bench_row *row;
        struct window window;
        double rate, p50_ns; /* of what the row is measured against, about; of the last round that had it */
        struct ring_layout ring;
};

static int work_begin(struct work *w, const struct bench *b, const struct bench_row *row) {
        struct point p = row->point;
        struct transport_options none = {};
        double rate;
        p.threads = 1;
        *w = (struct work){.b = b, .row = row, .ring = ring_layout_of(&p, &none, PAGE)};
        int r = agents_probe(b, row, &rate);
        if (r == 0)
                w->window = bench_window(row, rate);
        return r;
}

static int agents_once(struct work *w, enum agents_burden burden, double *ret_rate) {
        struct agents_figures f;
        int r = agents_run(w->b, w->row, &w->window, burden, &f);
        if (r < 0)
                return r;
        if (burden != AGENTS_BARE)
                w->p50_ns = f.p50_ns;
        *ret_rate = f.rate;
        return 0;
}

static int report_failure(const struct work *w, int r) {
        if (r < 0)
                fprintf(stderr, "%s: hand-written loop: %s\n", w->b->options.program, strerrordesc_np(-r));
        return r;
}

/* --- rings --- */

enum { RING_HAND, RING_AGENTS, RING_UNTIMED };

static int ring_once(void *userdata, unsigned which, double *ret_rate) {
        struct work *w = userdata;
        const struct point *p = &w->row->point;
        if (which != RING_HAND)
                return agents_once(w, which == RING_AGENTS ? AGENTS_SAMPLED : AGENTS_BARE, ret_rate);
        struct hand_shm h = {
                .workload = p->workload,
                .transport = p->transport,
                .wait = p->wait,
                .verify = w->b->options.verify,
                .size = p->message_size,
                .slots = w->ring.slots,
                .warmup_ns = w->window.warmup_ns,
                .duration_ns = w->window.duration_ns,
                .chunk = w->window.chunk,
                .cpus = {w->row->cpus[0], w->row->cpus[1]},
        };
        return report_failure(w, hand_shm_run(&h, ret_rate));
}

/* The cost of clock and samples is promised of the agents, not of each carrier: it is judged where memory decides a
 * round trip, and where sleeping does; elsewhere it is printed only. */
static bool cost_is_judged(const struct point *p) {
        return p->transport == TRANSPORT_SHM_POSIX && (p->message_size == 1 || p->message_size == 4096) &&
               (p->wait == WAIT_BLOCK || p->wait == WAIT_SPIN);
}

static int ring_row(struct bench *b, const struct bench_row *row) {
        static struct match m;
        struct work w;
        m = (struct match){
                .once = ring_once,
                .userdata = &w,
                .n = 3,
                .judgements = {{.of = RING_AGENTS,
                                .to = RING_HAND,
                                .also_of = RING_UNTIMED,
                                .also_to = RING_HAND,
                                .limit = PROMISE_RING,
                                .note = "",
                                .explanation = "by what timing costs"}},
                .n_judgements = 1,
        };
        if (row->point.workload == WORKLOAD_STREAM) { /* in which nothing is timed anyway */
                m.n = 2;
                m.judgements[0].also_of = NOWHERE;
        } else {
                m.judgements[1] = (struct judgement){.of = RING_AGENTS,
                                                     .to = RING_UNTIMED,
                                                     .also_of = NOWHERE,
                                                     .limit = cost_is_judged(&row->point) ? PROMISE_COST : 0,
                                                     .width = WIDTH_COST,
                                                     .note = "agents beside themselves without clock and samples"};
                m.n_judgements = 2;
        }
        int r = work_begin(&w, b, row);
        return r < 0 ? r : bench_compare(b, row, &m);
}

static const struct bench_part part_ring = {
        .name = "ring",
        .heading = "agents that sample beside the same ring written by hand; "
                   "untimed: the ratio of agents that neither sample nor time (pingpongs)",
        .to = "hand",
        .of = "agents",
        .also = "untimed",
        .run = ring_row};

/* --- the hand-over --- */

enum { HANDOVER_LINES, HANDOVER_UNTIMED, HANDOVER_TIMED, HANDOVER_P50 }; /* the last is derived */

static int handover_once(void *userdata, unsigned which, double *ret_rate) {
        struct work *w = userdata;
        double rounds = w->rate * (double) w->window.duration_ns / 1e9;
        if (which != HANDOVER_LINES)
                return agents_once(w, which == HANDOVER_TIMED ? AGENTS_SAMPLED : AGENTS_BARE, ret_rate);
        return report_failure(w, hand_handover_run(w->row->cpus, (uint64_t) rounds + 8, ret_rate));
}

static void handover_derive(void *userdata, double *rates) {
        const struct work *w = userdata;
        rates[HANDOVER_P50] = w->p50_ns > 0 ? 1e9 / w->p50_ns : 0; /* 0: nothing was timed in all the round */
}

static int handover_row(struct bench *b, const struct bench_row *row) {
        static struct match m;
        struct work w;
        m = (struct match){
                .once = handover_once,
                .derive = handover_derive,
                .userdata = &w,
                .n = 3,
                .n_derived = 1,
                .judgements = {{.of = HANDOVER_UNTIMED,
                                .to = HANDOVER_LINES,
                                .also_of = NOWHERE,
                                .limit = PROMISE_HANDOVER,
                                .note = "untimed"},
                               {.of = HANDOVER_TIMED,
                                .to = HANDOVER_LINES,
                                .also_of = HANDOVER_UNTIMED,
                                .also_to = HANDOVER_LINES,
                                .limit = PROMISE_HANDOVER,
                                .note = "timed, whole round trips",
                                .explanation = "by what timing costs"},
                               {.of = HANDOVER_P50,
                                .to = HANDOVER_LINES,
                                .also_of = NOWHERE,
                                .note = "1 / the median that agents measure"}},
                .n_judgements = 3,
        };
        int r = work_begin(&w, b, row);
        if (r == 0)
                r = report_failure(&w, hand_handover_run(row->cpus, 200000, &w.rate));
        return r < 0 ? r : bench_compare(b, row, &m);
}

static const struct bench_part part_handover = {.name = "handover",
                                                .heading = "round trips of a byte beside two cache lines handed to "
                                                           "and fro; untimed: the ratio of agents that neither "
                                                           "sample nor time",
                                                .to = "lines",
                                                .of = "agents",
                                                .also = "untimed",
                                                .run = handover_row};

/* --- memcpy --- */

enum { MEMCPY_READ, MEMCPY_AGENTS, MEMCPY_ALONE };

/* Into memory that is as large as the ring, and as far from one message to the next. */
static int copy_pieces(const struct work *w, uint64_t passes, int read_back, double *ret_rate) {
        const struct hand_pieces p = {w->row->point.message_size, w->ring.slot_bytes, w->ring.slots};
        return report_failure(w, hand_memcpy_run(w->row->cpus, &p, passes, read_back, ret_rate));
}

static int memcpy_once(void *userdata, unsigned which, double *ret_rate) {
        struct work *w = userdata;
        double passes = w->rate * (double) w->window.duration_ns / 3e9 / w->ring.slots;
        if (which == MEMCPY_AGENTS)
                return agents_once(w, AGENTS_SAMPLED, ret_rate);
        return copy_pieces(w, (uint64_t) passes + 16, which == MEMCPY_READ, ret_rate);
}

static uint64_t l2_bytes(void) {
        long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
        return bytes > 0 ? (uint64_t) bytes : L2_GUESS_BYTES;
}

static int memcpy_row(struct bench *b, const struct bench_row *row) {
        static struct match m;
        struct work w;
        char notes[2][128];
        int r = work_begin(&w, b, row);
        if (r == 0)
                r = copy_pieces(&w, 16, 1, &w.rate);
        if (r < 0)
                return r;
        uint64_t ring = w.ring.slots * w.ring.slot_bytes, l2 = l2_bytes();
        bool alone = ring > l2;
        (void) snprintf(notes[alone], sizeof notes[alone], "%s", alone ? "alone" : "read by the peer");
        (void) snprintf(notes[!alone], sizeof notes[!alone],
                        "%s; not judged: the ring of %" PRIu64 " KiB %s the L2 cache of %" PRIu64,
                        alone ? "read by the peer" : "alone", ring >> 10, alone ? "exceeds" : "fits", l2 >> 10);
        m = (struct match){
                .once = memcpy_once,
                .userdata = &w,
                .n = 3,
                .judgements = {{.of = MEMCPY_AGENTS,
                                .to = MEMCPY_READ,
                                .also_of = NOWHERE,
                                .limit = alone ? 0 : PROMISE_MEMCPY,
                                .note = notes[0]},
                               {.of = MEMCPY_AGENTS,
                                .to = MEMCPY_ALONE,
                                .also_of = NOWHERE,
                                .limit = alone ? PROMISE_MEMCPY : 0,
                                .note = notes[1]}},
                .n_judgements = 2,
        };
        return bench_compare(b, row, &m);
}

static const struct bench_part part_memcpy = {
        .name = "memcpy",
        .heading = "streams beside memcpy() on the sender's CPU into memory of the ring's size, twice: while the other "
                   "CPU reads every line between the passes,\n"
                   "and alone. A ring that fits the L2 cache is judged by the first: memcpy() alone stores there into "
                   "lines that are still in its CPU's cache,\n"
                   "while a line that a peer has read must come out of the peer's cache first, and no transfer between "
                   "two CPUs can be without that.\n"
                   "Larger rings are judged by memcpy() alone, whose lines have left its own cache as well",
        .to = "memcpy",
        .of = "agents",
        .also = "",
        .run = memcpy_row};

/* --- which rows there are --- */

static void add(struct bench *b, const struct bench_part *part, const struct point *p) {
        if (bench_options_want(&b->options, part->name, p->transport, p->workload, p->message_size) &&
            (only.wait < 0 || only.wait == (int) p->wait))
                (void) bench_add(b, part, p);
}

/* The ring is the same over every carrier: every wait is measured over one carrier, the usual wait over the others,
 * unless the options name a wait. */
static bool is_left_out(const struct bench *b, const struct point *p) {
        if (b->options.quick && p->message_size != 64 && p->message_size != 65536)
                return true;
        return !only.all && only.wait < 0 && b->options.transport < 0 && p->transport != TRANSPORT_SHM_POSIX &&
               p->wait != WAIT_BLOCK;
}

static void add_ring(struct bench *b, enum transport transport) {
        static const enum workload workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};
        static const uint64_t sizes[] = {1, 64, 4096, 65536, 4u << 20};
        for (enum wait_mode wait = WAIT_BLOCK; wait < WAIT_COUNT; wait++)
                for (size_t w = 0; w < ELEMENTS(workloads); w++)
                        for (size_t i = 0; i < ELEMENTS(sizes); i++) {
                                struct point p = {.transport = transport,
                                                  .workload = workloads[w],
                                                  .wait = wait,
                                                  .message_size = sizes[i]};
                                if (!is_left_out(b, &p))
                                        add(b, &part_ring, &p);
                        }
}

static void add_limits(struct bench *b) {
        static const uint64_t sizes[] = {64, 4096, 65536, 4u << 20};
        struct point p = {
                .transport = TRANSPORT_SHM_POSIX, .workload = WORKLOAD_PINGPONG, .wait = WAIT_SPIN, .message_size = 1};
        add(b, &part_handover, &p);
        p.workload = WORKLOAD_STREAM;
        for (size_t i = 0; i < ELEMENTS(sizes); i++) {
                p.message_size = sizes[i];
                add(b, &part_memcpy, &p);
        }
}

static int parse_own(int c, const char *value) {
        switch (c) {
        case 'm':
                return bench_parse_word(&wait_mode_words, value, &only.wait);
        case 'A':
                only.all = true;
                return 0;
        default:
                return -EINVAL;
        }
}

int main(int argc, char **argv) {
        static const enum transport carriers[] = {TRANSPORT_SHM_POSIX, TRANSPORT_SHM_SYSV, TRANSPORT_MMAP_FILE,
                                                  TRANSPORT_MMAP_ANONYMOUS};
        static const struct option table[] = {
                {"wait", required_argument, NULL, 'm'},
                {"all", no_argument, NULL, 'A'},
                {},
        };
        static const char *const parts[] = {"ring", "handover", "memcpy", NULL};
        static const struct bench_extra extra = {
                .table = table,
                .parse = parse_own,
                .parts = parts,
                .usage = "  --wait WORD          only these rows\n"
                         "  --all                every wait over every carrier, not over shm-posix alone\n",
                .minutes = 12,
                .quick_minutes = 2.5,
        };
        struct bench b = {};
        int r = bench_options_parse(argc, argv, &extra, &b.options);
        if (r)
                return r < 0 ? 2 : 0;
        for (size_t i = 0; i < ELEMENTS(carriers); i++)
                add_ring(&b, carriers[i]);
        add_limits(&b);
        int status = bench_run(&b);
        bench_deinit(&b);
        return status;
}
