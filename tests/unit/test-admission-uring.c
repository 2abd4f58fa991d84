/* SPDX-License-Identifier: MIT */
/*
 * Whether io_uring may be used is found by setting up a ring. This is tried once for all points of a submission, of
 * which there may be thousands. The library is doubled here and counts.
 */

#include "tests/unit/check.h"

#include "daemon/admission/admission.h"
#include "tests/unit/host-tree.h"

#include <liburing.h>
#include <sys/resource.h>

static unsigned rings, probes, rings_open, limits_set;
static int ring_error;

int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags) {
        (void) entries, (void) ring, (void) flags;
        rings++;
        rings_open += ring_error == 0;
        return ring_error;
}

void io_uring_queue_exit(struct io_uring *ring) {
        (void) ring;
        rings_open--;
}

struct io_uring_probe *io_uring_get_probe_ring(struct io_uring *ring) {
        (void) ring;
        probes++;
        return NULL; /* a kernel that does not list its operations has none to send without copying */
}

void io_uring_free_probe(struct io_uring_probe *probe) {
        (void) probe;
}

/* A limit is the whole process's. */
int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit) {
        (void) resource, (void) limit;
        limits_set++;
        return 0;
}

static const struct point copies = {.transport = TRANSPORT_TCP,
                                    .engine = ENGINE_IO_URING,
                                    .message_size = 64,
                                    .threads = 1},
                          shares = {.transport = TRANSPORT_TCP,
                                    .engine = ENGINE_IO_URING,
                                    .copy_mode = COPY_ZERO,
                                    .message_size = 64,
                                    .threads = 1};

static bool allowed(void) {
        struct hostfs h;
        int64_t disabled = 0;
        if (hostfs_init(&h, "") < 0)
                return false;
        (void) hostfs_i64(&h, &disabled, "/proc/sys/kernel/io_uring_disabled"); /* before 6.6 there is none */
        hostfs_deinit(&h);
        return disabled == 0;
}

/* Checks the point so often; what is left in *r is the last refusal. */
static int check_often(const struct admission_host *host, const struct point *p, struct refusal *r) {
        const struct spec spec = {.repetitions = 1};
        int x = 0;
        for (unsigned i = 0; i < 100; i++) {
                *r = (struct refusal){.status = 0};
                x = admission_check(host, &spec, p, r);
        }
        return x;
}

static void a_ring_is_tried_once(void) {
        struct admission_session session;
        CHECK_INT(admission_session_init(&session, ""), 0);
        struct topology *t = NULL;
        struct refusal r;
        if (!allowed())
                SKIP("a setting forbids io_uring here, and then no ring is tried");
        CHECK_INT(topology_read("", &t), 0);
        const struct admission_host host = {.root = "", .topology = t, .session = &session};
        rings = probes = rings_open = 0;
        ring_error = 0;
        int plain = check_often(&host, &copies, &r);
        unsigned after_plain = rings;
        int zero = check_often(&host, &shares, &r);
        topology_free(t);
        admission_session_deinit(&session);
        CHECK_INT(plain, 0);
        CHECK_UINT(after_plain, 1);
        CHECK_INT(zero, -EINVAL);
        CHECK_STRING(r.pointer, "/copy_mode");
        CHECK_STRING(r.detail, "copy_mode zero-copy is not available with engine io_uring: this kernel's io_uring has "
                               "no send_zc (since Linux 6.0), which sends without copying");
        CHECK_UINT(rings, 2);
        CHECK_UINT(probes, 1);
        CHECK_UINT(rings_open, 0);
}

static void a_refusal_is_stored_with_its_reason(void) {
        struct admission_session session;
        CHECK_INT(admission_session_init(&session, ""), 0);
        struct topology *t = NULL;
        struct refusal r;
        if (!allowed())
                SKIP("a setting forbids io_uring here, and then no ring is tried");
        CHECK_INT(topology_read("", &t), 0);
        const struct admission_host host = {.root = "", .topology = t, .session = &session};
        rings = 0;
        ring_error = -EPERM;
        int x = check_often(&host, &copies, &r);
        topology_free(t);
        admission_session_deinit(&session);
        CHECK_INT(x, -EINVAL);
        CHECK_UINT(rings, 1);
        CHECK_STRING(r.pointer, "/engine");
        CHECK_STRING(r.detail, "engine io_uring is not available: io_uring_setup: Operation not permitted: a seccomp "
                               "filter or the container forbids it");
}

/* The next submission tries again, as settings change. */
static void without_a_session_each_point_tries_again(void) {
        struct topology *t = NULL;
        struct refusal r;
        if (!allowed())
                SKIP("a setting forbids io_uring here, and then no ring is tried");
        CHECK_INT(topology_read("", &t), 0);
        rings = 0;
        ring_error = 0;
        int x = check_often(&(struct admission_host){.root = "", .topology = t}, &copies, &r);
        topology_free(t);
        CHECK_INT(x, 0);
        CHECK_UINT(rings, 100);
}

/* Five pages of each thread: two of the sender's, and three of a receiver with buffers of its own. Points are checked
 * in several threads at once, none of which may change a limit to find out what the kernel counts. */
static void rings_may_be_locked_memory(void) {
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
        const struct {
                bool locked;
                uint32_t threads;
                uint64_t memlock_pages; /* 0: not known; UINT64_MAX: no limit */
                enum engine engine;
                bool refused;
        } rows[] = {
                {true, 8, 40, ENGINE_IO_URING, false}, {true, 8, 39, ENGINE_IO_URING, true},
                {true, 8, 0, ENGINE_IO_URING, false},  {true, 8, UINT64_MAX, ENGINE_IO_URING, false},
                {false, 8, 1, ENGINE_IO_URING, false}, {true, 8, 1, ENGINE_SYSCALL, false},
        };
        struct topology *t = NULL;
        if (!allowed())
                SKIP("a setting forbids io_uring here, and then no ring is tried");
        CHECK_INT(topology_read("", &t), 0);
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct admission_session session;
                CHECK_INT(admission_session_init(&session, ""), 0);
                uint64_t pages = rows[i].memlock_pages;
                const struct admission_host host = {.root = "",
                                                    .topology = t,
                                                    .session = &session,
                                                    .rings_are_locked = rows[i].locked,
                                                    .memlock_bytes = pages == UINT64_MAX ? pages : pages * page};
                struct point p = copies;
                struct refusal r;
                char value[24];
                p.threads = rows[i].threads;
                p.engine = rows[i].engine;
                ring_error = 0;
                rings = rings_open = limits_set = 0;
                int x = check_often(&host, &p, &r);
                admission_session_deinit(&session);
                if (x != (rows[i].refused ? -EINVAL : 0))
                        CHECK_FAIL("case %zu: %d, %s", i, x, r.detail);
                CHECK(rings <= 1);
                CHECK_UINT(limits_set, 0);
                CHECK_UINT(rings_open, 0);
                if (!rows[i].refused)
                        continue;
                (void) snprintf(value, sizeof value, "%" PRIu64, 40 * page);
                CHECK_STRING(r.pointer, "/threads");
                CHECK_STRING(r.limit, "RLIMIT_MEMLOCK");
                CHECK_STRING(r.value, value);
        }
        topology_free(t);
}

int main(void) {
        RUN(a_ring_is_tried_once);
        RUN(a_refusal_is_stored_with_its_reason);
        RUN(without_a_session_each_point_tries_again);
        RUN(rings_may_be_locked_memory);
        return check_end();
}
