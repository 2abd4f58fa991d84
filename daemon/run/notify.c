/* SPDX-License-Identifier: MIT */

/*
 * Each message has a socket of its own, as the manager's may be another one by then. Owns the timer of the watchdog.
 *
 * Source: sd_notify(3), sd_watchdog_enabled(3), unix(7).
 */

#include "daemon/run/notify.h"

#include "schema/util.h"

#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#define TEXT_MAX 1024

static int connect_manager(const char *path) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        size_t length = strlen(path);
        if ((path[0] != '/' && path[0] != '@') || length >= sizeof(a.sun_path))
                return -EAFNOSUPPORT;
        memcpy(a.sun_path, path, length);
        if (path[0] == '@')
                a.sun_path[0] = 0;
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        socklen_t bytes = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '/'));
        if (fd < 0 || connect(fd, (const struct sockaddr *) &a, bytes) < 0)
                return -errno;
        return util_steal_fd(&fd);
}

static int send_within(int fd, const char *text, size_t length, uint64_t until_ns) {
        for (;;) {
                struct pollfd p = {.fd = fd, .events = POLLOUT};
                if (send(fd, text, length, MSG_NOSIGNAL) >= 0)
                        return 0;
                uint64_t now = util_now_ns();
                if ((errno != EAGAIN && errno != EINTR) || now >= until_ns)
                        return -errno;
                (void) poll(&p, 1, (int) ((until_ns - now) / NSEC_PER_MSEC) + 1);
        }
}

int notify_within(uint64_t patience_ns, const char *format, ...) {
        const char *path = getenv("NOTIFY_SOCKET"); /* NOLINT(concurrency-mt-unsafe): nothing changes the environment */
        char text[TEXT_MAX];
        va_list ap;
        if (!path || !*path)
                return 0;
        va_start(ap, format);
        int n = vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        if (n < 0 || (size_t) n >= sizeof(text))
                return -EMSGSIZE;
        _cleanup_close_ int fd = connect_manager(path);
        return fd < 0 ? fd : send_within(fd, text, (size_t) n, util_now_ns() + patience_ns);
}

static int on_watchdog(sd_event_source *source, uint64_t usec, void *userdata) {
        const uint64_t *period_us = userdata;
        notify("WATCHDOG=1");
        int e = sd_event_source_set_time_relative(source, *period_us);
        (void) usec;
        return e < 0 ? e : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int notify_watchdog(sd_event *event) {
        static uint64_t period_us;
        sd_event_source *source = NULL;
        int e = sd_watchdog_enabled(0, &period_us);
        if (e <= 0)
                return e;
        period_us /= 4; /* of four, three may be lost */
        e = sd_event_add_time_relative(event, &source, CLOCK_MONOTONIC, period_us, 0, on_watchdog, &period_us);
        if (e >= 0) /* others must not keep it from its turn */
                e = sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT);
        if (e >= 0)
                e = sd_event_source_set_floating(source, true);
        sd_event_source_unref(source);
        return e < 0 ? e : 0;
}
