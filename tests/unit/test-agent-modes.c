/* SPDX-License-Identifier: MIT */

/*
 * Real pairs of agents in every copy mode and engine: each transport, workload and number of threads with sizes that
 * fit nothing, every byte checked; a reader that stands still for a while; ends that are killed or stopped.
 */

#include "check.h"
#include "child.h"
#include "interrupt.h"
#include "lanes.h"
#include "pairs.h"
#include "rings.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define RING "\"io_uring\":{\"queue_depth\":1"

/* Of all transports of a carrier. */
static const struct kind {
        enum carrier carrier;
        enum engine engine;
        enum copy_mode copy_mode;
        const char *method; /* as `effective` has it */
        enum file_sync file_sync;
} kinds[] = {
        {CARRIER_PIPE, ENGINE_SYSCALL, COPY_ONE, "\"send_method\":\"writev\"", 0},
        {CARRIER_PIPE, ENGINE_SYSCALL, COPY_ZERO, "\"send_method\":\"vmsplice\"", 0},
        {CARRIER_SOCKET, ENGINE_SYSCALL, COPY_ONE, "\"send_method\":\"sendmsg\"", 0},
        {CARRIER_FILE, ENGINE_SYSCALL, COPY_TWO, "\"file_sync\":\"page-cache\"", FILE_SYNC_PAGE_CACHE},
        {CARRIER_FILE, ENGINE_SYSCALL, COPY_TWO, "\"file_sync\":\"fsync\"", FILE_SYNC_FSYNC},
        {CARRIER_FILE, ENGINE_SYSCALL, COPY_TWO, "\"file_sync\":\"direct\"", FILE_SYNC_DIRECT},
        {CARRIER_PIPE, ENGINE_IO_URING, COPY_TWO, "\"send_method\":\"write\"", 0},
        {CARRIER_PIPE, ENGINE_IO_URING, COPY_ONE, "\"send_method\":\"writev\"", 0},
        {CARRIER_SOCKET, ENGINE_IO_URING, COPY_TWO, "\"send_method\":\"send\"", 0},
        {CARRIER_SOCKET, ENGINE_IO_URING, COPY_ONE, "\"send_method\":\"sendmsg\"", 0},
        {CARRIER_FILE, ENGINE_IO_URING, COPY_TWO, RING, FILE_SYNC_PAGE_CACHE},
        {CARRIER_FILE, ENGINE_IO_URING, COPY_TWO, RING, FILE_SYNC_FSYNC},
        {CARRIER_FILE, ENGINE_IO_URING, COPY_TWO, RING, FILE_SYNC_DIRECT},
};

static struct mode {
        enum transport transport;
        enum engine engine;
        enum copy_mode copy_mode;
        const char *method;
        enum file_sync file_sync;
} modes[ELEMENTS(kinds) * TRANSPORT_COUNT];
static size_t n_modes;

static void list_modes(void) {
        for (size_t i = 0; i < ELEMENTS(kinds); i++)
                for (enum transport t = 0; t < TRANSPORT_COUNT; t++)
                        if (transport_terms[t].carrier == kinds[i].carrier)
                                modes[n_modes++] = (struct mode){t, kinds[i].engine, kinds[i].copy_mode,
                                                                 kinds[i].method, kinds[i].file_sync};
}

static const enum workload workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};

static bool is_listed(enum transport t, enum engine engine, enum copy_mode copy_mode) {
        for (size_t i = 0; i < n_modes; i++)
                if (modes[i].transport == t && modes[i].engine == engine && modes[i].copy_mode == copy_mode)
                        return true;
        return false;
}

/* Every mode with a choice of engines, but for tcp, which has tests of its own, and the plainest mode of pipes and
 * sockets, which is that of test-agent.c, test-agent-faults.c and test-agent-queues.c. */
static void test_no_mode_is_left_out(void) {
        for (size_t n = 0; n < (size_t) TRANSPORT_COUNT * ENGINE_COUNT * COPY_COUNT; n++) {
                enum transport t = (enum transport)(n / COPY_COUNT / ENGINE_COUNT);
                enum engine engine = (enum engine)(n / COPY_COUNT % ENGINE_COUNT);
                enum copy_mode copy_mode = (enum copy_mode)(n % COPY_COUNT);
                const struct transport_term *term = &transport_terms[t];
                unsigned copy_modes = term->copy_modes ? term->copy_modes : 1u << COPY_TWO;
                bool is_plain = engine == ENGINE_SYSCALL && copy_mode == COPY_TWO && term->carrier != CARRIER_FILE;
                bool is_possible = engine == ENGINE_SYSCALL || copy_mode != COPY_ZERO; /* a ring has no vmsplice */
                if (term->carrier != CARRIER_TCP && term->has_engine && copy_modes & 1u << copy_mode && is_possible &&
                    !is_plain && !is_listed(t, engine, copy_mode))
                        CHECK_FAIL("%s with engine %s, %s, is not among the modes", term->name, engine_name(engine),
                                   copy_mode_name(copy_mode));
        }
}

