/* SPDX-License-Identifier: MIT */

/* The studies' questions, one row each, and how they are answered. */

#include "daemon/analysis/findings/studies.h"

#include "daemon/analysis/findings/asked.h"
#include "daemon/analysis/findings/findings-internal.h"
#include "daemon/analysis/phrase.h"
#include "daemon/analysis/statistics/serial.h"
#include "schema/presets.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const study_kind_names[STUDY_KINDS] = {
        [STUDY_FIGURE] = "figure", [STUDY_PEAK] = "peak", [STUDY_RATIO] = "ratio", [STUDY_FINDING] = "finding"};

/* Rows whose points have these values on the axes with a bit. */
struct selection {
        uint32_t bits;
        struct point point;
};

struct question {
        const char *study, *words;
        enum study_kind kind;
        struct selection of, over; /* `over`: the divisor of a ratio */
        enum figure figure;
        double factor, divisor; /* from the figure's unit to `unit` */
        const char *unit;
        double published; /* 0: no figure */
        const char *published_words;
        enum finding_kind finding; /* STUDY_FINDING: of this kind, along this axis, and, where `of` and `over` select
                                      anything, with a row of each */
        enum axis_name axis;
        const char *elsewhere; /* where the part of the answer is that no run has; set for what the media hold alone */
};

#define BIT(axis) (UINT32_C(1) << (axis))
#define PLACED(name) .bits = BIT(AXIS_PLACEMENT), .point = {.placement.kind = PLACEMENT_##name}

#define BLOCK(size, mib)                                                                                               \
        {                                                                                                              \
                "pipe-block-sweep",                                                                                    \
                        "How many MiB/s do blocks of " #size " bytes move, each end on a core of its own?",            \
                        STUDY_FIGURE,                                                                                  \
                        {BIT(AXIS_MESSAGE_SIZE) | BIT(AXIS_PLACEMENT),                                                 \
                         {.message_size = size, .placement.kind = PLACEMENT_SAME_NODE}},                               \
                        .figure = FIGURE_THROUGHPUT, .factor = 1, .divisor = 1048576, .unit = "MiB/s",                 \
                        .published = mib                                                                               \
        }
