/* SPDX-License-Identifier: MIT */

/*
 * The spec parser and the points. Most cases stand in data/spec/documents.json, one row per document, which the JSON
 * Schema is checked against too (tests/api/test_schema.py); here is what a row cannot express.
 */

#include "schema/spec/spec.h"

#include "check.h"
#include "schema/json/json.h"
#include "schema/presets.h"
#include "schema/util.h"
#include "transports.h"

#include <errno.h>

static struct json *table(void) {
        static char text[1 << 20];
        char path[4096];
        const char *root = getenv("IPCLAB_SOURCE_ROOT");
        struct json *list = NULL;
        struct json_error e = {.pointer = ""};

        snprintf(path, sizeof(path), "%s/tests/unit/data/spec/documents.json", root ? root : ".");
        _cleanup_fclose_ FILE *f = fopen(path, "r");
        if (!f)
                return NULL;
        size_t n = fread(text, 1, sizeof(text), f);
        if (json_parse(text, n, &list, &e) < 0)
                fprintf(stderr, "%s: %s\n", path, e.detail);
        return list;
}

static const char *member(const struct json *row, const char *key) {
        const char *s = NULL;
        (void) json_as_string(json_get(row, key), &s); /* NULL when it is not there */
        return s;
}

static int64_t number(const struct json *row, const char *key) {
        int64_t v = 0;
        (void) json_as_i64(json_get(row, key), &v); /* 0 when it is not there */
        return v;
}

/* A row's detail, in which "{wait}" stands for the transports that have it. */
static const char *detail_of(const struct json *row) {
        static char text[1024];
        const char *from = member(row, "detail"), *begin = from ? strchr(from, '{') : NULL;
        const char *end = begin ? strchr(begin, '}') : NULL;
        char name[32];
        if (!end)
                return from;
        (void) snprintf(name, sizeof(name), "%.*s", (int) (end - begin - 1), begin + 1);
        (void) snprintf(text, sizeof(text), "%.*s%s%s", (int) (begin - from), from, transports_with(name), end + 1);
        return text;
}

/* What differs between a refusal and its row; NULL when nothing does. */
static const char *differs(const struct json *row, const struct refusal *r) {
        static const char *const keys[] = {"limit", "limit_value", "value"};
        const char *const got[] = {r->limit, r->limit_value, r->value};

        if (r->status != 422)
                return "status";
        if (strcmp(r->code, member(row, "code")) != 0)
                return "code";
        if (strcmp(r->pointer, member(row, "pointer")) != 0)
                return "pointer";
        const char *detail = detail_of(row);
        if (!r->detail[0] || (detail && !strstr(r->detail, detail)))
                return "detail";
        for (size_t i = 0; i < ELEMENTS(keys); i++)
                if (member(row, keys[i]) && strcmp(got[i], member(row, keys[i])) != 0)
                        return keys[i];
        if (strcmp(r->code, "limit-exceeded") == 0 && (!r->limit[0] || !r->limit_value[0] || !r->value[0]))
                return "limit without its name, value or the requested value";
        return NULL;
}

static struct placement *placements(const struct spec *s) {
        return s->axes[AXIS_PLACEMENT].values;
}

/* Expands pairs as a host of two nodes and three CPUs does. */
static int expand(struct spec *spec, struct refusal *r) {
        const struct end_placement nodes[] = {{.node = 0, .cpu = -1}, {.node = 1, .cpu = -1}},
                                   cpus[] = {{.node = -1, .cpu = 0}, {.node = -1, .cpu = 1}, {.node = -1, .cpu = 5}};
        return spec_expand_pairs(spec, nodes, ELEMENTS(nodes), cpus, ELEMENTS(cpus), r);
}

/* Parses and spans, as a post does. */
static int post(const char *text, struct spec **ret, struct point_list *points, struct refusal *r) {
        int x = spec_parse(text, strlen(text), ret, r);
        if (x == 0)
                x = expand(*ret, r);
        return x < 0 ? x : spec_points(*ret, points, r);
}