static const char *isolation_trouble; /* NULL: what is left is this program's own */

static struct driver_spec spec_of(const struct mode *m, enum workload k) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.transport = m->transport;
        s.point.engine = m->engine;
        s.point.copy_mode = m->copy_mode;
        s.point.fields = m->copy_mode == COPY_ONE ? SPEC_FIELDS_OF_STUDY : 0;
        s.point.workload = k;
        s.options.file_sync = m->file_sync;
        s.verify = VERIFY_CHECKSUM;
        s.interval_ns = 20 * NSEC_PER_MSEC;
        return s;
}

/* What of the machine a mode needs, that not every machine has. Cases run for one kind of mode at a time, so that what
 * a machine lacks is counted as skipped. */
enum { NEED_RING = 1, NEED_DIRECT = 2, NEEDS = 4 };

static unsigned needed;            /* by the modes of the case that runs */
static const char *lacking[NEEDS]; /* why there is none of it here; NULL: there is */

/* Where the driver has its runs' directories. */
static const char *direct_trouble(void) {
        char path[] = "/tmp/ipclab-modes-XXXXXX";
        struct statfs fs = {};
        struct statx x = {};
        _cleanup_close_ int fd = mkostemp(path, O_CLOEXEC | O_DIRECT);
        int error = errno;
        (void) unlink(path); /* may have been made all the same */
        if (fd < 0)
                return error == EINVAL ? "the file system of /tmp takes no O_DIRECT" : NULL;
        if (fstatfs(fd, &fs) < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) < 0)
                return NULL;
        if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
                return "/tmp is in memory";
        if (!(x.stx_mask & STATX_DIOALIGN))
                return NULL;
        return x.stx_dio_offset_align == 0          ? "the file system of /tmp takes no O_DIRECT"
               : 4096 % x.stx_dio_offset_align != 0 ? "the file system of /tmp wants more than 4096 bytes for O_DIRECT"
                                                    : NULL;
}

static void probe_kernel(void) {
        lacking[NEED_RING] = ring_trouble();
        lacking[NEED_DIRECT] = direct_trouble();
        lacking[NEED_RING | NEED_DIRECT] = lacking[NEED_RING] ? lacking[NEED_RING] : lacking[NEED_DIRECT];
}

#define SKIP_WHAT_IS_LACKING()                                                                                         \
        do {                                                                                                           \
                if (lacking[needed])                                                                                   \
                        SKIP("%s", lacking[needed]);                                                                   \
        } while (0)

/* Whether the mode is of this case's kind, and has messages of that size. */
static bool in_turn(const struct mode *m, uint64_t size) {
        bool ring = m->engine == ENGINE_IO_URING, direct = m->file_sync == FILE_SYNC_DIRECT;
        return needed == (ring ? NEED_RING : 0u) + (direct ? NEED_DIRECT : 0u) && (!direct || size % 4096 == 0);
}

/* How many messages a device takes in a moment; elsewhere more than any pipe, socket or file has room for. */
static uint64_t some_messages(const struct mode *m, uint64_t size) {
        if (m->file_sync != FILE_SYNC_PAGE_CACHE)
                return 20;
        return size < 65536 ? 500 : 100;
}

/* Each mode with each size and each workload: one of the two has one thread and the other three, by turns. */
static void test_every_byte_arrives(void) {
        SKIP_WHAT_IS_LACKING();
        IN_LANES(LANES, NULL, test_every_byte_arrives);
        static const uint64_t sizes[] = {1, 7, 4096, 65536 + 13, 65536};
        static const uint32_t threads[] = {1, 3};
        for (size_t i = 0; i < n_modes; i++)
                for (size_t k = 0; k < ELEMENTS(workloads); k++)
                        for (size_t n = 0; n < ELEMENTS(sizes); n++) {
                                struct driver d;
                                struct driver_spec s = spec_of(&modes[i], workloads[k]);
                                s.point.message_size = sizes[n];
                                if (!in_turn(&modes[i], s.point.message_size) || !lanes_my_turn())
                                        continue;
                                s.point.threads = threads[(i + k + n) % ELEMENTS(threads)];
                                s.messages = some_messages(&modes[i], s.point.message_size);
                                s.warmup_ns = (i + n) % 2 * 5 * NSEC_PER_MSEC;
                                CHECK(run_well(&d, &s));
                                CHECK_UINT(d.ends[END_SECOND].report.messages, s.messages * s.point.threads);
                                CHECK(strstr(d.ends[END_FIRST].effective_at_end, modes[i].method));
                                driver_deinit(&d);
                        }
}

