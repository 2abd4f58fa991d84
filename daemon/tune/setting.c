/* SPDX-License-Identifier: MIT */

/*
 * Settings below /proc/sys. Their files belong to root, and the kernel checks the writer's privilege at each write:
 * neither a capability nor a descriptor that root has opened helps an unprivileged daemon. It therefore sends a line
 * ("numa_balancing=1") to ipclab-tune over a socket of systemd's and receives a line ("ok", or the reason).
 */

#include "daemon/tune/setting.h"

#include "schema/util.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define REPLY_WITHIN_NS (5 * NSEC_PER_SEC)
#define RETRY_AFTER_US 200000

static const struct setting {
        const char *name, *title, *path;
        const char *values; /* one character each */
} settings[] = {
        /* 2 is for tiered memory, and may be the saved value */
        {"numa_balancing", "kernel.numa_balancing", "/proc/sys/kernel/numa_balancing", "0123"},
};

static const struct setting *find(const char *name) {
        for (size_t i = 0; i < ELEMENTS(settings); i++)
                if (strcmp(settings[i].name, name) == 0)
                        return &settings[i];
        return NULL;
}

static int fail(char *detail, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int fail(char *detail, int error, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        (void) vsnprintf(detail, SETTING_DETAIL_MAX, format, ap);
        va_end(ap);
        return error;
}

const char *setting_title(const char *name) {
        const struct setting *s = find(name);
        return s ? s->title : NULL;
}

bool setting_allows(const char *name, const char *value) {
        const struct setting *s = find(name);
        return s && value[0] && !value[1] && strchr(s->values, value[0]);
}

static int open_setting(const char *root, const char *name, int flags) {
        const struct setting *s = find(name);
        char path[PATH_MAX];
        if (!s)
                return -EINVAL;
        if (snprintf(path, sizeof(path), "%s%s", root, s->path) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
        return fd < 0 ? -errno : fd;
}

int setting_read(const char *root, const char *name, char *ret) {
        _cleanup_close_ int fd = open_setting(root, name, O_RDONLY);
        if (fd < 0)
                return fd;
        ssize_t n = read(fd, ret, SETTING_VALUE_MAX - 1);
        if (n < 0)
                return -errno;
        ret[n] = '\0';
        ret[strcspn(ret, " \n")] = '\0';
        return ret[0] ? 0 : -ENODATA;
}

int setting_write(const char *root, const char *name, const char *value) {
        char now[SETTING_VALUE_MAX];
        if (!setting_allows(name, value))
                return -EINVAL;
        _cleanup_close_ int fd = open_setting(root, name, O_WRONLY | O_TRUNC);
        if (fd < 0)
                return fd;
        if (write(fd, value, strlen(value)) < 0)
                return -errno;
        int r = setting_read(root, name, now);
        return r < 0 ? r : strcmp(now, value) == 0 ? 0 : -EIO;
}

/* --- through ipclab-tune --- */

static int exchange(int fd, const char *request, char *ret, size_t size, char *detail) {
        uint64_t deadline = util_now_ns() + REPLY_WITHIN_NS;
        if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
                return fail(detail, -errno, "the request to ipclab-tune cannot be sent: %s", strerrordesc_np(errno));
        for (size_t length = 0;;) {
                uint64_t now = util_now_ns();
                struct pollfd p = {.fd = fd, .events = POLLIN};
                int ready = now >= deadline ? 0 : poll(&p, 1, (int) ((deadline - now) / NSEC_PER_MSEC) + 1);
                if (ready < 0 && errno == EINTR)
                        continue;
                if (ready <= 0)
                        return fail(detail, ready < 0 ? -errno : -ETIMEDOUT, "ipclab-tune has not replied within 5 s");
                ssize_t n = recv(fd, ret + length, size - 1 - length, 0);
                if (n <= 0)
                        return fail(detail, n < 0 ? -errno : -EPIPE,
                                    "ipclab-tune ended without a reply; its journal may have the reason");
                length += (size_t) n;
                ret[length] = '\0';
                char *end = strchr(ret, '\n');
                if (end) {
                        *end = '\0';
                        return 0;
                }
                if (length == size - 1)
                        return fail(detail, -EBADMSG, "the reply of ipclab-tune is too long");
        }
}

static int request_once(const char *socket_path, const char *request, char *detail) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char reply[256];
        if (snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path) >= (int) sizeof(address.sun_path))
                return fail(detail, -ENAMETOOLONG, "%s is too long for a socket", socket_path);
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return fail(detail, -errno, "cannot connect to ipclab-tune at %s: %s", socket_path,
                            strerrordesc_np(errno));
        int r = exchange(fd, request, reply, sizeof(reply), detail);
        if (r < 0 || strcmp(reply, "ok") == 0)
                return r;
        return fail(detail, strcmp(reply, SETTING_NO_UNDO_RECORD) == 0 ? -ESTALE : -EPERM, "ipclab-tune refuses: %s",
                    reply);
}

int setting_request(const char *socket_path, const char *request, char *ret_detail) {
        int r = request_once(socket_path, request, ret_detail);
        if (r != -EPIPE && r != -ECONNRESET && r != -ECONNREFUSED)
                return r;
        /* systemd closes what is above MaxConnections=, and the socket is gone for a moment when it is restarted */
        (void) usleep(RETRY_AFTER_US);
        return request_once(socket_path, request, ret_detail);
}

/* Whether ipclab-tune may do what this process lacks the privilege for. */
static bool needs_helper(const char *root, int error) {
        return (error == -EACCES || error == -EPERM || error == -EROFS) && !root[0];
}

static int cannot_be_set(const char *name, const char *value, int error, char *detail) {
        const char *title = setting_title(name);
        return fail(detail, error, "%s cannot be set to %s: %s", title ? title : name, value, strerrordesc_np(-error));
}

int setting_may_change(const char *root, const char *name, char *ret_detail) {
        _cleanup_close_ int fd = open_setting(root, name, O_WRONLY);
        if (fd >= 0)
                return 0;
        if (fd == -ENOENT || fd == -EINVAL)
                return fail(ret_detail, -EACCES, "this kernel has no setting %s", name);
        if (root[0] || access(SETTING_SOCKET, F_OK) < 0)
                return fail(ret_detail, -EACCES,
                            "changing %s needs root, and the socket of ipclab-tune is missing (systemctl start "
                            "ipclab-tune.socket)",
                            setting_title(name));
        return 0;
}

int setting_change(const char *root, const char *name, const char *value, char *ret_detail) {
        char request[64];
        int r = setting_write(root, name, value);
        if (!needs_helper(root, r))
                return r < 0 ? cannot_be_set(name, value, r, ret_detail) : 0;
        (void) snprintf(request, sizeof(request), "%s=%s\n", name, value);
        return setting_request(SETTING_SOCKET, request, ret_detail);
}

int setting_restore(const char *root, const char *name, const char *original, char *ret_detail) {
        char request[64];
        int r = setting_write(root, name, original);
        if (!needs_helper(root, r))
                return r < 0 ? cannot_be_set(name, original, r, ret_detail) : 0;
        (void) snprintf(request, sizeof(request), SETTING_RESTORE "%s\n", name);
        return setting_request(SETTING_SOCKET, request, ret_detail);
}
