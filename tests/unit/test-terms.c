/* SPDX-License-Identifier: MIT */

/* The vocabularies are closed, each word has one value, and a transport has the standard copy mode or none at all. */

#include "schema/terms.h"

#include "check.h"
#include "schema/util.h"

#include <errno.h>

#define ROUND_TRIP(word, type, count)                                                                                  \
        static void word##_both_ways(void) {                                                                           \
                for (unsigned i = 0; i < (count); i++) {                                                               \
                        const char *name = word##_name((enum type) i);                                                 \
                        CHECK(name);                                                                                   \
                        CHECK_INT(vocabulary_find(&word##_words, name), (int) i);                                      \
                        CHECK_STRING(word##_words.name(i), name);                                                      \
                }                                                                                                      \
                CHECK_UINT(word##_words.n, count);                                                                     \
                CHECK(!word##_words.name(count));                                                                      \
                CHECK_INT(vocabulary_find(&word##_words, ""), -EINVAL);                                                \
                CHECK_INT(vocabulary_find(&word##_words, "Pipe"), -EINVAL);                                            \
        }

ROUND_TRIP(workload, workload, WORKLOAD_COUNT)
ROUND_TRIP(transport, transport, TRANSPORT_COUNT)
ROUND_TRIP(copy_mode, copy_mode, COPY_COUNT)
ROUND_TRIP(engine, engine, ENGINE_COUNT)
ROUND_TRIP(wait_mode, wait_mode, WAIT_COUNT)
ROUND_TRIP(verify, verify, VERIFY_COUNT)
ROUND_TRIP(memory_policy, memory_policy, MEMORY_COUNT)
ROUND_TRIP(system_call, system_call, SYSTEM_CALL_COUNT)
ROUND_TRIP(direction, data_direction, DIRECTION_COUNT)
ROUND_TRIP(file_sync, file_sync, FILE_SYNC_COUNT)
ROUND_TRIP(spec_order, spec_order, ORDER_COUNT)
ROUND_TRIP(placement_kind, placement_kind, PLACEMENT_EXPLICIT)

static void explicit_is_no_name(void) {
        CHECK_STRING(placement_kind_name(PLACEMENT_EXPLICIT), "explicit");
        CHECK_INT(vocabulary_find(&placement_kind_words, "explicit"), -EINVAL);
        CHECK(!placement_kind_name(PLACEMENT_COUNT));
        CHECK(!transport_name(TRANSPORT_COUNT));
        CHECK(!workload_name(WORKLOAD_COUNT));
}

static void transport_table(void) {
        for (unsigned i = 0; i < TRANSPORT_COUNT; i++) {
                const struct transport_term *t = &transport_terms[i];
                CHECK(t->title && t->title[0]);
                CHECK(!t->copy_modes || t->copy_modes & 1u << COPY_TWO);
        }
}

static void meaning_of_fields(void) {
        CHECK(point_has_copy_mode(WORKLOAD_STREAM, TRANSPORT_PIPE));
        CHECK(point_has_copy_mode(WORKLOAD_STREAM, TRANSPORT_UNIX_STREAM));
        CHECK(!(transport_terms[TRANSPORT_UNIX_STREAM].copy_modes & 1u << COPY_ZERO));
        CHECK(!point_has_copy_mode(WORKLOAD_STREAM, TRANSPORT_SHM_POSIX));
        CHECK(!point_has_copy_mode(WORKLOAD_SYSCALL, TRANSPORT_PIPE));
        CHECK(point_has_engine(WORKLOAD_PINGPONG, TRANSPORT_FILE));
        CHECK(!point_has_engine(WORKLOAD_PINGPONG, TRANSPORT_MSGQ_SYSV));
        CHECK(point_has_wait(WORKLOAD_STREAM, TRANSPORT_MMAP_ANONYMOUS));
        CHECK(!point_has_wait(WORKLOAD_STREAM, TRANSPORT_FIFO));
        CHECK(!workload_has_transport(WORKLOAD_CONTEXT_SWITCH));
}

static void roles(void) {
        static const struct {
                enum workload w;
                enum transport t;
                const char *first, *second;
        } table[] = {
                {WORKLOAD_STREAM, TRANSPORT_PIPE, "sender", "receiver"},
                {WORKLOAD_PINGPONG, TRANSPORT_FIFO, "initiator", "responder"},
                {WORKLOAD_STREAM, TRANSPORT_TCP, "server", "client"},
                {WORKLOAD_PINGPONG, TRANSPORT_TCP, "server", "client"},
        };
        for (size_t i = 0; i < ELEMENTS(table); i++) {
                enum end end = END_COUNT;
                CHECK_STRING(role_name(table[i].w, table[i].t, END_FIRST), table[i].first);
                CHECK_STRING(role_name(table[i].w, table[i].t, END_SECOND), table[i].second);
                CHECK_INT(role_from_name(table[i].first, &end), 0);
                CHECK_INT(end, END_FIRST);
                CHECK_INT(role_from_name(table[i].second, &end), 0);
                CHECK_INT(end, END_SECOND);
                CHECK_INT(role_from_name("writer", &end), -EINVAL);
                CHECK_UINT(workload_agents(table[i].w), 2);
        }
        CHECK_UINT(workload_agents(WORKLOAD_SYSCALL), 1);
}

int main(void) {
        RUN(workload_both_ways);
        RUN(transport_both_ways);
        RUN(copy_mode_both_ways);
        RUN(engine_both_ways);
        RUN(wait_mode_both_ways);
        RUN(verify_both_ways);
        RUN(memory_policy_both_ways);
        RUN(system_call_both_ways);
        RUN(direction_both_ways);
        RUN(spec_order_both_ways);
        RUN(file_sync_both_ways);
        RUN(placement_kind_both_ways);
        RUN(explicit_is_no_name);
        RUN(transport_table);
        RUN(meaning_of_fields);
        RUN(roles);
        return check_end();
}
