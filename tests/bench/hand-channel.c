/* SPDX-License-Identifier: MIT */

/* The channels of the hand-written loops: both ends of both directions, made before the two processes are. */

#include "tests/bench/hand.h"

#include "schema/util.h"

#include <fcntl.h>
#include <mqueue.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/stat.h>

static int make_fifo(int ret[2]) {
        char dir[] = "/tmp/ipclab-hand-XXXXXX", path[64];
        int r = 0;

        if (!mkdtemp(dir))
                return -errno;
        (void) snprintf(path, sizeof path, "%s/fifo", dir);
        if (mkfifo(path, 0600) == 0) {
                ret[0] = open(path, O_RDONLY | O_NONBLOCK);
                ret[1] = open(path, O_WRONLY);
        }
        if (ret[0] < 0 || ret[1] < 0 || fcntl(ret[0], F_SETFL, O_RDONLY) < 0)
                r = -errno;
        (void) unlink(path);
        (void) rmdir(dir);
        return r;
}

/* A pipe, or a FIFO whose name has been removed. */
static int make_pipe(const struct hand *h, int ret[2]) {
        int r = h->transport == TRANSPORT_FIFO ? make_fifo(ret) : pipe(ret) < 0 ? -errno : 0;
        if (r == 0 && h->pipe_size && fcntl(ret[1], F_SETPIPE_SZ, (int) h->pipe_size) < 0)
                r = -errno;
        return r;
}

/* Room for one packet, as the agents make it where there is less. */
static int widen(int fd, size_t size) {
        int want = (int) (size / 2 + 32), have = 0;
        socklen_t length = sizeof have;
        if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &have, &length) < 0)
                return -errno;
        if ((size_t) have >= size + 32 || setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof want) == 0)
                return 0;
        return -errno;
}

/* One pair of sockets for both directions. */
static int make_sockets(const struct hand *h, struct hand_channel *ret) {
        bool packets = transport_terms[h->transport].carrier == CARRIER_SOCKET;
        int type = h->transport == TRANSPORT_UNIX_DGRAM    ? SOCK_DGRAM
                   : h->transport == TRANSPORT_UNIX_STREAM ? SOCK_STREAM
                                                           : SOCK_SEQPACKET;
        int pair[2];
        if (socketpair(AF_UNIX, type, 0, pair) < 0)
                return -errno;
        ret->there[1] = pair[0];
        ret->there[0] = pair[1];
        ret->back[0] = dup(pair[0]);
        ret->back[1] = dup(pair[1]);
        if (ret->back[0] < 0 || ret->back[1] < 0)
                return -errno;
        if (type == SOCK_STREAM || !packets) /* no message goes through it */
                return 0;
        int r = widen(pair[0], h->size);
        return r < 0 ? r : widen(pair[1], h->size);
}

static int make_posix(const struct hand *h, int ret[2]) {
        struct mq_attr attr = {.mq_maxmsg = (long) h->msgq_depth, .mq_msgsize = (long) h->size};
        char name[32];
        (void) snprintf(name, sizeof name, "/ipclab-hand-%d", getpid());
        ret[0] = mq_open(name, O_RDONLY | O_CREAT | O_EXCL, 0600, &attr);
        ret[1] = mq_open(name, O_WRONLY);
        int r = ret[0] < 0 || ret[1] < 0 ? -errno : 0;
        (void) mq_unlink(name);
        return r;
}

static int make_sysv(const struct hand *h, int ret[2]) {
        struct msqid_ds ds;
        ret[0] = ret[1] = msgget(IPC_PRIVATE, 0600);
        if (ret[0] < 0 || msgctl(ret[0], IPC_STAT, &ds) < 0)
                return -errno;
        ds.msg_qbytes = h->msgq_depth * h->size;
        return h->msgq_depth && msgctl(ret[0], IPC_SET, &ds) < 0 ? -errno : 0;
}

static int make_queue(const struct hand *h, int ret[2]) {
        return h->transport == TRANSPORT_MSGQ_SYSV ? make_sysv(h, ret) : make_posix(h, ret);
}

int hand_channel_make(const struct hand *h, struct hand_channel *ret) {
        int r;
        *ret = (struct hand_channel){.there = {-1, -1}, .back = {-1, -1}, .numbers = false};
        switch (transport_terms[h->transport].carrier) {
        case CARRIER_SOCKET:
        case CARRIER_MEMFD:
                return make_sockets(h, ret);
        case CARRIER_PEER:
                r = make_sockets(h, ret); /* each end recognises itself by its socket */
                return r < 0 ? r : hand_process_make(h, ret);
        case CARRIER_FILE:
                return hand_file_make(h, ret);
        case CARRIER_QUEUE:
                ret->numbers = h->transport == TRANSPORT_MSGQ_SYSV;
                r = make_queue(h, ret->there);
                return r < 0 ? r : make_queue(h, ret->back);
        default:
                r = make_pipe(h, ret->there);
                return r < 0 ? r : make_pipe(h, ret->back);
        }
}

void hand_channel_keep(const struct hand_channel *c, int end) {
        if (c->numbers)
                return;
        (void) close(c->there[end == 0 ? 0 : 1]);
        (void) close(c->back[end == 0 ? 1 : 0]);
}

void hand_channel_close(struct hand_channel *c) {
        for (int i = 0; i < 2 && !c->numbers; i++) {
                c->there[i] = util_close(c->there[i]);
                c->back[i] = util_close(c->back[i]);
        }
}

void hand_channel_remove(struct hand_channel *c) {
        hand_channel_close(c);
        if (c->numbers && c->there[0] >= 0)
                (void) msgctl(c->there[0], IPC_RMID, NULL);
        if (c->numbers && c->back[0] >= 0)
                (void) msgctl(c->back[0], IPC_RMID, NULL);
}

int hand_packet_try(enum transport transport, size_t size) {
        struct hand h = {.transport = transport, .size = size};
        struct hand_channel c;
        char *packet = calloc(1, size);
        if (!packet)
                return -ENOMEM;
        int r = hand_channel_make(&h, &c);
        if (r == 0 && send(c.there[1], packet, size, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t) size)
                r = -errno;
        hand_channel_remove(&c);
        free(packet);
        return r;
}
