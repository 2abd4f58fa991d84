/* SPDX-License-Identifier: MIT */

/* Messages survive the way there and back, what is not one is refused with a sentence, and the socket's two verbs keep
 * their deadlines. */

#include "schema/detail.h"
#include "schema/protocol/protocol.h"
#include "schema/spec/axes.h"

#include "check.h"
#include "schema/util.h"
#include "tests/unit/effective.h"
#include "tests/unit/proof-report.h"
#include "tests/unit/recorded.h"

#include <errno.h>
#include <math.h>
#include <sys/socket.h>

#define WIRE_HEADER 12u   /* magic, version, type, length */
#define WIRE_LENGTH_AT 8u /* the last of them */

static struct message setup_message(void) {
        struct message m = {
                .type = MESSAGE_SETUP,
                .setup = {.end = END_SECOND,
                          .point = {.workload = WORKLOAD_PINGPONG,
                                    .transport = TRANSPORT_FIFO,
                                    .message_size = SPEC_MESSAGE_SIZE_MAX,
                                    .threads = 3,
                                    .queue_depth = SPEC_QUEUE_DEPTH_MAX,
                                    .instance = SPEC_INSTANCES},
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
                                      .gather = TOGGLE_OFF,
                                      .file_sync = FILE_SYNC_DIRECT,
                                      .congestion = "bbr_2-x"},
                          .placement = {.roam = true, .memory = MEMORY_INTERLEAVE, .buffer = MEMORY_BIND},
                          .probes = true,
                          .stamp = true},
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

/* A count that is known and scaled, and all others not. */
static struct counters_totals some_counters(void) {
        struct counters_totals t = {.usage = {.partial_sends = 3,
                                              .ring_ns = USAGE_COUNT_MAX,
                                              .migrations_error = EACCES,
                                              .zerocopy = true,
                                              .parts_unseen = true},
                                    .perf = {.threads = 7}};
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        t.perf.counts[event][mode].error = -ENOENT;
        t.perf.counts[PERF_CYCLES][PERF_USER] =
                (struct perf_count){.known = true, .value = UINT64_MAX, .fraction = 0.5};
        return t;
}

static bool same_counters(const struct counters_totals *a, const struct counters_totals *b) {
        bool same = memcmp(&a->usage, &b->usage, offsetof(struct usage, migrations_error)) == 0 &&
                    a->usage.migrations_error == b->usage.migrations_error && a->usage.zerocopy == b->usage.zerocopy &&
                    a->usage.parts_unseen == b->usage.parts_unseen && a->perf.threads == b->perf.threads;
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++) {
                        const struct perf_count *x = &a->perf.counts[event][mode], *y = &b->perf.counts[event][mode];
                        same = same && x->known == y->known && x->value == y->value && x->fraction == y->fraction &&
                               x->error == y->error;
                }
        return same;
}

static struct message sample_message(void) {
        struct message m = {
                .type = MESSAGE_SAMPLE,
                .sample = {.thread = 1023,
                           .second = UINT32_MAX,
                           .begin_ns = UINT64_MAX - 2,
                           .interval_ns = 1000012345,
                           .messages = UINT64_MAX,
                           .bytes = UINT64_MAX - 1},
        };
        m.sample.counters = some_counters();
        m.sample.latency = calloc(1, sizeof(*m.sample.latency));
        if (!m.sample.latency)
                abort();
        for (uint64_t v = 1; v < 100000000; v = v * 3 / 2 + 1)
                histogram_record(m.sample.latency, v);
        return m;
}

static int round_trip(const struct message *m, struct message *ret) {
        _cleanup_free_ uint8_t *data = NULL;
        size_t length;
        char detail[DETAIL_MAX] = "";
        int r = message_encode(m, &data, &length);
        if (r == 0)
                r = message_decode(data, length, ret, detail);
        if (r < 0)
                fprintf(stderr, "%s: %s\n", message_type_name(m->type), detail);
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
        CHECK(a->probes == b->probes && a->stamp == b->stamp);
        CHECK(a->stall_ns == b->stall_ns && a->rate == b->rate && a->chunk_bytes == b->chunk_bytes);
        CHECK(memcmp(&a->options, &b->options, sizeof(a->options)) == 0);
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const struct axis *axis = &axes[i];
                if (i != AXIS_PLACEMENT) /* the agents have it resolved */
                        CHECK(axis->value.type->equal(&axis->value, axis_of(axis, &a->point),
                                                      axis_of(axis, &b->point)));
        }
        CHECK_UINT(b->placement.n_cpus, 2);
        CHECK_INT(b->placement.cpus[0], 8191);
        CHECK_INT(b->placement.cpus[1], 0);
        CHECK_UINT(b->placement.n_leader_cpus, 1);
        CHECK_INT(b->placement.leader_cpus[0], 7);
        CHECK_INT(b->placement.memory, MEMORY_INTERLEAVE);
        CHECK(memcmp(&a->placement.memory_nodes, &b->placement.memory_nodes, sizeof(struct node_set)) == 0);
        CHECK(b->placement.roam);
        CHECK_INT(b->placement.buffer, MEMORY_BIND);
        CHECK(b->probes);
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
        CHECK_UINT(got.sample.begin_ns, UINT64_MAX - 2);
        CHECK_UINT(got.sample.interval_ns, 1000012345);
        CHECK_UINT(got.sample.messages, UINT64_MAX);
        CHECK_UINT(got.sample.bytes, UINT64_MAX - 1);
        CHECK(same_counters(&got.sample.counters, &m.sample.counters));
        CHECK(memcmp(got.sample.latency, m.sample.latency, sizeof(*m.sample.latency)) == 0); /* the sum too */
        message_deinit(&m);
        message_deinit(&got);

        struct message bare = {.type = MESSAGE_SAMPLE};
        CHECK_INT(round_trip(&bare, &got), 0);
        CHECK(!got.sample.latency);
        message_deinit(&got);
}

