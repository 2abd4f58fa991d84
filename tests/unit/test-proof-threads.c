/* SPDX-License-Identifier: MIT */

/*
 * Proofs of the largest number of threads, on machines of any size and kernels that report little: each fits into a
 * packet, reports all threads, and is verified by the daemon; or it is refused with a message.
 */

#include "agent/base/agent.h"
#include "agent/proof/proof.h"
#include "check.h"
#include "daemon/placement/placement.h"
#include "proof-report.h"
#include "schema/detail.h"
#include "schema/protocol/protocol.h"
#include "schema/util.h"

#include <stdlib.h>

#define CPUS_MAX 1024u

struct shape {
        const char *name;
        uint32_t threads;
        unsigned cpus;
        bool pinned, roam; /* one CPU each, in turn; all of them, and all were given */
        int migrations_error;
        size_t listed, together; /* elements expected of the two lists; listed 0 and together 0: refused */
};

static const struct shape shapes[] = {
        {"one", 1, 1, true, false, 0, 1, 0},
        {"pinned to a few", 1024, 4, true, false, 0, 1024, 0},
        {"pinned to a few, not counted", 1024, 4, true, false, ENOENT, 0, 4},
        {"pinned to each its own", 1024, 1024, true, false, 0, 1024, 0},
        {"roaming over a few", 1024, 4, false, true, 0, 1024, 0},
        {"roaming over many", 1024, 64, false, true, 0, 0, 1},
        {"roaming over all", 1024, 1024, false, true, ENOENT, 0, 1},
        {"few that roam over all", 64, 1024, false, true, 0, 0, 1},
        {"put nowhere", 64, 4, false, false, 0, 64, 0},
        {"many put nowhere", 1024, 4, false, false, 0, 64, 1},
        {"many put nowhere of a large machine", 1024, 1024, false, false, ENOENT, 0, 1},
        {"more to say than a packet takes", 1024, 1024, true, false, ENOENT, 0, 0},
};

static void place(struct thread_proof *p, const struct shape *s, uint32_t i) {
        for (unsigned cpu = 0; cpu < s->cpus; cpu++)
                if (!s->pinned || i % s->cpus == cpu) {
                        cpumask_add(&p->affinity, cpu);
                        p->cpu = cpu;
                }
        p->seen = p->affinity;
        p->migrations_error = s->migrations_error;
}

static struct worker *workers_of(const struct shape *s) {
        struct worker *workers = aligned_alloc(WORKER_LINE, s->threads * sizeof *workers);
        if (!workers)
                abort();
        memset(workers, 0, s->threads * sizeof *workers);
        for (uint32_t i = 0; i < s->threads; i++) {
                workers[i].index = i;
                workers[i].tid = 4000000 + (pid_t) i;
                place(&workers[i].proof, s, i);
        }
        return workers;
}

static int judge(const struct shape *s, const struct proof_report *proof, char *ret_detail) {
        int32_t cpus[CPUS_MAX];
        struct agent_placement given = {.cpus = cpus, .n_cpus = s->pinned || s->roam ? s->cpus : 0, .roam = s->roam};
        const struct point point = {.transport = TRANSPORT_PIPE, .message_size = 1, .threads = s->threads};
        struct placement_doubts doubts = {0};
        for (unsigned i = 0; i < s->cpus; i++)
                cpus[i] = (int32_t) i;
        int r = proof_report_check(proof, ret_detail);
        return r < 0 ? r : placement_verify(&given, &point, END_FIRST, proof, &doubts, ret_detail);
}