static void check_merged(const struct spec *spec) {
        struct spec *again = NULL;
        struct refusal r;
        struct point_list a = {.points = NULL}, b = {.points = NULL};

        if (spec_parse(spec->merged_json, strlen(spec->merged_json), &again, &r) < 0)
                CHECK_FAIL("merged is refused: %s: %s", spec->merged_json, r.detail);
        CHECK_STRING(again->merged_json, spec->merged_json);
        CHECK(!again->preset);
        CHECK(!again->name == !spec->name && (!spec->name || strcmp(again->name, spec->name) == 0));
        CHECK(memcmp(&again->end, &spec->end, sizeof(spec->end)) == 0);
        CHECK(again->verify == spec->verify && again->warmup_ns == spec->warmup_ns && again->seed == spec->seed &&
              again->has_seed == spec->has_seed && again->repetitions == spec->repetitions &&
              again->skip_impossible == spec->skip_impossible && again->chunk == spec->chunk &&
              again->rate == spec->rate && memcmp(&again->options, &spec->options, sizeof(spec->options)) == 0 &&
              memcmp(&again->require, &spec->require, sizeof(spec->require)) == 0 &&
              memcmp(&again->tune, &spec->tune, sizeof(spec->tune)) == 0);
        CHECK_UINT(again->n_facts, spec->n_facts);
        for (size_t i = 0; i < spec->n_facts; i++) {
                const struct spec_fact *x = &again->facts[i], *y = &spec->facts[i];
                CHECK(x->group == y->group && strcmp(x->name, y->name) == 0 && x->number == y->number);
                CHECK(!x->text == !y->text && (!x->text || strcmp(x->text, y->text) == 0));
        }
        CHECK_INT(spec_points(spec, &a, &r), 0);
        CHECK_INT(expand(again, &r), 0);
        CHECK_INT(spec_points(again, &b, &r), 0);
        CHECK_UINT(b.n_points, a.n_points);
        CHECK_UINT(b.n_skipped, a.n_skipped);
        for (size_t i = 0; i < a.n_points; i++) {
                _cleanup_free_ char *x = point_to_json(&a.points[i]);
                _cleanup_free_ char *y = point_to_json(&b.points[i]);
                CHECK_STRING(x, y);
        }
        point_list_deinit(&a);
        point_list_deinit(&b);
        spec_free(again);
}

static void check_points(const struct point_list *list) {
        for (size_t i = 0; i < list->n_points; i++) {
                struct point back;
                _cleanup_free_ char *text = point_to_json(&list->points[i]);
                CHECK(text);
                CHECK_INT(point_from_json(text, strlen(text), &back), 0);
                _cleanup_free_ char *again = point_to_json(&back);
                CHECK_STRING(again, text);
        }
        for (size_t i = 0; i < list->n_skipped; i++)
                CHECK(strlen(list->skipped[i].reason) > 10);
}

static void check_row(const struct json *row) {
        _cleanup_free_ char *text = json_print(json_get(row, "spec"));
        struct spec *spec = NULL;
        struct point_list points = {.points = NULL};
        struct refusal r = {.status = 0};

        int x = post(text, &spec, &points, &r);
        if (!member(row, "code")) {
                if (x < 0)
                        CHECK_FAIL("refused: %.200s: %s", text, r.detail);
                CHECK_UINT(points.n_points, number(row, "points"));
                CHECK_UINT(points.n_skipped, number(row, "skipped"));
                check_merged(spec);
                if (!check_case_failed)
                        check_points(&points);
                if (check_case_failed)
                        CHECK_FAIL("with %.200s", text);
        } else {
                if (x != -EINVAL)
                        CHECK_FAIL("accepted: %.200s", text);
                const char *what = differs(row, &r);
                if (what)
                        CHECK_FAIL("%.200s: another %s: %s %s: %s [%s %s %s]", text, what, r.code, r.pointer, r.detail,
                                   r.limit, r.limit_value, r.value);
        }
        point_list_deinit(&points);
        spec_free(spec);
}

static void documents(void) {
        struct json *list = table();
        bool failed = false;
        CHECK(list);
        CHECK(json_length(list) > 150);
        for (const struct json *row = json_first(list); row; row = json_next(row)) {
                check_case_failed = false;
                check_row(row);
                failed |= check_case_failed;
        }
        check_case_failed = failed;
        json_free(list);
}