/* One series with figures, one without. */
static struct message probe_message(void) {
        struct message m = {.type = MESSAGE_PROBE,
                            .probe = {.cpu = INT32_MAX,
                                      .thread = PROBE_OTHERS_MAX,
                                      .offset = {PROBE_SAME_CPU, INT64_MIN, 70},
                                      .moved = 1,
                                      .work_ns = UINT64_MAX,
                                      .cpu_ns = UINT64_MAX - 1,
                                      .cost_ns = UINT64_MAX - 2}};
        for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++) {
                struct probe_series *s = &m.probe.series[kind];
                s->absence = kind == PROBE_HAND_OVER ? PROBE_SAME_CPU : PROBE_TAKEN;
                for (size_t i = 0; s->absence == PROBE_TAKEN && i < PROBE_ROUNDS; i++)
                        s->round_ns[i] = PROBE_ROUND_MAX_NS - 100 * kind - i;
        }
        return m;
}

static void probe_travels(void) {
        struct message m = probe_message(), got;
        CHECK_INT(round_trip(&m, &got), 0);
        CHECK_INT(got.type, MESSAGE_PROBE);
        CHECK_UINT(got.probe.thread, PROBE_OTHERS_MAX);
        CHECK(got.probe.cpu == INT32_MAX && got.probe.moved == 1 && got.probe.work_ns == UINT64_MAX);
        CHECK(got.probe.offset.absence == PROBE_SAME_CPU && got.probe.offset.low_ns == INT64_MIN &&
              got.probe.offset.high_ns == 70);
        CHECK(got.probe.cpu_ns == UINT64_MAX - 1 && got.probe.cost_ns == UINT64_MAX - 2);
        for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++) {
                const struct probe_series *a = &m.probe.series[kind], *b = &got.probe.series[kind];
                CHECK_UINT(b->absence, a->absence);
                CHECK(memcmp(a->round_ns, b->round_ns, sizeof(a->round_ns)) == 0);
        }
}

static void parts_travel(void) {
        struct message m = {.type = MESSAGE_PARTS,
                            .parts = {.begin_ns = UINT64_MAX >> 1,
                                      .sent_again = {SENT_AGAIN_TIMEOUTS, 7, 8, USAGE_COUNT_MAX}}},
                       got;
        for (uint32_t i = 0; i < MESSAGE_PARTS_MAX; i++)
                m.parts.list[m.parts.n++] = (struct message_part){i + 1, UINT64_MAX - i, 1000 * i, i};
        CHECK_INT(round_trip(&m, &got), 0);
        CHECK_INT(got.type, MESSAGE_PARTS);
        CHECK(memcmp(&got.parts, &m.parts, sizeof(m.parts)) == 0);
        m.parts.list[3].stopped_ns = 5; /* of 4 ns */
        CHECK_INT(round_trip(&m, &got), -EBADMSG);
        m.parts.list[3].stopped_ns = 4;
        m.parts.n = 0;
        CHECK_INT(round_trip(&m, &got), -EBADMSG);
        /* one more than there is room for */
        uint8_t *data = NULL;
        size_t length;
        m.parts.n = MESSAGE_PARTS_MAX;
        CHECK_INT(message_encode(&m, &data, &length), 0);
        const size_t one = sizeof(m.parts.list[0]);
        uint8_t *more = realloc(data, length + one);
        CHECK(more);
        memset(more + length, 1, one);
        memcpy(more + WIRE_LENGTH_AT, &(uint32_t){(uint32_t) (length + one)}, sizeof(uint32_t));
        memcpy(more + WIRE_HEADER + 36, &(uint32_t){(uint32_t) (MESSAGE_PARTS_MAX + 1) * (uint32_t) one},
               sizeof(uint32_t));
        char detail[DETAIL_MAX] = "";
        CHECK_INT(message_decode(more, length + one, &got, detail), -EBADMSG);
        CHECK(strstr(detail, "parts has 672 bytes, which are not those of 1 "));
        free(more);
}

/* A row of each kind, and groups. */
static struct effective *some_settings(void) {
        struct effective *e = effective_new();
        if (!e)
                abort();
        effective_add_text(e, SETTING_SEND_METHOD, "sendmsg_zc");
        effective_add_reason(e, SETTING_SEND_METHOD, "why");
        effective_add_unknown(e, SETTING_PIPE_SIZE, "F_GETPIPE_SZ failed");
        effective_add_number(e, SETTING_RETRANSMITS, UINT64_MAX);
        effective_add_bool(e, SETTING_NODELAY, true);
        effective_add_real(e, SETTING_PIPE_OVERHEAD_NS, 250.5);
        effective_group(e, SETTING_IO_URING);
        effective_add_number(e, SETTING_QUEUE_DEPTH, 1);
        effective_add_bool(e, SETTING_REGISTERED_FILES, false);
        effective_add_reason(e, SETTING_REGISTERED_FILES, "\"no\"");
        effective_group(e, SETTING_COUNT);
        effective_add_number(e, SETTING_RECEIVE_BUFFERS, 0);
        effective_group(e, SETTING_IO_URING_ZERO_COPY);
        effective_add_number(e, SETTING_QUEUE_DEPTH, 2);
        return e;
}
static const char some_settings_text[] =
        "{\"send_method\":\"sendmsg_zc\",\"send_method_reason\":\"why\",\"pipe_size\":null,"
        "\"pipe_size_reason\":\"F_GETPIPE_SZ failed\",\"retransmits\":18446744073709551615,\"nodelay\":true,"
        "\"pipe_overhead_ns\":250.5,\"io_uring\":{\"queue_depth\":1,\"registered_files\":false,"
        "\"registered_files_reason\":\"\\\"no\\\"\"},\"receive_buffers\":0,\"io_uring_zero_copy\":{\"queue_depth\":2}}";

