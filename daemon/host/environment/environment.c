/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of the host: taken here from its two halves (facts and state) and shown as JSON. Called by the runner
 * around each run, and by GET /environment.
 */

#include "daemon/host/environment/environment-internal.h"

#include "daemon/log.h"
#include "schema/facts.h"
#include "schema/json/json.h"
#include "schema/spec/spec.h"
#include "schema/util.h"

#include <string.h>

void environment_free(struct environment *e) {
        if (!e)
                return;
        for (size_t i = 0; i < e->n_facts; i++)
                free(e->facts[i].text);
        for (size_t i = 0; i < e->n_mitigations; i++) {
                free(e->mitigations[i].name);
                free(e->mitigations[i].text);
        }
        free(e->facts);
        free(e->mitigations);
        free(e->cpus);
        free(e->nodes);
        free(e);
}

int environment_take(const char *root, const struct topology *t, struct environment **ret) {
        _cleanup_(hostfs_deinit) struct hostfs h = {};

        int r = hostfs_init(&h, root);
        if (r < 0) {
                log_error("Cannot open the root %s of the environment: %s.", root, strerrordesc_np(-r));
                return r;
        }
        struct environment *e = calloc(1, sizeof(*e));
        if (!e)
                return -ENOMEM;
        r = environment_take_facts(&h, h.root_fd < 0, t, e);
        if (r == 0)
                r = environment_take_state(&h, t, e);
        if (r < 0) {
                environment_free(e);
                return r;
        }
        *ret = e;
        return 0;
}

static void put_facts(struct json_writer *w, const struct environment *e) {
        for (size_t i = 0; i < e->n_facts; i++) {
                const struct fact *f = &e->facts[i];
                if (f->reason[0])
                        json_member_null(w, f->key);
                else if (f->is_number)
                        json_member_i64(w, f->key, f->number);
                else
                        json_member_string(w, f->key, f->text);
        }
        json_put_key(w, "mitigations");
        if (e->mitigations_reason[0]) {
                json_put_null(w);
                return;
        }
        json_object_begin(w);
        for (size_t i = 0; i < e->n_mitigations; i++)
                json_member_string(w, e->mitigations[i].name, e->mitigations[i].text);
        json_object_end(w);
}

static void put_host_state(struct json_writer *w, const struct environment *e) {
        json_member_double(w, "uptime_seconds", (double) e->uptime_ns / (double) NSEC_PER_SEC);
        json_member_array(w, "load");
        for (size_t i = 0; i < ELEMENTS(e->load); i++)
                json_put_double(w, e->load[i]);
        json_array_end(w);
        json_member_u64(w, "memory_total_bytes", e->memory_total_bytes);
        json_member_u64(w, "memory_available_bytes", e->memory_available_bytes);
        json_member_u64(w, "memory_free_bytes", e->memory_free_bytes);
}

/* Milliseconds, as nanoseconds of a machine that is up for 104 days no longer fit a JSON reader's 2^53; the kernel
 * counts in steps of 10 ms anyway. */
static void put_cpu(struct json_writer *w, const struct cpu_state *c) {
        json_object_begin(w);
        json_member_i64(w, "id", c->id);
        json_member_u64(w, "user_ms", c->user_ns / NSEC_PER_MSEC);
        json_member_u64(w, "system_ms", c->system_ns / NSEC_PER_MSEC);
        json_member_u64(w, "idle_ms", c->idle_ns / NSEC_PER_MSEC);
        json_member_u64(w, "iowait_ms", c->iowait_ns / NSEC_PER_MSEC);
        json_member_u64(w, "irq_ms", c->irq_ns / NSEC_PER_MSEC);
        json_member_u64(w, "softirq_ms", c->softirq_ns / NSEC_PER_MSEC);
        json_member_u64(w, "steal_ms", c->steal_ns / NSEC_PER_MSEC);
        json_member_u64_if(w, "interrupts", c->has_interrupts, c->interrupts);
        json_member_u64_if(w, "device_interrupts", c->has_interrupts, c->device_interrupts);
        json_member_u64_if(w, "throttles", c->has_throttles, c->throttles);
        json_member_u64_if(w, "frequency_khz", c->has_frequency, c->frequency_khz);
        json_object_end(w);
}

static void put_node(struct json_writer *w, const struct node_state *n) {
        json_object_begin(w);
        json_member_i64(w, "id", n->id);
        json_member_u64_if(w, "numa_hit", n->known, n->hit);
        json_member_u64_if(w, "numa_miss", n->known, n->miss);
        json_member_u64_if(w, "numa_foreign", n->known, n->foreign);
        json_member_u64_if(w, "interleave_hit", n->known, n->interleave_hit);
        json_member_u64_if(w, "local_node", n->known, n->local);
        json_member_u64_if(w, "other_node", n->known, n->other);
        json_object_end(w);
}

