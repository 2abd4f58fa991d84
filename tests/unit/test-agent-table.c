/* SPDX-License-Identifier: MIT */

/*
 * Real pairs of agents over every row of the table of transports, in each of its copy modes and waits, both workloads
 * and every verification: what is sent is received, whichever end is killed or stopped the other reports it and nothing
 * is left, and a reader that stands still finds its messages as they were. A new row is tested here without a line;
 * what only it has is for a test of its own.
 */

#include "check.h"
#include "figure.h"
#include "interrupt.h"
#include "lanes.h"
#include "pairs.h"
#include "schema/spec/axes.h"
#include "schema/transport/file-layout.h"
#include "schema/util.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Each takes two turns of a CPU that spinners share with others; ends that sleep go round the rings. */
#define SPUN_ROUND_TRIPS UINT64_C(9)

static const enum workload workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};

static const char *isolation_trouble; /* NULL: what is left is this program's own */

/* One way of a transport. */
struct way {
        enum transport transport;
        enum copy_mode copy_mode;
        enum wait_mode wait;
        enum memfd_source memfd;
};

/* Whether a transport has it; what it has no choice of is 0. */
static bool has(const struct transport_term *t, const struct way *way) {
        unsigned copy_modes = t->copy_modes ? t->copy_modes : 1u << COPY_TWO;
        return copy_modes & 1u << way->copy_mode && (t->has_wait || way->wait == 0) &&
               (t->options & OPTION(MEMFD) || way->memfd == 0);
}

/* The n-th of all that the table has; false behind the last. */
static bool way_at(size_t n, struct way *ret) {
        const size_t each = (size_t) COPY_COUNT * WAIT_COUNT * MEMFD_COUNT;
        for (size_t i = 0; i < TRANSPORT_COUNT * each; i++) {
                const struct way way = {.transport = (enum transport)(i / each),
                                        .copy_mode = (enum copy_mode)(i / WAIT_COUNT / MEMFD_COUNT % COPY_COUNT),
                                        .wait = (enum wait_mode)(i / MEMFD_COUNT % WAIT_COUNT),
                                        .memfd = (enum memfd_source)(i % MEMFD_COUNT)};
                if (!has(&transport_terms[way.transport], &way) || n-- > 0)
                        continue;
                *ret = way;
                return true;
        }
        return false;
}

static struct driver_spec spec_of(const struct way *way, enum workload k) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.transport = way->transport;
        s.point.copy_mode = way->copy_mode;
        s.point.wait = way->wait;
        s.options.memfd = way->memfd;
        s.point.workload = k;
        s.point.fields = axis_applies(&axes[AXIS_FIELDS], &s.point) ? SPEC_FIELDS_OF_STUDY : 0;
        s.verify = VERIFY_CHECKSUM;
        s.interval_ns = 20 * NSEC_PER_MSEC;
        return s;
}

static const char *count_fault(const struct driver *d) {
        for (enum end end = END_FIRST; d->spec.messages && end < END_COUNT; end++)
                if (d->ends[end].report.messages != d->spec.messages * d->spec.point.threads)
                        return "another number of messages than the limit";
        return NULL;
}

/* Each way with each workload and each verification, which take turns. */
static void test_every_way_by_count(void) {
        static const uint64_t sizes[] = {1, 4096, 5001};
        IN_LANES(LANES, NULL, test_every_way_by_count);
        struct way way;
        for (size_t n = 0; way_at(n, &way); n++)
                for (enum verify v = VERIFY_NONE; v < VERIFY_COUNT; v++) {
                        size_t k = (n + v) % ELEMENTS(workloads);
                        struct driver d;
                        struct driver_spec s = spec_of(&way, workloads[k]);
                        if (!lanes_my_turn())
                                continue;
                        s.verify = v;
                        s.messages = way.wait == WAIT_SPIN && workloads[k] == WORKLOAD_PINGPONG
                                             ? SPUN_ROUND_TRIPS
                                             : 97; /* more than there are slots */
                        s.warmup_ns = v == VERIFY_CHECKSUM ? 5 * NSEC_PER_MSEC : 0;
                        s.point.message_size = sizes[v];
                        /* spinners take each other's time */
                        s.point.threads = v == VERIFY_CHECKSUM && way.wait != WAIT_SPIN ? 3 : 1;
                        CHECK(run_pair(&d, &s, count_fault));
                        driver_deinit(&d);
                }
}

static void test_a_long_message(void) {
        IN_LANES(LANES / 2, NULL, test_a_long_message);
        struct way way;
        for (size_t n = 0; way_at(n, &way); n++)
                for (size_t k = 0; k < ELEMENTS(workloads); k++) {
                        struct driver d;
                        struct driver_spec s = spec_of(&way, workloads[k]);
                        if (transport_terms[way.transport].delivery == DELIVERY_WHOLE)
                                continue; /* the host decides how long one may be */
                        if (!lanes_my_turn())
                                continue;
                        s.messages = 7;
                        s.point.message_size = (UINT64_C(5) << 20) + 3;
                        CHECK(run_pair(&d, &s, count_fault));
                        driver_deinit(&d);
                }
}

