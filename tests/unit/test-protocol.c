/* SPDX-License-Identifier: MIT */

/* Messages survive the way there and back, what is not one is refused with a sentence, and the socket's two verbs keep
 * their deadlines. */

#include "schema/protocol/protocol.h"

#include "check.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <sys/socket.h>

static struct message setup_message(void) {
        struct message m = {
                .type = MESSAGE_SETUP,
                .setup = {.end = END_SECOND,
                          .point = {.workload = WORKLOAD_PINGPONG,
                                    .transport = TRANSPORT_FIFO,
                                    .message_size = SPEC_MESSAGE_SIZE_MAX,
                                    .threads = 3},
                          .verify = VERIFY_CHECKSUM,
                          .messages = UINT64_MAX,
                          .messages_over = 2,
                          .warmup_ns = 1,
                          .interval_ns = 1000000000,
                          .stall_ns = 2000000000,
                          .rate = 0.1,
                          .chunk_bytes = UINT64_MAX - 1,
                          .options = {.pipe_size = 65536,
                                      .msgq_depth = 10,
                                      .ring_bytes = 1 << 20,
                                      .sndbuf = 1 << 20,
                                      .rcvbuf = 4096,
                                      .busy_poll = 50,
                                      .nodelay = TOGGLE_OFF,
                                      .huge_pages = TOGGLE_ON,
                                      .file_sync = FILE_SYNC_DIRECT,
                                      .congestion = "bbr_2-x"},
                          .placement = {.roam = true, .memory = MEMORY_INTERLEAVE, .buffer = MEMORY_BIND}},
        };
        struct agent_placement *p = &m.setup.placement;
        p->cpus = calloc(2, sizeof(*p->cpus));
        p->leader_cpus = calloc(1, sizeof(*p->leader_cpus));
        if (!p->cpus || !p->leader_cpus)
                abort();
        p->cpus[0] = 8191;
        p->n_cpus = 2;
        p->leader_cpus[0] = 7;
        p->n_leader_cpus = 1;
        node_set_add(&p->memory_nodes, 0);
        node_set_add(&p->memory_nodes, 1023);
        node_set_add(&p->buffer_nodes, 5);
        return m;
}

static struct message sample_message(void) {
        struct message m = {
                .type = MESSAGE_SAMPLE,
                .sample = {.thread = 1023,
                           .second = UINT32_MAX,
                           .interval_ns = 1000012345,
                           .messages = UINT64_MAX,
                           .bytes = UINT64_MAX - 1},
        };
        m.sample.counters = strdup("{\"partial_reads\":3,\"x\":null}");
        m.sample.latency = calloc(1, sizeof(*m.sample.latency));
        if (!m.sample.counters || !m.sample.latency)
                abort();
        for (uint64_t v = 1; v < 100000000; v = v * 3 / 2 + 1)
                histogram_record(m.sample.latency, v);
        return m;
}

static int round_trip(const struct message *m, struct message *ret) {
        _cleanup_free_ char *text = NULL;
        size_t length;
        char detail[200] = "";
        int r = message_encode(m, &text, &length);
        if (r == 0)
                r = message_decode(text, length, ret, detail);
        if (r < 0)
                fprintf(stderr, "%s: %s\n", text ? text : "(not encoded)", detail);
        return r;
}

