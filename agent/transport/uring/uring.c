/* SPDX-License-Identifier: MIT */

/* The cold side of io_uring: a ring per worker, its registered resources, and interrupted operations. */

#include "agent/transport/uring/uring.h"

#include "agent/base/agent.h"
#include "agent/os/procfs.h"
#include "schema/protocol/effective.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOCKED_NS (5 * NSEC_PER_SEC) /* time in which the kernel may still account memory of ended agents */
#define LOCKED_AGAIN_MS 1
#define SETTING "/proc/sys/kernel/io_uring_disabled"

static int refused(struct worker *w, int error) {
        long setting = procfs_setting(SETTING);
        if (setting > 0)
                return failure_set(&w->failure, error,
                                   "engine io_uring: kernel.io_uring_disabled is %ld: %s (io_uring_setup: %s)", setting,
                                   setting == 1 ? "only for the group of kernel.io_uring_group" : "for nobody",
                                   strerrordesc_np(error));
        return failure_set(&w->failure, error, "engine io_uring: io_uring_setup: %s%s", strerrordesc_np(error),
                           error == EPERM    ? ": a seccomp filter or the container forbids it"
                           : error == ENOSYS ? ": this kernel has none, or a seccomp filter hides it"
                           : error == ENOMEM ? ": RLIMIT_MEMLOCK is too small, or memory is short"
                                             : "");
}

/* Repeats the set-up while the kernel still accounts the locked memory of ended processes, which it frees with a
 * delay. */
static int make_ring(struct io_uring *ring, unsigned entries, struct io_uring_params *p) {
        const struct io_uring_params requested = *p;
        uint64_t deadline_ns = util_now_ns() + LOCKED_NS;
        int r;
        while ((r = io_uring_queue_init_params(entries, ring, p)) == -ENOMEM && util_now_ns() < deadline_ns) {
                (void) poll(NULL, 0, LOCKED_AGAIN_MS);
                *p = requested;
        }
        return r;
}

/* Uses all flags that suit a ring of one thread, as far as the kernel supports them: deferred task work since 6.1, a
 * single issuer since 6.0, cooperative task work since 5.19. */
int uring_set_up(struct worker *w, struct io_uring *ring, unsigned entries, unsigned completions,
                 struct uring_setup *ret) {
        static const struct {
                unsigned flags;
                const char *names;
        } tries[] = {
                {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, "single_issuer,defer_taskrun"},
                {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN, "single_issuer,coop_taskrun"},
                {IORING_SETUP_COOP_TASKRUN, "coop_taskrun"},
                {0, ""},
        };
        int r = -EINVAL;
        for (size_t i = 0; r == -EINVAL && i < ELEMENTS(tries); i++) {
                struct io_uring_params p = {.flags = tries[i].flags | (completions ? IORING_SETUP_CQSIZE : 0),
                                            .cq_entries = completions};
                ret->flags = tries[i].names;
                r = make_ring(ring, entries, &p);
        }
        if (r < 0)
                return refused(w, -r);
        /* The kernel's threads, which execute an fsync or a write that would block, are restricted to the worker's
         * CPUs. They follow its affinity by themselves only since 6.2 (a thread inherits the mask of
         * sched_setaffinity()): on another CPU a different copy would be measured. A worker's rings share these
         * threads. */
        struct cpumask mine;
        r = cpumask_get_affinity(0, &mine);
        if (r == 0)
                r = io_uring_register_iowq_aff(ring, sizeof mine.bits, (const cpu_set_t *) (const void *) &mine);
        ret->workers_error = -r;
        return 0;
}

/* Whether RLIMIT_MEMLOCK does not apply to this process. */
static bool may_lock_memory(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
        return syscall(SYS_capget, &header, data) == 0 &&
               (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK));
}

/* The limit applies to all of the user's threads together, and newer kernels count rings, too. Each thread computes the
 * same result: memory that some registered would remain locked, and others' rings, or sends that pin pages, would lack
 * it. */
static bool has_room(const struct worker *w, uint64_t pages) {
        const struct agent *a = w->agent;
        uint64_t all = (pages + point_ring_pages(&a->setup.point)) * a->n_workers;
        struct rlimit memlock = {};
        return may_lock_memory() ||
               (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0 &&
                all <= memlock.rlim_cur / (uint64_t) sysconf(_SC_PAGESIZE)); /* also RLIM_INFINITY */
}

