/* SPDX-License-Identifier: MIT */

/*
 * Shared memory full of rings. The leaders make and pass it; each worker touches the rings that it reads from, waits
 * until its peer has done the same, and maps the rest. The words by which the workers wait for each other lie in the
 * control page, which the first end's leader touches before it passes the memory on.
 */

#include "agent/transport/ring/area.h"

#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/os/policy.h"
#include "agent/os/procfs.h"
#include "agent/proof/proof.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"

#include <inttypes.h>
#include <sys/mman.h>

#define TOUCHED_LOOK_NS (50 * NSEC_PER_USEC)
#define COPY_ROUNDS 5u                      /* at least; the best one is used */
#define COPY_NS (6 * NSEC_PER_MSEC)         /* for all of them, at least, as other processes may use the machine */
#define COPY_ROUND_NS (200 * NSEC_PER_USEC) /* for each, at least, and once around the ring */
#define COPY_BYTES_MAX (UINT64_C(64) << 20) /* of a message, and of a ring; more do not change the result */
#define ALL_THREADS 0u

enum direction { THERE, BACK };

/* --- the loops, one set for each wait mode --- */

#define RING_LOOPS(prefix, wait)                                                                                       \
        LOOP_INLINE int prefix##_send(struct worker *w, unsigned char *message) {                                      \
                struct ring_channel *c = w->channel;                                                                   \
                return ring_send(w, &c->out, message, wait);                                                           \
        }                                                                                                              \
        LOOP_INLINE int prefix##_receive(struct worker *w, unsigned char **ret) {                                      \
                struct ring_channel *c = w->channel;                                                                   \
                return ring_receive(w, &c->in, ret, wait);                                                             \
        }                                                                                                              \
        LOOP_INLINE void prefix##_release(struct worker *w, unsigned char *message) {                                  \
                struct ring_channel *c = w->channel;                                                                   \
                (void) message;                                                                                        \
                ring_release(w, &c->in, wait);                                                                         \
        }                                                                                                              \
        static const struct channel prefix##_channel = {                                                               \
                .acquire = loop_acquire_buffer,                                                                        \
                .send = prefix##_send,                                                                                 \
                .receive = prefix##_receive,                                                                           \
                .release = prefix##_release,                                                                           \
        };                                                                                                             \
        TRANSPORT_LOOPS(prefix, prefix##_channel);                                                                     \
        static int prefix##_ring_sender(struct worker *w) {                                                            \
                struct ring_channel *c = w->channel;                                                                   \
                if (w->pace_ns > 0 || loop_is_sourced(w))                                                              \
                        return prefix##_loops.sender(w);                                                               \
                return w->agent->setup.verify == VERIFY_CHECKSUM ? ring_sender(w, &c->out, VERIFY_CHECKSUM, wait)      \
                                                                 : ring_sender(w, &c->out, VERIFY_NONE, wait);         \
        }                                                                                                              \
        static int prefix##_ring_receiver(struct worker *w) {                                                          \
                struct ring_channel *c = w->channel;                                                                   \
                if (w->pace_ns > 0)                                                                                    \
                        return prefix##_loops.receiver(w);                                                             \
                if (w->agent->setup.verify == VERIFY_CHECKSUM)                                                         \
                        return ring_receiver(w, &c->in, VERIFY_CHECKSUM, wait);                                        \
                LOOP_VERIFIED(w, ring_receiver(w, &c->in, verify, wait));                                              \
        }                                                                                                              \
        static const struct transport_loops prefix##_ring_loops = {                                                    \
                .sender = prefix##_ring_sender,                                                                        \
                .receiver = prefix##_ring_receiver,                                                                    \
                .initiator = prefix##_initiator,                                                                       \
                .responder = prefix##_responder,                                                                       \
        }

RING_LOOPS(block, WAIT_BLOCK);
RING_LOOPS(spin, WAIT_SPIN);
RING_LOOPS(hybrid, WAIT_HYBRID);

const struct transport_loops *ring_area_loops(const struct agent *a) {
        switch (a->setup.point.wait) {
        case WAIT_SPIN:
                return &spin_ring_loops;
        case WAIT_HYBRID:
                return &hybrid_ring_loops;
        default:
                return &block_ring_loops;
        }
}

/* --- addresses --- */

static unsigned char *ring_memory(const struct ring_area *area, uint32_t thread, enum direction d) {
        uint64_t number = (uint64_t) thread * area->layout.directions + d;
        return area->memory + area->layout.control_bytes + number * area->layout.ring_bytes;
}

static uint32_t *touched_word(const struct ring_area *area, uint32_t thread, enum direction d) {
        return (uint32_t *) (void *) area->memory + thread * area->layout.directions + d;
}

