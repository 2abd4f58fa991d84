/* SPDX-License-Identifier: MIT */

/* The rings of several threads in one report: all have a feature, or the reason of the first thread that has it not. */

#include "agent/base/agent.h"
#include "agent/transport/transport.h"
#include "agent/transport/uring/uring.h"
#include "check.h"
#include "schema/util.h"
#include "tests/unit/effective.h"

#include <stdlib.h>

#define THREADS 3u

static struct agent agent;
static struct worker workers[THREADS];

/* "io_uring" as agents whose threads have these rings report it. */
static char *report_of(enum transport t, struct uring rings[THREADS]) {
        char *text = NULL, *found;
        EFFECTIVE *e = effective_new();
        agent = (struct agent){.workers = workers, .n_workers = THREADS};
        agent.setup.point = (struct point){.transport = t, .engine = ENGINE_IO_URING, .message_size = 64};
        for (uint32_t i = 0; i < THREADS; i++)
                workers[i] = (struct worker){
                        .agent = &agent, .index = i, .send_fd = -1, .receive_fd = -1, .engine = &rings[i]};
        transport_find(t, ENGINE_IO_URING)->effective(&agent, e);
        text = effective_text(e);
        if (!text)
                abort();
        found = strstr(text, "\"io_uring\":");
        memmove(text, found ? found : "", strlen(found ? found : "") + 1);
        return text;
}

static struct uring ring_with(bool fixed, int buffer_error, int files_error, int workers_error) {
        return (struct uring){.fixed_buffer = fixed,
                              .buffer_error = buffer_error,
                              .files_error = files_error,
                              .setup = {.flags = "single_issuer", .workers_error = workers_error}};
}

#define RING "\"io_uring\":{\"queue_depth\":1,\"setup_flags\":\"single_issuer\","
#define FILES "\"registered_files\":true,"
#define BUFFERS "\"registered_buffers\":true,"
#define WORKERS "\"workers_affinity\":true}}"

static void test_rings_of_all_threads(void) {
        static const struct {
                struct {
                        int buffer, files, workers;
                } errors[THREADS];
                const char *expected;
        } rows[] = {
                {.expected = RING FILES BUFFERS WORKERS},
                {{{0}, {.buffer = EFAULT}, {.buffer = ENOMEM}},
                 RING FILES "\"registered_buffers\":false,\"registered_buffers_reason\":\"Bad address\"," WORKERS},
                {{{0}, {0}, {.buffer = ENOMEM}},
                 RING FILES "\"registered_buffers\":false,\"registered_buffers_reason\":\"RLIMIT_MEMLOCK\"," WORKERS},
                {{{0}, {0}, {.files = EMFILE}},
                 RING
                 "\"registered_files\":false,\"registered_files_reason\":\"Too many open files\"," BUFFERS WORKERS},
                {{{0}, {.workers = EPERM}, {.workers = EINVAL}},
                 RING FILES BUFFERS
                 "\"workers_affinity\":false,\"workers_affinity_reason\":\"Operation not permitted\"}}"},
                {{{.files = EMFILE}, {.buffer = EFAULT}, {0}},
                 RING "\"registered_files\":false,\"registered_files_reason\":\"Too many open files\","
                      "\"registered_buffers\":false,\"registered_buffers_reason\":\"Bad address\"," WORKERS},
        };
        static const enum transport transports[] = {TRANSPORT_PIPE, TRANSPORT_FIFO};
        for (size_t i = 0; i < ELEMENTS(rows); i++)
                for (size_t t = 0; t < ELEMENTS(transports); t++) {
                        struct uring rings[THREADS];
                        for (uint32_t k = 0; k < THREADS; k++)
                                rings[k] = ring_with(rows[i].errors[k].buffer == 0, rows[i].errors[k].buffer,
                                                     rows[i].errors[k].files, rows[i].errors[k].workers);
                        _cleanup_free_ char *expected = report_of(transports[t], rings);
                        CHECK_STRING(expected, rows[i].expected);
                }
}

static void test_rings_that_take_no_buffer(void) {
        struct uring rings[THREADS];
        for (uint32_t k = 0; k < THREADS; k++) {
                rings[k] = ring_with(false, 0, 0, 0);
                rings[k].no_buffer = "not requested";
        }
        _cleanup_free_ char *expected = report_of(TRANSPORT_PIPE, rings);
        CHECK_STRING(expected, RING FILES
                     "\"registered_buffers\":false,\"registered_buffers_reason\":\"not requested\"," WORKERS);
}

int main(void) {
        RUN(test_rings_of_all_threads);
        RUN(test_rings_that_take_no_buffer);
        return check_end();
}
