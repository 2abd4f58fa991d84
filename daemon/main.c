/* SPDX-License-Identifier: MIT */

/*
 * ipclabd. Reads the settings, opens the daemon's resources (state directory, store, topology, cgroup, run
 * directories, sockets, agent), connects scheduler, service and API, and runs the event loop until a signal ends it.
 * The only file that may include from all folders. Single-threaded until api_start().
 */

#include "api/api.h"
#include "daemon/admission/capacity.h"
#include "daemon/config.h"
#include "daemon/host/topology.h"
#include "daemon/listen.h"
#include "daemon/log.h"
#include "daemon/run/notify.h"
#include "daemon/run/sandbox/cgroup.h"
#include "daemon/run/sandbox/ipcns.h"
#include "daemon/run/sandbox/rundir.h"
#include "daemon/run/sandbox/tree.h"
#include "daemon/run/scheduler.h"
#include "daemon/run/spawn/program.h"
#include "daemon/run/spawn/spawn.h"
#include "daemon/service/host.h"
#include "daemon/service/service.h"
#include "daemon/token.h"
#include "schema/detail.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define STOP_WITHIN_US (4 * UINT64_C(1000000))
#define REQUESTS_STOP_NS (5 * NSEC_PER_SEC) /* for the requests of waiting HTTP clients */
#define TCP_AGAIN_US (5 * UINT64_C(1000000))
#define STACK_BYTES (1u << 20)
/* Bad options or settings, and a limit that is too low, alone: the unit does not start the service again after it. */
#define EXIT_USAGE 2

struct daemon {
        struct config config;
        sd_event *event;
        struct topology *topology;
        struct store *store;
        struct runner_host host;
        struct scheduler *scheduler;
        struct service *service;
        struct listeners listeners;
        char *token;
        struct api *api;
        sd_event_source *tcp_timer; /* while TCP cannot be served */
        bool stopping;
};

static void on_submitted(void *userdata) {
        struct daemon *d = userdata;
        scheduler_kick(d->scheduler);
}

static void on_cancel(void *userdata, int64_t run_id) {
        struct daemon *d = userdata;
        scheduler_cancel_run(d->scheduler, run_id);
}

static int on_look(void *userdata) {
        struct daemon *d = userdata;
        return scheduler_look_at_machine(d->scheduler);
}

static const char *on_lost_socket(void *userdata) {
        struct daemon *d = userdata;
        return listeners_lost_socket(&d->listeners);
}

static void on_stopped(void *userdata) {
        struct daemon *d = userdata;
        (void) sd_event_exit(d->event, 0);
}

static int on_stop_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        struct daemon *d = userdata;
        (void) source;
        (void) usec;
        log_error("the running run did not end in time: it is left to the next start");
        return sd_event_exit(d->event, 0);
}

/* The first signal ends the run in order, a second one does not wait for that. */
static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        struct daemon *d = userdata;
        (void) source;
        if (d->stopping)
                return sd_event_exit(d->event, 0);
        d->stopping = true;
        log_info("signal SIG%s: stopping", sigabbrev_np((int) info->ssi_signo));
        notify("STOPPING=1\nSTATUS=Stopping.");
        int e = sd_event_add_time_relative(d->event, NULL, CLOCK_MONOTONIC, STOP_WITHIN_US, 0, on_stop_timeout, d);
        if (e < 0)
                return sd_event_exit(d->event, 0);
        scheduler_stop(d->scheduler);
        return 0;
}

/* --- what every action needs --- */

/* Writing to a closed peer (SIGPIPE) and beyond RLIMIT_FSIZE (SIGXFSZ) is an error, not an end. An inherited "ignore"
 * of SIGCHLD would reap the agents behind our back. */
static int set_signals(void) {
        struct sigaction ignore = {.sa_handler = SIG_IGN}, standard = {.sa_handler = SIG_DFL};
        return sigaction(SIGPIPE, &ignore, NULL) < 0 || sigaction(SIGXFSZ, &ignore, NULL) < 0 ||
                               sigaction(SIGCHLD, &standard, NULL) < 0
                       ? -errno
                       : 0;
}

