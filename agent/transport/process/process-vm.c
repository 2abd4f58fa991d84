/* SPDX-License-Identifier: MIT */

/*
 * System calls of one process on the memory of the other. The copy mode decides which end makes the call:
 *
 *      two-copy   process_vm_readv    the sender copies its message into a slot of its own memory, and has its buffer
 *                                     back; the receiver copies it out of there into its own
 *      one-copy   process_vm_writev   the sender gathers the message's fields into a slot of the receiver's memory,
 *                                     where that reads it in place
 *
 * A ring of addresses in shared memory (ring.h) publishes each message and its address, with the ring's waits; a slot
 * is free again when the ring's is. Both are part of every message.
 *
 * Agents are not dumpable (main.c), and no process may access their memory. They are dumpable as long as this transport
 * is open, and each declares its peer to Yama (PR_SET_PTRACER): with kernel.yama.ptrace_scope 1 only the peer gets
 * access, with 0, or in a kernel without Yama, every process of the agents' user.
 *
 * Source: man 2 process_vm_readv, ptrace ("Ptrace access mode checking"), PR_SET_DUMPABLE(2const),
 * Documentation/admin-guide/LSM/Yama.rst.
 */

#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/loop/buffer.h"
#include "agent/loop/fields.h"
#include "agent/os/procfs.h"
#include "agent/transport/ring/area.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"
#include "schema/transport/file-layout.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define YAMA_SCOPE "/proc/sys/kernel/yama/ptrace_scope"
#define YAMA_SCOPE_MAX 1    /* from 2 on a declared peer does not suffice */
#define READER_SLOTS_AT 64u /* offset in a ring's head of the address of the reader's slots */
#define PROBE UINT64_C(0x70726f626564)
#define ALL_THREADS 0u

_Static_assert(READER_SLOTS_AT + sizeof(uint64_t) <= RING_HEAD_BYTES, "the head holds the address");

/* Slots of messages, used in turn like those of the ring. */
struct vm_slots {
        uintptr_t begin;
        size_t stride;
        uint32_t n, next;
};

struct vm_channel {
        struct ring_channel rings; /* first member, as ring_area_attach() fills it */
        pid_t peer;
        struct vm_slots out, in; /* two-copy: out is this end's own memory; one-copy: in is */
        struct fields *fields;   /* one-copy: what a sender gathers */
        unsigned char *memory;   /* of this end's slots */
        size_t length;
};

static pid_t peer_pid; /* the process has one channel; written before workers start */

static uintptr_t slot_at(const struct vm_slots *s) {
        return s->begin + s->next * s->stride;
}

static void slot_pass(struct vm_slots *s) {
        s->next = s->next + 1 == s->n ? 0 : s->next + 1;
}

/* --- partial transfers --- */

/* Reads kernel.yama.ptrace_scope. Negative: this kernel has no Yama. */
static int ptrace_scope(void) {
        return (int) procfs_setting(YAMA_SCOPE);
}

static int explain(struct failure *f, const char *peer_role, int error, const char *call) {
        int scope = ptrace_scope();
        if (error == ESRCH)
                return failure_set_peer(f, peer_role, error, "is gone: %s found no process", call);
        if (error == EPERM && scope > YAMA_SCOPE_MAX)
                return failure_set(f, error,
                                   "%s of peer %s is not permitted: %s is %d, %d at most lets agents at their peer's "
                                   "memory (to change it: %s)",
                                   call, peer_role, host_limits[HOST_PTRACE_SCOPE].name, scope, YAMA_SCOPE_MAX,
                                   host_limits[HOST_PTRACE_SCOPE].raise);
        if (error == EPERM)
                return failure_set(f, error,
                                   "%s of peer %s is not permitted: that is not dumpable, or a security "
                                   "module or a filter of system calls forbids it",
                                   call, peer_role);
        return failure_set(f, error, "%s of peer %s: %s", call, peer_role, strerrordesc_np(error));
}

/* Handles a call that moved n bytes (-1: errno) of a message. 0: the caller repeats it for the rest. */
static int after_part(struct worker *w, ssize_t n, const char *call, uint64_t *count) {
        if (n < 0 && errno == EINTR) {
                worker_count(&w->eintr);
                return 0;
        }
        if (n <= 0)
                return explain(&w->failure, w->agent->peer_role, n < 0 ? errno : EFAULT, call);
        worker_count(count);
        return 0;
}

