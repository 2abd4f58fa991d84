/* SPDX-License-Identifier: MIT */

/* Counters from recorded reads: subtraction, scaling, modes apart, reasons; and the kernel's own where it gives any. */

#include "schema/measure/perf.h"

#include "check.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/syscall.h>

#define OPENED_FIRST 1000

/* In the place of perf_event_open(2), by the linker's --wrap: what was opened, with the leader of its group. */
static struct opened {
        bool records;
        bool single; /* there is no room for a group */
        int error;   /* of kernel mode */
        size_t n;
        struct {
                uint64_t config;
                bool user;
                int leader;
        } of[PERF_HANDLES_MAX];
} opened;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
        va_list more;
        va_start(more, number);
        const struct perf_event_attr *attr = va_arg(more, const struct perf_event_attr *);
        long tid = va_arg(more, int), cpu = va_arg(more, int);
        int leader = va_arg(more, int);
        unsigned long flags = va_arg(more, unsigned long);
        va_end(more);
        if (number != SYS_perf_event_open || !opened.records)
                return __real_syscall(number, attr, tid, cpu, leader, flags);
        if (attr->exclude_user && opened.error) {
                errno = opened.error;
                return -1;
        }
        if (leader >= 0 && opened.single) {
                errno = EINVAL;
                return -1;
        }
        opened.of[opened.n].config = attr->config;
        opened.of[opened.n].user = attr->exclude_kernel;
        opened.of[opened.n].leader = leader;
        return OPENED_FIRST + (long) opened.n++;
}

struct recording {
        int error;        /* of opening a hardware event; 0: it can be had */
        int kernel_error; /* of opening one for kernel mode */
        unsigned opened, closed;
        struct perf_reading next[2]; /* by mode, of hardware events */
};

static int recorded_one(struct recording *r, enum perf_mode mode) {
        if (r->error)
                return r->error;
        if (mode == PERF_KERNEL && r->kernel_error)
                return r->kernel_error;
        r->opened++;
        return mode == PERF_KERNEL ? 1 : 0;
}

static void recorded_open(void *userdata, pid_t tid, struct perf_handles *ret) {
        (void) tid;
        for (enum perf_event event = 0; event < PERF_EVENT_COUNT; event++)
                for (enum perf_mode mode = 0; mode < PERF_MODE_COUNT; mode++)
                        ret->of[event][mode] = recorded_one(userdata, mode);
}

static int recorded_read(void *userdata, int handle, struct perf_reading *ret) {
        struct recording *r = userdata;
        *ret = r->next[handle];
        return 0;
}

static void recorded_close(void *userdata, int handle) {
        (void) handle;
        ((struct recording *) userdata)->closed++;
}

static char *measure(struct recording *r, const struct perf_reading *later, struct perf_totals *ret) {
        struct perf_source source = {recorded_open, recorded_read, recorded_close, r};
        struct perf_set set;
        struct perf_snapshot a, b;
        perf_set_init(&set, &source, 1);
        perf_set_read(&set, &a);
        memcpy(r->next, later, sizeof(r->next));
        perf_set_read(&set, &b);
        perf_subtract(&b, &a, ret);
        perf_set_deinit(&set);

        struct json_writer w;
        char *text = NULL;
        size_t length;
        json_writer_init(&w);
        json_object_begin(&w);
        perf_totals_to_json(ret, &w);
        json_object_end(&w);
        if (json_writer_steal(&w, &text, &length) < 0)
                text = NULL;
        json_writer_deinit(&w);
        return text;
}

static void test_plain(void) {
        struct recording r = {.next = {{1000, 50, 50}, {10, 50, 50}}};
        struct perf_reading later[2] = {{4000, 150, 150}, {510, 150, 150}};
        struct perf_totals t;
        _cleanup_free_ char *text = measure(&r, later, &t);
        CHECK(text);
        CHECK(strstr(text, "\"cycles\":3500,\"cycles_user\":3000,\"cycles_kernel\":500"));
        CHECK(!strstr(text, "multiplexed"));
        CHECK(!strstr(text, "reasons"));
        CHECK_UINT(r.opened, PERF_EVENT_COUNT * 2);
        CHECK_UINT(r.closed, r.opened);
}

