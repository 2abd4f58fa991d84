/* SPDX-License-Identifier: MIT */

/* The circle of processes as the leader sees it: its proof and report with members that live, and with one that has
 * ended or is stopped. */

#include "agent/base/agent.h"
#include "agent/proof/proof.h"
#include "agent/workload/workload.h"
#include "check.h"
#include "schema/json/json.h"
#include "schema/spec/spec.h"
#include "schema/util.h"
#include "tests/unit/effective.h"
#include "tests/unit/proof-report.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 4u

static struct proof proof;

/* A kernel without NUMA reports no pages. */
static bool has_numa(void) {
        void *page = NULL;
        int status = 0;
        return syscall(SYS_move_pages, 0, 1UL, &page, NULL, &status, 0) == 0;
}

static void circle_begin_of(struct agent *a, uint32_t processes, uint64_t working_set) {
        struct worker *w = aligned_alloc(WORKER_LINE, sizeof *w);
        if (!w)
                abort();
        memset(w, 0, sizeof *w);
        proof = (struct proof){.members = workload_context_switch.members, .missing = workload_context_switch.missing};
        *a = (struct agent){.proof = &proof, .workload = &workload_context_switch, .n_workers = 1, .workers = w};
        a->setup.point = (struct point){
                .workload = WORKLOAD_CONTEXT_SWITCH, .processes = processes, .working_set = working_set, .threads = 1};
        a->setup.placement.n_cpus = 1;
        w->agent = a;
        CHECK_INT(workload_context_switch.prepare(w), 0);
        CHECK_INT(proof_take(w), 0);
}

static void circle_begin(struct agent *a) {
        circle_begin_of(a, PROCESSES, 0);
}

static void circle_end(struct agent *a) {
        page_list_deinit(&proof.pages);
        workload_context_switch.close(a);
        workload_context_switch.detach(a->workers);
        free(a->workers->latency);
        free(a->workers);
}

static pid_t member_of(const struct agent *a, uint32_t k) {
        uint32_t n = 0;
        const struct proof_member *members = a->workload->members(a, &n);
        return k < n ? members[k].pid : 0;
}

static void test_members_that_live_are_in_the_proof(void) {
        struct agent a;
        circle_begin(&a);
        for (uint32_t k = 0; k < PROCESSES - 1; k++)
                CHECK_INT(kill(member_of(&a, k), 0), 0);
        PROOF *report = NULL;
        CHECK_INT(proof_collect(&a, &report), 0);
        CHECK_STRING(a.failure.detail, "");
        circle_end(&a);
}

/* Its pages went before a parent could wait for it: the missing pages are not the error to report. */
static void test_a_member_that_ended_is_named_and_not_its_pages(void) {
        if (!has_numa())
                SKIP("a kernel without NUMA");
        for (uint32_t k = 0; k < PROCESSES - 1; k++) {
                struct agent a;
                siginfo_t info;
                circle_begin(&a);
                CHECK_INT(kill(member_of(&a, k), SIGKILL), 0);
                CHECK_INT(waitid(P_PID, (id_t) member_of(&a, k), &info, WEXITED | WNOWAIT), 0);
                PROOF *report = NULL;
                CHECK_INT(proof_collect(&a, &report), -EPIPE);
                char expected[64];
                (void) snprintf(expected, sizeof expected, "process %u of %u was killed by signal 9", k + 2, PROCESSES);
                CHECK_STRING(a.failure.detail, expected);
                circle_end(&a);
        }
}

/* A stopped member has ended nothing: the circle only stands still, as it does for reasons of its own. */
static void test_a_member_that_is_stopped_is_named(void) {
        for (uint32_t k = 0; k < PROCESSES - 1; k++) {
                struct agent a;
                siginfo_t info;
                circle_begin(&a);
                CHECK_INT(workload_context_switch.stuck(&a), 0);
                CHECK_STRING(a.failure.detail, "");
                CHECK_INT(kill(member_of(&a, k), SIGSTOP), 0);
                CHECK_INT(waitid(P_PID, (id_t) member_of(&a, k), &info, WSTOPPED | WNOWAIT), 0);
                CHECK_INT(workload_context_switch.stuck(&a), -ETIMEDOUT);
                char expected[64];
                (void) snprintf(expected, sizeof expected, "process %u of %u was stopped by signal 19", k + 2,
                                PROCESSES);
                CHECK_STRING(a.failure.detail, expected);
                circle_end(&a);
        }
}