/* The directions of the rings that an end writes to and reads from; a stream only has the first. */
static enum direction direction_out(enum end end) {
        return end == END_FIRST ? THERE : BACK;
}

static enum direction direction_in(enum end end) {
        return end == END_FIRST ? BACK : THERE;
}

static bool has_direction(const struct ring_area *area, enum direction d) {
        return (unsigned) d < area->layout.directions;
}

/* --- the leader's part --- */

static int find_page_size(struct agent *a, struct ring_area *area) {
        area->huge = a->setup.options.huge_pages == TOGGLE_ON;
        area->page_bytes = (uint64_t) sysconf(_SC_PAGESIZE);
        if (!area->huge)
                return 0;
        area->page_bytes = procfs_huge_page_bytes();
        return area->page_bytes ? 0 : failure_set(&a->failure, ENOTSUP, "huge_pages: this kernel has none");
}

static int map(struct agent *a, struct ring_area *area) {
        uint64_t bytes = area->layout.area_bytes;
        if (area->memory)
                return 0;
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, area->fd, 0);
        if (p == MAP_FAILED)
                return failure_set(&a->failure, errno, "%" PRIu64 " bytes of shared memory%s cannot be mapped: %s",
                                   bytes,
                                   area->huge ? " in huge pages (free ones are HugePages_Free of /proc/meminfo)" : "",
                                   strerrordesc_np(errno));
        area->memory = p;
        return 0;
}

/* madvise() returns the error for which a store would be killed: no free huge page on the node, no room in the file
 * system. Kernels before 5.14 lack this advice, and the pages are stored to. */
static int touch(struct failure *f, const struct ring_area *area, unsigned char *memory, uint64_t bytes) {
        if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0)
                return 0;
        if (errno != EINVAL)
                return failure_set(f, errno, "%" PRIu64 " bytes of shared memory%s cannot be had: %s", bytes,
                                   area->huge ? " in huge pages" : "",
                                   errno == EFAULT ? "the file system or the node is full" : strerrordesc_np(errno));
        for (uint64_t i = 0; i < bytes; i += area->page_bytes)
                (void) __atomic_fetch_add(memory + i, 0, __ATOMIC_RELAXED);
        return 0;
}

static int open_first(struct agent *a, struct ring_area *area, uint64_t deadline_ns) {
        int r = area->carrier->make(a, area);
        if (r == 0)
                r = map(a, area);
        if (r == 0)
                r = touch(&a->failure, area, area->memory, area->layout.control_bytes);
        if (r == 0)
                r = peer_send(a, PEER_TRANSPORT, ALL_THREADS, (uint64_t) area->id, deadline_ns);
        if (r == 0 && area->fd >= 0)
                r = peer_send_fds(a, ALL_THREADS, &area->fd, 1, deadline_ns);
        return r;
}

static int open_second(struct agent *a, struct ring_area *area, uint64_t deadline_ns) {
        uint64_t id = 0;
        int r = peer_receive(a, PEER_TRANSPORT, ALL_THREADS, &id, deadline_ns);
        area->id = (int64_t) id;
        if (r == 0 && area->id < 0)
                r = peer_receive_fds(a, ALL_THREADS, &area->fd, 1, deadline_ns);
        if (r == 0 && area->carrier->join)
                r = area->carrier->join(a, area);
        return r == 0 ? map(a, area) : r;
}

int ring_area_open(struct agent *a, const struct ring_carrier *carrier) {
        uint64_t deadline_ns = util_now_ns() + AGENT_RENDEZVOUS_NS;
        struct ring_area *area = calloc(1, sizeof *area);
        if (!area)
                return failure_set(&a->failure, ENOMEM, "no memory for rings");
        *area = (struct ring_area){.carrier = carrier, .fd = -1, .id = -1};
        a->transport_data = area;
        int r = find_page_size(a, area);
        if (r < 0)
                return r;
        area->size = carrier->layout_of ? sizeof(uint64_t) : a->setup.point.message_size;
        area->layout = carrier->layout_of ? carrier->layout_of(&a->setup.point, area->page_bytes)
                                          : ring_layout_of(&a->setup.point, &a->setup.options, area->page_bytes);
        if (area->layout.slots == 0)
                return failure_set(&a->failure, EMSGSIZE,
                                   "ring_bytes %" PRIu64 " hold no message of %" PRIu64 " bytes: it takes %" PRIu64,
                                   a->setup.options.ring_bytes, a->setup.point.message_size, area->layout.slot_bytes);
        return a->end == END_FIRST ? open_first(a, area, deadline_ns) : open_second(a, area, deadline_ns);
}

/* The memory stays until the process ends: after a failure workers may still use it. */
void ring_area_close(struct agent *a) {
        struct ring_area *area = a->transport_data;
        if (!area || !workers_resting(a))
                return;
        for (uint32_t i = 0; i < a->n_workers; i++) {
                free(a->workers[i].channel);
                a->workers[i].channel = NULL;
        }
        area->fd = util_close(area->fd);
        free(area);
        a->transport_data = NULL;
}