/* What is not read yet must stay as it is, however late the reader comes. */
static void test_reader_that_stands_still(void) {
        IN_LANES(LANES, NULL, test_reader_that_stands_still);
        struct way way;
        for (size_t n = 0; way_at(n, &way); n++) {
                struct driver d;
                struct driver_spec s = spec_of(&way, WORKLOAD_STREAM);
                if (!lanes_my_turn())
                        continue;
                s.duration_ns = 150 * NSEC_PER_MSEC;
                CHECK_INT(driver_open(&d, &s), 0);
                CHECK_INT(driver_start(&d), 0);
                stop_and_continue(d.ends[END_SECOND].pid, 5);
                int r = driver_collect(&d, util_now_ns() + 60 * NSEC_PER_SEC);
                if (r < 0)
                        explain(&s, d.trouble);
                CHECK_INT(r, 0);
                CHECK_INT(driver_close(&d), 0);
                driver_deinit(&d);
        }
}

static void interrupt_ends(int signal) {
        struct way way;
        for (size_t n = 0; way_at(n, &way); n++)
                for (unsigned i = 0; i < ELEMENTS(workloads) * END_COUNT; i++) {
                        struct driver d;
                        enum end victim = (enum end)(i % END_COUNT);
                        struct driver_spec s = spec_of(&way, workloads[i / END_COUNT]);
                        if (!interrupt_meets(signal, n, i / END_COUNT, victim) || !lanes_my_turn())
                                continue;
                        interrupt_by_time(&s, signal);
                        s.verify = interrupt_verify(n + i / END_COUNT, victim);
                        CHECK_NO_FAULT(interrupt_check(&d, &s, victim, signal));
                        driver_deinit(&d);
                }
}

static void test_killed_end(void) {
        if (isolation_trouble)
                SKIP("%s", isolation_trouble);
        IN_LANES(LANES, interrupt_isolate, test_killed_end);
        interrupt_ends(SIGKILL);
}

static void test_stopped_end(void) {
        if (isolation_trouble)
                SKIP("%s", isolation_trouble);
        IN_LANES(LANES, interrupt_isolate, test_stopped_end);
        interrupt_ends(SIGSTOP);
}

/* Among the pages by node, before those by size: the latter are of what is mapped, whichever end made it. */
static bool is_listed(const struct driver_end *e, const char *what) {
        char object[64];
        (void) snprintf(object, sizeof object, "{\"what\":\"%s\"", what);
        const char *found = strstr(e->proof_at_end, object), *sizes = strstr(e->proof_at_end, "\"page_sizes\"");
        return found && sizes && found < sizes;
}

/* Which call moves the message, and which end has the slots that it lies in. */
static void test_process_vm(void) {
        for (enum copy_mode c = COPY_TWO; c <= COPY_ONE; c++) {
                const struct way way = {.transport = TRANSPORT_PROCESS_VM, .copy_mode = c};
                struct driver d;
                struct driver_spec s = spec_of(&way, WORKLOAD_STREAM);
                struct file_layout l = file_layout_of(&s.point, (uint64_t) sysconf(_SC_PAGESIZE));
                s.messages = 500;
                CHECK(run_pair(&d, &s, count_fault));
                const char *effective = d.ends[END_SECOND].effective_at_end;
                CHECK_STRING(text_in(effective, c == COPY_ONE ? "send_method" : "receive_method"),
                             c == COPY_ONE ? "process_vm_writev" : "process_vm_readv");
                CHECK_STRING(text_in(effective, "slots_of"), c == COPY_ONE ? "receiver" : "sender");
                CHECK_INT(atoll(text_in(effective, "slots")), l.slots);
                CHECK(is_listed(&d.ends[END_SECOND], "ring"));
                CHECK(!is_listed(&d.ends[END_FIRST], "ring"));
                driver_deinit(&d);
        }
}

/* The last test: from here on this program and all that it starts are refused, as by a security module. Yama's own
 * refusal is known before a run: test-admission.c. */
static void test_process_vm_not_permitted(void) {
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog program = {.len = ELEMENTS(filter), .filter = filter};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
                SKIP("no filter of system calls here: %s", strerrordesc_np(errno));
        const struct way way = {.transport = TRANSPORT_PROCESS_VM};
        struct driver d;
        struct driver_spec s = spec_of(&way, WORKLOAD_STREAM);
        s.messages = 10;
        CHECK(driver_run(&d, &s) < 0);
        if (!strstr(d.trouble, "process_vm_readv of peer") || !strstr(d.trouble, "is not permitted"))
                CHECK_FAIL("%s", d.trouble);
        driver_deinit(&d);
}

/* What is sealed, and which end shows its pages: a pool's are its sender's. */
static void test_memfd(void) {
        for (enum memfd_source m = MEMFD_FRESH; m < MEMFD_COUNT; m++) {
                const struct way way = {.transport = TRANSPORT_MEMFD, .memfd = m};
                struct driver d;
                struct driver_spec s = spec_of(&way, WORKLOAD_STREAM);
                s.messages = 500;
                CHECK(run_pair(&d, &s, count_fault));
                const char *effective = d.ends[END_SECOND].effective_at_end;
                CHECK_STRING(text_in(effective, "memfd"), memfd_source_name(m));
                CHECK_STRING(text_in(effective, "seals"), m == MEMFD_POOL ? "shrink grow" : "shrink grow write");
                CHECK_INT(is_listed(&d.ends[END_FIRST], "page_cache"), m == MEMFD_POOL);
                CHECK(!is_listed(&d.ends[END_SECOND], "page_cache"));
                driver_deinit(&d);
        }
}

int main(void) {
        isolation_trouble = interrupt_isolate();
        RUN(test_every_way_by_count);
        RUN(test_a_long_message);
        RUN(test_reader_that_stands_still);
        RUN(test_killed_end);
        RUN(test_stopped_end);
        RUN(test_process_vm);
        RUN(test_memfd);
        RUN(test_process_vm_not_permitted);
        return check_end();
}
