/* SPDX-License-Identifier: MIT */
#pragma once

/* The last cache before memory. Source: Documentation/ABI/testing/sysfs-devices-system-cpu (cache/index*). */

#include <stdint.h>

/* Bytes of the cache of the highest level that the calling thread's CPU has; 0: the kernel does not show it. */
uint64_t last_cache_bytes(void);

/* "32768K" in bytes; 0: it is no size. */
uint64_t last_cache_parse(const char *text);