static int read_rest(struct worker *w, const struct vm_channel *c, uintptr_t from, ssize_t n) {
        for (size_t got = 0;;) {
                got += n > 0 ? (size_t) n : 0;
                if (got == w->size)
                        return 0;
                int r = after_part(w, n, "process_vm_readv", &w->partial_receives);
                if (r < 0)
                        return r;
                struct iovec here = {w->buffer + got, w->size - got}, there = {(void *) (from + got), w->size - got};
                n = process_vm_readv(c->peer, &here, 1, &there, 1, 0);
        }
}

static int write_rest(struct worker *w, const struct vm_channel *c, uintptr_t to, ssize_t n) {
        for (size_t sent = 0;;) {
                struct iovec rest[SPEC_FIELDS_MAX];
                sent += n > 0 ? (size_t) n : 0;
                if (sent == w->size)
                        return 0;
                int r = after_part(w, n, "process_vm_writev", &w->partial_sends);
                if (r < 0)
                        return r;
                struct iovec there = {(void *) (to + sent), w->size - sent};
                n = process_vm_writev(c->peer, rest, fields_after(c->fields, sent, rest), &there, 1, 0);
        }
}

/* --- the loops: beside the system call, the branches on the kind of waiting are nothing --- */

LOOP_INLINE enum wait_mode wait_of(const struct worker *w) {
        return w->agent->setup.point.wait;
}

LOOP_INLINE int publish(struct worker *w, struct vm_channel *c) {
        uint64_t address = slot_at(&c->out);
        slot_pass(&c->out);
        return ring_send(w, &c->rings.out, (const unsigned char *) &address, wait_of(w));
}

LOOP_INLINE int acquire_slot(struct worker *w) {
        struct ring *r = &((struct vm_channel *) w->channel)->rings.out;
        return ring_acquire_at(w, r, &r->at, wait_of(w));
}

LOOP_INLINE int read_acquire(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        return acquire_slot(w);
}

LOOP_INLINE int read_send(struct worker *w, unsigned char *message) {
        struct vm_channel *c = w->channel;
        memcpy((void *) slot_at(&c->out), message, w->size);
        return publish(w, c);
}

LOOP_INLINE int read_receive(struct worker *w, unsigned char **ret) {
        struct vm_channel *c = w->channel;
        unsigned char *entry;
        uint64_t address;
        int r = ring_receive(w, &c->rings.in, &entry, wait_of(w));
        if (LOOP_UNLIKELY(r))
                return r;
        memcpy(&address, entry, sizeof address);
        struct iovec here = {w->buffer, w->size}, there = {(void *) (uintptr_t) address, w->size};
        ssize_t n = process_vm_readv(c->peer, &here, 1, &there, 1, 0);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                r = read_rest(w, c, address, n);
        ring_release(w, &c->rings.in, wait_of(w)); /* the slot's message is in the buffer */
        *ret = w->buffer;
        return r;
}

LOOP_INLINE int write_acquire(struct worker *w, unsigned char **ret) {
        *ret = NULL;
        return acquire_slot(w);
}

static void write_fill(struct worker *w, unsigned char *message, uint64_t key) {
        (void) message;
        fields_fill(((struct vm_channel *) w->channel)->fields, key);
}

LOOP_INLINE int write_send(struct worker *w, unsigned char *message) {
        struct vm_channel *c = w->channel;
        uintptr_t to = slot_at(&c->out);
        struct iovec there = {(void *) to, w->size};
        (void) message;
        ssize_t n = process_vm_writev(c->peer, c->fields->iov, c->fields->n, &there, 1, 0);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size)) {
                int r = write_rest(w, c, to, n);
                if (r < 0)
                        return r;
        }
        return publish(w, c);
}

/* This end knows the address of its own slot; the ring publishes that it is filled. */
LOOP_INLINE int write_receive(struct worker *w, unsigned char **ret) {
        struct vm_channel *c = w->channel;
        unsigned char *entry;
        int r = ring_receive(w, &c->rings.in, &entry, wait_of(w));
        if (LOOP_UNLIKELY(r))
                return r;
        *ret = (unsigned char *) slot_at(&c->in);
        return 0;
}