static const char some_proof_text[] =
        "{\"affinity\":[0,8191],\"leader\":{\"tid\":4712,\"affinity\":[1],\"cpu\":1},\"policy\":\"bind\","
        "\"policy_nodes\":[0,1023],\"threads\":[{\"thread\":0,\"tid\":4711,\"affinity\":[0],\"cpu\":0,\"node\":0,"
        "\"cpus_seen\":[0],\"migrations\":0},{\"thread\":1,\"tid\":4713,\"affinity\":[0],\"cpu\":0,\"node\":0,"
        "\"cpus_seen\":[0],\"migrations\":null}],\"threads_together\":[{\"threads\":[2,3],\"affinity\":[0,1],"
        "\"cpus\":[0,1],\"nodes\":[0],\"cpus_seen\":[0,1],\"migrations\":3}],\"threads_total\":4,"
        "\"pages_placed_together\":512,\"pages\":[{\"what\":\"buffer\",\"thread\":0,\"total\":18,"
        "\"nodes\":{\"0\":14,\"7\":1},\"absent\":3,\"absent_errors\":{\"unknown\":1,\"ENOENT\":2},\"nodes_seen\":[0,7],"
        "\"moved\":1},{\"what\":\"stack\",\"threads\":4,\"total\":9,\"nodes\":null}]}";
static const char whole_proof_text[] =
        "{\"affinity\":[0,8191],\"leader\":{\"tid\":4712,\"affinity\":[1],\"cpu\":1},\"policy\":\"bind\","
        "\"policy_nodes\":[0,1023],\"threads\":[{\"thread\":0,\"tid\":4711,\"affinity\":[0],\"cpu\":0,\"node\":0,"
        "\"cpus_seen\":[0],\"migrations\":0},{\"thread\":1,\"tid\":4713,\"affinity\":[0],\"cpu\":0,\"node\":0,"
        "\"cpus_seen\":[0],\"migrations\":null,\"migrations_reason\":\"/proc/PID/sched: No such file or directory\"}],"
        "\"threads_together\":[{\"threads\":[2,3],\"affinity\":[0,1],"
        "\"cpus\":[0,1],\"nodes\":[0],\"cpus_seen\":[0,1],\"migrations\":3}],\"threads_total\":4,"
        "\"pages_placed_together\":512,\"pages\":[{\"what\":\"buffer\",\"thread\":0,\"ranges\":3,\"total\":18,"
        "\"nodes\":{\"0\":14,\"7\":1},\"absent\":3,\"absent_errors\":{\"unknown\":1,\"ENOENT\":2},\"nodes_seen\":[0,7],"
        "\"moved\":1},{\"what\":\"stack\",\"threads\":4,\"total\":9,\"nodes\":null,"
        "\"reason\":\"the nodes of the pages cannot be read: Operation not permitted\"}],"
        "\"page_sizes\":[{\"what\":\"ring\",\"mappings\":2,\"bytes\":{\"4096\":8192,\"2097152\":4194304}}],"
        "\"page_cache\":null,\"page_cache_reason\":\"why\"}";

/* A row of each kind; what is not of the text, behind it. */
static struct proof_report *some_proof(void) {
        struct proof_report *p = proof_report_of(some_proof_text);
        p->of.pages[0].ranges = 3;
        struct proof_page_sizes *row = proof_report_add_sizes(p);
        if (!row)
                abort();
        *row = (struct proof_page_sizes){
                .kind = PAGES_RING, .mappings = 2, .n = 2, .sizes = {{4096, 8192}, {2097152, 4194304}}};
        (void) snprintf(p->no_page_cache, sizeof(p->no_page_cache), "why");
        return p;
}

