/* SPDX-License-Identifier: MIT */

/*
 * Settings below /proc/sys and /sys. Their files belong to root, and the kernel checks the writer's privilege at each
 * write: neither a capability nor a descriptor that root has opened helps an unprivileged daemon. It therefore sends a
 * line ("numa_balancing=1") to ipclab-tune over a socket of systemd's and receives a line ("ok", or the reason).
 *
 * A setting is one file, or one for each CPU, or one for each idle state of each CPU. Its value is then the word that
 * all files have, or a list of words with their CPUs ("performance@0-3;powersave@4-7"); of idle states, which have a
 * digit each, the digits of a CPU ("01@0;1@1-3": state1 of CPU 0 is 0 and state2 is 1).
 *
 * Source: Documentation/admin-guide/sysctl/kernel.rst, mm/transhuge.rst, pm/cpufreq.rst, pm/cpuidle.rst.
 */

#include "daemon/tune/setting.h"

#include "daemon/host/hostfs.h"
#include "schema/detail.h"
#include "schema/facts.h"
#include "schema/util.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define REPLY_WITHIN_NS (5 * NSEC_PER_SEC)
#define RETRY_AFTER_US 200000
#define LINE_MAX_BYTES 512u
#define PATH_BYTES 128u     /* of a file below the root */
#define IDLE_STATES_MAX 16u /* the kernel has 10 at most (CPUIDLE_STATE_MAX) */

#define CPU_FOLDER "/sys/devices/system/cpu/"

enum scope { SCOPE_HOST, SCOPE_CPU, SCOPE_IDLE_STATE };

/* 2: tiered memory, and may be the saved one */
static const char *const balancing_words[] = {"0", "1", "2", "3", NULL};
static const char *const disable_words[] = {"0", "1", NULL};

static const struct setting {
        const char *name, *title, *absent;
        enum scope scope;
        const char *path;         /* below the folder of the CPU, or of its idle state, where the scope is that */
        const char *const *words; /* at most FACT_CHOICES_MAX, NULL ends them; NULL: a name that the kernel knows */
        const char *offered;      /* a file with the words that this host has; NULL: it has them all */
        const char *off, *on;     /* of one that is switched */
} settings[] = {
        {"numa_balancing", "kernel.numa_balancing", "this kernel has no automatic NUMA balancing to be switched",
         SCOPE_HOST, "/proc/sys/kernel/numa_balancing", balancing_words, NULL, "0", "1"},
        {"governor", "cpufreq/scaling_governor", "no CPU of this machine has a governor (no cpufreq driver)", SCOPE_CPU,
         "cpufreq/scaling_governor", NULL, "cpufreq/scaling_available_governors", NULL, NULL},
        {"idle_states", "cpuidle/state*/disable",
         "no CPU of this machine has an idle state beside the first that can be switched", SCOPE_IDLE_STATE, "disable",
         disable_words, NULL, "1", "0"}, /* the file disables */
        {"transparent_hugepage", "transparent_hugepage/enabled", "this kernel has no transparent huge pages",
         SCOPE_HOST, "/sys/kernel/mm/transparent_hugepage/enabled", fact_rows[FACT_THP].choices,
         "/sys/kernel/mm/transparent_hugepage/enabled", NULL, NULL},
        {"transparent_hugepage_shmem", "transparent_hugepage/shmem_enabled",
         "this kernel has no transparent huge pages of shared memory", SCOPE_HOST,
         "/sys/kernel/mm/transparent_hugepage/shmem_enabled", fact_rows[FACT_THP_SHMEM].choices,
         "/sys/kernel/mm/transparent_hugepage/shmem_enabled", NULL, NULL},
};

static const struct setting *find(const char *name) {
        for (size_t i = 0; i < ELEMENTS(settings); i++)
                if (strcmp(settings[i].name, name) == 0)
                        return &settings[i];
        return NULL;
}

const char *setting_title(const char *name) {
        const struct setting *s = find(name);
        return s ? s->title : NULL;
}

const char *setting_absent(const char *name) {
        const struct setting *s = find(name);
        return s ? s->absent : "there is no such setting";
}

const char *setting_switched(const char *name, bool on) {
        const struct setting *s = find(name);
        return !s ? NULL : on ? s->on : s->off;
}

