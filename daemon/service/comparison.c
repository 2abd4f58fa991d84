/* SPDX-License-Identifier: MIT */

/* The answer of a comparison as data: its words, its end. */

#include "daemon/service/comparison.h"
#include "daemon/analysis/findings.h"
#include "daemon/analysis/phrase.h"
#include "daemon/service/cache.h"
#include "daemon/service/difference.h"
#include "schema/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* 0: the message goes whole. */
static double pieces_of(const struct findings_row *row) {
        return row->chunk_bytes > 0 && row->chunk_bytes < (double) row->point.message_size ? row->chunk_bytes : 0;
}

/* The buffer that one transport's own grew to is no setting. */
static void write_unlike(FILE *f, const struct findings_row *const rows[SIDE_COUNT]) {
        static const char *const names[SIDE_COUNT] = {
                [SIDE_BASELINE] = "the baseline", [SIDE_CANDIDATE] = "the candidate"};
        const struct findings_row *b = rows[SIDE_BASELINE], *c = rows[SIDE_CANDIDATE];
        const char *joint = "";
        char words[PHRASE_MAX], other[PHRASE_MAX];
        if (b->buffer_bytes > 0 && c->buffer_bytes > 0 && b->buffer_bytes != c->buffer_bytes &&
            b->point.transport != c->point.transport) {
                phrase_value(b->buffer_bytes, "bytes", words);
                phrase_value(c->buffer_bytes, "bytes", other);
                (void) fprintf(f, "the buffer of the baseline has %s, that of the candidate %s", words, other);
                joint = "; ";
        }
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                const struct findings_row *row = rows[side];
                bool alone = (b->gather_ns > 0) != (c->gather_ns > 0);
                if (row->gather_ns > 0 && alone) {
                        (void) fprintf(f, "%s%s alone lets messages gather", joint, names[side]);
                        joint = "; ";
                }
                const double bytes = pieces_of(row);
                if (bytes > 0 && pieces_of(b) != pieces_of(c)) {
                        phrase_value(bytes, "bytes", words);
                        (void) fprintf(f, "%s%s sends a message in pieces of %s", joint, names[side], words);
                        joint = "; ";
                }
        }
}

int comparison_write_unlike(const struct findings_row *const rows[SIDE_COUNT], char **ret) {
        _cleanup_free_ char *text = NULL;
        size_t length = 0;
        FILE *f = open_memstream(&text, &length);
        if (!f)
                return -ENOMEM;
        write_unlike(f, rows);
        if (fclose(f) != 0 || !text)
                return -ENOMEM;
        *ret = length > 0 ? util_steal(&text) : NULL;
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
