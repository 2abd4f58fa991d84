/* SPDX-License-Identifier: MIT */

/* Reading /proc/self/task: captured texts, texts that are broken, and this very thread. */

#include "agent/os/cpumask.h"
#include "agent/os/procfs.h"
#include "check.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A name with blanks and brackets in it, as prctl(PR_SET_NAME) allows. */
static const char stat_text[] =
        "4711 (a) b (c d) R 1 4711 4711 0 -1 4194304 17 18 19 20 21 22 23 24 20 0 3 0 99 100 101 "
        "102 103 104 105 106 107 108 109 110 111 112 113 114 5 116 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

static void test_stat_numbers(void) {
        uint64_t v = 0;
        CHECK_INT(procfs_stat_number(stat_text, STAT_MINFLT, &v), 0);
        CHECK_UINT(v, 17);
        CHECK_INT(procfs_stat_number(stat_text, STAT_MAJFLT, &v), 0);
        CHECK_UINT(v, 19);
        CHECK_INT(procfs_stat_number(stat_text, STAT_UTIME, &v), 0);
        CHECK_UINT(v, 21);
        CHECK_INT(procfs_stat_number(stat_text, STAT_STIME, &v), 0);
        CHECK_UINT(v, 22);
        CHECK_INT(procfs_stat_number(stat_text, STAT_PROCESSOR, &v), 0);
        CHECK_UINT(v, 116);
}

static void test_broken_stat(void) {
        static const char *const texts[] = {"", "4711 (name", "4711 (name) R 1 2",
                                            "1 (a) R x y z a b c d e f g h i j k l"};
        uint64_t v = 42;
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                CHECK_INT(procfs_stat_number(texts[i], STAT_STIME, &v), -EBADMSG);
                CHECK_UINT(v, 42);
        }
}

static void test_lines(void) {
        static const char text[] = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n"
                                   "se.nr_migrations                             :                    7\nempty:\n";
        uint64_t v = 0;
        CHECK_INT(procfs_line_number(text, "voluntary_ctxt_switches", &v), 0);
        CHECK_UINT(v, 150);
        CHECK_INT(procfs_line_number(text, "nonvoluntary_ctxt_switches", &v), 0);
        CHECK_UINT(v, 545);
        CHECK_INT(procfs_line_number(text, "se.nr_migrations", &v), 0);
        CHECK_UINT(v, 7);
        CHECK_INT(procfs_line_number(text, "ctxt_switches", &v), -ENODATA);
        CHECK_INT(procfs_line_number(text, "empty", &v), -ENODATA);
        CHECK_INT(procfs_line_number("", "Name", &v), -ENODATA);
}

static void test_this_thread(void) {
        char text[8192];
        uint64_t cpu = 0, switches = 0;
        struct cpumask mask;
        pid_t tid = (pid_t) syscall(SYS_gettid);
        CHECK_INT(procfs_read_task(tid, "stat", text, sizeof text), 0);
        CHECK_INT(procfs_stat_number(text, STAT_PROCESSOR, &cpu), 0);
        CHECK_INT(cpumask_get_affinity(0, &mask), 0);
        CHECK(cpumask_has(&mask, (unsigned) cpu));
        CHECK_INT(procfs_read_task(tid, "status", text, sizeof text), 0);
        CHECK_INT(procfs_line_number(text, "voluntary_ctxt_switches", &switches), 0);
        CHECK_INT(procfs_read_task(1 << 30, "stat", text, sizeof text), -ENOENT);
        CHECK_INT(procfs_read_task(tid, "stat", text, 5), 0); /* cut, not overrun */
        CHECK_UINT(strlen(text), 4);
}

static void test_cpumask(void) {
        struct cpumask a, b;
        CHECK_INT(cpumask_from_list((const int32_t[]){0, 63, 64, 8191}, 4, &a), 0);
        CHECK(cpumask_has(&a, 0) && cpumask_has(&a, 63) && cpumask_has(&a, 64) && cpumask_has(&a, 8191));
        CHECK(!cpumask_has(&a, 1) && !cpumask_has(&a, 8192));
        CHECK_INT(cpumask_from_list((const int32_t[]){8191, 64, 63, 0, 0}, 5, &b), 0);
        CHECK(cpumask_equal(&a, &b));
        CHECK_INT(cpumask_from_list((const int32_t[]){8192}, 1, &b), -ERANGE);
        CHECK_INT(cpumask_from_list((const int32_t[]){-1}, 1, &b), -ERANGE);
        CHECK(cpumask_equal(&a, &b)); /* untouched by failures */
}

static void test_setting_words(void) {
        static const struct {
                const char *content, *word;
        } rows[] = {{"tsc\n", "tsc"}, {"hpet", "hpet"}, {"", ""}, {"hyperv_clocksource\nmore", "hyperv_"}};
        char path[32], word[8] = "";
        int fd = memfd_create("setting", MFD_CLOEXEC);
        CHECK(fd >= 0);
        (void) snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                ssize_t length = (ssize_t) strlen(rows[i].content);
                CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, rows[i].content, (size_t) length, 0) == length);
                CHECK_INT(procfs_first_line(path, word, sizeof word), 0);
                CHECK_STRING(word, rows[i].word);
        }
        util_close(fd);
        CHECK_INT(procfs_first_line(path, word, sizeof word), -ENOENT);
}

int main(void) {
        RUN(test_stat_numbers);
        RUN(test_broken_stat);
        RUN(test_lines);
        RUN(test_this_thread);
        RUN(test_cpumask);
        RUN(test_setting_words);
        return check_end();
}
