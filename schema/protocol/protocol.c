/* SPDX-License-Identifier: MIT */

/*
 * Messages between daemon and agent as packets: encoding, and the socket's two verbs with their deadlines. Decoding,
 * which must trust nothing, is protocol-decode.c. Called by the runner and by the agent's leader.
 */

#include "schema/protocol/protocol.h"

#include "schema/json/base64.h"
#include "schema/spec/internal.h"
#include "schema/util.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static void put_cpus(struct json_writer *w, const char *key, const int32_t *cpus, size_t n) {
        json_put_key(w, key);
        json_array_begin(w);
        for (size_t i = 0; i < n; i++)
                json_put_i64(w, cpus[i]);
        json_array_end(w);
}

static void put_nodes(struct json_writer *w, const char *key, const struct node_set *nodes) {
        json_put_key(w, key);
        json_array_begin(w);
        for (unsigned node = 0; node < SPEC_NODES_MAX; node++)
                if (node_set_has(nodes, node))
                        json_put_u64(w, node);
        json_array_end(w);
}

static void put_placement(struct json_writer *w, const struct agent_placement *p) {
        json_put_key(w, "placement");
        json_object_begin(w);
        put_cpus(w, "cpus", p->cpus, p->n_cpus);
        json_member_bool(w, "roam", p->roam);
        put_cpus(w, "leader_cpus", p->leader_cpus, p->n_leader_cpus);
        json_member_string(w, "memory", memory_policy_name(p->memory));
        put_nodes(w, "memory_nodes", &p->memory_nodes);
        json_member_string(w, "buffer", memory_policy_name(p->buffer));
        put_nodes(w, "buffer_nodes", &p->buffer_nodes);
        json_object_end(w);
}

static void put_setup(struct json_writer *w, const struct message_setup *s) {
        json_member_string(w, "end", s->end == END_FIRST ? "first" : "second");
        json_put_key(w, "point");
        json_object_begin(w);
        point_put(w, &s->point, false);
        json_object_end(w);
        json_member_string(w, "verify", verify_name(s->verify));
        json_member_u64_text(w, "duration_ns", s->duration_ns);
        json_member_u64_text(w, "messages", s->messages);
        json_member_u64_text(w, "messages_over", s->messages_over);
        json_member_u64_text(w, "warmup_ns", s->warmup_ns);
        json_member_u64_text(w, "interval_ns", s->interval_ns);
        json_member_u64_text(w, "stall_ns", s->stall_ns);
        json_member_double(w, "rate", s->rate);
        json_member_u64_text(w, "chunk_bytes", s->chunk_bytes);
        json_put_key(w, "options");
        values_write(&option_values, w, &s->options);
        put_placement(w, &s->placement);
}

/* The V2 encoding as base64, with the exact sum beside it; null where there is no latency. */
static int put_latency(struct json_writer *w, const struct histogram *h) {
        _cleanup_free_ uint8_t *data = NULL;
        _cleanup_free_ char *text = NULL;
        size_t length;

        if (!h) {
                json_member_null(w, "latency");
                return 0;
        }
        int r = histogram_encode(h, &data, &length);
        if (r == 0)
                r = base64_encode(data, length, &text);
        if (r < 0)
                return r;
        json_put_key(w, "latency");
        json_object_begin(w);
        json_member_string(w, "v2", text);
        json_member_u64_text(w, "sum_ns", h->sum_ns);
        json_object_end(w);
        return 0;
}

static int put_sample(struct json_writer *w, const struct message_sample *s) {
        json_member_u64(w, "thread", s->thread);
        json_member_u64(w, "second", s->second);
        json_member_u64_text(w, "interval_ns", s->interval_ns);
        json_member_u64_text(w, "messages", s->messages);
        json_member_u64_text(w, "bytes", s->bytes);
        json_member_raw(w, "counters", s->counters);
        return put_latency(w, s->latency);
}

static void put_thread(struct json_writer *w, const struct message_thread *t) {
        json_member_u64(w, "thread", t->thread);
        json_member_u64_text(w, "messages", t->messages);
        json_member_u64_text(w, "bytes", t->bytes);
        json_member_raw(w, "counters", t->counters);
}

static void put_counting(struct json_writer *w, const struct message_counting *c) {
        json_put_key(w, "errors");
        json_array_begin(w);
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        json_put_i64(w, c->errors[event][mode]);
        json_array_end(w);
}

