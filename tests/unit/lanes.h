/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_LANES_H
#define IPCLAB_TESTS_LANES_H

/*
 * Several cases of a test at a time, for those that wait more than they compute, or leave a CPU idle. A function of
 * many cases is run in some processes at once, its lanes: each goes through all of its loops, and checks at every case
 * whether it is the one to run it. So each case is run by one lane, whichever is the first to be free.
 *
 * Nothing of a lane is overlooked: its stderr is the test's, and a check that fails, a signal, a sanitizer's finding, a
 * case that does not end and a process that is left behind are failures of the test, which names the case by its
 * number. Whatever the lanes have started and left is ended with them.
 *
 * The address sanitizer looks for leaks at a process's end, which takes a quarter of an agent's CPU time and half of
 * its life. Of the agents of lanes those of one case of LANES_LEAKS_ONE_OF do so; the lanes themselves always do.
 *
 * A sanitizer makes an agent's start ten times as dear. IPCLAB_ONE_CASE_OF=N in the environment runs one of N cases,
 * the same ones at each time, and IPCLAB_ALL_BUT_ONE_CASE_OF=N the others. The test prints how many these were:
 * tools/test runs the one with sanitizers and the others without. The cases of a simulation differ in what is drawn,
 * and not in the code that they run: of those the first one is run with sanitizers, and all are without.
 */

#include "check.h"
#include "schema/util.h"

#include <ctype.h>
#include <dirent.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LANES 4u              /* as many as wait for most of the time */
#define LANES_THAT_COMPUTE 2u /* that wait for nothing: there is a use for them where there are CPUs */
#define LANES_MAX 16u
#define LANES_LEAKS_ONE_OF 4u
#define LANES_POLL_NS (5 * NSEC_PER_MSEC)

/* n lanes of f, each of which begins with prepare(): NULL, or what returns a complaint or NULL. */
#define CHECK_LANES(n, prepare, f)                                                                                     \
        do {                                                                                                           \
                const char *_fault = lanes_run((n), (prepare), (f));                                                   \
                if (_fault)                                                                                            \
                        CHECK_FAIL("%s in lanes: %s", #f, _fault);                                                     \
        } while (0)

/* At the beginning of a test, behind what may skip it: the rest is for lanes. */
#define IN_LANES(n, prepare, test)                                                                                     \
        do {                                                                                                           \
                if (!lanes) {                                                                                          \
                        CHECK_LANES(n, prepare, test);                                                                 \
                        return;                                                                                        \
                }                                                                                                      \
        } while (0)

/* Likewise, where each case is a simulation of many trials. */
#define IN_LANES_OF_TRIALS(test)                                                                                       \
        do {                                                                                                           \
                lanes_of_trials = true;                                                                                \
                IN_LANES(LANES_THAT_COMPUTE, NULL, test);                                                              \
        } while (0)

/* Locked pages count together for all that one user runs: only a privileged user gets several lanes for such cases. */
static inline unsigned lanes_of_locked_pages(void) {
        return geteuid() == 0 && prctl(PR_CAPBSET_READ, (unsigned long) CAP_IPC_LOCK, 0UL, 0UL, 0UL) == 1 ? LANES : 1;
}

/* So do the bytes of POSIX queues, where RLIMIT_MSGQUEUE cannot be raised: its default is enough for two such cases. */
static inline unsigned lanes_of_queues(void) {
        return geteuid() == 0 && prctl(PR_CAPBSET_READ, (unsigned long) CAP_SYS_RESOURCE, 0UL, 0UL, 0UL) == 1 ? LANES
                                                                                                              : 2;
}

/* A lane's progress; written by it alone. */
struct lane {
        unsigned at;     /* the case under way, from 1; 0: none */
        unsigned turns;  /* cases, and parts of a case, that it has had */
        unsigned cases;  /* that it has come by, once it has been through all */
        unsigned chosen; /* those of them that some lane has run */
};

struct lanes {
        unsigned next; /* atomic: the first of the chosen cases that no lane has taken */
        struct lane of[LANES_MAX];
};

static struct lanes *lanes; /* shared by all; NULL: this is no lane, and each case its own */

/* A case may be slow, and its machine slower; one that moves no more is to be named all the same. */
static uint64_t lanes_stall_ns = 300 * NSEC_PER_SEC;
static uint64_t lanes_left_ns = 10 * NSEC_PER_SEC; /* for processes that are ending when the lanes have ended */

static unsigned lanes_one_of = 1; /* N: one of N cases is run */
static bool lanes_others;         /* and with this the others are */
static bool lanes_of_trials;      /* of the lanes that are run next */
static unsigned lanes_self;       /* which one this is */
static unsigned lanes_at;         /* cases that it has come by */
static unsigned lanes_chosen;     /* those of them that are run, by whichever lane */
static unsigned lanes_taken;      /* the chosen one that is its next */
static bool lanes_has_taken;

/* An integer hash of a case's number, so that every value of a loop within loops is met. */
static inline uint32_t lanes_scattered(unsigned at) {
        uint32_t x = (at ^ at >> 16) * UINT32_C(0x45d9f3b);
        x = (x ^ x >> 16) * UINT32_C(0x45d9f3b);
        return x ^ x >> 16;
}

/* The first case is always chosen. */
static inline bool lanes_is_chosen(unsigned at) {
        if (at == 0 || lanes_one_of == 1)
                return true;
        return lanes_of_trials ? lanes_others : (lanes_scattered(at) % lanes_one_of == 0) != lanes_others;
}

/* For what the case starts: this process itself has read the options long ago. */
static inline void lanes_look_for_leaks(unsigned at) {
        bool look = lanes_scattered(at) / lanes_one_of % LANES_LEAKS_ONE_OF == 0;
        (void) setenv("LSAN_OPTIONS", look ? "detect_leaks=1" : "detect_leaks=0", 1);
}

/* To be called once for every case, in the same order in all lanes. */
static inline bool lanes_my_turn(void) {
        if (!lanes)
                return true;
        if (!lanes_is_chosen(lanes_at++))
                return false;
        if (!lanes_has_taken)
                lanes_taken = __atomic_fetch_add(&lanes->next, 1, __ATOMIC_RELAXED);
        lanes_has_taken = lanes_chosen++ != lanes_taken;
        if (lanes_has_taken)
                return false;
        __atomic_store_n(&lanes->of[lanes_self].at, lanes_at, __ATOMIC_RELAXED);
        (void) __atomic_add_fetch(&lanes->of[lanes_self].turns, 1, __ATOMIC_RELAXED);
        lanes_look_for_leaks(lanes_at - 1);
        return true;
}

/* Within a case of many parts, at each of them: it does not stand still. */
static inline void lanes_advance(void) {
        if (lanes)
                (void) __atomic_add_fetch(&lanes->of[lanes_self].turns, 1, __ATOMIC_RELAXED);
}

/* To be skipped is for the test to decide, before there are lanes. By exit(): leaks are looked for in each. */
static inline __attribute__((noreturn)) void lanes_be(unsigned lane, pid_t parent, const char *(*prepare)(void),
                                                      void (*f)(void)) {
        static char lines[BUFSIZ];
        (void) setvbuf(stderr, lines, _IOLBF, sizeof lines); /* each line of a lane is written at once */
        check_case_failed = check_case_skipped = false;
        lanes_self = lane;
        lanes_at = lanes_chosen = 0;
        lanes_has_taken = false;
        const char *trouble = prepare ? prepare() : NULL;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent) /* a change of rights would have undone it */
                trouble = "this lane is nobody's";
        if (trouble) {
                fprintf(stderr, "%s\n", trouble);
                exit(1);
        }
        f();
        if (check_case_failed || check_case_skipped)
                exit(1);
        lanes->of[lane].at = 0;
        lanes->of[lane].cases = lanes_at;
        lanes->of[lane].chosen = lanes_chosen;
        exit(0);
}

