/* SPDX-License-Identifier: MIT */

/* The transports' table against the terms of schema/, and the skeleton's loops between two threads of this process. */

#include "agent/base/agent.h"
#include "agent/transport/transport.h"
#include "agent/workload/workload.h"
#include "check.h"
#include "schema/terms.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *incomplete(const struct transport_ops *ops) {
        struct agent a = {};
        if (!ops->open || !ops->loops)
                return "open or loops is missing";
        const struct transport_loops *loops = ops->loops(&a);
        if (!loops->sender != !loops->receiver || !loops->initiator != !loops->responder)
                return "a workload has one end only";
        return loops->sender || loops->initiator ? NULL : "no workload at all";
}

/* The engines of schema/ are in the table, and nothing else is. */
static void test_table(void) {
        for (enum transport t = 0; t < TRANSPORT_COUNT; t++)
                for (enum engine e = 0; e < ENGINE_COUNT; e++) {
                        const struct transport_term *term = &transport_terms[t];
                        const struct transport_ops *ops = transport_find(t, e);
                        /* what is no descriptor has no choice of engines, and runs without one */
                        bool expected = term->has_engine || e == ENGINE_SYSCALL;
                        if (expected != (ops != NULL))
                                CHECK_FAIL("%s with engine %s: schema/ has %s, the agent has %s", term->name,
                                           engine_name(e), expected ? "yes" : "no", ops ? "it" : "none");
                        if (!ops)
                                continue;
                        const char *fault = incomplete(ops);
                        if (fault)
                                CHECK_FAIL("%s: %s", term->name, fault);
                        if (e == ENGINE_SYSCALL) /* the others are shared by rows with the same kind of channel */
                                CHECK_INT(ops->transport, t);
                        CHECK_INT(ops->engine, e);
                }
        CHECK(!incomplete(&transport_skeleton));
        CHECK(!transport_find(TRANSPORT_COUNT, ENGINE_SYSCALL));
}

static void test_workloads(void) {
        for (enum workload k = 0; k < WORKLOAD_COUNT; k++) {
                const struct workload_ops *ops = workload_find(k);
                CHECK(ops && ops->prepare);
                CHECK_INT(ops->one_agent, workload_agents(k) == 1);
        }
        CHECK(!workload_find(WORKLOAD_COUNT));
}

#define SIZE 10000
#define MESSAGES 500

struct side {
        struct agent agent;
        struct worker worker;
        unsigned char buffer[SIZE];
        int result;
};

static void *run_side(void *userdata) {
        struct side *s = userdata;
        s->result = s->worker.loop(&s->worker);
        return NULL;
}

/* Two sides with a socket pair between them, each with MESSAGES to move. */
static int make_sides(struct side *sides, worker_loop first, worker_loop second) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        for (int i = 0; i < 2; i++) {
                sides[i].agent.setup.verify = VERIFY_CHECKSUM;
                sides[i].agent.peer_role = "other";
                sides[i].worker.agent = &sides[i].agent;
                sides[i].worker.size = SIZE;
                sides[i].worker.buffer = sides[i].buffer;
                sides[i].worker.send_fd = sides[i].worker.receive_fd = pair[i];
                sides[i].worker.limit = MESSAGES;
        }
        sides[0].worker.loop = first;
        sides[1].worker.loop = second;
        return 0;
}

static void run_sides(struct side *sides) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run_side, &sides[0]))
                abort();
        (void) run_side(&sides[1]);
        (void) pthread_join(thread, NULL);
}

static void close_sides(struct side *sides) {
        for (int i = 0; i < 2; i++)
                (void) close(sides[i].worker.send_fd);
        free(sides);
}

static struct side *new_sides(void) {
        struct side *sides = aligned_alloc(WORKER_LINE, 2 * sizeof *sides);
        if (!sides)
                abort();
        memset(sides, 0, 2 * sizeof *sides);
        return sides;
}

static void test_skeleton_runs(void) {
        const struct transport_loops *loops = transport_skeleton.loops(NULL);
        for (unsigned pingpong = 0; pingpong < 2; pingpong++) {
                struct side *sides = new_sides();
                CHECK_INT(make_sides(sides, pingpong ? loops->initiator : loops->sender,
                                     pingpong ? loops->responder : loops->receiver),
                          0);
                run_sides(sides);
                for (int i = 0; i < 2; i++) {
                        CHECK_STRING(sides[i].worker.failure.detail, "");
                        CHECK_INT(sides[i].result, 0);
                        CHECK_UINT(sides[i].worker.messages, MESSAGES);
                }
                close_sides(sides);
        }
}

/* A receiver whose peer sends less than it waits for: an end of file is the peer's, and the error names the message. */
static void test_skeleton_sees_the_peer_go(void) {
        const struct transport_loops *loops = transport_skeleton.loops(NULL);
        struct side *sides = new_sides();
        CHECK_INT(make_sides(sides, loops->sender, loops->receiver), 0);
        sides[0].worker.limit = 3;
        (void) shutdown(sides[1].worker.receive_fd, SHUT_WR);
        run_side(&sides[0]);
        (void) shutdown(sides[0].worker.send_fd, SHUT_WR);
        run_side(&sides[1]);
        CHECK_INT(sides[0].result, 0);
        CHECK_INT(sides[1].result, -EPIPE);
        CHECK_UINT(sides[1].worker.messages, 3);
        CHECK(strncmp(sides[1].worker.failure.detail, "peer other", 10) == 0);
        close_sides(sides);
}

int main(void) {
        RUN(test_table);
        RUN(test_workloads);
        RUN(test_skeleton_runs);
        RUN(test_skeleton_sees_the_peer_go);
        return check_end();
}