static int raise_limit(int resource, rlim_t most, struct rlimit *ret) {
        if (getrlimit(resource, ret) < 0)
                return -errno;
        if (ret->rlim_cur >= most)
                return 0;
        ret->rlim_cur = ret->rlim_max < most ? ret->rlim_max : most;
        return setrlimit(resource, ret) < 0 ? -errno : 0;
}

/* The first thread's stack grows to the limit as it is then; that of others has the size that it had at the start. 1:
 * the limit is too low, which is logged; negative errno. */
static int raise_stacks(void) {
        struct rlimit limit;
        pthread_attr_t attributes;
        size_t bytes;
        int e = raise_limit(RLIMIT_STACK, STACK_BYTES, &limit);
        if (e < 0)
                return e;
        if (limit.rlim_cur < STACK_BYTES) {
                log_error("RLIMIT_STACK is %ju bytes, and ipclabd needs %u (to raise it: LimitSTACK= in the unit, or "
                          "ulimit -s)",
                          (uintmax_t) limit.rlim_cur, STACK_BYTES);
                return 1;
        }
        e = -pthread_getattr_default_np(&attributes);
        if (e < 0)
                return e;
        e = -pthread_attr_getstacksize(&attributes, &bytes);
        if (e == 0 && bytes < STACK_BYTES)
                e = -pthread_attr_setstacksize(&attributes, STACK_BYTES);
        if (e == 0 && bytes < STACK_BYTES)
                e = -pthread_setattr_default_np(&attributes);
        (void) pthread_attr_destroy(&attributes);
        return e;
}

static int raise_limits(void) {
        struct rlimit files, bytes;
        /* the soft one is for programs that use select(2), which nothing here does */
        int e = raise_limit(RLIMIT_NOFILE, RLIM_INFINITY, &files);
        if (e == 0)
                e = raise_limit(RLIMIT_FSIZE, RLIM_INFINITY, &bytes);
        if (e == 0 && bytes.rlim_cur != RLIM_INFINITY)
                log_warning("RLIMIT_FSIZE is %ju bytes: what does not fit in a file of the database of that length "
                            "cannot be stored (to raise it: LimitFSIZE= in the unit, or ulimit -f)",
                            (uintmax_t) bytes.rlim_cur);
        return e == 0 ? raise_stacks() : e;
}

/* The exit status of an error, which is logged; else 0. */
static int prepare(void) {
        int e = set_signals();
        if (e == 0)
                e = raise_limits();
        if (e < 0)
                log_error("cannot set the signals and limits of the process: %s", strerrordesc_np(-e));
        return e < 0 ? EXIT_FAILURE : e > 0 ? EXIT_USAGE : EXIT_SUCCESS;
}

/* --- start, step by step; each step logs its own error --- */

static int open_directories(struct daemon *d) {
        int e = tree_make(d->config.state_dir, 0750);
        if (e < 0)
                log_error("cannot make the state directory %s: %s", d->config.state_dir, strerrordesc_np(-e));
        else if ((e = tree_make(d->config.runtime_dir, 0755)) < 0)
                log_error("cannot make the runtime directory %s: %s", d->config.runtime_dir, strerrordesc_np(-e));
        return e;
}

static int open_store(struct daemon *d) {
        int e = store_open(&d->store, d->config.state_dir);
        if (e == -EBUSY)
                log_error("another ipclabd uses the state directory %s", d->config.state_dir);
        else if (e == -EPROTONOSUPPORT)
                log_error("the database in %s was written by a newer ipclab", d->config.state_dir);
        else if (e == -EBADMSG)
                log_error("the database in %s is damaged: ipclabd --check names where, and \"Damaged or lost data\" in "
                          "troubleshooting has the way back",
                          d->config.state_dir);
        else if (e < 0 && e != -EUCLEAN) /* the store has logged the reason and the remedy */
                log_error("cannot open the database in %s: %s", d->config.state_dir, strerrordesc_np(-e));
        else if (e == 0)
                store_keep_until_exported(d->store, d->config.keep_until_exported);
        return e;
}