static void check_shape(const struct shape *s) {
        char detail[DETAIL_MAX] = "";
        struct worker *workers = workers_of(s);
        struct proof observed = {.members = NULL};
        struct agent a = {.proof = &observed, .n_workers = s->threads, .workers = workers};
        a.setup.placement.n_cpus = s->pinned || s->roam ? s->cpus : 0;
        for (unsigned cpu = 0; cpu < s->cpus; cpu++)
                cpumask_add(&a.affinity, cpu);
        PROOF *proof = NULL;
        int r = proof_collect(&a, &proof);
        page_list_deinit(&observed.pages);
        free(workers);
        if (s->listed + s->together == 0) {
                CHECK_INT(r, -EMSGSIZE);
                CHECK(strstr(a.failure.detail, "of where 1024 threads are takes "));
                CHECK(strstr(a.failure.detail, "at most 114688 are stored"));
                return;
        }
        CHECK_INT(r, 0);
        struct message m = {.type = MESSAGE_READY, .ready = {.proof = proof, .effective = effective_new()}};
        _cleanup_free_ uint8_t *packet = NULL;
        _cleanup_free_ char *text = proof_report_text(proof);
        size_t length = 0, listed = proof->of.n_threads, together = proof->of.n_groups;
        CHECK(strlen(text) < PROTOCOL_PACKET_MAX - 8192);
        CHECK_INT(message_encode(&m, &packet, &length), 0);
        CHECK(length < strlen(text) + 1024);
        free(m.ready.effective);
        if (listed != s->listed || together != s->together)
                CHECK_FAIL("%s: %zu listed, %zu together", s->name, listed, together);
        if (judge(s, proof, detail) < 0)
                CHECK_FAIL("%s: %s", s->name, detail);
}

static void proofs_fit_into_a_packet(void) {
        for (size_t i = 0; i < ELEMENTS(shapes); i++)
                check_shape(&shapes[i]);
}

static uint32_t looked_at(const struct worker *workers, uint32_t n) {
        uint32_t seen = 0;
        for (uint32_t i = 0; i < n; i++)
                seen += workers[i].proof.has_changed;
        return seen;
}

/* Up to 64 at a time are all, of more each has its turn within ten times. */
static void each_thread_is_looked_at_within_a_second(void) {
        static const uint32_t threads[] = {1, 64, 65, 200, 1024};
        static const uint32_t first[] = {1, 64, 64, 64, 103};
        for (size_t i = 0; i < ELEMENTS(threads); i++) {
                struct shape shape = {.threads = threads[i], .cpus = 1, .pinned = true};
                struct worker *workers = workers_of(&shape);
                struct proof proof = {.members = NULL};
                struct agent a = {.proof = &proof, .n_workers = threads[i], .workers = workers};
                for (uint32_t k = 0; k < threads[i]; k++) {
                        workers[k].tid = gettid(); /* whose affinity is not that of no CPU at all */
                        workers[k].proof.has_initial = true;
                }
                proof_observe_rights(&a);
                CHECK_UINT(looked_at(workers, threads[i]), first[i]);
                for (unsigned k = 1; k < 10; k++)
                        proof_observe_rights(&a);
                CHECK_UINT(looked_at(workers, threads[i]), threads[i]);
                free(workers);
        }
}

/* One among a thousand threads that was elsewhere is detected, reported in a group or not. */
static void one_of_many_is_found_out(void) {
        static const int errors[] = {0, ENOENT};
        for (size_t i = 0; i < ELEMENTS(errors); i++) {
                struct shape s = shapes[1];
                char detail[DETAIL_MAX] = "";
                s.migrations_error = errors[i];
                struct worker *workers = workers_of(&s);
                struct proof observed = {.members = NULL};
                struct agent a = {.proof = &observed, .n_workers = s.threads, .workers = workers};
                a.setup.placement.n_cpus = s.cpus;
                cpumask_add(&a.affinity, 0);
                cpumask_add(&workers[1001].proof.observed, 3);
                PROOF *proof = NULL;
                CHECK_INT(proof_collect(&a, &proof), 0);
                page_list_deinit(&observed.pages);
                free(workers);
                CHECK_INT(judge(&s, proof, detail), -EPERM);
                CHECK_STRING(detail, errors[i] ? "one of 256 threads (1 is one) ran on CPU 3 instead of 1"
                                               : "thread 1001 ran on CPU 3 instead of 1");
        }
}

int main(void) {
        RUN(proofs_fit_into_a_packet);
        RUN(each_thread_is_looked_at_within_a_second);
        RUN(one_of_many_is_found_out);
        return check_end();
}
