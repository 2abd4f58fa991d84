/* SPDX-License-Identifier: MIT */

/* Takes the looks and renders their difference. Owns the descriptors of the source and the two looks. */

#include "daemon/host/disturbance/idle-noise.h"

#include "schema/util.h"

#include <errno.h>
#include <string.h>

static void look_deinit(struct idle_look *look) {
        free(look->ids);
        free(look->times);
        *look = (struct idle_look){0};
}

void idle_noise_init(struct idle_noise *o, const char *root) {
        *o = (struct idle_noise){.source = {.source_fd = -1, .stat_fd = -1}};
        o->error = cpu_time_open(root, &o->source);
}

void idle_noise_forget(struct idle_noise *o) {
        for (size_t i = 0; i < ELEMENTS(o->looks); i++)
                look_deinit(&o->looks[i]);
}

void idle_noise_deinit(struct idle_noise *o) {
        idle_noise_forget(o);
        cpu_time_close(&o->source);
}

static int take(struct idle_noise *o, const struct topology *t, uint64_t now_ns, struct idle_look *ret) {
        struct idle_look look = {.at_ns = now_ns,
                                 .ids = calloc(t->n_cpus + 1, sizeof(*look.ids)),
                                 .times = calloc(t->n_cpus + 1, sizeof(*look.times))};
        int r = look.ids && look.times ? 0 : -ENOMEM;
        for (size_t i = 0; r == 0 && i < t->n_cpus; i++)
                if (t->cpus[i].online)
                        look.ids[look.n++] = t->cpus[i].id;
        if (r == 0)
                r = cpu_time_read(&o->source, now_ns, look.ids, look.n, look.times);
        if (r < 0)
                look_deinit(&look);
        else
                *ret = look;
        return r;
}

void idle_noise_look(struct idle_noise *o, const struct topology *topology, uint64_t now_ns) {
        struct idle_look look = {0};
        if (o->source.stat_fd < 0) /* the error is that of the opening */
                return;
        o->error = take(o, topology, now_ns, &look);
        if (o->error < 0) {
                idle_noise_forget(o);
                return;
        }
        look_deinit(&o->looks[0]);
        o->looks[0] = o->looks[1];
        o->looks[1] = look;
}

/* The same CPU in the earlier look; NULL: it was not online, or one of the looks does not list it, or its times did not
 * advance, as of a captured tree. */
static const struct cpu_times *earlier_of(const struct idle_noise *o, size_t i) {
        const struct idle_look *earlier = &o->looks[0], *later = &o->looks[1];
        for (size_t k = 0; k < earlier->n; k++)
                if (earlier->ids[k] == later->ids[i] && earlier->times[k].known && later->times[i].known &&
                    later->times[i].counted_ns > earlier->times[k].counted_ns)
                        return &earlier->times[k];
        return NULL;
}

static double share(int64_t before, int64_t after, double window) {
        double part = (double) (after - before) / window;
        return part < 0 ? 0 : part > 1 ? 1 : part;
}

static void put_known(const struct idle_noise *o, uint64_t now_ns, struct json_writer *w) {
        const struct idle_look *later = &o->looks[1];
        uint64_t window_ns = later->at_ns - o->looks[0].at_ns;
        double load = 0;
        size_t n = 0;
        json_member_array(w, "cpus");
        for (size_t i = 0; i < later->n; i++) {
                const struct cpu_times *before = earlier_of(o, i), *after = &later->times[i];
                if (!before)
                        continue;
                double foreign = share(before->run_ns, after->run_ns, (double) window_ns);
                load += foreign;
                n++;
                json_object_begin(w);
                json_member_i64(w, "id", later->ids[i]);
                json_member_double(w, "foreign", foreign);
                json_member_double(w, "steal", share(before->steal_ns, after->steal_ns, (double) window_ns));
                json_object_end(w);
        }
        json_array_end(w);
        json_member_double_if(w, "load", n == later->n, load);
        json_member_u64(w, "window_ns", window_ns);
        json_member_double(w, "age_seconds", (double) (now_ns - later->at_ns) / (double) NSEC_PER_SEC);
        json_member_string(w, "reason",
                           n == 0         ? "the CPUs' times did not advance between two looks"
                           : n < later->n ? "a CPU was not listed in /proc/stat at both looks"
                                          : NULL);
}

static void put_unknown(struct json_writer *w, const char *reason) {
        json_member_array(w, "cpus");
        json_array_end(w);
        json_member_null(w, "load");
        json_member_null(w, "window_ns");
        json_member_null(w, "age_seconds");
        json_member_string(w, "reason", reason);
}

void idle_noise_put(const struct idle_noise *o, uint64_t now_ns, const char *why_not, struct json_writer *w) {
        char failed[128];
        if (!why_not && o->error < 0) {
                (void) snprintf(failed, sizeof(failed), "the CPUs' times cannot be read: %s",
                                strerrordesc_np(-o->error));
                why_not = failed;
        }
        if (!why_not && (o->looks[0].at_ns == 0 || o->looks[1].at_ns <= o->looks[0].at_ns))
                why_not = "the daemon has not looked twice yet";
        if (why_not)
                put_unknown(w, why_not);
        else
                put_known(o, now_ns, w);
}
