/* SPDX-License-Identifier: MIT */
/* What the fields of messages take where they lie apart, each with lines or pages of its own. */

#include "tests/unit/admissions.h"

/* The messages of the first end on node 1, which has 1 MiB: the last that fit, and the first that do not. */
static void fields_take_more_than_their_bytes(void) {
        static const struct {
                struct point point;
                const char *need; /* NULL: admitted */
        } rows[] = {
                /* 16 messages of 64 fields, two lines each */
                {{.transport = TRANSPORT_TCP, .copy_mode = COPY_ZERO, .message_size = 64, .fields = 64, .threads = 7},
                 NULL},
                {{.transport = TRANSPORT_TCP, .copy_mode = COPY_ZERO, .message_size = 64, .fields = 64, .threads = 8},
                 "1049088"},
                /* one of them, packed into the buffer */
                {{.transport = TRANSPORT_TCP, .message_size = 64, .fields = 64, .threads = 127}, NULL},
                {{.transport = TRANSPORT_TCP, .message_size = 64, .fields = 64, .threads = 128}, "1056768"},
                /* … or beside it, as that receives */
                {{.transport = TRANSPORT_TCP,
                  .workload = WORKLOAD_PINGPONG,
                  .message_size = 64,
                  .fields = 64,
                  .threads = 126},
                 NULL},
                {{.transport = TRANSPORT_TCP,
                  .workload = WORKLOAD_PINGPONG,
                  .message_size = 64,
                  .fields = 64,
                  .threads = 127},
                 "1056640"},
                /* no more fields than bytes */
                {{.transport = TRANSPORT_TCP, .message_size = 1, .fields = 64, .threads = 255}, NULL},
                {{.transport = TRANSPORT_TCP, .message_size = 1, .fields = 64, .threads = 256}, "1048832"},
                /* a page and a line is two pages */
                {{.transport = TRANSPORT_TCP, .copy_mode = COPY_ONE, .message_size = 65536, .fields = 1, .threads = 7},
                 NULL},
                {{.transport = TRANSPORT_TCP, .copy_mode = COPY_ONE, .message_size = 65536, .fields = 1, .threads = 8},
                 "1081344"},
                {{.transport = TRANSPORT_PIPE, .copy_mode = COPY_ONE, .message_size = 64, .fields = 64, .threads = 127},
                 NULL},
                {{.transport = TRANSPORT_PIPE, .copy_mode = COPY_ONE, .message_size = 64, .fields = 64, .threads = 128},
                 "1056768"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct refusal r;
                const struct spec spec = {.repetitions = 1};
                struct point p = rows[i].point;
                p.placement.kind = PLACEMENT_EXPLICIT;
                for (unsigned e = 0; e < END_COUNT; e++)
                        p.placement.ends[e].node = -1;
                p.placement.ends[END_FIRST].buffer = MEMORY_BIND;
                node_set_add(&p.placement.ends[END_FIRST].buffer_nodes, 1);
                int x = admissions_try("two-sockets-smt", "/sys/devices/system/node/node1/meminfo",
                                       "Node 1 MemTotal: 1024 kB\nNode 1 MemFree: 1024 kB\n", &spec, &p, &r);
                CHECK_ADMISSION(i, x, &r, rows[i].need ? "limit-exceeded" : NULL, NULL, "memory of the bound nodes",
                                "1048576", rows[i].need);
        }
}

/* Twice a last cache of 16 MiB is 32 messages of 1 MiB, each with a line behind it in whole pages, and a page; at the
 * end that sends, and beside what both ends have anyway. In more, smaller messages it is the same. */
static void a_cold_source_is_twice_the_last_cache(void) {
        static const struct {
                const char *available;
                enum workload workload;
                enum source source;
                uint32_t threads;
                const char *value, *pointer; /* NULL: admitted */
        } rows[] = {
                {"MemAvailable: 40000 kB\n", WORKLOAD_STREAM, SOURCE_COLD, 1, NULL, NULL},
                {"MemAvailable: 37000 kB\n", WORKLOAD_STREAM, SOURCE_HOT, 1, NULL, NULL},
                {"MemAvailable: 37000 kB\n", WORKLOAD_STREAM, SOURCE_COLD, 1, "36311040", "/source"},
                {"MemAvailable: 40000 kB\n", WORKLOAD_PINGPONG, SOURCE_COLD, 1, "70000640", "/source"},
                {"MemAvailable: 40000 kB\n", WORKLOAD_STREAM, SOURCE_COLD, 2, "72622080", "/source"},
                {"MemAvailable: 2000 kB\n", WORKLOAD_STREAM, SOURCE_COLD, 1, "36311040", "/message_size"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct refusal r;
                const struct spec spec = {.repetitions = 1};
                struct point p = {.transport = TRANSPORT_PIPE,
                                  .workload = rows[i].workload,
                                  .message_size = 1 << 20,
                                  .threads = rows[i].threads,
                                  .source = rows[i].source};
                int x = admissions_try("two-sockets-smt", "/proc/meminfo", rows[i].available, &spec, &p, &r);
                CHECK_ADMISSION(i, x, &r, rows[i].value ? "limit-exceeded" : NULL, rows[i].pointer, "memory available",
                                NULL, rows[i].value);
        }
}

int main(void) {
        RUN(fields_take_more_than_their_bytes);
        RUN(a_cold_source_is_twice_the_last_cache);
        return check_end();
}
