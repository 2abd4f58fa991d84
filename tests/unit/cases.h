/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_CASES_H
#define IPCLAB_TESTS_CASES_H

/*
 * Cases with the answers of other programs: tests/unit/data/statistics/NAME.txt, a line of numbers each, as make.py
 * there wrote them. And how close to them is close enough.
 */

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct cases {
        FILE *f;
        char *line;
        size_t room, line_number;
        double *v; /* the numbers of the present line; valid until the next */
        size_t n, capacity, at;
};

static inline bool cases_open(struct cases *c, const char *name) {
        char path[512];
        const char *root = getenv("IPCLAB_SOURCE_ROOT");
        *c = (struct cases){0};
        (void) snprintf(path, sizeof(path), "%s/tests/unit/data/statistics/%s.txt", root ? root : ".", name);
        c->f = fopen(path, "re");
        if (!c->f)
                fprintf(stderr, "%s: %m\n", path);
        return c->f != NULL;
}

static inline void cases_close(struct cases *c) {
        if (c->f)
                fclose(c->f);
        free(c->line);
        free(c->v);
        *c = (struct cases){0};
}

static inline void cases_append(struct cases *c, double v) {
        if (c->n == c->capacity) {
                c->capacity = c->capacity ? 2 * c->capacity : 256;
                double *more = reallocarray(c->v, c->capacity, sizeof(*more));
                if (!more)
                        abort();
                c->v = more;
        }
        c->v[c->n++] = v;
}

/* The next case; false at the end of the file. */
static inline bool cases_next(struct cases *c) {
        do {
                c->line_number++;
                if (getline(&c->line, &c->room, c->f) < 0)
                        return false;
        } while (c->line[0] == '#');
        c->n = c->at = 0;
        for (char *p = c->line, *end;; p = end) {
                double v = strtod(p, &end);
                if (end == p)
                        return true;
                cases_append(c, v);
        }
}

/* The next `n` numbers of the case. */
static inline const double *cases_take(struct cases *c, size_t n) {
        if (n > c->n - c->at) {
                fprintf(stderr, "line %zu has only %zu numbers\n", c->line_number, c->n);
                abort();
        }
        c->at += n;
        return c->v + c->at - n;
}

static inline size_t cases_count(struct cases *c) {
        return (size_t) *cases_take(c, 1);
}

/* To 1e-12 of itself; what others give as 1 - p is no better than the rounding of 1. */
static inline bool is_close(double got, double want) {
        return fabs(got - want) <= 1e-12 * fmax(fabs(got), fabs(want)) + 1e-15;
}

#endif
