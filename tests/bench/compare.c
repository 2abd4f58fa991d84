/* SPDX-License-Identifier: MIT */

/*
 * Rounds, rows and the summary; see compare.h.
 *
 * When a row ends is decided by how wide its interval is, and by time, never by where the interval lies. To go on until
 * a row passes, or fails, would be peeking: every row would get there some day. A rule that is blind to the verdict
 * favours none.
 */

#include "tests/bench/compare.h"

#include "schema/util.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define WARMUP_STREAM_NS (200 * NSEC_PER_MSEC)
#define REGIME_NS (500 * NSEC_PER_MSEC)
#define REGIME_MESSAGES 512u
#define CHUNK_SECONDS 0.001
#define EXTRA_PART 8
#define PIPE_BYTES 65536u
#define QUEUE_BYTES 131072u /* at most, of a System V queue */

static const struct {
        const char *word, *aside;
        const char *heading; /* of the summary; NULL: rows are counted, not listed */
} verdicts[VERDICT_COUNT] = {
        [VERDICT_REACHED] = {"reached", "", NULL},
        [VERDICT_HOLDS] = {"undecided beside", ", which the median holds", "undecided, the median holds it"},
        [VERDICT_MISSES] = {"undecided beside", ", which the median misses", "undecided, the median misses it"},
        [VERDICT_BELOW] = {"below", "", "below"},
};

struct bench_row *bench_add(struct bench *b, const struct bench_part *part, const struct point *point) {
        struct bench_row *rows = reallocarray(b->rows, b->n_rows + 1, sizeof *rows);
        if (!rows)
                abort();
        b->rows = rows;
        struct bench_row *row = &rows[b->n_rows++];
        *row = (struct bench_row){.part = part, .point = *point, .seconds = b->options.seconds};
        memcpy(row->cpus, b->options.cpus, sizeof row->cpus);
        return row;
}

void bench_deinit(struct bench *b) {
        free(b->rows);
        for (unsigned i = 0; i < VERDICT_COUNT; i++)
                free(b->names[i]);
}

/*
 * A stream begins in a state of its own, which lasts for about a tenth of a second: agents start both ends at once, and
 * while the pipe is empty these fight for it; a loop's sender starts before its receiver, which finds it full. And
 * where a pipe holds many messages it takes that many to fill it. All contenders get the same warm-up, which outlasts
 * both.
 *
 * A pipe that holds very many messages runs full or empty for long, at rates up to four times apart; a window that is
 * not much longer than that measures which of the two it was in.
 */
struct window bench_window(const struct bench_row *row, double rate) {
        struct window w = {.duration_ns = (uint64_t) (row->seconds * 1e9), .chunk = 1};
        uint64_t bytes = row->point.transport == TRANSPORT_MSGQ_SYSV ? QUEUE_BYTES : PIPE_BYTES;
        uint64_t held = 0; /* calls and switches have no bytes */
        if (row->point.message_size)
                held = (row->options.pipe_size ? row->options.pipe_size : bytes) / row->point.message_size;
        w.warmup_ns = w.duration_ns / 8;
        if (row->point.workload == WORKLOAD_STREAM && rate > 0)
                w.warmup_ns += (uint64_t) (2 * (double) held * 1e9 / rate);
        if (row->point.workload == WORKLOAD_STREAM && w.warmup_ns < WARMUP_STREAM_NS)
                w.warmup_ns = WARMUP_STREAM_NS;
        if (row->point.workload == WORKLOAD_STREAM && held >= REGIME_MESSAGES && row->cpus[0] != row->cpus[1]) {
                w.warmup_ns = w.warmup_ns < REGIME_NS ? REGIME_NS : w.warmup_ns;
                w.duration_ns = w.duration_ns < REGIME_NS ? REGIME_NS : w.duration_ns;
        }
        if (rate * CHUNK_SECONDS > 1)
                w.chunk = (uint64_t) (rate * CHUNK_SECONDS);
        return w;
}

/* --- rounds --- */

static double width_of(const struct bench *b, const struct judgement *j) {
        return j->width > 0 ? j->width : b->options.width;
}

static bool settled(const struct bench *b, const struct match *m) {
        for (unsigned i = 0; i < m->n_judgements; i++) {
                const struct judgement *j = &m->judgements[i];
                struct ratio r = series_ratio(&m->series[j->of], &m->series[j->to]);
                if (j->limit > 0 && !ratio_settled(&r, width_of(b, j)))
                        return false;
        }
        return true;
}

/* What a row may take beyond its least: a part of what is left when the rows to come have got theirs, so that the first
 * rows that are hard to settle do not take it all. */
static uint64_t extra_of(const struct bench *b) {
        if (b->options.minutes == 0)
                return UINT64_MAX;
        double least = (double) b->least_ns / (b->at + 1), passed = (double) (util_now_ns() - b->begin_ns);
        double left = b->options.minutes * 60e9 - passed - least * (b->n_rows - b->at - 1);
        return left > 0 ? (uint64_t) (left / EXTRA_PART) : 0;
}

