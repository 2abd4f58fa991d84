/* SPDX-License-Identifier: MIT */

/* Any bytes into the JSON reader. What it accepts, it must print as JSON that it accepts again, unchanged, and whose
 * members a view has, too. A view of what it refuses stays within the text. */

#include "fuzz.h"
#include "schema/json/json.h"
#include "schema/json/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void check_view(const char *text, const struct json *root) {
        struct json_view view = {0};
        FUZZ_CHECK(json_view_read(&view, text) == 0 && view.parts->span == view.n);
        size_t members = 0;
        for (size_t i = 1; i < view.n; i += view.parts[i].span)
                members++;
        FUZZ_CHECK(members == (json_type(root) == JSON_OBJECT ? json_length(root) : 0));
        json_view_deinit(&view);
}

static void view_anything(const uint8_t *data, size_t size) {
        struct json_view view = {0};
        char *text = strndup((const char *) data, size);
        int r = text ? json_view_read(&view, text) : -ENOMEM;
        FUZZ_CHECK(r == 0 || r == -EBADMSG);
        json_view_deinit(&view);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct json *root = NULL, *again = NULL;
        struct json_error e;

        view_anything(data, size);
        int r = json_parse((const char *) data, size, &root, &e);
        if (r < 0) {
                FUZZ_CHECK(r == -EINVAL && !root && e.detail[0]);
                FUZZ_CHECK(strlen(e.pointer) < JSON_POINTER_MAX && (!e.pointer[0] || e.pointer[0] == '/'));
                return 0;
        }
        char *text = json_print(root);
        FUZZ_CHECK(text);
        FUZZ_CHECK(json_parse(text, strlen(text), &again, &e) == 0);
        check_view(text, root);
        char *second = json_print(again);
        FUZZ_CHECK(second && strcmp(text, second) == 0);
        free(second);
        free(text);
        json_free(again);
        json_free(root);
        return 0;
}
