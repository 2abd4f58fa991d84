/* SPDX-License-Identifier: MIT */

/* What agents count in times of their own, in the seconds of a window. Times are in milliseconds since 100 s. */

#include "daemon/host/disturbance/disturbance.h"
#include "schema/measure/counters.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/disturbance-json.h"

#include <string.h>

#define SECONDS 3u

static uint64_t at(uint64_t ms) {
        return 100 * NSEC_PER_SEC + ms * NSEC_PER_MSEC;
}

/* Seconds from 5 ms on, of a run without CPUs. */
static void window_init(struct disturbance *d) {
        static int64_t nothing[1];
        static struct cpu_times times[1];
        const struct disturbance_run run = {.source = CPU_TIME_CPUACCT, .no_interrupts = "not read"};
        CHECK_INT(disturbance_init(d, &run), 0);
        for (uint64_t s = 0; s < SECONDS; s++) {
                struct disturbance_reading readings[2];
                for (uint64_t i = 0; i < 2; i++)
                        readings[i] = (struct disturbance_reading){.at_ns = at(5 + 1000 * (s + i)),
                                                                   .cpus = times,
                                                                   .own_ns = nothing,
                                                                   .frequency_khz = nothing,
                                                                   .ksoftirqd_ns = nothing,
                                                                   .device_interrupts = nothing,
                                                                   .throttles = nothing};
                CHECK_INT(disturbance_add(d, &readings[0], &readings[1]), 0);
        }
        d->stopped_ns = 0;
}

static void end(struct disturbance *d) {
        disturbance_end(d, &(struct disturbance_window){.begin_ns = at(0), .end_ns = at(1000 * SECONDS)});
}

static void note(struct disturbance *d, enum end end, uint64_t from, uint64_t to, enum disturbance_noted what,
                 int64_t n) {
        const struct disturbance_note note = {.begin_ns = at(from), .end_ns = at(to), .end = end, .what = what, .n = n};
        CHECK_INT(disturbance_note(d, &note), 0);
}

/* The stops of each second, in milliseconds; the run's is that of the agent that stood still the longest. */
static void a_stop_is_in_its_seconds(void) {
        static const struct {
                uint64_t from, to;
        } stops[][END_COUNT] = {
                {{300, 500}, {0, 0}},      {{0, 0}, {905, 1105}}, /* in two */
                {{300, 500}, {350, 700}},                         /* of both at once: the longer one */
                {{905, 2505}, {905, 905}},                        /* in all three */
                {{0, 4}, {3006, 3100}},                           /* before the first reading, and after the last */
        };
        static const int64_t want[ELEMENTS(stops)][SECONDS] = {
                {200, 0, 0}, {100, 100, 0}, {350, 0, 0}, {100, 1000, 500}, {0, 0, 0}};
        for (size_t i = 0; i < ELEMENTS(stops); i++) {
                struct disturbance d;
                _cleanup_free_ char *text = NULL;
                window_init(&d);
                for (int e = 0; e < END_COUNT; e++) {
                        uint64_t ns = at(stops[i][e].to) - at(stops[i][e].from);
                        note(&d, (enum end) e, stops[i][e].from, stops[i][e].to, DISTURBANCE_STOP_NS, (int64_t) ns);
                        if ((int64_t) ns > d.stopped_ns)
                                d.stopped_ns = (int64_t) ns;
                }
                end(&d);
                json_of(&d, &text);
                const char *next = strstr(text, "\"seconds\":[");
                for (size_t s = 0; s < SECONDS && next; s++) {
                        char member[64];
                        next = strstr(next, "\"stopped_ns\":");
                        (void) snprintf(member, sizeof(member), "\"stopped_ns\":%lld,",
                                        (long long) want[i][s] * 1000000);
                        CHECK(next && strncmp(next, member, strlen(member)) == 0);
                        next = next ? strstr(next, "\"flags\":[") : NULL;
                        bool flagged = next && strncmp(next, "\"flags\":[\"noisy:stopped\"]", 24) == 0;
                        CHECK(flagged == (want[i][s] > 0));
                }
                disturbance_deinit(&d);
        }
}