static void put_report(struct json_writer *w, const struct message_report *r) {
        json_member_u64_text(w, "window_ns", r->window_ns);
        json_member_u64_text(w, "messages", r->messages);
        json_member_u64_text(w, "bytes", r->bytes);
        json_member_raw(w, "proof", r->proof);
        json_member_raw(w, "effective", r->effective);
        json_member_raw(w, "counters", r->counters);
}

static int put_body(struct json_writer *w, const struct message *m) {
        switch (m->type) {
        case MESSAGE_HELLO:
                json_member_i64(w, "pid", m->hello.pid);
                return 0;
        case MESSAGE_SETUP:
                put_setup(w, &m->setup);
                return 0;
        case MESSAGE_COUNT:
                json_member_i64(w, "tid", m->count.tid);
                return 0;
        case MESSAGE_COUNTING:
                put_counting(w, &m->counting);
                return 0;
        case MESSAGE_READY:
                json_member_raw(w, "proof", m->ready.proof);
                json_member_raw(w, "effective", m->ready.effective);
                return 0;
        case MESSAGE_START:
                json_member_u64_text(w, "start_ns", m->start.start_ns);
                return 0;
        case MESSAGE_ALIVE:
                json_member_string(w, "phase", m->alive.phase);
                return 0;
        case MESSAGE_SAMPLE:
                return put_sample(w, &m->sample);
        case MESSAGE_THREAD:
                put_thread(w, &m->thread);
                return 0;
        case MESSAGE_REPORT:
                put_report(w, &m->report);
                return 0;
        case MESSAGE_ERROR:
                json_member_string(w, "fault", fault_name(m->error.fault));
                json_member_i64(w, "error", m->error.error);
                json_member_string(w, "detail", m->error.detail);
                return 0;
        }
        return -EINVAL;
}

int message_encode(const struct message *m, char **ret, size_t *ret_length) {
        struct json_writer w;
        char *text = NULL;
        size_t length;

        json_writer_init(&w);
        json_object_begin(&w);
        json_member_i64(&w, "v", PROTOCOL_VERSION);
        json_member_string(&w, "type", message_type_name(m->type));
        int r = put_body(&w, m);
        json_object_end(&w);
        if (r == 0)
                r = json_writer_steal(&w, &text, &length);
        json_writer_deinit(&w);
        if (r < 0)
                return r;
        if (length > PROTOCOL_PACKET_MAX) {
                free(text);
                return -EMSGSIZE;
        }
        *ret = text;
        *ret_length = length;
        return 0;
}

/* Waits until the socket can be read or written, or the deadline has come. */
static int wait_for(int fd, short events, uint64_t deadline_ns) {
        for (;;) {
                uint64_t now = util_now_ns();
                if (now >= deadline_ns)
                        return -ETIMEDOUT;
                uint64_t left = deadline_ns - now;
                struct timespec timeout = {.tv_sec = (time_t) (left / NSEC_PER_SEC),
                                           .tv_nsec = (long) (left % NSEC_PER_SEC)};
                struct pollfd p = {.fd = fd, .events = events};
                int n = ppoll(&p, 1, &timeout, NULL);
                if (n > 0)
                        return 0; /* errors too: the call that follows says which */
                if (n < 0 && errno != EINTR)
                        return -errno;
        }
}

/* Room for the descriptors of one packet, and no more. */
union rights_space {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * PERF_HANDLES_MAX)];
};

static ssize_t send_packet(int fd, const char *text, size_t length, const struct message_rights *rights) {
        union rights_space control = {.space = {0}};
        struct iovec iov = {.iov_base = (void *) (uintptr_t) text, .iov_len = length};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        if (rights && rights->n > 0) {
                size_t bytes = rights->n * sizeof(int);
                m.msg_control = &control;
                m.msg_controllen = CMSG_SPACE(bytes);
                control.header = (struct cmsghdr){
                        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(bytes)};
                memcpy(CMSG_DATA(&control.header), rights->fds, bytes);
        }
        return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int message_send(int fd, const struct message *m, uint64_t deadline_ns) {
        return message_send_with(fd, m, NULL, deadline_ns);
}

int message_send_with(int fd, const struct message *m, const struct message_rights *rights, uint64_t deadline_ns) {
        _cleanup_free_ char *text = NULL;
        size_t length;

        int r = message_encode(m, &text, &length);
        if (r < 0)
                return r;
        for (;;) {
                ssize_t n = send_packet(fd, text, length, rights);
                if (n >= 0)
                        return 0; /* a packet goes as a whole */
                if (errno == EPIPE || errno == ECONNRESET)
                        return -ECONNRESET;
                if (errno == EINTR)
                        continue;
                if (errno != EAGAIN)
                        return -errno;
                if (deadline_ns == 0)
                        return -EAGAIN;
                r = wait_for(fd, POLLOUT, deadline_ns);
                if (r < 0)
                        return r;
        }
}

/* What comes beside a packet: descriptors, or who sent it. One of the two, or neither, is wanted. */
struct beside {
        struct message_rights *rights;
        struct ucred *sender; /* stays as it is where the kernel gave none: the socket lacks SO_PASSCRED */
};

union sender_space {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred))];
};

