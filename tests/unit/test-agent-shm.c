/* SPDX-License-Identifier: MIT */

/*
 * Real pairs of agents over rings in shared memory: every carrier with every wait, workload and verification for a
 * time; rings of one message and of odd sizes; one CPU for both. By count, and with an end that is killed or stopped,
 * they run in test-agent-table.c, with all other transports.
 */

#include "check.h"
#include "child.h"
#include "figure.h"
#include "interrupt.h"
#include "lanes.h"
#include "nameless.h"
#include "pairs.h"
#include "schema/transport/ring-layout.h"
#include "schema/util.h"
#include "transports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/shm.h>

static enum transport carriers[TRANSPORT_COUNT];
static size_t n_carriers;
static const enum workload workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};
static const enum wait_mode sleeping_waits[] = {WAIT_BLOCK, WAIT_HYBRID};

static struct driver_spec shm_spec(enum transport t, enum workload k, enum wait_mode wait) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.transport = t;
        s.point.workload = k;
        s.point.wait = wait;
        if (t == TRANSPORT_SHM_SYSV || t == TRANSPORT_MMAP_FILE)
                s.point.message_size = 64; /* so many slots that a stream's reader lets messages gather */
        s.duration_ns = 40 * NSEC_PER_MSEC;
        s.warmup_ns = 5 * NSEC_PER_MSEC;
        s.interval_ns = 20 * NSEC_PER_MSEC;
        s.verify = VERIFY_CHECKSUM;
        return s;
}

static struct driver_spec counted(struct driver_spec s, uint64_t messages) {
        s.duration_ns = 0;
        s.messages = messages;
        return s;
}

static const char *samples_fault(const struct driver *d) {
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                const struct driver_end *e = &d->ends[end];
                /* a short window on a busy machine may pass before both ends get a CPU; counted ones wait */
                if (d->spec.messages && e->report.messages == 0)
                        return "no message passed";
                if (e->samples == 0 || e->sampled_messages != e->report.messages ||
                    e->sampled_ns != e->report.window_ns)
                        return "the samples do not add up to the report";
        }
        return NULL;
}

static void test_every_combination_by_time(void) {
        IN_LANES(LANES, NULL, test_every_combination_by_time);
        for (size_t t = 0; t < n_carriers; t++)
                for (size_t k = 0; k < ELEMENTS(workloads); k++)
                        for (size_t i = 0; i < ELEMENTS(sleeping_waits); i++)
                                for (enum verify v = VERIFY_NONE; v < VERIFY_COUNT; v++) {
                                        struct driver d;
                                        struct driver_spec s = shm_spec(carriers[t], workloads[k], sleeping_waits[i]);
                                        s.verify = v;
                                        s.point.threads = v == VERIFY_CHECKSUM ? 3 : 1;
                                        if (!lanes_my_turn())
                                                continue;
                                        CHECK(something_arrives(&d, &s, samples_fault));
                                        driver_deinit(&d);
                                }
}

/* On one CPU they would take turns by time slices; and in more than one lane, on two. */
static void test_every_spinner_by_time(void) {
        int cpus[2];
        if (allowed_cpus(cpus) < 2)
                SKIP("one CPU");
        IN_LANES(1, NULL, test_every_spinner_by_time);
        for (size_t t = 0; t < n_carriers; t++)
                for (size_t k = 0; k < ELEMENTS(workloads); k++)
                        for (enum verify v = VERIFY_NONE; v < VERIFY_COUNT; v++) {
                                struct driver d;
                                struct driver_spec s = shm_spec(carriers[t], workloads[k], WAIT_SPIN);
                                if (!lanes_my_turn())
                                        continue;
                                (void) allowed_cpus(s.cpus);
                                s.verify = v;
                                CHECK(something_arrives(&d, &s, samples_fault));
                                driver_deinit(&d);
                        }
}

/* In an open loop the last message is not there before its time, and each has one latency, at the end that knows when
 * it was due, in every wait and by either end. With a warm-up before, the schedule begins anew. */
