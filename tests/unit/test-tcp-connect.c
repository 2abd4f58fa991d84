/* SPDX-License-Identifier: MIT */

/* The reported options of sockets are those of all connections: where they differ, the reason is given. */

#include "agent/transport/tcp/tcp.h"
#include "check.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/unit/effective.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#define CONNECTIONS 3u

static int fds[CONNECTIONS];

static void open_all(void) {
        for (uint32_t i = 0; i < CONNECTIONS; i++) {
                fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (fds[i] < 0)
                        abort();
        }
}

static void close_all(void) {
        for (uint32_t i = 0; i < CONNECTIONS; i++)
                fds[i] = util_close(fds[i]);
}

/* Member `key` of the report on these connections, as it is printed; NULL: there is none. */
static char *reported(const char *key) {
        struct worker *workers = aligned_alloc(WORKER_LINE, CONNECTIONS * sizeof *workers);
        struct agent a = {.workers = workers, .n_workers = CONNECTIONS};
        _cleanup_free_ char *text = NULL;
        EFFECTIVE *e = effective_new();
        struct json *root = NULL;
        if (!workers)
                abort();
        memset(workers, 0, CONNECTIONS * sizeof *workers);
        for (uint32_t i = 0; i < CONNECTIONS; i++)
                workers[i].send_fd = fds[i];
        tcp_sockets_effective(&a, e);
        if (!(text = effective_text(e)) || json_parse(text, strlen(text), &root, NULL) < 0)
                abort();
        char *value = json_get(root, key) ? json_print(json_get(root, key)) : NULL;
        json_free(root);
        free(workers);
        return value;
}

static bool reports(const char *key, const char *expected) {
        _cleanup_free_ char *value = reported(key);
        bool same = expected ? value && strcmp(value, expected) == 0 : !value;
        if (!same)
                fprintf(stderr, "%s is %s, expected %s\n", key, value ? value : "not there",
                        expected ? expected : "none");
        return same;
}

static void test_nodelay(void) {
        static const int on = 1;
        open_all();
        CHECK(reports("nodelay", "false"));
        CHECK_INT(setsockopt(fds[CONNECTIONS - 1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
        CHECK(reports("nodelay", "null"));
        CHECK(reports("nodelay_reason", "\"the connections differ in it\""));
        for (uint32_t i = 0; i < CONNECTIONS; i++)
                CHECK_INT(setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
        CHECK(reports("nodelay", "true"));
        CHECK(reports("nodelay_reason", NULL));
        close_all();
}

/* Reno is in every kernel, and mostly not the default. */
static void test_congestion(void) {
        char name[64] = "";
        socklen_t length = sizeof name - 1;
        open_all();
        CHECK_INT(getsockopt(fds[0], IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
        if (strcmp(name, "reno") == 0) {
                close_all();
                SKIP("reno is the only algorithm that is sure to be here");
        }
        CHECK_INT(setsockopt(fds[CONNECTIONS - 1], IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
        CHECK(reports("congestion", "null"));
        CHECK(reports("congestion_reason", "\"the connections differ in it\""));
        for (uint32_t i = 0; i < CONNECTIONS; i++)
                CHECK_INT(setsockopt(fds[i], IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
        CHECK(reports("congestion", "\"reno\""));
        CHECK(reports("congestion_reason", NULL));
        close_all();
}

static void test_nothing_was_sent_again(void) {
        open_all();
        CHECK(reports("retransmits", "0"));
        CHECK(reports("spurious_retransmits", "0"));
        CHECK(reports("retransmission_timeouts", "0") ||
              reports("retransmission_timeouts_reason", "\"only Linux 6.7 and later count them\""));
        close_all();
}

/* One that cannot be read is enough for nothing to be known of all. */
static void test_unknown(void) {
        open_all();
        fds[1] = util_close(fds[1]);
        CHECK(reports("nodelay", "null"));
        CHECK(reports("nodelay_reason", "\"Bad file descriptor\""));
        CHECK(reports("congestion_reason", "\"Bad file descriptor\""));
        CHECK(reports("sndbuf_bytes_reason", "\"Bad file descriptor\""));
        CHECK(reports("retransmits_reason", "\"Bad file descriptor\""));
        CHECK(reports("retransmission_timeouts_reason", "\"Bad file descriptor\""));
        close_all();
}

int main(void) {
        RUN(test_nodelay);
        RUN(test_congestion);
        RUN(test_nothing_was_sent_again);
        RUN(test_unknown);
        return check_end();
}
