/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_PROOF_REPORT_H
#define IPCLAB_TESTS_PROOF_REPORT_H

/* Proofs of placement from and to the text that a stored run has of them. What a text lacks is 0, empty, or
 * (migrations) unknown: ENOENT. */

#include "schema/json/json.h"
#include "schema/protocol/proof-report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROOF __attribute__((cleanup(proof_report_freep))) struct proof_report

static inline const struct json *proof_member(const struct json *object, const char *key) {
        return object && json_type(object) == JSON_OBJECT ? json_get(object, key) : NULL;
}

static inline const struct json *proof_first(const struct json *object, const char *key) {
        const struct json *list = proof_member(object, key);
        return list ? json_first(list) : NULL;
}

static inline uint64_t proof_number(const struct json *object, const char *key) {
        const struct json *value = proof_member(object, key);
        int64_t n = 0;
        if (value)
                (void) json_as_i64(value, &n); /* stays 0 */
        return (uint64_t) n;
}

static inline const char *proof_word(const struct json *object, const char *key) {
        const struct json *value = proof_member(object, key);
        const char *word = "";
        if (value)
                (void) json_as_string(value, &word); /* stays empty */
        return word;
}

static inline struct proof_list proof_numbers_of(struct proof_report *p, const struct json *object, const char *key) {
        struct proof_list list = proof_report_numbers(p);
        for (const struct json *i = proof_first(object, key); i; i = json_next(i)) {
                int64_t n = -1;
                (void) json_as_i64(i, &n);
                proof_report_add_number(p, &list, (unsigned) n);
        }
        return list;
}

static inline uint64_t proof_errno_of(const char *name) {
        for (int e = 1; e < 4096; e++)
                if (strerrorname_np(e) && strcmp(strerrorname_np(e), name) == 0)
                        return (uint64_t) e;
        return 0;
}

static inline void proof_take_pages(struct proof_report *p, const struct json *json) {
        struct proof_pages *row = proof_report_add_pages(p);
        const struct json *nodes = proof_member(json, "nodes");
        while (row->kind < PAGE_KIND_COUNT && strcmp(page_kind_name(row->kind), proof_word(json, "what")) != 0)
                row->kind++;
        row->together = json_get(json, "thread") == NULL;
        row->thread = (uint32_t) proof_number(json, row->together ? "threads" : "thread");
        row->total = proof_number(json, "total");
        row->moved = proof_number(json, "moved");
        row->error = nodes && json_type(nodes) == JSON_NULL ? EPERM : 0;
        row->nodes = proof_report_counts(p);
        for (const struct json *i = proof_first(json, "nodes"); i; i = json_next(i)) {
                int64_t n = 0;
                (void) json_as_i64(i, &n);
                proof_report_add_count(p, &row->nodes, strtoul(json_key(i), NULL, 10), (uint64_t) n);
        }
        row->absent = proof_report_counts(p);
        for (const struct json *i = proof_first(json, "absent_errors"); i; i = json_next(i)) {
                int64_t n = 0;
                (void) json_as_i64(i, &n);
                proof_report_add_count(p, &row->absent, proof_errno_of(json_key(i)), (uint64_t) n);
        }
        row->nodes_seen = proof_numbers_of(p, json, "nodes_seen");
}

static inline void proof_take_thread(struct proof_report *p, const struct json *json) {
        struct proof_thread *row = proof_report_add_thread(p);
        const struct json *migrations = proof_member(json, "migrations");
        row->tid = (int32_t) proof_number(json, "tid");
        row->cpu = (uint32_t) proof_number(json, "cpu");
        row->node = (uint32_t) proof_number(json, "node");
        row->migrations = proof_number(json, "migrations");
        row->migrations_error = migrations && json_type(migrations) != JSON_NULL ? 0 : ENOENT;
        row->affinity = proof_numbers_of(p, json, "affinity");
        row->cpus_seen = proof_numbers_of(p, json, "cpus_seen");
}

static inline void proof_take_group(struct proof_report *p, const struct json *json) {
        struct proof_group *row = proof_report_add_group(p);
        const struct json *migrations = proof_member(json, "migrations");
        row->migrations = proof_number(json, "migrations");
        row->migrations_error = migrations && json_type(migrations) != JSON_NULL ? 0 : ENOENT;
        row->threads = proof_numbers_of(p, json, "threads");
        row->affinity = proof_numbers_of(p, json, "affinity");
        row->cpus = proof_numbers_of(p, json, "cpus");
        row->nodes = proof_numbers_of(p, json, "nodes");
        row->cpus_seen = proof_numbers_of(p, json, "cpus_seen");
}

static inline struct proof_report *proof_report_of(const char *text) {
        struct proof_report *p = calloc(1, sizeof(*p));
        struct json *root = NULL;
        if (!p || json_parse(text, strlen(text), &root, NULL) < 0)
                abort();
        const struct json *leader = proof_member(root, "leader"), *policy = proof_member(root, "policy");
        p->affinity = proof_numbers_of(p, root, "affinity");
        p->leader_tid = (int32_t) proof_number(leader, "tid");
        p->leader_cpu = (uint32_t) proof_number(leader, "cpu");
        p->leader_affinity = proof_numbers_of(p, leader, "affinity");
        int word = vocabulary_find(&memory_policy_words, proof_word(root, "policy"));
        enum memory_policy given = word < 0 ? MEMORY_COUNT : (enum memory_policy) word;
        p->policy_error = policy && json_type(policy) == JSON_NULL ? ENOSYS : 0;
        p->policy = p->policy_error ? MEMORY_DEFAULT : given;
        p->policy_nodes = proof_numbers_of(p, root, "policy_nodes");
        p->threads_total = (uint32_t) proof_number(root, "threads_total");
        p->placed_together = proof_number(root, "pages_placed_together");
        for (const struct json *i = proof_first(root, "pages"); i; i = json_next(i))
                proof_take_pages(p, i);
        for (const struct json *i = proof_first(root, "threads"); i; i = json_next(i))
                proof_take_thread(p, i);
        for (const struct json *i = proof_first(root, "threads_together"); i; i = json_next(i))
                proof_take_group(p, i);
        json_free(root);
        if (p->error < 0)
                abort();
        return p;
}

static inline char *proof_report_text(const struct proof_report *p) {
        struct json_writer w;
        char *text = NULL;
        json_writer_init(&w);
        proof_report_put(p, &w);
        (void) json_writer_steal(&w, &text, NULL); /* NULL where there is no memory */
        json_writer_deinit(&w);
        return text;
}

#endif
