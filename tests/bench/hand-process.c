/* SPDX-License-Identifier: MIT */

/*
 * process_vm_readv(2) and process_vm_writev(2) by hand. Addresses go through slots of a line each, with a state that
 * the other end sleeps on, and the reader publishes every quarter of them how many it has released, as the agents'
 * rings do.
 */

#include "schema/transport/file-layout.h"
#include "tests/bench/hand-gather.h"
#include "tests/bench/hand-wait.h"

#include <stdalign.h>
#include <sys/prctl.h>

#define SLOTS_MAX FILE_LAYOUT_SLOTS_MAX
#define POLL_NS 50000

/* In memory of both. state, freed: twice a number of messages, and the lowest bit for a sleeper. */
struct address_slot {
        alignas(HAND_LINE) uint32_t state;
        uint64_t address;
};

struct addresses {
        alignas(2 * HAND_LINE) uint32_t freed;
        alignas(2 * HAND_LINE) struct address_slot slots[SLOTS_MAX];
};

struct shared {
        uint32_t there[2]; /* atomic: the end has filled its part */
        pid_t pids[2];
        uint64_t reader_slots[2]; /* where an end's messages are written to */
        struct addresses ways[2]; /* there, back */
};

/* The state of one end. */
struct vm {
        struct gathered fields; /* first: e->own of hand-gather.h */
        struct addresses *out, *in;
        pid_t peer;
        size_t stride;
        uint32_t n, quarter, put, got, room, held;
        uint32_t put_state, got_state; /* of the next message */
        unsigned char *memory;         /* of this end's slots */
        uint64_t peer_memory;
};

static struct shared *shared;
static int first_out;

int hand_process_make(const struct hand *h, struct hand_channel *ret) {
        (void) h;
        if (!shared) {
                void *p = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
                if (p == MAP_FAILED)
                        return -errno;
                shared = p;
        }
        memset(shared, 0, sizeof *shared);
        first_out = ret->there[1];
        return 0;
}

static void meet(struct vm *v, int end) {
        const struct timespec pause = {.tv_nsec = POLL_NS};
        (void) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* EINVAL without Yama */
        shared->pids[end] = getpid();
        shared->reader_slots[end] = (uintptr_t) v->memory;
        __atomic_store_n(&shared->there[end], 1, __ATOMIC_RELEASE);
        while (!__atomic_load_n(&shared->there[1 - end], __ATOMIC_ACQUIRE))
                (void) nanosleep(&pause, NULL);
        v->peer = shared->pids[1 - end];
        v->peer_memory = shared->reader_slots[1 - end];
}

static int open_vm(struct hand_end *e) {
        const struct point p = {.workload = e->h->workload, .threads = 1, .message_size = e->size};
        const struct file_layout l = file_layout_of(&p, (uint64_t) sysconf(_SC_PAGESIZE));
        int end = e->out == first_out ? 0 : 1;
        if (open_gathered(e) < 0)
                return -1;
        struct vm *v = aligned_alloc(HAND_LINE, (sizeof *v + HAND_LINE - 1) / HAND_LINE * HAND_LINE);
        if (!v)
                return -1;
        *v = (struct vm){.fields = *(struct gathered *) e->own,
                         .out = &shared->ways[end],
                         .in = &shared->ways[1 - end],
                         .stride = l.stride,
                         .n = l.slots,
                         .quarter = l.slots < 4 ? 1 : l.slots / 4,
                         .room = l.slots,
                         .put_state = 2,
                         .got_state = 2,
                         .memory = hand_memory(l.slots * l.stride)};
        free(e->own);
        e->own = v;
        if (!v->memory)
                return -1;
        v->held = v->quarter;
        meet(v, end);
        return 0;
}

HAND_INLINE void await_room(struct vm *v) {
        struct hand_spin_limit p = {};
        while (v->room == 0) {
                uint32_t seen = __atomic_load_n(&v->out->freed, __ATOMIC_ACQUIRE);
                v->room = v->n - (v->put_state - 2 - (seen & ~1u)) / 2;
                if (v->room == 0)
                        hand_await_change(&v->out->freed, seen, WAIT_BLOCK, &p);
        }
}

HAND_INLINE void publish(struct vm *v, uint64_t address) {
        struct address_slot *s = &v->out->slots[v->put];
        s->address = address;
        hand_store_and_wake(&s->state, v->put_state, WAIT_BLOCK);
        v->put = v->put + 1 == v->n ? 0 : v->put + 1;
        v->put_state += 2;
        v->room--;
}

HAND_INLINE uint64_t await_address(struct vm *v) {
        struct address_slot *s = &v->in->slots[v->got];
        struct hand_spin_limit p = {};
        for (uint32_t seen; (seen = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE)) != v->got_state;)
                hand_await_change(&s->state, seen, WAIT_BLOCK, &p);
        return s->address;
}

HAND_INLINE int pass_slot(struct hand_end *e) {
        struct vm *v = e->own;
        v->got = v->got + 1 == v->n ? 0 : v->got + 1;
        if (--v->held == 0) {
                v->held = v->quarter;
                hand_store_and_wake(&v->in->freed, v->got_state, WAIT_BLOCK);
        }
        v->got_state += 2;
        return 0;
}

HAND_INLINE int send_own(struct hand_end *e, unsigned char *message) {
        struct vm *v = e->own;
        await_room(v);
        unsigned char *slot = v->memory + v->put * v->stride;
        memcpy(slot, message, e->size);
        publish(v, (uintptr_t) slot);
        return 0;
}

HAND_INLINE int receive_read(struct hand_end *e) {
        struct vm *v = e->own;
        struct iovec there = {(void *) (uintptr_t) await_address(v), e->size}, here = {e->buffer, e->size};
        if (process_vm_readv(v->peer, &here, 1, &there, 1, 0) != (ssize_t) e->size)
                return -1;
        return pass_slot(e);
}

HAND_INLINE int send_written(struct hand_end *e, unsigned char *message) {
        struct vm *v = e->own;
        (void) message;
        await_room(v);
        struct iovec there = {(void *) (uintptr_t) (v->peer_memory + v->put * v->stride), e->size};
        if (process_vm_writev(v->peer, v->fields.iov, (unsigned long) v->fields.n, &there, 1, 0) != (ssize_t) e->size)
                return -1;
        publish(v, (uintptr_t) there.iov_base);
        return 0;
}

HAND_INLINE int receive_in_place(struct hand_end *e) {
        struct vm *v = e->own;
        e->message = (unsigned char *) (uintptr_t) await_address(v);
        return 0;
}

static const struct hand_way read_way = {
        .open = open_vm, .next = hand_next_buffer, .send = send_own, .receive = receive_read};
static const struct hand_way write_way = {.open = open_vm,
                                          .next = hand_next_buffer,
                                          .fill = fill_gathered,
                                          .send = send_written,
                                          .receive = receive_in_place,
                                          .release = pass_slot};
HAND_LOOPS(vm_read, read_way);
HAND_LOOPS(vm_write, write_way);
