/* SPDX-License-Identifier: MIT */

/* Any bytes into the JSON reader. What it accepts, it must print as JSON that it accepts again, unchanged. */

#include "fuzz.h"
#include "schema/json/json.h"

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct json *root = NULL, *again = NULL;
        struct json_error e;

        int r = json_parse((const char *) data, size, &root, &e);
        if (r < 0) {
                FUZZ_CHECK(r == -EINVAL && !root && e.detail[0]);
                FUZZ_CHECK(strlen(e.pointer) < JSON_POINTER_MAX && (!e.pointer[0] || e.pointer[0] == '/'));
                return 0;
        }
        char *text = json_print(root);
        FUZZ_CHECK(text);
        FUZZ_CHECK(json_parse(text, strlen(text), &again, &e) == 0);
        char *second = json_print(again);
        FUZZ_CHECK(second && strcmp(text, second) == 0);
        free(second);
        free(text);
        json_free(again);
        json_free(root);
        return 0;
}