/* Every mode keeps to an open loop's schedule: the last message is not there before its time, and each has one latency,
 * at the end that knows when it was due, also of a device that cannot follow. */
static void test_rate(void) {
        SKIP_WHAT_IS_LACKING();
        IN_LANES(LANES, NULL, test_rate);
        for (size_t i = 0; i < n_modes * ELEMENTS(workloads); i++) {
                const struct mode *m = &modes[i / ELEMENTS(workloads)];
                enum workload k = workloads[i % ELEMENTS(workloads)];
                enum end timed = k == WORKLOAD_STREAM ? END_SECOND : END_FIRST;
                struct driver d;
                struct driver_spec s = spec_of(m, k);
                if (!in_turn(m, s.point.message_size) || !lanes_my_turn())
                        continue;
                s.point.threads = 2;
                s.messages = 20;
                s.rate = 1000;
                CHECK(run_well(&d, &s));
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        CHECK_UINT(d.ends[end].report.messages, 40);
                        CHECK_UINT(histogram_total(&d.ends[end].latency), end == timed ? 40 : 0);
                }
                CHECK(d.ends[timed].report.window_ns >= 39 * NSEC_PER_SEC / 2000);
                driver_deinit(&d);
        }
}

/* Memory is registered where READ_FIXED or WRITE_FIXED moves it, and is reported as registered nowhere else. */
static bool uses_registered(const struct mode *m, enum workload k, enum end end) {
        enum carrier carrier = transport_terms[m->transport].carrier;
        bool only_writev = m->copy_mode == COPY_ONE && k == WORKLOAD_STREAM && end == END_FIRST;
        return carrier == CARRIER_FILE || (carrier == CARRIER_PIPE && !only_writev);
}

static void test_what_is_registered(void) {
        SKIP_WHAT_IS_LACKING();
        IN_LANES(LANES, NULL, test_what_is_registered);
        for (size_t i = 0; i < n_modes * ELEMENTS(workloads); i++) {
                const struct mode *m = &modes[i / ELEMENTS(workloads)];
                enum workload k = workloads[i % ELEMENTS(workloads)];
                struct driver d;
                struct driver_spec s = spec_of(m, k);
                if (!in_turn(m, s.point.message_size) || !lanes_my_turn())
                        continue;
                s.messages = 1;
                CHECK(run_well(&d, &s));
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        const char *effective = d.ends[end].effective_at_end;
                        CHECK(strstr(effective, RING));
                        if (strstr(effective, "\"registered_buffers_reason\":\"RLIMIT_MEMLOCK\""))
                                continue;
                        CHECK(strstr(effective,
                                     uses_registered(m, k, end)
                                             ? "\"registered_buffers\":true"
                                             : "\"registered_buffers\":false,\"registered_buffers_reason\""));
                }
                driver_deinit(&d);
        }
}

static void test_every_verification_by_time(void) {
        SKIP_WHAT_IS_LACKING();
        IN_LANES(LANES, NULL, test_every_verification_by_time);
        for (size_t i = 0; i < n_modes; i++)
                for (size_t k = 0; k < ELEMENTS(workloads); k++)
                        for (enum verify v = VERIFY_NONE; v < VERIFY_CHECKSUM && in_turn(&modes[i], 4096); v++) {
                                if (!lanes_my_turn())
                                        continue;
                                struct driver d;
                                struct driver_spec s = spec_of(&modes[i], workloads[k]);
                                s.verify = v;
                                s.duration_ns = 30 * NSEC_PER_MSEC;
                                CHECK(something_arrives(&d, &s, NULL));
                                driver_deinit(&d);
                        }
}

