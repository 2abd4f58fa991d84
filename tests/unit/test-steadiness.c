/* SPDX-License-Identifier: MIT */

/* Whether a run was steady, from the parts that its two ends send: a stop of either end, on a machine whose own noise
 * is as large. */

#include "daemon/result/steadiness.h"

#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/samples.h"

#include <string.h>

#define TENTHS 60u
#define MS NSEC_PER_MSEC
#define TRIALS 400u

/* The stop, and how late the stopped sampler ends its part. */
#define STOP_MS 2650u
#define GO_MS 4150u
#define LATE_MS 90u

static const bool untimed[END_COUNT] = {false};

struct run {
        double rates[TENTHS]; /* messages in each tenth of a second that is not stopped */
        bool stops;
};

/* A machine on which others take now this, now that share: the noise of neighbours is correlated. */
static void draw(struct run *r, struct random *random, double noise, bool stops) {
        double state = 0;
        *r = (struct run){.stops = stops};
        for (size_t i = 0; i < TENTHS; i++) {
                state = 0.5 * state + sqrt(1 - 0.25) * sample_normal(random);
                r->rates[i] = 10000 * exp(noise * state);
        }
}

/* Messages that pass between two times in ms. */
static double passed(const struct run *r, unsigned from, unsigned to) {
        double sum = 0;
        for (unsigned ms = from; ms < to; ms++)
                if (!r->stops || ms < STOP_MS || ms >= GO_MS)
                        sum += r->rates[ms / 100] / 100;
        return sum;
}

static void add_part(struct steadiness *s, enum end end, unsigned from, unsigned to, double messages) {
        const struct message_parts parts = {
                .begin_ns = NSEC_PER_SEC + from * MS,
                .n = 1,
                .list = {{.interval_ns = (to - from) * MS, .messages = (uint64_t) messages}}};
        CHECK_INT(steadiness_add(s, end, &parts), 0);
}

static void add_tenth(struct steadiness *s, enum end end, unsigned from, double messages) {
        add_part(s, end, from, from + 100, messages);
}

static void add(struct steadiness *s, enum end end, const struct run *r, unsigned from, unsigned to) {
        add_part(s, end, from, to, passed(r, from, to));
}

/* What is reported of it; NULL: it cannot be written. */
static char *text_of(const struct steadiness *s, const char *const roles[END_COUNT]) {
        struct json_writer w;
        char *text = NULL;
        json_writer_init(&w);
        json_object_begin(&w);
        steadiness_put(s, roles, NULL, &w);
        json_object_end(&w);
        if (json_writer_steal(&w, &text, NULL) < 0)
                text = NULL;
        json_writer_deinit(&w);
        return text;
}

/* The window of an end; a stopped one ends its part when it runs again. */
static void add_window(struct steadiness *s, enum end end, const struct run *r, bool stopped) {
        unsigned from = 0;
        while (from < TENTHS * 100) {
                unsigned to = (from / 100 + 1) * 100;
                if (stopped && from < GO_MS && to > STOP_MS)
                        to = GO_MS + LATE_MS;
                add(s, end, r, from, to);
                from = to;
        }
}

/* The judgement of the second end's messages. */
static const struct segments *judge(struct steadiness *s, const struct run *r, bool first_stopped,
                                    bool second_stopped) {
        static const bool measured[END_COUNT] = {[END_SECOND] = true};
        *s = (struct steadiness){.n = 0};
        add_window(s, END_FIRST, r, first_stopped);
        add_window(s, END_SECOND, r, second_stopped);
        return steadiness_judge(s, measured, untimed, 1) == 0 && s->n == 1 ? &s->series[0].segments : NULL;
}

/* The segment that the stop is; NULL: there is none. */
static const struct segment *find_stop(const struct segments *s, double usual) {
        for (size_t i = 0; s && i < s->n; i++)
                if (s->list[i].mean < 0.05 * usual && s->list[i].begin >= 26 && s->list[i].end <= 43)
                        return &s->list[i];
        return NULL;
}