/* The state directory identifies a daemon, as only one can have it. */
static void open_cgroups(struct daemon *d) {
        char name[64];
        struct stat st;
        if (stat(d->config.state_dir, &st) < 0) {
                (void) snprintf(d->host.cgroup_reason, sizeof(d->host.cgroup_reason), "no state directory: %s",
                                strerrordesc_np(errno));
                return;
        }
        (void) snprintf(name, sizeof(name), "ipclab-%jx-%jx", (uintmax_t) st.st_dev, (uintmax_t) st.st_ino);
        if (cgroup_tree_new(&d->host.cgroups, name, d->host.cgroup_reason) < 0)
                d->host.cgroups = NULL; /* the first run logs it */
}

static int open_host(struct daemon *d) {
        struct runner_host *h = &d->host;
        h->event = d->event;
        int e = topology_read(d->config.root, &d->topology); /* has logged why */
        if (e < 0)
                return e;
        h->topology = d->topology;
        h->root = d->config.root;
        e = affinity_initial(&h->affinity);
        if (e < 0) {
                log_error("cannot determine the daemon's CPUs: %s", strerrordesc_np(-e));
                return e;
        }
        e = agent_identity_find(d->config.agent_user, &h->identity);
        if (e < 0) {
                log_error("there is neither a user %s nor a user nobody to run agents as", d->config.agent_user);
                return e;
        }
        e = program_open(d->config.agent_path, &h->program_fd); /* has logged why */
        if (e < 0)
                return e;
        build_take(&h->build, h->program_fd);
        ipcns_probe(&h->queues);
        if (h->queues.trouble[0])
                log_notice("there are no message queues to measure: %s", h->queues.trouble);
        else if (!h->queues.settable)
                log_notice("message queues are no larger than the kernel makes them: %s", h->queues.set_trouble);
        /* leftover processes first, then the directories that they may be using */
        open_cgroups(d);
        return rundir_root_new(&h->rundirs, d->config.runtime_dir);
}

static int open_queue(struct daemon *d) {
        struct scheduler_options o = {.event = d->event,
                                      .store = d->store,
                                      .host = &d->host,
                                      .root = d->config.root,
                                      .run_timeout_ns = d->config.run_timeout_ns,
                                      .host_tuning = d->config.host_tuning,
                                      .stopped = on_stopped,
                                      .userdata = d};
        int e = scheduler_new(&d->scheduler, &o);
        if (e < 0) {
                log_error("cannot take up the queue: %s", strerrordesc_np(-e));
                return e;
        }
        struct service_hooks hooks = {.submitted = on_submitted,
                                      .cancel_running = on_cancel,
                                      .look_at_machine = on_look,
                                      .lost_socket = on_lost_socket,
                                      .userdata = d,
                                      .topology = d->topology,
                                      .queues = &d->host.queues,
                                      .agents = &d->host.identity,
                                      .build = &d->host.build,
                                      .memlock_bytes = spawn_most(RLIMIT_MEMLOCK),
                                      .rings_are_locked = capacity_rings_are_locked(d->config.root),
                                      .root = d->config.root,
                                      .host_tuning = d->config.host_tuning,
                                      .runtime_dir = d->config.runtime_dir,
                                      .rundirs = d->host.rundirs,
                                      .run_timeout_ns = d->config.run_timeout_ns,
                                      .max_queued_experiments = d->config.max_queued_experiments,
                                      .max_queued_runs = d->config.max_queued_runs,
                                      .max_database_bytes = d->config.max_database_bytes};
        e = service_new(&d->service, d->event, d->store, &hooks);
        if (e < 0) {
                log_error("cannot make the service: %s", strerrordesc_np(-e));
                return e;
        }
        scheduler_set_service(d->scheduler, d->service);
        return 0;
}