/* A figure of the report of what is in force; -1: it is not there. */
static double figure_of(const struct agent *a, const char *name) {
        _cleanup_free_ char *text = NULL;
        struct json *root = NULL;
        EFFECTIVE *e = effective_new();
        double v = -1;
        a->workload->effective(a, e);
        if ((text = effective_text(e)) && json_parse(text, strlen(text), &root, NULL) == 0)
                (void) json_as_double(json_get(root, name), &v); /* stays -1 */
        json_free(root);
        return v;
}

/* The cost of a hop without a switch is known from enough rounds; from less than all where each walks over 256 MiB, for
 * which no machine is fast enough: it would take seconds in which no agent gets ready. */
static void test_large_working_sets_are_measured_in_fewer_rounds(void) {
        static const struct {
                uint32_t processes;
                uint64_t working_set;
                double most;
        } cases[] = {{2, 0, 201}, {PROCESSES, 4096, 201}, {SPEC_PROCESSES_MAX, SPEC_WORKING_SET_MAX, 200}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct agent a;
                circle_begin_of(&a, cases[i].processes, cases[i].working_set);
                double rounds = figure_of(&a, "pipe_overhead_rounds"), ns = figure_of(&a, "pipe_overhead_ns");
                circle_end(&a);
                CHECK(ns > 0);
                CHECK(rounds >= 11);
                CHECK(rounds <= cases[i].most);
        }
}

/* Pipes in the descriptor table of the calling thread. */
static unsigned open_pipes(void) {
        unsigned n = 0;
        char target[64];
        DIR *d = opendir("/proc/thread-self/fd");
        if (!d)
                abort();
        for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
                ssize_t length = readlinkat(dirfd(d), e->d_name, target, sizeof target);
                n += length > 5 && memcmp(target, "pipe:", 5) == 0;
        }
        (void) closedir(d);
        return n;
}

struct holder {
        pthread_barrier_t barrier;
        unsigned pipes; /* in its table while it has a circle */
};

static void *hold_a_circle(void *userdata) {
        struct holder *h = userdata;
        struct agent a;
        circle_begin(&a);
        h->pipes = open_pipes();
        (void) pthread_barrier_wait(&h->barrier);
        (void) pthread_barrier_wait(&h->barrier);
        circle_end(&a);
        return NULL;
}

/* Pipes in a table that two threads share cost more to write and read than those of the members, which have one thread:
 * what is subtracted would be more than what the circle's hops contain. */
static void test_the_circle_and_its_overhead_use_an_unshared_descriptor_table(void) {
        struct holder h = {};
        pthread_t thread;
        unsigned before = open_pipes();
        CHECK_INT(pthread_barrier_init(&h.barrier, NULL, 2), 0);
        CHECK_INT(pthread_create(&thread, NULL, hold_a_circle, &h), 0);
        (void) pthread_barrier_wait(&h.barrier);
        unsigned here = open_pipes();
        (void) pthread_barrier_wait(&h.barrier);
        CHECK_INT(pthread_join(thread, NULL), 0);
        (void) pthread_barrier_destroy(&h.barrier);
        CHECK_UINT(here, before);
        CHECK_UINT(h.pipes, before + 2);
}

int main(void) {
        RUN(test_the_circle_and_its_overhead_use_an_unshared_descriptor_table);
        RUN(test_large_working_sets_are_measured_in_fewer_rounds);
        RUN(test_members_that_live_are_in_the_proof);
        RUN(test_a_member_that_ended_is_named_and_not_its_pages);
        RUN(test_a_member_that_is_stopped_is_named);
        return check_end();
}
