/* SPDX-License-Identifier: MIT */

#include "api/handle/route/routes.h"

#include "api/handle/bundle/bundle-fields.h"
#include "api/handle/handlers.h"
#include "schema/util.h"

#include <string.h>

static const struct parameter dashboard_parameters[] = {
        {"present", "{\"enum\": [\"\"]}", "For a wall, without a value: the page shows its view alone, larger."},
        {0},
};

static const struct parameter list_parameters[] = {
        {"state", "{\"enum\": [\"queued\", \"running\", \"done\", \"failed\", \"cancelled\"]}",
         "Only experiments in this state."},
        {"q",
         "{\"type\": \"string\", \"minLength\": 1, \"maxLength\": 100, \"pattern\": "
         "\"^[^\\\\u0000-\\\\u001f\\\\u007f]*$\"}",
         "Only experiments whose name or spec contains this, in upper or lower case. In a spec of more than 4096 "
         "bytes, its first 2048 and the texts in it are searched, as many as 4096 bytes hold."},
        {"limit", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000, \"default\": 50}",
         "Items in one answer, at most."},
        {"cursor", "{\"type\": \"string\", \"pattern\": \"^e-(0|[1-9][0-9]{0,17})$\"}",
         "The \"next\" of the answer before."},
        {0},
};

static const struct parameter submit_parameters[] = {
        {"dry_run", "{\"enum\": [\"true\", \"false\"], \"default\": \"false\"}",
         "true: nothing is stored, an Idempotency-Key neither; the answer is 200 and a Plan."},
        {0},
};

static const struct parameter results_parameters[] = {
        {"columns", "{\"enum\": [\"usual\", \"all\"], \"default\": \"usual\"}",
         "The columns of the CSV. usual: about two dozen, which are the main fields of the point and those that have "
         "another value "
         "than the standard one, the medians of the usual figures (x-usual in ResultFigures) that its workloads can "
         "have, of a study's preset also its own figures in its own units, flags and provenance; all: every statistic "
         "of every figure, how much runs depend on those before them, what was in force, and in how many runs each "
         "flag is."},
        {"histogram", "{\"enum\": [\"0\", \"1\"], \"default\": \"0\"}",
         "1: with each row the latencies of all its done runs together: HdrHistogram V2 compressed, in base64, and as "
         "JSON their percentiles at log-nines."},
        {0},
};

static const struct parameter runs_parameters[] = {
        {"limit", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000}",
         "Items in one answer, at most. Default: 50 as JSON; as CSV, all there are."},
        {"cursor", "{\"type\": \"string\", \"pattern\": \"^r-(0|[1-9][0-9]{0,17})$\"}",
         "The \"next\" of the answer before."},
        {0},
};

static const struct parameter samples_parameters[] = {
        {"limit", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 10000}",
         "Samples in one answer, at most. Default: 1000 as JSON; as NDJSON or CSV, all there are."},
        {"cursor", "{\"type\": \"string\", \"pattern\": \"^s-(0|[1-9][0-9]{0,17})$\"}",
         "The \"next\" of the answer before."},
        {"histogram", "{\"enum\": [\"0\", \"1\"], \"default\": \"0\"}",
         "1: with each latency its histogram, HdrHistogram V2 compressed, in base64."},
        {0},
};

static const struct parameter bundle_parameters[] = {
        {"host", BUNDLE_LABEL_SCHEMA, "A label for this host, which the bundle then has; without one it has none."},
        {0},
};

static const struct parameter take_parameters[] = {
        {"sha256", "{\"type\": \"string\", \"pattern\": \"^[0-9a-f]{64}$\"}",
         "The SHA-256 of the JSON, as the file's name has it. Must be given."},
        {0},
};