static void test_rate(void) {
        for (enum wait_mode wait = WAIT_BLOCK; wait < WAIT_COUNT; wait++)
                for (size_t k = 0; k < ELEMENTS(workloads); k++) {
                        struct driver d;
                        enum transport t = carriers[(wait + k) % n_carriers];
                        struct driver_spec s = counted(shm_spec(t, workloads[k], wait), 50);
                        enum end timed = workloads[k] == WORKLOAD_STREAM ? END_SECOND : END_FIRST;
                        uint64_t all = 50;
                        s.verify =
                                wait == WAIT_BLOCK ? VERIFY_CHECKSUM : VERIFY_TOUCH; /* whichever end fills messages */
                        s.warmup_ns = k * 5 * NSEC_PER_MSEC;
                        s.rate = 1000;
                        if (wait != WAIT_SPIN) { /* spinners take each other's time */
                                s.point.threads = 2;
                                all = 100;
                        }
                        CHECK(run_pair(&d, &s, samples_fault));
                        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                                CHECK_UINT(d.ends[end].report.messages, all);
                                CHECK_UINT(histogram_total(&d.ends[end].latency), end == timed ? all : 0);
                        }
                        CHECK(d.ends[timed].report.window_ns >= (all - 1) * NSEC_PER_SEC / (1000 * s.point.threads));
                        driver_deinit(&d);
                }
}

/* Beside the state and beyond it, no multiple of a line, longer than a default ring; rings of one message and of three.
 * Shorter rings are test-ring.c's. */
static void test_odd_sizes_and_rings(void) {
        static const struct {
                uint64_t size, ring_bytes, slots;
                uint32_t threads, messages; /* of the longest so many that their rings are gone round several times */
        } cases[] = {
                {1, 0, 0, 1, 40},      {7, 4096, 64, 3, 40},         {56, 4096, 64, 2, 40},     {57, 4096, 32, 1, 40},
                {4109, 0, 0, 4, 40},   {4109, 8192, 1, 1, 40},       {65537, 262144, 3, 2, 40}, {300001, 0, 0, 1, 40},
                {5000001, 0, 2, 1, 9}, {4u << 20, 8u << 20, 1, 1, 9}};
        IN_LANES(1, NULL, test_odd_sizes_and_rings);
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                for (size_t k = 0; k < ELEMENTS(workloads); k++)
                        for (enum wait_mode wait = WAIT_BLOCK; wait < WAIT_COUNT; wait++) {
                                if (!lanes_my_turn())
                                        continue;
                                struct driver d;
                                struct driver_spec s =
                                        counted(shm_spec(carriers[0], workloads[k], wait), cases[i].messages);
                                s.point.message_size = cases[i].size;
                                s.point.threads = cases[i].threads;
                                s.options.ring_bytes = cases[i].ring_bytes;
                                CHECK(run_pair(&d, &s, samples_fault));
                                CHECK_UINT(d.ends[END_SECOND].report.messages, cases[i].messages * cases[i].threads);
                                if (cases[i].slots)
                                        CHECK_INT(atoll(text_in(d.ends[END_FIRST].effective, "ring_messages")),
                                                  cases[i].slots);
                                driver_deinit(&d);
                        }
}

static void test_ring_too_small(void) {
        struct driver d;
        struct driver_spec s = shm_spec(TRANSPORT_SHM_POSIX, WORKLOAD_STREAM, WAIT_BLOCK);
        s.point.message_size = 4096;
        s.options.ring_bytes = 4096;
        CHECK(driver_run(&d, &s) < 0);
        CHECK(strstr(d.trouble, "ring_bytes 4096 hold no message of 4096 bytes: it takes 4160"));
        driver_deinit(&d);
}

static void test_many_threads(void) {
        for (enum wait_mode wait = WAIT_BLOCK; wait < WAIT_COUNT; wait++) {
                struct driver d;
                struct driver_spec s = counted(shm_spec(TRANSPORT_SHM_POSIX, WORKLOAD_PINGPONG, wait), 3);
                s.point.threads = wait == WAIT_SPIN ? 16 : 256; /* spinners take each other's time */
                s.point.message_size = 64;
                s.warmup_ns = 0;
                s.interval_ns = NSEC_PER_SEC;
                CHECK(run_pair(&d, &s, samples_fault));
                CHECK_UINT(d.ends[END_FIRST].report.messages, 3 * s.point.threads);
                driver_deinit(&d);
        }
}

static uint64_t futex_waits(const struct driver *d) {
        uint64_t sum = 0;
        for (enum end end = END_FIRST; end < END_COUNT; end++)
                sum += strtoull(text_in(d->ends[end].effective_at_end, "futex_waits"), NULL, 10);
        return sum;
}

