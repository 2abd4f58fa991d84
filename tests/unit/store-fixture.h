/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_STORE_FIXTURE_H
#define IPCLAB_TESTS_STORE_FIXTURE_H

/* A state directory of a test's own, and experiments made without the parser: what the store's tests share. */

#include "daemon/store/internal.h"
#include "schema/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct fixture {
        char dir[64];
        struct store *store;
};

#define FIXTURE __attribute__((cleanup(fixture_end))) struct fixture

/* Where state directories are made; a test that brings a disk of its own has no need of a real one. */
static const char *fixture_base = "/tmp";

static inline void fixture_dir(struct fixture *f) {
        *f = (struct fixture){0};
        snprintf(f->dir, sizeof(f->dir), "%s/ipclab-test-XXXXXX", fixture_base);
        if (!mkdtemp(f->dir)) {
                perror("mkdtemp");
                exit(1);
        }
}

static inline void fixture_open(struct fixture *f) {
        fixture_dir(f);
        if (store_open(&f->store, f->dir) < 0) {
                fprintf(stderr, "the store does not open\n");
                exit(1);
        }
}

static inline void fixture_end(struct fixture *f) {
        store_close(f->store);
        DIR *d = opendir(f->dir);
        for (struct dirent *e; d && (e = readdir(d));)
                (void) unlinkat(dirfd(d), e->d_name, 0);
        if (d)
                closedir(d);
        (void) rmdir(f->dir);
}

/* Closes the store as a crash would: what is under way stays as it is in the file. */
static inline int fixture_reopen(struct fixture *f) {
        store_close(f->store);
        f->store = NULL;
        return store_open(&f->store, f->dir);
}

static inline const char *fixture_path(const struct fixture *f, const char *name) {
        static char path[128];
        snprintf(path, sizeof(path), "%s/%s", f->dir, name);
        return path;
}

#define FIXTURE_POINTS_MAX 64u
#define FIXTURE_RUNS_MAX 2048u
#define FIXTURE_BODY "{\"name\": \"fixture\", \"transport\": \"pipe\"}"

static const char *fixture_spec = FIXTURE_BODY; /* as posted */

/* n_points sizes 1, 2, 4 …, each `repetitions` times, in the order of the points: `most` portions of it. 1: there are
 * more. */
static inline int fixture_add_some(struct store *s, uint32_t n_points, uint32_t repetitions, const char *key,
                                   unsigned most, struct store_adding *a) {
        static char name[] = "fixture", merged[] = "{\"name\":\"fixture\",\"transport\":\"pipe\"}";
        struct point points[FIXTURE_POINTS_MAX] = {0};
        uint32_t order[FIXTURE_RUNS_MAX];
        for (uint32_t i = 0; i < n_points; i++)
                points[i] = (struct point){.message_size = UINT64_C(1) << (i % 30), .threads = 1};
        for (uint32_t i = 0; i < n_points * repetitions; i++)
                order[i] = i % n_points;
        struct point_list list = {.points = points, .n_points = n_points};
        struct spec spec = {.name = name, .merged_json = merged};
        struct new_experiment e = {
                .spec_json = fixture_spec,
                .spec = &spec,
                .points = &list,
                .skipped_json = "[]",
                .seed = 42,
                .repetitions = repetitions,
                .order = order,
                .estimate_ns = 3 * NSEC_PER_SEC,
                .idempotency_key = key,
        };
        int r = 1;
        for (unsigned i = 0; r > 0 && i < most; i++)
                r = store_add_some(s, &e, a);
        return r;
}

static inline int fixture_add(struct store *s, uint32_t n_points, uint32_t repetitions, const char *key,
                              int64_t *ret_id) {
        _cleanup_(store_adding_deinit) struct store_adding a = {0};
        int r = fixture_add_some(s, n_points, repetitions, key, UINT32_MAX, &a);
        if (r != 0)
                return r < 0 ? r : -EIO;
        *ret_id = a.id;
        return 0;
}

/* Starts the next run; its id, or a negative errno. */
static inline int64_t fixture_start(struct store *s) {
        struct run_record run;
        struct experiment_record e;
        int r = store_next_run(s, &run, &e);
        if (r < 0)
                return r;
        int64_t id = run.id;
        run_record_deinit(&run);
        experiment_record_deinit(&e);
        do
                r = store_start_run(s, id);
        while (r > 0);
        return r < 0 ? r : id;
}

static inline int fixture_finish(struct store *s, int64_t run_id, enum state state, const char *error) {
        return store_finish_run(s, run_id,
                                &(struct run_outcome){
                                        .state = state,
                                        .error = error,
                                        .flags_json = "[]",
                                        .agents_json = "[]",
                                        .result_json = state == STATE_DONE ? "{\"messages\":1}" : NULL,
                                });
}

