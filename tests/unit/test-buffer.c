/* SPDX-License-Identifier: MIT */

/*
 * Memory that carries messages obeys the placement's `buffer`, whatever transport and copy mode it is for. One node is
 * enough to see it: the kernel reports which policy a page's mapping has.
 */

#include "agent/base/agent.h"
#include "agent/loop/buffer.h"
#include "agent/os/procfs.h"
#include "agent/proof/page-sizes.h"
#include "agent/transport/tcp/tcp.h"
#include "agent/transport/transport.h"
#include "allowed-node.h"
#include "check.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct agent agent;
static struct worker worker;

/* A worker of an agent whose buffers are bound to the first node that this process may use. */
static int set_up(enum transport t, enum engine e, enum copy_mode mode) {
        unsigned node = 0;
        int r = allowed_node(&node);
        if (r < 0)
                return r;
        agent = (struct agent){.workers = &worker, .n_workers = 1};
        agent.setup.point = (struct point){.workload = WORKLOAD_PINGPONG,
                                           .transport = t,
                                           .engine = e,
                                           .copy_mode = mode,
                                           .message_size = 8192,
                                           .threads = 1,
                                           .fields = SPEC_FIELDS_OF_STUDY};
        agent.setup.placement.buffer = MEMORY_BIND;
        node_set_add(&agent.setup.placement.buffer_nodes, node);
        worker = (struct worker){.agent = &agent, .size = 8192, .send_fd = -1, .receive_fd = -1};
        agent.transport = transport_find(t, e);
        return agent.transport ? 0 : -EOPNOTSUPP;
}

static int policy_at(uintptr_t address) {
        int mode = -1;
        if (syscall(SYS_get_mempolicy, &mode, NULL, 0UL, address, (unsigned long) MPOL_F_ADDR) < 0)
                return -errno;
        return mode;
}

static void test_own_buffer(void) {
        unsigned char *p = NULL;
        int r = set_up(TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_TWO);
        if (r == -ENOSYS)
                SKIP("a kernel without NUMA");
        CHECK_INT(r, 0);
        CHECK_INT(buffer_map(&worker, 10000, &p), 0);
        CHECK_INT(policy_at((uintptr_t) p), MPOL_BIND);
        CHECK(p && p[0] == 0x5a && p[9999] == 0x5a);
        buffer_unmap(p, 10000);

        agent.setup.placement.buffer = MEMORY_DEFAULT;
        CHECK_INT(buffer_map(&worker, 1, &p), 0);
        CHECK_INT(policy_at((uintptr_t) p), MPOL_DEFAULT);
        buffer_unmap(p, 1);
}

/* Whether a huge page fits does not depend on where the last mapping was; and neighbours are not joined with it. */
static void test_begins_where_a_huge_page_does(void) {
        const size_t huge = 2 << 20;
        if (procfs_setting("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") != (long) huge)
                SKIP("no transparent huge pages of 2 MiB");
        CHECK(set_up(TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_TWO) <= 0);
        agent.setup.placement.buffer = MEMORY_DEFAULT;
        for (unsigned i = 0; i < 4; i++) {
                unsigned char *p = NULL, *small = NULL;
                CHECK_INT(buffer_map(&worker, 12288, &small), 0); /* moves the next one's place */
                CHECK_INT(buffer_map(&worker, huge + i * 4096, &p), 0);
                CHECK_UINT((uintptr_t) p % huge, 0);
                struct page_list list = {};
                struct page_sizes sizes;
                CHECK_INT(page_list_add(&list, PAGES_BUFFER, 0, p, 1), 0);
                page_sizes_read(&list, "/proc/self/smaps", &sizes);
                page_list_deinit(&list);
                uint64_t bytes = 0;
                for (size_t k = 0; sizes.n == 1 && k < sizes.rows[0].n; k++)
                        bytes += sizes.rows[0].sizes[k].bytes;
                CHECK_UINT(bytes, huge + i * 4096);
                buffer_unmap(p, huge + i * 4096);
                buffer_unmap(small, 12288);
        }
        buffer_unmap(NULL, 4096);
}

