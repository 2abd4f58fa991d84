/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_TCP_FAULTS_H
#define IPCLAB_TESTS_TCP_FAULTS_H

/* The runs over TCP that faults and limits are for, by whichever engines there are here. */

#include "check.h"
#include "interrupt.h"
#include "pairs.h"
#include "rings.h"

static const enum engine engines[] = {ENGINE_SYSCALL, ENGINE_IO_URING};
static size_t n_engines = ELEMENTS(engines);
static const char *no_rings; /* why the last of them is left out; NULL: it is not */

static const enum data_direction directions[] = {DIRECTION_DOWN, DIRECTION_BOTH}; /* which have loops of their own */

static inline struct driver_spec fault_spec(enum engine engine, enum copy_mode mode) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.transport = TRANSPORT_TCP;
        s.point.engine = engine;
        s.point.copy_mode = mode;
        s.point.threads = 2;
        s.point.message_size = 20000;
        s.verify = VERIFY_CHECKSUM;
        s.messages = 200;
        s.interval_ns = 50 * NSEC_PER_MSEC;
        s.stamp = true;
        return s;
}

/* One that only a fault ends. */
static inline struct driver_spec endless_spec(enum engine engine, enum copy_mode mode) {
        struct driver_spec s = fault_spec(engine, mode);
        s.messages = 0;
        s.duration_ns = INTERRUPT_ENDLESS_NS;
        return s;
}

/* Cases that need a ring are left out; one of them gives the reason. */
static void test_rings_that_are_not_to_be_had(void) {
        SKIP("%s: nothing is done by io_uring", no_rings);
}

static void find_engines(void) {
        no_rings = ring_trouble();
        if (no_rings) {
                n_engines--;
                RUN(test_rings_that_are_not_to_be_had);
        }
}

#endif
