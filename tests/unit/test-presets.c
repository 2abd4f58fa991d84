/* SPDX-License-Identifier: MIT */

/* What the build compiled in: presets by name, and the embedded texts as the files have them. */

#include "schema/presets.h"

#include "check.h"
#include "schema/json/json.h"
#include "schema/migrations.h"
#include "schema/schema.h"
#include "schema/util.h"

#include <errno.h>
#include <stdbool.h>

static void found_by_name(void) {
        const struct preset *quick = preset_find("quick");
        CHECK(quick);
        CHECK_STRING(quick->name, "quick");
        CHECK(!preset_find("quic"));
        CHECK(!preset_find(""));
        for (size_t i = 0; i < n_presets; i++) {
                CHECK(preset_find(presets[i].name) == &presets[i]);
                CHECK(i == 0 || strcmp(presets[i - 1].name, presets[i].name) < 0);
        }
}

static void each_is_a_document(void) {
        CHECK(n_presets > 0);
        for (size_t i = 0; i < n_presets; i++) {
                struct json *root = NULL;
                const char *s;
                CHECK_UINT(presets[i].length, strlen(presets[i].json));
                CHECK_INT(json_parse(presets[i].json, presets[i].length, &root, NULL), 0);
                CHECK_INT(json_as_string(json_get(root, "title"), &s), 0);
                CHECK_INT(json_as_string(json_get(root, "description"), &s), 0);
                bool brief = strstr(presets[i].name, "-quick");
                CHECK_INT(json_as_string(json_get(root, "question"), &s), brief ? -EINVAL : 0);
                CHECK_INT(json_as_string(json_get(root, "expected"), &s), brief ? -EINVAL : 0);
                CHECK(json_get(root, "spec") && json_type(json_get(root, "spec")) == JSON_OBJECT);
                json_free(root);
        }
}

static bool same_as_file(const char *text, const char *path) {
        char full[4096], buffer[65536];
        const char *root = getenv("IPCLAB_SOURCE_ROOT");
        snprintf(full, sizeof(full), "%s/%s", root ? root : ".", path);
        _cleanup_fclose_ FILE *f = fopen(full, "r");
        if (!f)
                return false;
        size_t n = fread(buffer, 1, sizeof(buffer), f);
        return n < sizeof(buffer) && n == strlen(text) && memcmp(buffer, text, n) == 0;
}

static void embedded_byte_by_byte(void) {
        CHECK(n_migrations > 0);
        CHECK_STRING(migrations[0].name, "0001-initial");
        CHECK(same_as_file(preset_find("quick")->json, "schema/presets/quick.json"));
        CHECK(same_as_file(migrations[0].sql, "schema/migrations/0001-initial.sql"));
        CHECK(same_as_file(schema_frame_json, "schema/spec/frame.schema.json"));
}

int main(void) {
        RUN(found_by_name);
        RUN(each_is_a_document);
        RUN(embedded_byte_by_byte);
        return check_end();
}