static const struct parameter compare_parameters[] = {
        {"baseline", "{\"$ref\": \"#/components/schemas/Compared\"}",
         "An experiment's id, or the name of a baseline; with an axis, the value of it that the other is held "
         "against."},
        {"candidate", "{\"$ref\": \"#/components/schemas/Compared\"}", "Likewise."},
        {"experiment", "{\"type\": \"integer\", \"minimum\": 1}", "With an axis: the experiment that has both values."},
        {"axis", "{\"$ref\": \"#/components/schemas/AxisName\"}",
         "Compare two values of this axis within one experiment: a word, a number, or a placement's JSON."},
        {"delta", "{\"type\": \"number\", \"exclusiveMinimum\": 0, \"exclusiveMaximum\": 1, \"default\": 0.03}",
         "A ratio whose 90 % interval lies within 1 ± delta is called equivalent."},
        {"force", "{\"enum\": [\"true\", \"false\"], \"default\": \"false\"}",
         "Compare across unlike environments, too; the answer then has environment.forced."},
        {0},
};

static const struct parameter history_parameters[] = {
        {"limit", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000, \"default\": 100}",
         "Experiments, at most: the newest."},
        {0},
};

static const struct parameter advice_parameters[] = {
        {"message_size", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1073741824, \"default\": 4096}",
         "Bytes of a message."},
        {"workload", "{\"enum\": [\"stream\", \"pingpong\"], \"default\": \"stream\"}", "What is done with it."},
        {"placement",
         "{\"enum\": [\"default\", \"same-cpu\", \"same-core\", \"same-node\", \"cross-node\"], \"default\": "
         "\"default\"}",
         "Where the two ends are."},
        {"threads", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1024, \"default\": 1}",
         "Connections, or pairs of threads."},
        {"direction", "{\"enum\": [\"both\"]}",
         "Streams that go both ways at once, whose throughput is their sum; without it one stream at a time."},
        {"want",
         "{\"enum\": [\"throughput\", \"latency_p50\", \"latency_p99\", \"cpu_per_message\"], \"default\": "
         "\"throughput\"}",
         "What the best has most, or least, of."},
        {"throughput_above_mb_per_second", "{\"$ref\": \"#/components/schemas/AdviceLimit\"}",
         "A limit: what does not keep it, or is not known to, is excluded."},
        {"latency_p50_below_us", "{\"$ref\": \"#/components/schemas/AdviceLimit\"}", "Likewise."},
        {"latency_p99_below_us", "{\"$ref\": \"#/components/schemas/AdviceLimit\"}", "Likewise."},
        {"cpu_per_message_below_us", "{\"$ref\": \"#/components/schemas/AdviceLimit\"}", "Likewise."},
        {"host", BUNDLE_LABEL_SCHEMA, "The label of another host in the bundles that were taken in."},
        {0},
};

static const struct media experiment_media[] = {{"application/json", "Experiment"}, {0}};
static const struct media plan_media[] = {{"application/json", "Plan"}, {0}};
static const struct media experiments_media[] = {{"application/json", "ExperimentList"}, {0}};
static const struct media runs_media[] = {{"application/json", "RunList"}, {"text/csv", NULL}, {0}};
static const struct media run_media[] = {{"application/json", "Run"}, {0}};
static const struct media histogram_media[] = {{"application/json", "RunHistogram"}, {0}};
static const struct media results_media[] = {{"application/json", "ResultTable"}, {"text/csv", NULL}, {0}};
static const struct media findings_media[] = {{"application/json", "FindingList"}, {"text/markdown", NULL}, {0}};
static const struct media bundle_media[] = {{"application/gzip", NULL}, {0}};
static const struct media advice_media[] = {{"application/json", "Advice"}, {0}};
static const struct media samples_media[] = {
        {"application/json", "SampleList"}, {"application/x-ndjson", "Sample"}, {"text/csv", NULL}, {0}};
