/* SPDX-License-Identifier: MIT */

/*
 * The ways to send a message through a Unix socket, for unix.c. Streams use the functions of pipes (descriptor.h),
 * datagrams and sequenced packets those of packets (packet.h).
 *
 *      two-copy   write, sendto   into the kernel, and out of it
 *      one-copy   sendmsg         the same, without packing the message's fields together first
 *
 * With io_uring (uring/transport.c) these are its operations send and sendmsg.
 */

#include "agent/loop/fields.h"
#include "agent/transport/stream/descriptor.h"
#include "agent/transport/stream/packet.h"
#include "agent/transport/stream/unix-sockets.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"

#include <inttypes.h>
#include <string.h>

LOOP_INLINE ssize_t gather(const struct worker *w, struct iovec *iov, unsigned n) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
        return syscall(SYS_sendmsg, w->send_fd, &m, MSG_NOSIGNAL);
}

STREAM_LOOPS(stream, descriptor_write, "write", gather, "sendmsg", descriptor_read, "read");
PACKET_LOOPS(packet, false, packet_write, gather, packet_read);
PACKET_LOOPS(chunks, true, packet_write, gather, packet_read);

const struct transport_loops *unix_loops(const struct agent *a) {
        bool gathers = a->setup.point.copy_mode == COPY_ONE;
        if (a->setup.point.transport == TRANSPORT_UNIX_STREAM)
                return gathers ? &stream_gathered_loops : &stream_loops;
        if (unix_chunked(a))
                return gathers ? &chunks_gathered_loops : &chunks_loops;
        return gathers ? &packet_gathered_loops : &packet_loops;
}

static bool sends(const struct agent *a) {
        return a->end == END_FIRST || a->setup.point.workload == WORKLOAD_PINGPONG;
}

int unix_attach(struct worker *w) {
        const struct point *p = &w->agent->setup.point;
        struct fields *fields = NULL;
        if (p->copy_mode != COPY_ONE || !sends(w->agent))
                return 0;
        int r = fields_new(w, w->size, p->fields, &fields);
        if (r < 0)
                return failure_set(&w->failure, -r, "no fields for sendmsg of thread %" PRIu32 ": %s", w->index,
                                   strerrordesc_np(-r));
        w->channel = fields;
        return 0;
}

void unix_detach(struct worker *w) {
        w->channel = fields_free(w->channel);
}

int unix_pages(const struct agent *a, struct page_list *list) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                const struct fields *f = a->workers[i].channel;
                if (f)
                        r = page_list_add(list, PAGES_BUFFER, i, f->memory, f->length);
        }
        return r;
}

void unix_modes_effective(const struct agent *a, struct effective *e) {
        const struct fields *f = a->workers[0].channel;
        if (!sends(a))
                return;
        effective_add_text(e, SETTING_SEND_METHOD,
                           f                                                   ? "sendmsg"
                           : a->setup.point.engine == ENGINE_IO_URING          ? "send"
                           : a->setup.point.transport == TRANSPORT_UNIX_STREAM ? "write"
                                                                               : "sendto");
        if (f)
                effective_add_number(e, SETTING_FIELDS, f->n);
}
