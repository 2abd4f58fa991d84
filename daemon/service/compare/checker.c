/* SPDX-License-Identifier: MIT */

/*
 * Compares finished experiments with the baselines of their spec, in a thread of its own of the lowest priority, as the
 * comparison of thousands of runs would block the main loop. It reads like any client, and its results hop to the main
 * thread to be stored. The database has the checks that are due: one that a stop or a crash prevented is made after the
 * next start. There is no thread as long as nothing is pinned.
 */

#include "daemon/log.h"
#include "daemon/service/internal.h"
#include "daemon/service/service.h"
#include "schema/json/json.h"
#include "schema/signals.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#define CHECKER_NICE 19
#define RATIOS_AT_A_TIME 500u /* some milliseconds of the main thread */

/* The records for the main thread to store; owns all text but the ratios', which are the answer's. */
struct outcome {
        struct pending_check pending;
        struct new_check check;
        size_t n_ratios, stored;
        bool begun, ended;
        struct comparison_answer *answer;
        struct new_ratio *ratios;
        char (*figures)[64];
        char *error, *differences_json;
};

static void outcome_free(void *payload) {
        struct outcome *o = payload;
        if (!o)
                return;
        free(o->pending.name);
        comparison_answer_release(o->answer);
        free(o->ratios);
        free(o->figures);
        free(o->error);
        free(o->differences_json);
        free(o);
}

UTIL_FREEP(outcome, outcome_free)

/* The machine's own state, where the probes differ: over months what a reader takes a slower figure for otherwise. */
static void put_machine(struct json_writer *w, const struct machine *m) {
        for (size_t i = 0; i < m->n; i++) {
                const struct machine_figure *f = &m->items[i];
                char key[64];
                if (!f->differs)
                        continue;
                (void) snprintf(key, sizeof(key), "machine.%s.cpu%" PRIu32, f->what, f->cpu);
                json_object_begin(w);
                json_member_string(w, "key", key);
                json_member_string(w, "baseline", "usual"); /* words, which stay the same while it stays so */
                json_member_string(w, "candidate", f->c.ratio > 1 ? "slower" : "faster");
                json_member_bool(w, "unlike", true);
                json_object_end(w);
        }
}

static int print_differences(const struct comparison_answer *a, char **ret) {
        const struct difference_list *list = &a->environment;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_array_begin(&w);
        for (size_t i = 0; i < list->n; i++) {
                const struct difference *d = &list->items[i];
                json_object_begin(&w);
                json_member_string(&w, "key", d->key);
                json_member_raw(&w, "baseline", d->values[SIDE_BASELINE]);
                json_member_raw(&w, "candidate", d->values[SIDE_CANDIDATE]);
                json_member_bool(&w, "unlike", d->unlike);
                json_object_end(&w);
        }
        put_machine(&w, &a->machine);
        json_array_end(&w);
        return json_writer_steal(&w, ret, NULL);
}

static int take_ratios(struct outcome *o) {
        struct compared_figures figures;
        const struct comparison_answer *a = o->answer;
        figures_compared(&figures);
        o->ratios = calloc(a->n_tests ? a->n_tests : 1, sizeof(*o->ratios));
        o->figures = calloc(figures.n, sizeof(*o->figures));
        if (!o->ratios || !o->figures)
                return -ENOMEM;
        for (size_t i = 0; i < figures.n; i++)
                figure_name(figures.of[i], o->figures[i], sizeof(o->figures[i]));
        size_t n = 0;
        for (size_t i = 0; i < a->n_rows; i++)
                for (size_t k = 0; k < figures.n; k++) {
                        const struct comparison_figure *f = &a->rows[i].figures[k];
                        if (f->missing)
                                continue;
                        o->ratios[n++] = (struct new_ratio){.figure = o->figures[k],
                                                            .point_json = a->rows[i].sides[SIDE_CANDIDATE].point_json,
                                                            .verdict = comparison_verdict(f->c->verdict),
                                                            .ratio = f->c->ratio,
                                                            .low = f->c->low,
                                                            .high = f->c->high,
                                                            .level = f->c->level,
                                                            .has_interval = f->c->has_interval};
                }
        o->n_ratios = n;
        return 0;
}

static int take_answer(struct outcome *o) {
        const struct comparison_answer *a = o->answer;
        o->check.alike = a->alike;
        o->check.undecided = a->verdicts[COMPARE_UNDECIDED];
        o->check.faster = a->verdicts[COMPARE_FASTER];
        o->check.slower = a->verdicts[COMPARE_SLOWER];
        o->check.equivalent = a->verdicts[COMPARE_EQUIVALENT];
        int r = print_differences(a, &o->differences_json);
        return r < 0 ? r : take_ratios(o);
}

