/* SPDX-License-Identifier: MIT */

/*
 * Rings, hand-overs and memcpy() by hand; see hand-shm.h. Slots are a line for the state and the message behind it, or
 * in it when it is short, as any engineer would lay them out who has seen a cache line bounce; and the writer fetches
 * the lines that it is about to write some messages ahead. Without that an exchange, which waits for all stores before
 * it, takes a hand-over per message: rings that block would be a limit that anybody passes fourfold. For the same
 * reason a stream's reader lets messages gather where it has caught up or is about to, as the agents' do
 * (agent/transport/ring/ring.h). All that changes with a message is the loop's own, for the compiler to keep in
 * registers.
 */

#include "tests/bench/hand-shm.h"

#include "agent/loop/pattern.h"
#include "schema/util.h"
#include "tests/bench/hand-two.h"
#include "tests/bench/hand-wait.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>

#define LINE 64u
#define AHEAD 16u                          /* slots whose first lines the writer prefetches */
#define GATHER_BYTES_PER_NS 128u           /* of the ring: for how long messages gather */
#define GATHER_NS_MAX (32 * NSEC_PER_USEC) /* and no longer */
#define GATHER_SLOTS 512u                  /* in rings of so many */
#define BATCH 8u                           /* what is worth it */
#define SKIPPED_PAUSES 64u                 /* to be left out after one that was not */

static volatile uint64_t sink;

/* One end's view, with all that does not change between messages worked out beforehand. */
struct plain_ring {
        unsigned char *slot, *slots, *end; /* the next; the first; behind the last */
        uint32_t *freed;
        size_t slot_bytes, at, ahead, length, other_line;
        uint32_t n_slots, due, room, held, quarter; /* due: the state of the next slot once its message is there */
        uint32_t skip;                              /* pauses still to be skipped */
        uint64_t gather_ns;                         /* how long a pause is; 0 = none */
};

#define INLINE UTIL_SPECIALIZED

/* Fetches a line that is going to be written, while there are other things to do. */
static inline void prepare(const unsigned char *line) {
#if defined(__x86_64__)
        __asm__ volatile("prefetchw %0" ::"m"(*line));
#else
        __builtin_prefetch(line, 1);
#endif
}

INLINE void advance(struct plain_ring *r) {
        r->due += 2;
        r->slot += r->slot_bytes;
        if (r->slot == r->end)
                r->slot = r->slots;
}

INLINE void await_room(struct plain_ring *r, enum wait_mode wait) {
        struct hand_spin_limit p = {};
        for (;;) {
                uint32_t seen = __atomic_load_n(r->freed, __ATOMIC_ACQUIRE);
                r->room = r->n_slots - (r->due - 2 - (seen & ~1u)) / 2;
                if (r->room)
                        return;
                hand_await_change(r->freed, seen, wait, &p);
        }
}

INLINE void put(struct plain_ring *r, const unsigned char *message, size_t size, enum wait_mode wait) {
        if (__builtin_expect(r->room == 0, 0))
                await_room(r, wait);
        memcpy(r->slot + r->at, message, size);
        hand_store_and_wake(hand_state_of(r->slot), r->due, wait);
        advance(r);
        if (--r->room > AHEAD) {
                const unsigned char *line = r->slot + r->ahead;
                line = line < r->end ? line : line - r->length;
                prepare(line);
                prepare(line + r->other_line);
        }
}

INLINE unsigned char *get(const struct plain_ring *r, enum wait_mode wait) {
        struct hand_spin_limit p = {};
        uint32_t *word = hand_state_of(r->slot), seen;
        while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != r->due)
                hand_await_change(word, seen, wait, &p);
        return r->slot + r->at;
}

/* Whether the message is there that comes so many after the next one. */
INLINE bool has_message(const struct plain_ring *r, uint32_t messages) {
        unsigned char *slot = r->slot + messages * r->slot_bytes;
        slot = slot < r->end ? slot : slot - r->length;
        return __atomic_load_n(hand_state_of(slot), __ATOMIC_ACQUIRE) == r->due + 2 * messages;
}

/* At the writer's heels a reader takes each line from it just before the store. */
INLINE void let_gather(struct plain_ring *r) {
        if (r->skip && r->skip--)
                return;
        uint64_t until_ns = util_now_ns() + r->gather_ns;
        while (util_now_ns() < until_ns)
                hand_pause();
        if (!has_message(r, BATCH - 1))
                r->skip = SKIPPED_PAUSES;
}

