/* SPDX-License-Identifier: MIT */

/* One agent as the daemon watches it: the test sends the agent's messages, a child that does nothing is its process.
 * What the protocol allows in each state, how everything else is reported, and that the end is reported exactly once.
 * test-runner has programs that misbehave, and the deadlines. */

#include "daemon/log.h"
#include "daemon/run/watch/agent-link.h"
#include "daemon/run/watch/procs.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/child.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CACHE_BYTES (UINT64_C(480) << 20)
#define THREADS 2u

static const struct message_setup setup = {
        .point = {.message_size = 100, .threads = THREADS}, .duration_ns = NSEC_PER_SEC, .interval_ns = NSEC_PER_SEC};
static const struct message_setup probing = {.point = {.message_size = 100, .threads = THREADS},
                                             .duration_ns = NSEC_PER_SEC,
                                             .interval_ns = NSEC_PER_SEC,
                                             .probes = true};
/* Threads 0 to 33, on CPUs of their own but for the last. */
static int32_t cpus[33];
static const struct message_setup wide = {.point = {.message_size = 100, .threads = 34},
                                          .duration_ns = NSEC_PER_SEC,
                                          .interval_ns = NSEC_PER_SEC,
                                          .placement = {.cpus = cpus, .n_cpus = 33},
                                          .probes = true};
static const struct message_setup paired = {.point = {.message_size = 100, .threads = THREADS},
                                            .duration_ns = NSEC_PER_SEC,
                                            .interval_ns = NSEC_PER_SEC,
                                            .placement = {.cpus = cpus, .n_cpus = THREADS},
                                            .probes = true};
static const struct message_setup roaming = {.point = {.message_size = 100, .threads = THREADS},
                                             .duration_ns = NSEC_PER_SEC,
                                             .interval_ns = NSEC_PER_SEC,
                                             .placement = {.cpus = cpus, .n_cpus = THREADS, .roam = true},
                                             .probes = true};

struct received {
        unsigned ready, parts, samples, reported, failed, ended;
        enum agent_failure failure;
        char words[700];
};

static void on_ready(void *userdata, struct agent_link *l) {
        (void) l;
        ((struct received *) userdata)->ready++;
}

static void on_parts(void *userdata, struct agent_link *l, const struct message_parts *p) {
        (void) l;
        ((struct received *) userdata)->parts += p->n;
}

static void on_sample(void *userdata, struct agent_link *l, struct message_sample *s) {
        (void) l;
        (void) s;
        ((struct received *) userdata)->samples++;
}

static void on_reported(void *userdata, struct agent_link *l) {
        (void) l;
        ((struct received *) userdata)->reported++;
}

static void on_failed(void *userdata, struct agent_link *l, enum agent_failure failure, const char *words) {
        struct received *t = userdata;
        (void) l;
        t->failed++;
        t->failure = failure;
        (void) snprintf(t->words, sizeof t->words, "%s", words);
}

static void on_ended(void *userdata, struct agent_link *l) {
        (void) l;
        ((struct received *) userdata)->ended++;
}

static const struct agent_link_ops ops = {on_ready, on_parts, on_sample, on_reported, on_failed, on_ended};

/* ---- the agent ---- */

struct scene {
        sd_event *event;
        struct agent_link *link;
        struct received received;
        int agent; /* what is sent here the agent's process sends to the daemon; closed: it closes its control socket */
        int control; /* the agent's end of the control socket, for reading and for what another process sends */
        int leave;   /* closed: the process exits */
        pid_t pid;
};

/* The kernel attaches the sender's pid to each message, so the process itself has to send them. */
static _Noreturn void relay_main(int from, int control, int leave, int status) {
        static char packet[PROTOCOL_PACKET_MAX];
        for (;;) {
                struct pollfd p[2] = {{.fd = from, .events = POLLIN}, {.fd = leave, .events = POLLIN}};
                if (poll(p, 2, -1) < 0)
                        _exit(99);
                ssize_t n = p[0].revents ? recv(from, packet, sizeof packet, 0) : 0;
                if (n > 0) {
                        (void) send(control, packet, (size_t) n, MSG_NOSIGNAL); /* the daemon may have hung up */
                        (void) send(from, "", 1, MSG_NOSIGNAL);
                } else if (p[0].revents) {
                        from = util_close(from);
                        control = util_close(control);
                } else
                        _exit(status);
        }
}

static bool start_process(struct scene *s, int status, int daemons, int *ret_pidfd) {
        int leave[2], relay[2];
        if (pipe2(leave, O_CLOEXEC) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, relay) < 0)
                return false;
        s->pid = fork();
        if (s->pid == 0) {
                util_close(leave[1]);
                util_close(relay[0]);
                util_close(daemons);
                relay_main(relay[1], s->control, leave[0], status);
        }
        util_close(leave[0]);
        util_close(relay[1]);
        s->leave = leave[1];
        s->agent = relay[0];
        *ret_pidfd = s->pid > 0 ? (int) pidfd_open(s->pid, 0) : -1;
        return *ret_pidfd >= 0;
}

static bool scene_open_with(struct scene *s, int status, const struct message_setup *with) {
        int daemons = -1, pidfd = -1;
        *s = (struct scene){.agent = -1, .control = -1, .leave = -1};
        if (agent_link_socketpair(&daemons, &s->control) < 0 || !start_process(s, status, daemons, &pidfd) ||
            sd_event_new(&s->event) < 0)
                return false;
        const struct agent_link_options o = {.event = s->event,
                                             .role = "sender",
                                             .setup = with,
                                             .cache_bytes = CACHE_BYTES,
                                             .control_fd = daemons,
                                             .process = {.pid = s->pid, .pidfd = pidfd},
                                             .ops = &ops,
                                             .userdata = &s->received};
        return agent_link_new(&s->link, &o) == 0;
}

