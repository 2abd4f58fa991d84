/* SPDX-License-Identifier: MIT */

/*
 * What the harness costs, over everything but shared memory and TCP:
 *
 *      loops     each transport, workload and size: by hand (hand.h) and by a pair of real agents with sampling on. At
 *                least 0.97 is what ipclab promises
 *      same-cpu  small messages through pipes with both ends on one CPU. On two, these fight for the pipe's lock, and
 *                which end gets it makes the rate wander fourfold; on one, the cost of the loop itself shows
 *      cost      the same agents with and without samples and histograms: at most 1 %
 *      vmsplice  agents by vmsplice(2) beside agents by write(2)
 *      calls     system calls and context switches (bench-calls.c)
 */

#include "schema/util.h"
#include "tests/bench/agents.h"
#include "tests/bench/bench-calls.h"
#include "tests/bench/hand-queues.h"
#include "tests/bench/hand.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define PROMISE 0.97
#define PROMISE_COST 0.99
#define WIDTH_COST 0.004     /* so that 1 % can be distinguished from none */
#define COST_NS NSEC_PER_SEC /* a round, at least: samples are as far apart as in a run, or nearly */
#define PROMISE_VMSPLICE 3.0
#define WIDTH_VMSPLICE 0.06
#define LARGE_PIPE (UINT64_C(1) << 20)

/* Options that only this bench has. */
static struct {
        uint64_t pipe_size;
        int engine, copy_mode; /* -1: all */
} only = {.engine = -1, .copy_mode = -1};

static const uint64_t sizes[] = {1, 64, 4096, 65536, UINT64_C(4) << 20};
enum { B_1 = 1, B_64 = 2, KIB_4 = 4, KIB_64 = 8, MIB_4 = 16, SIZES = 31 };

/* At which sizes a row is measured: what can be, what is in 45 minutes, and what is with --quick. */
enum kind {
        PLAIN,      /* a transport as it is usually used */
        VARIANT,    /* the same by another engine or copy mode */
        PIPE_ALIKE, /* a variant over FIFOs, which are pipes to the kernel once they are open */
        SYNCED,     /* waits for a device, for about the same time whatever the size */
        DIRECT,     /* past the page cache, in whole blocks */
        POOL,       /* memfds that are used in turn */
};

static const struct {
        unsigned possible, usual, quick;
} measured[] = {
        [PLAIN] = {SIZES, SIZES, B_64 | KIB_64},  [VARIANT] = {SIZES, SIZES, KIB_64},
        [PIPE_ALIKE] = {SIZES, B_64 | KIB_64, 0}, [SYNCED] = {SIZES, B_64 | KIB_64, KIB_64},
        [POOL] = {SIZES, SIZES, KIB_64},          [DIRECT] = {KIB_4 | KIB_64 | MIB_4, KIB_4 | KIB_64 | MIB_4, KIB_64},
};

/* What is compared: a line here, and one in hand.c. */
struct subject {
        enum transport transport;
        enum engine engine;
        enum copy_mode copy_mode;
        enum kind kind;
};