static void put_counters(struct json_writer *w, const struct environment *e) {
        json_member_array(w, "cpus");
        for (size_t i = 0; i < e->n_cpus; i++)
                put_cpu(w, &e->cpus[i]);
        json_array_end(w);
        json_member_array(w, "nodes");
        for (size_t i = 0; i < e->n_nodes; i++)
                put_node(w, &e->nodes[i]);
        json_array_end(w);
        json_member_object(w, "vmstat");
        for (size_t i = 0; i < e->n_vmstat; i++)
                json_member_u64_if(w, e->vmstat[i].key, e->vmstat[i].known, e->vmstat[i].value);
        json_object_end(w);
}

static void member_reason(struct json_writer *w, const char *key, const char *reason) {
        if (reason[0])
                json_member_string(w, key, reason);
}

/* Every null above has its reason here, by the same name. */
static void put_reasons(struct json_writer *w, const struct environment *e) {
        json_member_object(w, "reasons");
        for (size_t i = 0; i < e->n_facts; i++)
                member_reason(w, e->facts[i].key, e->facts[i].reason);
        member_reason(w, "mitigations", e->mitigations_reason);
        member_reason(w, "interrupts", e->interrupts_reason);
        member_reason(w, "device_interrupts", e->interrupts_reason);
        member_reason(w, "throttles", e->throttles_reason);
        member_reason(w, "frequency_khz", e->frequency_reason);
        for (size_t i = 0; i < e->n_nodes; i++)
                if (!e->nodes[i].known) {
                        member_reason(w, "numastat", "a node has no numastat file, or one without its six counters");
                        break;
                }
        for (size_t i = 0; i < e->n_vmstat; i++)
                if (!e->vmstat[i].known)
                        member_reason(w, e->vmstat[i].key, "/proc/vmstat of this kernel has no such counter");
        json_object_end(w);
}

int environment_to_json(const struct environment *e, char **ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        size_t length = 0;

        json_object_begin(&w);
        put_facts(&w, e);
        put_host_state(&w, e);
        put_counters(&w, e);
        put_reasons(&w, e);
        json_object_end(&w);
        return json_writer_steal(&w, ret, &length);
}

/* Its facts and mitigations again. A fact without a key is one that the writer's version did not have. */
static int parse_fact(const struct json *member, const struct fact_row *row, struct fact *ret) {
        const char *text = NULL;
        *ret = (struct fact){.is_number = row->form == FACT_NUMBER};
        int r = 0;
        if (member && json_type(member) == JSON_NULL)
                (void) snprintf(ret->reason, sizeof(ret->reason), "it was not known");
        else if (member && ret->is_number)
                r = json_as_i64(member, &ret->number);
        else if (member) {
                r = json_as_string(member, &text);
                ret->text = r == 0 ? strdup(text) : NULL;
                if (r == 0 && !ret->text)
                        return -ENOMEM;
        }
        ret->key = member ? row->name : NULL;
        return r < 0 ? -EBADMSG : 0;
}

static int parse_mitigations(const struct json *object, struct environment *e) {
        size_t n = object && json_type(object) == JSON_OBJECT ? json_length(object) : 0;
        if (n == 0) {
                (void) snprintf(e->mitigations_reason, sizeof(e->mitigations_reason), "they were not known");
                return 0;
        }
        e->mitigations = calloc(n, sizeof(e->mitigations[0]));
        if (!e->mitigations)
                return -ENOMEM;
        for (const struct json *i = json_first(object); i; i = json_next(i)) {
                const char *text = NULL;
                if (json_as_string(i, &text) < 0)
                        return -EBADMSG;
                struct mitigation *m = &e->mitigations[e->n_mitigations++];
                *m = (struct mitigation){.name = strdup(json_key(i)), .text = strdup(text)};
                if (!m->name || !m->text)
                        return -ENOMEM;
        }
        return 0;
}

static int parse_settings(const struct json *snapshot, struct environment *e) {
        if (!snapshot || json_type(snapshot) != JSON_OBJECT)
                return -EBADMSG;
        e->facts = calloc(FACT_COUNT, sizeof(e->facts[0]));
        if (!e->facts)
                return -ENOMEM;
        e->n_facts = FACT_COUNT;
        int r = 0;
        for (size_t i = 0; r == 0 && i < FACT_COUNT; i++)
                r = parse_fact(json_get(snapshot, fact_rows[i].name), &fact_rows[i], &e->facts[i]);
        return r == 0 ? parse_mitigations(json_get(snapshot, "mitigations"), e) : r;
}

int environment_parse_before(const char *document, struct environment **ret) {
        _cleanup_(json_freep) struct json *root = NULL;
        struct environment *e = calloc(1, sizeof(*e));
        if (!e)
                return -ENOMEM;
        int r = json_parse_written(document, strlen(document), &root);
        if (r == 0)
                r = parse_settings(json_type(root) == JSON_OBJECT ? json_get(root, "before") : NULL, e);
        if (r < 0) {
                environment_free(e);
                return r;
        }
        *ret = e;
        return 0;
}
