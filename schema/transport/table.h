/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The table of transports: one row each, with everything that code outside of agent/transport/ has to know of one. The
 * enumerators, the agent's registration and every list of names are made from it. Code tests a property of the row and
 * never which transport it has; a new transport is a row here and its file in agent/transport/.
 */

#include <stdbool.h>
#include <stdint.h>

/* The kernel object or memory between the two ends of a channel. */
enum carrier {
        CARRIER_PIPE,
        CARRIER_SOCKET, /* of the Unix domain: a connected pair */
        CARRIER_TCP,    /* a server's listener and connections */
        CARRIER_RING,   /* shared memory divided as ring-layout.h has it */
        CARRIER_FILE,   /* a file divided as file-layout.h has it */
        CARRIER_QUEUE,  /* an IPC namespace's message queues */
        CARRIER_PEER,   /* slots in one end's own memory, which the other end's system calls reach */
        CARRIER_MEMFD,  /* a memfd for each slot, handed over by its descriptor */
};

/* The limit on the bytes of one transfer; daemon/admission/capacity.c reads each. */
enum transport_limit {
        LIMIT_PIPE,            /* fs.pipe-max-size */
        LIMIT_STREAM_SOCKET,   /* net.core.wmem_max */
        LIMIT_DATAGRAM_SOCKET, /* net.core.wmem_max and the kernel's largest socket buffer */
        LIMIT_TCP,             /* net.ipv4.tcp_wmem */
        LIMIT_SHM_POSIX,       /* free space of /dev/shm */
        LIMIT_SHM_SYSV,        /* kernel.shmmax, kernel.shmall */
        LIMIT_RUNTIME_DIR,     /* free space of the runtime directory */
        LIMIT_MEMORY,          /* memory available */
        LIMIT_MSGQ_SYSV,       /* kernel.msgmax, kernel.msgmnb */
        LIMIT_MSGQ_POSIX,      /* fs.mqueue.msgsize_max, RLIMIT_MSGQUEUE */
        LIMIT_COUNT,
};

/* How a message relates to a transfer. */
enum delivery {
        DELIVERY_PIECES, /* a byte stream: a message takes as many transfers as it needs */
        DELIVERY_WHOLE,  /* one transfer: the limit is a message's, too, unless the spec sets "chunk" */
        DELIVERY_SLOTS,  /* memory or a file that is divided into slots, each of which holds a message */
};

/* How copy_mode zero-copy is done. */
enum zero_copy {
        ZERO_COPY_NONE,
        ZERO_COPY_SPLICE, /* the carrier takes the sender's pages; system calls only, as io_uring has no vmsplice */
        ZERO_COPY_NOTIFY, /* the kernel pins the sender's pages and reports when it has done with them */
};

/* Descriptors of one thread's channel, at one end. */
enum channel_descriptors {
        DESCRIPTORS_NONE,
        DESCRIPTORS_ONE,
        DESCRIPTORS_PER_DIRECTION,
        DESCRIPTORS_PER_SLOT, /* of each direction, and a socket's */
};

/* transport_options, as bits; schema/spec/options.c has a row for each. */
enum transport_option {
        OPTION_BUFFER_BYTES,
        OPTION_PIPE_SIZE,
        OPTION_MSGQ_DEPTH,
        OPTION_RING_BYTES,
        OPTION_HUGE_PAGES,
        OPTION_GATHER,
        OPTION_FILE_SYNC,
        OPTION_SNDBUF,
        OPTION_RCVBUF, /* unix(7): no effect on Unix sockets */
        OPTION_NODELAY,
        OPTION_BUSY_POLL,
        OPTION_CONGESTION,
        OPTION_MEMFD,
        OPTION_COUNT,
};
#define OPTION(name) (1u << OPTION_##name)