static const struct subject subjects[] = {
        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_TWO, PLAIN},
        {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_TWO, PLAIN},
        {TRANSPORT_UNIX_STREAM, ENGINE_SYSCALL, COPY_TWO, PLAIN},
        {TRANSPORT_UNIX_DGRAM, ENGINE_SYSCALL, COPY_TWO, PLAIN},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_SYSCALL, COPY_TWO, PLAIN},
        {TRANSPORT_MSGQ_SYSV, ENGINE_SYSCALL, COPY_TWO, PLAIN},
        {TRANSPORT_MSGQ_POSIX, ENGINE_SYSCALL, COPY_TWO, PLAIN},
        {TRANSPORT_FILE, ENGINE_SYSCALL, COPY_TWO, PLAIN},
        {TRANSPORT_PROCESS_VM, ENGINE_SYSCALL, COPY_TWO, PLAIN},
        {TRANSPORT_MEMFD, ENGINE_SYSCALL, COPY_TWO, PLAIN},
        {TRANSPORT_MEMFD, ENGINE_SYSCALL, COPY_TWO, POOL},
        {TRANSPORT_PROCESS_VM, ENGINE_SYSCALL, COPY_ONE, VARIANT},
        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_ONE, VARIANT},
        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_ZERO, VARIANT},
        {TRANSPORT_UNIX_STREAM, ENGINE_SYSCALL, COPY_ONE, VARIANT},
        {TRANSPORT_UNIX_DGRAM, ENGINE_SYSCALL, COPY_ONE, VARIANT},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_SYSCALL, COPY_ONE, VARIANT},
        {TRANSPORT_PIPE, ENGINE_IO_URING, COPY_TWO, VARIANT},
        {TRANSPORT_UNIX_STREAM, ENGINE_IO_URING, COPY_TWO, VARIANT},
        {TRANSPORT_UNIX_DGRAM, ENGINE_IO_URING, COPY_TWO, VARIANT},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_IO_URING, COPY_TWO, VARIANT},
        {TRANSPORT_FILE, ENGINE_IO_URING, COPY_TWO, VARIANT},
        {TRANSPORT_PIPE, ENGINE_IO_URING, COPY_ONE, VARIANT},
        {TRANSPORT_UNIX_STREAM, ENGINE_IO_URING, COPY_ONE, VARIANT},
        {TRANSPORT_UNIX_DGRAM, ENGINE_IO_URING, COPY_ONE, VARIANT},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_IO_URING, COPY_ONE, VARIANT},
        {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_ONE, PIPE_ALIKE},
        {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_ZERO, PIPE_ALIKE},
        {TRANSPORT_FIFO, ENGINE_IO_URING, COPY_TWO, PIPE_ALIKE},
        {TRANSPORT_FIFO, ENGINE_IO_URING, COPY_ONE, PIPE_ALIKE},
        {TRANSPORT_FILE, ENGINE_SYSCALL, COPY_TWO, SYNCED},
        {TRANSPORT_FILE, ENGINE_IO_URING, COPY_TWO, SYNCED},
        {TRANSPORT_FILE, ENGINE_SYSCALL, COPY_TWO, DIRECT},
        {TRANSPORT_FILE, ENGINE_IO_URING, COPY_TWO, DIRECT},
};

/* One row while it is measured. */
struct work {
        const struct bench *b;
        const struct bench_row *row;
        struct window window;
        double clock_ns; /* of the last round that had it */
};

static int work_begin(struct work *w, const struct bench *b, const struct bench_row *row) {
        double rate;
        *w = (struct work){.b = b, .row = row};
        int r = agents_probe(b, row, &rate);
        if (r == 0)
                w->window = bench_window(row, rate);
        return r;
}

static int hand_once(const struct work *w, enum copy_mode copy_mode, double *ret_rate) {
        const struct point *p = &w->row->point;
        struct hand h = {
                .workload = p->workload,
                .transport = p->transport,
                .engine = p->engine,
                .copy_mode = copy_mode,
                .verify = w->b->options.verify,
                .file_sync = w->row->options.file_sync,
                .size = p->message_size,
                .warmup_ns = w->window.warmup_ns,
                .duration_ns = w->window.duration_ns,
                .chunk = w->window.chunk,
                .pipe_size = w->row->options.pipe_size,
                .msgq_depth = w->row->options.msgq_depth,
                .memfd = w->row->options.memfd,
                .cpus = {w->row->cpus[0], w->row->cpus[1]},
        };
        int r = hand_run(&h, ret_rate);
        if (r < 0)
                fprintf(stderr, "%s: hand-written loop: %s\n", w->b->options.program, strerrordesc_np(-r));
        return r;
}

static int agents_once(const struct work *w, enum copy_mode copy_mode, enum agents_burden burden,
                       struct agents_figures *ret) {
        struct bench_row row = *w->row;
        row.point.copy_mode = copy_mode;
        return agents_run(w->b, &row, &w->window, burden, ret);
}

/* --- beside loops by hand --- */

static int loops_once(void *userdata, unsigned which, double *ret_rate) {
        const struct work *w = userdata;
        struct agents_figures f;
        if (which == 0)
                return hand_once(w, w->row->point.copy_mode, ret_rate);
        int r = agents_once(w, w->row->point.copy_mode, AGENTS_SAMPLED, &f);
        if (r == 0)
                *ret_rate = f.rate;
        return r;
}

static int loops_row(struct bench *b, const struct bench_row *row) {
        static struct match m;
        struct work w;
        m = (struct match){
                .once = loops_once,
                .userdata = &w,
                .n = 2,
                .judgements = {{.of = 1, .to = 0, .also_of = NOWHERE, .limit = PROMISE, .note = ""}},
                .n_judgements = 1,
        };
        int r = work_begin(&w, b, row);
        return r < 0 ? r : bench_compare(b, row, &m);
}

