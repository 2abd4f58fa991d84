/* SPDX-License-Identifier: MIT */
/* Lists of ids, single values, and that a captured tree cannot lead out of itself. */

#include "tests/unit/check.h"

#include "daemon/host/hostfs.h"
#include "tests/unit/host-tree.h"

static void lists_are_read_as_the_kernel_writes_them(void) {
        static const struct {
                const char *text;
                int r;
                const char *ids; /* each number followed by a blank */
        } cases[] = {
                {"", 0, ""},
                {"0", 0, "0 "},
                {"0-3", 0, "0 1 2 3 "},
                {"0-1,8,252-253", 0, "0 1 8 252 253 "},
                {"65535", 0, "65535 "},
                {"65536", -EBADMSG, NULL},
                {"0-99999999999999999999", -EBADMSG, NULL},
                {"3-1", -EBADMSG, NULL},
                {"1,1", -EBADMSG, NULL},
                {"4,2", -EBADMSG, NULL},
                {"0-2,2", -EBADMSG, NULL},
                {"0,", -EBADMSG, NULL},
                {",0", -EBADMSG, NULL},
                {"0 1", -EBADMSG, NULL},
                {"-1", -EBADMSG, NULL},
                {"0-", -EBADMSG, NULL},
                {"1-2-3", -EBADMSG, NULL},
                {"a", -EBADMSG, NULL},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                int *ids = NULL;
                size_t n = 0;
                char text[128] = "";
                int r = hostfs_parse_list(cases[i].text, &ids, &n);
                for (size_t k = 0; k < n; k++)
                        (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d ", ids[k]);
                free(ids);
                if (r != cases[i].r || (r == 0 && strcmp(text, cases[i].ids) != 0))
                        CHECK_FAIL("\"%s\" gave %d and \"%s\"", cases[i].text, r, text);
        }
}

static void lists_are_written_as_the_kernel_does(void) {
        static const int ids[] = {0, 1, 2, 8, 10, 11, 252};
        char text[64], small[16];
        hostfs_format_list(ids, ELEMENTS(ids), text, sizeof(text));
        CHECK_STRING(text, "0-2,8,10-11,252");
        hostfs_format_list(ids, ELEMENTS(ids), small, 10);
        CHECK_STRING(small, "0-2,8…");
        hostfs_format_list(ids, 0, text, sizeof(text));
        CHECK_STRING(text, "");
}

static void status_fields_are_found_by_their_whole_name(void) {
        static const char status[] = "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7 \nLast:\n";
        char value[8];
        CHECK_INT(hostfs_field(status, "Cpus_allowed_list", value, sizeof(value)), 0);
        CHECK_STRING(value, "0-7");
        CHECK_INT(hostfs_field(status, "Cpus", value, sizeof(value)), -ENOENT);
        CHECK_INT(hostfs_field(status, "Last", value, sizeof(value)), 0);
        CHECK_STRING(value, "");
        CHECK_INT(hostfs_field(status, "Cpus_allowed_list", value, 3), -EFBIG);
}

static void values_are_read_and_their_path_is_stored(void) {
        char tree[64], line[16];
        struct hostfs h;
        static const char *const no_numbers[] = {"/proc/max", "/proc/words", "/proc/minus", "/proc/long"};
        int64_t v = 0;
        uint64_t u = 0;
        CHECK_INT(host_tree_unpack("one-node", tree), 0);
        CHECK_INT(host_tree_write(tree, "/proc/shmmax", "18446744073692774399\n"), 0);
        CHECK_INT(host_tree_write(tree, "/proc/minus", "-1\n"), 0);
        CHECK_INT(host_tree_write(tree, "/proc/long", "1234567890123456789012345678901234567890\n"), 0);
        CHECK_INT(host_tree_write(tree, "/proc/words", " two words \nand more\n"), 0);
        CHECK_INT(host_tree_write(tree, "/proc/max", "max\n"), 0);
        CHECK_INT(hostfs_init(&h, tree), 0);

        CHECK_INT(hostfs_i64(&h, &v, "/sys/devices/system/cpu/cpu%d/topology/core_id", 1), 0);
        CHECK_INT(v, 1);
        CHECK_STRING(h.path, "/sys/devices/system/cpu/cpu1/topology/core_id");
        CHECK_INT(hostfs_i64(&h, &v, "/proc/none"), -ENOENT);
        CHECK_INT(hostfs_i64(&h, &v, "/proc/max"), -EBADMSG);
        CHECK_INT(hostfs_i64(&h, &v, "/proc/words"), -EBADMSG);
        CHECK_INT(hostfs_i64(&h, &v, "/proc/shmmax"), -EBADMSG);
        CHECK_INT(hostfs_u64(&h, &u, "/proc/shmmax"), 0);
        CHECK_UINT(u, UINT64_C(18446744073692774399));
        CHECK_INT(hostfs_u64(&h, &u, "/proc/none"), -ENOENT);
        for (size_t i = 0; i < ELEMENTS(no_numbers); i++)
                CHECK_INT(hostfs_u64(&h, &u, "%s", no_numbers[i]), -EBADMSG);
        CHECK_UINT(u, UINT64_C(18446744073692774399));
        CHECK_INT(hostfs_line(&h, line, sizeof(line), "/proc/words"), 0);
        CHECK_STRING(line, "two words");
        CHECK_INT(hostfs_line(&h, line, 9, "/proc/words"), -EFBIG);
        char **names = NULL;
        size_t n = 0;
        CHECK_INT(hostfs_names(&h, &names, &n, "/sys/devices/system/%s/cpu1", "cpu"), 0);
        CHECK_UINT(n, 2);
        CHECK_STRING(names[0], "cache");
        CHECK_STRING(names[1], "topology");
        hostfs_names_free(names, n);
        CHECK_INT(hostfs_names(&h, &names, &n, "/proc/none"), -ENOENT);
        CHECK_INT(hostfs_names(&h, &names, &n, "/proc/max"), -ENOTDIR);
        hostfs_deinit(&h);
        host_tree_remove(tree);
}

static void a_file_is_read_once_per_cache(void) {
        char tree[64], line[16];
        struct hostfs h;
        int64_t v = 0;
        CHECK_INT(host_tree_unpack("one-node", tree), 0);
        CHECK_INT(host_tree_write(tree, "/proc/number", "1\n"), 0);
        CHECK_INT(hostfs_init(&h, tree), 0);
        CHECK_INT(hostfs_i64(&h, &v, "/proc/number"), 0);
        hostfs_keep(&h);
        CHECK_INT(host_tree_write(tree, "/proc/number", "2\n"), 0);
        CHECK_INT(hostfs_i64(&h, &v, "/proc/number"), 0);
        CHECK_INT(v, 2); /* an earlier reading does not last */
        CHECK_INT(hostfs_line(&h, line, sizeof(line), "/proc/absent"), -ENOENT);
        CHECK_INT(host_tree_write(tree, "/proc/number", "3\n"), 0);
        CHECK_INT(host_tree_write(tree, "/proc/absent", "here\n"), 0);
        CHECK_INT(hostfs_i64(&h, &v, "/proc/%s", "number"), 0);
        CHECK_INT(v, 2);
        CHECK_INT(hostfs_line(&h, line, sizeof(line), "/proc/absent"), -ENOENT);
        hostfs_deinit(&h);
        host_tree_remove(tree);
}

static void a_captured_tree_cannot_lead_out(void) {
        char tree[64], link_path[128], *text = NULL;
        struct hostfs h;
        CHECK_INT(host_tree_unpack("one-node", tree), 0);
        (void) snprintf(link_path, sizeof(link_path), "%s/proc/file", tree);
        CHECK_INT(symlink("/etc/passwd", link_path), 0);
        (void) snprintf(link_path, sizeof(link_path), "%s/proc/dir", tree);
        CHECK_INT(symlink("/etc", link_path), 0);
        (void) snprintf(link_path, sizeof(link_path), "%s/proc/fifo", tree);
        CHECK_INT(mkfifo(link_path, 0600), 0);
        CHECK_INT(hostfs_init(&h, tree), 0);

        CHECK_INT(hostfs_text(&h, &text, "/proc/file"), -ELOOP);
        CHECK_INT(hostfs_text(&h, &text, "/proc/dir/passwd"), -ENOTDIR);
        CHECK_INT(hostfs_text(&h, &text, "/proc/../../../etc/passwd"), -EINVAL);
        CHECK_INT(hostfs_text(&h, &text, "proc/cpuinfo"), -EINVAL);
        CHECK_INT(hostfs_text(&h, &text, "/proc/fifo"), -EBADMSG); /* and does not wait for a writer */
        CHECK_INT(hostfs_text(&h, &text, "/proc"), -EISDIR);
        CHECK(text == NULL);
        hostfs_deinit(&h);
        host_tree_remove(tree);
        CHECK_INT(hostfs_init(&h, tree), -ENOENT);
}

static void this_machine_is_read_through_the_kernels_links(void) {
        struct hostfs h;
        char *text = NULL;
        CHECK_INT(hostfs_init(&h, ""), 0);
        CHECK_INT(hostfs_text(&h, &text, "/proc/self/status"), 0); /* /proc/self is a link */
        CHECK(strstr(text, "\nCpus_allowed_list:"));
        free(text);
        hostfs_deinit(&h);
}

int main(void) {
        RUN(lists_are_read_as_the_kernel_writes_them);
        RUN(lists_are_written_as_the_kernel_does);
        RUN(status_fields_are_found_by_their_whole_name);
        RUN(values_are_read_and_their_path_is_stored);
        RUN(a_file_is_read_once_per_cache);
        RUN(a_captured_tree_cannot_lead_out);
        RUN(this_machine_is_read_through_the_kernels_links);
        return check_end();
}
