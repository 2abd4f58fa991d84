/* SPDX-License-Identifier: MIT */

/* Parsing; see options.h. What was not given is filled in at the end, as it depends on --quick. */

#include "tests/bench/options.h"

#include "schema/util.h"
#include "tests/bench/series.h"

#include <limits.h>
#include <string.h>

#define TABLE_MAX 40u

static const struct option common[] = {
        {"agent", required_argument, NULL, 'a'},     {"part", required_argument, NULL, 'P'},
        {"rounds", required_argument, NULL, 'r'},    {"rounds-max", required_argument, NULL, 'R'},
        {"seconds", required_argument, NULL, 's'},   {"row-seconds", required_argument, NULL, 'S'},
        {"minutes", required_argument, NULL, 'M'},   {"width", required_argument, NULL, 'W'},
        {"cpus", required_argument, NULL, 'c'},      {"verify", required_argument, NULL, 'v'},
        {"transport", required_argument, NULL, 't'}, {"workload", required_argument, NULL, 'w'},
        {"size", required_argument, NULL, 'n'},      {"quick", no_argument, NULL, 'q'},
        {"check", no_argument, NULL, 'k'},           {"help", no_argument, NULL, 'h'},
};

static void usage(FILE *f, const char *program, const struct bench_extra *extra) {
        fprintf(f, "usage: %s [options]\n  --part WORD          only", program);
        for (size_t i = 0; extra->parts[i]; i++)
                fprintf(f, "%s %s", i ? "," : "", extra->parts[i]);
        fprintf(f,
                "\n"
                "  --transport WORD, --workload WORD, --size BYTES   only these rows\n"
                "%s"
                "  --agent PATH         the agent to measure (default: agent/ipclab-agent in the build directory)\n"
                "  --cpus A,B           first and second end; -1 = not pinned (default 0,1)\n"
                "  --verify WORD        none, touch or checksum (default touch)\n"
                "  --seconds S          of one round, after its warm-up (default 0.15)\n"
                "  --rounds N           of a row, at least (default 11)\n"
                "  --rounds-max N       at most (default and limit 999)\n"
                "  --width W            a row is settled when its 95 %% interval is +-W (default 0.015)\n"
                "  --row-seconds S      a row ends after that, settled or not, when it has its N rounds (default 45)\n"
                "  --minutes M          the whole: rows get more than N rounds only while there is time for the rows "
                "to come\n"
                "                       (default %g; 0 = no limit)\n"
                "  --quick              in %g minutes: fewer sizes, 7 rounds of 0.1 s, rows of at most 8 s\n"
                "  --check              exit 1 when a row is below its limit, or undecided with a median\n"
                "                       that misses it\n",
                extra->usage, extra->minutes, extra->quick_minutes);
}

int bench_parse_u64(const char *value, uint64_t min, uint64_t max, uint64_t *ret) {
        char *end;
        errno = 0;
        unsigned long long v = strtoull(value, &end, 10);
        if (end == value || *end != '\0' || errno || *value == '-' || v < min || v > max)
                return -EINVAL;
        *ret = v;
        return 0;
}

static int parse_unsigned(const char *value, unsigned *ret) {
        uint64_t v;
        int r = bench_parse_u64(value, 1, SERIES_MAX, &v);
        if (r == 0)
                *ret = (unsigned) v;
        return r;
}

static int parse_double(const char *value, double min, double max, double *ret) {
        char *end;
        double v = strtod(value, &end);
        if (end == value || *end != '\0' || !(v >= min && v <= max))
                return -EINVAL;
        *ret = v;
        return 0;
}

static int parse_cpus(const char *value, int cpus[2]) {
        for (int i = 0; i < 2; i++) {
                char *end;
                long v = strtol(value, &end, 10);
                if (end == value || *end != (i ? '\0' : ',') || v < -1 || v > INT_MAX)
                        return -EINVAL;
                cpus[i] = (int) v;
                value = end + 1;
        }
        return 0;
}

static int parse_part(const char *value, const struct bench_extra *extra, struct bench_options *o) {
        o->part = value;
        for (size_t i = 0; extra->parts[i]; i++)
                if (strcmp(extra->parts[i], value) == 0)
                        return 0;
        return -EINVAL;
}

