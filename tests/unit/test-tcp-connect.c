/* SPDX-License-Identifier: MIT */

/* What sockets tell of themselves is told of all connections: where they differ, that is said. */

#include "agent/transport/tcp/tcp.h"
#include "check.h"
#include "schema/json/json.h"
#include "schema/util.h"

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

/* Member `key` of what is told of these connections, as it is printed; NULL: there is none. */
static char *told(const char *key) {
        struct worker *workers = aligned_alloc(WORKER_LINE, CONNECTIONS * sizeof *workers);
        struct agent a = {.workers = workers, .n_workers = CONNECTIONS};
        _cleanup_free_ char *text = NULL;
        struct json_writer w;
        struct json *root = NULL;
        if (!workers)
                abort();
        memset(workers, 0, CONNECTIONS * sizeof *workers);
        for (uint32_t i = 0; i < CONNECTIONS; i++)
                workers[i].send_fd = fds[i];
        json_writer_init(&w);
        json_object_begin(&w);
        tcp_sockets_effective(&a, &w);
        json_object_end(&w);
        if (json_writer_steal(&w, &text, NULL) < 0 || json_parse(text, strlen(text), &root, NULL) < 0)
                abort();
        json_writer_deinit(&w);
        char *value = json_get(root, key) ? json_print(json_get(root, key)) : NULL;
        json_free(root);
        free(workers);
        return value;
}

static bool tells(const char *key, const char *expected) {
        _cleanup_free_ char *value = told(key);
        bool same = expected ? value && strcmp(value, expected) == 0 : !value;
        if (!same)
                fprintf(stderr, "%s is %s, expected %s\n", key, value ? value : "not there",
                        expected ? expected : "none");
        return same;
}

static void test_nodelay(void) {
        static const int on = 1;
        open_all();
        CHECK(tells("nodelay", "false"));
        CHECK_INT(setsockopt(fds[CONNECTIONS - 1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
        CHECK(tells("nodelay", "null"));
        CHECK(tells("nodelay_reason", "\"the connections differ in it\""));
        for (uint32_t i = 0; i < CONNECTIONS; i++)
                CHECK_INT(setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
        CHECK(tells("nodelay", "true"));
        CHECK(tells("nodelay_reason", NULL));
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
        CHECK(tells("congestion", "null"));
        CHECK(tells("congestion_reason", "\"the connections differ in it\""));
        for (uint32_t i = 0; i < CONNECTIONS; i++)
                CHECK_INT(setsockopt(fds[i], IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
        CHECK(tells("congestion", "\"reno\""));
        CHECK(tells("congestion_reason", NULL));
        close_all();
}

/* One that cannot be asked is enough for nothing to be known of all. */
static void test_unknown(void) {
        open_all();
        fds[1] = util_close(fds[1]);
        CHECK(tells("nodelay", "null"));
        CHECK(tells("nodelay_reason", "\"Bad file descriptor\""));
        CHECK(tells("congestion_reason", "\"Bad file descriptor\""));
        CHECK(tells("sndbuf_bytes_reason", "\"Bad file descriptor\""));
        CHECK(tells("retransmits_reason", "\"Bad file descriptor\""));
        close_all();
}

int main(void) {
        RUN(test_nodelay);
        RUN(test_congestion);
        RUN(test_unknown);
        return check_end();
}
