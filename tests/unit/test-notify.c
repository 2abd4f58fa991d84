/* SPDX-License-Identifier: MIT */

/* Messages to a service manager: a socket of this file's, which is read, or not. */

#include "daemon/run/notify.h"

#include "schema/util.h"
#include "tests/unit/check.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define UNREAD 2000

static char path[64], name[64]; /* a file, and a name without one */

/* Bound to a path, or in the abstract name space. */
static int listen_at(const char *at) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        (void) snprintf(a.sun_path, sizeof a.sun_path, "%s", at);
        socklen_t length = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + strlen(at) + (*at == '/'));
        if (*at == '@')
                a.sun_path[0] = 0;
        (void) unlink(at);
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (const struct sockaddr *) &a, length) < 0 || setenv("NOTIFY_SOCKET", at, 1) < 0)
                return util_close(fd);
        return fd;
}

static void test_a_message_arrives(void) {
        const char *const names[] = {path, name};
        for (size_t i = 0; i < ELEMENTS(names); i++) {
                char got[100] = "";
                int fd = listen_at(names[i]);
                CHECK(fd >= 0);
                int r = notify_within(0, "READY=1\nSTATUS=%d of %s.", 3, "four");
                ssize_t n = recv(fd, got, sizeof got - 1, 0), more = recv(fd, got + 50, 1, 0);
                util_close(fd);
                CHECK_INT(r, 0);
                CHECK(n > 0 && more < 0);
                CHECK_STRING(got, "READY=1\nSTATUS=3 of four.");
        }
        (void) unlink(path);
}

static void test_a_manager_that_stands_still_holds_nobody_up(void) {
        char got[100];
        unsigned sent = 0, received = 0;
        int fd = listen_at(path), r = 0;
        CHECK(fd >= 0);
        (void) alarm(60); /* ends a test that hangs */
        for (unsigned i = 0; i < UNREAD && r == 0; i++) {
                r = notify_within(0, "STATUS=%u.", i);
                sent += r == 0;
        }
        int patient = notify_within(NSEC_PER_MSEC, "READY=1");
        (void) alarm(0);
        while (recv(fd, got, sizeof got, 0) > 0)
                received++;
        int again = notify_within(0, "WATCHDOG=1");
        ssize_t n = recv(fd, got, sizeof got, 0);
        util_close(fd);
        (void) unlink(path);
        CHECK_INT(r, -EAGAIN);
        CHECK_INT(patient, -EAGAIN);
        CHECK_UINT(received, sent);
        CHECK_INT(again, 0);
        CHECK_INT(n, 10);
}

static void test_without_a_manager_nothing_is_sent(void) {
        (void) unsetenv("NOTIFY_SOCKET");
        CHECK_INT(notify_within(0, "READY=1"), 0);
        (void) setenv("NOTIFY_SOCKET", "", 1);
        CHECK_INT(notify_within(0, "READY=1"), 0);
        (void) setenv("NOTIFY_SOCKET", "vsock:2:1", 1);
        CHECK_INT(notify_within(0, "READY=1"), -EAFNOSUPPORT);
        (void) setenv("NOTIFY_SOCKET", path, 1);
        CHECK(notify_within(0, "READY=1") < 0); /* nobody listens */
}

/* As often as the manager wants it, and only when it is this process's. */
static void test_the_watchdog_gets_its_messages(void) {
        sd_event *event = NULL;
        char pid[16], got[100] = "";
        int fd = listen_at(path);
        CHECK(fd >= 0);
        CHECK(sd_event_new(&event) >= 0);
        (void) snprintf(pid, sizeof pid, "%d", getpid());
        (void) setenv("WATCHDOG_USEC", "20000", 1);
        (void) setenv("WATCHDOG_PID", "1", 1);
        int other = notify_watchdog(event);
        int idle = sd_event_run(event, 30000);
        (void) setenv("WATCHDOG_PID", pid, 1);
        int r = notify_watchdog(event);
        unsigned n = 0;
        for (unsigned i = 0; i < 4; i++) {
                (void) sd_event_run(event, UINT64_MAX);
                n += recv(fd, got, sizeof got, 0) == 10 && strcmp(got, "WATCHDOG=1") == 0;
        }
        (void) unsetenv("WATCHDOG_USEC");
        (void) unsetenv("WATCHDOG_PID");
        sd_event_unref(event);
        util_close(fd);
        (void) unlink(path);
        CHECK_INT(other, 0);
        CHECK_INT(idle, 0);
        CHECK_INT(r, 0);
        CHECK_UINT(n, 4);
}

int main(void) {
        (void) snprintf(path, sizeof path, "/tmp/ipclab-test-notify-%d", getpid());
        (void) snprintf(name, sizeof name, "@ipclab-test-notify-%d", getpid());
        RUN(test_a_message_arrives);
        RUN(test_a_manager_that_stands_still_holds_nobody_up);
        RUN(test_without_a_manager_nothing_is_sent);
        RUN(test_the_watchdog_gets_its_messages);
        return check_end();
}
