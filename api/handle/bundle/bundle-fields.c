/* SPDX-License-Identifier: MIT */

#include "api/handle/bundle/bundle-fields.h"

#include "daemon/service/service.h"
#include "schema/facts.h"
#include "schema/json/canonical.h"
#include "schema/protocol/effective.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

#define PLAIN_MAX 300u
#define WITHHELD "withheld"

/* ---- the table ---- */

#define COUNT(member)                                                                                                  \
        { member, BUNDLE_COUNT, NULL }
#define NUMBER(member)                                                                                                 \
        { member, BUNDLE_NUMBER, NULL }
#define NUMBERS(member)                                                                                                \
        { member, BUNDLE_NUMBERS, NULL }
#define PLAIN(member)                                                                                                  \
        { member, BUNDLE_PLAIN, NULL }
#define OBJECT(member, table)                                                                                          \
        { member, BUNDLE_OBJECT, table }
#define OTHERS(of_form)                                                                                                \
        { "*", of_form, NULL }
#define OF_ROLES(table)                                                                                                \
        OBJECT("sender", table), OBJECT("receiver", table), OBJECT("initiator", table), OBJECT("responder", table),    \
                OBJECT("server", table), OBJECT("client", table)
#define END                                                                                                            \
        { NULL, BUNDLE_OUT, NULL }

/* Figures of both ends, and of one. */
#define OF_ENDS                                                                                                        \
        NUMBER("throughput_bytes_per_second"), NUMBER("messages_per_second"), COUNT("messages"), COUNT("bytes"),       \
                COUNT("window_ns"), NUMBER("cpu_ns_per_message"), NUMBER("cpu_ns_per_gigabyte"),                       \
                NUMBER("cycles_per_byte"), NUMBER("cycles_per_message"), NUMBER("instructions_per_message"),           \
                NUMBER("l1d_read_misses_per_message"), NUMBER("llc_misses_per_message"),                               \
                NUMBER("dtlb_misses_per_message"), NUMBER("branch_misses_per_message"),                                \
                NUMBER("context_switches_per_message")

static const struct bundle_field numbers[] = {OTHERS(BUNDLE_NUMBERS), END};
static const struct bundle_field kind_and_numbers[] = {PLAIN("kind"), OTHERS(BUNDLE_NUMBERS), END};
static const struct bundle_field plain[] = {OTHERS(BUNDLE_PLAIN), END};
static const struct bundle_field texts[] = {OTHERS(BUNDLE_TEXT), END};

/* The host, where it is a machine of a make that has settings: not its name, identities, addresses, times or loads. */
static const struct bundle_field facts[] = {
#define ROW(id, name, form, in_bundle, ...) {name, BUNDLE_##in_bundle, NULL},
        FACTS(ROW)
#undef ROW
                OBJECT("mitigations", texts),
        COUNT("memory_total_bytes"),
        END,
};
static const struct bundle_field build[] = {PLAIN("version"), PLAIN("commit"), PLAIN("daemon_sha256"),
                                            PLAIN("agent_sha256"), END};
static const struct bundle_field daemon_fields[] = {COUNT("cpu_ns"), COUNT("off_the_measured_cpus"), END};
static const struct bundle_field environment[] = {OBJECT("before", facts), OBJECT("after", facts),
                                                  OBJECT("build", build), OBJECT("daemon", daemon_fields), END};

/* Where the ends were put, and the proof that they were there, without process ids. */
static const struct bundle_field memory[] = {PLAIN("policy"), NUMBERS("nodes"), END};
static const struct bundle_field placement[] = {NUMBERS("cpus"),
                                                COUNT("roam"),
                                                NUMBER("node"),
                                                OBJECT("memory", memory),
                                                NUMBERS("leader_cpus"),
                                                OBJECT("buffer", memory),
                                                END};
static const struct bundle_field leader[] = {NUMBERS("affinity"), NUMBER("cpu"), END};
static const struct bundle_field thread[] = {COUNT("thread"),
                                             NUMBERS("affinity"),
                                             NUMBER("cpu"),
                                             NUMBER("node"),
                                             NUMBERS("cpus_seen"),
                                             COUNT("migrations"),
                                             END};
