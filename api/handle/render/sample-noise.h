/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_SAMPLE_NOISE_H
#define IPCLAB_API_SAMPLE_NOISE_H

/*
 * What else used a run's CPUs in the time of each of its samples. A sample is stored as soon as it has come, and the
 * noise of its second, when the run has ended, in the run's result; the exports of samples bring them together. An
 * agent's seconds and those of the noise begin some milliseconds apart, and an agent that was stopped has a longer one:
 * a second counts for a sample where the two have a tenth of the shorter one in common, and of several the worst does.
 */

#include "api/http/text.h"
#include "daemon/service/service.h"
#include "schema/json/json.h"

#define SAMPLE_NOISE_FLAGS_MAX 64 /* different ones: bits of a word */

/* What a sample has the worst of, under the names that a second has it by. */
enum sample_noise_value {
        SAMPLE_NOISE_FOREIGN,
        SAMPLE_NOISE_SOFTIRQ,
        SAMPLE_NOISE_STEAL,
        SAMPLE_NOISE_STOPPED,
        SAMPLE_NOISE_MIGRATIONS,
        SAMPLE_NOISE_SENT_AGAIN,
        SAMPLE_NOISE_LOST,
        SAMPLE_NOISE_TIMED_OUT,
        SAMPLE_NOISE_VALUES
};

struct sample_noise_second {
        uint64_t second, begin_ns, interval_ns;
        int64_t cpu;                        /* -1: null */
        double values[SAMPLE_NOISE_VALUES]; /* -1: not known */
        uint64_t flags;                     /* bits */
};

/* The noise of one run. */
struct sample_noise {
        const char *reason; /* why there are no seconds: static; NULL: they follow */
        struct sample_noise_second *seconds;
        size_t n;
        uint64_t total; /* with those that the run's result does not list */
        char *flags[SAMPLE_NOISE_FLAGS_MAX];
        size_t n_flags;
};

/* The noise of one sample. */
struct sample_noise_found {
        const char *reason;            /* why nothing is known: static; NULL: what follows is */
        const char *unobserved;        /* why a lack of flags means nothing: static; NULL: it was observed */
        double observed;               /* share */
        struct sample_noise_second of; /* the worst of each */
};

/* 0; -EBADMSG: the run's result is no result; -ENOMEM. */
int sample_noise_read(struct sample_noise *ret, const struct run_record *run);
void sample_noise_deinit(struct sample_noise *n);
struct sample_noise_found sample_noise_find(const struct sample_noise *n, const struct sample_record *s);

/* The members "noise" and, where it is null, "noise_reason" of an object under construction. */
void sample_noise_put(const struct sample_noise *n, const struct sample_record *s, struct json_writer *w);
/* The same as cells of a CSV. */
void sample_noise_header(struct text *t);
void sample_noise_cells(const struct sample_noise *n, const struct sample_record *s, struct text *t);

#endif