static void not_json(void) {
        static const struct {
                const char *text, *pointer;
        } bad[] = {
                {"", ""},
                {"{", ""},
                {"{} {}", ""},
                {"transport=pipe", ""},
                {"{\"transport\":\"pipe\",\"transport\":\"fifo\"}", "/transport"},
                {"{\"placement\":{\"sender\":{\"node\":0,\"node\":1}}}", "/placement/sender/node"},
                {"{\"message_size\":[1,02]}", "/message_size/1"},
                {"{\"message_size\":1e400}", "/message_size"},
                {"{\"messages\":9007199254740992}", "/messages"},
                {"{\"name\":\"\xff\"}", "/name"},
                {"{\"name\":\"\\u0000\"}", "/name"},
        };
        for (size_t i = 0; i < ELEMENTS(bad); i++) {
                struct spec *spec = NULL;
                struct refusal r;
                CHECK_INT(spec_parse(bad[i].text, strlen(bad[i].text), &spec, &r), -EINVAL);
                CHECK(!spec);
                CHECK_INT(r.status, 400);
                CHECK_STRING(r.code, "invalid-json");
                CHECK_STRING(r.pointer, bad[i].pointer);
        }
}

static void too_long_a_body(void) {
        size_t n = SPEC_BODY_MAX + 1;
        char *text = malloc(n);
        struct spec *spec = NULL;
        struct refusal r;

        CHECK(text);
        memset(text, ' ', n);
        text[0] = '{';
        text[1] = '}';
        CHECK_INT(spec_parse(text, n - 1, &spec, &r), 0);
        spec_free(spec);
        CHECK_INT(spec_parse(text, n, &spec, &r), -EINVAL);
        CHECK_INT(r.status, 413);
        free(text);
}

static void defaults(void) {
        struct spec *s = NULL;
        struct refusal r;
        CHECK_INT(spec_parse("{}", 2, &s, &r), 0);
        CHECK(!s->name && !s->preset && !s->has_seed && !s->skip_impossible);
        CHECK_UINT(s->end.duration_ns, 5 * NSEC_PER_SEC);
        CHECK_UINT(s->end.messages | s->end.bytes, 0);
        CHECK_UINT(s->warmup_ns, NSEC_PER_SEC);
        CHECK_UINT(s->repetitions, 1);
        CHECK_INT(s->verify, VERIFY_TOUCH);
        CHECK_INT(s->order, ORDER_BLOCKS);
        CHECK_INT(s->require.numa_balancing, TOGGLE_UNSET);
        CHECK_INT(s->tune.numa_balancing, TOGGLE_UNSET);
        CHECK(!s->chunk && !s->options.huge_pages && !s->options.congestion[0]);
        CHECK(s->rate == 0);
        for (size_t i = 0; i < AXIS_COUNT; i++)
                CHECK_UINT(s->axes[i].n, 1);
        const enum transport *transports = s->axes[AXIS_TRANSPORT].values;
        const uint64_t *message_sizes = s->axes[AXIS_MESSAGE_SIZE].values;
        const uint32_t *threads = s->axes[AXIS_THREADS].values, *fields = s->axes[AXIS_FIELDS].values,
                       *processes = s->axes[AXIS_PROCESSES].values;
        CHECK_INT(transports[0], TRANSPORT_PIPE);
        CHECK_UINT(message_sizes[0], 4096);
        CHECK_UINT(threads[0], 1);
        CHECK_UINT(fields[0], 1);
        CHECK_UINT(processes[0], 2);
        CHECK_INT(placements(s)[0].kind, PLACEMENT_DEFAULT);
        CHECK_INT(placements(s)[0].ends[0].cpu, -1);
        spec_free(s);
}

static void explicit_placement(void) {
        static const char text[] = "{\"placement\":{\"receiver\":{\"cpu\":3,\"node\":1,\"memory\":{\"nodes\":[2,65],"
                                   "\"policy\":\"interleave\"}}}}";
        struct spec *s = NULL;
        struct refusal r;
        CHECK_INT(spec_parse(text, strlen(text), &s, &r), 0);
        const struct placement *p = &placements(s)[0];
        CHECK_INT(p->kind, PLACEMENT_EXPLICIT);
        CHECK_INT(p->ends[END_FIRST].node, -1);
        CHECK_INT(p->ends[END_FIRST].memory, MEMORY_DEFAULT);
        CHECK_INT(p->ends[END_SECOND].cpu, 3);
        CHECK_INT(p->ends[END_SECOND].node, 1);
        CHECK_INT(p->ends[END_SECOND].memory, MEMORY_INTERLEAVE);
        CHECK_UINT(p->ends[END_SECOND].memory_nodes.bits[0], 4);
        CHECK_UINT(p->ends[END_SECOND].memory_nodes.bits[1], 2);
        spec_free(s);
}