#define OPERATIONS(kind_of, words, size, bytes, rate)                                                                  \
        {                                                                                                              \
                "fifo-numa", "How many operations a second of " bytes " are there, " words "?", STUDY_FIGURE,          \
                        {BIT(AXIS_MESSAGE_SIZE) | BIT(AXIS_PLACEMENT),                                                 \
                         {.message_size = size, .placement.kind = PLACEMENT_##kind_of}},                               \
                        .figure = FIGURE_MESSAGES, .factor = 1, .divisor = 1, .unit = "messages/s", .published = rate  \
        }
#define BALANCED(size, bytes, ratio)                                                                                   \
        {                                                                                                              \
                "fifo-numa",                                                                                           \
                        "How many times as many operations of " bytes " are there placed by the "                      \
                        "kernel, which balances, as on one node?",                                                     \
                        STUDY_RATIO,                                                                                   \
                        {BIT(AXIS_MESSAGE_SIZE) | BIT(AXIS_PLACEMENT),                                                 \
                         {.message_size = size, .placement.kind = PLACEMENT_DEFAULT}},                                 \
                        {BIT(AXIS_MESSAGE_SIZE) | BIT(AXIS_PLACEMENT),                                                 \
                         {.message_size = size, .placement.kind = PLACEMENT_SAME_NODE}},                               \
                        .figure = FIGURE_MESSAGES, .factor = 1, .divisor = 1, .unit = "times", .published = ratio      \
        }
#define CALL(name, words, ...)                                                                                         \
        {                                                                                                              \
                "syscall-and-switch", "How long does " words " take?", STUDY_FIGURE,                                   \
                        {BIT(AXIS_WORKLOAD) | BIT(AXIS_CALL),                                                          \
                         {.workload = WORKLOAD_SYSCALL, .call = SYSTEM_CALL_##name}},                                  \
                        .figure = FIGURE_COST, .factor = 1, .divisor = 1, .unit = "ns", __VA_ARGS__                    \
        }
#define SWITCH(words, n, set, of_figure, ...)                                                                          \
        {                                                                                                              \
                "syscall-and-switch", words, STUDY_FIGURE,                                                             \
                        {BIT(AXIS_WORKLOAD) | BIT(AXIS_PROCESSES) | BIT(AXIS_WORKING_SET),                             \
                         {.workload = WORKLOAD_CONTEXT_SWITCH, .processes = n, .working_set = set}},                   \
                        .figure = of_figure, .factor = 1, .divisor = 1, .unit = "ns", __VA_ARGS__                      \
        }
#define GBIT .figure = FIGURE_THROUGHPUT, .factor = 8, .divisor = 1e9, .unit = "Gbit/s"
#define MODE_PEAK(mode, words, gbit, where)                                                                            \
        {                                                                                                              \
                "tcp-copy-modes", "What is the greatest throughput of " words ", and where?", STUDY_PEAK,              \
                        {BIT(AXIS_COPY_MODE), {.copy_mode = mode}}, GBIT, .published = gbit, .published_words = where  \
        }
#define MODE_COLLAPSE(mode, words, gbit)                                                                               \
        {                                                                                                              \
                "tcp-copy-modes", "What is left of " words " at 1 MiB and 8 threads?", STUDY_FIGURE,                   \
                        {BIT(AXIS_COPY_MODE) | BIT(AXIS_MESSAGE_SIZE) | BIT(AXIS_THREADS),                             \
                         {.copy_mode = mode, .message_size = 1 << 20, .threads = 8}},                                  \
                        GBIT, .published = gbit                                                                        \
        }
#define COUNTED(mode, size_of)                                                                                         \
        {                                                                                                              \
                BIT(AXIS_COPY_MODE) | BIT(AXIS_MESSAGE_SIZE) | BIT(AXIS_THREADS), {                                    \
                        .copy_mode = mode, .message_size = size_of, .threads = 1                                       \
                }                                                                                                      \
        }
#define MODE_CYCLES(mode, words, size, size_words)                                                                     \
        {                                                                                                              \
                "tcp-copy-modes",                                                                                      \
                        "How many times two-copy's cycles per byte does " words " take at " size_words                 \
                        " and one thread?",                                                                            \
                        STUDY_RATIO, COUNTED(mode, size), COUNTED(COPY_TWO, size),                                     \
                        .figure = FIGURE_CYCLES_PER_BYTE, .factor = 1, .divisor = 1, .unit = "times"                   \
        }
#define MODE_MISSES(mode, words, size, size_words)                                                                     \
        {                                                                                                              \
                "tcp-copy-modes",                                                                                      \
                        "How often does a message miss the last cache with " words " at " size_words " and one "       \
                        "thread?",                                                                                     \
                        STUDY_FIGURE, COUNTED(mode, size), .figure = FIGURE_LLC_MISSES, .factor = 1, .divisor = 1,     \
                                                           .unit = "misses"                                            \
        }
#define MODES_AT(size, size_words)                                                                                     \
        MODE_CYCLES(COPY_ONE, "one-copy", size, size_words), MODE_CYCLES(COPY_ZERO, "zero-copy", size, size_words),    \
                MODE_MISSES(COPY_TWO, "two-copy", size, size_words),                                                   \
                MODE_MISSES(COPY_ONE, "one-copy", size, size_words),                                                   \
                MODE_MISSES(COPY_ZERO, "zero-copy", size, size_words)
#define MEDIUM(transport_of, words, ms, gbit)                                                                          \
        {"ipc-4mib",                                                                                                   \
         "How long does 4 MiB take one way over " words "?",                                                           \
         STUDY_FIGURE,                                                                                                 \
         {BIT(AXIS_TRANSPORT), {.transport = transport_of}},                                                           \
         .figure = FIGURE_ONE_WAY_MEAN,                                                                                \
         .factor = 1,                                                                                                  \
         .divisor = 1e6,                                                                                               \
         .unit = "ms",                                                                                                 \
         .published = ms},                                                                                             \
        {                                                                                                              \
                "ipc-4mib", "What is the throughput of 4 MiB there and back over " words "?", STUDY_FIGURE,            \
                        {BIT(AXIS_TRANSPORT), {.transport = transport_of}},                                            \
                        .figure = FIGURE_BOTH_WAYS, .factor = 8, .divisor = 1e9, .unit = "Gbit/s", .published = gbit   \
        }
#define FINDS(study_of, words_of, kind_of, axis_of, published_of, ...)                                                 \
        {                                                                                                              \
                .study = study_of, .words = words_of, .kind = STUDY_FINDING, .finding = kind_of, .axis = axis_of,      \
                .published_words = published_of, __VA_ARGS__                                                           \
        }
#define OVERTAKES(mode, words)                                                                                         \
        FINDS("tcp-copy-modes", "Where does " words " overtake two-copy?", FINDING_CROSSOVER, AXIS_COPY_MODE, NULL,    \
              .of = {BIT(AXIS_COPY_MODE), {.copy_mode = mode}},                                                        \
              .over = {BIT(AXIS_COPY_MODE), {.copy_mode = COPY_TWO}})

static const struct question questions[] = {
        BLOCK(64, 250.91),
        BLOCK(256, 933.07),
        BLOCK(1024, 2534.25),
        BLOCK(4096, 1532.90),
        BLOCK(8192, 3184.68),
        BLOCK(16384, 2093.62),
        BLOCK(32768, 1508.83),
        BLOCK(65536, 1096.92),
        {"pipe-block-sweep",
         "How many times as fast are both ends on one CPU, each at its best block size?",
         STUDY_RATIO,
         {PLACED(SAME_CPU)},
         {PLACED(SAME_NODE)},
         .figure = FIGURE_THROUGHPUT,
         .factor = 1,
         .divisor = 1,
         .unit = "times",
         .published_words = "much faster"},
        FINDS("pipe-block-sweep", "Which range of block sizes is best?", FINDING_BEST_SIZE, AXIS_MESSAGE_SIZE,
              "best at 8192 bytes"),
        FINDS("pipe-block-sweep", "Up to which block size is it bound by system calls?", FINDING_KNEE,
              AXIS_MESSAGE_SIZE, "small blocks are"),

        OPERATIONS(CROSS_NODE, "each end on a node of its own", 1, "1 byte", 931742),
        OPERATIONS(SAME_NODE, "both ends on one node", 1, "1 byte", 987535),
        OPERATIONS(DEFAULT, "placed by the kernel, which balances", 1, "1 byte", 1120230),
        OPERATIONS(CROSS_NODE, "each end on a node of its own", 1024, "1024 bytes", 604070),
        OPERATIONS(SAME_NODE, "both ends on one node", 1024, "1024 bytes", 928523),
        OPERATIONS(DEFAULT, "placed by the kernel, which balances", 1024, "1024 bytes", 975727),
        OPERATIONS(CROSS_NODE, "each end on a node of its own", 4096, "4096 bytes", 376642),
        OPERATIONS(SAME_NODE, "both ends on one node", 4096, "4096 bytes", 684026),
        OPERATIONS(DEFAULT, "placed by the kernel, which balances", 4096, "4096 bytes", 685598),
        FINDS("fifo-numa", "What does the other node cost?", FINDING_COST, AXIS_PLACEMENT,
              "6 % at 1 byte, 35 % at 1024, 45 % at 4096", .of = {PLACED(CROSS_NODE)}, .over = {PLACED(SAME_NODE)}),
        BALANCED(1, "1 byte", 1120230.0 / 987535),
        BALANCED(1024, "1024 bytes", 975727.0 / 928523),
        BALANCED(4096, "4096 bytes", 685598.0 / 684026),

        CALL(GETPID, "the system call getpid", .published_words = "not measured: its figure is the cached value"),
        CALL(GETPID_LIBC, "getpid() of the C library", .published = 2.68, .published_words = "cached by its C library"),
        CALL(CLOCK_GETTIME_VDSO, "clock_gettime by the vDSO"),
        CALL(CLOCK_GETTIME_SYSCALL, "clock_gettime as a system call"),
        CALL(READ_ZERO, "read() of a byte of /dev/zero"),
        SWITCH("How long does a context switch between two processes take, pipe included?", 2, 0, FIGURE_HOP,
               .published = 2714),
        SWITCH("How long does it take without the pipe's overhead?", 2, 0, FIGURE_COST),
        SWITCH("How long with eight processes that touch 64 KiB each?", 8, 65536, FIGURE_COST),

        MODE_PEAK(COPY_TWO, "two-copy", 365, "at 64 KiB and 8 threads"),
        MODE_PEAK(COPY_ONE, "one-copy", 355, "at 256 KiB and 4 threads"),
        MODE_PEAK(COPY_ZERO, "zero-copy", 283, "at 256 KiB and 4 threads"),
        MODE_COLLAPSE(COPY_TWO, "two-copy", 66),
        MODE_COLLAPSE(COPY_ONE, "one-copy", 47),
        MODE_COLLAPSE(COPY_ZERO, "zero-copy", 38),
        OVERTAKES(COPY_ONE, "one-copy"),
        OVERTAKES(COPY_ZERO, "zero-copy"),
        FINDS("tcp-copy-modes", "Where does throughput collapse?", FINDING_SCALING, AXIS_THREADS,
              "at 1 MiB and 8 threads"),
        MODES_AT(16384, "16 KiB"),
        MODES_AT(1 << 20, "1 MiB"),

        MEDIUM(TRANSPORT_MMAP_FILE, "a shared mapping of a file", 2.10, 16.8),
        MEDIUM(TRANSPORT_MMAP_ANONYMOUS, "an anonymous shared mapping", 1.93, 17.9),
        MEDIUM(TRANSPORT_SHM_SYSV, "shared memory", 1.95, 17.2),
        MEDIUM(TRANSPORT_FILE, "a plain file", 3.63, 9.7),
        MEDIUM(TRANSPORT_FIFO, "a named pipe", 1.35, 24.9),
        MEDIUM(TRANSPORT_MSGQ_SYSV, "a message queue", 1.19, 29.8),
        FINDS("ipc-4mib", "Which medium is fastest?", FINDING_RANKING, AXIS_TRANSPORT, "the message queue, in pieces"),
        {.study = "ipc-4mib",
         .words = "How much does each medium hold at once, and which setting limits it?",
         .kind = STUDY_FINDING,
         .axis = AXIS_TRANSPORT,
         .finding = FINDING_KINDS,
         .published_words = "limited by shmmax, pipe-max-size, msgmax and msgmnb, the file system, the address space",
         .elsewhere =
                 "GET /transports has each medium's largest transfer on this host, the setting that limits it, and how "
                 "to raise it"},
};

/* An experiment, and which of the study's questions it still answers. */
struct asking {
        const struct findings_input *in;
        const struct findings *findings;
        struct asked asked;
};

static bool selects(const struct asking *k, const struct selection *s, const struct point *p) {
        if (!asked_point(&k->asked, p))
                return false;
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const struct axis *a = &axes[i];
                if (!(s->bits & BIT(i)))
                        continue;
                if (i == AXIS_PLACEMENT) { /* whatever else it requires */
                        if (s->point.placement.kind != p->placement.kind)
                                return false;
                } else if (!axis_applies(a, p) ||
                           !a->value.type->equal(&a->value, axis_of(a, &s->point), axis_of(a, p))) {
                        return false;
                }
        }
        return true;
}

/* n_runs: of this row, that the answer rests on */
static int add_row(const struct findings_input *in, struct study_answer *a, uint32_t row, size_t n_runs) {
        uint32_t *rows = reallocarray(a->rows, a->n_rows + 1, sizeof(*rows));
        if (!rows)
                return -ENOMEM;
        a->rows = rows;
        rows[a->n_rows++] = row;
        if (a->confidence == CONFIDENCE_NONE)
                a->confidence = CONFIDENCE_HIGH;
        if (findings_row_is_doubtful(&in->rows[row]) || n_runs < FINDINGS_RUNS_LEAST)
                a->confidence = CONFIDENCE_REDUCED;
        return 0;
}

/* Few runs are named with the figure: "64 KiB, 8 threads; 2 runs". */
static void name_runs(struct finding_figure *figure, size_t n_runs) {
        const size_t length = strlen(figure->of);
        if (n_runs < FINDINGS_RUNS_LEAST)
                (void) snprintf(figure->of + length, sizeof(figure->of) - length, "%s%zu run%s", length ? "; " : "",
                                n_runs, n_runs == 1 ? "" : "s");
}

/* The selected row with the greatest median; n = 0 in the statistic where there is none. Of one row it is that. */
static int greatest(const struct asking *k, const struct selection *s, enum figure figure, struct statistic *ret,
                    uint32_t *ret_row) {
        const struct findings_input *in = k->in;
        *ret = (struct statistic){0};
        for (size_t i = 0; i < in->n_rows; i++) {
                struct statistic here;
                if (!selects(k, s, &in->rows[i].point))
                        continue;
                int r = findings_row_statistic(&in->rows[i], figure, &here, NULL);
                if (r < 0)
                        return r;
                if (here.n > 0 && (ret->n == 0 || here.median > ret->median)) {
                        *ret = here;
                        *ret_row = (uint32_t) i;
                }
        }
        return 0;
}

static int answer_figure(const struct question *q, const struct asking *k, struct study_answer *a) {
        const struct findings_input *in = k->in;
        struct statistic s;
        uint32_t row = 0;
        char size[PHRASE_MAX];
        int r = greatest(k, &q->of, q->figure, &s, &row);
        double scale = q->factor / q->divisor;
        if (r < 0 || s.n == 0)
                return r;
        a->has_figure = true;
        a->figure = (struct finding_figure){.value = s.median * scale,
                                            .unit = q->unit,
                                            .has_interval = s.has_ci95,
                                            .low = s.ci95_low * scale,
                                            .high = s.ci95_high * scale,
                                            .level = s.level};
        figure_name(q->figure, a->figure.name, sizeof(a->figure.name));
        if (q->kind == STUDY_PEAK) {
                phrase_axis(AXIS_MESSAGE_SIZE, &in->rows[row].point, size);
                (void) snprintf(a->figure.of, sizeof(a->figure.of), "%.60s, %u thread%s", size,
                                in->rows[row].point.threads, in->rows[row].point.threads == 1 ? "" : "s");
        }
        name_runs(&a->figure, s.n);
        return add_row(in, a, row, s.n);
}

/* The ratio of two rows and its interval, by their blocks where they have them in common. */
static int compare_two(const struct question *q, const struct findings_row *over, const struct findings_row *of,
                       struct study_answer *a) {
        const struct compare_rule rule = {.margin = COMPARE_MARGIN, .correction = MULTIPLE_HOLM};
        struct compare_row row;
        struct comparison c;
        _cleanup_free_ double *values = reallocarray(NULL, over->n_runs + of->n_runs, sizeof(*values));
        if (!values)
                return -ENOMEM;
        (void) findings_fill_comparison(over, of, q->figure, false, values, &row);
        if (row.n_baseline == 0 || row.n_candidate == 0)
                return 0;
        int r = compare_rows(&row, 1, &rule, &c);
        if (r < 0)
                return r;
        a->has_figure = true;
        a->figure = (struct finding_figure){.name = "ratio",
                                            .value = c.ratio,
                                            .unit = q->unit,
                                            .has_interval = c.has_interval,
                                            .low = c.low,
                                            .high = c.high,
                                            .level = c.level};
        return 0;
}

static int answer_ratio(const struct question *q, const struct asking *k, struct study_answer *a) {
        const struct findings_input *in = k->in;
        struct statistic of = {0}, over = {0};
        uint32_t rows[2] = {0, 0};
        int r = greatest(k, &q->of, q->figure, &of, &rows[0]);
        if (r == 0)
                r = greatest(k, &q->over, q->figure, &over, &rows[1]);
        if (r < 0 || of.n == 0 || over.n == 0)
                return r;
        size_t runs_least = of.n < over.n ? of.n : over.n;
        r = compare_two(q, &in->rows[rows[1]], &in->rows[rows[0]], a);
        if (r == 0 && a->has_figure)
                name_runs(&a->figure, runs_least);
        for (size_t i = 0; r == 0 && a->has_figure && i < ELEMENTS(rows); i++)
                r = add_row(in, a, rows[i], runs_least);
        return r;
}

/* Whether one of these rows has what the selection selects; rows NULL: all of them that have runs. */
static bool has_selected(const struct asking *k, const struct selection *s, const uint32_t *rows, size_t n) {
        for (size_t i = 0; i < (rows ? n : k->in->n_rows); i++) {
                const struct findings_row *row = &k->in->rows[rows ? rows[i] : i];
                if ((rows || row->n_runs > 0) && selects(k, s, &row->point))
                        return true;
        }
        return false;
}

/* Any finding that rests on the study's points alone is about a question that names no two values. */
static bool is_about(const struct question *q, const struct asking *k, const struct finding *f) {
        for (size_t i = 0; i < f->n_rows; i++)
                if (!asked_point(&k->asked, &k->in->rows[f->rows[i]].point))
                        return false;
        return (q->of.bits == 0 || has_selected(k, &q->of, f->rows, f->n_rows)) &&
               (q->over.bits == 0 || has_selected(k, &q->over, f->rows, f->n_rows));
}

/* The sentences one after the other. */
static int answer_finding(const struct question *q, const struct asking *k, struct study_answer *a) {
        const struct findings_input *in = k->in;
        const struct findings *f = k->findings;
        size_t length = 0;
        int r = 0;
        for (size_t i = 0; r == 0 && i < f->n; i++) {
                const struct finding *one = &f->items[i];
                if (one->kind != q->finding || one->axis != q->axis || !is_about(q, k, one))
                        continue;
                size_t more = strlen(one->sentence);
                char *sentence = realloc(a->sentence, length + more + 2);
                if (!sentence)
                        return -ENOMEM;
                a->sentence = sentence;
                length += (size_t) snprintf(sentence + length, more + 2, "%s%s", length ? " " : "", one->sentence);
                for (size_t j = 0; r == 0 && j < one->n_rows; j++)
                        r = add_row(in, a, one->rows[j], in->rows[one->rows[j]].n_runs);
                if (one->confidence == CONFIDENCE_REDUCED)
                        a->confidence = CONFIDENCE_REDUCED;
        }
        return r;
}

/* "In these runs fifo held 64 KiB, msgq-sysv 16 KiB, one way; msgq-sysv took a message in pieces of 8 KiB." */
static void write_held(FILE *f, const struct findings_input *in, const uint32_t *rows, size_t n) {
        char name[PHRASE_MAX], size[PHRASE_MAX];
        for (size_t i = 0; i < n; i++) {
                phrase_axis(AXIS_TRANSPORT, &in->rows[rows[i]].point, name);
                phrase_value(in->rows[rows[i]].in_force.buffer_bytes, "bytes", size);
                (void) fprintf(f, "%s%s%s %s", i ? ", " : "In these runs ", name, i ? "" : " held", size);
        }
        (void) fputs(", one way", f);
        for (size_t i = 0; i < n; i++) {
                const struct findings_row *row = &in->rows[rows[i]];
                if (!(row->in_force.chunk_bytes > 0) || row->in_force.chunk_bytes >= (double) row->point.message_size)
                        continue;
                phrase_axis(AXIS_TRANSPORT, &row->point, name);
                phrase_value(row->in_force.chunk_bytes, "bytes", size);
                (void) fprintf(f, "; %s took a message in pieces of %s", name, size);
        }
}

/* What each medium held; its largest transfer on this host is no run's. */
static int answer_held(const struct question *q, const struct asking *k, struct study_answer *a) {
        const struct findings_input *in = k->in;
        size_t length = 0;
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < in->n_rows; i++) {
                bool seen = in->rows[i].n_runs == 0 || !(in->rows[i].in_force.buffer_bytes > 0) ||
                            !asked_point(&k->asked, &in->rows[i].point);
                for (size_t j = 0; j < a->n_rows && !seen; j++)
                        seen = in->rows[a->rows[j]].point.transport == in->rows[i].point.transport;
                r = seen ? 0 : add_row(in, a, i, in->rows[i].n_runs);
        }
        if (r < 0 || a->n_rows == 0)
                return r;
        FILE *f = open_memstream(&a->sentence, &length);
        if (!f)
                return -ENOMEM;
        write_held(f, in, a->rows, a->n_rows);
        (void) fprintf(f, ". %s.", q->elsewhere);
        return fclose(f) == 0 && a->sentence ? 0 : -ENOMEM;
}

/* Whether two rows with runs differ in the question's axis: without them there is nothing to conclude from. */
static bool has_two_values(const struct question *q, const struct asking *k) {
        const struct findings_input *in = k->in;
        const struct axis *a = &axes[q->axis];
        const struct point *first = NULL;
        if (q->of.bits)
                return has_selected(k, &q->of, NULL, 0) && has_selected(k, &q->over, NULL, 0);
        for (size_t i = 0; i < in->n_rows; i++) {
                const struct point *p = &in->rows[i].point;
                if (in->rows[i].n_runs == 0 || !axis_applies(a, p))
                        continue;
                if (first && !a->value.type->equal(&a->value, axis_of(a, first), axis_of(a, p)))
                        return true;
                first = first ? first : p;
        }
        return false;
}

/* Whether the rows are there, though none of their runs may be done yet. */
static bool is_planned(const struct question *q, const struct asking *k) {
        const struct findings_input *in = k->in;
        bool of = false, over = q->kind != STUDY_RATIO;
        for (size_t i = 0; i < in->n_rows; i++) {
                of = of || selects(k, &q->of, &in->rows[i].point);
                over = over || selects(k, &q->over, &in->rows[i].point);
        }
        return of && over;
}

static bool has_runs_without_ratios(const struct question *q, const struct asking *k) {
        const struct findings_input *in = k->in;
        for (size_t i = 0; i < in->n_rows; i++)
                if ((selects(k, &q->of, &in->rows[i].point) || selects(k, &q->over, &in->rows[i].point)) &&
                    !findings_row_has_ratios(&in->rows[i], q->figure))
                        return true;
        return false;
}

/* ---- a crossover that there is not ---- */

/* The sizes at which both values ran, with one number of threads: on which of them the first is better for certain. */
struct standing {
        size_t n, n_better, n_worse;
        uint64_t least, most; /* sizes */
        bool crosses;         /* a finding has where */
};

static bool is_crossover_of(const struct question *q, const struct asking *k, const struct finding *f, uint32_t row) {
        bool has = false;
        for (size_t i = 0; i < f->n_rows; i++)
                has = has || f->rows[i] == row;
        return has && f->kind == q->finding && f->axis == q->axis && is_about(q, k, f);
}

/* 1: the row is better for certain than its match; -1: worse. */
static int lead_of(const struct question *q, const struct asking *k, uint32_t row, uint32_t match) {
        for (size_t i = 0; i < k->findings->n; i++) {
                const struct finding *f = &k->findings->items[i];
                if (f->kind == FINDING_COST && f->axis == q->axis && f->n_rows == 2 && f->rows[0] == match &&
                    f->rows[1] == row)
                        return f->lead;
        }
        return 0;
}

/* The row with runs of the other value that equals this one else; false: there is none. */
static bool find_match(const struct question *q, const struct asking *k, const struct point *p, uint32_t *ret) {
        for (size_t i = 0; i < k->in->n_rows; i++) {
                const struct findings_row *row = &k->in->rows[i];
                if (row->n_runs > 0 && selects(k, &q->over, &row->point) && points_match(p, &row->point, q->axis)) {
                        *ret = (uint32_t) i;
                        return true;
                }
        }
        return false;
}

static struct standing standing_at(const struct question *q, const struct asking *k, uint32_t threads) {
        struct standing s = {0};
        for (uint32_t i = 0; i < k->in->n_rows; i++) {
                const struct findings_row *row = &k->in->rows[i];
                uint32_t match;
                if (row->n_runs == 0 || row->point.threads != threads || !selects(k, &q->of, &row->point) ||
                    !find_match(q, k, &row->point, &match))
                        continue;
                int lead = lead_of(q, k, i, match);
                s.n_better += lead > 0;
                s.n_worse += lead < 0;
                s.least = s.n == 0 || row->point.message_size < s.least ? row->point.message_size : s.least;
                s.most = row->point.message_size > s.most ? row->point.message_size : s.most;
                s.n++;
                for (size_t f = 0; f < k->findings->n; f++)
                        s.crosses |= is_crossover_of(q, k, &k->findings->items[f], i);
        }
        return s;
}

/* "two-copy leads at every size that was measured, 16 KiB to 1 MiB, with 8 threads: one-copy overtakes two-copy at none
 * of them." */
static void write_standing(FILE *f, const struct question *q, const struct standing *s, uint32_t threads) {
        char of[PHRASE_MAX], over[PHRASE_MAX], least[PHRASE_MAX], most[PHRASE_MAX];
        bool better = s->n_better == s->n;
        phrase_axis(q->axis, &q->of.point, of);
        phrase_axis(q->axis, &q->over.point, over);
        phrase_axis(AXIS_MESSAGE_SIZE, &(struct point){.message_size = s->least}, least);
        phrase_axis(AXIS_MESSAGE_SIZE, &(struct point){.message_size = s->most}, most);
        (void) fprintf(f, "%s%s leads %s, %s%s%s, with %u thread%s", ftell(f) > 0 ? " " : "", better ? of : over,
                       s->n == 1 ? "at the only size that was measured" : "at every size that was measured", least,
                       s->least == s->most ? "" : " to ", s->least == s->most ? "" : most, threads,
                       threads == 1 ? "" : "s");
        if (better)
                (void) fputs(", so there is no size at which it begins to.", f);
        else
                (void) fprintf(f, ": %s overtakes %s at none of them.", of, over);
}

static int add_standing_rows(const struct question *q, const struct asking *k, uint32_t threads,
                             struct study_answer *a) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < k->in->n_rows; i++) {
                const struct findings_row *row = &k->in->rows[i];
                if (row->n_runs > 0 && row->point.threads == threads &&
                    (selects(k, &q->of, &row->point) || selects(k, &q->over, &row->point)))
                        r = add_row(k->in, a, i, row->n_runs);
        }
        return r;
}