INLINE void done(struct plain_ring *r, enum wait_mode wait) {
        uint32_t freed = r->due;
        advance(r);
        if (++r->held < r->quarter)
                return;
        r->held = 0;
        hand_store_and_wake(r->freed, freed, wait);
        if (r->gather_ns && !has_message(r, r->quarter))
                let_gather(r);
}

static void look(const struct hand_shm *h, const unsigned char *p, unsigned direction, uint64_t number) {
        if (h->verify == VERIFY_TOUCH) {
                uint64_t sum = 0;
                for (size_t i = 0; i < h->size; i += LINE)
                        sum += p[i];
                sink = sum;
        }
        if (h->verify == VERIFY_CHECKSUM && !pattern_matches(p, h->size, pattern_key(0, direction, number)))
                _exit(1);
}

static void fill(const struct hand_shm *h, unsigned char *p, unsigned direction, uint64_t number) {
        if (h->verify == VERIFY_CHECKSUM)
                pattern_fill(p, h->size, pattern_key(0, direction, number));
}

/* The two directions' rings and a private buffer. */
struct ends {
        struct plain_ring there, back;
        unsigned char *buffer;
};

/* These two until the process is ended with the other end. */
INLINE void send_on(const struct hand_shm *h, struct ends *e, enum wait_mode wait) {
        for (uint64_t i = 0;; i++) {
                fill(h, e->buffer, 0, i);
                put(&e->there, e->buffer, h->size, wait);
        }
}

INLINE void answer_on(const struct hand_shm *h, struct ends *e, enum wait_mode wait) {
        for (uint64_t i = 0;; i++) {
                look(h, get(&e->there, wait), 0, i);
                done(&e->there, wait);
                fill(h, e->buffer, 1, i);
                put(&e->back, e->buffer, h->size, wait);
        }
}

INLINE void receive_one(const struct hand_shm *h, struct ends *e, uint64_t i, enum wait_mode wait) {
        struct plain_ring *r = &e->there;
        if (__builtin_expect(!has_message(r, 0), 0) && r->gather_ns)
                let_gather(r);
        look(h, get(&e->there, wait), 0, i);
        done(&e->there, wait);
}

INLINE void exchange_one(const struct hand_shm *h, struct ends *e, uint64_t i, enum wait_mode wait) {
        fill(h, e->buffer, 0, i);
        put(&e->there, e->buffer, h->size, wait);
        look(h, get(&e->back, wait), 1, i);
        done(&e->back, wait);
}

/* Chunk by chunk from message `from` until the time has come: how many were done and what time it was. */
INLINE struct hand_result until(const struct hand_shm *h, struct ends *e, bool stream, uint64_t from, uint64_t until_ns,
                                enum wait_mode wait) {
        uint64_t i = from, now_ns;
        do
                for (uint64_t last = i + h->chunk; i < last; i++)
                        if (stream)
                                receive_one(h, e, i, wait);
                        else
                                exchange_one(h, e, i, wait);
        while ((now_ns = util_now_ns()) < until_ns);
        return (struct hand_result){i - from, now_ns};
}

INLINE struct hand_result be_clocked(const struct hand_shm *h, struct ends *e, bool stream, enum wait_mode wait) {
        struct hand_result warm = until(h, e, stream, 0, util_now_ns() + h->warmup_ns, wait);
        struct hand_result window = until(h, e, stream, warm.messages, warm.ns + h->duration_ns, wait);
        return (struct hand_result){window.messages, window.ns - warm.ns};
}

INLINE struct hand_result be_end(const struct hand_shm *h, int end, const struct ends *given, enum wait_mode wait) {
        bool stream = h->workload == WORKLOAD_STREAM;
        struct ends e = *given;
        if (stream && end == 0)
                send_on(h, &e, wait);
        if (!stream && end == 1)
                answer_on(h, &e, wait);
        return stream ? be_clocked(h, &e, true, wait) : be_clocked(h, &e, false, wait);
}

static struct hand_result end_of_kind(const struct hand_shm *h, int end, const struct ends *e) {
        switch (h->wait) {
        case WAIT_SPIN:
                return be_end(h, end, e, WAIT_SPIN);
        case WAIT_HYBRID:
                return be_end(h, end, e, WAIT_HYBRID);
        default:
                return be_end(h, end, e, WAIT_BLOCK);
        }
}

