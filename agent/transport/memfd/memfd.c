/* SPDX-License-Identifier: MIT */

/*
 * Transfer of sealed memory: a message lies in a memfd of its own, whose descriptor is sent through a Unix socket.
 *
 *      fresh   for each message the sender makes a memfd, maps it, writes, unmaps it, seals it and sends it
 *              (SCM_RIGHTS); the receiver checks seals and size, maps it, reads, unmaps and closes it. All of that is
 *              part of the message. Sealed against everything, it cannot change under its reader
 *      pool    the memfds are passed once, beforehand, and used in turn: a message is the number of one. Either end
 *              maps it for the message and unmaps it. Sealed against a change of size, so that its reader never faults
 *              beyond a truncated end; not against writes, as its sender writes again
 *
 * No more messages are under way than there are slots (file-layout.h), so that memory and descriptors are bounded. A
 * round trip has one each way, and its answer frees it; the receiver of a stream acknowledges what it has read, every
 * quarter of the slots.
 *
 * Source: man 2 memfd_create, F_ADD_SEALS(2const), man 7 unix (SCM_RIGHTS, ETOOMANYREFS).
 */

#include "agent/base/wait.h"
#include "agent/loop/loops.h"
#include "agent/os/policy.h"
#include "agent/os/rights.h"
#include "agent/transport/rendezvous.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"
#include "schema/transport/file-layout.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#ifndef MFD_NOEXEC_SEAL /* since Linux 6.3 */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define SEALS_POOL (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define SEALS_FRESH (SEALS_POOL | F_SEAL_WRITE)
#define SLOTS_MAX FILE_LAYOUT_SLOTS_MAX

_Static_assert(SLOTS_MAX <= 253, "a packet carries all descriptors of a pool: SCM_MAX_FD");

/* A sender's packet: the message's slot. A receiver's: the number of messages read since its last packet. */
struct packet {
        uint64_t number;
};

struct memfd_channel {
        uint32_t slots;
        uint32_t out, in; /* the slots that are next */
        uint32_t room;    /* messages that a stream's sender may send before the next acknowledgement */
        uint32_t unacknowledged, acknowledge_every; /* of a stream's receiver; every 0: the answer frees the message */
        bool placed;                                /* buffers have a policy of their own */
        unsigned char *message;                     /* mapped by its receiver */
        int message_fd;                             /* fresh: of that */
        int out_fds[SLOTS_MAX], in_fds[SLOTS_MAX];  /* of a pool, else -1 */
};

static unsigned create_flags; /* written before workers start */

/* --- errors --- */

static int after_error(struct worker *w, int error, const char *call) {
        if (error == EPIPE || error == ECONNRESET)
                return failure_set_peer(&w->failure, w->agent->peer_role, error,
                                        "closed the channel: %s failed in thread %" PRIu32 ": %s", call, w->index,
                                        strerrordesc_np(error));
        if (error == ETOOMANYREFS || error == EMFILE)
                return failure_set(&w->failure, error,
                                   "%s failed in thread %" PRIu32 ": more descriptors are open or under way than %s "
                                   "allows (to raise it: %s)",
                                   call, w->index, host_limits[HOST_NOFILE].name, host_limits[HOST_NOFILE].raise);
        return failure_set(&w->failure, error, "%s failed in thread %" PRIu32 ": %s", call, w->index,
                           strerrordesc_np(error));
}

/* --- packets --- */

/* 0; negative errno. A message under way is completed also after interruptions. */
static int send_packet(struct worker *w, uint64_t number, const int *fds, unsigned n_fds) {
        alignas(struct cmsghdr) char control[RIGHTS_SPACE(SLOTS_MAX)];
        struct packet p = {number};
        struct iovec iov = {&p, sizeof p};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        if (n_fds > 0)
                rights_put(&m, control, fds, n_fds);
        while (LOOP_UNLIKELY(sendmsg(w->send_fd, &m, MSG_NOSIGNAL) < 0)) {
                if (errno != EINTR)
                        return after_error(w, errno, "sendmsg");
                worker_count(&w->eintr);
        }
        return 0;
}