/* One at a time, as the test waits for them. */
struct lanes_watch {
        pid_t pid; /* 0: it has ended */
        int status;
        unsigned turns;
        uint64_t idle_ns; /* since its last turn */
        bool hung;
};

/* Ends a lane that makes no progress. A late call is no time of the lane's: the machine may have stood still. */
static inline void lanes_observe(struct lanes_watch *w, const struct lane *lane) {
        unsigned turns = __atomic_load_n(&lane->turns, __ATOMIC_RELAXED);
        pid_t pid = waitpid(w->pid, &w->status, WNOHANG);
        w->idle_ns = turns == w->turns ? w->idle_ns + LANES_POLL_NS : 0;
        w->turns = turns;
        if (pid == w->pid)
                w->pid = 0;
        else if (pid < 0 || w->idle_ns >= lanes_stall_ns) {
                w->hung = true;
                (void) kill(w->pid, SIGKILL);
                (void) waitpid(w->pid, &w->status, 0);
                w->pid = 0;
        }
}

static inline void lanes_wait(struct lanes_watch *all, unsigned n) {
        for (bool more = true; more;) {
                more = false;
                for (unsigned i = 0; i < n; i++) {
                        if (all[i].pid)
                                lanes_observe(&all[i], &lanes->of[i]);
                        more |= all[i].pid != 0;
                }
                if (more)
                        (void) poll(NULL, 0, (int) (LANES_POLL_NS / NSEC_PER_MSEC));
        }
}

/* The parent of a process; 0: there is none. */
static inline pid_t lanes_parent_of(const char *pid) {
        char path[300], text[512] = "";
        int parent = 0;
        (void) snprintf(path, sizeof path, "/proc/%s/stat", pid);
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        if (!f || !fgets(text, sizeof text, f))
                return 0;
        const char *name_end = strrchr(text, ')');
        if (!name_end || sscanf(name_end, ") %*c %d", &parent) != 1) /* NOLINT(cert-err34-c): the kernel's */
                return 0;
        return parent;
}

/* Processes that have become this one's since those that started them are gone; all of them are sent the signal. One
 * that has just ended counts until it is waited for. */
