/* SPDX-License-Identifier: MIT */

/*
 * A posted field overrides the preset's, and a preset's field without a meaning beside it is dropped: a spec is refused
 * for its posted fields only. The presets here are made up, as those that ship have neither rate nor options.
 */

#include "check.h"
#include "schema/json/json.h"
#include "schema/presets.h"
#include "schema/spec/internal.h"
#include "schema/util.h"

#include <errno.h>

/* Instead of those that the build has compiled in. */
const struct preset *preset_find(const char *name) {
        static const char queues[] = "{\"spec\":{\"transport\":[\"pipe\",\"msgq-sysv\",\"unix-dgram\"],\"chunk\":true,"
                                     "\"rate\":1000,\"transport_options\":{\"pipe_size\":65536,\"msgq_depth\":4,"
                                     "\"sndbuf\":8192}}}",
                          rest[] = "{\"spec\":{\"transport\":[\"file\",\"tcp\",\"shm-posix\"],\"transport_options\":{"
                                   "\"file_sync\":\"fsync\",\"congestion\":\"reno\",\"nodelay\":false,"
                                   "\"ring_bytes\":65536,\"huge_pages\":true}}}",
                          words[] = "{\"spec\":{\"transport\":[\"tcp\",\"shm-posix\"],\"copy_mode\":[\"one-copy\","
                                    "\"zero-copy\"],\"engine\":\"io_uring\",\"wait\":[\"spin\"],\"direction\":\"up\"}}";
        static const struct preset all[] = {{"queues", queues, sizeof(queues) - 1},
                                            {"rest", rest, sizeof(rest) - 1},
                                            {"words", words, sizeof(words) - 1}};
        for (size_t i = 0; i < ELEMENTS(all); i++)
                if (strcmp(name, all[i].name) == 0)
                        return &all[i];
        return NULL;
}

static char *member_text(const struct json *merged, const char *key) {
        const struct json *v = json_get(merged, key);
        return v ? json_print(v) : strdup("none");
}