static const struct bundle_field together[] = {COUNT("threads"),
                                               NUMBERS("affinity"),
                                               NUMBERS("cpus"),
                                               NUMBERS("cpus_seen"),
                                               NUMBERS("nodes"),
                                               COUNT("migrations"),
                                               END};
static const struct bundle_field pages[] = {
        PLAIN("what"),
        COUNT("thread"),
        COUNT("threads"),
        COUNT("ranges"),
        COUNT("total"),
        NUMBERS("nodes"),
        COUNT("absent"),
        NUMBERS("absent_errors"),
        NUMBERS("nodes_seen"),
        COUNT("moved"),
        END,
};
static const struct bundle_field page_sizes[] = {PLAIN("what"), COUNT("mappings"), NUMBERS("bytes"), END};
static const struct bundle_field proof[] = {
        NUMBERS("affinity"),
        OBJECT("leader", leader),
        PLAIN("policy"),
        NUMBERS("policy_nodes"),
        OBJECT("threads", thread),
        OBJECT("threads_together", together),
        COUNT("threads_total"),
        COUNT("pages_placed_together"),
        OBJECT("pages", pages),
        OBJECT("page_sizes", page_sizes),
        OBJECT("page_cache", pages),
        END,
};
static const struct bundle_field uring[] = {PLAIN("setup_flags"), OTHERS(BUNDLE_NUMBERS), END};
#define OF_TEXT(name) PLAIN(name),
#define OF_GROUP(name) OBJECT(name, uring),
#define OF_NUMBER(name)
#define OF_BOOL(name)
#define OF_REAL(name)
#define ROW(id, name, kind) OF_##kind(name)
static const struct bundle_field agent_effective[] = {SETTINGS(ROW) OTHERS(BUNDLE_NUMBERS), END};
#undef ROW
static const struct bundle_field agent[] = {
        PLAIN("role"),
        OBJECT("placement", placement),
        OBJECT("proof", proof),
        OBJECT("proof_at_start", proof),
        OBJECT("effective", agent_effective),
        COUNT("cpu_ns"),
        NUMBERS("exit"),
        END,
};

/* What the run amounts to. */
static const struct bundle_field end[] = {OF_ENDS, END};
static const struct bundle_field by_role[] = {OF_ROLES(numbers), END};
static const struct bundle_field segment[] = {NUMBER("begin_seconds"), NUMBER("end_seconds"), NUMBER("mean"), END};
static const struct bundle_field change[] = {NUMBER("at_seconds"), COUNT("second"), NUMBER("from"), NUMBER("to"), END};
static const struct bundle_field steadiness[] = {
        PLAIN("figure"),
        PLAIN("measured_by"),
        PLAIN("class"),
        NUMBER("steady_from_seconds"),
        NUMBER("correlation"),
        OBJECT("segments", segment),
        OBJECT("changes", change),
        END,
};
static const struct bundle_field second[] = {
        COUNT("second"),
        COUNT("interval_ns"),
        NUMBER("cpu"),
        NUMBER("foreign_share"),
        NUMBER("softirq_share"),
        NUMBER("steal_share"),
        NUMBER("worst_softirq_share"),
        NUMBER("worst_irq_share"),
        NUMBER("worst_steal_share"),
        NUMBER("worst_standstill_share"),
        NUMBER("sibling_share"),
        NUMBER("daemon_share"),
        NUMBER("involuntary_switches_per_second"),
        NUMBER("run_queue_delay_share"),
        NUMBER("load_cpus"),
        NUMBER("device_interrupts_per_second"),
        NUMBER("foreign_packets_per_second"),
        NUMBER("foreign_softirq_share"),
        COUNT("thermal_throttles"),
        COUNT("stopped_ns"),
        COUNT("migrations"),
        COUNT("retransmitted_segments"),
        COUNT("lost_segments"),
        COUNT("retransmission_timeouts"),
        PLAIN("flags"),
        END,
};
static const struct bundle_field noise[] = {
        PLAIN("source"),
        PLAIN("irq_source"),
        NUMBER("observed_share"),
        COUNT("longest_interval_ns"),
        PLAIN("not_observed_reason"),
        NUMBERS("worst"),
        NUMBER("load_cpus"),
        NUMBER("worst_load_cpus"),
        COUNT("quota_throttled_periods"),
        COUNT("retransmitted_segments"),
        COUNT("lost_segments"),
        COUNT("retransmission_timeouts"),
        COUNT("stopped_ns"),
        COUNT("ksoftirqd_ns"),
        NUMBER("slowest_khz"),
        NUMBER("fastest_khz"),
        PLAIN("frequency_source"),
        COUNT("seconds_total"),
        COUNT("seconds_flagged"),
        OBJECT("seconds", second),
        END,
};
static const struct bundle_field clock_of_ends[] = {
        OF_ROLES(numbers),
        NUMBERS("offset_ns"),
        PLAIN("offset_ns_reason"),
        END,
};
static const struct bundle_field result[] = {
        OF_ENDS,
        NUMBER("ksoftirqd_ns_per_message"),
        NUMBER("both_ways_bytes_per_second"),
        NUMBER("cost_ns"),
        PLAIN("cost_of"),
        NUMBER("hop_ns"),
        NUMBER("pipe_overhead_ns"),
        OBJECT("latency_ns", kind_and_numbers),
        PLAIN("latency_reason"),
        OBJECT("latency_one_way_ns", kind_and_numbers),
        PLAIN("loop"),
        PLAIN("verify"),
        PLAIN("begun_at"),
        NUMBERS("stamp_cost"),
        PLAIN("stamp_cost_reason"),
        OBJECT("clock", clock_of_ends),
        COUNT("steady"),
        OBJECT("steadiness", steadiness),
        PLAIN("measured_by"),
        OF_ROLES(end),
        {"effective", BUNDLE_IN_FORCE, NULL},
        PLAIN("counted_by"),
        OBJECT("numa", numbers),
        OBJECT("noise", noise),
        PLAIN("noise_reason"),
        OBJECT("counters", by_role),
        OBJECT("threads", by_role),
        END,
};

