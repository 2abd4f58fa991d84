/* SPDX-License-Identifier: MIT */
/* What file systems are asked before a run: whether they take O_DIRECT, and whether they have room. */

#include "tests/unit/check.h"

#include "daemon/admission.h"
#include "schema/util.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* In memory a write is nowhere but in the page cache, whatever was asked for. */
static void syncing_needs_a_disk(void) {
        static const char *const names[] = {[FILE_SYNC_DIRECT] = "direct", [FILE_SYNC_FSYNC] = "fsync"};
        const struct point p = {.transport = TRANSPORT_FILE, .message_size = 65536, .threads = 1};
        struct topology *t = NULL;
        CHECK_INT(topology_read("", &t), 0);
        const struct admission_host host = {.root = "", .topology = t, .runtime_dir = "/dev/shm"};
        for (unsigned sync = 0; sync < FILE_SYNC_COUNT; sync++) {
                const struct spec spec = {.options = {.file_sync = (enum file_sync) sync}};
                struct refusal r = {.status = 0};
                char words[200];
                int x = admission_check(&host, &spec, &p, &r);
                if (!names[sync]) {
                        CHECK_INT(x, 0);
                        continue;
                }
                (void) snprintf(words, sizeof(words),
                                "file_sync %s is not available: /dev/shm is in memory, where the page cache is all "
                                "there is (to change it: --runtime-dir on another file system)",
                                names[sync]);
                CHECK_INT(x, -EINVAL);
                CHECK_STRING(r.code, "not-available");
                CHECK_STRING(r.pointer, "/transport_options/file_sync");
                CHECK_STRING(r.detail, words);
        }
        topology_free(t);
}

static void files_on_a_disk_are_synced(void) {
        const struct spec spec = {.options = {.file_sync = FILE_SYNC_FSYNC}};
        const struct point p = {.transport = TRANSPORT_FILE, .message_size = 4097, .threads = 1};
        struct topology *t = NULL;
        struct refusal r = {.status = 0};
        CHECK_INT(topology_read("", &t), 0);
        const struct admission_host host = {.root = "", .topology = t, .runtime_dir = "."};
        int x = admission_check(&host, &spec, &p, &r);
        topology_free(t);
        if (x < 0 && strcmp(r.code, "not-available") == 0)
                SKIP("%s", r.detail);
        CHECK_INT(x, 0);
}

/* Whether a file system takes O_DIRECT, and in what units, it is asked itself. */
static void direct_files_are_tried(void) {
        const struct spec spec = {.options = {.file_sync = FILE_SYNC_DIRECT}};
        struct point p = {.transport = TRANSPORT_FILE, .message_size = 4097, .threads = 1};
        struct topology *t = NULL;
        struct refusal r = {.status = 0};
        CHECK_INT(topology_read("", &t), 0);
        struct admission_host host = {.root = "", .topology = t, .runtime_dir = "/proc"};
        CHECK_INT(admission_check(&host, &spec, &p, &r), -EINVAL); /* no file can be made there to ask for O_DIRECT */
        CHECK_STRING(r.limit, "free space of the runtime directory");
        host.runtime_dir = ".";
        int odd = admission_check(&host, &spec, &p, &r);
        p.message_size = 65536;
        int even = odd < 0 ? admission_check(&host, &spec, &p, &r) : 0;
        topology_free(t);
        if (odd < 0 && strcmp(r.code, "not-available") == 0)
                SKIP("%s", r.detail);
        CHECK_INT(odd, -EINVAL);
        CHECK_STRING(r.limit, "alignment of O_DIRECT");
        CHECK_STRING(r.value, "4097");
        CHECK_INT(even, 0);
}

/* A kernel whose file systems have no O_TMPFILE, from here on. */
static int forbid_nameless_files(void) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
                BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog program = {.len = ELEMENTS(code), .filter = code};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
                return -errno;
        return 0;
}

enum answer { ADMITTED, REFUSED_BY_ALIGNMENT, REFUSED, NO_FILTER };

static enum answer ask_direct(const char *dir, const struct topology *t) {
        const struct spec spec = {.options = {.file_sync = FILE_SYNC_DIRECT}};
        const struct point p = {.transport = TRANSPORT_FILE, .message_size = 4097, .threads = 1};
        const struct admission_host host = {.root = "", .topology = t, .runtime_dir = dir};
        struct refusal r = {.status = 0};
        if (admission_check(&host, &spec, &p, &r) == 0)
                return ADMITTED;
        return strcmp(r.limit, "alignment of O_DIRECT") == 0 ? REFUSED_BY_ALIGNMENT : REFUSED;
}

/* The answer is the same where a file must have a name, and the file is gone. */
static void direct_files_may_have_to_have_a_name(void) {
        char dir[] = "direct-test.XXXXXX";
        struct topology *t = NULL;
        int status = 0;
        CHECK(mkdtemp(dir));
        CHECK_INT(topology_read("", &t), 0);
        enum answer usual = ask_direct(dir, t);
        pid_t child = fork();
        if (child == 0)
                _exit(forbid_nameless_files() < 0 ? NO_FILTER : ask_direct(dir, t));
        topology_free(t);
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(rmdir(dir), 0);
        CHECK(WIFEXITED(status));
        if (WEXITSTATUS(status) == NO_FILTER)
                SKIP("this process may not set a seccomp filter");
        CHECK_INT(WEXITSTATUS(status), usual);
        if (usual != REFUSED_BY_ALIGNMENT)
                SKIP("the file system of the build has no O_DIRECT");
}

/* Two slots for each thread, of which one each would just fit. */
static void files_need_room(void) {
        const struct spec spec = {.repetitions = 1};
        struct point p = {.transport = TRANSPORT_FILE, .message_size = 4096, .threads = 1};
        struct topology *t = NULL;
        struct refusal r = {.status = 0};
        struct statvfs fs;
        CHECK_INT(statvfs("/dev/shm", &fs), 0);
        CHECK_INT(topology_read("", &t), 0);
        struct admission_host host = {.root = "", .topology = t, .runtime_dir = "/dev/shm"};
        int modest = admission_check(&host, &spec, &p, &r);
        p.threads = 256;
        p.message_size = fs.f_bavail * fs.f_frsize / 256 / 4096 * 4096;
        int much = p.message_size > SPEC_MESSAGE_SIZE_MAX ? 0 : admission_check(&host, &spec, &p, &r);
        topology_free(t);
        CHECK_INT(modest, 0);
        if (p.message_size > SPEC_MESSAGE_SIZE_MAX || p.message_size < 4096)
                SKIP("/dev/shm has %ju bytes", (uintmax_t) (fs.f_bavail * fs.f_frsize));
        CHECK_INT(much, -EINVAL);
        CHECK_STRING(r.limit, "free space of the runtime directory");
        CHECK_STRING(r.pointer, "/message_size");
}

int main(void) {
        RUN(syncing_needs_a_disk);
        RUN(files_on_a_disk_are_synced);
        RUN(direct_files_are_tried);
        RUN(direct_files_may_have_to_have_a_name);
        RUN(files_need_room);
        return check_end();
}
