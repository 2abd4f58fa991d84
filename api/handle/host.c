/* SPDX-License-Identifier: MIT */

/* Capabilities of this build and host, and the daemon's state: presets, transports, topology, environment, noise,
 * health, all of these as one document, and metrics. */

#include "api/handle/handlers.h"
#include "api/http/text.h"
#include "schema/util.h"

#include <string.h>

/* The daemon's documents: each has a route, and GET /host has all of them. */
typedef int document(struct service *s, char **ret, struct refusal *r);
static const struct {
        const char *key;
        document *read;
} documents[] = {{"environment", service_environment_json},
                 {"noise", service_noise_json},
                 {"topology", service_topology_json},
                 {"transports", service_transports_json},
                 {"presets", service_presets_json}};

HANDLER(handle_document) {
        size_t i = 0;
        while (i < ELEMENTS(documents) && strcmp(documents[i].key, q->segments[0]) != 0)
                i++;
        char *json = NULL;
        int k = i < ELEMENTS(documents) ? documents[i].read(a->service, &json, r) : -ENOENT;
        if (k >= 0)
                response_body(p, 200, "application/json", json, strlen(json));
        return k;
}

static void put_check(struct json_writer *w, const struct service_health *h) {
        json_put_key(w, "checking");
        if (h->pages_checked == h->pages_to_check) {
                json_put_null(w);
                return;
        }
        json_object_begin(w);
        json_member_u64(w, "pages_checked", h->pages_checked);
        json_member_u64(w, "pages_total", h->pages_to_check);
        json_object_end(w);
}

static void put_health(struct json_writer *w, struct api *a, const struct service_health *h) {
        json_object_begin(w);
        json_member_string(w, "status", h->ok ? "ok" : "failing");
        json_member_string(w, "problem", h->ok ? NULL : h->problem);
        json_member_string(w, "leftover", h->leftover[0] ? h->leftover : NULL);
        pthread_mutex_lock(&a->tcp_problem_lock);
        json_member_string(w, "tcp_problem", a->tcp_problem);
        pthread_mutex_unlock(&a->tcp_problem_lock);
        json_member_string(w, "version", h->version);
        json_member_string(w, "store", h->store);
        json_member_i64_if(w, "exported_change", h->exported_change >= 0, h->exported_change);
        json_member_u64(w, "damaged_pages", h->damaged_pages);
        put_check(w, h);
        json_member_i64(w, "uptime_seconds", h->uptime_seconds);
        json_member_i64_if(w, "running_experiment", h->running_experiment > 0, h->running_experiment);
        json_member_i64_if(w, "running_run", h->running_run > 0, h->running_run);
        json_member_u64(w, "experiments_queued", h->experiments_queued);
        json_member_u64(w, "runs_done", h->runs_done);
        json_member_u64(w, "runs_failed", h->runs_failed);
        json_member_u64(w, "samples", h->samples);
        json_member_u64(w, "database_bytes", h->database_bytes);
        json_member_u64(w, "cpu_ns", h->cpu_ns);
        json_member_u64(w, "rss_bytes", h->rss_bytes);
        json_object_end(w);
}

HANDLER(handle_health) {
        struct service_health h = {0};
        (void) q;
        int k = service_health(a->service, &h, r);
        if (k < 0)
                return k;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        put_health(&w, a, &h);
        return response_json(p, h.ok ? 200 : 503, &w);
}

static int put_document(struct json_writer *w, const char *key, document *read, struct api *a, struct refusal *r) {
        _cleanup_free_ char *json = NULL;
        int k = read(a->service, &json, r);
        if (k >= 0)
                json_member_raw(w, key, json);
        return k;
}

HANDLER(handle_host) {
        struct service_health h = {0};
        (void) q;
        int k = service_health(a->service, &h, r);
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        json_put_key(&w, "health");
        put_health(&w, a, &h);
        for (size_t i = 0; k >= 0 && i < ELEMENTS(documents); i++)
                k = put_document(&w, documents[i].key, documents[i].read, a, r);
        json_object_end(&w);
        return k < 0 ? k : response_json(p, 200, &w);
}

