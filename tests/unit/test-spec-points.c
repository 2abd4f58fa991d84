/* SPDX-License-Identifier: MIT */

/*
 * What a build has not is refused by name. This one has everything that its words name, so the module is built here
 * once more, over tables that lack something.
 */

#include "check.h"
#include "schema/refusal.h"
#include "schema/spec-internal.h"
#include "schema/spec.h"
#include "schema/terms.h"

#define BIT(n) (1u << (n))

static struct transport_term terms_here[TRANSPORT_COUNT];
static struct capability_term capabilities_here[CAPABILITY_COUNT];
static const char *workloads_here[WORKLOAD_COUNT]; /* why there is none; NULL: there is */

static void have_everything(void) {
        memcpy(terms_here, transport_terms, sizeof(terms_here));
        memcpy(capabilities_here, capability_terms, sizeof(capabilities_here));
        memset(workloads_here, 0, sizeof(workloads_here));
}

#define transport_terms terms_here
#define capability_terms capabilities_here
#define workload_unavailable(v) (workloads_here[v])
#define check_end check_end_of_window /* the tests have a check_end() */
#include "schema/spec-points.c"       /* NOLINT(bugprone-suspicious-include) */
#undef check_end

static const struct point pipe_stream = {
        .workload = WORKLOAD_STREAM, .transport = TRANSPORT_PIPE, .message_size = 64, .threads = 1};

static void check_refused(const struct spec *s, const struct point *p, const char *pointer, const char *detail) {
        struct refusal r = {0};
        CHECK_INT(point_check(s, p, &r), -EINVAL);
        CHECK_INT(r.status, 422);
        CHECK_STRING(r.code, "not-available");
        CHECK_STRING(r.pointer, pointer);
        CHECK_STRING(r.detail, detail);
}

static void nothing_is_refused_that_is_there(void) {
        struct spec s = {0};
        struct refusal r = {0};
        have_everything();
        CHECK_INT(point_check(&s, &pipe_stream, &r), 0);
}

static void a_transport(void) {
        struct spec s = {0};
        have_everything();
        terms_here[TRANSPORT_PIPE].unavailable = "nobody has built it";
        check_refused(&s, &pipe_stream, "/transport", "transport pipe is not available: nobody has built it");
        /* and a point without a transport does not mind */
        struct point call = {.workload = WORKLOAD_SYSCALL, .transport = TRANSPORT_PIPE, .threads = 1};
        struct refusal r = {0};
        CHECK_INT(point_check(&s, &call, &r), 0);
}

static void a_workload(void) {
        struct spec s = {0};
        have_everything();
        terms_here[TRANSPORT_PIPE].workloads = BIT(WORKLOAD_PINGPONG);
        check_refused(&s, &pipe_stream, "/workload",
                      "workload stream is not available with transport pipe: this build does not have it yet");
        workloads_here[WORKLOAD_STREAM] = "it comes later";
        check_refused(&s, &pipe_stream, "/workload", "workload stream is not available: it comes later");
}

/* What the mechanism could do, and what it never can: the one is missing here, the other impossible. */
static void a_word(void) {
        struct spec s = {0};
        struct refusal r = {0};
        struct point p = pipe_stream;
        have_everything();
        p.copy_mode = COPY_ONE;
        p.engine = ENGINE_IO_URING;
        terms_here[TRANSPORT_PIPE].engines = BIT(ENGINE_SYSCALL);
        check_refused(&s, &p, "/engine",
                      "engine io_uring is not available with transport pipe: this build does not have it yet");
        terms_here[TRANSPORT_PIPE].copy_modes = BIT(COPY_TWO);
        check_refused(&s, &p, "/copy_mode",
                      "copy_mode one-copy is not available with transport pipe: this build does not have it yet");
        terms_here[TRANSPORT_PIPE].ever_copy_modes = BIT(COPY_TWO);
        CHECK_INT(point_check(&s, &p, &r), -EINVAL);
        CHECK_STRING(r.code, "impossible-combination");

        p = (struct point){.workload = WORKLOAD_STREAM, .transport = TRANSPORT_SHM_POSIX, .wait = WAIT_HYBRID};
        terms_here[TRANSPORT_SHM_POSIX].waits = BIT(WAIT_SPIN);
        check_refused(&s, &p, "/wait",
                      "wait hybrid is not available with transport shm-posix: this build does not have it yet");
}

static void a_capability(void) {
        struct spec s = {.rate = 1000};
        have_everything();
        capabilities_here[CAPABILITY_RATE].unavailable = "there is no clock";
        check_refused(&s, &pipe_stream, "/rate", "rate is not available: there is no clock");
        s.rate = 0;
        struct refusal r = {0};
        CHECK_INT(point_check(&s, &pipe_stream, &r), 0);
}

int main(void) {
        RUN(nothing_is_refused_that_is_there);
        RUN(a_transport);
        RUN(a_workload);
        RUN(a_word);
        RUN(a_capability);
        return check_end();
}
