/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_ADMISSIONS_H
#define IPCLAB_TESTS_ADMISSIONS_H

/* The admission of a point on a recorded machine, and the comparison of its refusal with the expected one. */

#include "daemon/admission/admission.h"
#include "tests/unit/check.h"
#include "tests/unit/host-tree.h"

/* Checks a point on a machine, one of whose files (NULL: none) has this content instead. */
static inline int admissions_try(const char *machine, const char *file, const char *content, const struct spec *spec,
                                 const struct point *p, struct refusal *r) {
        char tree[64];
        struct topology *t = NULL;
        *r = (struct refusal){.status = 0};
        int x = host_tree_unpack(machine, tree);
        if (x < 0)
                return x;
        if (file)
                x = host_tree_write(tree, file, content);
        if (x == 0)
                x = topology_read(tree, &t);
        if (x == 0)
                x = admission_check(&(struct admission_host){.root = tree, .topology = t}, spec, p, r);
        topology_free(t);
        host_tree_remove(tree);
        return x;
}

/* code NULL: the point is admitted. Another member that is NULL may have any value. */
struct expected_refusal {
        const char *code, *pointer, *limit, *limit_value, *value;
};

static inline bool admissions_match(int x, const struct refusal *r, const struct expected_refusal *e) {
        if (!e->code)
                return x == 0;
        return x == -EINVAL && r->status == 422 && r->detail[0] && strcmp(r->code, e->code) == 0 &&
               (!e->pointer || strcmp(r->pointer, e->pointer) == 0) && (!e->limit || strcmp(r->limit, e->limit) == 0) &&
               (!e->limit_value || strcmp(r->limit_value, e->limit_value) == 0) &&
               (!e->value || strcmp(r->value, e->value) == 0);
}

/* Case i, whose check returned x and *r; behind them the members of struct expected_refusal. */
#define CHECK_ADMISSION(i, x, r, ...)                                                                                  \
        do {                                                                                                           \
                if (!admissions_match((x), (r), &(struct expected_refusal){__VA_ARGS__}))                              \
                        CHECK_FAIL("case %zu gave %d %d %s %s: %s [%s = %s, requested %s]", (i), (x), (r)->status,     \
                                   (r)->code, (r)->pointer, (r)->detail, (r)->limit, (r)->limit_value, (r)->value);    \
        } while (0)

#endif
