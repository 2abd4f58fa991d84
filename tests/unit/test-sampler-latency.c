/* SPDX-License-Identifier: MIT */

/* A sample's latencies are of the messages that it counts, however long the counters of all threads take to read and
 * the samples of other threads to send: workers go on meanwhile, here by a message at each of these steps. */

#include <stdint.h>

/* The test's own, in the place of what takes long. */
#define counters_read slow_counters_read
#define leader_say slow_leader_say
#define proof_look no_proof_look
#include "agent/measure/sampler.c" /* NOLINT(bugprone-suspicious-include) */

#include "check.h"

#define THREADS 4u

static struct worker workers[THREADS];
static struct agent agent = {.workers = workers, .n_workers = THREADS};
static struct histogram latency[THREADS];
static uint64_t messages[THREADS], timed[THREADS]; /* told in samples */
static unsigned samples, unlike;

static void go_on(void) {
        for (uint32_t i = 0; i < THREADS; i++) {
                histogram_record(&latency[i], 1000);
                worker_count(&workers[i].messages);
        }
}

int slow_counters_read(struct counters *c, uint32_t thread, struct counters_reading *ret) {
        (void) c;
        (void) thread;
        *ret = (struct counters_reading){};
        go_on();
        return 0;
}

int slow_leader_say(struct agent *a, const struct message *m) {
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

void no_proof_look(struct agent *a) {
        (void) a;
}

static void latencies_are_of_the_messages(void) {
        struct sampler *s = NULL;
        for (uint32_t i = 0; i < THREADS; i++)
                workers[i].latency = &latency[i];
        agent.setup.interval_ns = NSEC_PER_SEC;
        agent.setup.point.message_size = 1;
        go_on(); /* of the warm-up */
        CHECK_INT(sampler_new(&agent, &s), 0);
        go_on();
        CHECK_INT(sampler_open(s, 0), 0);
        for (unsigned k = 0; k < 3; k++)
                CHECK_INT(sampler_take(s), 0);
        CHECK_INT(sampler_close(s, 0), 0);
        CHECK_UINT(samples, 4 * THREADS);
        CHECK_UINT(unlike, 0);
        for (uint32_t i = 0; i < THREADS; i++) {
                CHECK_UINT(timed[i], messages[i]);
                CHECK(messages[i] > 0);
        }
        sampler_free(s);
}

int main(void) {
        RUN(latencies_are_of_the_messages);
        return check_end();
}
