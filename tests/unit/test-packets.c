/* SPDX-License-Identifier: MIT */

/* Packets of each CPU and of the loopback device, on trees of machines that have one form of the files or the other. */

#include "daemon/host/disturbance/packets.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"

#define ZEROS " 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000"
#define DEV                                                                                                            \
        "Inter-|   Receive                                                |  Transmit\n"                               \
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"                         \
        "  eth0: 618384025   17036    0    0    0     0          0         0   988798   10856\n"                       \
        "    lo: 112050052255 9673588    0    0    0     0          0         0 112050052255 9673588\n"

static void each_form_is_read(void) {
        static const struct {
                const char *softnet, *dev;
                int64_t loopback;
                uint32_t first, second;
        } cases[] = {
                /* with the CPUs' ids, in an order of its own; without them; and with a CPU that is not asked for */
                {"00000007 00000000" ZEROS " 00000002 00000000\nffffffff 00000000" ZEROS " 00000000 00000000\n", DEV,
                 9673588, UINT32_MAX, 7},
                {"0000000a 00000000 00000000\n0000000b 00000000 00000000\n", DEV, 9673588, 10, 11},
                {"00000001 00000000" ZEROS " 00000000\n00000002 00000000" ZEROS " 00000001\n00000003 00000000" ZEROS
                 " 00000002\n",
                 DEV, 9673588, 1, 3},
                /* without one of the CPUs, without loopback, and neither form */
                {"00000007 00000000" ZEROS " 00000002 00000000\n", DEV, -1, 0, 0},
                {"0000000a 00000000 00000000\n", DEV, -1, 0, 0},
                {"0000000a 00000000 00000000\n0000000b 00000000 00000000\n", " eth0: 1 2\n", -1, 0, 0},
                {"0000000a 00000000 00000000\n0000000b 00000000 00000000\n", "    lo: some\n", -1, 0, 0},
                {"no numbers\n", DEV, -1, 0, 0},
                {"", DEV, -1, 0, 0},
        };
        static const int ids[] = {0, 2};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char tree[64];
                uint32_t cpus[2] = {0};
                struct packets_reading reading = {.cpus = cpus};
                struct packets p;
                CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
                CHECK_INT(host_tree_write(tree, "/proc/net/softnet_stat", cases[i].softnet), 0);
                CHECK_INT(host_tree_write(tree, "/proc/net/dev", cases[i].dev), 0);
                packets_open(tree, &p);
                packets_read(&p, ids, 2, &reading);
                CHECK(cases[i].loopback < 0
                              ? reading.loopback[0] < 0 || reading.loopback[1] < 0
                              : reading.loopback[0] == cases[i].loopback && reading.loopback[1] == cases[i].loopback);
                if (cases[i].loopback >= 0) {
                        CHECK_UINT(cpus[0], cases[i].first);
                        CHECK_UINT(cpus[1], cases[i].second);
                }
                packets_close(&p);
                host_tree_remove(tree);
        }
}

static void a_machine_without_the_files_knows_nothing(void) {
        char tree[64];
        struct packets_reading reading = {.loopback = {5, 5}};
        struct packets p;
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        packets_open(tree, &p);
        packets_read(&p, NULL, 0, &reading);
        CHECK(reading.loopback[0] < 0 && reading.loopback[1] < 0);
        packets_close(&p);
        host_tree_remove(tree);
}

int main(void) {
        RUN(each_form_is_read);
        RUN(a_machine_without_the_files_knows_nothing);
        return check_end();
}