static int serve_tcp(struct daemon *d, char *detail) {
        int e = listeners_open_tcp(&d->config, &d->listeners, detail);
        if (e < 0)
                return e;
        e = api_serve_tcp(d->api, util_steal_fd(&d->listeners.tcp_fd), NULL);
        return e < 0 ? detail_fail(detail, e, "cannot serve %s: %s", d->listeners.url, strerrordesc_np(-e)) : 0;
}

/* Each reason is in the log once, however often it is met. */
static void note_tcp_problem(struct daemon *d, const char *why) {
        if (strcmp(d->listeners.tcp_problem, why) == 0)
                return;
        log_error("%s: ipclabd tries again every %u s", why, (unsigned) (TCP_AGAIN_US / UINT64_C(1000000)));
        char *noted = strdup(why);
        if (!noted || api_set_tcp_problem(d->api, why) < 0) {
                free(noted); /* noted when it is met again */
                return;
        }
        free(d->listeners.tcp_problem);
        d->listeners.tcp_problem = noted;
}

/* Tries again to have the port that another process had, and the threads that serve it. */
static int on_tcp_again(sd_event_source *timer, uint64_t usec, void *userdata) {
        struct daemon *d = userdata;
        char detail[DETAIL_MAX] = "";
        if (serve_tcp(d, detail) == 0) {
                log_notice("%s is served from now on", d->listeners.url);
                return 0;
        }
        note_tcp_problem(d, detail);
        int e = sd_event_source_set_time(timer, usec + TCP_AGAIN_US);
        return e < 0 ? e : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

/* Its last link goes, it has another name, or its permissions change. */
static int on_socket_changed(sd_event_source *source, const struct inotify_event *event, void *userdata) {
        struct daemon *d = userdata;
        const char *lost = listeners_lost_socket(&d->listeners);
        (void) event;
        if (!lost)
                return 0;
        log_error("%s was removed or replaced while ipclabd runs: what connects there does not reach it until its "
                  "socket is made again",
                  lost);
        return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

/* Of use for the log alone: /health looks by itself. */
static void watch_socket(struct daemon *d) {
        if (d->listeners.socket_inode == 0)
                return;
        int e = sd_event_add_inotify(d->event, NULL, d->listeners.socket_path, IN_ATTRIB | IN_MOVE_SELF,
                                     on_socket_changed, d);
        if (e < 0)
                log_warning("cannot watch %s: %s", d->listeners.socket_path, strerrordesc_np(-e));
}

static int open_listeners(struct daemon *d) {
        char detail[DETAIL_MAX] = "";
        int e = listeners_open(&d->config, &d->listeners, detail);
        if (e >= 0)
                e = token_load(d->config.token_file, &d->token, detail);
        if (e < 0) {
                log_error("%s", detail);
                return e;
        }
        watch_socket(d);
        uint64_t memory = cgroup_memory_limit();
        struct api_options o = {.service = d->service,
                                .memory_bytes = memory == UINT64_MAX ? 0 : memory,
                                .unix_fd = util_steal_fd(&d->listeners.unix_fd),
                                .tcp_fd = util_steal_fd(&d->listeners.tcp_fd),
                                .tcp_problem = d->listeners.tcp_problem,
                                .token = d->token,
                                .web_dir = d->config.web_dir};
        e = api_start(&o, &d->api);
        if (e < 0)
                log_error("cannot start the HTTP interface, with the dashboard's files from %s: %s",
                          d->config.web_dir ? d->config.web_dir : "nowhere", strerrordesc_np(-e));
        if (e < 0 || !d->listeners.tcp_problem)
                return e;
        log_error("%s: another process has the port, and ipclabd tries again every %u s", d->listeners.tcp_problem,
                  (unsigned) (TCP_AGAIN_US / UINT64_C(1000000))); /* the unix socket is served meanwhile */
        return sd_event_add_time_relative(d->event, &d->tcp_timer, CLOCK_MONOTONIC, TCP_AGAIN_US, 0, on_tcp_again, d);
}

/* One line that programs can read: "ready {…}". */
static int announce(struct daemon *d) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        _cleanup_free_ char *text = NULL;
        json_object_begin(&w);
        json_member_string(&w, "socket", d->listeners.socket_path);
        json_member_string(&w, "url", d->listeners.url);
        json_member_string(&w, "token_file", d->config.token_file);
        json_member_i64(&w, "pid", getpid());
        json_member_string(&w, "version", IPCLAB_VERSION);
        json_object_end(&w);
        int e = json_writer_steal(&w, &text, NULL);
        if (e < 0)
                return e;
        log_notice("ready %s", text);
        e = notify_within(NOTIFY_READY_NS, "READY=1\nSTATUS=Idle.");
        if (e < 0)
                log_warning("the service manager has no message that ipclabd is ready: %s", strerrordesc_np(-e));
        return 0;
}

/* Without a controlling terminal the signal is a request to read the settings again. */
static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        (void) source;
        (void) info;
        (void) userdata;
        log_notice("signal SIGHUP: settings are read at the start only; restart ipclabd for them");
        return 0;
}

