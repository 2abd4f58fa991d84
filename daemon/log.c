/* SPDX-License-Identifier: MIT */

/*
 * Log lines. Owns the level and the destination, which log_open() chooses once: the journal, with fields, when stderr
 * is the journal's stream, else stderr, with a time. Called from every thread of the daemon, of which one at a time
 * writes, so that lines of two threads never mix. What nobody reads is lost after a moment, and the next line that is
 * written comes with the number of those lost; the journal is waited for. A terminal or a full disk may take a part of
 * a line: it counts as lost, and what is written next begins a line all the same.
 */

#include "daemon/log.h"

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
#define PAUSE_NS (NSEC_PER_MSEC / 10) /* while another thread writes */

static int log_max_level = LOG_INFO;
static bool log_to_journal;

static struct {
        int fd; /* stderr, or a description of its own of the same pipe or terminal */
        bool is_socket;
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

/* What nobody reads must not hold the daemon up: a terminal that is halted (Ctrl-S), a pager at the other end of a
 * pipe. O_NONBLOCK would be that of all who share stderr, so that it is opened once more, which a socket cannot be.
 * Where it cannot (it is another user's), a line is written when there is room for some of it. */
static void open_output(void) {
        struct stat st;
        if (output.fd != STDERR_FILENO)
                util_close(output.fd);
        output.fd = STDERR_FILENO;
        output.is_socket = false;
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