static void setup_travels(void) {
        struct message m = setup_message(), got;
        CHECK_INT(round_trip(&m, &got), 0);
        const struct message_setup *a = &m.setup, *b = &got.setup;
        CHECK_INT(got.type, MESSAGE_SETUP);
        CHECK(a->end == b->end && a->verify == b->verify && a->duration_ns == b->duration_ns);
        CHECK(a->messages == b->messages && a->messages_over == b->messages_over);
        CHECK(a->warmup_ns == b->warmup_ns && a->interval_ns == b->interval_ns);
        CHECK(a->stall_ns == b->stall_ns && a->rate == b->rate && a->chunk_bytes == b->chunk_bytes);
        CHECK(memcmp(&a->options, &b->options, sizeof(a->options)) == 0);
        CHECK(a->point.workload == b->point.workload && a->point.transport == b->point.transport);
        CHECK(a->point.message_size == b->point.message_size && a->point.threads == b->point.threads);
        CHECK_UINT(b->placement.n_cpus, 2);
        CHECK_INT(b->placement.cpus[0], 8191);
        CHECK_INT(b->placement.cpus[1], 0);
        CHECK_UINT(b->placement.n_leader_cpus, 1);
        CHECK_INT(b->placement.leader_cpus[0], 7);
        CHECK_INT(b->placement.memory, MEMORY_INTERLEAVE);
        CHECK(memcmp(&a->placement.memory_nodes, &b->placement.memory_nodes, sizeof(struct node_set)) == 0);
        CHECK(b->placement.roam);
        CHECK_INT(b->placement.buffer, MEMORY_BIND);
        CHECK(memcmp(&a->placement.buffer_nodes, &b->placement.buffer_nodes, sizeof(struct node_set)) == 0);
        message_deinit(&m);
        message_deinit(&got);
        message_deinit(&got); /* twice is harmless */
}

static void sample_travels(void) {
        struct message m = sample_message(), got;
        CHECK_INT(round_trip(&m, &got), 0);
        CHECK_INT(got.type, MESSAGE_SAMPLE);
        CHECK_UINT(got.sample.thread, 1023);
        CHECK_UINT(got.sample.second, UINT32_MAX);
        CHECK_UINT(got.sample.interval_ns, 1000012345);
        CHECK_UINT(got.sample.messages, UINT64_MAX);
        CHECK_UINT(got.sample.bytes, UINT64_MAX - 1);
        CHECK_STRING(got.sample.counters, m.sample.counters);
        CHECK(memcmp(got.sample.latency, m.sample.latency, sizeof(*m.sample.latency)) == 0); /* the sum too */
        message_deinit(&m);
        message_deinit(&got);

        struct message bare = {.type = MESSAGE_SAMPLE};
        CHECK_INT(round_trip(&bare, &got), 0);
        CHECK(!got.sample.counters && !got.sample.latency);
        message_deinit(&got);
}

