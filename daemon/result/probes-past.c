/* SPDX-License-Identifier: MIT */

/* The ring of earlier figures; see struct probe_past. */

#include "daemon/analysis/statistics/order.h"
#include "daemon/result/probes-internal.h"

#include <math.h>
#include <string.h>

/* Logarithms: a change is a ratio. */
static double median_of(const double rounds[PROBE_ROUNDS]) {
        double sorted[PROBE_ROUNDS];
        memcpy(sorted, rounds, sizeof(sorted));
        order_sort(sorted, PROBE_ROUNDS);
        return log(sorted[PROBE_ROUNDS / 2]);
}

/* False: the sitting has none, or the thread was on several CPUs. */
static bool value_of(const struct probe_sitting *s, unsigned end, uint32_t thread, int kind, struct probe_value *ret) {
        const struct probe_end *e = probe_sitting_of(s, end, thread);
        const bool of_both = kind >= PROBE_OWN_KINDS;
        if (!e || e->moved || e->absences[kind] != PROBE_TAKEN ||
            (of_both && (s->n_ends < END_COUNT || s->ends[END_SECOND].moved)))
                return false;
        *ret = (struct probe_value){.what = (uint8_t) kind,
                                    .cpu = e->cpu,
                                    .other = of_both ? (int64_t) s->ends[END_SECOND].cpu : -1,
                                    .value = median_of(e->rounds[kind])};
        return true;
}

void probe_past_add(struct probe_past *past, const struct probe_sitting *s, unsigned time) {
        struct probe_value v;
        for (unsigned end = 0; s->known && end < s->n_ends; end++)
                for (uint32_t thread = 0; thread <= s->n_others[end]; thread++)
                        for (int kind = 0; kind < PROBE_KIND_COUNT; kind++)
                                if (value_of(s, end, thread, kind, &v)) {
                                        v.time = (uint8_t) time;
                                        past->values[past->n++ % PROBE_PAST_VALUES] = v;
                                }
}

/* Whether the latest values of the figure have gone there and back, at one of the two times; *ret_known of them were
 * looked at. */
static bool has_returned(const struct probe_past *past, const struct probe_value *figure, double from,
                         size_t *ret_known) {
        const double low = fmin(from, figure->value), high = fmax(from, figure->value), margin = (high - low) / 4;
        const size_t kept = past->n < PROBE_PAST_VALUES ? past->n : PROBE_PAST_VALUES;
        int side[PROBE_TIMES] = {0}; /* -1: low, 1: high */
        size_t crossings[PROBE_TIMES] = {0}, known = 0;
        for (size_t i = 0; i < kept && known < PROBE_PAST_SITTINGS; i++) {
                const struct probe_value *v = &past->values[(past->n - 1 - i) % PROBE_PAST_VALUES];
                if (v->what != figure->what || v->cpu != figure->cpu || v->other != figure->other)
                        continue;
                known++;
                if (v->value > low + margin && v->value < high - margin)
                        continue;
                const int here = v->value <= low + margin ? -1 : 1;
                crossings[v->time] += side[v->time] == -here;
                side[v->time] = here;
        }
        *ret_known = known;
        return crossings[PROBE_BEFORE] >= 2 || crossings[PROBE_AFTER] >= 2;
}

void probe_past_judge(const struct probe_past *past, const struct probe_sitting *earlier,
                      const struct probe_sitting *later, struct probe_change *change) {
        struct probe_value from, to;
        if (change->what == PROBE_SHARE || !value_of(earlier, change->end, change->thread, change->what, &from) ||
            !value_of(later, change->end, change->thread, change->what, &to))
                return;
        if (has_returned(past, &to, from.value, &change->known))
                change->habit = PROBE_USUAL;
        else if (change->known < PROBE_PAST_LEAST)
                change->habit = PROBE_UNKNOWN;
}