/* Where one leads at all sizes there is nothing to overtake: that is the answer, with each number of threads. */
static int answer_leads(const struct question *q, const struct asking *k, struct study_answer *a) {
        _cleanup_free_ char *sentence = NULL;
        size_t length = 0;
        int r = 0;
        FILE *f = open_memstream(&sentence, &length);
        if (!f)
                return -ENOMEM;
        if (a->sentence)
                (void) fputs(a->sentence, f);
        for (uint32_t i = 0; r == 0 && i < k->in->n_rows; i++) {
                const uint32_t threads = k->in->rows[i].point.threads;
                bool seen = false;
                for (uint32_t j = 0; j < i && !seen; j++)
                        seen = k->in->rows[j].point.threads == threads;
                const struct standing s = seen ? (struct standing){0} : standing_at(q, k, threads);
                if (s.n == 0 || s.crosses || (s.n_better < s.n && s.n_worse < s.n))
                        continue;
                write_standing(f, q, &s, threads);
                r = add_standing_rows(q, k, threads, a);
        }
        if (fclose(f) != 0 || !sentence)
                return -ENOMEM;
        if (length > 0) {
                free(a->sentence);
                a->sentence = util_steal(&sentence);
        }
        return r;
}

/* ---- what is not asked any more ---- */

static bool has_value_of(const struct selection *s, const struct asked *a, enum axis_name axis) {
        return !(s->bits & BIT(axis)) || asked_value(a, axis, &s->point);
}

