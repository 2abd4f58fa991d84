/* SPDX-License-Identifier: MIT */

/* The cold side of io_uring: a ring per worker, what is registered with it, and operations that a signal met. */

#include "agent/transport/uring/uring.h"

#include "agent/base/agent.h"
#include "agent/os/procfs.h"
#include "schema/json/json.h"
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

#define ENTRIES 4u                   /* an operation and its cancellation */
#define LOCKED_NS (5 * NSEC_PER_SEC) /* that the kernel may still hold memory of agents which have ended */
#define LOCKED_AGAIN_MS 1
#define CANCEL_ID 1u /* user_data of a cancellation; an operation's is 0 */
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

/* An fsync, or a write that a file's system cannot do without waiting, goes to threads of the kernel's. Where a worker
 * was put they follow by themselves since 6.2 only (a thread inherits what sched_setaffinity() asked for): on another
 * CPU the copy would not be the one that is to be measured. They are the worker's, whichever of its rings they serve.
 */
static int keep_workers(struct io_uring *ring) {
        struct cpumask mine;
        int r = cpumask_get_affinity(0, &mine);
        return r < 0 ? r : io_uring_register_iowq_aff(ring, sizeof mine.bits, (const cpu_set_t *) (const void *) &mine);
}

/* Makes it again while the kernel gives back what others have locked, which it does a while after their end. */
static int make_ring(struct io_uring *ring, struct io_uring_params *p) {
        const struct io_uring_params asked = *p;
        uint64_t deadline_ns = util_now_ns() + LOCKED_NS;
        int r;
        while ((r = io_uring_queue_init_params(ENTRIES, ring, p)) == -ENOMEM && util_now_ns() < deadline_ns) {
                (void) poll(NULL, 0, LOCKED_AGAIN_MS);
                *p = asked;
        }
        return r;
}

/* With all that helps a ring of one thread, as far as the kernel has it: deferred task work since 6.1, a single issuer
 * since 6.0, cooperative task work since 5.19. */
int uring_set_up(struct worker *w, struct io_uring *ring, unsigned completions, struct uring_setup *ret) {
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
                r = make_ring(ring, &p);
        }
        if (r < 0)
                return refused(w, -r);
        ret->workers_error = -keep_workers(ring);
        return 0;
}

/* To whom RLIMIT_MEMLOCK does not apply. */
static bool may_lock_memory(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
        return syscall(SYS_capget, &header, data) == 0 &&
               (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK));
}

/* The limit is for all of the user's threads together, and newer kernels count rings, too. Each thread comes to the
 * same answer: what some have registered they keep for good, and others' rings, or sends that pin pages, would have to
 * do without. */