static void options_without_a_meaning_are_dropped(void) {
        static const struct {
                const char *body, *chunk, *rate, *options;
        } rows[] = {
                {"{\"preset\":\"queues\"}", "true", "1000", "{\"pipe_size\":65536,\"msgq_depth\":4,\"sndbuf\":8192}"},
                {"{\"preset\":\"queues\",\"transport\":\"fifo\"}", "none", "1000", "{\"pipe_size\":65536}"},
                {"{\"preset\":\"queues\",\"transport\":\"msgq-posix\"}", "true", "1000", "{\"msgq_depth\":4}"},
                {"{\"preset\":\"queues\",\"transport\":\"shm-posix\"}", "none", "1000", "none"},
                {"{\"preset\":\"queues\",\"transport\":\"unix-stream\"}", "none", "1000", "{\"sndbuf\":8192}"},
                {"{\"preset\":\"queues\",\"workload\":\"syscall\"}", "none", "none", "none"},
                {"{\"preset\":\"queues\",\"transport\":\"tcp\",\"rate\":5,\"transport_options\":{\"nodelay\":true}}",
                 "none", "5", "{\"nodelay\":true}"},
                {"{\"preset\":\"rest\",\"transport\":\"pipe\"}", "none", "none", "none"},
                {"{\"preset\":\"rest\",\"transport\":\"tcp\"}", "none", "none",
                 "{\"nodelay\":false,\"congestion\":\"reno\"}"},
                {"{\"preset\":\"rest\",\"transport\":[\"file\",\"mmap-file\"]}", "none", "none",
                 "{\"ring_bytes\":65536,\"file_sync\":\"fsync\"}"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct spec *s = NULL;
                struct refusal r = {0};
                struct json *merged = NULL;
                if (spec_parse(rows[i].body, strlen(rows[i].body), &s, &r) < 0)
                        CHECK_FAIL("row %zu is refused at %s: %s", i, r.pointer, r.detail);
                CHECK_INT(json_parse(s->merged_json, strlen(s->merged_json), &merged, NULL), 0);
                _cleanup_free_ char *chunk = member_text(merged, "chunk"), *rate = member_text(merged, "rate"),
                                    *options = member_text(merged, "transport_options");
                json_free(merged);
                spec_free(s);
                if (strcmp(chunk, rows[i].chunk) != 0 || strcmp(rate, rows[i].rate) != 0 ||
                    strcmp(options, rows[i].options) != 0)
                        CHECK_FAIL("row %zu: chunk %s, rate %s, options %s", i, chunk, rate, options);
        }
}

/* Copy mode, engine, wait and direction of what a text comes to. */
static void check_fields(int (*parse)(const char *, size_t, struct spec **, struct refusal *), const char *body,
                         const char *expected) {
        struct spec *s = NULL;
        struct refusal r = {0};
        struct json *merged = NULL;
        if (parse(body, strlen(body), &s, &r) < 0)
                CHECK_FAIL("%s is refused at %s: %s", body, r.pointer, r.detail);
        _cleanup_free_ char *text = NULL; /* of a stored one the parser writes none again */
        CHECK_INT(spec_to_json(s, &text), 0);
        CHECK_INT(json_parse(text, strlen(text), &merged, NULL), 0);
        _cleanup_free_ char *copy = member_text(merged, "copy_mode"), *engine = member_text(merged, "engine"),
                            *wait = member_text(merged, "wait"), *direction = member_text(merged, "direction");
        char words[200];
        (void) snprintf(words, sizeof(words), "%s %s %s %s", copy, engine, wait, direction);
        json_free(merged);
        spec_free(s);
        CHECK_STRING(words, expected);
}

static void fields_without_a_meaning_are_dropped(void) {
        static const struct {
                const char *body, *words;
        } rows[] = {
                {"{\"preset\":\"words\"}", "[\"one-copy\",\"zero-copy\"] [\"io_uring\"] [\"spin\"] [\"up\"]"},
                {"{\"preset\":\"words\",\"transport\":\"shm-sysv\"}",
                 "[\"two-copy\"] [\"syscall\"] [\"spin\"] [\"down\"]"},
                {"{\"preset\":\"words\",\"transport\":\"pipe\"}",
                 "[\"one-copy\",\"zero-copy\"] [\"io_uring\"] [\"block\"] [\"down\"]"},
                {"{\"preset\":\"words\",\"workload\":\"pingpong\",\"transport\":\"tcp\"}",
                 "[\"one-copy\",\"zero-copy\"] [\"io_uring\"] [\"block\"] [\"down\"]"},
                {"{\"preset\":\"words\",\"transport\":\"file\"}",
                 "[\"two-copy\"] [\"io_uring\"] [\"block\"] [\"down\"]"},
                {"{\"preset\":\"words\",\"workload\":\"syscall\"}",
                 "[\"two-copy\"] [\"syscall\"] [\"block\"] [\"down\"]"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++)
                check_fields(spec_parse, rows[i].body, rows[i].words);
}

/* An experiment that an earlier version took stays one, whatever is refused since. */
static void what_is_stored_is_not_refused(void) {
        static const char stored[] = "{\"transport\":[\"msgq-sysv\"],\"copy_mode\":[\"zero-copy\",\"two-copy\"],"
                                     "\"engine\":[\"io_uring\"],\"wait\":[\"spin\"],\"direction\":[\"both\"]}",
                          unknown[] = "{\"colour\":\"red\"}", named[] = "{\"name\":\"\302\23331m\"}";
        struct spec *s = NULL;
        struct refusal r = {0};
        CHECK_INT(spec_parse(stored, sizeof(stored) - 1, &s, &r), -EINVAL);
        CHECK_STRING(r.pointer, "/copy_mode/0");
        check_fields(spec_parse_stored, stored, "[\"two-copy\"] [\"syscall\"] [\"block\"] [\"down\"]");
        CHECK_INT(spec_parse_stored(unknown, sizeof(unknown) - 1, &s, &r), -EINVAL);
        CHECK_INT(spec_parse(named, sizeof(named) - 1, &s, &r), -EINVAL);
        CHECK_INT(spec_parse_stored(named, sizeof(named) - 1, &s, &r), 0);
        spec_free(s);
}

static void what_is_posted_is_refused(void) {
        static const struct {
                const char *body, *pointer;
        } rows[] = {
                {"{\"preset\":\"queues\",\"transport\":\"pipe\",\"chunk\":true}", "/chunk"},
                {"{\"preset\":\"queues\",\"workload\":\"syscall\",\"rate\":5}", "/rate"},
                {"{\"preset\":\"queues\",\"transport_options\":{\"ring_bytes\":65536}}",
                 "/transport_options/ring_bytes"},
                {"{\"transport\":\"pipe\",\"chunk\":true}", "/chunk"},
                {"{\"transport\":\"pipe\",\"transport_options\":{\"sndbuf\":8192}}", "/transport_options/sndbuf"},
                {"{\"preset\":\"words\",\"transport\":\"msgq-sysv\",\"wait\":[\"block\",\"spin\"]}", "/wait/1"},
                {"{\"preset\":\"words\",\"workload\":\"pingpong\",\"direction\":\"up\"}", "/direction"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct spec *s = NULL;
                struct refusal r = {0};
                CHECK_INT(spec_parse(rows[i].body, strlen(rows[i].body), &s, &r), -EINVAL);
                CHECK_INT(r.status, 422);
                CHECK_STRING(r.code, "wrong-combination");
                CHECK_STRING(r.pointer, rows[i].pointer);
        }
}

int main(void) {
        RUN(options_without_a_meaning_are_dropped);
        RUN(fields_without_a_meaning_are_dropped);
        RUN(what_is_stored_is_not_refused);
        RUN(what_is_posted_is_refused);
        return check_end();
}