/* --- memory --- */

static int open_nameless(enum transport t) {
        char path[64];
        (void) snprintf(path, sizeof path, t == TRANSPORT_MMAP_FILE ? "/tmp/ipclab-hand-%d" : "/ipclab-hand-%d",
                        (int) getpid());
        int fd = t == TRANSPORT_MMAP_FILE ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                                          : shm_open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd >= 0)
                (void) (t == TRANSPORT_MMAP_FILE ? unlink(path) : shm_unlink(path));
        return fd;
}

static void *make_memory(enum transport t, size_t bytes) {
        if (t == TRANSPORT_SHM_SYSV) {
                int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
                void *p = id < 0 ? (void *) -1 : shmat(id, NULL, 0);
                if (id >= 0)
                        (void) shmctl(id, IPC_RMID, NULL);
                return p == (void *) -1 ? NULL : p;
        }
        int fd = -1;
        if (t != TRANSPORT_MMAP_ANONYMOUS) {
                fd = open_nameless(t);
                if (fd < 0 || ftruncate(fd, (off_t) bytes) < 0)
                        return NULL;
        }
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
        (void) util_close(fd);
        return p == MAP_FAILED ? NULL : p;
}

static void drop_memory(enum transport t, void *p, size_t bytes) {
        (void) (t == TRANSPORT_SHM_SYSV ? shmdt(p) : munmap(p, bytes));
}

/* --- the ring --- */

struct ring_task {
        const struct hand_shm *h;
        struct ends ends;
};

