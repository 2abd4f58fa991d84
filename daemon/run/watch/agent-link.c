/* SPDX-License-Identifier: MIT */

/*
 * One agent, watched. A state machine checks each packet of the control socket; a timer holds the deadline of the next
 * message; the pidfd signals the exit. The first failure is reported once, and after it no more messages are received
 * from the agent.
 */

#include "daemon/run/watch/agent-link.h"

#include "daemon/log.h"
#include "daemon/run/watch/oom-kills.h"
#include "daemon/run/watch/procs.h"
#include "schema/detail.h"
#include "schema/measure/perf-pass.h"
#include "schema/standstill.h"
#include "schema/transport/file-layout.h"
#include "schema/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define HELLO_WITHIN_NS (5 * NSEC_PER_SEC)
#define READY_WITHIN_NS (10 * NSEC_PER_SEC)
#define READY_THREAD_NS (10 * NSEC_PER_MSEC)
#define SILENCE_BEYOND_INTERVAL_NS (1500 * NSEC_PER_MSEC)
#define SILENCE_PER_THREAD_NS (5 * NSEC_PER_MSEC) /* the leader's turn among a thousand spinning threads is far */
#define LEAVE_WITHIN_NS (5 * NSEC_PER_SEC)        /* its measurement is complete: a slow exit is no reason to fail */
#define EXIT_AFTER_CLOSE_NS NSEC_PER_SEC
#define FREE_WITHIN_MS 5000
#define TIMER_ACCURACY_US 10000
#define PACKETS_PER_DISPATCH 32u
#define DISPATCH_CPU_NS (10 * NSEC_PER_MSEC)
#define WORDS_MAX 600u

/* When it happened, as a person would look for it in the samples. */
static void describe_moment(const struct agent_link *l, uint64_t at, char *ret, size_t size) {
        uint64_t window = l->start_ns + l->setup->warmup_ns;
        switch (l->state) {
        case AGENT_STARTED:
                (void) snprintf(ret, size, "before it sent hello");
                break;
        case AGENT_SETTING_UP:
                (void) snprintf(ret, size, "while it set up");
                break;
        case AGENT_READY:
                (void) snprintf(ret, size, "while it waited for the start");
                break;
        case AGENT_RUNNING:
                if (at < window)
                        (void) snprintf(ret, size, "in its warm-up");
                else if (l->setup->duration_ns && at > window + l->setup->duration_ns)
                        (void) snprintf(ret, size, "after its window, before its report");
                else
                        (void) snprintf(ret, size, "in second %" PRIu64, (at - window) / NSEC_PER_SEC);
                break;
        default:
                (void) snprintf(ret, size, "after its report");
                break;
        }
}

static void describe_process(const struct agent_link *l, char *ret, size_t size) {
        static const struct {
                char letter;
                const char *word;
        } states[] = {{'R', "running"},
                      {'S', "sleeping"},
                      {'D', "in uninterruptible sleep"},
                      {'T', "stopped"},
                      {'t', "stopped by a tracer"},
                      {'Z', "a zombie"},
                      {'X', "dead"}};
        char letter = procs_state(l->pid);
        const char *word = "unknown";
        for (size_t i = 0; i < ELEMENTS(states); i++)
                if (states[i].letter == letter)
                        word = states[i].word;
        (void) snprintf(ret, size, "state %c, %s", letter, word);
}