static void a_stop_is_found_whatever_the_noise(void) {
        static const double noises[] = {0.02, 0.2, 0.5, 0.8};
        struct random random;
        random_init(&random, 13);
        for (size_t k = 0; k < ELEMENTS(noises); k++) {
                unsigned receiver = 0, sender = 0, spread = 0;
                char what[100];
                for (unsigned t = 0; t < TRIALS; t++) {
                        struct steadiness s;
                        struct run r;
                        draw(&r, &random, noises[k], true);
                        const struct segment *stop = find_stop(judge(&s, &r, false, true), 1e5);
                        receiver += stop && stop->end - stop->begin >= 13 &&
                                    s.series[0].segments.class == SEGMENTS_UNSTEADY;
                        steadiness_deinit(&s);
                        stop = find_stop(judge(&s, &r, true, false), 1e5);
                        sender += stop && s.series[0].segments.class == SEGMENTS_UNSTEADY;
                        steadiness_deinit(&s);
                        const struct segments *alone = judge(&s, &r, true, true); /* both: the part alone is left */
                        spread += alone && steadiness_is_lost(&s);
                        steadiness_deinit(&s);
                }
                (void) snprintf(what, sizeof(what), "stop of the receiver found, noise %.0f %%", 100 * noises[k]);
                CHECK(sample_share(what, receiver, TRIALS) >= 0.99);
                CHECK(sample_share("  of the sender", sender, TRIALS) >= 0.99);
                (void) sample_share("  of both, whose messages are spread over it", spread, TRIALS);
        }
}

/* What is counted stays the same, and without a stop nothing is moved. */
static void messages_are_moved_and_none_is_lost(void) {
        struct random random;
        struct steadiness s;
        struct run r;
        random_init(&random, 1);
        for (unsigned stops = 0; stops < 2; stops++) {
                draw(&r, &random, 0.2, stops);
                const struct segments *segments = judge(&s, &r, false, true);
                double sum = 0;
                for (size_t i = 0; segments && i < segments->n; i++)
                        sum += segments->list[i].mean * (double) (segments->list[i].end - segments->list[i].begin) / 10;
                CHECK(fabs(sum / passed(&r, 0, TENTHS * 100) - 1) < 1e-3);
                steadiness_deinit(&s);
        }
}

/* A sampler that is late while its threads go on is no stop. */
static void a_late_sampler_is_no_stop(void) {
        struct random random;
        unsigned lost = 0;
        random_init(&random, 2);
        for (unsigned t = 0; t < TRIALS; t++) {
                struct steadiness s;
                struct run r;
                draw(&r, &random, 0.02, false);
                (void) judge(&s, &r, false, true);
                lost += steadiness_is_lost(&s);
                steadiness_deinit(&s);
        }
        CHECK(sample_share("late samplers taken for a stop", lost, TRIALS) <= 0.01);
}

/* Messages and their latency change together: an end that becomes faster has more messages and a lower latency. */
static void a_lower_latency_is_faster(void) {
        static const bool measured[END_COUNT] = {[END_FIRST] = true};
        static const struct {
                double first; /* speed of the first second, the others having 1 */
                enum segments_class class;
        } cases[] = {{1, SEGMENTS_FLAT}, {0.5, SEGMENTS_WARM_UP}, {2, SEGMENTS_SLOW_DOWN}};
        struct random random;
        random_init(&random, 3);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct steadiness s = {.n = 0};
                for (unsigned tenth = 0; tenth < TENTHS; tenth++) {
                        double speed = (tenth < 10 ? cases[i].first : 1) * exp(0.01 * sample_normal(&random));
                        const struct message_parts parts = {.begin_ns = NSEC_PER_SEC + tenth * 100 * MS,
                                                            .n = 1,
                                                            .list = {{.interval_ns = 100 * MS,
                                                                      .messages = (uint64_t) (10000 * speed),
                                                                      .p50_ns = (uint64_t) (10000 / speed)}}};
                        CHECK_INT(steadiness_add(&s, END_FIRST, &parts), 0);
                }
                CHECK_INT(steadiness_judge(&s, measured, untimed, 1), 0);
                CHECK_UINT(s.n, 2);
                for (size_t k = 0; k < s.n; k++)
                        CHECK_INT(s.series[k].segments.class, cases[i].class);
                CHECK(s.n == 2 && s.series[1].is_latency);
                steadiness_deinit(&s);
        }
}

