/* SPDX-License-Identifier: MIT */
/* Limits of the cgroup that the daemon is in, and of those above it: processes, and memory with what is in use of it.
 */

#include "tests/unit/check.h"

#include "daemon/admission/admission.h"
#include "daemon/admission/capacity.h"
#include "tests/unit/host-tree.h"

#define SELF "/proc/self/cgroup"
#define FS "/sys/fs/cgroup"
#define SLICE FS "/system.slice"
#define UNIT SLICE "/ipclabd.service"
#define IN_UNIT "0::/system.slice/ipclabd.service\n"
#define OF_UNIT "memory.max of /system.slice/ipclabd.service less what is in use"
#define FILES_MAX 6u

struct file {
        const char *path, *content;
};

static int admit(const struct file *files, const struct point *p, struct refusal *r) {
        const struct spec spec = {.repetitions = 1};
        struct topology *t = NULL;
        char tree[64];
        int x = host_tree_unpack("busy-lab", tree);
        for (size_t i = 0; x == 0 && i < FILES_MAX && files[i].path; i++)
                x = host_tree_write(tree, files[i].path, files[i].content);
        if (x == 0)
                x = topology_read(tree, &t);
        if (x == 0)
                x = admission_check(&(struct admission_host){.root = tree, .topology = t}, &spec, p, r);
        topology_free(t);
        host_tree_remove(tree);
        return x;
}

/* Two agents of 8 threads, and four others. */
static void it_limits_processes(void) {
        static const struct {
                struct file files[FILES_MAX];
                const char *limit_value; /* NULL: admitted */
        } rows[] = {
                {{{SELF, IN_UNIT}, {UNIT "/pids.max", "max\n"}}, NULL},
                {{{SELF, IN_UNIT}, {UNIT "/pids.max", "20\n"}}, NULL},
                {{{SELF, IN_UNIT}, {UNIT "/pids.max", "19\n"}}, "19"},
                {{{SELF, IN_UNIT}, {UNIT "/pids.max", "max\n"}, {SLICE "/pids.max", "18\n"}}, "18"},
                {{{SELF, IN_UNIT}, {UNIT "/pids.max", "17\n"}, {SLICE "/pids.max", "18\n"}}, "17"},
                {{{SELF, IN_UNIT}, {FS "/pids.max", "16\n"}}, "16"},
                {{{SELF, "0::/\n"}, {FS "/pids.max", "15\n"}}, "15"},
                {{{SELF, "4:memory:/\n1:name=systemd:/\n" IN_UNIT}, {UNIT "/pids.max", "14\n"}}, "14"},
                {{{SELF, "4:pids:/system.slice/ipclabd.service\n"}, {UNIT "/pids.max", "13\n"}}, NULL},
                {{{SELF, "0::/../system.slice\n"}, {FS "/pids.max", "12\n"}}, NULL}, /* not below what is seen here */
                {{{FS "/pids.max", "11\n"}}, NULL},
        };
        const struct point p = {.message_size = 1, .threads = 8};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct refusal r = {.status = 0};
                int x = admit(rows[i].files, &p, &r);
                if (x != (rows[i].limit_value ? -EINVAL : 0))
                        CHECK_FAIL("row %zu: %d %s", i, x, r.detail);
                if (!rows[i].limit_value)
                        continue;
                CHECK_STRING(r.pointer, "/threads");
                CHECK_STRING(r.limit, "pids.max of the cgroup");
                CHECK_STRING(r.limit_value, rows[i].limit_value);
                CHECK_STRING(r.value, "20");
        }
}

static const struct {
        struct file files[FILES_MAX];
        const char *limit, *limit_value; /* NULL: admitted */
} memory_rows[] = {
        {{{SELF, IN_UNIT}, {UNIT "/memory.max", "max\n"}, {UNIT "/memory.current", "9000000\n"}}, NULL, NULL},
        {{{SELF, IN_UNIT}, {UNIT "/memory.max", "2796202\n"}, {UNIT "/memory.current", "0\n"}}, NULL, NULL},
        {{{SELF, IN_UNIT}, {UNIT "/memory.max", "2796201\n"}, {UNIT "/memory.current", "0\n"}}, OF_UNIT, "2796201"},
        {{{SELF, IN_UNIT}, {UNIT "/memory.max", "3174762\n"}, {UNIT "/memory.current", "378561\n"}},
         OF_UNIT,
         "2796201"},
        {{{SELF, IN_UNIT}, {UNIT "/memory.max", "3174762\n"}, {UNIT "/memory.current", "4000000\n"}}, OF_UNIT, "0"},
        {{{SELF, IN_UNIT}, {UNIT "/memory.max", "2796201\n"}}, NULL, NULL}, /* nobody tells what is in use */
        /* what the kernel can take back is not in use */
        {{{SELF, IN_UNIT},
          {UNIT "/memory.max", "3174762\n"},
          {UNIT "/memory.current", "478561\n"},
          {UNIT "/memory.stat", "anon 378560\nfile 100001\ninactive_file 100001\nactive_file 0\n"}},
         NULL,
         NULL},
        {{{SELF, IN_UNIT},
          {UNIT "/memory.max", "3174762\n"},
          {UNIT "/memory.current", "478561\n"},
          {UNIT "/memory.stat",
           "inactive_anon 7\ninactive_file 1\nactive_file 99999\nslab_reclaimable 1\nworkingset 5\n"}},
         NULL,
         NULL},
        {{{SELF, IN_UNIT},
          {UNIT "/memory.max", "3174762\n"},
          {UNIT "/memory.current", "478561\n"},
          {UNIT "/memory.stat", "inactive_anon 100001\nzinactive_file 100001\ninactive_file 100000\n"}},
         OF_UNIT,
         "2796201"},
        {{{SELF, IN_UNIT}, /* its figures lag behind */
          {UNIT "/memory.max", "2796201\n"},
          {UNIT "/memory.current", "1000\n"},
          {UNIT "/memory.stat", "inactive_file 5000\n"}},
         OF_UNIT,
         "2796201"},
        /* the least of all above it */
        {{{SELF, IN_UNIT},
          {UNIT "/memory.max", "2796202\n"},
          {UNIT "/memory.current", "0\n"},
          {SLICE "/memory.max", "2796202\n"},
          {SLICE "/memory.current", "1\n"}},
         "memory.max of /system.slice less what is in use",
         "2796201"},
        {{{SELF, IN_UNIT},
          {UNIT "/memory.max", "2000000\n"},
          {UNIT "/memory.current", "0\n"},
          {SLICE "/memory.max", "2000001\n"},
          {SLICE "/memory.current", "0\n"}},
         OF_UNIT,
         "2000000"},
        {{{SELF, "0::/\n"}, {FS "/memory.max", "2000000\n"}, {FS "/memory.current", "0\n"}},
         "memory.max of / less what is in use",
         "2000000"},
        {{{SELF, IN_UNIT},
          {UNIT "/memory.max", "2048000\n"},
          {UNIT "/memory.current", "0\n"},
          {"/proc/meminfo", "MemAvailable: 1999 kB\n"}},
         "memory available",
         "2046976"},
        {{{SELF, IN_UNIT},
          {UNIT "/memory.max", "2046975\n"},
          {UNIT "/memory.current", "0\n"},
          {"/proc/meminfo", "MemAvailable: 1999 kB\n"}},
         OF_UNIT,
         "2046975"},
        {{{SELF, IN_UNIT}, /* the host does not report it */
          {UNIT "/memory.max", "2046975\n"},
          {UNIT "/memory.current", "0\n"},
          {"/proc/meminfo", NULL}},
         OF_UNIT,
         "2046975"},
};

