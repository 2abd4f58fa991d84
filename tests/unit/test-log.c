/* SPDX-License-Identifier: MIT */

/* Log lines: what reaches stderr and in which form, what goes to the journal instead and with which fields, and that
 * a line stays one line. The journal is a socket of this file's. */

#include "daemon/log.h"
#include "schema/json/utf8.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/child.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* ---- a journal that takes notes ---- */

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

static int journal_fd = -1;

static struct sockaddr_un journal_address(socklen_t *ret_length) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        int n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "ipclab-test-log-%d", getpid());
        *ret_length = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n);
        return a;
}

int __real_connect(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length); /* by the linker's --wrap */

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length) {
        const struct sockaddr_un *to = (const struct sockaddr_un *) (const void *) address;
        if (to->sun_family != AF_UNIX || strcmp(to->sun_path, JOURNAL_SOCKET) != 0)
                return __real_connect(fd, address, length);
        struct sockaddr_un here = journal_address(&length);
        return __real_connect(fd, (const struct sockaddr *) &here, length);
}

static bool journal_begin(void) {
        socklen_t length;
        struct sockaddr_un a = journal_address(&length);
        journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        return journal_fd >= 0 && bind(journal_fd, (const struct sockaddr *) &a, length) == 0;
}

static void journal_end(void) {
        journal_fd = util_close(journal_fd);
}

/* The messages that it has been sent since the last time, one behind the other; how many. */
static unsigned journal_read(char *text, size_t size) {
        unsigned n = 0;
        size_t used = 0;
        ssize_t k;
        while (used + 1 < size && (k = recv(journal_fd, text + used, size - 1 - used, 0)) > 0) {
                used += (size_t) k;
                n++;
        }
        text[used] = '\0';
        return n;
}

/* ---- stderr in a file ---- */

struct capture {
        int fd, saved;
        char text[8192];
};

static bool capture_begin(struct capture *c) {
        *c = (struct capture){.fd = memfd_create("stderr", MFD_CLOEXEC), .saved = dup(STDERR_FILENO)};
        return c->fd >= 0 && c->saved >= 0 && dup2(c->fd, STDERR_FILENO) >= 0;
}

/* Makes stderr the journal's stream, with the variable that systemd sets. */
static void claim_stream(const struct capture *c, int64_t inode_off, const char *behind) {
        struct stat st;
        char stream[64];
        if (fstat(c->fd, &st) < 0)
                return;
        (void) snprintf(stream, sizeof stream, "%llu:%llu%s", (unsigned long long) st.st_dev,
                        (unsigned long long) st.st_ino + (unsigned long long) inode_off, behind);
        (void) setenv("JOURNAL_STREAM", stream, 1);
}

static const char *capture_end(struct capture *c) {
        (void) dup2(c->saved, STDERR_FILENO);
        (void) unsetenv("JOURNAL_STREAM");
        ssize_t n = pread(c->fd, c->text, sizeof c->text - 1, 0);
        c->text[n > 0 ? n : 0] = '\0';
        c->saved = util_close(c->saved);
        c->fd = util_close(c->fd);
        return c->text;
}

/* What stands behind the time, which has a form and no certain value. */
static const char *behind_time(const char *line) {
        static const char form[] = "0000-00-00T00:00:00.000Z ";
        for (size_t i = 0; i < sizeof form - 1; i++)
                if (form[i] == '0' ? line[i] < '0' || line[i] > '9' : line[i] != form[i])
                        return "(no time)";
        return line + sizeof form - 1;
}

static void a_line_has_time_level_and_message(void) {
        struct capture c;
        char text[8192];
        CHECK(capture_begin(&c) && journal_begin());
        log_open(LOG_INFO);
        log_warning("%d of %s", 3, "four");
        unsigned n = journal_read(text, sizeof text);
        journal_end();
        CHECK_STRING(behind_time(capture_end(&c)), "warning 3 of four\n");
        CHECK_UINT(n, 0);
}