static void small_ones_travel(void) {
        static char proof[] = "{\"affinity\":[0]}", effective[] = "{\"pipe_size\":65536}", counters[] = "{}";
        struct message got, hello = {.type = MESSAGE_HELLO, .hello = {.pid = 4711}};
        CHECK_INT(round_trip(&hello, &got), 0);
        CHECK_INT(got.hello.pid, 4711);
        struct message ready = {.type = MESSAGE_READY, .ready = {.proof = proof, .effective = effective}};
        CHECK_INT(round_trip(&ready, &got), 0);
        CHECK_STRING(got.ready.proof, proof);
        CHECK_STRING(got.ready.effective, effective);
        message_deinit(&got);
        struct message count = {.type = MESSAGE_COUNT, .count = {.tid = INT32_MAX}};
        CHECK_INT(round_trip(&count, &got), 0);
        CHECK_INT(got.count.tid, INT32_MAX);
        struct message counting = {.type = MESSAGE_COUNTING};
        counting.counting.errors[PERF_CYCLES][PERF_KERNEL] = EACCES;
        counting.counting.errors[PERF_BRANCH_MISSES][PERF_KERNEL] = 4095;
        CHECK_INT(round_trip(&counting, &got), 0);
        CHECK(memcmp(&got.counting, &counting.counting, sizeof(got.counting)) == 0);
        struct message start = {.type = MESSAGE_START, .start = {.start_ns = UINT64_MAX}};
        CHECK_INT(round_trip(&start, &got), 0);
        CHECK_UINT(got.start.start_ns, UINT64_MAX);
        struct message alive = {.type = MESSAGE_ALIVE, .alive = {.phase = "draining"}};
        CHECK_INT(round_trip(&alive, &got), 0);
        CHECK_STRING(got.alive.phase, "draining");
        struct message thread = {
                .type = MESSAGE_THREAD,
                .thread = {.thread = 1023, .messages = UINT64_MAX, .bytes = UINT64_MAX - 1, .counters = counters}};
        CHECK_INT(round_trip(&thread, &got), 0);
        CHECK(got.thread.thread == 1023 && got.thread.messages == UINT64_MAX && got.thread.bytes == UINT64_MAX - 1);
        CHECK_STRING(got.thread.counters, counters);
        message_deinit(&got);
        struct message report = {.type = MESSAGE_REPORT,
                                 .report = {.window_ns = 1,
                                            .messages = 2,
                                            .bytes = 3,
                                            .proof = proof,
                                            .effective = effective,
                                            .counters = counters}};
        CHECK_INT(round_trip(&report, &got), 0);
        CHECK(got.report.window_ns == 1 && got.report.messages == 2 && got.report.bytes == 3);
        CHECK_STRING(got.report.counters, counters);
        message_deinit(&got);
        for (enum fault fault = FAULT_OWN; fault <= FAULT_PEER; fault++) {
                struct message error = {.type = MESSAGE_ERROR,
                                        .error = {.fault = fault, .error = ENOSPC, .detail = "\"full\"\n"}};
                CHECK_INT(round_trip(&error, &got), 0);
                CHECK_INT(got.error.fault, fault);
                CHECK_INT(got.error.error, ENOSPC);
                CHECK_STRING(got.error.detail, "\"full\"\n");
        }
}

#define SETUP(point, ends, rest)                                                                                       \
        "{\"v\":3,\"type\":\"setup\",\"end\":\"first\",\"point\":" point ",\"verify\":\"none\"," ends                  \
        ",\"warmup_ns\":\"0\",\"interval_ns\":\"0\",\"stall_ns\":\"0\"" rest "}"
#define POINT                                                                                                          \
        "{\"workload\":\"stream\",\"transport\":\"pipe\",\"message_size\":1,\"threads\":1,"                            \
        "\"copy_mode\":\"two-copy\",\"engine\":\"syscall\"}"
#define NONE_OVER ",\"messages_over\":\"0\""
#define ENDS "\"duration_ns\":\"1\",\"messages\":\"0\"" NONE_OVER
#define PLACED(cpus, leader_cpus, memory, nodes)                                                                       \
        ",\"placement\":{\"cpus\":" cpus ",\"roam\":false,\"leader_cpus\":" leader_cpus ",\"memory\":\"" memory        \
        "\",\"memory_nodes\":" nodes ",\"buffer\":\"default\",\"buffer_nodes\":[]}"
#define PLACEMENT PLACED("[]", "[]", "default", "[]")
#define OPTIONS(options) ",\"rate\":0,\"chunk_bytes\":\"0\",\"options\":" options
#define REST OPTIONS("{}") PLACEMENT
#define SAMPLE(second, latency)                                                                                        \
        "{\"v\":3,\"type\":\"sample\",\"thread\":0,\"second\":" second ",\"interval_ns\":\"1\",\"messages\":\"1\","    \
        "\"bytes\":\"1\",\"counters\":null,\"latency\":" latency "}"

