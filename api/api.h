/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The HTTP interface. It runs in threads of its own, and uses the daemon through daemon/service/service.h alone.
 */

#include <stdint.h>

struct service;
struct api;

struct api_options {
        struct service *service;
        int unix_fd;             /* listening AF_UNIX socket, or -1; api owns it from here on */
        int tcp_fd;              /* listening TCP socket on loopback, or -1; api owns it */
        const char *tcp_problem; /* why there is none yet, for /health; NULL: none is wanted, or there is one */
        const char *token;       /* bearer token that writes over TCP need */
        const char *web_dir;
        uint64_t memory_bytes;   /* the limit of this process's memory; 0: there is none */
        const char *extra_hosts; /* comma-separated Host values accepted besides 127.0.0.1, localhost and [::1] with the
                                    port; may be NULL */
};

/* Serves until api_stop(). 0 or negative errno; the sockets are the api's either way. */
int api_start(const struct api_options *o, struct api **ret);
/* Serves TCP, too, from here on, where api_start() had no such socket. 0, or negative errno, after which it may be
 * called again; the socket is the api's either way. */
int api_serve_tcp(struct api *a, int tcp_fd, const char *extra_hosts);
/* Why it is not served yet, for /health from here on. 0 or -ENOMEM. */
int api_set_tcp_problem(struct api *a, const char *problem);
/* Ends event streams, finishes what is under way until the deadline (CLOCK_MONOTONIC), joins the threads. Returns how
 * many connections were cut off because they were not finished by then. NULL-safe. A handler may be waiting for the
 * daemon's main thread: when that is the caller, service_stop() comes first. */
unsigned api_stop(struct api *a, uint64_t deadline_ns);
