/* SPDX-License-Identifier: MIT */

/* Memory policies of this thread and of a range, as the kernel reports them afterwards. One node is enough: the policy
 * is checked, not where pages came to lie. */

#include "agent/os/policy.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static struct node_set node_0, no_nodes, node_far; /* far: one that no machine here has */

struct known {
        int mode;
        unsigned long nodes[SPEC_NODES_MAX / 8 / sizeof(unsigned long)];
};

static bool read_policy(const void *at, struct known *ret) {
        memset(ret, 0, sizeof *ret);
        return syscall(SYS_get_mempolicy, &ret->mode, ret->nodes, (unsigned long) SPEC_NODES_MAX, at,
                       at ? MPOL_F_ADDR : 0UL) == 0;
}

/* A container may forbid the calls, a kernel lack them. */
static const char *missing(void) {
        static char words[80];
        struct known t;
        int r = policy_set(MEMORY_LOCAL, &no_nodes);
        if (r == 0 && policy_set(MEMORY_DEFAULT, &no_nodes) == 0 && read_policy(NULL, &t))
                return NULL;
        (void) snprintf(words, sizeof words, "memory policies cannot be set here: %s", strerrordesc_np(r ? -r : errno));
        return words;
}
#define NEEDS_POLICIES                                                                                                 \
        do {                                                                                                           \
                const char *_words = missing();                                                                        \
                if (_words)                                                                                            \
                        SKIP("%s", _words);                                                                            \
        } while (0)

static const struct {
        enum memory_policy policy;
        int mode;
        bool has_nodes;
} kinds[] = {{MEMORY_DEFAULT, MPOL_DEFAULT, false},
             {MEMORY_BIND, MPOL_BIND, true},
             {MEMORY_PREFERRED, MPOL_PREFERRED, true},
             {MEMORY_INTERLEAVE, MPOL_INTERLEAVE, true},
             {MEMORY_LOCAL, MPOL_LOCAL, false}};

static void each_policy_is_set(void) {
        NEEDS_POLICIES;
        for (size_t i = 0; i < ELEMENTS(kinds); i++) {
                struct known t;
                int r = policy_set(kinds[i].policy, &node_0);
                bool known = read_policy(NULL, &t);
                (void) policy_set(MEMORY_DEFAULT, &no_nodes);
                CHECK_INT(r, 0);
                CHECK(known);
                CHECK_INT(t.mode, kinds[i].mode);
                CHECK_UINT(t.nodes[0], kinds[i].has_nodes ? 1 : 0);
        }
}

static void what_the_kernel_refuses_is_returned(void) {
        NEEDS_POLICIES;
        CHECK_INT(policy_set(MEMORY_BIND, &no_nodes), -EINVAL);
        CHECK_INT(policy_set(MEMORY_BIND, &node_far), -EINVAL);
        CHECK_INT(policy_set(MEMORY_INTERLEAVE, &node_far), -EINVAL);
        CHECK_INT(policy_set(MEMORY_LOCAL, &node_far), 0); /* which has no nodes */
        CHECK_INT(policy_set(MEMORY_DEFAULT, &node_far), 0);
}

/* Whatever the thread had, it has again; also when what was to be in between could not be. */
static void entered_and_left(void) {
        NEEDS_POLICIES;
        for (size_t i = 0; i < ELEMENTS(kinds); i++)
                for (size_t k = 0; k < ELEMENTS(kinds); k++) {
                        struct policy_saved saved;
                        struct known before, inside, after;
                        CHECK_INT(policy_set(kinds[i].policy, &node_0), 0);
                        bool known = read_policy(NULL, &before);
                        int entered = policy_enter(kinds[k].policy, &node_0, &saved);
                        known &= read_policy(NULL, &inside);
                        int left = policy_leave(&saved);
                        known &= read_policy(NULL, &after);
                        int failed = policy_enter(MEMORY_BIND, &node_far, &saved);
                        int left_again = policy_leave(&saved);
                        struct known at_last;
                        known &= read_policy(NULL, &at_last);
                        (void) policy_set(MEMORY_DEFAULT, &no_nodes);
                        CHECK(known);
                        CHECK_INT(entered, 0);
                        CHECK_INT(left, 0);
                        /* the default is no policy: what is there stays */
                        CHECK_INT(inside.mode, kinds[k].policy == MEMORY_DEFAULT ? kinds[i].mode : kinds[k].mode);
                        CHECK(memcmp(&before, &after, sizeof before) == 0);
                        CHECK_INT(failed, -EINVAL);
                        CHECK_INT(left_again, 0);
                        CHECK(memcmp(&before, &at_last, sizeof before) == 0);
                }
}

static void the_default_changes_nothing(void) {
        struct policy_saved saved;
        memset(&saved, 0xff, sizeof saved);
        CHECK_INT(policy_enter(MEMORY_DEFAULT, &node_far, &saved), 0);
        CHECK(!saved.changed);
        CHECK_INT(policy_leave(&saved), 0);
        CHECK_INT(policy_of_range(NULL, 1, MEMORY_DEFAULT, &node_far), 0);
}

/* Flags of a mode (here: nodes as given, whatever the cpuset becomes) are put back with it. */
static void modes_keep_their_flags(void) {
        NEEDS_POLICIES;
        struct policy_saved saved;
        struct known before, after;
        if (syscall(SYS_set_mempolicy, MPOL_BIND | MPOL_F_STATIC_NODES, node_0.bits, SPEC_NODES_MAX + 1) < 0)
                SKIP("this kernel has no static nodes: %s", strerrordesc_np(errno));
        bool known = read_policy(NULL, &before);
        int entered = policy_enter(MEMORY_LOCAL, &no_nodes, &saved), left = policy_leave(&saved);
        known &= read_policy(NULL, &after);
        (void) policy_set(MEMORY_DEFAULT, &no_nodes);
        CHECK(known && entered == 0 && left == 0);
        CHECK_INT(before.mode, MPOL_BIND | MPOL_F_STATIC_NODES);
        CHECK(memcmp(&before, &after, sizeof before) == 0);
}

static void ranges_have_their_own(void) {
        NEEDS_POLICIES;
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct known first, second, thread;
        CHECK(p != MAP_FAILED);
        int set = policy_of_range(p, page, MEMORY_BIND, &node_0);
        bool known = read_policy(p, &first) && read_policy(p + page, &second) && read_policy(NULL, &thread);
        int far = policy_of_range(p, page, MEMORY_PREFERRED, &node_far);
        int unaligned = policy_of_range(p + 1, page, MEMORY_BIND, &node_0);
        CHECK_INT(munmap(p, 2 * page), 0);
        int gone = policy_of_range(p, page, MEMORY_LOCAL, &no_nodes);
        CHECK_INT(set, 0);
        CHECK(known);
        CHECK_INT(first.mode, MPOL_BIND);
        CHECK_UINT(first.nodes[0], 1);
        CHECK_INT(second.mode, MPOL_DEFAULT);
        CHECK_INT(thread.mode, MPOL_DEFAULT);
        CHECK_INT(far, -EINVAL);
        CHECK_INT(unaligned, -EINVAL);
        CHECK_INT(gone, -EFAULT);
}

int main(void) {
        node_0.bits[0] = 1;
        node_far.bits[ELEMENTS(node_far.bits) - 1] = 1ul << (8 * sizeof node_far.bits[0] - 1);
        RUN(each_policy_is_set);
        RUN(what_the_kernel_refuses_is_returned);
        RUN(entered_and_left);
        RUN(the_default_changes_nothing);
        RUN(modes_keep_their_flags);
        RUN(ranges_have_their_own);
        return check_end();
}