/* A series that is too short, or whose values are all alike, has no known correlation; 0 would be a figure. */
static void a_correlation_that_is_unknown_is_null(void) {
        static const bool measured[END_COUNT] = {[END_FIRST] = true};
        static const char *const roles[END_COUNT] = {"sender", "receiver"};
        static const struct {
                unsigned tenths;
                double noise;
                const char *wanted;
        } cases[] = {
                {20, 0.01, "\"correlation\":null,\"correlation_reason\":\"not judged: the window has fewer than 3 s"},
                {TENTHS, 0, "\"correlation\":null,\"correlation_reason\":\"too few tenths of a second have messages"},
                {TENTHS, 0.01, "\"steady_from_seconds\":0,\"correlation\":0"}, /* a number */
        };
        struct random random;
        random_init(&random, 4);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct steadiness s = {.n = 0};
                for (unsigned tenth = 0; tenth < cases[i].tenths; tenth++) {
                        double messages = 10000 * exp(cases[i].noise * sample_normal(&random));
                        add_tenth(&s, END_FIRST, tenth * 100, messages);
                }
                CHECK_INT(steadiness_judge(&s, measured, untimed, 1), 0);
                _cleanup_free_ char *text = text_of(&s, roles);
                CHECK(text);
                if (!strstr(text, cases[i].wanted))
                        CHECK_FAIL("%s: %s", cases[i].wanted, text);
                steadiness_deinit(&s);
        }
}

/* Where the ends of two streams at once began half a second apart, a second in which nothing passes is one second of
 * both, and not two halves of one each. */
static void ends_that_began_apart_are_added_by_time(void) {
        static const bool measured[END_COUNT] = {true, true};
        static const unsigned begins[] = {0, 500, 530};
        for (size_t b = 0; b < ELEMENTS(begins); b++)
                for (int late = 0; late < END_COUNT; late++) {
                        struct steadiness s = {.n = 0};
                        struct random random;
                        random_init(&random, 6);
                        for (int end = 0; end < END_COUNT; end++)
                                for (unsigned ms = end == late ? begins[b] : 0; ms < 6000; ms += 100) {
                                        double messages = 10000 * exp(0.01 * sample_normal(&random));
                                        for (unsigned k = ms; k < ms + 100; k++)
                                                messages -= k >= 2000 && k < 3000 ? 100 : 0;
                                        add_tenth(&s, (enum end) end, ms, fmax(0, messages));
                                }
                        CHECK_INT(steadiness_judge(&s, measured, untimed, 1), 0);
                        CHECK_UINT(s.series[0].begin_ns, NSEC_PER_SEC + begins[b] * MS);
                        const struct segments *all = &s.series[0].segments;
                        const struct segment *stop = NULL;
                        for (size_t i = 0; i < all->n; i++)
                                if (all->list[i].mean < 0.1 * 2e5)
                                        stop = &all->list[i];
                        CHECK(stop && stop->end - stop->begin >= 9 && stop->end - stop->begin <= 11);
                        CHECK(stop && stop->begin * 100 + begins[b] >= 1900 && stop->begin * 100 + begins[b] <= 2100);
                        steadiness_deinit(&s);
                }
}