static const struct media events_media[] = {{"text/event-stream", "StreamedEvent"}, {0}};
static const struct media baseline_media[] = {{"application/json", "Baseline"}, {0}};
static const struct media baselines_media[] = {{"application/json", "BaselineList"}, {0}};
static const struct media history_media[] = {{"application/json", "History"}, {0}};
static const struct media comparison_media[] = {{"application/json", "Comparison"}, {0}};
static const struct media presets_media[] = {{"application/json", "PresetList"}, {0}};
static const struct media transports_media[] = {{"application/json", "TransportList"}, {0}};
static const struct media topology_media[] = {{"application/json", "Topology"}, {0}};
static const struct media environment_media[] = {{"application/json", "Environment"}, {0}};
static const struct media noise_media[] = {{"application/json", "HostNoise"}, {0}};
static const struct media host_media[] = {{"application/json", "Host"}, {0}};
static const struct media exported_media[] = {{"application/json", "Exported"}, {0}};
static const struct media health_media[] = {{"application/json", "Health"}, {0}};
static const struct media object_media[] = {{"application/json", "AnyObject"}, {0}};
static const struct media metrics_media[] = {{"text/plain", NULL}, {0}};
static const struct media page_media[] = {{"text/html", NULL}, {0}};
static const struct media asset_media[] = {{"application/octet-stream", NULL}, {0}};

