/* SPDX-License-Identifier: MIT */

/* The rows of a report that go on paper: as many as half a sheet has lines for. */

#include "api/handle/report/report.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

#define ROWS 48u

/* All rows have these but the first, which has none: what all rows have stands once, above them. */
#define ONE_LINE "[\"ends_differ\",\"machine_state_changed\"]"
#define TWO_LINES "[\"noisy:foreign-cpu\",\"noisy:daemon\",\"noisy:load\",\"ends_differ\"]"
#define LATE "The run took longer than its deadline of 30 seconds."

static const char placement[] = "{\"initiator\":{\"cpu\":0},\"responder\":{\"cpu\":1}}";

static struct json *parsed(const char *text) {
        struct json *json = NULL;
        return json_parse(text, strlen(text), &json, NULL) == 0 ? json : NULL;
}

static size_t count(const char *text, const char *part) {
        size_t n = 0;
        for (const char *at = text; at && (at = strstr(at, part)); at += strlen(part))
                n++;
        return n;
}

/* A report of rows with these flags and errors, and with a placement by hand where `placed`. */
static char *document(const char *flags, const char *error, bool placed) {
        struct report_row items[ROWS];
        struct text t = {0};
        bool whole = true;
        for (size_t i = 0; i < ROWS; i++) {
                char point[128];
                (void) snprintf(point, sizeof(point), "{\"message_size\":%zu,\"placement\":%s}", i + 1,
                                placed && i > 0 ? placement : "\"default\"");
                items[i] = (struct report_row){.point = parsed(point),
                                               .flags = parsed(i > 0 ? flags : "[]"),
                                               .runs = 1,
                                               .runs_planned = 1,
                                               .error = error ? strdup(error) : NULL};
                whole = whole && items[i].point && items[i].flags && !items[i].error == !error;
        }
        if (whole)
                report_put_rows(&t, &(struct report_rows){.items = items, .n = ROWS, .size = ROWS, .n_json = ROWS});
        for (size_t i = 0; i < ROWS; i++) {
                json_free(items[i].point);
                json_free(items[i].flags);
                free(items[i].error);
        }
        return t.data;
}

static void rows_of_more_lines_are_fewer_on_paper(void) {
        static const struct {
                const char *flags, *error;
                bool placed;
                size_t printed;
        } cases[] = {
                {"[]", NULL, false, 36}, {ONE_LINE, NULL, false, 36},  {TWO_LINES, NULL, false, 25},
                {"[]", LATE, false, 25}, {TWO_LINES, LATE, false, 13}, {"[]", NULL, true, 36},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                _cleanup_free_ char *html = document(cases[i].flags, cases[i].error, cases[i].placed);
                char words[64];
                (void) snprintf(words, sizeof(words), " %zu more points", ROWS - cases[i].printed);
                size_t screen = count(html, "<tr class=\"screen\">"), paper = count(html, "<tr><td");
                if (screen + paper != ROWS || paper != cases[i].printed || count(html, words) != 1)
                        CHECK_FAIL("case %zu: %zu rows are printed of %zu", i, paper, screen + paper);
        }
}

/* Rows of many bytes end the table before the charts. */
static void charts_of_more_points_than_the_table_are_named(void) {
        static char error[4096];
        memset(error, 'x', sizeof(error) - 1);
        _cleanup_free_ char *html = document("[]", error, false), *short_one = document("[]", NULL, false);
        size_t listed = count(html, "<tr class=\"screen\">") + count(html, "<tr><td");
        char words[128];
        (void) snprintf(words, sizeof(words),
                        " The first %zu points are here; GET /experiments/{id}/results has all of them. "
                        "The charts have the first %u.",
                        listed, ROWS);
        CHECK(listed < ROWS);
        CHECK_UINT(count(html, words), 1);
        CHECK_UINT(count(short_one, "The charts have"), 0);
}

int main(void) {
        RUN(rows_of_more_lines_are_fewer_on_paper);
        RUN(charts_of_more_points_than_the_table_are_named);
        return check_end();
}