/* Where there is no room for them the kernel drops descriptors. */
static ssize_t receive_packet(int fd, char *text, const struct beside *beside) {
        union {
                union rights_space rights;
                union sender_space sender;
        } control;
        struct message_rights *rights = beside->rights;
        struct iovec iov = {.iov_base = text, .iov_len = PROTOCOL_PACKET_MAX};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        if (rights) {
                rights->n = 0;
                m.msg_control = &control;
                m.msg_controllen = CMSG_LEN(sizeof(rights->fds));
        } else if (beside->sender) {
                m.msg_control = &control;
                m.msg_controllen = CMSG_LEN(sizeof(struct ucred));
        }
        ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
        /* The other side went without reading all of ours: told once, and ahead of what it has said itself. */
        if (n < 0 && errno == ECONNRESET)
                n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
        const struct cmsghdr *c = n >= 0 && m.msg_control ? CMSG_FIRSTHDR(&m) : NULL;
        if (!c || c->cmsg_level != SOL_SOCKET)
                return n;
        if (beside->sender && c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof(struct ucred)))
                memcpy(beside->sender, CMSG_DATA(c), sizeof(struct ucred));
        if (rights && c->cmsg_type == SCM_RIGHTS) {
                rights->n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(rights->fds, CMSG_DATA(c), rights->n * sizeof(int));
        }
        return n;
}

/* -EAGAIN: there is none. */
static int take_packet(int fd, char *text, struct message *ret, const struct beside *beside, char *ret_detail) {
        ssize_t n = receive_packet(fd, text, beside);
        if (n > (ssize_t) PROTOCOL_PACKET_MAX) {
                if (ret_detail)
                        snprintf(ret_detail, 200, "a packet of %zd bytes, at most %u are allowed", n,
                                 PROTOCOL_PACKET_MAX);
                return -EBADMSG;
        }
        if (n > 0)
                return message_decode(text, (size_t) n, ret, ret_detail);
        if (n == 0 || errno == ECONNRESET)
                return -ECONNRESET;
        return -errno;
}

void message_rights_close(struct message_rights *rights) {
        while (rights->n > 0)
                (void) util_close(rights->fds[--rights->n]);
}

static int receive(int fd, struct message *ret, const struct beside *beside, uint64_t deadline_ns, char *ret_detail) {
        _cleanup_free_ char *text = malloc(PROTOCOL_PACKET_MAX);
        if (!text)
                return -ENOMEM;
        for (;;) {
                int r = take_packet(fd, text, ret, beside, ret_detail);
                if (r < 0 && beside->rights)
                        message_rights_close(beside->rights);
                if (r == -EINTR)
                        continue;
                if (r != -EAGAIN || deadline_ns == 0)
                        return r;
                r = wait_for(fd, POLLIN, deadline_ns);
                if (r < 0)
                        return r;
        }
}

int message_receive(int fd, struct message *ret, uint64_t deadline_ns, char *ret_detail) {
        return receive(fd, ret, &(struct beside){NULL, NULL}, deadline_ns, ret_detail);
}

int message_receive_with(int fd, struct message *ret, struct message_rights *rights, uint64_t deadline_ns,
                         char *ret_detail) {
        return receive(fd, ret, &(struct beside){.rights = rights}, deadline_ns, ret_detail);
}

int message_receive_from(int fd, struct message *ret, struct ucred *ret_sender, char *ret_detail) {
        *ret_sender = (struct ucred){.pid = 0, .uid = (uid_t) -1, .gid = (gid_t) -1};
        return receive(fd, ret, &(struct beside){.sender = ret_sender}, 0, ret_detail);
}
