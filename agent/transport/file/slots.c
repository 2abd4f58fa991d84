/* SPDX-License-Identifier: MIT */

/*
 * Files in the run's directory, one per thread, that carry messages in slots. A file has a few slots per direction,
 * used in turn, so that its size is bounded; it is unlinked as soon as it is open, and its descriptor is passed to the
 * other end.
 *
 * A read of a file does not wait for a writer: two semaphores per direction count the filled and the empty slots. They
 * lie in memory that both ends map, and cost a system call only when one end waits for the other. A peer's death does
 * not change them; the leaders detect it by their own channel.
 *
 * Source: man 2 open (O_DIRECT), man 2 statx (STATX_DIOALIGN), man 7 sem_overview.
 */

#include "agent/transport/file/slots.h"

#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/os/filesystem.h"
#include "agent/os/policy.h"
#include "schema/protocol/effective.h"
#include "schema/transport/file-layout.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define FILE_NAME "file"

struct file_transport {
        struct file_signals *signals; /* [n_workers][directions], shared */
        size_t signals_length;
        struct file_channel *channels;
        uint64_t unit; /* the unit of O_DIRECT transfers; 0 without O_DIRECT */
};

/* It waits without a time-out, as a timer for every message costs several per cent. The leader ends the wait by kicks
 * until the worker rests (worker_kick()). */
int file_wait(struct worker *w, sem_t *s) {
        while (sem_wait(s) < 0) {
                if (errno != EINTR)
                        return failure_set(&w->failure, errno, "a semaphore of thread %" PRIu32 ": %s", w->index,
                                           strerrordesc_np(errno));
                worker_count(&w->eintr);
                if (worker_over(w))
                        return WORKER_STOP;
        }
        return 0;
}

int file_short(struct worker *w, ssize_t n, const char *what) {
        int error = n == 0 ? EIO : errno;
        if (n < 0 && error == EINTR) {
                worker_count(&w->eintr);
                return 0;
        }
        return failure_set(&w->failure, error, "%s of the file of thread %" PRIu32 " failed in message %" PRIu64 ": %s",
                           what, w->index, w->messages, n == 0 ? "nothing was moved" : strerrordesc_np(error));
}

static unsigned directions(const struct agent *a) {
        return point_directions(&a->setup.point);
}

static struct file_layout layout_of(const struct agent *a) {
        return file_layout_of(&a->setup.point, (uint64_t) sysconf(_SC_PAGESIZE));
}

/* Returns the unit of transfers that bypass the page cache. A file system in memory accepts O_DIRECT without effect. */
static int direct_unit(struct agent *a, int fd, uint64_t *ret) {
        struct statx x;
        struct statfs fs;
        if (fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC))
                return failure_set(&a->failure, EOPNOTSUPP,
                                   "file_sync direct: the run's directory is in memory (%s), where the page cache is "
                                   "all there is",
                                   fs.f_type == TMPFS_MAGIC ? "tmpfs" : "ramfs");
        if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) < 0)
                return failure_set(&a->failure, errno, "statx: %s", strerrordesc_np(errno));
        if (x.stx_mask & STATX_DIOALIGN && x.stx_dio_offset_align == 0)
                return failure_set(&a->failure, EOPNOTSUPP,
                                   "file_sync direct: the file system of the run's directory takes no O_DIRECT");
        /* kernels before 6.1 do not report it: the file system's block size is always sufficient */
        *ret = x.stx_mask & STATX_DIOALIGN ? x.stx_dio_offset_align : x.stx_blksize;
        if (a->setup.point.message_size % *ret)
                return failure_set(&a->failure, EINVAL,
                                   "file_sync direct: a message of %" PRIu64 " bytes is no multiple of %" PRIu64
                                   ", the alignment of O_DIRECT",
                                   a->setup.point.message_size, *ret);
        return 0;
}

/* Allocates the slots that this end writes, so that a full device fails before the run. A file system in memory
 * allocates its pages here: they must be placed by the writing end, under its memory policy. */
static int claim(struct agent *a, int fd) {
        struct file_layout l = layout_of(a);
        off_t length = (off_t) (l.slots * l.stride), offset = a->end == END_FIRST ? 0 : length;
        int r = fallocate(fd, 0, offset, length) == 0 ? 0 : errno;
        if (r == EOPNOTSUPP)
                r = ftruncate(fd, (off_t) layout_of(a).bytes) == 0 ? 0 : errno;
        if (r)
                return failure_set(&a->failure, r, "a file of %" PRIu64 " bytes in the run's directory: %s",
                                   layout_of(a).bytes, strerrordesc_np(r));
        return 0;
}

static int write_zeros(int fd, const unsigned char *zeros, size_t length, off_t offset) {
        for (size_t done = 0; done < length;) {
                ssize_t n = pwrite(fd, zeros + done, length - done, offset + (off_t) done);
                if (n < 0 && errno != EINTR)
                        return -errno;
                done += n > 0 ? (size_t) n : 0;
        }
        return 0;
}