/* --- the worker's part --- */

/* Touches the pages of the ring that this worker reads from, which places them for it. */
static int touch_own(struct worker *w, struct ring_area *area, enum direction d) {
        const struct agent_placement *p = &w->agent->setup.placement;
        struct policy_saved saved;
        int r = policy_enter(p->buffer, &p->buffer_nodes, &saved);
        if (r < 0)
                return failure_set(&w->failure, -r, "the policy of buffers cannot be set: %s", strerrordesc_np(-r));
        r = touch(&w->failure, area, ring_memory(area, w->index, d), area->layout.ring_bytes);
        int left = policy_leave(&saved);
        if (r == 0 && left < 0)
                r = failure_set(&w->failure, -left, "the policy of buffers cannot be left: %s", strerrordesc_np(-left));
        if (r == 0 && area->carrier->attach_reader)
                r = area->carrier->attach_reader(w, ring_memory(area, w->index, d));
        if (r == 0)
                __atomic_store_n(touched_word(area, w->index, d), 1, __ATOMIC_RELEASE);
        return r;
}

/* This wait has no deadline of its own: the leader ends the process when its peer is gone or the workers exceed
 * theirs. */
static void wait_touched(const struct ring_area *area, uint32_t thread, enum direction d) {
        const struct timespec pause = {.tv_nsec = TOUCHED_LOOK_NS};
        while (!__atomic_load_n(touched_word(area, thread, d), __ATOMIC_ACQUIRE))
                (void) nanosleep(&pause, NULL);
}

/* Copies the message into slot after slot from *slot on, as ring_sender() without publishing, until `least` bytes and a
 * round's time have passed. Returns bytes per second. The states of the slots, which no reader checks yet, are
 * unchanged. It uses a local copy of the ring, which the compiler knows that no store aliases, so that no sender is
 * faster. */
static uint64_t copy_on(const struct worker *w, const struct ring *given, size_t size, unsigned char **slot,
                        uint64_t least) {
        const struct ring view = *given, *r = &view;
        const unsigned char *message = w->buffer;
        const unsigned at_once = 1 + 4096 / (unsigned) size;
        const bool prepares = r->n_slots > RING_AHEAD;
        uint64_t begin = util_now_ns(), ns, bytes = 0;
        unsigned char *at = *slot;
        do {
                for (unsigned i = 0; i < at_once; i++) {
                        memcpy(at + r->message_at, message, size);
                        at += r->slot_bytes;
                        if (LOOP_UNLIKELY(at == r->end))
                                at = r->slots;
                        if (prepares)
                                ring_prepare_ahead(r, at);
                }
                bytes += at_once * size;
                ns = util_now_ns() - begin;
        } while (ns < COPY_ROUND_NS || bytes < least);
        *slot = at;
        return (uint64_t) ((double) bytes * 1e9 / (double) ns);
}

/* Measures how fast this thread copies its message into the ring without a reader, which bounds the rate of sending.
 * One uncounted pass around the ring fetches the lines from the CPU that touched them; each round covers the ring. */
static uint64_t measure_copy(const struct worker *w, const struct ring *r) {
        size_t size = r->size < COPY_BYTES_MAX ? r->size : COPY_BYTES_MAX;
        uint64_t all = (uint64_t) r->n_slots * size, least = all < COPY_BYTES_MAX ? all : COPY_BYTES_MAX, best = 0;
        unsigned char *slot = r->slots;
        (void) copy_on(w, r, size, &slot, least);
        uint64_t until_ns = util_now_ns() + COPY_NS;
        for (unsigned round = 0; round < COPY_ROUNDS || util_now_ns() < until_ns; round++) {
                uint64_t rate = copy_on(w, r, size, &slot, least);
                best = rate > best ? rate : best;
        }
        return best;
}

int ring_area_attach(struct worker *w) {
        struct agent *a = w->agent;
        struct ring_area *area = a->transport_data;
        size_t bytes = area->carrier->channel_bytes ? area->carrier->channel_bytes : sizeof(struct ring_channel);
        struct ring_channel *c = aligned_alloc(WORKER_LINE, (bytes + WORKER_LINE - 1) / WORKER_LINE * WORKER_LINE);
        enum direction in = direction_in(a->end), out = direction_out(a->end);
        if (!c)
                return failure_set(&w->failure, ENOMEM, "no memory for a ring of thread %" PRIu32, w->index);
        memset(c, 0, bytes);
        w->channel = c;
        if (has_direction(area, in)) {
                int r = touch_own(w, area, in);
                if (r < 0)
                        return r;
                bool gathers = a->setup.point.workload == WORKLOAD_STREAM && w->pace_ns == 0 &&
                               a->setup.options.gather != TOGGLE_OFF;
                ring_init(&c->in, &area->layout, ring_memory(area, w->index, in), area->size);
                ring_init_reader(&c->in, a->end == END_SECOND, gathers);
        }
        if (has_direction(area, out)) {
                unsigned char *memory = ring_memory(area, w->index, out);
                wait_touched(area, w->index, out);
                int r = touch(&w->failure, area, memory, area->layout.ring_bytes);
                if (r < 0)
                        return r;
                ring_init(&c->out, &area->layout, memory, area->size);
                if (!area->carrier->layout_of)
                        (void) __atomic_add_fetch(&area->copy_rate, measure_copy(w, &c->out), __ATOMIC_RELAXED);
        }
        return 0;
}

