/* SPDX-License-Identifier: MIT */

/* Puts what the agents counted in times of their own into the seconds of a window. */

#include "daemon/host/disturbance/disturbance.h"

#include "schema/util.h"

#include <errno.h>
#include <stdlib.h>

static bool is_alike(const struct disturbance_note *a, const struct disturbance_note *b) {
        return a->what == b->what && a->end == b->end && a->begin_ns == b->begin_ns && a->end_ns == b->end_ns;
}

static void add_up(struct disturbance *d, enum disturbance_noted what, int64_t n) {
        int64_t *sum = &d->noted[what];
        if (n < 0 || __builtin_add_overflow(*sum < 0 ? 0 : *sum, n, sum))
                d->unknown[what] = true;
        if (d->unknown[what])
                *sum = -1;
}

/* Counts come from an agent. A sum that no number holds is the most, and is not written, as that of the run is not
 * known. */
static void add_some(int64_t *sum, int64_t n) {
        if (__builtin_add_overflow(*sum, n, sum))
                *sum = INT64_MAX;
}

int disturbance_note(struct disturbance *d, const struct disturbance_note *note) {
        struct disturbance_note *last = d->n_notes ? &d->notes[d->n_notes - 1] : NULL;
        add_up(d, note->what, note->n);
        if (note->n <= 0)
                return 0;
        if (last && is_alike(last, note)) { /* of another thread */
                add_some(&last->n, note->n);
                return 0;
        }
        if (d->n_notes == d->notes_size) {
                size_t size = d->notes_size ? 2 * d->notes_size : 16;
                struct disturbance_note *notes = reallocarray(d->notes, size, sizeof(*notes));
                if (!notes)
                        return -ENOMEM;
                d->notes = notes;
                d->notes_size = size;
        }
        d->notes[d->n_notes++] = *note;
        return 0;
}

/* The first second that ends after this moment; d->n: there is none. */
static size_t first_after(const struct disturbance *d, uint64_t at_ns) {
        size_t low = 0, high = d->n;
        while (low < high) {
                size_t middle = (low + high) / 2;
                if (d->seconds[middle].begin_ns + d->seconds[middle].interval_ns <= at_ns)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static void place(struct disturbance *d, const struct disturbance_note *note) {
        struct disturbance_second *most = NULL;
        uint64_t most_ns = 0;
        for (size_t i = first_after(d, note->begin_ns); i < d->n && d->seconds[i].begin_ns < note->end_ns; i++) {
                struct disturbance_second *s = &d->seconds[i];
                uint64_t end_ns = s->begin_ns + s->interval_ns;
                uint64_t from_ns = s->begin_ns > note->begin_ns ? s->begin_ns : note->begin_ns,
                         to_ns = end_ns < note->end_ns ? end_ns : note->end_ns;
                if (note->what == DISTURBANCE_STOP_NS)
                        add_some(&s->noted[note->end][note->what], (int64_t) (to_ns - from_ns));
                if (to_ns - from_ns > most_ns) {
                        most_ns = to_ns - from_ns;
                        most = s;
                }
        }
        if (most && note->what != DISTURBANCE_STOP_NS)
                add_some(&most->noted[note->end][note->what], note->n);
}

void disturbance_end(struct disturbance *d, const struct disturbance_window *window) {
        d->window = *window;
        for (size_t i = 0; i < d->n_notes; i++)
                place(d, &d->notes[i]);
}
