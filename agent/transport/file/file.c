/* SPDX-License-Identifier: MIT */

/*
 * Plain files by pwrite(2) and pread(2): a slot of the file is written, read, and free again.
 *
 *      page-cache  messages are written to the kernel's cache, and read from there
 *      fsync       … and written to the device before the slot is passed
 *      direct      past the cache on both sides (O_DIRECT; file.c)
 *
 * The calls go through syscall(2) as in descriptor.h.
 */

#include "agent/transport/file/slots.h"
#include "agent/transport/transport.h"

#include <sys/syscall.h>
#include <unistd.h>

LOOP_INLINE ssize_t put(struct worker *w, const unsigned char *data, size_t length, off_t offset) {
        return syscall(SYS_pwrite64, w->send_fd, data, length, offset);
}

LOOP_INLINE ssize_t get(struct worker *w, unsigned char *data, size_t length, off_t offset) {
        return syscall(SYS_pread64, w->receive_fd, data, length, offset);
}

LOOP_INLINE int settle_fsync(struct worker *w) {
        return fsync(w->send_fd);
}

FILE_CHANNEL(cached, put, get, file_settle_nothing);
FILE_CHANNEL(synced, put, get, settle_fsync);

static const struct transport_loops *file_loops_of(const struct agent *a) {
        return a->setup.options.file_sync == FILE_SYNC_FSYNC ? &synced_loops : &cached_loops;
}

const struct transport_ops transport_file = {
        .transport = TRANSPORT_FILE,
        .engine = ENGINE_SYSCALL,
        .uring = &transport_uring_file,
        .open = file_open,
        .detach = file_detach,
        .close = file_close,
        .loops = file_loops_of,
        .effective = file_effective,
        .pages = file_pages,
};