/* Nor does it whether one of a size below that fits. */
static void test_begins_where_a_page_of_its_size_does(void) {
        const size_t page = (size_t) sysconf(_SC_PAGESIZE);
        long huge = procfs_setting("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
        if (huge <= (long) (16 * page))
                SKIP("no transparent huge pages");
        CHECK(set_up(TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_TWO) <= 0);
        agent.setup.placement.buffer = MEMORY_DEFAULT;
        for (size_t size = page; size < (size_t) huge; size *= 2)
                for (unsigned i = 0; i < 4; i++) {
                        unsigned char *p = NULL, *small = NULL;
                        size_t length = size + i * size / 4;
                        CHECK_INT(buffer_map(&worker, page, &small), 0); /* moves the next one's place */
                        CHECK_INT(buffer_map(&worker, length, &p), 0);
                        CHECK_UINT((uintptr_t) p % size, 0);
                        buffer_unmap(p, length);
                        buffer_unmap(small, page);
                }
}

static void test_what_cannot_be_had(void) {
        unsigned char *p = NULL;
        if (set_up(TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_TWO) == -ENOSYS)
                SKIP("a kernel without NUMA");
        CHECK_INT(buffer_map(&worker, SIZE_MAX / 2, &p), -ENOMEM);
        CHECK(strstr(worker.failure.detail, "no buffer of 9223372036854775807 bytes for thread 0"));

        worker.failure = (struct failure){};
        memset(&agent.setup.placement.buffer_nodes, 0, sizeof agent.setup.placement.buffer_nodes);
        node_set_add(&agent.setup.placement.buffer_nodes, SPEC_NODES_MAX - 1);
        CHECK_INT(buffer_map(&worker, 4096, &p), -EINVAL);
        CHECK(strstr(worker.failure.detail, "the buffer of thread 0 cannot be placed"));
}

static void test_memory_of_every_transport(void) {
        static const struct {
                enum transport transport;
                enum engine engine;
                enum copy_mode mode;
        } cases[] = {
                {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_ONE},        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_ZERO},
                {TRANSPORT_UNIX_STREAM, ENGINE_SYSCALL, COPY_ONE}, {TRANSPORT_TCP, ENGINE_SYSCALL, COPY_TWO},
                {TRANSPORT_TCP, ENGINE_SYSCALL, COPY_ONE},         {TRANSPORT_TCP, ENGINE_SYSCALL, COPY_ZERO},
                {TRANSPORT_MSGQ_POSIX, ENGINE_SYSCALL, COPY_TWO},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                int fds[2] = {-1, -1};
                struct page_list list = {};
                if (set_up(cases[i].transport, cases[i].engine, cases[i].mode) == -ENOSYS)
                        SKIP("a kernel without NUMA");
                CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
                worker.send_fd = fds[1];
                CHECK_INT(buffer_map(&worker, worker.size, &worker.buffer), 0);
                worker.buffer_length = worker.size;
                CHECK_INT(agent.transport->attach(&worker), 0);
                CHECK_INT(agent.transport->pages(&agent, &list), 0);
                CHECK(list.n > 0);
                for (size_t k = 0; k < list.n; k++)
                        if (policy_at(list.ranges[k].low) != MPOL_BIND)
                                CHECK_FAIL("%s %s: range %zu is not where buffers are put",
                                           transport_name(cases[i].transport), copy_mode_name(cases[i].mode), k);
                page_list_deinit(&list);
                agent.transport->detach(&worker);
                buffer_unmap(worker.buffer, worker.buffer_length);
                (void) util_close(fds[0]);
                (void) util_close(fds[1]);
        }
}

int main(void) {
        RUN(test_own_buffer);
        RUN(test_begins_where_a_huge_page_does);
        RUN(test_begins_where_a_page_of_its_size_does);
        RUN(test_what_cannot_be_had);
        RUN(test_memory_of_every_transport);
        return check_end();
}
