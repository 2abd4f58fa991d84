/* SPDX-License-Identifier: MIT */

/*
 * Log lines. Owns the level and the destination, which log_open() chooses once: the journal, with fields, when stderr
 * is the journal's stream, else stderr, with a time. Called from every thread of the daemon, of which one at a time
 * writes, so that lines of two threads never mix. What nobody reads is lost after a moment, and the next line that is
 * written comes with the number of those lost: sd_journal_send(3) would wait for a journal that stands still. A
 * terminal or a full disk may take a part of a line: it counts as lost, and what is written next begins a line all the
 * same. Another user's pipe or terminal, which may block a writer, has a thread of its own: what it has not written
 * shortly after the end is lost.
 *
 * Source: https://systemd.io/JOURNAL_NATIVE_PROTOCOL: a message is a datagram of lines "FIELD=value".
 */

#include "daemon/log.h"

#include "schema/signals.h"
#include "schema/util.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define PATIENCE_NS (20 * NSEC_PER_MSEC)
#define END_PATIENCE_MS 200
#define PAUSE_NS (NSEC_PER_MSEC / 10) /* while another thread writes */
#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define JOURNAL_BUFFER (8 << 20) /* bytes on the way to it, as far as the kernel gives them */
#define LINE_MAX_BYTES 2560

static int log_max_level = LOG_INFO;
static bool log_to_journal;

static struct output {
        int fd; /* stderr, or a description of its own of the same pipe or terminal, or the relay's socket; the
                 * journal's: under the lock, -1: none */
        bool is_socket, is_relay;
        atomic_uint lost; /* messages since the last one that was written */
        pthread_mutex_t lock;
        bool torn; /* the last line has no end yet; under the lock */
} output = {.fd = STDERR_FILENO, .lock = PTHREAD_MUTEX_INITIALIZER},
  journal = {.fd = -1, .is_socket = true, .lock = PTHREAD_MUTEX_INITIALIZER};

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
static bool await_room(const struct output *o, uint64_t until_ns) {
        struct pollfd p = {.fd = o->fd, .events = POLLOUT};
        uint64_t now = util_now_ns();
        int ms = now < until_ns ? (int) ((until_ns - now) / NSEC_PER_MSEC) + 1 : 0;
        return poll(&p, 1, ms) > 0;
}

static bool take_turn(struct output *o, uint64_t until_ns) {
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        while (pthread_mutex_trylock(&o->lock) != 0) {
                if (util_now_ns() >= until_ns)
                        return false;
                (void) nanosleep(&pause, NULL);
        }
        return true;
}

/* 0; -EAGAIN: there was no room for all of it; another negative errno. */
static int put(struct output *o, const char *text, size_t length, uint64_t until_ns) {
        while (length > 0) {
                if (!await_room(o, until_ns))
                        return -EAGAIN;
                ssize_t n = o->is_socket ? send(o->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL)
                                         : write(o->fd, text, length);
                if (n < 0 && errno != EINTR && (errno != EAGAIN || util_now_ns() >= until_ns))
                        return -errno;
                if (n <= 0)
                        continue;
                o->torn = text[n - 1] != '\n';
                text += n;
                length -= (size_t) n;
        }
        return 0;
}

static int connect_journal(void) {
        const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET};
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        (void) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){JOURNAL_BUFFER}, sizeof(int));
        journal.fd = util_steal_fd(&fd);
        return 0;
}

/* As put(). A journal that was started again may have another socket. */
static int put_to(struct output *o, const char *text, size_t length, uint64_t until_ns) {
        int r = o->fd >= 0 ? put(o, text, length, until_ns) : -ENOTCONN;
        if (o != &journal || r == 0 || r == -EAGAIN)
                return r;
        journal.fd = util_close(journal.fd);
        r = connect_journal();
        return r < 0 ? r : put(o, text, length, until_ns);
}

static size_t compose_entry(char text[static LINE_MAX_BYTES], int level, const char *file, int line,
                            const char *message) {
        int n = snprintf(text, LINE_MAX_BYTES,
                         "SYSLOG_IDENTIFIER=ipclabd\nPRIORITY=%i\nCODE_FILE=%s\nCODE_LINE=%i\nMESSAGE=%s\n", level,
                         file, line, message);
        return n < 0 ? 0 : (size_t) n < LINE_MAX_BYTES ? (size_t) n : LINE_MAX_BYTES - 1;
}

static size_t compose_notice(const struct output *o, char text[static LINE_MAX_BYTES], unsigned lost) {
        char words[64];
        (void) snprintf(words, sizeof(words), "(%u messages could not be written here)", lost);
        if (o == &journal)
                return compose_entry(text, LOG_WARNING, __FILE__, __LINE__, words);
        int n = snprintf(text, LINE_MAX_BYTES, "%s%s\n", o->torn ? "\n" : "", words);
        return n < 0 ? 0 : (size_t) n;
}

/* Where nobody reads, the first line waits a little, and those after it do not. 0: it is written, or lost; negative
 * errno: it cannot be written there. */
static int put_line(struct output *o, const char *line, size_t length) {
        char notice[LINE_MAX_BYTES];
        uint64_t until = util_now_ns() + (atomic_load(&o->lost) > 0 ? 0 : PATIENCE_NS);
        if (!take_turn(o, until)) {
                atomic_fetch_add(&o->lost, 1);
                return 0;
        }
        unsigned lost = atomic_exchange(&o->lost, 0);
        int r = lost > 0 ? put_to(o, notice, compose_notice(o, notice, lost), until) : 0;
        if (r < 0)
                atomic_fetch_add(&o->lost, lost);
        else
                r = put_to(o, line, length, until);
        if (r < 0 && (o != &journal || r == -EAGAIN)) {
                atomic_fetch_add(&o->lost, 1);
                r = 0;
        }
        (void) pthread_mutex_unlock(&o->lock);
        return r;
}

static int write_journal(int level, const char *file, int line, const char *message) {
        char text[LINE_MAX_BYTES];
        return put_line(&journal, text, compose_entry(text, level, file, line, message));
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
        (void) put_line(&output, line, length);
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
                if (!log_to_journal || write_journal(level, file, line, message) < 0)
                        write_stderr(level, message);
        }
        errno = saved;
}
