/* SPDX-License-Identifier: MIT */

/*
 * A process that works on the store is killed at random moments, again and again on the same database. What it had
 * acknowledged, through a pipe, is there when the next one opens it; no id comes twice; and a run that was under way
 * is queued again.
 */

#include "daemon/log.h"
#include "schema/util.h"
#include "tests/unit/campaign.h"
#include "tests/unit/check.h"
#include "tests/unit/listed-runs.h"
#include "tests/unit/store-fixture.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#define ROUNDS 40
#define LONGEST_US 25000
#define UNTIL_IMPORTED 5u /* of two experiments one is even, and a bundle is taken in behind it */
#define IDS_MAX 20000

enum deed { DEED_ADDED, DEED_IMPORTED, DEED_DELETED, DEED_FINISHED };
struct acknowledgement {
        int64_t deed, id;
};

/* What the parent knows of each experiment and run: the highest deed that was acknowledged. */
static struct {
        bool added[IDS_MAX], imported[IDS_MAX], deleted[IDS_MAX], finished[IDS_MAX];
        int64_t last_id;
        unsigned imports;
} known;

static void acknowledge(int fd, enum deed deed, int64_t id) {
        struct acknowledgement a = {deed, id};
        if (write(fd, &a, sizeof(a)) != sizeof(a))
                _exit(2);
}

/* Imports another host's experiment in portions: what was killed before its end is nothing. */
static void import(struct store *s, int fd) {
        struct importing i = {0};
        char digest[24];
        if (fixture_begin_import(s, &i) < 0)
                _exit(8);
        (void) snprintf(digest, sizeof(digest), "%" PRId64, i.id);
        if (fixture_import_runs(&i, 0) < 0 || fixture_import_runs(&i, 1) < 0 || fixture_import_part(&i, 0) < 0 ||
            fixture_import_part(&i, 1) < 0 || fixture_end_import(&i, digest) < 0)
                _exit(9);
        acknowledge(fd, DEED_IMPORTED, i.id);
        store_import_deinit(&i);
}

/* Adds, imports, runs and deletes until it is killed. */
static void child(const char *dir, int fd) {
        struct store *s;
        struct recovery recovery;
        if (store_open(&s, dir) < 0 || store_recover(s, &recovery) < 0)
                _exit(3);
        for (;;) {
                int64_t id, run;
                if (fixture_add(s, 2, 1, NULL, &id) < 0)
                        _exit(4);
                acknowledge(fd, DEED_ADDED, id);
                if (id % 2 == 0)
                        import(s, fd);
                if (id % 3 == 0) { /* the newest: its id must not come again */
                        if (store_delete_experiment(s, id) < 0)
                                _exit(5);
                        acknowledge(fd, DEED_DELETED, id);
                }
                run = fixture_start(s);
                if (run < 0)
                        _exit(6);
                if (fixture_finish(s, run, STATE_DONE, NULL) < 0)
                        _exit(7);
                acknowledge(fd, DEED_FINISHED, run);
        }
}

/* Everything that was written before the kill is still in the pipe. Returns false when an id came twice. */
static bool read_acknowledgements(int fd) {
        struct acknowledgement a;
        while (read(fd, &a, sizeof(a)) == sizeof(a)) {
                if (a.id <= 0 || a.id >= IDS_MAX)
                        return false;
                if (a.deed == DEED_ADDED || a.deed == DEED_IMPORTED) {
                        bool imported = a.deed == DEED_IMPORTED;
                        if (a.id <= known.last_id)
                                return false;
                        known.last_id = a.id;
                        known.added[a.id] = !imported;
                        known.imported[a.id] = imported;
                        known.imports += imported;
                } else if (a.deed == DEED_DELETED)
                        known.deleted[a.id] = true;
                else if (a.deed == DEED_FINISHED)
                        known.finished[a.id] = true;
        }
        return true;
}

/* True when so many are in the pipe, which is not read. */
static bool await_acknowledgements(int fd, size_t n) {
        uint64_t deadline_ns = util_now_ns() + 60 * NSEC_PER_SEC;
        int bytes = 0;
        while (ioctl(fd, FIONREAD, &bytes) == 0 && (size_t) bytes < n * sizeof(struct acknowledgement)) {
                if (util_now_ns() >= deadline_ns)
                        return false;
                (void) poll(NULL, 0, 1);
        }
        return bytes > 0;
}

static bool experiment_exists(struct store *s, int64_t id) {
        return fixture_experiment_state(s, id) != STATE_COUNT;
}

static bool import_is_whole(struct store *s, int64_t id) {
        char digest[24];
        int64_t found = 0;
        struct run_record *runs = NULL;
        size_t n = 0, length = 0;
        _cleanup_free_ uint8_t *file = fixture_bundle(s, id, &length);
        (void) snprintf(digest, sizeof(digest), "%" PRId64, id);
        if (store_find_bundle(s, digest, &found) < 0 || found != id || !file ||
            listed_runs(s, id, 0, 100, &runs, &n) < 0)
                return false;
        listed_runs_free(runs, n);
        return n == 2 * FIXTURE_IMPORT_RUNS && length > 0 && file[length - 1] == 'b';
}