static void metric(struct text *t, const char *name, const char *type, const char *help, uint64_t value) {
        text_printf(t, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", name, help, name, type, name, value);
}

static void metric_seconds(struct text *t, const char *name, const char *type, const char *help, uint64_t ns) {
        text_printf(t, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 ".%09" PRIu64 "\n", name, help, name, type, name,
                    (uint64_t) (ns / NSEC_PER_SEC), (uint64_t) (ns % NSEC_PER_SEC));
}

static void put_hold(struct text *t, const char *unit, const char *operation, uint64_t ns) {
        text_printf(t, "ipclab_main_loop_longest_%s{operation=\"%s\"} %" PRIu64 ".%09" PRIu64 "\n", unit, operation,
                    (uint64_t) (ns / NSEC_PER_SEC), (uint64_t) (ns % NSEC_PER_SEC));
}

static void hold_metrics(struct text *t, const struct service_health *h) {
        text_puts(t,
                  "# HELP ipclab_main_loop_longest_seconds The longest time for which one event held the main loop.\n"
                  "# TYPE ipclab_main_loop_longest_seconds gauge\n");
        for (enum service_operation i = 0; i < OPERATION_COUNT; i++)
                put_hold(t, "seconds", service_operation_name(i), h->holds[i].longest_ns);
        text_puts(t, "# HELP ipclab_main_loop_longest_cpu_seconds The most CPU time that one event took of the main "
                     "loop's thread.\n# TYPE ipclab_main_loop_longest_cpu_seconds gauge\n");
        for (enum service_operation i = 0; i < OPERATION_COUNT; i++)
                put_hold(t, "cpu_seconds", service_operation_name(i), h->holds[i].longest_cpu_ns);
}

static void daemon_metrics(struct text *t, const struct service_health *h) {
        text_printf(t,
                    "# HELP ipclab_build_info The version that runs.\n# TYPE ipclab_build_info gauge\n"
                    "ipclab_build_info{version=\"%s\"} 1\n",
                    h->version);
        metric(t, "ipclab_healthy", "gauge", "1 when the daemon is well.", h->ok);
        metric(t, "ipclab_uptime_seconds", "gauge", "Since the daemon's start.", (uint64_t) h->uptime_seconds);
        metric(t, "ipclab_run_active", "gauge", "1 while a run is under way.", h->running_run > 0);
        metric(t, "ipclab_experiments_queued", "gauge", "Experiments that wait.", h->experiments_queued);
        metric(t, "ipclab_stored_runs_done", "gauge", "Stored runs that are done.", h->runs_done);
        metric(t, "ipclab_stored_runs_failed", "gauge", "Stored runs that failed.", h->runs_failed);
        metric(t, "ipclab_stored_samples", "gauge", "Stored samples.", h->samples);
        metric(t, "ipclab_database_bytes", "gauge", "Size of the database.", h->database_bytes);
        metric(t, "ipclab_database_damaged_pages", "gauge", "Pages that did not match their checksum since the start.",
               h->damaged_pages);
        metric(t, "ipclab_database_unchecked_pages", "gauge", "Pages still to be checked after an unclean end.",
               h->pages_to_check - h->pages_checked);
        metric_seconds(t, "ipclab_cpu_seconds_total", "counter", "CPU time that the daemon used.", h->cpu_ns);
        hold_metrics(t, h);
        metric(t, "ipclab_main_loop_slow_total", "counter", "Events that held the main loop for more than 50 ms.",
               h->loop_slow);
        metric(t, "ipclab_resident_memory_bytes", "gauge", "Memory that the daemon holds.", h->rss_bytes);
}

static void api_metrics(struct text *t, struct api *a) {
        static const char *const listeners[LISTENER_COUNT] = {[LISTENER_TCP] = "tcp", [LISTENER_LOCAL] = "unix"};
        text_puts(t, "# HELP ipclab_http_responses_total HTTP responses by class of status.\n"
                     "# TYPE ipclab_http_responses_total counter\n");
        for (unsigned i = 2; i < ELEMENTS(a->responses); i++)
                text_printf(t, "ipclab_http_responses_total{class=\"%uxx\"} %" PRIu64 "\n", i,
                            (uint64_t) atomic_load(&a->responses[i]));
        text_puts(t, "# HELP ipclab_http_connections Open connections.\n# TYPE ipclab_http_connections gauge\n");
        for (unsigned i = 0; i < LISTENER_COUNT; i++)
                text_printf(t, "ipclab_http_connections{listener=\"%s\"} %zu\n", listeners[i],
                            http_used(a->listeners[i], PEER_CONNECTIONS));
        text_puts(t, "# HELP ipclab_event_streams Open event streams.\n# TYPE ipclab_event_streams gauge\n");
        for (unsigned i = 0; i < LISTENER_COUNT; i++)
                text_printf(t, "ipclab_event_streams{listener=\"%s\"} %zu\n", listeners[i],
                            http_used(a->listeners[i], PEER_STREAMS));
}

HANDLER(handle_metrics) {
        struct service_health h = {0};
        _cleanup_(text_deinit) struct text t = {0};
        (void) q;
        int k = service_health(a->service, &h, r);
        if (k < 0)
                return k;
        daemon_metrics(&t, &h);
        api_metrics(&t, a);
        if (t.error < 0)
                return t.error;
        response_body(p, 200, "text/plain; version=0.0.4; charset=utf-8", util_steal(&t.data), t.length);
        return 0;
}

HANDLER(handle_openapi) {
        (void) q;
        (void) r;
        response_body(p, 200, "application/json", a->openapi, a->openapi_length);
        p->borrowed = true;
        return 0;
}
