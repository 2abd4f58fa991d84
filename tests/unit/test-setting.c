/* SPDX-License-Identifier: MIT */

/* Settings read and written below a made-up root, files that are not what they should be, and an ipclab-tune that
 * answers badly. test-tuning has what becomes of them in a run. */

#include "daemon/tune/setting.h"
#include "schema/detail.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#define NAME "numa_balancing"
#define FILE_OF_IT "/proc/sys/kernel/numa_balancing"

struct tree {
        char path[64];
};

static bool tree_open(struct tree *t, const char *value) {
        (void) snprintf(t->path, sizeof t->path, "/tmp/ipclab-setting.XXXXXX");
        return mkdtemp(t->path) && (!value || host_tree_write(t->path, FILE_OF_IT, value) == 0);
}

static void tree_close(struct tree *t) {
        host_tree_remove(t->path);
}
#define TREE __attribute__((cleanup(tree_close))) struct tree

/* Something else in the file's place. */
static bool tree_put(struct tree *t, const char *link) {
        char path[128];
        (void) snprintf(path, sizeof path, "%s" FILE_OF_IT, t->path);
        if (host_tree_write(t->path, FILE_OF_IT, "0\n") < 0 || unlink(path) < 0)
                return false;
        return (link ? symlink(link, path) : mkdir(path, 0755)) == 0;
}

static void the_table_decides(void) {
        static const char *const values[] = {"0", "1", "2", "3"};
        static const char *const no_values[] = {"", "4", "-1", "00", "1\n", " 1", "on"};
        static const char *const no_names[] = {"", "numa", "numa_balancing ", "kernel.numa_balancing", "../kernel"};
        CHECK_STRING(setting_title(NAME), "kernel.numa_balancing");
        for (size_t i = 0; i < ELEMENTS(values); i++)
                CHECK(setting_allows(NAME, values[i]));
        for (size_t i = 0; i < ELEMENTS(no_values); i++)
                CHECK(!setting_allows(NAME, no_values[i]));
        for (size_t i = 0; i < ELEMENTS(no_names); i++)
                CHECK(!setting_title(no_names[i]) && !setting_allows(no_names[i], "1"));
}

static void read_as_the_kernel_writes(void) {
        static const struct {
                const char *content;
                int r;
                const char *value;
        } cases[] = {{"1\n", 0, "1"}, {"2", 0, "2"}, {"0 1\n", 0, "0"}, {"", -ENODATA, ""}, {"\n", -ENODATA, ""}};
        char value[SETTING_VALUE_MAX];
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                TREE t;
                CHECK(tree_open(&t, cases[i].content));
                CHECK_INT(setting_read(t.path, NAME, value), cases[i].r);
                CHECK_STRING(value, cases[i].value);
        }
        TREE t;
        CHECK(tree_open(&t, NULL));
        CHECK_INT(setting_read(t.path, NAME, value), -ENOENT);
        CHECK_INT(setting_read(t.path, "core_pattern", value), -EINVAL);
}

/* Longer than there is room for: an error, and not a byte written behind it. */
static void a_long_value_is_not_cut(void) {
        char value[SETTING_VALUE_MAX + 8], content[100];
        TREE t;
        memset(content, '7', sizeof content);
        content[sizeof content - 1] = '\0';
        CHECK(tree_open(&t, content));
        memset(value, '#', sizeof value);
        CHECK_INT(setting_read(t.path, NAME, value), -EFBIG);
        CHECK_STRING(value, "");
        CHECK(memcmp(value + SETTING_VALUE_MAX, "########", 8) == 0);
}

static void what_is_no_plain_file_is_not_followed(void) {
        char value[SETTING_VALUE_MAX], detail[DETAIL_MAX], target[128], long_root[5000];
        TREE t;
        CHECK(tree_open(&t, NULL));
        CHECK(host_tree_write(t.path, "/target", "0\n") == 0);
        (void) snprintf(target, sizeof target, "%s/target", t.path);
        CHECK(tree_put(&t, target));
        CHECK_INT(setting_read(t.path, NAME, value), -ELOOP);
        CHECK_INT(setting_write(t.path, NAME, "1"), -ELOOP);
        CHECK_INT(setting_change(t.path, NAME, "1", detail), -ELOOP);
        CHECK_STRING(detail, "kernel.numa_balancing cannot be set to 1: Too many levels of symbolic links");
        TREE folder; /* below a captured root, a link on the way is none of the tree's files */
        CHECK(tree_open(&folder, NULL));
        CHECK(host_tree_write(folder.path, "/proc/sys/other/numa_balancing", "1\n") == 0);
        (void) snprintf(target, sizeof target, "%s/proc/sys/kernel", folder.path);
        CHECK_INT(symlink("other", target), 0);
        CHECK_INT(setting_read(folder.path, NAME, value), -ENOTDIR);
        TREE d;
        CHECK(tree_open(&d, NULL) && tree_put(&d, NULL));
        CHECK_INT(setting_read(d.path, NAME, value), -EISDIR);
        CHECK_INT(setting_write(d.path, NAME, "1"), -EISDIR);
        memset(long_root, '/', sizeof long_root);
        long_root[sizeof long_root - 1] = '\0';
        CHECK_INT(setting_read(long_root, NAME, value), -ENAMETOOLONG);
}