static const char *const bad[][2] = {
        {"", "not JSON"},
        {"[]", "an object"},
        {"{}", "\"v\" is missing"},
        {"{\"v\":3}", "\"type\" is missing"},
        {"{\"v\":99,\"type\":\"hello\",\"pid\":1}", "protocol version 99"},
        {"{\"v\":\"1\",\"type\":\"hello\",\"pid\":1}", "\"v\" is not an integer"},
        {"{\"v\":3,\"type\":\"hullo\",\"pid\":1}", "unknown message type"},
        {"{\"v\":3,\"type\":7,\"pid\":1}", "not a string"},
        {"{\"v\":3,\"type\":\"hello\"}", "\"pid\" is missing"},
        {"{\"v\":3,\"type\":\"hello\",\"pid\":0}", "\"pid\" is not 1"},
        {"{\"v\":3,\"type\":\"hello\",\"pid\":\"1\"}", "\"pid\" is not an integer"},
        {"{\"v\":3,\"type\":\"hello\",\"pid\":1,\"more\":2}", "members that it should not have"},
        {"{\"v\":3,\"type\":\"hello\",\"pid\":1,\"pid\":2}", "twice"},
        {"{\"v\":3,\"type\":\"count\",\"tid\":0}", "\"tid\" is not 1"},
        {"{\"v\":3,\"type\":\"count\",\"tid\":1,\"config\":0}", "members that it should not have"},
        {"{\"v\":3,\"type\":\"counting\",\"errors\":0}", "\"errors\" is not a list"},
        {"{\"v\":3,\"type\":\"counting\",\"errors\":[0,0]}", "has 2 entries, 12 are due"},
        {"{\"v\":3,\"type\":\"counting\",\"errors\":[0,0,0,0,0,0,0,0,0,0,0,4096]}", "not 0"},
        {"{\"v\":3,\"type\":\"counting\",\"errors\":[-1,0,0,0,0,0,0,0,0,0,0,0]}", "not 0"},
        {"{\"v\":3,\"type\":\"start\",\"start_ns\":5}", "decimal string"},
        {"{\"v\":3,\"type\":\"start\",\"start_ns\":\"18446744073709551616\"}", "decimal string"},
        {"{\"v\":3,\"type\":\"alive\",\"phase\":\"asleep\"}", "phase"},
        {"{\"v\":3,\"type\":\"ready\",\"proof\":null,\"effective\":{}}", "\"proof\" is not an object"},
        {"{\"v\":3,\"type\":\"ready\",\"proof\":{},\"effective\":[]}", "\"effective\" is not an object"},
        {"{\"v\":2,\"type\":\"error\",\"error\":1,\"detail\":\"\"}", "protocol version 2, this side speaks 3"},
        {"{\"v\":3,\"type\":\"error\",\"fault\":\"own\",\"error\":-1,\"detail\":\"\"}", "\"error\" is not 0"},
        {"{\"v\":3,\"type\":\"error\",\"error\":1,\"detail\":\"\"}", "\"fault\" is missing"},
        {"{\"v\":3,\"type\":\"error\",\"fault\":null,\"error\":1,\"detail\":\"\"}", "\"fault\" is not a string"},
        {"{\"v\":3,\"type\":\"error\",\"fault\":\"\",\"error\":1,\"detail\":\"\"}", "neither own nor peer"},
        {"{\"v\":3,\"type\":\"error\",\"fault\":\"peers\",\"error\":1,\"detail\":\"\"}", "neither own nor peer"},
        {"{\"v\":3,\"type\":\"report\",\"window_ns\":\"1\",\"messages\":\"1\",\"bytes\":\"1\",\"proof\":{},"
         "\"effective\":{},\"counters\":null}",
         "\"counters\" is not an object"},
        {SETUP("{}", ENDS, REST), "\"point\" is not a point"},
        {SETUP(POINT, "\"duration_ns\":\"0\",\"messages\":\"0\"" NONE_OVER, REST), "exactly one"},
        {SETUP(POINT, "\"duration_ns\":\"1\",\"messages\":\"1\"" NONE_OVER, REST), "exactly one"},
        {SETUP(POINT, "\"duration_ns\":\"0\",\"messages\":\"7\",\"messages_over\":\"1\"", REST),
         "\"messages_over\" is not of some of the threads"},
        {SETUP(POINT, ENDS, ",\"rate\":-1,\"chunk_bytes\":\"0\",\"options\":{}" PLACEMENT), "\"rate\""},
        {SETUP(POINT, ENDS, ",\"rate\":0,\"options\":{}" PLACEMENT), "\"chunk_bytes\" is missing"},
        {SETUP(POINT, ENDS, OPTIONS("[]") PLACEMENT), "\"options\" is not an object"},
        {SETUP(POINT, ENDS, OPTIONS("{\"pipe_size\":\"0\"}") PLACEMENT), "/options/pipe_size"},
        {SETUP(POINT, ENDS, OPTIONS("{\"pipe_size\":1}") PLACEMENT), "not 1"},
        {SETUP(POINT, ENDS, OPTIONS("{\"congestion\":\"../x\"}") PLACEMENT), "/options/congestion"},
        {SETUP(POINT, ENDS, OPTIONS("{\"x\":1}") PLACEMENT), "no field \"x\""},
        {SETUP(POINT, ENDS, OPTIONS("{}") PLACED("[-1]", "[]", "default", "[]")), "no CPU"},
        {SETUP(POINT, ENDS, OPTIONS("{}") PLACED("[1]", "[2,8192]", "default", "[]")), "no CPU"},
        {SETUP(POINT, ENDS, OPTIONS("{}") PLACED("[1]", "[]", "near", "[]")), "memory policy"},
        {SETUP(POINT, ENDS, OPTIONS("{}") PLACED("[1]", "[]", "bind", "[1,1]")), "no node, or has it twice"},
        {SAMPLE("-1", "null"), "\"second\" is not"},
        {SAMPLE("0", "[]"), "\"latency\" is not an object"},
        {SAMPLE("0", "{\"v2\":\"AAAA\",\"sum_ns\":\"0\"}"), "not a histogram"},
        {SAMPLE("0", "{\"v2\":\"?\",\"sum_ns\":\"0\"}"), "not a histogram"},
        {SAMPLE("0", "{\"v2\":\"\"}"), "\"sum_ns\" is missing"},
};