/* What a sender keeps must stay as it was until the reader has been there, however late that is. */
static void test_reader_that_stands_still(void) {
        SKIP_WHAT_IS_LACKING();
        IN_LANES(LANES, NULL, test_reader_that_stands_still);
        for (size_t i = 0; i < n_modes; i++) {
                struct driver d;
                struct driver_spec s = spec_of(&modes[i], WORKLOAD_STREAM);
                s.point.message_size = modes[i].file_sync == FILE_SYNC_DIRECT ? 8192 : 5000;
                if (!in_turn(&modes[i], s.point.message_size) || !lanes_my_turn())
                        continue;
                s.point.threads = 2;
                s.duration_ns = 250 * NSEC_PER_MSEC;
                CHECK_INT(driver_open(&d, &s), 0);
                CHECK_INT(driver_start(&d), 0);
                stop_and_continue(d.ends[END_SECOND].pid, 10);
                int r = driver_collect(&d, util_now_ns() + 60 * NSEC_PER_SEC);
                if (r < 0)
                        explain(&d.spec, d.trouble);
                CHECK_INT(r, 0);
                CHECK_INT(driver_close(&d), 0);
                driver_deinit(&d);
        }
}

static void interrupt_modes(int signal) {
        for (size_t i = 0; i < n_modes * ELEMENTS(workloads); i++)
                for (enum end victim = END_FIRST; victim < END_COUNT; victim++) {
                        const size_t n = i / ELEMENTS(workloads), k = i % ELEMENTS(workloads);
                        const struct mode *m = &modes[n];
                        if (!interrupt_meets(signal, n, k, victim) || !in_turn(m, 4096) || !lanes_my_turn())
                                continue;
                        struct driver d;
                        struct driver_spec s = spec_of(m, workloads[k]);
                        interrupt_by_time(&s, signal);
                        s.point.threads = 2;
                        s.verify = interrupt_verify(i, victim);
                        CHECK_NO_FAULT(interrupt_check(&d, &s, victim, signal));
                        driver_deinit(&d);
                }
}

static void test_killed_end(void) {
        if (isolation_trouble)
                SKIP("%s", isolation_trouble);
        SKIP_WHAT_IS_LACKING();
        IN_LANES(LANES, interrupt_isolate, test_killed_end);
        interrupt_modes(SIGKILL);
}

static void test_stopped_end(void) {
        if (isolation_trouble)
                SKIP("%s", isolation_trouble);
        SKIP_WHAT_IS_LACKING();
        IN_LANES(LANES, interrupt_isolate, test_stopped_end);
        interrupt_modes(SIGSTOP);
}

/* In a child, as it cannot be undone: io_uring_setup() fails from here on, as in many a container. */
static int forbid_rings(void *unused) {
        (void) unused;
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {.len = ELEMENTS(code), .filter = code};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
                return 77;
        if (!ring_trouble()) { /* every case that needs rings calls it first */
                fputs("it is not noticed that there are no rings\n", stderr);
                return 1;
        }
        static const struct mode a_ring = {TRANSPORT_FIFO, ENGINE_IO_URING, COPY_TWO, "", 0};
        struct driver d;
        struct driver_spec s = spec_of(&a_ring, WORKLOAD_PINGPONG);
        s.messages = 1;
        int r = driver_run(&d, &s);
        bool named = strstr(d.trouble, "engine io_uring: io_uring_setup: Operation not permitted") ||
                     strstr(d.trouble, "kernel.io_uring_disabled");
        if (r != -EPERM || !named)
                fprintf(stderr, "%d: %s\n", r, d.trouble);
        return r == -EPERM && named && d.run_dir[0] == '\0' ? 0 : 1;
}

static void test_rings_that_are_forbidden(void) {
        int r = child_does(forbid_rings, NULL);
        if (r == 77)
                SKIP("no seccomp filter can be installed here");
        CHECK_INT(r, 0);
}

int main(void) {
        isolation_trouble = interrupt_isolate();
        probe_kernel();
        list_modes();
        RUN(test_no_mode_is_left_out);
        for (needed = 0; needed < NEEDS; needed++) {
                printf("%s, %s:\n", needed & NEED_RING ? "engine io_uring" : "engine syscall",
                       needed & NEED_DIRECT ? "past the page cache" : "all else");
                RUN(test_every_byte_arrives);
                RUN(test_rate);
                if (needed & NEED_RING)
                        RUN(test_what_is_registered);
                RUN(test_every_verification_by_time);
                RUN(test_reader_that_stands_still);
                RUN(test_killed_end);
                RUN(test_stopped_end);
        }
        RUN(test_rings_that_are_forbidden);
        return check_end();
}