/* Looks at the interval less often as rounds become many: it takes a while then, and changes little. */
static bool is_done(const struct bench *b, const struct match *m, uint64_t row_begin_ns, uint64_t least_end_ns) {
        unsigned n = m->series[0].n;
        uint64_t now_ns = util_now_ns();
        if (n < b->options.rounds)
                return false;
        if (n >= b->options.rounds_max || (double) (now_ns - row_begin_ns) >= b->options.row_seconds * 1e9 ||
            now_ns - least_end_ns >= b->extra_ns)
                return true;
        return n % (1 + n / 32) == 0 && settled(b, m);
}

/* Runs each contender once; another one begins in each turn. */
static int take_turn(struct match *m, unsigned turn) {
        double rates[MATCH_MAX] = {};
        for (unsigned k = 0; k < m->n; k++) {
                unsigned which = (turn + k) % m->n;
                int r = m->once(m->userdata, which, &rates[which]);
                if (r < 0)
                        return r;
        }
        if (m->derive)
                m->derive(m->userdata, rates);
        for (unsigned i = 0; i < m->n + m->n_derived; i++)
                m->series[i].values[m->series[i].n++] = rates[i];
        return 0;
}

static int measure(struct bench *b, struct match *m) {
        uint64_t begin_ns = util_now_ns(), least_end_ns = 0;
        for (unsigned i = 0; i < MATCH_MAX; i++)
                m->series[i].n = 0;
        for (unsigned turn = 0; turn == 0 || !is_done(b, m, begin_ns, least_end_ns); turn++) {
                int r = take_turn(m, turn);
                if (r < 0)
                        return r;
                if (turn + 1 != b->options.rounds)
                        continue;
                least_end_ns = util_now_ns();
                b->least_ns += least_end_ns - begin_ns;
                b->extra_ns = extra_of(b);
        }
        return 0;
}

/* --- rows --- */

static const char *place(const struct bench_row *row, char buffer[24]) {
        if (workload_agents(row->point.workload) == 1)
                (void) snprintf(buffer, 24, "%d", row->cpus[0]);
        else if (row->cpus[0] >= 0 && row->cpus[0] == row->cpus[1])
                return "same-cpu";
        else
                (void) snprintf(buffer, 24, "%d,%d", row->cpus[0], row->cpus[1]);
        return buffer;
}

/* What a row is of. */
static const char *subject(const struct point *p) {
        return p->workload == WORKLOAD_SYSCALL          ? system_call_name(p->call)
               : p->workload == WORKLOAD_CONTEXT_SWITCH ? "processes"
                                                        : transport_name(p->transport);
}

/* A name from the point, or "-" where it means nothing. */
static const char *word(bool has, const char *name) {
        return has ? name : "-";
}

/* How a row moves its bytes, beside its engine: a copy mode, or what becomes of a file. */
static const char *mode(const struct bench_row *row) {
        const struct point *p = &row->point;
        if (workload_has_transport(p->workload) && p->transport == TRANSPORT_FILE)
                return file_sync_name(row->options.file_sync);
        if (transport_terms[row->point.transport].options & OPTION(MEMFD))
                return memfd_source_name(row->options.memfd);
        return word(point_has_copy_mode(p->workload, p->transport), copy_mode_name(p->copy_mode));
}

static void print_heads(const struct bench_part *part) {
        printf("\n%s: %s\n", part->name, part->heading);
        printf("%-21s %-8s %-10s %-6s %-14s %8s %-8s %12s %11s %11s %12s %11s %11s %6s %6s %6s %6s %7s\n", "of",
               "engine", "copy", "wait", "workload", "size", "cpus", part->to, "min", "max", part->of, "min", "max",
               "ratio", "low", "high", "rounds", part->also);
        (void) fflush(stdout);
}

static void print_row(const struct bench_row *row, const struct match *m, const struct judgement *j,
                      const struct ratio *r) {
        const struct point *p = &row->point;
        const struct series *to = &m->series[j->to], *of = &m->series[j->of];
        char cpus[24];
        printf("%-21s %-8s %-10s %-6s %-14s %8" PRIu64 " %-8s %12.0f %11.0f %11.0f %12.0f %11.0f %11.0f %6.3f ",
               subject(p), word(point_has_engine(p->workload, p->transport), engine_name(p->engine)), mode(row),
               word(point_has_wait(p->workload, p->transport), wait_mode_name(p->wait)), workload_name(p->workload),
               p->message_size, place(row, cpus), series_median(to), series_min(to), series_max(to), series_median(of),
               series_min(of), series_max(of), r->value);
        if (r->has_interval)
                printf("%6.3f %6.3f ", r->low, r->high);
        else
                printf("%6s %6s ", "-", "-");
        printf("%6u ", of->n);
        if (j->also_of == NOWHERE)
                printf("%7s", "");
        else
                printf("%7.3f", series_ratio(&m->series[j->also_of], &m->series[j->also_to]).value);
}