static const struct bench_part part_loops = {.name = "loops",
                                             .heading = "agents that sample beside the same loop written by hand",
                                             .to = "hand",
                                             .of = "agents",
                                             .also = "",
                                             .run = loops_row};
static const struct bench_part part_same_cpu = {.name = "same-cpu",
                                                .heading = "the same with both ends on one CPU, small streams",
                                                .to = "hand",
                                                .of = "agents",
                                                .also = "",
                                                .run = loops_row};

/* --- with and without samples and histograms --- */

enum { COST_BARE, COST_SAMPLED, COST_TIMED };

static int cost_once(void *userdata, unsigned which, double *ret_rate) {
        static const enum agents_burden burdens[] = {
                [COST_BARE] = AGENTS_BARE, [COST_SAMPLED] = AGENTS_SAMPLED, [COST_TIMED] = AGENTS_TIMED};
        struct work *w = userdata;
        struct agents_figures f;
        int r = agents_once(w, COPY_TWO, burdens[which], &f);
        if (r < 0)
                return r;
        if (which == COST_SAMPLED && w->row->point.workload == WORKLOAD_PINGPONG && f.clock_ns == 0) {
                fprintf(stderr, "%s: agents: their report has no cost of a clock reading\n", w->b->options.program);
                return -EPROTO;
        }
        if (which == COST_SAMPLED)
                w->clock_ns = f.clock_ns;
        *ret_rate = f.rate;
        return 0;
}

/* A stream has nothing to time: its row is of samples alone. What is promised is the whole cost, the clock's among it,
 * though that is read while a message is under way. */
static int cost_row(struct bench *b, const struct bench_row *row) {
        static struct match m;
        struct work w;
        m = (struct match){
                .once = cost_once,
                .userdata = &w,
                .n = 2,
                .judgements = {{.of = COST_SAMPLED,
                                .to = COST_BARE,
                                .also_of = NOWHERE,
                                .limit = PROMISE_COST,
                                .width = WIDTH_COST,
                                .note = "samples"}},
                .n_judgements = 1,
        };
        if (row->point.workload == WORKLOAD_PINGPONG) {
                struct judgement all = m.judgements[0], samples = all, clock = all;
                all.note = "samples and histograms";
                samples.to = COST_TIMED;
                samples.note = "samples, both timed";
                clock.of = COST_TIMED;
                clock.limit = 0;
                clock.note = "the clock and histograms, no samples: what measuring takes";
                m.n = 3;
                m.judgements[0] = all;
                m.judgements[1] = samples;
                m.judgements[2] = clock;
                m.n_judgements = 3;
        }
        int r = work_begin(&w, b, row);
        if (w.window.duration_ns < COST_NS)
                w.window.duration_ns = COST_NS;
        if (r == 0)
                r = bench_compare(b, row, &m);
        if (r == 0 && w.clock_ns > 0)
                printf("%-21s a reading of the clock: %.0f ns\n", transport_name(row->point.transport), w.clock_ns);
        return r;
}

static const struct bench_part part_cost = {.name = "cost",
                                            .heading = "agents with three samples a second, and histograms where they "
                                                       "time, beside the same agents without",
                                            .to = "without",
                                            .of = "with",
                                            .also = "",
                                            .run = cost_row};

/* --- vmsplice beside write --- */

enum { WRITE_AGENTS, SPLICE_AGENTS, WRITE_HAND, SPLICE_HAND };

static int vmsplice_once(void *userdata, unsigned which, double *ret_rate) {
        const struct work *w = userdata;
        enum copy_mode mode = which == SPLICE_AGENTS || which == SPLICE_HAND ? COPY_ZERO : COPY_TWO;
        struct agents_figures f;
        if (which == WRITE_HAND || which == SPLICE_HAND)
                return hand_once(w, mode, ret_rate);
        int r = agents_once(w, mode, AGENTS_SAMPLED, &f);
        if (r == 0)
                *ret_rate = f.rate;
        return r;
}

