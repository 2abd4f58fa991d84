/* SPDX-License-Identifier: MIT */

/* Messages in several places: how they are cut, that their bytes are one message's, and what is left of them. */

#include "agent/base/agent.h"
#include "agent/loop/fields.h"
#include "agent/loop/pattern.h"
#include "check.h"
#include "schema/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct agent agent;
static struct worker worker = {.agent = &agent};

static const struct {
        size_t size;
        unsigned requested, n;
        size_t longest, shortest;
} cuts[] = {
        {8, 8, 8, 1, 1},        {1, 8, 1, 1, 1},           {7, 8, 7, 1, 1},        {9, 8, 8, 2, 1},
        {4096, 8, 8, 512, 512}, {65549, 8, 8, 8194, 8193}, {1000, 64, 64, 16, 15}, {100, 1, 1, 100, 100},
};

static void test_cut(void) {
        for (size_t i = 0; i < ELEMENTS(cuts); i++) {
                struct fields *f;
                size_t sum = 0, longest = 0, shortest = SIZE_MAX;
                CHECK_INT(fields_new(&worker, cuts[i].size, cuts[i].requested, &f), 0);
                for (unsigned k = 0; k < f->n; k++) {
                        size_t length = f->iov[k].iov_len;
                        const unsigned char *end = (const unsigned char *) f->iov[k].iov_base + length;
                        sum += length;
                        longest = length > longest ? length : longest;
                        shortest = length < shortest ? length : shortest;
                        CHECK((uintptr_t) f->iov[k].iov_base % 64 == 0);
                        CHECK(end <= f->memory + f->length);
                        CHECK(k + 1 == f->n || end + 64 <= (const unsigned char *) f->iov[k + 1].iov_base);
                }
                CHECK_UINT(f->n, cuts[i].n);
                CHECK_UINT(sum, cuts[i].size);
                CHECK_UINT(longest, cuts[i].longest);
                CHECK_UINT(shortest, cuts[i].shortest);
                fields_free(f);
        }
}

/* A cold source has as many sets of fields as it has messages, none of which shares a byte with another. */
static void test_sets_of_fields(void) {
        for (size_t i = 0; i < ELEMENTS(cuts); i++) {
                static struct worker cold; /* whose alignment a stack does not always have */
                memset(&cold, 0, sizeof cold);
                cold.agent = &agent;
                cold.cold.messages = 5;
                const unsigned char *first = NULL, *before = NULL;
                struct fields *f;
                CHECK_INT(fields_new(&cold, cuts[i].size, cuts[i].requested, &f), 0);
                CHECK(cold.source_next && cold.cold.fields == f);
                for (unsigned k = 0; k < 5; k++, cold.source_next(&cold)) {
                        const unsigned char *end =
                                (const unsigned char *) f->iov[f->n - 1].iov_base + f->iov[f->n - 1].iov_len;
                        first = k ? first : f->iov[0].iov_base;
                        CHECK(!before || (const unsigned char *) f->iov[0].iov_base >= before);
                        CHECK(end <= f->memory + f->length);
                        for (unsigned j = 0; j < f->n; j++)
                                CHECK((const unsigned char *) f->iov[j].iov_base ==
                                      f->memory + (k * f->n + j) * f->stride);
                        before = end;
                }
                CHECK(f->iov[0].iov_base == first);
                fields_free(f);
        }
}

/* Gathered behind `done` bytes, the fields are the pattern's tail. */
static bool gathers(const struct fields *f, size_t size, size_t done, const unsigned char *whole) {
        struct iovec rest[SPEC_FIELDS_MAX];
        unsigned n = fields_after(f, done, rest);
        size_t at = done;
        for (unsigned i = 0; i < n; i++) {
                if (rest[i].iov_len == 0 || memcmp(rest[i].iov_base, whole + at, rest[i].iov_len) != 0)
                        return false;
                at += rest[i].iov_len;
        }
        return at == size;
}

