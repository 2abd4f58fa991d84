/* SPDX-License-Identifier: MIT */

/* The kernel's counts of pages: read from made-up hosts, subtracted, and shown with a reason for what is not known. */

#include "daemon/host/numastat.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"

#define ALL(hit, migrated)                                                                                             \
        "nr_free_pages 1\nnuma_hit " hit "\nnuma_miss 2\nnuma_foreign 3\nnuma_interleave 4\nnuma_local 5\n"            \
        "numa_other 6\nnuma_pte_updates 7\nnuma_huge_pte_updates 70\nnuma_hint_faults 8\nnuma_hint_faults_local 9\n"   \
        "numa_pages_migrated " migrated "\npgmigrate_success 11\n"
/* all but the first and the last but one, between two equal readings */
#define REST                                                                                                           \
        "\"numa_miss\":0,\"numa_foreign\":0,\"numa_interleave\":0,\"numa_local\":0,\"numa_other\":0,"                  \
        "\"numa_pte_updates\":0,\"numa_hint_faults\":0,\"numa_hint_faults_local\":0"

/* content NULL: a host without the file */
static bool take(const char *content, struct numastat *ret) {
        char tree[] = "/tmp/ipclab-numastat.XXXXXX";
        memset(ret, 0xa5, sizeof *ret);
        if (!mkdtemp(tree) || (content && host_tree_write(tree, "/proc/vmstat", content) < 0))
                return false;
        numastat_take(tree, ret);
        host_tree_remove(tree);
        return true;
}

/* malloc()ed; NULL when it cannot be */
static char *shown(const struct numastat *n) {
        struct json_writer w;
        char *text = NULL;
        json_writer_init(&w);
        json_object_begin(&w);
        numastat_put(n, &w);
        json_object_end(&w);
        (void) json_writer_steal(&w, &text, NULL);
        json_writer_deinit(&w);
        return text;
}

static void what_happened_between_two_readings(void) {
        struct numastat before, after, d;
        CHECK(take(ALL("100", "10"), &before) && take(ALL("4811", "13"), &after));
        numastat_subtract(&d, &after, &before);
        _cleanup_free_ char *text = shown(&d);
        CHECK_STRING(text, "{\"numa\":{\"of\":\"host\",\"numa_hit\":4711," REST
                           ",\"numa_pages_migrated\":3,\"pgmigrate_success\":0}}");
}

/* Names that begin alike are not mistaken for each other, wherever they stand. */
static void each_counter_is_its_own(void) {
        static const uint64_t values[NUMASTAT_COUNTERS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
        struct numastat n;
        CHECK(take(ALL("1", "10"), &n));
        CHECK(n.known);
        for (size_t i = 0; i < NUMASTAT_COUNTERS; i++) {
                CHECK(n.has[i]);
                CHECK_UINT(n.values[i], values[i]);
        }
        CHECK(take("numa_hint_faults_local 9\nxnuma_hit 3\nnuma_hits 4\nnuma_hint_faults 8", &n));
        CHECK(!n.has[0] && n.has[7] && n.has[8]);
        CHECK_UINT(n.values[7], 8); /* also without a line's end */
        CHECK_UINT(n.values[8], 9);
}

static void what_is_no_number_is_not_known(void) {
        static const char *const lines[] = {"numa_hit \n", "numa_hit x\n", "numa_hit",
                                            "numa_hit 18446744073709551616\n"};
        struct numastat n;
        for (size_t i = 0; i < ELEMENTS(lines); i++) {
                CHECK(take(lines[i], &n));
                if (!n.known || n.has[0])
                        CHECK_FAIL("\"%s\" is read as %" PRIu64, lines[i], n.values[0]);
        }
        CHECK(take("numa_hit 18446744073709551615\n", &n));
        CHECK(n.has[0] && n.values[0] == UINT64_MAX);
}

static void nulls_have_their_reasons(void) {
        struct numastat some, none, d;
        CHECK(take("numa_hit 1\n", &some) && take(NULL, &none));
        CHECK(some.known && !none.known);
        numastat_subtract(&d, &some, &some);
        _cleanup_free_ char *old_kernel = shown(&d);
        CHECK(old_kernel && strstr(old_kernel, "\"numa_hit\":0,\"numa_miss\":null,\"numa_miss_reason\":\"this kernel "
                                               "does not count it\""));
        for (unsigned i = 0; i < 2; i++) {
                numastat_subtract(&d, i ? &some : &none, i ? &none : &some);
                _cleanup_free_ char *text = shown(&d);
                CHECK(text && strstr(text, "\"numa_hit\":null,\"numa_hit_reason\":\"/proc/vmstat cannot be read\""));
        }
}

/* `sysctl vm.numa_stat=0` sets the counts of allocations back: what happened since is not known, and is no
 * 18446744073709551547 pages. */
static void a_counter_that_was_set_back_is_not_known(void) {
        struct numastat before, after, d;
        CHECK(take(ALL("100", "10"), &before) && take(ALL("31", "13"), &after));
        numastat_subtract(&d, &after, &before);
        _cleanup_free_ char *text = shown(&d);
        CHECK_STRING(text, "{\"numa\":{\"of\":\"host\",\"numa_hit\":null,\"numa_hit_reason\":\"it was set back during "
                           "the run\"," REST ",\"numa_pages_migrated\":3,\"pgmigrate_success\":0}}");
}

int main(void) {
        RUN(what_happened_between_two_readings);
        RUN(each_counter_is_its_own);
        RUN(what_is_no_number_is_not_known);
        RUN(nulls_have_their_reasons);
        RUN(a_counter_that_was_set_back_is_not_known);
        return check_end();
}
