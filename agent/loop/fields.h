/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A message that lies in several places (copy modes of pipes and sockets): the fields that a program would gather with
 * writev(2) or sendmsg(2). Their lengths differ by at most a byte, and none is empty, so that a message has at most as
 * many fields as bytes.
 *
 * Each lies apart from the next, as allocations of their own do: on cache lines of its own, and from half a page on it
 * begins on a page's boundary. Where the kernel copies, the place does not matter; where it sends the pages themselves
 * (MSG_ZEROCOPY, sendmsg_zc) it uses an entry of the socket buffer for each page that a field touches. A field of two
 * pages that begins within one touches three, and eight of those no longer fit into the 17 entries of one socket
 * buffer. Whatever the copy mode, the layout is the same, so that a comparison of copy modes does not depend on the
 * place of the fields.
 *
 * Source: Linux net/core/datagram.c (zerocopy_fill_skb_from_iter), include/linux/skbuff.h (MAX_SKB_FRAGS).
 */

#include "agent/loop/loops.h"
#include "schema/spec/spec.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct fields {
        struct iovec iov[SPEC_FIELDS_MAX];
        unsigned n;
        unsigned char *memory;
        size_t length;          /* of memory */
        size_t stride;          /* from one field to the next */
        uint64_t copies, where; /* sets of fields, of which iov has one: more than one are a cold source */
};

_Static_assert(SPEC_FIELDS_MAX <= IOV_MAX, "a message goes in one call");

/* Makes fields for messages of `size` bytes, in the worker's own thread. 0; -EINVAL; -ENOMEM; what buffer_map()
 * returns. */
int fields_new(struct worker *w, size_t size, unsigned n, struct fields **ret);
struct fields *fields_free(struct fields *f);

/* Goes to the next set of fields. */
void fields_next(struct fields *f);

/* Writes the pattern's bytes (pattern.h) over all fields, as if they were one message. */
void fields_fill(const struct fields *f, uint64_t key);

/* Lists the bytes after the first `done`, which are less than all. Returns the number of entries in ret. */
unsigned fields_after(const struct fields *f, size_t done, struct iovec ret[SPEC_FIELDS_MAX]);

/* Lists the bytes [from, from + length) of the message, for a packet. Returns the number of entries in ret. */
unsigned fields_part(const struct fields *f, size_t from, size_t length, struct iovec ret[SPEC_FIELDS_MAX]);

/* Parts of a struct channel whose worker's `channel` is a struct fields: a message in several fields has no single
 * address. */
static inline int fields_acquire(struct worker *w, unsigned char **ret) {
        (void) w;
        *ret = NULL;
        return 0;
}

static inline void fields_fill_message(struct worker *w, unsigned char *message, uint64_t key) {
        (void) message;
        fields_fill(w->channel, key);
}

/* Defines prefix_loops of such a channel. */
#define LOOPS_OF_FIELDS(prefix, how_send, how_receive)                                                                 \
        static const struct channel prefix##_channel = {.acquire = fields_acquire,                                     \
                                                        .fill = fields_fill_message,                                   \
                                                        .send = (how_send),                                            \
                                                        .receive = (how_receive),                                      \
                                                        .release = loop_release_nothing};                              \
        TRANSPORT_LOOPS(prefix, prefix##_channel)