int uring_register(const struct worker *w, struct io_uring *ring, const struct iovec *memory, unsigned n,
                   uint64_t pages) {
        uint64_t deadline_ns = util_now_ns() + LOCKED_NS;
        int r;
        if (!has_room(w, pages))
                return -ENOMEM;
        while ((r = io_uring_register_buffers(ring, memory, n)) == -ENOMEM && util_now_ns() < deadline_ns)
                (void) poll(NULL, 0, LOCKED_AGAIN_MS);
        return r;
}

/* Takes all completions; false when that of the operation is not among them. */
static bool reap(struct uring *u, int *ret, bool *ret_cancelled) {
        struct io_uring_cqe *cqe;
        bool found = false;
        while (io_uring_peek_cqe(&u->ring, &cqe) == 0) {
                if (cqe->user_data == URING_CANCEL_ID) {
                        *ret_cancelled = true;
                } else {
                        *ret = cqe->res;
                        found = true;
                }
                io_uring_cqe_seen(&u->ring, cqe);
        }
        return found;
}

/* Waits for the completion of the operation under way, which did not arrive in the call that submitted it. Returns its
 * result. A wait that a signal ended is -EINTR, or 1 where the same call has submitted an operation. */
static int await(struct worker *w, struct uring *u, int submitted) {
        bool interrupted = submitted == 1 || submitted == -EINTR;
        bool cancelling = false, cancel_completed = false;
        int result = 0, r = submitted;

        for (bool over = false;;) {
                over = reap(u, &result, &cancel_completed) || over;
                if (over && (!cancelling || cancel_completed))
                        break;
                if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY)
                        return r;     /* the ring itself has failed, which ends the process */
                if (cancel_completed) /* not cancellable while it was retried: the next signal cancels again */
                        cancelling = cancel_completed = false;
                if (interrupted)
                        worker_count(&w->eintr);
                if (interrupted && !cancelling && worker_over(w)) {
                        struct io_uring_sqe *sqe = uring_entry(u);
                        io_uring_prep_cancel64(sqe, 0, 0);
                        sqe->user_data = URING_CANCEL_ID;
                        cancelling = true;
                }
                r = io_uring_submit_and_wait(&u->ring, 1);
                interrupted = r == -EINTR;
        }
        return result == -ECANCELED ? -EINTR : result; /* as the system call would return it */
}

ssize_t uring_run(struct worker *w, struct uring *u, struct io_uring_sqe *sqe) {
        struct io_uring_cqe *cqe = NULL;
        int result;

        sqe->flags |= u->sqe_flags;
        sqe->user_data = 0;
        int r = io_uring_submit_and_wait(&u->ring, 1);
        if (LOOP_UNLIKELY(r != 1 || io_uring_peek_cqe(&u->ring, &cqe) != 0)) {
                result = await(w, u, r);
        } else {
                result = cqe->res;
                io_uring_cqe_seen(&u->ring, cqe);
        }
        if (LOOP_UNLIKELY(result < 0)) {
                errno = -result;
                return -1;
        }
        return result;
}

void uring_facts_add(struct uring_facts *facts, const struct uring_setup *setup, int files_error,
                     const char *buffers_reason) {
        if (facts->rings++ == 0)
                facts->setup.flags = setup->flags;
        if (facts->setup.workers_error == 0)
                facts->setup.workers_error = setup->workers_error;
        if (facts->files_error == 0)
                facts->files_error = files_error;
        if (!facts->buffers_reason)
                facts->buffers_reason = buffers_reason;
}

void uring_put(struct effective *e, enum setting group, const struct uring_facts *facts) {
        if (facts->rings == 0)
                return;
        effective_group(e, group);
        effective_add_number(e, SETTING_QUEUE_DEPTH, facts->queue_depth ? facts->queue_depth : 1);
        effective_add_text(e, SETTING_SETUP_FLAGS, facts->setup.flags);
        effective_add_bool(e, SETTING_REGISTERED_FILES, facts->files_error == 0);
        if (facts->files_error)
                effective_add_reason(e, SETTING_REGISTERED_FILES, strerrordesc_np(facts->files_error));
        effective_add_bool(e, SETTING_REGISTERED_BUFFERS, !facts->buffers_reason);
        if (facts->buffers_reason)
                effective_add_reason(e, SETTING_REGISTERED_BUFFERS, facts->buffers_reason);
        effective_add_bool(e, SETTING_WORKERS_AFFINITY, facts->setup.workers_error == 0);
        if (facts->setup.workers_error)
                effective_add_reason(e, SETTING_WORKERS_AFFINITY,
                                     facts->setup.workers_error == EINVAL
                                             ? "this kernel cannot restrict its threads to CPUs (since 5.14)"
                                             : strerrordesc_np(facts->setup.workers_error));
        effective_group(e, SETTING_COUNT);
}