/* An end that waits sleeps, and leaves the CPU to the other. In a round trip one end at least has to, unless another
 * process takes the CPU away just before it would. */
static void test_one_cpu(void) {
        int cpus[2];
        CHECK(allowed_cpus(cpus) > 0);
        for (size_t k = 0; k < ELEMENTS(workloads); k++) {
                struct driver d;
                struct driver_spec s = counted(shm_spec(TRANSPORT_SHM_POSIX, workloads[k], WAIT_BLOCK), 5000);
                s.cpus[0] = s.cpus[1] = cpus[0];
                CHECK(run_pair(&d, &s, samples_fault));
                CHECK_UINT(d.ends[END_SECOND].report.messages, 5000);
                CHECK(futex_waits(&d) >= (workloads[k] == WORKLOAD_PINGPONG ? 2500 : 1));
                driver_deinit(&d);
        }
}

static void test_effective(void) {
        struct driver d;
        struct driver_spec s = shm_spec(TRANSPORT_MMAP_FILE, WORKLOAD_PINGPONG, WAIT_HYBRID);
        s.options.ring_bytes = 65536;
        s.point.message_size = 4096;
        CHECK(run_pair(&d, &s, samples_fault));
        const char *e = d.ends[END_FIRST].effective_at_end;
        CHECK_STRING(text_in(e, "ring_slot_bytes"), "4160");
        CHECK_STRING(text_in(e, "ring_messages"), "15");
        CHECK_STRING(text_in(e, "ring_bytes"), "62400");
        CHECK_STRING(text_in(e, "receiver_reads"), "in place");
        CHECK_STRING(text_in(e, "huge_pages"), "false");
        CHECK_STRING(text_in(e, "spin_ns"), "50000");
        CHECK(text_in(e, "file_system")[0] || text_in(e, "file_system_reason")[0]);
        CHECK(atoll(text_in(e, "memcpy_bytes_per_second")) > 10000000);
        driver_deinit(&d);

        s = counted(shm_spec(TRANSPORT_SHM_POSIX, WORKLOAD_STREAM, WAIT_SPIN), 1000);
        CHECK(run_pair(&d, &s, samples_fault));
        CHECK_STRING(text_in(d.ends[END_SECOND].effective_at_end, "futex_waits"), ""); /* a spinner knows none */
        CHECK_STRING(text_in(d.ends[END_SECOND].effective_at_end, "object"), "O_TMPFILE");
        driver_deinit(&d);
}

/* Only a stream's reader, in a closed loop and a ring of many slots. */
static void test_gathering_ends(void) {
        static const struct {
                enum workload workload;
                uint64_t size, ring_bytes;
                double rate;
                enum toggle gather;
                const char *there, *back; /* of the first and of the second end */
        } cases[] = {{WORKLOAD_STREAM, 64, 1 << 23, 0, TOGGLE_UNSET, "", "32000"},
                     {WORKLOAD_STREAM, 64, 1 << 20, 0, TOGGLE_ON, "", "8192"},
                     {WORKLOAD_STREAM, 64, 1 << 20, 0, TOGGLE_OFF, "", "0"},
                     {WORKLOAD_STREAM, 64, 32768, 0, TOGGLE_ON, "", "0"},
                     {WORKLOAD_STREAM, 16384, 0, 0, TOGGLE_UNSET, "", "0"},
                     {WORKLOAD_STREAM, 64, 0, 1000, TOGGLE_ON, "", "0"},
                     {WORKLOAD_PINGPONG, 64, 1 << 20, 0, TOGGLE_ON, "0", "0"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct driver d;
                struct driver_spec s = counted(shm_spec(TRANSPORT_SHM_POSIX, cases[i].workload, WAIT_BLOCK), 40);
                s.point.message_size = cases[i].size;
                s.options.ring_bytes = cases[i].ring_bytes;
                s.options.gather = cases[i].gather;
                s.rate = cases[i].rate;
                CHECK(run_pair(&d, &s, samples_fault));
                CHECK_STRING(text_in(d.ends[END_FIRST].effective_at_end, "gather_ns"), cases[i].there);
                CHECK_STRING(text_in(d.ends[END_SECOND].effective_at_end, "gather_ns"), cases[i].back);
                driver_deinit(&d);
        }
}

/* Each end owns the ring that it reads: all of its pages are there, and listed at that end. */
static void test_pages(void) {
        struct driver d;
        struct driver_spec s = shm_spec(TRANSPORT_SHM_SYSV, WORKLOAD_STREAM, WAIT_BLOCK);
        CHECK(run_pair(&d, &s, samples_fault));
        CHECK(!strstr(d.ends[END_FIRST].proof, "\"ring\",\"thread\""));     /* its pages are not placed there … */
        CHECK(strstr(d.ends[END_FIRST].proof, "\"ring\",\"mappings\":1,")); /* … but mapped */
        const char *ring = strstr(d.ends[END_SECOND].proof, "{\"what\":\"ring\"");
        CHECK(ring && strstr(ring, "\"absent\":0,"));
        driver_deinit(&d);

        s = shm_spec(TRANSPORT_SHM_SYSV, WORKLOAD_PINGPONG, WAIT_BLOCK);
        CHECK(run_pair(&d, &s, samples_fault));
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                ring = strstr(d.ends[end].proof_at_end, "{\"what\":\"ring\"");
                CHECK(ring && strstr(ring, "\"absent\":0,"));
        }
        driver_deinit(&d);
}