/* One transport. A property that a row does not mention has no meaning there, and makes no axis. */
struct transport_term {
        const char *name;
        const char *title; /* for a person: "named pipe" */
        enum carrier carrier;
        enum transport_limit limit;
        enum delivery delivery;
        enum zero_copy zero_copy;
        enum channel_descriptors descriptors;
        const char *one_copy_call;  /* for a person: the system call of that copy mode */
        const char *zero_copy_call; /* likewise, or the flag that makes it zero-copy */
        unsigned copy_modes;   /* bits, 1u << enum copy_mode; one that is outside of a non-empty set is impossible */
        unsigned options;      /* bits, OPTION() */
        bool has_engine;       /* io_uring beside system calls: the channel is a file descriptor */
        bool has_wait;         /* every wait mode */
        bool has_direction;    /* streams in either direction, or both at once */
        bool has_roles;        /* the ends are a server and a client, whatever the workload */
        bool has_listener;     /* the server's, with pending connections; each connection takes a port */
        bool assembles_fields; /* a message is assembled from fields in every copy mode, else in one-copy only */
        bool stamps;           /* messages of a stream carry the time of their sending where they are long enough */
        bool has_queue;        /* of messages that io_uring moves, in order: more than one may be under way */
        bool has_multishot;    /* io_uring receives short messages of a stream by multishot */
        bool cpu_per_thread;   /* same-node and node placements give each thread a CPU of its own */
        bool by_descent;       /* the ends share memory that both have from the process that they descend from */
};

#define COPIES_TWO_ONE (1u << COPY_TWO | 1u << COPY_ONE)
#define COPIES_ALL (COPIES_TWO_ONE | 1u << COPY_ZERO)

/* ROW(enumerator without TRANSPORT_, the stem of its agent's symbols, the row's members…), in the order in which the
 * API lists them. */