static void preset_is_overridden_field_by_field(void) {
        static const char text[] = "{\"preset\":\"quick\",\"message_size\":7,\"bytes\":100}";
        struct spec *s = NULL;
        struct refusal r;
        CHECK_INT(spec_parse(text, strlen(text), &s, &r), 0);
        CHECK_STRING(s->preset, "quick");
        CHECK_STRING(s->name, "Quick look at pipes");
        CHECK_UINT(s->axes[AXIS_MESSAGE_SIZE].n, 1);
        CHECK_UINT(*(const uint64_t *) s->axes[AXIS_MESSAGE_SIZE].values, 7);
        CHECK_UINT(s->end.bytes, 100);
        CHECK_UINT(s->end.duration_ns, 0); /* the preset's duration gave way */
        CHECK_UINT(s->warmup_ns, 500 * NSEC_PER_MSEC);
        CHECK_UINT(s->axes[AXIS_WORKLOAD].n, 2);
        spec_free(s);
}

static void presets_are_good(void) {
        for (size_t i = 0; i < n_presets; i++) {
                char text[200];
                struct spec *spec = NULL;
                struct point_list points = {.points = NULL};
                struct refusal r;
                snprintf(text, sizeof(text), "{\"preset\":\"%s\"}", presets[i].name);
                if (post(text, &spec, &points, &r) < 0)
                        CHECK_FAIL("%s is refused: %s", text, r.detail);
                check_merged(spec);
                point_list_deinit(&points);
                spec_free(spec);
        }
}

/* Every ordered pair, for each workload with its own roles; a workload of one agent takes the pairs of a CPU with
 * itself. */
static void pairs_are_expanded(void) {
        static const char text[] = "{\"workload\":[\"stream\",\"pingpong\",\"syscall\"],\"skip_impossible\":true}";
        const struct end_placement cpus[] = {{.node = -1, .cpu = 4}, {.node = -1, .cpu = 6}};
        struct point_list l = {.points = NULL};
        struct spec *s = NULL;
        struct refusal r;
        char all[4096] = "";

        CHECK_INT(spec_parse(text, strlen(text), &s, &r), 0);
        placements(s)[0].kind = PLACEMENT_ALL_CPU_PAIRS;
        CHECK_INT(spec_expand_pairs(s, NULL, 0, cpus, 2, &r), 0);
        CHECK_UINT(s->axes[AXIS_PLACEMENT].n, 4);
        CHECK_INT(spec_points(s, &l, &r), 0);
        CHECK_UINT(l.n_points, 10);
        for (size_t i = 0; i < 8; i++) {
                _cleanup_free_ char *point = point_to_json(&l.points[i]);
                strncat(all, strstr(point, "\"placement\""), 200);
        }
        CHECK_STRING(all, "\"placement\":{\"sender\":{\"cpu\":4},\"receiver\":{\"cpu\":4}}}"
                          "\"placement\":{\"sender\":{\"cpu\":4},\"receiver\":{\"cpu\":6}}}"
                          "\"placement\":{\"sender\":{\"cpu\":6},\"receiver\":{\"cpu\":4}}}"
                          "\"placement\":{\"sender\":{\"cpu\":6},\"receiver\":{\"cpu\":6}}}"
                          "\"placement\":{\"initiator\":{\"cpu\":4},\"responder\":{\"cpu\":4}}}"
                          "\"placement\":{\"initiator\":{\"cpu\":4},\"responder\":{\"cpu\":6}}}"
                          "\"placement\":{\"initiator\":{\"cpu\":6},\"responder\":{\"cpu\":4}}}"
                          "\"placement\":{\"initiator\":{\"cpu\":6},\"responder\":{\"cpu\":6}}}");
        _cleanup_free_ char *syscall_point = point_to_json(&l.points[9]);
        CHECK(strstr(syscall_point, "\"placement\":{\"initiator\":{\"cpu\":6}}}"));
        point_list_deinit(&l);
        spec_free(s);
}

/* As many CPUs as an experiment has room for. */
static void pairs_of_a_large_host(void) {
        static const char text[] = "{\"placement\":\"default\"}";
        static struct end_placement cpus[128];
        struct point_list l = {.points = NULL};
        struct spec *s = NULL;
        struct refusal r;

        for (int i = 0; i < 128; i++)
                cpus[i] = (struct end_placement){.node = -1, .cpu = i};
        CHECK_INT(spec_parse(text, strlen(text), &s, &r), 0);
        placements(s)[0].kind = PLACEMENT_ALL_CPU_PAIRS;
        CHECK_INT(spec_expand_pairs(s, NULL, 0, cpus, 128, &r), 0);
        CHECK_UINT(s->axes[AXIS_PLACEMENT].n, 16384);
        CHECK_INT(spec_points(s, &l, &r), 0);
        CHECK_UINT(l.n_points, 16384);
        CHECK_INT(l.points[16383].placement.ends[END_SECOND].cpu, 127);
        point_list_deinit(&l);
        spec_free(s);
}

