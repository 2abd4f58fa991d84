/* SPDX-License-Identifier: MIT */

/* A daemon that has no room for a packet: one that reads on slowly, one that reads no more, and one that seems not to
 * read because the agent itself did not run. The clock, the socket's fill and message_send() are this file's: the
 * linker takes them instead of the agent's. */

#include "agent/base/agent.h"
#include "agent/base/wait.h"
#include "check.h"
#include "schema/util.h"

#include <string.h>

static struct agent agent;

static struct {
        uint64_t now_ns;
        uint64_t late_ns;       /* by how much each wait comes back too late */
        unsigned waits, room;   /* how many there were, and after how many there is room; 0: never */
        unsigned reads, reaped; /* the daemon reads something in each so many waits, 0: never; bytes that it has read */
        unsigned most;          /* bytes that it reads in all; 0: there is no limit */
} script;

uint64_t agent_now_ns(void) {
        return script.now_ns;
}

int64_t agent_unread(const struct agent *a) {
        (void) a;
        return 1000000 - (int64_t) script.reaped;
}

int message_send(int fd, const struct message *m, uint64_t deadline_ns) {
        (void) fd, (void) m;
        if (deadline_ns == 0)
                return -EAGAIN;
        if (script.room && script.waits >= script.room)
                return 0;
        script.waits++;
        script.now_ns = deadline_ns + script.late_ns;
        if (script.reads && script.waits % script.reads == 0 && (script.most == 0 || script.reaped < script.most))
                script.reaped += 100;
        return -ETIMEDOUT;
}

static int send_one(void) {
        struct message m = {.type = MESSAGE_SAMPLE};
        memset(&agent, 0, sizeof agent);
        script.now_ns = NSEC_PER_SEC;
        return agent_send(&agent, &m);
}

static double waited_seconds(void) {
        return (double) (script.now_ns - NSEC_PER_SEC) / 1e9;
}

static void one_that_reads_slowly_is_waited_for(void) {
        memset(&script, 0, sizeof script);
        script.reads = 8;
        script.room = 200;
        CHECK_INT(send_one(), 0);
        CHECK(waited_seconds() > 4 * (double) AGENT_SEND_NS / 1e9);
        CHECK(agent.failure.detail[0] == '\0' && agent.sent_ns > 0);
}

static void one_that_reads_nothing_is_not(void) {
        memset(&script, 0, sizeof script);
        CHECK_INT(send_one(), -ETIMEDOUT);
        CHECK(waited_seconds() >= (double) AGENT_SEND_NS / 1e9 && waited_seconds() < (double) AGENT_SEND_NS / 1e9 + 1);
        CHECK_STRING(agent.failure.detail,
                     "the daemon read nothing from the control socket for 5 s, which is the limit: "
                     "\"sample\" cannot be sent behind 1000000 bytes that wait there");
}

static void one_that_stops_reading_is_not_either(void) {
        memset(&script, 0, sizeof script);
        script.reads = 8; /* three times, within 6 s */
        script.most = 300;
        CHECK_INT(send_one(), -ETIMEDOUT);
        CHECK_UINT(script.reaped, 300);
        CHECK(waited_seconds() > 10.9 && waited_seconds() < 11.5);
}

/* Each wait lasts two seconds longer than it was to. */
static void time_without_a_cpu_does_not_count(void) {
        memset(&script, 0, sizeof script);
        script.late_ns = 2 * NSEC_PER_SEC;
        script.room = 10;
        CHECK_INT(send_one(), 0);
        CHECK(waited_seconds() > 4 * (double) AGENT_SEND_NS / 1e9);
        script.waits = script.room = 0;
        CHECK_INT(send_one(), -ETIMEDOUT);
}

int main(void) {
        RUN(one_that_reads_slowly_is_waited_for);
        RUN(one_that_reads_nothing_is_not);
        RUN(one_that_stops_reading_is_not_either);
        RUN(time_without_a_cpu_does_not_count);
        return check_end();
}
