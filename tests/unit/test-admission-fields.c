/* SPDX-License-Identifier: MIT */
/* What the fields of messages take where they lie apart, each with lines or pages of its own. */

#include "tests/unit/check.h"

#include "daemon/admission/admission.h"
#include "schema/util.h"
#include "tests/unit/host-tree.h"

#include <string.h>

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
                char tree[64];
                struct topology *t = NULL;
                struct refusal r = {.status = 0};
                const struct spec spec = {.repetitions = 1};
                struct point p = rows[i].point;
                p.placement.kind = PLACEMENT_EXPLICIT;
                for (unsigned e = 0; e < END_COUNT; e++)
                        p.placement.ends[e].node = -1;
                p.placement.ends[END_FIRST].buffer = MEMORY_BIND;
                node_set_add(&p.placement.ends[END_FIRST].buffer_nodes, 1);
                CHECK_INT(host_tree_unpack("two-sockets-smt", tree), 0);
                CHECK_INT(host_tree_write(tree, "/sys/devices/system/node/node1/meminfo",
                                          "Node 1 MemTotal: 1024 kB\nNode 1 MemFree: 1024 kB\n"),
                          0);
                CHECK_INT(topology_read(tree, &t), 0);
                int x = admission_check(&(struct admission_host){.root = tree, .topology = t}, &spec, &p, &r);
                topology_free(t);
                host_tree_remove(tree);
                if (rows[i].need ? x != -EINVAL || strcmp(r.limit, "memory of the bound nodes") != 0 ||
                                           strcmp(r.value, rows[i].need) != 0
                                 : x != 0)
                        CHECK_FAIL("row %zu gave %d %s: %s [%s = %s, asked %s]", i, x, r.pointer, r.detail, r.limit,
                                   r.limit_value, r.value);
        }
}

int main(void) {
        RUN(fields_take_more_than_their_bytes);
        return check_end();
}