static int run_ring(void *userdata, int end, struct hand_result *ret) {
        struct ring_task *t = userdata;
        t->ends.buffer = mmap(NULL, t->h->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (t->ends.buffer == MAP_FAILED)
                return -1;
        memset(t->ends.buffer, 0x5a, t->h->size);
        *ret = end_of_kind(t->h, end, &t->ends);
        return 0;
}

static bool is_beside(const struct hand_shm *h) {
        return h->size <= LINE - 8;
}

static size_t slot_bytes_of(const struct hand_shm *h) {
        return is_beside(h) ? LINE : LINE + (h->size + LINE - 1) / LINE * LINE;
}

static struct plain_ring ring_at(const struct hand_shm *h, unsigned char *memory) {
        size_t slot_bytes = slot_bytes_of(h);
        uint64_t gather_ns = h->slots * slot_bytes / GATHER_BYTES_PER_NS;
        unsigned char *slots = memory + 2 * LINE;
        return (struct plain_ring){
                .slot = slots,
                .slots = slots,
                .end = slots + h->slots * slot_bytes,
                .freed = (uint32_t *) (void *) memory,
                .slot_bytes = slot_bytes,
                .at = is_beside(h) ? 8 : LINE,
                .ahead = AHEAD * slot_bytes,
                .length = h->slots * slot_bytes,
                .n_slots = h->slots,
                .due = 2,
                .room = h->slots,
                .quarter = h->slots < 4 ? 1 : h->slots / 4,
                .other_line = slot_bytes == 2 * LINE ? LINE : 0,
                .gather_ns = h->workload != WORKLOAD_STREAM || h->slots < GATHER_SLOTS ? 0
                             : gather_ns > GATHER_NS_MAX                               ? GATHER_NS_MAX
                                                                                       : gather_ns,
        };
}

int hand_shm_run(const struct hand_shm *h, double *ret_rate) {
        struct ring_task t = {.h = h};
        size_t one = (2 * LINE + h->slots * slot_bytes_of(h) + 4095) / 4096 * 4096;
        unsigned char *memory = make_memory(h->transport, 2 * one);
        struct hand_result result;
        if (!memory)
                return -ENOMEM;
        memset(memory, 0, 2 * one);
        t.ends.there = ring_at(h, memory);
        t.ends.back = ring_at(h, memory + one);
        struct hand_two two = {
                .run = run_ring, .userdata = &t, .cpus = h->cpus, .clocked = h->workload == WORKLOAD_STREAM ? 1 : 0};
        int r = hand_two_run(&two, &result);
        drop_memory(h->transport, memory, 2 * one);
        if (r == 0)
                *ret_rate = (double) result.messages * 1e9 / (double) result.ns;
        return r;
}

/* --- the limits --- */

struct handover_task {
        uint64_t *lines, rounds;
};

static int run_handover(void *userdata, int end, struct hand_result *ret) {
        const struct handover_task *t = userdata;
        uint64_t *mine = t->lines + 16 * end, *theirs = t->lines + 16 * (1 - end), begin = util_now_ns();
        for (uint64_t i = 1; i <= t->rounds; i++) {
                if (end == 0)
                        __atomic_store_n(mine, i, __ATOMIC_RELEASE);
                while (__atomic_load_n(theirs, __ATOMIC_ACQUIRE) < i)
                        hand_pause();
                if (end == 1)
                        __atomic_store_n(mine, i, __ATOMIC_RELEASE);
                if (i == t->rounds / 8)
                        begin = util_now_ns();
        }
        *ret = (struct hand_result){t->rounds - t->rounds / 8, util_now_ns() - begin};
        return 0;
}

int hand_handover_run(const int cpus[2], uint64_t rounds, double *ret_rate) {
        struct handover_task t = {.lines = make_memory(TRANSPORT_MMAP_ANONYMOUS, 4096), .rounds = rounds};
        struct hand_result result;
        if (!t.lines)
                return -ENOMEM;
        int r = hand_two_run(&(struct hand_two){.run = run_handover, .userdata = &t, .cpus = cpus}, &result);
        drop_memory(TRANSPORT_MMAP_ANONYMOUS, t.lines, 4096);
        if (r == 0)
                *ret_rate = (double) result.messages * 1e9 / (double) result.ns;
        return r;
}

struct memcpy_task {
        unsigned char *area, *buffer;
        uint32_t *turn;
        size_t size, stride;
        uint32_t slots;
        uint64_t passes;
        int read_back;
};

static uint64_t copy_all(const struct memcpy_task *t) {
        uint64_t begin = util_now_ns();
        for (uint32_t i = 0; i < t->slots; i++)
                memcpy(t->area + i * t->stride, t->buffer, t->size);
        return util_now_ns() - begin;
}

static void read_all(const struct memcpy_task *t) {
        uint64_t sum = 0;
        for (size_t i = 0; i < t->slots * t->stride; i += LINE)
                sum += t->area[i];
        sink = sum;
}

static void await_turn(const struct memcpy_task *t, uint32_t turn) {
        while (__atomic_load_n(t->turn, __ATOMIC_ACQUIRE) != turn)
                hand_pause();
}

static int run_memcpy(void *userdata, int end, struct hand_result *ret) {
        const struct memcpy_task *t = userdata;
        uint64_t ns = 0;
        memset(t->buffer, 0x5a, t->size);
        for (uint32_t i = 0; i < t->passes; i++) {
                if (end == 1 && t->read_back) {
                        await_turn(t, 2 * i + 1);
                        read_all(t);
                        __atomic_store_n(t->turn, 2 * i + 2, __ATOMIC_RELEASE);
                }
                if (end == 1)
                        continue;
                uint64_t took = copy_all(t);
                ns += i < t->passes / 8 ? 0 : took;
                if (t->read_back) {
                        __atomic_store_n(t->turn, 2 * i + 1, __ATOMIC_RELEASE);
                        await_turn(t, 2 * i + 2);
                }
        }
        *ret = (struct hand_result){(t->passes - t->passes / 8) * t->slots, ns};
        return 0;
}

int hand_memcpy_run(const int cpus[2], const struct hand_pieces *p, uint64_t passes, int read_back, double *ret_rate) {
        struct memcpy_task t = {
                .size = p->size, .stride = p->stride, .slots = p->slots, .passes = passes, .read_back = read_back};
        struct hand_result result;
        size_t bytes = t.stride * p->slots + 4096;
        unsigned char *shared = make_memory(TRANSPORT_MMAP_ANONYMOUS, bytes);
        t.buffer = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (!shared || t.buffer == MAP_FAILED)
                return -ENOMEM;
        memset(shared, 0, bytes);
        t.turn = (uint32_t *) (void *) shared;
        t.area = shared + 4096;
        int r = hand_two_run(&(struct hand_two){.run = run_memcpy, .userdata = &t, .cpus = cpus}, &result);
        drop_memory(TRANSPORT_MMAP_ANONYMOUS, shared, bytes);
        (void) munmap(t.buffer, p->size);
        if (r == 0)
                *ret_rate = (double) result.messages * 1e9 / (double) result.ns;
        return r;
}