/* 0; WORKER_STOP where may_stop is set and the loop is over; negative errno with w->failure. */
static int receive_packet(struct worker *w, uint64_t *ret_number, int *ret_fds, unsigned n_fds, bool may_stop) {
        alignas(struct cmsghdr) char control[RIGHTS_SPACE(SLOTS_MAX)];
        struct packet p = {0};
        struct iovec iov = {&p, sizeof p};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        ssize_t n;
        m.msg_control = n_fds ? control : NULL;
        m.msg_controllen = n_fds ? RIGHTS_SPACE(n_fds) : 0;
        while (LOOP_UNLIKELY((n = recvmsg(w->receive_fd, &m, MSG_CMSG_CLOEXEC)) < 0)) {
                if (errno != EINTR)
                        return after_error(w, errno, "recvmsg");
                worker_count(&w->eintr);
                if (may_stop && worker_over(w))
                        return WORKER_STOP;
        }
        if (LOOP_UNLIKELY(n == 0))
                return failure_set_peer(&w->failure, w->agent->peer_role, EPIPE,
                                        "closed the channel of thread %" PRIu32, w->index);
        unsigned came = rights_take(&m, ret_fds, n_fds);
        for (unsigned i = 0; LOOP_UNLIKELY(came < n_fds) && i < came; i++)
                ret_fds[i] = util_close(ret_fds[i]);
        if (LOOP_UNLIKELY(n != (ssize_t) sizeof p || came != n_fds || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
                return failure_set_peer(
                        &w->failure, w->agent->peer_role, EBADMSG,
                        "sent %zd bytes and %u descriptors where %zu and %u were due, in thread %" PRIu32, n, came,
                        sizeof p, n_fds, w->index);
        *ret_number = p.number;
        return 0;
}

/* --- sealed memory --- */

static int create(struct worker *w, int *ret) {
        int fd = memfd_create("message", create_flags);
        if (fd < 0)
                return after_error(w, errno, "memfd_create");
        if (ftruncate(fd, (off_t) w->size) < 0) {
                int error = errno;
                (void) close(fd);
                return after_error(w, error, "ftruncate");
        }
        *ret = fd;
        return 0;
}

static int map_message(struct worker *w, int fd, int protection, int flags, unsigned char **ret) {
        void *p = mmap(NULL, w->size, protection, flags, fd, 0);
        if (LOOP_UNLIKELY(p == MAP_FAILED))
                return after_error(w, errno, "mmap");
        *ret = p;
        return 0;
}

/* Memory that carries messages has the policy of buffers, where the set-up gives one. It belongs to the memory and
 * applies to both ends' mappings. */
static int place(struct worker *w, unsigned char *memory) {
        const struct agent_placement *p = &w->agent->setup.placement;
        int r = policy_of_range(memory, w->size, p->buffer, &p->buffer_nodes);
        return r == 0 ? 0
                      : failure_set(&w->failure, -r,
                                    "the memory of a message of thread %" PRIu32 " cannot be placed: %s", w->index,
                                    strerrordesc_np(-r));
}

static int write_message(struct worker *w, int fd, const unsigned char *message, bool placed) {
        unsigned char *memory = NULL;
        int r = map_message(w, fd, PROT_READ | PROT_WRITE, MAP_SHARED, &memory);
        if (LOOP_UNLIKELY(r))
                return r;
        if (LOOP_UNLIKELY(placed))
                r = place(w, memory);
        if (LOOP_UNLIKELY(r == 0))
                memcpy(memory, message, w->size);
        (void) munmap(memory, w->size);
        return r;
}

static int seal(struct worker *w, int fd, int seals) {
        return LOOP_UNLIKELY(fcntl(fd, F_ADD_SEALS, seals) < 0) ? after_error(w, errno, "F_ADD_SEALS") : 0;
}

/* The reader checks seals and size itself and does not rely on its peer. */
static int check_sealed(struct worker *w, int fd, int seals) {
        struct stat st;
        int found = fcntl(fd, F_GET_SEALS);
        if (LOOP_UNLIKELY(found < 0 || fstat(fd, &st) < 0))
                return after_error(w, errno, found < 0 ? "F_GET_SEALS" : "fstat");
        if (LOOP_UNLIKELY((found & seals) != seals || (uint64_t) st.st_size != w->size))
                return failure_set_peer(&w->failure, w->agent->peer_role, EBADMSG,
                                        "passed memory of %jd bytes with seals %#x, in thread %" PRIu32
                                        ": %zu bytes with %#x were due",
                                        (intmax_t) st.st_size, (unsigned) found, w->index, w->size, (unsigned) seals);
        return 0;
}

/* --- the loops --- */

static int await_room(struct worker *w, struct memfd_channel *c) {
        uint64_t read = 0;
        int r = receive_packet(w, &read, NULL, 0, true);
        if (r)
                return r;
        if (read == 0 || read > c->slots)
                return failure_set_peer(&w->failure, w->agent->peer_role, EBADMSG,
                                        "acknowledged %" PRIu64 " messages of at most %" PRIu32, read, c->slots);
        c->room = (uint32_t) read;
        return 0;
}

/* In a round trip the other end's message frees the slot. */
LOOP_INLINE int memfd_acquire(struct worker *w, unsigned char **ret) {
        struct memfd_channel *c = w->channel;
        *ret = w->buffer;
        return LOOP_UNLIKELY(c->room == 0) ? await_room(w, c) : 0;
}

LOOP_INLINE void memfd_sent(struct worker *w, struct memfd_channel *c) {
        c->out = c->out + 1 == c->slots ? 0 : c->out + 1;
        if (w->agent->setup.point.workload == WORKLOAD_STREAM)
                c->room--;
}

LOOP_INLINE int fresh_send(struct worker *w, unsigned char *message) {
        struct memfd_channel *c = w->channel;
        int fd, r = create(w, &fd);
        if (LOOP_UNLIKELY(r))
                return r;
        r = write_message(w, fd, message, c->placed);
        if (r == 0)
                r = seal(w, fd, SEALS_FRESH);
        if (r == 0)
                r = send_packet(w, c->out, &fd, 1);
        (void) close(fd);
        memfd_sent(w, c);
        return r;
}

LOOP_INLINE int pool_send(struct worker *w, unsigned char *message) {
        struct memfd_channel *c = w->channel;
        int r = write_message(w, c->out_fds[c->out], message, false);
        if (r == 0)
                r = send_packet(w, c->out, NULL, 0);
        memfd_sent(w, c);
        return r;
}

/* Slots are used in turn. */
static int check_slot(struct worker *w, const struct memfd_channel *c, uint64_t slot) {
        return LOOP_UNLIKELY(slot != c->in)
                       ? failure_set_peer(&w->failure, w->agent->peer_role, EBADMSG,
                                          "sent slot %" PRIu64 " where %" PRIu32 " was due, in thread %" PRIu32, slot,
                                          c->in, w->index)
                       : 0;
}

/* Makes a private mapping, as Linux before 6.7 refuses a shared one of memory that is sealed against writes. It is
 * never written to, so that its pages are the memfd's own. */
LOOP_INLINE int memfd_map(struct worker *w, struct memfd_channel *c, int fd, unsigned char **ret) {
        int r = map_message(w, fd, PROT_READ, MAP_PRIVATE, &c->message);
        *ret = c->message;
        return r;
}

LOOP_INLINE int fresh_receive(struct worker *w, unsigned char **ret) {
        struct memfd_channel *c = w->channel;
        uint64_t slot;
        int r = receive_packet(w, &slot, &c->message_fd, 1, w->agent->end == END_SECOND);
        if (LOOP_UNLIKELY(r))
                return r;
        r = check_slot(w, c, slot);
        if (r == 0)
                r = check_sealed(w, c->message_fd, SEALS_FRESH);
        return r == 0 ? memfd_map(w, c, c->message_fd, ret) : r;
}

LOOP_INLINE int pool_receive(struct worker *w, unsigned char **ret) {
        struct memfd_channel *c = w->channel;
        uint64_t slot;
        int r = receive_packet(w, &slot, NULL, 0, w->agent->end == END_SECOND);
        if (LOOP_UNLIKELY(r))
                return r;
        r = check_slot(w, c, slot);
        return r == 0 ? memfd_map(w, c, c->in_fds[c->in], ret) : r;
}

/* A failure here appears in the next receive, as the channel is closed. */
LOOP_INLINE void memfd_release(struct worker *w, unsigned char *message) {
        struct memfd_channel *c = w->channel;
        (void) munmap(message, w->size);
        c->message = NULL;
        c->in = c->in + 1 == c->slots ? 0 : c->in + 1;
        if (c->acknowledge_every && ++c->unacknowledged == c->acknowledge_every) {
                (void) send_packet(w, c->unacknowledged, NULL, 0);
                c->unacknowledged = 0;
        }
}

LOOP_INLINE void fresh_release(struct worker *w, unsigned char *message) {
        struct memfd_channel *c = w->channel;
        c->message_fd = util_close(c->message_fd);
        memfd_release(w, message);
}

static const struct channel fresh_channel = {
        .acquire = memfd_acquire, .send = fresh_send, .receive = fresh_receive, .release = fresh_release};
static const struct channel pool_channel = {
        .acquire = memfd_acquire, .send = pool_send, .receive = pool_receive, .release = memfd_release};
TRANSPORT_LOOPS(fresh, fresh_channel);
TRANSPORT_LOOPS(pool, pool_channel);

static bool is_pool(const struct agent *a) {
        return a->setup.options.memfd == MEMFD_POOL;
}

static const struct transport_loops *memfd_loops(const struct agent *a) {
        return is_pool(a) ? &pool_loops : &fresh_loops;
}

/* --- the leader's part --- */

/* Where vm.memfd_noexec is 2 the kernel refuses executable memory, and kernels before 6.3 do not have the flag. */
static int find_flags(struct agent *a) {
        create_flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL;
        _cleanup_close_ int fd = memfd_create("message", create_flags);
        if (fd >= 0)
                return 0;
        create_flags &= ~MFD_NOEXEC_SEAL;
        return errno == EINVAL ? 0 : failure_set(&a->failure, errno, "memfd_create: %s", strerrordesc_np(errno));
}

static int memfd_open(struct agent *a) {
        uint64_t deadline_ns = util_now_ns() + AGENT_RENDEZVOUS_NS + a->n_workers * AGENT_THREAD_NS;
        int r = find_flags(a);
        return r < 0 ? r : rendezvous_sockets(a, SOCK_SEQPACKET, deadline_ns, NULL);
}

/* --- the worker's part --- */

static bool sends(const struct agent *a) {
        return a->end == END_FIRST || point_directions(&a->setup.point) > 1;
}

static bool receives(const struct agent *a) {
        return a->end == END_SECOND || point_directions(&a->setup.point) > 1;
}

/* Makes the pool. The sending end writes it once, so that its pages exist under the placement of buffers. */
static int make_pool(struct worker *w, struct memfd_channel *c) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < c->slots; i++) {
                r = create(w, &c->out_fds[i]);
                if (r == 0)
                        r = write_message(w, c->out_fds[i], w->buffer, c->placed);
                if (r == 0)
                        r = seal(w, c->out_fds[i], SEALS_POOL);
        }
        return r == 0 ? send_packet(w, c->slots, c->out_fds, c->slots) : r;
}