/* --- values --- */

static bool word_fits(const struct setting *s, const char *word, size_t n) {
        for (size_t i = 0; s->words && i < FACT_CHOICES_MAX && s->words[i]; i++)
                if (strlen(s->words[i]) == n && memcmp(s->words[i], word, n) == 0)
                        return true;
        if (s->words || n == 0 || n >= SETTING_WORD_MAX)
                return false;
        for (size_t i = 0; i < n; i++)
                if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_-", word[i]))
                        return false;
        return true;
}

bool setting_allows(const char *name, const char *value) {
        const struct setting *s = find(name);
        return s && word_fits(s, value, strlen(value));
}

/* A word with the CPUs that have it; n_list 0: all. */
struct group {
        const char *word, *list;
        size_t n_word, n_list;
};

/* Takes the next group from *at, which is not "". */
static struct group next_group(const char **at) {
        size_t n = strcspn(*at, ";"), n_word = strcspn(*at, "@;");
        struct group g = {.word = *at, .n_word = n_word};
        if (n_word < n) {
                g.list = *at + n_word + 1;
                g.n_list = n - n_word - 1;
        }
        *at += n + ((*at)[n] == ';');
        return g;
}

bool setting_allows_saved(const char *name, const char *value) {
        const struct setting *s = find(name);
        if (!s || !value[0])
                return false;
        for (const char *at = value; *at;) {
                struct group g = next_group(&at);
                bool fits = s->scope == SCOPE_IDLE_STATE
                                    ? g.n_word > 0 && g.n_word <= IDLE_STATES_MAX && strspn(g.word, "01") == g.n_word
                                    : word_fits(s, g.word, g.n_word);
                if (!fits ||
                    (g.list && (s->scope == SCOPE_HOST || g.n_list == 0 || strspn(g.list, "0123456789-,") != g.n_list)))
                        return false;
        }
        return true;
}

static bool list_has(const struct group *g, int cpu) {
        const char *at = g->list, *end = at + g->n_list;
        if (!g->list)
                return true;
        while (at < end) {
                char *next;
                long first = strtol(at, &next, 10), last = first;
                if (next == at)
                        return false;
                if (*next == '-') {
                        at = next + 1;
                        last = strtol(at, &next, 10);
                        if (next == at)
                                return false;
                }
                if (cpu >= first && cpu <= last)
                        return true;
                at = next + (*next == ',');
                if (*next != ',')
                        return false;
        }
        return false;
}

/* One file of a setting. */
struct place {
        int cpu;        /* -1: of the host */
        unsigned state; /* from 1 */
};

/* What a value has for one file. -ENOENT: nothing. */
static int value_at(const struct setting *s, const char *value, const struct place *p, char *ret) {
        for (const char *at = value; *at;) {
                struct group g = next_group(&at);
                if (!list_has(&g, p->cpu))
                        continue;
                if (s->scope == SCOPE_IDLE_STATE && g.n_word > 1) {
                        if (p->state > g.n_word)
                                return -ENOENT;
                        g.word += p->state - 1;
                        g.n_word = 1;
                }
                (void) snprintf(ret, SETTING_WORD_MAX, "%.*s", (int) g.n_word, g.word);
                return 0;
        }
        return -ENOENT;
}

/* --- files --- */

/* The files of a setting, and the tree that they are in. */
struct places {
        const char *root;
        struct hostfs h;
        struct place *items;
        size_t n;
};

static void places_free(struct places *p) {
        hostfs_deinit(&p->h);
        free(p->items);
}
#define _cleanup_places_ __attribute__((cleanup(places_free)))
#define NO_PLACES ((struct places){.h = HOSTFS_MACHINE})

/* The path of one of its files below the root. */
static void name_place(enum scope scope, const char *file, const struct place *p, char *ret /* [PATH_BYTES] */) {
        if (scope == SCOPE_HOST)
                (void) snprintf(ret, PATH_BYTES, "%s", file);
        else if (scope == SCOPE_CPU)
                (void) snprintf(ret, PATH_BYTES, CPU_FOLDER "cpu%d/%s", p->cpu, file);
        else
                (void) snprintf(ret, PATH_BYTES, CPU_FOLDER "cpu%d/cpuidle/state%u/%s", p->cpu, p->state, file);
}