/* A pair that was given by hand too would be measured twice; and a large host has more pairs than an experiment may. */
static void pairs_that_cannot_be(void) {
        static const char text[] = "{\"placement\":[{\"sender\":{\"cpu\":0},\"receiver\":{\"cpu\":1}},\"default\"]}";
        static struct end_placement cpus[129];
        struct spec *s = NULL;
        struct refusal r;

        for (int i = 0; i < 129; i++)
                cpus[i] = (struct end_placement){.node = -1, .cpu = i};
        CHECK_INT(spec_parse(text, strlen(text), &s, &r), 0);
        placements(s)[1].kind = PLACEMENT_ALL_CPU_PAIRS;
        CHECK_INT(spec_expand_pairs(s, NULL, 0, cpus, 2, &r), -EINVAL);
        CHECK_STRING(r.code, "duplicate-value");
        CHECK_STRING(r.pointer, "/placement/1");
        CHECK_INT(spec_expand_pairs(s, NULL, 0, cpus, 129, &r), -EINVAL);
        CHECK_STRING(r.code, "limit-exceeded");
        CHECK_STRING(r.value, "16641");
        CHECK_INT(spec_expand_pairs(s, NULL, 0, cpus, 128, &r), -EINVAL); /* and the one by hand */
        CHECK_STRING(r.code, "limit-exceeded");
        CHECK_STRING(r.pointer, "/placement");
        CHECK_STRING(r.value, "16385");
        CHECK_UINT(s->axes[AXIS_PLACEMENT].n, 2);
        spec_free(s);
}

static void order_of_points(void) {
        static const char text[] = "{\"workload\":[\"pingpong\",\"stream\"],\"transport\":[\"fifo\",\"pipe\"],"
                                   "\"message_size\":[9,1],\"threads\":[2,1],\"placement\":[\"same-cpu\",\"default\"]}";
        struct spec *s = NULL;
        struct point_list l;
        struct refusal r;
        CHECK_INT(spec_parse(text, strlen(text), &s, &r), 0);
        CHECK_INT(spec_points(s, &l, &r), 0);
        CHECK_UINT(l.n_points, 32);
        for (unsigned i = 0; i < 32; i++) {
                const struct point *p = &l.points[i];
                CHECK_INT(p->workload, i & 16 ? WORKLOAD_STREAM : WORKLOAD_PINGPONG);
                CHECK_INT(p->transport, i & 8 ? TRANSPORT_PIPE : TRANSPORT_FIFO);
                CHECK_UINT(p->message_size, i & 4 ? 1 : 9);
                CHECK_UINT(p->threads, i & 2 ? 1 : 2);
                CHECK_INT(p->placement.kind, i & 1 ? PLACEMENT_DEFAULT : PLACEMENT_SAME_CPU);
        }
        point_list_deinit(&l);
        spec_free(s);
}

static void point_as_json(void) {
        static const char pipe_point[] = "{\"workload\":\"stream\",\"transport\":\"pipe\",\"message_size\":4096,"
                                         "\"threads\":1,\"copy_mode\":\"two-copy\",\"engine\":\"syscall\","
                                         "\"source\":\"hot\",\"placement\":\"default\"}";
        static const char *const bad[] = {
                "",
                "[]",
                "{}",
                "{\"workload\":\"stream\"}",
                /* a field too many, an unknown name, a role that the workload has not */
                "{\"workload\":\"stream\",\"transport\":\"pipe\",\"message_size\":4096,\"threads\":1,"
                "\"copy_mode\":\"two-copy\",\"engine\":\"syscall\",\"wait\":\"block\",\"placement\":\"default\"}",
                "{\"workload\":\"stream\",\"transport\":\"pip\",\"message_size\":4096,\"threads\":1,"
                "\"copy_mode\":\"two-copy\",\"engine\":\"syscall\",\"source\":\"hot\",\"placement\":\"default\"}",
                "{\"workload\":\"stream\",\"transport\":\"pipe\",\"message_size\":0,\"threads\":1,"
                "\"copy_mode\":\"two-copy\",\"engine\":\"syscall\",\"source\":\"hot\",\"placement\":\"default\"}",
                "{\"workload\":\"stream\",\"transport\":\"pipe\",\"message_size\":4096,\"threads\":1,"
                "\"copy_mode\":\"two-copy\",\"engine\":\"syscall\",\"placement\":{\"initiator\":{\"cpu\":0}}}",
        };
        struct point p;
        CHECK_INT(point_from_json(pipe_point, strlen(pipe_point), &p), 0);
        _cleanup_free_ char *text = point_to_json(&p);
        CHECK_STRING(text, pipe_point);
        for (size_t i = 0; i < ELEMENTS(bad); i++)
                if (point_from_json(bad[i], strlen(bad[i]), &p) != -EINVAL)
                        CHECK_FAIL("accepted: %s", bad[i]);
        p.workload = WORKLOAD_SYSCALL;
        _cleanup_free_ char *folded = point_to_json(&p);
        CHECK_STRING(folded, "{\"workload\":\"syscall\",\"call\":\"getpid\",\"placement\":\"default\"}");
}

