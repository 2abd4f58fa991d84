/* SPDX-License-Identifier: MIT */

/*
 * ipclab-agent: a process that plays one role in a run. ipclabd starts it with its placement set and with the
 * descriptors of schema/protocol/protocol.h. Started by hand it exits with a message.
 */

#include "agent/base/agent.h"
#include "agent/base/peer.h"
#include "agent/os/fork-peer.h"
#include "agent/script/leader.h"
#include "agent/script/workers.h"
#include "schema/util.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void usage(FILE *f) {
        fputs("usage: ipclab-agent ROLE [PEER-ROLE BYTES [huge]]\n"
              "\n"
              "Plays one role of a measurement: sender, receiver, initiator, responder, server or client.\n"
              "It is started by ipclabd, which passes the descriptors 3 (control), 4 (peer) and 5 (run directory);\n"
              "to measure something, post an experiment to ipclabd. With a second role it forks the peer, which "
              "shares\n"
              "BYTES of memory with it and has the descriptors 6 and 7; 8 reports the peer to ipclabd.\n"
              "\n"
              "  --help     print this\n"
              "  --version  print the version\n",
              f);
}

/* A workload of one agent has no peer, and the daemon opens /dev/null in its place. The set-up names the workload. */
static int check_descriptors(void) {
        struct stat st;
        const char *missing = NULL;
        if (!peer_is_packet_socket(AGENT_CONTROL_FD))
                missing = "3 (control) is no SOCK_SEQPACKET socket";
        else if (!peer_is_packet_socket(AGENT_PEER_FD) && (fstat(AGENT_PEER_FD, &st) < 0 || !S_ISCHR(st.st_mode)))
                missing = "4 (peer) is no SOCK_SEQPACKET socket, and no device in the place of one";
        else if (fstat(AGENT_RUN_DIR_FD, &st) < 0 || !S_ISDIR(st.st_mode))
                missing = "5 (run directory) is no directory";
        if (!missing)
                return 0;
        fprintf(stderr, "ipclab-agent: descriptor %s. Agents are started by ipclabd, not by hand.\n", missing);
        return -EBADF;
}

static int check_peer_descriptors(void) {
        for (int fd = AGENT_FORKED_CONTROL_FD; fd <= AGENT_FORKED_REPORT_FD; fd++)
                if (!peer_is_packet_socket(fd)) {
                        fprintf(stderr, "ipclab-agent: descriptor %d of the second agent is no SOCK_SEQPACKET socket\n",
                                fd);
                        return -EBADF;
                }
        return 0;
}

/* Any other descriptor is the leader's own, or is closed at exec. */
static int agent_init(struct agent *a, const char *role, enum end end, const struct forked_memory *inherited) {
        *a = (struct agent){
                .inherited = *inherited,
                .end = end,
                .role = role,
                .peer_role = "agent",
                .control_fd = AGENT_CONTROL_FD,
                .peer_fd = AGENT_PEER_FD,
                .run_dir_fd = AGENT_RUN_DIR_FD,
                .event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        };
        if (a->event_fd < 0 || sem_init(&a->workers_ready, 0, 0) < 0)
                return -errno;
        int r = cpumask_get_affinity(0, &a->affinity);
        if (r == 0)
                r = workers_init_signals();
        return r;
}

static int agent_run(struct agent *a) {
        pthread_t leader;
        int r = pthread_create(&leader, NULL, leader_main, a);
        if (r)
                return failure_thread(&a->failure, r, "the thread of the control socket");
        /* The daemon starts agents at a raised priority where it is permitted, for the leader: among a thousand threads
         * that never sleep it would run only after seconds. The workers, which are created from here on, have the
         * normal priority. */
        if (getpriority(PRIO_PROCESS, 0) < 0 && setpriority(PRIO_PROCESS, 0, 0) < 0)
                return -errno;
        while (sem_wait(&a->workers_ready) < 0)
                ; /* EINTR; the leader ends the process when no worker will become ready */
        workers_main(a);
        (void) pthread_join(leader, NULL);
        return 0;
}

static void agent_deinit(struct agent *a) {
        struct message m = {.type = MESSAGE_SETUP, .setup = a->setup};
        workers_free(a);
        message_deinit(&m);
        (void) util_close(a->event_fd);
        (void) sem_destroy(&a->workers_ready);
}

/* The program's arguments: with a second role it forks its peer. */
struct call {
        const char *role, *peer_role, *bytes; /* the latter two NULL: no forked peer */
        bool huge;
        enum end end, peer_end;
};

static int parse_call(int argc, char **argv, struct call *ret) {
        struct call c = {.role = argv[1]};
        if (argc < 2 || argc > 5 || role_from_name(argv[1], &c.end) < 0)
                return -EINVAL;
        *ret = c;
        if (argc == 2)
                return 0;
        c.huge = argc == 5;
        if (argc == 3 || role_from_name(argv[2], &c.peer_end) < 0 || c.peer_end == c.end ||
            (c.huge && strcmp(argv[4], "huge") != 0))
                return -EINVAL;
        c.peer_role = argv[2];
        c.bytes = argv[3];
        *ret = c;
        return 0;
}

/* Best effort: the exit status means the same, but not why. */
static void report(struct agent *a, int error) {
        struct message m = {.type = MESSAGE_ERROR, .error = {.fault = FAULT_OWN, .error = -error}};
        (void) failure_set(&a->failure, -error, "it cannot begin: %s", strerrordesc_np(-error));
        (void) snprintf(m.error.detail, sizeof m.error.detail, "%s", a->failure.detail);
        (void) message_send(a->control_fd, &m, 0);
}

static int play(const char *role, enum end end, const struct forked_memory *inherited) {
        struct agent a;
        int r = agent_init(&a, role, end, inherited);
        if (r == 0)
                r = agent_run(&a);
        if (r == 0)
                agent_deinit(&a);
        else
                report(&a, r);
        return r;
}

int main(int argc, char **argv) {
        struct forked_memory inherited = {};
        struct call c;

        if (argc == 2 && strcmp(argv[1], "--help") == 0) {
                usage(stdout);
                return 0;
        }
        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                puts("ipclab-agent " IPCLAB_VERSION);
                return 0;
        }
        if (parse_call(argc, argv, &c) < 0) {
                usage(stderr);
                return AGENT_EXIT_USAGE;
        }
        /* A program in a memfd (daemon/run/spawn/program.c) has no file name for process listings. */
        (void) prctl(PR_SET_NAME, "ipclab-agent", 0, 0, 0);
        /* The program's file may be readable, and fs.suid_dumpable 1. */
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
                fprintf(stderr, "ipclab-agent: PR_SET_DUMPABLE: %s\n", strerrordesc_np(errno));
                return AGENT_EXIT_FAILED;
        }
        /* With SIGXFSZ ignored a call beyond RLIMIT_FSIZE fails with EFBIG, which becomes the run's error; the signal
         * would end the process without a reason. */
        (void) signal(SIGXFSZ, SIG_IGN);
        if (check_descriptors() < 0 || (c.peer_role && check_peer_descriptors() < 0))
                return AGENT_EXIT_USAGE;
        int r = c.peer_role ? fork_peer(c.bytes, c.huge, &inherited) : 0;
        if (r >= 0)
                r = r == 0 ? play(c.role, c.end, &inherited) : play(c.peer_role, c.peer_end, &inherited);
        if (r < 0) {
                fprintf(stderr, "ipclab-agent: %s\n", strerrordesc_np(-r));
                return AGENT_EXIT_FAILED;
        }
        return 0;
}
