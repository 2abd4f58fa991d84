/* SPDX-License-Identifier: MIT */

/* Processes that a child forks and leaves behind, as an agent could: they end, in portions, and nothing else does. */

#include "daemon/run/watch/strays.h"

#include "check.h"
#include "child.h"
#include "daemon/log.h"
#include "schema/util.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define DEADLINE_NS (20 * NSEC_PER_SEC)
#define ALIVE_SECONDS 60u /* whatever happens here, it ends itself */

static struct agent_identity agents;

enum kind {
        LIKE_AN_AGENT,
        MAY_GAIN, /* it has not given up gaining privileges */
        OF_ANOTHER_USER,
};

static void become(enum kind kind) {
        (void) alarm(ALIVE_SECONDS);
        if (kind != MAY_GAIN && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                _exit(1);
        if (kind != OF_ANOTHER_USER && agents.change && setresuid(agents.uid, agents.uid, agents.uid) < 0)
                _exit(1);
}

/* A child of the given kind. */
static pid_t start_child(enum kind kind) {
        int ready;
        pid_t pid = child_fork(&ready);
        if (pid == 0) {
                become(kind);
                if (!child_report(ready))
                        _exit(1);
                for (;;)
                        pause();
        }
        return child_is_ready(pid, ready, 1) ? pid : -1;
}

/* An agent leaves n processes behind, each of which has forked so many in turn. Their pids go to *ret. */
static bool leave(enum kind kind, unsigned n, unsigned of_each, pid_t *ret) {
        int pids[2];
        if (pipe2(pids, O_CLOEXEC) < 0)
                return false;
        pid_t agent = fork();
        if (agent == 0) {
                become(kind);
                for (unsigned i = 0; i < n; i++)
                        if (fork() == 0) {
                                (void) setsid();
                                (void) alarm(ALIVE_SECONDS);
                                for (unsigned j = 0; j < of_each && fork() != 0;)
                                        j++;
                                (void) alarm(ALIVE_SECONDS);
                                pid_t own = getpid();
                                if (write(pids[1], &own, sizeof(own)) != (ssize_t) sizeof(own))
                                        _exit(1);
                                for (;;)
                                        pause();
                        }
                _exit(0);
        }
        util_close(pids[1]);
        bool all = agent > 0 && waitpid(agent, NULL, 0) == agent;
        for (unsigned i = 0; all && i < n * (of_each + 1); i++)
                all = read(pids[0], &ret[i], sizeof(ret[i])) == (ssize_t) sizeof(ret[i]);
        util_close(pids[0]);
        return all;
}

static bool is_there(pid_t pid) {
        return kill(pid, 0) == 0 || errno != ESRCH;
}

/* True: all have ended in time. */
static bool end_all(struct strays *left, unsigned *ret_calls) {
        uint64_t until = util_now_ns() + DEADLINE_NS;
        for (*ret_calls = 1; !strays_end(&agents, left); (*ret_calls)++) {
                if (util_now_ns() > until)
                        return false;
                (void) poll(NULL, 0, 1);
        }
        return true;
}

/* Whether it ends and is reaped in time: what was killed in the last call may be a zombie until the next one. */
static bool goes(pid_t pid) {
        struct strays left;
        uint64_t until = util_now_ns() + DEADLINE_NS;
        while (is_there(pid) && util_now_ns() < until) {
                (void) strays_end(&agents, &left);
                (void) poll(NULL, 0, 1);
        }
        return !is_there(pid);
}

/* Nothing but these is there: it says so, however slow the machine is, and they live on. 0: there is no other one. */
static bool ends_beside(pid_t one, pid_t other) {
        struct strays left;
        unsigned calls;
        return end_all(&left, &calls) && left.n == 0 && waitpid(one, NULL, WNOHANG) == 0 &&
               (!other || waitpid(other, NULL, WNOHANG) == 0);
}

static void without_strays_there_is_nothing_to_do(void) {
        struct strays left = {.n = 1};
        CHECK(strays_end(&agents, &left));
        CHECK_UINT(left.n, 0);
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0)
                SKIP("no process of this test may gain privileges, so that all are like an agent's");
        pid_t child = start_child(MAY_GAIN);
        CHECK(child > 0);
        bool well = ends_beside(child, 0);
        (void) kill(child, SIGKILL);
        CHECK_INT(waitpid(child, NULL, 0), child);
        CHECK(well);
}

