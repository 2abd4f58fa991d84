/* SPDX-License-Identifier: MIT */

/*
 * Opening, reading and subtracting perf events. Owns the descriptors of a perf_set. Opening is called by the daemon,
 * the rest by the agent's leader.
 */

#include "schema/measure/perf.h"

#include "schema/json/json.h"
#include "schema/util.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>

#define CACHE(cache, op, result) ((uint64_t) (cache) | (uint64_t) (op) << 8 | (uint64_t) (result) << 16)

static const struct event_term {
        const char *name;
        uint32_t type;
        uint64_t config;
} terms[PERF_EVENT_COUNT] = {
        [PERF_CYCLES] = {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
        [PERF_INSTRUCTIONS] = {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
        [PERF_L1D_READ_MISSES] = {"l1d_read_misses", PERF_TYPE_HW_CACHE,
                                  CACHE(PERF_COUNT_HW_CACHE_L1D, PERF_COUNT_HW_CACHE_OP_READ,
                                        PERF_COUNT_HW_CACHE_RESULT_MISS)},
        [PERF_LLC_MISSES] = {"llc_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
        [PERF_DTLB_MISSES] = {"dtlb_misses", PERF_TYPE_HW_CACHE,
                              CACHE(PERF_COUNT_HW_CACHE_DTLB, PERF_COUNT_HW_CACHE_OP_READ,
                                    PERF_COUNT_HW_CACHE_RESULT_MISS)},
        [PERF_BRANCH_MISSES] = {"branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
};

static int open_one(enum perf_event event, enum perf_mode mode, pid_t tid, int leader) {
        struct perf_event_attr attr = {
                .size = sizeof(attr),
                .type = terms[event].type,
                .config = terms[event].config,
                .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
                .exclude_hv = 1,
        };
        attr.exclude_kernel = mode == PERF_USER;
        attr.exclude_user = mode == PERF_KERNEL;
        long fd = syscall(SYS_perf_event_open, &attr, tid, -1, leader, (unsigned long) PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? -errno : (int) fd;
}

int perf_open_cpu(int cpu, uint32_t type, uint64_t config, int leader) {
        struct perf_event_attr attr = {
                .size = sizeof(attr),
                .type = type,
                .config = config,
                .read_format = PERF_FORMAT_GROUP,
        };
        long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, leader, (unsigned long) PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? -errno : (int) fd;
}

/* Groups of two for each mode, in the order of the events: where the kernel multiplexes, instructions per cycle, misses
 * of the last cache per miss of the first, and misses of the TLB beside mispredictions are of the same slices of time.
 * A group of all events would not fit the PMU, and would then never count; a PMU that has no room for two (EINVAL)
 * counts each by itself. */
_Static_assert(PERF_INSTRUCTIONS == PERF_CYCLES + 1 && PERF_LLC_MISSES == PERF_L1D_READ_MISSES + 1 &&
                       PERF_BRANCH_MISSES == PERF_DTLB_MISSES + 1 && PERF_CYCLES % 2 == 0,
               "pairs stand together");
static void kernel_open(void *userdata, pid_t tid, struct perf_handles *ret) {
        (void) userdata;
        for (enum perf_event event = 0; event < PERF_EVENT_COUNT; event++)
                for (enum perf_mode mode = 0; mode < PERF_MODE_COUNT; mode++) {
                        int first = event % 2 ? ret->of[event - 1][mode] : -1;
                        int *handle = &ret->of[event][mode];
                        *handle = open_one(event, mode, tid, first < 0 ? -1 : first);
                        if (*handle == -EINVAL && first >= 0)
                                *handle = open_one(event, mode, tid, -1);
                }
}

static int kernel_read(void *userdata, int handle, struct perf_reading *ret) {
        (void) userdata;
        uint64_t words[3];
        ssize_t n = read(handle, words, sizeof(words));
        if (n < 0)
                return -errno;
        if ((size_t) n != sizeof(words))
                return -ENODATA; /* a pinned event in error state reads as end of file */
        *ret = (struct perf_reading){.value = words[0], .enabled_ns = words[1], .running_ns = words[2]};
        return 0;
}

static void kernel_close(void *userdata, int handle) {
        (void) userdata;
        (void) util_close(handle);
}

const struct perf_source perf_source_kernel = {.open = kernel_open, .read = kernel_read, .close = kernel_close};

void perf_handles_fill(struct perf_handles *handles, int error) {
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        handles->of[event][mode] = error;
}

void perf_handles_close(struct perf_handles *handles, const struct perf_source *source, int error) {
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        if (handles->of[event][mode] >= 0)
                                source->close(source->userdata, handles->of[event][mode]);
        perf_handles_fill(handles, error);
}

static void none_open(void *userdata, pid_t tid, struct perf_handles *ret) {
        (void) userdata;
        (void) tid;
        perf_handles_fill(ret, -ECANCELED);
}

/* A handle that is not open is neither read nor closed. */
const struct perf_source perf_source_none = {.open = none_open};

void perf_set_init(struct perf_set *set, const struct perf_source *source, pid_t tid) {
        set->source = source;
        source->open(source->userdata, tid, &set->handles);
}

void perf_set_deinit(struct perf_set *set) {
        perf_handles_close(&set->handles, set->source, -EBADF);
}

void perf_set_read(const struct perf_set *set, struct perf_snapshot *ret) {
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++) {
                        int handle = set->handles.of[event][mode];
                        ret->readings[event][mode] = (struct perf_reading){0};
                        ret->errors[event][mode] = handle < 0 ? handle
                                                              : set->source->read(set->source->userdata, handle,
                                                                                  &ret->readings[event][mode]);
                }
}

static struct perf_count count_between(const struct perf_reading *later, const struct perf_reading *earlier) {
        uint64_t value = later->value - earlier->value;
        uint64_t enabled = later->enabled_ns - earlier->enabled_ns;
        uint64_t running = later->running_ns - earlier->running_ns;
        if (enabled == 0) /* the thread did not run in between: nothing happened, and that is known */
                return (struct perf_count){.known = true, .value = value, .fraction = 1};
        if (running == 0)
                return (struct perf_count){.error = -ENODATA};
        if (running >= enabled)
                return (struct perf_count){.known = true, .value = value, .fraction = 1};
        double fraction = (double) running / (double) enabled;
        return (struct perf_count){
                .known = true, .value = (uint64_t) ((double) value / fraction), .fraction = fraction};
}

void perf_subtract(const struct perf_snapshot *later, const struct perf_snapshot *earlier, struct perf_totals *ret) {
        ret->threads = 1;
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++) {
                        int error =
                                later->errors[event][mode] ? later->errors[event][mode] : earlier->errors[event][mode];
                        ret->counts[event][mode] =
                                error ? (struct perf_count){.error = error}
                                      : count_between(&later->readings[event][mode], &earlier->readings[event][mode]);
                }
}

void perf_totals_add(struct perf_totals *into, const struct perf_totals *t) {
        if (into->threads == 0) {
                *into = *t;
                return;
        }
        into->threads += t->threads;
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++) {
                        struct perf_count *a = &into->counts[event][mode];
                        const struct perf_count *b = &t->counts[event][mode];
                        if (a->known && !b->known)
                                *a = *b;
                        if (!a->known || !b->known)
                                continue;
                        a->value += b->value;
                        a->fraction = a->fraction < b->fraction ? a->fraction : b->fraction;
                }
}

void perf_totals_discard(struct perf_totals *t, int error) {
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        if (t->counts[event][mode].known)
                                t->counts[event][mode] = (struct perf_count){.error = error};
}

const char *perf_reason(int error) {
        const char *text = strerrordesc_np(-error);
        switch (-error) {
        case ENOENT:
        case EOPNOTSUPP:
        case ENODEV:
                return "this machine has no such counter (a virtual machine often has none)";
        case EACCES:
        case EPERM:
                return "not allowed to ipclabd: kernel.perf_event_paranoid has to be 1 at most, or 2 for its service, "
                       "which has CAP_PERFMON (Debian 12's 3 requires CAP_SYS_ADMIN); or a seccomp filter forbids it";
        case ESRCH:
                return "refused by ipclabd: the thread is none of this agent's, or has ended";
        case ETIMEDOUT:
                return "ipclabd did not open the counters in time";
        case ENOSYS:
                return "this kernel has no perf_event_open";
        case EMFILE:
        case ENFILE:
                return "too many threads for the limit of open files (RLIMIT_NOFILE)";
        case ENODATA:
                return "the event never got onto the hardware in this time: other users of the counters hold "
                       "them, or the thread ran on cores of another type";
        case ECANCELED:
                return "not counted: the kernel stores and loads the counters at each context switch, and these are "
                       "what is measured here";
        case ECHILD:
                return "not counted: the kernel did a part of the work in threads of its own (iou-wrk), which the "
                       "counters of a thread do not see";
        case EBUSY:
                return "the counters are held by another user";
        case 0:
                return "not counted";
        default:
                return text ? text : "unknown error";
        }
}

struct named_count {
        char name[32];
        struct perf_count count;
};
#define NAMED_MAX ((size_t) PERF_EVENT_COUNT * 3)

/* Both modes as one: known when both are. */
static struct perf_count both_modes(const struct perf_count c[PERF_MODE_COUNT]) {
        const struct perf_count *user = &c[PERF_USER], *kernel = &c[PERF_KERNEL];
        if (!user->known)
                return *user;
        if (!kernel->known)
                return *kernel;
        return (struct perf_count){.known = true,
                                   .value = user->value + kernel->value,
                                   .fraction = user->fraction < kernel->fraction ? user->fraction : kernel->fraction};
}

struct perf_count perf_totals_of(const struct perf_totals *t, enum perf_event event) {
        return both_modes(t->counts[event]);
}

bool perf_totals_are_scaled(const struct perf_totals *t) {
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        if (t->counts[event][mode].known && t->counts[event][mode].fraction < 1)
                                return true;
        return false;
}

static size_t name_counts(const struct perf_totals *t, struct named_count ret[NAMED_MAX]) {
        static const char *const suffixes[PERF_MODE_COUNT] = {"user", "kernel"};
        size_t n = 0;
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++) {
                const struct perf_count *c = t->counts[event];
                (void) snprintf(ret[n].name, sizeof(ret[n].name), "%s", terms[event].name);
                ret[n++].count = both_modes(c);
                if (!c[PERF_USER].known && !c[PERF_KERNEL].known)
                        continue;
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++) {
                        (void) snprintf(ret[n].name, sizeof(ret[n].name), "%s_%s", terms[event].name, suffixes[mode]);
                        ret[n++].count = c[mode];
                }
        }
        return n;
}