/* Two ends never begin at one moment: three seconds of each are three of both where next to nothing is missing. */
static void three_seconds_of_both_ends_are_judged(void) {
        static const bool measured[END_COUNT] = {true, true};
        static const char *const roles[END_COUNT] = {"server", "client"};
        static const struct {
                unsigned skew_ms, tenths;
                const char *steady;
        } cases[] = {
                {0, 30, "\"steady\":true,"},
                {1, 30, "\"steady\":true,"},
                {5, 30, "\"steady\":true,"},
                {6, 30,
                 "\"steady\":null,\"steady_reason\":\"not judged: the windows of both ends have fewer than 3 "
                 "seconds in common\""},
                {6, 31, "\"steady\":true,"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                for (int late = 0; late < END_COUNT; late++) {
                        struct steadiness s = {.n = 0};
                        struct random random;
                        random_init(&random, 6);
                        for (int end = 0; end < END_COUNT; end++)
                                for (unsigned k = 0; k < cases[i].tenths; k++)
                                        add_tenth(&s, (enum end) end, (end == late ? cases[i].skew_ms : 0) + k * 100,
                                                  10000 * exp(0.01 * sample_normal(&random)));
                        CHECK_INT(steadiness_judge(&s, measured, untimed, 1), 0);
                        _cleanup_free_ char *text = text_of(&s, roles);
                        if (!text || !strstr(text, cases[i].steady))
                                CHECK_FAIL("%u ms apart: %s", cases[i].skew_ms, text ? text : "no memory");
                        steadiness_deinit(&s);
                }
}

/* A window of less than a tenth of a second has no whole tenth to judge, whatever the threads: its counts say so. */
static void a_window_of_less_than_a_tenth_is_too_short(void) {
        static const bool measured[END_COUNT] = {[END_FIRST] = true};
        static const bool timed[END_COUNT] = {[END_FIRST] = true};
        static const char *const roles[END_COUNT] = {"initiator", "responder"};
        const struct message_parts parts = {
                .begin_ns = NSEC_PER_SEC, .n = 1, .list = {{.interval_ns = 50 * MS, .messages = 5000, .p50_ns = 9000}}};
        struct steadiness s = {.n = 0};
        CHECK_INT(steadiness_add(&s, END_FIRST, &parts), 0);
        CHECK_INT(steadiness_judge(&s, measured, timed, 1), 0);
        _cleanup_free_ char *text = text_of(&s, roles);
        CHECK(text);
        CHECK(strstr(text, "\"steady\":null,\"steady_reason\":\"not judged: the window has fewer than 3 seconds\""));
        CHECK(!strstr(text, "threads"));
        steadiness_deinit(&s);
}

/* Latencies that were measured and are in no part, as the end has too many threads: that the counts are flat does not
 * make the run steady, and where they are not, it is not. */
static void latencies_that_are_not_taken_are_not_judged(void) {
        static const bool measured[END_COUNT] = {[END_FIRST] = true};
        static const char *const roles[END_COUNT] = {"initiator", "responder"};
        static const struct {
                double first; /* messages of the first half, the others being 10000 */
                bool timed;
                const char *steady;
        } cases[] = {{10000, false, "\"steady\":true,"},
                     {10000, true, "\"steady\":null,\"steady_reason\":\"not judged: of more than 64 threads"},
                     {5000, true, "\"steady\":false,"}};
        struct random random;
        random_init(&random, 5);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct steadiness s = {.n = 0};
                for (unsigned tenth = 0; tenth < TENTHS; tenth++) {
                        double messages = tenth < TENTHS / 2 ? cases[i].first : 10000;
                        messages *= exp(0.01 * sample_normal(&random));
                        add_tenth(&s, END_FIRST, tenth * 100, messages);
                }
                CHECK_INT(steadiness_judge(&s, measured, (const bool[END_COUNT]){[END_FIRST] = cases[i].timed},
                                           MESSAGE_PARTS_TIMED_THREADS + 1),
                          0);
                _cleanup_free_ char *text = text_of(&s, roles);
                CHECK(text);
                if (!strstr(text, cases[i].steady))
                        CHECK_FAIL("%s: %s", cases[i].steady, text);
                CHECK_INT(strstr(text, "\"class\":null,\"class_reason\":\"not judged: of more than 64") != NULL,
                          cases[i].timed);
                CHECK_INT(steadiness_is_lost(&s), cases[i].first < 10000);
                steadiness_deinit(&s);
        }
}

int main(void) {
        RUN(a_stop_is_found_whatever_the_noise);
        RUN(messages_are_moved_and_none_is_lost);
        RUN(a_late_sampler_is_no_stop);
        RUN(a_lower_latency_is_faster);
        RUN(a_correlation_that_is_unknown_is_null);
        RUN(three_seconds_of_both_ends_are_judged);
        RUN(a_window_of_less_than_a_tenth_is_too_short);
        RUN(latencies_that_are_not_taken_are_not_judged);
        RUN(ends_that_began_apart_are_added_by_time);
        return check_end();
}