static void append(char *words, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void append(char *words, size_t size, const char *format, ...) {
        size_t n = strlen(words);
        va_list ap;
        va_start(ap, format);
        (void) vsnprintf(words + n, size - n, format, ap);
        va_end(ap);
}

void agent_link_append_stopped(const struct agent_link *l, bool itself, char *words, size_t size) {
        bool more;
        if (l->has_ended)
                return;
        if (itself && procs_is_stopped(l->pid))
                append(words, size, "; %s (pid %d) is stopped", l->role, l->pid);
        pid_t child = procs_stopped_child(l->pid, &more);
        if (child > 0)
                append(words, size, "; process %d of %s (pid %d) is stopped", child, l->role, l->pid);
        else if (more)
                append(words, size, "; %s (pid %d) has more than %u processes, and none of the first %u is stopped",
                       l->role, l->pid, PROCS_CHILDREN_MAX, PROCS_CHILDREN_MAX);
}

static void stop_receiving(struct agent_link *l) {
        l->control_source = sd_event_source_disable_unref(l->control_source);
        l->deadline_ns = UINT64_MAX;
        if (l->timer)
                (void) sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
}

static void fail(struct agent_link *l, enum agent_failure failure, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
static void fail(struct agent_link *l, enum agent_failure failure, const char *format, ...) {
        char words[WORDS_MAX];
        if (l->state == AGENT_FAILED)
                return;
        int n = snprintf(words, sizeof(words), "%s (pid %d) ", l->role, l->pid);
        va_list ap;
        va_start(ap, format);
        (void) vsnprintf(words + n, sizeof(words) - (size_t) n, format, ap);
        va_end(ap);
        l->state = AGENT_FAILED;
        stop_receiving(l);
        l->ops->failed(l->userdata, l, failure, words);
}

/* The timer is not moved with every message: when it fires, its handler checks whether the deadline has moved. */
static int set_deadline(struct agent_link *l, uint64_t deadline_ns) {
        l->deadline_ns = deadline_ns;
        if (deadline_ns == UINT64_MAX)
                return 0;
        uint64_t set_us;
        int enabled;
        if (sd_event_source_get_enabled(l->timer, &enabled) == 1 && enabled != SD_EVENT_OFF &&
            sd_event_source_get_time(l->timer, &set_us) == 0 && set_us <= deadline_ns / NSEC_PER_USEC)
                return 0;
        int r = sd_event_source_set_time(l->timer, deadline_ns / NSEC_PER_USEC + 1);
        return r < 0 ? r : sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
}

static void deadline_or_fail(struct agent_link *l, uint64_t deadline_ns) {
        int r = set_deadline(l, deadline_ns);
        if (r < 0)
                fail(l, AGENT_BROKE_PROTOCOL, "cannot be watched: %s", strerrordesc_np(-r));
}

static uint64_t silence_allowed(const struct agent_link *l) {
        return l->setup->interval_ns + SILENCE_BEYOND_INTERVAL_NS + l->setup->point.threads * SILENCE_PER_THREAD_NS;
}

/* What the threads send from is made and touched, and given back. */
static uint64_t bytes_allowed(const struct agent_link *l) {
        const struct point *p = &l->setup->point;
        return p->threads * point_fill_ns(p, l->cache_bytes, (uint64_t) sysconf(_SC_PAGESIZE));
}

/* Files may be filled beforehand, by either end. */
static uint64_t files_allowed(const struct message_setup *s) {
        if (!point_has_carrier(&s->point, CARRIER_FILE))
                return 0;
        return file_layout_fill_ns(&s->point, s->options.file_sync, (uint64_t) sysconf(_SC_PAGESIZE));
}

/* Both ends' further threads in turn, the last of which may be given up. */
static uint64_t probes_allowed(const struct message_setup *s) {
        return s->probes && s->point.threads > 1 ? END_COUNT * (PROBE_OTHERS_NS + PROBE_WORK_NS) : 0;
}

static void deadline_passed(struct agent_link *l) {
        char process[64], moment[64];
        describe_process(l, process, sizeof(process));
        describe_moment(l, l->received_ns, moment, sizeof(moment));
        double silent = (double) (util_now_ns() - l->received_ns) / 1e9;
        if (l->state == AGENT_LEAVING)
                fail(l, AGENT_WENT_SILENT, "did not exit within %.1f s of its report (%s)", silent, process);
        else if (l->control_closed)
                fail(l, AGENT_WENT_SILENT, "closed its control socket %s and lives on (%s)", moment, process);
        else if (l->state == AGENT_RUNNING)
                fail(l, AGENT_WENT_SILENT, "went silent for %.1f s %s (%s)", silent, moment, process);
        else
                fail(l, AGENT_WENT_SILENT, "was silent for %.1f s %s (%s)", silent, moment, process);
}

static void refuse_unexpected(struct agent_link *l, const struct message *m) {
        static const char *const expected[] = {
                [AGENT_STARTED] = "hello",    [AGENT_SETTING_UP] = "count, probe or ready",
                [AGENT_READY] = "nothing",    [AGENT_RUNNING] = "alive, parts, sample, thread, probe or report",
                [AGENT_REPORTED] = "nothing", [AGENT_LEAVING] = "nothing",
                [AGENT_FAILED] = "nothing"};
        fail(l, AGENT_BROKE_PROTOCOL, "sent \"%s\" where %s was expected", message_type_name(m->type),
             expected[l->state]);
}

static void take_hello(struct agent_link *l, const struct message *m) {
        if (m->hello.pid != l->pid) {
                fail(l, AGENT_BROKE_PROTOCOL, "claims to be pid %" PRId32, m->hello.pid);
                return;
        }
        struct message setup = {.type = MESSAGE_SETUP, .setup = *l->setup};
        int r = message_send(l->control_fd, &setup, 0);
        if (r < 0) {
                fail(l, AGENT_BROKE_PROTOCOL, "cannot be sent its set-up: %s", strerrordesc_np(-r));
                return;
        }
        l->state = AGENT_SETTING_UP;
        deadline_or_fail(l, l->received_ns + READY_WITHIN_NS + l->setup->point.threads * READY_THREAD_NS +
                                    bytes_allowed(l) + files_allowed(l->setup) + probes_allowed(l->setup));
}

/* Opening takes some milliseconds at the most, and nothing is measured yet. */
static void take_count(struct agent_link *l, const struct message *m) {
        if (l->n_counted == l->setup->point.threads) {
                fail(l, AGENT_BROKE_PROTOCOL, "requests the counters of more than its %" PRIu32 " threads",
                     l->setup->point.threads);
                return;
        }
        l->n_counted++;
        int r = perf_pass_answer(l->control_fd, &perf_source_kernel, l->pid, m->count.tid);
        if (r < 0 && r != -ECONNRESET) /* a closed socket is handled when it is read */
                fail(l, AGENT_BROKE_PROTOCOL, "cannot be given its counters: %s", strerrordesc_np(-r));
}

/* Takes a probe of thread 1, 2 …, behind that of thread 0, as far as they have CPUs of their own. */
static void take_other(struct agent_link *l, uint32_t time, const struct probe *p) {
        const struct agent_placement *place = &l->setup->placement;
        uint32_t most = probe_others(l->setup->point.threads, place->n_cpus, place->roam), *n = &l->n_others[time];
        most = most < PROBE_OTHERS_MAX ? most : PROBE_OTHERS_MAX;
        if (!l->setup->probes || l->n_probes != time + 1 || p->thread > most || p->thread != *n + 1) {
                fail(l, AGENT_BROKE_PROTOCOL,
                     "sent a probe of thread %" PRIu32 " where none was due: %" PRIu32 " further threads were to take "
                     "one in their order behind thread 0, and %" PRIu32 " have",
                     p->thread, l->setup->probes ? most : 0, *n);
                return;
        }
        for (size_t kind = PROBE_OWN_KINDS; kind < PROBE_KIND_COUNT; kind++)
                if (p->series[kind].absence != PROBE_OTHER_THREAD) {
                        fail(l, AGENT_BROKE_PROTOCOL, "sent %s of thread %" PRIu32 ", which only thread 0 measures",
                             probe_terms[kind].name, p->thread);
                        return;
                }
        l->others[time][(*n)++] = *p;
}

/* One of thread 0 before it is ready and one before it reports, and none where none were ordered. */
static void take_probe(struct agent_link *l, const struct message *m) {
        uint32_t due = l->state == AGENT_SETTING_UP ? PROBE_BEFORE : PROBE_AFTER;
        if (m->probe.thread > 0) {
                take_other(l, due, &m->probe);
                return;
        }
        if (!l->setup->probes || l->n_probes != due) {
                fail(l, AGENT_BROKE_PROTOCOL,
                     "sent a probe where none was due: it was to take %u, and has sent %" PRIu32,
                     l->setup->probes ? (unsigned) PROBE_TIMES : 0, l->n_probes);
                return;
        }
        l->probes[l->n_probes++] = m->probe;
}

/* False, and the link has failed: its probe has not come. */
static bool has_probed(struct agent_link *l, uint32_t due) {
        if (!l->setup->probes || l->n_probes == due)
                return true;
        fail(l, AGENT_BROKE_PROTOCOL, "sent %" PRIu32 " of %" PRIu32 " probes", l->n_probes, due);
        return false;
}

static void take_ready(struct agent_link *l, struct message *m) {
        if (!has_probed(l, PROBE_BEFORE + 1))
                return;
        l->ready = *m;
        *m = (struct message){.type = MESSAGE_HELLO};
        l->state = AGENT_READY;
        (void) set_deadline(l, UINT64_MAX);
        l->ops->ready(l->userdata, l);
}

/* They lie end to end, from the window's begin to now. */
static void take_parts(struct agent_link *l, const struct message_parts *p) {
        uint64_t window = l->start_ns + l->setup->warmup_ns, end_ns = p->begin_ns, messages = 0;
        for (uint32_t i = 0; i < p->n; i++) {
                end_ns += p->list[i].interval_ns; /* the decoder has seen to it that this fits */
                messages += p->list[i].messages;
        }
        if (p->begin_ns < window || (l->parts_end_ns && p->begin_ns != l->parts_end_ns) || end_ns > l->received_ns) {
                fail(l, AGENT_BROKE_PROTOCOL,
                     "sent impossible parts: %" PRIu64 " … %" PRIu64 " ns, after %" PRIu64 " and before %" PRIu64,
                     p->begin_ns, end_ns, l->parts_end_ns ? l->parts_end_ns : window, l->received_ns);
                return;
        }
        l->parts_end_ns = end_ns;
        l->parts_messages += messages;
        l->ops->parts(l->userdata, l, p);
}

/* Whether a sum of counts, which are stored and served as signed numbers, would be too large with n more. */
static bool is_beyond(uint64_t sum, uint64_t n) {
        return n > INT64_MAX || sum + n > INT64_MAX;
}

static void take_sample(struct agent_link *l, struct message *m) {
        struct message_sample *s = &m->sample;
        uint64_t window = l->start_ns + l->setup->warmup_ns;
        uint64_t elapsed = l->received_ns > window ? (l->received_ns - window) / NSEC_PER_SEC : 0;
        if (s->thread >= l->setup->point.threads || s->second < l->next_second[s->thread] || s->second > elapsed ||
            s->interval_ns == 0 || s->begin_ns < window || s->begin_ns > l->received_ns ||
            s->interval_ns > l->received_ns - s->begin_ns || is_beyond(l->sampled_messages, s->messages) ||
            is_beyond(l->sampled_bytes, s->bytes)) {
                fail(l, AGENT_BROKE_PROTOCOL,
                     "sent an impossible sample: thread %" PRIu32 " of %" PRIu32 ", second %" PRIu32 " after %" PRIu64
                     " s of the window, interval %" PRIu64 " ns, %" PRId64 " ns after its begin, %" PRIu64
                     " messages (%" PRIu64 " bytes)",
                     s->thread, l->setup->point.threads, s->second, elapsed, s->interval_ns,
                     (int64_t) (s->begin_ns - window), s->messages, s->bytes);
                return;
        }
        l->next_second[s->thread] = s->second + 1;
        l->sampled_ns += s->thread == 0 ? s->interval_ns : 0;
        l->sampled_messages += s->messages;
        l->sampled_bytes += s->bytes;
        l->ops->sample(l->userdata, l, s);
}

static void take_thread(struct agent_link *l, struct message *m) {
        if (l->n_threads == l->setup->point.threads || m->thread.thread != l->n_threads ||
            is_beyond(0, m->thread.messages) || is_beyond(0, m->thread.bytes)) {
                fail(l, AGENT_BROKE_PROTOCOL,
                     "sent the totals of thread %" PRIu32 " of %" PRIu32 ", after those of %" PRIu32 ": %" PRIu64
                     " messages (%" PRIu64 " bytes)",
                     m->thread.thread, l->setup->point.threads, l->n_threads, m->thread.messages, m->thread.bytes);
                return;
        }
        l->threads[l->n_threads++] = m->thread;
}

static void take_running(struct agent_link *l, struct message *m) {
        deadline_or_fail(l, l->received_ns + silence_allowed(l));
        if (l->state != AGENT_RUNNING || m->type == MESSAGE_ALIVE)
                return;
        if (m->type == MESSAGE_PARTS) {
                take_parts(l, &m->parts);
                return;
        }
        if (m->type == MESSAGE_SAMPLE) {
                take_sample(l, m);
                return;
        }
        if (m->type == MESSAGE_THREAD) {
                take_thread(l, m);
                return;
        }
        if (m->type == MESSAGE_PROBE) {
                take_probe(l, m);
                return;
        }
        if (!has_probed(l, PROBE_AFTER + 1))
                return;
        if (l->n_threads < l->setup->point.threads) {
                fail(l, AGENT_BROKE_PROTOCOL, "reports without the totals of thread %" PRIu32, l->n_threads);
                return;
        }
        l->report = *m;
        *m = (struct message){.type = MESSAGE_HELLO};
        l->state = AGENT_REPORTED;
        (void) set_deadline(l, UINT64_MAX);
        l->ops->reported(l->userdata, l);
}

/* May take parts of the message over. */
static void take(struct agent_link *l, struct message *m) {
        l->received_ns = util_now_ns();
        if (m->type == MESSAGE_ERROR)
                fail(l, m->error.fault == FAULT_PEER ? AGENT_BLAMED_PEER : AGENT_REPORTED_ERROR, "gave up: %s",
                     m->error.detail);
        else if (l->state == AGENT_STARTED && m->type == MESSAGE_HELLO)
                take_hello(l, m);
        else if (l->state == AGENT_SETTING_UP && m->type == MESSAGE_READY)
                take_ready(l, m);
        else if (l->state == AGENT_SETTING_UP && m->type == MESSAGE_PROBE)
                take_probe(l, m);
        else if (l->state == AGENT_SETTING_UP && m->type == MESSAGE_COUNT)
                take_count(l, m);
        else if (l->state == AGENT_SETTING_UP && m->type == MESSAGE_ALIVE)
                return; /* does not move the deadline of ready */
        else if (l->state == AGENT_RUNNING &&
                 (m->type == MESSAGE_ALIVE || m->type == MESSAGE_PARTS || m->type == MESSAGE_SAMPLE ||
                  m->type == MESSAGE_THREAD || m->type == MESSAGE_PROBE || m->type == MESSAGE_REPORT))
                take_running(l, m);
        else
                refuse_unexpected(l, m);
}

/* A process that got hold of the agent's end could report figures in its name. */
static bool is_from_agent(struct agent_link *l, const struct ucred *sender) {
        if (sender->pid == l->pid)
                return true;
        fail(l, AGENT_BROKE_PROTOCOL, "has a control socket that pid %d (uid %u) has sent on", sender->pid,
             sender->uid);
        return false;
}

/* false: nothing more to read for now. */
static bool receive_one(struct agent_link *l) {
        char detail[DETAIL_MAX] = "";
        struct ucred sender;
        struct message m;
        int r = message_receive_from(l->control_fd, &m, &sender, detail);
        if (r == -EAGAIN || r == -ETIMEDOUT)
                return false;
        if (r == -ECONNRESET) {
                l->control_closed = true;
                l->control_source = sd_event_source_disable_unref(l->control_source);
                if (l->state != AGENT_LEAVING)
                        deadline_or_fail(l, util_now_ns() + EXIT_AFTER_CLOSE_NS);
                return false;
        }
        if (r < 0 && r != -EBADMSG) {
                fail(l, AGENT_BROKE_PROTOCOL, "has a control socket that cannot be read: %s", strerrordesc_np(-r));
                return false;
        }
        if (!is_from_agent(l, &sender)) {
                if (r == 0)
                        message_deinit(&m);
                return false;
        }
        if (r < 0) {
                fail(l, AGENT_BROKE_PROTOCOL, "sent a malformed message: %s", detail);
                return false;
        }
        l->packets++;
        /* a sample per thread and second, twice as many for late ones, and some for everything else */
        uint64_t seconds = (util_now_ns() - l->spawned_ns) / NSEC_PER_SEC + 3;
        if (l->packets > 256 + seconds * (2 * (uint64_t) l->setup->point.threads + 8))
                fail(l, AGENT_BROKE_PROTOCOL, "floods its control socket: %" PRIu64 " messages in %.1f s", l->packets,
                     (double) (util_now_ns() - l->spawned_ns) / 1e9);
        else
                take(l, &m);
        message_deinit(&m);
        return l->state != AGENT_FAILED;
}

/* Until they have taken so much CPU time: a message may request the counters of a thread, and opening one of them takes
 * from ten microseconds to milliseconds. Whether there may be more. */
static bool receive_some(struct agent_link *l) {
        uint64_t begin = util_thread_cpu_ns();
        for (unsigned i = 0; i < PACKETS_PER_DISPATCH; i++) {
                if (!l->control_source || !receive_one(l))
                        return false;
                if (util_thread_cpu_ns() - begin >= DISPATCH_CPU_NS)
                        break;
        }
        return l->control_source;
}

/* Extends the deadline where the machine stood still or the daemon was delayed. */
static bool extend_deadline(struct agent_link *l, uint64_t now_ns) {
        if (!standstill_between(l->deadline_ns, now_ns))
                return false;
        log_warning("the deadline of %s (pid %d) was checked %.1f s late: the daemon was delayed, or the machine "
                    "stood still",
                    l->role, l->pid, (double) (now_ns - l->deadline_ns) / 1e9);
        deadline_or_fail(l, now_ns + SILENCE_BEYOND_INTERVAL_NS);
        return true;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        struct agent_link *l = userdata;
        (void) source;
        (void) usec;
        /* The daemon may be the late one: what lies in the socket was sent in time. */
        uint64_t now_ns = util_now_ns();
        bool more = now_ns >= l->deadline_ns && receive_some(l);
        if (l->deadline_ns == UINT64_MAX)
                return 0;
        if (more || now_ns < l->deadline_ns) /* with more at once again, behind other events */
                deadline_or_fail(l, l->deadline_ns);
        else if (!extend_deadline(l, now_ns))
                deadline_passed(l);
        return 0;
}

static int on_control(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct agent_link *l = userdata;
        (void) source;
        (void) fd;
        (void) events;
        (void) receive_some(l);
        return 0;
}

static void describe_end(struct agent_link *l, char *ret, size_t size) {
        if (!l->has_status) {
                (void) snprintf(ret, size, "ended, and its exit status cannot be had,");
                return;
        }
        if (l->exit_code == CLD_EXITED) {
                (void) snprintf(ret, size, "exited with status %d", l->exit_status);
                return;
        }
        const char *name = sigabbrev_np(l->exit_status);
        char more[80] = "";
        uint64_t kills = 0;
        if (l->exit_code == CLD_DUMPED)
                (void) snprintf(more, sizeof(more), ", core dumped");
        else if (l->exit_status == SIGKILL && l->knows_oom_kills && oom_kills(&kills) && kills > l->oom_kills)
                (void) snprintf(more, sizeof(more),
                                "; meanwhile the kernel killed %" PRIu64 " process%s for lack of memory",
                                kills - l->oom_kills, kills - l->oom_kills == 1 ? "" : "es");
        (void) snprintf(ret, size, "was killed by signal %d (%s%s%s)", l->exit_status, name ? "SIG" : "",
                        name ? name : "unknown", more);
}

/* waitid(2) as the kernel has it: the fifth argument gives the CPU time, which libc's leaves out. */
static int reap(struct agent_link *l) {
        siginfo_t info = {0};
        struct rusage usage = {0};
        long r;
        do
                r = syscall(SYS_waitid, P_PIDFD, l->pidfd, &info, WEXITED | WNOHANG, &usage);
        while (r < 0 && errno == EINTR);
        if (r < 0)
                return -errno;
        if (info.si_pid == 0)
                return -EAGAIN;
        l->has_ended = l->has_status = true;
        l->exit_code = info.si_code;
        l->exit_status = info.si_status;
        l->cpu_ns = ((uint64_t) usage.ru_utime.tv_sec + (uint64_t) usage.ru_stime.tv_sec) * NSEC_PER_SEC +
                    ((uint64_t) usage.ru_utime.tv_usec + (uint64_t) usage.ru_stime.tv_usec) * NSEC_PER_USEC;
        return 0;
}

/* r: what reap() has returned. */
static void end(struct agent_link *l, int r) {
        if (r < 0) {
                log_error("cannot reap pid %d: %s", l->pid, strerrordesc_np(-r));
                l->has_ended = true;
        }
        l->process_source = sd_event_source_disable_unref(l->process_source);
        bool well = l->state == AGENT_LEAVING && l->has_status && l->exit_code == CLD_EXITED && l->exit_status == 0;
        if (!well && l->state != AGENT_FAILED) {
                char words[160], moment[64];
                describe_end(l, words, sizeof(words));
                describe_moment(l, util_now_ns(), moment, sizeof(moment));
                fail(l, AGENT_DIED, "%s %s", words, moment);
        }
        stop_receiving(l);
        l->ops->ended(l->userdata, l);
}

static int on_process(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct agent_link *l = userdata;
        (void) fd;
        (void) events;
        /* Its last messages explain more than its exit status. To set the events is another edge. */
        if (receive_some(l) && sd_event_source_set_io_events(source, EPOLLIN | EPOLLET) >= 0)
                return 0;
        int r = reap(l);
        if (r != -EAGAIN) /* a tracer is notified first; another edge follows */
                end(l, r);
        return 0;
}

static int watch(struct agent_link *l) {
        int r = sd_event_add_io(l->event, &l->control_source, l->control_fd, EPOLLIN, on_control, l);
        if (r >= 0)
                r = sd_event_add_io(l->event, &l->process_source, l->pidfd, EPOLLIN | EPOLLET, on_process, l);
        if (r >= 0)
                r = sd_event_add_time(l->event, &l->timer, CLOCK_MONOTONIC, UINT64_MAX, TIMER_ACCURACY_US, on_timer, l);
        if (r >= 0)
                r = set_deadline(l, l->spawned_ns + HELLO_WITHIN_NS);
        return r < 0 ? r : 0;
}

int agent_link_socketpair(int *ret_daemons, int *ret_agents) {
        int pair[2], on = 1;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0 ||
            setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0) {
                int error = errno;
                util_close(pair[0]);
                util_close(pair[1]);
                return -error;
        }
        *ret_daemons = pair[0];
        *ret_agents = pair[1];
        return 0;
}

int agent_link_new(struct agent_link **ret, const struct agent_link_options *o) {
        struct agent_link *l = calloc(1, sizeof(*l));
        if (!l)
                return -ENOMEM;
        l->role = o->role;
        l->pid = o->process.pid;
        l->event = sd_event_ref(o->event);
        l->setup = o->setup;
        l->cache_bytes = o->cache_bytes;
        l->ops = o->ops;
        l->userdata = o->userdata;
        l->control_fd = o->control_fd;
        l->pidfd = o->process.pidfd;
        l->spawned_ns = l->received_ns = util_now_ns();
        l->knows_oom_kills = oom_kills(&l->oom_kills);
        l->next_second = calloc(o->setup->point.threads, sizeof(*l->next_second));
        l->threads = calloc(o->setup->point.threads, sizeof(*l->threads));
        int r = l->next_second && l->threads ? watch(l) : -ENOMEM;
        if (r < 0) {
                l->control_fd = l->pidfd = -1;
                l->has_ended = true;
                agent_link_free(l);
                return r;
        }
        *ret = l;
        return 0;
}

void agent_link_free(struct agent_link *l) {
        if (!l)
                return;
        if (!l->has_ended) {
                struct pollfd p = {.fd = l->pidfd, .events = POLLIN};
                (void) pidfd_send_signal(l->pidfd, SIGKILL, NULL, 0);
                (void) poll(&p, 1, FREE_WITHIN_MS); /* a process that survives SIGKILL must not block the daemon */
                (void) reap(l);
        }
        sd_event_source_disable_unref(l->control_source);
        sd_event_source_disable_unref(l->process_source);
        sd_event_source_disable_unref(l->timer);
        message_deinit(&l->ready);
        message_deinit(&l->report);
        util_close(l->control_fd);
        util_close(l->pidfd);
        sd_event_unref(l->event);
        free(l->threads);
        free(l->next_second);
        free(l);
}

int agent_link_start(struct agent_link *l, uint64_t start_ns) {
        struct message m = {.type = MESSAGE_START, .start = {.start_ns = start_ns}};
        int r = message_send(l->control_fd, &m, 0);
        if (r < 0 && r != -ECONNRESET) /* a closed socket is handled when it is read, with the cause */
                return r;
        l->start_ns = start_ns;
        l->received_ns = start_ns;
        l->state = AGENT_RUNNING;
        return set_deadline(l, start_ns + silence_allowed(l));
}

void agent_link_dismiss(struct agent_link *l) {
        l->control_source = sd_event_source_disable_unref(l->control_source);
        l->control_fd = util_close(l->control_fd);
        if (l->state == AGENT_FAILED || l->has_ended)
                return;
        l->state = AGENT_LEAVING;
        l->received_ns = util_now_ns();
        deadline_or_fail(l, l->received_ns + LEAVE_WITHIN_NS + bytes_allowed(l));
}

static void send_signal(const struct agent_link *l, int number) {
        if (!l->has_ended && pidfd_send_signal(l->pidfd, number, NULL, 0) < 0 && errno != ESRCH)
                log_error("cannot send SIG%s to %s (pid %d): %s", sigabbrev_np(number), l->role, l->pid,
                          strerrordesc_np(errno));
}

void agent_link_stop(struct agent_link *l) {
        send_signal(l, SIGSTOP);
}

void agent_link_kill(struct agent_link *l) {
        l->state = AGENT_FAILED;
        stop_receiving(l);
        send_signal(l, SIGKILL);
}

bool agent_link_leave_to_tracer(struct agent_link *l, pid_t *ret_tracer) {
        if (l->has_ended || !procs_is_held(l->pid, ret_tracer))
                return false;
        int r = reap(l); /* gives nothing of a process that is traced; any other zombie only waits for its reaping */
        if (r != -EAGAIN) {
                end(l, r);
                return false;
        }
        l->has_ended = l->held = true;
        l->process_source = sd_event_source_disable_unref(l->process_source);
        l->ops->ended(l->userdata, l);
        return true;
}
