/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The layout of messages between daemon and agent: a row for each field, read by encoder and decoder. Private to
 * schema/protocol/.
 *
 * A packet is a struct wire_header and the fields of its type, one behind the other, without padding, in the machine's
 * byte order (both sides are of one build and one machine). What has a length begins with it, 32 bits wide.
 */

#include "schema/protocol/protocol.h"

#include <stddef.h>
#include <stdint.h>

#define ERRNO_MAX 4095
#define WIRE_MAGIC UINT32_C(0x62637069) /* "ipcb" in a little-endian packet */

struct wire_header {
        uint32_t magic;
        uint16_t version;
        uint16_t type;
        uint32_t length; /* of the whole packet */
};

enum wire_kind {
        WIRE_U32,       /* also enums and int32_t that are never negative */
        WIRE_U64,       /* at most `most` */
        WIRE_BOOL,      /* a byte, 0 or 1 */
        WIRE_RATE,      /* double, 0 … SPEC_RATE_MAX */
        WIRE_POINT,     /* struct point: its value of each axis but the placement, which agents have resolved */
        WIRE_OPTIONS,   /* struct transport_options: each of them */
        WIRE_NODES,     /* struct node_set, whole */
        WIRE_CHARS,     /* char[most], UTF-8 with a length below that */
        WIRE_CPUS,      /* int32_t * and, right behind it, size_t: CPU numbers, at most `most` */
        WIRE_PROOF,     /* struct proof_report *: what stands before its arrays, then each array with its length */
        WIRE_EFFECTIVE, /* struct effective *: the number of rows, each with setting, group, kind (a byte each), value
                         */
        WIRE_COUNT,     /* struct perf_count: known (a byte), value, fraction, error */
        WIRE_LATENCY,   /* of struct message_sample; length 0: none */
        WIRE_PARTS,     /* of struct message_parts: at most `most`, at least one */
        WIRE_SERIES,    /* struct probe_series, whole */
};

struct wire_field {
        const char *name;
        enum wire_kind kind;
        size_t offset;        /* in struct message */
        uint64_t least, most; /* of WIRE_U32 and WIRE_U64; else the kind's own */
};

struct wire_layout {
        const char *name; /* of the message */
        const struct wire_field *fields;
        size_t n;
};

/* NULL out of range. */
const struct wire_layout *wire_layout_of(enum message_type type);