static int64_t first_number(const char *path, const char *before) {
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        char line[128];
        size_t length = strlen(before);
        while (f && fgets(line, sizeof line, f))
                if (strncmp(line, before, length) == 0)
                        return strtoll(line + length, NULL, 10);
        return 0; /* there is no such line: nor are there any pages */
}

/* Those that are free, and those that the kernel may make beyond its pool. */
static int64_t free_huge_pages(void) {
        int64_t more = first_number("/proc/sys/vm/nr_overcommit_hugepages", "") -
                       first_number("/proc/meminfo", "HugePages_Surp:");
        return first_number("/proc/meminfo", "HugePages_Free:") + (more > 0 ? more : 0);
}

static const enum transport huge_carriers[] = {TRANSPORT_SHM_POSIX, TRANSPORT_SHM_SYSV, TRANSPORT_MMAP_ANONYMOUS};

static struct driver_spec huge_spec(enum transport t) {
        struct driver_spec s = shm_spec(t, WORKLOAD_STREAM, WAIT_BLOCK);
        s.options.huge_pages = TOGGLE_ON;
        return s;
}

static uint64_t huge_page_bytes(void) {
        return (uint64_t) first_number("/proc/meminfo", "Hugepagesize:") * 1024;
}

/* The size of the fewest or the most pages; 0: this kernel has none of these. */
static int64_t pages_needed(bool most) {
        uint64_t page = huge_page_bytes(), needed = 0;
        for (size_t t = 0; page && t < ELEMENTS(huge_carriers); t++) {
                struct driver_spec s = huge_spec(huge_carriers[t]);
                uint64_t n = ring_layout_of(&s.point, &s.options, page).area_bytes / page;
                if (needed == 0 || (most ? n > needed : n < needed))
                        needed = n;
        }
        return (int64_t) needed;
}

static void test_too_few_huge_pages(void) {
        int64_t have = free_huge_pages(), least = pages_needed(false);
        if (least > 0 && have >= least)
                SKIP("%" PRId64 " huge pages are free, and %" PRId64 " are enough", have, least);
        for (size_t t = 0; t < ELEMENTS(huge_carriers); t++) {
                struct driver d;
                struct driver_spec s = huge_spec(huge_carriers[t]);
                CHECK(driver_run(&d, &s) < 0);
                CHECK(strstr(d.trouble, "huge pages") || strstr(d.trouble, "huge_pages"));
                driver_deinit(&d);
        }
}

/* Those of System V are for one group, and for the privileged. */
static bool may_have_huge_segments(void) {
        int id = shmget(IPC_PRIVATE, huge_page_bytes(), IPC_CREAT | 0600 | SHM_HUGETLB);
        if (id >= 0)
                (void) shmctl(id, IPC_RMID, NULL);
        return id >= 0 || errno != EPERM;
}

static void check_huge(const struct driver_spec *s) {
        uint64_t page = huge_page_bytes(), area = ring_layout_of(&s->point, &s->options, page).area_bytes;
        struct driver d;
        CHECK(run_well(&d, s));
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                const char *e = d.ends[end].effective_at_end;
                CHECK_STRING(text_in(e, "huge_pages"), "true");
                CHECK_UINT(strtoull(text_in(e, "page_bytes"), NULL, 10), page);
                CHECK_UINT(strtoull(text_in(e, "shared_bytes"), NULL, 10), area);
        }
        driver_deinit(&d);
}