/* Whether one finding is of all values of the axis: others beside the study's change it. */
static bool spans(const struct question *q, enum axis_name axis) {
        return q->kind == STUDY_FINDING &&
               (axis == q->axis || (q->finding == FINDING_CROSSOVER && axis == AXIS_MESSAGE_SIZE));
}

/* The axes, as bits, in which the experiment has not what the question is about. Of an axis that it names no value of,
 * a figure takes one row of the study's; what is greatest, or concluded, takes all of them. */
static uint32_t lost_axes(const struct question *q, const struct asked *a) {
        uint32_t lost = 0;
        for (enum axis_name axis = 0; axis < AXIS_COUNT; axis++) {
                bool named = (q->of.bits | q->over.bits) & BIT(axis), kept;
                if (q->of.bits & BIT(AXIS_WORKLOAD) && !axis_applies(&axes[axis], &q->of.point))
                        continue; /* it has no meaning for the question's workload */
                if (named)
                        kept = has_value_of(&q->of, a, axis) && has_value_of(&q->over, a, axis);
                else if (q->kind == STUDY_FIGURE)
                        kept = asked_any(a, axis);
                else
                        kept = asked_all(a, axis) && (!spans(q, axis) || asked_alone(a, axis));
                lost |= kept ? 0 : BIT(axis);
        }
        return lost;
}