/* A sample of each thread comes about when the second does, or is a longer one, of an agent that was stopped. */
static void migrations_are_in_the_second_of_most_of_a_sample(void) {
        static const struct {
                uint64_t from, to;
                int64_t migrations;
                size_t second;
        } samples[] = {{0, 1000, 3, 0}, {0, 1000, 4, 0}, {1000, 2001, 5, 1}, {900, 2950, 100, 1}, {2001, 3000, 0, 2}};
        struct disturbance d;
        _cleanup_free_ char *text = NULL;
        int64_t want[SECONDS] = {0};
        window_init(&d);
        for (size_t i = 0; i < ELEMENTS(samples); i++) {
                note(&d, END_FIRST, samples[i].from, samples[i].to, DISTURBANCE_MIGRATIONS, samples[i].migrations);
                want[samples[i].second] += samples[i].migrations;
        }
        CHECK_UINT(d.n_notes, 3); /* those of threads of one sample are one, and zeros none */
        end(&d);
        for (size_t s = 0; s < SECONDS; s++)
                CHECK_INT(d.seconds[s].noted[END_FIRST][DISTURBANCE_MIGRATIONS], want[s]);
        json_of(&d, &text);
        CHECK(strstr(text, "\"migrations\":7,") && strstr(text, "\"migrations\":105,"));
        CHECK(!strstr(text, "migrations_reason"));
        disturbance_deinit(&d);
}

/* One thread whose migrations cannot be read is enough. */
static void what_is_not_known_of_a_thread_is_null(void) {
        struct disturbance d;
        _cleanup_free_ char *text = NULL;
        window_init(&d);
        d.stopped_ns = -1;
        note(&d, END_FIRST, 0, 1000, DISTURBANCE_MIGRATIONS, 3);
        note(&d, END_FIRST, 0, 1000, DISTURBANCE_MIGRATIONS, -1);
        note(&d, END_SECOND, 0, 1000, DISTURBANCE_MIGRATIONS, 4);
        note(&d, END_FIRST, 300, 500, DISTURBANCE_STOP_NS, 200 * 1000000); /* before its clock could not be read */
        end(&d);
        json_of(&d, &text);
        CHECK(strstr(text, "\"migrations\":null,\"retransmitted_segments\""));
        CHECK(strstr(text, "\"migrations_reason\":\"an agent could not read them"));
        CHECK(strstr(text, "\"stopped_ns\":null,\"migrations\""));
        CHECK(strstr(text, "\"stopped_ns_reason\":"));
        CHECK(!strstr(text, "noisy:stopped")); /* no second has a flag that the run does not have */
        disturbance_deinit(&d);
}

/* Seven segments of 21 are not known to have arrived the first time: of the seconds that have some of them. */
static void what_was_sent_again_is_in_its_second(void) {
        static const struct {
                int64_t segments, spurious, timeouts;
                bool flagged;
        } seconds[SECONDS] = {{9, 2, 0, true}, {2, 2, 1, true}, {10, 10, 0, false}};
        struct disturbance d;
        _cleanup_free_ char *text = NULL;
        window_init(&d);
        for (size_t s = 0; s < SECONDS; s++)
                for (int e = 0; e < END_COUNT; e++) {
                        const bool first = e == END_FIRST; /* which sends */
                        const uint64_t from = 1000 * s, to = from + 1001;
                        note(&d, (enum end) e, from, to, DISTURBANCE_SENT_AGAIN, first ? seconds[s].segments : 0);
                        note(&d, (enum end) e, from, to, DISTURBANCE_SPURIOUS, first ? seconds[s].spurious : 0);
                        note(&d, (enum end) e, from, to, DISTURBANCE_TIMED_OUT, first ? seconds[s].timeouts : 0);
                }
        end(&d);
        json_of(&d, &text);
        CHECK(strstr(text, "\"retransmitted_segments\":21,\"lost_segments\":7,\"retransmission_timeouts\":1,"));
        const char *next = strstr(text, "\"seconds\":[");
        for (size_t s = 0; s < SECONDS && next; s++) {
                char members[160];
                (void) snprintf(members, sizeof(members),
                                "\"retransmitted_segments\":%lld,\"lost_segments\":%lld,"
                                "\"retransmission_timeouts\":%lld,\"flags\":[%s]",
                                (long long) seconds[s].segments,
                                (long long) (seconds[s].segments - seconds[s].spurious),
                                (long long) seconds[s].timeouts, seconds[s].flagged ? "\"noisy:retransmits\"" : "");
                next = strstr(next, "\"retransmitted_segments\":");
                CHECK(next && strncmp(next, members, strlen(members)) == 0);
                next = next ? next + 1 : NULL;
        }
        CHECK(disturbance_has(&d, DISTURBANCE_RETRANSMITS));
        disturbance_deinit(&d);
}