#define FIXTURE_IMPORT_RUNS 2u /* in a portion, of which an import has two */

/* An experiment of another host, in the portions of the store. */
static inline int fixture_begin_import(struct store *s, struct importing *ret) {
        static char spec[] = FIXTURE_BODY, merged[] = "{\"name\":\"fixture\",\"transport\":\"pipe\"}", none[] = "[]",
                    version[] = "0.1.0", name[] = "fixture";
        const struct experiment_record e = {.name = name,
                                            .state = STATE_DONE,
                                            .version = version,
                                            .spec_json = spec,
                                            .merged_json = merged,
                                            .skipped_json = none,
                                            .runs_total = 2 * FIXTURE_IMPORT_RUNS,
                                            .runs_done = 2 * FIXTURE_IMPORT_RUNS,
                                            .created_at = 1,
                                            .started_at = 2,
                                            .finished_at = 3};
        return store_begin_import(s, &e, ret);
}

static inline int fixture_import_runs(struct importing *i, unsigned portion) {
        static char point[] = "{\"workload\":\"stream\"}", role[] = "receiver", none[] = "[]",
                    result[] = "{\"messages\":1}";
        struct imported_run runs[FIXTURE_IMPORT_RUNS];
        for (uint32_t k = 0; k < FIXTURE_IMPORT_RUNS; k++)
                runs[k] = (struct imported_run){.run = {.point_json = point,
                                                        .repetition = portion * FIXTURE_IMPORT_RUNS + k + 1,
                                                        .position = portion * FIXTURE_IMPORT_RUNS + k,
                                                        .state = STATE_DONE,
                                                        .attempt = 1,
                                                        .flags_json = none,
                                                        .agents_json = none,
                                                        .result_json = result},
                                                .role = role,
                                                .window_ns = NSEC_PER_SEC,
                                                .messages = 1,
                                                .bytes = 1};
        return store_import_runs(i, runs, FIXTURE_IMPORT_RUNS);
}

/* A part of the file, of some pages; it has two. */
static inline int fixture_import_part(struct importing *i, uint32_t part) {
        static uint8_t data[5000];
        memset(data, 'b', sizeof(data));
        return store_import_part(i, part, data, sizeof(data));
}

/* Ends an import; the text is the digest of its bundle. */
static inline int fixture_end_import(struct importing *i, const char *sha256) {
        struct bundle_file file = {.host = "elsewhere"};
        (void) snprintf(file.sha256, sizeof(file.sha256), "%s", sha256);
        return store_end_import(i, &file, NULL);
}

/* The parts of a bundle's file one after the other, NULL where one is missing; the caller frees it. */
static inline uint8_t *fixture_bundle(struct store *s, int64_t id, size_t *ret_length) {
        uint8_t *first = NULL, *second = NULL, *file = NULL;
        size_t length, more;
        bool early = true, last = false;
        if (store_bundle_part(s, id, 0, &first, &length, &early) == 0 &&
            store_bundle_part(s, id, 1, &second, &more, &last) == 0 && !early && last &&
            (file = malloc(length + more))) {
                memcpy(file, first, length);
                memcpy(file + length, second, more);
                *ret_length = length + more;
        }
        free(first);
        free(second);
        return file;
}

static inline enum state fixture_experiment_state(struct store *s, int64_t id) {
        struct experiment_record e;
        if (store_experiment(s, id, util_now_ms(), &e) < 0)
                return STATE_COUNT;
        enum state state = e.state;
        experiment_record_deinit(&e);
        return state;
}

static inline enum state fixture_run_state(struct store *s, int64_t id) {
        struct run_record run;
        if (store_run(s, id, &run) < 0)
                return STATE_COUNT;
        enum state state = run.state;
        run_record_deinit(&run);
        return state;
}

/* One integer, INT64_MIN when there is none. */
static inline int64_t number(struct fixture *f, const char *sql) {
        int64_t v;
        return db_get_one(f->store->db, &v, sql) < 0 ? INT64_MIN : v;
}

static inline struct sample_record sample_of(int64_t experiment, int64_t run, uint32_t second) {
        static char agent[] = "receiver", counters[] = "{\"voluntary_switches\":3}";
        return (struct sample_record){.experiment_id = experiment,
                                      .run_id = run,
                                      .agent = agent,
                                      .thread = 1,
                                      .second = second,
                                      .interval_ns = 1000012345,
                                      .messages = UINT64_C(1) << 40,
                                      .bytes = UINT64_C(1) << 52,
                                      .counters_json = second % 2 ? counters : NULL};
}

/* A latency as the agents send it; to be freed by sample_record_deinit() or as ->latency_v2. */
static inline bool sample_has_latency(struct sample_record *s, const struct histogram *h) {
        s->latency_sum_ns = h->sum_ns;
        return histogram_encode(h, &s->latency_v2, &s->latency_length) == 0;
}

#endif