/* Returns how much of what was acknowledged is missing or wrong. */
static unsigned count_lost(struct store *s) {
        unsigned lost = 0;
        for (int64_t id = 1; id < IDS_MAX; id++) {
                if (known.added[id] && !known.deleted[id] && id % 3 != 0)
                        lost += !experiment_exists(s, id);
                if (known.imported[id])
                        lost += !import_is_whole(s, id);
                if (known.deleted[id])
                        lost += experiment_exists(s, id);
                if (known.finished[id])
                        lost += fixture_run_state(s, id) != STATE_DONE;
        }
        return lost;
}

/* The counts beside an experiment are those of its runs, whenever it was killed. */
#define WRONG_COUNTS                                                                                                   \
        "SELECT count(*) FROM experiments AS e WHERE " SHOWN(                                                          \
                "id") " AND ("                                                                                         \
                      "runs_total != (SELECT count(*) FROM runs WHERE experiment_id = e.id) OR "                       \
                      "runs_done != (SELECT count(*) FROM runs WHERE experiment_id = e.id AND state = 'done') OR "     \
                      "runs_failed != (SELECT count(*) FROM runs WHERE experiment_id = e.id AND state = 'failed'))"

static void kill_again_and_again(unsigned seed, unsigned rounds) {
        FIXTURE f;
        fixture_open(&f);
        store_close(util_steal(&f.store));
        unsigned worked = 0;
        memset(&known, 0, sizeof(known));
        for (unsigned round = 0; round < rounds; round++) {
                int fds[2];
                CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
                pid_t pid = fork();
                CHECK(pid >= 0);
                if (pid == 0) {
                        close(fds[0]);
                        child(f.dir, fds[1]);
                }
                close(fds[1]);
                /* every other time not before it is at work, and half of these not before it has taken a bundle in,
                 * however slow this machine is */
                if (round % 2)
                        CHECK(await_acknowledgements(fds[0], round % 4 == 3 ? UNTIL_IMPORTED : 1));
                usleep((unsigned) rand_r(&seed) % LONGEST_US);
                CHECK_INT(kill(pid, SIGKILL), 0);
                int status;
                CHECK_INT(waitpid(pid, &status, 0), pid);
                bool killed = WIFSIGNALED(status); /* else it gave up by itself: a step failed */
                int64_t before = known.last_id;
                bool unique = read_acknowledgements(fds[0]);
                close(fds[0]);
                CHECK(killed);
                CHECK(unique);
                worked += known.last_id > before;

                CHECK_INT(store_open(&f.store, f.dir), 0); /* the lock died with its holder */
                CHECK_UINT(count_lost(f.store), 0);
                CHECK_INT(number(&f, WRONG_COUNTS), 0);
                CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE state = 'running'") <= 1, 1);
                struct recovery recovery;
                CHECK_INT(store_recover(f.store, &recovery), 0);
                CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE state IN ('running', 'interrupted')"), 0);
                CHECK_INT(number(&f, WRONG_COUNTS), 0);
                while (store_tidy_forgotten(f.store) > 0)
                        continue;
                CHECK_INT(number(&f, "SELECT count(*) FROM forgotten"), 0);
                CHECK_INT(
                        number(&f, "SELECT count(*) FROM runs WHERE experiment_id NOT IN (SELECT id FROM experiments)"),
                        0);
                store_close(util_steal(&f.store));
        }
        CHECK(worked >= rounds / 2); /* it was killed at work, not before it */
        CHECK(known.imports > 0 || rounds < 4);
}

/* Each database sees some kills: with the number of its experiments grows the time of looking at all. */
static void test_killed_again_and_again(void) {
        unsigned kills = campaign_count("IPCLAB_KILLS", ROUNDS), experiments = 0, imports = 0;
        for (unsigned at = 0; at < kills && !check_case_failed; at += ROUNDS) {
                kill_again_and_again(20261 + at, kills - at < ROUNDS ? kills - at : ROUNDS);
                experiments += (unsigned) known.last_id;
                imports += known.imports;
        }
        printf("counted: %u kills of a process at work on a store, up to %u experiments acknowledged, of them %u "
               "imports: none lost, none twice\n",
               kills, experiments, imports);
}

static void test_key_holds_over_a_kill(void) {
        FIXTURE f;
        int64_t id = 0, again;
        int fds[2];
        fixture_dir(&f);
        CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                if (store_open(&f.store, f.dir) < 0 || fixture_add(f.store, 1, 1, "key", &id) < 0)
                        _exit(1);
                acknowledge(fds[1], DEED_ADDED, id);
                (void) raise(SIGKILL);
        }
        struct acknowledgement a = {0};
        close(fds[1]);
        ssize_t n = read(fds[0], &a, sizeof(a));
        close(fds[0]);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
        CHECK_INT(n, sizeof(a));
        CHECK_INT(store_open(&f.store, f.dir), 0);
        _cleanup_free_ char *body = NULL;
        CHECK_INT(store_find_idempotency(f.store, "key", &again, &body), 0);
        CHECK_INT(again, a.id);
}

int main(void) {
        log_open(LOG_WARNING);
        RUN(test_killed_again_and_again);
        RUN(test_key_holds_over_a_kill);
        return check_end();
}