static bool scene_open(struct scene *s, int status) {
        return scene_open_with(s, status, &setup);
}

static void scene_close(struct scene *s) {
        agent_link_free(s->link);
        util_close(s->agent);
        util_close(s->control);
        util_close(s->leave);
        sd_event_unref(s->event);
}
#define SCENE __attribute__((cleanup(scene_close))) struct scene

/* Everything that is there is dealt with. */
static void turn(struct scene *s) {
        while (sd_event_run(s->event, 0) > 0)
                ;
}

static void await_end(struct scene *s) {
        while (s->received.ended == 0 && sd_event_run(s->event, UINT64_MAX) >= 0)
                ;
}

/* Whether the process has sent it on. */
static bool relayed(struct scene *s) {
        char byte;
        return recv(s->agent, &byte, 1, 0) == 1;
}

static bool send_message(struct scene *s, const struct message *m) {
        bool sent = message_send(s->agent, m, 0) == 0 && relayed(s);
        turn(s);
        return sent;
}

/* On one CPU, as far as a message has to be. */
static uint16_t cpu_0[] = {0, 0, 0, 0};
static struct proof_thread thread_0 = {.affinity = {2, 1}, .cpus_seen = {3, 1}};
static struct proof_report somewhere = {.affinity = {0, 1},
                                        .leader_affinity = {1, 1},
                                        .policy_nodes = {2, 0},
                                        .threads_total = 1,
                                        .placed_together = 1,
                                        .of = {.threads = &thread_0, .n_threads = 1, .numbers = cpu_0, .n_numbers = 4}};
static struct effective nothing;

/* Two, of so many nanoseconds each. */
static struct message_parts parts_of(uint64_t begin_ns, uint64_t interval_ns) {
        return (struct message_parts){
                .begin_ns = begin_ns, .n = 2, .list = {{interval_ns, 3, 0, 0}, {interval_ns, 4, 0, 0}}};
}

static bool send_type(struct scene *s, enum message_type type) {
        struct message m = {.type = type};
        if (type == MESSAGE_HELLO)
                m.hello.pid = s->pid;
        if (type == MESSAGE_READY)
                m.ready = (struct message_ready){.proof = &somewhere, .effective = &nothing};
        if (type == MESSAGE_ALIVE)
                m.alive.phase = PHASE_WINDOW;
        if (type == MESSAGE_SAMPLE)
                m.sample = (struct message_sample){
                        .begin_ns = s->link->start_ns, .interval_ns = 1, .messages = 5, .bytes = 500};
        if (type == MESSAGE_PARTS)
                m.parts = parts_of(s->link->parts_end_ns ? s->link->parts_end_ns : s->link->start_ns, 1);
        if (type == MESSAGE_THREAD)
                m.thread = (struct message_thread){.thread = s->link->n_threads, .messages = 1};
        if (type == MESSAGE_REPORT)
                m.report = (struct message_report){
                        .window_ns = 1, .messages = 2, .proof = &somewhere, .effective = &nothing};
        if (type == MESSAGE_ERROR)
                (void) snprintf(m.error.detail, sizeof m.error.detail, "the disk is full");
        return send_message(s, &m);
}

/* The way to a state, as an agent goes that does all right. */
static bool go_to(struct scene *s, enum agent_state state) {
        bool ok = true;
        if (state >= AGENT_SETTING_UP)
                ok = send_type(s, MESSAGE_HELLO);
        if (state >= AGENT_READY)
                ok = ok && send_type(s, MESSAGE_READY);
        if (state >= AGENT_RUNNING)
                ok = ok && agent_link_start(s->link, util_now_ns()) == 0;
        for (unsigned i = 0; state >= AGENT_REPORTED && i < THREADS; i++)
                ok = ok && send_type(s, MESSAGE_THREAD);
        if (state >= AGENT_REPORTED)
                ok = ok && send_type(s, MESSAGE_REPORT);
        return ok && s->link->state == state && s->received.failed == 0;
}

static void a_run_from_hello_to_the_end(void) {
        SCENE s;
        struct message m;
        CHECK(scene_open(&s, 0));
        CHECK(go_to(&s, AGENT_READY));
        CHECK_UINT(s.received.ready, 1);
        CHECK_INT(s.link->ready.type, MESSAGE_READY);
        CHECK_INT(message_receive(s.control, &m, 0, NULL), 0);
        CHECK_INT(m.type, MESSAGE_SETUP);
        CHECK_UINT(m.setup.point.message_size, 100);
        message_deinit(&m);
        CHECK_INT(agent_link_start(s.link, 4711), 0);
        CHECK_INT(message_receive(s.control, &m, 0, NULL), 0);
        CHECK_INT(m.type, MESSAGE_START);
        CHECK_UINT(m.start.start_ns, 4711);
        CHECK(send_type(&s, MESSAGE_ALIVE) && send_type(&s, MESSAGE_PARTS) && send_type(&s, MESSAGE_PARTS));
        CHECK(send_type(&s, MESSAGE_SAMPLE));
        CHECK_UINT(s.received.parts, 4);
        CHECK_UINT(s.link->parts_messages, 14);
        CHECK_UINT(s.received.samples, 1);
        CHECK_UINT(s.link->sampled_messages, 5);
        CHECK_UINT(s.link->sampled_bytes, 500);
        CHECK(send_type(&s, MESSAGE_THREAD) && send_type(&s, MESSAGE_THREAD) && send_type(&s, MESSAGE_REPORT));
        CHECK_UINT(s.received.reported, 1);
        CHECK_UINT(s.link->report.report.messages, 2);
        CHECK_INT(s.link->state, AGENT_REPORTED);
        agent_link_dismiss(s.link);
        CHECK_INT(s.link->state, AGENT_LEAVING);
        CHECK_INT(message_receive(s.control, &m, 0, NULL),
                  -ECONNRESET); /* the agent is dismissed by the end of the stream */
        s.leave = util_close(s.leave);
        await_end(&s);
        CHECK_UINT(s.received.ended, 1);
        CHECK_UINT(s.received.failed, 0);
        CHECK(s.link->has_ended && s.link->exit_code == CLD_EXITED && s.link->exit_status == 0);
        turn(&s);
        CHECK_UINT(s.received.ended, 1);
}