static int store_portion(struct service *s, struct outcome *o) {
        int r;
        if (!o->begun) {
                r = store_begin_check(s->store, &o->pending);
                o->begun = r == 0;
                return r < 0 ? r : 0;
        }
        size_t n = o->n_ratios - o->stored;
        if (n > 0) {
                n = n < RATIOS_AT_A_TIME ? n : RATIOS_AT_A_TIME;
                r = store_add_ratios(s->store, &o->pending, o->ratios + o->stored, n);
                o->stored += r == 0 ? n : 0;
                return r;
        }
        o->check.error = o->error;
        o->check.differences_json = o->differences_json;
        r = store_end_check(s->store, &o->pending, &o->check);
        o->ended = r == 0;
        return r;
}

/* Main thread. */
static int run_store(struct service *s, void *payload, struct refusal *r) {
        struct outcome *o = payload;
        int error = store_portion(s, o);
        if (error == -ENOENT) { /* it was deleted, or is measured again: the next look finds what is to be done now */
                o->ended = true;
                return 0;
        }
        if (error < 0)
                return service_fail(s, r, error, "storing the comparison with a baseline", 0);
        if (!o->ended)
                return 0;
        if (o->check.slower > 0)
                log_notice("experiment %" PRId64 " is slower than baseline %s in %" PRIu32 " figures",
                           o->pending.experiment_id, o->pending.name, o->check.slower);
        service_changed(s, o->pending.experiment_id);
        return 0;
}

static int find_pending(struct service *s, const struct pending_check *after, struct pending_check *ret,
                        struct refusal *r) {
        int error = SERVICE_READ(s, r, "looking for checks", 0, store_pending_check(store, after, ret));
        return error == -ENOENT ? -ENODATA : error;
}

static int check(struct service *s, const struct pending_check *p, struct refusal *r) {
        static const struct call_type type = {OPERATION_BASELINE, run_store, outcome_free};
        _cleanup_(outcome_freep) struct outcome *o = calloc(1, sizeof(*o));
        if (!o)
                return service_fail(s, r, -ENOMEM, "a check", 0);
        o->pending = *p;
        o->pending.name = strdup(p->name);
        if (!o->pending.name)
                return service_fail(s, r, -ENOMEM, "a check", 0);
        const struct comparison_query query = {
                .experiments = {p->baseline_id, p->experiment_id}, .margin = COMPARE_MARGIN, .force = true};
        int error = service_compare(s, &query, &o->answer, r);
        if (error < 0 && r->status == 404) /* deleted meanwhile */
                return 0;
        if (error < 0) {
                if (error != -EBADMSG && r->status >= 500) /* which passes; another one would be tried for ever */
                        return error;
                o->error = strdup(r->detail);
                o->differences_json = strdup("[]");
                error = o->error && o->differences_json ? 0 : -ENOMEM;
        } else {
                error = take_answer(o);
        }
        if (error < 0)
                return service_fail(s, r, error, "a check", 0);
        while (error == 0 && !o->ended)
                error = service_call(s, &type, (void **) &o, r);
        return error;
}

/* One that fails is left for the next time, and those behind it have their turn. */
static void check_all(struct service *s) {
        struct pending_check failed = {0}, p = {0};
        struct refusal r = {0};
        int error, first = 0;
        while ((error = find_pending(s, &failed, &p, &r)) == 0 && (error = check(s, &p, &r)) != -ESHUTDOWN) {
                if (error < 0 && first == 0) {
                        first = error;
                        log_warning("baseline %s is not compared with experiment %" PRId64
                                    ": %s; tried again after the next run",
                                    p.name, p.experiment_id, r.detail);
                }
                if (error < 0) {
                        free(failed.name);
                        failed = p;
                } else {
                        free(p.name);
                }
                p = (struct pending_check){0};
                r = (struct refusal){0};
        }
        if (error != -ENODATA && error != -ESHUTDOWN)
                log_warning("baselines are not compared with later experiments: %s; tried again after the next run",
                            r.detail);
        free(failed.name);
        free(p.name);
}

static void *checker_main(void *userdata) {
        struct service *s = userdata;
        (void) setpriority(PRIO_PROCESS, 0, CHECKER_NICE); /* of this thread: Linux has a nice value for each */
        pthread_mutex_lock(&s->lock);
        while (!s->stopping) {
                if (!s->checks_due) {
                        (void) pthread_cond_wait(&s->checker_wanted, &s->lock);
                        continue;
                }
                s->checks_due = false;
                pthread_mutex_unlock(&s->lock);
                check_all(s);
                pthread_mutex_lock(&s->lock);
        }
        pthread_mutex_unlock(&s->lock);
        return NULL;
}

static int start(struct service *s) {
        int r = signals_start_thread(&s->checker, checker_main, s);
        s->has_checker = r == 0;
        return r;
}

void service_check_baselines(struct service *s) {
        if (!s->has_baselines)
                return;
        int r = s->has_checker ? 0 : start(s);
        if (r < 0) {
                log_warning("no thread for comparing baselines: %s; tried again after the next run",
                            strerrordesc_np(-r));
                return;
        }
        pthread_mutex_lock(&s->lock);
        s->checks_due = true;
        pthread_cond_signal(&s->checker_wanted);
        pthread_mutex_unlock(&s->lock);
}

void service_join_checker(struct service *s) {
        if (s->has_checker)
                (void) pthread_join(s->checker, NULL);
        s->has_checker = false;
}