LOOP_INLINE void write_release(struct worker *w, unsigned char *message) {
        struct vm_channel *c = w->channel;
        (void) message;
        slot_pass(&c->in);
        ring_release(w, &c->rings.in, wait_of(w));
}

static const struct channel read_channel = {
        .acquire = read_acquire, .send = read_send, .receive = read_receive, .release = loop_release_nothing};
static const struct channel write_channel = {.acquire = write_acquire,
                                             .fill = write_fill,
                                             .send = write_send,
                                             .receive = write_receive,
                                             .release = write_release};
TRANSPORT_LOOPS(read, read_channel);
TRANSPORT_LOOPS(write, write_channel);

static bool writes(const struct agent *a) {
        return a->setup.point.copy_mode == COPY_ONE;
}

static const struct transport_loops *process_vm_loops(const struct agent *a) {
        return writes(a) ? &write_loops : &read_loops;
}

/* --- permission --- */

/* Permits the peer to trace this process and thereby to access its memory. */
static int admit_peer(struct agent *a, pid_t peer) {
        if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
                return failure_set(&a->failure, errno, "PR_SET_DUMPABLE: %s", strerrordesc_np(errno));
        if (prctl(PR_SET_PTRACER, (unsigned long) peer, 0, 0, 0) < 0 && (errno != EINVAL || ptrace_scope() >= 0))
                return failure_set(&a->failure, errno, "PR_SET_PTRACER for peer %s: %s", a->peer_role,
                                   strerrordesc_np(errno));
        return 0;
}

/* Reads a word of the peer's memory, so that a missing permission fails before the run. */
static int probe_peer(struct agent *a, uint64_t address) {
        uint64_t word = 0;
        struct iovec here = {&word, sizeof word}, there = {(void *) (uintptr_t) address, sizeof word};
        if (process_vm_readv(peer_pid, &here, 1, &there, 1, 0) != (ssize_t) sizeof word)
                return explain(&a->failure, a->peer_role, errno, "process_vm_readv");
        return word == PROBE ? 0
                             : failure_set_peer(&a->failure, a->peer_role, EBADMSG,
                                                "has other memory at %" PRIx64 " than it reported", address);
}

/* Both ends send before they receive: the packets are few and short. */
static int admit_each_other(struct agent *a, uint64_t deadline_ns) {
        static const uint64_t probe = PROBE;
        uint64_t pid = 0, address = 0;
        int r = peer_send(a, PEER_TRANSPORT, ALL_THREADS, (uint64_t) getpid(), deadline_ns);
        if (r == 0)
                r = peer_receive(a, PEER_TRANSPORT, ALL_THREADS, &pid, deadline_ns);
        peer_pid = (pid_t) pid;
        if (r == 0)
                r = admit_peer(a, peer_pid);
        if (r == 0)
                r = peer_send(a, PEER_TRANSPORT, ALL_THREADS, (uintptr_t) &probe, deadline_ns);
        if (r == 0)
                r = peer_receive(a, PEER_TRANSPORT, ALL_THREADS, &address, deadline_ns);
        return r == 0 ? probe_peer(a, address) : r;
}

/* --- memory --- */

static int make_rings(struct agent *a, struct ring_area *area) {
        area->fd = memfd_create("addresses", MFD_CLOEXEC);
        if (area->fd < 0 || ftruncate(area->fd, (off_t) area->layout.area_bytes) < 0)
                return failure_set(&a->failure, errno, "%" PRIu64 " bytes of shared memory for addresses: %s",
                                   area->layout.area_bytes, strerrordesc_np(errno));
        return 0;
}

static struct vm_slots slots_at(const struct worker *w, uintptr_t begin) {
        struct file_layout l = file_layout_of(&w->agent->setup.point, (uint64_t) sysconf(_SC_PAGESIZE));
        return (struct vm_slots){.begin = begin, .stride = l.stride, .n = l.slots};
}

static int make_slots(struct worker *w, struct vm_channel *c, struct vm_slots *ret) {
        struct vm_slots s = slots_at(w, 0);
        int r = buffer_map(w, s.n * s.stride, &c->memory);
        if (r < 0)
                return r;
        c->length = s.n * s.stride;
        s.begin = (uintptr_t) c->memory;
        *ret = s;
        return 0;
}