static inline unsigned lanes_orphans(int signal) {
        unsigned n = 0;
        while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
        DIR *proc = opendir("/proc");
        for (struct dirent *e; proc && (e = readdir(proc));)
                if (isdigit((unsigned char) e->d_name[0]) && lanes_parent_of(e->d_name) == getpid()) {
                        n++;
                        (void) kill((pid_t) strtol(e->d_name, NULL, 10), signal);
                }
        if (proc)
                (void) closedir(proc);
        return n;
}

/* How many of them there were in the end. All are gone then. */
static inline unsigned lanes_clear(bool at_once) {
        uint64_t until_ns = util_now_ns() + (at_once ? 0 : lanes_left_ns);
        unsigned n;
        while ((n = lanes_orphans(0)) > 0 && util_now_ns() < until_ns)
                (void) poll(NULL, 0, 1);
        while (lanes_orphans(SIGKILL) > 0)
                (void) poll(NULL, 0, 1);
        return n;
}

/* What is wrong with one, as a part of a sentence; "": nothing. */
static inline void lanes_judge(const struct lanes_watch *w, const struct lane *lane, char *ret, size_t size) {
        char where[40] = "outside of its cases", what[60] = "failed";
        *ret = '\0';
        if (!w->hung && WIFEXITED(w->status) && WEXITSTATUS(w->status) == 0)
                return;
        if (lane->at)
                (void) snprintf(where, sizeof where, "in case %u", lane->at);
        if (w->hung)
                (void) snprintf(what, sizeof what, "did not move for %u s", (unsigned) (w->idle_ns / NSEC_PER_SEC));
        else if (WIFSIGNALED(w->status))
                (void) snprintf(what, sizeof what, "was ended by signal %d", WTERMSIG(w->status));
        else if (WEXITSTATUS(w->status) != 1)
                (void) snprintf(what, sizeof what, "ended with status %d", WEXITSTATUS(w->status));
        (void) snprintf(ret, size, "a lane %s %s", what, where);
}

static inline const char *lanes_verdict(const struct lanes_watch *all, unsigned n) {
        static char text[1000];
        size_t length = 0;
        text[0] = '\0';
        for (unsigned i = 0; i < n; i++) {
                char one[120];
                lanes_judge(&all[i], &lanes->of[i], one, sizeof one);
                if (*one && length < sizeof text)
                        length +=
                                (size_t) snprintf(text + length, sizeof text - length, "%s%s", length ? "; " : "", one);
        }
        unsigned left = lanes_clear(length > 0);
        if (length > 0)
                return text;
        for (unsigned i = 0; i < n; i++)
                if (lanes->of[i].cases == 0 || lanes->of[i].cases != lanes->of[0].cases)
                        return "not all have come by the same cases";
        if (left) {
                (void) snprintf(text, sizeof text, "%u %s left behind", left,
                                left == 1 ? "process was" : "processes were");
                return text;
        }
        return NULL;
}

static inline const char *lanes_fork(struct lanes_watch *all, unsigned n, const char *(*prepare)(void),
                                     void (*f)(void)) {
        pid_t self = getpid();
        (void) fflush(NULL); /* what is printed already is not for each of them to print again */
        for (unsigned i = 0; i < n; i++) {
                all[i] = (struct lanes_watch){.pid = fork()};
                if (all[i].pid == 0)
                        lanes_be(i, self, prepare, f);
                if (all[i].pid < 0) {
                        all[i].pid = 0;
                        (void) lanes_clear(true);
                        return "there is no process to be had for one";
                }
        }
        lanes_wait(all, n);
        return lanes_verdict(all, n);
}

/* One of how many cases is run, or is not; 0: the environment has another word than a number from 1 to 100. */
static inline unsigned lanes_read_one_of(void) {
        const char *text = getenv("IPCLAB_ALL_BUT_ONE_CASE_OF");
        char *end;
        lanes_others = text != NULL;
        if (!text)
                text = getenv("IPCLAB_ONE_CASE_OF");
        unsigned long n = text ? strtoul(text, &end, 10) : 1;
        return text && (*end || n > 100) ? 0 : (unsigned) n;
}

/* NULL when all cases that are chosen have been run, and none has failed; else a sentence. In a process that has no
 * other children. */
static inline const char *lanes_run(unsigned n, const char *(*prepare)(void), void (*f)(void)) {
        struct lanes_watch all[LANES_MAX];
        lanes_one_of = lanes_read_one_of();
        if (lanes_one_of == 0)
                return "IPCLAB_ONE_CASE_OF or IPCLAB_ALL_BUT_ONE_CASE_OF is no number from 1 to 100";
        if (n == 0 || n > LANES_MAX)
                return "so many there cannot be";
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return "nobody would see what they leave";
        lanes = mmap(NULL, sizeof *lanes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (lanes == MAP_FAILED) {
                lanes = NULL;
                return "no memory that they could share";
        }
        const char *trouble = lanes_fork(all, n, prepare, f);
        if (lanes_one_of > 1)
                printf("%u of %u cases\n", lanes->of[0].chosen, lanes->of[0].cases);
        (void) munmap(lanes, sizeof *lanes);
        lanes = NULL;
        lanes_of_trials = false;
        (void) prctl(PR_SET_CHILD_SUBREAPER, 0);
        return trouble;
}

#endif