static void small_ones_travel(void) {
        PROOF *proof = some_proof();
        _cleanup_free_ char *proof_text = proof_report_text(proof);
        EFFECTIVE *effective = some_settings();
        const struct counters_totals counters = some_counters();
        struct message got, hello = {.type = MESSAGE_HELLO, .hello = {.pid = 4711}};
        CHECK_INT(round_trip(&hello, &got), 0);
        CHECK_INT(got.hello.pid, 4711);
        struct message ready = {.type = MESSAGE_READY, .ready = {.proof = proof, .effective = effective}};
        CHECK_INT(round_trip(&ready, &got), 0);
        _cleanup_free_ char *got_proof = proof_report_text(got.ready.proof);
        CHECK_STRING(proof_text, whole_proof_text);
        CHECK_STRING(got_proof, whole_proof_text);
        _cleanup_free_ char *text = effective_text(got.ready.effective);
        CHECK_STRING(text, some_settings_text);
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
        struct message alive = {.type = MESSAGE_ALIVE, .alive = {.phase = PHASE_DRAINING}};
        CHECK_INT(round_trip(&alive, &got), 0);
        CHECK_INT(got.alive.phase, PHASE_DRAINING);
        struct message thread = {
                .type = MESSAGE_THREAD,
                .thread = {.thread = 1023, .messages = UINT64_MAX, .bytes = UINT64_MAX - 1, .counters = counters}};
        CHECK_INT(round_trip(&thread, &got), 0);
        CHECK(got.thread.thread == 1023 && got.thread.messages == UINT64_MAX && got.thread.bytes == UINT64_MAX - 1);
        CHECK(same_counters(&got.thread.counters, &counters));
        message_deinit(&got);
        struct message report = {.type = MESSAGE_REPORT,
                                 .report = {.window_ns = 1,
                                            .messages = 2,
                                            .bytes = 3,
                                            .proof = proof,
                                            .effective = effective,
                                            .counters = counters,
                                            .clock = {.cost_ns = 29, .quantum_ns = 10}}};
        CHECK_INT(round_trip(&report, &got), 0);
        CHECK(got.report.window_ns == 1 && got.report.messages == 2 && got.report.bytes == 3);
        CHECK(same_counters(&got.report.counters, &counters));
        CHECK(got.report.clock.cost_ns == 29 && got.report.clock.quantum_ns == 10);
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

/* A packet, its header first, to be damaged. */
struct packet {
        uint8_t *data;
        size_t length;
};

static struct packet packet_of(const struct message *m) {
        struct packet p = {.length = 0};
        if (message_encode(m, &p.data, &p.length) < 0)
                abort();
        return p;
}

/* Decodes so many bytes of it. They lie at the end of an allocation, where a sanitizer sees every read beyond. */
static int decode(const struct packet *p, size_t length, char *ret_detail) {
        struct message got;
        _cleanup_free_ uint8_t *copy = malloc(length ? length : 1);
        if (!copy)
                abort();
        memcpy(copy, p->data, length);
        if (length >= WIRE_HEADER)
                memcpy(copy + WIRE_LENGTH_AT, &(uint32_t){(uint32_t) length}, sizeof(uint32_t));
        int r = message_decode(copy, length, &got, ret_detail);
        if (r == 0)
                message_deinit(&got);
        return r;
}

/* Rows that an agent cannot have made, and the error of the function that would add them. */
static void settings_that_do_not_belong_there(void) {
        static const struct effective_row rows[] = {
                {SETTING_COUNT, SETTING_COUNT, EFFECTIVE_NULL, {0}},
                {SETTING_PIPE_SIZE, SETTING_COUNT, EFFECTIVE_KIND_COUNT, {0}},
                {SETTING_PIPE_SIZE, SETTING_COUNT, EFFECTIVE_GROUP, {0}},
                {SETTING_PIPE_SIZE, SETTING_COUNT, EFFECTIVE_TEXT, {.text = "64 KiB"}}, /* another kind */
                {SETTING_NODELAY, SETTING_COUNT, EFFECTIVE_BOOL, {.number = 2}},
                {SETTING_PIPE_OVERHEAD_NS, SETTING_COUNT, EFFECTIVE_REAL, {.real = INFINITY}},
                {SETTING_PIPE_OVERHEAD_NS, SETTING_COUNT, EFFECTIVE_REAL, {.real = NAN}},
                {SETTING_PIPE_SIZE, SETTING_COUNT, EFFECTIVE_REASON, {.text = ""}},
                {SETTING_PIPE_SIZE, SETTING_IO_URING, EFFECTIVE_NULL, {0}}, /* no member of a group */
                {SETTING_PIPE_SIZE, SETTING_NODELAY, EFFECTIVE_NULL, {0}},  /* that is no group */
                {SETTING_PIPE_SIZE, SETTING_COUNT + 1, EFFECTIVE_NULL, {0}},
                {SETTING_QUEUE_DEPTH, SETTING_COUNT, EFFECTIVE_NULL, {0}}, /* a member of a group only */
                {SETTING_IO_URING, SETTING_COUNT, EFFECTIVE_NULL, {0}},    /* a group without members */
                {SETTING_GLIBC, SETTING_COUNT, EFFECTIVE_NULL, {0}},       /* stands there already */
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct message m = {.type = MESSAGE_READY, .ready.proof = some_proof()};
                char detail[DETAIL_MAX];
                m.ready.effective = effective_of("{\"glibc\":\"2.36\"}");
                m.ready.effective->rows[m.ready.effective->n++] = rows[i];
                CHECK_INT(effective_check(m.ready.effective), -EINVAL);
                struct packet p = packet_of(&m);
                if (decode(&p, p.length, detail) != -EBADMSG ||
                    !strstr(detail, "ready.effective has a row that does not belong there: setting "))
                        CHECK_FAIL("row %zu: %s", i, detail);
                free(p.data);
                message_deinit(&m);
        }
}

/* A second object of the same name would make the stored text ambiguous. */
static void a_group_begins_once(void) {
        EFFECTIVE *e = some_settings();
        CHECK_INT(e->error, 0);
        effective_group(e, SETTING_IO_URING);
        effective_add_text(e, SETTING_SETUP_FLAGS, "late");
        CHECK_INT(e->error, -EINVAL);
}

static void settings_beyond_the_limits(void) {
        char text[EFFECTIVE_TEXT_MAX + 1];
        EFFECTIVE *e = effective_new(), *many = effective_new();
        CHECK(e && many);
        memset(text, 'x', sizeof(text));
        text[EFFECTIVE_TEXT_MAX - 1] = '\0';
        effective_add_text(e, SETTING_GLIBC, text);
        CHECK_INT(e->error, 0);
        text[EFFECTIVE_TEXT_MAX - 1] = 'x';
        text[EFFECTIVE_TEXT_MAX] = '\0';
        effective_add_text(e, SETTING_OBJECT, text);
        CHECK_INT(e->error, -EMSGSIZE);
        effective_add_bool(e, SETTING_NODELAY, true); /* is not added behind an error */
        CHECK_UINT(e->n, 1);
        for (size_t i = 0; i <= EFFECTIVE_ROWS_MAX; i++) {
                CHECK_INT(many->error, 0);
                effective_add_null(many, (enum setting) i);
        }
        CHECK_INT(many->error, -ENOBUFS);
        CHECK_UINT(many->n, EFFECTIVE_ROWS_MAX);
}

/* One of each type, with all that it may have. */
static struct message message_of(enum message_type type) {
        struct message m = {.type = type};
        switch (type) {
        case MESSAGE_SETUP:
                return setup_message();
        case MESSAGE_SAMPLE:
                return sample_message();
        case MESSAGE_HELLO:
                m.hello.pid = 4711;
                break;
        case MESSAGE_COUNT:
                m.count.tid = 1;
                break;
        case MESSAGE_READY:
                m.ready = (struct message_ready){.proof = some_proof(), .effective = effective_new()};
                break;
        case MESSAGE_ALIVE:
                m.alive.phase = PHASE_WINDOW;
                break;
        case MESSAGE_PARTS:
                m.parts = (struct message_parts){.begin_ns = 1, .n = 1, .list = {{.interval_ns = 100, .messages = 7}}};
                break;
        case MESSAGE_PROBE:
                return probe_message();
        case MESSAGE_THREAD:
                m.thread.counters = some_counters();
                break;
        case MESSAGE_REPORT:
                m.report = (struct message_report){
                        .proof = some_proof(), .effective = some_settings(), .counters = some_counters()};
                break;
        case MESSAGE_ERROR:
                (void) snprintf(m.error.detail, sizeof(m.error.detail), "the disk is full");
                break;
        case MESSAGE_COUNTING:
        case MESSAGE_START:
                break;
        }
        return m;
}

/* The number of rows is the last of a packet that has none. */
static void settings_without_their_rows(void) {
        static const struct {
                uint32_t n;
                const char *want;
        } cases[] = {{EFFECTIVE_ROWS_MAX + 1, "ready.effective has 65 rows, at most 64 are allowed"},
                     {1, "the packet ends within ready.effective"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char detail[DETAIL_MAX];
                struct message m = message_of(MESSAGE_READY);
                struct packet p = packet_of(&m);
                memcpy(p.data + p.length - sizeof(uint32_t), &cases[i].n, sizeof(uint32_t));
                CHECK_INT(decode(&p, p.length, detail), -EBADMSG);
                CHECK_STRING(detail, cases[i].want);
                free(p.data);
                message_deinit(&m);
        }
}

/* Whatever is missing from a packet, and whatever is too much, is found out, of every type at every length. */
static void no_length_but_its_own(void) {
        for (enum message_type type = MESSAGE_HELLO; type <= MESSAGE_ERROR; type++) {
                char detail[DETAIL_MAX];
                struct message m = message_of(type);
                struct packet p = packet_of(&m);
                CHECK_INT(decode(&p, p.length, detail), 0);
                for (size_t n = 0; n < p.length; n++)
                        if (decode(&p, n, detail) != -EBADMSG || !detail[0])
                                CHECK_FAIL("%zu of %zu bytes of %s", n, p.length, message_type_name(type));
                p.data = realloc(p.data, p.length + 1);
                CHECK(p.data);
                p.data[p.length] = 0;
                CHECK_INT(decode(&p, p.length + 1, detail), -EBADMSG);
                CHECK(strstr(detail, "1 bytes follow the last field"));
                free(p.data);
                message_deinit(&m);
        }
}

/* Bytes of a packet that are replaced, and the resulting error. */
struct damage {
        enum message_type type;
        size_t at; /* behind the header */
        union {
                uint8_t bytes[8];
                uint32_t number;
                double real;
        } with;
        size_t n;
        const char *want;
};

#define MALFORMED "ready.proof: the agent's proof of its placement is malformed: "
static const struct damage damages[] = {
        {MESSAGE_HELLO, 0, {.number = 0}, 4, "hello.pid is 0, 1 "},
        {MESSAGE_HELLO, 0, {.number = 0x80000000}, 4, "hello.pid is 2147483648, "},
        {MESSAGE_COUNT, 0, {.number = 0}, 4, "count.tid is 0"},
        {MESSAGE_COUNTING, 4, {.number = 4096}, 4, "is 4096, 0 "},
        {MESSAGE_ALIVE, 0, {.number = PHASE_SETUP}, 4, "alive.phase is 0"},
        {MESSAGE_ALIVE, 0, {.number = PHASE_COUNT}, 4, "alive.phase is 4"},
        {MESSAGE_PARTS, 8, {.number = SENT_AGAIN_COUNT}, 4, "parts.sent_again.known is 3"},
        {MESSAGE_PARTS, 36, {.number = 0}, 4, "parts has 0 bytes, which are not those of 1 "},
        {MESSAGE_PARTS, 36, {.number = 23}, 4, "parts has 23 bytes, which are not those of 1 "},
        {MESSAGE_PARTS, 36, {.number = 33}, 4, "parts has 33 bytes, 32 are left"},
        {MESSAGE_PARTS, 40, {.bytes = {0}}, 8, "parts has a part of 0 ns"},
        {MESSAGE_PARTS, 40, {.bytes = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, 8, "parts has a part of 1844"},
        {MESSAGE_PROBE, 0, {.number = 0x80000000}, 4, "probe.cpu is 2147483648, "},
        {MESSAGE_PROBE, 4, {.number = 2}, 4, "probe.moved is 2, "},
        {MESSAGE_PROBE, 32, {.number = PROBE_ABSENCE_COUNT}, 4, "probe.series[PROBE_GETPID] is absent for a reason "},
        {MESSAGE_PROBE, 32, {.number = PROBE_LATE}, 4, "probe.series[PROBE_GETPID] has a round of 10000000000 ns"},
        {MESSAGE_PROBE, 36, {.bytes = {0}}, 8, "probe.series[PROBE_GETPID] has a round of 0 ns"},
        {MESSAGE_PROBE, 39, {.bytes = {0xff}}, 1, "probe.series[PROBE_GETPID] has a round of "},
        {MESSAGE_PROBE, 280, {.number = PROBE_TAKEN}, 4, "probe.series[PROBE_HAND_OVER] has a round of 0 ns"},
        {MESSAGE_PROBE, 548, {.number = PROBE_OTHERS_MAX + 1}, 4, "probe.thread is 32, "},
        {MESSAGE_SAMPLE, 0, {.number = SPEC_THREADS_MAX}, 4, "sample.thread is 1024"},
        {MESSAGE_SAMPLE, 40, {.bytes = {1, 0, 0, 0, 0, 0, 0, 0x10}}, 8, "sample.counters.usage.partial_sends is "},
        {MESSAGE_SAMPLE, 176, {.number = 4096}, 4, "sample.counters.usage.migrations_error is 4096"},
        {MESSAGE_SAMPLE, 180, {.bytes = {2}}, 1, "sample.counters.usage.zerocopy is 2"},
        {MESSAGE_SAMPLE, 182, {.bytes = {2}}, 1, "sample.counters.perf.counts[PERF_CYCLES][PERF_USER] is no count"},
        {MESSAGE_SAMPLE, 182, {.bytes = {0}}, 1, "is no count: known 0"},
        {MESSAGE_SAMPLE, 191, {.real = 1.5}, 8, "is no count: known 1, fraction 1.5"},
        {MESSAGE_SAMPLE, 191, {.real = NAN}, 8, "is no count: known 1, fraction nan"},
        {MESSAGE_SAMPLE, 199, {.number = 1}, 4, "is no count: known 1, fraction 0.5, error 1"},
        {MESSAGE_SAMPLE, 220, {.number = 2}, 4, "is no count: known 0, fraction 0, error 2"},
        {MESSAGE_READY, 0, {.number = 1}, 4, MALFORMED "affinity"}, /* its list begins elsewhere */
        {MESSAGE_READY, 4, {.number = 0}, 4, MALFORMED "affinity"},
        {MESSAGE_READY, 4, {.number = UINT32_MAX}, 4, MALFORMED "affinity"},
        {MESSAGE_READY, 12, {.number = 0}, 4, MALFORMED "leader"},
        {MESSAGE_READY, 20, {.number = SPEC_CPUS_MAX}, 4, MALFORMED "leader"},
        {MESSAGE_READY, 24, {.number = MEMORY_COUNT}, 4, MALFORMED "policy"},
        {MESSAGE_READY, 28, {.number = 4096}, 4, MALFORMED "policy"},
        {MESSAGE_READY, 28, {.number = 4000}, 4, MALFORMED "policy"},  /* no errno has this number */
        {MESSAGE_READY, 44, {.number = 1}, 4, MALFORMED "page_sizes"}, /* an error, and rows */
        {MESSAGE_READY, 48, {.bytes = {0}}, 8, MALFORMED "pages_placed_together"},
        {MESSAGE_READY, 56, {.bytes = {0xff}}, 1, MALFORMED "page_cache_reason"},
        {MESSAGE_READY, 144, {.number = UINT32_MAX}, 4, "ready.proof has 4294967295 bytes"},
        {MESSAGE_READY, 144, {.number = 129}, 4, "ready.proof has rows of 129 bytes, which are not those of 64 each"},
        {MESSAGE_READY, 148, {.number = PAGE_KIND_COUNT}, 4, MALFORMED "pages"},
        {MESSAGE_READY, 152, {.number = 2}, 4, MALFORMED "pages"},
        {MESSAGE_ERROR, 0, {.number = FAULT_PEER + 1}, 4, "error.fault is 2"},
        {MESSAGE_ERROR, 4, {.number = 4096}, 4, "error.error is 4096"},
        {MESSAGE_ERROR, 12, {.bytes = {0}}, 1, "error.detail is not UTF-8 text"},
        {MESSAGE_ERROR, 12, {.bytes = {0xc0}}, 1, "error.detail is not UTF-8 text"},
        {MESSAGE_SETUP, 0, {.number = END_COUNT}, 4, "setup.end is 2"},
        {MESSAGE_SETUP, 4, {.number = WORKLOAD_COUNT}, 4, "setup.point: workload is 0 … 3, not 4"},
        {MESSAGE_SETUP, 4, {.number = WORKLOAD_SYSCALL}, 4, "setup.point.message_size is 1073741824, which workload"},
        {MESSAGE_SETUP, 8, {.number = TRANSPORT_COUNT}, 4, "setup.point: transport is 0 "},
        {MESSAGE_SETUP, 12, {.number = 0x40000001}, 4, "setup.point: message_size is 1 … 1073741824, not 1073741825"},
        {MESSAGE_SETUP, 20, {.number = 0}, 4, "setup.point: threads is 1 … 1024, not 0"},
        {MESSAGE_SETUP, 20, {.number = 2}, 4, "setup.messages_over is 2"},
        {MESSAGE_SETUP, 60, {.number = SPEC_WORKING_SET_MAX + 1}, 4, "setup.point: working_set is 0 "},
        {MESSAGE_SETUP, 68, {.number = SPEC_INSTANCES + 1}, 4, "setup.point: instance is 1 … 2, not 3"},
        {MESSAGE_SETUP, 72, {.number = VERIFY_COUNT}, 4, "setup.verify is"},
        {MESSAGE_SETUP, 76, {.number = 1}, 4, "exactly one of"},
        {MESSAGE_SETUP, 124, {.real = -1}, 8, "setup.rate is -1"},
        {MESSAGE_SETUP, 124, {.real = INFINITY}, 8, "setup.rate is inf"},
        {MESSAGE_SETUP, 124, {.real = NAN}, 8, "setup.rate is nan"},
        {MESSAGE_SETUP, 148, {.number = 1}, 4, "setup.options: pipe_size is 4096 "},
        {MESSAGE_SETUP, 164, {.number = 4097}, 4, "a power of two, not 4097"},
        {MESSAGE_SETUP, 200, {.number = TOGGLE_OFF + 1}, 4, "setup.options: nodelay is 0 … 2, not 3"},
        {MESSAGE_SETUP, 212, {.bytes = "/"}, 1, "setup.options: congestion is of a-z"},
        {MESSAGE_SETUP, 227, {.bytes = "a"}, 1, "setup.options: congestion is of a-z"}, /* behind its end */
        {MESSAGE_SETUP, 228, {.number = MEMFD_COUNT}, 4, "setup.options: memfd is 0 … 1, not 2"},
};

static void damaged_packets(void) {
        char detail[DETAIL_MAX];
        for (size_t i = 0; i < ELEMENTS(damages); i++) {
                const struct damage *d = &damages[i];
                struct message m = message_of(d->type);
                struct packet p = packet_of(&m);
                CHECK(WIRE_HEADER + d->at + d->n <= p.length);
                memcpy(p.data + WIRE_HEADER + d->at, &d->with, d->n);
                int r = decode(&p, p.length, detail);
                if (r != -EBADMSG || !strstr(detail, d->want))
                        CHECK_FAIL("%s: %d, %s", d->want, r, r < 0 ? detail : "accepted");
                CHECK_INT(decode(&p, p.length, NULL), -EBADMSG);
                free(p.data);
                message_deinit(&m);
        }
}

/* Where a proof has an errno, a number that no errno has is refused: it has no text. */
static void proofs_with_errors_that_are_none(void) {
        static const uint32_t none[] = {41, 4000, 4095, 4096, UINT32_MAX}; /* 41: one of Linux's gaps */
        static const char *const members[] = {"policy", "pages", "migrations", "migrations", "page_sizes"};
        for (size_t i = 0; i < ELEMENTS(none) * ELEMENTS(members); i++) {
                const size_t member = i / ELEMENTS(none);
                const uint32_t error = none[i % ELEMENTS(none)];
                PROOF *p = some_proof();
                char detail[DETAIL_MAX] = "", want[DETAIL_MAX];
                CHECK_INT(proof_report_check(p, detail), 0);
                if (member == 4)
                        p->of.n_sizes = 0;
                const struct {
                        uint32_t *at32;
                        uint64_t *at64;
                } at[] = {{.at32 = &p->policy_error},
                          {.at32 = &p->of.pages[0].error},
                          {.at32 = &p->of.threads[0].migrations_error},
                          {.at64 = &p->of.groups[0].migrations_error},
                          {.at32 = &p->sizes_error}};
                if (at[member].at32)
                        *at[member].at32 = EPERM;
                else
                        *at[member].at64 = EPERM;
                CHECK_INT(proof_report_check(p, detail), 0);
                if (at[member].at32)
                        *at[member].at32 = error;
                else
                        *at[member].at64 = error;
                (void) snprintf(want, sizeof(want), "the agent's proof of its placement is malformed: %s",
                                members[member]);
                if (proof_report_check(p, detail) != -EBADMSG || strcmp(detail, want) != 0)
                        CHECK_FAIL("%s_error %" PRIu32 ": %s", members[member], error, detail);
        }
        PROOF *p = some_proof();
        char detail[DETAIL_MAX];
        p->of.groups[0].migrations_error = UINT64_C(1) << 32 | EPERM;
        CHECK_INT(proof_report_check(p, detail), -EBADMSG);
}

static void proofs_with_page_sizes_of_nothing(void) {
        for (unsigned which = 0; which < 3; which++) {
                PROOF *p = some_proof();
                struct proof_page_sizes *row = &p->of.sizes[0];
                char detail[DETAIL_MAX] = "";
                if (which < 2)
                        row->sizes[which].bytes = 0;
                else
                        row->sizes[0].page_bytes = 0;
                CHECK_INT(proof_report_check(p, detail), -EBADMSG);
                CHECK_STRING(detail, "the agent's proof of its placement is malformed: page_sizes");
        }
}

/* Elements behind the last list. */
static void proofs_with_elements_of_no_list(void) {
        for (unsigned which = 0; which < 2; which++) {
                PROOF *p = some_proof();
                struct proof_list none = {0};
                char detail[DETAIL_MAX] = "";
                if (which == 0)
                        proof_report_add_number(p, &none, 1);
                else
                        proof_report_add_count(p, &none, 1, 1);
                CHECK_INT(proof_report_check(p, detail), -EBADMSG);
                CHECK_STRING(detail,
                             "the agent's proof of its placement is malformed: elements that belong to no list");
        }
}

static void bad_lists_and_histograms(void) {
        char detail[DETAIL_MAX];
        struct message m = setup_message();
        m.setup.placement.cpus[1] = SPEC_CPUS_MAX;
        struct packet p = packet_of(&m);
        CHECK_INT(decode(&p, p.length, detail), -EBADMSG);
        CHECK(strstr(detail, "setup.placement.cpus has an entry that is no CPU: 8192"));
        free(p.data);
        m.setup.placement.cpus[1] = -1;
        p = packet_of(&m);
        CHECK_INT(decode(&p, p.length, detail), -EBADMSG);
        free(p.data);
        message_deinit(&m);

        static int32_t many[AGENT_CPUS_MAX + 1];
        m = setup_message();
        free(m.setup.placement.cpus);
        m.setup.placement.cpus = many;
        m.setup.placement.n_cpus = ELEMENTS(many);
        p = packet_of(&m);
        CHECK_INT(decode(&p, p.length, detail), -EBADMSG);
        CHECK(strstr(detail, "not those of at most 1024 CPUs"));
        free(p.data);
        m.setup.placement.cpus = NULL;
        message_deinit(&m);

        m = sample_message();
        m.sample.latency_v2 = (uint8_t *) strdup("no histogram");
        m.sample.latency_length = 12;
        p = packet_of(&m);
        CHECK_INT(decode(&p, p.length, detail), -EBADMSG);
        CHECK_STRING(detail, "sample.latency is not a histogram of this layout");
        free(p.data);
        message_deinit(&m);
}

static void bad_headers(void) {
        static const struct {
                size_t at;
                uint16_t with;
                const char *want;
        } headers[] = {{0, 1, "does not begin as a message does"},
                       {4, 99, "protocol version 99, this side has " UTIL_TEXT(PROTOCOL_VERSION)},
                       {6, MESSAGE_ERROR + 1, "unknown message type 13"},
                       {8, 1, "the packet has 16 bytes, its header has 1"}};
        for (size_t i = 0; i < ELEMENTS(headers); i++) {
                char detail[DETAIL_MAX];
                struct message m = message_of(MESSAGE_HELLO), got;
                struct packet p = packet_of(&m);
                memcpy(p.data + headers[i].at, &headers[i].with, sizeof(uint16_t));
                CHECK_INT(message_decode(p.data, p.length, &got, detail), -EBADMSG);
                if (!strstr(detail, headers[i].want))
                        CHECK_FAIL("%s: %s", headers[i].want, detail);
                free(p.data);
        }
}

/* What came encoded goes on as it came. */
static void a_latency_is_passed_on(void) {
        struct message m = sample_message(), got;
        CHECK_INT(round_trip(&m, &got), 0);
        struct packet first = packet_of(&m), second = packet_of(&got);
        CHECK(got.sample.latency_v2 && got.sample.latency_length > 0);
        CHECK_UINT(first.length, second.length);
        CHECK(memcmp(first.data, second.data, first.length) == 0);
        free(first.data);
        free(second.data);
        message_deinit(&m);
        message_deinit(&got);
}

static void too_large_to_send(void) {
        struct message m = {.type = MESSAGE_READY};
        uint8_t *data = NULL;
        size_t length;
        m.ready.effective = effective_new();
        m.ready.proof = some_proof();
        for (size_t i = 0; i < PROTOCOL_PACKET_MAX / sizeof(struct proof_thread); i++)
                CHECK(proof_report_add_thread(m.ready.proof));
        CHECK_INT(message_encode(&m, &data, &length), -EMSGSIZE);
        CHECK(!data);
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

        int r = 0; /* no process reads: the socket fills */
        for (unsigned i = 0; i < 1000000 && r == 0; i++)
                r = message_send(fds[1], &m, 0);
        CHECK_INT(r, -EAGAIN);
        CHECK_INT(message_send(fds[1], &m, util_now_ns() + 5 * NSEC_PER_MSEC), -ETIMEDOUT);
        close(fds[0]);
        CHECK_INT(message_send(fds[1], &m, 0), -ECONNRESET);
        CHECK_INT(message_receive(fds[1], &got, util_now_ns() + 60 * NSEC_PER_SEC, NULL), -ECONNRESET);
        close(fds[1]);
}

/* The kernel reports what was left unread ahead of what was sent last; both arrive, and in the right order. */
static void the_last_message_of_a_sender_that_did_not_read(void) {
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
        char detail[DETAIL_MAX] = "";
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
        RUN(parts_travel);
        RUN(probe_travels);
        RUN(small_ones_travel);
        RUN(settings_that_do_not_belong_there);
        RUN(settings_without_their_rows);
        RUN(a_group_begins_once);
        RUN(settings_beyond_the_limits);
        RUN(no_length_but_its_own);
        RUN(damaged_packets);
        RUN(proofs_with_errors_that_are_none);
        RUN(proofs_with_page_sizes_of_nothing);
        RUN(proofs_with_elements_of_no_list);
        RUN(bad_lists_and_histograms);
        RUN(bad_headers);
        RUN(a_latency_is_passed_on);
        RUN(too_large_to_send);
        RUN(deadlines);
        RUN(the_last_message_of_a_sender_that_did_not_read);
        RUN(foreign_packets);
        RUN(a_full_histogram_fits_a_packet);
        return check_end();
}