/* -1: not known. */
static void what_of_it_is_a_reason_for_the_flag(void) {
        static const struct {
                int segments, spurious, timeouts;
                bool flagged;
        } cases[] = {
                {-1, -1, -1, false},   {-1, 0, -1, false},   {1, -1, -1, false}, {0, 0, 0, false},
                {444, 410, -1, false}, {444, 410, 0, false}, {20, 15, 0, false}, {4, 9, 0, false},
                {1, 0, 0, false},      {3, 1, 0, false},     {3, 0, 0, true},    {1, 0, -1, true},
                {3, 2, -1, true},      {1, 0, 1, true},      {20, 14, 0, true},  {122, 116, 2, true},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct disturbance d;
                window_init(&d);
                note(&d, END_FIRST, 0, 1000, DISTURBANCE_SENT_AGAIN, cases[i].segments);
                note(&d, END_FIRST, 0, 1000, DISTURBANCE_SPURIOUS, cases[i].spurious);
                note(&d, END_FIRST, 0, 1000, DISTURBANCE_TIMED_OUT, cases[i].timeouts);
                end(&d);
                if (disturbance_has(&d, DISTURBANCE_RETRANSMITS) != cases[i].flagged)
                        CHECK_FAIL("case %zu", i);
                disturbance_deinit(&d);
        }
}

/* One packet in which an agent could not read its connections is enough. */
static void timeouts_may_be_all_that_is_unknown(void) {
        struct disturbance d;
        _cleanup_free_ char *text = NULL;
        window_init(&d);
        note(&d, END_FIRST, 0, 1000, DISTURBANCE_SENT_AGAIN, 0);
        note(&d, END_FIRST, 0, 1000, DISTURBANCE_SPURIOUS, 0);
        note(&d, END_FIRST, 0, 1000, DISTURBANCE_TIMED_OUT, -1);
        end(&d);
        json_of(&d, &text);
        CHECK(strstr(text, "\"retransmitted_segments\":0,\"lost_segments\":0,\"retransmission_timeouts\":null,"
                           "\"retransmission_timeouts_reason\":"));
        CHECK(strstr(text, "\"lost_segments\":0,\"retransmission_timeouts\":null,\"flags\":[]"));
        CHECK(!disturbance_has(&d, DISTURBANCE_RETRANSMITS));
        disturbance_deinit(&d);
}

/* As of a window that was over before the first packet. */
static void what_no_agent_has_sent_is_not_what_one_could_not_read(void) {
        static const char unread[] = "_reason\":\"an agent could not read", unsent[] = "_reason\":\"no agent has sent";
        static const char *const counts[] = {"migrations", "retransmitted_segments"};
        for (int sent = 0; sent < 2; sent++) {
                struct disturbance d;
                _cleanup_free_ char *text = NULL;
                window_init(&d);
                d.run.network = true;
                if (sent) {
                        note(&d, END_FIRST, 0, 1000, DISTURBANCE_MIGRATIONS, -1);
                        note(&d, END_FIRST, 0, 1000, DISTURBANCE_SENT_AGAIN, -1);
                }
                end(&d);
                json_of(&d, &text);
                for (size_t i = 0; i < ELEMENTS(counts); i++) {
                        char member[96];
                        (void) snprintf(member, sizeof(member), "\"%s%s", counts[i], sent ? unread : unsent);
                        CHECK(strstr(text, member));
                }
                disturbance_deinit(&d);
        }
}

/* The protocol lets an agent count so many at once. What comes to more than a number holds is not known, and of what is
 * placed all counts as the most: a sum that began anew would pass as a small one. */
static void counts_that_no_number_holds_are_unknown(void) {
        for (uint64_t apart = 0; apart < 2; apart++) { /* in one note, and in one second */
                struct disturbance d;
                window_init(&d);
                for (uint64_t i = 0; i < 9; i++)
                        note(&d, END_FIRST, 10 + i * apart, 900, DISTURBANCE_SENT_AGAIN, (int64_t) USAGE_COUNT_MAX);
                end(&d);
                CHECK_INT(d.noted[DISTURBANCE_SENT_AGAIN], -1);
                CHECK_INT(d.seconds[0].noted[END_FIRST][DISTURBANCE_SENT_AGAIN], INT64_MAX);
                disturbance_deinit(&d);
        }
}

int main(void) {
        RUN(a_stop_is_in_its_seconds);
        RUN(migrations_are_in_the_second_of_most_of_a_sample);
        RUN(what_is_not_known_of_a_thread_is_null);
        RUN(what_was_sent_again_is_in_its_second);
        RUN(what_of_it_is_a_reason_for_the_flag);
        RUN(timeouts_may_be_all_that_is_unknown);
        RUN(what_no_agent_has_sent_is_not_what_one_could_not_read);
        RUN(counts_that_no_number_holds_are_unknown);
        return check_end();
}
