/* SPDX-License-Identifier: MIT */

/* The answer of a comparison as data: its words, its end. */

#include "daemon/service/compare/comparison.h"
#include "daemon/analysis/findings/findings.h"
#include "daemon/service/cache.h"
#include "daemon/service/compare/difference.h"
#include "schema/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int comparison_write_unlike(const struct findings_row *const rows[SIDE_COUNT], char **ret) {
        static const char *const names[SIDE_COUNT] = {
                [SIDE_BASELINE] = "the baseline", [SIDE_CANDIDATE] = "the candidate"};
        struct unlike_row sides[SIDE_COUNT];
        char *text = NULL;
        size_t length = 0;
        FILE *f = open_memstream(&text, &length);
        if (!f)
                return -ENOMEM;
        for (size_t side = 0; side < SIDE_COUNT; side++)
                sides[side] = (struct unlike_row){
                        .point = &rows[side]->point, .in_force = &rows[side]->in_force, .name = names[side]};
        const bool unlike = unlike_write(f, sides, SIDE_COUNT, true, "");
        if (fclose(f) != 0 || !text) {
                free(text);
                return -ENOMEM;
        }
        if (!unlike) {
                free(text);
                text = NULL;
        }
        *ret = text;
        return 0;
}

const char *comparison_verdict(enum compare_verdict v) {
        static const char *const names[] = {[COMPARE_UNDECIDED] = "undecided",
                                            [COMPARE_FASTER] = "faster",
                                            [COMPARE_SLOWER] = "slower",
                                            [COMPARE_EQUIVALENT] = "equivalent"};
        return names[v];
}

const char *machine_state_name(enum machine_state state) {
        static const char *const names[] = {[MACHINE_UNKNOWN] = "unknown",
                                            [MACHINE_NO_DIFFERENCE] = "no-difference",
                                            [MACHINE_DIFFERS] = "differs"};
        return names[state];
}

size_t comparison_answer_bytes(const struct comparison_answer *a) {
        struct compared_figures figures;
        figures_compared(&figures);
        size_t bytes = sizeof(*a) + a->n_tests * sizeof(*a->comparisons) +
                       a->n_rows * (sizeof(*a->rows) + figures.n * sizeof(*a->rows->figures));
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                for (size_t i = 0; i < a->n_rows; i++)
                        bytes += strlen(a->rows[i].sides[side].point_json);
                for (size_t i = 0; i < a->n_unmatched[side]; i++)
                        bytes += sizeof(char *) + strlen(a->unmatched[side][i]);
        }
        for (size_t i = 0; i < a->n_rows; i++)
                bytes += a->rows[i].unlike ? strlen(a->rows[i].unlike) : 0;
        return bytes + a->machine.n * sizeof(*a->machine.items);
}

void comparison_answer_free(void *payload) {
        struct comparison_answer *a = payload;
        if (!a)
                return;
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                free(a->experiments[side].name);
                free(a->experiments[side].version);
                difference_list_deinit(&a->experiments[side].changed);
                free(a->values[side]);
                for (size_t i = 0; i < a->n_unmatched[side]; i++)
                        free(a->unmatched[side][i]);
                free(a->unmatched[side]);
                for (size_t i = 0; i < a->n_rows; i++)
                        free(a->rows[i].sides[side].point_json);
        }
        for (size_t i = 0; i < a->n_rows; i++) {
                free(a->rows[i].figures);
                free(a->rows[i].unlike);
        }
        free(a->rows);
        free(a->comparisons);
        free(a->axis);
        free(a->question);
        free(a->machine.items);
        difference_list_deinit(&a->environment);
        difference_list_deinit(&a->settings);
        free(a);
}

void comparison_answer_release(struct comparison_answer *a) {
        if (a && a->item)
                cache_release(a->cache, a->item);
        else
                comparison_answer_free(a);
}