static bool has_terminal(void) {
        int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
        bool has = fd >= 0;
        (void) util_close(fd);
        return has;
}

static int add_signal(struct daemon *d, int signal_number, sd_event_signal_handler_t handler) {
        struct sigaction old;
        if (sigaction(signal_number, NULL, &old) < 0)
                return -errno;
        if (signal_number == SIGHUP && old.sa_handler == SIG_IGN) /* nohup(1) */
                return 0;
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, signal_number);
        int e = -pthread_sigmask(SIG_BLOCK, &set, NULL);
        return e < 0 ? e : sd_event_add_signal(d->event, NULL, signal_number, handler, d);
}

static int open_loop(struct daemon *d) {
        int e = sd_event_default(&d->event);
        if (e >= 0)
                e = add_signal(d, SIGTERM, on_signal);
        if (e >= 0)
                e = add_signal(d, SIGINT, on_signal);
        if (e >= 0)
                e = add_signal(d, SIGHUP, has_terminal() ? on_signal : on_hangup);
        if (e >= 0)
                e = notify_watchdog(d->event);
        if (e < 0)
                log_error("cannot make the event loop: %s", strerrordesc_np(-e));
        return e < 0 ? e : 0;
}

static int start(struct daemon *d) {
        int (*const steps[])(struct daemon *) = {open_loop,  open_directories, open_store, open_host,
                                                 open_queue, open_listeners,   announce};
        for (size_t i = 0; i < ELEMENTS(steps); i++) {
                int e = steps[i](d);
                if (e < 0)
                        return e;
        }
        return 0;
}

/* sd_event_loop(), with a look at how long each source holds it. */
static int run_loop(struct daemon *d) {
        while (sd_event_get_state(d->event) != SD_EVENT_FINISHED) {
                int e = sd_event_prepare(d->event);
                if (e == 0)
                        e = sd_event_wait(d->event, UINT64_MAX);
                if (e > 0) {
                        uint64_t begin = util_now_ns(), cpu = util_thread_cpu_ns();
                        e = sd_event_dispatch(d->event);
                        service_dispatched(d->service, util_now_ns() - begin, util_thread_cpu_ns() - cpu);
                }
                if (e < 0)
                        return e;
        }
        int code;
        int e = sd_event_get_exit_code(d->event, &code);
        return e < 0 ? e : code;
}

/* A run that has not ended when the daemon does, as when the removal of its files takes long, was stopped in order all
 * the same: it is not counted as a crash, of which a run survives a limited number. */
static void leave_run(struct daemon *d) {
        int e = d->stopping && !store_is_read_only(d->store) ? store_interrupt_run(d->store, 0) : -ENOENT;
        if (e < 0 && e != -ENOENT)
                log_error("that the running run was stopped cannot be stored: %s; it counts as an attempt",
                          strerrordesc_np(-e));
}

