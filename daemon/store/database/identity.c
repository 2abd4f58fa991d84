/* SPDX-License-Identifier: MIT */

/* The file ipclab.identity. All its texts have the same length, so that each is one write over the one before. */

#include "daemon/store/database/identity.h"

#include "daemon/log.h"
#include "daemon/store/database/dir.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_MAX 512
#define READINGS_MAX 100u

static int format(const struct identity *i, char text[static TEXT_MAX]) {
        return snprintf(text, TEXT_MAX,
                        "# The database beside this file, as ipclabd left it. See \"Damaged or lost data\" in "
                        "troubleshooting.\n"
                        "store %s\nopen %s\nchange %020" PRId64 "\nexperiment %020" PRId64 "\nrun %020" PRId64 "\n",
                        i->store, i->open ? "yes" : "no ", i->change, i->experiment, i->run);
}

/* The value of the line "KEY VALUE", up to its end; NULL without such a line. */
static const char *find_value(const char *text, const char *key) {
        size_t length = strlen(key);
        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, key, length) == 0 && line[length] == ' ')
                        return line + length + 1;
        }
        return NULL;
}

static int parse_number(const char *text, const char *key, int64_t *ret) {
        const char *value = find_value(text, key);
        char *end;
        if (!value || *value < '0' || *value > '9')
                return -EBADMSG;
        errno = 0;
        int64_t v = strtoll(value, &end, 10);
        if (errno || *end != '\n')
                return -EBADMSG;
        *ret = v;
        return 0;
}

static int parse(const char *text, struct identity *ret) {
        struct identity i = {0};
        const char *store = find_value(text, "store"), *open = find_value(text, "open");
        if (!store || strspn(store, "0123456789abcdef-") != IDENTITY_UUID || !open)
                return -EBADMSG;
        memcpy(i.store, store, IDENTITY_UUID);
        if (strncmp(open, "yes\n", 4) != 0 && strncmp(open, "no \n", 4) != 0)
                return -EBADMSG;
        i.open = *open == 'y';
        int r = parse_number(text, "change", &i.change);
        if (r == 0)
                r = parse_number(text, "experiment", &i.experiment);
        if (r == 0)
                r = parse_number(text, "run", &i.run);
        if (r == 0)
                *ret = i;
        return r;
}

int identity_read(const char *dir, struct identity *ret) {
        char text[TEXT_MAX] = "", before[TEXT_MAX];
        _cleanup_close_ int dir_fd = dir_open(dir);
        if (dir_fd < 0)
                return dir_fd;
        _cleanup_close_ int fd = openat(dir_fd, IDENTITY_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return -errno;
        /* a daemon may be writing over it: two readings that agree are not half of one number and half of another */
        for (unsigned i = 0; i < 2 || strcmp(text, before) != 0; i++) {
                if (i == READINGS_MAX) {
                        log_error("%s/" IDENTITY_FILE ": no two of %u readings agree: something writes it all the time",
                                  dir, READINGS_MAX);
                        return -EAGAIN;
                }
                memcpy(before, text, sizeof(before));
                if (lseek(fd, 0, SEEK_SET) < 0 && errno != ESPIPE) /* of a FIFO, in which there is nothing */
                        return -errno;
                ssize_t n = read(fd, text, sizeof(text) - 1);
                if (n < 0)
                        return -errno;
                text[n] = '\0';
        }
        return parse(text, ret);
}

int identity_note(int fd, const struct identity *identity) {
        char text[TEXT_MAX];
        int length = format(identity, text);
        ssize_t n = pwrite(fd, text, (size_t) length, 0);
        if (n < 0)
                return -errno;
        return n == length ? 0 : -EIO;
}

int identity_rewrite(const char *dir, const struct identity *identity, int *ret_fd) {
        _cleanup_close_ int dir_fd = dir_open(dir);
        if (dir_fd < 0)
                return dir_fd;
        _cleanup_close_ int fd = openat(dir_fd, IDENTITY_FILE, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return -errno;
        int r = identity_note(fd, identity);
        if (r < 0)
                return r;
        if (fsync(fd) < 0)
                return -errno;
        *ret_fd = util_steal_fd(&fd);
        return 0;
}

int identity_create(const char *dir, const struct identity *identity, int *ret_fd) {
        _cleanup_close_ int dir_fd = dir_open(dir);
        if (dir_fd < 0)
                return dir_fd;
        _cleanup_close_ int fd = dir_create(dir_fd, IDENTITY_FILE ".new", O_TRUNC, 0640);
        if (fd < 0)
                return fd;
        int r = identity_note(fd, identity);
        if (r < 0) {
                (void) unlinkat(dir_fd, IDENTITY_FILE ".new", 0); /* the first error is what is reported */
                return r;
        }
        if (fsync(fd) < 0 || renameat(dir_fd, IDENTITY_FILE ".new", dir_fd, IDENTITY_FILE) < 0 || fsync(dir_fd) < 0)
                return -errno;
        *ret_fd = util_steal_fd(&fd);
        return 0;
}