/* The loops by hand stand beside it: what they do not reach, the agents cannot. */
static int vmsplice_row(struct bench *b, const struct bench_row *row) {
        static struct match m;
        struct work w;
        char note[64];
        m = (struct match){
                .once = vmsplice_once,
                .userdata = &w,
                .n = 4,
                .judgements = {{.of = SPLICE_AGENTS,
                                .to = WRITE_AGENTS,
                                .also_of = SPLICE_HAND,
                                .also_to = WRITE_HAND,
                                .limit = PROMISE_VMSPLICE,
                                .width = WIDTH_VMSPLICE,
                                .note = note}},
                .n_judgements = 1,
        };
        if (row->options.pipe_size)
                (void) snprintf(note, sizeof note, "a pipe of %" PRIu64 " bytes", row->options.pipe_size);
        else
                (void) snprintf(note, sizeof note, "a pipe of the default size");
        int r = work_begin(&w, b, row);
        return r < 0 ? r : bench_compare(b, row, &m);
}

static const struct bench_part part_vmsplice = {.name = "vmsplice",
                                                .heading = "agents by vmsplice beside agents by write; by hand: the "
                                                           "ratio of the loops",
                                                .to = "write",
                                                .of = "vmsplice",
                                                .also = "by hand",
                                                .run = vmsplice_row};

/* --- which rows there are --- */

static struct hand_queues queues;

/* Why a message of that size does not go: queues take what is set, packets what the kernel finds room for, which is
 * tried. NULL when it goes. */
static const char *too_long_for(const struct point *p) {
        if (p->transport == TRANSPORT_MSGQ_SYSV || p->transport == TRANSPORT_MSGQ_POSIX)
                return hand_queues_refuse(&queues, p->transport, p->message_size);
        if (p->transport != TRANSPORT_UNIX_DGRAM && p->transport != TRANSPORT_UNIX_SEQPACKET)
                return NULL;
        int r = hand_packet_try(p->transport, p->message_size);
        return r < 0 ? strerrordesc_np(-r) : NULL;
}

/* Prints the reason once for each transport. */
static bool is_too_long(const struct point *p) {
        static uint64_t least[TRANSPORT_COUNT]; /* that does not go; 0: not known */
        uint64_t *known = &least[p->transport];
        if (*known && p->message_size >= *known)
                return true;
        const char *why = too_long_for(p);
        if (!why)
                return false;
        printf("%s: no rows of %" PRIu64 " bytes and more: %s\n", transport_name(p->transport), p->message_size, why);
        *known = p->message_size;
        return true;
}

/* Prints the reason once, too. */
static bool is_direct(uint64_t size) {
        static bool tried;
        static uint64_t unit; /* 0: not possible */
        if (!tried) {
                int r = hand_file_direct_unit(&unit);
                tried = true;
                if (r < 0)
                        printf("file: no rows past the page cache: O_DIRECT, where the files of a run are: %s\n",
                               strerrordesc_np(-r));
                else if (sizes[0] < unit)
                        printf("file: past the page cache only sizes that are multiples of %" PRIu64 " bytes\n", unit);
        }
        return unit && size % unit == 0;
}

static bool is_wanted(const struct bench *b, const struct bench_part *part, const struct point *p) {
        return bench_options_want(&b->options, part->name, p->transport, p->workload, p->message_size) &&
               (only.engine < 0 || only.engine == (int) p->engine) &&
               (only.copy_mode < 0 || only.copy_mode == (int) p->copy_mode);
}

/* NULL when it is not wanted, or cannot be. */
static struct bench_row *add(struct bench *b, const struct bench_part *part, const struct point *p) {
        if (!is_wanted(b, part, p) || is_too_long(p))
                return NULL;
        struct bench_row *row = bench_add(b, part, p);
        row->options.pipe_size = only.pipe_size;
        row->options.msgq_depth = hand_queues_depth(&queues, p->transport, p->message_size);
        return row;
}

/* A size that the options name is measured wherever it is possible. */
static bool is_measured(const struct bench *b, enum kind kind, size_t size) {
        unsigned of = b->options.size    ? measured[kind].possible
                      : b->options.quick ? measured[kind].quick
                                         : measured[kind].usual;
        return of & 1u << size;
}