static void levels_above_the_limit_are_dropped(void) {
        static const struct {
                int limit;
                const char *lines;
        } cases[] = {
                {LOG_ERR, "E"}, {LOG_WARNING, "EW"}, {LOG_NOTICE, "EWN"}, {LOG_INFO, "EWNI"}, {LOG_DEBUG, "EWNID"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct capture c;
                char got[16] = "";
                CHECK(capture_begin(&c));
                log_open(cases[i].limit);
                log_error("E");
                log_warning("W");
                log_notice("N");
                log_info("I");
                log_debug("D");
                log_write(-1, "f", 1, "below all levels");
                log_write(8, "f", 1, "above all levels");
                capture_end(&c);
                for (char *line = c.text, *end; (end = strchr(line, '\n')); line = end + 1)
                        strncat(got, end - 1, 1);
                CHECK_STRING(got, cases[i].lines);
        }
}

static void names_of_levels(void) {
        static const struct {
                const char *name;
                int level;
        } cases[] = {{"error", LOG_ERR},
                     {"warning", LOG_WARNING},
                     {"notice", LOG_NOTICE},
                     {"info", LOG_INFO},
                     {"debug", LOG_DEBUG}};
        static const char *const none[] = {"", "critical", "emergency", "Info", "info ", "6"};
        int level = 42;
        for (size_t i = 0; i < ELEMENTS(none); i++)
                CHECK_INT(log_level_from_name(none[i], &level), -EINVAL);
        CHECK_INT(level, 42);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                CHECK_INT(log_level_from_name(cases[i].name, &level), 0);
                CHECK_INT(level, cases[i].level);
        }
}

/* Text of a client cannot begin a line that looks like the daemon's. */
static void a_message_stays_one_line(void) {
        struct capture c;
        CHECK(capture_begin(&c));
        log_open(LOG_INFO);
        log_info("%s", "one\ntwo\r\033[31m\t\x7f\x01 three \xc3\xa4 \xc2\x9b"
                       "31m \xc2\x80 \xc2\xa0 \xc3\x9b");
        CHECK_STRING(behind_time(capture_end(&c)),
                     "info    one two  [31m    three \xc3\xa4   31m    \xc2\xa0 \xc3\x9b\n");
}

/* Says that it is cut, ends as a line, and cuts no character in two: journalctl shows such a message as a blob. */
static void a_long_message_is_cut_with_a_mark(void) {
        char words[4000];
        for (size_t before = 0; before < 3; before++) {
                struct capture c;
                size_t n = 0, k;
                memset(words, 'x', before);
                for (n = before; n + 3 < sizeof words; n += 3)
                        memcpy(words + n, "\xe2\x82\xac", 3);
                words[n] = '\0';
                CHECK(capture_begin(&c));
                log_open(LOG_INFO);
                log_info("%s", words);
                const char *got = behind_time(capture_end(&c)) + 8;
                n = strlen(got);
                CHECK(n > 2000 && n <= 2048);
                CHECK_STRING(got + n - 4, "...\n");
                for (size_t at = 0; at < n; at += k) {
                        k = utf8_length(got + at, n - at);
                        CHECK(k > 0);
                }
        }
}

static void what_just_fits_is_whole(void) {
        char words[2048];
        struct capture c;
        memset(words, 'y', sizeof words);
        words[2047] = '\0';
        CHECK(capture_begin(&c));
        log_open(LOG_INFO);
        log_info("%s", words);
        const char *got = behind_time(capture_end(&c)) + 8;
        CHECK_UINT(strlen(got), 2048);
        CHECK(strncmp(got, words, 2047) == 0 && got[2047] == '\n');
}

static void errno_is_unchanged(void) {
        struct capture c;
        CHECK(capture_begin(&c));
        log_open(LOG_INFO);
        errno = EXDEV;
        log_info("x");
        int first = errno;
        (void) close(STDERR_FILENO); /* a line that cannot be written */
        errno = EXDEV;
        log_info("y");
        int second = errno;
        capture_end(&c);
        CHECK_INT(first, EXDEV);
        CHECK_INT(second, EXDEV);
}

static void the_journal_gets_its_fields_once(void) {
        struct capture c;
        char text[8192];
        CHECK(capture_begin(&c) && journal_begin());
        claim_stream(&c, 0, "");
        log_open(LOG_INFO);
        log_write(LOG_NOTICE, "daemon/some-file.c", 42, "a\n%s", "message");
        unsigned n = journal_read(text, sizeof text);
        journal_end();
        CHECK_STRING(capture_end(&c), "");
        CHECK_UINT(n, 1);
        CHECK_STRING(text, "SYSLOG_IDENTIFIER=ipclabd\nPRIORITY=5\nCODE_FILE=daemon/some-file.c\nCODE_LINE=42\n"
                           "MESSAGE=a message\n");
}

static void what_the_journal_does_not_take_goes_to_stderr(void) {
        struct capture c;
        char text[8192];
        CHECK(capture_begin(&c) && journal_begin());
        claim_stream(&c, 0, "");
        log_open(LOG_INFO);
        journal_end();
        log_info("first");
        bool again = journal_begin();
        log_info("second");
        unsigned n = again ? journal_read(text, sizeof text) : 0;
        journal_end();
        CHECK_STRING(behind_time(capture_end(&c)), "info    first\n");
        CHECK_UINT(n, 1);
        CHECK(strstr(text, "MESSAGE=second\n") != NULL);
}