static void test_scaled(void) {
        struct recording r = {.next = {{0, 0, 0}, {0, 0, 0}}};
        struct perf_reading later[2] = {{1000, 400, 100}, {500, 400, 200}};
        struct perf_totals t;
        _cleanup_free_ char *text = measure(&r, later, &t);
        CHECK(text);
        CHECK(strstr(text, "\"cycles\":5000,\"cycles_user\":4000,\"cycles_kernel\":1000"));
        CHECK(strstr(text, "\"multiplexed\":{\"cycles\":0.25,\"cycles_user\":0.25,\"cycles_kernel\":0.5"));
}

static void test_never_scheduled(void) {
        struct recording r = {.next = {{0, 0, 0}, {0, 0, 0}}};
        struct perf_reading later[2] = {{0, 400, 0}, {500, 400, 400}};
        struct perf_totals t;
        _cleanup_free_ char *text = measure(&r, later, &t);
        CHECK(text);
        CHECK(strstr(text, "\"cycles\":null,\"cycles_user\":null,\"cycles_kernel\":500"));
        CHECK(strstr(text, "never got onto the hardware"));
        CHECK(strstr(text, "cores of another type"));
}

static void test_idle_thread(void) {
        struct recording r = {.next = {{9, 10, 10}, {9, 10, 10}}};
        struct perf_reading later[2] = {{9, 10, 10}, {9, 10, 10}};
        struct perf_totals t;
        _cleanup_free_ char *text = measure(&r, later, &t);
        CHECK(text);
        CHECK(strstr(text, "\"cycles\":0,"));
}

static void test_no_hardware(void) {
        struct recording r = {.error = -ENOENT};
        struct perf_reading later[2] = {{0, 0, 0}, {0, 0, 0}};
        struct perf_totals t;
        _cleanup_free_ char *text = measure(&r, later, &t);
        CHECK(text);
        CHECK(perf_totals_are_none(&t));
        CHECK(strstr(text, "\"llc_misses\":null"));
        CHECK(!strstr(text, "cycles_user"));
        CHECK(strstr(text, "\"reasons\":{\"hardware\":\"this machine has no such counter"));
        CHECK_UINT(r.closed, 0);
}

static void test_user_only(void) {
        struct recording r = {.kernel_error = -EACCES};
        struct perf_reading later[2] = {{100, 10, 10}, {0, 0, 0}};
        struct perf_totals t;
        _cleanup_free_ char *text = measure(&r, later, &t);
        CHECK(text);
        CHECK(strstr(text, "\"cycles\":null,\"cycles_user\":100,\"cycles_kernel\":null"));
        CHECK(strstr(text, "\"reasons\":{\"cycles\":\"not allowed"));
        CHECK(strstr(text, "\"branch_misses_kernel\":\"not allowed"));
        CHECK(strstr(text, "perf_event_paranoid"));
        CHECK(!strstr(text, "\"hardware\""));
}

static void test_sum_of_threads(void) {
        struct recording known = {.next = {{0, 0, 0}, {0, 0, 0}}}, none = {.error = -ENOENT};
        struct perf_reading later[2] = {{100, 10, 5}, {10, 10, 10}}, nothing[2] = {{0, 0, 0}, {0, 0, 0}};
        struct perf_totals a, b, sum = {0};
        free(measure(&known, later, &a));
        free(measure(&none, nothing, &b));
        perf_totals_add(&sum, &a);
        perf_totals_add(&sum, &a);
        CHECK_UINT(sum.counts[PERF_CYCLES][PERF_USER].value, 400);
        CHECK(sum.counts[PERF_CYCLES][PERF_USER].fraction == 0.5);
        CHECK_UINT(sum.threads, 2);
        perf_totals_add(&sum, &b);
        CHECK(!sum.counts[PERF_CYCLES][PERF_USER].known);
        CHECK_INT(sum.counts[PERF_CYCLES][PERF_USER].error, -ENOENT);
}

