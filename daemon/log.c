/* SPDX-License-Identifier: MIT */

/*
 * Log lines. Owns the level and the destination, which log_open() chooses once: the journal, with fields, when stderr
 * is the journal's stream, else stderr, with a time. Called from every thread of the daemon, of which one at a time
 * writes, so that lines of two threads never mix. What nobody reads is lost after a moment, and the next line that is
 * written comes with the number of those lost; the journal is waited for. A terminal or a full disk may take a part of
 * a line: it counts as lost, and what is written next begins a line all the same. Another user's pipe or terminal,
 * which may block a writer, has a thread of its own: what it has not written shortly after the end is
 * lost.
 */

#include "daemon/log.h"

#include "schema/signals.h"
#include "schema/util.h"

#define SD_JOURNAL_SUPPRESS_LOCATION /* the line has the caller's location instead of this file's */

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-journal.h>

#define PATIENCE_NS (20 * NSEC_PER_MSEC)
#define END_PATIENCE_MS 200
#define PAUSE_NS (NSEC_PER_MSEC / 10) /* while another thread writes */

static int log_max_level = LOG_INFO;
static bool log_to_journal;

static struct {
        int fd; /* stderr, or a description of its own of the same pipe or terminal, or the relay's socket */
        bool is_socket, is_relay;
        atomic_uint lost; /* messages since the last one that was written */
        pthread_mutex_t lock;
        bool torn; /* the last line has no end yet; under the lock */
} output = {.fd = STDERR_FILENO, .lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const level_names[] = {"emergency", "alert",  "critical", "error",
                                          "warning",   "notice", "info",     "debug"};

/* JOURNAL_STREAM holds "device:inode" of the socket that systemd connected; a redirected stderr does not match.
 * Source: systemd.exec(5). */
static bool stderr_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM"); /* NOLINT(concurrency-mt-unsafe): before any thread exists */
        if (!stream)
                return false;
        unsigned long long device = 0, inode = 0;
        char end = 0;
        struct stat st;
        /* NOLINTNEXTLINE(cert-err34-c): another format is no match */
        if (sscanf(stream, "%llu:%llu%c", &device, &inode, &end) != 2)
                return false;
        return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* --- where stderr cannot be opened once more --- */

struct relay {
        int from, to;
};

/* 0; -errno: the other end has no reader. */
static int relay_write(int to, const char *text, size_t length) {
        struct pollfd p = {.fd = to, .events = POLLOUT};
        while (length > 0) {
                ssize_t n = poll(&p, 1, -1) < 0 ? -1 : write(to, text, length);
                if (n < 0 && errno != EINTR && errno != EAGAIN)
                        return -errno;
                text += n > 0 ? n : 0;
                length -= n > 0 ? (size_t) n : 0;
        }
        return 0;
}

/* Waits without a deadline: nobody waits for it but end_relay(). */
static void *relay_main(void *userdata) {
        struct relay *r = userdata;
        char text[4096];
        ssize_t n;
        do
                n = read(r->from, text, sizeof(text));
        while ((n > 0 && relay_write(r->to, text, (size_t) n) == 0) || (n < 0 && errno == EINTR));
        util_close(r->to);
        util_close(r->from);
        free(r);
        return NULL;
}

/* Waits a moment for what is not written yet. */
static void end_relay(void) {
        struct pollfd p = {.fd = output.fd}; /* the relay hangs up */
        if (output.is_relay && shutdown(output.fd, SHUT_WR) == 0)
                (void) poll(&p, 1, END_PATIENCE_MS);
}

static int open_relay(void) {
        static bool ends_with_process;
        _cleanup_close_ int to = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
        _cleanup_free_ struct relay *relay = calloc(1, sizeof(*relay));
        int ends[2], e;
        pthread_t thread;
        if (to < 0 || !relay)
                return to < 0 ? -errno : -ENOMEM;
        if (!ends_with_process && atexit(end_relay) != 0)
                return -ENOMEM;
        ends_with_process = true;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
                return -errno;
        *relay = (struct relay){.from = ends[0], .to = to};
        e = signals_start_thread(&thread, relay_main, relay);
        if (e < 0) {
                util_close(ends[0]);
                util_close(ends[1]);
                return e;
        }
        (void) pthread_detach(thread);
        (void) util_steal_fd(&to); /* the thread's, as the relay is */
        (void) util_steal(&relay);
        output.fd = ends[1];
        output.is_socket = output.is_relay = true;
        return 0;
}

/* What nobody reads must not hold the daemon up: a terminal that is halted (Ctrl-S), a pager at the other end of a
 * pipe. O_NONBLOCK would be that of all who share stderr, so that it is opened once more, which a socket cannot be, nor
 * what is another user's. Where there is no memory for a thread, a line is written when there is room for some of it.
 */
static void open_output(void) {
        struct stat st;
        end_relay();
        if (output.fd != STDERR_FILENO)
                util_close(output.fd);
        output.fd = STDERR_FILENO;
        output.is_socket = output.is_relay = false;
        output.torn = false;
        atomic_store(&output.lost, 0);
        if (fstat(STDERR_FILENO, &st) < 0)
                return;
        output.is_socket = S_ISSOCK(st.st_mode);
        if (!S_ISFIFO(st.st_mode) && !isatty(STDERR_FILENO))
                return;
        int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0)
                output.fd = fd;
        else
                (void) open_relay();
}