/* stderr was redirected after systemd had set the variable, or it is not set. */
static void another_stream_is_no_journal(void) {
        static const struct {
                int64_t inode_off;
                const char *behind, *whole;
        } cases[] = {{1, "", NULL}, {0, "x", NULL}, {0, "", ""}, {0, "", "1"}, {0, "", "a:b"}, {0, "", "7:"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct capture c;
                char text[8192];
                CHECK(capture_begin(&c) && journal_begin());
                claim_stream(&c, cases[i].inode_off, cases[i].behind);
                if (cases[i].whole)
                        (void) setenv("JOURNAL_STREAM", cases[i].whole, 1);
                log_open(LOG_INFO);
                log_info("here");
                unsigned n = journal_read(text, sizeof text);
                journal_end();
                const char *got = behind_time(capture_end(&c));
                if (n > 0 || strcmp(got, "info    here\n") != 0)
                        CHECK_FAIL("case %zu: \"%s\" and %u messages", i, got, n);
        }
}

/* ---- stderr that nobody reads ---- */

/* How often poll(2) has waited until its time was over. */
static unsigned waited_in_vain;

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms); /* by the linker's --wrap */

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms) {
        int r = __real_poll(fds, n, timeout_ms);
        waited_in_vain += r == 0 && timeout_ms != 0;
        return r;
}

#define UNREAD 300
#define READ_MAX (1 << 20)

/* Reads what there is; the lines. */
static unsigned drain(int fd, char *text) {
        size_t n = 0;
        unsigned lines = 0;
        ssize_t k;
        while (n + 1 < READ_MAX && (k = recv(fd, text + n, READ_MAX - 1 - n, MSG_DONTWAIT)) > 0)
                n += (size_t) k;
        if (n == 0) /* a pipe */
                while (n + 1 < READ_MAX && (k = read(fd, text + n, READ_MAX - 1 - n)) > 0)
                        n += (size_t) k;
        text[n] = '\0';
        for (const char *c = text; *c; c++)
                lines += *c == '\n';
        return lines;
}

static void a_reader_that_stands_still_holds_nobody_up(bool socket) {
        static char text[READ_MAX];
        char words[2000];
        int ends[2], saved = dup(STDERR_FILENO);
        unsigned lost = 0;
        memset(words, 'z', sizeof words - 1);
        words[sizeof words - 1] = '\0';
        if (saved < 0 || (socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe2(ends, 0)) < 0 ||
            fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 || dup2(ends[1], STDERR_FILENO) < 0) {
                CHECK_FAIL("cannot redirect stderr: %s", strerror(errno));
                return;
        }
        log_open(LOG_INFO);
        waited_in_vain = 0;
        (void) alarm(60); /* ends a test that hangs */
        for (int i = 0; i < UNREAD; i++)
                log_info("%s", words);
        (void) alarm(0);
        unsigned lines = drain(ends[0], text);
        log_info("after it");
        bool shared = (fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) == 0; /* as it was, for all who have it */
        (void) drain(ends[0], text);
        (void) dup2(saved, STDERR_FILENO);
        log_open(LOG_INFO);
        CHECK(shared);
        CHECK(waited_in_vain <= 1); /* the first line that did not fit */
        CHECK(lines > 0 && lines < UNREAD);
        const char *notice = strchr(text, '('), *end = strchr(text, '\n');
        CHECK(notice && sscanf(notice, "(%u messages could not be written here)", &lost) == 1);
        CHECK_UINT(lines + lost, UNREAD);
        CHECK_STRING(end ? behind_time(end + 1) : "", "info    after it\n");
        (void) close(saved);
        (void) close(ends[0]);
        (void) close(ends[1]);
}

static void a_pipe_that_is_not_read_holds_nobody_up(void) {
        a_reader_that_stands_still_holds_nobody_up(false);
}

static void a_socket_that_is_not_read_holds_nobody_up(void) {
        a_reader_that_stands_still_holds_nobody_up(true);
}

