/* SPDX-License-Identifier: MIT */

#include "agent/measure/probe.h"

#include "schema/util.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WARM_NS (3 * NSEC_PER_MSEC)
#define TURN_NS (1500 * NSEC_PER_MSEC)  /* for the other end's, likewise */
#define SERIES_NS (200 * NSEC_PER_MSEC) /* for what both do together, which takes milliseconds, too */
#define SPINS_PER_LOOK 4096u
#define ASLEEP_NS (30 * NSEC_PER_USEC) /* from an answer to the next call: the answering end sleeps by then */
#define PASS_STEPS (UINT32_C(1) << 20) /* of either word, at most */
#define LINE 64
#define TICKS 1000u /* round trips that bound the clocks' difference */

/* The ends increment line and bell in turn: odd values are the first end's call, even ones the second's answer. */
struct probe_page {
        alignas(LINE) uint32_t turn; /* futex: TURNS for each pass */
        alignas(LINE) uint32_t line; /* handed over */
        alignas(LINE) uint32_t bell; /* futex, of the wake-ups */
        alignas(LINE) uint32_t tick; /* handed over with the answering end's clock */
        uint64_t tick_ns;
        alignas(LINE) uint32_t left; /* the last pass that an end has given up, from 1 */
        alignas(LINE) uint32_t cpus[2];
};
_Static_assert(sizeof(struct probe_page) <= PROBE_PAGE_BYTES, "it is one page");

