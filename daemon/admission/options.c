/* SPDX-License-Identifier: MIT */
/*
 * transport_options against the settings of the host: agents have no privilege, so what the kernel would quietly cut
 * down (SO_SNDBUF) or refuse in the middle of a run (TCP_CONGESTION, O_DIRECT) is refused here. Called by admission.c.
 *
 * Source: socket(7), tcp(7), open(2), statx(2).
 */

#include "daemon/admission/internal.h"

#include "schema/transport/file-layout.h"
#include "schema/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* tcp_allowed_congestion_control: names, between blanks, that programs without CAP_NET_ADMIN may choose from. */
int check_congestion(struct admission *a) {
        const char *name = a->options.congestion;
        char line[400], copy[400], *rest = copy;

        if (!name[0] || hostfs_line(a->h, line, sizeof(line), "/proc/sys/net/ipv4/tcp_allowed_congestion_control") < 0)
                return 0;
        (void) snprintf(copy, sizeof(copy), "%s", line);
        for (const char *word; (word = strsep(&rest, " \t"));)
                if (strcmp(word, name) == 0)
                        return 0;
        return refuse_set(a->r, "/transport_options/congestion", "net.ipv4.tcp_allowed_congestion_control", line, name,
                          "congestion control %s is not among those that may be chosen here: %s; to allow more: "
                          "sysctl net.ipv4.tcp_allowed_congestion_control='NAMES'",
                          name, line);
}

/* The alignment of offset and length of an O_DIRECT transfer on the file system of a file that is open with it. */
static uint64_t direct_alignment(int fd) {
        struct statx x;
        if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) == 0 && x.stx_mask & STATX_DIOALIGN)
                return x.stx_dio_offset_align;
        /* kernels before 6.1 do not report it: the file system's block is always enough */
        return statx(fd, "", AT_EMPTY_PATH, 0, &x) == 0 ? x.stx_blksize : 4096;
}

/* A file system in memory may accept O_DIRECT, and accepts every fsync(), without any effect. */
static bool in_memory(const struct admission *a) {
        const struct capacity_question q = {
                .transport = a->p->transport, .runtime_dir = a->runtime_dir, .space = a->space};
        return capacity_file_is_in_memory(a->h, &q);
}

/* Makes a named file as the agents do, for file systems without O_TMPFILE. It may have been made even where it could
 * not be opened. */
static int open_named(const char *dir) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof(path), "%s/direct.XXXXXX", dir) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        int fd = mkostemp(path, O_DIRECT | O_CLOEXEC), error = errno;
        (void) unlink(path);
        return fd < 0 ? -error : fd;
}

static int refuse_sync(const struct admission *a, const char *why) {
        return refuse(a->r, 422, "not-available", "/transport_options/file_sync",
                      "file_sync %s is not available: %s %s (to change it: --runtime-dir on another file system)",
                      file_sync_name(a->options.file_sync), a->runtime_dir, why);
}

/* Opens a file to find out, as file systems report it in no other way. */
static int check_direct(struct admission *a) {
        _cleanup_close_ int fd = open(a->runtime_dir, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
        /* NFS, vfat and 9p have no O_TMPFILE, which has nothing to do with O_DIRECT; before 3.11 the kernel took it for
         * a folder. */
        if (fd < 0)
                fd = errno == EOPNOTSUPP || errno == EISDIR ? open_named(a->runtime_dir) : -errno;
        if (fd == -EINVAL || fd == -EOPNOTSUPP)
                return refuse(a->r, 422, "not-available", "/transport_options/file_sync",
                              "file_sync direct is not available: the file system of %s takes no O_DIRECT (%s)",
                              a->runtime_dir, strerrordesc_np(-fd));
        if (fd < 0) /* another check reports other errors */
                return 0;
        uint64_t unit = direct_alignment(fd);
        if (unit == 0)
                return refuse_sync(a, "is on a file system without O_DIRECT");
        if (a->p->message_size % unit == 0)
                return 0;
        return admission_refuse(a, "/message_size", "alignment of O_DIRECT", unit, a->p->message_size,
                                "a message that is written past the page cache is a multiple of it");
}

int check_file_sync(struct admission *a) {
        enum file_sync sync = a->options.file_sync;
        if (sync == FILE_SYNC_PAGE_CACHE || !a->runtime_dir || a->h->root_fd >= 0)
                return 0;
        if (in_memory(a))
                return refuse_sync(a, "is in memory, where the page cache is all there is");
        return sync == FILE_SYNC_DIRECT ? check_direct(a) : 0;
}

/* Free bytes of the runtime directory. false: not known. */
static bool read_space(const struct admission *a, uint64_t *ret) {
        struct statvfs fs;
        if (a->space) {
                *ret = a->space->free_bytes;
                return true;
        }
        if (!a->runtime_dir || a->h->root_fd >= 0 || statvfs(a->runtime_dir, &fs) < 0)
                return false;
        *ret = (uint64_t) fs.f_bavail * fs.f_frsize;
        return true;
}

/* The files of all threads, which the agents claim before the run. */
int check_file_space(struct admission *a) {
        uint64_t have = 0;
        if (!point_has_carrier(a->p, CARRIER_FILE) || !read_space(a, &have))
                return 0;
        uint64_t need = a->p->threads * file_layout_of(a->p, (uint64_t) sysconf(_SC_PAGESIZE)).bytes;
        if (need <= have)
                return 0;
        return admission_refuse(a, "/message_size", "free space of the runtime directory", have, need,
                                "the files of all threads do not fit (to raise it: remove files, or --runtime-dir on "
                                "another file system)");
}

/* Whether this end makes slots in memory, under its own policy. It makes those of a file that it writes: claim() of
 * agent/transport/file/slots.c. What a peer reaches is the writer's or the reader's:
 * agent/transport/process/process-vm.c. */
static bool makes_slots(const struct admission *a, unsigned e) {
        bool writes = e < point_directions(a->p), reads = e + point_directions(a->p) >= END_COUNT;
        switch (transport_terms[a->p->transport].carrier) {
        case CARRIER_FILE:
                return writes && in_memory(a);
        case CARRIER_MEMFD:
                return writes;
        case CARRIER_PEER:
                return a->p->copy_mode == COPY_ONE ? reads : writes;
        default:
                return false;
        }
}

uint64_t admission_slot_bytes(const struct admission *a, unsigned e) {
        if (!makes_slots(a, e))
                return 0;
        const struct file_layout l = file_layout_of(a->p, (uint64_t) sysconf(_SC_PAGESIZE));
        return a->p->threads * l.slots * l.stride;
}
