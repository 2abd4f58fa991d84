/* SPDX-License-Identifier: MIT */
/* wait spin: whether all ends find a CPU each, wherever their placement binds them or leaves them the choice. */

#include "tests/unit/admissions.h"

#define ONLINE "/sys/devices/system/cpu/online"
#define PAIR(...)                                                                                                      \
        {                                                                                                              \
                .kind = PLACEMENT_EXPLICIT, .ends = { __VA_ARGS__ }                                                    \
        }
#define CPU(n)                                                                                                         \
        { .node = -1, .cpu = (n) }
#define NODE(n)                                                                                                        \
        { .node = (n), .cpu = -1 }
#define ANYWHERE                                                                                                       \
        { .node = -1, .cpu = -1 }
#define WORD(word)                                                                                                     \
        { .kind = PLACEMENT_##word }
#define ADMITTED .code = NULL
#define FULL(cpus, ends) "limit-exceeded", "/threads", "CPUs of the placement", cpus, ends
#define TOGETHER "impossible-combination", "/wait", "", "", ""

/* busy-lab has two CPUs and one node; two-sockets-smt two nodes of four. */
static const struct spin_case {
        const char *machine, *online; /* NULL: all of its CPUs are */
        enum transport transport;
        enum wait_mode wait;
        uint32_t threads;
        struct placement placement;
        const char *code, *pointer, *limit, *limit_value, *value; /* code NULL: admitted */
} cases[] = {
        {"busy-lab", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 1, WORD(DEFAULT), ADMITTED},
        {"busy-lab", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 1, WORD(SAME_NODE), ADMITTED},
        {"busy-lab", NULL, TRANSPORT_SHM_SYSV, WAIT_SPIN, 1, WORD(SAME_CPU), TOGETHER},
        {"busy-lab", NULL, TRANSPORT_SHM_SYSV, WAIT_HYBRID, 1, WORD(SAME_CPU), ADMITTED},
        {"busy-lab", NULL, TRANSPORT_PIPE, WAIT_SPIN, 1, WORD(SAME_CPU), ADMITTED}, /* where it means nothing */
        {"busy-lab", NULL, TRANSPORT_MMAP_FILE, WAIT_SPIN, 1, PAIR(CPU(1), {.node = 0, .cpu = 1}), TOGETHER},
        {"busy-lab", NULL, TRANSPORT_MMAP_FILE, WAIT_SPIN, 1, PAIR(CPU(0), CPU(1)), ADMITTED},
        {"busy-lab", "0\n", TRANSPORT_MMAP_ANONYMOUS, WAIT_SPIN, 1, WORD(DEFAULT), "limit-exceeded", "/wait",
         "CPUs allowed", "1", "2"},
        /* bound ends must not share a CPU, whether they are each other's peers or not */
        {"busy-lab", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 64, WORD(SAME_NODE), FULL("2", "128")},
        {"busy-lab", NULL, TRANSPORT_SHM_POSIX, WAIT_HYBRID, 64, WORD(SAME_NODE), ADMITTED},
        {"busy-lab", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 2, PAIR(CPU(0), CPU(1)), FULL("2", "4")},
        /* nor have those that may go where they like more CPUs than there are */
        {"busy-lab", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 64, WORD(DEFAULT), FULL("2", "128")},
        {"busy-lab", NULL, TRANSPORT_SHM_POSIX, WAIT_HYBRID, 64, WORD(DEFAULT), ADMITTED},
        {"busy-lab", NULL, TRANSPORT_MMAP_FILE, WAIT_SPIN, 2, PAIR(NODE(0), NODE(0)), FULL("2", "4")},
        {"busy-lab", NULL, TRANSPORT_MMAP_FILE, WAIT_SPIN, 1, PAIR(NODE(0), NODE(0)), ADMITTED},
        {"two-sockets-smt", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 4, WORD(DEFAULT), ADMITTED},
        {"two-sockets-smt", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 5, WORD(DEFAULT), FULL("8", "10")},
        {"two-sockets-smt", "0-6\n", TRANSPORT_SHM_POSIX, WAIT_SPIN, 4, WORD(DEFAULT), FULL("7", "8")},
        {"two-sockets-smt", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 2, PAIR(NODE(1), NODE(1)), ADMITTED},
        {"two-sockets-smt", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 3, PAIR(NODE(1), NODE(1)), FULL("4", "6")},
        {"two-sockets-smt", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 4, PAIR(NODE(0), NODE(1)), ADMITTED},
        {"two-sockets-smt", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 4, PAIR(ANYWHERE, NODE(1)), ADMITTED},
        /* one end has room, and the other none */
        {"two-sockets-smt", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 2, PAIR(CPU(0), NODE(1)), FULL("1", "2")},
        {"two-sockets-smt", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 2, PAIR(ANYWHERE, CPU(7)), FULL("1", "2")},
        {"two-sockets-smt", NULL, TRANSPORT_SHM_POSIX, WAIT_SPIN, 1, PAIR(CPU(4), NODE(1)), ADMITTED},
};

static void ends_that_spin_have_a_cpu_each(void) {
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct spin_case *c = &cases[i];
                const struct spec spec = {.repetitions = 1};
                const struct point p = {.transport = c->transport,
                                        .wait = c->wait,
                                        .threads = c->threads,
                                        .message_size = 64,
                                        .placement = c->placement};
                struct refusal r;
                int x = admissions_try(c->machine, c->online ? ONLINE : NULL, c->online, &spec, &p, &r);
                CHECK_ADMISSION(i, x, &r, c->code, c->pointer, c->limit, c->limit_value, c->value);
        }
}

int main(void) {
        RUN(ends_that_spin_have_a_cpu_each);
        return check_end();
}