static bool has_room(const struct worker *w, uint64_t pages) {
        const struct agent *a = w->agent;
        uint64_t all = (pages + point_ring_pages(&a->setup.point)) * a->n_workers;
        struct rlimit memlock = {};
        return may_lock_memory() ||
               (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0 &&
                all <= memlock.rlim_cur / (uint64_t) sysconf(_SC_PAGESIZE)); /* RLIM_INFINITY: more than there is */
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

/* Registering saves the kernel a look-up per operation. What cannot be registered is used as it is, and the report says
 * so. */
static void enroll(struct worker *w, struct uring *u, unsigned buffers) {
        struct iovec buffer = {.iov_base = w->buffer, .iov_len = w->size};
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
        u->files_error = -io_uring_register_files(&u->ring, u->fds, URING_ENDS);
        if (u->files_error == 0) {
                u->fds[URING_OUT] = URING_OUT;
                u->fds[URING_IN] = URING_IN;
                u->sqe_flags = IOSQE_FIXED_FILE;
        }
        if (!u->no_buffer) {
                u->buffer_error = -uring_register(w, &u->ring, &buffer, 1, buffers * ((w->size + page - 1) / page));
                u->fixed_buffer = u->buffer_error == 0;
        }
        (void) io_uring_register_ring_fd(&u->ring); /* since 5.18; without it each call takes a descriptor's look-up */
}

int uring_attach(struct worker *w, unsigned buffers, const char *no_buffer) {
        _cleanup_free_ struct uring *u = calloc(1, sizeof *u);
        if (!u)
                return failure_set(&w->failure, ENOMEM, "no memory for a ring");
        u->no_buffer = no_buffer;
        u->fds[URING_OUT] = w->send_fd;
        u->fds[URING_IN] = w->receive_fd;
        int r = uring_set_up(w, &u->ring, 0, &u->setup);
        if (r < 0)
                return r;
        enroll(w, u, buffers);
        w->engine = util_steal(&u);
        return 0;
}

void uring_detach(struct worker *w) {
        struct uring *u = w->engine;
        if (u)
                io_uring_queue_exit(&u->ring);
        free(u);
        w->engine = NULL;
}

/* Takes what has completed; false when the operation is not among it. */
static bool reap(struct uring *u, int *ret, bool *ret_cancelled) {
        struct io_uring_cqe *cqe;
        bool found = false;
        while (io_uring_peek_cqe(&u->ring, &cqe) == 0) {
                if (cqe->user_data == CANCEL_ID) {
                        *ret_cancelled = true;
                } else {
                        *ret = cqe->res;
                        found = true;
                }
                io_uring_cqe_seen(&u->ring, cqe);
        }
        return found;
}

static void cancel(struct uring *u) {
        struct io_uring_sqe *sqe = uring_entry(u);
        io_uring_prep_cancel64(sqe, 0, 0);
        sqe->user_data = CANCEL_ID;
}

/* A wait that a signal ended is -EINTR, or 1 where the same call has submitted something. */
int uring_await(struct worker *w, struct uring *u, int submitted) {
        bool interrupted = submitted == 1 || submitted == -EINTR;
        bool asked = false, answered = false;
        int result = 0, r = submitted;

        for (bool over = false;;) {
                over = reap(u, &result, &answered) || over;
                if (over && (!asked || answered))
                        break;
                if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY)
                        return r; /* the ring itself is broken: the process ends with this */
                if (answered) /* not to be cancelled just then, as it was being tried again: the next signal asks anew
                               */
                        asked = answered = false;
                if (interrupted)
                        worker_count(&w->eintr);
                if (interrupted && !asked && worker_over(w)) {
                        cancel(u);
                        asked = true;
                }
                r = io_uring_submit_and_wait(&u->ring, 1);
                interrupted = r == -EINTR;
        }
        return result == -ECANCELED ? -EINTR : result; /* as the system call would say it */
}

static void put_workers_reason(struct json_writer *w, int error) {
        json_member_string(w, "workers_affinity_reason",
                           error == EINVAL ? "this kernel cannot be told where its threads are to run (since 5.14)"
                                           : strerrordesc_np(error));
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

void uring_facts_add_worker(struct uring_facts *facts, const struct worker *w) {
        const struct uring *u = w->engine;
        if (!u)
                return;
        uring_facts_add(facts, &u->setup, u->files_error,
                        u->fixed_buffer             ? NULL
                        : u->no_buffer              ? u->no_buffer
                        : u->buffer_error == ENOMEM ? "RLIMIT_MEMLOCK"
                                                    : strerrordesc_np(u->buffer_error));
}

void uring_put(struct json_writer *w, const char *key, const struct uring_facts *facts) {
        if (facts->rings == 0)
                return;
        json_put_key(w, key);
        json_object_begin(w);
        json_member_u64(w, "queue_depth", 1);
        json_member_string(w, "setup_flags", facts->setup.flags);
        json_member_bool(w, "registered_files", facts->files_error == 0);
        if (facts->files_error)
                json_member_string(w, "registered_files_reason", strerrordesc_np(facts->files_error));
        json_member_bool(w, "registered_buffers", !facts->buffers_reason);
        if (facts->buffers_reason)
                json_member_string(w, "registered_buffers_reason", facts->buffers_reason);
        json_member_bool(w, "workers_affinity", facts->setup.workers_error == 0);
        if (facts->setup.workers_error)
                put_workers_reason(w, facts->setup.workers_error);
        json_object_end(w);
}