/* Frees in an order in which no object uses one that is gone. */
static void stop(struct daemon *d) {
        leave_run(d);
        if (d->service)
                service_stop(d->service);
        unsigned cut_off = api_stop(d->api, util_now_ns() + REQUESTS_STOP_NS);
        if (cut_off > 0)
                log_warning("%u connections were cut off: they were not finished after %u s", cut_off,
                            (unsigned) (REQUESTS_STOP_NS / NSEC_PER_SEC));
        if (d->scheduler)
                scheduler_set_service(d->scheduler, NULL);
        service_free(d->service);
        scheduler_free(d->scheduler);
        store_close(d->store);
        listeners_close(&d->listeners);
        rundir_root_free(d->host.rundirs);
        cgroup_tree_free(d->host.cgroups);
        util_close(d->host.program_fd);
        topology_free(d->topology);
        sd_event_source_disable_unref(d->tcp_timer);
        sd_event_unref(d->event);
        free(d->token);
        config_deinit(&d->config);
}

/* Descriptors 0 to 2 belong to no file of ours, whatever the daemon was started with. */
static int open_standard(void) {
        int fd;
        do
                fd = open("/dev/null", O_RDWR);
        while (fd >= 0 && fd <= STDERR_FILENO);
        if (fd < 0)
                return -errno;
        util_close(fd);
        return 0;
}

/* --check, --backup and --adopt */

static void report_fault(const char *fault) {
        printf("%s\n", fault);
}

static int check_store(const struct config *c) {
        unsigned faults = 0;
        int e = store_verify(c->state_dir, report_fault, &faults);
        if (e < 0)
                return e;
        if (faults == 0)
                printf("%s: the database is whole\n", c->state_dir);
        return faults > 0 ? -EUCLEAN : 0;
}

static int act_on_store(const struct config *c, enum config_action action) {
        int e = action == CONFIG_CHECK    ? check_store(c)
                : action == CONFIG_BACKUP ? store_backup(c->state_dir, c->backup_file)
                                          : store_adopt(c->state_dir);
        if (e == -EBUSY)
                log_error("%s is in use: stop ipclabd first", c->state_dir);
        else if (e < 0 && (action != CONFIG_BACKUP || e != -EUCLEAN)) /* the store has logged why */
                log_error("%s: %s", action == CONFIG_BACKUP ? c->backup_file : c->state_dir, strerrordesc_np(-e));
        return e < 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
        struct daemon d = {.listeners = {.unix_fd = -1, .tcp_fd = -1}, .host = {.program_fd = -1}};
        struct config_error error = {""};
        enum config_action action = CONFIG_RUN;
        /* A megabyte that is freed goes back to the system. By default glibc raises the threshold to the size of the
         * block that was freed last, and gives threads arenas of their own: response bodies would then stay allocated.
         * These two settings save memory only, and nothing is to be done where they fail. */
        (void) mallopt(M_MMAP_THRESHOLD, 128 * 1024);
        (void) mallopt(M_ARENA_MAX, 2);
        int e = open_standard();
        if (e < 0) {
                fprintf(stderr, "ipclabd: cannot open /dev/null: %s\n", strerrordesc_np(-e));
                return EXIT_FAILURE;
        }
        e = config_load(argc, argv, &d.config, &action, &error);
        if (e < 0) {
                fprintf(stderr, "ipclabd: %s\n", error.detail[0] ? error.detail : strerrordesc_np(-e));
                return e == -ENOMEM ? EXIT_FAILURE : EXIT_USAGE;
        }
        if (action == CONFIG_HELP)
                config_print_help(stdout);
        else if (action == CONFIG_VERSION)
                puts("ipclabd " IPCLAB_VERSION);
        if (action == CONFIG_HELP || action == CONFIG_VERSION)
                return fflush(stdout) == 0 ? 0 : 1;

        log_open(d.config.log_level);
        int status = prepare();
        if (status != EXIT_SUCCESS || action != CONFIG_RUN) {
                if (status == EXIT_SUCCESS)
                        status = act_on_store(&d.config, action);
                config_deinit(&d.config);
                return status;
        }
        e = start(&d);
        if (e >= 0)
                e = run_loop(&d);
        if (e < 0)
                log_error("ipclabd ends: %s", strerrordesc_np(-e));
        else
                log_info("ipclabd ends");
        stop(&d);
        return e < 0 ? 1 : 0;
}