static const struct bundle_field probe_other[] = {
        COUNT("thread"),         NUMBER("cpu"),         NUMBER("cpu_share"),
        COUNT("cost_ns"),        NUMBERS("getpid_ns"),  NUMBERS("memcpy_64k_ns"),
        NUMBERS("hand_over_ns"), NUMBERS("wake_up_ns"), END,
};
static const struct bundle_field probe_end[] = {
        NUMBER("cpu"),
        NUMBER("cpu_share"),
        COUNT("cost_ns"),
        NUMBERS("getpid_ns"),
        NUMBERS("memcpy_64k_ns"),
        NUMBERS("hand_over_ns"),
        NUMBERS("wake_up_ns"),
        OBJECT("others", probe_other),
        COUNT("others_left_out"),
        END,
};
static const struct bundle_field probe_ends[] = {OF_ROLES(probe_end), END};
static const struct bundle_field probe_change[] = {
        PLAIN("since"),  PLAIN("role"),   COUNT("thread"), NUMBER("cpu"),
        PLAIN("figure"), NUMBER("ratio"), COUNT("usual"),  END,
};
static const struct bundle_field probes[] = {OBJECT("before", probe_ends),
                                             OBJECT("after", probe_ends),
                                             NUMBERS("cpus"),
                                             NUMBERS("cpus_unprobed"),
                                             NUMBERS("cpus_compared"),
                                             COUNT("compared"),
                                             OBJECT("changes", probe_change),
                                             END};
static const struct bundle_field histogram[] = {PLAIN("sum_ns"), {"histogram", BUNDLE_TEXT, NULL}, END};

const struct bundle_field bundle_run[] = {
        {"point", BUNDLE_ANY, NULL},
        COUNT("repetition"),
        COUNT("block"),
        COUNT("rate"),
        COUNT("position"),
        PLAIN("state"),
        COUNT("attempt"),
        {"error", BUNDLE_ERROR, NULL},
        PLAIN("flags"),
        OBJECT("agents", agent),
        OBJECT("result", result),
        OBJECT("environment", environment),
        OBJECT("probes", probes),
        PLAIN("started_at"),
        PLAIN("finished_at"),
        OBJECT("latency_histogram", histogram),
        END,
};

