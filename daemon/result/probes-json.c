/* SPDX-License-Identifier: MIT */

/* The "probes" object of a run, written and read back. */

#include "daemon/result/probes-internal.h"

#include "daemon/analysis/statistics/order.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

static const char *const time_names[PROBE_TIMES] = {[PROBE_BEFORE] = "before", [PROBE_AFTER] = "after"};

/* Quartiles by the nearest rank. */
static void put_series(struct json_writer *w, size_t kind, const double rounds[PROBE_ROUNDS]) {
        double sorted[PROBE_ROUNDS];
        memcpy(sorted, rounds, sizeof(sorted));
        order_sort(sorted, PROBE_ROUNDS);
        json_object_begin(w);
        json_member_double(w, "median", sorted[PROBE_ROUNDS / 2]);
        json_member_double(w, "low", sorted[(PROBE_ROUNDS + 3) / 4 - 1]);
        json_member_double(w, "high", sorted[(3 * PROBE_ROUNDS + 3) / 4 - 1]);
        json_member_u64(w, "operations", probe_terms[kind].operations);
        json_member_array(w, "rounds");
        for (size_t i = 0; i < PROBE_ROUNDS; i++)
                json_put_double(w, rounds[i]);
        json_array_end(w);
        json_object_end(w);
}

static void put_members(struct json_writer *w, const struct probe_end *e) {
        if (e->moved)
                json_member_unknown(w, "cpu", "the thread is not pinned and was on several");
        else
                json_member_u64(w, "cpu", e->cpu);
        json_member_double(w, "cpu_share", e->cpu_share);
        json_member_u64(w, "cost_ns", (uint64_t) e->cost_ns);
        for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++) {
                if (e->absences[kind] != PROBE_TAKEN) {
                        json_member_unknown(w, probe_terms[kind].name, probe_absence_reason(e->absences[kind]));
                        continue;
                }
                json_put_key(w, probe_terms[kind].name);
                put_series(w, kind, e->rounds[kind]);
        }
}

/* Threads beside the first that have a CPU for themselves, or may have. */
static uint32_t others_due(const struct run_probes *p, unsigned end) {
        const struct agent_placement *place = p->placements[end];
        if (!place || p->threads == 0)
                return 0;
        return place->roam || place->n_cpus == 0 ? p->threads - 1 : probe_others(p->threads, place->n_cpus, false);
}

static const char *why_left_out(const struct run_probes *p, unsigned end, uint32_t n) {
        if (p->placements[end]->roam || p->placements[end]->n_cpus == 0)
                return "threads that are not pinned to one CPU each are not probed, but for the first";
        return n == PROBE_OTHERS_MAX ? "no more threads than 31 beside the first are probed"
                                     : "the probes of the threads before them took too long";
}

static void put_others(struct json_writer *w, const struct run_probes *p, const struct probe_sitting *s, unsigned end) {
        uint32_t n = s->n_others[end], due = others_due(p, end);
        json_member_array(w, "others");
        for (uint32_t i = 0; i < n; i++) {
                json_object_begin(w);
                json_member_u64(w, "thread", i + 1);
                put_members(w, &s->others[end][i]);
                json_object_end(w);
        }
        json_array_end(w);
        json_member_u64(w, "others_left_out", due > n ? due - n : 0);
        if (due > n)
                json_member_string(w, "others_left_out_reason", why_left_out(p, end, n));
}

static void put_end(struct json_writer *w, const struct run_probes *p, const struct probe_sitting *s, unsigned end) {
        json_object_begin(w);
        put_members(w, &s->ends[end]);
        put_others(w, p, s, end);
        json_object_end(w);
}