/* Every message in every state: any but the protocol's next one ends the agent, and the error names the expected
 * one. */
static void messages_out_of_turn(void) {
        static const struct {
                enum agent_state state;
                unsigned allowed; /* a bit for each message type */
                const char *expected;
        } states[] = {{AGENT_STARTED, 1u << MESSAGE_HELLO, "where hello was expected"},
                      {AGENT_SETTING_UP, 1u << MESSAGE_READY | 1u << MESSAGE_ALIVE,
                       "where count, probe or ready was expected"},
                      {AGENT_READY, 0, "where nothing was expected"},
                      {AGENT_RUNNING,
                       1u << MESSAGE_ALIVE | 1u << MESSAGE_PARTS | 1u << MESSAGE_SAMPLE | 1u << MESSAGE_THREAD,
                       "where alive, parts, sample, thread, probe or report was expected"},
                      {AGENT_REPORTED, 0, "where nothing was expected"}};
        static const enum message_type words[] = {MESSAGE_HELLO, MESSAGE_READY,  MESSAGE_START,  MESSAGE_ALIVE,
                                                  MESSAGE_PARTS, MESSAGE_SAMPLE, MESSAGE_THREAD, MESSAGE_REPORT};
        for (size_t i = 0; i < ELEMENTS(states); i++)
                for (size_t k = 0; k < ELEMENTS(words); k++) {
                        SCENE s;
                        CHECK(scene_open(&s, 0) && go_to(&s, states[i].state));
                        CHECK(send_type(&s, words[k]));
                        if (states[i].allowed & 1u << words[k]) {
                                CHECK_UINT(s.received.failed, 0);
                                continue;
                        }
                        bool early = words[k] == MESSAGE_REPORT && states[i].state == AGENT_RUNNING;
                        if (s.received.failed != 1 || s.received.failure != AGENT_BROKE_PROTOCOL ||
                            !strstr(s.received.words,
                                    early ? "reports without the totals of thread 0" : states[i].expected))
                                CHECK_FAIL("%s in state %d: %s", message_type_name(words[k]), (int) states[i].state,
                                           s.received.words);
                        CHECK_INT(s.link->state, AGENT_FAILED);
                        CHECK(send_type(&s, words[k])); /* not listened to any more */
                        CHECK_UINT(s.received.failed, 1);
                }
}

static void impossible_samples(void) {
        static const struct message_sample samples[] = {
                {.thread = THREADS, .interval_ns = 1}, /* there is no such thread */
                {.second = 3600, .interval_ns = 1},    /* an hour that has not been yet */
                {.interval_ns = 0},
                {.interval_ns = 1, .begin_ns = 1},              /* before the window */
                {.interval_ns = 1, .begin_ns = UINT64_MAX / 2}, /* in some centuries */
                {.interval_ns = UINT64_MAX},                    /* not over yet */
                {.interval_ns = 1, .messages = UINT64_C(1) << 63},
                {.interval_ns = 1, .bytes = UINT64_C(1) << 63},
        };
        for (size_t i = 0; i <= ELEMENTS(samples); i++) {
                SCENE s;
                struct message m = {.type = MESSAGE_SAMPLE};
                CHECK(scene_open(&s, 0) && go_to(&s, AGENT_RUNNING));
                if (i == ELEMENTS(samples)) /* the same second again */
                        CHECK(send_type(&s, MESSAGE_SAMPLE));
                m.sample = samples[i % ELEMENTS(samples)];
                if (!m.sample.begin_ns)
                        m.sample.begin_ns = s.link->start_ns;
                if (i == ELEMENTS(samples))
                        m.sample = (struct message_sample){.interval_ns = 1, .begin_ns = s.link->start_ns};
                unsigned before = s.received.samples;
                CHECK(send_message(&s, &m));
                CHECK_UINT(s.received.samples, before);
                CHECK_UINT(s.received.failed, 1);
                if (!strstr(s.received.words, "sent an impossible sample: thread "))
                        CHECK_FAIL("sample %zu: %s", i, s.received.words);
        }
}

static bool send_probe(struct scene *s, uint32_t cpu) {
        struct message m = {.type = MESSAGE_PROBE, .probe = {.cpu = cpu}};
        for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++)
                m.probe.series[kind].absence = PROBE_ONE_END;
        return send_message(s, &m);
}

static bool send_other(struct scene *s, uint32_t thread, enum probe_absence absence) {
        struct message m = {.type = MESSAGE_PROBE, .probe = {.cpu = 10 + thread, .thread = thread}};
        for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++)
                m.probe.series[kind].absence = kind < PROBE_OWN_KINDS ? PROBE_STARVED : absence;
        return send_message(s, &m);
}

static bool send_threads(struct scene *s) {
        bool ok = true;
        for (unsigned i = 0; i < THREADS; i++)
                ok = ok && send_type(s, MESSAGE_THREAD);
        return ok;
}