static int open_to_write(const struct places *places, const struct setting *s, const struct place *p, int flags) {
        char path[PATH_BYTES], whole[PATH_MAX];
        name_place(s->scope, s->path, p, path);
        int n = snprintf(whole, sizeof(whole), "%s%s", places->root, path);
        if (n < 0 || (size_t) n >= sizeof(whole))
                return -ENAMETOOLONG;
        int fd = open(whole, O_WRONLY | flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
        return fd < 0 ? -errno : fd;
}

static int read_line(struct places *places, enum scope scope, const char *file, const struct place *p,
                     char *ret /* [LINE_MAX_BYTES] */) {
        char path[PATH_BYTES];
        name_place(scope, file, p, path);
        return hostfs_line(&places->h, ret, LINE_MAX_BYTES, "%s", path);
}

/* The word of a file: the one in brackets where the kernel shows all that there are. */
static int read_place(struct places *places, const struct setting *s, const struct place *p, char *ret) {
        char line[LINE_MAX_BYTES];
        int r = read_line(places, s->scope, s->path, p, line);
        if (r < 0)
                return r;
        if (strchr(line, '['))
                r = hostfs_choice(line);
        size_t n = strcspn(line, " ");
        if (r < 0 || n == 0 || n >= SETTING_WORD_MAX)
                return r < 0 ? r : n == 0 ? -ENODATA : -EFBIG;
        memcpy(ret, line, n);
        ret[n] = '\0';
        return 0;
}

static int write_place(struct places *places, const struct setting *s, const struct place *p, const char *word) {
        char now[SETTING_WORD_MAX];
        _cleanup_close_ int fd = open_to_write(places, s, p, O_TRUNC);
        if (fd < 0)
                return fd;
        if (write(fd, word, strlen(word)) < 0)
                return -errno;
        int r = read_place(places, s, p, now);
        return r < 0 ? r : strcmp(now, word) == 0 ? 0 : -EIO;
}

static int places_add(struct places *p, int cpu, unsigned state) {
        if (!util_resize(p->items, p->n + 1))
                return -ENOMEM;
        p->items[p->n++] = (struct place){.cpu = cpu, .state = state};
        return 0;
}

/* The files of one CPU; it may have none. */
static int find_places(const struct setting *s, int cpu, struct places *ret) {
        unsigned last = s->scope == SCOPE_IDLE_STATE ? IDLE_STATES_MAX : 1;
        for (unsigned state = 1; state <= last; state++) {
                char line[LINE_MAX_BYTES];
                int r = read_line(ret, s->scope, s->path, &(struct place){.cpu = cpu, .state = state}, line);
                if (r == -ENOENT || r == -ENOTDIR)
                        return 0;
                if (r == 0)
                        r = places_add(ret, cpu, state);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* All files of a setting, by CPU and state; -ENOENT: the host has none. */
static int list_places(const char *root, const struct setting *s, struct places *ret) {
        _cleanup_free_ int *cpus = NULL;
        size_t n = 0;
        ret->root = root;
        int r = hostfs_init(&ret->h, root);
        if (r < 0 || s->scope == SCOPE_HOST)
                return r < 0 ? r : places_add(ret, -1, 0);
        r = hostfs_list(&ret->h, &cpus, &n, CPU_FOLDER "online");
        for (size_t i = 0; r == 0 && i < n; i++)
                r = find_places(s, cpus[i], ret);
        return r < 0 ? r : ret->n ? 0 : -ENOENT;
}

/* --- a setting as a whole --- */

struct cpu_word {
        int cpu;
        char word[SETTING_WORD_MAX];
        bool done;
};

/* The words of the CPUs, those of idle states in one: "0110", or "1" when all are alike. */
static int read_words(const struct setting *s, struct places *places, struct cpu_word *ret, size_t *ret_n) {
        size_t n = 0;
        for (size_t i = 0; i < places->n; i++) {
                const struct place *p = &places->items[i];
                char word[SETTING_WORD_MAX] = "";
                int r = read_place(places, s, p, word);
                if (r < 0)
                        return r;
                if (s->scope != SCOPE_IDLE_STATE || p->state == 1) {
                        ret[n] = (struct cpu_word){.cpu = p->cpu};
                        memcpy(ret[n++].word, word, sizeof(word));
                } else /* which has IDLE_STATES_MAX digits at most */
                        ret[n - 1].word[p->state - 1] = word[0];
                if (s->scope == SCOPE_IDLE_STATE && !word_fits(s, word, strlen(word)))
                        return -EBADMSG;
        }
        for (size_t i = 0; s->scope == SCOPE_IDLE_STATE && i < n; i++)
                if (strspn(ret[i].word, (char[]){ret[i].word[0], '\0'}) == strlen(ret[i].word))
                        ret[i].word[1] = '\0';
        *ret_n = n;
        return 0;
}

static int format_words(struct cpu_word *words, size_t n, bool lists, char *ret) {
        _cleanup_free_ int *ids = calloc(n ? n : 1, sizeof(int));
        char list[SETTING_VALUE_MAX];
        size_t length = 0;
        if (!ids)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                size_t alike = 0;
                for (size_t k = i; k < n && !words[i].done; k++)
                        if (!words[k].done && strcmp(words[k].word, words[i].word) == 0) {
                                words[k].done = k > i;
                                ids[alike++] = words[k].cpu;
                        }
                if (alike == n && !lists) {
                        (void) snprintf(ret, SETTING_VALUE_MAX, "%s", words[i].word);
                        return 0;
                }
                if (alike == 0)
                        continue;
                hostfs_format_list(ids, alike, list, sizeof(list));
                int used = snprintf(ret + length, SETTING_VALUE_MAX - length, "%s%s@%s", length ? ";" : "",
                                    words[i].word, list);
                if (used < 0 || length + (size_t) used >= SETTING_VALUE_MAX || strstr(list, "…"))
                        return -EFBIG;
                length += (size_t) used;
        }
        return 0;
}

static int read_setting(const char *root, const char *name, bool lists, char *ret) {
        const struct setting *s = find(name);
        _cleanup_places_ struct places places = NO_PLACES;
        size_t n = 0;
        if (!s)
                return -EINVAL;
        ret[0] = '\0';
        int r = list_places(root, s, &places);
        if (r < 0)
                return r;
        _cleanup_free_ struct cpu_word *words = calloc(places.n, sizeof(*words));
        if (!words)
                return -ENOMEM;
        r = read_words(s, &places, words, &n);
        return r < 0 ? r : format_words(words, n, lists && s->scope != SCOPE_HOST, ret);
}

int setting_read(const char *root, const char *name, char *ret) {
        return read_setting(root, name, false, ret);
}

int setting_save(const char *root, const char *name, char *ret) {
        return read_setting(root, name, true, ret);
}

/* Writes `value` into each file; with `only` given, into those that have what `only` has for them. The others are still
 * written when one fails. */
static int write_places(const char *root, const struct setting *s, const char *value, const char *only) {
        char word[SETTING_WORD_MAX], expected[SETTING_WORD_MAX], now[SETTING_WORD_MAX];
        _cleanup_places_ struct places places = NO_PLACES;
        int first = list_places(root, s, &places);
        for (size_t i = 0; i < places.n; i++) {
                const struct place *p = &places.items[i];
                int r = value_at(s, value, p, word);
                if (r == 0 && only)
                        r = value_at(s, only, p, expected);
                if (r == -ENOENT)
                        continue; /* a CPU that has come since */
                if (r == 0 && only)
                        r = read_place(&places, s, p, now);
                if (r == 0 && (!only || strcmp(now, expected) == 0))
                        r = write_place(&places, s, p, word);
                if (r < 0 && first == 0)
                        first = r;
        }
        return first;
}

int setting_write(const char *root, const char *name, const char *value) {
        return setting_allows(name, value) ? write_places(root, find(name), value, NULL) : -EINVAL;
}

int setting_revert(const char *root, const char *name, const char *original, const char *wanted) {
        if (!setting_allows_saved(name, original) || !setting_allows(name, wanted))
                return -EINVAL;
        return write_places(root, find(name), original, wanted);
}

int setting_compare(const char *root, const char *name, const char *original, const char *wanted,
                    enum setting_state *ret) {
        const struct setting *s = find(name);
        char word[SETTING_WORD_MAX], now[SETTING_WORD_MAX];
        _cleanup_places_ struct places places = NO_PLACES;
        enum setting_state state = SETTING_AS_BEFORE;
        if (!s)
                return -EINVAL;
        int r = list_places(root, s, &places);
        for (size_t i = 0; r == 0 && i < places.n; i++) {
                const struct place *p = &places.items[i];
                r = read_place(&places, s, p, now);
                if (r < 0 || value_at(s, original, p, word) < 0 || strcmp(word, now) == 0)
                        continue;
                if (value_at(s, wanted, p, word) == 0 && strcmp(word, now) == 0)
                        state = SETTING_PENDING;
                else if (state == SETTING_AS_BEFORE)
                        state = SETTING_CHANGED_SINCE;
        }
        if (r == 0)
                *ret = state;
        return r;
}

int setting_out_of_reach(const char *root, const char *name, const char *original, enum setting_cpus which, char *ret) {
        static const char *const files[][2] = {
                [SETTING_CPUS_OFFLINE] = {CPU_FOLDER "present", CPU_FOLDER "online"},
                [SETTING_CPUS_REMOVED] = {CPU_FOLDER "possible", CPU_FOLDER "present"},
        };
        const struct setting *s = find(name);
        _cleanup_(hostfs_deinit) struct hostfs h = {.root_fd = -1};
        _cleanup_free_ int *all = NULL, *there = NULL;
        char word[SETTING_WORD_MAX];
        size_t n_all = 0, n_there = 0, n = 0;
        if (!s || s->scope == SCOPE_HOST)
                return s ? -ENOENT : -EINVAL;
        int r = hostfs_init(&h, root);
        if (r == 0)
                r = hostfs_list(&h, &all, &n_all, "%s", files[which][0]);
        if (r == 0)
                r = hostfs_list(&h, &there, &n_there, "%s", files[which][1]);
        if (r < 0)
                return r;
        for (size_t i = 0, k = 0; i < n_all; i++) { /* both ascend */
                while (k < n_there && there[k] < all[i])
                        k++;
                if ((k == n_there || there[k] != all[i]) &&
                    value_at(s, original, &(struct place){.cpu = all[i], .state = 1}, word) == 0)
                        all[n++] = all[i];
        }
        if (n == 0)
                return -ENOENT;
        hostfs_format_list(all, n, ret, SETTING_LIST_MAX);
        return 0;
}

/* Whether a line of words has this one, in brackets or not. */
static bool line_has(const char *line, const char *word) {
        size_t n = strlen(word);
        for (const char *at = line; *at;) {
                at += strspn(at, " []");
                size_t length = strcspn(at, " []");
                if (length == n && memcmp(at, word, n) == 0)
                        return true;
                at += length;
        }
        return false;
}

int setting_offers(const char *root, const char *name, const char *value, char *ret_offered) {
        const struct setting *s = find(name);
        _cleanup_places_ struct places places = NO_PLACES;
        char line[LINE_MAX_BYTES];
        if (!s)
                return -EINVAL;
        int r = s->offered ? list_places(root, s, &places) : 0;
        for (size_t i = 0; r == 0 && i < places.n; i++) {
                r = read_line(&places, s->scope, s->offered, &places.items[i], line);
                if (r == -ENOENT) /* a driver that does not list them; the write decides */
                        r = 0;
                else if (r == 0 && !line_has(line, value)) {
                        (void) snprintf(ret_offered, SETTING_OFFERED_MAX, "%.*s", (int) SETTING_OFFERED_MAX - 1, line);
                        return -ENOENT;
                }
        }
        return r;
}

/* --- through ipclab-tune --- */

static int exchange(int fd, const char *request, char *ret, size_t size, char *detail) {
        uint64_t deadline = util_now_ns() + REPLY_WITHIN_NS;
        if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
                return detail_fail(detail, -errno, "the request to ipclab-tune cannot be sent: %s",
                                   strerrordesc_np(errno));
        for (size_t length = 0;;) {
                uint64_t now = util_now_ns();
                struct pollfd p = {.fd = fd, .events = POLLIN};
                int ready = now >= deadline ? 0 : poll(&p, 1, (int) ((deadline - now) / NSEC_PER_MSEC) + 1);
                if (ready < 0 && errno == EINTR)
                        continue;
                if (ready <= 0)
                        return detail_fail(detail, ready < 0 ? -errno : -ETIMEDOUT,
                                           "ipclab-tune has not replied within 5 s");
                ssize_t n = recv(fd, ret + length, size - 1 - length, 0);
                if (n <= 0)
                        return detail_fail(detail, n < 0 ? -errno : -EPIPE,
                                           "ipclab-tune ended without a reply; its journal may have the reason");
                length += (size_t) n;
                ret[length] = '\0';
                char *end = strchr(ret, '\n');
                if (end) {
                        *end = '\0';
                        return 0;
                }
                if (length == size - 1)
                        return detail_fail(detail, -EBADMSG, "the reply of ipclab-tune is too long");
        }
}

static int request_once(const char *socket_path, const char *request, char *detail) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char reply[256];
        if (snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path) >= (int) sizeof(address.sun_path))
                return detail_fail(detail, -ENAMETOOLONG, "%s is too long for a socket", socket_path);
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return detail_fail(detail, -errno, "cannot connect to ipclab-tune at %s: %s", socket_path,
                                   strerrordesc_np(errno));
        int r = exchange(fd, request, reply, sizeof(reply), detail);
        if (r < 0 || strcmp(reply, "ok") == 0)
                return r;
        return detail_fail(detail, strcmp(reply, SETTING_NO_UNDO_RECORD) == 0 ? -ESTALE : -EPERM,
                           "ipclab-tune refuses: %s", reply);
}

