/* SPDX-License-Identifier: MIT */

/* The route table. */

#include "api/handle/routes.h"

#include "api/handle/handlers.h"
#include "schema/util.h"

#include <string.h>

static const struct parameter list_parameters[] = {
        {"state", "{\"enum\": [\"queued\", \"running\", \"done\", \"failed\", \"cancelled\"]}",
         "Only experiments in this state."},
        {"q", "{\"type\": \"string\", \"minLength\": 1, \"maxLength\": 100}",
         "Only experiments whose name or spec contains this, in upper or lower case."},
        {"limit", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000, \"default\": 50}",
         "Items in one answer, at most."},
        {"cursor", "{\"type\": \"string\"}", "The \"next\" of the answer before."},
        {0},
};

static const struct parameter runs_parameters[] = {
        {"limit", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000, \"default\": 1000}",
         "Items in one answer, at most."},
        {"cursor", "{\"type\": \"string\"}", "The \"next\" of the answer before."},
        {0},
};

static const struct parameter samples_parameters[] = {
        {"limit", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 10000}",
         "Samples in one answer, at most. Default: 1000 as JSON; as NDJSON or CSV, all there are."},
        {"cursor", "{\"type\": \"string\"}", "The \"next\" of the answer before."},
        {"histogram", "{\"enum\": [\"0\", \"1\"], \"default\": \"0\"}",
         "1: with each latency its histogram, HdrHistogram V2 compressed, in base64."},
        {0},
};

static const struct media experiment_media[] = {{"application/json", "Experiment"}, {0}};
static const struct media experiments_media[] = {{"application/json", "ExperimentList"}, {0}};
static const struct media runs_media[] = {{"application/json", "RunList"}, {0}};
static const struct media run_media[] = {{"application/json", "Run"}, {0}};
static const struct media results_media[] = {{"application/json", "ResultTable"}, {"text/csv", NULL}, {0}};
static const struct media samples_media[] = {
        {"application/json", "SampleList"}, {"application/x-ndjson", "Sample"}, {"text/csv", NULL}, {0}};
static const struct media events_media[] = {{"text/event-stream", NULL}, {0}};
static const struct media presets_media[] = {{"application/json", "PresetList"}, {0}};
static const struct media transports_media[] = {{"application/json", "TransportList"}, {0}};
static const struct media topology_media[] = {{"application/json", "Topology"}, {0}};
static const struct media environment_media[] = {{"application/json", "Environment"}, {0}};
static const struct media health_media[] = {{"application/json", "Health"}, {0}};
static const struct media object_media[] = {{"application/json", "AnyObject"}, {0}};
static const struct media metrics_media[] = {{"text/plain", NULL}, {0}};
static const struct media page_media[] = {{"text/html", NULL}, {0}};
static const struct media asset_media[] = {{"application/octet-stream", NULL}, {0}};