static void probes_in_their_places(void) {
        SCENE s;
        CHECK(scene_open_with(&s, 0, &probing));
        CHECK(send_type(&s, MESSAGE_HELLO) && send_probe(&s, 3) && send_type(&s, MESSAGE_READY));
        CHECK_INT(s.link->state, AGENT_READY);
        CHECK_INT(agent_link_start(s.link, util_now_ns()), 0);
        CHECK(send_threads(&s) && send_probe(&s, 4) && send_type(&s, MESSAGE_REPORT));
        CHECK_UINT(s.received.failed, 0);
        CHECK_INT(s.link->state, AGENT_REPORTED);
        CHECK_UINT(s.link->n_probes, PROBE_TIMES);
        CHECK(s.link->probes[PROBE_BEFORE].cpu == 3 && s.link->probes[PROBE_AFTER].cpu == 4);
}

/* Where none was ordered, one too many, and one too few: at either time. */
static void probes_out_of_place(void) {
        static const struct {
                bool ordered, running;
                unsigned n;
                const char *words;
        } rows[] = {
                {false, false, 1, "sent a probe where none was due: it was to take 0, and has sent 0"},
                {false, true, 1, "sent a probe where none was due: it was to take 0, and has sent 0"},
                {true, false, 0, "sent 0 of 1 probes"},
                {true, false, 2, "sent a probe where none was due: it was to take 2, and has sent 1"},
                {true, true, 0, "sent 1 of 2 probes"},
                {true, true, 2, "sent a probe where none was due: it was to take 2, and has sent 2"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                SCENE s;
                CHECK(scene_open_with(&s, 0, rows[i].ordered ? &probing : &setup) && send_type(&s, MESSAGE_HELLO));
                if (rows[i].running) {
                        CHECK((!rows[i].ordered || send_probe(&s, 0)) && send_type(&s, MESSAGE_READY));
                        CHECK_INT(agent_link_start(s.link, util_now_ns()), 0);
                        CHECK(send_threads(&s));
                }
                CHECK_UINT(s.received.failed, 0);
                for (unsigned k = 0; k < rows[i].n; k++)
                        CHECK(send_probe(&s, 0));
                if (rows[i].n == 0)
                        CHECK(send_type(&s, rows[i].running ? MESSAGE_REPORT : MESSAGE_READY));
                if (s.received.failed != 1 || s.received.failure != AGENT_BROKE_PROTOCOL ||
                    !strstr(s.received.words, rows[i].words))
                        CHECK_FAIL("row %zu: %s", i, s.received.words);
        }
}

/* As many as may be, at both times; the first time fewer would do, too. */
static void probes_of_further_threads(void) {
        SCENE s;
        CHECK(scene_open_with(&s, 0, &wide) && send_type(&s, MESSAGE_HELLO) && send_probe(&s, 3));
        for (uint32_t thread = 1; thread <= 5; thread++)
                CHECK(send_other(&s, thread, PROBE_OTHER_THREAD));
        CHECK(send_type(&s, MESSAGE_READY));
        CHECK_INT(agent_link_start(s.link, util_now_ns()), 0);
        for (unsigned i = 0; i < wide.point.threads; i++)
                CHECK(send_type(&s, MESSAGE_THREAD));
        CHECK(send_probe(&s, 3));
        for (uint32_t thread = 1; thread <= PROBE_OTHERS_MAX; thread++)
                CHECK(send_other(&s, thread, PROBE_OTHER_THREAD));
        CHECK(send_type(&s, MESSAGE_REPORT));
        CHECK_UINT(s.received.failed, 0);
        CHECK_INT(s.link->state, AGENT_REPORTED);
        CHECK_UINT(s.link->n_others[PROBE_BEFORE], 5);
        CHECK_UINT(s.link->n_others[PROBE_AFTER], PROBE_OTHERS_MAX);
        CHECK(s.link->others[PROBE_BEFORE][4].cpu == 15 && s.link->others[PROBE_AFTER][30].cpu == 41);
}

/* Such a probe is of a thread out of its order, of none that is to take one, at a time when none is to, or with what is
 * thread 0's. */
static void probes_of_further_threads_out_of_place(void) {
        static const struct {
                const struct message_setup *setup;
                bool early; /* before that of thread 0 */
                uint32_t n; /* that come in their order before it */
                uint32_t thread;
                enum probe_absence absence;
                const char *words;
        } rows[] = {
                {&wide, false, 0, 2, PROBE_OTHER_THREAD, "a probe of thread 2 where none was due: 31 further threads"},
                {&wide, false, 3, 3, PROBE_OTHER_THREAD, "behind thread 0, and 3 have"},
                {&wide, false, 3, 5, PROBE_OTHER_THREAD, "a probe of thread 5 where none was due"},
                {&wide, true, 0, 1, PROBE_OTHER_THREAD, "a probe of thread 1 where none was due"},
                {&wide, false, 0, 1, PROBE_TAKEN, "malformed"},
                {&wide, false, 0, 1, PROBE_LATE, "sent hand_over_ns of thread 1, which only thread 0 measures"},
                {&paired, false, 1, 2, PROBE_OTHER_THREAD, "a probe of thread 2 where none was due: 1 further threads"},
                {&probing, false, 0, 1, PROBE_OTHER_THREAD, "a probe of thread 1 where none was due: 0 further"},
                {&roaming, false, 0, 1, PROBE_OTHER_THREAD, "a probe of thread 1 where none was due: 0 further"},
        };
        for (size_t i = 0; i < 2 * ELEMENTS(rows); i++) {
                size_t row = i / 2;
                SCENE s;
                CHECK(scene_open_with(&s, 0, rows[row].setup) && send_type(&s, MESSAGE_HELLO));
                if (i % 2) { /* after the window */
                        CHECK(send_probe(&s, 0) && send_type(&s, MESSAGE_READY));
                        CHECK_INT(agent_link_start(s.link, util_now_ns()), 0);
                }
                CHECK(rows[row].early || send_probe(&s, 0));
                for (uint32_t k = 1; k <= rows[row].n; k++)
                        CHECK(send_other(&s, k, PROBE_OTHER_THREAD));
                CHECK_UINT(s.received.failed, 0);
                CHECK(send_other(&s, rows[row].thread, rows[row].absence));
                if (s.received.failed != 1 || s.received.failure != AGENT_BROKE_PROTOCOL ||
                    !strstr(s.received.words, rows[row].words))
                        CHECK_FAIL("row %zu: %s", i, s.received.words);
        }
        SCENE s; /* that orders none */
        CHECK(scene_open(&s, 0) && send_type(&s, MESSAGE_HELLO) && send_other(&s, 1, PROBE_OTHER_THREAD));
        CHECK(s.received.failed == 1 && strstr(s.received.words, "0 further threads were to take one"));
}

/* Both ends' probes come before it is ready. */
static void probes_of_further_threads_have_their_time(void) {
        SCENE s, t;
        CHECK(scene_open(&s, 0) && scene_open_with(&t, 0, &probing));
        CHECK(send_type(&s, MESSAGE_HELLO) && send_type(&t, MESSAGE_HELLO));
        uint64_t without = s.link->deadline_ns - s.link->received_ns, with = t.link->deadline_ns - t.link->received_ns;
        CHECK_UINT(with - without, 2 * (PROBE_OTHERS_NS + PROBE_WORK_NS));
}

/* Parts lie end to end, within the window. */
static void impossible_parts(void) {
        static const struct {
                bool earlier; /* others have come before */
                int64_t begin_ns;
                uint64_t interval_ns;
        } rows[] = {
                {false, -1, 1},            /* before the window */
                {false, 0, 3600000000000}, /* not over yet */
                {true, 0, 1},              /* again */
                {true, 3, 1},              /* a gap */
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                SCENE s;
                CHECK(scene_open(&s, 0) && go_to(&s, AGENT_RUNNING));
                if (rows[i].earlier)
                        CHECK(send_type(&s, MESSAGE_PARTS));
                unsigned before = s.received.parts;
                struct message m = {.type = MESSAGE_PARTS};
                m.parts = parts_of(s.link->start_ns + (uint64_t) rows[i].begin_ns, rows[i].interval_ns);
                CHECK(send_message(&s, &m));
                CHECK_UINT(s.received.parts, before);
                CHECK_INT(s.received.failure, AGENT_BROKE_PROTOCOL);
                if (s.received.failed != 1 || !strstr(s.received.words, "sent impossible parts: "))
                        CHECK_FAIL("row %zu: %s", i, s.received.words);
        }
}

static void totals_come_in_their_order(void) {
        for (uint32_t thread = 1; thread <= THREADS; thread++) {
                SCENE s;
                struct message m = {.type = MESSAGE_THREAD, .thread = {.thread = thread}};
                CHECK(scene_open(&s, 0) && go_to(&s, AGENT_RUNNING));
                for (uint32_t i = 0; thread == THREADS && i < THREADS; i++)
                        CHECK(send_type(&s, MESSAGE_THREAD)); /* all there are; then one more */
                CHECK(send_message(&s, &m));
                CHECK_UINT(s.received.failed, 1);
                CHECK(strstr(s.received.words, "sent the totals of thread "));
        }
}

static void another_pid_and_no_message(void) {
        SCENE pid, noise;
        struct message m = {.type = MESSAGE_HELLO, .hello = {.pid = 1}};
        CHECK(scene_open(&pid, 0) && send_message(&pid, &m));
        CHECK_INT(pid.received.failure, AGENT_BROKE_PROTOCOL);
        CHECK(strstr(pid.received.words, "claims to be pid 1"));
        CHECK(scene_open(&noise, 0));
        CHECK(send(noise.agent, "{]", 2, 0) == 2 && relayed(&noise));
        turn(&noise);
        CHECK_INT(noise.received.failure, AGENT_BROKE_PROTOCOL);
        CHECK(strstr(noise.received.words, "sent a malformed message: "));
}

/* A whole and timely message, but another process has sent it: whatever it is, and whether it can be parsed. */
static void another_sender_ends_the_run(void) {
        static const char *const packets[] = {NULL, "{]"};
        for (size_t i = 0; i < ELEMENTS(packets); i++) {
                SCENE s;
                char words[128];
                struct message m = {.type = MESSAGE_SAMPLE, .sample = {.interval_ns = NSEC_PER_SEC, .messages = 9}};
                CHECK(scene_open(&s, 0) && go_to(&s, AGENT_RUNNING));
                if (packets[i])
                        CHECK(send(s.control, packets[i], strlen(packets[i]), 0) > 0);
                else
                        CHECK_INT(message_send(s.control, &m, 0), 0);
                turn(&s);
                CHECK_UINT(s.received.samples, 0);
                CHECK_UINT(s.received.failed, 1);
                CHECK_INT(s.received.failure, AGENT_BROKE_PROTOCOL);
                (void) snprintf(words, sizeof words, "sender (pid %d) has a control socket that pid %d (uid %u) has ",
                                s.pid, getpid(), getuid());
                CHECK(strncmp(s.received.words, words, strlen(words)) == 0);
        }
}

static void a_flood_is_stopped(void) {
        SCENE s;
        unsigned n = 0;
        CHECK(scene_open(&s, 0) && go_to(&s, AGENT_RUNNING));
        while (s.received.failed == 0 && n < 1000000 && send_type(&s, MESSAGE_ALIVE))
                n++;
        CHECK(n > 200);
        CHECK_INT(s.received.failure, AGENT_BROKE_PROTOCOL);
        CHECK(strstr(s.received.words, "floods its control socket"));
}

static void its_own_error_comes_first(void) {
        SCENE s;
        char words[128];
        CHECK(scene_open(&s, 1) && go_to(&s, AGENT_RUNNING));
        struct message m = {.type = MESSAGE_ERROR, .error = {.detail = "the disk is full"}};
        CHECK_INT(message_send(s.agent, &m, 0), 0); /* and before it is read the agent is gone */
        s.agent = util_close(s.agent);
        s.control = util_close(s.control);
        s.leave = util_close(s.leave);
        await_end(&s);
        CHECK_UINT(s.received.failed, 1);
        CHECK_INT(s.received.failure, AGENT_REPORTED_ERROR);
        (void) snprintf(words, sizeof words, "sender (pid %d) gave up: the disk is full", s.pid);
        CHECK_STRING(s.received.words, words);
        CHECK_UINT(s.received.ended, 1);
}

/* More than are read in one event: none is lost, whichever event is the first. */
static void its_last_messages_are_many(void) {
        SCENE s;
        CHECK(scene_open(&s, 1) && go_to(&s, AGENT_RUNNING));
        for (unsigned i = 0; i <= 100; i++) {
                struct message m = {.type = MESSAGE_ALIVE, .alive.phase = PHASE_WINDOW};
                if (i == 100)
                        m = (struct message){.type = MESSAGE_ERROR, .error = {.detail = "the disk is full"}};
                CHECK(message_send(s.agent, &m, 0) == 0 && relayed(&s));
        }
        s.leave = util_close(s.leave);
        siginfo_t info;
        CHECK_INT(waitid(P_PID, (id_t) s.pid, &info, WEXITED | WNOWAIT), 0);
        await_end(&s);
        CHECK_UINT(s.received.failed, 1);
        CHECK_INT(s.received.failure, AGENT_REPORTED_ERROR);
        CHECK_UINT(s.received.ended, 1);
}

/* The fault that it reports decides, whatever the text is. */
static void the_fault_that_it_reports(void) {
        static const struct {
                enum fault fault;
                enum agent_failure failure;
        } cases[] = {{FAULT_OWN, AGENT_REPORTED_ERROR}, {FAULT_PEER, AGENT_BLAMED_PEER}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                SCENE s;
                struct message m = {.type = MESSAGE_ERROR,
                                    .error = {.fault = cases[i].fault, .detail = "peer receiver is gone"}};
                CHECK(scene_open(&s, 1) && go_to(&s, AGENT_RUNNING) && send_message(&s, &m));
                CHECK_UINT(s.received.failed, 1);
                CHECK_INT(s.received.failure, cases[i].failure);
                CHECK(strstr(s.received.words, " gave up: peer receiver is gone"));
        }
}

static void its_death_has_a_reason(void) {
        static const struct {
                enum agent_state state;
                int signal, status; /* 0: it exits */
                const char *words;
        } cases[] = {{AGENT_STARTED, SIGKILL, 0, "was killed by signal 9 (SIGKILL) before it sent hello"},
                     {AGENT_SETTING_UP, 0, 3, "exited with status 3 while it set up"},
                     {AGENT_READY, SIGTERM, 0, "was killed by signal 15 (SIGTERM) while it waited for the start"},
                     {AGENT_REPORTED, 0, 0, "exited with status 0 after its report"}}; /* it was not dismissed */
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                SCENE s;
                CHECK(scene_open(&s, cases[i].status) && go_to(&s, cases[i].state));
                if (cases[i].signal)
                        CHECK_INT(kill(s.pid, cases[i].signal), 0);
                else
                        s.leave = util_close(s.leave);
                await_end(&s);
                CHECK_UINT(s.received.failed, 1);
                CHECK_INT(s.received.failure, AGENT_DIED);
                if (!strstr(s.received.words, cases[i].words))
                        CHECK_FAIL("%s, expected %s", s.received.words, cases[i].words);
                CHECK_UINT(s.received.ended, 1);
        }
}

