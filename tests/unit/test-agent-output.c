/* SPDX-License-Identifier: MIT */

/* What agents write to their standard error, as it comes to the log: labelled, escaped, and never more than allowed.
 * The log is a file in the place of descriptor 2. */

#include "daemon/run/watch/agent-output.h"

#include "check.h"
#include "daemon/log.h"
#include "schema/util.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

static sd_event *event;
static int log_file = -1, real_stderr = -1;
static char text[512 * 1024];

/* The log of what follows. */
static bool begin(void) {
        real_stderr = dup(STDERR_FILENO);
        log_file = memfd_create("log", MFD_CLOEXEC);
        if (real_stderr < 0 || log_file < 0 || dup2(log_file, STDERR_FILENO) < 0)
                return false;
        log_open(LOG_INFO);
        return true;
}

/* The lines without their time. */
static const char *end(void) {
        (void) dup2(real_stderr, STDERR_FILENO);
        log_open(LOG_INFO);
        real_stderr = util_close(real_stderr);
        ssize_t n = pread(log_file, text, sizeof(text) - 1, 0);
        log_file = util_close(log_file);
        text[n > 0 ? n : 0] = 0;
        return text;
}

static unsigned count(const char *haystack, const char *needle) {
        unsigned n = 0;
        for (const char *at = haystack; (at = strstr(at, needle)); at += strlen(needle))
                n++;
        return n;
}

/* Everything that can be read at once is. */
static void turn(void) {
        while (sd_event_run(event, 0) > 0)
                ;
}

/* Writes, in the meantime the event loop turns; how much could be written. */
static size_t write_all(int fd, const char *bytes, size_t n) {
        size_t at = 0;
        for (bool full = false; at < n;) {
                ssize_t w = write(fd, bytes + at, n - at);
                if (w < 0 && (errno != EAGAIN || full))
                        break;
                full = w < 0; /* twice in a row: it is not read any more */
                at += w > 0 ? (size_t) w : 0;
                turn();
        }
        return at;
}

static void lines_are_labelled(void) {
        struct agent_output *o = NULL;
        int fd = -1;
        static const char lines[] = "first\nsecond, in ";
        CHECK(begin());
        int r = agent_output_new(&o, event, 12, "sender", &fd);
        bool wrote = r == 0 && write(fd, lines, strlen(lines)) > 0;
        turn();
        wrote = wrote && write(fd, "two parts\nlast", 14) == 14;
        util_close(fd);
        turn();
        agent_output_free(o);
        const char *log = end();
        CHECK_INT(r, 0);
        CHECK(wrote);
        CHECK(strstr(log, " run 12: sender wrote: first\n"));
        CHECK(strstr(log, " run 12: sender wrote: second, in two parts\n"));
        CHECK(strstr(log, " run 12: sender wrote: last\n")); /* without its end of line */
        CHECK_UINT(count(log, "\n"), 3);
}

/* A line of the daemon's own, and a terminal's escape, cannot be forged. */
static void nothing_is_forged(void) {
        struct agent_output *o = NULL;
        int fd = -1;
        static const char forged[] = "a\r2026-01-01T00:00:00.000Z notice ready {}\x1b[2J\\x41\0b\xc3\xa4\n";
        CHECK(begin());
        int r = agent_output_new(&o, event, 1, "receiver", &fd);
        bool wrote = r == 0 && write(fd, forged, sizeof(forged) - 1) == (ssize_t) sizeof(forged) - 1;
        util_close(fd);
        agent_output_free(o);
        const char *log = end();
        CHECK(wrote);
        CHECK(strstr(log, "wrote: a\\x0d2026-01-01T00:00:00.000Z notice ready {}\\x1b[2J\\x5cx41\\x00b\\xc3\\xa4\n"));
        CHECK_UINT(count(log, "\n"), 1);
}

static void long_lines_are_cut(void) {
        struct agent_output *o = NULL;
        char line[5000];
        int fd = -1;
        memset(line, 'x', sizeof(line));
        line[sizeof(line) - 1] = '\n';
        CHECK(begin());
        int r = agent_output_new(&o, event, 1, "sender", &fd);
        bool wrote = r == 0 && write(fd, line, sizeof(line)) == (ssize_t) sizeof(line) && write(fd, "y\n", 2) == 2;
        util_close(fd);
        agent_output_free(o);
        const char *log = end();
        CHECK(wrote);
        CHECK_UINT(count(log, "x"), 400);
        CHECK(strstr(log, "x...\n"));
        CHECK(strstr(log, "wrote: y\n"));
}

static void many_lines_are_dropped(void) {
        struct agent_output *o = NULL;
        int fd = -1;
        CHECK(begin());
        int r = agent_output_new(&o, event, 1, "sender", &fd);
        size_t wrote = 0;
        for (int i = 0; r == 0 && i < 1000; i++)
                wrote += write_all(fd, "line\n", 5);
        util_close(fd);
        turn();
        agent_output_free(o);
        const char *log = end();
        CHECK_UINT(wrote, 5000);
        CHECK_UINT(count(log, "wrote: line\n"), 100);
        CHECK(strstr(log, "sender wrote 1000 lines to its standard error, 100 are logged"));
}

/* The writer of too much is left with a full pipe; the event loop has nothing to do with it any more. */
static void a_flood_is_not_read(void) {
        struct agent_output *o = NULL;
        static char much[1024 * 1024];
        int fd = -1;
        memset(much, 'z', sizeof(much));
        CHECK(begin());
        int r = agent_output_new(&o, event, 1, "sender", &fd);
        bool set = r == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
        size_t wrote = set ? write_all(fd, much, sizeof(much)) : 0;
        int events = sd_event_run(event, 0);
        util_close(fd);
        agent_output_free(o);
        const char *log = end();
        CHECK(set && wrote >= 256 * 1024 && wrote < sizeof(much));
        CHECK_INT(events, 0);
        CHECK(strstr(log, "sender wrote more than 262144 bytes to its standard error, which is not read any more"));
        CHECK(strlen(log) < 2000);
}

int main(void) {
        (void) signal(SIGPIPE, SIG_IGN);
        if (sd_event_new(&event) < 0)
                return 1;
        RUN(lines_are_labelled);
        RUN(nothing_is_forged);
        RUN(long_lines_are_cut);
        RUN(many_lines_are_dropped);
        RUN(a_flood_is_not_read);
        sd_event_unref(event);
        return check_end();
}