static void test_none(void) {
        struct perf_set set;
        struct perf_snapshot a;
        struct perf_totals t;
        perf_set_init(&set, &perf_source_none, 1);
        perf_set_read(&set, &a);
        perf_subtract(&a, &a, &t);
        perf_set_deinit(&set);
        CHECK(perf_totals_are_none(&t));
        CHECK_INT(t.counts[PERF_LLC_MISSES][PERF_KERNEL].error, -ECANCELED);
}

static void test_kernel(void) {
        struct perf_set set;
        struct perf_snapshot a, b;
        struct perf_totals t;
        perf_set_init(&set, &perf_source_kernel, (pid_t) syscall(SYS_gettid));
        perf_set_read(&set, &a);
        for (volatile unsigned i = 0; i < 1000000; i++)
                ;
        perf_set_read(&set, &b);
        perf_subtract(&b, &a, &t);
        int error = set.handles.of[PERF_INSTRUCTIONS][PERF_USER];
        perf_set_deinit(&set);
        if (error < 0)
                SKIP("this machine counts no instructions: %s", strerrordesc_np(-error));
        CHECK(t.counts[PERF_INSTRUCTIONS][PERF_USER].known);
        CHECK(t.counts[PERF_INSTRUCTIONS][PERF_USER].value >= 1000000);
}

/* Each second event is of the same slices of time as the one before it. */
static void test_groups(void) {
        static const int errors[] = {0, EACCES};
        for (size_t e = 0; e < ELEMENTS(errors); e++) {
                struct perf_handles handles;
                opened = (struct opened){.records = true, .error = errors[e]};
                perf_source_kernel.open(NULL, 1, &handles);
                opened.records = false;
                CHECK_UINT(opened.n, errors[e] ? PERF_EVENT_COUNT : PERF_HANDLES_MAX);
                for (enum perf_event event = 0; event < PERF_EVENT_COUNT; event++)
                        for (enum perf_mode mode = 0; mode < PERF_MODE_COUNT; mode++) {
                                int handle = handles.of[event][mode];
                                if (mode == PERF_KERNEL && errors[e]) {
                                        CHECK_INT(handle, -EACCES);
                                        continue;
                                }
                                bool second = event == PERF_INSTRUCTIONS || event == PERF_LLC_MISSES ||
                                              event == PERF_BRANCH_MISSES;
                                CHECK_INT(opened.of[handle - OPENED_FIRST].leader,
                                          second ? handles.of[event - 1][mode] : -1);
                                CHECK_INT(opened.of[handle - OPENED_FIRST].user, mode == PERF_USER);
                        }
        }
}

/* A PMU with one counter refuses each group. */
static void test_no_room_for_groups(void) {
        struct perf_handles handles;
        opened = (struct opened){.records = true, .single = true};
        perf_source_kernel.open(NULL, 1, &handles);
        opened.records = false;
        CHECK_UINT(opened.n, PERF_HANDLES_MAX);
        for (enum perf_event event = 0; event < PERF_EVENT_COUNT; event++)
                for (enum perf_mode mode = 0; mode < PERF_MODE_COUNT; mode++)
                        CHECK(handles.of[event][mode] >= OPENED_FIRST &&
                              opened.of[handles.of[event][mode] - OPENED_FIRST].leader == -1);
}

int main(void) {
        RUN(test_plain);
        RUN(test_scaled);
        RUN(test_never_scheduled);
        RUN(test_idle_thread);
        RUN(test_no_hardware);
        RUN(test_user_only);
        RUN(test_sum_of_threads);
        RUN(test_none);
        RUN(test_groups);
        RUN(test_no_room_for_groups);
        RUN(test_kernel);
        return check_end();
}