static void end_in_messages(void) {
        struct point p = {.message_size = 3};
        CHECK_UINT(window_end_messages(&(struct window_end){.duration_ns = 1}, &p), 0);
        CHECK_UINT(window_end_messages(&(struct window_end){.messages = 7}, &p), 7);
        CHECK_UINT(window_end_messages(&(struct window_end){.bytes = 1}, &p), 1);
        CHECK_UINT(window_end_messages(&(struct window_end){.bytes = 9}, &p), 3);
        CHECK_UINT(window_end_messages(&(struct window_end){.bytes = 10}, &p), 4);
        p.message_size = 1;
        CHECK_UINT(window_end_messages(&(struct window_end){.bytes = SPEC_COUNT_MAX}, &p), SPEC_COUNT_MAX);
}

static void descriptors_of_points(void) {
        static const struct {
                struct point point;
                uint64_t descriptors;
        } cases[] = {
                {{.transport = TRANSPORT_PIPE, .threads = 100}, 164},
                {{.transport = TRANSPORT_PIPE, .threads = 100, .workload = WORKLOAD_PINGPONG}, 264},
                {{.transport = TRANSPORT_PIPE, .threads = 100, .engine = ENGINE_IO_URING}, 264},
                {{.transport = TRANSPORT_UNIX_STREAM, .threads = 100, .workload = WORKLOAD_PINGPONG}, 164},
                {{.transport = TRANSPORT_FILE, .threads = 100, .workload = WORKLOAD_PINGPONG}, 164},
                {{.transport = TRANSPORT_SHM_POSIX, .threads = 100, .workload = WORKLOAD_PINGPONG}, 64},
                {{.transport = TRANSPORT_TCP, .threads = 100, .workload = WORKLOAD_PINGPONG}, 293},
                {{.transport = TRANSPORT_TCP, .threads = 100, .engine = ENGINE_IO_URING}, 393},
                {{.transport = TRANSPORT_TCP, .threads = 100, .engine = ENGINE_IO_URING, .copy_mode = COPY_ZERO}, 393},
                {{.transport = TRANSPORT_TCP,
                  .threads = 100,
                  .engine = ENGINE_IO_URING,
                  .copy_mode = COPY_ZERO,
                  .direction = DIRECTION_BOTH},
                 493},
                {{.transport = TRANSPORT_PROCESS_VM, .message_size = 4096, .threads = 100}, 64},
                {{.transport = TRANSPORT_MEMFD, .message_size = 4096, .threads = 100}, 6564},
                {{.transport = TRANSPORT_MEMFD, .message_size = 4 << 20, .threads = 100}, 364},
                {{.transport = TRANSPORT_MEMFD, .message_size = 4096, .threads = 100, .workload = WORKLOAD_PINGPONG},
                 364},
                {{.workload = WORKLOAD_SYSCALL, .threads = 100}, 64},
                {{.workload = WORKLOAD_CONTEXT_SWITCH, .threads = 1, .processes = 64}, 192},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                CHECK_UINT(point_descriptors(&cases[i].point), cases[i].descriptors);
}

static void buffers_of_a_multishot_receive(void) {
        static const struct {
                struct point point;
                uint64_t bytes;
        } cases[] = {
                {{.transport = TRANSPORT_TCP, .engine = ENGINE_IO_URING, .message_size = 1}, 131072},
                {{.transport = TRANSPORT_TCP, .engine = ENGINE_IO_URING, .message_size = 4096}, 131072},
                {{.transport = TRANSPORT_TCP, .engine = ENGINE_IO_URING, .message_size = 4097}, 0},
                {{.transport = TRANSPORT_TCP, .engine = ENGINE_SYSCALL, .message_size = 64}, 0},
                {{.transport = TRANSPORT_PIPE, .engine = ENGINE_IO_URING, .message_size = 64}, 0},
                {{.transport = TRANSPORT_TCP,
                  .engine = ENGINE_IO_URING,
                  .message_size = 64,
                  .direction = DIRECTION_BOTH},
                 0},
                {{.transport = TRANSPORT_TCP,
                  .engine = ENGINE_IO_URING,
                  .message_size = 64,
                  .workload = WORKLOAD_PINGPONG},
                 0},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                CHECK_UINT(point_multishot_bytes(&cases[i].point), cases[i].bytes);
}

/* Written down once, and never to change: these orders are in people's databases. Computed by a second
 * implementation, in Python. */
static void shuffle_vectors(void) {
        static const struct {
                uint64_t seed;
                uint32_t order[16];
        } vectors[] = {
                {UINT64_C(0), {3, 0, 6, 1, 2, 7, 5, 4, 0, 6, 3, 5, 4, 1, 2, 7}},
                {UINT64_C(1), {7, 0, 1, 4, 3, 2, 6, 5, 3, 7, 0, 2, 1, 4, 6, 5}},
                {UINT64_C(42), {7, 2, 4, 0, 3, 5, 1, 6, 2, 0, 3, 1, 4, 6, 5, 7}},
                {UINT64_C(9007199254740991), {7, 2, 0, 5, 3, 6, 4, 1, 0, 1, 6, 5, 4, 2, 7, 3}},
        };
        for (size_t i = 0; i < ELEMENTS(vectors); i++) {
                uint32_t order[16];
                spec_shuffle(vectors[i].seed, 8, 2, order);
                for (unsigned j = 0; j < 16; j++)
                        CHECK_UINT(order[j], vectors[i].order[j]);
        }
}

static void shuffle_is_fair(void) {
        uint32_t counts[4][4] = {{0}}, order[4];
        for (uint64_t seed = 0; seed < 12000; seed++) {
                unsigned seen = 0;
                spec_shuffle(seed, 4, 1, order);
                for (unsigned i = 0; i < 4; i++) {
                        CHECK(order[i] < 4);
                        seen |= 1u << order[i];
                        counts[i][order[i]]++;
                }
                CHECK_UINT(seen, 15);
        }
        for (unsigned i = 0; i < 4; i++)
                for (unsigned j = 0; j < 4; j++) /* 3000 expected, six standard deviations are 285 */
                        CHECK(counts[i][j] > 2715 && counts[i][j] < 3285);
        spec_shuffle(1, 0, 5, order);
        spec_shuffle(1, 1, 4, order);
        CHECK_UINT(order[0] | order[1] | order[2] | order[3], 0);
}

/* What is written with a spec is what it is read as, and a switch that is off is not written. */
static void stored_spec_is_read_as_posted(void) {
        static const struct {
                const char *text;
                enum spec_order order;
                bool stamp;
        } cases[] = {{"{\"transport\":\"tcp\"}", ORDER_BLOCKS, false},
                     {"{\"transport\":\"tcp\",\"stamp\":false,\"order\":\"shuffled\"}", ORDER_SHUFFLED, false},
                     {"{\"transport\":[\"pipe\",\"tcp\"],\"stamp\":true}", ORDER_BLOCKS, true}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct spec *posted = NULL, *stored = NULL;
                struct refusal r;
                CHECK_INT(spec_parse(cases[i].text, strlen(cases[i].text), &posted, &r), 0);
                CHECK_INT(spec_parse_stored(posted->merged_json, strlen(posted->merged_json), &stored, &r), 0);
                CHECK((strstr(posted->merged_json, "\"stamp\"") != NULL) == cases[i].stamp);
                CHECK_INT(posted->stamp, cases[i].stamp);
                CHECK_INT(stored->stamp, cases[i].stamp);
                CHECK_INT(posted->order, cases[i].order);
                CHECK_INT(stored->order, cases[i].order);
                spec_free(posted);
                spec_free(stored);
        }
}

/* A setting of the host that is not restored yet spoils no run that has nothing to do with settings. */
static void a_spec_depends_on_what_settings_change(void) {
        static const struct {
                const char *text;
                bool depends;
        } cases[] = {
                {"{\"preset\": \"quick\"}", false},
                {"{\"preset\": \"quick\", \"require\": {\"build\": {\"version\": \"1\"}}}", false},
                {"{\"preset\": \"quick\", \"require\": {\"mitigations\": {\"meltdown\": \"Not affected\"}}}", false},
                {"{\"preset\": \"quick\", \"require\": {\"hostname\": \"lab\", \"smt\": true}}", false},
                {"{\"preset\": \"quick\", \"require\": {\"numa_balancing\": false}}", true},
                {"{\"preset\": \"quick\", \"require\": {\"governor\": \"performance\"}}", true},
                {"{\"preset\": \"quick\", \"require\": {\"transparent_hugepage\": \"never\"}}", true},
                {"{\"preset\": \"quick\", \"require\": {\"transparent_hugepage_shmem\": \"never\"}}", true},
                {"{\"preset\": \"quick\", \"require\": {\"cpufreq_governor\": \"performance\"}}", true},
                {"{\"preset\": \"quick\", \"require\": {\"cpufreq_energy_preference\": \"performance\"}}", true},
                {"{\"preset\": \"quick\", \"require\": {\"hostname\": \"lab\", \"cpuidle_states\": \"POLL\"}}", true},
                {"{\"preset\": \"quick\", \"tune\": {\"idle_states\": false}}", true},
        };
        struct refusal r;
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct spec *s = NULL;
                struct point p = {0};
                if (spec_parse(cases[i].text, strlen(cases[i].text), &s, &r) < 0)
                        CHECK_FAIL("%s: %s", cases[i].text, r.detail);
                CHECK_INT(spec_depends_on_host(s, &p), cases[i].depends);
                p.placement.require.smt = TOGGLE_ON;
                CHECK_INT(spec_depends_on_host(s, &p), cases[i].depends);
                p.placement.require.numa_balancing = TOGGLE_ON;
                CHECK(spec_depends_on_host(s, &p));
                spec_free(s);
        }
}

/* Baselines compare the text. */
static void equal_requirements_are_equal_text(void) {
        static const char *const texts[] = {
                "{\"preset\": \"quick\", \"require\": {\"hostname\": \"lab\", \"swappiness\": 60, \"build\": "
                "{\"version\": "
                "\"1\", \"commit\": \"c\"}, \"mitigations\": {\"l1tf\": \"a\", \"meltdown\": \"b\", \"retbleed\": "
                "\"c\"}}}",
                "{\"preset\": \"quick\", \"require\": {\"mitigations\": {\"retbleed\": \"c\", \"l1tf\": \"a\", "
                "\"meltdown\": "
                "\"b\"}, \"build\": {\"commit\": \"c\", \"version\": \"1\"}, \"swappiness\": 60, \"hostname\": "
                "\"lab\"}}",
        };
        struct spec *s[ELEMENTS(texts)] = {NULL};
        struct refusal r;
        for (size_t i = 0; i < ELEMENTS(texts); i++)
                if (spec_parse(texts[i], strlen(texts[i]), &s[i], &r) < 0)
                        CHECK_FAIL("%s: %s", texts[i], r.detail);
        CHECK_STRING(s[1]->merged_json, s[0]->merged_json);
        const char *at = s[1]->merged_json;
        static const char *const order[] = {"hostname",    "swappiness", "build",    "version", "commit",
                                            "mitigations", "l1tf",       "meltdown", "retbleed"};
        for (size_t i = 0; at && i < ELEMENTS(order); i++)
                at = strstr(at, order[i]);
        CHECK(at != NULL);
        for (size_t i = 0; i < ELEMENTS(texts); i++)
                spec_free(s[i]);
}

int main(void) {
        RUN(documents);
        RUN(not_json);
        RUN(too_long_a_body);
        RUN(defaults);
        RUN(explicit_placement);
        RUN(preset_is_overridden_field_by_field);
        RUN(presets_are_good);
        RUN(pairs_are_expanded);
        RUN(pairs_of_a_large_host);
        RUN(pairs_that_cannot_be);
        RUN(order_of_points);
        RUN(point_as_json);
        RUN(end_in_messages);
        RUN(descriptors_of_points);
        RUN(buffers_of_a_multishot_receive);
        RUN(stored_spec_is_read_as_posted);
        RUN(shuffle_vectors);
        RUN(shuffle_is_fair);
        RUN(a_spec_depends_on_what_settings_change);
        RUN(equal_requirements_are_equal_text);
        return check_end();
}