/* Every figure of the table of results is an object of numbers. Ids are of one database. */
const struct bundle_field bundle_row[] = {
        {"point", BUNDLE_ANY, NULL},
        {"run_ids", BUNDLE_OUT, NULL},
        COUNT("rate"),
        OBJECT("latency_ns", kind_and_numbers),
        OBJECT("latency_one_way_ns", kind_and_numbers),
        OBJECT("latency_histogram", kind_and_numbers),
        PLAIN("loop"),
        PLAIN("verify"),
        PLAIN("counted_by"),
        OBJECT("reasons", plain),
        {"effective", BUNDLE_IN_FORCE, NULL},
        PLAIN("flags"),
        OBJECT("flag_runs", numbers),
        {"error", BUNDLE_ERROR, NULL},
        OTHERS(BUNDLE_NUMBERS),
        END,
};

static const struct bundle_field skipped[] = {{"point", BUNDLE_ANY, NULL}, PLAIN("reason"), END};

const struct bundle_field bundle_experiment[] = {
        {"name", BUNDLE_TEXT, NULL},
        PLAIN("state"),
        {"spec", BUNDLE_ANY, NULL},
        {"effective_spec", BUNDLE_ANY, NULL},
        {"error", BUNDLE_ERROR, NULL},
        OBJECT("progress", numbers),
        PLAIN("created_at"),
        PLAIN("started_at"),
        PLAIN("finished_at"),
        COUNT("seed"),
        OBJECT("skipped", skipped),
        PLAIN("version"),
        END,
};

/* Without the sizes of memory, which a virtual machine may be given more or less of: a run's environment has its own.
 */
static const struct bundle_field node[] = {COUNT("id"), NUMBERS("cpus"), COUNT("has_memory"), NUMBERS("distances"),
                                           END};
static const struct bundle_field cpu[] = {
        COUNT("id"), COUNT("online"), NUMBER("node"), NUMBER("package"), NUMBER("core"), NUMBERS("siblings"), END};
static const struct bundle_field cache[] = {COUNT("level"),      PLAIN("type"),   COUNT("size_bytes"),
                                            COUNT("line_bytes"), NUMBERS("cpus"), END};

const struct bundle_field bundle_topology[] = {
        COUNT("numa"),         COUNT("smt"),        COUNT("packages"),       COUNT("numa_balancing"),
        OBJECT("nodes", node), OBJECT("cpus", cpu), OBJECT("caches", cache), END,
};

/* Parameters of the kernel's command line that change what is measured. */
static const char *const parameters[] = {
        "cpuidle.governor",
        "cpuidle.off",
        "default_hugepagesz",
        "highres",
        "hugepages",
        "hugepagesz",
        "idle",
        "intel_idle.max_cstate",
        "intel_pstate",
        "amd_pstate",
        "irqaffinity",
        "isolcpus",
        "l1tf",
        "maxcpus",
        "mds",
        "mitigations",
        "nmi_watchdog",
        "nohz",
        "nohz_full",
        "nopti",
        "nosmt",
        "nospectre_v1",
        "nospectre_v2",
        "nowatchdog",
        "nr_cpus",
        "numa",
        "numa_balancing",
        "preempt",
        "processor.max_cstate",
        "psi",
        "pti",
        "rcu_nocb_poll",
        "rcu_nocbs",
        "retbleed",
        "skew_tick",
        "spectre_v2",
        "threadirqs",
        "transparent_hugepage",
        "tsc",
        "tsx",
};
/* Parts of a kernel's release that distributions give, beside numbers. */
static const char *const flavours[] = {"amd64", "arm64", "aws", "azure", "cloud", "gcp", "generic", "lowlatency", "rt"};
/* Hypervisors, as they introduce themselves, and what a bundle calls them. */
static const struct {
        const char *part, *make;
} makes[] = {{"none", "none"},         {"KVM", "KVM"},         {"QEMU", "QEMU"},
             {"VMware", "VMware"},     {"Xen", "Xen"},         {"xen", "Xen"},
             {"Microsoft", "Hyper-V"}, {"Hyper-V", "Hyper-V"}, {"VirtualBox", "VirtualBox"},
             {"Amazon", "Amazon EC2"}, {"Google", "Google"}};