static void put_change(struct json_writer *w, const struct run_probes *p, const struct probe_change *c,
                       const char *since) {
        json_object_begin(w);
        json_member_string(w, "since", since);
        json_member_string(w, "role", p->roles[c->end]);
        json_member_u64(w, "thread", c->thread);
        json_member_u64(w, "cpu", c->cpu);
        json_member_string(w, "figure", c->what == PROBE_SHARE ? "cpu_share" : probe_terms[c->what].name);
        json_member_double(w, "ratio", c->ratio);
        if (c->habit == PROBE_UNKNOWN) {
                char why[96];
                (void) snprintf(why, sizeof(why), "%zu earlier sittings on these CPUs are known, and %u are needed",
                                c->known, PROBE_PAST_LEAST);
                json_member_unknown(w, "usual", why);
        } else {
                json_member_bool(w, "usual", c->habit == PROBE_USUAL);
        }
        json_object_end(w);
}

static void put_changes(struct json_writer *w, const struct run_probes *p, const struct probe_verdict *v) {
        json_member_array(w, "changes");
        for (size_t i = v->n_since; i < v->n; i++)
                put_change(w, p, &v->changes[i], "before");
        for (size_t i = 0; i < v->n_since; i++)
                put_change(w, p, &v->changes[i], "first_run");
        json_array_end(w);
}

static bool is_in(const struct probe_sitting *s, int32_t cpu) {
        for (unsigned end = 0; end < s->n_ends; end++)
                for (uint32_t thread = 0; thread <= s->n_others[end]; thread++) {
                        const struct probe_end *e = probe_sitting_of(s, end, thread);
                        if (!e->moved && e->cpu == (uint32_t) cpu)
                                return true;
                }
        return false;
}

/* Each time, as far as the run got. */
static bool is_probed(const struct run_probes *p, int32_t cpu) {
        for (size_t time = 0; time < PROBE_TIMES; time++)
                if (p->at[time].known && !is_in(&p->at[time], cpu))
                        return false;
        return true;
}

/* The CPUs of an end's placement that it measured: the first ones, a thread on each. */
static size_t used_cpus(const struct run_probes *p, int end) {
        const struct agent_placement *given = p->placements[end];
        return given->roam || given->n_cpus < p->threads ? given->n_cpus : p->threads;
}

/* Whether an end before this one, or this one's placement before its CPU `at`, has the CPU. */
static bool is_listed(const struct run_probes *p, int end, size_t at) {
        const int32_t cpu = p->placements[end]->cpus[at];
        for (int i = 0; i <= end; i++)
                for (size_t k = 0; p->placements[i] && k < (i == end ? at : used_cpus(p, i)); k++)
                        if (p->placements[i]->cpus[k] == cpu)
                                return true;
        return false;
}

/* The measured CPUs of whose state nothing is known. */
static void put_unprobed(struct json_writer *w, const struct run_probes *p) {
        for (int end = 0; end < END_COUNT; end++)
                if (p->placements[end] && p->placements[end]->n_cpus == 0) {
                        json_member_unknown(w, "cpus_unprobed",
                                            "threads are not pinned: any CPU may have been measured");
                        return;
                }
        json_member_array(w, "cpus_unprobed");
        for (int end = 0; end < END_COUNT; end++)
                for (size_t i = 0; p->placements[end] && i < used_cpus(p, end); i++) {
                        const int32_t cpu = p->placements[end]->cpus[i];
                        if (!is_probed(p, cpu) && !is_listed(p, end, i))
                                json_put_i64(w, cpu);
                }
        json_array_end(w);
}

int run_probes_to_json(const struct run_probes *p, const struct probe_verdict *v, char **ret) {
        char cpus[PROBE_CPUS_MAX];
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        for (size_t time = 0; time < PROBE_TIMES; time++) {
                const struct probe_sitting *s = &p->at[time];
                if (!s->known) {
                        json_member_unknown(&w, time_names[time], "the run did not get so far");
                        continue;
                }
                json_member_object(&w, time_names[time]);
                for (unsigned end = 0; end < s->n_ends; end++) {
                        json_put_key(&w, p->roles[end]);
                        put_end(&w, p, s, end);
                }
                json_object_end(&w);
        }
        json_member_raw(&w, "cpus", probe_sitting_cpus(&p->at[PROBE_BEFORE], cpus) ? cpus : NULL);
        put_unprobed(&w, p);
        json_member_bool(&w, "compared", v->within);
        if (!v->within)
                json_member_string(&w, "compared_reason", "the two probes are not both known, or not of the same CPUs");
        json_member_object(&w, "cpus_compared");
        json_member_raw(&w, "before", v->cpus_within);
        json_member_raw(&w, "first_run", v->cpus_since);
        json_object_end(&w);
        if (v->reference_id > 0)
                json_member_i64(&w, "first_run_id", v->reference_id);
        else
                json_member_unknown(&w, "first_run_id", "the experiment has no earlier run with a probe of these CPUs");
        put_changes(&w, p, v);
        json_object_end(&w);
        return json_writer_steal(&w, ret, NULL);
}

