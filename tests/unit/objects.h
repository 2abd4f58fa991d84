/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_OBJECTS_H
#define IPCLAB_TESTS_OBJECTS_H

/* Objects of an agent's messages as they are once they have been received. */

#include "schema/json/json.h"
#include "schema/protocol/protocol.h"

#include <stdlib.h>
#include <string.h>

/* Without a value where the text is not JSON. */
static inline struct message_object object_of(const char *text) {
        struct message_object o = {.text = strdup(text)};
        (void) json_parse(text, strlen(text), &o.value, NULL);
        return o;
}

static inline void object_deinit(struct message_object *o) {
        free(o->text);
        json_free(o->value);
        *o = (struct message_object){.text = NULL};
}
#define OBJECT __attribute__((cleanup(object_deinit))) struct message_object

#endif