const struct route routes[] = {
        {METHOD_GET, "/", handle_dashboard, "getDashboard", "The dashboard", .status = 200, .media = page_media},
        {METHOD_GET, "/assets/{path}", handle_asset, "getAsset", "A file of the dashboard", .status = 200,
         .media = asset_media, .problems = "404"},
        {METHOD_POST, "/experiments", handle_submit, "submitExperiment",
         "Submit an experiment: parsed, checked against this host, stored and queued", .writes = true,
         .body = BODY_JSON, .body_schema = "ExperimentSpec", .status = 201, .media = experiment_media,
         .problems = "400 401 411 413 415 422 503"},
        {METHOD_GET, "/experiments", handle_experiments, "listExperiments", "Experiments, newest first",
         .parameters = list_parameters, .status = 200, .media = experiments_media, .problems = "400 503"},
        {METHOD_GET, "/experiments/{id}", handle_experiment, "getExperiment", "An experiment", .status = 200,
         .media = experiment_media, .problems = "404 503"},
        {METHOD_DELETE, "/experiments/{id}", handle_delete, "deleteExperiment",
         "Forget an experiment that does not run", .writes = true, .status = 204, .problems = "401 404 409 503"},
        {METHOD_POST, "/experiments/{id}/cancel", handle_cancel, "cancelExperiment", "Stop an experiment",
         .writes = true, .body = BODY_OPTIONAL, .status = 200, .media = experiment_media,
         .problems = "401 404 409 503"},
        {METHOD_GET, "/experiments/{id}/runs", handle_runs, "listRuns",
         "An experiment's runs, in the order they run in", .parameters = runs_parameters, .status = 200,
         .media = runs_media, .problems = "400 404 503"},
        {METHOD_GET, "/experiments/{id}/results", handle_results, "getResults", "A row per point, over its repetitions",
         .status = 200, .media = results_media, .problems = "404 406 503"},
        {METHOD_GET, "/experiments/{id}/samples", handle_experiment_samples, "listExperimentSamples",
         "What each agent did in each second, of all runs, as it was recorded", .parameters = samples_parameters,
         .status = 200, .media = samples_media, .problems = "400 404 406 503"},
        {METHOD_GET, "/experiments/{id}/events", handle_experiment_events, "streamExperimentEvents",
         "Server-sent events \"experiment\", \"run\" and \"sample\" from the beginning (or after Last-Event-ID), and "
         "\"end\" "
         "when the experiment has ended and everything was sent",
         .status = 200, .media = events_media, .problems = "400 404 503"},
        {METHOD_GET, "/runs/{id}", handle_run, "getRun", "A run", .status = 200, .media = run_media,
         .problems = "404 503"},
        {METHOD_GET, "/runs/{id}/samples", handle_run_samples, "listRunSamples",
         "What each agent did in each second of a run", .parameters = samples_parameters, .status = 200,
         .media = samples_media, .problems = "400 404 406 503"},
        {METHOD_GET, "/presets", handle_presets, "listPresets", "Named specs that ship with ipclab", .status = 200,
         .media = presets_media, .problems = "503"},
        {METHOD_GET, "/transports", handle_transports, "listTransports",
         "What this host supports, each limit, and why something is unavailable", .status = 200,
         .media = transports_media, .problems = "503"},
        {METHOD_GET, "/topology", handle_topology, "getTopology", "CPUs, cores, caches and nodes", .status = 200,
         .media = topology_media, .problems = "503"},
        {METHOD_GET, "/environment", handle_environment, "getEnvironment", "The host's fingerprint, taken now",
         .status = 200, .media = environment_media, .problems = "503"},
        {METHOD_GET, "/events", handle_events, "streamEvents",
         "Server-sent events \"experiment\" and \"run\" of all experiments, from now (or after Last-Event-ID)",
         .status = 200, .media = events_media, .problems = "400 503"},
        {METHOD_GET, "/health", handle_health, "getHealth",
         "Whether the daemon is well; 503 with the same body when not", .status = 200, .also = 503,
         .media = health_media},
        {METHOD_GET, "/metrics", handle_metrics, "getMetrics", "The same as Prometheus text", .status = 200,
         .media = metrics_media},
        {METHOD_GET, "/openapi.json", handle_openapi, "getOpenapi", "This description", .status = 200,
         .media = object_media},
};
const size_t n_routes = ELEMENTS(routes);

/* One pattern segment against one decoded path segment. */
static bool segment_matches(const char *pattern, size_t length, const char *segment, int64_t *id) {
        if (length == 4 && strncmp(pattern, "{id}", 4) == 0)
                return decimal_parse(segment, id) == 0 && *id > 0;
        return strlen(segment) == length && strncmp(pattern, segment, length) == 0;
}

static bool pattern_matches(const char *pattern, const struct request *q, int64_t *id) {
        size_t i = 0;
        for (pattern++; *pattern; i++) {
                size_t length = strcspn(pattern, "/");
                if (length == 6 && strncmp(pattern, "{path}", 6) == 0)
                        return i < q->n_segments;
                if (i >= q->n_segments || !segment_matches(pattern, length, q->segments[i], id))
                        return false;
                pattern += length;
                pattern += *pattern == '/';
        }
        return i == q->n_segments && strcmp(q->path, "*") != 0;
}

const struct route *route_match(struct request *q, unsigned *ret_allowed) {
        enum method wanted = q->method == METHOD_HEAD ? METHOD_GET : q->method;
        *ret_allowed = 0;
        for (size_t i = 0; i < n_routes; i++) {
                int64_t id = 0;
                if (!pattern_matches(routes[i].pattern, q, &id))
                        continue;
                *ret_allowed |= 1u << routes[i].method;
                if (routes[i].method == METHOD_GET)
                        *ret_allowed |= 1u << METHOD_HEAD;
                if (routes[i].method == wanted) {
                        q->id = id;
                        return &routes[i];
                }
        }
        return NULL;
}

void route_print_allow(char ret[static ALLOW_MAX], unsigned allowed) {
        size_t n = 0;
        for (size_t i = 0; i < METHOD_OPTIONS; i++)
                if (allowed & 1u << i)
                        n += (size_t) snprintf(ret + n, ALLOW_MAX - n, "%s, ", method_name((enum method) i));
        snprintf(ret + n, ALLOW_MAX - n, "OPTIONS");
}