/* This wait has no deadline of its own: the leader ends the process when its peer is gone or the workers exceed
 * theirs. */
static int take_pool(struct worker *w, struct memfd_channel *c) {
        uint64_t slots;
        int r = receive_packet(w, &slots, c->in_fds, c->slots, false);
        for (uint32_t i = 0; r == 0 && i < c->slots; i++)
                r = check_sealed(w, c->in_fds[i], SEALS_POOL);
        return r;
}

static int memfd_attach(struct worker *w) {
        const struct agent *a = w->agent;
        struct memfd_channel *c = malloc(sizeof *c);
        if (!c)
                return failure_set(&w->failure, ENOMEM, "no memory for the channel of thread %" PRIu32, w->index);
        uint32_t slots = file_layout_of(&a->setup.point, (uint64_t) sysconf(_SC_PAGESIZE)).slots;
        bool acknowledges = a->setup.point.workload == WORKLOAD_STREAM && receives(a);
        *c = (struct memfd_channel){
                .slots = slots,
                .room = slots,
                .acknowledge_every = !acknowledges ? 0
                                     : slots < 4   ? 1
                                                   : slots / 4,
                .placed = a->setup.placement.buffer != MEMORY_DEFAULT,
                .message_fd = -1,
        };
        for (uint32_t i = 0; i < SLOTS_MAX; i++)
                c->out_fds[i] = c->in_fds[i] = -1;
        w->channel = c;
        int r = is_pool(a) && sends(a) ? make_pool(w, c) : 0;
        return r == 0 && is_pool(a) && receives(a) ? take_pool(w, c) : r;
}