/* "transport and message_size", as far as there is room. */
static void name_axes(uint32_t bits, char *ret, size_t size) {
        size_t used = 0;
        for (enum axis_name axis = 0; axis < AXIS_COUNT && used < size; axis++) {
                bool last = !(bits >> axis >> 1);
                if (bits & BIT(axis))
                        used += (size_t) snprintf(ret + used, size - used, "%s%s",
                                                  !used  ? ""
                                                  : last ? " and "
                                                         : ", ",
                                                  axes[axis].value.name);
        }
}

/* Writes why it is not asked; *ret stays NULL where it is. */
static int say_not_asked(const struct question *q, const struct asked *asked, char **ret) {
        const uint32_t lost = lost_axes(q, asked);
        char names[128];
        if (q->elsewhere || (lost == 0 && !asked->setting))
                return 0;
        if (lost)
                name_axes(lost, names, sizeof(names));
        else
                (void) snprintf(names, sizeof(names), "%s", asked->setting);
        int n = asprintf(ret,
                         "the experiment changes the preset's %s: it does not ask this, and the published answer does "
                         "not apply",
                         names);
        if (n < 0)
                *ret = NULL;
        return n < 0 ? -ENOMEM : 0;
}

static bool is_left_to_the_study(const struct question *q, const struct asked *a) {
        for (enum axis_name axis = 0; axis < AXIS_COUNT; axis++)
                if (q->of.bits & BIT(axis) && !asked_by_preset(a, axis, &q->of.point))
                        return true;
        return false;
}

