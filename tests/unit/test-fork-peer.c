/* SPDX-License-Identifier: MIT */

/* A program that forks its peer: memory that both have, the place that the forked peer is given, and each step that is
 * refused. The program is a child of the test's, so that the forked peer is one too, as it is the daemon's. */

#include "agent/os/cpumask.h"
#include "agent/os/fork-peer.h"
#include "schema/protocol/protocol.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* The place of socket pairs until a child takes its ends: beyond all that the protocol names. */
#define ASIDE 20

struct ends {
        int daemon, agent;
};

static bool pair(struct ends *e) {
        int fds[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return false;
        e->daemon = fcntl(fds[0], F_DUPFD_CLOEXEC, ASIDE);
        e->agent = fcntl(fds[1], F_DUPFD_CLOEXEC, ASIDE);
        util_close(fds[0]);
        util_close(fds[1]);
        return e->daemon >= 0 && e->agent >= 0;
}

struct family {
        struct ends report, first, second; /* to the daemon: the report of the fork, and the control of each */
        int peers[2];                      /* of the channel between them */
        pid_t program;
};

static void family_close(struct family *f) {
        struct ends *const all[] = {&f->report, &f->first, &f->second};
        for (size_t i = 0; i < ELEMENTS(all); i++) {
                all[i]->daemon = util_close(all[i]->daemon);
                all[i]->agent = util_close(all[i]->agent);
        }
        f->peers[0] = util_close(f->peers[0]);
        f->peers[1] = util_close(f->peers[1]);
        if (f->program > 0)
                (void) waitpid(f->program, NULL, 0);
}
#define FAMILY __attribute__((cleanup(family_close))) struct family

/* What each of the two does with its own descriptors; the code it exits with. */
static int be_first(struct forked_memory *m) {
        char byte;
        if (m->length != 8192 || m->memory[5000] != 0)
                return 10;
        m->memory[5000] = 77; /* before the message that it is there */
        if (send(AGENT_PEER_FD, "x", 1, MSG_NOSIGNAL) != 1 || recv(AGENT_PEER_FD, &byte, 1, 0) != 1)
                return 11;
        if (m->memory[0] != 78)
                return 12;
        for (int fd = AGENT_FORKED_CONTROL_FD; fd <= AGENT_FORKED_REPORT_FD; fd++)
                if (fcntl(fd, F_GETFD) >= 0)
                        return 13;
        return send(AGENT_CONTROL_FD, "first", 5, MSG_NOSIGNAL) == 5 ? 0 : 14;
}

static int be_forked(struct forked_memory *m) {
        char byte;
        struct cpumask mine;
        if (recv(AGENT_PEER_FD, &byte, 1, 0) != 1 || m->memory[5000] != 77)
                return 20;
        m->memory[0] = 78;
        if (send(AGENT_PEER_FD, "y", 1, MSG_NOSIGNAL) != 1)
                return 21;
        if (cpumask_get_affinity(0, &mine) < 0)
                return 22;
        for (int fd = AGENT_FORKED_CONTROL_FD; fd <= AGENT_FORKED_REPORT_FD; fd++)
                if (fcntl(fd, F_GETFD) >= 0)
                        return 23;
        return send(AGENT_CONTROL_FD, &mine, sizeof mine, MSG_NOSIGNAL) == sizeof mine ? 0 : 24;
}

static __attribute__((noreturn)) void be_program(const struct family *f, const char *bytes) {
        struct forked_memory m = {0};
        if (dup2(f->first.agent, AGENT_CONTROL_FD) < 0 || dup2(f->peers[0], AGENT_PEER_FD) < 0 ||
            dup2(f->second.agent, AGENT_FORKED_CONTROL_FD) < 0 || dup2(f->peers[1], AGENT_FORKED_PEER_FD) < 0 ||
            dup2(f->report.agent, AGENT_FORKED_REPORT_FD) < 0)
                _exit(99);
        close_range(ASIDE, ~0u, 0); /* the ends are in their places: a process that is gone is seen to be gone */
        int r = fork_peer(bytes, false, &m);
        if (r < 0)
                _exit(m.memory ? 98 : 50);
        _exit(r == 0 ? be_first(&m) : be_forked(&m));
}

static bool family_open(struct family *f, const char *bytes) {
        struct ends peers = {-1, -1};
        *f = (struct family){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, -1};
        if (!pair(&f->report) || !pair(&f->first) || !pair(&f->second) || !pair(&peers))
                return false;
        f->peers[0] = peers.daemon;
        f->peers[1] = peers.agent;
        f->program = fork();
        if (f->program == 0)
                be_program(f, bytes);
        f->report.agent = util_close(f->report.agent);
        f->first.agent = util_close(f->first.agent);
        f->second.agent = util_close(f->second.agent);
        f->peers[0] = util_close(f->peers[0]);
        f->peers[1] = util_close(f->peers[1]);
        return f->program > 0;
}

static int end_of(pid_t pid) {
        int status;
        return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The program's report of its forked peer, with nothing beside it. */
static bool receive_report(struct family *f, struct forked_report *ret) {
        struct iovec iov = {.iov_base = ret, .iov_len = sizeof *ret};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        return recvmsg(f->report.daemon, &m, 0) == sizeof *ret && !(m.msg_flags & MSG_CTRUNC);
}

static void both_share_their_memory(void) {
        FAMILY f;
        struct forked_report born;
        static struct forked_placement place;
        struct cpumask start, one = {}, place_seen;
        char word[8] = "";
        CHECK_INT(cpumask_get_affinity(0, &start), 0);
        unsigned cpu = CPUMASK_CPUS;
        while (!cpumask_has(&start, --cpu))
                ;
        cpumask_add(&one, cpu);
        memset(&place, 0, sizeof place);
        memcpy(place.cpus, &one, sizeof place.cpus);
        CHECK(family_open(&f, "8192"));
        CHECK(receive_report(&f, &born));
        CHECK_INT(born.error, 0);
        CHECK(born.pid > 0 && born.pid != f.program);
        CHECK_INT(send(f.report.daemon, &place, sizeof place, MSG_NOSIGNAL), sizeof place);
        siginfo_t info = {0};
        CHECK_INT(waitid(P_PID, (id_t) born.pid, &info, WEXITED), 0); /* a child of ours */
        CHECK_INT(info.si_pid, born.pid);
        CHECK_INT(info.si_status, 0);
        pid_t program = f.program;
        f.program = -1;
        CHECK_INT(end_of(program), 0);
        CHECK_INT(recv(f.first.daemon, word, sizeof word, MSG_DONTWAIT), 5);
        CHECK_STRING(word, "first");
        CHECK_INT(recv(f.second.daemon, &place_seen, sizeof place_seen, MSG_DONTWAIT), sizeof place_seen);
        CHECK(cpumask_equal(&place_seen, &one));
}

static void bytes_that_cannot_be_shared(void) {
        static const struct {
                const char *bytes, *step;
                int error;
        } cases[] = {{"", "bytes to share", EINVAL},
                     {"0", "bytes to share", EINVAL},
                     {"x", "bytes to share", EINVAL},
                     {"8192x", "bytes to share", EINVAL},
                     {"18446744073709551616", "bytes to share", EINVAL},
                     {"18446744073709547520", "mmap", ENOMEM}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                FAMILY f;
                struct forked_report born;
                CHECK(family_open(&f, cases[i].bytes));
                CHECK(receive_report(&f, &born));
                pid_t program = f.program;
                f.program = -1;
                CHECK_INT(end_of(program), 50);
                CHECK_INT(born.pid, 0);
                CHECK_INT(born.error, cases[i].error);
                CHECK_STRING(born.step, cases[i].step);
        }
}

/* The daemon closes the socket, answers with half a place, or with CPUs that do not exist: the forked peer ends before
 * it does anything, and the first finds its peer gone. */
static void a_forked_peer_without_a_place_ends(void) {
        for (unsigned i = 0; i < 3; i++) {
                FAMILY f;
                struct forked_report born;
                static struct forked_placement place; /* all zero: no CPU at all */
                struct cpumask mine;
                CHECK(family_open(&f, "8192"));
                CHECK(receive_report(&f, &born));
                CHECK(born.pid > 0 && born.pid != f.program);
                memset(&place, 0, sizeof place);
                if (i == 1) /* all is well with it but its length */
                        CHECK_INT(cpumask_get_affinity(0, &mine), 0);
                if (i == 1)
                        memcpy(place.cpus, &mine, sizeof place.cpus);
                if (i > 0)
                        CHECK(send(f.report.daemon, &place, i == 1 ? 100 : sizeof place, MSG_NOSIGNAL) > 0);
                f.report.daemon = util_close(f.report.daemon);
                siginfo_t info = {0};
                int waited = waitid(P_PID, (id_t) born.pid, &info, WEXITED);
                pid_t program = f.program;
                f.program = -1;
                CHECK_INT(waited, 0);
                CHECK_INT(info.si_status, 50);
                CHECK_INT(end_of(program), 11);
        }
}

int main(void) {
        RUN(both_share_their_memory);
        RUN(bytes_that_cannot_be_shared);
        RUN(a_forked_peer_without_a_place_ends);
        return check_end();
}