/* What it died of is known when its death is, and not when it can no longer be told to start. */
static void its_death_before_the_start_has_a_reason(void) {
        SCENE s;
        CHECK(scene_open(&s, 0));
        CHECK(go_to(&s, AGENT_READY));
        CHECK_INT(kill(s.pid, SIGKILL), 0);
        CHECK_INT(shutdown(s.control, SHUT_RDWR), 0);
        CHECK_INT(agent_link_start(s.link, util_now_ns()), 0);
        await_end(&s);
        CHECK_UINT(s.received.failed, 1);
        CHECK(strstr(s.received.words, "was killed by signal 9"));
}

/* Dismissed as it should be, and then not well: that is its failure too. */
static void leaving_badly_is_a_failure(void) {
        SCENE s;
        CHECK(scene_open(&s, 7) && go_to(&s, AGENT_REPORTED));
        agent_link_dismiss(s.link);
        s.leave = util_close(s.leave);
        await_end(&s);
        CHECK_INT(s.received.failure, AGENT_DIED);
        CHECK(strstr(s.received.words, "exited with status 7 after its report"));
}

/* Killed by the runner's own wish: it ends, and that is no failure of its own. */
static void killed_it_only_ends(void) {
        SCENE s;
        CHECK(scene_open(&s, 0) && go_to(&s, AGENT_RUNNING));
        CHECK_INT(kill(s.pid, SIGSTOP), 0);
        struct message m = {.type = MESSAGE_SAMPLE, .sample = {.interval_ns = NSEC_PER_SEC}};
        CHECK_INT(message_send(s.control, &m, 0), 0); /* whichever process sent it: it is not received any more */
        agent_link_kill(s.link);
        turn(&s);
        await_end(&s);
        CHECK_UINT(s.received.ended, 1);
        CHECK_UINT(s.received.failed + s.received.samples, 0);
        CHECK_INT(s.link->exit_code, CLD_KILLED);
        CHECK_INT(s.link->exit_status, SIGKILL);
        agent_link_kill(s.link); /* again, when it is gone */
}