/* journald that is stopped, or does not come to its turn. */
static void a_journal_that_is_not_read_holds_nobody_up(void) {
        static char text[READ_MAX];
        struct capture c;
        unsigned lost = 0, lines = 0, n = 0;
        CHECK(capture_begin(&c) && journal_begin());
        claim_stream(&c, 0, "");
        log_open(LOG_INFO);
        waited_in_vain = 0;
        (void) alarm(60); /* ends a test that hangs */
        for (int i = 0; i < UNREAD; i++)
                log_info("<%01999d>", i);
        (void) alarm(0);
        unsigned waited = waited_in_vain;
        lines = journal_read(text, sizeof text);
        log_info("after it");
        n = journal_read(text, sizeof text);
        journal_end();
        CHECK_STRING(capture_end(&c), "");
        CHECK(waited <= 1); /* the first line that did not fit */
        CHECK(lines > 0 && lines < UNREAD);
        CHECK_UINT(n, 2);
        const char *notice = strstr(text, "MESSAGE=(");
        CHECK(notice && sscanf(notice, "MESSAGE=(%u messages could not be written here)", &lost) == 1);
        CHECK_UINT(lines + lost, UNREAD);
        CHECK(strstr(text, "MESSAGE=after it\n") != NULL);
}

/* ---- a terminal, which takes a part of a line where it has no room for more ---- */

struct terminal {
        int master, slave, saved;
};

static bool terminal_begin(struct terminal *t) {
        t->saved = dup(STDERR_FILENO);
        if (t->saved < 0 || openpty(&t->master, &t->slave, NULL, NULL, NULL) < 0 ||
            fcntl(t->master, F_SETFL, O_NONBLOCK) < 0 || dup2(t->slave, STDERR_FILENO) < 0)
                return false;
        log_open(LOG_INFO);
        return true;
}

/* What it has, behind the `n` characters of the text; their number then. */
static size_t terminal_read(const struct terminal *t, char *text, size_t n, size_t most) {
        ssize_t k;
        while (n < most && (k = read(t->master, text + n, most - n)) > 0)
                n += (size_t) k;
        text[n] = '\0';
        return n;
}

static void terminal_end(struct terminal *t) {
        (void) dup2(t->saved, STDERR_FILENO);
        log_open(LOG_INFO);
        (void) close(t->saved);
        (void) close(t->slave);
        (void) close(t->master);
}

/* Each line begins as one of the daemon's; those that notices count as lost. */
static void check_lines(const char *text, unsigned *ret_lost) {
        unsigned lost = 0;
        *ret_lost = 0;
        for (const char *line = text, *end; *line; line = end + 1) {
                end = strchr(line, '\n');
                if (!end)
                        CHECK_FAIL("no end: \"%.60s\"", line);
                else if (sscanf(line, "(%u messages could not be written here)", &lost) == 1)
                        *ret_lost += lost;
                else if (strncmp(behind_time(line), "info    <", 9) != 0)
                        CHECK_FAIL("no beginning: \"%.60s\"", line);
        }
}

static void a_line_of_which_a_part_is_taken_ends_before_the_next(void) {
        enum { ROUNDS = 20 };
        static char text[READ_MAX];
        struct terminal t;
        char words[2000] = "<";
        unsigned lost = 0, taken = 0;
        memset(words + 1, 'z', sizeof words - 3);
        words[sizeof words - 2] = '>';
        words[sizeof words - 1] = '\0';
        CHECK(terminal_begin(&t));
        (void) alarm(60); /* ends a test that hangs */
        size_t n = 0;
        for (int round = 0; round < ROUNDS; round++) {
                for (int i = 0; i < UNREAD / ROUNDS; i++)
                        log_info("<%s", words + 1 + 13 * round);
                n = terminal_read(&t, text, n, n + 1000); /* less than a line needs */
        }
        n = terminal_read(&t, text, n, sizeof text - 1);
        log_info("<after it>");
        (void) terminal_read(&t, text, n, sizeof text - 1);
        (void) alarm(0);
        terminal_end(&t);
        check_lines(text, &lost);
        for (const char *c = text; (c = strstr(c, "z>")); c++)
                taken++;
        CHECK(lost > 0 && taken < UNREAD);
        CHECK(taken + lost >= UNREAD); /* one that lacks nothing but its end is counted among both */
        CHECK(strstr(text, " <after it>\r\n"));
}

/* Another user's, which cannot be opened once more: in a process without privilege, that of nobody. */
static int write_to_foreign_terminal(void *userdata) {
        struct terminal *t = userdata;
        if (fchmod(t->slave, 0) < 0 || (geteuid() == 0 && setuid(65534) < 0))
                return 2;
        int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0)
                return 3;
        log_open(LOG_INFO);
        (void) alarm(20); /* ends one that hangs */
        for (int i = 0; i < UNREAD; i++)
                log_info("<%01999d>", i);
        return (fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) != 0; /* as it was, for all who have it */
}