static void add_loop(struct bench *b, const struct subject *s, enum workload workload, uint64_t size) {
        static const enum file_sync syncs[] = {[SYNCED] = FILE_SYNC_FSYNC, [DIRECT] = FILE_SYNC_DIRECT};
        struct point p = {.transport = s->transport,
                          .engine = s->engine,
                          .copy_mode = s->copy_mode,
                          .workload = workload,
                          .message_size = size};
        if (s->kind == DIRECT && is_wanted(b, &part_loops, &p) && !is_direct(size))
                return;
        struct bench_row *row = add(b, &part_loops, &p);
        if (row && (s->kind == SYNCED || s->kind == DIRECT))
                row->options.file_sync = syncs[s->kind];
        if (row && s->kind == POOL)
                row->options.memfd = MEMFD_POOL;
}

static void add_loops(struct bench *b) {
        static const enum workload workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};
        for (const struct subject *s = subjects; s < subjects + ELEMENTS(subjects); s++)
                for (size_t w = 0; w < ELEMENTS(workloads); w++)
                        for (size_t i = 0; i < ELEMENTS(sizes); i++)
                                if (is_measured(b, s->kind, i))
                                        add_loop(b, s, workloads[w], sizes[i]);
}

static void add_same_cpu(struct bench *b) {
        int cpu = b->options.cpus[1];
        for (size_t s = 0; cpu >= 0 && s < ELEMENTS(subjects); s++)
                for (uint64_t size = b->options.quick ? 64 : 1; size <= 64; size *= 64) {
                        struct point p = {.transport = subjects[s].transport,
                                          .engine = subjects[s].engine,
                                          .copy_mode = subjects[s].copy_mode,
                                          .workload = WORKLOAD_STREAM,
                                          .message_size = size};
                        bool is_pipe = p.transport == TRANSPORT_PIPE || p.transport == TRANSPORT_FIFO;
                        bool is_wanted = subjects[s].kind != PIPE_ALIKE || b->options.transport == TRANSPORT_FIFO;
                        struct bench_row *row = is_pipe && is_wanted ? add(b, &part_same_cpu, &p) : NULL;
                        if (row)
                                row->cpus[0] = row->cpus[1] = cpu;
                }
}

static void add_cost(struct bench *b) {
        static const enum workload workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};
        for (size_t i = 0; i < ELEMENTS(workloads); i++) {
                struct point p = {.transport = TRANSPORT_PIPE, .workload = workloads[i], .message_size = 4096};
                (void) add(b, &part_cost, &p);
        }
}

static void add_vmsplice(struct bench *b) {
        static const uint64_t pipe_sizes[] = {0, LARGE_PIPE};
        for (size_t i = 0; i < ELEMENTS(pipe_sizes); i++) {
                struct point p = {.transport = TRANSPORT_PIPE, .copy_mode = COPY_ZERO, .message_size = 65536};
                struct bench_row *row = add(b, &part_vmsplice, &p);
                if (row)
                        row->options.pipe_size = pipe_sizes[i];
        }
}

static int parse_own(int c, const char *value) {
        switch (c) {
        case 'p':
                return bench_parse_u64(value, 1, INT_MAX, &only.pipe_size);
        case 'e':
                return bench_parse_word(&engine_words, value, &only.engine);
        case 'm':
                return bench_parse_word(&copy_mode_words, value, &only.copy_mode);
        default:
                return -EINVAL;
        }
}

int main(int argc, char **argv) {
        static const struct option table[] = {
                {"pipe-size", required_argument, NULL, 'p'},
                {"engine", required_argument, NULL, 'e'},
                {"copy-mode", required_argument, NULL, 'm'},
                {},
        };
        static const char *const parts[] = {"cost", "vmsplice", BENCH_CALLS, "same-cpu", "loops", NULL};
        static const struct bench_extra extra = {
                .table = table,
                .parse = parse_own,
                .parts = parts,
                .usage = "  --engine WORD, --copy-mode WORD   only these rows\n"
                         "  --pipe-size BYTES    for all but vmsplice (default: the kernel's)\n",
                .minutes = 33,
                .quick_minutes = 5.5,
        };
        struct bench b = {};
        int r = bench_options_parse(argc, argv, &extra, &b.options);
        if (r)
                return r < 0 ? 2 : 0;
        hand_queues_isolate(&queues);
        add_cost(&b); /* what wants many rounds comes first, while there is time */
        add_vmsplice(&b);
        if (only.engine < 0 && only.copy_mode < 0)
                bench_calls_add(&b);
        add_same_cpu(&b);
        add_loops(&b);
        int status = bench_run(&b);
        bench_deinit(&b);
        return status;
}