/* The runner may look at it before its end is reported: a zombie that only waits for its reaping is held by nobody. */
static void a_zombie_that_nobody_traces_ends_with_its_status(void) {
        SCENE s;
        siginfo_t info;
        pid_t tracer = 0;
        CHECK(scene_open(&s, 0) && go_to(&s, AGENT_RUNNING));
        agent_link_kill(s.link);
        CHECK_INT(waitid(P_PID, (id_t) s.pid, &info, WEXITED | WNOWAIT), 0);
        CHECK(!agent_link_leave_to_tracer(s.link, &tracer));
        CHECK_UINT(s.received.ended, 1);
        CHECK_UINT(s.received.failed, 0);
        CHECK(s.link->has_ended && s.link->has_status && !s.link->held);
        CHECK_INT(s.link->exit_code, CLD_KILLED);
        CHECK_INT(s.link->exit_status, SIGKILL);
        CHECK(kill(s.pid, 0) < 0 && errno == ESRCH);
        turn(&s);
        CHECK(!agent_link_leave_to_tracer(s.link, &tracer));
        CHECK_UINT(s.received.ended, 1);
}

/* Only where stopped agents are to be named, and not the silent agent itself again: its state is given already. */
static void a_stopped_agent_is_named(void) {
        SCENE s;
        char words[128] = "receiver (pid 7) is silent", expected[128];
        CHECK(scene_open(&s, 0));
        agent_link_append_stopped(s.link, true, words, sizeof words);
        CHECK_STRING(words, "receiver (pid 7) is silent");
        CHECK_INT(kill(s.pid, SIGSTOP), 0);
        CHECK_INT(waitpid(s.pid, NULL, WUNTRACED), s.pid);
        agent_link_append_stopped(s.link, false, words, sizeof words);
        CHECK_STRING(words, "receiver (pid 7) is silent");
        agent_link_append_stopped(s.link, true, words, sizeof words);
        (void) snprintf(expected, sizeof expected, "receiver (pid 7) is silent; sender (pid %d) is stopped", s.pid);
        CHECK_STRING(words, expected);
        char room[20] = "silent";
        agent_link_append_stopped(s.link, true, room, sizeof room);
        CHECK_UINT(strlen(room), sizeof room - 1);
        agent_link_kill(s.link);
        await_end(&s);
        agent_link_append_stopped(s.link, true, words, sizeof words);
        CHECK_STRING(words, expected); /* its number may be another's now */
}