bool perf_totals_are_none(const struct perf_totals *t) {
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++) {
                        const struct perf_count *c = &t->counts[event][mode];
                        if (c->known || c->error != t->counts[0][0].error)
                                return false;
                }
        return true;
}

static void put_fractions(struct json_writer *w, const struct named_count *named, size_t n) {
        json_member_object(w, "multiplexed");
        for (size_t i = 0; i < n; i++)
                if (named[i].count.known && named[i].count.fraction < 1)
                        json_member_double(w, named[i].name, named[i].count.fraction);
        json_object_end(w);
}

static void put_reasons(struct json_writer *w, const struct named_count *named, size_t n, bool none) {
        json_member_object(w, "reasons");
        if (none)
                json_member_string(w, "hardware", perf_reason(named[0].count.error));
        for (size_t i = 0; !none && i < n; i++)
                if (!named[i].count.known)
                        json_member_string(w, named[i].name, perf_reason(named[i].count.error));
        json_object_end(w);
}

void perf_totals_to_json(const struct perf_totals *t, struct json_writer *w) {
        struct named_count named[NAMED_MAX];
        size_t n = name_counts(t, named);
        bool scaled = false, unknown = false;

        for (size_t i = 0; i < n; i++) {
                const struct perf_count *c = &named[i].count;
                json_member_u64_if(w, named[i].name, c->known, c->value);
                scaled |= c->known && c->fraction < 1;
                unknown |= !c->known;
        }
        if (scaled)
                put_fractions(w, named, n);
        if (unknown)
                put_reasons(w, named, n, perf_totals_are_none(t));
}