/* Whether the hardware's counters give it, which a machine may not have. */
static bool is_counted(enum figure figure) {
        return figure == FIGURE_CYCLES_PER_BYTE || figure == FIGURE_LLC_MISSES;
}

static const char *why_no_answer(const struct question *q, const struct asking *k) {
        if (q->elsewhere)
                return "no run that is done tells what its medium held: GET /transports has each medium's largest "
                       "transfer on this host, the setting that limits it, and how to raise it";
        if (q->kind == STUDY_RATIO && has_runs_without_ratios(q, k))
                return "a run's figure is 0 or less, and there is no ratio of such";
        if (q->kind != STUDY_FINDING && is_planned(q, k)) {
                if (!has_selected(k, &q->of, NULL, 0) ||
                    (q->kind == STUDY_RATIO && !has_selected(k, &q->over, NULL, 0)))
                        return "no run of such a row is done";
                return is_counted(q->figure) && k->in->uncounted ? k->in->uncounted
                                                                 : "no run of such a row has this figure";
        }
        if (q->kind != STUDY_FINDING)
                return is_left_to_the_study(q, &k->asked) ? "the brief form of the preset has no such row"
                                                          : "the experiment has no such row: see its skipped points";
        return has_two_values(q, k) ? "the runs do not let one conclude it: see the findings that are undecided"
                                    : "the experiment has no two rows that differ in it and have runs that are done: "
                                      "see its skipped points";
}