/* The receiver owns the slots that the sender writes into. */
static int attach_reader(struct worker *w, unsigned char *ring_memory) {
        struct vm_channel *c = w->channel;
        if (!writes(w->agent))
                return 0;
        int r = make_slots(w, c, &c->in);
        uint64_t address = c->in.begin;
        if (r == 0)
                memcpy(ring_memory + READER_SLOTS_AT, &address, sizeof address);
        return r;
}

static int attach_writer(struct worker *w, const unsigned char *ring_memory) {
        struct vm_channel *c = w->channel;
        uint64_t address;
        if (!writes(w->agent))
                return make_slots(w, c, &c->out);
        memcpy(&address, ring_memory + READER_SLOTS_AT, sizeof address);
        c->out = slots_at(w, address);
        int r = fields_new(w, w->size, w->agent->setup.point.fields, &c->fields);
        return r == 0 ? 0
                      : failure_set(&w->failure, -r, "no fields for process_vm_writev of thread %" PRIu32 ": %s",
                                    w->index, strerrordesc_np(-r));
}

static int process_vm_attach(struct worker *w) {
        int r = ring_area_attach(w);
        if (r < 0)
                return r;
        const unsigned char *ring_memory = ring_area_out(w);
        ((struct vm_channel *) w->channel)->peer = peer_pid;
        return ring_memory ? attach_writer(w, ring_memory) : 0;
}

static const struct ring_carrier carrier = {
        .make = make_rings,
        .layout_of = ring_layout_of_addresses,
        .attach_reader = attach_reader,
        .channel_bytes = sizeof(struct vm_channel),
};

static int process_vm_open(struct agent *a) {
        int r = admit_each_other(a, util_now_ns() + AGENT_RENDEZVOUS_NS);
        return r == 0 ? ring_area_open(a, &carrier) : r;
}

/* Like the rings' memory, slots remain mapped, as workers may still use them. */
static void process_vm_close(struct agent *a) {
        (void) prctl(PR_SET_PTRACER, 0, 0, 0, 0); /* EINVAL without Yama */
        (void) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        for (uint32_t i = 0; workers_resting(a) && i < a->n_workers; i++) {
                struct vm_channel *c = a->workers[i].channel;
                if (c && c->memory)
                        buffer_unmap(c->memory, c->length);
                if (c)
                        c->fields = fields_free(c->fields);
        }
        ring_area_close(a);
}

/* --- the report --- */

static int process_vm_pages(const struct agent *a, struct page_list *list) {
        int r = ring_area_pages(a, list);
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                const struct vm_channel *c = a->workers[i].channel;
                if (c->memory)
                        r = page_list_add(list, PAGES_BUFFER, i, c->memory, c->length);
                if (r == 0 && c->fields)
                        r = page_list_add(list, PAGES_BUFFER, i, c->fields->memory, c->fields->length);
        }
        return r;
}

static void process_vm_effective(const struct agent *a, struct effective *e) {
        const struct vm_channel *c = a->workers[0].channel;
        struct vm_slots s = slots_at(&a->workers[0], 0);
        effective_add_text(e, writes(a) ? SETTING_SEND_METHOD : SETTING_RECEIVE_METHOD,
                           writes(a) ? "process_vm_writev" : "process_vm_readv");
        if (c->fields)
                effective_add_number(e, SETTING_FIELDS, c->fields->n);
        effective_add_number(e, SETTING_SLOTS, s.n);
        effective_add_number(e, SETTING_SLOT_BYTES, s.stride);
        effective_add_number(e, SETTING_BUFFER_BYTES, s.n * s.stride);
        effective_add_text(e, SETTING_SLOTS_OF, writes(a) ? "receiver" : "sender");
        effective_add_text(e, SETTING_RECEIVER_READS, writes(a) ? "in place" : "a copy");
        if (ptrace_scope() >= 0)
                effective_add_number(e, SETTING_PTRACE_SCOPE, (uint64_t) ptrace_scope());
        else
                effective_add_unknown(e, SETTING_PTRACE_SCOPE, "this kernel has no Yama");
        ring_area_put_waits(a, e);
}

const struct transport_ops transport_process_vm = {
        .transport = TRANSPORT_PROCESS_VM,
        .engine = ENGINE_SYSCALL,
        .open = process_vm_open,
        .attach = process_vm_attach,
        .close = process_vm_close,
        .loops = process_vm_loops,
        .effective = process_vm_effective,
        .pages = process_vm_pages,
};