void log_open(int level) {
        log_max_level = level;
        log_to_journal = stderr_is_journal();
        open_output();
}

int log_level_from_name(const char *name, int *ret) {
        for (size_t i = LOG_ERR; i < ELEMENTS(level_names); i++)
                if (strcmp(name, level_names[i]) == 0) {
                        *ret = (int) i;
                        return 0;
                }
        return -EINVAL;
}

/* Whether there is room for more by then. A regular file always has some. */
static bool await_room(uint64_t until_ns) {
        struct pollfd p = {.fd = output.fd, .events = POLLOUT};
        uint64_t now = util_now_ns();
        int ms = now < until_ns ? (int) ((until_ns - now) / NSEC_PER_MSEC) + 1 : 0;
        return poll(&p, 1, ms) > 0;
}

static bool take_turn(uint64_t until_ns) {
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        while (pthread_mutex_trylock(&output.lock) != 0) {
                if (util_now_ns() >= until_ns)
                        return false;
                (void) nanosleep(&pause, NULL);
        }
        return true;
}

static bool put(const char *text, size_t length, uint64_t until_ns) {
        while (length > 0 && await_room(until_ns)) {
                ssize_t n = output.is_socket ? send(output.fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL)
                                             : write(output.fd, text, length);
                if (n < 0 && errno != EINTR && (errno != EAGAIN || util_now_ns() >= until_ns))
                        return false;
                if (n <= 0)
                        continue;
                output.torn = text[n - 1] != '\n';
                text += n;
                length -= (size_t) n;
        }
        return length == 0;
}

/* Where nobody reads, the first line waits a little, and those after it do not. */
static void put_line(const char *line, size_t length) {
        char notice[64];
        uint64_t until = util_now_ns() + (atomic_load(&output.lost) > 0 ? 0 : PATIENCE_NS);
        if (!take_turn(until)) {
                atomic_fetch_add(&output.lost, 1);
                return;
        }
        unsigned lost = atomic_exchange(&output.lost, 0);
        int n = lost > 0 ? snprintf(notice, sizeof(notice), "%s(%u messages could not be written here)\n",
                                    output.torn ? "\n" : "", lost)
                         : 0;
        if (!put(notice, (size_t) n, until))
                atomic_fetch_add(&output.lost, lost + 1);
        else if (!put(line, length, until))
                atomic_fetch_add(&output.lost, 1);
        (void) pthread_mutex_unlock(&output.lock);
}

static void write_stderr(int level, const char *message) {
        char line[2200];
        struct timespec ts;
        struct tm tm;
        clock_gettime(CLOCK_REALTIME, &ts);
        gmtime_r(&ts.tv_sec, &tm);
        char when[32];
        if (strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
                when[0] = 0;
        int n = snprintf(line, sizeof(line), "%s.%03ldZ %-7s %s\n", when, ts.tv_nsec / 1000000, level_names[level],
                         message);
        if (n < 0)
                return;
        size_t length = (size_t) n < sizeof(line) ? (size_t) n : sizeof(line) - 1;
        line[length - 1] = '\n';
        put_line(line, length);
}

/* Marks a truncated message, without splitting a character: the journal shows invalid UTF-8 as a blob. */
static void mark_truncated(char *message, size_t size) {
        static const char mark[] = "...";
        size_t n = size - sizeof(mark);
        while (n > 0 && ((unsigned char) message[n] & 0xc0) == 0x80)
                n--;
        memcpy(message + n, mark, sizeof(mark));
}

/* The bytes of the control character at s: of C0, DEL, or of C1, which UTF-8 has in two bytes and a terminal obeys,
 * too. 0: none.
 */
static size_t control_bytes(const unsigned char *s) {
        if (s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0)
                return 2;
        return s[0] < 0x20 || s[0] == 0x7f;
}

void log_write(int level, const char *file, int line, const char *format, ...) {
        if (level > log_max_level || level < 0 || level >= (int) ELEMENTS(level_names))
                return;
        int saved = errno;
        char message[2048];
        va_list ap;
        va_start(ap, format);
        int n = vsnprintf(message, sizeof(message), format, ap);
        va_end(ap);
        if (n >= (int) sizeof(message))
                mark_truncated(message, sizeof(message));
        if (n >= 0) {
                /* A message is one line: text of a client or an agent must not begin another. */
                for (char *c = message; *c; c++)
                        for (size_t left = control_bytes((unsigned char *) c); left > 0; left--)
                                c[left - 1] = ' ';
                if (!log_to_journal || sd_journal_send("MESSAGE=%s", message, "PRIORITY=%i", level, "CODE_FILE=%s",
                                                       file, "CODE_LINE=%i", line, NULL) < 0)
                        write_stderr(level, message);
        }
        errno = saved;
}