static void what_is_left_behind_ends(void) {
        enum { N = 3, OF_EACH = 2, ALL = N * (OF_EACH + 1) };
        pid_t pids[ALL];
        struct strays left;
        unsigned calls;
        CHECK(leave(LIKE_AN_AGENT, N, OF_EACH, pids));
        bool all = true;
        for (unsigned i = 0; i < ALL; i++)
                all = all && is_there(pids[i]);
        CHECK(all);
        CHECK(!strays_end(&agents, &left));
        CHECK(left.n > 0 && left.pid > 0);
        CHECK_STRING(left.name, "test-strays");
        CHECK(end_all(&left, &calls));
        CHECK_UINT(left.n, 0);
        for (unsigned i = 0; i < ALL; i++)
                if (!goes(pids[i]))
                        CHECK_FAIL("process %u, pid %d, is still there", i, pids[i]);
}

static void many_end_in_portions(void) {
        enum { N = 3 * STRAYS_KILLS_MAX };
        pid_t pids[N];
        struct strays left;
        unsigned calls, dead = 0;
        CHECK(leave(LIKE_AN_AGENT, N, 0, pids));
        CHECK(!strays_end(&agents, &left));
        CHECK(left.n > 0 && left.n <= STRAYS_KILLS_MAX);
        for (uint64_t until = util_now_ns() + DEADLINE_NS; dead == 0 && util_now_ns() < until;) {
                (void) poll(NULL, 0, 200); /* so that those that are too many are dead, too */
                for (unsigned i = 0; i < N; i++) {
                        siginfo_t info = {0};
                        dead += waitid(P_PID, (id_t) pids[i], &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                                info.si_pid != 0;
                }
        }
        CHECK(dead > 0 && dead <= STRAYS_KILLS_MAX);
        CHECK(end_all(&left, &calls));
        CHECK(calls >= 2);
        for (unsigned i = 0; i < N; i++)
                CHECK(goes(pids[i]));
}

static void others_are_left_alone(void) {
        pid_t pids[2], gaining, other = 0;
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0)
                SKIP("no process of this test may gain privileges, so that all are like an agent's");
        CHECK(leave(MAY_GAIN, 1, 0, &pids[0])); /* as the first process of a container adopts them */
        gaining = pids[0];
        if (agents.change) {
                CHECK(leave(OF_ANOTHER_USER, 1, 0, &pids[1]));
                other = pids[1];
        }
        bool well = ends_beside(gaining, other);
        (void) kill(gaining, SIGKILL);
        CHECK_INT(waitpid(gaining, NULL, 0), gaining);
        if (other) {
                (void) kill(other, SIGKILL);
                CHECK_INT(waitpid(other, NULL, 0), other);
        }
        CHECK(well);
}

/* A program that was executed in place of another one has its children. */
static void an_earlier_child_is_left_alone(void) {
        struct strays left;
        pid_t child = start_child(LIKE_AN_AGENT);
        CHECK(child > 0);
        (void) poll(NULL, 0, 50);          /* some ticks of the clock that begins are told by */
        CHECK(strays_end(&agents, &left)); /* nothing is adopted yet */
        int adopted = strays_adopt();
        bool well = adopted == 0 && ends_beside(child, 0);
        (void) kill(child, SIGKILL);
        CHECK_INT(waitpid(child, NULL, 0), child);
        CHECK_INT(adopted, 0);
        CHECK(well);
}

/* Stops it in its exit. -1: it may not. */
static pid_t start_tracer(pid_t stray) {
        int ready;
        pid_t tracer = child_fork(&ready);
        if (tracer == 0) {
                (void) alarm(ALIVE_SECONDS);
                if (ptrace(PTRACE_SEIZE, stray, NULL, PTRACE_O_TRACEEXIT) == 0 && child_report(ready))
                        (void) poll(NULL, 0, 60000);
                _exit(0);
        }
        if (child_is_ready(tracer, ready, 1))
                return tracer;
        if (tracer < 0)
                return -1;
        (void) kill(tracer, SIGKILL);
        (void) waitpid(tracer, NULL, 0);
        return -1;
}