static int answer(const struct question *q, const struct asking *k, struct study_answer *a) {
        *a = (struct study_answer){.question = q->words,
                                   .kind = q->kind,
                                   .unit = q->unit,
                                   .has_published = q->published > 0,
                                   .published = q->published,
                                   .published_words = q->published_words};
        int r = say_not_asked(q, &k->asked, &a->reason);
        if (r < 0 || a->reason)
                return r;
        r = q->elsewhere               ? answer_held(q, k, a)
            : q->kind == STUDY_FINDING ? answer_finding(q, k, a)
            : q->kind == STUDY_RATIO   ? answer_ratio(q, k, a)
                                       : answer_figure(q, k, a);
        if (r == 0 && q->kind == STUDY_FINDING && q->finding == FINDING_CROSSOVER)
                r = answer_leads(q, k, a);
        if (r < 0 || a->sentence || a->has_figure)
                return r;
        a->reason = strdup(why_no_answer(q, k));
        return a->reason ? 0 : -ENOMEM;
}

static void study_freep(struct study **s) {
        study_free(*s);
}

static int answer_all(const struct asking *k, const char *study, struct study **ret) {
        _cleanup_(study_freep) struct study *s = calloc(1, sizeof(*s));
        int r = 0;
        if (s)
                s->answers = calloc(ELEMENTS(questions), sizeof(*s->answers));
        if (!s || !s->answers)
                return -ENOMEM;
        s->name = study;
        for (size_t i = 0; r == 0 && i < ELEMENTS(questions); i++)
                if (strcmp(questions[i].study, study) == 0)
                        r = answer(&questions[i], k, &s->answers[s->n++]);
        if (r == 0)
                *ret = util_steal(&s);
        return r;
}