/* The policy of the thread that first writes a page places it in the cache: this fills the slots that this end writes
 * beforehand, by writes like its messages'. The messages then find cached pages, except for those that the kernel
 * dropped meanwhile. The fdatasync here keeps a message's fsync() from writing these out, too. */
static int fill_cache(struct agent *a, int fd) {
        struct file_layout l = layout_of(a);
        size_t size = a->setup.point.message_size;
        off_t begin = a->end == END_FIRST ? 0 : (off_t) (l.slots * l.stride);
        void *zeros = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* one page, however long */
        int r = zeros == MAP_FAILED ? -errno : 0;
        for (uint32_t i = 0; r == 0 && i < l.slots; i++)
                r = write_zeros(fd, zeros, size, begin + (off_t) (i * l.stride));
        if (r == 0 && a->setup.options.file_sync == FILE_SYNC_FSYNC && fdatasync(fd) < 0)
                r = -errno;
        if (zeros != MAP_FAILED)
                (void) munmap(zeros, size);
        return r == 0 ? 0
                      : failure_set(&a->failure, -r, "the slots of a file in the run's directory cannot be filled: %s",
                                    strerrordesc_np(-r));
}

/* Memory that carries messages has the policy of buffers, where the set-up gives one. */
static int claim_as_buffers(struct agent *a, int fd) {
        const struct agent_placement *p = &a->setup.placement;
        struct policy_saved saved;
        int r = policy_enter(p->buffer, &p->buffer_nodes, &saved);
        if (r < 0)
                return failure_set(&a->failure, -r, "the policy of buffers cannot be set: %s", strerrordesc_np(-r));
        r = claim(a, fd);
        if (r == 0 && p->buffer != MEMORY_DEFAULT && a->setup.options.file_sync != FILE_SYNC_DIRECT)
                r = fill_cache(a, fd);
        int left = policy_leave(&saved);
        if (r == 0 && left < 0)
                r = failure_set(&a->failure, -left, "the policy of buffers cannot be left: %s", strerrordesc_np(-left));
        return r;
}

static int make_file(struct agent *a, int *ret) {
        struct file_transport *t = a->transport_data;
        bool direct = a->setup.options.file_sync == FILE_SYNC_DIRECT;
        int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | (direct ? O_DIRECT : 0);

        _cleanup_close_ int fd = openat(a->run_dir_fd, FILE_NAME, flags, 0600);
        int error = errno;
        (void) unlinkat(a->run_dir_fd, FILE_NAME, 0); /* a file system without O_DIRECT may have created it */
        if (fd < 0)
                return failure_set(&a->failure, error, "a file in the run's directory%s: %s",
                                   direct ? " for file_sync direct (O_DIRECT)" : "", strerrordesc_np(error));
        int r = direct ? direct_unit(a, fd, &t->unit) : 0;
        if (r == 0)
                r = claim_as_buffers(a, fd);
        if (r == 0)
                *ret = util_steal_fd(&fd);
        return r;
}

static int map_signals(struct agent *a, int fd) {
        struct file_transport *t = a->transport_data;
        void *p = mmap(NULL, t->signals_length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        if (p == MAP_FAILED)
                return failure_set(&a->failure, errno, "the semaphores cannot be mapped: %s", strerrordesc_np(errno));
        t->signals = p;
        return 0;
}

static int make_signals(struct agent *a, uint64_t deadline_ns) {
        struct file_transport *t = a->transport_data;
        _cleanup_close_ int fd = memfd_create("signals", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, (off_t) t->signals_length) < 0)
                return failure_set(&a->failure, errno, "memory for semaphores: %s", strerrordesc_np(errno));
        int r = map_signals(a, fd);
        for (uint32_t i = 0; r == 0 && i < a->n_workers * directions(a); i++)
                if (sem_init(&t->signals[i].filled, 1, 0) < 0 ||
                    sem_init(&t->signals[i].empty, 1, layout_of(a).slots) < 0)
                        r = failure_set(&a->failure, errno, "sem_init: %s", strerrordesc_np(errno));
        return r < 0 ? r : peer_send_fds(a, 0, &fd, 1, deadline_ns);
}

static off_t begin_of(const struct agent *a, unsigned direction) {
        struct file_layout l = layout_of(a);
        return (off_t) (direction * l.slots * l.stride);
}