static void bad_packets(void) {
        struct message got;
        char detail[200];
        CHECK_INT(message_decode(SETUP(POINT, ENDS, REST), strlen(SETUP(POINT, ENDS, REST)), &got, detail), 0);
        message_deinit(&got);
        CHECK_INT(message_decode(SAMPLE("0", "null"), strlen(SAMPLE("0", "null")), &got, NULL), 0);
        for (size_t i = 0; i < ELEMENTS(bad); i++) {
                int r = message_decode(bad[i][0], strlen(bad[i][0]), &got, detail);
                if (r != -EBADMSG || !strstr(detail, bad[i][1]))
                        CHECK_FAIL("%s: %d, %s", bad[i][0], r, r < 0 ? detail : "accepted");
                CHECK_INT(message_decode(bad[i][0], strlen(bad[i][0]), &got, NULL), -EBADMSG);
        }
}

static void too_large_to_send(void) {
        struct message m = {.type = MESSAGE_READY};
        char *text = NULL;
        size_t length;
        m.ready.effective = strdup("{}");
        m.ready.proof = malloc(PROTOCOL_PACKET_MAX + 1);
        CHECK(m.ready.proof && m.ready.effective);
        memset(m.ready.proof, ' ', PROTOCOL_PACKET_MAX);
        m.ready.proof[PROTOCOL_PACKET_MAX] = '\0';
        CHECK_INT(message_encode(&m, &text, &length), -EMSGSIZE);
        CHECK(!text);
        message_deinit(&m);
}