static void another_users_terminal_that_is_not_read_holds_nobody_up(void) {
        struct terminal t;
        CHECK(terminal_begin(&t));
        int status = child_does(write_to_foreign_terminal, &t);
        terminal_end(&t);
        CHECK_INT(status, 0);
}

static int write_and_end(void *userdata) {
        struct terminal *t = userdata;
        if (fchmod(t->slave, 0) < 0 || (geteuid() == 0 && setuid(65534) < 0))
                return 2;
        log_open(LOG_INFO);
        for (int i = 0; i < 20; i++)
                log_info("<%d>", i);
        exit(0); /* with what is to be done at the end */
}

/* A few tries: the process waits 200 ms for the thread that writes, which may not run so soon on a busy machine. */
static void another_users_terminal_gets_what_is_logged_before_the_end(void) {
        enum { TRIES = 5, LINES = 20 };
        static char text[READ_MAX];
        unsigned lost, n = 0;
        for (int try = 0; try < TRIES && n < LINES; try++) {
                struct terminal t;
                CHECK(terminal_begin(&t));
                int status = child_does(write_and_end, &t);
                (void) terminal_read(&t, text, 0, sizeof text - 1);
                terminal_end(&t);
                CHECK_INT(status, 0);
                n = 0;
                for (int i = 0; i < LINES; i++) {
                        char line[16];
                        (void) snprintf(line, sizeof line, " <%d>\r\n", i);
                        n += strstr(text, line) != NULL;
                }
        }
        CHECK_UINT(n, LINES);
        check_lines(text, &lost);
        CHECK_UINT(lost, 0);
}

static void *write_lines(void *userdata) {
        for (int i = 0; i < UNREAD; i++)
                log_info("<%s", (const char *) userdata);
        return NULL;
}

/* A slow reader gives each of them room for a part of its line. The text that a terminal got. */
static void write_by_two_threads(char *text, size_t size) {
        static char words[2][1500];
        struct terminal t;
        pthread_t threads[2];
        size_t n = 0;
        CHECK(terminal_begin(&t));
        for (int i = 0; i < 2; i++) {
                memset(words[i], 'a' + i, sizeof words[i] - 1);
                if (pthread_create(&threads[i], NULL, write_lines, words[i]) != 0)
                        abort();
        }
        while (pthread_tryjoin_np(threads[0], NULL) != 0)
                n = terminal_read(&t, text, n, n + 100 < size ? n + 100 : size - 1);
        (void) pthread_join(threads[1], NULL);
        n = terminal_read(&t, text, n, size - 1);
        log_info("<after it>"); /* the end of one of which a part was taken */
        (void) terminal_read(&t, text, n, size - 1);
        terminal_end(&t);
}

/* A few tries: where the reader does not run for a moment, all lines of one thread may be lost. */
static void lines_of_two_threads_do_not_mix(void) {
        enum { TRIES = 5 };
        static char text[2 * READ_MAX];
        unsigned lost;
        bool both = false;
        (void) alarm(60); /* ends a test that hangs */
        for (int try = 0; try < TRIES && !both; try++) {
                text[0] = '\0';
                write_by_two_threads(text, sizeof text);
                check_lines(text, &lost);
                CHECK(!strstr(text, "ab") && !strstr(text, "ba"));
                both = strstr(text, "aaa") && strstr(text, "bbb");
        }
        (void) alarm(0);
        CHECK(both);
}

int main(void) {
        RUN(a_line_has_time_level_and_message);
        RUN(levels_above_the_limit_are_dropped);
        RUN(names_of_levels);
        RUN(a_message_stays_one_line);
        RUN(a_long_message_is_cut_with_a_mark);
        RUN(what_just_fits_is_whole);
        RUN(errno_is_unchanged);
        RUN(the_journal_gets_its_fields_once);
        RUN(what_the_journal_does_not_take_goes_to_stderr);
        RUN(another_stream_is_no_journal);
        RUN(a_pipe_that_is_not_read_holds_nobody_up);
        RUN(a_socket_that_is_not_read_holds_nobody_up);
        RUN(a_journal_that_is_not_read_holds_nobody_up);
        RUN(a_line_of_which_a_part_is_taken_ends_before_the_next);
        RUN(another_users_terminal_that_is_not_read_holds_nobody_up);
        RUN(another_users_terminal_gets_what_is_logged_before_the_end);
        RUN(lines_of_two_threads_do_not_mix);
        return check_end();
}