static void changed_and_restored(void) {
        char value[SETTING_VALUE_MAX], detail[DETAIL_MAX] = "untouched";
        TREE t;
        CHECK(tree_open(&t, "22\n")); /* longer than what is written */
        CHECK_INT(setting_may_change(t.path, NAME, detail), 0);
        CHECK_INT(setting_change(t.path, NAME, "1", detail), 0);
        CHECK_INT(setting_read(t.path, NAME, value), 0);
        CHECK_STRING(value, "1");
        CHECK_INT(setting_restore(t.path, NAME, "3", "1", detail), 0);
        CHECK_INT(setting_read(t.path, NAME, value), 0);
        CHECK_STRING(value, "3");
        CHECK_STRING(detail, "untouched");
        CHECK_INT(setting_restore(t.path, NAME, "9", "3", detail), -EINVAL);
        CHECK_STRING(detail, "kernel.numa_balancing cannot be set to 9: Invalid argument");
        CHECK_INT(setting_change(t.path, "nothing", "1", detail), -EINVAL);
        CHECK_STRING(detail, "nothing cannot be set to 1: Invalid argument");
        CHECK_INT(setting_read(t.path, NAME, value), 0);
        CHECK_STRING(value, "3");
}

/* In the place of write(), by the linker's --wrap: a file that takes writes and keeps its value, as a kernel that
 * clamps. */
static const char *kept;
ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n) {
        return kept ? __real_write(fd, kept, 1) : __real_write(fd, data, n);
}

static void a_value_that_is_not_accepted_is_an_error(void) {
        TREE t;
        char detail[DETAIL_MAX];
        CHECK(tree_open(&t, "0\n"));
        kept = "0";
        int r = setting_change(t.path, NAME, "1", detail);
        kept = NULL;
        CHECK_INT(r, -EIO);
        CHECK_STRING(detail, "kernel.numa_balancing cannot be set to 1: Input/output error");
}

static void without_the_file_nothing_may_change(void) {
        char detail[DETAIL_MAX];
        TREE t;
        CHECK(tree_open(&t, NULL));
        CHECK_INT(setting_may_change(t.path, NAME, detail), -EACCES);
        CHECK_STRING(detail, "this kernel has no setting numa_balancing");
        CHECK_INT(setting_may_change(t.path, "nothing", detail), -EACCES);
        CHECK(tree_put(&t, NULL)); /* it cannot be opened for writing, and there is no helper for another root */
        CHECK_INT(setting_may_change(t.path, NAME, detail), -EACCES);
        CHECK(strstr(detail, "changing kernel.numa_balancing needs root"));
}

/* ---- a helper behind the socket ---- */

struct helper {
        int fd;
        const char *const *parts; /* of the reply, each sent by itself, up to a NULL */
        pthread_t thread;
        char path[sizeof(((struct sockaddr_un *) NULL)->sun_path)];
};

static void *serve(void *userdata) {
        const struct helper *h = userdata;
        char line[64];
        int fd = accept4(h->fd, NULL, NULL, SOCK_CLOEXEC);
        if (read(fd, line, sizeof line) > 0)
                for (const char *const *part = h->parts; *part; part++) {
                        (void) !write(fd, *part, strlen(*part));
                        sched_yield();
                }
        (void) shutdown(fd, SHUT_WR);
        while (read(fd, line, sizeof line) > 0)
                ;
        (void) util_close(fd);
        return NULL;
}

static int request(const char *const *parts, char *detail) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        struct helper h = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .parts = parts};
        TREE t;
        if (!tree_open(&t, NULL))
                return -ENOTDIR;
        (void) snprintf(address.sun_path, sizeof address.sun_path, "%s/s", t.path);
        if (bind(h.fd, (const struct sockaddr *) &address, sizeof address) < 0 || listen(h.fd, 2) < 0 ||
            pthread_create(&h.thread, NULL, serve, &h) != 0)
                return -EXDEV;
        int r = setting_request(address.sun_path, NAME "=1\n", detail);
        pthread_join(h.thread, NULL);
        (void) util_close(h.fd);
        return r;
}

static void replies_may_come_in_parts(void) {
        static const char *const ok[] = {"o", "k", "\n", NULL}, *const more[] = {"ok\nno\n", NULL};
        static const char *const refused[] = {"not ", "allowed\n", NULL};
        char detail[DETAIL_MAX] = "untouched";
        CHECK_INT(request(ok, detail), 0);
        CHECK_INT(request(more, detail), 0); /* one line is the reply */
        CHECK_STRING(detail, "untouched");
        CHECK_INT(request(refused, detail), -EPERM);
        CHECK_STRING(detail, "ipclab-tune refuses: not allowed");
}

static void a_reply_without_an_end_is_refused(void) {
        char words[300], detail[DETAIL_MAX];
        const char *const parts[] = {words, NULL};
        memset(words, 'w', sizeof words);
        words[sizeof words - 1] = '\0';
        CHECK_INT(request(parts, detail), -EBADMSG);
        CHECK_STRING(detail, "the reply of ipclab-tune is too long");
        words[254] = '\n'; /* just fits */
        words[255] = '\0';
        CHECK_INT(request(parts, detail), -EPERM);
        CHECK(strncmp(detail, "ipclab-tune refuses: www", 24) == 0);
}

static void a_path_that_no_socket_has(void) {
        char path[200], detail[DETAIL_MAX];
        memset(path, 'p', sizeof path);
        path[sizeof path - 1] = '\0';
        CHECK_INT(setting_request(path, "x\n", detail), -ENAMETOOLONG);
        CHECK(strstr(detail, "is too long for a socket"));
}

int main(void) {
        RUN(the_table_decides);
        RUN(read_as_the_kernel_writes);
        RUN(a_long_value_is_not_cut);
        RUN(what_is_no_plain_file_is_not_followed);
        RUN(changed_and_restored);
        RUN(a_value_that_is_not_accepted_is_an_error);
        RUN(without_the_file_nothing_may_change);
        RUN(replies_may_come_in_parts);
        RUN(a_reply_without_an_end_is_refused);
        RUN(a_path_that_no_socket_has);
        return check_end();
}