/* So are the bytes of a part, and nothing behind them. */
static bool gathers_part(const struct fields *f, size_t from, size_t length, const unsigned char *whole) {
        struct iovec part[SPEC_FIELDS_MAX];
        unsigned n = fields_part(f, from, length, part);
        size_t at = 0;
        for (unsigned i = 0; i < n; i++) {
                if (part[i].iov_len == 0 || memcmp(part[i].iov_base, whole + from + at, part[i].iov_len) != 0)
                        return false;
                at += part[i].iov_len;
        }
        return at == length;
}

static void test_parts(void) {
        for (size_t i = 0; i < ELEMENTS(cuts); i++) {
                struct fields *f;
                size_t size = cuts[i].size, first = cuts[i].longest;
                const size_t lengths[] = {1, first, first + 1, size / 3, size - 1, size};
                unsigned char *whole = malloc(size);
                CHECK(whole);
                pattern_fill(whole, size, 77);
                CHECK_INT(fields_new(&worker, size, cuts[i].requested, &f), 0);
                fields_fill(f, 77);
                for (size_t k = 0; k < ELEMENTS(lengths); k++)
                        for (size_t from = 0; from < size; from += lengths[k] ? lengths[k] : size)
                                CHECK(gathers_part(f, from, lengths[k] < size - from ? lengths[k] : size - from,
                                                   whole));
                fields_free(f);
                free(whole);
        }
}

static void test_filled_as_one_message(void) {
        for (size_t i = 0; i < ELEMENTS(cuts); i++) {
                struct fields *f;
                uint64_t key = pattern_key(1, 0, 77 + i);
                unsigned char *whole = malloc(cuts[i].size);
                CHECK(whole);
                pattern_fill(whole, cuts[i].size, key);
                CHECK_INT(fields_new(&worker, cuts[i].size, cuts[i].requested, &f), 0);
                fields_fill(f, key);
                for (size_t done = 0; done < cuts[i].size; done += 1 + done / 50)
                        CHECK(gathers(f, cuts[i].size, done, whole));
                CHECK(gathers(f, cuts[i].size, cuts[i].size - 1, whole));
                fields_free(f);
                free(whole);
        }
}

/* How many pages fields touch is what sending them without a copy costs: no more than they fill, from half of one on.
 */
static void test_long_fields_begin_pages(void) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        const struct {
                size_t longest;
                bool begins_page;
        } lengths[] = {{page / 2 - 1, false}, {page / 2, true}, {page - 63, true},
                       {page, true},          {2 * page, true}, {2 * page + 1, true}};
        for (size_t i = 0; i < ELEMENTS(lengths); i++) {
                struct fields *f;
                unsigned unaligned = 0;
                CHECK_INT(fields_new(&worker, 8 * lengths[i].longest, 8, &f), 0);
                for (unsigned k = 0; k < f->n; k++) {
                        unaligned += (uintptr_t) f->iov[k].iov_base % page != 0;
                        CHECK((unsigned char *) f->iov[k].iov_base + lengths[i].longest <= f->memory + f->length);
                }
                CHECK_INT(unaligned == 0, lengths[i].begins_page);
                fields_free(f);
        }
}

static void test_bad(void) {
        struct fields *f = NULL;
        CHECK_INT(fields_new(&worker, 0, 8, &f), -EINVAL);
        CHECK_INT(fields_new(&worker, 10, 0, &f), -EINVAL);
        CHECK_INT(fields_new(&worker, 1000, SPEC_FIELDS_MAX + 1, &f), -EINVAL);
        CHECK(!f);
        fields_free(NULL);
}

int main(void) {
        RUN(test_cut);
        RUN(test_sets_of_fields);
        RUN(test_long_fields_begin_pages);
        RUN(test_parts);
        RUN(test_filled_as_one_message);
        RUN(test_bad);
        return check_end();
}