static void test_huge_pages(void) {
        int64_t have = free_huge_pages(), most = pages_needed(true);
        if (most == 0 || have < most)
                SKIP("%" PRId64 " huge pages are free, of %" PRId64 " (to have them: sysctl vm.nr_hugepages=PAGES)",
                     have, most);
        for (size_t t = 0; t < ELEMENTS(huge_carriers); t++) {
                struct driver_spec s = huge_spec(huge_carriers[t]);
                if (huge_carriers[t] != TRANSPORT_SHM_SYSV || may_have_huge_segments()) {
                        check_huge(&s);
                        continue;
                }
                struct driver d;
                CHECK(driver_run(&d, &s) < 0);
                CHECK(strstr(d.trouble, "vm.hugetlb_shm_group"));
                driver_deinit(&d);
        }
}

static void test_no_huge_pages_of_a_file(void) {
        struct driver d;
        struct driver_spec s = huge_spec(TRANSPORT_MMAP_FILE);
        CHECK(driver_run(&d, &s) < 0);
        CHECK(strstr(d.trouble, "hugetlbfs"));
        driver_deinit(&d);
}

/* Where /dev/shm makes no file without a name, the object loses its own. */
static int run_without_nameless_files(void *unused) {
        (void) unused;
        struct driver d;
        struct driver_spec s = counted(shm_spec(TRANSPORT_SHM_POSIX, WORKLOAD_STREAM, WAIT_BLOCK), 1000);
        const char *trouble = interrupt_isolate();
        if (trouble || forbid_nameless_files() < 0)
                return 77;
        bool well = run_pair(&d, &s, samples_fault);
        for (enum end end = END_FIRST; well && end < END_COUNT; end++)
                well = strcmp(text_in(d.ends[end].effective_at_end, "object"), "shm_open") == 0;
        driver_deinit(&d);
        const char *left = interrupt_leftovers();
        if (left)
                fprintf(stderr, "%s\n", left);
        return well && !left ? 0 : 1;
}

static void test_a_name_that_is_needed_is_lost(void) {
        int r = child_does(run_without_nameless_files, NULL);
        if (r == 77)
                SKIP("there can be no /dev/shm of this test's own, or no seccomp filter");
        CHECK_INT(r, 0);
}

/* What an agent that is killed had a name for would stay. The last one: /dev/shm is another from here on. */
static void test_no_name_in_dev_shm(void) {
        struct driver d;
        struct driver_spec s = counted(shm_spec(TRANSPORT_SHM_POSIX, WORKLOAD_STREAM, WAIT_SPIN), 1000);
        char events[4096];
        const char *trouble = interrupt_isolate();
        if (trouble)
                SKIP("%s", trouble);
        _cleanup_close_ int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        CHECK(watch >= 0 && inotify_add_watch(watch, "/dev/shm", IN_CREATE | IN_MOVED_TO) >= 0);
        CHECK(run_pair(&d, &s, samples_fault));
        driver_deinit(&d);
        ssize_t n = read(watch, events, sizeof events);
        CHECK(n < 0 && errno == EAGAIN);
        int fd = shm_open("/seen", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && read(watch, events, sizeof events) > 0);
        util_close(fd);
        CHECK_INT(shm_unlink("/seen"), 0);
}

static bool is_ring(const struct transport_term *t) {
        return t->carrier == CARRIER_RING;
}

int main(void) {
        n_carriers = transports_where(is_ring, carriers);
        RUN(test_every_combination_by_time);
        RUN(test_every_spinner_by_time);
        RUN(test_rate);
        RUN(test_odd_sizes_and_rings);
        RUN(test_ring_too_small);
        RUN(test_many_threads);
        RUN(test_one_cpu);
        RUN(test_effective);
        RUN(test_gathering_ends);
        RUN(test_pages);
        RUN(test_too_few_huge_pages);
        RUN(test_huge_pages);
        RUN(test_no_huge_pages_of_a_file);
        RUN(test_a_name_that_is_needed_is_lost);
        RUN(test_no_name_in_dev_shm);
        return check_end();
}
