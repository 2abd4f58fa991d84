/* SPDX-License-Identifier: MIT */

/*
 * Messages from the buffers of a multishot receive: each whole and in order wherever its parts lie, also when the
 * kernel runs out of buffers again and again; what a stream's end means; and the report when a thread has to do
 * without.
 */

#include "agent/base/agent.h"
#include "agent/transport/tcp/multishot.h"
#include "agent/transport/tcp/tcp.h"
#include "agent/transport/transport.h"
#include "check.h"
#include "tests/unit/effective.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKET_BYTES (8 * SPEC_MULTISHOT_BUFFERS * SPEC_MULTISHOT_BUFFER_BYTES)

static struct agent agent = {.peer_role = "server"};

/* What is written into the other end. */
struct writer {
        int fd;
        size_t size;
        uint64_t number; /* of the message under way */
        size_t sent;     /* of it */
        unsigned char message[SPEC_MULTISHOT_MESSAGE_MAX];
};

static struct worker *worker_new(size_t size, struct writer *s) {
        int fds[2], bytes = SOCKET_BYTES;
        struct worker *w = aligned_alloc(WORKER_LINE, sizeof *w);
        if (!w || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                abort();
        if (setsockopt(fds[1], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) < 0)
                (void) setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes); /* as far as wmem_max */
        memset(w, 0, sizeof *w);
        w->agent = &agent;
        w->size = size;
        w->limit = WORKER_UNLIMITED;
        w->receive_fd = fds[0];
        w->buffer = malloc(size);
        memset(s, 0, sizeof *s);
        s->fd = fds[1];
        s->size = size;
        return w;
}

static void worker_free(struct worker *w, struct writer *s) {
        (void) close(w->receive_fd);
        if (s->fd >= 0)
                (void) close(s->fd);
        free(w->buffer);
        free(w);
}

/* NULL: the kernel has none. */
static struct tcp_multishot *multishot_new(struct worker *w) {
        struct tcp_multishot *u = NULL;
        const char *reason = NULL;
        if (tcp_multishot_new(w, &u, &reason) < 0 || (!u && !reason))
                abort();
        return u;
}

/* Adds as much as there is room for. */
static void write_all(struct writer *s) {
        for (;;) {
                if (s->sent == 0)
                        pattern_fill(s->message, s->size, pattern_key(0, 0, s->number));
                ssize_t n = send(s->fd, s->message + s->sent, s->size - s->sent, MSG_DONTWAIT);
                if (n < 0)
                        return;
                s->sent += (size_t) n;
                if (s->sent == s->size) {
                        s->sent = 0;
                        s->number++;
                }
        }
}

static void test_every_message_is_whole(void) {
        static const size_t sizes[] = {1, 7, 64, 1009, 4095, 4096};
        for (size_t i = 0; i < ELEMENTS(sizes); i++) {
                struct writer s;
                struct worker *w = worker_new(sizes[i], &s);
                struct tcp_multishot *u = multishot_new(w);
                uint64_t received = 0, wrong = 0;
                if (!u) {
                        worker_free(w, &s);
                        SKIP("this kernel has no multishot receive");
                }
                for (unsigned round = 0; round < 20; round++)
                        for (write_all(&s); received < s.number; received++) {
                                unsigned char *message = NULL;
                                CHECK_INT(tcp_multishot_receive(w, u, &message), 0);
                                wrong += !message || !pattern_matches(message, w->size, pattern_key(0, 0, received));
                        }
                CHECK_UINT(wrong, 0);
                CHECK(received > 20);
                CHECK(sizes[i] < 64 || u->dry > 0); /* bytes one by one do not fill the buffers */
                CHECK((w->partial_receives > 0) == (sizes[i] > 1 && (sizes[i] & (sizes[i] - 1)) != 0));
                (void) tcp_multishot_free(u);
                worker_free(w, &s);
        }
}

