/* SPDX-License-Identifier: MIT */

/*
 * Documents about this host and the service: transports, topology, environment, health.
 */

#include "daemon/admission/admission.h"
#include "daemon/host/environment/environment.h"
#include "daemon/host/hostfs.h"
#include "daemon/run/sandbox/rundir.h"
#include "daemon/service/internal.h"
#include "daemon/service/service.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>

int service_transports_json(struct service *s, char **ret, struct refusal *r) {
        const struct admission_host host = service_admission_host(s);
        int error = capacity_to_json(&host, ret);
        return error < 0 ? service_fail(s, r, error, "reading this host's limits", 0) : 0;
}

int service_topology_json(struct service *s, char **ret, struct refusal *r) {
        int error = service_look_at_machine(s, r);
        if (error < 0)
                return error;
        topology_hold();
        error = topology_to_json_now(s->root, s->hooks.topology, ret);
        topology_release();
        return error < 0 ? service_fail(s, r, error, "reading the topology", 0) : 0;
}

int service_environment_json(struct service *s, char **ret, struct refusal *r) {
        struct environment *e;
        int error = service_look_at_machine(s, r);
        if (error < 0)
                return error;
        topology_hold();
        error = environment_take(s->root, s->hooks.topology, &e);
        topology_release();
        if (error == 0) {
                error = environment_to_json(e, ret);
                environment_free(e);
        }
        return error < 0 ? service_fail(s, r, error, "reading the environment", 0) : 0;
}

/* Health */

static void set_problem(struct service_health *h, const char *problem) {
        h->ok = false;
        if (!h->problem[0]) /* the first one is the cause, as often as not */
                snprintf(h->problem, sizeof(h->problem), "%s", problem);
}

/* The queued experiments that can neither run nor be failed: the first one's id, and how many there are. */
struct left_behind {
        int64_t first;
        size_t n;
};

/* Checks that the main thread answers, and that its connection works. */
static int look_at_writer(struct service *s, void *payload, struct refusal *r) {
        struct left_behind *left = payload;
        int64_t change;
        left->n = store_left_behind(s->store, &left->first);
        int error = store_last_change(s->store, &change);
        return error < 0 ? service_fail(s, r, error, "the database's writing connection", 0) : 0;
}

/* Behind the damaged page that is the cause. */
static void name_left_behind(struct service_health *h, const struct left_behind *left) {
        char first[sizeof(h->problem)];
        if (left->n == 0)
                return;
        (void) snprintf(first, sizeof(first), "%s", h->problem);
        (void) snprintf(h->problem, sizeof(h->problem), "%.350s%sexperiment %" PRId64, first, first[0] ? "; " : "",
                        left->first);
        size_t length = strlen(h->problem);
        if (left->n > 1)
                length += (size_t) snprintf(h->problem + length, sizeof(h->problem) - length, " and %zu more",
                                            left->n - 1);
        (void) snprintf(h->problem + length, sizeof(h->problem) - length,
                        " can neither run nor be failed, as what the database has of it is damaged");
        h->ok = false;
}

static void check_writer(struct service *s, struct service_health *h) {
        static const struct call_type writer = {OPERATION_OTHER, look_at_writer, free};
        struct refusal why = {0};
        struct left_behind *left = calloc(1, sizeof(*left));
        void *payload = left;
        if (!left)
                set_problem(h, strerrordesc_np(ENOMEM));
        else if (service_call(s, &writer, &payload, &why) < 0)
                set_problem(h, why.detail);
        if (payload) /* else the main thread has it, as it did not answer in time */
                name_left_behind(h, payload);
        free(payload);
}

static void check_reader(struct service *s, struct service_health *h) {
        struct store_totals totals = {0};
        struct refusal why = {0};
        int error = SERVICE_READ(s, &why, "reading the database", 0, store_totals(store, &totals));
        if (error == 0)
                error = SERVICE_READ(s, &why, "reading the database", 0, store_exported(store, &h->exported_change));
        if (error < 0)
                set_problem(h, why.detail);
        h->experiments_queued = totals.experiments_queued;
        h->runs_done = totals.runs_done;
        h->runs_failed = totals.runs_failed;
        h->samples = totals.samples;
        h->database_bytes = totals.database_bytes;
}

