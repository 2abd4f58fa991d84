/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_MADE_H
#define IPCLAB_TESTS_MADE_H

/* Rows of figures that were made by a known law, for the tests of what is concluded from rows. */

#include "daemon/analysis/findings/findings.h"
#include "tests/unit/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a spec's points, each with runs of `blocks` blocks. */
struct made {
        struct spec *spec;
        struct point_list points;
        struct findings_row *rows;
        struct findings_run *runs;
        size_t n_rows, blocks;
        struct random random;
};

static inline void made_deinit(struct made *m) {
        free(m->rows);
        free(m->runs);
        point_list_deinit(&m->points);
        spec_free(m->spec);
}
#define MADE __attribute__((cleanup(made_deinit))) struct made

static inline void make(struct made *m, const char *spec, size_t blocks, uint64_t seed) {
        struct refusal r = {0};
        *m = (struct made){.blocks = blocks};
        random_init(&m->random, seed);
        if (spec_parse(spec, strlen(spec), &m->spec, &r) < 0 || spec_points(m->spec, &m->points, &r) < 0) {
                fprintf(stderr, "%s: %s\n", spec, r.detail);
                abort();
        }
        m->n_rows = m->points.n_points;
        m->rows = calloc(m->n_rows, sizeof(*m->rows));
        m->runs = calloc(m->n_rows * blocks, sizeof(*m->runs));
        if (!m->rows || !m->runs)
                abort();
        for (size_t i = 0; i < m->n_rows; i++)
                m->rows[i] = (struct findings_row){.point = m->points.points[i],
                                                   .runs = m->runs + i * blocks,
                                                   .n_runs = blocks,
                                                   .n_planned = (uint32_t) blocks};
}

/* Nanoseconds that a message of the point takes, and of CPU. */
typedef double (*law)(const struct point *p);

/* Run by run with noise, and from block to block with a drift that all rows of a block share. */
static inline void measure(struct made *m, law time, law cpu, double noise, double drift) {
        double host = 0;
        for (size_t b = 0; b < m->blocks; b++) {
                host += drift * sample_normal(&m->random);
                for (size_t i = 0; i < m->n_rows; i++) {
                        struct findings_run *run = &m->runs[i * m->blocks + b];
                        const struct point *p = &m->rows[i].point;
                        double ns = time(p) * exp(host + noise * sample_normal(&m->random));
                        *run = (struct findings_run){.id = (int64_t) (b * m->n_rows + i + 1),
                                                     .block = (uint32_t) b + 1};
                        for (size_t f = 0; f < FIGURE_COUNT; f++)
                                run->values[f] = NAN;
                        run->values[FIGURE_MESSAGES] = 1e9 / ns;
                        run->values[FIGURE_THROUGHPUT] = 1e9 / ns * (double) p->message_size;
                        if (p->workload == WORKLOAD_PINGPONG) {
                                run->values[FIGURE_LATENCY_P50] = ns;
                                run->values[FIGURE_LATENCY_P99] = 2 * ns * exp(noise * sample_normal(&m->random));
                        }
                        if (cpu)
                                run->values[FIGURE_CPU_PER_MESSAGE] = cpu(p) * exp(noise * sample_normal(&m->random));
                }
        }
}

#endif