int bench_parse_word(const struct vocabulary *words, const char *value, int *ret) {
        int i = vocabulary_find(words, value);
        if (i >= 0)
                *ret = i;
        return i < 0 ? i : 0;
}

static int parse_verify(const char *value, enum verify *ret) {
        int word = 0, r = bench_parse_word(&verify_words, value, &word);
        if (r == 0)
                *ret = (enum verify) word;
        return r;
}

static int parse_one(int c, const char *value, const struct bench_extra *extra, struct bench_options *o) {
        switch (c) {
        case 'a':
                o->agent = value;
                return 0;
        case 'P':
                return parse_part(value, extra, o);
        case 'r':
                return parse_unsigned(value, &o->rounds);
        case 'R':
                return parse_unsigned(value, &o->rounds_max);
        case 's':
                return parse_double(value, 0.01, 30, &o->seconds);
        case 'S':
                return parse_double(value, 0, 86400, &o->row_seconds);
        case 'M':
                return parse_double(value, 0, 1440, &o->minutes);
        case 'W':
                return parse_double(value, 0.0001, 1, &o->width);
        case 'c':
                return parse_cpus(value, o->cpus);
        case 'v':
                return parse_verify(value, &o->verify);
        case 't':
                return bench_parse_word(&transport_words, value, &o->transport);
        case 'w':
                return bench_parse_word(&workload_words, value, &o->workload);
        case 'n':
                return bench_parse_u64(value, 1, UINT32_MAX, &o->size);
        case 'q':
                o->quick = true;
                return 0;
        case 'k':
                o->check = true;
                return 0;
        default:
                return extra->parse(c, value);
        }
}

static void fill_in(struct bench_options *o, const struct bench_extra *extra) {
        if (o->rounds_max == 0)
                o->rounds_max = SERIES_MAX;
        if (o->rounds == 0)
                o->rounds = o->quick ? 7 : 11;
        if (o->seconds == 0)
                o->seconds = o->quick ? 0.1 : 0.15;
        if (o->row_seconds < 0)
                o->row_seconds = o->quick ? 8 : 45;
        if (o->minutes < 0)
                o->minutes = o->quick ? extra->quick_minutes : extra->minutes;
}

int bench_options_parse(int argc, char **argv, const struct bench_extra *extra, struct bench_options *ret) {
        struct bench_options o = {.program = program_invocation_short_name,
                                  .agent = IPCLAB_AGENT,
                                  .width = 0.015,
                                  .row_seconds = -1,
                                  .minutes = -1,
                                  .cpus = {0, 1},
                                  .verify = VERIFY_TOUCH,
                                  .transport = -1,
                                  .workload = -1};
        struct option table[TABLE_MAX] = {};
        size_t n = ELEMENTS(common);
        memcpy(table, common, sizeof common);
        for (const struct option *own = extra->table; own->name; own++) {
                if (n + 1 == TABLE_MAX)
                        abort(); /* a longer table is wanted */
                table[n++] = *own;
        }
        int c, at = -1;
        while ((c = getopt_long(argc, argv, "", table, &at)) >= 0) {
                if (c == 'h') {
                        usage(stdout, o.program, extra);
                        return 1;
                }
                if (c == '?')
                        return -EINVAL; /* getopt has printed the error */
                if (parse_one(c, optarg, extra, &o) < 0) {
                        fprintf(stderr, "%s: --%s: not \"%s\"\n", o.program, table[at].name, optarg);
                        return -EINVAL;
                }
        }
        if (optind < argc) {
                fprintf(stderr, "%s: what is \"%s\"?\n", o.program, argv[optind]);
                return -EINVAL;
        }
        fill_in(&o, extra);
        if (o.rounds > o.rounds_max) {
                fprintf(stderr, "%s: --rounds-max %u is less than --rounds %u\n", o.program, o.rounds_max, o.rounds);
                return -EINVAL;
        }
        *ret = o;
        return 0;
}

bool bench_options_want(const struct bench_options *o, const char *part, enum transport t, enum workload w,
                        uint64_t size) {
        return (!o->part || strcmp(o->part, part) == 0) && (o->transport < 0 || o->transport == (int) t) &&
               (o->workload < 0 || o->workload == (int) w) && (o->size == 0 || o->size == size);
}