#define TRANSPORTS(ROW)                                                                                                \
        ROW(PIPE, pipe, .name = "pipe", .title = "pipe", .carrier = CARRIER_PIPE, .limit = LIMIT_PIPE,                 \
            .copy_modes = COPIES_ALL, .one_copy_call = "writev", .zero_copy_call = "vmsplice",                         \
            .zero_copy = ZERO_COPY_SPLICE, .has_engine = true, .has_queue = true,                                      \
            .descriptors = DESCRIPTORS_PER_DIRECTION, .options = OPTION(BUFFER_BYTES) | OPTION(PIPE_SIZE))             \
        ROW(FIFO, fifo, .name = "fifo", .title = "named pipe", .carrier = CARRIER_PIPE, .limit = LIMIT_PIPE,           \
            .copy_modes = COPIES_ALL, .one_copy_call = "writev", .zero_copy_call = "vmsplice",                         \
            .zero_copy = ZERO_COPY_SPLICE, .has_engine = true, .has_queue = true,                                      \
            .descriptors = DESCRIPTORS_PER_DIRECTION, .options = OPTION(BUFFER_BYTES) | OPTION(PIPE_SIZE))             \
        ROW(UNIX_STREAM, unix_stream, .name = "unix-stream", .title = "Unix stream socket", .carrier = CARRIER_SOCKET, \
            .limit = LIMIT_STREAM_SOCKET, .one_copy_call = "sendmsg", .copy_modes = COPIES_TWO_ONE,                    \
            .has_engine = true, .has_queue = true, .descriptors = DESCRIPTORS_ONE,                                     \
            .options = OPTION(BUFFER_BYTES) | OPTION(SNDBUF))                                                          \
        ROW(UNIX_DGRAM, unix_dgram, .name = "unix-dgram", .title = "Unix datagram socket", .carrier = CARRIER_SOCKET,  \
            .limit = LIMIT_DATAGRAM_SOCKET, .delivery = DELIVERY_WHOLE, .one_copy_call = "sendmsg",                    \
            .copy_modes = COPIES_TWO_ONE, .has_engine = true, .has_queue = true, .descriptors = DESCRIPTORS_ONE,       \
            .options = OPTION(BUFFER_BYTES) | OPTION(SNDBUF))                                                          \
        ROW(UNIX_SEQPACKET, unix_seqpacket, .name = "unix-seqpacket", .title = "Unix sequenced-packet socket",         \
            .carrier = CARRIER_SOCKET, .limit = LIMIT_DATAGRAM_SOCKET, .delivery = DELIVERY_WHOLE,                     \
            .one_copy_call = "sendmsg", .copy_modes = COPIES_TWO_ONE, .has_engine = true, .has_queue = true,           \
            .descriptors = DESCRIPTORS_ONE, .options = OPTION(BUFFER_BYTES) | OPTION(SNDBUF))                          \
        ROW(TCP, tcp, .name = "tcp", .title = "TCP on loopback", .carrier = CARRIER_TCP, .limit = LIMIT_TCP,           \
            .copy_modes = COPIES_ALL, .one_copy_call = "sendmsg", .zero_copy_call = "MSG_ZEROCOPY",                    \
            .zero_copy = ZERO_COPY_NOTIFY, .has_engine = true, .has_queue = true, .descriptors = DESCRIPTORS_ONE,      \
            .has_direction = true, .has_roles = true, .has_listener = true, .assembles_fields = true, .stamps = true,  \
            .has_multishot = true, .cpu_per_thread = true,                                                             \
            .options = OPTION(BUFFER_BYTES) | OPTION(SNDBUF) | OPTION(RCVBUF) | OPTION(NODELAY) | OPTION(BUSY_POLL) |  \
                       OPTION(CONGESTION))                                                                             \
        ROW(SHM_POSIX, shm_posix, .name = "shm-posix", .title = "POSIX shared memory", .carrier = CARRIER_RING,        \
            .limit = LIMIT_SHM_POSIX, .delivery = DELIVERY_SLOTS, .has_wait = true,                                    \
            .options = OPTION(BUFFER_BYTES) | OPTION(RING_BYTES) | OPTION(HUGE_PAGES) | OPTION(GATHER))                \
        ROW(SHM_SYSV, shm_sysv, .name = "shm-sysv", .title = "System V shared memory", .carrier = CARRIER_RING,        \
            .limit = LIMIT_SHM_SYSV, .delivery = DELIVERY_SLOTS, .has_wait = true,                                     \
            .options = OPTION(BUFFER_BYTES) | OPTION(RING_BYTES) | OPTION(HUGE_PAGES) | OPTION(GATHER))                \
        ROW(MMAP_FILE, mmap_file, .name = "mmap-file", .title = "shared mapping of a file", .carrier = CARRIER_RING,   \
            .limit = LIMIT_RUNTIME_DIR, .delivery = DELIVERY_SLOTS, .has_wait = true,                                  \
            .options = OPTION(BUFFER_BYTES) | OPTION(RING_BYTES) | OPTION(GATHER))                                     \
        ROW(MMAP_ANONYMOUS, mmap_anonymous, .name = "mmap-anonymous", .title = "shared anonymous mapping",             \
            .carrier = CARRIER_RING, .limit = LIMIT_MEMORY, .delivery = DELIVERY_SLOTS, .has_wait = true,              \
            .by_descent = true,                                                                                        \
            .options = OPTION(BUFFER_BYTES) | OPTION(RING_BYTES) | OPTION(HUGE_PAGES) | OPTION(GATHER))                \
        ROW(FILE, file, .name = "file", .title = "plain file", .carrier = CARRIER_FILE, .limit = LIMIT_RUNTIME_DIR,    \
            .delivery = DELIVERY_SLOTS, .has_engine = true, .descriptors = DESCRIPTORS_ONE,                            \
            .options = OPTION(FILE_SYNC))                                                                              \
        ROW(MSGQ_SYSV, msgq_sysv, .name = "msgq-sysv", .title = "System V message queue", .carrier = CARRIER_QUEUE,    \
            .limit = LIMIT_MSGQ_SYSV, .delivery = DELIVERY_WHOLE,                                                      \
            .options = OPTION(BUFFER_BYTES) | OPTION(MSGQ_DEPTH))                                                      \
        ROW(MSGQ_POSIX, msgq_posix, .name = "msgq-posix", .title = "POSIX message queue", .carrier = CARRIER_QUEUE,    \
            .limit = LIMIT_MSGQ_POSIX, .delivery = DELIVERY_WHOLE, .descriptors = DESCRIPTORS_PER_DIRECTION,           \
            .options = OPTION(BUFFER_BYTES) | OPTION(MSGQ_DEPTH))                                                      \
        ROW(PROCESS_VM, process_vm, .name = "process-vm", .title = "another process's memory",                         \
            .carrier = CARRIER_PEER, .limit = LIMIT_MEMORY, .delivery = DELIVERY_SLOTS,                                \
            .one_copy_call = "process_vm_writev", .copy_modes = COPIES_TWO_ONE, .has_wait = true)                      \
        ROW(MEMFD, memfd, .name = "memfd", .title = "sealed memory handed over", .carrier = CARRIER_MEMFD,             \
            .limit = LIMIT_MEMORY, .delivery = DELIVERY_SLOTS, .descriptors = DESCRIPTORS_PER_SLOT,                    \
            .options = OPTION(MEMFD))

enum transport {
#define TRANSPORT_ENUMERATOR(id, ...) TRANSPORT_##id,
        TRANSPORTS(TRANSPORT_ENUMERATOR)
#undef TRANSPORT_ENUMERATOR
                TRANSPORT_COUNT,
};

extern const struct transport_term transport_terms[TRANSPORT_COUNT];