/* ---- text ---- */

static bool is_listed(const char *word, size_t length, const char *const *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (strlen(list[i]) == length && strncmp(list[i], word, length) == 0)
                        return true;
        return false;
}

static bool is_plain(const char *text) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,:;()+-%|'\"";
        size_t n = strspn(text, allowed);
        return text[n] == '\0' && n <= PLAIN_MAX;
}

bool bundle_is_label(const char *text) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.-";
        size_t n = strspn(text, allowed);
        return n > 0 && text[0] != ' ' && text[n] == '\0' && n <= BUNDLE_LABEL_MAX;
}

/* A value of a parameter, too, has no path and no address in it: CPU lists and words alone. */
static void put_cmdline(struct json_writer *w, const char *line) {
        char text[1024] = "";
        size_t used = 0;
        for (const char *at = line; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
                size_t length = strcspn(at, " "), name = strcspn(at, " =");
                char word[256];
                if (!is_listed(at, name, parameters, ELEMENTS(parameters)) || length >= sizeof(word))
                        continue;
                (void) snprintf(word, sizeof(word), "%.*s", (int) (length > name ? length - name - 1 : 0),
                                at + name + 1);
                if (!is_plain(word) || used + length + 2 > sizeof(text))
                        continue;
                used += (size_t) snprintf(text + used, sizeof(text) - used, "%s%.*s", used ? " " : "", (int) length,
                                          at);
        }
        json_put_string(w, text);
}

/* Numbers, then what follows a dash and is a number or a flavour: 6.1.0-18-cloud-amd64. */
static void put_release(struct json_writer *w, const char *release) {
        size_t n = strspn(release, "0123456789.");
        for (size_t next; release[n] == '-'; n = next) {
                const char *part = release + n + 1;
                size_t length = strcspn(part, "-+~");
                next = n + 1 + length;
                if (length == 0 ||
                    (strspn(part, "0123456789.") < length && !is_listed(part, length, flavours, ELEMENTS(flavours))))
                        break;
        }
        json_put_string_n(w, release, n);
}

static void put_make(struct json_writer *w, const char *text) {
        const char *make = "other";
        for (size_t i = 0; i < ELEMENTS(makes); i++)
                if (strstr(text, makes[i].part)) {
                        make = makes[i].make;
                        break;
                }
        json_put_string(w, make);
}

static void put_error(struct json_writer *w, const char *error) {
        size_t n = strspn(error, "abcdefghijklmnopqrstuvwxyz0123456789_-");
        if (n > 0 && (error[n] == ':' || error[n] == '\0') && n <= PLAIN_MAX)
                json_put_string_n(w, error, n);
        else
                json_put_string(w, WITHHELD);
}

/* False: text of this form does not go in. */
static bool put_text(struct json_writer *w, const struct json *value, enum bundle_form form) {
        const char *text;
        if (json_as_string(value, &text) < 0)
                return false;
        switch (form) {
        case BUNDLE_PLAIN:
                json_put_string(w, is_plain(text) ? text : WITHHELD);
                return true;
        case BUNDLE_TEXT:
                json_put_canonical(w, value);
                return true;
        case BUNDLE_ERROR:
                put_error(w, text);
                return true;
        case BUNDLE_RELEASE:
                put_release(w, text);
                return true;
        case BUNDLE_CMDLINE:
                put_cmdline(w, text);
                return true;
        case BUNDLE_MAKE:
                put_make(w, text);
                return true;
        default:
                return false;
        }
}

/* ---- the walk ---- */

static bool is_name(const char *name) {
        size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-:.");
        return n > 0 && name[n] == '\0' && n <= 64;
}