/* One that a tracer stops in its exit does not die. With a child, which lives on below it, it is named; alone it does
 * nothing any more, and is not waited for. */
static void what_cannot_be_ended(bool with_child) {
        pid_t pids[2];
        struct strays left = {0};
        bool ended = false;
        unsigned calls;
        char path[64];
        CHECK(leave(LIKE_AN_AGENT, 1, with_child, pids));
        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pids[0], pids[0]);
        _cleanup_fclose_ FILE *children = fopen(path, "re");
        bool first = !with_child || (children && fgetc(children) != EOF);
        pid_t stray = pids[first ? 0 : 1], child = with_child ? pids[first ? 1 : 0] : 0;
        pid_t tracer = start_tracer(stray);
        if (tracer > 0 && !with_child)
                ended = end_all(&left, &calls);
        for (unsigned i = 0; tracer > 0 && with_child && !ended && i < 20; i++) {
                ended = strays_end(&agents, &left);
                (void) poll(NULL, 0, 10);
        }
        struct strays named = left;
        bool stays = is_there(stray);
        if (tracer > 0)
                (void) kill(tracer, SIGKILL);
        bool in_the_end = end_all(&left, &calls);
        if (tracer > 0)
                (void) waitpid(tracer, NULL, 0);
        CHECK(in_the_end && goes(stray) && (!child || goes(child)));
        if (tracer < 0)
                SKIP("no process may be traced here");
        CHECK(stays && ended == !with_child);
        CHECK_UINT(named.n, with_child);
        CHECK_INT(named.pid, with_child ? stray : 0);
}

static void what_cannot_be_ended_is_named(void) {
        what_cannot_be_ended(true);
}

static void what_is_held_in_its_exit_is_not_waited_for(void) {
        what_cannot_be_ended(false);
}

/* An agent leaves a process behind whose child stops it in its exit: ret[0] and ret[1], 0 where it may not. */
static bool leave_traced(pid_t ret[static 2]) {
        int pids[2];
        if (pipe2(pids, O_CLOEXEC) < 0)
                return false;
        pid_t agent = fork();
        if (agent == 0) {
                become(LIKE_AN_AGENT);
                if (fork() != 0)
                        _exit(0);
                (void) alarm(ALIVE_SECONDS);
                (void) prctl(PR_SET_DUMPABLE, 1);
                (void) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
                pid_t both[2] = {getpid(), fork()};
                if (both[1] == 0) {
                        (void) alarm(ALIVE_SECONDS);
                        if (ptrace(PTRACE_SEIZE, both[0], NULL, PTRACE_O_TRACEEXIT) == 0)
                                both[1] = getpid();
                        if (write(pids[1], both, sizeof(both)) != (ssize_t) sizeof(both))
                                _exit(1);
                }
                for (;;)
                        pause();
        }
        util_close(pids[1]);
        bool all = agent > 0 && waitpid(agent, NULL, 0) == agent &&
                   read(pids[0], ret, 2 * sizeof(ret[0])) == (ssize_t) (2 * sizeof(ret[0]));
        util_close(pids[0]);
        return all;
}

/* It is no child of this process, nor becomes one while what it holds is there. */
static void a_tracer_that_is_left_below_what_it_holds_ends(void) {
        pid_t pids[2];
        struct strays left;
        unsigned calls;
        CHECK(leave_traced(pids));
        bool ended = end_all(&left, &calls), gone = pids[1] && goes(pids[1]);
        if (pids[1] && !gone)
                (void) kill(pids[1], SIGKILL);
        CHECK(goes(pids[0]));
        if (!pids[1])
                SKIP("no process may be traced here");
        CHECK(ended && gone);
}

int main(void) {
        log_open(LOG_ERR);
        if (agent_identity_find("nobody", &agents) < 0)
                return 1;
        RUN(an_earlier_child_is_left_alone);
        RUN(without_strays_there_is_nothing_to_do);
        RUN(what_is_left_behind_ends);
        RUN(many_end_in_portions);
        RUN(others_are_left_alone);
        RUN(what_cannot_be_ended_is_named);
        RUN(what_is_held_in_its_exit_is_not_waited_for);
        RUN(a_tracer_that_is_left_below_what_it_holds_ends);
        return check_end();
}