static void test_end_of_stream(void) {
        static const struct {
                size_t bytes;
                const char *words;
        } cases[] = {{1000, "peer server closed the channel of thread 0 after 0 of 1000 bytes of message 0"},
                     {1500, "peer server closed the channel of thread 0 after 500 of 1000 bytes of message 0"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct writer s;
                struct worker *w = worker_new(1000, &s);
                struct tcp_multishot *u = multishot_new(w);
                unsigned char bytes[1500] = {0}, *message = NULL;
                if (!u) {
                        worker_free(w, &s);
                        SKIP("this kernel has no multishot receive");
                }
                CHECK_INT(send(s.fd, bytes, cases[i].bytes, 0), (ssize_t) cases[i].bytes);
                (void) close(s.fd);
                s.fd = -1;
                CHECK_INT(tcp_multishot_receive(w, u, &message), 0);
                CHECK_INT(tcp_multishot_receive(w, u, &message), -EPIPE);
                CHECK_STRING(w->failure.detail, cases[i].words);
                (void) tcp_multishot_free(u);
                worker_free(w, &s);
        }
}

static struct worker workers[3];
static struct tcp_channel channels[ELEMENTS(workers)];
static struct tcp tcp = {.listener = -1};
static struct agent receiver = {.end = END_SECOND,
                                .setup.point = {.workload = WORKLOAD_STREAM,
                                                .transport = TRANSPORT_TCP,
                                                .engine = ENGINE_IO_URING,
                                                .message_size = 64,
                                                .threads = ELEMENTS(workers)},
                                .transport_data = &tcp,
                                .workers = workers,
                                .n_workers = ELEMENTS(workers)};

/* The report of receiving threads, some of which have one. NULL when it cannot be made. */
static char *reported(const bool has[ELEMENTS(workers)]) {
        static const char *const reasons[ELEMENTS(workers)] = {"the first", "the second", "the third"};
        static struct tcp_multishot multishot;
        EFFECTIVE *e = effective_new();
        for (size_t i = 0; i < ELEMENTS(workers); i++) {
                channels[i].multishot = has[i] ? &multishot : NULL;
                channels[i].no_multishot = has[i] ? NULL : reasons[i];
                workers[i].agent = &receiver;
                workers[i].send_fd = workers[i].receive_fd = -1;
                workers[i].channel = &channels[i];
        }
        transport_find(TRANSPORT_TCP, ENGINE_IO_URING)->effective(&receiver, e);
        return effective_text(e);
}

/* What only some threads have, none has. */
static void test_all_threads_or_none(void) {
        static const struct {
                bool has[ELEMENTS(workers)];
                const char *reason; /* NULL: all have */
        } cases[] = {{{true, true, true}, NULL},          {{false, true, true}, "the first"},
                     {{true, false, true}, "the second"}, {{true, false, false}, "the second"},
                     {{true, true, false}, "the third"},  {{false, false, false}, "the first"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char method[96], reason[64];
                _cleanup_free_ char *text = reported(cases[i].has);
                (void) snprintf(method, sizeof method, "\"receive_method\":\"%s\"",
                                cases[i].reason ? "recv MSG_WAITALL" : "recv multishot");
                (void) snprintf(reason, sizeof reason, "\"receive_method_reason\":\"%s\"",
                                cases[i].reason ? cases[i].reason : "");
                if (!text || !strstr(text, method) || !strstr(text, cases[i].reason ? reason : method) ||
                    (strstr(text, "receive_method_reason") != NULL) != (cases[i].reason != NULL) ||
                    (strstr(text, "receive_buffers") != NULL) != (cases[i].reason == NULL))
                        CHECK_FAIL("case %zu: %s", i, text ? text : "no report");
        }
}

int main(void) {
        RUN(test_every_message_is_whole);
        RUN(test_end_of_stream);
        RUN(test_all_threads_or_none);
        return check_end();
}