static void freed_it_leaves_no_process(void) {
        SCENE s;
        CHECK(scene_open(&s, 0) && go_to(&s, AGENT_RUNNING));
        agent_link_free(util_steal(&s.link));
        CHECK(kill(s.pid, 0) < 0 && errno == ESRCH); /* and no zombie */
        CHECK_UINT(s.received.ended + s.received.failed, 0);
        agent_link_free(NULL);
}

/* What it is given between hello and ready; 0: it did not come there. */
static uint64_t time_to_get_ready(const struct message_setup *m) {
        SCENE s;
        if (!scene_open(&s, 0))
                return 0;
        s.link->setup = m;
        return go_to(&s, AGENT_SETTING_UP) ? s.link->deadline_ns - s.link->received_ns : 0;
}

static void files_are_filled_before_ready(void) {
        struct message_setup m = setup;
        m.point.message_size = 100 << 20; /* twice for each thread, at 50 MB/s */
        uint64_t pipe = time_to_get_ready(&m);
        m.point.transport = TRANSPORT_FILE;
        uint64_t file = time_to_get_ready(&m);
        m.options.file_sync = FILE_SYNC_DIRECT;
        uint64_t direct = time_to_get_ready(&m);
        CHECK(pipe > 0);
        CHECK_UINT(file - pipe, UINT64_C(2) * THREADS * (100 << 20) * 20);
        CHECK_UINT(direct, pipe);
}

/* Twice the last cache's bytes for each thread, at 100 MB/s. */
static void cold_sources_are_filled_before_ready(void) {
        struct message_setup m = setup;
        m.point.message_size = 64;
        uint64_t hot = time_to_get_ready(&m);
        m.point.source = SOURCE_COLD;
        uint64_t cold = time_to_get_ready(&m);
        CHECK(hot > 0);
        CHECK(cold - hot >= THREADS * 2 * CACHE_BYTES * 10);
        CHECK(cold - hot < THREADS * 5 * CACHE_BYTES * 10);
}

/* ---- processes that are stopped ---- */

/* An agent with so many children, of which the last one is stopped; ends with them. */
static pid_t start_family(unsigned n) {
        int ready;
        pid_t pid = child_fork(&ready);
        if (pid == 0) {
                pid_t last = 0, parent = getpid();
                for (unsigned i = 0; i < n; i++) {
                        last = fork();
                        if (last == 0) {
                                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                                if (i + 1 == n)
                                        (void) raise(SIGSTOP);
                                while (getppid() == parent)
                                        (void) poll(NULL, 0, 60000);
                                _exit(0);
                        }
                        if (last < 0)
                                _exit(1);
                }
                if (waitid(P_PID, (id_t) last, &(siginfo_t){0}, WSTOPPED | WNOWAIT) == 0 && child_report(ready))
                        (void) poll(NULL, 0, 60000);
                _exit(1);
        }
        return child_is_ready(pid, ready, 1) ? pid : -1;
}