/* A line for the summary: what the row is, and its ratio. */
static void remember(struct bench *b, enum verdict v, const struct bench_row *row, const struct judgement *j,
                     const struct ratio *r) {
        const struct point *p = &row->point;
        char *names = NULL, cpus[24];
        bool wait = point_has_wait(p->workload, p->transport), engine = point_has_engine(p->workload, p->transport);
        int n = asprintf(&names, "%s  %s: %s %s%s%s %s %" PRIu64 ", %s%s%s: %.3f\n", b->names[v] ? b->names[v] : "",
                         row->part->name, subject(p),
                         wait ? wait_mode_name(p->wait) : word(engine, engine_name(p->engine)), wait ? "" : " ",
                         wait ? "" : mode(row), workload_name(p->workload), p->message_size, place(row, cpus),
                         *j->note ? ", " : "", j->note, r->value);
        if (n < 0)
                abort();
        free(b->names[v]);
        b->names[v] = names;
}

static bool is_missed(enum verdict v) {
        return v == VERDICT_BELOW || v == VERDICT_MISSES;
}

static void judge(struct bench *b, const struct bench_row *row, const struct match *m, const struct judgement *j) {
        struct ratio r = series_ratio(&m->series[j->of], &m->series[j->to]);
        print_row(row, m, j, &r);
        if (j->limit == 0) {
                b->unjudged++;
                printf("  %s\n", j->note);
                return;
        }
        enum verdict v = ratio_verdict(&r, j->limit);
        printf("  %s %.2f%s%s%s", verdicts[v].word, j->limit, verdicts[v].aside, *j->note ? "; " : "", j->note);
        if (is_missed(v) && j->explanation && j->also_of != NOWHERE) {
                struct ratio other = series_ratio(&m->series[j->also_of], &m->series[j->also_to]);
                if (ratio_verdict(&other, j->limit) == VERDICT_REACHED)
                        printf("; %s", j->explanation);
        }
        printf("\n");
        b->counts[v]++;
        if (v != VERDICT_REACHED)
                remember(b, v, row, j, &r);
}

/* A ratio to nothing would pass any limit. */
static int check_series(const struct bench *b, const struct match *m) {
        for (unsigned i = 0; i < m->n_judgements; i++)
                if (series_median(&m->series[m->judgements[i].to]) <= 0) {
                        fprintf(stderr, "%s: nothing to compare with: most rounds moved no message\n",
                                b->options.program);
                        return -ENODATA;
                }
        return 0;
}

int bench_compare(struct bench *b, const struct bench_row *row, struct match *m) {
        int r = measure(b, m);
        if (r == 0)
                r = check_series(b, m);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < m->n_judgements; i++)
                judge(b, row, m, &m->judgements[i]);
        (void) fflush(stdout);
        return 0;
}

/* --- the whole --- */

static void print_opening(const struct bench *b) {
        const struct bench_options *o = &b->options;
        printf("%u rows; messages per second, medians of at least %u rounds of %.2f s after a warm-up of the same "
               "length for all, turn about (0.5 s at least for streams of small messages between two CPUs);\n"
               "ratio: the median of the rounds' own ratios; low, high: its 95 %% interval. A row ends when that is "
               "+-%g, after %u rounds or %g s;\n",
               b->n_rows, o->rounds, o->seconds, o->width, o->rounds_max, o->row_seconds);
        if (o->minutes > 0)
                printf("sooner where the whole would take more than %g minutes. ", o->minutes);
        printf("CPUs %d and %d; verify %s\n", o->cpus[0], o->cpus[1], verify_name(o->verify));
}

static void print_summary(const struct bench *b) {
        printf("\n%u reach their limit, %u are undecided (the median of %u holds it, of %u misses it), %u "
               "are below it; %u have none, %u failed (%.0f minutes)\n",
               b->counts[VERDICT_REACHED], b->counts[VERDICT_HOLDS] + b->counts[VERDICT_MISSES],
               b->counts[VERDICT_HOLDS], b->counts[VERDICT_MISSES], b->counts[VERDICT_BELOW], b->unjudged, b->failed,
               (double) (util_now_ns() - b->begin_ns) / 60e9);
        for (unsigned v = 0; v < VERDICT_COUNT; v++)
                if (b->names[v])
                        printf("%s:\n%s", verdicts[v].heading, b->names[v]);
        (void) fflush(stdout);
}

int bench_run(struct bench *b) {
        const struct bench_part *part = NULL;
        if (b->n_rows == 0) {
                fprintf(stderr, "%s: there is no such row\n", b->options.program);
                return 2;
        }
        b->begin_ns = util_now_ns();
        print_opening(b);
        for (b->at = 0; b->at < b->n_rows; b->at++) {
                const struct bench_row *row = &b->rows[b->at];
                if (row->part != part)
                        print_heads(row->part);
                part = row->part;
                if (part->run(b, row) < 0) {
                        printf("%-21s %" PRIu64 " bytes, %s: failed\n", subject(&row->point), row->point.message_size,
                               workload_name(row->point.workload));
                        b->failed++;
                }
        }
        print_summary(b);
        return b->failed || (b->options.check && b->counts[VERDICT_BELOW] + b->counts[VERDICT_MISSES]) ? 1 : 0;
}