int study_answer(const char *preset, const struct spec *spec, const struct findings_input *in,
                 const struct findings *findings, struct study **ret) {
        struct asking k = {.in = in, .findings = findings};
        size_t i = 0;
        while (i < ELEMENTS(questions) && !(preset && preset_is_of(preset, questions[i].study)))
                i++;
        *ret = NULL;
        if (i == ELEMENTS(questions))
                return 0;
        int r = asked_init(&k.asked, preset, questions[i].study, spec);
        if (r == 0)
                r = answer_all(&k, questions[i].study, ret);
        asked_deinit(&k.asked);
        return r;
}

void study_free(struct study *s) {
        for (size_t i = 0; s && i < s->n; i++) {
                free(s->answers[i].sentence);
                free(s->answers[i].reason);
                free(s->answers[i].rows);
        }
        if (s)
                free(s->answers);
        free(s);
}

size_t study_bytes(const struct study *s) {
        size_t bytes = s ? sizeof(*s) + ELEMENTS(questions) * sizeof(*s->answers) : 0;
        for (size_t i = 0; s && i < s->n; i++)
                bytes += s->answers[i].n_rows * sizeof(uint32_t) +
                         (s->answers[i].sentence ? strlen(s->answers[i].sentence) : 0) +
                         (s->answers[i].reason ? strlen(s->answers[i].reason) : 0);
        return bytes;
}