/* The turns of a pass, as they end. */
enum turn { TURN_FIRST = 1, TURN_SECOND, TURNS };

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout) {
        return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

static void set_word(uint32_t *word, uint32_t value) {
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
        (void) futex(word, FUTEX_WAKE, 1, NULL);
}

static bool is_left(const struct probe_order *o) {
        return __atomic_load_n(&o->page->left, __ATOMIC_ACQUIRE) == o->pass + 1;
}

/* Sleeps until the word is at least `value`. False: the deadline has passed, or the other end has left. */
static bool await_word(const struct probe_order *o, uint32_t *word, uint32_t value, uint64_t deadline_ns) {
        for (;;) {
                uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
                if ((int32_t) (now - value) >= 0)
                        return true;
                uint64_t now_ns = util_now_ns();
                if (now_ns >= deadline_ns || is_left(o))
                        return false;
                uint64_t left_ns = deadline_ns - now_ns;
                struct timespec timeout = {.tv_sec = (time_t) (left_ns / NSEC_PER_SEC),
                                           .tv_nsec = (long) (left_ns % NSEC_PER_SEC)};
                (void) futex(word, FUTEX_WAIT, now, &timeout);
        }
}

/* The same without sleeping. */
static bool spin_word(const struct probe_order *o, const uint32_t *word, uint32_t value, uint64_t deadline_ns) {
        for (uint32_t i = 1;; i++) {
                if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
                        return true;
                if (i % SPINS_PER_LOOK == 0 && (util_now_ns() >= deadline_ns || is_left(o)))
                        return false;
        }
}

static void leave(const struct probe_order *o) {
        struct probe_page *page = o->page;
        __atomic_store_n(&page->left, o->pass + 1, __ATOMIC_RELEASE);
        set_word(&page->turn, __atomic_load_n(&page->turn, __ATOMIC_ACQUIRE));
        set_word(&page->bell, __atomic_load_n(&page->bell, __ATOMIC_ACQUIRE));
}

static uint64_t thread_cpu_ns(void) {
        struct timespec ts;
        return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) < 0
                       ? 0
                       : (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

static void call_getpid(uint64_t n) {
        for (uint64_t i = 0; i < n; i++)
                (void) syscall(SYS_getpid);
}

static void copy(unsigned char *memory, uint64_t n) {
        if (!memory)
                return;
        for (uint64_t i = 0; i < n; i++) {
                memcpy(memory, memory + PROBE_COPY_BYTES, PROBE_COPY_BYTES);
                __asm__ volatile("" : : "r"(memory) : "memory"); /* each copy is made */
        }
}

static void set_absence(struct probe *p, enum probe_kind kind, enum probe_absence absence) {
        p->series[kind].absence = absence;
        if (absence != PROBE_TAKEN)
                memset(p->series[kind].round_ns, 0, sizeof p->series[kind].round_ns);
}

/* To be called during the probe, too: the thread may be back on its first CPU at the end. A move and a return within
 * one series of both ends are not seen. */
static void note_cpu(struct probe *p) {
        uint32_t cpu = 0;
        if (getcpu(&cpu, NULL) == 0 && cpu != p->cpu)
                p->moved = 1;
}

/* The operations of one end alone. A CPU that others have leaves them without figures, and the run goes on. Without
 * memory nothing is copied. */
static void work(unsigned char *memory, struct probe *p) {
        uint64_t begin_ns = util_now_ns(), begin_cpu_ns = thread_cpu_ns();
        while (util_now_ns() < begin_ns + WARM_NS) {
                call_getpid(100);
                copy(memory, 1);
        }
        for (unsigned i = 0; i < PROBE_ROUNDS; i++) {
                uint64_t a = util_now_ns();
                call_getpid(probe_terms[PROBE_GETPID].operations);
                uint64_t b = util_now_ns();
                copy(memory, probe_terms[PROBE_MEMCPY].operations);
                p->series[PROBE_GETPID].round_ns[i] = b - a;
                p->series[PROBE_MEMCPY].round_ns[i] = util_now_ns() - b;
                note_cpu(p);
                if (util_now_ns() - begin_ns > PROBE_WORK_NS) {
                        set_absence(p, PROBE_GETPID, PROBE_STARVED);
                        set_absence(p, PROBE_MEMCPY, PROBE_STARVED);
                        break;
                }
        }
        if (!memory)
                set_absence(p, PROBE_MEMCPY, PROBE_NO_MEMORY);
        p->cpu_ns = thread_cpu_ns() - begin_cpu_ns;
        p->work_ns = util_now_ns() - begin_ns;
}

/* A round of hand-overs: the first end writes, the second answers, both spin. Each is a round trip. */
static bool hand_over(const struct probe_order *o, uint32_t *n, uint64_t deadline_ns, uint64_t *ret_ns) {
        uint32_t *word = &o->page->line, end = *n + (uint32_t) probe_terms[PROBE_HAND_OVER].operations;
        uint64_t begin_ns = util_now_ns();
        for (; *n != end; *n += 2) {
                if (!o->second)
                        __atomic_store_n(word, *n + 1, __ATOMIC_RELEASE);
                if (!spin_word(o, word, *n + (o->second ? 1 : 2), deadline_ns))
                        return false;
                if (o->second)
                        __atomic_store_n(word, *n + 2, __ATOMIC_RELEASE);
        }
        *ret_ns = util_now_ns() - begin_ns;
        return true;
}

/* A round of wake-ups: the second end sleeps; when it has run, it answers by the line, for which the first one spins.
 */
static bool wake_up(const struct probe_order *o, uint32_t *n, uint64_t deadline_ns, uint64_t *ret_ns) {
        uint32_t *word = &o->page->bell, end = *n + 2 * (uint32_t) probe_terms[PROBE_WAKE_UP].operations;
        uint64_t sum_ns = 0;
        for (; *n != end; *n += 2) {
                if (o->second) {
                        if (!await_word(o, word, *n + 1, deadline_ns))
                                return false;
                        __atomic_store_n(word, *n + 2, __ATOMIC_RELEASE);
                        continue;
                }
                uint64_t due_ns = util_now_ns() + ASLEEP_NS, begin_ns;
                while ((begin_ns = util_now_ns()) < due_ns)
                        ;
                set_word(word, *n + 1);
                if (!spin_word(o, word, *n + 2, deadline_ns))
                        return false;
                sum_ns += util_now_ns() - begin_ns;
        }
        *ret_ns = sum_ns;
        return true;
}

/* The same with both ends on one CPU, which one leaves to the other by sleeping: there and back are two wake-ups. */
static bool wake_up_in_turn(const struct probe_order *o, uint32_t *n, uint64_t deadline_ns, uint64_t *ret_ns) {
        uint32_t *word = &o->page->bell, end = *n + (uint32_t) probe_terms[PROBE_WAKE_UP].operations;
        uint64_t begin_ns = util_now_ns();
        for (; *n != end; *n += 2) {
                if (!o->second)
                        set_word(word, *n + 1);
                if (!await_word(o, word, *n + (o->second ? 1 : 2), deadline_ns))
                        return false;
                if (o->second)
                        set_word(word, *n + 2);
        }
        *ret_ns = util_now_ns() - begin_ns;
        return true;
}

typedef bool (*round_of_both)(const struct probe_order *o, uint32_t *n, uint64_t deadline_ns, uint64_t *ret_ns);

/* An uncounted first round synchronizes both ends. */
static enum probe_absence take_together(const struct probe_order *o, round_of_both take, uint32_t n,
                                        struct probe_series *ret) {
        uint64_t deadline_ns = util_now_ns() + SERIES_NS, warm_ns;
        bool going = take(o, &n, deadline_ns, &warm_ns);
        for (unsigned i = 0; going && i < PROBE_ROUNDS; i++)
                going = take(o, &n, deadline_ns, &ret->round_ns[i]);
        if (!going) {
                leave(o);
                return PROBE_LATE;
        }
        return o->second ? PROBE_AT_OTHER_END : PROBE_TAKEN;
}

/* Bounds the difference of the two clocks: the second end's reading lies between two of the first's. An uncounted first
 * part synchronizes both ends. */
static enum probe_absence take_offset(const struct probe_order *o, uint32_t n, struct probe_offset *ret) {
        struct probe_page *page = o->page;
        uint64_t deadline_ns = util_now_ns() + SERIES_NS;
        int64_t low_ns = INT64_MIN, high_ns = INT64_MAX;
        for (unsigned i = 0; i < 2 * TICKS; i++, n += 2) {
                uint64_t begin_ns = util_now_ns();
                if (!o->second)
                        __atomic_store_n(&page->tick, n + 1, __ATOMIC_RELEASE);
                if (!spin_word(o, &page->tick, n + (o->second ? 1 : 2), deadline_ns)) {
                        leave(o);
                        return PROBE_LATE;
                }
                uint64_t now_ns = util_now_ns();
                if (o->second) {
                        page->tick_ns = now_ns;
                        __atomic_store_n(&page->tick, n + 2, __ATOMIC_RELEASE);
                } else if (i >= TICKS) {
                        int64_t least = (int64_t) (page->tick_ns - now_ns), most = (int64_t) (page->tick_ns - begin_ns);
                        low_ns = least > low_ns ? least : low_ns;
                        high_ns = most < high_ns ? most : high_ns;
                }
        }
        if (o->second)
                return PROBE_AT_OTHER_END;
        *ret = (struct probe_offset){.low_ns = low_ns, .high_ns = high_ns};
        return PROBE_TAKEN;
}

/* Takes this end's turn, with the other end asleep, and waits for the other's. False: the other's did not come. */
static bool take_turns(const struct probe_order *o, unsigned char *memory, struct probe *p) {
        uint32_t base = o->pass * TURNS, cpu = 0;
        struct probe_page *page = o->page;
        if (o->second && !await_word(o, &page->turn, base + TURN_FIRST, util_now_ns() + TURN_NS))
                return false;
        work(memory, p);
        (void) getcpu(&cpu, NULL);
        __atomic_store_n(&page->cpus[o->second], cpu, __ATOMIC_RELEASE);
        set_word(&page->turn, base + (o->second ? TURN_SECOND : TURN_FIRST));
        return o->second || await_word(o, &page->turn, base + TURN_SECOND, util_now_ns() + TURN_NS);
}

static void take_pair(const struct probe_order *o, unsigned char *memory, struct probe *p) {
        const struct probe_page *page = o->page;
        if (!take_turns(o, memory, p)) {
                leave(o);
                if (p->work_ns == 0) /* the other end's turn did not come; this end's figures hold all the same */
                        work(memory, p);
                set_absence(p, PROBE_HAND_OVER, PROBE_LATE);
                set_absence(p, PROBE_WAKE_UP, PROBE_LATE);
                p->offset.absence = PROBE_LATE;
                return;
        }
        /* all words start at a value that no earlier pass can have reached */
        uint32_t n = o->pass * PASS_STEPS;
        enum probe_absence line = PROBE_SAME_CPU, offset = PROBE_SAME_CPU;
        round_of_both bell = wake_up_in_turn;
        if (__atomic_load_n(&page->cpus[0], __ATOMIC_ACQUIRE) != __atomic_load_n(&page->cpus[1], __ATOMIC_ACQUIRE)) {
                line = take_together(o, hand_over, n, &p->series[PROBE_HAND_OVER]);
                note_cpu(p);
                offset = line == PROBE_LATE ? line : take_offset(o, n, &p->offset);
                note_cpu(p);
                bell = wake_up;
        }
        set_absence(p, PROBE_HAND_OVER, line);
        p->offset.absence = offset;
        set_absence(p, PROBE_WAKE_UP,
                    offset == PROBE_LATE ? offset : take_together(o, bell, n, &p->series[PROBE_WAKE_UP]));
}

/* NULL: there is none. */
static unsigned char *map_memory(void) {
        unsigned char *memory =
                mmap(NULL, 2 * PROBE_COPY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
                return NULL;
        (void) madvise(memory, 2 * PROBE_COPY_BYTES,
                       MADV_NOHUGEPAGE);            /* the size of its pages must not depend on chance */
        memset(memory, 0x5a, 2 * PROBE_COPY_BYTES); /* untouched memory would all be the kernel's page of zeros */
        return memory;
}

void probe_take(const struct probe_order *o, struct probe *ret) {
        struct probe p = {.thread = o->thread};
        uint64_t begin_ns = util_now_ns();
        unsigned char *memory = map_memory();
        (void) getcpu(&p.cpu, NULL);
        if (o->page) {
                take_pair(o, memory, &p);
        } else {
                enum probe_absence alone = o->no_memory ? PROBE_NO_MEMORY : PROBE_ONE_END;
                enum probe_absence absence = o->thread > 0 ? PROBE_OTHER_THREAD : alone;
                work(memory, &p);
                set_absence(&p, PROBE_HAND_OVER, absence);
                set_absence(&p, PROBE_WAKE_UP, absence);
                p.offset.absence = absence;
        }
        note_cpu(&p);
        if (memory)
                (void) munmap(memory, 2 * PROBE_COPY_BYTES);
        p.cost_ns = util_now_ns() - begin_ns;
        *ret = p;
}
