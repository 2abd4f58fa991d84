/* SPDX-License-Identifier: MIT */

/* Plain files by hand: pwrite(2) and pread(2), through the page cache, with fsync(2) or past it (O_DIRECT); semaphores
 * where one end has to wait for the other. */

#include "tests/bench/hand-file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define HAND_FILE_TEMPLATE "/tmp/ipclab-hand-XXXXXX" /* where the agents' files are */
#define RING_BYTES (4u << 20)
#define SLOTS_MAX 64u

/* Mapped before the ends are forked; there, then back. */
static struct hand_signals *signals;
static int there[2];

static size_t slots_of(const struct hand *h, size_t stride) {
        size_t n = RING_BYTES / stride;
        if (h->workload == WORKLOAD_PINGPONG)
                return 1;
        return n < 2 ? 2 : n > SLOTS_MAX ? SLOTS_MAX : n;
}

static size_t stride_of(const struct hand *h) {
        return (h->size + 4095) / 4096 * 4096;
}

/* Without a name, and with room for all slots, as the agents claim it before they begin. */
static int make_one(const struct hand *h, int ret[2]) {
        char path[] = HAND_FILE_TEMPLATE;
        ret[0] = mkostemp(path, O_CLOEXEC | (h->file_sync == FILE_SYNC_DIRECT ? O_DIRECT : 0));
        if (ret[0] < 0)
                return -errno;
        (void) unlink(path);
        if (fallocate(ret[0], 0, 0, (off_t) (slots_of(h, stride_of(h)) * stride_of(h))) < 0 && errno != EOPNOTSUPP)
                return -errno;
        ret[1] = dup(ret[0]);
        return ret[1] < 0 ? -errno : 0;
}

/* See agent/transport/file/slots.c: file systems in memory accept the flag without effect; kernels before 6.1 do not
 * report the unit. */
static int unit_of(int fd, uint64_t *ret) {
        struct statx x;
        struct statfs fs;
        if (fstatfs(fd, &fs) < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) < 0)
                return -errno;
        bool reported = x.stx_mask & STATX_DIOALIGN;
        if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC || (reported && x.stx_dio_offset_align == 0))
                return -EOPNOTSUPP;
        *ret = reported ? x.stx_dio_offset_align : x.stx_blksize;
        return 0;
}

int hand_file_direct_unit(uint64_t *ret) {
        char path[] = HAND_FILE_TEMPLATE;
        int fd = mkostemp(path, O_CLOEXEC | O_DIRECT), error = errno;
        (void) unlink(path); /* may have been made all the same */
        if (fd < 0)
                return -error;
        int r = unit_of(fd, ret);
        (void) close(fd);
        return r;
}

int hand_file_make(const struct hand *h, struct hand_channel *ret) {
        int r = make_one(h, ret->there);
        if (r == 0)
                r = make_one(h, ret->back);
        if (r < 0)
                return r;
        if (!signals) {
                void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
                if (p == MAP_FAILED)
                        return -errno;
                signals = p;
        }
        for (unsigned d = 0; d < 2; d++)
                if (sem_init(&signals[d].filled, 1, 0) < 0 ||
                    sem_init(&signals[d].empty, 1, (unsigned) slots_of(h, stride_of(h))) < 0)
                        return -errno;
        memcpy(there, ret->there, sizeof there);
        return 0;
}

int hand_file_begin(struct hand_end *e) {
        bool first = e->out == there[1];
        struct hand_file *f = calloc(1, sizeof *f);
        if (!f)
                return -1;
        f->out = &signals[first ? 0 : 1];
        f->in = &signals[first ? 1 : 0];
        f->stride = stride_of(e->h);
        f->slots = slots_of(e->h, f->stride);
        e->own = f;
        return 0;
}

HAND_INLINE int send_slot(struct hand_end *e, unsigned char *message) {
        struct hand_file *f = e->own;
        off_t at = hand_file_wait(&f->out->empty, f->put, f);
        if (pwrite(e->out, message, e->size, at) != (ssize_t) e->size)
                return -1;
        hand_file_pass(&f->out->filled, &f->put, f);
        return 0;
}

HAND_INLINE int send_slot_synced(struct hand_end *e, unsigned char *message) {
        struct hand_file *f = e->own;
        off_t at = hand_file_wait(&f->out->empty, f->put, f);
        if (pwrite(e->out, message, e->size, at) != (ssize_t) e->size || fsync(e->out) < 0)
                return -1;
        hand_file_pass(&f->out->filled, &f->put, f);
        return 0;
}

HAND_INLINE int receive_slot(struct hand_end *e) {
        struct hand_file *f = e->own;
        off_t at = hand_file_wait(&f->in->filled, f->got, f);
        if (pread(e->in, e->buffer, e->size, at) != (ssize_t) e->size)
                return -1;
        hand_file_pass(&f->in->empty, &f->got, f);
        return 0;
}

static const struct hand_way file_way = {
        .open = hand_file_begin, .next = hand_next_buffer, .send = send_slot, .receive = receive_slot};
HAND_LOOPS(file, file_way);

static const struct hand_way synced_way = {
        .open = hand_file_begin, .next = hand_next_buffer, .send = send_slot_synced, .receive = receive_slot};
HAND_LOOPS(synced_file, synced_way);