static void memfd_detach(struct worker *w) {
        struct memfd_channel *c = w->channel;
        for (uint32_t i = 0; c && i < SLOTS_MAX; i++) {
                (void) util_close(c->out_fds[i]);
                (void) util_close(c->in_fds[i]);
        }
        if (c && c->message)
                (void) munmap(c->message, w->size);
        if (c)
                (void) util_close(c->message_fd);
        free(c);
        w->channel = NULL;
}

/* --- the report --- */

static int memfd_pages(const struct agent *a, struct page_list *list) {
        int r = 0;
        if (!is_pool(a))
                list->no_page_cache = "each message has memory of its own, which is freed after its reading";
        else if (!sends(a))
                list->no_page_cache = "this end only reads: the writing end owns the pages";
        for (uint32_t i = 0; r == 0 && !list->no_page_cache && i < a->n_workers; i++) {
                const struct memfd_channel *c = a->workers[i].channel;
                for (uint32_t k = 0; r == 0 && k < c->slots; k++)
                        r = page_list_add_file(list, i, c->out_fds[k], 0, a->workers[i].size);
        }
        return r;
}

static void memfd_effective(const struct agent *a, struct effective *e) {
        const struct file_layout l = file_layout_of(&a->setup.point, (uint64_t) sysconf(_SC_PAGESIZE));
        effective_add_text(e, SETTING_MEMFD, memfd_source_name(a->setup.options.memfd));
        effective_add_text(e, SETTING_SEALS, is_pool(a) ? "shrink grow" : "shrink grow write");
        effective_add_number(e, SETTING_SLOTS, l.slots);
        effective_add_number(e, SETTING_SLOT_BYTES, l.stride);
        effective_add_number(e, SETTING_BUFFER_BYTES, l.slots * l.stride);
        effective_add_text(e, SETTING_SLOTS_OF, "sender");
        effective_add_text(e, SETTING_RECEIVER_READS, "in place");
}

const struct transport_ops transport_memfd = {
        .transport = TRANSPORT_MEMFD,
        .engine = ENGINE_SYSCALL,
        .open = memfd_open,
        .attach = memfd_attach,
        .detach = memfd_detach,
        .loops = memfd_loops,
        .effective = memfd_effective,
        .pages = memfd_pages,
};