unsigned char *ring_area_out(const struct worker *w) {
        const struct ring_area *area = w->agent->transport_data;
        enum direction out = direction_out(w->agent->end);
        return has_direction(area, out) ? ring_memory(area, w->index, out) : NULL;
}

/* --- the report --- */

int ring_area_pages(const struct agent *a, struct page_list *list) {
        const struct ring_area *area = a->transport_data;
        enum direction in = direction_in(a->end);
        int r = page_list_add_mapped(list, PAGES_RING, area->memory, area->layout.area_bytes); /* at both ends */
        for (uint32_t i = 0; has_direction(area, in) && r == 0 && i < a->n_workers; i++)
                r = page_list_add(list, PAGES_RING, i, ring_memory(area, i, in), area->layout.ring_bytes);
        return r;
}

void ring_area_put_waits(const struct agent *a, struct effective *e) {
        uint64_t sleeps = 0, wakes = 0;
        if (a->setup.point.wait == WAIT_HYBRID)
                effective_add_number(e, SETTING_SPIN_NS, RING_SPIN_NS);
        if (a->setup.point.wait == WAIT_SPIN)
                return;
        for (uint32_t i = 0; i < a->n_workers; i++) {
                const struct ring_channel *c = a->workers[i].channel;
                sleeps += c->in.sleeps + c->out.sleeps;
                wakes += c->in.wakes + c->out.wakes;
        }
        effective_add_number(e, SETTING_FUTEX_WAITS, sleeps);
        effective_add_number(e, SETTING_FUTEX_WAKES, wakes);
}

/* The sum of the rates assumes a CPU for each thread: threads that share a CPU were measured one after the other. */
static uint64_t copy_rate(const struct agent *a) {
        const struct ring_area *area = a->transport_data;
        size_t cpus = a->setup.placement.n_cpus; /* that the workers share */
        if (cpus == 0)                           /* not pinned */
                cpus = cpumask_count(&a->affinity);
        if (cpus > a->n_workers)
                cpus = a->n_workers;
        return (uint64_t) ((double) area->copy_rate * (double) cpus / a->n_workers);
}

void ring_area_effective(const struct agent *a, struct effective *e) {
        const struct ring_area *area = a->transport_data;
        const struct ring_layout *l = &area->layout;
        static const char unread[] = "the page sizes of the rings cannot be read";
        effective_add_number(e, SETTING_RING_BYTES, l->slots * l->slot_bytes);
        effective_add_number(e, SETTING_BUFFER_BYTES, l->slots * l->slot_bytes);
        effective_add_number(e, SETTING_RING_MESSAGES, l->slots);
        effective_add_number(e, SETTING_RING_SLOT_BYTES, l->slot_bytes);
        effective_add_number(e, SETTING_SHARED_BYTES, l->area_bytes);
        uint64_t page_bytes = page_sizes_most(&a->proof->sizes, PAGES_RING);
        if (page_bytes) {
                effective_add_number(e, SETTING_PAGE_BYTES, page_bytes);
                effective_add_bool(e, SETTING_HUGE_PAGES, page_bytes > (uint64_t) sysconf(_SC_PAGESIZE));
        } else {
                effective_add_unknown(e, SETTING_PAGE_BYTES, unread);
                effective_add_unknown(e, SETTING_HUGE_PAGES, unread);
        }
        effective_add_text(e, SETTING_RING_PAGES_OF, "receiver");
        effective_add_text(e, SETTING_RECEIVER_READS, "in place");
        if (has_direction(area, direction_in(a->end))) {
                const struct ring_channel *c = a->workers[0].channel; /* as all the others' */
                effective_add_number(e, SETTING_GATHER_NS, c->in.gather_ns);
        }
        ring_area_put_waits(a, e);
        if (has_direction(area, direction_out(a->end)))
                effective_add_number(e, SETTING_MEMCPY_BYTES_PER_SECOND, copy_rate(a));
        if (area->carrier->effective)
                area->carrier->effective(area, e);
}