/* A hostile agent may have a hundred thousand. */
static void a_stopped_child_is_looked_for_among_the_first(void) {
        for (unsigned more = 0; more < 2; more++) {
                char words[300] = "silence", expected[200], unseen[200];
                struct agent_link l = {.role = "sender", .pid = start_family(PROCS_CHILDREN_MAX + more)};
                CHECK(l.pid > 0);
                agent_link_append_stopped(&l, true, words, sizeof words);
                (void) kill(l.pid, SIGKILL);
                CHECK_INT(waitpid(l.pid, NULL, 0), l.pid);
                (void) snprintf(expected, sizeof expected, " of sender (pid %d) is stopped", l.pid);
                (void) snprintf(unseen, sizeof unseen,
                                "silence; sender (pid %d) has more than 64 processes, and none of the first 64 is "
                                "stopped",
                                l.pid);
                if (more)
                        CHECK_STRING(words, unseen);
                else if (strncmp(words, "silence; process ", 17) != 0 || !strstr(words, expected))
                        CHECK_FAIL("%s", words);
        }
}

/* ---- processes that are held ---- */

enum { HELD_THREADS = 100 };

static void *tell_and_wait(void *fd) {
        pid_t tid = gettid();
        if (write(*(const int *) fd, &tid, sizeof tid) == (ssize_t) sizeof tid)
                for (;;)
                        pause();
        return NULL;
}

/* A process of that many threads, whose numbers come in the order in which they began. */
static pid_t start_threads(pid_t tids[static HELD_THREADS]) {
        int told[2];
        if (pipe2(told, O_CLOEXEC) < 0)
                return -1;
        pid_t pid = fork();
        if (pid == 0) {
                (void) alarm(60);
                pthread_t thread;
                pid_t own[HELD_THREADS] = {getpid()};
                int back[2];
                if (pipe2(back, O_CLOEXEC) < 0)
                        _exit(1);
                for (unsigned i = 1; i < HELD_THREADS; i++)
                        if (pthread_create(&thread, NULL, tell_and_wait, &back[1]) != 0 ||
                            read(back[0], &own[i], sizeof own[i]) != (ssize_t) sizeof own[i])
                                _exit(1);
                if (write(told[1], own, sizeof own) == (ssize_t) sizeof own)
                        for (;;)
                                pause();
                _exit(1);
        }
        util_close(told[1]);
        size_t size = HELD_THREADS * sizeof *tids;
        bool all = pid > 0 && read(told[0], tids, size) == (ssize_t) size;
        util_close(told[0]);
        return all ? pid : -1;
}

/* 0 or negative errno. */
static int stop_thread(pid_t tid) {
        int status;
        if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0 || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 ||
            waitpid(tid, &status, __WALL) != tid)
                return -errno;
        return WIFSTOPPED(status) ? 0 : -ECHILD;
}

/* The last one of many decides. */
static void every_thread_of_a_held_process_stands(void) {
        pid_t tids[HELD_THREADS], tracer = 0, none = 0;
        pid_t pid = start_threads(tids);
        CHECK(pid > 0);
        int e = 0;
        unsigned n = 0;
        for (; e == 0 && n + 1 < HELD_THREADS; n++)
                e = stop_thread(tids[n]);
        bool early = e == 0 && procs_is_held(pid, &none);
        if (e == 0)
                e = stop_thread(tids[n]);
        bool held = e == 0 && procs_is_held(pid, &tracer);
        (void) kill(pid, SIGKILL);
        for (unsigned i = 1; i < HELD_THREADS; i++)
                (void) waitpid(tids[i], NULL, __WALL);
        CHECK_INT(waitpid(pid, NULL, __WALL), pid);
        if (e == -EPERM)
                SKIP("no process may be traced here");
        CHECK_INT(e, 0);
        CHECK(!early);
        CHECK(held);
        CHECK_INT(tracer, getpid());
}

int main(void) {
        log_open(LOG_ERR);
        RUN(a_run_from_hello_to_the_end);
        RUN(messages_out_of_turn);
        RUN(impossible_samples);
        RUN(impossible_parts);
        RUN(probes_in_their_places);
        RUN(probes_out_of_place);
        RUN(probes_of_further_threads);
        RUN(probes_of_further_threads_out_of_place);
        RUN(probes_of_further_threads_have_their_time);
        RUN(totals_come_in_their_order);
        RUN(another_pid_and_no_message);
        RUN(another_sender_ends_the_run);
        RUN(a_flood_is_stopped);
        RUN(its_own_error_comes_first);
        RUN(its_last_messages_are_many);
        RUN(the_fault_that_it_reports);
        RUN(its_death_has_a_reason);
        RUN(its_death_before_the_start_has_a_reason);
        RUN(leaving_badly_is_a_failure);
        RUN(killed_it_only_ends);
        RUN(a_zombie_that_nobody_traces_ends_with_its_status);
        RUN(a_stopped_agent_is_named);
        RUN(freed_it_leaves_no_process);
        RUN(a_stopped_child_is_looked_for_among_the_first);
        RUN(every_thread_of_a_held_process_stands);
        RUN(files_are_filled_before_ready);
        RUN(cold_sources_are_filled_before_ready);
        return check_end();
}
