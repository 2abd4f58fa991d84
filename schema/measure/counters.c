/* SPDX-License-Identifier: MIT */

/*
 * Counters as sums and as JSON. How much of the exact CPU time was in the kernel is known by the tick only, so the
 * exact figure is divided as the ticks of the window are, and not divided at all when there were none.
 */

#include "schema/measure/counters.h"

#include "schema/json/json.h"
#include "schema/util.h"

#include <string.h>

void usage_add(struct usage *into, const struct usage *later, const struct usage *earlier) {
        uint64_t *sum = (uint64_t *) (void *) into;
        const uint64_t *now = (const uint64_t *) (const void *) later,
                       *then = (const uint64_t *) (const void *) earlier;
        for (size_t i = 0; i < offsetof(struct usage, migrations_error) / sizeof(uint64_t); i++)
                sum[i] += now[i] - then[i];
        into->zerocopy = into->zerocopy || later->zerocopy;
        into->parts_unseen = into->parts_unseen || later->parts_unseen;
        if (later->migrations_error)
                into->migrations_error = later->migrations_error;
        else if (earlier->migrations_error)
                into->migrations_error = earlier->migrations_error;
        if (into->migrations_error) /* a difference to what is unknown may be anything */
                into->migrations = 0;
}

static void put_parts(struct json_writer *w, const char *name, uint64_t n, bool unseen) {
        if (unseen)
                json_member_unknown(w, name,
                                    "io_uring moves the whole message by itself (MSG_WAITALL), in parts or not");
        else
                json_member_u64(w, name, n);
}

static void put_cpu_time(struct json_writer *w, const struct usage *u) {
        uint64_t ticks = u->user_ticks + u->system_ticks;
        json_member_u64(w, "task_clock_ns", u->cpu_ns); /* the name of the perf event that counts it too */
        json_member_u64(w, "cpu_ns", u->cpu_ns);
        if (ticks == 0) {
                json_member_unknown(w, "user_ns", "the window was shorter than a clock tick of CPU time");
                json_member_unknown(w, "system_ns", "the window was shorter than a clock tick of CPU time");
                return;
        }
        uint64_t user_ns = (uint64_t) ((double) u->cpu_ns * (double) u->user_ticks / (double) ticks);
        json_member_u64(w, "user_ns", user_ns);
        json_member_u64(w, "system_ns", u->cpu_ns - user_ns);
}

/* Members of senders without copying, also in a second without a send: notifications of earlier ones may have come. */
static void put_zerocopy(struct json_writer *w, const struct usage *u) {
        if (!u->zerocopy && !u->zerocopy_sends && !u->zerocopy_completions && !u->zerocopy_copied && !u->enobufs)
                return;
        json_member_u64(w, "zerocopy_sends", u->zerocopy_sends);
        json_member_u64(w, "zerocopy_completions", u->zerocopy_completions);
        json_member_u64(w, "zerocopy_copied", u->zerocopy_copied);
        json_member_u64(w, "enobufs", u->enobufs);
        if (u->zerocopy_completions == 0)
                json_member_unknown(w, "zerocopy_copied_fraction", "no send was notified in the window");
        else
                json_member_double(w, "zerocopy_copied_fraction",
                                   (double) u->zerocopy_copied / (double) u->zerocopy_completions);
}

void usage_to_json(const struct usage *u, struct json_writer *w) {
        put_parts(w, "partial_sends", u->partial_sends, u->parts_unseen);
        put_parts(w, "partial_receives", u->partial_receives, u->parts_unseen);
        json_member_u64(w, "eagain", u->eagain);
        json_member_u64(w, "eintr", u->eintr);
        put_zerocopy(w, u);
        json_member_u64(w, "context_switches", u->voluntary_switches + u->involuntary_switches);
        json_member_u64(w, "voluntary_switches", u->voluntary_switches);
        json_member_u64(w, "involuntary_switches", u->involuntary_switches);
        json_member_u64(w, "page_faults", u->minor_faults + u->major_faults);
        json_member_u64(w, "minor_faults", u->minor_faults);
        json_member_u64(w, "major_faults", u->major_faults);
        put_cpu_time(w, u);
        if (u->migrations_error) {
                char reason[160];
                const char *error = strerrordesc_np(u->migrations_error);
                (void) snprintf(reason, sizeof reason, "/proc/PID/task/TID/sched: %s", error ? error : "unknown error");
                json_member_unknown(w, "migrations", reason);
        } else {
                json_member_u64(w, "migrations", u->migrations);
        }
}

void counters_put(struct json_writer *w, const struct counters_totals *t) {
        json_object_begin(w);
        usage_to_json(&t->usage, w);
        perf_totals_to_json(&t->perf, w);
        json_object_end(w);
}

int counters_to_json(const struct counters_totals *t, char **ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        counters_put(&w, t);
        return json_writer_steal(&w, ret, NULL);
}