static int parse_series(const struct json *series, double ret[PROBE_ROUNDS]) {
        const struct json *rounds = json_type(series) == JSON_OBJECT ? json_get(series, "rounds") : NULL;
        size_t n = 0;
        if (!rounds || json_type(rounds) != JSON_ARRAY || json_length(rounds) != PROBE_ROUNDS)
                return -EBADMSG;
        for (const struct json *v = json_first(rounds); v; v = json_next(v), n++)
                if (json_as_double(v, &ret[n]) < 0 || !(ret[n] > 0))
                        return -EBADMSG;
        return 0;
}

static int parse_end(const struct json *end, struct probe_end *ret) {
        const struct json *cpu = json_get(end, "cpu"), *share = json_get(end, "cpu_share");
        int64_t number = 0;
        if (!cpu || !share || json_as_double(share, &ret->cpu_share) < 0)
                return -EBADMSG;
        ret->moved = json_type(cpu) == JSON_NULL;
        if (!ret->moved && (json_as_i64(cpu, &number) < 0 || number < 0 || number > INT32_MAX))
                return -EBADMSG;
        ret->cpu = (uint32_t) number;
        for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++) {
                const struct json *series = json_get(end, probe_terms[kind].name);
                /* of another version, or for any reason: there is nothing to compare */
                ret->absences[kind] = series && json_type(series) != JSON_NULL ? PROBE_TAKEN : PROBE_ONE_END;
                if (ret->absences[kind] == PROBE_TAKEN && parse_series(series, ret->rounds[kind]) < 0)
                        return -EBADMSG;
        }
        return 0;
}

/* Runs of earlier versions have none. */
static int parse_others(const struct json *end, struct probe_end ret[PROBE_OTHERS_MAX], uint32_t *ret_n) {
        const struct json *others = json_get(end, "others");
        uint32_t n = 0;
        if (!others)
                return 0;
        if (json_type(others) != JSON_ARRAY || json_length(others) > PROBE_OTHERS_MAX)
                return -EBADMSG;
        for (const struct json *o = json_first(others); o; o = json_next(o), n++) {
                const struct json *thread = json_type(o) == JSON_OBJECT ? json_get(o, "thread") : NULL;
                int64_t number;
                if (!thread || json_as_i64(thread, &number) < 0 || number != n + 1 || parse_end(o, &ret[n]) < 0)
                        return -EBADMSG;
        }
        *ret_n = n;
        return 0;
}

int probe_sitting_parse(const char *probes_json, struct probe_sitting *ret) {
        _cleanup_(json_freep) struct json *root = NULL;
        struct probe_sitting s = {.known = true};
        int r = json_parse_stored(probes_json, &root);
        if (r < 0)
                return r;
        const struct json *before = json_type(root) == JSON_OBJECT ? json_get(root, time_names[PROBE_BEFORE]) : NULL;
        if (!before || json_type(before) != JSON_OBJECT || json_length(before) > END_COUNT)
                r = -EBADMSG;
        for (const struct json *e = r == 0 ? json_first(before) : NULL; e && r == 0; e = json_next(e), s.n_ends++) {
                r = json_type(e) == JSON_OBJECT ? parse_end(e, &s.ends[s.n_ends]) : -EBADMSG;
                if (r == 0)
                        r = parse_others(e, s.others[s.n_ends], &s.n_others[s.n_ends]);
        }
        if (r == 0)
                *ret = s;
        return r;
}
