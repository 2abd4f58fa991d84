/* SPDX-License-Identifier: MIT */

/* A program for test-spawn: writes what it was started with to the control socket, a packet of "name value" lines, and
 * waits until the socket is closed. Where it is to share so many bytes with a forked peer (spawn-probe.h), it forks one
 * and reports it falsely. */

#include "tests/unit/spawn-probe.h"
#include "schema/protocol/protocol.h"
#include "schema/util.h"

#include <dirent.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

extern char **environ;

static void put_status(FILE *out) {
        static const char *const wanted[] = {
                "Uid:",    "Gid:",    "Groups:",     "CapInh:", "CapPrm:", "CapEff:",
                "CapBnd:", "CapAmb:", "NoNewPrivs:", "SigBlk:", "SigIgn:", "Cpus_allowed_list:"};
        char line[1024];
        _cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
        while (f && fgets(line, sizeof(line), f))
                for (size_t i = 0; i < ELEMENTS(wanted); i++)
                        if (strncmp(line, wanted[i], strlen(wanted[i])) == 0) {
                                for (char *c = line; *c; c++)
                                        *c = *c == '\t' ? ' ' : *c;
                                fputs(line, out);
                        }
}

static void put_descriptors(FILE *out) {
        fputs("fds", out);
        DIR *dir = opendir("/proc/self/fd");
        for (struct dirent *d; dir && (d = readdir(dir));)
                if (d->d_name[0] != '.' && strtol(d->d_name, NULL, 10) != dirfd(dir))
                        fprintf(out, " %s", d->d_name);
        if (dir)
                closedir(dir);
        fputc('\n', out);
}

static void report_falsely(unsigned long lie) {
        if (lie == PROBE_FORKS_NONE) {
                (void) close(AGENT_FORKED_REPORT_FD);
                (void) pause();
        }
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(2 * sizeof(int))];
        } control = {0};
        const int fds[2] = {AGENT_CONTROL_FD, AGENT_CONTROL_FD};
        long pid = syscall(SYS_clone, CLONE_PARENT, 0UL, NULL, 0UL, 0UL);
        if (pid == 0)
                for (;;)
                        (void) pause();
        size_t n = lie == PROBE_SENDS_TWO ? 2 : lie == PROBE_SENDS_ONE || lie == PROBE_SENDS_NOTHING ? 1 : 0;
        struct forked_report report = {.pid = lie == PROBE_SENDS_ITSELF   ? getpid()
                                              : lie == PROBE_SENDS_PARENT ? getppid()
                                                                          : (int32_t) pid};
        struct iovec iov = {.iov_base = &report,
                            .iov_len = lie == PROBE_SENDS_NOTHING ? 0
                                       : lie == PROBE_SENDS_HALF  ? 4
                                                                  : sizeof(report)};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        if (n > 0) {
                m.msg_control = &control;
                m.msg_controllen = CMSG_SPACE(n * sizeof(int));
                control.header = (struct cmsghdr){
                        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int))};
                memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
        }
        (void) sendmsg(AGENT_FORKED_REPORT_FD, &m, 0);
        (void) pause();
}

int main(int argc, char **argv) {
        if (argc > 3 && strtoul(argv[3], NULL, 10) >= PROBE_SENDS_ONE)
                report_falsely(strtoul(argv[3], NULL, 10));
        char *text = NULL, cwd[256] = "";
        size_t size = 0;
        struct rlimit files = {0}, core = {1, 1}, tasks = {0};
        struct stat st = {0};
        int death = 0, policy = -1;
        unsigned long nodes[16] = {0};
        FILE *out = open_memstream(&text, &size);
        if (!out)
                return 1;
        put_descriptors(out);
        put_status(out);
        (void) prctl(PR_GET_PDEATHSIG, &death, 0, 0, 0);
        (void) getrlimit(RLIMIT_NOFILE, &files);
        (void) getrlimit(RLIMIT_CORE, &core);
        (void) stat("/proc/self/ns/ipc", &st);
        (void) syscall(SYS_get_mempolicy, &policy, nodes, sizeof(nodes) * 8, NULL, 0);
        fprintf(out, "argv %d %s %s\nenv", argc, argv[0], argc > 1 ? argv[1] : "-");
        for (char **e = environ; *e; e++)
                fprintf(out, " %s", *e);
        fprintf(out, "\npdeathsig %d\nnofile %lu\ncore %lu\nipc %lu\npolicy %d %lx\n", death,
                (unsigned long) files.rlim_cur, (unsigned long) core.rlim_cur, (unsigned long) st.st_ino, policy,
                nodes[0]);
        (void) getrlimit(RLIMIT_NPROC, &tasks);
        (void) getrlimit(RLIMIT_FSIZE, &files);
        fprintf(out, "fsize %lu\n", (unsigned long) files.rlim_max);
        fprintf(out, "nproc %lu\n", (unsigned long) tasks.rlim_max);
        fprintf(out, "dumpable %d\n", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
        fprintf(out, "nice %d\n", getpriority(PRIO_PROCESS, 0));
        fprintf(out, "session %d\ncwd %s\numask %03o\n", getsid(0) == getpid(), getcwd(cwd, sizeof(cwd)), umask(0));
        if (fclose(out) != 0 || send(AGENT_CONTROL_FD, text, size, 0) < 0)
                return 1;
        free(text);
        char byte;
        return recv(AGENT_CONTROL_FD, &byte, 1, 0) == 0 ? 0 : 1;
}