int setting_request(const char *socket_path, const char *request, char *ret_detail) {
        int r = request_once(socket_path, request, ret_detail);
        if (r != -EPIPE && r != -ECONNRESET && r != -ECONNREFUSED)
                return r;
        /* systemd closes what is above MaxConnections=, and the socket is gone for a moment when it is restarted */
        (void) usleep(RETRY_AFTER_US);
        return request_once(socket_path, request, ret_detail);
}

/* Whether ipclab-tune may do what this process lacks the privilege for. */
static bool needs_helper(const char *root, int error) {
        return (error == -EACCES || error == -EPERM || error == -EROFS) && !root[0];
}

static int cannot_be_set(const char *name, const char *value, int error, char *detail) {
        const char *title = setting_title(name);
        return detail_fail(detail, error, "%s cannot be set to %s: %s", title ? title : name, value,
                           strerrordesc_np(-error));
}

int setting_may_change(const char *root, const char *name, char *ret_detail) {
        const struct setting *s = find(name);
        _cleanup_places_ struct places places = NO_PLACES;
        int r = s ? list_places(root, s, &places) : -EINVAL;
        _cleanup_close_ int fd = r < 0 ? r : open_to_write(&places, s, &places.items[0], 0);
        if (fd >= 0)
                return 0;
        if (fd == -ENOENT || fd == -EINVAL)
                return detail_fail(ret_detail, -EACCES, "this kernel has no setting %s", name);
        if (root[0] || access(SETTING_SOCKET, F_OK) < 0)
                return detail_fail(ret_detail, -EACCES,
                                   "changing %s needs root, and the socket of ipclab-tune is missing (systemctl start "
                                   "ipclab-tune.socket)",
                                   setting_title(name));
        return 0;
}

int setting_change(const char *root, const char *name, const char *value, char *ret_detail) {
        char request[64];
        int r = setting_write(root, name, value);
        if (!needs_helper(root, r))
                return r < 0 ? cannot_be_set(name, value, r, ret_detail) : 0;
        (void) snprintf(request, sizeof(request), "%s=%s\n", name, value);
        return setting_request(SETTING_SOCKET, request, ret_detail);
}

int setting_restore(const char *root, const char *name, const char *original, const char *wanted, char *ret_detail) {
        char request[64];
        int r = setting_revert(root, name, original, wanted);
        if (!needs_helper(root, r))
                return r < 0 ? cannot_be_set(name, original, r, ret_detail) : 0;
        (void) snprintf(request, sizeof(request), SETTING_RESTORE "%s\n", name);
        return setting_request(SETTING_SOCKET, request, ret_detail);
}