static void deadlines(void) {
        int fds[2];
        struct message m = {.type = MESSAGE_HELLO, .hello = {.pid = 1}}, got;
        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        CHECK_INT(message_receive(fds[0], &got, 0, NULL), -EAGAIN);
        uint64_t before = util_now_ns();
        CHECK_INT(message_receive(fds[0], &got, before + 20 * NSEC_PER_MSEC, NULL), -ETIMEDOUT);
        CHECK(util_now_ns() - before >= 20 * NSEC_PER_MSEC);
        CHECK_INT(message_receive(fds[0], &got, 1, NULL), -ETIMEDOUT); /* long past */

        CHECK_INT(message_send(fds[1], &m, 0), 0);
        CHECK_INT(message_receive(fds[0], &got, util_now_ns() + 60 * NSEC_PER_SEC, NULL), 0);
        CHECK_INT(got.hello.pid, 1);

        int r = 0; /* nobody reads: the socket fills */
        for (unsigned i = 0; i < 1000000 && r == 0; i++)
                r = message_send(fds[1], &m, 0);
        CHECK_INT(r, -EAGAIN);
        CHECK_INT(message_send(fds[1], &m, util_now_ns() + 5 * NSEC_PER_MSEC), -ETIMEDOUT);
        close(fds[0]);
        CHECK_INT(message_send(fds[1], &m, 0), -ECONNRESET);
        CHECK_INT(message_receive(fds[1], &got, util_now_ns() + 60 * NSEC_PER_SEC, NULL), -ECONNRESET);
        close(fds[1]);
}

/* The kernel tells of what was left unread ahead of what was said last; both are heard, and in the right order. */
static void the_last_words_of_one_who_did_not_listen(void) {
        struct message start = {.type = MESSAGE_START, .start = {.start_ns = 1}}, got;
        struct message error = {.type = MESSAGE_ERROR, .error = {.detail = "the disk is full"}};
        int fds[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        CHECK_INT(message_send(fds[0], &start, 0), 0);
        CHECK_INT(message_send(fds[1], &error, 0), 0);
        close(fds[1]);
        CHECK_INT(message_receive(fds[0], &got, 0, NULL), 0);
        CHECK_INT(got.type, MESSAGE_ERROR);
        CHECK_STRING(got.error.detail, "the disk is full");
        CHECK_INT(message_receive(fds[0], &got, 0, NULL), -ECONNRESET);
        CHECK_INT(message_receive(fds[0], &got, 0, NULL), -ECONNRESET);
        close(fds[0]);
}

static void foreign_packets(void) {
        static char large[PROTOCOL_PACKET_MAX + 1];
        int fds[2], size = 4 << 20;
        struct message got;
        char detail[200] = "";
        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        CHECK_INT(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
        CHECK_INT(send(fds[1], large, sizeof(large), 0), sizeof(large));
        CHECK_INT(message_receive(fds[0], &got, 0, detail), -EBADMSG);
        CHECK(strstr(detail, "131073 bytes"));
        CHECK_INT(send(fds[1], "x", 1, 0), 1);
        CHECK_INT(message_receive(fds[0], &got, 0, detail), -EBADMSG);
        close(fds[1]);
        CHECK_INT(message_receive(fds[0], &got, 0, NULL), -ECONNRESET);
        close(fds[0]);
}

/* The largest sample that can be: every bucket counted, in large numbers. */
static void a_full_histogram_fits_a_packet(void) {
        struct message m = sample_message(), got;
        for (uint32_t i = 0; i <= histogram_index(HISTOGRAM_HIGHEST_NS); i++)
                m.sample.latency->counts[i] = 500000 + i; /* three bytes each */
        CHECK_INT(round_trip(&m, &got), 0);
        CHECK(memcmp(got.sample.latency, m.sample.latency, sizeof(*m.sample.latency)) == 0);
        message_deinit(&m);
        message_deinit(&got);
}

int main(void) {
        RUN(setup_travels);
        RUN(sample_travels);
        RUN(small_ones_travel);
        RUN(bad_packets);
        RUN(too_large_to_send);
        RUN(deadlines);
        RUN(the_last_words_of_one_who_did_not_listen);
        RUN(foreign_packets);
        RUN(a_full_histogram_fits_a_packet);
        return check_end();
}
