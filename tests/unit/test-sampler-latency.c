/* SPDX-License-Identifier: MIT */

/* A sample's latencies are of the messages that it counts, however long the counters of all threads take to read and
 * the samples of other threads to send: workers go on meanwhile, here by a message at each of these steps. The sending
 * (agent/base/wait.h) is this file's: the linker takes it instead of the agent's. */

#include "agent/base/agent.h"
#include "agent/base/wait.h"
#include "agent/measure/sampler.h"
#include "agent/measure/stops.h"
#include "agent/proof/proof.h"
#include "check.h"
#include "schema/measure/recorder.h"
#include "schema/util.h"

#include <sys/syscall.h>

#define THREADS 4u

static struct worker workers[THREADS];
static struct proof proof;
static struct stops stops;
static struct agent agent = {.workers = workers, .n_workers = THREADS, .event_fd = -1, .proof = &proof};
static struct recorder latency[THREADS];
static uint64_t messages[THREADS], timed[THREADS]; /* sent in samples */
static unsigned samples, unlike;

static void go_on(void) {
        for (uint32_t i = 0; i < THREADS; i++) {
                recorder_record(&latency[i], 1000);
                worker_count(&workers[i].messages);
        }
}

/* Every thread has one event. */
static void open_slow(void *userdata, pid_t tid, struct perf_handles *ret) {
        (void) userdata, (void) tid;
        perf_handles_fill(ret, -ENOENT);
        ret->of[PERF_CYCLES][PERF_USER] = 1;
}

static int read_slowly(void *userdata, int handle, struct perf_reading *ret) {
        (void) userdata, (void) handle;
        *ret = (struct perf_reading){.value = 0};
        go_on();
        return 0;
}

static void close_nothing(void *userdata, int handle) {
        (void) userdata, (void) handle;
}

static const struct perf_source slow = {.open = open_slow, .read = read_slowly, .close = close_nothing};

int agent_send(struct agent *a, const struct message *m) {
        (void) a;
        if (m->type != MESSAGE_SAMPLE)
                return 0;
        samples++;
        messages[m->sample.thread] += m->sample.messages;
        timed[m->sample.thread] += histogram_total(m->sample.latency);
        unlike += m->sample.messages != histogram_total(m->sample.latency);
        go_on();
        return 0;
}

static void latencies_are_of_the_messages(void) {
        struct sampler *s = NULL;
        struct window window;
        for (uint32_t i = 0; i < THREADS; i++) {
                workers[i].latency = &latency[i];
                workers[i].tid = (pid_t) syscall(SYS_gettid);
        }
        CHECK_INT(counters_new(&agent, &slow, &agent.counters), 0);
        agent.setup.interval_ns = NSEC_PER_SEC;
        agent.setup.point.message_size = 1;
        go_on(); /* of the warm-up */
        CHECK_INT(sampler_new(&agent, &stops, &s), 0);
        go_on();
        CHECK_INT(sampler_open(s, 0, 0), 0);
        for (unsigned k = 0; k < 3; k++)
                CHECK_INT(sampler_take(s), 0);
        CHECK_INT(sampler_close(s, 0, &window), 0);
        CHECK_UINT(samples, 4 * THREADS);
        CHECK_UINT(unlike, 0);
        for (uint32_t i = 0; i < THREADS; i++) {
                CHECK_UINT(timed[i], messages[i]);
                CHECK(messages[i] > 0);
        }
        sampler_free(s);
        counters_free(agent.counters);
}

int main(void) {
        RUN(latencies_are_of_the_messages);
        return check_end();
}