const struct route routes[] = {
        {METHOD_GET, "/", handle_dashboard, "getDashboard", "The dashboard", .parameters = dashboard_parameters,
         .status = 200, .media = page_media, .problems = "400"},
        {METHOD_GET, "/assets/{path}", handle_asset, "getAsset", "A file of the dashboard", .status = 200,
         .media = asset_media, .problems = "404"},
        {METHOD_POST, "/experiments", handle_submit, "submitExperiment",
         "Submit an experiment: parsed, checked against this host, stored and queued", .writes = true, .keyed = true,
         .body = BODY_JSON, .body_schema = "ExperimentSpec", .parameters = submit_parameters, .status = 201,
         .media = experiment_media, .other = "With dry_run=true: what it would be; nothing is stored",
         .other_status = 200, .other_media = plan_media, .problems = "400 401 411 413 415 422 429 503 507"},
        {METHOD_GET, "/experiments", handle_experiments, "listExperiments", "Experiments, newest first",
         .dear_with = "q", .parameters = list_parameters, .status = 200, .media = experiments_media,
         .problems = "400 503"},
        {METHOD_GET, "/experiments/{id}", handle_experiment, "getExperiment", "An experiment", .status = 200,
         .media = experiment_media, .problems = "404 503"},
        {METHOD_DELETE, "/experiments/{id}", handle_delete, "deleteExperiment",
         "Forget an experiment that does not run and is no baseline; with keep_until_exported, one that was exported",
         .writes = true, .status = 204, .problems = "401 404 409 503 507"},
        {METHOD_POST, "/experiments/{id}/cancel", handle_cancel, "cancelExperiment", "Stop an experiment",
         .writes = true, .body = BODY_OPTIONAL, .status = 200, .media = experiment_media,
         .problems = "401 404 409 503 507"},
        {METHOD_POST, "/experiments/{id}/extend", handle_extend, "extendExperiment",
         "Add blocks to an experiment that was not cancelled; one that has ended goes back to the queue, and what has "
         "failed of it stays failed",
         .writes = true, .keyed = true, .body = BODY_JSON, .body_schema = "Extension", .status = 200,
         .media = experiment_media, .problems = "400 401 404 409 411 413 415 422 429 503 507"},
        {METHOD_POST, "/experiments/{id}/retry", handle_retry, "retryExperiment",
         "Queue its failed, cancelled and interrupted runs again", .writes = true, .keyed = true, .body = BODY_OPTIONAL,
         .status = 200, .media = experiment_media, .problems = "400 401 404 409 422 429 503 507"},
        {METHOD_GET, "/experiments/{id}/runs", handle_runs, "listRuns",
         "An experiment's runs, in the order they run in", .parameters = runs_parameters, .status = 200,
         .media = runs_media, .problems = "400 404 406 503"},
        {METHOD_GET, "/experiments/{id}/results", handle_results, "getResults", "A row per point, over its repetitions",
         .parameters = results_parameters, .dear = true, .status = 200, .media = results_media,
         .problems = "400 404 406 503"},
        {METHOD_GET, "/experiments/{id}/findings", handle_findings, "getFindings",
         "What the runs let one conclude, and what they do not", .dear = true, .status = 200, .media = findings_media,
         .problems = "404 406 503"},
        {METHOD_GET, "/experiments/{id}/report", handle_report, "getReport",
         "One HTML file of at most 10^6 bytes that needs no network: findings, charts, results, method, environment, "
         "proof, the spec; the figures inside as JSON (script element \"report-data\")",
         .dear = true, .status = 200, .media = page_media, .problems = "404 406 503"},
        {METHOD_GET, "/experiments/{id}/bundle", handle_bundle, "getBundle",
         "An experiment that has finished as one file that others can verify: canonical JSON (RFC 8785), gzip, its "
         "SHA-256 in the file's name; spec, seed, build, environment, topology, rows, runs with their histograms. "
         "The file identifies neither the host nor its users",
         .parameters = bundle_parameters, .dear = true, .status = 200, .media = bundle_media,
         .problems = "400 404 409 503"},
        {METHOD_POST, "/bundles", handle_take_bundle, "takeBundle",
         "Take a bundle of another host in, as an experiment that can be read and compared, and not changed",
         .writes = true, .dear = true, .body = BODY_GZIP, .parameters = take_parameters, .status = 201,
         .media = experiment_media, .other = "It is here already: the experiment that it was taken in as",
         .other_status = 200, .other_media = experiment_media, .problems = "400 401 411 413 415 422 429 503 507"},
        {METHOD_GET, "/experiments/{id}/samples", handle_experiment_samples, "listExperimentSamples",
         "What each agent did in each second, of all runs, as it was recorded", .parameters = samples_parameters,
         .dear = true, .status = 200, .media = samples_media, .problems = "400 404 406 503"},
        {METHOD_GET, "/experiments/{id}/events", handle_experiment_events, "streamExperimentEvents",
         "Server-sent events \"experiment\", \"run\" and \"sample\" from the beginning (or after Last-Event-ID), "
         "\"deletion\" when it is deleted, and \"end\" when it has ended, or is deleted, and everything was sent",
         .status = 200, .media = events_media, .problems = "400 404 503"},
        {METHOD_GET, "/runs/{id}", handle_run, "getRun", "A run", .status = 200, .media = run_media,
         .problems = "404 503"},
        {METHOD_GET, "/runs/{id}/histogram", handle_run_histogram, "getRunHistogram",
         "All latencies of a run: HdrHistogram V2, and percentiles at log-nines for drawing", .dear = true,
         .status = 200, .media = histogram_media, .problems = "404 503"},
        {METHOD_GET, "/runs/{id}/samples", handle_run_samples, "listRunSamples",
         "What each agent did in each second of a run", .parameters = samples_parameters, .dear = true, .status = 200,
         .media = samples_media, .problems = "400 404 406 503"},
        {METHOD_GET, "/advice", handle_advice, "getAdvice",
         "The ranking that this host's stored runs support, under the environment that is in force now; or those of "
         "another host",
         .parameters = advice_parameters, .dear = true, .status = 200, .media = advice_media,
         .problems = "400 404 503"},
        {METHOD_POST, "/advice", handle_settle, "settleAdvice",
         "Queue the runs that would settle what the advice leaves open; 409 when it leaves nothing open",
         .writes = true, .keyed = true, .body = BODY_JSON, .body_schema = "AdviceQuestion", .status = 201,
         .media = experiment_media, .problems = "400 401 409 411 413 415 422 503"},
        {METHOD_PUT, "/baselines/{name}", handle_pin_baseline, "pinBaseline",
         "Pin an experiment that has finished under a name, or move the name to it", .writes = true, .body = BODY_JSON,
         .body_schema = "BaselinePin", .status = 200, .media = baseline_media,
         .problems = "400 401 404 409 411 413 415 422 503 507"},
        {METHOD_GET, "/baselines", handle_baselines, "listBaselines", "Pinned experiments, by name", .status = 200,
         .media = baselines_media, .problems = "503"},
        {METHOD_GET, "/baselines/{name}", handle_baseline, "getBaseline", "A pinned experiment", .status = 200,
         .media = baseline_media, .problems = "404 503"},
        {METHOD_DELETE, "/baselines/{name}", handle_remove_baseline, "deleteBaseline",
         "Forget the name; the experiment stays, and can be deleted", .writes = true, .status = 204,
         .problems = "401 404 503 507"},
        {METHOD_GET, "/baselines/{name}/history", handle_history, "getHistory",
         "Later experiments of a baseline's spec, as each was compared with it when it had finished: ratios in time, "
         "and their change points",
         .parameters = history_parameters, .dear = true, .status = 200, .media = history_media,
         .problems = "400 404 503"},
        {METHOD_GET, "/compare", handle_compare, "compare",
         "Two experiments, or two values of an axis within one, row by row: what differs in their environments, ratios "
         "with intervals, and verdicts",
         .parameters = compare_parameters, .dear = true, .status = 200, .media = comparison_media,
         .problems = "400 404 409 422 503"},
        {METHOD_GET, "/host", handle_host, "getHost",
         "What is known of this host, in one document: health, environment, noise, topology, transports and presets, "
         "each as its own route has it",
         .dear = true, .status = 200, .media = host_media, .problems = "503"},
        {METHOD_GET, "/presets", handle_document, "listPresets",
         "Named specs that ship with ipclab, with the time that each takes here and its last experiment", .dear = true,
         .status = 200, .media = presets_media, .problems = "503"},
        {METHOD_GET, "/transports", handle_document, "listTransports",
         "What this host supports, each limit, and why something is unavailable", .status = 200,
         .media = transports_media, .problems = "503"},
        {METHOD_GET, "/topology", handle_document, "getTopology", "CPUs, cores, caches and nodes", .status = 200,
         .media = topology_media, .problems = "503"},
        {METHOD_GET, "/environment", handle_document, "getEnvironment", "The host's fingerprint, taken now",
         .status = 200, .media = environment_media, .problems = "503"},
        {METHOD_GET, "/noise", handle_document, "getNoise",
         "What other programs and guests took of the CPUs in the seconds before, while no experiment runs",
         .status = 200, .media = noise_media, .problems = "503"},
        {METHOD_GET, "/events", handle_events, "streamEvents",
         "Server-sent events \"experiment\", \"run\" and \"deletion\" of all experiments, and \"baseline\" when one is "
         "pinned or removed, from now (or after Last-Event-ID)",
         .status = 200, .media = events_media, .problems = "400 503"},
        {METHOD_PUT, "/exported", handle_exported, "acknowledgeExport",
         "An exporter has stored everything up to a change elsewhere; answered with the newest change that was ever "
         "acknowledged",
         .writes = true, .body = BODY_JSON, .body_schema = "Exported", .status = 200, .media = exported_media,
         .problems = "400 401 409 411 413 415 422 503 507"},
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
static bool segment_matches(const char *pattern, size_t length, const char *segment, int64_t *id, const char **name) {
        if (length == 6 && strncmp(pattern, "{name}", 6) == 0) {
                *name = segment;
                return *segment != '\0';
        }
        if (length == 4 && strncmp(pattern, "{id}", 4) == 0)
                return decimal_parse(segment, id) == 0 && *id > 0;
        return strlen(segment) == length && strncmp(pattern, segment, length) == 0;
}

static bool pattern_matches(const char *pattern, const struct request *q, int64_t *id, const char **name) {
        size_t i = 0;
        for (pattern++; *pattern; i++) {
                size_t length = strcspn(pattern, "/");
                if (length == 6 && strncmp(pattern, "{path}", 6) == 0)
                        return i < q->n_segments;
                if (i >= q->n_segments || !segment_matches(pattern, length, q->segments[i], id, name))
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
                const char *name = NULL;
                if (!pattern_matches(routes[i].pattern, q, &id, &name))
                        continue;
                *ret_allowed |= 1u << routes[i].method;
                if (routes[i].method == METHOD_GET)
                        *ret_allowed |= 1u << METHOD_HEAD;
                if (routes[i].method == wanted) {
                        q->id = id;
                        q->name = name;
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