/* Whether the value goes in; what it has inside is decided there. */
static bool fits(const struct json *value, enum bundle_form form) {
        int64_t integer;
        switch (json_type(value)) {
        case JSON_NULL:
                return form != BUNDLE_OUT;
        case JSON_STRING:
                return form == BUNDLE_ANY || (form >= BUNDLE_PLAIN && form <= BUNDLE_MAKE);
        case JSON_INTEGER:
                if (form == BUNDLE_COUNT)
                        return json_as_i64(value, &integer) == 0 && integer >= 0;
                return form != BUNDLE_OUT && form != BUNDLE_OBJECT && form != BUNDLE_IN_FORCE;
        case JSON_BOOL:
                return form != BUNDLE_OUT && form != BUNDLE_OBJECT && form != BUNDLE_IN_FORCE;
        case JSON_REAL:
                return form != BUNDLE_OUT && form != BUNDLE_COUNT && form != BUNDLE_OBJECT && form != BUNDLE_IN_FORCE;
        case JSON_ARRAY:
                return form != BUNDLE_OUT && form != BUNDLE_COUNT && form != BUNDLE_NUMBER;
        case JSON_OBJECT:
                return form == BUNDLE_NUMBERS || form >= BUNDLE_ANY;
        }
        return false;
}

static const struct bundle_field *find_row(const struct bundle_field *fields, const char *name) {
        static const struct bundle_field reason = PLAIN("");
        static const char suffix[] = "_reason";
        size_t length = strlen(name), stem = length > sizeof(suffix) - 1 ? length - (sizeof(suffix) - 1) : 0;
        bool is_reason = stem > 0 && strcmp(name + stem, suffix) == 0;
        const struct bundle_field *row = fields;
        for (; row->name && row->name[0] != '*'; row++) {
                if (strcmp(row->name, name) == 0)
                        return row;
                if (is_reason && row->form != BUNDLE_OUT && strlen(row->name) == stem &&
                    strncmp(row->name, name, stem) == 0)
                        return &reason;
        }
        return row->name && is_name(name) ? row : NULL;
}

static bool is_in_force(const char *name) {
        const char *known;
        for (size_t i = 0; (known = service_effective_name(i)); i++)
                if (strcmp(known, name) == 0)
                        return true;
        return false;
}

static void put_value(struct json_writer *w, const struct json *value, const struct bundle_field *row);

/* Numbers by role or by name are in force, too: `threads`. */
static void put_in_force(struct json_writer *w, const struct json *value) {
        static const struct bundle_field setting = PLAIN(""), settings = NUMBERS("");
        const struct json *first = json_type(value) == JSON_ARRAY ? json_first(value) : value;
        put_value(w, value, first && json_type(first) == JSON_OBJECT ? &settings : &setting);
}

static void put_members(struct json_writer *w, const struct json *object, const struct bundle_field *row) {
        _cleanup_free_ const struct json **members = NULL;
        size_t n = json_sorted_members(w, object, &members);
        json_object_begin(w);
        for (size_t i = 0; i < n; i++) {
                const char *name = json_key(members[i]);
                const struct bundle_field *member = row->form == BUNDLE_OBJECT ? find_row(row->members, name) : row;
                if (row->form == BUNDLE_NUMBERS && !is_name(name))
                        continue;
                if (row->form == BUNDLE_IN_FORCE) {
                        if (!is_in_force(name))
                                continue;
                        json_put_key(w, name);
                        put_in_force(w, members[i]);
                } else if (member && fits(members[i], member->form)) {
                        json_put_key(w, name);
                        put_value(w, members[i], member);
                }
        }
        json_object_end(w);
}

/* Depth is bounded: the tree came through json_parse(). */
static void put_value(struct json_writer *w, const struct json *value, const struct bundle_field *row) {
        if (row->form == BUNDLE_ANY || json_type(value) == JSON_NULL)
                return json_put_canonical(w, value);
        if (json_type(value) == JSON_OBJECT)
                return put_members(w, value, row);
        if (json_type(value) == JSON_ARRAY) {
                json_array_begin(w);
                for (const struct json *i = json_first(value); i; i = json_next(i))
                        if (fits(i, row->form))
                                put_value(w, i, row);
                return json_array_end(w);
        }
        if (!put_text(w, value, row->form))
                json_put_canonical(w, value);
}

void bundle_put(struct json_writer *w, const struct json *object, const struct bundle_field *fields) {
        const struct bundle_field whole = OBJECT("", fields);
        if (json_type(object) == JSON_OBJECT)
                put_members(w, object, &whole);
        else if (w->error == 0)
                w->error = -EBADMSG;
}