/* Direction 0 is that of the stream, 1 the way back. */
static void connect_worker(struct agent *a, struct worker *w, int fd) {
        struct file_transport *t = a->transport_data;
        struct file_channel *c = &t->channels[w->index];
        struct file_layout l = layout_of(a);
        *c = (struct file_channel){.slots = l.slots, .stride = l.stride};
        for (unsigned d = 0; d < directions(a); d++) {
                bool out = (d == 0) == (a->end == END_FIRST);
                *(out ? &c->out : &c->in) = (struct file_way){
                        .signals = &t->signals[w->index * directions(a) + d],
                        .begin = begin_of(a, d),
                };
        }
        w->send_fd = w->receive_fd = fd; /* closed with the worker */
        w->channel = c;
}

static int open_first(struct agent *a, uint64_t deadline_ns) {
        int r = make_signals(a, deadline_ns);
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                int fd;
                r = make_file(a, &fd);
                if (r < 0)
                        return r;
                connect_worker(a, &a->workers[i], fd);
                r = peer_send_fds(a, i, &fd, 1, deadline_ns);
        }
        return r;
}

static int open_second(struct agent *a, uint64_t deadline_ns) {
        struct file_transport *t = a->transport_data;
        int taken = -1;
        int r = peer_receive_fds(a, 0, &taken, 1, deadline_ns);
        _cleanup_close_ int signals = taken;
        if (r == 0)
                r = map_signals(a, signals);
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                int fd;
                r = peer_receive_fds(a, i, &fd, 1, deadline_ns);
                if (r < 0)
                        return r;
                connect_worker(a, &a->workers[i], fd);
                if (a->setup.options.file_sync == FILE_SYNC_DIRECT)
                        r = direct_unit(a, fd, &t->unit);
                if (r == 0 && directions(a) > 1)
                        r = claim_as_buffers(a, fd);
        }
        return r;
}

uint64_t file_opening_ns(const struct agent *a) {
        const struct message_setup *s = &a->setup;
        return AGENT_RENDEZVOUS_NS +
               file_layout_fill_ns(&s->point, s->options.file_sync, (uint64_t) sysconf(_SC_PAGESIZE));
}

int file_open(struct agent *a) {
        uint64_t deadline_ns = util_now_ns() + file_opening_ns(a);
        struct file_transport *t = calloc(1, sizeof *t);
        a->transport_data = t;
        if (t)
                t->channels = calloc(a->n_workers, sizeof *t->channels);
        if (!t || !t->channels)
                return failure_set(&a->failure, ENOMEM, "no memory for files");
        t->signals_length = a->n_workers * directions(a) * sizeof *t->signals;
        return a->end == END_FIRST ? open_first(a, deadline_ns) : open_second(a, deadline_ns);
}

/* Workers may still be in their loops: the memory that they use stays until detach. */
void file_close(struct agent *a) {
        (void) unlinkat(a->run_dir_fd, FILE_NAME, 0);
}

/* All workers' memory is one allocation, which the first call frees. */
void file_detach(struct worker *w) {
        struct file_transport *t = w->agent->transport_data;
        w->channel = NULL;
        if (!t || w->index != 0)
                return;
        if (t->signals)
                (void) munmap(t->signals, t->signals_length);
        free(t->channels);
        free(t);
        w->agent->transport_data = NULL;
}

/* The first end made the semaphores and lists them; of a file each end lists the slots that it writes. */
int file_pages(const struct agent *a, struct page_list *list) {
        const struct file_transport *t = a->transport_data;
        struct file_layout l = layout_of(a);
        unsigned out = a->end == END_FIRST ? 0 : 1;
        int r = 0;
        if (a->end == END_FIRST)
                r = page_list_add(list, PAGES_SEMAPHORES, 0, t->signals, t->signals_length);
        if (a->setup.options.file_sync == FILE_SYNC_DIRECT)
                list->no_page_cache = "file_sync direct bypasses it";
        else if (out >= directions(a))
                list->no_page_cache = "this end only reads: the writing end owns the pages";
        for (uint32_t i = 0; r == 0 && !list->no_page_cache && i < a->n_workers; i++)
                r = page_list_add_file(list, i, a->workers[i].send_fd, begin_of(a, out), l.slots * l.stride);
        return r;
}

void file_effective(const struct agent *a, struct effective *e) {
        const struct file_transport *t = a->transport_data;
        int fd = a->workers[0].send_fd;
        struct stat st;

        effective_add_text(e, SETTING_FILE_SYNC, file_sync_name(a->setup.options.file_sync));
        filesystem_put(e, fd);
        if (fstat(fd, &st) == 0)
                effective_add_number(e, SETTING_BLOCK_BYTES, (uint64_t) st.st_blksize);
        if (t->unit)
                effective_add_number(e, SETTING_DIRECT_ALIGNMENT_BYTES, t->unit);
        effective_add_number(e, SETTING_FILE_BYTES, layout_of(a).bytes);
        effective_add_number(e, SETTING_SLOTS, layout_of(a).slots);
        effective_add_number(e, SETTING_BUFFER_BYTES, layout_of(a).slots * layout_of(a).stride);
}
