/* SPDX-License-Identifier: MIT */

/* Memory and contents of messages in several places; see fields.h. The sending worker owns them. */

#include "agent/loop/fields.h"

#include "agent/loop/buffer.h"
#include "agent/loop/pattern.h"
#include "schema/util.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* A cold source's next message is the next set of fields. */
static void next_message(struct worker *w) {
        fields_next(w->cold.fields);
}

int fields_new(struct worker *w, size_t size, unsigned n, struct fields **ret) {
        if (size == 0 || n == 0 || n > SPEC_FIELDS_MAX)
                return -EINVAL;
        if (n > size)
                n = (unsigned) size;
        _cleanup_free_ struct fields *f = aligned_alloc(SPEC_LINE, (sizeof *f + SPEC_LINE - 1) / SPEC_LINE * SPEC_LINE);
        if (!f)
                return -ENOMEM;
        size_t stride = point_field_stride(size, n, (uint64_t) sysconf(_SC_PAGESIZE));
        uint64_t copies = w->cold.messages ? w->cold.messages : 1;
        *f = (struct fields){.n = n, .stride = stride, .copies = copies, .length = copies * n * stride};
        int r = buffer_map(w, f->length, &f->memory);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < n; i++)
                f->iov[i] = (struct iovec){.iov_base = f->memory + i * stride, .iov_len = size / n + (i < size % n)};
        if (copies > 1) {
                w->cold.fields = f;
                w->source_next = next_message;
        }
        *ret = util_steal(&f);
        return 0;
}

void fields_next(struct fields *f) {
        f->where = f->where + 1 == f->copies ? 0 : f->where + 1;
        unsigned char *at = f->memory + f->where * f->n * f->stride;
        for (unsigned i = 0; i < f->n; i++, at += f->stride)
                f->iov[i].iov_base = at;
}

struct fields *fields_free(struct fields *f) {
        if (f)
                buffer_unmap(f->memory, f->length);
        free(f);
        return NULL;
}

void fields_fill(const struct fields *f, uint64_t key) {
        size_t offset = 0;
        for (unsigned i = 0; i < f->n; i++) {
                pattern_fill_part(f->iov[i].iov_base, offset, f->iov[i].iov_len, key);
                offset += f->iov[i].iov_len;
        }
}

unsigned fields_part(const struct fields *f, size_t from, size_t length, struct iovec ret[SPEC_FIELDS_MAX]) {
        unsigned i = 0, n = 0;
        while (i < f->n && from >= f->iov[i].iov_len)
                from -= f->iov[i++].iov_len;
        for (; i < f->n && length; i++) {
                size_t there = f->iov[i].iov_len - from, taken = there < length ? there : length;
                ret[n++] = (struct iovec){.iov_base = (unsigned char *) f->iov[i].iov_base + from, .iov_len = taken};
                length -= taken;
                from = 0;
        }
        return n;
}

unsigned fields_after(const struct fields *f, size_t done, struct iovec ret[SPEC_FIELDS_MAX]) {
        return fields_part(f, done, SIZE_MAX, ret);
}