static void check_integrity(struct service *s, struct service_health *h) {
        struct store_integrity i;
        char problem[sizeof(h->problem)];
        store_integrity(s->store, &i);
        (void) snprintf(h->store, sizeof(h->store), "%s", store_identity(s->store));
        h->damaged_pages = i.damaged;
        h->pages_checked = i.pages_checked;
        h->pages_to_check = i.pages_to_check;
        if (i.gone && i.gone_error == -ESTALE)
                (void) snprintf(problem, sizeof(problem),
                                "the database is gone: %s was removed or replaced while ipclabd runs", i.gone);
        else if (i.gone)
                (void) snprintf(problem, sizeof(problem), "nothing can be stored: %s: %s", i.gone,
                                strerrordesc_np(-i.gone_error));
        if (i.gone)
                set_problem(h, problem);
        if (i.damaged == 0)
                return;
        if (i.damaged_page > 0)
                (void) snprintf(problem, sizeof(problem),
                                "%s is damaged: page %" PRIu32 " does not match its checksum (%" PRIu32 " in all)",
                                i.path, i.damaged_page, i.damaged);
        else
                (void) snprintf(problem, sizeof(problem), "the log of %s is damaged: %" PRIu32 " of its pages", i.path,
                                i.damaged);
        set_problem(h, problem);
}

static void check_disk(struct service *s, struct service_health *h) {
        struct statvfs fs;
        char problem[sizeof(h->problem)];
        struct refusal why = {0};
        int error = store_require_writable(s->store);
        if (error < 0) {
                (void) service_fail(s, &why, error, "storing", 0);
                set_problem(h, why.detail);
        }
        if (statvfs(s->dir, &fs) < 0) {
                snprintf(problem, sizeof(problem), "%s: %s", s->dir, strerrordesc_np(errno));
                set_problem(h, problem);
                return;
        }
        uint64_t free_bytes = (uint64_t) fs.f_bavail * fs.f_frsize;
        if (free_bytes < SERVICE_DISK_RESERVE) {
                snprintf(problem, sizeof(problem), "the disk that holds %s has %" PRIu64 " bytes left, under %" PRIu64,
                         s->dir, free_bytes, SERVICE_DISK_RESERVE);
                set_problem(h, problem);
        }
}

static void check_socket(struct service *s, struct service_health *h) {
        char problem[sizeof(h->problem)];
        const char *path = s->hooks.lost_socket ? s->hooks.lost_socket(s->hooks.userdata) : NULL;
        if (!path)
                return;
        (void) snprintf(problem, sizeof(problem),
                        "%s was removed or replaced while ipclabd runs: what connects there does not reach it until "
                        "its socket is made again",
                        path);
        set_problem(h, problem);
}

/* Source: proc(5), /proc/pid/statm: size and resident pages. */
static int own_rss(uint64_t *ret) {
        struct hostfs h = HOSTFS_MACHINE;
        char line[128], *resident, *end;
        int r = hostfs_line(&h, line, sizeof(line), "/proc/self/statm");
        if (r < 0)
                return r;
        (void) strtoull(line, &resident, 10);
        unsigned long long pages = strtoull(resident, &end, 10);
        if (end == resident)
                return -EBADMSG;
        *ret = pages * (uint64_t) sysconf(_SC_PAGESIZE);
        return 0;
}

int service_health(struct service *s, struct service_health *ret, struct refusal *r) {
        struct service_health h = {.ok = true, .version = IPCLAB_VERSION, .exported_change = -1};
        h.uptime_seconds = (int64_t) ((util_now_ns() - s->started_ns) / NSEC_PER_SEC);
        check_integrity(s, &h); /* first: it is the cause of what fails below */
        check_writer(s, &h);
        check_reader(s, &h);
        check_disk(s, &h);
        check_socket(s, &h);
        if (s->hooks.agents && s->hooks.agents->trouble[0])
                set_problem(&h, s->hooks.agents->trouble);
        if (s->hooks.rundirs) /* it costs space, and hinders no run: no problem */
                (void) rundir_left(s->hooks.rundirs, h.leftover, sizeof(h.leftover));

        for (size_t i = 0; i < OPERATION_COUNT; i++)
                h.holds[i] = (struct service_hold){s->holds[i].longest_ns, s->holds[i].longest_cpu_ns};
        h.loop_slow = s->loop_slow;
        pthread_mutex_lock(&s->lock);
        h.running_experiment = s->status.experiment_id;
        h.running_run = s->status.run_id;
        h.running_since = s->status.started_at_ms;
        if (s->pending_restore[0])
                set_problem(&h, s->pending_restore);
        pthread_mutex_unlock(&s->lock);

        struct timespec cpu;
        if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) < 0)
                return service_fail(s, r, -errno, "reading the daemon's CPU time", 0);
        h.cpu_ns = (uint64_t) cpu.tv_sec * NSEC_PER_SEC + (uint64_t) cpu.tv_nsec;
        int error = own_rss(&h.rss_bytes);
        if (error < 0)
                return service_fail(s, r, error, "reading the daemon's memory", 0);
        *ret = h;
        return 0;
}
