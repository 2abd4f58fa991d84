/* SPDX-License-Identifier: MIT */

/* An exporter's acknowledgement of what it has stored elsewhere. */

#include "api/handle/handlers.h"
#include "schema/util.h"

#include <string.h>

#define UUID_LENGTH 36u
#define UUID_CHARACTERS "0123456789abcdef-"

/* {"store": UUID, "change": N} and nothing else. */
static int check_body(const struct json *body, const char **ret_store, int64_t *ret_change, struct refusal *r) {
        if (json_type(body) != JSON_OBJECT)
                return refuse(r, 422, "wrong-type", "",
                              "an acknowledgement is an object: {\"store\": UUID, \"change\": N}");
        const struct json *store = json_get(body, "store"), *change = json_get(body, "change");
        if (!store || !change)
                return refuse(r, 422, "missing-field", store ? "/change" : "/store",
                              "%s is missing: an acknowledgement is {\"store\": UUID, \"change\": N}",
                              store ? "change" : "store");
        if (json_length(body) != 2)
                return refuse(r, 422, "unknown-field", "",
                              "an acknowledgement has the fields store and change and no other");
        if (json_as_string(store, ret_store) < 0 || strlen(*ret_store) != UUID_LENGTH ||
            strspn(*ret_store, UUID_CHARACTERS) != UUID_LENGTH)
                return refuse(r, 422, "wrong-type", "/store",
                              "store: the store's UUID in lower case, as /health has it");
        if (json_as_i64(change, ret_change) < 0 || *ret_change < 0)
                return refuse(r, 422, "wrong-type", "/change",
                              "change: the number of the newest exported change, not negative");
        return 0;
}

HANDLER(handle_exported) {
        _cleanup_(json_freep) struct json *body = NULL;
        const char *store;
        int64_t change;
        int k = request_json(q, &body, r);
        if (k < 0)
                return k;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        k = check_body(body, &store, &change, r);
        if (k == 0)
                k = service_acknowledge_export(a->service, store, change, r);
        if (k == 0)
                k = service_exported(a->service, &change, r);
        if (k == 0) {
                json_member_string(&w, "store", store);
                json_member_i64(&w, "change", change);
        }
        json_object_end(&w);
        return k < 0 ? k : response_json(p, 200, &w);
}
