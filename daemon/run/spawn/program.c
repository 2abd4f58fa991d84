/* SPDX-License-Identifier: MIT */

/* Checks, copies and seals the agent's program. Owns nothing. Called by main, once. */

#include "daemon/run/spawn/program.h"

#include "daemon/log.h"
#include "schema/util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#ifndef MFD_EXEC /* since Linux 6.3 */
#define MFD_EXEC 0x0010U
#endif
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define MODE 0111 /* not even its owner, who may be the agents' user, reads it: a readable program is dumpable */

static int make_memory(void) {
        const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
        int fd = memfd_create("ipclab-agent", flags | MFD_EXEC);
        if (fd < 0 && errno == EINVAL) /* a kernel that does not know the flag executes any memory */
                fd = memfd_create("ipclab-agent", flags);
        return fd < 0 ? -errno : fd;
}

static int copy_bytes(int from, int to, off_t size) {
        off_t at = 0;
        while (at < size) {
                ssize_t n = sendfile(to, from, &at, (size_t) (size - at));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0) /* it was cut while it was read */
                        return -EIO;
        }
        return 0;
}

int program_copy(int fd, int *ret_fd) {
        struct stat st;
        if (fstat(fd, &st) < 0)
                return -errno;
        int made = make_memory();
        if (made < 0)
                return made;
        _cleanup_close_ int memory = made;
        int r = copy_bytes(fd, memory, st.st_size);
        if (r < 0)
                return r;
        if (fcntl(memory, F_ADD_SEALS, SEALS) < 0 || fchmod(memory, MODE) < 0)
                return -errno;
        *ret_fd = util_steal_fd(&memory);
        return 0;
}

static int check(const char *path, const struct stat *st) {
        if (S_ISLNK(st->st_mode)) { /* a user who may change the link would choose the program */
                log_error("the agent %s is a symbolic link, which is not followed: name the program itself", path);
                return -ELOOP;
        }
        if (!S_ISREG(st->st_mode) || !(st->st_mode & 0111)) {
                log_error("the agent %s is not a program", path);
                return -EACCES;
        }
        if (st->st_uid != 0 && st->st_uid != geteuid()) {
                log_error("the agent %s belongs to user %ju, who is neither root nor the daemon's own", path,
                          (uintmax_t) st->st_uid);
                return -EPERM;
        }
        if (st->st_mode & S_IWOTH) {
                log_error("the agent %s can be changed by everybody (mode %04o)", path, st->st_mode & 07777);
                return -EPERM;
        }
        return 0;
}

int program_open(const char *path, int *ret_fd) {
        struct stat st;
        _cleanup_close_ int file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (file < 0 || fstat(file, &st) < 0) {
                int r = -errno;
                log_error("cannot open the agent %s: %s", path, strerrordesc_np(-r));
                return r;
        }
        int r = check(path, &st);
        if (r < 0)
                return r;
        char readable[64];
        (void) snprintf(readable, sizeof(readable), "/proc/self/fd/%d", file);
        _cleanup_close_ int program = open(readable, O_RDONLY | O_CLOEXEC);
        r = program < 0 ? -errno : program_copy(program, ret_fd);
        if (r == 0)
                return 0;
        log_notice("agents are dumpable until their first instruction: the agent %s cannot be copied into memory that "
                   "is executed (%s; vm.memfd_noexec must be below 2, and the file readable)",
                   path, strerrordesc_np(-r));
        *ret_fd = util_steal_fd(&file);
        return 0;
}