/* Two buffers of 1 MiB with 256 KiB of a thread's own: 2621440 bytes, which is what 2796202 leave when 1/16 stays
 * free. */
static void it_limits_memory(void) {
        const struct point p = {.message_size = 1 << 20, .threads = 1};
        for (size_t i = 0; i < ELEMENTS(memory_rows); i++) {
                struct refusal r = {.status = 0};
                int x = admit(memory_rows[i].files, &p, &r);
                if (x != (memory_rows[i].limit ? -EINVAL : 0))
                        CHECK_FAIL("row %zu: %d %s", i, x, r.detail);
                if (!memory_rows[i].limit)
                        continue;
                CHECK_STRING(r.pointer, "/message_size");
                CHECK_STRING(r.limit, memory_rows[i].limit);
                CHECK_STRING(r.limit_value, memory_rows[i].limit_value);
                CHECK_STRING(r.value, "2621440");
                CHECK_INT(strstr(r.detail, "(to have more: MemoryMax= in the unit") != NULL, r.limit[6] == '.');
        }
}

/* A longer name is given by its end alone. */
static void a_long_name_is_cut_to_its_end(void) {
        static const char id[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        char self[200], max[200], current[200];
        const struct point p = {.message_size = 1 << 20, .threads = 1};
        struct refusal r = {.status = 0};
        (void) snprintf(self, sizeof(self), "0::/system.slice/docker-%s.scope\n", id);
        (void) snprintf(max, sizeof(max), SLICE "/docker-%s.scope/memory.max", id);
        (void) snprintf(current, sizeof(current), SLICE "/docker-%s.scope/memory.current", id);
        const struct file files[FILES_MAX] = {{SELF, self}, {max, "2000000\n"}, {current, "0\n"}};
        CHECK_INT(admit(files, &p, &r), -EINVAL);
        CHECK_STRING(r.limit,
                     "memory.max of …cdef0123456789abcdef0123456789abcdef0123456789abcdef.scope less what is in use");
        CHECK_UINT(strlen(r.limit), sizeof(r.limit) - 1);
}

/* GET /transports, and the rings of a mapping that both ends have. */
static void what_decides_is_shown(void) {
        const struct capacity_question q = {.transport = TRANSPORT_MMAP_ANONYMOUS};
        struct capacity c = {.known = false};
        struct hostfs h;
        char tree[64], *text = NULL;
        CHECK_INT(host_tree_unpack("busy-lab", tree), 0);
        CHECK_INT(host_tree_write(tree, SELF, IN_UNIT), 0);
        CHECK_INT(host_tree_write(tree, UNIT "/memory.max", "67160288\n"), 0);
        CHECK_INT(host_tree_write(tree, UNIT "/memory.current", "51424\n"), 0);
        CHECK_INT(hostfs_init(&h, tree), 0);
        CHECK_INT(capacity_read(&h, &q, &c), 0);
        hostfs_deinit(&h);
        CHECK_INT(capacity_to_json(&(struct admission_host){.root = tree}, &text), 0);
        host_tree_remove(tree);
        CHECK(c.known && c.by_memory);
        CHECK_STRING(c.limit, OF_UNIT);
        CHECK_UINT(c.largest_transfer, 67108864);
        CHECK_UINT(c.memory.bytes, 67108864);
        CHECK_STRING(c.memory.limit, OF_UNIT);
        bool shown =
                strstr(text, "\"limit\":{\"name\":\"" OF_UNIT "\",\"value\":67108864,\"raise\":\"MemoryMax= in the "
                             "unit") != NULL;
        free(text);
        CHECK(shown);
}

int main(void) {
        RUN(it_limits_processes);
        RUN(it_limits_memory);
        RUN(a_long_name_is_cut_to_its_end);
        RUN(what_decides_is_shown);
        return check_end();
}
