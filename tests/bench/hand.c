/* SPDX-License-Identifier: MIT */

/* Which loops are written by hand, and running them over a channel of their own. */

#include "tests/bench/hand.h"

#include "schema/util.h"

#define LOOPS(name) &hand_##name##_stream, &hand_##name##_pingpong

/* What is written by hand: a line for each way. */
static const struct {
        enum transport transport;
        enum engine engine;
        enum copy_mode copy_mode;
        const struct hand_loops *stream, *pingpong;
} ways[] = {
        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_TWO, LOOPS(pipe)},
        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_ONE, LOOPS(gathered)},
        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_ZERO, LOOPS(spliced)},
        {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_TWO, LOOPS(pipe)},
        {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_ONE, LOOPS(gathered)},
        {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_ZERO, LOOPS(spliced)},
        {TRANSPORT_UNIX_STREAM, ENGINE_SYSCALL, COPY_TWO, LOOPS(unix_plain)},
        {TRANSPORT_UNIX_STREAM, ENGINE_SYSCALL, COPY_ONE, LOOPS(unix_gathered)},
        {TRANSPORT_UNIX_DGRAM, ENGINE_SYSCALL, COPY_TWO, LOOPS(packet)},
        {TRANSPORT_UNIX_DGRAM, ENGINE_SYSCALL, COPY_ONE, LOOPS(packet_gathered)},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_SYSCALL, COPY_TWO, LOOPS(packet)},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_SYSCALL, COPY_ONE, LOOPS(packet_gathered)},
        {TRANSPORT_MSGQ_SYSV, ENGINE_SYSCALL, COPY_TWO, LOOPS(sysv)},
        {TRANSPORT_MSGQ_POSIX, ENGINE_SYSCALL, COPY_TWO, LOOPS(posix)},
        {TRANSPORT_FILE, ENGINE_SYSCALL, COPY_TWO, LOOPS(file)},
        {TRANSPORT_PROCESS_VM, ENGINE_SYSCALL, COPY_TWO, LOOPS(vm_read)},
        {TRANSPORT_PROCESS_VM, ENGINE_SYSCALL, COPY_ONE, LOOPS(vm_write)},
        {TRANSPORT_MEMFD, ENGINE_SYSCALL, COPY_TWO, LOOPS(memfd_fresh)},
        {TRANSPORT_PIPE, ENGINE_IO_URING, COPY_TWO, LOOPS(uring_pipe)},
        {TRANSPORT_PIPE, ENGINE_IO_URING, COPY_ONE, LOOPS(uring_gathered_pipe)},
        {TRANSPORT_FIFO, ENGINE_IO_URING, COPY_TWO, LOOPS(uring_pipe)},
        {TRANSPORT_FIFO, ENGINE_IO_URING, COPY_ONE, LOOPS(uring_gathered_pipe)},
        {TRANSPORT_UNIX_STREAM, ENGINE_IO_URING, COPY_TWO, LOOPS(uring_socket)},
        {TRANSPORT_UNIX_STREAM, ENGINE_IO_URING, COPY_ONE, LOOPS(uring_gathered_socket)},
        {TRANSPORT_UNIX_DGRAM, ENGINE_IO_URING, COPY_TWO, LOOPS(uring_socket)},
        {TRANSPORT_UNIX_DGRAM, ENGINE_IO_URING, COPY_ONE, LOOPS(uring_gathered_socket)},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_IO_URING, COPY_TWO, LOOPS(uring_socket)},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_IO_URING, COPY_ONE, LOOPS(uring_gathered_socket)},
        {TRANSPORT_FILE, ENGINE_IO_URING, COPY_TWO, LOOPS(uring_file)},
};

static const struct hand_loops *synced_loops_of(const struct hand *h) {
        if (h->engine == ENGINE_IO_URING)
                return h->workload == WORKLOAD_STREAM ? &hand_uring_synced_file_stream
                                                      : &hand_uring_synced_file_pingpong;
        return h->workload == WORKLOAD_STREAM ? &hand_synced_file_stream : &hand_synced_file_pingpong;
}

static const struct hand_loops *loops_of(const struct hand *h) {
        if (h->transport == TRANSPORT_FILE && h->file_sync == FILE_SYNC_FSYNC)
                return synced_loops_of(h);
        if (h->memfd == MEMFD_POOL)
                return h->workload == WORKLOAD_STREAM ? &hand_memfd_pool_stream : &hand_memfd_pool_pingpong;
        for (size_t i = 0; i < ELEMENTS(ways); i++)
                if (ways[i].transport == h->transport && ways[i].engine == h->engine &&
                    ways[i].copy_mode == h->copy_mode)
                        return h->workload == WORKLOAD_STREAM ? ways[i].stream : ways[i].pingpong;
        return NULL;
}

struct task {
        const struct hand *h;
        const struct hand_loops *loops;
        struct hand_channel channel;
};

static int run_end(void *userdata, int end, struct hand_result *ret) {
        const struct task *t = userdata;
        const struct hand_channel *c = &t->channel;
        hand_channel_keep(c, end);
        return end == 0 ? t->loops->first(t->h, c->back[0], c->there[1], ret)
                        : t->loops->second(t->h, c->there[0], c->back[1], ret);
}

/* So that an end sees it when the other dies. */
static void close_channel(void *userdata) {
        struct task *t = userdata;
        hand_channel_close(&t->channel);
}

int hand_run(const struct hand *h, double *ret_rate) {
        struct task t = {.h = h, .loops = loops_of(h)};
        struct hand_two two = {.run = run_end,
                               .forked = close_channel,
                               .userdata = &t,
                               .cpus = h->cpus,
                               .clocked = h->workload == WORKLOAD_STREAM ? 1 : 0};
        struct hand_result result;
        if (!t.loops)
                return -EOPNOTSUPP;
        int r = hand_channel_make(h, &t.channel);
        if (r == 0)
                r = hand_two_run(&two, &result);
        hand_channel_remove(&t.channel);
        if (r == 0)
                *ret_rate = (double) result.messages * 1e9 / (double) result.ns;
        return r;
}
