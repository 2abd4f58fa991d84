/* SPDX-License-Identifier: MIT */

/*
 * The token file, the only secret of the daemon. A process that reads it may write over TCP, so a file that others can
 * read is refused, and a new one gets its name only when it is complete. Called once, by main.
 */

#include "daemon/token.h"

#include "schema/detail.h"
#include "schema/util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define TOKEN_BYTES 32u

static int check_file(int fd, const char *path, char *detail) {
        struct stat st;
        if (fstat(fd, &st) < 0)
                return detail_fail(detail, -errno, "token file %.180s: %s", path, strerrordesc_np(errno));
        if (!S_ISREG(st.st_mode))
                return detail_fail(detail, -EPERM, "token file %.180s is not a regular file", path);
        if (st.st_uid != geteuid() && st.st_uid != 0)
                return detail_fail(detail, -EPERM,
                                   "token file %.180s belongs to user %u, neither this daemon's %u nor root", path,
                                   st.st_uid, geteuid());
        if (st.st_mode & 077)
                return detail_fail(detail, -EPERM, "token file %.180s can be used by others (mode %04o); chmod 600 it",
                                   path, st.st_mode & 07777);
        return 0;
}

static int read_token(int fd, const char *path, char **ret, char *detail) {
        char text[TOKEN_LENGTH_MAX + 2];
        ssize_t n = read(fd, text, sizeof(text));
        if (n < 0)
                return detail_fail(detail, -errno, "cannot read token file %.180s: %s", path, strerrordesc_np(errno));
        size_t length = (size_t) n;
        if (length > 0 && text[length - 1] == '\n')
                length--;
        if (length < TOKEN_LENGTH_MIN || length > TOKEN_LENGTH_MAX)
                return detail_fail(detail, -EBADMSG, "token file %.180s is not one line of %u to %u characters", path,
                                   TOKEN_LENGTH_MIN, TOKEN_LENGTH_MAX);
        for (size_t i = 0; i < length; i++)
                if (text[i] <= ' ' || text[i] > '~')
                        return detail_fail(detail, -EBADMSG,
                                           "token file %.180s has a character that is not printable ASCII", path);
        char *token = strndup(text, length);
        if (!token)
                return detail_fail(detail, -ENOMEM, "out of memory");
        *ret = token;
        return 0;
}

static int write_all(int fd, const char *data, size_t length) {
        while (length > 0) {
                ssize_t n = write(fd, data, length);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data += n;
                length -= (size_t) n;
        }
        return 0;
}

static int fill_file(int fd) {
        uint8_t random[TOKEN_BYTES];
        char text[2 * TOKEN_BYTES + 2];
        if (getrandom(random, sizeof(random), 0) != (ssize_t) sizeof(random))
                return -EIO;
        for (size_t i = 0; i < TOKEN_BYTES; i++)
                (void) snprintf(text + 2 * i, 3, "%02x", random[i]);
        text[2 * TOKEN_BYTES] = '\n';
        int r = write_all(fd, text, 2 * TOKEN_BYTES + 1);
        explicit_bzero(random, sizeof(random));
        explicit_bzero(text, sizeof(text));
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        return r;
}

/* A temporary file, then link(2): two daemons that start at once use the same token. */
static int make_file(const char *path, char *detail) {
        _cleanup_free_ char *temporary = NULL;
        if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
                return detail_fail(detail, -ENOMEM, "out of memory");
        _cleanup_close_ int fd = mkostemp(temporary, O_CLOEXEC); /* 0600, O_EXCL */
        if (fd < 0)
                return detail_fail(detail, -errno, "cannot make token file %.180s: %s", path, strerrordesc_np(errno));
        int r = fill_file(fd);
        if (r == 0 && link(temporary, path) < 0 && errno != EEXIST)
                r = -errno;
        (void) unlink(temporary);
        if (r < 0)
                return detail_fail(detail, r, "cannot write token file %.180s: %s", path, strerrordesc_np(-r));
        return 0;
}

int token_load(const char *path, char **ret, char *ret_detail) {
        for (int attempt = 0; attempt < 2; attempt++) {
                /* O_NONBLOCK: a FIFO under that name must not hang the start. */
                _cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
                if (fd < 0 && errno == ENOENT && attempt == 0) {
                        int r = make_file(path, ret_detail);
                        if (r < 0)
                                return r;
                        continue;
                }
                if (fd < 0)
                        return detail_fail(ret_detail, -errno, "cannot open token file %.180s: %s", path,
                                           errno == ELOOP ? "it is a symbolic link" : strerrordesc_np(errno));
                int r = check_file(fd, path, ret_detail);
                return r < 0 ? r : read_token(fd, path, ret, ret_detail);
        }
        return detail_fail(ret_detail, -ENOENT, "token file %.180s vanished while it was made", path);
}
